------------------------------ MODULE ZeusJoin -----------------------------
(* Who knows of an object of Zeus while nodes die and others come in their    *)
(* place (docs/protocols/zeus.md, R11, the mask, and R13's last sentence).    *)
(* Requests are single steps here, between changes of view: how they get      *)
(* there is ZeusOwn.tla's.  A request reaches the live directory nodes, the   *)
(* owner, and whoever it is about; other readers keep the entry that they     *)
(* had.  Who comes is a shadow: it is sent entries, and is promoted when all  *)
(* live members have said PUSHED, which travels behind their entries.         *)
(* `Off' names rules that are switched off.                                   *)
EXTENDS Integers, FiniteSets

CONSTANTS
  Nodes, Dir,        \* Dir: the object's directory
  Owner0, Readers0,  \* at the start; Owner0 = 0: the object is lost, or has readers alone
  Dead0,             \* who is dead at the start
  Owners, Readers, Targets, \* who may own, read, be trimmed
  Destroys,          \* whether the object may be destroyed
  Mortal, Back,      \* who may die, and come back
  MaxView, MaxMove,  \* changes of view, requests
  Off

VARIABLES
  live, shadows, adm, epoch,  \* the view
  ent,    \* per node: the entry [ts, v]; ts 0: none
  has,    \* who has the data
  net,    \* ENTRYs under way: [f, t, e, x], and PUSHED behind each
  sent,   \* who has sent its entries in this epoch
  heard,  \* per node: of whom it has heard PUSHED in this epoch
  moves, gone

vars == <<live, shadows, adm, epoch, ent, has, net, sent, heard, moves, gone>>
view == <<live, shadows, adm, epoch>>
push == <<net, sent, heard>>
On(r) == r \notin Off
Drop0(S) == S \ {0}

NoVec == [o |-> 0, r |-> {}, e |-> 0]
NoEnt == [ts |-> 0, v |-> NoVec]
Counts(x, v) == x \in live /\ (adm[x] <= v.e \/ ~On("mask"))
Masked(v) == [o |-> IF Counts(v.o, v) THEN v.o ELSE 0, r |-> {x \in v.r : Counts(x, v)}, e |-> epoch]
Replicas(v) == Drop0(v.r \cup {v.o})
Operational == live \ shadows
\* who says what there is, and that there is nothing
Drivers == Dir \cap Operational
----------------------------------------------------------------------------
(* Requests *)
\* v, by the word of driver d, becomes w; S are asked besides
Apply(d, v, w, S) ==
  LET told == (Dir \cap live) \cup Drop0({v.o}) \cup S
      keeps(n) == n \in Dir \cup Replicas(w) IN
  /\ ent' = [n \in Nodes |-> IF n \notin told THEN ent[n]
                             ELSE IF keeps(n) THEN [ts |-> ent[d].ts + 1, v |-> w] ELSE NoEnt]
  /\ moves' = moves + 1
  /\ UNCHANGED <<view, push, gone>>

Known(d, v) == moves < MaxMove /\ d \in Drivers /\ ent[d].ts # 0 /\ v = Masked(ent[d].v)
\* where nobody owns the object a reader gives its data
Source(v) == IF v.o = 0 /\ v.r # {} THEN {CHOOSE x \in v.r : TRUE} ELSE {}

Own(x) == \E d \in Drivers : LET v == Masked(ent[d].v) IN
  /\ Known(d, v) /\ x \in Owners \cap Operational /\ x # v.o /\ Replicas(v) # {}
  /\ Apply(d, v, [v EXCEPT !.o = x, !.r = Drop0(@ \cup {v.o}) \ {x}], {x} \cup Source(v))
  /\ has' = has \cup {x}
Read(x) == \E d \in Drivers : LET v == Masked(ent[d].v) IN
  /\ Known(d, v) /\ x \in Readers \cap Operational /\ x \notin Replicas(v) /\ Replicas(v) # {}
  /\ Apply(d, v, [v EXCEPT !.r = @ \cup {x}], {x} \cup Source(v))
  /\ has' = has \cup {x}
Trim(x) == \E d \in Drivers : LET v == Masked(ent[d].v) IN
  /\ Known(d, v) /\ x \in Targets \cap v.r /\ v.o # 0
  /\ Apply(d, v, [v EXCEPT !.r = @ \ {x}], {x})
  /\ has' = has \ {x}
\* of a tombstone, or of what is lost; not while somebody joins
Destroy == \E d \in Drivers : LET v == Masked(ent[d].v) IN
  /\ Known(d, v) /\ Destroys /\ (shadows = {} \/ ~On("destroy_joins"))
  /\ ent' = [n \in Nodes |-> IF n \in Dir \cup Replicas(v) THEN NoEnt ELSE ent[n]]
  /\ has' = has \ Replicas(v)
  /\ gone' = TRUE /\ moves' = MaxMove
  /\ UNCHANGED <<view, push>>
----------------------------------------------------------------------------
(* Entries for who comes *)
\* own_pushes
Speaks(n) == LET v == Masked(ent[n].v) IN
  ent[n].ts # 0 /\ (n \in Dir \/ v.o = n \/ (n \in v.r /\ Drivers = {} /\ On("readers")))
Pusher(n) == n \in Operational \/ On("pass_on")
Push(n) ==
  LET to == (shadows \cap Dir) \ {n} IN
  /\ n \in live \ sent /\ to # {} /\ Pusher(n)
  /\ \A m \in net : m.f = n => m.t \notin to        \* the lane delivers those first
  /\ sent' = sent \cup {n}
  /\ IF Speaks(n)
     THEN /\ net' = net \cup {[f |-> n, t |-> s, e |-> epoch, x |-> [ts |-> ent[n].ts, v |-> Masked(ent[n].v)]] : s \in to}
          /\ UNCHANGED heard
     ELSE /\ heard' = [s \in Nodes |-> IF s \in to THEN heard[s] \cup {n} ELSE heard[s]]
          /\ UNCHANGED net
  /\ UNCHANGED <<view, ent, has, moves, gone>>

\* its entry counts whenever it comes, PUSHED in its epoch only
Recv(n) == \E m \in net :
  /\ m.t = n
  /\ net' = net \ {m}
  /\ ent' = IF m.x.ts > ent[n].ts /\ (n \in Dir \/ n \in Replicas(Masked(m.x.v)))
            THEN [ent EXCEPT ![n] = m.x] ELSE ent
  /\ heard' = IF m.e = epoch THEN [heard EXCEPT ![n] = @ \cup {m.f}] ELSE heard
  /\ UNCHANGED <<view, has, sent, moves, gone>>
----------------------------------------------------------------------------
(* Views: a majority lives; a shadow counts as dead *)
NextView ==
  /\ epoch < MaxView /\ epoch' = epoch + 1
  /\ sent' = {} /\ heard' = [n \in Nodes |-> {}]

Majority(S) == 2 * Cardinality(S) > Cardinality(Nodes)
Die(x) ==
  /\ x \in Mortal \cap live /\ Majority(live \ {x}) /\ NextView
  /\ live' = live \ {x} /\ shadows' = shadows \ {x}
  /\ ent' = [ent EXCEPT ![x] = NoEnt] /\ has' = has \ {x}
  /\ net' = {m \in net : m.f # x /\ m.t # x}
  /\ UNCHANGED <<adm, moves, gone>>
Admit(x) ==
  /\ x \in Back \ live /\ NextView
  /\ live' = live \cup {x} /\ shadows' = shadows \cup {x}
  /\ adm' = [adm EXCEPT ![x] = epoch + 1]
  /\ UNCHANGED <<ent, has, net, moves, gone>>
Awaited(x) == IF On("all_pushed") /\ On("pass_on") THEN live \ {x} ELSE Operational
Promote(x) ==
  /\ x \in shadows /\ NextView
  /\ IF x \in Dir THEN Awaited(x) \subseteq heard[x] ELSE TRUE
  /\ shadows' = shadows \ {x}
  /\ UNCHANGED <<live, adm, ent, has, net, moves, gone>>
----------------------------------------------------------------------------
Init ==
  LET v == [o |-> Owner0, r |-> Readers0, e |-> 1] IN
  /\ live = Nodes \ Dead0 /\ shadows = {} /\ adm = [n \in Nodes |-> 1] /\ epoch = 1
  /\ ent = [n \in Nodes |-> IF n \in (Dir \cup Replicas(v)) \ Dead0 THEN [ts |-> 1, v |-> v] ELSE NoEnt]
  /\ has = Replicas(v) \ Dead0
  /\ net = {} /\ sent = {} /\ heard = [n \in Nodes |-> {}]
  /\ moves = 0 /\ gone = FALSE
Next == (\E n \in Nodes : Own(n) \/ Read(n) \/ Trim(n) \/ Push(n) \/ Recv(n) \/ Die(n) \/ Admit(n) \/ Promote(n))
        \/ Destroy
Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
(* Properties *)
\* who may say that there is no object does not, where somebody has it
Told == \A d \in Drivers : ent[d].ts = 0 => has = {}
\* a driver knows who has the object, and nobody else has it
Named == \A d \in Drivers : ent[d].ts # 0 => has = Replicas(Masked(ent[d].v))
\* whoever is asked says the same
Agreed == \A c, d \in Drivers : ent[c].ts = ent[d].ts
\* what was destroyed does not come back
Gone == gone => \A n \in live : ent[n].ts = 0

(* What must be possible: each of these is to be violated. *)
NeverServes == ~\E d \in Drivers : adm[d] > 1 /\ ent[d].ts # 0
NeverLost   == ~\E d \in Drivers : adm[d] > 1 /\ ent[d].ts # 0 /\ has = {}
NeverAlone  == ~(Drivers = {} /\ shadows # {} /\ has # {})
NeverGone   == ~(gone /\ epoch > 1)
=============================================================================

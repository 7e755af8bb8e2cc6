----------------------------- MODULE ZeusCommit -----------------------------
(* Reliable commit in Zeus: what src/engine/zeus/commit.c does, of two        *)
(* objects whose replicas may differ, so that followers see a part of a       *)
(* pipeline.  Node 1 owns both at first; a replica takes an object over when  *)
(* its owner is dead and all have RECOVERED.  Rule names are those of         *)
(* docs/protocols/zeus-commit.md; `Off' names rules that are switched off.    *)
(*                                                                            *)
(* A pipeline's messages travel in a lane of their own between each two       *)
(* nodes, in order, each once.  A message of an epoch that its receiver has   *)
(* not adopted waits; what a dead member has sent arrives until its receiver  *)
(* adopts a view without it.  A process that dies stops at the step that      *)
(* drops it.  Each transaction reads whatever it may.                         *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Nodes,
  M1, M2,           \* the replicas of object 1, of object 2
  Pipes,            \* of each node
  MaxTx,
  Shapes,           \* sets of objects that a transaction may write
  Mortal, MaxDrop,  \* who may die; how many do
  Off               \* rules that are switched off

VARIABLES
  net,              \* lanes <<from, to, pipe>>
  dat,              \* per node and object: [s, ver, tx, p]; s: "-" none, "V", "W" by pipe p, "I"
  own,              \* per object: its owner
  txs,              \* all transactions: [n, p, s: slot, w, r: object -> version or 0, deps]
  slots,            \* per node: what it coordinates or stores [t, st, fol, o]; o: the objects that it knows of
  acks,             \* per node: <<pipeline, follower, slot>>: the highest R-ACKs of its epoch
  views, view,      \* members of each epoch; per node: the epoch that it has adopted
  said,             \* per node: the last epoch that it has RECOVERED
  done, told        \* transactions that some driver found done; that clients were told of

vars == <<net, dat, own, txs, slots, acks, views, view, said, done, told>>
On(r) == r \notin Off
Objs == {1, 2}
Members(o) == IF o = 1 THEN M1 ELSE M2
Newest == views[Len(views)]
Alive(n) == n \in Newest
Live(n) == views[view[n]]
Max(S) == CHOOSE x \in S : \A y \in S : y <= x
----------------------------------------------------------------------------
NoDat == [s |-> "-", ver |-> 0, tx |-> 0, p |-> 0]
\* a pipeline
P(t) == <<txs[t].n, txs[t].p>>
Slot(t) == txs[t].s
Followers(t) == UNION {Members(o) : o \in {x \in Objs : txs[t].w[x] # 0}} \ {txs[t].n}
Of(n, p) == {x \in slots[n] : P(x.t) = p}
Acked(n, p) == [f \in Nodes |-> LET S == {a[3] : a \in {b \in acks[n] : b[1] = p /\ b[2] = f}} IN
                                IF S = {} THEN 0 ELSE Max(S)]
All(x, ack) == \A f \in x.fol : ack[f] >= Slot(x.t) \/ ~On("all_acks")

\* C3: what may go out of S, all slots of a pipeline that its driver has
Goes(S, ack) == {x \in S : x.st = "HELD" /\ \A e \in S : Slot(e.t) < Slot(x.t) =>
                   \/ ~On("partial") \/ ~On("order")
                   \/ e.st # "HELD" /\ (x.fol \subseteq e.fol \cup {txs[e.t].n} \/ All(e, ack))}
RECURSIVE Out(_, _)
\* what goes out now, one after the other
Out(S, ack) == LET G == Goes(S, ack) IN
  IF G = {} THEN <<>> ELSE
  LET x == CHOOSE x \in G : \A y \in G : IF On("order") THEN Slot(x.t) <= Slot(y.t) ELSE Slot(x.t) >= Slot(y.t)
      sent == [x EXCEPT !.st = "SENT"] IN
  <<sent>> \o Out((S \ {x}) \cup {sent}, ack)

Msg(n, k, t, fol, o, e) == [k |-> k, p |-> P(t), s |-> Slot(t), t |-> t, f |-> fol, o |-> o, e |-> e]
Put(nt, n, S, m) ==
  [l \in DOMAIN nt |-> IF l[1] = n /\ l[2] \in S /\ l[3] = m.p[2] THEN Append(nt[l], m) ELSE nt[l]]
RECURSIVE PutAll(_, _, _, _)
PutAll(nt, n, seq, e) == IF seq = <<>> THEN nt ELSE
  PutAll(Put(nt, n, Head(seq).fol, Msg(n, "INV", Head(seq).t, Head(seq).fol, Head(seq).o, e)), n, Tail(seq), e)
\* the slots of n after those of seq went out
Sent(S, seq) == {IF \E i \in 1..Len(seq) : seq[i].t = x.t THEN [x EXCEPT !.st = "SENT"] ELSE x : x \in S}

At(l) == net[l] # <<>> /\ Head(net[l]).e <= view[l[2]] /\ Alive(l[2])
Pop(l) == [net EXCEPT ![l] = Tail(@)]
----------------------------------------------------------------------------
\* C4
Reads(n, p, o) == dat[n][o].s = "V" \/ (dat[n][o].s = "W" /\ (dat[n][o].p = p \/ ~On("own_pipe")))
\* C12: what a transaction under way has read only its own pipeline writes.  Versions that are read are raised
\* by 1: 0 is not read
Free(n, p, o) == \A x \in slots[n] : (txs[x.t].n = n /\ txs[x.t].r[o] # 0) => (txs[x.t].p = p \/ ~On("read"))
Commit(n) == \E p \in Pipes, W \in Shapes : LET t == Len(txs) + 1 IN
  /\ Alive(n) /\ t <= MaxTx /\ \A o \in W : own[o] = n /\ Reads(n, p, o) /\ Free(n, p, o)
  /\ LET R == {o \in Objs : own[o] = n /\ Reads(n, p, o)}
         tx == [n |-> n, p |-> p, s |-> 1 + Cardinality({u \in 1..Len(txs) : P(u) = <<n, p>>}),
                w |-> [o \in Objs |-> IF o \in W THEN dat[n][o].ver + 1 ELSE 0],
                r |-> [o \in Objs |-> IF o \in R THEN dat[n][o].ver + 1 ELSE 0],
                deps |-> {dat[n][o].tx : o \in R} \ {0}]
         fol == (UNION {Members(o) : o \in W} \cap Live(n)) \ {n}
         new == [t |-> t, st |-> "HELD", fol |-> fol, o |-> W] IN
     /\ txs' = Append(txs, tx)
     /\ dat' = [dat EXCEPT ![n] = [o \in Objs |->
          IF o \in W THEN [s |-> "W", ver |-> tx.w[o], tx |-> t, p |-> p] ELSE @[o]]]
     /\ slots' = [slots EXCEPT ![n] = @ \cup {new}]
  /\ UNCHANGED <<net, own, acks, views, view, said, done, told>>

\* what is HELD and may go out goes out at once: nothing else happens at n
Held(n) == \E p \in {P(x.t) : x \in slots[n]} : Alive(n) /\ Goes(Of(n, p), Acked(n, p)) # {}
Send(n) == \E p \in {P(x.t) : x \in slots[n]} :
  LET seq == Out(Of(n, p), Acked(n, p)) IN
  /\ Alive(n) /\ seq # <<>>
  /\ slots' = [slots EXCEPT ![n] = Sent(@, seq)]
  /\ net' = PutAll(net, n, seq, view[n])
  /\ UNCHANGED <<dat, own, txs, acks, views, view, said, done, told>>

Valid(n, t) == [o \in Objs |-> LET d == dat[n][o] IN
  IF txs[t].w[o] # 0 /\ (d.ver = txs[t].w[o] \/ ~On("val_version")) /\ d.s \in {"W", "I"}        \* C7
  THEN [d EXCEPT !.s = "V"] ELSE d]

\* the first slot of a pipeline that n drives: all have ACKed it
Done(n) == \E x \in slots[n] : LET p == P(x.t) IN
  /\ Alive(n) /\ x.st = "SENT" /\ All(x, Acked(n, p))
  /\ \A y \in Of(n, p) : Slot(y.t) >= Slot(x.t)
  /\ slots' = [slots EXCEPT ![n] = @ \ {x}]
  /\ dat' = [dat EXCEPT ![n] = Valid(n, x.t)]
  /\ net' = Put(net, n, x.fol, Msg(n, "VAL", x.t, {}, {}, view[n]))
  /\ done' = done \cup {x.t}
  /\ told' = IF txs[x.t].n = n THEN told \cup {x.t} ELSE told
  /\ UNCHANGED <<own, txs, acks, views, view, said>>

Apply(n, t, S) == [o \in Objs |-> LET d == dat[n][o] IN
  IF o \in S /\ d.s # "-" /\ (txs[t].w[o] > d.ver \/ ~On("version"))                      \* C7
  THEN [s |-> "I", ver |-> txs[t].w[o], tx |-> t, p |-> 0] ELSE d]

\* A follower that has forgotten the pipeline stores a slot that is done anew (C11)
RecvInv(l) == LET n == l[2]  m == Head(net[l]) IN
  /\ At(l) /\ m.k = "INV"
  /\ IF m.e # view[n] /\ On("inv_epoch")                                                          \* C2
     THEN net' = Pop(l) /\ UNCHANGED <<dat, slots>>
     ELSE /\ net' = Put(Pop(l), n, {l[1]}, [m EXCEPT !.k = "ACK", !.f = {}, !.o = {}, !.e = view[n]])
          /\ IF \E x \in slots[n] : x.t = m.t THEN UNCHANGED <<dat, slots>>
             ELSE /\ slots' = [slots EXCEPT ![n] = @ \cup
                       {[t |-> m.t, st |-> "-", fol |-> m.f,
                         o |-> IF On("whole") THEN m.o ELSE {o \in m.o : dat[n][o].s # "-"}]}]                \* C6
                  /\ dat' = [dat EXCEPT ![n] = Apply(n, m.t, m.o)]
  /\ UNCHANGED <<own, txs, acks, views, view, said, done, told>>

Drives(n, p) == p[1] = n \/ \E x \in Of(n, p) : x.st # "-"
RecvAck(l) == LET n == l[2]  m == Head(net[l]) IN
  /\ At(l) /\ m.k = "ACK"
  /\ LET fresh == m.e = view[n] /\ Drives(n, m.p)
         gone == m.e = view[n] /\ \A x \in Of(n, m.p) : Slot(x.t) > m.s IN
     /\ acks' = [acks EXCEPT ![n] = IF fresh THEN {a \in @ : a[1] # m.p \/ a[2] # l[1]} \cup
                                      {<<m.p, l[1], Max({m.s, Acked(n, m.p)[l[1]]})>>} ELSE @]
     /\ net' = IF gone /\ On("answered")                                                          \* C11
               THEN Put(Pop(l), n, {l[1]}, [m EXCEPT !.k = "VAL", !.e = view[n]]) ELSE Pop(l)
  /\ UNCHANGED <<dat, own, txs, slots, views, view, said, done, told>>

RECURSIVE ValidAll(_, _, _)
ValidAll(n, d, S) == IF S = {} THEN d ELSE
  LET x == CHOOSE x \in S : TRUE IN
  ValidAll(n, [o \in Objs |-> IF txs[x.t].w[o] # 0 /\ (d[o].ver = txs[x.t].w[o] \/ ~On("val_version")) /\ d[o].s = "I"
                              THEN [d[o] EXCEPT !.s = "V"] ELSE d[o]], S \ {x})
RecvVal(l) == LET n == l[2]  m == Head(net[l])
                  S == IF m.e = view[n] \/ On("val_any_epoch")                                   \* C1
                       THEN {x \in Of(n, m.p) : Slot(x.t) <= m.s /\ m.p[1] # n} ELSE {} IN
  /\ At(l) /\ m.k = "VAL"
  /\ net' = Pop(l)
  /\ slots' = [slots EXCEPT ![n] = @ \ S]
  /\ dat' = [dat EXCEPT ![n] = ValidAll(n, @, S)]
  /\ done' = done \cup {x.t : x \in S}
  /\ UNCHANGED <<own, txs, acks, views, view, said, told>>
----------------------------------------------------------------------------
(* Views *)
Drop(x) ==
  /\ Len(views) <= MaxDrop /\ x \in Newest \cap Mortal
  /\ views' = Append(views, Newest \ {x})
  /\ net' = [l \in DOMAIN net |-> IF l[2] = x THEN <<>> ELSE net[l]]
  /\ slots' = [slots EXCEPT ![x] = {}] /\ acks' = [acks EXCEPT ![x] = {}]
  /\ dat' = [dat EXCEPT ![x] = [o \in Objs |-> NoDat]]
  /\ UNCHANGED <<own, txs, view, said, done, told>>

Adopt(n) == \E e \in (view[n] + 1)..Len(views) :
  /\ Alive(n) /\ n \in views[e]
  /\ view' = [view EXCEPT ![n] = e]
  /\ acks' = [acks EXCEPT ![n] = {}]
  \* C9: the mask; C8: a follower drives what a dead coordinator left
  /\ slots' = [slots EXCEPT ![n] = {[x EXCEPT !.fol = IF On("mask") THEN (@ \cap views[e]) \ {n} ELSE @ \ {n},
        !.st = IF txs[x.t].n = n \/ (txs[x.t].n \notin views[e] /\ On("replay")) THEN "HELD" ELSE @]
          : x \in slots[n]}]
  /\ net' = [l \in DOMAIN net |-> IF l[2] = n /\ l[1] \notin views[e] /\ On("inv_epoch") THEN <<>> ELSE net[l]]
  /\ UNCHANGED <<dat, own, txs, views, said, done, told>>

FromDead(n) == {x \in slots[n] : txs[x.t].n \notin Live(n)}
SayRecovered(n) ==
  /\ Alive(n) /\ said[n] < view[n] /\ (FromDead(n) = {} \/ ~On("recovered"))                      \* C10
  /\ said' = [said EXCEPT ![n] = view[n]]
  /\ UNCHANGED <<net, dat, own, txs, slots, acks, views, view, done, told>>

\* ownership of what a dead owner had (zeus.md, R8)
TakeOver(n) == \E o \in Objs :
  /\ Alive(n) /\ own[o] \notin Live(n) /\ dat[n][o].s = "V"
  /\ \A q \in Live(n) : said[q] >= view[n]
  /\ own' = [own EXCEPT ![o] = n]
  /\ UNCHANGED <<net, dat, txs, slots, acks, views, view, said, done, told>>
----------------------------------------------------------------------------
Init ==
  /\ net = [l \in Nodes \X Nodes \X Pipes |-> <<>>]
  /\ dat = [n \in Nodes |-> [o \in Objs |-> IF n \in Members(o) \cup {1} THEN [NoDat EXCEPT !.s = "V"] ELSE NoDat]]
  /\ own = [o \in Objs |-> 1]
  /\ txs = <<>>
  /\ slots = [n \in Nodes |-> {}] /\ acks = [n \in Nodes |-> {}]
  /\ views = <<Nodes>> /\ view = [n \in Nodes |-> 1] /\ said = [n \in Nodes |-> 1]
  /\ done = {} /\ told = {}

RecvStep(n) == \E l \in DOMAIN net : l[2] = n /\ (RecvInv(l) \/ RecvAck(l) \/ RecvVal(l))
NodeStep(n) == Done(n) \/ Adopt(n) \/ SayRecovered(n)
FlowStep(n) == RecvStep(n) \/ NodeStep(n)
calm == \A n \in Nodes : ~Held(n)
Next == \E n \in Nodes : Send(n) \/ (calm /\ (FlowStep(n) \/ Commit(n) \/ TakeOver(n) \/ Drop(n)))
Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
(* Properties *)
Readable(n, o) == Alive(n) /\ dat[n][o].s = "V"
Writes(o) == {t \in done : txs[t].w[o] # 0}
Newer(o) == LET S == Writes(o) IN IF S = {} THEN 0 ELSE Max({txs[t].w[o] : t \in S})

\* whoever may read has the newest version that is done
Agree == \A n \in Nodes, o \in Objs : Readable(n, o) => dat[n][o].ver = Newer(o)
\* one version, one transaction
Unique == \A n, q \in Nodes, o \in Objs :
  Readable(n, o) /\ Readable(q, o) => dat[n][o].tx = dat[q][o].tx
\* what clients were told stays: all replicas have it, or something later
Durable == \A t \in told, o \in Objs : txs[t].w[o] # 0 =>
  \A n \in (Members(o) \cup {1}) \cap Newest : dat[n][o].ver >= txs[t].w[o]
\* a transaction that is done read only what is done, or is stored by who will finish it, or was lost with
\* all of its replicas
Known(t) == \/ t \in done
            \/ \E n \in Newest : \E x \in slots[n] : x.t = t
            \/ \E o \in Objs : txs[t].w[o] # 0 /\ (Members(o) \cup {1}) \cap Newest = {}
Closed == \A t \in done : \A d \in txs[t].deps : Known(d)
\* a transaction is seen whole: what one node reads of its objects
Whole == \A n \in Nodes, t \in done :
  (\A o \in Objs : Readable(n, o)) =>
    \A o \in Objs : txs[t].w[o] # 0 => dat[n][o].ver >= txs[t].w[o]

\* who reads what overwrote what a transaction has read also sees that transaction
Lost(t) == ~Alive(txs[t].n) /\ t \notin done /\ \A n \in Newest : \A x \in slots[n] : x.t # t
Snapshot == \A n \in Nodes : (\A o \in Objs : Readable(n, o)) =>
  \A t \in 1..Len(txs) :
    (~Lost(t) /\ \E o \in Objs : txs[t].r[o] # 0 /\ txs[t].w[o] = 0 /\ dat[n][o].ver >= txs[t].r[o]) =>
      \A o \in Objs : txs[t].w[o] # 0 => dat[n][o].ver >= txs[t].w[o]

Quiet(n) == slots[n] = {} /\ \A o \in Objs : dat[n][o].s \in {"-", "V"}
AtRest ==
  \/ \A n \in Newest : Quiet(n) /\ said[n] = view[n]
  \/ \E n \in Nodes : Held(n)
  \/ \E l \in DOMAIN net : At(l)
  \/ ENABLED (\E n \in Nodes : FlowStep(n))

(* What must be possible: each of these is to be violated. *)
NeverHeld     == \A n \in Nodes : Held(n) \/ \A x \in slots[n] : x.st # "HELD"
NeverReplayed == \A t \in done : Alive(txs[t].n) \/ t \in told
NeverLost     == \A t \in 1..Len(txs) : \/ t \in done \/ Alive(txs[t].n)
                                        \/ \E n \in Newest : \E x \in slots[n] : x.t = t
                                        \/ \E l \in DOMAIN net : \E i \in 1..Len(net[l]) : net[l][i].t = t
NeverAgain    == \A t \in 1..Len(txs) : txs[t].n = 1
=============================================================================

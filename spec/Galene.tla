------------------------------- MODULE Galene -------------------------------
(* Galene, of one key: what src/engine/galene does.  Reads, writes and RMWs  *)
(* of a cached key; how it enters and leaves the hot set; how its slot moves  *)
(* to another home; members that join and that die.  Rule numbers and names   *)
(* are those of docs/protocols/galene.md; `Off' names rules that are switched *)
(* off.  README.md says which C function each action stands for.              *)
(*                                                                            *)
(* Messages are a set: each is taken once or, from a member that is gone,     *)
(* perhaps never.  Lanes order less than one would think, for a node has      *)
(* several workers and a lane belongs to a pair of them.  So nothing is       *)
(* ordered here, but that a leave's own messages come in their order.  A      *)
(* message of an epoch that its receiver has not adopted waits.               *)
(*                                                                            *)
(* A process that dies stops at the step that drops it: what it might still   *)
(* do afterwards, among members that do not know, it might as well have done  *)
(* before.  Views are decided globally, and adopted process by process and,   *)
(* with Workers = 2, worker by worker: one steps flows of clients' updates,   *)
(* the other one everything else.                                             *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  First, Joiners,  \* the processes of the first view; those that join
  Mortal, MaxDrop, \* who may die; how many do
  Home, To,        \* the slot's home; the one that it moves to (0: it does not)
  Start,           \* "none": no such key; "home": not cached; "cached"
  Clients,         \* the processes at which clients issue updates
  MaxW, MaxR,      \* clients' writes and RMWs
  MaxHot,          \* orders to enter or to leave
  Workers,         \* of each process: 1 or 2
  Vids,            \* virtual ids of each process (K8)
  Off              \* rules that are switched off

VARIABLES
  msgs,            \* under way
  st,              \* per process: "-" no entry, "H"ome, "E"ntering, "V"alid, "I"nvalid, "W"rite,
                   \* "D"ropping, "M"oving, "L"ost
  cur,             \* per process: whose timestamp it has (an update; 0: none)
  val,             \* per process: whose value it stores
  gen,             \* per process: the generation of its cached entry; 0: not cached
  lv,              \* per process: LEAVING
  pend,            \* per process: the own pending update; 0: none
  hot,             \* per process: the flow by which the key enters, leaves, moves [k, id, to]
  view, wview,     \* per process: the epoch that the worker of messages, of updates has adopted
  views,           \* the members of each epoch
  map, maps,       \* per process, and newest: 0 the home is Home; 1 the slot moves; 2 it is To
  upd,             \* all updates ever issued
  nhot,            \* orders so far
  hist, done, lost \* history: see the properties

key  == <<st, cur, val, gen, lv, pend>>
told == <<hist, done, lost>>
seen == <<view, wview, views>>
vars == <<msgs, key, hot, seen, map, maps, upd, nhot, told>>
Procs  == First \cup Joiners
On(r)  == r \notin Off
Last(s) == s[Len(s)]
----------------------------------------------------------------------------
Ts(u) == IF u = 0 THEN <<0, 0>> ELSE upd[u].ts
Gt(a, b) == \/ Ts(a)[1] > Ts(b)[1]
            \/ Ts(a)[1] = Ts(b)[1] /\ Ts(a)[2] > Ts(b)[2]
IsRMW(u)  == u # 0 /\ upd[u].k = "r"
VidsOf(p) == (Vids * (p - 1) + 1)..(Vids * p)
Newest    == Last(views)
Alive(n)  == n \in Newest
Live(n)   == IF view[n] = 0 THEN {} ELSE views[view[n]]
LiveW(n)  == IF wview[n] = 0 THEN {} ELSE views[wview[n]]
Others(n) == Live(n) \ {n}
OthersW(n) == LiveW(n) \ {n}
InEpoch(n) == view[n] = wview[n]

HomesOf(n) == CASE map[n] = 0 -> {Home} [] map[n] = 1 -> {Home, To} [] map[n] = 2 -> {To}
HomeOf(n) == IF map[n] = 2 THEN To ELSE Home
SlotLost(n) == ~(HomesOf(n) \subseteq Live(n))                      \* D1
Decides(n)  == n = HomeOf(n) /\ ~SlotLost(n)
               /\ (map[n] # 1 \/ ~On("gate"))      \* that there is no such key
IsHome(n)   == n = HomeOf(n) /\ ~SlotLost(n)

\* b: from an update's worker to an update's worker
Msg(n, t, d, u, id, b) == [t |-> t, f |-> n, to |-> d, u |-> u, g |-> gen[n], id |-> id, b |-> b,
                           e |-> IF b THEN wview[n] ELSE view[n]]
Cast(n, t, set, u, id, b) == {Msg(n, t, d, u, id, b) : d \in set}
Here(n, m) == /\ m.to = n /\ Alive(n)
              /\ m.e <= (IF m.b THEN wview[n] ELSE view[n])
Got(n, t, id) == {m \in msgs : m.t = t /\ m.id = id /\ Here(n, m)}
From(set) == {m.f : m \in set}

NoFlow == [k |-> "-", id |-> 0, to |-> {}]
Idle(n) == hot[n].k = "-"
Asked(n) == hot[n].to \cap Live(n)                 \* the gone are not waited for
Answers(n, t) == \A p \in Asked(n) : p \in From(Got(n, t, hot[n].id))
Rest(n, t) == msgs \ {m \in msgs : m.t = t /\ m.to = n /\ m.id = hot[n].id}
Flow(n, k, id, to) == hot' = [hot EXCEPT ![n] = [k |-> k, id |-> id, to |-> to]]

Cached(n) == gen[n] # 0
Entry(n, g) == Cached(n) /\ (gen[n] = g \/ ~On("generation"))
Absent(n, s) == st' = [st EXCEPT ![n] = s] /\ cur' = [cur EXCEPT ![n] = 0]
                /\ val' = [val EXCEPT ![n] = 0]

\* u turns readable at n
Seen(u) == IF u # Last(hist) THEN Append(hist, u) ELSE hist
Valid(n, s, u) ==
  /\ st' = [st EXCEPT ![n] = s]
  /\ val' = [val EXCEPT ![n] = u]
  /\ hist' = Seen(u)
----------------------------------------------------------------------------
(* Updates *)
Used(k) == Cardinality({i \in 2..Len(upd) : upd[i].k = k /\ ~upd[i].again}) + Cardinality({m \in msgs : m.t = k})
Max(k)  == IF k = "w" THEN MaxW ELSE MaxR
New(n, k, c) == [k |-> k, again |-> FALSE, base |-> val[n], iss |-> Len(hist), to |-> OthersW(n),
                 ts |-> <<Ts(cur[n])[1] + (IF k = "w" /\ On("step") THEN 2 ELSE 1), c>>]
Kinds == {k \in {"w", "r"} : Used(k) < Max(k)}

Issue(n) == \E k \in Kinds, c \in VidsOf(n) :                        \* 3
  /\ n \in Clients /\ Alive(n) /\ pend[n] = 0 /\ Cached(n)
  /\ \/ st[n] = "V"
     \/ st[n] = "L" /\ k = "w"
  /\ ~(lv[n] /\ On("leaving"))                                       \* N4
  /\ LET u == Len(upd) + 1 IN
     /\ upd' = Append(upd, New(n, k, c))
     /\ cur' = [cur EXCEPT ![n] = u]
     /\ pend' = [pend EXCEPT ![n] = u]
     /\ st' = [st EXCEPT ![n] = "W"]
     /\ val' = IF On("aside") THEN val ELSE [val EXCEPT ![n] = u]    \* K1
     /\ msgs' = msgs \cup Cast(n, "INV", OthersW(n), u, u, TRUE)
  /\ UNCHANGED <<gen, lv, hot, seen, map, maps, nhot, told>>

\* at the home, of a key that is not cached: at once
Commit(n, k, c) == LET u == Len(upd) + 1 IN
  /\ upd' = Append(upd, New(n, k, c))
  /\ cur' = [cur EXCEPT ![n] = u]
  /\ Valid(n, IF st[n] = "E" THEN "E" ELSE "H", u)
  /\ done' = done \cup {[u |-> u, at |-> Len(hist')]}
  /\ UNCHANGED <<gen, lv, pend, lost>>

Writable(n) == \/ st[n] = "H"
               \/ st[n] = "L" /\ ~Cached(n)
               \/ st[n] = "-" /\ Decides(n)
               \/ st[n] = "E" /\ ~On("entering_waits")               \* N2
HomeUpdate(n) == \E k \in Kinds, c \in VidsOf(n) :
  /\ Alive(n) /\ Writable(n) /\ (st[n] = "L" => k = "w") /\ Commit(n, k, c)
  /\ UNCHANGED <<msgs, hot, seen, map, maps, nhot>>

Waited(n) == IF On("newcomers") THEN OthersW(n) ELSE upd[pend[n]].to \cap LiveW(n)  \* 11, K5
Acks(n) == Got(n, "ACK", pend[n])
Cleared(n) == {m \in msgs : ~(m.t \in {"ACK", "HIGHER"} /\ m.to = n)}

LastAck(n) == LET p == pend[n] IN                                    \* 7, 8
  /\ p # 0 /\ Alive(n)
  /\ \A q \in Waited(n) : q \in From(Acks(n)) \/ ~On("all_acks")
  /\ IF st[n] = "W"
     THEN /\ Valid(n, "V", p)
          /\ done' = done \cup {[u |-> p, at |-> Len(hist')]}
          /\ lost' = lost
          /\ msgs' = Cleared(n) \cup Cast(n, "UPD", OthersW(n), p, 0, TRUE)
     ELSE /\ On("loser")                                             \* K3
          /\ done' = IF IsRMW(p) THEN done ELSE done \cup {[u |-> p, at |-> Len(hist)]}
          /\ lost' = IF IsRMW(p) THEN lost \cup {p} ELSE lost
          /\ msgs' = Cleared(n)
          /\ UNCHANGED <<st, val, hist>>
  /\ pend' = [pend EXCEPT ![n] = 0]
  /\ UNCHANGED <<cur, gen, lv, hot, seen, map, maps, upd, nhot>>

\* u is higher than what n has: n waits for it
TakeTs(n, u) == /\ cur' = [cur EXCEPT ![n] = u]
                /\ st' = [st EXCEPT ![n] = "I"]

\* 9, K7: what beats it is a dead member's: the write goes above that
GoAbove(n, x) == \E c \in VidsOf(n) : LET p == pend[n]  u == Len(upd) + 1 IN
  /\ upd' = Append(upd, [upd[p] EXCEPT !.again = TRUE, !.ts = <<Ts(x)[1] + 2, c>>])
  /\ cur' = [cur EXCEPT ![n] = u]
  /\ pend' = [pend EXCEPT ![n] = u]
  /\ msgs' = Cleared(n) \cup Cast(n, "INV", OthersW(n), u, u, TRUE)
  /\ UNCHANGED <<st, lost>>

RecvHigher(n) == \E m \in msgs :                                     \* 9
  /\ m.t = "HIGHER" /\ Here(n, m) /\ pend[n] = m.id
  /\ LET p == pend[n] IN
     \/ /\ st[n] = "W" /\ ~IsRMW(p) /\ On("above") /\ Gt(m.u, cur[n])
        /\ \A q \in LiveW(n) : Ts(m.u)[2] \notin VidsOf(q)
        /\ GoAbove(n, m.u)
     \/ /\ IsRMW(p)
        /\ IF On("refused_once") THEN IF Gt(m.u, cur[n]) THEN TakeTs(n, m.u) ELSE UNCHANGED <<cur, st>>
           ELSE Gt(cur[n], p) /\ UNCHANGED <<cur, st>>               \* K7
        /\ lost' = lost \cup {p}
        /\ pend' = [pend EXCEPT ![n] = 0]
        /\ msgs' = Cleared(n)
        /\ upd' = upd
     \/ /\ ~IsRMW(p)
        /\ ~On("above") \/ ~Gt(m.u, cur[n]) \/ st[n] # "W"
           \/ \E q \in LiveW(n) : Ts(m.u)[2] \in VidsOf(q)
        /\ IF Gt(m.u, cur[n]) THEN TakeTs(n, m.u) ELSE UNCHANGED <<cur, st>>
        /\ msgs' = (msgs \ {m}) \cup {[m EXCEPT !.t = "ACK", !.u = p]}
        /\ UNCHANGED <<lost, pend, upd>>
  /\ UNCHANGED <<val, gen, lv, hot, seen, map, maps, nhot, hist, done>>

AnswerU(n, m, t, u) == (msgs \ {m}) \cup {Msg(n, t, m.f, u, m.id, m.b)}
Answer(n, m, t) == AnswerU(n, m, t, m.u)
\* answers that no flow waits for are left out
Acked(n, m, t, u) == IF pend[m.f] = m.id THEN AnswerU(n, m, t, u) ELSE msgs \ {m}

RecvInv(n) == \E m \in msgs :                                        \* 4, 5, 6
  /\ m.t = "INV" /\ Here(n, m)
  /\ IF Entry(n, m.g) /\ Gt(m.u, cur[n]) /\ st[n] \in {"V", "I", "W", "L", "E"}
     THEN TakeTs(n, m.u) /\ msgs' = Acked(n, m, "ACK", m.u)
     ELSE /\ msgs' = IF ~Entry(n, m.g) THEN Acked(n, m, "ACK", m.u)
                     ELSE IF ~On("ack_always") THEN msgs \ {m}
                     ELSE IF Gt(cur[n], m.u) /\ On(IF IsRMW(m.u) THEN "nack" ELSE "named")   \* K4
                     THEN Acked(n, m, "HIGHER", cur[n])
                     ELSE Acked(n, m, "ACK", m.u)
          /\ UNCHANGED <<cur, st>>
  /\ UNCHANGED <<val, gen, lv, pend, hot, seen, map, maps, upd, nhot, told>>

RecvUpd(n) == \E m \in msgs :                                        \* 10
  /\ m.t = "UPD" /\ Here(n, m)
  /\ msgs' = msgs \ {m}
  /\ IF st[n] \in {"I", "L"} /\ Entry(n, m.g) /\ (cur[n] = m.u \/ ~On("upd_ts"))
     THEN Valid(n, "V", m.u)
     ELSE UNCHANGED <<st, val, hist>>
  /\ UNCHANGED <<cur, gen, lv, pend, hot, seen, map, maps, upd, nhot, done, lost>>
----------------------------------------------------------------------------
(* Entering and leaving *)
Order(n) == Alive(n) /\ IsHome(n) /\ Idle(n) /\ maps # 1 /\ map[n] # 1 /\ nhot < MaxHot    \* M6
            /\ nhot' = nhot + 1

Enter(n) ==                                                          \* E1
  /\ Order(n) /\ st[n] = "H" /\ (InEpoch(n) \/ ~On("in_epoch"))
  /\ st' = [st EXCEPT ![n] = "E"]
  /\ gen' = [gen EXCEPT ![n] = nhot']
  /\ Flow(n, "enter", nhot', Others(n))
  /\ msgs' = msgs \cup {[m EXCEPT !.g = nhot'] : m \in Cast(n, "ENTER", Others(n), cur[n], nhot', FALSE)}
  /\ UNCHANGED <<cur, val, lv, pend, seen, map, maps, upd, told>>

\* What E5 is not: the same generation again, for those that lack it
EnterAgain(n) ==
  /\ ~On("leave_first") /\ Order(n) /\ st[n] = "V" /\ ~lv[n]
  /\ st' = [st EXCEPT ![n] = "E"]
  /\ Flow(n, "enter", nhot', Others(n))
  /\ msgs' = msgs \cup Cast(n, "ENTER", Others(n), cur[n], nhot', FALSE)
  /\ UNCHANGED <<cur, val, gen, lv, pend, seen, map, maps, upd, told>>

RecvEnter(n) == \E m \in msgs :                                      \* E2, E3
  /\ m.t = "ENTER" /\ Here(n, m)
  /\ msgs' = Answer(n, m, "ENTER_ACK")
  /\ IF gen[n] # m.g
     THEN /\ st' = [st EXCEPT ![n] = "I"]
          /\ cur' = [cur EXCEPT ![n] = m.u]
          /\ val' = [val EXCEPT ![n] = 0]
          /\ gen' = [gen EXCEPT ![n] = m.g]
     ELSE UNCHANGED <<st, cur, val, gen>>
  /\ UNCHANGED <<lv, pend, hot, seen, map, maps, upd, nhot, told>>

Entered(n) ==                                                        \* E4
  /\ Alive(n) /\ hot[n].k = "enter" /\ (Answers(n, "ENTER_ACK") \/ ~On("enter_acks"))  \* N1
  /\ hot' = [hot EXCEPT ![n] = NoFlow]
  /\ IF st[n] = "E"
     THEN /\ Valid(n, "V", cur[n])
          /\ msgs' = Rest(n, "ENTER_ACK") \cup Cast(n, "UPD", Others(n), cur[n], 0, FALSE)
     ELSE msgs' = Rest(n, "ENTER_ACK") /\ UNCHANGED <<st, val, hist>>
  /\ UNCHANGED <<cur, gen, lv, pend, seen, map, maps, upd, nhot, done, lost>>

LeaveNow(n, id) ==
  /\ Cached(n) /\ st[n] \in {"V", "L"} /\ pend[n] = 0 /\ ~lv[n]
  /\ st[n] = "L" => On("lost_leaves")
  /\ lv' = [lv EXCEPT ![n] = TRUE]
  /\ Flow(n, "leave", id, Others(n))
  /\ msgs' = msgs \cup Cast(n, "LEAVE", Others(n), 0, id, FALSE)
  /\ UNCHANGED <<st, cur, val, gen, pend, seen, map, maps, upd, told>>
Leave(n) == Order(n) /\ LeaveNow(n, nhot')                           \* L1, E5

CanReport(n, g) == \/ ~Entry(n, g)                                   \* L2, L3
                   \/ st[n] = "V" /\ pend[n] = 0
                   \/ st[n] = "L" /\ pend[n] = 0 /\ On("lost_leaves")  \* N8
                   \/ ~On("report_idle")                             \* N3
RecvLeave(n) == \E m \in msgs :
  /\ m.t = "LEAVE" /\ Here(n, m)
  /\ lv' = [lv EXCEPT ![n] = @ \/ Entry(n, m.g)]
  /\ msgs' = (msgs \ {m}) \cup (IF CanReport(n, m.g)
       THEN {Msg(n, "REPORT", m.f, IF Entry(n, m.g) /\ st[n] # "L" THEN cur[n] ELSE 0, m.id, FALSE)}
       ELSE {})
  /\ UNCHANGED <<st, cur, val, gen, pend, hot, seen, map, maps, upd, nhot, told>>

\* L1: again after a while.  Looked at only when it will be answered
LeaveAgain(n) == \E p \in Asked(n) :
  /\ Alive(n) /\ hot[n].k = "leave" /\ Alive(p) /\ CanReport(p, gen[n])
  /\ \A m \in msgs : ~(m.t \in {"LEAVE", "REPORT"} /\ m.id = hot[n].id /\ p \in {m.f, m.to})
  /\ msgs' = msgs \cup Cast(n, "LEAVE", {p}, 0, hot[n].id, FALSE)
  /\ UNCHANGED <<key, hot, seen, map, maps, upd, nhot, told>>

Reported(n) ==                                                       \* L4
  /\ Alive(n) /\ hot[n].k = "leave" /\ Answers(n, "REPORT") /\ pend[n] = 0
  /\ \/ st[n] = "V"
     \/ st[n] = "I" /\ ~On("home_valid")                             \* N5
     \/ /\ st[n] = "L" /\ On("lost_leaves")
        /\ \A m \in {x \in msgs : x.t = "REPORT" /\ x.to = n /\ x.id = hot[n].id} :
             Gt(cur[n], m.u) \/ ~On("lost_higher")
  /\ st' = [st EXCEPT ![n] = IF @ = "L" THEN "L" ELSE "D"]
  /\ Flow(n, "drop", hot[n].id, Others(n))
  /\ msgs' = Rest(n, "REPORT") \cup Cast(n, "DROP", Others(n), 0, hot[n].id, FALSE)
  /\ UNCHANGED <<cur, val, gen, lv, pend, seen, map, maps, upd, nhot, told>>

\* a flow's messages are one worker's, hence in order
InOrder(m) == ~\E l \in msgs : l.t = "LEAVE" /\ l.id = m.id /\ l.to = m.to

RecvDrop(n) == \E m \in msgs :                                       \* L5
  /\ m.t = "DROP" /\ Here(n, m) /\ InOrder(m)
  /\ msgs' = Answer(n, m, "DROP_ACK")
  /\ IF Entry(n, m.g)
     THEN /\ Absent(n, "-")
          /\ gen' = [gen EXCEPT ![n] = 0]
          /\ lv' = [lv EXCEPT ![n] = FALSE]
     ELSE UNCHANGED <<st, cur, val, gen, lv>>
  /\ UNCHANGED <<pend, hot, seen, map, maps, upd, nhot, told>>

Dropped(n) ==                                                        \* L6
  /\ Alive(n) /\ hot[n].k = "drop" /\ (Answers(n, "DROP_ACK") \/ ~On("drop_acks"))     \* N6
  /\ st' = [st EXCEPT ![n] = IF @ = "L" THEN "L" ELSE "H"]
  /\ gen' = [gen EXCEPT ![n] = 0]
  /\ lv' = [lv EXCEPT ![n] = FALSE]
  /\ hot' = [hot EXCEPT ![n] = NoFlow]
  /\ msgs' = Rest(n, "DROP_ACK")
  /\ UNCHANGED <<cur, val, pend, seen, map, maps, upd, nhot, told>>

----------------------------------------------------------------------------
(* Moving *)
Same == UNCHANGED <<msgs, key, hot, seen, upd, nhot, told>>
MoveSlot == /\ To # 0 /\ maps = 0 /\ {Home, To} \subseteq Newest /\ Idle(Home)  \* M6
            /\ maps' = 1 /\ map' = map /\ Same
MovedSlot == /\ maps = 1 /\ map[Home] = 1 /\ Alive(Home) /\ st[Home] = "-"
             /\ maps' = 2 /\ map' = map /\ Same
AdoptMap(n) == /\ Alive(n) /\ map[n] < maps /\ map' = [map EXCEPT ![n] = maps]  \* M2
               /\ maps' = maps /\ Same

Gate(n) == Alive(n) /\ n = Home /\ map[n] = 1 /\ ~SlotLost(n) /\ Idle(n)
Move(n) ==                                                           \* V1
  /\ Gate(n) /\ (st[n] = "H" \/ (st[n] = "L" /\ ~Cached(n)))
  /\ Flow(n, "move", IF st[n] = "L" THEN 1 ELSE 0, {To})
  /\ msgs' = msgs \cup Cast(n, "ITEM", {To}, cur[n], hot'[n].id, FALSE)
  /\ IF On("moved_last") THEN st' = [st EXCEPT ![n] = "M"] /\ UNCHANGED <<cur, val>>
     ELSE Absent(n, "-")                                             \* V6
  /\ UNCHANGED <<gen, lv, pend, seen, map, maps, upd, nhot, told>>
MoveCached(n) == Gate(n) /\ nhot' = nhot + 1 /\ LeaveNow(n, nhot')   \* V4

RecvItem(n) == \E m \in msgs :                                       \* V2
  /\ m.t = "ITEM" /\ Here(n, m)
  /\ msgs' = Answer(n, m, "ITEM_ACK")
  /\ IF st[n] = "-" THEN /\ cur' = [cur EXCEPT ![n] = m.u]
                         /\ IF m.id = 0 THEN Valid(n, "H", m.u)
                            ELSE st' = [st EXCEPT ![n] = "L"] /\ UNCHANGED <<val, hist>>
     ELSE UNCHANGED <<st, cur, val, hist>>
  /\ UNCHANGED <<gen, lv, pend, hot, seen, map, maps, upd, nhot, done, lost>>

Moved(n) ==                                                          \* V3, V7
  /\ Alive(n) /\ hot[n].k = "move" /\ Answers(n, "ITEM_ACK")
  /\ hot' = [hot EXCEPT ![n] = NoFlow]
  /\ msgs' = Rest(n, "ITEM_ACK")
  /\ Absent(n, "-")
  /\ UNCHANGED <<gen, lv, pend, seen, map, maps, upd, nhot, told>>

\* F3: what the gate has not, it sends on; k: of the update that is so forwarded
HandOn(n) == \E k \in Kinds :
  /\ Gate(n) /\ st[n] = "-"
  /\ msgs' = msgs \cup Cast(n, k, {To}, 0, Len(upd) + Cardinality(msgs), FALSE)
  /\ UNCHANGED <<key, hot, seen, map, maps, upd, nhot, told>>
RecvHanded(n) == \E m \in msgs, c \in VidsOf(n) :
  /\ m.t \in {"w", "r"} /\ Here(n, m) /\ st[n] \in {"-", "H"}
  /\ msgs' = msgs \ {m} /\ Commit(n, m.t, c)
  /\ UNCHANGED <<hot, seen, map, maps, nhot>>
----------------------------------------------------------------------------
(* Views, and what the dead leave *)
Talk(n) == {m \in msgs : (m.t = "QUERY" /\ m.f = n) \/ (m.t \in {"NOPE", "NEWER", "-"} /\ m.to = n)}

Drop(x) ==
  /\ Cardinality(Procs \ Newest) < MaxDrop + Cardinality({j \in Joiners : view[j] = 0})
  /\ x \in Newest \cap Mortal /\ Newest # {x}
  /\ views' = Append(views, Newest \ {x})
  /\ msgs' = {m \in msgs : m.to # x}
  /\ UNCHANGED <<key, hot, view, wview, map, maps, upd, nhot, told>>

Join(x) ==
  /\ x \in Joiners /\ view[x] = 0
  /\ views' = Append(views, Newest \cup {x})
  /\ view' = [view EXCEPT ![x] = Len(views')]
  /\ wview' = [wview EXCEPT ![x] = Len(views')]
  /\ map' = [map EXCEPT ![x] = maps]
  /\ UNCHANGED <<msgs, key, hot, maps, upd, nhot, told>>

\* Both workers, or one of them.  11: newcomers get the INV of the own pending update
Adopt(n) == \E e \in (IF view[n] < wview[n] THEN view[n] ELSE wview[n])..Len(views), b \in {"both", "msgs", "upds"} :
  /\ Alive(n) /\ n \in views[e]
  /\ b # "both" => Workers = 2
  /\ b = "both" => e > view[n] /\ e > wview[n]
  /\ b = "msgs" => e > view[n]
  /\ b = "upds" => e > wview[n]
  /\ LET a == b # "upds"  w == b # "msgs"
         new == IF On("newcomers") THEN views[e] \ LiveW(n) ELSE {}
         gone(m) == m.to = n /\ m.f \notin views[e] /\ (IF m.b THEN w ELSE a)
                    /\ ~(m.t = "REPORT" /\ ~On("forget_reports"))    \* L8
         old(m) == a /\ m \in Talk(n) IN
     /\ view' = IF a THEN [view EXCEPT ![n] = e] ELSE view
     /\ wview' = IF w THEN [wview EXCEPT ![n] = e] ELSE wview
     /\ msgs' = {m \in msgs : ~gone(m) /\ ~old(m)} \cup
          (IF w /\ pend[n] # 0
           THEN {[m EXCEPT !.e = e] : m \in Cast(n, "INV", new, pend[n], pend[n], TRUE)} ELSE {})
     /\ lv' = [lv EXCEPT ![n] = @ /\ ~(a /\ ~((IF On("living_home") THEN {HomeOf(n)} ELSE HomesOf(n))
                                               \subseteq views[e]))]                       \* L7
  /\ UNCHANGED <<st, cur, val, gen, pend, hot, views, map, maps, upd, nhot, told>>

Orphan(n) ==                                                         \* D3
  /\ st[n] = "I"
  /\ \/ \A p \in Live(n) : Ts(cur[n])[2] \notin VidsOf(p)
     \/ SlotLost(n) /\ On("orphan_slot")
Says(n, u, g) ==
  IF ~Entry(n, g) THEN "NOPE"
  ELSE IF cur[n] = u /\ st[n] \in {"V", "D"} THEN "UPD"
  ELSE IF cur[n] = u /\ st[n] \in {"W", "E"} THEN "-"               \* it will make the asker Valid
  ELSE IF Gt(cur[n], u) /\ On("newer") THEN "NEWER"
  ELSE "NOPE"
\* At once, by the sweep, and again when it took too long.  Looked at only when it may matter.
Query(n) ==
  /\ Alive(n) /\ st[n] = "I" /\ Talk(n) = {} /\ Others(n) # {}
  /\ LET says == {Says(p, cur[n], gen[n]) : p \in Others(n) \cap Newest} IN
     \/ Orphan(n) /\ "-" \notin says
     \/ says \cap {"UPD", "NEWER"} # {} /\ \E e \in 1..Len(views) : ~(views[e] \subseteq Newest)
  /\ msgs' = msgs \cup Cast(n, "QUERY", Others(n), cur[n], cur[n], FALSE)
  /\ UNCHANGED <<key, hot, seen, map, maps, upd, nhot, told>>

RecvQuery(n) == \E m \in msgs :
  /\ m.t = "QUERY" /\ Here(n, m)
  /\ LET t == Says(n, m.u, m.g) IN
     msgs' = AnswerU(n, m, t, IF t = "NEWER" THEN cur[n] ELSE m.u)
  /\ UNCHANGED <<key, hot, seen, map, maps, upd, nhot, told>>

RecvNewer(n) == \E m \in msgs :
  /\ m.t = "NEWER" /\ Here(n, m)
  /\ msgs' = msgs \ Talk(n)
  /\ IF Entry(n, m.g) /\ st[n] \in {"I", "L"} /\ Gt(m.u, cur[n]) THEN TakeTs(n, m.u)
     ELSE UNCHANGED <<cur, st>>
  /\ UNCHANGED <<val, gen, lv, pend, hot, seen, map, maps, upd, nhot, told>>

Nobody(n) ==                       \* all have answered, and nobody has it
  /\ Alive(n)
  /\ LET no == {m \in msgs : m.t \in {"NOPE", "-"} /\ Here(n, m)} IN
     /\ no # {} \/ (Others(n) = {} /\ Orphan(n))
     /\ \A p \in Others(n) : p \in From(no) \/ st[n] # "I"
     /\ msgs' = msgs \ no
     /\ st' = [st EXCEPT ![n] = IF /\ Orphan(n)
                                  /\ \A m \in no : m.t = "NOPE" /\ m.u = cur[n]
                               THEN "L" ELSE @]
  /\ UNCHANGED <<cur, val, gen, lv, pend, hot, seen, map, maps, upd, nhot, told>>
----------------------------------------------------------------------------
Init ==
  LET with == IF Start = "cached" THEN First ELSE IF Start = "home" THEN {Home} ELSE {}
      u == IF Start = "none" THEN 0 ELSE 1 IN
  /\ msgs = {} /\ done = {} /\ lost = {}
  /\ upd = <<[k |-> "w", again |-> FALSE, base |-> 0, iss |-> 0, to |-> {}, ts |-> <<2, Vids + 1>>]>>
  /\ st = [n \in Procs |-> IF n \notin with THEN "-" ELSE IF Start = "cached" THEN "V" ELSE "H"]
  /\ cur = [n \in Procs |-> IF n \in with THEN 1 ELSE 0]
  /\ val = cur
  /\ gen = [n \in Procs |-> IF n \in with /\ Start = "cached" THEN 1 ELSE 0]
  /\ lv = [n \in Procs |-> FALSE]
  /\ pend = [n \in Procs |-> 0]
  /\ hot = [n \in Procs |-> NoFlow]
  /\ views = <<First>>
  /\ view = [n \in Procs |-> IF n \in First THEN 1 ELSE 0]
  /\ wview = view
  /\ map = [n \in Procs |-> 0] /\ maps = 0
  /\ nhot = 1
  /\ hist = <<u>>

FlowStep(n) ==
  \/ LastAck(n) \/ RecvHigher(n) \/ RecvInv(n) \/ RecvUpd(n)
  \/ RecvEnter(n) \/ Entered(n)
  \/ RecvLeave(n) \/ LeaveAgain(n) \/ Reported(n) \/ RecvDrop(n) \/ Dropped(n)
  \/ Move(n) \/ MoveCached(n) \/ RecvItem(n) \/ Moved(n) \/ RecvHanded(n)
  \/ Adopt(n) \/ Query(n) \/ RecvQuery(n) \/ RecvNewer(n) \/ Nobody(n)
OrderStep(n) == Issue(n) \/ HomeUpdate(n) \/ HandOn(n) \/ Enter(n) \/ EnterAgain(n) \/ Leave(n)
ViewStep(n) == Drop(n) \/ Join(n) \/ AdoptMap(n)

Next == MoveSlot \/ MovedSlot \/ \E n \in Procs : FlowStep(n) \/ OrderStep(n) \/ ViewStep(n)
Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
(* Properties.  hist: the updates in the order in which they could first be    *)
(* read.  done: completed updates, and how long hist was.  A read is           *)
(* instantaneous: it returns val.                                              *)
Readable(n) == /\ Alive(n)
               /\ \/ st[n] \in {"V", "H"}
                  \/ st[n] = "-" /\ Decides(n)
                  \/ st[n] = "-" /\ \E m \in msgs : m.t \in {"w", "r"} /\ m.to = n

\* the data-value invariant of [G]: whoever may answer has the newest value that anyone could read
Agree == \A n \in Procs : Readable(n) => val[n] = Last(hist)

\* a value once replaced never comes back
Fresh == \A i, j \in 1..Len(hist) : i # j => hist[i] # hist[j]

\* an RMW read exactly the value before it
Atomic == \A i \in 2..Len(hist) : IsRMW(hist[i]) => hist[i-1] = upd[hist[i]].base

\* what was called lost is never seen
InHist(u) == \E i \in 1..Len(hist) : hist[i] = u
Honest == \A u \in lost : ~InHist(u)

\* a completed update was seen, or takes its place unseen just before a plain write that was first
\* seen between its issue and its answer (or right after), or is still ahead of everything that
\* anyone can read
Durable == \A d \in done :
  \/ InHist(d.u)
  \/ /\ ~IsRMW(d.u)
     /\ \/ \E i \in (upd[d.u].iss + 1)..(d.at + 1) : i <= Len(hist) /\ ~IsRMW(hist[i])
        \/ d.at = Len(hist) /\ \A n \in Procs : ~Readable(n)

\* galene_check
Shape == \A n \in Procs : Alive(n) =>
  /\ st[n] = "W" => pend[n] # 0 /\ pend[n] = cur[n]
  /\ st[n] \in {"-", "H", "M"} => gen[n] = 0 /\ ~lv[n]
  /\ st[n] \in {"V", "I", "W", "E", "D"} => gen[n] # 0
  /\ pend[n] # 0 => st[n] \in {"V", "I", "W", "L"}
  /\ (st[n] = "E") => hot[n].k = "enter"
  /\ (st[n] = "D") => hot[n].k = "drop"
  /\ st[n] = "-" => cur[n] = 0

\* N5: the home has acknowledged whatever was reported to it
Highest == \A m \in msgs : m.t = "REPORT" /\ Alive(m.to) /\ hot[m.to].id = m.id /\ m.g = gen[m.to]
                            => ~Gt(m.u, cur[m.to])

\* nobody writes a key that enters or is dropped (N1, N4)
Stalled == \A m \in msgs : m.t = "INV" /\ Alive(m.to) /\ Alive(m.f) /\ m.g = gen[m.to] /\ st[m.to] \in {"E", "D"}
                            => ~Gt(m.u, cur[m.to])

\* N8: the home is not lost while somebody has the value
Kept == \A n, p \in Newest : hot[n].k = "drop" /\ st[n] = "L" =>
          ~(gen[p] = gen[n] /\ st[p] = "V" /\ cur[p] = cur[n])

\* where nothing that must happen is left to do, everything has ended
AtRest ==
  \/ \A n \in Newest : /\ st[n] \in {"-", "H", "V", "L"} /\ pend[n] = 0 /\ ~lv[n] /\ Idle(n)
  \/ ENABLED (\E n \in Procs : FlowStep(n))

(* What must be possible: each of these is to be violated. *)
NeverOvertaken == \A d \in done : InHist(d.u)
NeverRefused   == lost = {}
NeverLost      == \A n \in Newest : st[n] # "L"
NeverHealed    == \A n, p \in Newest : ~(st[n] = "W" /\ st[p] = "L")
NeverRescued   == \A m \in msgs : ~(m.t = "UPD" /\ m.id # 0)
NeverSecond    == \A n \in Newest : ~(gen[n] > 2 /\ st[n] = "V" /\ n # Home)
NeverLeftLost  == \A n \in Newest : ~(st[n] = "L" /\ ~Cached(n))
NeverAbove     == \A d \in done : ~upd[d.u].again
NeverNewer     == \A m \in msgs : m.t # "NEWER"
NeverServedNew == \A n \in Joiners : st[n] # "V"
NeverHanded    == \A m \in msgs : m.t \notin {"w", "r"}
NeverMovedHot  == ~(maps = 2 /\ nhot > 1 /\ st[To] = "H")
NeverLateInv   == \A m \in msgs : ~(m.t = "INV" /\ gen[m.to] = 0)   \* 6
=============================================================================

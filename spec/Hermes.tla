------------------------------- MODULE Hermes -------------------------------
(* Hermes with RMWs, of one key: what src/engine/hermes does, with views,     *)
(* roles, joins, virtual node ids (O1) and ACKs to everybody (O3).  Rule      *)
(* numbers and names are those of docs/protocols/hermes.md; `Off' names rules *)
(* that are switched off, by the names of enum hermes_rule.  README.md says   *)
(* which C function each action stands for.                                   *)
(*                                                                            *)
(* Messages are a set that only grows: delivery may repeat, be reordered, or  *)
(* never happen (loss).  Processes, not nodes, are members: a node that comes *)
(* back is another process.  A crash needs no action of its own: a process    *)
(* that is dropped from the view may go on for ever in its old epoch, or      *)
(* stop; it only has no lease.  Views are decided globally, one change at a   *)
(* time, and adopted process by process.                                      *)
(*                                                                            *)
(* Built upon this: HermesForget (tombstones go), HermesAsync (no leases),    *)
(* HermesLive (everything ends).  Left out: several keys, pipelines (13),     *)
(* the view protocol itself (View.tla).                                       *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  N,               \* configured nodes; process p runs on node ((p - 1) % N) + 1
  First, Joiners,  \* the processes of the first view; those that join (in both: a shadow that has
                   \* just been admitted)
  MaxDrop,         \* members dropped, one a view
  Start,           \* "value", "tomb" (a Valid tombstone everywhere), "none", or "half" (a tombstone
                   \* that 1 has forgotten, 2 knows to be agreed, and the others have reported)
  Clients,         \* the processes at which clients issue updates
  MaxUpd,          \* updates in all, those tried again included
  MaxW, MaxD, MaxR,\* clients' writes, deletes, RMWs
  Timer,           \* how many replays a timer may start; Always: any number
  Cids,            \* c_ids of each process (O1)
  AckAll,          \* TRUE: O3
  Leases,          \* FALSE: HermesAsync, where a majority confirms what is answered
  Off              \* rules that are switched off

VARIABLES
  msgs,            \* every message sent and not yet dead
  cur,             \* per process: the stored update (an id; 0: no entry)
  st,              \* per process: "V"alid "I"nvalid "W"rite "T"rans "R"eplay
  pend,            \* per process: the pending local update; 0: none
  mark,            \* per process: "-"; its Valid tombstone is "R"eported, "A"greed
  last,            \* per process: who sent what it stores (only with "cid_trigger" off)
  view,            \* per process: the epoch that it has adopted; 0: not started
  views,           \* the members of each epoch [live, oper]
  copied,          \* shadows that have a chunk with this key
  upd,             \* all updates ever issued; what an INV of it carries
  ntim,            \* replays by timer so far
  hist, done, lost,\* history: see the properties
  over             \* only without leases: overtaken writes, not answered yet

keys == <<cur, st, pend, mark, last>>                 \* what a step of a key changes
told == <<hist, done, lost, over>>
vars == <<msgs, keys, view, views, copied, upd, ntim, told>>
Always == 9
Procs  == First \cup Joiners
On(r)  == r \notin Off
Last(s) == s[Len(s)]
----------------------------------------------------------------------------
(* Updates and timestamps (8).  Two lives of a key may issue the same ts.     *)
Ts(u) == IF u = 0 THEN <<0, 0>> ELSE upd[u].ts
Gt(a, b) == \/ Ts(a)[1] > Ts(b)[1]
            \/ Ts(a)[1] = Ts(b)[1] /\ Ts(a)[2] > Ts(b)[2]
Eq(a, b) == Ts(a) = Ts(b)
IsRMW(u)  == u # 0 /\ upd[u].k = "r"
IsTomb(u) == u # 0 /\ upd[u].k = "d"
IsNil(u)  == u = 0 \/ IsTomb(u)                  \* what a client sees as absent
IsFirst(u) == u # 0 /\ On("first") /\ upd[u].first                 \* 12
Special(u) == IsRMW(u) \/ IsFirst(u)
Same(a, b) == a = b \/ (IsNil(a) /\ IsNil(b))

(* Members and c_ids (O1, 8).  A c_id belongs to one process for ever; with   *)
(* rule "cid" off it is the node's.                                           *)
Node(p)   == ((p - 1) % N) + 1
CidsOf(p) == IF On("cid") THEN (Cids * (p - 1) + 1)..(Cids * p) ELSE {Node(p)}
Live(n)   == IF view[n] = 0 THEN {} ELSE views[view[n]].live       \* that n knows
Others(n) == Live(n) \ {n}
Oper(n)   == view[n] # 0 /\ n \in views[view[n]].oper
Shadow(n) == n \in Live(n) /\ ~Oper(n)
Newest    == Last(views)
Leased(n) == n \in Newest.oper /\ Oper(n)        \* dropped: the lease has run out
Orphan(n) ==                                     \* nobody will finish what n holds (6a)
  IF On("cid_trigger") THEN \A p \in Live(n) : Ts(cur[n])[2] \notin CidsOf(p)
  ELSE last[n] \notin Live(n)

Sent(n, f) == IF On("cid_trigger") THEN last ELSE [last EXCEPT ![n] = f]

Inv(n, u, e, v) == [t |-> "INV", u |-> u, e |-> e, f |-> n, to |-> 0, v |-> v]
\* O3 covers plain writes that are no first updates, and no replays (7)
AskOf(u) == IF AckAll /\ (~Special(u) \/ ~On("o3_writes")) THEN "all" ELSE "ask"
Asks(m)  == m.v \in {"ask", "all"}
Answer(n, u, d) ==                 \* to d only, with the answerer's state (11)
  [t |-> "INV", u |-> u, e |-> view[n], f |-> n, to |-> d,
   v |-> IF On("answer_valid") /\ st[n] = "V" THEN "V" ELSE "I"]
Ack(n, u, d)  == [t |-> "ACK", u |-> u, e |-> view[n], f |-> n, to |-> d, v |-> "-"]
AckEach(n, u) == [t |-> "ACK_ALL", u |-> u, e |-> view[n], f |-> n, to |-> 0, v |-> "-"]
Val(n, u)     == [t |-> "VAL", u |-> u, f |-> n, to |-> 0, v |-> "-",    \* its epoch: for nobody
                  e |-> IF On("val_any_epoch") THEN 0 ELSE view[n]]

Epochs(n, rule) == IF On(rule) /\ On("epoch") THEN {view[n]} ELSE 1..view[n]
AsNode(p) == {q \in Procs : Node(q) = Node(p)}   \* sets of ACKs are of nodes

(* ACKs are a set, for one ts, in n's epoch (1, 5).  They are read off the    *)
(* messages: "all ACKs have come" = "they were sent and are delivered now".   *)
Acked(n, u) == LET have == {p \in Others(n) :
                   \E e \in Epochs(n, "ack_reset"), q \in AsNode(p) :
                     [t |-> "ACK", u |-> u, e |-> e, f |-> q, to |-> n, v |-> "-"] \in msgs} IN
  IF On("all_acks") THEN have = Others(n) ELSE 2 * (Cardinality(have) + 1) > N

(* Under O3 a follower gathers them itself; an INV is its sender's ACK (7).   *)
AllSeen(n) == \A p \in Others(n) : \E e \in Epochs(n, "o3_epoch"), q \in AsNode(p) :
  \/ [t |-> "ACK_ALL", u |-> cur[n], e |-> e, f |-> q, to |-> 0, v |-> "-"] \in msgs
  \/ Inv(q, cur[n], e, "all") \in msgs

(* The key turns Valid at u.  A pending update at u is done; an older pending *)
(* write is done as well (4, 10); an RMW or first update below u is lost (6b).*)
Serves(n) == IF Leases THEN Leased(n) ELSE Oper(n)
Seen(n, u) == IF Leased(n) /\ u # Last(hist) THEN Append(hist, u) ELSE hist
Done(n, u, h) == IF Serves(n) THEN done \cup {[u |-> u, at |-> Len(h)]} ELSE done
TurnValid(n, u) ==
  LET p == pend[n]  own == p # 0 /\ p = u  plain == p # 0 /\ ~own /\ ~Special(p) IN
  /\ st' = [st EXCEPT ![n] = "V"]
  /\ hist' = Seen(n, u)
  /\ pend' = [pend EXCEPT ![n] = 0]
  /\ done' = IF own \/ (plain /\ Leases) THEN Done(n, p, Seen(n, u)) ELSE done
  /\ over' = IF plain /\ ~Leases THEN over \cup {[n |-> n, u |-> p]} ELSE over
  /\ lost' = IF p # 0 /\ ~own /\ ~plain /\ Serves(n) THEN lost \cup {p} ELSE lost
----------------------------------------------------------------------------
(* Coordinator *)
New(n, k, prev) == \E c \in CidsOf(n) :          \* C_TS, C_INV; a write adds 2, an RMW 1
  LET u == Len(upd) + 1
      f == cur[n] = 0
      s == IF k # "r" /\ On("step") THEN 2 ELSE 1 IN
  /\ upd' = Append(upd, [k |-> k, first |-> f, base |-> cur[n], prev |-> prev,
                         iss |-> Len(hist), ts |-> <<Ts(cur[n])[1] + s, c>>])
  /\ cur'  = [cur EXCEPT ![n] = u]
  /\ last' = Sent(n, n)
  /\ mark' = [mark EXCEPT ![n] = "-"]
  /\ st'   = [st EXCEPT ![n] = "W"]
  /\ pend' = [pend EXCEPT ![n] = u]
  /\ msgs' = msgs \cup {Inv(n, u, view[n],
       IF AckAll /\ ((k # "r" /\ ~(f /\ On("first"))) \/ ~On("o3_writes")) THEN "all" ELSE "ask")}
  /\ UNCHANGED <<view, views, copied, ntim, told>>

Used(k) == Cardinality({i \in 2..Len(upd) : upd[i].k = k /\ upd[i].prev = 0})
Max(k)  == CASE k = "w" -> MaxW [] k = "d" -> MaxD [] k = "r" -> MaxR
MayIssue(n) == Serves(n) /\ st[n] = "V" /\ Len(upd) <= MaxUpd

Issue(n) == \E k \in {"w", "d", "r"} :
  /\ n \in Clients /\ MayIssue(n) /\ Used(k) < Max(k)
  /\ k = "d" => ~IsNil(cur[n])
  /\ New(n, k, 0)

Retry(n) == \E u \in lost :        \* 12: the node issues a lost update again, as a new one
  /\ MayIssue(n) /\ Ts(u)[2] \in CidsOf(n)
  /\ \A i \in 1..Len(upd) : upd[i].prev # u
  /\ New(n, upd[u].k, u)

Tell(n, u) ==                      \* C_VAL; under O3 only if the INV was sent more than once
  \/ msgs' = msgs \cup {Val(n, u)}
  \/ /\ AckAll /\ AskOf(u) = "all" /\ msgs' = msgs
     /\ \A m \in msgs : m.t = "INV" /\ m.u = u /\ m.f = n => m.e = view[n]

LastAck(n) ==                      \* C_ACK, for the pending update
  LET p == pend[n] IN
  /\ p # 0 /\ Acked(n, p)
  /\ IF st[n] = "W"
     THEN TurnValid(n, p) /\ Tell(n, p)
     ELSE /\ ~Special(p)                         \* 6b: ACKs never complete a lost update
          /\ pend' = [pend EXCEPT ![n] = 0]      \* overtaken: no VAL (O2)
          /\ st' = [st EXCEPT ![n] = IF @ = "T" THEN "I" ELSE @]
          /\ done' = Done(n, p, hist)
          /\ UNCHANGED <<hist, lost, over, msgs>>
  /\ UNCHANGED <<cur, mark, last, view, views, copied, upd, ntim>>
----------------------------------------------------------------------------
(* Followers *)
\* 12: a first update proves that its sender forgot the tombstone that n has reported
Forgettable(n, u) == /\ IsFirst(u) /\ st[n] = "V" /\ IsTomb(cur[n]) /\ mark[n] # "-"
Local(n, u) == IF Forgettable(n, u) THEN 0 ELSE cur[n]

Below(n) == IF pend[n] # 0 /\ ~Special(pend[n]) THEN "T" ELSE "I"

Take(n, u, f) ==                   \* ts, value and flags together (1)
  /\ cur'  = [cur EXCEPT ![n] = u]
  /\ last' = Sent(n, f)

TurnInvalid(n) ==
  LET given == st[n] = "W" /\ Special(pend[n]) /\ ~On("lost_valid") IN       \* 6b
  /\ st' = [st EXCEPT ![n] = Below(n)]
  /\ lost' = IF given /\ Serves(n) THEN lost \cup {pend[n]} ELSE lost
  /\ pend' = [pend EXCEPT ![n] = IF given THEN 0 ELSE @]
  /\ UNCHANGED <<hist, done, over>>

\* F_ACK; under O3 to everybody, but not from Write
Acks(n, m) == {Ack(n, m.u, m.f)} \cup (IF m.v = "all" THEN {AckEach(n, m.u)} ELSE {})

RecvInv(n) == \E m \in msgs :      \* F_INV
  /\ m.t = "INV" /\ m.f # n /\ m.to \in {0, n}
  /\ view[n] # 0 /\ (m.e = view[n] \/ ~On("epoch"))                  \* 2
  /\ LET u == m.u  c == Local(n, u) IN
     \/ /\ Gt(u, c)
        /\ Take(n, u, m.f)
        /\ mark' = [mark EXCEPT ![n] = "-"]
        /\ IF m.v = "V" THEN TurnValid(n, u) /\ UNCHANGED msgs       \* 11
           ELSE /\ TurnInvalid(n)
                /\ msgs' = msgs \cup (IF Asks(m) THEN Acks(n, m) ELSE {})
     \/ /\ Eq(u, c)
        /\ IF m.v = "V" THEN st[n] # "V" /\ TurnValid(n, c) /\ UNCHANGED msgs
           ELSE /\ Asks(m)
                /\ ~(On("no_own_ack") /\ st[n] = "W" /\ Special(c))  \* 6c
                /\ msgs' = msgs \cup (IF st[n] = "W" THEN {Ack(n, u, m.f)} ELSE Acks(n, m))
                /\ UNCHANGED <<st, pend, told>>
        /\ UNCHANGED <<cur, last, mark>>
     \/ /\ Gt(c, u) /\ Asks(m)                                       \* 4: never acknowledged
        /\ \/ /\ ~On("ack_same") /\ ~Special(u) /\ msgs' = msgs \cup {Ack(n, u, m.f)}
           \/ /\ On("ack_same") \/ Special(u)
              /\ st[n] \notin {"W", "R"} /\ msgs' = msgs \cup {Answer(n, c, m.f)}
        /\ UNCHANGED <<keys, told>>
  /\ UNCHANGED <<view, views, copied, upd, ntim>>

RecvAckAll(n) ==                   \* O3: with this message, or with the INV, all ACKs are seen
  /\ AckAll /\ st[n] \in {"I", "T", "R"} /\ AskOf(cur[n]) = "all"    \* 7
  /\ \E m \in msgs : /\ m.t = "INV" /\ m.u = cur[n] /\ m.v = "all" /\ m.f # n
                     /\ m.e \in Epochs(n, "o3_epoch")
  /\ AllSeen(n)
  /\ TurnValid(n, cur[n])
  /\ UNCHANGED <<msgs, cur, mark, last, view, views, copied, upd, ntim>>

RecvVal(n) ==                      \* F_VAL; 2: in any epoch, but from a member; 3, 4: in any state
  /\ st[n] # "V"
  /\ \E m \in msgs : /\ m.t = "VAL" /\ m.f # n
                     /\ Eq(m.u, cur[n]) \/ ~On("val_ts")
                     /\ m.f \in Live(n) \/ ~On("val_member")
                     /\ m.e = view[n] \/ On("val_any_epoch")
  /\ IF st[n] # "W" \/ On("write_val") THEN TurnValid(n, cur[n])
     ELSE st' = [st EXCEPT ![n] = "V"] /\ UNCHANGED <<pend, told>>
  /\ UNCHANGED <<msgs, cur, mark, last, view, views, copied, upd, ntim>>

Replay(n) ==                       \* 6a, 15; 4: in Trans too.  The sweep replays orphans, and
                                   \* tombstones; a shadow has neither timers nor a sweep.
  /\ st[n] = "I" \/ (st[n] = "T" /\ On("trans_replay"))
  /\ Oper(n) /\ On("replay")
  /\ LET swept == Orphan(n) \/ IsTomb(cur[n]) IN
     /\ swept \/ Timer = Always \/ ntim < Timer
     /\ ntim' = IF swept \/ Timer = Always THEN ntim ELSE ntim + 1
  /\ st' = [st EXCEPT ![n] = "R"]
  /\ msgs' = msgs \cup {Inv(n, cur[n], view[n], "ask")}
  /\ UNCHANGED <<cur, pend, mark, last, view, views, copied, upd, told>>

ReplayDone(n) ==
  /\ st[n] = "R" /\ Acked(n, cur[n])
  /\ TurnValid(n, cur[n])
  /\ msgs' = msgs \cup {Val(n, cur[n])}
  /\ UNCHANGED <<cur, mark, last, view, views, copied, upd, ntim>>
----------------------------------------------------------------------------
(* Views: roles, drops, joins *)
Again(n, e) ==                     \* what is sent again, in epoch e: no overtaken update (5)
  (IF pend[n] # 0 /\ (st[n] = "W" \/ ~On("no_stale"))
   THEN {Inv(n, pend[n], e, AskOf(pend[n]))} ELSE {})
  \cup (IF st[n] = "R" THEN {Inv(n, cur[n], e, "ask")} ELSE {})

Decide(live, oper) ==
  /\ views' = Append(views, [live |-> live, oper |-> oper])
  /\ UNCHANGED <<msgs, keys, view, copied, upd, ntim, told>>

Ever == UNION {views[e].live : e \in 1..Len(views)}
Drop(x) ==                         \* the view service decides; x's lease is over
  /\ Cardinality(Ever \ Newest.live) < MaxDrop
  /\ x \in Newest.live /\ Newest.oper # {x}
  /\ Decide(Newest.live \ {x}, Newest.oper \ {x})

Join(x) ==                         \* a new process on a node without a member: as a shadow
  /\ x \in Joiners \ Ever /\ \A p \in Newest.live : Node(p) # Node(x)
  /\ Decide(Newest.live \cup {x}, Newest.oper)

Promote(x) ==
  /\ x \in copied /\ x \in Newest.live \ Newest.oper
  /\ Decide(Newest.live, Newest.oper \cup {x})

Adopt(n) == \E e \in (view[n] + 1)..Len(views) :
  /\ n \in views[e].live
  /\ view' = [view EXCEPT ![n] = e]
  /\ msgs' = msgs \cup Again(n, e)                                   \* 5
  /\ hist' = IF n \in views[e].oper \cap Newest.oper /\ st[n] = "V" /\ ~Same(cur[n], Last(hist))
             THEN Append(hist, cur[n]) ELSE hist                     \* readable from now on
  /\ UNCHANGED <<keys, views, copied, upd, ntim, done, lost, over>>

Donate(n) == \E x \in Others(n) :  \* 9: in the joiner's epoch only; the state travels along
  /\ Oper(n) /\ Shadow(x) /\ x \notin copied
  /\ view[x] = view[n] \/ (~On("epoch") /\ view[x] > view[n])
  /\ LET v == IF st[n] # "V" THEN "I" ELSE IF mark[n] # "-" THEN "R" ELSE "V"
         m == [t |-> "ITEM", u |-> cur[n], e |-> view[n], f |-> n, to |-> x, v |-> v] IN
     m \notin msgs /\ msgs' = msgs \cup {m}
  /\ UNCHANGED <<keys, view, views, copied, upd, ntim, told>>

RecvItem(x) == Shadow(x) /\ \E m \in msgs :
  /\ m.t = "ITEM" /\ m.to = x /\ (m.e = view[x] \/ ~On("epoch"))
  /\ copied' = copied \cup {x}
  /\ LET newer == IF m.v = "R" /\ On("chunk_reported") THEN cur[x] = 0           \* 12
                  ELSE Gt(m.u, Local(x, m.u)) IN
     IF m.u # 0 /\ (newer \/ ~On("chunk_higher"))                                \* 9
     THEN /\ Take(x, m.u, m.f)
          /\ mark' = [mark EXCEPT ![x] = IF m.v = "R" THEN "R" ELSE "-"]
          /\ IF m.v # "I" \/ ~On("chunk_state") THEN TurnValid(x, m.u) ELSE TurnInvalid(x)
     ELSE UNCHANGED <<keys, told>>
  /\ UNCHANGED <<msgs, view, views, upd, ntim>>
----------------------------------------------------------------------------
Init ==
  /\ msgs = {} /\ ntim = 0 /\ done = {} /\ lost = {} /\ over = {} /\ copied = {}
  /\ upd = <<[k |-> IF Start \in {"tomb", "half"} THEN "d" ELSE "w", first |-> FALSE, base |-> 0,
              prev |-> 0, iss |-> 0, ts |-> <<4, 1>>]>>
  /\ cur  = [n \in Procs |-> IF \/ Start = "none" \/ n \in Joiners
                                \/ (Start = "half" /\ n = 1) THEN 0 ELSE 1]
  /\ hist = <<IF Start = "none" THEN 0 ELSE 1>>
  /\ st   = [n \in Procs |-> "V"] /\ pend = [n \in Procs |-> 0]
  /\ mark = [n \in Procs |-> IF Start # "half" \/ cur[n] = 0 THEN "-"
                              ELSE IF n = 2 THEN "A" ELSE "R"]
  /\ last = [n \in Procs |-> 0]
  /\ view = [n \in Procs |-> IF n \in First THEN 1 ELSE 0]
  /\ views = <<[live |-> First, oper |-> First \ Joiners]>>

KeyStep(n) ==
  \/ Issue(n) \/ Retry(n) \/ LastAck(n)
  \/ RecvInv(n) \/ RecvAckAll(n) \/ RecvVal(n)
  \/ Replay(n) \/ ReplayDone(n)
  \/ Adopt(n) \/ Donate(n) \/ RecvItem(n)
ViewStep(n) == Drop(n) \/ Join(n) \/ Promote(n)

Next == \E n \in Procs : KeyStep(n) \/ ViewStep(n)
Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
(* Properties.  hist: the updates in the order in which they first turned      *)
(* Valid at a process with a lease, that is, could be read.  done: completed   *)
(* updates, and how long hist was.  A read is instantaneous: it returns cur.   *)

\* every process that may serve holds the newest value that anyone could read
Agree == \A n \in Procs : Leased(n) /\ st[n] = "V" => Same(cur[n], Last(hist))

\* a value once replaced never comes back
Fresh == \A i, j \in 1..Len(hist) : i # j => hist[i] # hist[j]

\* an RMW read exactly the value before it
Atomic == \A i \in 2..Len(hist) : IsRMW(hist[i]) => Same(hist[i-1], upd[hist[i]].base)

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
        \/ d.at = Len(hist) /\ \A n \in Procs : Leased(n) => st[n] # "V"

\* I2 of the code (hermes_check)
Shape == \A n \in Procs :
  /\ st[n] = "V" => pend[n] = 0
  /\ st[n] = "W" => pend[n] # 0 /\ pend[n] = cur[n]
  /\ st[n] = "T" => pend[n] # 0 /\ pend[n] # cur[n] /\ ~Special(pend[n])
  /\ st[n] = "I" => pend[n] = 0 \/ (pend[n] # cur[n] /\ Special(pend[n]))
  /\ cur[n] = 0 => st[n] = "V"
  /\ mark[n] # "-" => st[n] = "V" /\ IsTomb(cur[n])

(* What must be possible: each of these is to be violated. *)
NeverServedAgain == \A p \in Joiners : Leased(p) /\ st[p] = "V" => Len(hist) = 1
NeverReplayedFromTrans == \A n \in Procs : ~(st[n] = "R" /\ pend[n] # 0 /\ ~Special(pend[n]))
NeverCopiedInvalid == \A m \in msgs : m.t = "ITEM" => m.v # "I"
NeverByAcksOfAll == \A n \in Procs : ~(AckAll /\ st[n] = "V" /\ cur[n] > 1 /\
  (\A m \in msgs : m.t # "VAL") /\ \A c \in CidsOf(n) : Ts(cur[n])[2] # c)
NeverLostFirst == \A u \in lost : ~IsFirst(u)
=============================================================================

------------------------------ MODULE ZeusOwn ------------------------------
(* Ownership of one object in Zeus: what src/engine/zeus/own*.c does, with    *)
(* the data path: versions, commits at the owner, readers.  Rule names are    *)
(* those of docs/protocols/zeus.md; `Off' names rules that are switched off.  *)
(*                                                                            *)
(* Messages of ownership travel in one lane between each two nodes, those of  *)
(* commits in another one: in order, each once.  A message of an epoch that   *)
(* its receiver has not adopted waits; what a dead member has sent arrives    *)
(* until its receiver adopts a view without it.  A process that dies stops at *)
(* the step that drops it.  One commit at a time: pipelines are               *)
(* ZeusCommit.tla's.                                                          *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Nodes, Dir,        \* Dir: the object's directory
  Owner0, Readers0,  \* at the start; Owner0 = 0: nobody has heard of the object
  Drive,             \* who of them is asked to drive
  Owners, Readers,   \* who wants to be owner, reader; once each
  Targets,           \* whom its owner trims; once each
  Degrees,           \* who, as owner, changes its degree; once each
  Several,           \* two replicas are needed to write while two nodes live (R15)
  Writers,           \* who commits
  MaxCommit,
  MaxRetry,          \* of one request
  Back,              \* who comes back, as another process
  Mortal, MaxDrop,   \* who may die; how many do
  Off                \* rules that are switched off

VARIABLES
  net, cnet,         \* lanes of ownership, of commits
  ent,               \* per node: the entry [ts, v]; ts 0: none
  pen,               \* per node: the arbitration that it takes part in
  own,               \* per node: the own request
  dat,               \* per node: the data [s, ver, val]; s: "-" none, "V", "W", "I"
  com,               \* per node: the own commit under way
  sto,               \* per node: stored R-INVs
  views,             \* [live, adm] of each epoch
  view,              \* per node: the epoch that it has adopted
  know,              \* per node: 0, 1 all have RECOVERED it, 2 all have SETTLED it
  said,              \* per node: <<RECOVERED, SETTLED>>: the last epochs that it said it of
  asked,             \* requests that were made
  ncom, hist, done,  \* history: see the properties
  won                \* <<requester, seq, ts>> of what was applied

vars == <<net, cnet, ent, pen, own, dat, com, sto, views, view, know, said, asked, ncom, hist, done, won>>
lanes == <<net, cnet>>
commits == <<com, sto>>
seen == <<views, view, know, said>>
told == <<ncom, hist, done>>
On(r) == r \notin Off
Last(s) == s[Len(s)]
Range(s) == {s[i] : i \in 1..Len(s)}
Max(a, b) == IF a > b THEN a ELSE b
----------------------------------------------------------------------------
NoDat == [s |-> "-", ver |-> 0, val |-> <<>>]
\* f: created, and never had a reader (R17); g: the degree
NoVec == [o |-> 0, r |-> {}, e |-> 0, f |-> FALSE, g |-> 0]
NoReq == [t |-> "-", r |-> 0, s |-> 0, k |-> 0, x |-> 0, hd |-> FALSE]
NoEnt == [ts |-> 0, v |-> NoVec]
NoPen == [ts |-> 0, v |-> NoVec, q |-> NoReq, drv |-> FALSE, owes |-> 0, orep |-> FALSE,
          rep |-> 0, acked |-> {}, best |-> NoDat, pre |-> FALSE, beat |-> {}]
NoOwn == [st |-> "-", q |-> NoReq, ts |-> 0, v |-> NoVec, acked |-> {}, best |-> NoDat, bo |-> FALSE]
NoCom == [ver |-> 0, val |-> <<>>, fol |-> {}, acked |-> {}]

\* <<version, node>> as a number
Ts(ver, n) == 8 * ver + n
Ver(ts) == ts \div 8

Newest == views[Len(views)]
Alive(n) == n \in Newest.live
Live(n) == views[view[n]].live
Counts(x, v, e) == x \in views[e].live /\ (views[e].adm[x] <= v.e \/ ~On("mask"))
Masked(v, e) == [o |-> IF Counts(v.o, v, e) THEN v.o ELSE 0,
                 r |-> {x \in v.r : Counts(x, v, e)}, e |-> e, f |-> v.f, g |-> v.g]
Drop0(S) == S \ {0}

\* nobody has the object any more
Nobody(v) == v.o = 0 /\ v.r = {}
\* nobody had it, or who created it is dead and was alone
Creates(v, e) == (v.o = 0 \/ v.f) /\ v.r = {} /\ Nobody(Masked(v, e))
Lost(v, e) == ~Creates(v, e) /\ Nobody(Masked(v, e))
Moves(q) == q.t \in {"OWNER", "READER"}
\* the vector after request q, as a member of epoch e derives it
After(q, v, e) ==
  LET w == Masked(v, e)
      rl == q.r \in views[e].live
      fresh == IF Creates(v, e) THEN Several /\ On("fresh") ELSE w.f                           \* R17
      u == CASE Moves(q) /\ ~q.hd /\ Lost(v, e) /\ On("lost") -> [w EXCEPT !.o = 0, !.r = {}]
             [] q.t = "OWNER"  -> IF rl THEN [w EXCEPT !.o = q.r, !.r = Drop0(@ \cup {w.o}) \ {q.r}]
                                  ELSE [w EXCEPT !.o = 0, !.r = Drop0(@ \cup {w.o})]
             [] q.t = "READER" -> IF rl /\ q.r # w.o THEN [w EXCEPT !.r = @ \cup {q.r}]
                                  ELSE w
             [] q.t = "TRIM"   -> [w EXCEPT !.r = @ \ {q.x}]
             [] q.t = "DEGREE" -> [w EXCEPT !.g = 1] IN
  [u EXCEPT !.f = fresh /\ u.r = {}]

\* who is asked
Arbiters(q, v, e) ==
  LET w == Masked(v, e) IN
  Drop0((Dir \cap views[e].live) \cup {w.o}
        \cup (IF w.o = 0 /\ Moves(q) /\ ~q.hd THEN w.r ELSE {})
        \cup (IF q.t = "TRIM" /\ Counts(q.x, v, e) THEN {q.x} ELSE {}))
\* who must have answered
Needed(q, v, e) ==
  LET w == Masked(v, e) IN
  Drop0((IF On("all_acks") THEN Dir \cap views[e].live ELSE {})
        \cup (IF On("owner_ack") THEN {w.o} ELSE {})
        \cup (IF q.t = "TRIM" /\ Counts(q.x, v, e) /\ On("trim_ack") THEN {q.x} ELSE {}))
Enough(q, v, e, acked, best) ==
  /\ Needed(q, v, e) \subseteq acked
  /\ acked # {}
  /\ (Masked(v, e).o = 0 /\ Moves(q) /\ ~q.hd /\ Masked(v, e).r # {}) => best.s # "-"

Put(nt, n, S, m) == [l \in DOMAIN nt |-> IF l[1] = n /\ l[2] \in S THEN Append(nt[l], m) ELSE nt[l]]
Pop(nt, a, n) == [nt EXCEPT ![<<a, n>>] = Tail(@)]
\* what a node sends itself it takes at once
Calm == \A n \in Nodes : net[<<n, n>>] = <<>>
Up(n) == Alive(n) /\ Calm
\* the first message of a lane, if n may take it
At(nt, a, n) == /\ nt[<<a, n>>] # <<>> /\ Head(nt[<<a, n>>]).e <= view[n] /\ Alive(n)
                /\ Calm \/ (net[<<n, n>>] # <<>> /\ a = n)
M(n, k, ts, v, q) == [k |-> k, ts |-> ts, v |-> v, q |-> q, e |-> view[n], rep |-> FALSE, o |-> FALSE,
                      d |-> NoDat]
----------------------------------------------------------------------------
(* Requests *)
IsOwner(n) == ent[n].ts # 0 /\ Masked(ent[n].v, view[n]).o = n
Settled(n) == know[n] = 2 \/ ~On("once")
Req(n, q) == M(n, "REQ", 0, NoVec, q)
Drivers(n) == Drive \cap Live(n)

Wants == {<<n, "OWNER", 0>> : n \in Owners} \cup {<<n, "READER", 0>> : n \in Readers}
         \cup {<<n, "TRIM", x>> : n \in Nodes, x \in Targets} \cup {<<n, "DEGREE", 0>> : n \in Degrees}
Wanted == {w \in Wants : ~\E a \in asked : w = a \/ (w[3] # 0 /\ w[3] = a[3])}
Want(n) == \E w \in Wanted, d \in Dir :
  /\ w[1] = n /\ Up(n) /\ own[n].st = "-" /\ d \in Drivers(n)
  /\ CASE w[2] = "OWNER" -> ~IsOwner(n)
       [] w[2] = "READER" -> dat[n].s = "-"
       [] w[2] = "TRIM" -> IsOwner(n) /\ w[3] \in Masked(ent[n].v, view[n]).r /\ pen[n].ts = 0
       [] w[2] = "DEGREE" -> IsOwner(n)
  /\ asked' = asked \cup {w}
  /\ LET q == [t |-> w[2], r |-> n, s |-> Cardinality(asked) + 1, k |-> 0, x |-> w[3], hd |-> dat[n].s # "-"] IN
     IF Settled(n)
     THEN /\ own' = [own EXCEPT ![n] = [NoOwn EXCEPT !.st = "R", !.q = q]]
          /\ net' = Put(net, n, {d}, Req(n, q))
     ELSE /\ own' = [own EXCEPT ![n] = [NoOwn EXCEPT !.st = "S", !.q = q]]
          /\ net' = net
  /\ UNCHANGED <<cnet, ent, pen, dat, commits, seen, told, won>>

\* after a NACK, or when all have SETTLED
Again(n) == \E d \in Drivers(n) :
  /\ Up(n) /\ own[n].st \in {"B", "S"} /\ Settled(n) /\ own[n].q.k < MaxRetry
  /\ LET q == [own[n].q EXCEPT !.k = @ + 1, !.hd = dat[n].s # "-"] IN
     /\ own' = [own EXCEPT ![n] = [NoOwn EXCEPT !.st = "R", !.q = q]]
     /\ net' = Put(net, n, {d}, Req(n, q))
  /\ UNCHANGED <<cnet, ent, pen, dat, commits, seen, asked, told, won>>

Nack(n, q, why) == [M(n, "NACK", 0, NoVec, q) EXCEPT !.v.e = why]
BUSY == 1
MOOT == 2
LOST == 3
NONE == 4
Inv(n, p) == [M(n, "INV", p.ts, p.v, p.q) EXCEPT !.rep = p.rep > 0 \/ p.pre]

\* what the driver decides about a request is over
Moot(q, w) == CASE q.t = "OWNER" -> w.o = q.r
                [] q.t = "READER" -> q.r \in w.r \cup {w.o}
                [] q.t = "TRIM" -> q.r # w.o \/ q.x \notin w.r
                [] q.t = "DEGREE" -> q.r # w.o \/ w.g = 1

MayDrive(n) == n \in Dir /\ Settled(n)
\* p: what it drives from now on
Drives(n, nt, ts, v, q) ==
  LET w == Masked(v, view[n])   \* a retry's v is not masked: it might look like a creation's
      q2 == [q EXCEPT !.hd = @ /\ (q.r \in w.r \cup {w.o} \/ ~On("driver_data"))]            \* R5
      p == [NoPen EXCEPT !.ts = ts, !.v = v, !.q = q2, !.drv = TRUE, !.beat = pen[n].beat] IN
  \* its own INV comes back to it as an equal one, and is ACKed
  /\ pen' = [pen EXCEPT ![n] = p]
  /\ net' = Put(nt, n, Arbiters(q2, v, view[n]) \cup {n}, Inv(n, p))

RecvReq(n) == \E a \in Nodes :
  /\ At(net, a, n) /\ Head(net[<<a, n>>]).k = "REQ"
  /\ LET m == Head(net[<<a, n>>])  rest == Pop(net, a, n)  p == pen[n]
         w == Masked(ent[n].v, view[n])
         again == p.ts # 0 /\ p.q.r = m.q.r /\ p.q.s = m.q.s /\ ~p.pre
         ts == Ts(Ver(Max(ent[n].ts, p.ts)) + 1, n)
         new == ent[n].ts = 0 \/ (ent[n].v.f /\ Creates(ent[n].v, view[n]))                    \* R17
         say(why) == net' = Put(rest, n, {m.q.r}, Nack(n, m.q, why)) /\ pen' = pen
     IN
     IF m.e # view[n] \/ (again /\ m.q.k <= p.q.k) THEN net' = rest /\ pen' = pen
     ELSE IF ~MayDrive(n) \/ (p.ts # 0 /\ ~again /\ On("valid_drives")) THEN say(BUSY)           \* R6
     ELSE IF again
     THEN IF On("redrive") THEN Drives(n, rest, ts, p.v, m.q)
          ELSE LET p2 == [p EXCEPT !.q.k = m.q.k] IN
               /\ pen' = [pen EXCEPT ![n] = p2]
               /\ net' = Put(rest, n, Arbiters(p.q, p.v, view[n]) \cup {n}, Inv(n, p2))
     ELSE IF new /\ m.q.t # "OWNER" THEN say(NONE)
     ELSE IF ~new /\ Nobody(w) /\ Moves(m.q) THEN say(LOST)
     ELSE IF ~new /\ Moot(m.q, w) THEN say(MOOT)
     ELSE Drives(n, rest, ts, w, m.q)
  /\ UNCHANGED <<cnet, ent, own, dat, commits, seen, asked, told, won>>

\* the ACK of n to an INV [ts, v, q]; rep: to a replayer
Ack(n, ts, v, q, rep) ==
  [M(n, "ACK", ts, v, q) EXCEPT !.rep = rep, !.o = (Masked(v, view[n]).o = n),
    !.d = IF Moves(q) /\ ~q.hd /\ dat[n].s # "-" THEN [dat[n] EXCEPT !.s = "V"] ELSE NoDat]
\* R4
Owes(n, q) == dat[n].s = "W" /\ q.t \notin {"TRIM", "DEGREE"} /\ On("pending")
AckTo(rep, a, q) == IF rep THEN a ELSE q.r

RecvInv(n) == \E a \in Nodes :
  /\ At(net, a, n) /\ Head(net[<<a, n>>]).k = "INV"
  /\ LET m == Head(net[<<a, n>>])  rest == Pop(net, a, n)  p == pen[n]
         ack == Ack(n, m.ts, m.v, m.q, m.rep)
         to == AckTo(m.rep, a, m.q) IN
     IF m.e # view[n] /\ On("epoch") THEN net' = rest /\ pen' = pen
     ELSE IF m.ts > Max(ent[n].ts, p.ts) \/ (m.ts > ent[n].ts /\ m.ts # p.ts /\ ~On("higher_inv"))
     THEN LET b == Owes(n, m.q)
              lost == IF p.ts # 0 /\ p.drv /\ On("beaten")
                      THEN Arbiters(p.q, p.v, view[n]) \ (Dir \cup {Masked(p.v, view[n]).o}) ELSE {}   \* R8
              n1 == IF p.ts # 0 /\ p.drv THEN Put(rest, n, {p.q.r}, Nack(n, p.q, BUSY)) ELSE rest IN
          /\ pen' = [pen EXCEPT ![n] = [NoPen EXCEPT !.ts = m.ts, !.v = m.v, !.q = m.q,
                                        !.owes = IF b THEN to ELSE 0, !.orep = b /\ m.rep,
                                        !.pre = m.rep, !.beat = p.beat \cup lost]]
          /\ net' = IF b THEN n1 ELSE Put(n1, n, {to}, ack)
     ELSE IF m.ts = p.ts
     THEN LET b == Owes(n, m.q) IN
          /\ pen' = [pen EXCEPT ![n] = [p EXCEPT !.q.k = m.q.k, !.owes = IF b THEN to ELSE 0, !.orep = b /\ m.rep]]
          /\ net' = IF b THEN rest ELSE Put(rest, n, {to}, ack)
     ELSE /\ pen' = pen                                                 \* R9
          /\ net' = IF m.ts = ent[n].ts \/ (m.ts < ent[n].ts /\ On("stale"))
                    THEN Put(rest, n, {a}, M(n, "VAL", ent[n].ts, ent[n].v, NoReq)) ELSE rest
  /\ UNCHANGED <<cnet, ent, own, dat, commits, seen, asked, told, won>>

Better(best, bo, d, o) ==
  IF ~On("highest_data") THEN d.s # "-"
  ELSE d.s # "-" /\ (best.s = "-" \/ d.ver > best.ver \/ (d.ver = best.ver /\ o))
Install(n, v, best) == 
  IF Creates(v, view[n]) THEN [s |-> "V", ver |-> 1, val |-> <<>>]
  ELSE IF best.s # "-" /\ (dat[n].s = "-" \/ best.ver > dat[n].ver \/ ~On("highest_data"))
                    THEN best ELSE dat[n]
\* what n keeps of the entry
Entry(n, ts, v) == IF n \in Dir \cup v.r \cup {v.o} THEN [ts |-> ts, v |-> v] ELSE NoEnt

\* who is told what came of the request that beat this driver's
Beaten(n, ts) == IF pen[n].ts <= ts THEN pen[n].beat \cap Live(n) ELSE {}
\* n, the requester of q, applies it; nt: the lanes
Apply(n, nt, ts, v, q, best) ==
  LET af == After(q, v, view[n]) IN
  /\ ent' = [ent EXCEPT ![n] = [ts |-> ts, v |-> af]]
  /\ pen' = [pen EXCEPT ![n] = IF @.ts <= ts THEN NoPen ELSE @]
  /\ dat' = [dat EXCEPT ![n] = IF Moves(q) THEN Install(n, v, best) ELSE @]
  /\ net' = Put(nt, n, (Arbiters(q, v, view[n]) \cup Beaten(n, ts)) \ {n}, M(n, "VAL", ts, af, NoReq))
  /\ own' = [own EXCEPT ![n] = IF @.q.s = q.s THEN NoOwn ELSE @]
  /\ won' = won \cup {<<q.r, q.s, ts>>}

RecvAck(n) == \E a \in Nodes :
  /\ At(net, a, n) /\ Head(net[<<a, n>>]).k = "ACK" /\ ~Head(net[<<a, n>>]).rep
  /\ LET m == Head(net[<<a, n>>])  rest == Pop(net, a, n)  o == own[n]
         fresh == m.ts > o.ts
         acked == (IF fresh THEN {} ELSE o.acked) \cup {a}
         bt == Better(IF fresh THEN NoDat ELSE o.best, o.bo, m.d, m.o)
         best == IF bt THEN m.d ELSE IF fresh THEN NoDat ELSE o.best
     IN
     IF ~(o.st = "R" /\ m.q.s = o.q.s /\ m.q.k = o.q.k /\ m.ts >= o.ts /\ (m.e = view[n] \/ ~On("epoch")))
     THEN net' = rest /\ UNCHANGED <<ent, pen, own, dat, won>>
     ELSE IF Enough(m.q, m.v, view[n], acked, best) /\ m.ts > ent[n].ts
     THEN Apply(n, rest, m.ts, m.v, m.q, best)
     ELSE /\ net' = rest
          /\ own' = [own EXCEPT ![n] = [o EXCEPT !.ts = m.ts, !.v = m.v, !.acked = acked, !.best = best]]
          /\ UNCHANGED <<ent, pen, dat, won>>
  /\ UNCHANGED <<cnet, commits, seen, asked, told>>

RecvNack(n) == \E a \in Nodes :
  /\ At(net, a, n) /\ Head(net[<<a, n>>]).k = "NACK"
  /\ LET m == Head(net[<<a, n>>])  o == own[n] IN
     /\ net' = Pop(net, a, n)
     /\ own' = IF m.e = view[n] /\ o.st = "R" /\ m.q.s = o.q.s /\ m.q.k = o.q.k
               THEN [own EXCEPT ![n] = IF m.v.e # BUSY THEN NoOwn
                                       ELSE [NoOwn EXCEPT !.st = "B", !.q = o.q]] ELSE own
  /\ UNCHANGED <<cnet, ent, pen, dat, commits, seen, asked, told, won>>

\* the vector says what n keeps of the data
Kept(n, v) == IF n \in v.r \cup {v.o} THEN dat[n] ELSE NoDat

RecvVal(n) == \E a \in Nodes :
  /\ At(net, a, n) /\ Head(net[<<a, n>>]).k = "VAL"
  /\ LET m == Head(net[<<a, n>>]) IN
     /\ IF m.ts > ent[n].ts /\ m.ts >= pen[n].ts
        THEN LET p == pen[n]                                          \* R1
                 v == IF m.ts = p.ts /\ ~On("result") THEN After(p.q, p.v, view[n]) ELSE m.v IN
             /\ ent' = [ent EXCEPT ![n] = Entry(n, m.ts, v)]
             /\ pen' = [pen EXCEPT ![n] = NoPen]
             /\ dat' = [dat EXCEPT ![n] = Kept(n, v)]
             /\ net' = Put(Pop(net, a, n), n, Beaten(n, m.ts), M(n, "VAL", m.ts, v, NoReq))
        ELSE net' = Pop(net, a, n) /\ UNCHANGED <<ent, pen, dat>>
  /\ UNCHANGED <<cnet, own, commits, seen, asked, told, won>>
----------------------------------------------------------------------------
(* Replays *)
\* the last ACK of a replay
Conclude(n, nt, p) ==
  IF p.q.r \in Live(n) /\ On("first")                                 \* R7
  THEN /\ net' = Put(nt, n, {p.q.r}, [M(n, "RESP", p.ts, p.v, p.q) EXCEPT !.d = p.best])
       /\ pen' = [pen EXCEPT ![n] = p]
       /\ UNCHANGED <<ent, dat, won>>
  ELSE LET af == After(p.q, p.v, view[n]) IN
       /\ ent' = [ent EXCEPT ![n] = Entry(n, p.ts, af)]
       /\ pen' = [pen EXCEPT ![n] = NoPen]
       /\ dat' = [dat EXCEPT ![n] = Kept(n, af)]
       /\ net' = Put(nt, n, (Arbiters(p.q, p.v, view[n]) \cup Beaten(n, p.ts)) \ {n}, M(n, "VAL", p.ts, af, NoReq))
       /\ won' = won \cup {<<p.q.r, p.q.s, p.ts>>}

\* the data is not asked for on behalf of the dead
EnoughR(p, n, acked, best) ==
  IF p.q.r \in Live(n) THEN Enough(p.q, p.v, view[n], acked, best)
  ELSE Needed(p.q, p.v, view[n]) \subseteq acked

\* time passes
Ready(l) == /\ Alive(l[2])
            /\ \/ net[l] # <<>> /\ Head(net[l]).e <= view[l[2]]
               \/ cnet[l] # <<>> /\ Head(cnet[l]).e <= view[l[2]]
Idle == (\A l \in DOMAIN net : ~Ready(l)) /\ \A x \in Nodes : com[x] = NoCom \/ ~(com[x].fol \subseteq com[x].acked)
Replay(n) == LET p == pen[n] IN
  /\ Up(n) /\ p.ts # 0 /\ p.pre /\ On("replay")
  /\ p.rep = 0 \/ (p.rep = 1 /\ Idle)
  /\ know[n] >= 1 \/ ~On("replay_waits")
  /\ pen' = [pen EXCEPT ![n].rep = @ + 1]
  /\ net' = Put(net, n, (Arbiters(p.q, p.v, view[n]) \cup {n}) \ p.acked, [Inv(n, p) EXCEPT !.rep = TRUE])
  /\ UNCHANGED <<cnet, ent, own, dat, commits, seen, asked, told, won>>

RecvAckR(n) == \E a \in Nodes :
  /\ At(net, a, n) /\ Head(net[<<a, n>>]).k = "ACK" /\ Head(net[<<a, n>>]).rep
  /\ LET m == Head(net[<<a, n>>])  rest == Pop(net, a, n)  p == pen[n]
         acked == p.acked \cup {a}
         best == IF Better(p.best, FALSE, m.d, m.o) THEN m.d ELSE p.best
         p2 == [p EXCEPT !.acked = acked, !.best = best] IN
     IF m.e = view[n] /\ p.rep > 0 /\ p.ts = m.ts
     THEN IF EnoughR(p, n, acked, best) /\ ~EnoughR(p, n, p.acked, p.best)
          THEN Conclude(n, rest, p2)
          ELSE net' = rest /\ pen' = [pen EXCEPT ![n] = p2] /\ UNCHANGED <<ent, dat, won>>
     ELSE net' = rest /\ UNCHANGED <<ent, pen, dat, won>>
  /\ UNCHANGED <<cnet, own, commits, seen, asked, told>>

RecvResp(n) == \E a \in Nodes :
  /\ At(net, a, n) /\ Head(net[<<a, n>>]).k = "RESP"
  /\ LET m == Head(net[<<a, n>>])  rest == Pop(net, a, n) IN
     IF m.e # view[n] THEN net' = rest /\ UNCHANGED <<ent, pen, own, dat, won>>
     ELSE IF m.ts > ent[n].ts
     THEN Apply(n, rest, m.ts, m.v, m.q, m.d)
     ELSE /\ net' = IF On("resp_again")
                    THEN Put(rest, n, {a}, M(n, "VAL", ent[n].ts, ent[n].v, NoReq))
                    ELSE rest
          /\ UNCHANGED <<ent, pen, own, dat, won>>
  /\ UNCHANGED <<cnet, commits, seen, asked, told>>
----------------------------------------------------------------------------
(* Commits: one object, one at a time *)
CM(n, k, c, s) == [k |-> k, c |-> c, ver |-> s.ver, val |-> s.val, fol |-> s.fol, e |-> view[n]]
Seen(val) == IF val \in Range(hist) THEN hist ELSE Append(hist, val)
Writable(n) == Alive(n) /\ IsOwner(n) /\ (pen[n].ts = 0 \/ pen[n].q.t \in {"TRIM", "DEGREE"} \/ ~On("revoke")) /\ dat[n].s = "V"

Commit(n) ==
  /\ n \in Writers /\ ncom < MaxCommit /\ Writable(n) /\ com[n] = NoCom /\ Calm
  /\ Several /\ On("enough") => Masked(ent[n].v, view[n]).r # {} \/ Live(n) = {n}               \* R15
  /\ ncom' = ncom + 1
  /\ LET fol == Masked(ent[n].v, view[n]).r \ {n}
         c == [ver |-> dat[n].ver + 1, val |-> Append(dat[n].val, ncom + 1), fol |-> fol, acked |-> {}] IN
     IF fol = {}
     THEN /\ dat' = [dat EXCEPT ![n] = [s |-> "V", ver |-> c.ver, val |-> c.val]]
          /\ hist' = Seen(c.val) /\ done' = done \cup {ncom + 1}
          /\ UNCHANGED <<cnet, com>>
     ELSE /\ dat' = [dat EXCEPT ![n] = [s |-> "W", ver |-> c.ver, val |-> c.val]]
          /\ com' = [com EXCEPT ![n] = c]
          /\ cnet' = Put(cnet, n, fol, CM(n, "RINV", <<n, Newest.adm[n]>>, c))
          /\ UNCHANGED <<hist, done>>
  /\ UNCHANGED <<net, ent, pen, own, sto, seen, asked, won>>

Valid(n, ver) == IF dat[n].ver = ver /\ dat[n].s \in {"W", "I"} THEN [dat[n] EXCEPT !.s = "V"] ELSE dat[n]

\* all followers have ACKed, or are gone
CommitDone(n) == LET c == com[n] IN
  /\ Up(n) /\ c # NoCom /\ (c.fol \subseteq c.acked \/ ~On("r_acks"))
  /\ com' = [com EXCEPT ![n] = NoCom]
  /\ dat' = [dat EXCEPT ![n] = Valid(n, c.ver)]
  /\ hist' = Seen(c.val) /\ done' = done \cup {Last(c.val)}
  /\ cnet' = Put(cnet, n, c.fol, CM(n, "RVAL", <<n, Newest.adm[n]>>, c))
  /\ LET p == pen[n] IN                                             \* R4
     IF p.ts # 0 /\ p.owes # 0
     THEN /\ pen' = [pen EXCEPT ![n].owes = 0, ![n].orep = FALSE]
          /\ net' = Put(net, n, {p.owes}, Ack(n, p.ts, p.v, p.q, p.orep))
     ELSE UNCHANGED <<net, pen>>
  /\ UNCHANGED <<ent, own, sto, seen, asked, ncom, won>>

StoreOf(n, c, ver) == {s \in sto[n] : s.c = c /\ s.ver = ver}
RecvRInv(n) == \E a \in Nodes :
  /\ At(cnet, a, n) /\ Head(cnet[<<a, n>>]).k = "RINV"
  /\ LET m == Head(cnet[<<a, n>>])  rest == Pop(cnet, a, n)
         known == StoreOf(n, m.c, m.ver) # {} \/ Last(m.val) \in Range(dat[n].val) IN
     IF m.e # view[n] THEN cnet' = rest /\ UNCHANGED <<sto, dat>>
     ELSE /\ cnet' = Put(rest, n, {a}, [m EXCEPT !.k = "RACK", !.e = view[n]])
          /\ IF known THEN UNCHANGED <<sto, dat>>
             ELSE /\ sto' = [sto EXCEPT ![n] = @ \cup {[c |-> m.c, ver |-> m.ver, val |-> m.val, fol |-> m.fol,
                                                        rp |-> FALSE, acked |-> {}]}]
                  /\ dat' = [dat EXCEPT ![n] = IF @.s # "-" /\ m.ver > @.ver
                                               THEN [s |-> "I", ver |-> m.ver, val |-> m.val] ELSE @]
  /\ UNCHANGED <<net, ent, pen, own, com, seen, asked, told, won>>

RecvRAck(n) == \E a \in Nodes :
  /\ At(cnet, a, n) /\ Head(cnet[<<a, n>>]).k = "RACK"
  /\ LET m == Head(cnet[<<a, n>>]) IN
     /\ cnet' = Pop(cnet, a, n)
     /\ com' = IF m.e = view[n] /\ m.c[1] = n /\ com[n].ver = m.ver
               THEN [com EXCEPT ![n].acked = @ \cup {a}] ELSE com
     /\ sto' = [sto EXCEPT ![n] = {IF s.c = m.c /\ s.ver = m.ver /\ m.e = view[n] /\ s.rp
                                   THEN [s EXCEPT !.acked = @ \cup {a}] ELSE s : s \in sto[n]}]
  /\ UNCHANGED <<net, ent, pen, own, dat, seen, asked, told, won>>

RecvRVal(n) == \E a \in Nodes :
  /\ At(cnet, a, n) /\ Head(cnet[<<a, n>>]).k = "RVAL"
  /\ LET m == Head(cnet[<<a, n>>])
         here == (m.e = view[n] \/ On("val_any_epoch")) /\ StoreOf(n, m.c, m.ver) # {} IN
     /\ cnet' = Pop(cnet, a, n)
     /\ sto' = [sto EXCEPT ![n] = IF here THEN @ \ StoreOf(n, m.c, m.ver) ELSE @]
     /\ dat' = [dat EXCEPT ![n] = IF here THEN Valid(n, m.ver) ELSE @]
  /\ UNCHANGED <<net, ent, pen, own, com, seen, asked, told, won>>

\* a follower has replayed what a dead coordinator left
ReplayedR(n) == \E s \in sto[n] :
  /\ Up(n) /\ s.rp /\ s.fol \subseteq s.acked
  /\ sto' = [sto EXCEPT ![n] = @ \ {s}]
  /\ dat' = [dat EXCEPT ![n] = Valid(n, s.ver)]
  /\ hist' = Seen(s.val)
  /\ cnet' = Put(cnet, n, s.fol, CM(n, "RVAL", s.c, s))
  /\ UNCHANGED <<net, ent, pen, own, com, seen, asked, ncom, done, won>>
----------------------------------------------------------------------------
(* Views *)
Drop(x) ==
  /\ Calm /\ Cardinality(Nodes \ Newest.live) < MaxDrop
  /\ Newest.adm[x] = 1 /\ x \in Newest.live \cap Mortal
  /\ views' = Append(views, [Newest EXCEPT !.live = @ \ {x}])
  /\ net' = [l \in DOMAIN net |-> IF l[2] = x THEN <<>> ELSE net[l]]
  /\ cnet' = [l \in DOMAIN cnet |-> IF l[2] = x THEN <<>> ELSE cnet[l]]
  \* nothing is remembered of the dead
  /\ ent' = [ent EXCEPT ![x] = NoEnt] /\ pen' = [pen EXCEPT ![x] = NoPen]
  /\ own' = [own EXCEPT ![x] = NoOwn] /\ dat' = [dat EXCEPT ![x] = NoDat]
  /\ com' = [com EXCEPT ![x] = NoCom] /\ sto' = [sto EXCEPT ![x] = {}]
  /\ know' = [know EXCEPT ![x] = 0] /\ said' = [said EXCEPT ![x] = <<0, 0>>]
  /\ UNCHANGED <<view, asked, told, won>>

\* its node comes back as another process
Rejoin(x) ==
  /\ Calm /\ x \in Back /\ x \notin Newest.live
  /\ views' = Append(views, [live |-> Newest.live \cup {x}, adm |-> [Newest.adm EXCEPT ![x] = Len(views) + 1]])
  /\ view' = [view EXCEPT ![x] = Len(views')]
  /\ net' = [l \in DOMAIN net |-> IF l[1] = x THEN <<>> ELSE net[l]]
  /\ cnet' = [l \in DOMAIN cnet |-> IF l[1] = x THEN <<>> ELSE cnet[l]]
  /\ UNCHANGED <<ent, pen, own, dat, commits, know, said, asked, told, won>>

FromDead(s, e) == s.c[1] \notin views[e].live \/ views[e].adm[s.c[1]] # s.c[2]

Adopt(n) == \E e \in (view[n] + 1)..Len(views) :
  /\ Up(n) /\ n \in views[e].live
  /\ view' = [view EXCEPT ![n] = e]
  /\ know' = [know EXCEPT ![n] = 0]
  /\ LET gone(l) == l[2] = n /\ l[1] \notin views[e].live
         c == [com[n] EXCEPT !.fol = @ \cap views[e].live, !.acked = {}]
         renew(s) == IF FromDead(s, e)
                     THEN [s EXCEPT !.fol = (@ \cap views[e].live) \ {n}, !.rp = TRUE, !.acked = {}] ELSE s
         left == {renew(s) : s \in sto[n]}
         msg(cc, s) == [k |-> "RINV", c |-> cc, ver |-> s.ver, val |-> s.val, fol |-> s.fol, e |-> e]
         mine == IF com[n] # NoCom THEN {[m |-> msg(<<n, Newest.adm[n]>>, c), to |-> c.fol]} ELSE {}
         all == mine \cup {[m |-> msg(s.c, s), to |-> s.fol] : s \in {s2 \in left : s2.rp}}
         RECURSIVE PutAll(_, _)
         PutAll(nt, S) == IF S = {} THEN nt ELSE LET x == CHOOSE x \in S : TRUE IN
                          PutAll(Put(nt, n, x.to, x.m), S \ {x})
     IN
     /\ net' = [l \in DOMAIN net |-> IF gone(l) THEN <<>> ELSE net[l]]
     /\ cnet' = PutAll([l \in DOMAIN cnet |-> IF gone(l) THEN <<>> ELSE cnet[l]], all)
     /\ com' = [com EXCEPT ![n] = IF @ = NoCom THEN @ ELSE c]
     /\ sto' = [sto EXCEPT ![n] = left]
  /\ pen' = [pen EXCEPT ![n] = IF @.ts = 0 THEN @
               ELSE [NoPen EXCEPT !.ts = pen[n].ts, !.v = pen[n].v, !.q = pen[n].q, !.pre = TRUE]]
  /\ own' = [own EXCEPT ![n] = IF @.st = "-" THEN @ ELSE [NoOwn EXCEPT !.st = "S", !.q = own[n].q]]
  /\ UNCHANGED <<ent, dat, views, said, asked, told, won>>

SayRecovered(n) ==
  /\ Up(n) /\ said[n][1] < view[n]
  /\ (\A s \in sto[n] : ~FromDead(s, view[n])) \/ ~On("recovered")
  /\ said' = [said EXCEPT ![n][1] = view[n]]
  /\ UNCHANGED <<lanes, ent, pen, own, dat, commits, views, view, know, asked, told, won>>
SaySettled(n) ==
  /\ Up(n) /\ said[n][2] < view[n] /\ pen[n].ts = 0 /\ know[n] >= 1
  /\ said' = [said EXCEPT ![n][2] = view[n]]
  /\ UNCHANGED <<lanes, ent, pen, own, dat, commits, views, view, know, asked, told, won>>
\* n hears that all have said it
Hear(n) ==
  /\ Up(n) /\ know[n] < 2 /\ \A x \in Live(n) : said[x][know[n] + 1] >= view[n]
  /\ know' = [know EXCEPT ![n] = @ + 1]
  /\ UNCHANGED <<lanes, ent, pen, own, dat, commits, views, view, said, asked, told, won>>
----------------------------------------------------------------------------
Init ==
  LET v0 == [NoVec EXCEPT !.o = Owner0, !.r = Readers0, !.e = 1]
      lane0 == [l \in Nodes \X Nodes |-> <<>>] IN
  /\ net = lane0 /\ cnet = lane0
  /\ ent = [n \in Nodes |-> IF Owner0 # 0 /\ n \in Dir \cup Readers0 \cup {Owner0}
                            THEN [ts |-> Ts(1, 0), v |-> v0] ELSE NoEnt]
  /\ pen = [n \in Nodes |-> NoPen]
  /\ own = [n \in Nodes |-> NoOwn]
  /\ dat = [n \in Nodes |-> IF n \in Readers0 \cup {Owner0} THEN [s |-> "V", ver |-> 1, val |-> <<>>] ELSE NoDat]
  /\ com = [n \in Nodes |-> NoCom]
  /\ sto = [n \in Nodes |-> {}]
  /\ views = <<[live |-> Nodes, adm |-> [n \in Nodes |-> 1]]>>
  /\ view = [n \in Nodes |-> 1]
  /\ know = [n \in Nodes |-> 2]
  /\ said = [n \in Nodes |-> <<1, 1>>]
  /\ asked = {} /\ ncom = 0 /\ hist = <<<<>>>> /\ done = {} /\ won = {}

ViewStep(n) == Adopt(n) \/ SayRecovered(n) \/ SaySettled(n) \/ Hear(n)
CommitStep(n) == CommitDone(n) \/ RecvRInv(n) \/ RecvRAck(n) \/ RecvRVal(n) \/ ReplayedR(n)
OwnStep(n) == Again(n) \/ RecvReq(n) \/ RecvInv(n) \/ RecvAck(n) \/ RecvNack(n) \/ RecvVal(n)
              \/ Replay(n) \/ RecvAckR(n) \/ RecvResp(n)
FlowStep(n) == ViewStep(n) \/ CommitStep(n) \/ OwnStep(n)
Next == \E n \in Nodes : FlowStep(n) \/ Want(n) \/ Commit(n) \/ Drop(n) \/ Rejoin(n)
Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
(* Properties.  hist: values in the order in which they could first be read.  *)
(* A value is the sequence of commits that made it.                           *)
Shut(n) == pen[n].ts # 0 /\ pen[n].q.t = "TRIM" /\ pen[n].q.x = n
Readable(n) == Alive(n) /\ dat[n].s = "V" /\ ~Shut(n)

\* whoever may read has the newest value that anyone could read
Agree == \A n \in Nodes : Readable(n) => dat[n].val = Last(hist)
\* nothing is taken back
Durable == \A i \in 1..(Len(hist) - 1) :
             Len(hist[i]) < Len(hist[i + 1]) /\ SubSeq(hist[i + 1], 1, Len(hist[i])) = hist[i]
\* one writes
OneOwner == \A n, p \in Nodes : Writable(n) /\ Writable(p) => n = p
\* the owner knows who reads
Followers == \A n, p \in Nodes : Writable(n) /\ Readable(p) /\ n # p => p \in Masked(ent[n].v, view[n]).r
\* R3
Once == \A a, b \in won : a[1] = b[1] /\ a[2] = b[2] => a[3] = b[3]
\* what clients were told of does not go with one node (R15)
Answered == Several => \A c \in done : \E n \in Nodes : Alive(n) /\ c \in Range(dat[n].val)
\* what was never written is not lost (R17)
Born == Several /\ Owner0 = 0 /\ ncom = 0 =>
          \A n \in Dir : Alive(n) /\ ent[n].ts # 0 => ~Lost(ent[n].v, view[n])
\* a commit is under way only at the owner
Pending == \A n \in Nodes : Alive(n) /\ dat[n].s = "W" => com[n] # NoCom /\ IsOwner(n)

\* where nothing that must happen is left to do, everything has ended
Quiet(n) ==
  /\ pen[n].ts = 0
  /\ own[n].st = "-" \/ (own[n].st \in {"B", "S"} /\ own[n].q.k = MaxRetry)
  /\ dat[n].s \in {"-", "V"} /\ com[n] = NoCom /\ sto[n] = {} /\ know[n] = 2
AtRest ==
  \/ \E l \in DOMAIN net : Ready(l)
  \/ \A n \in Newest.live : Quiet(n)
  \/ ENABLED (\E n \in Nodes : FlowStep(n))
\* at rest the directory, the owner and the data agree
Same ==
  Calm /\ (\A n \in Newest.live : Quiet(n)) /\ (\A l \in DOMAIN net : net[l] = <<>> /\ cnet[l] = <<>>) =>
     \A n, p \in Newest.live :
       /\ n \in Dir /\ p \in Dir => ent[n] = ent[p]
       /\ n \in Dir => LET w == Masked(ent[n].v, Len(views)) IN
            /\ (dat[p].s # "-") = (p \in w.r \cup {w.o})
            /\ IsOwner(p) = (p = w.o)

(* What must be possible: each of these is to be violated. *)
NeverWon      == \A w \in won : w[2] < 2

NeverBeaten   == \A n \in Nodes : own[n].st # "B"
NeverOwed     == \A n \in Nodes : pen[n].owes = 0
NeverResp     == \A l \in DOMAIN net : net[l] = <<>> \/ Head(net[l]).k # "RESP"
NeverForDead  == \A w \in won : Alive(w[1])
NeverAbsent   == \A n \in Nodes : ~(ent[n].ts # 0 /\ ent[n].v.f /\ Creates(ent[n].v, view[n]))
NeverDegree   == \A n \in Dir : ent[n].v.g = 0
NeverLost     == \A n \in Nodes : ent[n].ts = 0 \/ ~Nobody(ent[n].v)
NeverOldNews  == \A n \in Nodes, w \in won : pen[n].pre => pen[n].ts >= w[3]
=============================================================================

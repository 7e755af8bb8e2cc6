---------------------------- MODULE LotusCommit -----------------------------
(* Lotus's two-phase commit and what becomes of it when its coordinator or a *)
(* memory server dies: src/engine/lotus/commit.h.  One try, from when all    *)
(* servers have executed it.  Rule names are those of enum lotus_rule        *)
(* (docs/protocols/lotus.md); `Off' names rules that are switched off.       *)
(* Messages are delivered once, in any order; what is lost is what the dead  *)
(* have sent to those that know of it.                                       *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Servers, Written,  \* where it reads and writes; of these, where it writes
  Wounds,            \* running tries that lose their locks, at most
  Drops, DropNodes,  \* members that views drop: they die
  Off

VARIABLES
  views,             \* sets of members, by epoch
  ep,                \* per node
  cst,               \* coordinator: "exec", "prepare", "commit", "done", "aborted"
  waits, good,       \* whose answers are due; who is prepared
  told,              \* what the client heard: "-", "ok", "failed", "unknown"
  held,              \* when it heard "ok" all locks were held
  st,                \* per server: "run", "prep", "doubt", "comm", "free"
  others, due,       \* per server: other participants; who has not answered ASK or RESOLVED
  did,               \* per server: "-", "installed", "released"
  msgs, wounds

coord == <<cst, waits, good, told, held>>
server == <<st, others, due, did>>
vars == <<views, ep, coord, server, msgs, wounds>>

C == 0
Nodes == Servers \cup {C}
On(r) == r \notin Off
Newest == views[Len(views)]
Alive(n) == n \in Newest
Parts == IF On("prepare_read") THEN Servers ELSE Written
Between == {"ASK", "TOLD", "RESOLVED"}
Min(s) == CHOOSE a \in s : \A b \in s : a <= b

M(k, from, to, v) == [k |-> k, from |-> from, to |-> to, e |-> ep[from], v |-> v]
To(k, from, set, v) == {M(k, from, q, v) : q \in {p \in set : Alive(p)}}
\* P3; and members hear only members.
Stays(m, vs, e) ==
  /\ m.to \in vs[Len(vs)]
  /\ m.from \in vs[e[m.to]]
  /\ (m.k \in Between /\ On("epoch")) => m.e >= e[m.to]
Takes(m) ==
  /\ m \in msgs
  /\ (m.k \in Between /\ On("epoch")) => m.e = ep[m.to]
----------------------------------------------------------------------------
Init ==
  /\ views = <<Nodes>>
  /\ ep = [n \in Nodes |-> 1]
  /\ cst = "exec" /\ waits = {} /\ good = {} /\ told = "-" /\ held = TRUE
  /\ st = [s \in Servers |-> "run"]
  /\ others = [s \in Servers |-> {}]
  /\ due = [s \in Servers |-> {}]
  /\ did = [s \in Servers |-> "-"]
  /\ msgs = {} /\ wounds = 0

\* ---- The coordinator ----

Prepare ==
  /\ cst = "exec" /\ Alive(C)
  /\ cst' = "prepare" /\ waits' = Parts
  /\ msgs' = msgs \cup To("PREPARE", C, Parts, Parts)
  /\ UNCHANGED <<views, ep, good, told, held, server, wounds>>

\* C6: who was asked to prepare writes has not been heard of since.
Failed(asked) ==
  IF On("unsure") /\ cst = "prepare" /\ asked \cap Written # {} THEN "unknown" ELSE "failed"
CallOff(asked, rest) ==
  /\ cst' = "aborted" /\ waits' = {} /\ good' = {} /\ held' = held
  /\ told' = Failed(asked)
  /\ msgs' = rest \cup To("ABORT", C, asked, {})
Decide(rest) ==
  /\ cst' = "commit" /\ waits' = {p \in Parts : p \in views[ep[C]]} /\ good' = {}
  /\ told' = "ok"
  /\ held' = \A s \in Servers : Alive(s) => did[s] # "released"
  /\ msgs' = rest \cup To("COMMIT", C, Parts, {}) \cup To("ABORT", C, Servers \ Parts, {})

GotPrepared(m) ==
  LET left == waits \ {m.from}
      all  == IF m.v = {} THEN good ELSE good \cup {m.from}
      rest == msgs \ {m}
  IN
  /\ m.k = "PREPARED" /\ Takes(m)
  /\ IF cst # "prepare" \/ m.from \notin waits
     THEN msgs' = rest /\ UNCHANGED coord
     ELSE IF (left = {} /\ all = Parts) \/ (~On("all_prepared") /\ all # {}) THEN Decide(rest)
     ELSE IF left = {} THEN CallOff(all \cup (Servers \ Parts), rest)
     ELSE waits' = left /\ good' = all /\ msgs' = rest /\ UNCHANGED <<cst, told, held>>
  /\ UNCHANGED <<views, ep, server, wounds>>

GotCommitted(m) ==
  /\ m.k = "COMMITTED" /\ Takes(m)
  /\ waits' = waits \ {m.from}
  /\ cst' = IF cst = "commit" /\ waits' = {} THEN "done" ELSE cst
  /\ msgs' = msgs \ {m}
  /\ UNCHANGED <<views, ep, good, told, held, server, wounds>>

AdoptCoord ==
  LET v    == views[ep[C] + 1]
      e1   == [ep EXCEPT ![C] = @ + 1]
      rest == {m \in msgs : Stays(m, views, e1)}
  IN
  /\ Alive(C) /\ ep[C] < Len(views)
  /\ ep' = e1
  /\ IF cst \in {"exec", "prepare"} /\ ~(Servers \subseteq v)
     THEN CallOff(Servers \cap v, rest)
     ELSE /\ waits' = waits \cap v
          /\ cst' = IF cst = "commit" /\ waits' = {} THEN "done" ELSE cst
          /\ msgs' = rest
          /\ UNCHANGED <<good, told, held>>
  /\ UNCHANGED <<views, server, wounds>>

\* ---- A memory server ----

Set(s, state, o, d, what) ==
  /\ st' = [st EXCEPT ![s] = state]
  /\ others' = [others EXCEPT ![s] = IF state = "free" THEN {} ELSE o]
  /\ due' = [due EXCEPT ![s] = IF state = "free" THEN {} ELSE d]
  /\ did' = [did EXCEPT ![s] = IF what = "-" THEN @ ELSE what]
\* In doubt no more; `known' are the others that have the outcome.
Resolve(s, o, known, rest) ==
  LET left == o \ known IN
  /\ Set(s, IF left = {} THEN "free" ELSE "comm", o, left, "installed")
  /\ msgs' = rest \cup To("RESOLVED", s, left, {})

GotPrepare(m) ==
  LET s == m.to  rest == msgs \ {m} IN
  /\ m.k = "PREPARE" /\ Takes(m)
  /\ IF st[s] = "run"
     THEN /\ Set(s, "prep", (m.v \cap views[ep[s]]) \ {s}, {}, "-")
          /\ msgs' = rest \cup To("PREPARED", s, {C}, {1})
     ELSE /\ msgs' = rest \cup To("PREPARED", s, {C}, {})
          /\ UNCHANGED server
  /\ UNCHANGED <<views, ep, coord, wounds>>

GotCommit(m) ==
  LET s == m.to IN
  /\ m.k = "COMMIT" /\ Takes(m)
  /\ msgs' = (msgs \ {m}) \cup To("COMMITTED", s, {C}, {})
  /\ IF st[s] = "prep" THEN Set(s, "comm", others[s], {}, "installed") ELSE UNCHANGED server
  /\ UNCHANGED <<views, ep, coord, wounds>>

GotAbort(m) ==
  LET s == m.to IN
  /\ m.k = "ABORT" /\ Takes(m)
  /\ msgs' = msgs \ {m}
  /\ IF st[s] \in {"run", "prep"} THEN Set(s, "free", {}, {}, "released") ELSE UNCHANGED server
  /\ UNCHANGED <<views, ep, coord, wounds>>

\* Its locks are taken from it; it learns so when it is to prepare.
Wound(s) ==
  /\ Alive(s) /\ st[s] = "run" /\ wounds < Wounds
  /\ wounds' = wounds + 1
  /\ Set(s, "free", {}, {}, "released")
  /\ UNCHANGED <<views, ep, coord, msgs>>

TimeOut(s) ==
  /\ ~On("no_timeout") /\ Alive(s) /\ st[s] = "prep"
  /\ Set(s, "free", {}, {}, "released")
  /\ UNCHANGED <<views, ep, coord, msgs, wounds>>

\* All know the outcome, and the coordinator says so with whatever comes next.
Done(s) ==
  /\ Alive(s) /\ cst = "done" /\ C \in views[ep[s]] /\ st[s] = "comm"
  /\ Set(s, "free", {}, {}, "-")
  /\ UNCHANGED <<views, ep, coord, msgs, wounds>>

AdoptServer(s) ==
  LET v    == views[ep[s] + 1]
      e1   == [ep EXCEPT ![s] = @ + 1]
      rest == {m \in msgs : Stays(m, views, e1)}
      o    == others[s] \cap v
      ask  == IF On("doubt_all") \/ o = {} THEN o ELSE {Min(o)}
      Say(k, set) == {[M(k, s, q, {}) EXCEPT !.e = e1[s]] : q \in {p \in set : Alive(p)}}
      known == due[s] # {} \/ C \notin views[ep[s]]
      tell == IF known THEN due[s] \cap v ELSE o
  IN
  /\ Alive(s) /\ ep[s] < Len(views)
  /\ ep' = e1
  /\ IF C \in v \/ st[s] = "free" \/ ~On("gone")
     THEN Set(s, st[s], o, due[s] \cap v, "-") /\ msgs' = rest
     ELSE IF st[s] = "run" \/ (st[s] # "comm" /\ ~On("doubt"))
     THEN Set(s, "free", {}, {}, "released") /\ msgs' = rest
     ELSE IF st[s] = "comm"
     THEN IF tell = {} \/ ~On("outcomes")
          THEN Set(s, "free", {}, {}, "-") /\ msgs' = rest
          ELSE Set(s, "comm", o, tell, "-") /\ msgs' = rest \cup Say("RESOLVED", tell)
     ELSE IF ask = {}
     THEN Set(s, "free", {}, {}, "installed") /\ msgs' = rest
     ELSE Set(s, "doubt", o, ask, "-") /\ msgs' = rest \cup Say("ASK", ask)
  /\ UNCHANGED <<views, coord, wounds>>

GotAsk(m) ==
  LET s == m.to
      v == IF st[s] \in {"prep", "doubt"} THEN {1} ELSE IF st[s] = "comm" THEN {2} ELSE {}
  IN
  /\ m.k = "ASK" /\ Takes(m)
  /\ msgs' = (msgs \ {m}) \cup To("TOLD", s, {m.from}, v)
  /\ UNCHANGED <<views, ep, coord, server, wounds>>

GotTold(m) ==
  LET s == m.to  rest == msgs \ {m} IN
  /\ m.k = "TOLD" /\ Takes(m)
  /\ IF st[s] # "doubt" \/ m.from \notin due[s] THEN msgs' = rest /\ UNCHANGED server
     ELSE IF m.v = {} THEN Set(s, "free", {}, {}, "released") /\ msgs' = rest
     ELSE IF m.v = {2} THEN Resolve(s, others[s], {m.from}, rest)
     ELSE IF due[s] = {m.from} THEN Resolve(s, others[s], {}, rest)
     ELSE Set(s, "doubt", others[s], due[s] \ {m.from}, "-") /\ msgs' = rest
  /\ UNCHANGED <<views, ep, coord, wounds>>

GotResolved(m) ==
  LET s    == m.to
      rest == (msgs \ {m}) \cup (IF m.v = {} THEN To("RESOLVED", s, {m.from}, {1}) ELSE {})
  IN
  /\ m.k = "RESOLVED" /\ Takes(m)
  /\ IF st[s] = "run" THEN msgs' = msgs \ {m} /\ UNCHANGED server
     ELSE IF st[s] \in {"prep", "doubt"} THEN Resolve(s, others[s], {m.from}, rest)
     ELSE IF st[s] = "comm" /\ due[s] \subseteq {m.from} /\ C \notin views[ep[s]]
     THEN Set(s, "free", {}, {}, "-") /\ msgs' = rest
     ELSE Set(s, st[s], others[s], due[s] \ {m.from}, "-") /\ msgs' = rest
  /\ UNCHANGED <<views, ep, coord, wounds>>

\* ---- Deaths ----

Drop(n) ==
  /\ Len(views) <= Drops /\ n \in DropNodes /\ Alive(n)
  /\ views' = Append(views, Newest \ {n})
  /\ msgs' = {m \in msgs : Stays(m, views', ep)}
  /\ UNCHANGED <<ep, coord, server, wounds>>

Bound ==
  \/ Prepare \/ AdoptCoord
  \/ \E s \in Servers : AdoptServer(s) \/ Done(s)
  \/ \E m \in msgs :
       \/ GotPrepared(m) \/ GotCommitted(m) \/ GotPrepare(m) \/ GotCommit(m) \/ GotAbort(m)
       \/ GotAsk(m) \/ GotTold(m) \/ GotResolved(m)
Next == Bound \/ \E n \in Nodes : Drop(n) \/ \E s \in Servers : Wound(s) \/ TimeOut(s)
Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
Agree ==
  ~\E s \in Written, q \in Parts : did[s] = "installed" /\ Alive(q) /\ did[q] = "released"
Durable == told = "ok" => \A q \in Parts : Alive(q) => did[q] # "released"
Truth == told = "failed" => ~\E s \in Written : Alive(s) /\ did[s] = "installed"
Held == held
Rest ==
  ~ENABLED Bound =>
    /\ Alive(C) => cst \in {"done", "aborted"}
    /\ \A s \in Servers : Alive(s) => st[s] = "free" \/ (st[s] = "comm" /\ Alive(C))

NeverCommits == told # "ok"
NeverDoubts == ~\E s \in Servers : st[s] = "doubt"
NeverResolves == ~\E m \in msgs : m.k = "RESOLVED"
NeverAborts == cst # "aborted"
=============================================================================

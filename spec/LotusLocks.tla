----------------------------- MODULE LotusLocks -----------------------------
(* Lotus's lock policies, each lock on a memory server of its own: what       *)
(* src/engine/lotus/lock.c does, and the prepares of two-phase commit.  Rule  *)
(* names are those of docs/protocols/lotus-locks.md; `Off' names rules that   *)
(* are switched off.  Transaction 1 is the oldest.  Who is refused begins     *)
(* again, Tries times in all, at its old age.  A wounded transaction learns   *)
(* it from the server that wounded it when it next asks there, prepares       *)
(* there, or waits there; not while it waits elsewhere.                       *)
EXTENDS Integers, FiniteSets

CONSTANTS
  Txns, Locks,
  Policy,            \* "no_wait", "wait_die", "wound_wait"
  Asks,              \* of one try, at most
  Tries,
  Off                \* rules that are switched off

VARIABLES
  own, wait,         \* per lock and transaction: "-", "S", "X"
  status,            \* per transaction and server: "running", "wounded", "prepared"
  st,                \* per transaction: "run", "park", "prep", "commit", "abort", "done"
  parts,             \* per transaction: where it has asked and has not released
  asked, tried

vars == <<own, wait, status, st, parts, asked, tried>>
On(r) == r \notin Off
Conf(a, b) == a # "-" /\ b # "-" /\ (a = "X" \/ b = "X")
Min(s) == CHOOSE a \in s : \A b \in s : a <= b
Max(s) == CHOOSE a \in s : \A b \in s : a >= b
----------------------------------------------------------------------------
OwnersAllow(o, t, m) == \A u \in Txns \ {t} : ~Conf(m, o[u])
Passed(w, t, m) ==
  \E u \in Txns \ {t} : Conf(m, w[u]) /\ (IF On("oldest") THEN u < t ELSE u > t)
Grantable(o, w, t) ==
  /\ w[t] # "-"
  /\ OwnersAllow(o, t, w[t])
  /\ o[t] # "-" \/ ~On("waiters") \/ ~Passed(w, t, w[t])

RECURSIVE Promote(_, _)
Promote(o, w) ==
  LET can == {t \in Txns : Grantable(o, w, t)}
      ups == {t \in can : o[t] # "-"}
      t   == IF ups # {} THEN Min(ups) ELSE IF On("oldest") THEN Min(can) ELSE Max(can)
  IN  IF can = {} THEN <<o, w>>
      ELSE Promote([o EXCEPT ![t] = w[t]], [w EXCEPT ![t] = "-"])
----------------------------------------------------------------------------
Init ==
  /\ own = [l \in Locks |-> [t \in Txns |-> "-"]]
  /\ wait = [l \in Locks |-> [t \in Txns |-> "-"]]
  /\ status = [t \in Txns |-> [l \in Locks |-> "running"]]
  /\ st = [t \in Txns |-> "run"]
  /\ parts = [t \in Txns |-> {}]
  /\ asked = [t \in Txns |-> 0]
  /\ tried = [t \in Txns |-> 1]

Ask(t, l, m) ==
  LET o  == own[l]
      w  == wait[l]
      lose == {u \in Txns \ {t} :
                /\ Conf(m, o[u])
                /\ \/ status[u][l] = "wounded"
                   \/ /\ Policy = "wound_wait" /\ t < u
                      /\ status[u][l] = "running" \/ ~On("immune")}
      o1 == [u \in Txns |-> IF u \in lose THEN "-" ELSE o[u]]
      w1 == [u \in Txns |-> IF u \in lose THEN "-" ELSE w[u]]
      against == {u \in Txns \ {t} : Conf(m, o1[u])}
      passed == o[t] = "-" /\ On("waiters") /\ Passed(w1, t, m)
      answer ==
        IF against = {} /\ ~passed THEN "granted"
        ELSE IF Policy = "wound_wait" THEN "queued"
        ELSE IF Policy = "no_wait" THEN "died"
        ELSE IF (\E u \in against : u < t) \/ (passed /\ On("behind")) THEN "died" ELSE "queued"
      dead ==
        IF Policy = "wait_die" /\ answer # "died" /\ On("kill")
        THEN {u \in Txns \ {t} : Conf(m, w1[u]) /\ t < u} ELSE {}
      o2 == IF answer = "granted" THEN [o1 EXCEPT ![t] = m] ELSE o1
      w2 == [u \in Txns |-> IF u \in dead THEN "-"
                            ELSE IF u = t /\ answer = "queued" THEN m ELSE w1[u]]
      p  == Promote(o2, w2)
      told == {u \in Txns : w2[u] # "-" /\ p[2][u] = "-"}
  IN
  /\ st[t] = "run" /\ asked[t] < Asks
  /\ o[t] = "-" \/ (o[t] = "S" /\ m = "X")
  /\ parts' = [parts EXCEPT ![t] = @ \cup {l}]
  /\ asked' = [asked EXCEPT ![t] = @ + 1]
  /\ IF status[t][l] = "wounded"
     THEN st' = [st EXCEPT ![t] = "abort"] /\ UNCHANGED <<own, wait, status>>
     ELSE /\ own' = [own EXCEPT ![l] = p[1]]
          /\ wait' = [wait EXCEPT ![l] = p[2]]
          /\ status' = [u \in Txns |->
                         IF u \in lose /\ status[u][l] = "running"
                         THEN [status[u] EXCEPT ![l] = "wounded"] ELSE status[u]]
          /\ st' = [u \in Txns |->
                     IF u \in dead \/ (u \in lose /\ w[u] # "-") THEN "abort"
                     ELSE IF u \in told THEN "run"
                     ELSE IF u # t THEN st[u]
                     ELSE IF answer = "granted" THEN "run"
                     ELSE IF answer = "queued" THEN "park" ELSE "abort"]
  /\ UNCHANGED tried

Enough(t) ==
  /\ st[t] = "run" /\ asked[t] > 0
  /\ st' = [st EXCEPT ![t] = "prep"]
  /\ UNCHANGED <<own, wait, status, parts, asked, tried>>

Prepare(t, l) ==
  /\ st[t] = "prep" /\ l \in parts[t] /\ status[t][l] # "prepared"
  /\ IF status[t][l] = "wounded"
     THEN st' = [st EXCEPT ![t] = "abort"] /\ UNCHANGED status
     ELSE /\ status' = [status EXCEPT ![t][l] = "prepared"]
          /\ st' = [st EXCEPT ![t] =
                     IF \A k \in parts[t] \ {l} : status[t][k] = "prepared" THEN "commit" ELSE @]
  /\ UNCHANGED <<own, wait, parts, asked, tried>>

Release(t, l) ==
  LET o == [own[l] EXCEPT ![t] = "-"]
      w == [wait[l] EXCEPT ![t] = "-"]
      p == IF wait[l][t] # "-" /\ ~On("promote") THEN <<o, w>> ELSE Promote(o, w)
      told == {u \in Txns : w[u] # "-" /\ p[2][u] = "-"}
  IN
  /\ st[t] \in {"commit", "abort"} /\ l \in parts[t]
  /\ own' = [own EXCEPT ![l] = p[1]]
  /\ wait' = [wait EXCEPT ![l] = p[2]]
  /\ parts' = [parts EXCEPT ![t] = @ \ {l}]
  /\ status' = [status EXCEPT ![t][l] = "running"]
  /\ st' = [u \in Txns |-> IF u \in told THEN "run" ELSE st[u]]
  /\ UNCHANGED <<asked, tried>>

End(t) ==
  /\ st[t] \in {"commit", "abort"} /\ parts[t] = {}
  /\ IF st[t] = "abort" /\ tried[t] < Tries
     THEN /\ st' = [st EXCEPT ![t] = "run"]
          /\ tried' = [tried EXCEPT ![t] = @ + 1]
     ELSE st' = [st EXCEPT ![t] = "done"] /\ UNCHANGED tried
  /\ asked' = [asked EXCEPT ![t] = 0]
  /\ UNCHANGED <<own, wait, status, parts>>

Next ==
  \E t \in Txns :
    \/ \E l \in Locks : (\E m \in {"S", "X"} : Ask(t, l, m)) \/ Prepare(t, l) \/ Release(t, l)
    \/ Enough(t)
    \/ End(t)
Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
Exclusive == \A l \in Locks : \A t, u \in Txns : t # u => ~Conf(own[l][t], own[l][u])
\* What is committed held its locks when the last server prepared.
Held == \A t \in Txns : st[t] = "commit" => \A l \in parts[t] : own[l][t] # "-"
Ages ==
  \A l \in Locks : \A t, u \in Txns :
    (t # u /\ Conf(own[l][t], wait[l][u])) =>
      /\ Policy = "wait_die" => u < t
      /\ (Policy = "wound_wait" /\ status[t][l] = "running") => t < u
NoCircle == \/ \A t \in Txns : st[t] = "done"
            \/ \E t \in Txns : st[t] \notin {"done", "park"}
Oldest == Policy # "no_wait" => st[1] # "abort"
NobodyGrantable == \A l \in Locks : \A t \in Txns : ~Grantable(own[l], wait[l], t)

NeverDies == ~\E t \in Txns : st[t] = "abort" /\ \A l \in Locks : status[t][l] = "running"
NeverWounded == ~\E t \in Txns, l \in Locks : status[t][l] = "wounded"
NeverUpgrades == ~\E t \in Txns, l \in Locks : own[l][t] = "S" /\ wait[l][t] = "X"
NeverAgain == ~\E t \in Txns : tried[t] > 1 /\ st[t] = "commit"
=============================================================================

---------------------------- MODULE HermesForget ----------------------------
(* Hermes, and how its tombstones are forgotten (rule 12; forget.c): reported *)
(* by each member, agreed by all, forgotten.  The entry goes, the key's next  *)
(* life begins with lower timestamps, and may issue those of the first again. *)
(*                                                                            *)
(* ASSUMPTION, the bound on a message's life, which the graces exceed.  Dead  *)
(* when a member first reports T: messages about updates below T that were    *)
(* issued before T was first Valid; about T's ts in an earlier life, whose    *)
(* senders gave it up before T was issued; and its own messages about T (its  *)
(* stamp starts anew with each of them).  Dead when a member forgets T, a     *)
(* grace after it learned of the agreement: what was said about T by INV, ACK *)
(* and VAL; and its own questions and FORGETs about T.  Others' questions,    *)
(* reports and FORGETs live on; so do chunks.                                 *)
EXTENDS Hermes

CONSTANTS
  MaxForget,       \* entries forgotten in all
  MaxAsk           \* questions asked in all

VARIABLES
  nforget, nask

fvars == <<vars, nforget, nask>>

Pos(u) == CHOOSE i \in 1..Len(hist) : hist[i] = u
Older(T, m) == m.u # 0 /\ m.u # T /\ Gt(T, m.u) /\ upd[m.u].iss < Pos(T)
Talk == {"INV", "ACK", "ACK_ALL", "VAL"}
DeadAtReport(n, T) == {m \in msgs : m.t # "ITEM" /\
  (Older(T, m) \/ (Eq(m.u, T) /\ (m.f = n \/ m.u # T)))}
DeadAtForget(n, T) == {m \in msgs : m.t # "ITEM" /\ Eq(m.u, T) /\ (m.t \in Talk \/ m.f = n)}

Resting(n) == st[n] = "V" /\ IsTomb(cur[n])
HasShadow(n) == view[n] # 0 /\ views[view[n]].live # views[view[n]].oper /\ On("shadow_forget")
FAsk(n, T, q) == [t |-> "F_ASK", u |-> T, e |-> view[n], f |-> n, to |-> 0, v |-> q]
Report(n, m) == [t |-> "F_REPORT", u |-> m.u, e |-> view[n], f |-> n, to |-> m.f, v |-> m.v]
FForget(n, T) == [t |-> "FORGET", u |-> T, e |-> view[n], f |-> n, to |-> 0, v |-> "-"]

\* The grace is over, and (the asker after one, any other member after four) this member asks.  The
\* number of the question stands for the slot with its generation.
Ask(n) ==
  /\ On("agreed_forget")
  /\ nforget < MaxForget /\ nask < MaxAsk /\ nask' = nask + 1
  /\ Resting(n) /\ mark[n] # "A" /\ Oper(n) /\ ~HasShadow(n) /\ InHist(cur[n])
  /\ mark' = [mark EXCEPT ![n] = "R"]
  /\ msgs' = (msgs \ DeadAtReport(n, cur[n])) \cup {FAsk(n, cur[n], nask + 1)}
  /\ UNCHANGED <<cur, st, pend, last, view, views, copied, upd, ntim, told, nforget>>

\* FORGET_ASK: a holder that has rested reports; no entry is a report.  Who holds the same ts and is
\* not Valid does nothing: it may be the ts of the key's next life (D16, "ask_no_val" in Off).
RecvAsk(n) == \E m \in msgs :
  /\ m.t = "F_ASK" /\ m.f # n /\ view[n] # 0 /\ m.e = view[n]
  /\ \/ /\ cur[n] = 0
        /\ msgs' = msgs \cup {Report(n, m)}
        /\ UNCHANGED <<st, pend, mark, told>>
     \/ /\ Resting(n) /\ Eq(m.u, cur[n]) /\ ~HasShadow(n)
        /\ InHist(cur[n])
        /\ mark' = [mark EXCEPT ![n] = IF @ = "-" THEN "R" ELSE @]
        /\ msgs' = (msgs \ (IF mark[n] = "-" THEN DeadAtReport(n, cur[n]) ELSE {}))
                   \cup {Report(n, m)}
        /\ UNCHANGED <<st, pend, told>>
     \/ /\ cur[n] # 0 /\ Eq(m.u, cur[n]) /\ st[n] # "V" /\ ~On("ask_no_val")
        /\ TurnValid(n, cur[n])
        /\ UNCHANGED <<msgs, mark>>
  /\ UNCHANGED <<cur, last, view, views, copied, upd, ntim, nforget, nask>>

AllReported(n) ==                  \* all members of one epoch answered in that epoch: agreed
  /\ Resting(n) /\ mark[n] = "R"
  /\ \E q \in 1..nask :
       /\ FAsk(n, cur[n], q) \in msgs
       /\ \A p \in Others(n) : \E m \in msgs :
            m.t = "F_REPORT" /\ m.f = p /\ m.to = n /\ m.v = q /\ m.e = view[n]
  /\ mark' = [mark EXCEPT ![n] = "A"]
  /\ msgs' = msgs \cup {FForget(n, cur[n])}
  /\ UNCHANGED <<cur, st, pend, last, view, views, copied, upd, ntim, told, nforget, nask>>

RecvForget(n) == \E m \in msgs :
  /\ m.t = "FORGET" /\ m.f # n /\ view[n] # 0 /\ m.e = view[n]
  /\ Resting(n) /\ Eq(m.u, cur[n]) /\ mark[n] = "R"
  /\ mark' = [mark EXCEPT ![n] = "A"]
  /\ UNCHANGED <<msgs, cur, st, pend, last, view, views, copied, upd, ntim, told, nforget, nask>>

Forget(n) ==                       \* the second grace is over
  /\ nforget < MaxForget /\ nforget' = nforget + 1
  /\ Resting(n) /\ Oper(n) /\ ~HasShadow(n)
  /\ mark[n] = "A" \/ (~On("agreed_forget") /\ InHist(cur[n]))
  /\ cur' = [cur EXCEPT ![n] = 0]
  /\ last' = Sent(n, 0)
  /\ mark' = [mark EXCEPT ![n] = "-"]
  /\ msgs' = msgs \ (DeadAtForget(n, cur[n]) \cup DeadAtReport(n, cur[n]))
  /\ UNCHANGED <<st, pend, view, views, copied, upd, ntim, told, nask>>

Resend(n) ==                       \* mlt of a pending update or replay, for messages die here
  /\ ~(Again(n, view[n]) \subseteq msgs)
  /\ msgs' = msgs \cup Again(n, view[n])
  /\ UNCHANGED <<keys, view, views, copied, upd, ntim, told, nforget, nask>>

FInit == Init /\ nforget = 0 /\ nask = 0
FNext == \E n \in Procs :
  \/ (KeyStep(n) \/ ViewStep(n)) /\ UNCHANGED <<nforget, nask>>
  \/ Ask(n) \/ RecvAsk(n) \/ AllReported(n) \/ RecvForget(n) \/ Forget(n) \/ Resend(n)
FSpec == FInit /\ [][FNext]_fvars
----------------------------------------------------------------------------
\* I6: once a tombstone is agreed nobody that is believed says anything about it but that it may go
Quiet == [][\A m \in msgs' \ msgs : m.t \in Talk /\ m.f \in Newest.live /\ m.u <= Len(upd) =>
              \A n \in Newest.live : mark[n] = "A" => ~Eq(m.u, cur[n])]_fvars

(* What must be possible *)
NeverAllForgotten == \E n \in Newest.live : cur[n] # 0
NeverSecondLife == \A i \in 2..Len(upd) : ~(upd[i].first /\ upd[i].ts[1] <= upd[1].ts[1])
=============================================================================

---------------------------- MODULE HermesAsync -----------------------------
(* Hermes without leases ([H] 4.3.6): whoever is operational in its own view   *)
(* issues and reads; an answer that a dropped process could get wrong waits    *)
(* until a majority of the configured nodes has confirmed, afterwards, that it *)
(* is in the same epoch and has accepted no other (flow.c, node/call.c).       *)
(* These are reads, and overtaken writes (D15).  Needs Leases = FALSE; no      *)
(* joins.                                                                      *)
EXTENDS Hermes

CONSTANT MaxRead
VARIABLES
  acc,       \* per process: the highest epoch for which it has accepted a view
  asks,      \* what waits for confirmation: a read (w = 0), or an overtaken write w
  reads      \* history: what reads answered, and how long hist was at both ends

avars == <<vars, acc, asks, reads>>
Majority(S) == 2 * Cardinality(S) > N
MayRead == Cardinality({a \in asks : a.w = 0}) + Cardinality(reads) < MaxRead

Accept(p) ==                       \* a value for the next epoch; View.tla says how it is chosen
  /\ p \in Newest.live /\ view[p] = Len(views) /\ acc[p] <= Len(views) /\ Len(views) <= MaxDrop
  /\ acc' = [acc EXCEPT ![p] = Len(views) + 1]
  /\ UNCHANGED <<vars, asks, reads>>

DecideDrop(x) ==
  /\ Majority({p \in Newest.live : acc[p] = Len(views) + 1})
  /\ Drop(x)
  /\ UNCHANGED <<acc, asks, reads>>

Read(n) ==
  /\ Oper(n) /\ st[n] = "V" /\ MayRead
  /\ asks' = asks \cup {[n |-> n, e |-> view[n], w |-> 0, u |-> cur[n], from |-> Len(hist),
                         ok |-> {}]}
  /\ UNCHANGED <<vars, acc, reads>>

Await(n) == \E o \in over :        \* D15
  /\ o.n = n
  /\ over' = over \ {o}
  /\ asks' = asks \cup {[n |-> n, e |-> view[n], w |-> o.u, u |-> 0, from |-> 0, ok |-> {}]}
  /\ UNCHANGED <<msgs, keys, view, views, copied, upd, ntim, hist, done, lost, acc, reads>>

Confirm(p) == \E a \in asks :      \* CHECK and CHECK_OK; by p itself at once
  /\ p \notin a.ok /\ view[p] = a.e /\ (acc[p] <= a.e \/ ~On("confirms"))
  /\ asks' = (asks \ {a}) \cup {[a EXCEPT !.ok = @ \cup {p}]}
  /\ UNCHANGED <<vars, acc, reads>>

AnswerRead(n) == \E a \in asks :
  /\ a.n = n /\ a.w = 0 /\ view[n] = a.e /\ (Majority(a.ok) \/ ~On("check"))
  /\ asks' = asks \ {a}
  /\ reads' = reads \cup {[u |-> a.u, from |-> a.from, at |-> Len(hist)]}
  /\ UNCHANGED <<vars, acc>>

AnswerWrite(n) == \E a \in asks :
  /\ a.n = n /\ a.w # 0 /\ view[n] = a.e /\ (Majority(a.ok) \/ ~On("overtaken"))
  /\ asks' = asks \ {a}
  /\ done' = done \cup {[u |-> a.w, at |-> Len(hist)]}
  /\ UNCHANGED <<msgs, keys, view, views, copied, upd, ntim, hist, lost, over, acc, reads>>

Anew(n) == \E a \in asks :         \* the view changed: read again, ask again
  /\ a.n = n /\ view[n] # a.e
  /\ asks' = asks \ {a}
  /\ over' = IF a.w = 0 THEN over ELSE over \cup {[n |-> n, u |-> a.w]}
  /\ UNCHANGED <<msgs, keys, view, views, copied, upd, ntim, hist, done, lost, acc, reads>>

AInit == Init /\ acc = [p \in Procs |-> 1] /\ asks = {} /\ reads = {}
ANext == \E n \in Procs :
  \/ KeyStep(n) /\ UNCHANGED <<acc, asks, reads>>
  \/ Accept(n) \/ DecideDrop(n)
  \/ Read(n) \/ Await(n) \/ Confirm(n) \/ AnswerRead(n) \/ AnswerWrite(n) \/ Anew(n)
ASpec == AInit /\ [][ANext]_avars
----------------------------------------------------------------------------
\* a read returned what could be read at some moment while it lasted
ReadFresh == \A r \in reads : \E i \in r.from..r.at : Same(hist[i], r.u)

\* As Durable; but an RMW that all members have acknowledged to a dropped process may be done and
\* take its place unseen, just before the plain write that replaced it everywhere.
AsyncDurable == \A d \in done :
  \/ InHist(d.u)
  \/ \E i \in (upd[d.u].iss + 1)..(d.at + 1) :
       /\ i <= Len(hist) /\ ~IsRMW(hist[i])
       /\ IsRMW(d.u) => Same(hist[i - 1], upd[d.u].base)
  \/ d.at = Len(hist) /\ \A n \in Procs : Leased(n) => st[n] # "V"
AsyncAtomic == \A d, f \in {x \in done : IsRMW(x.u) /\ ~InHist(x.u)} :
  d.u # f.u => ~Same(upd[d.u].base, upd[f.u].base)

(* What must be possible *)
NeverConfirmedWrite == \A a \in asks : ~(a.w # 0 /\ Majority(a.ok))
=============================================================================

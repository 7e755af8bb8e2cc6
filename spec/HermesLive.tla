----------------------------- MODULE HermesLive -----------------------------
(* Hermes under fairness: with processes that stop and are dropped, views that *)
(* are adopted at last, and INVs and ACKs that arrive at last, every pending   *)
(* update ends, every key turns Valid, and every shadow becomes operational.   *)
(* A member goes on; of a process that was dropped nothing is asked, so a      *)
(* crash is the drop of a process that does nothing from some moment on.       *)
(* One condition for all suffices: within the bounds no execution is endless,  *)
(* so it says that nothing that must happen is left to do.                     *)
EXTENDS Hermes

CONSTANT Lossy               \* TRUE: VALs and ACK_ALLs may all be lost

Member(n) == n \in Newest.live
Must(n) == Member(n) /\
  (\/ RecvInv(n) \/ LastAck(n) \/ Replay(n) \/ ReplayDone(n) \/ Adopt(n)
   \/ Donate(n) \/ RecvItem(n) \/ Promote(n)
   \/ (~Lossy /\ (RecvVal(n) \/ RecvAckAll(n))))

LSpec == Spec /\ WF_vars(\E n \in Procs : Must(n))
----------------------------------------------------------------------------
Ends   == \A n \in Procs : (pend[n] # 0) ~> (pend[n] = 0 \/ ~Member(n))
Valid  == \A n \in Procs : (st[n] # "V") ~> (st[n] = "V" \/ ~Member(n))
Joined == \A n \in Joiners : Member(n) ~> (n \in Newest.oper \/ ~Member(n))

\* The same as an invariant, for larger bounds: where nothing that must happen is left to do, all has
\* ended.
AtRest ==
  \/ \A n \in Newest.live : st[n] = "V" /\ pend[n] = 0 /\ n \in Newest.oper
  \/ ENABLED (\E n \in Procs : Must(n))
=============================================================================

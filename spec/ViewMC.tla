------------------------------- MODULE ViewMC -------------------------------
(* Values and restrictions for the configurations of View.                   *)
EXTENDS View, TLC
P(n) == <<n, 1>>
P1    == {P(1)}
P1old == {P(1), <<1, 2>>}
P2new == {<<2, 2>>}
P2    == {P(2)}
P3    == {P(3)}
P12   == {P(1), P(2)}
P13   == {P(1), P(3)}

(* Learning the last view changes no property, but that with two proposers   *)
(* one may decide what another one has.                                      *)
NotLast == \A p \in Proc : hold[p].e < MaxEpoch
NotLastOther == \A p \in Proc : hold[p].e = MaxEpoch => p[1] \in Proposer

(* What phase one names, to steer a configuration: replacements for Drops.   *)
Once       == \A m \in msgs : m.t # "1a"
Name(S, p) == S \cap Live(hold[p])
Drop0(p)   == {{}}
Drop1(p)   == {Name({P(1)}, p)}
Drop3(p)   == {Name({P(3)}, p)}
Drop01(p)  == {{}, Name({P(1)}, p)}
Drop12(p)  == {Name({P(1), P(2)}, p)}
Drop21(p)  == {IF hold[p].e = 1 THEN Name({P(2)}, p) ELSE Name({P(1)}, p)}
Drop21r(p) == {Name({P(2)}, p)}
DropEach(p) == IF p = P(1) /\ Once THEN {{P(3)}} ELSE IF p = P(3) /\ ~Once THEN {{P(1)}} ELSE {}
DropOut(p) == LET v == hold[p] IN {Name({P(1)}, p), {x \in Live(v) : x[1] \notin v.conf}}
DropSettle(p) == {IF hold[p].e = 3 THEN Name({P(2)}, p) ELSE Name({P(1)}, p)}
DropFirst1(p)  == IF Once THEN {{P(1)}} ELSE {{}}
(* Suspicion that is right, and only of what happened.                       *)
Dead(p)   == {x \in Live(hold[p]) : st[x] = "dead"}
Due(p)    == Asks(hold[p]) \cup Ready(hold[p])
DropDead(p) == IF Dead(p) # {} THEN {Dead(p)} ELSE {}
DropDue(p)  == IF Dead(p) # {} THEN {Dead(p)} ELSE IF Due(p) # {} THEN {{}} ELSE {}
DropLeft(p) == IF left[p] \cap Live(hold[p]) # {} THEN {left[p] \cap Live(hold[p])} ELSE {}
(* Node 3 is dead, and the first ballot suspects node 1 as well, wrongly.    *)
DropWrong(p) == IF Dead(p) = {} THEN {} ELSE IF Once THEN {{P(1)}} ELSE {Dead(p)}
(* Node 1 forms the first view; node 2 finishes what it accepted.            *)
Turns(p) == IF (p = P(1) /\ Once) \/ (p = P(2) /\ acc[p].b > 0) THEN {{}} ELSE {}

(* One ballot by the first process of node 1, one by the second; nobody stops*)
(* before a first view is decided.                                           *)
FormTwice(p) == IF (p = P(1) /\ Once) \/ (p = <<1, 2>> /\ ~Once) THEN {{}} ELSE {}
(* One ballot by node 1, then one by node 3.                                 *)
FormEach(p)  == IF (p = P(1) /\ Once) \/ (p = P(3) /\ ~Once) THEN {{}} ELSE {}
CutAfter     == (\E p \in Proc : st[p] = "dead") => dec # {}

(* Node 2 has stopped when something is proposed; grants are of nodes 1 and  *)
(* 2 alone, each as its first process.                                       *)
Successor == <<2, 2>>
Stopped   == /\ NotLast /\ \A x \in msgs : x.p # P(2)
             /\ grant[P(3)][P(1)] = 0 /\ grant[Successor][P(1)] = 0
             /\ \A v \in dec : v.e = 2 => Live(v) = {P(1), Successor, P(3)}
CrashedSecond == Stopped /\ (msgs # {} => st[P(2)] = "dead")
(* It is only paused, and goes on when its successor helps to drop node 1.   *)
Dropping  == \E x \in msgs : x.t = "2a" /\ x.i = 3
OldSecond == /\ Stopped /\ st[P(2)] # "dead"
             /\ msgs # {} /\ ~Dropping => st[P(2)] = "paused"
             /\ ~Dropping => \A q \in Proc : lease[P(1)][q] = 0
OldFirst  == OldSecond /\ hold[P(1)].e = 1
(* Nodes 1 and 2 form a view, then 3 and the second process of 2.            *)
TwoForm   == /\ CutAfter /\ \A p \in Proc \ {P(1)} : hold[p].e = 0
             /\ \A x \in msgs : x.p \in IF x.b = 1 THEN P12 ELSE {P(3), Successor}

(* The same when a view is there already.                                    *)
TwoVote   == /\ NotLastOther
             /\ \A x \in msgs : x.p \in IF x.b = 1 THEN P12 ELSE {P(3), Successor}

(* Recover comes second, when the first proposer is dead.                    *)
RecoverLast == NotLastOther /\ \A m \in msgs : m.t = "1a" => (m.b = 1) = ~m.rec

(* The decided view was told to nobody.                                      *)
Untold(p, v) == FALSE
Finishes == (dec # {} /\ st[P(1)] = "dead") ~> (hold[P(2)].e > 0 \/ st[<<1, 2>>] = "dead")
(* The order that names node 2 alone is carried out, or overtaken.            *)
Again == (\E m \in msgs : m.t = "1a" /\ m.all = {2}) ~> hold[P(2)].e > 1
Settles == (\E m \in msgs : m.t = "2a" /\ m.b = MaxBallot) ~> (\E p \in First : Without(p))

(* Nodes 1, 2, 3 change to 1, 3, 4; 4 is admitted and promoted; 1 missed all *)
(* that and holds a lease by 1 and 2.                                        *)
Joint2 == Changed(V1, {1, 3, 4}, {1, 2, 3}, {}, {P(4)}, {})
Joint3 == Changed(Joint2, {1, 3, 4}, {1, 2, 3}, {}, {}, {P(4)})
InitJoint ==
           /\ st    = [p \in Proc |-> "up"]
           /\ hold  = [p \in Proc |-> IF p = P(1) THEN V1 ELSE Joint3]
           /\ wait  = [p \in Proc |-> 0]
           /\ prom  = [p \in Proc |-> NoProm]
           /\ acc   = [p \in Proc |-> NoAcc]
           /\ grant = [q \in Proc |-> [p \in Victim |-> IF q = P(2) THEN G ELSE 0]]
           /\ lease = [p \in Victim |-> [q \in Proc |-> IF q \in P12 THEN L ELSE 0]]
           /\ fly   = [p \in Victim |-> [q \in Proc |-> 0]]
           /\ leaving = {} /\ left = [p \in Proc |-> {}]
           /\ msgs  = {}
           /\ dec   = {V1, Joint2, Joint3}
           /\ inn   = [p \in Proc |-> hold[p].e]
           /\ copied = {P(4)}
           /\ joined = [p \in Proc |-> IF p = P(4) THEN 2 ELSE 1]
           /\ file  = [n \in Node |-> <<NoGen, 0>>]
           /\ kept  = [p \in Proc |-> <<NoGen, 0>>]
           /\ asked = {}
(* Node 1 sees nothing of what the others do, and that takes no time.        *)
FirstStill == NotLast /\ lease[P(1)][P(2)] = L /\ \A m \in msgs : m.p # P(1)
SpecJoint == InitJoint /\ [][Next]_vars
=============================================================================

-------------------------------- MODULE View --------------------------------
(* Views and leases: docs/protocols/view.md, whose rules are named here as   *)
(* in enum view_rule of src/view/machine.h.  spec/README.md has the table    *)
(* action -> C function and what TLC found; ViewMC.tla holds the values that *)
(* a .cfg cannot write.                                                      *)
(*                                                                           *)
(* A process is <<node, k>>: the k-th incarnation of the node.  Members,     *)
(* grants and votes name processes; majorities count configured nodes.  A    *)
(* configuration switches rules off in Off to show the fault that each one   *)
(* prevents.                                                                 *)
(*                                                                           *)
(* Abstractions.                                                             *)
(* - Paxos messages stay in a set for ever: loss is never reading one,       *)
(*   doubling and reordering come free.  So does a decided view.             *)
(* - A heartbeat is read at once: a later reading names an older epoch and   *)
(*   gives a shorter lease.  Its grant arrives at once too, or, with Late,   *)
(*   in a step of its own at any later time.                                 *)
(* - Time is global ticks; the drift of clocks is the margin G - L.          *)
(* - Suspicion, and who proposes when, are arbitrary, and so is how long a   *)
(*   promise denies grants: with promise-drops off none ever does.           *)
(* - Refusals, of which safety never depends, are messages not read.         *)
(* - Only leases of Victim are followed; grants to others would only forbid  *)
(*   drops, so leaving them out adds behaviours.  Likewise only the workers  *)
(*   of Slow adopt a view later than the process learns it.                  *)
(* - One proposer may have several ballots at once: it stands for several.   *)
EXTENDS Naturals, FiniteSets

CONSTANTS Node,       \* all nodes, numbers
          Conf,       \* those configured at first
          MaxInc,     \* incarnations of a faulty node
          MaxEpoch, MaxBallot,        \* ballots of an instance
          L, G,       \* the holder counts L from sending, the granter G > L from receipt
          Victim,     \* processes whose leases are followed
          Faulty, Pausing,            \* nodes that crash and restart; that are paused
          Proposer,   \* nodes that propose
          Leaver, Slow, Reader,       \* processes
          Wanted,     \* configured sets that the operator may ask for
          Survivors,  \* sets of nodes that the operator may recover with ...
          Truthful,   \* ... TRUE: only when these live and all others are dead
          Cut,        \* sets {a, b} of nodes that cannot talk
          Eager,      \* TRUE: every allowed grant is renewed at every tick
          Late,       \* TRUE: grants travel
          Boot,       \* TRUE: start with no view (rule 5); FALSE: view 1 is decided
          Bootstrap,  \* TRUE: the operator says --bootstrap
          Off         \* the rules switched off

VARIABLES st,     \* process -> "off" | "up" | "paused" | "dead"
          hold,   \* process -> the decided view that it holds
          wait,   \* process -> ticks during which it accepts no drop (admission-wait)
          prom,   \* process -> promised ballot b and the drops d it denies grants to
          acc,    \* process -> accepted ballot b and view v, both of instance hold.e + 1
          grant,  \* granter -> grantee -> ticks left, as the granter counts
          lease,  \* grantee -> granter -> ticks left, as the grantee counts
          fly,    \* the same for the grant that is on its way
          leaving,\* processes that gave their lease up for ever
          left,   \* process -> those of whom it heard that
          msgs,   \* Paxos messages ever sent
          dec,    \* views that a proposer saw a quorum accept
          inn,    \* process -> epoch that all its workers adopted
          copied, \* processes that hold every key
          joined, \* process -> epoch that admitted it, as it first learned
          file,   \* node -> what its state file keeps, generation and epoch
          kept,   \* process -> what it found there
          asked   \* asynchronous reads: who asks about which epoch, and who confirmed since
paxos == <<prom, acc, msgs, dec>>
times == <<wait, grant, lease, fly>>
roles == <<inn, copied, joined>>
disk  == <<file, kept>>
goers == <<leaving, left>>
vars  == <<st, hold, paxos, times, roles, disk, goers, asked>>

On(r)    == r \notin Off
Proc     == {p \in Node \X (1..MaxInc) : p[2] = 1 \/ p[1] \in Faulty}
First    == {p \in Proc : p[2] = 1}
Epoch    == 1..MaxEpoch
Nodes(S) == {p[1] : p \in S}
Minus1(x) == IF x = 0 THEN 0 ELSE x - 1

----------------------------------------------------------------- (* views *)
(* g generation, o the one that it ended, e epoch, conf and old the          *)
(* configured sets, mem the members with the epoch that admitted them, their *)
(* role and c_id, next the next c_id.                                        *)
NoMem  == [p \in {} |-> 0]
NoGen  == <<0, 0>>
NoView == [g |-> NoGen, o |-> NoGen, e |-> 0, conf |-> {}, old |-> {}, mem |-> NoMem, next |-> 1]
Live(v) == DOMAIN v.mem
Ops(v)  == {p \in Live(v) : v.mem[p].op}
Stays(base, v, p) == p \in Live(base) /\ p \in Live(v) /\ base.mem[p].adm = v.mem[p].adm
(* view_dropped: shadows hold no lease, so nobody waits for them.            *)
Dropped(base, v) == {p \in Ops(base) : ~Stays(base, v, p)}
MajorityOf(set, N) == 2 * Cardinality(N \cap set) > Cardinality(set)
(* Rule 6: of both configured sets while two stand.                          *)
Majority(v, N) == MajorityOf(v.conf, N)
                  /\ (On("joint-majority") /\ v.old # {} => MajorityOf(v.old, N))
Below(n, N) == Cardinality({x \in N : x < n})
Fresh(S, e, op, next) == [p \in S |-> [adm |-> e, op |-> op, cid |-> next + Below(p[1], Nodes(S))]]
Joined(f, h) == [p \in DOMAIN f \cup DOMAIN h |-> IF p \in DOMAIN f THEN f[p] ELSE h[p]]
FirstView(S, b) == [g |-> <<1, b>>, o |-> NoGen, e |-> 1, conf |-> Nodes(S), old |-> {},
                    mem |-> Fresh(S, 1, TRUE, 1), next |-> 1 + Cardinality(S)]
V1 == FirstView({p \in First : p[1] \in Conf}, 0)

Up(p)       == st[p] = "up"
Member(p)   == p \in Live(hold[p])
Linked(p,q) == {p[1], q[1]} \notin Cut
NoAcc       == [b |-> 0, v |-> NoView]
NoProm      == [b |-> 0, d |-> {}]

---------------------------------------------------------------- (* leases *)
(* view_denied: rule 2, those whom the promised or held proposal drops; and  *)
(* those whom the accepted view drops.                                       *)
Denied(q) == (IF On("promise-drops") THEN prom[q].d ELSE {})
             \cup (IF acc[q].b > 0 THEN Dropped(hold[q], acc[q].v) ELSE {})
(* grant_epoch: the epoch that a heartbeat must name.                        *)
Stamp(q) == hold[q].e + (IF acc[q].b > 0 THEN 1 ELSE 0)

MayGrant(q, p) == /\ Up(q) /\ Up(p) /\ Linked(p, q)
                  /\ hold[p].g = hold[q].g           \* frames of other generations are not read
                  /\ p \in Live(hold[q]) /\ p \notin left[q] \cup Denied(q)
                  /\ On("members-grant") => Member(q)
                  /\ On("grant-epoch") => hold[p].e >= Stamp(q)
(* A grant counts only if the holder's own view names the granter.           *)
Counts(p) == {q \in Proc : lease[p][q] > 0 /\ (On("grant-members") => q \in Live(hold[p]))}
HoldsLease(p) == /\ st[p] \in {"up", "paused"} /\ p \in Ops(hold[p])
                 /\ On("leave-ends-lease") => p \notin leaving
                 /\ Majority(hold[p], Nodes(Counts(p)))

Tick == /\ Eager => \A q \in Proc, p \in Victim : MayGrant(q, p) => lease[p][q] = L
        /\ wait'  = [p \in Proc |-> Minus1(wait[p])]
        /\ grant' = [q \in Proc |-> [p \in Victim |-> Minus1(grant[q][p])]]
        /\ lease' = [p \in Victim |-> IF st[p] = "paused" /\ ~On("boottime")
                       THEN lease[p]                 \* the clock must run on while paused
                       ELSE [q \in Proc |-> Minus1(lease[p][q])]]
        /\ fly'   = [p \in Victim |-> [q \in Proc |-> Minus1(fly[p][q])]]
        /\ UNCHANGED <<st, hold, paxos, roles, disk, goers, asked>>

(* A heartbeat of p asks q for a grant; the own one (q = p) is never waited  *)
(* for.  A grant names the process that it is for (grant-incarnation).       *)
Grant(q, p) ==
    LET for == {x \in Victim : x = p \/ (~On("grant-incarnation") /\ x[1] = p[1] /\ Up(x))}
    IN  /\ MayGrant(q, p)
        /\ grant' = [grant EXCEPT ![q][p] = IF q = p THEN 0 ELSE G]
        /\ IF Late /\ q # p
           THEN /\ fly' = [x \in Victim |-> IF x \in for THEN [fly[x] EXCEPT ![q] = L] ELSE fly[x]]
                /\ UNCHANGED lease
           ELSE /\ lease' = [x \in Victim |-> IF x \in for THEN [lease[x] EXCEPT ![q] = L]
                                              ELSE lease[x]]
                /\ UNCHANGED fly
        /\ UNCHANGED <<st, hold, wait, paxos, roles, disk, goers, asked>>

(* Only the youngest grant matters, for it gives the longest lease.          *)
Arrive(q, p) ==
    /\ Late /\ fly[p][q] > lease[p][q] /\ Up(p)
    /\ On("grant-members") => q \in Live(hold[p])
    /\ lease' = [lease EXCEPT ![p][q] = fly[p][q]]
    /\ UNCHANGED <<st, hold, wait, grant, fly, paxos, roles, disk, goers, asked>>

(* Leaving: the lease ends for good, and only then the process says so; who  *)
(* hears it forgets the grants that it gave this process.                    *)
Leave(p) == /\ p \in Leaver \ leaving /\ Up(p) /\ Member(p) /\ Live(hold[p]) # {p}
            /\ leaving' = leaving \cup {p}
            /\ UNCHANGED <<st, hold, paxos, times, roles, disk, left, asked>>
HearLeft(q, p) == /\ p \in leaving \ left[q] /\ Up(q) /\ Up(p) /\ q # p /\ Linked(p, q)
                  /\ hold[p].g = hold[q].g /\ p \in Live(hold[q])
                  /\ left'  = [left EXCEPT ![q] = @ \cup {p}]
                  /\ grant' = IF p \in Victim THEN [grant EXCEPT ![q][p] = 0] ELSE grant
                  /\ UNCHANGED <<st, hold, wait, lease, fly, paxos, roles, disk, leaving, asked>>

----------------------------------------------------------------- (* Paxos *)
(* The answers of nodes that count in p's instance.                          *)
Voters(p, S) == IF hold[p].e = 0 THEN {x \in S : x[1] \in Conf}
                ELSE IF On("members-vote") THEN S \cap Live(hold[p]) ELSE S
All(set, N) == IF On("first-view-all") THEN set \subseteq N ELSE MajorityOf(set, N)

(* Rule 5: who may take part in a first view.  Repeat: the predecessor kept  *)
(* the first view as decided and died before anybody else had learned it.    *)
MayForm(p) == hold[p].e = 0
              /\ (kept[p] = <<NoGen, 0>> \/ Bootstrap \/ ~On("kept-state"))
Repeat(p, gens) == /\ On("repeat") /\ hold[p].e = 0 /\ kept[p][2] = 1 /\ kept[p][1] \in gens
MayVote(p, i, gens) == /\ Up(p) /\ hold[p].e = i - 1
                       /\ IF i = 1 THEN p \notin leaving /\ (MayForm(p) \/ Repeat(p, gens))
                          ELSE On("members-vote") => Member(p)

Send(m) == msgs' = msgs \cup {m}
(* Phase one names whom the proposal drops (rule 2).  all: the nodes that    *)
(* must all agree: of a first view, and of recover (rec); else empty.        *)
Begin(p, D, all, rec) ==
    LET i == hold[p].e + 1
        b == 1 + Cardinality({m \in msgs : m.t = "1a" /\ m.i = i})
    IN  /\ Up(p) /\ i <= MaxEpoch /\ b <= MaxBallot
        /\ Send([t |-> "1a", i |-> i, b |-> b, p |-> p, d |-> D, all |-> all, rec |-> rec,
                 g |-> hold[p].g])
        /\ UNCHANGED <<st, hold, times, prom, acc, dec, roles, disk, goers, asked>>
Prepare(p, D) == /\ p[1] \in Proposer
                 /\ IF hold[p].e = 0 THEN Boot /\ MayForm(p) ELSE Member(p)
                 /\ Begin(p, D, IF hold[p].e = 0 THEN Conf ELSE {}, FALSE)
(* The operator names the survivors.  A lease is the word of a majority, so  *)
(* whoever holds one takes no part.  The order waits for one lease: then the *)
(* grants of the dead have run out, which no acceptor waits for.             *)
Recover(p, S) ==
    /\ hold[p].e > 0 /\ p \in Ops(hold[p]) /\ p \notin leaving
    /\ p[1] \in S /\ S \subseteq Nodes(Live(hold[p]))
    /\ ~(p \in Victim /\ HoldsLease(p))
    /\ Truthful => \A x \in Proc : IF x[1] \in S THEN x \in Live(hold[p]) => st[x] # "dead"
                                  ELSE st[x] \in {"dead", "off"}
    /\ On("recover-waits") =>
         \A x \in Victim, q \in Proc : q[1] \notin S => lease[x][q] = 0 /\ fly[x][q] = 0
    /\ Begin(p, {x \in Live(hold[p]) : x[1] \notin S}, S, TRUE)

Promise(q, m) ==
    /\ m.t = "1a" /\ MayVote(q, m.i, {kept[q][1]}) /\ Linked(q, m.p)
    /\ m.i > 1 => m.g = hold[q].g
    /\ m.b > prom[q].b
    /\ m.rec => ~(q \in Victim /\ HoldsLease(q))
    /\ prom' = [prom EXCEPT ![q] = [b |-> m.b, d |-> m.d \cap Live(hold[q])]]
    /\ Send([t |-> "1b", i |-> m.i, b |-> m.b, p |-> q, a |-> acc[q]])
    /\ UNCHANGED <<st, hold, times, acc, dec, roles, disk, goers, asked>>

(* asks_to_join: in a heartbeat that names the present epoch and no          *)
(* admission.  Said of a process that may be gone by now.                    *)
Asks(base) == {x \in Proc : /\ st[x] # "off" /\ x \notin leaving
                            /\ IF On("no-readmit") THEN hold[x] = base /\ ~Member(x)
                               ELSE x \notin Live(base)}
(* plan_promotes: shadows that said in this epoch that they hold every key.  *)
Ready(base) == {x \in Live(base) \ Ops(base) :
                  /\ hold[x] = base /\ x \in copied
                  /\ On("adopted") => inn[x] = base.e}
(* configuration_settled.  A shadow that leaves is not waited for.           *)
Settled(base, D, gone) == LET stay == {x \in Live(base) \ D :
                                        x[1] \in base.conf /\ (x \in gone => x \in Ops(base))}
                    IN  /\ base.old # {} /\ stay \subseteq Ops(base)
                        /\ MajorityOf(base.conf, Nodes(stay))
                        /\ On("settled") => \A x \in Live(base) \ D : hold[x] = base

(* view_plan_apply.                                                          *)
Changed(base, conf, old, D, A, R) ==
    LET rest == [p \in Live(base) \ D |-> [base.mem[p] EXCEPT !.op = @ \/ p \in R]]
        next == IF On("cid-counter") THEN base.next
                ELSE 1 + Cardinality(Live(base) \ D)      \* the first that no member has
    IN  [g |-> base.g, o |-> base.o, e |-> base.e + 1, conf |-> conf, old |-> old,
         mem |-> Joined(rest, Fresh(A, base.e + 1, FALSE, next)),
         next |-> next + Cardinality(A)]

(* view_plan_make: which view a proposer may choose when nothing was         *)
(* accepted.  Nobody is dropped whom phase one did not name.                 *)
Plans(base, named, gone) ==
    LET sets(D) ==
          {<<base.conf, base.old, D>>}
          \cup {<<w, base.conf, D>> : w \in {x \in Wanted : base.old = {} /\ x # base.conf}}
          \cup (LET out == {x \in Live(base) : x[1] \notin base.conf}
                IN  IF Settled(base, D, gone) /\ out \subseteq named
                    THEN {<<base.conf, {}, D \cup out>>} ELSE {})
        plans == UNION {sets(D) : D \in SUBSET named}
        fits(v) == /\ On("live-majority") => Majority(v, Nodes(Live(v)))
                   /\ Ops(v) # {}
                   /\ v.conf # base.conf \/ v.old # base.old \/ v.mem # base.mem
    IN  UNION {{v \in {Changed(base, s[1], s[2], s[3], A, R) :
                        A \in {X \in SUBSET {x \in Asks(base) : /\ x \notin Live(base) \ s[3]
                                               /\ x[1] \in s[1] \ Nodes(Live(base) \ s[3])} :
                                 \A x, y \in X : x[1] = y[1] => x = y},
                        R \in SUBSET (Ready(base) \ s[3])} : fits(v)} : s \in plans}

(* view_first_value: the processes that promised, or else were heard.        *)
Firsts(m, who) ==
    {FirstView(S, m.b) :
        S \in {X \in SUBSET {x \in Proc : x[1] \in Conf /\ st[x] # "off"} :
                 /\ Nodes(X) = Conf /\ Cardinality(X) = Cardinality(Conf)
                 /\ \A x \in X : x \in who \/ x[1] \notin Nodes(who)}}

(* view_recover_value: old is the view that a survivor accepted, or none.    *)
Recovered(m, base, old) ==
    LET stay == {x \in Live(base) : x[1] \in m.all}
                 \ (IF old.b > 0 /\ On("leave-out") THEN Dropped(base, old.v) ELSE {})
    IN  [base EXCEPT !.g = <<m.i, m.b>>, !.o = base.g, !.e = m.i, !.conf = Nodes(stay),
                     !.old = {}, !.mem = [x \in stay |-> base.mem[x]]]

Open(m) == /\ m.t = "1a" /\ Up(m.p) /\ hold[m.p].e = m.i - 1
           /\ ~ \E x \in msgs : x.t = "2a" /\ x.i = m.i /\ x.b = m.b
(* value_choose.  binds: an earlier recover binds a later one only while all *)
(* whom it names survive (recover-again).  unheard: a view that drops        *)
(* somebody keeps only members that promised this ballot.                    *)
Choices(m) ==
    LET base == hold[m.p]
        one  == {x \in msgs : x.t = "1b" /\ x.i = m.i /\ x.b = m.b}
        who  == Voters(m.p, {x.p : x \in one})
        had  == {x.a : x \in {y \in one : y.a.b > 0 /\ y.p \in who}}
        best == IF had = {} THEN NoAcc ELSE CHOOSE a \in had : \A c \in had : c.b <= a.b
        gone == {x \in m.d : x[1] \in base.conf}
        binds == best.b > 0 /\ best.v.g # base.g
                 /\ (On("recover-again") => best.v.conf \subseteq m.all)
        enough == IF m.i = 1 THEN All(Conf, Nodes(who))
                  ELSE IF m.rec THEN m.all \subseteq Nodes(who) ELSE Majority(base, Nodes(who))
    IN  IF ~Open(m) \/ ~enough THEN {}
        ELSE IF m.rec /\ ~binds
             THEN LET v == Recovered(m, base, best) IN IF Ops(v) = {} THEN {} ELSE {v}
        ELSE IF best.b > 0 THEN {best.v}
        ELSE IF m.i = 1 THEN Firsts(m, who)
        ELSE IF On("unheard") /\ gone # {} /\ ~(Nodes(Live(base) \ m.d) \subseteq Nodes(who))
             THEN {}
        ELSE Plans(base, m.d, left[m.p])

Propose(m, v) ==                       \* v: one of Choices(m)
    /\ Send([t |-> "2a", i |-> m.i, b |-> m.b, p |-> m.p, v |-> v,
             g |-> hold[m.p].g])
    /\ UNCHANGED <<st, hold, times, prom, acc, dec, roles, disk, goers, asked>>

(* What of a phase-two request keeps q from accepting it now: rules 1 and 3. *)
Waits(q, v) == Dropped(hold[q], v) \ ({q} \cup left[q])
Clear(q, v) == /\ On("grants-first") => \A x \in Waits(q, v) \cap Victim : grant[q][x] = 0
               /\ On("admission-wait") => Waits(q, v) = {} \/ wait[q] = 0
Takes(q, m) == /\ m.t = "2a" /\ MayVote(q, m.i, {m.v.g}) /\ Linked(q, m.p)
               /\ m.i > 1 => m.g = hold[q].g
               /\ m.b >= prom[q].b /\ m.b > acc[q].b

(* A request that has to wait stops the grants it waits for: its view may be *)
(* an earlier ballot's and drop others than phase one named (rule 2).        *)
Hold(q, m) ==
    /\ On("promise-drops") /\ On("hold")
    /\ Takes(q, m) /\ ~Clear(q, m.v)
    /\ prom[q] # [b |-> m.b, d |-> Dropped(hold[q], m.v)]
    /\ prom' = [prom EXCEPT ![q] = [b |-> m.b, d |-> Dropped(hold[q], m.v)]]
    /\ UNCHANGED <<st, hold, times, acc, msgs, dec, roles, disk, goers, asked>>

(* Accepting a view without oneself ends one's lease (rule 4).               *)
Accept(q, m) ==
    /\ Takes(q, m) /\ Clear(q, m.v)
    /\ prom' = [prom EXCEPT ![q] = [b |-> m.b, d |-> Dropped(hold[q], m.v)]]
    /\ acc'  = [acc EXCEPT ![q] = [b |-> m.b, v |-> m.v]]
    /\ lease' = IF q \in Victim /\ q \in Dropped(hold[q], m.v) /\ On("accept-ends-lease")
                THEN [lease EXCEPT ![q] = [y \in Proc |-> 0]] ELSE lease
    /\ Send([t |-> "2b", i |-> m.i, b |-> m.b, p |-> q, v |-> m.v])
    /\ UNCHANGED <<st, hold, wait, grant, fly, dec, roles, disk, goers, asked>>

(* What is left of a process that stops, or that is told to wipe itself.     *)
Forget(p) ==
    /\ hold'  = [hold EXCEPT ![p] = NoView]
    /\ prom'  = [prom EXCEPT ![p] = NoProm]
    /\ acc'   = [acc EXCEPT ![p] = NoAcc]
    /\ wait'  = [wait EXCEPT ![p] = 0]
    /\ grant' = [grant EXCEPT ![p] = [x \in Victim |-> 0]]
    /\ lease' = [x \in Victim |-> IF x = p THEN [y \in Proc |-> 0] ELSE lease[x]]
    /\ fly'   = [x \in Victim |-> IF x = p THEN [y \in Proc |-> 0] ELSE fly[x]]
    /\ leaving' = leaving \ {p}
    /\ left'  = [left EXCEPT ![p] = {}]
    /\ inn'   = [inn EXCEPT ![p] = 0]
    /\ copied' = copied \ {p}
    /\ joined' = [joined EXCEPT ![p] = 0]
    /\ kept'  = [kept EXCEPT ![p] = <<NoGen, 0>>]

(* view_learn.  Rule 8: who learns of a view without itself wipes itself,    *)
(* and so does who was dropped and let in again without knowing.             *)
Adopt(p, v) ==
    LET was  == Member(p)
        is   == p \in Live(v)
                /\ (was /\ On("no-readmit") => Stays(hold[p], v, p))
        same == {x \in Proc : Stays(hold[p], v, x)}
    IN  IF was /\ ~is /\ On("wipe")
        THEN st' = [st EXCEPT ![p] = "dead"] /\ Forget(p) /\ UNCHANGED file
        ELSE /\ hold' = [hold EXCEPT ![p] = v]
             /\ wait' = [wait EXCEPT ![p] = IF v.e > 1 /\ is /\ ~was THEN G ELSE @]
             /\ prom' = [prom EXCEPT ![p] = NoProm]
             /\ acc'  = [acc EXCEPT ![p] = NoAcc]
             /\ grant' = [grant EXCEPT ![p] = [x \in Victim |-> IF x \in same THEN @[x] ELSE 0]]
             /\ lease' = IF p \in Victim /\ On("grant-members")
                         THEN [lease EXCEPT ![p] = [x \in Proc |-> IF x \in same THEN @[x] ELSE 0]]
                         ELSE lease
             /\ inn'  = [inn EXCEPT ![p] = IF p \in Slow THEN @ ELSE v.e]
             /\ joined' = [joined EXCEPT ![p] = IF @ = 0 /\ is THEN v.mem[p].adm ELSE @]
             /\ file' = IF Boot THEN [file EXCEPT ![p[1]] = <<v.g, v.e>>] ELSE file
             /\ fly'  = IF p \in Victim /\ hold[p].g # v.g
                        THEN [fly EXCEPT ![p] = [x \in Proc |-> 0]] ELSE fly
             /\ UNCHANGED <<st, leaving, left, copied, kept>>

Learn(p, v) == /\ Up(p) /\ v \in dec /\ v.e > hold[p].e
               /\ hold[p].e = 0 \/ hold[p].g \in {v.g, v.o}
               /\ Adopt(p, v)
               /\ UNCHANGED <<msgs, dec, asked>>

(* The proposer counts acceptances, and is the first to learn.               *)
Decide(m) ==
    LET p    == m.p
        base == hold[p]
        who  == Nodes(Voters(p, {x.p : x \in {y \in msgs : y.t = "2b" /\ y.i = m.i
                                                           /\ y.b = m.b}}))
    IN  /\ m.t = "2a" /\ Up(p) /\ base.e = m.i - 1
        /\ IF m.i = 1 THEN All(Conf, who)
           ELSE IF m.v.g # base.g THEN m.v.conf \subseteq who ELSE Majority(base, who)
        /\ dec' = dec \cup {m.v}
        /\ Adopt(p, m.v)
        /\ UNCHANGED <<msgs, asked>>

----------------------------------------------------- (* roles, reads, faults *)
Adopted(p) == /\ p \in Slow /\ Up(p) /\ inn[p] < hold[p].e
              /\ inn' = [inn EXCEPT ![p] = hold[p].e]
              /\ UNCHANGED <<st, hold, paxos, times, copied, joined, disk, goers, asked>>
(* A shadow copies what it misses once its workers are where it is a member. *)
Copy(p) == /\ Up(p) /\ Member(p) /\ p \notin Ops(hold[p]) /\ p \notin copied
           /\ copied' = copied \cup {p}
           /\ UNCHANGED <<st, hold, paxos, times, inn, joined, disk, goers, asked>>

(* Rule 7.  A reader asks for confirmations of its epoch after the read; the *)
(* case that matters is that the next view is decided by then.               *)
Confirms(q, e) == Up(q) /\ Member(q) /\ hold[q].e = e /\ (On("confirm") => acc[q].b = 0)
Ask(p) == /\ p \in Reader /\ asked = {} /\ p \in Ops(hold[p]) /\ Confirms(p, hold[p].e)
          /\ \E v \in dec : v.e > hold[p].e
          /\ asked' = {[p |-> p, e |-> hold[p].e, q |-> p]}
          /\ UNCHANGED <<st, hold, paxos, times, roles, disk, goers>>
Confirm(q) == \E x \in asked :
          /\ Confirms(q, x.e) /\ asked' = asked \cup {[x EXCEPT !.q = q]} /\ asked' # asked
          /\ UNCHANGED <<st, hold, paxos, times, roles, disk, goers>>

Become(p, from, to) == /\ st[p] = from /\ st' = [st EXCEPT ![p] = to]
                       /\ UNCHANGED <<hold, paxos, times, roles, disk, goers, asked>>
Crash(p)  == /\ p[1] \in Faulty /\ st[p] \in {"up", "paused"}
             /\ st' = [st EXCEPT ![p] = "dead"] /\ Forget(p)
             /\ UNCHANGED <<msgs, dec, file, asked>>
Pause(p)  == p[1] \in Pausing /\ p[2] = 1 /\ Become(p, "up", "paused")
Resume(p) == Become(p, "paused", "up")
(* The successor knows what the state file kept, and nothing else.  The old  *)
(* process may only be paused.                                               *)
Restart(p) == /\ st[p] = "off" /\ st[<<p[1], p[2] - 1>>] \in {"dead", "paused"}
              /\ st'   = [st EXCEPT ![p] = "up"]
              /\ kept' = [kept EXCEPT ![p] = file[p[1]]]
              /\ UNCHANGED <<hold, paxos, times, roles, file, goers, asked>>

Init == LET in == Live(V1)
        IN  /\ st    = [p \in Proc |-> IF p[2] = 1 THEN "up" ELSE "off"]
            /\ hold  = [p \in Proc |-> IF p \in in /\ ~Boot THEN V1 ELSE NoView]
            /\ wait  = [p \in Proc |-> 0]
            /\ prom  = [p \in Proc |-> NoProm]
            /\ acc   = [p \in Proc |-> NoAcc]
            /\ grant = [q \in Proc |-> [p \in Victim |-> 0]]
            /\ lease = [p \in Victim |-> [q \in Proc |-> 0]]
            /\ fly   = [p \in Victim |-> [q \in Proc |-> 0]]
            /\ leaving = {} /\ left = [p \in Proc |-> {}]
            /\ msgs  = {}
            /\ dec   = IF Boot THEN {} ELSE {V1}
            /\ inn   = [p \in Proc |-> IF p \in in /\ ~Boot THEN 1 ELSE 0]
            /\ copied = {}
            /\ joined = [p \in Proc |-> IF p \in in /\ ~Boot THEN 1 ELSE 0]
            /\ file  = [n \in Node |-> <<NoGen, 0>>]
            /\ kept  = [p \in Proc |-> <<NoGen, 0>>]
            /\ asked = {}

(* What phase one may name: one member, or all that are no longer configured.*)
Drops(p) == LET v == hold[p] IN
            {D \in SUBSET Live(v) : Cardinality(D) <= 1}
            \cup {{x \in Live(v) : x[1] \notin v.conf}}

GrantStep   == \E q \in Proc, p \in Victim : Grant(q, p)
PrepareStep == \E p \in Proc : \E D \in Drops(p) : Prepare(p, D)
RecoverStep == \E p \in Proc : \E S \in Survivors : Recover(p, S)
ProposeStep == \E m \in msgs : \E v \in Choices(m) : Propose(m, v)
DecideStep  == \E m \in msgs : Decide(m)
LearnStep   == \E p \in Proc, v \in dec : Learn(p, v)
AcceptorStep == \E q \in Proc, m \in msgs : Promise(q, m) \/ Hold(q, m) \/ Accept(q, m)
OtherStep   == \/ \E q \in Proc, p \in leaving : HearLeft(q, p)
               \/ \E p \in Proc : Adopted(p) \/ Copy(p) \/ Resume(p) \/ Restart(p)
FaultStep   == \/ \E p \in Proc : Leave(p) \/ Ask(p) \/ Confirm(p) \/ Crash(p) \/ Pause(p)
               \/ \E q \in Proc, p \in Victim : Arrive(q, p)
               \/ RecoverStep

(* What goes on without faults, operator and clock.  But for grants each     *)
(* step raises a bounded measure, so that fairness of all together is enough *)
(* for each of them.                                                         *)
ProgressStep == \/ PrepareStep \/ ProposeStep \/ DecideStep \/ AcceptorStep \/ LearnStep
                \/ OtherStep

Next == Tick \/ GrantStep \/ ProgressStep \/ FaultStep
Spec == Init /\ [][Next]_vars

------------------------------------------------------------ (* properties *)
TypeOK == /\ st \in [Proc -> {"off", "up", "paused", "dead"}]
          /\ \A p \in Proc : hold[p] \in dec \cup {NoView} /\ wait[p] \in 0..G
          /\ grant \in [Proc -> [Victim -> 0..G]]
          /\ lease \in [Victim -> [Proc -> 0..L]] /\ fly \in [Victim -> [Proc -> 0..L]]
          /\ leaving \subseteq Leaver /\ copied \subseteq Proc
(* One view an epoch, in each generation.                                    *)
Agreement == \A v, w \in dec : v.e = w.e /\ v.g = w.g => v = w
(* One generation, unless an operator said otherwise.                        *)
OneHistory == \A v, w \in dec : v.e = w.e => v = w
After(v, w) == w.e > v.e /\ v.g \in {w.g, w.o}
(* No process holds a lease once a later view without it is decided.         *)
LeaseSafety == \A p \in Victim : HoldsLease(p) =>
                 \A v \in dec : After(hold[p], v) => Stays(hold[p], v, p)
NoTwoServe == \A p, q \in Victim : HoldsLease(p) /\ HoldsLease(q) =>
                 \/ hold[p] = hold[q]
                 \/ After(hold[p], hold[q]) /\ p \in Live(hold[q])
                 \/ After(hold[q], hold[p]) /\ q \in Live(hold[p])
                 \/ hold[p].g = hold[q].g /\ p \in Live(hold[q]) /\ q \in Live(hold[p])
(* view_invalid and view_succession_invalid of what is decided; rule 7.      *)
Follows(base, v) ==
    /\ v.next >= base.next
    /\ \/ v.g = base.g /\ v.o = base.o
          /\ IF v.conf = base.conf THEN v.old \in {base.old, {}}
             ELSE base.old = {} /\ v.old = base.conf
       \/ v.o = base.g /\ v.old = {} /\ v.conf \subseteq base.conf \cup base.old
    /\ \A p \in Live(v) : IF Stays(base, v, p)
          THEN v.mem[p].cid = base.mem[p].cid /\ (p \in Ops(base) => p \in Ops(v))
          ELSE v.mem[p].adm = v.e /\ p \notin Ops(v) /\ v.mem[p].cid >= base.next
ViewsFollow == \A v \in dec :
    /\ Ops(v) # {} /\ Nodes(Live(v)) \subseteq v.conf \cup v.old
    /\ MajorityOf(v.conf, Nodes(Live(v))) /\ (v.old # {} => MajorityOf(v.old, Nodes(Live(v))))
    /\ \A p, q \in Live(v) : p[1] = q[1] => p = q
    /\ v.e > 1 => \E w \in dec : w.e = v.e - 1 /\ Follows(w, v)
(* O1 of Hermes: a c_id is handed out once in a generation.                  *)
Cids == \A v, w \in dec : v.g = w.g =>
            \A p \in Live(v), q \in Live(w) : v.mem[p].cid = w.mem[q].cid => p = q
(* Rule 8: nobody is a member with a store of an earlier membership.         *)
FreshStore == \A p \in Proc : Up(p) /\ Member(p) => joined[p] = hold[p].mem[p].adm
(* Rule 9: who was admitted later serves only with every key, its workers    *)
(* where it is a member.                                                     *)
Promoted == \A p \in Proc : Up(p) => \A v \in dec :
              p \in Ops(v) /\ v.mem[p].adm > 1 /\ Stays(hold[p], v, p) =>
                p \in copied /\ inn[p] >= v.mem[p].adm
(* Rule 7: no majority confirms an epoch after the next one was decided.     *)
Confirmed == \A x \in asked : \E v \in dec : v.e = x.e
               /\ ~Majority(v, Nodes({y.q : y \in asked}))
(* What a survivor accepted may have been decided: recover keeps nobody whom *)
(* that drops.                                                               *)
LeftOut == \A v \in dec : v.o # NoGen => \A m \in msgs :
             m.t = "2b" /\ m.i = v.e /\ m.v.g = v.o /\ m.p \in Live(v) =>
               \A w \in dec : After(w, v) /\ w.e = v.e - 1 =>
                 Live(v) \cap Dropped(w, m.v) = {}

(* Reachability: each of these must be *violated*.                           *)
NeverDrop     == \A v \in dec : Nodes(Live(v)) = Conf
NeverReadmit  == \A v \in dec : Live(v) \subseteq First
NeverPromote  == \A v \in dec : Ops(v) \subseteq First
NeverServe2   == \A p \in Victim : ~(HoldsLease(p) /\ p[2] = 2)
NeverFirst    == dec = {}
NeverJoint    == \A v \in dec : v.old = {}
NeverSettled  == \A v \in dec : v.conf = Conf \/ v.old # {}
NeverRecover  == \A v \in dec : v.o = NoGen
NeverRecServe == \A p \in Victim : ~(HoldsLease(p) /\ hold[p].o # NoGen)
NeverLeft     == \A p \in Leaver : \A v \in dec : p \in Live(v)
NeverRepeat   == \A p \in Proc : ~(acc[p].b > 0 /\ kept[p][2] = 1)

(* Liveness, with Eager grants.                                              *)
Fair == Spec /\ WF_vars(Tick) /\ WF_vars(GrantStep) /\ WF_vars(ProgressStep)
Without(p) == \E v \in dec : p \notin Live(v)
(* Somebody is dropped.                                                      *)
Drops1 == <>(\E p \in First : Without(p))
(* A crash leads to a view without the process, and to service in it.        *)
CrashDecides == \A p \in First : st[p] = "dead" ~> Without(p)
CrashServes  == \A p \in First : st[p] = "dead" ~>
                  \E q \in Victim : HoldsLease(q) /\ p \notin Live(hold[q])
(* A restarted node serves again.                                            *)
Returns == \A p \in Proc \ First : st[p] = "up" ~> (p \in Ops(hold[p]) \/ st[p] = "dead")
Leaves  == \A p \in Leaver : p \in leaving ~> Without(p)
=============================================================================

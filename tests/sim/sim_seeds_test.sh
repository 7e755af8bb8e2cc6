#!/bin/sh
# Runs seeds through the program and asks for what a run of seeds must show: no violation, enough
# operations and kinds of fault in each run, and views that change.
set -eu
. tests/sim/report.sh

# hermes NODES SEEDS [OPTION...]: of Hermes, unless an option names another engine.
hermes() {
    nodes=$1
    count=$2
    shift 2
    simulate "$nodes" "$count" --engine hermes "$@"
}

# run NODES SEEDS [OPTION...]
run() {
    hermes "$@"
    tell "$(field view_changes) view changes"
    at_least least_ok_a_seed 300
}

run 3 "$seeds"
at_least fault_kinds_least 3
at_least view_changes_a_seed 1
run 5 $((seeds / 5))
at_least fault_kinds_least 3
at_least view_changes_a_seed 1
run 7 $((seeds / 20))
run 4 $((seeds / 20))
run 2 $((seeds / 20))
run 1 $((seeds / 20))
run 3 $((seeds / 10)) --async --from 5000
run 3 $((seeds / 10)) --o3 --from 6000

# Another engine; without faults first, which shows what clients may see of it.
run 3 40 --engine zab --faults none --from 62 # 62, 66: an update overtook a read of its session
run 3 58 --engine zab --from 3                # 25, 39, 84: a leader that had led all the while stood still
run 5 10 --engine zab --from 3
run 3 1 --engine zab --from 122 # only the dead of a lost majority had what was acknowledged
run 3 1 --engine zab --from 392 # a session's reads waited for the lease, and were done in another order

# Keys that have homes.
run 3 20 --engine galene --faults none
run 3 "$seeds" --engine galene
run 5 $((seeds / 10)) --engine galene

# Objects that move; one that has lost all its replicas is given up, and strands no run.
run 3 40 --engine zeus
at_most stranded 0
at_least fault_kinds_least 3
at_least view_changes_a_seed 1
at_least committed 1000
run 5 8 --engine zeus --from 2
at_most stranded 1
at_least committed 1000
zeus() {
    run 3 1 --engine zeus --from "$@"
    at_least sound 1
}
zeus 17 --faults crash # an object whose creator died was lost, although it was never born
zeus 38                # one reader's calendar said absent, and then one that was behind had the value
zeus 56                # the same
zeus 60                # the same
zeus 29                # a former directory node's entry came back, of an object that was destroyed
zeus 1054              # a value was answered that only the last operational member had, and forgotten
zeus 14 --faults resize # an entry was left behind where an object had its directory once
zeus 28 --faults resize # the same
for seed in 20 39 45 50; do
    zeus "$seed" # these have shown faults, too
done

# Lanes bring what Hermes does not send again.
run 3 $((seeds / 5)) --lanes --from 7000
run 5 $((seeds / 20)) --lanes --from 7000

# Seeds that once showed a fault, each with its options.
again() {
    hermes "$1" 1 --from "$2"
}
again 3 1349 # PERSIST sent bytes that the in-place store had shifted
again 3 1907 # two healthy nodes suspected each other for ever
again 3 3840 # the last operational member, told to leave, let nobody in
again 3 189  # an operation without a free slot was put off for ever
again 3 1770 # without leases, "done" for a write that a newer one overtook before it was asked for
again 5 1218 # the same
again 5 7822 # a first view that only a dead node had decided
again 3 13867 # a shadow that left held up a change of the configured set, which needed its vote
again 3 36247 # an order that could not be carried out was, after the operator had changed his mind
again 3 82840 # the same, and a node that could not hear him change it
again 3 19438 # an old process that was resumed stayed a member, beside its successor, for ever

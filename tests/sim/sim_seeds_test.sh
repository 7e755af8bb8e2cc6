#!/bin/sh
# Runs seeds through the program and asks for what a run of seeds must show: no violation, enough
# operations and kinds of fault in each run, and views that change.
#
# $HORKOS_PROGRAM is the program; $HORKOS_SIM_SEEDS how many seeds 3 nodes get (200).
set -eu
program=${HORKOS_PROGRAM:?}
seeds=${HORKOS_SIM_SEEDS:-200}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# field NAME: a number of the report.
field() {
    sed -n "s/^ *\"$1\": \([0-9.]*\),*\$/\1/p" "$work/report" | head -n 1
}

# at_least NAME LEAST
at_least() {
    value=$(field "$1")
    awk -v value="$value" -v least="$2" 'BEGIN { exit !(value != "" && value + 0 >= least) }' || {
        echo "$1 is $value, and $2 is wanted"
        exit 1
    }
}

# at_most NAME MOST
at_most() {
    value=$(field "$1")
    awk -v value="$value" -v most="$2" 'BEGIN { exit !(value != "" && value + 0 <= most) }' || {
        echo "$1 is $value, and at most $2 is right"
        exit 1
    }
}

# run NODES SEEDS [OPTION...]
run() {
    nodes=$1
    count=$2
    shift 2
    "$program" sim --engine hermes --nodes "$nodes" --seeds "$count" --json "$@" \
        >"$work/report" || {
        cat "$work/report"
        exit 1
    }
    echo "$nodes nodes, $count seeds $*: $(field view_changes) view changes," \
        "$(field wall_seconds) s, hash $(sed -n 's/^ *"hash": "\(.*\)",*$/\1/p' "$work/report")"
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
    "$program" sim --engine hermes --nodes "$1" --from "$2" --seeds 1 --json >"$work/report" || {
        cat "$work/report"
        exit 1
    }
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

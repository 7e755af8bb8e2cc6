#!/bin/sh
# Seeds of Lotus: no violation, ranges and retries among them, nobody starved where the oldest must
# end, and seeds that once showed a fault.
set -eu
. tests/sim/report.sh

# run NODES SEEDS [OPTION...]
run() {
    simulate "$@" --engine lotus
    retries="$(field retries) retries, at most $(field retries_most)"
    tell "$(field committed) transactions, $(field ranges) ranges, $retries"
}

run 3 "$seeds"
at_least fault_kinds_least 3
at_least view_changes_a_seed 1
at_least committed $((seeds * 50))
at_least ranges $((seeds * 20))
at_most stranded $((seeds / 20))
run 5 $((seeds / 10))
run 1 $((seeds / 20))

# Homes that have hardly any room: values go to other nodes and come back.
run 3 $((seeds / 4)) --near
at_least committed $((seeds * 12))
at_most stranded $((seeds / 80))

# Without faults nobody is turned away where the oldest always ends (the simulator sees to that), and
# nobody tries very often.
run 3 $((seeds / 20)) --faults none --from 9000 --cc no_wait
at_least ranges 100
run 3 $((seeds / 10)) --faults none --from 9000 --cc wait_die
at_least ranges 100
at_most retries_most 500
run 3 $((seeds / 10)) --faults none --from 9000 --cc wound_wait
at_least ranges 100
at_most retries_most 100

# Seeds that once showed a fault.
run 3 1 --from 1 --faults none # a try that replaced another took the memory of a third
run 3 1 --from 3 --faults none # a row that came back had an older version than before
run 3 1 --from 18 --faults none # answers went to another worker than the one that had asked
run 3 2 --from 122 # a row that had moved as a ghost came back with an older version
run 3 1 --from 2227 # no node kept rows for a while, which is an error of its own
run 3 1 --from 5092 # nodes that only compute were wanted to the end, and lost slots had nobody to go to
run 3 1 --from 2563 # two nodes left at a time while the first view formed: only one may
at_most stranded 0

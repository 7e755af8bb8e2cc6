#!/bin/sh
# The command line of `horkos sim`: what it prints is the same each time, and wrong options are
# refused with status 2.
set -eu
program=${HORKOS_PROGRAM:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*"
    exit 1
}

# refused OPTION...: status 2, a message, and nothing on standard output.
refused() {
    status=0
    "$program" "$@" >"$work/out" 2>"$work/err" || status=$?
    [ "$status" -eq 2 ] || fail "status $status, not 2: $*"
    [ -s "$work/err" ] || fail "no message: $*"
    [ ! -s "$work/out" ] || fail "output besides the message: $*"
}

"$program" sim --replay 11 --trace >"$work/one"
"$program" sim --replay 11 --trace >"$work/two"
cmp "$work/one" "$work/two" || fail "a replay is not the same byte for byte"
[ "$(wc -l <"$work/one")" -gt 1000 ] || fail "the trace is too short"
grep -q ' INV ' "$work/one" || fail "the trace shows no INV"
"$program" sim --nodes 5 --replay 12 --trace >"$work/one"
"$program" sim --nodes 5 --replay 12 --trace >"$work/two"
cmp "$work/one" "$work/two" || fail "a replay on 5 nodes is not the same byte for byte"

# Seeds alone decide: the same ones give the same hash, together or after others.
hash_of() {
    "$program" sim --json "$@" | sed -n 's/^ *"hash": "\(.*\)",*$/\1/p'
}
[ "$(hash_of --from 21 --seeds 3)" = "$(hash_of --from 21 --seeds 3)" ] || fail "hashes differ"
[ "$(hash_of --from 21 --seeds 3)" != "$(hash_of --from 22 --seeds 3)" ] || fail "hashes are equal"
[ "$(hash_of --replay 21)" = "$(hash_of --from 21 --seeds 1)" ] || fail "replay differs"

"$program" --help | grep -q '^  sim ' || fail "--help does not name sim"
"$program" --version | grep -q '^horkos ' || fail "no version"
"$program" sim --help | grep -q 'partition' || fail "sim --help does not name the faults"
"$program" sim --seeds 1 --faults loss,-loss >"$work/out" || fail "--faults with a list"
"$program" sim --seeds 1 --faults none >"$work/out" || fail "--faults none"
"$program" sim --seeds 1 --faults all,-crash >"$work/out" || fail "--faults all,-crash"
"$program" sim --seeds 1 --workers 2 --ops 50 --no-o3 --no-async >"$work/out" || fail "switches"

refused nonsense
refused sim --nonsense
refused sim nonsense
refused sim --nodes 0
refused sim --nodes 10
refused sim --workers 4
refused sim --seeds x
refused sim --seeds -1
refused sim --faults fire
refused sim --faults ''
refused sim --engine raft
refused sim --trace
refused sim --mutant view:nonsense

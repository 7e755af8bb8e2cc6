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

# A violation is shrunk, and the command that is printed gives the small run again. --tamper records
# one read wrongly, in most seeds.
seed=4
while :; do
    status=0
    "$program" sim --from "$seed" --seeds 1 --tamper >"$work/out" || status=$?
    [ "$status" -ne 1 ] || break
    [ "$status" -eq 0 ] || fail "status $status of a tampered run"
    seed=$((seed + 1))
    [ "$seed" -lt 20 ] || fail "no tampered run is refused"
done
grep -q '^the shortest history that is refused ([2-8] operations)' "$work/out" ||
    fail "no short history"
command=$(sed -n 's/^  horkos \(sim --replay .*\)$/\1/p' "$work/out")
[ -n "$command" ] || fail "no command for the small run"
status=0
# shellcheck disable=SC2086 # words are what it is made of
"$program" $command >"$work/small" || status=$?
[ "$status" -eq 1 ] || fail "the small run does not violate anything: $command"
grep -q '^the shortest history' "$work/small" || fail "a replay shows no short history"
status=0
"$program" sim --from "$seed" --seeds 1 --tamper --no-shrink >"$work/out" || status=$?
[ "$status" -eq 1 ] || fail "status $status without shrinking"
if grep -q 'shrunk' "$work/out"; then
    fail "--no-shrink shrinks"
fi
"$program" sim --from "$seed" --seeds 1 --tamper --json >"$work/out" || true
grep -q '"history": \[' "$work/out" || fail "no short history as JSON"
grep -q '"command": "horkos sim --replay ' "$work/out" || fail "no command as JSON"

# One seed of a thousand runs twice; --waver makes the second run differ.
"$program" sim --from 1000 --seeds 1 >"$work/out" || fail "seed 1000"
grep -q '^ran twice: 1 seeds, all identical$' "$work/out" || fail "seed 1000 does not run twice"
status=0
"$program" sim --from 1000 --seeds 1 --waver >"$work/out" || status=$?
[ "$status" -eq 1 ] || fail "status $status though two runs of a seed differ"
grep -q 'ran twice, and the two runs have different hashes' "$work/out" || fail "two runs differ"

# What is left out of a run does not change what else the seed draws.
"$program" sim --replay 12 >"$work/one"
"$program" sim --replay 12 --skip 0 --skip-faults loss --clients 3 --keys 2 --until 2000 >"$work/two"
[ "$(grep '^ *fault ' "$work/one" | sed 's/ (left out)$//')" = \
    "$(grep '^ *fault ' "$work/two" | sed 's/ (left out)$//')" ] || fail "another fault plan"
grep -q 'fault 0 .*(left out)$' "$work/two" || fail "--skip leaves nothing out"

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
refused sim --skip x
refused sim --skip 1,
refused sim --skip 99
refused sim --skip-faults fire
refused sim --clients 0
refused sim --until 0
refused sim --mutant view:nonsense

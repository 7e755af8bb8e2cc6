#!/bin/sh
# `horkos dev`, `status` and `recover` on real processes: a cluster comes up, a crash and a start
# again, what is refused, two clusters at the same moment, the end.
set -eu
program=${HORKOS_PROGRAM:?}
work=$(mktemp -d)
foreground=

# Whatever fails, no node is left behind.
clean_up() {
    status=$?
    trap - EXIT
    [ -z "$foreground" ] || kill -TERM "$foreground" 2>/dev/null || true
    for dir in "$work"/*/; do
        if [ "$status" -ne 0 ]; then
            for log in "$dir"node-*.log; do
                [ ! -e "$log" ] || { echo "---- $log"; tail -n 30 "$log"; }
            done
        fi
        [ ! -e "$dir/dev.lock" ] || "$program" dev --stop --dir "$dir" >/dev/null 2>&1 || true
    done
    rm -rf "$work"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

fail() {
    echo "$*"
    [ ! -e "$work/out" ] || sed 's/^/out: /' "$work/out"
    [ ! -e "$work/err" ] || sed 's/^/err: /' "$work/err"
    exit 1
}

# expect STATUS ARGUMENT...: runs the program, with its output in out and err.
expect() {
    wanted=$1
    shift
    status=0
    "$program" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
    [ "$status" -eq "$wanted" ] || fail "status $status, not $wanted: $*"
}

# said WORDS: they are in what was printed.
said() {
    grep -qF -e "$1" "$work/out" "$work/err" || fail "not said: $1"
}

port_of() {
    awk -v node="$2" '$1 == node { print $2 }' "$1/ports"
}

pid_of() {
    head -n 1 "$1/node-$2.pid"
}

# waits until a command succeeds, at most 20 seconds of its own running time and pauses.
wait_until() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 400 ] || fail "never: $*"
        sleep 0.05
    done
}

gone() {
    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || state=
    [ -z "$state" ] || [ "$state" = Z ]
}

# ---- What is refused at once
expect 2 dev --nodse 3
said -- '--nodes?'
expect 2 dev --stop --start 1
expect 1 dev --stop --dir "$work/nothing"
expect 1 dev --set cluster.nonsense=1 --base-port 0 --dir "$work/wrong"
said 'node-1.conf:'
said 'nonsense'
[ -z "$(ls "$work/wrong" | grep pid)" ] || fail "a node was started with a wrong configuration"
expect 2 status --nonsense
expect 2 recover x
expect 2 server
expect 1 server --config "$work/nothing.conf"

# ---- A cluster
a=$work/a
expect 0 dev --base-port 0 --dir "$a" --detach --lease 2000 # none is lost on a busy machine
said '3 nodes serve'
[ "$(grep -c '^  ' "$work/out")" -eq 3 ] || fail "not three lines to try"
[ "$(stat -c %a "$a/cluster.key")" = 600 ] || fail "others can read the key"
expect 0 server --config "$a/node-1.conf" --check
for node in 1 2 3; do
    expect 0 status --port "$(port_of "$a" $node)"
    grep -q "^node *$node: operational" "$work/out" || fail "not node $node"
    [ "$(grep -c 'operational  yes' "$work/out")" -eq 3 ] || fail "not three members"
    pid=$(pid_of "$a" $node)
    [ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$program")" ] || fail "not our process"
done
expect 0 status --port "$(port_of "$a" 1)" --json
/usr/bin/python3 - "$work/out" <<'EOF' || fail "the JSON lacks something"
import json, sys
told = json.load(open(sys.argv[1]))
assert told["node"] == 1 and told["can_serve"] is True and told["epoch"] >= 1
assert told["role"] == "operational" and 0 < told["lease_ms_left"] <= 2000
assert [member["id"] for member in told["members"]] == [1, 2, 3]
assert all(member["live"] and member["role"] == "operational" for member in told["members"])
assert told["spaces"][0]["engine"] == "hermes" and told["spaces"][0]["keys"] == 0
EOF
expect 1 dev --base-port 0 --dir "$a"
said "$(pid_of "$a" 2)"
expect 1 dev --start 2 --dir "$a"
said 'already runs'
expect 1 dev --start 4 --dir "$a"
expect 1 recover --port "$(port_of "$a" 1)" --yes
said 'nothing to recover'

# ---- The lines to try, as printed
redis-cli -p "$(port_of "$a" 1)" set greeting hello >"$work/out"
[ "$(cat "$work/out")" = OK ] || fail "SET"
redis-cli -p "$(port_of "$a" 2)" get greeting >"$work/out"
[ "$(cat "$work/out")" = hello ] || fail "GET on another node"

# ---- A crash, and back again
pid=$(pid_of "$a" 2)
expect 0 dev --kill 2 --dir "$a"
gone "$pid" || fail "node 2 still runs"
expect 2 status --port "$(port_of "$a" 2)"
expect 1 dev --kill 2 --dir "$a"
expect 0 dev --start 2 --dir "$a"
said 'node 2 serves'
[ "$(pid_of "$a" 2)" != "$pid" ] || fail "the pid file is old"
redis-cli -p "$(port_of "$a" 2)" get greeting >"$work/out"
[ "$(cat "$work/out")" = hello ] || fail "node 2 lacks what it should have copied"

# ---- A majority is lost: nobody serves until the operator says so
expect 0 dev --kill 1 --dir "$a"
expect 0 dev --kill 2 --dir "$a"
said 'no majority'
third=$(port_of "$a" 3)
lost() {
    "$program" status --port "$third" --json | grep -q '"can_serve": false'
}
wait_until lost
expect 1 status --port "$third"
expect 1 dev --start 1 --dir "$a"
said 'recover'
expect 2 recover --port "$third"
said '--yes'
said 'can be lost'
expect 1 status --port "$third"
expect 0 recover --port "$third" --yes
# Node 1 waits to be taken back, and while that happens the lease may pause for a moment.
wait_until "$program" status --port "$third"
redis-cli -p "$third" get greeting >"$work/out"
[ "$(cat "$work/out")" = hello ] || fail "the survivor lost what it held"

# ---- The end, and a new cluster in the same folder
pids="$(pid_of "$a" 1) $(pid_of "$a" 3)"
expect 0 dev --stop --dir "$a"
for pid in $pids; do
    gone "$pid" || fail "process $pid is left"
done
[ -z "$(ls "$a" | grep 'pid$')" ] || fail "pid files are left"
expect 0 dev --stop --dir "$a"
said 'no node runs'
expect 0 dev --nodes 1 --base-port 0 --dir "$a" --detach
said 'this is a new one'
[ ! -e "$a/node-2.conf" ] || fail "a node of the old cluster is left"
[ -z "$(redis-cli -p "$(port_of "$a" 1)" get greeting)" ] || fail "the new cluster is not empty"
# A pid file that names another process: it is not touched.
expect 0 dev --kill 1 --dir "$a"
sed -i "1s/.*/$$/" "$a/node-1.pid"
expect 0 dev --stop --dir "$a"

# ---- Two at the same moment
for name in b c; do
    "$program" dev --base-port 0 --dir "$work/$name" --detach >"$work/$name.out" 2>&1 &
    eval "$name=\$!"
done
wait "$b" || { cat "$work/b.out"; fail "one of two"; }
wait "$c" || { cat "$work/c.out"; fail "the other of two"; }
[ -z "$(cut -d' ' -f2 "$work/b/ports" "$work/c/ports" | sort | uniq -d)" ] || fail "equal ports"
expect 0 dev --stop --dir "$work/b"
expect 0 dev --stop --dir "$work/c"

# ---- A password
echo 'open sesame' >"$work/password"
expect 0 dev --nodes 1 --base-port 0 --dir "$work/p" --detach --set 'clients.requirepass=open sesame'
expect 2 status --port "$(port_of "$work/p" 1)"
said '--password-file'
expect 0 status --port "$(port_of "$work/p" 1)" --password-file "$work/password"
expect 0 dev --stop --dir "$work/p"

# ---- In the foreground
d=$work/d
"$program" dev --base-port 0 --dir "$d" >"$work/d.out" 2>&1 </dev/null &
foreground=$!
wait_until grep -q 'Ctrl-C' "$work/d.out"
kill -9 "$(pid_of "$d" 3)"
wait_until grep -q 'node 3 has ended' "$work/d.out"
expect 0 dev --start 3 --dir "$d"
wait_until grep -q 'node 3 runs again' "$work/d.out"
pids="$(pid_of "$d" 1) $(pid_of "$d" 2) $(pid_of "$d" 3)"
kill -TERM "$foreground"
status=0
wait "$foreground" || status=$?
foreground=
[ "$status" -eq 0 ] || { cat "$work/d.out"; fail "the foreground ended with $status"; }
for pid in $pids; do
    gone "$pid" || fail "process $pid is left"
done

# If dev itself is killed, its nodes do not stay.
"$program" dev --base-port 0 --dir "$d" >"$work/d.out" 2>&1 </dev/null &
foreground=$!
wait_until grep -q 'Ctrl-C' "$work/d.out"
pids="$(pid_of "$d" 1) $(pid_of "$d" 2) $(pid_of "$d" 3)"
kill -9 "$foreground"
wait "$foreground" 2>/dev/null || true
foreground=
for pid in $pids; do
    wait_until gone "$pid"
done
echo "dev: all is well"

# What the tests of seeds share, who read it in: they run seeds through the program and look at the
# report of the last run.
#
# $HORKOS_PROGRAM is the program; $HORKOS_SIM_SEEDS how many seeds 3 nodes get (200).
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

# simulate NODES SEEDS [OPTION...]: no violation, or the report is shown and the test has failed.
simulate() {
    nodes=$1
    count=$2
    shift 2
    ran="$nodes nodes, $count seeds $*"
    "$program" sim --nodes "$nodes" --seeds "$count" --json "$@" >"$work/report" || {
        cat "$work/report"
        exit 1
    }
}

# tell TEXT: a line about the last run.
tell() {
    echo "$ran: $1; $(field wall_seconds) s," \
        "hash $(sed -n 's/^ *"hash": "\(.*\)",*$/\1/p' "$work/report")"
}

#!/bin/sh
# Checks that the specifications of spec/ and the code go together: spec/README.md tells for each
# action which C function it stands for. Every action of a module (what its Next names, and the
# operators whose names end in Step or Next) is in a table; every action and every function that a
# table names exists; and the manifest lists the configurations that are there.
#
# Usage: spec_test.sh ROOT | --self-test
#
# A table counts if its first heading is "action". Its first column names actions, its last one
# functions, each in backquotes; names with a point are files of src/.
set -eu
export LC_ALL=C

# Prints "action NAME" and "function NAME" for each name of the tables.
tables='
/^\|/ {
    n = split($0, cell, "|")
    if (cell[2] ~ /^ *action *$/) {
        wanted = 1
        next
    }
    if (!wanted)
        next
    print_names("action", cell[2])
    print_names("function", cell[n - 1])
    next
}
{ wanted = 0 }
function print_names(what, text)
{
    while (match(text, /`[^`]*`/)) {
        print what, substr(text, RSTART + 1, RLENGTH - 2)
        text = substr(text, RSTART + RLENGTH)
    }
}
'

# Prints "defined NAME" for each operator and "action NAME" for each that a Next or a Step names.
modules='
function heads(line)
{
    return line ~ /^[A-Za-z_0-9]+(\([^=]*\))? *==/
}
FNR == 1 { inside = 0 }
/^[ \t]*$/ || /^----/ { inside = 0 }
{ sub(/\\\*.*/, "") }
heads($0) {
    name = $0
    sub(/[^A-Za-z_0-9].*/, "", name)
    print "defined", name
    inside = name ~ /(Step|Next)$/
    sub(/^[^=]*==/, "")
}
inside {
    gsub(/\\in +[A-Za-z_0-9]+/, "")
    while (match($0, /[A-Z][A-Za-z_0-9]*/)) {
        word = substr($0, RSTART, RLENGTH)
        if (word !~ /(Step|Next)$/ && word != "UNCHANGED")
            print "action", word
        $0 = substr($0, RSTART + RLENGTH)
    }
}
'

check() {
    (
        cd "$1"
        bad=0
        [ -s spec/README.md ] || { echo "spec/README.md is missing"; exit 1; }
        awk "$tables" spec/README.md | sort -u >"$work/tables"
        [ -s "$work/tables" ] || { echo "spec/README.md: no table of actions"; bad=1; }
        awk "$modules" spec/*.tla | sort -u >"$work/modules"
        find src -name '*.c' -exec sed -n 's/^[a-z].*[ *]\([a-z_0-9]*\)(.*[^;]$/\1/p' {} + |
            sort -u >"$work/functions"

        while read -r kind name; do
            case $kind-$name in
            action-*)
                grep -qx "defined $name" "$work/modules" ||
                    { echo "spec/README.md: no module defines the action $name"; bad=1; } ;;
            *.*)
                [ -n "$(find src -path "*$name" -print)" ] ||
                    { echo "spec/README.md: src has no file $name"; bad=1; } ;;
            *)
                grep -qx -e "$name" "$work/functions" ||
                    { echo "spec/README.md: src has no function $name"; bad=1; } ;;
            esac
        done <"$work/tables"
        # Words of a Next that are no operators are constants and variables.
        while read -r kind name; do
            if [ "$kind" = action ] && grep -qx "defined $name" "$work/modules" &&
                ! grep -qx "action $name" "$work/tables"; then
                echo "spec/README.md: the action $name is in no table"
                bad=1
            fi
        done <"$work/modules"
        if [ -x scripts/spec ]; then
            scripts/spec --check || bad=1
        fi
        exit "$bad"
    )
}

# refuse WORD FILE SCRIPT: a clean tree with FILE changed by sed must be refused because of WORD.
refuse() {
    rm -rf "$work/bad"
    cp -r "$work/clean" "$work/bad"
    sed "$3" "$work/clean/$2" >"$work/bad/$2"
    if check "$work/bad" >"$work/out"; then
        echo "spec: not refused: $1"
        exit 1
    fi
    grep -q "$1" "$work/out" || { cat "$work/out"; exit 1; }
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "$1" != --self-test ]; then
    check "$1"
    exit
fi

clean=$work/clean
mkdir -p "$clean/spec" "$clean/src/engine"
cat >"$clean/spec/README.md" <<'END'
| word | means |
|---|---|
| `No` | `nothing` |

| action | function |
|---|---|
| `Issue` | `c_update` (`key.c`) |
| `Drop`, `Join` | `view_step` |
END
cat >"$clean/spec/Hermes.tla" <<'END'
Procs == {1}
Issue(n) == \E k \in Procs : TRUE \* Nothing(n)
Drop(n, x) == TRUE
Join == TRUE
ViewStep(n) == Drop(n, 1) \/ Join
Next == \E n \in Procs : Issue(n) \/ ViewStep(n)
END
cat >"$clean/src/engine/key.c" <<'END'
void view_step(int x);
static void c_update(struct key_step *s)
{
    other(s);
}
int *view_step(int x)
{
}
END
check "$clean"

refuse 'no module defines the action Issued' spec/README.md 's/`Issue`/`Issued`/'
refuse 'the action Issue is in no table' spec/README.md 's/`Issue`/-/'
refuse 'the action Join is in no table' spec/README.md 's/, `Join`//'
refuse 'no function c_updated' spec/README.md 's/c_update/c_updated/'
refuse 'no function other' spec/README.md 's/c_update/other/'
refuse 'no file keys.c' spec/README.md 's/key.c/keys.c/'
refuse 'no function c_update' src/engine/key.c 's/c_update/c_change/'
refuse 'no module defines the action Drop' spec/Hermes.tla 's/Drop(n, x)/Remove(n, x)/'
refuse 'no table of actions' spec/README.md 's/action/event/'
echo "spec: refuses what it should"

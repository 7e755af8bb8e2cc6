#!/bin/sh
# Refuses an include that points down the list of folders (layers.txt).
#
# Usage: include_test.sh ROOT | --self-test
#
# Every include of a file below src/ is looked at. One of ours is written in quotes, with the path
# from src/ (or is the public header horkos.h), and points to a folder that the table allows.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export LC_ALL=C

check() {
    root=$1
    (cd "$root" && find src -name '*.[ch]' | sort) >"$work/files"
    if [ ! -s "$work/files" ]; then
        echo "include: $root/src holds no code"
        return 1
    fi
    (cd "$root" && find src include -name '*.h' 2>/dev/null | sort) >"$work/headers"
    (cd "$root" && xargs awk -v table="$here/layers.txt" -v headers="$work/headers" "$program") \
        <"$work/files"
}

# The folder of a path from src/: "store" of "store/index.h", "engine/hermes" of
# "engine/hermes/step.c", "engine" of "engine/engine.h".
program='
function folder_of(path, part, n)
{
    n = split(path, part, "/")
    if (n < 2)
        return ""
    if (part[1] == "engine" && n > 2)
        return "engine/" part[2]
    return part[1]
}
function kind_of(folder)
{
    return folder ~ /^engine\// ? "engine/*" : folder
}
function complain(text)
{
    print FILENAME ":" FNR ": " text
    bad = 1
}
BEGIN {
    while ((getline line < table) > 0) {
        sub(/#.*/, "", line)
        if (split(line, half, ":") < 2)
            continue
        gsub(/[ \t]/, "", half[1])
        listed[half[1]] = 1
        n = split(half[2], names, " ")
        for (i = 1; i <= n; i++)
            allowed[half[1], names[i]] = 1
    }
    while ((getline line < headers) > 0)
        ours[line] = 1
}
FNR == 1 {
    from = folder_of(substr(FILENAME, 5))
    if (!(kind_of(from) in listed))
        complain("this folder is not in tests/house/layers.txt")
}
/^[ \t]*#[ \t]*include/ {
    quoted = $0 ~ /include[ \t]*"/
    path = $0
    if (quoted) {
        sub(/^[^"]*"/, "", path)
        sub(/".*/, "", path)
    } else {
        sub(/^[^<]*</, "", path)
        sub(/>.*/, "", path)
        if (("src/" path) in ours || ("include/" path) in ours)
            complain("write \"" path "\" in quotes: it is ours")
        next
    }
    if (("include/" path) in ours) {
        if (from != "tools" && from != (path == "horkos_err.h" ? "base" : "embed"))
            complain(from " includes the public header " path)
        next
    }
    if (!(("src/" path) in ours)) {
        complain("\"" path "\" is no path from src/")
        next
    }
    to = folder_of(path)
    if (to != from && !((kind_of(from), kind_of(to)) in allowed) &&
        !((kind_of(from), to) in allowed))
        complain(from " must not include " to " (" path ")")
}
END { exit bad }
'

# refuse LINE FILE: a copy of the clean tree with LINE appended to FILE must be refused.
refuse() {
    rm -rf "$work/bad"
    cp -r "$work/clean" "$work/bad"
    mkdir -p "$(dirname "$work/bad/$2")"
    echo "$1" >>"$work/bad/$2"
    if check "$work/bad" >"$work/out"; then
        echo "include: not refused in $2: $1"
        exit 1
    fi
    grep -q "^$2:" "$work/out" || { cat "$work/out"; exit 1; }
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "$1" != --self-test ]; then
    check "$1"
    exit
fi

clean=$work/clean
mkdir -p "$clean/src/base" "$clean/src/store" "$clean/src/view" "$clean/src/engine/hermes" \
    "$clean/src/engine/craq" "$clean/src/engine/homes" "$clean/src/node" "$clean/src/sim" "$clean/src/check" \
    "$clean/include"
echo '#include <stdint.h>' >"$clean/src/base/err.h"
echo '#include "base/err.h"' >"$clean/src/store/store.h"
echo '#include "base/err.h"' >"$clean/src/view/view.h"
echo '#include "view/view.h"' >"$clean/src/engine/engine.h"
echo '#include "engine/engine.h"' >"$clean/src/engine/hermes/hermes.h"
echo '#include "engine/engine.h"' >"$clean/src/engine/homes/homes.h"
echo '#include "engine/homes/homes.h"' >"$clean/src/engine/craq/craq.h"
printf '#include "store/store.h"\n#include "engine/hermes/hermes.h"\n' >"$clean/src/node/node.h"
echo '#include "base/err.h"' >"$clean/src/check/check.h"
printf '#include "check/check.h"\n#include <net/if.h>\n' >"$clean/src/sim/sim.h"
echo '#include <stddef.h>' >"$clean/include/horkos.h"
echo '#include <stddef.h>' >"$clean/include/horkos_err.h"
echo '#include "horkos_err.h"' >>"$clean/src/base/err.h"
check "$clean"

refuse '#include "store/store.h"' src/base/err.h
refuse '#include "store/store.h"' src/engine/engine.h
refuse '#include "store/store.h"' src/engine/hermes/hermes.h
refuse '  #  include "engine/craq/craq.h"' src/engine/hermes/hermes.h
refuse '#include "engine/craq/craq.h"' src/engine/homes/homes.h
refuse '#include "engine/hermes/hermes.h"' src/engine/engine.h
refuse '#include "engine/engine.h"' src/view/view.h
refuse '#include "sim/sim.h"' src/node/node.h
refuse '#include "engine/engine.h"' src/check/check.h
refuse '#include <base/err.h>' src/store/store.h
refuse '#include "err.h"' src/base/err.h
refuse '#include "../base/err.h"' src/store/store.h
refuse '#include "horkos.h"' src/store/store.h
refuse '#include "horkos_err.h"' src/store/store.h
refuse '#include <stdint.h>' src/misc/misc.h
echo "include: refuses what it should"

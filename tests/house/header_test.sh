#!/bin/sh
# Checks that each header can be included alone, and twice.
#
# Usage: header_test.sh ROOT COMPILER [FLAG...]
#        header_test.sh --self-test COMPILER [FLAG...]
#
# The folders that speak with the operating system see more than C17; here as in the build.
set -eu

check() {
    root=$1
    shift
    bad=0
    found=0
    for header in $(cd "$root" && find src include -name '*.h' 2>/dev/null | sort); do
        found=1
        path=${header#*/}
        more=
        case "$path" in
        net/* | server/* | embed/* | bench/* | tools/*) more=-D_GNU_SOURCE ;;
        esac
        printf '#include "%s"\n#include "%s"\nint main(void);\n' "$path" "$path" >"$work/one.c"
        if ! "$@" $more -std=c17 -fsyntax-only -I"$root/src" -I"$root/include" "$work/one.c" \
            >"$work/out" 2>&1; then
            echo "$header cannot be included alone and twice:"
            head -n 20 "$work/out"
            bad=1
        fi
    done
    if [ "$found" -eq 0 ]; then
        echo "headers: $root holds none"
        bad=1
    fi
    return "$bad"
}

refuse() {
    mkdir -p "$work/bad/src/base"
    printf '%b\n' "$1" >"$work/bad/src/base/err.h"
    shift
    if check "$work/bad" "$@" >/dev/null; then
        echo "headers: not refused:"
        cat "$work/bad/src/base/err.h"
        exit 1
    fi
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "$1" != --self-test ]; then
    check "$@"
    exit
fi

shift
mkdir -p "$work/clean/src/base" "$work/clean/src/net"
echo '#include <stdint.h>' >"$work/clean/src/base/err.h"
printf '#pragma once\n#include <time.h>\nenum { CLOCK = CLOCK_REALTIME };\n' \
    >"$work/clean/src/net/net.h"
check "$work/clean" "$@"
refuse 'uint64_t f(void);' "$@"
refuse 'struct twice {\n    int x;\n};' "$@"
refuse '#include <time.h>\nint f(int x[CLOCK_REALTIME + 1]);' "$@"
echo "headers: refuses what it should"

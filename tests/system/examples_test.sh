#!/bin/sh
# Installs libhorkos into a folder of its own and builds the examples there as a stranger would: with
# pkg-config and the installed header alone. Each must run, say its result, and end with status 0.
# With the static library, and with the shared one if it was built.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What is installed must be of this source, also where only a part of it was built anew.
libraries=horkos_static
[ "$HORKOS_SHARED" != ON ] || libraries="$libraries horkos_shared"
# shellcheck disable=SC2086 # targets are words
"$HORKOS_CMAKE" --build "$HORKOS_BUILD" --target horkos $libraries >"$work/built" 2>&1 || {
    tail -n 30 "$work/built"
    exit 1
}
prefix=$work/prefix
"$HORKOS_CMAKE" --install "$HORKOS_BUILD" --prefix "$prefix" >"$work/install"
pc=$(find "$prefix" -name horkos.pc)
libraries=$(dirname "$(dirname "$pc")")
PKG_CONFIG_PATH=$libraries/pkgconfig
export PKG_CONFIG_PATH
[ "$(pkg-config --variable=prefix horkos)" = "$prefix" ]

flags="-std=c17 -Wall -Wextra -Werror -D_GNU_SOURCE"
[ -z "$HORKOS_SANITIZE" ] || flags="$flags -fsanitize=$HORKOS_SANITIZE"
[ "$HORKOS_COVERAGE" != ON ] || flags="$flags --coverage"

# build_and_run NAME PKG_CONFIG_OPTION...
build_and_run() {
    name=$1
    shift
    # shellcheck disable=SC2046,SC2086 # flags are words
    "$HORKOS_CC" $flags "examples/$name.c" $(pkg-config --cflags --libs "$@" horkos) \
        -o "$work/$name"
    LD_LIBRARY_PATH=$libraries "$work/$name" >"$work/said" || {
        echo "$name failed:"
        cat "$work/said"
        exit 1
    }
    [ -s "$work/said" ] || { echo "$name said nothing"; exit 1; }
    echo "$name: $(cat "$work/said")"
}

shared=$libraries/libhorkos.so
if [ "$HORKOS_SHARED" = ON ]; then
    for name in counter cache lock transfer ranges; do
        build_and_run "$name"
    done
    readelf -d "$work/lock" | grep -q 'NEEDED.*\[libhorkos\.so\.0\]'
    # It exports what the header declares, and nothing else.
    nm -D --defined-only "$shared" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort \
        >"$work/exported"
    cat "$prefix"/include/*.h | grep -v '^ \*' | grep -v '^static' |
        grep -o '^[a-z].*hk_[a-z_]*(' | grep -v typedef | grep -o 'hk_[a-z_]*(' | tr -d '(' |
        sort -u >"$work/declared"
    diff "$work/declared" "$work/exported"
    rm "$libraries"/libhorkos.so*
fi
for name in counter cache lock transfer ranges; do
    build_and_run "$name" --static
done

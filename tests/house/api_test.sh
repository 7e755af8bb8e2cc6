#!/bin/sh
# Holds docs/API.md against what scripts/api-reference makes of the public headers.
#
# Usage: api_test.sh ROOT | --self-test
set -eu
export LC_ALL=C

check() {
    (
        cd "$1"
        scripts/api-reference include/horkos.h include/horkos_err.h >"$work/now"
        if ! diff -u docs/API.md "$work/now"; then
            echo "docs/API.md is not of these headers; run:"
            echo "scripts/api-reference include/horkos.h include/horkos_err.h >docs/API.md"
            exit 1
        fi
    )
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "$1" != --self-test ]; then
    check "$1"
    exit
fi

root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$work/clean/include" "$work/clean/scripts" "$work/clean/docs"
cp "$root/scripts/api-reference" "$work/clean/scripts"
cat >"$work/clean/include/horkos.h" <<'END'
/* About it.
 *
 *     a sample(); */
#ifndef HORKOS_H
#define HORKOS_H

/* ---- Things ---- */

/* A thing. */
struct hk_thing {
    int a; /* of it */

    int b;
};

int hk_do(void);

#endif
END
echo '/* Errors. */' >"$work/clean/include/horkos_err.h"
"$work/clean/scripts/api-reference" "$work/clean/include/horkos.h" \
    "$work/clean/include/horkos_err.h" >"$work/clean/docs/API.md"
check "$work/clean"
for part in 'About it.' '## Things' 'A thing.' '    int a; /* of it */' '    int b;' \
    'int hk_do(void);' 'a sample();' '# horkos_err.h' 'Errors.'; do
    grep -qFx "$part" "$work/clean/docs/API.md" || { echo "api: lost: $part"; exit 1; }
done
if grep -q HORKOS_H "$work/clean/docs/API.md"; then
    echo "api: the guard is no part of the reference"
    exit 1
fi
echo 'int hk_more(void);' >>"$work/clean/include/horkos.h"
if check "$work/clean" >"$work/out"; then
    echo "api: a page that lacks a function was not refused"
    exit 1
fi
echo "api: refuses what it should"

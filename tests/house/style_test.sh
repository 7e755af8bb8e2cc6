#!/bin/sh
# Checks by machine what people should not have to look for in a review.
#
# Usage: style_test.sh ROOT | --self-test
#
# In C code: lines of at most 100 columns without tabs or blanks at their end; files of at most
# 1,200 lines, and in src/ functions of at most 70; no typedef of a struct or union; a file's own
# header first among its includes; no TODO without the number of an issue, as in TODO(#12); no
# sleeping in tests, where it would stand for synchronisation that is missing.
set -eu
export LC_ALL=C

program='
function complain(text)
{
    print FILENAME ":" FNR ": " text
    bad = 1
}
FNR == 1 {
    seen_include = 0
    in_function = 0
    header = FILENAME
    sub(/\.c$/, ".h", header)
    own = ""
    if (FILENAME ~ /^src\/.*\.c$/ && header in exists)
        own = substr(header, 5)
}
{
    line = $0
    # Bytes that continue a character in UTF-8 take no column.
    gsub(/[\200-\277]/, "", line)
    if (length(line) > 100)
        complain("over 100 columns")
}
/\t/ { complain("tab") }
/[ \t\r]$/ { complain("blank at the end of the line") }
FNR == 1201 { complain("file over 1,200 lines: split it by message or by step") }
/typedef[ \t]+(struct|union)/ { complain("typedef of a struct or union") }
/TODO|FIXME|XXX/ {
    line = $0
    gsub(/TODO\(#[0-9]+\)/, "", line)
    # Marks of this kind must not stick to letters, or hexadecimal digits and names would count.
    if (line ~ /(^|[^A-Za-z0-9_])(TODO|FIXME|XXX)([^A-Za-z0-9_]|$)/)
        complain("write TODO(#issue)")
}
/^[ \t]*#[ \t]*include/ && !seen_include {
    seen_include = 1
    if (own != "" && index($0, "\"" own "\"") == 0)
        complain("its own header \"" own "\" must be included first")
}
FILENAME ~ /^tests\// && /(^|[^A-Za-z0-9_])(sleep|usleep|nanosleep|clock_nanosleep)[ \t]*\(/ {
    complain("a test sleeps")
}
FILENAME ~ /^src\// && /^\{/ { in_function = FNR }
FILENAME ~ /^src\// && /^\}/ {
    if (in_function && FNR - in_function - 1 > 70)
        complain("function of " (FNR - in_function - 1) " lines, over 70")
    in_function = 0
}
END { exit bad }
'

check() {
    (
        cd "$1"
        folders=
        for folder in include src tests bench examples; do
            [ ! -d "$folder" ] || folders="$folders $folder"
        done
        # shellcheck disable=SC2086 # The folders are words without blanks.
        find $folders -name '*.[ch]' | sort >"$work/files"
        if [ ! -s "$work/files" ]; then
            echo "style: $1 holds no code"
            exit 1
        fi
        awk -v files="$work/files" "BEGIN {
            while ((getline name < files) > 0) exists[name] = 1
        } $program" $(cat "$work/files")
    )
}

# refuse WORD FILE TEXT: a clean tree with FILE replaced by TEXT must be refused because of WORD.
refuse() {
    rm -rf "$work/bad"
    cp -r "$work/clean" "$work/bad"
    printf '%b\n' "$3" >"$work/bad/$2"
    if check "$work/bad" >"$work/out"; then
        echo "style: not refused: $1"
        exit 1
    fi
    grep -q "^$2:[0-9]*: .*$1" "$work/out" || { cat "$work/out"; exit 1; }
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "$1" != --self-test ]; then
    check "$1"
    exit
fi

clean=$work/clean
mkdir -p "$clean/src/base" "$clean/tests/unit"
# 100 columns, one of them a character of two bytes; a TODO as it should be; a body of 70 lines.
ninety=$(printf '%090d' 0)
body=$(awk 'BEGIN { for (i = 0; i < 70; i++) printf "    ;\\n" }')
printf '/* é%s 56 */\n' "$ninety" >"$clean/src/base/err.h"
printf '#include "base/err.h"\n/* TODO(#12): 0xXXX XXXX */\nvoid f(void)\n{\n%b}\n' "$body" \
    >"$clean/src/base/err.c"
echo 'static int sleepers(int x) { return x; }' >"$clean/tests/unit/base_err_test.c"
check "$clean"

refuse 'over 100 columns' src/base/err.h "/* é$ninety 567 */"
refuse 'tab' src/base/err.h '\tint x;'
refuse 'blank at the end' src/base/err.h 'int x; '
refuse 'over 1,200 lines' src/base/err.h "$(awk 'BEGIN { for (i = 0; i < 1201; i++) printf "\\n" }')"
refuse 'typedef' src/base/err.h 'typedef struct err { int x; } err;'
refuse 'TODO(#issue)' src/base/err.h '/* TODO: later */'
refuse 'TODO(#issue)' src/base/err.h '/* TODO(#12) and FIXME */'
refuse 'must be included first' src/base/err.c '#include <stdio.h>\n#include "base/err.h"'
refuse 'a test sleeps' tests/unit/base_err_test.c 'void f(void) { usleep(1); }'
refuse 'over 70' src/base/err.c "#include \"base/err.h\"\nvoid f(void)\n{\n$body    ;\n}"
echo "style: refuses what it should"

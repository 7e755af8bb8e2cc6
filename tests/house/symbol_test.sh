#!/bin/sh
# Proves that the protocols are pure: follows every symbol that a pure library needs through the
# libraries it may use, and refuses what ends anywhere but in pure_symbols.txt. It also refuses
# variables that can change, because a state machine's whole state is its caller's.
#
# Usage: symbol_test.sh NM PURE_LIBRARY... -- OTHER_LIBRARY...
#        symbol_test.sh --self-test NM CC AR
#
# Symbols are followed by object file, not by library: that base has a clock is no matter until a
# pure library calls something in an object that reads it. What is on the list is not followed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export LC_ALL=C

# nm's lines are `library:object:symbol |value|class|type|size|line|section`.
program='
function complain(text)
{
    print text
    bad = 1
}
function trim(text)
{
    gsub(/^[ \t]+|[ \t]+$/, "", text)
    return text
}
BEGIN {
    FS = "|"
    while ((getline line < list) > 0) {
        sub(/#.*/, "", line)
        if (trim(line) != "")
            allowed[trim(line)] = 1
    }
}
NF < 7 { next }
{
    n = split($1, part, ":")
    symbol = trim(part[n])
    object = part[n - 1]
    for (i = n - 2; i >= 1; i--)
        object = part[i] ":" object
    sub(/.*\//, "", object)
    class = trim($3)
    section = trim($7)
    is_pure = FILENAME == pure
    if (is_pure)
        pure_objects[object] = 1
    if (class == "U" || class == "w" || class == "v") {
        needs[object] = needs[object] " " symbol
    } else if (class ~ /^[A-Z]$/) {
        home[symbol] = object
    }
    if (section ~ /^(\.data|\.bss|\.tdata|\.tbss|\*COM\*)/ && section !~ /^\.data\.rel\.ro/ &&
        symbol != "")
        changes[object] = changes[object] " " symbol
}
END {
    for (object in pure_objects) {
        queue[++last] = object
        path[object] = object
    }
    if (last == 0)
        complain("symbols: no pure object was given")
    for (next_one = 1; next_one <= last; next_one++) {
        object = queue[next_one]
        n = split(changes[object], names, " ")
        for (i = 1; i <= n; i++)
            complain(path[object] " has a variable that can change: " names[i])
        n = split(needs[object], names, " ")
        for (i = 1; i <= n; i++) {
            symbol = names[i]
            if (symbol in allowed)
                continue
            if (!(symbol in home)) {
                complain(path[object] " needs " symbol)
            } else if (!(home[symbol] in path)) {
                path[home[symbol]] = path[object] " -> " symbol " in " home[symbol]
                queue[++last] = home[symbol]
            }
        }
    }
    exit bad
}
'

# check NM PURE... -- OTHER...
check() {
    nm=$1
    shift
    : >"$work/pure"
    : >"$work/other"
    kind=pure
    for library in "$@"; do
        if [ "$library" = -- ]; then
            kind=other
            continue
        fi
        "$nm" -A -f sysv "$library" >>"$work/$kind" || return 2
    done
    awk -v list="$here/pure_symbols.txt" -v pure="$work/pure" "$program" \
        "$work/pure" "$work/other"
}

# object NAME TEXT: compiles TEXT into its own library.
object() {
    printf '%s\n' "$2" >"$work/$1.c"
    # A build turns memcpy of a constant size into moves; here each call must stay one.
    "$cc" -O1 -fno-builtin -c "$work/$1.c" -o "$work/$1.o"
    "$ar" rcs "$work/$1.a" "$work/$1.o"
}

# refuse WORD LIBRARY: must be refused, with WORD in the reason.
refuse() {
    if check "$nm" "$work/$2.a" -- "$work/base.a" "$work/clock.a" >"$work/out"; then
        echo "symbols: $2 was not refused"
        exit 1
    fi
    grep -q "$1" "$work/out" || { cat "$work/out"; exit 1; }
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "$1" != --self-test ]; then
    check "$@"
    exit
fi

nm=$2 cc=$3 ar=$4
object base 'int base_f(int x) { return x + 1; }'
object clock 'long time(long *); long clock_now(void) { return time(0); }'
object clean 'int base_f(int); void *memcpy(void *, const void *, unsigned long);
    static const int table[] = { 1, 2, 3 }; const char *const names[] = { "a", "b" };
    int f(void *a, void *b) { memcpy(a, b, 9); return base_f(table[*(int *)a]); }'
object allocates 'void *malloc(unsigned long); void *f(void) { return malloc(9); }'
object prints 'int printf(const char *, ...); int f(void) { return printf("x"); }'
object reads_clock 'long clock_now(void); long f(void) { return clock_now(); }'
object remembers 'int count; int f(void) { return ++count; }'
object hides 'static int count = 7; int f(void) { return ++count; }'
check "$nm" "$work/clean.a" -- "$work/base.a" "$work/clock.a"
refuse 'needs malloc' allocates
refuse 'needs printf' prints
refuse 'clock_now in clock.a:clock.o needs time' reads_clock
refuse 'can change: count' remembers
refuse 'can change: count' hides
echo "symbols: refuses what it should"

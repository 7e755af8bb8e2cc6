#!/bin/sh
# Checks that the documents are there and do not point into the void: README, licence and
# contributing guide exist; every link from one file of the tree to another leads somewhere; every
# page of docs/ is linked from some other document; every folder of src/ is named in the tour of the
# files, docs/ARCHITECTURE.md.
#
# Usage: document_test.sh ROOT | --self-test
set -eu
export LC_ALL=C

# Prints the targets of a page's Markdown links that are neither addresses nor anchors in itself.
links_of() {
    awk '
        /^[ \t]*```/ { code = !code }
        code { next }
        {
            gsub(/`[^`]*`/, "")
            while (match($0, /\]\([^)]*\)/)) {
                target = substr($0, RSTART + 2, RLENGTH - 3)
                $0 = substr($0, RSTART + RLENGTH)
                sub(/[ \t].*/, "", target)
                sub(/#.*/, "", target)
                if (target != "" && target !~ /^[a-z]+:/)
                    print target
            }
        }
    ' "$1"
}

absolute() {
    (cd "$(dirname "$1")" && echo "$(pwd -P)/$(basename "$1")")
}

check() {
    (
        cd "$1"
        bad=0
        : >"$work/linked"
        for page in README.md LICENSE CONTRIBUTING.md; do
            [ -s "$page" ] || { echo "$page is missing"; bad=1; }
        done
        for page in $(find . -name build -prune -o -name .git -prune -o -name '*.md' -print); do
            for target in $(links_of "$page"); do
                case "$target" in
                /*) path=.$target ;;
                *) path=$(dirname "$page")/$target ;;
                esac
                if [ ! -e "$path" ]; then
                    echo "$page: the link to $target leads nowhere"
                    bad=1
                elif [ "$(absolute "$path")" != "$(absolute "$page")" ]; then
                    absolute "$path" >>"$work/linked"
                fi
            done
        done
        if [ -d docs ]; then
            for page in $(find "$(pwd -P)/docs" -name '*.md'); do
                grep -qxF "$page" "$work/linked" || { echo "no page links to $page"; bad=1; }
            done
        fi
        if [ -e docs/ARCHITECTURE.md ]; then
            for folder in $(find src -name '*.[ch]' | sed 's#/[^/]*$##' | sort -u); do
                grep -qF "$folder" docs/ARCHITECTURE.md ||
                    { echo "docs/ARCHITECTURE.md does not name $folder"; bad=1; }
            done
        fi
        exit "$bad"
    )
}

# refuse WORD COMMAND: a clean tree changed by COMMAND must be refused because of WORD.
refuse() {
    rm -rf "$work/bad"
    cp -r "$work/clean" "$work/bad"
    (cd "$work/bad" && eval "$2")
    if check "$work/bad" >"$work/out"; then
        echo "documents: not refused: $2"
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
mkdir -p "$clean/docs" "$clean/src/base"
echo 'See [the tour](docs/ARCHITECTURE.md#top), [us](https://example.org) and `[a](b)`.' \
    >"$clean/README.md"
echo text >"$clean/LICENSE"
echo '[README](README.md "first")' >"$clean/CONTRIBUTING.md"
echo 'In src/base. See [above](#top) and [home](../README.md).' >"$clean/docs/ARCHITECTURE.md"
echo 'int x;' >"$clean/src/base/err.c"
check "$clean"
refuse 'README.md is missing' 'rm README.md'
refuse 'leads nowhere' 'echo "[a](docs/NONE.md)" >>README.md'
refuse 'no page links' 'echo "[me](MORE.md)" >docs/MORE.md'
refuse 'does not name src/store' 'mkdir src/store && echo "int x;" >src/store/store.c'
echo "documents: refuses what it should"

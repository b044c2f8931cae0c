#!/usr/bin/env bash
# The generated pages of docs/ are what the tables say: docs.sh ROOT BUILD [--write]
set -euo pipefail
cd "$1"
build=$2 bad=0
mkdir -p docs
[ -x "$build/sdc" ] || { echo "$build/sdc:1: is missing: build it first"; exit 1; }
for page in ops passes builtins; do
    if [ "${3:-}" = --write ]; then
        "$build/sdc" doctor "--print-$page" >"docs/$page.md"
    elif ! diff <("$build/sdc" doctor "--print-$page") "docs/$page.md" >/dev/null; then
        echo "docs/$page.md:1: out of date: run ninja -C $build docs"
        bad=1
    fi
done

[ "${3:-}" != --write ] || exit 0

# Links between pages lead somewhere, to a heading that is there; code is no link.
mapfile -t pages < <(find README.md docs tests/*.md runtime -name '*.md' | LC_ALL=C sort)
headings=$(LC_ALL=C awk '
    FNR == 1 { code = 0 }
    /^```/ { code = !code }
    !code && /^#+ / {
        sub(/^#+ +/, "")
        $0 = tolower($0)
        gsub(/[][!"#$%&()*+,.\/:;<=>?@\\^`{|}~\047]/, "")
        gsub(/ /, "-")
        print FILENAME "#" $0
    }' "${pages[@]}")
while IFS=: read -r file line target; do
    case $target in '' | http*) continue ;; esac
    path=$file
    [ -z "${target%%#*}" ] || path=$(dirname "$file")/${target%%#*}
    if [ ! -e "$path" ]; then
        echo "$file:$line: link to nothing: $target"
        bad=1
    elif [[ $target == *'#'* && $path == *.md ]]; then
        path=$(realpath --relative-to=. "$path")
        [[ $'\n'$headings$'\n' == *$'\n'"$path#${target#*#}"$'\n'* ]] ||
            { echo "$file:$line: no such heading: $target"; bad=1; }
    fi
done < <(awk '
    FNR == 1 { code = 0 }
    /^```/ { code = !code }
    !code {
        gsub(/`[^`]*`/, "")
        while (match($0, /\]\([^)]+\)/)) {
            print FILENAME ":" FNR ":" substr($0, RSTART + 2, RLENGTH - 3)
            $0 = substr($0, RSTART + RLENGTH)
        }
    }' "${pages[@]}")
# Files that pages name are there, from the root or from tests/; X stands for any name.
while IFS=: read -r file line path; do
    [ -e "$path" ] || [ -e "tests/$path" ] ||
        { echo "$file:$line: names what is not there: $path"; bad=1; }
done < <(awk '
    BEGIN { root = "^(frontend|ir|passes|codegen|runtime|kernels_dsl|tests|docs|[.]ci)/" }
    {
        while (match($0, /[[:alnum:]_.{}*\/-]+/)) {
            path = substr($0, RSTART, RLENGTH)
            before = substr($0, RSTART - 1, 1)
            $0 = substr($0, RSTART + RLENGTH)
            sub(/[.-]+$/, "", path)
            if (path ~ root && before !~ /[$<]/ &&
                path !~ /[{}*]|\.\.|(^|[\/_])(X|FILE|PHASE|NAME)([.\/]|$)/)
                print FILENAME ":" FNR ":" path
        }
    }' "${pages[@]}")
# Messages that questions are about are messages of the sources.
while IFS= read -r text; do
    grep -rqF --include='*.c' -e "$text" frontend runtime passes ||
        { echo "docs/faq.md: nothing says '$text'"; bad=1; }
done < <(sed -nE 's/^### `(.*)`$/\1/p' docs/faq.md)
# So are the reasons that "sdc explain" gives, in the tables of scheduling.md.
while IFS= read -r text; do
    grep -rqF --include='*.c' -e "$text" passes codegen ||
        { echo "docs/scheduling.md: nothing says '$text'"; bad=1; }
done < <(awk -F'|' 'NF == 4 && !/explain/ { print $3 }' docs/scheduling.md |
    grep -o '`[^`]*`' | sed -e 's/`//g' -e 's/^\.\., //' -e 's/, \.\.$//')
exit $bad

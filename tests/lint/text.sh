#!/usr/bin/env bash
# The text of the tree: text.sh ROOT
#
# No path of one person's machine, no loose end left in a comment, no tab or trailing
# blank in sources, nothing that is not text or a small data file.
set -euo pipefail
cd "$1"
bad=0
if [ -e .git ] && git rev-parse --git-dir >/dev/null 2>&1; then
    mapfile -t files < <(git ls-files --cached --others --exclude-standard)
else
    mapfile -t files < <(find . -type f -not -path './build*' -not -path './.git/*' |
        sed 's|^\./||')
fi
existing=()
for file in "${files[@]}"; do
    case $file in
    tests/fuzz/seeds/* | tests/errors/* | tests/lint/text.sh | *.npy) ;;
    *) [ -f "$file" ] && existing+=("$file") ;;
    esac
done

# rule TEXT PATTERN FILE...: every match is a finding
rule() {
    local text=$1 pattern=$2 hits
    shift 2
    [ $# -gt 0 ] || return 0
    hits=$(grep -nHIE -e "$pattern" -- "$@" || true)
    [ -n "$hits" ] || return 0
    cut -d: -f1,2 <<<"$hits" | sed "s|\$|: $text|"
    bad=1
}

sources=()
for file in "${existing[@]}"; do
    case $file in *.[chly] | *.def | *.tk | *.sh | *.cmake | CMakeLists.txt | bootstrap)
        sources+=("$file") ;;
    esac
done
rule "path of one machine" '(^|[^[:alnum:]_.])/(home|root|work|Users)/[[:alnum:]_.]' \
    "${existing[@]}"
rule "unfinished place: finish it or open an issue" \
    '\b(TODO|FIXME|XXX|HACK|WIP)\b' "${sources[@]}"
rule "tab in a source" $'\t' "${sources[@]}"
rule "blank at the end of a line" '[[:blank:]]$' "${sources[@]}"
# What comments name is there: pass.c, passes/pass.c and ../runtime/sdc.h, not stdio.h.
named='^(ir|passes|codegen|frontend|runtime)/.*\.[ch]$|^docs/(architecture|ir)\.md$'
printf '%s\n' "${existing[@]}" | sed 's|.*/||' | LC_ALL=C awk '
FNR == NR { known[$0]; next }
{
    line = $0
    while (match(line, /[A-Za-z_0-9\/.*>-]*[a-z_0-9]\.(c|def)([^A-Za-z_0-9.(]|$)/)) {
        name = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        sub(/[^A-Za-z_0-9.]$/, "", name)
        sub(/.*\//, "", name)
        if (name in known || name !~ /^[a-z][a-z_0-9][a-z_0-9]+\.(c|def)$/) continue
        printf "%s:%d: there is no %s\n", FILENAME, FNR, name
        bad = 1
    }
}
END { exit bad }' - $(printf '%s\n' "${existing[@]}" | grep -E "$named") || bad=1
for file in "${existing[@]}"; do
    if [ "$(stat -c %s "$file")" -gt 1048576 ]; then
        echo "$file:1: larger than 1 MiB"
        bad=1
    fi
done
exit $bad

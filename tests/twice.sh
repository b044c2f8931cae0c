#!/usr/bin/env bash
# A pass that runs once more changes nothing: twice.sh SDC ROOT
#
# Each golden test of a pass that ends its list with that pass, "--passes=..,X" in
# tests/passes/X/*.tir, runs with X once and twice: the IR must be the same. What a pass
# makes is what it would make, so no later change of a list can make it act again.
set -uo pipefail
sdc=$1 root=$2
export SDC_CACHE=off NO_COLOR=1 LC_ALL=C
# Passes that act again, and why.
again=(
    carry-loads  # each run issues loads one iteration earlier
    place-waits  # it follows a plan, {pending}, and leaves what was done in its place
    undef-masked # it looks at so many uses in a run, and goes on in the next
)
bad=0 n=0
for file in "$root"/tests/passes/*/*.tir; do
    pass=$(basename "$(dirname "$file")")
    case " ${again[*]} " in *" $pass "*) continue ;; esac
    # The options of the first RUN line with such a list, without what is FileCheck's.
    run=$(sed -n 's/^.*RUN: *%sdc compile %s//p' "$file" |
        grep -E -m 1 -e "--passes=([a-z,-]*,)?$pass( |\$)") || continue
    read -r -a options <<<"${run%%|*}"
    once=() more=()
    for o in "${options[@]}"; do
        case $o in
        --passes=*) once+=("$o") more+=("$o,$pass") ;;
        --emit=* | --explain | '2>&1') ;;
        *) once+=("$o") more+=("$o") ;;
        esac
    done
    one=$("$sdc" compile "$file" "${once[@]}" --emit=tir 2>/dev/null) || continue
    two=$("$sdc" compile "$file" "${more[@]}" --emit=tir 2>&1)
    n=$((n + 1))
    [ "$one" != "$two" ] || continue
    echo "$file: $pass changes again what it has made"
    diff <(printf '%s\n' "$one") <(printf '%s\n' "$two") | head -n 10
    bad=1
done
[ $n -ge 50 ] || { echo "only $n tests of passes were found"; bad=1; }
exit $bad

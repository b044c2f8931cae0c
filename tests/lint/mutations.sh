#!/usr/bin/env bash
# Do the lines of tests/mutate/list still break something, and are their tests there? A
# script that changes nothing, since the line it was written for is another now, is
# otherwise seen only when tests/mutate/run comes to it.
set -euo pipefail
cd "${1:?usage: mutations.sh ROOT}"
list=tests/mutate/list status=0
wrong() {
    echo "$list:$line: $1"
    status=1
}
while IFS=$'\t' read -r line file script test; do
    [ -e "$file" ] || { wrong "no file $file"; continue; }
    changed=$(sed "$script" "$file" | diff "$file" - | grep -c '^>') || true
    case $changed in 1 | 2) ;; *) wrong "changes $changed lines of $file" ;; esac
    case $test in
    sim/sm_*) [ -e "tests/run/${test##*/}.c" ] ;;
    run/*) [ -e "tests/$test.c" ] ;;
    unit/* | rules/* | sim/*) [ -e "tests/$test.c" ] ;;
    *) [ -e "tests/$test" ] ;;
    esac || wrong "no test $test"
done < <(awk -F ' :: ' -v OFS='\t' '!/^#/ && NF > 2 { print NR, $2, $3, $4 }' $list)
exit $status

#!/usr/bin/env bash
# Is every function of runtime/sdc.h, sdc_measure.h and runtime/rt/sdcrt.h called by
# tests/unit/every_call.h, or by the tests that include it? And does the runtime take
# locks that a thread of the parent may hold only where a child of a fork is refused?
set -euo pipefail
root=${1:?usage: every_call.sh ROOT}
status=0
tests=$(grep -l every_call.h "$root"/tests/unit/*.c)
for f in $(cat "$root"/runtime/sdc{,_measure}.h "$root/runtime/rt/sdcrt.h" |
    grep -oE '^(SDC|SDCRT)_API .*' | grep -oE '\b(sdc|sdcrt)_[a-z_]+\(' | sort -u); do
    if ! grep -qF "$f" "$root/tests/unit/every_call.h" $tests; then
        echo "tests/unit/every_call.h: $f) is called by no test of all functions"
        status=1
    fi
done
for f in "$root"/runtime/*.c; do
    case $f in */context.c | */tune.c) continue ;; esac # context_lock; its own lock
    if grep -nH 'pthread_mutex_lock' "$f" | sed "s|$root/||"; then
        echo "use context_lock (runtime/internal.h): it fails in the child of a fork"
        status=1
    fi
done
exit $status

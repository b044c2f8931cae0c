#!/usr/bin/env bash
# Have the structs of tests/gpu/libsdc.py the members of runtime/sdc.h, in the same order?
# A member that is missing there is read from whatever lies behind the struct.
set -euo pipefail
root=${1:?usage: binding.sh ROOT}
status=0
check() { # C's name, Python's
    local c py
    c=$(sed -n "/^typedef struct $1 {/,/^} $1;/p" "$root/runtime/sdc.h" |
        sed -e 's|/\*.*||' -e 's|.*\*/||' | grep ';' | grep -v '^}' | tr ',' '\n' |
        sed -e 's/\[.*//' -e 's/;.*//' -e 's/.*[ *]//' | tr '\n' ' ')
    py=$(sed -n "/^class $2(/,/^$/p" "$root/tests/gpu/libsdc.py" |
        grep -oE '\("[a-z_]+"' | tr -d '("' | tr '\n' ' ')
    if [ -z "$c" ] || [ "$c" != "$py" ]; then
        echo "tests/gpu/libsdc.py: class $2 has: $py"
        echo "runtime/sdc.h: $1 has: $c"
        status=1
    fi
}
check SdcContextOptions Options
check SdcDevice Device
check SdcKernelUse Use
exit $status

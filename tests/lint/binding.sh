#!/usr/bin/env bash
# Have the structs of the bindings for Python the members of the C headers, in the same
# order? A member that is missing there is read from whatever lies behind the struct.
# And is the package of the library's version?
set -euo pipefail
root=${1:?usage: binding.sh ROOT}
status=0
package=runtime/python/sdc/_lib.py
check() { # header, C's name, file, Python's name
    local c py
    c=$(sed -zE "s/.*\ntypedef struct $2 \{(.*)\} $2;.*/\1/" "$root/$1" |
        sed -zE 's|/\*([^*]*\*+)([^/*][^*]*\*+)*/||g' | tr '\n' ' ' | tr ';,' '\n\n' |
        sed -e 's/\[.*//' -e 's/ *$//' -e 's/.*[ *]//' -e '/^$/d' | tr '\n' ' ')
    py=$(sed -n "/^class $4(/,/^$/p" "$root/$3" |
        grep -oE '\("[a-z_]+"' | tr -d '("' | tr '\n' ' ')
    if [ -z "$c" ] || [ "$c" != "$py" ]; then
        echo "$3: class $4 has: $py"
        echo "$1: $2 has: $c"
        status=1
    fi
}
for file in tests/gpu/libsdc.py "$package"; do
    check runtime/sdc.h SdcContextOptions "$file" Options
    check runtime/sdc.h SdcDevice "$file" Device
    check runtime/sdc.h SdcKernelUse "$file" Use
done
check runtime/rt/grid.h SdcGrid "$package" Grid
check runtime/sdc.h SdcBuffer "$package" Buffer
check runtime/sdc.h SdcDesc "$package" Desc
check runtime/sdc_nn.h SdcTensor "$package" Tensor
check runtime/sdc_nn.h SdcDropout "$package" Dropout
check runtime/sdc_nn.h SdcBlockDropout "$package" BlockDropout
check runtime/sdc_nn.h SdcAttention "$package" Attention
for file in tests/gpu/shapes "$package"; do
    check runtime/sdc_nn.h SdcMatmulOptions "$file" MatmulOptions
    check runtime/sdc_nn.h SdcRotary "$file" Rotary
done
# the numbers of dtypes are counted from 1 in the order of the enum
c=$(sed -n '/^typedef enum SdcDtype {/,/^} SdcDtype;/p' "$root/runtime/sdc.h" |
    grep -oE 'SDC_[A-Z0-9]+,' | tr -d ' ,' | sed 's/SDC_//' | tr '\n' ' ')
py=$(sed -n '/^(BOOL/,/range/p' "$root/$package" | tr -d '(),' | sed 's/ = .*//;s/=.*//' |
    tr -s ' \n' ' ' | sed 's/^ //')
if [ "${c% }" != "${py% }" ]; then
    echo "$package: dtypes are: $py; runtime/sdc.h: $c"
    status=1
fi
version=$(sed -nE 's/^project\(.*VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")
if ! grep -qF "\"${version:-?}\"" "$root/runtime/python/sdc/_version.py"; then
    echo "runtime/python/sdc/_version.py: the library is $version"
    status=1
fi
exit $status

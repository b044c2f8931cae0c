#!/usr/bin/env bash
# Compiles the kernels of kernels.list ahead of time: build_kernels.sh SDC OUT [TARGETS]
#
# Leaves in OUT libsdckernels.a, a header a kernel in kernels/, and sdc_kernels.h, which
# includes them all. A host links libsdckernels.a and libsdcrt.a.
set -euo pipefail
sdc=$1 out=$2 targets=${3:-sm_80,sm_90a,cpu}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$out/kernels"
rm -f "$out/libsdckernels.a"
{
    echo "/* The kernels of libsdckernels.a; kernels_dsl/ says what each computes. */"
    echo "#ifndef SDC_KERNELS_H"
    echo "#define SDC_KERNELS_H"
    echo
} >"$out/sdc_kernels.h.tmp"
while read -r name file kernel warps stages grid signatures; do
    case $name in '#'* | '') continue ;; esac
    args=()
    for s in $signatures; do
        args+=(-s "$s")
    done
    "$sdc" compile "$here/$file.tk" -k "$kernel" --name "sdc_$name" --target "$targets" \
        --num-warps "$warps" --num-stages "$stages" -g "$grid" "${args[@]}" \
        -o "$out/kernels/$name.o" --header "$out/kernels/$name.h"
    ar rcD "$out/libsdckernels.a" "$out/kernels/$name.o"
    echo "#include \"kernels/$name.h\"" >>"$out/sdc_kernels.h.tmp"
done <"$here/kernels.list"
printf '\n#endif\n' >>"$out/sdc_kernels.h.tmp"
mv "$out/sdc_kernels.h.tmp" "$out/sdc_kernels.h"

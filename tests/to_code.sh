#!/usr/bin/env bash
# Whatever the reader and the verifier let through becomes code or is refused: to_code.sh
# SDC ROOT TMP TARGET
#
# Every .tir of the tests, and what each pass leaves of two kernels, is compiled to code
# of the target: status 0, or 1 with a message. Never an internal error, a signal, or more
# than LIMIT seconds of a processor.
set -uo pipefail
sdc=$1 root=$2 tmp=$3/to_code_$4.$$ target=$4
LIMIT=30
emit=asm
[ "$target" = cpu ] || emit=ptx
mkdir -p "$tmp"
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 3 # a reproducer goes where sdc runs
export SDC_CACHE=off NO_COLOR=1 LC_ALL=C

# Prints what is wrong with one file.
compile() {
    local out status
    out=$(ulimit -t $LIMIT &&
        "$1" compile "$2" --target "$3" --emit "$4" -o /dev/null 2>&1)
    status=$?
    [ $status -eq 0 ] || { [ $status -eq 1 ] && [[ $out == *": error: "* ]]; } && return
    printf '%s: target %s: status %d: %s\n' "$2" "$3" $status "${out%%$'\n'*}"
}
export -f compile
export LIMIT

# NAME SIGNATURE: the tile IR after every pass, a file each.
dump() {
    "$sdc" compile "$root/kernels_dsl/$1.tk" -k "$1" -s "$2" --target "$target" \
        --emit "$emit" -o /dev/null --dump-after=all 2>&1 |
        awk -v to="$tmp/$1" '
            /^\/\/ after / { close(f); f = sprintf("%s_%02d_%s.tir", to, n++, $3) }
            { print >f }'
}
dump vector_add 'x_ptr=*fp32:16,y_ptr=*fp32:16,out_ptr=*fp32:16,n=i32,BLOCK=1024'
half='*fp16:16' n=i32:16
sizes="M=$n,N=$n,K=$n,a_stride_m=$n,a_stride_k=1,b_stride_k=$n,b_stride_n=1"
sizes+=",c_stride_m=$n,c_stride_n=1,BLOCK_M=64,BLOCK_N=64,BLOCK_K=32"
dump matmul "a_ptr=$half,b_ptr=$half,c_ptr=$half,bias_ptr=None,$sizes"

{ find "$root/tests" -name '*.tir' && find "$tmp" -name '*.tir'; } | sort >list
xargs -P 2 -I{} bash -c 'compile "$@"' - "$sdc" {} "$target" "$emit" <list >faults
dumps=$(grep -c "^$tmp" list)
echo "$(wc -l <list) files of tile IR, $dumps of them dumps, for $target"
cat faults
[ ! -s faults ] && [ "$dumps" -ge 20 ]

#!/usr/bin/env bash
# Nothing in the sources keeps aarch64 out: aarch64.sh ROOT BUILD LLVM_INCLUDE OUT
#
# Everything is read by a compiler for it, without a warning, and libsdcrt, which launches
# on GPUs, is built. What a port still needs is code for its CPUs (codegen/target_cpu.c
# knows x86-64) and an LLVM of that machine. SKIPPED (77) without a cross compiler
# (Debian: gcc-aarch64-linux-gnu and libc6-dev-arm64-cross).
set -euo pipefail
root=$1 build=$2 include=$3 out=$4
cc=aarch64-linux-gnu-gcc
echo '#include <stdio.h>' | $cc -fsyntax-only -x c - 2>/dev/null || exit 77
cd "$root"
flags=(-std=c17 -D_GNU_SOURCE -DSDC_VERSION='"0"' -DSDC_LLVM_VERSION='"22"' -Wall -Wextra
    -Wno-format-truncation -Werror -I. -I"$build/gen" -isystem "$include")
# xxHash is a header without anything of the machine's own; other headers of this one
# would be.
rm -rf "$out"
mkdir -p "$out/include"
cp /usr/include/xxhash.h "$out/include" 2>/dev/null || exit 77
[ ! -e /usr/include/xxh3.h ] || cp /usr/include/xxh3.h "$out/include"
flags+=(-isystem "$out/include")
$cc "${flags[@]}" -fsyntax-only ir/base/*.c ir/*.c ir/analysis/*.c ir/plan/*.c \
    frontend/*.c passes/*.c passes/*/*.c codegen/*.c runtime/*.c runtime/nn/*.c \
    runtime/cli/*.c "$build"/gen/frontend/{parse,prelude_text}.c
for file in runtime/rt/*.c; do
    $cc "${flags[@]}" -O2 -c "$file" -o "$out/$(basename "$file" .c).o"
done
aarch64-linux-gnu-ar rcD "$out/libsdcrt.a" "$out"/*.o

#!/usr/bin/env bash
# The packages of "ninja packages", as somebody gets them: package.sh ROOT BUILD OUT
#
# Makes them, unpacks the tarball into OUT/prefix, where the tests of pages and examples
# find it, and looks at what is in both: everything, none of this machine's folders, none
# but old versions of glibc asked for.
set -euo pipefail
root=$1 build=$2 out=$(realpath -m "$3")
rm -rf "$out"
mkdir -p "$out/prefix" "$out/deb"
cmake --build "$build" --target packages >"$out/log" 2>&1 ||
    { tail -n 40 "$out/log"; exit 1; }
cp "$build"/packages/sdc-*.tar.gz "$out"
tar -xf "$out"/sdc-*.tar.gz -C "$out/prefix" --strip-components=1
cd "$out/prefix"
bad=0
wrong() {
    echo "package: $1"
    bad=1
}
for file in bin/sdc lib/libsdc.so lib/libsdc.so.0 lib/libsdc.a lib/libsdcrt.a \
    lib/libsdckernels.a lib/pkgconfig/sdc.pc lib/pkgconfig/sdcrt.pc \
    lib/cmake/sdc/sdc-config.cmake include/sdc/{sdc,sdcrt,cuda,meta,bundle,sdc_nn}.h \
    include/sdc/grid.h include/sdc/{sdc_kernels.h,kernels/matmul.h} share/man/man1/sdc.1 \
    share/bash-completion/completions/sdc share/zsh/site-functions/_sdc \
    share/fish/vendor_completions.d/sdc.fish share/sdc/kernels/{matmul,softmax}.tk \
    share/doc/sdc/{README.md,LICENSE,docs/language.md,docs/examples/rows.c} \
    share/doc/sdc/html/{index,docs/index,docs/tutorial/8-attention,runtime/sdc.h}.html \
    share/doc/sdc/notices/{sdc,LLVM,libstdc++,zstd,zlib,xxHash}.txt; do
    [ -s "$file" ] || wrong "no $file"
done
grep -q 'LLVM Exception' share/doc/sdc/notices/LLVM.txt || wrong "LLVM's licence is none"
# A folder's name as a path begins: of a clone in /sdc not the end of lib/cmake/sdc.
names=$(printf '%s\n' "$root" "$build" | sed 's/[][\.*^$+?(){}|]/\\&/g' |
    paste -sd '|')
names="(^|[^[:alnum:]_.}~-])($names)(/|\\b)"
grep -rIlE --exclude-dir=docs --exclude-dir=html -e "$names" . >"$out/names" &&
    wrong "names of this machine's folders in $(cat "$out/names")"
# The command runs from here, without the build folder's library.
[ "$(bin/sdc --version | cut -d' ' -f1)" = sdc ] || wrong "bin/sdc does not run"
ldd bin/sdc | grep "$out/prefix/.*libsdc.so.0" >"$out/ldd" ||
    wrong "bin/sdc takes another libsdc.so"

if command -v dpkg-deb >/dev/null; then
    deb=("$build"/packages/sdc_*.deb)
    dpkg-deb -x "${deb[0]}" "$out/deb"
    [ -x "$out/deb/usr/bin/sdc" ] || wrong "no /usr/bin/sdc in the .deb"
    depends=$(dpkg-deb -f "${deb[0]}" Depends)
    [[ $depends =~ ^libc6\ \(\>=\ [0-9.]+\),\ libgcc-s1\ \(\>=\ [0-9.]+\)$ ]] ||
        wrong "the .deb depends on $depends"
fi
exit $bad

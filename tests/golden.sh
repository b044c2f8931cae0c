#!/usr/bin/env bash
# Runs the RUN lines of one golden test: golden.sh SDC LLVM_BIN TMP FILE
#
# Expanded in a line: %sdc the command, %s this file, %S its folder, %t a scratch name of
# its own.  FileCheck and not come from LLVM.  pipefail: without it "sdc | FileCheck"
# would hide a crash of sdc.  A trailing backslash continues a RUN line in the next one.
# A line that exits with 77 says that what it needs is not on this machine: SKIPPED.
set -uo pipefail
sdc=$1 llvm=$2 tmp=$3 file=$4
name=${file##*/tests/}
base="$tmp/${name//\//_}.$$"
export PATH="$llvm:$PATH" NO_COLOR=1 LC_ALL=C SDC_CACHE=off
trap 'rm -rf "$base"*' EXIT

lines=$(sed -n 's/^.*RUN:[[:space:]]*//p' "$file" |
    sed -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}')
if [ -z "$lines" ]; then
    echo "$file: no RUN line"
    exit 1
fi
while IFS= read -r line; do
    [ -n "$line" ] || continue
    cmd=${line//%sdc/$sdc}
    cmd=${cmd//%S/${file%/*}}
    cmd=${cmd//%s/$file}
    cmd=${cmd//%t/$base}
    bash -o pipefail -c "$cmd" </dev/null
    status=$?
    if [ $status -eq 77 ]; then
        echo "$file: SKIPPED"
        exit 77
    fi
    if [ $status -ne 0 ]; then
        printf '%s: RUN line failed:\n  %s\n' "$file" "$cmd"
        exit 1
    fi
done <<<"$lines"

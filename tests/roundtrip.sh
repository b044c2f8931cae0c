#!/usr/bin/env bash
# Whatever is printed can be read back: roundtrip.sh SDC TMP FILE.tir
#
# Prints the IR of the file, reads that text and prints it again: both must be the same.
set -euo pipefail
sdc=$1 tmp=$2 file=$3
name=${file##*/tests/}
base="$tmp/roundtrip_${name//\//_}.$$"
trap 'rm -f "$base".*' EXIT

"$sdc" compile "$file" --emit=tir -o "$base.1.tir"
"$sdc" compile - --emit=tir <"$base.1.tir" >"$base.2.tir"
if ! diff -u "$base.1.tir" "$base.2.tir"; then
    echo "$file: the printed IR changed when it was read back"
    exit 1
fi

#!/usr/bin/env bash
# programs.sh SDC SCRATCH: each program of programs.txt as module level code of a file
# whose kernel prints `out`; what sdc makes of it, against programs.expected. Where Python
# is there, programs.expected against Python, too (programs.py writes it).
set -uo pipefail
sdc=$1 scratch=$2 here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$scratch"
awk -v dir="$scratch" '
    function finish() {
        if (file)
            print "import triton\nimport triton.language as tl\n" \
                "OUT = tl.constexpr(repr(out))\n@triton.jit\ndef show():\n" \
                "    tl.static_print(OUT)" >file
        close(file)
    }
    /^=== / { finish(); file = dir "/" $2 ".py"; next }
    { print >file }
    END { finish() }' "$here/programs.txt"
while read -r name _; do
    echo "$name $("$sdc" compile "$scratch/$name.py" --emit=tir -o /dev/null 2>&1 |
        sed -nE 's/.*(static_print|error): //p' | head -1)"
done <"$here/programs.expected" | diff "$here/programs.expected" - || exit 1
if command -v python3 >/dev/null; then
    python3 -B "$here/programs.py" | diff "$here/programs.expected" - || exit 1
fi
echo "$(wc -l <"$here/programs.expected") programs agree"

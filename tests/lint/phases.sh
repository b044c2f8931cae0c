#!/usr/bin/env bash
# The phases of passes/: phases.sh ROOT
#
#   simplify <- access <- { cpu, layout <- mma <- schedule } <- finish
#
# A file of a phase includes headers of its own phase and of those in front of it, and of
# passes/ itself, which includes none of a phase. The function of a pass stands in the
# folder of the phase that passes.def names.
set -euo pipefail
cd "$1"
find passes -name '*.[ch]' | LC_ALL=C sort | xargs grep -nE '^#include "passes/' |
    LC_ALL=C awk -F: '
function phase(path,   part, n) {
    n = split(path, part, "/")
    return n > 2 ? part[2] : "."
}
BEGIN {
    may["."] = " . "
    may["simplify"] = " . simplify "
    may["access"] = may["simplify"] "access "
    may["cpu"] = may["access"] "cpu "
    may["layout"] = may["access"] "layout "
    may["mma"] = may["layout"] "mma "
    may["schedule"] = may["mma"] "schedule "
    may["finish"] = may["schedule"] "finish "
}
{
    split($3, part, "\"")
    from = phase($1); to = phase(part[2])
    if (from != "." && !(from in may)) {
        printf "%s:%d: no phase is named %s\n", $1, $2, from
        bad = 1
    } else if (index(may[from], " " to " ") == 0) {
        printf "%s:%d: an upward arrow: %s includes %s\n", $1, $2, from, to
        bad = 1
    }
}
END { exit bad }'
bad=0
while IFS=' ' read -r fn phase; do
    file=$(grep -lE "^pass_$fn\(" -r passes --include='*.c' || true)
    [ "$(dirname "$file")" = "passes/$phase" ] && continue
    echo "passes/passes.def:1: pass_$fn is of phase $phase, not in $file"
    bad=1
done < <(sed -nE 's/^PASS\(([a-z_0-9]+), "[^"]*", ([A-Z]+),.*/\1 \2/p' passes/passes.def |
    tr 'A-Z' 'a-z')
exit $bad

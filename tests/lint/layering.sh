#!/usr/bin/env bash
# Who may include whom: layering.sh ROOT
#
#   ir/base <- ir <- { frontend, passes, codegen } <- runtime <- runtime/cli, tests
#
# ir/plan, how operations are lowered for NVIDIA's GPUs, lies between ir and those that
# lower: passes and codegen.
#
# runtime/rt includes only itself, and lends codegen its metadata format.  tests/ref holds
# the C references: they include nothing of sdc, or they would share its mistakes;
# tests/interp, the interpreter of tile IR, knows the IR and the front end alone.  LLVM
# is known to codegen alone, and no header of CUDA is needed anywhere.  Includes start at
# the root.
#
# Which operation an asynchronous dot is (ir/async.def) is known to those that make it,
# place its waits and generate its code; all others ask ir/analysis/async_dot.h.
set -euo pipefail
cd "$1"
bad=0
grep -n 'OP_WGMMA' -r ir passes codegen --include='*.[ch]' |
    grep -vE '^passes/(mma/lower_wgmma|schedule/carry_accumulator)\.c:|^codegen/gen_nv' |
    sed 's/\(:[0-9]*\):.*/\1: names OP_WGMMA: ask ir\/analysis\/async_dot.h/' |
    grep . && bad=1
find frontend ir passes codegen runtime tests -type f -name '*.[chly]' 2>/dev/null |
    LC_ALL=C sort | xargs -r grep -nE '^[[:space:]]*#[[:space:]]*include' |
    LC_ALL=C awk -F: '
function report(rule) { printf "%s:%d: %s: %s\n", $1, $2, rule, what; bad = 1 }
function layer(path) {
    if (path ~ /^ir\/base\//) return "base"
    if (path ~ /^ir\/plan\//) return "plan"
    if (path ~ /^runtime\/rt\//) return "rt"
    if (path ~ /^runtime\/cli\//) return "cli"
    if (path ~ /^tests\/ref\//) return "ref"
    if (path ~ /^tests\/interp\//) return "interp"
    return substr(path, 1, index(path, "/") - 1)
}
BEGIN {
    may["base"] = " base "
    may["ir"] = " base ir "
    may["plan"] = " base ir plan "
    may["frontend"] = " base ir frontend "
    may["passes"] = " base ir plan passes "
    may["codegen"] = " base ir plan codegen "
    may["rt"] = " rt "
    may["runtime"] = " base ir plan frontend passes codegen rt runtime "
    may["cli"] = may["runtime"] "cli "
    may["ref"] = " ref "
    may["interp"] = " base ir frontend interp "
    may["tests"] = may["cli"] "ref interp tests "
}
{
    what = $3
    from = layer($1)
    if (what ~ /<(llvm|llvm-c)\//) {
        if (from != "codegen") report("LLVM is included by codegen only")
        next
    }
    if (what ~ /<(cuda|cublas|cudnn|nv)[a-z_]*\.h>/) report("no CUDA header is needed")
    if (what !~ /"/) next
    split(what, part, "\"")
    path = part[2]
    if (path !~ /\//) { report("includes are written from the root"); next }
    if ((getline line < path) < 0 && path !~ /^frontend\/(lex|parse)\.h$/)
        report("no such file")
    close(path)
    to = layer(path)
    if (from == "codegen" && path == "runtime/rt/meta.h") next
    if (index(may[from], " " to " ") == 0)
        report(from == "ref" ? "a reference includes no header of sdc" \
                             : from " may not include " to)
}
END { exit bad }' || bad=1
exit $bad

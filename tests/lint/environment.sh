#!/usr/bin/env bash
# Variables of the environment: environment.sh ROOT
#
# Each that our code reads is a line of runtime/cli/environment.def, of which the manual
# page is made, and each line is of one that is read.
set -euo pipefail
cd "$1"
table=runtime/cli/environment.def
bad=0
read_by=$(grep -rnoE --include='*.[ch]' --include='*.py' \
    "(getenv\\(|environ\\.get\\(|environ\\[)[\"'][A-Z_]+" \
    runtime/*.[ch] runtime/rt runtime/nn runtime/cli runtime/python/sdc codegen passes \
    ir frontend | sed -E "s/:[^:]*[\"']/ /")
while read -r place name; do
    case $name in
    HOME | PATH | TERM | TRITON_INTERPRET) continue ;; # everybody's, and Triton's own
    esac
    grep -q "^VARIABLE($name," $table ||
        { echo "$place: $name is read, and not in $table"; bad=1; }
done < <(sed -E 's/^([^:]+):([0-9]+) /\1:\2 /' <<<"$read_by")
for name in $(sed -nE 's/^VARIABLE\(([A-Z_]+),.*/\1/p' $table); do
    grep -qw "$name" <<<"$read_by" || { echo "$table:1: nobody reads $name"; bad=1; }
done
exit $bad

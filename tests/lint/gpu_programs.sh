#!/usr/bin/env bash
# Does the build have the programs that tests/gpu/pack and tests/gpu/run name? A name that
# a renaming missed finds an old binary, or nothing, on the machine with the GPU.
set -euo pipefail
root=${1:?usage: gpu_programs.sh ROOT BUILD} build=${2:?}
status=0
for name in $(sed -nE 's/^for program in (.*); do$/\1/p' "$root/tests/gpu/pack") \
    $(sed -nE 's/^programs=\$\{PROGRAMS:-(.*)\}$/\1/p' "$root/tests/gpu/run"); do
    grep -qE "^build run_$name( |:)" "$build/build.ninja" && continue
    echo "tests/gpu: no target run_$name"
    status=1
done
exit $status

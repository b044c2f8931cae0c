#!/usr/bin/env bash
# The Python package's tests without torch, and the blocks of its page; SKIPPED where
# python3, numpy or pytest is missing: python.sh ROOT BUILD
set -euo pipefail
root=${1:?usage: python.sh ROOT BUILD} build=${2:?}
python=${PYTHON:-python3}
if ! "$python" -c 'import numpy, pytest' 2>/dev/null; then
    echo "SKIPPED: no python3 with numpy and pytest"
    exit 77
fi
export SDC_LIBRARY=$build/libsdc.so.0 PYTHONPATH=$root/runtime/python SDC_CACHE=off
export PYTHONDONTWRITEBYTECODE=1
cd "$root/runtime/python"
"$python" -m pytest -q -p no:cacheprovider tests/test_jit.py tests/test_check.py \
    tests/test_install.py
page=$(mktemp -d)
trap 'rm -rf "$page"' EXIT
printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v "$python")" >"$page/python3"
chmod +x "$page/python3"
PATH=$page:$PATH "$root/tests/pages/run" "$root/docs/python.md" "$page/run"

# What may decide is named: the variables of the environment that the file asks for.
# RUN: not %sdc compile %s -k k -s '*fp32' --emit tir -o - 2>&1 | FileCheck %s
# RUN: %sdc compile %s -k k -s '*fp32' -D VENDOR=one --emit tir -o - | FileCheck %s --check-prefix=ONE
import os

import triton
import triton.language as tl
from machine import count

vendor = os.environ.get("VENDOR") or count()
SCALE = tl.constexpr(2.0 if vendor == "one" else 3.0)


@triton.jit
def k(x):
    # CHECK: environment.py:[[#@LINE+1]]:17: error: 'SCALE' is
    tl.store(x, SCALE)
    # CHECK: environment.py:10:13: note: or the environment, -D 'VENDOR=VALUE'
    # ONE: const {fvalue=0x1p+1}

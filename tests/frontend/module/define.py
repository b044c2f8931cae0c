# What only Python could know, decided by -D: a name, a call, the environment.
# RUN: not %sdc compile %s -k k -s '*fp32' --emit tir -o - 2>&1 | FileCheck %s
# RUN: %sdc compile %s -k k -s '*fp32' -D 'FAST=True' --emit tir -o - | FileCheck %s --check-prefix=YES
# RUN: %sdc compile %s -k k -s '*fp32' -D 'machine.count()=2' --emit tir -o - | FileCheck %s --check-prefix=YES
# RUN: %sdc compile %s -k k -s '*fp32' -D 'machine.count()=1' --emit tir -o - | FileCheck %s --check-prefix=NO
# RUN: %sdc compile %s -k env -s '*fp32' --emit tir -o - | FileCheck %s --check-prefix=FOUR
# RUN: %sdc compile %s -k env -s '*fp32' -D WIDTH_OF_TEST=8 --emit tir -o - 2>&1 | FileCheck %s --check-prefix=EIGHT --implicit-check-not warning:
# RUN: %sdc compile %s -k device -s '*fp32' --target sm_90a --emit tir -o - | FileCheck %s --check-prefix=NINETY
# RUN: %sdc compile %s -k device -s '*fp32' --target sm_80 --emit tir -o - | FileCheck %s --check-prefix=EIGHTY
# RUN: %sdc compile %s -k k -s '*fp32' -D 'FAST=True' -D 'FASST=2' -D nobody=1 --emit tir -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNUSED
# UNUSED: sdc: warning: -D 'FASST=2' decides nothing here: no global of a file
# UNUSED-NEXT: sdc: note: did you mean 'FAST'?
# UNUSED-NEXT: sdc: warning: -D 'nobody=1' decides nothing
# UNUSED-NOT: note
import os
import machine
import torch
import triton
import triton.language as tl

FAST = machine.count() > 1
if FAST:
    N = tl.constexpr(64)
else:
    N = tl.constexpr(32)
WIDTH = tl.constexpr(int(os.environ.get("WIDTH_OF_TEST", "4")))
if torch.cuda.is_available():
    ARCH = tl.constexpr(torch.cuda.get_device_capability()[0])


@triton.jit
def k(x):
    # CHECK: define.py:[[#@LINE+5]]:17: error: 'N' is one of several, and which one only Python
    # CHECK: define.py:[[#@LINE-13]]:8: note: it depends on this
    # CHECK: note: -D 'FAST=VALUE' decides it
    # YES: value=64
    # NO: value=32
    tl.store(x, N)


@triton.jit
def env(x):
    # FOUR: value=4
    # EIGHT: value=8
    tl.store(x, WIDTH)


@triton.jit
def device(x):
    # NINETY: value=9
    # EIGHTY: value=8
    tl.store(x, ARCH)

# A file of a package: absolute imports begin at the package's root, without -I; modules of
# the host that are missing matter to nobody.
# RUN: %sdc compile %s -k k -s '*fp32' --emit tir -o - | FileCheck %s
# RUN: cd %S/.. && %sdc compile pkg/kernels.py -k k -s '*fp32' --emit tir -o - | FileCheck %s
# RUN: not %sdc compile %s -k wrong -s '*fp32' --emit tir -o - 2>&1 | FileCheck %s --check-prefix=WRONG
import numpy_but_not_quite as npq
import triton
import triton.language as tl
from pkg import activation
from pkg.shapes import twice
from pkg.sub.mod import hidden
from ..pkg import sub


@triton.jit
def k(x):
    # CHECK: select
    # CHECK: select
    # CHECK: select
    tl.store(x, activation(tl.load(x)) + twice(tl.load(x + 1)) + sub.relu(hidden(tl.load(x))))


@triton.jit
def wrong(x):
    # WRONG: kernels.py:[[#@LINE+1]]:17: error: no file was found for 'numpy_but_not_quite'
    tl.store(x, npq.float32(1))

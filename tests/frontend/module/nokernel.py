# A function without its decorator is named.
# RUN: not %sdc compile %s -k k -s '*fp32' 2>&1 | FileCheck %s
# RUN: not %sdc compile %s -s '*fp32' 2>&1 | FileCheck %s --check-prefix=NONE
# RUN: not %sdc check %s 2>&1 | FileCheck %s --check-prefix=NONE
import triton.language as tl


def k(x):
    tl.store(x, 1)
# CHECK: error: no kernel is named 'k'
# CHECK: nokernel.py:[[#@LINE-3]]:{{.*}}note: no @triton.jit before 'k'
# NONE: error: the file has no kernel
# NONE-NOT: helper
# NONE: nokernel.py:[[#@LINE-6]]:{{.*}}note: no @triton.jit before 'k'


def helper(n):
    return n + 1

# RUN: not %sdc check %s 2>&1 | FileCheck %s
# One message each for too few values, an element of a tuple and '...'.
import triton
import triton.language as tl


@triton.jit
def k(y_ptr):
    # CHECK-NOT: error:
    # CHECK: [[#@LINE+1]]:5: error: 3 names need a tuple of 2 or more, found a tuple of 1
    a, *b, c = (1,)
    a, *b = (1, 2, 3)
    t = (a, a)
    # CHECK-NOT: error:
    # CHECK: [[#@LINE+1]]:5: error: elements of a tuple cannot be assigned; make another, 't[:1] + (value,) + t[2:]'
    t[0] = 3
    x = tl.arange(0, 4)
    # CHECK-NOT: error:
    # CHECK: [[#@LINE+1]]:23: error: '...' cannot be used in a kernel; write ':' for each dimension
    tl.store(y_ptr, x[..., None])
    # CHECK-NOT: error:

# RUN: not %sdc compile %s -k k -s '*fp32,*fp32' --emit=tir 2>&1 | FileCheck %s
# Pointers that are indexed, functions that are not called.
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, y_ptr):
    i = tl.arange(0, 64)
    # CHECK: [[#@LINE+1]]:25: error: unsupported tensor index: a pointer is not indexed; write tl.load(p + i)
    tl.store(y_ptr + i, x_ptr[i])
    # CHECK: [[#@LINE+1]]:5: error: a pointer is not indexed; write tl.store(p + i, value)
    y_ptr[0] = 1
    # CHECK: [[#@LINE+1]]:14: error: '+' cannot take *fp32 and a function: call the function
    tl.store(y_ptr + tl.program_id, 1)

# RUN: %sdc compile %s -k k -s '*i32,8' --emit=tir | FileCheck %s
# isinstance sees what is inside of a constexpr: nothing in a kernel is a tl.constexpr.
import triton
import triton.language as tl


@triton.jit
def k(y_ptr, B: tl.constexpr):
    tl.static_assert(isinstance(B, int))
    # CHECK: const {value=3}
    # CHECK-NOT: value=4
    if isinstance(B, tl.constexpr) or isinstance(5, tl.constexpr):
        tl.store(y_ptr, 4)
    else:
        tl.store(y_ptr, 3)

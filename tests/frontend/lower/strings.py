# RUN: %sdc compile %s -k k -s '*i32,"relu"' --emit=tir | FileCheck %s
# Strings are indexed, sliced, repeated and formatted at compile time.
import triton
import triton.language as tl


@triton.jit
def k(y_ptr, ACT: tl.constexpr):
    tl.static_assert(ACT[0] == "r" and ACT[-1] == "u" and ACT[1:3] == "el")
    tl.static_assert(ACT[::-1] == "uler" and ACT * 2 == "relurelu" and 0 * ACT == "")
    tl.static_assert(len(ACT) == 4, f"{'-' * len(ACT)}")
    N: tl.constexpr = 42
    tl.static_assert(f"{N:>4}|{N:02x}|{ACT!r:>7}|{N=}|{1.5:.3f}" == "  42|2a| 'relu'|N=42|1.500")
    # CHECK: const {value=7}
    tl.store(y_ptr, 7 if ACT[:2] == "re" else 8)

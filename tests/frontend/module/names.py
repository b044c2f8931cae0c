# What a kernel sees of module level code is what Python bound last.
# RUN: %sdc compile %s -k k -s '*fp32' --emit tir -o - | FileCheck %s
# RUN: %sdc check %s | FileCheck %s --check-prefix=LIST
import math
import os
import triton
import triton.language as tl

try:
    import no_such_module_anywhere
    @triton.jit
    def a(x): return x + 1
except ImportError:
    @triton.jit
    def a(x): return x + 2
if hasattr(tl, "no_such_function"):
    b = tl.exp
else:
    b = tl.exp2
if False:
    @triton.jit
    def never(x): tl.store(x, 1)
c0 = tl.constexpr(math.sqrt(2.0))
c1: tl.constexpr = 2 ** 4
MODE = os.environ.get("MODE_OF_THIS_TEST", "fast")
c2 = tl.constexpr(5 if MODE == "fast" else 6)


def make(n):
    n = tl.constexpr(n)

    @triton.jit
    def scale(x): return x * n
    return scale


by3, by4 = make(3), make(4)


# LIST: kernel k(
# LIST: names.py: 1 of 1 kernel passes
def k(x):
    v = a(tl.load(x))
    # CHECK: const {fvalue=0x1p+1}
    # CHECK: exp2
    v = b(v)
    # CHECK: 0x1.6a09e
    # CHECK: const {{{.*}}value={{.*}}
    v = v + c0 + c1 + c2
    # CHECK: const {fvalue=0x1.8p+1}
    v = by3(v)
    # CHECK: const {fvalue=0x1p+2}
    tl.store(x, by4(v))


k = triton.jit(k)

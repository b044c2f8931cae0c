# Which arm of a top-level `if` or `try` binds a name is what Python does when it loads the
# file, not the first one: conditions are evaluated, a module without a file is an
# ImportError, the environment counts as empty.
# RUN: %sdc compile %s -k f -s '*fp32' --emit tir -o - | FileCheck %s
import os
import triton
import triton.language as tl

FLAG = os.environ.get("FLAG", "0") == "1"
if FLAG:
    @triton.jit
    def a(x): return x + 1
else:
    @triton.jit
    def a(x): return x + 2
if hasattr(tl, "nonexistent"):
    b = tl.constexpr(10)
elif hasattr(tl, "gather"):
    b = tl.constexpr(20)
else:
    b = tl.constexpr(30)
try:
    import nonexistent
    HAVE = True
    c = tl.constexpr(100)
except ImportError:
    HAVE = False
    c = tl.constexpr(200)
d = tl.constexpr(1000)
if HAVE:
    d = tl.constexpr(2000)
if not HAVE and False:
    d = tl.constexpr(3000)
try:
    import math
    e = tl.constexpr(math.floor(math.sqrt(2.0 ** 30)))
except ImportError:
    e = tl.constexpr(0)

@triton.jit
def f(x):
    # CHECK: value=34224
    tl.store(x, a(0) + b + c + d + e + (0 if e == 32768 else 5) + 234)

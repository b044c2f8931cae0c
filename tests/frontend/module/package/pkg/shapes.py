import triton
import triton.language as tl
from pkg.sub import mod  # a circle

LIMIT = tl.constexpr(0.0)


@triton.jit
def twice(x):
    return mod.relu(x) * 2

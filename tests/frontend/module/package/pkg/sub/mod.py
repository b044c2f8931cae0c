import triton
import triton.language as tl
import a_package_of_the_host
from ..shapes import LIMIT

__all__ = ["relu"]


@triton.jit
def relu(x):
    return tl.where(x > LIMIT, x, 0.0)


@triton.jit
def hidden(x):
    return x

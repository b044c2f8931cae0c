"""sdc: Triton's kernel language on the CPU and on NVIDIA GPUs, without Triton.

    import numpy as np, sdc, sdc.language as tl

    @sdc.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n),
                 mask=i < n)

    x = np.arange(1000, dtype=np.float32)
    out = np.empty_like(x)
    add[(4,)](x, x, out, x.size, BLOCK=256)

Arrays are numpy's, torch's (CPU and CUDA) or DLPack's. `sdc.install()` runs the kernels
of programs that are written for Triton, and `sdc.compare()` runs them under both.
"""

from ._version import __version__
from . import language
from .comparison import Comparison, compare
from .descriptor import TensorDescriptor
from .errors import (ArgumentError, CheckError, EnvironmentError, Error, InternalError,
                     OutOfMemoryError, SourceError, UnsupportedError)
from .install import install, uninstall
from .jit import JITFunction, jit
from .tune import Config, autotune, heuristics


def cdiv(x: int, y: int) -> int:
    """x / y, rounded up."""
    return (x + y - 1) // y


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not below `n`."""
    return 1 << (n - 1).bit_length() if n > 0 else 0


__all__ = ["ArgumentError", "CheckError", "Comparison", "Config", "EnvironmentError",
           "Error", "InternalError", "JITFunction", "OutOfMemoryError", "SourceError",
           "TensorDescriptor", "UnsupportedError", "__version__", "autotune", "cdiv",
           "compare", "heuristics", "install", "jit", "language", "next_power_of_2",
           "uninstall"]

"""Which arguments a user's kernel writes, as torch.compile asks it.

Torch reads that in Triton's IR, of which there is none on the CPU or without Triton's
package: it then takes every argument for written, copies it, and says so at length. The
library knows of each pointer whether its kernel stores through it.
"""

from __future__ import annotations

import sys
from typing import Any, Optional

from . import _lib as L
from .source import as_jit

MODULE = "torch._higher_order_ops.triton_kernel_wrap"


def patch(module: Any) -> None:
    """Answers in place of torch's analysis."""
    from .install import replace
    for name, answer in (("identify_accessed_tensors", _accesses),  # since torch 2.12
                         ("identify_mutated_tensors", _names)):
        if hasattr(module, name):
            replace(module, name, _or(answer, getattr(module, name)))


def _or(answer: Any, theirs: Any) -> Any:
    def identify(kernel: Any, kwargs: dict[str, Any], *rest: Any) -> Any:
        found = written(kernel, kwargs)
        return theirs(kernel, kwargs, *rest) if found is None else answer(*found)
    return identify


def _names(tensors: list[str], stored: list[str]) -> list[str]:
    return stored


def _accesses(tensors: list[str], stored: list[str]) -> Any:
    from torch._inductor.dependencies import ReadWrites, StarDep
    from torch.utils._ordered_set import OrderedSet
    accesses = sys.modules[MODULE].TensorAccesses
    return accesses(ReadWrites(reads=OrderedSet(StarDep(n) for n in tensors),
                               writes=OrderedSet(StarDep(n) for n in stored),
                               index_exprs=OrderedSet()), can_fuse_epilogue=False)


def written(kernel: Any, kwargs: dict[str, Any]) -> Optional[tuple[list, list]]:
    """Names of the tensors, and of those that the kernel may write; None: ask torch."""
    from .install import launcher_of
    from .jit import JITFunction
    values = dict(kwargs)
    while as_jit(kernel) is None:
        configs = getattr(kernel, "configs", None)
        if configs:  # one is as good as another
            values.update(configs[0].kwargs)
        kernel = getattr(kernel, "fn", None)
        if kernel is None:
            return None
    fn = as_jit(kernel)
    launcher = fn.launcher if isinstance(fn, JITFunction) else launcher_of(fn)
    values = {p.name: _stand_in(values.get(p.name, p.default)) for p in launcher.params}
    try:
        made, packed, _keep = launcher.prepare(values, {})
        code = made.compile(packed)
    except Exception:
        return None  # what is wrong the launch says
    if made.wrapped:
        return None
    runtime = [p.name for p in launcher.params if not p.is_constexpr]
    tensors = [n for n in runtime if _dtype(kwargs.get(n)) is not None]
    return tensors, [n for i, n in enumerate(runtime) if n in tensors and
                     L.lib.sdc_kernel_writes(code, i)]


def _dtype(v: Any) -> Any:
    """Of a tensor, a fake one and one of inductor; None of anything else."""
    get = getattr(v, "get_dtype", None)
    return get() if get else getattr(v, "dtype", None) if hasattr(v, "shape") else None


def _stand_in(v: Any) -> Any:
    """Dtypes stand for tensors, and 2 for what is no number yet."""
    dtype = _dtype(v)
    if dtype is not None:
        return dtype
    return 2 if type(v).__name__ in ("SymInt", "SymFloat", "SymBool") or \
        type(v).__module__.partition(".")[0] in ("sympy", "torch") and \
        not hasattr(v, "itemsize") else v

"""Names of Triton's language, as much as a module that defines kernels needs.

Kernels are read as text, so what a name does is the compiler's business; here it only is.
`constexpr` and dtypes are real: host code makes them and hands them to kernels.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class constexpr:
    """A value that is known when a kernel is compiled."""

    def __init__(self, value: Any) -> None:
        self.value: Any = value.value if isinstance(value, constexpr) else value

    def __repr__(self) -> str:
        return f"constexpr[{self.value}]"

    def __index__(self) -> int:
        return self.value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __eq__(self, other: object) -> bool:
        return self.value == (other.value if isinstance(other, constexpr) else other)

    def __hash__(self) -> int:
        return hash(self.value)


class dtype:
    """A type of elements; `name` is Triton's short one, "fp32"."""

    def __init__(self, name: str, bits: int) -> None:
        self.name, self.primitive_bitwidth = name, bits
        self.__name__ = name

    def __repr__(self) -> str:
        return "triton.language." + self.name

    def is_floating(self) -> bool:
        """Is it a type of floats?"""
        return self.name[:2] in ("fp", "bf")


class pointer_type:
    """The type of pointers to `element_ty`."""

    def __init__(self, element_ty: dtype) -> None:
        self.element_ty = element_ty
        self.name = self.__name__ = f"*{element_ty.name}"


int1, int8, int16, int32, int64 = (dtype(f"int{n}", n) for n in (1, 8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (dtype(f"uint{n}", n) for n in (8, 16, 32, 64))
float16, float32, float64 = (dtype(f"fp{n}", n) for n in (16, 32, 64))
bfloat16 = dtype("bf16", 16)
float8e5, float8e4nv, float8e4b15 = (dtype("fp8" + n, 8) for n in ("e5", "e4nv", "e4b15"))


class Builtin:
    """A function of the language; it works in kernels only."""

    def __init__(self, home: str, name: str) -> None:
        self.__module__, self.__name__ = home, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self.__name__}() works in kernels only")

    def __repr__(self) -> str:
        return f"<{self.__module__}.{self.__name__} of kernels>"


class Namespace(ModuleType):
    """A module in which every name is one of the language."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = Builtin(self.__name__, name)
        setattr(self, name, made)
        return made


def _namespace(name: str) -> Namespace:
    made = Namespace(f"{__name__}.{name}", "Names of Triton's language.")
    sys.modules[made.__name__] = made
    return made


math, core, standard, random = map(_namespace, ("math", "core", "standard", "random"))
extra, _cuda = _namespace("extra"), _namespace("extra.cuda")
_libdevice = _namespace("extra.libdevice")
sys.modules[__name__ + ".extra.cuda.libdevice"] = _libdevice
extra.__dict__.update(libdevice=_libdevice, cuda=_cuda, __path__=[])
_cuda.__dict__.update(libdevice=_libdevice, __path__=[])
core.__dict__.update(constexpr=constexpr, dtype=dtype)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    made = globals()[name] = Builtin(__name__, name)
    return made

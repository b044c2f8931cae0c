"""A module `triton` where there is none: what host code of kernels imports."""

from __future__ import annotations

import sys
from collections import namedtuple
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

from . import errors, inductor, language, testing, tune
from ._version import __version__
from .descriptor import TensorDescriptor
from .driver import Driver
from .jit import JITFunction, jit

# the version of Triton whose language the compiler has
LANGUAGE = "3.9.0"


def constexpr_function(fn: Any) -> Any:
    """A function of the host that kernels may call with constants."""
    made = JITFunction(fn)
    del made.params  # that is how a source knows it
    made.__class__ = ConstexprFunction
    return made


class ConstexprFunction(JITFunction):
    """A function that works on both sides."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)


_made: dict[str, ModuleType] = {}
_backends: dict[str, Any] = {}
_hidden = False  # sys.modules said that Triton is not to be imported


def _module(name: str, **names: Any) -> ModuleType:
    # the same ones each time: others have imported from them
    made = _made.setdefault(name, ModuleType(name, "Stands for Triton's; made by sdc."))
    sys.modules[name] = made
    made.__path__ = []  # it may have submodules
    made.__spec__ = ModuleSpec(name, None, is_package=True)
    made.__dict__.update(names)
    parent, _, leaf = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], leaf, made)
    return made


class KernelInterface:
    """What launches by kernel[grid](...)."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    run: Any

    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **kw: self.run(*args, grid=grid, warmup=False, **kw)


class ASTSource:
    """What triton.compile takes."""

    def __init__(self, fn: Any, signature: Any = None, constexprs: Any = None,
                 attrs: Any = None) -> None:
        self.fn, self.signature, self.constants = fn, signature, constexprs or {}
        self.attrs = attrs


GPUTarget = namedtuple("GPUTarget", "backend arch warp_size")


def triton_key() -> str:
    """A name of what compiles."""
    return "sdc " + __version__


def make(driver: Driver) -> ModuleType:
    """Puts the modules in place."""
    from . import cdiv, next_power_of_2
    global _hidden
    _hidden = "triton" in sys.modules and sys.modules["triton"] is None
    top = _module(
        "triton", jit=jit, JITFunction=JITFunction, Config=tune.Config,
        autotune=tune.autotune, heuristics=tune.heuristics, cdiv=cdiv,
        next_power_of_2=next_power_of_2, constexpr_function=constexpr_function,
        set_allocator=lambda allocator: None, must_use_result=lambda fn: fn,
        aggregate=lambda cls: cls, reinterpret=lambda x, dtype: x.view(dtype),
        compile=inductor.compile,
        CompilationError=errors.SourceError, OutOfResources=errors.Error,
        TritonError=errors.Error, __version__=LANGUAGE, __sdc__=True)
    sys.modules["triton.language"] = language
    sys.modules["triton.testing"] = testing
    top.__dict__.update(language=language, testing=testing)
    for name in [n for n in sys.modules if n.startswith("sdc.language.")]:
        sys.modules["triton" + name[3:]] = sys.modules[name]
    drivers = SimpleNamespace(active=driver, set_active=lambda d: None)
    runtime = _module(
        "triton.runtime", JITFunction=JITFunction, Autotuner=tune.Autotuner,
        Config=tune.Config, Heuristics=tune.Heuristics, KernelInterface=KernelInterface)
    _module("triton.runtime.driver", driver=drivers)
    runtime.__dict__["driver"] = drivers  # as in Triton, where it hides the module
    _module("triton.runtime.cache", triton_key=triton_key)
    _module("triton.runtime.jit", JITFunction=JITFunction, jit=jit,
            ConstexprFunction=ConstexprFunction,
            KernelInterface=KernelInterface)
    _module("triton.runtime.autotuner", Autotuner=tune.Autotuner, Config=tune.Config,
            Heuristics=tune.Heuristics, autotune=tune.autotune,
            heuristics=tune.heuristics, OutOfResources=errors.Error)
    _module("triton.runtime.errors", OutOfResources=errors.Error)
    compiler = {"CompilationError": errors.SourceError, "ASTSource": ASTSource,
                "CompiledKernel": inductor.Binary, "compile": inductor.compile,
                "make_backend": inductor.make_backend, "triton_key": triton_key}
    _module("triton.compiler", **compiler)
    _module("triton.compiler.compiler", **compiler)
    _module("triton.compiler.errors", CompilationError=errors.SourceError)
    _module("triton.backends", backends=_backends)
    _module("triton.backends.compiler", GPUTarget=GPUTarget)
    _module("triton.tools")
    _module("triton.tools.tensor_descriptor", TensorDescriptor=TensorDescriptor)
    inductor.patch(driver)
    return top


def remove() -> None:
    """Takes the modules away again."""
    for name in [n for n in sys.modules if n.partition(".")[0] == "triton"]:
        del sys.modules[name]
    if _hidden:
        sys.modules["triton"] = None  # type: ignore[assignment]

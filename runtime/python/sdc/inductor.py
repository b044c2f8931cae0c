"""Kernels that torch.compile generates, by sdc.

Inductor compiles them with triton.compile and calls `run` of what comes back, with all
arguments of the kernel. That is a launch. What Triton compiled before lies in inductor's
caches, so they are off, and compiling stays in this process, where Triton is replaced.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import threading
import warnings
from functools import partial
from importlib.abc import MetaPathFinder
from types import SimpleNamespace
from typing import Any, Callable, Optional

from . import signed, user_kernels
from ._version import __version__
from .compiled import Compiled
from .driver import Driver
from .launch import OPTIONS, Launcher


# Triton's names of pointees, and torch's
TORCH = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64",
         "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
         "u8": "uint8", "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2"}
_CONFIG = "torch._inductor.config"
_FLEX = "torch._inductor.kernel.flex.flex_attention"


_lock = threading.Lock()


class CpuDriver(Driver):
    """The driver of the backend "cpu"."""

    def __init__(self) -> None:
        super().__init__("cpu")


class Compiler:
    """A backend of Triton, as far as it is asked what it is."""

    name = ""

    def __init__(self, target: Any) -> None:
        self.target = target

    @classmethod
    def supports_target(cls, target: Any) -> bool:
        """Is it this one's?"""
        return target.backend == cls.name

    def parse_options(self, options: dict[str, Any]) -> Any:
        """Options of a kernel."""
        return SimpleNamespace(**options)

    def hash(self) -> str:
        """Its version."""
        return "sdc " + __version__


class CpuCompiler(Compiler):
    """The backend "cpu"."""

    name = "cpu"


class CudaCompiler(Compiler):
    """The backend "nvidia", where Triton's own is missing."""

    name = "cuda"


def make_backend(target: Any) -> Compiler:
    """The compiler of a target, as triton.compiler.make_backend."""
    return (CudaCompiler if target.backend == "cuda" else CpuCompiler)(target)


class Binary:
    """A CompiledKernel: a kernel with a signature, launched by sdc."""

    function = launch_enter_hook = launch_exit_hook = None
    packed_metadata = None
    n_spills = n_max_threads = 0

    def __init__(self, launcher: Launcher, src: Any, options: dict[str, Any]) -> None:
        self.src, self.launcher = src, launcher
        launcher.quiet = True  # nobody reads generated code
        self.options = {k: v for k, v in options.items()
                        if k in OPTIONS and v is not None and k not in launcher.names}
        self.name = src.fn.__name__
        text = f"{src.fn.src}{src.signature}{getattr(src, 'constants', '')}{options}"
        self.hash = hashlib.sha256(text.encode()).hexdigest()
        self.metadata = SimpleNamespace(
            name=self.name, shared=0, hash=self.hash, num_ctas=1, cluster_dims=(1, 1, 1),
            num_warps=options.get("num_warps", 4),
            num_stages=options.get("num_stages", 3))
        self.num_warps, self.shared = self.metadata.num_warps, 0
        self.num_ctas, self.cluster_dims = 1, (1, 1, 1)
        self.asm: dict[str, Any] = {}
        self.n_regs = 32
        self.launched = False
        way = signed.write(launcher, src.signature, _constants(src, launcher.names),
                           self._find, self._general)
        self.run = way.run if way else self._any
        if way:
            launcher.signed.append(way)

    def _find(self, args: tuple) -> Compiled:
        """What these arguments run."""
        self.launched = True
        return self.launcher.prepare(dict(zip(self.launcher.names, args)),
                                     self.options)[0]

    def _general(self, grid: tuple, args: tuple) -> None:
        """A launch by the types of the arguments, as everybody's."""
        self.launched = True
        self.launcher.last(grid, args, self.options)

    def _any(self, x: int, y: int, z: int, stream: Any, function: Any, packed: Any,
             metadata: Any, enter: Any, leave: Any, *args: Any) -> None:
        """`run` where the signature does not say enough."""
        self._general((x, y, z), args[:len(self.launcher.names)])

    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **kw: self.launcher.last(grid, args, {**self.options, **kw})

    def launch_metadata(self, grid: Any, stream: Any, *args: Any) -> None:
        """Nobody listens."""

    def _init_handles(self) -> None:
        """It is compiled by now, or when its arguments are known."""

    def compile(self) -> None:
        """For what the signature says of the arguments, so that many compile at once."""
        values = _stand_ins(self.src, self.launcher.names)
        if values is not None:
            with _lock:  # inductor compiles from several threads
                made, packed, _keep = self.launcher.prepare(values, self.options)
            made.compile(packed)

    def result(self) -> Binary:
        """Itself."""
        return self


def compile(src: Any, target: Any = None, options: Optional[dict[str, Any]] = None,
            **rest: Any) -> Binary:
    """triton.compile of an ASTSource."""
    from .install import launcher_of
    if not hasattr(src, "fn"):
        raise NotImplementedError("triton.compile of IR: sdc compiles kernels' sources")
    with _lock:
        made = Binary(launcher_of(src.fn), src, dict(options or {}))
    try:
        made.compile()
    except Exception:
        pass  # the launch says it, with the arguments that there are
    return made


def _constants(src: Any, names: list[str]) -> dict[str, Any]:
    """Values that the signature fixes, by the names of the parameters."""
    return {(names[k[0]] if isinstance(k, tuple) else k): v
            for k, v in (getattr(src, "constants", None) or {}).items()}


def _stand_ins(src: Any, names: list[str]) -> Optional[dict[str, Any]]:
    """A value of each parameter's type; None where the signature does not say enough."""
    torch = sys.modules.get("torch")
    constants = _constants(src, names)
    divisible = {names[k[0]] for k, v in (getattr(src, "attrs", None) or {}).items()
                 if ["tt.divisibility", 16] in [list(x) for x in v]}
    values: dict[str, Any] = {}
    for name in names:
        kind = src.signature.get(name)
        if name in constants:
            values[name] = constants[name]
        elif kind in ("i32", "i64"):
            values[name] = (1 << 40 if kind == "i64" else 1 << 20) + (
                0 if name in divisible else 5)
        elif kind == "fp32":
            values[name] = 0.5
        elif str(kind)[:1] == "*":  # on 16 bytes, as nearly all tensors are
            values[name] = getattr(torch, TORCH.get(kind[1:], ""), None)
        if values.get(name) is None and name not in constants:
            return None
    return values


def patch(driver: Driver) -> None:
    """triton.compile, the backend of the device and inductor's settings."""
    import triton
    from .install import replace, undo
    replace(triton, "compile", compile)
    replace(triton.compiler, "compile", compile)
    backends = triton.backends.backends
    if driver.kind == "cpu":
        backends["cpu"] = SimpleNamespace(driver=CpuDriver, compiler=CpuCompiler)
        undo(lambda: backends.pop("cpu"))
    elif "nvidia" not in backends:  # torch looks for the active one among them
        backends["nvidia"] = SimpleNamespace(driver=Driver, compiler=CudaCompiler)
        undo(lambda: backends.pop("nvidia"))
    triton_of_torch = sys.modules.get("torch.utils._triton")
    for f in list(vars(triton_of_torch).values()) if triton_of_torch else ():
        if hasattr(f, "cache_clear"):  # it asked for Triton before
            f.cache_clear()
    settings: dict[str, Any] = {"compile_threads": 1, "force_disable_caches": True}
    # dynamo warns that its cache is off, too: nothing that the user has asked for.
    warnings.filterwarnings("ignore", "dynamo_pgo force disabled", UserWarning)
    undo(partial(_drop_filter, warnings.filters[0]))
    decided = sys.modules.get("torch._inductor.runtime.triton_compat")
    if driver.kind == "cpu" and getattr(decided, "HAS_TRITON", True):
        settings["cpu_backend"] = "triton"  # unless inductor has looked, and found none

    def configure(config: Any) -> None:
        if driver.kind == "cpu":  # inductor measures this on GPUs alone
            new = "benchmark_template_fusion"  # since torch 2.15
            settings[new if hasattr(config, new) else "benchmark_epilogue_fusion"] = False
        for name, value in settings.items():
            if hasattr(config, name):
                undo(partial(setattr, config, name, getattr(config, name)))
                setattr(config, name, value)

    _when_imported(_CONFIG, configure)
    if "cpu_backend" in settings:
        _when_imported(_FLEX, _explain_flex)
    if driver.kind == "cpu" or getattr(triton, "__sdc__", False):
        _when_imported(user_kernels.MODULE, user_kernels.patch)


def _drop_filter(item: Any) -> None:
    if item in warnings.filters:  # a caller's catch_warnings() may have ended
        warnings.filters.remove(item)


def _explain_flex(flex: Any) -> None:
    """For the CPU inductor has flex_attention in C++ alone, and not beside Triton."""
    from .install import replace
    lower = flex.lower_cpu

    def lower_cpu(*args: Any, **kwargs: Any) -> Any:
        if sys.modules[_CONFIG].cpu_backend == "triton":
            raise NotImplementedError(
                "flex_attention on the CPU is C++ in inductor, not Triton: compile it with "
                'torch.compile(..., options={"cpu_backend": "cpp"})')
        return lower(*args, **kwargs)

    replace(flex, "lower_cpu", lower_cpu)


def _when_imported(name: str, f: Callable[[Any], None]) -> None:
    """Calls `f` with the module now, or when somebody imports it."""
    from .install import undo
    if name in sys.modules:
        f(sys.modules[name])
    else:  # to import it takes a second, and most programs compile nothing
        finder = _Afterwards(name, f)
        sys.meta_path.insert(0, finder)
        undo(finder.remove)


class _Afterwards(MetaPathFinder):
    """Calls `f` with a module when it has been imported."""

    def __init__(self, name: str, f: Callable[[Any], None]) -> None:
        self.name, self.f = name, f

    def remove(self) -> None:
        """It looks no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The usual one, with `f` behind it."""
        if name != self.name:
            return None
        self.remove()
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            self.f(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

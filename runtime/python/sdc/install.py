"""sdc.install(): programs that are written for Triton run their kernels by sdc.

Where Triton is installed its JITFunction launches by sdc from then on; its autotune,
heuristics and testing stay its own. Where it is not, a stub stands for it.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from typing import Any, Callable, Optional

from . import context, errors, inductor, launch, triton_errors
from .driver import Driver
from .errors import ArgumentError, Error
from .jit import run as launch_or_warmup
from .tune import distinct

_undo: list[Callable[[], Any]] = []  # what uninstall() does, from the end


def install(device: Optional[str] = None) -> None:
    """Kernels of Triton run by sdc, those that are defined already, too.

    `device`, "cpu" or "cuda", is what programs learn from Triton's driver; without it,
    "cuda" where torch has one. Launches go to where their tensors are. "cuda" without a
    GPU is a warning: code for one can still be generated, and CPU tensors launched.
    """
    kind, _, index = (device or _usual()).partition(":")
    if kind not in ("cpu", "cuda"):
        raise ArgumentError(f"no device '{device}': cpu or cuda")
    why = _no_gpu(int(index or 0)) if kind == "cuda" and device else ""
    if why:
        warnings.warn(f"sdc.install('{device}'): {why.strip()}", RuntimeWarning, stacklevel=2)
    uninstall()
    launch._default[0] = (kind, int(index or 0))
    undo(lambda: launch._default.__setitem__(0, ("cpu", 0)))
    driver = Driver(kind, int(index or 0))
    if kind == "cpu" and importlib.util.find_spec("torch") is not None:
        _complete_torch()
    if has_triton():
        _patch(driver)
    else:
        from . import stub
        stub.make(driver)


def uninstall() -> None:
    """Triton is as it was before install()."""
    while _undo:
        _undo.pop()()
    if getattr(sys.modules.get("triton"), "__sdc__", False):
        from . import stub
        stub.remove()


def has_triton() -> bool:
    """Is Triton itself installed?"""
    loaded = sys.modules.get("triton")
    if loaded is not None:
        return not getattr(loaded, "__sdc__", False)
    return importlib.util.find_spec("triton") is not None


def _usual() -> str:
    if importlib.util.find_spec("torch") is None:
        return "cpu"
    import torch
    return "cuda" if torch.cuda.is_available() else "cpu"


def _no_gpu(index: int) -> str:
    """Why there is no such GPU, or nothing. Where torch sees one, it is not opened here:
    a process may still fork."""
    if importlib.util.find_spec("torch") is not None:
        import torch
        if torch.cuda.device_count() > index:
            return ""
    try:
        context.get("cuda", index).describe()
    except Error as e:
        return str(e).removeprefix("sdc: error: ")
    return ""


def undo(f: Callable[[], Any]) -> None:
    """uninstall() calls `f`."""
    _undo.append(f)


def replace(obj: Any, name: str, value: Any) -> None:
    """Sets an attribute until uninstall()."""
    if name in vars(obj):
        was = vars(obj)[name]
        undo(lambda: setattr(obj, name, was))
    else:
        undo(lambda: delattr(obj, name))
    setattr(obj, name, value)


def _patch(driver: Driver) -> None:
    import triton
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction
    _runtime[0] = getattr(getattr(triton, "knobs", None), "runtime", None)
    replace(JITFunction, "run", _run)
    replace(JITFunction, "__getitem__", _getitem)
    replace(Autotuner, "_bench", _quiet(Autotuner._bench))
    if driver.kind == "cpu":
        from . import testing
        replace(Autotuner, "prune_configs", _distinct(Autotuner.prune_configs))
        replace(triton.runtime.driver, "_active", driver)
        replace(triton.testing, "do_bench", testing.do_bench)
        replace(triton.testing, "do_bench_cudagraph", testing.do_bench_cudagraph)
    inductor.patch(driver)
    errors.choose.append(triton_errors.classes())
    undo(errors.choose.clear)


def _complete_torch() -> None:
    """torch.cpu has streams; what torch.cuda has beside them, programs ask of both."""
    import torch
    if not hasattr(torch.cpu, "set_stream"):
        replace(torch.cpu, "set_stream", lambda stream: None)


def launcher_of(fn: Any) -> launch.Launcher:
    """The launcher of Triton's JITFunction; `_unsafe_update_src` makes another."""
    found = fn.__dict__.get("_sdc")
    if found is None or found[0] is not fn.src:
        found = fn.__dict__["_sdc"] = (fn.src, launch.Launcher(fn))
    return found[1]


def _run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
    """JITFunction.run."""
    for hook in self.pre_run_hooks:
        hook(*args, **kwargs)
    if getattr(_runtime[0], "debug", False):
        kwargs["debug"] = True
    enter, leave = _hooks("launch_enter_hook"), _hooks("launch_exit_hook")
    about = {"name": self.__name__, "function": self.fn, "stream": None}
    if enter and not warmup:
        enter(_Metadata(about))
    made = launch_or_warmup(launcher_of(self), args, kwargs, grid, warmup)
    if leave and not warmup:
        leave(_Metadata(about))
    return made


def _getitem(self: Any, grid: Any) -> Callable:
    """JITFunction.__getitem__: as short a way as there is, where nothing looks on."""
    if self.pre_run_hooks or _hooks("launch_enter_hook") or _hooks("launch_exit_hook") \
            or type(self).run is not _run:
        return lambda *args, **kw: self.run(*args, grid=grid, warmup=False, **kw)
    launcher = launcher_of(self)
    return lambda *args, **kw: launcher.last(grid, args, kw)


def _hooks(name: str) -> Optional[Callable]:
    """A hook of Triton's knobs, where somebody listens."""
    hook = getattr(_runtime[0], name, None)
    return None if hook is None or getattr(hook, "calls", True) == [] else hook


_runtime: list[Any] = [None]  # triton.knobs.runtime; older versions have none


class _Metadata(dict):
    """What launch hooks are given: in Triton a dictionary that `get` completes."""

    def get(self, *key: Any) -> Any:
        return dict.get(self, *key) if key else self


def _distinct(prune: Callable) -> Callable:
    """What is the same code on the CPU is measured once."""
    def prune_configs(self: Any, *args: Any, **kwargs: Any) -> Any:
        return distinct(prune(self, *args, **kwargs), self.arg_names)
    return prune_configs


def _quiet(bench: Callable) -> Callable:
    """A configuration that sdc refuses is the slowest one, as in Triton."""
    def _bench(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return bench(self, *args, **kwargs)
        except Error as e:
            self._sdc_refused = e
            return [float("inf")] * 3
    return _bench

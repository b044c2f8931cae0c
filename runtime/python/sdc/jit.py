"""@sdc.jit: a Python function in Triton's kernel language as a kernel."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any, Callable, Optional, Union, overload

from .compiled import Compiled
from .launch import Launcher
from .source import as_jit


class Param:
    """A parameter of a kernel."""

    def __init__(self, number: int, param: inspect.Parameter, plain: bool) -> None:
        self.num, self.name, self.default = number, param.name, param.default
        self.has_default = param.default is not inspect.Parameter.empty
        note = param.annotation
        self.annotation = "" if note is inspect.Parameter.empty else (
            note if isinstance(note, str) else getattr(note, "__name__", repr(note)))
        self.is_constexpr = "constexpr" in self.annotation
        self.do_not_specialize = plain


class JITFunction:
    """A kernel, or a helper that kernels call."""

    def __init__(self, fn: Callable, version: Any = None,
                 do_not_specialize: Optional[list] = None,
                 do_not_specialize_on_alignment: Optional[list] = None,
                 debug: Optional[bool] = None, noinline: Optional[bool] = None,
                 repr: Any = None, launch_metadata: Any = None) -> None:
        self.fn = fn
        self.signature = inspect.signature(fn)
        try:
            self.raw_src, self.starting_line_number = inspect.getsourcelines(fn)
        except OSError as e:
            raise ValueError(f"the text of {fn.__name__}() is not known: a kernel is "
                             "defined in a file or a notebook's cell") from e
        text = textwrap.dedent("".join(self.raw_src))
        found = re.search(r"^def\s+\w+\s*\(", text, re.MULTILINE)
        if not found:
            raise ValueError(f"{fn.__name__} is no function that def defines")
        self.src = text[found.start():]
        self.do_not_specialize = list(do_not_specialize or [])
        self.do_not_specialize_on_alignment = list(do_not_specialize_on_alignment or [])
        self.debug, self.noinline = debug, noinline
        self.params = [
            Param(i, p, i in self.do_not_specialize or p.name in self.do_not_specialize)
            for i, p in enumerate(self.signature.parameters.values())]
        self.arg_names = [p.name for p in self.params]
        self.constexprs = [p.num for p in self.params if p.is_constexpr]
        self.pre_run_hooks: list[Callable] = []
        self.__name__, self.__qualname__ = fn.__name__, fn.__qualname__
        self.__module__, self.__doc__ = fn.__module__, fn.__doc__
        self._launcher: Optional[Launcher] = None

    def get_capture_scope(self) -> dict[str, Any]:
        """What names in the function mean."""
        fn = self.fn
        cells = {}
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
            try:
                cells[name] = cell.cell_contents
            except ValueError:  # not bound yet
                pass
        return {**fn.__globals__, **cells}

    @property
    def launcher(self) -> Launcher:
        """The kernel's launcher."""
        if self._launcher is None:
            self._launcher = Launcher(self)
        return self._launcher

    def __getitem__(self, grid: Any) -> Callable[..., Compiled]:
        """kernel[grid](*args, **kwargs): `grid` a tuple, a number or a function."""
        if self.pre_run_hooks:
            return lambda *args, **kw: self.run(*args, grid=grid, warmup=False, **kw)
        launcher = self._launcher or self.launcher
        return lambda *args, **kw: launcher.last(grid, args, kw)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Compiled:
        """A launch, with the hooks in front of it; `warmup`: compiled only."""
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        return run(self.launcher, args, kwargs, grid, warmup)

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Compiled:
        """Compiles for these arguments; dtypes stand for arrays."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def add_pre_run_hook(self, hook: Callable) -> None:
        """`hook` is called with the arguments of every launch."""
        self.pre_run_hooks.append(hook)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self.__name__}() is a kernel: {self.__name__}[grid](...) "
                           "launches it")

    def __reduce__(self) -> str:
        return self.__qualname__  # pickled and copied by name, as functions are

    def __repr__(self) -> str:
        return f"JITFunction({self.__module__}:{self.__qualname__})"


# torch.compile does not trace a launch: its graph ends in front of it.
JITFunction.__getitem__._torchdynamo_disable = True  # type: ignore[attr-defined]
JITFunction.__getitem__._torchdynamo_disable_msg = (  # type: ignore[attr-defined]
    "a kernel of @sdc.jit is launched outside of graphs: make an operator of the call "
    "(torch.library.custom_op), or write @triton.jit and call sdc.install()")


def run(launcher: Launcher, args: tuple, kwargs: dict[str, Any], grid: Any,
        warmup: bool) -> Compiled:
    """A launch or, for `warmup`, the kernel that it would run."""
    if not warmup:
        return launcher(grid, args, kwargs)
    values, options = launcher.bound(args, kwargs)
    made, packed, _keep = launcher.prepare(values, options)
    made.compile(packed)
    return made


@overload
def jit(fn: Callable) -> JITFunction: ...


@overload
def jit(**options: Any) -> Callable[[Callable], JITFunction]: ...


def jit(fn: Optional[Callable] = None, **options: Any) -> \
        Union[JITFunction, Callable[[Callable], JITFunction]]:
    """Makes a kernel of a function, or of Triton's kernel; options are triton.jit's."""
    if fn is None:
        return lambda f: jit(f, **options)
    made = as_jit(fn)
    if made is None:
        return JITFunction(fn, **options)
    if isinstance(made, JITFunction):
        return made
    kept = ("do_not_specialize", "do_not_specialize_on_alignment", "debug", "noinline")
    given = {k: getattr(made, k, None) for k in kept}
    return JITFunction(made.fn, **{**given, **options})

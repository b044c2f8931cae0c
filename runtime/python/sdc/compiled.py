"""What a launch ran: a kernel with its constexprs bound, as host code may look at it."""

from __future__ import annotations

import ctypes as C
import re
import sys
import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Optional

from . import _lib as L
from .context import Context
from .errors import of_status, raise_at
from .source import Source

if TYPE_CHECKING:
    from .launch import Launcher


def _callers() -> int:
    """How far up the frame is that launches, beyond this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    return level


class Compiled:
    """A kernel of a launch or a warmup, with the names of Triton's CompiledKernel."""

    def __init__(self, launcher: Launcher, ctx: Context, handle: int, source: Source,
                 options: dict[str, Any], stream: Optional[Callable[[], int]],
                 wrapped: bool) -> None:
        self.launcher, self.context, self.handle = launcher, ctx, handle
        self.source, self.options, self.stream = source, options, stream
        self.wrapped = wrapped  # in a kernel of its own, for tuples and functions
        self.nargs = 0
        self.sample = b""  # the arguments of its first launch
        self._kernel: Optional[C.c_void_p] = None

    def __repr__(self) -> str:
        return f"Compiled({self.name}, {self.context.target})"

    def __getitem__(self, grid: Any) -> Callable[..., Compiled]:
        """Launches with the options of the warmup."""
        return lambda *args, **kw: self.launcher(grid, args, {**self.options, **kw})

    def launch(self, grid: L.Grid, packed: Any) -> None:
        """One launch of arguments that were made before."""
        stream = self.stream() if self.stream else None
        status = L.lib.sdc_launch(self.handle, grid, packed, self.nargs, stream)
        if status:
            self.fail(status)
        if self.context.checks:
            self.tell()

    def compile(self, packed: Any = None) -> C.c_void_p:
        """The specialization for these arguments, those of the first launch without."""
        if packed is None and self._kernel is not None:
            return self._kernel
        out = C.c_void_p()
        status = L.lib.sdc_specialize(self.handle, packed or self.sample, self.nargs,
                                      C.byref(out))
        if status:
            self.fail(status)
        if packed is None:
            self._kernel = out
        return out

    def tell(self, compiled: bool = False) -> None:
        """Warns of what the last compile or checked launch did; prints static_print's."""
        for text in self.context.warned(compiled):
            text = self.source.places(text, self.launcher.path)
            found = re.match(r".+?:\d+:\d+: warning: static_print: ", text)
            if found:
                print(re.sub(r"\n.*\n *\^?~*$", "", text[found.end():]))
            else:
                warnings.warn(text, RuntimeWarning, stacklevel=_callers())

    def fail(self, status: int) -> NoReturn:
        """Raises the exception for a status, with the places of the user's files."""
        try:
            self.context.check(status)
        except Exception as e:
            text = self.source.places(str(e), self.launcher.path)
            raise_at(of_status(status, text, getattr(e, "reproducer", "")))
        raise AssertionError("no failure")

    # ------------------------------------------------------------ as Triton has it

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.launcher.fn.__name__

    @property
    def use(self) -> L.Use:
        """Registers and memory, as the driver says; on the CPU those of a plain GPU kernel,
        since host code divides by them."""
        if self.context.target == "cpu":
            return L.Use(registers=32, local_bytes=0, shared_bytes=1024,
                         num_warps=self.options.get("num_warps") or 4,
                         num_stages=self.options.get("num_stages") or 3)
        out = L.Use()
        status = L.lib.sdc_kernel_use(self.compile(), C.byref(out))
        if status:
            self.fail(status)
        return out

    @property
    def n_regs(self) -> int:
        """Registers of a thread."""
        return self.use.registers

    @property
    def n_spills(self) -> int:
        """Bytes of local memory of a thread."""
        return self.use.local_bytes

    @property
    def metadata(self) -> SimpleNamespace:
        """Name, warps, stages and shared memory."""
        use = self.use
        return SimpleNamespace(name=self.name, num_warps=use.num_warps,
                               num_stages=use.num_stages, shared=use.shared_bytes,
                               num_ctas=1)

    @property
    def asm(self) -> dict[str, str]:
        """{"ptx": text} on a GPU."""
        ptx = L.lib.sdc_kernel_ptx(self.compile())
        return {"ptx": ptx.decode()} if ptx else {}

    def _init_handles(self) -> None:
        """Loads it, where Triton would."""
        self.compile()

    def result(self) -> Compiled:
        """Itself: nothing compiles in the background."""
        return self

"""The shortest way of a launch: its types are known before its arguments.

torch.compile promises the dtypes, constants and device of a kernel once, by a signature.
What is left of a launch is one struct.pack of addresses and numbers and one call of
sdc_launch. Triton's launchers rely on the same promise; how the arguments are aligned the
library looks at in each launch.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _lib as L
from . import context
from .dtypes import NAMES
from .grid import known, make_grid

if TYPE_CHECKING:
    from .compiled import Compiled
    from .launch import Launcher

_INTS = {"i1": L.BOOL, "i8": L.I8, "i16": L.I16, "i32": L.I32, "i64": L.I64,
         "u8": L.U8, "u16": L.U16, "u32": L.U32, "u64": L.U64}
_POINTEES = {**NAMES, **_INTS}

Find = Callable[[tuple], "Compiled"]
General = Callable[[tuple, tuple], Any]


class Signed:
    """A way to launch one kernel. `run` has the parameters of Triton's launchers: grid,
    stream, five that nobody reads, and the kernel's arguments with its constants."""

    def __init__(self, run: Callable[..., None], scope: dict[str, Any]) -> None:
        self.run, self.scope = run, scope

    def forget(self) -> None:
        """The next launch looks the kernel up again."""
        self.scope["device"] = None


def write(launcher: Launcher, signature: dict[str, Any], constants: dict[str, Any],
          find: Find, general: General) -> Optional[Signed]:
    """None where the signature does not say enough. `find` gives the kernel for the first
    launch's arguments; `general` launches on other devices than that one's."""
    pack: list[str] = []
    form, tensor = "", ""
    for i, p in enumerate(launcher.params):
        if p.is_constexpr:
            continue
        told = _argument(str(signature.get(p.name)), f"a{i}", p.name in constants,
                         constants.get(p.name))
        if told is None:
            return None
        form += told[0]
        pack += told[1:]
        if told[2].endswith("data_ptr()"):
            tensor = tensor or f"a{i}"
    if not tensor or context.checking:
        return None
    n = len(launcher.params)

    def other(*args: Any) -> None:
        grid, values = args[:3], args[9:9 + n]
        made = find(values) if scope["device"] is None else None
        if made is None or made.wrapped:  # tuples and functions are no arguments there
            general(grid, values)
            return
        scope.update(handle=made.handle, fail=made.fail,
                     device=args[9 + int(tensor[1:])].get_device())
        scope["launch"](*args)

    scope: dict[str, Any] = {
        "device": None, "other": other, "grids": known, "make": make_grid,
        "pack": struct.Struct("=" + form).pack, "sdc_launch": L.lib.sdc_launch,
        "error": (struct.error, AttributeError, TypeError)}
    exec(_LAUNCH.format(args="".join(f"a{i}, " for i in range(n)), tensor=tensor,
                        pack=", ".join(pack), n=len(form) // 2), scope)
    return Signed(scope["launch"], scope)


def _argument(kind: str, text: str, constant: bool, value: Any) -> \
        Optional[tuple[str, str, str]]:
    """Format, kind with type, and value of an argument; None: the signature is silent."""
    if constant and value is None:
        return "qq", str(L.ARG_NONE), "0"
    if constant and type(value) is int and abs(value) < 1 << 31:
        return "qq", str(L.ARG_INT | L.I32 << 32), str(value)
    if constant:
        return None
    if kind[:1] == "*" and kind[1:] in _POINTEES:
        return "qq", str(L.ARG_PTR | _POINTEES[kind[1:]] << 32), f"{text}.data_ptr()"
    if kind in _INTS:
        return "qq", str(L.ARG_INT | _INTS[kind] << 32), text
    if kind == "fp32":
        return "qd", str(L.ARG_FLOAT | L.FP32 << 32), text
    return None


_LAUNCH = """
def launch(x, y, z, stream, function, packed, metadata, enter, leave, {args}*rest):
    try:
        packed = pack({pack}) if {tensor}.get_device() == device else None
    except error:
        packed = None
    if packed is None:
        return other(x, y, z, stream, None, None, None, None, None, {args})
    grid = x, y, z
    status = sdc_launch(handle, grids.get(grid) or make(grid), packed, {n}, stream)
    if status:
        fail(status)
"""

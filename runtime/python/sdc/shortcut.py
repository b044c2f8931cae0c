"""The short way of a launch: a function that is written for a shape of calls.

A shape is the types of the arguments and the names of the keywords. The function makes
one look-up by dtypes, devices and constexprs, one struct.pack of the arguments and one
call of sdc_launch. Other shapes than that of the last call go through the launcher.
"""

from __future__ import annotations

import ctypes as C
import struct
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _lib as L
from . import context
from .arguments import SIMPLE, address, is_descriptor
from .grid import known, make_grid
from .source import as_jit, kind, look_again

if TYPE_CHECKING:
    from .launch import Launcher

_I32, _I64 = L.ARG_INT | L.I32 << 32, L.ARG_INT | L.I64 << 32


def write(launcher: Launcher, args: tuple, kwargs: dict[str, Any]) -> Optional[Callable]:
    """A function for calls of this shape; None when it takes the general way."""
    values, options = launcher.bound(args, kwargs)
    texts = [f"a{i}" for i in range(len(args))] + [f"k_{k}" for k in kwargs]
    given = dict(zip([*launcher.names[:len(args)], *kwargs], texts))
    runtime = {p.name for p in launcher.params if not p.is_constexpr}
    constants = {n: v for n, v in values.items() if n not in runtime}
    calls = {n for n, v in constants.items() if as_jit(v) is not None}  # jit functions
    key = [f"id({text})" if name in calls else text  # which the kernel's source keeps
           for name, text in given.items() if name not in runtime]
    fixed = [*options.values(), *(v for n, v in constants.items() if n not in calls)]
    if context.checking or not all(type(v) in SIMPLE or kind(v) == "dtype"
                                   for v in fixed):
        return None
    words: list[str] = []
    pack: list[str] = []
    form = ""
    blocks: list[str] = []  # what descriptors say, behind the arguments
    opened: list[str] = []
    within: list[str] = []  # tuples whose elements have other types now
    kinds: dict[str, Any] = {}
    leaves: list[tuple[Any, Optional[str]]] = []
    for p in launcher.params:
        if not p.is_constexpr:
            v, text = values[p.name], given.get(p.name)
            if text is None and v is not None:
                return None  # a default of a parameter that is none
            if isinstance(v, tuple) and not _flatten(v, str(text), leaves, within, kinds):
                return None
            leaves += [(v, text)] * (not isinstance(v, tuple))
    wrapped = bool(calls or kinds)  # by a kernel that does not take what is None
    for v, text in leaves:
        if wrapped and v is None:
            continue
        if _is_tensor(type(v)) or _is_ndarray(type(v)):
            words.append(f"w{len(words)}")
            tensor = _is_tensor(type(v))
            key += [f"{text}.dtype"] + [f"{text}.device"] * tensor
            pack += [words[-1], f"{text}.data_ptr()" if tensor
                     else f"address({text})"]
            form += "qq"
        elif _is_block(v):
            rank, name = len(v.shape), f"d{len(opened)}"
            word, about = f"w{len(words)}", f"w{len(words) + 1}"
            words += [word, about]
            pack += [word, f"at + {_BLOCK * len(opened)}"]
            form += "qq"
            parts = [[f"{name}{part}{i}" for i in range(rank)] for part in "stb"]
            key += [f"{name}.dtype", f"{name}.device"]
            for says in ("padding", "round_f32_to_tf32"):  # older ones say less
                key += [f"{text}.{says}"] * hasattr(v, says)
            opened.append(f"{name} = {text}.base; " + "; ".join(
                f"[{', '.join(names)}] = {text}.{attribute}" for names, attribute in
                zip(parts, ("shape", "strides", "block_shape"))))
            none = ["0"] * (L.MAX_DESC_RANK - rank)
            blocks += [about, f"{name}.data_ptr()", *parts[0], *none, *parts[1], *none,
                       *parts[2], *none]
        elif (number := _number(v, text)) is not None:
            form += number[0]
            pack += number[1:]
        else:
            return None
    types: dict[str, Any] = {
        f"t{i}": type(v) for i, v in enumerate((*args, *kwargs.values()))}
    defaults = {p.name: p.default for p in launcher.params if p.name not in given}
    scope: dict[str, Any] = {
        "__package__": __package__, **types, **kinds, "address": address,
        "grids": known, "make": make_grid,
        **_packer(form, len(opened)), "sdc_launch": L.lib.sdc_launch,
        "general": launcher.general, "defaults": defaults,
        "error": (struct.error, AttributeError, RuntimeError),
        "other": launcher.dispatch, "last": (None,) * (4 + len(words))}
    scope["find"] = _finder(launcher, scope)
    # with a function, what is read depends on which it is
    reads = [] if wrapped else launcher.plain()[0].reads
    scope["look_again"] = look_again if wrapped else partial(look_again, reads)
    for i, (home, _, v) in enumerate(reads):
        scope[f"home{i}"], scope[f"was{i}"] = home, v
    meta = "".join(f"{n!r}: {t}, " for n, t in given.items())
    exec(_SHORT.format(
        args="".join(f"{t}, " for t in texts[:len(args)]),
        unpack="; ".join(["pass", *(f"k_{k} = kw[{k!r}]" for k in kwargs)]),
        packed=_PACKED_BLOCKS if opened else "packed = pack(", nkw=len(kwargs),
        key=(_OPENED if opened else "key = ({key})").format(
            key="".join(k + ", " for k in key), opened="; ".join(opened)),
        guard="".join(f" or type({t}) is not t{i}" for i, t in enumerate(texts)),
        words="".join(w + ", " for w in words), pack=", ".join(pack + blocks),
        meta=meta, n=len(form) // 2,
        within=" or ".join(within) or "False",
        look=f"look_again({'made.source.reads' if wrapped else ''})",
        changed=" or made.source.reads" * wrapped + "".join(
            f" or home{i}.get({name!r}) is not was{i}"
            for i, (_, name, _) in enumerate(reads))), scope)
    return scope["launch"]


def _flatten(v: tuple, text: str, leaves: list, within: list[str],
             kinds: dict[str, Any]) -> bool:
    """Adds the elements of a tuple, which a wrapper takes one by one, and what tells that
    a tuple has others; False: there are some that the short way does not take."""
    name = f"kinds{len(kinds)}"
    kinds[name] = list(map(type, v))
    within.append(f"list(map(type, {text})) != {name}")
    for i, x in enumerate(v):
        at = f"{text}[{i}]"
        if isinstance(x, tuple):
            if not _flatten(x, at, leaves, within, kinds):
                return False
        elif x is None or _is_tensor(type(x)) or _is_ndarray(type(x)) or \
                type(x) in (bool, int, float):
            leaves.append((x, at))
        else:
            return False
    return True


def _finder(launcher: Launcher, scope: dict[str, Any]) -> Callable[..., Optional[tuple]]:
    """What a key that is not the last call's launches; remembered as the last."""
    table: dict[tuple, tuple] = {}

    def find(key: tuple, args: tuple, kwargs: dict[str, Any]) -> Optional[tuple]:
        found = table.get(key)
        if found is None:
            if launcher.mixed(args, kwargs):
                return None
            made, packed, _keep = launcher.prepare(*launcher.bound(args, kwargs))
            words = [w for a in packed[:made.nargs] for w in _words(a)]
            found = table[key] = (key, made.handle, made.stream, made, *words)
        scope["last"] = found
        return found
    return find


# An SdcDesc: dtype and rank, base, and five sizes, strides and sides of a block.
_BLOCK_FORM = "qq5q5q5i4x"
_BLOCK = struct.calcsize("=" + _BLOCK_FORM)
assert C.sizeof(L.Desc) == _BLOCK

# Those of another rank, or over arrays of numpy, go the general way.
_OPENED = """try:
        {opened}
        key = ({key})
    except (ValueError, TypeError, AttributeError):
        key = None
    if key is None:
        return general(grid, args, kw)"""

# Each launch has memory of its own: the library reads it without the interpreter's lock.
_PACKED_BLOCKS = """packed = memory()
        at = addressof(packed) + arguments
        pack_into(packed, 0, """


def _packer(form: str, blocks: int) -> dict[str, Any]:
    """How arguments of this form are packed, with so many descriptors behind them."""
    if not blocks:
        return {"pack": struct.Struct("=" + form).pack}
    whole = struct.Struct("=" + form + blocks * _BLOCK_FORM)
    return {"pack_into": whole.pack_into, "memory": C.c_char * whole.size,
            "addressof": C.addressof, "arguments": struct.calcsize("=" + form)}


def _words(a: L.Arg) -> list[int]:
    """What of an argument is the same in each launch of a key."""
    if a.kind == L.ARG_PTR:
        return [a.kind | a.dtype << 32]
    if a.kind != L.ARG_DESC:
        return []
    d = L.Desc.from_address(a.v.ptr)
    return [a.kind | a.dtype << 32, d.dtype | d.rank << 32]


def _is_block(v: Any) -> bool:
    """A descriptor of a tensor of torch."""
    return is_descriptor(v) and _is_tensor(type(v.base)) and \
        len(v.shape) <= L.MAX_DESC_RANK


def _number(v: Any, text: Optional[str]) -> Optional[tuple[str, str, str]]:
    """How a number is packed: format, kind with type, and value."""
    if v is None:
        return "qq", str(L.ARG_NONE), "0"
    if type(v) is bool:
        return "qq", str(L.ARG_INT | L.BOOL << 32), f"{text}"
    if type(v) is int:
        return "qq", f"({_I32} if -0x80000000 <= {text} < 0x80000000 else {_I64})", \
            f"{text}"
    if type(v) is float:
        return "qd", str(L.ARG_FLOAT | L.FP32 << 32), f"{text}"
    return None


# An integer beyond 63 bits does not fit into q; such a call goes the general way.
# Nothing is called where an exception is handled: its text would be the next one's, too.
_SHORT = """
def launch(grid, args, kw):
    try:
        [{args}] = args
        {unpack}
        fits = True
    except (ValueError, KeyError):
        fits = False
    if not fits or len(kw) != {nkw}{guard}:
        return other(grid, args, kw)
    if {within}:
        return general(grid, args, kw)
    {key}
    found = last
    if found[0] != key:
        found = find(key, args, kw)
        if found is None:
            return general(grid, args, kw)
    _, handle, stream, made, {words} = found
    if False{changed}:
        {look}
    if callable(grid):
        grid = grid({{{meta}**defaults}})
    try:
        g = grids[grid]
    except (KeyError, TypeError):
        g = None
    if g is None:
        g = make(grid)
    try:
        {packed}{pack})
    except error:
        packed = None
    if packed is None:
        return general(grid, args, kw)
    status = sdc_launch(handle, g, packed, {n}, stream() if stream else None)
    if status:
        made.fail(status)
    return made
"""


def _is_tensor(t: type) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and t in (torch.Tensor, torch.nn.Parameter)


def _is_ndarray(t: type) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and t is numpy.ndarray

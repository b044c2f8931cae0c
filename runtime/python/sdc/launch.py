"""Launches of one kernel from Python.

The first call of a shape, that is types of arguments and names of keywords, writes a
small function for it: one look-up by dtypes, devices and constexprs, one struct.pack of
the arguments, one call of sdc_launch. Arguments of other types than tensors, arrays and
numbers go the general way, which builds the arguments one by one.
"""

from __future__ import annotations

import ctypes as C
import os
import struct
import sys
import weakref
from typing import Any, Callable, Optional

from . import _lib as L
from . import context
from .arguments import address, argument, is_array, is_descriptor, is_dtype, place
from .compiled import Compiled
from .errors import ArgumentError, of_status
from .source import Source, as_jit, def_place, kind, literal

# what Triton's backends take beside a kernel's parameters; others are an error
OPTIONS = frozenset("""num_warps num_ctas num_stages warp_size maxnreg ir_override
    ptx_version ptx_options enable_fp_fusion enable_reflect_ftz arch backend_name
    launch_cooperative_grid launch_cluster launch_pdl supported_fp8_dtypes
    deprecated_fp8_dot_operand_dtypes default_dot_input_precision extern_libs
    allowed_dot_input_precisions max_num_imprecise_acc_default debug sanitize_overflow
    instrumentation_mode waves_per_eu matrix_instr_nonkdim kpack schedule_hint
    cluster_dims minRegAutoWS maxRegAutoWS fpsan_homomorphic_casts stream
    """.split())

_I32, _I64 = L.ARG_INT | L.I32 << 32, L.ARG_INT | L.I64 << 32
Launch = Callable[[Any, tuple, "dict[str, Any]"], Compiled]
_USED = ("num_warps", "num_stages", "num_ctas", "launch_pdl", "debug")
_SIMPLE = (bool, int, float, str, type(None))


def default_place() -> tuple[str, int]:
    """Where kernels without arrays run."""
    return _default[0]


_default: list[tuple[str, int]] = [("cpu", 0)]


def make_grid(grid: Any) -> L.Grid:
    """One to three numbers as an SdcGrid; remembered."""
    sizes = (grid,) if isinstance(grid, int) else tuple(grid)
    if not 1 <= len(sizes) <= 3:
        raise ArgumentError(f"a grid has one to three sizes, not {len(sizes)}")
    numbers = [int(n) for n in sizes] + [1, 1]
    if any(not -1 <= n < 2**31 for n in numbers):
        raise ArgumentError(f"a grid of {sizes}: sizes have 31 bits")
    made = L.Grid(*numbers[:3])
    if len(_grids) > 4096:
        _grids.clear()
    if all(type(n) is int for n in sizes):
        _grids[sizes] = made
    return made


_grids: dict[Any, L.Grid] = {}


def _stream_of(where: tuple[str, int]) -> Optional[Callable[[], int]]:
    """A function that gives the current stream of a GPU; None for the CPU."""
    if where[0] == "cpu":
        return None
    torch = sys.modules.get("torch")
    if torch is None:
        return lambda: 0
    raw, index = torch._C._cuda_getCurrentRawStream, where[1]
    return lambda: raw(index)


_launchers: weakref.WeakSet[Launcher] = weakref.WeakSet()


def _forget() -> None:
    """In the child of a fork, where the parent's kernels cannot be specialized."""
    context.forget()
    for launcher in list(_launchers):
        launcher.forget()


os.register_at_fork(after_in_child=_forget)


class Launcher:
    """A jit function, ready to be launched; `fn` is sdc's or Triton's."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        self.params = list(fn.params)
        self.names = [p.name for p in self.params]
        self.path = def_place(fn)[0]
        _launchers.add(self)
        self._written: dict[tuple, Launch] = {}
        self.last: Launch = self._dispatch  # what took the last call; it looks whether
                                            # the next one has the same shape
        self._made: dict[tuple, Compiled] = {}
        self._sources: dict[tuple, tuple[Source, str]] = {}

    def __call__(self, grid: Any, args: tuple, kwargs: dict[str, Any]) -> Compiled:
        """Launches over `grid`, a tuple or a function of the arguments by name."""
        return self.last(grid, args, kwargs)

    def _dispatch(self, grid: Any, args: tuple, kwargs: dict[str, Any]) -> Compiled:
        shape = (*map(type, args), *kwargs, *map(type, kwargs.values()))
        f = self._written.get(shape)
        if f is None:
            f = self._written[shape] = self._write(args, kwargs) or self._general
        self.last = self._dispatch if f == self._general else f
        return f(grid, args, kwargs)

    def forget(self) -> None:
        """What was prepared is prepared again, in another context."""
        self._written.clear()
        self._made.clear()
        self.last = self._dispatch

    def bound(self, args: tuple, kwargs: dict[str, Any]) -> \
            tuple[dict[str, Any], dict[str, Any]]:
        """Parameters by name with their defaults, and the options beside them."""
        fn, names = self.fn.__name__, self.names
        if len(args) > len(names):
            raise TypeError(f"{fn}() takes {len(names)} arguments, {len(args)} are given")
        values = dict(zip(names, args))
        options = {}
        for name, v in kwargs.items():
            if name in values:
                raise TypeError(f"{fn}() has two values for argument '{name}'")
            if name in names:
                values[name] = v
            elif name in OPTIONS:
                options[name] = v
            else:
                raise KeyError(f"{fn}() has neither a parameter nor an option '{name}'")
        for p in self.params:
            if p.name not in values:
                if not p.has_default:
                    raise TypeError(f"{fn}() misses argument '{p.name}'")
                values[p.name] = p.default
        return {n: values[n] for n in names}, options

    # ------------------------------------------------------------ the general way

    def _general(self, grid: Any, args: tuple, kwargs: dict[str, Any]) -> Compiled:
        values, options = self.bound(args, kwargs)
        made, packed, keep = self.prepare(values, options)
        g = make_grid(grid(values) if callable(grid) else grid)
        made.launch(g, packed)
        del keep
        return made

    def prepare(self, values: dict[str, Any], options: dict[str, Any]) -> \
            tuple[Compiled, C.Array, list[Any]]:
        """What is launched, its arguments, and what these point to."""
        leaves: list[Any] = []
        shape = tuple([_shape(values[p.name], leaves, p.is_constexpr)
                       for p in self.params])
        where = self._place(leaves)
        key = shape, where, tuple([options.get(k) for k in _USED])
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._make(shape, where, values, options)
        if not made.wrapped:  # None is an argument, too
            leaves = [values[p.name] for p in self.params if not p.is_constexpr]
        keep: list[Any] = list(leaves)
        packed = (L.Arg * max(1, len(leaves)))(
            *[argument(v, made.context, keep) for v in leaves])
        made.nargs = len(leaves)
        made.sample = made.sample or bytes(packed)
        return made, packed, keep

    def _make(self, shape: tuple, where: tuple[str, int], values: dict[str, Any],
              options: dict[str, Any]) -> Compiled:
        bind, source, entry = self._spell(shape, values, options)
        debug = bool(options.get("debug") or getattr(self.fn, "debug", False))
        ctx = context.get(*where, debug)
        try:
            handle = ctx.function(self.path, source.text(), entry, bind)
        except Exception as e:
            status = getattr(e, "status", 0)
            if not status:
                raise
            raise of_status(status, source.places(str(e), self.path)) from None
        return Compiled(self, ctx, handle, source, options, _stream_of(where),
                        wrapped=source is not self._sources.get((), (None,))[0])

    def _place(self, leaves: list[Any]) -> tuple[str, int]:
        places = {place(v) for v in leaves if is_array(v) or is_descriptor(v)}
        if len(places) > 1:
            raise ArgumentError(f"arguments of {self.fn.__name__}() are at different "
                                f"places: {sorted(f'{k}:{i}' for k, i in places)}")
        return places.pop() if places else default_place()

    def _spell(self, shape: tuple, values: dict[str, Any], options: dict[str, Any]) -> \
            tuple[tuple[str, ...], Source, str]:
        """Bindings, source and name of the kernel for a call."""
        option = tuple(f"{k}={int(options[k])}"
                       for k in ("num_warps", "num_stages", "num_ctas")
                       if options.get(k) and k not in values)
        if options.get("launch_pdl"):
            option += ("launch_pdl=True",)
        consts = {p.name: _plain(values[p.name]) for p in self.params if p.is_constexpr}
        rest = [values[p.name] for p in self.params if not p.is_constexpr]
        if any(isinstance(v, (tuple, list)) or _static(v) for v in rest) or \
                any(isinstance(v, tuple) or literal(v) is None for v in consts.values()):
            return (option, *self._wrapped(shape, values))
        if () not in self._sources:
            source = Source()
            self._sources[()] = source, source.place(self.fn)
        bind = tuple(f"{k}={literal(v)}" for k, v in consts.items())
        return (bind + option, *self._sources[()])

    def _wrapped(self, key: tuple, values: dict[str, Any]) -> tuple[Source, str]:
        """A kernel that calls this one with tuples, functions and constants in place."""
        if key not in self._sources:
            source = Source()
            kernel = source.place(self.fn)
            source.kept.append(list(values.values()))  # ids are part of the key
            params: list[str] = []
            plain: list[str] = []
            call = []
            for p in self.params:
                v = values[p.name]
                first = len(params)
                call.append(f"{p.name}=" + (
                    source.value(v) if p.is_constexpr
                    else _flat(p.name, v, source, params)))
                if getattr(p, "do_not_specialize", False):
                    plain += params[first:]
            entry = source.fresh(f"{kernel}__entry", key)
            source.add(f"@triton.jit(do_not_specialize={plain!r})" if plain
                       else "@triton.jit")
            source.add(f"def {entry}({', '.join(params)}):\n"
                       f"    {kernel}({', '.join(call)})")
            self._sources[key] = source, entry
        return self._sources[key]

    # ------------------------------------------------------------ the short way

    def _write(self, args: tuple, kwargs: dict[str, Any]) -> Optional[Launch]:
        """A function for calls of this shape; None when it takes the general way."""
        values, _ = self.bound(args, kwargs)
        texts = [f"a{i}" for i in range(len(args))] + [f"k_{k}" for k in kwargs]
        given = dict(zip([*self.names[:len(args)], *kwargs], texts))
        runtime = {p.name for p in self.params if not p.is_constexpr}
        key = [text for name, text in given.items() if name not in runtime]
        if context.checking or not all(
                type(v) in _SIMPLE or kind(v) == "dtype" for name, v in
                (*zip(self.names, args), *kwargs.items()) if name not in runtime):
            return None
        words: list[str] = []
        pack: list[str] = []
        form = ""
        for p in self.params:
            if p.is_constexpr:
                continue
            v, text = values[p.name], given.get(p.name)
            if text is None and v is not None:
                return None  # a default of a parameter that is none
            if _is_tensor(type(v)) or _is_ndarray(type(v)):
                words.append(f"w{len(words)}")
                tensor = _is_tensor(type(v))
                key += [f"{text}.dtype"] + [f"{text}.device"] * tensor
                pack += [words[-1], f"{text}.data_ptr()" if tensor
                         else f"address({text})"]
                form += "qq"
            elif (number := _number(v, text)) is not None:
                form += number[0]
                pack += number[1:]
            else:
                return None
        types: dict[str, Any] = {
            f"t{i}": type(v) for i, v in enumerate((*args, *kwargs.values()))}
        defaults = {p.name: p.default for p in self.params if p.name not in given}
        scope: dict[str, Any] = {
            **types, "address": address, "grids": _grids, "make": make_grid,
            "pack": struct.Struct("=" + form).pack, "sdc_launch": L.lib.sdc_launch,
            "general": self._general, "error": struct.error, "defaults": defaults,
            "other": self._dispatch, "last": (None,) * (4 + len(words))}
        scope["find"] = self._finder(scope)
        meta = "".join(f"{n!r}: {t}, " for n, t in given.items())
        exec(_SHORT.format(
            args="".join(f"{t}, " for t in texts[:len(args)]),
            unpack="; ".join(["pass", *(f"k_{k} = kw[{k!r}]" for k in kwargs)]),
            nkw=len(kwargs), key="".join(k + ", " for k in key),
            guard="".join(f" or type({t}) is not t{i}" for i, t in enumerate(texts)),
            words="".join(w + ", " for w in words), pack=", ".join(pack),
            meta=meta, n=len(form) // 2), scope)
        return scope["launch"]

    def _finder(self, scope: dict[str, Any]) -> Callable[..., tuple]:
        """What a key that is not the last call's launches; remembered as the last."""
        table: dict[tuple, tuple] = {}

        def find(key: tuple, args: tuple, kwargs: dict[str, Any]) -> tuple:
            found = table.get(key)
            if found is None:
                made, packed, _ = self.prepare(*self.bound(args, kwargs))
                words = [a.kind | a.dtype << 32 for a in packed[:made.nargs]
                         if a.kind == L.ARG_PTR]
                found = table[key] = (key, made.handle, made.stream, made, *words)
            scope["last"] = found
            return found
        return find


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
_SHORT = """
def launch(grid, args, kw):
    try:
        [{args}] = args
        {unpack}
    except (ValueError, KeyError):
        return other(grid, args, kw)
    if len(kw) != {nkw}{guard}:
        return other(grid, args, kw)
    key = ({key})
    found = last
    if found[0] != key:
        found = find(key, args, kw)
    _, handle, stream, made, {words} = found
    if callable(grid):
        grid = grid({{{meta}**defaults}})
    try:
        g = grids[grid]
    except (KeyError, TypeError):
        g = make(grid)
    try:
        packed = pack({pack})
    except error:
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


def _plain(v: Any) -> Any:
    return v.value if kind(v) == "constexpr" else v


def _static(v: Any) -> bool:
    """Known when the kernel is compiled, though its parameter is no constexpr?"""
    if isinstance(v, (bool, int, float, type(None))) or is_array(v) or is_dtype(v) or \
            is_descriptor(v):
        return False
    return kind(v) in ("constexpr", "jit", "class", "dtype") or isinstance(v, str)


def _shape(v: Any, leaves: list[Any], constant: bool) -> Any:
    """What a wrapper depends on; runtime values are appended to `leaves`."""
    if constant or _static(v):
        if type(v) in _SIMPLE:
            return (type(v), v)
        text = literal(v)
        return ("is", text if text is not None and as_jit(v) is None else id(v))
    if isinstance(v, (tuple, list)):
        return (type(v), tuple(_shape(x, leaves, False) for x in v))
    if v is None:
        return None
    leaves.append(v)
    return "value"


def _flat(name: str, v: Any, source: Source, params: list[str]) -> str:
    """An argument of the wrapper's call; what is known at run time is a parameter."""
    if _static(v):
        return source.value(v)
    if isinstance(v, (tuple, list)):
        parts = [_flat(f"{name}_{i}", x, source, params) for i, x in enumerate(v)]
        if hasattr(v, "_fields"):
            return f"{source.value(type(v))}({', '.join(parts)})"
        return "(" + "".join(p + ", " for p in parts) + ")"
    if v is None:
        return "None"
    params.append(name)
    return name

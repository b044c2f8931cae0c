"""Launches of one kernel from Python.

Arguments are bound to parameters, the kernel's source is written and its function asked
for, and the arguments are built one by one. Calls of tensors, arrays and numbers do so
once, and take the way of shortcut.py from then on.
"""

from __future__ import annotations

import ctypes as C
import difflib
import os
import sys
import weakref
from typing import Any, Callable, Optional

from . import _lib as L
from . import context
from .arguments import (SIMPLE, anywhere, argument, is_array, is_descriptor, is_dtype,
                        is_read_only, names_of, place)
from .compiled import Compiled
from .errors import ArgumentError, SourceError, of_status, raise_at
from .grid import make_grid
from .shortcut import write
from .signed import Signed
from .source import Source, as_jit, def_place, kind, literal, look_again

# what Triton's backends take beside a kernel's parameters; others are an error
OPTIONS = frozenset("""num_warps num_ctas num_stages warp_size maxnreg ir_override
    ptx_version ptx_options enable_fp_fusion enable_reflect_ftz arch backend_name
    launch_cooperative_grid launch_cluster launch_pdl supported_fp8_dtypes
    deprecated_fp8_dot_operand_dtypes default_dot_input_precision extern_libs
    allowed_dot_input_precisions max_num_imprecise_acc_default debug sanitize_overflow
    instrumentation_mode waves_per_eu matrix_instr_nonkdim kpack schedule_hint
    cluster_dims minRegAutoWS maxRegAutoWS fpsan_homomorphic_casts stream
    """.split())

Launch = Callable[[Any, tuple, "dict[str, Any]"], Compiled]
# Triton's variable; without it products are contracted with sums, as in Triton 3.9
_FUSED = os.environ.get("TRITON_DEFAULT_FP_FUSION", "1").lower() not in ("0", "false", "off")
_USED = ("num_warps", "num_stages", "num_ctas", "launch_pdl", "enable_fp_fusion", "debug")


def default_place() -> tuple[str, int]:
    """Where kernels without arrays run."""
    return _default[0]


_default: list[tuple[str, int]] = [("cpu", 0)]


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
        self.last: Launch = self.dispatch  # what took the last call; it looks whether
                                            # the next one has the same shape
        self._made: dict[tuple, Compiled] = {}
        self._sources: dict[tuple, tuple[Source, str]] = {}
        self.quiet = False  # what the compiler warns of is told
        self.signed: list[Signed] = []  # ways of its own that torch.compile goes

    def __call__(self, grid: Any, args: tuple, kwargs: dict[str, Any]) -> Compiled:
        """Launches over `grid`, a tuple or a function of the arguments by name."""
        return self.last(grid, args, kwargs)

    def dispatch(self, grid: Any, args: tuple, kwargs: dict[str, Any]) -> Compiled:
        """A launch of any shape: the function that was written for it takes it."""
        shape = (*map(type, args), *kwargs, *map(type, kwargs.values()))
        f = self._written.get(shape)
        if f is None:
            f = self._written[shape] = write(self, args, kwargs) or self.general
        self.last = self.dispatch if f == self.general else f
        return f(grid, args, kwargs)

    def forget(self) -> None:
        """What was prepared is prepared again, in another context."""
        self._written.clear()
        self._made.clear()
        self.last = self.dispatch
        for way in self.signed:
            way.forget()

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
                near = difflib.get_close_matches(name, [*names, *OPTIONS], 1)
                hint = f"; did you mean '{near[0]}'?" if near else ""
                raise KeyError(f"{fn}() has neither a parameter nor an option '{name}'"
                               + hint)
        for p in self.params:
            if p.name not in values:
                if not p.has_default:
                    raise TypeError(f"{fn}() misses argument '{p.name}'")
                values[p.name] = p.default
        return {n: values[n] for n in names}, options

    # ------------------------------------------------------------ the general way

    def general(self, grid: Any, args: tuple, kwargs: dict[str, Any]) -> Compiled:
        """A launch of any arguments, built one by one."""
        values, options = self.bound(args, kwargs)
        made, packed, keep = self.prepare(values, options)
        look_again(made.source.reads)
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
        where = self._place(leaves, values)
        key = shape, where, tuple([options.get(k) for k in _USED])
        made = self._made.get(key)
        new = made is None
        if made is None:
            made = self._made[key] = self._make(shape, where, values, options)
        if not made.wrapped:  # None is an argument, too
            leaves = [values[p.name] for p in self.params if not p.is_constexpr]
        keep: list[Any] = list(leaves)
        packed = (L.Arg * max(1, len(leaves)))(
            *[self._told(v, values, argument, v, made.context, keep) for v in leaves])
        made.nargs = len(leaves)
        made.sample = made.sample or bytes(packed)
        if new:
            made.compile(packed)
            if not self.quiet:
                made.tell(compiled=True)
        for i, v in enumerate(leaves):
            if is_read_only(v) and L.lib.sdc_kernel_writes(made.compile(packed), i):
                before = sum(u is v for u in leaves[:i])
                raise ArgumentError(f"{self.fn.__name__}() stores to "
                                    f"'{names_of(v, values)[before]}', an array that is "
                                    "read-only (flags.writeable)")
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
            raise_at(of_status(status, source.places(str(e), self.path)))
        return Compiled(self, ctx, handle, source, options, _stream_of(where),
                        wrapped=source is not self._sources.get((), (None,))[0])

    def mixed(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        """Are arrays at different places? Each launch looks at their memory then."""
        values = (*args, *kwargs.values())
        return len({place(v) for v in values if is_array(v) or is_descriptor(v)}) > 1

    def _told(self, v: Any, values: dict[str, Any], f: Callable, *args: Any) -> Any:
        """f(*args), which looks at `v`; an error names its parameter."""
        try:
            return f(*args)
        except (ArgumentError, OverflowError) as e:
            raise type(e)(f"argument '{names_of(v, values)[0]}' of "
                          f"{self.fn.__name__}(): {e}") from None

    def _place(self, leaves: list[Any], values: dict[str, Any]) -> tuple[str, int]:
        arrays = [(v, self._told(v, values, place, v)) for v in leaves
                  if is_array(v) or is_descriptor(v)]
        places = {at for _, at in arrays}
        if len(places) > 1:  # what a GPU can take from the CPU: nothing, or pinned memory
            places = {at for v, at in arrays if not anywhere(v)} or {places.pop()}
        if len(places) > 1:
            told = ", ".join(dict.fromkeys(
                f"'{name}' on {kind}" + (f":{i}" if kind != "cpu" else "")
                for v, (kind, i) in arrays for name in names_of(v, values)))
            raise ArgumentError(f"arguments of {self.fn.__name__}() are at different "
                                f"places: {told}")
        return places.pop() if places else default_place()

    def _spell(self, shape: tuple, values: dict[str, Any], options: dict[str, Any]) -> \
            tuple[tuple[str, ...], Source, str]:
        """Bindings, source and name of the kernel for a call."""
        option = tuple(f"{k}={int(options[k])}"
                       for k in ("num_warps", "num_stages", "num_ctas")
                       if options.get(k) and k not in values)
        if options.get("launch_pdl"):
            option += ("launch_pdl=True",)
        if options.get("enable_fp_fusion", _FUSED) in (False, 0):
            option += ("enable_fp_fusion=False",)
        consts = {p.name: _plain(values[p.name]) for p in self.params if p.is_constexpr}
        rest = [values[p.name] for p in self.params if not p.is_constexpr]
        if any(isinstance(v, (tuple, list)) or _static(v) for v in rest) or \
                any(isinstance(v, tuple) or literal(v) is None for v in consts.values()):
            return (option, *self._wrapped(shape, values))
        bind = tuple(f"{k}={literal(v)}" for k, v in consts.items())
        return (bind + option, *self.plain())

    def plain(self) -> tuple[Source, str]:
        """The kernel as it is, and its name there."""
        if () not in self._sources:
            source = Source()
            self._sources[()] = source, source.place(self.fn)
        return self._sources[()]

    def _constant(self, name: str, v: Any, source: Source) -> str:
        """The text of a constexpr's value."""
        try:
            return source.value(v)
        except SourceError as e:
            raise SourceError(f"'{name}' of {self.fn.__name__}(): {e}") from None

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
                    self._constant(p.name, v, source) if p.is_constexpr
                    else _flat(p.name, v, source, params)))
                if getattr(p, "do_not_specialize", False):
                    plain += params[first:]
            if len(params) > L.MAX_ARGS:
                raise ArgumentError(
                    f"{self.fn.__name__}() would get {len(params)} arguments, at most "
                    f"{L.MAX_ARGS}: each element of a tuple or list is one; many numbers "
                    "go as an array")
            entry = source.fresh(f"{kernel}__entry", key)
            source.add(f"@triton.jit(do_not_specialize={plain!r})" if plain
                       else "@triton.jit")
            source.add(f"def {entry}({', '.join(params)}):\n"
                       f"    {kernel}({', '.join(call)})")
            self._sources[key] = source, entry
        return self._sources[key]

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
        if type(v) in SIMPLE:
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

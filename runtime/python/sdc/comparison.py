"""sdc.compare(): every kernel of a program under Triton and sdc, beside each other.

A launch goes to Triton, as it would have; then its memory is put back to what it was, the
launch is done by sdc, and what both wrote is compared. The program goes on with Triton's
results. Without a GPU Triton is its interpreter (TRITON_INTERPRET).
"""

from __future__ import annotations

import bisect
import gc
import json
import math
import os
import statistics
import sys
from dataclasses import asdict, dataclass
from typing import Any, Callable, Optional

from .arguments import is_array, is_descriptor
from .driver import Clock
from .errors import Error
from .install import launcher_of, replace, uninstall
from .launch import OPTIONS
from .source import as_jit

_AGAIN = 3  # runs in which Triton may differ from itself
# the largest difference beside the largest value, up to which results are alike; of
# fp32 it is what products in tf32 differ by
_ALIKE = {8: 1e-9, 4: 2e-3, 2: 1e-2, 1: 0.13}


@dataclass
class Row:
    """A kernel with certain types, constexprs and options."""

    kernel: str
    what: str
    result: str = ""  # same bits, alike, DIFFERS, varies, refused, ...
    worst: float = 0.0  # difference beside the largest value
    why: str = ""
    launches: int = 0
    triton_ms: float = 0.0
    sdc_ms: float = 0.0


class Comparison:
    """The rows so far; `text` is a table of them."""

    def __init__(self, kinds: int, launches: int, times: bool) -> None:
        self.kinds, self.launches, self.times = kinds, launches, times
        self.rows: dict[Any, Row] = {}
        self._busy = False  # a search for the fastest configuration is under way

    def __enter__(self) -> Comparison:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        uninstall()
        print(self.text())

    @property
    def differ(self) -> list[Row]:
        """The rows that are not alike, or that sdc refused."""
        return [r for r in self.rows.values() if r.result in ("DIFFERS", "refused")]

    def start(self) -> None:
        """From here on launches are compared."""
        import torch
        import triton
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction
        uninstall()
        self._torch = torch
        run = JITFunction.run
        if getattr(triton.knobs.runtime, "interpret", False):
            from triton.runtime import interpreter
            from triton.runtime.interpreter import InterpretedFunction
            from .driver import Driver
            from .testing import do_bench
            interpreted = InterpretedFunction.run
            replace(interpreter, "_patch_lang_tensor",
                    _counting(interpreter._patch_lang_tensor))
            replace(InterpretedFunction, "run", self._around(interpreted))
            replace(triton.runtime.driver, "_active", Driver("cpu"))
            replace(triton.testing, "do_bench", do_bench)
            # an interpreter's times choose no configuration: the first one it is
            replace(Autotuner, "_bench", lambda *args, **kwargs: [1.0] * 3)
            return
        kernel = triton.compiler.CompiledKernel
        replace(JITFunction, "run", self._around(run))
        replace(kernel, "__getitem__", self._getitem(kernel.__getitem__))
        replace(Autotuner, "_bench", self._quiet(Autotuner._bench))

    def _quiet(self, bench: Callable) -> Callable:
        def _bench(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            self._busy = True
            try:
                return bench(tuner, *args, **kwargs)
            finally:
                self._busy = False
        return _bench

    def _around(self, theirs: Callable) -> Callable:
        def run(fn: Any, *args: Any, grid: Any, warmup: bool = False,
                **kwargs: Any) -> Any:
            def go() -> Any:
                return theirs(fn, *args, grid=grid, warmup=warmup, **kwargs)

            if not warmup:
                return self._launch(fn, args, kwargs, grid, go)
            made = go()
            names = getattr(fn, "arg_names", ())  # a parameter may be called num_stages
            options = {k: v for k, v in kwargs.items()
                       if k in OPTIONS and k not in names}
            if made is None:  # the interpreter's
                made = as_jit(fn).warmup(*args, grid=grid, **kwargs)
                made.launcher = _Through(fn)
            else:
                made._sdc = fn, options
            return made
        return run

    def _getitem(self, theirs: Callable) -> Callable:
        """Launches of what Triton's warmup gave."""
        def getitem(kernel: Any, grid: Any) -> Callable:
            runner = theirs(kernel, grid)
            about = getattr(kernel, "_sdc", None)
            if about is None:
                return runner
            return lambda *args, **kw: self._launch(
                about[0], args, {**about[1], **kw}, grid, lambda: runner(*args, **kw))
        return getitem

    def _launch(self, fn: Any, args: tuple, kwargs: dict[str, Any], grid: Any,
                go: Callable) -> Any:
        row = None if self._busy else self._row(fn, args, kwargs)
        if row is None:
            return go()
        self._busy = True
        try:
            return self._compare(row, fn, args, kwargs, grid, go)
        finally:
            self._busy = False

    def _row(self, fn: Any, args: tuple, kwargs: dict[str, Any]) -> Optional[Row]:
        """The row of a launch; None when there have been enough of it."""
        name = fn.__name__
        what = " ".join([_short(v) for v in args] +
                        [f"{k}={_short(v)}" for k, v in kwargs.items()
                         if k not in ("debug", "num_ctas") and v is not None])
        key = (name, _kind(fn, args, kwargs))
        if key not in self.rows:
            if sum(k[0] == name for k in self.rows) >= self.kinds:
                return None
            self.rows[key] = Row(name, what)
        row = self.rows[key]
        row.launches += 1
        return row if row.launches <= self.launches else None

    # ------------------------------------------------------------ one launch

    def _compare(self, row: Row, fn: Any, args: tuple, kwargs: dict[str, Any], grid: Any,
                 theirs: Callable) -> Any:
        memory = _memory((args, kwargs), self._torch)
        self._wait(memory)
        before = _save(memory)
        row.result, row.why = "no Triton", "the program's own launch failed"
        result = theirs()
        self._wait(memory)
        row.result = row.why = ""
        wanted = _save(memory)
        made = as_jit(fn)
        launcher = launcher_of(made) if made is fn else made.launcher

        def ours() -> Any:
            return launcher(grid, args, kwargs)

        try:
            _restore(memory, before)
            ours()
            self._wait(memory)
            self._judge(row, memory, wanted)
            if row.result == "DIFFERS" and self._varies(memory, before, wanted, theirs):
                row.result, row.why = "varies", "Triton's results differ between runs"
            if row.result == "same bits" and all(
                    self._torch.equal(before[k], wanted[k]) for k in memory):
                self._poisoned(row, memory, before, theirs, ours)
            if self.times and row.result in ("same bits", "alike", "none seen"):
                row.triton_ms, row.sdc_ms = self._measure(memory, before, theirs, ours)
        except (Error, TypeError, KeyError, OverflowError) as e:
            row.result, row.why = "refused", str(e)
        _restore(memory, wanted)
        self._wait(memory)
        return result

    def _varies(self, memory: dict, before: dict, wanted: dict, theirs: Callable) -> bool:
        """Do further runs of Triton's kernel differ from its first one? What sdc made
        can then not be judged by it."""
        again = Row("", "")
        for _ in range(_AGAIN):
            _restore(memory, before)
            theirs()
            self._wait(memory)
            self._judge(again, memory, wanted)
        return again.result == "DIFFERS"

    def _poisoned(self, row: Row, memory: dict, before: dict, theirs: Callable,
                  ours: Callable) -> None:
        """What was there already, as behind a search for a configuration, is seen where
        something else was there: of floats alone, since numbers may be locks."""
        row.result = ""
        for key, (storage, dtype) in memory.items():
            if not dtype.is_floating_point:
                continue
            poison = self._torch.full_like(before[key], 0x3c)

            def run(f: Callable, storage: Any = storage, poison: Any = poison) -> None:
                _restore(memory, before)
                _bytes(storage).copy_(poison)
                f()
                self._wait(memory)

            run(theirs)
            if not self._torch.equal(_bytes(storage), poison):
                wanted = _save(memory)
                run(ours)
                self._judge(row, memory, wanted)
        if not row.result:
            row.result = "none seen"
            row.why = "it wrote to no memory of floats that its arguments lead to"

    def _wait(self, memory: dict) -> None:
        if any(s.device.type == "cuda" for s, _ in memory.values()):
            self._torch.cuda.synchronize()

    def _judge(self, row: Row, memory: dict, wanted: dict) -> None:
        torch = self._torch
        row.result = row.result or "same bits"
        for key, (storage, dtype) in memory.items():
            a, b = wanted[key], _bytes(storage)
            if torch.equal(a, b) or row.result == "DIFFERS":
                continue
            n = a.numel() // dtype.itemsize * dtype.itemsize
            x, y = a[:n].view(dtype), b[:n].view(dtype)
            if not dtype.is_floating_point:
                row.worst = (x != y).double().mean().item()
                row.result = "DIFFERS"
                row.why = f"{(x != y).sum().item()} of {x.numel()} whole numbers"
                continue
            x, y = (v.to(torch.float32 if dtype.itemsize < 4 else torch.float64)
                    for v in (x, y))
            finite = torch.isfinite(x)
            if not torch.equal(finite, torch.isfinite(y)):
                row.result, row.worst = "DIFFERS", math.inf
                row.why = f"{(finite != torch.isfinite(y)).sum().item()} are not finite"
                continue
            x, y = x[finite], y[finite]
            if x.numel() == 0:
                continue
            largest = max(x.abs().max().item(), 1e-30)
            worst = (x - y).abs().max().item() / largest
            row.worst = max(row.worst, worst)
            row.result = "alike" if worst <= _ALIKE[dtype.itemsize] else "DIFFERS"

    def _measure(self, memory: dict, before: dict, theirs: Callable,
                 ours: Callable) -> tuple[float, float]:
        """Medians of rounds in which both take turns, memory as before each of them."""
        gpu = any(s.device.type == "cuda" for s, _ in memory.values())
        event = self._torch.cuda.Event if gpu else Clock
        flush = self._torch.empty(64 << 20, dtype=self._torch.int32,
                                  device="cuda") if gpu else None
        spent: tuple[list, list] = ([], [])
        for i in range(11 if gpu else 3):
            for which in ((0, 1), (1, 0))[i % 2]:
                if not gpu and which == 0 and i:
                    continue  # an interpreter is not measured twice
                _restore(memory, before)
                if flush is not None:
                    flush.zero_()
                begin, end = event(enable_timing=True), event(enable_timing=True)
                begin.record()
                (theirs, ours)[which]()
                end.record()
                spent[which].append((begin, end))
        self._wait(memory)
        first, second = ([b.elapsed_time(e) for b, e in s] for s in spent)
        return statistics.median(first), statistics.median(second)

    # ------------------------------------------------------------ what it says

    def text(self) -> str:
        """The table, a line for each kind of launch."""
        interpreted = bool(getattr(getattr(sys.modules.get("triton"), "knobs", None),
                                   "runtime", None) and
                           sys.modules["triton"].knobs.runtime.interpret)
        theirs = "interp. ms" if interpreted else "Triton ms"
        lines = [f"{'kernel':28} {'result':12} {'worst':>9} {theirs:>10} "
                 f"{'sdc ms':>9} {'times':>7}  launch"]
        for r in self.rows.values():
            times = f"{r.triton_ms:10.4f} {r.sdc_ms:9.4f} " \
                f"{r.triton_ms / r.sdc_ms:7.2f}" if r.sdc_ms else " " * 28
            lines.append(f"{r.kernel[:28]:28} {r.result:12} {r.worst:9.1e} {times}  "
                         f"{r.what[:100]}")
            if r.why:
                lines += ["    " + line for line in r.why.splitlines()[:6]]
        both = [r.triton_ms / r.sdc_ms for r in self.rows.values() if r.sdc_ms]
        counts: dict[str, int] = {}
        for r in self.rows.values():
            counts[r.result] = counts.get(r.result, 0) + 1
        end = ", ".join(f"{n} {what}" for what, n in counts.items())
        if both:
            mean = math.exp(sum(map(math.log, both)) / len(both))
            end += f"; {theirs[:-3]} / sdc: {mean:.2f} (geometric mean of {len(both)})"
        return "\n".join([*lines, end])

    def save(self, path: str) -> None:
        """The rows as JSON."""
        with open(path, "w", encoding="utf-8") as f:
            json.dump([asdict(r) for r in self.rows.values()], f, indent=1)


def compare(kinds: int = 12, launches: int = 1, times: bool = True) -> Comparison:
    """with sdc.compare(): the launches of Triton's kernels are done by sdc, too.

    Of each kernel at most `kinds` kinds of launches are compared, each `launches` times.
    Without a GPU set TRITON_INTERPRET=1 before Triton is imported.
    """
    if "triton" not in sys.modules and not _has_gpu():
        os.environ["TRITON_INTERPRET"] = "1"
    return Comparison(kinds, launches, times)


class _Through:
    """A launcher that goes through the program's own kernel."""

    def __init__(self, fn: Any) -> None:
        self.fn, self.path = fn, ""

    def __call__(self, grid: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self.fn.run(*args, grid=grid, warmup=False, **kwargs)


def _counting(patch: Callable) -> Callable:
    """Triton 3.6's interpreter makes numbers of arrays of one element, as range() wants
    them, in a way that NumPy 2.4 refuses."""
    def patched(tensor: Any, *scope: Any) -> None:
        patch(tensor, *scope)
        tensor.__index__ = lambda self: int(self.handle.data.item())
    return patched


def _has_gpu() -> bool:
    import torch
    return torch.cuda.is_available()


def _leaves(v: Any) -> list[Any]:
    if isinstance(v, dict):
        v = tuple(v.values())
    if isinstance(v, (tuple, list)):
        return [x for part in v for x in _leaves(part)]
    if is_descriptor(v):
        return _leaves(v.base)
    base = getattr(v, "base", None)  # a TensorWrapper
    return [base if hasattr(base, "untyped_storage") else v] if is_array(v) else []


def _memory(values: Any, torch: Any) -> dict[int, tuple[Any, Any]]:
    """The storages of a launch's tensors and behind addresses in these, by address."""
    found: dict[int, tuple[Any, Any]] = {}
    tensors = [t for t in _leaves(values) if isinstance(t, torch.Tensor)]
    for t in tensors + _pointed(tensors, torch):
        s = t.untyped_storage()
        if s.nbytes():
            found.setdefault(s.data_ptr(), (s, t.dtype))
    return found


def _pointed(tensors: list[Any], torch: Any) -> list[Any]:
    """The program's tensors whose addresses lie in tensors of 64-bit integers."""
    addresses: set[int] = set()
    for t in tensors:
        if t.dtype in (torch.int64, torch.uint64) and t.numel() <= 1 << 16:
            addresses.update(t.flatten().tolist())
    sought = sorted(a for a in addresses if a >= 1 << 16)  # below it are numbers
    found = []
    for t in gc.get_objects() if sought else ():
        if issubclass(type(t), torch.Tensor) and t.layout == torch.strided and \
                t.device.type in ("cpu", "cuda") and type(t).__name__ != "FakeTensor":
            s = t.untyped_storage()
            at = bisect.bisect_left(sought, s.data_ptr())
            if at < len(sought) and sought[at] < s.data_ptr() + s.nbytes():
                found.append(t)
    return found


def _bytes(storage: Any) -> Any:
    torch = sys.modules["torch"]
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _save(memory: dict) -> dict[int, Any]:
    return {key: _bytes(s).clone() for key, (s, _) in memory.items()}


def _restore(memory: dict, saved: dict) -> None:
    for key, (s, _) in memory.items():
        _bytes(s).copy_(saved[key])


def _short(v: Any) -> str:
    """A value in a few letters."""
    if is_descriptor(v):
        return f"desc{list(v.block_shape)}"
    if hasattr(v, "dtype") and hasattr(v, "shape"):
        return f"{str(v.dtype).rpartition('.')[2]}{list(v.shape)}".replace(" ", "")
    if isinstance(v, (tuple, list)):
        return "(" + ",".join(map(_short, v)) + ")"
    name = getattr(v, "__name__", None)
    return str(name or v)[:24]


def _kind(fn: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What makes two launches of one kind: types, and numbers only as constexprs, which
    a launch may give by their places or by name, and options by name."""
    made = as_jit(fn)
    params = made.params if made else []
    given = [(params[i].is_constexpr if i < len(params) else False, v)
             for i, v in enumerate(args)]
    return (tuple(_short(v) if fixed else _type(v) for fixed, v in given),
            tuple((k, _type(v) if hasattr(v, "dtype") else _short(v))
                  for k, v in kwargs.items()))


def _type(v: Any) -> Any:
    if isinstance(v, (tuple, list)):
        return tuple(map(_type, v))
    return str(v.dtype) if hasattr(v, "dtype") else type(v).__name__

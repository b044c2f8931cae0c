"""do_bench and perf_report of triton.testing; on the CPU, too."""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from typing import Any, Callable, Optional, Sequence

from .launch import default_place


def quantile(times: Sequence[float], q: float) -> float:
    """Between neighbours as numpy does it."""
    ordered = sorted(times)
    point = q * (len(ordered) - 1)
    low = int(point)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (point - low)


def summary(times: list[float], quantiles: Optional[Sequence[float]], mode: str) -> Any:
    """What do_bench gives for these times."""
    if quantiles is not None:
        found = [quantile(times, q) for q in quantiles]
        return found[0] if len(found) == 1 else found
    if mode == "all":
        return times
    modes: dict[str, Callable[[list[float]], float]] = {
        "mean": statistics.mean, "median": statistics.median, "min": min, "max": max}
    return modes[mode](times)


def _on_cpu(fn: Callable, warmup: float, rep: float) -> list[float]:
    """Milliseconds; at least one call behind the first, about `rep` ms in all."""
    def once() -> float:
        begin = time.perf_counter()
        fn()
        return (time.perf_counter() - begin) * 1e3

    first = once()  # compiles
    spent = 0.0
    while spent < min(warmup, rep) and first < rep:
        spent += max(once(), 1e-4)
    times = [once()]
    while sum(times) < rep and len(times) < 1000:
        times.append(max(once(), 1e-6))
    return times


def _on_gpu(fn: Callable, warmup: float, rep: float, grads: Any) -> list[float]:
    torch = sys.modules["torch"]
    fn()
    torch.cuda.synchronize()
    cache = torch.empty(256 << 20, dtype=torch.int8, device="cuda")

    def event() -> Any:
        e = torch.cuda.Event(enable_timing=True)
        e.record()
        return e

    begin = event()
    for _ in range(5):
        cache.zero_()
        fn()
    end = event()
    torch.cuda.synchronize()
    one = max(begin.elapsed_time(end) / 5, 1e-3)
    for _ in range(max(1, int(warmup / one))):
        fn()
    pairs = []
    for _ in range(max(1, int(rep / one))):
        for x in grads or ():
            x.grad = None
        cache.zero_()
        begin = event()
        fn()
        pairs.append((begin, event()))
    torch.cuda.synchronize()
    return [b.elapsed_time(e) for b, e in pairs]


def do_bench_cudagraph(fn: Callable, rep: float = 20, grad_to_none: Any = None,
                       quantiles: Any = None, return_mode: str = "mean") -> Any:
    """The same, without a graph of CUDA."""
    return do_bench(fn, 0, rep, grad_to_none, quantiles, return_mode)


def do_bench(fn: Callable, warmup: float = 25, rep: float = 100, grad_to_none: Any = None,
             quantiles: Optional[Sequence[float]] = None,
             return_mode: str = "mean") -> Any:
    """Milliseconds of fn(): by events on a GPU, by the clock on the CPU."""
    if default_place()[0] == "cuda":
        return summary(_on_gpu(fn, warmup, rep, grad_to_none), quantiles, return_mode)
    return summary(_on_cpu(fn, warmup, rep), quantiles, return_mode)


def assert_close(x: Any, y: Any, atol: float = 1e-2, rtol: float = 0.0,
                 err_msg: str = "") -> None:
    """Fails when two arrays are not alike."""
    import numpy as np

    def plain(v: Any) -> Any:
        return v.detach().float().cpu().numpy() if hasattr(v, "detach") else v
    np.testing.assert_allclose(plain(x), plain(y), atol=atol, rtol=rtol, err_msg=err_msg)


class Benchmark:
    """What a plot of perf_report shows."""

    def __init__(self, x_names: list[str], x_vals: list, line_arg: str, line_vals: list,
                 line_names: list[str], plot_name: str, args: dict[str, Any],
                 xlabel: str = "", ylabel: str = "", x_log: bool = False,
                 y_log: bool = False, styles: Any = None) -> None:
        self.x_names, self.x_vals, self.args = x_names, x_vals, args
        self.line_arg, self.line_vals, self.line_names = line_arg, line_vals, line_names
        self.plot_name, self.xlabel, self.ylabel = plot_name, xlabel, ylabel
        self.x_log, self.y_log, self.styles = x_log, y_log, styles


class Mark:
    """A function that perf_report decorates."""

    def __init__(self, fn: Callable, benchmarks: Any) -> None:
        self.fn, self.benchmarks = fn, benchmarks

    def run(self, show_plots: bool = False, print_data: bool = False, save_path: str = "",
            return_df: bool = False, **kwargs: Any) -> list[list[list]]:
        """Measures everything and prints a table each; draws nothing."""
        many = isinstance(self.benchmarks, (list, tuple))
        tables = []
        for b in self.benchmarks if many else [self.benchmarks]:
            rows = []
            for x in b.x_vals:
                xs = x if isinstance(x, (list, tuple)) else [x] * len(b.x_names)
                at = dict(zip(b.x_names, xs))
                ys = [self.fn(**at, **{b.line_arg: v}, **b.args, **kwargs)
                      for v in b.line_vals]
                rows.append([*xs, *(y[0] if isinstance(y, tuple) else y for y in ys)])
            if print_data:
                print(b.plot_name + ":")
                for row in [[*b.x_names, *b.line_names], *rows]:
                    print("  " + "".join(f"{v:>16.6g}" if isinstance(v, float)
                                         else f"{v!s:>16}" for v in row))
            tables.append(rows)
        return tables


def perf_report(benchmarks: Any) -> Callable[[Callable], Mark]:
    """Decorates a function that measures one point of a plot."""
    return lambda fn: Mark(fn, benchmarks)


def limit_points(points: int) -> None:
    """Benchmarks of triton.testing measure only so many sizes, and draw nothing."""
    import triton
    mark = triton.testing.Mark
    drawing = all(importlib.util.find_spec(n) for n in ("matplotlib", "pandas"))
    whole = mark.run if drawing else Mark.run  # Triton's asks for both, plots or not

    def run(self: Any, show_plots: bool = False, print_data: bool = False,
            save_path: str = "", **kwargs: Any) -> Any:
        many = isinstance(self.benchmarks, (list, tuple))
        for b in self.benchmarks if many else [self.benchmarks]:
            b.x_vals = list(b.x_vals)[:points]
        return whole(self, print_data=print_data, **kwargs) if points else None

    mark.run = run

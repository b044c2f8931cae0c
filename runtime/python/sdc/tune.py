"""Config, autotune and heuristics of Triton, for kernels of @sdc.jit."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Optional, Sequence

from .errors import ArgumentError, Error
from .launch import default_place

_OPTIONS = ("num_warps", "num_ctas", "num_stages", "maxnreg")


class Config:
    """A configuration that autotune may choose: constexprs and launch options."""

    def __init__(self, kwargs: dict[str, Any], num_warps: int = 4, num_stages: int = 3,
                 num_ctas: int = 1, maxnreg: Optional[int] = None,
                 pre_hook: Optional[Callable] = None,
                 ir_override: Optional[str] = None) -> None:
        self.kwargs, self.pre_hook, self.ir_override = kwargs, pre_hook, ir_override
        self.num_warps, self.num_stages = num_warps, num_stages
        self.num_ctas, self.maxnreg = num_ctas, maxnreg

    def all_kwargs(self) -> dict[str, Any]:
        """Constexprs and options, as a launch takes them."""
        options = {k: getattr(self, k) for k in _OPTIONS}
        return {**self.kwargs, **{k: v for k, v in options.items() if v is not None}}

    def __str__(self) -> str:
        return ", ".join(f"{k}: {v}" for k, v in self.all_kwargs().items())


def distinct(configs: Sequence[Any], arg_names: Sequence[str]) -> list[Any]:
    """Configurations that are different code on the CPU: warps and stages are none."""
    found: dict[str, Any] = {}
    for c in configs:
        values = c.all_kwargs()
        found.setdefault(repr([(k, values[k]) for k in arg_names if k in values]), c)
    return list(found.values())


class Around:
    """A kernel behind a decorator: it computes arguments and hands the launch on."""

    def __init__(self, fn: Any, arg_names: Sequence[str]) -> None:
        self.fn, self.arg_names = fn, list(arg_names)
        self.base_fn = getattr(fn, "base_fn", None) or fn.fn
        self.__name__, self.__qualname__ = fn.__name__, fn.__qualname__
        self.__module__ = fn.__module__

    def __reduce__(self) -> str:
        return self.__qualname__

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """A launch."""
        raise NotImplementedError

    def __getitem__(self, grid: Any) -> Callable:
        return lambda *args, **kw: self.run(*args, grid=grid, warmup=False, **kw)

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Compiles for these arguments."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)


class Heuristics(Around):
    """Constexprs that are computed from the other arguments."""

    def __init__(self, fn: Any, arg_names: Sequence[str],
                 values: dict[str, Callable]) -> None:
        super().__init__(fn, arg_names)
        self.values = values

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """A launch with the computed constexprs."""
        for name, f in self.values.items():
            kwargs[name] = f({**dict(zip(self.arg_names, args)), **kwargs})
        return self.fn.run(*args, **kwargs)


class Autotuner(Around):
    """Measures configurations at the first launch with new values of `key`."""

    def __init__(self, fn: Any, configs: Sequence[Config], key: Sequence[str],
                 prune_configs_by: Optional[dict] = None,
                 reset_to_zero: Optional[Sequence[str]] = None,
                 restore_value: Optional[Sequence[str]] = None,
                 pre_hook: Optional[Callable] = None,
                 post_hook: Optional[Callable] = None, do_bench: Any = None) -> None:
        super().__init__(fn, fn.arg_names)
        for c in configs:
            if not hasattr(c, "all_kwargs"):
                raise TypeError(f"a configuration of {fn.__name__}() is a "
                                f"{type(c).__name__}: write Config({{\"BLOCK\": 64}})")
        for name in (*key, *(reset_to_zero or ()), *(restore_value or ())):
            if name not in self.arg_names:  # older programs of Triton live with it
                warnings.warn(f"autotune of {fn.__name__}(): no parameter is named "
                              f"'{name}'", RuntimeWarning, stacklevel=3)
        self.configs = list(configs) or [Config({})]
        self.keys = list(key)
        self.cache: dict[tuple, Config] = {}
        prune = prune_configs_by or {}  # names as in Triton: torch.compile looks at them
        self.perf_model = prune.get("perf_model")
        self.configs_top_k = prune.get("top_k", 1.0)
        self.early_config_prune = prune.get("early_config_prune")
        self.reset_to_zero = list(reset_to_zero or [])
        self.restore_value = list(restore_value or [])
        self.pre_hook, self.post_hook = pre_hook, post_hook
        self.user_defined_pre_hook = pre_hook is not None
        self.user_defined_post_hook = post_hook is not None
        self._do_bench = do_bench
        self.best_config: Optional[Config] = None
        self.configs_timings: dict[Config, Any] = {}
        self.nargs: dict[str, Any] = {}

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """A launch with the best configuration."""
        self.nargs = dict(zip(self.arg_names, args))
        for name in self.configs[0].kwargs:
            if name in kwargs or name in self.nargs:
                raise ArgumentError(f"{self.__name__}() has '{name}' of its "
                                    "configurations: leave it out of the call")
        values = {**self.nargs, **kwargs}
        key = tuple(values[k] for k in self.keys if k in values) + tuple(
            str(v.dtype) for k, v in values.items()
            if k in self.arg_names and hasattr(v, "dtype"))
        if kwargs.get("warmup"):
            return self.fn.run(*args, **kwargs, **self.configs[0].all_kwargs())
        if key not in self.cache:
            self.cache[key] = self._search(args, kwargs, values)
        config = self.best_config = self.cache[key]
        full = {**values, **config.all_kwargs()}
        if config.pre_hook:
            config.pre_hook(full)
        return self.fn.run(*args, **kwargs, **config.all_kwargs())

    def _search(self, args: tuple, kwargs: dict, values: dict) -> Config:
        configs = self._pruned(kwargs)
        if len(configs) == 1:
            return configs[0]
        failed: Optional[Error] = None
        self.configs_timings = {}
        for c in configs:
            try:
                self.configs_timings[c] = self._time(c, args, kwargs, values)
            except Error as e:  # one that does not compile or fit is not the best one
                failed = e
        if not self.configs_timings and failed:
            raise failed
        if self.pre_hook:
            self.pre_hook(values, reset_only=True)
        for name in self.reset_to_zero:
            _zero(values[name])
        return min(self.configs_timings, key=lambda c: self.configs_timings[c][0])

    def _time(self, config: Config, args: tuple, kwargs: dict, values: dict) -> Any:
        full = {**values, **config.all_kwargs()}
        saved = {n: _copy(values[n]) for n in self.restore_value
                 if values[n] is not None}

        def call() -> None:
            if config.pre_hook:
                config.pre_hook(full)
            if self.pre_hook:
                self.pre_hook(full)
            for name in self.reset_to_zero:
                _zero(values[name])
            self.fn.run(*args, **kwargs, **config.all_kwargs())
            for name, copy in saved.items():
                values[name][...] = copy
            if self.post_hook:
                self.post_hook(full, exception=None)

        from .testing import do_bench
        return (self._do_bench or do_bench)(call, quantiles=(0.5, 0.2, 0.8))

    def _pruned(self, kwargs: dict) -> list[Config]:
        configs = self.configs
        if self.early_config_prune:
            configs = list(self.early_config_prune(configs, self.nargs, **kwargs))
        model, top = self.perf_model, self.configs_top_k
        if model:
            n = max(1, int(len(configs) * top)) if isinstance(top, float) else top
            configs = sorted(configs, key=lambda c: model(**self.nargs, **kwargs,
                                                          **c.all_kwargs()))[:n]
        if not configs:
            raise Error("no configuration is left after pruning")
        on_cpu = default_place()[0] == "cpu"
        return distinct(configs, self.arg_names) if on_cpu else configs


def _zero(x: Any) -> None:
    if x is not None:
        x[...] = 0


def _copy(x: Any) -> Any:
    return x.clone() if hasattr(x, "clone") else x.copy()


def autotune(configs: Sequence[Config], key: Sequence[str], prune_configs_by: Any = None,
             reset_to_zero: Any = None, restore_value: Any = None, pre_hook: Any = None,
             post_hook: Any = None, warmup: Any = None, rep: Any = None,
             use_cuda_graph: bool = False, do_bench: Any = None,
             cache_results: bool = False) -> Callable[[Any], Autotuner]:
    """triton.autotune; `warmup`, `rep`, `use_cuda_graph`, `cache_results` are ignored."""
    return lambda fn: Autotuner(fn, configs, key, prune_configs_by, reset_to_zero,
                                restore_value, pre_hook, post_hook, do_bench)


def heuristics(values: dict[str, Callable]) -> Callable[[Any], Heuristics]:
    """triton.heuristics."""
    return lambda fn: Heuristics(fn, fn.arg_names, values)

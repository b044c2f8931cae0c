"""What host code asks Triton's driver: the device, its properties, how to measure."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any, Callable

from . import context


class Clock:
    """An event of a machine without streams: when it was recorded."""

    def __init__(self, enable_timing: bool = True, **_: Any) -> None:
        self.at = 0.0

    def record(self, stream: Any = None) -> None:
        """Now."""
        self.at = time.perf_counter()

    def elapsed_time(self, end: Clock) -> float:
        """Milliseconds to a later event."""
        return (end.at - self.at) * 1e3

    def synchronize(self) -> None:
        """Launches on the CPU have ended when they return."""


class Driver:
    """triton.runtime.driver.active for launches on the CPU or, without Triton, a GPU."""

    def __init__(self, kind: str, index: int = 0) -> None:
        self.kind, self.index = kind, index
        self.utils = SimpleNamespace(get_device_properties=self._properties)

    @staticmethod
    def is_active() -> bool:
        """It is."""
        return True

    def get_current_target(self) -> Any:
        """backend, arch and warp_size."""
        if self.kind == "cuda":
            return _target("cuda", context.get("cuda", self.index).describe().sm, 32)
        return _target("cpu", "x86_64", 32)

    def get_current_device(self) -> int:
        """The number of the device."""
        return sys.modules["torch"].cuda.current_device() if self.kind == "cuda" else 0

    def set_current_device(self, device: int) -> None:
        """Makes another GPU the current one."""
        if self.kind == "cuda":
            sys.modules["torch"].cuda.set_device(device)

    def get_current_stream(self, device: Any = None) -> int:
        """torch's current stream; 0 on the CPU."""
        if self.kind == "cuda":
            return sys.modules["torch"].cuda.current_stream(device).cuda_stream
        return 0

    def get_active_torch_device(self) -> Any:
        """As a torch.device."""
        import torch
        return torch.device("cuda", self.get_current_device()) if self.kind == "cuda" \
            else torch.device("cpu")

    def get_device_interface(self) -> Any:
        """torch.cuda, or as much of it as measuring needs."""
        if self.kind == "cuda":
            return sys.modules["torch"].cuda
        return SimpleNamespace(Event=Clock, synchronize=lambda *_: None,
                               current_device=lambda: 0, device_count=lambda: 1)

    def get_benchmarker(self) -> Callable:
        """do_bench."""
        from .testing import do_bench
        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """Memory that is written between runs, to empty caches."""
        import torch
        size = 256 << 20 if self.kind == "cuda" else 1 << 20
        return torch.empty(size, dtype=torch.int8, device=self.kind)

    def clear_cache(self, cache: Any) -> None:
        """Writes it."""
        cache.zero_()

    def _properties(self, device: Any) -> dict[str, int]:
        if self.kind == "cuda":
            p = sys.modules["torch"].cuda.get_device_properties(device)
            return {"multiprocessor_count": p.multi_processor_count,
                    "max_shared_mem": p.shared_memory_per_block_optin,
                    "max_num_regs": 65536, "warpSize": 32}
        # a thread is an SM; the rest are a GPU's, for those who divide by it
        return {"multiprocessor_count": context.get("cpu").threads, "warpSize": 32,
                "max_shared_mem": 232448, "max_num_regs": 65536, "sm_clock_rate": 1,
                "mem_clock_rate": 1, "mem_bus_width": 1}


def _target(backend: str, arch: Any, warp_size: int) -> Any:
    compiler = sys.modules.get("triton.backends.compiler")
    if compiler and hasattr(compiler, "GPUTarget"):
        return compiler.GPUTarget(backend, arch, warp_size)
    return SimpleNamespace(backend=backend, arch=arch, warp_size=warp_size)

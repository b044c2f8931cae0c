"""What host code of others is given where it runs beside sdc: configurations, a device.

Imported by the programs for sdc.compare of this folder. DEVICE=cpu: what they make on
"cuda" is made on the CPU. CONFIGS (3): of an autotuned kernel so many configurations are
launched, spread over its list, each once; there is no search.
"""

import contextlib
import importlib.machinery
import os
import sys
import types

import torch
from torch.overrides import TorchFunctionMode
from triton.runtime.autotuner import Autotuner

DEVICE = os.environ.get("DEVICE", "cuda")
SMALL = DEVICE == "cpu"
CONFIGS = int(os.environ.get("CONFIGS", "3"))


def pick(large, small):
    """On a GPU the first, elsewhere the second."""
    return small if SMALL else large


def module(name, **names):
    """A module in the place of one that is not needed."""
    made = types.ModuleType(name)
    made.__path__ = []
    made.__spec__ = importlib.machinery.ModuleSpec(name, None)
    vars(made).update(names)
    sys.modules[name] = made
    return made


def _few(self, *args, **kwargs):
    """Autotuner.run: some configurations, once each, and no search."""
    self.nargs = dict(zip(self.arg_names, args))
    configs = self.prune_configs(kwargs)
    result = None
    for c in configs[::max(1, len(configs) // CONFIGS)][:CONFIGS]:
        with_config = {**kwargs, **c.all_kwargs()}
        if c.pre_hook is not None:
            c.pre_hook({**self.nargs, **with_config})
        elif getattr(self, "reset_to_zero", None):
            for name in self.reset_to_zero:
                self.nargs[name].zero_()
        try:
            result = self.fn.run(*args, **with_config)
        except Exception as e:
            if type(e).__name__ not in ("OutOfResources", "CompileTimeAssertionFailure"):
                raise  # those two Triton's own search goes on behind
    self.best_config = configs[0]
    self.nargs = None
    return result


class _OnTheCPU(TorchFunctionMode):
    """Tensors for "cuda" are made on the CPU."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            return args[0]
        if func == torch.Tensor.is_cuda.__get__:
            return True
        if func in (torch.Tensor.to, torch.nn.Module.to):
            args = tuple(map(_place, args))
        if "device" in kwargs:
            number = type(kwargs["device"]) is int  # torch.cuda.current_device()
            kwargs["device"] = "cpu" if number else _place(kwargs["device"])
        kwargs.pop("pin_memory", None)
        return func(*args, **kwargs)


def _place(value):
    on_gpu = isinstance(value, (str, torch.device)) and str(value).startswith("cuda")
    return torch.device("cpu") if on_gpu else value


class _Properties:
    """Of an H200."""

    name, major, minor = "H200", 9, 0
    multi_processor_count, total_memory = 132, 1 << 36
    shared_memory_per_block_optin = 232448


class _Generator:
    """Of random numbers, where programs ask it for a seed and an offset."""

    @staticmethod
    def get_state():
        return torch.zeros(16, dtype=torch.uint8)

    @staticmethod
    def set_state(_):
        pass


class _Event:
    def __init__(self, *_, **__):
        pass

    def record(self, *_):
        pass

    def elapsed_time(self, _):
        return 1.0

    def synchronize(self):
        pass


def _cuda_is_cpu():
    cuda = torch.cuda
    for name, value in {
            "is_available": lambda: False,
            "device": lambda *_: contextlib.nullcontext(),
            "_DeviceGuard": lambda *_: contextlib.nullcontext(),
            "default_generators": [_Generator],
            "get_device_capability": lambda *_: (9, 0),
            "get_device_properties": lambda *_: _Properties,
            "get_device_name": lambda *_: "H200",
            "current_device": lambda *_: 0,
            "current_stream": lambda *_: types.SimpleNamespace(cuda_stream=0),
            "device_count": lambda: 1,
            "set_device": lambda *_: None,
            "synchronize": lambda *_: None,
            "empty_cache": lambda: None,
            "Event": _Event,
    }.items():
        setattr(cuda, name, value)
    torch.nn.Module.cuda = lambda self, *_: self
    _OnTheCPU().__enter__()


Autotuner.run = _few
if SMALL:
    _cuda_is_cpu()

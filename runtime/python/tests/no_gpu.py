"""Lets inductor generate code for an H100 on a machine without one.

pretend() answers what torch asks the driver while it compiles; tensors are then made
under FakeTensorMode. Nothing can be launched. Without Triton's package only (its own
driver is not answered for), and in a process that does nothing else.
"""

import importlib
import types

import torch


class Device:
    """The current stream, and what has one."""

    stream_id = device_index = cuda_stream = 0
    device_type = 1
    device = torch.device("cuda:0")


PROPERTIES = types.SimpleNamespace(
    name="H100", major=9, minor=0, multi_processor_count=132, total_memory=80 << 30,
    warp_size=32, regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048,
    max_threads_per_block=1024, shared_memory_per_block=49152, gcnArchName="",
    shared_memory_per_block_optin=232448, L2_cache_size=50 << 20, is_integrated=False)


def pretend():
    """From here on there is an H100, as far as compilers ask."""
    import torch._dynamo.device_interface as interface
    import torch._inductor.config as config
    import torch._inductor.fx_passes.fuse_attention as fuse_attention
    import torch._inductor.fx_passes.misc_patterns as misc_patterns
    import torch._inductor.fx_passes.pad_mm as pad_mm
    import torch._inductor.select_algorithm as select
    import torch._subclasses.fake_tensor as fake_tensor
    import torch.cuda.graphs as graphs
    from sdc import driver
    stream = Device()
    cuda, c = torch.cuda, torch._C
    for name, value in {"is_available": True, "device_count": 1, "current_device": 0,
                        "is_initialized": True, "set_device": None, "_lazy_init": None,
                        "synchronize": None, "get_device_properties": PROPERTIES,
                        "get_device_capability": (9, 0), "_exchange_device": 0,
                        "_maybe_exchange_device": 0, "current_stream": stream,
                        "get_rng_state": torch.empty(16, dtype=torch.uint8),
                        "set_rng_state": None, "is_current_stream_capturing": False,
                        "is_bf16_supported": True}.items():
        setattr(cuda, name, _answer(value))
    graphs.is_current_stream_capturing = cuda.is_current_stream_capturing
    for name, value in {"_cuda_getCurrentRawStream": 0, "_cuda_getCompiledVersion": 12080,
                        "_cuda_getDevice": 0, "_cuda_setDevice": None,
                        "_cuda_exchangeDevice": 0, "_cuda_maybeExchangeDevice": 0,
                        "_cuda_getDeviceCount": 1, "_cuda_getCurrentStream": (0, 0, 1),
                        "_accelerator_getDeviceIndex": 0,
                        "_accelerator_getStream": stream}.items():
        setattr(c, name, _answer(value))
    torch.accelerator.current_device_index = _answer(0)
    of = interface.CudaInterface
    for name, value in {"get_raw_stream": 0, "is_available": True, "device_count": 1,
                        "get_compute_capability": 90, "current_device": 0,
                        "get_device_properties": PROPERTIES, "exchange_device": 0,
                        "maybe_exchange_device": 0, "set_device": None,
                        "synchronize": None, "memory_allocated": 0}.items():
        setattr(of, name, staticmethod(_answer(value)))
    of.Worker.get_device_properties = staticmethod(_answer(PROPERTIES))
    target = driver._target("cuda", 90, 32)
    driver.Driver.get_current_target = lambda self: target
    torch.Tensor.new_empty = _new_empty
    flex = importlib.import_module("torch._higher_order_ops.flex_attention")
    flex._permute_strides = lambda out, strides: out  # inputs are contiguous
    # Patterns are found by tracing on the device.
    config.pattern_matcher = False
    for name in ("benchmark_template_fusion", "benchmark_epilogue_fusion"):
        if hasattr(config, name):  # torch 2.15 renamed it
            setattr(config, name, False)
            break
    fuse_attention._sfdp_init = misc_patterns._misc_patterns_init = _answer(None)
    pad_mm._pad_mm_init = _answer(None)
    if hasattr(fake_tensor, "init_gpu_context"):  # torch 2.11 allocates in it
        fake_tensor.init_gpu_context = _answer(None)
    select.PRINT_AUTOTUNE = False
    select.AlgorithmSelectorCache.make_benchmark_fn = classmethod(_compile_all)


def _answer(value):
    return lambda *args, **kwargs: value


def _new_empty(self, *size, dtype=None, device=None, **_):
    """Tensor.new_empty, which opens the device itself."""
    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    return torch.empty(size, dtype=dtype or self.dtype, device=device or self.device)


def _compile_all(cls, *args, **kwargs):
    """What measures the choices of the tuner: each is compiled, and the first one wins."""
    def measure(choices):
        for choice in choices:
            if hasattr(choice, "bmreq"):
                choice.bmreq.precompile()
        return {choice: float(i + 1) for i, choice in enumerate(choices)}
    return measure

"""The lines of tests/loops/list, and the sizes that tests/gpu/loops.py measures.

    for loop in loops(): loop.name, loop.configs, loop.signature
    data = loop.make(Maker("cuda"), "full")         arguments of a launch
    data.check(constexprs)                          what is wrong, and the largest error
"""
import os

import torch

import make_attention
import make_gemm
import make_operands
import make_sequences

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32,
         "fp8e4nv": torch.float8_e4m3fn, "i8": torch.int8, "u8": torch.uint8,
         "i32": torch.int32, "i64": torch.int64}


class Config:
    """One of the grid: the constexprs, warps and stages."""

    def __init__(self, line):
        warps, stages, text = line.split()
        self.warps, self.stages = int(warps), int(stages)
        self.constants = {k: int(v) for k, v in (c.split("=") for c in text.split(","))}

    def __str__(self):
        short = " ".join(f"{k.replace('BLOCK_', '')}={v}" for k, v in self.constants.items())
        return f"{short} w{self.warps} s{self.stages}"


class Loop:
    """A kernel of the list: file, kernel, signature {name: type}, configs."""

    def __init__(self, line):
        self.file, self.kernel, text = line.split()
        self.name = f"{self.file}.{self.kernel}"
        self.path = os.path.join(HERE, self.file + ".tk")
        self.signature = dict(p.split("=") for p in text.split(","))
        self.configs = []

    def make(self, maker, size):
        """The arguments at a size, "full" or "tiny"."""
        of, full, tiny = MAKERS[self.name]
        data = of(maker, **(full if size == "full" else tiny))
        data.place = maker.place
        names = list(self.signature)
        assert list(data.args) == names, (self.name, list(data.args), names)
        return data

    def values(self, data, config):
        """The arguments in order; functions among them are of the configuration."""
        values = [v(config.constants) if callable(v) else v for v in data.args.values()]
        for v in values:
            if isinstance(v, torch.Tensor):
                data.place(v)
        for name, value, kind in zip(self.signature, values, self.signature.values()):
            assert kind == kind_of(value), f"{self.name}: {name} is {kind_of(value)}"
        return values


def kind_of(value):
    """As the list spells it."""
    if isinstance(value, float):
        return "fp32"
    if isinstance(value, int):
        return "i32:16" if value % 16 == 0 else "i32"
    name = next(k for k, v in TYPES.items() if v == value.dtype)
    return f"*{name}:16" if value.data_ptr() % 16 == 0 else f"*{name}"


def loops():
    found = []
    with open(os.path.join(HERE, "list")) as f:
        for line in f:
            if line.startswith("  run "):
                continue  # for tests/loops/numbers
            if line.startswith(" "):
                found[-1].configs.append(Config(line))
            elif not line.startswith("#"):
                found.append(Loop(line))
    return found


# How its arguments are made, sizes that fill a GPU, and sizes for what simulates one.
MAKERS = {
    "gemm.bias_gelu": (make_gemm.bias_gelu, dict(M=4096, N=4096, K=4096),
                       dict(M=144, N=272, K=160)),
    "gemm.split_store": (make_gemm.split_store, dict(M=512, N=1024, K=16384, splits=16),
                         dict(M=144, N=144, K=256, splits=2)),
    "gemm.split_atomic": (make_gemm.split_atomic, dict(M=64, N=4096, K=8192),
                          dict(M=64, N=128, K=1024)),
    "gemm.persistent": (make_gemm.persistent, dict(M=8192, N=4096, K=2048),
                        dict(M=272, N=272, K=144)),
    "gemm.stream_k": (make_gemm.stream_k, dict(M=3072, N=3072, K=4096),
                      dict(M=256, N=256, K=4096)),
    "gemm.norm_gemm": (make_gemm.norm_gemm, dict(M=4096, N=4096, K=4096),
                       dict(M=144, N=256, K=128)),
    "gemm.batched_small": (make_gemm.batched_small, dict(B=2048, M=64, N=64, K=128),
                           dict(B=2, M=64, N=64, K=128)),
    "gemm_two.swiglu": (make_gemm.swiglu, dict(M=4096, N=4096, K=4096),
                        dict(M=144, N=256, K=128)),
    "gemm_two.lora": (make_gemm.lora, dict(M=4096, N=4096, K=4096),
                      dict(M=128, N=256, K=128)),
    "gemm_two.mlp_chain": (make_gemm.mlp_chain, dict(M=32768, H=2048),
                           dict(M=144, H=256)),
    "gemm_two.norm_chain": (make_gemm.norm_chain, dict(M=32768, heads=32),
                            dict(M=128, heads=16)),
    "gemm_quant.fp8_block": (make_operands.fp8_block, dict(M=4096, N=4096, K=4096),
                             dict(M=128, N=256, K=256)),
    "gemm_quant.int8_dequant": (make_operands.int8_dequant, dict(M=4096, N=4096, K=4096),
                                dict(M=144, N=272, K=256)),
    "gemm_quant.w4a16": (make_operands.w4a16, dict(M=512, N=8192, K=4096),
                         dict(M=80, N=256, K=256)),
    "gemm_grouped.grouped": (
        make_operands.grouped,
        dict(shapes=[(2048, 2048, 1024), (1024, 2048, 2048), (512, 4096, 4096),
                     (4096, 1024, 1024), (256, 4096, 2048), (128, 8192, 4096),
                     (2048, 1024, 4096), (1024, 1024, 8192), (384, 2048, 2048)]),
        dict(shapes=[(128, 256, 64), (256, 128, 128), (128, 128, 192)])),
    "gemm_grouped.moe": (make_operands.moe, dict(tokens=4096, experts=8, N=2048, K=2048),
                         dict(tokens=96, experts=2, N=128, K=128)),
    "gemm_grouped.segments": (
        make_operands.segments,
        dict(lengths=[1024, 300, 2000, 17, 1500, 996, 850, 1505], K=2048, N=2048),
        dict(lengths=[100, 0, 156], K=128, N=128)),
    "gemm_grouped.bsr": (make_operands.bsr, dict(rows=128, cols=128, N=4096, share=0.15),
                         dict(rows=16, cols=16, N=256, share=0.2)),
    "attention.kv_int8": (make_attention.kv_int8, dict(H=32, M=4096, N=4096),
                          dict(H=2, M=128, N=256)),
    "attention.bias_tile": (make_attention.bias_tile, dict(H=32, M=2048, N=2048),
                            dict(H=2, M=128, N=256)),
    "attention.two_terms": (make_attention.two_terms, dict(H=32, M=4096),
                            dict(H=2, M=256)),
    "attention.soft_cap": (make_attention.soft_cap, dict(H=32, M=4096), dict(H=2, M=256)),
    "attention.window": (make_attention.window, dict(H=64, M=8192, size=1024),
                         dict(H=2, M=272, size=144)),
    "attention.alibi": (make_attention.alibi, dict(H=32, M=4096, N=4096),
                        dict(H=4, M=256, N=256)),
    "attention.d96": (make_attention.d96, dict(H=32, M=4096), dict(H=2, M=256)),
    "attention.block_map": (make_attention.block_map, dict(H=32, M=4096),
                            dict(H=2, M=512)),
    "decode.paged": (make_attention.paged, dict(batch=64, heads=8, most=2048),
                     dict(batch=2, heads=2, most=256)),
    "decode.split_fp8": (make_attention.split_fp8, dict(heads=64, N=8192, splits=16),
                         dict(heads=2, N=4096, splits=16)),
    "recurrent.chunk_state": (make_sequences.chunk_state, dict(batch=8, L=4096, heads=32),
                              dict(batch=1, L=512, heads=16)),
    "recurrent.linear_fwd": (make_sequences.linear_fwd, dict(H=128, T=4096),
                             dict(H=2, T=256)),
    "recurrent.linear_bwd": (make_sequences.linear_bwd, dict(H=256, T=2048),
                             dict(H=2, T=256)),
    "recurrent.delta_fwd": (make_sequences.delta_fwd, dict(H=64, T=4096),
                            dict(H=2, T=256)),
    "rows.norm_fwd": (make_sequences.norm_fwd, dict(rows=4096, cols=12288),
                      dict(rows=4, cols=5008)),
    "rows.norm_bwd": (make_sequences.norm_bwd, dict(rows=16384, cols=4096),
                      dict(rows=4096, cols=272)),
    "rows.softmax_long": (make_sequences.softmax_long, dict(rows=2048, cols=50304),
                          dict(rows=4, cols=5008)),
    "rows.cross_entropy": (make_sequences.cross_entropy, dict(rows=1024, cols=128256),
                           dict(rows=4, cols=9008)),
    "rows.top1": (make_sequences.top1, dict(rows=4096, cols=16384),
                  dict(rows=16, cols=2064)),
    "rows.count": (make_sequences.count, dict(n=1 << 27, each=1 << 16),
                   dict(n=8208, each=4096)),
    "conv.conv2d": (make_sequences.conv2d, dict(batch=64, H=57, W=57),
                    dict(batch=16, H=5, W=5)),
    "conv.conv1d": (make_sequences.conv1d, dict(batch=8, T=4096, C=4096),
                    dict(batch=1, T=512, C=256)),
}

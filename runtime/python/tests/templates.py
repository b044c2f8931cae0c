"""Inductor's own templates by sdc: GEMM of all kinds, convolution, flex_attention.

    python templates.py [CASE ...]              max-autotune beside eager, on a GPU times
                                                beside Triton, too
    python templates.py --compile sm_90a [...]  without one: every choice of the tuner for
                                                a forward pass is compiled for it

A line a case. Inductor may use no other backend than Triton's templates. On the CPU it
has them for mm, linear, bmm and conv alone.
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile
import time

import torch

F = torch.nn.functional
FP8 = torch.float8_e4m3fn


def flex(device, keep, rows, columns):
    """flex_attention with a block mask and a score that depends on the place."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    with unset_fake_temporarily():
        mask = create_block_mask(keep, None, None, rows, columns, device="cpu")
    for name, x in list(vars(mask).items()):  # mask.to(device), of fake tensors too
        if isinstance(x, torch.Tensor):
            moved = torch.empty(x.shape, dtype=x.dtype, device=device)
            setattr(mask, name, moved.copy_(x) if type(moved) is torch.Tensor else moved)
    return lambda q, k, v: flex_attention(
        q, k, v, score_mod=lambda s, b, h, i, j: s + 0.01 * (j - i), block_mask=mask,
        enable_gqa=q.shape[1] != k.shape[1])


def everything(b, h, i, j):
    return i >= 0


def causal(b, h, i, j):
    return i >= j


def window(b, h, i, j):
    return (i >= j) & (i - j < 200)


def scaled(a, b, x, y):
    return torch._scaled_mm(a, b, x, y, out_dtype=torch.bfloat16)


def scaled_reference(a, b, x, y):
    return a.double() @ b.double() * x * y


def grouped(a, b, ends):
    return torch._grouped_mm(a, b, offs=ends)


def grouped_reference(a, b, ends):
    return torch.cat([rows.double() @ b[i].double() for i, rows in
                      enumerate(torch.tensor_split(a, ends[:-1].tolist()))])


def cases(device):
    """Name: function, inputs, whether gradients are asked for, the same in fp64 where
    that is another function."""
    def t(*shape, dtype=torch.float16):
        return torch.randn(*shape, device=device, dtype=torch.float32).to(dtype)

    def ints(*shape):
        return torch.randint(-9, 9, shape, device=device).to(torch.int8)

    bf16, fp32 = torch.bfloat16, torch.float32
    heads = (2, 4, 512, 64)
    made = {
        "mm": (lambda a, b: torch.relu(a @ b), [t(512, 768), t(768, 640)]),
        "mm_bf16_odd": (lambda a, b: a @ b,
                        [t(300, 200, dtype=bf16), t(200, 136, dtype=bf16)]),
        "mm_fp32": (lambda a, b: a @ b,
                    [t(256, 256, dtype=fp32), t(256, 256, dtype=fp32)]),
        "linear": (lambda x, w, b: F.gelu(F.linear(x, w, b)),
                   [t(8, 128, 256), t(512, 256), t(512)], True),
        "bmm": (lambda a, b: torch.bmm(a, b).relu(), [t(6, 128, 96), t(6, 96, 160)]),
        "conv": (lambda x, w: torch.relu(F.conv2d(x, w, padding=1)),
                 [t(4, 32, 28, 28), t(64, 32, 3, 3)]),
    }
    if device == "cuda":
        ends = torch.arange(128, 513, 128, device=device, dtype=torch.int32)
        fp8 = [t(512, 768, dtype=FP8), t(640, 768, dtype=FP8).t()]
        made |= {
            "int_mm": (torch._int_mm, [ints(256, 128), ints(128, 256)], False,
                       lambda a, b: a.double() @ b.double()),
            "scaled": (scaled, [*fp8, t(1, dtype=fp32), t(1, dtype=fp32)], False,
                       scaled_reference),
            "scaled_rows": (scaled, [*fp8, t(512, 1, dtype=fp32), t(1, 640, dtype=fp32)],
                            False, scaled_reference),
            "grouped": (grouped, [t(512, 256, dtype=bf16), t(4, 256, 128, dtype=bf16),
                                  ends], False, grouped_reference),
            "flex": (flex(device, everything, 512, 512), [t(*heads) for _ in "qkv"],
                     True),
            "flex_causal": (flex(device, causal, 512, 512), [t(*heads) for _ in "qkv"],
                            True),
            "flex_window": (flex(device, window, 512, 512), [t(*heads) for _ in "qkv"],
                            True),
            "flex_decode": (flex(device, everything, 1, 1024),
                            [t(2, 8, 1, 64), t(2, 2, 1024, 64), t(2, 2, 1024, 64)]),
        }
    return {name: (*case, *(False, None)[len(case) - 2:]) for name, case in made.items()}


def compiled(f, device):
    """With templates alone, and every one of them tried."""
    torch._dynamo.reset()
    return torch.compile(f, fullgraph=True, options={
        "max_autotune": True, "max_autotune_gemm_backends": "TRITON",
        "max_autotune_conv_backends": "TRITON",
        "triton.enable_persistent_tma_matmul": device == "cuda"})


def results(f, inputs, gradients):
    """What comes out, and the gradients of the inputs."""
    inputs = [x.detach().requires_grad_() if gradients else x for x in inputs]
    with torch.set_grad_enabled(gradients):  # as in forward_ms: it is compiled once
        y = f(*inputs)
    if gradients:
        (y.float().square().mean() * 1000).backward()
    return [y.detach(), *(x.grad for x in inputs if x.grad is not None)]


def spelled(src):
    """A kernel's signature and constants for the command: types, bindings."""
    at = {}
    for key, values in (getattr(src, "attrs", None) or {}).items():
        if ["tt.divisibility", 16] in [list(v) for v in values]:
            at[key[0]] = ":16"
    constants = {(src.fn.arg_names[k[0]] if isinstance(k, tuple) else k): v
                 for k, v in (src.constants or {}).items()}
    types, bind = [], []
    for i, name in enumerate(src.fn.arg_names):
        kind = src.signature[name]
        if name in constants and kind == "constexpr":
            bind.append(f"{name}={constants[name]!r}")
        else:
            types.append("1" if constants.get(name) == 1 else kind + at.get(i, ""))
    return types, bind


def compile_for(target, binary):
    """The message of the command; "" when the kernel compiles."""
    from sdc.source import Source
    source = Source()
    name = source.place(binary.src.fn)
    types, bind = spelled(binary.src)
    options = binary.options
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name + ".tk")
        with open(path, "w", encoding="utf-8") as f:
            f.write(source.text())
        command = [sys.executable, "-m", "sdc", "compile", path, "--kernel", name,
                   "--target", target, "--emit=asm", "-s", ",".join(types),
                   "-o", os.path.join(folder, "out"),
                   "--num-warps", str(options.get("num_warps", 4)),
                   "--num-stages", str(options.get("num_stages", 3))]
        for text in bind:
            command += ["-c", text]
        done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr.strip() or "failed" if done.returncode else ""


def compile_only(target, chosen):
    """All cases without a GPU."""
    sys.modules["triton"] = None
    import sdc
    sdc.install("cuda")
    from sdc import inductor
    from torch._subclasses.fake_tensor import FakeTensorMode

    from no_gpu import pretend
    pretend()
    made = []
    build = inductor.compile

    def kept(*args, **kwargs):
        made.append(build(*args, **kwargs))
        return made[-1]

    sys.modules["triton"].compile = sys.modules["triton.compiler"].compile = kept
    failed = 0
    with FakeTensorMode(allow_non_fake_inputs=True):
        for name, (f, inputs, *_) in cases("cuda").items():
            if chosen and name not in chosen:
                continue
            made.clear()
            try:
                results(compiled(f, "cuda"), inputs, False)  # autograd opens the device
            except RuntimeError as e:  # compiled, and now it would run
                if type(e) is RuntimeError and "no NVIDIA driver" not in str(e):
                    raise
            whys = collections.Counter()
            kernels = {(b.src.fn.src, str(b.src.constants), str(b.options)): b
                       for b in made}
            for b in kernels.values():
                why = compile_for(target, b)
                if why:
                    whys[why[:600]] += 1
            print(f"{name:12} {len(kernels)} kernels, refused {sum(whys.values())}",
                  flush=True)
            for why, n in whys.items():
                print(f"    {n} x {why}")
            failed += bool(whys) or not kernels
    return failed


def worst(got, wanted):
    """The largest difference beside the largest value."""
    return max(((g.double() - w.double()).abs().max() / w.double().abs().max()).item()
               for g, w in zip(got, wanted))


def run(device, chosen):
    """All cases beside eager; they may be as wrong as eager or Triton, doubled."""
    import sdc
    import torch._inductor.select_algorithm as select
    from sdc import inductor
    select.PRINT_AUTOTUNE = False
    build = inductor.compile
    failed = 0
    for name, (f, inputs, gradients, reference) in cases(device).items():
        if chosen and name not in chosen:
            continue
        more = torch.float32 if name.startswith("flex") else torch.float64
        exact = inputs if reference else [x.to(more) for x in inputs]
        wanted = results(reference or f, exact, gradients)
        about = ""
        allowed = worst(results(f, inputs, gradients), wanted)
        if device == "cuda":
            triton, begin = compiled(f, device), time.time()
            allowed = max(allowed, worst(results(triton, inputs, gradients), wanted))
            about = f"; tuned by Triton in {time.time() - begin:.0f} s, forward " \
                f"{forward_ms(triton, inputs, gradients):.3f} ms"
        made = []

        def kept(*args, made=made, **options):
            made.append(build(*args, **options))
            return made[-1]

        inductor.compile = kept
        sdc.install(device)
        try:
            ours, begin = compiled(f, device), time.time()
            error = worst(results(ours, inputs, gradients), wanted)
            templates = len({b.name for b in made if b.launched and "_tem_" in b.name})
            about += f"; by sdc in {time.time() - begin:.0f} s"
            if device == "cuda":
                about += f", {forward_ms(ours, inputs, gradients):.3f} ms"
            good = error <= 2 * allowed + 1e-6 and templates
            failed += not good
            print(f"{name:12} {'ok' if good else 'WRONG':5} worst {error:.1e} of "
                  f"{allowed:.1e}, templates {templates}{about}", flush=True)
        except Exception as e:
            failed += 1
            print(f"{name:12} FAILED {type(e).__name__}: {str(e)[:1500]}", flush=True)
        inductor.compile = build
        sdc.uninstall()
    return failed


def forward_ms(f, inputs, gradients):
    """Milliseconds on a GPU."""
    from triton.testing import do_bench
    inputs = [x.detach().requires_grad_() if gradients else x for x in inputs]
    with torch.set_grad_enabled(gradients):
        return do_bench(lambda: f(*inputs))


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--compile", metavar="TARGET")
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("cases", nargs="*")
    a = p.parse_args()
    torch.manual_seed(0)
    if a.compile:
        return compile_only(a.compile, a.cases) != 0
    return run(a.device, a.cases) != 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs every kernel of kernels_dsl through Triton itself and compares with float64.

This shows that the .tk files are Triton, and right, without any part of sdc. On a machine
without a GPU Triton's interpreter executes them on CPU tensors. Needs triton, torch and numpy,
prints SKIPPED without them, and is not one of the project's required tests.

    tests/oracle/run_triton.py [--device cpu|cuda] [name ...]
"""
import argparse
import importlib
import math
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("names", nargs="*", help="run only cases whose name contains one of these")
args = parser.parse_args()
if args.device == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
try:
    import numpy as np
    import torch
    import triton
except (ImportError, OSError) as e:
    print(f"SKIPPED: {e}")
    sys.exit(0)

import kernel_imports  # noqa: E402
kernel_imports.allow(os.path.join(ROOT, "kernels_dsl"))

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
# Triton's interpreter truncates to bf16; the compiler rounds to nearest.
ROUND = {F32: 2.0**-24, F16: 2.0**-11, BF16: 2.0**-7 if args.device == "cpu" else 2.0**-8}
TINY = {F32: 2.0**-149, F16: 2.0**-24, BF16: 2.0**-133}
# It also computes with the bits of bf16 as if they were integers: kernels that do not convert
# to fp32 first are left out there.
NATIVE = (F32, F16) if args.device == "cpu" else (F32, F16, BF16)
E = 2.0**-24
# Tensor cores cut both operands of an fp32 product to ten bits.
TF32 = 2.0**-9 if args.device == "cuda" else 0.0
rng = np.random.default_rng(7)
failures = []
count = 0


def kernels(name):
    return importlib.import_module(name)


def tensor(shape, dtype=F32, pad=0, scale=1.0):
    """A random tensor whose rows are `pad` elements apart, and its exact value in float64."""
    full = torch.from_numpy(rng.standard_normal((*shape[:-1], shape[-1] + pad)) * scale)
    t = full.to(dtype).to(args.device)[..., :shape[-1]]
    return t, value(t)


def poison(shape, dtype=F32, pad=0):
    full = torch.full((*shape[:-1], shape[-1] + pad), math.nan, dtype=dtype)
    return full.to(args.device)[..., :shape[-1]]


def value(t):
    return t.cpu().to(torch.float64).numpy()


def case(name):
    def wrap(fn):
        if not args.names or any(n in name for n in args.names):
            before = len(failures)
            fn()
            print(f"{'FAIL' if len(failures) > before else 'ok  '} {name}", flush=True)
        return fn
    return wrap


def check(what, got, want, bound):
    """|got - want| <= bound + one rounding to got's type; infinities must agree."""
    global count
    count += 1
    u = ROUND.get(got.dtype, 0.0)
    got64 = value(got)
    want = np.broadcast_to(np.asarray(want, np.float64), got64.shape)
    allowed = bound + u * np.abs(want) + TINY.get(got.dtype, 0.0)
    with np.errstate(invalid="ignore"):
        bad = ~((np.abs(got64 - want) <= allowed) | (got64 == want))
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        failures.append(what)
        print(f"     {what}: {bad.sum()} of {bad.size} wrong, at {at} {got64[at]} not "
              f"{want[at]} +- {np.broadcast_to(allowed, want.shape)[at]}")


def philox(seed, counter):
    """The four words of Philox-4x32-10 with the 64-bit key `seed` and counter (c, 0, 0, 0)."""
    c = [np.asarray(counter, np.uint64), *(np.zeros(np.shape(counter), np.uint64) for _ in "123")]
    k = [seed & 0xffffffff, seed >> 32 & 0xffffffff]
    low = np.uint64(0xffffffff)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [p1 >> np.uint64(32) ^ c[1] ^ np.uint64(k[0]), p1 & low,
             p0 >> np.uint64(32) ^ c[3] ^ np.uint64(k[1]), p0 & low]
        k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
    return [w.astype(np.uint32) for w in c]


def uniform(words):
    x = words.view(np.int32)
    return np.where(x < 0, -x - 1, x).astype(np.float32) * np.float32(4.6566127342e-10)


@case("vector_add")
def _():
    k = kernels("vector_add")
    for dtype in NATIVE:
        for n in 1, 31, 1000, 4099:
            (x, x64), (y, y64), out = tensor([n], dtype), tensor([n], dtype), poison([n], dtype)
            k.vector_add[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
            check(f"{dtype} n={n}", out, x64 + y64, 0)
    x = torch.arange(-50, 50, device=args.device)
    out = torch.empty_like(x)
    k.vector_add[(1,)](x, x, out, 100, BLOCK=128)
    check("int64", out, value(x) * 2, 0)


@case("add_mul_add")
def _():
    k = kernels("add_mul_add")
    for dtype in F32, F16, BF16:
        for n in 1, 513, 2000:
            (a, A), (b, B), (c, C), (d, D) = (tensor([n], dtype) for _ in "abcd")
            out = poison([n], dtype)
            k.add_mul_add[(triton.cdiv(n, 512),)](a, b, c, d, out, n, BLOCK=512)
            check(f"{dtype} n={n}", out, D + (A + B) * C,
                  3 * E * (abs(D) + (abs(A) + abs(B)) * abs(C)))


@case("dropout")
def _():
    k = kernels("dropout")
    for dtype in F32, F16, BF16:
        for n, p, seed in (1, 0.5, 3), (1000, 0.25, 123), (4099, 0.9, 2**40 + 17), (515, 0, 0):
            x, x64 = tensor([n], dtype)
            i = np.arange(n)
            words = philox(seed, i // 4)
            u = {"": uniform(philox(seed, i)[0]),
                 "4": uniform(np.choose(i % 4, words))}
            for variant in u:
                for way in "fwd", "bwd":
                    out = poison([n], dtype)
                    k.__dict__[f"dropout{variant}_{way}"][(triton.cdiv(n, 256),)](
                        x, out, n, p, seed, BLOCK=256)
                    keep = u[variant] > np.float32(p)
                    want = np.where(keep, x64 / (1 - float(np.float32(p))), 0)
                    check(f"dropout{variant}_{way} {dtype} n={n}", out, want, 6 * E * abs(want))


@case("dropout_normal")
def _():
    k = kernels("dropout_normal")
    for dtype in F32, F16:
        for n, t, seed in (1000, 1.0, 5), (333, 0.3, 77):
            x, x64 = tensor([n], dtype)
            u0, u1 = (uniform(w).astype(np.float64) for w in philox(seed, np.arange(n))[:2])
            z = np.sqrt(-2 * np.log(np.maximum(u0, 1e-7))) * np.cos(2 * math.pi * u1)
            kept = x64 / math.erf(float(np.float32(t)) / math.sqrt(2))
            for way in "fwd", "bwd":
                out = poison([n], dtype)
                k.__dict__["dropout_normal_" + way][(triton.cdiv(n, 128),)](
                    x, out, n, t, seed, BLOCK=128)
                near = np.abs(np.abs(z) - t) < 2.0**-20 * np.maximum(1, np.abs(z))
                want = np.where(np.abs(z) < t, kept, 0)
                want = np.where(near, value(out), want)
                check(f"{way} {dtype} n={n}", out, want, 8 * E * abs(want))


@case("softmax")
def _():
    k = kernels("softmax")
    for dtype in F32, F16, BF16:
        for rows, cols, grid in (1, 1, 1), (5, 129, 5), (7, 1000, 3), (3, 64, 2):
            x, x64 = tensor([rows, cols], dtype, pad=3, scale=3.0)
            e = np.exp(x64 - x64.max(1, keepdims=True))
            want = e / e.sum(1, keepdims=True)
            bound = want * (2 * E * (8 + 2 * np.ptp(x64)) + E * cols)
            for name, block in ("softmax", triton.next_power_of_2(cols)), ("softmax_online", 32):
                out = poison([rows, cols], dtype, pad=1)
                k.__dict__[name][(grid,)](x, out, x.stride(0), out.stride(0), rows, cols,
                                          BLOCK=block)
                check(f"{name} {dtype} {rows}x{cols}", out, want, bound)


@case("layernorm")
def _():
    k = kernels("layernorm")
    eps = 1e-5
    for dtype in F32, F16, BF16:
        for rows, cols, parts in (1, 2, 1), (5, 129, 2), (9, 1000, 4):
            (x, X), (dy, G) = tensor([rows, cols], dtype, 3), tensor([rows, cols], dtype, 1)
            (w, W), (b, B) = tensor([cols], dtype), tensor([cols], dtype)
            y, dx = poison([rows, cols], dtype, 2), poison([rows, cols], dtype, 5)
            mean, rstd = poison([rows]), poison([rows])
            block = triton.next_power_of_2(cols)
            k.layer_norm_fwd[(rows,)](x, w, b, y, mean, rstd, x.stride(0), y.stride(0), cols, eps,
                                      BLOCK=block)
            r = E * (cols + 8)
            mu = X.mean(1, keepdims=True)
            rs = 1 / np.sqrt(((X - mu)**2).mean(1, keepdims=True) + eps)
            hat = (X - mu) * rs
            d_mu = r * np.abs(X).mean(1, keepdims=True)
            d_hat = rs * d_mu + np.abs(hat) * (3 * r + 2 * rs * d_mu)
            check(f"mean {dtype} {rows}x{cols}", mean, mu[:, 0], d_mu[:, 0])
            check(f"rstd {dtype} {rows}x{cols}", rstd, rs[:, 0],
                  (rs * (3 * r + 2 * rs * d_mu))[:, 0])
            check(f"y {dtype} {rows}x{cols}", y, hat * W + B, np.abs(W) * d_hat + 2 * r)
            dw_part, db_part = poison([parts, cols]), poison([parts, cols])
            k.layer_norm_bwd[(parts,)](dy, x, w, mean, rstd, dx, dw_part, db_part, dy.stride(0),
                                       x.stride(0), dx.stride(0), rows, cols, BLOCK=block)
            g = G * W
            c1, c2 = (g * hat).mean(1, keepdims=True), g.mean(1, keepdims=True)
            size = np.abs(g) + np.abs(hat) * np.abs(g * hat).mean(1, keepdims=True)
            size = size + np.abs(g).mean(1, keepdims=True)
            slip = (np.abs(g) * (np.abs(hat) + 1)).mean(1, keepdims=True) * d_hat.max()
            check(f"dx {dtype} {rows}x{cols}", dx, rs * (g - hat * c1 - c2),
                  rs * (4 * r * size + 4 * slip * (1 + np.abs(hat))) + rs * 4 * d_hat.max() * size)
            dw, db = poison([cols], dtype), poison([cols], dtype)
            k.layer_norm_bwd_sum[(triton.cdiv(cols, 64),)](dw_part, db_part, dw, db, parts, cols,
                                                           BLOCK_P=4, BLOCK_C=64)
            q = E * (rows + 8)
            check(f"dw {dtype} {rows}x{cols}", dw, (G * hat).sum(0),
                  q * np.abs(G * hat).sum(0) + (np.abs(G) * d_hat).sum(0))
            check(f"db {dtype} {rows}x{cols}", db, G.sum(0), q * np.abs(G).sum(0))


@case("weighted_sum")
def _():
    k = kernels("weighted_sum")
    for dtype in F32, F16, BF16:
        for rows, cols in (1, 1), (37, 50), (64, 33):
            (x, X), (w, W), (dy, G) = (tensor(s, dtype, 3) for s in ([rows, cols], [cols], [rows]))
            y, dx = poison([rows], dtype), poison([rows, cols], dtype, 1)
            parts = triton.cdiv(rows, 16)
            k.weighted_sum_fwd[(parts,)](x, w, y, *x.stride(), 1, 1, rows, cols,
                                         BLOCK_R=16, BLOCK_C=32)
            check(f"y {dtype} {rows}x{cols}", y, X @ W, E * (cols + 1) * (np.abs(X) @ np.abs(W)))
            part, dw = poison([parts, cols]), poison([cols], dtype)
            k.weighted_sum_bwd[(parts,)](dy, x, w, dx, part, 1, *x.stride(), 1, *dx.stride(),
                                         rows, cols, BLOCK_R=16, BLOCK_C=32)
            check(f"dx {dtype} {rows}x{cols}", dx, np.outer(G, W), E * np.abs(np.outer(G, W)))
            k.weighted_sum_bwd_sum[(triton.cdiv(cols, 16),)](part, dw, parts, cols,
                                                             BLOCK_P=2, BLOCK_C=16)
            check(f"dw {dtype} {rows}x{cols}", dw, G @ X,
                  E * (rows + 1) * (np.abs(G) @ np.abs(X)))


ACTS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
}


@case("matmul")
def _():
    k = kernels("matmul")
    tiles = dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=16, GROUP_M=2)
    for dtype in NATIVE:
        for M, N, K, act in (1, 1, 1, "none"), (70, 45, 33, "relu"), (64, 64, 64, "gelu"), \
                (33, 100, 7, "silu"):
            (a, A), (bt, BT), (bias, BIAS) = (tensor(s, dtype) for s in ([M, K], [N, K], [N]))
            b, B = bt.T, BT.T
            has_bias = act != "none"
            lin = A @ B + (BIAS if has_bias else 0)
            size = np.abs(A) @ np.abs(B) + np.abs(BIAS)
            bound = 1.2 * (E * (K + 8) * size + (TF32 * size if dtype == F32 else 0))
            for name in "matmul", "matmul_block":
                c = poison([M, N], dtype, 3)
                grid = (triton.cdiv(M, 32) * triton.cdiv(N, 32),)
                k.__dict__[name][grid](a, b, c, bias, M, N, K, *a.stride(), *b.stride(),
                                       *c.stride(), HAS_BIAS=has_bias, ACT=act, **tiles)
                check(f"{name} {dtype} {M}x{N}x{K} {act}", c, ACTS[act](lin), bound)
    if args.device == "cuda":
        triton.set_allocator(lambda size, align, stream: torch.empty(
            size, dtype=torch.int8, device="cuda"))
    for dtype in F32, F16:
        (a, A), (b, B), c = tensor([70, 40], dtype), tensor([40, 48], dtype), poison([70, 48])
        k.matmul_desc[(3 * 2,)](a, b, c, a, 70, 48, 40, 40, 48, 48, **tiles)
        size = np.abs(A) @ np.abs(B)
        check(f"matmul_desc {dtype}", c, A @ B, (E * 48 + (dtype == F32) * TF32) * size)


@case("flash_attention")
def _():
    k = kernels("flash_attention")
    shapes = ((1, 1, 1, 1, 1, 16, False), (2, 4, 2, 70, 70, 32, True), (1, 2, 2, 33, 90, 64, True),
              (1, 2, 1, 140, 45, 16, True), (2, 2, 2, 50, 77, 64, False),
              (1, 1, 1, 20, 64, 128, True))
    for dtype in NATIVE:
        for B, H, HK, M, N, D, causal in shapes:
            # [B, M, H, D] in memory for q and o, [B, H, N, D] for k and v
            q, Q = tensor([B, M, H, D], dtype)
            q, Q = q.transpose(1, 2), Q.transpose(0, 2, 1, 3)
            (kk, K), (v, V) = tensor([B, HK, N, D], dtype, 8), tensor([B, HK, N, D], dtype)
            o = poison([B, M, H, D], dtype, 4).transpose(1, 2)
            lse = poison([B, H, M])
            scale = float(np.float32(1 / math.sqrt(D)))
            tiles = triton.cdiv(M, 32)
            if causal: # those of rows that see a key are enough
                tiles = min(tiles, triton.cdiv(N, 32) + 1)
            k.flash_attention_fwd[(tiles, B * H)](
                q, kk, v, o, lse, scale, *q.stride(), *kk.stride(), *v.stride(), *o.stride(),
                H, M, N, None, None, 0.0, 0, HEAD_DIM=D, BLOCK_M=32, BLOCK_N=16, CAUSAL=causal,
                GROUP=H // HK)
            K, V = (np.repeat(t, H // HK, axis=1) for t in (K, V))
            s = scale * Q @ K.transpose(0, 1, 3, 2)
            if causal:
                seen = np.arange(N)[None, :] <= np.arange(M)[:, None] + N - M
                s = np.where(seen, s, -np.inf)
            with np.errstate(divide="ignore", invalid="ignore"):
                top = s.max(-1, keepdims=True)
                top = np.where(np.isinf(top), 0, top)
                e = np.exp(s - top)
                total = e.sum(-1, keepdims=True)
                want_lse = (np.log(total) + top)[..., 0]
                p = e / np.where(total == 0, 1, total)
            mag = scale * np.abs(Q) @ np.abs(K).transpose(0, 1, 3, 2)
            r = E * ((D + 4) * mag.max() + 4 * np.abs(s[np.isfinite(s)]).max(initial=0) + 32)
            r += TF32 * mag.max() * (dtype == F32)
            u = TF32 if dtype == F32 else ROUND[dtype]
            what = f"{dtype} {B}x{H}x{M}x{N}x{D} causal={causal}"
            check("lse " + what, lse, want_lse,
                  r + E * (N + 4 + np.where(np.isinf(want_lse), 0, abs(want_lse))))
            check("o " + what, o, p @ V, (2 * r + E * (2 * N + 8) + u) * np.abs(V).max())


@case("sparsedrop")
def _():
    k, lists = kernels("sparsedrop"), kernels("sparsedrop_list")
    seed, first, p = 12345, 3, 0.4
    scale = 1 / (1 - p)
    for dtype in NATIVE:
        for M, N, K, mm, mk in (64, 64, 64, 32, 16), (100, 70, 90, 64, 32), (33, 20, 17, 32, 16):
            (x, X), (w, W), (dy, DY) = (tensor(s, dtype) for s in ([M, K], [K, N], [M, N]))
            rows, cols = -(-M // mm), -(-K // mk)
            live = (uniform(philox(seed, first + np.arange(rows * cols))[0]) > np.float32(p)
                    ).reshape(rows, cols)
            m = np.kron(live, np.ones((mm, mk)))[:M, :K]

            def bound(a, b, n):
                size = scale * (np.abs(a) @ np.abs(b))
                return (E * (n + 4) + TF32 * (dtype == F32)) * size

            def work_list():
                size = triton.next_power_of_2(max(rows, cols))
                order, words = (torch.zeros(2 * size, dtype=t, device=args.device)
                                for t in (torch.int32, torch.int64))
                units = torch.zeros(4 + 3 * rows * cols, dtype=torch.int32,
                                    device=args.device)
                lists.work_list[(2,)](order, units, words, rows, cols, seed, first, p, cols, 1,
                                  4, SIZE=size)
                return order, units, words, size

            def gradients(programs):
                strides = [s for t in (dy, x, w, dx, dw) for s in t.stride()]
                binds = dict(MASK_M=mm, MASK_K=mk, BLOCK_N=16)
                if programs:
                    order, units, words, size = work_list()
                    lists.gradients_listed[(programs,)](
                        dy, x, w, dx, dx, dx, dw, dw, units, order[size:], words[size:], M, N,
                        K, scale, *strides, STEP=16, **binds)
                    return
                tiles = triton.cdiv(M, 16) * cols * (mk // 16)
                tiles += triton.cdiv(K, 16) * triton.cdiv(N, 16)
                k.gradients_matmul[(tiles,)](
                    dy, x, w, dx, dw, M, N, K, scale, *strides, seed, first, p, 3, 1, 0,
                    BLOCK_M=16, BLOCK_K=16, STEP=16, ONE_WORD=True,
                    ROWS=triton.next_power_of_2(triton.cdiv(M, 16)),
                    SORTED=triton.next_power_of_2(triton.cdiv(K, 16)), **binds)

            def product(kernel, a, b, c, sizes, heights, counts, words, programs):
                (M, N, K), (height, width) = sizes, heights
                side = "MASK_K" if kernel == "dsd" else "MASK_N"
                binds = dict(BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, MASK_M=height,
                             **{side: width})
                tail = (M, N, K, scale, *a.stride(), *b.stride(), *c.stride(), 1, seed, first,
                        p, *counts)
                tiles_m = triton.cdiv(M, 16)
                if programs:
                    binds.update(BLOCK_M=height)
                    order, _, words, size = work_list()
                    at = size if counts[0] == 1 else 0
                    lists.dsd_listed[(programs,)](a, b, c, order[at:], words[at:], *tail[:10],
                                              **binds)
                else:
                    wave = (5,) if kernel == "dsd" else ()
                    getattr(k, kernel + "_matmul")[(tiles_m * triton.cdiv(N, 16),)](
                        a, b, c, words, *tail, *wave, 1, 0, **binds)

            for stored, programs in ((False, 0), (True, 0), (False, 3)):
                words = None, None
                if stored:
                    words = [torch.zeros(n, 1, dtype=torch.int64, device=args.device)
                             for n in (rows, cols)]
                    for t, (h, v, c) in enumerate(((rows, cols, (cols, 1)),
                                                   (cols, rows, (1, cols)))):
                        k.block_mask[(triton.cdiv(h, 4), 1)](words[t], h, v, 1, seed, first, p,
                                                            *c, BLOCK_R=4)
                        bits = (words[t].cpu().numpy().astype(np.uint64)
                                >> np.arange(v, dtype=np.uint64)) & np.uint64(1)
                        check("block_mask", torch.from_numpy(bits.astype(np.float32)),
                              (live.T if t else live).astype(np.float64), 0)
                what = f"{dtype} {M}x{N}x{K} stored={stored} programs={programs}"
                y, dx, dw = (poison(s, dtype) for s in ([M, N], [M, K], [K, N]))
                product("dsd", x, w, y, (M, N, K), (mm, mk), (cols, 1), words[0], programs)
                check("dsd y " + what, y, scale * (X * m) @ W, bound(X * m, W, K))
                def check_dx():
                    check("dx " + what, dx, scale * (DY @ W.T) * m, bound(DY, W.T, N) * m)

                def check_dw():
                    check("dw " + what, dw, scale * (X * m).T @ DY, bound((X * m).T, DY, M))
                if not programs:
                    product("sdd", dy, w.T, dx, (M, K, N), (mm, mk), (cols, 1), words[0], 0)
                    check_dx()
                product("dsd", x.T, dy, dw, (K, N, M), (mk, mm), (1, cols), words[1], programs)
                check_dw()
                if not stored:
                    dx, dw = (poison(s, dtype) for s in ([M, K], [K, N]))
                    gradients(programs)
                    check_dx()
                    check_dw()


@case("cross_entropy")
def _():
    k = kernels("cross_entropy")
    for dtype in F32, F16, BF16:
        for rows, cols in (5, 129), (3, 64):
            x, X = tensor([rows, cols], dtype, pad=3)
            t = rng.integers(0, cols, rows)
            live = np.arange(rows) != 1
            target = torch.from_numpy(np.where(live, t, -100)).to(args.device)
            z = X - X.max(1, keepdims=True)
            s = np.exp(z).sum(1)
            hit = np.arange(cols) == t[:, None]
            want = np.where(live, np.log(s) - z[np.arange(rows), t], 0)
            grad = (np.exp(z) / s[:, None] - hit) * live[:, None] / rows
            off = 2 * E * (8 + 2 * np.ptp(X, axis=1)) + E * cols
            for kernel, block in (k.cross_entropy, 256), (k.cross_entropy_online, 32):
                loss, dx = poison([rows]), poison([rows, cols], dtype, pad=1)
                kernel[(2,)](x, target, loss, dx, x.stride(0), dx.stride(0), rows, cols,
                             1 / rows, -100, BLOCK=block)
                check(f"loss {dtype} {rows}x{cols}", loss, want,
                      off + 2 * E * (2 * abs(X).max(1) + abs(want)))
                check(f"dx {dtype} {rows}x{cols}", dx, grad, (2 * off[:, None] + 3 * E) / rows)


@case("adamw")
def _():
    k = kernels("adamw")
    n, lr, b1, b2, eps, decay, f1, f2 = 1000, 1e-2, 0.9, 0.999, 1e-8, 0.1, 0.271, 0.002997
    for dtype in F32, F16, BF16:
        (w, W), (g, G), (m, M), (v, V) = (tensor([n], d) for d in (F32, dtype, F32, F32))
        v, V, copy = v.abs(), abs(V), poison([n], F16)
        k.adamw[(triton.cdiv(n, 128),)](w, g, m, v, copy, n, 0.25, lr, b1, b2, eps, decay, f1,
                                        f2, BLOCK=128)
        M1 = b1 * M + (1 - b1) * 0.25 * G
        V1 = b2 * V + (1 - b2) * (0.25 * G)**2
        slope = lr / f1 / (np.sqrt(V1 / f2) + eps)
        want = W - lr * decay * W - slope * M1
        # the scalars are rounded to fp32 on their way, beta2's 1 - beta2 with them
        m_off = 8 * E * (abs(b1 * M) + abs(G))
        check(f"m {dtype}", m, M1, m_off)
        check(f"v {dtype}", v, V1, 8 * E * (V + G * G))
        w_off = E * (4 * abs(W) + 60 * abs(slope * M1)) + slope * m_off
        w_off = w_off + abs(slope * M1) * 8 * E * (V + G * G) / V1
        check(f"w {dtype}", w, want, w_off)
        check(f"copy {dtype}", copy, want, w_off)


@case("activation")
def _():
    k = kernels("activation")
    erf = np.vectorize(math.erf)
    n = 1000
    for dtype in F32, F16, BF16:
        (x, X), (dy, DY), y, dx = tensor([n], dtype), tensor([n], dtype), poison([n], dtype), None
        s, bell = 1 / (1 + np.exp(-X)), np.exp(-X * X / 2) / math.sqrt(2 * math.pi)
        cdf = (1 + erf(X / math.sqrt(2))) / 2
        for act, out, slope in (("relu", np.maximum(X, 0), X > 0),
                                ("silu", X * s, s * (1 + X * (1 - s))),
                                ("gelu", X * cdf, cdf + X * bell)):
            dx = poison([n], dtype)
            k.act_fwd[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256, ACT=act)
            k.act_bwd[(triton.cdiv(n, 256),)](dy, x, dx, n, BLOCK=256, ACT=act)
            check(f"{act} {dtype}", y, out, 12 * E * abs(X))
            check(f"slope of {act} {dtype}", dx, DY * slope, E * abs(DY) * (20 + 4 * abs(X)))


@case("embedding")
def _():
    k = kernels("embedding")
    tokens, words, length, dim = 37, 5, 12, 33
    for dtype in F32, F16, BF16:
        ids = rng.integers(0, words, tokens)
        token = torch.from_numpy(ids.astype(np.int32)).to(args.device)
        (table, T), (place, P), (dy, DY) = (tensor([r, dim], dtype)
                                            for r in (words, length, tokens))
        out, dtable, dplace = (poison([r, dim], dtype) for r in (tokens, words, length))
        added = torch.zeros(words, dim, dtype=F32, device=args.device)
        k.embedding_fwd[(tokens,)](token, table, place, out, length, dim, BLOCK=64)
        k.embedding_bwd[(words, 2)](token, dy, dtable, tokens, dim, BLOCK_T=16, BLOCK_C=32)
        k.embedding_bwd_add[(tokens,)](token, dy, added, dim, BLOCK=64)
        k.embedding_place_bwd[(length,)](dy, dplace, tokens, length, dim, BLOCK=64)
        at = np.arange(tokens) % length
        want = T[ids] + P[at]
        check(f"out {dtype}", out, want, E * abs(want))
        for name, got, index, rows in (("dtable", dtable, ids, words), ("added", added, ids, words),
                                       ("dplace", dplace, at, length)):
            one = index[None, :] == np.arange(rows)[:, None]
            check(f"{name} {dtype}", got, one @ DY, E * (tokens + 1) * (one @ abs(DY)))


print(f"{count - len(failures)} of {count} comparisons hold, Triton {triton.__version__} on "
      f"{args.device}")
sys.exit(1 if failures else 0)

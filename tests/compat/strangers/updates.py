"""Steps of training, backward passes, and rare corners of the language, as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from made import DEV, SMALL, bf16, cd, f32, fp16, half, pick, ri, rn, run, ze
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

f64, i32, i64, u8 = torch.float64, torch.int32, torch.int64, torch.uint8


@triton.jit
def welford_combine(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    delta = mean_b - mean_a
    n = n_a + n_b
    r = tl.where(n > 0, n_b / n, 0.0)
    return mean_a + delta * r, m2_a + m2_b + delta * delta * n_a * r, n


@triton.jit
def group_norm_welford(x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, rstd_ptr, HW, CPG: tl.constexpr, C,
                       eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    groups = C // CPG
    img, g = pid // groups, pid % groups
    base = x_ptr + (img * C + g * CPG) * HW
    size = CPG * HW
    mean = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    cnt = tl.zeros((BLOCK,), tl.float32)
    for off in range(0, size, BLOCK):
        o = off + tl.arange(0, BLOCK)
        m = o < size
        v = tl.load(base + o, mask=m, other=0.0).to(tl.float32)
        new = cnt + m.to(tl.float32)
        delta = v - mean
        mean = tl.where(m, mean + delta / new, mean)
        m2 = tl.where(m, m2 + delta * (v - mean), m2)
        cnt = new
    mu, s2, n = tl.reduce((mean, m2, cnt), 0, welford_combine)
    rstd = 1 / tl.sqrt(s2 / n + eps)
    tl.store(mean_ptr + pid, mu)
    tl.store(rstd_ptr + pid, rstd)
    for off in range(0, size, BLOCK):
        o = off + tl.arange(0, BLOCK)
        m = o < size
        c = g * CPG + o // HW
        v = tl.load(base + o, mask=m, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + c, mask=m).to(tl.float32)
        b = tl.load(b_ptr + c, mask=m).to(tl.float32)
        tl.store(y_ptr + (img * C + g * CPG) * HW + o, (v - mu) * rstd * w + b, mask=m)


def case_group_norm():
    N, C, G, HW = pick((8, 256, 32, 1024), (2, 8, 2, 15))
    for B, w in pick([(1024, 4), (4096, 8)], [(32, 1)]):
        group_norm_welford[(N * G,)](rn(N, C, HW), rn(C), rn(C), ze(N, C, HW, dtype=bf16),
                                     ze(N * G), ze(N * G), HW, C // G, C, 1e-5, B, num_warps=w)


@triton.jit
def bn_backward(x, dy, gamma, mean, rstd, dx, dgamma, dbeta, N, C, HW, BN: tl.constexpr,
                BHW: tl.constexpr):
    # a channel a program: two sums, then the gradient
    c = tl.program_id(0)
    mu, rs, ga = tl.load(mean + c), tl.load(rstd + c), tl.load(gamma + c)
    s1 = tl.zeros((BN, BHW), tl.float32)
    s2 = tl.zeros((BN, BHW), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)[:, None]
        for p0 in range(0, HW, BHW):
            p = p0 + tl.arange(0, BHW)[None, :]
            m = (n < N) & (p < HW)
            xv = tl.load(x + (n * C + c) * HW + p, mask=m, other=0.0).to(tl.float32)
            g = tl.load(dy + (n * C + c) * HW + p, mask=m, other=0.0).to(tl.float32)
            s1 += g
            s2 += g * (xv - mu) * rs
    db = tl.sum(s1)
    dg = tl.sum(s2)
    tl.store(dbeta + c, db)
    tl.store(dgamma + c, dg)
    inv = 1.0 / (N * HW)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)[:, None]
        for p0 in range(0, HW, BHW):
            p = p0 + tl.arange(0, BHW)[None, :]
            m = (n < N) & (p < HW)
            xv = tl.load(x + (n * C + c) * HW + p, mask=m, other=0.0).to(tl.float32)
            g = tl.load(dy + (n * C + c) * HW + p, mask=m, other=0.0).to(tl.float32)
            xh = (xv - mu) * rs
            tl.store(dx + (n * C + c) * HW + p, ga * rs * (g - inv * (db + xh * dg)), mask=m)


def case_bn_backward():
    N, C, HW = pick((32, 256, 784), (3, 4, 20))
    for BN, BHW, w in pick([(1, 1024, 4), (4, 256, 8)], [(2, 16, 1)]):
        bn_backward[(C,)](rn(N, C, HW), rn(N, C, HW), rn(C, dtype=f32), rn(C, dtype=f32),
                          rn(C, dtype=f32).abs(), ze(N, C, HW, dtype=bf16), ze(C), ze(C), N, C,
                          HW, BN, BHW, num_warps=w)


@triton.jit
def muon_poly(X, A, out, M, K, a, b, c, stride, BM: tl.constexpr, BK: tl.constexpr,
              BJ: tl.constexpr):
    # (a I + b A + c A A) X: A A is never stored, a row block of it is made on the way
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    col = tl.program_id(1) * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BK), tl.float32)
    for j0 in range(0, M, BJ):
        j = j0 + tl.arange(0, BJ)
        aij = tl.load(A + i[:, None] * M + j[None, :], mask=(i < M)[:, None] & (j < M)[None, :],
                      other=0.0)
        x = tl.load(X + j[:, None] * stride + col[None, :],
                    mask=(j < M)[:, None] & (col < K)[None, :], other=0.0)
        acc = tl.dot(aij, x, acc)
    mine = tl.load(X + i[:, None] * stride + col[None, :],
                   mask=(i < M)[:, None] & (col < K)[None, :], other=0.0).to(tl.float32)
    tl.store(out + i[:, None] * stride + col[None, :],
             (a * mine + b * acc).to(out.dtype.element_ty),
             mask=(i < M)[:, None] & (col < K)[None, :])


def case_muon_poly():
    M, K = pick((1024, 4096), (40, 50))
    for BM, BK, BJ, w in pick([(128, 128, 64, 8), (64, 256, 32, 8)], [(16, 32, 16, 2)]):
        muon_poly[(cd(M, BM), cd(K, BK))](rn(M, K, dtype=half, scale=0.05),
                                          rn(M, M, dtype=half, scale=0.05),
                                          ze(M, K, dtype=half), M, K, 3.4445, -4.775, 2.0315, K,
                                          BM, BK, BJ, num_warps=w, num_stages=3)


@triton.jit
def foreach_lion(weights, grads, moms, sizes, starts, lr, beta1, beta2, wd, B: tl.constexpr,
                 T: tl.constexpr):
    # tensors of one list: their addresses are numbers, which block is whose a search
    pid = tl.program_id(0)
    first = tl.load(starts + tl.arange(0, T))
    which = tl.sum((first <= pid).to(tl.int32), 0) - 1
    p = tl.load(weights + which).to(tl.pointer_type(tl.bfloat16))
    g = tl.load(grads + which).to(tl.pointer_type(tl.bfloat16))
    m = tl.load(moms + which).to(tl.pointer_type(tl.float32))
    n = tl.load(sizes + which)
    o = (pid - tl.load(starts + which)) * B + tl.arange(0, B)
    ok = o < n
    x = tl.load(p + o, mask=ok).to(tl.float32)
    gr = tl.load(g + o, mask=ok).to(tl.float32)
    mo = tl.load(m + o, mask=ok)
    u = beta1 * mo + (1 - beta1) * gr
    sign = tl.where(u > 0, 1.0, tl.where(u < 0, -1.0, 0.0))
    x = x * (1 - lr * wd) - lr * sign
    tl.store(p + o, x.to(tl.bfloat16), mask=ok)
    tl.store(m + o, beta2 * mo + (1 - beta2) * gr, mask=ok)


def case_foreach_lion():
    sizes = pick([1 << 20, 3000, 70001, 1 << 22], [40, 7, 100, 33])
    p, g = [rn(n) for n in sizes], [rn(n) for n in sizes]
    m = [rn(n, dtype=f32) for n in sizes]
    at = [torch.tensor([x.data_ptr() for x in xs], device=DEV) for xs in (p, g, m)]
    for B, w in pick([(1024, 4), (4096, 8)], [(32, 1)]):
        blocks = [cd(n, B) for n in sizes]
        starts = torch.tensor([0, *blocks[:-1]], device=DEV).cumsum(0).int()
        foreach_lion[(sum(blocks),)](*at, torch.tensor(sizes, device=DEV).int(), starts, 1e-3, 0.9,
                                     0.99, 0.1, B, len(sizes), num_warps=w)


@triton.jit
def norm_first(g, parts, n, B: tl.constexpr, ITERS: tl.constexpr):
    pid = tl.program_id(0)
    acc = tl.zeros([B], tl.float32)
    start = pid * B * ITERS
    for k in range(ITERS):
        o = start + k * B + tl.arange(0, B)
        x = tl.load(g + o, mask=o < n, other=0.0).to(tl.float32)
        acc += x * x
    tl.store(parts + pid, tl.sum(acc, axis=0))


@triton.jit
def clip_second(g, parts, n, nparts, max_norm, total_out, B: tl.constexpr, P: tl.constexpr):
    pid = tl.program_id(0)
    s = tl.sum(tl.load(parts + tl.arange(0, P), mask=tl.arange(0, P) < nparts, other=0.0))
    total = tl.sqrt(s)
    if pid == 0:
        tl.store(total_out, total)
    if total > max_norm:
        coef = max_norm / (total + 1e-6)
        o = pid * B + tl.arange(0, B)
        x = tl.load(g + o, mask=o < n)
        tl.store(g + o, (x * coef).to(g.dtype.element_ty), mask=o < n)


def case_clip_two_level():
    n = pick(1 << 24, 1000)
    for B, it, w in pick([(1024, 16, 4), (4096, 8, 8)], [(32, 4, 1)]):
        nparts = cd(n, B * it)
        parts = ze(nparts)
        g = rn(n)
        norm_first[(nparts,)](g, parts, n, B, it, num_warps=w)
        clip_second[(cd(n, B),)](g, parts, n, nparts, 1.0, ze(1), B,
                                 triton.next_power_of_2(nparts), num_warps=w)


@triton.jit
def take_larger(a, ia, b, ib):
    keep = (a > b) | ((a == b) & (ia < ib))
    return tl.where(keep, a, b), tl.where(keep, ia, ib)


@triton.jit
def cummax_bwd(x, dy, dx, n, B: tl.constexpr, R: tl.constexpr):
    # sums of runs of one maximum go to its place: a segmented scan from the right
    r = tl.program_id(0) * R + tl.arange(0, R)
    i = tl.arange(0, B)
    at = r[:, None] * n + i[None, :]
    m = (i < n)[None, :]
    v = tl.load(x + at, mask=m, other=-float("inf"))
    g = tl.load(dy + at, mask=m, other=0.0)
    idx = tl.broadcast_to(i[None, :], (R, B))
    _, where = tl.associative_scan((v, idx), 1, take_larger)
    nxt = tl.gather(where, tl.broadcast_to(tl.minimum(i + 1, B - 1)[None, :], (R, B)), 1)
    last = (where != nxt) | (i == B - 1)[None, :]
    s, _ = tl.associative_scan((g, last.to(tl.int32)), 1, seg_add, reverse=True)
    out = tl.where(where == idx, s, 0.0)
    tl.store(dx + at, out, mask=m)


@triton.jit
def seg_add(a, fa, b, fb):
    return tl.where(fb != 0, b, a + b), fa | fb


def case_cummax_bwd():
    R, n, B = pick((8192, 500, 512), (4, 30, 32))
    for BR, w in pick([(1, 1), (4, 4)], [(2, 1)]):
        cummax_bwd[(R // BR,)](rn(R, n, dtype=f32), rn(R, n, dtype=f32), ze(R, n), n, B, BR,
                               num_warps=w)


@triton.jit
def cumprod_bwd(x, y, dy, dx, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < n
    g = tl.load(dy + row * n + i, mask=m, other=0.0) * tl.load(y + row * n + i, mask=m, other=0.0)
    tail = tl.cumsum(g, 0, reverse=True)
    tl.store(dx + row * n + i, tail / tl.load(x + row * n + i, mask=m, other=1.0), mask=m)
    p = tl.cumprod(tl.load(x + row * n + i, mask=m, other=1.0), 0, reverse=True)
    tl.store(y + row * n + i, p, mask=m)


def case_cumprod_bwd():
    R, n, B = pick((16384, 1000, 1024), (4, 30, 32))
    x = 1 + 0.01 * rn(R, n, dtype=f32)
    for w in pick((4, 1), (1,)):
        cumprod_bwd[(R,)](x, torch.cumprod(x, 1), rn(R, n, dtype=f32), ze(R, n), n, B, num_warps=w)


@triton.jit
def _schedule(t, warm: tl.constexpr, total: tl.constexpr):
    # for one element: arms that differ between elements
    if t < warm:
        return t / warm
    p = (t - warm) / (total - warm)
    if p > 1.0:
        return t * 0.0
    return 0.5 * (1 + tl.cos(3.14159265 * p))


@triton.jit
def _steps_to_half(x):
    k = 0
    while x > 0.5:
        x = x * 0.75
        k += 1
    return k


@triton.jit
def mapped(x, y, k, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(y + i, tl.map_elementwise(_scheduled, v), mask=i < n)
    tl.store(k + i, tl.map_elementwise(_steps_to_half, v), mask=i < n)


@triton.jit
def _scheduled(t):
    return _schedule(t, 10.0, 100.0)


def case_mapped():
    if SMALL and not hasattr(tl, "map_elementwise"):
        return
    n = pick(1 << 22, 200)
    x = torch.rand(n, device=DEV) * 120
    for B, w in pick([(512, 4), (1024, 4)], [(32, 1)]):
        mapped[(cd(n, B),)](x, ze(n), ze(n, dtype=i32), n, B, num_warps=w)


class Layer(NamedTuple):
    weight: torch.Tensor
    bias: torch.Tensor
    scale: float


@triton.jit
def apply_act(x, ACT: tl.constexpr):
    if ACT is None:
        return x
    else:
        return ACT(x)


@triton.jit
def silu_(x):
    return x * tl.sigmoid(x)


@triton.jit
def squared_relu(x):
    x = tl.maximum(x, 0.0)
    return x * x


@triton.jit
def tuple_mlp(x, layers, y, M, D: tl.constexpr, BM: tl.constexpr, ACT: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    h = tl.load(x + m[:, None] * D + d[None, :], mask=(m < M)[:, None], other=0.0)
    for j in tl.static_range(len(layers)):
        w = tl.load(layers[j].weight + d[:, None] * D + d[None, :])
        b = tl.load(layers[j].bias + d)
        z = tl.dot(h, w) * layers[j].scale + b[None, :]
        h = apply_act(z, ACT).to(h.dtype)
    tl.store(y + m[:, None] * D + d[None, :], h, mask=(m < M)[:, None])


def case_tuple_mlp():
    M, D = pick((16384, 64), (20, 16))
    layers = tuple(Layer(rn(D, D, dtype=half, scale=0.1), rn(D, dtype=f32), 1.5) for _ in range(3))
    for BM, w in pick([(64, 4), (128, 4)], [(16, 1)]):
        for act in (None, silu_, squared_relu):
            tuple_mlp[(cd(M, BM),)](rn(M, D, dtype=half), layers, ze(M, D, dtype=half), M, D, BM,
                                    act, num_warps=w)


def alloc(size, align, stream):
    return torch.empty(size, dtype=torch.int8, device=DEV)


def case_desc_tiles():
    triton.set_allocator(alloc)
    M, N, K = pick((2048, 2048, 1024), (40, 48, 64))
    for BM, BN, BK, w in pick([(128, 128, 64, 8), (64, 128, 64, 4)], [(16, 16, 32, 2)]):
        a, b = rn(M, K, dtype=half), rn(N, K, dtype=half)
        c = ze(M, N, dtype=half)
        desc_epilogue[(cd(M, BM), cd(N, BN))](
            TensorDescriptor.from_tensor(a, [BM, BK]), TensorDescriptor.from_tensor(b, [BN, BK]),
            c, rn(N, dtype=f32), M, N, K, BM, BN, BK, num_warps=w)


@triton.jit
def desc_epilogue(a_desc, b_desc, c_ptr, bias, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                  BK: tl.constexpr):
    tl.assume(K > 0)
    tl.static_assert(BN % 2 == 0, "halves of the tile")
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1],
                                       block_shape=[BM, BN // 2])
    om, on = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=False):
        acc = tl.dot(a_desc.load([om, k]), b_desc.load([on, k]).T, acc)
    n = on + tl.arange(0, BN)
    acc += tl.load(bias + n, mask=n < N, other=0.0)[None, :]
    lo, hi = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
    c_desc.store([om, on], lo.to(c_ptr.dtype.element_ty))
    c_desc.store([om, on + BN // 2], hi.to(c_ptr.dtype.element_ty))


@triton.jit
def backwards(x, y, n, stride, B: tl.constexpr):
    # from the last element to the first, a row of another step each
    row = tl.program_id(1)
    i = tl.program_id(0) * B + tl.arange(0, B)
    p = x + row * n + (n - 1) * 1
    v = tl.load(p - i, mask=i < n, other=0.0)
    w = tl.flip(tl.load(x + row * n + i, mask=i < n, other=0.0), 0)
    tl.store(y + (n - 1 - i) * stride + row, v + w, mask=i < n)


def case_backwards():
    R, n = pick((512, 8192), (3, 64))
    for B, w in pick([(1024, 4), (256, 4)], [(16, 1)]):
        backwards[(cd(n, B), R)](rn(R, n, dtype=f32), ze(n, R), n, R, B, num_warps=w)


@triton.jit
def rope_bwd_pairs(dq, cos, sin, out, S, H, row_stride, D: tl.constexpr, BH: tl.constexpr):
    # gradients of interleaved pairs: the inverse rotation, by permute, join and split
    s = tl.program_id(0)
    h = tl.program_id(1) * BH + tl.arange(0, BH)
    d = tl.arange(0, D)
    f = tl.arange(0, D // 2)
    ok = (h < H)[:, None]
    c = tl.load(cos + s * (D // 2) + f)[None, :]
    sn = -tl.load(sin + s * (D // 2) + f)[None, :]
    g = tl.load(dq + s * row_stride + h[:, None] * D + d[None, :], mask=ok, other=0.0)
    a, b = g.to(tl.float32).reshape(BH, D // 2, 2).split()
    r = tl.join(a * c - b * sn, a * sn + b * c).reshape((BH, D))
    tl.store(out + s * row_stride + h[:, None] * D + d[None, :], r.to(out.dtype.element_ty),
             mask=ok)


def case_rope_bwd():
    S, H, D = pick((8192, 32, 128), (5, 3, 16))
    for BH, w in pick([(32, 4), (8, 4), (4, 1)], [(4, 1)]):
        rope_bwd_pairs[(S, cd(H, BH))](rn(S, H, D), rn(S, D // 2, dtype=f32),
                                       rn(S, D // 2, dtype=f32), ze(S, H, D, dtype=bf16), S, H,
                                       H * D, D, BH, num_warps=w)


@triton.jit
def ema_foreach(new, old, decay, step, n, B: tl.constexpr, EVEN: tl.constexpr):
    pid = tl.program_id(0)
    tl.device_assert(decay < 1.0, "decay")
    i = tl.max_contiguous(tl.multiple_of(pid * B + tl.arange(0, B), B), B)
    d = tl.minimum(decay, (1.0 + step) / (10.0 + step))
    if EVEN:
        a = tl.load(new + i, eviction_policy="evict_first")
        b = tl.load(old + i)
        tl.store(old + i, b + (a.to(tl.float32) - b) * (1 - d), cache_modifier=".cs")
    else:
        a = tl.load(new + i, mask=i < n, eviction_policy="evict_first")
        b = tl.load(old + i, mask=i < n)
        tl.store(old + i, b + (a.to(tl.float32) - b) * (1 - d), mask=i < n, cache_modifier=".wt")


def case_ema_foreach():
    for n in pick((1 << 24, (1 << 22) + 3), (128, 100)):
        for B, w in pick([(1024, 4), (2048, 8)], [(32, 1)]):
            ema_foreach[(cd(n, B),)](rn(n), rn(n, dtype=f32), 0.999, 50, n, B, n % B == 0,
                                     num_warps=w)


@triton.jit
def weight_norm_bwd(v, g, dw, dv, dg, K, BK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    nn = 0.0
    dot = 0.0
    for k in range(0, K, BK):
        o = k + tl.arange(0, BK)
        a = tl.load(v + row * K + o, mask=o < K, other=0.0)
        b = tl.load(dw + row * K + o, mask=o < K, other=0.0)
        nn += tl.sum(a * a)
        dot += tl.sum(a * b)
    inv = tl.rsqrt(nn)
    gg = tl.load(g + row)
    tl.store(dg + row, dot * inv)
    for k in range(tl.cdiv(K, BK) - 1, -1, -1):
        o = k * BK + tl.arange(0, BK)
        a = tl.load(v + row * K + o, mask=o < K, other=0.0)
        b = tl.load(dw + row * K + o, mask=o < K, other=0.0)
        tl.store(dv + row * K + o, gg * inv * (b - a * (dot * inv * inv)), mask=o < K)


def case_weight_norm_bwd():
    R, K = pick((4096, 5000), (4, 70))
    for BK, w in pick([(1024, 4), (8192, 8), (2048, 4)], [(32, 1)]):
        weight_norm_bwd[(R,)](rn(R, K, dtype=f32), rn(R, dtype=f32), rn(R, K, dtype=f32), ze(R, K),
                              ze(R), K, BK, num_warps=w)


@triton.jit
def smooth_xent_grad(logits, target, loss, V, stride, smooth, ignore, B: tl.constexpr):
    # in place; a row that is ignored gets zeros
    row = tl.program_id(0).to(tl.int64)
    logits += row * stride
    y = tl.load(target + row)
    if y == ignore:
        for k in range(0, V, B):
            o = k + tl.arange(0, B)
            tl.store(logits + o, 0.0, mask=o < V)
        tl.store(loss + row, 0.0)
        return
    m, d = float("-inf"), 0.0
    total = 0.0
    for k in range(0, V, B):
        o = k + tl.arange(0, B)
        x = tl.load(logits + o, mask=o < V, other=float("-inf")).cast(tl.float32)
        top = tl.max(x)
        total += tl.sum(tl.where(o < V, x, 0.0))
        mn = tl.maximum(m, top)
        d = d * tl.exp(m - mn) + tl.sum(tl.exp(x - mn))
        m = mn
    lse = m + tl.log(d)
    ly = tl.load(logits + y).cast(tl.float32)
    tl.store(loss + row, (1 - smooth) * (lse - ly) + smooth * (lse - total / V))
    tl.debug_barrier()
    for k in range(0, V, B):
        o = k + tl.arange(0, B)
        x = tl.load(logits + o, mask=o < V, other=float("-inf")).cast(tl.float32)
        p = tl.exp(x - lse) - smooth / V
        p = tl.where(o == y, p - (1 - smooth), p)
        tl.store(logits + o, p, mask=o < V)


def case_smooth_xent():
    R, V = pick((4096, 32000), (4, 100))
    y = ri(0, V, R)
    y[1] = -100
    for B, w in pick([(8192, 8), (32768, 16), (2048, 4)], [(32, 1)]):
        smooth_xent_grad[(R,)](rn(R, V, dtype=half), y, ze(R), V, V, 0.1, -100, B, num_warps=w)


@triton.jit
def lamb_trust(p, u, pn, un, n, lr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    ok = i < n
    a, b = tl.sqrt(tl.load(pn)), tl.sqrt(tl.load(un))
    trust = a / b if (a > 0) & (b > 0) else 1.0
    x = tl.load(p + i, mask=ok)
    x -= lr * trust * tl.load(u + i, mask=ok)
    y = libdevice.fmod(x, 3.0) + libdevice.copysign(libdevice.rint(x), x)
    tl.store(p + i, tl.where(tl.abs(x) < 100, x, y), mask=ok)


def case_lamb_trust():
    n = pick(1 << 24, 100)
    for B, w in pick([(1024, 4), (2048, 4)], [(32, 1)]):
        lamb_trust[(cd(n, B),)](rn(n, dtype=f32), rn(n, dtype=f32), rn(1, dtype=f32).abs(),
                                rn(1, dtype=f32).abs(), n, 1e-3, B, num_warps=w)


@triton.jit
def halves_glued(x, y, out, n, B: tl.constexpr):
    # two tiles side by side, their upper parts exchanged
    i = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=0)
    b = tl.load(y + i, mask=i < n, other=0)
    both = tl.cat(a, b, can_reorder=True)
    tl.store(out + tl.program_id(0), tl.sum(both) + tl.max(both) * 3 + tl.min(both))
    odd = tl.interleave(a, b)
    j = tl.program_id(0) * 2 * B + tl.arange(0, 2 * B)
    tl.store(out + tl.num_programs(0) + j, odd, mask=j < 2 * n)


def case_halves_glued():
    n = pick(1 << 22, 100)
    for B, w in pick([(1024, 4), (256, 2)], [(32, 1)]):
        halves_glued[(cd(n, B),)](ri(0, 100, n), ri(0, 100, n), ze(cd(n, B) + 2 * n, dtype=i32),
                                  n, B, num_warps=w)


if __name__ == "__main__":
    run(globals())

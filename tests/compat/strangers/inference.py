"""Serving models as strangers write it: caches, sampling, experts, quantized activations.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, cd, f32, half, pick, ri, rn, run, ze

i32, i64, i8, u8 = torch.int32, torch.int64, torch.int8, torch.uint8


@triton.jit
def softcap(s, cap):
    e = tl.exp(2 * s / cap)
    return cap * (1 - 2 / (e + 1))


@triton.jit
def unified_attn(q, kc, vc, table, lens, starts, sinks, slopes, o, scale, cap, MAXB,
                 HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr,
                 BQ: tl.constexpr, WINDOW: tl.constexpr, CAP: tl.constexpr, SINK: tl.constexpr,
                 ALIBI: tl.constexpr):
    G: tl.constexpr = HQ // HK
    BM: tl.constexpr = BQ * G
    seq, hk, blk = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first = tl.load(starts + seq)
    nq = tl.load(starts + seq + 1) - first
    if blk * BQ >= nq:
        return
    length = tl.load(lens + seq)
    context = length - nq
    rm, rd, rp = tl.arange(0, BM), tl.arange(0, D), tl.arange(0, PAGE)
    pos, head = blk * BQ + rm // G, hk * G + rm % G
    mq = pos < nq
    qv = tl.load(q + ((first + pos) * HQ + head)[:, None] * D + rd[None, :], mask=mq[:, None],
                 other=0.0)
    if SINK:
        m = tl.load(sinks + head).to(tl.float32)
        l = tl.full([BM], 1.0, tl.float32)
    else:
        m = tl.full([BM], float("-inf"), tl.float32)
        l = tl.zeros([BM], tl.float32)
    slope = tl.load(slopes + head) if ALIBI else tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    last = tl.minimum(context + (blk + 1) * BQ, length)
    low = 0
    if WINDOW > 0:
        low = tl.maximum(context + blk * BQ - WINDOW + 1, 0) // PAGE
    for b in range(low, tl.cdiv(last, PAGE)):
        page = tl.load(table + seq * MAXB + b).to(tl.int64)
        at = ((page * PAGE + rp) * HK + hk) * D
        kt = tl.load(kc + at[None, :] + rd[:, None])
        v = tl.load(vc + at[:, None] + rd[None, :])
        key = b * PAGE + rp
        s = tl.dot(qv, kt.to(qv.dtype)) * scale
        if CAP:
            s = softcap(s, cap)
        seen = (key[None, :] <= (context + pos)[:, None]) & (key < length)[None, :]
        if WINDOW > 0:
            seen = seen & ((context + pos)[:, None] - key[None, :] < WINDOW)
        if ALIBI:
            s += slope[:, None] * (key[None, :] - (context + pos)[:, None])
        s = tl.where(seen & mq[:, None], s, float("-inf"))
        mm = tl.maximum(m, tl.max(s, 1))
        mm = tl.where(mm > float("-inf"), mm, 0.0)
        p = tl.exp(s - mm[:, None])
        a = tl.exp(m - mm)
        l = l * a + tl.sum(p, 1)
        acc = acc * a[:, None]
        m = mm
        acc += tl.dot(p.to(qv.dtype), v.to(qv.dtype))
    acc = acc / l[:, None]
    tl.store(o + ((first + pos) * HQ + head)[:, None] * D + rd[None, :], acc, mask=mq[:, None])


def case_unified_attn():
    S, HQ, HK, D, PAGE, MAXB = pick((16, 32, 8, 128, 16, 128), (3, 4, 2, 32, 16, 6))
    most = MAXB * PAGE
    nq = torch.randint(1, pick(200, 40), (S,))
    nq[1] = 1
    lens = (nq + torch.randint(0, most - int(nq.max()), (S,))).to(i32).to(DEV)
    starts = torch.cat([torch.zeros(1), nq.cumsum(0)]).to(i32).to(DEV)
    N = int(nq.sum())
    table = torch.randperm(S * MAXB, device=DEV).to(i32).view(S, MAXB).contiguous()
    kc, vc = (rn(S * MAXB, PAGE, HK, D, dtype=half) for _ in range(2))
    q = rn(N, HQ, D, dtype=half)
    for BQ, win, cap, sink, ali, w in pick(
            [(16, 0, False, False, False, 4), (4, 128, False, True, False, 2),
             (16, 0, True, False, True, 8)], [(8, 0, True, False, True, 4),
                                              (16, 20, False, True, False, 2)]):
        unified_attn[(S, HK, cd(int(nq.max()), BQ))](
            q, kc, vc, table, lens, starts, rn(HQ, dtype=f32), rn(HQ, dtype=f32).abs() * .1,
            ze(N, HQ, D, dtype=half), D ** -.5, 20.0, MAXB, HQ, HK, D, PAGE, BQ, win, cap, sink,
            ali, num_warps=w, num_stages=3)


@triton.jit
def moe_align(ids, sorted_ids, expert_ids, total, n, E: tl.constexpr, BS: tl.constexpr,
              B: tl.constexpr, MOSTB: tl.constexpr):
    e = tl.arange(0, E)
    cnt = tl.zeros((E,), tl.int32)
    for s in range(0, n, B):
        i = s + tl.arange(0, B)
        v = tl.load(ids + i, mask=i < n, other=-1)
        cnt += tl.sum((v[:, None] == e[None, :]).to(tl.int32), 0)
    padded = tl.cdiv(cnt, BS) * BS
    end = tl.cumsum(padded, 0)
    start = end - padded
    tl.store(total, tl.sum(padded))
    b = tl.arange(0, MOSTB) * BS
    which = tl.sum((b[:, None] >= end[None, :]).to(tl.int32), 1)
    tl.store(expert_ids + tl.arange(0, MOSTB), which, mask=b < tl.sum(padded))
    for s in range(0, n, B):
        i = s + tl.arange(0, B)
        v = tl.load(ids + i, mask=i < n, other=-1)
        hot = (v[:, None] == e[None, :]).to(tl.int32)
        rank = tl.cumsum(hot, 0) - hot + start[None, :]
        tl.store(sorted_ids + tl.sum(hot * rank, 1), i, mask=i < n)
        start += tl.sum(hot, 0)


def case_moe_align():
    n, E, BS = pick((8192, 64, 64), (100, 8, 16))
    MOSTB = triton.next_power_of_2(cd(n, BS) + E)
    for B, w in pick([(128, 4), (256, 8)], [(32, 4), (16, 1)]):
        moe_align[(1,)](ri(0, E, n), torch.full((n + E * BS,), n, dtype=i32, device=DEV),
                        ze(MOSTB, dtype=i32), ze(1, dtype=i32), n, E, BS, B, MOSTB, num_warps=w)


@triton.jit
def silu_mul_group_quant(x, rows, q, s, N, most, G: tl.constexpr, POW2: tl.constexpr):
    e, t, g = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if t >= tl.load(rows + e):
        return
    row = (e * tl.num_programs(1) + t).to(tl.int64)
    c = g * G + tl.arange(0, G)
    a = tl.load(x + row * 2 * N + c).to(tl.float32)
    b = tl.load(x + row * 2 * N + N + c).to(tl.float32)
    y = a / (1 + tl.exp(-a)) * b
    sc = tl.maximum(tl.max(tl.abs(y)), 1e-10) / most
    if POW2:
        sc = tl.exp2(tl.ceil(tl.log2(sc)))
    tl.store(q + row * N + c, tl.clamp(y / sc, -most, most).to(q.dtype.element_ty))
    tl.store(s + row * (N // G) + g, sc)


def case_silu_mul_group_quant():
    E, T, N = pick((16, 512, 2048), (3, 5, 128))
    rows = ri(0, T + 1, E)
    x = rn(E, T, 2 * N, dtype=half)
    for G, p2, w in pick([(128, True, 1), (128, False, 4)], [(64, False, 1), (32, True, 1)]):
        silu_mul_group_quant[(E, T, N // G)](x, rows, ze(E, T, N).to(torch.float8_e4m3fn),
                                             ze(E, T, N // G), N, 448.0, G, p2, num_warps=w)


@triton.jit
def rejection(draft, bonus, pd, pt, u, out, starts, V, MAXK: tl.constexpr, GREEDY: tl.constexpr):
    r = tl.program_id(0)
    first = tl.load(starts + r)
    n = tl.load(starts + r + 1) - first
    stop = False
    for k in range(n):
        if not stop:
            t = tl.load(draft + first + k)
            a = tl.load(pt + (first + k) * V + t)
            b = tl.load(pd + (first + k) * V + t)
            if GREEDY:
                ok = a >= b
            else:
                ok = (b > 0) & (a / b >= tl.load(u + first + k))
            if ok:
                tl.store(out + r * (MAXK + 1) + k, t)
            else:
                stop = True
                tl.store(out + r * (MAXK + 1) + k, -2)
    if not stop:
        tl.store(out + r * (MAXK + 1) + n, tl.load(bonus + r))


def case_rejection():
    R, V, K = pick((512, 32000, 5), (6, 40, 4))
    n = torch.randint(0, K + 1, (R,))
    starts = torch.cat([torch.zeros(1), n.cumsum(0)]).to(i32).to(DEV)
    N = int(n.sum())
    pd, pt = (rn(N, V, dtype=f32).softmax(-1) for _ in range(2))
    for greedy in (False, True):
        rejection[(R,)](ri(0, V, N), ri(0, V, R), pd, pt, rn(N, dtype=f32).sigmoid(),
                        torch.full((R, K + 1), -1, dtype=i32, device=DEV), starts, V, K, greedy,
                        num_warps=1)


@triton.jit
def recover(draft, pd, pt, noise, out, V, B: tl.constexpr):
    t = tl.program_id(0).to(tl.int64)
    d = tl.load(draft + t)
    best, at = -1.0, 0
    for s in range(0, V, B):
        i = s + tl.arange(0, B)
        p = tl.load(pt + t * V + i, mask=(i < V) & (i != d), other=0.0)
        p = tl.maximum(p - tl.load(pd + t * V + i, mask=i < V, other=0.0), 0.0)
        score = p / tl.load(noise + i, mask=i < V, other=float("inf"))
        m, k = tl.max(score, axis=0, return_indices=True)
        if m > best:
            best = m
            at = s + k
    tl.store(out + t, at)


def case_recover():
    N, V = pick((1024, 32000), (5, 300))
    pd, pt = (rn(N, V, dtype=f32).softmax(-1) for _ in range(2))
    for B, w in pick([(8192, 4), (1024, 4)], [(64, 4), (256, 2)]):
        recover[(N,)](ri(0, V, N), pd, pt, rn(V, dtype=f32).abs() + .01, ze(N, dtype=i32), V, B,
                      num_warps=w)


@triton.jit
def min_p_gumbel(logits, temp, min_p, seed, pos, out, lp, V, B: tl.constexpr):
    r = tl.program_id(0)
    row = logits + r.to(tl.int64) * V
    t = tl.load(temp + r)
    m = tl.full([B], float("-inf"), tl.float32)
    for s in range(0, V, B):
        i = s + tl.arange(0, B)
        m = tl.maximum(m, tl.load(row + i, mask=i < V, other=float("-inf")).to(tl.float32))
    top = tl.max(m)
    limit = top + tl.log(tl.load(min_p + r)) * t
    sd = tl.randint(tl.load(seed + r), tl.load(pos + r))
    best = tl.full((), float("-inf"), tl.float32)
    at = tl.full((), 0, tl.int32)
    z = tl.full((), 0.0, tl.float32)
    for s in range(0, V, B):
        i = s + tl.arange(0, B)
        v = tl.load(row + i, mask=i < V, other=float("-inf")).to(tl.float32)
        z += tl.sum(tl.exp((v - top) / t))
        g = -tl.log(-tl.log(tl.rand(sd, i) * 0.9998 + 1e-4))
        v = tl.where(v >= limit, v / t + g, float("-inf"))
        k = tl.argmax(v, 0)
        b = tl.max(v)
        at = tl.where(b > best, s + k, at)
        best = tl.maximum(b, best)
    tl.store(out + r, at)
    tl.store(lp + r, (tl.load(row + at).to(tl.float32) - top) / t - tl.log(z))


def case_min_p_gumbel():
    R, V = pick((256, 128256), (4, 500))
    x = rn(R, V, dtype=half, scale=3.)
    for B, w in pick([(4096, 8), (1024, 4)], [(128, 4), (512, 2)]):
        min_p_gumbel[(R,)](x, rn(R, dtype=f32).abs() + .3, rn(R, dtype=f32).sigmoid() * .3,
                           ri(0, 1 << 30, R), ri(0, 1000, R), ze(R, dtype=i32), ze(R), V, B,
                           num_warps=w)


@triton.jit
def store_kv_int8(k, v, slots, kc, vc, ks, vs, H: tl.constexpr, D: tl.constexpr):
    t = tl.program_id(0)
    slot = tl.load(slots + t).to(tl.int64)
    if slot < 0:
        return
    h, d = tl.arange(0, H), tl.arange(0, D)
    at = h[:, None] * D + d[None, :]
    for which in tl.static_range(2):
        src, cache, sc = (k, kc, ks) if which == 0 else (v, vc, vs)
        x = tl.load(src + t * H * D + at).to(tl.float32)
        s = tl.max(tl.abs(x), 1) / 126.3
        y = x * tl.where(s > 0, 1 / s, 0.0)[:, None]
        y = tl.where(y >= 0, tl.floor(y + 0.5), tl.ceil(y - 0.5))
        tl.store(cache + slot * H * D + at, y.to(tl.int8))
        tl.store(sc + slot * H + h, s)


def case_store_kv_int8():
    T, H, D, S = pick((8192, 8, 128, 20000), (7, 4, 32, 12))
    slots = torch.randperm(S, device=DEV)[:T].to(i64)
    slots[2] = -1
    k, v = (rn(T, H, D, dtype=half) for _ in range(2))
    for w in pick([2, 4], [1, 4]):
        store_kv_int8[(T,)](k, v, slots, ze(S, H, D, dtype=i8), ze(S, H, D, dtype=i8), ze(S, H),
                            ze(S, H), H, D, num_warps=w)


@triton.jit
def rotate(x, c, s, H: tl.constexpr, P: tl.constexpr, D: tl.constexpr, R: tl.constexpr,
           NEOX: tl.constexpr):
    h, i = tl.arange(0, P), tl.arange(0, R // 2)
    m = (h < H)[:, None] & (i >= 0)[None, :]
    if NEOX:
        first = h[:, None] * D + i[None, :]
        second = first + R // 2
    else:
        first = h[:, None] * D + 2 * i[None, :]
        second = first + 1
    a = tl.load(x + first, mask=m, other=0.0).to(tl.float32)
    b = tl.load(x + second, mask=m, other=0.0).to(tl.float32)
    tl.store(x + first, a * c - b * s, mask=m)
    tl.store(x + second, b * c + a * s, mask=m)


@triton.jit
def rope_partial(q, k, cos, sin, pos, HQ: tl.constexpr, HK: tl.constexpr, PQ: tl.constexpr,
                 PK: tl.constexpr, D: tl.constexpr, R: tl.constexpr, NEOX: tl.constexpr):
    t = tl.program_id(0)
    at = tl.load(pos + t) * (R // 2) + tl.arange(0, R // 2)
    c = tl.load(cos + at).to(tl.float32)[None, :]
    s = tl.load(sin + at).to(tl.float32)[None, :]
    rotate(q + t * HQ * D, c, s, HQ, PQ, D, R, NEOX)
    rotate(k + t * HK * D, c, s, HK, PK, D, R, NEOX)


def case_rope_partial():
    T, HQ, HK, D, R, S = pick((8192, 28, 4, 128, 64, 4096), (5, 6, 3, 32, 16, 20))
    q, k = rn(T, HQ, D, dtype=half), rn(T, HK, D, dtype=half)
    cos, sin = rn(S, R // 2, dtype=half), rn(S, R // 2, dtype=half)
    for neox, w in pick([(True, 4), (False, 4), (True, 1)], [(True, 1), (False, 4)]):
        rope_partial[(T,)](q, k, cos, sin, ri(0, S, T), HQ, HK, triton.next_power_of_2(HQ),
                           triton.next_power_of_2(HK), D, R, neox, num_warps=w)


@triton.jit
def conv1d_varlen(x, w, b, init, has, starts, y, final, D, W: tl.constexpr, BT: tl.constexpr,
                  BD: tl.constexpr, SILU: tl.constexpr):
    seq, blk, pd = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    lo = tl.load(starts + seq)
    n = tl.load(starts + seq + 1) - lo
    if blk * BT >= n:
        return
    d = pd * BD + tl.arange(0, BD)
    t = blk * BT + tl.arange(0, BT)
    md = d < D
    acc = tl.zeros((BT, BD), tl.float32) + tl.load(b + d, mask=md, other=0.0)[None, :]
    keep = tl.load(has + seq)  # 0 or 1
    for k in tl.static_range(W):
        tt = t - (W - 1) + k
        v = tl.load(x + (lo + tt)[:, None] * D + d[None, :],
                    mask=((tt >= 0) & (tt < n))[:, None] & md[None, :], other=0.0).to(tl.float32)
        e = tl.load(init + (seq * (W - 1) + W - 1 + tt)[:, None] * D + d[None, :],
                    mask=(tt * keep < 0)[:, None] & md[None, :], other=0.0).to(tl.float32)
        acc += (v + e) * tl.load(w + k * D + d, mask=md, other=0.0)[None, :]
    if SILU:
        acc = acc * tl.sigmoid(acc)
    tl.store(y + (lo + t)[:, None] * D + d[None, :], acc, mask=(t < n)[:, None] & md[None, :])
    if blk == 0:
        for k in tl.static_range(W - 1):
            end = n - (W - 1) + k
            new = tl.load(x + (lo + end) * D + d, mask=md & (end + 0 * d >= 0), other=0.0)
            kept = tl.load(init + (seq * (W - 1) + W - 1 + end) * D + d,
                           mask=md & (end * keep + 0 * d < 0), other=0.0)
            tl.store(final + (seq * (W - 1) + k) * D + d, new + kept, mask=md)


def case_conv1d_varlen():
    S, D, W = pick((16, 4096, 4), (4, 40, 4))
    n = torch.randint(1, pick(1000, 40), (S,))
    n[1] = 2
    starts = torch.cat([torch.zeros(1), n.cumsum(0)]).to(i32).to(DEV)
    N = int(n.sum())
    for BT, BD, w in pick([(8, 256, 4), (32, 64, 4)], [(8, 32, 4), (16, 64, 2)]):
        conv1d_varlen[(S, cd(int(n.max()), BT), cd(D, BD))](
            rn(N, D, dtype=half), rn(W, D, dtype=f32), rn(D, dtype=f32),
            rn(S, W - 1, D, dtype=half), ri(0, 2, S), starts, ze(N, D, dtype=half),
            ze(S, W - 1, D, dtype=half), D, W, BT, BD, True, num_warps=w)


@triton.jit
def packed_topk(x, w, idx, N, B: tl.constexpr, K: tl.constexpr, NORM: tl.constexpr):
    # values and places in one sorted word
    r = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + r * N + c, mask=c < N, other=float("-inf")).to(tl.float32)
    b = v.to(tl.uint32, bitcast=True)
    key = tl.where((b >> 31) != 0, ~b, b | 0x80000000)
    word = (key.to(tl.uint64) << 32) | (B - 1 - c).to(tl.uint64)
    top = tl.topk(word, K)
    place = B - 1 - (top & 0xFFFFFFFF).to(tl.int32)
    key = (top >> 32).to(tl.uint32)
    val = tl.where((key >> 31) != 0, key & 0x7FFFFFFF, ~key).to(tl.float32, bitcast=True)
    e = tl.exp(val - tl.max(val))
    if NORM:
        e = e / tl.sum(e)
    k = tl.arange(0, K)
    tl.store(w + r * K + k, e)
    tl.store(idx + r * K + k, place)


def case_packed_topk():
    R = pick(8192, 4)
    for N, B, K, w in pick([(64, 64, 8, 1), (256, 256, 8, 4), (1000, 1024, 32, 4)],
                           [(60, 64, 8, 1), (128, 128, 16, 4)]):
        packed_topk[(R,)](rn(R, N, dtype=half), ze(R, K), ze(R, K, dtype=i32), N, B, K, True,
                          num_warps=w)


@triton.jit
def mrope_qk(x, cos, sin, T, D: tl.constexpr, A: tl.constexpr, C: tl.constexpr):
    # three position axes share the pairs of a head
    t, h = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, D // 2)
    axis = (i >= A).to(tl.int32) + (i >= C).to(tl.int32)
    c = tl.load(cos + (axis * T + t) * (D // 2) + i)
    s = tl.load(sin + (axis * T + t) * (D // 2) + i)
    p = x + (t * tl.num_programs(1) + h) * D
    a, b = tl.load(p + i), tl.load(p + D // 2 + i)
    tl.store(p + i, a * c - b * s)
    tl.store(p + D // 2 + i, b * c + a * s)


def case_mrope():
    T, H, D = pick((8192, 32, 128), (5, 3, 32))
    A, C = D // 8, D // 4 + D // 16
    for w in pick([1, 4], [1]):
        mrope_qk[(T, H)](rn(T, H, D, dtype=f32), rn(3, T, D // 2, dtype=f32),
                         rn(3, T, D // 2, dtype=f32), T, D, A, C, num_warps=w)


if __name__ == "__main__":
    run(globals())

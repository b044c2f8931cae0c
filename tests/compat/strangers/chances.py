"""Random numbers, sampling and tables of probabilities as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, cd, f32, half, pick, ri, rn, run, ze

i8, i16, i32, u8 = torch.int8, torch.int16, torch.int32, torch.uint8


@triton.jit
def philox4(c0, c1, c2, c3, k0, k1, ROUNDS: tl.constexpr):
    # by hand: products of 64 bits, their halves
    for _ in tl.static_range(ROUNDS):
        p0 = c0.to(tl.uint64) * 0xD2511F53
        p1 = c2.to(tl.uint64) * 0xCD9E8D57
        n0 = (p1 >> 32).to(tl.uint32) ^ c1 ^ k0
        n2 = (p0 >> 32).to(tl.uint32) ^ c3 ^ k1
        c1 = p1.to(tl.uint32)
        c3 = p0.to(tl.uint32)
        c0 = n0
        c2 = n2
        k0 = k0 + 0x9E3779B9
        k1 = k1 + 0xBB67AE85
    return c0, c1, c2, c3


@triton.jit
def normal_fill(out, n, seed, mean, std, B: tl.constexpr, ROUNDS: tl.constexpr):
    # four normal numbers of each counter, in four planes of the block
    pid = tl.program_id(0)
    i = pid * B + tl.arange(0, B)
    z = (i * 0).to(tl.uint32)
    a, b, c, d = philox4(i.to(tl.uint32), z, z, z, (z + seed).to(tl.uint32), z, ROUNDS)
    s: tl.constexpr = 2.3283064e-10
    r1 = tl.sqrt(-2.0 * tl.log((a >> 8).to(tl.float32) * (1.0 / 16777216) + 6e-8))
    r2 = tl.sqrt(-2.0 * tl.log((c >> 8).to(tl.float32) * (1.0 / 16777216) + 6e-8))
    t1 = 6.2831853 * b.to(tl.float32) * s
    t2 = 6.2831853 * d.to(tl.float32) * s
    at = pid * B * 4 + tl.arange(0, B)
    tl.store(out + at, (mean + std * r1 * tl.cos(t1)).to(out.dtype.element_ty), mask=at < n)
    tl.store(out + at + B, (mean + std * r1 * tl.sin(t1)).to(out.dtype.element_ty),
             mask=at + B < n)
    tl.store(out + at + 2 * B, (mean + std * r2 * tl.cos(t2)).to(out.dtype.element_ty),
             mask=at + 2 * B < n)
    tl.store(out + at + 3 * B, (mean + std * r2 * tl.sin(t2)).to(out.dtype.element_ty),
             mask=at + 3 * B < n)


def case_normal_fill():
    n = pick(1 << 24, 500)
    for B, w, dt in pick([(256, 4, f32), (512, 4, half), (1024, 8, half)], [(32, 1, f32)]):
        normal_fill[(cd(n, 4 * B),)](ze(n, dtype=dt), n, 17, 0.5, 2.0, B, 10, num_warps=w)


@triton.jit
def race_sample(probs, seed, token, V, stride, B: tl.constexpr):
    # exponential races: the greatest p / e of a row, drawn on the way, ties to the left
    row = tl.program_id(0)
    best = -1.0
    arg = 0
    for v0 in range(0, V, B):
        v = v0 + tl.arange(0, B)
        p = tl.load(probs + row * stride + v, mask=v < V, other=0.0).to(tl.float32)
        e = -tl.log(tl.maximum(tl.rand(seed, row * stride + v), 1e-10))
        q = tl.where(v < V, p / e, -1.0)
        m, at = tl.max(q, 0, return_indices=True)
        if m > best:
            best = m
            arg = v0 + at
    tl.store(token + row, arg)


def case_race_sample():
    R, V = pick((512, 50257), (3, 100))
    p = torch.softmax(rn(R, V, dtype=f32), -1)
    for B, w in pick([(2048, 4), (8192, 8), (1024, 8)], [(32, 1)]):
        race_sample[(R,)](p, 1234, ze(R, dtype=i32), V, V, B, num_warps=w)


@triton.jit
def feistel(x, key, LOG: tl.constexpr, ROUNDS: tl.constexpr):
    H: tl.constexpr = LOG // 2
    l = x >> H
    r = x & ((1 << H) - 1)
    for k in tl.static_range(ROUNDS):
        f = ((r * 0x9E3779B1 + key + ((k * 0x85EBCA6B) & 0x7FFFFFFF)) ^ (r >> 3)) * 0xC2B2AE35
        f = (f >> 15) & ((1 << H) - 1)
        t = l ^ f
        l = r
        r = t
    return (l << H) | r


@triton.jit
def shuffled(perm, n, key, LOG: tl.constexpr, B: tl.constexpr):
    # a permutation of n numbers without memory: walk along the cycle until inside
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = feistel(tl.where(i < n, i, 0).to(tl.uint32), key, LOG, 4)
    out = (x >= n).to(tl.int32)
    while tl.max(out, 0) > 0:
        x = tl.where(out > 0, feistel(x, key, LOG, 4), x)
        out = (x >= n).to(tl.int32)
    tl.store(perm + i, x.to(tl.int32), mask=i < n)


def case_shuffled():
    n, LOG = pick((10000000, 24), (200, 8))
    for B, w in pick([(256, 4), (128, 4), (1024, 8)], [(32, 1)]):
        shuffled[(cd(n, B),)](ze(n, dtype=i32), n, 77, LOG, B, num_warps=w)


@triton.jit
def poisson(lam, out, n, seed, B: tl.constexpr):
    # Knuth: multiply until below exp(-lambda); lanes that are done wait
    i = tl.program_id(0) * B + tl.arange(0, B)
    limit = tl.exp(-tl.load(lam + i, mask=i < n, other=0.0))
    p = tl.rand(seed, i * 64)
    k = tl.zeros((B,), tl.int32)
    it = 1
    going = tl.sum((p > limit).to(tl.int32))
    while (going > 0) & (it < 64):
        more = p > limit
        k += more.to(tl.int32)
        p = tl.where(more, p * tl.rand(seed, i * 64 + it), p)
        it += 1
        going = tl.sum((p > limit).to(tl.int32))
    tl.store(out + i, k.to(tl.int16), mask=i < n)


def case_poisson():
    n = pick(1 << 22, 200)
    lam = torch.rand(n, device=DEV) * 6
    for B, w in pick([(128, 4), (256, 4), (128, 1)], [(32, 1)]):
        poisson[(cd(n, B),)](lam, ze(n, dtype=i16), n, 5, B, num_warps=w)


@triton.jit
def ising(spin, out, H, W, beta, seed, COLOR: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    # Metropolis on half of a checkerboard of int8 spins
    h = (tl.program_id(0) * BH + tl.arange(0, BH))[:, None]
    w = (tl.program_id(1) * BW + tl.arange(0, BW))[None, :]
    m = (h < H) & (w < W)
    s = tl.load(spin + h * W + w, mask=m, other=0)
    near = tl.load(spin + (h + 1) % H * W + w, mask=m, other=0)
    near += tl.load(spin + (h + H - 1) % H * W + w, mask=m, other=0)
    near += tl.load(spin + h * W + (w + 1) % W, mask=m, other=0)
    near += tl.load(spin + h * W + (w + W - 1) % W, mask=m, other=0)
    de = (2 * s * near).to(tl.float32)
    u = tl.rand(seed, h * W + w)
    flip = ((h + w) % 2 == COLOR) & (u < tl.exp(-beta * de))
    tl.store(out + h * W + w, tl.where(flip, -s, s), mask=m)


def case_ising():
    H, W = pick((4096, 4096), (10, 12))
    s = ri(0, 2, H, W, dtype=i8) * 2 - 1
    for BH, BW, w in pick([(4, 256, 4), (8, 128, 8), (32, 32, 4)], [(4, 8, 1)]):
        ising[(cd(H, BH), cd(W, BW))](s, ze(H, W, dtype=i8), H, W, .44, 3, 1, BH, BW,
                                      num_warps=w)


@triton.jit
def alias_draw(prob, alias, out, n, K, seed, B: tl.constexpr):
    # Walker's table: one look-up of two numbers each draw
    i = tl.program_id(0) * B + tl.arange(0, B)
    a, b, c, d = tl.randint4x(seed, i)
    k = tl.umulhi(a.to(tl.uint32, bitcast=True), tl.zeros((B,), tl.uint32) + K).to(tl.int32)
    u = tl.uint_to_uniform_float(b)
    take = u < tl.load(prob + k)
    tl.store(out + i, tl.where(take, k, tl.load(alias + k)), mask=i < n)


def case_alias_draw():
    n, K = pick((1 << 23, 100000), (200, 20))
    for B, w in pick([(512, 4), (1024, 4), (1024, 8)], [(64, 1)]):
        alias_draw[(cd(n, B),)](torch.rand(K, device=DEV), ri(0, K, K), ze(n, dtype=i32), n, K, 9,
                                B, num_warps=w)


@triton.jit
def systematic(cdf, parent, n, u0, LOG: tl.constexpr, B: tl.constexpr):
    # a particle filter's resampling: each comb tooth looks for its place by bisection
    i = tl.program_id(0) * B + tl.arange(0, B)
    t = (i.to(tl.float32) + u0) / n * tl.load(cdf + n - 1)
    lo = tl.zeros((B,), tl.int32)
    hi = tl.zeros((B,), tl.int32) + n - 1
    for _ in range(LOG):
        mid = (lo + hi) // 2
        less = tl.load(cdf + mid) < t
        lo = tl.where(less & (lo < hi), mid + 1, lo)
        hi = tl.where(less, hi, mid)
    tl.store(parent + i, lo, mask=i < n)


def case_systematic():
    n, LOG = pick((1 << 20, 20), (200, 8))
    cdf = torch.cumsum(ri(1, 9, n).float(), 0)
    for B, w in pick([(256, 4), (1024, 8), (128, 1)], [(32, 1)]):
        systematic[(cd(n, B),)](cdf, ze(n, dtype=i32), n, .37, LOG, B, num_warps=w)


@triton.jit
def log_plus(a, b):
    m = tl.maximum(a, b)
    return m + tl.log(1.0 + tl.exp(tl.minimum(a, b) - m))


@triton.jit
def rnnt_alpha(blank, emit, alpha, T_len, U_len, T, U: tl.constexpr):
    # the transducer's lattice by diagonals, a row of labels in lanes
    b = tl.program_id(0)
    u = tl.arange(0, U)
    tn = tl.load(T_len + b)
    un = tl.load(U_len + b)
    base = b * T * U
    a = tl.where(u == 0, 0.0, -1e30)
    tl.store(alpha + base + u, a, mask=u == 0)
    for d in range(1, tn + un):
        t = d - u
        ok = (t >= 0) & (t < tn) & (u <= un)
        stay = a + tl.load(blank + base + (t - 1) * U + u, mask=ok & (t > 0), other=0.0)
        stay = tl.where(t > 0, stay, -1e30)
        left = tl.gather(a, tl.maximum(u - 1, 0), 0)
        move = left + tl.load(emit + base + t * U + u - 1, mask=ok & (u > 0), other=0.0)
        move = tl.where(u > 0, move, -1e30)
        a = tl.where(ok, log_plus(stay, move), -1e30)
        tl.store(alpha + base + t * U + u, a, mask=ok)


def case_rnnt_alpha():
    B, T, U = pick((256, 300, 128), (3, 9, 8))
    lp = torch.log_softmax(rn(2, B, T, U, dtype=f32), 0)
    tl_, ul = ri(T // 2, T + 1, B), ri(U // 2, U, B)
    for w in pick((4, 1, 2), (1,)):
        rnnt_alpha[(B,)](lp[0], lp[1], ze(B, T, U), tl_, ul, T, U, num_warps=w)


@triton.jit
def ctc_grad(logp, alpha, beta, labels, nll, grad, T, V, S: tl.constexpr, BV: tl.constexpr):
    # gradient of a frame: states of one symbol are added by comparing all pairs
    b = tl.program_id(0)
    t = tl.program_id(1)
    s = tl.arange(0, S)
    lab = tl.load(labels + b * S + s)
    ab = tl.load(alpha + (b * T + t) * S + s) + tl.load(beta + (b * T + t) * S + s)
    loss = tl.load(nll + b)
    for v0 in range(0, V, BV):
        v = v0 + tl.arange(0, BV)
        lp = tl.load(logp + (b * T + t) * V + v, mask=v < V, other=0.0)
        x = tl.where(lab[:, None] == v[None, :], ab[:, None], -1e30)
        m = tl.max(x, 0)
        lse = m + tl.log(tl.sum(tl.exp(x - m[None, :]), 0))
        g = tl.exp(lp) - tl.where(m > -1e29, tl.exp(lse + loss - lp), 0.0)
        tl.store(grad + (b * T + t) * V + v, g, mask=v < V)


def case_ctc_grad():
    B, T, V, S = pick((32, 200, 500, 64), (2, 4, 20, 8))
    lp = torch.log_softmax(rn(B, T, V, dtype=f32), -1)
    al, be = -torch.rand(2, B, T, S, device=DEV) * 3
    for BV, w in pick([(128, 4), (64, 4), (256, 8)], [(8, 1)]):
        ctc_grad[(B, T)](lp, al, be, ri(0, V, B, S), ze(B) - 2, ze(B, T, V), T, V, S, BV,
                         num_warps=w)


@triton.jit
def hmm_filter(obs, trans, emit, out, ll, T, S: tl.constexpr, K):
    # normalised forward probabilities, the whole table of transitions in registers
    b = tl.program_id(0)
    i = tl.arange(0, S)
    A = tl.load(trans + i[:, None] * S + i[None, :])
    p = tl.full((S,), 1.0 / S, tl.float32)
    total = 0.0
    for t in range(T):
        o = tl.load(obs + b * T + t)
        q = tl.sum(A * p[:, None], 0) * tl.load(emit + o * S + i)
        z = tl.sum(q, 0)
        p = q / z
        total += tl.log(z)
        tl.store(out + (b * T + t) * S + i, p)
    tl.store(ll + b, total)


def case_hmm_filter():
    B, T, S, K = pick((512, 200, 64, 30), (2, 9, 8, 5))
    tr = torch.softmax(rn(S, S, dtype=f32), 1)
    for w in pick((4, 1, 2), (1,)):
        hmm_filter[(B,)](ri(0, K, B, T), tr, torch.softmax(rn(K, S, dtype=f32), 0), ze(B, T, S),
                         ze(B), T, S, K, num_warps=w)


@triton.jit
def backtrack(parents, tokens, out, T, K: tl.constexpr, LEN):
    # beams from the last step to the first, all of a sentence in lanes
    b = tl.program_id(0)
    k = tl.arange(0, K)
    at = k
    t = T - 1
    while t >= 0:
        tok = tl.load(tokens + (b * T + t) * K + at)
        tl.store(out + (b * K + k) * LEN + t, tok)
        at = tl.load(parents + (b * T + t) * K + at)
        t -= 1


def case_backtrack():
    B, T, K = pick((1024, 128, 16), (3, 7, 4))
    for w in pick((1, 4), (1,)):
        backtrack[(B,)](ri(0, K, B, T, K), ri(0, 32000, B, T, K), ze(B, K, T, dtype=i32), T, K, T,
                        num_warps=w)


@triton.jit
def tree_accept(draft, parent, target, best_node, best_len, N: tl.constexpr, DEPTH: tl.constexpr):
    # a tree of guesses: a node holds if its token is what its parent predicts, and so up
    b = tl.program_id(0)
    i = tl.arange(0, N)
    p = tl.load(parent + b * N + i)
    tok = tl.load(draft + b * N + i)
    want = tl.load(target + b * N + tl.maximum(p, 0))
    good = ((tok == want) & (p >= 0)) | (i == 0)
    length = good.to(tl.int32)
    up = p
    alive = good
    for _ in tl.static_range(DEPTH):
        q = tl.maximum(up, 0)
        alive = alive & (tl.gather(good.to(tl.int32), q, 0) != 0)
        length += tl.where(alive & (up >= 0), 1, 0)
        up = tl.where(up >= 0, tl.gather(p, q, 0), -1)
    score = tl.where(alive, length, 0)
    most, node = tl.max(score, 0, return_indices=True)
    tl.store(best_node + b, node)
    tl.store(best_len + b, most)


def case_tree_accept():
    B, N = pick((8192, 64), (4, 16))
    par = (torch.rand(B, N, device=DEV) * torch.arange(N, device=DEV)).int()
    par[:, 0] = -1
    for w in pick((1, 2, 4), (1,)):
        tree_accept[(B,)](ri(0, 2, B, N), par, ri(0, 2, B, N), ze(B, dtype=i32), ze(B, dtype=i32),
                          N, 6, num_warps=w)


@triton.jit
def pcg(state, inc):
    s = state * 6364136223846793005 + inc
    x = (((s >> 18) ^ s) >> 27).to(tl.uint32)
    r = (s >> 59).to(tl.uint32)
    return s, (x >> r) | (x << ((32 - r) & 31))


@triton.jit
def pi_pcg(out, n, STEPS, B: tl.constexpr):
    # darts by 64-bit congruential generators, one each lane, a loop with a state
    i = tl.program_id(0) * B + tl.arange(0, B)
    s = (i.to(tl.uint64) + 1) * 0x9E3779B97F4A7C15
    inc = (i.to(tl.uint64) << 1) | 1
    hits = tl.zeros((B,), tl.int32)
    for _ in range(STEPS):
        s, a = pcg(s, inc)
        s, b = pcg(s, inc)
        x = (a >> 8).to(tl.float32) * (1.0 / 16777216)
        y = (b >> 8).to(tl.float32) * (1.0 / 16777216)
        hits += (x * x + y * y < 1.0).to(tl.int32)
    tl.store(out + i, hits, mask=i < n)


def case_pi_pcg():
    n, steps = pick((1 << 18, 64), (100, 8))
    for B, w in pick([(128, 4), (256, 4), (64, 1)], [(32, 1)]):
        pi_pcg[(cd(n, B),)](ze(n, dtype=i32), n, steps, B, num_warps=w)


@triton.jit
def heston(out, n, steps, S0, v0, kappa, theta, xi, rho, r, dt, seed, B: tl.constexpr):
    # stochastic volatility in double precision, two correlated numbers each step
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.log(tl.zeros((B,), tl.float64) + S0)
    v = tl.zeros((B,), tl.float64) + v0
    for t in range(steps):
        u1, u2, _, _ = tl.rand4x(seed, i * steps + t)
        z1, z2 = tl.pair_uniform_to_normal(u1, u2)
        z2 = rho * z1 + tl.sqrt(1 - rho * rho) * z2
        vp = tl.maximum(v, 0.0)
        root = tl.sqrt(vp * dt)
        x += (r - 0.5 * vp) * dt + root * z1
        v += kappa * (theta - vp) * dt + xi * root * z2
    tl.store(out + i, tl.exp(x), mask=i < n)


def case_heston():
    n, steps = pick((1 << 17, 32), (100, 4))
    for B, w in pick([(128, 4), (256, 4), (64, 1)], [(32, 1)]):
        heston[(cd(n, B),)](ze(n), n, steps, 100.0, .04, 1.5, .04, .3, -.7, .02, .03,
                            11, B, num_warps=w)


@triton.jit
def dropout_norm(x, res, w, y, res_out, mask_out, N, p, eps, seed, B: tl.constexpr):
    # dropout, the residual, its rms norm; the kept elements as bits of bytes
    row = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < N
    keep = tl.rand(seed, row * N + i) >= p
    v = tl.load(x + row * N + i, mask=m, other=0.0).to(tl.float32)
    h = tl.where(keep, v / (1 - p), 0.0)
    h += tl.load(res + row * N + i, mask=m, other=0.0).to(tl.float32)
    tl.store(res_out + row * N + i, h.to(res_out.dtype.element_ty), mask=m)
    r = tl.rsqrt(tl.sum(tl.where(m, h * h, 0.0)) / N + eps)
    g = tl.load(w + i, mask=m, other=0.0).to(tl.float32)
    tl.store(y + row * N + i, (h * r * g).to(y.dtype.element_ty), mask=m)
    bits = tl.reshape((keep & m).to(tl.int32), (B // 8, 8)) << tl.arange(0, 8)[None, :]
    j = tl.arange(0, B // 8)
    tl.store(mask_out + row * (B // 8) + j, tl.sum(bits, 1).to(tl.uint8))


def case_dropout_norm():
    R = pick(8192, 3)
    for N, B, w in pick([(4096, 4096, 8), (2000, 2048, 4), (768, 1024, 4)], [(100, 128, 1)]):
        dropout_norm[(R,)](rn(R, N, dtype=half), rn(R, N, dtype=half), rn(N, dtype=half),
                           ze(R, N, dtype=half), ze(R, N, dtype=half), ze(R, B // 8, dtype=u8), N,
                           .1, 1e-6, 21, B, num_warps=w)


if __name__ == "__main__":
    run(globals())

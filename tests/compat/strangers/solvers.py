"""Small solvers, transforms, grids and simulations as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, bf16, cd, f32, fp16, half, pick, ri, rn, run, ze

f64, i32 = torch.float64, torch.int32


@triton.jit
def fft4(re, im):
    r0, r1, r2, r3 = re
    i0, i1, i2, i3 = im
    a0, b0 = r0 + r2, i0 + i2
    a1, b1 = r0 - r2, i0 - i2
    a2, b2 = r1 + r3, i1 + i3
    a3, b3 = r1 - r3, i1 - i3
    return (a0 + a2, a1 + b3, a0 - a2, a1 - b3), (b0 + b2, b1 - a3, b0 - b2, b1 + a3)


@triton.jit
def quarters(x, ROWS: tl.constexpr, Q: tl.constexpr):
    halves = tl.permute(tl.reshape(x, (ROWS, 2, 2, Q)), (0, 2, 3, 1))
    lo, hi = tl.split(halves)
    x0, x1 = tl.split(tl.permute(lo, (0, 2, 1)))
    x2, x3 = tl.split(tl.permute(hi, (0, 2, 1)))
    return x0, x1, x2, x3


@triton.jit
def together(q, ROWS: tl.constexpr, L: tl.constexpr, R: tl.constexpr):
    x0, x1, x2, x3 = q
    x = tl.join(tl.join(x0, x2), tl.join(x1, x3))
    x = tl.reshape(x, (ROWS, L, R, 2, 2))
    return tl.reshape(tl.permute(x, (0, 4, 3, 1, 2)), (ROWS, 4 * L * R))


@triton.jit
def fft_stage(xr, xi, ROWS: tl.constexpr, L: tl.constexpr, R: tl.constexpr):
    r0, r1, r2, r3 = quarters(xr, ROWS, L * R)
    i0, i1, i2, i3 = quarters(xi, ROWS, L * R)
    j = (tl.arange(0, L * R) // R).to(tl.float32)
    ang = (-6.283185307179586 / (4 * L)) * j[None, :]
    c1, s1 = tl.cos(ang), tl.sin(ang)
    c2, s2 = c1 * c1 - s1 * s1, 2 * c1 * s1
    c3, s3 = c1 * c2 - s1 * s2, c1 * s2 + s1 * c2
    r1, i1 = r1 * c1 - i1 * s1, r1 * s1 + i1 * c1
    r2, i2 = r2 * c2 - i2 * s2, r2 * s2 + i2 * c2
    r3, i3 = r3 * c3 - i3 * s3, r3 * s3 + i3 * c3
    re, im = fft4((r0, r1, r2, r3), (i0, i1, i2, i3))
    return together(re, ROWS, L, R), together(im, ROWS, L, R)


@triton.jit
def fft_radix4(xr_ptr, xi_ptr, yr_ptr, yi_ptr, N: tl.constexpr, LOG4: tl.constexpr,
               ROWS: tl.constexpr):
    # in registers: a stage takes quarters and writes them in front of what is done
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, N)
    xr = tl.load(xr_ptr + row[:, None] * N + col[None, :])
    xi = tl.load(xi_ptr + row[:, None] * N + col[None, :])
    for s in tl.static_range(LOG4):
        xr, xi = fft_stage(xr, xi, ROWS, 4 ** s, N // 4 ** (s + 1))
    tl.store(yr_ptr + row[:, None] * N + col[None, :], xr)
    tl.store(yi_ptr + row[:, None] * N + col[None, :], xi)


def case_fft_radix4():
    B, N, LOG = pick((4096, 1024, 5), (4, 16, 2))
    for R, w in pick([(1, 4), (2, 4), (4, 8)], [(2, 1)]):
        fft_radix4[(B // R,)](rn(B, N, dtype=f32), rn(B, N, dtype=f32), ze(B, N), ze(B, N), N,
                              LOG, R, num_warps=w)


@triton.jit
def lu_tiles(a_ptr, o_ptr, piv_ptr, batch, N: tl.constexpr, B: tl.constexpr):
    # partial pivoting of B small matrices at once, rows exchanged by selects
    z = tl.program_id(0) * B + tl.arange(0, B)
    i = tl.arange(0, N)
    at = z[:, None, None] * N * N + i[None, :, None] * N + i[None, None, :]
    ok = (z < batch)[:, None, None]
    a = tl.load(a_ptr + at, mask=ok, other=1.0)
    for k in range(N):
        colk = tl.sum(tl.where(i[None, None, :] == k, a, 0.0), 2)
        best = tl.argmax(tl.where(i[None, :] >= k, tl.abs(colk), -1.0), 1)
        tl.store(piv_ptr + z * N + k, best, mask=z < batch)
        rowk = tl.sum(tl.where(i[None, :, None] == k, a, 0.0), 1)
        rowp = tl.sum(tl.where(i[None, :, None] == best[:, None, None], a, 0.0), 1)
        a = tl.where(i[None, :, None] == best[:, None, None], rowk[:, None, :], a)
        a = tl.where(i[None, :, None] == k, rowp[:, None, :], a)
        diag = tl.sum(tl.where(i[None, :] == k, rowp, 0.0), 1)
        colk = tl.sum(tl.where(i[None, None, :] == k, a, 0.0), 2)
        f = tl.where(i[None, :] > k, colk / diag[:, None], 0.0)
        right = tl.where(i[None, :] > k, rowp, 0.0)
        a -= f[:, :, None] * right[:, None, :]
        a = tl.where((i[None, :, None] > k) & (i[None, None, :] == k), f[:, :, None], a)
    tl.store(o_ptr + at, a, mask=ok)


def case_lu():
    Z, N = pick((8192, 16), (5, 8))
    for B, w in pick([(1, 1), (4, 4), (2, 1)], [(2, 1)]):
        lu_tiles[(cd(Z, B),)](rn(Z, N, N, dtype=f32), ze(Z, N, N), ze(Z, N, dtype=i32), Z, N, B,
                              num_warps=w)


@triton.jit
def householder_qr(A, R, TAU, M: tl.constexpr, N: tl.constexpr):
    pid = tl.program_id(0)
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    a = tl.load(A + pid * M * N + m[:, None] * N + n[None, :])
    for k in range(N):
        x = tl.sum(tl.where(n[None, :] == k, a, 0.0), 1)
        tail = tl.where(m > k, x, 0.0)
        alpha = tl.sum(tl.where(m == k, x, 0.0))
        sigma = tl.sum(tail * tail)
        if sigma > 1e-30:
            norm = tl.sqrt(alpha * alpha + sigma)
            beta = -norm if alpha >= 0 else norm
            tau = (beta - alpha) / beta
            v = tl.where(m == k, 1.0, tail / (alpha - beta))
            w = tl.sum(v[:, None] * a, 0) * tau
            upd = a - v[:, None] * w[None, :]
            a = tl.where(n[None, :] >= k, upd, a)
            a = tl.where((n[None, :] == k) & (m[:, None] > k), v[:, None], a)
        else:
            tau = 0.0
        tl.store(TAU + pid * N + k, tau)
    tl.store(R + pid * M * N + m[:, None] * N + n[None, :], a)


def case_householder():
    Z, M, N = pick((1024, 64, 32), (2, 16, 8))
    for w in pick((1, 4), (1,)):
        householder_qr[(Z,)](rn(Z, M, N, dtype=f32), ze(Z, M, N), ze(Z, N), M, N, num_warps=w)


@triton.jit
def winograd_out(m_ptr, y_ptr, tiles_w, H, W, C, BT: tl.constexpr, BC: tl.constexpr,
                 TILES: tl.constexpr):
    """A' m A of F(2x2, 3x3), both transforms written out."""
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    ok = (t < TILES)[:, None] & (c < C)[None, :]
    p = m_ptr + t[:, None] * C + c[None, :]
    plane = TILES * C
    s0, s1 = (), ()
    for col in tl.static_range(4):
        a = tl.load(p + (0 + col) * plane, mask=ok, other=0.0).to(tl.float32)
        b = tl.load(p + (4 + col) * plane, mask=ok, other=0.0).to(tl.float32)
        d = tl.load(p + (8 + col) * plane, mask=ok, other=0.0).to(tl.float32)
        e = tl.load(p + (12 + col) * plane, mask=ok, other=0.0).to(tl.float32)
        s0 = s0 + (a + b + d,)
        s1 = s1 + (b - d - e,)
    ty, tx = t // tiles_w, t % tiles_w
    for r in tl.static_range(2):
        s = s0 if r == 0 else s1
        y0 = s[0] + s[1] + s[2]
        y1 = s[1] - s[2] - s[3]
        row = 2 * ty + r
        out = y_ptr + (row * W + 2 * tx)[:, None] * C + c[None, :]
        tl.store(out, y0, mask=ok & (row < H)[:, None] & (2 * tx < W)[:, None])
        tl.store(out + C, y1, mask=ok & (row < H)[:, None] & (2 * tx + 1 < W)[:, None])


def case_winograd_out():
    H, W, C = pick((111, 112, 256), (7, 8, 20))
    tw, th = cd(W, 2), cd(H, 2)
    for BT, BC, w in pick([(16, 64, 4), (32, 32, 4), (4, 256, 4)], [(4, 16, 1)]):
        winograd_out[(cd(tw * th, BT), cd(C, BC))](rn(16, tw * th, C, dtype=fp16),
                                                   ze(H, W, C, dtype=fp16), tw, H, W, C, BT, BC,
                                                   tw * th, num_warps=w)


@triton.jit
def im2col(x, col, C, H, W, OH, OW, KH: tl.constexpr, KW: tl.constexpr, stride: tl.constexpr,
           pad: tl.constexpr, BLOCK: tl.constexpr):
    idx = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = C * OH * OW
    ow = idx % OW
    oh = (idx // OW) % OH
    c = idx // (OW * OH)
    n = tl.program_id(1)
    live = idx < total
    for i in tl.static_range(KH):
        for j in tl.static_range(KW):
            ih = oh * stride - pad + i
            iw = ow * stride - pad + j
            inside = (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W) & live
            v = tl.load(x + ((n * C + c) * H + ih) * W + iw, mask=inside, other=0.0)
            tl.store(col + ((n * C + c) * KH * KW + i * KW + j) * OH * OW + oh * OW + ow, v,
                     mask=live)


def case_im2col():
    N, C, H, W = pick((8, 64, 56, 56), (2, 3, 9, 10))
    for B, st, w in pick([(256, 1, 4), (1024, 1, 4), (512, 2, 8)], [(64, 1, 1), (32, 2, 1)]):
        OH, OW = (H + 2 - 3) // st + 1, (W + 2 - 3) // st + 1
        im2col[(cd(C * OH * OW, B), N)](rn(N, C, H, W, dtype=fp16),
                                        ze(N, C * 9, OH * OW, dtype=fp16), C, H, W, OH, OW, 3, 3,
                                        st, 1, B, num_warps=w)


@triton.jit
def jacobi3d(src, dst, f, h2, NX, NY, NZ, BY: tl.constexpr, BX: tl.constexpr):
    # a column of planes: the one below, this and the one above wander through registers
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    y = tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    ok = (x > 0) & (x < NX - 1) & (y > 0) & (y < NY - 1)
    plane = NX * NY
    p = src + y * NX + x
    below = tl.load(p, mask=ok, other=0.0)
    here = tl.load(p + plane, mask=ok, other=0.0)
    for z in range(1, NZ - 1):
        above = tl.load(p + (z + 1) * plane, mask=ok, other=0.0)
        q = p + z * plane
        s = tl.load(q - 1, mask=ok, other=0.0) + tl.load(q + 1, mask=ok, other=0.0)
        s += tl.load(q - NX, mask=ok, other=0.0) + tl.load(q + NX, mask=ok, other=0.0)
        r = tl.load(f + z * plane + y * NX + x, mask=ok, other=0.0)
        tl.store(dst + z * plane + y * NX + x, (s + below + above - h2 * r) * (1.0 / 6), mask=ok)
        below = here
        here = above


def case_jacobi3d():
    NX, NY, NZ = pick((512, 512, 66), (20, 18, 5))
    for BY, BX, w in pick([(8, 128, 4), (16, 64, 4), (4, 256, 8)], [(4, 16, 1)]):
        jacobi3d[(cd(NX, BX), cd(NY, BY))](rn(NZ, NY, NX, dtype=f32), ze(NZ, NY, NX),
                                           rn(NZ, NY, NX, dtype=f32), 0.01, NX, NY, NZ, BY, BX,
                                           num_warps=w)


@triton.jit
def nbody_leap(pos, vel, new_pos, new_vel, dt, soft, n, BI: tl.constexpr, BJ: tl.constexpr):
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    mi = i < n
    xi, yi = tl.load(pos + 4 * i, mi), tl.load(pos + 4 * i + 1, mi)
    zi = tl.load(pos + 4 * i + 2, mi)
    ax = tl.zeros_like(xi)
    ay = tl.zeros_like(xi)
    az = tl.zeros_like(xi)
    for j0 in range(0, n, BJ):
        j = j0 + tl.arange(0, BJ)
        mj = j < n
        xj = tl.load(pos + 4 * j, mj, other=0.0)
        yj = tl.load(pos + 4 * j + 1, mj, other=0.0)
        zj = tl.load(pos + 4 * j + 2, mj, other=0.0)
        mass = tl.load(pos + 4 * j + 3, mj, other=0.0)
        dx, dy, dz = xj[None] - xi[:, None], yj[None] - yi[:, None], zj[None] - zi[:, None]
        r = tl.math.rsqrt(dx * dx + dy * dy + dz * dz + soft)
        g = mass[None, :] * r * r * r
        ax += tl.sum(g * dx, 1)
        ay += tl.sum(g * dy, 1)
        az += tl.sum(g * dz, 1)
    for k in tl.static_range(3):
        acc = ax if k == 0 else (ay if k == 1 else az)
        v = tl.load(vel + 4 * i + k, mi) + acc * dt
        tl.store(new_vel + 4 * i + k, v, mi)
        tl.store(new_pos + 4 * i + k, tl.load(pos + 4 * i + k, mi) + v * dt, mi)


def case_nbody_leap():
    n = pick(8192, 50)
    for BI, BJ, w in pick([(64, 64, 4), (128, 16, 4), (32, 128, 4)], [(16, 16, 1)]):
        nbody_leap[(cd(n, BI),)](rn(n, 4, dtype=f32), rn(n, 4, dtype=f32), ze(n, 4), ze(n, 4),
                                 0.01, 0.1, n, BI, BJ, num_warps=w)


@triton.jit
def lbm_d3q7(f, g, omega, NX, NY, NZ, BLOCK: tl.constexpr):
    # pull, collide, push of scalar transport, wrapped around
    idx = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = NX * NY * NZ
    ok = idx < n
    x = idx % NX
    y = (idx // NX) % NY
    z = idx // (NX * NY)
    xm, xp = tl.where(x == 0, NX - 1, x - 1), tl.where(x == NX - 1, 0, x + 1)
    ym, yp = tl.where(y == 0, NY - 1, y - 1), tl.where(y == NY - 1, 0, y + 1)
    zm, zp = tl.where(z == 0, NZ - 1, z - 1), tl.where(z == NZ - 1, 0, z + 1)
    f0 = tl.load(f + idx, mask=ok)
    f1 = tl.load(f + n + (z * NY + y) * NX + xm, mask=ok)
    f2 = tl.load(f + 2 * n + (z * NY + y) * NX + xp, mask=ok)
    f3 = tl.load(f + 3 * n + (z * NY + ym) * NX + x, mask=ok)
    f4 = tl.load(f + 4 * n + (z * NY + yp) * NX + x, mask=ok)
    f5 = tl.load(f + 5 * n + (zm * NY + y) * NX + x, mask=ok)
    f6 = tl.load(f + 6 * n + (zp * NY + y) * NX + x, mask=ok)
    rho = f0 + f1 + f2 + f3 + f4 + f5 + f6
    ux, uy, uz = 0.1, -0.05, 0.02
    tl.store(g + idx, f0 + omega * (rho * 0.25 - f0), mask=ok)
    tl.store(g + n + idx, f1 + omega * (rho * 0.125 * (1 + 4 * ux) - f1), mask=ok)
    tl.store(g + 2 * n + idx, f2 + omega * (rho * 0.125 * (1 - 4 * ux) - f2), mask=ok)
    tl.store(g + 3 * n + idx, f3 + omega * (rho * 0.125 * (1 + 4 * uy) - f3), mask=ok)
    tl.store(g + 4 * n + idx, f4 + omega * (rho * 0.125 * (1 - 4 * uy) - f4), mask=ok)
    tl.store(g + 5 * n + idx, f5 + omega * (rho * 0.125 * (1 + 4 * uz) - f5), mask=ok)
    tl.store(g + 6 * n + idx, f6 + omega * (rho * 0.125 * (1 - 4 * uz) - f6), mask=ok)


def case_lbm_d3q7():
    X, Y, Z = pick((256, 128, 64), (9, 6, 5))
    for B, w in pick([(256, 4), (1024, 4), (512, 8)], [(64, 1)]):
        lbm_d3q7[(cd(X * Y * Z, B),)](rn(7, Z, Y, X, dtype=f32), ze(7, Z, Y, X), 1.2, X, Y, Z, B,
                                      num_warps=w)


@triton.jit
def sph_cells(px, py, start, order, rho, n, cells, h, NEIGH: tl.constexpr, B: tl.constexpr):
    # sorted by cells: nine cells of a neighbourhood, each a run of other particles
    i = tl.program_id(0) * B + tl.arange(0, B)
    ok = i < n
    x, y = tl.load(px + i, mask=ok, other=0.0), tl.load(py + i, mask=ok, other=0.0)
    h8 = tl.exp2(8 * tl.log2(h))
    cx = tl.minimum((x / h).to(tl.int32), cells - 1)
    cy = tl.minimum((y / h).to(tl.int32), cells - 1)
    acc = tl.zeros((B,), tl.float32)
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            ux, uy = cx + dx, cy + dy
            inside = ok & (ux >= 0) & (ux < cells) & (uy >= 0) & (uy < cells)
            cell = tl.where(inside, uy * cells + ux, 0)
            s = tl.load(start + cell, mask=inside, other=0)
            e = tl.load(start + cell + 1, mask=inside, other=0)
            longest = tl.max(e - s, axis=0)
            k = 0
            while k < longest:
                j = s + k
                live = j < e
                o = tl.load(order + j, mask=live, other=0)
                qx = tl.load(px + o, mask=live, other=1e9)
                qy = tl.load(py + o, mask=live, other=1e9)
                d2 = (x - qx) * (x - qx) + (y - qy) * (y - qy)
                w = tl.maximum(h * h - d2, 0.0)
                acc += tl.where(live, w * w * w, 0.0)
                k += 1
    tl.store(rho + i, acc * (4.0 / (3.14159265 * h8)), mask=ok)


def case_sph_cells():
    n, cells = pick((1 << 17, 128), (60, 4))
    h = 1.0 / cells
    px, py = torch.rand(n, device=DEV), torch.rand(n, device=DEV)
    cell = (py / h).int() * cells + (px / h).int()
    order = torch.argsort(cell).int()
    start = torch.zeros(cells * cells + 1, dtype=i32, device=DEV)
    start[1:] = torch.bincount(cell, minlength=cells * cells).cumsum(0).int()
    for B, w in pick([(128, 4), (32, 1)], [(16, 1)]):
        sph_cells[(cd(n, B),)](px[order.long()].contiguous(), py[order.long()].contiguous(), start,
                               torch.arange(n, device=DEV).int(), ze(n), n, cells, h, 0, B,
                               num_warps=w)


@triton.jit
def asian_option(out, S0, strike, r, sigma, T, seed, STEPS: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    dt = T / STEPS
    drift = (r - 0.5 * sigma * sigma) * dt
    vol = sigma * tl.sqrt(dt)
    logs = tl.zeros((B,), tl.float32) + tl.log(S0)
    total = tl.zeros((B,), tl.float32)
    for t in range(0, STEPS, 4):
        n0, n1, n2, n3 = tl.randn4x(seed, i * (STEPS // 4) + t // 4)
        z = (n0, n1, n2, n3)
        for j in tl.static_range(4):
            logs += drift + vol * z[j]
            total += tl.exp(logs)
    tl.store(out + i, tl.maximum(total / STEPS - strike, 0.0) * tl.exp(-r * T))


def case_asian_option():
    n, S = pick((1 << 18, 64), (256, 8))
    for B, w in pick([(256, 4), (128, 4), (1024, 8)], [(64, 1)]):
        asian_option[(n // B,)](ze(n), 100.0, 101.0, 0.03, 0.2, 1.0, 5, S, B, num_warps=w)


@triton.jit
def box_muller(u, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    a, b = tl.split(tl.load(u + 2 * i[:, None] + tl.arange(0, 2)[None, :], mask=m[:, None],
                            other=0.5))
    r = tl.sqrt(-2.0 * tl.log(tl.maximum(a, 1e-7)))
    th = 6.283185307179586 * b
    z = tl.join(r * tl.cos(th), r * tl.sin(th))
    tl.store(out + 2 * i[:, None] + tl.arange(0, 2)[None, :], z, mask=m[:, None])


def case_box_muller():
    n = pick(1 << 22, 200)
    for B, w in pick([(512, 4), (1024, 4)], [(32, 1)]):
        box_muller[(cd(n, B),)](torch.rand(2 * n, device=DEV), ze(2 * n), n, B, num_warps=w)


@triton.jit
def exchange(x, n_dims: tl.constexpr, i: tl.constexpr, up):
    # one column of a bitonic network, by reshape and xor of the bits
    ROWS: tl.constexpr = x.shape[0]
    OUTER: tl.constexpr = 2 ** (n_dims - 1 - i)
    y = tl.reshape(x, (ROWS * OUTER, 2, 2 ** i))
    side = tl.arange(0, 2)[None, :, None]
    left = tl.broadcast_to(tl.sum(y * (1 - side), 1)[:, None, :], y.shape).to(y.dtype)
    right = tl.broadcast_to(tl.sum(y * side, 1)[:, None, :], y.shape).to(y.dtype)
    left = tl.reshape(left, x.shape)
    right = tl.reshape(right, x.shape)
    return tl.where((left > right) != up, left ^ right ^ x, x)


@triton.jit
def bitonic_rows(src, dst, N: tl.constexpr, LOG: tl.constexpr, R: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, N)
    x = tl.load(src + r[:, None] * N + c[None, :])
    for s in tl.static_range(1, LOG + 1):
        up = ((c >> s) & 1)[None, :] != 0 if s < LOG else c[None, :] < 0
        for i in tl.static_range(s):
            x = exchange(x, LOG, s - 1 - i, up)
    tl.store(dst + r[:, None] * N + c[None, :], x)


def case_bitonic_rows():
    B, N, LOG = pick((8192, 256, 8), (4, 16, 4))
    for R, w in pick([(1, 1), (4, 4), (8, 4)], [(2, 1)]):
        bitonic_rows[(B // R,)](ri(0, 1 << 20, B, N), ze(B, N, dtype=i32), N, LOG, R, num_warps=w)


@triton.jit
def depthwise_nhwc(x, w, b, y, H, W, C, K: tl.constexpr, BW: tl.constexpr, BC: tl.constexpr):
    # one row of pixels, taps unrolled; the innermost axis is channels
    row = tl.program_id(0)
    h, img = row % H, row // H
    ww = tl.program_id(1) * BW + tl.arange(0, BW)
    c = tl.program_id(2) * BC + tl.arange(0, BC)
    acc = tl.load(b + c, mask=c < C, other=0.0).to(tl.float32)[None, :] + tl.zeros((BW, BC),
                                                                                  tl.float32)
    for i in tl.static_range(K):
        hi = h + i - K // 2
        if (hi >= 0) & (hi < H):
            for j in tl.static_range(K):
                wi = ww + j - K // 2
                ok = ((wi >= 0) & (wi < W))[:, None] & (c < C)[None, :]
                v = tl.load(x + ((img * H + hi) * W + wi)[:, None] * C + c[None, :], mask=ok,
                            other=0.0)
                tap = tl.load(w + (i * K + j) * C + c, mask=c < C, other=0.0)
                acc += v.to(tl.float32) * tap.to(tl.float32)[None, :]
    tl.store(y + ((img * H + h) * W + ww)[:, None] * C + c[None, :], acc,
             mask=(ww < W)[:, None] & (c < C)[None, :])


def case_depthwise_nhwc():
    N, H, W, C = pick((8, 56, 56, 256), (1, 5, 9, 20))
    for BW, BC, w in pick([(16, 64, 4), (8, 128, 4), (32, 32, 4)], [(8, 16, 1)]):
        depthwise_nhwc[(N * H, cd(W, BW), cd(C, BC))](rn(N, H, W, C), rn(5, 5, C), rn(C),
                                                      ze(N, H, W, C, dtype=bf16), H, W, C, 5, BW,
                                                      BC, num_warps=w)


if __name__ == "__main__":
    run(globals())

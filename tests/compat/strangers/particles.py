"""Particles, meshes, rays and solvers as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import cd, f32, pick, ri, rn, run, ze

i32, f64 = torch.int32, torch.float64


def points(n, box):
    return [torch.rand(n, device=ri(0, 2, 1).device) * box for _ in range(3)]


@triton.jit
def deposit(px, py, q, grid, n, G, B: tl.constexpr):
    # cloud in cell: each particle's charge goes to four nodes of a periodic grid
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    x, y = tl.load(px + i, mask=m, other=0.0), tl.load(py + i, mask=m, other=0.0)
    c = tl.load(q + i, mask=m, other=0.0)
    ix, iy = tl.floor(x).to(tl.int32), tl.floor(y).to(tl.int32)
    fx, fy = x - ix, y - iy
    for k in tl.static_range(4):
        ax = ix + k % 2
        ay = iy + k // 2
        w = (fx if k % 2 else 1 - fx) * (fy if k // 2 else 1 - fy)
        tl.atomic_add(grid + (ay % G) * G + ax % G, c * w, mask=m, sem="relaxed")


def case_deposit():
    n, G = pick((1 << 20, 512), (300, 16))
    x, y, _ = points(n, G)
    for B, w in pick([(256, 4), (1024, 4)], [(64, 1)]):
        deposit[(cd(n, B),)](x, y, rn(n, dtype=f32), ze(G, G), n, G, B, num_warps=w)


@triton.jit
def push(px, py, vx, vy, ex, ey, n, G, dt, B: tl.constexpr):
    # the field at each particle by bilinear weights, then leapfrog
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    x, y = tl.load(px + i, mask=m, other=0.0), tl.load(py + i, mask=m, other=0.0)
    ix, iy = x.to(tl.int32), y.to(tl.int32)
    fx, fy = x - ix, y - iy
    jx, jy = (ix + 1) % G, (iy + 1) % G
    w00, w10, w01, w11 = (1 - fx) * (1 - fy), fx * (1 - fy), (1 - fx) * fy, fx * fy
    a = iy * G + ix
    b = iy * G + jx
    c = jy * G + ix
    d = jy * G + jx
    ax = (w00 * tl.load(ex + a, mask=m) + w10 * tl.load(ex + b, mask=m)
          + w01 * tl.load(ex + c, mask=m) + w11 * tl.load(ex + d, mask=m))
    ay = (w00 * tl.load(ey + a, mask=m) + w10 * tl.load(ey + b, mask=m)
          + w01 * tl.load(ey + c, mask=m) + w11 * tl.load(ey + d, mask=m))
    ux = tl.load(vx + i, mask=m) + dt * ax
    uy = tl.load(vy + i, mask=m) + dt * ay
    x += dt * ux
    y += dt * uy
    x = x - tl.floor(x / G) * G
    y = y - tl.floor(y / G) * G
    tl.store(vx + i, ux, mask=m)
    tl.store(vy + i, uy, mask=m)
    tl.store(px + i, x, mask=m)
    tl.store(py + i, y, mask=m)


def case_push():
    n, G = pick((1 << 21, 512), (300, 16))
    x, y, _ = points(n, G - 0.5)
    for B, w in pick([(256, 4), (512, 4)], [(64, 2)]):
        push[(cd(n, B),)](x, y, rn(n, dtype=f32), rn(n, dtype=f32), rn(G, G, dtype=f32),
                          rn(G, G, dtype=f32), n, G, 0.05, B, num_warps=w)


@triton.jit
def lennard_jones(px, py, pz, start, near, fx, fy, fz, n, cut2, B: tl.constexpr):
    # a row of the neighbour list for each particle, as long as the longest of the block
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    x = tl.load(px + i, mask=m, other=0.0)
    y = tl.load(py + i, mask=m, other=0.0)
    z = tl.load(pz + i, mask=m, other=0.0)
    at = tl.load(start + i, mask=m, other=0)
    end = tl.load(start + i + 1, mask=m, other=0)
    ax = tl.zeros((B,), tl.float32)
    ay = tl.zeros((B,), tl.float32)
    az = tl.zeros((B,), tl.float32)
    while tl.max(end - at) > 0:
        ok = at < end
        j = tl.load(near + at, mask=ok, other=0)
        dx = x - tl.load(px + j, mask=ok, other=0.0)
        dy = y - tl.load(py + j, mask=ok, other=0.0)
        dz = z - tl.load(pz + j, mask=ok, other=0.0)
        r2 = dx * dx + dy * dy + dz * dz
        use = ok & (r2 < cut2) & (r2 > 0)
        s = 1.0 / tl.where(use, r2, 1.0)
        s3 = s * s * s
        f = tl.where(use, 24.0 * s * s3 * (2.0 * s3 - 1.0), 0.0)
        ax += f * dx
        ay += f * dy
        az += f * dz
        at += 1
    tl.store(fx + i, ax, mask=m)
    tl.store(fy + i, ay, mask=m)
    tl.store(fz + i, az, mask=m)


def case_lennard_jones():
    n, most = pick((100000, 80), (70, 9))
    x, y, z = points(n, pick(50.0, 6.0))
    count = torch.randint(most // 2, most, (n + 1,), dtype=i32)
    count[0] = 0
    start = count.cumsum(0).to(i32)
    near = torch.randint(0, n, (int(start[-1]),), dtype=i32).to(x.device)
    for B, w in pick([(128, 4), (64, 2)], [(32, 1)]):
        lennard_jones[(cd(n, B),)](x, y, z, start.to(x.device), near, ze(n), ze(n), ze(n), n, 9.0,
                                   B, num_warps=w)


@triton.jit
def sph_density(pos, mass, rho, n, h, BI: tl.constexpr, BJ: tl.constexpr):
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    xi = tl.load(pos + 4 * i, mask=i < n, other=0.0)
    yi = tl.load(pos + 4 * i + 1, mask=i < n, other=0.0)
    zi = tl.load(pos + 4 * i + 2, mask=i < n, other=0.0)
    acc = tl.zeros((BI,), tl.float32)
    for start in range(0, n, BJ):
        j = start + tl.arange(0, BJ)
        mj = j < n
        dx = xi[:, None] - tl.load(pos + 4 * j, mask=mj, other=0.0)[None, :]
        dy = yi[:, None] - tl.load(pos + 4 * j + 1, mask=mj, other=0.0)[None, :]
        dz = zi[:, None] - tl.load(pos + 4 * j + 2, mask=mj, other=0.0)[None, :]
        q = tl.sqrt(dx * dx + dy * dy + dz * dz) / h
        w = tl.where(q < 1, 1 - 1.5 * q * q * (1 - 0.5 * q),
                     tl.where(q < 2, 0.25 * (2 - q) * (2 - q) * (2 - q), 0.0))
        acc += tl.sum(w * tl.load(mass + j, mask=mj, other=0.0)[None, :], 1)
    tl.store(rho + i, acc, mask=i < n)


def case_sph():
    n = pick(16384, 100)
    pos = torch.rand(n, 4, device=ri(0, 2, 1).device)
    for BI, BJ, w in pick([(64, 64, 4), (32, 128, 4), (128, 32, 4)], [(32, 16, 2)]):
        sph_density[(cd(n, BI),)](pos, rn(n, dtype=f32).abs(), ze(n), n, 0.3, BI, BJ,
                                  num_warps=w)


@triton.jit
def lbm_d2q9(f, g, H, W, omega, B: tl.constexpr):
    # lattice Boltzmann: pull, collide, in one pass; planes of one direction each
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < H * W
    r, c = i // W, i % W
    P = H * W
    up, down = ((r + H - 1) % H) * W, ((r + 1) % H) * W
    left, right = (c + W - 1) % W, (c + 1) % W
    here = r * W
    f0 = tl.load(f + here + c, mask=m, other=0.0)
    f1 = tl.load(f + P + here + left, mask=m, other=0.0)
    f2 = tl.load(f + 2 * P + up + c, mask=m, other=0.0)
    f3 = tl.load(f + 3 * P + here + right, mask=m, other=0.0)
    f4 = tl.load(f + 4 * P + down + c, mask=m, other=0.0)
    f5 = tl.load(f + 5 * P + up + left, mask=m, other=0.0)
    f6 = tl.load(f + 6 * P + up + right, mask=m, other=0.0)
    f7 = tl.load(f + 7 * P + down + right, mask=m, other=0.0)
    f8 = tl.load(f + 8 * P + down + left, mask=m, other=0.0)
    rho = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8
    inv = 1.0 / tl.where(m, rho, 1.0)
    u = (f1 + f5 + f8 - f3 - f6 - f7) * inv
    v = (f2 + f5 + f6 - f4 - f7 - f8) * inv
    usq = 1.5 * (u * u + v * v)
    keep = 1.0 - omega
    a, b, d = omega * rho * 4.0 / 9.0, omega * rho / 9.0, omega * rho / 36.0
    tl.store(g + i, keep * f0 + a * (1 - usq), mask=m)
    tl.store(g + P + i, keep * f1 + b * (1 + 3 * u + 4.5 * u * u - usq), mask=m)
    tl.store(g + 2 * P + i, keep * f2 + b * (1 + 3 * v + 4.5 * v * v - usq), mask=m)
    tl.store(g + 3 * P + i, keep * f3 + b * (1 - 3 * u + 4.5 * u * u - usq), mask=m)
    tl.store(g + 4 * P + i, keep * f4 + b * (1 - 3 * v + 4.5 * v * v - usq), mask=m)
    e = u + v
    tl.store(g + 5 * P + i, keep * f5 + d * (1 + 3 * e + 4.5 * e * e - usq), mask=m)
    tl.store(g + 7 * P + i, keep * f7 + d * (1 - 3 * e + 4.5 * e * e - usq), mask=m)
    e = v - u
    tl.store(g + 6 * P + i, keep * f6 + d * (1 + 3 * e + 4.5 * e * e - usq), mask=m)
    tl.store(g + 8 * P + i, keep * f8 + d * (1 - 3 * e + 4.5 * e * e - usq), mask=m)


def case_lbm():
    H, W = pick((2000, 2048), (20, 24))
    f = rn(9, H, W, dtype=f32).abs() + 1
    for B, w in pick([(256, 4), (512, 4)], [(64, 2)]):
        lbm_d2q9[(cd(H * W, B),)](f, torch.empty_like(f), H, W, 1.2, B, num_warps=w)


@triton.jit
def red_black(u, rhs, H, W, h2, COLOR: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    # half of a Gauss-Seidel sweep, in place
    r = tl.program_id(1) * BH + tl.arange(0, BH)[:, None] + 1
    k = tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    c = 2 * k + 1 + (r + COLOR) % 2
    at = r * W + c
    m = (r < H - 1) & (c < W - 1)
    s = tl.load(u + at - W, mask=m, other=0.0) + tl.load(u + at + W, mask=m, other=0.0)
    s += tl.load(u + at - 1, mask=m, other=0.0) + tl.load(u + at + 1, mask=m, other=0.0)
    tl.store(u + at, 0.25 * (s - h2 * tl.load(rhs + at, mask=m, other=0.0)), mask=m)


def case_red_black():
    H, W = pick((4098, 4098), (34, 50))
    u, rhs = rn(H, W, dtype=f32), rn(H, W, dtype=f32)
    for color in (0, 1):
        for BH, BW, w in pick([(4, 128, 4), (1, 512, 4)], [(4, 16, 1)]):
            red_black[(cd(W // 2, BW), cd(H, BH))](u, rhs, H, W, 0.01, color, BH, BW, num_warps=w)


@triton.jit
def restrict_full(fine, coarse, n, B: tl.constexpr):
    # full weighting of a (2n+1)^2 grid to (n+1)^2
    i = tl.program_id(1) + 1
    j = tl.program_id(0) * B + tl.arange(0, B) + 1
    N = 2 * n + 1
    m = j < n
    acc = tl.zeros((B,), tl.float32)
    for di in tl.static_range(-1, 2):
        for dj in tl.static_range(-1, 2):
            w = (2 - (di != 0)) * (2 - (dj != 0)) / 16.0
            acc += w * tl.load(fine + (2 * i + di) * N + 2 * j + dj, mask=m, other=0.0)
    tl.store(coarse + i * (n + 1) + j, acc, mask=m)


def case_restrict():
    n = pick(2048, 20)
    for B, w in pick([(256, 4), (1024, 4)], [(16, 1)]):
        restrict_full[(cd(n - 1, B), n - 1)](rn(2 * n + 1, 2 * n + 1, dtype=f32),
                                             ze(n + 1, n + 1), n, B, num_warps=w)


@triton.jit
def minmod(a, b):
    return tl.where(a * b <= 0, 0.0, tl.where(tl.abs(a) < tl.abs(b), a, b))


@triton.jit
def muscl(u, out, n, lam, B: tl.constexpr):
    # Burgers' equation, limited slopes, Rusanov's flux
    i = tl.program_id(0) * B + tl.arange(0, B)
    row = tl.program_id(1) * n
    m = (i >= 2) & (i < n - 2)
    u0 = tl.load(u + row + i - 2, mask=m, other=0.0)
    u1 = tl.load(u + row + i - 1, mask=m, other=0.0)
    u2 = tl.load(u + row + i, mask=m, other=0.0)
    u3 = tl.load(u + row + i + 1, mask=m, other=0.0)
    u4 = tl.load(u + row + i + 2, mask=m, other=0.0)
    s1, s2, s3 = minmod(u1 - u0, u2 - u1), minmod(u2 - u1, u3 - u2), minmod(u3 - u2, u4 - u3)
    l, r = u1 + 0.5 * s1, u2 - 0.5 * s2
    fl = 0.25 * (l * l + r * r) - 0.5 * tl.maximum(tl.abs(l), tl.abs(r)) * (r - l)
    l, r = u2 + 0.5 * s2, u3 - 0.5 * s3
    fr = 0.25 * (l * l + r * r) - 0.5 * tl.maximum(tl.abs(l), tl.abs(r)) * (r - l)
    tl.store(out + row + i, u2 - lam * (fr - fl), mask=m)


def case_muscl():
    R, n = pick((512, 16384), (3, 100))
    for B, w in pick([(512, 4), (1024, 4)], [(64, 1)]):
        muscl[(cd(n, B), R)](rn(R, n, dtype=f32), ze(R, n), n, 0.1, B, num_warps=w)


@triton.jit
def knn(q, p, dist, idx, n, m, K: tl.constexpr, BQ: tl.constexpr, BP: tl.constexpr):
    # the K nearest points of each query, kept as 64-bit keys of distance and index
    i = tl.program_id(0) * BQ + tl.arange(0, BQ)
    qx = tl.load(q + 3 * i, mask=i < n, other=0.0)
    qy = tl.load(q + 3 * i + 1, mask=i < n, other=0.0)
    qz = tl.load(q + 3 * i + 2, mask=i < n, other=0.0)
    best = tl.full((BQ, K), 0x7f80000000000000, tl.int64)
    for start in range(0, m, BP):
        j = start + tl.arange(0, BP)
        dx = qx[:, None] - tl.load(p + 3 * j, mask=j < m, other=1e18)[None, :]
        dy = qy[:, None] - tl.load(p + 3 * j + 1, mask=j < m, other=1e18)[None, :]
        dz = qz[:, None] - tl.load(p + 3 * j + 2, mask=j < m, other=1e18)[None, :]
        d = dx * dx + dy * dy + dz * dz
        key = (d.to(tl.int32, bitcast=True).to(tl.int64) << 32) | j[None, :].to(tl.int64)
        near = -tl.topk(-key, K)
        best = -tl.topk(-tl.reshape(tl.join(best, near), (BQ, 2 * K)), K)
    k = tl.arange(0, K)
    at = i[:, None] * K + k[None, :]
    tl.store(dist + at, (best >> 32).to(tl.int32).to(tl.float32, bitcast=True),
             mask=(i < n)[:, None])
    tl.store(idx + at, (best & 0x7fffffff).to(tl.int32), mask=(i < n)[:, None])


def case_knn():
    n, m = pick((8192, 8192), (20, 150))
    for K, BQ, BP, w in pick([(8, 16, 128, 4), (16, 8, 256, 4)], [(4, 8, 32, 1), (8, 4, 64, 4)]):
        knn[(cd(n, BQ),)](rn(n, 3, dtype=f32), rn(m, 3, dtype=f32), ze(n, K), ze(n, K, dtype=i32),
                          n, m, K, BQ, BP, num_warps=w)


@triton.jit
def ray_boxes(org, dir, boxes, hit, near, n, nb, BR: tl.constexpr, BB: tl.constexpr):
    # slabs; the first box along each ray, the lower number of two at the same distance
    i = tl.program_id(0) * BR + tl.arange(0, BR)
    m = i < n
    b = tl.arange(0, BB)
    best = tl.full((BR,), float("inf"), tl.float32)
    which = tl.full((BR,), -1, tl.int32)
    for start in range(0, nb, BB):
        mb = start + b < nb
        t0 = tl.zeros((BR, BB), tl.float32)
        t1 = tl.full((BR, BB), float("inf"), tl.float32)
        for a in tl.static_range(3):
            o = tl.load(org + 3 * i + a, mask=m, other=0.0)[:, None]
            inv = 1.0 / tl.load(dir + 3 * i + a, mask=m, other=1.0)[:, None]
            lo = tl.load(boxes + 6 * (start + b) + a, mask=mb, other=1.0)[None, :]
            hi = tl.load(boxes + 6 * (start + b) + 3 + a, mask=mb, other=-1.0)[None, :]
            u, v = (lo - o) * inv, (hi - o) * inv
            t0 = tl.maximum(t0, tl.minimum(u, v))
            t1 = tl.minimum(t1, tl.maximum(u, v))
        t = tl.where((t0 <= t1) & mb[None, :], t0, float("inf"))
        first, at = tl.min(t, 1, return_indices=True, return_indices_tie_break_left=True)
        which = tl.where(first < best, start + at, which)
        best = tl.minimum(best, first)
    tl.store(near + i, best, mask=m)
    tl.store(hit + i, which, mask=m)


def case_ray_boxes():
    n, nb = pick((65536, 1000), (50, 37))
    lo = rn(nb, 3, dtype=f32, scale=4.0)
    boxes = torch.cat([lo, lo + rn(nb, 3, dtype=f32).abs()], 1).contiguous()
    for BR, BB, w in pick([(64, 32, 4), (32, 64, 4), (128, 8, 4)], [(16, 16, 1)]):
        ray_boxes[(cd(n, BR),)](rn(n, 3, dtype=f32), rn(n, 3, dtype=f32), boxes,
                                ze(n, dtype=i32), ze(n), n, nb, BR, BB, num_warps=w)


@triton.jit
def cross(ax, ay, az, bx, by, bz):
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@triton.jit
def load3(p, i, m):
    return (tl.load(p + 3 * i, mask=m, other=0.0), tl.load(p + 3 * i + 1, mask=m, other=0.0),
            tl.load(p + 3 * i + 2, mask=m, other=0.0))


@triton.jit
def triangles(org, dir, va, vb, vc, t_out, uv, n, tris, B: tl.constexpr):
    # Moeller and Trumbore, a loop over all triangles, each a scalar
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    ox, oy, oz = load3(org, i, m)
    dx, dy, dz = load3(dir, i, m)
    best = tl.full((B,), 1e30, tl.float32)
    bu = tl.zeros((B,), tl.float32)
    bv = tl.zeros((B,), tl.float32)
    for k in range(tris):
        ax, ay, az = load3(va, k, True)
        bx, by, bz = load3(vb, k, True)
        cx, cy, cz = load3(vc, k, True)
        e1x, e1y, e1z = bx - ax, by - ay, bz - az
        e2x, e2y, e2z = cx - ax, cy - ay, cz - az
        px, py, pz = cross(dx, dy, dz, e2x, e2y, e2z)
        det = e1x * px + e1y * py + e1z * pz
        inv = 1.0 / tl.where(tl.abs(det) > 1e-8, det, 1.0)
        sx, sy, sz = ox - ax, oy - ay, oz - az
        u = (sx * px + sy * py + sz * pz) * inv
        qx, qy, qz = cross(sx, sy, sz, e1x, e1y, e1z)
        v = (dx * qx + dy * qy + dz * qz) * inv
        t = (e2x * qx + e2y * qy + e2z * qz) * inv
        hit = (tl.abs(det) > 1e-8) & (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 1e-4) & (t < best)
        best = tl.where(hit, t, best)
        bu = tl.where(hit, u, bu)
        bv = tl.where(hit, v, bv)
    tl.store(t_out + i, best, mask=m)
    tl.store(uv + 2 * i, bu, mask=m)
    tl.store(uv + 2 * i + 1, bv, mask=m)


def case_triangles():
    n, tris = pick((1 << 17, 200), (60, 7))
    v = [rn(tris, 3, dtype=f32) for _ in range(3)]
    for B, w in pick([(128, 4), (512, 4)], [(64, 2)]):
        triangles[(cd(n, B),)](rn(n, 3, dtype=f32), rn(n, 3, dtype=f32), *v, ze(n), ze(n, 2), n,
                               tris, B, num_warps=w)


@triton.jit
def jacobi_eigen(a, w, n, SWEEPS: tl.constexpr, B: tl.constexpr):
    # eigenvalues of symmetric 3x3 matrices in double precision, one each thread
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    a00 = tl.load(a + 6 * i, mask=m, other=1.0)
    a01 = tl.load(a + 6 * i + 1, mask=m, other=0.0)
    a02 = tl.load(a + 6 * i + 2, mask=m, other=0.0)
    a11 = tl.load(a + 6 * i + 3, mask=m, other=2.0)
    a12 = tl.load(a + 6 * i + 4, mask=m, other=0.0)
    a22 = tl.load(a + 6 * i + 5, mask=m, other=3.0)
    for _ in range(SWEEPS):
        for k in tl.static_range(3):
            # rotates the first two axes, then permutes them
            zero = tl.abs(a01) < 1e-300
            tau = (a11 - a00) / (2.0 * tl.where(zero, 1.0, a01))
            t = tl.where(tau >= 0, 1.0, -1.0) / (tl.abs(tau) + tl.sqrt(1.0 + tau * tau))
            t = tl.where(zero, 0.0, t)
            c = 1.0 / tl.sqrt(1.0 + t * t)
            s = t * c
            b02, b12 = c * a02 - s * a12, s * a02 + c * a12
            b00, b11 = a00 - t * a01, a11 + t * a01
            a00, a11, a22, a01, a02, a12 = b11, a22, b00, b12, b02 * 0.0, b02
    tl.store(w + 3 * i, tl.minimum(a00, tl.minimum(a11, a22)), mask=m)
    tl.store(w + 3 * i + 1, a00 + a11 + a22, mask=m)
    tl.store(w + 3 * i + 2, tl.maximum(a00, tl.maximum(a11, a22)), mask=m)


def case_eigen():
    n = pick(1 << 18, 100)
    for B, w in pick([(128, 4), (256, 4)], [(32, 1)]):
        jacobi_eigen[(cd(n, B),)](rn(n, 6, dtype=f64), ze(n, 3, dtype=f64), n, 4, B, num_warps=w)


@triton.jit
def cg_step(val, col, x, r, p, ap, rho, n, NNZ: tl.constexpr, B: tl.constexpr):
    # of conjugate gradients in double precision: A p, and p . A p by an atomic
    i = tl.program_id(0) * B + tl.arange(0, B)
    k = tl.arange(0, NNZ)
    m = i < n
    at = i[:, None] * NNZ + k[None, :]
    v = tl.load(val + at, mask=m[:, None], other=0.0)
    c = tl.load(col + at, mask=m[:, None], other=0)
    y = tl.sum(v * tl.load(p + c, mask=m[:, None], other=0.0), 1)
    tl.store(ap + i, y, mask=m)
    alpha = tl.load(rho) / tl.load(rho + 1)
    pi = tl.load(p + i, mask=m, other=0.0)
    tl.store(x + i, tl.load(x + i, mask=m, other=0.0) + alpha * pi, mask=m)
    ri_ = tl.load(r + i, mask=m, other=0.0) - alpha * y
    tl.store(r + i, ri_, mask=m)
    tl.atomic_add(rho + 2, tl.sum(ri_ * ri_))
    tl.atomic_add(rho + 3, tl.sum(pi * y))


def case_cg():
    n = pick(1 << 19, 100)
    for NNZ, B, w in pick([(8, 128, 4), (32, 32, 4)], [(4, 32, 1), (8, 16, 2)]):
        cg_step[(cd(n, B),)](rn(n, NNZ, dtype=f64), ri(0, n, n, NNZ), rn(n, dtype=f64),
                             rn(n, dtype=f64), rn(n, dtype=f64), ze(n, dtype=f64),
                             torch.ones(4, dtype=f64, device=ri(0, 2, 1).device), n, NNZ, B,
                             num_warps=w)


if __name__ == "__main__":
    run(globals())

"""Arguments and references of recurrent.tk, rows.tk and conv.tk."""
import math

import torch

from data import BF16, F16, F32, FLOOR, U, Data, cdiv, dot, rounded, some


# ---------------------------------------------------------------- recurrent.tk

def chunk_state(t, batch, L, heads, P=64, S=128, chunk=256):
    x = t.randn(batch, L, heads, P, dtype=BF16)
    b = t.randn(batch, L, S, dtype=BF16)
    dt = t.rand(batch, heads, L, low=0.1)
    log = (-0.05 * t.rand(batch, heads, L)).view(batch, heads, -1, chunk).cumsum(3)
    log = log.view(batch, heads, L).contiguous()
    chunks = L // chunk
    out = t.empty(batch, chunks, heads, P, S, dtype=F32)
    pick = some(batch, 2, t.device)

    def wants():
        g = log[pick].view(-1, heads, chunks, chunk).double()
        w = torch.exp(g[..., -1:] - g) * dt[pick].view_as(g).double()
        bb = b[pick].double().view(-1, 1, chunks, chunk, S) * w[..., None]
        xx = x[pick].double().view(-1, chunks, chunk, heads, P).permute(0, 3, 1, 4, 2)
        want, bound = dot(xx, bb, U[BF16] + 2.0**-20)
        return [("state", lambda q: out[pick], want.transpose(1, 2), bound.transpose(1, 2))]
    return Data(dict(x_ptr=x, b_ptr=b, dt_ptr=dt, sum_ptr=log, out_ptr=out, L=L,
                     heads=heads), [out],
                lambda q: (P // q["BLOCK_P"] * (S // q["BLOCK_S"]), chunks, batch * heads),
                2 * batch * L * heads * P * S, wants)


def lower(n, device):
    return torch.ones(n, n, device=device, dtype=torch.float64).tril()


def linear_fwd(t, H, T, K=128, V=128, chunk=64):
    q, k = (t.randn(H, T, K, scale=K**-0.5) for _ in range(2))
    v, o, scale = t.randn(H, T, V), t.empty(H, T, V), 0.5
    pick = some(H, 2, t.device)

    def wants():
        # every weight, in a chunk or through the state, is rounded to fp16 once
        want, size = [], []
        for h in pick:
            for store, a, b, c in ((want, q[h], k[h], v[h]),
                                   (size, q[h].abs(), k[h].abs(), v[h].abs())):
                w = (a.double() @ b.double().t()).tril()
                store.append(w @ c.double())
        want, size = torch.stack(want) * scale, torch.stack(size) * scale
        bound = size * (U[F16] + 2.0**-24 * (T + K)) + FLOOR[F16] * chunk * 8
        return [("o", lambda q: o[pick], want, rounded(want, bound, F16))]
    return Data(dict(q_ptr=q, k_ptr=k, v_ptr=v, o_ptr=o, T=T, scale=scale), [o],
                lambda q: (V // q["BLOCK_V"], H), 4 * H * T * (K * V + 32 * (K + V)), wants)


def linear_bwd(t, H, T, D=64):
    q, k, v, do = (t.randn(H, T, D, dtype=BF16, scale=D**-0.5) for _ in range(4))
    dq, dk, dv = (t.empty(H, T, D, dtype=BF16) for _ in range(3))
    pick = some(H, 2, t.device)
    states = {}

    def state(q):  # at the beginning of the chunks of this configuration
        c = q["CHUNK"]
        if c not in states:
            kv = k.view(H, -1, c, D).float().transpose(2, 3) @ v.view(H, -1, c, D).float()
            begin = kv.cumsum(1) - kv
            states[c] = begin.to(BF16)
        return states[c]

    def wants():
        a, b, c, d = (x[pick].double() for x in (q, k, v, do))

        def grads(a, b, c, d):
            qk, dp = (a @ b.mT).tril(), (d @ c.mT).tril()
            return dp @ b, dp.mT @ a, qk.mT @ d
        # weights and states are rounded once; the state that is given in fp32 before
        rel = U[BF16] + 2.0**-24 * (2 * T + D)
        return [(n, lambda q, x=x: x[pick], w, rounded(w, s * rel, BF16)) for n, x, w, s in
                zip(("dq", "dk", "dv"), (dq, dk, dv), grads(a, b, c, d),
                    grads(a.abs(), b.abs(), c.abs(), d.abs()))]
    return Data(dict(q_ptr=q, k_ptr=k, v_ptr=v, do_ptr=do, state_ptr=state, dq_ptr=dq,
                     dk_ptr=dk, dv_ptr=dv, T=T), [dq, dk, dv], lambda q: (H,),
                2 * H * T * D * (4 * D + 5 * 64), wants)


def delta_fwd(t, H, T, K=128, V=128, chunk=64):
    q, k, w = (t.randn(H, T, K, dtype=BF16, scale=s * K**-0.5) for s in (1, 1, 0.25))
    u, o = t.randn(H, T, V, dtype=BF16), t.empty(H, T, V, dtype=BF16)
    g = (-0.1 * t.rand(H, T)).view(H, -1, chunk).cumsum(2).view(H, T).contiguous()
    pick = some(H, 2, t.device)

    def wants():
        """The recurrence in fp64, and beside it what the state may be off (es)."""
        ub, uf = U[BF16], 2.0**-24 * (K + chunk)
        s = torch.zeros(len(pick), K, V, dtype=torch.float64, device=t.device)
        es, want, bound = torch.zeros_like(s), [], []
        low = lower(chunk, t.device)
        for i in range(0, T, chunk):
            a, b, c, d = (x[pick, i:i + chunk].double() for x in (q, k, w, u))
            gg = g[pick, i:i + chunk].double()
            last = gg[:, -1:, None]
            e1 = es + ub * (s.abs() + es)
            fresh = d - c @ s
            ef = c.abs() @ (e1 + uf * s.abs()) + 2.0**-23 * d.abs()
            weight = torch.exp(gg[:, :, None] - gg[:, None, :]) * low
            p = (a @ b.mT) * weight
            size = (a.abs() @ b.abs().mT) * weight
            decay = torch.exp(gg)[..., None]
            want.append((a @ s) * decay + p @ fresh)
            bound.append((a.abs() @ (e1 + uf * s.abs())) * decay + p.abs() @ (
                ef * (1 + ub) + ub * fresh.abs()) + (p.abs() * ub + size * 2 * uf)
                @ (fresh.abs() + ef))
            keep = torch.exp(last - gg[..., None])
            s_new = s * torch.exp(last) + b.mT @ (fresh * keep)
            es = es * torch.exp(last) + b.abs().mT @ ((ef + (ub + uf) * fresh.abs()) * keep) \
                + 2.0**-22 * s_new.abs()
            s = s_new
        want, bound = torch.cat(want, 1), torch.cat(bound, 1)
        return [("o", lambda q: o[pick], want, rounded(want, bound, BF16))]
    return Data(dict(q_ptr=q, k_ptr=k, w_ptr=w, u_ptr=u, g_ptr=g, o_ptr=o, T=T), [o],
                lambda q: (V // q["BLOCK_V"], H),
                2 * H * T * (3 * K * V + chunk * (K + V)), wants)


# ---------------------------------------------------------------- rows.tk

def norm_fwd(t, rows, cols):
    x, w, b = t.randn(rows, cols), t.randn(cols, dtype=F32), t.randn(cols, dtype=F32)
    y, eps, pick = t.empty(rows, cols), 1e-5, some(rows, 64, t.device)

    def wants():
        a = x[pick].double()
        want = torch.nn.functional.layer_norm(a, (cols,), w.double(), b.double(), eps)
        size = (want - b.double()).abs() + w.double().abs() + b.double().abs()
        # E[x^2] - E[x]^2 of values about 0
        bound = size * 2.0**-24 * (cols // 1024 + 24)
        return [("y", lambda q: y[pick], want, rounded(want, bound, F16))]
    return Data(dict(x_ptr=x, w_ptr=w, b_ptr=b, y_ptr=y, cols=cols, eps=eps), [y],
                lambda q: (rows,), 8 * rows * cols, wants)


def norm_bwd(t, rows, cols):
    x, dy = (t.randn(rows, cols, dtype=BF16) for _ in range(2))
    mean = x.float().mean(1)
    rstd = torch.rsqrt(x.float().var(1, correction=0) + 1e-5)
    most = 64
    dw, db = (t.empty(most, cols, dtype=F32) for _ in range(2))

    def wants():
        hat = (x.double() - mean[:, None].double()) * rstd[:, None].double()
        part = dy.double() * hat
        rel = 2.0**-24 * (rows + 16)
        return [("dw", lambda q: dw[:q["PARTS"]].double().sum(0), part.sum(0),
                 part.abs().sum(0) * rel),
                ("db", lambda q: db[:q["PARTS"]].double().sum(0), dy.double().sum(0),
                 dy.double().abs().sum(0) * rel)]
    return Data(dict(dy_ptr=dy, x_ptr=x, mean_ptr=mean, rstd_ptr=rstd, dw_ptr=dw, db_ptr=db,
                     rows=rows, cols=cols), [dw, db],
                lambda q: (cdiv(cols, q["BLOCK_C"]), q["PARTS"]), 6 * rows * cols, wants)


def softmax_long(t, rows, cols):
    x, y = t.randn(rows, cols, dtype=BF16, scale=2.0), t.empty(rows, cols, dtype=BF16)
    pick = some(rows, 64, t.device)

    def wants():
        a = x[pick].double()
        want = torch.softmax(a, 1)
        bound = want * (2.0**-24 * cols / 8 + 2.0**-22 * (4 + (a.amax(1, True) - a)))
        return [("y", lambda q: y[pick], want, rounded(want, bound, BF16))]
    return Data(dict(x_ptr=x, y_ptr=y, cols=cols), [y], lambda q: (rows,), 5 * rows * cols,
                wants)


def cross_entropy(t, rows, cols):
    x, dx = t.randn(rows, cols, dtype=BF16, scale=2.0), t.empty(rows, cols, dtype=BF16)
    label = t.ints(0, cols, rows, dtype=torch.int64)
    loss, weight, pick = t.empty(rows, dtype=F32), 0.125, some(rows, 64, t.device)

    def wants():
        a, hit = x[pick].double(), label[pick]
        lse = torch.logsumexp(a, 1, True)
        p = torch.exp(a - lse)
        d = p.scatter_add(1, hit[:, None], -torch.ones_like(lse)) * weight
        e = 2.0**-24 * cols / 8 + 2.0**-21 + 2.0**-23 * lse.abs()
        off = weight * p * (e + 2.0**-22 * (a - lse).abs()) + 2.0**-24 * d.abs()
        own = a.gather(1, hit[:, None])
        return [("dx", lambda q: dx[pick], d, rounded(d, off, BF16)),
                ("loss", lambda q: loss[pick, None], lse - own,
                 e + 2.0**-23 * (lse.abs() + own.abs()))]
    return Data(dict(x_ptr=x, dx_ptr=dx, label_ptr=label, loss_ptr=loss, cols=cols,
                     weight=weight), [dx, loss], lambda q: (rows,), 7 * rows * cols, wants)


def top1(t, rows, cols):
    x = t.randn(rows, cols, dtype=F32)
    value, index = t.empty(rows, dtype=F32), t.empty(rows, dtype=torch.int32)

    def wants():
        v, i = x.max(1)
        none = torch.zeros(rows, dtype=torch.float64, device=t.device)
        # of equal ones any will do
        return [("value", value, v.double(), none),
                ("index", lambda q: x.gather(1, index[:, None].clamp(0, cols - 1).long())[:, 0]
                 - (index < 0) * math.inf if (index < 0).any() else
                 x.gather(1, index[:, None].clamp(0, cols - 1).long())[:, 0], v.double(),
                 none)]
    return Data(dict(x_ptr=x, value_ptr=value, index_ptr=index, rows=rows, cols=cols),
                [value, index], lambda q: (cdiv(rows, q["ROWS"]),), rows * cols, wants)


def count(t, n, each):
    x = t.ints(0, 256, n, dtype=torch.uint8)
    out = t.empty(256, dtype=torch.int32)

    def wants():
        want = sum(torch.bincount(p.long(), minlength=256) for p in x.split(1 << 24))
        return [("out", out, want.double(), torch.zeros_like(want).double())]
    return Data(dict(x_ptr=x, out_ptr=out, n=n, each=each), [out],
                lambda q: (cdiv(n, each),), n, wants, [out])


# ---------------------------------------------------------------- conv.tk

def conv2d(t, batch, H, W, C=128, F=128, R=3, S=3):
    x, w = t.randn(batch, H, W, C), t.randn(R * S * C, F, scale=(R * S * C)**-0.5)
    y, pick = t.empty(batch, H, W, F), some(batch, 2, t.device)

    def wants():
        a = torch.nn.functional.pad(x[pick].double(), (0, 0, S // 2, S // 2, R // 2, R // 2))
        a = torch.cat([a[:, r:r + H, s:s + W] for r in range(R) for s in range(S)], 3)
        want, bound = dot(a, w)
        return [("y", lambda q: y[pick], want, rounded(want, bound, F16))]
    return Data(dict(x_ptr=x, w_ptr=w, y_ptr=y, batch=batch, H=H, W=W, F=F), [y],
                lambda q: (cdiv(batch * H * W, q["BLOCK_M"]), cdiv(F, q["BLOCK_N"])),
                2 * batch * H * W * F * C * R * S, wants)


def conv1d(t, batch, T, C, width=4):
    x, w = t.randn(batch, T, C, dtype=BF16), t.randn(width, C, dtype=BF16)
    bias, y = t.randn(C, dtype=BF16), t.empty(batch, T, C, dtype=BF16)
    pick = some(batch, 1, t.device)

    def wants():
        a = torch.nn.functional.pad(x[pick].double(), (0, 0, width - 1, 0))
        terms = [a[:, i:i + T] * w[i].double() for i in range(width)]
        z = bias.double() + sum(terms)
        bound = (bias.double().abs() + sum(i.abs() for i in terms)) * 2.0**-22
        want = z * torch.sigmoid(z)
        return [("y", lambda q: y[pick], want, rounded(want, 1.1 * bound + 2.0**-21
                                                       * want.abs(), BF16))]
    return Data(dict(x_ptr=x, w_ptr=w, bias_ptr=bias, y_ptr=y, T=T, C=C), [y],
                lambda q: (C // q["BLOCK_C"], cdiv(T, q["STRETCH"]), batch),
                2 * batch * T * C * width, wants)

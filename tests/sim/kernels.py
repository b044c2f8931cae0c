"""Kernels of kernels_dsl on a simulated block, against plain loops: pipelined products,
attention and its gradients with a block or two of work, at several numbers of warps and stages.
kernels.py SDC FOLDER"""
import math
import random
import struct
import sys

from tiles import compile
import ptx

DSL = sys.argv[2]


def sixteen(n):
    return "i32:16" if n % 16 == 0 else "i32"


def build(name, kernel, spec, warps, stages, targets=("sm_80", "sm_90")):
    return compile(f"{DSL}/{name}.tk", "-k", kernel, "-s", spec, "--num-warps", str(warps),
                   "--num-stages", str(stages), target=random.choice(targets))


def matmul(m, n, k, block, warps, stages, turned="", elem="fp16"):
    """turned: which operand lies column by column."""
    bm, bn, bk = block
    code, size = ("e", 2) if elem == "fp16" else ("f", 4)
    strides = {x: [f"{x}_stride_{d}=i32:16" for d in dims]
               for x, dims in (("a", "mk"), ("b", "kn"), ("c", "mn"))}
    for x, s in strides.items():
        s[0 if x == turned else 1] = s[0 if x == turned else 1].replace("i32:16", "1")
    spec = (f"a_ptr=*{elem}:16,b_ptr=*{elem}:16,c_ptr=*fp32:16,bias_ptr=None,M={sixteen(m)},"
            f"N={sixteen(n)},K={sixteen(k)}," + ",".join(sum(strides.values(), [])) +
            f",BLOCK_M={bm},BLOCK_N={bn},BLOCK_K={bk},GROUP_M=8,HAS_BIAS=False,"
            'ACT="none",PRECISION="ieee"')
    text = build("matmul", "matmul", spec, warps, stages)
    ld = 128
    memory = bytearray(2 * ld * ld * size + ld * ld * 4)
    tiles = []
    for i, x in enumerate("ab"):
        t = [[random.randint(-4, 4) / 4 for _ in range(ld)] for _ in range(ld)]
        flat = list(zip(*t)) if x == turned else t
        struct.pack_into(f"<{ld * ld}{code}", memory, i * ld * ld * size,
                         *(v for row in flat for v in row))
        tiles.append(t)
    at_c = 2 * ld * ld * size
    block = ptx.run(text, "matmul", [0, ld * ld * size, at_c, m, n, k, ld, ld, ld], memory)
    for i in range(min(m, bm)):
        for j in range(min(n, bn)):
            want = sum(tiles[0][i][x] * tiles[1][x][j] for x in range(k))
            got, = struct.unpack_from("<f", memory, at_c + 4 * (i * ld + j))
            assert abs(got - want) < 1e-3, (i, j, got, want)
    return block.barriers


def attention(m, n, dim, block, causal, warps, stages):
    bm, bn = block
    strides = "".join(f",{x}_stride_b=i32:16,{x}_stride_h=i32:16,{x}_stride_{r}=i32:16,"
                      f"{x}_stride_d=1" for x, r in zip("qkvo", "mnnm"))
    spec = ("q_ptr=*fp16:16,k_ptr=*fp16:16,v_ptr=*fp16:16,o_ptr=*fp16:16,lse_ptr=*fp32:16,"
            f"scale=fp32{strides},H=i32,M={sixteen(m)},N={sixteen(n)},"
            f"cu_q_ptr=None,cu_k_ptr=None,p=fp32,seed=i32,HEAD_DIM={dim},"
            f"BLOCK_M={bm},BLOCK_N={bn},CAUSAL={causal},GROUP=1")
    text = build("flash_attention", "flash_attention_fwd", spec, warps, stages)
    rows = max(m, n)
    size = rows * dim * 2
    memory = bytearray(4 * size + 4 * rows)
    tiles = []
    for i in range(3):
        flat = [random.gauss(0, 1) for _ in range(rows * dim)]
        struct.pack_into(f"<{rows * dim}e", memory, i * size, *flat)
        flat = struct.unpack_from(f"<{rows * dim}e", memory, i * size)
        tiles.append([flat[r * dim:(r + 1) * dim] for r in range(rows)])
    q, k, v = tiles
    scale = dim ** -0.5
    args = [i * size for i in range(5)] + [ptx.f32_bits(scale)] + [rows * dim, rows * dim, dim] * 4
    block = ptx.run(text, "flash_attention_fwd", args + [1, m, n, 0, 0], memory)
    for i in range(min(m, bm)):
        seen = min(n, i + n - m + 1) if causal else n
        s = [scale * sum(x * y for x, y in zip(q[i], k[j])) for j in range(seen)]
        p = [math.exp(x - max(s)) for x in s]
        got = struct.unpack_from(f"<{dim}e", memory, 3 * size + 2 * i * dim)
        for d in range(dim):
            want = sum(x * v[j][d] for j, x in enumerate(p)) / sum(p)
            assert abs(got[d] - want) < 4e-3, (i, d, got[d], want)
    return block.barriers


def weights(q, k, v, do, scale, causal):
    """Each row's log of the sum of exponentials and delta, the weights, their gradients."""
    m, n, rows = len(q), len(k), []
    for i in range(m):
        seen = min(n, i + n - m + 1) if causal else n
        s = [scale * sum(x * y for x, y in zip(q[i], k[j])) for j in range(seen)]
        lse = max(s) + math.log(sum(math.exp(x - max(s)) for x in s))
        w = [math.exp(x - lse) for x in s] + [0] * (n - seen)
        dw = [sum(x * y for x, y in zip(do[i], row)) for row in v]
        delta = sum(a * b for a, b in zip(w, dw))
        rows.append((lse, delta, w, [a * (b - delta) for a, b in zip(w, dw)]))
    return rows


def place_of_sum(row, col, dim):
    """Of an element of dq_sum, which lies in tiles of 16 x 8."""
    tile = row // 16 * (dim // 8) + col // 8
    return tile * 128 + row % 8 * 16 + col % 8 // 2 * 4 + row % 16 // 8 * 2 + col % 2


def gradients(m, n, dim, block, causal, warps, stages, late=False):
    """The first program's: dk and dv of its keys, and what it adds to dq."""
    bm, bn = block
    tensors = ("q", "k", "v", "do", "dk", "dv")
    strides = "".join(f",{x}_stride_b=i32:16,{x}_stride_h=i32:16,{x}_stride_{r}=i32:16,"
                      f"{x}_stride_d=1" for x, r in zip(tensors, "mnnmnn"))
    spec = (",".join(f"{x}_ptr=*fp16:16" for x in tensors) +
            ",lse2_ptr=*fp32:16,delta_ptr=*fp32:16,dq_sum_ptr=*fp32:16,scale=fp32" + strides +
            f",H=i32,M={sixteen(m)},N={sixteen(n)},cu_q_ptr=None,cu_k_ptr=None,p=fp32,seed=i32,"
            f"HEAD_DIM={dim},BLOCK_M={bm},BLOCK_N={bn},CAUSAL={causal},GROUP=1,"
            f"LATE={late}")
    text = build("flash_attention_bwd", "flash_attention_bwd", spec, warps, stages,
                 ["sm_80"])  # later ones add vectors, which the simulator does not know
    rows = (max(m, n) + 63) // 64 * 64
    size = rows * dim * 2
    at = {x: i * size for i, x in enumerate((*tensors, "lse2"))}
    at["delta"] = at["lse2"] + 4 * rows
    at["dq"] = at["delta"] + 4 * rows
    memory = bytearray(at["dq"] + 4 * rows * dim)
    tiles = {}
    for x, count in zip(tensors[:4], (m, n, n, m)):
        flat = [random.gauss(0, 1) for _ in range(count * dim)]
        struct.pack_into(f"<{count * dim}e", memory, at[x], *flat)
        flat = struct.unpack_from(f"<{count * dim}e", memory, at[x])
        tiles[x] = [flat[r * dim:(r + 1) * dim] for r in range(count)]
    q, k, v, do = (tiles[x] for x in tensors[:4])
    scale = dim ** -0.5
    known = weights(q, k, v, do, scale, causal)
    struct.pack_into(f"<{m}f", memory, at["lse2"], *(r[0] / math.log(2) for r in known))
    struct.pack_into(f"<{m}f", memory, at["delta"], *(-r[1] for r in known))
    args = [at[x] for x in (*tensors[:4], "lse2", "delta", "dk", "dv", "dq")]
    args += [ptx.f32_bits(scale)] + [rows * dim, rows * dim, dim] * 6 + [1, m, n, 0, 0]
    block = ptx.run(text, "flash_attention_bwd", args, memory)
    keys = range(min(n, bn))
    for j in keys:
        dk, dv = (struct.unpack_from(f"<{dim}e", memory, at[x] + 2 * j * dim)
                  for x in ("dk", "dv"))
        for d in range(dim):
            want = scale * sum(r[3][j] * q[i][d] for i, r in enumerate(known))
            assert abs(dk[d] - want) < 1e-2, ("dk", j, d, dk[d], want)
            want = sum(r[2][j] * do[i][d] for i, r in enumerate(known))
            assert abs(dv[d] - want) < 1e-2, ("dv", j, d, dv[d], want)
    dq = struct.unpack_from(f"<{rows * dim}f", memory, at["dq"])
    for i, row in enumerate(known):
        for d in range(dim):
            want = sum(row[3][j] * k[j][d] for j in keys)
            got = dq[place_of_sum(i, d, dim)]
            assert abs(got - want) < 2e-2, ("dq", i, d, got, want)
    return block.barriers


def softmax(cols, width, warps):
    spec = f"*fp32:16,*fp32:16,i32,i32,i32,i32,{width}"
    x = [random.gauss(0, 1) for _ in range(width)]
    memory = bytearray(8 * width)
    struct.pack_into(f"<{width}f", memory, 0, *x)
    block = ptx.run(build("softmax", "softmax", spec, warps, 1), "softmax",
                    [0, 4 * width, width, width, 1, cols], memory)
    p = [math.exp(v - max(x[:cols])) for v in x[:cols]]
    for got, e in zip(struct.unpack_from(f"<{cols}f", memory, 4 * width), p):
        assert abs(got - e / sum(p)) < 1e-6
    return block.barriers


def odd_function(name, ulps, width):
    """erf or tanh of numbers of all sizes, NaN and infinities among them: within so many ulp, the
    simulator's 2^x being exact."""
    op = "erf %v" if name == "erf" else f'libm %v {{fn="{name}"}}'
    source = f"""kernel @odd(%x: ptr<f32> {{div=16}}, %y: ptr<f32> {{div=16}}) {{warps=4, stages=1}} {{
  %i = arange {{start=0}} : tile<{width}xi32>
  %p = splat %x : tile<{width}xptr<f32>>
  %a = addptr %p, %i : tile<{width}xptr<f32>>
  %v = load %a : tile<{width}xf32>
  %e = {op} : tile<{width}xf32>
  %q = splat %y : tile<{width}xptr<f32>>
  %b = addptr %q, %i : tile<{width}xptr<f32>>
  store %b, %e
  return
}}
"""
    x = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, 3.9, 4.1, -1.0, 0.99999994]
    x += [random.choice((-1, 1)) * 2.0 ** random.uniform(-14, 2.2) for _ in range(width - len(x))]
    memory = bytearray(8 * width)
    struct.pack_into(f"<{width}f", memory, 0, *x)
    x = struct.unpack_from(f"<{width}f", memory, 0)
    block = ptx.run(compile(source, target=random.choice(("sm_80", "sm_90"))), "odd",
                    [0, 4 * width], memory)
    for v, got in zip(x, struct.unpack_from(f"<{width}f", memory, 4 * width)):
        want = getattr(math, name)(v)
        ulp = 2.0 ** max(math.frexp(want)[1] - 24, -149)
        near = abs(got - want) <= ulps * ulp and math.copysign(1, got) == math.copysign(1, want)
        assert near or want != want and got != got, (v, got, want)
    return block.barriers


def check(fn, *args, barriers=None):
    met = fn(*args)
    print(fn.__name__, *args, "barriers:", met)
    if barriers is not None and met > barriers:
        sys.exit(f"at most {barriers} are needed")


random.seed(7)
# a barrier a step, and two around the tile's way out
check(matmul, 64, 64, 128, (64, 64, 32), 4, 3, barriers=6)
check(matmul, 64, 64, 96, (64, 64, 32), 4, 2, barriers=5)
check(matmul, 64, 64, 96, (64, 32, 32), 2, 4, "b", barriers=5)
check(matmul, 64, 32, 128, (64, 32, 32), 1, 7)
check(matmul, 50, 60, 70, (64, 64, 32), 4, 2)
check(matmul, 64, 64, 96, (64, 64, 32), 8, 1, "a", barriers=8)
check(matmul, 32, 64, 64, (32, 64, 32), 4, 3, "", "fp32")
check(attention, 64, 64, 32, (64, 32), False, 4, 3)
check(attention, 64, 128, 64, (64, 32), True, 4, 2)
check(attention, 50, 90, 32, (64, 32), False, 4, 3)
check(attention, 32, 64, 64, (32, 64), False, 2, 1)
check(attention, 64, 96, 32, (16, 32), False, 4, 4)
check(gradients, 64, 64, 32, (32, 64), False, 4, 2)
check(gradients, 64, 96, 64, (32, 64), True, 4, 3)
check(gradients, 50, 70, 32, (32, 32), False, 2, 2)
check(gradients, 150, 64, 32, (32, 64), False, 4, 3, True)
check(gradients, 96, 96, 32, (32, 32), True, 4, 2, True)
check(gradients, 128, 128, 32, (128, 128), True, 8, 2)  # two loops with layouts of their own
check(odd_function, "erf", 1.2, 1024)
check(odd_function, "tanh", 2, 1024)
# each of the two reductions has one of its own; none is added
check(softmax, 1000, 1024, 4, barriers=2)
check(softmax, 2000, 2048, 8, barriers=2)

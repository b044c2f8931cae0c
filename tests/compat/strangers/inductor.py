"""Fused loops as a compiler of graphs writes them: points, reductions in one tile and in a loop, with
divided indices, masks that are always true, and hints for the cache.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import bf16, f32, pick, ri, rn, ze, cd, run


@triton.jit
def triton_poi_fused_add_gelu_mul_0(in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel,
                                    XBLOCK: tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x2 = xindex
    x0 = xindex % 3072
    tmp0 = tl.load(in_ptr0 + (x2), xmask).to(tl.float32)
    tmp1 = tl.load(in_ptr1 + (x0), xmask, eviction_policy="evict_last").to(tl.float32)
    tmp8 = tl.load(in_ptr2 + (x2), xmask).to(tl.float32)
    tmp2 = tmp0 + tmp1
    tmp3 = 0.5
    tmp4 = tmp2 * tmp3
    tmp5 = 0.7071067811865476
    tmp6 = tl.math.erf(tmp2 * tmp5)
    tmp7 = tmp4 * (tmp6 + 1.0)
    tmp9 = tmp7 * tmp8
    tl.store(out_ptr0 + (x2), tmp9, xmask)


def case_poi_gelu():
    R = pick(8192, 3)
    a, b, c = rn(R, 3072), rn(3072), rn(R, 3072)
    for X, w in ((1024, 4), (512, 8)):
        triton_poi_fused_add_gelu_mul_0[(cd(R * 3072, X),)](
            a, b, c, torch.empty_like(a), R * 3072, XBLOCK=X, num_warps=w, num_stages=1)


@triton.jit
def triton_poi_fused_cat_clone_1(in_ptr0, in_ptr1, out_ptr0, ks0, ks1, xnumel,
                                 XBLOCK: tl.constexpr):
    # cat of two along the middle dimension, the inner one upside down
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x1 = (xindex // ks0) % (2 * ks1)
    x0 = xindex % ks0
    x2 = xindex // (2 * ks0 * ks1)
    x3 = xindex
    tmp0 = x1
    tmp4 = tmp0 < ks1
    tmp5 = tl.load(in_ptr0 + (x0 + ks0 * x1 + ks0 * ks1 * x2), tmp4 & xmask,
                   eviction_policy="evict_last", other=0.0)
    tmp6 = tmp0 >= ks1
    tmp9 = tl.load(in_ptr1 + ((-1) + ks0 + ((-1) * x0) + ks0 * (x1 - ks1) + ks0 * ks1 * x2),
                   tmp6 & xmask, eviction_policy="evict_last", other=0.0)
    tmp10 = tl.where(tmp4, tmp5, tmp9)
    tl.store(out_ptr0 + (x3), tmp10, xmask)


def case_poi_cat():
    B, C, W = pick((64, 300, 1000), (2, 3, 20))
    a, b = rn(B, C, W, dtype=f32), rn(B, C, W, dtype=f32)
    for X, w in ((256, 4), (1024, 8)):
        triton_poi_fused_cat_clone_1[(cd(2 * B * C * W, X),)](
            a, b, ze(B, 2 * C, W), W, C, 2 * B * C * W, XBLOCK=X, num_warps=w, num_stages=1)


@triton.jit
def triton_poi_fused_convert_transpose_2(in_ptr0, out_ptr0, ynumel, xnumel,
                                         YBLOCK: tl.constexpr, XBLOCK: tl.constexpr):
    yoffset = tl.program_id(1) * YBLOCK
    yindex = yoffset + tl.arange(0, YBLOCK)[None, :]
    ymask = yindex < ynumel
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    x1 = xindex
    y0 = yindex
    tmp0 = tl.load(in_ptr0 + (y0 + ynumel * x1), xmask & ymask,
                   eviction_policy="evict_last")
    tmp1 = tl.maximum(tmp0, 0.0).to(tl.float32)
    tl.store(out_ptr0 + (x1 + xnumel * y0), tmp1, xmask & ymask)


def case_poi_transpose():
    X, Y = pick((6000, 5000), (30, 50))
    a = rn(X, Y, dtype=f32)
    for YB, XB, w in pick([(16, 64, 4), (64, 64, 8), (32, 32, 2)], [(16, 16, 1)]):
        triton_poi_fused_convert_transpose_2[(cd(X, XB), cd(Y, YB))](
            a, ze(Y, X, dtype=bf16), Y, X, YBLOCK=YB, XBLOCK=XB, num_warps=w, num_stages=1)


@triton.jit
def triton_red_fused_sum_mean_var_3(in_ptr0, in_ptr1, out_ptr0, out_ptr1, out_ptr2, xnumel,
                                    rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    x0 = xindex
    _tmp4 = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    _tmp7 = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    _tmp9 = tl.full([XBLOCK, RBLOCK], float("-inf"), tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        r1 = rindex
        tmp0 = tl.load(in_ptr0 + (r1 + rnumel * x0), rmask & xmask,
                       eviction_policy="evict_first", other=0.0).to(tl.float32)
        tmp1 = tl.load(in_ptr1 + (r1), rmask, eviction_policy="evict_last",
                       other=0.0).to(tl.float32)
        tmp2 = tmp0 * tmp1
        tmp3 = tl.broadcast_to(tmp2, [XBLOCK, RBLOCK])
        _tmp4 = tl.where(rmask & xmask, _tmp4 + tmp3, _tmp4)
        _tmp7 = tl.where(rmask & xmask, _tmp7 + tmp3 * tmp3, _tmp7)
        _tmp9 = tl.where(rmask & xmask, tl.maximum(_tmp9, tmp3), _tmp9)
    tmp4 = tl.sum(_tmp4, 1)[:, None]
    tl.store(out_ptr0 + (x0), tmp4, xmask)
    tmp7 = tl.sum(_tmp7, 1)[:, None]
    tl.store(out_ptr1 + (x0), tl.sqrt(tmp7), xmask)
    tmp9 = tl.max(_tmp9, 1)[:, None]
    tl.store(out_ptr2 + (x0), tmp9, xmask)


def red_rows(X, R):
    a, b = rn(X, R), rn(R)
    for XB, RB, w in pick([(1, 2048, 8), (8, 512, 8), (64, 8, 2)], [(4, 16, 1)]):
        triton_red_fused_sum_mean_var_3[(cd(X, XB),)](
            a, b, ze(X), ze(X), ze(X), X, R, XBLOCK=XB, RBLOCK=RB, num_warps=w, num_stages=1)


def case_red_rows():
    red_rows(*pick((4096, 10000), (20, 100)))


def case_red_rows_short():
    red_rows(*pick((60000, 500), (30, 50)))


@triton.jit
def triton_red_fused_sum_columns_4(in_ptr0, out_ptr0, xnumel, rnumel, ks0,
                                   XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    # sums over the outer dimension, parts of it apart
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    x0 = xindex % ks0
    x1 = xindex // ks0
    _tmp2 = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        tmp0 = tl.load(in_ptr0 + (x0 + ks0 * (rindex + rnumel * x1)), rmask & xmask,
                       eviction_policy="evict_first", other=0.0).to(tl.float32)
        _tmp2 = tl.where(rmask & xmask, _tmp2 + tmp0, _tmp2)
    tmp2 = tl.sum(_tmp2, 1)[:, None]
    tl.store(out_ptr0 + (xindex), tmp2, xmask)


def case_red_columns():
    P, R, C = pick((64, 256, 2048), (3, 10, 20))
    a = rn(P * R, C)
    for XB, RB, w in pick([(64, 16, 4), (16, 128, 8), (128, 4, 2)], [(8, 8, 1)]):
        triton_red_fused_sum_columns_4[(cd(P * C, XB),)](
            a, ze(P, C), P * C, R, C, XBLOCK=XB, RBLOCK=RB, num_warps=w, num_stages=1)


@triton.jit
def triton_per_fused_softmax_backward_5(in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel, rnumel,
                                        XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rindex = tl.arange(0, RBLOCK)[None, :]
    rmask = rindex < rnumel
    x0 = xindex
    r1 = rindex
    tmp0 = tl.load(in_ptr0 + (r1 + rnumel * x0), rmask & xmask, other=0.0).to(tl.float32)
    tmp1 = tl.load(in_ptr1 + (r1 + rnumel * x0), rmask & xmask, other=0.0).to(tl.float32)
    tmp2 = tl.load(in_ptr2 + (r1 + rnumel * x0), rmask & xmask, other=0) > 0
    tmp3 = tmp0 * tmp1
    tmp5 = tl.where(rmask & xmask, tmp3, 0)
    tmp6 = tl.sum(tmp5, 1)[:, None]
    tmp7 = tmp1 * tmp6
    tmp8 = tmp3 - tmp7
    tmp9 = tl.where(tmp2, 0.0, tmp8) * 0.125
    tl.store(out_ptr0 + (r1 + rnumel * x0), tmp9, rmask & xmask)


def case_per_softmax_bwd():
    X, R = pick((65536, 300), (10, 30))
    g, p, m = rn(X, R), torch.rand_like(rn(X, R, dtype=f32)), ri(0, 2, X, R, dtype=torch.int8)
    for XB, w in pick([(1, 2), (4, 4), (8, 8)], [(2, 1)]):
        triton_per_fused_softmax_backward_5[(cd(X, XB),)](
            g, p, m, torch.empty_like(g), X, R, XBLOCK=XB, RBLOCK=triton.next_power_of_2(R),
            num_warps=w, num_stages=1)


@triton.jit
def triton_poi_fused_upsample_norm_relu_6(in_ptr0, in_ptr1, in_ptr2, in_ptr3, in_ptr4,
                                          out_ptr0, ks0, ks1, xnumel, XBLOCK: tl.constexpr):
    # batch norm in evaluation, a relu, nearest neighbours of twice the size, channels last
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex % ks0
    x1 = (xindex // ks0) % (2 * ks1)
    x2 = (xindex // (2 * ks0 * ks1)) % (2 * ks1)
    x3 = xindex // (4 * ks0 * ks1 * ks1)
    tmp0 = x1.to(tl.float32) * 0.5
    tmp1 = tmp0.to(tl.int32)
    tmp2 = (x2.to(tl.float32) * 0.5).to(tl.int32)
    tmp3 = tl.load(in_ptr0 + (x0 + ks0 * (tmp1 + ks1 * (tmp2 + ks1 * x3))), xmask)
    tmp4 = tl.load(in_ptr1 + (x0), xmask, eviction_policy="evict_last")
    tmp6 = tl.load(in_ptr2 + (x0), xmask, eviction_policy="evict_last")
    tmp8 = tl.load(in_ptr3 + (x0), xmask, eviction_policy="evict_last")
    tmp9 = tl.load(in_ptr4 + (x0), xmask, eviction_policy="evict_last")
    tmp5 = tmp3 - tmp4
    tmp7 = tl.sqrt(tmp6 + 1e-05)
    tmp10 = tl.full([1], 1, tl.int32) / tmp7
    tmp11 = tmp5 * tmp10 * tmp8 + tmp9
    tmp12 = tl.maximum(tmp11, 0)
    tl.store(out_ptr0 + (xindex), tmp12, xmask)


def case_poi_upsample():
    N, H, C = pick((16, 64, 96), (1, 4, 6))
    x = rn(N, H, H, C, dtype=f32)
    a = rn(C, dtype=f32), ze(C) + 1, rn(C, dtype=f32), rn(C, dtype=f32)
    for X, w in ((512, 4), (1024, 4)):
        triton_poi_fused_upsample_norm_relu_6[(cd(4 * x.numel(), X),)](
            x, *a, ze(N, 2 * H, 2 * H, C), C, H, 4 * x.numel(), XBLOCK=X, num_warps=w,
            num_stages=1)


if __name__ == "__main__":
    run(globals())

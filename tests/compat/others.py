"""Kernels of other repositories, launched from their own host code: a program for sdc.compare.

    python -m sdc.compare [--json rows.json] tests/compat/others.py FOLDER [CASE,...]

FOLDER holds clones, each by its name: mamba, attorch, FlagAttention, SageAttention,
DeepSeek-V3, unsloth, lightllm, gemlite. What is not there, or wants a package that is not
there (einops, ...), is a line "FAILED". Sizes are those of models, in half precision, data
random; DEVICE=cpu takes small ones, CONFIGS is said in host.py. `--list` in the place of
CASE: their names, for each.py.
"""

import contextlib
import importlib
import os
import signal
import sys
import time
import traceback

import torch
import triton

from host import DEVICE as DEV, SMALL, module as mod, pick

FOLDER = os.path.abspath(sys.argv[1])
for name in os.listdir(FOLDER):
    sys.path.insert(0, os.path.join(FOLDER, name))
sys.path.insert(0, os.path.join(FOLDER, "FlagAttention/src"))
sys.path.insert(0, os.path.join(FOLDER, "DeepSeek-V3/inference"))

ONLY = sys.argv[2].split(",") if len(sys.argv) > 2 else []
SECONDS = 60  # of a case

H = dict(dtype=torch.bfloat16, device=DEV)
F32 = dict(dtype=torch.float32, device=DEV)


def rn(*s, **k):
    return torch.randn(*s, **{**H, **k})


cases = []


def case(f):
    cases.append(f)
    return f


# ------------------------------------------------------------ mamba
@case
def mamba_chunk_scan():
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

    b, l, h, p, g, n = pick((2, 4096, 48, 64, 1, 128), (1, 256, 2, 32, 1, 32))
    x = rn(b, l, h, p).requires_grad_()
    dt = (rn(b, l, h) * 0.1).requires_grad_()
    A = (-torch.rand(h, **F32) - 0.5).requires_grad_()
    B = rn(b, l, g, n).requires_grad_()
    C = rn(b, l, g, n).requires_grad_()
    D = rn(h, dtype=torch.float32).requires_grad_()
    z = rn(b, l, h, p).requires_grad_()
    bias = rn(h, dtype=torch.float32).requires_grad_()
    y = mamba_chunk_scan_combined(
        x, dt, A, B, C, pick(256, 64), D=D, z=z, dt_bias=bias, dt_softplus=True
    )
    y.backward(torch.randn_like(y))


@case
def mamba_state_update():
    from mamba_ssm.ops.triton.selective_state_update import selective_state_update

    b, h, p, n = pick((128, 48, 64, 128), (2, 2, 32, 16))
    st = rn(b, h, p, n, dtype=torch.float32)
    x = rn(b, h, p)
    dt = rn(b, h, 1).expand(b, h, p)
    A = -torch.rand(h, 1, 1, **F32).expand(h, p, n)
    B = rn(b, 1, n)
    C = rn(b, 1, n)
    D = rn(h, 1).expand(h, p)
    bias = rn(h, 1).expand(h, p)
    selective_state_update(
        st, x, dt, A, B, C, D, z=rn(b, h, p), dt_bias=bias, dt_softplus=True
    )


@case
def mamba_norms():
    from mamba_ssm.ops.triton.layer_norm import layer_norm_fn, rms_norm_fn
    from mamba_ssm.ops.triton.layernorm_gated import rmsnorm_fn

    m, n = pick((8192, 4096), (32, 256))
    for f in (layer_norm_fn, rms_norm_fn):
        x = rn(m, n).requires_grad_()
        w = rn(n, dtype=torch.float32).requires_grad_()
        b = rn(n, dtype=torch.float32).requires_grad_()
        y, r = f(
            x,
            w,
            b,
            residual=rn(m, n).requires_grad_(),
            prenorm=True,
            residual_in_fp32=True,
        )
        (y.float().sum() + r.float().sum()).backward()
    x = rn(m, n).requires_grad_()
    w = rn(n).requires_grad_()
    z = rn(m, n).requires_grad_()
    y = rmsnorm_fn(x, w, None, z=z, group_size=n // 4)
    y.backward(torch.randn_like(y))


@case
def mamba_swiglu():
    from mamba_ssm.ops.triton.k_activations import _swiglu_fwd, _swiglu_bwd

    m, n = pick((8192, 8192), (32, 256))
    xy = rn(m, n)
    o = _swiglu_fwd(xy)
    _swiglu_bwd(xy, torch.randn_like(o))


# ------------------------------------------------------------ attorch
def layer(l, x, **kw):
    y = l(x)
    y.backward(torch.randn_like(y))


@case
def attorch_conv():
    from attorch.conv_layer import Conv2d

    for c, o, k, s, hw in pick(
        [(64, 128, 3, 1, 56), (128, 128, 3, 2, 28), (256, 64, 1, 1, 56)],
        [(16, 16, 3, 1, 8)],
    ):
        layer(
            Conv2d(c, o, k, s, padding=k // 2).to(**{**H, "dtype": torch.float16}),
            rn(pick(32, 1), c, hw, hw, dtype=torch.float16).requires_grad_(),
        )


@case
def attorch_bn():
    from attorch.batch_norm_layer import BatchNorm2d

    layer(
        BatchNorm2d(pick(256, 8)).to(DEV),
        rn(
            pick(64, 2), pick(256, 8), pick(28, 4), pick(28, 4), dtype=torch.float32
        ).requires_grad_(),
    )


@case
def attorch_linear():
    from attorch.linear_layer import Linear

    for act in (None, "gelu"):
        layer(
            Linear(pick(2048, 64), pick(8192, 64), act_func=act).to(
                **{**H, "dtype": torch.float16}
            ),
            rn(pick(4096, 32), pick(2048, 64), dtype=torch.float16).requires_grad_(),
        )


@case
def attorch_rows():
    from attorch.softmax_layers import Softmax, LogSoftmax
    from attorch.layer_norm_layer import LayerNorm
    from attorch.rms_norm_layer import RMSNorm
    from attorch.glu_layer import GLU
    from attorch.dropout_layer import Dropout
    from attorch.act_layers import GELU, Mish, SiLU, Hardswish

    m, n = pick((8192, 2048), (32, 64))
    for l in (
        Softmax(dim=-1),
        LogSoftmax(dim=-1),
        LayerNorm(n).to(DEV),
        RMSNorm(n).to(DEV),
        GLU(),
        GLU(act_func="silu"),
        Dropout(0.3),
        GELU(),
        Mish(),
        SiLU(),
        Hardswish(),
    ):
        layer(l, rn(m, n, dtype=torch.float32).requires_grad_())


@case
def attorch_loss():
    from attorch.cross_entropy_loss_layer import CrossEntropyLoss

    x = rn(pick(16384, 32), pick(1000, 50), dtype=torch.float32).requires_grad_()
    CrossEntropyLoss()(
        x, torch.randint(0, pick(1000, 50), (x.shape[0],), device=DEV)
    ).backward()


# ------------------------------------------------------------ FlagAttention
def qkv(b, h, m, n, d, hk=None):
    return [
        rn(b, h, m, d, dtype=torch.float16).requires_grad_(),
        rn(b, hk or h, n, d, dtype=torch.float16).requires_grad_(),
        rn(b, hk or h, n, d, dtype=torch.float16).requires_grad_(),
    ]


@case
def flag_flash():
    from flag_attn.flash import attention

    for d in pick((64, 128), (32,)):
        for causal in (False, True):
            q, k, v = qkv(*pick((2, 16, 4096, 4096, d), (1, 2, 128, 128, d)))
            y = attention(q, k, v, causal=causal)
            y.backward(torch.randn_like(y))


@case
def flag_gqa():
    from flag_attn.flash import attention

    q, k, v = qkv(*pick((2, 32, 2048, 2048, 128, 8), (1, 2, 128, 128, 32, 1)))
    y = attention(q, k, v, causal=True)
    y.backward(torch.randn_like(y))


@case
def flag_piecewise():
    from flag_attn.piecewise import attention

    q, k, v = qkv(*pick((2, 16, 2048, 2048, 128), (1, 2, 128, 128, 32)))
    q2, k2, _ = qkv(*pick((2, 16, 2048, 2048, 128), (1, 2, 128, 128, 32)))
    y = attention(q, k, q2, k2, v, pick(1024, 64), causal=True)
    y.backward(torch.randn_like(y))


@case
def flag_split():
    from flag_attn.split_kv import attention

    q, k, v = qkv(*pick((1, 16, 16, 16384, 128), (1, 2, 16, 256, 32)))
    with torch.no_grad():
        attention(q, k, v)


@case
def flag_paged():
    from flag_attn.paged import attention

    s, h, hk, d, kb = pick((32, 32, 8, 128, 16), (2, 4, 2, 32, 16))
    L = pick(4096, 64)
    nb = L // kb
    q = rn(s, h, d, dtype=torch.float16)
    kc = rn(s * nb, hk, kb, d, dtype=torch.float16)
    vc = rn(s * nb, hk, kb, d, dtype=torch.float16)
    bt = torch.randperm(s * nb, device=DEV, dtype=torch.int32).view(s, nb)
    attention(
        q, kc, vc, torch.full((s,), L - 5, device=DEV, dtype=torch.int32), bt, d**-0.5, L
    )


@case
def flag_total():
    from flag_attn.total import total_attention

    q, k, _ = qkv(*pick((2, 16, 2048, 2048, 128), (1, 2, 128, 128, 32)))
    with torch.no_grad():
        total_attention(
            q.detach(), k.detach(), rn(*q.shape[:3], dtype=torch.float32), causal=True
        )


# ------------------------------------------------------------ Sage
@case
def sage():
    from sageattention.triton.quant_per_block import per_block_int8
    from sageattention.triton import (
        attn_qk_int8_per_block as f,
        attn_qk_int8_per_block_causal as c,
    )

    for d in pick((64, 128), (64,)):
        q, k, v = [
            t.detach() for t in qkv(*pick((2, 16, 4096, 4096, d), (1, 2, 256, 256, d)))
        ]
        qi, qs, ki, ks = per_block_int8(q, k, sm_scale=d**-0.5)
        f.forward(qi, ki, v, qs, ks)
        c.forward(qi, ki, v, qs, ks)


@case
def sage_thread():
    from sageattention.triton.quant_per_thread import per_thread_int8

    q, k, v = [
        t.detach() for t in qkv(*pick((2, 16, 4096, 4096, 128), (1, 2, 256, 256, 64)))
    ]
    per_thread_int8(q, k)


@case
def sage_varlen():
    from sageattention.triton.quant_per_block_varlen import per_block_int8
    from sageattention.triton import (
        attn_qk_int8_block_varlen as f,
        attn_qk_int8_per_block_causal_varlen as c,
    )

    lens = pick([1000, 3000, 500, 2048], [100, 50])
    n = sum(lens)
    h, d = pick((16, 128), (2, 64))
    cu = torch.tensor(
        [0] + [sum(lens[: i + 1]) for i in range(len(lens))],
        dtype=torch.int32,
        device=DEV,
    )
    q, k, v = (rn(n, h, d, dtype=torch.float16) for _ in range(3))
    qi, qs, ki, ks, cq, ck = per_block_int8(q, k, cu, cu, max(lens), max(lens))
    for m in (f, c):
        m.forward(qi, ki, v, cu, cu, max(lens), qs, ks, cq, ck)


# ------------------------------------------------------------ DeepSeek
@case
def deepseek():
    import kernel as ds

    torch.set_default_dtype(torch.bfloat16)
    for m, n, k in pick([(4096, 4096, 7168), (64, 7168, 2048)], [(32, 128, 256)]):
        a, s = ds.act_quant(rn(m, k))
        w = rn(n, k).to(torch.float8_e4m3fn)
        ws = torch.rand(n // 128, k // 128, **F32)
        ds.fp8_gemm(a, s, w, ws)
        ds.weight_dequant(w, ws)
    torch.set_default_dtype(torch.float32)


# ------------------------------------------------------------ unsloth
def unsloth():
    if "unsloth" in sys.modules:
        return
    u = mod("unsloth")
    u.__path__ = [os.path.join(FOLDER, "unsloth/unsloth")]
    k = mod("unsloth.kernels")
    k.__path__ = [u.__path__[0] + "/kernels"]
    mod(
        "unsloth.device_type",
        DEVICE_COUNT=1,
        DEVICE_TYPE="cuda",
        is_hip=lambda: False,
        DEVICE_TYPE_TORCH="cuda",
        get_device_type=lambda: "cuda",
    )

    def calculate_settings(n):
        b = triton.next_power_of_2(n)
        return b, 32 if b >= 32768 else 16 if b >= 8192 else 8 if b >= 2048 else 4

    mod(
        "unsloth.kernels.utils",
        calculate_settings=calculate_settings,
        MAX_FUSED_SIZE=65536,
        triton_tanh=importlib.import_module("triton.language.extra.libdevice").tanh,
        triton_cast=triton.language.cast,
        torch_gpu_device=lambda *_: contextlib.nullcontext(),
        is_cdna=lambda: False,
        torch_device_stream=lambda d: torch.cuda.current_stream(),
    )
    mod("unsloth_zoo")
    mod("unsloth_zoo.patching_utils", patch_layernorm=None, unpatch_layernorm=None)
    mod("transformers")
    mod("transformers.models")
    mod("transformers.models.llama")
    mod(
        "transformers.models.llama.modeling_llama",
        logger=None,
        LlamaRMSNorm=torch.nn.Module,
    )

    class V:
        def __init__(s, v):
            s.v = tuple(int(x) for x in str(v).split("+")[0].split(".")[:2])

        def __lt__(s, o):
            return s.v < o.v

        def __le__(s, o):
            return s.v <= o.v

        def __gt__(s, o):
            return s.v > o.v

        def __ge__(s, o):
            return s.v >= o.v

    mod("unsloth_zoo.utils", Version=V)
    mod(
        "unsloth_zoo.loss_utils", patch_loss_functions=None, post_patch_loss_function=None
    )
    mod("unsloth_zoo.log", logger=None)


@case
def unsloth_ce():
    unsloth()
    from unsloth.kernels.cross_entropy_loss import Fast_CrossEntropyLoss as C

    for v in pick((32000, 128256), (100,)):
        x = rn(pick(2048, 8), v).requires_grad_()
        C.apply(x, torch.randint(0, v, (x.shape[0],), device=DEV), 0, 0).sum().backward()
    x = rn(pick(2048, 8), pick(128256, 100)).requires_grad_()
    C.apply(
        x, torch.randint(0, x.shape[1], (x.shape[0],), device=DEV), 30.0, 0
    ).sum().backward()


@case
def unsloth_rms():
    unsloth()
    from unsloth.kernels.rms_layernorm import Fast_RMS_Layernorm as C
    from unsloth.kernels.layernorm import Fast_Layernorm as L

    m, n = pick((8192, 4096), (8, 128))
    for g in (False, True):
        x = rn(m, n).requires_grad_()
        y = C.apply(x, rn(n), 1e-6, g)
        y.backward(torch.randn_like(y))
    x = rn(m, n).requires_grad_()
    y = L.apply(x, rn(n), rn(n), 1e-6)
    y.backward(torch.randn_like(y))


@case
def unsloth_rope():
    unsloth()
    from unsloth.kernels.rope_embedding import Fast_RoPE_Embedding as C

    b, s, h, d = pick((2, 4096, 32, 128), (1, 32, 4, 32))
    q = rn(b, s, h, d).requires_grad_()
    c = rn(s, d // 2)
    y = C.apply(q, c, rn(s, d // 2))
    y.backward(torch.randn_like(y))


@case
def unsloth_glu():
    unsloth()
    from unsloth.kernels.swiglu import swiglu_fg_kernel, swiglu_DWf_DW_dfg_kernel
    from unsloth.kernels import geglu as g

    b, s, n = pick((2, 4096, 11008), (1, 8, 128))
    e, f = rn(b, s, n), rn(b, s, n)
    swiglu_fg_kernel(e, f)
    swiglu_DWf_DW_dfg_kernel(rn(b * s, n), rn(b * s, n), rn(b * s, n))
    for k in ("exact", "approx"):
        getattr(g, f"geglu_{k}_forward_kernel")(e, f)
        getattr(g, f"geglu_{k}_backward_kernel")(rn(b * s, n), rn(b * s, n), rn(b * s, n))


@case
def unsloth_moe():
    unsloth()
    from unsloth.kernels.moe.grouped_gemm.kernels.forward import (
        _grouped_gemm_forward_kernel as k,
    )

    E, t, n, kk = pick((16, 8192, 2048, 2048), (2, 64, 64, 64))
    sizes = torch.full((E,), t // E, dtype=torch.int32, device=DEV)
    sizes[0] -= 5
    sizes[-1] += 5
    x, w, y = rn(t, kk), rn(E, n, kk), torch.empty(t, n, **H)

    def alloc(size, align, stream):
        return torch.empty(size, dtype=torch.int8, device=DEV)

    triton.set_allocator(alloc)
    for tma in (False, True):
        k[(pick(132, 4),)](
            x,
            w,
            y,
            sizes,
            torch.arange(t, dtype=torch.int32, device=DEV),
            None,
            E,
            t,
            1,
            n,
            kk,
            pick(132, 4),
            128 if not SMALL else 32,
            128 if not SMALL else 32,
            64,
            False,
            False,
            False,
            False,
            False,
            tma,
            tma,
            tma and not SMALL,
            triton.language.float32,
            False,
            num_warps=8,
            num_stages=3,
        )


# ------------------------------------------------------------ lightllm
def lm():
    if "lightllm" in sys.modules:
        return
    m = mod("lightllm")
    m.__path__ = [os.path.join(FOLDER, "lightllm/lightllm")]
    mod("lightllm.utils").__path__ = []
    mod(
        "lightllm.utils.device_utils",
        is_tesla=lambda: False,
        calcu_kernel_best_vsm_count=lambda *a, **k: 132,
        get_device_sm_count=lambda: 132,
        get_device_sm_regs_num=lambda: 65536,
        get_device_sm_shared_mem_num=lambda: 232448,
        get_device_warp_size=lambda: 32,
    )

    class L:
        def __getattr__(s, k):
            return lambda *a, **k: None

    mod("lightllm.utils.log_utils", init_logger=lambda *a: L())
    mod("lightllm.common").__path__ = [m.__path__[0] + "/common"]
    mod("lightllm.utils.light_utils", HAS_LIGHTLLM_KERNEL=False, light_ops=None)

    class K:
        def __init_subclass__(c, **k):
            pass

        @classmethod
        def get_the_config(c, *a, **k):
            return None

    mod("lightllm.common.kernel_config", KernelConfigs=K)
    mod("frozendict", frozendict=dict)

    class A:
        pass

    def autotune(*a, **k):
        return lambda f: f

    mod("lightllm.common.triton_utils")
    mod("lightllm.common.triton_utils.autotuner", autotune=autotune, Autotuner=A)
    mod("lightllm.utils.vllm_utils", HAS_VLLM=False, vllm_ops=None)
    mod("lightllm.utils.sgl_utils", HAS_SGL_KERNEL=False, sgl_ops=None)


@case
def lm_prefill():
    lm()
    from lightllm.models.llama.triton_kernel import context_flashattention_nopad as m

    h, hk, d = pick((32, 8, 128), (4, 2, 32))
    lens = pick([2000, 1000, 4096], [50, 33])
    n = sum(lens)
    b = len(lens)
    start = torch.tensor([sum(lens[:i]) for i in range(b)], dtype=torch.int32, device=DEV)
    sl = torch.tensor(lens, dtype=torch.int32, device=DEV)
    q = rn(n, h, d, dtype=torch.float16)
    k = rn(n, hk, d, dtype=torch.float16)
    v = rn(n, hk, d, dtype=torch.float16)
    o = torch.empty_like(q)
    r2t = torch.zeros(b, max(lens), dtype=torch.int32, device=DEV)
    perm = torch.randperm(n, device=DEV).to(torch.int32)
    for i in range(b):
        r2t[i, : lens[i]] = perm[start[i] : start[i] + lens[i]]
    m.context_attention_fwd(
        q,
        k,
        v,
        o,
        torch.arange(b, dtype=torch.int32, device=DEV),
        start,
        sl,
        torch.zeros_like(sl),
        max(lens),
        r2t,
    )
    m.context_attention_fwd_no_prompt_cache(q, k, v, o, start, sl, max(lens))


@case
def lm_decode():
    lm()
    from lightllm.models.llama.triton_kernel.gqa_flash_decoding_stage1 import (
        flash_decode_stage1 as g1,
    )
    from lightllm.models.llama.triton_kernel.flash_decoding_stage1 import (
        flash_decode_stage1 as f1,
    )
    from lightllm.models.llama.triton_kernel.flash_decoding_stage2 import (
        flash_decode_stage2 as f2,
    )

    b, h, hk, d, L, bs = pick((64, 32, 8, 128, 4096, 256), (2, 4, 2, 32, 64, 32))
    n = b * L
    q = rn(b, h, d, dtype=torch.float16)
    k = rn(n, hk, d, dtype=torch.float16)
    v = rn(n, hk, d, dtype=torch.float16)
    r2t = torch.randperm(n, device=DEV).to(torch.int32).view(b, L)
    ri = torch.arange(b, dtype=torch.int32, device=DEV)
    sl = torch.randint(L // 2, L, (b,), device=DEV, dtype=torch.int32)
    mid = torch.zeros(b, h, L // bs + 2, d, **F32)
    lse = torch.zeros(b, h, L // bs + 2, **F32)
    g1(q, k, v, r2t, ri, sl, L, mid, lse, bs)
    f1(q, k, v, r2t, ri, sl, L, mid, lse, bs)
    f2(mid, lse, sl, torch.empty_like(q), bs)


@case
def lm_small():
    lm()
    from lightllm.models.llama.triton_kernel.rotary_emb import rotary_emb_fwd
    from lightllm.models.llama.triton_kernel.silu_and_mul import silu_and_mul_fwd
    from lightllm.models.llama.triton_kernel.rmsnorm import rmsnorm_forward

    t = pick(8192, 32)
    rotary_emb_fwd(
        rn(t, pick(32, 4), 128, dtype=torch.float16),
        rn(t, pick(8, 2), 128, dtype=torch.float16),
        rn(t, 64, dtype=torch.float16),
        rn(t, 64, dtype=torch.float16),
    )
    x = rn(t, pick(22016, 256), dtype=torch.float16)
    silu_and_mul_fwd(x, torch.empty(t, x.shape[1] // 2, dtype=torch.float16, device=DEV))
    rmsnorm_forward(
        rn(t, pick(4096, 128), dtype=torch.float16),
        rn(pick(4096, 128), dtype=torch.float16),
        1e-5,
    )


@case
def lm_fp8():
    lm()
    from lightllm.common.quantization.triton_quant.fp8 import fp8act_quant_kernel as a

    x = rn(pick(4096, 32), pick(7168, 256))
    q = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    s = torch.empty(x.shape[0], x.shape[1] // 128, **F32)
    a.lightllm_per_token_group_quant_fp8(x, 128, q, s)
    from lightllm.common.quantization.triton_quant.fp8 import (
        fp8w8a8_block_gemm_kernel as g,
    )

    K = x.shape[1]
    N = pick(4096, 256)
    w = rn(N, K).to(torch.float8_e4m3fn)
    ws = torch.rand(N // 128, K // 128, **F32)
    out = torch.empty(x.shape[0], N, **H)
    fn = g.w8a8_block_fp8_matmul
    fn(q, w.t(), s, ws.t(), out, (128, 128), dtype=torch.bfloat16)


@case
def lm_dequant():
    lm()
    from lightllm.models.deepseek2.triton_kernel import weight_dequant as w

    w.weight_dequant(
        rn(pick(4096, 256), pick(7168, 256)).to(torch.float8_e4m3fn),
        torch.rand(pick(32, 2), pick(56, 2), **F32),
    )


# ------------------------------------------------------------ gemlite
@case
def gemlite():
    mod("tqdm", tqdm=lambda x, **k: x)
    from gemlite.core import GemLiteLinearTriton as G, DType

    for bits, gs in ((4, 128), (8, 4096), (2, 64)):
        n, k = pick((4096, 4096), (128, 256))
        gs = min(gs, k)
        wq = torch.randint(0, 2**bits, (n, k), dtype=torch.uint8, device=DEV)
        sc = torch.rand(n * k // gs, 1, dtype=torch.float16, device=DEV) * 0.01
        ze = torch.full_like(sc, 2 ** (bits - 1))
        g = G(
            bits,
            group_size=gs,
            in_features=k,
            out_features=n,
            input_dtype=DType.FP16,
            output_dtype=DType.FP16,
        )
        g.pack(wq.view(n, k), sc, ze, None)
        for m, kind in (
            (1, "GEMV_REVSPLITK"),
            (1, "GEMV"),
            (16, "GEMM_SPLITK"),
            (512, "GEMM"),
        ):
            try:
                g.forward_manual(rn(m, k, dtype=torch.float16), matmul_type=kind)
            except Exception:
                print("gemlite", bits, kind, traceback.format_exc(limit=-2))


def main():
    if ONLY == ["--list"]:
        print("\n".join(c.__name__ for c in cases))
        return
    mine = [c for c in cases if not ONLY or c.__name__ in ONLY]
    failed = 0
    for c in mine:
        t = time.time()
        torch.manual_seed(0)

        def late(*_):
            raise TimeoutError("too long")

        signal.signal(signal.SIGALRM, late)
        signal.alarm(SECONDS)
        try:
            c()
            if DEV == "cuda":
                torch.cuda.synchronize()
            print(f"# {c.__name__} {time.time() - t:.1f} s", flush=True)
        except BaseException as e:
            failed += 1
            print(
                f"# {c.__name__} FAILED {time.time() - t:.1f} s",
                type(e).__name__,
                str(e)[:300],
                flush=True,
            )
            if os.environ.get("TRACE"):
                traceback.print_exc()
        signal.alarm(0)
        if DEV == "cuda":
            torch.cuda.empty_cache()
    sys.exit(int(bool(ONLY and failed)))


main()

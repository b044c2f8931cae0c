"""Operators and modules of flash-linear-attention: a program for sdc.compare.

    python -m sdc.compare tests/compat/fla.py FOLDER CASE
    tests/compat/each.py tests/compat/fla.py FOLDER      all of them

FOLDER is a clone of github.com/fla-org/flash-linear-attention; einops must be there. Each
case is an operator forward and backward: 2 x 2048 positions of 8 heads of HEAD (64) in
bf16; DEVICE=cpu takes small ones. `--list` in the place of CASE: their names.
"""

import os
import sys

FOLDER, CASE = os.path.abspath(sys.argv[1]), sys.argv[2]
sys.path.insert(0, FOLDER)
cases = {}


def case(f):
    """One more; its name is the function's."""
    cases[f.__name__] = f
    return f


if CASE != "--list":
    import host
    import torch
    import torch.nn.functional as F
    B, T, H, D = host.pick((2, 2048, 8, int(os.environ.get("HEAD", "64"))), (1, 128, 2, 16))
    ROWS, WORDS = host.pick((4096, 32000), (32, 256))
    BF16, F32 = torch.bfloat16, torch.float32


def normal(*shape, dtype=None):
    return torch.randn(*shape, device=host.DEVICE, dtype=dtype or BF16).requires_grad_()


def heads(n=3, width=None):
    """n tensors of all positions and heads: q, k, v, ..."""
    return [normal(B, T, H, width or D) for _ in range(n)]


def unit(*shape):
    """Rows of length one."""
    return F.normalize(normal(*shape).float(), dim=-1).to(BF16).detach().requires_grad_()


def decay(*shape, dtype=None):
    """Logarithms of numbers below one."""
    return F.logsigmoid(normal(*shape, dtype=F32)).detach().to(dtype or F32).requires_grad_()


def gate(*shape, dtype=None):
    """Numbers between zero and one."""
    return torch.sigmoid(normal(*shape, dtype=dtype)).detach().requires_grad_()


def qkv(kind="plain"):
    q, k, v = heads()
    return q, (unit(B, T, H, D) if kind == "unit" else k), v


def ops():
    import fla.ops
    return fla.ops


# ------------------------------------------------------------ decays
@case
def gla():
    return ops().chunk_gla(*qkv(), decay(B, T, H, D))


@case
def gla_recurrent():
    return ops().fused_recurrent_gla(*qkv(), gk=decay(B, T, H, D))


@case
def simple_gla():
    return ops().chunk_simple_gla(*qkv(), decay(B, T, H))


@case
def simple_gla_parallel():
    return ops().parallel_simple_gla(*qkv(), decay(B, T, H))


@case
def simple_gla_fused():
    return ops().fused_chunk_simple_gla(*qkv(), decay(B, T, H))


@case
def simple_gla_recurrent():
    return ops().fused_recurrent_simple_gla(*qkv(), decay(B, T, H))


@case
def retention():
    return ops().chunk_retention(*qkv())


@case
def retention_parallel():
    return ops().parallel_retention(*qkv())


@case
def retention_recurrent():
    return ops().fused_recurrent_retention(*qkv())


@case
def linear():
    return ops().chunk_linear_attn(*qkv(), normalize=False)


@case
def linear_fused():
    return ops().fused_chunk_linear_attn(*qkv(), normalize=False)


@case
def lightning():
    return ops().chunk_lightning_attn(*qkv(), 1, 12)


@case
def hgrn():
    return ops().fused_recurrent_hgrn(normal(B, T, H * D), decay(B, T, H * D, dtype=BF16))


@case
def log_linear():
    q, k, v = normal(B, T, 1, D), normal(B, T, 1, D), normal(B, T, H, D)
    return ops().chunk_log_linear_attn(q, k, v, decay(B, T, H), gate(B, T, H, 12, dtype=F32))


# ------------------------------------------------------------ delta rules
@case
def delta():
    return ops().chunk_delta_rule(*qkv("unit"), gate(B, T, H))


@case
def delta_recurrent():
    return ops().fused_recurrent_delta_rule(*qkv("unit"), gate(B, T, H))


@case
def gated_delta():
    return ops().chunk_gated_delta_rule(*qkv("unit"), decay(B, T, H), gate(B, T, H))


@case
def gated_delta_recurrent():  # has no backward pass
    with torch.no_grad():
        return ops().fused_recurrent_gated_delta_rule(*qkv("unit"), decay(B, T, H),
                                                      beta=gate(B, T, H))


@case
def kda():
    _, k, v = qkv("unit")
    return ops().chunk_kda(unit(B, T, H, D), k, v, decay(B, T, H, D), gate(B, T, H))


@case
def kda_recurrent():
    _, k, v = qkv("unit")
    return ops().fused_recurrent_kda(unit(B, T, H, D), k, v, decay(B, T, H, D),
                                     gate(B, T, H))


@case
def comba():
    return ops().chunk_comba(*qkv("unit"), unit(B, T, H, D), decay(B, T, H), gate(B, T, H))


def both_signs():
    a = unit(B, T, H, D)
    return a, (-a).detach().requires_grad_()


@case
def dplr():
    return ops().chunk_dplr_delta_rule(*qkv(), *both_signs(), decay(B, T, H, D, dtype=BF16))


@case
def iplr():  # neither
    with torch.no_grad():
        return ops().chunk_iplr_delta_rule(*qkv("unit"), *both_signs())


@case
def rwkv7():
    q, k, v = qkv()
    return ops().chunk_rwkv7(q, decay(B, T, H, D, dtype=BF16), k, v, *both_signs())


@case
def rwkv6():
    return ops().chunk_rwkv6(*qkv(), decay(B, T, H, D), normal(H, D))


@case
def rwkv6_recurrent():
    return ops().fused_recurrent_rwkv6(*qkv(), decay(B, T, H, D), normal(H, D))


@case
def mesa():
    q, k, v = unit(B, T, H, D), unit(B, T, H, D), normal(B, T, H, D)
    ridge = (torch.rand(H, D, device=host.DEVICE) + 0.25).requires_grad_()
    return ops().chunk_mesa_net(q, k, v, decay(B, T, H), gate(B, T, H), ridge)


# ------------------------------------------------------------ slots, attention
@case
def gsa():
    return ops().chunk_gsa(*qkv(), normal(B, T, H, D), decay(B, T, H, D))


@case
def abc():
    return ops().chunk_abc(*heads(4))


@case
def based():
    return ops().parallel_based(normal(B, T, H, 16), normal(B, T, H, 16), normal(B, T, H, D))


@case
def attention():
    return ops().parallel_attn(*qkv())


@case
def attention_grouped():
    return ops().parallel_attn(normal(B, T, 4 * H, D), *heads(2))


@case
def forgetting():
    return ops().parallel_forgetting_attn(*qkv(), decay(B, T, H))


@case
def path():
    w = unit(B, T, H, D).detach().float().requires_grad_()
    return ops().parallel_path_attn(*qkv(), w, gate(B, T, H, dtype=F32))


@case
def sparse():
    blocks = torch.randint(0, max(1, T // 64), (B, T, 1, 16), device=host.DEVICE)
    return ops().parallel_nsa(
        normal(B, T, 16, D), normal(B, T, 1, D), normal(B, T, 1, D), gate(B, T, 16),
        gate(B, T, 16), gate(B, T, 16), block_indices=blocks.sort(-1)[0], block_counts=16,
        block_size=64, window_size=0)  # a window is flash_attn's


@case
def parallax():
    return ops().parallel_parallax(*heads(4))


@case
def wall():
    return ops().parallel_wall_attn(*qkv(), decay(B, T, H, D))


# ------------------------------------------------------------ modules
def words(n):
    return torch.randint(0, WORDS, (n,), device=host.DEVICE)


@case
def cross_entropy():
    from fla.modules.fused_cross_entropy import cross_entropy_loss
    return cross_entropy_loss(normal(ROWS, WORDS), words(ROWS))


@case
def linear_cross_entropy():
    from fla.modules.fused_linear_cross_entropy import fused_linear_cross_entropy_loss
    return fused_linear_cross_entropy_loss(normal(ROWS, 16 * D), words(ROWS),
                                           normal(WORDS, 16 * D))


@case
def kl_divergence():
    from fla.modules import FusedKLDivLoss
    rows, words = (ROWS // 2, 16 * D), (WORDS, 16 * D)
    return FusedKLDivLoss()(normal(*rows), normal(*rows).detach(), normal(*words),
                            normal(*words).detach())


def placed(module):
    return module.to(host.DEVICE).to(BF16)


@case
def norms():
    from fla.modules import GroupNorm, LayerNorm, RMSNorm
    n = 32 * D
    return [placed(m)(normal(2 * ROWS, n))
            for m in (RMSNorm(n), LayerNorm(n), GroupNorm(8, n))]


@case
def gated_norm():
    from fla.modules import FusedRMSNormGated
    rows = 32 * ROWS
    return placed(FusedRMSNormGated(2 * D))(normal(rows, 2 * D), normal(rows, 2 * D))


@case
def rotary():
    from fla.modules import RotaryEmbedding
    q, k, _ = qkv()
    return RotaryEmbedding(D).to(host.DEVICE)(q, k)


@case
def short_convolution():
    from fla.modules import ShortConvolution
    return placed(ShortConvolution(32 * D, 4, activation="silu"))(normal(B, T, 32 * D))[0]


@case
def activations():
    from fla.modules import activations as a
    x = [normal(2 * ROWS, 64 * D) for _ in range(5)]
    return a.swiglu(*x[:2]), a.swish(x[2]), a.sigmoid(x[3]), a.logsigmoid(x[4])


@case
def l2norm():
    from fla.modules.l2norm import l2norm as norm
    return norm(normal(B, T, H, 2 * D))


def tensors(x):
    """The tensors of a result that have a gradient."""
    if isinstance(x, (tuple, list)):
        return [t for part in x for t in tensors(part)]
    return [x] if isinstance(x, torch.Tensor) and x.requires_grad else []


def main():
    """One case, forward and backward."""
    if CASE == "--list":
        print("\n".join(cases))
        return
    torch.manual_seed(0)
    results = tensors(cases[CASE]())
    if results:
        torch.autograd.backward(results, [torch.randn_like(y) for y in results])


main()

"""sdc.ops beside torch's own, their gradients, and under torch.compile."""

import math

import pytest

torch = pytest.importorskip("torch")
if not hasattr(torch.library, "custom_op"):
    pytest.skip("torch is older than 2.4", allow_module_level=True)

import sdc
import sdc.nn
import sdc.ops as F


@pytest.fixture
def make(device):
    """Tensors of normal numbers that want gradients."""
    torch.manual_seed(0)

    def make(*shape):
        return torch.randn(*shape, device=device, requires_grad=True)

    return make


def check(ours, theirs, *inputs, tolerance=2e-5, depth=48):
    """Results and gradients of two functions.

    On a GPU products of fp32 are products in tf32, whose factors lose up to 2^-10: the sum
    of `depth` of them, of normal numbers, is off by less than 0.9 * 2^-10 * sqrt(depth) as
    a standard deviation. Five of those.
    """
    if inputs[0].is_cuda:
        tolerance = 4.5 * 2**-10 * math.sqrt(depth)
    got, want = ours(*inputs), theirs(*inputs)
    torch.testing.assert_close(got, want, atol=tolerance, rtol=tolerance)
    dy = torch.randn_like(want)
    a = torch.autograd.grad(got, inputs, dy)
    b = torch.autograd.grad(want, inputs, dy)
    for x, y in zip(a, b):
        torch.testing.assert_close(x, y, atol=10 * tolerance, rtol=10 * tolerance)


def test_softmax(make):
    check(F.softmax, lambda x: torch.softmax(x, -1), make(3, 7, 100))


def test_layer_norm(make):
    check(F.layer_norm, lambda x, w, b: torch.nn.functional.layer_norm(x, (96,), w, b),
          make(4, 33, 96), make(96), make(96))


@pytest.mark.parametrize("act", ["none", "relu", "silu", "gelu"])
def test_matmul(make, act):
    f = {"none": lambda x: x, "relu": torch.relu, "silu": torch.nn.functional.silu,
         "gelu": torch.nn.functional.gelu}[act]
    check(lambda a, b, c: F.matmul(a, b, c, act=act), lambda a, b, c: f(a @ b + c),
          make(65, 48), make(48, 80), make(80), tolerance=1e-4)


def test_rms_norm(make):
    check(F.rms_norm, lambda x, w: torch.nn.functional.rms_norm(x, (96,), w, 1e-5),
          make(4, 33, 96), make(96))


def test_cross_entropy(make):
    x = make(3, 50, 77)
    target = torch.randint(77, (3, 50), device=x.device)
    target[1, 4] = -100

    def plain(x):
        return torch.nn.functional.cross_entropy(x.flatten(0, 1), target.flatten(),
                                                 reduction="none").view(3, 50)

    check(lambda x: F.cross_entropy(x, target), plain, x)


def test_swiglu(make):
    check(lambda x: F.swiglu(*x.chunk(2, -1)),
          lambda x: torch.nn.functional.silu(x[..., :70]) * x[..., 70:], make(5, 9, 140))


@pytest.mark.parametrize("pairs", [False, True])
def test_rotary(make, pairs):
    x = make(2, 3, 17, 32)
    angle = torch.rand(40, 16, device=x.device) * 6
    places = torch.randint(40, (2, 17), device=x.device, dtype=torch.int32)

    def plain(x):
        c, s = (f(angle)[places.long()][:, None] for f in (torch.cos, torch.sin))
        a, b = (x[..., ::2], x[..., 1::2]) if pairs else x.chunk(2, -1)
        y = (a * c - b * s, b * c + a * s)
        return torch.stack(y, -1).flatten(-2) if pairs else torch.cat(y, -1)

    check(lambda x: F.rotary(x, angle.cos(), angle.sin(), places, pairs=pairs), plain, x)


def test_products(make):
    """What has no operator: batches, groups."""
    a, b = make(3, 20, 24).detach(), make(3, 24, 40).detach()
    bias, residual = make(3, 40).detach(), make(3, 20, 40).detach()
    got = sdc.nn.matmul_with(a, b, bias, residual, "relu", True)
    torch.testing.assert_close(got, torch.relu(a @ b + bias[:, None]) + residual)
    rows = a.flatten(0, 1)
    offsets = torch.tensor([0, 13, 13, 60], dtype=torch.int32, device=a.device)
    got = sdc.nn.matmul_grouped(rows, b, offsets, None, None, "none", True)
    torch.testing.assert_close(got, torch.cat((rows[:13] @ b[0], rows[13:] @ b[2])))
    half = torch.full((60,), 0.5, device=a.device)
    got = sdc.nn.matmul_grouped(rows, b, offsets, exact=True, a_scale=half)
    torch.testing.assert_close(got, torch.cat((rows[:13] @ b[0], rows[13:] @ b[2])) / 2)
    short, other = rows.to(torch.float8_e4m3fn), b[0].to(torch.float8_e4m3fn)
    got = sdc.nn.matmul_with(short, other, a_scale=half, out_dtype=torch.float32)
    # Tensor cores align the terms of an fp8 sum at some 13 bits of the largest of them.
    each = 2**-13 * float(short.float().abs().max() * other.float().abs().max())
    torch.testing.assert_close(got, short.float() @ other.float() / 2, rtol=0,
                               atol=24 * each / 2 if a.is_cuda else 1e-5)
    assert sdc.nn.matmul_with(short, other).dtype == torch.bfloat16
    got = sdc.nn.matmul_grouped_sum(rows, rows, offsets, True)
    want = torch.stack((rows[:13].t() @ rows[:13], torch.zeros(24, 24, device=a.device),
                        rows[13:].t() @ rows[13:]))
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(make, causal):
    def plain(q, k, v):
        s = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
        if causal:
            s = s.masked_fill(~torch.ones_like(s, dtype=torch.bool).tril(), -torch.inf)
        return torch.softmax(s, -1) @ v

    check(lambda q, k, v: F.attention(q, k, v, causal=causal), plain,
          *(make(2, 3, 65, 32) for _ in range(3)), tolerance=1e-4)


def test_dropout(make):
    x, bias, residual = make(64, 100), make(100), make(64, 100)
    ones = torch.ones(64, 100, device=x.device)
    mask = F.dropout(ones, 0.25, 7)
    assert set(mask.unique().tolist()) == {0.0, mask.max().item()}
    assert 0.7 < (mask > 0).float().mean() < 0.8
    check(lambda x, b, r: F.dropout(x, 0.25, 7, bias=b, residual=r, act="silu"),
          lambda x, b, r: r + torch.nn.functional.silu(x + b) * mask, x, bias, residual,
          tolerance=1e-4)


def test_sparse_linear(make):
    x, w = make(256, 256), make(256, 64)
    eye = torch.eye(256, device=x.device)
    # with the unit matrix as weights what comes out is x with its blocks dropped
    ones = torch.ones(256, 256, device=x.device)
    mask = (F.sparse_linear(ones, eye, 0.5, 3) > 0).float() * 2
    assert 0 < mask.mean() < 2
    check(lambda x, w: F.sparse_linear(x, w, 0.5, 3), lambda x, w: (x * mask) @ w, x, w,
          tolerance=2e-4, depth=2 * 256)


def test_tensors_without_elements(make):
    """No rows, no columns, no products to add up: what torch makes of them."""
    check(F.matmul, torch.matmul, make(0, 16), make(16, 8))
    check(lambda a, b, c: F.matmul(a, b, c, act="relu"),
          lambda a, b, c: torch.relu(a @ b + c), make(4, 0), make(0, 8), make(8))
    check(F.softmax, lambda x: torch.softmax(x, -1), make(4, 0))
    check(F.layer_norm, lambda x, w, b: torch.nn.functional.layer_norm(x, (32,), w, b),
          make(0, 32), make(32), make(32))
    check(F.attention, torch.nn.functional.scaled_dot_product_attention,
          make(1, 2, 0, 16), make(1, 2, 20, 16), make(1, 2, 20, 16))


def test_wide_values(make):
    """Values of another width than keys."""
    check(F.attention, torch.nn.functional.scaled_dot_product_attention,
          make(1, 2, 9, 16), make(1, 2, 20, 16), make(1, 2, 20, 32), tolerance=1e-4)
    q, v = make(1, 2, 32, 16), make(1, 2, 32, 32)
    torch.library.opcheck(torch.ops.sdc.attention, (q, q, v, False, 0.0, 0.0, 0))


def test_wrong_arguments(make, device):
    """Each is told with its name, in the words of the call."""
    x, w = make(8, 16), make(16, 4)
    for error, text, call in (
            (TypeError, "'a' is a list", lambda: F.matmul([1.0], w)),
            (sdc.ArgumentError, "'b' has 1 dimensions", lambda: F.matmul(x, w[:, 0])),
            (sdc.ArgumentError, "'b' is on meta", lambda: F.matmul(x, w.to("meta"))),
            (sdc.ArgumentError, "different places",
             lambda: sdc.nn.matmul(x, w.to("meta"), None, "none", False)),
            (sdc.ArgumentError, "'x' has 0 dim", lambda: F.softmax(torch.tensor(1.0))),
            (sdc.ArgumentError, "needs a seed",
             lambda: F.attention(*(make(1, 1, 16, 16) for _ in "qkv"), p=0.5))):
        with pytest.raises(error, match=text):
            call()
    assert F.matmul(x.to("meta"), w.to("meta")).shape == (8, 4)
    if device == "cpu":  # as torch; on a GPU nobody waits for the answer
        with pytest.raises(IndexError, match="target 99 is none of 16 classes"):
            F.cross_entropy(x, torch.full((8,), 99))
    else:
        assert F.cross_entropy(x, torch.full((8,), 99, device=device)).isnan().all()


def test_seeds_of_64_bits(make):
    x = make(8, 16)
    assert torch.equal(F.dropout(x, 0.5, 2**64 - 1), F.dropout(x, 0.5, -1))


def test_operators_are_whole(make):
    """Schemas, fake tensors, autograd: what torch itself checks of an operator."""
    x, w, b = make(8, 32), make(32), make(32)
    torch.library.opcheck(torch.ops.sdc.softmax, (x,))
    torch.library.opcheck(torch.ops.sdc.layer_norm, (x, w, b, 1e-5))
    torch.library.opcheck(torch.ops.sdc.matmul, (x, make(32, 16), None, "relu", False))
    torch.library.opcheck(torch.ops.sdc.dropout, (x, b, None, 0.5, 1, 0, "gelu"))
    torch.library.opcheck(torch.ops.sdc.sparse_linear,
                          (make(128, 128), make(128, 32), 0.5, 1, 0, 64, 64))
    torch.library.opcheck(torch.ops.sdc.rms_norm, (x, w, 1e-5))
    torch.library.opcheck(torch.ops.sdc.swiglu, (x, make(8, 32)))
    torch.library.opcheck(torch.ops.sdc.cross_entropy,
                          (x, torch.arange(8, device=x.device), -100))
    q = make(1, 2, 32, 16)
    angle = torch.rand(32, 8, device=x.device)
    torch.library.opcheck(torch.ops.sdc.rotary, (q, angle, angle, None, 0, False, False))
    torch.library.opcheck(torch.ops.sdc.attention, (q, q, q, True, 0.0, 0.0, 0))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compile(make, device, backend):
    """Whole graphs; what inductor generates around the operators runs by sdc, too."""
    x, w, b = make(16, 64), make(64), make(64)

    def f(x, w, b):
        y = F.layer_norm(x, w, b)
        return F.dropout(F.matmul(y, y.t()), 0.5, 3, act="gelu").sum() + y.square().mean()

    wanted = torch.autograd.grad(f(x, w, b), (x, w, b))
    sdc.install(device)
    try:
        value = torch.compile(f, backend=backend, fullgraph=True)(x, w, b)
        got = torch.autograd.grad(value, (x, w, b))
    finally:
        sdc.uninstall()
    torch.testing.assert_close(value, f(x, w, b))
    for g, w in zip(got, wanted):
        torch.testing.assert_close(g, w, atol=1e-4, rtol=1e-4)


def test_numbers_that_change(make):
    """Seeds and positions are other ones in each step, and compiled for once."""
    x, w = make(128, 128), make(128, 32)
    q, angle = make(1, 2, 4, 16), torch.rand(64, 8, device=x.device)
    counted = []

    def backend(graph, inputs):
        counted.append(graph)
        return graph.forward

    def f(x, w, q, step):
        a = F.attention(q, q, q, p=0.1, seed=step).sum()
        y = F.sparse_linear(F.dropout(x, 0.5, step, offset=step), w, 0.5, step)
        return y.sum() + a + F.rotary(q, angle, angle, first=step).sum()

    compiled = torch.compile(f, backend=backend, fullgraph=True)
    for step in range(12):
        got, want = compiled(x, w, q, step), f(x, w, q, step)
        torch.testing.assert_close(got, want, atol=1e-3, rtol=1e-4)
        for g, h in zip(torch.autograd.grad(got, (x, q)),
                        torch.autograd.grad(want, (x, q))):
            torch.testing.assert_close(g, h, atol=1e-3, rtol=1e-3)
    assert len(counted) <= 4  # for 0, for 1, for all others


def test_autocast(make, device):
    """A block in mixed precision: weights in fp32, what comes from products in bf16."""
    x, w, u = make(64, 48), make(48, 32), make(32, 32)
    one, zero = torch.ones(32, device=device), torch.zeros(32, device=device)

    def block(F):
        with torch.autocast(device, torch.bfloat16):
            y = F.matmul(F.layer_norm(F.matmul(x, w), one, zero), u)
            return torch.autograd.grad(y.float().square().sum(), (x, w, u)), y

    class Torch:
        matmul = torch.matmul

        @staticmethod
        def layer_norm(x, w, b):
            return torch.nn.functional.layer_norm(x, (32,), w, b)

    (ours, y), (theirs, z) = block(F), block(Torch)
    assert y.dtype is z.dtype is torch.bfloat16
    for g, t in zip((*ours, y), (*theirs, z)):
        assert g.dtype is t.dtype
        assert ((g - t).float().norm() / t.float().norm()).item() < 2e-2
    with torch.autocast(device, torch.bfloat16):
        assert F.attention(*(make(1, 2, 32, 16) for _ in "qkv")).dtype is torch.bfloat16


def test_kernels_in_compiled_code(device):
    """A graph ends in front of a launch; where it must not, the message says what to do."""
    import kernels as k

    def f(x):
        y = torch.empty_like(x)
        k.add[(1,)](x, x, y, 16, BLOCK=16)
        return y + 1

    x = torch.ones(16, device=device)
    with pytest.raises(Exception, match="torch.library.custom_op"):
        torch.compile(f, backend="eager", fullgraph=True)(x)
    torch._dynamo.reset()
    assert (torch.compile(f, backend="eager")(x) == 3).all()

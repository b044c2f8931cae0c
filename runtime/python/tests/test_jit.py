"""@sdc.jit on arrays of numpy and torch."""

import copy
import os
import pickle
import runpy
import traceback
import warnings

import numpy as np
import pytest
import sdc
import sdc.language as tl

import kernels as k


def test_numpy():
    x = np.arange(1000, dtype=np.float32)
    y, out = np.ones_like(x), np.zeros(1001, np.float32)
    k.add[(4,)](x, y, out, x.size, BLOCK=256)
    np.testing.assert_array_equal(out[:1000], x + y)
    assert out[1000] == 0
    k.add[lambda meta: (sdc.cdiv(meta["n"], meta["BLOCK"]),)](x, x, out, n=1000, BLOCK=64)
    np.testing.assert_array_equal(out[:1000], 2 * x)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "float16",
                                   "float64", "uint32"])
def test_dtypes(dtype):
    x = np.arange(64).astype(dtype)
    out = np.empty_like(x)
    k.add[1](x, x, out, 64, 64)
    np.testing.assert_array_equal(out, x + x)


def test_read_only_and_strided_arrays():
    x = np.arange(64, dtype=np.float32)
    x.flags.writeable = False
    out = np.zeros((64, 2), np.float32)
    k.add[(1,)](x, x, out[:, 0], 32, BLOCK=64)  # the address counts, not the strides
    np.testing.assert_array_equal(out.ravel()[:32], 2 * x[:32])


def test_fp_fusion():
    x = np.random.default_rng(1).standard_normal(256).astype(np.float32)
    fused, apart = np.empty_like(x), np.empty_like(x)
    for _ in range(2):  # the second launch is found by its options
        k.square_and_add[1](x, fused, n=256)
        k.square_and_add[1](x, apart, n=256, enable_fp_fusion=False)
        np.testing.assert_array_equal(apart, x * x + x)
        np.testing.assert_allclose(fused, apart, rtol=1e-5, atol=1e-7)


def test_helpers_constants_defaults():
    x = np.arange(16, dtype=np.float32)
    out = np.empty_like(x)
    made = k.scale[(1,)](x, out)
    assert repr(made) == "Compiled(scale, cpu)"
    np.testing.assert_array_equal(out, 6 * x)
    k.scale[(1,)](x, out, BLOCK=8, num_warps=2)
    assert made.metadata.num_warps == 4


def test_members_of_enumerations():
    out = np.zeros(2, np.float32)
    k.by_mode[(1,)](out, MODE=k.Mode.FAST, ACT=k.Act.RELU)
    assert out.tolist() == [3, 10]
    k.by_mode[(1,)](out, MODE=k.Mode.SLOW, ACT=k.Act.NONE)
    assert out.tolist() == [2, 20]
    k.by_mode[(1,)](out, MODE=5, ACT=None)
    assert out.tolist() == [6, 20]


def test_defaults_that_are_no_numbers():
    x = np.ones(16, np.float32)
    for _ in range(2):
        k.with_defaults[(1,)](x)
        k.with_defaults[(1,)](x, None)
        k.with_defaults[(1,)](x, y=x)
    assert (x == (36 * 7) ** 2).all()


def test_closures():
    x = np.ones(16, np.float32)
    k.scaled_by(2.0)[(1,)](x)
    k.scaled_by(5.0)[(1,)](x)
    assert (x == 10).all()


def test_a_global_that_changes():
    x = np.zeros(16, np.float32)
    k.scale[(1,)](x, x)
    k.SCALE, was = tl.constexpr(4.0), k.SCALE
    try:
        with pytest.raises(RuntimeError, match="SCALE has changed .*3.0.* to .*4.0"):
            k.scale[(1,)](x, x)
        k.SCALE = tl.constexpr(3.0)  # another object that says the same
        k.scale[(1,)](x, x)
    finally:
        k.SCALE = was


def test_a_plain_global_is_an_error():
    with pytest.raises(sdc.SourceError, match="PLAIN"):
        k.plain[(1,)](np.ones(16, np.float32), 16)


def test_tuples_functions_types():
    x = np.ones(16, np.float32)
    k.apply[(1,)](x, (2.0, (0.5, None)), k.twice, tl.float16, 16)
    assert (x == 4.5).all()
    k.apply[(1,)](x, (2.0, (0.5, 7)), k.twice, tl.float16, 16)
    assert (x == 18).all()


def test_functions_take_the_short_way():
    x = np.ones(16, np.float32)
    for f, want in ((k.twice, 2), (k.thrice, 6), (k.thrice, 18), (k.twice, 36)):
        k.through[(1,)](x, f, BLOCK=16)
        assert (x == want).all()
    launcher = k.through.launcher
    assert launcher.last not in (launcher.dispatch, launcher.general)
    k.SCALE, was = tl.constexpr(4.0), k.SCALE
    try:
        k.through[(1,)](x, k.twice, BLOCK=16)  # reads no global
        with pytest.raises(RuntimeError, match="SCALE has changed"):
            k.through[(1,)](x, k.thrice, BLOCK=16)
    finally:
        k.SCALE = was


def test_functions_beside_none():
    x = np.ones(16, np.float32)
    for by, want in ((None, 2), (1.0, 5), (None, 10), (2, 22)):
        k.scaled_or_shifted[(1,)](x, by, k.twice, BLOCK=16)
        assert (x == want).all()


def test_tuples_take_the_short_way():
    x, one = np.ones(16, np.float32), np.ones(16, np.float32)
    launcher = k.of_parts.launcher
    for parts, want in (((2.0, (1.0, None)), 3), ((3.0, (0.5, None)), 9.5),
                        ((2, (1, None)), 20), ((2.0, (1.0, one)), 42),
                        ((1.0, (0.5, one)), 43.5), ((2.0, (1.0, None)), 88),
                        (k.Line(1.0, (2.0, None)), 90)):
        k.of_parts[(1,)](x, parts, BLOCK=16)
        assert (x == want).all(), (parts, x[0])
    assert launcher.last not in (launcher.dispatch, launcher.general)
    with pytest.raises(sdc.Error):
        k.of_parts[(1,)](x, (1.0, (2.0,)), BLOCK=16)


def test_namedtuple_of_collections():
    x = np.ones(16, np.float32)
    k.along[(1,)](x, k.Line(3.0), 16)
    assert (x == 3.5).all()


def test_numbers_have_tritons_types():
    out = np.zeros(4)
    k.kinds[(1,)](out, 7, 5_000_000_000_000, 0.25, True)
    np.testing.assert_array_equal(out, [7, 5e9, 0.25, 1])
    k.kinds[(1,)](out, -1, 2**63 + 2000, 0.5, False)  # unsigned
    np.testing.assert_array_equal(out, [-1, (2**63 + 2000) // 1000, 0.5, 0])


def test_none():
    x = np.ones(16, np.float32)
    k.optional[(1,)](x, None, 16, BLOCK=16)
    assert (x == 1).all()
    k.optional[(1,)](x, x.copy(), 8, BLOCK=16)
    np.testing.assert_array_equal(x, [2] * 8 + [1] * 8)


def test_one_and_sixteen_are_specialized_and_right():
    for n in (1, 15, 16, 17):
        x, out = np.ones(32, np.float32), np.zeros(32, np.float32)
        k.add[(1,)](x[n % 2:], x, out, n, BLOCK=32)
        assert out.sum() == 2 * n


def test_changing_types_of_one_call():
    a = np.ones(16, np.float32)
    for _ in range(2):
        for dtype in ("float32", "float64", "int32"):
            x = np.ones(16, dtype)
            k.add[(1,)](x, x, x, 16, BLOCK=16)
            assert (x == 2).all()
        k.add[(1,)](a, a, a, 16, 16)
    assert (a == 4).all()


def test_messages_have_the_users_places():
    with pytest.raises(sdc.SourceError) as e:
        k.wrong[(1,)](np.ones(16, np.float32), 3)
    line = k.wrong.starting_line_number + 4
    assert f"kernels.py:{line}:21: error: 'nothing' is not defined" in str(e.value)
    last = traceback.extract_tb(e.tb)[-1]  # a traceback ends in the kernel
    assert (last.filename, last.lineno, last.name) == (k.__file__, line, "wrong")


def test_messages_without_what_sdc_wrote():
    with pytest.raises(sdc.SourceError) as e:
        k.add[(1,)]("text", "text", np.ones(16, np.float32), 16, BLOCK=16)
    assert "string 'text'" in str(e.value) and "called from" not in str(e.value)
    with pytest.raises(sdc.ArgumentError) as e:
        k.add[(1 << 31,)](*[np.ones(16, np.float32)] * 3, 16, BLOCK=16)
    assert e.value.__context__ is None


def test_warnings(capfd):
    """What the compiler warns of, once; static_print prints."""
    x = np.ones(32, np.float32)
    with pytest.warns(RuntimeWarning, match=r"kernels.py:.*not int1, is deprecated") as w:
        for size in (16, 32, 16):
            k.talks[(1,)](x, B=size)
    assert {n.filename for n in w} == {__file__} and len(w) == 2
    assert capfd.readouterr().out == "B is 16\nB is 32\n"
    generated = sdc.jit(k.talks.fn)
    generated.launcher.quiet = True  # as inductor's
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        generated[(1,)](x, B=16)
    assert capfd.readouterr().out == ""


def test_pickled_by_name():
    for kernel in (k.add, k.tuned):
        assert pickle.loads(pickle.dumps(kernel)) is kernel is copy.deepcopy(kernel)


def test_errors():
    x = np.ones(16, np.float32)
    with pytest.raises(TypeError, match="misses argument 'n'"):
        k.add[(1,)](x, x, x, BLOCK=16)
    with pytest.raises(KeyError, match="nonsense"):
        k.add[(1,)](x, x, x, 16, BLOCK=16, nonsense=1)
    with pytest.raises(KeyError, match="did you mean 'BLOCK'"):
        k.add[(1,)](x, x, x, 16, BLOK=16)
    with pytest.raises(sdc.ArgumentError, match="a grid of .*from 0 to 2147483647"):
        k.add[(-1,)](x, x, x, 16, BLOCK=16)
    with pytest.raises(sdc.ArgumentError, match="grid of"):
        k.add[None](x, x, x, 16, BLOCK=16)
    with pytest.raises(sdc.ArgumentError, match="argument of type object"):
        k.add[(1,)](x, x, object(), 16, BLOCK=16)
    with pytest.raises(RuntimeError, match="launches it"):
        k.add(x)
    with pytest.raises(sdc.Error):
        k.add[(1,)](x, x, x, 16, BLOCK=15)  # no power of two
    with pytest.raises(sdc.ArgumentError, match="kernels.py:.* returns a value, so it"):
        k.returns[(1,)](x)
    with pytest.raises(sdc.ArgumentError, match=r"'x' of add\(\): .*complex64"):
        k.add[(1,)](x.astype("complex64"), x, x, 16, BLOCK=16)
    with pytest.raises(OverflowError, match=r"'n' of add\(\): .* 64 bits"):
        k.add[(1,)](x, x, x, 2**70, BLOCK=16)
    with pytest.raises(sdc.SourceError, match=r"'BLOCK' of add\(\): .* a ndarray"):
        k.add[(1,)](x, x, x, 16, BLOCK=x)
    with pytest.raises(sdc.ArgumentError, match="each element of a tuple or list"):
        k.add[(1,)](x.tolist() * 10, x, x, 16, BLOCK=16)


def test_bytes_in_another_order():
    x = np.ones(16, np.float32)
    k.add[(1,)](x, x, x, 16, BLOCK=16)
    with pytest.raises(sdc.ArgumentError, match="another machine's order"):
        k.add[(1,)](x.astype(">f4"), x, x, 16, BLOCK=16)


def test_arrays_without_dimensions():
    """They are memory, as torch's are; numpy's scalars are numbers."""
    x, n = np.array(3, np.float32), np.int64(1)
    k.add[(1,)](x, x, x, n, BLOCK=16)
    assert x == 6
    with pytest.raises(sdc.SourceError, match="tl.load gives what a pointer points to"):
        k.add[(1,)](x, x, x, np.array(1), BLOCK=16)


class Elsewhere:
    """A tensor of another place."""

    dtype = np.dtype("float32")

    def __dlpack__(self):
        raise AssertionError("not asked for")

    def __dlpack_device__(self):
        return 2, 1


def test_places():
    x = np.ones(16, np.float32)
    with pytest.raises(sdc.ArgumentError, match="'x' on cpu, 'out' on cpu, 'y' on cuda:1"):
        k.add[(1,)](x, Elsewhere(), x, 16, BLOCK=16)


def test_read_only():
    """An array of a file or of JAX is read, and never written."""
    x, out = np.arange(16, dtype=np.float32), np.empty(16, np.float32)
    x.setflags(write=False)
    for _ in range(2):
        k.add[(1,)](x, x, out, 16, BLOCK=16)
        assert (out == 2 * x).all()
    for _ in range(2):
        with pytest.raises(sdc.ArgumentError, match=r"add\(\) stores to 'out'"):
            k.add[(1,)](out, out, x, 16, BLOCK=16)
    assert x[3] == 3


def test_warmup_and_hooks():
    seen = []
    hook = lambda *args, **kw: seen.append(kw["BLOCK"])
    kernel = sdc.jit(k.add.fn)
    kernel.add_pre_run_hook(hook)
    made = kernel.warmup(np.dtype("float32"), np.float32, np.ones(1, "float32"), 4,
                         grid=(1,), BLOCK=32)
    x = np.ones(16, np.float32)
    made[(1,)](x, x, x, 16, 16)
    kernel[(1,)](x, x, x, 16, BLOCK=64)
    assert (x == 4).all() and seen == [32, 64]


def test_autotune_and_heuristics():
    kernel = sdc.autotune([sdc.Config({"BLOCK": n}) for n in (15, 16, 64)], ["n"],
                          restore_value=["out"])(k.add)
    x, out = np.ones(200, np.float32), np.zeros(200, np.float32)
    kernel[lambda m: (sdc.cdiv(200, m["BLOCK"]),)](x, x, out, 200)
    assert (out == 2).all() and kernel.best_config.kwargs["BLOCK"] in (16, 64)
    kernel = sdc.autotune([sdc.Config({"BLOCK": 256}, num_warps=n) for n in (1, 2, 4)],
                          ["n"], do_bench=lambda *args, **kw: 1 / 0)(k.add)
    kernel[(1,)](x, x, out, 200)  # one code on the CPU: nothing to measure
    kernel = sdc.heuristics({"BLOCK": lambda a: sdc.next_power_of_2(a["n"])})(k.add)
    kernel[(1,)](x, out, out, 200)
    assert (out == 3).all()


def test_mistakes_of_autotune():
    x = np.zeros(64, np.float32)
    configs = [sdc.Config({"BLOCK": 16}), sdc.Config({"BLOCK": 32})]
    with pytest.raises(sdc.ArgumentError, match="'BLOCK' of its configurations"):
        k.tuned[(4,)](x, 64, BLOCK=16)
    with pytest.raises(TypeError, match="is a dict: write Config"):
        sdc.autotune([{"BLOCK": 16}], key=[])(k.add)
    with pytest.warns(RuntimeWarning, match="no parameter is named 'm'") as w:
        sdc.autotune(configs, key=["m"])(k.add)
    assert w[0].filename == __file__


def test_descriptors_that_change(torch, device):
    """Memory, sizes, blocks, dtypes and ranks of one call's descriptors."""
    @sdc.jit
    def double(a, out, M: tl.constexpr, N: tl.constexpr):
        if len(a.block_shape) == 2:
            out.store([0, 0], a.load([0, 0]) * 2)
        else:
            out.store([0, 0, 0], a.load([0, 0, 0]) * 2)

    def launch(a, out, block):
        of = [sdc.TensorDescriptor.from_tensor(t, block) for t in (a, out)]
        double[(1,)](*of, M=16, N=16)
        return out

    for dtype in (torch.float32, torch.float16):
        for shape, block in (((16, 16), [16, 16]), ((16, 32), [16, 32]),
                             ((12, 16), [16, 16]), ((2, 8, 16), [2, 8, 16])):
            for _ in range(2):
                a = torch.randn(shape, device=device).to(dtype)
                assert torch.equal(launch(a, torch.zeros_like(a), block), a * 2)
    if device == "cpu":
        a = np.ones((16, 16), np.float32)
        assert (launch(a, np.zeros_like(a), [16, 16]) == 2).all()
    double._launcher = None
    double.launcher.general = None  # the short way alone
    a = torch.ones(16, 16, device=device)
    assert torch.equal(launch(a, torch.zeros_like(a), [16, 16]), a * 2)


def test_descriptor():
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    out = np.ones((16, 8), np.float32)
    k.blocks[(1,)](sdc.TensorDescriptor.from_tensor(x, [16, 8]), out, 16, 8)
    np.testing.assert_array_equal(out[:8], x)
    assert (out[8:] == 0).all()


def test_dlpack():
    class Capsule:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self):
            return self.array.__dlpack__()

    x = np.ones(16, np.float32)
    k.add[(1,)](Capsule(x), x, x, 16, BLOCK=16)
    assert (x == 2).all()


def test_threads():
    from concurrent.futures import ThreadPoolExecutor

    def one(n):
        x, out = np.full(64, n, np.float32), np.zeros(64, np.float32)
        for _ in range(200):
            k.add[(1,)](x, x, out, 64, BLOCK=64)
            assert (out == 2 * n).all()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(16)))


def test_torch(torch, device):
    x, y = torch.rand(1000, device=device), torch.rand(1000, device=device)
    out = torch.empty_like(x)
    k.add[(4,)](x, y, out, 1000, BLOCK=256)
    assert torch.equal(out, x + y)
    p = torch.nn.Parameter(x.clone())
    k.add[(4,)](p, y, out, 1000, BLOCK=256, num_warps=8)
    assert torch.equal(out, x + y)
    h = x.to(torch.bfloat16)
    k.add[(4,)](h, h, h, 1000, BLOCK=256)
    assert torch.equal(h, 2 * x.to(torch.bfloat16))


def test_torch_places(torch, device):
    if device == "cpu":
        pytest.skip("needs two places")
    x = torch.ones(16, device=device)
    with pytest.raises(sdc.ArgumentError, match="different places"):
        k.add[(1,)](x, x.cpu(), x, 16, BLOCK=16)
    with torch.cuda.stream(torch.cuda.Stream()):
        k.add[(1,)](x, x, x, 16, BLOCK=16)
    torch.cuda.synchronize()
    assert (x == 2).all()


def test_torch_places_that_a_gpu_reaches(torch, device):
    if device == "cpu":
        pytest.skip("needs two places")
    x, out = torch.ones(16, device=device), torch.zeros(16, device=device)
    k.add[(1,)](x, x.cpu().pin_memory(), out, 16, BLOCK=16)
    assert (out == 2).all()
    k.add[(1,)](x, torch.empty(0), out, 0, BLOCK=16)
    with pytest.raises(sdc.ArgumentError, match="different places"):  # the same types
        k.add[(1,)](x, x.cpu(), out, 16, BLOCK=16)


def test_a_long_name(tmp_path):
    name = "k" * 200
    path = tmp_path / "long.py"
    path.write_text(f"import sdc\nimport sdc.language as tl\n@sdc.jit\ndef {name}(x):\n"
                    "    tl.store(x, 7.0)\n")
    x = np.zeros(1)
    runpy.run_path(str(path))[name][(1,)](x)
    assert x[0] == 7


def test_no_arguments():
    @sdc.jit
    def nothing():
        tl.static_assert(1 + 1 == 2)

    nothing[lambda meta: (2,)]()


def test_fork():
    x = np.ones(64, np.float32)
    k.add[(1,)](x, x, x, 64, BLOCK=64)
    child = os.fork()
    if child == 0:
        try:
            h = np.ones(64, np.float16)  # a type that is new
            k.add[(1,)](h, h, h, 64, BLOCK=64)
            k.add[(1,)](x, x, x, 64, BLOCK=64)
            os._exit(0 if (h == 2).all() and (x == 4).all() else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0 and (x == 2).all()


def test_one_name_in_two_files(tmp_path, monkeypatch):
    """Globals and helpers of one name: each function means those of its own file."""
    head = "import sdc\nimport sdc.language as tl\n"
    helper = "@sdc.jit\ndef scaled(v):\n    return v * N\n\n\n"
    (tmp_path / "one_name_b.py").write_text(
        head + "N = tl.constexpr(3)\n\n\n" + helper +
        "@sdc.jit\ndef thrice(v):\n    return scaled(v) + N\n")
    (tmp_path / "one_name_a.py").write_text(
        head + "from one_name_b import thrice\nN = tl.constexpr(5)\n\n\n" + helper +
        "@sdc.jit\ndef both(x, out):\n    v = tl.load(x)\n"
        "    tl.store(out, thrice(v))\n    tl.store(out + 1, scaled(v) + N)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    from one_name_a import both
    x, out = np.array([2.0], np.float32), np.zeros(2, np.float32)
    both[(1,)](x, out)
    np.testing.assert_array_equal(out, [9.0, 15.0])


@pytest.mark.parametrize("name", ["e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz"])
def test_eight_bit_floats(torch, device, name):
    if device == "cuda" and name.endswith("fnuz"):
        pytest.skip("not on NVIDIA's GPUs")
    x = torch.arange(256, dtype=torch.uint8, device=device).view(
        getattr(torch, "float8_" + name))
    out = torch.empty(256, device=device)
    k.add[(1,)](x, torch.zeros_like(out), out, 256, BLOCK=256)
    assert torch.equal(out.nan_to_num(), x.float().nan_to_num())


def test_sparse_tensors_are_refused(torch):
    x = torch.ones(4, 4)
    k.add[(1,)](x, x, x, 16, BLOCK=16)  # the way of the last call is not taken
    for sparse in (x.to_sparse(), x.to_sparse_csr()):
        with pytest.raises(sdc.ArgumentError, match="a sparse tensor"):
            k.add[(1,)](sparse, x, x, 16, BLOCK=16)

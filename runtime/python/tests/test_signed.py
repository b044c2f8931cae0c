"""Launches of what torch.compile compiled: by a signature, without a look at types."""

import os
from types import SimpleNamespace

import pytest

import kernels as k
from sdc.inductor import Binary


def binary(fn, **kinds):
    """What triton.compile gives for such a signature."""
    signature = {p.name: kinds.get(p.name, "*fp32") for p in fn.params}
    constants = {name: v for name, v in kinds.items() if type(v) is int}
    return Binary(fn.launcher, SimpleNamespace(
        fn=fn, signature={**signature, **dict.fromkeys(constants, "constexpr")},
        constants=constants, attrs={}), {})


def launch(b, *args, grid=(1, 1, 1)):
    b.run(*grid, 0, None, None, None, None, None, *args)


@pytest.fixture
def add():
    return binary(k.add, n="i32", BLOCK=64)


def test_prepared(torch, device, add, monkeypatch):
    """The second launch asks the launcher nothing."""
    if device == "cuda":
        pytest.skip("runs on torch's stream there")
    x, y, out = torch.rand(100), torch.rand(100), torch.zeros(100)
    launch(add, x, y, out, 100, 64, grid=(2, 1, 1))
    assert torch.equal(out, x + y) and add.launched
    monkeypatch.setattr(add.launcher, "prepare", None)
    monkeypatch.setattr(add.launcher, "last", None)
    out.zero_()
    launch(add, x[1:], y[1:], out, 64, 64)  # other addresses, not on 16 bytes
    assert torch.equal(out[:64], x[1:65] + y[1:65]) and not out[64:].any()


def test_what_the_signature_did_not_say(torch, device, add):
    """Other types than promised go the general way."""
    x, out = torch.rand(64), torch.zeros(64)
    launch(add, x, x, out, 64, 64)
    launch(add, x, x.numpy(), out, 64, 64)
    assert torch.equal(out, x + x)
    assert binary(k.add, x="tensordesc<fp32[64]>", n="i32", BLOCK=64).run.__name__ != \
        "launch"


def test_failure(torch, device, add):
    """What is wrong is an exception, as in other launches."""
    x = torch.rand(64)
    with pytest.raises(Exception, match="n"):
        launch(add, x, x, x, 1 << 40, 64)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork(torch, device, add):
    """A child looks the kernel up again, in a context of its own."""
    if device == "cuda":
        pytest.skip("CUDA works in no child")
    x, out = torch.rand(64), torch.zeros(64)
    launch(add, x, x, out, 64, 64)
    child = os.fork()
    if child == 0:
        out.zero_()
        launch(add, x, x, out, 64, 64)
        os._exit(0 if torch.equal(out, x + x) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

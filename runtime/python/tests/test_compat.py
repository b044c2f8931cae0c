"""tests/compat: a collection of programs, each under sdc.compare in a process of its own."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

COMPAT = pathlib.Path(__file__).parents[3] / "tests/compat"
PROGRAM = """
import torch, triton, triton.language as tl

@triton.autotune([triton.Config({{"BLOCK": b}}) for b in (64, 128)], key=["n"])
@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 3, mask=i < n)

def three(x):
    assert x.is_cuda
    out = torch.empty_like(x)
    scale[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out

{line}

torch.testing.assert_close(three(torch.ones(100).cuda()), torch.full((100,), 3.0))
{end}
"""
PERF = """
from TritonBench_v1.good import three
import torch

class performance_metrics:
    def get_input_tensors(self):
        self.input_tensors = [torch.rand(n) for n in (10, 1000, 2000)]
    def to_cuda(self, x):
        return x.cuda()
    def call_op(self, x):
        return three(x)
"""


@pytest.fixture
def collection(tmp_path):
    """A folder as TritonBench's, of two programs; one of them dies."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("no Triton")
    if not COMPAT.exists():
        pytest.skip("not in the sources")
    programs = tmp_path / "data/TritonBench_G_v1"
    perf = tmp_path / "performance_metrics/perf_G/golden_metrics"
    programs.mkdir(parents=True)
    perf.mkdir(parents=True)
    line = "#" * 146
    (programs / "good.py").write_text(PROGRAM.format(line=line, end=""))
    (programs / "bad.py").write_text(
        PROGRAM.format(line=line, end="import os; os.abort()"))
    (perf / "good_perf.py").write_text(PERF)
    return tmp_path


def each(folder, device, *options):
    """Output of each.py over them, and the rows."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DEVICE": device}
    done = subprocess.run(
        [sys.executable, str(COMPAT / "each.py"), "--out", str(folder / "out"), *options,
         str(COMPAT / "tritonbench.py"), str(folder)], text=True, env=env,
        capture_output=True)
    rows = folder / "out/rows.json"
    return done.stdout + done.stderr, json.loads(rows.read_text()) if rows.exists() else []


def test_compared(torch, device, collection):
    """Each case by itself, both configurations of the tuned kernel, without a search."""
    text, rows = each(collection, device)
    assert "FAILED   bad" in text, text
    cases = ["good"] * 2 + (["good_perf"] * 2 if device == "cuda" else [])
    assert sorted(r["case"] for r in rows) == cases, text  # the slowest is first
    assert all(r["result"] == "same bits" and r["sdc_ms"] > 0 for r in rows), text
    assert "geometric mean" in text


def test_sdc_alone(torch, device, collection):
    text, _ = each(collection, device, "--sdc", "--cases", "^(good|bad)$")
    assert "FAILED   bad (-6)" in text and "1 of 2 run to their end" in text, text

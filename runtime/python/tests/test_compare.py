"""python -m sdc.compare on a GPU, or beside Triton's interpreter."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import torch, triton, triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
THREE = {three}

@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * {by}, mask=i < n)

x, out = torch.rand(100, device=DEVICE), torch.empty(100, device=DEVICE)
for _ in range(3):
    scale[(1,)](x, out, 100, BLOCK=128)
scale[(1,)](x, x, 100, BLOCK=128)  # in place
torch.testing.assert_close(x, out)
made = scale.warmup(x, out, 100, BLOCK=64, grid=(1,))
made[(2, 1, 1)](x, out, 100, 64)
"""


def compare(device, tmp_path, **values):
    """Status, output and rows."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("no Triton")
    program, rows = tmp_path / "program.py", tmp_path / "rows.json"
    program.write_text(PROGRAM.format(**values))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if device == "cpu":
        env["TRITON_INTERPRET"] = "1"
    done = subprocess.run([sys.executable, "-m", "sdc.compare", "--json", str(rows),
                           str(program)], capture_output=True, text=True, env=env)
    return done.returncode, done.stdout + done.stderr, json.loads(rows.read_text())


def test_same(torch, device, tmp_path):
    status, text, rows = compare(device, tmp_path, three="tl.constexpr(3.0)", by="THREE")
    assert status == 0, text
    assert [r["result"] for r in rows] == ["same bits"] * 2, text
    assert rows[0]["launches"] == 4 and rows[0]["sdc_ms"] > 0
    assert "2 same bits" in text


def test_triton_that_varies(torch):
    """Runs of Triton's kernel that differ from each other say nothing about sdc."""
    from sdc.comparison import Comparison, _memory, _save
    x = torch.zeros(8)
    comparison = Comparison(kinds=1, launches=1, times=False)
    comparison._torch = torch
    memory = _memory((x,), torch)
    before = _save(memory)

    def varies(step):
        runs = iter(range(10))
        return comparison._varies(memory, before, before,
                                  lambda: x.fill_(step * next(runs)))

    assert varies(1.0)
    assert not varies(0.0)


def test_loop(torch, device, tmp_path, monkeypatch):
    """A loop over an argument, which an interpreter turns into Python's numbers."""
    loop = PROGRAM.replace("    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n",
                           "    for start in range(0, n, BLOCK):\n"
                           "        i = start + tl.arange(0, BLOCK)\n"
                           "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n")
    monkeypatch.setitem(globals(), "PROGRAM", loop)
    status, text, rows = compare(device, tmp_path, three="tl.constexpr(3.0)", by="THREE")
    assert status == 0, text
    assert [r["result"] for r in rows] == ["same bits"] * 2, text


def test_what_was_there(torch, device, tmp_path, monkeypatch):
    """A result that memory held before the launch is compared, too."""
    there = PROGRAM.replace("torch.empty(100, device=DEVICE)", "None\nout = x * 3.0")
    monkeypatch.setitem(globals(), "PROGRAM", there)
    status, text, rows = compare(device, tmp_path, three="tl.constexpr(3.0)", by="THREE")
    assert status == 0, text
    assert [r["result"] for r in rows] == ["same bits"] * 2, text


def test_a_parameter_named_as_an_option(torch, device):
    triton = pytest.importorskip("triton")
    from sdc.comparison import Comparison

    class Kernel:
        arg_names = ["x", "num_stages"]

    made = Comparison(1, 1, False)._around(lambda *args, **kwargs: Kernel())(
        Kernel(), grid=(1,), warmup=True, num_stages=4, num_warps=8)
    assert triton and made._sdc[1] == {"num_warps": 8}


def test_refused(torch, device, tmp_path):
    if device == "cuda":
        pytest.skip("Triton refuses it, too")
    status, text, rows = compare(device, tmp_path, three="3.0", by="THREE")
    assert status == 1 and rows[0]["result"] == "refused", text
    assert "program.py:10:" in rows[0]["why"] and "THREE" in rows[0]["why"]


def test_tolerances_are_those_of_each_tensor():
    torch = pytest.importorskip("torch")
    from sdc.comparison import Comparison, Row, _save
    half, single = torch.ones(4, dtype=torch.bfloat16), torch.ones(4)
    memory = {n: (t.untyped_storage(), t.dtype) for n, t in enumerate((half, single))}
    wanted = _save(memory)
    half[1] = 1 - 2**-8
    single[1] = 1 + 2**-20
    row = Row("k", "")
    c = Comparison(1, 1, False)
    c._torch = torch
    c._judge(row, memory, wanted)
    assert row.result == "alike" and row.worst == 2**-8


def test_addresses_in_memory(device, tmp_path):
    """What is written through an address that lies in a tensor is compared, too; a
    constexpr makes another row, given by its place or by name."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("no Triton")
    program, rows = tmp_path / "program.py", tmp_path / "rows.json"
    program.write_text("""
import torch, triton, triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()

@triton.jit
def fill(table, BLOCK: tl.constexpr):
    out = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(out + tl.arange(0, BLOCK), tl.arange(0, BLOCK) * 0.5)

outs = [torch.zeros(64, device=DEVICE) for _ in range(3)]
table = torch.tensor([t.data_ptr() for t in outs], device=DEVICE)
fill[(3,)](table, BLOCK=64)
fill[(3,)](table, 32)
fill[(3,)](table, 16)
""")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if device == "cpu":
        env["TRITON_INTERPRET"] = "1"
    done = subprocess.run([sys.executable, "-m", "sdc.compare", "--json", str(rows),
                           str(program)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [r["result"] for r in json.loads(rows.read_text())]
    assert found == ["same bits"] * 3  # a row for each tile, by place as well

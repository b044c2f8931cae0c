"""sdc.install(): tests/program.py under Triton's own package and under the stub."""

import importlib.util
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = """
import runpy, sys
{hide}
import sdc
sdc.install({device!r})
runpy.run_path({path!r}, run_name="__main__")
"""


def run(path, device, hide):
    """The program in a process of its own."""
    text = RUN.format(hide="sys.modules['triton'] = None" if hide else "", device=device,
                      path=os.path.join(HERE, path))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True,
                          env=env)


@pytest.mark.parametrize("hide", [True, False], ids=["stub", "triton"])
def test_program(torch, device, hide):
    if not hide and importlib.util.find_spec("triton") is None:
        pytest.skip("no Triton")
    done = run("program.py", device, hide)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("test_") == 7


def test_uninstall(torch):
    triton = pytest.importorskip("triton")
    import sdc
    jit = triton.runtime.jit.JITFunction
    before = jit.run, jit.__getitem__, triton.testing.do_bench
    sdc.install("cpu")
    assert jit.run is not before[0]
    sdc.uninstall()
    assert before == (jit.run, jit.__getitem__, triton.testing.do_bench)


def test_benchmark_without_plots(torch, device, monkeypatch, capsys):
    """Benchmarks cut to some sizes draw nothing, and want nothing that draws."""
    triton = pytest.importorskip("triton")
    from sdc.testing import limit_points
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(triton.testing.Mark, "run", triton.testing.Mark.run)
    limit_points(2)
    b = triton.testing.Benchmark(["n"], [1, 2, 3], "how", ["a"], ["A"], plot_name="plot",
                                 args={})
    triton.testing.Mark(lambda n, how: 10.0 * n, b).run(show_plots=True, print_data=True)
    assert "20" in capsys.readouterr().out and b.x_vals == [1, 2]


def test_cuda_without_a_gpu_is_said():
    """A process that sees no GPU is told where it asks for one."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CUDA_VISIBLE_DEVICES": "",
           "SDC_LIBCUDA": "/no/such/libcuda.so"}
    done = subprocess.run([sys.executable, "-c", "import sdc\nsdc.install()\n"
                           "sdc.install('cpu')\nsdc.install('cuda')\n"],
                          capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("RuntimeWarning") == 1, done.stderr
    assert "<string>:4: RuntimeWarning: sdc.install('cuda'): no CUDA driver" in done.stderr


def test_hidden_triton_stays_hidden():
    """What sys.modules says of Triton is there again behind uninstall()."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.modules['triton'] = None\n"
         "import sdc\n"
         "for _ in range(2):\n"
         "    sdc.install('cpu')\n"
         "    assert sys.modules['triton'].__sdc__\n"
         "    sdc.uninstall()\n"
         "    assert sys.modules['triton'] is None\n"],
        capture_output=True, text=True, env={**os.environ,
                                             "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr


def test_one_kernel_of_triton(torch, device):
    """sdc.jit of Triton's kernel launches that one by sdc, and leaves Triton alone."""
    pytest.importorskip("triton")
    import sdc
    import triton_kernels

    x = torch.ones(16, device=device)
    kernel = sdc.jit(triton_kernels.add)
    assert isinstance(kernel, sdc.JITFunction) and sdc.jit(kernel) is kernel
    kernel[(1,)](x, x, x, 16, BLOCK=16)
    assert (x == 2).all() and not isinstance(triton_kernels.add, sdc.JITFunction)

"""Models and templates of inductor; all of them: python inductor.py, python templates.py."""

import importlib.util
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*command):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


@pytest.mark.parametrize("model,options", [("mlp", []), ("rnn", ["--stub"])])
def test_model(torch, device, model, options):
    if not options and importlib.util.find_spec("triton") is None:
        pytest.skip("no Triton")
    done = run(os.path.join(HERE, "inductor.py"), "--device", device, *options, model)
    assert done.returncode == 0 and " ok " in done.stdout, done.stdout + done.stderr
    assert "RuntimeWarning" not in done.stderr, done.stderr  # nobody wrote the code
    assert "dynamo_pgo" not in done.stderr  # of caches that install() turns off


def test_template(torch, device):
    """A GEMM of max-autotune is a template, and right."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("no Triton")
    done = run(os.path.join(HERE, "templates.py"), "--device", device, "mm")
    assert done.returncode == 0 and " ok " in done.stdout, done.stdout + done.stderr


def test_templates_compile(torch):
    """flex_attention becomes code for a GPU on a machine without one."""
    if torch.cuda.is_available() or torch.version.cuda is None:
        pytest.skip("a GPU, or torch without CUDA")
    done = run(os.path.join(HERE, "templates.py"), "--compile", "sm_90a", "flex_causal")
    assert done.returncode == 0 and "refused 0" in done.stdout, done.stdout + done.stderr


def test_backend_without_triton(torch):
    """Torch finds the GPU's backend where sdc stands for Triton."""
    done = run("-c", "import sys; sys.modules['triton'] = None\n"
               "import sdc; sdc.install('cuda')\n"
               "from torch._inductor.runtime import triton_helpers\n"
               "triton_helpers.set_driver_to_gpu()")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("options", [[], ["--stub"]])
def test_user_kernels(torch, device, options):
    """torch.compile knows which arguments of a user's kernel are written."""
    if not options and importlib.util.find_spec("triton") is None:
        pytest.skip("no Triton")
    done = run(os.path.join(HERE, "user_kernels.py"), "--device", device, *options)
    assert done.returncode == 0 and done.stdout.count("ok ") == 2, done.stderr
    assert "assuming every" not in done.stderr, done.stderr
    if device == "cpu" and hasattr(torch.library, "wrap_triton"):
        assert "written: out\n" in done.stdout, done.stdout

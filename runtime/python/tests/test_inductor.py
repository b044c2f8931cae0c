"""Models of tests/inductor.py under torch.compile; all of them: python inductor.py."""

import importlib.util
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.mark.parametrize("model,options", [("mlp", []), ("rnn", ["--stub"])])
def test_model(torch, device, model, options):
    if not options and importlib.util.find_spec("triton") is None:
        pytest.skip("no Triton")
    done = subprocess.run(
        [sys.executable, os.path.join(HERE, "inductor.py"), "--device", device,
         *options, model],
        capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0 and " ok " in done.stdout, done.stdout + done.stderr

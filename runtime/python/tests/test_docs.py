"""The first kernel of docs/python.md runs as it stands there."""

import os
import re
import subprocess
import sys

import pytest

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../docs/python.md")


def test_first_kernel(tmp_path):
    if not os.path.exists(PAGE):
        pytest.skip("no docs beside the package")
    with open(PAGE, encoding="utf-8") as f:
        program = re.search(r"<<'END'\n(.*?)\nEND\n", f.read(), re.DOTALL)[1]
    (tmp_path / "first.py").write_text(program)
    done = subprocess.run([sys.executable, str(tmp_path / "first.py")], text=True,
                          capture_output=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "1000.]"

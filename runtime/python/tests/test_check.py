"""SDC_CHECK: what a kernel must not do is told, with the place."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = """
import numpy as np, sdc, kernels as k
x = np.ones(100, np.float32)
k.add[(1,)](x, x, np.ones(100, np.float32), 100, BLOCK=128)
try:
    k.add[(1,)](x, x, x[:90], 100, BLOCK=128)
except sdc.CheckError as e:
    print(e)
"""


def run(check):
    """What the program prints."""
    env = {**os.environ, "SDC_CHECK": check,
           "PYTHONPATH": os.pathsep.join([HERE, *sys.path])}
    return subprocess.run([sys.executable, "-c", PROGRAM], env=env, text=True, check=True,
                          capture_output=True).stdout


def test_outside():
    text = run("1")
    assert "store outside of 'out', fp32[90]: element 90, 1 past the end" in text
    assert "kernels.py:" in text and "idx (90) of 'add'" in text


def test_against_the_grain():
    """An array that is read backwards, and a race that changes nothing."""
    program = """
import numpy as np, sdc, kernels as k
x, out = np.arange(64, dtype=np.float32), np.empty(64, np.float32)
k.strided[(1,)](x[::-1], -1, out, 64, BLOCK=64)
assert out[0] == 63
k.strided[(2,)](x, 1, out, 64, BLOCK=64)
"""
    env = {**os.environ, "SDC_CHECK": "1",
           "PYTHONPATH": os.pathsep.join([HERE, *sys.path])}
    done = subprocess.run([sys.executable, "-c", program], env=env, text=True, check=True,
                          capture_output=True)
    assert "<string>:6: RuntimeWarning" in done.stderr
    assert "kernels.py:" in done.stderr and "a race of equal values" in done.stderr


def test_off():
    assert run("0") == ""


def test_print_and_assert(capfd):
    import numpy as np
    import pytest
    import sdc

    import kernels as k
    k.tell[(1,)](np.array([1.5, 2.5], np.float32))
    assert "pid (0, 0, 0) idx (1) v: 2.5" in capfd.readouterr().out
    k.tell[(1,)](np.array([1.5, 7], np.float32))
    with pytest.raises(sdc.CheckError, match="too large"):
        k.tell[(1,)](np.array([1.5, 7], np.float32), debug=True)


def test_no_library():
    env = {**os.environ, "SDC_LIBRARY": "/nowhere.so",
           "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", "import sdc"], env=env, text=True,
                          capture_output=True)
    assert done.returncode == 1 and "SDC_LIBRARY names its file" in done.stderr

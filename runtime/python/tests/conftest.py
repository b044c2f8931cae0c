"""Tests of the package: `--device cuda` runs them on a GPU with torch.

Without numpy all are skipped, without torch those that need it.
"""

import faulthandler

import pytest

numpy = pytest.importorskip("numpy")


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu")


@pytest.fixture
def device(request):
    """Where the tensors of a test are."""
    return request.config.getoption("--device")


@pytest.fixture
def torch(device):
    """torch, with numbers that are the same in every run."""
    found = pytest.importorskip("torch")
    found.manual_seed(0)
    if device == "cuda" and not found.cuda.is_available():
        pytest.skip("no GPU")
    return found


@pytest.fixture(autouse=True)
def limit():
    """A test that stands still says where, and ends the run."""
    faulthandler.dump_traceback_later(300, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()

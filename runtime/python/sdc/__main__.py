"""The command sdc, as a wheel brings it: sdc ARGS, or python -m sdc ARGS."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def _found() -> str:
    """In the package, else in a build of the tree."""
    here = Path(__file__).resolve().parent
    for path in (here / "_command", here.parents[2] / "build" / "sdc"):
        if path.exists():
            return str(path)
    sys.exit("sdc: the package has no command: runtime/python/build_wheel puts it there")


def main() -> None:
    """Becomes the command."""
    path = _found()
    os.execv(path, ["sdc", *sys.argv[1:]])


if __name__ == "__main__":
    main()

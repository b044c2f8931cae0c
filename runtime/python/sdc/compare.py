"""python -m sdc.compare program.py ARGS: its kernels under Triton and sdc, in a table.
python -m sdc.compare -m pytest ARGS: those of a module that is run so, as by python -m.

    --launches N    of one kind (1)       --kinds N    of one kernel (12)
    --no-times      results only          --json FILE  the table as JSON
    --points N      of a benchmark of triton.testing only N sizes; 0: none

Exit status 1 when a result differs or sdc refused a kernel. Without a GPU Triton is its
interpreter.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import sys
import traceback

from .comparison import compare
from .testing import limit_points


def main() -> int:
    """Runs the program and prints the table."""
    p = argparse.ArgumentParser(prog="sdc.compare", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--launches", type=int, default=1)
    p.add_argument("--kinds", type=int, default=12)
    p.add_argument("--no-times", action="store_true")
    p.add_argument("--json")
    p.add_argument("--points", type=int)
    p.add_argument("-m", action="store_true", dest="module")
    p.add_argument("program")
    p.add_argument("arguments", nargs=argparse.REMAINDER)
    a = p.parse_args()
    if not a.module and not os.path.exists(a.program):
        p.error(f"cannot read '{a.program}'")
    missing = [n for n in ("torch", "triton") if not importlib.util.find_spec(n)]
    if missing:
        p.exit(2, f"sdc.compare: {' and '.join(missing)} missing: it runs the program "
               "under Triton, too; without Triton, sdc.install() is what runs it\n")
    sys.argv = [a.program, *a.arguments]
    sys.path.insert(0, os.getcwd() if a.module
                    else os.path.dirname(os.path.abspath(a.program)))
    failed = False
    with compare(a.kinds, a.launches, not a.no_times) as c:
        try:
            if a.points is not None:
                limit_points(a.points)
            if a.module:
                runpy.run_module(a.program, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(a.program, run_name="__main__")
        except SystemExit as e:
            failed = bool(e.code)
        except Exception:
            failed = True
            traceback.print_exc()
    if a.json:
        c.save(a.json)
    return int(failed or bool(c.differ))


if __name__ == "__main__":
    sys.exit(main())

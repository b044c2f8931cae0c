"""Triton's tutorials 01 to 08, unmodified: a program for sdc.compare.

    tests/compat/each.py [--sdc] tests/compat/tutorials.py FOLDER      all of them
    python -m sdc.compare tests/compat/tutorials.py FOLDER 03-matrix-multiplication

FOLDER is the folder python/tutorials of Triton's sources, of the version that is
installed; 04 wants tabulate. `--list` in the place of a page: their names. POINTS (0): so
many sizes of each benchmark, which are chosen for GPUs; of 06, which tunes for minutes,
none. DEVICE=cpu: without a GPU.
"""

import glob
import os
import runpy
import sys

FOLDER, CASE = os.path.abspath(sys.argv[1]), sys.argv[2]
if CASE == "--list":
    for path in sorted(glob.glob(os.path.join(FOLDER, "0[1-8]-*.py"))):
        print(os.path.basename(path)[:-3])
else:
    from sdc.testing import limit_points
    limit_points(0 if CASE.startswith("06") else int(os.environ.get("POINTS", "0")))
    path = os.path.join(FOLDER, CASE + ".py")
    sys.argv = [path]
    sys.path.insert(0, FOLDER)
    runpy.run_path(path, run_name="__main__")

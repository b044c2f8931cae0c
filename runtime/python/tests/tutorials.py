"""Runs Triton's tutorials, unmodified, under sdc.install().

    python tutorials.py [--device cpu] [--points 2] FOLDER/01-vector-add.py ...

`--points`: of a benchmark only so many of its sizes, since they are chosen for GPUs.
A process each, so that a tutorial that ends badly ends alone.
"""

import argparse
import os
import runpy
import subprocess
import sys
import time


def run(path: str, device: str, points: int) -> None:
    """One tutorial, as the main program."""
    import sdc
    sdc.install(device)
    from sdc.testing import limit_points
    limit_points(points)
    sys.argv = [path]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    runpy.run_path(path, run_name="__main__")


def main() -> int:
    """All of them, a line each."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--device")
    p.add_argument("--points", type=int, default=2)
    p.add_argument("--one", action="store_true")
    p.add_argument("files", nargs="+")
    a = p.parse_args()
    if a.one:
        run(a.files[0], a.device, a.points)
        return 0
    failed = 0
    for path in a.files:
        command = [sys.executable, __file__, "--one", "--points", str(a.points)]
        command += ["--device", a.device] if a.device else []
        begin = time.time()
        done = subprocess.run([*command, path], capture_output=True, text=True)
        failed += done.returncode != 0
        what = "FAILED" if done.returncode else "ok"
        print(f"{os.path.basename(path)}: {what}, {time.time() - begin:.1f} s")
        lines = (done.stdout + done.stderr).strip().splitlines()
        for line in lines[-12:] if done.returncode else lines:
            print("    " + line[:150])
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

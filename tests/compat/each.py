#!/usr/bin/env python3
"""Every case of a program under `python -m sdc.compare`, in a process of its own.

    tests/compat/each.py [OPTIONS] PROGRAM ARGUMENTS...      PROGRAM ARGUMENTS --list: its cases

    --jobs N        processes beside each other (the cores)
    --seconds S     no case begins after so many (3600)
    --limit S       of a case (120)
    --cases REGEX   those alone             --time REGEX   times of those alone
    --no-times      results alone           --rows N       rows of times that are printed (20)
    --table         every row, as the tables of docs have them
    --sdc           under sdc.install() alone: does it run to its end?
    --out FOLDER    a log and a JSON of each case, rows.json of all (a temporary folder)

First every case is run with nothing but results looked at, as many beside each other as
--jobs says; then one after the other, alone on the machine, for the times: what was
compiled lies in the caches then. The table at the end has what differs or was refused and,
worst first, Triton's time over sdc's. Exit status 1 when something differs or was refused.
"""

import argparse
import importlib.util
import json
import math
import os
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback


def child(case, a, times):
    """Runs one case and does not return."""
    log = os.open(f"{a.out}/{case}.log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    status = 1
    program = [a.program, *a.arguments, case]
    try:
        if a.sdc:
            import sdc
            sdc.install(os.environ.get("DEVICE"))
            sys.argv = program
            sys.path.insert(0, os.path.dirname(os.path.abspath(a.program)))
            runpy.run_path(a.program, run_name="__main__")
            status = 0
        else:
            sys.argv = ["sdc.compare", "--json", f"{a.out}/{case}.json",
                        *([] if times else ["--no-times"]), *program]
            runpy.run_module("sdc.compare", run_name="__main__")
    except SystemExit as e:
        status = int(bool(e.code))
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def run(cases, a, times, end):
    """Exit statuses of the cases that began; of those that were ended None."""
    todo, running, done = list(cases), {}, {}
    while todo or running:
        while todo and len(running) < (1 if times else a.jobs):
            if time.time() >= end:
                print(f"not begun: {len(todo)}")
                todo = []
                break
            case = todo.pop(0)
            pid = os.fork()
            if pid == 0:
                child(case, a, times)
            running[pid] = case, time.time()
        pid, status = os.waitpid(-1, os.WNOHANG) if running else (0, 0)
        if pid:
            case, _ = running.pop(pid)
            done[case] = os.waitstatus_to_exitcode(status)
            if done[case] == -signal.SIGKILL:
                done[case] = None
        else:
            time.sleep(0.01)
        for other, (_, begin) in running.items():
            if time.time() - begin > a.limit:
                os.kill(other, signal.SIGKILL)
    return done


def last_line(path):
    """What a log ends with, but for sdc.compare's own table."""
    with open(path, encoding="utf-8", errors="replace") as f:
        lines = [line.strip() for line in f]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit)\b", line)]
    return (errors or lines or [""])[-1][:150]


def rows_of(case, a):
    """The rows of a case, each with its name."""
    try:
        with open(f"{a.out}/{case}.json", encoding="utf-8") as f:
            return [{"case": case, **row} for row in json.load(f)]
    except FileNotFoundError:
        return []


def table(rows):
    """Every row, as Markdown."""
    print("| program | kernel | launch | result | worst | Triton ms | sdc ms |\n" + "|---" * 7 + "|")
    for r in rows:
        times = [f"{r[k]:.4f}" if r.get(k) else "" for k in ("triton_ms", "sdc_ms")]
        print(f"| {r['case']} | `{r['kernel']}` | {r['what'][:60]} | {r['result']} | "
              f"{r['worst']:.1e} | {' | '.join(times)} |")


def say(rows, a):
    """The table; is anything wrong?"""
    counts, wrong = {}, []
    for r in rows:
        counts[r["result"]] = counts.get(r["result"], 0) + 1
        if r["result"] in ("DIFFERS", "refused"):
            wrong.append(r)
    for r in wrong:
        why = r["why"].splitlines()[0] if r["why"] else ""
        print(f"{r['result']:8} {r['case']} {r['kernel']} {r['worst']:.1e} {why[:90]}")
        print(f"         {r['what'][:120]}")
    print(", ".join(f"{n} {what}" for what, n in sorted(counts.items())) or "no launch",
          f"of {len({r['kernel'] for r in rows})} kernels")
    both = sorted((r["triton_ms"] / r["sdc_ms"], r["case"], r["kernel"], r["triton_ms"],
                   r["sdc_ms"], r["what"]) for r in rows if r.get("sdc_ms"))
    if both:
        mean = math.exp(sum(math.log(b[0]) for b in both) / len(both))
        print(f"Triton ms / sdc ms: {mean:.2f} (geometric mean of {len(both)}), middle "
              f"{both[len(both) // 2][0]:.2f}, below 0.95: {sum(b[0] < .95 for b in both)}")
        for times, case, kernel, first, second, what in both[:a.rows]:
            print(f"{times:6.2f} {first:9.4f} {second:9.4f}  {case} {kernel}  {what[:70]}")
    return bool(wrong)


def main():
    """All cases."""
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--seconds", type=float, default=3600)
    p.add_argument("--limit", type=float, default=120)
    p.add_argument("--rows", type=int, default=20)
    p.add_argument("--cases", default="")
    p.add_argument("--time", default="")
    p.add_argument("--no-times", action="store_true")
    p.add_argument("--sdc", action="store_true")
    p.add_argument("--table", action="store_true")
    p.add_argument("--out")
    p.add_argument("program")
    p.add_argument("arguments", nargs=argparse.REMAINDER)
    a = p.parse_args()
    a.out = a.out or tempfile.mkdtemp()
    os.makedirs(a.out, exist_ok=True)
    end = time.time() + a.seconds
    listed = subprocess.run([sys.executable, a.program, *a.arguments, "--list"], text=True,
                            check=True, stdout=subprocess.PIPE).stdout.split()
    cases = [c for c in listed if re.search(a.cases, c)]
    if os.environ.get("DEVICE") == "cpu" and not a.sdc:
        os.environ["TRITON_INTERPRET"] = "1"  # before any child imports Triton
    for name in ("torch", "triton", "sdc.comparison"):  # children have them then
        if importlib.util.find_spec(name):
            importlib.import_module(name)
    begin = time.time()
    done = run(cases, a, False, end)
    print(f"{len(done)} of {len(cases)} cases in {time.time() - begin:.0f} s")
    for case, status in done.items():
        if status is None:
            print(f"ENDED    {case} after {a.limit:.0f} s")
        elif status and not any(r["result"] in ("DIFFERS", "refused")
                                for r in rows_of(case, a)):
            print(f"FAILED   {case} ({status}): {last_line(f'{a.out}/{case}.log')}")
    if a.sdc:
        print(f"{sum(s == 0 for s in done.values())} of {len(done)} run to their end")
        return int(any(done.values()))
    rows = {c: rows_of(c, a) for c in done}
    if not a.no_times:
        run([c for c in done if re.search(a.time, c) and rows[c]], a, True, end)
        rows = {c: rows_of(c, a) for c in done}
    every = [r for of_case in rows.values() for r in of_case]
    with open(f"{a.out}/rows.json", "w", encoding="utf-8") as f:
        json.dump(every, f, indent=1)
    if a.table:
        table(every)
    return int(say(every, a))


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Kernels of existing Triton code to machine code, with the signatures that `sdc check` guesses.

    assemble.py [--sdc SDC] [--ptxas PTXAS] [--targets sm_80,sm_90a] [--most 12] [--match TEXT]
                [--jobs 1] [-D NAME=VALUE] DIR...

Takes --most kernels of each folder, by digests of their names, the same in every run; 0: all, where
`tests/compat/run` looks. A kernel
is compiled with pointers to aligned fp16 where its types allow that, so that matrix units and
tensor maps are met, and else as guessed. A line a folder and target, a table at the end; what
ptxas refuses, what it says is serialized, and what takes sdc more than --seconds of CPU time is
told with the command, and ends with exit status 1. What the target has too little shared memory
for, and what is not of the target, is counted as refused; what ptxas takes minutes for as long. For
the target cpu code is made, and its time looked at. No source of others is kept here: give checkouts
of your own.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser()
parser.add_argument("--sdc", default=os.path.join(HERE, "../../build/sdc"))
parser.add_argument("--ptxas", default=os.environ.get("PTXAS") or shutil.which("ptxas"))
parser.add_argument("--targets", default="sm_80,sm_90a")
parser.add_argument("--most", type=int, default=12)
parser.add_argument("--seconds", type=float, default=3.0)
parser.add_argument("--match", default="", help="only kernels whose path::name has this text")
parser.add_argument("--jobs", type=int, default=1)
parser.add_argument("-D", dest="define", action="append", default=[], metavar="NAME=VALUE")
parser.add_argument("folders", nargs="+")
args = parser.parse_args()
args.define = [x for d in args.define for x in ("-D", d)]
COLUMNS = ["kernels", "refused", "assembled", "spill", "serialized", "long", "slow", "wrong"]
wrong = 0
pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
lock = threading.Lock()


def files_of(folder):
    for root, dirs, names in os.walk(folder):
        dirs[:] = sorted(d for d in dirs if not d.startswith("."))
        for name in sorted(names):
            path = os.path.join(root, name)
            if name.endswith((".py", ".tk")) and os.path.isfile(path):
                if args.most == 0 and re.search(r"/runtime/backends?/|/_[a-z]+/ops/", path):
                    continue # for other vendors' GPUs
                with open(path, errors="replace") as f:
                    if "jit" in f.read():
                        yield path


def digest(name):
    return hashlib.sha256(name.encode()).hexdigest()


def kernels_of(folder):
    """(file, kernel, signature) of some whose types pass, two a file."""
    found = []
    places = [os.path.join(folder, d) for d in ("src", "python", ".")]
    include = [x for d in places if os.path.isdir(d) for x in ("-I", d)]
    def named(path):
        p = subprocess.run([args.sdc, "check", "--json", *include, *args.define, path],
                           capture_output=True, text=True)
        try:
            kernels = json.loads(p.stdout)["kernels"]
        except ValueError:
            return []
        kernels = [k for k in kernels if k["passes"] and args.match in path + "::" + k["name"]]
        kernels.sort(key=lambda k: digest(k["name"]))
        return [(path, k["name"], k["signature"]) for k in kernels[:2 if args.most else None]]

    paths = sorted(files_of(folder), key=lambda p: digest(os.path.relpath(p, folder)))
    for first in range(0, len(paths), 4 * args.jobs):
        if len(found) >= (args.most or len(found) + 1):
            break
        for kernels in pool.map(named, paths[first:first + 4 * args.jobs]):
            found += kernels
    return include + args.define, found[:args.most or None]


def timed(command, most):
    """Exit status, CPU seconds and messages of a command; status None after `most` seconds."""
    with tempfile.TemporaryFile("w+") as said:
        p = subprocess.Popen(command, stdout=said, stderr=said)
        end, pid = time.time() + most, 0
        while not pid:
            pid, status, used = os.wait4(p.pid, os.WNOHANG)
            if not pid and time.time() > end:
                p.kill()
                os.wait4(p.pid, 0)
                p.returncode = -9
                return None, most, "not done after %d s" % most
            time.sleep(0 if pid else 0.005)
        p.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return p.returncode, used.ru_utime + used.ru_stime, said.read()


def compile_one(include, path, kernel, signature, target, out):
    """The command that worked or the last one, its CPU time, its messages when it failed."""
    halves = signature.replace("*fp32", "*fp16:16").replace("*fp16,", "*fp16:16,")
    for text in dict.fromkeys([halves, signature]):
        command = [args.sdc, "compile", path, "-k", kernel, *include, "--target", target,
                   "--emit", "asm" if target == "cpu" else "ptx", "-s", text, "-o", out]
        status, seconds, said = timed(command, 120)
        if status is None:
            break
        if status == 0:
            return command, seconds, ""
    return command, seconds, said


def tell(what, command, text=""):
    global wrong
    with lock:
        wrong += 1
    quoted = " ".join("'%s'" % c if any(x in c for x in "*,=") else c for c in command)
    print("%s: %s\n  %s" % (what, quoted, text.strip()[:600].replace("\n", "\n  ")), flush=True)


def is_of_author(folder, ptx, text):
    """The instruction that the target lacks stands in the sources: assembly for other GPUs."""
    m = re.search(r"line (\d+); error +: (?!.*requires PTX).*not supported on .target", text)
    if not m:
        return False
    with open(ptx) as f:
        found = re.search(r"[a-z]+(\.\w+)+", f.read().split("\n")[int(m[1]) - 1])
    for path in files_of(folder) if found else []:
        with open(path, errors="replace") as f:
            if found[0] in f.read():
                return True
    return False


def look(folder, include, path, kernel, signature, target):
    """The columns that the kernel counts in."""
    with tempfile.TemporaryDirectory() as tmp:
        return ["kernels"] + look_in(tmp, folder, include, path, kernel, signature, target)


def look_in(tmp, folder, include, path, kernel, signature, target):
    out = os.path.join(tmp, "k.ptx")
    command, seconds, why = compile_one(include, path, kernel, signature, target, out)
    slow = ["slow"] if seconds > args.seconds else []
    if slow:
        tell("%.1f s" % seconds, command)
    if "internal error" in why:
        tell("internal error", command, why)
        return slow + ["refused", "wrong"]
    if why:
        said = why.strip().split("\n")[0]
        print("refused: %s %s %s: %s" % (path, kernel, target, said[:200]), flush=True)
        return slow + ["refused"]
    if target == "cpu":
        return slow + ["assembled"]
    status, _, text = timed([args.ptxas, "-v", "-arch=" + target, out, "-o",
                             os.path.join(tmp, "k.o")], 100)
    if status is None: # a guess with tiles that nobody would write
        print("ptxas is not done after 100 s: %s %s" % (path, kernel), flush=True)
        return slow + ["long"]
    if status and is_of_author(folder, out, text):
        return slow + ["refused"]
    if status:
        tell("ptxas", command, text)
        return slow + ["wrong"]
    if " 0 bytes spill stores" not in text:
        slow.append("spill")
    if "serialized" in text or "warning" in text.lower():
        slow.append("serialized")
        tell("ptxas warns", command, "\n".join(x for x in text.split("\n") if "arning" in x or "serial" in x))
    return slow + ["assembled"]


def main():
    if not args.ptxas:
        print("SKIPPED: no ptxas")
        return 0
    table = {}
    for folder in args.folders:
        include, kernels = kernels_of(folder)
        for target in args.targets.split(","):
            counts = table[os.path.basename(folder.rstrip("/")), target] = dict.fromkeys(COLUMNS, 0)
            for columns in pool.map(lambda k: look(folder, include, *k, target), kernels):
                for c in columns:
                    counts[c] += 1
            print("%s %s %s" % (folder, target, counts), flush=True)
    print("\n| folder | target | " + " | ".join(COLUMNS) + " |\n|" + "---|" * (2 + len(COLUMNS)))
    for (folder, target), counts in table.items():
        print("| %s | %s | " % (folder, target) + " | ".join(str(counts[c]) for c in COLUMNS) + " |")
    for target in args.targets.split(","):
        sums = [sum(c[x] for (_, t), c in table.items() if t == target) for x in COLUMNS]
        print("| all | %s | " % target + " | ".join(map(str, sums)) + " |")
    return 1 if wrong else 0


sys.exit(main())

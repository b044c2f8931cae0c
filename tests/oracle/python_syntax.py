#!/usr/bin/env python3
"""Does sdc accept and refuse the syntax that Python does?  By hand; never part of ctest.

    python_syntax.py LIBSDC FOLDER... [--mutants N] [--seed S] [--show N] [--also PYTHON]

Every .py file below the folders is read by Python's ast.parse and by sdc_module_load_text.
Files that Python accepts must not be a syntax error for sdc.  With --mutants each file
is also damaged N times (a line's indentation, a character, a token, a bracket, a quote) and
both verdicts are compared again: what Python refuses, sdc must refuse.  What compile()
refuses beyond ast.parse is refused by sdc in part: such mutants count for neither.
--also names another version of Python whose acceptance counts, too (sdc reads the newest
syntax of each).  Exit status 1 when sdc refused what Python accepts, or the number of
mutants accepted against Python is above one in a thousand.
"""
import argparse
import ast
import collections
import ctypes
import pathlib
import random
import subprocess
import sys
import warnings

sys.setrecursionlimit(20000)
warnings.simplefilter("ignore")


class Sdc:
    def __init__(self, path):
        self.lib = lib = ctypes.CDLL(path)
        self.cx = ctypes.c_void_p()
        lib.sdc_error.restype = ctypes.c_char_p
        lib.sdc_error.argtypes = [ctypes.c_void_p]
        lib.sdc_module_unload.argtypes = [ctypes.c_void_p]
        self.start()

    def start(self):
        self.n = 0
        if self.lib.sdc_context_create(None, ctypes.byref(self.cx)):
            raise SystemExit("no context")

    def refuses(self, text):
        """sdc's message, or None."""
        module = ctypes.c_void_p()
        self.n += 1
        if self.n % 500 == 0:
            self.lib.sdc_context_destroy(self.cx)
            self.start()
        status = self.lib.sdc_module_load_text(
            self.cx, b"x.py", text, ctypes.c_size_t(len(text)), 0, ctypes.byref(module))
        if status == 0:
            self.lib.sdc_module_unload(module)
            return None
        return (self.lib.sdc_error(self.cx) or b"?").decode("utf-8", "replace")


OTHER = """
import ast, sys, warnings
warnings.simplefilter("ignore")
sys.setrecursionlimit(20000)
while True:
    head = sys.stdin.buffer.readline()
    if not head:
        break
    text = sys.stdin.buffer.read(int(head))
    try:
        compile(text, "x.py", "exec", dont_inherit=True)
        print("ok", flush=True)
    except Exception as e:
        print(f"{type(e).__name__}: {e}".replace("\\n", " "), flush=True)
"""


class Python:
    """Another interpreter that compiles texts."""

    def __init__(self, path):
        self.p = subprocess.Popen([path, "-c", OTHER], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)

    def refuses(self, text):
        self.p.stdin.write(b"%d\n" % len(text) + text)
        self.p.stdin.flush()
        line = self.p.stdout.readline().decode().strip()
        return None if line == "ok" else line


def parse(text):
    """None when Python's parser accepts, else its message."""
    try:
        ast.parse(text, "x.py")
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return None


def compiles(text):
    try:
        compile(text, "x.py", "exec", dont_inherit=True)
    except Exception:
        return False
    return True


def mutate(text, rng):
    """One damage; what kind it was, and the text."""
    lines = text.split(b"\n")
    for _ in range(20):
        k = rng.randrange(len(lines))
        if lines[k].strip() and not lines[k].lstrip().startswith(b"#"):
            break
    line = lines[k]
    body = line.lstrip()
    width = len(line) - len(body)
    at = rng.randrange(len(line) + 1)
    signs = b"()[]{}:,=<>%@#\"'\\\t *+-/09aefr._!$;&|^~"
    what = rng.choice(["indent", "indent", "tab", "delete", "insert", "swap", "word", "quote",
                       "bracket", "cut", "join"])
    if what == "indent":
        line = b" " * max(0, width + rng.choice([-4, -3, -2, -1, 1, 2, 3, 4])) + body
    elif what == "tab":
        line = b"\t" * (1 + width // 8) + body
    elif what == "delete":
        line = line[:at] + line[at + rng.choice([1, 1, 2, 5]):]
    elif what == "insert":
        line = line[:at] + bytes([rng.choice(signs)]) + line[at:]
    elif what == "swap":
        words = line.split(b" ")
        i, j = rng.randrange(len(words)), rng.randrange(len(words))
        words[i], words[j] = words[j], words[i]
        line = b" ".join(words)
    elif what == "word":
        word = rng.choice([b"if", b"else", b"not", b"def", b"match x:", b"=", b"in", b"for",
                           b"lambda", b"*", b"**", b":=", b"yield", b"await", b"f'{x!r:>{w}}'",
                           b"print x", b"0777", b"1_", b"b'\xc3\xa9'", b"a\xc2\xa0b", b"async"])
        line = line[:at] + b" " + word + b" " + line[at:]
    elif what == "quote":
        line = line.replace(rng.choice([b'"', b"'"]), b"", 1)
    elif what == "bracket":
        line = line.replace(bytes([rng.choice(b"()[]{}")]), b"", 1)
    elif what == "cut":
        line = line[:at]
    elif what == "join" and k + 1 < len(lines):
        lines[k + 1] = line + lines[k + 1]
        del lines[k]
        return what, b"\n".join(lines)
    lines[k] = line
    return what, b"\n".join(lines)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("lib")
    ap.add_argument("folders", nargs="+")
    ap.add_argument("--mutants", type=int, default=0)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--show", type=int, default=10)
    ap.add_argument("--also")
    ap.add_argument("--max-bytes", type=int, default=1 << 22)
    ap.add_argument("--every", type=int, default=1, help="take each n-th file")
    args = ap.parse_args()
    sdc, other = Sdc(args.lib), Python(args.also) if args.also else None
    count = collections.Counter()
    shown = collections.Counter()

    def show(kind, path, *notes):
        shown[kind] += 1
        if shown[kind] <= args.show:
            print(f"--- {kind}: {path}", *notes, sep="\n    ", flush=True)

    files = [f for d in args.folders for f in sorted(pathlib.Path(d).rglob("*.py"))]
    for path in files[::args.every]:
        text = path.read_bytes()
        try:
            text.decode("utf-8")
        except UnicodeDecodeError:
            count["not UTF-8, left out"] += 1
            continue
        if not text.strip() or len(text) > args.max_bytes or parse(text):
            count["not Python, left out"] += 1
            continue
        count["files"] += 1
        why = sdc.refuses(text)
        if why:
            count["files refused"] += 1
            show("REFUSED", path, *why.split("\n")[:3])
            continue
        rng = random.Random(f"{args.seed} {path.name}")
        for _ in range(args.mutants):
            kind, bad = mutate(text, rng)
            python, ours = parse(bad), sdc.refuses(bad)
            if python and other:
                python = other.refuses(bad)
            count["mutants"] += 1
            if python:
                count["mutants that Python refuses"] += 1
                if not ours:
                    count["... and sdc accepts"] += 1
                    show("ACCEPTED", path, kind, python, *changed(text, bad))
            elif ours and compiles(bad):
                count["mutants refused that Python accepts"] += 1
                show("MUTANT REFUSED", path, kind, *ours.split("\n")[:3])
    for name, n in count.items():
        print(f"{n:8} {name}")
    bad = count["files refused"] or count["mutants refused that Python accepts"]
    sys.exit(bool(bad or 1000 * count["... and sdc accepts"] >
                  count["mutants that Python refuses"]))


def changed(old, new):
    a, b = old.split(b"\n"), new.split(b"\n")
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return [f"{i + 1}: {x[:150]!r}", f"{i + 1}: {y[:150]!r}"]
    return []


if __name__ == "__main__":
    main()

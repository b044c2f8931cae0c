#!/usr/bin/env python3
"""Math functions under Triton and sdc, compared without a GPU.

    mathlib.py OUT [NAME]...      every function of libdevice.def (or these), fp32 and fp64

Needs Python with Triton, and ptxas and nvdisasm (those of Triton, or PTXAS and
NVDISASM). A kernel of one element a thread and function is compiled for sm_90a by both;
what is counted is all SASS of it, called functions and slow paths too, without padding and
without what a copy takes. `stack` is local memory in bytes. The worst ratio first.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SDC = os.environ.get("SDC", os.path.join(HERE, "../../build/sdc"))
TABLE = os.path.join(HERE, "../../frontend/libdevice.def")
POINTERS = {"F": ("fp32", "fp64"), "f": ("fp32",), "d": ("fp64",), "i": ("i32",),
            "u": ("u32",), "l": ("i64",), "L": ("u64",), "w": ("i32",)}
KINDS = {"F": "F", "X": "F", "S": "f", "P": "F", "B": "F", "A": "F"}
INTEGERS = {"I": ("i32", "i64"), "R": ("i32", "i64"), "M": ("i32", "i64")}
RESULTS = {"f": "fp32", "d": "fp64", "float64": "fp64", "float32": "fp32"}
SHORT = {"float": "fp32", "double": "fp64", "int": "i32", "uint": "u32", "ll": "i64",
         "longlong": "i64", "ull": "u64"}


def functions():
    """(name, operand types)"""
    with open(TABLE) as f:
        text = f.read()
    for name, n, kind, _, last in re.findall(
            r'^LIBFN\("(\w+)", (\d), (\w), (\w+), "(.*)"\)', text, re.M):
        if kind == "C":
            one = SHORT.get(re.split(r"2|_as_", name)[0], "fp32")
            yield name, (one,)
            continue
        if kind in INTEGERS:
            for t in INTEGERS[kind]:
                yield name, (t,) * int(n)
            continue
        letters = last.split()[0] if kind == "W" else \
            "Fi" if kind == "L" else KINDS[kind] * int(n)
        wide = "F" in letters or name in ("j0", "yn")
        for i in range(2 if wide else 1):
            yield name, tuple(POINTERS[c][i if c == "F" else 0] for c in letters)


def source(name, types):
    args = ", ".join("a%d" % i for i in range(len(types)))
    loads = ", ".join("tl.load(a%d + i)" % i for i in range(len(types)))
    call = "libdevice.%s(%s)" % (name, loads) if name != "copy" else loads
    head = "import triton\nimport triton.language as tl\n" \
           "from triton.language.extra import libdevice\n\n\n@triton.jit\n"
    return head + "def k(%s, out):\n    i = tl.arange(0, 128)\n" \
        "    tl.store(out + i, %s)\n" % (args, call)


def result(name, types):
    one = types[-1] if name in ("yn", "jn") else types[0]
    if name in ("isnan", "isinf", "finitef", "isfinited", "signbit", "ilogb", "ffs",
                "popc", "clz"):
        return "i32"
    to = re.search(r"(?:2|_as_)(float|double|uint|int|longlong|ll|ull)(?:_|$)", name)
    to = SHORT[to[1]] if to else one
    return {"llrint": "i64", "llround": "i64", "hiloint2double": "fp64",
            "double2loint": "i32", "double2hiint": "i32"}.get(name, to)


def assembled(path):
    """(instructions, bytes of stack) of path.ptx"""
    tools = os.path.join(os.path.dirname(__import__("triton").__file__),
                         "backends/nvidia/bin/")
    ptxas = os.environ.get("PTXAS", tools + "ptxas")
    nvdisasm = os.environ.get("NVDISASM", tools + "nvdisasm")
    p = subprocess.run([ptxas, "-arch=sm_90a", "-O3", "-v", path + ".ptx", "-o",
                        path + ".cubin"], capture_output=True, text=True)
    if p.returncode:
        return None
    stack = sum(int(n) for n in re.findall(r"(\d+) bytes stack frame", p.stderr))
    sass = subprocess.run([nvdisasm, "-c", path + ".cubin"], capture_output=True,
                          text=True).stdout
    code = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", sass)
    # Behind the last exit or return of a section there is one branch to itself.
    ends = sass.count(".section\t.text.")
    return sum(op != "NOP" for op in code) - ends, stack


def by_triton(path, types, out):
    import importlib.util

    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    spec = importlib.util.spec_from_file_location("m", path + ".py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = ["a%d" % i for i in range(len(types))] + ["out"]
    signature = {n: "*" + t for n, t in zip(names, (*types, out))}
    attrs = {(i,): [["tt.divisibility", 16]] for i in range(len(names))}
    made = triton.compile(ASTSource(module.k, signature, {}, attrs),
                          target=GPUTarget("cuda", 90, 32),
                          options={"num_warps": 4, "ptx_version": 86})
    with open(path + ".triton.ptx", "w") as f:
        f.write(made.asm["ptx"])
    return assembled(path + ".triton")


def by_sdc(path, types, out):
    signature = ",".join("*%s:16" % t for t in (*types, out))
    p = subprocess.run([SDC, "compile", path + ".py", "--target", "sm_90a", "--emit",
                        "ptx", "-s", signature, "-o", path + ".sdc.ptx"],
                       capture_output=True, text=True)
    return assembled(path + ".sdc") if p.returncode == 0 else None


def main():
    folder, wanted = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    rows, copies = [], {}
    for name, types in functions():
        if wanted and name not in wanted:
            continue
        out = result(name, types)
        counts = []
        for n in (name, "copy"):
            path = os.path.join(folder, "_".join((n, *types)))
            if n == "copy" and (types[0], out) in copies:
                counts += copies[types[0], out]
                continue
            with open(path + ".py", "w") as f:
                f.write(source(n, types if n == name else types[:1]))
            made = []
            for side in (by_triton, by_sdc):
                try:
                    made.append(side(path, types if n == name else types[:1], out))
                except Exception:
                    made.append(None)
            counts += made
            if n == "copy":
                copies[types[0], out] = made
        triton, sdc, triton0, sdc0 = counts
        if not (triton and sdc and triton0 and sdc0):
            print("%s %s: %s" % (name, types, "not by Triton" if sdc else "not by sdc"),
                  file=sys.stderr)
            continue
        theirs, ours = max(1, triton[0] - triton0[0]), max(1, sdc[0] - sdc0[0])
        rows.append((ours / theirs, name, types, theirs, ours, triton[1], sdc[1]))
    print("| function | types | Triton | sdc | sdc / Triton | stack |\n|---|---|---|---|---|---|")
    for ratio, name, types, theirs, ours, stack0, stack in sorted(rows, reverse=True):
        print("| `%s` | %s | %d | %d | %.2f | %d, %d |"
              % (name, " ".join(types), theirs, ours, ratio, stack0, stack))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Kernels of existing Triton code under Triton and sdc, compared without a GPU.

    static.py OUT FOLDER[:MOST]...     compiles both sides into OUT, then prints the table
    static.py OUT                      sdc's side again, and the table

Needs Python with Triton and torch, and ptxas and nvdisasm (those of Triton, or PTXAS
and NVDISASM). For each file that says @triton.jit, in an order that is the same in
every run, up to three kernels are compiled for sm_90a with the signature that
`sdc check` guesses: halves where types allow it, innermost strides 1, the middle
configuration of an autotuner. What a module imports and is not there becomes a
stand-in. OUT/<name>.case has the command, .triton.ptx, .sdc.ptx and .sass the code of
both sides.

A line a kernel, the worst first: the ratio of a crude cost, sdc / Triton; how often
sdc's loop does what Triton's does once; instructions, registers, spills; of the deepest
loop (or all, without one) bytes loaded and stored, and the classes of instructions that
differ. The cost is issue slots of a scheduler or the time of memory, whichever is
longer: it knows neither latency nor occupancy, so what it ranks high is looked at, and
not believed. A '?' stands where one side alone has a loop, or tensor copies.
"""
import glob
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import json
import math
import os
import re
import select
import signal
import subprocess
import sys
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
SDC = os.environ.get("SDC", os.path.join(HERE, "../../build/sdc"))
SKIPPED = ("test", "tests", "docs", "gluon")
FLOATS = r"eps|scale|alpha|beta|momentum|lr$|decay|cap$|factor|theta"
WIDE = r"scale|lse|rstd|mean|inv|loss|^[lm]_|dt|delta|alpha|sum|acc|amax|sin|cos|norm"
COUNTS = r"len|num_|step|idx|index|pad|group|pos|top|batch|seed|offset|heads?$|rows|end"


# ------------------------------------------------------------ modules of others
class StandIn(types.ModuleType):
    """A module, function or value that is not there; as a decorator it does nothing."""

    def __init__(self, name="stand_in"):
        super().__init__(name)
        self.__path__ = []
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)

    def __getattr__(self, name):
        if name == "__version__":
            return "9.9.9"
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {}) if name[:1].isupper() else StandIn(name)

    def __call__(self, *args, **kw):
        one = len(args) == 1 and not kw and not isinstance(args[0], StandIn)
        return args[0] if one and callable(args[0]) else StandIn()

    def __iter__(self):
        return iter(())

    def _one(self, *args):
        return 1

    def _no(self, *args):
        return False

    __bool__ = __lt__ = __le__ = __contains__ = _no
    __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __lshift__ = __rlshift__ = _one
    __add__ = __radd__ = __sub__ = __rsub__ = __int__ = __index__ = __ge__ = __gt__ = _one


class Package(types.ModuleType):
    """A folder as a package, without what its __init__.py does."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return importlib.import_module(self.__name__ + "." + name)
        except Exception:
            return getattr(StandIn(self.__name__), name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, roots):
        self.roots = roots  # None: stand-ins for all that nobody found

    def find_spec(self, name, path, target=None):
        if self.roots is None:
            if name.split(".")[0] in ("triton", *sys.builtin_module_names):
                return None
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        ours = lambda p: any(str(p).startswith(r) for r in self.roots)
        for root in self.roots if path is None else filter(ours, path):
            folder = os.path.join(str(root), name.split(".")[-1])
            if os.path.isdir(folder):
                spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
                spec.submodule_search_locations = [folder]
                return spec
        return None

    def create_module(self, spec):
        return StandIn(spec.name) if self.roots is None else Package(spec.name)

    def exec_module(self, module):
        pass


def pretend():
    """torch and Triton believe in a GPU that nothing is launched on."""
    import torch
    import triton
    from triton.backends.compiler import GPUTarget

    class Properties:
        name, major, minor, warp_size, multi_processor_count = "H200", 9, 0, 32, 132
        total_memory, shared_memory_per_block_optin = 1 << 37, 232448

    class Driver:
        def get_current_target(self):
            return GPUTarget("cuda", 90, 32)

        def get_current_device(self):
            return 0

        def __getattr__(self, name):
            return lambda *a, **k: StandIn(name)

    for name, value in (("get_device_capability", (9, 0)), ("is_available", True),
                        ("current_device", 0), ("get_device_properties", Properties)):
        setattr(torch.cuda, name, lambda *_, value=value: value)
    triton.runtime.driver._active = Driver()


# ------------------------------------------------------------ signatures
def unwrap(obj):
    """The jit function inside of autotuners and the like, and a configuration."""
    from triton.runtime.jit import JITFunction

    config = None
    for _ in range(8):
        if obj is None or isinstance(obj, JITFunction):
            return obj, config
        found = getattr(obj, "configs", None)
        config = found[len(found) // 2] if isinstance(found, list) and found else config
        obj = getattr(obj, "fn", None)
    return None, None


def guesses(kernel, fn, config):
    """Lists of (name, type or value), the likeliest first."""
    pairs = re.split(r",(?![^()\[\]]*[)\]])", kernel["signature"])
    pairs = (p.partition("=") for p in pairs)
    given = {name.strip(): kind.strip() for name, _, kind in pairs}
    over = {k: repr(v) for k, v in config.kwargs.items()} if config else {}
    for p in fn.params:
        if p.name not in given and (p.name in over or p.has_default):
            given[p.name] = over.get(p.name, repr(p.default) if p.has_default else None)
    names = [p.name for p in fn.params]
    if set(names) - set(given):
        return []
    constexpr = {p.name: p.is_constexpr for p in fn.params}
    blocks = [n for n in names if constexpr[n] and "BLOCK" in n and given[n].isdigit()]
    if not over and "tl.dot" not in fn.src and len(blocks) == 1:
        over[blocks[0]] = str(max(1024, int(given[blocks[0]])))
    groups = {}
    for n in names:
        if "stride" in n.lower() and not constexpr[n]:
            groups.setdefault(n[:-1], []).append(n)
    inner = {g[-1] for g in groups.values() if len(g) > 1}
    out = []
    for half in ("bf16", "fp16", None):
        kinds = []
        for n in names:
            kind, _, _ = given[n].partition(":")
            if constexpr[n]:
                kind = over.get(n, given[n])
            elif kind == "*fp32" and half and not (half == "bf16" and re.search(WIDE, n)):
                kind = "*" + half + ":16"
            elif kind.startswith("*"):
                kind += ":16"
            elif kind in ("i32", "i64") and n in inner:
                kind = "1"
            elif kind == "i32" and half and re.search(FLOATS, n) and "stride" not in n:
                kind = "fp32"
            elif kind in ("i32", "i64") and not re.search(COUNTS, n):
                kind += ":16"
            kinds.append((n, kind))
        out += [kinds] if kinds not in out else []
    return out


def value_of(text):
    import torch
    import triton.language as tl

    types_ = {"fp32": tl.float32, "fp16": tl.float16, "bf16": tl.bfloat16,
              "fp64": tl.float64, "i32": tl.int32, "i64": tl.int64, "i8": tl.int8,
              "i1": tl.int1, "fp8e4nv": tl.float8e4nv, "fp8e5": tl.float8e5}
    return types_[text] if text in types_ else eval(text, {"tl": tl, "torch": torch})


def triton_ptx(fn, kinds, options):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature, constants, attrs = {}, {}, {}
    for i, (name, kind) in enumerate(kinds):
        if fn.params[i].is_constexpr or kind in ("1", "None"):
            signature[name], constants[(i,)] = "constexpr", value_of(kind)
            continue
        signature[name], _, divisible = kind.partition(":")
        if divisible:
            attrs[(i,)] = [["tt.divisibility", 16]]
    source = ASTSource(fn, signature, constants, attrs)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32),
                          options={**options, "ptx_version": 86})
    return made.asm["ptx"], made.metadata.shared


def sdc_ptx(case, path):
    include = [x for i in case["include"] for x in ("-I", i)]
    command = [SDC, "compile", case["file"], *include, "--target", "sm_90a", "--emit",
               "ptx", *case["args"], "-o", path]
    try:
        p = subprocess.run(command, capture_output=True, text=True, timeout=100)
    except subprocess.TimeoutExpired:
        return "not done after 100 s"
    return p.stderr[:200] if p.returncode else ""


def compile_both(out, path, include, kernel, module, folder):
    parts = [os.path.basename(folder.rstrip("/")), os.path.basename(path)[:-3]]
    name = os.path.join(out, ".".join([*parts, kernel["name"]]))
    fn, config = unwrap(getattr(module, kernel["name"], None))
    if fn is None:
        return 0
    options = {"num_warps": config.num_warps if config else 4,
               "num_stages": config.num_stages if config else 3}
    for kinds in guesses(kernel, fn, config):
        args = ["-k", kernel["name"], "--num-warps", str(options["num_warps"]),
                "--num-stages", str(options["num_stages"]),
                "-s", ",".join("%s=%s" % k for k in kinds)]
        case = dict(file=path, include=include, args=args, warps=options["num_warps"])
        if sdc_ptx(case, name + ".sdc.ptx"):
            continue
        try:
            signal.alarm(60)
            ptx, case["shared"] = triton_ptx(fn, kinds, options)
        except Exception:
            continue
        finally:
            signal.alarm(0)
        with open(name + ".triton.ptx", "w") as f:
            f.write(ptx)
        with open(name + ".case", "w") as f:
            json.dump(case, f)
        return 1
    return 0


# ------------------------------------------------------------ collecting
def files_of(folder):
    found = []
    for root, dirs, names in os.walk(folder):
        dirs[:] = [d for d in dirs if d[0] != "." and d not in SKIPPED]
        for n in names:
            path = os.path.join(root, n)
            if n.endswith(".py") and os.path.isfile(path):
                with open(path, errors="replace") as f:
                    found += [path] if "@triton.jit" in f.read() else []
    key = lambda p: hashlib.sha256(os.path.relpath(p, folder).encode()).hexdigest()
    return sorted(found, key=key)


def in_child(write, out, path, include, kernels, folder):
    def late(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    sys.stdout = sys.stderr = open(os.devnull, "w")
    sys.path[:0] = include
    sys.meta_path.insert(0, Finder(include))
    sys.meta_path.append(Finder(None))
    base = next(i for i in include if not os.path.relpath(path, i).startswith(".."))
    name = os.path.relpath(path, base)[:-3].replace("/", ".")
    module = importlib.import_module(name)
    signal.alarm(0)
    for k in kernels:
        os.write(write, b"x" * compile_both(out, path, include, k, module, folder))


def collect(out, folder, most):
    include = [os.path.join(folder, d) for d in ("src", "python", ".")]
    include = [d for d in include if os.path.isdir(d)]
    done = 0
    for path in files_of(folder):
        if done >= most:
            break
        flags = [x for i in include for x in ("-I", i)]
        p = subprocess.run([SDC, "check", "--json", *flags, path], capture_output=True)
        try:
            kernels = [k for k in json.loads(p.stdout)["kernels"] if k["passes"]][:3]
        except ValueError:
            continue
        read, write = os.pipe()
        child = os.fork() if kernels else 0
        if not kernels:
            continue
        if child == 0:
            try:
                in_child(write, out, path, include, kernels, folder)
            finally:
                os._exit(0)
        os.close(write)
        until, data = time.time() + 240, b"."
        while data:
            if not select.select([read], [], [], max(0, until - time.time()))[0]:
                os.kill(child, signal.SIGKILL)
                break
            data = os.read(read, 16)
            done += len(data)
        os.close(read)
        os.waitpid(child, 0)
    print("%s: %d kernels" % (folder, done), file=sys.stderr, flush=True)


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    sys.path.insert(0, HERE)
    import static_count

    if len(sys.argv) > 2:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        pretend()
        for spec in sys.argv[2:]:
            folder, _, most = spec.partition(":")
            collect(out, os.path.abspath(folder), int(most or 30))
    else:
        for path in sorted(glob.glob(out + "/*.case")):
            with open(path) as f:
                why = sdc_ptx(json.load(f), path[:-5] + ".sdc.ptx")
            if why:
                print("%s: %s" % (path, why))
    rows = static_count.table(out)
    logs = [math.log(r[0]) for r in rows]
    mean = math.exp(sum(logs) / max(1, len(logs)))
    print("%d kernels, geometric mean %.3f" % (len(rows), mean))
    for _, line in rows:
        print(line)


if __name__ == "__main__":
    main()

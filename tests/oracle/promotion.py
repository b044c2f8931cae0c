#!/usr/bin/env python3
"""Result types of operations as Triton's front end gives them: `promotion` of
tests/golden/triton-golden.json, written anew by the Triton that is installed; no GPU.

    tests/oracle/promotion.py [--check]

Each operation is a kernel that Triton makes IR of. What it refuses there is an "error".
SKIPPED without triton; --check compares and writes nothing.
"""
import contextlib
import importlib.util
import io
import json
import os
import re
import sys
import tempfile
import warnings

try:
    import triton
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, make_backend
except (ImportError, OSError) as e:
    print(f"SKIPPED: {e}")
    sys.exit(0)
warnings.filterwarnings("ignore")

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
GOLDEN = os.path.join(ROOT, "golden/triton-golden.json")
# key in the golden file: the type in a signature
TYPES = {"i1": "i1", "i8": "i8", "u8": "u8", "i16": "i16", "u16": "u16", "i32": "i32",
         "u32": "u32", "i64": "i64", "u64": "u64", "f16": "fp16", "bf16": "bf16",
         "f32": "fp32", "f64": "fp64", "fp8e5": "fp8e5", "fp8e4nv": "fp8e4nv"}


def operations():
    """(key, expression, of two types?) as tests/run/golden_json.c lists them."""
    with open(os.path.join(ROOT, "run/golden_json.c")) as f:
        table = re.search(r"operations\[\] = \{(.*?)\n\};", f.read(), re.S)[1]
    rows = re.findall(r'\{"([^"]+)",\s*"([^"]+)",\s*(true|false)\}', table)
    return [(key, text, both == "true") for key, text, both in rows]


def module(ops):
    text = "import triton\nimport triton.language as tl\n"
    for n, (_, expr, _) in enumerate(ops):
        text += f"\n\n@triton.jit\ndef op{n}(a_ptr, b_ptr):\n    i = tl.arange(0, 16)\n"
        text += f"    a = tl.load(a_ptr + i)\n    b = tl.load(b_ptr + i)\n"
        text += f"    tl.static_print(({expr}).dtype)\n"
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "ops.py")
        with open(path, "w") as f:
            f.write(text)
        spec = importlib.util.spec_from_file_location("ops", path)
        mod = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(mod)
        for n in range(len(ops)):
            getattr(mod, f"op{n}").src  # read while the file is there
    return mod


def main():
    target = GPUTarget("cuda", 90, 32)
    backend = make_backend(target)
    options = backend.parse_options({})

    def result(fn, a, b):
        source = ASTSource(fn, {"a_ptr": "*" + TYPES[a], "b_ptr": "*" + TYPES[b]}, {})
        context, out = ir.context(), io.StringIO()
        ir.load_dialects(context)
        backend.load_dialects(context)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                source.make_ir(target, options, backend.get_codegen_implementation(options),
                               backend.get_module_map(), context)
            return out.getvalue().strip()
        except Exception as e:
            while e.__cause__ is not None:
                e = e.__cause__
            return "error: " + str(e).strip().split("\n")[-1][:90]

    ops = operations()
    mod, table = module(ops), {}
    for n, (key, _, both) in enumerate(ops):
        fn = getattr(mod, f"op{n}")
        table[key] = {a: {b: result(fn, a, b) for b in TYPES} if both else result(fn, a, a)
                      for a in TYPES}
    with open(GOLDEN) as f:
        golden = json.load(f)
    if "--check" in sys.argv:
        same = golden["promotion"] == table
        print("as Triton", triton.__version__, same)
        return 0 if same else 1
    golden["promotion"], golden["promotion_triton"] = table, triton.__version__
    with open(GOLDEN, "w") as f:
        json.dump(golden, f, separators=(",", ":"))
    return 0


sys.exit(main())

"""Launches Triton's kernels through libsdc instead of Triton's own compiler.

`install()` replaces JITFunction.run. A kernel's text (JITFunction.src, which test suites patch)
is written into one module together with everything it reaches: jit helpers, constexpr globals,
closures. That module goes to sdc_module_load_text; constexprs are bound as NAME=value; the
other arguments are passed as Triton would type them. Nothing of Triton's compiler runs.

Environment: SDC_LIB path of libsdc.so.0; SDC_TARGET "cpu" (default) or "cuda";
SDC_DUMP folder for the modules (default /tmp/sdc_dump).
"""
import ast
import ctypes as C
import hashlib
import inspect
import math
import os
import re
import sys
import textwrap
import types
import warnings

import torch
import triton
import triton.language as tl
import triton.tools.tensor_descriptor
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.jit import JITFunction, TensorWrapper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../gpu"))
from libsdc import Arg, Grid, Options, Value  # noqa: E402

LIB = os.environ.get("SDC_LIB", "build/libsdc.so.0")
TARGET = os.environ.get("SDC_TARGET", "cpu")
DUMP = os.environ.get("SDC_DUMP", "/tmp/sdc_dump")
# "neutral": is_cuda(), is_cpu(), is_hip() are all false; "cuda": the tests believe in sm_90;
# "cpu": is_cpu() of the fork triton-cpu
FACE = os.environ.get("SDC_FACE", "cuda" if TARGET == "cuda" else "neutral")

# launches as without debug=True: device_assert is not there on sdc's CPU target
NODEBUG = os.environ.get("SDC_NODEBUG") == "1"

(BOOL, I8, I16, I32, I64, U8, U16, U32, U64, FP8E5, FP8E4NV, FP8E4B15, FP16, BF16, FP32,
 FP64, FP8E4B8, FP8E5B16) = range(1, 19)
TORCH = {"bool": BOOL, "int8": I8, "int16": I16, "int32": I32, "int64": I64, "uint8": U8,
         "uint16": U16, "uint32": U32, "uint64": U64, "float8_e5m2": FP8E5,
         "float8_e4m3fn": FP8E4NV, "float16": FP16, "bfloat16": BF16, "float32": FP32,
         "float64": FP64}
TRITON = {"int1": BOOL, "int8": I8, "int16": I16, "int32": I32, "int64": I64, "uint8": U8,
          "uint16": U16, "uint32": U32, "uint64": U64, "fp8e5": FP8E5, "fp8e4nv": FP8E4NV,
          "fp8e4b15": FP8E4B15, "fp8e4b8": FP8E4B8, "fp8e5b16": FP8E5B16,
          "fp16": FP16, "bf16": BF16, "fp32": FP32, "fp64": FP64}
TL_NAME = {"int1": "int1", "fp8e5": "float8e5", "fp8e4nv": "float8e4nv", "void": "void",
           "fp8e4b15": "float8e4b15", "fp8e4b8": "float8e4b8", "fp8e5b16": "float8e5b16",
           "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
ARG_PTR, ARG_INT, ARG_FLOAT, ARG_NONE, ARG_DESC = range(5)
PAD_NAN, ROUND_TF32 = 0x100, 0x200

# names of launch options of Triton's backends; others are an error as in Triton
OPTIONS = set("""num_warps num_ctas num_stages warp_size maxnreg ir_override ptx_version ptx_options
 enable_fp_fusion enable_reflect_ftz launch_cooperative_grid launch_pdl supported_fp8_dtypes
 deprecated_fp8_dot_operand_dtypes default_dot_input_precision allowed_dot_input_precisions
 max_num_imprecise_acc_default extern_libs debug backend_name sanitize_overflow arch
 instrumentation_mode waves_per_eu matrix_instr_nonkdim kpack schedule_hint cluster_dims
 minRegAutoWS maxRegAutoWS vec_lib""".split())


class SdcError(Exception):
    status = 0


class SdcSource(triton.CompilationError):
    """SDC_ERROR_SOURCE: sdc says that the kernel is wrong. As Triton raises its errors: one for
    each function from the kernel inwards, lines counted from its def, the message at last."""
    status = 1

    def __init__(self, text, frames=None):
        frames = frames or places(text)
        self.src, self.node, self.error_message, self.text = None, None, text, text
        at, says, in_call = frames[-1]
        self.message = "at %s:\n%s\n%s" % (at, text, says) if at else text
        Exception.__init__(self, text)
        if len(frames) > 1:
            self.__cause__ = SdcSource(text, frames[:-1])
        else:
            self.__cause__ = ValueError(says) if in_call else None

    def __reduce__(self):
        return type(self), (self.text, )


class SdcAssertion(SdcSource, CompileTimeAssertionFailure):
    """A static_assert that does not hold."""


def places(text):
    """(place, message, in a call?) of the first error and of the calls that led there."""
    found = []
    lines = text.split("\n")
    for i, line in enumerate(lines):
        m = re.match(r"(\S+?):(\d+):(\d+): (error|note): (.*)", line)
        if m and not found and m[4] == "error" or m and found and "is called from here" in line:
            at = ""
            if os.path.exists(m[1]):
                with open(m[1]) as f:
                    before = f.read().split("\n")[:int(m[2])]
                starts = [k for k, x in enumerate(before) if x.startswith("def ")]
                at = "%d:%d:" % (len(before) - starts[-1], int(m[3]) - 1) if starts else ""
            source, mark = (lines[i + 1:i + 3] + ["", ""])[:2]
            column = mark.find("^")
            called = re.match(r"[\w.]+\(", source[column:]) or "(" in source[:column]
            found.append((at.rstrip(":"), m[5], bool(called) and "static assertion" not in m[5]))
    return found or [("", re.sub(r"^\S+:\d+:\d+: error: ", "", lines[0]), True)]


class SdcArgument(SdcError, TypeError, AssertionError):
    status = 2


class SdcUnsupported(SdcError):
    status = 3


class SdcEnvironment(SdcError):
    status = 5


class SdcMemory(SdcError):
    status = 6


class SdcInternal(SdcError):
    status = 70


class ShimGap(Exception):
    """The shim cannot express this launch."""


class Inspects(Exception):
    """The test looks at Triton's own products (ttir, ttgir, llir, ptx, metadata)."""


STATUS = {1: SdcSource, 2: SdcArgument, 3: SdcUnsupported, 5: SdcEnvironment, 6: SdcMemory,
          70: SdcInternal}


class Desc(C.Structure):
    _fields_ = [("dtype", C.c_int32), ("rank", C.c_int), ("base", C.c_void_p),
                ("shape", C.c_int64 * 5), ("strides", C.c_int64 * 5), ("block", C.c_int32 * 5)]


class Lib:
    def __init__(self, debug):
        lib = self.lib = C.CDLL(LIB)
        lib.sdc_error.restype = C.c_char_p
        lib.sdc_warnings.restype = C.c_char_p
        lib.sdc_error_reproducer.restype = C.c_char_p
        lib.sdc_kernel_ptx.restype = C.c_char_p
        for f in (lib.sdc_error, lib.sdc_warnings, lib.sdc_error_reproducer, lib.sdc_kernel_ptx):
            f.argtypes = [C.c_void_p]
        self.ctx = C.c_void_p()
        o = Options(target=TARGET.encode(), debug=int(debug), threads=int(
            os.environ.get("SDC_THREADS", "2")))
        if os.environ.get("SDC_WORKER"):
            o.worker, o.worker_seconds = os.environ["SDC_WORKER"].encode(), 60
        status = lib.sdc_context_create(C.byref(o), C.byref(self.ctx))
        if status:
            raise SdcEnvironment("no context: %d" % status)
        self.modules, self.functions = {}, {}

    def check(self, status):
        if status:
            text = self.lib.sdc_error(self.ctx).decode(errors="replace").strip()
            if status == 1 and "error: static assertion failed" in text:
                raise SdcAssertion(text)
            raise STATUS.get(status, SdcInternal)(text)

    def warn(self):
        text = self.lib.sdc_warnings(self.ctx)
        if text:
            warnings.warn(text.decode(errors="replace").strip(), UserWarning, stacklevel=2)

    def module(self, text, name):
        m = self.modules.get(text)
        if m is None:
            m = C.c_void_p()
            raw = text.encode()
            self.check(self.lib.sdc_module_load_text(self.ctx, name.encode(), raw,
                                                     C.c_size_t(len(raw)), 1, C.byref(m)))
            self.modules[text] = m
        return m

    def function(self, text, name, kernel, bind):
        key = (text, kernel, tuple(bind))
        f = self.functions.get(key)
        if f is None:
            f = C.c_void_p()
            b = [x.encode() for x in bind]
            self.check(self.lib.sdc_function_get(self.module(text, name), kernel.encode(),
                                                 (C.c_char_p * len(b))(*b), len(b), C.byref(f)))
            self.functions[key] = f
            self.warn()
        return f


_libs = {}


def lib(debug=False):
    if debug not in _libs:
        _libs[debug] = Lib(debug)
    return _libs[debug]


# ------------------------------------------------------------------ text of a kernel


def literal(v):
    """A value as Python source, or None when there is no such text."""
    if isinstance(v, tl.constexpr):
        return literal(v.value)
    if v is None or isinstance(v, (bool, int, str)):
        return repr(v)
    if isinstance(v, float):
        if math.isnan(v) or math.isinf(v):
            return 'float("%s")' % v
        return repr(v)
    if isinstance(v, tl.pointer_type):
        inner = literal(v.element_ty)
        return inner and "tl.pointer_type(%s)" % inner
    if isinstance(v, tl.block_type):
        inner = literal(v.element_ty)
        return inner and "tl.block_type(%s, %s)" % (inner, list(v.shape))
    if isinstance(v, tl.dtype):
        return "tl." + TL_NAME.get(v.name, v.name)
    if isinstance(v, (tuple, list)) and not hasattr(v, "_fields"):
        parts = [literal(x) for x in v]
        if any(p is None for p in parts):
            return None
        return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"
    if hasattr(v, "item") and getattr(v, "ndim", 1) == 0 and not isinstance(v, torch.Tensor):
        return literal(v.item())  # a number of numpy
    return None


def is_jit(v):
    return isinstance(v, triton.runtime.jit.JITCallable)


def is_of_triton(v):
    """A builtin of Triton's: tl.extra.cuda.smid."""
    return (isinstance(v, types.FunctionType) and
            (v.__module__ or "").startswith("triton.language"))


def source_of_class(cls):
    return textwrap.dedent(inspect.getsource(cls))


class Emitter:
    def __init__(self):
        self.head = ["import triton", "import triton.language as tl"]
        self.body = []
        self.names = {"triton": triton, "tl": tl}  # name in the module -> object
        self.placed = {}  # id of object -> name of its definition
        self.keep = []

    def fresh(self, want, obj):
        name, i = want, 0
        while name in self.names and self.names[name] is not obj:
            i += 1
            name = "%s__%d" % (want, i)
        self.names[name] = obj
        return name

    def bind(self, name, obj, annotations):
        """Makes `name` mean `obj` in the module."""
        if name in self.names:
            if self.names[name] is obj or same(self.names[name], obj):
                return
            raise ShimGap("two meanings of the global %s" % name)
        if isinstance(obj, types.ModuleType):
            self.names[name] = obj
            mod = obj.__name__
            if mod == "triton.language.extra.libdevice" or mod.endswith(".libdevice"):
                self.head.append("from triton.language.extra import libdevice" +
                                 ("" if name == "libdevice" else " as " + name))
            elif "." in mod:
                parent, _, leaf = mod.rpartition(".")
                self.head.append("from %s import %s%s" %
                                 (parent, leaf, "" if leaf == name else " as " + name))
            else:
                self.head.append("import %s%s" % (mod, "" if mod == name else " as " + name))
            return
        home = getattr(obj, "__module__", None) or ""
        if isinstance(obj, tl.constexpr):
            text = literal(obj)
            if text is None:
                if is_jit(obj.value):
                    self.names[name] = obj
                    inner = self.place(obj.value)
                    self.body.append("%s = tl.constexpr(%s)\n" % (name, inner))
                    return
                raise ShimGap("a constexpr of %r" % (obj.value, ))
            self.names[name] = obj
            self.body.append("%s = tl.constexpr(%s)\n" % (name, text))
            return
        if isinstance(obj, tl.dtype):
            self.names[name] = obj
            self.body.append("%s = %s\n" % (name, literal(obj)))
            return
        if home.startswith("triton") and hasattr(obj, "__name__") and not home.startswith(
                "triton._internal") and not home.startswith("triton.tools") and (
                    callable(obj) or is_jit(obj)):
            self.names[name] = obj
            leaf = obj.__name__
            if getattr(tl, leaf, None) is obj:
                home = "triton.language"
            elif getattr(triton, leaf, None) is obj:
                home = "triton"
            self.head.append("from %s import %s%s" %
                             (home, leaf, "" if leaf == name else " as " + name))
            return
        if is_jit(obj):
            placed = self.place(obj, name)
            if placed != name:
                self.names[name] = obj
                self.body.append("%s = %s\n" % (name, placed))
            return
        if isinstance(obj, type):
            self.names[name] = obj
            self.place_class(name, obj)
            return
        text = literal(obj)
        if text is not None:
            self.names[name] = obj
            note = annotations.get(name)
            if note is tl.constexpr or note == "tl.constexpr" or note == "constexpr":
                self.body.append("%s: tl.constexpr = %s\n" % (name, text))
            else:
                self.body.append("%s = %s\n" % (name, text))
            return
        # anything else is no kernel's business; if sdc needs it, sdc will say so

    def depend(self, text, scope, skip=()):
        tree = ast.parse(text)
        notes = scope.get("__annotations__", {}) or {}
        bound = {a.arg for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Lambda))
                 for a in n.args.args + n.args.kwonlyargs + n.args.posonlyargs}
        stored = {n.id for n in ast.walk(tree)
                  if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for n in ast.walk(tree):
            if not isinstance(n, ast.Name) or not isinstance(n.ctx, ast.Load):
                continue
            if n.id in skip or n.id not in scope or n.id in bound:
                continue
            obj = scope[n.id]
            if n.id in stored and not is_jit(obj) and not isinstance(obj, tl.constexpr):
                continue
            self.bind(n.id, obj, notes)

    def place(self, fn, want=None):
        """The definition of a jit function; its name in the module."""
        if id(fn) in self.placed:
            return self.placed[id(fn)]
        self.keep.append(fn)
        if fn.__module__ and fn.__module__.startswith("triton.language") or (
                fn.__module__ or "").startswith("triton.experimental"):
            leaf = fn.__name__
            name = self.fresh(leaf, fn)
            home = "triton.language" if getattr(tl, leaf, None) is fn else fn.__module__
            self.head.append("from %s import %s%s" % (home, leaf,
                                                      "" if leaf == name else " as " + name))
            self.placed[id(fn)] = name
            return name
        src = fn.src
        own = re.match(r"\s*def\s+(\w+)", src)
        if not own:
            raise ShimGap("no def in the text of %s" % fn)
        defname = own.group(1)
        name = self.fresh(want or defname, fn)
        self.placed[id(fn)] = name
        self.depend(src, fn.get_capture_scope(), skip=())
        if name != defname:
            src = re.sub(r"^(\s*def\s+)\w+", r"\g<1>" + name, src, count=1)
        self.body.append(decorator(fn) + "\n" + src.rstrip() + "\n\n")
        return name

    def place_class(self, name, cls):
        src = source_of_class(cls)
        scope = dict(sys.modules[cls.__module__].__dict__)
        # classes inside of tests see the closures of their methods
        for m in vars(cls).values():
            m = getattr(m, "fn", m)
            if isinstance(m, types.FunctionType):
                scope.update(inspect.getclosurevars(m).nonlocals)
        if "NamedTuple" in src:
            self.head.append("from typing import NamedTuple")
        self.names[name] = cls
        self.depend(src, scope, skip={cls.__name__})
        self.body.append(src.rstrip() + "\n\n")
        if cls.__name__ != name:
            self.body.append("%s = %s\n" % (name, cls.__name__))

    def text(self):
        seen, head = set(), []
        for h in self.head:
            if h not in seen:
                seen.add(h)
                head.append(h)
        return "\n".join(head) + "\n\n" + "\n".join(self.body)


def same(a, b):
    if isinstance(a, tl.constexpr) and isinstance(b, tl.constexpr):
        a, b = a.value, b.value
    try:
        return type(a) is type(b) and literal(a) is not None and literal(a) == literal(b)
    except Exception:
        return False


def decorator(fn):
    if not isinstance(fn, JITFunction):
        return "@triton.constexpr_function"
    parts = []
    if fn.do_not_specialize:
        parts.append("do_not_specialize=%r" % (list(fn.do_not_specialize), ))
    if fn.do_not_specialize_on_alignment:
        parts.append("do_not_specialize_on_alignment=%r" %
                     (list(fn.do_not_specialize_on_alignment), ))
    if fn.noinline:
        parts.append("noinline=True")
    if fn.debug and not NODEBUG:
        parts.append("debug=True")
    must = getattr(fn, "_must_use_result", False)
    used = "@triton.must_use_result%s\n" % ("(%r)" % must if must is not True else "")
    return (used if must else "") + "@triton.jit" + ("(%s)" % ", ".join(parts) if parts else "")


# ------------------------------------------------------------------ arguments


def dtype_of(x):
    d = x.dtype
    name = d.name if isinstance(d, tl.dtype) else str(d).split(".")[-1]
    code = TRITON.get(name) or TORCH.get(name)
    if code is None:
        raise ShimGap("no dtype of sdc for %s" % name)
    return code


def int_arg(x, code=None):
    a = Arg()
    a.kind = ARG_INT
    if not -2**63 <= x < 2**64:
        raise OverflowError("int too big to convert")
    if code is None:
        code = I32 if -2**31 <= x < 2**31 else I64 if -2**63 <= x < 2**63 else U64
    a.dtype = code
    a.v.i = x if x < 2**63 else x - 2**64
    return a


def annotated(param):
    t = getattr(param, "annotation_type", None)
    return TRITON.get({"u1": "int1", "i1": "int1", "i8": "int8", "i16": "int16", "i32": "int32",
                       "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32",
                       "u64": "uint64"}.get(t, t)) if t else None


def argument(x, keep, param=None):
    """One runtime argument, typed by Triton's rules."""
    a = Arg()
    want = annotated(param) if param is not None else None
    if isinstance(x, triton.tools.tensor_descriptor.TensorDescriptor):
        d = Desc(dtype=dtype_of(x.base), rank=len(x.shape), base=x.base.data_ptr())
        for i, (s, t, b) in enumerate(zip(x.shape, x.strides, x.block_shape)):
            d.shape[i], d.strides[i], d.block[i] = int(s), int(t), int(b)
        keep.append(d)
        nan = PAD_NAN if getattr(x, "padding", "zero") == "nan" else 0
        tf32 = ROUND_TF32 if getattr(x, "round_f32_to_tf32", False) else 0
        a.kind, a.dtype, a.v.ptr = ARG_DESC, d.dtype | nan | tf32, C.addressof(d)
    elif x is None:
        a.kind = ARG_NONE
    elif isinstance(x, torch.dtype) or isinstance(x, MockPtr):
        # warmup: a pointer that no memory is behind; aligned
        name = str(x).split(".")[-1] if isinstance(x, torch.dtype) else x.name
        a.kind, a.dtype, a.v.ptr = ARG_PTR, TORCH[name], 4096
    elif hasattr(x, "data_ptr"):
        a.kind, a.dtype, a.v.ptr = ARG_PTR, dtype_of(x), x.data_ptr()
        keep.append(x)
    elif isinstance(x, bool):
        a = int_arg(int(x), want or BOOL)
    elif isinstance(x, int):
        if want in (FP16, BF16, FP32, FP64):
            a.kind, a.dtype, a.v.f = ARG_FLOAT, want, float(x)
        else:
            if want == BOOL:  # as Triton's launcher: a bit of the number is left
                x &= 1
            a = int_arg(x, want)
    elif isinstance(x, float):
        a.kind, a.dtype, a.v.f = ARG_FLOAT, want or FP32, x
    elif hasattr(x, "item") and getattr(x, "ndim", 1) == 0:
        return argument(x.item(), keep, param)
    else:
        raise ShimGap("an argument of %s" % type(x).__name__)
    return a


class MockPtr:
    def __init__(self, name):
        self.name = name


def constant(x):
    """Arguments that Triton makes constexpr whatever the parameter says."""
    return isinstance(x, (str, tl.dtype, tl.constexpr, torch.memory_format)) or (
        is_jit(x)) or (isinstance(x, type))


# ------------------------------------------------------------------ launch


class Asm(dict):
    def __missing__(self, key):
        raise Inspects("asm[%r]" % key)

    def get(self, key, default=None):
        raise Inspects("asm[%r]" % key)


class Compiled:
    def __init__(self, options):
        self.asm = Asm()
        self._options = options

    def __getattr__(self, name):
        raise Inspects("compiled kernel .%s" % name)


wrapped = set()  # kinds of arguments of the running test that libsdc's interface lacks
launches = []  # of the running test: (file, kernel, bind, grid, arguments)


def plain(v):
    if isinstance(v, TensorWrapper):
        return "%s[%s]" % (v.dtype, ",".join(map(str, v.base.shape)))
    if isinstance(v, torch.Tensor):
        return "%s[%s]" % (v.dtype, ",".join(map(str, v.shape)))
    return repr(v)[:60]


def static(v, em):
    """Text of a constexpr argument in the wrapper's call."""
    if isinstance(v, tl.constexpr):
        v = v.value
    text = literal(v)
    if text is not None:
        return text
    if is_jit(v) or is_of_triton(v):
        return em.place(v)
    if isinstance(v, (tuple, list)):
        parts = [static(x, em) for x in v]
        if hasattr(v, "_fields"):
            em.bind(type(v).__name__, type(v), {})
            return "%s(%s)" % (type(v).__name__, ", ".join(parts))
        return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"
    if isinstance(v, type):
        em.bind(v.__name__, v, {})
        return v.__name__
    raise ShimGap("a constexpr of %s" % type(v).__name__)


def flatten(name, value, em, params, values, param):
    """Text for one argument of the wrapper's call; runtime leaves become parameters."""
    if constant(value):
        if is_jit(value) or is_of_triton(value):
            return em.place(value)
        if isinstance(value, tl.constexpr) and is_jit(value.value):
            return em.place(value.value)
        text = literal(value)
        if text is None:
            raise ShimGap("a constexpr of %s" % type(value).__name__)
        return text
    if isinstance(value, (tuple, list)):
        fields = getattr(value, "_fields", None)
        parts = [flatten("%s_%d" % (name, i), v, em, params, values, None)
                 for i, v in enumerate(value)]
        if fields:
            cls = type(value)
            cname = cls.__name__
            em.bind(cname, cls, {})
            return "%s(%s)" % (cname, ", ".join(parts))
        return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"
    if value is None:
        return "None"
    params.append(name)
    values.append((value, param))
    return name


def run(self, *args, grid, warmup, **kwargs):
    kwargs["debug"] = kwargs.get("debug", self.debug) or triton.knobs.runtime.debug
    for hook in self.pre_run_hooks:
        hook(*args, **kwargs)
    names = {p.name for p in self.params}
    options = {k: v for k, v in kwargs.items() if k not in names}
    for k in options:
        if k not in OPTIONS:
            raise KeyError("Keyword argument %s was specified but unrecognised" % k)
    bound = self.signature.bind(*args, **{k: v for k, v in kwargs.items() if k in names})
    bound.apply_defaults()
    values = dict(bound.arguments)
    em = Emitter()
    kernel = em.place(self)
    bind, runtime, wrap = [], [], False
    for p in self.params:
        v = values[p.name]
        if isinstance(v, list):
            v = values[p.name] = triton.runtime.jit.convert_to_tuple_if_list(v)
        if p.is_constexpr:
            if isinstance(v, tl.constexpr):
                v = v.value
            text = literal(v)
            if text is None or isinstance(v, (tuple, list)):
                # a function, a tuple: bindings of libsdc have no text for these
                wrap = True
            else:
                bind.append("%s=%s" % (p.name, text))
        elif isinstance(v, tuple) or constant(v):
            wrap = True
        else:
            runtime.append((v, p))
    entry = kernel
    if wrap:
        why = {type(v).__name__ + (" constexpr" if p.is_constexpr else "")
               for p in self.params for v in [values[p.name]]
               if isinstance(v, (tuple, list)) or constant(v) and not p.is_constexpr or is_jit(v)}
        wrapped.update(why)
        entry = kernel + "__entry"
        params, leaves, call = [], [], []
        bind = []
        for p in self.params:
            v = values[p.name]
            if p.is_constexpr:
                if isinstance(v, tl.constexpr):
                    v = v.value
                text = static(v, em)
                call.append("%s=%s" % (p.name, text))
            else:
                call.append("%s=%s" % (p.name, flatten(p.name, v, em, params, leaves, p)))
        dns = [n for n, (v, p) in zip(params, leaves) if p is not None and p.do_not_specialize]
        em.body.append("@triton.jit%s\ndef %s(%s):\n    %s(%s)\n" %
                       ("(do_not_specialize=%r)" % dns if dns else "", entry, ", ".join(params),
                        kernel, ", ".join(call)))
        runtime = leaves
    for k in ("num_warps", "num_stages", "num_ctas"):
        if options.get(k) is not None and isinstance(options[k], int) and k not in names:
            bind.append("%s=%d" % (k, options[k]))
    if options.get("launch_pdl"):
        bind.append("launch_pdl=True")
    text = em.text()
    digest = hashlib.sha1(text.encode()).hexdigest()[:12]
    path = os.path.join(DUMP, digest + ".py")
    if not os.path.exists(path):
        os.makedirs(DUMP, exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
    if callable(grid):
        grid = grid(values)
    grid = tuple(int(g) for g in grid) if grid is not None else (1, )
    if len(launches) < 8:
        launches.append("%s -k %s %s grid=%s args=[%s]" %
                        (path, entry, " ".join("-c '%s'" % b for b in bind), grid, ", ".join(
                            plain(v) for v, p in runtime)))
    keep = []
    cargs = (Arg * max(1, len(runtime)))(*[argument(v, keep, p) for v, p in runtime])
    L = lib(bool(options.get("debug")) and not NODEBUG)
    fn = L.function(text, path, entry, bind)
    if warmup:
        k = C.c_void_p()
        L.check(L.lib.sdc_specialize(fn, cargs, len(runtime), C.byref(k)))
    else:
        stream = None
        if TARGET != "cpu":
            stream = C.c_void_p(torch.cuda.current_stream().cuda_stream)
        g = Grid(*(list(grid) + [1, 1])[:3])
        L.check(L.lib.sdc_launch(fn, g, cargs, len(runtime), stream))
    return Compiled(options)


# ------------------------------------------------------------------ Triton's runtime around it


class Utils:
    @staticmethod
    def get_device_properties(device):
        return {"max_shared_mem": 232448, "multiprocessor_count": 132, "max_num_regs": 65536,
                "warpSize": 32, "sm_clock_rate": 1, "mem_clock_rate": 1, "mem_bus_width": 1}


class FakeDriver:
    utils = Utils()

    def __init__(self):
        from triton.backends.compiler import GPUTarget
        self.target = {"cuda": GPUTarget("cuda", 90, 32), "cpu": GPUTarget("cpu", "x86_64", 0)
                       }.get(FACE, GPUTarget("sdc", 0, 32))

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0

    def set_current_device(self, d):
        pass

    def get_current_stream(self, d=None):
        return torch.cuda.current_stream().cuda_stream if TARGET == "cuda" else 0

    def get_active_torch_device(self):
        return torch.device("cuda" if TARGET == "cuda" else "cpu")

    def get_device_interface(self):
        return torch.cuda if TARGET == "cuda" else torch.cpu

    def get_benchmarker(self):
        import time

        def bench(fn, quantiles=None, **_):
            t = time.perf_counter()
            fn()
            t = time.perf_counter() - t
            return [t] * len(quantiles) if quantiles else t
        return bench

    def get_empty_cache_for_benchmark(self):
        return torch.empty(1024, dtype=torch.int8)

    def clear_cache(self, cache):
        pass

    def map_python_to_cpp_type(self, ty):
        return ty

    def __getattr__(self, name):
        raise Inspects("driver.%s" % name)


def sig_type(t):
    """Triton's name of an argument's type in sdc's spelling."""
    return {"u1": "i1"}.get(t, t)


def compile_source(src, *rest, **more):
    """triton.compile(ASTSource(..)): compiled by signature, to learn whether sdc takes it."""
    if not hasattr(src, "fn"):
        raise Inspects("compiles Triton's own IR")
    fn = src.fn
    em = Emitter()
    name = em.place(fn)
    consts = {}
    for k, v in (src.constants or {}).items():
        k = k[0] if isinstance(k, tuple) and len(k) == 1 else k
        consts[fn.params[k].name if isinstance(k, int) else k] = v
    bind, sig = [], []
    whole = dict.fromkeys(consts, "constexpr")
    whole.update(src.signature or {})
    for k, t in whole.items():
        k = fn.params[k].name if isinstance(k, int) else k
        if t == "constexpr" or k in consts:
            v = consts.get(k)
            text = literal(v)
            if text is None:
                if not is_jit(v):
                    raise ShimGap("a constexpr of %s" % type(v).__name__)
                text = em.place(v)
            bind.append("%s=%s" % (k, text))
        elif isinstance(t, str):
            sig.append("%s=%s" % (k, sig_type(t)))
        else:
            raise ShimGap("a signature with %r" % (t, ))
    text = em.text()
    path = os.path.join(DUMP, hashlib.sha1(text.encode()).hexdigest()[:12] + ".py")
    os.makedirs(DUMP, exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    launches.append("%s -k %s -s '%s' %s" % (path, name, ",".join(sig),
                                           " ".join("-c '%s'" % b for b in bind)))
    L = lib(False)
    m = L.module(text, path)
    k = C.c_void_p()
    b = [x.encode() for x in bind]
    L.check(L.lib.sdc_kernel_get(m, name.encode(), ",".join(sig).encode() if sig else None,
                                 (C.c_char_p * max(1, len(b)))(*b), len(b), C.byref(k)))
    L.warn()
    return Compiled({})


def run_parser(fn, args=(), kwargs={}, target=None):
    run(fn, *args, grid=(1, ), warmup=True, **dict(kwargs))
    return Asm()


def run_filecheck_test(fn):
    run(fn, grid=(1, ), warmup=True)
    raise Inspects("FileCheck of Triton's IR; sdc compiles the kernel")


def install():
    JITFunction.run = run
    if not hasattr(triton, "aggregate"):  # newer than 3.7.0
        triton.aggregate = tl.core._aggregate
    triton.runtime.driver.set_active(FakeDriver())
    if TARGET != "cuda":
        import contextlib
        torch.cuda.device = lambda *a, **k: contextlib.nullcontext()
        torch.cuda.get_device_capability = lambda *a, **k: (9, 0)
        torch.cuda.get_device_name = lambda *a, **k: "H200 (pretended)"
        torch.cuda.get_device_properties = lambda *a, **k: types.SimpleNamespace(
            multi_processor_count=8, name="H200 (pretended)", total_memory=1 << 37)
        torch.cuda.synchronize = lambda *a, **k: None
        torch.cuda.current_device = lambda: 0
    triton.compile = compile_source
    triton.compiler.compile = compile_source
    try:
        import triton._filecheck as fc
    except ImportError:
        return
    fc.run_parser = run_parser
    fc.run_filecheck_test = run_filecheck_test

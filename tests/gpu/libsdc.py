"""The C interface of libsdc by ctypes: as much of runtime/sdc.h as the GPU comparison needs.

    ctx = Context("build/libsdc.so.0")
    fn = ctx.load("matmul.tk").function("matmul", {"BLOCK_M": 128}, num_warps=8)
    call = fn.prepare((tiles, 1, 1), [a, b, c, None, m, n, k])   # tensors, numbers, None
    call()                                                        # on torch's current stream

Tensors are handed over by address; the library works in the CUDA context that torch uses.
"""
import ctypes as C

OK, UNSUPPORTED = 0, 3
I32, I64, FP32 = 4, 5, 15
# torch's names to SdcDtype
DTYPES = {"bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7,
          "uint32": 8, "uint64": 9, "float8_e5m2": 10, "float8_e4m3fn": 11, "float16": 13,
          "bfloat16": 14, "float32": 15, "float64": 16}
ARG_PTR, ARG_INT, ARG_FLOAT, ARG_NONE = 0, 1, 2, 3


class Error(Exception):
    def __init__(self, status, text):
        super().__init__(text.strip())
        self.unsupported = status == UNSUPPORTED


class Options(C.Structure):
    _fields_ = [("size", C.c_size_t),
                ("include_dirs", C.POINTER(C.c_char_p)), ("ninclude", C.c_int),
                ("threads", C.c_int), ("memory_limit", C.c_size_t), ("cpu", C.c_char_p),
                ("color", C.c_int), ("debug", C.c_int), ("target", C.c_char_p),
                ("device", C.c_int), ("cache_dir", C.c_char_p), ("worker", C.c_char_p),
                ("worker_seconds", C.c_int), ("check", C.c_int),
                ("print", C.c_void_p), ("print_user", C.c_void_p),
                ("defines", C.POINTER(C.c_char_p)), ("ndefine", C.c_int)]


class Value(C.Union):
    _fields_ = [("ptr", C.c_void_p), ("i", C.c_int64), ("f", C.c_double)]


class Arg(C.Structure):
    _fields_ = [("kind", C.c_int32), ("dtype", C.c_int32), ("v", Value)]


class Grid(C.Structure):
    _fields_ = [("x", C.c_int32), ("y", C.c_int32), ("z", C.c_int32)]


class Device(C.Structure):
    _fields_ = [("name", C.c_char * 128), ("target", C.c_char_p), ("sm", C.c_int),
                ("driver", C.c_int), ("memory", C.c_int64), ("cuda", C.c_void_p)]


class Use(C.Structure):
    _fields_ = [("registers", C.c_int), ("local_bytes", C.c_int), ("shared_bytes", C.c_int64),
                ("num_warps", C.c_int), ("num_stages", C.c_int)]


def argument(x):
    """A tensor, number or None as Triton would pass it."""
    a = Arg()
    if x is None:
        a.kind = ARG_NONE
    elif hasattr(x, "data_ptr"):
        a.kind, a.dtype, a.v.ptr = ARG_PTR, DTYPES[str(x.dtype).split(".")[1]], x.data_ptr()
    elif isinstance(x, bool):
        a.kind, a.dtype, a.v.i = ARG_INT, 1, x
    elif isinstance(x, int):
        a.kind, a.dtype, a.v.i = ARG_INT, I32 if -2**31 <= x < 2**31 else I64, x
    else:
        a.kind, a.dtype, a.v.f = ARG_FLOAT, FP32, x
    return a


class Context:
    def __init__(self, path, target="cuda", device=0):
        lib = self.lib = C.CDLL(path)
        lib.sdc_error.restype = lib.sdc_version.restype = C.c_char_p
        lib.sdc_kernel_ptx.restype = C.c_char_p
        for name in ("sdc_error", "sdc_context_destroy", "sdc_kernel_ptx"):
            getattr(lib, name).argtypes = [C.c_void_p]
        self.handle = C.c_void_p()
        options = Options(target=target.encode(), device=device)
        status = lib.sdc_context_create(C.byref(options), C.byref(self.handle))
        if status != OK:
            raise Error(status, "no context")
        self.device = Device()
        if target != "cpu":
            self.check(lib.sdc_context_device(self.handle, C.byref(self.device)))

    def check(self, status):
        if status != OK:
            raise Error(status, self.lib.sdc_error(self.handle).decode())

    def load(self, path):
        module = C.c_void_p()
        self.check(self.lib.sdc_module_load_file(self.handle, path.encode(),
                                                 C.byref(module)))
        return Module(self, module)

    def close(self):
        self.lib.sdc_context_destroy(self.handle)


class Param(C.Structure):
    _fields_ = [("name", C.c_char_p), ("type", C.c_char_p), ("is_constexpr", C.c_int),
                ("has_default", C.c_int)]


class Module:
    def __init__(self, ctx, handle):
        self.ctx, self.handle = ctx, handle

    def function(self, kernel, constants, num_warps=4, num_stages=3, launch_pdl=False):
        bind = [f"{k}={v!r}".encode() for k, v in constants.items()]
        bind += [f"num_warps={num_warps}".encode(), f"num_stages={num_stages}".encode()]
        if launch_pdl:
            bind.append(b"launch_pdl=True")
        fn = C.c_void_p()
        lib = self.ctx.lib
        self.ctx.check(lib.sdc_function_get(self.handle, kernel.encode(),
                                            (C.c_char_p * len(bind))(*bind), len(bind),
                                            C.byref(fn)))
        params, n = C.POINTER(Param)(), C.c_int()
        self.ctx.check(lib.sdc_module_params(self.handle, kernel.encode(),
                                             C.byref(params), C.byref(n)))
        count = sum(not params[i].is_constexpr for i in range(n.value))
        return Function(self.ctx, fn, count)


class Function:
    def __init__(self, ctx, handle, count):
        self.ctx, self.handle, self.count = ctx, handle, count

    def arguments(self, values):
        """As sdc_launch takes them; the last that are not given are None."""
        missing = [None] * (self.count - len(values))
        return (Arg * self.count)(*[argument(v) for v in list(values) + missing])

    def specialize(self, values):
        args = self.arguments(values)
        kernel = C.c_void_p()
        self.ctx.check(self.ctx.lib.sdc_specialize(self.handle, args, self.count,
                                                   C.byref(kernel)))
        return kernel

    def use(self, values):
        use = Use()
        self.ctx.check(self.ctx.lib.sdc_kernel_use(self.specialize(values), C.byref(use)))
        return use

    def ptx(self, values):
        return self.ctx.lib.sdc_kernel_ptx(self.specialize(values)).decode()

    def prepare(self, grid, values, stream=None):
        """A function of no arguments that launches; `stream` a number, None: the default, or
        a function that says it at each launch."""
        args = self.arguments(values)
        size = Grid(*(list(grid) + [1, 1])[:3])
        launch, handle, n, ctx = self.ctx.lib.sdc_launch, self.handle, self.count, self.ctx
        fixed = None if callable(stream) else C.c_void_p(stream)

        def call(keep=values):  # the tensors stay alive with the call
            at = C.c_void_p(stream()) if callable(stream) else fixed
            status = launch(handle, size, args, n, at)
            if status != OK:
                ctx.check(status)
        return call

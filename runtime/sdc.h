/* libsdc: compiles Triton kernels and runs them. The public C interface.

   A first launch:

       SdcContext *ctx;  SdcModule *mod;  SdcFunction *add;
       sdc_context_create(NULL, &ctx);
       sdc_module_load_file(ctx, "vector_add.tk", &mod);
       const char *bind[] = {"BLOCK=1024"};
       sdc_function_get(mod, "add_kernel", bind, 1, &add);
       SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, y),
                        sdc_ptr(SDC_FP32, out), sdc_int(n)};
       if (sdc_launch(add, sdc_grid((n + 1023) / 1024, 1, 1), args, 4, NULL) != SDC_OK)
           puts(sdc_error(ctx));

   Objects. A context holds options, threads and messages. A module is one source file. A
   function is a kernel of a module with its constexpr parameters bound: launching it
   specializes by the types and properties of the arguments (equal to 1, divisible by 16),
   as Triton does, and keeps every specialization. A kernel is one such specialization,
   compiled and loaded; sdc_kernel_get makes one from a signature in the syntax of
   Triton's ahead-of-time compiler.

   Ownership. Functions and kernels belong to their module, modules to their context:
   unloading a module frees its functions and kernels, destroying a context frees all.
   Text and arrays that are passed in are copied; what a function returns stays valid as
   long as its owner, unless it says otherwise. Buffers of a launch belong to the caller.

   GPUs. A context whose target is "cuda" compiles for one device and launches there:
   pointers are addresses of the device, sdc_launch returns at once and takes a CUstream.
   It works in the calling thread's current CUcontext when that belongs to the device, and
   in the device's primary context otherwise. Only NVIDIA's driver is needed.

   Threads. Every function may be called from any thread at any time, also on the same
   objects, except that an object must not be freed while another thread uses it or
   anything that it owns. sdc_launch takes no lock once its specialization exists. A stack
   of 256 KiB is enough: compilation and its callbacks run on the calling thread, but on a
   stack of 256 MiB of address space that is mapped for the call.

   Forks. In a child process, contexts of the parent can still launch on the CPU what was
   compiled before the fork, on the calling thread. Everything else returns
   SDC_ERROR_ENVIRONMENT, and unloading or destroying objects of the parent does nothing.
   No call waits for a thread of the parent. Contexts created in the child work normally.

   Errors. Functions that can fail return a status; the message, with source place and
   caret, is kept per context and calling thread. The library never exits, aborts, prints
   or installs signal handlers, and an internal error comes back as SDC_ERROR_INTERNAL
   with a reproducer in the message of sdc_error_reproducer. */
#ifndef SDC_H
#define SDC_H

#include "runtime/rt/grid.h"

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SDC_API __attribute__((visibility("default")))
#else
#define SDC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SdcContext SdcContext;
typedef struct SdcModule SdcModule;
typedef struct SdcFunction SdcFunction;
typedef struct SdcKernel SdcKernel;
typedef struct SdcOutput SdcOutput;

typedef enum SdcStatus {
    SDC_OK = 0,
    SDC_ERROR_SOURCE = 1,      /* an error in the source, or it exceeds a limit */
    SDC_ERROR_ARGUMENT = 2,    /* an argument of the call is invalid */
    SDC_ERROR_UNSUPPORTED = 3, /* valid, but not supported yet */
    SDC_ERROR_FILE = 4,        /* a file cannot be read */
    SDC_ERROR_ENVIRONMENT = 5, /* no such device, driver too old, no threads */
    SDC_ERROR_MEMORY = 6,      /* out of memory */
    SDC_ERROR_CHECK = 7,       /* an error of the running kernel: an assertion failed, or
                                  a checked launch found an error */
    SDC_ERROR_INTERNAL = 70    /* a bug of sdc; see sdc_error_reproducer */
} SdcStatus;

/* "SDC_ERROR_SOURCE"; never NULL. */
SDC_API const char *sdc_status_name(SdcStatus status);

/* "0.1.0"; static text. */
SDC_API const char *sdc_version(void);

/* The targets that sdc_compile accepts, "cpu, sm_80, ..."; static text. */
SDC_API const char *sdc_targets(void);

/* ---------------------------------------------------------------- context */

typedef void SdcPrintFn(void *user, const char *line);

/* Checked launches: see "checked launches" below. */
enum {
    SDC_CHECK_ACCESS = 1, /* every load, store and atomic */
    SDC_CHECK_NAN = 2     /* and where a NaN comes from that is stored */
};

/* Option structs begin with their size; 0 is the size in the library's own header. A host
   that sets it also runs with a libsdc whose structs have more members, or fewer if those
   it does not know are zero. Members are added at the end; zero is the default. */
typedef struct SdcContextOptions {
    size_t size; /* sizeof(SdcContextOptions), or 0 */
    const char *const *include_dirs; /* searched for imports of jit helpers */
    int ninclude;
    int threads; /* CPU launches: threads in all; 0: SDC_NUM_THREADS or all cores */
    size_t memory_limit; /* bytes of a compile's working memory per arena; 0: 2 GiB */
    const char *cpu;     /* CPU to generate code for at launch; NULL: the host's */
    int color;           /* nonzero: messages carry ANSI colours */
    int debug; /* nonzero: assert and device_assert are compiled in, and source lines */
    /* Where launches run: "cpu"; "cuda"; or the target to compile for, "sm_80", which may
       be older than the GPU that runs it. NULL: "cpu". */
    const char *target;
    int device;          /* "cuda": number of the GPU, as the driver counts them */
    const char *cache_dir; /* kernels on disk; NULL: see sdc_cache */
    /* Path of the sdc command, to compile launched kernels in separate processes: a
       crash, an endless loop or excessive memory use of the compiler there is a status
       here. NULL: compile in this process, which is faster. */
    const char *worker;
    int worker_seconds; /* time limit of a compile there; 0: 30 */
    int check;          /* SDC_CHECK_*: launches are checked; the CPU only */
    /* Receives each line that kernels on the CPU print by device_print, "pid (1, 0, 0)
       idx (3) x: 0.250000", without a newline. Called by the threads that run programs,
       one at a time; it must not launch or compile. NULL: nothing is printed. */
    SdcPrintFn *print;
    void *print_user;
    /* NAME=VALUE each: values that module-level code needs but cannot compute here. NAME
       is a global of a file, an environment variable, or an expression as it is written,
       "torch.cuda.device_count()"; VALUE is a Python literal, else a string. */
    const char *const *defines;
    int ndefine;
} SdcContextOptions;

/* Creates a context. `options`: NULL for defaults; fields that are zero are defaults.
   Cheap: no thread starts and no GPU is opened before something needs it.
   SDC_ERROR_MEMORY, SDC_ERROR_ARGUMENT (`out` is NULL, a number negative or the target
   unknown). */
SDC_API SdcStatus sdc_context_create(const SdcContextOptions *options, SdcContext **out);

/* Frees the context with its modules, functions, kernels and threads. No launch may be
   running. NULL is allowed. */
SDC_API void sdc_context_destroy(SdcContext *ctx);

/* Number of threads that a CPU launch uses, the calling one included. */
SDC_API int sdc_context_threads(const SdcContext *ctx);

/* The GPU of a context whose target is not "cpu". */
typedef struct SdcDevice {
    char name[128];
    const char *target; /* what kernels are compiled for, "sm_90a"; the context's text */
    int sm;             /* 90 for compute capability 9.0 */
    int driver;         /* 1000 * major + 10 * minor of the driver's CUDA version */
    int64_t memory;     /* bytes */
    /* sdc/cuda.h: memory, streams and events; owned by the context */
    struct SdcrtCuda *cuda;
} SdcDevice;

/* Opens the device, unless it is open, and describes it: call it to learn early whether
   there is one. SDC_ERROR_ENVIRONMENT: no driver, an old one, no such device or one below
   sm_80; SDC_ERROR_ARGUMENT: the context's target is the CPU. */
SDC_API SdcStatus sdc_context_device(SdcContext *ctx, SdcDevice *out);

/* Kernels that launches compile are cached on disk for later processes: in
   options.cache_dir, else $SDC_CACHE_DIR, else the folder sdc in $XDG_CACHE_HOME or
   ~/.cache; nowhere if SDC_CACHE is "off". An entry is for one source with its imports,
   one specialization and one build of sdc; entries appear atomically and are checked when
   read. Any number of processes may share the folder. If it is missing, full, read-only
   or damaged, that is never an error: kernels are then compiled. */
typedef enum SdcCacheAction {
    SDC_CACHE_STAT,
    SDC_CACHE_VERIFY, /* reads all entries and removes damaged ones */
    SDC_CACHE_GC,     /* removes least recently used entries down to a limit */
    SDC_CACHE_CLEAR
} SdcCacheAction;

typedef struct SdcCacheInfo {
    const char *dir; /* the context's; NULL: there is no cache */
    int64_t entries, bytes;
    int64_t bad, removed;
    int64_t temporaries;  /* files of processes that died while writing */
    int64_t limit;        /* bytes, $SDC_CACHE_SIZE in MiB or 1 GiB */
    int64_t hits, misses; /* of this context */
} SdcCacheInfo;

/* Performs the action on the folder. `limit`: bytes, for SDC_CACHE_GC; negative: the
   default one. `out` may be NULL. SDC_ERROR_ENVIRONMENT: the cache is missing or
   unreadable. */
SDC_API SdcStatus sdc_cache(SdcContext *ctx, SdcCacheAction action, int64_t limit,
                            SdcCacheInfo *out);

/* Number of compiles in this process that ended inside of LLVM, out of memory or by an
   error that LLVM does not return from. What LLVM held then stays allocated: *bytes,
   which may be NULL. Beyond 1 GiB compiling is refused with SDC_ERROR_MEMORY. Always 0
   with a worker. */
SDC_API int sdc_lost_compiles(int64_t *bytes);

/* Message of the calling thread's last failed call on this context or an object of it:
   "path:line:column: error: ...", the source line, a caret, notes. Valid until the
   thread's next call on this context. "" when nothing failed; never NULL. */
SDC_API const char *sdc_error(SdcContext *ctx);

/* Warnings of the thread's last call that compiled, in the same form; "" without any. */
SDC_API const char *sdc_warnings(SdcContext *ctx);

/* After SDC_ERROR_INTERNAL: the tile IR before the pass that failed, with the command
   line that repeats the failure in its first line. "" otherwise. */
SDC_API const char *sdc_error_reproducer(SdcContext *ctx);

typedef struct SdcPlace {
    const char *path; /* valid as long as sdc_error's text */
    int line, column; /* from 1, columns in bytes; 0: unknown */
    int end_line, end_column;
} SdcPlace;

/* Place of the first error of that message; returns 0 when there is none. */
SDC_API int sdc_error_place(SdcContext *ctx, SdcPlace *out);

typedef enum SdcSeverity { SDC_SAYS_ERROR, SDC_SAYS_WARNING, SDC_SAYS_NOTE } SdcSeverity;

typedef struct SdcMessage {
    SdcSeverity severity;
    SdcPlace place;   /* path NULL: none */
    const char *text;
    const char *code; /* syntax, module, name, signature, type, target, other */
} SdcMessage;

/* The i-th message of the thread's last call that compiled or checked; notes follow their
   message. NULL: there are not so many. Valid as long as sdc_error's text. */
SDC_API const SdcMessage *sdc_message(SdcContext *ctx, int i);

/* ---------------------------------------------------------------- modules */

typedef enum SdcLang {
    SDC_LANG_AUTO, /* by the ending .tir, else by the text itself */
    SDC_LANG_TRITON,
    SDC_LANG_TIR /* textual tile IR */
} SdcLang;

/* Reads and parses a file of at most 4 MiB (tile IR: 64 MiB). SDC_ERROR_FILE,
   SDC_ERROR_SOURCE, SDC_ERROR_MEMORY, SDC_ERROR_ARGUMENT. */
SDC_API SdcStatus sdc_module_load_file(SdcContext *ctx, const char *path,
                                       SdcModule **out);

/* The same for text in memory; `name` stands for the path in messages and is the place
   from which relative imports are searched. The text is copied. */
SDC_API SdcStatus sdc_module_load_text(SdcContext *ctx, const char *name,
                                       const char *text, size_t size, SdcLang lang,
                                       SdcModule **out);

/* Frees the module, its functions and its kernels. NULL is allowed. */
SDC_API void sdc_module_unload(SdcModule *mod);

/* Number of kernels of the module, and the name of the i-th in source order. */
SDC_API int sdc_module_kernel_count(const SdcModule *mod);
/* NULL: there is none. */
SDC_API const char *sdc_module_kernel_name(const SdcModule *mod, int i);

typedef struct SdcParam {
    const char *name;
    const char *type; /* from the annotation, as Triton spells it; NULL: none */
    int is_constexpr, has_default;
} SdcParam;

/* Parameters of a kernel in source order. The array lives as long as the module.
   SDC_ERROR_ARGUMENT: no such kernel. */
SDC_API SdcStatus sdc_module_params(SdcModule *mod, const char *kernel,
                                    const SdcParam **params, int *n);

typedef struct SdcCheckOptions {
    size_t size;        /* sizeof(SdcCheckOptions), or 0 */
    const char *kernel; /* NULL: all */
    const char *const *signatures; /* as sdc_kernel_get, of one kernel; none: guessed */
    int nsignature;
    const char *const *bind; /* NAME=VALUE, each for kernels with that parameter */
    int nbind;
    const char *const *targets; /* also compile for these; none: only check types */
    int ntarget;
} SdcCheckOptions;

typedef struct SdcChecked {
    const char *name; /* of a jit function */
    int line, guessed;
    int is_kernel; /* 0: a helper: it returns a value, or is only called by others */
    int ok;        /* it compiles; an unused helper: it has no unknown names */
    const char *signature; /* one that it compiles with, or the first one that fails */
} SdcChecked;

typedef struct SdcCheck {
    const SdcChecked *functions; /* in source order */
    int n, kernels, good; /* number of kernels, and of those that compile */
    const char *listing;  /* what sdc check prints */
} SdcCheck;

/* Compiles every kernel. Types and constants that annotations, defaults, configurations
   and heuristics do not give are guessed from what the kernel does with a parameter;
   where that leaves a choice, a few are tried, and one that compiles is enough. `options`
   may be NULL. *out is valid until the thread's next call of this function on the
   context. If a kernel or helper has an error, the status is SDC_ERROR_SOURCE or one of
   sdc_compile's, and *out is still valid; after other errors it is NULL. */
SDC_API SdcStatus sdc_module_check(SdcModule *mod, const SdcCheckOptions *options,
                                   const SdcCheck **out);

/* Several kernels that run one after the other over the same grid, fused into one. */
typedef struct SdcFuseOptions {
    size_t size; /* sizeof(SdcFuseOptions), or 0 */
    /* "scale,add,gelu", in the order of their launches; "again=scale" is a kernel that
       comes twice, under another name */
    const char *kernels;
    /* "scale.y=add.x,add.out=gelu.x:fp16,gelu.bias=b": two parameters become one buffer,
       of fp32 or the given type, without memory; or a parameter of the fused kernel gets
       this name. NULL: nothing is bound. */
    const char *bind;
    const char *name; /* of the fused kernel; NULL: the names joined by '_' */
} SdcFuseOptions;

/* Makes a module with one more kernel, the fused one; `mod` stays as it is. The
   parameters are those of the chain, under the names that bindings give them or else
   their own, each once, in order of first use. A kernel may load from a fused buffer only
   what the same program has stored there, through the same pointers under the same mask;
   this is checked when the kernel is compiled. SDC_ERROR_ARGUMENT: unknown names,
   bindings without effect; SDC_ERROR_UNSUPPORTED: tile IR; SDC_ERROR_MEMORY. */
SDC_API SdcStatus sdc_fuse(SdcModule *mod, const SdcFuseOptions *options,
                           SdcModule **out);

/* ---------------------------------------------------------------- arguments */

typedef enum SdcDtype {
    SDC_DTYPE_NONE = 0, /* a pointer: as the parameter's annotation says */
    SDC_BOOL,
    SDC_I8, SDC_I16, SDC_I32, SDC_I64,
    SDC_U8, SDC_U16, SDC_U32, SDC_U64,
    SDC_FP8E5, SDC_FP8E4NV, SDC_FP8E4B15,
    SDC_FP16, SDC_BF16, SDC_FP32, SDC_FP64,
    SDC_FP8E4B8, SDC_FP8E5B16, /* of AMD's GPUs */
    SDC_DTYPE_COUNT
} SdcDtype;

/* "fp32"; NULL for SDC_DTYPE_NONE and values outside the enumeration. */
SDC_API const char *sdc_dtype_name(SdcDtype t);
/* Bytes of an element in memory: a bool takes one. 0 when unknown. */
SDC_API int sdc_dtype_size(SdcDtype t);
/* The type with this name, Triton's or a common alias (f32, float32, int32, bool, ...);
   SDC_DTYPE_NONE when unknown. */
SDC_API SdcDtype sdc_dtype_by_name(const char *name, size_t n);

/* 1 for floating types, else 0. */
SDC_API int sdc_dtype_is_float(SdcDtype t);

/* Converts an element to a double, or a double to an element, rounded to nearest even.
   For integers: its integral part saturated to 64 bits, of which the low bits are
   kept. */
SDC_API double sdc_dtype_load(SdcDtype t, const void *from);
SDC_API void sdc_dtype_store(SdcDtype t, double x, void *to);

typedef enum SdcArgKind {
    SDC_ARG_PTR, SDC_ARG_INT, SDC_ARG_FLOAT, SDC_ARG_NONE, SDC_ARG_DESC, SDC_ARG_BUFFER,
    SDC_ARG_TUPLE
} SdcArgKind;

/* One argument of a launch. Made by the functions below. */
typedef struct SdcArg {
    int32_t kind;  /* SdcArgKind */
    int32_t dtype; /* SdcDtype: pointee, or the type of the number */
    union {
        void *ptr;
        int64_t i;
        double f;
    } v;
} SdcArg;

/* What the functions below are made of. */
SDC_MAKER SdcArg sdc_arg_at(SdcArgKind kind, SdcDtype t, const void *p)
{
    SdcArg a;
    a.kind = (int32_t)kind;
    a.dtype = (int32_t)t;
    a.v.ptr = (void *)(uintptr_t)p;
    return a;
}

/* A pointer to elements of type `t`. */
SDC_MAKER SdcArg sdc_ptr(SdcDtype t, const void *p)
{
    return sdc_arg_at(SDC_ARG_PTR, t, p);
}

/* Memory whose size is known, for checked launches; otherwise as sdc_ptr. */
typedef struct SdcBuffer {
    SdcDtype dtype;
    void *ptr;
    size_t bytes;
} SdcBuffer;

/* `b` is read during the launch only. */
SDC_MAKER SdcArg sdc_buffer(const SdcBuffer *b)
{
    return sdc_arg_at(SDC_ARG_BUFFER, b->dtype, b);
}

/* An integer of the given type. */
SDC_MAKER SdcArg sdc_int_of(SdcDtype t, int64_t x)
{
    SdcArg a = sdc_arg_at(SDC_ARG_INT, t, NULL);
    a.v.i = x;
    return a;
}

/* An integer, 32 bits wide when it fits and 64 otherwise: Triton's rule. */
SDC_MAKER SdcArg sdc_int(int64_t x)
{
    return sdc_int_of(x >= INT32_MIN && x <= INT32_MAX ? SDC_I32 : SDC_I64, x);
}

/* A float of the given type; sdc_float: fp32, Triton's rule. */
SDC_MAKER SdcArg sdc_float_of(SdcDtype t, double x)
{
    SdcArg a = sdc_arg_at(SDC_ARG_FLOAT, t, NULL);
    a.v.f = x;
    return a;
}
SDC_MAKER SdcArg sdc_float(double x)
{
    return sdc_float_of(SDC_FP32, x);
}

/* Python's None. */
SDC_MAKER SdcArg sdc_none(void)
{
    return sdc_arg_at(SDC_ARG_NONE, SDC_DTYPE_NONE, NULL);
}

/* A tuple of n arguments, which may be tuples, 16 elements in all; also for a parameter
   that is annotated as a NamedTuple. The array is read during the launch only. */
SDC_MAKER SdcArg sdc_tuple(const SdcArg *items, int n)
{
    SdcArg a = sdc_arg_at(SDC_ARG_TUPLE, SDC_DTYPE_NONE, items);
    a.dtype = n;
    return a;
}

enum { SDC_MAX_DESC_RANK = 5 };

/* Triton's TensorDescriptor: a tensor that a kernel accesses in blocks. The last stride
   is 1; the base and all other strides are multiples of 16 bytes. */
typedef struct SdcDesc {
    SdcDtype dtype;
    int rank; /* 1 .. SDC_MAX_DESC_RANK */
    void *base;
    int64_t shape[SDC_MAX_DESC_RANK];
    int64_t strides[SDC_MAX_DESC_RANK]; /* in elements */
    int32_t block[SDC_MAX_DESC_RANK];   /* powers of two */
} SdcDesc;

/* `d` is read during the launch only. */
SDC_MAKER SdcArg sdc_desc(const SdcDesc *d)
{
    return sdc_arg_at(SDC_ARG_DESC, d->dtype, d);
}

/* Options of loads through a descriptor, added to `dtype` of its argument: elements
   outside of the tensor are NaN instead of 0 (floats only); values are rounded to the
   nearest tf32 number, ties to even (fp32 only), as Triton's round_f32_to_tf32. */
enum { SDC_PAD_NAN = 0x100, SDC_ROUND_TF32 = 0x200 };

/* sdc_desc with SDC_PAD_NAN. */
SDC_MAKER SdcArg sdc_desc_nan(const SdcDesc *d)
{
    SdcArg a = sdc_desc(d);
    a.dtype |= SDC_PAD_NAN;
    return a;
}

/* sdc_desc with SDC_ROUND_TF32. */
SDC_MAKER SdcArg sdc_desc_tf32(const SdcDesc *d)
{
    SdcArg a = sdc_desc(d);
    a.dtype |= SDC_ROUND_TF32;
    return a;
}

/* A tensor of another library: `tensor` points to a DLTensor of DLPack. The argument is a
   pointer to its elements, byte_offset included; the caller passes shape and strides. A
   context with `check` also registers its memory: call sdc_unregister_range(ctx, ptr)
   before it is freed. SDC_ERROR_ARGUMENT: a type of element that kernels do not have, or
   memory that launches of the context cannot access. */
SDC_API SdcStatus sdc_arg_dlpack(SdcContext *ctx, const void *tensor, SdcArg *out);

/* The same as a descriptor with these block sizes, one per dimension. */
SDC_API SdcStatus sdc_desc_dlpack(SdcContext *ctx, const void *tensor,
                                  const int32_t *block, SdcDesc *out);

/* ---------------------------------------------------------------- functions, launches */

/* A kernel with constexprs bound: `bind` holds `nbind` texts NAME=VALUE, with values as
   in Python source (128, 0.5, True, None, "relu", tl.float16). num_warps, num_stages,
   num_ctas, launch_pdl (True: on GPUs of sm_90 and later a launch may begin before the
   kernel in front of it on the stream has ended, and waits for it by itself) and
   enable_fp_fusion (False: a * b + c is rounded twice) are accepted as names too. The
   same call gives the same handle. Nothing is compiled yet, and values are looked at when
   it is. SDC_ERROR_ARGUMENT: no such kernel or parameter, or one that is bound twice. */
SDC_API SdcStatus sdc_function_get(SdcModule *mod, const char *kernel,
                                   const char *const *bind, int nbind, SdcFunction **out);

/* Runs the kernel once for each point of the grid. `args`: one per parameter that is not
   constexpr, in source order. The first launch with new types or properties compiles;
   later ones look the specialization up, without a lock or allocation. A grid with a zero
   runs nothing.

   On the CPU programs run in any order on the context's threads, and the call returns
   when all are done; `stream` is NULL. On a GPU pointers are addresses of the device, the
   launch is put on `stream` (CUstream; NULL: the default one) and the call returns at
   once; it may be captured into a graph once the specialization is loaded, by a launch or
   by sdc_specialize. A null pointer is passed on, as that of a tensor without elements
   is; a kernel that touches it fails as with any wrong address. (sdc_none() is another
   thing: Python's None, known when the kernel is compiled.)

   A device_assert that fails on the CPU ends the launch: programs that have begun run on,
   no others begin, and the status is SDC_ERROR_CHECK.

   SDC_ERROR_ARGUMENT: wrong number of arguments, a grid that is negative or beyond the
   device; SDC_ERROR_SOURCE, SDC_ERROR_UNSUPPORTED, SDC_ERROR_MEMORY, SDC_ERROR_INTERNAL:
   compiling for the types of these arguments failed, and the message names them;
   SDC_ERROR_ENVIRONMENT: the device failed, in this launch or an earlier one. */
SDC_API SdcStatus sdc_launch(SdcFunction *fn, SdcGrid grid, const SdcArg *args, int nargs,
                             void *stream);

/* The specialization that sdc_launch would run, compiled and loaded if need be. */
SDC_API SdcStatus sdc_specialize(SdcFunction *fn, const SdcArg *args, int nargs,
                                 SdcKernel **out);

/* Text of a .tune file (sdc tune) for the module's kernels, before the first of the calls
   below; without it they read PATH.tune beside the module's file, if it is there. */
SDC_API SdcStatus sdc_module_tune(SdcModule *mod, const char *text);

/* As sdc_specialize, with the configuration that was tuned for the nearest key on this
   device, or on others of its target; without any, as sdc_specialize. What the function
   binds itself is kept. */
SDC_API SdcStatus sdc_specialize_tuned(SdcFunction *fn, const SdcArg *args, int nargs,
                                       SdcKernel **out);

/* The grid by a text over arguments and the kernel's constants, "cdiv(n,BLOCK)"; read the
   first time, looked up afterwards. */
SDC_API SdcStatus sdc_kernel_grid(SdcKernel *k, const char *grid, const SdcArg *args,
                                  int nargs, SdcGrid *out);

/* A launch of sdc_specialize_tuned's kernel over sdc_kernel_grid's grid. No lock and no
   allocation once both are known. */
SDC_API SdcStatus sdc_launch_tuned(SdcFunction *fn, const char *grid, const SdcArg *args,
                                   int nargs, void *stream);

/* A specialization by signature: positional as in Triton's ahead-of-time compiler
   ("*fp32:16, *fp32:16, *fp32, i32, 1024") or by name ("x=*fp32:16,n=i32,BLOCK=1024");
   NULL when annotations, defaults and `bind` say everything. Cached by the text. */
SDC_API SdcStatus sdc_kernel_get(SdcModule *mod, const char *kernel,
                                 const char *signature, const char *const *bind,
                                 int nbind, SdcKernel **out);

/* As sdc_launch, for one specialization. Arguments are those of sdc_launch; each is
   checked against what the specialization relies on (type, divisibility, constants). */
SDC_API SdcStatus sdc_kernel_launch(SdcKernel *k, SdcGrid grid, const SdcArg *args,
                                    int nargs, void *stream);

/* The launch with at most `threads` threads; 0: the context's. CPU only. */
SDC_API SdcStatus sdc_kernel_launch_threads(SdcKernel *k, SdcGrid grid,
                                            const SdcArg *args, int nargs, int threads);

/* 1 if the kernel may store through argument `arg` (an index into args), else 0. */
SDC_API int sdc_kernel_writes(const SdcKernel *k, int arg);

/* The integer that a constexpr parameter was bound to, by its default, `bind`, the
   signature or the first configuration of @triton.autotune; also num_warps, num_stages,
   num_ctas and launch_pdl. Returns 0 when there is no such integer. */
SDC_API int sdc_kernel_constant(const SdcKernel *k, const char *name, int64_t *value);

/* Resources that the compiled kernel uses, as the GPU's driver reports them. */
typedef struct SdcKernelUse {
    int registers;   /* of a thread */
    int local_bytes; /* of a thread: spills and arrays */
    int64_t shared_bytes;
    int num_warps, num_stages;
} SdcKernelUse;

/* SDC_ERROR_ARGUMENT: a kernel of the CPU; else as sdc_kernel_launch. */
SDC_API SdcStatus sdc_kernel_use(SdcKernel *k, SdcKernelUse *out);

/* PTX of a GPU kernel, NUL-terminated, valid as long as the kernel; NULL for the CPU. */
SDC_API const char *sdc_kernel_ptx(const SdcKernel *k);

/* ---------------------------------------------------------------- checked launches */

/* In a context with `check` kernels are compiled to code that asks, in front of every
   load, store and atomic of an active lane, whether it may: that is inside of the array
   that its address was computed from. A launch that does what it must not ends in front
   of that access with SDC_ERROR_CHECK, and the message has the place in the source with
   the calls of helpers that led there, the program, the index of the element in its
   tile, the array and how far outside of it the access is.

   Found are, besides, loads of what nothing has written (sdc_range_unwritten), and
   races: two programs touch an element, at least one writes it, not both by atomics,
   and no atomic on an integer says that the second waited for the first. Where what is
   stored is there already, a race is one of sdc_warnings, and the launch goes on. With
   SDC_CHECK_NAN a NaN that is stored is an error, if its program has loaded none and
   made one of numbers. docs/language.md has it at length.

   The size of an array is that of an sdc_buffer, of a descriptor, of a tensor of
   DLPack, or of memory that was registered. A pointer into memory of unknown size is
   checked for NULL alone. Programs of a checked launch run one after the other on the
   calling thread, and checked launches of a context one at a time. Ahead of time
   nothing is checked. */

/* Registers `bytes` of memory under `name` (copied; NULL: the name of the parameter), and
   forgets what was registered at the same address. SDC_ERROR_ARGUMENT: the memory starts
   at NULL or wraps around. Contexts without `check` accept and ignore it. */
SDC_API SdcStatus sdc_register_range(SdcContext *ctx, const void *ptr, size_t bytes,
                                     const char *name);
/* To be called before that memory is freed. */
SDC_API void sdc_unregister_range(SdcContext *ctx, const void *ptr);

/* Marks the range as unwritten: a load from it is an error until checked launches have
   stored to what it reads. */
SDC_API SdcStatus sdc_range_unwritten(SdcContext *ctx, const void *ptr);

/* Sets the shape of the range in elements, for messages. `rank`: at most 8. */
SDC_API SdcStatus sdc_range_shape(SdcContext *ctx, const void *ptr, int rank,
                                  const int64_t *shape);

/* ---------------------------------------------------------------- measuring, tuning */

/* Seconds of a launch. */
typedef struct SdcTimes {
    double median, low, high; /* the true median lies in low..high 19 times in 20 */
    double min;
    int n;
    double graph; /* of one of many launches in a CUDA graph, caches warm; 0: not asked */
} SdcTimes;

typedef struct SdcMeasureOptions {
    size_t size;    /* sizeof(SdcMeasureOptions), or 0 */
    double seconds; /* to spend; 0: 0.2 */
    int warm;       /* nonzero: caches are not emptied before each launch */
    int graph;      /* nonzero: measure it */
} SdcMeasureOptions;

typedef SdcStatus SdcLaunchFn(void *user, void *stream);

/* Measures `launch`, a function that launches on the stream and does not wait, by calling
   it many times. `options`: NULL for the defaults. Fails as `launch` does. */
SDC_API SdcStatus sdc_measure(SdcContext *ctx, SdcLaunchFn *launch, void *user,
                              const SdcMeasureOptions *options, SdcTimes *out);

/* One configuration that the tuner has tried. */
typedef enum SdcTried {
    SDC_TRIED_FAST,  /* measured to the end */
    SDC_TRIED_SLOW,  /* measured, and left when others were clearly faster */
    SDC_TRIED_PRUNED, /* not compiled: by the source, or by the cost model */
    SDC_TRIED_FAILED, /* does not compile or load */
    SDC_TRIED_WRONG  /* its results are not those of the first configuration */
} SdcTried;

typedef struct SdcTrial {
    const char *config; /* "BLOCK=128,num_warps=4" */
    SdcTried what;
    SdcTimes times;
    const char *why; /* FAILED, PRUNED, WRONG: a line of text; else NULL */
} SdcTrial;

typedef struct SdcTuning SdcTuning;

typedef struct SdcTuneOptions {
    size_t size;             /* sizeof(SdcTuneOptions), or 0 */
    const char *kernel;      /* NULL: the only one */
    const char *const *bind; /* constexprs that no configuration says */
    int nbind;
    const char *grid;    /* over arguments and constexprs: "cdiv(n,BLOCK)" */
    const SdcArg *args;  /* as of a launch */
    int nargs;
    const size_t *bytes; /* of the memory behind each pointer; 0: unknown */
    int search;          /* nonzero: try configurations beyond the listed ones */
    double budget;       /* seconds for everything; 0: no limit */
    int threads;         /* that compile; 0: all cores */
    /* Called between steps with how many are done and the best so far (NULL: none); a
       result that is not zero ends the search, and what is known by then is kept. */
    int (*progress)(void *user, int done, int total, const SdcTrial *best);
    void *progress_user;
    /* Of the memory behind the elements of tuples, one after another, numbers counted
       too; 0: unknown. NULL: memory in tuples is neither compared nor restored. */
    const size_t *item_bytes;
} SdcTuneOptions;

/* Tries the configurations of @triton.autotune and measures them. Candidates are compiled
   on all cores while others run; those that would not fit the device are skipped. The
   results of each are compared with those of the first, starting from outputs filled with
   a pattern. When it returns, all memory that was written has its contents from before.
   The caller frees *out. SDC_ERROR_SOURCE: no configuration compiles, or there are
   none. */
SDC_API SdcStatus sdc_tune(SdcModule *mod, const SdcTuneOptions *options,
                           SdcTuning **out);

/* The i-th trial, fastest first, unmeasured ones last; NULL: there is none. */
SDC_API const SdcTrial *sdc_tuning_trial(const SdcTuning *t, int i);

/* The winner as a line of a .tune file. */
SDC_API const char *sdc_tuning_line(const SdcTuning *t);
/* What the compiler warned of in the decorator, as sdc_warnings; "" without any. */
SDC_API const char *sdc_tuning_warnings(const SdcTuning *t);
/* A table of where the time went. */
SDC_API const char *sdc_tuning_times(const SdcTuning *t);
SDC_API void sdc_tuning_destroy(SdcTuning *t); /* frees it; NULL is allowed */

/* ---------------------------------------------------------------- ahead of time */

typedef enum SdcEmit {
    SDC_EMIT_OBJ,  /* object code; the CPU only */
    SDC_EMIT_ASM,  /* assembly; PTX on a GPU */
    SDC_EMIT_LLVM, /* LLVM IR, before optimisation */
    SDC_EMIT_TIR, /* tile IR: after the frontend, or after `passes` when they are given */
    SDC_EMIT_AST,  /* the syntax tree */
    SDC_EMIT_CUBIN /* machine code of a GPU, made of PTX by NVIDIA's ptxas */
} SdcEmit;

typedef struct SdcCompileOptions {
    size_t size;             /* sizeof(SdcCompileOptions), or 0 */
    const char *kernel;      /* NULL: the only one of the module */
    const char *signature;   /* as sdc_kernel_get */
    const char *const *bind; /* NAME=VALUE */
    int nbind;
    const char *target; /* NULL: "cpu" */
    const char *cpu;    /* CPU target: "native", "x86-64-v3", ...; NULL: x86-64-v3 */
    SdcEmit emit;
    int lineinfo;       /* source lines in the output */
    const char *passes; /* "a,b": these instead of the target's; "default": its list */
    const char *dump_after; /* pass name or "all": text to `dump` after it */
    void (*dump)(void *user, const char *pass, const char *tir);
    void *dump_user;
    int verify_each;   /* verify the IR after each pass */
    int roundtrip;     /* print, read and print the IR after each pass */
    int has_opt_limit; /* nonzero: run at most opt_limit passes */
    int opt_limit;
    const char *ptxas; /* SDC_EMIT_CUBIN: the program; NULL: the one in $PATH */
    int explain;       /* nonzero: text for sdc_output_explain */
    const char *stop_after; /* the list ends with the first pass of this name */
} SdcCompileOptions;

/* Compiles one specialization to bytes. The caller frees *out with sdc_output_destroy.
   Errors are those of sdc_kernel_get. */
SDC_API SdcStatus sdc_compile(SdcModule *mod, const SdcCompileOptions *options,
                              SdcOutput **out);

typedef struct SdcBundleOptions {
    size_t size;        /* sizeof(SdcBundleOptions), or 0 */
    const char *kernel; /* NULL: the only one of the module */
    const char *name;   /* of the C functions; NULL: the kernel's */
    const char *const *targets; /* "cpu", "sm_90a", ...; none: the CPU */
    int ntarget;
    const char *const *signatures; /* as sdc_kernel_get; none: NULL alone */
    int nsignature;
    const char *const *bind; /* NAME=VALUE, of all */
    int nbind;
    const char *grid; /* "cdiv(n,BLOCK)"; NULL: the launcher takes the grid */
    const char *cpu; /* as SdcCompileOptions; or levels, "x86-64-v2,x86-64-v4": a launch
                        takes the highest that the machine has */
    const char *ptxas; /* turns PTX into machine code; NULL: PTX, compiled when loaded */
    const char *tune; /* text of a .tune file: its configurations instead of the first of
                         @triton.autotune; a launch takes the nearest; may be NULL */
    int lineinfo; /* source lines in all code, for profilers and debuggers */
} SdcBundleOptions;

/* Compiles one kernel for every target and signature into one object file for the host,
   and a C header that declares typed launchers. The caller frees both outputs. A launch
   uses the first signature that its arguments satisfy, so list those that promise most
   first. Signatures of other types make functions of their own. The object must be linked
   with libsdcrt; sdc/bundle.h describes it. */
SDC_API SdcStatus sdc_bundle(SdcModule *mod, const SdcBundleOptions *options,
                             SdcOutput **object, SdcOutput **header);

/* The bytes; text is NUL-terminated beyond `size`. */
SDC_API const void *sdc_output_data(const SdcOutput *out, size_t *size);

/* What a launcher must know about the kernels in the bytes: sdc/meta.h. *n: how many
   there are; 0 for text that is not code of the target. */
struct SdcrtMeta;
SDC_API const struct SdcrtMeta *sdc_output_meta(const SdcOutput *out, int *n);

/* A table of where the time went, one line per stage and pass. */
SDC_API const char *sdc_output_times(const SdcOutput *out);

/* With `explain`: the memory that a program of each kernel reads and writes, by
   parameter, in bytes; "" otherwise. */
SDC_API const char *sdc_output_explain(const SdcOutput *out);

SDC_API void sdc_output_destroy(SdcOutput *out); /* frees it; NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif

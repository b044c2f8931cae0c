/* The objects behind the public handles. Private to libsdc. */
#ifndef SDC_RUNTIME_INTERNAL_H
#define SDC_RUNTIME_INTERNAL_H

#include "runtime/cache.h"
#include "runtime/compile.h"
#include "runtime/rt/cuda.h"
#include "runtime/rt/process.h"

#include <pthread.h>
#include <stdatomic.h>

/* One error, warning or note; the report also has all as one text (messages.c). */
typedef struct Message {
    SdcMessage m;
    char *path, *text, *rendered;
} Message;

typedef struct Messages {
    Message *at;
    int n, cap;
} Messages;

void messages_free(Messages *l);
/* Appends the diagnostics of a session and `failure`, the reason why it ended early, or
   NULL. When out of memory the rest is left out: there is nobody else to tell. */
void messages_take(Messages *l, Session *s, const char *failure, bool color);
/* Moves the messages of `from` to the end of `to`. An error that `to` already has is
   dropped with its notes. */
void messages_move(Messages *to, Messages *from);
/* All messages as one text, malloc'ed; NULL when out of memory. */
char *messages_text(const Messages *l);
/* Appends an error that has no place in a source, and how it is printed. */
void messages_say(Messages *l, const char *text, const char *rendered);
void check_free(SdcCheck *c);

/* What one thread last heard from a context. */
typedef struct Report {
    pthread_t thread;
    char *error, *warnings, *reproducer;
    Messages messages;
    SdcCheck *check; /* the last result of sdc_module_check; freed by check_free */
    char *place_path;
    SdcPlace place;
    bool has_place;
    struct Report *next;
} Report;

struct SdcContext {
    char **include_dirs;
    int ninclude;
    char **defines;
    int ndefine;
    int threads;
    size_t memory_limit;
    char *cpu;
    bool color, debug;
    int check; /* SDC_CHECK_*; 0: launches are not checked */
    struct Range *ranges; /* this and the next two are guarded by check_lock */
    struct Entries *entries;
    uint32_t events; /* number of the next event of a checked launch, from 1 */
    Cache *cache; /* on disk; NULL: none */
    atomic_long hits, misses;
    char *worker; /* NULL: compiles run in this process */
    int worker_seconds;
    RtProcess process; /* that made the context: a fork's child may not use it */
    SdcrtPool *pool;
    bool on_gpu;
    int device;
    _Atomic(SdcrtCuda *) cuda; /* NULL until it is needed */
    char *gpu_asked;           /* target that the host named; NULL: the device's own */
    const char *gpu_target;    /* set before `cuda` */
    pthread_mutex_t lock;      /* guards `modules` */
    pthread_mutex_t open_lock; /* held while `cuda` is opened */
    _Atomic(Report *) reports; /* grows at its head; a thread writes to its own alone */
    pthread_mutex_t hook_lock; /* held while a running program prints */
    pthread_mutex_t check_lock; /* held during a checked launch */
    void (*print)(void *user, const char *line);
    void *print_user;
    SdcModule *modules;
};

typedef struct KernelInfo {
    char *name;
    SdcParam *params;
    bool *no_specialize;
    int nparam;
    bool heuristics; /* constexprs follow from the values of arguments */
    int *runtime; /* positions of the parameters that are arguments of a launch */
    int nruntime;
} KernelInfo;

struct SdcModule {
    SdcContext *cx;
    SdcModule *prev, *next;
    char *path;
    char *text;
    size_t size;
    bool is_tir;
    KernelInfo *kernels;
    int nkernel;
    pthread_mutex_t lock; /* guards the lists below; held while a kernel is compiled */
    SdcFunction *functions;
    SdcKernel *list; /* kernels by signature */
    char *tune;      /* text of a .tune file; NULL: not read yet */
    bool tune_used;
};

/* What a specialization knows of one argument of a launch. */
typedef struct ArgRule {
    int slot;  /* first parameter of the compiled kernel; -1: bound at compile time */
    int nslot; /* a descriptor has 1 + 2 * rank: base, shape, strides */
    SdcDtype dtype; /* of the number, or of what the pointer points to */
    bool annotated; /* the source gives its type */
    const SdcrtSource *source; /* what it is bound to; the block of a descriptor */
} ArgRule;

/* The kernel as loaded in one CUcontext. New ones are put in front of the list and never
   change, so that launches read it without a lock. */
typedef struct GpuImage {
    struct GpuImage *next;
    uint64_t context;
    SdcrtCudaKernel *kernel;
} GpuImage;

/* Memory that the host has registered for checked launches (ranges.c). */
typedef struct Range {
    struct Range *next;
    uintptr_t lo, hi;
    char *name; /* for messages; NULL: the name of the parameter */
    int rank;   /* 0: not known */
    int64_t shape[MAX_RANK];
    unsigned char *unwritten; /* bits of bytes without a value; NULL: all have one */
} Range;
/* What checked launches remember of accesses, to find races (checked_race.c). */
typedef struct Entries Entries;
void entries_done(Entries *e);
void ranges_free(Range *r);
/* The smallest range that contains the address or begins at it; NULL: there is none. The
   caller holds check_lock. */
Range *range_of(const SdcContext *cx, uintptr_t at);

/* Grids and tuned configurations: tuned.c. */
typedef struct KernelGrid KernelGrid;
typedef struct TunedSet TunedSet;
void kernel_grids_free(KernelGrid *g);
void tuned_free(TunedSet *s);

/* Launches that a kernel's code cannot do, and that another variant of it does. */
typedef enum KernelOther {
    OTHER_LOADS, /* the arguments make valid tensor maps for loads, but not for stores */
    OTHER_PLAIN, /* they make none */
    OTHER_FOLDS, /* the grid is larger than the device allows along an axis */
    OTHER_ONCE,  /* no program of a persistent kernel gets a second tile */
    KERNEL_OTHERS
} KernelOther;

struct SdcKernel {
    SdcModule *mod;
    const KernelInfo *info;
    SdcKernel *next;
    char *key;
    SdcrtMeta *meta;
    struct Loaded *image; /* CPU: loaded code */
    SdcrtCpuEntry *entry;
    char *ptx; /* GPU; NULL on the CPU */
    uint64_t code; /* of its bytes: sdc_kernel_code */
    _Atomic(GpuImage *) images;
    _Atomic(KernelGrid *) grids;
    /* Variants for launches that this code cannot do. NULL until such a launch comes. */
    _Atomic(SdcKernel *) other[KERNEL_OTHERS];
    atomic_bool refused; /* a launch needed a variant: the next ones ask first */
    atomic_bool no_once; /* OTHER_ONCE could not be made */
    unsigned how;        /* KERNEL_*: what this one is */
    /* From here on: what the variants are compiled from. */
    FrontValue *values; /* of the launch that made it; NULL without heuristics */
    char *signature;
    char **bind;
    int nbind;
    ArgRule *rules; /* info->nruntime of them */
    bool beside;         /* loaded into a CUcontext where other kernels run */
    double load_seconds; /* of the driver, when it was made */
};

/* A specialization of a function. New ones are put in front of the list and never change,
   so that launches search it without a lock. */
typedef struct SpecEntry {
    struct SpecEntry *next;
    SdcKernel *kernel;
    int nkey;
    uint64_t key[];
} SpecEntry;

struct SdcFunction {
    SdcModule *mod;
    const KernelInfo *info;
    SdcFunction *next;
    char **bind;
    int nbind;
    _Atomic(SpecEntry *) specs;
    _Atomic(TunedSet *) tuned;
};

/* The place of the first error of its messages. */
void report_first_place(Report *r);

/* Runs `fn` on the compiler's stack, with a new session whose fail point is set. Any
   failure becomes a status, and the messages become the calling thread's report. */
typedef SdcStatus CallFn(Session *s, void *arg);
SdcStatus context_call(SdcContext *cx, CallFn *fn, void *arg);

/* The argument as a plain pointer where it is a buffer. */
static inline SdcArg
arg_plain(const SdcArg *a)
{
    const SdcBuffer *b = a->kind == SDC_ARG_BUFFER ? a->v.ptr : NULL;
    return b ? sdc_ptr(b->dtype, b->ptr) : *a;
}

/* Does the argument's type exist? A descriptor's has flags of how it is read, too. */
static inline bool
arg_typed(const SdcArg *a)
{
    int32_t flags = a->kind == SDC_ARG_DESC ? SDC_PAD_NAN | SDC_ROUND_TF32 : 0;
    return a->kind == SDC_ARG_TUPLE || (uint32_t)(a->dtype & ~flags) < SDC_DTYPE_COUNT;
}

/* The i-th element of a tuple, where nested tuples count by their elements; NULL: it has
   fewer. */
const SdcArg *tuple_leaf(const SdcArg *a, int i);
/* sdc_kernel_writes for an element of a tuple. */
bool kernel_writes_leaf(const SdcKernel *k, int arg, int leaf);
/* Has the tuple at most SDCRT_MAX_LEAVES elements, all of kinds and types that exist? */
bool tuple_is_right(const SdcArg *a);

/* The values that names in a grid's expression have, in the order of
   sdcrt_meta_arguments: those of integers, in tuples too, and 0 for everything else. */
void grid_values(const SdcKernel *k, const SdcArg *args, int nargs, int64_t *value);

/* Checks the texts NAME=VALUE of a call, which `what` names in messages: none is NULL and
   no name comes twice. */
SdcStatus context_binds(SdcContext *cx, const char *what, const char *const *bind, int n);
/* Checks the arguments of a launch: their number, kinds and types. */
SdcStatus context_args(SdcContext *cx, const KernelInfo *info, const SdcArg *args,
                       int nargs);
/* Makes the text the calling thread's report, and returns `status`. */
SdcStatus context_fail(SdcContext *cx, SdcStatus status, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Reads an option struct of the host, whose first member is its size, into one of this
   version. False if it sets something that this version does not have. After OPTIONS_READ
   `o` points to `known`, unless it is NULL, which is left as it is. */
bool options_read(void *to, size_t known, const void *from, size_t size);
SdcStatus options_wrong(SdcContext *cx, const char *call, size_t size, size_t known);
#define OPTIONS_READ(o, known)                                                           \
    (!(o) || (options_read(&(known), sizeof(known), (o), (o)->size) &&                   \
              ((o) = &(known), true)))

/* An error in the child of a fork, which has none of the context's threads. */
SdcStatus context_alive(SdcContext *cx);
/* Takes a lock of the context or of one of its objects; locks are taken in no other way.
   It is an error in the child of a fork: a thread that the child does not have may hold
   the lock. */
SdcStatus context_lock(SdcContext *cx, pthread_mutex_t *lock);

/* The calling thread's report; NULL when out of memory. */
Report *context_report(SdcContext *cx);
/* The same, but NULL if there has been no report to this thread. */
Report *context_heard(SdcContext *cx);

/* Replaces *to by a copy of the text; leaves it NULL when out of memory. */
void text_set(char **to, const char *text);

/* The context's device, which the first call opens. */
SdcStatus context_cuda(SdcContext *cx, SdcrtCuda **out);

/* Loads k->ptx into the CUcontext that a launch would use now. The caller holds the
   module's lock, here and in gpu_ready. */
SdcStatus gpu_load(SdcKernel *k);
/* Loads k, or the variant that a launch with these slots needs. */
SdcStatus gpu_ready(SdcKernel *k, const uint64_t *slots);
SdcStatus gpu_launch(SdcKernel *k, SdcGrid grid, const uint64_t *slots, void *stream);
void gpu_unload(SdcKernel *k);

/* The parts of sdc_measure, so that memory and events are made once for many kernels.
   *out must be closed even if measure_open fails. */
typedef struct Measure Measure;
SdcStatus measure_open(SdcContext *cx, const SdcMeasureOptions *options, Measure **out);
SdcStatus measure_run(Measure *m, SdcLaunchFn *launch, void *user, double seconds,
                      SdcTimes *out);
void measure_close(Measure *m);
/* The time of one launch; and of one of many in a CUDA graph, with warm caches, or 0 if
   the launch cannot be captured. */
SdcStatus measure_once(Measure *m, SdcLaunchFn *launch, void *user, double *seconds);
double measure_graph(Measure *m, SdcLaunchFn *launch, void *user);
/* Fills *out from n > 0 times, which it sorts. */
void measure_summary(double *t, int n, SdcTimes *out);
/* sdc_measure_rounds with memory and events that are open already. */
struct SdcMeasured;
SdcStatus measure_rounds(SdcContext *cx, Measure *m, struct SdcMeasured *of, int n,
                         const SdcMeasureOptions *o);

/* An output with a copy of these bytes; NULL when out of memory. */
SdcOutput *output_new(const void *bytes, size_t size);

/* One kernel compiled for a bundle. */
typedef struct AotCode {
    SdcrtMeta *meta;
    char *bytes;
    size_t size;
    int kind;  /* SdcrtCodeKind */
    int group; /* code for the same types of arguments is one C function */
} AotCode;

/* The C header of a bundle: `names` has one for each group. */
void aot_header(Buf *b, const SdcModule *mod, const AotCode *code, int n,
                const char *const *names, int ngroup);

/* PTX to a cubin by the program `ptxas`; malloc'ed, or NULL with the reason in `why`. */
char *ptxas_run(const char *ptxas, const char *ptx, const char *target, bool lineinfo,
                size_t *size, char *why, size_t why_size);

/* The signature that the arguments make, malloc'ed; NULL after an error. */
char *function_signature(SdcFunction *f, const SdcArg *args, int nargs);
/* The types of the arguments, spelled as in a .tune file. */
void function_types(SdcFunction *f, const SdcArg *args, char *to, size_t size);
/* Compiles a specialization that belongs to the caller, for tuning: without the module's
   lock, so that several are compiled at a time. */
SdcStatus function_compile(SdcFunction *f, const SdcArg *args, int nargs,
                           SdcKernel **out);

/* Puts the grid's expressions into metadata, with constants for what is bound. False: `e`
   says why. */
struct SdcrtExprError;
bool meta_grid(SdcrtMeta *meta, const char *text, struct SdcrtExprError *e);

/* Checks a request for a kernel: there is one of this name, `out` is not NULL, and the
   bindings are valid. `what` begins the message. */
SdcStatus module_request(SdcModule *m, const char *what, const char *kernel,
                         const char *const *bind, int nbind, const void *out,
                         const KernelInfo **info);
const KernelInfo *module_find_kernel(const SdcModule *mod, const char *name);
/* The errors for a kernel or parameter that does not exist, with the names that do. */
SdcStatus module_no_kernel(SdcModule *m, const char *name);
SdcStatus module_no_param(SdcModule *m, const KernelInfo *info, const char *bind);
void module_job(const SdcModule *mod, CompileJob *job);

/* Fills in what follows from k->meta, and takes the code: PTX is kept as k->ptx, object
   code is loaded. */
SdcStatus kernel_load(Session *s, SdcKernel *k, const void *code, size_t size);
/* Takes the kernel from the cache, or compiles it and puts it there. */
SdcStatus kernel_make(SdcKernel *k, CompileJob *job);
/* Compiles in another process; `code` gets the bytes. */
SdcStatus worker_compile(SdcContext *cx, const CompileJob *job, SdcrtMeta *meta,
                         CacheBytes *code);
/* Runs programs on the CPU; `slots` are what the code reads. */
SdcStatus kernel_run(SdcKernel *k, SdcGrid grid, const uint64_t *slots, int threads);
/* The same for a kernel that prints, asserts or is checked: prints go to the host, a
   failed assertion becomes the status. `slots` has one more than there are parameters. */
SdcStatus hooks_run(SdcKernel *k, SdcGrid grid, const SdcArg *args, uint64_t *slots,
                    int threads);
/* Undoes kernel_load. */
void kernel_unload(SdcKernel *k);

enum {
    KERNEL_NO_MAPS = 1,  /* no tensor maps, unless the source asks for them */
    KERNEL_BESIDE = 2,   /* loaded while other kernels run */
    KERNEL_NO_SENDS = 4, /* tensor maps for loads alone */
    KERNEL_UNLOADED = 8, /* loaded by gpu_load or by the first launch, not when made */
    KERNEL_FOLDS = 16,   /* for grids beyond what the device takes along an axis */
    KERNEL_ONCE = 32,    /* for grids whose programs all run at once */
    KERNEL_LAUNCHED = 64 /* the signature is that of a launch's arguments */
};

/* Compiles and loads a kernel. `signature` is NULL for tile IR, `values` unless a launch
   asks for it. */
SdcStatus kernel_new(SdcModule *mod, const KernelInfo *info, const char *signature,
                     const char *const *bind, int nbind, const FrontValue *values,
                     unsigned how, SdcKernel **out);
/* A variant of k. *out is NULL if the source itself asks for the tensor maps that the
   variant must do without. The caller holds the module's lock, here and in
   kernel_ready. */
SdcStatus kernel_other(SdcKernel *k, KernelOther which, SdcKernel **out);
/* Loads the variant that a launch with these arguments runs. */
SdcStatus kernel_ready(SdcKernel *k, const SdcArg *args, int nargs);
void kernel_free(SdcKernel *k);

/* compile_run inside context_call; after an internal error it also makes a reproducer.
   `use` gets the result while the session is alive. */
typedef SdcStatus UseFn(Session *s, CompileResult *r, void *arg);
SdcStatus compile_call(SdcContext *cx, const CompileJob *job, UseFn *use, void *arg);

#endif

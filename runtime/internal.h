/* The objects behind the public handles. Private to libsdc. */
#ifndef SDC_RUNTIME_INTERNAL_H
#define SDC_RUNTIME_INTERNAL_H

#include "runtime/cache.h"
#include "runtime/compile.h"
#include "runtime/rt/cuda.h"
#include "runtime/rt/process.h"

#include <pthread.h>
#include <stdatomic.h>

/* One by one, what is told as text, too: messages.c. */
typedef struct Message {
    SdcMessage m;
    char *path, *text, *rendered;
} Message;

typedef struct Messages {
    Message *at;
    int n, cap;
} Messages;

void messages_free(Messages *l);
/* Those of a session, and that it failed (NULL: it did not). What there is no memory for
   is left out. */
void messages_take(Messages *l, Session *s, const char *failure, bool color);
/* Moves what is in `from` to the end, without errors that are there already and their
   notes. */
void messages_move(Messages *to, Messages *from);
/* The messages as text, malloc'ed; NULL without memory. */
char *messages_text(const Messages *l);
/* One error without a place, and its text as it is printed. */
void messages_say(Messages *l, const char *text, const char *rendered);
void check_free(SdcCheck *c);

/* What one thread last heard from a context. */
typedef struct Report {
    pthread_t thread;
    char *error, *warnings, *reproducer;
    Messages messages;
    SdcCheck *check; /* of sdc_module_check: checks_free */
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
    struct Range *ranges;       /* this and the following under check_lock */
    struct Entries *entries;
    uint32_t events; /* the next one's number, from 1 */
    Cache *cache; /* on disk; NULL: none */
    atomic_long hits, misses;
    char *worker; /* NULL: compiles run in this process */
    int worker_seconds;
    RtProcess process; /* that made it */
    SdcrtPool *pool;
    bool on_gpu;
    int device;
    _Atomic(SdcrtCuda *) cuda; /* NULL until it is needed */
    char *gpu_asked;           /* target that the host named; NULL: the device's own */
    const char *gpu_target;    /* set before `cuda` */
    pthread_mutex_t lock;      /* modules */
    pthread_mutex_t open_lock; /* cuda */
    _Atomic(Report *) reports; /* grows at its head; each belongs to its thread */
    pthread_mutex_t hook_lock; /* what running programs say */
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
    pthread_mutex_t lock; /* functions, kernels; held while a kernel is compiled */
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

/* The kernel in one context of the device; added in front, and never changed. */
typedef struct GpuImage {
    struct GpuImage *next;
    uint64_t context;
    SdcrtCudaKernel *kernel;
} GpuImage;

/* Memory that was registered: ranges.c. */
typedef struct Range {
    struct Range *next;
    uintptr_t lo, hi;
    char *name; /* NULL: the parameter's */
    int rank;   /* 0: not known */
    int64_t shape[MAX_RANK];
    unsigned char *unwritten; /* bits of bytes without a value; NULL: all have one */
} Range;
/* Memory that checked launches keep: checked_race.c. */
typedef struct Entries Entries;
void entries_done(Entries *e);
void ranges_free(Range *r);
/* The smallest range that the address is in, or at the start of; NULL: none. Under
   check_lock. */
Range *range_of(const SdcContext *cx, uintptr_t at);

/* Grids and tuned configurations: tuned.c. */
typedef struct KernelGrid KernelGrid;
typedef struct TunedSet TunedSet;
void kernel_grids_free(KernelGrid *g);
void tuned_free(TunedSet *s);

/* Launches that a kernel does not take. */
typedef enum KernelOther {
    OTHER_LOADS, /* tensor maps of loads alone can be made */
    OTHER_PLAIN, /* none can */
    OTHER_FOLDS, /* grids beyond what the device takes along an axis */
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
    /* The same kernel for launches that this one does not take (KernelOther). NULL until
       one comes. */
    _Atomic(SdcKernel *) other[KERNEL_OTHERS];
    atomic_bool refused; /* a launch had such arguments: look before the next one */
    atomic_bool no_once; /* OTHER_ONCE could not be made */
    unsigned how;        /* KERNEL_*: what this one is */
    /* What those are made from. */
    FrontValue *values; /* of the launch that made it; NULL without heuristics */
    char *signature;
    char **bind;
    int nbind;
    ArgRule *rules; /* info->nruntime of them */
    bool beside;         /* others are loaded at the same time */
    double load_seconds; /* of the driver, when it was made */
};

/* A specialization in its function's list; added in front, and never changed. */
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

/* Runs `fn` with a session of its own, its fail point set; whatever goes wrong becomes a
   status, and the messages the calling thread's report. */
typedef SdcStatus CallFn(Session *s, void *arg);
SdcStatus context_call(SdcContext *cx, CallFn *fn, void *arg);

/* The argument as a plain pointer where it is a buffer. */
static inline SdcArg
arg_plain(const SdcArg *a)
{
    const SdcBuffer *b = a->kind == SDC_ARG_BUFFER ? a->v.ptr : NULL;
    return b ? sdc_ptr(b->dtype, b->ptr) : *a;
}

/* Has the argument a type that exists? A descriptor's says how it is read, too. */
static inline bool
arg_typed(const SdcArg *a)
{
    int32_t flags = a->kind == SDC_ARG_DESC ? SDC_PAD_NAN | SDC_ROUND_TF32 : 0;
    return a->kind == SDC_ARG_TUPLE || (uint32_t)(a->dtype & ~flags) < SDC_DTYPE_COUNT;
}

/* The i-th element of a tuple, those of tuples in it counted too; NULL: no such. */
const SdcArg *tuple_leaf(const SdcArg *a, int i);
/* sdc_kernel_writes for an element of a tuple. */
bool kernel_writes_leaf(const SdcKernel *k, int arg, int leaf);
/* Are its elements there, at most SDCRT_MAX_LEAVES, of kinds and types that exist? */
bool tuple_is_right(const SdcArg *a);

/* What names of a grid's expression stand for, by the order of sdcrt_meta_arguments: the
   integers among the arguments and the elements of tuples, 0 for the others. */
void grid_values(const SdcKernel *k, const SdcArg *args, int nargs, int64_t *value);

/* Makes a message of the calling thread's report and returns `status`. */
/* Texts NAME=VALUE of a call that is named `what`: all there, and no name twice. */
SdcStatus context_binds(SdcContext *cx, const char *what, const char *const *bind, int n);
/* Arguments of a launch: as many as the kernel has, of kinds and types that exist. */
SdcStatus context_args(SdcContext *cx, const KernelInfo *info, const SdcArg *args,
                       int nargs);
SdcStatus context_fail(SdcContext *cx, SdcStatus status, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* An option struct of the host, of the size that its first member says, as one of this
   version; false: it says something that this version does not know. `o` then points to
   `known`, or is NULL as before. */
bool options_read(void *to, size_t known, const void *from, size_t size);
SdcStatus options_wrong(SdcContext *cx, const char *call, size_t size, size_t known);
#define OPTIONS_READ(o, known)                                                           \
    (!(o) || (options_read(&(known), sizeof(known), (o), (o)->size) &&                   \
              ((o) = &(known), true)))

/* Fails in the child of a fork. */
SdcStatus context_alive(SdcContext *cx);
/* Takes a lock of the context or of an object that belongs to it. Fails in the child of a
   fork, where a thread that is not there may hold it: the only way to such a lock. */
SdcStatus context_lock(SdcContext *cx, pthread_mutex_t *lock);

/* The calling thread's report; NULL when out of memory. */
Report *context_report(SdcContext *cx);
/* The same if it has heard something; NULL. */
Report *context_heard(SdcContext *cx);

/* Replaces *to by a copy of the text; leaves it NULL when out of memory. */
void text_set(char **to, const char *text);

/* Opens the context's device if nothing has before. */
SdcStatus context_cuda(SdcContext *cx, SdcrtCuda **out);

/* Loads k->ptx in the context that a launch would use now, under the module's lock. */
SdcStatus gpu_load(SdcKernel *k);
/* Loads k, or what runs instead with these slots. Under the module's lock. */
SdcStatus gpu_ready(SdcKernel *k, const uint64_t *slots);
SdcStatus gpu_launch(SdcKernel *k, SdcGrid grid, const uint64_t *slots, void *stream);
void gpu_unload(SdcKernel *k);

/* sdc_measure in parts, for many kernels one after the other: memory and events are made
   once. After an error of measure_open, too, *out is to be closed. */
typedef struct Measure Measure;
SdcStatus measure_open(SdcContext *cx, const SdcMeasureOptions *options, Measure **out);
SdcStatus measure_run(Measure *m, SdcLaunchFn *launch, void *user, double seconds,
                      SdcTimes *out);
void measure_close(Measure *m);
/* One launch. One of many in a graph, warm; 0 when it cannot be captured. */
SdcStatus measure_once(Measure *m, SdcLaunchFn *launch, void *user, double *seconds);
double measure_graph(Measure *m, SdcLaunchFn *launch, void *user);
/* Sorts the n > 0 times. */
void measure_summary(double *t, int n, SdcTimes *out);
/* sdc_measure_rounds with what is open. */
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
    int group; /* those with the same types of arguments are one function */
} AotCode;

/* The C header of a bundle: `names` has one for each group. */
void aot_header(Buf *b, const SdcModule *mod, const AotCode *code, int n,
                const char *const *names, int ngroup);

/* PTX to a cubin by the program `ptxas`; malloc'ed, or NULL with the reason in `why`. */
char *ptxas_run(const char *ptxas, const char *ptx, const char *target, bool lineinfo,
                size_t *size, char *why, size_t why_size);

/* The signature that the arguments make, malloc'ed; NULL after an error. */
char *function_signature(SdcFunction *f, const SdcArg *args, int nargs);
/* The types of the arguments as lines of a .tune file have them. */
void function_types(SdcFunction *f, const SdcArg *args, char *to, size_t size);
/* A specialization that is the caller's, compiled without the module's lock and loaded
   beside others. */
SdcStatus function_compile(SdcFunction *f, const SdcArg *args, int nargs,
                           SdcKernel **out);

/* The grid's expressions into metadata, with what is bound in it; false: `e` says why. */
struct SdcrtExprError;
bool meta_grid(SdcrtMeta *meta, const char *text, struct SdcrtExprError *e);

/* What a request for a kernel names: it is there, so is the place for the answer, and the
   bindings are in order. `what` begins the message. */
SdcStatus module_request(SdcModule *m, const char *what, const char *kernel,
                         const char *const *bind, int nbind, const void *out,
                         const KernelInfo **info);
const KernelInfo *module_find_kernel(const SdcModule *mod, const char *name);
/* The messages of a name that is none, with those that are. */
SdcStatus module_no_kernel(SdcModule *m, const char *name);
SdcStatus module_no_param(SdcModule *m, const KernelInfo *info, const char *bind);
void module_job(const SdcModule *mod, CompileJob *job);

/* The rules of k->meta, and the code behind it: k->ptx or loaded object code. */
SdcStatus kernel_load(Session *s, SdcKernel *k, const void *code, size_t size);
/* The kernel out of the cache, or compiled and put there. */
SdcStatus kernel_make(SdcKernel *k, CompileJob *job);
/* Compiles in a process of its own; `code` gets the bytes. */
SdcStatus worker_compile(SdcContext *cx, const CompileJob *job, SdcrtMeta *meta,
                         CacheBytes *code);
/* Runs programs on the CPU; `slots` are what the code reads. */
SdcStatus kernel_run(SdcKernel *k, SdcGrid grid, const uint64_t *slots, int threads);
/* The same for a kernel with hooks: prints go to the context's host, an assertion that
   fails becomes the status. There is a slot more than parameters. */
SdcStatus hooks_run(SdcKernel *k, SdcGrid grid, const SdcArg *args, uint64_t *slots,
                    int threads);
/* Undoes kernel_load. */
void kernel_unload(SdcKernel *k);

enum {
    KERNEL_NO_MAPS = 1,  /* no tensor maps, unless the source asks for them */
    KERNEL_BESIDE = 2,   /* loaded while others are */
    KERNEL_NO_SENDS = 4, /* tensor maps for loads alone */
    KERNEL_UNLOADED = 8, /* the device gets it by gpu_load, or by the first launch */
    KERNEL_FOLDS = 16,   /* for grids beyond what the device takes along an axis */
    KERNEL_ONCE = 32,    /* for grids whose programs all run at once */
    KERNEL_LAUNCHED = 64 /* the signature is that of a launch's arguments */
};

/* Compiles and loads; `signature` NULL for tile IR, `values` for what is no launch. */
SdcStatus kernel_new(SdcModule *mod, const KernelInfo *info, const char *signature,
                     const char *const *bind, int nbind, const FrontValue *values,
                     unsigned how, SdcKernel **out);
/* The kernel for such launches; *out NULL when its source asks for tensor maps that it
   is to be without. Under the module's lock. */
SdcStatus kernel_other(SdcKernel *k, KernelOther which, SdcKernel **out);
/* Loads what a launch with these arguments runs. Under the module's lock. */
SdcStatus kernel_ready(SdcKernel *k, const SdcArg *args, int nargs);
void kernel_free(SdcKernel *k);

/* compile_run inside context_call, with a reproducer made after an internal error. `use`
   gets the result while the session is alive. */
typedef SdcStatus UseFn(Session *s, CompileResult *r, void *arg);
SdcStatus compile_call(SdcContext *cx, const CompileJob *job, UseFn *use, void *arg);

#endif

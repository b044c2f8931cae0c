/* What the functions of sdc_nn.h are made of: one launch, put together piece by
   piece. Private to libsdc.

   A mistake on the way (a tensor that does not fit) is kept in the call, with its message
   in the context; what comes after does nothing, and call_run returns it. */
#ifndef SDC_RUNTIME_KERNELS_H
#define SDC_RUNTIME_KERNELS_H

#include "runtime/internal.h"
#include "runtime/nn/plan.h"
#include "runtime/nn/plan_table.h"
#include "runtime/sdc_nn.h"

/* The sources that are part of the library. */
typedef struct KernelText {
    const char *name, *text;
    size_t size;
} KernelText;

extern const KernelText kernel_texts[];

enum {
    KERNEL_FILES = 32,
    CALL_ARGS = 64,
    CALL_BINDS = 24,
    CALL_TEXT = 40,
    CALL_BORROWS = 8,
    CALL_LAUNCHES = 8,
    GEMM_SETS = 64,
    SPARSE_SETS = 16
};

/* Plans of matmuls that came before. */
typedef struct GemmEntry {
    PlanHead head;
    GemmAsk ask;
    GemmPlan plan;
    SdcFunction *functions[CALL_LAUNCHES]; /* as Call's */
} GemmEntry;

typedef struct SparseEntry {
    PlanHead head;
    SparseAsk ask;
    SparsePlan plan;
    SdcFunction *functions[CALL_LAUNCHES];
} SparseEntry;

struct SdcKernels {
    SdcContext *cx;
    bool on_gpu;
    int programs; /* how many run at once, one an SM (thread) */
    SdcrtCuda *cuda; /* NULL on the CPU */
    NnDevice device;
    bool explains; /* SDC_EXPLAIN=1 */
    atomic_int way; /* of matmuls: 0, or that of sdc_nn_take */
    pthread_mutex_t lock; /* of what follows */
    PlanTable gemm_plans, sparse_plans;
    GemmEntry gemm[GEMM_SETS * PLAN_WAYS];
    SparseEntry sparse[SPARSE_SETS * PLAN_WAYS];
    Note note; /* of the last call that was planned */
    SdcModule *modules[KERNEL_FILES]; /* in the order of kernel_texts; NULL: not yet */
};

typedef struct Call {
    SdcKernels *k;
    const char *name; /* the function's, for messages */
    SdcStatus status;
    SdcArg args[CALL_ARGS];
    int narg;
    char binds[CALL_BINDS][CALL_TEXT];
    int nbind;
    /* Functions of the call's launches, where an equal call came before: constants are
       not put into words then. The handle's modules own them. */
    SdcFunction *functions[CALL_LAUNCHES];
    int launch;
    bool launched; /* that one */
    bool found;    /* one more than were known */
    void *stream;
    void *borrowed[CALL_BORROWS];
    int nborrow;
} Call;

Call call_begin(SdcKernels *k, const char *name);
/* Temporary memory for what the call launches; NULL after an error. Aligned to 256
   bytes. */
void *call_borrow(Call *c, int64_t bytes);
/* Returns that memory; the call's status. */
SdcStatus call_end(Call *c);
/* What the call does, for sdc_nn_explain. */
void call_note(Call *c, const Note *note);
/* A further launch of the same function. */
void call_next(Call *c);

/* ---- what fits */

/* Refuses the call unless `ok`: "NAME: what". */
bool call_need(Call *c, bool ok, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* A tensor of that rank and, where not negative, shape. */
bool call_shape(Call *c, const SdcTensor *t, const char *what, int rank,
                const int64_t *shape);
#define SHAPE(...)                                                                       \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])         \
    {                                                                                    \
        __VA_ARGS__                                                                      \
    }
bool call_float(Call *c, const SdcTensor *t, const char *what);
/* Stride 1 along the last dimension. */
bool call_rows(Call *c, const SdcTensor *t, const char *what);
bool call_dense(Call *c, const SdcTensor *t, const char *what);
bool call_same_type(Call *c, const SdcTensor *t, const SdcTensor *like, const char *what);
/* Copies the options of a caller, a struct that begins with its size (size_t), to `to`,
   as options_read does. NULL: none, `to` stays as it is. */
bool call_options(Call *c, const void *from, void *to, size_t size);
/* Whether offsets of an element need 64 bits. */
bool tensor_is_long(const SdcTensor *t);
/* With the last two dimensions exchanged. */
SdcTensor tensor_transposed(const SdcTensor *t);

/* ---- arguments, in the kernel's order, and constexprs */

void call_tensor(Call *c, const SdcTensor *t); /* NULL: None */
/* As 64-bit integers where offsets of an element need that: what a kernel multiplies by
   them is 64 bits wide then. */
void call_stride(Call *c, const SdcTensor *t, int dim);
void call_strides(Call *c, const SdcTensor *t);
void call_int(Call *c, int64_t v);
void call_float_arg(Call *c, double v);
void call_ptr(Call *c, SdcDtype t, void *p);
void call_bind(Call *c, const char *name, int64_t v);
void call_bind_bool(Call *c, const char *name, bool v);
void call_bind_text(Call *c, const char *name, const char *v);

/* So many programs along one axis; more than there can be are an error of the call. */
SdcGrid call_grid(Call *c, int64_t programs);
SdcStatus call_run(Call *c, const char *file, const char *kernel, SdcGrid grid,
                   void *stream);

const char *act_name(SdcActivation act); /* NULL: no such */

static inline int64_t
ceil_over(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The power of two that is not below n, at most `most`. */
int64_t power_over(int64_t n, int64_t most);

#endif

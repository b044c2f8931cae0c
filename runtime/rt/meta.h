/* What a host must know to launch a compiled kernel: written by codegen, read by the
   launcher, the cache and the generated headers. Plain data, no pointers into the
   compiler. This header is part of libsdcrt and includes nothing of sdc. */
#ifndef SDCRT_META_H
#define SDCRT_META_H

#include "runtime/rt/grid.h"

#include <stddef.h>
#include <stdint.h>

enum {
    SDCRT_MAX_PARAMS = 128,  /* of the compiled kernel */
    SDCRT_MAX_SOURCES = 192, /* of the source, those bound at compile time among them */
    SDCRT_MAX_ARGUMENTS = SDCRT_MAX_SOURCES + SDCRT_MAX_PARAMS, /* by slots */
    SDCRT_NAME_MAX = 128,    /* of a parameter */
    SDCRT_KERNEL_MAX = 1024, /* torch's inductor names a kernel by all that it fused */
    SDCRT_MAX_RANK = 5,
    SDCRT_MAX_KEY = 8,
    SDCRT_MAX_POINT = 32,
    SDCRT_MAX_TERMS = 1024,
    SDCRT_MAX_MAPS = 32 /* what the 4 KB of a launch's parameters hold */
};

typedef enum SdcrtParamKind {
    SDCRT_PTR,
    SDCRT_INT,  /* bits 1..64 */
    SDCRT_FLOAT /* bits 16, 32, 64; passed as the bits of that type */
} SdcrtParamKind;

typedef struct SdcrtParam {
    char name[SDCRT_NAME_MAX];
    char sig[32]; /* Triton's spelling: "*fp32", "i32", "u8" */
    uint8_t kind; /* SdcrtParamKind */
    uint8_t bits;
    uint8_t is_unsigned;
    /* the code relies on this divisor of the value or address; 1: none */
    uint16_t div;
    /* ... and on this one, which only the launch sees: other arguments are refused with
       SDCRT_ERROR_MAP; 0, 1: none */
    uint16_t multiple;
    uint8_t written; /* pointer: the kernel may store through it */
    uint16_t source; /* position in the source's parameter list */
} SdcrtParam;

/* What a parameter of the source was bound to at compile time. */
typedef enum SdcrtBound {
    SDCRT_OPEN, /* nothing: an argument of the launch, in params */
    SDCRT_BOUND_INT,
    SDCRT_BOUND_BOOL,
    SDCRT_BOUND_FLOAT,
    SDCRT_BOUND_NONE,
    SDCRT_BOUND_OTHER /* text or a type, or never looked at */
} SdcrtBound;

enum { SDCRT_MAX_LEAVES = 16 };

/* A parameter as the source has it. Those that are not constexpr are arguments of a
   launch, and must be equal to what they are bound to. */
typedef struct SdcrtSource {
    char name[SDCRT_NAME_MAX];
    uint8_t is_constexpr;
    uint8_t bound;                 /* SdcrtBound */
    uint8_t rank;                  /* of a descriptor's block; 0: no descriptor */
    int64_t i;                     /* BOUND_INT, BOUND_BOOL */
    double f;                      /* BOUND_FLOAT */
    int32_t block[SDCRT_MAX_RANK]; /* of a descriptor */
    /* A tuple: its elements, those of tuples in it too, in the metadata's `leaves`; those
       that are open have parameters, in order. */
    uint8_t is_tuple;
    uint16_t leaf, nleaf;
} SdcrtSource;

enum { SDCRT_EXPR_MAX = 64 };

/* An integer over the arguments of a launch: code that expr.h writes and runs. */
typedef struct SdcrtExpr {
    int32_t n; /* words; 0: there is no expression */
    int64_t code[SDCRT_EXPR_MAX];
} SdcrtExpr;

/* A number that the host computes from the arguments of a launch. Operands are numbers of
   terms that stand before; results are sign-extended from `bits`. */
typedef enum SdcrtOp {
    SDCRT_CONST, /* value */
    SDCRT_ARG,   /* slot `value` */
    SDCRT_ADD,
    SDCRT_SUB,
    SDCRT_MUL,
    SDCRT_DIV, /* truncated; 0 when the divisor is */
    SDCRT_REM,
    SDCRT_MIN,
    SDCRT_MAX
} SdcrtOp;

typedef struct SdcrtTerm {
    uint8_t op; /* SdcrtOp */
    uint8_t bits;
    int16_t a, b;
    int64_t value;
} SdcrtTerm;

/* A tensor map (CUtensorMap) that the launcher makes: kernel parameter nparam + i, 128
   bytes. Dimensions are fastest first; the first one's stride is one element. */
typedef struct SdcrtMap {
    uint8_t rank;
    uint8_t dtype;      /* as the driver numbers them: CUtensorMapDataType */
    uint8_t elem_bytes;
    uint8_t swizzle;    /* bytes: 0, 32, 64, 128 */
    uint8_t nan;        /* outside the bounds: NaN, not 0 */
    uint8_t written;    /* rows must end on 16 bytes: no smaller piece is left out */
    int16_t base;       /* terms: address in bytes, ... */
    int16_t dim[SDCRT_MAX_RANK];    /* ... elements, ... */
    int16_t stride[SDCRT_MAX_RANK]; /* ... and elements from one to the next */
    uint32_t box[SDCRT_MAX_RANK];   /* elements of one copy */
} SdcrtMap;

/* A new member is one more fact of plain data that may be zero: what packs and reads
   metadata knows nothing of members. */
typedef struct SdcrtMeta {
    char name[SDCRT_KERNEL_MAX];   /* kernel as in the source */
    char symbol[SDCRT_KERNEL_MAX]; /* symbol in the object or PTX */
    char target[32];             /* "cpu", "sm_90a" */
    int32_t nparam;
    int32_t num_warps, num_stages, num_ctas;
    int32_t threads;       /* GPU: of a block, more than num_warps with roles */
    /* GPU: code for arguments that make its tensor maps and have what `whole` of its
       parameters says; there is other code for the rest */
    int32_t guarded_args;
    /* GPU: the oldest driver that takes the code, 1000 * major + 10 * minor of its CUDA
       version; 0: any. There is other code for older ones */
    int32_t driver;
    /* GPU: at most so many programs along axis 0 for each SM are launched,
       and how many were asked for is a parameter behind the maps, 32 bits; 0: all are */
    int32_t ctas_per_sm;
    /* GPU: all programs are launched along axis 0, and how many were asked for along each
       axis are three parameters behind the maps, 32 bits each */
    int32_t folds;
    /* GPU: every thread waits for the primary grid (griddepcontrol.wait), so that
       launches may overlap */
    int32_t overlap;
    /* GPU: programs that are neighbours along axis 0 may be launched as clusters of so
       many, so that one copy brings what all of them read; 0: they may not */
    int32_t cluster;
    int32_t hooks; /* CPU: there is one slot more, the address of an SdcrtHooks */
    int32_t atomics; /* CPU: nonzero: there are some */
    /* CPU: with at most so many threads a launch is faster on one of them whose entry is
       told that it is alone; 0: a program may wait for another, and none is told so */
    int32_t alone;
    int32_t checks; /* CPU: checked code, with so many checks; 0: it is not */
    int64_t shared_bytes;  /* GPU: dynamic shared memory */
    int64_t scratch_bytes; /* CPU: scratch per running program, 64-byte aligned */
    SdcrtParam params[SDCRT_MAX_PARAMS];
    int32_t nsource;
    SdcrtSource sources[SDCRT_MAX_SOURCES];
    int32_t nleaf;
    SdcrtSource leaves[SDCRT_MAX_PARAMS]; /* elements of tuples: "shape_0" of 'shape' */
    /* What the tuner found it fastest for: values of these arguments of a launch. */
    int32_t nkey, npoint;
    int32_t key_arg[SDCRT_MAX_KEY];
    int64_t point[SDCRT_MAX_POINT][SDCRT_MAX_KEY];
    SdcrtExpr grid[3]; /* over the arguments, when it was given at compile time */
    int32_t nterm, nmap;
    SdcrtTerm terms[SDCRT_MAX_TERMS];
    SdcrtMap maps[SDCRT_MAX_MAPS];
} SdcrtMeta;

/* Metadata as few bytes, for files and objects: the structure with its zeros counted, and
   behind a header that tells one version of it from another. `to` may be NULL, to ask for
   the size. Reading returns 0 when the bytes are not what this library writes. */
size_t sdcrt_meta_pack(const SdcrtMeta *meta, unsigned char *to);
int sdcrt_meta_unpack(const unsigned char *from, size_t size, SdcrtMeta *meta);

/* An argument as slots of a launch count them: a parameter of the source that is not
   constexpr, or an element of one that is a tuple. */
typedef struct SdcrtArgument {
    const SdcrtSource *what;
    int32_t source; /* its place, or its tuple's, in the list of sources */
    int32_t slot;   /* first parameter of the kernel; -1: bound at compile time */
} SdcrtArgument;

/* How many parameters of the kernel what is open has: a descriptor's are its base, shape
   and strides. */
static inline int
sdcrt_source_slots(const SdcrtSource *s)
{
    return s->rank ? 1 + 2 * s->rank : 1;
}

/* The arguments in order; returns how many. `to` may be NULL. */
int sdcrt_meta_arguments(const SdcrtMeta *meta, SdcrtArgument *to);

/* ---- what the code of a CPU kernel asks of its host while it runs */

/* A place in a source. Texts end with a NUL and live as long as the code. */
typedef struct SdcrtPlace {
    const char *path, *line_text;
    const char *function;            /* that was inlined here; NULL: the kernel */
    const struct SdcrtPlace *caller; /* where that was called; NULL: the kernel */
    int32_t line, column, end_column, unused;
} SdcrtPlace;

/* One print or assertion of the source: constant data of the code. */
typedef struct SdcrtSite {
    SdcrtPlace place;
    const char *text; /* print: what stands before the value; assert: its message */
    int32_t rank;     /* of the tile */
    int32_t lanes;    /* of a strip */
    /* print: 'd' signed, 'u' unsigned, 'x' hexadecimal, 'f' double, 'p' address, 0: the
       text alone; values come as 64 bits */
    int32_t format;
    int32_t bits;   /* print: of the element */
    int32_t access; /* SDCRT_READ .. of what stands behind a check; 0: it is none */
    int32_t number; /* of the check, from 0 */
    int32_t bytes;  /* of an element that is accessed */
    int32_t param;  /* that the address comes from; -1 one of several, -2 unknown */
} SdcrtSite;

enum {
    SDCRT_READ = 1,
    SDCRT_WRITE = 2,
    SDCRT_ATOMIC = 4,
    SDCRT_SYNC = 8 /* of integers: programs may wait for each other by it */
};

/* Kernels with SdcrtMeta.hooks find the address of one of these in the slot behind their
   parameters. `program` is the number of the program in the grid, axis 0 fastest; index
   [d * lanes + l] is the place of lane l along dimension d of its tile. The functions are
   called from any thread that runs programs. */
typedef struct SdcrtFree {
    uint64_t at, bytes;
} SdcrtFree;

typedef struct SdcrtHooks SdcrtHooks;
struct SdcrtHooks {
    int32_t stop; /* nonzero: programs that begin end at once */
    int32_t unused;
    void (*print)(SdcrtHooks *h, const SdcrtSite *site, int64_t program,
                  const uint64_t *values, const int64_t *index);
    /* Lanes of `bad` do not hold; the program returns afterwards, and with it the range
       of programs that it is in. */
    void (*fail)(SdcrtHooks *h, const SdcrtSite *site, int64_t program, uint64_t bad,
                 const int64_t *index);
    /* Checked code alone, from here on. A program begins. */
    void (*enter)(SdcrtHooks *h, int64_t program);
    /* In front of an access by lanes whose bits in `mask` are set: of consecutive
       elements from `at` on, or of an address each. `values`: what is going to be
       stored. Returns the lane that may not do it, or -1; after a lane, `where` tells
       its index, and the program returns. */
    int32_t (*row)(SdcrtHooks *h, const SdcrtSite *site, uint64_t at, uint64_t mask,
                   const void *values);
    int32_t (*each)(SdcrtHooks *h, const SdcrtSite *site, const uint64_t *at,
                    uint64_t mask, const void *values);
    void (*where)(SdcrtHooks *h, const SdcrtSite *site, int32_t lane,
                  const int64_t *index);
    /* A NaN has come: out of memory (site->access is SDCRT_READ), or of values that are
       none; 'D' as format: out of a product, of values that nobody has looked at. */
    void (*nan)(SdcrtHooks *h, const SdcrtSite *site);
    /* Lanes that are about to store a NaN: as `row`. */
    int32_t (*stored)(SdcrtHooks *h, const SdcrtSite *site, uint64_t nans);
    /* For each parameter the address and the bytes that a row of loads needs not ask for;
       0 bytes: it asks always. */
    const SdcrtFree *free;
};

/* Entry of a CPU kernel: runs the programs `first` .. `last` - 1 of the grid, numbered
   with axis 0 fastest. `args`: one 8-byte slot per parameter (pointers; integers sign-
   or zero-extended; floats as the bits of their type in the low bytes). `scratch`:
   scratch_bytes of this thread, 64-byte aligned, contents undefined; SDCRT_ALONE is added
   to its address while no other thread runs programs with atomics on the same memory:
   then they need no locked instructions. */
enum { SDCRT_ALONE = 1 };
typedef void SdcrtCpuEntry(const uint64_t *args, const SdcGrid *grid, int64_t first,
                           int64_t last, void *scratch);

/* ---- what an object of kernels compiled ahead of time holds; bundle.h launches it */

enum { SDCRT_BUNDLE_FORMAT = 1 };

typedef enum SdcrtCodeKind {
    SDCRT_CODE_CPU,
    SDCRT_CODE_PTX,
    SDCRT_CODE_CUBIN
} SdcrtCodeKind;

typedef struct SdcrtCode {
    SdcrtCpuEntry *entry;       /* CPU; else NULL */
    const unsigned char *bytes; /* PTX with a NUL behind it, or a cubin */
    uint64_t size;
    const unsigned char *meta; /* packed */
    uint64_t meta_size;
    uint64_t kind; /* SdcrtCodeKind */
} SdcrtCode;

typedef struct SdcrtBundle {
    uint64_t format, ncode;
    const SdcrtCode *code;
    void **state; /* made by the first launch, kept as long as the process */
    const char *name;
} SdcrtBundle;

#endif

/* How a call of sdc_nn.h is done: shapes, strides and the device in; kernel, tile and
   parts out, with the guesses that decided. A plan depends on nothing else, so that a
   shape has the same bits in every call on a device. Private to libsdc. */
#ifndef SDC_RUNTIME_NN_PLAN_H
#define SDC_RUNTIME_NN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct NnDevice {
    bool gpu;
    bool wgmma;     /* tensor maps and wgmma */
    int processors; /* threads on the CPU */
    int64_t cache;  /* CPU: bytes of a thread's second-level cache */
    bool lends;     /* temporary memory in the order of a stream */
    double memory;  /* GPU: GB/s of its memory, and */
    double clock;   /* MHz of its SMs, at most; 0: not known */
} NnDevice;

/* How many times as fast as on the H200 that the planner's rates are of: device memory,
   SMs, and the second-level cache for all of them. */
double device_memory(const NnDevice *d);
double device_clock(const NnDevice *d);
double device_cache(const NnDevice *d);

/* ---- matmuls */

/* FP8: sums are added up in fp32 every so often; FP8_FAST: they are not. */
typedef enum GemmMath {
    GEMM_HALF,
    GEMM_TF32,
    GEMM_EXACT,
    GEMM_FP8,
    GEMM_FP8_FAST,
    GEMM_MATHS
} GemmMath;

/* What is asked. All of it is compared as bytes: make it from zeros. */
typedef struct GemmAsk {
    int64_t m, n, k;
    int64_t batch; /* so many of them, 1 or more */
    int32_t math;   /* GemmMath */
    int32_t bytes;  /* of an element of a and b */
    int32_t result; /* bytes of one of c */
    /* The power of two of bytes, up to 128, that each row in memory begins on; 0: no unit
       stride. Tensor maps take 16 and more. */
    int32_t a_rows, b_rows;
    int16_t c_rows;   /* as these, of c, where it may be swapped */
    int16_t epilogue; /* names one, for who carries the plan out */
    int16_t way;      /* so many ways are better, as guessed; 0: the best is taken */
    int16_t stay;     /* operands that cannot be packed: 1 a, 2 b */
    int8_t whole;     /* nonzero: no parts along k */
    int8_t swaps;     /* nonzero: a and b may be swapped, as GemmPlan has it */
    int16_t across; /* operands whose memory does not run along k: 1 a, 2 b */
    int64_t rests;  /* nonzero: the last tiles alone may be in parts along k */
} GemmAsk;

/* A tile of the matmul kernels and how fast it goes. n is a power of two or the sum of
   two, which have accumulators of their own. */
typedef struct GemmTile {
    int m, n, k, warps, stages;
    int resident; /* programs on an SM */
    double step;  /* microseconds that a step along k takes at least */
    double rate;  /* TFLOP/s of an SM */
} GemmTile;

/* Microseconds, guessed. */
typedef struct GemmCost {
    double products; /* on the tensor cores */
    double memory;   /* everything once, by what is in flight */
    double cache;    /* tiles out of the second-level cache */
    double beside;   /* launches, packing, adding parts */
    double all;
} GemmCost;

typedef struct GemmPlan {
    const GemmTile *tile;
    int split;           /* parts along k, added in their order by a second launch */
    /* copied first, to rows on 128 bytes; of fp8 these run along k */
    bool pack_a, pack_b;
    bool swapped; /* as c^T = b^T a^T: rows of the tile are columns of c */
    int64_t first; /* so many tiles go first, whole; 0: all are in as many parts */
    GemmCost cost;
    /* what came next, for the explanation; NULL: nothing did */
    const GemmTile *next;
    int next_split;
    bool next_packs, next_swapped;
    double next_us;
} GemmPlan;

enum { GEMM_MAP_ROWS = 16, GEMM_LINE = 128 };

/* How a matmul may be done, as GemmPlan. */
typedef struct GemmWay {
    const GemmTile *tile;
    int split;
    bool pack_a, pack_b, swapped;
    int64_t first;
    GemmCost cost;
} GemmWay;

/* What goes on at once takes little more than the slowest of it, but some. */
double gemm_at_once(double products, double memory, double cache);
/* Operands, as in `across`, that packing transposes: they lie along k behind it. */
int gemm_transposed(const GemmAsk *ask);
GemmPlan gemm_plan(const NnDevice *d, const GemmAsk *ask);
/* The ways of doing it on a GPU, at most `most`, best first; of each tile and what is
   packed that in one part and the best of those in more. How many. */
int gemm_ways(const NnDevice *d, const GemmAsk *ask, GemmWay *out, int most);
GemmPlan gemm_plan_cpu(const NnDevice *d, const GemmAsk *ask); /* what it is there */
/* How many elements of k a part has: whole steps of the tile. */
int64_t gemm_part(const GemmPlan *p, int64_t k);

/* ---- rows */

typedef struct RowsAsk {
    int64_t rows, cols;
    int64_t most; /* columns that one tile may hold, which is read once */
    int64_t step; /* columns of a tile of a row in pieces */
    bool shares;  /* short rows may share a program */
} RowsAsk;

/* parts 0: a program holds a row, or several together. Else a row is read by `parts`
   programs, twice. */
typedef struct RowsPlan {
    int64_t block;
    int64_t together;
    int warps;
    int64_t unit; /* of strides and columns as the kernels take them; 1: elements */
    int64_t parts, columns; /* columns of a part, a multiple of the block */
    const char *why;
} RowsPlan;

RowsPlan rows_plan(const NnDevice *d, const RowsAsk *ask);

/* ---- attention */

typedef struct AttentionAsk {
    int64_t sequences, heads, key_heads;
    int64_t m, n;       /* queries and keys of the longest sequence */
    int dim, value_dim; /* up to 256 */
    int bytes;          /* of an element */
    bool exact;         /* fp32 in full precision */
    bool causal, dropout, deterministic;
    bool packed; /* sequences of different lengths */
    bool changed; /* scores or keys by options */
} AttentionAsk;

typedef struct AttentionTile {
    int m, n, warps, stages;
    int columns;  /* what it is for: at most so many of queries and of values */
    int values;   /* of values, where that is fewer; 0: it is not */
    int resident; /* programs on an SM */
    double rate;  /* TFLOP/s of an SM */
    double begin; /* microseconds that a program has beside its steps */
    bool wide;    /* one tile of columns, masked, for what two would hold */
} AttentionTile;

typedef struct AttentionCost {
    double products, memory, cache, beside, all; /* as GemmCost */
} AttentionCost;

typedef struct AttentionPlan {
    AttentionTile tile;
    bool split;   /* the kernel of few queries: rows are those of a group of heads */
    bool turns; /* as many programs as run at once take tiles of queries one after another
                 */
    bool ahead; /* and load the next tile's queries while they work on one */
    int parts;    /* of the keys, put together by a second launch */
    int64_t keys; /* of a part, a multiple of the tile's */
    AttentionCost cost;
    /* what came next, as GemmPlan's; .m is 0: nothing did */
    AttentionTile next;
    bool next_split, next_turns;
    int next_parts;
    double next_us;
} AttentionPlan;

enum { ATTENTION_MOST_PARTS = 256, ATTENTION_MOST_DIM = 256,
       ATTENTION_MOST_KEYS = 128 }; /* keys of a tile */

AttentionPlan attention_plan(const NnDevice *d, const AttentionAsk *q);

/* Columns of the tiles that hold `dim`, as flash_attention.tk divides them. */
int attention_columns(int dim, bool wide);

/* The gradients. */
typedef struct GradPlan {
    AttentionTile keys;    /* of the kernel for dk and dv */
    AttentionTile queries; /* of that for dq, where it is one of its own */
    bool own_dq; /* dq by a kernel of its own: nothing is added in memory */
    int shares;  /* programs among which the query heads of a head of keys are divided,
                    which add up dk and dv in memory; 1: one does them all */
    const char *why;
} GradPlan;

GradPlan grad_plan(const NnDevice *d, const AttentionAsk *q);

/* ---- block dropout and matmuls */

/* A layer, x [m, k] and w [k, n], whose x has dead blocks. Compared as bytes, as
   GemmAsk. */
typedef struct SparseAsk {
    int64_t m, n, k;
    int32_t mask_m, mask_k; /* elements of a block */
    float p;
    int32_t bytes; /* of an element */
    int32_t wants; /* SPARSE_Y, or one or both of the others */
    int32_t lists; /* nonzero: there is memory for a list of the live blocks */
    int32_t sums;  /* nonzero: and for parts of sums and packed operands */
    int32_t x_rows, w_rows, dy_rows; /* as GemmAsk's, of operands that are read */
    int16_t y_across, dx_across, dw_across; /* as GemmAsk's, of plain matmuls */
    int16_t way; /* as GemmAsk's */
} SparseAsk;

enum { SPARSE_Y = 1, SPARSE_DX = 2, SPARSE_DW = 4 };

/* What a list can hold: blocks of SPARSE_BLOCK, so many rows and columns of them. */
enum { SPARSE_BLOCK = 128, SPARSE_LIST_SIDE = 64 };

/* One of the matmuls: y, dx or dw. */
typedef struct SparseMatmul {
    GemmTile tile; /* m 0: not wanted */
    int parts;     /* along the inner dimension, added by a second launch */
    bool sorted;   /* most work first */
    bool pairs;    /* of dx: two live blocks of a row in one program */
    bool whole;    /* dead blocks are multiplied, too: zeros, and for nothing */
    /* by `gemm`, of a copy of x whose dropped blocks are 0; of dx they are zeroed last */
    bool dense;
    GemmPlan gemm;
} SparseMatmul;

typedef enum SparseOrder {
    SPARSE_APART,       /* a launch for each matmul */
    SPARSE_JOINT,       /* dx and dw in one, a program for each tile */
    SPARSE_LISTED,      /* persistent, from a list; dx and dw apart */
    SPARSE_LISTED_JOINT /* and together */
} SparseOrder;

typedef struct SparseWay {
    SparseOrder order;
    SparseMatmul y, dx, dw;
    bool dw_first; /* where dx and dw are one launch */
    bool pack_x, pack_w, pack_dy; /* copied first, to rows on 128 bytes */
} SparseWay;

typedef struct SparsePlan {
    SparseWay way;
    double products; /* microseconds, guessed: on the tensor cores, */
    double beside;   /* launches, lists and sums, */
    double all;      /* all of it */
    SparseWay next;  /* as GemmPlan's; next_us 0: nothing came next */
    double next_us;
} SparsePlan;

SparsePlan sparse_plan(const NnDevice *d, const SparseAsk *q);

/* ---- what was chosen, in words */

typedef enum NoteKind {
    NOTE_NONE,
    NOTE_GEMM,
    NOTE_ROWS,
    NOTE_ATTENTION,
    NOTE_GRAD,
    NOTE_SPARSE
} NoteKind;

typedef struct Note {
    const char *function;
    NoteKind kind;
    bool gpu;
    union {
        struct {
            GemmAsk ask;
            GemmPlan plan;
        } gemm;
        struct {
            RowsAsk ask;
            RowsPlan plan;
        } rows;
        struct {
            AttentionAsk ask;
            AttentionPlan plan;
        } attention;
        struct {
            AttentionAsk ask;
            GradPlan plan;
        } grad;
        struct {
            SparseAsk ask;
            SparsePlan plan;
        } sparse;
    } of;
} Note;

/* As snprintf: how long the text is. */
size_t note_print(const Note *n, char *to, size_t size);

#endif

/* From tiles to cpu form: what the files simd_*.c share.

   A tile is seen as a function from an index to an element. `Plan` says for each tile
   value whether it is computed where it is used, or kept in a buffer (`Slot`). A
   `Group` is one loop nest: roots (stores, reductions, buffer writes) of one iteration
   space and the loads that are sunk into it. simd_plan.c decides, simd_eval.c computes
   a value at an index, simd_emit.c writes loops, lower_cpu.c walks the function. */
#ifndef SDC_PASSES_CPU_SIMD_H
#define SDC_PASSES_CPU_SIMD_H

#include "ir/analysis/axis.h"
#include "ir/base/map.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "passes/cost.h"
#include "passes/pass.h"

enum { SIMD_MAX_LANES = 64, SIMD_MAX_DEMAND = 4, SIMD_MAX_IN = 8 };


/* A buffer. Slots that turn out to be one buffer are joined by `same`. */
typedef struct Slot {
    const Type *type; /* buf */
    Value *buf;       /* once code uses it */
    struct Slot *same;
} Slot;

typedef enum RootKind {
    ROOT_LOAD,   /* not a root: a load kept in program order */
    ROOT_MAT,    /* v's definition goes to its slot */
    ROOT_COPY,   /* v goes to dst */
    ROOT_STORE,
    ROOT_REDUCE,
    ROOT_EFFECT, /* atomics, assert */
    ROOT_ROWS,   /* v is multiplied by dst and added to the sums of op, a dot */
    ROOT_PRINT,  /* operand `offset` of op */
    ROOT_SCALAR  /* v, of one element, becomes the scalar result of op */
} RootKind;

typedef struct Root {
    RootKind kind;
    Op *op;
    Value *v;
    Slot *dst;
    int axis;        /* COPY: dimension that is shifted by `offset`, or -1 */
    int64_t offset;
    bool minor;      /* COPY: dst has one more dimension, indexed by `offset` */
    bool either;     /* COPY: dst may have its last two dimensions swapped, .. */
    bool transposed; /* .. and has */
} Root;

typedef struct Group {
    Op *at;          /* emitted in front of this op of the old code */
    Region *region;
    const Type *shape;
    int axis;        /* reduced dimension, or -1 */
    bool closed;     /* nothing may join */
    const Op *unless; /* runs when this loop has no iteration; NULL: always */
    struct Group *then; /* runs next, with nothing between but scalar work; or NULL */
    struct Group *before; /* whose `then` it is */
    int cost;
    Vec(Root) items; /* latest first */
} Group;

typedef struct Demand {
    Group *g;
    bool shifted; /* not at the nest's own index */
} Demand;

typedef struct Plan {
    Slot *slot;
    Demand d[SIMD_MAX_DEMAND];
    int nd;
    bool many;  /* more than fit */
    bool keep;  /* what its elements are spread to would be */
    bool lazy;  /* load: evaluated inside its only group */
    int cost, depth;
    int again;  /* cost once what it is loaded from is in the caches */
    bool index; /* arithmetic on indices and scalars alone */
} Plan;

/* Groups and slots of an op, besides those of its results. */
typedef struct OpPlan {
    int order;
    Vec(Group *) groups;   /* emitted last to first */
    Group *pack[3];        /* dot: a, b, accumulator */
    Slot *operand[2];      /* dot: packed a and b */
    Op *zero_first;        /* dot: the loop in whose first iteration the sums are 0 */
    Group **each;          /* print: one for each operand; NULL for scalars */
    /* for, while, if: per carried value or result; NULL for scalars */
    Slot **carry;
    Slot **carry2;         /* while: of the second region's arguments and the results */
} OpPlan;

typedef struct Writer {
    Op *op;
    int order;
    Group *g;
} Writer;

typedef struct Simd {
    Session *s;
    TypeTable *tt;
    Func *f;
    Arena *tmp;
    Axis *axis;  /* of the old code */
    int vector_bytes; /* of the machine */
    Map plans;   /* old Value -> Plan */
    Map ops;     /* old Op -> OpPlan */
    Map map;     /* old scalar Value -> new Value */
    Op *entry;   /* buffers are allocated in front of it */
    Group *cur;  /* planning: the earliest group of the region so far */
    bool loads_since;
    Vec(Writer) writers;
    int order;
    const Type *i1, *i32, *i64;
} Simd;

/* An index of one dimension: a constant, a scalar, scalar + lane, or a strip; all i64. */
typedef enum IxKind { IX_CONST, IX_UNI, IX_AFF, IX_VEC } IxKind;
typedef struct Ix {
    IxKind kind;
    int64_t c;
    Value *v;
} Ix;

/* What an evaluation gives: the same in all lanes, scalar + lane * stride (integers
   and, in elements, pointers), a strip, or two runs of lanes: v + lane * stride in front
   of lane `at`, then + (lane - at) * stride from there on, or a scalar + lane * `then`, a
   scalar of v's type (of pointers: i64). */
typedef enum EvKind { EV_UNI, EV_AFF, EV_VEC, EV_TWO, EV_STEP } EvKind;
typedef struct Ev {
    EvKind kind;
    Value *v;
    int64_t stride;
    Value *then, *at; /* at: i32, 1 to w, where w means that there is one run */
} Ev;

/* A block of rows b[0], b[1], .. and of lanes that run along another dimension from a[0]
   on, where a[1], .. are the others. */
enum { SIMD_MOST_TURNED = 16 };
typedef struct Turn {
    int size;
    Value *a[SIMD_MOST_TURNED], *b[SIMD_MOST_TURNED];
} Turn;

/* What fast code tests for (strides of 1, remainders that change nothing, lanes that do
   not wrap): is it taken so without a test, since there is one, or since a wrong value
   does no harm? */
typedef enum Trust { TRUST_NONE, TRUST_TESTED, TRUST_HARMLESS } Trust;

typedef struct Cx Cx;
struct Cx {
    Simd *n;
    Builder b;
    int w;       /* lanes */
    const Group *g; /* NULL: a buffer's copy and the like */
    Map memo;
    /* assume what `cond` says: of full masks and the like, or of empty masks */
    bool fast, none;
    Cx *pre;     /* in front of the strip: where cond is computed */
    Value *cond; /* i1 in pre, or NULL: nothing assumed */
    Trust trust;
    const Turn *turn; /* NULL: not in blocks */
    /* A quotient is assumed to change in one lane of a strip, not in none. */
    bool two;
    /* fast: would that be so of shorter strips? NULL: no. What says so in front. */
    Value *runs;
    bool short_runs; /* nothing else would */
    bool steps;   /* strides that only the launch knows may be any number */
    bool stepped; /* fast: one was assumed to be 1 */
    bool skips;  /* reads a buffer that a masked load was written to */
};

/* simd_plan.c */
void simd_plan(Simd *n);
Plan *plan_get(Simd *n, const Value *v);
OpPlan *op_plan(Simd *n, const Op *op);
Slot *slot_new(Simd *n, const Type *elem, const Type *shape);
Slot *slot_find(Slot *s);
const Type *simd_wide(Simd *n, const Type *elem); /* element of a dot's buffer */
bool simd_tile(const Value *v);
bool simd_zero(const Value *v); /* 0 everywhere, not -0 */

/* simd_beside_one.c: is this erf only added to numbers of at least 1? */
bool simd_beside_one(const Op *op);

/* simd_mem.c: which loads may be sunk, which accesses may be interleaved. */
bool simd_may_sink(Simd *n, Op *load, const Group *g, bool shifted);
bool simd_may_join(Simd *n, const Op *access, const Group *g);

/* simd_eval.c */
void cx_init(Cx *cx, Simd *n, Builder b, int w);
Ev simd_eval(Cx *cx, Value *v, const Ix *ix);
Ev simd_eval_trusting(Cx *cx, Value *v, const Ix *ix, Trust trust);
Ev simd_define(Cx *cx, Value *v, const Ix *ix); /* by v's op, not from its slot */
Ev *simd_recall(Cx *cx, const Value *v, const Ix *ix);
void simd_remember(Cx *cx, Value *v, const Ix *ix, Ev ev);
Value *ev_strip(Cx *cx, Ev ev); /* as a strip; a scalar when w is 1 */
bool simd_map_shape(Cx *cx, Op *op, int result, const Ix *ix, Ix *out); /* operand's ix */
Value *simd_int(Builder *b, const Type *t, int64_t v);
Value *ix_value(Cx *cx, Ix x); /* scalar part */
Value *ix_strip(Cx *cx, Ix x);
const Type *strip_type(Cx *cx, const Type *elem);

/* simd_wrap.c. `e` is the value of v at ix. */
Value *simd_last(Cx *cx, const Ev *e); /* in the last lane; NULL: too far for its type */
/* False: no simple test says that the lanes count without wrapping. `test`: what says so,
   NULL when it is known. */
bool simd_in_order(Cx *pre, const Value *v, const Ev *e, const Ix *ix, bool is_signed,
                   Value **test);
/* May lane-linear v be widened as it is? An assumption where it must be. */
bool simd_widens(Cx *cx, Value *v, const Ev *e, const Ix *ix, bool is_signed);

/* simd_two.c: strips in two runs of lanes. */
int simd_run_lanes(const Simd *n, const Group *g, int w); /* of strips for these */
void simd_two_wanted(Cx *cx, const Ev *x, Value *n); /* of x / n */
bool simd_two_runs(Cx *cx, Op *op, const Ev *x, Value *n, Value *q, Ev *out);
/* What is divided once more, and assumed to be in one run. */
Ev simd_one_run(Cx *cx, Ev ev);
/* The operands of op in both runs; `at`: where the second begins. False: no such way. */
bool simd_two_parts(Cx *cx, const Op *op, const Ev *in, Ev (*part)[SIMD_MAX_IN],
                    Value **at);
Value *simd_two_strip(Cx *cx, Ev ev);
bool simd_two_load(Cx *cx, Op *op, const Ev *p, Value *mask, Value *other, Ev *out);
bool simd_two_store(Cx *cx, const Ev *p, Value *v, Value *mask);

/* simd_step.c: strides along the lanes that only the launch knows. */
bool simd_step(Cx *cx, Op *op, const Ev *in, const Ix *ix, Ev *out); /* one is STEP */
Value *simd_step_strip(Cx *cx, Ev ev);
bool simd_step_load(Cx *cx, Op *op, const Ix *ix, const Ev *p, Ev *out);
bool simd_step_store(Cx *cx, const Ev *p, Value *v);

/* simd_mask.c */
bool simd_in_front(const Cx *cx, int rank, const Ix *ix);
void simd_assume(Cx *cx, Value *cond);
bool simd_full(Cx *cx, Value *mask, const Ix *ix, Ev *rest);
bool simd_empty(Cx *cx, Value *mask, const Ix *ix);
bool simd_skipped(Cx *cx, Value *v, const Ix *ix, Ev *ev);

/* simd_mem.c */
Ev simd_other(Cx *cx, Op *load, const Ix *ix);
int simd_index(Cx *cx, int rank, const Ix *ix, Value **out);
Ev simd_slot_load(Cx *cx, Slot *s, const Type *elem, const Ix *ix);
void simd_slot_store(Cx *cx, Slot *s, int rank, const Ix *ix, Ev ev);
Ev simd_load(Cx *cx, Op *op, const Ix *ix);
void simd_store(Cx *cx, Op *op, const Ix *ix);

/* As an element of that type. */
Value *simd_convert(Cx *cx, Value *v, const Type *to);

/* simd_rows.c: dots of so few rows that b is multiplied where it is loaded. `zero`: i1,
   the sums begin with zeros; NULL: never. */
/* Before anything is planned: dots of one row by columns that are loaded along k. */
void simd_row_sums(Simd *n, Region *r, int nesting);
bool simd_has_few_rows(Simd *n, Op *dot);
void simd_rows(Simd *n, Builder *b, Op *dot, Slot *a, bool transposed, Value *zero);
void simd_rows_step(Cx *cx, const Root *r, const Ix *ix);

/* simd_live.c: how many rows and columns of a dot's sums are stored, i64, at least 1.
   False: all. */
bool simd_live(Simd *n, Builder *b, Op *dot, Value **rows, Value **cols);

/* simd_sums.c, before anything is planned: tiles that loops carry to be reduced. */
void simd_sums(Simd *n);

/* simd_transpose.c: the dimension with which that of the lanes changes places on its way
   from memory, or -1; how large the blocks are, 0: too small. */
int simd_transpose_dim(Simd *n, const Group *g, int lane);
int simd_transpose_size(const Simd *n, const Group *g, int bits, int a, int b);
/* v, in memory that runs along the block's rows, for all of them. False: it does not. */
bool simd_transpose(Cx *cx, Value *v, const Ix *ix, Ev *out);

/* simd_scan.c: in place, in the buffers of the results. */
void simd_scan(Simd *n, Builder *b, Op *scan);

/* simd_debug.c: what the host hears of while a program runs. */
void simd_print(Cx *cx, Op *op, int operand, const Ix *ix);
void simd_assert(Cx *cx, Op *op, const Ix *ix);
void simd_prints(Simd *n, Builder *b, Op *op);
/* In front of the access op (of the old code) at ix, where the function wants checks: by
   `p`, a pointer or the first of consecutive lanes, or a strip of them. */
void simd_check(Cx *cx, Op *op, Value *p, Value *mask, Value *stored, int lanes,
                const Ix *ix);

/* simd_fetch.c. After a load of consecutive elements at p; at the end of a strip. */
void simd_fetch_next(Cx *cx, const Op *load, const Ix *ix, Value *p);
void simd_fetch_stores(Cx *cx, const Ix *ix);
void simd_fetch_loads(Cx *cx, const Ix *ix);
/* In front of g: what the addresses of the next nest's stores are made of. */
void simd_fetch_scalars(Simd *n, Builder *b, const Group *g);
/* In front of a store of consecutive elements at p, of a tile too long for that. */
void simd_fetch_long(Cx *cx, const Op *store, const Ix *ix, Value *p);

/* simd_reshape.c */
void simd_reshape_index(Cx *cx, const Type *to, const Ix *ix, const Type *from, Ix *out);

/* simd_lanes.c */
/* How v changes with dimension d: 0 not at all, 1 by one, 2 otherwise. */
int simd_slope(Simd *n, const Value *v, int d);
/* Certainly by one? */
bool simd_runs_along(Simd *n, const Value *v, int d);
int simd_lane_dim(Simd *n, const Group *g);
int simd_lane_count(const Simd *n, const Group *g, int64_t size);
int simd_widest(const Group *g); /* bits of what it computes */

/* simd_emit.c */
void simd_group(Simd *n, Builder *b, Group *g);
void simd_copy(Simd *n, Builder *b, Slot *from, Slot *to);
/* The combine region of a reduction or scan, of elementwise operations, on strips: args
   are (a.., b..). */
void simd_combine(Cx *cx, const Op *op, Value **args, Value **out);
/* The neutral element of a reduction by one operation. */
bool simd_identity(const Op *reduce, double *f, int64_t *i, bool *is_float);

#endif

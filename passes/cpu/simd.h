/* From tiles to cpu form: what the files simd_*.c share.

   A tile is a function from an index to an element. Code for a tile value is built in one
   of two ways, which its `Plan` says: the value is computed again at each place that uses
   it, or it is written to a buffer (`Slot`) once and read from there. A `Group` is one
   loop nest. Its `Root`s are the work of the nest: stores, reductions and writes of
   buffers, which all have the shape of its iteration space. An example:

       %x = load %p : tile<64x256xf32>
       %m = reduce %x {axis=1} maxf                     // group 1: root REDUCE
       %e = exp2 (subf %x, %m[:, None])
       store %q, %e                                     // group 2: root STORE

   The two groups cannot be one nest, since the second needs all of a row's maximum. %x is
   needed in both. A load that is as cheap as a buffer is done in both nests; any other
   gets a slot, which group 1 writes (root MAT), at the same index at which it reduces. %e
   is used once, so it has no slot: group 2 computes it where it stores it.

   A nest is emitted in strips of w lanes along one dimension. simd_eval computes the
   value of a tile at a strip's index (`Ix`) and returns an `Ev`, which keeps what lanes
   have in common: one scalar for all lanes, a scalar plus lane * stride, or a vector. So
   contiguous addresses and uniform loads follow from the arithmetic. `Cx` is the state of
   evaluating one strip. Most strips are built twice: fast code assumes that masks are
   full, strides are 1 and the like, and collects the tests for that in Cx.cond; general
   code is the other arm of that condition.

   simd_plan.c decides on groups and slots, simd_eval.c computes values, simd_emit.c
   builds the loops, and lower_cpu.c walks the function. */
#ifndef SDC_PASSES_CPU_SIMD_H
#define SDC_PASSES_CPU_SIMD_H

#include "ir/analysis/axis.h"
#include "ir/base/map.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "passes/cost.h"
#include "passes/pass.h"

enum { SIMD_MAX_LANES = 64, SIMD_MAX_DEMAND = 4, SIMD_MAX_IN = 8 };

/* A buffer. */
typedef struct Slot {
    const Type *type;  /* buf */
    Value *buf;        /* NULL: no code uses it yet */
    struct Slot *same; /* another slot that turned out to be the same buffer, or NULL */
} Slot;

typedef enum RootKind {
    ROOT_LOAD,   /* no root, but a load that must keep its place among the others */
    ROOT_MAT,    /* v is computed and written to its slot */
    ROOT_COPY,   /* v is written to dst */
    ROOT_STORE,
    ROOT_REDUCE,
    ROOT_EFFECT, /* atomics, assert */
    ROOT_ROWS,   /* v is multiplied by `offset` rows of dst and added to the sums of op */
    ROOT_PRINT,  /* operand `offset` of op */
    ROOT_SCALAR  /* v, of one element, becomes the scalar result of op */
} RootKind;

typedef struct Root {
    RootKind kind;
    Op *op;
    Value *v;
    Slot *dst;
    int axis;        /* COPY: dimension of dst that is shifted by `offset`; -1: none */
    int64_t offset;
    bool minor;      /* COPY: dst has one more dimension, whose index is `offset` */
    bool either;     /* COPY: the last two dimensions of dst may be swapped */
    bool transposed; /* COPY: they are */
} Root;

typedef struct Group {
    Op *at;            /* the nest is emitted in front of this op of the old code */
    Region *region;    /* of `at` */
    const Type *shape; /* of the iteration space */
    int axis;          /* reduced dimension, or -1 */
    bool closed;       /* no root may join any more */
    const Op *unless;  /* it runs only if this loop has no iteration; NULL: always */
    Op *around;        /* this loop is done for each row, see simd_by_rows.c; or NULL */
    struct Group *then;   /* the nest that runs next, but for scalar work; or NULL */
    struct Group *before; /* the group of which it is `then`, or NULL */
    int cost;             /* of one element, see passes/cost.h */
    Vec(Root) items;      /* latest first */
} Group;

/* A group needs a value. */
typedef struct Demand {
    Group *g;
    bool shifted; /* at another index than that of the nest */
} Demand;

/* What is decided for a tile value. */
typedef struct Plan {
    Slot *slot;                /* NULL: it is computed where it is used */
    Demand d[SIMD_MAX_DEMAND]; /* the first nd groups that need it */
    int nd;
    bool many;       /* more groups than that need it */
    bool keep;       /* it gets a slot, in place of a broadcast of it that would */
    bool lazy;       /* a load that is done inside its only group */
    int cost, depth; /* of computing an element from memory and slots */
    int again;       /* the same when the memory that is loaded is in the caches */
    bool index;      /* it is arithmetic on indices and scalars */
} Plan;

/* What is decided for an op, besides its results. */
typedef struct OpPlan {
    int order;             /* number in program order */
    Vec(Group *) groups;   /* emitted in front of it, last to first */
    Group *pack[3];        /* dot: nests that write a, b and the accumulator to buffers */
    Slot *operand[2];      /* dot: the buffers of a and b */
    Op *zero_first;        /* dot: a loop whose first iteration begins with 0 */
    Group **each;          /* print: a nest for each operand; NULL for scalars */
    /* for, while, if: a slot for each carried value or result; NULL for scalars */
    Slot **carry;
    Slot **carry2;         /* while: of the second region's arguments and the results */
} OpPlan;

/* A write of memory that was seen while planning. */
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
    Axis *axis;       /* facts of the old code */
    int vector_bytes; /* of the machine */
    Map plans;        /* old Value -> Plan */
    Map ops;          /* old Op -> OpPlan */
    Map map;          /* old scalar Value -> new Value */
    Op *entry;        /* buffers are allocated in front of it */
    Group *cur;       /* planning: the earliest group of the region so far */
    bool loads_since; /* planning: memory is read between here and cur */
    Vec(Writer) writers;
    int order;
    const Type *i1, *i32, *i64;
} Simd;

/* The index of a strip along one dimension, i64: a constant c; a scalar v; v + lane (v
   NULL: 0); or a vector v. */
typedef enum IxKind { IX_CONST, IX_UNI, IX_AFF, IX_VEC } IxKind;
typedef struct Ix {
    IxKind kind;
    int64_t c;
    Value *v;
} Ix;

/* The value of a tile in the lanes of a strip:

       EV_UNI   v, a scalar: the same in all lanes
       EV_AFF   v + lane * stride, integers, or pointers with the stride in elements
       EV_VEC   v, a vector
       EV_TWO   two runs: v + lane * stride in lanes below `at`,
                then + (lane - at) * stride in the others
       EV_STEP  v + lane * then, `then` being a scalar of v's type (of pointers: i64) */
typedef enum EvKind { EV_UNI, EV_AFF, EV_VEC, EV_TWO, EV_STEP } EvKind;
typedef struct Ev {
    EvKind kind;
    Value *v;
    int64_t stride;
    Value *then, *at; /* at: i32 from 1 to w; w: there is no second run */
} Ev;

/* A square block that is transposed in registers (simd_transpose.c): the indices of its
   rows, b, and of its lanes, a, along two dimensions. */
enum { SIMD_MOST_SQUARE = 16 };
typedef struct Square {
    int size;
    Value *a[SIMD_MOST_SQUARE], *b[SIMD_MOST_SQUARE];
} Square;

/* May an evaluation take without a test what fast code assumes (strides of 1, remainders
   that change nothing, lanes that do not wrap)? TESTED: a test stands elsewhere.
   HARMLESS: a wrong value does no harm, as in a prefetch. */
typedef enum Trust { TRUST_NONE, TRUST_TESTED, TRUST_HARMLESS } Trust;

typedef struct Cx Cx;
/* One arm of code for one strip. */
struct Cx {
    Simd *n;
    Builder b;      /* where code of the strip is built */
    int w;          /* lanes */
    const Group *g; /* NULL: the strip belongs to no group, as in a copy of a buffer */
    Map memo;       /* values that were computed: simd_recall */
    bool fast;      /* assumes full masks, strides of 1 and the like */
    bool none;      /* assumes empty masks */
    bool ordered;   /* assumes that lanes do not wrap, and nothing of masks */
    Cx *pre;        /* in front of the strip, where the tests are computed */
    Value *cond;    /* i1 in pre: the assumptions hold; NULL: there are none */
    Trust trust;
    const Square *square; /* that the strip belongs to; NULL: none */
    int rows;             /* of the block that is no square; 0: none */
    bool two;         /* assumes that a quotient changes in one lane at most */
    Value *runs;      /* fast: i1, would `two` hold for shorter strips? NULL: no */
    bool short_runs;  /* fast: a strip always has more than one quotient */
    bool apart;       /* fast: nothing is assumed of quotients */
    bool steps;       /* strides that only the launch knows are EV_STEP */
    bool stepped;     /* fast: such a stride was assumed to be 1 */
    bool skips;       /* it reads a buffer that a masked load was written to */
};

/* ---- simd_plan.c */
/* Decides on groups and slots for the whole function. */
void simd_plan(Simd *n);
/* The plan of a tile value or an op; created empty if there is none. */
Plan *plan_get(Simd *n, const Value *v);
OpPlan *op_plan(Simd *n, const Op *op);
/* A new buffer for tiles of this shape. */
Slot *slot_new(Simd *n, const Type *elem, const Type *shape);
/* The slot at the end of the chain of `same`. */
Slot *slot_find(Slot *s);
/* The element type of a dot operand's buffer. */
const Type *simd_wide(Simd *n, const Type *elem);
bool simd_tile(const Value *v);
/* Is an operand or a result of op such a tile? */
bool simd_touches_tiles(const Op *op);
bool simd_zero(const Value *v); /* are all elements 0, and not -0? */

/* ---- simd_share.c */
/* A dot whose result the loop carries works in the carried buffer, if nothing reads the
   old value after the accumulator was written. */
void simd_carry_in_place(Simd *n, Op *loop, Slot **s);
/* A tile that an arm of a branch yields as it is, and that nothing needs any more, has
   the buffer of the branch's result: this arm copies nothing, the other changes it in
   place. */
void simd_share_with_branch(Simd *n, Op *op, Value *v);

/* simd_beside_one.c: is the result of this erf only added to numbers of at least 1? */
bool simd_beside_one(const Op *op);

/* ---- simd_mem.c, planning */
/* May the load be done inside nest g, which comes later: does no write between change
   what it loads? shifted: at another index than the nest's. */
bool simd_may_sink(Simd *n, Op *load, const Group *g, bool shifted);
/* May the access share nest g, where accesses of different indices are interleaved? */
bool simd_may_join(Simd *n, const Op *access, const Group *g);

/* ---- simd_eval.c */
/* A strip of w lanes that is built at b, without assumptions. */
void cx_init(Cx *cx, Simd *n, Builder b, int w);
/* The value of v at index ix, which has one entry for each dimension of v. */
Ev simd_eval(Cx *cx, Value *v, const Ix *ix);
/* The same with trust, apart from what cx has computed and assumed so far. */
Ev simd_eval_trusting(Cx *cx, Value *v, const Ix *ix, Trust trust);
/* The same, computed by v's op even if v has a slot. */
Ev simd_define(Cx *cx, Value *v, const Ix *ix);
/* What was computed for v at ix before; NULL: nothing. And noting it. */
Ev *simd_recall(Cx *cx, const Value *v, const Ix *ix);
void simd_remember(Cx *cx, Value *v, const Ix *ix, Ev ev);
/* ev as a vector of w lanes; as a scalar if w is 1. */
Value *ev_strip(Cx *cx, Ev ev);
/* For an op that only renames elements: the index in its operand of the element at ix of
   its result. False: it is another op. */
bool simd_map_shape(Cx *cx, Op *op, int result, const Ix *ix, Ix *out);
Value *simd_int(Builder *b, const Type *t, int64_t v);
/* An index as a scalar, that of lane 0; and as a vector. */
Value *ix_value(Cx *cx, Ix x);
Value *ix_strip(Cx *cx, Ix x);
/* The type of a vector of w elements. */
const Type *strip_type(Cx *cx, const Type *elem);

/* ---- simd_wrap.c: do the lanes of e, the value of v at ix, wrap in their type? */
/* The value in the last lane; NULL: it is surely out of the type's range. */
Value *simd_last(Cx *cx, const Ev *e);
/* Is there a simple test in front of the strip that no lane wraps? *test: it, i1; NULL:
   it is known. */
bool simd_in_order(Cx *pre, const Value *v, const Ev *e, const Ix *ix, bool is_signed,
                   Value **test);
/* May e be extended to more bits by extending its scalar? Fast code may assume it. */
bool simd_widens(Cx *cx, Value *v, const Ev *e, const Ix *ix, bool is_signed);

/* ---- simd_two.c: strips in two runs of lanes (EV_TWO) */
/* Lanes of a strip that is computed in two runs. */
int simd_run_lanes(const Simd *n, const Group *g, int w);
/* Fast code divides x by n: updates cx->runs and cx->short_runs. */
void simd_two_wanted(Cx *cx, const Ev *x, Value *n);
/* The quotient or remainder of x by n as two runs; q: the quotient in lane 0. False: it
   cannot be done. */
bool simd_two_runs(Cx *cx, Op *op, const Ev *x, Value *n, Value *q, Ev *out);
/* ev, two runs, assumed to be one: for dividing it again. */
Ev simd_one_run(Cx *cx, Ev ev);
/* part[0] and part[1]: op's operands in the first and second run, where the second begins
   with lane *at. False: their runs do not agree. */
bool simd_two_parts(Cx *cx, const Op *op, const Ev *in, Ev (*part)[SIMD_MAX_IN],
                    Value **at);
/* As ev_strip, of EV_TWO. */
Value *simd_two_strip(Cx *cx, Ev ev);
/* Load and store with such an address p; false: it is not contiguous in the runs. */
bool simd_two_load(Cx *cx, Op *op, const Ev *p, Value *mask, Value *other, Ev *out);
bool simd_two_store(Cx *cx, const Ev *p, Value *v, Value *mask);

/* ---- simd_step.c: strides along the lanes that only the launch knows (EV_STEP) */
/* The result of op, of which an operand is EV_STEP; false: it is no EV_STEP. */
bool simd_step(Cx *cx, Op *op, const Ev *in, const Ix *ix, Ev *out);
/* As ev_strip, of EV_STEP. */
Value *simd_step_strip(Cx *cx, Ev ev);
/* Load and store with such an address p; false: the general code has to do it. */
bool simd_step_load(Cx *cx, Op *op, const Ix *ix, const Ev *p, Ev *out);
bool simd_step_store(Cx *cx, const Ev *p, Value *v);

/* ---- simd_mask.c */
/* Is this index computed in front of the strip, so that tests can use it? */
bool simd_in_front(const Cx *cx, int rank, const Ix *ix);
/* Adds an assumption, an i1 of cx->pre. */
void simd_assume(Cx *cx, Value *cond);
/* Is the mask true in all lanes, perhaps by assumption? If not: *rest is its value, or
   what is left of it. */
bool simd_full(Cx *cx, Value *mask, const Ix *ix, Ev *rest);
/* Is it false in all lanes, by the assumption of cx->none? */
bool simd_empty(Cx *cx, Value *mask, const Ix *ix);
/* Is v, which has a slot, a masked load that was not done for this strip? *ev: what it
   gives then. */
bool simd_skipped(Cx *cx, Value *v, const Ix *ix, Ev *ev);

/* ---- simd_mem.c, building */
/* The value of elements that a masked load leaves out. */
Ev simd_other(Cx *cx, Op *load, const Ix *ix);
/* The operands of a buffer access at ix; returns the dimension that lanes run along, -1
   if there is none. If an index is a vector, all that depend on the lane are. */
int simd_index(Cx *cx, int rank, const Ix *ix, Value **out);
/* The buffer of a slot, which exists from now on. */
Value *simd_buffer(Simd *n, Slot *s);
/* Reads or writes a slot at ix. */
Ev simd_slot_load(Cx *cx, Slot *s, const Type *elem, const Ix *ix);
void simd_slot_store(Cx *cx, Slot *s, int rank, const Ix *ix, Ev ev);
/* Does a load or store of global memory for the strip at ix. */
Ev simd_load(Cx *cx, Op *op, const Ix *ix);
void simd_store(Cx *cx, Op *op, const Ix *ix);

/* v converted to element type `to`. */
Value *simd_convert(Cx *cx, Value *v, const Type *to);

/* simd_rows.c: dots of so few rows that b is multiplied where it is loaded. `zero`: i1,
   the sums begin with zeros; NULL: never. */
/* Before anything is planned: dots of one row by columns that are loaded along k. */
void simd_row_sums(Simd *n, Region *r, int nesting);
bool simd_has_few_rows(Simd *n, Op *dot);
bool simd_may_have_one_row(Simd *n, Op *dot); /* that is stored */
void simd_rows(Simd *n, Builder *b, Op *dot, Slot *a, bool transposed, Value *zero,
               int64_t rows);
void simd_rows_step(Cx *cx, const Root *r, const Ix *ix);
/* How many rows of b a nest goes through beside each other; 1: any other nest. */
int simd_rows_beside(const Group *g, int lane);

/* simd_live.c: how many rows and columns of a dot's result are stored in the end, i64, 1
   at least; NULL: all of that dimension. False: all of both. */
bool simd_live(Simd *n, Builder *b, Op *dot, Value **rows, Value **cols);

/* simd_rounds.c: how many iterations' products of a dot are multiplied together, the
   bytes that this keeps, and whether this, with b in the new loop, is the last iteration,
   i1. */
int64_t simd_at_once(Simd *n, Op *dot);
int64_t simd_kept_bytes(const Op *dot, int64_t rounds);
Value *simd_last_round(Builder *b);

/* simd_view.c: operand v of a dot, which `pack` would copy to `slot`, where it lies
   (`transposed`: the buffer has its dimensions exchanged). NULL: it has to be copied,
   which is sure unless simd_may_view. */
bool simd_may_view(Simd *n, Value *v);
Value *simd_view(Simd *n, Builder *b, Group *pack, Value *v, bool transposed, Slot *slot);

/* simd_sums.c, before planning: loops that carry a tile only to reduce it behind the loop
   carry the reduced tile. */
void simd_sums(Simd *n);

/* simd_by_rows.c: the nest of a loop that does nothing but add up rows; NULL: the loop
   does something else. And such a loop inside of the nest, which carries the nest's
   accumulators; `in`: its body. */
Group *simd_by_rows(Simd *n, Op *loop);
Op *simd_around(Simd *n, Builder *b, Op *old, Value **accs, int count, Builder *in);
void simd_around_end(Simd *n, Builder *in, Op *old, Op *loop, Value **accs, int count);

/* ---- simd_transpose.c */
/* The dimension that memory of g's loads is contiguous along, if it is another than
   `lane`, so that blocks are transposed; -1: none. */
int simd_transpose_dim(Simd *n, const Group *g, int lane);
/* Rows of such blocks, along dimensions a and b, for elements of `bits`; 0: too few. */
int simd_transpose_size(const Simd *n, const Group *g, int bits, int a, int b);
/* Loads v for the whole block of cx->square and remembers it for its other rows. False:
   the memory of v is not contiguous along the block's rows. */
bool simd_transpose(Cx *cx, Value *v, const Ix *ix, Ev *out);

/* simd_scan.c: scans in the buffers of the results, which hold the operands. */
void simd_scan(Simd *n, Builder *b, Op *scan);

/* ---- simd_debug.c: calls of the host while a program runs */
/* Prints operand `operand` of a print for the strip at ix; and all operands. */
void simd_print(Cx *cx, Op *op, int operand, const Ix *ix);
void simd_prints(Simd *n, Builder *b, Op *op);
void simd_assert(Cx *cx, Op *op, const Ix *ix);
/* If the function is compiled with checks: builds the check in front of access op (of the
   old code) at ix. p: a pointer, the first of `lanes` consecutive ones, or a vector. */
void simd_check(Cx *cx, Op *op, Value *p, Value *mask, Value *stored, int lanes,
                const Ix *ix);

/* ---- simd_round.c */
/* The address that lanes of `to`, of a load in a loop, have `ahead` iterations later.
   NULL: unknown, the same as now, or not of consecutive elements. */
Value *simd_next_round(Cx *cx, Value *to, const Op *load, const Ix *ix, int64_t ahead);

/* ---- simd_fetch.c: prefetches */
/* Behind a load of consecutive elements at p: what a later strip or row will load. */
void simd_fetch_next(Cx *cx, const Op *load, const Ix *ix, Value *p);
/* At the end of a strip: what the next nest will store, and what it will load of the next
   tile. */
void simd_fetch_stores(Cx *cx, const Ix *ix);
void simd_fetch_loads(Cx *cx, const Ix *ix);
/* In front of g: computes the scalars that simd_fetch_stores needs for addresses. */
void simd_fetch_scalars(Simd *n, Builder *b, const Group *g);
/* In front of a store of consecutive elements at p, of a tile too long for that. */
void simd_fetch_long(Cx *cx, const Op *store, const Ix *ix, Value *p);

/* simd_reshape.c: the index in shape `from` of the element that is at ix in shape
   `to`. */
void simd_reshape_index(Cx *cx, const Type *to, const Ix *ix, const Type *from, Ix *out);

/* ---- simd_lanes.c */
/* How v changes from one index to the next along dimension d: 0 not at all, 1 by one, 2
   otherwise. A factor that only the launch knows counts as 1. */
int simd_slope(Simd *n, const Value *v, int d);
/* Does it certainly change by one? */
bool simd_runs_along(Simd *n, const Value *v, int d);
/* The dimension of g that lanes run along. */
int simd_lane_dim(Simd *n, const Group *g);
/* How many lanes a strip has, for a dimension of `size`. */
int simd_lane_count(const Simd *n, const Group *g, int64_t size);
/* Bits of the widest elements that g computes. */
int simd_widest(const Group *g);

/* ---- simd_emit.c */
/* Builds the nest of a group. */
void simd_group(Simd *n, Builder *b, Group *g);
/* Copies one buffer to another of the same type. */
void simd_copy(Simd *n, Builder *b, Slot *from, Slot *to);
/* Builds the combine region of a reduction or scan, which has only elementwise
   operations, on vectors; args: (a.., b..). */
void simd_combine(Cx *cx, const Op *op, Value **args, Value **out);
/* The neutral element of a reduction that combines by one operation: *f or *i. False: it
   has none. */
bool simd_identity(const Op *reduce, double *f, int64_t *i, bool *is_float);

#endif

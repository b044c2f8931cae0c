/* From tiles to cpu form: what the files nest*.c share.

   A tile is seen as a function from an index to an element. `Plan` says for each tile
   value whether it is computed where it is used, or kept in a buffer (`Slot`). A
   `Group` is one loop nest: roots (stores, reductions, buffer writes) of one iteration
   space and the loads that are sunk into it. nest_plan.c decides, nest_eval.c computes
   a value at an index, nest_emit.c writes loops, nest.c walks the function. */
#ifndef SDC_PASSES_CPU_NEST_H
#define SDC_PASSES_CPU_NEST_H

#include "ir/analysis/axis.h"
#include "ir/base/map.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "passes/cost.h"
#include "passes/pass.h"

enum { NEST_MAX_LANES = 64, NEST_MAX_DEMAND = 4, NEST_MAX_IN = 8 };

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
} Root;

typedef struct Group {
    Op *at;          /* emitted in front of this op of the old code */
    Region *region;
    const Type *shape;
    int axis;        /* reduced dimension, or -1 */
    bool closed;     /* nothing may join */
    struct Group *then; /* runs next, with nothing between but scalar work; or NULL */
    int cost;
    Vec(Root) items; /* latest first */
} Group;

typedef struct Demand {
    Group *g;
    bool shifted; /* not at the nest's own index */
} Demand;

typedef struct Plan {
    Slot *slot;
    Demand d[NEST_MAX_DEMAND];
    int nd;
    bool many;  /* more than fit */
    bool lazy;  /* load: evaluated inside its only group */
    int cost, depth;
    bool index; /* arithmetic on indices and scalars alone */
} Plan;

/* Groups and slots of an op, besides those of its results. */
typedef struct OpPlan {
    int order;
    Vec(Group *) groups;   /* emitted last to first */
    Group *pack[3];        /* dot: a, b, accumulator */
    Slot *operand[2];      /* dot: packed a and b */
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

typedef struct Nest {
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
} Nest;

/* An index of one dimension: a constant, a scalar, scalar + lane, or a strip; all i64. */
typedef enum IxKind { IX_CONST, IX_UNI, IX_AFF, IX_VEC } IxKind;
typedef struct Ix {
    IxKind kind;
    int64_t c;
    Value *v;
} Ix;

/* What an evaluation gives: the same in all lanes, scalar + lane * stride (integers
   and, in elements, pointers), or a strip. */
typedef enum EvKind { EV_UNI, EV_AFF, EV_VEC } EvKind;
typedef struct Ev {
    EvKind kind;
    Value *v;
    int64_t stride;
} Ev;

typedef struct Cx Cx;
struct Cx {
    Nest *n;
    Builder b;
    int w;       /* lanes */
    const Group *g; /* NULL: a buffer's copy and the like */
    Map memo;
    /* assume what `cond` says: of full masks and the like, or of empty masks */
    bool fast, none;
    Cx *pre;     /* in front of the strip: where cond is computed */
    Value *cond; /* i1 in pre, or NULL: nothing assumed */
    bool skips;  /* reads a buffer that a masked load was written to */
};

/* nest_plan.c */
void nest_plan(Nest *n);
Plan *plan_get(Nest *n, const Value *v);
OpPlan *op_plan(Nest *n, const Op *op);
Slot *slot_new(Nest *n, const Type *elem, const Type *shape);
Slot *slot_find(Slot *s);
const Type *nest_wide(Nest *n, const Type *elem); /* element of a dot's buffer */
bool nest_tile(const Value *v);

/* nest_below.c: is the operand of this exp or exp2 never above 0? */
bool nest_below0(const Op *op);

/* nest_mem.c: which loads may be sunk, which accesses may be interleaved. */
bool nest_may_sink(Nest *n, Op *load, const Group *g, bool shifted);
bool nest_may_join(Nest *n, const Op *access, const Group *g);

/* nest_eval.c */
void cx_init(Cx *cx, Nest *n, Builder b, int w);
Ev nest_eval(Cx *cx, Value *v, const Ix *ix);
Ev nest_define(Cx *cx, Value *v, const Ix *ix); /* by v's op, not from its slot */
Ev *nest_recall(Cx *cx, const Value *v, const Ix *ix);
void nest_remember(Cx *cx, Value *v, const Ix *ix, Ev ev);
Value *ev_strip(Cx *cx, Ev ev); /* as a strip; a scalar when w is 1 */
bool nest_map_shape(Cx *cx, Op *op, int result, const Ix *ix, Ix *out); /* operand's ix */
Value *nest_int(Builder *b, const Type *t, int64_t v);
Value *ix_value(Cx *cx, Ix x); /* scalar part */
Value *ix_strip(Cx *cx, Ix x);
const Type *strip_type(Cx *cx, const Type *elem);

/* nest_wrap.c. `e` is the value of v at ix. */
Value *nest_last(Cx *cx, const Ev *e); /* in the last lane; NULL: too far for its type */
/* False: no simple test says that the lanes count without wrapping. `test`: what says so,
   NULL when it is known. */
bool nest_in_order(Cx *pre, const Value *v, const Ev *e, const Ix *ix, bool is_signed,
                   Value **test);
/* May lane-linear v be widened as it is? An assumption where it must be. */
bool nest_widens(Cx *cx, Value *v, const Ev *e, const Ix *ix, bool is_signed);

/* nest_mask.c */
bool nest_in_front(const Cx *cx, int rank, const Ix *ix);
void nest_assume(Cx *cx, Value *cond);
bool nest_full(Cx *cx, Value *mask, const Ix *ix, Ev *rest);
bool nest_empty(Cx *cx, Value *mask, const Ix *ix);
bool nest_skipped(Cx *cx, Value *v, const Ix *ix, Ev *ev);

/* nest_mem.c */
Ev nest_other(Cx *cx, Op *load, const Ix *ix);
int nest_index(Cx *cx, int rank, const Ix *ix, Value **out);
Ev nest_slot_load(Cx *cx, Slot *s, const Type *elem, const Ix *ix);
void nest_slot_store(Cx *cx, Slot *s, int rank, const Ix *ix, Ev ev);
Ev nest_load(Cx *cx, Op *op, const Ix *ix);
void nest_store(Cx *cx, Op *op, const Ix *ix);

/* nest_debug.c: what the host hears of while a program runs. */
void nest_print(Cx *cx, Op *op, int operand, const Ix *ix);
void nest_assert(Cx *cx, Op *op, const Ix *ix);
void nest_prints(Nest *n, Builder *b, Op *op);
/* In front of the access op (of the old code) at ix, where the function wants checks: by
   `p`, a pointer or the first of consecutive lanes, or a strip of them. */
void nest_check(Cx *cx, Op *op, Value *p, Value *mask, Value *stored, int lanes,
                const Ix *ix);

/* nest_fetch.c. After a load of consecutive elements at p; at the end of a strip. */
void nest_fetch_next(Cx *cx, const Op *load, Value *p);
void nest_fetch_stores(Cx *cx, const Ix *ix);

/* nest_reshape.c */
void nest_reshape_index(Cx *cx, const Type *to, const Ix *ix, const Type *from, Ix *out);

/* nest_lanes.c */
/* How v changes with dimension d: 0 not at all, 1 by one, 2 otherwise. */
int nest_slope(Nest *n, const Value *v, int d, int depth);
int nest_lane_dim(Nest *n, const Group *g);
int nest_lane_count(const Nest *n, const Group *g, int64_t size);

/* nest_emit.c */
void nest_group(Nest *n, Builder *b, Group *g);
void nest_copy(Nest *n, Builder *b, Slot *from, Slot *to);

#endif

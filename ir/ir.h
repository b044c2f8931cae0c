/* Tile IR: a typed SSA form with structured control flow. A Module holds kernels; a Func
   has one Region; a Region has arguments and a list of Ops ending in a terminator; an Op
   has operands (Uses), results (Values), attributes and regions. There are no branches
   and no phi: dominance is nesting.

   Built only through ir/build.h and changed only through ir/edit.h, which keep use lists
   right. All of it lives in the session's `mod` arena. */
#ifndef SDC_IR_IR_H
#define SDC_IR_IR_H

#include "ir/attr.h"
#include "ir/base/diag.h"
#include "ir/base/str.h"
#include "ir/op.h"
#include "ir/session.h"
#include "ir/type.h"

typedef struct Op Op;
typedef struct Value Value;
typedef struct Use Use;
typedef struct Region Region;
typedef struct Func Func;
typedef struct Module Module;

struct Use {
    Value *value;
    Op *user;
    int index;         /* operand number */
    Use *next, **link; /* in the value's list of uses */
};

struct Value {
    const Type *type;
    Op *op;         /* defining op, or NULL for a region argument */
    Region *region; /* of an argument, or NULL */
    int index;      /* result or argument number */
    Use *uses;
    Name name;      /* source name, kept for reading; may be NULL */
    uint32_t id;    /* unique in the Func */
};

struct Op {
    OpKind kind;
    Loc loc;
    Op *prev, *next;
    Region *parent;
    Use *operands;
    int noperand, operand_cap;
    Value *results;
    int nresult;
    Region **regions;
    int nregion;
    AttrList attrs;
    uint32_t id;  /* unique in the Func */
};

struct Region {
    Value **args;
    int narg, arg_cap;
    Op *first, *last;
    Op *parent; /* NULL: the body of a Func */
    Func *func;
};

/* What is known of a kernel parameter. */
typedef struct Param {
    Name name;
    Name sig;       /* Triton's spelling: "*fp32", "i32", "u8", "fp64" */
    int64_t div;    /* address or value is a multiple of it; 1: unknown */
    int64_t multiple; /* above 1: code for launches alone that find it a multiple of this;
                      there is other code for the rest */
    int source;     /* position in the source's parameter list */
    int part;       /* tuples and descriptors: position inside the source parameter */
} Param;

struct Func {
    Name name;
    Region *body;      /* its args are the parameters */
    Param *params;     /* body->narg of them */
    int num_warps, num_stages, num_ctas;
    bool fixed_warps;     /* the source has asked for their number */
    int64_t shared_bytes; /* shared memory, once its buffers are placed */
    int check;         /* CHECK_*: code that watches what it does, for the CPU */
    bool overlap;      /* launched while the primary grid may still run: launch_pdl */
    bool exact;        /* no product is contracted with a sum: enable_fp_fusion=False */
    uint32_t props;    /* FORM_* of ir/forms.def */
    uint32_t given;    /* those that it was read with */
    uint32_t next_id;
    Module *module;
    Loc loc;
};

enum {
    CHECK_ACCESS = 1, /* loads, stores and atomics */
    CHECK_NAN = 2     /* where a NaN is born, too */
};

struct Module {
    Session *s;
    Func **funcs;
    int nfunc, func_cap;
};

static inline bool
op_is(const Op *op, uint32_t traits)
{
    return (op_info[op->kind].traits & traits) == traits;
}

static inline Value *
op_operand(const Op *op, int i)
{
    return op->operands[i].value;
}

static inline Value *
op_result(const Op *op, int i)
{
    return &op->results[i];
}

/* The op that a value comes from when it has the given kind, else NULL. */
static inline Op *
value_def(const Value *v, OpKind kind)
{
    return v->op && v->op->kind == kind ? v->op : NULL;
}

/* Safe against erasing `op` inside the loop. */
#define region_each(r, op) \
    for (Op *op = (r)->first, *op##_next = op ? op->next : NULL; op; \
         op = op##_next, op##_next = op ? op->next : NULL)

/* The op behind `op` in a walk over `root` and all regions in it, each op before those
   in its regions; NULL: `op` was the last. */
Op *op_next_within(const Op *op, const Region *root);

/* Every op of r and of the regions in it, in that order. The body may change operands and
   attributes, but neither erase nor move `op`. */
#define region_each_deep(r, op) \
    for (Op *op = (r)->first; op; op = op_next_within(op, (r)))

#define value_each_use(v, u) \
    for (Use *u = (v)->uses, *u##_next = u ? u->next : NULL; u; \
         u = u##_next, u##_next = u ? u->next : NULL)

Module *module_new(Session *s);
Func *module_func(Module *m, const char *name); /* NULL when absent */

/* How deep regions may be nested. The builder enforces it, so a recursion over regions
   needs no limit of its own. */
enum { MAX_REGION_DEPTH = 200, MAX_OPS = 1 << 20 };

/* The forms that a function may be in, bits of Func.props: see ir/forms.def. */
enum {
#define FORM(id, bit, name, doc) FORM_##id = bit,
#include "ir/forms.def"
#define FORM(id, bit, name, doc) +bit
    FUNC_FORM = 0
#include "ir/forms.def"
};

#endif

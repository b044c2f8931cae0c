/* Lowers a kernel: one walk over its syntax tree evaluates constants, infers types and
   builds tile IR. Here are the state of the walk and the functions that its parts share.

   Conventions: a function that finds an error reports it once and returns an FE_ERROR
   value; a function that is given an FE_ERROR value returns one and reports nothing.
   `loc` is the place that errors name. */
#ifndef SDC_FRONTEND_SEMA_H
#define SDC_FRONTEND_SEMA_H

#include "frontend/ast.h"
#include "frontend/frontend.h"
#include "frontend/promote.h"
#include "frontend/scope.h"
#include "frontend/value.h"
#include "ir/base/vec.h"
#include "ir/build.h"

enum {
    MAX_CALL_DEPTH = 64,      /* helpers inlined into one another */
    MAX_RECURSION = 24,       /* of one helper into itself; tiles have 2^20 elements */
    MAX_WALK_DEPTH = 256,     /* nested expressions and statements */
    MAX_CONST_STEPS = 10000000,
    MAX_UNROLLED = 1 << 16,   /* ops a static_range may expand to */
    MAX_NEST = 180,           /* runtime control flow, helpers included */
    MAX_COPIES = 64,          /* of what follows a conditional return */
};

/* One function being walked: the kernel, or a helper inlined into its caller. */
typedef struct Frame Frame;
struct Frame {
    Frame *caller;
    Loc call_loc;       /* in the caller */
    const Node *fn;     /* FUNCTION; NULL while module-level code is evaluated */
    FrontModule *module;
    Scope scope;
    int loop_depth;     /* runtime loops and reduce regions around: no return inside */
    Map declared;       /* names declared `x: tl.constexpr` without a value */
    Map copies;         /* statement behind a conditional return -> times it was walked */
};

typedef struct Sema {
    Session *s;
    Arena *a; /* values and scopes */
    FrontModule *m;
    Func *f;
    Builder b;
    Frame *frame;
    Map builtins;   /* Name -> Builtin, per namespace: see builtin.c */
    Map loop_names; /* FUNCTION -> loop variables that it reads after the loop: last.c */
    const FrontSpec *spec;
    bool debug;       /* asserts are compiled in */
    int depth;        /* of nodes now being walked */
    int call_depth;   /* of inlined calls */
    int errors;       /* that the session had before this lowering */
    int nest;         /* of runtime control flow */
    int64_t steps;    /* so far, of constant evaluation and walking */
    int64_t unrolled; /* values made so far while static_ranges are unrolled */
    int unrolling;    /* static_ranges around */
    struct Lanes *lanes; /* in a function of tl.map_elementwise (lanes.h), or NULL */
    Val making;       /* the object whose __init__ runs, or NULL */
    int host;         /* > 0: module level code is evaluated, so no IR may be built */
} Sema;

/* Reports an error at loc, with notes on the inlined calls; returns val_error(). */
Val sema_error(Sema *s, Loc loc, const char *fmt, ...) PRINTF_DIAG;
Val val_error(void);
/* The same, and ends the walk: for limits, which would be reported again and again. */
Val sema_stop(Sema *s, Loc loc, const char *text);
/* Enters one more level of runtime control flow; leave by s->nest--. */
bool sema_enter(Sema *s, Loc loc);
/* Counts n steps; false, after one error, when MAX_CONST_STEPS are spent. */
bool sema_step(Sema *s, Loc loc, int64_t n);

/* Make values. */
Val val_none(void);
Val val_bool(Sema *s, bool b);
Val val_int(Sema *s, Wide i);
Val val_float(Sema *s, double f);
Val val_str(Sema *s, const char *text);
Val val_dtype(Sema *s, DType t);
Val val_tuple(Sema *s, const Val *items, int n); /* keeps the array */
Val val_tuple_like(Sema *s, Val like, const Val *items); /* length and class of `like` */
Val val_tensor(Sema *s, Value *v, DType dt);     /* shape from v's type */
FeVal *val_new(Sema *s, FeKind kind);
FeVal *val_shaped(Sema *s, FeKind kind, DType dt, Shape sh); /* copies the shape */

/* ---- shape.c: which dtypes and shapes exist. false after an error. */
const Type *sema_type(Sema *s, DType dt, Shape sh, Loc loc); /* NULL after an error */
/* Has the dtype a type in IR? */
bool sema_check_dtype(Sema *s, DType dt, Loc loc);
/* Are the sizes powers of two, and their product and the rank within the limits? */
bool sema_check_shape(Sema *s, Shape sh, Loc loc);

/* promote.c: the dtype of a constant as a tensor; DT_NONE: it is too large for all. */
DType number_dtype(Val number);

/* ---- cast.c */
Val to_tensor(Sema *s, Val v, Loc loc); /* a number as a scalar tensor */
Val const_tensor(Sema *s, Val number, DType dt, Loc loc); /* the same, of dtype dt */
Val cast(Sema *s, Val x, DType to, Loc loc);
/* round: "rtne" or "rtz" */
Val cast_rounded(Sema *s, Val x, DType to, const char *round, Loc loc);
Val bitcast(Sema *s, Val x, DType to, Loc loc);
Val cast_i1(Sema *s, Val x, Loc loc); /* x != 0 */

/* ---- shape.c: changing shapes */
Val splat(Sema *s, Val scalar, Shape sh, Loc loc);
Val broadcast_to(Sema *s, Val x, Shape sh, Loc loc);
bool broadcast_pair(Sema *s, Val *x, Val *y, Loc loc); /* false after an error */
Val expand_dim(Sema *s, Val x, int axis, Loc loc);
Val reshape(Sema *s, Val x, Shape sh, bool reorder, Loc loc);
Val permute(Sema *s, Val x, const int64_t *perm, int n, Loc loc);
Val unsplat(Sema *s, Val x, Loc loc); /* a tile of one element as a scalar */
/* *out: the axis, where negative ones count from the end; false after an error. */
bool wrap_axis(Sema *s, int64_t axis, int rank, int *out, Loc loc);

/* ---- arith.c: operators on values of which at least one is a tensor */
typedef enum BinOp {
    BIN_ADD, BIN_SUB, BIN_MUL, BIN_DIV, BIN_FLOORDIV, BIN_MOD, BIN_POW, BIN_SHL, BIN_SHR,
    BIN_AND, BIN_OR, BIN_XOR, BIN_EQ, BIN_NE, BIN_LT, BIN_LE, BIN_GT, BIN_GE,
    BIN_MATMUL, BIN_COUNT
} BinOp;
extern const char *const binop_text[BIN_COUNT];
extern const char *const binop_method[BIN_COUNT][2]; /* "__add__", "__radd__" */
Val tensor_binary(Sema *s, BinOp op, Val x, Val y, Loc loc);
Val tensor_minus(Sema *s, Val x, Loc loc);
Val tensor_invert(Sema *s, Val x, Loc loc);
Val tensor_not(Sema *s, Val x, Loc loc);
Val tensor_logical(Sema *s, bool is_and, Val x, Val y, Loc loc);
/* Which operands unify_operands accepts; a set. */
typedef enum Unify {
    UNIFY_NUMBERS = 0,
    UNIFY_POINTER_LEFT = 1,
    UNIFY_POINTER_RIGHT = 2,
    UNIFY_DIVISION = 4 /* operands of a division: integers must agree in signedness */
} Unify;
/* Converts operands to one type and shape; false after an error. `what`: the operator,
   for messages; `may`: of Unify. */
bool unify_operands(Sema *s, Val *x, Val *y, const char *what, unsigned may, Loc loc);
bool unify_three(Sema *s, Val *v, const char *what, Loc loc);
Val build_elementwise(Sema *s, OpKind k, Val x, Val y, DType dt); /* y may be NULL */
Val tensor_where(Sema *s, Val c, Val x, Val y, Loc loc);
Val tensor_minmax(Sema *s, bool is_max, Val x, Val y, bool nan, Loc loc);

/* ---- constant.c: compile-time arithmetic, as Python does it */
Val const_binary(Sema *s, BinOp op, Val x, Val y, Loc loc);
Val const_minus(Sema *s, Val x, Loc loc);
Val const_invert(Sema *s, Val x, Loc loc);
/* tensor_binary or const_binary. */
Val binary(Sema *s, BinOp op, Val x, Val y, Loc loc);

/* ---- attribute.c */
/* x.attr; without it an error, or NULL if quiet. */
Val get_attribute(Sema *s, Val x, Name attr, Loc loc, bool quiet);
/* x[index] */
Val get_item(Sema *s, Val x, Val index, Loc loc);

/* ---- expr.c */
Val eval(Sema *s, const Node *n);
/* ---- resolve.c. Whether the function assigns the name anywhere, or has such a
   parameter. */
bool function_binds(Arena *a, const Node *fn, Name name);
/* The same without messages, for module level code: an FE_ERROR if it cannot be
   evaluated. */
Val eval_quiet(Sema *s, const Node *n);
/* A condition: an int1 scalar; or, with *known set, *truth is its value at compile
   time. */
Val eval_condition(Sema *s, const Node *n, bool *known, bool *truth);
/* A conditional expression whose condition is a run-time int1. */
Val runtime_ifexp(Sema *s, const Node *n, Val cond);

/* ---- stmt.c */
/* A continuation: what follows a statement. If a run-time condition returns early, the
   rest of the function is walked inside the other arm. */
typedef struct Cont {
    const NodeList *list; /* statements from `at` on; NULL: iterations of `loop` follow */
    int at;
    const Node *loop;     /* a static_range loop, */
    Wide i, stop, step;   /* from iteration i on */
    const struct Cont *next;
} Cont;
typedef enum Flow {
    FLOW_NEXT,
    FLOW_RETURNED,
    FLOW_BREAK,   /* break and continue: only in functions that run at compile time */
    FLOW_CONTINUE
} Flow;
/* Walks statements list[at..], which `cont` follows; *ret: the returned value. */
Flow exec_list(Sema *s, const NodeList *list, int at, const Cont *cont, Val *ret);
/* Binds the names of a target; constexpr_: it is annotated so. */
void assign_target(Sema *s, const Node *target, Val v, bool constexpr_);
/* target = v: names declared constexpr keep constants, others get tensors. */
void assign_value(Sema *s, const Node *target, Val v, Loc loc);

/* ---- loop.c */
Flow exec_for(Sema *s, const Node *n, const Cont *cont, Val *ret);
/* Unrolls the iterations of a static_range from i on. */
Flow exec_static_rounds(Sema *s, const Node *loop, Wide i, Wide stop, Wide step,
                        const Cont *cont, Val *ret);
Flow exec_while(Sema *s, const Node *n, Val *ret);

/* ---- merge.c: values that enter or leave a region */
typedef struct Flat {
    Value **at;
    int n, cap;
} Flat;
/* Appends the IR values that v consists of. */
void flatten(Sema *s, Val v, Flat *out);
/* A value like `like` from IR values at[*next] on; advances *next. */
Val unflatten(Sema *s, Val like, Value *const *at, int *next);
/* An `if` whose arms are built before its result types are known. */
typedef struct Branch {
    Op *op;
    Builder outside;
    Flat arm[2];
} Branch;
Branch branch_begin(Sema *s, Val cond);
void branch_arm(Sema *s, Branch *br, int arm); /* IR is built in that arm now */
/* Adds yields and results from br->arm; IR is built behind the `if` now. */
void branch_end(Sema *s, Branch *br);
/* A value like `like` from results *at and following of the `if`; advances *at. */
Val branch_result(Sema *s, Branch *br, Val like, int *at);

/* ---- globals.c: names of a file */
/* The value of a name for a kernel; NULL: it is not bound. any: not a
   kernel but module level code asks, which may also use plain values of the host. */
Val module_lookup(Sema *s, FrontModule *m, Name name, Loc loc, bool any);
/* A module that needs no file, by its dotted path; NULL: it is none. */
Val module_known(Sema *s, const char *path);
Val module_attribute(Sema *s, Val module, Name attr, Loc loc, bool quiet);

/* ---- call.c */
typedef struct CallArg {
    Val v;
    Name name; /* keyword, or NULL */
    Loc loc;   /* of the value */
    Loc name_loc;
} CallArg;
Val call_value(Sema *s, Val fn, const CallArg *args, int n, Loc loc);
/* Inlines a jit function given as FE_FUNC on positional arguments. */
Val call_function(Sema *s, Val fn, const Val *args, int n, Loc loc);
/* Calls a function of the prelude or a builtin of tl by name. */
Val call_tl(Sema *s, const char *name, const Val *args, int n, Loc loc);

#endif

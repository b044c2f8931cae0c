/* One walk over the syntax tree of a kernel evaluates constants, infers types and builds
   tile IR; the walk's state and the functions that its parts lend one another.

   Conventions: a function that finds an error reports it once and returns an FE_ERROR
   value; a function given an FE_ERROR value returns one without a word. `loc` is
   always the place to blame. */
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
    MAX_NEST = 100,           /* runtime control flow, helpers included */
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
    Map declared;       /* names of `x: tl.constexpr` without a value */
    Map copies;         /* statement after a conditional return -> times it was walked */
};

typedef struct Sema {
    Session *s;
    Arena *a; /* values and scopes */
    FrontModule *m;
    Func *f;
    Builder b;
    Frame *frame;
    Map builtins; /* interned name -> Builtin, per namespace: see builtin.c */
    Map loop_names; /* FUNCTION -> names of loops that it reads behind them: last.c */
    const FrontSpec *spec;
    bool debug;
    int depth;       /* of the walk */
    int call_depth;
    int errors;      /* of the session before this lowering */
    int nest;        /* of regions */
    int64_t steps;   /* of constant evaluation and walking */
    int64_t unrolled; /* values made while a static_range is unrolled */
    int unrolling;
    struct Lanes *lanes; /* in a function that runs for each element: lanes.h */
    Val making;      /* object whose __init__ runs */
    int host;        /* > 0: evaluating module-level Python, no IR may be built */
} Sema;

/* errors: report at loc, add the chain of inlined calls, return the error value */
Val sema_error(Sema *s, Loc loc, const char *fmt, ...) PRINTF_DIAG;
Val val_error(void);
/* The same, and nothing more is walked: for limits, which would be reported again. */
Val sema_stop(Sema *s, Loc loc, const char *text);
/* Enters one more level of runtime control flow; leave by s->nest--. */
bool sema_enter(Sema *s, Loc loc);
/* Counts work; false (and one error) when the budget is spent. */
bool sema_step(Sema *s, Loc loc, int64_t n);

/* making values */
Val val_none(void);
Val val_bool(Sema *s, bool b);
Val val_int(Sema *s, Wide i);
Val val_float(Sema *s, double f);
Val val_str(Sema *s, const char *text);
Val val_dtype(Sema *s, DType t);
Val val_tuple(Sema *s, const Val *items, int n); /* keeps the array */
Val val_tuple_like(Sema *s, Val like, const Val *items); /* of like's length and class */
Val val_tensor(Sema *s, Value *v, DType dt);     /* shape from v's type */
FeVal *val_new(Sema *s, FeKind kind);
FeVal *val_shaped(Sema *s, FeKind kind, DType dt, Shape sh); /* copies the shape */

/* shape.c: what dtypes and shapes there are */
const Type *sema_type(Sema *s, DType dt, Shape sh, Loc loc); /* NULL after an error */
/* "not supported yet" for a dtype without lowering */
bool sema_check_dtype(Sema *s, DType dt, Loc loc);
bool sema_check_shape(Sema *s, Shape sh, Loc loc); /* powers of two, numel, rank */

/* promote.c: dtype a constant takes as a tensor; DT_NONE when it fits none */
DType number_dtype(Val number);

/* cast.c */
Val to_tensor(Sema *s, Val v, Loc loc);
Val const_tensor(Sema *s, Val number, DType dt, Loc loc); /* scalar constant */
Val cast(Sema *s, Val x, DType to, Loc loc);
Val cast_rounded(Sema *s, Val x, DType to, const char *round, Loc loc);
Val bitcast(Sema *s, Val x, DType to, Loc loc);
Val cast_i1(Sema *s, Val x, Loc loc);

/* shape.c: changing shapes */
Val splat(Sema *s, Val scalar, Shape sh, Loc loc);
Val broadcast_to(Sema *s, Val x, Shape sh, Loc loc);
bool broadcast_pair(Sema *s, Val *x, Val *y, Loc loc); /* false after an error */
Val expand_dim(Sema *s, Val x, int axis, Loc loc);
Val reshape(Sema *s, Val x, Shape sh, bool reorder, Loc loc);
Val permute(Sema *s, Val x, const int64_t *perm, int n, Loc loc);
Val unsplat(Sema *s, Val x, Loc loc); /* one element -> scalar */
bool wrap_axis(Sema *s, int64_t axis, int rank, int *out, Loc loc);

/* arith.c: operators on values of which at least one is a tensor. */
typedef enum BinOp {
    BIN_ADD, BIN_SUB, BIN_MUL, BIN_DIV, BIN_FLOORDIV, BIN_MOD, BIN_POW, BIN_SHL, BIN_SHR,
    BIN_AND, BIN_OR, BIN_XOR, BIN_EQ, BIN_NE, BIN_LT, BIN_LE, BIN_GT, BIN_GE,
    BIN_MATMUL, BIN_COUNT
} BinOp;
extern const char *const binop_text[BIN_COUNT];
extern const char *const binop_method[BIN_COUNT][2]; /* of the left, of the right side */
Val tensor_binary(Sema *s, BinOp op, Val x, Val y, Loc loc);
Val tensor_minus(Sema *s, Val x, Loc loc);
Val tensor_invert(Sema *s, Val x, Loc loc);
Val tensor_not(Sema *s, Val x, Loc loc);
Val tensor_logical(Sema *s, bool is_and, Val x, Val y, Loc loc);
/* What operands may be that are brought to one type. */
typedef enum Unify {
    UNIFY_NUMBERS = 0,
    UNIFY_POINTER_LEFT = 1,
    UNIFY_POINTER_RIGHT = 2,
    UNIFY_DIVISION = 4 /* numbers of a division: of integers with the same sign */
} Unify;
/* Converts to one type and shape; false after an error. `may`: of Unify. */
bool unify_operands(Sema *s, Val *x, Val *y, const char *what, unsigned may, Loc loc);
bool unify_three(Sema *s, Val *v, const char *what, Loc loc);
Val build_elementwise(Sema *s, OpKind k, Val x, Val y, DType dt); /* y may be NULL */
Val tensor_where(Sema *s, Val c, Val x, Val y, Loc loc);
Val tensor_minmax(Sema *s, bool is_max, Val x, Val y, bool nan, Loc loc);

/* constant.c: compile-time arithmetic, as Python does it */
Val const_binary(Sema *s, BinOp op, Val x, Val y, Loc loc);
Val const_minus(Sema *s, Val x, Loc loc);
Val const_invert(Sema *s, Val x, Loc loc);
/* Either kind. */
Val binary(Sema *s, BinOp op, Val x, Val y, Loc loc);

/* attribute.c */
Val get_attribute(Sema *s, Val x, Name attr, Loc loc, bool quiet); /* NULL: none, quiet */
Val get_item(Sema *s, Val x, Val index, Loc loc);

/* expr.c */
Val eval(Sema *s, const Node *n);
/* Without reporting: what cannot be evaluated is simply not known. Module level only. */
Val eval_quiet(Sema *s, const Node *n);
/* A condition: *known is set with *truth when it is compile time, else an int1 scalar. */
Val eval_condition(Sema *s, const Node *n, bool *known, bool *truth);
Val runtime_ifexp(Sema *s, const Node *n, Val cond);

/* stmt.c: what follows a statement, for an early return under a runtime condition: the
   rest of the function is then walked inside the other arm. */
typedef struct Cont {
    const NodeList *list; /* statements from `at` on; NULL: further rounds of `loop` */
    int at;
    const Node *loop;     /* static_range loop */
    Wide i, stop, step;
    const struct Cont *next;
} Cont;
typedef enum Flow {
    FLOW_NEXT,
    FLOW_RETURNED,
    FLOW_BREAK,   /* these two in functions that run at compile time only */
    FLOW_CONTINUE
} Flow;
Flow exec_list(Sema *s, const NodeList *list, int at, const Cont *cont, Val *ret);
Flow exec_rest(Sema *s, const Cont *cont, Val *ret); /* always FLOW_RETURNED */
void assign_target(Sema *s, const Node *target, Val v, bool constexpr_);
Val sanitize(Sema *s, Val v, Loc loc); /* what `x = v` binds: constants become tensors */
/* `target = v`: names declared constexpr keep constants, others have them as tensors. */
void assign_value(Sema *s, const Node *target, Val v, Loc loc);

/* loop.c */
Flow exec_for(Sema *s, const Node *n, const Cont *cont, Val *ret);
Flow exec_static_rounds(Sema *s, const Node *loop, Wide i, Wide stop, Wide step,
                        const Cont *cont, Val *ret);
Flow exec_while(Sema *s, const Node *n, Val *ret);

/* merge.c: values that cross the edge of a region */
typedef struct Flat {
    Value **at;
    int n, cap;
} Flat;
void flatten(Sema *s, Val v, Flat *out);
Val unflatten(Sema *s, Val like, Value *const *at, int *next);
/* An `if` whose arms are built before its result types are known. */
typedef struct Branch {
    Op *op;
    Builder outside;
    Flat arm[2];
} Branch;
Branch branch_begin(Sema *s, Val cond);
void branch_arm(Sema *s, Branch *br, int arm); /* building goes on inside that arm */
void branch_end(Sema *s, Branch *br);  /* yields, results; building goes on after */
/* Two values of one type as results of the branch; `*at` counts results. */
Val branch_result(Sema *s, Branch *br, Val like, int *at);

/* module level: names of a file */
Val module_lookup(Sema *s, FrontModule *m, Name name, Loc loc, bool any); /* NULL: none */
/* A module that needs no file, by its dotted path; NULL: not one. */
Val module_known(Sema *s, const char *path);
Val module_attribute(Sema *s, Val module, Name attr, Loc loc, bool quiet);

/* call.c */
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

/* Builtin functions of the language: finding them, binding and reading their arguments.
   builtins.def has a line for each, also for those that are written in the language
   itself (kernels_dsl/lib), so that a name is looked up in one place. */
#ifndef SDC_FRONTEND_BUILTIN_H
#define SDC_FRONTEND_BUILTIN_H

#include "frontend/sema.h"

enum {
    IN_TL = 1,      /* triton.language.X */
    IN_MATH = 2,    /* triton.language.math.X */
    IN_LIB = 4,     /* libdevice.X */
    IN_TRITON = 8,  /* triton.X */
    IN_PY = 16,     /* Python builtin, found without a prefix */
    IN_METHOD = 32, /* method of tensors and block pointers */
    IN_DESC = 64,   /* method of descriptors */
    IN_CORE = 128,  /* visible to the prelude only */
    IN_CUDA = 256,  /* triton.language.extra.cuda.X */
    IN_TARGET = 512, /* triton.language.target_info.X */
    MUST_USE = 1024, /* an unused result is an error */
    AT_COMPILE = 2048, /* builds no IR from constants: usable at module level */
};

enum { MAX_ARGS = 16 };

/* The arguments of a call, bound to the builtin's parameters: index i is parameter i. */
typedef struct Args {
    const Builtin *b;
    Loc loc;             /* of the call */
    Val v[MAX_ARGS];      /* a '*rest' parameter gets a tuple */
    Loc at[MAX_ARGS];     /* places of the values */
    bool given[MAX_ARGS]; /* false: the value is the default */
} Args;

/* Builds the IR of a call, or computes its constant result. */
typedef Val BuiltinFn(Sema *s, Args *a);

struct Builtin {
    const char *name;
    unsigned where;     /* IN_* */
    BuiltinFn *fn;      /* NULL: not in C */
    const char *params; /* "x, axis=None, *rest, keep_dims=False" */
    /* prelude file of a function without fn; NULL: not supported yet */
    const char *file;
    const char *doc;
};

#define BUILTIN(id, name, where, params, doc) Val bi_##id(Sema *s, Args *a);
#define PRELUDE(name, where, file, doc)
#define MISSING(name, where)
#include "frontend/builtins.def"
Val bi_libdevice(Sema *s, Args *a);

/* The builtin of this name in one of the namespaces `where`, a set of IN_*; NULL: there
   is none. */
const Builtin *builtin_find(Sema *s, Name name, unsigned where);
/* The builtin as a value. */
Val val_builtin(Sema *s, const Builtin *b);
/* Binds the arguments and calls; self: the value of which it is a method, or NULL. */
Val builtin_call(Sema *s, const Builtin *b, Val self, const CallArg *args, int n,
                 Loc loc);
/* A builtin whose name is spelled nearly so, for "did you mean"; NULL: there is none. */
const char *builtin_near(const char *name, unsigned where);

/* Read argument i; false after an error, which names the parameter. */
bool arg_bool(Sema *s, Args *a, int i, bool *out);
bool arg_int(Sema *s, Args *a, int i, int64_t *out);
bool arg_str(Sema *s, Args *a, int i, const char **out);
bool arg_dtype(Sema *s, Args *a, int i, DType *out);
bool arg_shape(Sema *s, Args *a, int i, Shape *out);  /* tuple, or an int for rank 1 */
bool arg_ints(Sema *s, Args *a, int i, int64_t *out, int *n); /* up to MAX_RANK */
bool arg_tensor(Sema *s, Args *a, int i);             /* made a tensor if a number */
bool arg_none(const Args *a, int i);
const char *arg_name(Sema *s, const Args *a, int i);

#endif

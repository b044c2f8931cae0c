/* Functions of the language that are written in C: binding of their arguments, and
   helpers to read them. Every one is a line of builtins.def; those written in the
   language itself (kernels_dsl/lib) are lines there too, so that a name is looked up
   in one place. */
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
    IN_CORE = 128,  /* the prelude alone */
    IN_CUDA = 256,  /* triton.language.extra.cuda.X */
    IN_TARGET = 512, /* triton.language.target_info.X */
    MUST_USE = 1024, /* an unused result is an error */
    AT_COMPILE = 2048, /* builds no IR from constants: usable at module level */
};

enum { MAX_ARGS = 16 };

typedef struct Args {
    const Builtin *b;
    Loc loc;             /* of the call */
    Val v[MAX_ARGS];     /* bound values; a '*rest' parameter is a tuple */
    Loc at[MAX_ARGS];
    bool given[MAX_ARGS];
} Args;

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

/* NULL when there is none. */
const Builtin *builtin_find(Sema *s, Name name, unsigned where);
Val val_builtin(Sema *s, const Builtin *b);
Val builtin_call(Sema *s, const Builtin *b, Val self, const CallArg *args, int n,
                 Loc loc);
/* A known function or a near miss for "did you mean"; NULL when nothing is near. */
const char *builtin_near(const char *name, unsigned where);

/* Reading bound arguments; false after an error, which names the parameter. */
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

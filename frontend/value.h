/* Values of the language while a kernel is walked: compile-time constants (constexpr) and
   runtime tensors, which carry an IR value. Immutable once made; they live in the
   session's `tmp` arena, which outlives one lowering. */
#ifndef SDC_FRONTEND_VALUE_H
#define SDC_FRONTEND_VALUE_H

#include "frontend/dtype.h"
#include "ir/ir.h"

typedef struct FeVal FeVal;
typedef const FeVal *Val;

typedef enum FeKind {
    FE_ERROR, /* an error was reported: operations on it report none */
    FE_NONE,
    FE_BOOL,
    FE_INT, /* up to 128 bits, so that 64-bit constants never wrap */
    FE_FLOAT,
    FE_STR,
    FE_DTYPE,
    FE_TUPLE, /* tuple or list; with self, an object of that class of a module */
    FE_SLICE,
    FE_MEMBER,  /* of an enumeration of the host; n == 0: inside a constexpr */
    FE_FUNC,    /* function of a module; with self, bound to that object or class */
    FE_BUILTIN, /* entry of builtins.def */
    FE_METHOD,  /* builtin or prelude function bound to a value */
    FE_MODULE,  /* triton, triton.language, ... or another file (NS_FILE) */
    FE_TYPE,    /* type of a block, or a class such as tl.tensor for isinstance */
    FE_RANGE,   /* tl.range(...), range(...), tl.static_range(...) */
    FE_TENSOR,  /* runtime scalar (rank 0) or tile */
    FE_BLOCK_PTR,
    FE_DESC
} FeKind;

typedef struct Builtin Builtin;

struct FeVal {
    FeKind kind;
    DType dt;  /* DTYPE; element of TENSOR, BLOCK_PTR, DESC, block TYPE */
    int rank;  /* TENSOR, BLOCK_PTR, DESC, block TYPE */
    bool is_dict; /* TUPLE: a dict of the host, as pairs */
    int n;     /* TUPLE: elements; MODULE: NS_*; TYPE: CLASS_*; RANGE: see ItemRange */
    const int64_t *shape; /* of `rank`: that of the IR type, or made by val_shaped */
    Value *v;  /* TENSOR, BLOCK_PTR, DESC */
    union {
        Wide i; /* INT, BOOL */
        double f;
        const char *s;       /* STR */
        const Val *items;    /* TUPLE; SLICE and RANGE: start, stop, step;
                                DESC: shape.. then strides.. */
        const void *func;    /* FUNC: its FUNCTION node */
        const struct PyVal *member; /* MEMBER */
        const Builtin *builtin;
        const struct PyClass *class_; /* TYPE of CLASS_USER */
        const char *path;    /* MODULE: dotted name, for messages */
    } u;
    struct FrontModule *home; /* FUNC: where it was written; MODULE of a file */
    Val self;                /* METHOD, FUNC: what it is bound to; TUPLE: its class;
                                INT, STR: the MEMBER whose value it is; else NULL */
};

/* Classes, for isinstance; CLASS_STR is tl.PropagateNan. */
enum {
    CLASS_BLOCK,
    CLASS_TENSOR,
    CLASS_DTYPE,
    CLASS_STR,
    CLASS_DESC,
    CLASS_CONST,
    CLASS_TYPE_DESC,  /* x.type of a descriptor */
    CLASS_USER,       /* a class of a module: u.class_, home */
    CLASS_TYPE_CONST, /* x.type of a compile-time value, which is u.items[0] */
    CLASS_TYPE_TUPLE, /* x.type of a tuple: `rank` types in u.items */
};

/* Modules that the compiler knows without reading a file. */
enum { NS_FILE, NS_TRITON, NS_TL, NS_TL_MATH, NS_LIBDEVICE, NS_EXTRA, NS_CUDA, NS_TARGET,
       NS_PYMATH, NS_TORCH, NS_OS, NS_ENVIRON, NS_FINFO, NS_UNKNOWN };

/* Shape of a value; rank 0 is a scalar. */
typedef struct Shape {
    int rank;
    int64_t dim[MAX_RANK];
} Shape;

bool val_is_error(Val v);
bool val_is_const(Val v);   /* known at compile time: anything that carries no IR value */
bool val_is_number(Val v);  /* compile-time bool, int or float */
bool val_is_tensor(Val v);
bool val_is_int(Val v);     /* compile-time int or bool */
double val_double(Val v);   /* of a compile-time number */
bool val_truth(Val v);      /* of a compile-time value, as Python's bool() */
Shape val_shape(Val v);
int64_t shape_numel(Shape s);
bool shape_eq(Shape a, Shape b);
/* Same dtype and shape (tensors), same structure (tuples); constants by value. */
bool val_same_type(Val a, Val b);
bool val_equal(Val a, Val b); /* compile-time equality, Python's == */

/* For messages: "fp32[128, 64]", "int32", "constexpr 5", "None". */
const char *val_describe(Arena *a, Val v);
const char *shape_str(Arena *a, Shape s);
const char *type_describe(Arena *a, DType t, Shape s);
/* As Python's str(): for f-strings, static_print, assertion messages. */
void val_print(Buf *b, Val v);

#endif

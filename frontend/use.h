/* Evidence on the types of a kernel's parameters, for guessing signatures: what the
   kernel and the helpers that it calls do with them. */
#ifndef SDC_FRONTEND_USE_H
#define SDC_FRONTEND_USE_H

#include "frontend/frontend.h"
#include "frontend/sema.h"

/* What an expression is, or what the place where it stands wants it to be; a set. */
enum {
    USE_PTR = 1,       /* an address, or a tile of them */
    USE_INT = 2,
    USE_FLOAT = 4,
    USE_BOOL = 8,
    USE_DESC = 16,     /* a tensor descriptor */
    USE_SIZE = 32,     /* size of a tile: a constant power of two */
    USE_DTYPE = 64,
    USE_FUNC = 128,
    USE_ROUNDS = 256,  /* number of iterations of an unrolled loop */
    USE_AXIS = 512,    /* of a tile or of the grid */
    USE_STAGES = 1024, /* of a pipelined loop */
    USE_TUPLE = 2048,
    USE_ADDRESS = 4096, /* an integer that is cast to a pointer */
    USE_TEXT = 8192,    /* a string, such as a cache modifier */
    USE_CONST = 16384,  /* a constant of any kind */
    USE_BYTE = 32768,   /* its bits are used as a value of 8 bits */
    USE_HALF = 65536,   /* of 16 bits */
};

enum { MAX_EXTENTS = 5 };

/* What is known of a name: a parameter of the kernel or of a helper, or a local name. */
typedef struct Evidence {
    unsigned is;          /* USE_*, from the expressions that are bound to it */
    unsigned want;        /* USE_*, from the places where it is used */
    struct Evidence *to;  /* of what it points to; NULL: nothing is known */
    const char *text;     /* a string that it is compared with; NULL: none */
    bool typed;           /* an expression says that its type is `type` */
    bool typing;          /* that is being passed on: guards against cycles */
    DType type;
    bool has_number;      /* it is compared with the integer `number` */
    int64_t number;
    bool must;            /* an assertion says that it equals `number`, or `flag` */
    bool flag;
    int rank;             /* USE_DESC: number of its offsets */
    struct Evidence *extent[MAX_EXTENTS]; /* USE_DESC: parameters that its offsets are
                                             multiples of */
    const Node *step;     /* if it is a loop's variable: the loop's step */
    struct Inst *step_at; /* the function that step belongs to */
    int64_t share;        /* if it is a dimension of a tile: the product of the others;
                             0: not known */
    int items;            /* USE_TUPLE: how many elements are used */
    bool none;            /* it is compared with None */
    int nargs;            /* USE_FUNC: number of arguments of its calls */
    bool constexpr_;      /* declared so */
    bool param;           /* a parameter of the kernel */
    bool ends;            /* USE_FUNC: the results of its calls are used */
    struct EvidenceDef *defs; /* expressions that are bound to it */
} Evidence;

/* Collects the evidence on each parameter of kernel fn, in the arena of the Sema. spec:
   what is known of them already. called: the FUNCTION nodes of helpers that the kernel
   reaches are added; may be NULL. */
Evidence **use_collect(Sema *s, const Node *fn, FrontModule *home, const FrontSpec *spec,
                  Map *called);

#endif

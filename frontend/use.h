/* What a kernel does with its parameters: evidence from its text and from the helpers
   that it calls, collected without types. */
#ifndef SDC_FRONTEND_USE_H
#define SDC_FRONTEND_USE_H

#include "frontend/frontend.h"
#include "frontend/sema.h"

/* What an expression is, or what its place wants of it. */
enum {
    USE_PTR = 1,       /* an address, or a tile of them */
    USE_INT = 2,
    USE_FLOAT = 4,
    USE_BOOL = 8,
    USE_DESC = 16,     /* a tensor descriptor */
    USE_SIZE = 32,     /* of a tile: a constant power of two */
    USE_DTYPE = 64,
    USE_FUNC = 128,
    USE_ROUNDS = 256,  /* of an unrolled loop */
    USE_AXIS = 512,
    USE_STAGES = 1024,
    USE_TUPLE = 2048,
    USE_ADDRESS = 4096, /* an integer that becomes a pointer */
    USE_TEXT = 8192,    /* a word such as a cache modifier */
    USE_CONST = 16384,  /* a constant of which nothing else is known */
    USE_BYTE = 32768,   /* its bits are taken for a value of 8 bits */
    USE_HALF = 65536,
};

enum { MAX_EXTENTS = 5 };

/* A name of a function: a parameter of the kernel, of a helper, or a local one. */
typedef struct Evidence {
    unsigned is;   /* by what is bound to it */
    unsigned want; /* by where it stands */
    struct Evidence *to; /* what is behind the pointer; NULL: nothing is known */
    const char *text; /* string that it is compared with */
    bool typed, typing; /* the text says what type it has; it is being handed on */
    DType type;
    bool has_number;  /* integer that it is compared with */
    int64_t number;
    bool must;      /* it is that number, or flag: an assertion says so */
    bool flag;
    int rank;  /* USE_DESC: its offsets */
    struct Evidence *extent[MAX_EXTENTS]; /* USE_DESC: parameters that its offsets are
                                             multiples of */
    const Node *step; /* of the loop whose name this is */
    struct Inst *step_at;
    int64_t share; /* it is one dimension of a tile, this many elements the others; 0 */
    int items; /* USE_TUPLE: elements that are asked for */
    bool none; /* asked whether it is None */
    int nargs; /* USE_FUNC */
    bool constexpr_, param; /* a parameter of the kernel */
    bool ends; /* USE_FUNC: its value is used */
    struct EvidenceDef *defs;
} Evidence;

/* Evidence on each parameter of the kernel, in the arena of the Sema. `spec`: what is
   known of them already. `called`: helpers that it reached are added to it, as nodes. */
Evidence **use_collect(Sema *s, const Node *fn, FrontModule *home, const FrontSpec *spec,
                  Map *called);

#endif

/* The walk that collects evidence (use.c): what its parts lend one another. */
#ifndef SDC_FRONTEND_USE_WALK_H
#define SDC_FRONTEND_USE_WALK_H

#include "frontend/builtin.h"
#include "frontend/module.h"
#include "frontend/use.h"
#include "ir/base/map.h"

enum { IS_SURE, FIRST_TERM, WHOLE_NUMBERS, FLOAT_ELEMENTS, PHASES };
enum { NUMBERS = USE_INT | USE_FLOAT | USE_BOOL | USE_SIZE | USE_ROUNDS };

/* A function that is walked, at the place of one call. */
typedef struct Inst {
    struct Inst *caller;
    const Node *fn;
    FrontModule *home;
    Map names;  /* -> Evidence */
    Map calls;  /* call node -> Inst */
    Evidence *ret;
} Inst;

typedef struct EvidenceDef {
    const Node *e; /* NULL: known by `is` alone */
    Inst *at;
    struct EvidenceDef *next;
} EvidenceDef;

typedef struct Seen {
    unsigned is;
    Evidence *to;
    const Node *tuple; /* with its place, so that targets are matched with elements */
    Inst *at;
} Seen;

typedef struct Walk {
    Sema *s;
    Map *called;
    int steps, depth, phase, calls;
    bool changed;
} Walk;

/* Counts work; false when the budget is spent. */
bool use_step(Walk *w);
Evidence *use_new(Walk *w);
/* NULL: no name of the function, as far as it was walked. */
Evidence *use_name(Walk *w, Inst *at, Name name, bool make);
/* A place wants this of a name, and so of all that is bound to it. */
void use_want(Walk *w, Evidence *u, unsigned k);
/* A definition: what it is goes to the name, what was wanted of the name to it. */
void use_define(Walk *w, Evidence *u, const Node *e, Inst *at, Seen v);
Seen use_seen(const Evidence *u);
Seen use_join(Seen a, Seen b);
/* What a name of the module is, or a member of one; NULL: none. */
Val use_global(Walk *w, const Node *n, Inst *at);
/* The element that an expression names, tl.int32, as USE_*; 0: it is not known. */
unsigned use_dtype(Walk *w, const Node *n, Inst *at);

/* Is the result of this function what its i-th argument is? */
bool use_through(const char *name, int i);

/* What an expression is. */
Seen use_see(Walk *w, const Node *n, Inst *at);
/* What is wanted of an expression. */
void use_need(Walk *w, const Node *n, Inst *at, unsigned k);
/* `n` is asserted to hold, or not to. */
void use_assert(Walk *w, const Node *n, Inst *at, bool holds);
/* `n` is loaded from elements of this type. */
void use_type(Walk *w, const Node *n, Inst *at, DType dt);
/* A comparison that is asserted to hold: p.dtype.element_ty == tl.uint8, x.dtype == .. */
void use_same_type(Walk *w, const Node *compare, Inst *at);
/* A call of dot_scaled: formats say what its operands are. */
void use_formats(Walk *w, const Node *call, Inst *at);
/* A descriptor is asked for the block at these offsets. */
void use_extents(Walk *w, Evidence *desc, const Node *offsets, Inst *at);
Seen use_call(Walk *w, const Node *n, Inst *at);
void use_walk(Walk *w, const NodeList *l, Inst *at);

#endif

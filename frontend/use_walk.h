/* What the parts of the walk that collects evidence share (use*.c; see use.h). */
#ifndef SDC_FRONTEND_USE_WALK_H
#define SDC_FRONTEND_USE_WALK_H

#include "frontend/builtin.h"
#include "frontend/module.h"
#include "frontend/use.h"
#include "ir/base/map.h"

/* The walk is repeated until it finds nothing new, then with the next guess allowed: of
   the terms of an address sum the first is the pointer; names bound to whole numbers are
   integers; elements of unknown type are floats. */
enum { IS_SURE, FIRST_TERM, WHOLE_NUMBERS, FLOAT_ELEMENTS, PHASES };
enum { NUMBERS = USE_INT | USE_FLOAT | USE_BOOL | USE_SIZE | USE_ROUNDS };

/* One call of a function: helpers are walked anew for each call. */
typedef struct Inst {
    struct Inst *caller;
    const Node *fn;
    FrontModule *home; /* the file of fn */
    Map names;         /* Name -> Evidence */
    Map calls;         /* CALL node -> Inst */
    Evidence *ret;     /* on the result */
} Inst;

/* An expression that is bound to a name. */
typedef struct EvidenceDef {
    const Node *e; /* NULL: only what it is is known */
    Inst *at;
    struct EvidenceDef *next;
} EvidenceDef;

/* What an expression is. */
typedef struct Seen {
    unsigned is;       /* USE_* */
    Evidence *to;      /* of what it points to */
    const Node *tuple; /* a TUPLE node, whose elements are bound one by one; or NULL */
    Inst *at;          /* the function that tuple belongs to */
} Seen;

typedef struct Walk {
    Sema *s;
    Map *called; /* as of use_collect */
    int steps, depth, calls;
    int phase;    /* which guesses are allowed, see above */
    bool changed; /* this walk has found something new */
} Walk;

/* Counts work; false when the budget is spent. */
bool use_step(Walk *w);
/* Empty evidence. */
Evidence *use_new(Walk *w);
/* The evidence on a name of the function; make: creates it if there is none, else
   NULL. */
Evidence *use_name(Walk *w, Inst *at, Name name, bool make);
/* Notes that a place wants k of a name, and so of all expressions bound to it. */
void use_want(Walk *w, Evidence *u, unsigned k);
/* Binds expression e, which is v, to a name: the name is what v is, and what is wanted of
   the name is wanted of e. */
void use_define(Walk *w, Evidence *u, const Node *e, Inst *at, Seen v);
/* What a name is. */
Seen use_seen(const Evidence *u);
/* What an expression is that is a or b. */
Seen use_join(Seen a, Seen b);
/* The value of a name of the module, or of a member of one; NULL: there is none. */
Val use_global(Walk *w, const Node *n, Inst *at);
/* What values of the dtype that an expression names are, USE_*; 0: it names none. */
unsigned use_dtype(Walk *w, const Node *n, Inst *at);

/* Has the result of this builtin the type of its i-th argument? */
bool use_through(const char *name, int i);

/* Forward: what an expression is. */
Seen use_see(Walk *w, const Node *n, Inst *at);
/* Backward: the place of the expression wants k of it. */
void use_need(Walk *w, const Node *n, Inst *at, unsigned k);
/* The program asserts that n is true, or false. */
void use_assert(Walk *w, const Node *n, Inst *at, bool holds);
/* An asserted comparison of types: p.dtype.element_ty == tl.uint8, x.dtype == y.dtype. */
void use_same_type(Walk *w, const Node *compare, Inst *at);
/* A call of dot_scaled, whose format strings say what its operands are. */
void use_formats(Walk *w, const Node *call, Inst *at);
/* A load or store of a descriptor at these offsets. */
void use_extents(Walk *w, Evidence *desc, const Node *offsets, Inst *at);
/* What a call is. */
Seen use_call(Walk *w, const Node *n, Inst *at);
/* Walks statements. */
void use_walk(Walk *w, const NodeList *l, Inst *at);

#endif

/* What the files of the layout pass share (layout*.c). The order of work, each step in
   the file of that name:

       more_warps  dots whose accumulators do not fit into few warps' registers
       widen       operands of 8 bits that no unit multiplies become halves
       dot         layouts of dots
       swap_ab     dots that a warpgroup can compute only transposed
       anchor      what wants a layout, the surest first: addresses, dots, data, the rest
       flow        after each of them, from there along the data: results, loops, reduce
       fix         what nothing reached follows its users; where an operand still has
                   another layout than its user needs, a convert_layout is put in between
       remat       conversions of what is cheap to compute become a second computation */
#ifndef SDC_PASSES_LAYOUT_LAYOUT_H
#define SDC_PASSES_LAYOUT_LAYOUT_H

#include "ir/analysis/axis.h"
#include "ir/base/map.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "passes/pass.h"

/* Accesses of one shape that run along one dimension share a layout, but for what meets
   no other data: operands of matmuls and stores of one number. */
enum { FOR_DATA, FOR_MATMUL, FOR_FILL, CHOICES };
typedef struct Choice {
    const Type *shape; /* a tile of that shape, without layout */
    int dim;           /* along which one access takes several elements; -1: none does */
    int vec;           /* most elements of one access */
    int data;          /* the same of accesses for no matmul; 0: there is none */
    int loops;         /* around the innermost access */
    int stored;        /* most that one store takes there; 0: nothing is stored */
    int filled;        /* the same of stores of one number */
    const Layout *layout[CHOICES];
} Choice;

/* Layouts of a dot; NULL: the operand may have any. */
typedef struct DotPlan {
    const char *unit;
    const Layout *acc, *a, *b;
} DotPlan;

typedef struct Layouts {
    Session *s;
    Func *f;
    const TargetInfo *target;
    Axis *axis;
    Vec(Choice) choices;
    Vec(Value *) work;  /* values whose layout has yet to flow on */
    Vec(Value *) later; /* into loops that do not multiply, behind what those load */
    bool dots_only;     /* layouts of dots flow, and of nothing else */
    Vec(Op *) converts;
    Map dots;  /* Op -> DotPlan */
    Vec(int64_t) paired; /* elements of what is joined or split in pairs */
    Map operands;          /* of dots, each once */
    Map fetched;           /* loads that operands of dots are computed from */
    int64_t operand_bytes; /* of shared memory, if all of them lie there */
} Layouts;

/* ---- layout_anchor.c */
bool layout_is_access(const Op *op); /* of global memory, of a tile or a scalar */
void layout_see_fetched(Layouts *p, Op *op);    /* first: loads behind dots */
void layout_see(Layouts *p, Op *op);            /* then: collects what accesses want */
void layout_anchor_address(Layouts *p, Op *op); /* pointers */
void layout_anchor_data(Layouts *p, Op *op);    /* what is loaded */
/* Small vectors, which those two leave: as their addresses lie, and those that nobody has
   said anything of. */
void layout_follow_address(Layouts *p, Op *op);
void layout_anchor_rest(Layouts *p, Op *op);
/* For a value of this shape that nothing is known of. */
const Layout *layout_default(Layouts *p, const Type *t);

/* The dimension along which memory runs that an access reads or writes, -1 when that is
   not known; *vec: the elements of one access. Attributes say so, which layout_see
   leaves. */
int layout_access_dim(const Op *op, int *vec);

/* ---- layout_dot.c */
void layout_see_dot(Layouts *p, Op *op); /* first: collects operands */
/* What they take at once in the region if all of them lie in shared memory. */
int64_t layout_operand_bytes(const Layouts *p, const Region *r, int depth);
void layout_anchor_dot(Layouts *p, Op *op); /* dots and accumulators */
/* Does the target multiply operands of these types, if their sizes suit it? */
bool layout_has_unit(const Layouts *p, const Op *dot);
/* The loop that carries the sum of this dot and does nothing else with it; NULL. */
Op *layout_summing_loop(const Op *dot);
/* Is a dot of bytes better computed as its transpose? */
bool layout_transposes_bytes(const Op *dot);
/* Fewer rows than wgmma has, of fp8: are they its columns, with the right operand on the
   left? */
bool layout_turns_few_rows(const Layouts *p, const Op *op);
/* Does v come, through elementwise work, from a dot? */
bool layout_from_dot(const Value *v);
/* The dimension along which memory runs that the loaded tile comes from which v is made
   of element by element; -1 when that is not known. */
int layout_operand_dim(const Value *v);

/* ---- layout_more_warps.c */
enum { MANY_REGISTERS = 256 }; /* of a thread: accumulators do not fit */
/* Gives f more warps where its dots' accumulators need them. First of all. */
void layout_more_warps(Func *f);

/* ---- layout_widen.c */
void layout_widen(Layouts *p, Op *op);

/* ---- layout_swap_ab.c */
void layout_swap_ab(Layouts *p, Op *op);

/* ---- layout_flow.c */
/* Gives a tile that has none its layout. */
void layout_give(Layouts *p, Value *v, const Layout *l);
/* Along the data from every value that was given one. With `data` false only around
   loops: for addresses, which say nothing about what is loaded from them. */
void layout_flow(Layouts *p, bool data);
void layout_flow_later(Layouts *p); /* into loops that waited */
/* The layout that the operand of a moving op must have so that the op is a renaming of
   registers when its result has layout `to`; NULL: the op says nothing. */
const Layout *layout_operand(Session *s, const Op *op, const Layout *to);

/* ---- layout_fix.c */
bool layout_backward(Layouts *p, Region *r, int depth);
void layout_fix(Layouts *p, Op *op);

/* ---- layout_remat.c */
void layout_remat(Layouts *p);

#endif

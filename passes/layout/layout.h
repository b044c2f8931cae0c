/* What the files of the layout pass (layout*.c) share. The steps in their order; each is
   in the file of that name:

       choose      tries all that follows on copies of the function: which layouts of
                   accesses cost the least (cost)
       more_warps  raises num_warps where accumulators do not fit into the registers
       widen       8-bit float operands that no matrix unit multiplies become fp16
       swap_ab     transposes dots that wgmma can compute only transposed, or better
       anchor      gives layouts to addresses, then dots, then loaded data, then the rest
       dot         chooses the layouts of a dot's accumulator and operands
       flow        after each group of anchors: carries their layouts along the data, to
                   results of elementwise work, through loops and reductions
       fix         gives what nothing reached the layout of its users, then inserts a
                   convert_layout where an operand's layout is not the one its user needs
       remat       replaces conversions of values that are cheap to compute by a second
                   computation in the layout wanted

   Every tile ends up with exactly one layout, and the first one given stays. */
#ifndef SDC_PASSES_LAYOUT_LAYOUT_H
#define SDC_PASSES_LAYOUT_LAYOUT_H

#include "ir/analysis/axis.h"
#include "ir/base/map.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "passes/pass.h"

/* Accesses of one tile shape that are contiguous along one dimension share a layout, so
   that their data can be combined without a conversion. Two purposes have a layout of
   their own, since their data meets no other: loads of dot operands, and stores of a
   constant. */
enum { FOR_DATA, FOR_MATMUL, FOR_FILL, CHOICES };
typedef struct Choice {
    const Type *shape; /* a tile of that shape, without layout */
    int dim;           /* along which memory is contiguous; -1: no dimension is known */
    int vec;           /* elements that the widest access takes at once */
    int data;          /* the same of FOR_DATA accesses; 0: there is none */
    int loops;         /* number of loops around the innermost access */
    int stored;        /* elements that the narrowest store or atomic of data in the
                          innermost loop takes at once; 0: there is none */
    int filled;        /* the same of FOR_FILL stores */
    const Layout *layout[CHOICES];
} Choice;

/* A layout for the accesses of a choice, instead of the one of layout_anchor.c. */
typedef struct Way {
    const Type *shape;
    int dim;
    const Layout *layout;
} Way;
typedef Vec(Way) Ways;

/* How a dot is computed. A layout is NULL where the operand may have any. */
typedef struct DotPlan {
    const char *unit; /* wgmma, mma, mma_loop, fma or fma_loop: ATTR_UNIT */
    const Layout *acc, *a, *b;
} DotPlan;

typedef struct Layouts {
    Session *s;
    Func *f;
    const TargetInfo *target;
    Axis *axis;
    Vec(Choice) choices;
    Ways ways;
    Vec(Value *) work;  /* values whose layout has yet to flow on */
    Vec(Value *) later; /* the same, into loops without dots: see layout_flow_later */
    bool dots_only;     /* the layouts that flow now are those of dots */
    Vec(Op *) converts; /* the convert_layouts that layout_fix inserted */
    Map dots;           /* Op -> DotPlan */
    Vec(int64_t) paired;   /* element counts of tiles that are joined or split */
    Map operands;          /* of dots, before a transpose: Value -> itself */
    Map fetched;           /* loads that dot operands are computed from, and that work */
    Map indices;           /* operations whose results can be made in any layout */
    int64_t operand_bytes; /* of all dot operands, if they lie in shared memory */
} Layouts;

/* ---- layout_anchor.c. Functions of (p, op) are called for every op of the function. */

/* Is op a load, store or atomic of global memory, of a tile or of a scalar? */
bool layout_is_access(const Op *op);
/* If op is a dot: notes in p->fetched the loads that its operands are computed from.
   Before layout_collect_access. */
void layout_collect_fetched(Layouts *p, Op *op);
/* If op is an access of a tile: finds its vector width and contiguous dimension, leaves
   them in ATTR_CONTIG and ATTR_ALONG, and adds them to p->choices. */
void layout_collect_access(Layouts *p, Op *op);
/* If op is an access: gives its pointers the layout of its choice. Short vectors are left
   to the last two functions. */
void layout_anchor_address(Layouts *p, Op *op);
/* The same for the data that it loads. */
void layout_anchor_data(Layouts *p, Op *op);
/* If op loads a short vector: its data takes the layout of its addresses. */
void layout_follow_address(Layouts *p, Op *op);
/* The same, after giving the addresses a layout if they have none. */
void layout_anchor_rest(Layouts *p, Op *op);
/* The layout for a tile of type t that no anchor reached; NULL: t is no tile or has
   one. */
const Layout *layout_default(Layouts *p, const Type *t);
/* The dimension along which the memory of an access is contiguous, -1 when that is not
   known; in *vec, the elements that one access takes. Read from the attributes that
   layout_collect_access leaves. */
int layout_access_dim(const Op *op, int *vec);

enum { STEP_UNKNOWN = -1 };
/* The distances in memory, in elements, between neighbours along each dimension of an
   access, or STEP_UNKNOWN. */
void layout_steps(const Op *op, int64_t *step);

/* ---- layout.c */

/* All steps: gives layouts to the tiles of p->f. */
void layout_place(Layouts *p);

/* ---- layout_choose.c */

/* Layouts for choices of f that make it cheaper as a whole; f stays as it is. */
Ways layout_choose(Func *f, PassCx *cx);
/* The layout that p->ways has for a choice; NULL: none. */
const Layout *layout_chosen(const Layouts *p, const Choice *c);

/* ---- layout_cost.c */
typedef struct LayoutCost {
    int64_t slots;
    int64_t exchanges; /* of them: between threads, and for lanes apart in memory */
    int64_t bytes;     /* of global memory */
} LayoutCost;
/* What region r of a function with layouts costs a warp. */
LayoutCost layout_cost(Layouts *p, const Region *r);
int64_t layout_time(const LayoutCost *c);
/* Of a scan whose operands and results have layout l. */
int64_t layout_scan_cost(Layouts *p, const Op *op, const Layout *l);
/* Of a tile of type t that goes from one layout to another through shared memory. */
int64_t layout_exchange_cost(const Type *t, const Layout *from, const Layout *to);

/* ---- layout_dot.c */

/* If op is a dot: notes its operands in p->operands. Before layout_operand_bytes. */
void layout_collect_operands(Layouts *p, Op *op);
/* Bytes of shared memory that the dot operands of region r take at one time if all of
   them lie there, with the buffers of pipelined loads. */
int64_t layout_operand_bytes(const Layouts *p, const Region *r, int depth);
/* If op is a dot: plans it, and gives its accumulator and result their layout. */
void layout_anchor_dot(Layouts *p, Op *op);
/* Has the target a matrix instruction for the dot's types, whatever its sizes? */
bool layout_has_unit(const Layouts *p, const Op *dot);
/* The loop that carries the dot's accumulator and uses it for nothing else; NULL:
   none. */
Op *layout_accumulating_loop(const Op *dot);
/* Is this dot of 8-bit operands better computed as its transpose? */
bool layout_transposes_bytes(const Op *dot);
/* Has this fp8 dot too few rows for wgmma, and can it be computed as its transpose, where
   rows become columns? */
bool layout_transposes_few_rows(const Layouts *p, const Op *op);
/* Is v computed from the result of a dot by elementwise work alone? */
bool layout_from_dot(const Value *v);
/* v is a loaded tile after elementwise work and transposes: the dimension of v along
   which its memory is contiguous. -1: v is something else, or that is not known. */
int layout_operand_dim(const Value *v);

/* ---- layout_more_warps.c */
enum { MANY_REGISTERS = 256 }; /* a thread has 255: such accumulators do not fit */
/* Raises f->num_warps where the accumulators of its dots need it. First of all steps. */
void layout_more_warps(Func *f);

/* ---- layout_widen.c */
/* If op is a dot of 8-bit floats without a matrix unit: converts its operands to fp16. */
void layout_widen(Layouts *p, Op *op);

/* ---- layout_swap_ab.c */
/* If op is a dot that wgmma computes only transposed, or better: transposes it. */
void layout_swap_ab(Layouts *p, Op *op);

/* ---- layout_flow.c */
/* Gives v layout l and queues it to flow on. Nothing happens if v is no tile or has a
   layout already, or if l is NULL. */
void layout_give(Layouts *p, Value *v, const Layout *l);
/* Carries the layouts of all queued values on, until the queue is empty. With `data`
   false they go to the values that a loop or an if carries, but not to results of
   operations: for addresses, whose layout says nothing about other data. */
void layout_flow(Layouts *p, bool data);
/* Layouts of dots did not flow into loops without dots, so that those loops go by what
   they load. Called when all anchors are placed: they flow there now. */
void layout_flow_later(Layouts *p);
/* The layout that the operand of a broadcast, expand_dims, reshape, trans or join must
   have so that the op only renames registers when its result has layout `to`. NULL: op is
   none of these, or there is no such layout. */
const Layout *layout_operand(Session *s, const Op *op, const Layout *to);

/* ---- layout_fix.c */
/* Gives operands without a layout the one that their user in region r needs, from the
   last op to the first. True if anything was given. */
bool layout_backward(Layouts *p, Region *r, int depth);
/* Inserts convert_layouts where an operand or result of op has not the layout that op
   needs. All tiles have layouts by now. */
void layout_fix(Layouts *p, Op *op);

/* ---- layout_remat.c */
/* Removes those of p->converts whose value is cheap to compute in the other layout. */
void layout_remat(Layouts *p);

#endif

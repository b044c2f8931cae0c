/* Comparisons that have only one answer become constants, and with them the masks,
   choices and conditions that hang on them.

       for %k = 0, %K, 16 {                            // 16 divides %K
         %left = sub %K, %k                            for %k = 0, %K, 16 {
         %m = cmpi %lanes, splat %left {pred="slt"}      %x = load %p
         %x = load %p, %m, %zero                 =>    }
       }

   What is known is ir/analysis/bounds.h's. Uses are followed here as far as masks go, so
   that no canonicalization has to come after. */
#include "ir/analysis/bounds.h"

#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "passes/access/masks.h"
#include "passes/pass.h"

bool pass_fold_bounds(Func *f, PassCx *cx);

typedef struct Walk {
    Session *s;
    Bounds *known;
    bool changed;
} Walk;

static void visit(Walk *w, Region *r, int depth);

static void
visit_op(Walk *w, Op *op, int depth)
{
    if (op->kind == OP_CMPI && op->results[0].uses) {
        int answer = bounds_compare(w->known, op);
        if (answer >= 0) {
            mask_is(w->s, op, answer == 1);
            w->changed = true;
        }
    } else if (op->kind == OP_ASSUME) {
        bounds_assume(w->known, op_operand(op, 0), true);
    }
    for (int i = 0; i < op->nregion; i++) {
        BoundsMark m = bounds_mark(w->known);
        bounds_enter(w->known, op, i);
        visit(w, op->regions[i], depth + 1);
        bounds_leave(w->known, m);
    }
}

static void
visit(Walk *w, Region *r, int depth)
{
    if (depth > MAX_REGION_DEPTH)
        return;
    for (Op *op = r->first; op; op = op->next)
        visit_op(w, op, depth);
}

static bool
compares(const Region *r, int depth)
{
    for (const Op *op = r->first; op; op = op->next) {
        if (op->kind == OP_CMPI)
            return true;
        for (int i = 0; i < op->nregion && depth < MAX_REGION_DEPTH; i++)
            if (compares(op->regions[i], depth + 1))
                return true;
    }
    return false;
}

bool
pass_fold_bounds(Func *f, PassCx *cx)
{
    if (!compares(f->body, 0))
        return false;
    Walk w = {.s = cx->s};
    w.known = bounds_new(axis_new(f, &cx->s->tmp), &cx->s->tmp);
    visit(&w, f->body, 0);
    return w.changed;
}

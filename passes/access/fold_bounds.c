/* Comparisons that always have the same result become constants, and the masks, selects
   and conditions that depend on them are simplified.

       for %k = 0, %K, 16 {                            // 16 divides %K
         %left = sub %K, %k                            for %k = 0, %K, 16 {
         %m = cmpi %lanes, splat %left {pred="slt"}      %x = load %p
         %x = load %p, %m, %zero                 =>    }
       }

   ir/analysis/bounds.h proves the result. mask_is simplifies users as far as masks go, so
   no canonicalization has to follow.

   A comparison of 32-bit indices, none of them negative, with one 64-bit number (the
   label in a cross entropy, say) is done in 32 bits. The number is replaced by -1, which
   no index is, if it has more bits.

       %w = sext %offs : tile<64xi64>             %t = trunc %y : i32
       %e = cmpi %w, splat %y {pred="eq"}    =>   %s = select %fits, %t, -1
                                                  %e = cmpi %offs, splat %s {pred="eq"} */
#include "ir/analysis/bounds.h"

#include "ir/analysis/natural.h"

#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "passes/access/masks.h"
#include "passes/pass.h"

#include <string.h>

typedef struct Walk {
    Session *s;
    Axis *axis;
    Bounds *known;
    bool changed;
} Walk;

static void visit(Walk *w, Region *r, int depth);

/* Does that for operand `side` of cmp. A GPU compares 64 bits in two steps and needs two
   registers for each element: cross entropy of 16384 classes with 16 warps takes 90
   registers in 64 bits, and 64 in 32 bits, with which two programs fit an SM. */
static void
narrow_equality(Walk *w, Op *cmp, int side)
{
    enum { NARROW = 32, WIDE = 64 };
    const Op *wide = op_operand(cmp, side)->op;
    const Op *splat = value_def(op_operand(cmp, 1 - side), OP_SPLAT);
    Name pred = attr_str(&cmp->attrs, ATTR_PRED);
    if (!wide || (wide->kind != OP_SEXT && wide->kind != OP_ZEXT) || !splat || !pred ||
        (strcmp(pred, "eq") != 0 && strcmp(pred, "ne") != 0))
        return;
    Value *x = op_operand(wide, 0), *y = op_operand(splat, 0);
    if (type_bits(y->type) != WIDE || type_bits(x->type) != NARROW ||
        !natural_is(w->axis, x))
        return;
    Builder b = builder_before(cmp);
    b.loc = cmp->loc;
    Value *low = build_cast(&b, OP_TRUNC, y, type_elem(x->type));
    Value *fits = build_cmp(&b, OP_CMPI, "eq", y, build_cast(&b, OP_SEXT, low, y->type));
    low = build_select(&b, fits, low, build_int(&b, low->type, -1));
    op_set_operand(cmp, side, x);
    op_set_operand(cmp, 1 - side, build_splat(&b, low, x->type));
    w->changed = true;
}

static void
visit_op(Walk *w, Op *op, int depth)
{
    for (int side = 0; op->kind == OP_CMPI && side < 2; side++)
        narrow_equality(w, op, side);
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
compares(const Region *r)
{
    region_each_deep(r, op) if (op->kind == OP_CMPI) return true;
    return false;
}

bool
pass_fold_bounds(Func *f, PassCx *cx)
{
    if (!compares(f->body))
        return false;
    Walk w = {.s = cx->s};
    w.axis = axis_new(f, &cx->s->tmp);
    w.known = bounds_new(w.axis, &cx->s->tmp);
    visit(&w, f->body, 0);
    return w.changed;
}

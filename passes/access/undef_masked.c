/* Masked loads whose masked-off elements are not used get `undef` for them, so that no
   register has to be set before the load.

       %x = load %p, %m                        %any = undef
       %y = <elementwise work on %x>     =>    %x = load %p, %m, %any
       store %q, %y, %m                        ..

   ptxas treats a register that only a predicated load sets as live from the kernel's
   start, through all loops. So only MOST_WORDS registers are left undefined, in the order
   of the loads; with hundreds (4096 elements in a warp) everything else would be spilled.
   Loads of which a thread makes several accesses under one predicate set all of theirs:
   accesses that have one and nothing else to give become a branch, in which each group
   waits for memory on its own.

   Masked-off elements are not used if the value reaches only stores under the same mask,
   through elementwise work, which moves no element to another's place and has no
   effects. */
#include "ir/analysis/axis.h"
#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "passes/pass.h"

enum { MAX_DEPTH = 32, MAX_USES = 256, MOST_WORDS = 32 };

typedef struct Open {
    Axis *axis;
    int words; /* registers of a thread left undefined so far */
} Open;

/* Do the elements of v that the mask excludes reach no effect? *uses: seen so far. */
static bool
is_masked_off(const Value *v, const Value *mask, int depth, int *uses)
{
    if (depth > MAX_DEPTH)
        return false;
    value_each_use(v, u)
    {
        const Op *op = u->user;
        if (++*uses > MAX_USES)
            return false;
        if (op->kind == OP_STORE && u->index == 1 && op->noperand == 3 &&
            op_operand(op, 2) == mask)
            continue;
        /* not in another region, whose stores run under a condition of their own */
        if (op->parent != mask->op->parent || !op_is(op, T_PURE | T_ELEMENTWISE) ||
            !is_masked_off(&op->results[0], mask, depth + 1, uses))
            return false;
    }
    return true;
}

/* Does a thread make several accesses under one predicate for neighbours along a
   dimension? */
static bool
shares_predicate(const Open *o, const Op *load)
{
    const Type *t = load->results[0].type;
    const Attr *contig = attr_find(&load->attrs, ATTR_CONTIG);
    const AxisFacts *mask = axis_of(o->axis, op_operand(load, 1));
    int reg[LAYOUT_MAX_BITS];
    for (int d = 0; type_is_tile(t) && t->layout && d < t->rank; d++) {
        int64_t most = min_i64(layout_run(t->layout, d, reg), mask->constancy[d]);
        if (most > (contig && d < contig->n ? contig->v.ints[d] : 1))
            return true;
    }
    return false;
}

static bool
visit(void *user, Op *op)
{
    Open *o = user;
    int uses = 0;
    if (op->kind != OP_LOAD || op->noperand != 2 || !op_operand(op, 1)->op ||
        shares_predicate(o, op) ||
        !is_masked_off(&op->results[0], op_operand(op, 1), 0, &uses))
        return false;
    const Type *t = op->results[0].type;
    int regs = type_is_tile(t) && t->layout ? layout_regs(t->layout) : 1;
    int words = (regs * (int)type_bits(t) + 31) / 32;
    if (o->words + words > MOST_WORDS)
        return false;
    o->words += words;
    Builder b = builder_before(op);
    b.loc = op->loc;
    op_add_operand(op, &build_op(&b, OP_UNDEF, NULL, 0, NULL, &t, 1)->results[0]);
    return true;
}

bool
pass_undef_masked(Func *f, PassCx *cx)
{
    Open open = {.axis = axis_new(f, &cx->s->tmp)};
    return pass_walk(f->body, visit, &open);
}

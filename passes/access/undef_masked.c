/* Masked loads whose masked-off elements are not used get `undef` for them, so that no
   register has to be set before the load.

       %x = load %p, %m                        %any = undef
       %y = <elementwise work on %x>     =>    %x = load %p, %m, %any
       store %q, %y, %m                        ..

   ptxas treats a register that only a predicated load sets as live from the kernel's
   start, through all loops. So only MOST_WORDS registers are left undefined, in the order
   of the loads; with hundreds (4096 elements in a warp) everything else would be spilled.

   Masked-off elements are not used if the value reaches only stores under the same mask,
   through elementwise work, which moves no element to another's place and has no
   effects. */
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "passes/pass.h"

bool pass_undef_masked(Func *f, PassCx *cx);

enum { MAX_DEPTH = 32, MAX_USES = 256, MOST_WORDS = 32 };

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

static bool
visit(void *user, Op *op)
{
    int *open = user; /* registers of a thread left undefined so far */
    int uses = 0;
    if (op->kind != OP_LOAD || op->noperand != 2 || !op_operand(op, 1)->op ||
        !is_masked_off(&op->results[0], op_operand(op, 1), 0, &uses))
        return false;
    const Type *t = op->results[0].type;
    int regs = type_is_tile(t) && t->layout ? layout_regs(t->layout) : 1;
    int words = (regs * (int)type_bits(t) + 31) / 32;
    if (*open + words > MOST_WORDS)
        return false;
    *open += words;
    Builder b = builder_before(op);
    b.loc = op->loc;
    op_add_operand(op, &build_op(&b, OP_UNDEF, NULL, 0, NULL, &t, 1)->results[0]);
    return true;
}

bool
pass_undef_masked(Func *f, PassCx *cx)
{
    (void)cx;
    int open = 0;
    return pass_walk(f->body, visit, &open);
}

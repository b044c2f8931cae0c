/* Loads whose masked-off elements are not used: what they are is left open, so that no
   register has to be set before the load.

       %x = load %p, %m                        %any = undef
       %y = <elementwise work on %x>     =>    %x = load %p, %m, %any
       store %q, %y, %m                        ..

   For ptxas a register that only a predicated load sets may hold what it held when the
   kernel began: it is taken from then on, around all loops. So only a few are left open,
   in the order of the loads; with hundreds, of 4096 numbers in a warp, all else goes
   through memory.

   They are not used when the value goes only through elementwise work, which cannot carry
   one element to another's place or do harm, into stores under the very same mask. */
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "passes/pass.h"

bool pass_undef_masked(Func *f, PassCx *cx);

enum { MAX_DEPTH = 32, MAX_USES = 256, MOST_WORDS = 32 };

static bool
is_unseen(const Value *v, const Value *mask, int depth, int *uses)
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
        /* not under another condition: a store there has a mask of its own kind */
        if (op->parent != mask->op->parent || !op_is(op, T_PURE | T_ELEMENTWISE) ||
            !is_unseen(&op->results[0], mask, depth + 1, uses))
            return false;
    }
    return true;
}

static bool
visit(void *user, Op *op)
{
    int *open = user; /* registers of a thread so far */
    int uses = 0;
    if (op->kind != OP_LOAD || op->noperand != 2 || !op_operand(op, 1)->op ||
        !is_unseen(&op->results[0], op_operand(op, 1), 0, &uses))
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

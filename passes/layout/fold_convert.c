/* Results of layout conversions where their user wants them. A reduction across warps
   goes through shared memory and can leave its result in any layout for the same price,
   and so can a load from shared memory; a conversion that follows is a second exchange
   for nothing.

       %y = reduce %x {axis=0} : tile<64xf32, #slice>        %y = reduce %x {axis=0} :
       %z = convert_layout %y : tile<64xf32, #l>         =>      tile<64xf32, #l>

   Only where the conversion is the result's one use, and after a reduction where threads
   do not come to hold many more copies than before: each copy is read anew.

   Elements that were widened in front of a conversion are widened behind it: half as many
   bytes go through shared memory, and half as much of it is needed.

       %y = fext %x : tile<64xf32, #a>                  %z = convert_layout %x :
       %z = convert_layout %y : tile<64xf32, #l>    =>      tile<64xf16, #l>
                                                        %y = fext %z : tile<64xf32, #l> */
#include "ir/edit.h"
#include "ir/layout.h"
#include "ir/plan/scratch.h"
#include "passes/pass.h"

bool pass_fold_convert(Func *f, PassCx *cx);

enum { MORE_COPIES = 2 };

static bool
is_exchange(const Op *op, const Type *to, const TargetInfo *t)
{
    if (op->kind == OP_LOCAL_LOAD)
        return true;
    return op->kind == OP_REDUCE && op->nresult == 1 && scratch_bytes(op, t) &&
           layout_regs(to->layout) <=
               MORE_COPIES * layout_regs(op->results[0].type->layout);
}

/* A vector out of a buffer: in any layout threads read it in words, which a shuffle
   takes as long as. */
static bool
is_vector(const Op *op)
{
    return op->kind == OP_LOCAL_LOAD && op->results[0].type->rank == 1;
}

static bool
fold(Op *convert, const TargetInfo *t)
{
    Value *v = op_operand(convert, 0);
    const Type *to = convert->results[0].type;
    if (!v->op || !v->uses || v->uses->next || !is_exchange(v->op, to, t) ||
        !(scratch_bytes(convert, t) || is_vector(v->op)))
        return false;
    value_replace(&convert->results[0], v);
    op_erase(convert);
    value_set_type(v, to);
    return true;
}

static bool
widen_behind(Op *convert, PassCx *cx)
{
    Op *cast = op_operand(convert, 0)->op;
    if (!cast ||
        (cast->kind != OP_FEXT && cast->kind != OP_SEXT && cast->kind != OP_ZEXT) ||
        cast->parent != convert->parent || cast->results[0].uses->next ||
        !scratch_bytes(convert, &cx->target))
        return false;
    Value *from = op_operand(cast, 0), *wide = &cast->results[0];
    Value *moved = &convert->results[0];
    const Type *to = moved->type;
    if (type_bits(from->type) < 8)
        return false;
    value_replace(moved, wide);
    op_set_operand(convert, 0, from);
    op_set_operand(cast, 0, moved);
    value_set_type(moved, type_with_layout(cx->s->types, from->type, to->layout));
    value_set_type(wide, to);
    op_move_before(cast, convert->next);
    return true;
}

static bool
visit(void *user, Op *op)
{
    PassCx *cx = user;
    if (op->kind != OP_CONVERT_LAYOUT)
        return false;
    bool moved = widen_behind(op, cx);
    return fold(op, &cx->target) || moved;
}

bool
pass_fold_convert(Func *f, PassCx *cx)
{
    return pass_walk(f->body, visit, cx);
}

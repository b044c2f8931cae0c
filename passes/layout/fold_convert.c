/* Removes conversions that the operation before or the loop around can do for nothing.

   A reduction across warps goes through shared memory and can leave its result in any
   layout for the same price, and so can a load from shared memory. A conversion behind
   one of them is folded into it:

       %y = reduce %x {axis=0} : tile<64xf32, #slice>        %y = reduce %x {axis=0} :
       %z = convert_layout %y : tile<64xf32, #l>         =>      tile<64xf32, #l>

   This needs the conversion to be the only use. After a reduction, threads must also not
   get to hold many more copies than before, since each copy is read from shared memory.
   Work on one element, such as a scale or a cast, may stand between the two: it is done
   in the layout behind the conversion if a thread has no more elements there.

   Elements that are widened in front of a conversion are widened behind it instead. Half
   as many bytes go through shared memory, and half as much of it is needed:

       %y = fext %x : tile<64xf32, #a>                  %z = convert_layout %x :
       %z = convert_layout %y : tile<64xf32, #l>    =>      tile<64xf16, #l>
                                                        %y = fext %z : tile<64xf32, #l>

   A value that a loop carries in one layout, but uses and computes only in another, is
   carried in the other one:

       for .. (%x = %a) {                             %b = convert_layout %a
         %y = convert_layout %x : tile<.., #l>        for .. (%y = %b) {
         %z = addi %y, %one : tile<.., #l>     =>       %z = addi %y, %one : tile<.., #l>
         %w = convert_layout %z : tile<.., #k>          yield %z
         yield %w                                     }
       } */
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "ir/plan/scratch.h"
#include "passes/pass.h"

enum { MORE_COPIES = 2 }; /* a thread may hold so many times the elements of before */

/* Can op leave its result in type `to` for the same price, since it reads it from shared
   memory? */
static bool
is_exchange(const Op *op, const Type *to, const TargetInfo *t)
{
    if (op->kind == OP_LOCAL_LOAD)
        return true;
    return op->kind == OP_REDUCE && op->nresult == 1 && scratch_bytes(op, t) &&
           layout_regs(to->layout) <=
               MORE_COPIES * layout_regs(op->results[0].type->layout);
}

/* Does op load a vector from shared memory? A conversion of it is worth folding even if
   it would be a shuffle: threads read vectors word by word in any layout, and a read
   takes as long as a shuffle. */
static bool
is_vector(const Op *op)
{
    return op->kind == OP_LOCAL_LOAD && op->results[0].type->rank == 1;
}

/* The operand of an elementwise op with one result that is neither a constant nor one
   value for all elements; NULL: there are several, or none. */
static Value *
worked_on(const Op *op)
{
    Value *found = NULL;
    if (!op_is(op, T_ELEMENTWISE) || op->nresult != 1 || op->nregion)
        return NULL;
    for (int i = 0; i < op->noperand; i++) {
        Value *v = op_operand(op, i);
        if (v->op && (v->op->kind == OP_CONST || v->op->kind == OP_SPLAT))
            continue;
        if (found || !type_is_tile(v->type))
            return NULL;
        found = v;
    }
    return found;
}

/* op works on elements in layout l. */
static void
work_in(Session *s, Op *op, const Layout *l)
{
    Value *v = &op->results[0], *from = worked_on(op);
    Builder b = builder_before(op);
    Map none;
    map_init(&none, &s->tmp);
    for (int i = 0; i < op->noperand; i++) {
        Value *x = op_operand(op, i);
        if (x == from || !type_is_tile(x->type))
            continue;
        Op *copy = op_clone(&b, x->op, &none);
        value_set_type(&copy->results[0], type_with_layout(s->types, x->type, l));
        op_set_operand(op, i, &copy->results[0]);
    }
    value_set_type(v, type_with_layout(s->types, v->type, l));
}

static bool
fold(Op *convert, PassCx *cx)
{
    enum { MOST_WORK = 8 };
    const Type *to = convert->results[0].type;
    Value *v = op_operand(convert, 0);
    Op *work[MOST_WORK];
    int n = 0;
    while (n < MOST_WORK && v->op && v->uses && !v->uses->next && worked_on(v->op)) {
        work[n++] = v->op;
        v = worked_on(v->op);
    }
    if (!v->op || !v->uses || v->uses->next || !is_exchange(v->op, to, &cx->target) ||
        !(scratch_bytes(convert, &cx->target) || is_vector(v->op)) ||
        (n && layout_regs(to->layout) > layout_regs(v->type->layout)))
        return false;
    for (int i = 0; i < n; i++)
        work_in(cx->s, work[i], to->layout);
    value_replace(&convert->results[0], op_operand(convert, 0));
    op_erase(convert);
    value_set_type(v, type_with_layout(cx->s->types, v->type, to->layout));
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

/* Operand i of op becomes v. If it was a conversion without other uses, that is
   erased. */
static void
set_operand(Op *op, int i, Value *v)
{
    Op *was = op_operand(op, i)->op;
    op_set_operand(op, i, v);
    if (was && was->kind == OP_CONVERT_LAYOUT && !op_has_uses(was))
        op_erase(was);
}

/* v converted to type `to`; what it was converted from, if that has the type. */
static Value *
converted(Builder *b, Value *v, const Type *to)
{
    Op *from = value_def(v, OP_CONVERT_LAYOUT);
    if (from && op_operand(from, 0)->type == to)
        return op_operand(from, 0);
    return &build_op(b, OP_CONVERT_LAYOUT, &v, 1, NULL, &to, 1)->results[0];
}

/* The type to which all users of carried value i convert it, and from which the iteration
   converts its next value; NULL: there is no such type. */
static const Type *
used_as(const Op *loop, int i)
{
    const Region *body = loop->regions[0];
    const Value *arg = body->args[i + 1];
    const Op *next = value_def(op_operand(body->last, i), OP_CONVERT_LAYOUT);
    const Type *to = next ? op_operand(next, 0)->type : NULL;
    bool same = arg->uses && to && type_is_tile(arg->type) &&
                layout_regs(to->layout) <= MORE_COPIES * layout_regs(arg->type->layout);
    value_each_use(arg, u) same &= u->user->kind == OP_CONVERT_LAYOUT &&
                                   u->user->results[0].type == to;
    return same ? to : NULL;
}

static bool
carry_as_used(Op *loop)
{
    Region *body = loop->regions[0];
    bool changed = false;
    for (int i = 0; i < loop->nresult; i++) {
        const Type *to = used_as(loop, i), *was = loop->results[i].type;
        Value *arg = body->args[i + 1], *result = &loop->results[i];
        if (!to)
            continue;
        Builder b = builder_before(loop);
        b.loc = loop->loc;
        set_operand(loop, i + 3, converted(&b, op_operand(loop, i + 3), to));
        set_operand(body->last, i, op_operand(op_operand(body->last, i)->op, 0));
        value_set_type(arg, to);
        for (Use *u = arg->uses, *next; u; u = next) {
            Op *convert = u->user;
            next = u->next;
            value_replace(&convert->results[0], arg);
            op_erase(convert);
        }
        value_set_type(result, to);
        changed = true;
        if (!result->uses)
            continue;
        b = builder_after(loop);
        b.loc = loop->loc;
        Op *back = build_op(&b, OP_CONVERT_LAYOUT, &result, 1, NULL, &was, 1);
        value_replace(result, &back->results[0]);
        op_set_operand(back, 0, result);
    }
    return changed;
}

static bool
visit(void *user, Op *op)
{
    PassCx *cx = user;
    if (op->kind == OP_FOR)
        return carry_as_used(op);
    if (op->kind != OP_CONVERT_LAYOUT)
        return false;
    bool moved = widen_behind(op, cx);
    return fold(op, cx) || moved;
}

bool
pass_fold_convert(Func *f, PassCx *cx)
{
    return pass_walk(f->body, visit, cx);
}

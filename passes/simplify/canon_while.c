/* A while loop that counts becomes a for loop, whose iterations are known before they
   begin: loads are issued ahead, vectors made, tiles dealt out.

       %r = while %row (%i) {              %r = for %i = %row, %end, %c64 (%j = %row) {
         %c = cmpi %i, %end                  ..
         condition %c, %i                    %n = add %i, %c64
       }, (%j) {                    =>       yield %n
         ..                                }
         %n = add %j, %c64
         yield %n
       }

   The bound is the same in all iterations, the step a constant towards it. What the
   condition computes of values from outside goes in front: it runs at least once. */
#include "ir/fold.h"
#include "passes/simplify/canon.h"

typedef struct Count {
    int at; /* the carried value that counts */
    Value *hi, *step;
    bool down, last; /* by a negative step; hi itself is in the range */
} Count;

/* Pure ops of values from outside leave the condition's region. */
static bool
hoist_invariant(Op *loop)
{
    Region *r = loop->regions[0];
    bool changed = false;
    region_each(r, op)
    {
        bool out = op_is(op, T_PURE) && !op->nregion && op != r->last;
        for (int i = 0; i < op->noperand && out; i++)
            out = value_outside(op_operand(op, i), r);
        if (out)
            op_move_before(op, loop);
        changed |= out;
    }
    return changed;
}

static int
arg_index(const Region *r, const Value *v)
{
    for (int i = 0; i < r->narg; i++)
        if (r->args[i] == v)
            return i;
    return -1;
}

/* Is a comparison all that the condition consists of, of a carried value with one from
   outside? All values are handed on as they are. */
static bool
reads_count(Count *c, const Op *loop)
{
    const Region *r = loop->regions[0];
    const Op *end = r->last, *cmp = op_operand(end, 0)->op;
    if (!cmp || cmp->kind != OP_CMPI || r->first != cmp || cmp->next != end ||
        loop->nresult != r->narg)
        return false;
    for (int i = 0; i < r->narg; i++)
        if (op_operand(end, i + 1) != r->args[i])
            return false;
    Name pred = attr_str(&cmp->attrs, ATTR_PRED);
    bool turned = arg_index(r, op_operand(cmp, 0)) < 0;
    c->at = arg_index(r, op_operand(cmp, turned));
    c->hi = op_operand(cmp, !turned);
    c->down = (pred[1] == 'g') != turned;
    c->last = pred[2] == 'e';
    return c->at >= 0 && value_outside(c->hi, r) && !type_is_tile(c->hi->type) &&
           type_bits(c->hi->type) >= 32 && pred[0] == 's';
}

/* The step, made in front of the loop. */
static bool
find_step(Count *c, Builder *b, const Op *loop)
{
    const Region *body = loop->regions[1];
    const Op *next = op_operand(body->last, c->at)->op;
    Const by;
    if (!next || (next->kind != OP_ADD && next->kind != OP_SUB) ||
        next->parent != body || op_operand(next, 0) != body->args[c->at] ||
        !value_const(op_operand(next, 1), &by) || by.i == INT64_MIN)
        return false;
    int64_t step = next->kind == OP_SUB ? -by.i : by.i;
    if (!step || (step < 0) != c->down)
        return false;
    c->step = build_int(b, c->hi->type, step);
    return true;
}

bool
canon_while(Builder *b, Op *loop)
{
    Count c = {0};
    Value **inits = arena_array(&b->s->tmp, Value *, loop->noperand);
    bool changed = hoist_invariant(loop);
    if (!reads_count(&c, loop) || !find_step(&c, b, loop))
        return changed;
    for (int i = 0; i < loop->noperand; i++)
        inits[i] = op_operand(loop, i);
    Value *hi = c.hi;
    if (c.last)
        hi = build_binary(b, c.down ? OP_SUB : OP_ADD, hi, build_int(b, hi->type, 1));
    Region *from = loop->regions[1];
    Op *to = build_for(b, inits[c.at], hi, c.step, inits, loop->noperand);
    Region *body = to->regions[0];
    body->args[0]->name = from->args[c.at]->name;
    for (int i = 0; i < from->narg; i++)
        value_replace(from->args[i], body->args[i == c.at ? 0 : i + 1]);
    while (from->first)
        op_move_to_end(from->first, body);
    for (int i = 0; i < loop->nresult; i++) {
        to->results[i].name = loop->results[i].name;
        value_replace(&loop->results[i], &to->results[i]);
    }
    op_erase(loop);
    return true;
}

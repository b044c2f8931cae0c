/* Loads inside of conditions: before a loop is planned (stage_plan.c), those that feed
   dots move in front of the condition, which becomes their mask.

       if %c {                                     %p = addptr %base, %i
         %p = addptr %base, %i                     %a = load %p, (splat %c)
         %a = load %p                      =>      %m = local_alloc %a
         %m = local_alloc %a                       if %c {
         .. local_load %m ..                         .. local_load %m ..
       }                                           }

   There they can be issued iterations ahead, like loads of the loop itself, when the
   condition is known that early: a flag of a block map, a comparison of the counter. In
   iterations in which it does not hold nothing is read, and stage-expand copies nothing.

   What the address needs moves along if it may be computed in vain. Loads of which it is
   made, such as a page's number, get the mask, too; what they give where it is off is
   only part of addresses that are masked off. Anything else keeps the load where it
   is, and so does a loop that may write what is loaded: stores and loads keep their order
   then. A load that cannot be planned after all is moved back; one that runs in a single
   iteration (`if k == last`) stays, since a ring of buffers for it would be of no use. */
#include "passes/schedule/stage_lift.h"

#include "ir/edit.h"
#include "ir/fold.h"

#include <string.h>

/* May op be executed when its condition does not hold? A load gets the mask. */
static bool
may_move(const Lift *l, const Op *op)
{
    Const c;
    if (op->kind == OP_LOAD)
        return !attr_has(&op->attrs, ATTR_VOLATILE) && !l->writes->ordered &&
               !writes_reach(l->writes, op_operand(op, 0));
    if (op->nregion || !op_is(op, T_PURE))
        return false;
    return op_is(op, T_SPEC) ||
           (op_divides(op) && value_const(op_operand(op, 1), &c) && c.i != 0);
}

/* Collects what the load needs of its region. */
static bool
find_needed(const Lift *l, Op *load, Map *needed)
{
    Vec(Op *) work = {0};
    map_init(needed, &l->s->tmp);
    map_set(needed, load, load);
    vec_push(&l->s->tmp, &work, load);
    for (int k = 0; k < work.n; k++) {
        Op *op = work.at[k];
        if (!may_move(l, op))
            return false;
        for (int i = 0; i < op->noperand; i++) {
            Op *from = op_operand(op, i)->op;
            if (!from || from->parent != load->parent || map_has(needed, from))
                continue;
            map_set(needed, from, from);
            vec_push(&l->s->tmp, &work, from);
        }
    }
    value_each_use(&load->results[0], u) if (u->user->kind == OP_LOCAL_ALLOC &&
                                             u->user->parent == load->parent)
        map_set(needed, u->user, u->user);
    return true;
}

/* Is v the loop's counter, or a number that it carries, but for terms that stay? */
static bool
counts(const Lift *l, const Value *v, int depth)
{
    enum { TERMS = 8 };
    const Op *op = v->op;
    if (!op)
        return v->region == l->body && type_is_int(v->type);
    if ((op->kind != OP_ADD && op->kind != OP_SUB && op->kind != OP_MUL) || depth > TERMS)
        return false;
    const Value *x = op_operand(op, 0), *y = op_operand(op, 1);
    return (counts(l, x, depth + 1) && value_outside(y, l->body)) ||
           (counts(l, y, depth + 1) && value_outside(x, l->body));
}

/* Does the arm run in one iteration of many: the last step of a tile? Buffers for what it
   loads would be empty in the others. */
static bool
is_rare(const Lift *l, const Region *arm)
{
    const Op *cond = arm->parent, *cmp = value_def(op_operand(cond, 0), OP_CMPI);
    Name pred = cmp ? attr_str(&cmp->attrs, ATTR_PRED) : NULL;
    const char *rare = arm == cond->regions[0] ? "eq" : "ne";
    if (!pred || strcmp(pred, rare) != 0)
        return false;
    const Value *x = op_operand(cmp, 0), *y = op_operand(cmp, 1);
    return (counts(l, x, 0) && value_outside(y, l->body)) ||
           (counts(l, y, 0) && value_outside(x, l->body));
}

/* Moves the load out of one condition. */
static bool
lift_once(Lift *l, Op *load)
{
    Region *arm = load->parent;
    Op *cond = arm->parent;
    Value *holds = op_operand(cond, 0);
    Map needed;
    if (is_rare(l, arm) || !find_needed(l, load, &needed))
        return false;
    Builder b = builder_before(cond);
    b.loc = load->loc;
    if (arm == cond->regions[1])
        holds = build_binary(&b, OP_XOR, holds, build_int(&b, holds->type, 1));
    for (Op *op = arm->first, *next; op; op = next) {
        next = op->next;
        if (!map_has(&needed, op))
            continue;
        bool masked = op->kind == OP_LOAD && op->noperand > 1;
        Lifted was = {op, next, masked ? op_operand(op, 1) : NULL};
        vec_push(&l->s->tmp, &l->moved, was);
        op_move_before(op, cond);
        if (op->kind == OP_LOAD)
            load_guard(op, holds);
    }
    return true;
}

void
stage_lift_undo(Lift *l)
{
    while (l->moved.n) {
        Lifted *m = &l->moved.at[--l->moved.n];
        op_move_before(m->op, m->next);
        if (m->op->kind == OP_LOAD)
            load_unguard(m->op, m->mask);
    }
}

bool
stage_lift(Lift *l, Op *load)
{
    l->moved.n = 0;
    while (load->parent != l->body) {
        if (!load->parent->parent || load->parent->parent->kind != OP_IF ||
            !lift_once(l, load)) {
            stage_lift_undo(l);
            return false;
        }
    }
    return true;
}

static void
find_within(Lift *l, const Region *r, bool inside, int depth)
{
    for (Op *op = r->first; op && depth <= MAX_REGION_DEPTH; op = op->next) {
        const Type *t = op->kind == OP_LOAD ? op->results[0].type : NULL;
        if (inside && t && type_is_tile(t))
            vec_push(&l->s->tmp, &l->loads, op);
        for (int i = 0; op->kind == OP_IF && i < 2; i++)
            find_within(l, op->regions[i], true, depth + 1);
    }
}

void
stage_lift_find(Lift *l, Session *s, const Op *loop, const Writes *writes)
{
    *l = (Lift){.s = s, .body = loop->regions[0], .writes = writes};
    find_within(l, l->body, false, 0);
}

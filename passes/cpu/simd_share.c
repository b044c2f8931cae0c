/* Values that have one buffer: what a loop carries and the dot that adds to it or the
   loop inside that goes on with it, what a branch yields and the tile that one of its
   arms yields as it is. */
#include "passes/cpu/simd.h"

#include "ir/edit.h"

static bool
is_yielded_once(const Op *loop, int i)
{
    const Region *body = loop->regions[0];
    for (int k = 0; k < loop->nresult; k++)
        if (k != i && op_operand(body->last, k) == op_operand(body->last, i))
            return false;
    return true;
}

/* Carried value i of the loop is handed to a loop inside, which hands back its next
   value: this one carries it in the same buffer, if nothing reads the old value from
   there on. */
static void
carry_on(Simd *n, Op *loop, Slot **s, int i)
{
    Region *body = loop->regions[0];
    Value *y = op_operand(body->last, i), *arg = body->args[i + 1];
    Op *inner = value_def(y, OP_FOR);
    if (!s[i] || !inner || inner->parent != body || !is_yielded_once(loop, i))
        return;
    Slot *in = plan_get(n, y)->slot;
    const Plan *p = plan_get(n, arg);
    bool ok = !p->many && !in->same && in->type == s[i]->type;
    for (int k = 0; k < inner->nresult; k++)
        if (op_result(inner, k) == y)
            ok &= op_operand(inner, 3 + k) == arg;
    for (int k = 0; k < p->nd; k++) {
        const Op *at = p->d[k].g->at;
        ok &= at->parent == body && op_plan(n, at)->order <= op_plan(n, inner)->order;
    }
    if (ok)
        in->same = s[i];
}

void
simd_carry_in_place(Simd *n, Op *loop, Slot **s)
{
    Region *body = loop->regions[0];
    for (int i = 0; i < loop->nresult; i++) {
        Value *y = op_operand(body->last, i);
        Op *dot = value_def(y, OP_DOT);
        carry_on(n, loop, s, i);
        if (!s[i] || !dot || dot->parent != body || plan_get(n, y)->slot->same)
            continue;
        Plan *p = plan_get(n, body->args[i + 1]);
        bool ok = !p->many && plan_get(n, y)->slot->type == s[i]->type;
        const OpPlan *d = op_plan(n, dot);
        for (int k = 0; k < p->nd; k++) {
            const Group *g = p->d[k].g;
            bool pack = g == d->pack[0] || g == d->pack[1] ||
                        (g == d->pack[2] && !p->d[k].shifted);
            ok &= pack || (g->at->parent == body && op_plan(n, g->at)->order < d->order);
        }
        if (ok && is_yielded_once(loop, i))
            plan_get(n, y)->slot->same = s[i];
    }
}

/* Does group g copy what a branch yields to `to`? */
static bool
yields_to(const Group *g, const Op *branch, const Slot *to)
{
    for (int i = 0; g->region->parent == branch && i < g->items.n; i++)
        if (g->items.at[i].kind == ROOT_COPY && g->items.at[i].dst == to)
            return true;
    return false;
}

/* Is there a second tile, yielded by the branch's other arm, in the buffer already? */
static bool
is_taken(Simd *n, const Op *branch, const Use *u, const Value *v, const Slot *to)
{
    for (int i = 0; i < branch->nregion; i++) {
        const Value *y = op_operand(branch->regions[i]->last, u->index);
        const Plan *p = y == v ? NULL : plan_get(n, y);
        if (p && p->slot && p->slot->same == to)
            return true;
    }
    return false;
}

void
simd_share_with_branch(Simd *n, Op *op, Value *v)
{
    Plan *p = plan_get(n, v);
    value_each_use(v, u)
    {
        Op *branch = u->user->parent->parent;
        if (u->user->kind != OP_YIELD || !branch || branch->kind != OP_IF ||
            branch->parent != op->parent)
            continue;
        Slot *to = op_plan(n, branch)->carry[u->index];
        bool ok = !p->many && !p->slot->same && to->type == p->slot->type &&
                  !is_taken(n, branch, u, v, to);
        for (int i = 0; i < p->nd; i++) {
            const Demand *d = &p->d[i];
            bool before = d->g->region == op->parent &&
                          op_plan(n, d->g->at)->order < op_plan(n, branch)->order;
            ok &= before || (!d->shifted && yields_to(d->g, branch, to));
        }
        if (ok)
            p->slot->same = to;
    }
}

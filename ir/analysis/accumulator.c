/* The way of an accumulator; see accumulator.h.

       for .. (%acc = ..) {
         %r = wgmma %a, %b, %acc
         %s = wgmma_wait %r
         %t = if %last { store %p, %s; yield %zero } else { yield %s }
         yield %t
       }

   It is followed from value to value, also through several dots that add to it one after
   the other. Each value has one op at most that makes the next one of it, the last of
   those that use it: then no two of them are live at a time, and one set of registers
   holds them all. */
#include "ir/analysis/accumulator.h"

#include "ir/analysis/async_dot.h"
#include "ir/edit.h"

/* Values of one block on the way, and uses of one value: more are not looked at. */
enum { MAX_STEPS = 64, MAX_USES = 64 };

enum { READ = -1, FAILS = -2 }; /* instead of a result */

typedef struct Way {
    const Op *dot;
    bool met; /* the dot */
} Way;

static const Value *follow(Way *w, const Value *v, const Region *r, int depth);

bool
select_is_scalar(const Op *op)
{
    return op->kind == OP_SELECT && value_def(op_operand(op, 0), OP_SPLAT);
}

/* The one operand of op that is v; -1: none, or several. */
static int
only_operand(const Op *op, const Value *v)
{
    int at = -1, n = 0;
    for (int i = 0; i < op->noperand; i++)
        if (op_operand(op, i) == v) {
            at = i;
            n++;
        }
    return n == 1 ? at : -1;
}

/* What a step makes of v. */
typedef struct Step {
    bool fails;
    const Value *next; /* the sums from here on; NULL: v still */
} Step;

/* Which of the condition's results holds the sums behind it, if its arms hand them on. */
static int
through_if(Way *w, const Value *v, const Op *op, int depth)
{
    bool fails = false;
    int at = READ;
    for (int k = 0; k < 2 && !fails; k++) {
        const Value *end = follow(w, v, op->regions[k], depth + 1);
        const Op *yield = op->regions[k]->last;
        int i = end ? only_operand(yield, end) : -1;
        bool used = false;
        for (int j = 0; end && j < yield->noperand; j++)
            used |= op_operand(yield, j) == end;
        fails = !end || (used && i < 0) || (i >= 0 && at >= 0 && i != at) ||
                (i < 0 && end != v);
        at = i >= 0 ? i : at;
    }
    return fails ? FAILS : at;
}

static Step
step(Way *w, const Value *v, const Op *op, const Use *u, int depth)
{
    if (op_is_async_dot(op) && !depth && only_operand(op, v) == DOT_ACC &&
        dot_sums(op)) {
        w->met |= op == w->dot;
        return (Step){.next = dot_sums(op)};
    }
    if (op->kind == OP_IF && op != u->user) {
        int i = through_if(w, v, op, depth);
        return (Step){.fails = i == FAILS, .next = i < 0 ? NULL : &op->results[i]};
    }
    if (select_is_scalar(op) && only_operand(op, v) >= 0)
        return (Step){.next = &op->results[0]};
    return (Step){.fails = !depth}; /* it is read */
}

/* The value that holds the sums at the end of r, v being it where r begins; NULL: no
   single one does, or what is no arm reads it. */
static const Value *
follow(Way *w, const Value *v, const Region *r, int depth)
{
    for (int n = 0; n < MAX_STEPS && depth <= MAX_REGION_DEPTH; n++) {
        const Op *seen[MAX_USES], *makes = NULL;
        const Value *next = NULL;
        int nseen = 0;
        value_each_use(v, u)
        {
            const Op *op = op_in_region(u->user, r);
            bool again = false;
            for (int i = 0; i < nseen; i++)
                again |= seen[i] == op;
            if (!op || again)
                continue;
            Step s = {.next = v};
            if (op != r->last)
                s = step(w, v, op, u, depth);
            if (s.fails || (s.next && makes) || nseen == MAX_USES)
                return NULL;
            seen[nseen++] = op;
            makes = s.next ? op : makes;
            next = s.next ? s.next : next;
        }
        for (int i = 0; i < nseen && makes; i++)
            if (seen[i] != makes && !op_before(seen[i], makes))
                return NULL;
        if (!next || next == v)
            return v;
        v = next;
    }
    return NULL;
}

int
accumulator_result(const Op *op, const Value *v)
{
    Way w = {0};
    int i = through_if(&w, v, op, 0);
    return i < 0 ? -1 : i;
}

int
dot_carried(const Op *dot)
{
    const Region *body = dot->parent;
    const Op *loop = body->parent;
    Way w = {.dot = dot};
    if (!dot_sums(dot) || !loop || loop->kind != OP_FOR)
        return -1;
    for (int i = 0; i < loop->nresult; i++) {
        const Value *arg = body->args[i + 1];
        if (arg->type != dot_tile(dot->results[0].type))
            continue;
        w.met = false;
        const Value *end = follow(&w, arg, body, 0);
        if (end && w.met && only_operand(body->last, end) == i)
            return i;
    }
    return -1;
}

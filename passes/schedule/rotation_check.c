/* Does the schedule of a loop hold? Each op must find what it needs: of its own stage
   what runs in front of it; of stage 0 what the iteration before left; of stage 1 only
   what is carried on, if that runs in front of it, too. */
#include "passes/schedule/rotation.h"

#include "ir/analysis/param.h"
#include "ir/edit.h"
#include "ir/loop.h"

static bool
touches(const Op *op)
{
    OpEffects fx = op_effects(op);
    return (fx.reads | fx.writes) & 1u << RES_GLOBAL;
}

static bool
any_write(const Writes *w)
{
    return w->all || w->ordered || w->n;
}

const char *
rotation_hazard(const Region *body, const Map *late)
{
    Writes moved = {0}, others = {0};
    bool memory = false;
    for (const Op *op = body->first; op; op = op->next) {
        writes_add(map_has(late, op) ? &moved : &others, op);
        memory |= map_has(late, op) && touches(op);
    }
    if (!memory && !any_write(&moved))
        return NULL;
    if (any_write(&others) || moved.ordered)
        return "the loop writes other memory, or waits for other programs";
    for (const Op *op = body->first; op; op = op->next)
        if (!map_has(late, op) && touches(op) &&
            (op->nregion || writes_reach(&moved, op_operand(op, 0))))
            return "the loop may read what it writes";
    return NULL;
}

/* Does `a` come before b in an iteration of the new loop? */
static bool
runs_before(const Op *a, const Op *b)
{
    int x = rotation_order(a), y = rotation_order(b);
    return x < y || (x == y && op_before(a, b));
}

/* Why op, or an op inside of it, cannot take v; NULL: it can. A carried value is what the
   iteration before has left, so what makes it runs in front of op only where that is the
   later stage. */
static const char *
misses(const Region *body, const Op *op, const Value *v)
{
    int stage = rotation_stage(op), from = rotation_stage_of(body, v);
    bool carried = !v->op && v->region == body && v->index;
    const Op *made = carried ? op_operand(body->last, v->index - 1)->op : v->op;
    if (!made || made->parent != body)
        return NULL;
    if (from < stage && v->type->kind == TY_ASYNC)
        return "takes what is in flight in the other stage";
    bool behind = from < stage || (from == stage && carried) ||
                  (runs_before(made, op) && (from == stage || carried));
    return behind ? NULL : "runs before what it needs";
}

static const char *
misses_any(const Region *body, const Op *op, const Op *in, int depth)
{
    const char *why = NULL;
    for (int i = 0; i < in->noperand && !why; i++)
        why = misses(body, op, op_operand(in, i));
    for (int i = 0; i < in->nregion && depth < MAX_REGION_DEPTH; i++)
        for (const Op *each = in->regions[i]->first; each && !why; each = each->next)
            why = misses_any(body, op, each, depth + 1);
    return why;
}

static const char *
misplaced(const Op *loop, const Op *op)
{
    enum { MOST_ORDER = 64 };
    const Region *body = loop->regions[0];
    int stage = rotation_stage(op), order = rotation_order(op);
    if (stage < 0 || stage > 1 || order < 0 || order >= MOST_ORDER)
        return "has no stage, 0 or 1, and place in a loop whose other ops have";
    if (!loop_step(loop))
        return "has a stage of a loop that does not count up in known steps";
    if (stage == 1 && op_is_planned(op))
        return "is issued ahead and an iteration later";
    return misses_any(body, op, op, 0);
}

FormFault
rotation_check(Session *s, const Op *loop)
{
    const Region *body = loop->regions[0];
    Map late;
    if (!loop_is_rotated(loop))
        return (FormFault){0};
    map_init(&late, &s->tmp);
    for (Op *op = body->first; op != body->last; op = op->next) {
        const char *why = misplaced(loop, op);
        if (why)
            return (FormFault){op, why};
        if (rotation_stage(op) == 1)
            map_set(&late, op, op);
    }
    const char *why = rotation_hazard(body, &late);
    return why ? (FormFault){loop, why} : (FormFault){0};
}

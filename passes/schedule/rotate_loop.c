/* Loop rotation for two dots of which the second needs what is computed from the first,
   as in attention: the first dot of the next iteration is issued while the second is
   still in flight, so the work between the two overlaps with the tensor cores.

       for %i (%m, %o) {                     s = a * k[0];  p, m = f(s);  x = o0 * g(m)
         s = a * k[i]                        for %i = 1 .. (p, x, ..) {
         p, m = f(s, m)                        s = a * k[i]             begun
         o = o * g(m) + p * v[i]      =>       o = x + p * v[i - 1]     begun
       }                                       p, m = f(s, m)           beside the second
                                               x = o * g(m)             when it is done
                                             }
                                             o = x + p * v[last]

   The body is divided into two stages (rotation.h): the second dot with what belongs to
   it (waiting for it, and waiting for and releasing its stage of a ring), and everything
   else. The operand p of an iteration is narrowed last, when the dot that reads the
   previous p is done, so that both can use the same registers.

   Either dot may be several: the first may be a chain of dots that add to one accumulator
   and are waited for once (heads of 96 columns, as 64 and 32), the second may be several
   dots that share the operand p and are issued one after the other.

   This is done in the roles of specialize.c, where no barrier of the whole block stands
   between the dots, and each of the two is waited for and released separately; not for
   loops of at most one iteration, which pass peel leaves. If there are many warpgroups,
   they alternate (ping-pong) in issuing the two dots, so that they do not all compute, or
   all multiply, at the same time. */
#include "passes/pass.h"

#include "ir/analysis/async_dot.h"
#include "ir/analysis/slice.h"
#include "ir/base/map.h"
#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/loop.h"
#include "passes/schedule/join_sums.h"
#include "passes/schedule/rotation.h"

/* Number of warps from which on the warpgroups alternate at their dots. Two warpgroups
   get out of step by themselves (attention of 128 dimensions, 16384 on an H200,
   tests/gpu/compare.py, 2026-11-22: 651 TFLOP/s, 618 with ping-pong); four do not (64
   dimensions: 450, 485 with it). */
enum { PINGPONG_WARPS = 16, SECONDS = 4 };

typedef struct Plan {
    Session *s;
    Op *loop;
    Op *d1, *e1, *w1; /* the first dot, the last one of its chain, their wait */
    Op *d2[SECONDS], *w2[SECONDS];
    int n2;        /* number of second dots */
    Map second;    /* ops of the second stage */
    Map ends;      /* those that wait for the dots, and what depends on them */
    Map late;      /* ops of the first stage that run behind the second dots */
    Map in_second; /* carried values that the second stage computes */
    bool pingpong; /* warpgroups of the role alternate at the dots */
} Plan;

/* ---- the stages */

typedef bool Visit(Plan *k, const Value *v);

/* Does `visit` hold for an operand of op or of an op inside of it? */
static bool
any_operand(Plan *k, const Op *op, Visit *visit)
{
    for (int i = 0; i < op->noperand; i++)
        if (visit(k, op_operand(op, i)))
            return true;
    for (int i = 0; i < op->nregion; i++)
        region_each(op->regions[i], in)
            if (any_operand(k, in, visit))
                return true;
    return false;
}

static bool
from_second(Plan *k, const Value *v)
{
    return v->op && map_has(&k->second, v->op);
}

static bool
from_end(Plan *k, const Value *v)
{
    return v->op && map_has(&k->ends, v->op);
}

static bool
from_late(Plan *k, const Value *v)
{
    return map_has(&k->in_second, v) || (v->op && map_has(&k->late, v->op));
}

/* Has every ring at least two stages? A stage that is released late is held while a
   producer that loads another operand first already needs the next. */
static bool
rings_are_deep(const Op *loop)
{
    region_each(loop->regions[0], op) {
        const Op *at = op->kind == OP_BAR_WAIT ? op_operand(op, 0)->op : NULL;
        if (op->kind == OP_BAR_WAIT &&
            (!at || at->kind != OP_BAR_INDEX || op_operand(at, 0)->type->stages < 2))
            return false;
    }
    return true;
}

/* Dots that add up count as one if nothing waits in between, or, not `joined`, if that
   can still become so. */
static bool
find_dots(Plan *k, bool joined)
{
    Op *begun = NULL;
    region_each(k->loop->regions[0], op) {
        if (!op_is_async_dot(op))
            continue;
        Op *wait = dot_full_wait(op), *first = begun ? begun : op;
        begun = !(wait && joined) && dot_adding_to(op) ? first : NULL;
        if (begun)
            continue;
        if (!wait)
            return false;
        if (!k->d1) {
            k->d1 = first;
            k->e1 = op;
            k->w1 = wait;
            continue;
        }
        if (k->n2 == SECONDS || first != op || !op_before(k->w1, op) ||
            op_operand(op, 0)->type->kind != TY_TILE)
            return false;
        k->d2[k->n2] = op;
        k->w2[k->n2++] = wait;
    }
    return k->n2 > 0;
}

static bool
is_rotated_dot(const Plan *k, const Op *op)
{
    bool is = op == k->w1 || op_is_async_dot(op);
    for (int i = 0; i < k->n2; i++)
        is |= op == k->w2[i];
    return is;
}

/* Are all users of op in the second stage? */
static bool
only_second(const Plan *k, const Op *op)
{
    for (int i = 0; i < op->nresult; i++)
        value_each_use(&op->results[i], u)
            if (!map_has(&k->second, u->user))
                return false;
    return op->nresult > 0;
}

/* Finds the second stage: the second dots, what depends on them, and waiting for and
   releasing the stages of their operands. */
static bool
find_second(Plan *k)
{
    Region *body = k->loop->regions[0];
    const Op *last = k->d2[k->n2 - 1];
    region_each(body, op) {
        bool before = op_before(op, k->e1), after = op_before(k->w2[0], op);
        bool between = op_before(k->w1, op) && op_before(op, last);
        bool second = any_operand(k, op, from_second);
        for (int i = 0; i < k->n2; i++)
            second |= op == k->d2[i] || op == k->w2[i];
        if (op == body->last)
            break;
        if (op->kind == OP_BAR_WAIT     ? !before && !between
            : op->kind == OP_BAR_ARRIVE ? !after && !op_before(k->w1, op)
                                        : !is_rotated_dot(k, op) && !op_is_pure(op))
            return false;
        second |=
            (op->kind == OP_BAR_WAIT && between) || (op->kind == OP_BAR_ARRIVE && after);
        if (second)
            map_set(&k->second, op, op);
    }
    for (Op *op = body->last->prev; op; op = op->prev) {
        bool light = op->nresult == 1 && !type_is_tile(op->results[0].type);
        if (light && op_is_pure(op) && only_second(k, op))
            map_set(&k->second, op, op);
    }
    region_each(body, op) {
        bool waits = op->kind == OP_BAR_ARRIVE || any_operand(k, op, from_end);
        for (int i = 0; i < k->n2; i++)
            waits |= op == k->w2[i];
        if (waits && map_has(&k->second, op))
            map_set(&k->ends, op, op);
    }
    for (int i = 0; i < k->n2; i++)
        if (map_has(&k->ends, k->d2[i]))
            return false;
    return !map_has(&k->second, k->d1) && !map_has(&k->second, k->w1);
}

/* What the operand of the second dot is narrowed from, an exponential for instance, is
   computed late as well: narrowing it and scaling the accumulator, which other units do,
   then overlap with it. */
static void
seed_late(Plan *k)
{
    Op *op = op_operand(k->d2[0], 0)->op;
    while (op && (op->kind == OP_CONVERT_LAYOUT || op->kind == OP_FTRUNC))
        op = op_operand(op, 0)->op;
    if (op && op->parent == k->loop->regions[0] && op_is(op, T_ELEMENTWISE) &&
        op_is_pure(op))
        map_set(&k->late, op, op);
}

/* Do only the second dots and late ops use op? */
static bool
only_late_or_second(const Plan *k, const Op *op)
{
    value_each_use(&op->results[0], u) {
        bool fits = map_has(&k->late, u->user);
        for (int i = 0; i < k->n2; i++)
            fits |= u->user == k->d2[i];
        if (!fits)
            return false;
    }
    return op->results[0].uses != NULL;
}

/* Finds ops of the first stage that depend on the second dot of the iteration before. */
static bool
find_late(Plan *k)
{
    Region *body = k->loop->regions[0];
    seed_late(k);
    for (int i = 0; i < k->loop->nresult; i++) {
        Value *end = op_operand(body->last, i);
        if (end->op && map_has(&k->second, end->op))
            map_set(&k->in_second, body->args[i + 1], body->args[i + 1]);
        else if (!end->op && end->region == body && end != body->args[i + 1])
            return false;
    }
    region_each(body, op)
        if (!map_has(&k->second, op) && op != body->last && any_operand(k, op, from_late))
            map_set(&k->late, op, op);
    for (int i = 0; i < k->n2; i++)
        for (Op *op = op_operand(k->d2[i], 0)->op;
             op && (op->kind == OP_CONVERT_LAYOUT || op->kind == OP_FTRUNC) &&
             op->parent == body && only_late_or_second(k, op);
             op = op_operand(op, 0)->op)
            map_set(&k->late, op, op);
    for (Op *op = body->first; op != body->last; op = op->next)
        if (map_has(&k->late, op) && !op_is_pure(op))
            return false;
    return !map_has(&k->late, k->d1) && !map_has(&k->late, k->w1);
}

/* Slice callback: what the iteration computes. */
static bool
enter_own(Slice *sl, const Value *v)
{
    (void)sl;
    return v->op;
}

/* Does the operand of the second dot depend on the first dot of the same iteration? */
static bool
depends(const Plan *k, const Op *second)
{
    Slice sl;
    slice_init(&sl, &k->s->tmp, k->loop->regions[0], enter_own, NULL);
    slice_add(&sl, op_operand(second, DOT_LEFT));
    return slice_has(&sl, k->w1);
}

static bool
plan(Plan *k)
{
    map_init(&k->second, &k->s->tmp);
    map_init(&k->ends, &k->s->tmp);
    map_init(&k->late, &k->s->tmp);
    map_init(&k->in_second, &k->s->tmp);
    if (attr_has(&k->loop->attrs, ATTR_ONCE) || !find_dots(k, true) ||
        (k->n2 > 1 && !rings_are_deep(k->loop)))
        return false;
    for (int i = 0; i < k->n2; i++)
        if (!depends(k, k->d2[i]))
            return false;
    return loop_step(k->loop) && find_second(k) && find_late(k);
}

/* ---- the schedule */

/* The first dots with what they need; the second ones with what they need; the other work
   on the results of the first; waiting for the second, and what depends on it; what the
   first stage needs of that. */
static void
schedule(Plan *k)
{
    enum { FIRST, SECOND, WORK, ENDS, LATE };
    const Op *last = k->d2[k->n2 - 1];
    int first = FIRST, second = SECOND;
    region_each(k->loop->regions[0], op) {
        if (op_is(op, T_TERMINATOR))
            break;
        if (map_has(&k->second, op))
            rotation_set(k->s, op, 1, map_has(&k->ends, op) ? ENDS : second);
        else
            rotation_set(k->s, op, 0, map_has(&k->late, op) ? LATE : first);
        first = op == k->e1 ? WORK : first;
        second = op == last ? ENDS : second;
    }
    if (k->pingpong)
        attr_set_flag(&k->s->mod, &k->loop->attrs, ATTR_PINGPONG);
}

static bool
visit(Session *s, Region *r, int warps)
{
    bool changed = false;
    region_each(r, op) {
        const Attr *roles = attr_find(&op->attrs, ATTR_WARPS);
        Plan k = {.s = s, .loop = op, .pingpong = warps >= PINGPONG_WARPS};
        for (int i = 0; i < op->nregion; i++) {
            bool role = op->kind == OP_WARP_SPECIALIZE;
            int own = role ? (int)roles->v.ints[i] : warps;
            bool in = visit(s, op->regions[i], own);
            if (role && in && own >= PINGPONG_WARPS) {
                Builder b = builder_before(op->regions[i]->first);
                build_op(&b, OP_PINGPONG_OPEN, NULL, 0, NULL, NULL, 0);
            }
            changed |= in;
        }
        Plan seen = k;
        bool deep = op->kind == OP_FOR && warps && rings_are_deep(op);
        if (deep && find_dots(&seen, false))
            join_sums(op->regions[0], false);
        if (op->kind == OP_FOR && warps && !loop_is_rotated(op) && plan(&k)) {
            schedule(&k);
            changed = true;
        }
    }
    return changed;
}

bool
pass_rotate_loop(Func *f, PassCx *cx)
{
    return visit(cx->s, f->body, 0);
}

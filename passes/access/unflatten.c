/* A loop that goes through the steps of one tile after another becomes a loop over tiles
   with a loop over steps in it.

       for %i = 0, %K * %T, 1                    for %t = 0, %K > 0 ? %T : 0, 1
               (%k = -1, %x = .., %s = 0) {              (%x = .., %s = 0) {
         %k1 = %k == %K - 1 ? 0 : %k + 1           %x1 = ..
         %x1 = if %k1 == 0 { .. } else { %x }      %s1 = for %k1 = 0, %K, 1 (%a = %s) {
         %s1 = dot .. %x1 .. %s              =>      %s1 = dot .. %x1 .. %a }
         %s2 = if %k1 == %K - 1 {                  store %s1
           store %s1                               yield %x1, 0
           yield 0                               }
         } else { %s1 }
         yield %k1, %x1, %s2
       }

   Persistent kernels were written that way so that a compiler which pipelines single
   loops loads the next tile meanwhile. The loop over steps is a sum of dots like any
   other, whose addresses are rows and columns: TMA loads them, a producer goes on to the
   next tile while this one is stored, and its results are stored by TMA.

   What the first step of a tile does moves in front of the inner loop, what the last one
   does behind it. That needs no guard, since a tile has a step: without steps there are
   no tiles. Nothing changes unless all such conditions can be moved: a condition that
   stays is what the inner loop was to be rid of.

   The number of iterations is a product of two counts. Like all index arithmetic it is
   assumed not to wrap, and two negative ones are no counts. */
#include "ir/analysis/affine.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "passes/pass.h"

#include <string.h>

enum { FAR = 16 };

typedef Vec(Op *) OpVec;

typedef struct Flat {
    Session *s;
    Op *loop;
    Region *body;
    int at;        /* number of the carried value that counts steps */
    Value *step;   /* which step of its tile an iteration is */
    Poly last;     /* number of a tile's last step */
    Value *period; /* the steps of a tile */
    Value *times;  /* tiles */
    OpVec first, end; /* conditions for the first step, for the last one */
} Flat;

/* ---- the numbers */

static bool
poly_of(const Value *v, Poly *p)
{
    Affine a;
    if (v->type->kind != TY_SCALAR || !affine_of(v, NULL, &a) || a.ptr)
        return false;
    *p = a.base;
    return true;
}

static bool
is_poly(const Value *v, const Poly *p)
{
    Poly mine;
    return poly_of(v, &mine) && poly_same(&mine, p);
}

/* Is v the sum of `of` and 1? */
static bool
is_behind(const Value *v, const Value *of)
{
    const Op *sum = value_def(v, OP_ADD);
    return sum && op_operand(sum, 0) == of && value_is_int(op_operand(sum, 1), 1);
}

/* Is v chosen by a condition, of a select or an `if`? */
static bool
is_chosen(const Value *v, const Value **cond, const Value **yes, const Value **no)
{
    const Op *op = v->op;
    if (!op || (op->kind != OP_SELECT && op->kind != OP_IF))
        return false;
    bool select = op->kind == OP_SELECT;
    *cond = op_operand(op, 0);
    *yes = select ? op_operand(op, 1) : op_operand(op->regions[0]->last, v->index);
    *no = select ? op_operand(op, 2) : op_operand(op->regions[1]->last, v->index);
    return true;
}

/* The comparison of two integers for equality that v is; else NULL. */
static const Op *
equality(const Value *v)
{
    const Op *op = value_def(v, OP_CMPI);
    return op && strcmp(attr_str(&op->attrs, ATTR_PRED), "eq") == 0 ? op : NULL;
}

/* Is `next` the number behind arg, and 0 behind the last one? Sets fl->last. */
static bool
goes_round(Flat *fl, const Value *next, const Value *arg)
{
    Poly one = poly_const(1);
    const Value *cond, *yes, *no;
    const Op *rest = value_def(next, OP_REMS);
    if (rest)
        return is_behind(op_operand(rest, 0), arg) &&
               poly_of(op_operand(rest, 1), &fl->last) && poly_add(&fl->last, &one, -1);
    const Op *is = is_chosen(next, &cond, &yes, &no) ? equality(cond) : NULL;
    if (!is || !value_is_int(yes, 0) || !is_behind(no, arg))
        return false;
    for (int i = 0; i < 2; i++) {
        const Value *x = op_operand(is, i), *end = op_operand(is, !i);
        if (x == arg && poly_of(end, &fl->last))
            return true;
        if (is_behind(x, arg) && poly_of(end, &fl->last))
            return poly_add(&fl->last, &one, -1);
    }
    return false;
}

/* Do all uses of v in the body serve to compute `to` alone? */
static bool
serves_only(const Flat *fl, const Value *v, const Value *to, int depth)
{
    value_each_use(v, u)
    {
        const Op *op = op_in_region(u->user, fl->body);
        if (!op || op->nresult != 1 || !op_is_pure(op) || depth > 2 ||
            (op != to->op && !serves_only(fl, &op->results[0], to, depth + 1)))
            return false;
    }
    return true;
}

/* Does the loop carry the number of the step, counted from 0 again and again? It may
   count before it uses the number or afterwards. */
static bool
counts_steps(Flat *fl, int i)
{
    Value *arg = fl->body->args[i + 1], *next = op_operand(fl->body->last, i);
    const Value *init = op_operand(fl->loop, 3 + i);
    bool before = value_is_int(init, -1);
    if ((!before && !value_is_int(init, 0)) || fl->loop->results[i].uses ||
        arg->type != fl->body->args[0]->type || !goes_round(fl, next, arg) ||
        (before && !serves_only(fl, arg, next, 0)))
        return false;
    fl->at = i;
    fl->step = before ? next : arg;
    return true;
}

/* Is the number of iterations a multiple of that of steps? */
static bool
is_product(Flat *fl)
{
    const Op *op = value_def(op_operand(fl->loop, 1), OP_MUL);
    Poly period = fl->last, one = poly_const(1);
    if (!op || !poly_add(&period, &one, 1))
        return false;
    for (int i = 0; i < 2; i++)
        if (is_poly(op_operand(op, i), &period)) {
            fl->period = op_operand(op, i);
            fl->times = op_operand(op, !i);
            return true;
        }
    return false;
}

/* ---- which conditions can be moved */

static bool
is_among(const OpVec *ops, const Op *op)
{
    for (int i = 0; i < ops->n; i++)
        if (ops->at[i] == op)
            return true;
    return false;
}

/* Do the ops of the arm, which runs in all steps but one, do no harm in that one? */
static bool
is_harmless(const Region *arm)
{
    region_each(arm, op) if (op != arm->last && !op_is(op, T_PURE | T_SPEC)) return false;
    return true;
}

/* The number of the value that the loop carries to arg; -1: none, or the steps. */
static int
carried(const Flat *fl, const Value *arg)
{
    bool is = arg->region == fl->body && arg->index > 0 && arg->index - 1 != fl->at;
    return is ? arg->index - 1 : -1;
}

/* Is v known in front of the first step? */
static bool
known_before(const Flat *fl, const Value *v, int depth)
{
    const Op *op = v->op;
    if (value_outside(v, fl->body) || v == fl->step || carried(fl, v) >= 0 ||
        is_among(&fl->first, op))
        return true;
    if (!op || depth > FAR || op->parent != fl->body || op->nregion || !op_is_pure(op))
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!known_before(fl, op_operand(op, i), depth + 1))
            return false;
    return true;
}

/* The number of the carried value that op, a condition for the first step, sets to its
   result j and leaves as it is in other steps; -1: none. Nothing else may use the value
   that it had. */
static int
sets(const Flat *fl, const Op *op, int j)
{
    const Value *old = op_operand(op->regions[1]->last, j);
    int i = carried(fl, old);
    value_each_use(old, u)
    {
        const Op *at = op_in_region(u->user, fl->body);
        bool own = u->user == op->regions[1]->last && u->index == j;
        if (!own && (at != op || region_within(u->user->parent, op->regions[1])))
            return -1;
    }
    return i;
}

/* Is v known behind the last step? */
static bool
known_behind(const Flat *fl, const Value *v, int depth)
{
    const Op *op = v->op, *yield = fl->body->last;
    int arg = carried(fl, v);
    if (value_outside(v, fl->body) || v == fl->step ||
        (arg >= 0 && op_operand(yield, arg) == v))
        return true;
    for (int i = 0; i < yield->noperand; i++) {
        const Value *next = op_operand(yield, i);
        if (is_among(&fl->end, next->op))
            next = op_operand(next->op->regions[1]->last, next->index);
        if (next == v)
            return true;
    }
    if (!op || depth > FAR || op->parent != fl->body || op->nregion || !op_is_pure(op))
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!known_behind(fl, op_operand(op, i), depth + 1))
            return false;
    return true;
}

typedef bool Known(const Flat *fl, const Value *v, int depth);

/* Are all values known that the arm takes from the body around it? */
static bool
arm_is_known(const Flat *fl, const Region *arm, Known *known)
{
    region_each_deep(arm, op)
    {
        for (int i = 0; i < op->noperand; i++) {
            const Value *v = op_operand(op, i);
            bool own = v->op ? region_within(v->op->parent, arm)
                             : region_within(v->region, arm);
            if (!own && !known(fl, v, 0))
                return false;
        }
    }
    return true;
}

static bool
may_swap(const Op *a, const Op *b)
{
    OpEffects x = op_effects(a), y = op_effects(b);
    bool quiet = !x.keep && !y.keep && !x.convergent && !y.convergent;
    return op_is_pure(a) || op_is_pure(b) || (quiet && !x.writes && !y.writes);
}

static bool
can_go_first(const Flat *fl, const Op *op)
{
    for (const Op *over = fl->body->first; over != op; over = over->next)
        if (!is_among(&fl->first, over) && !may_swap(over, op))
            return false;
    for (int j = 0; j < op->nresult; j++)
        if (op->results[j].uses && sets(fl, op, j) < 0)
            return false;
    return is_harmless(op->regions[1]) && arm_is_known(fl, op->regions[0], known_before);
}

static bool
can_go_last(const Flat *fl, const Op *op)
{
    for (const Op *over = op->next; over->next; over = over->next)
        if (!is_among(&fl->end, over) && !may_swap(over, op))
            return false;
    for (int j = 0; j < op->nresult; j++)
        value_each_use(&op->results[j], u) if (u->user != fl->body->last) return false;
    return is_harmless(op->regions[1]) && arm_is_known(fl, op->regions[0], known_behind);
}

/* Finds the conditions for the first and for the last step. */
static bool
find_conditions(Flat *fl)
{
    region_each(fl->body, op)
    {
        const Op *is = op->kind == OP_IF ? equality(op_operand(op, 0)) : NULL;
        for (int i = 0; is && i < 2; i++) {
            const Value *with = op_operand(is, !i);
            if (op_operand(is, i) != fl->step)
                continue;
            if (value_is_int(with, 0)) {
                if (!can_go_first(fl, op))
                    return false;
                vec_push(&fl->s->tmp, &fl->first, op);
            } else if (is_poly(with, &fl->last)) {
                vec_push(&fl->s->tmp, &fl->end, op);
            }
        }
    }
    for (int k = 0; k < fl->end.n; k++)
        if (!can_go_last(fl, fl->end.at[k]))
            return false;
    return fl->first.n + fl->end.n > 0;
}

/* ---- building */

/* The loop over tiles around the one over steps. Both carry what the loop carried. */
static void
nest(Flat *fl)
{
    Op *loop = fl->loop;
    Vec(Value *) inits = {0}, nexts = {0};
    for (int i = 0; i < loop->nresult; i++)
        vec_push(&fl->s->tmp, &inits, op_operand(loop, 3 + i));
    Builder b = builder_before(loop);
    b.loc = loop->loc;
    Value *none = build_int(&b, fl->period->type, 0);
    Value *some = build_cmp(&b, OP_CMPI, "sgt", fl->period, none);
    Value *tiles = build_select(&b, some, fl->times, none);
    Op *outer = build_for(&b, none, tiles, op_operand(loop, 2), inits.at, inits.n);
    Region *in = outer->regions[0];
    op_move_to_end(loop, in);
    for (int i = 0; i < loop->nresult; i++) {
        in->args[i + 1]->name = fl->body->args[i + 1]->name;
        value_replace(&loop->results[i], &outer->results[i]);
        op_set_operand(loop, 3 + i, in->args[i + 1]);
        vec_push(&fl->s->tmp, &nexts, &loop->results[i]);
    }
    Builder end = builder_at_end(b.func, in);
    end.loc = loop->loc;
    build_yield(&end, nexts.at, nexts.n);
    op_set_operand(loop, 1, fl->period);

    Value *arg = fl->body->args[fl->at + 1], *k = fl->body->args[0];
    Builder front = builder_before(fl->body->first);
    front.loc = loop->loc;
    if (k->uses) {
        Value *before = build_binary(&front, OP_MUL, in->args[0], fl->period);
        Value *now = build_binary(&front, OP_ADD, before, k);
        value_replace(k, now);
        op_set_operand(now->op, 1, k);
    }
    k->name = fl->step->name;
    value_replace(fl->step, k);
    value_replace(arg, k);
    op_set_operand(fl->body->last, fl->at, arg);
    fl->step = k;
}

/* The arm of the other steps goes in front of the condition. */
static void
open_arm(Op *op)
{
    Region *arm = op->regions[1];
    while (arm->first != arm->last)
        op_move_before(arm->first, op);
}

/* Where an arm goes, and what its values are there. */
typedef struct Place {
    Flat *fl;
    Builder b;
    Map map;
} Place;

/* Makes v, which the body knows, known at the new place. */
static void
bring(Place *p, Value *v)
{
    Op *op = v->op;
    if (value_outside(v, p->fl->body) || map_has(&p->map, v))
        return;
    for (int i = 0; i < op->noperand; i++)
        bring(p, op_operand(op, i));
    p->b.loc = op->loc;
    op_clone(&p->b, op, &p->map);
}

static void
bring_arm(Place *p, const Region *arm)
{
    region_each_deep(arm, op)
    {
        for (int i = 0; i < op->noperand; i++) {
            Value *v = op_operand(op, i);
            bool own = v->op ? region_within(v->op->parent, arm)
                             : region_within(v->region, arm);
            if (!own)
                bring(p, v);
        }
    }
    region_clone_into(&p->b, arm, &p->map);
}

static void
move_first(Flat *fl, Op *op)
{
    Place p = {.fl = fl, .b = builder_before(fl->loop)};
    const Op *yield = op->regions[0]->last;
    open_arm(op);
    map_init(&p.map, &fl->s->tmp);
    p.b.loc = op->loc;
    map_set(&p.map, fl->step, build_int(&p.b, fl->step->type, 0));
    for (int i = 0; i < fl->loop->nresult; i++)
        map_set(&p.map, fl->body->args[i + 1], op_operand(fl->loop, 3 + i));
    bring_arm(&p, op->regions[0]);
    for (int j = 0; j < op->nresult; j++) {
        Value *old = op_operand(op->regions[1]->last, j);
        if (!op->results[j].uses)
            continue;
        op_set_operand(fl->loop, 3 + carried(fl, old),
                       value_mapped(&p.map, op_operand(yield, j)));
        value_replace(&op->results[j], old);
    }
    op_erase(op);
}

static void
move_last(Flat *fl, Op *op)
{
    Op *next = fl->body->last, *outer = fl->loop->parent->last;
    const Op *stored = op->regions[0]->last;
    Place p = {.fl = fl, .b = builder_before(outer)};
    open_arm(op);
    map_init(&p.map, &fl->s->tmp);
    p.b.loc = op->loc;
    Value *one = build_int(&p.b, fl->step->type, 1);
    map_set(&p.map, fl->step, build_binary(&p.b, OP_SUB, fl->period, one));
    Vec(int) set = {0}, from = {0};
    for (int i = 0; i < next->noperand; i++) {
        Value *v = op_operand(next, i);
        if (v->op == op) {
            vec_push(&fl->s->tmp, &set, i);
            vec_push(&fl->s->tmp, &from, v->index);
            v = op_operand(op->regions[1]->last, v->index);
            op_set_operand(next, i, v);
        }
        bool same = v == fl->body->args[i + 1];
        if (!value_outside(v, fl->body))
            map_set(&p.map, v,
                    same ? op_operand(fl->loop, 3 + i) : &fl->loop->results[i]);
    }
    bring_arm(&p, op->regions[0]);
    for (int k = 0; k < set.n; k++)
        op_set_operand(outer, set.at[k],
                       value_mapped(&p.map, op_operand(stored, from.at[k])));
    op_erase(op);
}

static bool
visit(void *user, Op *op)
{
    PassCx *cx = user;
    Flat fl = {.s = cx->s, .loop = op};
    bool found = false;
    if (op->kind != OP_FOR || !value_is_int(op_operand(op, 0), 0) ||
        !value_is_int(op_operand(op, 2), 1))
        return false;
    fl.body = op->regions[0];
    for (int i = 0; i < op->nresult && !found; i++)
        found = counts_steps(&fl, i) && is_product(&fl);
    if (!found || !find_conditions(&fl))
        return false;
    nest(&fl);
    for (int i = 0; i < fl.first.n; i++)
        move_first(&fl, fl.first.at[i]);
    for (int i = 0; i < fl.end.n; i++)
        move_last(&fl, fl.end.at[i]);
    return true;
}

bool
pass_unflatten(Func *f, PassCx *cx)
{
    return pass_walk(f->body, visit, cx);
}

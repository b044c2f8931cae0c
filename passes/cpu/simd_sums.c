/* A loop that carries a tile only to reduce it behind the loop carries the reduced tile.

   A carried tile is read and written in every iteration; its reduction is one register,
   or few numbers. Reducing in each iteration costs less than that, except for a tile of
   one strip, which is kept in registers.

       %t = for .. (%p = 0) : tile<8x1024xf32> {     %s = for .. (%p = 0) : tile<8xf32> {
         %q = addf %p, %x                              %r = reduce %x {axis=1} add
         yield %q                              =>      %q = addf %p, %r
       }                                               yield %q
       %s = reduce %t {axis=1} add                   }

   This is also done for loops that go on with the tile of a loop before them, such as the
   iteration that pass peel takes out, and for maxima and the like. Along columns memory
   is then read a strip of each row at a time, which costs less than the carried tile did.
   Numbers are added in another order than in the source.

   Scalars are moved right in front of their users, so that two reductions share a nest if
   nothing between them needs the result of the first. */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"
#include "ir/edit.h"
#include "ir/fold.h"

enum { MOST_LINKS = 8 };

/* A part of the chain from the first tile to the reduction: a loop that adds x to a
   carried tile in each iteration, or, if loop is NULL, one addition of x. */
typedef struct Link {
    Op *loop;
    int i;    /* which of its carried values */
    Op *step; /* the addition */
    Value *x;
} Link;

typedef struct Sum {
    Simd *n;
    Link at[MOST_LINKS];
    int links;
    const Op *like; /* a reduction behind the chain */
} Sum;

static bool
find_step(Link *l)
{
    Region *body = l->loop->regions[0];
    Value *arg = body->args[l->i + 1], *end = op_operand(body->last, l->i);
    Op *step = end->op;
    if (!step || step->parent != body || step->noperand != 2 || step->nregion ||
        value_only_user(end) != body->last || value_only_user(arg) != step)
        return false;
    l->step = step;
    l->x = op_operand(step, op_operand(step, 0) == arg);
    return true;
}

static Value *
result_of(const Link *l)
{
    return l->loop ? op_result(l->loop, l->i) : op_result(l->step, 0);
}

/* The link that uses the result of `from` by the same operation; false: there is none. */
static bool
next_link(const Link *from, Link *to)
{
    Value *v = result_of(from);
    Op *user = value_only_user(v);
    if (!user)
        return false;
    if (user->kind == from->step->kind && user->noperand == 2 &&
        user->parent == (from->loop ? from->loop : from->step)->parent) {
        *to = (Link){.step = user, .x = op_operand(user, op_operand(user, 0) == v)};
        return true;
    }
    *to = (Link){.loop = user, .i = v->uses->index - 3};
    return user->kind == OP_FOR && to->i >= 0 && find_step(to) &&
           to->step->kind == from->step->kind;
}

/* ---- may it be done? */

static bool
neutral(const Op *reduce, Const *c)
{
    return simd_identity(reduce, &c->f, &c->i, &c->is_float);
}

/* Is the result of the chain only reduced, by the operation of its links, along one
   dimension? */
static bool
only_reduced(Sum *s)
{
    Value *all = result_of(&s->at[s->links - 1]);
    s->like = all->uses ? all->uses->user : NULL;
    value_each_use(all, u) {
        const Op *r = u->user;
        Const c;
        if (r->kind != OP_REDUCE || !neutral(r, &c) ||
            r->regions[0]->first->kind != s->at[0].step->kind ||
            attr_int(&r->attrs, ATTR_AXIS, 0) != attr_int(&s->like->attrs, ATTR_AXIS, 0))
            return false;
    }
    return s->like != NULL;
}

/* Does the chain begin with a constant that reducing leaves as it is? */
static bool
begins_neutral(const Sum *s, Const *c)
{
    const Link *l = &s->at[0];
    Const zero;
    if (!value_const(op_operand(l->loop, 3 + l->i), c) || !neutral(s->like, &zero))
        return false;
    switch ((int)l->step->kind) {
    case OP_ADDF:
    case OP_MULF: return c->f == zero.f;
    case OP_ADD:
    case OP_MUL:
    case OP_XOR: return c->i == zero.i;
    default: return true; /* x op x is x */
    }
}

static bool
is_strip(const Simd *n, const Type *t)
{
    int bits = type_bits(type_elem(t)), lanes = n->vector_bytes > 32 ? 64 : 32;
    return type_numel(t) * max_i64(bits, 32) <= 32 * lanes;
}

/* ---- the loops */

static Value *
reduced(const Sum *s, Builder *b, Value *v)
{
    const Region *from = s->like->regions[0];
    Map map;
    map_init(&map, s->n->tmp);
    Op *op = build_op(b, OP_REDUCE, &v, 1, &s->like->attrs, NULL, 1);
    Region *r = region_new(s->n->f, op);
    for (int i = 0; i < from->narg; i++)
        map_set(&map, from->args[i], region_arg(r, from->args[i]->type, NULL));
    Builder in = builder_at_end(s->n->f, r);
    region_clone_into(&in, from, &map);
    Value *y = map_get(&map, op_operand(from->last, 0));
    build_yield(&in, &y, 1);
    return op_result(op, 0);
}

/* Rewrites a link to begin with `init`; returns its new result. */
static Value *
carry(const Sum *s, Link *l, Value *init)
{
    Builder b = builder_before(l->step);
    b.loc = l->step->loc;
    Value *in[2] = {init, reduced(s, &b, l->x)}, *old = result_of(l);
    if (l->loop) {
        in[0] = l->loop->regions[0]->args[l->i + 1];
        op_set_operand(l->loop, 3 + l->i, init);
        value_set_type(in[0], init->type);
        value_set_type(old, init->type);
    }
    Op *now = build_op(&b, l->step->kind, in, 2, &l->step->attrs, NULL, 1);
    if (l->loop)
        op_set_operand(l->loop->regions[0]->last, l->i, op_result(now, 0));
    else
        value_replace(old, op_result(now, 0));
    op_erase(l->step);
    l->step = now;
    return result_of(l);
}

static void
rewrite(Sum *s)
{
    Const c;
    while (s->links < MOST_LINKS && next_link(&s->at[s->links - 1], &s->at[s->links]))
        s->links++;
    const Type *t = result_of(&s->at[0])->type;
    if (t->kind != TY_TILE || !only_reduced(s) || !begins_neutral(s, &c) ||
        is_strip(s->n, t))
        return;
    Builder b = builder_before(s->at[0].loop);
    b.loc = s->at[0].loop->loc;
    const Type *few = op_result(s->like, 0)->type;
    Value *sum = c.is_float ? build_float(&b, few, c.f) : build_int(&b, few, c.i);
    for (int k = 0; k < s->links; k++)
        sum = carry(s, &s->at[k], sum);
    value_each_use(sum, u) {
        Op *old = u->user;
        value_replace(op_result(old, 0), sum);
        op_erase(old);
    }
}

static void
rewrite_loops(Simd *n, Region *r, int nesting)
{
    if (nesting > MAX_REGION_DEPTH)
        return;
    for (Op *op = r->first; op; op = op->next) {
        for (int i = 0; i < op->nregion; i++)
            rewrite_loops(n, op->regions[i], nesting + 1);
        for (int i = 0; op->kind == OP_FOR && i < op->nresult; i++) {
            Sum s = {.n = n, .links = 1, .at[0] = {.loop = op, .i = i}};
            if (find_step(&s.at[0]))
                rewrite(&s);
        }
    }
}

static void
sink_scalars(Region *r, int nesting)
{
    if (nesting > MAX_REGION_DEPTH)
        return;
    for (Op *op = r->last, *prev; op; op = prev) {
        prev = op->prev;
        for (int i = 0; i < op->nregion; i++)
            sink_scalars(op->regions[i], nesting + 1);
        Op *user = op->nresult == 1 ? value_only_user(op_result(op, 0)) : NULL;
        if (user && user->parent == r && user != op->next && op_is(op, T_ELEMENTWISE) &&
            op_is_pure(op) && !simd_tile(op_result(op, 0)))
            op_move_before(op, user);
    }
}

void
simd_sums(Simd *n)
{
    rewrite_loops(n, n->f->body, 0);
    sink_scalars(n->f->body, 0);
}

/* Values crossing the edge of a region: a tuple or descriptor is several IR values.
   And the runtime `if`, whose result types are known only once both arms are built. */
#include "frontend/sema.h"

#include "ir/edit.h"

#include <string.h>

static void
push(Sema *s, Flat *out, Value *v)
{
    vec_push(s->a, out, v);
}

void
flatten(Sema *s, Val v, Flat *out)
{
    switch (v->kind) {
    case FE_TENSOR:
    case FE_BLOCK_PTR: push(s, out, v->v); break;
    case FE_DESC:
        push(s, out, v->v);
        for (int i = 0; i < 2 * v->rank; i++)
            flatten(s, v->u.items[i], out);
        break;
    case FE_TUPLE:
        for (int i = 0; i < v->n; i++)
            flatten(s, v->u.items[i], out);
        break;
    default: break;
    }
}

Val
unflatten(Sema *s, Val like, Value *const *at, int *next)
{
    if (val_is_const(like))
        return like;
    FeVal *v = val_new(s, like->kind);
    *v = *like;
    if (like->kind != FE_TUPLE)
        v->v = at[(*next)++];
    int n = like->kind == FE_TUPLE ? like->n : like->kind == FE_DESC ? 2 * like->rank : 0;
    if (n) {
        Val *items = arena_array(s->a, Val, n);
        for (int i = 0; i < n; i++)
            items[i] = unflatten(s, like->u.items[i], at, next);
        v->u.items = items;
    }
    return v;
}

Branch
branch_begin(Sema *s, Val cond)
{
    Branch br = { 0 };
    br.op = build_if(&s->b, cond->v, NULL, 0);
    br.outside = s->b;
    return br;
}

void
branch_arm(Sema *s, Branch *br, int arm)
{
    s->b.region = br->op->regions[arm];
    s->b.before = NULL;
}

void
branch_end(Sema *s, Branch *br)
{
    int n = br->arm[0].n;
    for (int arm = 0; arm < 2; arm++) {
        branch_arm(s, br, arm);
        build_yield(&s->b, br->arm[arm].at, n);
    }
    Loc loc = s->b.loc;
    s->b = br->outside;
    s->b.loc = loc;
    const Type **types = arena_array(s->a, const Type *, n + 1);
    for (int i = 0; i < n; i++)
        types[i] = br->arm[0].at[i]->type;
    op_add_results(br->op, types, n);
}

Val
branch_result(Sema *s, Branch *br, Val like, int *at)
{
    Flat all = { 0 };
    for (int i = 0; i < br->op->nresult; i++)
        push(s, &all, op_result(br->op, i));
    return unflatten(s, like, all.at, at);
}

Val
runtime_ifexp(Sema *s, const Node *n, Val cond)
{
    Branch br = branch_begin(s, cond);
    Val arm[2];
    for (int i = 0; i < 2; i++) {
        branch_arm(s, &br, i);
        const Node *e = i ? n->c : n->b;
        arm[i] = eval(s, e);
        if (arm[i]->kind != FE_NONE) /* a() if c else b() of calls without a result */
            arm[i] = to_tensor(s, arm[i], e->loc);
    }
    bool ok = !val_is_error(arm[0]) && !val_is_error(arm[1]);
    if (ok && !val_same_type(arm[0], arm[1])) {
        sema_error(s, n->loc, "Ternary expression with dynamic condition has "
                   "inconsistent types %s and %s", val_describe(s->a, arm[0]),
                   val_describe(s->a, arm[1]));
        ok = false;
    }
    for (int i = 0; ok && i < 2; i++)
        flatten(s, arm[i], &br.arm[i]);
    branch_end(s, &br);
    int at = 0;
    return ok ? branch_result(s, &br, arm[0], &at) : val_error();
}

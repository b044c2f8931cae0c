/* tl.map_elementwise, see lanes.h. */
#include "frontend/lanes.h"

#include "ir/base/util.h"

#include <string.h>

Val
lanes_spread(Sema *s, Val v, Loc loc)
{
    if (!s->lanes)
        return v;
    if (v->kind == FE_TENSOR && !v->rank)
        return splat(s, v, s->lanes->shape, loc);
    return v;
}

static Val
both(Sema *s, Val x, Val y)
{
    return x ? val_tensor(s, build_binary(&s->b, OP_AND, x->v, y->v), DT_INT1) : y;
}

Val
lanes_enter(Sema *s, Val cond, bool holds, Loc loc)
{
    Val outer = s->lanes->active;
    Val here = holds ? cond : tensor_not(s, cond, loc);
    if (!val_is_error(here))
        s->lanes->active = both(s, outer, here);
    return outer;
}

void
lanes_leave(Sema *s, Val active)
{
    s->lanes->active = active;
}

Val
lanes_start(Sema *s, Loc loc)
{
    Val one = const_tensor(s, val_int(s, 1), DT_INT1, loc);
    return s->lanes->active ? s->lanes->active : splat(s, one, s->lanes->shape, loc);
}

Val
lanes_select(Sema *s, Val cond, Val x, Val y, Loc loc)
{
    if (x == y || val_is_error(x) || val_is_error(y))
        return val_is_error(y) ? y : x;
    if (x->kind == FE_TUPLE && y->kind == FE_TUPLE && x->n == y->n &&
        !x->self == !y->self && (!x->self || x->self->u.class_ == y->self->u.class_)) {
        Val *items = arena_array(s->a, Val, x->n + 1);
        for (int i = 0; i < x->n; i++)
            items[i] = lanes_select(s, cond, x->u.items[i], y->u.items[i], loc);
        return val_tuple_like(s, x, items);
    }
    bool numbers = val_is_number(x) || val_is_number(y);
    if (val_is_const(x) && val_is_const(y) && val_same_type(x, y))
        return x;
    if (numbers && (val_is_number(x) || val_is_tensor(x)) &&
        (val_is_number(y) || val_is_tensor(y))) {
        x = to_tensor(s, x, loc);
        y = to_tensor(s, y, loc);
    }
    if (x->kind != FE_TENSOR || y->kind != FE_TENSOR || x->dt != y->dt)
        return sema_error(s, loc, "the elements of 'map_elementwise' need values of one "
                          "type, found %s and %s", val_describe(s->a, x),
                          val_describe(s->a, y));
    return tensor_where(s, cond, lanes_spread(s, x, loc), lanes_spread(s, y, loc), loc);
}

Val
lanes_any(Sema *s, Val cond, Loc loc)
{
    Val args[2] = {cond, val_none()};
    struct Lanes *lanes = s->lanes;
    s->lanes = NULL; /* a reduction is of the tile */
    Val any = call_tl(s, "reduce_or", args, 2, loc);
    s->lanes = lanes;
    Op *op = val_is_error(any) ? NULL : value_def(any->v, OP_REDUCE);
    if (op)
        attr_set_flag(&s->s->mod, &op->attrs, ATTR_OWN);
    return any;
}

bool
lanes_guard(Sema *s, Args *a)
{
    static const char pointer[] = "pointer,";
    if (!s->lanes || !a->b->params ||
        strncmp(a->b->params, pointer, sizeof pointer - 1) != 0 ||
        a->v[0]->kind != FE_TENSOR)
        return true;
    a->v[0] = lanes_spread(s, a->v[0], a->at[0]);
    if (!s->lanes->active)
        return true;
    for (int i = 1; strstr(a->b->params, "mask=") && i < MAX_ARGS; i++) {
        if (strcmp(arg_name(s, a, i), "mask") != 0)
            continue;
        Val mask = s->lanes->active;
        if (!arg_none(a, i)) {
            if (!arg_tensor(s, a, i))
                return false;
            Val own = lanes_spread(s, cast_i1(s, a->v[i], a->at[i]), a->at[i]);
            mask = val_is_error(own) ? own : both(s, mask, own);
        }
        a->v[i] = mask;
        return !val_is_error(mask);
    }
    sema_error(s, a->loc, "'%s' cannot be under a condition in the function of "
               "'map_elementwise': it has no mask", a->b->name);
    return false;
}

/* The elements of a tile of one dimension in `pack` tiles: number i has every pack-th
   element from i on. */
static bool
unpack(Sema *s, Val x, int64_t pack, Val *out, Loc loc)
{
    if (pack == 1) {
        out[0] = x;
        return !val_is_error(x);
    }
    Val half[MAX_ARGS];
    Val pairs = reshape(s, x, (Shape){2, {x->shape[0] / 2, 2}}, false, loc);
    Val two = val_is_error(pairs) ? pairs : call_tl(s, "split", &pairs, 1, loc);
    if (val_is_error(two))
        return false;
    for (int k = 0; k < 2; k++) {
        if (!unpack(s, two->u.items[k], pack / 2, half, loc))
            return false;
        for (int i = 0; i < pack / 2; i++)
            out[2 * i + k] = half[i];
    }
    return true;
}

static Val
repack(Sema *s, const Val *in, int64_t pack, Loc loc)
{
    if (pack == 1)
        return in[0];
    Val part[MAX_ARGS], two[2];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < pack / 2; i++)
            part[i] = in[2 * i + k];
        two[k] = repack(s, part, pack / 2, loc);
    }
    if (val_is_error(two[0]) || val_is_error(two[1]))
        return val_error();
    Val x = call_tl(s, "join", two, 2, loc);
    return val_is_error(x) ? x
                           : reshape(s, x, (Shape){1, {2 * x->shape[0]}}, false, loc);
}

/* The arguments in one shape, which is returned. */
static bool
common_shape(Sema *s, Args *a, Val *in, int n, Shape *sh)
{
    for (int i = 0; i < n; i++) {
        in[i] = to_tensor(s, a->v[1]->u.items[i], a->at[1]);
        if (val_is_error(in[i]))
            return false;
        if (in[i]->kind != FE_TENSOR) {
            sema_error(s, a->at[1], "'map_elementwise' takes tensors, found %s",
                       val_describe(s->a, in[i]));
            return false;
        }
    }
    for (int round = 0; round < 2; round++)
        for (int i = 1; i < n; i++)
            if (!broadcast_pair(s, &in[0], &in[i], a->loc))
                return false;
    *sh = val_shape(in[0]);
    return true;
}

static Val
collect_results(Sema *s, Args *a, Val got, Shape sh, int64_t pack)
{
    const Val *items = got->kind == FE_TUPLE ? got->u.items : &got;
    int n = got->kind == FE_TUPLE ? got->n : 1;
    if (n % pack || !n)
        return sema_error(s, a->at[0], "the function of 'map_elementwise' returns %d "
                          "values, which is no multiple of pack=%lld", n,
                          (long long)pack);
    Val *part = arena_array(s->a, Val, n), *out = arena_array(s->a, Val, n);
    for (int i = 0; i < n; i++) {
        Val v = to_tensor(s, items[i], a->at[0]);
        part[i] = lanes_spread(s, v, a->at[0]);
        if (val_is_error(part[i]))
            return part[i];
    }
    for (int i = 0; i < n / (int)pack; i++) {
        Val v = repack(s, part + i * pack, pack, a->loc);
        out[i] = val_is_error(v) ? v : reshape(s, v, sh, false, a->loc);
        if (val_is_error(out[i]))
            return out[i];
    }
    return n == pack ? out[0] : val_tuple(s, out, n / (int)pack);
}

Val
bi_map_elementwise(Sema *s, Args *a)
{
    int n = a->v[1]->n;
    int64_t pack;
    Shape sh;
    if (a->v[0]->kind != FE_FUNC && a->v[0]->kind != FE_BUILTIN)
        return sema_error(s, a->at[0], "'map_elementwise' needs a @triton.jit function, "
                          "found %s", val_describe(s->a, a->v[0]));
    if (!n)
        return sema_error(s, a->loc, "'map_elementwise' needs a tensor");
    if (!arg_int(s, a, 2, &pack))
        return val_error();
    Val *in = arena_array(s->a, Val, n);
    if (!common_shape(s, a, in, n, &sh))
        return val_error();
    int64_t numel = shape_numel(sh);
    if (!is_pow2(pack) || pack > MAX_ARGS || pack > numel)
        return sema_error(s, a->at[2], "'pack' of 'map_elementwise' is 1, 2, 4, 8 or 16 "
                          "and at most the number of elements, found %lld",
                          (long long)pack);
    Val *args = arena_array(s->a, Val, n * pack);
    for (int i = 0; i < n; i++) {
        Val flat = pack == 1 ? in[i]
                             : reshape(s, in[i], (Shape){1, {numel}}, false, a->loc);
        if (val_is_error(flat) || !unpack(s, flat, pack, args + i * pack, a->loc))
            return val_error();
    }
    struct Lanes lanes = {.shape = val_shape(args[0])}, *outer = s->lanes;
    s->lanes = lanes.shape.rank ? &lanes : NULL; /* of scalars: an ordinary call */
    Val got = call_function(s, a->v[0], args, n * (int)pack, a->loc);
    Val r = val_is_error(got) ? got : collect_results(s, a, got, sh, pack);
    s->lanes = outer;
    return r;
}

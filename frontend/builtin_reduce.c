/* Reductions and scans: an op with a region that is the combine function, inlined on
   scalars. */
#include "frontend/ast.h"
#include "frontend/builtin.h"
#include "frontend/hint.h"

#include <string.h>

/* The inputs as tensors of one shape; false after an error. */
static bool
take_inputs(Sema *s, Args *a, const Val **items, int *n)
{
    if (a->v[0]->kind != FE_TUPLE && !arg_tensor(s, a, 0))
        return false;
    Val in = a->v[0];
    *n = in->kind == FE_TUPLE ? in->n : 1;
    Val *all = arena_array(s->a, Val, *n + 1);
    for (int i = 0; i < *n; i++) {
        all[i] = in->kind == FE_TUPLE ? in->u.items[i] : in;
        if (val_is_error(all[i]))
            return false;
        if (all[i]->kind != FE_TENSOR || !all[i]->rank) {
            sema_error(s, a->at[0], "'%s' needs a tensor of rank 1 or more, found %s%s",
                       a->b->name, val_describe(s->a, all[i]),
                       hint_larger(a->b->name, "axis"));
            return false;
        }
        if (!shape_eq(val_shape(all[i]), val_shape(all[0]))) {
            sema_error(s, a->at[0],
                       "the inputs of '%s' must have one shape, found %s and "
                       "%s",
                       a->b->name, val_describe(s->a, all[0]),
                       val_describe(s->a, all[i]));
            return false;
        }
    }
    *items = all;
    if (*n == 0)
        sema_error(s, a->at[0], "'%s' needs at least one input", a->b->name);
    return *n > 0;
}

/* A function of so many values, two of each input; a '*' takes any number. */
static bool
combine_takes(Sema *s, Args *a, Val fn, int n)
{
    const Node *f = fn->kind == FE_FUNC ? fn->u.func : NULL;
    const NodeList *l = f ? &f->list : NULL;
    int least = 0, most = 0;
    for (int i = 0; l && i < l->n; i++) {
        if (l->at[i]->sub == PK_ARGS)
            return true;
        most += !l->at[i]->named_only;
        least += !l->at[i]->named_only && !l->at[i]->b;
    }
    if (!l || (least <= n && n <= most))
        return true;
    sema_error(s, a->at[2],
               "'%s' combines %d value%s with as many: '%s' takes %d, needed %d",
               a->b->name, n / 2, n == 2 ? "" : "s", f->name, most, n);
    return false;
}

/* Walks fn(a.., b..) in the op's region and yields what it returns. */
static bool
combine_region(Sema *s, Args *a, Op *op, const Val *in, int n, Val fn)
{
    Builder outside = s->b;
    Region *r = region_new(s->f, op);
    Val *args = arena_array(s->a, Val, 2 * n);
    Value **out = arena_array(s->a, Value *, n);
    for (int i = 0; i < 2 * n; i++) {
        const Type *elem = dtype_ir(s->s, in[i % n]->dt);
        args[i] = val_tensor(s, region_arg(r, elem, NULL), in[i % n]->dt);
    }
    s->b.region = r;
    s->b.before = NULL;
    Val got = combine_takes(s, a, fn, 2 * n) ? call_function(s, fn, args, 2 * n, a->loc)
                                             : val_error();
    bool ok = !val_is_error(got);
    const Val *items = got->kind == FE_TUPLE ? got->u.items : &got;
    int count = got->kind == FE_TUPLE ? got->n : 1;
    if (ok && count != n) {
        sema_error(s, a->at[2], "the combine function must return %d values, found %d", n,
                   count);
        ok = false;
    }
    for (int i = 0; ok && i < n; i++) {
        Val v = to_tensor(s, items[i], a->at[2]);
        ok = !val_is_error(v);
        if (ok && (v->kind != FE_TENSOR || v->rank || v->dt != in[i]->dt)) {
            sema_error(s, a->at[2], "the combine function must return %s, found %s",
                       dtype_str(s->a, in[i]->dt), val_describe(s->a, v));
            ok = false;
        }
        if (ok)
            out[i] = v->v;
    }
    if (ok)
        build_yield(&s->b, out, n);
    s->b = outside;
    return ok;
}

static bool
check_combine(Sema *s, Args *a)
{
    Val fn = a->v[2];
    if (fn->kind == FE_FUNC || fn->kind == FE_BUILTIN)
        return true;
    if (!val_is_error(fn))
        sema_error(s, a->at[2], "the combine function of '%s' must be a @triton.jit "
                   "function, found %s", a->b->name, val_describe(s->a, fn));
    return false;
}

static Val
results(Sema *s, Op *op, const Val *in, int n, bool tuple)
{
    Val *out = arena_array(s->a, Val, n);
    for (int i = 0; i < n; i++)
        out[i] = val_tensor(s, op_result(op, i), in[i]->dt);
    return tuple ? val_tuple(s, out, n) : out[0];
}

static Val
expand_results(Sema *s, Val v, int axis, int times, Loc loc)
{
    if (v->kind == FE_TUPLE) {
        Val *out = arena_array(s->a, Val, v->n);
        for (int i = 0; i < v->n; i++)
            out[i] = expand_results(s, v->u.items[i], axis, times, loc);
        return val_tuple(s, out, v->n);
    }
    while (times--)
        v = expand_dim(s, v, axis, loc);
    return v;
}

Val
bi_reduce(Sema *s, Args *a)
{
    const Val *in;
    int n, axis = 0, rank;
    bool keep, all = arg_none(a, 1);
    int64_t given = 0;
    if (!take_inputs(s, a, &in, &n) || !check_combine(s, a) ||
        !arg_bool(s, a, 3, &keep) || (!all && !arg_int(s, a, 1, &given)) ||
        (!all && !wrap_axis(s, given, in[0]->rank, &axis, a->at[1])))
        return val_error();
    rank = in[0]->rank;
    Val *flat = arena_array(s->a, Val, n);
    Value **operands = arena_array(s->a, Value *, n);
    Shape sh = { 1, { shape_numel(val_shape(in[0])) } };
    for (int i = 0; i < n; i++) {
        flat[i] = all && rank > 1 ? reshape(s, in[i], sh, true, a->loc) : in[i];
        operands[i] = flat[i]->v;
    }
    AttrList attrs = { 0 };
    attr_set_int(&s->s->mod, &attrs, ATTR_AXIS, axis);
    Op *op = build_op(&s->b, OP_REDUCE, operands, n, &attrs, NULL, n);
    s->frame->loop_depth++;
    bool ok = combine_region(s, a, op, flat, n, a->v[2]);
    s->frame->loop_depth--;
    if (!ok)
        return val_error();
    Val r = results(s, op, flat, n, a->v[0]->kind == FE_TUPLE);
    return keep ? expand_results(s, r, all ? 0 : axis, all ? rank : 1, a->loc) : r;
}

Val
bi_associative_scan(Sema *s, Args *a)
{
    const Val *in;
    int n, axis = 0;
    bool reverse;
    int64_t given = 0;
    if (!take_inputs(s, a, &in, &n) || !check_combine(s, a) ||
        !arg_bool(s, a, 3, &reverse) || !arg_int(s, a, 1, &given) ||
        !wrap_axis(s, given, in[0]->rank, &axis, a->at[1]))
        return val_error();
    Value **operands = arena_array(s->a, Value *, n);
    for (int i = 0; i < n; i++)
        operands[i] = in[i]->v;
    AttrList attrs = { 0 };
    attr_set_int(&s->s->mod, &attrs, ATTR_AXIS, axis);
    if (reverse)
        attr_set_flag(&s->s->mod, &attrs, ATTR_REVERSE);
    Op *op = build_op(&s->b, OP_SCAN, operands, n, &attrs, NULL, n);
    if (!combine_region(s, a, op, in, n, a->v[2]))
        return val_error();
    return results(s, op, in, n, a->v[0]->kind == FE_TUPLE);
}

Val
bi_index_like(Sema *s, Args *a)
{
    int64_t given = 0;
    int axis = 0;
    if (!arg_tensor(s, a, 0))
        return val_error();
    Shape sh = val_shape(a->v[0]);
    if (arg_none(a, 1) && sh.rank > 1)
        return sema_error(s, a->loc, "indices need an axis");
    if (!sh.rank || (!arg_none(a, 1) && !arg_int(s, a, 1, &given)) ||
        !wrap_axis(s, given, sh.rank, &axis, a->at[1]))
        return val_error();
    Val args[2] = { val_int(s, 0), val_int(s, sh.dim[axis]) };
    Val index = call_tl(s, "arange", args, 2, a->loc);
    for (int i = 0; i < sh.rank; i++)
        if (i != axis)
            index = expand_dim(s, index, i, a->loc);
    return broadcast_to(s, index, sh, a->loc);
}

/* What tl.topk and tl.sort are on the CPU (kernels_dsl/lib/sort.tk). */
Val
bi_first_of(Sema *s, Args *a)
{
    int64_t k;
    bool down;
    if (!arg_tensor(s, a, 0) || !arg_int(s, a, 1, &k) || !arg_bool(s, a, 2, &down))
        return val_error();
    Val x = a->v[0];
    Shape sh = val_shape(x);
    sh.dim[sh.rank - 1] = k;
    const Type *t = sema_type(s, x->dt, sh, a->at[1]);
    if (!t)
        return val_error();
    const char *pred = dtype_is_float(x->dt)    ? down ? "ogt" : "olt"
                       : dtype_is_signed(x->dt) ? down ? "sgt" : "slt"
                       : down                   ? "ugt"
                                                : "ult";
    AttrList attrs = {0};
    attr_set_str(&s->s->mod, &attrs, ATTR_PRED, name_of(&s->s->names, pred));
    Op *op = build_op(&s->b, OP_TOPK, &x->v, 1, &attrs, &t, 1);
    return val_tensor(s, op_result(op, 0), x->dt);
}

Val
bi_histogram(Sema *s, Args *a)
{
    int64_t bins;
    Shape sh = { 1, { 0 } };
    if (!arg_tensor(s, a, 0) || !arg_int(s, a, 1, &bins))
        return val_error();
    Val x = a->v[0], mask = NULL;
    if (x->rank != 1 || !dtype_is_int(x->dt))
        return sema_error(s, a->at[0], "'histogram' needs an integer tensor of rank 1, "
                          "found %s", val_describe(s->a, x));
    if (!arg_none(a, 2)) {
        if (!arg_tensor(s, a, 2))
            return val_error();
        if (a->v[2]->dt != DT_INT1)
            return sema_error(s, a->at[2],
                              "the mask of 'histogram' must be int1, found %s",
                              val_describe(s->a, a->v[2]));
        mask = broadcast_to(s, a->v[2], val_shape(x), a->at[2]);
        if (val_is_error(mask))
            return mask;
    }
    sh.dim[0] = bins;
    const Type *t = sema_type(s, DT_INT32, sh, a->at[1]);
    if (!t)
        return val_error();
    x = cast(s, x, DT_INT32, a->at[0]);
    Value *in[] = { x->v, mask ? mask->v : NULL };
    Op *op = build_op(&s->b, OP_HISTOGRAM, in, mask ? 2 : 1, NULL, &t, 1);
    return val_tensor(s, op_result(op, 0), DT_INT32);
}

/* Promises to the compiler, prints, assertions, loop ranges. */
#include "frontend/builtin.h"
#include "frontend/prelude.h"

#include <string.h>

static Val
hint(Sema *s, Args *a, AttrKey key)
{
    int64_t values[MAX_RANK];
    int n;
    if (a->v[0]->kind == FE_INT)
        return a->v[0];
    if (!arg_tensor(s, a, 0) || !arg_ints(s, a, 1, values, &n))
        return val_error();
    Val x = a->v[0];
    if (n != (x->rank ? x->rank : 1))
        return sema_error(s, a->at[1],
                          "'%s' needs one value per dimension of %s, found %d",
                          a->b->name, val_describe(s->a, x), n);
    for (int i = 0; i < n; i++)
        if (values[i] < 1)
            return sema_error(s, a->at[1], "values of '%s' must be positive, found %lld",
                              a->b->name, (long long)values[i]);
    AttrList attrs = { 0 };
    attr_set_ints(&s->s->mod, &attrs, key, values, n);
    Op *op = build_op(&s->b, OP_HINT, (Value *[]){ x->v }, 1, &attrs, NULL, 1);
    return val_tensor(s, op_result(op, 0), x->dt);
}

Val
bi_multiple_of(Sema *s, Args *a)
{
    return hint(s, a, ATTR_DIV);
}

Val
bi_max_contiguous(Sema *s, Args *a)
{
    return hint(s, a, ATTR_CONTIG);
}

Val
bi_max_constancy(Sema *s, Args *a)
{
    return hint(s, a, ATTR_CONSTANCY);
}

Val
bi_assume(Sema *s, Args *a)
{
    if (val_is_const(a->v[0])) {
        /* Nothing wrong where this is never reached; Triton takes it, too. */
        if (!val_truth(a->v[0]))
            diag_warning(&s->s->diag, a->at[0],
                         "this assumption is false: what runs here is undefined");
        return val_none();
    }
    Val c = cast_i1(s, to_tensor(s, a->v[0], a->at[0]), a->at[0]);
    if (val_is_error(c))
        return c;
    if (c->rank)
        return sema_error(s, a->at[0], "'assume' needs a scalar condition, found %s",
                          val_describe(s->a, c));
    build_op(&s->b, OP_ASSUME, (Value *[]){ c->v }, 1, NULL, NULL, 0);
    return val_none();
}

Val
bi_debug_barrier(Sema *s, Args *a)
{
    (void)a;
    build_op(&s->b, OP_BARRIER, NULL, 0, NULL, NULL, 0);
    return val_none();
}

Val
bi_gdc_wait(Sema *s, Args *a)
{
    (void)a;
    build_op(&s->b, OP_GRID_WAIT, NULL, 0, NULL, NULL, 0);
    return val_none();
}

Val
bi_gdc_launch_dependents(Sema *s, Args *a)
{
    (void)a;
    build_op(&s->b, OP_LAUNCH_DEPENDENTS, NULL, 0, NULL, NULL, 0);
    return val_none();
}

Val
bi_static_assert(Sema *s, Args *a)
{
    if (a->v[0]->kind != FE_BOOL && !(s->host && val_is_const(a->v[0])))
        return sema_error(s, a->at[0],
                          "static_assert needs a compile-time bool, found %s",
                          val_describe(s->a, a->v[0]));
    if (val_truth(a->v[0]))
        return val_none();
    Buf b;
    buf_init(&b, s->a);
    val_print(&b, a->v[1]);
    if (b.n && prelude_owns(s->frame->module)) /* the user has asserted nothing */
        return sema_error(s, a->loc, "%s", b.s);
    if (b.n)
        return sema_error(s, a->loc, "static assertion failed: %s", b.s);
    return sema_error(s, a->loc, "static assertion failed");
}

Val
bi_static_print(Sema *s, Args *a)
{
    Buf b;
    buf_init(&b, s->a);
    buf_str(&b, "");
    for (int i = 0; i < a->v[0]->n; i++) {
        if (i)
            val_print(&b, a->v[1]);
        val_print(&b, a->v[0]->u.items[i]);
    }
    /* The library prints nothing itself: the text goes out with the diagnostics. */
    diag_warning(&s->s->diag, a->loc, "static_print: %s", b.s);
    return val_none();
}

Val
bi_device_print(Sema *s, Args *a)
{
    const char *prefix;
    bool hex;
    enum { MAX_PRINTED = 32 };
    Value *in[MAX_PRINTED];
    int64_t is_signed[MAX_PRINTED];
    if (!arg_str(s, a, 0, &prefix) || !arg_bool(s, a, 2, &hex))
        return val_error();
    for (const char *p = prefix; *p; p++)
        if ((unsigned char)*p >= 127)
            return sema_error(s, a->at[0], "the prefix of 'device_print' must be ASCII");
    int n = a->v[1]->n;
    if (n > MAX_PRINTED)
        return sema_error(s, a->at[1], "'device_print' takes at most %d values",
                          MAX_PRINTED);
    for (int i = 0; i < n; i++) {
        Val x = a->v[1]->u.items[i], v;
        if (x->kind == FE_TUPLE || x->kind == FE_STR || x->kind == FE_DTYPE)
            return sema_error(s, a->at[1], "'device_print' prints tensors and numbers, "
                              "found %s; tl.static_print prints what is known when "
                              "compiling",
                              val_describe(s->a, x));
        v = to_tensor(s, x, a->at[1]);
        if (val_is_error(v))
            return v;
        in[i] = v->v;
        is_signed[i] = dtype_is_signed(v->dt);
    }
    AttrList attrs = { 0 };
    attr_set_str(&s->s->mod, &attrs, ATTR_MESSAGE, name_of(&s->s->names, prefix));
    if (hex)
        attr_set_flag(&s->s->mod, &attrs, ATTR_HEX);
    if (n)
        attr_set_ints(&s->s->mod, &attrs, ATTR_SIGNED, is_signed, n);
    build_op(&s->b, OP_PRINT, in, n, &attrs, NULL, 0);
    return val_none();
}

Val
bi_device_assert(Sema *s, Args *a)
{
    const char *text;
    if (!s->debug)
        return val_none();
    if (!arg_str(s, a, 1, &text) || !arg_tensor(s, a, 0))
        return val_error();
    Val c = cast_i1(s, a->v[0], a->at[0]), mask = NULL;
    if (!arg_none(a, 2)) {
        if (!arg_tensor(s, a, 2))
            return val_error();
        mask = cast_i1(s, a->v[2], a->at[2]);
        if (!broadcast_pair(s, &c, &mask, a->loc))
            return val_error();
    }
    AttrList attrs = { 0 };
    attr_set_str(&s->s->mod, &attrs, ATTR_MESSAGE, name_of(&s->s->names, text));
    build_op(&s->b, OP_ASSERT, (Value *[]){ c->v, mask ? mask->v : NULL }, mask ? 2 : 1,
             &attrs, NULL, 0);
    return val_none();
}

Val
bi_expect_zero(Sema *s, Args *a)
{
    return arg_tensor(s, a, 0) ? a->v[0] : val_error();
}

static Val
make_range(Sema *s, Args *a, bool is_static, int n)
{
    Val *items = arena_array(s->a, Val, 9);
    bool one = arg_none(a, 1);
    items[0] = one ? val_int(s, 0) : a->v[0];
    items[1] = one ? a->v[0] : a->v[1];
    items[2] = arg_none(a, 2) ? val_int(s, 1) : a->v[2];
    for (int i = 3; i < 9; i++)
        items[i] = i < n ? a->v[i] : val_none();
    FeVal *v = val_new(s, FE_RANGE);
    v->n = is_static;
    v->u.items = items;
    return v;
}

Val
bi_range(Sema *s, Args *a)
{
    for (int i = 3; i < 9; i++)
        if (!val_is_const(a->v[i]))
            return sema_error(s, a->at[i],
                              "'%s' of 'range' must be known at compile time",
                              arg_name(s, a, i));
    return make_range(s, a, false, 9);
}

Val
bi_static_range(Sema *s, Args *a)
{
    return make_range(s, a, true, 3);
}

Val
bi_condition(Sema *s, Args *a)
{
    (void)s;
    return a->v[0];
}

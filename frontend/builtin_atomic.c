/* Atomic operations on memory. */
#include "frontend/builtin.h"

#include <string.h>

static bool
order_attrs(Sema *s, Args *a, int i, AttrList *out)
{
    static const char *const sems[] = {"relaxed", "acquire", "release", "acq_rel", NULL};
    static const char *const scopes[] = { "gpu", "cta", "sys", NULL };
    for (int k = 0; k < 2; k++) {
        const char *text;
        const char *const *known = k ? scopes : sems;
        if (!arg_str(s, a, i + k, &text))
            return false;
        if (!*text)
            text = k ? "gpu" : "acq_rel";
        while (*known && strcmp(*known, text) != 0)
            known++;
        if (!*known) {
            sema_error(s, a->at[i + k], "unknown %s '%s': %s exist",
                       k ? "scope" : "order", text,
                       k ? "gpu, cta, sys" : "relaxed, acquire, release, acq_rel");
            return false;
        }
        attr_set_str(&s->s->mod, out, k ? ATTR_SCOPE : ATTR_SEM,
                     name_of(&s->s->names, text));
    }
    return true;
}

static bool
check_atomic_pointer(Sema *s, Args *a)
{
    Val p = a->v[0];
    if (val_is_error(p))
        return false;
    if (p->kind != FE_TENSOR || !dtype_is_ptr(p->dt)) {
        sema_error(s, a->at[0], "'%s' needs a pointer or a tile of pointers, found %s",
                   a->b->name, val_describe(s->a, p));
        return false;
    }
    if (dtype_is_const(p->dt)) {
        sema_error(s, a->at[0], "Cannot store to a constant pointer");
        return false;
    }
    return true;
}

/* Operand i in the shape of the pointers and of type dt. */
static Val
in_shape(Sema *s, Args *a, int i, DType dt)
{
    if (!arg_tensor(s, a, i))
        return val_error();
    Val p = a->v[0], v = a->v[i];
    if (p->rank)
        v = broadcast_to(s, v, val_shape(p), a->at[i]);
    else if (v->rank)
        return sema_error(s, a->at[i], "a scalar pointer takes a scalar, found %s",
                          val_describe(s->a, v));
    return cast(s, v, dt, a->at[i]);
}

static bool
check_element(Sema *s, Args *a, DType dt, bool is_add)
{
    bool half = dt == DT_FP16 || dt == DT_BF16;
    if ((half && is_add) || (!half && dtype_bits(dt) >= 32))
        return true;
    sema_error(s, a->loc, "'%s' does not work on %s%s", a->b->name, dtype_str(s->a, dt),
               half ? "; of the atomics only atomic_add does" : "");
    return false;
}

static Val
build_rmw(Sema *s, const char *rmw, Val p, Val v, Val mask, const AttrList *order)
{
    AttrList attrs = { 0 };
    attr_copy(&s->s->mod, &attrs, order);
    attr_set_str(&s->s->mod, &attrs, ATTR_RMW, name_of(&s->s->names, rmw));
    Value *in[] = { p->v, v->v, mask ? mask->v : NULL };
    Op *op = build_op(&s->b, OP_ATOMIC_RMW, in, mask ? 3 : 2, &attrs, NULL, 1);
    return val_tensor(s, op_result(op, 0), v->dt);
}

/* The value, as dt, and the mask, NULL without. */
static bool
value_and_mask(Sema *s, Args *a, DType dt, Val *v, Val *mask)
{
    *v = in_shape(s, a, 1, dt);
    *mask = NULL;
    if (val_is_error(*v))
        return false;
    if (!arg_none(a, 2)) {
        *mask = in_shape(s, a, 2, DT_INT1);
        if (val_is_error(*mask))
            return false;
    }
    return true;
}

static bool
prepare(Sema *s, Args *a, bool is_add, Val *v, Val *mask, AttrList *order)
{
    if (!check_atomic_pointer(s, a) || !order_attrs(s, a, 3, order))
        return false;
    DType dt = dtype_pointee(a->v[0]->dt);
    return check_element(s, a, dt, is_add) && value_and_mask(s, a, dt, v, mask);
}

/* and, or and xor of floats are those of their bits. */
static Val
rmw_bits(Sema *s, const char *rmw, Args *a, Val v, Val mask, const AttrList *order)
{
    DType bits = dtype_bits(v->dt) == 32 ? DT_INT32 : DT_INT64;
    Val p = cast(s, a->v[0], bits + DT_PTR, a->loc), in = bitcast(s, v, bits, a->loc);
    return bitcast(s, build_rmw(s, rmw, p, in, mask, order), v->dt, a->loc);
}

static Val
atomic(Sema *s, Args *a, bool is_add, const char *f, const char *i, const char *u)
{
    Val v, mask;
    AttrList order = { 0 };
    if (!prepare(s, a, is_add, &v, &mask, &order))
        return val_error();
    const char *rmw = dtype_is_float(v->dt) ? f : dtype_is_signed(v->dt) ? i : u;
    if (!rmw)
        return rmw_bits(s, i, a, v, mask, &order);
    return build_rmw(s, rmw, a->v[0], v, mask, &order);
}

Val
bi_atomic_add(Sema *s, Args *a)
{
    return atomic(s, a, true, "fadd", "add", "add");
}

Val
bi_atomic_and(Sema *s, Args *a)
{
    return atomic(s, a, false, NULL, "and", "and");
}

Val
bi_atomic_or(Sema *s, Args *a)
{
    return atomic(s, a, false, NULL, "or", "or");
}

Val
bi_atomic_xor(Sema *s, Args *a)
{
    return atomic(s, a, false, NULL, "xor", "xor");
}

Val
bi_atomic_xchg(Sema *s, Args *a)
{
    return atomic(s, a, false, "xchg", "xchg", "xchg");
}

static Val
mask_and(Sema *s, Val mask, Val c)
{
    return mask ? val_tensor(s, build_binary(&s->b, OP_AND, mask->v, c->v), DT_INT1) : c;
}

/* Floats order as their bits do: signed for positive values, reversed unsigned for
   negative ones. Two masked operations, of which one runs for each element. */
static Val
float_minmax(Sema *s, Args *a, bool is_max)
{
    Val v, mask;
    AttrList order = { 0 };
    if (!prepare(s, a, false, &v, &mask, &order))
        return val_error();
    bool single = v->dt == DT_FP32;
    DType it = single ? DT_INT32 : DT_INT64, ut = single ? DT_UINT32 : DT_UINT64;
    Val iv = bitcast(s, v, it, a->loc), uv = bitcast(s, v, ut, a->loc);
    Val ip = cast(s, a->v[0], it + DT_PTR, a->loc);
    Val up = cast(s, a->v[0], ut + DT_PTR, a->loc);
    Val neg = tensor_binary(s, BIN_LT, iv, val_int(s, 0), a->loc);
    Val pos = tensor_not(s, neg, a->loc);
    if (val_is_error(pos))
        return pos;
    Val on_pos = build_rmw(s, is_max ? "smax" : "smin", ip, iv, mask_and(s, mask, pos),
                           &order);
    Val on_neg = build_rmw(s, is_max ? "umin" : "umax", up, uv, mask_and(s, mask, neg),
                           &order);
    Value *old = build_select(&s->b, pos->v, on_pos->v, on_neg->v);
    return bitcast(s, val_tensor(s, old, it), v->dt, a->loc);
}

static Val
atomic_minmax(Sema *s, Args *a, bool is_max)
{
    if (!check_atomic_pointer(s, a))
        return val_error();
    DType dt = dtype_pointee(a->v[0]->dt);
    if (dtype_is_float(dt))
        return float_minmax(s, a, is_max);
    return atomic(s, a, false, NULL, is_max ? "smax" : "smin", is_max ? "umax" : "umin");
}

Val
bi_atomic_max(Sema *s, Args *a)
{
    return atomic_minmax(s, a, true);
}

Val
bi_atomic_min(Sema *s, Args *a)
{
    return atomic_minmax(s, a, false);
}

Val
bi_atomic_cas(Sema *s, Args *a)
{
    AttrList order = { 0 };
    if (!check_atomic_pointer(s, a) || !order_attrs(s, a, 3, &order))
        return val_error();
    DType dt = dtype_pointee(a->v[0]->dt);
    if (dtype_bits(dt) < 16)
        return sema_error(s, a->loc, "'atomic_cas' works on elements of 16, 32 and 64 "
                          "bits, found %s", dtype_str(s->a, dt));
    Val cmp = in_shape(s, a, 1, dt), v = in_shape(s, a, 2, dt);
    if (val_is_error(cmp) || val_is_error(v))
        return val_error();
    Value *in[] = { a->v[0]->v, cmp->v, v->v };
    Op *op = build_op(&s->b, OP_ATOMIC_CAS, in, 3, &order, NULL, 1);
    return val_tensor(s, op_result(op, 0), dt);
}

/* One of two orders: "acquire" (loads) or "release" (stores), or relaxed. */
static bool
half_order(Sema *s, Args *a, int i, const char *half)
{
    const char *text;
    if (!arg_str(s, a, i, &text))
        return false;
    if (!*text) {
        a->v[i] = val_str(s, half);
        return true;
    }
    if (strcmp(text, half) == 0 || strcmp(text, "relaxed") == 0)
        return true;
    sema_error(s, a->at[i], "the order of '%s' is %s or relaxed, found '%s'", a->b->name,
               half, text);
    return false;
}

/* The integer of `dt`'s width in memory, where a boolean is a byte. */
static DType
word_of(DType dt)
{
    switch (dt == DT_INT1 ? 8 : dtype_bits(dt)) {
    case 8: return DT_INT8;
    case 16: return DT_INT16;
    case 32: return DT_INT32;
    default: return DT_INT64;
    }
}

/* Pointers to floats and booleans as pointers to integers of their width. */
static bool
as_words(Sema *s, Args *a, DType elem)
{
    if (dtype_is_float(elem) || elem == DT_INT1)
        a->v[0] = cast(s, a->v[0], word_of(elem) + DT_PTR, a->loc);
    return !val_is_error(a->v[0]);
}

/* No atomic operation reaches a constant: the load is volatile, which acquires for the
   whole system. */
static Val
load_const(Sema *s, const Args *a)
{
    Args load = {.b = a->b, .loc = a->loc};
    for (int i = 0; i < 8; i++) {
        load.v[i] = i < 2    ? a->v[i]
                    : i == 7 ? val_bool(s, true)
                    : i > 4  ? val_str(s, "")
                             : val_none();
        load.at[i] = a->at[i < 2 ? i : 0];
    }
    return bi_load(s, &load);
}

/* Memory is or-ed with 0: a load that takes part in the order of atomic operations. */
Val
bi_atomic_load(Sema *s, Args *a)
{
    Val v, mask, p = a->v[0];
    AttrList order = {0};
    Args rmw = {.b = a->b, .loc = a->loc};
    if (!half_order(s, a, 2, "acquire") || !order_attrs(s, a, 2, &order))
        return val_error();
    if (p->kind == FE_TENSOR && dtype_is_ptr(p->dt) && dtype_is_const(p->dt))
        return load_const(s, a);
    if (!check_atomic_pointer(s, a))
        return val_error();
    DType elem = dtype_pointee(p->dt);
    if (!as_words(s, a, elem))
        return val_error();
    rmw.v[0] = a->v[0];
    rmw.v[1] = val_int(s, 0);
    rmw.v[2] = a->v[1];
    for (int i = 0; i < 3; i++)
        rmw.at[i] = a->at[i ? i - 1 : 0];
    if (!value_and_mask(s, &rmw, dtype_pointee(a->v[0]->dt), &v, &mask))
        return val_error();
    Val old = build_rmw(s, "or", a->v[0], v, mask, &order);
    return elem == DT_INT1 ? cast(s, old, elem, a->loc) : bitcast(s, old, elem, a->loc);
}

/* An exchange whose old value nobody reads; of floats, that of their bits. */
Val
bi_atomic_store(Sema *s, Args *a)
{
    Val v, mask;
    AttrList order = {0};
    if (!half_order(s, a, 3, "release") || !order_attrs(s, a, 3, &order) ||
        !check_atomic_pointer(s, a))
        return val_error();
    DType elem = dtype_pointee(a->v[0]->dt);
    if (!as_words(s, a, elem) || !value_and_mask(s, a, elem, &v, &mask))
        return val_error();
    DType word = dtype_pointee(a->v[0]->dt);
    v = elem == DT_INT1 ? cast(s, v, word, a->at[1]) : bitcast(s, v, word, a->at[1]);
    if (!val_is_error(v))
        build_rmw(s, "xchg", a->v[0], v, mask, &order);
    return val_none();
}

/* tl.load and tl.store through pointers, tiles of pointers and block pointers. */
#include "frontend/builtin.h"

#include <string.h>

/* ".cg" -> "cg"; false when the modifier is not one of those allowed (a NULL-ended
   list). */
static bool
cache_attr(Sema *s, Args *a, int i, const char *const *allowed, AttrList *out)
{
    const char *text;
    if (!arg_str(s, a, i, &text))
        return false;
    if (!*text)
        return true;
    for (; *allowed; allowed++)
        if (strcmp(text, *allowed) == 0) {
            attr_set_str(&s->s->mod, out, ATTR_CACHE, name_of(&s->s->names, text + 1));
            return true;
        }
    sema_error(s, a->at[i], "unknown cache modifier '%s' for '%s'", text, a->b->name);
    return false;
}

static bool
evict_attr(Sema *s, Args *a, int i, AttrList *out)
{
    const char *text;
    if (!arg_str(s, a, i, &text))
        return false;
    if (!*text || strcmp(text, "evict_normal") == 0)
        return true;
    if (strcmp(text, "evict_first") != 0 && strcmp(text, "evict_last") != 0) {
        sema_error(s, a->at[i], "unknown eviction policy '%s': 'evict_first' and "
                   "'evict_last' exist", text);
        return false;
    }
    attr_set_str(&s->s->mod, out, ATTR_EVICT, name_of(&s->s->names, text));
    return true;
}

static bool
boundary_attr(Sema *s, Args *a, int i, Val block, AttrList *out)
{
    int64_t dims[MAX_RANK];
    int n;
    if (!arg_ints(s, a, i, dims, &n))
        return false;
    unsigned seen = 0;
    for (int k = 0; k < n; k++) {
        if (dims[k] < 0 || dims[k] >= block->rank || seen >> dims[k] & 1) {
            sema_error(s, a->at[i], "boundary_check lists dimensions 0..%d, each once; "
                       "found %lld", block->rank - 1, (long long)dims[k]);
            return false;
        }
        seen |= 1u << dims[k];
    }
    int64_t sorted[MAX_RANK];
    int m = 0;
    for (int k = 0; k < block->rank; k++)
        if (seen >> k & 1)
            sorted[m++] = k;
    if (m)
        attr_set_ints(&s->s->mod, out, ATTR_BOUNDARY, sorted, m);
    return true;
}

static Val
load_block(Sema *s, Args *a, AttrList *attrs)
{
    Val p = a->v[0];
    const char *padding;
    if (!arg_none(a, 1) || !arg_none(a, 2))
        return sema_error(s, a->at[arg_none(a, 1) ? 2 : 1], "a block pointer takes no "
                          "mask or other; use boundary_check and padding_option");
    if (!boundary_attr(s, a, 3, p, attrs) || !arg_str(s, a, 4, &padding))
        return val_error();
    if (*padding) {
        if (strcmp(padding, "zero") != 0 && strcmp(padding, "nan") != 0)
            return sema_error(s, a->at[4],
                              "unknown padding option '%s': 'zero' and 'nan' "
                              "exist",
                              padding);
        if (strcmp(padding, "nan") == 0 && !dtype_is_float(p->dt))
            return sema_error(s, a->at[4], "padding 'nan' needs a float element type, "
                              "found %s", dtype_str(s->a, p->dt));
        attr_set_str(&s->s->mod, attrs, ATTR_PADDING, name_of(&s->s->names, padding));
    }
    Op *op = build_op(&s->b, OP_BLOCK_LOAD, (Value *[]){ p->v }, 1, attrs, NULL, 1);
    return val_tensor(s, op_result(op, 0), p->dt);
}

/* Mask in the shape of the pointers; v is NULL or an int1 tensor afterwards. */
static bool
prepare_mask(Sema *s, Args *a, int i, Val *ptr, Val *mask)
{
    *mask = NULL;
    if (arg_none(a, i))
        return true;
    if (!arg_tensor(s, a, i))
        return false;
    *mask = a->v[i];
    if (dtype_is_ptr((*mask)->dt) || (*mask)->dt != DT_INT1) {
        sema_error(s, a->at[i], "the mask of '%s' must be int1, found %s", a->b->name,
                   val_describe(s->a, *mask));
        return false;
    }
    if (!(*ptr)->rank && (*mask)->rank) {
        sema_error(s, a->at[i], "a scalar pointer takes a scalar mask, found %s",
                   val_describe(s->a, *mask));
        return false;
    }
    if ((*ptr)->rank && !broadcast_pair(s, ptr, mask, a->at[i]))
        return false;
    return true;
}

static bool
check_pointer(Sema *s, Args *a, int i)
{
    Val p = a->v[i];
    if (val_is_error(p))
        return false;
    if (p->kind == FE_TENSOR && dtype_is_ptr(p->dt))
        return true;
    sema_error(s, a->at[i], "'%s' needs a pointer or a tile of pointers, found %s",
               a->b->name, val_describe(s->a, p));
    return false;
}

Val
bi_load(Sema *s, Args *a)
{
    static const char *const modifiers[] = { ".ca", ".cg", ".cs", ".cv", NULL };
    AttrList attrs = { 0 };
    bool is_volatile;
    if (!cache_attr(s, a, 5, modifiers, &attrs) || !evict_attr(s, a, 6, &attrs) ||
        !arg_bool(s, a, 7, &is_volatile))
        return val_error();
    if (is_volatile)
        attr_set_flag(&s->s->mod, &attrs, ATTR_VOLATILE);
    if (a->v[0]->kind == FE_BLOCK_PTR)
        return load_block(s, a, &attrs);
    if (!check_pointer(s, a, 0))
        return val_error();
    Val ptr = a->v[0], mask, other = NULL;
    if (arg_none(a, 1) && !arg_none(a, 2))
        return sema_error(s, a->at[2], "'other' needs a mask");
    if (val_truth(a->v[3]) || val_truth(a->v[4]))
        return sema_error(s, a->at[val_truth(a->v[3]) ? 3 : 4], "boundary_check and "
                          "padding_option are for block pointers; use mask and other");
    if (!prepare_mask(s, a, 1, &ptr, &mask))
        return val_error();
    DType elem = dtype_pointee(ptr->dt);
    bool is_bool = elem == DT_INT1; /* stored as bytes */
    if (is_bool)
        elem = DT_INT8;
    if (!arg_none(a, 2)) {
        if (!arg_tensor(s, a, 2))
            return val_error();
        other = a->v[2];
        if (!ptr->rank && other->rank)
            return sema_error(s, a->at[2], "a scalar pointer takes a scalar 'other', "
                              "found %s", val_describe(s->a, other));
        if (ptr->rank && !broadcast_pair(s, &ptr, &other, a->at[2]))
            return val_error();
        if (mask && ptr->rank && !broadcast_pair(s, &ptr, &mask, a->at[1]))
            return val_error();
        other = cast(s, other, elem, a->at[2]);
        if (val_is_error(other))
            return other;
    }
    Value *v = build_load(&s->b, ptr->v, mask ? mask->v : NULL, other ? other->v : NULL,
                          &attrs);
    Val r = val_tensor(s, v, elem);
    return is_bool ? cast(s, r, DT_INT1, a->loc) : r;
}

static Val
store_block(Sema *s, Args *a, AttrList *attrs)
{
    Val p = a->v[0];
    if (!arg_none(a, 2))
        return sema_error(s, a->at[2],
                          "a block pointer takes no mask; use boundary_check");
    if (!arg_tensor(s, a, 1) || !boundary_attr(s, a, 3, p, attrs))
        return val_error();
    Val v = a->v[1];
    if (!v->rank)
        v = splat(s, v, val_shape(p), a->at[1]);
    if (!shape_eq(val_shape(v), val_shape(p)))
        return sema_error(s, a->at[1], "the block is %s, the value is %s",
                          type_describe(s->a, p->dt, val_shape(p)),
                          val_describe(s->a, v));
    if (v->dt != p->dt && a->v[1]->rank)
        return sema_error(s, a->at[1],
                          "the block is %s, the value is %s; write "
                          "value.to(ptr.dtype.element_ty)",
                          type_describe(s->a, p->dt, val_shape(p)),
                          val_describe(s->a, v));
    v = cast(s, v, p->dt, a->at[1]);
    if (!val_is_error(v))
        build_op(&s->b, OP_BLOCK_STORE, (Value *[]){ p->v, v->v }, 2, attrs, NULL, 0);
    return val_none();
}

Val
bi_store(Sema *s, Args *a)
{
    static const char *const modifiers[] = { ".wb", ".cg", ".cs", ".wt", NULL };
    AttrList attrs = { 0 };
    if (!cache_attr(s, a, 4, modifiers, &attrs) || !evict_attr(s, a, 5, &attrs))
        return val_error();
    if (a->v[0]->kind == FE_BLOCK_PTR)
        return store_block(s, a, &attrs);
    if (!check_pointer(s, a, 0) || !arg_tensor(s, a, 1))
        return val_error();
    Val ptr = a->v[0], v = a->v[1], mask;
    if (dtype_is_const(ptr->dt))
        return sema_error(s, a->at[0], "Cannot store to a constant pointer");
    if (val_truth(a->v[3]))
        return sema_error(s, a->at[3],
                          "boundary_check is for block pointers; use a mask");
    Shape sh = val_shape(ptr);
    if (!ptr->rank && v->rank)
        return sema_error(s, a->at[1], "a scalar pointer takes a scalar value, found %s",
                          val_describe(s->a, v));
    if (ptr->rank && !broadcast_pair(s, &ptr, &v, a->at[1]))
        return val_error();
    if (!prepare_mask(s, a, 2, &ptr, &mask))
        return val_error();
    if (!shape_eq(sh, val_shape(ptr)))
        return sema_error(s, a->at[0], "the pointers have shape %s, value and mask make "
                          "it %s", shape_str(s->a, sh), shape_str(s->a, val_shape(ptr)));
    DType elem = dtype_pointee(ptr->dt);
    /* int1 goes to memory as a byte: first to int1's 0 or 1, then widened. */
    v = cast(s, v, elem == DT_INT1 ? DT_INT8 : elem, a->at[1]);
    if (!val_is_error(v))
        build_store(&s->b, ptr->v, v->v, mask ? mask->v : NULL, &attrs);
    return val_none();
}

/* Attributes and methods of values, and subscripts. */
#include "frontend/builtin.h"
#include "frontend/class.h"
#include "frontend/host.h"
#include "frontend/py.h"

#include <string.h>

static Val
bound(Sema *s, Val self, const Builtin *b)
{
    FeVal *v = val_new(s, FE_METHOD);
    v->self = self;
    v->u.builtin = b;
    return v;
}

static Val
ready_method(Sema *s, Val result)
{
    return bound(s, result, builtin_find(s, name_of(&s->s->names, "__self__"), IN_CORE));
}

static Val
shape_tuple(Sema *s, Shape sh)
{
    Val *items = arena_array(s->a, Val, sh.rank + 1);
    for (int i = 0; i < sh.rank; i++)
        items[i] = val_int(s, sh.dim[i]);
    return val_tuple(s, items, sh.rank);
}

static Val
type_value(Sema *s, DType dt, Shape sh)
{
    if (!sh.rank)
        return val_dtype(s, dt);
    FeVal *v = val_shaped(s, FE_TYPE, dt, sh);
    v->n = CLASS_BLOCK;
    return v;
}

/* The type of any value: of a tensor its own, of a constant one that holds it. */
static Val
type_of(Sema *s, Val x)
{
    if (x->kind == FE_TENSOR)
        return type_value(s, x->dt, val_shape(x));
    bool tuple = x->kind == FE_TUPLE;
    FeVal *v = val_new(s, FE_TYPE);
    Val *items = arena_array(s->a, Val, tuple ? x->n + 1 : 1);
    v->n = tuple ? CLASS_TYPE_TUPLE : CLASS_TYPE_CONST;
    v->rank = tuple ? x->n : 0;
    items[0] = x;
    for (int i = 0; tuple && i < x->n; i++)
        items[i] = type_of(s, x->u.items[i]);
    v->u.items = items;
    return v;
}

/* is_fp32, is_int_signed, ... of a dtype; false when there is no such question. */
static bool
dtype_question(DType t, const char *q, bool *out)
{
    bool scalar = dtype_is_scalar(t);
    const struct {
        const char *name;
        bool answer;
    } answers[] = {
        { "is_floating", dtype_is_float(t) },
        { "is_standard_floating", dtype_is_float(t) && !dtype_is_fp8(t) },
        { "is_int", dtype_is_int(t) },
        { "is_int_signed", dtype_is_signed(t) },
        { "is_int_unsigned", dtype_is_unsigned(t) },
        { "is_bool", t == DT_INT1 },
        { "is_fp8", scalar && dtype_is_fp8(t) },
        { "is_ptr", dtype_is_ptr(t) },
        { "is_const", dtype_is_const(t) },
        { "is_block", false },
        { "is_void", t == DT_VOID },
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (strcmp(q, answers[i].name) == 0) {
            *out = answers[i].answer;
            return true;
        }
    for (int i = 0; i < DT_COUNT; i++)
        if (strncmp(q, "is_", 3) == 0 && strcmp(q + 3, dtype_info[i].name) == 0) {
            *out = t == i;
            return true;
        }
    return false;
}

static Val
dtype_attribute(Sema *s, DType t, Name attr)
{
    bool yes;
    if (dtype_question(t, attr, &yes))
        return ready_method(s, val_bool(s, yes));
    bool scalar = dtype_is_scalar(t);
    if (strcmp(attr, "scalar") == 0)
        return val_dtype(s, t);
    if (strcmp(attr, "element_ty") == 0 && dtype_is_ptr(t))
        return val_dtype(s, dtype_pointee(t));
    if (strcmp(attr, "name") == 0)
        return val_str(s, dtype_str(s->a, t));
    if (strcmp(attr, "primitive_bitwidth") == 0)
        return val_int(s, dtype_bits(t));
    if (strcmp(attr, "itemsize") == 0)
        return val_int(s, dtype_bits(t) / 8);
    if (strcmp(attr, "int_bitwidth") == 0 && dtype_is_int(t))
        return val_int(s, dtype_bits(t));
    if (strcmp(attr, "fp_mantissa_width") == 0 && scalar && dtype_is_float(t))
        return val_int(s, dtype_info[t].mantissa);
    if (strcmp(attr, "exponent_bias") == 0 && scalar && dtype_is_float(t))
        return val_int(s, dtype_info[t].bias);
    if (strcmp(attr, "address_space") == 0 && dtype_is_ptr(t))
        return val_int(s, 1);
    if (strcmp(attr, "get_int_max_value") == 0 && dtype_is_int(t))
        return ready_method(s, val_int(s, dtype_max(t)));
    if (strcmp(attr, "get_int_min_value") == 0 && dtype_is_int(t))
        return ready_method(s, val_int(s, dtype_min(t)));
    return NULL;
}

static Val
type_attribute(Sema *s, Val x, Name attr)
{
    if (x->n == CLASS_STR && (strcmp(attr, "ALL") == 0 || strcmp(attr, "NONE") == 0))
        return val_str(s, attr); /* tl.PropagateNan */
    if (x->n == CLASS_TYPE_CONST && strcmp(attr, "value") == 0)
        return x->u.items[0];
    if (x->n == CLASS_TYPE_TUPLE && strcmp(attr, "types") == 0)
        return val_tuple(s, x->u.items, x->rank);
    if (x->n == CLASS_TYPE_DESC && x->rank && strcmp(attr, "block_type") == 0)
        return type_value(s, x->dt, val_shape(x));
    if (x->n != CLASS_BLOCK)
        return NULL;
    if (strcmp(attr, "shape") == 0)
        return shape_tuple(s, val_shape(x));
    if (strcmp(attr, "scalar") == 0 || strcmp(attr, "element_ty") == 0)
        return val_dtype(s, x->dt);
    if (strcmp(attr, "numel") == 0)
        return val_int(s, shape_numel(val_shape(x)));
    if (strcmp(attr, "is_block") == 0)
        return ready_method(s, val_bool(s, true));
    if (strcmp(attr, "get_block_shapes") == 0)
        return ready_method(s, shape_tuple(s, val_shape(x)));
    if (strcmp(attr, "is_ptr") == 0)
        return ready_method(s, val_bool(s, false));
    return dtype_attribute(s, x->dt, attr);
}

static Val
tensor_attribute(Sema *s, Val x, Name attr, Loc loc)
{
    Shape sh = val_shape(x);
    if (strcmp(attr, "shape") == 0)
        return shape_tuple(s, sh);
    if (strcmp(attr, "dtype") == 0)
        return val_dtype(s, x->dt);
    if (strcmp(attr, "type") == 0)
        return type_value(s, x->dt, sh);
    if (strcmp(attr, "numel") == 0)
        return val_int(s, shape_numel(sh));
    if (strcmp(attr, "T") == 0)
        return permute(s, x, (int64_t[]){ 1, 0 }, 2, loc);
    const Builtin *b = builtin_find(s, attr, IN_METHOD);
    return b ? bound(s, x, b) : NULL;
}

static Val
desc_attribute(Sema *s, Val x, Name attr)
{
    if (strcmp(attr, "shape") == 0)
        return val_tuple(s, x->u.items, x->rank);
    if (strcmp(attr, "strides") == 0)
        return val_tuple(s, x->u.items + x->rank, x->rank);
    if (strcmp(attr, "block_shape") == 0)
        return shape_tuple(s, val_shape(x));
    if (strcmp(attr, "dtype") == 0)
        return val_dtype(s, x->dt);
    if (strcmp(attr, "block_type") == 0)
        return type_value(s, x->dt, val_shape(x));
    if (strcmp(attr, "type") == 0) {
        FeVal *v = val_shaped(s, FE_TYPE, x->dt, val_shape(x));
        v->n = CLASS_TYPE_DESC;
        return v;
    }
    const Builtin *b = builtin_find(s, attr, IN_DESC);
    return b ? bound(s, x, b) : NULL;
}

/* A block pointer's type is a pointer to the block. */
static Val
block_ptr_attribute(Sema *s, Val x, Name attr)
{
    if (strcmp(attr, "dtype") == 0 || strcmp(attr, "type") == 0)
        return val_dtype(s, x->dt + DT_PTR);
    const Builtin *b = builtin_find(s, attr, IN_METHOD);
    return b ? bound(s, x, b) : NULL;
}

Val
get_attribute(Sema *s, Val x, Name attr, Loc loc, bool quiet)
{
    Val r = NULL;
    switch (x->kind) {
    case FE_ERROR: return x;
    case FE_MODULE: return module_attribute(s, x, attr, loc, quiet);
    case FE_DTYPE: r = dtype_attribute(s, x->dt, attr); break;
    case FE_TYPE:
        r = val_is_class(x) ? class_attribute(s, x, attr, loc)
                            : type_attribute(s, x, attr);
        break;
    case FE_TENSOR: r = tensor_attribute(s, x, attr, loc); break;
    case FE_DESC: r = desc_attribute(s, x, attr); break;
    case FE_TUPLE:
        r = x->self   ? object_attribute(s, x, attr, loc)
            : s->host ? host_item(x, attr)
                      : NULL;
        break;
    case FE_BLOCK_PTR: r = block_ptr_attribute(s, x, attr); break;
    case FE_INT:
    case FE_STR: r = x->self ? py_member_attribute(s, x, attr, loc) : NULL; break;
    case FE_MEMBER: r = py_member_attribute(s, x, attr, loc); break;
    default: break;
    }
    /* 'value' of any constant is the constant: older kernels write BLOCK.value */
    if (!r && strcmp(attr, "value") == 0 && val_is_const(x))
        return x;
    if (!r && strcmp(attr, "type") == 0 && (val_is_const(x) || x->kind == FE_TUPLE))
        return type_of(s, x);
    /* Methods on a literal work as on the tensor it becomes: N.to(tl.int64). */
    if (!r && val_is_number(x) && builtin_find(s, attr, IN_METHOD) && !s->host)
        return quiet ? NULL : tensor_attribute(s, to_tensor(s, x, loc), attr, loc);
    if (!r)
        r = py_method(s, x, attr);
    if (!r && !quiet)
        return sema_error(s, loc, "%s has no attribute '%s'", val_describe(s->a, x),
                          attr);
    return r;
}

static bool
is_none_slice(Val v)
{
    return v->kind == FE_SLICE && v->u.items[0]->kind == FE_NONE &&
           v->u.items[1]->kind == FE_NONE && v->u.items[2]->kind == FE_NONE;
}

static Val
index_tensor(Sema *s, Val x, Val index, Loc loc)
{
    const Val *items = index->kind == FE_TUPLE ? index->u.items : &index;
    int n = index->kind == FE_TUPLE ? index->n : 1, dim = 0;
    bool scalar = x->rank == 0; /* until 3.8 Triton took p[None, :] of it, too */
    for (int i = 0; i < n; i++, dim++) {
        if (items[i]->kind == FE_NONE) {
            dim = x->rank ? dim : 0; /* until 3.6 Triton took n[:, None] of a scalar */
            if (dim > x->rank)
                return sema_error(s, loc, "too many ':' for %s", val_describe(s->a, x));
            x = expand_dim(s, x, dim, loc);
            if (val_is_error(x))
                return x;
            continue;
        }
        if (val_is_error(items[i]))
            return items[i];
        if (!is_none_slice(items[i]) && dtype_is_ptr(x->dt))
            return sema_error(s, loc, "unsupported tensor index: a pointer is not "
                              "indexed; write tl.load(p + i)");
        if (!is_none_slice(items[i]))
            return sema_error(s, loc,
                              "unsupported tensor index: None and ':' are possible, "
                              "found %s; use tl.gather, a mask, or load through a "
                              "pointer",
                              val_describe(s->a, items[i]));
        if (dim >= x->rank && !scalar)
            return sema_error(s, loc, "too many ':' for %s", val_describe(s->a, x));
    }
    return x;
}

/* The elements that a slice of n has, as Python counts: from `lo` on, `count` of them,
   `step` apart. False: some of it is no compile-time integer, or the step is 0. */
static bool
slice_bounds(Val sl, int n, int64_t *lo, int64_t *step, int *count)
{
    *step = 1;
    for (int i = 0; i < 3; i++)
        if (sl->u.items[i]->kind != FE_NONE && !val_is_int(sl->u.items[i]))
            return false;
    if (sl->u.items[2]->kind != FE_NONE)
        *step = (int64_t)sl->u.items[2]->u.i;
    if (*step == 0)
        return false;
    int64_t least = *step < 0 ? -1 : 0, most = *step < 0 ? n - 1 : n;
    int64_t at[2] = { *step < 0 ? most : least, *step < 0 ? least : most };
    for (int i = 0; i < 2; i++) {
        Val v = sl->u.items[i];
        if (v->kind == FE_NONE)
            continue;
        Wide x = v->u.i < 0 ? v->u.i + n : v->u.i;
        at[i] = x < least ? least : x > most ? most : (int64_t)x;
    }
    int64_t span = *step < 0 ? at[0] - at[1] : at[1] - at[0];
    uint64_t each = *step < 0 ? 0 - (uint64_t)*step : (uint64_t)*step;
    *lo = at[0];
    *count = span <= 0 ? 0 : (int)(((uint64_t)span - 1) / each + 1);
    return true;
}

/* Of a string of ASCII, where a character is a byte. */
static Val
index_text(Sema *s, Val x, Val index, Loc loc)
{
    const char *text = x->u.s;
    int64_t n = 0, lo = 0, step = 1;
    int count = 1;
    for (; text[n]; n++)
        if ((unsigned char)text[n] >= 0x80 || n == MAX_UNROLLED)
            return sema_error(s, loc, "%s cannot be indexed: only short strings of ASCII "
                              "can", val_describe(s->a, x));
    if (index->kind == FE_SLICE) {
        if (!slice_bounds(index, (int)n, &lo, &step, &count))
            return sema_error(s, loc, "a string is sliced with compile-time integers, "
                              "the step not 0");
    } else if (!val_is_int(index)) {
        return sema_error(s, loc, "a string is indexed with compile-time integers, found "
                          "%s", val_describe(s->a, index));
    } else if (index->u.i < -n || index->u.i >= n) {
        return sema_error(s, loc, "index %lld is outside of a string of %lld",
                          (long long)index->u.i, (long long)n);
    } else {
        lo = (int64_t)index->u.i + (index->u.i < 0 ? n : 0);
    }
    char *out = arena_array(s->a, char, count + 1);
    for (int i = 0; i < count; i++)
        out[i] = text[lo + i * step];
    out[count] = 0;
    return val_str(s, out);
}

Val
get_item(Sema *s, Val x, Val index, Loc loc)
{
    if (val_is_error(x) || val_is_error(index))
        return val_error();
    if (x->kind == FE_TENSOR)
        return index_tensor(s, x, index, loc);
    if (val_is_object(x) && !object_is_tuple(x))
        return object_item(s, x, index, loc);
    if (x->kind == FE_STR)
        return index_text(s, x, index, loc);
    if (x->kind != FE_TUPLE)
        return sema_error(s, loc, "%s cannot be indexed", val_describe(s->a, x));
    if (s->host && (index->kind == FE_STR || x->is_dict)) { /* args["N"] */
        Val found = host_value(x, index);
        if (!found && index->kind == FE_STR)
            return sema_error(s, loc, "'%s' is not known at compile time", index->u.s);
        return found ? found : sema_error(s, loc, "the dict has no key %s",
                                          val_describe(s->a, index));
    }
    if (index->kind == FE_SLICE) {
        int64_t lo, step;
        int n;
        if (!slice_bounds(index, x->n, &lo, &step, &n))
            return sema_error(s, loc, "a tuple is sliced with compile-time integers, the "
                              "step not 0");
        Val *items = arena_array(s->a, Val, n + 1);
        for (int i = 0; i < n; i++)
            items[i] = x->u.items[lo + i * step];
        return val_tuple(s, items, n);
    }
    if (!val_is_int(index))
        return sema_error(s, loc,
                          "a tuple is indexed with compile-time integers, found %s",
                          val_describe(s->a, index));
    Wide i = index->u.i < 0 ? index->u.i + x->n : index->u.i;
    if (i < 0 || i >= x->n)
        return sema_error(s, loc, "index %lld is outside of a tuple of %d",
                          (long long)index->u.i, x->n);
    return x->u.items[i];
}

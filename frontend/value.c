/* Queries on values, and their text for messages and f-strings. */
#include "frontend/value.h"

#include "frontend/class.h"
#include "frontend/py.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
val_is_error(Val v)
{
    return v->kind == FE_ERROR;
}

bool
val_is_const(Val v)
{
    if (v->kind == FE_TUPLE) {
        for (int i = 0; i < v->n; i++)
            if (!val_is_const(v->u.items[i]))
                return false;
        return true;
    }
    if (v->kind == FE_METHOD || (v->kind == FE_FUNC && v->self))
        return val_is_const(v->self);
    return v->kind != FE_TENSOR && v->kind != FE_BLOCK_PTR && v->kind != FE_DESC;
}

bool
val_is_number(Val v)
{
    return v->kind == FE_BOOL || v->kind == FE_INT || v->kind == FE_FLOAT;
}

bool
val_is_int(Val v)
{
    return v->kind == FE_BOOL || v->kind == FE_INT;
}

bool
val_is_tensor(Val v)
{
    return v->kind == FE_TENSOR;
}

double
val_double(Val v)
{
    return v->kind == FE_FLOAT ? v->u.f : (double)v->u.i;
}

bool
val_truth(Val v)
{
    switch (v->kind) {
    case FE_NONE: return false;
    case FE_BOOL: return v->u.i != 0;
    case FE_INT: return v->u.i != 0;
    case FE_FLOAT: return v->u.f != 0;
    case FE_STR: return v->u.s[0] != 0;
    case FE_TUPLE: return v->n != 0;
    default: return true;
    }
}

Shape
val_shape(Val v)
{
    Shape s = { .rank = v->rank };
    for (int i = 0; i < v->rank; i++)
        s.dim[i] = v->shape[i];
    return s;
}

int64_t
shape_numel(Shape s)
{
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++)
        n *= s.dim[i];
    return n;
}

bool
shape_eq(Shape a, Shape b)
{
    if (a.rank != b.rank)
        return false;
    for (int i = 0; i < a.rank; i++)
        if (a.dim[i] != b.dim[i])
            return false;
    return true;
}

bool
val_equal(Val a, Val b)
{
    if (val_is_number(a) && val_is_number(b)) {
        if (a->kind == FE_FLOAT || b->kind == FE_FLOAT)
            return val_double(a) == val_double(b);
        return a->u.i == b->u.i;
    }
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case FE_NONE: return true;
    case FE_STR: return strcmp(a->u.s, b->u.s) == 0;
    case FE_DTYPE: return a->dt == b->dt;
    case FE_FUNC:
        return a->u.func == b->u.func && !a->self == !b->self &&
               (!a->self || val_equal(a->self, b->self));
    case FE_BUILTIN: return a->u.builtin == b->u.builtin;
    case FE_MEMBER: return a->u.member->u.object == b->u.member->u.object;
    case FE_MODULE: return a->n == b->n && a->home == b->home;
    case FE_TYPE:
        if (a->n != b->n || a->n == CLASS_USER)
            return a->n == b->n && a->u.class_ == b->u.class_;
        if (a->n == CLASS_TYPE_CONST)
            return val_equal(a->u.items[0], b->u.items[0]);
        if (a->n == CLASS_TYPE_TUPLE) {
            for (int i = 0; i < a->rank && a->rank == b->rank; i++)
                if (!val_equal(a->u.items[i], b->u.items[i]))
                    return false;
            return a->rank == b->rank;
        }
        return a->n == b->n && a->dt == b->dt && shape_eq(val_shape(a), val_shape(b));
    case FE_TUPLE:
    case FE_SLICE:
        if (a->n != b->n)
            return false;
        for (int i = 0; i < a->n; i++)
            if (!val_equal(a->u.items[i], b->u.items[i]))
                return false;
        return true;
    default: return a == b;
    }
}

bool
val_same_type(Val a, Val b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case FE_TENSOR:
    case FE_BLOCK_PTR:
    case FE_DESC: return a->dt == b->dt && shape_eq(val_shape(a), val_shape(b));
    case FE_TUPLE:
        if (a->n != b->n || !a->self != !b->self ||
            (a->self && a->self->u.class_ != b->self->u.class_))
            return false;
        for (int i = 0; i < a->n; i++)
            if (!val_same_type(a->u.items[i], b->u.items[i]))
                return false;
        return true;
    default: return val_equal(a, b);
    }
}

const char *
shape_str(Arena *a, Shape s)
{
    Buf b;
    buf_init(&b, a);
    buf_char(&b, '[');
    for (int i = 0; i < s.rank; i++)
        buf_printf(&b, "%s%lld", i ? ", " : "", (long long)s.dim[i]);
    buf_char(&b, ']');
    return b.s;
}

const char *
type_describe(Arena *a, DType t, Shape s)
{
    if (!s.rank)
        return dtype_str(a, t);
    return arena_printf(a, "%s%s", dtype_str(a, t), shape_str(a, s));
}

static void
print_wide(Buf *b, Wide i)
{
    char text[48];
    int at = (int)sizeof text;
    bool neg = i < 0;
    do {
        int digit = (int)(i % 10);
        text[--at] = (char)('0' + (digit < 0 ? -digit : digit));
        i /= 10;
    } while (i);
    if (neg)
        text[--at] = '-';
    buf_add(b, text + at, sizeof text - (size_t)at);
}

/* The shortest text that reads back as the same double, with Python's ".0". */
static void
print_float(Buf *b, double f)
{
    if (isnan(f) || isinf(f)) {
        buf_str(b, isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
        return;
    }
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, f);
        if (strtod(text, NULL) == f)
            break;
    }
    buf_str(b, text);
    if (!strpbrk(text, ".e"))
        buf_str(b, ".0");
}

static void
print_items(Buf *b, Val v)
{
    buf_char(b, '(');
    for (int i = 0; i < v->n; i++) {
        if (i)
            buf_str(b, ", ");
        if (v->u.items[i]->kind == FE_STR)
            buf_printf(b, "'%s'", v->u.items[i]->u.s);
        else
            val_print(b, v->u.items[i]);
    }
    buf_str(b, v->n == 1 ? ",)" : ")");
}

void
val_print(Buf *b, Val v)
{
    switch (v->kind) {
    case FE_NONE: buf_str(b, "None"); break;
    case FE_BOOL: buf_str(b, v->u.i ? "True" : "False"); break;
    case FE_INT: print_wide(b, v->u.i); break;
    case FE_FLOAT: print_float(b, v->u.f); break;
    case FE_STR: buf_str(b, v->u.s); break;
    case FE_DTYPE: buf_str(b, dtype_str(b->arena, v->dt)); break;
    case FE_TUPLE: print_items(b, v); break;
    case FE_MEMBER: py_member_text(b, v->u.member, false); break;
    default: buf_str(b, val_describe(b->arena, v)); break;
    }
}

const char *
val_describe(Arena *a, Val v)
{
    Buf b;
    switch (v->kind) {
    case FE_ERROR: return "an erroneous value";
    case FE_NONE: return "None";
    case FE_BOOL:
    case FE_INT:
    case FE_FLOAT:
        buf_init(&b, a);
        buf_str(&b, "constexpr ");
        val_print(&b, v);
        return b.s;
    case FE_STR: return arena_printf(a, "string '%.40s'", v->u.s);
    case FE_DTYPE: return arena_printf(a, "dtype %s", dtype_str(a, v->dt));
    case FE_TUPLE:
        if (v->self)
            return arena_printf(a, "an object of '%s'", class_name(v->self));
        return arena_printf(a, "a tuple of %d", v->n);
    case FE_SLICE: return "a slice";
    case FE_MEMBER:
        buf_init(&b, a);
        py_member_text(&b, v->u.member, false);
        return b.s;
    case FE_FUNC:
    case FE_BUILTIN:
    case FE_METHOD: return "a function";
    case FE_MODULE:
        return v->n == NS_UNKNOWN
                   ? arena_printf(a, "'%s', for which no file was found (see -I)",
                                  v->u.path)
                   : "a module";
    case FE_TYPE: return v->n == CLASS_BLOCK ? type_describe(a, v->dt, val_shape(v))
                                             : "a class";
    case FE_RANGE: return "a range";
    case FE_TENSOR: return type_describe(a, v->dt, val_shape(v));
    case FE_BLOCK_PTR:
        return arena_printf(a, "block pointer %s", type_describe(a, v->dt, val_shape(v)));
    case FE_DESC:
        return arena_printf(a, "descriptor %s", type_describe(a, v->dt, val_shape(v)));
    }
    return "?";
}

/* Operators of the host, subscripts, and what can be iterated. */
#include "frontend/py.h"

#include <math.h>
#include <string.h>

Py
py_constexpr(Interp *in, Py inner)
{
    PyVal *v = py_new(in, PY_CONSTEXPR);
    inner = py_unwrapped(inner);
    v->u.inner = inner;
    return v;
}

void
py_set_add(Interp *in, PyList *l, Py v)
{
    for (int i = 0; i < l->n; i++) {
        int e = py_step(in, 1) ? py_equal(in, l->at[i], v, 0) : 1;
        if (e > 0)
            return;
        if (e < 0) {
            pylist_touch(in, l);
            l->lost = py_lost(v)          ? py_lost(v)
                      : py_lost(l->at[i]) ? py_lost(l->at[i])
                                          : py_unknown(in, (Loc){0}, NULL,
                                                       "its elements cannot be compared");
            return;
        }
    }
    py_push(in, l, v);
}

static Py
not_known(Interp *in, int sign, Loc loc)
{
    return py_unknown(in, loc, NULL, "the result of '%s' is known to Python alone",
                      sign_text((OpSign)sign));
}

/* Values whose kinds Python knows of: what it has no operation for, it refuses. */
static bool
is_data(Py v)
{
    return v->kind >= PY_NONE && v->kind <= PY_DICT;
}

static Py
type_error(Interp *in, int sign, Loc loc)
{
    return py_raise(in, loc, "TypeError", "'%s' does not take these",
                    sign_text((OpSign)sign));
}

static Py
too_large(Interp *in, Loc loc)
{
    return py_unknown(in, loc, NULL, "it has more than 127 bits");
}

static Py
int_binary(Interp *in, int sign, Wide x, Wide y, Loc loc)
{
    Wide r = 0;
    bool over = false;
    switch (sign) {
    case OS_ADD: over = __builtin_add_overflow(x, y, &r); break;
    case OS_SUB: over = __builtin_sub_overflow(x, y, &r); break;
    case OS_MUL: over = __builtin_mul_overflow(x, y, &r); break;
    case OS_AND: r = x & y; break;
    case OS_OR: r = x | y; break;
    case OS_XOR: r = x ^ y; break;
    case OS_SHL:
    case OS_SHR:
        if (y < 0)
            return py_raise(in, loc, "ValueError", "negative shift count");
        if (sign == OS_SHR)
            r = y > 126 ? (x < 0 ? -1 : 0) : x >> y;
        else
            over = x && (y > 126 || __builtin_mul_overflow(x, (Wide)1 << y, &r));
        break;
    case OS_POW:
        if (y < 0)
            return x ? py_float(in, pow((double)x, (double)y))
                     : py_raise(in, loc, "ZeroDivisionError", "0 to a negative power");
        r = 1;
        while (y && !over) {
            if (y & 1)
                over = __builtin_mul_overflow(r, x, &r);
            y >>= 1;
            if (y && !over)
                over = __builtin_mul_overflow(x, x, &x);
        }
        break;
    case OS_DIV:
    case OS_FLOORDIV:
    case OS_MOD:
        if (!y)
            return py_raise(in, loc, "ZeroDivisionError", "it divides by zero");
        if (sign == OS_DIV)
            return py_float(in, (double)x / (double)y);
        if (y == -1) {
            over = sign == OS_FLOORDIV && __builtin_sub_overflow((Wide)0, x, &r);
            break;
        }
        Wide q = x / y, m = x % y;
        if (m && (m < 0) != (y < 0)) {
            q--;
            m += y;
        }
        r = sign == OS_MOD ? m : q;
        break;
    default: return not_known(in, sign, loc);
    }
    return over ? too_large(in, loc) : py_int(in, r);
}

static Py
float_binary(Interp *in, int sign, double x, double y, Loc loc)
{
    switch (sign) {
    case OS_ADD: return py_float(in, x + y);
    case OS_SUB: return py_float(in, x - y);
    case OS_MUL: return py_float(in, x * y);
    case OS_POW:
        if (x == 0 && y < 0)
            return py_raise(in, loc, "ZeroDivisionError", "0 to a negative power");
        if (x < 0 && y != floor(y))
            return py_unknown(in, loc, NULL, "it is a complex number");
        return py_float(in, pow(x, y));
    case OS_DIV:
    case OS_FLOORDIV:
    case OS_MOD: break;
    default: return not_known(in, sign, loc);
    }
    if (y == 0)
        return py_raise(in, loc, "ZeroDivisionError", "it divides by zero");
    if (sign == OS_DIV)
        return py_float(in, x / y);
    double m = fmod(x, y);
    if (m != 0 && (m < 0) != (y < 0))
        m += y;
    return py_float(in, sign == OS_MOD ? m : floor((x - m) / y + 0.5));
}

static Py
repeat(Interp *in, Py x, Wide n, Loc loc)
{
    Wide size = x->kind == PY_STR ? (Wide)x->u.str.n : x->u.list->n;
    if (n <= 0 || !size)
        n = 0;
    if (n > PY_MAX_SIZE || n * size > PY_MAX_SIZE)
        return py_unknown(in, loc, NULL, "it has more than %d elements", PY_MAX_SIZE);
    if (!py_step(in, (int64_t)(n * size)))
        return x;
    if (x->kind == PY_STR) {
        Buf b;
        buf_init(&b, in->a);
        buf_str(&b, "");
        for (int i = 0; i < (int)n; i++)
            buf_add(&b, x->u.str.s, x->u.str.n);
        return py_strn(in, b.s, b.n);
    }
    Py v = py_list(in, x->kind, NULL, 0);
    for (int i = 0; i < (int)n * (int)size; i++)
        py_push(in, v->u.list, x->u.list->at[i % (int)size]);
    v->u.list->lost = x->u.list->lost;
    return v;
}

static bool
contains(Interp *in, const PyList *l, Py v)
{
    for (int i = 0; i < l->n; i++)
        if (!py_step(in, 1) || py_equal(in, l->at[i], v, 0) > 0)
            return true;
    return false;
}

static Py
set_binary(Interp *in, int sign, Py a, Py b, Loc loc)
{
    const PyList *x = a->u.list, *y = b->u.list;
    Py v = py_list(in, PY_SET, NULL, 0);
    if (x->lost || y->lost)
        return x->lost ? x->lost : y->lost;
    if (sign != OS_OR && sign != OS_AND && sign != OS_SUB && sign != OS_XOR)
        return not_known(in, sign, loc);
    for (int i = 0; i < x->n; i++)
        if (sign == OS_OR || contains(in, y, x->at[i]) == (sign == OS_AND))
            py_set_add(in, v->u.list, x->at[i]);
    for (int i = 0; i < y->n && (sign == OS_OR || sign == OS_XOR); i++)
        if (sign == OS_OR || !contains(in, x, y->at[i]))
            py_set_add(in, v->u.list, y->at[i]);
    return v;
}

static Py
sequence_binary(Interp *in, int sign, Py a, Py b, Loc loc)
{
    bool seq_a = a->kind == PY_STR || a->kind == PY_LIST || a->kind == PY_TUPLE;
    bool seq_b = b->kind == PY_STR || b->kind == PY_LIST || b->kind == PY_TUPLE;
    if (sign == OS_MOD && a->kind == PY_STR)
        return py_percent(in, a, b, loc);
    if (sign == OS_MUL && seq_a && (b->kind == PY_INT || b->kind == PY_BOOL))
        return repeat(in, a, b->u.i, loc);
    if (sign == OS_MUL && seq_b && (a->kind == PY_INT || a->kind == PY_BOOL))
        return repeat(in, b, a->u.i, loc);
    if (sign == OS_OR && a->kind == PY_DICT && b->kind == PY_DICT) {
        Py v = py_dict(in);
        PyDict *d = v->u.dict;
        d->lost = a->u.dict->lost ? a->u.dict->lost : b->u.dict->lost;
        for (int i = 0; i < a->u.dict->n; i++)
            pydict_set(in, d, a->u.dict->key[i], a->u.dict->val[i]);
        for (int i = 0; i < b->u.dict->n; i++)
            pydict_set(in, d, b->u.dict->key[i], b->u.dict->val[i]);
        return v;
    }
    if (a->kind == PY_SET && b->kind == PY_SET)
        return set_binary(in, sign, a, b, loc);
    if (sign != OS_ADD || a->kind != b->kind || !seq_a)
        return NULL;
    if (a->kind == PY_STR) {
        if (a->u.str.n + b->u.str.n > PY_MAX_SIZE)
            return py_unknown(in, loc, NULL, "it has more than %d bytes", PY_MAX_SIZE);
        if (!py_step(in, (int64_t)((a->u.str.n + b->u.str.n) / 16)))
            return a;
        Buf t;
        buf_init(&t, in->a);
        buf_str(&t, "");
        buf_add(&t, a->u.str.s, a->u.str.n);
        buf_add(&t, b->u.str.s, b->u.str.n);
        return py_strn(in, t.s, t.n);
    }
    const PyList *x = a->u.list, *y = b->u.list;
    if (!py_step(in, x->n + y->n) || x->n + y->n > PY_MAX_SIZE)
        return py_unknown(in, loc, NULL, "it has more than %d elements", PY_MAX_SIZE);
    Py v = py_list(in, a->kind, x->at, x->n);
    for (int i = 0; i < y->n; i++)
        py_push(in, v->u.list, y->at[i]);
    v->u.list->lost = x->lost ? x->lost : y->lost;
    return v;
}

Py
py_binary(Interp *in, int sign, Py a, Py b, Loc loc)
{
    bool made = a->kind == PY_CONSTEXPR || b->kind == PY_CONSTEXPR;
    a = py_unwrapped_plain(a);
    b = py_unwrapped_plain(b);
    Py v;
    if (a->kind == PY_UNKNOWN || b->kind == PY_UNKNOWN)
        v = a->kind == PY_UNKNOWN ? a : b;
    else if (!(v = sequence_binary(in, sign, a, b, loc))) {
        bool sum = sign == OS_ADD || sign == OS_SUB || sign == OS_DIV;
        if (!py_is_number(a) || !py_is_number(b)) {
            v = sum && is_data(a) && is_data(b) ? type_error(in, sign, loc)
                                                : not_known(in, sign, loc);
        } else if (a->kind == PY_FLOAT || b->kind == PY_FLOAT) {
            v = float_binary(in, sign, py_double(a), py_double(b), loc);
        } else {
            v = int_binary(in, sign, a->u.i, b->u.i, loc);
            bool bits = sign == OS_AND || sign == OS_OR || sign == OS_XOR;
            if (bits && a->kind == PY_BOOL && b->kind == PY_BOOL)
                v = py_bool(in, v->u.i != 0);
        }
    }
    return made && !py_raises(in) ? py_constexpr(in, v) : v;
}

/* ---- comparisons */

/* -1, 0, 1 in *c; false: not known. */
static bool
order(Interp *in, Py a, Py b, int *c, int depth)
{
    if (py_is_number(a) && py_is_number(b)) {
        if (a->kind == PY_FLOAT || b->kind == PY_FLOAT) {
            double x = py_double(a), y = py_double(b);
            *c = x < y ? -1 : x > y;
            return !isnan(x) && !isnan(y);
        }
        *c = a->u.i < b->u.i ? -1 : a->u.i > b->u.i;
        return true;
    }
    if (a->kind == PY_OBJECT && b->kind == PY_OBJECT && a->u.object->type &&
        b->u.object->type && strcmp(a->u.object->type, "Version") == 0 &&
        strcmp(b->u.object->type, "Version") == 0) {
        a = pydict_name(a->u.object->attrs, "release");
        b = pydict_name(b->u.object->attrs, "release");
    }
    if (a->kind != b->kind || depth > 16)
        return false;
    if (a->kind == PY_STR) {
        size_t n = a->u.str.n < b->u.str.n ? a->u.str.n : b->u.str.n;
        int d = memcmp(a->u.str.s, b->u.str.s, n);
        *c = d ? d : a->u.str.n < b->u.str.n ? -1 : a->u.str.n > b->u.str.n;
        return true;
    }
    if (a->kind != PY_TUPLE && a->kind != PY_LIST)
        return false;
    const PyList *x = a->u.list, *y = b->u.list;
    if (x->lost || y->lost)
        return false;
    for (int i = 0; i < x->n && i < y->n; i++) {
        int e = py_step(in, 1) ? py_equal(in, x->at[i], y->at[i], 0) : -1;
        if (e < 0)
            return false;
        if (!e)
            return order(in, x->at[i], y->at[i], c, depth + 1);
    }
    *c = x->n < y->n ? -1 : x->n > y->n;
    return true;
}

static int
is_in(Interp *in, Py x, Py y)
{
    if (x->kind == PY_STR && y->kind == PY_STR)
        return strstr(y->u.str.s, x->u.str.s) != NULL;
    if (y->kind == PY_DICT) {
        Py lost = NULL, v = pydict_get(in, y->u.dict, x, &lost);
        return v ? 1 : lost ? -1 : 0;
    }
    if (y->kind == PY_RANGE && (x->kind == PY_INT || x->kind == PY_BOOL)) {
        Wide a = y->u.range.start, b = y->u.range.stop, s = y->u.range.step;
        bool inside = s > 0 ? x->u.i >= a && x->u.i < b : x->u.i <= a && x->u.i > b;
        return inside && (x->u.i - a) % s == 0;
    }
    if (y->kind != PY_TUPLE && y->kind != PY_LIST && y->kind != PY_SET)
        return -1;
    int found = y->u.list->lost ? -1 : 0;
    for (int i = 0; i < y->u.list->n; i++) {
        int e = py_step(in, 1) ? py_equal(in, x, y->u.list->at[i], 0) : -1;
        if (e > 0)
            return 1;
        found = e < 0 ? e : found;
    }
    return found;
}

static int
identical(Interp *in, Py a, Py b)
{
    if (a->kind == PY_UNKNOWN || b->kind == PY_UNKNOWN)
        return -1;
    if (a->kind != b->kind)
        return 0;
    switch (a->kind) {
    case PY_LIST:
    case PY_SET: return a->u.list == b->u.list;
    case PY_DICT: return a->u.dict == b->u.dict;
    case PY_OBJECT: return a->u.object == b->u.object;
    default: return py_equal(in, a, b, 0);
    }
}

Py
py_compare(Interp *in, int sign, Py a, Py b, Loc loc)
{
    while (a->kind == PY_CONSTEXPR && sign != OS_IS && sign != OS_IS_NOT)
        a = a->u.inner;
    while (b->kind == PY_CONSTEXPR && sign != OS_IS && sign != OS_IS_NOT)
        b = b->u.inner;
    if (sign != OS_IS && sign != OS_IS_NOT) {
        a = py_plain(a);
        b = py_plain(b);
    }
    Py lost = a->kind == PY_UNKNOWN ? a : b->kind == PY_UNKNOWN ? b : NULL;
    int t = -1, c = 0;
    if (lost)
        return lost;
    switch (sign) {
    case OS_EQ:
    case OS_NE:
        t = order(in, a, b, &c, 0) ? c == 0 : py_equal(in, a, b, 0);
        t = t < 0 ? t : t == (sign == OS_EQ);
        break;
    case OS_IS:
    case OS_IS_NOT:
        t = identical(in, a, b);
        t = t < 0 ? t : t == (sign == OS_IS);
        break;
    case OS_IN:
    case OS_NOT_IN:
        t = is_in(in, a, b);
        t = t < 0 ? t : t == (sign == OS_IN);
        break;
    default:
        if (py_is_number(a) && py_is_number(b) &&
            (isnan(py_double(a)) || isnan(py_double(b))))
            t = 0;
        else if (order(in, a, b, &c, 0))
            t = sign == OS_LT   ? c < 0
                : sign == OS_LE ? c <= 0
                : sign == OS_GT ? c > 0
                                : c >= 0;
    }
    bool same = a->kind == b->kind || (py_is_number(a) && py_is_number(b));
    if (t < 0 && is_data(a) && is_data(b) && !same &&
        (sign == OS_LT || sign == OS_LE || sign == OS_GT || sign == OS_GE))
        return type_error(in, sign, loc);
    return t < 0 ? not_known(in, sign, loc) : py_bool(in, t);
}

/* ---- elements */

Py
py_slice(Interp *in, Py x, Py s, Loc loc)
{
    Wide n = x->kind == PY_STR ? (Wide)x->u.str.n : x->u.list->n, part[3];
    for (int i = 0; i < 3; i++) {
        Py p = s->u.slice[i];
        if (p->kind != PY_NONE && p->kind != PY_INT && p->kind != PY_BOOL)
            return py_unknown(in, loc, NULL, "its bounds are not known");
        part[i] = p->kind == PY_NONE ? 0 : p->u.i;
    }
    Wide step = s->u.slice[2]->kind == PY_NONE ? 1 : part[2];
    if (!step)
        return py_raise(in, loc, "ValueError", "a slice of step 0");
    Wide low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    for (int i = 0; i < 2; i++) {
        bool none = s->u.slice[i]->kind == PY_NONE;
        Wide at = none          ? ((i == 0) == (step > 0) ? low : high)
                  : part[i] < 0 ? part[i] + n
                                : part[i];
        part[i] = at < low ? low : at > high ? high : at;
    }
    Buf b;
    buf_init(&b, in->a);
    buf_str(&b, "");
    Py v = x->kind == PY_STR ? NULL : py_list(in, x->kind, NULL, 0);
    for (Wide i = part[0]; step > 0 ? i < part[1] : i > part[1]; i += step) {
        if (!py_step(in, 1))
            return x;
        if (v)
            py_push(in, v->u.list, x->u.list->at[(int)i]);
        else
            buf_char(&b, x->u.str.s[(size_t)i]);
        if (step > n || step < -n)
            break;
    }
    return v ? v : py_strn(in, b.s, b.n);
}

Py
py_subscript(Interp *in, Py x, Py i, const Node *n)
{
    Loc loc = n->loc;
    x = py_unwrapped(x);
    i = py_unwrapped(i);
    if (py_lost(x) || py_lost(i))
        return py_unknown_part(in, py_lost(x) ? x : i, n);
    if (x->kind == PY_DICT) {
        Py lost = NULL, v = pydict_get(in, x->u.dict, i, &lost);
        return v      ? v
               : lost ? lost
                      : py_raise(in, loc, "KeyError", "a key that is not there");
    }
    if (x->kind == PY_CLASS && x->u.class_->is_enum && i->kind == PY_STR) {
        Py v = py_class_attribute(in, x, name_of(&in->s->names, i->u.str.s));
        return v ? v : py_raise(in, loc, "KeyError", "no member of that name");
    }
    if (x->kind == PY_STR && !py_is_ascii(x))
        return py_unknown(in, loc, py_source(in, n),
                          "text beyond ASCII is not taken apart");
    bool list = x->kind == PY_LIST || x->kind == PY_TUPLE;
    if (list && x->u.list->lost)
        return x->u.list->lost;
    if ((list || x->kind == PY_STR) && i->kind == PY_SLICE)
        return py_slice(in, x, i, loc);
    if (i->kind != PY_INT && i->kind != PY_BOOL)
        return py_unknown(in, loc, py_source(in, n), "it is known to Python alone");
    Wide size = list ? x->u.list->n : x->kind == PY_STR ? (Wide)x->u.str.n : -1;
    Py lost = NULL;
    PyList *l = x->kind == PY_RANGE ? py_elements(in, x, loc, &lost) : NULL;
    if (l)
        size = l->n;
    if (size < 0)
        return py_unknown(in, loc, py_source(in, n), "it is known to Python alone");
    Wide at = i->u.i < 0 ? i->u.i + size : i->u.i;
    if (at < 0 || at >= size)
        return py_raise(in, loc, "IndexError", "an index that is out of range");
    return l ? l->at[at] : list ? x->u.list->at[at] : py_strn(in, x->u.str.s + at, 1);
}

PyList *
py_elements(Interp *in, Py v, Loc loc, Py *lost)
{
    v = py_unwrapped(v);
    PyList *l = NULL;
    switch (v->kind) {
    case PY_TUPLE:
    case PY_LIST:
    case PY_SET:
        *lost = v->u.list->lost;
        if (v->kind == PY_SET && v->u.list->n > 1 && !*lost)
            *lost = py_unknown(in, loc, NULL, "the order of a set is Python's");
        return *lost ? NULL : py_list(in, PY_LIST, v->u.list->at, v->u.list->n)->u.list;
    case PY_DICT:
        *lost = v->u.dict->lost;
        return *lost ? NULL : py_list(in, PY_LIST, v->u.dict->key, v->u.dict->n)->u.list;
    case PY_STR:
        if (!py_is_ascii(v))
            break;
        l = py_list(in, PY_LIST, NULL, 0)->u.list;
        for (size_t i = 0; i < v->u.str.n && py_step(in, 1); i++)
            py_push(in, l, py_strn(in, v->u.str.s + i, 1));
        return l;
    case PY_RANGE:
        l = py_list(in, PY_LIST, NULL, 0)->u.list;
        for (Wide i = v->u.range.start;
             l->n <= PY_MAX_SIZE && py_step(in, 1) &&
             (v->u.range.step > 0 ? i < v->u.range.stop : i > v->u.range.stop);
             i += v->u.range.step)
            py_push(in, l, py_int(in, i));
        return l;
    case PY_CLASS: /* the members of an enumeration */
        l = py_list(in, PY_LIST, NULL, 0)->u.list;
        for (int i = 0; v->u.class_->is_enum && i < v->u.class_->body->index.n; i++) {
            const PyBind *b = v->u.class_->body->index.entries[i].val;
            bool member = b->val && b->val->kind == PY_OBJECT &&
                          b->val->u.object->class_ == v;
            Py own = member ? pydict_name(b->val->u.object->attrs, "name") : NULL;
            if (own && strcmp(own->u.str.s, b->name) == 0) /* not its second name */
                py_push(in, l, b->val);
        }
        if (v->u.class_->is_enum)
            return l;
        break;
    default: break;
    }
    *lost = py_lost(v) ? py_lost(v)
            : py_is_number(v) || v->kind == PY_NONE
                ? py_raise(in, loc, "TypeError", "it has no elements")
                : py_unknown(in, loc, NULL, "its elements are known to Python alone");
    return NULL;
}

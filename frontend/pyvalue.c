/* Values of the host: making, comparing, printing as Python prints. */
#include "frontend/py.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COMPARE = 64 };

PyVal *
py_new(Interp *in, PyKind k)
{
    PyVal *v = arena_new(in->a, PyVal);
    v->kind = k;
    return v;
}

Py
py_bool(Interp *in, bool b)
{
    return b ? in->yes : in->no;
}

Py
py_int(Interp *in, Wide i)
{
    PyVal *v = py_new(in, PY_INT);
    v->u.i = i;
    return v;
}

Py
py_float(Interp *in, double f)
{
    PyVal *v = py_new(in, PY_FLOAT);
    v->u.f = f;
    return v;
}

Py
py_strn(Interp *in, const char *s, size_t n)
{
    PyVal *v = py_new(in, PY_STR);
    v->u.str.s = arena_strndup(in->a, s, n);
    v->u.str.n = n;
    return v;
}

Py
py_str(Interp *in, const char *s)
{
    return py_strn(in, s, strlen(s));
}

Py
py_list(Interp *in, PyKind k, const Py *at, int n)
{
    PyVal *v = py_new(in, k);
    PyList *l = arena_new(in->a, PyList);
    l->n = l->cap = n;
    l->epoch = in->epoch;
    l->at = arena_array(in->a, Py, n + 1);
    if (n)
        memcpy(l->at, at, sizeof *at * (size_t)n);
    v->u.list = l;
    return v;
}

Py
py_dict(Interp *in)
{
    PyVal *v = py_new(in, PY_DICT);
    v->u.dict = arena_new(in->a, PyDict);
    v->u.dict->epoch = in->epoch;
    return v;
}

Py
py_builtin(Interp *in, const char *name, PyBuiltinFn *fn, Py self)
{
    PyVal *v = py_new(in, PY_BUILTIN);
    v->u.builtin.name = name;
    v->u.builtin.fn = fn;
    v->u.builtin.self = self;
    return v;
}

Py
py_module(Interp *in, Name path, FrontModule *file)
{
    PyVal *v = py_new(in, PY_MODULE);
    v->u.module.path = path;
    v->u.module.file = file;
    return v;
}

Py
py_unknown(Interp *in, Loc loc, const char *key, const char *why, ...)
{
    PyVal *v = py_new(in, PY_UNKNOWN);
    PyUnknown *u = arena_new(in->a, PyUnknown);
    Buf b;
    va_list ap;
    buf_init(&b, in->a);
    va_start(ap, why);
    buf_vprintf(&b, why, ap);
    va_end(ap);
    *u = (PyUnknown){.loc = loc, .why = b.s ? b.s : "", .key = key};
    v->u.unknown = u;
    return v;
}

Py
py_unwrapped(Py v)
{
    while (v->kind == PY_CONSTEXPR)
        v = v->u.inner;
    return v;
}

Py
py_lost(Py v)
{
    v = py_unwrapped(v);
    return v->kind == PY_UNKNOWN ? v : NULL;
}

bool
py_is_ascii(Py text)
{
    for (size_t i = 0; i < text->u.str.n; i++)
        if (text->u.str.s[i] & 0x80)
            return false;
    return true;
}

bool
py_is_number(Py v)
{
    return v->kind == PY_BOOL || v->kind == PY_INT || v->kind == PY_FLOAT;
}

double
py_double(Py v)
{
    return v->kind == PY_FLOAT ? v->u.f : (double)v->u.i;
}

int
py_truth(Interp *in, Py v)
{
    switch (v->kind) {
    case PY_UNKNOWN:
    case PY_IMPORT: return -1;
    case PY_OBJECT:
        if (v->u.object->type)
            return 1;
        return v->u.object->class_->u.class_->known &&
                       !py_class_attribute(in, v->u.object->class_,
                                           name_of(&in->s->names, "__bool__")) &&
                       !py_class_attribute(in, v->u.object->class_,
                                           name_of(&in->s->names, "__len__"))
                   ? 1
                   : -1;
    case PY_NONE: return 0;
    case PY_BOOL:
    case PY_INT: return v->u.i != 0;
    case PY_FLOAT: return v->u.f != 0;
    case PY_STR: return v->u.str.n != 0;
    case PY_TUPLE:
    case PY_LIST:
    case PY_SET: return v->u.list->lost ? -1 : v->u.list->n != 0;
    case PY_DICT: return v->u.dict->lost ? -1 : v->u.dict->n != 0;
    case PY_RANGE:
        return v->u.range.step > 0 ? v->u.range.start < v->u.range.stop
                                   : v->u.range.start > v->u.range.stop;
    case PY_CONSTEXPR: return py_truth(in, v->u.inner);
    default: return 1;
    }
}

static int
equal_lists(Interp *in, const PyList *a, const PyList *b, int depth)
{
    if (a->lost || b->lost)
        return -1;
    if (a->n != b->n)
        return 0;
    int all = 1;
    for (int i = 0; i < a->n; i++) {
        if (!py_step(in, 1))
            return -1;
        int e = py_equal(in, a->at[i], b->at[i], depth + 1);
        if (!e)
            return 0;
        all = e < 0 ? e : all;
    }
    return all;
}

static int
equal_dicts(Interp *in, const PyDict *a, const PyDict *b, int depth)
{
    if (a->lost || b->lost)
        return -1;
    if (a->n != b->n)
        return 0;
    int all = 1;
    for (int i = 0; i < a->n; i++) {
        Py lost = NULL, v = pydict_get(in, b, a->key[i], &lost);
        int e = lost ? -1 : v ? py_equal(in, a->val[i], v, depth + 1) : 0;
        if (!e)
            return 0;
        all = e < 0 ? e : all;
    }
    return all;
}

/* A set has no order. */
static int
equal_sets(Interp *in, const PyList *a, const PyList *b, int depth)
{
    if (a->lost || b->lost)
        return -1;
    int all = a->n == b->n;
    for (int i = 0; i < a->n && all > 0; i++) {
        int found = 0;
        for (int k = 0; k < b->n && found <= 0; k++) {
            if (!py_step(in, 1))
                return -1;
            int e = py_equal(in, a->at[i], b->at[k], depth + 1);
            found = e ? e : found;
        }
        all = found;
    }
    return all;
}

static int
equal_fe(Val a, Val b)
{
    if (a->kind != b->kind)
        return 0;
    switch (a->kind) {
    case FE_DTYPE: return a->dt == b->dt;
    case FE_BUILTIN: return a->u.builtin == b->u.builtin;
    case FE_TYPE: return a->n == b->n && a->dt == b->dt;
    default: return a == b;
    }
}

/* May its class say that it equals something of another type? Enum does not. */
static bool
maybe_equal(Interp *in, Py v)
{
    const PyObject *o = v->kind == PY_OBJECT ? v->u.object : NULL;
    bool member = o && o->type && strcmp(o->type, "enum") == 0;
    return o && (!member || py_class_attribute(in, o->class_,
                                               name_of(&in->s->names, "__eq__")));
}

int
py_equal(Interp *in, Py a, Py b, int depth)
{
    if (depth > MAX_COMPARE)
        return -1;
    a = py_unwrapped_plain(a);
    b = py_unwrapped_plain(b);
    if (a->kind == PY_UNKNOWN || b->kind == PY_UNKNOWN)
        return -1;
    if (py_is_number(a) && py_is_number(b)) {
        if (a->kind == PY_FLOAT || b->kind == PY_FLOAT)
            return py_double(a) == py_double(b);
        return a->u.i == b->u.i;
    }
    if (a->kind != b->kind)
        return maybe_equal(in, a) || maybe_equal(in, b) ? -1 : 0;
    switch (a->kind) {
    case PY_NONE: return 1;
    case PY_STR:
        return a->u.str.n == b->u.str.n &&
               memcmp(a->u.str.s, b->u.str.s, a->u.str.n) == 0;
    case PY_TUPLE:
    case PY_LIST: return equal_lists(in, a->u.list, b->u.list, depth);
    case PY_SET: return equal_sets(in, a->u.list, b->u.list, depth);
    case PY_DICT: return equal_dicts(in, a->u.dict, b->u.dict, depth);
    case PY_FE: return equal_fe(a->u.fe, b->u.fe);
    case PY_FUNC: return a->u.func == b->u.func;
    case PY_CLASS: return a->u.class_ == b->u.class_;
    case PY_MODULE: return a->u.module.path == b->u.module.path;
    case PY_BUILTIN:
        return a->u.builtin.fn == b->u.builtin.fn &&
               a->u.builtin.self == b->u.builtin.self &&
               strcmp(a->u.builtin.name, b->u.builtin.name) == 0;
    case PY_OBJECT: {
        const char *x = a->u.object->type, *y = b->u.object->type;
        bool members = x && y && strcmp(x, "enum") == 0 && strcmp(y, "enum") == 0;
        return a->u.object == b->u.object ? 1 : members ? 0 : -1;
    }
    default: return a == b ? 1 : -1;
    }
}

bool
py_same(Py a, Py b)
{
    if (a == b)
        return true;
    if (!a || !b || a->kind != b->kind)
        return false;
    switch (a->kind) {
    case PY_NONE: return true;
    case PY_BOOL:
    case PY_INT: return a->u.i == b->u.i;
    case PY_FLOAT: return memcmp(&a->u.f, &b->u.f, sizeof a->u.f) == 0;
    case PY_STR:
        return a->u.str.n == b->u.str.n &&
               memcmp(a->u.str.s, b->u.str.s, a->u.str.n) == 0;
    case PY_CONSTEXPR: return py_same(a->u.inner, b->u.inner);
    case PY_FE: return equal_fe(a->u.fe, b->u.fe) > 0;
    case PY_FUNC: return a->u.func == b->u.func;
    case PY_CLASS: return a->u.class_ == b->u.class_;
    case PY_OBJECT: return a->u.object == b->u.object;
    case PY_DICT: return a->u.dict == b->u.dict;
    case PY_LIST:
    case PY_SET: return a->u.list == b->u.list;
    case PY_TUPLE:
        if (a->u.list->n != b->u.list->n || a->u.list->n > MAX_COMPARE)
            return false;
        for (int i = 0; i < a->u.list->n; i++) {
            Py x = a->u.list->at[i], y = b->u.list->at[i];
            if (x->kind == PY_TUPLE ? x != y : !py_same(x, y))
                return false;
        }
        return true;
    case PY_MODULE:
        return a->u.module.path == b->u.module.path &&
               a->u.module.file == b->u.module.file;
    default: return false;
    }
}

/* ---- text */

static void
int_text(Buf *b, Wide i)
{
    char digits[48];
    int n = 0;
    bool minus = i < 0;
    PyWord u = minus ? -(PyWord)i : (PyWord)i;
    do
        digits[n++] = (char)('0' + (int)(u % 10));
    while (u /= 10);
    if (minus)
        buf_char(b, '-');
    while (n)
        buf_char(b, digits[--n]);
}

/* The shortest text that reads back as the same number, as repr() writes it. */
static void
float_text(Buf *b, double f)
{
    char s[40];
    if (isnan(f) || isinf(f)) {
        buf_str(b, isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
        return;
    }
    int digits = 1;
    for (; digits < 17; digits++) {
        snprintf(s, sizeof s, "%.*e", digits - 1, f);
        if (strtod(s, NULL) == f)
            break;
    }
    snprintf(s, sizeof s, "%.*e", digits - 1, f);
    int exponent = atoi(strchr(s, 'e') + 1);
    if (exponent < -4 || exponent >= 16) {
        char *e = strchr(s, 'e');
        buf_add(b, s, (size_t)(e - s));
        buf_printf(b, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    int after = digits - 1 - exponent;
    snprintf(s, sizeof s, "%.*f", after > 0 ? after : 0, f);
    buf_str(b, s);
    if (!strchr(s, '.'))
        buf_str(b, ".0");
}

static void
quoted(Buf *b, const char *s, size_t n)
{
    char q = memchr(s, '\'', n) && !memchr(s, '"', n) ? '"' : '\'';
    buf_char(b, q);
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        if (c == q || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (c == '\n' || c == '\t' || c == '\r')
            buf_printf(b, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
        else if ((unsigned char)c < 32 || c == 127)
            buf_printf(b, "\\x%02x", (unsigned char)c);
        else
            buf_char(b, c);
    }
    buf_char(b, q);
}

static bool
items_text(Interp *in, Buf *b, Py v, int depth)
{
    const PyList *l = v->u.list;
    const char *ends = v->kind == PY_TUPLE ? "()" : v->kind == PY_LIST ? "[]" : "{}";
    if (l->lost || (v->kind == PY_SET && l->n > 1))
        return false;
    if (v->kind == PY_SET && !l->n) {
        buf_str(b, "set()");
        return true;
    }
    buf_char(b, ends[0]);
    for (int i = 0; i < l->n; i++) {
        if (i)
            buf_str(b, ", ");
        if (!py_text(in, b, l->at[i], true, depth + 1))
            return false;
    }
    if (v->kind == PY_TUPLE && l->n == 1)
        buf_char(b, ',');
    buf_char(b, ends[1]);
    return true;
}

static bool
dict_text(Interp *in, Buf *b, const PyDict *d, int depth)
{
    if (d->lost)
        return false;
    buf_char(b, '{');
    for (int i = 0; i < d->n; i++) {
        if (i)
            buf_str(b, ", ");
        if (!py_text(in, b, d->key[i], true, depth + 1))
            return false;
        buf_str(b, ": ");
        if (!py_text(in, b, d->val[i], true, depth + 1))
            return false;
    }
    buf_char(b, '}');
    return true;
}

void
py_member_text(Buf *b, Py v, bool repr)
{
    Py name = pydict_name(v->u.object->attrs, "name");
    buf_printf(b, "%s%s.%s", repr ? "<" : "", v->u.object->class_->u.class_->name,
               name->u.str.s);
}

/* Members that are numbers, and those of StrEnum, show their value alone. */
static bool
member_text(Interp *in, Buf *b, Py v, bool repr, int depth)
{
    Py class_ = v->u.object->class_, value = pydict_name(v->u.object->attrs, "value");
    if (!value || py_class_attribute(in, class_, name_of(&in->s->names, "__str__")))
        return false;
    if (!repr && class_->u.class_->is_shown)
        return py_text(in, b, value, false, depth + 1);
    py_member_text(b, v, repr);
    if (!repr)
        return true;
    buf_str(b, ": ");
    if (!py_text(in, b, value, true, depth + 1))
        return false;
    buf_char(b, '>');
    return true;
}

bool
py_text(Interp *in, Buf *b, Py v, bool repr, int depth)
{
    if (depth > MAX_COMPARE || !py_step(in, 1) || b->n > PY_MAX_SIZE)
        return false;
    switch (v->kind) {
    case PY_NONE: buf_str(b, "None"); return true;
    case PY_BOOL: buf_str(b, v->u.i ? "True" : "False"); return true;
    case PY_INT: int_text(b, v->u.i); return true;
    case PY_FLOAT: float_text(b, v->u.f); return true;
    case PY_STR:
        if (repr)
            quoted(b, v->u.str.s, v->u.str.n);
        else
            buf_add(b, v->u.str.s, v->u.str.n);
        return true;
    case PY_TUPLE:
    case PY_LIST:
    case PY_SET: return items_text(in, b, v, depth);
    case PY_DICT: return dict_text(in, b, v->u.dict, depth);
    case PY_RANGE:
        buf_str(b, "range(");
        int_text(b, v->u.range.start);
        buf_str(b, ", ");
        int_text(b, v->u.range.stop);
        if (v->u.range.step != 1) {
            buf_str(b, ", ");
            int_text(b, v->u.range.step);
        }
        buf_char(b, ')');
        return true;
    case PY_CONSTEXPR:
        buf_str(b, "constexpr[");
        if (!py_text(in, b, v->u.inner, false, depth + 1))
            return false;
        buf_char(b, ']');
        return true;
    case PY_FE:
        if (v->u.fe->kind != FE_DTYPE)
            return false;
        val_print(b, v->u.fe);
        return true;
    case PY_OBJECT:
        if (v->u.object->type && strcmp(v->u.object->type, "Version") == 0 && !repr)
            return py_text(in, b, pydict_name(v->u.object->attrs, "text"), false, depth);
        return v->u.object->type && strcmp(v->u.object->type, "enum") == 0 &&
               member_text(in, b, v, repr, depth);
    default: return false;
    }
}

/* ---- containers */

void
py_push(Interp *in, PyList *l, Py v)
{
    pylist_touch(in, l);
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 8;
        Py *at = arena_array(in->a, Py, l->cap);
        if (l->n)
            memcpy(at, l->at, sizeof *at * (size_t)l->n);
        l->at = at;
    }
    l->at[l->n++] = v;
}

static int
dict_place(Interp *in, const PyDict *d, Py key, Py *lost)
{
    if (d->lost || py_lost(key)) {
        *lost = d->lost ? d->lost : py_lost(key);
        return -1;
    }
    for (int i = 0; i < d->n; i++) {
        if (!py_step(in, 1)) {
            *lost = key; /* the statement ends here */
            return -1;
        }
        int e = py_equal(in, d->key[i], key, 0);
        if (e > 0)
            return i;
        if (e < 0)
            *lost = py_lost(d->key[i]) ? py_lost(d->key[i]) : key;
    }
    return -1;
}

Py
pydict_get(Interp *in, const PyDict *d, Py key, Py *lost)
{
    Py unsure = NULL;
    int i = dict_place(in, d, key, &unsure);
    if (i < 0 && unsure && lost)
        *lost = py_lost(unsure)
                    ? unsure
                    : py_unknown(in, (Loc){0}, NULL,
                                 "it is looked up by what cannot be compared");
    return i < 0 ? NULL : d->val[i];
}

Py
pydict_name(const PyDict *d, const char *name)
{
    for (int i = 0; i < d->n; i++)
        if (d->key[i]->kind == PY_STR && strcmp(d->key[i]->u.str.s, name) == 0)
            return d->val[i];
    return NULL;
}

void
pydict_set(Interp *in, PyDict *d, Py key, Py v)
{
    Py lost = NULL;
    int i = dict_place(in, d, key, &lost);
    pydict_touch(in, d);
    if (lost && i < 0) {
        d->lost = py_lost(lost)
                      ? lost
                      : py_unknown(in, (Loc){0}, NULL, "its keys cannot be compared");
        return;
    }
    if (i >= 0) {
        d->val[i] = v;
        return;
    }
    if (d->n == d->cap) {
        int cap = d->cap ? d->cap * 2 : 8;
        Py *key_ = arena_array(in->a, Py, cap), *val = arena_array(in->a, Py, cap);
        if (d->n) {
            memcpy(key_, d->key, sizeof *key_ * (size_t)d->n);
            memcpy(val, d->val, sizeof *val * (size_t)d->n);
        }
        d->key = key_;
        d->val = val;
        d->cap = cap;
    }
    d->key[d->n] = key;
    d->val[d->n++] = v;
}

bool
pydict_del(Interp *in, PyDict *d, int i)
{
    pydict_touch(in, d);
    for (; i + 1 < d->n; i++) {
        d->key[i] = d->key[i + 1];
        d->val[i] = d->val[i + 1];
    }
    d->n--;
    return true;
}

/* Python's own functions. */
#include "frontend/pylib.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

Py
pyarg(const PyCall *c, int i, const char *name)
{
    if (i >= 0 && i < c->n)
        return c->at[i];
    return name ? pydict_name(c->named->u.dict, name) : NULL;
}

bool
pyarg_int(Py v, Wide *out)
{
    v = py_unwrapped(v);
    if (v->kind != PY_INT && v->kind != PY_BOOL)
        return false;
    *out = v->u.i;
    return true;
}

Py
pylib_unknown(Interp *in, const PyCall *c)
{
    for (int i = 0; i < c->n; i++)
        if (py_lost(c->at[i]))
            return c->at[i];
    if (c->self && py_lost(c->self))
        return c->self;
    return py_unknown(in, c->loc, c->node ? py_source(in, c->node) : NULL,
                      "what '%s' gives is known to Python alone",
                      c->name ? c->name : "it");
}

static Py
length(Interp *in, const PyCall *c)
{
    Py v = c->n == 1 ? py_unwrapped_plain(c->at[0]) : NULL, lost = NULL;
    if (v && v->kind == PY_STR) {
        Wide n = 0;
        for (size_t i = 0; i < v->u.str.n; i++)
            n += (v->u.str.s[i] & 0xc0) != 0x80;
        return py_int(in, n);
    }
    if (v && (v->kind == PY_LIST || v->kind == PY_TUPLE || v->kind == PY_SET))
        return v->u.list->lost ? v->u.list->lost : py_int(in, v->u.list->n);
    if (v && v->kind == PY_DICT)
        return v->u.dict->lost ? v->u.dict->lost : py_int(in, v->u.dict->n);
    if (v && (py_is_number(v) || v->kind == PY_NONE))
        return py_raise(in, c->loc, "TypeError", "it has no length");
    PyList *l = v && v->kind == PY_RANGE ? py_elements(in, v, c->loc, &lost) : NULL;
    return l ? py_int(in, l->n) : pylib_unknown(in, c);
}

static Py
range(Interp *in, const PyCall *c)
{
    Wide at[3] = {0, 0, 1};
    if (c->n < 1 || c->n > 3)
        return pylib_unknown(in, c);
    for (int i = 0; i < c->n; i++)
        if (!pyarg_int(c->at[i], &at[c->n == 1 ? 1 : i]))
            return pylib_unknown(in, c);
    if (!at[2])
        return py_raise(in, c->loc, "ValueError", "a range of step 0");
    for (int i = 0; i < 3; i++)
        if (at[i] > INT64_MAX / 4 || at[i] < INT64_MIN / 4)
            return pylib_unknown(in, c);
    PyVal *v = py_new(in, PY_RANGE);
    v->u.range.start = at[0];
    v->u.range.stop = at[1];
    v->u.range.step = at[2];
    return v;
}

static Py
to_int(Interp *in, const PyCall *c)
{
    Py v = c->n ? py_unwrapped_plain(c->at[0]) : NULL;
    if (!v)
        return py_int(in, 0);
    if (c->n == 1 && (v->kind == PY_INT || v->kind == PY_BOOL))
        return py_int(in, v->u.i);
    if (c->n == 1 && v->kind == PY_FLOAT && fabs(v->u.f) < 0x1p62)
        return py_int(in, (Wide)v->u.f);
    if (v->kind != PY_STR || v->u.str.n > 60)
        return pylib_unknown(in, c);
    Wide base = 10;
    char *end = NULL;
    if (c->n == 2 && (!pyarg_int(c->at[1], &base) || base < 2 || base > 36))
        return pylib_unknown(in, c);
    if (strchr(v->u.str.s, '_') || strlen(v->u.str.s) > 17)
        return pylib_unknown(in, c);
    long long i = strtoll(v->u.str.s, &end, (int)base);
    while (*end == ' ' || *end == '\n')
        end++;
    if (end == v->u.str.s || *end)
        return py_raise(in, c->loc, "ValueError", "the text is no integer");
    return py_int(in, i);
}

static Py
to_float(Interp *in, const PyCall *c)
{
    Py v = c->n ? py_unwrapped_plain(c->at[0]) : NULL;
    char *end;
    if (!v)
        return py_float(in, 0);
    if (py_is_number(v))
        return py_float(in, py_double(v));
    if (v->kind != PY_STR)
        return pylib_unknown(in, c);
    double f = strtod(v->u.str.s, &end);
    if (end == v->u.str.s || *end || strpbrk(v->u.str.s, "xX_ ("))
        return *end || end == v->u.str.s
                   ? py_raise(in, c->loc, "ValueError", "the text is no number")
                   : pylib_unknown(in, c);
    return py_float(in, f);
}

static Py
to_bool(Interp *in, const PyCall *c)
{
    int t = c->n ? py_truth(in, c->at[0]) : 0;
    return t < 0 ? pylib_unknown(in, c) : py_bool(in, t);
}

static Py
to_str(Interp *in, const PyCall *c)
{
    Buf b;
    buf_init(&b, in->a);
    buf_str(&b, "");
    if (c->n == 1 && !py_text(in, &b, c->at[0], strcmp(c->name, "repr") == 0, 0))
        return pylib_unknown(in, c);
    return py_strn(in, b.s, b.n);
}

static Py
to_sequence(Interp *in, const PyCall *c)
{
    PyKind kind = c->name[0] == 'l' ? PY_LIST : c->name[0] == 't' ? PY_TUPLE : PY_SET;
    Py lost = NULL, v = py_list(in, kind, NULL, 0);
    if (!c->n)
        return v;
    PyList *l = py_elements(in, c->at[0], c->loc, &lost);
    if (!l && kind == PY_SET && c->at[0]->kind == PY_SET)
        l = c->at[0]->u.list;
    for (int i = 0; l && i < l->n && py_step(in, 1); i++)
        if (kind == PY_SET)
            py_set_add(in, v->u.list, l->at[i]);
        else
            py_push(in, v->u.list, l->at[i]);
    return l ? v : lost;
}

static Py
to_dict(Interp *in, const PyCall *c)
{
    Py v = py_dict(in), lost = NULL;
    if (c->n && c->at[0]->kind == PY_DICT) {
        const PyDict *d = c->at[0]->u.dict;
        for (int i = 0; i < d->n && py_step(in, 1); i++)
            pydict_set(in, v->u.dict, d->key[i], d->val[i]);
        v->u.dict->lost = d->lost;
    } else if (c->n) {
        PyList *l = py_elements(in, c->at[0], c->loc, &lost);
        for (int i = 0; l && i < l->n; i++) {
            PyList *pair = py_elements(in, l->at[i], c->loc, &lost);
            if (!pair || pair->n != 2)
                return lost ? lost : pylib_unknown(in, c);
            pydict_set(in, v->u.dict, pair->at[0], pair->at[1]);
        }
        if (!l)
            return lost;
    }
    for (int i = 0; i < c->named->u.dict->n; i++)
        pydict_set(in, v->u.dict, c->named->u.dict->key[i], c->named->u.dict->val[i]);
    return v;
}

static Py
call_with(Interp *in, Py fn, Py *at, int n, const PyCall *c)
{
    PyCall k = {.at = at, .n = n, .named = py_dict(in), .loc = c->loc};
    return py_call(in, fn, &k);
}

static Py
extreme(Interp *in, const PyCall *c)
{
    Py lost = NULL, key = pyarg(c, -1, "key"), otherwise = pyarg(c, -1, "default");
    PyList *l = c->n == 1 ? py_elements(in, py_unwrapped_plain(c->at[0]), c->loc, &lost)
                          : py_list(in, PY_LIST, c->at, c->n)->u.list;
    if (!l && c->n == 1 && c->at[0]->kind == PY_SET && !c->at[0]->u.list->lost)
        l = c->at[0]->u.list;
    if (!l)
        return lost;
    if (!l->n)
        return otherwise ? otherwise
                         : py_raise(in, c->loc, "ValueError", "'%s' of nothing", c->name);
    Py best = py_unwrapped_plain(l->at[0]), best_key = NULL;
    for (int i = 0; i < l->n && py_step(in, 1); i++) {
        Py x = py_unwrapped_plain(l->at[i]),
           k = key && key->kind != PY_NONE ? call_with(in, key, (Py[]){x}, 1, c) : x;
        if (!i) {
            best_key = k;
            continue;
        }
        Py less = py_compare(in, c->name[1] == 'a' ? OS_GT : OS_LT, k, best_key, c->loc);
        if (less->kind != PY_BOOL)
            return less;
        if (less->u.i) {
            best = x;
            best_key = k;
        }
    }
    return best;
}

static Py
sum(Interp *in, const PyCall *c)
{
    Py lost = NULL, total = c->n > 1 ? c->at[1] : py_int(in, 0);
    PyList *l = c->n ? py_elements(in, c->at[0], c->loc, &lost) : NULL;
    if (!l)
        return lost ? lost : pylib_unknown(in, c);
    for (int i = 0; i < l->n && !py_raises(in); i++)
        total = py_binary(in, OS_ADD, total, l->at[i], c->loc);
    return total;
}

static Py
absolute(Interp *in, const PyCall *c)
{
    Py v = c->n == 1 ? py_unwrapped_plain(c->at[0]) : NULL;
    if (v && v->kind == PY_FLOAT)
        return py_float(in, fabs(v->u.f));
    if (!v || (v->kind != PY_INT && v->kind != PY_BOOL))
        return pylib_unknown(in, c);
    return v->u.i < 0 ? py_binary(in, OS_SUB, py_int(in, 0), v, c->loc)
                      : py_int(in, v->u.i);
}

static Py
rounded(Interp *in, const PyCall *c)
{
    Py v = c->n == 1 ? py_unwrapped_plain(c->at[0]) : NULL;
    if (v && v->kind == PY_FLOAT && fabs(v->u.f) < 0x1p62)
        return py_int(in, (Wide)nearbyint(v->u.f));
    return v && v->kind != PY_FLOAT && py_is_number(v) ? py_int(in, v->u.i)
                                                       : pylib_unknown(in, c);
}

static Py
two(Interp *in, const PyCall *c)
{
    if (c->n != 2)
        return pylib_unknown(in, c);
    if (c->name[0] == 'p')
        return py_binary(in, OS_POW, c->at[0], c->at[1], c->loc);
    Py pair[2] = {py_binary(in, OS_FLOORDIV, c->at[0], c->at[1], c->loc),
                  py_binary(in, OS_MOD, c->at[0], c->at[1], c->loc)};
    return py_list(in, PY_TUPLE, pair, 2);
}

static Py
any_or_all(Interp *in, const PyCall *c)
{
    Py lost = NULL;
    bool any = c->name[1] == 'n';
    PyList *l = c->n == 1 ? py_elements(in, c->at[0], c->loc, &lost) : NULL;
    if (!l)
        return lost ? lost : pylib_unknown(in, c);
    Py unknown = NULL;
    for (int i = 0; i < l->n; i++) {
        int t = py_truth(in, l->at[i]);
        if (t < 0)
            unknown = py_lost(l->at[i]) ? l->at[i] : pylib_unknown(in, c);
        else if (t == any)
            return py_bool(in, any);
    }
    return unknown ? unknown : py_bool(in, !any);
}

/* Stable, as Python's is: by insertion. */
static Py
sorted(Interp *in, const PyCall *c)
{
    Py lost = NULL, key = pyarg(c, -1, "key"), reverse = pyarg(c, -1, "reverse");
    PyList *l = c->n ? py_elements(in, c->at[0], c->loc, &lost) : NULL;
    if (!l && c->n && c->at[0]->kind == PY_SET && !c->at[0]->u.list->lost)
        l = py_list(in, PY_LIST, c->at[0]->u.list->at, c->at[0]->u.list->n)->u.list;
    if (!l)
        return lost ? lost : pylib_unknown(in, c);
    int down = reverse ? py_truth(in, reverse) : 0;
    if (down < 0)
        return reverse;
    Py *keys = arena_array(in->a, Py, l->n + 1);
    for (int i = 0; i < l->n; i++) {
        Py x = l->at[i],
           k = key && key->kind != PY_NONE ? call_with(in, key, (Py[]){x}, 1, c) : x;
        int at = i;
        while (at > 0) {
            Py less = py_step(in, 1)
                          ? down ? py_compare(in, OS_LT, keys[at - 1], k, c->loc)
                                 : py_compare(in, OS_LT, k, keys[at - 1], c->loc)
                          : in->none;
            if (less->kind != PY_BOOL)
                return py_lost(less) ? less : pylib_unknown(in, c);
            if (!less->u.i)
                break;
            keys[at] = keys[at - 1];
            l->at[at] = l->at[at - 1];
            at--;
        }
        keys[at] = k;
        l->at[at] = x;
    }
    return py_list(in, PY_LIST, l->at, l->n);
}

static Py
reversed(Interp *in, const PyCall *c)
{
    Py lost = NULL;
    PyList *l = c->n == 1 ? py_elements(in, c->at[0], c->loc, &lost) : NULL;
    if (!l)
        return lost ? lost : pylib_unknown(in, c);
    Py v = py_list(in, PY_LIST, NULL, 0);
    for (int i = l->n - 1; i >= 0; i--)
        py_push(in, v->u.list, l->at[i]);
    return v;
}

static Py
enumerate(Interp *in, const PyCall *c)
{
    Wide start = 0;
    Py lost = NULL, from = pyarg(c, 1, "start");
    PyList *l = c->n ? py_elements(in, c->at[0], c->loc, &lost) : NULL;
    if (!l || (from && !pyarg_int(from, &start)))
        return lost ? lost : pylib_unknown(in, c);
    Py v = py_list(in, PY_LIST, NULL, 0);
    for (int i = 0; i < l->n && py_step(in, 1); i++) {
        Py pair[2] = {py_int(in, start + i), l->at[i]};
        py_push(in, v->u.list, py_list(in, PY_TUPLE, pair, 2));
    }
    return v;
}

/* zip and map: what several lists have side by side. */
static Py
side_by_side(Interp *in, const PyCall *c)
{
    bool map = c->name[0] == 'm';
    Py lost = NULL, v = py_list(in, PY_LIST, NULL, 0);
    PyList **l = arena_array(in->a, PyList *, c->n + 1);
    int most = PY_MAX_SIZE;
    for (int i = map; i < c->n; i++) {
        if (!(l[i] = py_elements(in, c->at[i], c->loc, &lost)))
            return lost;
        most = l[i]->n < most ? l[i]->n : most;
    }
    for (int k = 0; c->n > map && k < most && py_step(in, 1) && !py_raises(in); k++) {
        Py *row = arena_array(in->a, Py, c->n + 1);
        for (int i = map; i < c->n; i++)
            row[i - map] = l[i]->at[k];
        py_push(in, v->u.list,
                map ? call_with(in, c->at[0], row, c->n - 1, c)
                    : py_list(in, PY_TUPLE, row, c->n));
    }
    return v;
}

static Py
filter(Interp *in, const PyCall *c)
{
    Py lost = NULL, v = py_list(in, PY_LIST, NULL, 0);
    PyList *l = c->n == 2 ? py_elements(in, c->at[1], c->loc, &lost) : NULL;
    if (!l)
        return lost ? lost : pylib_unknown(in, c);
    for (int i = 0; i < l->n && !py_raises(in); i++) {
        Py x = l->at[i];
        Py keep = c->at[0]->kind == PY_NONE ? x : call_with(in, c->at[0], &x, 1, c);
        int t = py_truth(in, keep);
        if (t < 0)
            return py_lost(keep) ? keep : pylib_unknown(in, c);
        if (t)
            py_push(in, v->u.list, l->at[i]);
    }
    return v;
}

static int
instance_of(Py x, Py class_)
{
    if (class_->kind == PY_CLASS)
        return x->kind == PY_OBJECT ? x->u.object->class_ == class_ ? 1 : -1 : 0;
    if (class_->kind != PY_BUILTIN)
        return -1;
    const char *n = class_->u.builtin.name;
    if (x->kind == PY_OBJECT && py_plain(x) != x)
        x = py_plain(x);
    else if (x->kind == PY_OBJECT && x->u.object->class_ &&
             !x->u.object->class_->u.class_->known)
        return -1;
    static const struct {
        const char *name;
        PyKind kind;
    } kinds[] = {{"int", PY_INT},   {"float", PY_FLOAT}, {"str", PY_STR},
                 {"bool", PY_BOOL}, {"list", PY_LIST},   {"tuple", PY_TUPLE},
                 {"dict", PY_DICT}, {"set", PY_SET}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(n, kinds[i].name) == 0)
            return x->kind == kinds[i].kind ||
                   (kinds[i].kind == PY_INT && x->kind == PY_BOOL);
    return -1;
}

static Py
isinstance(Interp *in, const PyCall *c)
{
    if (c->n != 2 || py_lost(c->at[0]) || c->at[0]->kind == PY_OBJECT)
        if (c->n != 2 || c->at[0]->kind != PY_OBJECT)
            return pylib_unknown(in, c);
    int is = 0;
    Py k = c->at[1];
    for (int i = 0; i < (k->kind == PY_TUPLE ? k->u.list->n : 1) && is <= 0; i++) {
        int e = instance_of(c->at[0], k->kind == PY_TUPLE ? k->u.list->at[i] : k);
        is = e ? e : is;
    }
    return is < 0 ? pylib_unknown(in, c) : py_bool(in, is);
}

static Py
set_attribute(Interp *in, const PyCall *c)
{
    if (c->n != 3 || c->at[1]->kind != PY_STR || py_lost(c->at[0]))
        return pylib_unknown(in, c);
    py_set_attribute(in, c->at[0], name_of(&in->s->names, c->at[1]->u.str.s), c->at[2],
                     c->loc);
    return in->none;
}

static Py
attribute_by_name(Interp *in, const PyCall *c)
{
    bool has = c->name[0] == 'h';
    if (c->n < 2 || c->at[1]->kind != PY_STR || py_lost(c->at[0]))
        return pylib_unknown(in, c);
    Name name = name_of(&in->s->names, c->at[1]->u.str.s);
    Py v = py_attribute(in, c->at[0], name, c->node, true);
    bool lost = v && v->kind == PY_UNKNOWN;
    if (has)
        return lost ? v : py_bool(in, v != NULL);
    if (v || c->n > 2)
        return v ? v : c->at[2];
    return py_raise(in, c->loc, "AttributeError", "there is no '%s'", name);
}

static Py
callable(Interp *in, const PyCall *c)
{
    if (c->n != 1 || py_lost(c->at[0]) || c->at[0]->kind == PY_OBJECT)
        return pylib_unknown(in, c);
    PyKind k = c->at[0]->kind;
    return k == PY_FE ? pylib_unknown(in, c)
                      : py_bool(in, k == PY_FUNC || k == PY_BUILTIN || k == PY_CLASS ||
                                        k == PY_DECORATOR);
}

static Py
nothing(Interp *in, const PyCall *c)
{
    (void)c;
    return in->none;
}

static Py
code_of(Interp *in, const PyCall *c)
{
    Wide i;
    if (c->n == 1 && c->at[0]->kind == PY_STR && c->at[0]->u.str.n == 1)
        return py_int(in, (unsigned char)c->at[0]->u.str.s[0]);
    if (c->n == 1 && pyarg_int(c->at[0], &i) && i > 0 && i < 128)
        return py_strn(in, (char[]){(char)i}, 1);
    return pylib_unknown(in, c);
}

const PyEntry pylib_python[] = {
    {"len", length},
    {"range", range},
    {"int", to_int},
    {"float", to_float},
    {"bool", to_bool},
    {"str", to_str},
    {"repr", to_str},
    {"list", to_sequence},
    {"tuple", to_sequence},
    {"set", to_sequence},
    {"frozenset", to_sequence},
    {"dict", to_dict},
    {"min", extreme},
    {"max", extreme},
    {"sum", sum},
    {"abs", absolute},
    {"round", rounded},
    {"pow", two},
    {"divmod", two},
    {"any", any_or_all},
    {"all", any_or_all},
    {"sorted", sorted},
    {"reversed", reversed},
    {"enumerate", enumerate},
    {"zip", side_by_side},
    {"map", side_by_side},
    {"filter", filter},
    {"isinstance", isinstance},
    {"hasattr", attribute_by_name},
    {"getattr", attribute_by_name},
    {"setattr", set_attribute},
    {"super", py_super},
    {"callable", callable},
    {"print", nothing},
    {"ord", code_of},
    {"chr", code_of},
    {NULL, NULL},
};

/* Methods of lists, dicts and sets. */
#include "frontend/pylib.h"

#include <string.h>

static Py
append(Interp *in, const PyCall *c)
{
    if (c->n != 1)
        return pylib_unknown(in, c);
    if (c->self->u.list->n >= PY_MAX_SIZE)
        c->self->u.list->lost =
            py_unknown(in, c->loc, NULL, "it has more than %d elements", PY_MAX_SIZE);
    else
        py_push(in, c->self->u.list, c->at[0]);
    return in->none;
}

static Py
extend(Interp *in, const PyCall *c)
{
    Py lost = NULL;
    PyList *l = c->self->u.list,
           *more = c->n == 1 ? py_elements(in, c->at[0], c->loc, &lost) : NULL;
    for (int i = 0; more && i < more->n && py_step(in, 1); i++)
        py_push(in, l, more->at[i]);
    if (!more) {
        pylist_touch(in, l);
        l->lost = lost ? lost : pylib_unknown(in, c);
    }
    return in->none;
}

static Py
insert(Interp *in, const PyCall *c)
{
    Wide at;
    PyList *l = c->self->u.list;
    if (c->n != 2 || !pyarg_int(c->at[0], &at)) {
        pylist_touch(in, l);
        l->lost = pylib_unknown(in, c);
        return in->none;
    }
    at = at < 0 ? at + l->n : at;
    at = at < 0 ? 0 : at > l->n ? l->n : at;
    py_push(in, l, c->at[1]);
    for (int i = l->n - 1; i > (int)at && py_step(in, 1); i--)
        l->at[i] = l->at[i - 1];
    l->at[(int)at] = c->at[1];
    return in->none;
}

static Py
take_out(Interp *in, PyList *l, int at)
{
    pylist_touch(in, l);
    Py v = l->at[at];
    for (int i = at; i + 1 < l->n; i++)
        l->at[i] = l->at[i + 1];
    l->n--;
    return v;
}

bool
pylist_delete(Interp *in, PyList *l, Py at, Loc loc)
{
    Wide i = 0;
    if (at->kind == PY_SLICE) {
        Py places = py_list(in, PY_LIST, NULL, 0);
        for (int k = 0; k < l->n && py_step(in, 1); k++)
            py_push(in, places->u.list, py_int(in, k));
        Py gone = py_slice(in, places, at, loc);
        if (gone->kind != PY_LIST)
            return py_raises(in);
        PyList *g = gone->u.list;
        bool down = g->n > 1 && g->at[0]->u.i > g->at[g->n - 1]->u.i;
        for (int k = 0; k < g->n && py_step(in, l->n); k++)
            take_out(in, l, (int)g->at[down ? k : g->n - 1 - k]->u.i);
        return true;
    }
    if (!pyarg_int(at, &i))
        return false;
    i = i < 0 ? i + l->n : i;
    if (i < 0 || i >= l->n)
        py_raise(in, loc, "IndexError", "an index that is out of range");
    else if (py_step(in, l->n))
        take_out(in, l, (int)i);
    return true;
}

static Py
list_pop(Interp *in, const PyCall *c)
{
    PyList *l = c->self->u.list;
    Wide at = -1;
    if (l->lost || (c->n && !pyarg_int(c->at[0], &at)))
        return l->lost ? l->lost : pylib_unknown(in, c);
    at = at < 0 ? at + l->n : at;
    if (at < 0 || at >= l->n)
        return py_raise(in, c->loc, "IndexError", "pop from a list without it");
    return py_step(in, l->n) ? take_out(in, l, (int)at) : in->none;
}

/* index, count and remove */
static Py
search(Interp *in, const PyCall *c)
{
    PyList *l = c->self->u.list;
    int found = 0;
    if (c->n != 1 || l->lost)
        return l->lost ? l->lost : pylib_unknown(in, c);
    for (int i = 0; i < l->n; i++) {
        int e = py_step(in, 1) ? py_equal(in, l->at[i], c->at[0], 0) : -1;
        if (e < 0)
            return pylib_unknown(in, c);
        found += e;
        if (e && c->name[0] == 'i')
            return py_int(in, i);
        if (e && c->name[0] == 'r') {
            take_out(in, l, i);
            return in->none;
        }
    }
    return c->name[0] == 'c'
               ? py_int(in, found)
               : py_raise(in, c->loc, "ValueError", "it is not in the list");
}

static Py
list_copy(Interp *in, const PyCall *c)
{
    Py v = py_list(in, c->self->kind, c->self->u.list->at, c->self->u.list->n);
    v->u.list->lost = c->self->u.list->lost;
    return v;
}

static Py
clear(Interp *in, const PyCall *c)
{
    if (c->self->kind == PY_DICT) {
        pydict_touch(in, c->self->u.dict);
        c->self->u.dict->n = 0;
        c->self->u.dict->lost = NULL;
    } else {
        pylist_touch(in, c->self->u.list);
        c->self->u.list->n = 0;
        c->self->u.list->lost = NULL;
    }
    return in->none;
}

static Py
in_place(Interp *in, const PyCall *c)
{
    PyCall all = *c;
    Py self = c->self;
    all.at = &self;
    all.n = 1;
    bool sort = strcmp(c->name, "sort") == 0;
    Py v = NULL;
    for (const PyEntry *e = pylib_python; e->name && !v; e++)
        if (strcmp(e->name, sort ? "sorted" : "reversed") == 0)
            v = e->fn(in, &all);
    pylist_touch(in, self->u.list);
    if (v && v->kind == PY_LIST) {
        self->u.list->at = v->u.list->at;
        self->u.list->n = v->u.list->n;
        self->u.list->cap = v->u.list->cap;
    } else {
        self->u.list->lost = v;
    }
    return in->none;
}

const PyEntry pylib_list[] = {
    {"append", append}, {"extend", extend}, {"insert", insert},    {"pop", list_pop},
    {"index", search},  {"count", search},  {"remove", search},    {"copy", list_copy},
    {"clear", clear},   {"sort", in_place}, {"reverse", in_place}, {NULL, NULL},
};

/* ---- dicts */

static Py
dict_get(Interp *in, const PyCall *c)
{
    Py lost = NULL;
    if (c->n < 1)
        return pylib_unknown(in, c);
    Py v = pydict_get(in, c->self->u.dict, c->at[0], &lost);
    return v ? v : lost ? lost : c->n > 1 ? c->at[1] : in->none;
}

static Py
set_default(Interp *in, const PyCall *c)
{
    Py v = dict_get(in, c), lost = NULL;
    if (c->n && !pydict_get(in, c->self->u.dict, c->at[0], &lost) && !lost)
        pydict_set(in, c->self->u.dict, c->at[0], v);
    return v;
}

static Py
views(Interp *in, const PyCall *c)
{
    const PyDict *d = c->self->u.dict;
    Py v = py_list(in, PY_LIST, NULL, 0);
    for (int i = 0; i < d->n && py_step(in, 1); i++) {
        Py pair[2] = {d->key[i], d->val[i]};
        py_push(in, v->u.list,
                c->name[0] == 'k'   ? pair[0]
                : c->name[0] == 'v' ? pair[1]
                                    : py_list(in, PY_TUPLE, pair, 2));
    }
    v->u.list->lost = d->lost;
    return v;
}

static Py
update(Interp *in, const PyCall *c)
{
    PyDict *d = c->self->u.dict;
    for (int k = 0; k <= c->n && k < 2; k++) {
        Py from = k < c->n ? c->at[k] : c->named;
        if (from->kind != PY_DICT || from->u.dict->lost) {
            pydict_touch(in, d);
            d->lost = from->kind == PY_DICT ? from->u.dict->lost : pylib_unknown(in, c);
            return in->none;
        }
        for (int i = 0; i < from->u.dict->n && py_step(in, 1); i++)
            pydict_set(in, d, from->u.dict->key[i], from->u.dict->val[i]);
    }
    return in->none;
}

static Py
dict_pop(Interp *in, const PyCall *c)
{
    PyDict *d = c->self->u.dict;
    if (d->lost || !c->n)
        return d->lost ? d->lost : pylib_unknown(in, c);
    for (int i = 0; i < d->n && py_step(in, 1); i++)
        if (py_equal(in, d->key[i], c->at[0], 0) > 0) {
            Py v = d->val[i];
            pydict_del(in, d, i);
            return v;
        }
    return c->n > 1 ? c->at[1]
                    : py_raise(in, c->loc, "KeyError", "a key that is not there");
}

static Py
dict_copy(Interp *in, const PyCall *c)
{
    Py v = py_dict(in);
    for (int i = 0; i < c->self->u.dict->n && py_step(in, 1); i++)
        pydict_set(in, v->u.dict, c->self->u.dict->key[i], c->self->u.dict->val[i]);
    v->u.dict->lost = c->self->u.dict->lost;
    return v;
}

const PyEntry pylib_dict[] = {
    {"get", dict_get}, {"setdefault", set_default},
    {"keys", views},   {"values", views},
    {"items", views},  {"update", update},
    {"pop", dict_pop}, {"copy", dict_copy},
    {"clear", clear},  {NULL, NULL},
};

/* ---- sets */

static Py
set_change(Interp *in, const PyCall *c)
{
    PyList *l = c->self->u.list;
    if (c->n != 1) {
        pylist_touch(in, l);
        l->lost = pylib_unknown(in, c);
        return in->none;
    }
    if (strcmp(c->name, "add") == 0) {
        py_set_add(in, l, c->at[0]);
        return in->none;
    }
    for (int i = 0; i < l->n && py_step(in, 1); i++)
        if (py_equal(in, l->at[i], c->at[0], 0) > 0) {
            take_out(in, l, i);
            return in->none;
        }
    return strcmp(c->name, "discard") == 0
               ? in->none
               : py_raise(in, c->loc, "KeyError", "it is not in the set");
}

static Py
set_join(Interp *in, const PyCall *c)
{
    static const struct {
        const char *name;
        int sign;
    } signs[] = {{"union", OS_OR}, {"intersection", OS_AND}, {"difference", OS_SUB}};
    Py v = list_copy(in, c);
    for (int i = 0; i < c->n; i++) {
        Py other = py_list(in, PY_SET, NULL, 0), lost = NULL;
        PyList *l = c->at[i]->kind == PY_SET ? c->at[i]->u.list
                                             : py_elements(in, c->at[i], c->loc, &lost);
        if (!l)
            return lost;
        for (int k = 0; k < l->n; k++)
            py_set_add(in, other->u.list, l->at[k]);
        for (size_t k = 0; k < sizeof signs / sizeof *signs; k++)
            if (strcmp(c->name, signs[k].name) == 0)
                v = py_binary(in, signs[k].sign, v, other, c->loc);
    }
    return v;
}

const PyEntry pylib_set[] = {
    {"add", set_change}, {"discard", set_change},    {"remove", set_change},
    {"union", set_join}, {"intersection", set_join}, {"difference", set_join},
    {"copy", list_copy}, {"clear", clear},           {NULL, NULL},
};

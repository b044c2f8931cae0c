/* Scopes, and what remains of two paths of execution when a condition is not known. While
   a fork runs, every change of a scope or container is logged; containers are copied
   before their first change in a fork. */
#include "frontend/py.h"

#include <string.h>

PyScope *
pyscope_new(Interp *in, FrontModule *m, PyScope *up)
{
    PyScope *s = arena_new(in->a, PyScope);
    map_init(&s->index, in->a);
    s->m = m;
    s->up = up;
    return s;
}

PyBind *
pyscope_find(const PyScope *s, Name name)
{
    PyBind *b = map_get(&s->index, name);
    return b && b->val ? b : NULL;
}

static void
note(Interp *in, PyChange c)
{
    if (in->epoch)
        vec_push(in->a, &in->log, c);
}

void
pyscope_set(Interp *in, PyScope *s, Name name, Py v, Loc loc, bool constexpr_)
{
    PyBind *b = map_get(&s->index, name);
    PyChange c = {.scope = s, .name = name, .was_there = b != NULL};
    if (!b) {
        b = arena_new(in->a, PyBind);
        map_set(&s->index, name, b);
    }
    c.old_bind = *b;
    note(in, c);
    *b = (PyBind){name, v, loc, ++in->seq, constexpr_};
}

void
pylist_touch(Interp *in, PyList *l)
{
    if (!in->epoch || l->epoch == in->epoch)
        return;
    note(in, (PyChange){.list = l, .old_list = *l});
    Py *at = arena_array(in->a, Py, l->cap + 1);
    if (l->n)
        memcpy(at, l->at, sizeof *at * (size_t)l->n);
    l->at = at;
    l->epoch = in->epoch;
}

void
pydict_touch(Interp *in, PyDict *d)
{
    if (!in->epoch || d->epoch == in->epoch)
        return;
    note(in, (PyChange){.dict = d, .old_dict = *d});
    Py *key = arena_array(in->a, Py, d->cap + 1),
       *val = arena_array(in->a, Py, d->cap + 1);
    if (d->n) {
        memcpy(key, d->key, sizeof *key * (size_t)d->n);
        memcpy(val, d->val, sizeof *val * (size_t)d->n);
    }
    d->key = key;
    d->val = val;
    d->epoch = in->epoch;
}

PyFork
pyfork_begin(Interp *in)
{
    PyFork f = {in->log.n, in->epoch};
    in->epoch = ++in->last_epoch;
    return f;
}

static void
put(const PyChange *c, bool new_)
{
    if (c->scope)
        *(PyBind *)map_get(&c->scope->index, c->name) = new_ ? c->new_bind : c->old_bind;
    else if (c->list)
        *c->list = new_ ? c->new_list : c->old_list;
    else
        *c->dict = new_ ? c->new_dict : c->old_dict;
}

PyChanges
pyfork_undo(Interp *in, PyFork f)
{
    PyChanges all = {0};
    for (int i = f.mark; i < in->log.n; i++) {
        PyChange *c = &in->log.at[i];
        if (c->scope)
            c->new_bind = *(PyBind *)map_get(&c->scope->index, c->name);
        else if (c->list)
            c->new_list = *c->list;
        else
            c->new_dict = *c->dict;
    }
    for (int i = in->log.n - 1; i >= f.mark; i--)
        put(&in->log.at[i], false);
    for (int i = f.mark; i < in->log.n; i++)
        vec_push(in->a, &all, in->log.at[i]);
    in->log.n = f.mark;
    in->epoch = f.epoch;
    return all;
}

static const void *
subject(const PyChange *c)
{
    return c->scope  ? map_get(&c->scope->index, c->name)
           : c->list ? (const void *)c->list
                     : (const void *)c->dict;
}

/* Changes again what an arm changed, in the fork around it. */
void
pyfork_redo(Interp *in, const PyChanges *all)
{
    for (int i = 0; i < all->n; i++) {
        const PyChange *c = &all->at[i];
        if (c->scope) {
            pyscope_set(in, c->scope, c->name, c->new_bind.val, c->new_bind.loc,
                        c->new_bind.constexpr_);
        } else if (c->list) {
            pylist_touch(in, c->list);
            *c->list = c->new_list;
            c->list->epoch = in->epoch;
        } else {
            pydict_touch(in, c->dict);
            *c->dict = c->new_dict;
            c->dict->epoch = in->epoch;
        }
    }
}

static PyChanges
filtered(Interp *in, const PyChanges *all, const PyScope *s, bool only)
{
    PyChanges out = {0};
    for (int i = 0; i < all->n; i++)
        if ((all->at[i].scope == s) == only)
            vec_push(in->a, &out, all->at[i]);
    return out;
}

PyChanges
pyfork_only(Interp *in, const PyChanges *c, const PyScope *s)
{
    return filtered(in, c, s, true);
}

PyChanges
pyfork_without(Interp *in, const PyChanges *c, const PyScope *s)
{
    return filtered(in, c, s, false);
}

Py
py_either(Interp *in, Py why, Py a, Py b, Loc at_a, Loc at_b)
{
    PyVal *v = py_new(in, PY_UNKNOWN);
    PyUnknown *u = arena_new(in->a, PyUnknown);
    *u = *why->u.unknown;
    u->missing = NULL; /* of the condition, not of what it decides */
    u->one = a;
    u->other = b;
    u->at[0] = at_a;
    u->at[1] = at_b;
    v->u.unknown = u;
    return v;
}

static bool
same_list(const PyList *a, const PyList *b)
{
    bool same = a->n == b->n && a->lost == b->lost;
    for (int i = 0; i < a->n && same; i++)
        same = py_same(a->at[i], b->at[i]);
    return same;
}

static bool
same_dict(const PyDict *a, const PyDict *b)
{
    bool same = a->n == b->n && a->lost == b->lost;
    for (int i = 0; i < a->n && same; i++)
        same = py_same(a->key[i], b->key[i]) && py_same(a->val[i], b->val[i]);
    return same;
}

/* `x` and `y`: what happened to one thing in the arms; NULL: nothing. */
static void
merge(Interp *in, const PyChange *x, const PyChange *y, Py why)
{
    const PyChange *c = x ? x : y;
    if (c->scope) {
        const PyBind *old = map_get(&c->scope->index, c->name);
        PyBind a = x ? x->new_bind : *old, b = y ? y->new_bind : *old;
        if (!a.val && !b.val)
            return;
        if (!c->scope->up && !c->scope->is_class && !py_is_name(why->u.unknown->key)) {
            PyVal *named = py_new(in, PY_UNKNOWN); /* -D of the name decides it */
            PyUnknown *u = arena_new(in->a, PyUnknown);
            *u = *why->u.unknown;
            u->key = c->name;
            named->u.unknown = u;
            why = named;
        }
        Py v = py_same(a.val, b.val) ? a.val
                                     : py_either(in, why, a.val, b.val, a.loc, b.loc);
        pyscope_set(in, c->scope, c->name, v, a.val ? a.loc : b.loc,
                    a.constexpr_ || b.constexpr_);
    } else if (c->list) {
        PyList a = x ? x->new_list : *c->list, b = y ? y->new_list : *c->list;
        bool same = same_list(&a, &b);
        pylist_touch(in, c->list);
        *c->list = a;
        c->list->epoch = 0; /* it may be shared with the log of an arm */
        if (!same)
            c->list->lost = why;
    } else {
        PyDict a = x ? x->new_dict : *c->dict, b = y ? y->new_dict : *c->dict;
        bool same = same_dict(&a, &b);
        pydict_touch(in, c->dict);
        *c->dict = a;
        c->dict->epoch = 0;
        if (!same)
            c->dict->lost = why;
    }
}

void
pyfork_merge(Interp *in, const PyChanges *a, const PyChanges *b, Py why)
{
    Map seen, of_b;
    map_init(&seen, in->a);
    map_init(&of_b, in->a);
    for (int i = 0; i < b->n; i++)
        map_set(&of_b, subject(&b->at[i]), &b->at[i]);
    for (int k = 0; k < 2; k++) {
        const PyChanges *all = k ? b : a;
        for (int i = 0; i < all->n; i++) {
            PyChange *c = &all->at[i];
            const void *what = subject(c);
            if (map_get(&seen, what))
                continue;
            map_set(&seen, what, c);
            if (k)
                merge(in, NULL, c, why);
            else
                merge(in, c, map_get(&of_b, what), why);
        }
    }
}

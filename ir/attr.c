/* Attribute lists: a handful of entries, searched from the front. */
#include "ir/attr.h"

#include <string.h>

const AttrInfo attr_info[ATTR_COUNT] = {
#define ATTR(id, name, kind, doc) [ATTR_##id] = {name, AK_##kind, doc},
#include "ir/attrs.def"
};

const Attr *
attr_find(const AttrList *l, AttrKey key)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i].key == key)
            return &l->at[i];
    return NULL;
}

int64_t
attr_int(const AttrList *l, AttrKey key, int64_t otherwise)
{
    const Attr *a = attr_find(l, key);
    return a ? a->v.i : otherwise;
}

double
attr_float(const AttrList *l, AttrKey key, double otherwise)
{
    const Attr *a = attr_find(l, key);
    return a ? a->v.f : otherwise;
}

Name
attr_str(const AttrList *l, AttrKey key)
{
    const Attr *a = attr_find(l, key);
    return a ? a->v.s : NULL;
}

bool
attr_has(const AttrList *l, AttrKey key)
{
    return attr_find(l, key) != NULL;
}

static Attr *
slot(Arena *a, AttrList *l, AttrKey key)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i].key == key)
            return &l->at[i];
    if (l->n == l->cap) {
        int cap = l->cap ? l->cap * 2 : 4;
        Attr *at = arena_array(a, Attr, cap);
        if (l->n)
            memcpy(at, l->at, (size_t)l->n * sizeof *at);
        l->at = at;
        l->cap = cap;
    }
    Attr *e = &l->at[l->n++];
    *e = (Attr){.key = key};
    return e;
}

void
attr_set_int(Arena *a, AttrList *l, AttrKey key, int64_t v)
{
    slot(a, l, key)->v.i = v;
}

void
attr_set_float(Arena *a, AttrList *l, AttrKey key, double v)
{
    slot(a, l, key)->v.f = v;
}

void
attr_set_str(Arena *a, AttrList *l, AttrKey key, Name v)
{
    slot(a, l, key)->v.s = v;
}

void
attr_set_flag(Arena *a, AttrList *l, AttrKey key)
{
    slot(a, l, key)->v.i = 1;
}

void
attr_set_ints(Arena *a, AttrList *l, AttrKey key, const int64_t *v, int n)
{
    Attr *e = slot(a, l, key);
    int64_t *copy = arena_array(a, int64_t, n ? n : 1);
    if (n)
        memcpy(copy, v, (size_t)n * sizeof *copy);
    e->n = n;
    e->v.ints = copy;
}

void
attr_drop(AttrList *l, AttrKey key)
{
    for (int i = 0; i < l->n; i++) {
        if (l->at[i].key == key) {
            memmove(&l->at[i], &l->at[i + 1], (size_t)(l->n - i - 1) * sizeof *l->at);
            l->n--;
            return;
        }
    }
}

void
attr_copy(Arena *a, AttrList *to, const AttrList *from)
{
    *to = (AttrList){0};
    if (!from || !from->n)
        return;
    to->at = arena_array(a, Attr, from->n);
    to->n = to->cap = from->n;
    memcpy(to->at, from->at, (size_t)from->n * sizeof *to->at);
    for (int i = 0; i < to->n; i++) /* lists may lie in an arena that dies earlier */
        if (attr_info[to->at[i].key].kind == AK_INTS)
            attr_set_ints(a, to, to->at[i].key, to->at[i].v.ints, to->at[i].n);
}

static bool
same(const Attr *x, const Attr *y)
{
    switch (attr_info[x->key].kind) {
    case AK_INTS:
        return x->n == y->n && (!x->n || memcmp(x->v.ints, y->v.ints,
                                                (size_t)x->n * sizeof(int64_t)) == 0);
    case AK_FLOAT: return memcmp(&x->v.f, &y->v.f, sizeof x->v.f) == 0;
    case AK_STR: return x->v.s == y->v.s;
    case AK_INT:
    case AK_FLAG: return x->v.i == y->v.i;
    }
    return false;
}

bool
attr_eq(const AttrList *a, const AttrList *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++) {
        const Attr *other = attr_find(b, a->at[i].key);
        if (!other || !same(&a->at[i], other))
            return false;
    }
    return true;
}

uint64_t
attr_hash(const AttrList *l)
{
    uint64_t sum = 0;
    for (int i = 0; i < l->n; i++) {
        const Attr *e = &l->at[i];
        uint64_t seed = (uint64_t)e->key + 1;
        switch (attr_info[e->key].kind) {
        case AK_INTS:
            sum += hash_bytes(e->v.ints, (size_t)e->n * sizeof(int64_t), seed);
            break;
        case AK_STR: sum += hash_bytes(e->v.s, strlen(e->v.s), seed); break;
        case AK_FLOAT: sum += hash_bytes(&e->v.f, sizeof e->v.f, seed); break;
        case AK_INT:
        case AK_FLAG: sum += hash_bytes(&e->v.i, sizeof e->v.i, seed); break;
        }
    }
    return sum;
}

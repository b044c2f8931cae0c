/* Names of a function, with undo. */
#include "frontend/scope.h"

#include <stdlib.h>
#include <string.h>

void
scope_init(Scope *s, Arena *a)
{
    memset(s, 0, sizeof *s);
    s->arena = a;
    map_init(&s->index, a);
}

static int
slot_of(const Scope *s, Name name)
{
    return (int)(intptr_t)map_get(&s->index, name) - 1;
}

Binding *
scope_find(Scope *s, Name name)
{
    int slot = slot_of(s, name);
    return slot >= 0 && s->slots[slot].val ? &s->slots[slot] : NULL;
}

static void *
grow(Arena *a, void *old, int n, int *cap, size_t size)
{
    if (n < *cap)
        return old;
    *cap = *cap ? *cap * 2 : 16;
    void *p = arena_calloc(a, (size_t)*cap, size, alignof(max_align_t));
    if (n)
        memcpy(p, old, (size_t)n * size);
    return p;
}

static void
remember(Scope *s, int slot)
{
    s->log = grow(s->arena, s->log, s->nlog, &s->log_cap, sizeof *s->log);
    s->log[s->nlog++] = (ScopeUndo){ slot, s->slots[slot] };
}

void
scope_set(Scope *s, Name name, Val v, Loc loc, bool constexpr_)
{
    int slot = slot_of(s, name);
    if (slot < 0) {
        s->slots = grow(s->arena, s->slots, s->nslot, &s->slot_cap, sizeof *s->slots);
        slot = s->nslot++;
        s->slots[slot] = (Binding){ .name = name };
        map_set(&s->index, name, (void *)(intptr_t)(slot + 1));
    }
    remember(s, slot);
    Binding *b = &s->slots[slot];
    b->val = v;
    b->loc = loc;
    b->constexpr_ = constexpr_;
}

void
scope_unset(Scope *s, Name name)
{
    int slot = slot_of(s, name);
    if (slot < 0 || !s->slots[slot].val)
        return;
    remember(s, slot);
    s->slots[slot].val = NULL;
}

int
scope_mark(const Scope *s)
{
    return s->nlog;
}

void
scope_rollback(Scope *s, int mark)
{
    while (s->nlog > mark) {
        ScopeUndo *u = &s->log[--s->nlog];
        int stamp = s->slots[u->slot].stamp;
        s->slots[u->slot] = u->old;
        s->slots[u->slot].stamp = stamp;
    }
}

static int
compare_int(const void *x, const void *y)
{
    int a = *(const int *)x, b = *(const int *)y;
    return (a > b) - (a < b);
}

int
scope_changes(Scope *s, int mark, int **slots)
{
    int n = 0;
    int *at = arena_array(s->arena, int, s->nlog - mark + 1);
    s->stamp++;
    for (int i = mark; i < s->nlog; i++) {
        Binding *b = &s->slots[s->log[i].slot];
        if (b->stamp == s->stamp)
            continue;
        b->stamp = s->stamp;
        at[n++] = s->log[i].slot;
    }
    /* Slot order is the order of first binding: independent of the walk that changed
       them. */
    qsort(at, (size_t)n, sizeof *at, compare_int);
    *slots = at;
    return n;
}

Binding
scope_at(const Scope *s, int mark, int slot)
{
    for (int i = mark; i < s->nlog; i++)
        if (s->log[i].slot == slot)
            return s->log[i].old;
    return s->slots[slot];
}

/* Open addressing over an insertion-ordered entry array. */
#include "ir/base/map.h"

#include <string.h>

static uint32_t
hash_ptr(const void *p)
{
    uint64_t x = (uint64_t)(uintptr_t)p;
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    return (uint32_t)x;
}

void
map_init(Map *m, Arena *arena)
{
    *m = (Map){.arena = arena};
}

static int
map_find(const Map *m, const void *key)
{
    if (!m->cap)
        return -1;
    uint32_t mask = (uint32_t)m->cap - 1;
    for (uint32_t i = hash_ptr(key) & mask; m->slots[i]; i = (i + 1) & mask)
        if (m->entries[m->slots[i] - 1].key == key)
            return m->slots[i] - 1;
    return -1;
}

void *
map_get(const Map *m, const void *key)
{
    int i = map_find(m, key);
    return i < 0 ? NULL : m->entries[i].val;
}

bool
map_has(const Map *m, const void *key)
{
    return map_find(m, key) >= 0;
}

static void
map_grow(Map *m)
{
    int cap = m->cap ? m->cap * 2 : 16;
    MapEntry *entries = arena_array(m->arena, MapEntry, cap / 2 + 1);
    if (m->n)
        memcpy(entries, m->entries, (size_t)m->n * sizeof *entries);
    m->entries = entries;
    m->slots = arena_array(m->arena, int, cap);
    m->cap = cap;
    for (int e = 0; e < m->n; e++) {
        uint32_t i = hash_ptr(m->entries[e].key) & (uint32_t)(cap - 1);
        while (m->slots[i])
            i = (i + 1) & (uint32_t)(cap - 1);
        m->slots[i] = e + 1;
    }
}

void
map_set(Map *m, const void *key, void *val)
{
    int at = map_find(m, key);
    if (at >= 0) {
        m->entries[at].val = val;
        return;
    }
    if (m->n * 2 >= m->cap)
        map_grow(m);
    uint32_t i = hash_ptr(key) & (uint32_t)(m->cap - 1);
    while (m->slots[i])
        i = (i + 1) & (uint32_t)(m->cap - 1);
    m->entries[m->n] = (MapEntry){key, val};
    m->slots[i] = ++m->n;
}

/* Taking the youngest entry out leaves no hole that another's probe sequence runs
   through: whatever probed past its slot came later and is gone already. */
void
map_truncate(Map *m, int n)
{
    while (m->n > n) {
        uint32_t mask = (uint32_t)m->cap - 1;
        uint32_t i = hash_ptr(m->entries[m->n - 1].key) & mask;
        while (m->slots[i] != m->n)
            i = (i + 1) & mask;
        m->slots[i] = 0;
        m->n--;
    }
}

/* Hash map from pointers (interned names, types, values) to pointers. Keys are not
   NULL. Iteration order is insertion order, so that compiler output never depends on
   addresses. */
#ifndef SDC_IR_BASE_MAP_H
#define SDC_IR_BASE_MAP_H

#include "ir/base/arena.h"

#include <stdbool.h>

typedef struct MapEntry {
    const void *key;
    void *val;
} MapEntry;

typedef struct Map {
    Arena *arena;
    MapEntry *entries; /* n of them, in insertion order */
    int *slots;        /* index + 1 into entries, 0: free */
    int n, cap;        /* cap: size of slots, a power of two */
} Map;

void map_init(Map *m, Arena *arena);
void *map_get(const Map *m, const void *key);            /* NULL when absent */
bool map_has(const Map *m, const void *key);
void map_set(Map *m, const void *key, void *val);        /* adds or replaces */

/* Forgets all but the first n entries: a scope that ends. */
void map_truncate(Map *m, int n);

#endif

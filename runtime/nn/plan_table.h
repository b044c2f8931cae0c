/* Plans that came before. Private to libsdc. */
#ifndef SDC_RUNTIME_NN_PLAN_TABLE_H
#define SDC_RUNTIME_NN_PLAN_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum { PLAN_WAYS = 4 };

/* Entries of a table begin with this, and the question follows. */
typedef struct PlanHead {
    uint64_t used; /* the larger, the later; 0: empty */
} PlanHead;

/* Sets of PLAN_WAYS entries. */
typedef struct PlanTable {
    void *entries;
    size_t sets, size, ask_size; /* bytes of an entry and of its question */
    uint64_t turn;
} PlanTable;

/* The entry with this question; NULL: there is none. No two threads may use a table at
   once. */
void *plan_find(PlanTable *t, const void *ask);
/* An entry for it, which holds nothing else; it may be the place of another question. */
void *plan_place(PlanTable *t, const void *ask);

#endif

/* Plans that came before, so that a repeated call does not plan again. A question may lie
   in any entry of its set; of a full set the one goes that was looked at longest ago. */
#include "runtime/nn/plan_table.h"

#include <string.h>

static uint64_t
hash(const void *ask, size_t size)
{
    const unsigned char *p = ask;
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++)
        h = (h ^ p[i]) * 0x100000001b3;
    return h ^ h >> 29;
}

static PlanHead *
entry(const PlanTable *t, size_t set, int way)
{
    return (PlanHead *)((char *)t->entries + (set * PLAN_WAYS + (size_t)way) * t->size);
}

static size_t
set_of(const PlanTable *t, const void *ask)
{
    return hash(ask, t->ask_size) % t->sets;
}

void *
plan_find(PlanTable *t, const void *ask)
{
    size_t set = set_of(t, ask);
    for (int i = 0; i < PLAN_WAYS; i++) {
        PlanHead *e = entry(t, set, i);
        if (e->used && memcmp(e + 1, ask, t->ask_size) == 0) {
            e->used = ++t->turn;
            return e;
        }
    }
    return NULL;
}

void *
plan_place(PlanTable *t, const void *ask)
{
    size_t set = set_of(t, ask);
    PlanHead *to = plan_find(t, ask);
    for (int i = 0; i < PLAN_WAYS && !to; i++)
        if (!entry(t, set, i)->used)
            to = entry(t, set, i);
    if (!to) {
        to = entry(t, set, 0);
        for (int i = 1; i < PLAN_WAYS; i++)
            if (entry(t, set, i)->used < to->used)
                to = entry(t, set, i);
    }
    memset(to, 0, t->size);
    memcpy(to + 1, ask, t->ask_size);
    to->used = ++t->turn;
    return to;
}

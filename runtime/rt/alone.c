/* One number for the whole process, since two contexts may work on the same arrays: the
   process's id, and how many launches with atomics run, or that one is alone. A fork
   copies it in any state; with another id it says nothing. A lock would not do: a child
   could find it taken by a thread that it does not have. */
#include "runtime/rt/alone.h"

#include <stdint.h>
#include <time.h>

enum { SHY = 64, WAIT_NS = 50000 };

static const uint32_t ALONE = UINT32_MAX;

static atomic_uint_fast64_t running;

static uint32_t
count_in(uint64_t state, const RtProcess *p)
{
    return (pid_t)(state >> 32) == p->pid ? (uint32_t)state : 0;
}

static uint64_t
state_of(const RtProcess *p, uint32_t count)
{
    return (uint64_t)(uint32_t)p->pid << 32 | count;
}

bool
rt_alone_begin(const RtProcess *p, atomic_int *shy, bool wants)
{
    uint64_t old = atomic_load(&running);
    if (wants && atomic_load_explicit(shy, memory_order_relaxed) > 0) {
        atomic_fetch_sub_explicit(shy, 1, memory_order_relaxed);
        wants = false;
    }
    for (;;) {
        uint32_t n = count_in(old, p);
        bool alone = wants && n == 0;
        if (n == ALONE) {
            const struct timespec wait = {.tv_nsec = WAIT_NS};
            atomic_store_explicit(shy, SHY, memory_order_relaxed);
            nanosleep(&wait, NULL);
            wants = false;
            old = atomic_load(&running);
        } else if (atomic_compare_exchange_weak(&running, &old,
                                                state_of(p, alone ? ALONE : n + 1))) {
            return alone;
        }
    }
}

void
rt_alone_end(const RtProcess *p, bool alone)
{
    uint64_t old = atomic_load(&running), next;
    do {
        if ((pid_t)(old >> 32) != p->pid) /* a child's, which began anew */
            return;
        next = state_of(p, alone ? 0 : (uint32_t)old - 1);
    } while (!atomic_compare_exchange_weak(&running, &old, next));
}

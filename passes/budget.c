/* The order of the choices: what costs least comes first. A second buffer saves a
   barrier; a stage hides part of a load's latency; a tile that threads read stalls only
   them; roles keep the dots going meanwhile; and results stored by TMA save address
   registers. A loop without pipelined loads waits for memory in each iteration. At the
   very end threads hold whole operands of mma in registers, which likely spill: slow, but
   right. */
#include "passes/budget.h"

#include "ir/base/util.h"

typedef struct Seen {
    int stages;
    bool roles, tma_stores;
} Seen;

static void
see(Seen *s, const Func *f)
{
    region_each_deep(f->body, op)
    {
        if (op->kind == OP_LOCAL_ALLOC)
            s->stages = (int)max_i64(s->stages, op->results[0].type->stages);
        s->roles |= op->kind == OP_WARP_SPECIALIZE;
        s->tma_stores |= op->kind == OP_TMA_STORE;
    }
}

bool
budget_reduce(Budget *b, const Func *f, int64_t bytes)
{
    Seen s = {0};
    const char *then;
    see(&s, f);
    if (b->nstep == BUDGET_STEPS)
        return false;
    if (b->double_buffers && !b->no_double_buffers) {
        b->no_double_buffers = true;
        then = "one buffer where threads leave tiles for dots";
    } else if (s.stages > 2 && (!b->depth || b->depth > 2)) {
        b->depth = (b->depth && b->depth < s.stages ? b->depth : s.stages) - 1;
        then = "a stage less";
    } else if (b->tiles && !b->no_tiles) {
        b->no_tiles = true;
        then = "no prefetched tile that threads read";
    } else if (s.roles && !b->no_roles) {
        b->no_roles = true;
        then = "no warp specialization";
    } else if (s.tma_stores && !b->no_tma_stores) {
        b->no_tma_stores = true;
        then = "no results by TMA";
    } else if (s.stages > 1 && b->depth != 1) {
        b->depth = 1;
        b->no_tma_stores = false; /* it did not suffice and may not be needed any more */
        then = "no pipelining";
    } else if (b->staged_operands && !b->no_staged_operands) {
        b->no_staged_operands = true;
        then = "no whole operands";
    } else {
        return false;
    }
    b->step[b->nstep++] = (BudgetStep){bytes, s.stages, then};
    return b->again = true;
}

bool
budget_again(Budget *b)
{
    bool again = b->again;
    b->again = b->double_buffers = b->tiles = b->staged_operands = false;
    return again;
}

void
budget_print(Buf *out, const Budget *b, int most)
{
    for (int i = 0; i < b->nstep; i++) {
        const BudgetStep *s = &b->step[i];
        buf_str(out, "  ");
        if (s->stages > 1)
            buf_printf(out, "%d stages would take ", s->stages);
        else
            buf_str(out, "it would take ");
        buf_printf(out, "%lld bytes of shared memory, there are %d: %s\n",
                   (long long)s->bytes, most, s->then);
    }
}

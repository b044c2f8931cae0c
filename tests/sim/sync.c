/* Barriers: those of blocks and roles (bar), and mbarriers with their counts of arrivals
   and bytes. What a thread did before it arrives, those know who come after. */
#include "tests/sim/machine.h"

#include <stdlib.h>

static uint32_t
first(const Warp *w, uint32_t at, uint32_t mask)
{
    return R32(w, at)[__builtin_ctz(mask)];
}

/* ---------------------------------------------------------------- bar */

static void
bar_complete(Block *b, Barrier *bar)
{
    for (int k = 0; k < b->nwarps; k++)
        if (bar->waiting >> k & 1) {
            clock_acquire(&b->warp[k], b->warp[k].live, bar->clock);
            b->warp[k].state = READY;
        }
    clock_drop(b, bar->clock);
    *bar = (Barrier){.turn = bar->turn + 1};
    b->stats.barriers++;
    b->progress++;
}

/* At barrier `at` of the block, which the program calls `id`. */
static void
meet(Warp *w, const Insn *i, uint32_t at, uint32_t id, uint32_t want, bool wait)
{
    Block *b = w->b;
    uint32_t mask = w->active;
    Barrier *bar = &b->bar[at];
    if (bar->arrived && bar->want != want) {
        sim_fail(w, i, SIM_BARRIER, "barrier %u is of %u threads here, of %u elsewhere",
                 id, want, bar->want);
        return;
    }
    if (bar->warps >> w->id & 1) {
        sim_fail(w, i, SIM_BARRIER, "the warp is at barrier %u already", id);
        return;
    }
    if (!bar->clock)
        bar->clock = clock_new(b);
    bar->want = want;
    bar->warps |= UINT64_C(1) << w->id;
    bar->arrived += LANES;
    clock_sync(w, mask);
    clock_release(w, mask, bar->clock);
    if (wait) {
        bar->waiting |= UINT64_C(1) << w->id;
        w->state = AT_BARRIER;
        w->wait_bar = at;
        w->wait_insn = i;
    }
    b->progress++;
    if (bar->arrived == want)
        bar_complete(b, bar);
}

/* a: number, b: threads (0: all of the program) */
static void
come(Warp *w, const Insn *i, bool wait)
{
    const Block *b = w->b;
    if (!warp_whole(w, i, 0xffffffff))
        return;
    uint32_t id = first(w, i->a, w->active), want = first(w, i->b, w->active);
    want = want ? want : (uint32_t)b->each * LANES;
    if (id > 15 || want % LANES || want > (uint32_t)b->each * LANES)
        sim_fail(w, i, SIM_BARRIER, "barrier %u of %u threads", id, want);
    else
        meet(w, i, (uint32_t)w->rank * 16 + id, id, want, wait);
}

/* All threads of a cluster. */
void
op_cluster_wait(Warp *w, const Insn *i, uint32_t mask)
{
    (void)mask;
    if (warp_whole(w, i, 0xffffffff))
        meet(w, i, MAX_CLUSTER * 16, MAX_CLUSTER * 16, (uint32_t)w->b->nwarps * LANES,
             true);
}

/* An address of the program's in the program of that rank. */
void
op_mapa(Warp *w, const Insn *i, uint32_t mask)
{
    const uint32_t *at = R32(w, i->r[1]), *rank = R32(w, i->r[2]);
    uint32_t *to = R32(w, i->r[0]);
    EACH(mask, if (rank[l] >= (uint32_t)w->b->cluster) sim_fail(
                   w, i, SIM_MEMORY, "no program of rank %u in the cluster", rank[l]);
         to[l] = (at[l] & ((1u << CLUSTER_SHIFT) - 1)) | rank[l] << CLUSTER_SHIFT);
}

void
op_bar_sync(Warp *w, const Insn *i, uint32_t mask)
{
    (void)mask;
    come(w, i, true);
}

void
op_bar_arrive(Warp *w, const Insn *i, uint32_t mask)
{
    (void)mask;
    come(w, i, false);
}

/* ---------------------------------------------------------------- mbarriers */

static uint32_t
address(const Warp *w, const Insn *i, uint32_t place, int l)
{
    uint64_t a = i->flags & WIDE_DST ? R64(w, place)[l] : R32(w, place)[l];
    return (uint32_t)a + (uint32_t)i->imm;
}

static bool
is_place(Warp *w, const Insn *i, uint32_t at)
{
    if (at % 8 == 0 && shared_holds(w->b, at, 8))
        return true;
    sim_fail(w, i, SIM_MEMORY, "an mbarrier at %d is misaligned or outside",
             (int)at - SHARED_BASE);
    return false;
}

MBar *
mbar_at(Warp *w, const Insn *i, uint32_t at)
{
    if (!is_place(w, i, at))
        return NULL;
    MBar *m = w->b->mbar[at / 8];
    if (m && m->live)
        return m;
    sim_fail(w, i, SIM_ASYNC, "there is no mbarrier at %d", (int)at - SHARED_BASE);
    return NULL;
}

bool
mbar_over(const MBar *m, uint32_t parity)
{
    return (m->phase & 1) != (parity & 1);
}

void
mbar_settle(Block *b, MBar *m)
{
    if (m->pending || m->tx)
        return;
    m->phase++;
    m->pending = m->count;
    memcpy(m->done->v, m->now->v, 2 * (size_t)b->nwho * sizeof *m->now->v);
    b->progress++;
    for (int k = 0; k < b->nwarps; k++) {
        Warp *w = &b->warp[k];
        if (w->state == AT_MBAR && b->mbar[w->wait_bar / 8] == m &&
            mbar_over(m, w->wait_parity))
            w->state = READY;
    }
}

static void
set_cells(Block *b, uint32_t at, bool on)
{
    for (uint32_t k = at >> b->cell_shift; k <= (at + 7) >> b->cell_shift; k++)
        b->cell[k].flags =
            (uint16_t)(on ? b->cell[k].flags | CELL_BAR : b->cell[k].flags & ~CELL_BAR);
}

void
op_mbar_init(Warp *w, const Insn *i, uint32_t mask)
{
    Block *b = w->b;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint32_t at[LANES], count = R32(w, i->r[1])[l];
        at[l] = address(w, i, i->r[0], l);
        if (!is_place(w, i, at[l]))
            return;
        MBar *x = b->mbar[at[l] / 8];
        if (!x && b->nbar < (int)(sizeof b->bar_at / sizeof *b->bar_at)) {
            x = b->mbar[at[l] / 8] = calloc(1, sizeof *x);
            b->bar_at[b->nbar++] = at[l];
        }
        if (!x)
            return;
        if (x->live || !count || count >= 1u << 20) {
            sim_fail(w, i, SIM_ASYNC, "the mbarrier %s",
                     x->live ? "is in use" : "has no count");
            return;
        }
        race_access(w, i, 1u << l, at, 8, WRITE);
        if (b->status)
            return;
        *x = (MBar){.live = true,
                    .count = count,
                    .pending = count,
                    .maker = (uint32_t)(w->id * LANES + l),
                    .now = clock_new(b),
                    .done = clock_new(b)};
        b->unfenced++;
        set_cells(b, at[l], true);
    }
}

void
op_mbar_inval(Warp *w, const Insn *i, uint32_t mask)
{
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint32_t at[LANES];
        at[l] = address(w, i, i->r[0], l);
        MBar *x = mbar_at(w, i, at[l]);
        if (!x)
            return;
        if (x->flying) {
            sim_fail(w, i, SIM_ASYNC, "a copy still reports to the mbarrier");
            return;
        }
        set_cells(w->b, at[l], false);
        race_access(w, i, 1u << l, at, 8, WRITE);
        clock_drop(w->b, x->now);
        clock_drop(w->b, x->done);
        w->b->unfenced -= !x->fenced;
        x->live = false;
        if (w->b->status)
            return;
    }
}

/* r: the address, then the bytes that are expected (sub 1) or the count (sub 2) */
void
op_mbar_arrive(Warp *w, const Insn *i, uint32_t mask)
{
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint32_t at[LANES], n = i->sub == 2 ? R32(w, i->r[1])[l] : 1;
        at[l] = address(w, i, i->r[0], l);
        MBar *x = mbar_at(w, i, at[l]);
        if (!x)
            return;
        race_access(w, i, 1u << l, at, 8, ATOMIC);
        if (w->b->status)
            return;
        if (i->sub == 1)
            x->tx += R32(w, i->r[1])[l];
        if (x->pending < n) {
            sim_fail(w, i, SIM_BARRIER, "one arrival more than the mbarrier's %u",
                     x->count);
            return;
        }
        x->pending -= n;
        clock_release(w, 1u << l, x->now);
        w->b->progress++;
        mbar_settle(w->b, x);
    }
}

/* r: result, address, parity. A warp whose lanes all wait is left alone until the phase
   is over. */
void
op_mbar_wait(Warp *w, const Insn *i, uint32_t mask)
{
    uint32_t over = 0, at[LANES] = {0}, parity = 0, where = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        at[l] = where = address(w, i, i->r[1], l);
        MBar *x = mbar_at(w, i, at[l]);
        if (!x)
            return;
        parity = R32(w, i->r[2])[l];
        over |= (uint32_t)mbar_over(x, parity) << l;
    }
    race_access(w, i, mask, at, 8, ATOMIC);
    if (w->b->status)
        return;
    for (uint32_t m = over; m;) {
        uint32_t there = at[__builtin_ctz(m)], same = 0;
        for (uint32_t n = m; n; n &= n - 1)
            if (at[__builtin_ctz(n)] == there)
                same |= 1u << __builtin_ctz(n);
        clock_acquire(w, same, w->b->mbar[there / 8]->done);
        m &= ~same;
    }
    PRED(w, i->d) = (PRED(w, i->d) & ~mask) | over;
    if (over || w->nparts)
        return;
    w->state = AT_MBAR;
    w->wait_bar = where;
    w->wait_parity = parity;
    w->wait_insn = i;
}

/* Which of the mbarriers that these lanes made may copies report to now? */
static void
fence_bars(Warp *w, uint32_t mask)
{
    Block *b = w->b;
    for (int k = 0; k < b->nbar && b->unfenced; k++) {
        MBar *m = b->mbar[b->bar_at[k] / 8];
        if (m->live && !m->fenced && m->maker / LANES == (uint32_t)w->id &&
            mask >> m->maker % LANES & 1)
            m->fenced = true, b->unfenced--;
    }
}

void
op_mbar_fence(Warp *w, const Insn *i, uint32_t mask)
{
    (void)i;
    fence_bars(w, mask);
}

void
op_proxy_fence(Warp *w, const Insn *i, uint32_t mask)
{
    (void)i;
    if (w->b->code->has_tma)
        fence_bars(w, mask);
    clock_fence(w, mask);
}

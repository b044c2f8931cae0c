/* Races in shared memory, and the order of asynchronous operations.

   Every thread has a vector clock: of each other thread the last epoch that has certainly
   ended, so "access A came before B" is one comparison. Lanes of a warp share their clock
   until they learn different things; the epoch of a warp's lanes is one counter, which
   moves on when any of them tells others what it has done. Groups of asynchronous copies,
   bulk stores and dots are writers and readers of their own, with a number behind the
   threads': who waits for a group learns that its epoch is over.

   A second vector says what a proxy fence has made visible to asynchronous operations on
   the way: writes of threads are read by TMA and wgmma only with it.

   Shared memory is cells as large as the kernel's smallest access: the last writer, and
   the readers since. */
#include "tests/sim/machine.h"

#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- clocks */

Clock *
clock_new(Block *b)
{
    Clock *c;
    if (b->nspare) {
        c = b->spare[--b->nspare];
    } else {
        c = calloc(1, sizeof *c);
        c->v = malloc(2 * (size_t)b->nwho * sizeof *c->v);
        c->p = c->v + b->nwho;
        c->next = b->clocks;
        b->clocks = c;
    }
    memset(c->v, 0, 2 * (size_t)b->nwho * sizeof *c->v);
    c->uses = 1;
    return c;
}

void
clock_drop(Block *b, Clock *c)
{
    if (!c || --c->uses > 0)
        return;
    if (b->nspare == b->spare_room) {
        b->spare_room = b->spare_room ? 2 * b->spare_room : 64;
        b->spare = realloc(b->spare, (size_t)b->spare_room * sizeof *b->spare);
    }
    b->spare[b->nspare++] = c;
}

static void
max_into(uint32_t *to, const uint32_t *from, int n)
{
    for (int k = 0; k < n; k++)
        to[k] = to[k] > from[k] ? to[k] : from[k];
}

void
clock_join(Block *b, Clock *to, const Clock *from)
{
    max_into(to->v, from->v, 2 * b->nwho);
}

/* The lanes of `mask` that have lane l's clock, and that clock for them alone. */
static uint32_t
own_clock(Warp *w, int l, uint32_t mask, Clock **out)
{
    Clock *c = w->clock[l];
    uint32_t same = 0;
    int n = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        int k = __builtin_ctz(m);
        if (w->clock[k] == c)
            same |= 1u << k, n++;
    }
    if (c->uses > n) {
        Clock *mine = clock_new(w->b);
        memcpy(mine->v, c->v, 2 * (size_t)w->b->nwho * sizeof *c->v);
        mine->uses = n;
        c->uses -= n;
        for (uint32_t m = same; m; m &= m - 1)
            w->clock[__builtin_ctz(m)] = mine;
        c = mine;
    }
    *out = c;
    return same;
}

/* What a lane knows by itself, for others: its accesses so far, and the groups that it
   has waited for. */
static void
publish(const Warp *w, int l, uint32_t *v)
{
    const Block *b = w->b;
    int me = w->id * LANES + l;
    v[me] = v[me] < w->epoch ? w->epoch : v[me];
    if (b->code->has_cp && v[b->base_cp + me] < w->cp_done[l])
        v[b->base_cp + me] = w->cp_done[l];
    if (b->code->has_bulk && v[b->base_bulk + me] < w->bulk_done[l])
        v[b->base_bulk + me] = w->bulk_done[l];
    if (b->code->has_wgmma && v[b->base_mma + w->id] < w->mma_done)
        v[b->base_mma + w->id] = w->mma_done;
}

void
clock_acquire(Warp *w, uint32_t mask, const Clock *from)
{
    Clock *c;
    while (mask) {
        mask &= ~own_clock(w, __builtin_ctz(mask), mask, &c);
        clock_join(w->b, c, from);
    }
}

void
clock_release(Warp *w, uint32_t mask, Clock *to)
{
    const Clock *last = NULL;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        if (w->clock[l] != last)
            clock_join(w->b, to, last = w->clock[l]);
        publish(w, l, to->v);
    }
    w->epoch++;
}

void
clock_sync(Warp *w, uint32_t mask)
{
    Block *b = w->b;
    Clock *c;
    int l = __builtin_ctz(mask);
    uint32_t rest = mask & ~own_clock(w, l, mask, &c);
    for (uint32_t m = rest; m; m &= m - 1) {
        int k = __builtin_ctz(m);
        Clock *old = w->clock[k];
        if (old != c)
            clock_join(b, c, old);
        clock_drop(b, old);
        w->clock[k] = c;
        c->uses++;
    }
    for (uint32_t m = mask; m; m &= m - 1)
        publish(w, __builtin_ctz(m), c->v);
    w->epoch++;
}

void
clock_fence(Warp *w, uint32_t mask)
{
    Clock *c;
    proxy_fence(w, mask);
    for (uint32_t m = mask; m;) {
        uint32_t same = own_clock(w, __builtin_ctz(m), m, &c);
        max_into(c->p, c->v, w->b->nwho);
        for (uint32_t s = same; s; s &= s - 1)
            publish(w, __builtin_ctz(s), c->p);
        m &= ~same;
    }
    w->epoch++;
}

/* ---------------------------------------------------------------- cells */

void
race_open(Block *b)
{
    const Code *code = b->code;
    int threads = b->nwarps * LANES, n = threads;
    bool first = !b->cell;
    b->base_cp = n, n += code->has_cp ? threads : 0;
    b->base_bulk = n, n += code->has_bulk ? threads : 0;
    b->base_mma = n, n += code->has_wgmma ? LANES : 0;
    b->base_load = n, n += code->has_tma ? 64 : 0;
    b->nwho = n;
    b->cell_shift = __builtin_ctz((unsigned)code->cell);
    b->ncell = shared_end(b) >> b->cell_shift;
    if (first)
        b->cell = malloc((b->ncell + 1) * sizeof *b->cell);
    for (uint32_t k = 0; k <= b->ncell; k++)
        b->cell[k] = (Cell){.writer = NOBODY, .rgroup = NOBODY};
    b->nreader = 1;
    proxy_open(b);
    for (int k = 0; k < b->nwarps; k++) {
        Clock *c = clock_new(b);
        c->uses = LANES;
        for (int l = 0; l < LANES; l++)
            b->warp[k].clock[l] = c;
        b->warp[k].epoch = 1;
    }
}

void
race_close(Block *b)
{
    for (Clock *c = b->clocks, *next; c; c = next) {
        next = c->next;
        free(c->v);
        free(c);
    }
    free(b->spare);
    free(b->cell);
    free(b->reader);
    proxy_close(b);
}

static void
describe(const Block *b, uint32_t who, char *to, size_t size)
{
    int x = (int)who;
    const char *what = "";
    if (x >= b->base_load && b->code->has_tma) {
        snprintf(to, size, "a tensor copy");
        return;
    }
    if (x >= b->base_mma && b->code->has_wgmma) {
        snprintf(to, size, "a wgmma of warp %d", x - b->base_mma);
        return;
    }
    if (x >= b->base_bulk && b->code->has_bulk)
        x -= b->base_bulk, what = "a bulk store of ";
    else if (x >= b->base_cp && b->code->has_cp)
        x -= b->base_cp, what = "a cp.async of ";
    snprintf(to, size, "%swarp %d lane %d", what, x / LANES, x % LANES);
}

static void
race_fail(Warp *w, const Insn *i, int lane, uint32_t cell, uint32_t who, bool wrote,
          uint32_t me)
{
    char other[64], mine[64];
    describe(w->b, who, other, sizeof other);
    describe(w->b, me, mine, sizeof mine);
    (void)lane;
    sim_fail(w, i, SIM_RACE, "byte %d of shared memory: %s, and %s that %s it",
             (int)(cell << w->b->cell_shift) - SHARED_BASE, mine, other,
             wrote ? "wrote" : "read");
}

/* Of its own accesses and groups a lane knows without its clock. */
static bool
is_own(const Warp *w, int lane, uint32_t who, uint32_t epoch)
{
    const Block *b = w->b;
    int me = w->id * LANES + lane, x = (int)who;
    if (x == me)
        return true;
    if (b->code->has_cp && x == b->base_cp + me)
        return w->cp_done[lane] >= epoch;
    if (b->code->has_bulk && x == b->base_bulk + me)
        return w->bulk_done[lane] >= epoch;
    return b->code->has_wgmma && x == b->base_mma + w->id && w->mma_done >= epoch;
}

static inline bool
knows(const Warp *w, int lane, uint32_t who, uint32_t epoch)
{
    return w->clock[lane]->v[who] >= epoch || is_own(w, lane, who, epoch);
}

bool
clock_knows(const Warp *w, int lane, uint32_t who, uint32_t epoch)
{
    return knows(w, lane, who, epoch);
}

/* The first of a reader's lanes that lane `l` does not know to be done; -1: none. */
static int
unknown_reader(const Warp *w, int l, uint32_t group, uint32_t mask, uint32_t epoch)
{
    for (uint32_t m = mask; m; m &= m - 1) {
        int k = __builtin_ctz(m);
        if (!knows(w, l, group * LANES + (uint32_t)k, epoch))
            return k;
    }
    return -1;
}

/* Does anything that reads conflict with a write (or an atomic, or a read)? */
static bool
readers_conflict(Warp *w, const Insn *i, int l, const Cell *c, uint32_t at, Access how,
                 uint32_t me)
{
    uint32_t group = c->rgroup, mask = c->rmask, epoch = c->repoch, next = c->more;
    bool atomic = c->ratomic;
    while (group != NOBODY) {
        bool matters = how == WRITE || (how == ATOMIC) != atomic;
        int k = matters ? unknown_reader(w, l, group, mask, epoch) : -1;
        if (k >= 0) {
            race_fail(w, i, l, at, group * LANES + (uint32_t)k, atomic, me);
            return true;
        }
        if (!next)
            break;
        const Reader *r = &w->b->reader[next];
        group = r->group, mask = r->mask, epoch = r->epoch, atomic = r->atomic;
        next = r->next;
    }
    return false;
}

static void
add_reader(Warp *w, Cell *c, int l, uint32_t who, uint32_t epoch, bool atomic)
{
    Block *b = w->b;
    uint16_t group = (uint16_t)(who / LANES);
    uint32_t bit = 1u << who % LANES;
    if (c->rgroup == group && c->repoch == epoch && c->ratomic == atomic) {
        c->rmask |= bit;
        return;
    }
    if (c->rgroup == NOBODY ||
        (!c->more && c->ratomic == atomic &&
         unknown_reader(w, l, c->rgroup, c->rmask, c->repoch) < 0)) {
        c->rgroup = group, c->repoch = epoch, c->rmask = bit, c->ratomic = atomic;
        c->more = 0;
        return;
    }
    for (uint32_t k = c->more; k; k = b->reader[k].next) {
        Reader *r = &b->reader[k];
        if (r->group != group || r->atomic != atomic)
            continue;
        if (r->epoch == epoch) {
            r->mask |= bit;
            return;
        }
        if (unknown_reader(w, l, r->group, r->mask, r->epoch) < 0) {
            r->epoch = epoch, r->mask = bit;
            return;
        }
    }
    if (b->nreader >= b->reader_room) {
        b->reader_room = b->reader_room ? 2 * b->reader_room : 1024;
        b->reader = realloc(b->reader, b->reader_room * sizeof *b->reader);
    }
    b->reader[b->nreader] = (Reader){epoch, bit, c->more, group, atomic};
    c->more = b->nreader++;
}

/* One cell: false after an error. `generic`: by a thread or cp.async. */
static bool
touch(Warp *w, const Insn *i, int l, uint32_t at, Access how, uint32_t who,
      uint32_t epoch, bool generic)
{
    Cell *c = &w->b->cell[at];
    if (c->flags & CELL_BAR && how != ATOMIC) {
        sim_fail(w, i, SIM_ASYNC, "byte %d of shared memory belongs to an mbarrier",
                 (int)(at << w->b->cell_shift) - SHARED_BASE);
        return false;
    }
    if (c->writer != NOBODY) {
        if (!knows(w, l, c->writer, c->wepoch)) {
            race_fail(w, i, l, at, c->writer, true, who);
            return false;
        }
        if (!generic && how == READ && !(c->flags & CELL_ASYNC) &&
            w->clock[l]->p[c->writer] < c->wepoch) {
            sim_fail(w, i, SIM_ASYNC,
                     "no fence.proxy.async between a write of byte %d of "
                     "shared memory and its asynchronous read",
                     (int)(at << w->b->cell_shift) - SHARED_BASE);
            return false;
        }
    } else if (how != WRITE && !w->b->launch->any_read && !(c->flags & CELL_WRITTEN)) {
        sim_fail(w, i, SIM_MEMORY, "byte %d of shared memory is read, nothing wrote it",
                 (int)(at << w->b->cell_shift) - SHARED_BASE);
        return false;
    }
    if (c->rgroup != NOBODY && readers_conflict(w, i, l, c, at, how, who))
        return false;
    if (how != WRITE) {
        add_reader(w, c, l, who, epoch, how == ATOMIC);
        return true;
    }
    c->writer = (uint16_t)who;
    c->wepoch = epoch;
    c->flags = (uint16_t)(CELL_WRITTEN | (generic ? 0 : CELL_ASYNC));
    c->rgroup = NOBODY;
    c->more = 0;
    return true;
}

void
race_access(Warp *w, const Insn *i, uint32_t mask, const uint32_t *at, uint32_t bytes,
            Access how)
{
    int shift = w->b->cell_shift;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint32_t who = (uint32_t)(w->id * LANES + l);
        uint32_t end = (at[l] + bytes - 1) >> shift;
        for (uint32_t k = at[l] >> shift; k <= end; k++)
            if (!touch(w, i, l, k, how, who, w->epoch, true))
                return;
    }
    if (how == READ)
        proxy_read(w, i, mask, at, bytes);
}

void
race_async(Warp *w, const Insn *i, int lane, uint32_t who, uint32_t epoch, uint32_t at,
           uint32_t bytes, Access how, bool generic)
{
    int shift = w->b->cell_shift;
    if (!shared_holds(w->b, at, bytes)) {
        sim_fail(w, i, SIM_MEMORY, "%u bytes at %d are outside of shared memory", bytes,
                 (int)at - SHARED_BASE);
        return;
    }
    uint32_t end = (at + bytes - 1) >> shift;
    for (uint32_t k = at >> shift; k <= end; k++)
        if (!touch(w, i, lane, k, how, who, epoch, generic))
            return;
}

/* Copies that go on while the threads do: cp.async, tensor copies (TMA) in both
   directions. Each is written down when it is asked for, with its race checks, and lands
   at a random time after that: at the latest when somebody waits and nothing else can go
   on. */
#include "tests/sim/machine.h"

#include <stdio.h>
#include <stdlib.h>

static Async *
add(Block *b)
{
    if (b->nasync == b->async_room) {
        b->async_room = b->async_room ? 2 * b->async_room : 256;
        b->async = realloc(b->async, (size_t)b->async_room * sizeof *b->async);
    }
    return &b->async[b->nasync++];
}

/* ---------------------------------------------------------------- boxes */

static void
fill_of(const SimMap *m, unsigned char *to)
{
    static const uint16_t half = 0x7fff;
    static const uint32_t word = 0x7fffffff;
    memset(to, 0, 8);
    if (m->nan)
        memcpy(to, m->type == 7 ? (const void *)&word : (const void *)&half,
               m->type == 7 ? 4 : 2);
}

static uint32_t
swizzled(uint32_t at, int swizzle)
{
    uint32_t m = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle == 32 ? 1 : 0;
    return at ^ (at >> 7 & m) << 4;
}

static uint32_t
box_bytes(const SimMap *m)
{
    uint32_t n = (uint32_t)sim_element_bytes(m->type);
    for (int k = 0; k < m->rank; k++)
        n *= m->box[k];
    return n;
}

/* Elements along dimension k that a copy touches. A store leaves out whole pieces of 16
   bytes alone: what lies behind the end of a row in the same piece is written (as an H200
   does, 2026-11-22: tests/run/bent, rows of 65 elements of fp16 and of 15 of fp32). */
static uint64_t
extent(const SimMap *m, int k, bool store)
{
    uint64_t per = 16 / (uint32_t)sim_element_bytes(m->type);
    return k || !store ? m->dim[k] : (m->dim[k] + per - 1) / per * per;
}

/* Element by element between global and shared memory, those outside left out or filled.
   False after an error. */
static bool
move_box(Block *b, const Async *a, const SimMap *m)
{
    Warp *w = &b->warp[a->thread / LANES];
    uint32_t size = (uint32_t)sim_element_bytes(m->type), at = a->shared, x[5] = {0};
    unsigned char fill[8];
    fill_of(m, fill);
    for (uint32_t n = box_bytes(m) / size; n > 0; n--, at += size) {
        bool in = true;
        uint64_t offset = 0;
        for (int k = 0; k < m->rank; k++) {
            int64_t c = (int64_t)a->at[k] + x[k];
            in &= c >= 0 && (uint64_t)c < extent(m, k, a->kind == ASYNC_STORE);
            offset += (uint64_t)c * m->stride[k];
        }
        unsigned char *s = b->shared + swizzled(at, m->swizzle), *g = NULL;
        if (in && !(g = global_bytes(w, a->insn, (uint64_t)(uintptr_t)m->base + offset,
                                     size, a->kind == ASYNC_STORE)))
            return false;
        if (a->kind == ASYNC_LOAD) {
            memcpy(s, in ? g : fill, size);
        } else if (in && a->op) {
            uint64_t was = 0, with = 0;
            memcpy(&was, g, size);
            memcpy(&with, s, size);
            was = reduce_element(a->op, was, with);
            memcpy(g, &was, size);
        } else if (in) {
            memcpy(g, s, size);
        }
        for (int k = 0; k < m->rank && ++x[k] == m->box[k]; k++)
            x[k] = 0;
    }
    return true;
}

static void
land(Block *b, const Async *a)
{
    SimMap m;
    b->progress++;
    if (a->kind == ASYNC_COPY) {
        unsigned char *to = b->shared + a->shared;
        memcpy(to, (const void *)(uintptr_t)a->global, a->bytes);
        memset(to + a->bytes, 0, a->zeros);
        return;
    }
    if (!sim_map_decode(a->map, &m) || !move_box(b, a, &m) || a->kind == ASYNC_STORE)
        return;
    MBar *bar = b->mbar[a->bar / 8];
    bar->flying--;
    bar->tx -= box_bytes(&m);
    bar->now->v[b->base_load + (int)a->group] = a->epoch;
    b->slot_busy[a->group] = false;
    mbar_settle(b, bar);
}

/* Takes it off the list first: what lands may wake somebody. */
static void
land_nth(Block *b, int k)
{
    Async a = b->async[k];
    b->async[k] = b->async[--b->nasync];
    land(b, &a);
}

bool
async_step(Block *b)
{
    if (!b->nasync)
        return false;
    land_nth(b, b->serial ? 0 : (int)sim_random(b, (uint32_t)b->nasync));
    return true;
}

static void
land_groups(Block *b, AsyncKind kind, int thread, uint32_t below)
{
    for (int k = 0; k < b->nasync; k++) {
        const Async *a = &b->async[k];
        if (a->kind == kind && a->thread == thread && a->group < below)
            land_nth(b, k--);
    }
}

/* ---------------------------------------------------------------- cp.async */

/* r: shared address, global address, and the bytes that are not zeros. bytes: of all. */
void
op_cp_async(Warp *w, const Insn *i, uint32_t mask)
{
    Block *b = w->b;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m), who = b->base_cp + w->id * LANES + l;
        uint32_t at =
            (uint32_t)(i->flags & WIDE_DST ? R64(w, i->r[0])[l] : R32(w, i->r[0])[l]);
        uint64_t from = R64(w, i->r[1])[l];
        uint32_t n = i->ns > 2 ? R32(w, i->r[2])[l] : i->bytes;
        if (at % i->bytes || (n && from % i->bytes) || n > i->bytes) {
            sim_fail(w, i, SIM_MEMORY, "misaligned, or more bytes than it copies");
            return;
        }
        if (n && !global_bytes(w, i, from, n, false))
            return;
        race_async(w, i, l, (uint32_t)who, w->cp_group[l] + 1, at, i->bytes, WRITE, true);
        if (b->status)
            return;
        *add(b) = (Async){.kind = ASYNC_COPY,
                          .thread = w->id * LANES + l,
                          .group = w->cp_group[l],
                          .shared = at,
                          .bytes = n,
                          .zeros = i->bytes - n,
                          .global = from,
                          .insn = i};
    }
}

void
op_cp_commit(Warp *w, const Insn *i, uint32_t mask)
{
    (void)i;
    EACH(mask, w->cp_group[l]++);
}

/* imm: groups that may stay; sub 1: wait_all */
void
op_cp_wait(Warp *w, const Insn *i, uint32_t mask)
{
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        if (i->sub)
            w->cp_group[l]++;
        uint32_t stay = (uint32_t)i->imm, all = w->cp_group[l];
        uint32_t below = all > stay ? all - stay : 0;
        if (below > w->cp_done[l]) {
            land_groups(w->b, ASYNC_COPY, w->id * LANES + l, below);
            w->cp_done[l] = below;
        }
    }
}

/* ---------------------------------------------------------------- tensor copies */

static const void *
map_bytes(Warp *w, const Insn *i, int lane, uint64_t a, SimMap *m)
{
    const Block *b = w->b;
    uint64_t base = (uint64_t)(uintptr_t)b->param;
    const void *p = (const void *)(uintptr_t)a;
    bool in = a >= base && a + SIM_MAP_BYTES <= base + (uint64_t)b->code->param_size;
    if (!in && !global_bytes(w, i, a, SIM_MAP_BYTES, false))
        return NULL;
    if (!map_is_seen(w, i, lane, a))
        return NULL;
    if (a % 64 == 0 && sim_map_decode(p, m))
        return p;
    sim_fail(w, i, SIM_MEMORY, "there is no tensor map at 0x%llx", (unsigned long long)a);
    return NULL;
}

static bool
is_box(Warp *w, const Insn *i, const SimMap *m, uint32_t at)
{
    if (m->rank == i->n && at % 128 == 0 && shared_holds(w->b, at, box_bytes(m)))
        return true;
    sim_fail(w, i, SIM_MEMORY,
             "a box of rank %d at %d: wrong rank, misaligned or outside", m->rank,
             (int)at - SHARED_BASE);
    return false;
}

static uint32_t
shared_word(const Warp *w, const Insn *i, uint32_t place, int l)
{
    return (uint32_t)(i->flags & WIDE_DST ? R64(w, place)[l] : R32(w, place)[l]);
}

static int
free_slot(Block *b)
{
    for (;;) {
        for (int k = 0; k < 64; k++)
            if (!b->slot_busy[k])
                return k;
        async_step(b);
    }
}

/* One box to one program of the block. */
static bool
load_box(Warp *w, const Insn *i, int l, const void *map, const SimMap *m, uint32_t at,
         uint32_t bar)
{
    Block *b = w->b;
    int slot = free_slot(b);
    MBar *x = is_box(w, i, m, at) ? mbar_at(w, i, bar) : NULL;
    if (!x)
        return false;
    if (!x->fenced) {
        sim_fail(w, i, SIM_ASYNC, "the mbarrier was made without a fence for copies");
        return false;
    }
    uint32_t epoch = ++b->slot_epoch[slot];
    race_async(w, i, l, (uint32_t)(b->base_load + slot), epoch, at, box_bytes(m), WRITE,
               false);
    if (!b->status)
        proxy_copy(w, i, l, at, box_bytes(m));
    if (b->status)
        return false;
    b->slot_busy[slot] = true;
    x->flying++;
    b->stats.copies++;
    Async *a = add(b);
    *a = (Async){.kind = ASYNC_LOAD,
                 .thread = w->id * LANES + l,
                 .group = (uint32_t)slot,
                 .epoch = epoch,
                 .shared = at,
                 .map = map,
                 .bar = bar,
                 .insn = i};
    for (int k = 0; k < i->n; k++)
        a->at[k] = (int32_t)R32(w, i->r[2 + k])[l];
    return true;
}

/* r: shared address, map, coordinates, mbarrier; sub: and a bit for each program of the
   cluster that gets the box. n: rank. */
void
op_tma_load(Warp *w, const Insn *i, uint32_t mask)
{
    const uint32_t own = (1u << CLUSTER_SHIFT) - 1;
    for (uint32_t lanes = mask; lanes; lanes &= lanes - 1) {
        int l = __builtin_ctz(lanes);
        uint32_t at = shared_word(w, i, i->r[0], l);
        uint32_t bar = shared_word(w, i, i->r[2 + i->n], l);
        uint32_t to = i->sub ? R32(w, i->r[3 + i->n])[l] & 0xffff : 0;
        SimMap m;
        const void *map = map_bytes(w, i, l, R64(w, i->r[1])[l], &m);
        if (!map || (!to && !load_box(w, i, l, map, &m, at, bar)))
            return;
        if (to >> w->b->cluster) {
            sim_fail(w, i, SIM_MEMORY, "the cluster has %d programs, not 0x%x",
                     w->b->cluster, to);
            return;
        }
        for (uint32_t rank = 0; to >> rank; rank++)
            if (to >> rank & 1 &&
                !load_box(w, i, l, map, &m, (at & own) | rank << CLUSTER_SHIFT,
                          (bar & own) | rank << CLUSTER_SHIFT))
                return;
    }
}

/* r: map, coordinates, shared address. sub: operation of a reduction, by the map's type.
 */
void
op_tma_store(Warp *w, const Insn *i, uint32_t mask)
{
    static const char *const names[] = {"u32", "u32", "u32", "s32", "u64",
                                        "s64", "f16", "f32", "f64", "bf16"};
    static const char *const ops[] = {"", "add", "min", "max", "and", "or", "xor"};
    Block *b = w->b;
    for (uint32_t lanes = mask; lanes; lanes &= lanes - 1) {
        int l = __builtin_ctz(lanes), op = 0;
        uint32_t at = shared_word(w, i, i->r[1 + i->n], l);
        SimMap m;
        const void *map = map_bytes(w, i, l, R64(w, i->r[0])[l], &m);
        if (!map || !is_box(w, i, &m, at))
            return;
        if (i->sub && (m.type > 9 || (op = atomic_op(ops[i->sub], names[m.type])) < 0)) {
            sim_fail(w, i, SIM_TEXT, "a reduction of this type is not known");
            return;
        }
        race_async(w, i, l, (uint32_t)(b->base_bulk + w->id * LANES + l),
                   w->bulk_group[l] + 1, at, box_bytes(&m), READ, false);
        if (b->status)
            return;
        b->stats.copies++;
        Async *a = add(b);
        *a = (Async){.kind = ASYNC_STORE,
                     .thread = w->id * LANES + l,
                     .group = w->bulk_group[l],
                     .shared = at,
                     .map = map,
                     .op = op,
                     .insn = i};
        for (int k = 0; k < i->n; k++)
            a->at[k] = (int32_t)R32(w, i->r[1 + k])[l];
    }
}

void
op_bulk_commit(Warp *w, const Insn *i, uint32_t mask)
{
    (void)i;
    EACH(mask, w->bulk_group[l]++);
}

void
op_bulk_wait(Warp *w, const Insn *i, uint32_t mask)
{
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint32_t stay = (uint32_t)i->imm, all = w->bulk_group[l];
        uint32_t below = all > stay ? all - stay : 0;
        if (below > w->bulk_done[l]) {
            land_groups(w->b, ASYNC_STORE, w->id * LANES + l, below);
            w->bulk_done[l] = below;
        }
    }
}

/* The block has ended: nothing may need its shared memory any more. */
void
async_finish(Block *b)
{
    for (int k = 0; k < b->nasync && !b->status; k++) {
        const Async *a = &b->async[k];
        Warp *w = &b->warp[a->thread / LANES];
        int l = a->thread % LANES;
        if (a->kind == ASYNC_LOAD)
            sim_fail(w, a->insn, SIM_ASYNC, "the block ends before the copy has landed");
        if (a->kind == ASYNC_STORE && a->group >= w->bulk_done[l])
            sim_fail(w, a->insn, SIM_ASYNC,
                     "the block ends, and nobody has waited for "
                     "the store");
    }
    for (int k = 0; k < b->nwarps && !b->status; k++) {
        Warp *w = &b->warp[k];
        const Insn *last = &b->code->insn[w->pc ? w->pc - 1 : 0];
        if (w->mma_open || w->mma_done < w->mma_group)
            sim_fail(w, last, SIM_ASYNC, "the warp ends with products under way");
        for (int l = 0; l < LANES; l++)
            if (w->bulk_done[l] < w->bulk_group[l])
                sim_fail(w, last, SIM_ASYNC,
                         "the block ends before its stores have read");
    }
    while (!b->status && async_step(b))
        continue;
    maps_finish(b);
}

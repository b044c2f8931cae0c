/* Running: blocks one after the other; in a block one warp at a time, for a random number
   of instructions; in a warp the lanes that are furthest behind, so that those that have
   parted meet where their ways do. When no warp can go on, what is asynchronous lands;
   when nothing is under way either, that is a deadlock. */
#include "tests/sim/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_STEPS = 50000000, SPINS = 64, REGISTERS = 65536 };

uint32_t
sim_random(Block *b, uint32_t below)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    return (uint32_t)((b->random >> 32) * below >> 32);
}

void
sim_fail(Warp *w, const Insn *i, SimStatus s, const char *format, ...)
{
    Block *b = w->b;
    va_list args;
    int n = 0, size = (int)sizeof b->message;
    if (b->status)
        return;
    b->status = s;
    va_start(args, format);
    n = vsnprintf(b->message, (size_t)size, format, args);
    va_end(args);
    if (n < size - 200)
        snprintf(b->message + n, (size_t)(size - n), " (warp %d, line %u: %.*s)", w->id,
                 i->line, i->length > 100 ? 100 : (int)i->length, b->code->text + i->at);
}

/* ---------------------------------------------------------------- lanes that part */

static void
take(Warp *w, int k)
{
    Part p = w->part[k];
    if (w->active)
        w->part[k] = (Part){w->pc, w->active, false};
    else
        w->part[k] = w->part[--w->nparts];
    w->pc = p.pc;
    w->active = p.mask;
}

/* After a step of a warp whose lanes have parted. */
static void
settle(Warp *w)
{
    int low = -1;
    if (w->active)
        for (int k = 0; k < w->nparts; k++)
            if (w->part[k].pc == w->pc) {
                w->active |= w->part[k].mask;
                w->part[k--] = w->part[--w->nparts];
            }
    for (int k = 0; k < w->nparts; k++)
        if (!w->part[k].stuck && (low < 0 || w->part[k].pc < w->part[low].pc))
            low = k;
    if (low < 0)
        return;
    if (!w->active) {
        take(w, low);
        settle(w);
    } else if (w->hold > 0) {
        w->hold--;
    } else if (w->spins > SPINS) {
        w->spins = 0;
        w->hold = 1 + (int)sim_random(w->b, 100);
        int k = (int)sim_random(w->b, (uint32_t)w->nparts);
        take(w, w->part[k].stuck ? low : k);
    } else if (w->part[low].pc < w->pc) {
        take(w, low);
    }
}

bool
warp_whole(Warp *w, const Insn *i, uint32_t need)
{
    need &= w->live;
    if ((w->active & need) == need)
        return true;
    bool others = false;
    for (int k = 0; k < w->nparts; k++)
        others |= !w->part[k].stuck;
    if (!others) {
        sim_fail(w, i, SIM_BARRIER,
                 "the warp's lanes have parted: %08x are here, %08x "
                 "are needed",
                 w->active, need);
        return false;
    }
    w->part[w->nparts++] = (Part){w->pc - 1, w->active, true};
    w->active = 0;
    return false;
}

void
op_bra(Warp *w, const Insn *i, uint32_t mask)
{
    uint32_t stay = w->active & ~mask;
    if ((int64_t)w->pc > i->imm)
        w->spins++;
    if (stay)
        w->part[w->nparts++] = (Part){w->pc, stay, false};
    w->active = mask;
    w->pc = (uint32_t)i->imm;
}

void
op_ret(Warp *w, const Insn *i, uint32_t mask)
{
    (void)i;
    w->live &= ~mask;
    w->active &= ~mask;
    w->b->progress++;
    /* who waited for these lanes does so no longer */
    for (int k = 0; k < w->nparts; k++)
        w->part[k].stuck = false;
    if (!w->live)
        w->state = DONE;
}

void
op_trap(Warp *w, const Insn *i, uint32_t mask)
{
    (void)mask;
    sim_fail(w, i, SIM_TRAP, "trap");
}

void
op_nothing(Warp *w, const Insn *i, uint32_t mask)
{
    (void)w, (void)i, (void)mask;
}

void
op_griddep_wait(Warp *w, const Insn *i, uint32_t mask)
{
    (void)i, (void)mask;
    w->griddep = true;
}

/* sub: 1 takes more; imm: registers of a thread. */
void
op_setmaxnreg(Warp *w, const Insn *i, uint32_t mask)
{
    Block *b = w->b;
    int more = ((int)i->imm - w->regs_each) * LANES;
    if (!warp_whole(w, i, 0xffffffff))
        return;
    (void)mask;
    if (i->imm % 8 || i->imm < 24 || i->imm > 256 || b->each % 4) {
        sim_fail(w, i, SIM_BARRIER, "%lld registers", (long long)i->imm);
        return;
    }
    if (i->sub ? more <= 0 : more >= 0)
        return; /* it has as many, or gives back nothing */
    if (more > b->regs_free[w->rank]) {
        w->state = AT_REGS;
        w->wait_insn = i;
        w->pc--;
        return;
    }
    b->regs_free[w->rank] -= more;
    w->regs_each = (int)i->imm;
    b->progress++;
    for (int k = 0; k < b->nwarps; k++)
        if (b->warp[k].state == AT_REGS)
            b->warp[k].state = READY;
}

/* ---------------------------------------------------------------- one warp */

static void
run_warp(Warp *w, int steps)
{
    Block *b = w->b;
    const Insn *code = b->code->insn;
    uint64_t threads = 0;
    bool mma = b->code->has_wgmma;
    for (; steps > 0 && w->state == READY && !b->status; steps--) {
        const Insn *i = &code[w->pc++];
        uint32_t mask = w->active;
        b->steps++;
        if (i->pred != NO_PRED)
            mask &= i->negated ? ~PRED(w, i->pred) : PRED(w, i->pred);
        threads += (uint64_t)__builtin_popcount(mask);
        bool put_off = false;
        if (mma && mask)
            wgmma_check(w, i, &put_off);
        if (mask && !put_off && !b->status)
            i->fn(w, i, mask);
        if (w->nparts && w->state == READY)
            settle(w);
    }
    b->stats.instructions += threads;
}

/* ---------------------------------------------------------------- a block */

static void
fill(Warp *w, uint32_t at, uint32_t v)
{
    if (at)
        for (int l = 0; l < LANES; l++)
            R32(w, at)[l] = v;
}

static void
set_specials(Warp *w)
{
    const Block *b = w->b;
    const Code *c = b->code;
    for (int d = 0; d < 3; d++) {
        fill(w, c->ctaid[d], b->id[d] + (d ? 0 : (uint32_t)w->rank));
        fill(w, c->nctaid[d], b->grid[d]);
        fill(w, c->tid[d], 0);
        fill(w, c->ntid[d], d ? 1 : (uint32_t)b->nthreads);
    }
    fill(w, c->warpid, (uint32_t)(w->id % b->each));
    fill(w, c->rank, (uint32_t)w->rank);
    fill(w, c->cluster, (uint32_t)b->cluster);
    for (int k = 0; k < c->naddress && w->rank; k++)
        for (int l = 0; l < LANES; l++)
            if (c->wide[k])
                R64(w, c->address[k])[l] += (uint64_t)w->rank << CLUSTER_SHIFT;
            else
                R32(w, c->address[k])[l] += (uint32_t)w->rank << CLUSTER_SHIFT;
    for (int l = 0; l < LANES; l++) {
        uint32_t bit = 1u << l;
        if (c->tid[0])
            R32(w, c->tid[0])[l] = (uint32_t)(w->id % b->each * LANES + l);
        if (c->laneid)
            R32(w, c->laneid)[l] = (uint32_t)l;
        const uint32_t masks[5] = {bit, bit - 1, bit - 1 + bit, ~(bit - 1 + bit),
                                   ~(bit - 1)};
        for (int k = 0; k < 5; k++)
            if (c->lanemask[k])
                R32(w, c->lanemask[k])[l] = masks[k];
    }
}

static void
reset_warp(Warp *w)
{
    Block *b = w->b;
    const Code *c = b->code;
    Warp keep = *w;
    *w = (Warp){.regs = keep.regs,
                .b = b,
                .id = keep.id,
                .rank = keep.rank,
                .local = keep.local,
                .pending = keep.pending,
                .pending_room = keep.pending_room,
                .busy = keep.busy,
                .stamp = keep.stamp};
    memcpy(w->regs, c->initial, c->const_bytes);
    w->active = w->live = 0xffffffff;
    w->leader = b->serial ? 0 : (int)sim_random(b, LANES);
    int most = REGISTERS / (b->each * LANES) / 8 * 8;
    w->regs_each = most > 255 ? 255 : most;
    if (w->busy) {
        memset(w->busy, 0, c->reg_bytes / SLOT * sizeof *w->busy);
        memset(w->stamp, 0, c->reg_bytes / SLOT * sizeof *w->stamp);
    }
    set_specials(w);
}

static void
open_block(Block *b)
{
    b->status = SIM_OK;
    b->steps = 0;
    b->nasync = 0;
    memset(b->slot_busy, 0, sizeof b->slot_busy);
    memset(b->slot_epoch, 0, sizeof b->slot_epoch);
    memset(b->bar, 0, sizeof b->bar);
    if (b->code->has_wgmma)
        memset(b->alike, 0, sizeof b->alike);
    for (int k = 0; k < b->nwarps; k++)
        reset_warp(&b->warp[k]);
    memset(b->regs_free, 0,
           sizeof b->regs_free); /* all that the launch has belong to its warps */
    if (!b->serial)
        for (uint32_t k = SHARED_BASE; k + 8 <= shared_end(b); k += 8) {
            b->random += 0x9e3779b97f4a7c15u;
            memcpy(b->shared + k, &b->random, 8);
        }
    race_open(b);
}

static void
close_block(Block *b)
{
    for (int k = 0; k < b->nbar; k++) {
        MBar *m = b->mbar[b->bar_at[k] / 8];
        if (m->live) {
            clock_drop(b, m->now);
            clock_drop(b, m->done);
        }
        b->mbar[b->bar_at[k] / 8] = NULL;
        free(m);
    }
    b->nbar = b->unfenced = 0;
    for (size_t k = 0; k < sizeof b->bar / sizeof *b->bar; k++)
        clock_drop(b, b->bar[k].clock);
    for (int k = 0; k < b->nwarps; k++)
        for (int l = 0; l < LANES; l++)
            clock_drop(b, b->warp[k].clock[l]);
}

static void
deadlock(Block *b)
{
    char text[400] = "";
    int n = 0, size = (int)sizeof text;
    const Warp *last = NULL;
    for (int k = 0; k < b->nwarps && n < size - 100; k++) {
        const Warp *w = &b->warp[k];
        if (w->state == DONE || (last && last->wait_insn == w->wait_insn))
            continue;
        last = w;
        if (w->state == AT_BARRIER)
            n += snprintf(text + n, (size_t)(size - n),
                          "; warp %d at barrier %u (%u of %u)", k, w->wait_bar,
                          b->bar[w->wait_bar].arrived, b->bar[w->wait_bar].want);
        else if (w->state == AT_REGS)
            n += snprintf(text + n, (size_t)(size - n), "; warp %d for registers", k);
        else if (b->mbar[w->wait_bar / 8])
            n += snprintf(text + n, (size_t)(size - n),
                          "; warp %d for the mbarrier at %d, parity %u (%u arrivals and "
                          "%lld bytes are missing)",
                          k, (int)w->wait_bar - SHARED_BASE, w->wait_parity,
                          b->mbar[w->wait_bar / 8]->pending,
                          (long long)b->mbar[w->wait_bar / 8]->tx);
    }
    for (int k = 0; k < b->nwarps; k++)
        if (b->warp[k].state != DONE) {
            sim_fail(&b->warp[k], b->warp[k].wait_insn, SIM_DEADLOCK,
                     "every warp waits%s", text);
            return;
        }
}

/* A warp that may run; those that tried an mbarrier in vain may try again when nothing
   else goes on, as the device's waits end by themselves. */
static Warp *
choose(Block *b, int *turn)
{
    int ready = 0, left = 0;
    for (int k = 0; k < b->nwarps; k++) {
        ready += b->warp[k].state == READY;
        left += b->warp[k].state != DONE;
    }
    if (!left)
        return NULL;
    if (!ready) {
        if (async_step(b))
            return choose(b, turn);
        bool again = false;
        for (int k = 0; k < b->nwarps; k++)
            if (b->warp[k].state == AT_MBAR && b->warp[k].tries++ < 2)
                b->warp[k].state = READY, again = true;
        if (again)
            return choose(b, turn);
        deadlock(b);
        return NULL;
    }
    int nth = b->serial ? 0 : (int)sim_random(b, (uint32_t)ready);
    for (int k = 0;; k++) {
        Warp *w = &b->warp[(*turn + k) % b->nwarps];
        if (w->state == READY && nth-- == 0) {
            if (b->serial)
                *turn = (w->id + 1) % b->nwarps;
            return w;
        }
    }
}

static void
run_to_end(Block *b)
{
    uint64_t most = b->launch->max_steps ? b->launch->max_steps : MAX_STEPS, seen = 0;
    int turn = 0;
    for (Warp *w; !b->status && (w = choose(b, &turn));) {
        uint32_t kind = b->serial ? 0 : sim_random(b, 16);
        int steps = b->serial   ? 2000
                    : kind < 8  ? 1 + (int)sim_random(b, 8)
                    : kind < 14 ? 1 + (int)sim_random(b, 64)
                                : 1 + (int)sim_random(b, 1000);
        if (b->progress != seen) {
            seen = b->progress;
            for (int k = 0; k < b->nwarps; k++)
                b->warp[k].tries = 0;
        }
        run_warp(w, steps);
        if (b->status)
            return;
        if (b->steps > most) {
            w->wait_insn = &b->code->insn[w->pc];
            sim_fail(w, w->wait_insn, SIM_LIMIT, "does not end within %llu instructions",
                     (unsigned long long)most);
            return;
        }
        if (b->serial)
            while (async_step(b))
                continue;
        else if (sim_random(b, 4) == 0)
            async_step(b);
        if (w->npending && sim_random(b, 4) == 0)
            wgmma_step(w);
    }
    if (!b->status)
        async_finish(b);
}

/* One block, whose number is in b->id. */
void
block_run(Block *b)
{
    open_block(b);
    run_to_end(b);
    close_block(b);
}

/* What threads have read and a tensor copy overwrites.

   A thread's read goes another way than a copy's write, and that somebody knows the read
   to be over, by an arrival or a barrier, does not put it before the copy: the thread
   must have fenced in between. So for each 16 bytes of shared memory there is, by warp,
   which lanes have read them since they last fenced, and when; and for each warp the
   epochs in which its lanes fenced. A copy must know of the first fence behind each of
   the reads.

   Other threads may have read and written the same bytes since: reads are forgotten when
   a copy lands on them, not before. */
#include "tests/sim/machine.h"

#include <stdlib.h>

enum { GRANULE = 16 };

struct Reads { /* of 16 bytes by a warp */
    uint32_t epoch, mask, insn;
};

typedef struct Fence {
    uint32_t epoch, mask;
} Fence;

struct Fences {
    Fence *at;
    int n, room;
};

void
proxy_open(Block *b)
{
    if (!b->code->has_tma)
        return;
    size_t n = (size_t)(shared_end(b) / GRANULE + 1) * (size_t)b->nwarps;
    if (!b->reads) {
        b->reads = malloc(n * sizeof *b->reads);
        b->fences = calloc((size_t)b->nwarps, sizeof *b->fences);
    }
    memset(b->reads, 0, n * sizeof *b->reads);
    for (int k = 0; k < b->nwarps; k++)
        b->fences[k].n = 0;
}

void
proxy_close(Block *b)
{
    for (int k = 0; k < b->nwarps && b->fences; k++)
        free(b->fences[k].at);
    free(b->fences);
    free(b->reads);
}

void
proxy_fence(Warp *w, uint32_t mask)
{
    if (!w->b->reads)
        return;
    struct Fences *f = &w->b->fences[w->id];
    if (f->n == f->room) {
        f->room = f->room ? 2 * f->room : 64;
        f->at = realloc(f->at, (size_t)f->room * sizeof *f->at);
    }
    f->at[f->n++] = (Fence){w->epoch, mask};
}

/* The lanes that have not fenced since they read. */
static uint32_t
unfenced(const struct Fences *f, const struct Reads *r)
{
    uint32_t mask = r->mask;
    for (int k = f->n - 1; k >= 0 && mask && f->at[k].epoch >= r->epoch; k--)
        mask &= ~f->at[k].mask;
    return mask;
}

void
proxy_read(Warp *w, const Insn *i, uint32_t mask, const uint32_t *at, uint32_t bytes)
{
    Block *b = w->b;
    uint32_t insn = (uint32_t)(i - b->code->insn);
    if (!b->reads)
        return;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint32_t end = (at[l] + bytes - 1) / GRANULE;
        for (uint32_t k = at[l] / GRANULE; k <= end; k++) {
            struct Reads *r = &b->reads[k * (uint32_t)b->nwarps + (uint32_t)w->id];
            if (r->epoch != w->epoch) {
                r->mask = r->mask ? unfenced(&b->fences[w->id], r) : 0;
                r->epoch = w->epoch;
            }
            r->mask |= 1u << l;
            r->insn = insn;
        }
    }
}

/* Does lane `l` of `w`, which copies, know of a fence behind the reads of the lane `of`
   of warp `id`? The first one there was tells. */
static bool
is_fenced(const Warp *w, int l, int id, int of, uint32_t epoch)
{
    const struct Fences *f = &w->b->fences[id];
    int low = 0, high = f->n;
    while (low < high) {
        int mid = (low + high) / 2;
        if (f->at[mid].epoch < epoch)
            low = mid + 1;
        else
            high = mid;
    }
    while (low < f->n && !(f->at[low].mask >> of & 1))
        low++;
    return low < f->n && clock_knows(w, l, (uint32_t)(id * LANES + of), f->at[low].epoch);
}

static bool
check(Warp *w, const Insn *i, int lane, uint32_t at, int id, const struct Reads *r)
{
    const Block *b = w->b;
    for (uint32_t m = r->mask; m; m &= m - 1) {
        int of = __builtin_ctz(m);
        if (is_fenced(w, lane, id, of, r->epoch))
            continue;
        const Insn *read = &b->code->insn[r->insn];
        sim_fail(w, i, SIM_ASYNC,
                 "a copy overwrites byte %d of shared memory, and no fence.proxy.async "
                 "stands behind its read by warp %d lane %d (line %u: %.*s)",
                 (int)at - SHARED_BASE, id, of, read->line,
                 read->length > 60 ? 60 : (int)read->length, b->code->text + read->at);
        return false;
    }
    return true;
}

void
proxy_copy(Warp *w, const Insn *i, int lane, uint32_t at, uint32_t bytes)
{
    const Block *b = w->b;
    uint32_t end = (at + bytes - 1) / GRANULE;
    struct Reads seen[MAX_WARPS] = {{0}}; /* the same reads, a granule before */
    for (uint32_t k = at / GRANULE; k <= end; k++) {
        struct Reads *r = &b->reads[k * (uint32_t)b->nwarps];
        for (int id = 0; id < b->nwarps; id++, r++) {
            if (!r->mask)
                continue;
            bool same = r->epoch == seen[id].epoch && !(r->mask & ~seen[id].mask);
            if (!same && !check(w, i, lane, k * GRANULE, id, r))
                return;
            if (r->epoch != seen[id].epoch)
                seen[id].mask = 0;
            seen[id].epoch = r->epoch;
            seen[id].mask |= r->mask;
            *r = (struct Reads){0};
        }
    }
}

/* What the lanes of a warp do together: exchanging words, votes, rows of matrices. All
   lanes that are named must come, on whatever way; who comes early waits. */
#include "tests/sim/machine.h"

#include <string.h>

static uint32_t
first(const Warp *w, uint32_t at, uint32_t mask)
{
    return ((const uint32_t *)(const void *)(w->regs + at))[__builtin_ctz(mask)];
}

/* r: result, or result and predicate, then value, lane, clamp, members. */
enum { BFLY, IDX, UP, DOWN };

static bool
source_lane(int kind, int l, int b, int c, int *out)
{
    int seg = c >> 8 & 31, max = (l & seg) | (c & 31 & ~seg), j = 0;
    switch (kind) {
    case BFLY: j = l ^ b; break;
    case IDX: j = (l & seg) | (b & ~seg & 31); break;
    case UP: j = l - b; break;
    default: j = l + b; break;
    }
    bool in = kind == UP ? j >= max : j <= max;
    *out = in ? j : l;
    return in;
}

void
op_shfl(Warp *w, const Insn *i, uint32_t mask)
{
    const uint32_t *r = i->r + i->nd;
    uint32_t need = first(w, r[3], mask), old[LANES], p = 0;
    if (!(need & mask)) {
        sim_fail(w, i, SIM_BARRIER, "lanes that run it are not among its members");
        return;
    }
    if (!warp_whole(w, i, need))
        return;
    mask = w->active;
    memcpy(old, R32(w, r[0]), sizeof old);
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m), from;
        bool in = source_lane(i->sub, l, (int)(R32(w, r[1])[l] & 31),
                              (int)R32(w, r[2])[l], &from);
        if (!(mask >> from & 1)) {
            sim_fail(w, i, SIM_BARRIER, "lane %d reads lane %d, which is not there", l,
                     from);
            return;
        }
        R32(w, i->d)[l] = old[from];
        p |= (uint32_t)in << l;
    }
    if (i->nd > 1)
        PRED(w, i->r[1]) = (PRED(w, i->r[1]) & ~mask) | p;
}

/* sub: 0 all, 1 any, 2 uni, 3 ballot; negated sources by READ_ONLY_WAIT */
void
op_vote(Warp *w, const Insn *i, uint32_t mask)
{
    uint32_t need = first(w, i->b, mask);
    if (!warp_whole(w, i, need))
        return;
    uint32_t members = need & w->active, x = PRED(w, i->a) & members;
    if (i->flags & READ_ONLY_WAIT)
        x = ~x & members;
    if (i->sub == 3) {
        EACH(w->active, R32(w, i->d)[l] = x);
        return;
    }
    bool r = i->sub == 0   ? x == members
             : i->sub == 1 ? x != 0
                           : x == 0 || x == members;
    PRED(w, i->d) = (PRED(w, i->d) & ~w->active) | (r ? w->active : 0);
}

/* sub: 0 any, 1 all */
void
op_match(Warp *w, const Insn *i, uint32_t mask)
{
    const uint32_t *r = i->r + i->nd;
    uint32_t need = first(w, r[1], mask);
    if (!warp_whole(w, i, need))
        return;
    uint32_t members = need & w->active;
    for (uint32_t m = members; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint32_t same = 0;
        for (uint32_t n = members; n; n &= n - 1) {
            int k = __builtin_ctz(n);
            bool eq = i->bytes == 8 ? R64(w, r[0])[k] == R64(w, r[0])[l]
                                    : R32(w, r[0])[k] == R32(w, r[0])[l];
            same |= (uint32_t)eq << k;
        }
        if (i->sub)
            same = same == members ? members : 0;
        R32(w, i->d)[l] = same;
        if (i->nd > 1)
            PRED(w, i->r[1]) =
                (PRED(w, i->r[1]) & ~(1u << l)) | (uint32_t)(same != 0) << l;
    }
}

void
op_redux(Warp *w, const Insn *i, uint32_t mask)
{
    uint32_t need = first(w, i->b, mask);
    if (!warp_whole(w, i, need))
        return;
    uint32_t members = need & w->active;
    uint64_t r = R32(w, i->a)[__builtin_ctz(members)];
    for (uint32_t m = members & (members - 1); m; m &= m - 1)
        r = reduce_element(i->sub, r, R32(w, i->a)[__builtin_ctz(m)]);
    EACH(members, R32(w, i->d)[l] = (uint32_t)r);
}

/* One lane, whichever; the same each time for the same members. */
void
op_elect(Warp *w, const Insn *i, uint32_t mask)
{
    uint32_t need = first(w, i->a, mask);
    if (!warp_whole(w, i, need))
        return;
    uint32_t members = need & w->active;
    int chosen = w->leader;
    if (!(members >> chosen & 1))
        chosen = __builtin_ctz(members);
    if (i->nd > 1)
        EACH(members, R32(w, i->d)[l] = (uint32_t)chosen);
    uint32_t p = i->r[i->nd - 1];
    PRED(w, p) = (PRED(w, p) & ~members) | 1u << chosen;
}

void
op_activemask(Warp *w, const Insn *i, uint32_t mask)
{
    EACH(mask, R32(w, i->d)[l] = mask);
}

void
op_warp_sync(Warp *w, const Insn *i, uint32_t mask)
{
    uint32_t need = first(w, i->a, mask);
    if (warp_whole(w, i, need))
        clock_sync(w, need & w->active);
}

/* ---- matrices of 8 rows of 16 bytes; lane 8 i + r has the address of row r */

static bool
rows(Warp *w, const Insn *i, uint32_t place, uint32_t *at, Access how)
{
    uint32_t lanes = i->n == 4 ? 0xffffffff : (1u << 8 * i->n) - 1;
    if (!warp_whole(w, i, 0xffffffff))
        return false;
    if (w->active != 0xffffffff) {
        sim_fail(w, i, SIM_BARRIER, "not all lanes of the warp are there");
        return false;
    }
    for (uint32_t m = lanes; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint64_t a = i->flags & WIDE_DST ? R64(w, place)[l] : R32(w, place)[l];
        at[l] = (uint32_t)a + (uint32_t)i->imm;
        if (at[l] % 16 || !shared_holds(w->b, at[l], 16)) {
            sim_fail(w, i, SIM_MEMORY, "lane %d: a row at %d is misaligned or outside",
                     l,
                     (int)at[l] - SHARED_BASE);
            return false;
        }
    }
    race_access(w, i, lanes, at, 16, how);
    return !w->b->status;
}

/* r: n results, the address */
void
op_ldmatrix(Warp *w, const Insn *i, uint32_t mask)
{
    uint32_t at[LANES];
    (void)mask;
    if (!rows(w, i, i->r[i->n], at, READ))
        return;
    for (int k = 0; k < i->n; k++) {
        uint16_t x[8][8];
        for (int r = 0; r < 8; r++)
            memcpy(x[r], w->b->shared + at[8 * k + r], 16);
        for (int l = 0; l < LANES; l++) {
            int g = l / 4, q = l % 4 * 2;
            R32(w, i->r[k])[l] = i->flags & TRANSPOSE
                                     ? x[q][g] | (uint32_t)x[q + 1][g] << 16
                                     : x[g][q] | (uint32_t)x[g][q + 1] << 16;
        }
    }
}

/* r: the address, n values */
void
op_stmatrix(Warp *w, const Insn *i, uint32_t mask)
{
    uint32_t at[LANES];
    (void)mask;
    if (!rows(w, i, i->r[0], at, WRITE))
        return;
    for (int k = 0; k < i->n; k++) {
        uint16_t x[8][8];
        for (int l = 0; l < LANES; l++) {
            int g = l / 4, q = l % 4 * 2;
            uint32_t v = R32(w, i->r[1 + k])[l];
            if (i->flags & TRANSPOSE)
                x[q][g] = (uint16_t)v, x[q + 1][g] = (uint16_t)(v >> 16);
            else
                x[g][q] = (uint16_t)v, x[g][q + 1] = (uint16_t)(v >> 16);
        }
        for (int r = 0; r < 8; r++)
            memcpy(w->b->shared + at[8 * k + r], x[r], 16);
    }
}

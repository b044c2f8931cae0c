/* With place = (register, lane), destination place (r, l) wants source place
   (A r + B l, C r + D l), sums being exclusive or. Let t[j] be what the destination lane
   stores at register j + E l for a map E that is still to choose. Then the source lane is

       C (j + E l) + D l  =  C j + P l            P = C E + D

   and the register wanted of it A j + (A E + B) l. If equal P l have equal (A E + B) l,
   this is A j + G (source lane + C j): a function of the sending lane, as it must be.
   Before: s'[i] = s[i + G lane]. After: d[r] = t[r + E l]. E is zero but for the lanes
   that D maps to nothing and that do want different registers (B l): each of those gets a
   register bit whose image under C is new. The rank of E is the number of swaps. */
#include "ir/plan/shuffle.h"

#include "ir/base/util.h"

/* The map of a conversion in its four parts, and what registers the warp bits move. */
typedef struct Parts {
    int regs_in, regs_out; /* bits */
    F2 a, b, c, d, w;
} Parts;

static bool
parts_of(const Layout *src, const Layout *dst, Parts *p)
{
    Conversion conv = layout_conversion(src, dst);
    int rs = src->nbasis[LD_REG], rd = dst->nbasis[LD_REG], warps = dst->nbasis[LD_WARP];
    if (conv.kind != CONV_LANE || src->nbasis[LD_BLOCK] || dst->nbasis[LD_BLOCK])
        return false;
    const F2 *f = &conv.from;
    *p = (Parts){.regs_in = rs, .regs_out = rd};
    p->a = f2_sub(f, 0, rd, 0, rs);
    p->c = f2_sub(f, 0, rd, rs, 5);
    p->b = f2_sub(f, rd, 5, 0, rs);
    p->d = f2_sub(f, rd, 5, rs, 5);
    p->w = f2_sub(f, rd + 5, warps, 0, rs);
    return true;
}

/* Lane combinations that d maps to zero; the highest bit of each is in no other. */
static int
kernel(const F2 *d, uint64_t out[5])
{
    F2 before = *d, one = {.nin = 1, .nout = d->nout}, x;
    int n = 0;
    for (int i = 0; i < 5; i++) {
        before.nin = i;
        one.col[0] = d->col[i];
        if (f2_solve(&before, &one, &x))
            out[n++] = x.col[0] | (uint64_t)1 << i;
    }
    return n;
}

/* E, as swaps after the shuffle. A lane's share of a vector of the kernel is its highest
   bit. */
static bool
choose_after(const Parts *p, ShufflePlan *out, F2 *e)
{
    uint64_t null[5];
    int n = kernel(&p->d, null);
    F2 reach = p->d; /* images so far */
    F2 wants = {.nout = p->regs_in};
    *e = f2_zero(5, p->regs_out);
    for (int i = 0; i < n; i++) {
        int bit = log2_floor(null[i]), r = 0;
        F2 want = {.nin = 1, .nout = p->regs_in, .col = {f2_apply(&p->b, null[i])}}, x;
        if (f2_solve(&wants, &want, &x)) { /* as those lanes do */
            for (int k = 0; k < wants.nin; k++) {
                if (!(x.col[0] >> k & 1))
                    continue;
                out->after[k].mask |= 1u << bit;
                e->col[bit] ^= out->after[k].move;
            }
            continue;
        }
        while (r < p->regs_out &&
               f2_in_span(&reach, ((uint64_t)1 << reach.nin) - 1, p->c.col[r]))
            r++;
        if (r == p->regs_out || out->nafter == SHUFFLE_SWAPS)
            return false;
        reach.col[reach.nin++] = p->c.col[r];
        wants.col[wants.nin++] = want.col[0];
        e->col[bit] = (uint64_t)1 << r;
        out->after[out->nafter++] = (ShuffleSwap){1u << bit, 1u << r};
    }
    return true;
}

/* Adds the map from thread bits (from bit `at` on) to registers as swaps, one for each
   dimension of its image. */
static bool
add_before(ShufflePlan *out, const F2 *g, int at, int most)
{
    F2 basis = f2_zero(0, g->nout), x;
    int first = out->nbefore;
    for (int i = 0; i < g->nin; i++) {
        F2 one = {.nin = 1, .nout = g->nout, .col = {g->col[i]}};
        if (f2_solve(&basis, &one, &x)) {
            for (int k = 0; k < basis.nin; k++)
                if (x.col[0] >> k & 1)
                    out->before[first + k].mask |= 1u << (at + i);
            continue;
        }
        if (basis.nin == most)
            return false;
        basis.col[basis.nin++] = g->col[i];
        out->before[out->nbefore++] = (ShuffleSwap){1u << (at + i), (uint32_t)g->col[i]};
    }
    return true;
}

/* G: what the sending lane adds to the register; zero where nobody asks. */
static F2
sender(const F2 *p, const F2 *want)
{
    F2 g = f2_zero(5, want->nout), all = *p, x;
    for (int i = 0; i < 5; i++)
        if (!f2_in_span(&all, ((uint64_t)1 << all.nin) - 1, (uint64_t)1 << i))
            all.col[all.nin++] = (uint64_t)1 << i;
    F2 unit = f2_identity(5);
    if (!f2_solve(&all, &unit, &x))
        return g;
    for (int i = 0; i < 5; i++)
        g.col[i] = f2_apply(want, x.col[i] & 31);
    return g;
}

static F2
sum(const F2 *a, const F2 *b)
{
    F2 s = *a;
    for (int i = 0; i < s.nin; i++)
        s.col[i] ^= b->col[i];
    return s;
}

bool
layout_shuffle(const Layout *src, const Layout *dst, ShufflePlan *out)
{
    Parts p;
    F2 e;
    *out = (ShufflePlan){0};
    if (!parts_of(src, dst, &p) || !choose_after(&p, out, &e))
        return false;
    F2 ce = f2_compose(&p.c, &e), ae = f2_compose(&p.a, &e);
    F2 lane = sum(&ce, &p.d), want = sum(&ae, &p.b);
    F2 g = sender(&lane, &want);
    F2 check = f2_compose(&g, &lane);
    for (int i = 0; i < 5; i++)
        if (check.col[i] != want.col[i])
            return false; /* two lanes want different registers of one */
    if (!add_before(out, &g, 0, SHUFFLE_SWAPS) ||
        !add_before(out, &p.w, 5, LAYOUT_MAX_WARP_BITS))
        return false;
    F2 gc = f2_compose(&g, &p.c);
    out->pick = sum(&p.a, &gc);
    out->turn = p.c;
    out->lane = lane;
    return true;
}

/* ---- pairs that stay together */

/* A register bit of the result (`to`) that is a register bit of the source (`from`) and
   has nothing to do with any other: its two elements stay side by side. */
static bool
find_pair(const ShufflePlan *p, int *from, int *to)
{
    uint64_t moved = 0, landed = 0;
    for (int i = 0; i < p->nbefore; i++)
        moved |= p->before[i].move;
    for (int i = 0; i < p->nafter; i++)
        landed |= p->after[i].move;
    for (int j = 0; j < p->pick.nin; j++) {
        uint64_t a = p->pick.col[j];
        bool ok =
            !p->turn.col[j] && a && !(a & (a - 1)) && !(a & moved) && !(landed >> j & 1);
        for (int k = 0; k < p->pick.nin && ok; k++)
            ok = k == j || !(p->pick.col[k] & a);
        if (!ok)
            continue;
        *from = log2_floor(a);
        *to = j;
        return true;
    }
    return false;
}

bool
shuffle_halve(const ShufflePlan *p, ShufflePlan *half, int *from, int *to)
{
    if (!find_pair(p, from, to))
        return false;
    ShufflePlan h = *p;
    h.pick.nin--, h.pick.nout--, h.turn.nin--;
    for (int j = 0, n = 0; j < p->pick.nin; j++) {
        if (j == *to)
            continue;
        h.pick.col[n] = bit_cut((uint32_t)p->pick.col[j], *from);
        h.turn.col[n++] = p->turn.col[j];
    }
    for (int i = 0; i < p->nbefore; i++)
        h.before[i].move = bit_cut(p->before[i].move, *from);
    for (int i = 0; i < p->nafter; i++)
        h.after[i].move = bit_cut(p->after[i].move, *to);
    *half = h;
    return true;
}

/* ---- what it costs */

/* Lanes 2^n of which get the same word each. */
static int
equal_lanes(const F2 *lane)
{
    return lane->nin - f2_rank(lane);
}

/* A word of every lane takes four slots of a scheduler to shuffle, to store and to load,
   an exchange two; the other way has barriers, addresses and a longer wait. A word that
   several lanes get is read once for all of them, and up to four such words together. */
bool
shuffle_is_dear(const ShufflePlan *p, int bits)
{
    enum { MOVE = 4, SELECT = 2, BARRIERS = 32, LG_WIDEST = 2 };
    ShufflePlan h = *p;
    int from, to;
    for (; bits < 32 && shuffle_halve(&h, &h, &from, &to); bits *= 2)
        ;
    int64_t in = (int64_t)1 << h.pick.nout, out = (int64_t)1 << h.pick.nin, moved = 0;
    bool own = f2_is_identity(&h.lane);
    for (int64_t j = 0; j < out; j++)
        moved += !own || f2_apply(&h.turn, (uint64_t)j);
    int64_t read = max_i64(out >> min_i64(equal_lanes(&h.lane), LG_WIDEST), 1);
    int64_t selects = in * h.nbefore + out * h.nafter, words = bits > 32 ? 2 : 1;
    return words * (MOVE * moved + SELECT * selects) >
           words * MOVE * (in + read) + BARRIERS;
}

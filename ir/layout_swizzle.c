/* Choice of the place: offset bits are, from low to high, the elements that one access
   takes, then what selects the bank, then what selects the line of all banks. Two lanes
   that differ only by a line vector meet in one bank; so no sum of line vectors may be a
   sum of what the lanes of one access differ by, neither in the store nor in the load.
   Coordinates in which neither access moves are free for that. Where they do not suffice,
   one vector of the store's lanes and one of the load's are added: their sum is in
   neither. That sum is the swizzle. */
#include "ir/layout_swizzle.h"

#include "ir/base/util.h"

#include <string.h>

/* A subspace, by its reduced rows. */
typedef struct Span {
    uint64_t row[F2_MAX];
    int n;
} Span;

static uint64_t
span_reduce(const Span *s, uint64_t v)
{
    while (v) {
        int lead = 63 - __builtin_clzll(v);
        if (!s->row[lead])
            return v;
        v ^= s->row[lead];
    }
    return 0;
}

static bool
span_add(Span *s, uint64_t v)
{
    v = span_reduce(s, v);
    if (!v)
        return false;
    s->row[63 - __builtin_clzll(v)] = v;
    s->n++;
    return true;
}

typedef struct Vectors {
    int n;
    uint64_t v[F2_MAX];
} Vectors;

static void
vectors_add(Vectors *l, uint64_t v)
{
    if (l->n < F2_MAX)
        l->v[l->n++] = v;
}

static bool
vectors_have(const Vectors *l, uint64_t v)
{
    for (int i = 0; i < l->n; i++)
        if (l->v[i] == v)
            return true;
    return false;
}

/* One side of the exchange, without the coordinate bits that select the round. */
typedef struct Side {
    Vectors reg, lane;
} Side;

static Side
side_of(const Layout *l, uint32_t rounds)
{
    Side s = {0};
    for (int i = 0; i < l->n[LD_REG]; i++)
        if (l->b[LD_REG][i] & ~rounds)
            vectors_add(&s.reg, l->b[LD_REG][i] & ~rounds);
    for (int i = 0; i < l->n[LD_LANE]; i++)
        vectors_add(&s.lane, l->b[LD_LANE][i] & ~rounds);
    return s;
}

/* ---- questions about accesses */

int
shared_conflicts(const uint64_t lane[5], int bytes)
{
    Span words = {0}, banks = {0};
    int wide = bytes > 4 ? log2_floor((uint64_t)bytes / 4) : 0;
    for (int i = 0; i < wide; i++) {
        span_add(&words, (uint64_t)1 << i);
        span_add(&banks, (uint64_t)1 << i);
    }
    for (int i = 0; i < 5 - wide; i++) {
        span_add(&words, lane[i] / 4);
        span_add(&banks, lane[i] / 4 % SHARED_BANKS);
    }
    return 1 << (words.n - banks.n);
}

int
shared_run(const F2 *map, int regs, int most, int reg_bit[LAYOUT_MAX_BITS])
{
    int k = 0;
    for (; 2 << k <= most && k < map->nout; k++) {
        uint64_t want = (uint64_t)1 << k;
        int reg = 0;
        while (reg < regs && map->col[reg] != want)
            reg++;
        bool alone = reg < regs;
        for (int i = 0; i < map->nin && alone; i++)
            alone = i == reg || !(map->col[i] & want);
        if (!alone)
            break;
        if (reg_bit)
            reg_bit[k] = reg;
    }
    return 1 << k;
}

F2
exchange_map(const Exchange *e, const Layout *l)
{
    F2 m = layout_matrix(l);
    return f2_compose(&e->offset, &m);
}

int64_t
exchange_bytes(const Exchange *e)
{
    return (int64_t)e->bytes << e->offset.nout;
}

static void
measure_side(const Exchange *e, const Layout *l, int *run, int *ways)
{
    F2 m = exchange_map(e, l);
    uint64_t lane[5];
    *run = shared_run(&m, l->n[LD_REG], SHARED_ACCESS / e->bytes, NULL);
    for (int i = 0; i < 5; i++)
        lane[i] = m.col[l->n[LD_REG] + i] * (uint64_t)e->bytes;
    *ways = shared_conflicts(lane, *run * e->bytes);
}

/* ---- choice of the map */

/* Vectors that the lanes of one pass over the banks differ by, and those inside of an
   access. */
static void
access_vectors(const Side *s, const Vectors *low, int bytes, Vectors *out)
{
    int run = 0;
    out->n = 0;
    while (run < low->n && vectors_have(&s->reg, low->v[run]))
        vectors_add(out, low->v[run++]);
    int size = bytes << run;
    int lanes = 5 - (size > 4 ? log2_floor((uint64_t)size / 4) : 0);
    for (int i = 0; i < low->n && bytes << i < 4; i++) /* inside of a word */
        vectors_add(out, low->v[i]);
    for (int i = 0; i < lanes && i < s->lane.n; i++)
        vectors_add(out, s->lane.v[i]);
}

static Span
span_of(const Vectors *l)
{
    Span s = {0};
    for (int i = 0; i < l->n; i++)
        span_add(&s, l->v[i]);
    return s;
}

/* Vectors of a that are outside of b's span and independent over it. */
static void
beyond(const Vectors *a, const Span *b, Vectors *out)
{
    Span s = *b;
    out->n = 0;
    for (int i = 0; i < a->n; i++)
        if (span_add(&s, a->v[i]))
            vectors_add(out, a->v[i]);
}

/* `n` vectors that select the line, independent of each other and of `low`. */
static void
choose_lines(const Vectors *low, const Vectors *a, const Vectors *b, uint64_t space,
             int n, Vectors *line)
{
    Vectors only_a, only_b;
    Span sa = span_of(a), sb = span_of(b), both = sa, taken = span_of(low);
    beyond(a, &sb, &only_a);
    beyond(b, &sa, &only_b);
    for (int i = 0; i < b->n; i++)
        span_add(&both, b->v[i]);
    for (int i = 0; i < low->n; i++)
        span_add(&both, low->v[i]);
    line->n = 0;
    for (uint64_t rest = space; rest && line->n < n; rest &= rest - 1) {
        uint64_t unit = rest & -rest;
        if (span_add(&both, unit) && span_add(&taken, unit))
            vectors_add(line, unit);
    }
    for (int i = 0; i < only_a.n && i < only_b.n && line->n < n; i++) {
        uint64_t sum = only_a.v[i] ^ only_b.v[i];
        if (span_add(&taken, sum))
            vectors_add(line, sum);
    }
    for (uint64_t rest = space; rest && line->n < n; rest &= rest - 1)
        if (span_add(&taken, rest & -rest))
            vectors_add(line, rest & -rest);
}

/* The map whose accesses take the elements of `low` in a row. */
static Exchange
try_low(const Layout *src, const Layout *dst, int bytes, uint32_t rounds,
        const Vectors *low)
{
    Side from = side_of(src, rounds), to = side_of(dst, rounds);
    int all = 0;
    for (int i = 0; i < src->rank; i++)
        all += src->lg[i];
    uint64_t space = (((uint64_t)1 << all) - 1) & ~(uint64_t)rounds;
    int d = __builtin_popcountll(space);
    int wide = log2_floor((uint64_t)SHARED_BANKS * 4 / (uint64_t)bytes);
    int banks = (int)max_i64(0, min_i64(wide, d) - low->n);
    Vectors a, b, line;
    access_vectors(&from, low, bytes, &a);
    access_vectors(&to, low, bytes, &b);
    choose_lines(low, &a, &b, space, d - low->n - banks, &line);
    /* offsets -> elements: low, then what completes the space, then lines */
    F2 place = {.nout = all};
    Span taken = span_of(low);
    for (int i = 0; i < line.n; i++)
        span_add(&taken, line.v[i]);
    for (int i = 0; i < low->n; i++)
        place.col[place.nin++] = low->v[i];
    for (uint64_t rest = space; rest; rest &= rest - 1)
        if (span_add(&taken, rest & -rest))
            place.col[place.nin++] = rest & -rest;
    for (int i = 0; i < line.n; i++)
        place.col[place.nin++] = line.v[i];
    Exchange e = {.rounds = rounds, .nround = __builtin_popcount(rounds), .bytes = bytes};
    for (uint32_t rest = rounds; rest; rest &= rest - 1)
        place.col[place.nin++] = rest & -rest;
    F2 inverse;
    if (f2_invert(&place, &inverse))
        e.offset = f2_sub(&inverse, 0, all, 0, d);
    measure_side(&e, src, &e.store, &e.store_ways);
    measure_side(&e, dst, &e.load, &e.load_ways);
    return e;
}

/* Instructions and passes over the banks of one side. */
static int64_t
side_cost(const Layout *l, int run, int bytes, int ways)
{
    int64_t count = layout_regs(l) / run;
    return count + count * max_i64(1, run * bytes / 4) * ways;
}

/* Registers of `from` that `also` has, while there is room in an access. */
static void
extend(Vectors *low, const Vectors *from, const Vectors *also, int most)
{
    for (int i = 0; i < from->n && low->n < most; i++)
        if (!vectors_have(low, from->v[i]) && (!also || vectors_have(also, from->v[i])))
            vectors_add(low, from->v[i]);
}

/* Independent vectors only: a register basis may repeat in a sliced layout. */
static void
keep_independent(Vectors *low)
{
    Span s = {0};
    int n = 0;
    for (int i = 0; i < low->n; i++)
        if (span_add(&s, low->v[i]))
            low->v[n++] = low->v[i];
    low->n = n;
}

/* Coordinate bits that are one register each in both layouts and appear nowhere else:
   each halves what the exchange needs at a time. The highest are taken first, they are
   the least use to wide accesses. */
static uint32_t
choose_rounds(const Layout *src, const Layout *dst, int64_t bytes, int64_t limit)
{
    uint32_t rounds = 0, shared[2] = {0}, alone[2] = {0};
    const Layout *side[] = {src, dst};
    int all = 0;
    for (int i = 0; i < src->rank; i++)
        all += src->lg[i];
    for (int k = 0; k < 2; k++) {
        for (int d = 0; d < LD_COUNT; d++) {
            for (int i = 0; i < side[k]->n[d]; i++) {
                uint32_t v = side[k]->b[d][i];
                bool unit = d == LD_REG && is_pow2(v) && !(alone[k] & v);
                if (unit)
                    alone[k] |= v;
                else
                    shared[k] |= v;
            }
        }
    }
    uint32_t free_bits = alone[0] & alone[1] & ~(shared[0] | shared[1]);
    for (int64_t size = bytes << all; size > limit && free_bits; size /= 2) {
        uint32_t top = (uint32_t)1 << log2_floor(free_bits);
        rounds |= top;
        free_bits &= ~top;
    }
    return rounds;
}

Exchange
layout_exchange(const Layout *src, const Layout *dst, int bytes, int64_t limit)
{
    uint32_t rounds = choose_rounds(src, dst, bytes, limit);
    Side from = side_of(src, rounds), to = side_of(dst, rounds);
    int most = log2_floor(SHARED_ACCESS / (uint64_t)bytes);
    int word = bytes < 4 ? log2_floor(4 / (uint64_t)bytes) : 0;
    Exchange best = {0};
    int64_t best_cost = INT64_MAX;
    /* Wide on both sides as far as they agree; beyond that the store's or the load's,
       which may cost the other side conflicts: all widths are tried. */
    for (int k = 0; k <= 2 * most + 1; k++) {
        Vectors low = {0};
        extend(&low, &from.reg, &to.reg, most);
        int common = low.n, width = k / 2;
        if (width < common || (width == common && k % 2))
            continue;
        extend(&low, k % 2 ? &to.reg : &from.reg, NULL, width);
        if (width == common) { /* at least whole words */
            extend(&low, &from.reg, NULL, word);
            extend(&low, &to.reg, NULL, word);
        }
        keep_independent(&low);
        Exchange e = try_low(src, dst, bytes, rounds, &low);
        int64_t cost = side_cost(src, e.store, bytes, e.store_ways) +
                       side_cost(dst, e.load, bytes, e.load_ways);
        if (cost < best_cost) {
            best = e;
            best_cost = cost;
        }
    }
    return best;
}

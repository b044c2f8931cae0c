/* Choice of the place: offset bits are, from low to high, the elements that one access
   takes, then what selects the bank, then what selects the line of all banks. Two lanes
   that differ only by a line vector meet in one bank; so no sum of line vectors may be a
   sum of what the lanes of one access differ by, neither in the store nor in the load.
   Coordinates in which neither access moves are free for that. Where they do not suffice,
   one vector of the store's lanes and one of the load's are added: their sum is in
   neither. That sum is the swizzle. */
#include "ir/plan/swizzle.h"

#include "ir/base/util.h"
#include "ir/layout_matrix.h"

#include <string.h>

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
    for (int i = 0; i < l->nbasis[LD_REG]; i++)
        if (l->basis[LD_REG][i] & ~rounds)
            vectors_add(&s.reg, l->basis[LD_REG][i] & ~rounds);
    for (int i = 0; i < l->nbasis[LD_LANE]; i++)
        vectors_add(&s.lane, l->basis[LD_LANE][i] & ~rounds);
    return s;
}

/* ---- questions about accesses */

int
shared_conflicts(const uint64_t lane[5], int bytes)
{
    F2Span words = {0}, banks = {0};
    int wide = bytes > 4 ? log2_floor((uint64_t)bytes / 4) : 0;
    for (int i = 0; i < wide; i++) {
        f2_span_add(&words, (uint64_t)1 << i, 0);
        f2_span_add(&banks, (uint64_t)1 << i, 0);
    }
    for (int i = 0; i < 5 - wide; i++) {
        f2_span_add(&words, lane[i] / 4, 0);
        f2_span_add(&banks, lane[i] / 4 % SHARED_BANKS, 0);
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

/* Instructions and passes over the banks of one side, by each thread's own accesses or by
   matrices. */
static int64_t
measure_side(const Exchange *e, const Layout *l, bool unit, int *run, int *ways,
             bool *matrix)
{
    F2 m = exchange_map(e, l);
    MatrixForm form;
    uint64_t lane[5] = {0};
    int regs = l->nbasis[LD_REG];
    *run = shared_run(&m, regs, SHARED_ACCESS / e->bytes, NULL);
    for (int i = 0; i < 5; i++)
        lane[i] = m.col[regs + i] * (uint64_t)e->bytes;
    *ways = shared_conflicts(lane, *run * e->bytes);
    *matrix = false;
    int64_t count = layout_regs(l) / *run;
    int64_t cost = count + count * max_i64(1, *run * e->bytes / 4) * *ways;
    if (!unit || e->bytes > 4 || !matrix_form(&m, regs, e->bytes, &form))
        return cost;
    for (int i = 0; i < 3; i++)
        lane[i] = form.row[i];
    int rows = shared_conflicts(lane, SHARED_ACCESS);
    int64_t words = max_i64(1, layout_regs(l) * e->bytes / 4);
    int64_t other = (words + 3) / 4 + words * rows;
    if (other >= cost)
        return cost;
    *matrix = true;
    *ways = rows;
    return other;
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

static F2Span
span_of(const Vectors *l)
{
    F2Span s = {0};
    for (int i = 0; i < l->n; i++)
        f2_span_add(&s, l->v[i], 0);
    return s;
}

/* Vectors of a that are outside of b's span and independent over it. */
static void
beyond(const Vectors *a, const F2Span *b, Vectors *out)
{
    F2Span s = *b;
    out->n = 0;
    for (int i = 0; i < a->n; i++)
        if (f2_span_add(&s, a->v[i], 0))
            vectors_add(out, a->v[i]);
}

/* `n` vectors that select the line, independent of each other and of `low`. */
static void
choose_lines(const Vectors *low, const Vectors *a, const Vectors *b, uint64_t space,
             int n, Vectors *line)
{
    Vectors only_a, only_b;
    F2Span sa = span_of(a), sb = span_of(b), both = sa, taken = span_of(low);
    beyond(a, &sb, &only_a);
    beyond(b, &sa, &only_b);
    for (int i = 0; i < b->n; i++)
        f2_span_add(&both, b->v[i], 0);
    for (int i = 0; i < low->n; i++)
        f2_span_add(&both, low->v[i], 0);
    line->n = 0;
    for (uint64_t rest = space; rest && line->n < n; rest &= rest - 1) {
        uint64_t unit = rest & -rest;
        if (f2_span_add(&both, unit, 0) && f2_span_add(&taken, unit, 0))
            vectors_add(line, unit);
    }
    for (int i = 0; i < only_a.n && i < only_b.n && line->n < n; i++) {
        uint64_t sum = only_a.v[i] ^ only_b.v[i];
        if (f2_span_add(&taken, sum, 0))
            vectors_add(line, sum);
    }
    for (uint64_t rest = space; rest && line->n < n; rest &= rest - 1)
        if (f2_span_add(&taken, rest & -rest, 0))
            vectors_add(line, rest & -rest);
}

typedef struct Pair {
    const Layout *src, *dst;
    Side from, to;
    int bytes, units;
    uint32_t rounds;
    Exchange best;
    int64_t best_cost;
} Pair;

/* The map whose accesses take the elements of `low` in a row. store, load: what the lanes
   of one access differ by, or NULL: as each thread accesses its own. */
static void
try_low(Pair *p, const Vectors *low, const Vectors *store, const Vectors *load)
{
    const Layout *src = p->src;
    int all = 0, bytes = p->bytes;
    uint32_t rounds = p->rounds;
    for (int i = 0; i < src->rank; i++)
        all += src->log_shape[i];
    uint64_t space = (((uint64_t)1 << all) - 1) & ~(uint64_t)rounds;
    int d = __builtin_popcountll(space);
    int wide = log2_floor((uint64_t)SHARED_BANKS * 4 / (uint64_t)bytes);
    int banks = (int)max_i64(0, min_i64(wide, d) - low->n);
    Vectors a, b, line;
    access_vectors(&p->from, low, bytes, &a);
    access_vectors(&p->to, low, bytes, &b);
    a = store ? *store : a;
    b = load ? *load : b;
    choose_lines(low, &a, &b, space, d - low->n - banks, &line);
    /* offsets -> elements: low, then what completes the space, then lines */
    F2 place = {.nout = all};
    F2Span taken = span_of(low);
    for (int i = 0; i < line.n; i++)
        f2_span_add(&taken, line.v[i], 0);
    for (int i = 0; i < low->n; i++)
        place.col[place.nin++] = low->v[i];
    for (uint64_t rest = space; rest; rest &= rest - 1)
        if (f2_span_add(&taken, rest & -rest, 0))
            place.col[place.nin++] = rest & -rest;
    for (int i = 0; i < line.n; i++)
        place.col[place.nin++] = line.v[i];
    Exchange e = {.rounds = rounds, .nround = __builtin_popcount(rounds), .bytes = bytes};
    for (uint32_t rest = rounds; rest; rest &= rest - 1)
        place.col[place.nin++] = rest & -rest;
    F2 inverse;
    if (f2_invert(&place, &inverse))
        e.offset = f2_sub(&inverse, 0, all, 0, d);
    /* copies are not stored; all lanes take part in stmatrix */
    bool stmatrix = (p->units & EXCHANGE_STMATRIX) && !layout_is_replicated(src);
    int64_t cost =
        measure_side(&e, src, stmatrix, &e.store, &e.store_ways, &e.store_matrix);
    cost += measure_side(&e, p->dst, p->units & EXCHANGE_LDMATRIX, &e.load, &e.load_ways,
                         &e.load_matrix);
    if (cost < p->best_cost) {
        p->best = e;
        p->best_cost = cost;
    }
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
    F2Span s = {0};
    int n = 0;
    for (int i = 0; i < low->n; i++)
        if (f2_span_add(&s, low->v[i], 0))
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
        all += src->log_shape[i];
    for (int k = 0; k < 2; k++) {
        for (int d = 0; d < LD_COUNT; d++) {
            for (int i = 0; i < side[k]->nbasis[d]; i++) {
                uint32_t v = side[k]->basis[d][i];
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

/* Wide on both sides as far as they agree; beyond that the store's or the load's, which
   may cost the other side conflicts: all widths are tried. */
static void
try_widths(Pair *p)
{
    int most = log2_floor(SHARED_ACCESS / (uint64_t)p->bytes);
    int word = p->bytes < 4 ? log2_floor(4 / (uint64_t)p->bytes) : 0;
    for (int k = 0; k <= 2 * most + 1; k++) {
        Vectors low = {0};
        extend(&low, &p->from.reg, &p->to.reg, most);
        int common = low.n, width = k / 2;
        if (width < common || (width == common && k % 2))
            continue;
        extend(&low, k % 2 ? &p->to.reg : &p->from.reg, NULL, width);
        if (width == common) { /* at least whole words */
            extend(&low, &p->from.reg, NULL, word);
            extend(&low, &p->to.reg, NULL, word);
        }
        keep_independent(&low);
        try_low(p, &low, NULL, NULL);
    }
}

/* Rows of matrices as one side has them: plain, with each register bit inside of a word,
   and transposed. */
static void
try_matrices(Pair *p, bool store)
{
    const Side *s = store ? &p->from : &p->to;
    int n = p->bytes == 4 ? 1 : p->bytes == 2 ? s->reg.n : 0;
    for (int k = 0; k < 2 * n; k++) {
        bool trans = k % 2;
        Vectors word = {0}, rows = {0}, both;
        if (p->bytes == 2)
            vectors_add(&word, s->reg.v[k / 2]);
        for (int i = 0; i < 5; i++)
            vectors_add(i < 2 ? &word : &rows, s->lane.v[i]);
        Vectors *low = trans ? &rows : &word;
        both = word;
        for (int i = 0; i < rows.n; i++)
            vectors_add(&both, rows.v[i]);
        if ((trans && (p->bytes != 2 || k > 1)) || span_of(low).n != low->n)
            continue;
        try_low(p, low, store ? &both : NULL, store ? NULL : &both);
    }
}

Exchange
layout_exchange(const Layout *src, const Layout *dst, int bytes, int64_t limit, int units)
{
    Pair p = {.src = src, .dst = dst, .bytes = bytes, .units = units};
    p.rounds = choose_rounds(src, dst, bytes, limit);
    p.from = side_of(src, p.rounds);
    p.to = side_of(dst, p.rounds);
    p.best_cost = INT64_MAX;
    try_widths(&p);
    if (units & EXCHANGE_STMATRIX)
        try_matrices(&p, true);
    if (units & EXCHANGE_LDMATRIX)
        try_matrices(&p, false);
    return p.best;
}

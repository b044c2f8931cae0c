/* The table of layouts, layouts derived from others, and the questions passes and code
   generation ask. All of it works on the images of single bits: a slice deletes
   coordinate bits, a transpose moves them, a reshape only changes where they are cut. */
#include "ir/layout.h"

#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/layout_make.h"

#include <string.h>

struct LayoutTable {
    Vec(const Layout *) all;
    const Layout **slots; /* open addressing by hash */
    int cap;
};

bool
layout_same(const Layout *a, const Layout *b)
{
    if (a->kind != b->kind || a->rank != b->rank ||
        memcmp(a->nbasis, b->nbasis, sizeof a->nbasis) != 0 ||
        memcmp(a->log_shape, b->log_shape, sizeof a->log_shape) != 0)
        return false;
    for (int d = 0; d < LD_COUNT; d++)
        if (memcmp(a->basis[d], b->basis[d], a->nbasis[d] * sizeof a->basis[d][0]) != 0)
            return false;
    return true;
}

static uint64_t
hash_layout(const Layout *l)
{
    uint64_t h = (uint64_t)l->kind << 8 | (uint64_t)l->rank;
    h = hash_bytes(l->log_shape, sizeof l->log_shape, h);
    h = hash_bytes(l->nbasis, sizeof l->nbasis, h);
    for (int d = 0; d < LD_COUNT; d++)
        h = hash_bytes(l->basis[d], l->nbasis[d] * sizeof l->basis[d][0], h);
    return h;
}

static const Layout **
find_slot(const LayoutTable *t, const Layout *l)
{
    uint64_t at = l->hash & (uint64_t)(t->cap - 1);
    while (t->slots[at] && !layout_same(t->slots[at], l))
        at = (at + 1) & (uint64_t)(t->cap - 1);
    return &t->slots[at];
}

const Layout *
layout_intern(Session *s, const Layout *want)
{
    if (!s->layouts) {
        s->layouts = arena_new(&s->perm, LayoutTable);
        s->layouts->cap = 64;
        s->layouts->slots = arena_array(&s->perm, const Layout *, s->layouts->cap);
    }
    LayoutTable *t = s->layouts;
    Layout l = *want;
    l.hash = hash_layout(&l);
    const Layout **slot = find_slot(t, &l);
    if (*slot)
        return *slot;
    Layout *copy = arena_new(&s->perm, Layout);
    *copy = l;
    *slot = copy;
    vec_push(&s->perm, &t->all, copy);
    if (t->all.n * 2 > t->cap) {
        t->cap *= 2;
        t->slots = arena_array(&s->perm, const Layout *, t->cap);
        for (int i = 0; i < t->all.n; i++)
            *find_slot(t, t->all.at[i]) = t->all.at[i];
    }
    return copy;
}

static int
coord_bits(const Layout *l)
{
    int n = 0;
    for (int i = 0; i < l->rank; i++)
        n += l->log_shape[i];
    return n;
}

bool
layout_check(const Layout *l, Buf *why)
{
    const char *reason = NULL;
    int bits = coord_bits(l);
    if (l->rank < 1 || l->rank > MAX_RANK || bits > LAYOUT_MAX_BITS)
        reason = "the tile is too large for a layout";
    else if (l->nbasis[LD_WARP] > LAYOUT_MAX_WARP_BITS ||
             l->nbasis[LD_BLOCK] > LAYOUT_MAX_BLOCK_BITS)
        reason = "more than 32 warps or 16 blocks";
    else if (l->kind == LK_SHARED &&
             (l->nbasis[LD_LANE] | l->nbasis[LD_WARP] | l->nbasis[LD_BLOCK]))
        reason = "a shared layout has offsets only";
    else if (l->kind == LK_DISTRIBUTED && l->nbasis[LD_LANE] != 5)
        reason = "a warp has 32 lanes";
    for (int d = 0; d < LD_COUNT && !reason; d++) {
        for (int i = 0; i < l->nbasis[d]; i++) {
            if (l->basis[d][i] >> bits)
                reason = "a basis lies outside of the tile";
            else if (d == LD_REG && !l->basis[d][i])
                reason = "a register basis is zero";
        }
    }
    if (!reason) {
        F2 m = layout_matrix(l);
        if (!f2_is_surjective(&m))
            reason = "some elements of the tile have no owner";
        else if (l->kind == LK_SHARED && !f2_is_injective(&m))
            reason = "two offsets of a shared buffer hold one element";
    }
    if (reason && why)
        buf_str(why, reason);
    return !reason;
}

/* ------------------------------------------------------------------ related tiles */

/* Coordinates without the `n` bits at `at`. */
static uint32_t
cut_bits(uint32_t v, int at, int n)
{
    uint32_t low = ((uint32_t)1 << at) - 1;
    return (v & low) | (v >> n & ~low);
}

static const Layout *
map_coords(Session *s, const Layout *l, Layout *out,
           uint32_t (*fn)(uint32_t, const int *), const int *arg)
{
    for (int d = 0; d < LD_COUNT; d++)
        for (int i = 0; i < l->nbasis[d]; i++)
            fill_basis(out, (LayoutDim)d, fn(l->basis[d][i], arg));
    return layout_intern(s, out);
}

static uint32_t
cut(uint32_t v, const int *arg)
{
    return cut_bits(v, arg[0], arg[1]);
}

static uint32_t
same(uint32_t v, const int *arg)
{
    (void)arg;
    return v;
}

static Layout
empty_like(const Layout *l)
{
    Layout out = {.kind = l->kind, .rank = l->rank};
    memcpy(out.log_shape, l->log_shape, sizeof out.log_shape);
    return out;
}

const Layout *
layout_squash(Session *s, const Layout *l, int dim)
{
    Layout out = empty_like(l);
    out.log_shape[dim] = 0;
    return map_coords(s, l, &out, cut, (int[]){layout_shift(l, dim), l->log_shape[dim]});
}

const Layout *
layout_repeat(Session *s, const Layout *l, int dim, int lg)
{
    Layout out = empty_like(l);
    out.log_shape[dim] = (uint8_t)lg;
    int at = layout_shift(&out, dim), next = 0;
    uint32_t low = ((uint32_t)1 << at) - 1;
    for (int d = LD_COUNT - 1; d >= 0; d--) {
        for (int i = 0; i < l->nbasis[d]; i++) {
            uint32_t v = l->basis[d][i];
            bool copy = !v && next < lg && (d == LD_LANE || d == LD_WARP);
            fill_basis(&out, (LayoutDim)d,
                       copy ? (uint32_t)1 << (at + next++)
                            : (v & low) | (v & ~low) << lg);
        }
    }
    while (next < lg)
        fill_basis(&out, LD_REG, (uint32_t)1 << (at + next++));
    return layout_intern(s, &out);
}

const Layout *
layout_slice(Session *s, const Layout *l, int dim)
{
    if (l->rank < 2)
        return NULL;
    Layout out = empty_like(l);
    out.rank--;
    for (int i = dim; i < MAX_RANK; i++)
        out.log_shape[i] = i < out.rank ? l->log_shape[i + 1] : 0;
    return map_coords(s, l, &out, cut, (int[]){layout_shift(l, dim), l->log_shape[dim]});
}

/* arg: rank, then per result dimension: shift in the operand, bits, shift in the result.
 */
static uint32_t
permute(uint32_t v, const int *arg)
{
    uint32_t r = 0;
    for (int i = 0; i < arg[0]; i++) {
        const int *a = arg + 1 + 3 * i;
        r |= (v >> a[0] & (((uint32_t)1 << a[1]) - 1)) << a[2];
    }
    return r;
}

const Layout *
layout_trans(Session *s, const Layout *l, const int64_t *perm)
{
    int arg[1 + 3 * MAX_RANK] = {l->rank};
    Layout out = empty_like(l);
    for (int i = 0; i < l->rank; i++)
        out.log_shape[i] = l->log_shape[perm[i]];
    for (int i = 0; i < l->rank; i++) {
        arg[1 + 3 * i] = layout_shift(l, (int)perm[i]);
        arg[2 + 3 * i] = out.log_shape[i];
        arg[3 + 3 * i] = layout_shift(&out, i);
    }
    return map_coords(s, l, &out, permute, arg);
}

const Layout *
layout_reshape(Session *s, const Layout *l, int rank, const int64_t *shape)
{
    Layout out;
    fill_shape(&out, l->kind, rank, shape);
    return map_coords(s, l, &out, same, NULL);
}

static uint32_t
shift_up(uint32_t v, const int *arg)
{
    return v << arg[0];
}

const Layout *
layout_join(Session *s, const Layout *l)
{
    if (l->rank >= MAX_RANK)
        return NULL;
    Layout out = empty_like(l);
    out.log_shape[out.rank++] = 1;
    fill_basis(&out, LD_REG, 1); /* the pair first: it stays in neighbouring registers */
    return map_coords(s, l, &out, shift_up, (int[]){1});
}

const Layout *
layout_split(Session *s, const Layout *l)
{
    int reg[LAYOUT_MAX_BITS];
    if (l->rank < 2 || l->log_shape[l->rank - 1] != 1 ||
        layout_run(l, l->rank - 1, reg) < 2)
        return NULL;
    return layout_slice(s, l, l->rank - 1);
}

/* ------------------------------------------------------------------ queries */

bool
layout_fits(const Layout *l, const Type *t)
{
    if (l->rank != t->rank || (l->kind == LK_SHARED) != (t->kind == TY_MEM))
        return false;
    for (int i = 0; i < l->rank; i++)
        if ((int64_t)1 << l->log_shape[i] != t->shape[i])
            return false;
    return true;
}

int
layout_regs(const Layout *l)
{
    return 1 << l->nbasis[LD_REG];
}

int
layout_warps(const Layout *l)
{
    return 1 << l->nbasis[LD_WARP];
}

int
layout_shift(const Layout *l, int dim)
{
    int at = 0;
    for (int i = l->rank - 1; i > dim; i--)
        at += l->log_shape[i];
    return at;
}

uint32_t
layout_at(const Layout *l, LayoutDim d, uint32_t index)
{
    uint32_t v = 0;
    for (int i = 0; i < l->nbasis[d]; i++)
        if (index >> i & 1)
            v ^= l->basis[d][i];
    return v;
}

uint32_t
layout_coord(const Layout *l, uint32_t reg, uint32_t lane, uint32_t warp, uint32_t block)
{
    return layout_at(l, LD_REG, reg) ^ layout_at(l, LD_LANE, lane) ^
           layout_at(l, LD_WARP, warp) ^ layout_at(l, LD_BLOCK, block);
}

int64_t
layout_part(const Layout *l, uint32_t coord, int dim)
{
    return coord >> layout_shift(l, dim) & (((uint32_t)1 << l->log_shape[dim]) - 1);
}

F2
layout_matrix(const Layout *l)
{
    F2 m = {.nout = coord_bits(l)};
    for (int d = 0; d < LD_COUNT; d++)
        for (int i = 0; i < l->nbasis[d]; i++)
            m.col[m.nin++] = l->basis[d][i];
    return m;
}

void
layout_replication(const Layout *l, uint32_t copies[LD_COUNT])
{
    F2 m = layout_matrix(l);
    uint64_t free_bits = f2_free(&m);
    for (int d = 0; d < LD_COUNT; d++) {
        copies[d] = (uint32_t)(free_bits & (((uint64_t)1 << l->nbasis[d]) - 1));
        free_bits >>= l->nbasis[d];
    }
}

bool
layout_is_replicated(const Layout *l)
{
    F2 m = layout_matrix(l);
    return f2_free(&m) != 0;
}

/* Is a bit of coordinate `want` in any basis but register `reg`? */
static bool
shared_bit(const Layout *l, uint32_t want, int reg)
{
    for (int d = 0; d < LD_COUNT; d++)
        for (int i = 0; i < l->nbasis[d]; i++)
            if ((d != LD_REG || i != reg) && (l->basis[d][i] & want))
                return true;
    return false;
}

int
layout_run(const Layout *l, int dim, int reg_bit[LAYOUT_MAX_BITS])
{
    int k = 0;
    for (; k < l->log_shape[dim]; k++) {
        uint32_t want = (uint32_t)1 << (layout_shift(l, dim) + k);
        int reg = 0;
        while (reg < l->nbasis[LD_REG] && l->basis[LD_REG][reg] != want)
            reg++;
        if (reg == l->nbasis[LD_REG] || shared_bit(l, want, reg))
            break;
        if (reg_bit)
            reg_bit[k] = reg;
    }
    return 1 << k;
}

/* ------------------------------------------------------------------ conversions */

/* The place in src for one basis of dst: own registers first, then the own lane or warp
   with a change of register, then the warp, then anywhere. `at[d]`: first bit of d in m.
 */
static uint64_t
source_of(const F2 *m, const int at[LD_COUNT + 1], const Layout *src, LayoutDim d, int i,
          uint32_t v)
{
    bool own = i < src->nbasis[d];
    uint64_t self = own ? (uint64_t)1 << (at[d] + i) : 0;
    if (own && src->basis[d][i] == v)
        return self;
    for (int reach = LD_REG; reach < LD_COUNT; reach++) {
        F2 part = *m, x;
        part.nin = at[reach + 1];
        F2 want = {.nin = 1, .nout = m->nout, .col = {v}};
        if (reach == LD_REG && own && d != LD_REG) {
            F2 rest = want;
            rest.col[0] ^= src->basis[d][i];
            if (f2_solve(&part, &rest, &x))
                return x.col[0] | self;
        }
        if (f2_solve(&part, &want, &x))
            return x.col[0];
    }
    return 0;
}

static ConvertKind
conversion_kind(const Layout *src, const Layout *dst, const F2 *from,
                const int at[LD_COUNT + 1])
{
    uint64_t regs = ((uint64_t)1 << at[LD_LANE]) - 1;
    uint64_t warp = ((uint64_t)1 << at[LD_WARP]) - 1;
    ConvertKind kind = src->nbasis[LD_REG] == dst->nbasis[LD_REG] ? CONV_NONE : CONV_REG;
    int bit = 0;
    for (int d = 0; d < LD_COUNT; d++) {
        for (int i = 0; i < dst->nbasis[d]; i++, bit++) {
            uint64_t x = from->col[bit];
            uint64_t self = i < src->nbasis[d] ? (uint64_t)1 << (at[d] + i) : 0;
            ConvertKind need = CONV_SHARED;
            if (x == self)
                need = CONV_NONE;
            else if (d == LD_REG && !(x & ~regs))
                need = CONV_REG;
            else if (d == LD_REG || d == LD_LANE ? !(x & ~warp) : (x & ~regs) == self)
                need = CONV_LANE;
            if (need > kind)
                kind = need;
        }
    }
    return kind;
}

Conversion
layout_conversion(const Layout *src, const Layout *dst)
{
    F2 m = layout_matrix(src);
    int at[LD_COUNT + 1] = {0};
    for (int d = 0; d < LD_COUNT; d++)
        at[d + 1] = at[d] + src->nbasis[d];
    Conversion c = {.from = {.nout = m.nin}};
    for (int d = 0; d < LD_COUNT; d++)
        for (int i = 0; i < dst->nbasis[d]; i++)
            c.from.col[c.from.nin++] =
                source_of(&m, at, src, (LayoutDim)d, i, dst->basis[d][i]);
    c.kind = conversion_kind(src, dst, &c.from, at);
    return c;
}

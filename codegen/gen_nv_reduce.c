/* Reductions, in the order of their price: first among a thread's registers, then across
   lanes by shuffles, then across warps through shared memory.

   The layout says which bits of the thread's number select elements along the axis. Bits
   that select copies are skipped, so no element counts twice. 16-bit numbers that the
   hardware combines in pairs are kept in pairs: two elements of one row while a thread
   reduces its registers, the results of two rows across lanes. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/analysis/reduction.h"
#include "ir/base/util.h"
#include "ir/layout_make.h"
#include "ir/plan/scratch.h"

#include <string.h>

enum { MAX_IN = 8 };

typedef struct Reduction {
    Gen *g;
    const Op *op;
    const Layout *l; /* of the operands */
    int axis, n;
    Layout rest;               /* l without the axis */
    uint32_t copies[LD_COUNT]; /* bits of l that lead to copies */
    uint32_t flips;            /* bits of the warp's number along the axis */
    int lg_parts;              /* how many of them */
    LLVMValueRef *acc[MAX_IN]; /* one per register of `rest` */
    int count;
} Reduction;

/* acc[.][i] = combine(acc[.][i], other[.]) */
static bool
combine(Reduction *r, int i, LLVMValueRef *other)
{
    LLVMValueRef args[2 * MAX_IN], out[MAX_IN];
    for (int k = 0; k < r->n; k++) {
        args[k] = r->acc[k][i];
        args[r->n + k] = other[k];
    }
    if (!nv_inline(r->g, r->op->regions[0], args, out))
        return false;
    for (int k = 0; k < r->n; k++)
        r->acc[k][i] = out[k];
    return true;
}

static uint32_t
without_axis(const Layout *l, uint32_t coord, int axis)
{
    uint32_t along = (uint32_t)layout_part(l, coord, axis) << layout_shift(l, axis);
    return coord & ~along;
}

/* Combines the elements of the thread's registers reg[0 .. n - 1] as a balanced tree:
   chains are short, and rounding errors grow only with its depth. */
static bool
fold(Reduction *r, const int *reg, int n, LLVMValueRef *out)
{
    LLVMValueRef args[2 * MAX_IN];
    if (n == 1) {
        for (int k = 0; k < r->n; k++)
            out[k] = nv_regs(r->g, op_operand(r->op, k))->v[reg[0]];
        return true;
    }
    return fold(r, reg, n / 2, args) && fold(r, reg + n / 2, n - n / 2, args + r->n) &&
           nv_inline(r->g, r->op->regions[0], args, out);
}

/* Combines two pairs, x and y, to a pair; false: no instruction does. */
static bool
combine_pair(Reduction *r, LLVMValueRef *x, LLVMValueRef *y, LLVMValueRef *out)
{
    Regs a = {2, x}, b = {2, y}, *const in[2] = {&a, &b};
    const Op *op = reduction_operation(r->op);
    return op && nv_half_pair(r->g, op, in, 0, out);
}

/* fold() on pairs of neighbouring registers: out[0] and out[1] are the results of the
   first and of the second ones. False: registers are not neighbours, or no instruction
   combines pairs. */
static bool
fold_pairs(Reduction *r, const int *reg, int n, LLVMValueRef *out)
{
    LLVMValueRef a[2], b[2];
    const LLVMValueRef *v = nv_regs(r->g, op_operand(r->op, 0))->v;
    if (n == 2) {
        out[0] = v[reg[0]];
        out[1] = v[reg[0] + 1];
        return reg[1] == reg[0] + 1 && reg[0] % 2 == 0;
    }
    int half = n / 4 * 2;
    return n % 2 == 0 && fold_pairs(r, reg, half, a) &&
           fold_pairs(r, reg + half, n - half, b) && combine_pair(r, a, b, out);
}

static bool
fold_all(Reduction *r, const int *reg, int n, LLVMValueRef *out)
{
    LLVMValueRef pair[2];
    if (n < 4 || !fold_pairs(r, reg, n, pair))
        return fold(r, reg, n, out);
    return nv_inline(r->g, r->op->regions[0], pair, out);
}

/* The image of register q in the layout without the axis. */
static uint32_t
rest_of(const Reduction *r, int q)
{
    uint32_t c = layout_at(r->l, LD_REG, (uint32_t)q), rest = 0;
    for (int d = 0, o = 0; r->rest.rank && d < r->l->rank; d++)
        if (d != r->axis)
            rest |= (uint32_t)layout_part(r->l, c, d) << layout_shift(&r->rest, o++);
    return rest;
}

/* Reduces the registers that differ only along the axis to one register of r->rest. */
static bool
reduce_registers(Reduction *r)
{
    int regs = layout_regs(r->l);
    int *same = arena_array(&r->g->s->tmp, int, regs);
    for (int i = 0; i < r->count; i++) {
        LLVMValueRef out[MAX_IN];
        uint32_t at = r->rest.rank ? layout_at(&r->rest, LD_REG, (uint32_t)i) : 0;
        int n = 0;
        for (int q = 0; q < regs; q++)
            if (!((uint32_t)q & r->copies[LD_REG]) && rest_of(r, q) == at)
                same[n++] = q;
        if (!n)
            return gen_unsupported(r->g, r->op, "between threads") != NULL;
        if (!fold_all(r, same, n, out))
            return false;
        for (int k = 0; k < r->n; k++)
            r->acc[k][i] = out[k];
    }
    return true;
}

static bool
on_axis(const Reduction *r, uint32_t basis)
{
    return basis && without_axis(r->l, basis, r->axis) != basis;
}

/* The instruction (redux) that reduces 32-bit integers over a warp; false: there is
   none. */
static bool
whole_warp(const Reduction *r, PtxId *id)
{
    enum { LANE_BITS = 5 };
    const Op *op = reduction_operation(r->op);
    if (!op || r->g->info.sm < 80)
        return false;
    const Type *t = op->results[0].type;
    if (!type_is_int(t) || type_bits(t) != 32)
        return false;
    for (int j = 0; j < LANE_BITS; j++)
        if (j >= r->l->nbasis[LD_LANE] || !on_axis(r, r->l->basis[LD_LANE][j]) ||
            without_axis(r->l, r->l->basis[LD_LANE][j], r->axis) ||
            (r->copies[LD_LANE] >> j & 1))
            return false;
    switch ((int)op->kind) {
    case OP_ADD: *id = PTX_REDUX_ADD; return true;
    case OP_MINS: *id = PTX_REDUX_MINS; return true;
    case OP_MAXS: *id = PTX_REDUX_MAXS; return true;
    case OP_MINU: *id = PTX_REDUX_MINU; return true;
    case OP_MAXU: *id = PTX_REDUX_MAXU; return true;
    case OP_AND: *id = PTX_REDUX_AND; return true;
    case OP_OR: *id = PTX_REDUX_OR; return true;
    case OP_XOR: *id = PTX_REDUX_XOR; return true;
    default: return false;
    }
}

/* Combines results i and i + 1, as one word, with those of lane `lane ^ lanes`. */
static bool
combine_lanes_pair(Reduction *r, int i, int lanes)
{
    Gen *g = r->g;
    const Op *op = reduction_operation(r->op);
    LLVMValueRef *x = &r->acc[0][i], other[2], out[2];
    if (i + 1 >= r->count || !op || type_bits(op->results[0].type) != 16)
        return false;
    LLVMTypeRef pair = LLVMVectorType(LLVMTypeOf(x[0]), 2);
    LLVMValueRef v = LLVMGetPoison(pair);
    for (int j = 0; j < 2; j++)
        v = LLVMBuildInsertElement(g->b, v, x[j], ll_int(g->i32, j), "");
    v = nv_shuffle_xor(g, LLVMBuildBitCast(g->b, v, g->i32, ""), lanes);
    v = LLVMBuildBitCast(g->b, v, pair, "");
    for (int j = 0; j < 2; j++)
        other[j] = LLVMBuildExtractElement(g->b, v, ll_int(g->i32, j), "");
    if (!combine_pair(r, x, other, out))
        return false;
    x[0] = out[0];
    x[1] = out[1];
    return true;
}

/* The register bit of r->rest whose halves two lanes may share out between them, or -1:
   that of the highest coordinate, so that neighbours stay in one thread. Only where
   results go through memory, when it is all the same which thread has them. */
static int
shared_out(const Reduction *r)
{
    int at = -1;
    if (!r->lg_parts || type_bits(type_elem(r->op->results[0].type)) < 32)
        return -1;
    for (int i = 0; i < r->rest.nbasis[LD_REG]; i++)
        if (at < 0 || r->rest.basis[LD_REG][i] > r->rest.basis[LD_REG][at])
            at = i;
    return at;
}

/* Combines across lane bit j such that each of two lanes gets half of the results, those
   with register bit `at` as its lane bit: half the shuffles of giving all to both. */
static bool
combine_halves(Reduction *r, int j, int at)
{
    Gen *g = r->g;
    Layout *l = &r->rest;
    LLVMValueRef bit = LLVMBuildAnd(g->b, nv_of(g)->lane, ll_int(g->i32, 1 << j), "");
    bit = LLVMBuildICmp(g->b, LLVMIntNE, bit, ll_int(g->i32, 0), "");
    int low = (1 << at) - 1;
    for (int i = 0; i < r->count / 2; i++) {
        int lo = (i & low) | (i & ~low) << 1, hi = lo | 1 << at;
        LLVMValueRef other[MAX_IN];
        for (int k = 0; k < r->n; k++) {
            LLVMValueRef *v = r->acc[k], x = v[lo], y = v[hi];
            other[k] = LLVMBuildSelect(g->b, bit, x, y, "");
            other[k] = nv_shuffle_xor(g, other[k], 1 << j);
            v[i] = LLVMBuildSelect(g->b, bit, y, x, ""); /* i <= lo: nothing is lost */
        }
        if (!combine(r, i, other))
            return false;
    }
    r->count /= 2;
    l->basis[LD_LANE][j] = l->basis[LD_REG][at];
    l->nbasis[LD_REG]--;
    for (int i = at; i < l->nbasis[LD_REG]; i++)
        l->basis[LD_REG][i] = l->basis[LD_REG][i + 1];
    return true;
}

static bool
reduce_lanes(Reduction *r)
{
    PtxId id;
    if (whole_warp(r, &id)) {
        for (int i = 0; i < r->count; i++) {
            LLVMValueRef args[2] = {r->acc[0][i], ll_int(r->g->i32, -1)};
            r->acc[0][i] = ptx_call(r->g, id, args, 2);
        }
        return true;
    }
    for (int j = 0; j < r->l->nbasis[LD_LANE]; j++) {
        if (!on_axis(r, r->l->basis[LD_LANE][j]) || (r->copies[LD_LANE] >> j & 1))
            continue;
        int at = shared_out(r);
        if (at >= 0) {
            if (!combine_halves(r, j, at))
                return false;
            continue;
        }
        for (int i = 0; i < r->count; i++) {
            LLVMValueRef other[MAX_IN];
            if (combine_lanes_pair(r, i, 1 << j)) {
                i++;
                continue;
            }
            for (int k = 0; k < r->n; k++)
                other[k] = nv_shuffle_xor(r->g, r->acc[k][i], 1 << j);
            if (!combine(r, i, other))
                return false;
        }
    }
    return true;
}

/* ---- across warps */

/* Layout l with a new dimension of 1 << lg_parts, the partial results of warps: the major
   one, whose coordinates are the highest, or the minor one. */
static Layout
with_parts(const Layout *l, int lg_parts, bool major)
{
    Layout out = *l;
    out.rank++;
    for (int d = 0; major && d < l->rank; d++)
        out.log_shape[d + 1] = l->log_shape[d];
    out.log_shape[major ? 0 : l->rank] = (uint8_t)lg_parts;
    for (int d = 0; !major && d < LD_COUNT; d++)
        for (int i = 0; i < l->nbasis[d]; i++)
            out.basis[d][i] = l->basis[d][i] << lg_parts;
    return out;
}

/* The lowest bit of the parts in a coordinate of such a layout. */
static int
parts_bit(const Layout *l, bool major)
{
    return major ? layout_shift(l, 0) : 0;
}

/* The layout in which warps write: each writes the part that has its number along the
   axis. */
static Layout
parts_written(const Reduction *r, bool major)
{
    Layout out = with_parts(&r->rest, r->lg_parts, major);
    for (int j = 0, n = parts_bit(&out, major); j < r->l->nbasis[LD_WARP]; j++)
        if (r->flips >> j & 1)
            out.basis[LD_WARP][j] = 1u << n++;
    return out;
}

/* The layout in which threads read: a thread has all parts of each of its results. */
static Layout
parts_read(const Reduction *r, const Layout *to, bool major)
{
    Layout all = with_parts(to, r->lg_parts, major), out = all;
    out.nbasis[LD_REG] = 0;
    for (int i = 0; i < r->lg_parts; i++)
        fill_basis(&out, LD_REG, 1u << (parts_bit(&out, major) + i));
    for (int i = 0; i < all.nbasis[LD_REG]; i++)
        fill_basis(&out, LD_REG, all.basis[LD_REG][i]);
    return out;
}

/* Combines the parts of the results that threads have in layout `to`, in each thread in
   the order of warps, so that all get the same bits: acc[.][i] of result i. */
static bool
combine_parts(Reduction *r, LLVMValueRef base, const Layout *to, bool major)
{
    Gen *g = r->g;
    Layout from = parts_read(r, to, major);
    Regs part[MAX_IN];
    for (int k = 0; k < r->n; k++) {
        part[k].n = layout_regs(&from);
        part[k].v = arena_array(&g->s->tmp, LLVMValueRef, part[k].n);
        nv_tile_read(g, nv_scratch_part(g, base, reduce_part_offset(r->op, k)), &from,
                     r->op->results[k].type, &part[k]);
        r->acc[k] = arena_array(&g->s->tmp, LLVMValueRef, part[k].n);
    }
    for (int i = 0; i < layout_regs(to); i++) {
        for (int w = 0; w < 1 << r->lg_parts; w++) {
            LLVMValueRef x[MAX_IN];
            for (int k = 0; k < r->n; k++)
                x[k] = part[k].v[i << r->lg_parts | w];
            if (!w)
                for (int k = 0; k < r->n; k++)
                    r->acc[k][i] = x[k];
            else if (!combine(r, i, x))
                return false;
        }
    }
    return true;
}

/* to: the layout of the results, which may be another one than r->rest. */
static bool
reduce_warps(Reduction *r, const Layout *to, Regs **result)
{
    Gen *g = r->g;
    bool two = reduce_in_two(r->op);
    const Layout *own = two ? reduce_first_layout(r->op) : to;
    Layout written = parts_written(r, two);
    LLVMValueRef base = nv_scratch(g, r->op);
    if (!base)
        return false;
    for (int k = 0; k < r->n; k++) {
        Regs in = {r->count, r->acc[k]};
        nv_tile_write(g, nv_scratch_part(g, base, reduce_part_offset(r->op, k)), &written,
                      r->op->results[k].type, &in);
    }
    nv_barrier(g);
    if (!combine_parts(r, base, own, two))
        return false;
    for (int k = 0; k < r->n && two; k++) {
        Regs in = {layout_regs(own), r->acc[k]};
        nv_tile_write(g, nv_scratch_part(g, base, reduce_result_offset(r->op, k)), own,
                      r->op->results[k].type, &in);
    }
    if (two)
        nv_barrier(g);
    for (int k = 0; k < r->n; k++) {
        if (two)
            nv_tile_read(g, nv_scratch_part(g, base, reduce_result_offset(r->op, k)), to,
                         r->op->results[k].type, result[k]);
        else
            memcpy(result[k]->v, r->acc[k], (size_t)result[k]->n * sizeof *r->acc[k]);
    }
    return true;
}

/* ---- the operation */

/* The layout of one element that all threads have. */
static Layout
scalar_layout(const Layout *l)
{
    Layout out = {.kind = LK_DISTRIBUTED};
    out.nbasis[LD_LANE] = l->nbasis[LD_LANE];
    out.nbasis[LD_WARP] = l->nbasis[LD_WARP];
    return out;
}

/* Does each bit of the thread's number move an element either along the axis or across
   it? With a bit that does both, a thread has no partner that differs in one bit. */
static bool
is_straight(const Reduction *r)
{
    for (int d = LD_LANE; d <= LD_WARP; d++) {
        for (int i = 0; i < r->l->nbasis[d]; i++) {
            uint32_t v = r->l->basis[d][i], rest = without_axis(r->l, v, r->axis);
            if (rest && rest != v)
                return false;
        }
    }
    return true;
}

static bool
give_results(Reduction *r, const Layout *to, Regs **out)
{
    for (int i = 0; i < out[0]->n; i++) {
        int at = to ? nv_reg_at(&r->rest, layout_at(to, LD_REG, (uint32_t)i)) : 0;
        for (int k = 0; k < r->n; k++)
            out[k]->v[i] = r->acc[k][at];
    }
    return true;
}

bool
nv_reduce(Gen *g, const Op *op)
{
    Reduction r = {.g = g,
                   .op = op,
                   .n = op->noperand,
                   .l = op_operand(op, 0)->type->layout,
                   .axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0)};
    Regs *out[MAX_IN];
    if (r.n > MAX_IN || !r.l)
        return gen_unsupported(g, op, "of so many tiles") != NULL;
    if (!is_straight(&r))
        return gen_unsupported(g, op, "of a tile in this layout") != NULL;
    const Layout *to = op->results[0].type->layout;
    r.rest = r.l->rank > 1 ? *layout_slice(g->s, r.l, r.axis) : scalar_layout(r.l);
    r.count = layout_regs(&r.rest);
    r.flips = reduce_warp_bits(op);
    r.lg_parts = __builtin_popcount(r.flips);
    layout_replication(r.l, r.copies);
    for (int k = 0; k < r.n; k++) {
        out[k] = nv_define(g, &op->results[k], nv_count(op->results[k].type));
        r.acc[k] = arena_array(&g->s->tmp, LLVMValueRef, r.count);
        if (!out[k] || !nv_regs(g, op_operand(op, k)))
            return false;
    }
    if (!reduce_registers(&r) || (!reduce_is_own(op) && !reduce_lanes(&r)))
        return false;
    if (!scratch_bytes(op, &g->info))
        return give_results(&r, to, out);
    Layout one = scalar_layout(r.l);
    return reduce_warps(&r, to ? to : &one, out);
}

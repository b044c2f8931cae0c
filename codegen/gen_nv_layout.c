/* From layouts to code: the coordinates of a thread's registers, which thread acts for an
   element that several hold, and operations that only move elements among registers.

   A coordinate is one value per thread (from the bits of the thread's number, computed
   once in the entry block) plus a constant per register, so that addresses built from
   it become a base and immediate offsets. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"
#include "ir/plan/scratch.h"

/* Per layout: the thread's part of each coordinate and the bits that it may set. */
typedef struct Lead {
    LLVMValueRef v[MAX_RANK];
    uint32_t bits[MAX_RANK];
} Lead;

/* (tid & mask) moved left by `up` (right when negative). */
static LLVMValueRef
thread_bits(Gen *g, uint32_t mask, int up)
{
    LLVMValueRef v = nv_of(g)->tid;
    int total = 5 + log2_floor((uint64_t)nv_warps(g));
    if (up < 0) {
        v = LLVMBuildLShr(g->b, v, ll_int(g->i32, -up), "");
        mask >>= -up;
        total += up;
    }
    if (mask != (uint32_t)(((uint64_t)1 << total) - 1))
        v = LLVMBuildAnd(g->b, v, ll_int(g->i32, mask), "");
    return up > 0 ? LLVMBuildShl(g->b, v, ll_int(g->i32, up), "") : v;
}

static LLVMValueRef
combine(Gen *g, LLVMValueRef a, uint32_t a_bits, LLVMValueRef b, uint32_t b_bits)
{
    if (!a)
        return b;
    if (a_bits & b_bits)
        return LLVMBuildXor(g->b, a, b, "");
    LLVMValueRef v = LLVMBuildOr(g->b, a, b, "");
    if (LLVMIsAInstruction(v))
        LLVMSetIsDisjoint(v, 1);
    return v;
}

/* A map's matrix has few diagonals: on each, one shift moves all bits of the thread's
   number that are on it. */
LLVMValueRef
nv_linear(Gen *g, const uint32_t *image, int n, uint32_t *bits)
{
    LLVMValueRef v = NULL;
    *bits = 0;
    for (int up = 1 - n; up < 32; up++) {
        uint32_t mask = 0;
        for (int i = 0; i < n; i++)
            if (i + up >= 0 && i + up < 32 && (image[i] >> (i + up) & 1))
                mask |= 1u << i;
        if (!mask)
            continue;
        uint32_t to = up < 0 ? mask >> -up : mask << up;
        v = combine(g, v, *bits, thread_bits(g, mask, up), to);
        *bits |= to;
    }
    return v ? v : ll_int(g->i32, 0);
}

static void
lead_dim(Gen *g, const Layout *l, int dim, Lead *out)
{
    uint32_t image[LAYOUT_MAX_BITS * 2];
    int n = 0;
    for (int d = LD_LANE; d <= LD_WARP; d++)
        for (int i = 0; i < l->nbasis[d]; i++)
            image[n++] = (uint32_t)layout_part(l, l->basis[d][i], dim);
    out->v[dim] = nv_linear(g, image, n, &out->bits[dim]);
}

static const Lead *
lead_of(Gen *g, const Layout *l)
{
    Nv *nv = nv_of(g);
    Lead *lead = map_get(&nv->lead, l);
    if (lead)
        return lead;
    lead = arena_new(&g->s->tmp, Lead);
    LLVMBasicBlockRef back = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderAtEnd(g->b, nv->entry);
    for (int dim = 0; dim < l->rank; dim++)
        lead_dim(g, l, dim, lead);
    LLVMPositionBuilderAtEnd(g->b, back);
    map_set(&nv->lead, l, lead);
    return lead;
}

LLVMValueRef
nv_coord(Gen *g, const Layout *l, uint32_t reg, int dim)
{
    const Lead *lead = lead_of(g, l);
    uint32_t c = (uint32_t)layout_part(l, layout_at(l, LD_REG, reg), dim);
    if (!c)
        return lead->v[dim];
    return combine(g, lead->v[dim], lead->bits[dim], ll_int(g->i32, c), c);
}

LLVMValueRef
nv_owner(Gen *g, const Layout *l)
{
    uint32_t copies[LD_COUNT];
    LLVMValueRef tid = nv_of(g)->tid, zero = ll_int(g->i32, 0);
    if (!l) /* a scalar: every thread has it */
        return LLVMBuildICmp(g->b, LLVMIntEQ, tid, zero, "");
    layout_replication(l, copies);
    uint32_t mask = copies[LD_LANE] | copies[LD_WARP] << l->nbasis[LD_LANE];
    if (!mask)
        return NULL;
    LLVMValueRef v = LLVMBuildAnd(g->b, tid, ll_int(g->i32, mask), "");
    return LLVMBuildICmp(g->b, LLVMIntEQ, v, zero, "");
}

int
nv_reg_at(const Layout *l, uint32_t coord)
{
    F2 m = {.nin = l->nbasis[LD_REG], .nout = LAYOUT_MAX_BITS}, x;
    F2 want = {.nin = 1, .nout = LAYOUT_MAX_BITS, .col = {coord}};
    for (int i = 0; i < m.nin; i++)
        m.col[i] = l->basis[LD_REG][i];
    return f2_solve(&m, &want, &x) ? (int)x.col[0] : -1;
}

bool
nv_arange(Gen *g, const Op *op)
{
    const Value *v = &op->results[0];
    const Layout *l = v->type->layout;
    int64_t start = attr_int(&op->attrs, ATTR_START, 0);
    Regs *r = nv_define(g, v, nv_count(v->type));
    for (int i = 0; r && i < r->n; i++) {
        r->v[i] = nv_coord(g, l, (uint32_t)i, 0);
        if (start)
            r->v[i] = LLVMBuildAdd(g->b, r->v[i], ll_int(g->i32, start), "");
    }
    return r != NULL;
}

/* ------------------------------------------------------------------ shape operations */

/* The layout that the operand must have so that the op is a renaming of registers, and
   for one register's coordinates in the result those in the operand. */
typedef struct Move {
    const Layout *from;
    uint32_t (*coord)(const Op *op, const Layout *from, const Layout *to, uint32_t c);
} Move;

static uint32_t
same_coord(const Op *op, const Layout *from, const Layout *to, uint32_t c)
{
    (void)op, (void)from, (void)to;
    return c;
}

static uint32_t
broadcast_coord(const Op *op, const Layout *from, const Layout *to, uint32_t c)
{
    uint32_t r = 0;
    (void)op;
    for (int i = 0; i < from->rank; i++)
        if (from->log_shape[i])
            r |= (uint32_t)layout_part(to, c, i) << layout_shift(from, i);
    return r;
}

static uint32_t
trans_coord(const Op *op, const Layout *from, const Layout *to, uint32_t c)
{
    const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
    uint32_t r = 0;
    for (int i = 0; i < to->rank; i++)
        r |= (uint32_t)layout_part(to, c, i) << layout_shift(from, (int)perm->v.ints[i]);
    return r;
}

static Move
move_of(Gen *g, const Op *op, const Layout *to)
{
    const Type *t = op_operand(op, 0)->type;
    Move m = {to, same_coord};
    switch ((int)op->kind) {
    case OP_BROADCAST:
        for (int i = 0; i < t->rank; i++)
            if (t->shape[i] == 1 && to->log_shape[i])
                m.from = layout_squash(g->s, m.from, i);
        m.coord = broadcast_coord;
        return m;
    case OP_EXPAND_DIMS:
        m.from = layout_slice(g->s, to, (int)attr_int(&op->attrs, ATTR_AXIS, 0));
        return m;
    case OP_RESHAPE: m.from = layout_reshape(g->s, to, t->rank, t->shape); return m;
    case OP_TRANS: {
        const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
        int64_t back[MAX_RANK];
        for (int i = 0; i < to->rank; i++)
            back[perm->v.ints[i]] = i;
        m.from = layout_trans(g->s, to, back);
        m.coord = trans_coord;
        return m;
    }
    default: m.from = NULL; return m;
    }
}

static bool
needs_exchange(Gen *g, const Op *op)
{
    gen_unsupported(g, op, "between threads");
    return false;
}

static bool
gen_move(Gen *g, const Op *op)
{
    const Value *v = &op->results[0], *x = op_operand(op, 0);
    const Layout *to = v->type->layout;
    Move m = move_of(g, op, to);
    if (m.from != x->type->layout)
        return needs_exchange(g, op);
    Regs *in = nv_regs(g, x), *out = nv_define(g, v, nv_count(v->type));
    for (int i = 0; in && out && i < out->n; i++) {
        uint32_t c = layout_at(to, LD_REG, (uint32_t)i);
        int at = nv_reg_at(m.from, m.coord(op, m.from, to, c));
        if (at < 0 || at >= in->n)
            return needs_exchange(g, op);
        out->v[i] = in->v[at];
    }
    return in && out;
}

/* The pair's bit is a register bit of the joined tile: result registers alternate. */
static bool
gen_join(Gen *g, const Op *op)
{
    const Value *v = &op->results[0], *x = op_operand(op, 0);
    const Layout *to = v->type->layout, *from = layout_split(g->s, to);
    if (!from || x->type->layout != from || op_operand(op, 1)->type->layout != from)
        return needs_exchange(g, op);
    Regs *in[2] = {nv_regs(g, x), nv_regs(g, op_operand(op, 1))};
    Regs *out = nv_define(g, v, nv_count(v->type));
    for (int i = 0; in[0] && in[1] && out && i < out->n; i++) {
        uint32_t c = layout_at(to, LD_REG, (uint32_t)i);
        int at = nv_reg_at(from, c >> 1);
        if (at < 0)
            return needs_exchange(g, op);
        out->v[i] = in[c & 1]->v[at];
    }
    return in[0] && in[1] && out;
}

static bool
gen_split(Gen *g, const Op *op)
{
    const Value *x = op_operand(op, 0);
    const Layout *from = x->type->layout, *to = layout_split(g->s, from);
    Regs *in = nv_regs(g, x);
    for (int k = 0; k < 2; k++) {
        const Value *v = &op->results[k];
        if (!to || v->type->layout != to)
            return needs_exchange(g, op);
        Regs *out = nv_define(g, v, nv_count(v->type));
        for (int i = 0; in && out && i < out->n; i++) {
            uint32_t c = layout_at(to, LD_REG, (uint32_t)i) << 1 | (uint32_t)k;
            int at = nv_reg_at(from, c);
            if (at < 0)
                return needs_exchange(g, op);
            out->v[i] = in->v[at];
        }
        if (!in || !out)
            return false;
    }
    return true;
}

bool
nv_shape_op(Gen *g, const Op *op)
{
    const Value *v = &op->results[0], *x = op_operand(op, 0);
    if (op->kind == OP_JOIN && type_is_tile(x->type))
        return gen_join(g, op);
    if (op->kind == OP_SPLIT && type_is_tile(v->type))
        return gen_split(g, op);
    if (type_is_tile(x->type) && type_is_tile(v->type))
        return gen_move(g, op);
    if (op->kind == OP_SPLAT || (op->kind == OP_RESHAPE && type_is_tile(v->type))) {
        LLVMValueRef scalar = nv_scalar(g, x);
        Regs *out = nv_define(g, v, nv_count(v->type));
        for (int i = 0; scalar && out && i < out->n; i++)
            out->v[i] = scalar;
        return scalar && out;
    }
    if (op->kind == OP_RESHAPE && type_numel(x->type) == 1) {
        Regs *in = nv_regs(g, x), *out = nv_define(g, v, 1);
        if (in && out)
            out->v[0] = in->v[0];
        return in && out;
    }
    return needs_exchange(g, op);
}

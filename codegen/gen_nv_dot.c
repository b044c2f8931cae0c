/* Dots of tiles.

   `dot` has both operands in registers and is straight code. `local_dot` has them in
   shared memory and is a loop over k: each turn reads the fragments of a few k and
   multiplies, so that neither registers nor code grow with k.

       for k = 0, K, 4
           a = rows of my elements, k .. k + 3
           b = columns of my elements
           my elements += a * b

   Threads that multiply by themselves have several turns one behind another, all of them
   as a rule: the assembler puts a turn's reads between the dots of the one before, which
   it does not do across the end of a loop, and few warps hide what a read takes.

   A thread whose elements do not all fit into registers goes over them in parts, each
   with a loop of its own: what waits outside of a loop is spilled once, not in every
   turn. */
#include "codegen/gen_nv_dot.h"

#include "ir/base/util.h"
#include "ir/plan/scratch.h"

/* Words of 32 bits for the accumulators of one loop and for what one turn reads; dots in
   the loops' code altogether, and of so many turns one behind another; the most k of a
   turn. */
enum {
    SUM_WORDS = 128,
    TURN_WORDS = 64,
    MOST_CODE = 4096,
    MOST_STRAIGHT = 2048,
    MOST_DEPTH = 16
};

uint32_t
nv_operand_at(const Multiply *p, int op, uint32_t c)
{
    const Layout *acc = p->l[2], *l = p->l[op];
    int drop = op == 0 ? l->rank - 1 : l->rank - 2;
    uint32_t r = 0;
    for (int d = 0; d < l->rank; d++)
        if (d != drop)
            r |= (uint32_t)layout_part(acc, c, d) << layout_shift(l, d);
    return r;
}

static bool
multiply(Multiply *p)
{
    bool ok = p->m ? nv_multiply_mma(p) : nv_multiply_fma(p);
    return ok || gen_unsupported(p->g, p->op, "on these layouts") != NULL;
}

/* Accumulators as threads add them, from and to the type of the result. */
static Regs
widen_sums(Multiply *p, const Regs *in)
{
    Gen *g = p->g;
    ScalarKind acc = type_elem(p->op->results[0].type)->scalar;
    ScalarKind wide = p->m ? acc : nv_fma_wide(acc);
    Regs out = {in->n, arena_array(&g->s->tmp, LLVMValueRef, in->n)};
    for (int i = 0; i < in->n; i++)
        out.v[i] = acc == wide ? in->v[i] : gen_fcast(g, acc, wide, false, in->v[i]);
    return out;
}

static void
narrow_sums(Multiply *p, Regs *out)
{
    Gen *g = p->g;
    ScalarKind acc = type_elem(p->op->results[0].type)->scalar;
    ScalarKind wide = p->m ? acc : nv_fma_wide(acc);
    for (int i = 0; i < out->n; i++)
        out->v[i] =
            acc == wide ? p->r[2].v[i] : gen_fcast(g, wide, acc, false, p->r[2].v[i]);
}

static bool
open_dot(Gen *g, const Op *op, Multiply *p, Regs **out)
{
    const Value *v = &op->results[0];
    *p = (Multiply){.g = g, .op = op};
    *out = nv_define(g, v, nv_count(v->type));
    Regs *in = nv_regs(g, op_operand(op, 2));
    p->l[2] = v->type->layout;
    for (int i = 0; i < 2; i++)
        p->elem[i] = type_elem(op_operand(op, i)->type);
    if (!in || !*out)
        return false;
    nv_find_mma(p);
    p->r[2] = widen_sums(p, in);
    return true;
}

bool
nv_dot(Gen *g, const Op *op)
{
    Multiply p;
    Regs *out;
    if (!open_dot(g, op, &p, &out))
        return false;
    for (int i = 0; i < 2; i++) {
        const Value *v = op_operand(op, i);
        if (!nv_regs(g, v))
            return false;
        p.l[i] = v->type->layout;
        p.r[i] = *nv_regs(g, v);
    }
    if (!multiply(&p))
        return false;
    narrow_sums(&p, out);
    return true;
}

/* ---- operands in shared memory */

typedef struct Side {
    SharedMap map; /* registers of one turn's fragments -> bytes */
    LLVMValueRef base;
    uint32_t image[LAYOUT_MAX_BITS]; /* of the bits of k beyond a turn, in bytes */
    uint32_t only, part; /* as the accumulators': of the operand's registers */
} Side;

typedef struct Loop {
    Multiply p;
    Side side[2];
    int depth;      /* k of a turn */
    int span;       /* of the turns that stand one behind another */
    int inner;      /* of the whole dot */
    uint32_t parts; /* register bits of the accumulators that number the parts */
} Loop;

/* The dimension of operand `op` that is summed over. */
static int
inner_dim(const Loop *lp, int op)
{
    return lp->p.l[2]->rank - (op == 0 ? 1 : 2);
}

/* Registers of the accumulators' block that operand `op` sees as different. */
static int
count_seen(const Loop *lp, int op, uint32_t parts)
{
    const Layout *acc = lp->p.l[2];
    int drop = inner_dim(lp, op), n = 1;
    uint32_t mine = ((1u << acc->log_shape[drop]) - 1) << layout_shift(acc, drop);
    for (int i = 0; i < acc->nbasis[LD_REG]; i++)
        if (!(parts >> i & 1) && (acc->basis[LD_REG][i] & ~mine))
            n *= 2;
    return n;
}

static int
sum_words(const Loop *lp)
{
    return (int)max_i64(type_bits(lp->p.op->results[0].type), 32) / 32;
}

/* Which register bits number the parts: the highest of those that more elements of one
   side are read for, until what is left fits. */
static void
choose_parts(Loop *lp)
{
    const Layout *acc = lp->p.l[2];
    int n = layout_regs(acc) * sum_words(lp);
    lp->parts = 0;
    while (n > SUM_WORDS) {
        int longer = count_seen(lp, 0, lp->parts) >= count_seen(lp, 1, lp->parts) ? 0 : 1;
        int drop = inner_dim(lp, longer), best = -1, any = -1;
        uint32_t mine = ((1u << acc->log_shape[drop]) - 1) << layout_shift(acc, drop);
        for (int i = lp->p.m ? 2 : 0; i < acc->nbasis[LD_REG]; i++) {
            if (lp->parts >> i & 1)
                continue;
            any = i;
            if (!(acc->basis[LD_REG][i] & mine)) /* of the other side, or of the matrix */
                best = i;
        }
        if (any < 0)
            return;
        lp->parts |= 1u << (best < 0 ? any : best);
        n /= 2;
    }
}

static int
choose_depth(const Loop *lp)
{
    const Multiply *p = &lp->p;
    int sums = layout_regs(p->l[2]), parts = 0;
    for (uint32_t x = lp->parts; x; x &= x - 1)
        parts++;
    if (p->m) { /* two steps hide what one waits for, where they are short */
        int blocks = sums / 4 * nv_mma_terms(p);
        return (int)min_i64((blocks >> parts) <= 16 ? 2 * p->m->k : p->m->k, lp->inner);
    }
    int words = 0;
    for (int i = 0; i < 2; i++)
        words +=
            count_seen(lp, i, lp->parts) * (int)max_i64(type_bits(p->elem[i]), 32) / 32;
    int depth = MOST_DEPTH;
    while (depth > 1 && (words * depth > TURN_WORDS || sums * depth > MOST_CODE))
        depth /= 2;
    return (int)min_i64(depth, lp->inner);
}

static int
choose_span(const Loop *lp)
{
    int span = lp->depth, sums = layout_regs(lp->p.l[2]);
    while (!lp->p.m && span < lp->inner && 2 * span * sums <= MOST_STRAIGHT)
        span *= 2;
    return span;
}

/* Where operand i's fragments of one turn lie in its buffer. */
static bool
open_side(Loop *lp, int i)
{
    Multiply *p = &lp->p;
    Gen *g = p->g;
    Side *side = &lp->side[i];
    const Type *mem = op_operand(p->op, i)->type;
    const Layout *l =
        layout_dot_operand(g->s, p->l[2], lp->depth, i, p->m ? nv_mma_kwidth(p) : 0);
    F2 tile = layout_matrix(l), place = layout_matrix(mem->layout), inverse;
    int dim = inner_dim(lp, i), bytes = shared_elem_bytes(mem);
    side->base = nv_scalar(g, op_operand(p->op, i));
    if (!side->base || !f2_invert(&place, &inverse))
        return false;
    for (int c = 0; c < tile.nin; c++) { /* coordinates of the whole buffer */
        uint64_t at = 0;
        for (int d = 0; d < l->rank; d++)
            at |= (uint64_t)layout_part(l, (uint32_t)tile.col[c], d)
                  << layout_shift(mem->layout, d);
        tile.col[c] = at;
    }
    tile.nout = inverse.nin;
    F2 map = f2_compose(&inverse, &tile);
    nv_shared_map_make(g, &map, l, bytes, &side->map);
    for (int k = 0; k < mem->layout->log_shape[dim]; k++)
        side->image[k] =
            (uint32_t)inverse.col[layout_shift(mem->layout, dim) + k] * (uint32_t)bytes;
    p->l[i] = l;
    for (int b = 0; b < p->l[2]->nbasis[LD_REG]; b++) {
        if (!(lp->parts >> b & 1))
            continue;
        int at = nv_reg_at(l, nv_operand_at(p, i, p->l[2]->basis[LD_REG][b]));
        if (at < 0)
            return false;
        side->only |= (uint32_t)at;
    }
    while (side->map.run_mask & side->only) { /* an access reads one part alone */
        side->map.run /= 2;
        side->map.run_mask = 0;
        for (int b = 0; (1 << b) < side->map.run; b++)
            side->map.run_mask |= 1u << side->map.run_bit[b];
    }
    return true;
}

/* The bytes that k, a multiple of a turn's, adds to all places of a side. */
static LLVMValueRef
place_of_k(const Loop *lp, const Side *side, LLVMValueRef k, uint32_t *bits)
{
    Gen *g = lp->p.g;
    LLVMValueRef at = NULL;
    int first = log2_floor((uint64_t)lp->depth), n = log2_floor((uint64_t)lp->inner);
    *bits = 0;
    for (int up = 1 - n; up < 32; up++) { /* bits that one shift moves */
        uint32_t mask = 0;
        for (int i = first; i < n; i++)
            if (i + up >= 0 && i + up < 32 && (side->image[i] >> (i + up) & 1))
                mask |= 1u << i;
        if (!mask)
            continue;
        LLVMValueRef v = LLVMBuildAnd(g->b, k, ll_int(g->i32, mask), "");
        v = up < 0 ? LLVMBuildLShr(g->b, v, ll_int(g->i32, -up), "")
                   : LLVMBuildShl(g->b, v, ll_int(g->i32, up), "");
        at = at ? LLVMBuildXor(g->b, at, v, "") : v;
        *bits |= up < 0 ? mask >> -up : mask << up;
    }
    return at;
}

/* The fragments of turn k. */
static void
read_side(Loop *lp, int i, LLVMValueRef k)
{
    Multiply *p = &lp->p;
    const Side *side = &lp->side[i];
    SharedMap map = side->map;
    uint32_t bits;
    map.nbase = 0;
    if (!LLVMIsConstant(k) || LLVMConstIntGetZExtValue(k)) {
        LLVMValueRef by = place_of_k(lp, side, k, &bits);
        if (by)
            nv_shared_move(p->g, &map, by, bits);
    }
    p->r[i].n = layout_regs(p->l[i]);
    p->r[i].v = arena_array(&p->g->s->tmp, LLVMValueRef, p->r[i].n);
    if (!nv_ldmatrix(p->g, &map, side->base, p->elem[i], side->only, side->part,
                     &p->r[i]))
        nv_shared_read(p->g, &map, side->base, p->elem[i], side->only, side->part,
                       &p->r[i]);
}

/* The turns from k on that stand one behind another. */
static bool
turns(Loop *lp, LLVMValueRef k)
{
    Gen *g = lp->p.g;
    for (int more = 0; more < lp->span; more += lp->depth) {
        LLVMValueRef at = LLVMBuildOr(g->b, k, ll_int(g->i32, more), "");
        for (int i = 0; i < 2; i++)
            read_side(lp, i, at);
        if (!multiply(&lp->p))
            return false;
    }
    return true;
}

/* One part's accumulators, in place. */
static bool
gen_part(Loop *lp)
{
    Multiply *p = &lp->p;
    Gen *g = p->g;
    LLVMValueRef zero = ll_int(g->i32, 0);
    if (lp->inner == lp->span)
        return turns(lp, zero);
    Regs sums = p->r[2], phi = {sums.n, arena_array(&g->s->tmp, LLVMValueRef, sums.n)};
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b);
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(g->cx, g->fn, "dot");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(g->cx, g->fn, "multiplied");
    LLVMBuildBr(g->b, body);
    LLVMPositionBuilderAtEnd(g->b, body);
    LLVMValueRef k = LLVMBuildPhi(g->b, g->i32, "");
    for (int i = 0; i < sums.n; i++) {
        phi.v[i] = sums.v[i];
        if (((uint32_t)i & p->only) == p->part)
            phi.v[i] = LLVMBuildPhi(g->b, LLVMTypeOf(sums.v[i]), "");
    }
    p->r[2] = (Regs){sums.n, arena_array(&g->s->tmp, LLVMValueRef, sums.n)};
    for (int i = 0; i < sums.n; i++)
        p->r[2].v[i] = phi.v[i];
    bool ok = turns(lp, k);
    LLVMValueRef next = LLVMBuildNUWAdd(g->b, k, ll_int(g->i32, lp->span), "");
    LLVMValueRef more =
        LLVMBuildICmp(g->b, LLVMIntULT, next, ll_int(g->i32, lp->inner), "");
    LLVMBasicBlockRef last = LLVMGetInsertBlock(g->b);
    LLVMBuildCondBr(g->b, more, body, after);
    LLVMAddIncoming(k, &zero, &before, 1);
    LLVMAddIncoming(k, &next, &last, 1);
    for (int i = 0; i < sums.n; i++) {
        if (((uint32_t)i & p->only) != p->part)
            continue;
        LLVMAddIncoming(phi.v[i], &sums.v[i], &before, 1);
        LLVMAddIncoming(phi.v[i], &p->r[2].v[i], &last, 1);
    }
    LLVMPositionBuilderAtEnd(g->b, after);
    return ok;
}

bool
nv_local_dot(Gen *g, const Op *op)
{
    Loop lp = {0};
    Multiply *p = &lp.p;
    Regs *out;
    if (!open_dot(g, op, p, &out))
        return false;
    lp.inner = (int)op_operand(op, 0)->type->shape[p->l[2]->rank - 1];
    choose_parts(&lp);
    lp.depth = choose_depth(&lp);
    lp.span = choose_span(&lp);
    if (!open_side(&lp, 0) || !open_side(&lp, 1))
        return gen_unsupported(g, op, "on these layouts") != NULL;
    p->only = lp.parts;
    do { /* every subset of the bits that number parts */
        for (int i = 0; i < 2; i++) {
            uint32_t c = layout_at(p->l[2], LD_REG, p->part);
            lp.side[i].part = (uint32_t)nv_reg_at(p->l[i], nv_operand_at(p, i, c));
        }
        if (!gen_part(&lp))
            return false;
        p->part = (p->part - lp.parts) & lp.parts;
    } while (p->part);
    narrow_sums(p, out);
    return true;
}

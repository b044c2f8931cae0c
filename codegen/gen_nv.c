/* Kernels for NVIDIA GPUs: function frame, structured control flow, and the dispatch of
   each operation to the file that generates it. Every thread of a program runs the same
   control flow; conditions and trip counts are scalars, equal in all threads. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"

#include <stdio.h>
#include <string.h>

static bool gen_ops(Gen *g, const Region *r, int depth);

/* ------------------------------------------------------------------ values */

int
nv_count(const Type *t)
{
    if (t->kind == TY_ASYNC)
        t = t->elem;
    return t->kind == TY_TILE && t->layout ? layout_regs(t->layout) : 1;
}

LLVMTypeRef
nv_type(Gen *g, const Type *t)
{
    if (t->kind == TY_MEM || t->kind == TY_BAR)
        return LLVMPointerTypeInContext(g->cx, 3);
    if (t->kind == TY_TOKEN)
        return g->i32;
    if (t->kind == TY_ASYNC)
        t = t->elem;
    const Type *e = type_elem(t);
    return e->kind == TY_PTR ? g->ptr : ll_scalar(g->cx, e->scalar);
}

/* Can a thread hold the tile? Of those that it can only just, the largest is noted. */
static bool
check_tile(Gen *g, const Value *v, int n, Loc loc)
{
    const Type *t = v->type;
    if (!t->layout) {
        diag_error(&g->s->diag, loc,
                   "target %s needs a layout on every tile: run the layout pass",
                   g->opt->target);
        return false;
    }
    if (layout_warps(t->layout) != nv_warps(g)) {
        diag_error(&g->s->diag, loc, "a layout of %d warps where %d run",
                   layout_warps(t->layout), nv_warps(g));
        return false;
    }
    if (n > NV_MAX_REGS) {
        diag_error(
            &g->s->diag, loc,
            "a tile takes %d registers in each thread, at most %d are supported: use "
            "a smaller tile or more warps",
            n, NV_MAX_REGS);
        return false;
    }
    /* numbers: addresses and constants are mostly computed where they are used */
    bool dot = v->op && (v->op->kind == OP_DOT || v->op->kind == OP_LOCAL_DOT);
    bool number = dot || (type_is_float(t) && v->op && v->op->noperand);
    int words = number ? n * type_bits(t) / 32 : 0;
    Nv *nv = nv_of(g);
    if (words > nv->widest) {
        nv->widest = words;
        nv->widest_at = loc;
    }
    return true;
}

Regs *
nv_define(Gen *g, const Value *v, int n)
{
    Loc loc = v->op ? v->op->loc : g->func->loc;
    nv_of(g)->multiplies |= v->op && op_is(v->op, T_DOT);
    if (type_is_tile(v->type) && !check_tile(g, v, n, loc))
        return NULL;
    Regs *r = arena_new(&g->s->tmp, Regs);
    r->n = n;
    r->v = arena_array(&g->s->tmp, LLVMValueRef, n);
    map_set(&g->values, v, r);
    return r;
}

Regs *
nv_regs(Gen *g, const Value *v)
{
    return map_get(&g->values, v);
}

LLVMValueRef
nv_scalar(Gen *g, const Value *v)
{
    Regs *r = nv_regs(g, v);
    return r ? r->v[0] : NULL;
}

/* ------------------------------------------------------------------ shared memory */

/* The size is the launch's; the driver aligns the start, there being no other shared
   memory, and the offsets of swizzled buffers count on it. */
static LLVMValueRef
shared_at(Gen *g, int64_t offset)
{
    Nv *nv = nv_of(g);
    if (!nv->shared) {
        LLVMTypeRef bytes = LLVMArrayType2(g->i8, 0);
        nv->shared = LLVMGetNamedGlobal(g->mod, "shared");
        if (!nv->shared) {
            nv->shared = LLVMAddGlobalInAddressSpace(g->mod, bytes, "shared", 3);
            LLVMSetLinkage(nv->shared, LLVMExternalLinkage);
            LLVMSetAlignment(nv->shared, 1024);
        }
    }
    LLVMValueRef at = ll_int(g->i32, offset);
    return offset ? LLVMBuildInBoundsGEP2(g->b, g->i8, nv->shared, &at, 1, "")
                  : nv->shared;
}

LLVMValueRef
nv_scratch(Gen *g, const Op *op)
{
    if (!attr_has(&op->attrs, ATTR_OFFSET)) {
        diag_error(&g->s->diag, op->loc,
                   "'%s' has no offset in shared memory: run pass alloc-shared",
                   op_info[op->kind].name);
        return NULL;
    }
    return shared_at(g, attr_int(&op->attrs, ATTR_OFFSET, 0));
}

/* ------------------------------------------------------------------ elementwise */

static bool
gen_each(Gen *g, const Op *op)
{
    const Value *v = &op->results[0];
    Regs *in[8];
    Regs *out = nv_define(g, v, nv_count(v->type));
    if (!out || op->noperand > 8)
        return false;
    for (int i = 0; i < op->noperand; i++) {
        in[i] = nv_regs(g, op_operand(op, i));
        if (!in[i] || in[i]->n != out->n)
            return gen_unsupported(g, op, "on operands of different layouts");
    }
    if (op->noperand == 1 && nv_cast_stored(g, op, in[0], out))
        return true;
    if (op->kind == OP_MULF && nv_scale_rows(g, op, in, out))
        return true;
    uint32_t same = nv_same(g, v), run = nv_bucket(g, op);
    for (int r = 0; r < out->n; r++) {
        LLVMValueRef x[8];
        if (r & same) {
            out->v[r] = out->v[r & ~same];
            continue;
        }
        if (r + 1 < out->n && !(same & 1) && (nv_cast_pair(g, op, in, r, out->v + r) ||
                               nv_half_pair(g, op, in, r, out->v + r))) {
            r++;
            continue;
        }
        for (int i = 0; i < op->noperand; i++)
            x[i] = in[i]->v[r];
        out->v[r] = nv_divide_run(g, op, in, r, run);
        if (!out->v[r])
            out->v[r] = nv_elem(g, op, x);
        if (!out->v[r])
            return false;
    }
    return true;
}

static bool
gen_constant(Gen *g, const Op *op)
{
    const Value *v = &op->results[0];
    Regs *out = nv_define(g, v, nv_count(v->type));
    LLVMValueRef c = out ? gen_const(g, op, 1) : NULL;
    for (int r = 0; c && r < out->n; r++)
        out->v[r] = c;
    return c != NULL;
}

static bool
gen_program(Gen *g, const Op *op)
{
    int64_t axis = attr_int(&op->attrs, ATTR_AXIS, 0);
    Regs *out = nv_define(g, &op->results[0], 1);
    if (!out || axis < 0 || axis > 2)
        return false;
    if (attr_has(&op->attrs, ATTR_CTAS_PER_SM))
        out->v[0] = LLVMGetParam(g->fn, LLVMCountParams(g->fn) - 1);
    else
        out->v[0] = op->kind == OP_PROGRAM_ID ? nv_program(g, (int)axis)
                                              : nv_programs(g, (int)axis);
    return true;
}

/* ------------------------------------------------------------------ control flow */

static LLVMBasicBlockRef
block(Gen *g, const char *name)
{
    return LLVMAppendBasicBlockInContext(g->cx, g->fn, name);
}

/* Values that a region ends with, register by register, into `to` (n values). */
static bool
end_values(Gen *g, const Op *end, int first, Regs **to, int n)
{
    for (int i = 0; i < n; i++) {
        to[i] = nv_regs(g, op_operand(end, first + i));
        if (!to[i])
            return false;
    }
    return true;
}

/* What a value is where control flow meets: a phi per register, or per word: of four
   bytes, which would take a register each, and of two fp16 sums of wgmma, which may still
   be under way: taken apart and put together again they would be read. */
typedef struct Meeting {
    Regs *regs;
    LLVMValueRef *phi;
    int per; /* registers of a phi */
} Meeting;

enum { WORD_BITS = 32 };

/* The type of the elements that lie in words together. */
static const Type *
word_elem(const Type *t)
{
    return type_elem(t->kind == TY_ASYNC ? t->elem : t);
}

static int
regs_per_phi(const Type *t, int n)
{
    const Type *e = word_elem(t);
    int bits = e->kind == TY_SCALAR ? type_bits(e) : WORD_BITS;
    bool words = (type_is_tile(t) && bits == 8) || (t->kind == TY_ASYNC && bits == 16);
    return words && n % (WORD_BITS / bits) == 0 ? WORD_BITS / bits : 1;
}

/* A word as a vector of so many integers. */
static LLVMTypeRef
word_type(Gen *g, int per)
{
    return LLVMVectorType(LLVMIntTypeInContext(g->cx, (unsigned)(WORD_BITS / per)),
                          (unsigned)per);
}

static Meeting *
make_phis(Gen *g, Value *const *v, int n)
{
    Meeting *all = arena_array(&g->s->tmp, Meeting, n ? n : 1);
    for (int i = 0; i < n; i++) {
        Meeting *m = &all[i];
        m->regs = nv_define(g, v[i], nv_count(v[i]->type));
        if (!m->regs)
            return NULL;
        m->per = regs_per_phi(v[i]->type, m->regs->n);
        m->phi = arena_array(&g->s->tmp, LLVMValueRef, m->regs->n);
        for (int r = 0; r < m->regs->n / m->per; r++)
            m->phi[r] =
                LLVMBuildPhi(g->b, m->per > 1 ? g->i32 : nv_type(g, v[i]->type), "");
    }
    for (int i = 0; i < n; i++) { /* behind all phis */
        Meeting *m = &all[i];
        LLVMValueRef word = NULL;
        for (int r = 0; r < m->regs->n; r++) {
            if (m->per > 1 && r % m->per == 0)
                word = LLVMBuildBitCast(g->b, m->phi[r / m->per], word_type(g, m->per),
                                        "");
            m->regs->v[r] =
                m->per > 1 ? nv_from_bits(g, word_elem(v[i]->type),
                                          LLVMBuildExtractElement(
                                              g->b, word, ll_int(g->i32, r % m->per), ""))
                           : m->phi[r];
        }
    }
    return all;
}

/* What phi r begins with, out of these registers. */
static LLVMValueRef
incoming(Gen *g, const Value *v, const Meeting *m, const Regs *from, int r)
{
    if (m->per == 1)
        return from->v[r];
    LLVMValueRef word = LLVMGetPoison(word_type(g, m->per));
    for (int k = 0; k < m->per; k++) {
        LLVMValueRef x = nv_to_bits(g, word_elem(v->type), from->v[r * m->per + k],
                                    WORD_BITS / m->per);
        word = LLVMBuildInsertElement(g->b, word, x, ll_int(g->i32, k), "");
    }
    return LLVMBuildBitCast(g->b, word, g->i32, "");
}

/* v: the values that meet; from: what they are at the end of block_, which has its
   branch. */
static bool
add_incoming(Gen *g, const Op *op, Value *const *v, Meeting *m, Regs **from, int n,
             LLVMBasicBlockRef block_)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderBefore(g->b, LLVMGetBasicBlockTerminator(block_));
    bool same = true;
    for (int i = 0; i < n && same; i++) {
        same = m[i].regs->n == from[i]->n;
        for (int r = 0; same && r < from[i]->n / m[i].per; r++) {
            LLVMValueRef x = incoming(g, v[i], &m[i], from[i], r);
            LLVMAddIncoming(m[i].phi[r], &x, &block_, 1);
        }
    }
    LLVMPositionBuilderAtEnd(g->b, here);
    return same || gen_unsupported(g, op, "on values of different layouts");
}

static void
alias(Gen *g, const Value *v, Regs *r)
{
    map_set(&g->values, v, r);
}

/* Behind a loop of at most one iteration: what it began with, or its iteration's end. */
static bool
meet_once(Gen *g, const Op *op, const Meeting *begun, LLVMBasicBlockRef head,
          Regs **ended, LLVMBasicBlockRef last)
{
    int n = op->nresult;
    Value **results = arena_array(&g->s->tmp, Value *, n ? n : 1);
    Regs **from = arena_array(&g->s->tmp, Regs *, n ? n : 1);
    for (int i = 0; i < n; i++)
        results[i] = &op->results[i], from[i] = begun[i].regs;
    Meeting *phi = make_phis(g, results, n);
    return phi && add_incoming(g, op, results, phi, from, n, head) &&
           add_incoming(g, op, results, phi, ended, n, last);
}

/* The loop runs while iv < hi for a positive step and iv > hi for a negative one. As in
   Triton, a bound so near the end of the type that iv + step wraps is the author's
   fault. */
LLVMValueRef
nv_goes_on(Gen *g, LLVMValueRef iv, LLVMValueRef hi, LLVMValueRef step)
{
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(iv));
    LLVMValueRef up = LLVMBuildICmp(g->b, LLVMIntSGT, step, zero, "");
    return LLVMBuildSelect(g->b, up, LLVMBuildICmp(g->b, LLVMIntSLT, iv, hi, ""),
                           LLVMBuildICmp(g->b, LLVMIntSGT, iv, hi, ""), "");
}

static bool
gen_for(Gen *g, const Op *op, int depth)
{
    const Region *r = op->regions[0];
    int n = op->noperand - 3;
    Regs **init = arena_array(&g->s->tmp, Regs *, n ? n : 1);
    Regs **next = arena_array(&g->s->tmp, Regs *, n ? n : 1);
    LLVMValueRef lo = nv_scalar(g, op_operand(op, 0)),
                 hi = nv_scalar(g, op_operand(op, 1));
    LLVMValueRef step = nv_scalar(g, op_operand(op, 2));
    if (!lo || !hi || !step || !end_values(g, op, 3, init, n))
        return false;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b), head = block(g, "for");
    LLVMBasicBlockRef body = block(g, "body"), after = block(g, "endfor");
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, head);
    LLVMValueRef iv = LLVMBuildPhi(g->b, LLVMTypeOf(lo), "");
    LLVMAddIncoming(iv, &lo, &before, 1);
    nv_late_begin(g, op, before);
    nv_fresh_open(g, op, before);
    nv_fresh_begin(g, op, init);
    Meeting *phi = make_phis(g, r->args + 1, n);
    if (!phi || !add_incoming(g, op, r->args + 1, phi, init, n, before))
        return false;
    nv_define(g, r->args[0], 1)->v[0] = iv;
    LLVMBuildCondBr(g->b, nv_goes_on(g, iv, hi, step), body, after);
    LLVMPositionBuilderAtEnd(g->b, body);
    NvLoop loop;
    nv_loop_open(g, &loop, op, before);
    if (!gen_ops(g, r, depth + 1) || !end_values(g, r->last, 0, next, n))
        return false;
    LLVMBasicBlockRef last = LLVMGetInsertBlock(g->b);
    if (attr_has(&op->attrs, ATTR_ONCE)) {
        LLVMBuildBr(g->b, after);
        LLVMPositionBuilderAtEnd(g->b, after);
        if (!meet_once(g, op, phi, head, next, last))
            return false;
    } else {
        LLVMValueRef inc = LLVMBuildNSWAdd(g->b, iv, step, "");
        LLVMValueRef again = LLVMBuildBr(g->b, head);
        if (nv_stays_loop(op))
            ll_stays_loop(again);
        LLVMAddIncoming(iv, &inc, &last, 1);
        if (!add_incoming(g, op, r->args + 1, phi, next, n, last) ||
            !nv_fresh_close(g, op, last))
            return false;
        nv_late_end(g, op, last);
        LLVMPositionBuilderAtEnd(g->b, after);
        for (int i = 0; i < op->nresult; i++)
            alias(g, &op->results[i], nv_late_sums(g, op, i, phi[i].regs));
    }
    nv_loop_close(g, &loop);
    return true;
}

static bool
gen_while(Gen *g, const Op *op, int depth)
{
    const Region *test = op->regions[0], *body = op->regions[1];
    int n = op->noperand;
    Regs **init = arena_array(&g->s->tmp, Regs *, n ? n : 1);
    Regs **next = arena_array(&g->s->tmp, Regs *, n ? n : 1);
    Regs **vals = arena_array(&g->s->tmp, Regs *, op->nresult ? op->nresult : 1);
    if (!end_values(g, op, 0, init, n))
        return false;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b), head = block(g, "while");
    LLVMBasicBlockRef inner = block(g, "body"), after = block(g, "endwhile");
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, head);
    NvLoop loop;
    nv_loop_open(g, &loop, op, before);
    Meeting *phi = make_phis(g, test->args, n);
    if (!phi || !add_incoming(g, op, test->args, phi, init, n, before) ||
        !gen_ops(g, test, depth + 1))
        return false;
    LLVMValueRef more = nv_scalar(g, op_operand(test->last, 0));
    if (!more || !end_values(g, test->last, 1, vals, op->nresult))
        return false;
    LLVMBuildCondBr(g->b, more, inner, after);
    LLVMPositionBuilderAtEnd(g->b, inner);
    for (int i = 0; i < op->nresult; i++) {
        alias(g, body->args[i], vals[i]);
        alias(g, &op->results[i], vals[i]);
    }
    if (!gen_ops(g, body, depth + 1) || !end_values(g, body->last, 0, next, n))
        return false;
    LLVMBasicBlockRef last = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, head);
    if (!add_incoming(g, op, test->args, phi, next, n, last))
        return false;
    LLVMPositionBuilderAtEnd(g->b, after);
    nv_loop_close(g, &loop);
    return true;
}

static bool
gen_if(Gen *g, const Op *op, int depth)
{
    LLVMValueRef cond = nv_scalar(g, op_operand(op, 0));
    int n = op->nresult;
    Regs **vals[2];
    LLVMBasicBlockRef arm[2], end[2], after;
    if (!cond)
        return false;
    arm[0] = block(g, "then"), arm[1] = block(g, "else"), after = block(g, "endif");
    LLVMBuildCondBr(g->b, cond, arm[0], arm[1]);
    for (int k = 0; k < 2; k++) {
        const Region *r = k < op->nregion ? op->regions[k] : NULL;
        vals[k] = arena_array(&g->s->tmp, Regs *, n ? n : 1);
        LLVMPositionBuilderAtEnd(g->b, arm[k]);
        if (r && r->last &&
            (!gen_ops(g, r, depth + 1) || !end_values(g, r->last, 0, vals[k], n)))
            return false;
        end[k] = LLVMGetInsertBlock(g->b);
        LLVMBuildBr(g->b, after);
    }
    LLVMPositionBuilderAtEnd(g->b, after);
    Value **results = arena_array(&g->s->tmp, Value *, n ? n : 1);
    for (int i = 0; i < n; i++)
        results[i] = &op->results[i];
    Meeting *phi = make_phis(g, results, n);
    return phi && add_incoming(g, op, results, phi, vals[0], n, end[0]) &&
           add_incoming(g, op, results, phi, vals[1], n, end[1]);
}

bool
nv_region(Gen *g, const Region *r, const Op *op)
{
    for (int i = 0; i < r->narg; i++) {
        Regs *v = nv_regs(g, op_operand(op, i));
        if (!v && op_operand(op, i)->type->kind != TY_DESC) /* that is a parameter */
            return false;
        if (v && op_operand(op, i)->type->kind == TY_DESC)
            nv_acquire_map(g, v->v[0]);
        alias(g, r->args[i], v);
    }
    return gen_ops(g, r, 1);
}

bool
nv_inline(Gen *g, const Region *r, LLVMValueRef *args, LLVMValueRef *out)
{
    for (int i = 0; i < r->narg; i++) {
        Regs *a = nv_define(g, r->args[i], 1);
        if (!a)
            return false;
        a->v[0] = args[i];
    }
    if (!gen_ops(g, r, 1) || !r->last)
        return false;
    for (int i = 0; i < r->last->noperand; i++)
        out[i] = nv_scalar(g, op_operand(r->last, i));
    return true;
}

/* ------------------------------------------------------------------ dispatch */

static bool
gen_op(Gen *g, const Op *op, int depth)
{
    lines_at(g, op->loc);
    switch ((int)op->kind) {
    case OP_CONST:
    case OP_UNDEF: return gen_constant(g, op);
    case OP_PROGRAM_ID:
    case OP_NUM_PROGRAMS: return gen_program(g, op);
    case OP_IN_CLUSTER: return nv_in_cluster(g, op);
    case OP_ARANGE: return nv_arange(g, op);
    case OP_SPLAT:
    case OP_BROADCAST:
    case OP_EXPAND_DIMS:
    case OP_RESHAPE:
    case OP_TRANS:
    case OP_JOIN:
    case OP_SPLIT: return nv_shape_op(g, op);
    case OP_CONVERT_LAYOUT: return nv_convert(g, op);
    case OP_LOAD: return nv_load(g, op);
    case OP_STORE: return nv_store(g, op);
    case OP_ATOMIC_RMW:
    case OP_ATOMIC_CAS: return nv_atomic(g, op);
    case OP_REDUCE: return nv_reduce(g, op);
    case OP_SCAN: return nv_scan(g, op);
    case OP_GATHER: return nv_gather(g, op);
    case OP_HISTOGRAM: return nv_histogram(g, op);
    case OP_LOCAL_ALLOC:
    case OP_LOCAL_INDEX:
    case OP_LOCAL_TRANS:
    case OP_LOCAL_SLICE:
    case OP_LOCAL_LOAD:
    case OP_LOCAL_STORE: return nv_local(g, op);
    case OP_PRIVATE_ALLOC:
    case OP_PRIVATE_LOAD:
    case OP_PRIVATE_STORE: return nv_private(g, op);
    case OP_DOT: return nv_dot(g, op);
    case OP_LOCAL_DOT: return nv_local_dot(g, op);
    case OP_WGMMA:
    case OP_WGMMA_OPEN:
    case OP_WGMMA_WAIT: return nv_wgmma(g, op);
    case OP_FENCE_ASYNC:
        ptx_asm(g, "fence.proxy.async.shared::cta;", "", LLVMVoidTypeInContext(g->cx),
                NULL, 0, true);
        return true;
    case OP_ASYNC_COPY:
    case OP_ASYNC_COMMIT:
    case OP_ASYNC_WAIT: return nv_async(g, op);
    case OP_BAR_ALLOC:
    case OP_BAR_INDEX:
    case OP_BAR_EXPECT:
    case OP_BAR_ARRIVE:
    case OP_BAR_ARRIVE_CLUSTER:
    case OP_BAR_WAIT: return nv_bar(g, op);
    case OP_MAKE_DESC: return true; /* a tensor map, which the host makes */
    case OP_TENSOR_MAP: return nv_tensor_map(g, op);
    case OP_TMA_LOAD:
    case OP_TMA_STORE:
    case OP_TMA_WAIT: return nv_tma(g, op);
    case OP_FOR: return gen_for(g, op, depth);
    case OP_WHILE: return gen_while(g, op, depth);
    case OP_IF: return gen_if(g, op, depth);
    case OP_BARRIER: return nv_barrier_op(g, op);
    case OP_GRID_WAIT:
    case OP_LAUNCH_DEPENDENTS: nv_grid(g, op); return true;
    case OP_WARP_SPECIALIZE: return nv_roles(g, op);
    case OP_PINGPONG_OPEN:
    case OP_PINGPONG_WAIT:
    case OP_PINGPONG_ARRIVE: return nv_pingpong(g, op);
    case OP_PRINT: return nv_print(g, op);
    case OP_ASSERT: return nv_assert(g, op);
    case OP_ASSUME: return true; /* a promise: nothing to run */
    case OP_YIELD:
    case OP_CONDITION:
    case OP_RETURN: return true;
    default: break;
    }
    if (op->kind == OP_ASM || op->kind == OP_ASM_EFFECT)
        return nv_inline_asm(g, op);
    if (op_is(op, T_ELEMENTWISE | T_PURE) && op->nresult == 1)
        return gen_each(g, op);
    gen_unsupported(g, op, NULL);
    return false;
}

static bool
gen_ops(Gen *g, const Region *r, int depth)
{
    if (depth > MAX_REGION_DEPTH)
        return false;
    for (const Op *op = r->first; op; op = op->next) {
        if (!gen_op(g, op, depth)) {
            if (diag_ok(&g->s->diag))
                bug(&g->s->fail, "no code for '%s'", op_info[op->kind].name);
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------ the function */

static LLVMTypeRef
param_type(Gen *g, const Type *t)
{
    return t->kind == TY_SCALAR ? ll_scalar(g->cx, t->scalar == SK_I1 ? SK_I8 : t->scalar)
                                : g->ptr;
}

static void
string_attr(Gen *g, const char *key, const char *value)
{
    LLVMAttributeRef a = LLVMCreateStringAttribute(g->cx, key, (unsigned)strlen(key),
                                                   value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(g->fn, LLVMAttributeFunctionIndex, a);
}

/* {ctas_per_sm} of the op that asks how many programs were to be launched; 0: none does.
   */
static int
ctas_per_sm_of(const Func *f)
{
    region_each_deep(f->body, op)
    {
        int ctas = op->kind == OP_NUM_PROGRAMS
                       ? (int)attr_int(&op->attrs, ATTR_CTAS_PER_SM, 0)
                       : 0;
        if (ctas)
            return ctas;
    }
    return 0;
}

/* Tensor maps are parameters behind the kernel's own, read where they are; behind them
   the number of programs, where fewer are launched. */
static void
map_param(Gen *g, unsigned i)
{
    unsigned kind = LLVMGetEnumAttributeKindForName("byval", 5);
    LLVMTypeRef t = LLVMArrayType2(g->i8, 128);
    LLVMAddAttributeAtIndex(g->fn, i + 1, LLVMCreateTypeAttribute(g->cx, kind, t));
    LLVMAddAttributeAtIndex(g->fn, i + 1,
                            LLVMCreateStringAttribute(g->cx, "nvvm.grid_constant", 18,
                                                      "", 0));
    ll_arg_attr(g->fn, i, "align", 64);
}

static void
make_function(Gen *g, const Func *f, int maps, int more)
{
    enum { PTX_KERNEL = 71 }; /* calling convention of a kernel */
    int n = f->body->narg, all = n + maps;
    LLVMTypeRef *types = arena_array(&g->s->tmp, LLVMTypeRef, all + more + 1);
    for (int i = n; i < all; i++)
        types[i] = LLVMPointerTypeInContext(g->cx, 0);
    for (int i = 0; i < n; i++)
        types[i] = param_type(g, f->body->args[i]->type);
    for (int i = 0; i < more; i++)
        types[all + i] = g->i32;
    LLVMTypeRef t = LLVMFunctionType(LLVMVoidTypeInContext(g->cx), types,
                                     (unsigned)(all + more), 0);
    g->fn = LLVMAddFunction(g->mod, f->name, t);
    LLVMSetFunctionCallConv(g->fn, PTX_KERNEL);
    char threads[16];
    snprintf(threads, sizeof threads, "%d", 32 * nv_launch_warps(f));
    string_attr(g, "nvvm.reqntid", threads);
    const Op *roles = nv_roles_of(f);
    if (roles) { /* or ptxas ignores the roles' registers */
        snprintf(threads, sizeof threads, "%d", nv_blocks(roles));
        string_attr(g, "nvvm.minctasm", threads);
    }
    ll_fn_attr(g->fn, "nounwind");
    for (int i = 0; i < n; i++)
        if (types[i] == g->ptr && f->params[i].div > 1 && is_pow2(f->params[i].div))
            ll_arg_attr(g->fn, (unsigned)i, "align", (uint64_t)f->params[i].div);
    for (int i = n; i < all; i++)
        map_param(g, (unsigned)i);
}

static bool
bind_params(Gen *g, const Func *f)
{
    for (int i = 0; i < f->body->narg; i++) {
        const Value *v = f->body->args[i];
        Regs *r = nv_define(g, v, 1);
        if (!r)
            return false;
        r->v[0] = LLVMGetParam(g->fn, (unsigned)i);
        if (v->type->kind == TY_SCALAR && v->type->scalar == SK_I1)
            r->v[0] = LLVMBuildTrunc(g->b, r->v[0], g->i1, "");
        if (v->name)
            LLVMSetValueName2(LLVMGetParam(g->fn, (unsigned)i), v->name, strlen(v->name));
    }
    return true;
}

bool
gen_nv_func(Gen *g, Func *f, SdcrtMeta *meta)
{
    Nv nv = {.meta = meta};
    int warps = nv_launch_warps(f);
    if (!is_pow2(f->num_warps) || 32 * warps > NV_MAX_THREADS || f->num_ctas > 1) {
        diag_error(&g->s->diag, f->loc,
                   "not supported yet: %d warps, %d blocks a program (target %s)", warps,
                   f->num_ctas, g->opt->target);
        return false;
    }
    if (!meta_maps(g->s, f, meta, &nv.maps, &nv.halves))
        return false;
    g->priv = &nv;
    nv.warps = warps;
    g->ptr = LLVMPointerTypeInContext(g->cx, 1); /* global memory */
    map_init(&nv.lead, &g->s->tmp);
    map_init(&nv.old, &g->s->tmp);
    map_init(&nv.late, &g->s->tmp);
    meta->ctas_per_sm = ctas_per_sm_of(f);
    meta->guarded_args = meta->nmap > 0;
    for (int i = 0; i < f->body->narg; i++)
        meta->guarded_args |= f->params[i].multiple > 1;
    meta->folds = g->info.folds;
    make_function(g, f, meta->nmap, meta->folds ? NV_AXES : meta->ctas_per_sm > 0);
    nv.entry = block(g, "entry");
    LLVMBasicBlockRef start = block(g, "start");
    LLVMPositionBuilderAtEnd(g->b, nv.entry);
    nv.tid = ptx_call(g, PTX_TID_X, NULL, 0);
    nv.lane = LLVMBuildAnd(g->b, nv.tid, ll_int(g->i32, 31), "");
    nv.warp = LLVMBuildLShr(g->b, nv.tid, ll_int(g->i32, 5), "");
    bool ok = bind_params(g, f);
    LLVMPositionBuilderAtEnd(g->b, start);
    nv_prefetch_maps(g);
    nv_maps_begin(g, f);
    ok = ok && gen_ops(g, f->body, 0);
    nv_maps_end(g);
    LLVMBuildRetVoid(g->b);
    LLVMPositionBuilderAtEnd(g->b, nv.entry);
    LLVMBuildBr(g->b, start);
    meta->shared_bytes = f->shared_bytes;
    meta->threads = 32 * warps;
    meta->overlap = nv_overlaps(g, f);
    meta->cluster = nv_cluster(nv_roles_of(f));
    meta->driver = nv.nmaps ? NV_MAP_DRIVER : 0;
    meta->guarded_args |= nv.nmaps > 0;
    int least = nv_least_programs(g, f);
    if (least > 0) {
        char text[16];
        snprintf(text, sizeof text, "%d", least);
        string_attr(g, "nvvm.minctasm", text);
    }
    if (ok && nv.widest > NV_MANY_REGS)
        diag_warning(&g->s->diag, nv.widest_at,
                     "a tile takes %d of a thread's 255 registers: what does not fit "
                     "goes through memory; use a smaller tile or more warps than %d",
                     nv.widest, f->num_warps);
    g->priv = NULL;
    return ok;
}

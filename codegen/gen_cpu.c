/* Functions, control flow and strips of cpu form. Each kernel becomes one function of the
   type SdcrtCpuEntry: a loop over its range of programs around the kernel's body. Buffers
   are places in the caller's scratch memory. */
#include "codegen/gen_cpu_dot.h"

#include "ir/base/util.h"

static bool gen_region(Gen *g, const Region *r, int depth);

LLVMValueRef
cpu_value(Gen *g, const Value *v)
{
    LLVMValueRef x = map_get(&g->values, v);
    if (!x)
        bug(&g->s->fail, "value %%%u has no LLVM value", (unsigned)v->id);
    return x;
}

void
cpu_set(Gen *g, const Value *v, LLVMValueRef x)
{
    map_set(&g->values, v, x);
}

unsigned
cpu_lanes(const Type *t)
{
    return t->kind == TY_TILE ? (unsigned)type_numel(t) : 1;
}

LLVMTypeRef
cpu_type(Gen *g, const Type *t)
{
    const Type *e = type_elem(t);
    LLVMTypeRef s = e->kind == TY_PTR ? g->ptr : ll_scalar(g->cx, e->scalar);
    return ll_vector(s, cpu_lanes(t));
}

LLVMBasicBlockRef
cpu_block(Gen *g, const char *name)
{
    return LLVMAppendBasicBlockInContext(g->cx, g->fn, name);
}

LLVMValueRef
cpu_alloca(Gen *g, LLVMTypeRef t)
{
    Cpu *c = g->priv;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderBefore(g->b, LLVMGetBasicBlockTerminator(c->entry));
    LLVMValueRef p = LLVMBuildAlloca(g->b, t, "");
    LLVMPositionBuilderAtEnd(g->b, here);
    return p;
}

CpuLoop
cpu_loop(Gen *g, int64_t lo, int64_t hi, int64_t step)
{
    return cpu_loop_from(g, ll_int(g->i64, lo), ll_int(g->i64, hi), step);
}

CpuLoop
cpu_loop_from(Gen *g, LLVMValueRef lo, LLVMValueRef hi, int64_t step)
{
    CpuLoop l = {.body = cpu_block(g, "loop"), .done = cpu_block(g, "done")};
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, l.body);
    LLVMPositionBuilderAtEnd(g->b, l.body);
    l.i = LLVMBuildPhi(g->b, g->i64, "i");
    l.step = ll_int(g->i64, step);
    l.hi = hi;
    LLVMAddIncoming(l.i, &lo, &from, 1);
    return l;
}

void
cpu_loop_end(Gen *g, CpuLoop *l)
{
    LLVMValueRef next = LLVMBuildNUWAdd(g->b, l->i, l->step, "");
    LLVMValueRef more = LLVMBuildICmp(g->b, LLVMIntULT, next, l->hi, "");
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    LLVMAddIncoming(l->i, &next, &from, 1);
    LLVMBuildCondBr(g->b, more, l->body, l->done);
    LLVMPositionBuilderAtEnd(g->b, l->done);
}

/* ---- structured control flow */

/* Operands of a region's terminator from `first` on. */
static int
yielded(Gen *g, const Region *r, int first, LLVMValueRef *out)
{
    int n = 0;
    for (int i = first; i < r->last->noperand; i++)
        out[n++] = cpu_value(g, op_operand(r->last, i));
    return n;
}

static LLVMValueRef *
many(Gen *g, int n)
{
    return arena_array(&g->s->tmp, LLVMValueRef, n + 1);
}

static LLVMValueRef
for_continues(Gen *g, const Op *op, LLVMValueRef i, LLVMValueRef hi, LLVMValueRef step)
{
    (void)op;
    LLVMValueRef up = LLVMBuildICmp(g->b, LLVMIntSLT, i, hi, "");
    if (LLVMIsAConstantInt(step))
        return LLVMConstIntGetSExtValue(step) > 0
                   ? up
                   : LLVMBuildICmp(g->b, LLVMIntSGT, i, hi, "");
    LLVMValueRef down = LLVMBuildICmp(g->b, LLVMIntSGT, i, hi, "");
    LLVMValueRef rising =
        LLVMBuildICmp(g->b, LLVMIntSGT, step, LLVMConstNull(LLVMTypeOf(step)), "");
    return LLVMBuildSelect(g->b, rising, up, down, "");
}

static bool
gen_for(Gen *g, const Op *op, int depth)
{
    int n = op->nresult;
    const Region *r = op->regions[0];
    LLVMValueRef lo = cpu_value(g, op_operand(op, 0)),
                 hi = cpu_value(g, op_operand(op, 1));
    LLVMValueRef step = cpu_value(g, op_operand(op, 2));
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    LLVMBasicBlockRef body = cpu_block(g, "for"), done = cpu_block(g, "end");
    LLVMValueRef go = for_continues(g, op, lo, hi, step);
    LLVMBuildCondBr(g->b, go, body, done);
    LLVMPositionBuilderAtEnd(g->b, body);
    LLVMValueRef *phi = many(g, n + 1), *init = many(g, n), *next = many(g, n);
    phi[n] = LLVMBuildPhi(g->b, LLVMTypeOf(lo), "");
    LLVMAddIncoming(phi[n], &lo, &from, 1);
    cpu_set(g, r->args[0], phi[n]);
    for (int i = 0; i < n; i++) {
        init[i] = cpu_value(g, op_operand(op, 3 + i));
        phi[i] = LLVMBuildPhi(g->b, LLVMTypeOf(init[i]), "");
        LLVMAddIncoming(phi[i], &init[i], &from, 1);
        cpu_set(g, r->args[i + 1], phi[i]);
    }
    if (!gen_region(g, r, depth + 1))
        return false;
    yielded(g, r, 0, next);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    LLVMValueRef iv = LLVMBuildAdd(g->b, phi[n], step, "");
    LLVMValueRef more = attr_has(&op->attrs, ATTR_ONCE)
                            ? LLVMConstNull(g->i1)
                            : for_continues(g, op, iv, hi, step);
    LLVMBuildCondBr(g->b, more, body, done);
    LLVMAddIncoming(phi[n], &iv, &latch, 1);
    LLVMPositionBuilderAtEnd(g->b, done);
    for (int i = 0; i < n; i++) {
        LLVMAddIncoming(phi[i], &next[i], &latch, 1);
        LLVMValueRef out = LLVMBuildPhi(g->b, LLVMTypeOf(init[i]), "");
        LLVMAddIncoming(out, &init[i], &from, 1);
        LLVMAddIncoming(out, &next[i], &latch, 1);
        cpu_set(g, &op->results[i], out);
    }
    return true;
}

static bool
gen_if(Gen *g, const Op *op, int depth)
{
    LLVMValueRef cond = cpu_value(g, op_operand(op, 0));
    LLVMBasicBlockRef arm[2] = {cpu_block(g, "then"), cpu_block(g, "else")};
    LLVMBasicBlockRef done = cpu_block(g, "endif"), from[2];
    LLVMValueRef *out[2];
    LLVMValueRef br = LLVMBuildCondBr(g->b, cond, arm[0], arm[1]);
    if (attr_has(&op->attrs, ATTR_LIKELY))
        ll_likely(br, (unsigned)attr_int(&op->attrs, ATTR_LIKELY, 0));
    for (int k = 0; k < 2; k++) {
        LLVMPositionBuilderAtEnd(g->b, arm[k]);
        out[k] = many(g, op->nresult);
        if (!gen_region(g, op->regions[k], depth + 1))
            return false;
        yielded(g, op->regions[k], 0, out[k]);
        from[k] = LLVMGetInsertBlock(g->b);
        LLVMBuildBr(g->b, done);
    }
    LLVMPositionBuilderAtEnd(g->b, done);
    for (int i = 0; i < op->nresult; i++) {
        LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(out[0][i]), "");
        LLVMAddIncoming(phi, (LLVMValueRef[]){out[0][i], out[1][i]}, from, 2);
        cpu_set(g, &op->results[i], phi);
    }
    return true;
}

static bool
gen_while(Gen *g, const Op *op, int depth)
{
    const Region *test = op->regions[0], *body = op->regions[1];
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), head = cpu_block(g, "while");
    LLVMBasicBlockRef in = cpu_block(g, "do"), done = cpu_block(g, "end");
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, head);
    LLVMValueRef *phi = many(g, test->narg), *pass = many(g, op->nresult);
    LLVMValueRef *next = many(g, test->narg);
    for (int i = 0; i < test->narg; i++) {
        LLVMValueRef init = cpu_value(g, op_operand(op, i));
        phi[i] = LLVMBuildPhi(g->b, LLVMTypeOf(init), "");
        LLVMAddIncoming(phi[i], &init, &from, 1);
        cpu_set(g, test->args[i], phi[i]);
    }
    if (!gen_region(g, test, depth + 1))
        return false;
    yielded(g, test, 1, pass);
    LLVMBuildCondBr(g->b, cpu_value(g, op_operand(test->last, 0)), in, done);
    LLVMPositionBuilderAtEnd(g->b, in);
    for (int i = 0; i < body->narg; i++)
        cpu_set(g, body->args[i], pass[i]);
    if (!gen_region(g, body, depth + 1))
        return false;
    yielded(g, body, 0, next);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, head);
    for (int i = 0; i < test->narg; i++)
        LLVMAddIncoming(phi[i], &next[i], &latch, 1);
    LLVMPositionBuilderAtEnd(g->b, done);
    for (int i = 0; i < op->nresult; i++)
        cpu_set(g, &op->results[i], pass[i]);
    return true;
}

/* ---- strips */

/* The combine region on n lanes; args: (a.., b..). */
static bool
gen_combine(Gen *g, const Region *r, LLVMValueRef *args, unsigned lanes,
            LLVMValueRef *out)
{
    Map local;
    map_init(&local, &g->s->tmp);
    for (int i = 0; i < r->narg; i++)
        map_set(&local, r->args[i], args[i]);
    for (const Op *op = r->first; op != r->last; op = op->next) {
        LLVMValueRef in[8], v;
        if (op->noperand > 8 || op->nresult != 1 || op->nregion)
            return gen_unsupported(g, op, "in a combine function") != NULL;
        for (int i = 0; i < op->noperand; i++) {
            in[i] = map_get(&local, op_operand(op, i));
            if (!in[i])
                in[i] = ll_splat(g->b, cpu_value(g, op_operand(op, i)), lanes);
        }
        v = op->noperand ? gen_elem(g, op, in) : gen_const(g, op, lanes);
        if (!v)
            return false;
        map_set(&local, &op->results[0], v);
    }
    for (int i = 0; i < r->last->noperand; i++) {
        out[i] = map_get(&local, op_operand(r->last, i));
        if (!out[i])
            out[i] = ll_splat(g->b, cpu_value(g, op_operand(r->last, i)), lanes);
    }
    return true;
}

/* A strip combined to one element: halves against each other. */
static bool
gen_reduce(Gen *g, const Op *op)
{
    LLVMValueRef v[8], args[16];
    int n = op->noperand;
    if (n > 8)
        return gen_unsupported(g, op, "of more than 8 strips") != NULL;
    unsigned lanes = cpu_lanes(op_operand(op, 0)->type);
    for (int i = 0; i < n; i++)
        v[i] = cpu_value(g, op_operand(op, i));
    while (lanes > 1) {
        lanes /= 2;
        for (int i = 0; i < n; i++) {
            args[i] = ll_extract(g->b, v[i], 0, lanes);
            args[n + i] = ll_extract(g->b, v[i], lanes, lanes);
        }
        if (!gen_combine(g, op->regions[0], args, lanes, v))
            return false;
    }
    for (int i = 0; i < n; i++)
        cpu_set(g, &op->results[i], v[i]);
    return true;
}

/* Lanes of x and y by turns, of their lower or upper halves. */
static LLVMValueRef
by_turns(Gen *g, LLVMValueRef x, LLVMValueRef y, bool high)
{
    LLVMValueRef at[CPU_MAX_ZIP];
    unsigned n = ll_lanes(x), from = high ? n / 2 : 0;
    for (unsigned i = 0; i < n; i++)
        at[i] = ll_int(g->i32, (int64_t)(from + i / 2 + i % 2 * n));
    return LLVMBuildShuffleVector(g->b, x, y, LLVMConstVector(at, n), "");
}

/* Rows are folded until each has as many lanes as there are rows; then two at a time
   become one, whose lanes are theirs by turns: elements meet as in gen_reduce. */
static bool
gen_reduce_rows(Gen *g, const Op *op)
{
    const Type *t = op_operand(op, 0)->type;
    LLVMValueRef v[CPU_MAX_ZIP], args[2], base = cpu_value(g, op_operand(op, 0));
    LLVMTypeRef e = cpu_element(g, t->elem);
    unsigned rows = (unsigned)t->shape[0], lanes = (unsigned)t->shape[1];
    if (rows > lanes || lanes > CPU_MAX_ZIP || type_bits(t->elem) < 8)
        return gen_unsupported(g, op, "of such rows") != NULL;
    for (unsigned r = 0; r < rows; r++) {
        LLVMValueRef at = ll_int(g->i64, r * cpu_pitch(t));
        LLVMValueRef p = LLVMBuildGEP2(g->b, e, base, &at, 1, "");
        v[r] = ll_load(g->b, ll_vector(e, lanes), p, (unsigned)ll_bytes(t->elem->scalar));
        for (unsigned n = lanes / 2; n >= rows; n /= 2) {
            args[0] = ll_extract(g->b, v[r], 0, n);
            args[1] = ll_extract(g->b, v[r], n, n);
            if (!gen_combine(g, op->regions[0], args, n, &v[r]))
                return false;
        }
    }
    for (unsigned half = rows / 2; half; half /= 2)
        for (unsigned r = 0; r < half; r++) {
            args[0] = by_turns(g, v[r], v[r + half], false);
            args[1] = by_turns(g, v[r], v[r + half], true);
            if (!gen_combine(g, op->regions[0], args, rows, &v[r]))
                return false;
        }
    cpu_set(g, &op->results[0], v[0]);
    return true;
}

/* x / s with one s for all lanes: the reciprocal is taken once. Two roundings stay within
   the 2 ulp that f32 division has, as long as the reciprocal is a normal number; for
   other s the lanes are divided. */
static LLVMValueRef
divide_by_scalar(Gen *g, const Op *op, LLVMValueRef *in)
{
    const Type *t = op->results[0].type;
    const Op *by = value_def(op_operand(op, 1), OP_SPLAT);
    if (!by || type_elem(t)->scalar != SK_F32)
        return NULL;
    LLVMValueRef s = cpu_value(g, op_operand(by, 0));
    LLVMValueRef size = ll_intrinsic1(g->b, "llvm.fabs", &s, 1), v[2];
    LLVMValueRef low =
        LLVMBuildFCmp(g->b, LLVMRealOGE, size, ll_float(g->f32, 0x1p-126), "");
    LLVMValueRef high =
        LLVMBuildFCmp(g->b, LLVMRealOLE, size, ll_float(g->f32, 0x1p126), "");
    LLVMBasicBlockRef arm[2], after;
    arm[0] = LLVMAppendBasicBlockInContext(g->cx, g->fn, "multiply");
    arm[1] = LLVMAppendBasicBlockInContext(g->cx, g->fn, "divide");
    after = LLVMAppendBasicBlockInContext(g->cx, g->fn, "divided");
    ll_likely(LLVMBuildCondBr(g->b, LLVMBuildAnd(g->b, low, high, ""), arm[0], arm[1]),
              0);
    for (int k = 0; k < 2; k++) {
        LLVMPositionBuilderAtEnd(g->b, arm[k]);
        if (k == 0) {
            LLVMValueRef r = LLVMBuildFDiv(g->b, ll_float(g->f32, 1.0), s, "");
            v[k] = LLVMBuildFMul(g->b, in[0], ll_splat(g->b, r, ll_lanes(in[0])), "");
        } else {
            v[k] = LLVMBuildFDiv(g->b, in[0], in[1], "");
        }
        LLVMBuildBr(g->b, after);
    }
    LLVMPositionBuilderAtEnd(g->b, after);
    LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(in[0]), "");
    LLVMAddIncoming(phi, v, arm, 2);
    return phi;
}

static LLVMValueRef
gen_zip(Gen *g, const Op *op)
{
    LLVMValueRef x = cpu_value(g, op_operand(op, 0)), y = cpu_value(g, op_operand(op, 1));
    unsigned n = ll_lanes(x);
    if (n < 2 || n > CPU_MAX_ZIP)
        return gen_unsupported(g, op, "of such strips");
    return by_turns(g, x, y, attr_has(&op->attrs, ATTR_HIGH));
}

static LLVMValueRef
gen_slide(Gen *g, const Op *op)
{
    LLVMValueRef at[CPU_MAX_ZIP], x = cpu_value(g, op_operand(op, 0));
    int64_t n = ll_lanes(x), by = attr_int(&op->attrs, ATTR_BY, 0);
    if (n < 2 || n > CPU_MAX_ZIP || by >= n || by <= -n)
        return gen_unsupported(g, op, "of such a strip");
    for (int64_t i = 0; i < n; i++)
        at[i] = ll_int(g->i32, i < by || i - by >= n ? i : i - by);
    LLVMValueRef lanes = LLVMConstVector(at, (unsigned)n);
    return LLVMBuildShuffleVector(g->b, x, LLVMGetUndef(LLVMTypeOf(x)), lanes, "");
}

static LLVMValueRef
gen_value(Gen *g, const Op *op)
{
    Cpu *c = g->priv;
    LLVMValueRef in[CPU_MAX_OPERANDS];
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    unsigned lanes = op->nresult ? cpu_lanes(op->results[0].type) : 1;
    switch ((int)op->kind) {
    case OP_CONST:
    case OP_UNDEF: return gen_const(g, op, lanes);
    case OP_PROGRAM_ID: return c->pid[axis];
    case OP_NUM_PROGRAMS: return c->grid[axis];
    case OP_ARANGE: return ll_iota(g->i32, lanes, attr_int(&op->attrs, ATTR_START, 0));
    case OP_SPLAT: return ll_splat(g->b, cpu_value(g, op_operand(op, 0)), lanes);
    case OP_VZIP: return gen_zip(g, op);
    case OP_VSLIDE: return gen_slide(g, op);
    default: break;
    }
    if (!op_is(op, T_ELEMENTWISE) || op->noperand > CPU_MAX_OPERANDS)
        return gen_unsupported(g, op, NULL);
    for (int i = 0; i < op->noperand; i++)
        in[i] = cpu_value(g, op_operand(op, i));
    if (op->kind == OP_DIVF && type_is_tile(op->results[0].type)) {
        LLVMValueRef v = divide_by_scalar(g, op, in);
        if (v)
            return v;
    }
    return gen_elem(g, op, in);
}

/* Bytes of a buffer, rounded so that the next one is aligned for any vector. */
static int64_t
buffer_bytes(const Type *t)
{
    int64_t size = type_bits(t->elem) <= 8 ? 1 : type_bits(t->elem) / 8;
    for (int i = 0; i < t->rank; i++)
        size *= i == t->rank - 1 ? cpu_pitch(t) : t->shape[i];
    return (size + 63) / 64 * 64;
}

static LLVMValueRef
gen_buffer(Gen *g, const Op *op)
{
    Cpu *c = g->priv;
    int64_t offset = attr_int(&op->attrs, ATTR_OFFSET, c->placed);
    if (!attr_has(&op->attrs, ATTR_OFFSET))
        c->placed += buffer_bytes(op->results[0].type);
    LLVMValueRef at = ll_int(g->i64, offset);
    return LLVMBuildGEP2(g->b, g->i8, c->scratch, &at, 1, "buf");
}

static bool
gen_one(Gen *g, const Op *op, int depth)
{
    lines_at(g, op->loc);
    switch ((int)op->kind) {
    case OP_FOR: return gen_for(g, op, depth);
    case OP_IF: return gen_if(g, op, depth);
    case OP_WHILE: return gen_while(g, op, depth);
    case OP_REDUCE: return gen_reduce(g, op);
    case OP_LOAD:
    case OP_STORE:
    case OP_VLOAD:
    case OP_VSTORE:
    case OP_VFETCH:
    case OP_BUF_LOAD:
    case OP_BUF_STORE: return cpu_memory(g, op);
    case OP_ATOMIC_RMW:
    case OP_ATOMIC_CAS: return cpu_atomic(g, op);
    case OP_PRINT:
    case OP_VCHECK:
    case OP_VPRINT:
    case OP_VASSERT: return cpu_hook(g, op);
    case OP_BUF_DOT: return cpu_dot(g, op);
    case OP_BUF_TOPK: return cpu_topk(g, op);
    case OP_BUF_REDUCE: return gen_reduce_rows(g, op);
    case OP_BUF_VIEW: return true; /* of the dot */
    case OP_BUF_ALLOC: cpu_set(g, &op->results[0], gen_buffer(g, op)); return true;
    case OP_ASSUME:
    case OP_BARRIER: return true;
    default: break;
    }
    if (op->nregion || op->nresult != 1)
        return gen_unsupported(g, op, NULL) != NULL;
    LLVMValueRef v = gen_value(g, op);
    if (v)
        cpu_set(g, &op->results[0], v);
    return v != NULL;
}

static bool
gen_op(Gen *g, const Op *op, int depth)
{
    if (!gen_one(g, op, depth))
        return false;
    if (g->func->check & CHECK_NAN)
        cpu_watch_nan(g, op);
    return true;
}

static bool
gen_region(Gen *g, const Region *r, int depth)
{
    if (depth > MAX_REGION_DEPTH)
        return false;
    for (const Op *op = r->first; op; op = op->next)
        if (!op_is(op, T_TERMINATOR) && !gen_op(g, op, depth))
            return false;
    return true;
}

/* ---- the function */

static LLVMValueRef
load_at(Gen *g, LLVMTypeRef t, LLVMValueRef base, int64_t byte)
{
    LLVMValueRef at = ll_int(g->i64, byte);
    LLVMValueRef p = LLVMBuildGEP2(g->b, g->i8, base, &at, 1, "");
    return LLVMBuildLoad2(g->b, t, p, "");
}

static void
load_params(Gen *g, const Func *f, LLVMValueRef args)
{
    for (int i = 0; i < f->body->narg; i++) {
        const Value *v = f->body->args[i];
        bool is_bool = v->type->kind == TY_SCALAR && v->type->scalar == SK_I1;
        LLVMTypeRef t = is_bool ? g->i8 : cpu_type(g, v->type);
        LLVMValueRef x = load_at(g, t, args, 8 * (int64_t)i);
        if (is_bool)
            x = LLVMBuildICmp(g->b, LLVMIntNE, x, ll_int(g->i8, 0), "");
        LLVMSetValueName2(x, v->name ? v->name : "",
                          v->name ? __builtin_strlen(v->name) : 0);
        cpu_set(g, v, x);
    }
}

/* Places of buffers that no pass has placed: one after the other. */
static bool
measure_scratch(Gen *g, const Func *f, Cpu *c)
{
    for (const Op *op = f->body->first; op; op = op->next) {
        if (op->kind != OP_BUF_ALLOC)
            continue;
        int64_t size = buffer_bytes(op->results[0].type);
        int64_t offset = attr_int(&op->attrs, ATTR_OFFSET, c->scratch_bytes);
        c->scratch_bytes = max_i64(c->scratch_bytes, offset + size);
    }
    if (c->scratch_bytes <= CPU_MAX_SCRATCH)
        return true;
    diag_error(
        &g->s->diag, f->loc,
        "kernel '%s' needs %lld MiB of scratch memory for a program, at most %lld are "
        "supported on target cpu: use smaller tiles",
        f->name, (long long)(c->scratch_bytes >> 20), (long long)(CPU_MAX_SCRATCH >> 20));
    return false;
}

static void
decode_program(Gen *g, Cpu *c, LLVMValueRef p)
{
    for (int i = 0; i < 3; i++) {
        LLVMValueRef n = LLVMBuildZExt(g->b, c->grid[i], g->i64, "");
        LLVMValueRef r = i < 2 ? LLVMBuildURem(g->b, p, n, "") : p;
        c->pid[i] = LLVMBuildTrunc(g->b, r, g->i32, "pid");
        if (i < 2)
            p = LLVMBuildUDiv(g->b, p, n, "");
    }
}

/* `tagged`: the address of the scratch memory may have SDCRT_ALONE added to it. */
static LLVMValueRef
declare(Gen *g, const Func *f, bool tagged)
{
    LLVMTypeRef types[5] = {g->ptr, g->ptr, g->i64, g->i64, g->ptr};
    LLVMTypeRef t = LLVMFunctionType(LLVMVoidTypeInContext(g->cx), types, 5, 0);
    LLVMValueRef fn = LLVMAddFunction(g->mod, f->name, t);
    ll_fn_attr(fn, "nounwind");
    for (unsigned i = 0; i < 5; i++) {
        if (i == 2 || i == 3)
            continue;
        ll_arg_attr(fn, i, "noalias", 0);
        ll_arg_attr(fn, i, "nonnull", 0);
    }
    ll_arg_attr(fn, 0, "readonly", 0);
    ll_arg_attr(fn, 1, "readonly", 0);
    if (!tagged)
        ll_arg_attr(fn, 4, "align", 64);
    return fn;
}

/* What the machine has that code is made for. */
static void
machine_units(Gen *g, Cpu *c)
{
    char *name = LLVMGetTargetMachineCPU(g->tm);
    char *features = LLVMGetTargetMachineFeatureString(g->tm);
    unsigned units = cpu_units(name, features);
    c->avx2 = cpu_has_avx2(name, features);
    c->avx512 = units & AVX512;
    c->vnni = units & VNNI;
    c->bf16 = units & BF16;
    c->amx = units & AMX;
    LLVMDisposeMessage(features);
    LLVMDisposeMessage(name);
}

bool
gen_cpu_func(Gen *g, Func *f, SdcrtMeta *meta)
{
    Cpu c = {0};
    machine_units(g, &c);
    if (!measure_scratch(g, f, &c))
        return false;
    g->priv = &c;
    meta->hooks = f->check || cpu_wants_hooks(f->body);
    cpu_may_be_alone(f, meta);
    g->fn = declare(g, f, meta->alone > 0);
    c.entry = cpu_block(g, "entry");
    c.scratch = LLVMGetParam(g->fn, 4);
    LLVMBasicBlockRef body = cpu_block(g, "program"), exit = cpu_block(g, "exit");
    LLVMPositionBuilderAtEnd(g->b, c.entry);
    load_params(g, f, LLVMGetParam(g->fn, 0));
    for (int i = 0; i < 3; i++)
        c.grid[i] = load_at(g, g->i32, LLVMGetParam(g->fn, 1), 4 * i);
    if (meta->alone)
        cpu_alone_begin(g);
    if (meta->hooks)
        c.hooks = load_at(g, g->ptr, LLVMGetParam(g->fn, 0), 8 * (int64_t)f->body->narg);
    LLVMValueRef first = LLVMGetParam(g->fn, 2), last = LLVMGetParam(g->fn, 3);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, first, last, ""), body, exit);
    LLVMPositionBuilderAtEnd(g->b, body);
    LLVMValueRef p = LLVMBuildPhi(g->b, g->i64, "program");
    LLVMAddIncoming(p, &first, &c.entry, 1);
    c.program = p;
    c.leave = exit;
    if (c.hooks)
        cpu_hooks_begin(g, cpu_block(g, "go"), f->check != 0);
    decode_program(g, &c, p);
    if (!gen_region(g, f->body, 0))
        return false;
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    LLVMValueRef next = LLVMBuildNSWAdd(g->b, p, ll_int(g->i64, 1), "");
    LLVMAddIncoming(p, &next, &latch, 1);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, next, last, ""), body, exit);
    LLVMPositionBuilderAtEnd(g->b, exit);
    if (c.tiles)
        dot_tiles_release(g);
    LLVMBuildRetVoid(g->b);
    meta->scratch_bytes = c.scratch_bytes + c.work_bytes;
    meta->checks = f->check || c.checks ? c.checks + 1 : 0;
    g->priv = NULL;
    return true;
}

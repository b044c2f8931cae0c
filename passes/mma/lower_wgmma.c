/* Lowers dots to wgmma (sm_90a), which a warpgroup runs asynchronously with operands in
   shared memory.

       %y = dot %a, %b, %x {unit="wgmma"}   =>   %ma = local_alloc %a : mem<..>
                                                 %mb = local_alloc %b : mem<..>
                                                 %r = wgmma %ma, %mb, %x : async<tile<..>>
                                                 %y = wgmma_wait %r {pending=0}

   The left operand comes from registers in three cases. It is the result of another dot,
   whose accumulator already has the fragments of the operand. Or it is elementwise work
   on one loaded tile: the tile goes through shared memory and the work is done on the
   fragments. Or it is the same in all iterations of a loop of several dots, and fits into
   registers without lowering the number of programs per SM: dots of few columns are
   limited by reads of shared memory. The right operand is always in shared memory.
   Threads and tensor cores reach shared memory by different proxies, so pass
   `insert-proxy-fence` adds a fence behind what threads write.

   wgmma reads operands of 8 and 32 bits only if they are contiguous along the inner
   dimension. Others come into shared memory in the order that they have in global memory,
   asynchronously if the load is pipelined. From there threads copy them into a second
   buffer, of the right order:

       %m = local_alloc %b : mem<.., along n>
       %t = local_load %m
       %k = local_alloc %t : mem<.., along k>

   If the left operand is the accumulator of another dot converted to 8 bits, the rows of
   this copy are permuted to the order of its registers, so no register has to move.

   A left operand of 32 bits needs no such copy, since it may come from registers: all of
   it at once if it fits beside the accumulator, and step by step if not
   (codegen/gen_nv_left.c). One of 8 bits is read step by step, without a copy, if the
   accumulator's layout says so (passes/layout/layout_dot.c).

   {max_imprecise=n}: tensor cores keep fewer bits than fp32 in accumulators of fp8 dots.
   So every n elements of the inner dimension are a wgmma of their own that begins with 0,
   and threads add its result to the accumulator: all columns at once if registers hold
   two accumulators, some columns at a time if not (codegen/gen_nv_wgmma.c). */
#include "ir/base/util.h"
#include "ir/fold.h"
#include "passes/mma/operand.h"

#include <string.h>

enum {
    /* A loop of so many dots keeps left operands in registers (attention backward, head
       dimension 64, sequence 16384, H200, 2026-11-22: 11.8 ms, without 12.5) */
    MANY = 3,
    KEPT_REGISTERS = 192, /* of a thread: limit for accumulators and operands */
    GROUP_WARPS = 4,      /* of a warpgroup */
    GROUP_THREADS = 128,
    WORD = 32,
};

/* Is v contiguous in memory along the other dimension than `inner`? */
static bool
lies_across(const Value *v, int inner)
{
    Op *trans = value_def(v, OP_TRANS);
    return operand_fast_dim(trans ? op_operand(trans, 0) : v) ==
           (trans ? inner : 1 - inner);
}

/* Must threads copy the operand, so that it becomes contiguous along `inner`? */
static bool
is_copied(const Value *v, int inner)
{
    int bits = type_bits(v->type);
    return (bits == 8 || (bits == WORD && inner == 0)) && lies_across(v, inner);
}

/* The shared buffer that wgmma reads operand v from. A transpose is a view of the buffer.
   as_acc: permute rows to the order of accumulator registers. */
static Value *
buffer_for(Session *s, Builder *b, Value *v, int inner, bool as_acc)
{
    Op *trans = value_def(v, OP_TRANS);
    Value *from = trans ? op_operand(trans, 0) : v;
    bool copied = is_copied(v, inner);
    if (copied && !value_def(from, OP_LOAD) && !as_acc)
        return operand_along(s, b, v, inner);
    Value *m = operand_buffer(s, b, from, NULL);
    m = trans ? operand_transposed(s, b, m, trans) : m;
    return copied ? operand_across(s, b, m, inner, as_acc) : m;
}

/* The buffer of a left operand that threads read step by step (codegen/gen_nv_left.c). */
static Value *
buffer_across(Session *s, Builder *b, Value *v)
{
    Op *trans = value_def(v, OP_TRANS);
    Value *from = trans ? op_operand(trans, 0) : v;
    if (!value_def(from, OP_LOAD) || !lies_across(v, 1))
        return operand_along(s, b, v, 0);
    Value *m = operand_buffer(s, b, from, NULL);
    return trans ? operand_transposed(s, b, m, trans) : m;
}

/* 32-bit registers of a thread for a tile spread over all warpgroups. */
static int64_t
registers(const Func *f, const Type *t)
{
    t = t->kind == TY_ASYNC ? t->elem : t;
    return type_numel(t) * type_bits(t) / 32 /
           (GROUP_THREADS * (f->num_warps / GROUP_WARPS));
}

/* Is `left` tile v, read back from its buffer? */
static bool
is_loaded(const Value *left, const Value *v)
{
    const Op *load = value_def(left, OP_LOCAL_LOAD);
    const Op *buffer = load ? value_def(op_operand(load, 0), OP_LOCAL_ALLOC) : NULL;
    return buffer && buffer->noperand && op_operand(buffer, 0) == v;
}

/* Does the dot go on where another one of its loop ends, in the same accumulators? */
static bool
goes_on(const Op *dot)
{
    const Op *acc = op_operand(dot, 2)->op;
    return acc && acc->parent == dot->parent &&
           (acc->kind == OP_DOT || acc->kind == OP_WGMMA_WAIT);
}

/* Registers of a thread for the accumulators of a loop's dots and for the operands other
   than v that are kept. -1: the loop has fewer than MANY dots. */
static int64_t
loop_registers(Session *s, const Region *body, const Value *v)
{
    int64_t sum = 0, n = 0;
    Map kept;
    map_init(&kept, &s->tmp);
    for (const Op *op = body->first; op; op = op->next) {
        if (op->kind != OP_WGMMA && op->kind != OP_DOT)
            continue;
        Value *left = op_operand(op, 0);
        sum += goes_on(op) ? 0 : registers(body->func, op->results[0].type);
        n++;
        if (op->kind == OP_WGMMA && type_is_tile(left->type) &&
            value_outside(left, body) && !is_loaded(left, v) && !map_has(&kept, left)) {
            map_set(&kept, left, left);
            sum += registers(body->func, left->type);
        }
    }
    return n < MANY ? -1 : sum;
}

/* Programs per SM, by registers, if a thread has so many for accumulators and
   operands. */
static int64_t
programs(const Func *f, const TargetInfo *t, int64_t registers)
{
    enum { BESIDE = 24 }; /* registers of a thread for everything else */
    return t->registers / (32 * (int64_t)f->num_warps * (registers + BESIDE));
}

/* Should v stay in registers: is it the same in all iterations of the loop around the
   dot, and are there registers for it without lowering the number of programs per SM?
   More programs hide the reads of shared memory just as well. */
static bool
is_kept(PassCx *cx, const Op *dot, const Value *v)
{
    const Op *loop = dot->parent->parent;
    if (!loop || loop->kind != OP_FOR || !v->op || v->op->kind == OP_TRANS ||
        type_bits(v->type) != 16 || !value_outside(v, dot->parent))
        return false;
    const Func *f = dot->parent->func;
    int64_t n = loop_registers(cx->s, dot->parent, v), own = registers(f, v->type);
    return n >= 0 && n + own <= KEPT_REGISTERS &&
           programs(f, &cx->target, n + own) == programs(f, &cx->target, n);
}

/* Can v reach the fragments `regs` without shared memory: is it in these registers, or,
   if 8-bit and computed, in the same warp? */
static bool
is_exchanged(const Value *v, const Layout *regs)
{
    ConvertKind most = type_bits(v->type) == 8 && v->op && v->op->kind != OP_LOAD &&
                               v->op->kind != OP_TRANS
                           ? CONV_LANE
                           : CONV_REG;
    return layout_conversion(v->type->layout, regs).kind <= most;
}

/* Buffer m, the one of v, read into registers once, next to where it is filled. */
static Value *
keep(Session *s, const Op *dot, Value *m, const Layout *regs, const Value *v)
{
    const Type *t = type_with_layout(s->types, v->type, regs);
    value_each_use(m, u) if (u->user->kind == OP_LOCAL_LOAD &&
                             u->user->parent == m->op->parent &&
                             u->user->results[0].type == t) return &u->user->results[0];
    Builder b = builder_after(m->op);
    b.loc = dot->loc;
    return &build_op(&b, OP_LOCAL_LOAD, &m, 1, NULL, &t, 1)->results[0];
}

/* Has v, 8-bit and computed, the layout of an accumulator of these warps, and is the
   right operand copied, so that the copy can have any order of rows? */
static bool
lies_as_accumulator(Session *s, const Op *dot, const Value *v, const int warps[2])
{
    const Value *right = op_operand(dot, 1);
    const Type *t = v->type;
    return type_bits(t) == 8 && v->op && v->op->kind != OP_LOAD && is_copied(right, 0) &&
           t->layout == layout_wgmma(s, t->shape, (int)min_i64(t->shape[1], 256), warps);
}

/* Has a thread registers for its accumulators and all of the left operand at once? If
   not, ptxas would wait for each wgmma before it loads the next registers. */
static bool
has_registers(const Type *acc, const Type *a, const Layout *regs)
{
    int n = layout_regs(acc->layout) * type_bits(acc) + layout_regs(regs) * type_bits(a);
    return n / WORD <= KEPT_REGISTERS;
}

/* The pass, and what it has computed again for left operands of the block it is in. */
typedef struct Lowering {
    PassCx *cx;
    const Region *block;
    Map made;
} Lowering;

/* What is computed again for one dot is there for others of the block, such as dots of
   the parts of one tile: NULL if registers may not hold it until then. */
static Map *
made_in(Lowering *p, const Op *dot, const Value *load, const Layout *regs)
{
    enum { PARTS = 4 };
    int words = layout_regs(regs) * type_bits(load->type) / WORD;
    int acc = layout_regs(dot->results[0].type->layout);
    if (PARTS * words + acc > KEPT_REGISTERS)
        return NULL;
    if (p->block != dot->parent)
        map_init(&p->made, &p->cx->s->tmp);
    p->block = dot->parent;
    return &p->made;
}

/* The left operand of the wgmma: a buffer, or fragments in registers. *as_acc: it is in
   the registers of an accumulator, whose order the right operand must have. */
static Value *
left_operand(Lowering *p, Builder *b, Op *dot, Value *v, bool *as_acc)
{
    PassCx *cx = p->cx;
    Session *s = cx->s;
    int n, warps[2], bits = type_bits(v->type);
    bool pairs;
    const Layout *regs = NULL;
    Value *load = NULL;
    if (layout_is_wgmma(dot->results[0].type->layout, &n, warps, &pairs) && !pairs)
        regs =
            layout_wgmma_operand(s, v->type->shape, warps, bits < WORD ? WORD / bits : 1);
    *as_acc = regs && lies_as_accumulator(s, dot, v, warps);
    if (*as_acc)
        return v;
    if (pairs)
        return buffer_across(s, b, v);
    if (regs && is_exchanged(v, regs)) {
        const Type *t = type_with_layout(s->types, v->type, regs);
        return &build_op(b, OP_CONVERT_LAYOUT, &v, 1, NULL, &t, 1)->results[0];
    }
    if (regs && !value_def(v, OP_LOAD) && operand_is_work_on_load(v, true, &load) &&
        load && load->op->parent == dot->parent) {
        const Type *t = type_with_layout(s->types, load->type, regs);
        Map *made = made_in(p, dot, load, regs);
        Value *m = operand_made(made, load, regs);
        if (!m) {
            m = operand_buffer(s, b, load, NULL);
            m = &build_op(b, OP_LOCAL_LOAD, &m, 1, NULL, &t, 1)->results[0];
        }
        if (made)
            map_set(made, load, m);
        return operand_redo(s, b, v, regs, load, m, made);
    }
    Value *m = buffer_for(s, b, v, 1, false);
    if (regs && is_kept(cx, dot, v))
        return keep(s, dot, m, regs, v);
    if (!regs || bits != WORD || !lies_across(v, 1) ||
        !has_registers(dot->results[0].type, v->type, regs))
        return m;
    const Type *t = type_with_layout(s->types, v->type, regs);
    return &build_op(b, OP_LOCAL_LOAD, &m, 1, NULL, &t, 1)->results[0];
}

/* Issues the wgmma; part: of inner elements part[0] .. part[0] + part[1] - 1 only. */
static Value *
begin(Session *s, Builder *b, const Op *dot, Value **in, const int64_t part[2])
{
    Value *r = &build_op(b, OP_WGMMA, in, 3, &dot->attrs, NULL, 1)->results[0];
    attr_drop(&r->op->attrs, ATTR_UNIT);
    attr_drop(&r->op->attrs, ATTR_MAX_IMPRECISE);
    if (part)
        attr_set_ints(&s->mod, &r->op->attrs, ATTR_PART, part, 2);
    return r;
}

/* Issues the wgmma with {max_imprecise}: code generation does it in parts, and some
   columns at a time. */
static Value *
in_pieces(Session *s, Builder *b, const Op *dot, Value **in, int64_t most)
{
    Value *r = begin(s, b, dot, in, NULL);
    attr_set_int(&s->mod, &r->op->attrs, ATTR_MAX_IMPRECISE, most);
    return r;
}

/* Waits for wgmma r, and leaves at most `pending` later ones in flight. */
static Value *
wait_for(Session *s, Builder *b, Value *r, int pending)
{
    AttrList attrs = {0};
    attr_set_int(&s->mod, &attrs, ATTR_PENDING, pending);
    return &build_op(b, OP_WGMMA_WAIT, &r, 1, &attrs, NULL, 1)->results[0];
}

/* How many elements of the inner dimension one wgmma may add up; 0: all. */
static int64_t
most_summed(const Op *dot)
{
    enum { STEP = 32 };
    const Type *a = op_operand(dot, 0)->type;
    if (!type_is_float(a) || type_bits(a) != 8 ||
        !attr_has(&dot->attrs, ATTR_MAX_IMPRECISE))
        return 0;
    int64_t n = attr_int(&dot->attrs, ATTR_MAX_IMPRECISE, 0);
    return n > a->shape[1] ? 0 : max_i64(STEP, (n + STEP - 1) / STEP * STEP);
}

/* Has a thread registers for `count` accumulators? */
static bool
has_accumulators(const Type *acc, int count)
{
    return count * layout_regs(acc->layout) * type_bits(acc) / WORD <= KEPT_REGISTERS;
}

/* One wgmma for each part of the inner dimension, each begun with 0 and added to the
   accumulator by threads. Where registers hold both, the next part runs meanwhile. */
static Value *
in_parts(Session *s, Builder *b, const Op *dot, Value **in, int64_t most)
{
    int64_t all = op_operand(dot, 0)->type->shape[1];
    const Type *acc = in[2]->type;
    /* This takes three accumulators: of two parts and of their sum. Warps that copy the
       right operand need their registers for that. */
    bool ahead = has_accumulators(acc, 3) && !is_copied(op_operand(dot, 1), 0);
    Value *sum = in[2], *last = NULL;
    Const c;
    bool fresh = value_const(sum, &c) && c.f == 0;
    in[2] = build_float(b, acc, 0);
    for (int64_t k = 0; k < all || last; k += most) {
        int64_t part[2] = {k, min_i64(most, all - k)};
        Value *more = k < all ? begin(s, b, dot, in, part) : NULL;
        Value *add = ahead ? last : more;
        if (add) {
            add = wait_for(s, b, add, ahead && more);
            sum = fresh ? add : build_binary(b, OP_ADDF, sum, add);
            fresh = false;
        }
        last = ahead ? more : NULL;
    }
    return sum;
}

static void
lower(Lowering *p, Op *dot)
{
    Session *s = p->cx->s;
    bool as_acc;
    Builder b = builder_before(dot);
    b.loc = dot->loc;
    Value *left = left_operand(p, &b, dot, op_operand(dot, 0), &as_acc);
    Value *right = buffer_for(s, &b, op_operand(dot, 1), 0, as_acc);
    Value *in[3] = {left, right, op_operand(dot, 2)};
    int64_t most = most_summed(dot);
    Value *sum;
    if (!most)
        sum = wait_for(s, &b, begin(s, &b, dot, in, NULL), 0);
    else if (has_accumulators(in[2]->type, 2))
        sum = in_parts(s, &b, dot, in, most);
    else
        sum = wait_for(s, &b, in_pieces(s, &b, dot, in, most), 0);
    if (!sum->name)
        sum->name = dot->results[0].name;
    value_replace(&dot->results[0], sum);
    op_erase(dot);
}

static bool
visit(void *user, Op *op)
{
    Name unit = attr_str(&op->attrs, ATTR_UNIT);
    if (op->kind != OP_DOT || !unit || strcmp(unit, "wgmma") != 0)
        return false;
    lower(user, op);
    return true;
}

bool
pass_lower_wgmma(Func *f, PassCx *cx)
{
    Lowering p = {cx, NULL, {0}};
    return pass_walk(f->body, visit, &p);
}

/* Dots that a warpgroup computes asynchronously (wgmma, sm_90a): their operands stay
   in shared memory.

       %y = dot %a, %b, %x {unit="wgmma"}   =>   %ma = local_alloc %a : mem<..>
                                                 %mb = local_alloc %b : mem<..>
                                                 %r = wgmma %ma, %mb, %x : async<tile<..>>
                                                 %y = wgmma_wait %r {pending=0}

   The left operand comes from registers when its elements are there already: results of
   another dot, whose accumulator has the operand's fragments. A tile that a loop of
   many dots reads as a left operand in every iteration is kept there, too, where
   registers suffice for it and for as many programs as without: dots of few columns read
   shared memory as fast as it goes. What
   is computed from one loaded tile is loaded into shared memory and computed on the
   fragments. The right operand always lies in shared memory, and so does what is written
   for it: the tensor cores read by another path than threads write, so pass
   `insert-proxy-fence` stands between.

   Operands of 8 and 32 bits must lie along the inner dimension. One that lies across in
   memory comes into shared memory as it lies, asynchronously where it is staged. A left
   one stays there, and the threads read it step by step (codegen/gen_nv_left.c): one of
   8 bits when the layout of the accumulator says so (passes/layout/layout_dot.c). Any
   other they copy into a second buffer:

       %m = local_alloc %b : mem<.., along n>
       %t = local_load %m
       %k = local_alloc %t : mem<.., along k>

   Where the left operand then comes out of the registers of another dot, the copy has
   its rows in the order in which the elements lie in those, and none of them moves.

   A left operand of four bytes an element that lies across comes through registers, all
   of it where that fits beside the accumulators, step by step otherwise.

   {max_imprecise=n}: the tensor cores keep fewer bits of accumulators of fp8 dots than
   fp32 has. Every n of the inner dimension is a dot of its own, and threads add it: dots
   of the tile where a thread has registers for the accumulators of both, of a piece of
   the columns at a time otherwise (codegen/gen_nv_wgmma.c). */
#include "ir/base/util.h"
#include "ir/fold.h"
#include "passes/mma/operand.h"

#include <string.h>

/* From so many dots on a loop keeps operands, in so many registers of a thread beside
   its accumulators (attention backward of 64 dimensions, 16384 on an H200: 12.5 ms, 11.8
   with).
 */
enum { MANY = 3, KEPT_REGISTERS = 192, GROUP_WARPS = 4, GROUP_THREADS = 128, WORD = 32 };

bool pass_lower_wgmma(Func *f, PassCx *cx);

/* Is memory's order the one across dimension `inner` of an operand? */
static bool
lies_across(const Value *v, int inner)
{
    Op *trans = value_def(v, OP_TRANS);
    return operand_fast_dim(trans ? op_operand(trans, 0) : v) ==
           (trans ? inner : 1 - inner);
}

/* Must it be copied to lie along? */
static bool
is_copied(const Value *v, int inner)
{
    int bits = type_bits(v->type);
    return (bits == 8 || (bits == WORD && inner == 0)) && lies_across(v, inner);
}

/* A transpose costs nothing: the buffer is looked at transposed. */
static Value *
buffer_for(Session *s, Builder *b, Value *v, int inner, bool as_sums)
{
    Op *trans = value_def(v, OP_TRANS);
    Value *from = trans ? op_operand(trans, 0) : v;
    bool copied = is_copied(v, inner);
    if (copied && !value_def(from, OP_LOAD) && !as_sums)
        return operand_along(s, b, v, inner);
    Value *m = operand_buffer(s, b, from, NULL);
    m = trans ? operand_transposed(s, b, m, trans) : m;
    return copied ? operand_across(s, b, m, inner, as_sums) : m;
}

/* A left operand that threads read by steps (codegen/gen_nv_left.c). */
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

static int64_t
registers(const Func *f, const Type *t)
{
    t = t->kind == TY_ASYNC ? t->elem : t;
    return type_numel(t) * type_bits(t) / 32 /
           (GROUP_THREADS * (f->num_warps / GROUP_WARPS));
}

/* Is it v, loaded from the buffer into registers? */
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

/* Registers for the accumulators of a loop's dots and for operands that are kept, v
   apart; -1: it has few dots. */
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

/* Programs that the registers of an SM suffice for, of so many a thread for accumulators
   and operands that are kept. */
static int64_t
programs(const Func *f, const TargetInfo *t, int64_t registers)
{
    enum { BESIDE = 24 };
    return t->registers / (32 * (int64_t)f->num_warps * (registers + BESIDE));
}

/* Is v the same in all iterations of the loop around the dot, and is there room, at no
   program's cost? Shared memory is read as fast where several programs take turns. */
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

/* Is v in registers already, and at most lanes of four exchange bytes? What is loaded
   goes by way of a buffer. */
static bool
is_exchanged(const Value *v, const Layout *regs)
{
    ConvertKind most = type_bits(v->type) == 8 && v->op && v->op->kind != OP_LOAD &&
                               v->op->kind != OP_TRANS
                           ? CONV_LANE
                           : CONV_REG;
    return layout_conversion(v->type->layout, regs).kind <= most;
}

/* Loaded once, next to the buffer. */
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

/* Does v lie in registers as the accumulators of a dot of these warps would, and is the
   right operand copied, in whatever order? */
static bool
lies_as_sums(Session *s, const Op *dot, const Value *v, const int warps[2])
{
    const Value *right = op_operand(dot, 1);
    const Type *t = v->type;
    return type_bits(t) == 8 && v->op && v->op->kind != OP_LOAD && is_copied(right, 0) &&
           t->layout == layout_wgmma(s, t->shape, (int)min_i64(t->shape[1], 256), warps);
}

/* Does a thread have registers for its accumulators and all of the left operand at once?
   With less ptxas waits for each wgmma. */
static bool
has_registers(const Type *acc, const Type *a, const Layout *regs)
{
    int n = layout_regs(acc->layout) * type_bits(acc) + layout_regs(regs) * type_bits(a);
    return n / WORD <= KEPT_REGISTERS;
}

static Value *
left_operand(PassCx *cx, Builder *b, Op *dot, Value *v, bool *as_sums)
{
    Session *s = cx->s;
    int n, warps[2], bits = type_bits(v->type);
    bool pairs;
    const Layout *regs = NULL;
    Value *load = NULL;
    if (layout_is_wgmma(dot->results[0].type->layout, &n, warps, &pairs) && !pairs)
        regs =
            layout_wgmma_operand(s, v->type->shape, warps, bits < WORD ? WORD / bits : 1);
    *as_sums = regs && lies_as_sums(s, dot, v, warps);
    if (*as_sums)
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
        Value *m = operand_buffer(s, b, load, NULL);
        m = &build_op(b, OP_LOCAL_LOAD, &m, 1, NULL, &t, 1)->results[0];
        return operand_redo(s, b, v, regs, load, m);
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

/* The dot, under way. */
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

/* The dot of all parts, whose sums are added piece by piece. */
static Value *
in_pieces(Session *s, Builder *b, const Op *dot, Value **in, int64_t most)
{
    Value *r = begin(s, b, dot, in, NULL);
    attr_set_int(&s->mod, &r->op->attrs, ATTR_MAX_IMPRECISE, most);
    return r;
}

/* And done, which at most `pending` later ones are not. */
static Value *
done(Session *s, Builder *b, Value *r, int pending)
{
    AttrList attrs = {0};
    attr_set_int(&s->mod, &attrs, ATTR_PENDING, pending);
    return &build_op(b, OP_WGMMA_WAIT, &r, 1, &attrs, NULL, 1)->results[0];
}

/* Elements of the inner dimension that the unit may sum up by itself; 0: all. */
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

/* Has a thread registers for so many accumulators, beside what it reads of a left operand
   by steps? */
static bool
has(const Type *acc, int count)
{
    return count * layout_regs(acc->layout) * type_bits(acc) / WORD <= KEPT_REGISTERS;
}

/* Dots of parts, each begun with 0 and added: while the next one goes on, where there is
   room for both. */
static Value *
in_parts(Session *s, Builder *b, const Op *dot, Value **in, int64_t most)
{
    int64_t all = op_operand(dot, 0)->type->shape[1];
    const Type *acc = in[2]->type;
    /* Two accumulators of parts and their sum; warps that put the right operand in order
       have other registers to fill. */
    bool ahead = has(acc, 3) && !is_copied(op_operand(dot, 1), 0);
    Value *sum = in[2], *last = NULL;
    Const c;
    bool fresh = value_const(sum, &c) && c.f == 0;
    in[2] = build_float(b, acc, 0);
    for (int64_t k = 0; k < all || last; k += most) {
        int64_t part[2] = {k, min_i64(most, all - k)};
        Value *more = k < all ? begin(s, b, dot, in, part) : NULL;
        Value *add = ahead ? last : more;
        if (add) {
            add = done(s, b, add, ahead && more);
            sum = fresh ? add : build_binary(b, OP_ADDF, sum, add);
            fresh = false;
        }
        last = ahead ? more : NULL;
    }
    return sum;
}

static void
lower(PassCx *cx, Op *dot)
{
    Session *s = cx->s;
    bool as_sums;
    Builder b = builder_before(dot);
    b.loc = dot->loc;
    Value *left = left_operand(cx, &b, dot, op_operand(dot, 0), &as_sums);
    Value *right = buffer_for(s, &b, op_operand(dot, 1), 0, as_sums);
    Value *in[3] = {left, right, op_operand(dot, 2)};
    int64_t most = most_summed(dot);
    Value *sum;
    if (!most)
        sum = done(s, &b, begin(s, &b, dot, in, NULL), 0);
    else if (has(in[2]->type, 2))
        sum = in_parts(s, &b, dot, in, most);
    else
        sum = done(s, &b, in_pieces(s, &b, dot, in, most), 0);
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
    return pass_walk(f->body, visit, cx);
}

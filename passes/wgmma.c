/* Products that a warpgroup computes asynchronously (wgmma, sm_90a): their operands stay
   in shared memory.

       %y = dot %a, %b, %x {unit="wgmma"}   =>   %ma = local_alloc %a : mem<..>
                                                 %mb = local_alloc %b : mem<..>
                                                 %r = wgmma %ma, %mb, %x : async<tile<..>>
                                                 %y = wgmma_wait %r {pending=0}

   The left operand comes from registers when its elements are there already: results of
   another product, whose accumulator has the operand's fragments. A tile that a loop of
   many products reads as a left operand in every iteration is kept there, too, where
   registers suffice: products of few columns read shared memory as fast as it goes. What
   is computed from one loaded tile is loaded into shared memory and computed on the
   fragments. The right operand always lies in shared memory, and so does what is written
   for it: the tensor cores read by another path than threads write, so pass `fence`
   stands between. */
#include "ir/base/util.h"
#include "passes/operand.h"

#include <string.h>

/* From so many products on a loop keeps operands, in so many registers of a thread beside
   its sums (attention backward of 64 dimensions, 16384 on an H200: 12.5 ms, 11.8 with).
 */
enum { MANY = 3, KEPT_WORDS = 192, GROUP_WARPS = 4, GROUP_THREADS = 128 };

bool pass_wgmma(Func *f, PassCx *cx);

/* A transpose costs nothing: the buffer is looked at the other way round. */
static Value *
buffer_for(Session *s, Builder *b, Value *v)
{
    Op *trans = value_def(v, OP_TRANS);
    Value *m = operand_buffer(s, b, trans ? op_operand(trans, 0) : v);
    return trans ? operand_turned(s, b, m, trans) : m;
}

/* Is memory's order the one across the inner dimension of a left operand? */
static bool
lies_across(const Value *v)
{
    Op *trans = value_def(v, OP_TRANS);
    return operand_fast_dim(trans ? op_operand(trans, 0) : v) == (trans ? 1 : 0);
}

static int64_t
words(const Func *f, const Type *t)
{
    t = t->kind == TY_ASYNC ? t->elem : t;
    return type_numel(t) * type_bits(t) / 32 /
           (GROUP_THREADS * (f->num_warps / GROUP_WARPS));
}

/* Registers for the sums of a loop's products and operands that are kept; -1: it has few
   products. */
static int64_t
loop_words(Session *s, const Region *body)
{
    int64_t sum = 0, n = 0;
    Map kept;
    map_init(&kept, &s->tmp);
    for (const Op *op = body->first; op; op = op->next) {
        if (op->kind != OP_WGMMA && op->kind != OP_DOT)
            continue;
        Value *left = op_operand(op, 0);
        sum += words(body->func, op->results[0].type);
        n++;
        if (op->kind == OP_WGMMA && type_is_tile(left->type) &&
            value_outside(left, body) && !map_has(&kept, left)) {
            map_set(&kept, left, left);
            sum += words(body->func, left->type);
        }
    }
    return n < MANY ? -1 : sum;
}

/* Is v the same in all iterations of the loop around the product, and is there room? */
static bool
is_kept(Session *s, const Op *dot, const Value *v)
{
    const Op *loop = dot->parent->parent;
    if (!loop || loop->kind != OP_FOR || !v->op || v->op->kind == OP_TRANS ||
        type_bits(v->type) != 16 || !value_outside(v, dot->parent))
        return false;
    int64_t n = loop_words(s, dot->parent);
    return n >= 0 && n + words(dot->parent->func, v->type) <= KEPT_WORDS;
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

static Value *
left_operand(Session *s, Builder *b, Op *dot, Value *v)
{
    int n, warps[2], bits = type_bits(v->type);
    const Layout *regs = NULL;
    Value *load = NULL;
    if (layout_is_wgmma(dot->results[0].type->layout, &n, warps))
        regs = layout_wgmma_operand(s, v->type->shape, warps, bits < 32 ? 32 / bits : 1);
    if (regs && layout_conversion(v->type->layout, regs).kind <= CONV_REG) {
        const Type *t = type_with_layout(s->types, v->type, regs);
        return &build_op(b, OP_CONVERT_LAYOUT, &v, 1, NULL, &t, 1)->results[0];
    }
    if (regs && !value_def(v, OP_LOAD) && operand_is_work_on_load(v, &load) && load &&
        load->op->parent == dot->parent) {
        const Type *t = type_with_layout(s->types, load->type, regs);
        Value *m = operand_buffer(s, b, load);
        m = &build_op(b, OP_LOCAL_LOAD, &m, 1, NULL, &t, 1)->results[0];
        return operand_redo(s, b, v, regs, load, m);
    }
    Value *m = buffer_for(s, b, v);
    if (regs && is_kept(s, dot, v))
        return keep(s, dot, m, regs, v);
    if (!regs || bits != 32 || !lies_across(v))
        return m;
    const Type *t = type_with_layout(s->types, v->type, regs);
    return &build_op(b, OP_LOCAL_LOAD, &m, 1, NULL, &t, 1)->results[0];
}

static void
lower(Session *s, Op *dot)
{
    Builder b = builder_before(dot);
    b.loc = dot->loc;
    Value *in[3] = {left_operand(s, &b, dot, op_operand(dot, 0)),
                    buffer_for(s, &b, op_operand(dot, 1)), op_operand(dot, 2)};
    Value *r = &build_op(&b, OP_WGMMA, in, 3, &dot->attrs, NULL, 1)->results[0];
    AttrList attrs = {0};
    attr_drop(&r->op->attrs, ATTR_UNIT);
    attr_set_int(&s->mod, &attrs, ATTR_PENDING, 0);
    Op *wait = build_op(&b, OP_WGMMA_WAIT, &r, 1, &attrs, NULL, 1);
    wait->results[0].name = dot->results[0].name;
    value_replace(&dot->results[0], &wait->results[0]);
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
pass_wgmma(Func *f, PassCx *cx)
{
    return pass_walk(f->body, visit, cx->s);
}

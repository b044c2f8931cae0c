/* Operands of products through shared memory.

   Where the operand of a dot has to be exchanged between threads, the exchange is spelled
   out: the tile is put into a buffer whose swizzle suits the fragments, and read back in
   the operand's layout.

       %a = load %p : tile<128x64xf16, #blk>        %a = load %p : tile<128x64xf16, #blk>
       %c = convert_layout %a : #op            =>   %m = local_alloc %a : mem<f16,
   [128,64], #sh> dot %c, ..                                   %c = local_load %m :
   tile<.., #op> dot %c, ..

   So the stage passes find loads that only fill buffers, and a later pass can hand the
   buffer itself to a product that reads its operands from shared memory. Elementwise
   work between a load and the product moves behind the buffer, where it is done on the
   fragments: what is copied is what lies in memory, often narrower. */
#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "passes/pass.h"

bool pass_share(Func *f, PassCx *cx);

enum { LINE = 128, HOIST_DEPTH = 16 };

/* The dimension of which a thread holds most elements in a row: memory's order for what
   was loaded. */
static int
fast_dim(const Layout *l)
{
    int best = l->rank - 1, run = layout_run(l, best, NULL);
    for (int d = l->rank - 2; d >= 0; d--) {
        int n = layout_run(l, d, NULL);
        if (n > run) {
            best = d;
            run = n;
        }
    }
    return best;
}

static const Type *
buffer_type(Session *s, const Type *t)
{
    int order[MAX_RANK], n = 0, fast = fast_dim(t->layout), bits = type_bits(t);
    order[n++] = fast;
    for (int d = t->rank - 1; d >= 0; d--)
        if (d != fast)
            order[n++] = d;
    bits = bits < 8 ? 8 : bits;
    int64_t row = t->shape[fast] * bits / 8;
    int swizzle = row >= LINE ? LINE : row >= 32 ? (int)row : 0;
    const Layout *l = layout_nvmma(s, t->rank, t->shape, bits, swizzle, order);
    return type_mem(s->types, t->elem, t->rank, t->shape, l, 0);
}

/* v in layout `to`, by way of a buffer. */
static Value *
through_buffer(Session *s, Builder *b, Value *v, const Layout *to)
{
    const Type *mem = buffer_type(s, v->type),
               *t = type_with_layout(s->types, v->type, to);
    Value *m = &build_op(b, OP_LOCAL_ALLOC, &v, 1, NULL, &mem, 1)->results[0];
    return &build_op(b, OP_LOCAL_LOAD, &m, 1, NULL, &t, 1)->results[0];
}

/* Is v elementwise work on exactly one loaded tile (and on what any thread can compute)?
   Then `load` is that tile. */
static bool
is_work_on_load(Value *v, Value **load, int depth)
{
    Op *op = v->op;
    if (!type_is_tile(v->type))
        return true;
    if (!op || depth > HOIST_DEPTH)
        return false;
    if (op->kind == OP_LOAD) {
        if (*load && *load != v)
            return false;
        *load = v;
        return true;
    }
    bool each = op_is(op, T_PURE | T_ELEMENTWISE) && op->kind != OP_UNDEF;
    bool spread = op->kind == OP_SPLAT || op->kind == OP_ARANGE;
    if (!each && !spread)
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!is_work_on_load(op_operand(op, i), load, depth + 1))
            return false;
    return true;
}

/* v computed in layout `to` from `load`, which comes through a buffer as `loaded`. */
static Value *
redo(Session *s, Builder *b, Value *v, const Layout *to, Value *load, Value *loaded)
{
    Value *in[8];
    if (v == load)
        return loaded;
    if (!type_is_tile(v->type) || v->op->noperand > 8)
        return v;
    Op *op = v->op;
    for (int i = 0; i < op->noperand; i++)
        in[i] = redo(s, b, op_operand(op, i), to, load, loaded);
    const Type *t = type_with_layout(s->types, v->type, to);
    Op *again = build_op(b, op->kind, in, op->noperand, &op->attrs, &t, 1);
    again->results[0].name = v->name;
    return &again->results[0];
}

/* The transposed view of the buffer of what is transposed: the exchange costs nothing
   more. */
static Value *
through_trans(Session *s, Builder *b, Op *trans, const Layout *to)
{
    Value *x = op_operand(trans, 0);
    const Type *mem = buffer_type(s, x->type);
    const Type *t = type_with_layout(s->types, trans->results[0].type, to);
    Value *m = &build_op(b, OP_LOCAL_ALLOC, &x, 1, NULL, &mem, 1)->results[0];
    const Attr *perm = attr_find(&trans->attrs, ATTR_PERM);
    int64_t shape[MAX_RANK];
    for (int i = 0; i < mem->rank; i++)
        shape[i] = mem->shape[perm->v.ints[i]];
    const Layout *l = layout_trans(s, mem->layout, perm->v.ints);
    const Type *turned = type_mem(s->types, mem->elem, mem->rank, shape, l, 0);
    m = &build_op(b, OP_LOCAL_TRANS, &m, 1, &trans->attrs, &turned, 1)->results[0];
    return &build_op(b, OP_LOCAL_LOAD, &m, 1, NULL, &t, 1)->results[0];
}

static bool
share_operand(Session *s, Op *dot, int i)
{
    Op *c = value_def(op_operand(dot, i), OP_CONVERT_LAYOUT);
    Value *v = c ? op_operand(c, 0) : NULL, *load = NULL, *by;
    if (!c || v->type->rank != 2)
        return false;
    const Layout *to = c->results[0].type->layout;
    if (layout_conversion(v->type->layout, to).kind <= CONV_REG)
        return false;
    Builder b = builder_before(c);
    b.loc = c->loc;
    if (is_work_on_load(v, &load, 0) && load && load->op->parent == c->parent)
        by = redo(s, &b, v, to, load, through_buffer(s, &b, load, to));
    else if (value_def(v, OP_TRANS))
        by = through_trans(s, &b, v->op, to);
    else
        by = through_buffer(s, &b, v, to);
    value_replace(&c->results[0], by);
    op_erase(c);
    return true;
}

static bool
visit(Session *s, Region *r, int depth)
{
    bool changed = false;
    if (depth > MAX_REGION_DEPTH)
        return false;
    region_each(r, op)
    {
        for (int i = 0; i < op->nregion; i++)
            changed |= visit(s, op->regions[i], depth + 1);
        if (op->kind == OP_DOT)
            for (int i = 0; i < 2; i++)
                changed |= share_operand(s, op, i);
    }
    return changed;
}

bool
pass_share(Func *f, PassCx *cx)
{
    return visit(cx->s, f->body, 0);
}

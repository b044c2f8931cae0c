/* Rules of layouts, shared memory and the asynchronous machine of the GPU targets. */
#include "ir/infer.h"

#include "ir/buffer.h"

bool
rule_convert_layout(RuleCx *c)
{
    const Type *from = opnd(c, 0), *to = rule_given(c, 0);
    if (!to || from->kind != TY_TILE ||
        type_with_layout(c->s->types, from, to->layout) != to)
        return rule_fail(c,
                         "needs a result that differs from the operand in layout alone");
    return true;
}

static bool
is_mem(RuleCx *c, int i)
{
    return (opnd(c, i)->kind == TY_MEM && !opnd(c, i)->stages) ||
           rule_fail(c, "operand %d must be one shared buffer, not %s", i,
                     rule_str(c, opnd(c, i)));
}

/* Tile t holds exactly the elements of buffer m. */
static bool
fits(RuleCx *c, const Type *t, const Type *m)
{
    return (t && t->kind == TY_TILE && t->elem == m->elem && type_same_shape(t, m)) ||
           rule_fail(c, "tile does not fit buffer %s", rule_str(c, m));
}

bool
rule_local_alloc(RuleCx *c)
{
    const Type *m = rule_given(c, 0);
    if (!m || m->kind != TY_MEM)
        return rule_fail(c, "needs a mem result");
    return !c->op->noperand || (!m->stages && fits(c, opnd(c, 0), m)) ||
           rule_fail(c, "a staged buffer has no initial tile");
}

bool
rule_local_index(RuleCx *c)
{
    const Type *m = opnd(c, 0);
    if (m->kind != TY_MEM || !m->stages || !rule_is_int(opnd(c, 1), 32))
        return rule_fail(c, "needs a staged buffer and an i32 stage");
    const Type *t = rule_given(c, 0);
    c->out[0] = type_mem(c->s->types, m->elem, m->rank, m->shape, m->layout, 0);
    if (t && t->kind == TY_MEM && !t->stages &&
        shared_stage_bytes(t) == shared_stage_bytes(m))
        c->out[0] = t; /* other one tile after another in the same place */
    return true;
}

bool
rule_local_slice(RuleCx *c)
{
    const Type *m = opnd(c, 0), *t = rule_given(c, 0);
    if (!is_mem(c, 0))
        return false;
    if (!t || t->kind != TY_MEM || t->rank != m->rank || t->elem != m->elem)
        return rule_fail(c, "needs a mem result of the buffer's rank and element");
    for (int i = 0; i < m->rank; i++)
        if (t->shape[i] > m->shape[i])
            return rule_fail(c, "slice is larger than the buffer in dimension %d", i);
    if (c->op->noperand != 1 + m->rank)
        return rule_fail(c, "needs %d offsets", m->rank);
    for (int i = 1; i < c->op->noperand; i++)
        if (!rule_is_int(opnd(c, i), 32))
            return rule_fail(c, "offsets must be i32");
    return true;
}

bool
rule_local_load(RuleCx *c)
{
    return is_mem(c, 0) && fits(c, rule_given(c, 0), opnd(c, 0));
}

bool
rule_local_store(RuleCx *c)
{
    return is_mem(c, 0) && fits(c, opnd(c, 1), opnd(c, 0));
}

bool
rule_private_alloc(RuleCx *c)
{
    const Type *t = rule_given(c, 0);
    return (t && t->kind == TY_BUF && t->rank == 2) ||
           rule_fail(c, "needs a buf result of strips and their elements");
}

/* Is tile t a strip of the buffer, and operand i the number of one? */
static bool
is_strip(RuleCx *c, const Type *t, int i)
{
    const Type *buf = opnd(c, 0);
    bool strip = buf->kind == TY_BUF && buf->rank == 2 && t && t->kind == TY_TILE &&
                 t->rank == 1 && t->elem == buf->elem && t->shape[0] == buf->shape[1];
    return (strip && rule_is_int(opnd(c, i), 32)) ||
           rule_fail(c, "needs a buffer, a strip of it, and the strip's number");
}

bool
rule_private_load(RuleCx *c)
{
    return is_strip(c, rule_given(c, 0), 1);
}

bool
rule_private_store(RuleCx *c)
{
    return is_strip(c, opnd(c, 1), 2);
}

bool
rule_local_dot(RuleCx *c)
{
    if (!is_mem(c, 0) || !is_mem(c, 1))
        return false;
    if (opnd(c, 2)->kind != TY_TILE)
        return rule_fail(c, "needs an accumulator tile, not %s", rule_str(c, opnd(c, 2)));
    c->out[0] = opnd(c, 2);
    return rule_dot_sizes(c);
}

bool
rule_async_copy(RuleCx *c)
{
    const Type *p = opnd(c, 0);
    c->out[0] = type_token(c->s->types);
    if (!type_is_ptr(p) || !is_mem(c, 1) || !type_same_shape(p, opnd(c, 1)) ||
        type_elem(p)->elem != opnd(c, 1)->elem)
        return rule_fail(c, "pointers %s do not fit buffer %s", rule_str(c, p),
                         rule_str(c, opnd(c, 1)));
    if (c->op->noperand >= 3 &&
        opnd(c, 2) != type_like(c->s->types, p, rule_scalar(c, SK_I1)))
        return rule_fail(c, "mask must be i1 in the pointers' shape");
    return c->op->noperand < 4 || opnd(c, 3) == rule_scalar(c, SK_I1) ||
           rule_fail(c, "the predicate must be an i1");
}

bool
rule_token(RuleCx *c)
{
    c->out[0] = type_token(c->s->types);
    for (int i = 0; i < c->op->noperand; i++)
        if (opnd(c, i)->kind != TY_TOKEN)
            return rule_fail(c, "operands must be tokens");
    return true;
}

bool
rule_bar_alloc(RuleCx *c)
{
    const Type *t = rule_given(c, 0);
    if (!t || t->kind != TY_BAR)
        return rule_fail(c, "needs a bar result");
    return attr_int(&c->op->attrs, ATTR_ARRIVALS, 0) > 0 ||
           rule_fail(c, "needs {arrivals}");
}

bool
rule_bar_index(RuleCx *c)
{
    c->out[0] = type_bar(c->s->types, 0);
    return (opnd(c, 0)->kind == TY_BAR && opnd(c, 0)->stages &&
            rule_is_int(opnd(c, 1), 32)) ||
           rule_fail(c, "needs an array of barriers and an i32 index");
}

static bool
is_bar(RuleCx *c, int i)
{
    return (opnd(c, i)->kind == TY_BAR && !opnd(c, i)->stages) ||
           rule_fail(c, "operand %d must be one barrier, not %s", i,
                     rule_str(c, opnd(c, i)));
}

static bool
pred_ok(RuleCx *c, int i)
{
    return c->op->noperand <= i || rule_is_int(opnd(c, i), 1) ||
           rule_fail(c, "predicate must be a scalar i1");
}

bool
rule_bar_expect(RuleCx *c)
{
    return is_bar(c, 0) && pred_ok(c, 1) &&
           (attr_has(&c->op->attrs, ATTR_BYTES) || rule_fail(c, "needs {bytes}"));
}

bool
rule_bar_arrive(RuleCx *c)
{
    return is_bar(c, 0) && pred_ok(c, 1);
}

bool
rule_bar_arrive_cluster(RuleCx *c)
{
    return is_bar(c, 0) && pred_ok(c, 1) && pred_ok(c, 2);
}

bool
rule_in_cluster(RuleCx *c)
{
    c->out[0] = rule_scalar(c, SK_I1);
    return true;
}

bool
rule_bar_wait(RuleCx *c)
{
    return is_bar(c, 0) && pred_ok(c, 2) &&
           (rule_is_int(opnd(c, 1), 32) || rule_fail(c, "phase must be i32"));
}

/* may: a predicate may follow the offsets. */
static bool
tma(RuleCx *c, int first, bool may)
{
    const Type *d = opnd(c, 0), *m = opnd(c, 1);
    if (d->kind != TY_DESC || !is_mem(c, 1) || d->elem != m->elem ||
        type_numel(d) != type_numel(m))
        return rule_fail(c, "descriptor %s does not fit buffer %s", rule_str(c, d),
                         rule_str(c, m));
    int at = d->rank + attr_has(&c->op->attrs, ATTR_PARTED);
    int n = c->op->noperand - first - at;
    if (n != 0 && !(may && n == 1))
        return rule_fail(c, "needs %d offsets", at);
    for (int i = first; i < first + at; i++)
        if (!rule_is_int(opnd(c, i), 32))
            return rule_fail(c, "offsets must be i32");
    return pred_ok(c, first + at);
}

bool
rule_tensor_map(RuleCx *c)
{
    const Attr *box = attr_find(&c->op->attrs, ATTR_BOX);
    int64_t width = attr_int(&c->op->attrs, ATTR_SWIZZLE, -1);
    bool sizes = box && box->n >= 1 && box->n <= 2;
    for (int i = 0; sizes && i < box->n; i++)
        sizes = box->v.ints[i] >= 1 && box->v.ints[i] <= 256;
    if (!sizes ||
        (width != 0 && width != 32 && width != 64 && width != 128))
        return rule_fail(c, "needs {box} of one or two sizes of 1 to 256 and {swizzle} "
                            "of 0, 32, 64 or 128 bytes");
    return rule_make_desc(c);
}

bool
rule_tma_load(RuleCx *c)
{
    return is_bar(c, 2) && tma(c, 3, true);
}

bool
rule_tma_store(RuleCx *c)
{
    return tma(c, 2, false);
}

bool
rule_wgmma(RuleCx *c)
{
    const Type *a = opnd(c, 0), *b = opnd(c, 1), *acc = opnd(c, 2);
    if (acc->kind == TY_ASYNC)
        acc = acc->elem;
    bool a_ok = a->kind == TY_TILE || (a->kind == TY_MEM && !a->stages);
    if (!a_ok || !is_mem(c, 1) || acc->kind != TY_TILE)
        return rule_fail(c,
                         "needs a (buffer or tile), b (buffer) and an accumulator tile");
    if (a->rank != 2 || b->rank != 2 || acc->rank != 2 || a->shape[1] != b->shape[0] ||
        a->shape[0] != acc->shape[0] || b->shape[1] != acc->shape[1])
        return rule_fail(c, "sizes must agree: %s, %s, %s", rule_str(c, a),
                         rule_str(c, b), rule_str(c, acc));
    c->out[0] = type_async(c->s->types, acc);
    return pred_ok(c, 3);
}

bool
rule_wgmma_open(RuleCx *c)
{
    if (opnd(c, 0)->kind != TY_TILE)
        return rule_fail(c, "needs a tile, not %s", rule_str(c, opnd(c, 0)));
    c->out[0] = type_async(c->s->types, opnd(c, 0));
    return true;
}

bool
rule_wgmma_wait(RuleCx *c)
{
    if (c->op->nresult != c->op->noperand)
        return rule_fail(c, "needs as many results as operands");
    for (int i = 0; i < c->op->noperand; i++) {
        if (opnd(c, i)->kind != TY_ASYNC)
            return rule_fail(c, "operand %d must be async<..>", i);
        c->out[i] = opnd(c, i)->elem;
    }
    return attr_has(&c->op->attrs, ATTR_PENDING) || rule_fail(c, "needs {pending}");
}

bool
rule_warp_specialize(RuleCx *c)
{
    const Attr *warps = attr_find(&c->op->attrs, ATTR_WARPS);
    const Attr *regs = attr_find(&c->op->attrs, ATTR_REGS);
    if (!warps || warps->n < 1)
        return rule_fail(c, "needs {warps}, one entry for each role");
    return !regs || regs->n == warps->n || rule_fail(c, "{regs} must match {warps}");
}

/* Rules of global memory: pointers, block pointers, descriptors; and of the
   buffers and strips of cpu form. */
#include "ir/infer.h"

#include "ir/base/util.h"

#include <string.h>

const Type *
rule_pointed(RuleCx *c, const Type *p)
{
    return type_is_ptr(p) ? type_like(c->s->types, p, type_elem(p)->elem) : NULL;
}

bool
rule_mask(RuleCx *c, int i, const Type *like)
{
    if (c->op->noperand <= i ||
        opnd(c, i) == type_like(c->s->types, like, rule_scalar(c, SK_I1)))
        return true;
    return rule_fail(c, "mask must be i1 in the shape of %s, not %s", rule_str(c, like),
                     rule_str(c, opnd(c, i)));
}

bool
rule_load(RuleCx *c)
{
    const Type *t = rule_pointed(c, opnd(c, 0));
    if (!t)
        return rule_fail(c, "needs pointers, not %s", rule_str(c, opnd(c, 0)));
    c->out[0] = t;
    if (!rule_mask(c, 1, opnd(c, 0)))
        return false;
    return c->op->noperand < 3 || opnd(c, 2) == t ||
           rule_fail(c, "other must be %s, not %s", rule_str(c, t),
                     rule_str(c, opnd(c, 2)));
}

bool
rule_store(RuleCx *c)
{
    const Type *t = rule_pointed(c, opnd(c, 0));
    if (!t || opnd(c, 1) != t)
        return rule_fail(c, "value %s does not fit pointers %s", rule_str(c, opnd(c, 1)),
                         rule_str(c, opnd(c, 0)));
    return rule_mask(c, 2, opnd(c, 0));
}

static bool
ints(RuleCx *c, int from, int n, int bits, const char *what)
{
    for (int i = from; i < from + n; i++)
        if (i >= c->op->noperand || !rule_is_int(opnd(c, i), bits))
            return rule_fail(c, "needs %d %s of type i%d", n, what, bits);
    return true;
}

bool
rule_make_block_ptr(RuleCx *c)
{
    const Type *t = rule_given(c, 0);
    if (!t || t->kind != TY_BLOCK_PTR || opnd(c, 0)->kind != TY_PTR ||
        opnd(c, 0)->elem != t->elem)
        return rule_fail(c, "needs a pointer and a block_ptr result of its element");
    if (c->op->noperand != 1 + 3 * t->rank)
        return rule_fail(c, "needs %d shape, stride and offset operands", 3 * t->rank);
    return ints(c, 1, 2 * t->rank, 64, "sizes and strides") &&
           ints(c, 1 + 2 * t->rank, t->rank, 32, "offsets");
}

bool
rule_advance(RuleCx *c)
{
    const Type *t = opnd(c, 0);
    c->out[0] = t;
    if (t->kind != TY_BLOCK_PTR || c->op->noperand != 1 + t->rank)
        return rule_fail(c, "needs a block pointer and an offset for each dimension");
    return ints(c, 1, t->rank, 32, "offsets");
}

static bool
boundary_ok(RuleCx *c, const Type *t)
{
    const Attr *dims = attr_find(&c->op->attrs, ATTR_BOUNDARY);
    for (int i = 0; dims && i < dims->n; i++)
        if (dims->v.ints[i] < 0 || dims->v.ints[i] >= t->rank)
            return rule_fail(c, "{boundary} names dimension %lld of rank %d",
                             (long long)dims->v.ints[i], t->rank);
    return true;
}

static const Type *
block_tile(RuleCx *c, const Type *t)
{
    return type_tile(c->s->types, t->elem, t->rank, t->shape, NULL);
}

/* The given result or operand, layout aside, must be this tile. */
static bool
is_block(RuleCx *c, const Type *t, const Type *block)
{
    return t && t->kind == TY_TILE &&
           type_with_layout(c->s->types, t, NULL) == block_tile(c, block);
}

bool
rule_block_load(RuleCx *c)
{
    const Type *t = opnd(c, 0);
    if (t->kind != TY_BLOCK_PTR)
        return rule_fail(c, "needs a block pointer, not %s", rule_str(c, t));
    if (!rule_given(c, 0))
        c->out[0] = block_tile(c, t);
    else if (!is_block(c, rule_given(c, 0), t))
        return rule_fail(c, "result must be %s", rule_str(c, block_tile(c, t)));
    return boundary_ok(c, t);
}

bool
rule_block_store(RuleCx *c)
{
    const Type *t = opnd(c, 0);
    if (t->kind != TY_BLOCK_PTR || !is_block(c, opnd(c, 1), t))
        return rule_fail(c, "value %s does not fit %s", rule_str(c, opnd(c, 1)),
                         rule_str(c, t));
    return boundary_ok(c, t);
}

bool
rule_make_desc(RuleCx *c)
{
    const Type *t = rule_given(c, 0);
    if (!t || t->kind != TY_DESC || opnd(c, 0)->kind != TY_PTR ||
        opnd(c, 0)->elem != t->elem)
        return rule_fail(c, "needs a pointer and a desc result of its element");
    if (c->op->noperand != 1 + 2 * t->rank)
        return rule_fail(c, "needs %d shape and stride operands", 2 * t->rank);
    return ints(c, 1, t->rank, 32, "sizes") &&
           ints(c, 1 + t->rank, t->rank, 64, "strides");
}

static bool
is_desc(RuleCx *c, int i)
{
    return opnd(c, i)->kind == TY_DESC ||
           rule_fail(c, "operand %d must be a descriptor, not %s", i,
                     rule_str(c, opnd(c, i)));
}

bool
rule_desc_load(RuleCx *c)
{
    int parted = attr_has(&c->op->attrs, ATTR_PARTED);
    if (!is_desc(c, 0) || !ints(c, 1, opnd(c, 0)->rank + parted, 32, "offsets"))
        return false;
    if (!rule_given(c, 0))
        c->out[0] = block_tile(c, opnd(c, 0));
    else if (type_numel(rule_given(c, 0)) != type_numel(opnd(c, 0)) ||
             type_elem(rule_given(c, 0)) != opnd(c, 0)->elem)
        return rule_fail(c, "result does not fit %s", rule_str(c, opnd(c, 0)));
    return true;
}

bool
rule_desc_store(RuleCx *c)
{
    if (!is_desc(c, 0) || !ints(c, 2, opnd(c, 0)->rank, 32, "offsets"))
        return false;
    return (opnd(c, 1)->kind == TY_TILE &&
            type_numel(opnd(c, 1)) == type_numel(opnd(c, 0)) &&
            type_elem(opnd(c, 1)) == opnd(c, 0)->elem) ||
           rule_fail(c, "value %s does not fit %s", rule_str(c, opnd(c, 1)),
                     rule_str(c, opnd(c, 0)));
}

static bool
rows_ok(RuleCx *c, int i)
{
    return (opnd(c, i)->kind == TY_TILE && opnd(c, i)->rank == 1 &&
            type_is_int(opnd(c, i))) ||
           rule_fail(c, "row indices must be a rank-1 integer tile");
}

bool
rule_desc_gather(RuleCx *c)
{
    const Type *t = rule_given(c, 0);
    if (!is_desc(c, 0) || !rows_ok(c, 1) || !ints(c, 2, 1, 32, "column offset"))
        return false;
    return (t && t->kind == TY_TILE && t->rank == 2 && t->elem == opnd(c, 0)->elem) ||
           rule_fail(c, "needs a rank-2 result of the descriptor's element");
}

bool
rule_desc_scatter(RuleCx *c)
{
    return is_desc(c, 0) && rows_ok(c, 2) && ints(c, 3, 1, 32, "column offset") &&
           (opnd(c, 1)->kind == TY_TILE || rule_fail(c, "needs a tile to store"));
}

/* cpu form */

/* Scratch memory is measured over the kernel's own ops: none is made in a region. */
bool
rule_buf_alloc(RuleCx *c)
{
    const Type *t = rule_given(c, 0);
    int64_t offset = attr_int(&c->op->attrs, ATTR_OFFSET, 0);
    if (!t || t->kind != TY_BUF)
        return rule_fail(c, "needs a buf result");
    if (c->op->parent && c->op->parent->parent)
        return rule_fail(c, "must stand outside of loops and branches");
    return (offset >= 0 && offset <= INT64_C(1) << 40) ||
           rule_fail(c, "{offset} must be 0 to 2^40");
}

/* Indices are i64, or strips of i64 where lanes go to places of their own. */
static bool
indices(RuleCx *c, int from, const Type *buf)
{
    if (buf->kind != TY_BUF)
        return rule_fail(c, "needs a buffer, not %s", rule_str(c, buf));
    if (c->op->noperand != from + buf->rank)
        return rule_fail(c, "needs %d indices", buf->rank);
    int64_t axis = attr_int(&c->op->attrs, ATTR_AXIS, 0);
    if (axis < 0 || axis >= buf->rank)
        return rule_fail(c, "{axis} must be below the rank %d", buf->rank);
    for (int i = from; i < c->op->noperand; i++)
        if (type_elem(opnd(c, i)) != rule_scalar(c, SK_I64) || opnd(c, i)->rank > 1)
            return rule_fail(c, "index %d must be i64 or a strip of it, not %s", i - from,
                             rule_str(c, opnd(c, i)));
    return true;
}

/* One element, or a strip of at most 64 of them. */
static bool
strip_of(RuleCx *c, const Type *t, const Type *elem)
{
    return (t && type_elem(t) == elem && type_numel(t) <= 64 && t->rank <= 1) ||
           rule_fail(c, "needs an element or a strip of at most 64 of %s",
                     rule_str(c, elem));
}

bool
rule_buf_load(RuleCx *c)
{
    return indices(c, 1, opnd(c, 0)) && strip_of(c, rule_given(c, 0), opnd(c, 0)->elem);
}

bool
rule_buf_store(RuleCx *c)
{
    return indices(c, 2, opnd(c, 0)) && strip_of(c, opnd(c, 1), opnd(c, 0)->elem);
}

static bool
is_transposed(const Op *op, int operand)
{
    const Attr *a = attr_find(&op->attrs, ATTR_TRANSPOSED);
    for (int i = 0; a && i < a->n; i++)
        if (a->v.ints[i] == operand)
            return true;
    return false;
}

static bool
keeps(const RuleCx *c)
{
    const Type *kept = opnd(c, 7);
    return attr_int(&c->op->attrs, ATTR_AT_ONCE, 0) > 0 &&
           opnd(c, 6) == rule_scalar(c, SK_I1) && opnd(c, 2)->rank == 2 &&
           kept->kind == TY_BUF && kept->elem == rule_scalar(c, SK_I8);
}

/* Products over the last two dimensions; the ones before are batches. */
bool
rule_buf_dot(RuleCx *c)
{
    const Type *a = opnd(c, 0), *b = opnd(c, 1), *acc = opnd(c, 2);
    int r = acc->rank;
    for (int i = 0; i < 3; i++)
        if (opnd(c, i)->kind != TY_BUF || opnd(c, i)->rank != r || r < 2)
            return rule_fail(c, "needs buffers of one rank of at least 2");
    int ta = is_transposed(c->op, 0), tb = is_transposed(c->op, 1);
    bool agree = a->shape[r - 1 - ta] == b->shape[r - 2 + tb] &&
                 a->shape[r - 2 + ta] == acc->shape[r - 2] &&
                 b->shape[r - 1 - tb] == acc->shape[r - 1];
    for (int i = 0; i < r - 2; i++)
        agree &= a->shape[i] == acc->shape[i] && b->shape[i] == acc->shape[i];
    if (agree && !rule_dot_elems(a->elem, b->elem, acc->elem))
        return rule_fail(c, "elements must be numbers, all floats or all integers");
    if (c->op->noperand > 3 && opnd(c, 3) != rule_scalar(c, SK_I1))
        return rule_fail(c, "the fourth operand must be i1");
    if (c->op->noperand == 5 || c->op->noperand == 7)
        return rule_fail(c, "rows and columns come together, as what is kept does");
    for (int i = 4; i < c->op->noperand && i < 6; i++)
        if (opnd(c, i) != rule_scalar(c, SK_I64))
            return rule_fail(c, "rows and columns must be i64");
    if (c->op->noperand == 8 && !keeps(c))
        return rule_fail(c, "{at_once} needs an i1, and a buffer of i8 for rank 2");
    return agree || rule_fail(c, "sizes must agree: %s, %s, %s", rule_str(c, a),
                              rule_str(c, b), rule_str(c, acc));
}

static bool
is_order(const Op *op, const Type *elem)
{
    static const char *const floats[] = {"ogt", "olt"};
    static const char *const ints[] = {"sgt", "slt", "ugt", "ult"};
    Name pred = attr_str(&op->attrs, ATTR_PRED);
    bool is_float = scalar_is_float(elem->scalar), found = false;
    for (int i = 0; pred && is_float && i < COUNT_OF(floats); i++)
        found |= strcmp(pred, floats[i]) == 0;
    for (int i = 0; pred && !is_float && i < COUNT_OF(ints); i++)
        found |= strcmp(pred, ints[i]) == 0;
    return found;
}

bool
rule_rows_of(RuleCx *c, const Type *to, const Type *from, TypeKind kind)
{
    int last = from->rank - 1;
    bool agree = to && to->kind == kind && from->kind == kind && last >= 0 &&
                 to->rank == from->rank && to->elem == from->elem &&
                 to->shape[last] <= from->shape[last];
    for (int i = 0; agree && i < last; i++)
        agree = to->shape[i] == from->shape[i];
    if (!agree)
        return rule_fail(c, "needs rows and as many rows that are not longer");
    if (from->elem->kind != TY_SCALAR || type_bits(from->elem) < 8 ||
        (scalar_is_float(from->elem->scalar) && type_bits(from->elem) < 16))
        return rule_fail(c, "needs integers, or floats of at least 16 bits");
    return is_order(c->op, from->elem) ||
           rule_fail(c, "{pred} must be sgt, slt, ugt or ult, of floats ogt or olt");
}

bool
rule_buf_view(RuleCx *c)
{
    const Type *t = opnd(c, 0);
    if (t->kind != TY_BUF || t->rank != 2)
        return rule_fail(c, "needs a buffer of rank 2, not %s", rule_str(c, t));
    if (opnd(c, 1) != rule_scalar(c, SK_I1) || opnd(c, 3) != rule_scalar(c, SK_I64))
        return rule_fail(c, "needs an i1, and an i64 behind the pointer");
    for (int i = 2; i < c->op->noperand; i += 2)
        if (opnd(c, i)->kind != TY_PTR || opnd(c, i)->elem != t->elem)
            return rule_fail(c, "operand %d must point to the buffer's elements", i);
    c->out[0] = t;
    return true;
}

bool
rule_buf_reduce(RuleCx *c)
{
    const Type *from = opnd(c, 0), *t = rule_given(c, 0);
    if (from->kind != TY_BUF || from->rank != 2)
        return rule_fail(c, "needs a buffer of rank 2, not %s", rule_str(c, from));
    return strip_of(c, t, from->elem) &&
           (type_numel(t) == from->shape[0] || rule_fail(c, "needs a lane for each row"));
}

bool
rule_buf_topk(RuleCx *c)
{
    return rule_rows_of(c, opnd(c, 1), opnd(c, 0), TY_BUF);
}

bool
rule_vload(RuleCx *c)
{
    const Type *p = opnd(c, 0), *t = rule_given(c, 0);
    if (p->kind != TY_PTR || !strip_of(c, t, p->elem))
        return rule_fail(c, "needs a scalar pointer and a strip result");
    return rule_mask(c, 1, t) && (c->op->noperand < 3 || opnd(c, 2) == t ||
                                rule_fail(c, "other must be %s", rule_str(c, t)));
}

bool
rule_vstore(RuleCx *c)
{
    const Type *p = opnd(c, 0);
    if (p->kind != TY_PTR || !strip_of(c, opnd(c, 1), p->elem))
        return rule_fail(c, "needs a scalar pointer and a strip");
    return rule_mask(c, 2, opnd(c, 1));
}

bool
rule_vfetch(RuleCx *c)
{
    bool ok = opnd(c, 0)->kind == TY_PTR && attr_int(&c->op->attrs, ATTR_BYTES, 0) > 0;
    return ok || rule_fail(c, "needs a scalar pointer and {bytes}");
}

/* Operands from `from` on are the indices of the first lane of a strip like `of`, or of
   each; {axis}, where lanes run along one dimension, is one of them. */
static bool
lane_indices(RuleCx *c, int from, const Type *of)
{
    int rank = c->op->noperand - from;
    if (rank > MAX_RANK)
        return rule_fail(c, "a tile has at most %d dimensions", MAX_RANK);
    for (int i = from; i < c->op->noperand; i++) {
        const Type *t = opnd(c, i), *i64 = rule_scalar(c, SK_I64);
        if (t != i64 && t != type_like(c->s->types, of, i64))
            return rule_fail(c, "index %d must be i64 or a strip of it, not %s", i - from,
                             rule_str(c, t));
    }
    int64_t axis = attr_int(&c->op->attrs, ATTR_AXIS, 0);
    return (axis >= 0 && axis < max_i64(rank, 1)) ||
           rule_fail(c, "{axis} must be below the rank %d", rank);
}

/* A number, a pointer, or a strip of them. */
static bool
is_value(const Type *t)
{
    return t->kind == TY_TILE || t->kind == TY_SCALAR || t->kind == TY_PTR;
}

bool
rule_vprint(RuleCx *c)
{
    const Type *t = opnd(c, 0);
    if (!is_value(t))
        return rule_fail(c, "needs a value, not %s", rule_str(c, t));
    return strip_of(c, t, type_elem(t)) && lane_indices(c, 1, t);
}

bool
rule_vassert(RuleCx *c)
{
    return strip_of(c, opnd(c, 0), rule_scalar(c, SK_I1)) &&
           lane_indices(c, 1, opnd(c, 0));
}

bool
rule_vcheck(RuleCx *c)
{
    static const char *const kinds[] = {"read", "write", "atomic", "poll"};
    const Type *p = opnd(c, 0), *mask = opnd(c, 1);
    Name access = attr_str(&c->op->attrs, ATTR_ACCESS);
    int kind = 0;
    while (access && kind < COUNT_OF(kinds) && strcmp(access, kinds[kind]) != 0)
        kind++;
    bool writes = kind == 1;
    if (!access || kind == COUNT_OF(kinds))
        return rule_fail(c, "needs {access}: read, write, atomic or poll");
    if (!type_is_ptr(p) || !strip_of(c, mask, rule_scalar(c, SK_I1)))
        return rule_fail(c, "needs a pointer, or a strip of them, and a mask");
    if (p->kind == TY_TILE && !type_same_shape(p, mask))
        return rule_fail(c, "mask must have the shape of the pointers");
    if (writes && c->op->noperand < 3)
        return rule_fail(c, "needs the value that is stored");
    if (writes && opnd(c, 2) != type_like(c->s->types, mask, type_elem(p)->elem))
        return rule_fail(c, "value %s does not fit the pointer", rule_str(c, opnd(c, 2)));
    int64_t param = attr_int(&c->op->attrs, ATTR_PARAM, -1);
    const Region *r = c->op->parent;
    while (r && r->parent)
        r = r->parent->parent;
    if (param < -1 || (r && param >= r->narg))
        return rule_fail(c, "{param} is no parameter");
    return lane_indices(c, writes ? 3 : 2, mask);
}

/* Making IR. Types come from the op's rule (ir/infer*.c); an op that its rule refuses
   is an internal error, because the frontend and the passes check before they build. */
#include "ir/build.h"

#include "ir/base/util.h"
#include "ir/edit.h"
#include "ir/verify.h"

#include <string.h>

Module *
module_new(Session *s)
{
    Module *m = arena_new(&s->mod, Module);
    m->s = s;
    return m;
}

Func *
module_func(Module *m, const char *name)
{
    for (int i = 0; i < m->nfunc; i++)
        if (strcmp(m->funcs[i]->name, name) == 0)
            return m->funcs[i];
    return NULL;
}

Func *
func_new(Module *m, const char *name, Loc loc)
{
    Arena *a = &m->s->mod;
    if (m->nfunc == m->func_cap) {
        int cap = m->func_cap ? m->func_cap * 2 : 4;
        Func **funcs = arena_array(a, Func *, cap);
        if (m->nfunc)
            memcpy(funcs, m->funcs, (size_t)m->nfunc * sizeof *funcs);
        m->funcs = funcs;
        m->func_cap = cap;
    }
    Func *f = arena_new(a, Func);
    m->funcs[m->nfunc++] = f;
    f->name = name_of(&m->s->names, name);
    f->module = m;
    f->loc = loc;
    f->num_warps = 4;
    f->num_stages = 3;
    f->num_ctas = 1;
    f->body = region_new(f, NULL);
    return f;
}

Value *
func_param(Func *f, const char *name, const char *sig, const Type *t, int64_t div)
{
    Session *s = f->module->s;
    int n = f->body->narg;
    if (!n || is_pow2(n)) { /* params grows in step with the doubling of its size */
        Param *p = arena_array(&s->mod, Param, n ? 2 * n : 1);
        if (n)
            memcpy(p, f->params, (size_t)n * sizeof *p);
        f->params = p;
    }
    Name interned = name_of(&s->names, name);
    f->params[n] = (Param){.name = interned, .sig = name_of(&s->names, sig),
                           .div = div, .source = n};
    return region_arg(f->body, t, interned);
}

Builder
builder_at_end(Func *f, Region *r)
{
    return (Builder){.s = f->module->s, .func = f, .region = r};
}

Builder
builder_before(Op *op)
{
    Func *f = op->parent->func;
    return (Builder){.s = f->module->s, .func = f, .region = op->parent, .before = op,
                     .loc = op->loc};
}

Builder
builder_after(Op *op)
{
    Builder b = builder_before(op);
    b.before = op->next;
    return b;
}

Region *
region_new(Func *f, Op *parent)
{
    Arena *a = &f->module->s->mod;
    Region *r = arena_new(a, Region);
    r->func = f;
    r->parent = parent;
    if (!parent)
        return r;
    int depth = 0;
    for (const Region *p = parent->parent; p; p = p->parent ? p->parent->parent : NULL)
        if (++depth > MAX_REGION_DEPTH)
            fail_jump(&f->module->s->fail, FAIL_LIMIT,
                      "control flow nested deeper than %d levels", MAX_REGION_DEPTH);
    Region **list = arena_array(a, Region *, parent->nregion + 1);
    if (parent->nregion)
        memcpy(list, parent->regions, (size_t)parent->nregion * sizeof *list);
    list[parent->nregion++] = r;
    parent->regions = list;
    return r;
}

Value *
region_arg(Region *r, const Type *t, Name name)
{
    Arena *a = &r->func->module->s->mod;
    if (r->narg == r->arg_cap) {
        int cap = r->arg_cap ? r->arg_cap * 2 : 4;
        Value **args = arena_array(a, Value *, cap);
        if (r->narg)
            memcpy(args, r->args, (size_t)r->narg * sizeof *args);
        r->args = args;
        r->arg_cap = cap;
    }
    Value *v = arena_new(a, Value);
    *v = (Value){.type = t, .region = r, .index = r->narg, .name = name,
                 .id = r->func->next_id++};
    r->args[r->narg++] = v;
    return v;
}

static void
insert(Builder *b, Op *op)
{
    Region *r = b->region;
    op->parent = r;
    op->next = b->before;
    op->prev = b->before ? b->before->prev : r->last;
    *(op->prev ? &op->prev->next : &r->first) = op;
    *(op->next ? &op->next->prev : &r->last) = op;
}

static void
infer_types(Builder *b, Op *op)
{
    const Type *few[8] = {0};
    const Type **got = op->nresult <= COUNT_OF(few)
                           ? few
                           : arena_array(&b->s->mod, const Type *, op->nresult);
    Buf why;
    buf_init(&why, &b->s->mod);
    if (!op_infer(b->s, op, got, &why))
        bug(&b->s->fail, "'%s' built wrongly: %s", op_info[op->kind].name,
            why.s ? why.s : "its rule refuses it");
    for (int i = 0; i < op->nresult; i++) {
        if (!op->results[i].type)
            op->results[i].type = got[i];
        if (!op->results[i].type)
            bug(&b->s->fail, "'%s' built without a result type", op_info[op->kind].name);
    }
}

Op *
build_unchecked(Builder *b, OpKind k, Value *const *operands, int n,
                const AttrList *attrs, const Type *const *types, int nres)
{
    Arena *a = &b->s->mod;
    Func *f = b->func;
    if (f->next_id >= (uint32_t)MAX_OPS * 4)
        fail_jump(&b->s->fail, FAIL_LIMIT, "kernel '%s' has more than %d operations",
                  f->name, MAX_OPS);
    Op *op = arena_new(a, Op);
    op->kind = k;
    op->loc = b->loc;
    if (b->call)
        op->loc.call = b->call;
    op->id = f->next_id++;
    insert(b, op);
    if (n) {
        op->operands = arena_array(a, Use, n);
        op->operand_cap = n;
        for (int i = 0; i < n; i++)
            op_add_operand(op, operands[i]);
    }
    attr_copy(a, &op->attrs, attrs);
    op->nresult = nres;
    op->results = nres ? arena_array(a, Value, nres) : NULL;
    for (int i = 0; i < nres; i++)
        op->results[i] = (Value){.op = op, .index = i, .id = f->next_id++,
                                 .type = types ? types[i] : NULL};
    return op;
}

Op *
build_op(Builder *b, OpKind k, Value *const *operands, int n, const AttrList *attrs,
         const Type *const *types, int nres)
{
    Op *op = build_unchecked(b, k, operands, n, attrs, types, nres);
    infer_types(b, op);
    return op;
}

static Value *
one(Builder *b, OpKind k, Value *const *in, int n, const AttrList *attrs, const Type *t)
{
    return &build_op(b, k, in, n, attrs, t ? &t : NULL, 1)->results[0];
}

Value *
build_int(Builder *b, const Type *t, int64_t v)
{
    AttrList l = {0};
    int bits = type_bits(t);
    if (bits == 1)
        v &= 1;
    else if (bits < 64)
        v = (int64_t)((uint64_t)v << (64 - bits)) >> (64 - bits);
    attr_set_int(&b->s->mod, &l, ATTR_VALUE, v);
    return one(b, OP_CONST, NULL, 0, &l, t);
}

Value *
build_float(Builder *b, const Type *t, double v)
{
    AttrList l = {0};
    attr_set_float(&b->s->mod, &l, ATTR_FVALUE, v);
    return one(b, OP_CONST, NULL, 0, &l, t);
}

Value *
build_unary(Builder *b, OpKind k, Value *x)
{
    return one(b, k, &x, 1, NULL, NULL);
}

Value *
build_binary(Builder *b, OpKind k, Value *x, Value *y)
{
    return one(b, k, (Value *[]){x, y}, 2, NULL, NULL);
}

Value *
build_cast(Builder *b, OpKind k, Value *x, const Type *elem)
{
    return one(b, k, &x, 1, NULL, type_like(b->s->types, x->type, elem));
}

Value *
build_cmp(Builder *b, OpKind k, const char *pred, Value *x, Value *y)
{
    AttrList l = {0};
    attr_set_str(&b->s->mod, &l, ATTR_PRED, name_of(&b->s->names, pred));
    return one(b, k, (Value *[]){x, y}, 2, &l, NULL);
}

Value *
build_select(Builder *b, Value *c, Value *x, Value *y)
{
    return one(b, OP_SELECT, (Value *[]){c, x, y}, 3, NULL, NULL);
}

Value *
build_splat(Builder *b, Value *scalar, const Type *tile)
{
    return one(b, OP_SPLAT, &scalar, 1, NULL,
               type_like(b->s->types, tile, type_elem(scalar->type)));
}

Value *
build_guard(Builder *b, Value *cond, Value *mask, const Type *like)
{
    TypeTable *types = b->s->types;
    if (type_is_tile(like))
        cond = build_splat(b, cond, type_like(types, like, type_scalar(types, SK_I1)));
    return mask ? build_binary(b, OP_AND, mask, cond) : cond;
}

Value *
build_broadcast(Builder *b, Value *x, const int64_t *shape)
{
    return one(b, OP_BROADCAST, &x, 1, NULL,
               type_tile(b->s->types, type_elem(x->type), x->type->rank, shape, NULL));
}

Value *
build_expand_dims(Builder *b, Value *x, int axis)
{
    AttrList l = {0};
    attr_set_int(&b->s->mod, &l, ATTR_AXIS, axis);
    return one(b, OP_EXPAND_DIMS, &x, 1, &l, NULL);
}

Value *
build_reshape(Builder *b, Value *x, int rank, const int64_t *shape)
{
    const Type *e = type_elem(x->type);
    return one(b, OP_RESHAPE, &x, 1, NULL,
               rank ? type_tile(b->s->types, e, rank, shape, NULL) : e);
}

Value *
build_trans(Builder *b, Value *x, const int64_t *perm)
{
    AttrList l = {0};
    attr_set_ints(&b->s->mod, &l, ATTR_PERM, perm, x->type->rank);
    return one(b, OP_TRANS, &x, 1, &l, NULL);
}

Value *
build_load(Builder *b, Value *ptr, Value *mask, Value *other, const AttrList *attrs)
{
    Value *in[3] = {ptr, mask, other};
    return one(b, OP_LOAD, in, other ? 3 : mask ? 2 : 1, attrs, NULL);
}

Op *
build_store(Builder *b, Value *ptr, Value *v, Value *mask, const AttrList *attrs)
{
    Value *in[3] = {ptr, v, mask};
    return build_op(b, OP_STORE, in, mask ? 3 : 2, attrs, NULL, 0);
}

Op *
build_yield(Builder *b, Value *const *vals, int n)
{
    return build_op(b, OP_YIELD, vals, n, NULL, NULL, 0);
}

Op *
build_for(Builder *b, Value *lo, Value *hi, Value *step, Value *const *inits, int n)
{
    Value **in = arena_array(&b->s->mod, Value *, n + 3);
    const Type **types = arena_array(&b->s->mod, const Type *, n + 1);
    in[0] = lo;
    in[1] = hi;
    in[2] = step;
    for (int i = 0; i < n; i++) {
        in[3 + i] = inits[i];
        types[i] = inits[i]->type;
    }
    Op *op = build_op(b, OP_FOR, in, n + 3, NULL, types, n);
    Region *body = region_new(b->func, op);
    region_arg(body, lo->type, NULL);
    for (int i = 0; i < n; i++)
        region_arg(body, inits[i]->type, inits[i]->name);
    return op;
}

Op *
build_if(Builder *b, Value *cond, const Type *const *types, int n)
{
    Op *op = build_op(b, OP_IF, &cond, 1, NULL, types, n);
    region_new(b->func, op);
    region_new(b->func, op);
    return op;
}

/* Operands of dots that are multiplied where they lie.

   A tile that is loaded only for a dot would be copied to a buffer first, and from there
   into the order of the machine's instructions. If its rows are so many elements apart
   and no mask leaves out a part of it, code generation takes them from memory at once;
   else, as at the edges of a matrix, the buffer serves as before:

       %x = load %a + %rows * %s + %cols      %whole = all of %rows < %m, ..
       dot %x, ..                        =>   if %whole { } else { .. buf_store %buf, .. }
                                              %v = buf_view %buf, %whole, %p, %s, %next
                                              buf_dot %v, ..

   The tile's address is evaluated in strips of all its rows and of all its columns, which
   also says what has to be tested. That two such strips say all of it needs an address
   that is a sum of one term for the row and one for the column. */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"
#include "ir/edit.h"
#include "ir/fold.h"

/* MOST_LANES: of a strip that comes out of a buffer. */
enum { MOST_STEPS = 64, MOST_LANES = 64 };

typedef struct View {
    Simd *n;
    Group *pack;
    Op *load;
    int along; /* the dimension of the load that memory runs along */
    Op *branch;
    Value *cond; /* of the tests in front of it; NULL: there are none */
} View;

static int
long_dims(const Type *t)
{
    int k = 0;
    for (int i = 0; i < t->rank; i++)
        k += t->shape[i] > 1;
    return k;
}

/* Is v, of two dimensions, a sum (of masks: a conjunction) of tiles of one? */
static bool
separable(const Value *v, int *left)
{
    const Op *op = v->op;
    if (!simd_tile(v) || long_dims(v->type) < 2)
        return true;
    if (!op || --*left < 0)
        return false;
    switch ((int)op->kind) {
    case OP_CONST:
    case OP_ADD:
    case OP_AND:
    case OP_ADDPTR:
    case OP_SEXT:
    case OP_HINT:
    case OP_SPLAT:
    case OP_BROADCAST: break;
    default: return false;
    }
    for (int i = 0; i < op->noperand; i++)
        if (!separable(op_operand(op, i), left))
            return false;
    return true;
}

/* Can tile v be evaluated in strips of all its rows and columns? Tiles that are kept come
   out of buffers, in strips of at most MOST_LANES. */
static bool
evaluates(Simd *n, const Value *v, int *left)
{
    const Op *op = v->op;
    if (!simd_tile(v))
        return true;
    for (int d = 0; d < v->type->rank; d++)
        if (v->type->shape[d] > MOST_LANES && (!op || plan_get(n, v)->slot))
            return false;
    if (!op || plan_get(n, v)->slot)
        return true;
    if (--*left < 0)
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!evaluates(n, op_operand(op, i), left))
            return false;
    return true;
}

/* The load that operand v is, as it is or with its dimensions exchanged. */
static Op *
load_of(Simd *n, Value *v, bool *swapped)
{
    Op *trans = value_def(v, OP_TRANS);
    *swapped = trans != NULL;
    if (plan_get(n, v)->slot)
        return NULL;
    v = trans ? op_operand(trans, 0) : v;
    Op *load = value_def(v, OP_LOAD);
    int left = MOST_STEPS, steps = 4 * MOST_STEPS;
    bool ok = load && v->type->rank == 2 && !plan_get(n, v)->slot &&
              !attr_has(&load->attrs, ATTR_VOLATILE);
    for (int i = 0; ok && i < load->noperand && i < 2; i++) {
        const Value *x = op_operand(load, i);
        ok = simd_tile(x) && plan_get(n, x)->index && separable(x, &left) &&
             evaluates(n, x, &steps);
    }
    return ok ? load : NULL;
}

static void
else_copy(View *w)
{
    for (int i = 0; i < 2; i++) {
        Builder arm = builder_at_end(w->n->f, w->branch->regions[i]);
        if (i)
            simd_group(w->n, &arm, w->pack);
        build_yield(&arm, NULL, 0);
    }
    op_set_operand(w->branch, 0, w->cond);
    attr_set_int(&w->n->s->mod, &w->branch->attrs, ATTR_LIKELY, 0);
}

bool
simd_may_view(Simd *n, Value *v)
{
    bool swapped;
    return load_of(n, v, &swapped) != NULL;
}

/* The address of the first element, where lanes run along dimension d and the other index
   is `at`. False: something speaks against it. */
static bool
strip(View *w, int d, int64_t at, Ev *p, Value **next)
{
    const Type *t = op_operand(w->load, 0)->type;
    Ix ix[2] = {{IX_CONST, at, NULL}, {IX_CONST, at, NULL}};
    Cx pre, cx;
    Ev rest;
    int lanes = (int)t->shape[d];
    ix[d] = (Ix){lanes > 1 ? IX_AFF : IX_CONST, 0, NULL};
    cx_init(&pre, w->n, builder_before(w->branch), lanes);
    cx_init(&cx, w->n, builder_at_end(w->n->f, w->branch->regions[0]), lanes);
    pre.b.loc = cx.b.loc = w->load->loc;
    pre.g = cx.g = w->pack;
    cx.pre = &pre;
    cx.fast = true;
    cx.steps = pre.steps = d != w->along;
    bool full = w->load->noperand < 2;
    full = full || simd_full(&cx, op_operand(w->load, 1), ix, &rest);
    *p = simd_eval(&cx, op_operand(w->load, 0), ix);
    if (next)
        *next = simd_next_round(&cx, op_operand(w->load, 0), w->load, ix, 1);
    if (cx.cond && w->cond)
        w->cond = build_binary(&pre.b, OP_AND, w->cond, cx.cond);
    else if (cx.cond)
        w->cond = cx.cond;
    return full;
}

/* How far rows are apart, i64; NULL: they are not at equal distances. */
static Value *
pitch(View *w, const Ev *p)
{
    Builder b = builder_at_end(w->n->f, w->branch->regions[0]);
    switch (p->kind) {
    case EV_UNI: return simd_int(&b, w->n->i64, 0);
    case EV_AFF: return simd_int(&b, w->n->i64, p->stride);
    case EV_STEP:
        return type_bits(p->then->type) == 64
                   ? p->then
                   : build_cast(&b, OP_SEXT, p->then, w->n->i64);
    default: return NULL;
    }
}

static void
move_in_front(Op *branch)
{
    region_each(branch->regions[0], op) op_move_before(op, branch);
}

Value *
simd_view(Simd *n, Builder *b, Group *pack, Value *v, bool transposed, Slot *slot)
{
    bool swapped;
    View w = {.n = n, .pack = pack, .load = load_of(n, v, &swapped)};
    if (n->f->check || !w.load ||
        type_elem(op_result(w.load, 0)->type) != slot_find(slot)->type->elem)
        return NULL;
    w.along = transposed == swapped;
    const Type *t = op_operand(w.load, 0)->type;
    Value *next = NULL;
    Ev down, first, last;
    w.branch = build_if(b, build_int(b, n->i1, 1), NULL, 0);
    bool ok = strip(&w, !w.along, 0, &down, NULL) &&
              strip(&w, w.along, 0, &first, &next) &&
              strip(&w, w.along, t->shape[!w.along] - 1, &last, NULL);
    bool one = t->shape[w.along] == 1;
    ok &= one || (first.kind == EV_AFF && first.stride == 1 && last.kind == EV_AFF &&
                  last.stride == 1);
    Value *apart = ok ? pitch(&w, &down) : NULL;
    move_in_front(w.branch);
    if (!apart) {
        op_erase(w.branch);
        return NULL;
    }
    if (w.cond)
        else_copy(&w);
    else
        op_erase(w.branch);
    Value *whole = w.cond ? w.cond : build_int(b, n->i1, 1);
    Value *in[] = {simd_buffer(n, slot), whole, down.v, apart, next};
    return op_result(build_op(b, OP_BUF_VIEW, in, next ? 5 : 4, NULL, NULL, 1), 0);
}

/* Prints, assertions and checks in cpu form. The host gets vectors with the index of
   their lanes, and prints them.

       print %x, %n {message="x"}      =>    for %i = 0, 256, 32 {
                                               vprint %strip, %i {message="x"} }
                                             vprint %n {message="x"} */
#include "passes/cpu/simd.h"

#include "ir/edit.h"

/* Op k of a strip, with its index in the tile as operands; {axis}: the dimension of its
   lanes. */
static Op *
build_lanes(Cx *cx, OpKind k, Value **in, int n, int rank, const Ix *ix, AttrList *l)
{
    int axis = simd_index(cx, rank, ix, in + n);
    if (axis >= 0 && axis < rank)
        attr_set_int(&cx->n->s->mod, l, ATTR_AXIS, axis);
    return build_op(&cx->b, k, in, n + rank, l, NULL, 0);
}

static int
rank_of(const Value *v)
{
    return simd_tile(v) ? v->type->rank : 0;
}

void
simd_print(Cx *cx, Op *op, int operand, const Ix *ix)
{
    Arena *mod = &cx->n->s->mod;
    Value *v = op_operand(op, operand), *in[MAX_RANK + 1];
    const Attr *is_signed = attr_find(&op->attrs, ATTR_SIGNED);
    const Attr *message = attr_find(&op->attrs, ATTR_MESSAGE);
    AttrList l = {0};
    in[0] = ev_strip(cx, simd_eval(cx, v, ix));
    if (message)
        attr_set_str(mod, &l, ATTR_MESSAGE, message->v.s);
    if (attr_has(&op->attrs, ATTR_HEX))
        attr_set_flag(mod, &l, ATTR_HEX);
    if (is_signed && operand < is_signed->n)
        attr_set_ints(mod, &l, ATTR_SIGNED, &is_signed->v.ints[operand], 1);
    attr_set_ints(mod, &l, ATTR_PART, (int64_t[]){operand, op->noperand}, 2);
    build_lanes(cx, OP_VPRINT, in, 1, rank_of(v), ix, &l);
}

/* All operands of a print, in their order. */
void
simd_prints(Simd *n, Builder *b, Op *op)
{
    OpPlan *p = op_plan(n, op);
    b->loc = op->loc;
    if (!op->noperand) {
        op_clone(b, op, &n->map);
        return;
    }
    for (int i = 0; i < op->noperand; i++) {
        Cx cx;
        if (p->each && p->each[i]) {
            simd_group(n, b, p->each[i]);
            continue;
        }
        b->loc = op->loc;
        cx_init(&cx, n, *b, 1);
        simd_print(&cx, op, i, NULL);
    }
}

/* Lanes that the mask excludes pass. */
void
simd_assert(Cx *cx, Op *op, const Ix *ix)
{
    Value *in[MAX_RANK + 1];
    const Attr *message = attr_find(&op->attrs, ATTR_MESSAGE);
    AttrList l = {0};
    in[0] = ev_strip(cx, simd_eval(cx, op_operand(op, 0), ix));
    if (op->noperand > 1) {
        Value *mask = ev_strip(cx, simd_eval(cx, op_operand(op, 1), ix));
        Value *off = build_binary(&cx->b, OP_XOR, mask, build_int(&cx->b, mask->type, 1));
        in[0] = build_binary(&cx->b, OP_OR, in[0], off);
    }
    if (message)
        attr_set_str(&cx->n->s->mod, &l, ATTR_MESSAGE, message->v.s);
    cx->b.loc = op->loc;
    build_lanes(cx, OP_VASSERT, in, 1, rank_of(op_operand(op, 0)), ix, &l);
}

/* ---- checked code */

enum { FROM_NOTHING = -3, FROM_UNKNOWN = -2, FROM_SEVERAL = -1, MAX_WALK = 4000 };

/* The values whose origin is being looked for, so that cycles end. */
typedef struct From {
    const Value *v;
    const struct From *up;
} From;

static int
join(int a, int b)
{
    if (a == FROM_NOTHING || a == b)
        return b;
    if (b == FROM_NOTHING)
        return a;
    return a == FROM_UNKNOWN || b == FROM_UNKNOWN ? FROM_UNKNOWN : FROM_SEVERAL;
}

static int param_of(const Value *v, const From *up, int *left);

/* The parameter that operand i of the terminators of op's regions comes from. */
static int
yields(const Op *op, int first, int i, const From *up, int *left)
{
    int got = FROM_NOTHING;
    for (int k = first; k < op->nregion; k++) {
        const Op *end = op->regions[k]->last;
        int at = end->kind == OP_CONDITION ? i + 1 : i;
        got = join(got, at < end->noperand ? param_of(op_operand(end, at), up, left)
                                           : FROM_UNKNOWN);
    }
    return got;
}

static int
region_arg_of(const Value *v, const From *up, int *left)
{
    const Op *op = v->region->parent;
    if (!op)
        return v->index;
    if (op->kind == OP_FOR && v->index > 0)
        return join(param_of(op_operand(op, v->index + 2), up, left),
                    yields(op, 0, v->index - 1, up, left));
    if (op->kind != OP_WHILE)
        return FROM_UNKNOWN;
    if (v->region == op->regions[1]) /* what the condition passes on */
        return param_of(op_operand(op->regions[0]->last, v->index + 1), up, left);
    return join(param_of(op_operand(op, v->index), up, left),
                yields(op, 1, v->index, up, left));
}

/* The number of the parameter that an address is computed from, or FROM_*. */
static int
param_of(const Value *v, const From *up, int *left)
{
    From here = {v, up};
    for (const From *f = up; f; f = f->up)
        if (f->v == v)
            return FROM_NOTHING;
    if (--*left < 0)
        return FROM_UNKNOWN;
    if (!v->op)
        return region_arg_of(v, &here, left);
    const Op *op = v->op;
    switch ((int)op->kind) {
    case OP_ADDPTR:
    case OP_SPLAT:
    case OP_BROADCAST:
    case OP_EXPAND_DIMS:
    case OP_RESHAPE:
    case OP_TRANS:
    case OP_SPLIT:
    case OP_GATHER:
    case OP_HINT:
    case OP_BITCAST: return param_of(op_operand(op, 0), &here, left);
    case OP_JOIN:
    case OP_CAT:
        return join(param_of(op_operand(op, 0), &here, left),
                    param_of(op_operand(op, 1), &here, left));
    case OP_SELECT:
        return join(param_of(op_operand(op, 1), &here, left),
                    param_of(op_operand(op, 2), &here, left));
    case OP_FOR:
        return join(param_of(op_operand(op, v->index + 3), &here, left),
                    yields(op, 0, v->index, &here, left));
    case OP_IF: return yields(op, 0, v->index, &here, left);
    case OP_WHILE: /* operand 0 of the condition says whether to go on */
        return param_of(op_operand(op->regions[0]->last, v->index + 1), &here, left);
    default: return FROM_UNKNOWN;
    }
}

static const char *
access_of(const Op *op)
{
    if (op->kind == OP_LOAD)
        return attr_has(&op->attrs, ATTR_VOLATILE) ? "poll" : "read";
    return op->kind == OP_STORE ? "write" : "atomic";
}

void
simd_check(Cx *cx, Op *op, Value *p, Value *mask, Value *stored, int lanes,
           const Ix *ix)
{
    Session *s = cx->n->s;
    Value *in[MAX_RANK + 3];
    int64_t w = lanes;
    int n = 0, left = MAX_WALK;
    AttrList l = {0};
    if (!cx->n->f->check)
        return;
    const Type *m = cx->n->i1;
    if (lanes > 1)
        m = type_tile(cx->n->tt, m, 1, &w, NULL);
    in[n++] = p;
    in[n++] = mask ? mask : build_int(&cx->b, m, 1);
    if (op->kind == OP_STORE)
        in[n++] = stored;
    int param = param_of(op_operand(op, 0), NULL, &left);
    attr_set_str(&s->mod, &l, ATTR_ACCESS, name_of(&s->names, access_of(op)));
    if (param >= FROM_SEVERAL)
        attr_set_int(&s->mod, &l, ATTR_PARAM, param);
    Loc loc = cx->b.loc;
    cx->b.loc = op->loc;
    build_lanes(cx, OP_VCHECK, in, n, rank_of(op_operand(op, 0)), ix, &l);
    cx->b.loc = loc;
}

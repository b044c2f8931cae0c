/* Puts operands of dots into shared memory.

   A dot of unit mma_loop or fma_loop reads its operands from shared memory step by step:
   it becomes a local_dot of two buffers. A transpose is a view of a buffer.

       %d = dot %a, %b, %x {unit="fma_loop"}   =>   %ma = local_alloc %a : mem<..>
                                                    %mb = local_alloc %b : mem<..>
                                                    %d = local_dot %ma, %mb, %x

   For a dot of unit mma, an operand that needs an exchange between threads is put into a
   buffer whose swizzle suits the fragments, and read back in the operand's layout:

       %a = load %p : tile<.., #blk>        %a = load %p : tile<.., #blk>
       %c = convert_layout %a : #op    =>   %m = local_alloc %a : mem<f16, [128,64], #sh>
       %d = dot %c, ..                      %c = local_load %m : tile<.., #op>
                                            %d = dot %c, ..

   So the passes that pipeline a loop find loads whose only use is to fill a buffer.
   Elementwise work between the load and the dot moves behind the local_load, where it is
   done on the fragments: then the buffer holds the loaded elements, which are often
   narrower.

   An operand that no iteration of a loop changes stays in registers. If these are too few
   beside what the loop carries, each iteration reads it from its buffer again. */
#include "passes/mma/operand.h"

#include "ir/base/util.h"

#include <string.h>

/* The layout of the operand of `trans` with which its result has layout l. */
static const Layout *
before_trans(Session *s, const Layout *l, const Op *trans)
{
    const Attr *perm = attr_find(&trans->attrs, ATTR_PERM);
    int64_t back[MAX_RANK];
    for (int i = 0; i < perm->n; i++)
        back[perm->v.ints[i]] = i;
    return layout_trans(s, l, back);
}

/* A buffer for v, which threads read in layout `to`. */
static Value *
buffer_of(PassCx *cx, Builder *b, Value *v, const Layout *to)
{
    Op *trans = value_def(v, OP_TRANS);
    const Layout *tile = trans ? before_trans(cx->s, to, trans) : to;
    tile = cx->target.tma ? NULL : tile;
    Value *m = operand_buffer(cx->s, b, trans ? op_operand(trans, 0) : v, tile);
    return trans ? operand_transposed(cx->s, b, m, trans) : m;
}

/* v in layout `to`, exchanged through a buffer. */
static Value *
through_buffer(PassCx *cx, Builder *b, Value *v, const Layout *to)
{
    const Type *t = type_with_layout(cx->s->types, v->type, to);
    Value *m = buffer_of(cx, b, v, to);
    return &build_op(b, OP_LOCAL_LOAD, &m, 1, NULL, &t, 1)->results[0];
}

/* The loaded tile whose buffer operand v is read from in layout `to`, with the work
   between them done on the fragments; NULL: v itself is put into a buffer. Repeated
   vectors take part where that saves the loaded tile a way through registers and costs
   nothing: the fragments are read by ldmatrix as they are, no two threads hold the same
   ones, and no other dot reads v. */
static Value *
load_of_work(Value *v, const Layout *to)
{
    Value *load = NULL;
    if (operand_is_work_on_load(v, false, &load))
        return load;
    bool own = !v->uses->next && layout_regs(to) <= layout_regs(v->type->layout);
    if (!own || !operand_is_work_on_load(v, true, &load) || !load)
        return NULL;
    return type_bits(load->type) == type_bits(v->type) ? load : NULL;
}

/* Replaces the conversion of operand i, if it exchanges data, by a buffer. */
static bool
stage_operand(PassCx *cx, Op *dot, int i)
{
    Session *s = cx->s;
    Op *c = value_def(op_operand(dot, i), OP_CONVERT_LAYOUT);
    Value *v = c ? op_operand(c, 0) : NULL, *load, *by;
    if (!c)
        return false;
    const Layout *to = c->results[0].type->layout;
    if (layout_conversion(v->type->layout, to).kind <= CONV_REG)
        return false;
    Builder b = builder_before(c);
    b.loc = c->loc;
    load = load_of_work(v, to);
    if (load && load->op->parent == c->parent)
        by = operand_redo(s, &b, v, to, load, through_buffer(cx, &b, load, to),
                          NULL);
    else
        by = through_buffer(cx, &b, v, to);
    value_replace(&c->results[0], by);
    op_erase(c);
    return true;
}

enum {
    REGISTERS = 255, /* of a thread */
    OTHERS = 24,     /* of these, for addresses and the like */
};

/* 32-bit registers that v takes. */
static int
words_of(const Value *v)
{
    const Type *t = v->type;
    bool placed = t->kind == TY_TILE && t->layout;
    return placed ? layout_regs(t->layout) * type_bits(t) / 32 : 0;
}

/* The local_load in front of `loop` that v is; NULL: v is something else. */
static Op *
kept_operand(const Value *v, const Region *loop)
{
    Op *load = value_def(v, OP_LOCAL_LOAD);
    return load && value_outside(v, loop) ? load : NULL;
}

/* Registers of a thread that the loop needs at one time: for what it carries, for
   operands that it keeps, and for the largest other accumulator. */
static int
words_of_loop(const Region *loop)
{
    int carried = 0, kept = 0, most = 0;
    for (int i = 0; i < loop->narg; i++)
        carried += words_of(loop->args[i]);
    region_each(loop, op)
    {
        if (op->kind != OP_DOT)
            continue;
        for (int i = 0; i < 2; i++)
            if (kept_operand(op_operand(op, i), loop))
                kept += words_of(op_operand(op, i));
        if (op_operand(op, 2)->region != loop)
            most = (int)max_i64(most, words_of(&op->results[0]));
    }
    return carried + kept + most;
}

/* Reads the operands that a loop keeps in registers again in each iteration, if registers
   are too few. */
static bool
release_operands(void *user, Op *dot)
{
    const Region *loop = dot->parent;
    const Op *of = loop->parent;
    bool changed = false;
    if (dot->kind != OP_DOT || !of || (of->kind != OP_FOR && of->kind != OP_WHILE))
        return false;
    for (int i = 0; i < 2; i++) {
        Op *load = kept_operand(op_operand(dot, i), loop);
        if (!load || words_of_loop(loop) <= REGISTERS - OTHERS)
            continue;
        Builder b = builder_before(dot);
        b.loc = load->loc;
        Map map;
        map_init(&map, user);
        op_set_operand(dot, i, &op_clone(&b, load, &map)->results[0]);
        changed = true;
    }
    return changed;
}

/* Elements of the inner dimension in one 32-bit register of the fragments; 0: the unit is
   fma_loop, which has none. */
static int
kwidth_of(const Op *dot, Name unit)
{
    Name said = attr_str(&dot->attrs, ATTR_PRECISION);
    int bits = type_bits(op_operand(dot, 0)->type);
    if (strcmp(unit, "mma_loop") != 0)
        return 0;
    if (bits == 32 && said && strncmp(said, "bf16", 4) == 0)
        bits = 16;
    return (int)max_i64(32 / bits, 1);
}

/* dot to local_dot, with both operands in buffers. */
static void
lower(PassCx *cx, Op *dot, Name unit)
{
    Builder b = builder_before(dot);
    b.loc = dot->loc;
    const Type *a = op_operand(dot, 0)->type;
    Value *in[3] = {NULL, NULL, op_operand(dot, 2)};
    for (int i = 0; i < 2; i++)
        in[i] = buffer_of(cx, &b, op_operand(dot, i),
                          layout_dot_operand(cx->s, in[2]->type->layout,
                                             a->shape[a->rank - 1], i,
                                             kwidth_of(dot, unit)));
    Op *op = build_op(&b, OP_LOCAL_DOT, in, 3, &dot->attrs, NULL, 1);
    op->results[0].name = dot->results[0].name;
    value_replace(&dot->results[0], &op->results[0]);
    op_erase(dot);
}

/* Operands of mma may stay in registers where the budget has no shared memory for them:
   fragments are exchanged in parts then. Those of fma may not: an element of the result
   needs a whole row and column. */
static bool
visit(void *user, Op *op)
{
    PassCx *cx = user;
    bool changed = false;
    Name unit = op->kind == OP_DOT ? attr_str(&op->attrs, ATTR_UNIT) : NULL;
    if (unit && (strcmp(unit, "fma_loop") == 0 || strcmp(unit, "mma_loop") == 0)) {
        lower(cx, op, unit);
        return true;
    }
    bool mma = unit && strcmp(unit, "mma") == 0;
    if (op->kind != OP_DOT || (mma && cx->budget->no_staged_operands))
        return false;
    for (int i = 0; i < 2; i++)
        changed |= stage_operand(cx, op, i);
    cx->budget->staged_operands |= changed && mma;
    return changed;
}

bool
pass_stage_mma_operands(Func *f, PassCx *cx)
{
    bool changed = pass_walk(f->body, visit, cx);
    return pass_walk(f->body, release_operands, &cx->s->tmp) || changed;
}

/* See channel.h. */
#include "passes/schedule/channel.h"

#include "ir/edit.h"
#include "ir/plan/tma_box.h"

Value *
channel_buffer(Builder *b, const Type *one, int stages)
{
    const Type *t = type_mem(b->s->types, one->elem, one->rank, one->shape, one->layout,
                             stages);
    return &build_op(b, OP_LOCAL_ALLOC, NULL, 0, NULL, &t, 1)->results[0];
}

Value *
channel_bars(Builder *b, int stages, int arrivals)
{
    const Type *t = type_bar(b->s->types, stages);
    AttrList attrs = {0};
    attr_set_int(&b->s->mod, &attrs, ATTR_ARRIVALS, arrivals);
    return &build_op(b, OP_BAR_ALLOC, NULL, 0, &attrs, &t, 1)->results[0];
}

Value *
channel_stage(Builder *b, Value *of, Value *stage, int ahead, const Type *mem)
{
    Value *in[2] = {of, stage};
    OpKind kind = of->type->kind == TY_BAR ? OP_BAR_INDEX : OP_LOCAL_INDEX;
    AttrList attrs = {0};
    if (ahead != CHANNEL_ANY)
        attr_set_int(&b->s->mod, &attrs, ATTR_STAGE, ahead);
    return &build_op(b, kind, in, 2, &attrs, mem ? &mem : NULL, 1)->results[0];
}

void
channel_wait(Builder *b, Value *bars, PipelineState at, int ahead)
{
    Value *in[2] = {channel_stage(b, bars, at.stage, ahead, NULL), at.phase};
    build_op(b, OP_BAR_WAIT, in, 2, NULL, NULL, 0);
}

/* The phase flips whenever the ring starts over at stage 0. */
PipelineState
channel_next(Builder *b, PipelineState at, int stages)
{
    const Type *t = at.stage->type;
    Value *zero = build_int(b, t, 0), *one = build_int(b, t, 1);
    Value *up = build_binary(b, OP_ADD, at.stage, one);
    Value *wrap = build_cmp(b, OP_CMPI, "eq", up, build_int(b, t, stages));
    PipelineState to = {build_select(b, wrap, zero, up), NULL};
    if (at.phase)
        to.phase =
            build_select(b, wrap, build_binary(b, OP_XOR, at.phase, one), at.phase);
    return to;
}

void
channel_expect(Builder *b, Value *bar, int64_t bytes, Value *pred)
{
    Value *in[2] = {bar, pred};
    AttrList attrs = {0};
    attr_set_int(&b->s->mod, &attrs, ATTR_BYTES, bytes);
    build_op(b, OP_BAR_EXPECT, in, pred ? 2 : 1, &attrs, NULL, 0);
}

Op *
channel_copy(Builder *b, const Op *load, Value *mem, Value *bar, const Map *map,
             Value *pred)
{
    Value *in[5 + TMA_MAX_RANK] = {op_operand(load, 0), mem, bar};
    const Attr *parted = attr_find(&load->attrs, ATTR_PARTED);
    AttrList attrs = {0};
    int n = 3;
    for (int i = 1; i < load->noperand; i++)
        in[n++] = value_mapped(map, op_operand(load, i));
    if (pred)
        in[n++] = pred;
    if (parted)
        attr_set_ints(&b->s->mod, &attrs, ATTR_PARTED, parted->v.ints, parted->n);
    b->loc = load->loc;
    return build_op(b, OP_TMA_LOAD, in, n, &attrs, NULL, 0);
}

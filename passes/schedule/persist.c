/* A kernel whose programs each multiply one tile becomes a persistent one, whose programs
   loop over tiles.

                                              %n = num_programs {axis=0, ctas_per_sm=1}
       %t = program_id {axis=0}               %k = num_programs {axis=0}
       %s = for .. { .. wgmma .. }      =>    for %t = %first, %n, %k {
       store ..                                 %s = for .. { .. wgmma .. }
                                                store ..
                                              }

   One program with all its stages fills an SM, so the next one starts when it has ended:
   nothing is multiplied while results are stored, and nothing is stored while the first
   tiles of the next one are loaded. In a loop, with roles (passes/schedule/specialize.c),
   the producer loads the operands of the next tile while the results of this one are
   stored. The launcher starts as many programs as can run at once and passes the
   requested number on (runtime/rt/cuda_kernel.c). On an H200, fp16, 4096, 2026-11-22: 710
   TFLOP/s instead of 690, from pointers and descriptors alike; 2 % more at 8192; 1 % less
   at 2048, where no program gets a second tile. Where two programs could run at once, one
   of which stores while the other multiplies, a single one needs more bytes in flight
   (128x128 tiles, 8 warps, H200, 2026-11-22: 64 columns with four buffers, 96 KB in
   flight, 709 TFLOP/s, with three 540, two programs 680; 32 columns with four 418 and
   546).

   Where no program gets a second tile there is nothing to gain, and the buffer of the
   results takes the place of a stage. The launcher sees that from the grid, and has a
   variant of the kernel without persistence for such launches (target.once):
   16384x256x1024 22.7 us persistent and 20.0 not, 8192x512x2048 32.0 and 28.1, where
   neighbours do not run in clusters (H200, 2026-11-23, tests/gpu/shapes --tiles).

   Programs of a grid are independent, so they may run in any order, unless one waits for
   what another one writes. Kernels with atomic operations or loops of unknown length
   therefore stay as they are. So do kernels that write tensor maps: a producer could
   still copy through the map of the previous tile. */
#include "ir/analysis/accumulator.h"
#include "ir/analysis/async_dot.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/plan/pipeline.h"
#include "ir/plan/tma_box.h"
#include "passes/schedule/occupancy.h"
#include "passes/schedule/persist.h"
#include "passes/schedule/specialize.h"

/* What matters of the ops of the kernel. */
typedef struct Body {
    Op *loop;   /* a pipelined loop */
    int nloop;  /* number of pipelined loops */
    bool waits; /* its programs may wait for each other, or differ in length */
    bool pid;   /* it uses its program id */
} Body;

static void
see(Body *k, const Func *f)
{
    region_each_deep(f->body, op)
    {
        if (loop_is_pipelined(op)) {
            k->loop = op;
            k->nloop++;
            k->waits |= op->parent != f->body;
        }
        k->waits |= op->kind == OP_WHILE || op->kind == OP_TENSOR_MAP ||
                    op->kind == OP_ATOMIC_RMW || op->kind == OP_ATOMIC_CAS ||
                    (op->kind == OP_LOAD && attr_has(&op->attrs, ATTR_VOLATILE));
        k->pid |= op->kind == OP_PROGRAM_ID && !attr_int(&op->attrs, ATTR_AXIS, 0);
    }
}

/* Does op store a tile to a buffer that threads have computed? */
static bool
is_computed(const Op *op)
{
    const Op *from =
        op->kind == OP_LOCAL_ALLOC && op->noperand ? op_operand(op, 0)->op : NULL;
    return from && from->kind != OP_LOAD && from->kind != OP_DESC_LOAD &&
           from->kind != OP_LOCAL_LOAD;
}

/* Does the loop only accumulate dots, with a trip count that is the same for every
   tile? Persistent programs get their tiles in a fixed order, whatever each takes.
   Loops of dots that add up are not faster for it (H200, four kernels of 8 warps: 0.96
   to 1.00). Where threads compute an operand, two programs on an SM hide that work
   better. */
static bool
is_sum(const Op *loop)
{
    const Op *first = loop->regions[0]->first;
    int dots = dots_between(first, NULL);
    bool even = loop->nresult > 0;
    for (int i = 0; i < 3; i++)
        even &= tma_host_value(op_operand(loop, i));
    for (const Op *op = first; op; op = op->next) {
        even &= !is_computed(op);
        even &= dots == 1 || !op_is_async_dot(op) ||
                (dot_carried(op) >= 0 && !dot_adding_to(op));
    }
    return dots && even;
}

static Value *
programs(Session *s, Builder *b, OpKind kind, int ctas_per_sm)
{
    AttrList attrs = {0};
    attr_set_int(&s->mod, &attrs, ATTR_AXIS, 0);
    if (ctas_per_sm)
        attr_set_int(&s->mod, &attrs, ATTR_CTAS_PER_SM, ctas_per_sm);
    return &build_op(b, kind, NULL, 0, &attrs, NULL, 1)->results[0];
}

/* Is op the same for every tile? Then it stays in front of the loop. */
static bool
stays(const Op *op, const Op *loop)
{
    if (!op_is(op, T_PURE) || op->nregion || type_is_tile(op->results[0].type))
        return op->kind == OP_MAKE_DESC;
    for (int i = 0; i < op->noperand; i++)
        if (!value_outside(op_operand(op, i), loop->regions[0]))
            return false;
    return true;
}

static void
rewrite_ids(const Op *loop, Value *tile, Value *all)
{
    region_each_deep(loop->regions[0], op)
    {
        bool first = !attr_int(&op->attrs, ATTR_AXIS, 0);
        if (op->kind == OP_PROGRAM_ID && first)
            value_replace(&op->results[0], tile);
        else if (op->kind == OP_NUM_PROGRAMS && first)
            value_replace(&op->results[0], all);
    }
}

static void
build(Session *s, Func *f, int blocks)
{
    Region *body = f->body;
    Op *first = body->first;
    Builder b = builder_before(first);
    b.loc = f->loc;
    Value *id = programs(s, &b, OP_PROGRAM_ID, 0);
    Value *all = programs(s, &b, OP_NUM_PROGRAMS, blocks);
    Value *step = programs(s, &b, OP_NUM_PROGRAMS, 0);
    Op *loop = build_for(&b, id, all, step, NULL, 0);
    Region *in = loop->regions[0];
    for (Op *op = first, *next; op != body->last; op = next) {
        next = op->next;
        if (op->kind == OP_PROGRAM_ID || op->kind == OP_NUM_PROGRAMS || !stays(op, loop))
            op_move_to_end(op, in);
        else
            op_move_before(op, loop);
    }
    rewrite_ids(loop, in->args[0], all);
    Builder end = builder_at_end(f, in);
    end.loc = f->loc;
    build_yield(&end, NULL, 0);
}

bool
persist_suits(Func *f, const TargetInfo *target, const Op *loop)
{
    Body k = {0};
    see(&k, f);
    return !target->folds && (k.nloop == 0 || (k.nloop == 1 && k.loop == loop)) &&
           !loop->parent->parent && !k.waits && k.pid && is_sum(loop);
}

/* Bytes that the loop has in flight. */
static int64_t
bytes_ahead(const Op *loop)
{
    return stage_bytes(loop) * (pipeline_of(loop).stages - 1);
}

bool
pass_persist(Func *f, PassCx *cx)
{
    Body k = {0};
    int blocks, beside;
    see(&k, f);
    if (cx->target.once || k.nloop != 1 || !persist_suits(f, &cx->target, k.loop) ||
        !specialize_possible(f, cx, &blocks, &beside) || blocks != 1 ||
        (beside > 1 && bytes_ahead(k.loop) < PERSIST_BYTES))
        return false;
    build(cx->s, f, blocks);
    return true;
}

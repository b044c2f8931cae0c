/* Warp specialization: a loop whose loads go by TMA is split into two roles. The
   producer, one warp, issues the TMA loads; the consumers, the other warps, do everything
   else.

       for %i = .. {                      warp_specialize {warps=[1,8]} {
         %a = desc_load %da, ..             for %i = .. (%s, %ph) {
         %m = local_alloc %a                  bar_wait %empty[%s], %ph
         %r = wgmma %m, ..           =>       bar_expect %full[%s] {bytes}
       }                                      tma_load %da, %ring[%s], %full[%s], ..
       store ..                             }
                                          }, {
                                            for %i = .. (%s, %ph) {
                                              bar_wait %full[%s], %ph
                                              %r = wgmma %ring[%s], ..
                                              bar_arrive %empty[%s]
                                            }
                                            store ..
                                          }

   Both roles are copies of the whole kernel. The producer keeps what its loads need:
   their coordinates, and the loops and conditions around them. The consumers, as many
   warps as the source requests, keep everything else. So lists of blocks, consecutive
   loops and nested loops need no special treatment: each ring has a stage and a phase,
   which both roles carry through the control flow that they share.

   Where threads have to rearrange a tile for a dot, a third role does it
   (specialize_copy.c), if its registers and its ring fit, too.

   It is done where it can pay off: for loops of wgmma dots whose planned loads all go by
   TMA, when shared memory and registers suffice. A loop that is not split says why in
   {roles}. */
#include "passes/schedule/specialize.h"

#include "ir/analysis/async_dot.h"
#include "ir/base/util.h"
#include "ir/layout.h"
#include "ir/plan/pipeline.h"
#include "passes/mma/operand.h"
#include "passes/schedule/occupancy.h"

enum {
    GROUP_THREADS = 128,
    PRODUCER_REGS = 40,
    COPIER_REGS = 80,
    LITTLE_REGS = 24, /* of one whose consumers need all that there is */
    /* what a thread needs beside accumulators and fragments */
    OTHER_REGS = 32,
    MAX_REGS = 240
};

/* Number of dots of the loop; dots that add to another's accumulator or read another's
   fragments are not counted again. *computed: the left operand of one of them is
   computed, or loaded, into registers in each iteration. */
static int
count_dots(const Op *loop, bool *computed)
{
    int n = 0;
    *computed = false;
    for (const Op *op = loop->regions[0]->first; op; op = op->next) {
        if (!op_is_async_dot(op))
            continue;
        const Value *left = op_operand(op, DOT_LEFT);
        bool regs = left->type->kind == TY_TILE;
        n += !mma_counted(op, DOT_ACC) && !(regs && mma_counted(op, DOT_LEFT));
        *computed |= regs && !value_outside(left, loop->regions[0]);
    }
    return n;
}

/* A few dots, one of them with its left operand in registers: between two of them there
   is work that the other warpgroup's dots can overlap with, and rotate_loop.c can overlap
   more. With more dots there is no gap to fill (five dots, attention backward of 64
   dimensions, 64x128, 8 warps, H200, tests/gpu/compare.py, 2026-11-22: 3.26 ms, 2.92
   without roles). */
static bool
has_gaps(const Op *loop)
{
    enum { FEW = 3 };
    bool computed;
    int n = count_dots(loop, &computed);
    return n >= 2 && n <= FEW && computed && !pipeline_of(loop).pending;
}

/* A single dot that is waited for at once, because its left operand is in registers that
   the next iteration fills again: one warpgroup fills them while the other's dot runs. */
static bool
fills_operand(const Op *loop)
{
    bool computed;
    return count_dots(loop, &computed) == 1 && computed;
}

/* Accumulators in parts that threads add up: one warpgroup adds while the other
   multiplies. A warpgroup alone does both where it adds piece by piece. */
static bool
adds_parts(const Op *loop)
{
    bool alone = loop->parent->func->num_warps / 4 < 2;
    for (const Op *op = loop->regions[0]->first; op; op = op->next)
        if (op_is_async_dot(op) &&
            (attr_has(&op->attrs, ATTR_PART) ||
             (attr_has(&op->attrs, ATTR_MAX_IMPRECISE) && !alone)))
            return true;
    return false;
}

/* Does the loop run once for each of several tiles? Then the producer loads the next tile
   while the results of this one are stored. */
static bool
in_turn(const Op *loop)
{
    for (const Op *up = loop->parent->parent; up; up = up->parent->parent)
        if (up->kind == OP_FOR)
            return true;
    return false;
}

/* How many programs one SM would run at once without roles. A left operand that is
   computed takes the place of the accumulator that it comes from, and both are counted:
   so with the least beside them (dq of attention alone, 64x64, 4 warps, H200: 107
   registers, 1.26 times as fast as with roles, which were chosen by 40 beside them;
   128x64, 8 warps: 1.43; python -m sdc.compare, 2026-11-26). */
static int64_t
programs_without(const Specialize *sp)
{
    return occupancy(sp->f, sp->target, mma_registers(sp->f->body), LEAST_BESIDE,
                     sp->bytes);
}

/* A single accumulator is as fast without roles: nothing but the next copies stands
   between its dots, and all warps together issue those (matmul 4096, 128x256x64, H200,
   2026-11-21: 738 TFLOP/s, 725 with roles), unless the loop runs once a tile: the next
   tile's loads begin while this one's results are stored, whatever else runs on the SM
   (persistent matmul 4096, 64x128x64, 4 warps, H200, 2026-11-27: 0.313 ms, 0.293 with
   roles; 8192x8192x512: 0.195, 0.159). Two dots with other work in between gain: one
   warpgroup computes while the other's dots run (attention 4096 of 128, that day: 597
   TFLOP/s, 467 without). But a second program on the SM fills the gaps, too, and needs no
   registers for a producer (attention with ALiBi, head dimension 64, 128x64, 8 warps,
   H200, tests/gpu/loops.py, 2026-11-22: 0.383 ms, 0.417 with roles). */
static bool
pays(Specialize *sp)
{
    bool gaps = false;
    for (int i = 0; i < sp->ngroup; i++) {
        const Op *loop = sp->group[i].loop;
        bool gap = has_gaps(loop) || fills_operand(loop);
        if (attr_has(&loop->attrs, ATTR_WARP_SPEC) || adds_parts(loop) ||
            (in_turn(loop) && (sp->blocks == 1 || !gap)))
            return true;
        gaps |= gap;
    }
    if (gaps && programs_without(sp) < 2 * sp->blocks)
        return true;
    if (gaps)
        return specialize_refuse(sp, "%lld programs fit an SM without them",
                                 (long long)programs_without(sp));
    sp->why =
        "neither requested (warp_specialize=True) nor two dots with work between them";
    return false;
}

/* Divides the registers of the SM among the roles. */
static void
share_registers(Specialize *sp, int groups, int producer)
{
    int all = groups + (sp->ncopy ? 2 : 1), copier = sp->ncopy ? COPIER_REGS : 0;
    int launched = sp->target->registers / GROUP_THREADS / all / sp->blocks & ~7;
    int each = (launched * all - producer - copier) / groups & ~7;
    sp->regs[SP_PRODUCER] = producer;
    sp->regs[SP_COPIER] = copier;
    sp->regs[SP_CONSUMER] = each > MAX_REGS ? MAX_REGS : each;
}

/* Largest number of registers that the accumulator of one instruction takes. */
static int
largest_accumulator(const Region *r)
{
    int most = 0, n, warps[2];
    bool pairs;
    region_each_deep(r, op)
    {
        if (op_is_async_dot(op) &&
            layout_is_wgmma(dot_tile(op_operand(op, DOT_ACC)->type)->layout, &n, warps,
                            &pairs))
            most = (int)max_i64(most, n / 2);
    }
    return most;
}

/* Do the registers suffice? To ptxas all roles are one program, in which no instruction
   may use more registers than a thread is launched with. */
static bool
fits(Specialize *sp)
{
    enum { OPERANDS = 16 };
    int groups = sp->f->num_warps / 4, accumulator = largest_accumulator(sp->f->body);
    int words = mma_registers(sp->f->body) / (GROUP_THREADS * groups);
    int launched = sp->target->registers / GROUP_THREADS / (groups + 1) / sp->blocks & ~7;
    if (accumulator + OPERANDS > launched)
        return specialize_refuse(
            sp, "an accumulator of %d registers is too large for a launch with %d",
            accumulator, launched);
    share_registers(sp, groups, PRODUCER_REGS);
    if (sp->blocks > 1 || words + 2 * OTHER_REGS > sp->regs[SP_CONSUMER])
        share_registers(sp, groups, LITTLE_REGS);
    if (words + OTHER_REGS > sp->regs[SP_CONSUMER])
        return specialize_refuse(
            sp, "accumulators of %d registers and %d others do not fit into %d", words,
            OTHER_REGS, (int)sp->regs[SP_CONSUMER]);
    return true;
}

static void
say_why(Session *s, const Func *f, const char *why)
{
    region_each_deep(f->body, op) if (loop_is_pipelined(op))
        attr_set_str(&s->mod, &op->attrs, ATTR_ROLES, name_of(&s->names, why));
}

/* copies: also plan a role that rearranges tiles for dots. blocks: how many programs are
   to fit on an SM. */
static bool
plan_roles(Specialize *sp, Func *f, PassCx *cx, bool copies, int blocks)
{
    *sp = (Specialize){.s = cx->s, .f = f, .target = &cx->target, .copies = copies,
                       .blocks = blocks};
    sp->double_buffers = !cx->budget->no_double_buffers;
    if (!cx->target.wgmma || f->num_warps % 4 || f->num_warps > 16)
        return false;
    if (cx->budget->no_roles)
        return specialize_refuse(sp, "it does not fit shared memory with them");
    return specialize_plan(sp) && fits(sp);
}

/* Would a program that goes through several tiles have fewer stages than requested, so
   that a second one fits beside it? */
static bool
is_short(const Specialize *sp)
{
    for (int i = 0; i < sp->ngroup; i++) {
        const Group *g = &sp->group[i];
        Pipeline p = pipeline_of(g->loop);
        int requested = p.stages - (p.pending > 0);
        if (in_turn(g->loop) &&
            (g->ring < 0 || sp->ring[g->ring].stages < requested))
            return true;
    }
    return false;
}

/* Makes the plan; false: the target has no wgmma, or sp->why. One warpgroup alone leaves
   the tensor cores idle while it does anything else, so two programs of four warps are to
   fit on an SM, unless they would be short of stages: those without roles would not fit
   twice either. */
static bool
plan(Specialize *sp, Func *f, PassCx *cx)
{
    if (f->num_warps > 4)
        return plan_roles(sp, f, cx, true, 1) || plan_roles(sp, f, cx, false, 1);
    return (plan_roles(sp, f, cx, false, 2) && !is_short(sp)) ||
           (is_short(sp) && plan_roles(sp, f, cx, false, 1)) ||
           plan_roles(sp, f, cx, false, 2);
}

bool
specialize_possible(Func *f, PassCx *cx, int *blocks, int *without)
{
    Specialize *sp = arena_new(&cx->s->tmp, Specialize);
    bool can = plan(sp, f, cx);
    *blocks = sp->blocks;
    *without = can ? (int)programs_without(sp) : 0;
    return can;
}

bool
pass_specialize(Func *f, PassCx *cx)
{
    Specialize *sp = arena_new(&cx->s->tmp, Specialize);
    if (plan(sp, f, cx) && pays(sp)) {
        specialize_build(sp);
        return true;
    }
    if (sp->why)
        say_why(cx->s, f, sp->why);
    return sp->why != NULL;
}

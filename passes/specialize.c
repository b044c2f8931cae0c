/* Loops whose loads go through TMA, split into two roles: one warp asks for tiles, the
   others multiply them.

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
   their coordinates and the loops and conditions around them, however they come about.
   The consumers, as many warps as the source asks for, keep everything else. So lists of
   blocks, two loops after each other, and a loop in a loop are nothing special: each ring
   has a stage and a phase, which both roles carry through the control flow that they have
   in common.

   It is done where it can pay: for loops of products by warpgroups, all of whose planned
   loads are TMA's, when the rings and the registers suffice. A loop that stays whole says
   why in {roles}. */
#include "passes/specialize.h"

#include "ir/base/util.h"

#include <string.h>

bool pass_specialize(Func *f, PassCx *cx);

enum {
    SM_REGS = 65536,
    GROUP_THREADS = 128,
    PRODUCER_REGS = 40,
    LITTLE_REGS = 24, /* of one whose consumers need all that there is */
    /* what a thread needs beside accumulators and fragments */
    OTHER_REGS = 32,
    MAX_REGS = 240
};

/* Two products, the second with an operand out of registers: what skew.c makes more of.
 */
static bool
is_pair(const Op *loop)
{
    int n = 0;
    bool regs = false;
    for (const Op *op = loop->regions[0]->first; op; op = op->next) {
        n += op->kind == OP_WGMMA;
        regs |= op->kind == OP_WGMMA && op_operand(op, 0)->type->kind == TY_TILE;
    }
    return n == 2 && regs && !attr_has(&loop->attrs, ATTR_PENDING);
}

/* A product that is waited for at once, since its left operand is loaded into registers
   that the next iteration needs: one warpgroup loads while the other's product runs. */
static bool
loads_operand(const Op *loop)
{
    for (const Op *op = loop->regions[0]->first; op; op = op->next)
        if (op->kind == OP_WGMMA && value_def(op_operand(op, 0), OP_LOCAL_LOAD))
            return true;
    return false;
}

/* Sums in parts, which threads add: one warpgroup adds while the other multiplies. */
static bool
adds_parts(const Op *loop)
{
    for (const Op *op = loop->regions[0]->first; op; op = op->next)
        if (op->kind == OP_WGMMA && attr_has(&op->attrs, ATTR_PART))
            return true;
    return false;
}

/* Tiles in turn: the producer asks for the next one's while this one's results are
   stored. */
static bool
in_turn(const Op *loop)
{
    for (const Op *up = loop->parent->parent; up; up = up->parent->parent)
        if (up->kind == OP_FOR)
            return true;
    return false;
}

/* A sum of products alone goes as fast without roles: nothing but the next copies stands
   between its products, and all warps together ask for those (matmul 4096, 128x256x64 on
   an H200: 738 TFLOP/s, 725 with roles). Two products with other work between them gain:
   one warpgroup computes while the other's products run (attention 4096 of 128: 597
   TFLOP/s, 467 without). */
static bool
pays(Specialize *sp)
{
    for (int i = 0; i < sp->ngroup; i++) {
        const Op *loop = sp->group[i].loop;
        if (attr_has(&loop->attrs, ATTR_WARP_SPEC) || is_pair(loop) ||
            loads_operand(loop) || adds_parts(loop) || (sp->blocks == 1 && in_turn(loop)))
            return true;
    }
    sp->why = "neither asked for nor two products with work between them";
    return false;
}

/* Registers that threads of both roles may have. */
static void
share_registers(Specialize *sp, int groups, int producer)
{
    int launched = SM_REGS / GROUP_THREADS / (groups + 1) / sp->blocks & ~7;
    int each = (launched * (groups + 1) - producer) / groups & ~7;
    sp->regs[0] = producer;
    sp->regs[1] = each > MAX_REGS ? MAX_REGS : each;
}

/* Where the elements of v were left, in the same registers. */
static const Value *
same_registers(const Value *v)
{
    const Op *op = v->op;
    if (op && op->kind == OP_CONVERT_LAYOUT &&
        op_operand(op, 0)->type->layout == v->type->layout)
        return op_operand(op, 0);
    if (op && op->kind == OP_WGMMA_WAIT)
        return op_operand(op, v->index);
    return v;
}

/* Does the product add to what another one left, which nobody else wants, or read the
   fragments that another one in front reads? Then its operand is in registers that are
   counted there. */
static bool
is_counted(const Op *product, int operand)
{
    const Value *v = op_operand(product, operand), *from = same_registers(v);
    if (operand == 2)
        return from->op && from->op->kind == OP_WGMMA &&
               from->op->parent == product->parent && !v->uses->next;
    for (const Op *op = product->prev; op; op = op->prev)
        if (op->kind == OP_WGMMA && same_registers(op_operand(op, 0)) == from)
            return true;
    return false;
}

/* Words of all accumulators and operands from registers that are there at once, at most:
   those of a loop. A product in parts has one accumulator, beside the sum of them. */
static int
accumulators(const Region *r, int depth)
{
    int own = 0, inner = 0, parts = 0;
    for (const Op *op = r->first; op && depth < MAX_REGION_DEPTH; op = op->next) {
        bool part = op->kind == OP_WGMMA && attr_has(&op->attrs, ATTR_PART);
        for (int i = 0; op->kind == OP_WGMMA && i < 3; i += 2) {
            const Type *t = op_operand(op, i)->type;
            t = t->kind == TY_ASYNC ? t->elem : t;
            if (t->kind != TY_TILE || is_counted(op, i))
                continue;
            int words = (int)(type_numel(t) * type_bits(t) / 32);
            if (part && i == 2)
                parts = (int)max_i64(parts, 2 * words);
            else
                own += words;
        }
        for (int i = 0; i < op->nregion; i++)
            inner = (int)max_i64(inner, accumulators(op->regions[i], depth + 1));
    }
    return own + parts > inner ? own + parts : inner;
}

static bool
fits(Specialize *sp)
{
    int groups = sp->f->num_warps / 4;
    int words = accumulators(sp->f->body, 0) / (GROUP_THREADS * groups);
    share_registers(sp, groups, PRODUCER_REGS);
    if (sp->blocks > 1 || words + 2 * OTHER_REGS > sp->regs[1])
        share_registers(sp, groups, LITTLE_REGS);
    if (words + OTHER_REGS > sp->regs[1])
        return specialize_refuse(
            sp, "accumulators of %d registers and %d others do not fit into %d", words,
            OTHER_REGS, (int)sp->regs[1]);
    return true;
}

static void
say_why(Session *s, Region *r, const char *why, int depth)
{
    region_each(r, op)
    {
        if (op->kind == OP_FOR && attr_has(&op->attrs, ATTR_STAGES))
            attr_set_str(&s->mod, &op->attrs, ATTR_ROLES,
                         name_intern(&s->names, why, strlen(why)));
        for (int i = 0; i < op->nregion && depth < MAX_REGION_DEPTH; i++)
            say_why(s, op->regions[i], why, depth + 1);
    }
}

/* The plan; false: this is no such target, or sp->why. */
static bool
plan(Specialize *sp, Func *f, PassCx *cx)
{
    *sp = (Specialize){.s = cx->s, .f = f, .target = &cx->target};
    sp->turns = !cx->budget->no_turns;
    if (!cx->target.wgmma || f->num_warps % 4 || f->num_warps > 16)
        return false;
    /* one warpgroup alone leaves the tensor cores idle while it does anything else */
    sp->blocks = f->num_warps == 4 ? 2 : 1;
    if (cx->budget->no_roles)
        return specialize_refuse(sp, "with them it does not fit shared memory");
    return specialize_plan(sp) && fits(sp);
}

bool
specialize_possible(Func *f, PassCx *cx, int *blocks)
{
    Specialize *sp = arena_new(&cx->s->tmp, Specialize);
    bool can = plan(sp, f, cx);
    *blocks = sp->blocks;
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
        say_why(cx->s, f->body, sp->why, 0);
    return sp->why != NULL;
}

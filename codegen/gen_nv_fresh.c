/* Accumulators that a loop begins with zeros, once for each of several tiles: the first
   wgmma that adds to one overwrites it instead (scale-d is a predicate). So nothing
   clears 128 registers of each thread between two tiles, while nothing is multiplied.

       tiles: %old = phi [0, before], [%done, end of the tile]
       steps: %acc = phi [%old, front], [%sums, step]
              %sums = wgmma %a, %b, %acc, scale-d = (%k != %lo)
              ..
              %done = phi [wait %acc, steps], [0, none]

   It begins with the sums of the tile before, which nobody reads: where an accumulator is
   undefined, or defined on one of two paths, ptxas waits for each wgmma before the next.
   Where the loop has no iteration the sums are zeros, which block `none` sets.

   So the sums keep their registers until the tile ends, which threads that store results
   need for addresses and for what they exchange (256x128 fp32, 8 warps, ptxas 13.0: 560
   bytes of spills for 284): it is done where TMA stores all results. */
#include "codegen/gen_nv.h"

#include "ir/edit.h"
#include "ir/fold.h"

enum { ACC = 2 }; /* operand of wgmma */

/* The loop around `loop`, whose body that is in. */
static const Op *
around(const Op *loop)
{
    const Op *up = loop->parent->parent;
    return up && up->kind == OP_FOR && !attr_has(&up->attrs, ATTR_ONCE) ? up : NULL;
}

/* What the wait for result i of the loop returns; NULL: there is none behind it. */
static const Value *
sums_of(const Op *loop, int i)
{
    const Use *use = op_result((Op *)loop, i)->uses;
    bool waited = use && !use->next && use->user->kind == OP_WGMMA_WAIT &&
                  use->user->parent == loop->parent;
    return waited ? &use->user->results[use->index] : NULL;
}

/* Does a dot behind the loop add to v? It would need a copy, behind its fence, since the
   next tile begins with v. */
static bool
is_added_to(const Value *v)
{
    value_each_use(v, u) if (u->user->kind == OP_WGMMA && u->index == ACC) return true;
    return false;
}

/* Do threads store nothing behind the loop? */
static bool
sent_by_tma(const Op *loop)
{
    bool sent = false;
    for (const Op *op = loop->next; op; op = op->next) {
        sent |= op->kind == OP_TMA_STORE;
        if (op->nregion || op->kind == OP_STORE || op->kind == OP_ATOMIC_RMW)
            return false;
    }
    return sent;
}

/* Does the loop's carried value i begin with zeros for each of several tiles, and does
   only a wgmma of the body read it? Then the first one writes it, whatever it holds. */
static bool
nv_begins_fresh(const Op *loop, int i)
{
    const Value *arg = loop->regions[0]->args[i + 1];
    const Op *open = value_def(op_operand(loop, i + 3), OP_WGMMA_OPEN);
    const Use *use = arg->uses;
    if (!open || !use || use->next || !around(loop) ||
        attr_has(&loop->attrs, ATTR_ONCE) || type_bits(arg->type->elem) != 32 ||
        !sums_of(loop, i) || is_added_to(sums_of(loop, i)) || !sent_by_tma(loop))
        return false;
    const Op *dot = use->user;
    return dot->kind == OP_WGMMA && use->index == ACC &&
           dot->parent == loop->regions[0] &&
           !attr_has(&dot->attrs, ATTR_MAX_IMPRECISE) &&
           value_is_zero(op_operand(open, 0));
}

LLVMValueRef
nv_adds(Gen *g, const Op *dot)
{
    const Value *acc = op_operand(dot, ACC);
    const Op *loop = acc->op ? NULL : acc->region->parent;
    if (!loop || loop->kind != OP_FOR || acc->index < 1 ||
        !nv_begins_fresh(loop, acc->index - 1))
        return NULL;
    LLVMValueRef k = nv_scalar(g, loop->regions[0]->args[0]);
    LLVMValueRef lo = nv_scalar(g, op_operand(loop, 0));
    return k && lo ? LLVMBuildICmp(g->b, LLVMIntNE, k, lo, "") : NULL;
}

void
nv_fresh_open(Gen *g, const Op *tiles, LLVMBasicBlockRef before)
{
    for (const Op *loop = tiles->regions[0]->first; loop; loop = loop->next)
        for (int i = 0; loop->kind == OP_FOR && i < loop->nresult; i++) {
            if (!nv_begins_fresh(loop, i))
                continue;
            const Value *arg = loop->regions[0]->args[i + 1];
            LLVMTypeRef t = nv_type(g, arg->type);
            LLVMValueRef zero = LLVMConstNull(t);
            int n = nv_count(arg->type);
            Regs *old = arena_new(&g->s->tmp, Regs);
            *old = (Regs){.n = n, .v = arena_array(&g->s->tmp, LLVMValueRef, n)};
            for (int r = 0; r < n; r++) {
                old->v[r] = LLVMBuildPhi(g->b, t, "");
                LLVMAddIncoming(old->v[r], &zero, &before, 1);
            }
            map_set(&nv_of(g)->old, arg, old);
        }
}

bool
nv_fresh_close(Gen *g, const Op *tiles, LLVMBasicBlockRef last)
{
    for (const Op *loop = tiles->regions[0]->first; loop; loop = loop->next)
        for (int i = 0; loop->kind == OP_FOR && i < loop->nresult; i++) {
            if (!nv_begins_fresh(loop, i))
                continue;
            Regs *old = map_get(&nv_of(g)->old, loop->regions[0]->args[i + 1]);
            const Regs *sums = nv_regs(g, sums_of(loop, i));
            if (!old || !sums)
                return false;
            for (int r = 0; r < old->n; r++)
                LLVMAddIncoming(old->v[r], &sums->v[r], &last, 1);
        }
    return true;
}

/* Zeros that are set in this block: LLVM would set constants in front of the branch. */
static Regs *
set_here(Gen *g, const Regs *zeros)
{
    Regs *out = arena_new(&g->s->tmp, Regs);
    *out = (Regs){.n = zeros->n, .v = arena_array(&g->s->tmp, LLVMValueRef, zeros->n)};
    for (int i = 0; i < zeros->n; i++)
        out->v[i] = zeros->v[i];
    nv_through_asm(g, "// no wgmma", out->v, out->n, NULL, 0);
    return out;
}

void
nv_fresh_begin(Gen *g, const Op *loop, Regs **init)
{
    for (int i = 0; i < loop->nresult; i++)
        if (nv_begins_fresh(loop, i))
            init[i] = map_get(&nv_of(g)->old, loop->regions[0]->args[i + 1]);
}

bool
nv_fresh_end(Gen *g, const Value *v, Regs *sums)
{
    const Op *loop = v->op;
    if (!loop || loop->kind != OP_FOR || !nv_begins_fresh(loop, v->index))
        return true;
    LLVMValueRef range[3];
    for (int i = 0; i < 3; i++)
        if (!(range[i] = nv_scalar(g, op_operand(loop, i))))
            return false;
    LLVMBasicBlockRef ran = LLVMGetInsertBlock(g->b);
    LLVMBasicBlockRef none = LLVMAppendBasicBlockInContext(g->cx, g->fn, "none");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(g->cx, g->fn, "sums");
    LLVMBuildCondBr(g->b, nv_goes_on(g, range[0], range[1], range[2]), after, none);
    LLVMPositionBuilderAtEnd(g->b, none);
    const Regs *zeros = set_here(g, nv_regs(g, op_operand(loop, 3 + v->index)));
    LLVMBuildBr(g->b, after);
    LLVMPositionBuilderAtEnd(g->b, after);
    for (int i = 0; i < sums->n; i++) {
        LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(sums->v[i]), "");
        LLVMAddIncoming(phi, &sums->v[i], &ran, 1);
        LLVMAddIncoming(phi, &zeros->v[i], &none, 1);
        sums->v[i] = phi;
    }
    return true;
}

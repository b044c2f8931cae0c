/* Kernels that are launched while the primary grid may still run (launch_pdl): they
   wait for it where they first touch what it may have written. Those that multiply tiles
   say where their last access stands, or the producer's last load, that the secondary
   grid may begin.

       %i = program_id {axis=0}              %i = program_id {axis=0}
       ..                                    ..
       if %some {                     =>     grid_wait
         load ..                             if %some {
         .. dot ..                             load ..
         store ..                              .. dot ..
                                               launch_dependents
                                               store ..

   In front of the wait stays what needs no global memory: indices, random numbers,
   shared memory and its barriers. The wait stands in the kernel's body, ahead of the
   roles and of any condition, also where no program touches memory: see
   codegen/gen_nv_grid.c. Where the source waits by itself (gdc_wait), in the body too, it
   is left to the source what may come before; a wait in a loop or condition, or that the
   roles took along, is none for all.

   When the next grid may begin is a matter of speed alone. Its programs go where there is
   room, and stay there: said too early, they crowd on few SMs, of which one
   may have room for two where every one should have one. On an H200, said at the start,
   the training steps of tests/train take 19.4 ms instead of 16.5; rows and elements lose
   by it wherever it stands (a softmax of 4096 x 1024 takes 5.8 us, said at the end 7.0,
   not at all 4.6), dots gain most at their end. */
#include "ir/build.h"
#include "ir/edit.h"
#include "passes/forms.h"

bool pass_insert_pdl(Func *f, PassCx *cx);

enum { FIRST_SM = 90 };

static bool
touches_memory(const Op *op)
{
    Effect e;
    for (int i = 0; i < 2 && opkind_effect(op->kind, i, &e); i++)
        if (e.resource == RES_GLOBAL)
            return true;
    if (op->kind == OP_PRINT || op->kind == OP_ASSERT)
        return true;
    for (int i = 0; i < op->nregion; i++)
        for (const Op *in = op->regions[i]->first; in; in = in->next)
            if (touches_memory(in))
                return true;
    return false;
}

static bool
lets_next_begin(const Func *f)
{
    region_each_deep(f->body, op) if (op->kind == OP_LAUNCH_DEPENDENTS) return true;
    return false;
}

static void
put(Op *before, OpKind kind)
{
    Builder b = builder_before(before);
    b.loc = before->loc;
    build_op(&b, kind, NULL, 0, NULL, NULL, 0);
}

/* In front of the last access of a region, or in it where that is a condition or roles,
   of which the first loads; behind a loop. */
static void
put_next(Region *r)
{
    Op *op = r->last;
    for (Op *at = r->first; at != r->last; at = at->next)
        if (touches_memory(at))
            op = at;
    if (op == r->last || !op->nregion)
        put(op, OP_LAUNCH_DEPENDENTS);
    else if (op->kind == OP_IF)
        for (int i = 0; i < op->nregion; i++)
            put_next(op->regions[i]);
    else if (op->kind == OP_WARP_SPECIALIZE)
        put(op->regions[0]->last, OP_LAUNCH_DEPENDENTS);
    else
        put(op->next, OP_LAUNCH_DEPENDENTS);
}

bool
pass_insert_pdl(Func *f, PassCx *cx)
{
    bool wait = !region_has(f->body, OP_GRID_WAIT);
    bool next = !lets_next_begin(f) && region_has_trait(f->body, T_DOT);
    if (!f->overlap || cx->target.sm < FIRST_SM || (!wait && !next))
        return false;
    if (wait) {
        Op *op = f->body->first;
        while (op->next && !touches_memory(op))
            op = op->next;
        put(op, OP_GRID_WAIT);
    }
    if (next)
        put_next(f->body);
    return true;
}

FormFault
insert_pdl_check(Func *f, const TargetInfo *t)
{
    bool waits = !f->overlap || t->sm < FIRST_SM || region_has(f->body, OP_GRID_WAIT);
    return (FormFault){waits ? NULL : f->body->last,
                       "ends a kernel that never waits for the primary grid"};
}

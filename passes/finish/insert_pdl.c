/* Programmatic dependent launch: kernels that are launched while the primary grid may
   still run (launch_pdl) wait for it in front of their first access of global memory.
   Those with dots launch the secondary grid in front of their last access, or of the
   producer's last load.

       %i = program_id {axis=0}              %i = program_id {axis=0}
       ..                                    ..
       if %some {                     =>     grid_wait
         load ..                             if %some {
         .. dot ..                             load ..
         store ..                              .. dot ..
                                               launch_dependents
                                               store ..

   What needs no global memory stays in front of the wait: indices, random numbers, shared
   memory and its barriers. The wait stands in the kernel's body, in front of roles and
   conditions, even if some programs access no memory: see codegen/gen_nv_grid.c. If the
   source has a wait of its own in the body (gdc_wait), the source decides what comes
   before it. A wait in a loop, a condition or a role does not count, since not all
   threads reach it.

   When the secondary grid is launched matters only for speed. Its programs start where
   there is room, and stay there. Launched too early they crowd on few SMs: one SM gets
   two of them where each should get one. With the launch at the kernel's start, the
   training steps of tests/train take 19.4 ms instead of 16.5 (H200, tests/gpu/overlap.c
   has the kernels, 2026-11-22). Kernels of rows and elements lose by a launch anywhere
   (softmax of 4096 x 1024: 5.8 us at the start, 7.0 at the end, 4.6 without); kernels
   with dots gain most by one at their end. */
#include "ir/build.h"
#include "ir/edit.h"
#include "passes/forms.h"

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

/* Inserts launch_dependents in front of the last access of a region. If that is in a
   condition, inside of it; if in roles, inside of the first, which loads; if in a loop,
   behind the loop. */
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

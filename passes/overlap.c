/* Kernels that are launched while the grid before them may still run (launch_pdl): they
   wait for it where they first touch what it may have written, and say at once that the
   grid behind them may begin.

       %i = program_id {axis=0}              grid_next
       ..                                    %i = program_id {axis=0}
       if %some {                     =>     ..
         load ..                             grid_wait
                                             if %some {
                                               load ..

   In front of the wait stays what needs no global memory: indices, random numbers,
   shared memory and its barriers. The wait stands in the kernel's body, ahead of the
   roles and of any condition, also where no program touches memory: see
   codegen/gen_nv_grid.c. Where the source waits by itself (gdc_wait), in the body too, it
   is left to the source what may come before; a wait in a loop or condition, or that the
   roles took along, is none for all.

   The next grid gets what room this one leaves, which is none before the last programs
   run: it is told so only when all have begun. */
#include "ir/build.h"
#include "passes/pass.h"

bool pass_overlap(Func *f, PassCx *cx);

enum { FIRST_SM = 90 };

static bool
touches_memory(const Op *op, int depth)
{
    Effect e;
    for (int i = 0; i < 2 && opkind_effect(op->kind, i, &e); i++)
        if (e.resource == RES_GLOBAL)
            return true;
    if (op->kind == OP_PRINT || op->kind == OP_ASSERT || depth > MAX_REGION_DEPTH)
        return true;
    for (int i = 0; i < op->nregion; i++)
        for (const Op *in = op->regions[i]->first; in; in = in->next)
            if (touches_memory(in, depth + 1))
                return true;
    return false;
}

static bool
has(const Region *r, OpKind kind, bool inside, int depth)
{
    for (const Op *op = r->first; op; op = op->next) {
        if (op->kind == kind)
            return true;
        for (int i = 0; i < op->nregion && inside && depth < MAX_REGION_DEPTH; i++)
            if (has(op->regions[i], kind, inside, depth + 1))
                return true;
    }
    return false;
}

static void
put(Op *before, OpKind kind)
{
    Builder b = builder_before(before);
    b.loc = before->loc;
    build_op(&b, kind, NULL, 0, NULL, NULL, 0);
}

bool
pass_overlap(Func *f, PassCx *cx)
{
    bool wait = !has(f->body, OP_GRID_WAIT, false, 0);
    bool next = !has(f->body, OP_GRID_NEXT, true, 0);
    if (!f->overlap || cx->target.sm < FIRST_SM || (!wait && !next))
        return false;
    if (wait) {
        Op *op = f->body->first;
        while (op->next && !touches_memory(op, 0))
            op = op->next;
        put(op, OP_GRID_WAIT);
    }
    if (next)
        put(f->body->first, OP_GRID_NEXT);
    return true;
}

/* Programs of a grid: which one this is, and programmatic dependent launch.

   Devices take 65535 programs along the second and third axis; a launch of more runs code
   that counts all programs along the first one ("folds").

   Programmatic dependent launch (sm_90 and later): a grid may
   begin while the one before it on the stream still runs, and waits for it by itself.

   A grid counts as ended when all its programs have, so one that does not wait could end
   before the primary grid, and the secondary grid would then see too little: every
   program waits, also one that has no work. The metadata says so, and the runtime lets
   nothing overlap that does not. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

enum { FIRST_SM = 90 };

/* Older devices never overlap grids: there is nothing to wait for. The wait is assembly,
   not LLVM's intrinsic, which is said to touch no memory: loads could pass it. */
void
nv_grid(Gen *g, const Op *op)
{
    if (g->info.sm < FIRST_SM)
        return;
    const char *text = op->kind == OP_GRID_WAIT ? "griddepcontrol.wait;"
                                                : "griddepcontrol.launch_dependents;";
    ptx_asm(g, text, "~{memory}", LLVMVoidTypeInContext(g->cx), NULL, 0, true);
}

/* Where the grid is folded, what was asked for along an axis are the last parameters. */
LLVMValueRef
nv_programs(Gen *g, int axis)
{
    static const PtxId num[] = {PTX_NCTAID_X, PTX_NCTAID_Y, PTX_NCTAID_Z};
    if (!g->info.folds)
        return ptx_call(g, num[axis], NULL, 0);
    unsigned first = LLVMCountParams(g->fn) - NV_AXES;
    return LLVMGetParam(g->fn, first + (unsigned)axis);
}

LLVMValueRef
nv_program(Gen *g, int axis)
{
    static const PtxId id[] = {PTX_CTAID_X, PTX_CTAID_Y, PTX_CTAID_Z};
    if (!g->info.folds)
        return ptx_call(g, id[axis], NULL, 0);
    LLVMValueRef at = ptx_call(g, PTX_CTAID_X, NULL, 0);
    for (int i = 0; i < axis; i++)
        at = LLVMBuildUDiv(g->b, at, nv_programs(g, i), "");
    return axis == NV_AXES - 1 ? at : LLVMBuildURem(g->b, at, nv_programs(g, axis), "");
}

/* In the body itself, not in a loop, condition or role, where not all come by. */
bool
nv_overlaps(const Gen *g, const Func *f)
{
    const Op *op = f->body->first;
    while (op && op->kind != OP_GRID_WAIT)
        op = op->next;
    return op && f->overlap && g->info.sm >= FIRST_SM;
}

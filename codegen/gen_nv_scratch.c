/* How an operation hands elements from thread to thread: through its scratch memory
   (ir/plan/scratch.h says how much it takes, passes/finish/alloc_shared.c where it is), a
   tile as a row-major array. Between writing and reading stands the operation's own
   barrier; before the memory is written again, one that passes/finish/insert_barriers.c
   inserts. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/plan/scratch.h"

void
nv_barrier(Gen *g)
{
    LLVMValueRef args[2] = {ll_int(g->i32, nv_of(g)->barrier),
                            ll_int(g->i32, 32 * nv_warps(g))};
    if (nv_of(g)->barrier)
        ptx_call(g, PTX_BARRIER_ROLE, args, 2);
    else
        ptx_call(g, PTX_BARRIER, args, 1);
}

/* Named barriers of warpgroups are those behind the ones that take turns
   (gen_nv_roles.c). Where their names run out all threads meet. */
bool
nv_barrier_op(Gen *g, const Op *op)
{
    enum { NAMES = 16, GROUP_THREADS = 128, MOST_GROUPS = 4 };
    const Nv *nv = nv_of(g);
    int groups = nv_warps(g) / 4, first = nv->pingpong ? nv->pingpong + MOST_GROUPS : 1;
    bool own = attr_has(&op->attrs, ATTR_GROUPS);
    if (own && attr_int(&op->attrs, ATTR_GROUPS, 0) != groups)
        return gen_unsupported(g, op, "of another number of warpgroups") != NULL;
    if (!own || groups > MOST_GROUPS || first + groups > NAMES) {
        nv_barrier(g);
        return true;
    }
    LLVMValueRef args[2] = {
        LLVMBuildAdd(g->b, nv_group(g), ll_int(g->i32, first), ""),
        ll_int(g->i32, GROUP_THREADS)};
    ptx_call(g, PTX_BARRIER_ROLE, args, 2);
    return true;
}

LLVMValueRef
nv_scratch_part(Gen *g, LLVMValueRef base, int64_t bytes)
{
    LLVMValueRef at = ll_int(g->i32, bytes);
    return bytes ? LLVMBuildInBoundsGEP2(g->b, g->i8, base, &at, 1, "") : base;
}

void
nv_tile_write(Gen *g, LLVMValueRef base, const Layout *l, const Type *t, const Regs *in)
{
    SharedMap m;
    F2 map = layout_matrix(l);
    nv_shared_map_make(g, &map, l, shared_elem_bytes(t), &m);
    m.owner = nv_owner(g, l);
    nv_shared_write(g, &m, base, type_elem(t), 0, 0, in);
}

void
nv_tile_read(Gen *g, LLVMValueRef base, const Layout *l, const Type *t, Regs *out)
{
    SharedMap m;
    F2 map = layout_matrix(l);
    nv_shared_map_make(g, &map, l, shared_elem_bytes(t), &m);
    nv_shared_read(g, &m, base, type_elem(t), 0, 0, out);
}

void
nv_scratch_write(Gen *g, LLVMValueRef base, const Type *t, const Regs *in)
{
    nv_tile_write(g, base, t->layout, t, in);
}

void
nv_scratch_read(Gen *g, LLVMValueRef base, const Type *t, Regs *out)
{
    nv_tile_read(g, base, t->layout, t, out);
}

/* Copies from global to shared memory that a thread starts and does not wait for
   (cp.async). A masked-off copy reads nothing and writes zeros: its source has size 0.
   Where the predicate does not hold, nothing is written either: a branch around them all.
   There are none of less than four bytes: such elements go through a register at once,
   and the wait finds them there. */
#include "codegen/gen_nv_access.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"

#include <stdio.h>

enum { MIN_COPY = 4, MAX_COPY = 16 };

/* Register bits whose elements one copy moves: consecutive in the buffer, in memory
   ({contig}) and in the thread. */
static int
copy_run(const Op *op, const Layout *l, const SharedMap *m, uint32_t *bits)
{
    const Attr *contig = attr_find(&op->attrs, ATTR_CONTIG);
    int best = 1;
    *bits = 0;
    for (int d = 0; contig && d < contig->n && d < l->rank; d++) {
        int n = 1;
        uint32_t mask = 0;
        for (int i = 0; n < m->run && 2 * n <= contig->v.ints[d]; i++, n *= 2) {
            if (l->basis[LD_REG][m->run_bit[i]] != 1u << (layout_shift(l, d) + i))
                break;
            mask |= 1u << m->run_bit[i];
        }
        if (n > best) {
            best = n;
            *bits = mask;
        }
    }
    return best;
}

static void
copy(Gen *g, LLVMValueRef to, LLVMValueRef from, int bytes, LLVMValueRef live,
     LLVMValueRef owner)
{
    char text[128], guard[8] = "", size[16] = "";
    LLVMValueRef args[4] = {LLVMBuildPtrToInt(g->b, to, g->i32, ""),
                            LLVMBuildPtrToInt(g->b, from, g->i64, "")};
    int n = 2;
    if (live) {
        snprintf(size, sizeof size, ", $%d", n);
        args[n++] =
            LLVMBuildSelect(g->b, live, ll_int(g->i32, bytes), ll_int(g->i32, 0), "");
    }
    if (owner) {
        snprintf(guard, sizeof guard, "@$%d ", n);
        args[n++] = owner;
    }
    snprintf(text, sizeof text, "%scp.async.%s.shared.global.L2::128B [$0], [$1], %d%s;",
             guard, bytes == MAX_COPY ? "cg" : "ca", bytes, size);
    ptx_asm(g, text, live ? (owner ? "r,l,r,b" : "r,l,r") : (owner ? "r,l,b" : "r,l"),
            LLVMVoidTypeInContext(g->cx), args, n, true);
}

/* One element of `bits`. */
static void
copy_now(Gen *g, LLVMValueRef to, LLVMValueRef from, int bits, LLVMValueRef live,
         LLVMValueRef owner)
{
    PtxAccess a = nv_access(1, bits, ".global");
    LLVMValueRef elem = ll_int(LLVMIntTypeInContext(g->cx, (unsigned)bits), 0);
    LLVMValueRef none[4], word[4];
    if (live)
        nv_pack(g, a, bits, &elem, none);
    ptx_load(g, a, nv_address(g, from), live, none, word);
    nv_unpack(g, a, bits, word, &elem);
    nv_shared_store(g, to, bits, 1, &elem, owner);
}

static bool
gen_copy(Gen *g, const Op *op)
{
    const Value *vp = op_operand(op, 0), *mem = op_operand(op, 1);
    const Layout *l = vp->type->layout;
    SharedMap map;
    uint32_t skip;
    Regs *ptr = nv_regs(g, vp), *token = nv_define(g, &op->results[0], 1);
    Regs *mask = op->noperand > 2 ? nv_regs(g, op_operand(op, 2)) : NULL;
    LLVMValueRef base = nv_scalar(g, mem);
    LLVMValueRef pred = op->noperand > 3 ? nv_scalar(g, op_operand(op, 3)) : NULL;
    if (!ptr || !base || !token || !l || (op->noperand > 3 && !pred))
        return false;
    if (!nv_shared_map(g, mem->type, l, &map))
        return gen_unsupported(g, op, "with this layout") != NULL;
    token->v[0] = ll_int(g->i32, 0);
    int bytes = copy_run(op, l, &map, &skip) * map.bytes;
    bool now = bytes < MIN_COPY;
    LLVMValueRef owner = nv_owner(g, l);
    Guard guard = nv_guard_begin(g, pred);
    for (uint32_t r = 0; r < (uint32_t)ptr->n; r++) {
        LLVMValueRef live = mask ? mask->v[r] : NULL, to;
        if (!now && (r & skip))
            continue;
        to = nv_shared_at(g, &map, base, r);
        if (now)
            copy_now(g, to, ptr->v[r], 8 * map.bytes, live, owner);
        else
            copy(g, to, ptr->v[r], bytes, live, owner);
    }
    nv_guard_end(g, guard);
    return true;
}

bool
nv_async(Gen *g, const Op *op)
{
    if (op->kind == OP_ASYNC_COPY)
        return gen_copy(g, op);
    LLVMValueRef pending = ll_int(g->i32, attr_int(&op->attrs, ATTR_PENDING, 0));
    Regs *token = nv_define(g, &op->results[0], 1);
    if (!token)
        return false;
    token->v[0] = ll_int(g->i32, 0);
    if (op->kind == OP_ASYNC_COMMIT)
        ptx_call(g, PTX_CP_ASYNC_COMMIT, NULL, 0);
    else
        ptx_call(g, PTX_CP_ASYNC_WAIT, &pending, 1);
    return true;
}

/* Loads and stores of a thread's registers: elements that the layout pass found to lie
   side by side ({contig}) and that this thread holds in neighbouring registers move in
   one access of up to 16 bytes, under one predicate. Elements of one address are loaded
   once.

   A volatile load, which waits for another program, acquires: PTX's own .volatile is
   relaxed and would leave what the first cache holds of that program's results. */
#include "codegen/gen_nv_access.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"
#include "ir/edit.h"

#include <stdio.h>
#include <string.h>

/* An eviction policy is one of both caches: data that is read once must not push out of
   the second-level cache, either, what others are about to read. */
static PtxAccess
access_of(Gen *g, const Op *op, int n, int bits, char *q, size_t size)
{
    Name cache = attr_str(&op->attrs, ATTR_CACHE),
         evict = attr_str(&op->attrs, ATTR_EVICT);
    bool is_volatile = attr_has(&op->attrs, ATTR_VOLATILE);
    const char *order = op_acquires(op) ? ".acquire.sys" : is_volatile ? ".volatile" : "";
    if (is_volatile)
        cache = evict = NULL;
    if (cache)
        evict = NULL;
    snprintf(q, size, "%s.global%s%s%s%s%s", order, cache ? "." : "", cache ? cache : "",
             evict ? ".L1::" : "", evict ? evict : "", evict ? ".L2::cache_hint" : "");
    PtxAccess a = nv_access(n, bits, q);
    if (evict) {
        char text[80];
        snprintf(text, sizeof text, "createpolicy.fractional.L2::%s.b64 $0, 1.0;", evict);
        a.policy = ptx_asm(g, text, "=l", LLVMInt64TypeInContext(g->cx), NULL, 0, false);
    }
    return a;
}

/* Nothing, in registers of which the assembler does not know that it is nothing. Where it
   finds that a load of small floats never happens, it converts the upper half of a word
   of zeros to 3 * 2^-9 (ptxas 12.8 and 13.0: the number of the half is taken for what
   lies there; a random loop on an H200, 2026-11-23,
   tests/codegen/nvptx/small_floats.tk). */
static void
hide_nothing(Gen *g, PtxAccess a, LLVMValueRef *word)
{
    LLVMValueRef zero =
        ptx_asm(g, PTX_NEVER "selp.b32 $0, 1, 0, never; }", "=r", g->i32, NULL, 0, false);
    for (int i = 0; i < a.words; i++) {
        LLVMTypeRef t = LLVMTypeOf(word[i]);
        if (LLVMIsNull(word[i]) && LLVMGetTypeKind(t) == LLVMIntegerTypeKind)
            word[i] = LLVMBuildIntCast2(g->b, zero, t, false, "");
    }
}

/* The register bits that change neither the address nor the mask nor what takes its
   place: a scale of a group of neighbours is loaded once for all that a thread holds. */
static uint32_t
one_access(Gen *g, const Op *op, bool open)
{
    uint32_t same = nv_same_address(g, op_operand(op, 0));
    if (attr_has(&op->attrs, ATTR_VOLATILE) || op_acquires(op))
        return 0;
    for (int i = 1; i < op->noperand && same; i++)
        if (i != 2 || !open)
            same &= nv_same(g, op_operand(op, i));
    return same;
}

bool
nv_load(Gen *g, const Op *op)
{
    const Value *v = &op->results[0];
    const Type *e = type_elem(v->type);
    int bits = nv_memory_bits(e);
    Regs *ptr = nv_regs(g, op_operand(op, 0)), *mask = NULL, *other = NULL;
    Regs *out = nv_define(g, v, nv_count(v->type));
    bool open = op->noperand > 2 && value_def(op_operand(op, 2), OP_UNDEF);
    LLVMTypeRef word_type = LLVMIntTypeInContext(g->cx, (unsigned)bits);
    if (op->noperand > 1)
        mask = nv_regs(g, op_operand(op, 1));
    if (op->noperand > 2 && !open)
        other = nv_regs(g, op_operand(op, 2));
    if (!ptr || !out || (op->noperand > 1 && !mask))
        return false;
    char q[64];
    NvRun run = nv_run(op, v->type->layout, bits / 8);
    PtxAccess a = access_of(g, op, run.n, bits, q, sizeof q);
    uint32_t same = one_access(g, op, open) & ~run.mask;
    for (uint32_t r = 0; r < (uint32_t)out->n; r++) {
        LLVMValueRef elem[NV_ACCESS_BYTES], fill[NV_ACCESS_BYTES], word[4], rest[4];
        if (r & same)
            out->v[r] = out->v[r & ~same];
        if (r & (run.mask | same))
            continue;
        for (int k = 0; k < run.n; k++)
            fill[k] = other  ? nv_to_bits(g, e, other->v[nv_member(&run, r, k)], bits)
                      : open ? LLVMGetUndef(word_type)
                             : LLVMConstNull(word_type);
        if (mask)
            nv_pack(g, a, bits, fill, rest);
        if (mask && g->info.sm >= 89 && (e->scalar == SK_F8E4 || e->scalar == SK_F8E5))
            hide_nothing(g, a, rest);
        ptx_load(g, a, nv_address(g, ptr->v[r]), mask ? mask->v[r] : NULL, rest, word);
        nv_unpack(g, a, bits, word, elem);
        for (int k = 0; k < run.n; k++)
            out->v[nv_member(&run, r, k)] = nv_from_bits(g, e, elem[k]);
    }
    if (op_acquires(op))
        nv_acquired(g);
    return true;
}

bool
nv_store(Gen *g, const Op *op)
{
    const Value *v = op_operand(op, 1);
    const Type *e = type_elem(v->type);
    int bits = nv_memory_bits(e);
    Regs *ptr = nv_regs(g, op_operand(op, 0)), *val = nv_regs(g, v), *mask = NULL;
    if (op->noperand > 2)
        mask = nv_regs(g, op_operand(op, 2));
    if (!ptr || !val || (op->noperand > 2 && !mask))
        return false;
    char q[64];
    NvRun run = nv_run(op, v->type->layout, bits / 8);
    PtxAccess a = access_of(g, op, run.n, bits, q, sizeof q);
    LLVMValueRef owner = nv_owner(g, v->type->layout);
    for (uint32_t r = 0; r < (uint32_t)val->n; r++) {
        LLVMValueRef elem[NV_ACCESS_BYTES], word[4], pred = owner;
        if (r & run.mask)
            continue;
        for (int k = 0; k < run.n; k++)
            elem[k] = nv_to_bits(g, e, val->v[nv_member(&run, r, k)], bits);
        nv_pack(g, a, bits, elem, word);
        if (mask)
            pred = pred ? LLVMBuildAnd(g->b, pred, mask->v[r], "") : mask->v[r];
        ptx_store(g, a, nv_address(g, ptr->v[r]), pred, word);
    }
    return true;
}

/* Loads and stores of a thread's registers: elements that the layout pass found to lie
   side by side ({contig}) and that this thread holds in neighbouring registers move in
   one access of up to 16 bytes, under one predicate. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"

#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 16 };

/* Which registers make one access: reg[bit] is the register bit of element bit `bit`. */
typedef struct Run {
    int n; /* elements, a power of two */
    int bit[LAYOUT_MAX_BITS];
    uint32_t mask; /* of those register bits */
} Run;

static Run
run_of(const Op *op, const Layout *l, int bytes)
{
    const Attr *contig = attr_find(&op->attrs, ATTR_CONTIG);
    Run best = {.n = 1};
    for (int d = 0; l && contig && d < contig->n && d < l->rank; d++) {
        Run r = {.n = 1};
        int64_t most = min_i64(contig->v.ints[d], MAX_BYTES / bytes);
        int held = layout_run(l, d, r.bit);
        most = min_i64(most, held);
        for (int i = 0; ((int64_t)1 << (i + 1)) <= most; i++) {
            r.n *= 2;
            r.mask |= 1u << r.bit[i];
        }
        if (r.n > best.n)
            best = r;
    }
    return best;
}

static uint32_t
member(const Run *r, uint32_t base, int k)
{
    for (int i = 0; (1 << i) < r->n; i++)
        if (k >> i & 1)
            base |= 1u << r->bit[i];
    return base;
}

static void
qualifiers(const Op *op, char *out, size_t size)
{
    Name cache = attr_str(&op->attrs, ATTR_CACHE),
         evict = attr_str(&op->attrs, ATTR_EVICT);
    bool is_volatile = attr_has(&op->attrs, ATTR_VOLATILE);
    snprintf(out, size, "%s.global%s%s%s%s", is_volatile ? ".volatile" : "",
             cache && !is_volatile ? "." : "", cache && !is_volatile ? cache : "",
             evict && !cache && !is_volatile ? ".L1::" : "",
             evict && !cache && !is_volatile ? evict : "");
}

/* ---- elements and the 8- to 64-bit words that an access moves */

static LLVMTypeRef
bits_type(Gen *g, int bits)
{
    return LLVMIntTypeInContext(g->cx, (unsigned)bits);
}

/* How n elements of `bits` are moved: words of 64 bits for 64-bit elements, else of
   32, or one narrower word. */
static PtxAccess
access_of(int n, int bits, const char *q)
{
    int total = n * bits;
    int word = bits == 64 ? 64 : total < 32 ? total : 32;
    return (PtxAccess){.words = total / word, .bits = word, .qualifiers = q};
}

/* A word register of PTX has at least 16 bits. */
static LLVMValueRef
widen(Gen *g, LLVMValueRef x, int bits)
{
    return bits < 16 ? LLVMBuildZExt(g->b, x, bits_type(g, 16), "") : x;
}

static void
pack(Gen *g, PtxAccess a, int bits, LLVMValueRef *elem, LLVMValueRef *word)
{
    int per = a.bits / bits;
    for (int w = 0; w < a.words; w++) {
        if (per == 1) {
            word[w] = widen(g, elem[w], a.bits);
            continue;
        }
        LLVMTypeRef t = LLVMVectorType(bits_type(g, bits), (unsigned)per);
        LLVMValueRef v = LLVMGetPoison(t);
        for (int k = 0; k < per; k++)
            v = LLVMBuildInsertElement(g->b, v, elem[w * per + k], ll_int(g->i32, k), "");
        word[w] = widen(g, LLVMBuildBitCast(g->b, v, bits_type(g, a.bits), ""), a.bits);
    }
}

static void
unpack(Gen *g, PtxAccess a, int bits, LLVMValueRef *word, LLVMValueRef *elem)
{
    int per = a.bits / bits;
    for (int w = 0; w < a.words; w++) {
        LLVMValueRef x = word[w];
        if (a.bits < 16)
            x = LLVMBuildTrunc(g->b, x, bits_type(g, a.bits), "");
        if (per == 1) {
            elem[w] = x;
            continue;
        }
        LLVMTypeRef t = LLVMVectorType(bits_type(g, bits), (unsigned)per);
        LLVMValueRef v = LLVMBuildBitCast(g->b, x, t, "");
        for (int k = 0; k < per; k++)
            elem[w * per + k] = LLVMBuildExtractElement(g->b, v, ll_int(g->i32, k), "");
    }
}

static LLVMValueRef
address(Gen *g, LLVMValueRef ptr)
{
    return LLVMBuildPtrToInt(g->b, ptr, g->i64, "");
}

static int
memory_bits(const Type *e)
{
    return e->kind == TY_PTR ? 64 : type_bits(e) < 8 ? 8 : type_bits(e);
}

bool
nv_load(Gen *g, const Op *op)
{
    const Value *v = &op->results[0];
    const Type *e = type_elem(v->type);
    int bits = memory_bits(e);
    Regs *ptr = nv_regs(g, op_operand(op, 0)), *mask = NULL, *other = NULL;
    Regs *out = nv_define(g, v, nv_count(v->type));
    if (op->noperand > 1)
        mask = nv_regs(g, op_operand(op, 1));
    if (op->noperand > 2)
        other = nv_regs(g, op_operand(op, 2));
    if (!ptr || !out || (op->noperand > 1 && !mask))
        return false;
    char q[64];
    qualifiers(op, q, sizeof q);
    Run run = run_of(op, v->type->layout, bits / 8);
    PtxAccess a = access_of(run.n, bits, q);
    for (uint32_t r = 0; r < (uint32_t)out->n; r++) {
        LLVMValueRef elem[MAX_BYTES], fill[MAX_BYTES], word[4], rest[4];
        if (r & run.mask)
            continue;
        for (int k = 0; k < run.n; k++)
            fill[k] = other ? nv_to_bits(g, e, other->v[member(&run, r, k)], bits)
                            : LLVMConstNull(bits_type(g, bits));
        if (mask)
            pack(g, a, bits, fill, rest);
        ptx_load(g, a, address(g, ptr->v[r]), mask ? mask->v[r] : NULL, rest, word);
        unpack(g, a, bits, word, elem);
        for (int k = 0; k < run.n; k++)
            out->v[member(&run, r, k)] = nv_from_bits(g, e, elem[k]);
    }
    return true;
}

bool
nv_store(Gen *g, const Op *op)
{
    const Value *v = op_operand(op, 1);
    const Type *e = type_elem(v->type);
    int bits = memory_bits(e);
    Regs *ptr = nv_regs(g, op_operand(op, 0)), *val = nv_regs(g, v), *mask = NULL;
    if (op->noperand > 2)
        mask = nv_regs(g, op_operand(op, 2));
    if (!ptr || !val || (op->noperand > 2 && !mask))
        return false;
    char q[64];
    qualifiers(op, q, sizeof q);
    Run run = run_of(op, v->type->layout, bits / 8);
    PtxAccess a = access_of(run.n, bits, q);
    LLVMValueRef owner = nv_owner(g, v->type->layout);
    for (uint32_t r = 0; r < (uint32_t)val->n; r++) {
        LLVMValueRef elem[MAX_BYTES], word[4], pred = owner;
        if (r & run.mask)
            continue;
        for (int k = 0; k < run.n; k++)
            elem[k] = nv_to_bits(g, e, val->v[member(&run, r, k)], bits);
        pack(g, a, bits, elem, word);
        if (mask)
            pred = pred ? LLVMBuildAnd(g->b, pred, mask->v[r], "") : mask->v[r];
        ptx_store(g, a, address(g, ptr->v[r]), pred, word);
    }
    return true;
}

bool
nv_atomic(Gen *g, const Op *op)
{
    gen_unsupported(g, op, NULL);
    return false;
}

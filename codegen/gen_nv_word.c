/* Elements as bits, and what one thread moves between its registers and shared memory at
   once: up to 16 bytes of consecutive elements, as words of 32 bits (64 for elements of
   that size). Shared memory is reached by LLVM's loads and stores: it may reorder them,
   and barriers stop it. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"
#include "ir/plan/swizzle.h"

static LLVMTypeRef
bits_type(Gen *g, int bits)
{
    return LLVMIntTypeInContext(g->cx, (unsigned)bits);
}

LLVMValueRef
nv_to_bits(Gen *g, const Type *e, LLVMValueRef x, int bits)
{
    LLVMTypeRef t = bits_type(g, bits);
    if (e->kind == TY_PTR)
        return LLVMBuildPtrToInt(g->b, x, t, "");
    if (e->scalar == SK_I1)
        return LLVMBuildZExt(g->b, x, t, "");
    return LLVMBuildBitCast(g->b, x, t, "");
}

LLVMValueRef
nv_from_bits(Gen *g, const Type *e, LLVMValueRef x)
{
    if (e->kind == TY_PTR)
        return LLVMBuildIntToPtr(g->b, x, nv_type(g, e), "");
    if (e->scalar == SK_I1)
        return LLVMBuildICmp(g->b, LLVMIntNE, x, LLVMConstNull(LLVMTypeOf(x)), "");
    return LLVMBuildBitCast(g->b, x, ll_scalar(g->cx, e->scalar), "");
}

/* How n elements of `bits` are cut into words. */
typedef struct Words {
    int n, bits, per; /* per: elements of a word */
} Words;

static Words
words_of(int bits, int n)
{
    int total = n * bits, word = bits == 64 ? 64 : total < 32 ? total : 32;
    return (Words){total / word, word, word / bits};
}

void
nv_shared_store(Gen *g, LLVMValueRef at, int bits, int n, LLVMValueRef *elem,
                LLVMValueRef pred)
{
    Words w = words_of(bits, n);
    LLVMTypeRef word = bits_type(g, w.bits), part = bits_type(g, bits);
    LLVMValueRef v[SHARED_ACCESS / 4],
        all = LLVMGetPoison(ll_vector(word, (unsigned)w.n));
    for (int i = 0; i < w.n; i++) {
        v[i] = elem[i];
        if (w.per > 1) {
            LLVMValueRef x = LLVMGetPoison(LLVMVectorType(part, (unsigned)w.per));
            for (int k = 0; k < w.per; k++)
                x = LLVMBuildInsertElement(g->b, x, elem[i * w.per + k],
                                           ll_int(g->i32, k), "");
            v[i] = LLVMBuildBitCast(g->b, x, word, "");
        }
        if (pred && w.bits < 16)
            v[i] = LLVMBuildZExt(g->b, v[i], bits_type(g, 16), "");
        else if (!pred && w.n > 1)
            all = LLVMBuildInsertElement(g->b, all, v[i], ll_int(g->i32, i), "");
    }
    if (pred) {
        PtxAccess a = {.words = w.n, .bits = w.bits, .qualifiers = ".shared"};
        ptx_store(g, a, LLVMBuildPtrToInt(g->b, at, g->i32, ""), pred, v);
        return;
    }
    LLVMValueRef store = LLVMBuildStore(g->b, w.n > 1 ? all : v[0], at);
    LLVMSetAlignment(store, (unsigned)(n * bits / 8));
}

static void
load_elements(Gen *g, LLVMValueRef at, int bits, int n, LLVMValueRef *elem)
{
    Words w = words_of(bits, n);
    LLVMTypeRef word = bits_type(g, w.bits), part = bits_type(g, bits);
    LLVMValueRef all = LLVMBuildLoad2(g->b, ll_vector(word, (unsigned)w.n), at, "");
    LLVMSetAlignment(all, (unsigned)(n * bits / 8));
    for (int i = 0; i < w.n; i++) {
        LLVMValueRef v =
            w.n > 1 ? LLVMBuildExtractElement(g->b, all, ll_int(g->i32, i), "") : all;
        if (w.per == 1) {
            elem[i] = v;
            continue;
        }
        v = LLVMBuildBitCast(g->b, v, LLVMVectorType(part, (unsigned)w.per), "");
        for (int k = 0; k < w.per; k++)
            elem[i * w.per + k] = LLVMBuildExtractElement(g->b, v, ll_int(g->i32, k), "");
    }
}

/* ---- registers of a tile at their places */

void
nv_shared_map_make(Gen *g, const F2 *map, const Layout *l, int bytes, SharedMap *out)
{
    uint32_t image[F2_MAX];
    int regs = l->nbasis[LD_REG], n = l->nbasis[LD_LANE] + l->nbasis[LD_WARP];
    *out = (SharedMap){.map = *map, .regs = regs, .bytes = bytes};
    layout_replication(l, out->copies);
    out->run = shared_run(map, regs, SHARED_ACCESS / bytes, out->run_bit);
    for (int i = 0; (1 << i) < out->run; i++)
        out->run_mask |= 1u << out->run_bit[i];
    for (int i = 0; i < n; i++)
        image[i] = (uint32_t)map->col[regs + i] * (uint32_t)bytes;
    out->lead = nv_linear(g, image, n, &out->lead_bits);
}

void
nv_shared_move(Gen *g, SharedMap *m, LLVMValueRef by, uint32_t bits)
{
    m->lead = m->lead_bits & bits ? LLVMBuildXor(g->b, m->lead, by, "")
                                  : LLVMBuildOr(g->b, m->lead, by, "");
    m->lead_bits |= bits;
    m->moved = by;
    m->moved_bits = bits;
    m->nbase = 0;
}

uint32_t
nv_shared_offset(const SharedMap *m, uint32_t reg)
{
    return (uint32_t)f2_apply(&m->map, reg) * (uint32_t)m->bytes;
}

LLVMValueRef
nv_shared_at(Gen *g, SharedMap *m, LLVMValueRef base, uint32_t reg)
{
    uint32_t c = nv_shared_offset(m, reg), x = c & m->lead_bits;
    LLVMValueRef at = NULL, rest = ll_int(g->i32, c & ~m->lead_bits);
    for (int i = 0; i < m->nbase; i++)
        if (m->base[i].x == x && m->base[i].of == base)
            at = m->base[i].at;
    if (!at) {
        LLVMValueRef lead =
            x ? LLVMBuildXor(g->b, m->lead, ll_int(g->i32, x), "") : m->lead;
        at = LLVMBuildInBoundsGEP2(g->b, g->i8, base, &lead, 1, "");
        if (m->nbase < COUNT_OF(m->base))
            m->base[m->nbase++] = (SharedBase){x, base, at};
    }
    return c & ~m->lead_bits ? LLVMBuildInBoundsGEP2(g->b, g->i8, at, &rest, 1, "") : at;
}

/* Register of element k of the access that begins with register `reg`. */
static uint32_t
register_of(const SharedMap *m, uint32_t reg, int k)
{
    for (int i = 0; (1 << i) < m->run; i++)
        if (k >> i & 1)
            reg |= 1u << m->run_bit[i];
    return reg;
}

void
nv_shared_read(Gen *g, SharedMap *m, LLVMValueRef base, const Type *e, uint32_t only,
               uint32_t part, Regs *out)
{
    LLVMValueRef elem[SHARED_ACCESS];
    int bits = m->bytes * 8;
    for (uint32_t r = 0; r < (uint32_t)out->n; r++) {
        if ((r & m->run_mask) || (r & only) != part)
            continue;
        load_elements(g, nv_shared_at(g, m, base, r), bits, m->run, elem);
        for (int k = 0; k < m->run; k++)
            out->v[register_of(m, r, k)] = nv_from_bits(g, e, elem[k]);
    }
}

void
nv_shared_write(Gen *g, SharedMap *m, LLVMValueRef base, const Type *e, uint32_t only,
                uint32_t part, const Regs *in)
{
    LLVMValueRef elem[SHARED_ACCESS];
    int bits = m->bytes * 8;
    for (uint32_t r = 0; r < (uint32_t)in->n; r++) {
        if ((r & (m->run_mask | m->copies[LD_REG])) || (r & only) != part)
            continue;
        for (int k = 0; k < m->run; k++)
            elem[k] = nv_to_bits(g, e, in->v[register_of(m, r, k)], bits);
        nv_shared_store(g, nv_shared_at(g, m, base, r), bits, m->run, elem, m->owner);
    }
}

/* ---- what only some threads do */

Guard
nv_guard_begin(Gen *g, LLVMValueRef cond)
{
    Guard guard = {0};
    if (!cond)
        return guard;
    LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(g->cx, g->fn, "owner");
    guard.after = LLVMAppendBasicBlockInContext(g->cx, g->fn, "all");
    LLVMBuildCondBr(g->b, cond, then, guard.after);
    LLVMPositionBuilderAtEnd(g->b, then);
    return guard;
}

void
nv_guard_end(Gen *g, Guard guard)
{
    if (!guard.after)
        return;
    LLVMBuildBr(g->b, guard.after);
    LLVMPositionBuilderAtEnd(g->b, guard.after);
}

/* Reads bytes across the rows of a buffer: a thread needs a word of four bytes of one
   column, as for 8-bit dot operands that are not contiguous along the inner dimension.

   ldmatrix with .trans moves pairs of bytes. Its matrices are eight rows of 16 bytes, and
   a lane gets a pair of bytes from each of two rows. Two matrices hold the four rows of a
   word, for two columns, and prmt separates the columns.

       first   a0 b0  a1 b1           column a   a0 a1 a2 a3
       second  a2 b2  a3 b3     =>    column b   b0 b1 b2 b3

   Lanes give the addresses of a matrix's rows, which may be any rows. The last row bit of
   a matrix selects rows that are at least four rows apart, so half of its rows would hit
   the banks of the other half. To avoid that, the bit also exchanges rows between the two
   matrices. Lanes with the bit set get their two words in the other order, which an
   exclusive or with prmt's selector makes up for. A lane bit may exchange the two columns
   in the same way: ir/layout_bytes.c says why. */
#include "codegen/gen_nv.h"

#include <stdio.h>

enum { LANES = 5, ROW = 16, FORM = 3 };

static uint32_t
image(const SharedMap *m, int bit)
{
    return (uint32_t)m->map.col[bit] * (uint32_t)m->bytes;
}

static bool
find_form(Gen *g, const SharedMap *m, const Type *e, ByteMap *x)
{
    uint32_t thread[2 * LANES + LAYOUT_MAX_WARP_BITS] = {0};
    int lane = m->regs, warps = m->map.nin - m->regs - LANES, n = 0;
    *x = (ByteMap){.col = -1, .more = -1, .rows = *m};
    if (m->bytes != 1 || e->kind == TY_PTR || e->scalar == SK_I1 || m->regs < FORM)
        return false;
    for (int i = 0; i < m->regs; i++) {
        if (image(m, i) == 1 && x->col < 0)
            x->col = i;
        else if (image(m, i) % ROW)
            return false;
        else if (n < 2)
            x->row[n++] = i;
        else if (x->more < 0)
            x->more = i;
    }
    uint32_t last = image(m, lane + 4);
    x->crossed = last == 9;
    if (x->col < 0 || n < 2 || image(m, lane) % ROW || image(m, lane + 1) % ROW ||
        image(m, lane + 2) != 2 || image(m, lane + 3) != 4 || (last != 8 && last != 9))
        return false;
    for (int i = 0; i < warps; i++)
        if (image(m, lane + LANES + i) % ROW)
            return false;
    thread[0] = image(m, x->row[0]);
    thread[1] = image(m, lane);
    thread[2] = image(m, lane + 1) ^ image(m, x->row[1]);
    thread[3] = image(m, x->row[1]);
    thread[4] = x->more < 0 ? 0 : image(m, x->more);
    for (int i = 0; i < warps; i++)
        thread[LANES + i] = image(m, m->regs + LANES + i);
    x->rows.nbase = 0;
    x->rows.lead = nv_linear(g, thread, LANES + warps, &x->rows.lead_bits);
    return true;
}

/* The prmt selector of column 0. */
static LLVMValueRef
selector(Gen *g, const ByteMap *x)
{
    const uint32_t by_lane[LANES] = {[1] = 0x4444, [4] = x->crossed ? 0x1111 : 0};
    uint32_t bits;
    LLVMValueRef sel = nv_linear(g, by_lane, LANES, &bits);
    return LLVMBuildXor(g->b, sel, ll_int(g->i32, 0x6420), "");
}

/* Puts the word of one column, by its selector, into the registers from r on. */
static void
part_column(Gen *g, const ByteMap *x, const Type *e, const LLVMValueRef *pair, uint32_t r,
            LLVMValueRef sel, Regs *out)
{
    LLVMValueRef in[3] = {pair[0], pair[1], sel};
    LLVMValueRef word = ll_intrinsic(g->b, "llvm.nvvm.prmt", NULL, 0, in, 3);
    word = LLVMBuildBitCast(g->b, word, LLVMVectorType(g->i8, 4), "");
    for (unsigned k = 0; k < 4; k++) {
        uint32_t to = r | (k & 1) << x->row[0] | (k >> 1) << x->row[1];
        LLVMValueRef byte = LLVMBuildExtractElement(g->b, word, ll_int(g->i32, k), "");
        out->v[to] = nv_from_bits(g, e, byte);
    }
}

bool
nv_bytes_open(Gen *g, const SharedMap *m, const Type *e, ByteMap *out)
{
    if (!find_form(g, m, e, out))
        return false;
    out->sel[0] = selector(g, out);
    out->sel[1] = LLVMBuildXor(g->b, out->sel[0], ll_int(g->i32, 0x1111), "");
    out->words = out->more < 0 ? 2 : 4;
    return true;
}

bool
nv_bytes_begins(const ByteMap *x, uint32_t r)
{
    uint32_t more = x->more < 0 ? 0 : 1u << x->more;
    return !(r & (1u << x->row[0] | 1u << x->row[1] | 1u << x->col | more));
}

void
nv_bytes_fetch(Gen *g, ByteMap *x, LLVMValueRef base, uint32_t r, LLVMValueRef *word)
{
    char name[80];
    snprintf(name, sizeof name, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x%d.trans.b16",
             x->words);
    LLVMValueRef at = nv_shared_at(g, &x->rows, base, r);
    LLVMTypeRef t = LLVMTypeOf(at);
    LLVMValueRef all = ll_intrinsic(g->b, name, &t, 1, &at, 1);
    for (int i = 0; i < x->words; i++)
        word[i] = LLVMBuildExtractValue(g->b, all, (unsigned)i, "");
}

void
nv_bytes_part(Gen *g, const ByteMap *x, const Type *e, uint32_t r,
              const LLVMValueRef *word, Regs *out)
{
    for (int i = 0; i < x->words; i += 2) {
        uint32_t first = r | (i ? 1u << x->more : 0);
        part_column(g, x, e, word + i, first, x->sel[0], out);
        part_column(g, x, e, word + i, first | 1u << x->col, x->sel[1], out);
    }
}

bool
nv_ldmatrix_bytes(Gen *g, const SharedMap *m, LLVMValueRef base, const Type *e, Regs *out)
{
    ByteMap x;
    LLVMValueRef word[4];
    if (!nv_bytes_open(g, m, e, &x))
        return false;
    for (uint32_t r = 0; r < (uint32_t)out->n; r++)
        if (nv_bytes_begins(&x, r)) {
            nv_bytes_fetch(g, &x, base, r, word);
            nv_bytes_part(g, &x, e, r, word, out);
        }
    return true;
}

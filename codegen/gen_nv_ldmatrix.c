/* Fragments from shared memory by ldmatrix: a warp reads up to four matrices of 8 rows of
   16 bytes, each lane names one row, and each lane gets four bytes of each matrix.

   Whether a local_load is such a read is seen from the map of registers, lanes and warps
   to offsets alone:

       plain       the bytes of a word are its registers', lane bits 0 and 1 are the words
                   of a row, lane bits 2 to 4 and everything else choose whole rows
       transposed  (16-bit elements) lane bits 2 to 4 are the elements of a row, register
                   bit 0 and lane bits 0 and 1 its number

   where "choose rows" means: move by multiples of 16 bytes, in any linear way. So one
   test covers every swizzle and both operands. */
#include "codegen/gen_nv.h"

#include "ir/base/util.h"

#include <stdio.h>

enum { ROW = 16, WORD = 4, LANES = 5 };

typedef struct Matrix {
    bool trans;
    int word_bits;      /* register bits inside of a word */
    int word[2];        /* those */
    uint32_t row[3];    /* image of the bits of a row's number, in bytes */
    int more[2], nmore; /* register bits that number the matrices of one read */
} Matrix;

static uint32_t
image(const SharedMap *m, int bit)
{
    return (uint32_t)m->map.col[bit] * (uint32_t)m->bytes;
}

/* Do all bits but those in `low` (a bit set) move by whole rows? */
static bool
rest_moves_rows(const SharedMap *m, uint64_t low)
{
    for (int i = 0; i < m->map.nin; i++)
        if (!(low >> i & 1) && image(m, i) % ROW)
            return false;
    return true;
}

static bool
is_plain(const SharedMap *m, Matrix *out)
{
    int lane = m->regs;
    uint64_t low = (uint64_t)3 << lane;
    *out = (Matrix){.word_bits = m->bytes == 1 ? 2 : m->bytes == 2 ? 1 : 0};
    if (m->bytes > WORD || image(m, lane) != WORD || image(m, lane + 1) != 2 * WORD)
        return false;
    for (int i = 0; i < out->word_bits; i++) {
        int at = 0;
        while (at < m->regs && image(m, at) != (uint32_t)m->bytes << i)
            at++;
        if (at == m->regs)
            return false;
        out->word[i] = at;
        low |= (uint64_t)1 << at;
    }
    for (int i = 0; i < 3; i++)
        out->row[i] = image(m, lane + 2 + i);
    return rest_moves_rows(m, low);
}

static bool
is_trans(const SharedMap *m, Matrix *out)
{
    int lane = m->regs;
    *out = (Matrix){.trans = true, .word_bits = 1};
    if (m->bytes != 2 || m->regs < 1)
        return false;
    for (int i = 0; i < 3; i++)
        if (image(m, lane + 2 + i) != 2u << i)
            return false;
    out->row[0] = image(m, 0);
    out->row[1] = image(m, lane);
    out->row[2] = image(m, lane + 1);
    return rest_moves_rows(m, (uint64_t)7 << (lane + 2));
}

static bool
in_word(const Matrix *x, int bit)
{
    for (int i = 0; i < x->word_bits; i++)
        if (x->word[i] == bit)
            return true;
    return false;
}

/* One read of 1, 2 or 4 matrices; words as i32. */
static void
read_rows(Gen *g, const Matrix *x, LLVMValueRef at, LLVMValueRef *word)
{
    static const char *const count[] = {"x1", "x2", "x4"};
    char name[80];
    LLVMTypeRef t = LLVMTypeOf(at);
    snprintf(name, sizeof name, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.%s%s.b16",
             count[x->nmore], x->trans ? ".trans" : "");
    LLVMValueRef r = ll_intrinsic(g->b, name, &t, 1, &at, 1);
    for (int i = 0; i < 1 << x->nmore; i++)
        word[i] = x->nmore ? LLVMBuildExtractValue(g->b, r, (unsigned)i, "") : r;
}

/* The elements of word `word`, whose first register is r. */
static void
unpack(Gen *g, const SharedMap *m, const Matrix *x, const Type *e, LLVMValueRef word,
       uint32_t r, Regs *out)
{
    unsigned per = 1u << x->word_bits;
    LLVMTypeRef part = LLVMIntTypeInContext(g->cx, (unsigned)m->bytes * 8);
    LLVMValueRef v = word;
    if (per > 1)
        v = LLVMBuildBitCast(g->b, word, LLVMVectorType(part, per), "");
    for (unsigned k = 0; k < per; k++) {
        uint32_t to = r;
        for (int i = 0; i < x->word_bits; i++)
            to |= (k >> i & 1) << x->word[i];
        LLVMValueRef elem =
            per > 1 ? LLVMBuildExtractElement(g->b, v, ll_int(g->i32, k), "") : v;
        out->v[to] = nv_from_bits(g, e, elem);
    }
}

bool
nv_ldmatrix(Gen *g, const SharedMap *m, LLVMValueRef base, const Type *e, Regs *out)
{
    Matrix x;
    uint32_t thread[2 * LANES + LAYOUT_MAX_WARP_BITS] = {0};
    int warps = m->map.nin - m->regs - LANES;
    if (e->kind == TY_PTR || e->scalar == SK_I1 || (!is_plain(m, &x) && !is_trans(m, &x)))
        return false;
    uint32_t skip = 0;
    for (int i = 0; i < m->regs; i++) {
        bool inside = in_word(&x, i);
        if (!inside && x.nmore < 2)
            x.more[x.nmore++] = i;
        else if (!inside)
            continue;
        skip |= 1u << i;
    }
    for (int i = 0; i < 3; i++)
        thread[i] = x.row[i];
    for (int i = 0; i < x.nmore; i++)
        thread[3 + i] = image(m, x.more[i]);
    for (int i = 0; i < warps; i++)
        thread[LANES + i] = image(m, m->regs + LANES + i);
    SharedMap rows = *m; /* the same buffer, seen by the lanes that name rows */
    rows.nbase = 0;
    rows.lead = nv_linear(g, thread, LANES + warps, &rows.lead_bits);
    for (uint32_t r = 0; r < (uint32_t)out->n; r++) {
        LLVMValueRef word[4];
        if (r & skip)
            continue;
        read_rows(g, &x, nv_shared_at(g, &rows, base, r), word);
        for (uint32_t j = 0; j < 1u << x.nmore; j++) {
            uint32_t first = r;
            for (int i = 0; i < x.nmore; i++)
                first |= (j >> i & 1) << x.more[i];
            unpack(g, m, &x, e, word[j], first, out);
        }
    }
    return true;
}

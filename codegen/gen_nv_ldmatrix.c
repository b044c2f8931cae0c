/* Fragments from and to shared memory by ldmatrix and stmatrix: up to four matrices at
   once. Whether a map of registers and threads to offsets is such an access:
   ir/layout_matrix.h. */
#include "codegen/gen_nv.h"

#include "ir/base/util.h"
#include "ir/layout_matrix.h"

#include <stdio.h>

enum { LANES = 5 };

typedef struct Matrix {
    MatrixForm form;
    int more[2], nmore; /* register bits that number the matrices of one access */
    uint32_t skip;      /* registers that another one's access takes along */
    SharedMap rows;     /* the same buffer, seen by the lanes that name rows */
} Matrix;

static uint32_t
image(const SharedMap *m, int bit)
{
    return (uint32_t)m->map.col[bit] * (uint32_t)m->bytes;
}

static bool
in_word(const Matrix *x, int bit)
{
    for (int i = 0; i < x->form.word_bits; i++)
        if (x->form.word[i] == bit)
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
             count[x->nmore], x->form.trans ? ".trans" : "");
    LLVMValueRef r = ll_intrinsic(g->b, name, &t, 1, &at, 1);
    for (int i = 0; i < 1 << x->nmore; i++)
        word[i] = x->nmore ? LLVMBuildExtractValue(g->b, r, (unsigned)i, "") : r;
}

/* The elements of word `word`, whose first register is r. */
static void
unpack(Gen *g, const SharedMap *m, const Matrix *x, const Type *e, LLVMValueRef word,
       uint32_t r, Regs *out)
{
    unsigned per = 1u << x->form.word_bits;
    LLVMTypeRef part = LLVMIntTypeInContext(g->cx, (unsigned)m->bytes * 8);
    LLVMValueRef v = word;
    if (per > 1)
        v = LLVMBuildBitCast(g->b, word, LLVMVectorType(part, per), "");
    for (unsigned k = 0; k < per; k++) {
        uint32_t to = r;
        for (int i = 0; i < x->form.word_bits; i++)
            to |= (k >> i & 1) << x->form.word[i];
        LLVMValueRef elem =
            per > 1 ? LLVMBuildExtractElement(g->b, v, ll_int(g->i32, k), "") : v;
        out->v[to] = nv_from_bits(g, e, elem);
    }
}

/* Registers (r & only) == part are wanted: the bits of `only` number no matrices. */
static bool
find_matrix(Gen *g, const SharedMap *m, const Type *e, uint32_t only, Matrix *x)
{
    uint32_t thread[2 * LANES + LAYOUT_MAX_WARP_BITS] = {0};
    int warps = m->map.nin - m->regs - LANES;
    *x = (Matrix){.rows = *m};
    if (e->kind == TY_PTR || e->scalar == SK_I1 ||
        !matrix_form(&m->map, m->regs, m->bytes, &x->form))
        return false;
    for (int i = 0; i < m->regs; i++) {
        bool inside = in_word(x, i);
        if (inside && (only >> i & 1))
            return false;
        if (!inside && x->nmore < 2 && !(only >> i & 1))
            x->more[x->nmore++] = i;
        else if (!inside)
            continue;
        x->skip |= 1u << i;
    }
    for (int i = 0; i < 3; i++)
        thread[i] = x->form.row[i];
    for (int i = 0; i < x->nmore; i++)
        thread[3 + i] = image(m, x->more[i]);
    for (int i = 0; i < warps; i++)
        thread[LANES + i] = image(m, m->regs + LANES + i);
    x->rows.nbase = 0;
    x->rows.lead = nv_linear(g, thread, LANES + warps, &x->rows.lead_bits);
    if (m->moved)
        nv_shared_move(g, &x->rows, m->moved, m->moved_bits);
    return true;
}

/* First register of matrix j of the access that begins with register r. */
static uint32_t
matrix_reg(const Matrix *x, uint32_t r, uint32_t j)
{
    for (int i = 0; i < x->nmore; i++)
        r |= (j >> i & 1) << x->more[i];
    return r;
}

bool
nv_ldmatrix(Gen *g, const SharedMap *m, LLVMValueRef base, const Type *e, uint32_t only,
            uint32_t part, Regs *out)
{
    Matrix x;
    if (!find_matrix(g, m, e, only, &x))
        return false;
    for (uint32_t r = 0; r < (uint32_t)out->n; r++) {
        LLVMValueRef word[4];
        if ((r & x.skip) || (r & only) != part)
            continue;
        read_rows(g, &x, nv_shared_at(g, &x.rows, base, r), word);
        for (uint32_t j = 0; j < 1u << x.nmore; j++)
            unpack(g, m, &x, e, word[j], matrix_reg(&x, r, j), out);
    }
    return true;
}

/* The word whose first register is r. */
static LLVMValueRef
pack(Gen *g, const SharedMap *m, const Matrix *x, const Type *e, uint32_t r,
     const Regs *in)
{
    unsigned per = 1u << x->form.word_bits;
    LLVMTypeRef part = LLVMIntTypeInContext(g->cx, (unsigned)m->bytes * 8);
    LLVMValueRef v = per > 1 ? LLVMGetPoison(LLVMVectorType(part, per)) : NULL;
    for (unsigned k = 0; k < per; k++) {
        uint32_t from = r;
        for (int i = 0; i < x->form.word_bits; i++)
            from |= (k >> i & 1) << x->form.word[i];
        LLVMValueRef elem = nv_to_bits(g, e, in->v[from], m->bytes * 8);
        v = per > 1 ? LLVMBuildInsertElement(g->b, v, elem, ll_int(g->i32, k), "") : elem;
    }
    return LLVMBuildBitCast(g->b, v, g->i32, "");
}

bool
nv_stmatrix(Gen *g, const SharedMap *m, LLVMValueRef base, const Type *e, uint32_t only,
            uint32_t part, const Regs *in)
{
    static const char *const count[] = {"x1", "x2", "x4"};
    Matrix x;
    if (g->info.sm < 90 || m->owner || m->copies[LD_REG] ||
        !find_matrix(g, m, e, only, &x))
        return false;
    char name[80];
    snprintf(name, sizeof name, "llvm.nvvm.stmatrix.sync.aligned.m8n8.%s%s.b16",
             count[x.nmore], x.form.trans ? ".trans" : "");
    for (uint32_t r = 0; r < (uint32_t)in->n; r++) {
        LLVMValueRef arg[5];
        if ((r & x.skip) || (r & only) != part)
            continue;
        arg[0] = nv_shared_at(g, &x.rows, base, r);
        for (uint32_t j = 0; j < 1u << x.nmore; j++)
            arg[1 + j] = pack(g, m, &x, e, matrix_reg(&x, r, j), in);
        LLVMTypeRef t = LLVMTypeOf(arg[0]);
        ll_intrinsic(g->b, name, &t, 1, arg, 1 + (1 << x.nmore));
    }
    return true;
}

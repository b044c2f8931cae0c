/* Left operands of wgmma, of 8- or 32-bit elements, that are not contiguous along the
   inner dimension in shared memory, so that wgmma cannot read them there. Threads read
   them into registers, one step of the inner dimension at a time, while earlier steps are
   multiplied:

       ldmatrix or ld.shared                 of the next step
       wait for all but the last 3 steps     so that the registers of this step are free
       prmt                                  8-bit: the fragments of this step
       wgmma, commit

   32-bit elements are loaded as fragments. For bytes, an ldmatrix with .trans gives a
   thread two neighbours of a buffer's row, which belong to two neighbouring rows of the
   result. But in a fragment a thread's two rows are 8 rows apart. So the rows of the dot
   are taken in another order, which the accumulator's layout has as well
   (layout_row_pairs). The numbers of registers are the same in both orders. */
#include "codegen/gen_nv.h"

#include "ir/base/util.h"

bool
nv_left_open(Gen *g, const Value *mem, const int warps[2], bool pairs, LeftReader *out)
{
    enum { IN_WORD = 4 };
    const Type *t = mem->type;
    *out = (LeftReader){.elem = type_elem(t), .words = !pairs};
    out->plain = layout_wgmma_operand(g->s, t->shape, warps, pairs ? IN_WORD : 1);
    const Layout *l = pairs ? layout_row_pairs(g->s, out->plain) : out->plain;
    out->base = nv_scalar(g, mem);
    out->regs.n = 1 << l->nbasis[LD_REG];
    out->regs.v = arena_array(&g->s->tmp, LLVMValueRef, out->regs.n);
    out->raw = arena_alloc(&g->s->tmp, sizeof *out->raw * (size_t)out->regs.n,
                           alignof(LLVMValueRef));
    if (!out->base || !nv_shared_map(g, t, l, &out->map))
        return false;
    out->by_bytes = pairs && nv_bytes_open(g, &out->map, out->elem, &out->bytes);
    return true;
}

/* Which registers belong to the part: those with (register & *only) == *part. */
static void
part_bits(const LeftReader *x, LeftPart p, uint32_t *only, uint32_t *part)
{
    enum { ROWS = 64 };
    const Layout *l = x->plain;
    *only = *part = 0;
    for (int i = 0; i < l->nbasis[LD_REG]; i++) {
        uint32_t inner = (uint32_t)layout_part(l, l->basis[LD_REG][i], 1);
        uint32_t row = (uint32_t)layout_part(l, l->basis[LD_REG][i], 0);
        bool by_row = !p.all_rows && row >= ROWS;
        *only |= inner >= p.n || by_row ? 1u << i : 0;
        *part |=
            (inner >= p.n && (p.k & inner)) || (by_row && (p.row & row)) ? 1u << i : 0;
    }
}

static bool
begins(const LeftReader *x, uint32_t r, uint32_t only, uint32_t part)
{
    return x->by_bytes && (r & only) == part && nv_bytes_begins(&x->bytes, r);
}

void
nv_left_fetch(Gen *g, LeftReader *x, LeftPart p)
{
    uint32_t only, part;
    part_bits(x, p, &only, &part);
    if (x->words)
        nv_shared_read(g, &x->map, x->base, x->elem, only, part, &x->regs);
    for (uint32_t r = 0; r < (uint32_t)x->regs.n; r++)
        if (begins(x, r, only, part))
            nv_bytes_fetch(g, &x->bytes, x->base, r, x->raw[r]);
}

void
nv_left_take(Gen *g, LeftReader *x, LeftPart p, const char *wait)
{
    enum { MOST = 64 };
    uint32_t only, part;
    LLVMValueRef all[MOST];
    int at = 0, back = 0, words = x->bytes.words;
    part_bits(x, p, &only, &part);
    for (uint32_t r = 0; r < (uint32_t)x->regs.n; r++) {
        if (x->words && (r & only) == part && at < MOST)
            all[at++] = x->regs.v[r];
        for (int i = 0; begins(x, r, only, part) && i < words && at < MOST; i++)
            all[at++] = x->raw[r][i];
    }
    nv_through_asm(g, wait, all, at, NULL, 0);
    for (uint32_t r = 0; r < (uint32_t)x->regs.n; r++) {
        if (x->words && (r & only) == part && back < at)
            x->regs.v[r] = all[back++];
        if (!begins(x, r, only, part))
            continue;
        for (int i = 0; i < words && back < at; i++)
            x->raw[r][i] = all[back++];
        nv_bytes_part(g, &x->bytes, x->elem, r, x->raw[r], &x->regs);
    }
    if (!x->by_bytes && !x->words)
        nv_shared_read(g, &x->map, x->base, x->elem, only, part, &x->regs);
}

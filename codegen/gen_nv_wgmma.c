/* wgmma: the four warps of a warpgroup multiply 64 rows at a time by up to 256 columns,
   with operands in shared memory, asynchronously.

   An instruction refers to a buffer by a descriptor: its address, its swizzle, and two
   strides between the cores of 8 rows that the buffer consists of. All of it follows from
   the buffer's layout: the inverse of the layout gives the offset of an element, and the
   strides are the offsets of the first elements behind a core. Cores begin where the
   swizzle changes nothing, so the part of the buffer that an instruction takes is a
   constant added to the address.

   wgmma.fence orders registers: between what threads wrote or read and a wgmma that adds
   to them or has them as its left operand. One stands in front of each dot, behind
   whatever packs its operand and moves its sums. PTX asks for none between dots that add
   to the same sums and read shared memory; ptxas then puts it there itself (C7519).

   Only the low word of a descriptor changes. The descriptor is put together inside of the
   assembly, since LLVM would hoist 64-bit descriptors out of loops and spill them. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"
#include "ir/fold.h"
#include "ir/plan/scratch.h"
#include "ir/plan/wgmma_left.h"
#include "ir/plan/wgmma_promote.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 64, CORE = 8, MAX_N = 256, MAX_K = 32, MAX_ROWS = 16, TEXT = 4096 };

typedef struct Wgmma {
    ScalarKind a, b, acc;
    const char *types;
    int k, bits;
    bool transposable;
} Wgmma;

static const Wgmma wgmmas[] = {
#define WGMMA(a, b, acc, types, k, bits, tr)                                             \
    {SK_##a, SK_##b, SK_##acc, types, k, bits, tr},
#include "codegen/wgmma.def"
};

/* A buffer as an operand. `major`: the dimension that is also one of the result, rows of
   the left operand and columns of the right one. `inner`: the other one. */
typedef struct Buffer {
    F2 at; /* coordinates -> offset in elements */
    const Layout *l;
    int bytes, major, inner;
    bool trans;       /* elements are contiguous along `major` */
    LLVMValueRef low; /* (address >> 4), i32 */
    uint32_t high;
    uint32_t lead; /* leading byte offset >> 4, shifted to its bits in the low word */
} Buffer;

static uint32_t
offset_of(const Buffer *b, uint32_t major, uint32_t inner)
{
    uint32_t c =
        major << layout_shift(b->l, b->major) | inner << layout_shift(b->l, b->inner);
    return (uint32_t)f2_apply(&b->at, c) * (uint32_t)b->bytes;
}

/* The width of the buffer's chunks in bytes, which is that of its swizzle. */
static int
swizzle_of(const Buffer *b)
{
    /* row r of a chunk is at r * width, with its pieces of 16 bytes permuted */
    uint32_t one = b->trans ? offset_of(b, 0, 1) : offset_of(b, 1, 0);
    uint32_t width = one & ~15u;
    while (width & (width - 1))
        width &= width - 1;
    return (int)width;
}

static bool
open_buffer(Gen *g, const Value *v, int major, bool transposable, Buffer *out)
{
    F2 place = layout_matrix(v->type->layout);
    *out = (Buffer){.l = v->type->layout, .major = major, .inner = 1 - major};
    out->bytes = shared_elem_bytes(v->type);
    if (!f2_invert(&place, &out->at))
        return false;
    out->trans = offset_of(out, 1, 0) == (uint32_t)out->bytes;
    if (out->trans ? !transposable : offset_of(out, 0, 1) != (uint32_t)out->bytes)
        return false;
    int width = swizzle_of(out);
    uint32_t mode = width == 128 ? 1 : width == 64 ? 2 : width == 32 ? 3 : 0;
    bool one = v->type->shape[out->trans ? out->inner : major] == CORE;
    uint32_t core = one          ? (uint32_t)(CORE * width) /* there is no next one */
                    : out->trans ? offset_of(out, 0, CORE)
                                 : offset_of(out, CORE, 0);
    uint32_t chunk = (uint32_t)(width / out->bytes);
    bool wide = out->trans && (v->type->shape[major] > chunk);
    uint32_t lead = wide ? offset_of(out, chunk, 0) >> 4 : 1;
    if (!mode || core != (uint32_t)(CORE * width))
        return false;
    out->high = core >> 4 | mode << 30;
    out->lead = lead << 16;
    LLVMValueRef base = nv_scalar(g, v);
    if (!base)
        return false;
    base = LLVMBuildPtrToInt(g->b, base, g->i32, "");
    base = LLVMBuildAnd(g->b, base, ll_int(g->i32, 0x3ffff), "");
    base = LLVMBuildLShr(g->b, base, ll_int(g->i32, 4), "");
    out->low = LLVMBuildOr(g->b, base, ll_int(g->i32, out->lead), "");
    return true;
}

/* ---- the instructions of a part of the inner dimension */

typedef struct Steps {
    const Wgmma *w;
    int n, words;          /* columns; words of the accumulator */
    LLVMValueRef *d;       /* these words, which are updated */
    LLVMValueRef *in;      /* a's, then b's: low words of descriptors, or a's words */
    uint32_t *a_at, *b_at; /* per step: what is added to the low words */
    int nin, count;
    uint32_t a_high, b_high;
    bool a_regs, a_trans, b_trans;
    bool fresh; /* the first one: d = a * b, not d + a * b */
    LLVMValueRef adds; /* or, if not NULL, where this does not hold */
} Steps;

typedef struct Text {
    char *s;
    int at;
} Text;

static void
put(Text *t, const char *form, ...)
{
    va_list args;
    va_start(args, form);
    t->at += vsnprintf(t->s + t->at, TEXT, form, args);
    va_end(args);
}

static void
put_range(Text *t, int first, int n)
{
    for (int i = 0; i < n; i++)
        put(t, "%s$%d", i ? ", " : "{", first + i);
    put(t, "}");
}

/* The descriptor in register `d`: operand `low` of the statement and `at`, and `high`. */
static void
put_descriptor(Text *t, char d, int low, uint32_t at, uint32_t high)
{
    if (at)
        put(t, "add.s32 l%c, $%d, %d; mov.b64 d%c, {l%c, %d}; ", d, low, (int)at, d, d,
            (int)high);
    else
        put(t, "mov.b64 d%c, {$%d, %d}; ", d, low, (int)high);
}

static void
put_step(Text *t, const Steps *s, int i)
{
    int in = s->words;
    bool moved = s->b_at[i] || (!s->a_regs && s->a_at[i]);
    put(t, "%s{ .reg .b64 da, db; %s", i ? "\n\t" : "",
        moved ? ".reg .b32 la, lb; " : "");
    if (!s->a_regs)
        put_descriptor(t, 'a', in, s->a_at[i], s->a_high);
    put_descriptor(t, 'b', in + s->nin - 1, s->b_at[i], s->b_high);
    put(t, "wgmma.mma_async.sync.aligned.m64n%dk%d.%s ", s->n, s->w->k, s->w->types);
    put_range(t, 0, s->words);
    put(t, ", ");
    if (s->a_regs)
        put_range(t, in + 4 * i, 4);
    else
        put(t, "da");
    if (s->adds && i == 0)
        put(t, ", db, $%d", in + s->nin);
    else
        put(t, ", db, %d", !(s->fresh && i == 0));
    if (s->w->acc != SK_I32)
        put(t, ", 1, 1");
    if (s->w->transposable && !s->a_regs)
        put(t, ", %d", s->a_trans);
    if (s->w->transposable)
        put(t, ", %d", s->b_trans);
    put(t, "; }");
}

void
nv_through_asm(Gen *g, const char *text, LLVMValueRef *d, int n, LLVMValueRef *in,
               int nin)
{
    size_t size = (size_t)(2 * n + nin + 1) * 8;
    char *cons = arena_alloc(&g->s->tmp, size, 1);
    LLVMValueRef *args = arena_array(&g->s->tmp, LLVMValueRef, n + nin);
    LLVMTypeRef *types = arena_array(&g->s->tmp, LLVMTypeRef, n);
    int at = 0, m = 0;
    for (int i = 0; i < n; i++) {
        types[i] = LLVMTypeOf(d[i]);
        at += snprintf(cons + at, size - (size_t)at, "%s=%c", i ? "," : "",
                       types[i] == g->f32 ? 'f' : 'r');
    }
    for (int i = 0; i < nin; i++, m++) {
        args[m] = in[i];
        bool pred = LLVMTypeOf(in[i]) == LLVMInt1TypeInContext(g->cx);
        at += snprintf(cons + at, size - (size_t)at, pred ? ",b" : ",r");
    }
    for (int i = 0; i < n; i++, m++) {
        args[m] = d[i];
        at += snprintf(cons + at, size - (size_t)at, ",%d", i);
    }
    LLVMTypeRef all = LLVMStructTypeInContext(g->cx, types, (unsigned)n, 0);
    LLVMValueRef r = ptx_asm(g, text, cons, all, args, m, true);
    for (int i = 0; i < n; i++)
        d[i] = LLVMBuildExtractValue(g->b, r, (unsigned)i, "");
}

/* One statement for all steps. An accumulator goes into a statement and comes out of it,
   so with one a step LLVM would follow each of its words through every step: half of what
   it has to look at in a kernel of attention. */
static void
issue(Gen *g, Steps *s)
{
    Text t = {arena_alloc(&g->s->tmp, (size_t)s->count * TEXT, 1), 0};
    for (int i = 0; i < s->count; i++)
        put_step(&t, s, i);
    if (s->adds)
        s->in[s->nin] = s->adds;
    nv_through_asm(g, t.s, s->d, s->words, s->in, s->nin + (s->adds != NULL));
}

static void
plain(Gen *g, const char *text)
{
    ptx_asm(g, text, "", LLVMVoidTypeInContext(g->cx), NULL, 0, true);
}

/* ---- the op */

typedef struct WgmmaDot {
    Gen *g;
    const Wgmma *w;
    int n, warps[2];
    bool a_regs;
    bool by_steps; /* threads read the left operand step by step (gen_nv_left.c) */
    LeftReader left;
    bool fresh;           /* the accumulator begins with zeros */
    LLVMValueRef adds;    /* or does so where this does not hold, see nv_adds */
    int from, steps;      /* along k: the first element, and the number of instructions */
    uint8_t order[MAX_K]; /* the inner element that an instruction takes as its i-th */
    const Value *of;      /* the left operand */
    Regs *a;
    const Layout *la;
    Buffer mem[2];
    /* words of the left operand for `nrow` blocks of 64 rows, their first rows, and of
       how many steps from `from` on they are there */
    LLVMValueRef *word[MAX_ROWS];
    uint32_t row[MAX_ROWS];
    int packed[MAX_ROWS];
    int nrow;
    LLVMValueRef group[2]; /* number of this warpgroup along rows and columns */
} WgmmaDot;

static void
find_group(WgmmaDot *p)
{
    Gen *g = p->g;
    LLVMValueRef warp = LLVMBuildLShr(g->b, nv_uniform_warp(g), ll_int(g->i32, 2), "");
    p->group[0] = LLVMBuildAnd(g->b, warp, ll_int(g->i32, p->warps[0] / 4 - 1), "");
    p->group[1] = LLVMBuildLShr(
        g->b, warp, ll_int(g->i32, log2_floor((uint64_t)p->warps[0] / 4)), "");
}

/* The low word of the descriptor for this warpgroup's part of a buffer: 64 rows of the
   left operand, n columns of the right one. Parts are evenly spaced unless several of
   them share the width of the swizzle and others lie in the next: so each bit of the
   group's number has a distance of its own. */
static LLVMValueRef
group_part(WgmmaDot *p, const Buffer *b, int which)
{
    Gen *g = p->g;
    int size = which == 0 ? ROWS : p->n,
        count = which == 0 ? p->warps[0] / 4 : p->warps[1];
    if (count == 1)
        return b->low;
    uint32_t step = offset_of(b, (uint32_t)size, 0) >> 4;
    LLVMValueRef group = p->group[which], low = b->low;
    int even = 2;
    while (even < count && offset_of(b, (uint32_t)(size * even), 0) >> 4 == step * even)
        even *= 2;
    if (even < count)
        group = LLVMBuildAnd(g->b, group, ll_int(g->i32, even - 1), "");
    for (int bit = even; bit < count; bit *= 2) {
        LLVMValueRef has = LLVMBuildAnd(g->b, p->group[which], ll_int(g->i32, bit), "");
        uint32_t far = offset_of(b, (uint32_t)(size * bit), 0) >> 4;
        low = LLVMBuildAdd(
            g->b, low, LLVMBuildMul(g->b, has, ll_int(g->i32, far / (uint32_t)bit), ""),
            "");
    }
    LLVMValueRef by = LLVMBuildMul(g->b, group, ll_int(g->i32, step), "");
    return LLVMBuildAdd(g->b, low, by, "");
}

static int
row_of(const WgmmaDot *p, uint32_t m)
{
    int i = 0;
    while (i < p->nrow && p->row[i] != m)
        i++;
    return i;
}

/* Packs the words of a left operand in registers, for the steps up to `end`, in front of
   the fence: ptxas takes them for defined when the wgmma begins only if no instruction in
   between defines one. Not for operands that are read step by step: these are read in
   each iteration, so there is nothing to pack in front of the loop, or to keep. */
static bool
gather(WgmmaDot *p, const Layout *l, int first, int end)
{
    Gen *g = p->g;
    uint32_t m = (uint32_t)layout_part(l, layout_at(l, LD_REG, (uint32_t)first), 0);
    int row = row_of(p, m);
    if (row == MAX_ROWS)
        return false;
    if (row == p->nrow) {
        p->row[p->nrow] = m;
        p->packed[p->nrow] = 0;
        p->word[p->nrow++] = arena_array(&g->s->tmp, LLVMValueRef, 4 * p->steps);
    }
    int from = p->packed[row], n = 4 * (end - from);
    if (n <= 0)
        return true;
    LLVMValueRef *w = p->word[row] + 4 * from;
    LLVMBasicBlockRef here = p->by_steps ? NULL : nv_loop_pack(g, p->of);
    for (int i = from; i < end; i++)
        if (!nv_fragment(g, p->la, p->a, 0, m << layout_shift(p->la, 0),
                         (uint32_t)(p->from + i * p->w->k), p->w->bits, p->order,
                         p->word[row] + 4 * i))
            return false;
    if (!p->by_steps)
        nv_loop_keep(g, p->of, here, w, n);
    for (int i = 0; i < n; i += MAX_N)
        nv_through_asm(g, "", w + i, (int)min_i64(MAX_N, n - i), NULL, 0);
    p->packed[row] = end;
    return true;
}

/* Issues the steps `first` .. end - 1 along k for 64 rows from m on and n columns from c
   on; d: the words of that part of the accumulator. */
static void
block(WgmmaDot *p, uint32_t m, uint32_t c, int n, LLVMValueRef *d, int words, int first,
      int end)
{
    Gen *g = p->g;
    int count = end - first;
    Steps s = {.w = p->w, .n = n, .words = words, .d = d, .a_regs = p->a_regs};
    LLVMValueRef a = p->a_regs ? NULL : group_part(p, &p->mem[0], 0);
    LLVMValueRef b = group_part(p, &p->mem[1], 1);
    s.a_high = p->mem[0].high, s.b_high = p->mem[1].high;
    s.a_trans = p->mem[0].trans, s.b_trans = p->mem[1].trans;
    s.fresh = p->fresh && first == 0;
    s.adds = first == 0 ? p->adds : NULL;
    s.count = count;
    s.in = arena_array(&g->s->tmp, LLVMValueRef, 4 * count + 2);
    s.a_at = arena_array(&g->s->tmp, uint32_t, count);
    s.b_at = arena_array(&g->s->tmp, uint32_t, count);
    for (int i = 0; i < count; i++) {
        uint32_t k = (uint32_t)(p->from + (first + i) * p->w->k);
        s.a_at[i] = p->a_regs ? 0 : offset_of(&p->mem[0], m, k) >> 4;
        s.b_at[i] = offset_of(&p->mem[1], c, k) >> 4;
    }
    if (p->a_regs)
        memcpy(s.in, p->word[row_of(p, m)] + 4 * first,
               sizeof *s.in * (size_t)(4 * count));
    else
        s.in[0] = a;
    s.nin = p->a_regs ? 4 * count : 1;
    s.in[s.nin++] = b;
    issue(g, &s);
}

/* p->order: the order of inner elements in the right operand's buffer, which may be that
   of accumulator registers (passes/mma/lower_wgmma.c). A left operand in memory must have
   the same order. False: it has not. */
static bool
find_order(WgmmaDot *p)
{
    int bytes = p->mem[1].bytes;
    for (int k = 0; k < p->w->k; k++)
        p->order[k] = (uint8_t)k;
    for (int k = 0; k < p->w->k && !p->mem[1].trans; k++) {
        uint32_t at = offset_of(&p->mem[1], 0, (uint32_t)k);
        if (at >= (uint32_t)(p->w->k * bytes) ||
            (p->by_steps && at != (uint32_t)(k * bytes)) ||
            (!p->a_regs && offset_of(&p->mem[0], 0, (uint32_t)k) != at &&
             !p->mem[0].trans))
            return false;
        p->order[at / (uint32_t)bytes] = (uint8_t)k;
    }
    return true;
}

static bool
open_wgmma(Gen *g, const Op *op, WgmmaDot *p)
{
    const Value *a = op_operand(op, 0), *b = op_operand(op, 1);
    const Type *acc = op->results[0].type->elem;
    const Attr *part = attr_find(&op->attrs, ATTR_PART);
    bool pairs;
    *p = (WgmmaDot){.g = g, .a_regs = a->type->kind == TY_TILE, .of = a};
    p->la = a->type->layout;
    p->by_steps = wgmma_by_steps(op);
    for (int i = 0; i < COUNT_OF(wgmmas); i++)
        if (wgmmas[i].a == type_elem(a->type)->scalar &&
            wgmmas[i].b == type_elem(b->type)->scalar &&
            wgmmas[i].acc == type_elem(acc)->scalar)
            p->w = &wgmmas[i];
    if (!p->w || !g->info.wgmma ||
        !layout_is_wgmma(acc->layout, &p->n, p->warps, &pairs) ||
        (pairs && (p->a_regs || p->w->bits != 8)))
        return gen_unsupported(g, op, "of these types and layouts") != NULL;
    bool tr = p->w->transposable;
    if (p->by_steps) {
        p->a_regs = nv_left_open(g, a, p->warps, pairs, &p->left);
        p->a = &p->left.regs;
        p->la = p->left.plain;
    } else if (p->a_regs) {
        p->a = nv_regs(g, a);
    }
    if ((p->a_regs && !p->a) || (p->by_steps && !p->a_regs) ||
        (!p->a_regs && !open_buffer(g, a, 0, tr, &p->mem[0])) ||
        !open_buffer(g, b, 1, tr, &p->mem[1]) || !find_order(p))
        return gen_unsupported(g, op, "on these buffers") != NULL;
    p->from = part ? (int)part->v.ints[0] : 0;
    p->steps = (int)(part ? part->v.ints[1] : b->type->shape[0]) / p->w->k;
    find_group(p);
    return true;
}

/* Moves the initial value of an accumulator to its registers in front of the fence,
   unless they are there. ptxas would take a move behind the fence for a read of the
   result of a wgmma in flight, and wait for all of them. Also for a value that a loop
   carries, since it may turn out to be a constant, and for sums that something else
   reads: LLVM may move that behind the wgmma, and keep a copy for it. */
static const Regs *
settle(Gen *g, const Value *v, const Regs *acc, int regs, int words, bool half)
{
    bool sums = v->op && v->op->kind == OP_WGMMA_WAIT && !v->uses->next;
    if (sums || value_is_zero(v) || v->type->kind == TY_ASYNC)
        return acc;
    Regs *own = arena_new(&g->s->tmp, Regs);
    LLVMValueRef *d = arena_array(&g->s->tmp, LLVMValueRef, words);
    *own = (Regs){.n = acc->n, .v = arena_array(&g->s->tmp, LLVMValueRef, acc->n)};
    for (int r = 0; r < acc->n; r += regs) {
        nv_acc_pack(g, acc->v + r, regs, d);
        nv_through_asm(g, "// sums begin", d, words, NULL, 0);
        nv_acc_unpack(g, d, words, half, own->v + r);
    }
    return own;
}

/* Takes the fragments of step i, which were fetched before, and fetches those of the next
   step. First waits for the wgmma that used the same registers; the last few stay in
   flight. */
static void
read_step(WgmmaDot *p, int i)
{
    enum { DEPTH = 4 };
    char text[64];
    LeftPart now = {.n = (uint32_t)p->w->k, .all_rows = true}, next;
    now.k = (uint32_t)(p->from + i * p->w->k);
    next = now;
    next.k += now.n;
    snprintf(text, sizeof text, "wgmma.wait_group.sync.aligned %d;",
             (int)min_i64(p->steps, DEPTH) - 1);
    if (!i)
        nv_left_fetch(p->g, &p->left, now);
    if (i + 1 < p->steps)
        nv_left_fetch(p->g, &p->left, next);
    nv_left_take(p->g, &p->left, now, text);
}

/* ---- {max_imprecise}: parts of the inner dimension, added by threads */

/* A wgmma over a part of the inner dimension and some columns: d, its words, are added to
   the accumulator's words, `to`. */
typedef struct Piece {
    LLVMValueRef *to, *d;
    int n;
    bool first; /* the accumulator is 0 so far */
    bool complete;
} Piece;

/* Waits for piece x, with at most `pending` later pieces in flight. */
static void
complete(Gen *g, Piece *x, int pending)
{
    char text[64];
    snprintf(text, sizeof text, "wgmma.wait_group.sync.aligned %d;", pending);
    if (!x->complete)
        nv_through_asm(g, text, x->d, x->n, NULL, 0);
    x->complete = true;
}

/* Adds piece x, for which it waits. ptxas would issue the next pieces before it adds and
   run out of registers (128x256x128 with 8 warps: 308 bytes spilled), so a branch that is
   never taken keeps the additions in front. */
static void
promote(Gen *g, Piece *x, int pending)
{
    if (!x->d)
        return;
    complete(g, x, pending);
    for (int i = 0; i < x->n; i++)
        x->to[i] = x->first ? x->d[i] : LLVMBuildFAdd(g->b, x->to[i], x->d[i], "");
    nv_through_asm(g, PTX_NEVER "@never pmevent 1; }", x->to, x->n, NULL, 0);
    x->d = NULL;
}

/* Reads `steps` steps of a left operand from inner element `from` on, for the 64 rows of
   the accumulator registers from r on. */
static void
fetch_part(WgmmaDot *p, const Layout *l, int r, int from, int steps)
{
    LeftPart part = {.n = (uint32_t)p->w->k, .k = (uint32_t)from};
    part.row = (uint32_t)layout_part(l, layout_at(l, LD_REG, (uint32_t)r), 0);
    for (int i = 0; p->by_steps && i < steps; i++, part.k += part.n)
        nv_left_fetch(p->g, &p->left, part);
}

/* Issues the wgmmas of a part, for the rows and columns of the accumulator registers from
   r on. Words of a left operand read by steps are put together for each step while the
   steps in front are multiplied. */
static bool
multiply_part(WgmmaDot *p, const Layout *l, int r, int columns, LLVMValueRef *d)
{
    uint32_t at = layout_at(l, LD_REG, (uint32_t)r);
    LeftPart part = {.n = (uint32_t)p->w->k, .row = (uint32_t)layout_part(l, at, 0)};
    int row = row_of(p, part.row);
    bool reads = p->by_steps && row == p->nrow;
    for (int i = 0, next; i < p->steps; i = next) {
        next = reads ? i + 1 : p->steps;
        part.k = (uint32_t)(p->from + i * p->w->k);
        if (reads)
            nv_left_take(p->g, &p->left, part, "");
        if (p->a_regs && !gather(p, l, r, next))
            return false;
        plain(p->g, "wgmma.fence.sync.aligned;");
        block(p, part.row, (uint32_t)layout_part(l, at, 1), columns, d, columns / 2, i,
              next);
    }
    return true;
}

/* {max_imprecise=n}: wgmma adds up n inner elements for a piece of the columns; threads
   add the piece while the next one is computed, by this warpgroup or another one. A left
   operand read by steps is loaded while the rows or part in front are multiplied, its
   words are put together while the steps in front are, and the fence behind its last load
   waits while the last rows are. Nothing is in flight behind the op, but its last piece
   may be added later (gen_nv_late.c). */
static bool
gen_promoted(Gen *g, const Op *op, WgmmaDot *p, const Regs *acc, Regs *out)
{
    const Layout *l = op->results[0].type->elem->layout;
    int most = (int)attr_int(&op->attrs, ATTR_MAX_IMPRECISE, 0);
    int all = p->steps * p->w->k, regs = p->n / 2;
    int at_once = 1, columns = wgmma_piece(op, &at_once), n = columns / 2;
    bool zero = p->fresh, fences = wgmma_fences(op);
    LLVMValueRef *d = arena_array(&g->s->tmp, LLVMValueRef, at_once * n);
    Piece last = {0};
    NvLate *late = nv_late(g, op);
    memcpy(out->v, acc->v, sizeof *out->v * (size_t)acc->n);
    if (late)
        last = (Piece){out->v + acc->n - n, late->piece, n, .complete = true};
    p->fresh = true;
    for (int k = 0, piece = 0, next; k < all; k = next) {
        next = k + most;
        p->from = k;
        p->steps = (int)min_i64(most, all - k) / p->w->k;
        for (int r = 0; r < acc->n; r += n, piece++) {
            /* the next piece needs the registers of this one, or of the left operand */
            if (k == 0 && r == 0)
                fetch_part(p, l, 0, 0, p->steps);
            if (at_once == 1 || (r % regs == 0 && p->by_steps))
                promote(g, &last, 0);
            if (r % regs == 0)
                p->nrow = 0;
            Piece x = {out->v + r, d + piece % at_once * n, n, .first = zero && k == 0};
            for (int i = 0; i < n; i++)
                x.d[i] = LLVMGetUndef(g->f32);
            if (!multiply_part(p, l, r, columns, x.d))
                return gen_unsupported(g, op, "on these layouts") != NULL;
            if (fences && next >= all && r + regs == acc->n)
                plain(g, "fence.proxy.async.shared::cta;");
            plain(g, "wgmma.commit_group.sync.aligned;");
            if (r % regs == 0 && r + regs < acc->n)
                fetch_part(p, l, r + regs, k, p->steps);
            else if (r % regs == 0 && next < all)
                fetch_part(p, l, 0, next, (int)min_i64(most, all - next) / p->w->k);
            promote(g, &last, 1);
            last = x;
        }
    }
    if (late) {
        complete(g, &last, 0);
        late->next = last.d;
    } else {
        promote(g, &last, 0);
    }
    return true;
}

static bool
gen_wgmma(Gen *g, const Op *op)
{
    WgmmaDot p;
    const Value *v = &op->results[0];
    const Regs *acc = nv_regs(g, op_operand(op, 2));
    if (!acc || !open_wgmma(g, op, &p))
        return false;
    Regs *out = nv_define(g, v, acc->n);
    const Layout *l = v->type->elem->layout;
    bool half = p.w->acc == SK_F16;
    p.fresh = value_is_zero(op_operand(op, 2));
    if (attr_has(&op->attrs, ATTR_MAX_IMPRECISE))
        return gen_promoted(g, op, &p, acc, out);
    p.adds = nv_adds(g, op);
    int regs = p.n / 2, words = half ? regs / 2 : regs;
    LLVMValueRef *d = arena_array(&g->s->tmp, LLVMValueRef, words);
    for (int at = 0, next; at < p.steps; at = next) { /* one commit group each */
        next = p.by_steps ? at + 1 : p.steps;
        if (p.by_steps)
            read_step(&p, at);
        for (int r = 0; r < acc->n && p.a_regs; r += regs)
            if (!gather(&p, l, r, next))
                return gen_unsupported(g, op, "on these layouts") != NULL;
        if (!at)
            acc = settle(g, op_operand(op, 2), acc, regs, words, half);
        plain(g, "wgmma.fence.sync.aligned;");
        for (int r = 0; r < acc->n; r += regs) {
            uint32_t c = layout_at(l, LD_REG, (uint32_t)r);
            nv_acc_pack(g, acc->v + r, regs, d);
            for (int i = 0; p.fresh && !at && i < words; i++)
                d[i] = LLVMGetUndef(LLVMTypeOf(d[i]));
            block(&p, (uint32_t)layout_part(l, c, 0), (uint32_t)layout_part(l, c, 1), p.n,
                  d, words, at, next);
            nv_acc_unpack(g, d, words, half, out->v + r);
        }
        plain(g, "wgmma.commit_group.sync.aligned;");
        acc = out;
    }
    return true;
}

bool
nv_wgmma(Gen *g, const Op *op)
{
    return op->kind == OP_WGMMA ? gen_wgmma(g, op) : nv_wgmma_wait(g, op);
}

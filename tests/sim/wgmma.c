/* wgmma: dots that a warpgroup starts and waits for. Each of its warps computes its
   16 of 64 rows. A dot goes into the warp's queue when it is issued and is computed
   at some time up to the wait that retires its group; until then its registers are nobody
   else's: reading or writing one is an error, but a plain move, which ptxas makes go
   away, joins the queue. */
#include "tests/sim/machine.h"
#include "tests/sim/products.h"

#include <stdio.h>
#include <stdlib.h>

static const uint32_t LEFT = 0x80000000; /* an operand of a dot, not its sums */
enum { MAX_N = 256, MAX_K = 32, CHUNK = 16 };

/* ---------------------------------------------------------------- operands */

typedef struct Operand {
    uint32_t start, lead, stride, width; /* width: bytes of a row of the swizzle's atom */
    int kind, bytes;
    bool trans; /* elements lie along rows (columns) of the result */
} Operand;

static bool
open_operand(Warp *w, const Insn *i, uint64_t d, int kind, bool trans, Operand *o)
{
    static const uint32_t widths[] = {0, 128, 64, 32};
    *o = (Operand){.start = (uint32_t)(d & 0x3fff) << 4 | (uint32_t)w->rank
                                                              << CLUSTER_SHIFT,
                   .lead = (uint32_t)(d >> 16 & 0x3fff) << 4,
                   .stride = (uint32_t)(d >> 32 & 0x3fff) << 4,
                   .width = widths[d >> 62],
                   .kind = kind,
                   .bytes = product_bytes(kind),
                   .trans = trans};
    if (!(d >> 49 & 7) && (o->width || !trans))
        return true;
    sim_fail(w, i, SIM_TEXT, "a descriptor 0x%llx is not known", (unsigned long long)d);
    return false;
}

/* Where the 16 bytes lie that begin with element (major, k). */
static uint32_t
chunk_at(const Operand *o, int major, int k)
{
    uint32_t at, m = o->width == 128 ? 7 : o->width == 64 ? 3 : o->width == 32 ? 1 : 0;
    uint32_t width = o->width;
    if (o->trans) {
        int wide = (int)width / o->bytes;
        at = o->start + (uint32_t)(major / wide) * o->lead +
             (uint32_t)(k / 8) * o->stride + (uint32_t)(k % 8) * width +
             (uint32_t)(major % wide * o->bytes);
    } else if (!width) {
        at = o->start + (uint32_t)(major / 8) * o->stride +
             (uint32_t)(major % 8) * CHUNK + (uint32_t)(k * o->bytes / CHUNK) * o->lead;
    } else {
        at = o->start + (uint32_t)(major / 8) * o->stride +
             (uint32_t)(major % 8) * width + (uint32_t)(k * o->bytes);
    }
    return at ^ (at >> 7 & m) << 4;
}

static uint32_t
word_of(const unsigned char *p, int bytes)
{
    uint32_t v = 0;
    memcpy(&v, p, (size_t)bytes);
    return v;
}

/* Elements (first.., 0..k): to[(major - first) * dm + k * dk]. With `who` the accesses
   are noted instead. */
static bool
each_chunk(Warp *w, const Insn *i, const Operand *o, int first, int n, int k, float *to,
           int dm, int dk, bool note)
{
    int per = CHUNK / o->bytes;
    int majors = o->trans ? n / per : n, ks = o->trans ? k : k / per;
    for (int a = 0; a < majors; a++)
        for (int c = 0; c < ks; c++) {
            int major = o->trans ? a * per : a, x = o->trans ? c : c * per;
            uint32_t at = chunk_at(o, first + major, x);
            if (note) {
                race_async(w, i, 0, (uint32_t)(w->b->base_mma + w->id), w->mma_group + 1,
                           at, CHUNK, READ, false);
                if (w->b->status)
                    return false;
                continue;
            }
            for (int e = 0; e < per; e++) {
                uint32_t v = word_of(w->b->shared + at + e * o->bytes, o->bytes);
                int j = o->trans ? (major + e) * dm + x * dk : major * dm + (x + e) * dk;
                to[j] = product_element(v, o->kind);
            }
        }
    return true;
}

/* ---------------------------------------------------------------- computing */

static int
columns(const Insn *i)
{
    return (int)(i->imm & 0xffff);
}

static int
depth(const Insn *i)
{
    return (int)(i->imm >> 16 & 0xff);
}

static void
left_registers(const Warp *w, const Insn *i, int kind, float a[16][MAX_K])
{
    int bytes = product_bytes(kind), per = 4 / bytes;
    for (int r = 0; r < 4; r++)
        for (int l = 0; l < LANES; l++)
            for (int e = 0; e < per; e++)
                a[l / 4 + 8 * (r & 1)][(r >> 1) * 4 * per + l % 4 * per + e] =
                    product_element(R32(w, i->r[i->nd + r])[l] >> 8 * bytes * e, kind);
}

static void
compute(Warp *w, const Pending *p)
{
    const Insn *i = p->insn;
    int kind = i->sub & 15, acc = i->sub >> 4 & 15, right = i->sub >> 8 & 15;
    int n = columns(i), k = depth(i);
    bool half = acc == P_F16;
    float a[16][MAX_K], b[MAX_K * MAX_N];
    static _Thread_local double sum[16][MAX_N];
    Operand o;
    if (i->n == 4)
        left_registers(w, i, kind, a);
    else if (!open_operand(w, i, p->a, kind, i->flags & TRANSPOSE, &o) ||
             !each_chunk(w, i, &o, w->id % 4 * 16, 16, k, a[0], MAX_K, 1, false))
        return;
    if (!open_operand(w, i, p->b, right, i->flags & READ_ONLY_WAIT, &o) ||
        !each_chunk(w, i, &o, 0, n, k, b, 1, n, false))
        return;
    float sign = i->flags & SIGNED ? -1.0f : 1.0f;
    for (int r = 0; r < 16 && sign < 0; r++)
        for (int x = 0; x < k; x++)
            a[r][x] *= sign;
    for (int l = 0; l < LANES; l++)
        for (int r = 0; r < n / 2; r++) {
            double *s =
                &sum[l / 4 + 8 * (r >> 1 & 1)][8 * (r >> 2) + 2 * (l % 4) + (r & 1)];
            uint32_t v =
                half ? R32(w, i->r[r >> 1])[l] >> 16 * (r & 1) : R32(w, i->r[r])[l];
            *s = !p->scale ? 0
                 : half    ? (double)f16_of(v & 0xffff)
                           : product_start(v, acc);
        }
    for (int r = 0; r < 16; r++)
        product_row(a[r], b, k, n, sum[r]);
    for (int l = 0; l < LANES; l++)
        for (int r = 0; r < n / 2; r += half ? 2 : 1) {
            const double *s =
                &sum[l / 4 + 8 * (r >> 1 & 1)][8 * (r >> 2) + 2 * (l % 4) + (r & 1)];
            if (half)
                R32(w, i->r[r >> 1])
                [l] = f16_bits((float)s[0]) | f16_bits((float)s[1]) << 16;
            else
                R32(w, i->r[r])[l] = product_result(*s, acc);
        }
}

static void
run_first(Warp *w, int count)
{
    for (int k = 0; k < count; k++) {
        const Pending *p = &w->pending[k];
        if (p->insn->fn == op_wgmma)
            compute(w, p);
        else
            memcpy(R32(w, p->insn->d), R32(w, p->insn->a), SLOT);
    }
    w->npending -= count;
    memmove(w->pending, w->pending + count, (size_t)w->npending * sizeof *w->pending);
}

void
wgmma_step(Warp *w)
{
    run_first(w, 1 + (int)sim_random(w->b, (uint32_t)w->npending));
}

static void
push(Warp *w, Pending p)
{
    if (w->npending == w->pending_room) {
        w->pending_room = w->pending_room ? 2 * w->pending_room : 64;
        w->pending = realloc(w->pending, (size_t)w->pending_room * sizeof p);
    }
    w->pending[w->npending++] = p;
}

/* ---------------------------------------------------------------- registers */

/* Before every instruction of a kernel with dots. */
void
wgmma_check(Warp *w, const Insn *i, bool *put_off)
{
    if (i->flags & IS_WGMMA)
        return;
    bool flying = w->mma_open || w->mma_done < w->mma_group;
    if (flying)
        for (int k = 0; k < i->nd + i->ns; k++) {
            uint32_t held = w->busy[i->r[k] / SLOT];
            if (!held)
                continue;
            if (i->flags & IS_MOVE && k == 1 && i->pred == NO_PRED && !(held & LEFT)) {
                push(w, (Pending){.insn = i, .group = held - 1});
                w->busy[i->d / SLOT] = held;
                *put_off = true;
                return;
            }
            sim_fail(w, i, SIM_ASYNC, "a register of a product that is under way is %s",
                     k < i->nd ? "written" : "read");
            return;
        }
    w->now++;
    for (int k = 0; k < i->nd; k++)
        w->stamp[i->r[k] / SLOT] = w->now;
}

static bool
is_fenced(Warp *w, const Insn *i, uint32_t place)
{
    if (w->fence && w->stamp[place / SLOT] <= w->fence)
        return true;
    sim_fail(w, i, SIM_ASYNC, "no wgmma.fence since a register of it was written");
    return false;
}

static bool
take_registers(Warp *w, const Insn *i)
{
    uint32_t held = w->mma_group + 1;
    for (int k = 0; k < i->nd; k++) {
        uint32_t *busy = &w->busy[i->r[k] / SLOT];
        if (*busy & LEFT) {
            sim_fail(w, i, SIM_ASYNC, "the sums are an operand of a product under way");
            return false;
        }
        if (!*busy && !is_fenced(w, i, i->r[k]))
            return false;
        *busy = held;
    }
    for (int k = 0; k < 4 && i->n == 4; k++) {
        uint32_t place = i->r[i->nd + k], *busy = &w->busy[place / SLOT];
        if (*busy && !(*busy & LEFT)) {
            sim_fail(w, i, SIM_ASYNC, "an operand is the result of a product under way");
            return false;
        }
        if (!*busy && !is_fenced(w, i, place))
            return false;
        *busy = held | LEFT;
    }
    return true;
}

/* ---------------------------------------------------------------- instructions */

static bool
uniform(Warp *w, const Insn *i, uint32_t place, uint64_t *out)
{
    *out = R64(w, place)[0];
    for (int l = 1; l < LANES; l++)
        if (R64(w, place)[l] != *out) {
            sim_fail(w, i, SIM_ASYNC, "the lanes' descriptors differ");
            return false;
        }
    return true;
}

/* The four warps of a group must run the same dots on the same operands. */
static bool
is_alike(Warp *w, const Insn *i, uint64_t a, uint64_t b)
{
    uint32_t seq = ++w->issued;
    int n = (int)(sizeof w->b->alike[0] / sizeof w->b->alike[0][0]);
    Alike *x = &w->b->alike[w->id / 4][seq % (uint32_t)n];
    if (x->seq == seq && (x->insn != i || x->a != a || x->b != b)) {
        sim_fail(w, i, SIM_ASYNC, "the warps of the group run different products");
        return false;
    }
    x->seq = seq, x->insn = i, x->a = a, x->b = b;
    return true;
}

static bool
all_here(Warp *w, const Insn *i)
{
    if (!warp_whole(w, i, 0xffffffff))
        return false;
    if (w->active == 0xffffffff && w->b->nwarps % 4 == 0)
        return true;
    sim_fail(w, i, SIM_BARRIER, "not all lanes of the warpgroup are there");
    return false;
}

/* r: sums; left operand (n: 4 registers, or 1 descriptor), descriptor. c: predicate. */
void
op_wgmma(Warp *w, const Insn *i, uint32_t mask)
{
    Pending p = {.insn = i, .group = w->mma_group};
    Operand o;
    int kind = i->sub & 15;
    (void)mask;
    if (!all_here(w, i) || !uniform(w, i, i->r[i->nd + i->n], &p.b) ||
        (i->n == 1 && !uniform(w, i, i->r[i->nd], &p.a)) || !is_alike(w, i, p.a, p.b))
        return;
    p.scale = PRED(w, i->c) & 1;
    if (!take_registers(w, i))
        return;
    if (i->n == 1 &&
        (!open_operand(w, i, p.a, kind, i->flags & TRANSPOSE, &o) ||
         !each_chunk(w, i, &o, w->id % 4 * 16, 16, depth(i), NULL, 0, 0, true)))
        return;
    if (!open_operand(w, i, p.b, kind, i->flags & READ_ONLY_WAIT, &o) ||
        !each_chunk(w, i, &o, 0, columns(i), depth(i), NULL, 0, 0, true))
        return;
    w->mma_open++;
    w->b->stats.wgmma++;
    push(w, p);
}

void
op_wgmma_fence(Warp *w, const Insn *i, uint32_t mask)
{
    (void)mask;
    if (all_here(w, i))
        w->fence = ++w->now;
}

void
op_wgmma_commit(Warp *w, const Insn *i, uint32_t mask)
{
    (void)mask;
    if (!all_here(w, i))
        return;
    w->mma_group++;
    w->mma_open = 0;
}

/* imm: groups that may stay under way */
void
op_wgmma_wait(Warp *w, const Insn *i, uint32_t mask)
{
    uint32_t stay = (uint32_t)i->imm, below;
    int last = 0;
    (void)mask;
    if (!all_here(w, i))
        return;
    below = w->mma_group > stay ? w->mma_group - stay : 0;
    if (below <= w->mma_done)
        return;
    for (int k = 0; k < w->npending; k++)
        if (w->pending[k].group < below)
            last = k + 1;
    run_first(w, last);
    w->mma_done = below;
    for (uint32_t k = 0; k < w->b->code->reg_bytes / SLOT; k++)
        if (w->busy[k] && (w->busy[k] & ~LEFT) <= below)
            w->busy[k] = 0;
}

/* Allocates shared memory: each buffer, mbarrier and op with scratch memory gets the byte
   offset of its memory, and the function the size of all of it. Memory that is not in use
   at the same time may overlap.

       %a = local_alloc : mem<f16, [64,64], #s>     %a = local_alloc {offset=0} : ..
       %x = local_load %a : ..                  =>  %x = local_load %a : ..
       %y = convert_layout %x : ..                  %y = convert_layout %x {offset=0} : ..

   First fit, the largest first: sizes are few and mostly powers of two, so there are
   hardly any holes. Two that overlap need a barrier between them
   (passes/finish/insert_barriers.c). For small memory that is not worth it: if an
   exchange between threads does not overlap with the one before it, the barrier inside of
   that one is enough.

   If a kernel does not fit, it gives up an optimisation (passes/budget.h), and its passes
   run once more. */
#include "ir/base/util.h"
#include "ir/layout.h"
#include "ir/plan/live.h"
#include "ir/plan/scratch.h"
#include "ir/plan/tma_box.h"
#include "passes/forms.h"

#include <stdlib.h>

typedef struct Placed {
    LiveRange r;
    int64_t offset;
} Placed;

/* wgmma and TMA swizzle by the address bits below 1024; a thread moves up to 16 bytes. */
static int64_t
alignment(const Op *op)
{
    if (op->kind == OP_BAR_ALLOC)
        return 8;
    if (op->kind == OP_TENSOR_MAP)
        return TENSOR_MAP_BYTES;
    if (op->kind != OP_LOCAL_ALLOC)
        return 16;
    const Layout *l = op->results[0].type->layout;
    bool plain = true; /* rows without swizzle */
    for (int i = 0; l && i < l->nbasis[LD_OFFSET]; i++)
        plain &= is_pow2(l->basis[LD_OFFSET][i]);
    return plain ? 128 : 1024;
}

/* So many bytes more are worth a barrier less: anywhere, and in a loop. */
enum { SMALL = 4096, SMALL_IN_LOOP = 16384 };

/* Scratch bytes for one conversion where memory is short, tried in this order: with less,
   a conversion takes more rounds. */
static const int64_t rounds[] = {32768, 16384, 8192};

/* Do threads exchange data through the memory: is it written and then read by others, as
   all scratch memory is? */
static bool
is_exchange(const LiveRange *r)
{
    return r->op->kind != OP_BAR_ALLOC &&
           (r->op->kind != OP_LOCAL_ALLOC || r->op->noperand);
}

static const Op *
loop_of(const Op *op)
{
    const Op *up = op->parent->parent;
    while (up && up->kind != OP_FOR && up->kind != OP_WHILE)
        up = up->parent->parent;
    return up;
}

/* Makes small exchanges that follow one another live at the same time, so that they do
   not overlap: also the last and the first of a loop, and tensor maps, which are written
   together. */
static void
keep_apart(LiveRange *r, int n)
{
    for (int i = 0, last = -1, first = -1; i < n; i++) {
        const Op *loop = loop_of(r[i].op);
        for (int k = 0; k < i && r[i].op->kind == OP_TENSOR_MAP; k++)
            if (r[k].op->kind == OP_TENSOR_MAP && r[k].op->parent == r[i].op->parent)
                r[k].last = (int)max_i64(r[k].last, r[i].first);
        if (!is_exchange(&r[i]) || r[i].bytes > (loop ? SMALL_IN_LOOP : SMALL))
            continue;
        if (last >= 0)
            r[last].last = (int)max_i64(r[last].last, r[i].first);
        if (first < 0 || loop_of(r[first].op) != loop)
            first = i;
        else if (loop)
            r[first].last = (int)max_i64(r[first].last, r[i].first);
        last = i;
    }
}

static int
by_size(const void *pa, const void *pb)
{
    const LiveRange *a = pa, *b = pb;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static bool
overlaps(const Placed *p, const LiveRange *r, int64_t offset)
{
    return live_together(&p->r, r) && p->offset < offset + r->bytes &&
           offset < p->offset + p->r.bytes;
}

static int64_t
first_fit(const Placed *placed, int n, const LiveRange *r)
{
    int64_t align = alignment(r->op), at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < n; i++) {
            if (!overlaps(&placed[i], r, at))
                continue;
            int64_t end = placed[i].offset + placed[i].r.bytes;
            at = (end + align - 1) / align * align;
            moved = true;
        }
    }
    return at;
}

/* The error that the kernel needs too much, at the op with the largest memory. */
static void
report(Func *f, PassCx *cx, const LiveRange *largest, int64_t total)
{
    Diag *d = &cx->s->diag;
    diag_error(d, f->loc,
               "kernel '%s' needs at least %lld bytes of shared memory, the target has "
               "%d: use smaller tiles",
               f->name, (long long)total, cx->target.shared_bytes);
    diag_note(d, largest->op->loc, "'%s' takes %lld of them here",
              op_info[largest->op->kind].name, (long long)largest->bytes);
}

/* Gives all ranges their offset; returns the bytes of all together. */
static int64_t
place(PassCx *cx, LiveRange *r, int n)
{
    Placed *placed = arena_array(&cx->s->tmp, Placed, n ? n : 1);
    int64_t total = 0;
    if (n)
        qsort(r, (size_t)n, sizeof *r, by_size);
    for (int i = 0; i < n; i++) {
        placed[i] = (Placed){r[i], first_fit(placed, i, &r[i])};
        total = max_i64(total, placed[i].offset + r[i].bytes);
        attr_set_int(&cx->s->mod, &r[i].op->attrs, ATTR_OFFSET, placed[i].offset);
    }
    return total;
}

/* Conversions use shuffles where they can; others that take more than `limit` bytes go in
   rounds. */
static void
limit_conversions(PassCx *cx, LiveRange *r, int n, int64_t limit)
{
    for (int i = 0; i < n; i++)
        if (r[i].op->kind == OP_CONVERT_LAYOUT &&
            (r[i].bytes > limit || scratch_can_shuffle(r[i].op)))
            attr_set_int(&cx->s->mod, &r[i].op->attrs, ATTR_BYTES, limit);
}

bool
pass_alloc_shared(Func *f, PassCx *cx)
{
    LiveRange *r;
    int n = 0;
    /* first with all memory that is useful, then with less and less */
    for (int attempt = 0; attempt < 2 + COUNT_OF(rounds); attempt++) {
        if (attempt >= 2)
            limit_conversions(cx, r, n, rounds[attempt - 2]);
        n = live_ranges(f, &cx->target, &cx->s->tmp, &r);
        if (attempt == 0)
            keep_apart(r, n);
        f->shared_bytes = place(cx, r, n);
        if (f->shared_bytes <= cx->target.shared_bytes)
            return n > 0;
    }
    if (!cx->budgets || !budget_reduce(cx->budget, f, f->shared_bytes))
        report(f, cx, &r[0], f->shared_bytes);
    return n > 0;
}

FormFault
alloc_shared_check(Func *f, const TargetInfo *t, Arena *a)
{
    LiveRange *r;
    int n = live_ranges(f, t, a, &r);
    Placed *placed = arena_array(a, Placed, n ? n : 1);
    for (int i = 0; i < n; i++) {
        int64_t at = attr_int(&r[i].op->attrs, ATTR_OFFSET, -1);
        placed[i] = (Placed){r[i], at};
        if (at < 0)
            return (FormFault){r[i].op, "has no offset in shared memory"};
        if (at % alignment(r[i].op))
            return (FormFault){r[i].op, "has an offset that is not aligned"};
        if (at + r[i].bytes > f->shared_bytes)
            return (FormFault){r[i].op, "ends behind the kernel's shared memory"};
        for (int k = 0; k < i; k++)
            if (overlaps(&placed[k], &r[i], at))
                return (FormFault){r[i].op, "overlaps memory that is in use"};
    }
    return (FormFault){0};
}

/* Checked launches: code asks here, in front of each access, whether it may.

   An address belongs to the array of the parameter that it was computed from, which the
   compiler knows; that it lies in another array by accident does not help. Addresses that
   come from one of several parameters, or out of memory, may lie in any known array.
   Nothing is ever read or written through an address that was refused, so a wrong kernel
   ends with a message and not with a signal. */
#include "runtime/checked.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- what is known */

/* Elements from the first of a descriptor to its last. */
static int64_t
desc_extent(const SdcDesc *d)
{
    int64_t n = 1;
    for (int i = 0; i < d->rank; i++) {
        int64_t more;
        if (__builtin_mul_overflow(d->shape[i] - 1, d->strides[i], &more) ||
            __builtin_add_overflow(n, more, &n))
            return INT64_MAX / 16;
    }
    return n;
}

static Span
span_of_range(Range *g, const char *name)
{
    return (Span){.known = true,
                  .lo = g->lo,
                  .hi = g->hi,
                  .name = g->name ? g->name : name,
                  .rank = g->rank,
                  .shape = g->shape,
                  .range = g};
}

/* What is known of the memory behind an argument, by the most precise source. */
static Span
span_of(const SdcContext *cx, const SdcArg *a, uintptr_t at, const char *name)
{
    Range *g = at ? range_of(cx, at) : NULL;
    const SdcBuffer *b = a->kind == SDC_ARG_BUFFER ? a->v.ptr : NULL;
    const SdcDesc *d = a->kind == SDC_ARG_DESC ? a->v.ptr : NULL;
    if (!at)
        return (Span){.null = true, .name = name};
    if (b)
        return (Span){.known = true, .lo = at, .hi = at + b->bytes, .name = name,
                      .range = g && at + b->bytes <= g->hi ? g : NULL};
    if (g)
        return span_of_range(g, name);
    if (!d)
        return (Span){.name = name};
    size_t bytes = (size_t)desc_extent(d) * (size_t)sdc_dtype_size(d->dtype);
    return (Span){.known = true,
                  .lo = at,
                  .hi = at + bytes,
                  .name = name,
                  .rank = d->rank,
                  .shape = d->shape};
}

static void
add_span(Checker *c, int slot, Span s)
{
    c->of[slot] = s;
    c->closed &= s.known || s.null;
    if (s.known)
        c->all[c->nall++] = s;
}

static void
fill_tuple_spans(Checker *c, const ArgRule *rule, const SdcArg *a,
                 const uint64_t *slots, const char *name)
{
    const SdcKernel *k = c->r->k;
    for (int i = 0, at = rule->slot; i < rule->source->nleaf; i++) {
        const SdcrtSource *leaf = &k->meta->leaves[rule->source->leaf + i];
        if (leaf->bound != SDCRT_OPEN)
            continue;
        if (k->meta->params[at].kind == SDCRT_PTR)
            add_span(c, at,
                     span_of(k->mod->cx, tuple_leaf(a, i), (uintptr_t)slots[at], name));
        at += sdcrt_source_slots(leaf);
    }
}

static bool
fill_spans(Checker *c, const SdcArg *args, const uint64_t *slots)
{
    const SdcKernel *k = c->r->k;
    const SdcContext *cx = k->mod->cx;
    int n = k->meta->nparam;
    for (const Range *g = cx->ranges; g; g = g->next)
        n++;
    c->all = calloc((size_t)n + 1, sizeof *c->all);
    c->closed = true;
    if (!c->all)
        return false;
    for (int i = 0; i < k->info->nruntime; i++) {
        int slot = k->rules[i].slot;
        const char *name = k->info->params[k->info->runtime[i]].name;
        bool tuple = k->rules[i].source->is_tuple;
        if (tuple)
            fill_tuple_spans(c, &k->rules[i], &args[i], slots, name);
        if (tuple || slot < 0 || k->meta->params[slot].kind != SDCRT_PTR)
            continue;
        add_span(c, slot, span_of(cx, &args[i], (uintptr_t)slots[slot], name));
    }
    for (Range *g = cx->ranges; g; g = g->next)
        c->all[c->nall++] = span_of_range(g, "an array");
    return true;
}

/* ---------------------------------------------------------------- the checks */

static const Span *
find_span(const Checker *c, const SdcrtSite *s, uintptr_t at)
{
    if (s->param >= 0)
        return &c->of[s->param];
    for (int i = 0; i < c->nall; i++)
        if (at >= c->all[i].lo && at < c->all[i].hi)
            return &c->all[i];
    return NULL;
}

static int32_t
refuse(Checker *c, Fault fault, const Span *span, uintptr_t at, int lane)
{
    c->fault = fault;
    c->span = span;
    c->at = at;
    return lane;
}

/* Some address of a site without a known array: false when it cannot be right. */
static bool
plausible(const Checker *c, const SdcrtSite *s, uintptr_t at)
{
    enum { FIRST_PAGE = 4096 };
    return at >= FIRST_PAGE && !(s->param == -1 && c->closed);
}

/* One lane: is there memory of the kernel's, and may it be touched now? */
static int32_t
check_lane(Checker *c, const SdcrtSite *s, uintptr_t at, int lane,
           const unsigned char *value)
{
    const Span *p = find_span(c, s, at);
    if (!p)
        return plausible(c, s, at)
                   ? -1
                   : refuse(c, at < 4096 ? FAULT_NULL : FAULT_OUTSIDE, NULL, at, lane);
    if (p->null)
        return refuse(c, FAULT_NULL, p, at, lane);
    if (!p->known)
        return -1;
    if (at < p->lo || at > p->hi || p->hi - at < (uintptr_t)s->bytes)
        return refuse(c, FAULT_OUTSIDE, p, at, lane);
    return race_row(c, s, p, at, 1, value) < 0 ? -1 : lane;
}

static int32_t
on_each(SdcrtHooks *h, const SdcrtSite *s, const uint64_t *at, uint64_t mask,
        const void *values)
{
    Checker *c = ((Running *)h)->checker;
    const unsigned char *v = values;
    for (; mask; mask &= mask - 1) {
        int lane = __builtin_ctzll(mask);
        int32_t got = check_lane(c, s, (uintptr_t)at[lane], lane,
                                 v ? v + (size_t)lane * (size_t)s->bytes : NULL);
        if (got >= 0)
            return got;
    }
    return -1;
}

/* Both ends of a row in a known array say all; else each lane is looked at. */
static int32_t
on_row(SdcrtHooks *h, const SdcrtSite *s, uint64_t at, uint64_t mask, const void *values)
{
    Checker *c = ((Running *)h)->checker;
    const uint64_t bytes = (uint64_t)s->bytes;
    const unsigned char *v = values;
    if (!mask)
        return -1;
    uint64_t first = (uint64_t)__builtin_ctzll(mask);
    uint64_t last = 63 - (uint64_t)__builtin_clzll(mask);
    uint64_t lo = at + first * bytes, hi = at + (last + 1) * bytes;
    const Span *p = s->param >= 0 ? &c->of[s->param] : NULL;
    if (p && p->known && lo >= p->lo && hi <= p->hi && lo < hi)
        return p->shadow || (p->range && p->range->unwritten)
                   ? race_row(c, s, p, (uintptr_t)at, mask, v)
                   : -1;
    for (; mask; mask &= mask - 1) {
        int lane = __builtin_ctzll(mask);
        uint64_t by = (uint64_t)lane * bytes;
        int32_t got = check_lane(c, s, (uintptr_t)(at + by), lane, v ? v + by : NULL);
        if (got >= 0)
            return got;
    }
    return -1;
}

static void
on_enter(SdcrtHooks *h, int64_t program)
{
    Checker *c = ((Running *)h)->checker;
    c->program = program;
    c->nborn = 0;
    c->nan_loaded = false;
    race_enter(c);
}

/* What a NaN becomes NaN with is no birth, so each place is one where numbers went in. Of
   a product nobody knows what went in: it counts when no other place is known. */
static void
on_nan(SdcrtHooks *h, const SdcrtSite *s)
{
    Checker *c = ((Running *)h)->checker;
    if (s->access & SDCRT_READ)
        c->nan_loaded = true;
    if (s->access & SDCRT_READ || c->nborn == MOST_BORN || (s->format && c->nborn))
        return;
    for (int i = 0; i < c->nborn; i++)
        if (c->born[i]->place.line == s->place.line &&
            c->born[i]->place.column == s->place.column)
            return;
    c->born[c->nborn++] = s;
}

/* Which of a program's NaN this is nobody knows: it is no fault if one was loaded. */
static int32_t
on_stored(SdcrtHooks *h, const SdcrtSite *s, uint64_t nans)
{
    Checker *c = ((Running *)h)->checker;
    if (c->nan_loaded || !c->nborn)
        return -1;
    (void)s;
    return refuse(c, FAULT_NAN, NULL, 0, __builtin_ctzll(nans));
}

static void
on_where(SdcrtHooks *h, const SdcrtSite *s, int32_t lane, const int64_t *index)
{
    Running *r = (Running *)h;
    r->failed = s;
    r->program = r->checker->program;
    for (int d = 0; d < s->rank; d++)
        r->index[d] = index[d * s->lanes + lane];
    h->stop = 1;
}

Checker *
checker_new(Running *r, const SdcArg *args, const uint64_t *slots)
{
    Checker *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->r = r;
    if (!fill_spans(c, args, slots) || !race_open(c)) {
        checker_free(c);
        return NULL;
    }
    r->hooks.enter = on_enter;
    r->hooks.row = on_row;
    r->hooks.each = on_each;
    r->hooks.where = on_where;
    r->hooks.nan = on_nan;
    r->hooks.stored = on_stored;
    r->hooks.free = c->free;
    for (int i = 0; i < r->k->meta->nparam; i++) {
        const Span *p = &c->of[i];
        if (p->known && !p->shadow && !(p->range && p->range->unwritten))
            c->free[i] = (SdcrtFree){p->lo, p->hi - p->lo};
    }
    return c;
}

void
checker_free(Checker *c)
{
    if (!c)
        return;
    race_close(c);
    free(c->all);
    free(c);
}

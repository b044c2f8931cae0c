/* Races between programs, and loads of what nothing has written.

   Programs of a checked launch run one after the other, so two accesses of an element
   meet when they belong to different programs, one of them writes, not both are atomic,
   and nothing says that the second program waited for the first. An entry of the shadow
   is an event: step times the number of sites, plus the site, plus one. Steps count up
   when a program begins, and when it does something that others may wait for; so events
   of this program are those from `own` on, one comparison for a lane, and strips of
   lanes are compared at once.

   Waiting. An atomic operation on an integer may be a lock, a counter or a flag. It is
   taken as one that releases what the program did before (a step ends) and acquires
   what others did up to the last such operation on that element: those steps count as
   waited for, whatever program made them. That can hide a race of kernels with several
   locks, and never reports one that locks exclude. */
#include "runtime/checked.h"

#include "ir/base/util.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- shadows */

static bool
shadow_grow(Shadow *s)
{
    size_t n = (s->hi - s->lo + s->grain - 1) / s->grain;
    if (s->writer || s->failed)
        return !s->failed;
    s->writer = calloc(n + 1, sizeof *s->writer);
    s->reader = calloc(n + 1, sizeof *s->reader);
    if (s->writer && s->reader)
        return true;
    free(s->writer);
    free(s->reader);
    s->writer = s->reader = NULL;
    s->failed = true;
    return false;
}

static uint32_t *
spread(uint32_t *from, size_t n, size_t times)
{
    uint32_t *to = from ? malloc((n * times + 1) * sizeof *to) : NULL;
    for (size_t i = 0; to && i < n * times; i++)
        to[i] = from[i / times];
    free(from);
    return to;
}

/* Smaller elements than had an entry: each of their bytes gets what the whole had. */
static void
shadow_split(Shadow *s, uintptr_t grain)
{
    size_t times = s->grain / grain, n = (s->hi - s->lo + s->grain - 1) / s->grain;
    bool had = s->writer != NULL, had_sync = s->sync != NULL;
    s->writer = spread(s->writer, n, times);
    s->reader = spread(s->reader, n, times);
    s->sync = spread(s->sync, n, times);
    s->grain = grain;
    if (had && (!s->writer || !s->reader || (had_sync && !s->sync)))
        s->failed = true;
}

static uintptr_t
grain_of(const Checker *c, const Span *p)
{
    uintptr_t grain = 8;
    const SdcrtMeta *m = c->r->k->meta;
    for (int i = 0; i < m->nparam; i++) {
        const Span *q = &c->of[i];
        if (!q->known || q->hi <= p->lo || q->lo >= p->hi)
            continue;
        const char *sig = m->params[i].sig + 1;
        sig += *sig == 'k';
        int size = sdc_dtype_size(sdc_dtype_by_name(sig, strcspn(sig, ":")));
        grain = (uintptr_t)min_i64((int64_t)grain, size > 0 ? size : 1);
    }
    return grain;
}

static Shadow *
shadow_of(Checker *c, const Span *p)
{
    for (int i = 0; i < c->nshadow; i++)
        if (p->lo < c->shadows[i].hi && c->shadows[i].lo < p->hi)
            return &c->shadows[i];
    return NULL;
}

/* Pieces of memory that lie over each other have one shadow. */
static void
cover(Checker *c)
{
    for (int i = 0; i < c->nall; i++) {
        const Span *p = &c->all[i];
        Shadow whole = {.lo = p->lo, .hi = p->hi, .grain = grain_of(c, p)};
        for (int k = 0; k < c->nshadow;) {
            Shadow *s = &c->shadows[k];
            if (whole.lo >= s->hi || s->lo >= whole.hi) {
                k++;
                continue;
            }
            whole.lo = whole.lo < s->lo ? whole.lo : s->lo;
            whole.hi = whole.hi > s->hi ? whole.hi : s->hi;
            whole.grain = whole.grain < s->grain ? whole.grain : s->grain;
            *s = c->shadows[--c->nshadow];
            k = 0;
        }
        while ((whole.lo - p->lo) % whole.grain)
            whole.grain /= 2;
        c->shadows[c->nshadow++] = whole;
    }
}

/* Arrays that no parameter's stores reach need none of this. */
bool
race_open(Checker *c)
{
    const SdcrtMeta *m = c->r->k->meta;
    c->nsite = (uint32_t)m->checks;
    c->site = calloc((size_t)m->checks + 1, sizeof *c->site);
    c->shadows = calloc((size_t)c->nall + 1, sizeof *c->shadows);
    if (!c->site || !c->shadows)
        return false;
    c->races = true;
    cover(c);
    for (int i = 0; i < m->nparam; i++) {
        bool written = c->of[i].known && m->params[i].written;
        Shadow *s = written ? shadow_of(c, &c->of[i]) : NULL;
        for (int k = 0; s && k < m->nparam; k++)
            if (c->of[k].known && shadow_of(c, &c->of[k]) == s)
                c->of[k].shadow = s;
        for (int k = 0; s && k < c->nall; k++)
            if (shadow_of(c, &c->all[k]) == s)
                c->all[k].shadow = s;
    }
    return true;
}

void
race_close(Checker *c)
{
    for (int i = 0; i < c->nshadow; i++) {
        free(c->shadows[i].writer);
        free(c->shadows[i].reader);
        free(c->shadows[i].sync);
    }
    free(c->shadows);
    free(c->site);
    free(c->steps);
}

/* ---------------------------------------------------------------- steps */

/* False: there are no more numbers, or no memory; races are not looked for any more. */
static bool
next_step(Checker *c)
{
    if ((uint64_t)(c->nstep + 2) * c->nsite > UINT32_MAX || c->program > UINT32_MAX)
        c->races = false;
    if (c->races && c->nstep == c->cap) {
        uint32_t cap = c->cap ? 2 * c->cap : 1024;
        uint32_t *more = realloc(c->steps, (size_t)cap * sizeof *more);
        c->races = more != NULL;
        if (more) {
            c->steps = more;
            c->cap = cap;
        }
    }
    if (!c->races)
        return false;
    c->steps[c->nstep] = (uint32_t)c->program;
    c->now = c->nstep++ * c->nsite + 1;
    return true;
}

void
race_enter(Checker *c)
{
    c->acquired = 0;
    if (c->races && next_step(c))
        c->own = c->now;
}

/* Has this program waited for what made the event? */
static bool
ordered(const Checker *c, uint32_t event)
{
    uint32_t step = (event - 1) / c->nsite;
    return step + 1 < c->nstep && c->steps[step + 1] == c->steps[step] &&
           c->acquired > step;
}

static const SdcrtSite *
site_of(const Checker *c, uint32_t event)
{
    return c->site[(event - 1) % c->nsite];
}

/* ---------------------------------------------------------------- one access */

static Meeting
meeting(const Checker *c, const SdcrtSite *s, const Span *p, uintptr_t at, uint32_t event)
{
    return (Meeting){.site = s,
                     .other = site_of(c, event),
                     .program = c->program,
                     .other_program = c->steps[(event - 1) / c->nsite],
                     .span = p,
                     .at = at};
}

/* The event that an access of entry i meets; 0: none. */
static uint32_t
met(const Checker *c, const SdcrtSite *s, const Shadow *h, size_t i)
{
    uint32_t w = h->writer[i], r = h->reader[i];
    bool atomic = s->access & SDCRT_ATOMIC;
    if (w && w < c->own && !ordered(c, w) &&
        !(atomic && site_of(c, w)->access & SDCRT_ATOMIC))
        return w;
    if (r && r < c->own && s->access & SDCRT_WRITE && !ordered(c, r))
        return r;
    return 0;
}

static void
note(const Checker *c, const SdcrtSite *s, Shadow *h, size_t i)
{
    uint32_t event = c->now + (uint32_t)s->number, w = h->writer[i];
    if (!(s->access & SDCRT_WRITE)) {
        uint32_t r = h->reader[i];
        if (!(s->access & SDCRT_ATOMIC) && (!r || (r < c->own && ordered(c, r))))
            h->reader[i] = event;
        return;
    }
    /* That it was stored to, too, is worth more than that it was added to. */
    bool kept = s->access & SDCRT_ATOMIC && w >= c->own &&
                !(site_of(c, w)->access & SDCRT_ATOMIC);
    if (!kept)
        h->writer[i] = event;
    h->reader[i] = 0;
}

static bool
stays_equal(const SdcrtSite *s, uintptr_t at, const unsigned char *value)
{
    return !(s->access & SDCRT_READ) && value &&
           memcmp((const void *)at, value, (size_t)s->bytes) == 0;
}

static bool
lane_meets(Checker *c, const SdcrtSite *s, const Span *p, uintptr_t at,
           const unsigned char *value)
{
    Shadow *h = p->shadow;
    size_t first = (at - h->lo) / h->grain;
    size_t last = (at - h->lo + (uintptr_t)s->bytes - 1) / h->grain;
    for (size_t i = first; i <= last; i++) {
        uint32_t event = met(c, s, h, i);
        if (event && !stays_equal(s, at, value)) {
            c->race = meeting(c, s, p, at, event);
            return true;
        }
        if (event && !c->equal.site)
            c->equal = meeting(c, s, p, at, event);
        note(c, s, h, i);
    }
    return false;
}

/* ---------------------------------------------------------------- waiting */

static void
synchronize(Checker *c, const SdcrtSite *s, Shadow *h, uintptr_t at, uint64_t mask)
{
    bool releases = s->access & SDCRT_WRITE;
    if (!h->sync)
        h->sync = calloc((h->hi - h->lo) / h->grain + 1, sizeof *h->sync);
    if (!h->sync) {
        c->races = false;
        return;
    }
    for (uint64_t m = mask; m; m &= m - 1) {
        uintptr_t by = (uintptr_t)__builtin_ctzll(m) * (uintptr_t)s->bytes;
        uint32_t last = h->sync[(at + by - h->lo) / h->grain];
        c->acquired = c->acquired > last ? c->acquired : last;
    }
    if (!releases || !next_step(c))
        return;
    for (uint64_t m = mask; m; m &= m - 1) {
        uintptr_t by = (uintptr_t)__builtin_ctzll(m) * (uintptr_t)s->bytes;
        h->sync[(at + by - h->lo) / h->grain] = c->nstep - 1;
    }
}

/* ---------------------------------------------------------------- whole strips */

static bool
is_run(uint64_t mask)
{
    return ((mask + 1) & mask) == 0;
}

/* n entries that only this program, or nobody, has written. */
static bool
mine(const uint32_t *event, size_t n, uint32_t own)
{
    uint32_t foreign = 0;
    for (size_t i = 0; i < n; i++)
        foreign |= (uint32_t)(event[i] - 1 < own - 1);
    return !foreign;
}

static bool
read_run(const Checker *c, const SdcrtSite *s, Shadow *h, size_t at, size_t n)
{
    uint32_t event = c->now + (uint32_t)s->number, none = 0;
    uint32_t *reader = h->reader + at;
    if (!mine(h->writer + at, n, c->own))
        return false;
    for (size_t i = 0; i < n; i++)
        none |= (uint32_t)(reader[i] == 0);
    for (size_t i = 0; none && i < n; i++)
        reader[i] = reader[i] ? reader[i] : event;
    return true;
}

static bool
write_run(const Checker *c, const SdcrtSite *s, Shadow *h, size_t at, size_t n)
{
    uint32_t event = c->now + (uint32_t)s->number;
    if (!mine(h->writer + at, n, c->own) || !mine(h->reader + at, n, c->own))
        return false;
    for (size_t i = 0; i < n; i++)
        h->writer[at + i] = event;
    memset(h->reader + at, 0, n * sizeof *h->reader);
    return true;
}

/* All lanes at once, where that says enough. */
static bool
whole_run(const Checker *c, const SdcrtSite *s, Shadow *h, uintptr_t at, uint64_t mask)
{
    uint64_t low = mask >> __builtin_ctzll(mask);
    uintptr_t bytes = (uintptr_t)s->bytes;
    uintptr_t from = at + (uintptr_t)__builtin_ctzll(mask) * bytes - h->lo;
    if (!is_run(low) || s->access & SDCRT_ATOMIC || from % h->grain)
        return false;
    size_t n = (size_t)__builtin_popcountll(low) * (bytes / h->grain);
    return s->access & SDCRT_WRITE ? write_run(c, s, h, from / h->grain, n)
                                   : read_run(c, s, h, from / h->grain, n);
}

/* ---------------------------------------------------------------- values */

static bool
has_value(const Range *g, uintptr_t from, uintptr_t to)
{
    for (uintptr_t i = from - g->lo; i < to - g->lo; i++)
        if (i % 8 == 0 && i + 8 <= to - g->lo) {
            if (g->unwritten[i / 8])
                return false;
            i += 7;
        } else if (g->unwritten[i / 8] >> i % 8 & 1) {
            return false;
        }
    return true;
}

static void
gets_value(const Range *g, uintptr_t from, uintptr_t to)
{
    for (uintptr_t i = from - g->lo; i < to - g->lo; i++)
        if (i % 8 == 0 && i + 8 <= to - g->lo) {
            g->unwritten[i / 8] = 0;
            i += 7;
        } else {
            g->unwritten[i / 8] &= (unsigned char)~(1u << i % 8);
        }
}

/* The lane that would read what nothing has written, or -1. */
static int32_t
value_row(Checker *c, const SdcrtSite *s, const Span *p, uintptr_t at, uint64_t mask)
{
    uintptr_t bytes = (uintptr_t)s->bytes;
    for (uint64_t m = mask; m && s->access & SDCRT_READ; m &= m - 1) {
        int lane = __builtin_ctzll(m);
        uintptr_t from = at + (uintptr_t)lane * bytes;
        if (has_value(p->range, from, from + bytes))
            continue;
        c->fault = FAULT_UNWRITTEN;
        c->span = p;
        c->at = from;
        return lane;
    }
    for (uint64_t m = mask; m && s->access & SDCRT_WRITE; m &= m - 1) {
        uintptr_t from = at + (uintptr_t)__builtin_ctzll(m) * bytes;
        gets_value(p->range, from, from + bytes);
    }
    return -1;
}

int32_t
race_row(Checker *c, const SdcrtSite *s, const Span *p, uintptr_t at, uint64_t mask,
         const unsigned char *values)
{
    Shadow *h = p->shadow;
    uintptr_t bytes = (uintptr_t)s->bytes;
    if (p->range && p->range->unwritten) {
        int32_t lane = value_row(c, s, p, at, mask);
        if (lane >= 0)
            return lane;
    }
    if (!h || !c->races)
        return -1;
    if (h->grain > bytes)
        shadow_split(h, bytes);
    if (!shadow_grow(h))
        return -1;
    c->site[s->number] = s;
    if (s->access & SDCRT_SYNC)
        synchronize(c, s, h, at, mask);
    if (!c->races || whole_run(c, s, h, at, mask))
        return -1;
    for (uint64_t m = mask; m; m &= m - 1) {
        int lane = __builtin_ctzll(m);
        uintptr_t by = (uintptr_t)lane * bytes;
        if (!lane_meets(c, s, p, at + by, values ? values + by : NULL))
            continue;
        c->fault = FAULT_RACE;
        c->span = p;
        c->at = at + by;
        return lane;
    }
    return -1;
}

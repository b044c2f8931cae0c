/* Races between programs, and loads of what nothing has written.

   Programs of a checked launch run one after the other, so two accesses of an element
   meet when they belong to different programs, one of them writes, not both are atomic,
   and nothing says that the second program waited for the first. An entry of the shadow
   is an event: step times the number of sites, plus the site, counted from `base`.
   Steps count up when a program begins, and when it does something that others may wait
   for; so events of this program are those from `own` on, those of others lie between
   `base` and `own`, one comparison for a lane, and strips of lanes are compared at
   once. Events below `base` are of earlier launches and count as nobody: entries are
   never cleared, and their memory is kept, since touching fresh pages costs more than
   all the rest.

   Waiting. An atomic operation on an integer may be a lock, a counter or a flag. It is
   taken as one that releases what the program did before (a step ends) and acquires
   what others did up to the last such operation on that element: those steps count as
   waited for, whatever program made them. That can hide a race of kernels with several
   locks, and never reports one that locks exclude. */
#include "runtime/checked.h"

#include "ir/base/util.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---------------------------------------------------------------- memory of entries */

enum { LARGE = 1 << 20 };

static const size_t MOST_KEPT = (size_t)1 << 30;

/* Memory for entries, kept by the context from launch to launch: zeros, or events of
   earlier launches. */
struct Entries {
    Entries *next;
    size_t bytes;
    uint32_t *at;
};

static void
entries_free(Entries *e)
{
    if (e->bytes >= LARGE)
        munmap(e->at, e->bytes);
    else
        free(e->at);
    free(e);
}

void
entries_done(Entries *e)
{
    while (e) {
        Entries *next = e->next;
        entries_free(e);
        e = next;
    }
}

/* Moved from the context's list to the launch's. NULL: no memory. */
static uint32_t *
entries_take(Checker *c, size_t n)
{
    SdcContext *cx = c->r->k->mod->cx;
    size_t bytes = (n + 1) * sizeof(uint32_t);
    Entries **at = &cx->entries, *e;
    while (*at && ((*at)->bytes < bytes || (*at)->bytes / 4 > bytes))
        at = &(*at)->next;
    e = *at;
    if (e) {
        *at = e->next;
    } else if ((e = calloc(1, sizeof *e)) != NULL) {
        e->bytes = bytes;
        if (bytes >= LARGE) {
            void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            e->at = p == MAP_FAILED ? NULL : p;
            if (e->at)
                madvise(p, bytes, MADV_HUGEPAGE);
        } else {
            e->at = calloc(1, bytes);
        }
        if (!e->at) {
            free(e);
            return NULL;
        }
    } else {
        return NULL;
    }
    e->next = c->taken;
    c->taken = e;
    return e->at;
}

/* Back to the context, as much as it may keep; new ones where events begin anew. */
static void
entries_return(Checker *c)
{
    SdcContext *cx = c->r->k->mod->cx;
    uint64_t end = (uint64_t)c->base + (uint64_t)(c->nstep + 1) * c->nsite;
    bool anew = end > UINT32_MAX / 2 || !c->races;
    size_t kept = 0;
    for (Entries *e = c->taken, *next; e; e = next) {
        next = e->next;
        e->next = cx->entries;
        cx->entries = e;
    }
    cx->events = anew ? 1 : (uint32_t)end;
    for (Entries **at = &cx->entries; *at;) {
        Entries *e = *at;
        kept += e->bytes;
        if (!anew && kept <= MOST_KEPT) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        entries_free(e);
    }
}

/* ---------------------------------------------------------------- shadows */

/* Entries come when something is first written, or read. */
static bool
events_take(Checker *c, Events *e, size_t n)
{
    n = (n + GROUP - 1) / GROUP;
    if (!e->entry)
        e->entry = entries_take(c, n * GROUP);
    if (!e->group)
        e->group = entries_take(c, n);
    return e->entry && e->group;
}

static bool
shadow_grow(Checker *c, Shadow *s, bool reads)
{
    if (s->failed || (s->writer.group && (s->reader.group || !reads)))
        return !s->failed;
    size_t n = (s->hi - s->lo + s->grain - 1) / s->grain;
    s->failed =
        !events_take(c, &s->writer, n) || (reads && !events_take(c, &s->reader, n));
    return !s->failed;
}

/* The entries of a group count from now on. */
static void
loosen(Events *e, size_t group)
{
    uint32_t all = e->group[group];
    for (size_t i = 0; all && i < GROUP; i++)
        e->entry[group * GROUP + i] = all;
    e->group[group] = 0;
}

/* A smaller element's entry for each part of those that there are. False: no memory. */
static bool
spread(Checker *c, Events *e, size_t n, size_t times)
{
    Events to = {0};
    if (!e->entry)
        return true;
    if (!events_take(c, &to, n * times))
        return false;
    for (size_t g = 0; g < (n + GROUP - 1) / GROUP; g++)
        loosen(e, g);
    for (size_t i = 0; i < n * times; i++)
        to.entry[i] = e->entry[i / times];
    memset(to.group, 0, ((n * times + GROUP - 1) / GROUP) * sizeof *to.group);
    *e = to;
    return true;
}

/* Smaller elements than had an entry: each of their bytes gets what the whole had. */
static void
shadow_split(Checker *c, Shadow *s, uintptr_t grain)
{
    size_t times = s->grain / grain, n = (s->hi - s->lo + s->grain - 1) / s->grain;
    uint32_t *sync = s->sync ? entries_take(c, n * times) : NULL;
    s->failed |= !spread(c, &s->writer, n, times) || !spread(c, &s->reader, n, times) ||
                 (s->sync && !sync);
    for (size_t i = 0; sync && i < n * times; i++)
        sync[i] = s->sync[i / times];
    s->sync = sync;
    s->grain = grain;
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
#ifdef __x86_64__
    c->wide = __builtin_cpu_supports("avx2");
#endif
    c->races = true;
    c->base = c->own = c->now = c->r->k->mod->cx->events;
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
    if (c->site)
        entries_return(c);
    free(c->shadows);
    free(c->site);
    free(c->steps);
}

/* ---------------------------------------------------------------- steps */

/* False: there are no more numbers, or no memory; races are not looked for any more. */
static bool
next_step(Checker *c)
{
    uint64_t end = (uint64_t)c->base + (uint64_t)(c->nstep + 2) * c->nsite;
    if (end > UINT32_MAX || c->program > UINT32_MAX)
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
    c->now = c->base + c->nstep++ * c->nsite;
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
    uint32_t step = (event - c->base) / c->nsite;
    return step + 1 < c->nstep && c->steps[step + 1] == c->steps[step] &&
           c->acquired > step;
}

static const SdcrtSite *
site_of(const Checker *c, uint32_t event)
{
    return c->site[(event - c->base) % c->nsite];
}

/* ---------------------------------------------------------------- one access */

static Meeting
meeting(const Checker *c, const SdcrtSite *s, const Span *p, uintptr_t at, uint32_t event)
{
    return (Meeting){.site = s,
                     .other = site_of(c, event),
                     .program = c->program,
                     .other_program = c->steps[(event - c->base) / c->nsite],
                     .span = p,
                     .at = at};
}

/* The event that an access of entry i meets; 0: none. */
static uint32_t
met(const Checker *c, const SdcrtSite *s, Shadow *h, size_t i)
{
    loosen(&h->writer, i / GROUP);
    if (h->reader.entry)
        loosen(&h->reader, i / GROUP);
    uint32_t w = h->writer.entry[i], r = h->reader.entry ? h->reader.entry[i] : 0;
    bool atomic = s->access & SDCRT_ATOMIC;
    if (w >= c->base && w < c->own && !ordered(c, w) &&
        !(atomic && site_of(c, w)->access & SDCRT_ATOMIC))
        return w;
    if (r >= c->base && r < c->own && s->access & SDCRT_WRITE && !ordered(c, r))
        return r;
    return 0;
}

/* Of an entry that `met` has looked at. */
static void
note(const Checker *c, const SdcrtSite *s, Shadow *h, size_t i)
{
    uint32_t event = c->now + (uint32_t)s->number, w = h->writer.entry[i];
    if (!(s->access & SDCRT_WRITE)) {
        uint32_t r = h->reader.entry ? h->reader.entry[i] : 0;
        if (!(s->access & SDCRT_ATOMIC) && (r < c->base || (r < c->own && ordered(c, r))))
            h->reader.entry[i] = event;
        return;
    }
    /* That it was stored to, too, is worth more than that it was added to. */
    bool kept = s->access & SDCRT_ATOMIC && w >= c->own &&
                !(site_of(c, w)->access & SDCRT_ATOMIC);
    if (!kept)
        h->writer.entry[i] = event;
    if (h->reader.entry)
        h->reader.entry[i] = 0;
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

static uint32_t *
sync_new(Checker *c, size_t n)
{
    uint32_t *steps = entries_take(c, n);
    if (steps)
        memset(steps, 0, n * sizeof *steps);
    return steps;
}

static void
synchronize(Checker *c, const SdcrtSite *s, Shadow *h, uintptr_t at, uint64_t mask)
{
    bool releases = s->access & SDCRT_WRITE;
    if (!h->sync)
        h->sync = sync_new(c, (h->hi - h->lo) / h->grain + 1);
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

#define INLINE static inline __attribute__((always_inline))

static bool
is_run(uint64_t mask)
{
    return ((mask + 1) & mask) == 0;
}

INLINE bool
foreign(const Checker *c, uint32_t event)
{
    return event - c->base < c->own - c->base;
}

INLINE size_t
group_end(size_t at, size_t end)
{
    size_t next = at / GROUP * GROUP + GROUP;
    return next < end ? next : end;
}

/* Entries at .. end - 1 of nobody, or this program alone. */
INLINE bool
mine(const Checker *c, const Events *e, size_t at, size_t end)
{
    uint32_t others = 0;
    for (size_t i = at, to; i < end && !others; i = to) {
        to = group_end(i, end);
        if (e->group[i / GROUP])
            others = foreign(c, e->group[i / GROUP]);
        else if (to - i == GROUP)
            for (size_t k = 0; k < GROUP; k++)
                others |= (uint32_t)foreign(c, e->entry[i + k]);
        else
            for (size_t k = i; k < to; k++)
                others |= (uint32_t)foreign(c, e->entry[k]);
    }
    return !others;
}

/* Are all entries of a group events of earlier launches? */
INLINE bool
nobodys(const Checker *c, const uint32_t *entry)
{
    uint32_t some = 0;
    for (size_t k = 0; k < GROUP; k++)
        some |= (uint32_t)(entry[k] >= c->base);
    return !some;
}

INLINE bool
read_run(const Checker *c, const SdcrtSite *s, Shadow *h, size_t at, size_t n)
{
    uint32_t event = c->now + (uint32_t)s->number, base = c->base;
    Events *r = &h->reader;
    if (!mine(c, &h->writer, at, at + n))
        return false;
    for (size_t i = at, to; i < at + n; i = to) {
        uint32_t *group = &r->group[i / GROUP];
        to = group_end(i, at + n);
        if (*group >= base) /* somebody has read all of them */
            continue;
        if (to - i == GROUP && (*group || nobodys(c, r->entry + i))) {
            *group = event;
            continue;
        }
        loosen(r, i / GROUP);
        for (size_t k = i; k < to; k++)
            r->entry[k] = r->entry[k] < base ? event : r->entry[k];
    }
    return true;
}

INLINE bool
write_run(const Checker *c, const SdcrtSite *s, Shadow *h, size_t at, size_t n)
{
    uint32_t event = c->now + (uint32_t)s->number;
    Events *w = &h->writer;
    if (!mine(c, w, at, at + n) || (h->reader.entry && !mine(c, &h->reader, at, at + n)))
        return false;
    for (size_t i = at, to; i < at + n; i = to) {
        to = group_end(i, at + n);
        if (to - i == GROUP) {
            w->group[i / GROUP] = event;
            continue;
        }
        loosen(w, i / GROUP);
        for (size_t k = i; k < to; k++)
            w->entry[k] = event;
    }
    return true; /* who meets this program's reads meets this store */
}

/* All lanes at once, where that says enough. */
INLINE bool
all_lanes(const Checker *c, const SdcrtSite *s, Shadow *h, uintptr_t at, uint64_t mask)
{
    uint64_t low = mask >> __builtin_ctzll(mask);
    uintptr_t bytes = (uintptr_t)s->bytes;
    uintptr_t from = at + (uintptr_t)__builtin_ctzll(mask) * bytes - h->lo;
    int shift = __builtin_ctzll(h->grain); /* a power of two; divisions take longer */
    if (!is_run(low) || s->access & SDCRT_ATOMIC || from & (h->grain - 1))
        return false;
    size_t n = (size_t)__builtin_popcountll(low) * (bytes >> shift);
    return s->access & SDCRT_WRITE ? write_run(c, s, h, from >> shift, n)
                                   : read_run(c, s, h, from >> shift, n);
}

/* The same code for machines with wider vectors. */
#ifdef __x86_64__
__attribute__((target("avx2"))) static bool
wide_run(const Checker *c, const SdcrtSite *s, Shadow *h, uintptr_t at, uint64_t mask)
{
    return all_lanes(c, s, h, at, mask);
}
#endif

static bool
whole_run(const Checker *c, const SdcrtSite *s, Shadow *h, uintptr_t at, uint64_t mask)
{
#ifdef __x86_64__
    if (c->wide)
        return wide_run(c, s, h, at, mask);
#endif
    return all_lanes(c, s, h, at, mask);
}

/* ---------------------------------------------------------------- values */

/* The bits of bytes from .. to - 1 of the range; whole bytes of bits at once. `clear`:
   they have values from now on. False: one of them had none. */
static bool
values(const Range *g, uintptr_t from, uintptr_t to, bool clear)
{
    unsigned char *bits = g->unwritten, some = 0;
    size_t i = from - g->lo, end = to - g->lo;
    for (; i < end && i % 8; i++) {
        some |= bits[i / 8] & (1u << i % 8);
        bits[i / 8] &= clear ? (unsigned char)~(1u << i % 8) : 0xff;
    }
    size_t whole = i < end ? (end - i) / 8 : 0;
    if (clear)
        memset(bits + i / 8, 0, whole);
    else
        for (size_t k = 0; k < whole; k++)
            some |= bits[i / 8 + k];
    for (i += 8 * whole; i < end; i++) {
        some |= bits[i / 8] & (1u << i % 8);
        bits[i / 8] &= clear ? (unsigned char)~(1u << i % 8) : 0xff;
    }
    return !some;
}

/* The lane that would read what nothing has written, or -1. */
static int32_t
value_row(Checker *c, const SdcrtSite *s, const Span *p, uintptr_t at, uint64_t mask)
{
    const uintptr_t bytes = (uintptr_t)s->bytes;
    const Range *g = p->range;
    int first = __builtin_ctzll(mask), n = __builtin_popcountll(mask);
    uintptr_t from = at + (uintptr_t)first * bytes, to = from + (uintptr_t)n * bytes;
    bool run = is_run(mask >> first);
    if (s->access & SDCRT_READ && !(run && values(g, from, to, false))) {
        for (uint64_t m = mask; m; m &= m - 1) {
            int lane = __builtin_ctzll(m);
            uintptr_t here = at + (uintptr_t)lane * bytes;
            if (values(g, here, here + bytes, false))
                continue;
            c->fault = FAULT_UNWRITTEN;
            c->span = p;
            c->at = here;
            return lane;
        }
    }
    if (s->access & SDCRT_WRITE && run)
        values(g, from, to, true);
    for (uint64_t m = mask; m && s->access & SDCRT_WRITE && !run; m &= m - 1) {
        uintptr_t here = at + (uintptr_t)__builtin_ctzll(m) * bytes;
        values(g, here, here + bytes, true);
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
        shadow_split(c, h, bytes);
    if (!shadow_grow(c, h, (s->access & (SDCRT_WRITE | SDCRT_ATOMIC)) == 0))
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

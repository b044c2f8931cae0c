/* What programs on the CPU tell their host while they run: device_print, a line for each
   element in Triton's format, and device_assert.

   Many threads may speak at once: a lock of the context puts their lines one after the
   other. The first assertion that fails is kept and told when all programs have ended. */
#include "runtime/internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct Running {
    SdcrtHooks hooks; /* first: the code has its address */
    SdcKernel *k;
    SdcGrid grid;
    bool locks;
    const SdcrtSite *failed;
    int64_t program, index[MAX_RANK];
} Running;

/* In the child of a fork there is one thread, and nobody who would unlock. */
static void
lock(const Running *r)
{
    if (r->locks)
        pthread_mutex_lock(&r->k->mod->cx->hook_lock);
}

static void
unlock(const Running *r)
{
    if (r->locks)
        pthread_mutex_unlock(&r->k->mod->cx->hook_lock);
}

enum { LINE = 1200 };

/* snprintf behind the n bytes of a text of LINE bytes; n stays within it. */
#define add(to, n, ...) \
    ((n) += snprintf((to) + (n), (size_t)(LINE - (n)), __VA_ARGS__), \
     (n) = (n) < LINE ? (n) : LINE - 1)

/* "pid (1, 0, 0)" */
static int
program_text(char *to, SdcGrid grid, int64_t program)
{
    int n = 0;
    add(to, n, "pid (%lld, %lld, %lld)", (long long)(program % grid.x),
        (long long)(program / grid.x % grid.y), (long long)(program / grid.x / grid.y));
    return n;
}

static int
index_text(char *to, int n, const int64_t *index, int rank, int stride)
{
    add(to, n, " idx (");
    for (int d = 0; d < rank; d++)
        add(to, n, d ? ", %lld" : "%lld", (long long)index[d * stride]);
    add(to, n, ")");
    return n;
}

static int
value_text(char *to, int n, const SdcrtSite *s, uint64_t value)
{
    double f;
    memcpy(&f, &value, sizeof f);
    switch (s->format) {
    case 'f': add(to, n, "%f", f); break;
    case 'd': add(to, n, "%lld", (long long)value); break;
    case 'u': add(to, n, "%llu", (unsigned long long)value); break;
    case 'p': add(to, n, "%p", (void *)(uintptr_t)value); break;
    default: {
        int digits = s->bits > 32 ? 16 : s->bits > 16 ? 8 : s->bits > 8 ? 4 : 2;
        add(to, n, "0x%0*llx", digits, (unsigned long long)value);
        break;
    }
    }
    return n;
}

static void
on_print(SdcrtHooks *h, const SdcrtSite *s, int64_t program, const uint64_t *values,
         const int64_t *index)
{
    const Running *r = (Running *)h;
    const SdcContext *cx = r->k->mod->cx;
    char text[LINE];
    if (!cx->print)
        return;
    int head = program_text(text, r->grid, program);
    lock(r);
    for (int lane = 0; lane < s->lanes; lane++) {
        int n = head;
        if (s->format)
            n = index_text(text, n, index + lane, s->rank, s->lanes);
        add(text, n, "%s", s->text);
        if (s->format)
            value_text(text, n, s, values[lane]);
        cx->print(cx->print_user, text);
    }
    unlock(r);
}

static void
on_fail(SdcrtHooks *h, const SdcrtSite *s, int64_t program, uint64_t bad,
        const int64_t *index)
{
    Running *r = (Running *)h;
    int lane = __builtin_ctzll(bad);
    lock(r);
    if (!r->failed) {
        r->failed = s;
        r->program = program;
        for (int d = 0; d < s->rank; d++)
            r->index[d] = index[d * s->lanes + lane];
    }
    unlock(r);
    __atomic_store_n(&h->stop, 1, __ATOMIC_RELAXED);
}

/* ---------------------------------------------------------------- reports */

Loc
place_loc(Session *s, const SdcrtPlace *p)
{
    Source *src = arena_new(&s->perm, Source);
    *src = (Source){.path = p->path,
                    .text = p->line_text,
                    .size = p->line_text ? strlen(p->line_text) : 0,
                    .skipped = p->line - 1};
    return (Loc){.src = src,
                 .line = p->line,
                 .col = p->column,
                 .end_line = p->line,
                 .end_col = p->end_column ? p->end_column : p->column + 1};
}

void
place_callers(Session *s, const SdcrtPlace *p)
{
    for (; p->caller; p = p->caller)
        diag_note(&s->diag, place_loc(s, p->caller), "'%s' is called from here",
                  p->function);
}

static SdcStatus
tell_failed(Session *s, void *arg)
{
    const Running *r = arg;
    char text[LINE];
    const char *message = r->failed->text;
    diag_error(&s->diag, place_loc(s, &r->failed->place), "assertion failed%s%s",
               *message ? ": " : "", message);
    place_callers(s, &r->failed->place);
    int n = program_text(text, r->grid, r->program);
    index_text(text, n, r->index, r->failed->rank, 1);
    diag_note(&s->diag, (Loc){0}, "%s of '%s'", text, r->k->info->name);
    return SDC_ERROR_CHECK;
}

SdcStatus
hooks_run(SdcKernel *k, SdcGrid grid, uint64_t *slots, int threads)
{
    SdcContext *cx = k->mod->cx;
    Running r = {.hooks = {.print = on_print, .fail = on_fail},
                 .k = k,
                 .grid = grid,
                 .locks = cx->pid == getpid()};
    slots[k->meta->nparam] = (uint64_t)(uintptr_t)&r.hooks;
    SdcStatus status = kernel_run(k, grid, slots, threads);
    if (status != SDC_OK || !r.failed)
        return status;
    if (r.locks)
        return context_call(cx, tell_failed, &r);
    return context_fail(cx, SDC_ERROR_CHECK, "assertion failed: %s", r.failed->text);
}

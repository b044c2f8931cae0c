/* What programs on the CPU tell their host while they run: device_print, a line for each
   element in Triton's format, and device_assert.

   Many threads may speak at once: a lock of the context puts their lines one after the
   other. The first assertion that fails is kept and told when all programs have ended. */
#include "runtime/hooks.h"

#include <stdio.h>
#include <string.h>

/* In the child of a fork there is one thread, and nobody who would unlock. */
static void
lock(const Running *r)
{
    if (r->locks)
        (void)context_lock(r->k->mod->cx, &r->k->mod->cx->hook_lock);
}

static void
unlock(const Running *r)
{
    if (r->locks)
        pthread_mutex_unlock(&r->k->mod->cx->hook_lock);
}

/* snprintf behind the n bytes of a text; n stays within it. */
#define add(to, n, ...) \
    ((n) += snprintf((to) + (n), (size_t)(HOOK_LINE - (n)), __VA_ARGS__), \
     (n) = (n) < HOOK_LINE ? (n) : HOOK_LINE - 1)

int
hook_program(const Running *r, char *to, int n, int64_t program)
{
    const int64_t x = r->grid.x, y = r->grid.y;
    add(to, n, "pid (%lld, %lld, %lld)", (long long)(program % x),
        (long long)(program / x % y), (long long)(program / x / y));
    return n;
}

int
hook_index(char *to, int n, const int64_t *index, int rank, int stride)
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
    char text[HOOK_LINE];
    if (!cx->print)
        return;
    int head = hook_program(r, text, 0, program);
    lock(r);
    for (int lane = 0; lane < s->lanes; lane++) {
        int n = head;
        if (s->format)
            n = hook_index(text, n, index + lane, s->rank, s->lanes);
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
    char text[HOOK_LINE];
    const char *message = r->failed->text;
    diag_error(&s->diag, place_loc(s, &r->failed->place), "assertion failed%s%s",
               *message ? ": " : "", message);
    place_callers(s, &r->failed->place);
    int n = hook_program(r, text, 0, r->program);
    hook_index(text, n, r->index, r->failed->rank, 1);
    diag_note(&s->diag, (Loc){0}, "%s of '%s'", text, r->k->info->name);
    return SDC_ERROR_CHECK;
}

static SdcStatus
tell(Session *s, void *arg)
{
    const Running *r = arg;
    bool checks = r->checker && !(r->failed && !r->failed->access);
    return checks ? checker_tell(s, arg) : tell_failed(s, arg);
}

static SdcStatus
run(Running *r, const SdcArg *args, uint64_t *slots, int threads)
{
    SdcContext *cx = r->k->mod->cx;
    bool checked = r->k->meta->checks > 0;
    if (checked && !(r->checker = checker_new(r, args, slots)))
        return context_fail(cx, SDC_ERROR_MEMORY, "no memory to check this launch");
    SdcStatus status = kernel_run(r->k, r->grid, slots, checked ? 1 : threads);
    bool news = r->failed || (checked && checker_has_news(r->checker));
    if (status == SDC_OK && news && r->locks)
        status = context_call(cx, tell, r);
    else if (status == SDC_OK && r->failed)
        status = context_fail(cx, SDC_ERROR_CHECK, "a check of line %d failed",
                              r->failed->place.line);
    checker_free(r->checker);
    return status;
}

SdcStatus
hooks_run(SdcKernel *k, SdcGrid grid, const SdcArg *args, uint64_t *slots, int threads)
{
    SdcContext *cx = k->mod->cx;
    Running r = {.hooks = {.print = on_print, .fail = on_fail},
                 .k = k,
                 .grid = grid,
                 .locks = !rt_process_is_child(&cx->process)};
    bool alone = r.locks && k->meta->checks > 0;
    slots[k->meta->nparam] = (uint64_t)(uintptr_t)&r.hooks;
    if (alone)
        (void)context_lock(cx, &cx->check_lock);
    SdcStatus status = run(&r, args, slots, threads);
    if (alone)
        pthread_mutex_unlock(&cx->check_lock);
    return status;
}

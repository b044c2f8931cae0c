/* Contexts: options, the thread pool, and what each thread last heard.

   Every call that compiles runs inside context_call: a fresh session, its fail point set,
   so that running out of memory and internal errors come back as statuses, and a stack of
   its own. */
#include "runtime/internal.h"

#include "ir/target.h"
#include "runtime/stack.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *
sdc_status_name(SdcStatus status)
{
    switch (status) {
    case SDC_OK: return "SDC_OK";
    case SDC_ERROR_SOURCE: return "SDC_ERROR_SOURCE";
    case SDC_ERROR_ARGUMENT: return "SDC_ERROR_ARGUMENT";
    case SDC_ERROR_UNSUPPORTED: return "SDC_ERROR_UNSUPPORTED";
    case SDC_ERROR_FILE: return "SDC_ERROR_FILE";
    case SDC_ERROR_ENVIRONMENT: return "SDC_ERROR_ENVIRONMENT";
    case SDC_ERROR_CHECK: return "SDC_ERROR_CHECK";
    case SDC_ERROR_MEMORY: return "SDC_ERROR_MEMORY";
    case SDC_ERROR_INTERNAL: return "SDC_ERROR_INTERNAL";
    }
    return "unknown status";
}

const char *
sdc_version(void)
{
    return SDC_VERSION;
}

const char *
sdc_targets(void)
{
    return target_names();
}

void
text_set(char **to, const char *text)
{
    free(*to);
    *to = text ? strdup(text) : NULL;
}

static bool
copy_texts(const char *const *from, int n, char ***to, int *count)
{
    *to = calloc((size_t)n + 1, sizeof **to);
    if (!*to)
        return false;
    for (int i = 0; i < n; i++) {
        if (!((*to)[i] = strdup(from[i])))
            return false;
        ++*count;
    }
    return true;
}

static bool
copy_options(SdcContext *cx, const SdcContextOptions *o)
{
    if (!o) {
        cx->cache = cache_open(NULL);
        return true;
    }
    cx->memory_limit = o->memory_limit;
    cx->color = o->color;
    cx->debug = o->debug;
    cx->threads = o->threads;
    cx->on_gpu = o->target && strcmp(o->target, "cpu") != 0;
    if (cx->on_gpu && strcmp(o->target, "cuda") != 0 &&
        !(cx->gpu_asked = strdup(o->target)))
        return false;
    cx->device = o->device;
    cx->cache = cache_open(o->cache_dir);
    cx->worker_seconds = o->worker_seconds;
    cx->check = o->check ? o->check | SDC_CHECK_ACCESS : 0;
    cx->print = o->print;
    cx->print_user = o->print_user;
    if (o->worker && !(cx->worker = strdup(o->worker)))
        return false;
    if (o->cpu && !(cx->cpu = strdup(o->cpu)))
        return false;
    return copy_texts(o->include_dirs, o->ninclude, &cx->include_dirs, &cx->ninclude) &&
           copy_texts(o->defines, o->ndefine, &cx->defines, &cx->ndefine);
}

static void
context_free(SdcContext *cx)
{
    sdcrt_pool_destroy(cx->pool);
    sdcrt_cuda_close(atomic_load(&cx->cuda));
    for (int i = 0; i < cx->ninclude; i++)
        free(cx->include_dirs[i]);
    free(cx->include_dirs);
    for (int i = 0; i < cx->ndefine; i++)
        free(cx->defines[i]);
    free(cx->defines);
    ranges_free(cx->ranges);
    rt_process_done(&cx->process);
    entries_done(cx->entries);
    cache_close(cx->cache);
    free(cx->worker);
    free(cx->cpu);
    free(cx->gpu_asked);
    for (Report *r = atomic_load(&cx->reports); r;) {
        Report *next = r->next;
        free(r->error);
        free(r->warnings);
        free(r->reproducer);
        check_free(r->check);
        messages_free(&r->messages);
        free(r->place_path);
        free(r);
        r = next;
    }
    free(cx);
}

static bool
is_target(const char *name)
{
    TargetInfo t;
    return strcmp(name, "cuda") == 0 || target_info(name, &t);
}

SdcStatus
sdc_context_create(const SdcContextOptions *o, SdcContext **out)
{
    if (!out)
        return SDC_ERROR_ARGUMENT;
    *out = NULL;
    SdcContextOptions known;
    if (!OPTIONS_READ(o, known))
        return SDC_ERROR_ARGUMENT;
    if (o && (o->ninclude < 0 || o->ndefine < 0 || (o->ndefine && !o->defines) ||
              o->threads < 0 || o->device < 0 || o->worker_seconds < 0 ||
              (o->ninclude && !o->include_dirs)))
        return SDC_ERROR_ARGUMENT;
    for (int i = 0; o && i < o->ninclude; i++)
        if (!o->include_dirs[i])
            return SDC_ERROR_ARGUMENT;
    for (int i = 0; o && i < o->ndefine; i++)
        if (!o->defines[i])
            return SDC_ERROR_ARGUMENT;
    if (o && o->target && !is_target(o->target))
        return SDC_ERROR_ARGUMENT;
    bool on_gpu = o && o->target && strcmp(o->target, "cpu") != 0;
    if (o && o->check &&
        (on_gpu || (o->check & ~(SDC_CHECK_ACCESS | SDC_CHECK_NAN)) != 0))
        return SDC_ERROR_ARGUMENT;
    SdcContext *cx = calloc(1, sizeof *cx);
    if (!cx)
        return SDC_ERROR_MEMORY;
    pthread_mutex_t *const locks[] = {&cx->lock, &cx->open_lock, &cx->hook_lock,
                                      &cx->check_lock};
    int made = 0;
    if (copy_options(cx, o) && (cx->pool = sdcrt_pool_create(cx->threads)) != NULL)
        while (made < COUNT_OF(locks) && pthread_mutex_init(locks[made], NULL) == 0)
            made++;
    if (made < COUNT_OF(locks)) {
        while (made > 0)
            pthread_mutex_destroy(locks[--made]);
        context_free(cx);
        return SDC_ERROR_MEMORY;
    }
    rt_process_mark(&cx->process);
    cx->events = 1;
    *out = cx;
    return SDC_OK;
}

/* In the child of a fork threads are gone and what they locked stays locked. */
static bool
is_forked(const SdcContext *cx)
{
    return rt_process_is_child(&cx->process);
}

SdcStatus
context_alive(SdcContext *cx)
{
    return is_forked(cx)
               ? context_fail(cx, SDC_ERROR_ENVIRONMENT,
                              "this process is the child of a fork, and the context its "
                              "parent's: make one here; only what was compiled before "
                              "can be launched, on the CPU")
               : SDC_OK;
}

SdcStatus
context_lock(SdcContext *cx, pthread_mutex_t *lock)
{
    SdcStatus status = context_alive(cx);
    if (status == SDC_OK)
        pthread_mutex_lock(lock);
    return status;
}

/* Of the parent's objects a child frees nothing: a thread may have been in the middle of
   changing them, and unloading code takes locks of the C library and LLVM. */
void
sdc_context_destroy(SdcContext *cx)
{
    if (!cx || is_forked(cx))
        return;
    while (cx->modules)
        sdc_module_unload(cx->modules);
    pthread_mutex_destroy(&cx->lock);
    pthread_mutex_destroy(&cx->open_lock);
    pthread_mutex_destroy(&cx->hook_lock);
    pthread_mutex_destroy(&cx->check_lock);
    context_free(cx);
}

int
sdc_context_threads(const SdcContext *cx)
{
    return cx ? sdcrt_pool_threads(cx->pool) : 0;
}

/* ---------------------------------------------------------------- reports */

/* Without a lock, so that a child of a fork hears why it is refused. */
static Report *
find_report(SdcContext *cx, bool make)
{
    pthread_t self = pthread_self();
    Report *r = atomic_load_explicit(&cx->reports, memory_order_acquire);
    while (r && !pthread_equal(r->thread, self))
        r = r->next;
    if (!r && make && (r = calloc(1, sizeof *r)) != NULL) {
        r->thread = self;
        r->next = atomic_load_explicit(&cx->reports, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(
            &cx->reports, &r->next, r, memory_order_release, memory_order_relaxed))
            continue;
    }
    return r;
}

Report *
context_report(SdcContext *cx)
{
    return find_report(cx, true);
}

Report *
context_heard(SdcContext *cx)
{
    return find_report(cx, false);
}

const char *
sdc_error(SdcContext *cx)
{
    if (!cx)
        return "there is no context: sdc_context_create was given a target that is none "
               "or a number below zero, or memory ran out";
    Report *r = find_report(cx, false);
    return r && r->error ? r->error : "";
}

const char *
sdc_warnings(SdcContext *cx)
{
    Report *r = cx ? find_report(cx, false) : NULL;
    return r && r->warnings ? r->warnings : "";
}

const char *
sdc_error_reproducer(SdcContext *cx)
{
    Report *r = cx ? find_report(cx, false) : NULL;
    return r && r->reproducer ? r->reproducer : "";
}

int
sdc_error_place(SdcContext *cx, SdcPlace *out)
{
    Report *r = cx ? find_report(cx, false) : NULL;
    if (!r || !r->has_place || !out)
        return 0;
    *out = r->place;
    return 1;
}

SdcStatus
context_binds(SdcContext *cx, const char *what, const char *const *bind, int n)
{
    if (n < 0)
        return context_fail(cx, SDC_ERROR_ARGUMENT, "%s: the number of bindings is %d",
                            what, n);
    if (n && !bind)
        return context_fail(cx, SDC_ERROR_ARGUMENT,
                            "%s: %d bindings are announced, and none given", what, n);
    for (int i = 0; i < n; i++) {
        if (!bind[i])
            return context_fail(cx, SDC_ERROR_ARGUMENT, "%s: binding %d is NULL", what,
                                i);
        size_t len = strcspn(bind[i], "=");
        for (int k = 0; k < i; k++)
            if (strcspn(bind[k], "=") == len && memcmp(bind[k], bind[i], len) == 0)
                return context_fail(cx, SDC_ERROR_ARGUMENT, "%s: '%.*s' is bound twice",
                                    what, (int)len, bind[i]);
    }
    return SDC_OK;
}

SdcStatus
context_args(SdcContext *cx, const KernelInfo *info, const SdcArg *args, int nargs)
{
    if (nargs != info->nruntime)
        return context_fail(cx, SDC_ERROR_ARGUMENT,
                            "'%s' takes %d arguments, %d are given", info->name,
                            info->nruntime, nargs);
    if (nargs && !args)
        return context_fail(cx, SDC_ERROR_ARGUMENT, "the arguments of '%s' are NULL",
                            info->name);
    for (int i = 0; i < nargs; i++) {
        const char *name = info->params[info->runtime[i]].name;
        if (args[i].kind == SDC_ARG_TUPLE && !tuple_is_right(&args[i]))
            return context_fail(cx, SDC_ERROR_ARGUMENT,
                                "argument '%s' of '%s' is a tuple of more than %d "
                                "elements, or of some that are no argument",
                                name, info->name, SDCRT_MAX_LEAVES);
        if ((uint32_t)args[i].kind > SDC_ARG_TUPLE)
            return context_fail(cx, SDC_ERROR_ARGUMENT,
                                "argument '%s' of '%s' is of kind %d, which is none",
                                name, info->name, args[i].kind);
        if (!arg_typed(&args[i]))
            return context_fail(cx, SDC_ERROR_ARGUMENT,
                                "argument '%s' of '%s' is of type %d, which is none",
                                name, info->name, args[i].dtype);
    }
    return SDC_OK;
}

SdcStatus
context_fail(SdcContext *cx, SdcStatus status, const char *fmt, ...)
{
    Report *r = cx ? context_report(cx) : NULL;
    if (!r)
        return status;
    char text[2400];
    va_list ap;
    va_start(ap, fmt);
    int n = snprintf(text, sizeof text, "sdc: %serror:%s ", cx->color ? "\033[1;31m" : "",
                     cx->color ? "\033[0m" : "");
    char *said = text + n;
    n += vsnprintf(text + n, sizeof text - (size_t)n - 1, fmt, ap);
    va_end(ap);
    if (n > (int)sizeof text - 2)
        n = (int)sizeof text - 2;
    strcpy(text + n, "\n");
    text_set(&r->error, text);
    text_set(&r->reproducer, NULL);
    messages_free(&r->messages);
    text[n] = '\0';
    messages_say(&r->messages, said, r->error ? r->error : "");
    r->has_place = false;
    return status;
}

static void
report_place(Report *r, const Diag *d)
{
    r->has_place = false;
    const DiagItem *it = d->first;
    while (it && it->level != DIAG_ERROR)
        it = it->next;
    if (!it || !it->loc.src)
        return;
    text_set(&r->place_path, it->loc.src->path);
    r->place = (SdcPlace){r->place_path, it->loc.line, it->loc.col, it->loc.end_line,
                          it->loc.end_col};
    r->has_place = true;
}

/* Everything that the session has to say, into the thread's report. May jump. */
static void
report_session(SdcContext *cx, Session *s, SdcStatus status, const char *failure)
{
    Report *r = context_report(cx);
    if (!r)
        return;
    Buf b;
    buf_init(&b, &s->tmp);
    buf_str(&b, "");
    diag_render(&s->diag, &b, cx->color);
    messages_free(&r->messages);
    messages_take(&r->messages, s, failure, cx->color);
    if (failure)
        buf_printf(&b, "sdc: %s%s\n",
                   status == SDC_ERROR_INTERNAL ? "" : "error: ", failure);
    text_set(status == SDC_OK ? &r->warnings : &r->error, b.s);
    if (status == SDC_OK)
        return;
    text_set(&r->warnings, NULL);
    text_set(&r->reproducer, NULL);
    report_place(r, &s->diag);
}

/* A refusal is told from an error by its words, which every stage uses. */
static SdcStatus
diag_status(const Diag *d)
{
    static const char unsupported[] = "not supported yet";
    for (const DiagItem *it = d->first; it; it = it->next)
        if (it->level == DIAG_ERROR)
            return strncmp(it->text, unsupported, sizeof unsupported - 1) == 0
                       ? SDC_ERROR_UNSUPPORTED
                   : it->loc.src ? SDC_ERROR_SOURCE
                                 : SDC_ERROR_ARGUMENT;
    return SDC_ERROR_SOURCE;
}

/* One call on the library's own stack. */
typedef struct ContextCall {
    SdcContext *cx;
    Session *s;
    CallFn *fn;
    void *arg;
    SdcStatus status;
} ContextCall;

static void
call_body(void *user)
{
    ContextCall *c = user;
    Session *s = c->s;
    volatile SdcStatus status;
    volatile bool failed = false;
    if (setjmp(s->fail.env) == 0) {
        s->fail.set = 1;
        SdcStatus got = c->fn(s, c->arg);
        status = got == SDC_OK && !diag_ok(&s->diag) ? diag_status(&s->diag) : got;
    } else {
        failed = true;
        status = s->fail.reason == FAIL_BUG     ? SDC_ERROR_INTERNAL
                 : s->fail.reason == FAIL_LIMIT ? SDC_ERROR_SOURCE
                                                : SDC_ERROR_MEMORY;
    }
    char text[sizeof s->fail.message];
    memcpy(text, s->fail.message, sizeof text);
    /* Rendering needs memory too; the limit of `tmp` alone is lifted for it. */
    s->tmp.limit = 0;
    s->perm.limit = 0;
    if (setjmp(s->fail.env) == 0)
        report_session(c->cx, s, status, failed ? text : NULL);
    else
        context_fail(c->cx, SDC_ERROR_MEMORY, "out of memory");
    s->fail.set = 0;
    c->status = status;
}

SdcStatus
context_call(SdcContext *cx, CallFn *fn, void *arg)
{
    SdcStatus alive = context_alive(cx);
    if (alive != SDC_OK)
        return alive;
    ContextCall c = {.cx = cx, .fn = fn, .arg = arg, .s = session_new(cx->memory_limit)};
    if (!c.s)
        return context_fail(cx, SDC_ERROR_MEMORY, "out of memory");
    if (!stack_run(call_body, &c))
        c.status = context_fail(cx, SDC_ERROR_MEMORY,
                                "out of memory: no %d MiB of address space for the "
                                "compiler's stack",
                                STACK_MIB);
    session_free(c.s);
    return c.status;
}

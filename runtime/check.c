/* sdc check: every kernel of a file compiled, with signatures that the front end guesses
   where nobody has said one. */
#include "runtime/internal.h"

#include "ir/base/util.h"

#include <stdlib.h>
#include <string.h>

/* What is handed out, and the texts that it points to. */
typedef struct Texts {
    char **at;
    int n, cap;
} Texts;

typedef struct Result {
    SdcCheck check; /* first: a pointer to it is one to this */
    SdcChecked *fn;
    Texts texts;
    char *listing;
} Result;

/* A kernel's signatures while it is checked. */
typedef struct Todo {
    const char **signature;
    int n;
    int likely; /* the others are for kernels that no type of these suits */
} Todo;

typedef struct Checker {
    SdcModule *m;
    const SdcCheckOptions *o;
    Result *r;
    Todo *todo; /* one a function for each target, those of the first one in front */
    int ntodo;  /* functions */
    int target; /* whose signatures are guessed */
    int (*skipped)[2];
    int nskipped;
    Messages said;
    SdcStatus status;
    char *reproducer;
} Checker;

void
check_free(SdcCheck *c)
{
    Result *r = (Result *)c;
    if (!r)
        return;
    for (int i = 0; i < r->texts.n; i++)
        free(r->texts.at[i]);
    free(r->texts.at);
    free(r->fn);
    free(r->listing);
    free(r);
}

/* A copy that lives as long as the result; NULL when out of memory. */
static const char *
keep(Texts *t, const char *text)
{
    if (t->n == t->cap) {
        int cap = t->cap ? 2 * t->cap : 16;
        char **more = realloc(t->at, (size_t)cap * sizeof *more);
        if (!more)
            return NULL;
        t->at = more;
        t->cap = cap;
    }
    char *copy = strdup(text);
    if (copy)
        t->at[t->n++] = copy;
    return copy;
}

/* ---- what there is to check */

static bool
take_signatures(Checker *c, const FrontCheck *f, Todo *todo)
{
    bool given = c->o->nsignature > 0;
    const FrontGuess *g = &f->guess;
    int n = given ? c->o->nsignature : g->n;
    todo->likely = given ? n : g->likely;
    todo->signature = calloc((size_t)n + 1, sizeof *todo->signature);
    for (int k = 0; todo->signature && k < n; k++) {
        const char *text = given ? c->o->signatures[k] : g->signature[k];
        todo->signature[k] = keep(&c->r->texts, text ? text : "");
        todo->n += todo->signature[k] != NULL;
    }
    return todo->signature && todo->n == n;
}

static bool
take_function(Checker *c, const FrontCheck *f, int i)
{
    Result *r = c->r;
    bool given = c->o->nsignature > 0;
    Todo *todo = &c->todo[i];
    r->fn[i] = (SdcChecked){.name = keep(&r->texts, f->name),
                            .line = f->loc.line,
                            .is_kernel = f->is_kernel,
                            .ok = f->ok,
                            .guessed = f->is_kernel && !given};
    r->check.n = c->ntodo = i + 1;
    if (!f->is_kernel || !f->ok)
        return r->fn[i].name != NULL;
    bool ok = take_signatures(c, f, todo);
    r->fn[i].signature = todo->n ? todo->signature[0] : NULL;
    return r->fn[i].name && ok;
}

static size_t
todo_count(const Checker *c, int nfn)
{
    return (size_t)nfn * (size_t)(c->o->ntarget ? c->o->ntarget : 1) + 1;
}

/* Another target than the first: module level code may give it other configurations. */
static bool
take_more(Checker *c, const FrontReport *report)
{
    bool ok = true;
    for (int i = 0; i < report->nfn && ok; i++)
        for (int k = 0; k < c->ntodo; k++) {
            Todo *todo = &c->todo[c->target * c->ntodo + k];
            if (report->fn[i].is_kernel && !todo->signature &&
                strcmp(c->r->fn[k].name, report->fn[i].name) == 0)
                ok = take_signatures(c, &report->fn[i], todo);
        }
    return ok;
}

static bool
take_report(Checker *c, const FrontReport *report)
{
    size_t n = (size_t)report->nfn + 1;
    c->r->fn = calloc(n, sizeof *c->r->fn);
    c->todo = calloc(todo_count(c, report->nfn), sizeof *c->todo);
    c->skipped = calloc((size_t)report->nskipped + 1, sizeof *c->skipped);
    bool ok = c->r->fn && c->todo && c->skipped;
    for (int i = 0; ok && i < report->nfn; i++)
        ok = take_function(c, &report->fn[i], i);
    for (int i = 0; ok && i < report->nskipped; i++) {
        c->skipped[i][0] = report->skipped[i].line;
        c->skipped[i][1] = report->skipped[i].end_line;
        c->nskipped = i + 1;
    }
    c->r->check.functions = c->r->fn;
    return ok;
}

/* A file without kernels is an error only where some were meant. */
static void
explain_none(Session *s, FrontModule *fm, int nfn)
{
    Diag before = s->diag;
    if (nfn)
        return;
    diag_error(&s->diag, (Loc){0}, "the file has no kernel");
    DiagItem *error = s->diag.last;
    front_explain_missing(fm, NULL);
    if (s->diag.last == error)
        diag_rewind(&s->diag, &before);
}

static SdcStatus
look_call(Session *s, void *arg)
{
    Checker *c = arg;
    CompileJob job;
    FrontReport report = {0};
    FrontAsked asked = {.kernel = c->o->kernel,
                        .bind = c->o->bind,
                        .nbind = c->o->nbind};
    module_job(c->m, &job);
    job.front.target = c->o->ntarget ? c->o->targets[c->target]
                                     : "sm_90a"; /* what is asked of the device */
    Source *src = arena_new(&s->perm, Source);
    *src = job.src;
    FrontModule *fm = front_load(s, src, &job.front);
    if (!fm)
        return SDC_OK; /* the messages decide */
    if ((c->o->kernel || c->o->nsignature) &&
        !(asked.kernel = compile_kernel(s, fm, c->o->kernel)))
        return SDC_OK;
    front_check(fm, &asked, &report);
    if (c->target)
        return take_more(c, &report) ? SDC_OK : SDC_ERROR_MEMORY;
    if (!c->o->kernel)
        explain_none(s, fm, report.nfn);
    return take_report(c, &report) ? SDC_OK : SDC_ERROR_MEMORY;
}

/* Tile IR has nothing to guess. */
static SdcStatus
look_tir(Checker *c)
{
    size_t n = (size_t)c->m->nkernel + 1;
    c->r->fn = calloc(n, sizeof *c->r->fn);
    c->todo = calloc(todo_count(c, c->m->nkernel), sizeof *c->todo);
    if (!c->r->fn || !c->todo)
        return SDC_ERROR_MEMORY;
    for (int i = 0; i < c->m->nkernel; i++) {
        FrontCheck f = {.name = c->m->kernels[i].name, .is_kernel = true, .ok = true};
        if (!take_function(c, &f, i))
            return SDC_ERROR_MEMORY;
        c->r->fn[i].guessed = 0;
    }
    c->r->check.functions = c->r->fn;
    return SDC_OK;
}

/* ---- compiling */

static SdcStatus
ignore(Session *s, CompileResult *r, void *arg)
{
    (void)s;
    (void)r;
    (void)arg;
    return SDC_OK;
}

/* The worst that was met: a bug of sdc over anything, what the machine lacks over faults
   of the source. */
static void
note_status(Checker *c, SdcStatus status)
{
    bool worse = c->status == SDC_OK || status == SDC_ERROR_INTERNAL ||
                 (status == SDC_ERROR_MEMORY && c->status != SDC_ERROR_INTERNAL);
    if (status == SDC_OK || !worse)
        return;
    Report *r = context_report(c->m->cx);
    if (status == SDC_ERROR_INTERNAL && r && r->reproducer)
        text_set(&c->reproducer, r->reproducer);
    c->status = status;
}

/* The bindings that mean this kernel; *bind: allocated, or NULL when out of memory. */
static int
take_bindings(const Checker *c, const char *kernel, const char ***bind)
{
    const KernelInfo *info = module_find_kernel(c->m, kernel);
    int nbind = 0;
    *bind = calloc((size_t)c->o->nbind + 1, sizeof **bind);
    for (int i = 0; *bind && i < c->o->nbind; i++) {
        size_t n = strcspn(c->o->bind[i], "=");
        bool other = !c->o->kernel && !c->o->nsignature && info != NULL;
        for (int k = 0; other && k < info->nparam; k++)
            other = strlen(info->params[k].name) != n ||
                    memcmp(info->params[k].name, c->o->bind[i], n) != 0;
        bool option = strncmp(c->o->bind[i], "num_", 4) == 0 ||
                      strncmp(c->o->bind[i], "launch_pdl=", 11) == 0 ||
                      strncmp(c->o->bind[i], "enable_fp_fusion=", 17) == 0;
        if (!other || option)
            (*bind)[nbind++] = c->o->bind[i];
    }
    return nbind;
}

static void
make_job(const Checker *c, const char *kernel, const char *target, CompileJob *job,
         const char ***bind)
{
    module_job(c->m, job);
    job->opt = (SdcCompileOptions){.kernel = kernel,
                                   .target = target ? target : "sm_90a",
                                   .cpu = "x86-64-v3",
                                   .emit = target ? SDC_EMIT_ASM : SDC_EMIT_TIR};
    job->opt.nbind = take_bindings(c, kernel, bind);
    job->opt.bind = *bind;
    job->checks = true;
}

static SdcStatus
compile_one(Checker *c, const SdcChecked *f, const char *signature, const char *target,
            bool *large, Messages *said)
{
    /* 256 registers of a thread of four warps: people write less, and all of it would be
       compiled to say that the kernel passes. */
    enum { GUESSED_TILE = 1 << 15 };
    CompileJob job;
    const char **bind;
    make_job(c, f->name, target, &job, &bind);
    job.opt.signature = c->m->is_tir ? NULL : signature;
    job.guessed = f->guessed ? signature : NULL;
    job.tile_most = large ? GUESSED_TILE : 0;
    job.tile_refused = large;
    SdcStatus status =
        bind ? compile_call(c->m->cx, &job, ignore, NULL) : SDC_ERROR_MEMORY;
    Report *r = context_report(c->m->cx);
    if (r)
        messages_move(said, &r->messages);
    free(bind);
    return status;
}

/* A search for a signature that the front end takes. */
typedef struct Search {
    const CompileJob *job;
    const Todo *todo;
    int at; /* the next one to try */
} Search;

static bool
lowers(Session *s, FrontModule *fm, const Search *search)
{
    CompileJob job = *search->job;
    CompileResult unused = {0};
    job.opt.signature = search->todo->signature[search->at];
    Diag before = s->diag;
    ArenaMark mod = arena_mark(&s->mod), tmp = arena_mark(&s->tmp);
    bool ok = compile_lower(s, fm, &job, &unused) != NULL;
    arena_reset(&s->tmp, tmp);
    arena_reset(&s->mod, mod);
    diag_rewind(&s->diag, &before);
    return ok;
}

static SdcStatus
search_call(Session *s, void *arg)
{
    Search *search = arg;
    FrontModule *fm = compile_load(s, search->job);
    while (fm && search->at < search->todo->n && !lowers(s, fm, search))
        search->at++;
    return SDC_OK;
}

/* The first signature from `from` on that may do; todo->n: none. What is guessed for a
   kernel that is wrong for all of them may be a hundred signatures, and reading a large
   file takes far longer than specializing one kernel of it: so it is read once for all.
   Where the search ends early the rest is for compile_one, which says why. */
static int
next_signature(Checker *c, const SdcChecked *f, const Todo *todo, const char *target,
               int from)
{
    CompileJob job;
    const char **bind;
    make_job(c, f->name, target, &job, &bind);
    Search search = {&job, todo, from};
    if (bind && from + 1 < todo->n)
        context_call(c->m->cx, search_call, &search);
    free(bind);
    return search.at;
}

/* With the first signature that the kernel compiles with for this target, those that make
   large tiles at last; all, when they are given. */
static void
check_target(Checker *c, SdcChecked *f, const Todo *todo, const char *target)
{
    Messages first = {0};
    SdcStatus status = SDC_OK, failed = SDC_OK;
    bool ok = false, leads = f->ok, *late = calloc((size_t)todo->n + 1, sizeof *late);
    for (int k = 0; late && k < 2 * todo->n && !(ok && f->guessed); k++) {
        int i = k % todo->n;
        Messages said = {0};
        bool idle = i >= todo->likely && failed != SDC_OK && failed != SDC_ERROR_SOURCE;
        if (idle || (k >= todo->n && !late[i]))
            continue;
        bool *large = f->guessed && k < todo->n ? &late[i] : NULL;
        status = compile_one(c, f, todo->signature[i], target, large, &said);
        if (large && *large) {
            messages_free(&said);
            continue;
        }
        if (status == SDC_OK) {
            ok = failed == SDC_OK || f->guessed;
            f->signature = ok && leads ? todo->signature[i] : f->signature;
            messages_move(&c->said, &said); /* warnings */
        } else if (failed == SDC_OK || !f->guessed) {
            ok = false;
            failed = status;
            f->signature = todo->signature[i];
            messages_move(&first, &said);
        }
        messages_free(&said);
        if (status == SDC_ERROR_INTERNAL || status == SDC_ERROR_MEMORY)
            break;
        if (status != SDC_OK && f->guessed && k < todo->n)
            k = next_signature(c, f, todo, target, k + 1) - 1;
    }
    f->ok &= ok;
    if (!ok) {
        messages_move(&c->said, &first);
        note_status(c, late ? failed : SDC_ERROR_MEMORY);
    }
    messages_free(&first);
    free(late);
}

static void
check_kernel(Checker *c, int i)
{
    SdcChecked *f = &c->r->fn[i];
    f->ok = 1;
    for (int t = 0; t < c->o->ntarget || t == 0; t++) {
        const Todo *own = &c->todo[t * c->ntodo + i];
        check_target(c, f, own->n ? own : &c->todo[i],
                     c->o->ntarget ? c->o->targets[t] : NULL);
    }
}

/* ---- the listing */

static void
list_kernel(Buf *b, const KernelInfo *k)
{
    buf_printf(b, "kernel %s(", k->name);
    for (int i = 0; i < k->nparam; i++) {
        const SdcParam *p = &k->params[i];
        buf_printf(b, "%s%s", i ? ", " : "", p->name);
        if (p->is_constexpr)
            buf_str(b, ": constexpr");
        else if (p->type)
            buf_printf(b, ": %s", p->type);
    }
    buf_str(b, ")\n");
}

/* Kernels with their parameters, their signature and a verdict, helpers that do not pass,
   skipped blocks. */
static SdcStatus
list_call(Session *s, void *arg)
{
    Checker *c = arg;
    SdcCheck *all = &c->r->check;
    Buf b;
    buf_init(&b, &s->tmp);
    buf_str(&b, "");
    all->kernels = all->good = 0;
    for (int i = 0; i < all->n; i++) {
        const SdcChecked *f = &c->r->fn[i];
        const KernelInfo *k = module_find_kernel(c->m, f->name);
        all->kernels += f->is_kernel;
        all->good += f->is_kernel && f->ok;
        if (f->is_kernel && k)
            list_kernel(&b, k);
        if (f->is_kernel && f->signature && *f->signature)
            buf_printf(&b, "  %s -s '%s'\n", f->guessed ? "guessed" : "with",
                       f->signature);
        if (!f->ok)
            buf_printf(&b, "  %s '%s' at line %d does not pass\n",
                       f->is_kernel ? "kernel" : "helper", f->name, f->line);
    }
    for (int i = 0; i < c->nskipped; i++)
        buf_printf(&b, "skipped lines %d-%d: host code beyond the limits of sdc\n",
                   c->skipped[i][0], c->skipped[i][1]);
    if (all->kernels)
        buf_printf(&b, "%s: %d of %d kernel%s %s\n", c->m->path, all->good, all->kernels,
                   all->kernels == 1 ? "" : "s", all->kernels == 1 ? "passes" : "pass");
    else if (all->n == 1)
        buf_printf(&b, "%s: no kernel; '%s' is a helper: it returns a value\n",
                   c->m->path, c->r->fn[0].name);
    else if (all->n)
        buf_printf(&b, "%s: no kernel; %d helpers: they return a value, or others call "
                   "them\n", c->m->path, all->n);
    else
        buf_printf(&b, "%s: no kernel\n", c->m->path);
    text_set(&c->r->listing, b.s);
    all->listing = c->r->listing ? c->r->listing : "";
    return c->r->listing ? SDC_OK : SDC_ERROR_MEMORY;
}

/* Everything that was said, as one call's report. */
static SdcStatus
finish(Checker *c, Report *r, const SdcCheck **out)
{
    SdcContext *cx = c->m->cx;
    SdcStatus listed = context_call(cx, list_call, c);
    SdcStatus status = c->status == SDC_OK ? listed : c->status;
    if (listed == SDC_OK) {
        check_free(r->check);
        r->check = &c->r->check;
        *out = r->check;
        c->r = NULL;
        messages_free(&r->messages);
        r->messages = c->said;
        c->said = (Messages){0};
        char **to = status == SDC_OK ? &r->warnings : &r->error;
        free(*to);
        *to = messages_text(&r->messages);
        if (status != SDC_OK) {
            text_set(&r->warnings, NULL);
            free(r->reproducer);
            r->reproducer = c->reproducer;
            c->reproducer = NULL;
            report_first_place(r);
        }
    }
    return status;
}

SdcStatus
sdc_module_check(SdcModule *m, const SdcCheckOptions *options, const SdcCheck **out)
{
    static const SdcCheckOptions none;
    if (!m)
        return SDC_ERROR_ARGUMENT;
    if (!out)
        return context_fail(m->cx, SDC_ERROR_ARGUMENT,
                            "check: no place to put the result");
    *out = NULL;
    SdcCheckOptions known;
    if (!OPTIONS_READ(options, known))
        return options_wrong(m->cx, "check", options->size, sizeof known);
    const SdcCheckOptions *o = options ? options : &none;
    SdcStatus status = context_binds(m->cx, "check", o->bind, o->nbind);
    if (status != SDC_OK)
        return status;
    if (o->nsignature < 0 || o->ntarget < 0 || (o->nsignature && !o->signatures) ||
        (o->ntarget && !o->targets))
        return context_fail(m->cx, SDC_ERROR_ARGUMENT,
                            "check: signatures or targets are announced, and none given");
    Report *r = context_report(m->cx);
    Checker c = {.m = m, .o = o, .r = calloc(1, sizeof *c.r)};
    if (!r || !c.r) {
        free(c.r);
        return context_fail(m->cx, SDC_ERROR_MEMORY, "out of memory");
    }
    c.status = m->is_tir ? look_tir(&c) : context_call(m->cx, look_call, &c);
    messages_move(&c.said, &r->messages);
    bool more = c.status == SDC_OK && !m->is_tir && !o->nsignature;
    for (c.target = 1; c.target < o->ntarget && more; c.target++)
        c.status = context_call(m->cx, look_call, &c); /* says what the first did */
    if (c.status == SDC_OK || c.status == SDC_ERROR_SOURCE ||
        c.status == SDC_ERROR_UNSUPPORTED) {
        for (int i = 0; i < c.r->check.n; i++)
            if (c.r->fn[i].is_kernel && c.todo[i].n)
                check_kernel(&c, i);
        status = finish(&c, r, out);
    } else {
        status = c.status;
    }
    for (size_t i = 0; c.todo && i < todo_count(&c, c.ntodo); i++)
        free(c.todo[i].signature);
    free(c.todo);
    free(c.skipped);
    free(c.reproducer);
    messages_free(&c.said);
    check_free((SdcCheck *)c.r);
    return status;
}

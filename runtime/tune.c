/* sdc_tune: candidates are compiled by as many threads as there are cores, while the
   calling thread checks and measures those that are ready, the first of the list first:
   its results are what others are compared with. On the CPU it measures when the
   compiling is done, for both want the cores. */
#include "runtime/tune.h"
#include "runtime/sdc_measure.h"
#include "ir/base/util.h"
#include "runtime/rt/expr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FINALISTS = 4 };

/* Slower than the best by this when first measured: it is not measured to the end. The
   fastest run says it, which what goes on beside it disturbs least. */
static const double clearly_slower = 1.25;

/* Seconds of measuring, at first (on the CPU, on a GPU) and of those that may be the
   best. */
static const double first_look[] = {[false] = 0.02, [true] = 0.01}, last_look = 0.05;

/* ---------------------------------------------------------------- compiling */

static bool
set_grid(SdcTuning *t, Candidate *c)
{
    const KernelInfo *info = t->info;
    int64_t args[SDCRT_MAX_ARGUMENTS] = {0}, size[3] = {1, 1, 1};
    SdcrtMeta *meta = c->kernel->meta;
    SdcrtExprError e = {0};
    char why[300];
    int nargs = info->nruntime < t->o->nargs ? info->nruntime : t->o->nargs;
    grid_values(c->kernel, t->o->args, nargs, args);
    bool ok = meta_grid(meta, t->o->grid, &e);
    for (int i = 0; i < 3 && ok; i++)
        ok = !meta->grid[i].n || sdcrt_expr_eval(&meta->grid[i], args, &size[i], &e);
    c->grid = sdc_grid(size[0], size[1], size[2]);
    if (ok)
        return true;
    snprintf(why, sizeof why, "grid: %s%s%s", e.name, *e.name ? " " : "", e.what);
    tune_give_up(c, SDC_TRIED_FAILED, why);
    return false;
}

static void
give_up_after_error(SdcTuning *t, Candidate *c, SdcStatus status)
{
    c->status = status;
    const char *text = sdc_error(t->mod->cx), *error = strstr(text, "error: ");
    tune_give_up(c, SDC_TRIED_FAILED, error ? error + 7 : text);
}

/* The first look: what does not fit is given up. */
static void
look_at_candidate(SdcTuning *t, Candidate *c)
{
    double start = seconds_now();
    SdcStatus status = sdc_function_get(t->mod, t->info->name,
                                        (const char *const *)c->bind, c->nbind, &c->f);
    char *why = status == SDC_OK ? tune_look(t, c, c->f) : NULL;
    c->prune_seconds = seconds_now() - start;
    if (status != SDC_OK)
        give_up_after_error(t, c, status);
    else if (why)
        tune_give_up(c, SDC_TRIED_PRUNED, why);
    free(why);
}

static void
compile_candidate(SdcTuning *t, Candidate *c)
{
    double start = seconds_now();
    char *why = tune_prune(t, c);
    if (why) {
        tune_give_up(c, SDC_TRIED_PRUNED, why);
        free(why);
        return;
    }
    SdcStatus status = function_compile(c->f, t->o->args, t->o->nargs, &c->kernel);
    c->seconds = seconds_now() - start;
    if (status != SDC_OK)
        give_up_after_error(t, c, status);
    else
        set_grid(t, c);
}

static void *
look_main(void *arg)
{
    SdcTuning *t = arg;
    pthread_mutex_lock(&t->lock);
    while (t->next < t->until) {
        Candidate *c = t->all[t->next++];
        if (c->ready)
            continue;
        pthread_mutex_unlock(&t->lock);
        look_at_candidate(t, c);
        pthread_mutex_lock(&t->lock);
        c->ready = c->given_up;
        t->times.prune += c->prune_seconds;
        if (c->guess > 0 && (t->best_guess <= 0 || c->guess < t->best_guess))
            t->best_guess = c->guess;
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void *
compile_main(void *arg)
{
    SdcTuning *t = arg;
    pthread_mutex_lock(&t->lock);
    while (t->next < t->until && !t->stopped) {
        Candidate *c = t->all[t->next++];
        if (c->ready)
            continue;
        pthread_mutex_unlock(&t->lock);
        compile_candidate(t, c);
        pthread_mutex_lock(&t->lock);
        double load = c->kernel ? c->kernel->load_seconds : 0;
        t->times.load += load;
        t->times.compile += c->seconds - load;
        t->times.longest = c->seconds > t->times.longest ? c->seconds : t->times.longest;
        c->ready = true;
        pthread_cond_broadcast(&t->step);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* ---------------------------------------------------------------- measuring */

typedef struct Launch {
    const SdcTuning *t;
    Candidate *c;
} Launch;

static SdcStatus
launch(void *user, void *stream)
{
    Launch *l = user;
    return sdc_kernel_launch(l->c->kernel, l->c->grid, l->t->o->args, l->t->o->nargs,
                             stream);
}

static SdcStatus
measure(SdcTuning *t, Candidate *c, double seconds)
{
    Launch l = {t, c};
    return measure_run(t->measure, launch, &l, seconds, &c->trial.times);
}

static bool
is_measured(const Candidate *c)
{
    return c->trial.what == SDC_TRIED_FAST && c->trial.times.n > 0;
}

/* Has the same machine code with the same grid been tried? num_warps means nothing on the
   CPU, and where a loop has one round num_stages does not on a GPU. */
static bool
is_known(SdcTuning *t, Candidate *c)
{
    for (int i = 0; i < t->n; i++) {
        Candidate *x = t->all[i];
        if (x == c || !x->tried || !x->kernel || x->same || !x->trial.times.n ||
            x->kernel->code != c->kernel->code || x->grid.x != c->grid.x ||
            x->grid.y != c->grid.y || x->grid.z != c->grid.z)
            continue;
        char why[600];
        const char *as = *x->trial.config ? x->trial.config : "the defaults";
        snprintf(why, sizeof why, "the same code as %s", as);
        tune_give_up(c, x->trial.what, why);
        c->trial.times = x->trial.times;
        c->same = x;
        return true;
    }
    return false;
}

/* The device itself failed: nothing can be measured any more. */
static SdcStatus
try_candidate(SdcTuning *t, Candidate *c)
{
    if (!c->kernel || c->trial.what != SDC_TRIED_FAST || is_known(t, c))
        return SDC_OK;
    double start = seconds_now();
    SdcStatus status = tune_check(t, c);
    double checked = seconds_now();
    if (status == SDC_OK && c->trial.what == SDC_TRIED_FAST)
        status = measure(t, c, first_look[t->mod->cx->on_gpu]);
    t->times.check += checked - start;
    t->times.measure += seconds_now() - checked;
    if (status == SDC_ERROR_ARGUMENT || status == SDC_ERROR_SOURCE) {
        give_up_after_error(t, c, status);
        return SDC_OK;
    }
    if (status != SDC_OK || !is_measured(c))
        return status;
    if (!t->best || c->trial.times.min < t->best->trial.times.min)
        t->best = c;
    else if (c->trial.times.min > clearly_slower * t->best->trial.times.min)
        c->trial.what = SDC_TRIED_SLOW;
    return SDC_OK;
}

static bool
out_of_time(SdcTuning *t)
{
    const SdcTuneOptions *o = t->o;
    if (o->progress &&
        o->progress(o->progress_user, t->done, t->n, t->best ? &t->best->trial : NULL))
        t->stopped = true;
    if (o->budget > 0 && seconds_now() - t->start > o->budget && t->best)
        t->stopped = true;
    return t->stopped;
}

static bool
is_over(SdcTuning *t)
{
    pthread_mutex_lock(&t->lock);
    bool over = out_of_time(t);
    pthread_mutex_unlock(&t->lock);
    return over;
}

/* One thread less than there are when this one measures meanwhile. */
static int
start_threads(SdcTuning *t, void *(*work)(void *), pthread_t *threads, int most)
{
    int want = t->o->threads > 0 ? t->o->threads : sdc_context_threads(t->mod->cx);
    int left = t->until - t->next, n = 0;
    want = want < 1 ? 1 : want > most ? most : want;
    while (n < want && n < left && pthread_create(&threads[n], NULL, work, t) == 0)
        n++;
    return n;
}

static void
look_at_all(SdcTuning *t, int first)
{
    enum { MOST = 256 };
    pthread_t threads[MOST];
    t->next = first;
    t->until = t->n;
    int n = start_threads(t, look_main, threads, MOST);
    if (!n)
        look_main(t);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

/* For the next that is compiled, but not so long that an interrupt would not be seen. */
static void
wait_a_little(SdcTuning *t)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50 * 1000 * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&t->step, &t->lock, &until);
}

/* Until all are compiled, or the tuning ends. */
static void
wait_for_compilers(SdcTuning *t, int first)
{
    pthread_mutex_lock(&t->lock);
    for (int i = first; i < t->n; i++)
        while (!t->all[i]->ready && !out_of_time(t))
            wait_a_little(t);
    if (t->stopped)
        t->until = t->next;
    pthread_mutex_unlock(&t->lock);
}

/* The next to try of first .. t->n - 1, waiting until there is one: the first of the list
   that may be the reference, then whatever is ready. NULL: none is left. */
static Candidate *
next_ready(SdcTuning *t, int first, bool waits)
{
    Candidate *found = NULL;
    double start = seconds_now();
    pthread_mutex_lock(&t->lock);
    for (;;) {
        bool left = false;
        for (int i = first; i < t->n && !found; i++) {
            Candidate *c = t->all[i];
            left |= !c->tried;
            if (!c->tried && c->ready)
                found = c;
            else if (!c->tried && !t->have_first)
                break;
        }
        if (found || !left || !waits || out_of_time(t))
            break;
        wait_a_little(t);
    }
    pthread_mutex_unlock(&t->lock);
    t->times.wait += seconds_now() - start;
    if (found)
        found->tried = true;
    return found;
}

/* Compiles and tries the candidates first .. t->n - 1. */
SdcStatus
tune_batch(SdcTuning *t, int first)
{
    enum { MOST = 256 };
    pthread_t threads[MOST];
    SdcStatus status = SDC_OK;
    Candidate *c;
    look_at_all(t, first);
    t->next = first;
    t->until = t->n;
    int n = start_threads(t, compile_main, threads, MOST);
    t->times.threads = n > t->times.threads ? n : t->times.threads;
    if (!n)
        compile_main(t);
    if (!t->mod->cx->on_gpu) {
        if (n)
            wait_for_compilers(t, first);
        for (int i = 0; i < n; i++)
            pthread_join(threads[i], NULL);
        n = 0;
    }
    if (first == 0)
        tune_check_prepare(t);
    while (status == SDC_OK && !is_over(t) && (c = next_ready(t, first, n > 0)) != NULL) {
        status = try_candidate(t, c);
        t->done++;
    }
    pthread_mutex_lock(&t->lock);
    t->until = t->next; /* whoever still compiles stops after what it has */
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return status;
}

/* ---------------------------------------------------------------- the whole */

static int
compare(const Candidate *x, const Candidate *y, double tx, double ty)
{
    bool mx = x->trial.times.n > 0, my = y->trial.times.n > 0;
    if (x->trial.what != y->trial.what)
        return (int)x->trial.what - (int)y->trial.what;
    if (mx != my || tx != ty)
        return mx != my ? my - mx : tx > ty ? 1 : -1;
    return (x->same != NULL) - (y->same != NULL);
}

static int
faster(const void *a, const void *b)
{
    const Candidate *x = *(Candidate *const *)a, *y = *(Candidate *const *)b;
    return compare(x, y, x->trial.times.median, y->trial.times.median);
}

static int
faster_at_best(const void *a, const void *b)
{
    const Candidate *x = *(Candidate *const *)a, *y = *(Candidate *const *)b;
    return compare(x, y, x->trial.times.min, y->trial.times.min);
}

/* The fastest few once more, together and for longer: between them the first look may be
   wrong. */
static SdcStatus
finals(SdcTuning *t)
{
    const SdcMeasureOptions o = {.seconds = last_look};
    SdcMeasured of[FINALISTS];
    Launch l[FINALISTS];
    SdcStatus status = SDC_OK;
    double start = seconds_now();
    int n = 0;
    qsort(t->all, (size_t)t->n, sizeof(Candidate *), faster_at_best);
    for (int i = 0; i < t->n && n < FINALISTS; i++) {
        Candidate *c = t->all[i];
        if (c->same || !is_measured(c) ||
            c->trial.times.min > 1.1 * t->all[0]->trial.times.min)
            continue;
        l[n] = (Launch){t, c};
        of[n] = (SdcMeasured){.launch = launch, .user = &l[n]};
        n++;
    }
    if (n > 1)
        status = measure_rounds(t->mod->cx, t->measure, of, n, &o);
    else if (n)
        status = measure(t, l[0].c, last_look);
    for (int i = 0; i < n && n > 1 && status == SDC_OK; i++)
        l[i].c->trial.times = of[i].times;
    for (int i = 0; i < t->n; i++)
        if (t->all[i]->same)
            t->all[i]->trial.times = t->all[i]->same->trial.times;
    t->times.finals = seconds_now() - start;
    qsort(t->all, (size_t)t->n, sizeof(Candidate *), faster);
    t->best = t->n && is_measured(t->all[0]) ? t->all[0] : NULL;
    return status;
}

static SdcStatus
run(SdcTuning *t)
{
    SdcContext *cx = t->mod->cx;
    SdcrtCuda *cuda;
    SdcStatus status = cx->on_gpu ? context_cuda(cx, &cuda) : SDC_OK;
    if (status == SDC_OK)
        status = context_call(cx, tune_list, t);
    if (status == SDC_OK && *sdc_warnings(cx))
        text_set(&t->warnings, sdc_warnings(cx));
    if (status == SDC_OK)
        status = tune_memory(t);
    if (status == SDC_OK)
        status = measure_open(cx, NULL, &t->measure);
    t->times.start = seconds_now() - t->start;
    if (status == SDC_OK)
        status = tune_batch(t, 0);
    if (status == SDC_OK && t->o->search)
        status = tune_search(t);
    if (status == SDC_OK)
        status = finals(t);
    SdcStatus restored = tune_restore(t);
    if (status != SDC_OK)
        return status;
    if (restored != SDC_OK)
        return restored;
    if (!t->best && t->stopped)
        return context_fail(cx, SDC_ERROR_ARGUMENT,
                            "tune: ended before a configuration of '%s' was measured",
                            t->info->name);
    for (int i = 0; !t->best && i < t->n; i++)
        if (t->all[i]->status == SDC_ERROR_MEMORY)
            return context_fail(cx, SDC_ERROR_MEMORY,
                                "tune: out of memory for the configurations of '%s'",
                                t->info->name);
    if (!t->best)
        return context_fail(
            cx, SDC_ERROR_SOURCE, "no configuration of '%s' can be run; the first: %s",
            t->info->name, t->n && t->all[0]->trial.why ? t->all[0]->trial.why : "none");
    t->line = tune_line(t, t->best);
    t->times.total = seconds_now() - t->start;
    t->report = tune_report(&t->times);
    return t->line ? SDC_OK : context_fail(cx, SDC_ERROR_MEMORY, "out of memory");
}

static SdcStatus
check_options(SdcModule *m, const SdcTuneOptions *o, const KernelInfo **info)
{
    if (!o || !o->grid || (o->nargs && (!o->args || !o->bytes)))
        return context_fail(m->cx, SDC_ERROR_ARGUMENT,
                            "tune: grid, arguments and their sizes are needed");
    SdcStatus fine = context_binds(m->cx, "tune", o->bind, o->nbind);
    if (fine != SDC_OK)
        return fine;
    const char *name = o->kernel ? o->kernel : m->nkernel == 1 ? m->kernels[0].name : "";
    *info = module_find_kernel(m, name);
    if (!*info || m->is_tir)
        return module_no_kernel(m, name);
    return context_args(m->cx, *info, o->args, o->nargs);
}

SdcStatus
sdc_tune(SdcModule *m, const SdcTuneOptions *o, SdcTuning **out)
{
    const KernelInfo *info = NULL;
    if (out)
        *out = NULL;
    if (!m)
        return SDC_ERROR_ARGUMENT;
    if (!out)
        return context_fail(m->cx, SDC_ERROR_ARGUMENT,
                            "tune: no place to put the result");
    SdcTuneOptions known;
    if (!OPTIONS_READ(o, known))
        return options_wrong(m->cx, "tune", o->size, sizeof known);
    SdcStatus status = check_options(m, o, &info);
    if (status != SDC_OK)
        return status;
    SdcTuning *t = calloc(1, sizeof *t);
    if (!t || pthread_mutex_init(&t->lock, NULL) != 0) {
        free(t);
        return context_fail(m->cx, SDC_ERROR_MEMORY, "out of memory");
    }
    pthread_cond_init(&t->step, NULL);
    t->mod = m;
    t->info = info;
    t->o = o;
    t->start = seconds_now();
    status = run(t);
    measure_close(t->measure);
    t->measure = NULL;
    tune_memory_done(t);
    t->o = NULL; /* the caller's, who may free it now */
    if (status == SDC_OK)
        *out = t;
    else
        sdc_tuning_destroy(t);
    return status;
}

const SdcTrial *
sdc_tuning_trial(const SdcTuning *t, int i)
{
    return t && i >= 0 && i < t->n ? &t->all[i]->trial : NULL;
}

const char *
sdc_tuning_line(const SdcTuning *t)
{
    return t ? t->line : "";
}

const char *
sdc_tuning_warnings(const SdcTuning *t)
{
    return t && t->warnings ? t->warnings : "";
}

const char *
sdc_tuning_times(const SdcTuning *t)
{
    return t && t->report ? t->report : "";
}

void
sdc_tuning_destroy(SdcTuning *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->n; i++)
        tune_candidate_free(t->all[i]);
    free(t->all);
    for (int i = 0; i < t->ntext; i++)
        free(t->texts[i]);
    free(t->texts);
    free((void *)(uintptr_t)t->configs.key);
    free((void *)(uintptr_t)t->configs.reset);
    free((void *)(uintptr_t)t->configs.restore);
    free(t->line);
    free(t->report);
    free(t->warnings);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->step);
    free(t);
}

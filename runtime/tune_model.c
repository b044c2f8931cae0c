/* The cost model: what a configuration needs and about how long it takes, from its tile
   IR before any pass. That is a millisecond, where compiling takes a hundred.

   It looks at the traffic of tiles between the second-level cache and the
   SMs, at the tensor cores and other arithmetic, at how many programs fit on
   an SM by their shared memory, registers and warps, and at the rounds that
   the grid takes. What cannot fit is not compiled, nor what is guessed to take far longer
   than the best guess. The bound is wide, for the model knows nothing of latencies, banks
   and masks: of the sixteen configurations of tests/gpu/product.tk on an H200 the two
   beyond it were 7.7 and 8.9 times slower than the best. */
#include "runtime/tune.h"

#include "runtime/rt/expr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_REGISTERS = 255,
    OTHER_REGISTERS = 24, /* of a thread at least: addresses, indices, fragments */
    WARPS = 64,
    PROGRAMS = 32,
    CACHE_BYTES = 64,  /* a cycle, where tiles are read more than once, ... */
    MEMORY_BYTES = 16, /* ... and where they come from memory */
    LANES = 128,
    FIRST = 3000, /* cycles until the first program computes, and its last stores */
    NEXT = 1000   /* the same where other programs hide most of it */
};

/* Beyond this many times the best guess nothing is tried. */
static const double far_slower = 2.5;

typedef struct Estimate {
    TuneWork work;
    int processors;
    double guess; /* cycles; 0: not known */
    char *why;
} Estimate;

/* Programs on an SM at a time. */
static double
residents(const TuneWork *w, int64_t registers, int64_t shared)
{
    double n = fmin(PROGRAMS, floor((double)WARPS / w->warps));
    double threads = 32.0 * w->warps;
    n = fmin(n, floor(w->target->registers / ((double)max_i64(registers, 32) * threads)));
    if (shared > 0)
        n = fmin(n, floor((double)w->target->shared_bytes / (double)shared));
    return fmax(n, 1);
}

static void
guess(Estimate *j, int64_t registers, int64_t shared)
{
    const TuneWork *w = &j->work;
    double programs = 1;
    for (int i = 0; i < 3; i++)
        programs *= (double)w->grid[i];
    if (programs <= 0 || w->unknown)
        return;
    double bandwidth = w->product > 0 ? CACHE_BYTES : MEMORY_BYTES;
    double each = fmax(w->bytes / bandwidth, fmax(w->product, w->elements / LANES));
    double rounds = ceil(programs / (double)j->processors);
    double at_once = fmin(residents(w, registers, shared), rounds);
    /* Four schedulers: fewer warps leave some of them idle. */
    double idle = fmax(1, 4 / (at_once * w->warps));
    j->guess = rounds * each * idle + FIRST + (ceil(rounds / at_once) - 1) * NEXT;
}

static void
estimate(const Module *m, void *user)
{
    Estimate *j = user;
    TuneWork *w = &j->work;
    tune_work(w, m->funcs[0]);
    int64_t registers = w->accumulators / 4 / (32 * w->warps) + OTHER_REGISTERS;
    /* A loop of n stages holds the operands of n - 1 iterations to come. */
    int64_t shared = w->operands * max_i64(w->stages - 1, 0);
    int n = 0;
    if (w->accumulators && registers > MAX_REGISTERS)
        n = asprintf(&j->why,
                     "its accumulators alone take %lld registers of a thread, there are "
                     "%d: use more warps or smaller tiles",
                     (long long)registers, MAX_REGISTERS);
    else if (shared > w->target->shared_bytes)
        n = asprintf(&j->why, "its stages take %lld bytes of shared memory, there are %d",
                     (long long)shared, w->target->shared_bytes);
    else
        guess(j, registers, shared);
    if (n < 0)
        j->why = NULL;
}

static SdcStatus
nothing(Session *s, CompileResult *r, void *arg)
{
    (void)s, (void)r, (void)arg;
    return SDC_OK;
}

/* ---------------------------------------------------------------- the grid */

typedef struct Names {
    const SdcTuning *t;
    const Candidate *c;
} Names;

static int
grid_name(void *user, const char *name, size_t n, int64_t *value)
{
    const Names *x = user;
    for (int i = 0; i < x->c->nbind; i++) {
        const char *bind = x->c->bind[i];
        if (strcspn(bind, "=") == n && memcmp(bind, name, n) == 0) {
            *value = strtoll(bind + n + 1, NULL, 10);
            return 1;
        }
    }
    for (int i = 0; i < x->t->o->nargs; i++) {
        const char *arg = x->t->info->params[x->t->info->runtime[i]].name;
        if (x->t->o->args[i].kind == SDC_ARG_INT && strlen(arg) == n &&
            memcmp(arg, name, n) == 0) {
            *value = x->t->o->args[i].v.i;
            return 1;
        }
    }
    return 0;
}

/* Zeros where it holds a name that only the compiled kernel knows. */
static void
read_grid(SdcTuning *t, const Candidate *c, int64_t grid[3])
{
    Names names = {t, c};
    SdcrtExpr code[3] = {0};
    SdcrtExprError e;
    int n =
        sdcrt_expr_parse(t->o->grid, strlen(t->o->grid), grid_name, &names, code, 3, &e);
    for (int i = 0; i < 3; i++) {
        grid[i] = n > 0;
        if (i < n && !sdcrt_expr_eval(&code[i], NULL, &grid[i], &e))
            grid[i] = 0;
    }
}

/* ---------------------------------------------------------------- */

char *
tune_look(SdcTuning *t, Candidate *c, SdcFunction *f)
{
    SdcContext *cx = t->mod->cx;
    TargetInfo target;
    TuneKnown known[SDCRT_MAX_PARAMS];
    if (!cx->on_gpu || !target_info(cx->gpu_target, &target))
        return NULL;
    char *signature = function_signature(f, t->o->args, t->o->nargs);
    if (!signature)
        return NULL; /* compiling will say why */
    Estimate j = {.work = {.target = &target, .known = known}};
    j.processors = sdcrt_cuda_info(atomic_load(&cx->cuda))->processors;
    for (int i = 0; i < t->o->nargs; i++)
        if (t->o->args[i].kind == SDC_ARG_INT)
            known[j.work.nknown++] =
                (TuneKnown){t->info->params[t->info->runtime[i]].name, t->o->args[i].v.i};
    read_grid(t, c, j.work.grid);
    CompileJob job;
    module_job(t->mod, &job);
    job.pre_pass = estimate;
    job.pre_pass_user = &j;
    job.opt = (SdcCompileOptions){.kernel = t->info->name,
                                  .signature = signature,
                                  .bind = (const char *const *)c->bind,
                                  .nbind = c->nbind,
                                  .target = cx->gpu_target,
                                  .emit = SDC_EMIT_TIR};
    compile_call(cx, &job, nothing, NULL);
    free(signature);
    c->guess = j.guess;
    return j.why;
}

char *
tune_prune(const SdcTuning *t, const Candidate *c)
{
    char *why;
    if (c->guess <= 0 || t->best_guess <= 0 || c->guess <= far_slower * t->best_guess)
        return NULL;
    int n = asprintf(&why, "the cost model guesses %.1f times the best one's time",
                     c->guess / t->best_guess);
    return n < 0 ? NULL : why;
}

/* The run tests in the interpreter of tile IR, which shows that the oracle of the random
   tests is right, and that passes keep what kernels mean.

   SDC_TEST_TARGET=interp   the interpreter runs the IR of the front end
   SDC_TEST_TARGET=passes   the same, and some programs of the grid again after each pass
                            of the CPU up to nest, of a GPU up to layout, and of passes
                            in a random order ($SDC_TEST_SEED): memory must be what it is
                            without passes, bit for bit. Bits that docs/ir.md leaves
                            undefined are those that differ between two runs of the
                            interpreter with other choices. */
#include "tests/run/support/oracle.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "tests/interp/interp.h"

static const uint64_t MAX_STEPS = (uint64_t)1 << 33;
enum { MAX_ARGS = 256, PROGRAMS = 3, MAX_SEEN = 64, RANDOM_PASSES = 10 };

static bool
target_is(const char *name)
{
    const char *target = getenv("SDC_TEST_TARGET");
    return target && !strcmp(target, name);
}

bool
oracle_wanted(void)
{
    return target_is("interp") || target_is("passes");
}

/* ---- specializing, as runtime/function.c does */

typedef struct Launch {
    Session *s;
    const OracleJob *job;
    const char *kernel;
    const char *bind[64]; /* of parameters */
    int nbind;
    const SdcArg *args;
    const SdcArg *by_source[MAX_ARGS]; /* the argument of each parameter of the source */
    InterpArg in[MAX_ARGS];
    int nin;
    int64_t grid[3];
    int warps, stages;
    uint64_t seen[MAX_SEEN]; /* IR that was interpreted, by its text */
    int nseen;
} Launch;

static const char *
type_text(Launch *l, const FrontParam *p, const SdcArg *a)
{
    const char *name = sdc_dtype_name((SdcDtype)a->dtype), *hint = "";
    bool whole = (a->kind == SDC_ARG_PTR && (uintptr_t)a->v.ptr % 16 == 0) ||
                 (a->kind == SDC_ARG_INT && a->dtype != SDC_BOOL && a->v.i % 16 == 0);
    if (a->kind == SDC_ARG_DESC) {
        const SdcDesc *d = a->v.ptr;
        Buf b;
        buf_init(&b, &l->s->perm);
        buf_printf(&b, "tensordesc<%s[", sdc_dtype_name(d->dtype));
        for (int i = 0; i < d->rank; i++)
            buf_printf(&b, "%s%d", i ? "," : "", d->block[i]);
        buf_printf(&b, "]%s%s>", a->dtype & SDC_PAD_NAN ? ",nan" : "",
                   a->dtype & SDC_ROUND_TF32 ? ",tf32" : "");
        return b.s;
    }
    if (!p->no_specialize && whole)
        hint = ":16";
    if (a->kind == SDC_ARG_NONE)
        return "None";
    if (!p->no_specialize && a->kind == SDC_ARG_INT && a->dtype != SDC_BOOL &&
        a->v.i == 1 && !p->annotated)
        return "1";
    if (p->annotated && (a->kind != SDC_ARG_PTR) == (*p->annotated != '*'))
        return arena_printf(&l->s->perm, "%.*s%s", (int)strcspn(p->annotated, ":"),
                            p->annotated, hint);
    return arena_printf(&l->s->perm, "%s%s%s", a->kind == SDC_ARG_PTR ? "*" : "", name,
                        hint);
}

/* num_warps and its like are no parameters. */
static void
take_binds(Launch *l, const char *const *bind, int n)
{
    for (int i = 0; i < n; i++) {
        if (!strncmp(bind[i], "num_warps=", 10))
            l->warps = atoi(bind[i] + 10);
        else if (!strncmp(bind[i], "num_stages=", 11))
            l->stages = atoi(bind[i] + 11);
        else if (strncmp(bind[i], "num_ctas=", 9) && strncmp(bind[i], "launch_pdl=", 11))
            l->bind[l->nbind++] = bind[i];
    }
}

static Func *
specialize(Launch *l)
{
    const Source *src;
    const FrontParam *p;
    FrontValue values[MAX_ARGS] = {{0}};
    FrontSpec spec;
    int n, next = 0;
    if (l->job->text) {
        Source *own = arena_new(&l->s->perm, Source);
        *own = (Source){
            .path = l->job->path, .text = l->job->text, .size = strlen(l->job->text)};
        src = own;
    } else {
        src = front_read_disk(l->s, l->job->path);
    }
    FrontModule *fm = src ? front_load(l->s, src, NULL) : NULL;
    if (!fm || !front_params(fm, l->kernel, &p, &n) || n > MAX_ARGS)
        return NULL;
    Buf sig;
    buf_init(&sig, &l->s->perm);
    buf_str(&sig, "");
    for (int i = 0; i < n; i++) {
        if (p[i].is_constexpr)
            continue;
        const SdcArg *a = l->by_source[i] = &l->args[next++];
        buf_printf(&sig, "%s%s=%s", sig.n ? "," : "", p[i].name, type_text(l, &p[i], a));
        values[i].known = a->kind == SDC_ARG_INT || a->kind == SDC_ARG_PTR;
        values[i].i = a->kind == SDC_ARG_INT ? a->v.i : 1;
    }
    if (front_has_heuristics(fm, l->kernel))
        front_values(fm, values, n);
    if (!front_spec_parse(fm, l->kernel, sig.s, l->bind, l->nbind, &spec))
        return NULL;
    spec.num_warps = l->warps ? l->warps : spec.num_warps;
    spec.num_stages = l->stages ? l->stages : spec.num_stages;
    Func *f = front_lower(fm, l->kernel, &spec, module_new(l->s));
    return f && diag_ok(&l->s->diag) && module_verify(f->module) ? f : NULL;
}

/* ---- arguments */

static InterpArg
pointer(Launch *l, void *p)
{
    size_t left = p ? l->job->left(l->job->user, p) : 0;
    if (p && !left)
        ck_abort_msg("a pointer into memory that env does not know: use env_lend");
    return (InterpArg){.data = p, .bytes = left};
}

static InterpArg
argument(Launch *l, const Param *p)
{
    const SdcArg *a = l->by_source[p->source];
    const SdcDesc *d = a->kind == SDC_ARG_DESC ? a->v.ptr : NULL;
    if (d)
        return p->part == 0         ? pointer(l, d->base)
               : p->part <= d->rank ? (InterpArg){.i = d->shape[p->part - 1]}
                                    : (InterpArg){.i = d->strides[p->part - 1 - d->rank]};
    switch (a->kind) {
    case SDC_ARG_PTR: return pointer(l, a->v.ptr);
    case SDC_ARG_FLOAT: return (InterpArg){.f = a->v.f};
    default: return (InterpArg){.i = a->v.i};
    }
}

/* ---- running */

static void
interpret(Launch *l, const Func *f, const InterpArg *in, InterpOptions o,
          const char *when)
{
    char why[512];
    o.max_steps = MAX_STEPS; /* one that waits for another program waits for ever */
    InterpStatus got = interp_run(f, in, l->nin, l->grid, &o, why, sizeof why);
    ck_assert_msg(got == INTERP_OK, "%s%s: %s", l->kernel, when, why);
}

/* Memory of all pointer arguments: a copy, or in place. */
typedef struct Memory {
    InterpArg in[MAX_ARGS];
    unsigned char *copy[MAX_ARGS];
} Memory;

static void
memory_copy(const Launch *l, Memory *m, const Memory *from)
{
    for (int i = 0; i < l->nin; i++) {
        m->in[i] = l->in[i];
        m->copy[i] = NULL;
        if (!l->in[i].data)
            continue;
        for (int k = 0; k < i && !m->copy[i]; k++)
            if (l->in[k].data == l->in[i].data)
                m->in[i] = m->in[k];
        if (m->in[i].data != l->in[i].data)
            continue;
        /* The last bits of an address say how the kernel is specialized. */
        size_t n = l->in[i].bytes, low = (uintptr_t)l->in[i].data % 64;
        m->copy[i] = aligned_alloc(64, (n + low + 127) / 64 * 64);
        ck_assert_ptr_nonnull(m->copy[i]);
        m->in[i].data = m->copy[i] + low;
        memcpy(m->in[i].data, from ? from->in[i].data : l->in[i].data, n);
    }
}

static void
memory_free(const Launch *l, Memory *m)
{
    for (int i = 0; i < l->nin; i++)
        free(m->copy[i]);
}

/* Are all bytes that are defined the same? */
static bool
same(const Launch *l, const Memory *want, const Memory *got, const Memory *other,
     int *arg, size_t *at)
{
    for (int i = 0; i < l->nin; i++) {
        if (!l->in[i].data)
            continue;
        const unsigned char *w = want->in[i].data, *g = got->in[i].data;
        const unsigned char *o = other ? other->in[i].data : w;
        for (size_t k = 0; memcmp(w, g, l->in[i].bytes) && k < l->in[i].bytes; k++)
            if (w[k] != g[k] && w[k] == o[k]) {
                *arg = i;
                *at = k;
                return false;
            }
    }
    return true;
}

/* Was this IR interpreted before? Most passes change little, and both lists begin with
   the same ones. */
static bool
seen(Launch *l, const Func *f)
{
    Buf b;
    uint64_t hash = 14695981039346656037u;
    buf_init(&b, &l->s->tmp);
    module_print(&b, f->module);
    for (size_t i = 0; i < b.n; i++)
        hash = (hash ^ (unsigned char)b.s[i]) * 1099511628211u;
    for (int i = 0; i < l->nseen; i++)
        if (l->seen[i] == hash)
            return true;
    ck_assert_int_lt(l->nseen, MAX_SEEN);
    l->seen[l->nseen++] = hash;
    return false;
}

typedef struct Check {
    const Func *plain;
    Memory before, want; /* memory before the launch, and after some programs of it */
} Check;

static void
check_pass(Launch *l, const Check *c, Func *f, const char *target, const char *pass)
{
    Memory got, other;
    char when[80];
    int arg;
    size_t at;
    snprintf(when, sizeof when, ", %s after %s", target, pass);
    memory_copy(l, &got, &c->before);
    interpret(l, f, got.in, (InterpOptions){.programs = PROGRAMS}, when);
    if (!same(l, &c->want, &got, NULL, &arg, &at)) {
        memory_copy(l, &other, &c->before);
        interpret(l, c->plain, other.in,
                  (InterpOptions){.programs = PROGRAMS, .undefined = 0x5eed}, "");
        if (!same(l, &c->want, &got, &other, &arg, &at))
            ck_abort_msg("%s%s: '%s' differs at byte %zu", l->kernel, when,
                         f->params[arg].name, at);
        memory_free(l, &other);
    }
    memory_free(l, &got);
}

/* Is the code for these arguments? A pass may make some that is for multiples alone. */
static bool
is_meant(const Launch *l, const Func *f)
{
    for (int i = 0; i < l->nin; i++)
        if (f->params[i].multiple > 1 && l->in[i].i % f->params[i].multiple)
            return false;
    return true;
}

/* Passes that change rounding: what comes behind them is compared with what they leave.
   fold-accumulator changes in which order is added, split-dot makes use of the bits that
   tensor cores ignore, which the interpreter does not. (Their own results:
   tests/passes, and every run test of matmuls.) */
static bool
rounds(PassId pass)
{
    return pass == PASS_fold_accumulator || pass == PASS_split_dot;
}

static void
begin_anew(Launch *l, Check *c, PassCx *cx, const PassId *list, int n, bool again)
{
    if (again)
        memory_free(l, &c->want);
    Func *f = specialize(l);
    ck_assert(f && passes_run(f->module, cx, list, n));
    c->plain = f;
    memory_copy(l, &c->want, &c->before);
    interpret(l, f, c->want.in, (InterpOptions){.programs = PROGRAMS}, "");
}

static void
check_list(Launch *l, const Check *c, const char *target, const PassId *list, int n,
           PassId last)
{
    PassCx cx = {.s = l->s, .opt_limit = -1, .verify_each = true};
    Check own = *c;
    ck_assert(target_info(target, &cx.target));
    Func *f = specialize(l);
    ck_assert_ptr_nonnull(f);
    for (int i = 0; i < n && list[i] != last; i++) {
        ck_assert_msg(passes_run(f->module, &cx, &list[i], 1), "%s: %s", l->kernel,
                      pass_info[list[i]].name);
        if (rounds(list[i]) && is_meant(l, f))
            begin_anew(l, &own, &cx, list, i + 1, own.plain != c->plain);
        else if (is_meant(l, f) && !seen(l, f))
            check_pass(l, &own, f, target, pass_info[list[i]].name);
    }
    if (own.plain != c->plain)
        memory_free(l, &own.want);
}

static void
check_target(Launch *l, const Check *c, const char *target, PassId last)
{
    TargetInfo info;
    int n;
    ck_assert(target_info(target, &info));
    const PassId *list = pipeline_for(&info, &n);
    check_list(l, c, target, list, n, last);
}

/* A pass that needs masked accesses brings the one that makes them. */
static void
check_random(Launch *l, const Check *c)
{
    static const PassId any[] = {
        PASS_canon,
        PASS_cse,
        PASS_dce,
        PASS_licm,
        PASS_fold_rand_compare,
        PASS_lower_block_ptr,
        PASS_peel,
        PASS_fuse_forward,
        PASS_scalarize_induction,
        PASS_assume_divisible,
        PASS_fold_bounds,
    };
    static uint64_t state;
    const char *seed = getenv("SDC_TEST_SEED");
    PassId list[2 * RANDOM_PASSES];
    bool masked = false;
    int n = 0;
    if (!state)
        state = 0x9e3779b97f4a7c15u * (1 + (seed ? strtoull(seed, NULL, 10) : 0));
    for (int i = 0; i < RANDOM_PASSES; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        PassId p = any[(state >> 32) % (sizeof any / sizeof *any)];
        if (pass_info[p].needs && !masked)
            list[n++] = PASS_lower_block_ptr;
        masked |= pass_info[p].needs || p == PASS_lower_block_ptr;
        list[n++] = p;
    }
    check_list(l, c, state & 1 ? "cpu" : "sm_90a", list, n, PASS_COUNT);
}

void
oracle_launch(const OracleJob *job)
{
    Launch l = {.s = session_new(0), .job = job, .kernel = job->kernel,
                .args = job->args, .grid = {job->grid.x, job->grid.y, job->grid.z}};
    ck_assert_int_le(job->nargs, MAX_ARGS);
    ck_assert_ptr_nonnull(l.s);
    take_binds(&l, job->bind, job->nbind);
    Func *f = specialize(&l);
    Buf b;
    buf_init(&b, &l.s->perm);
    buf_str(&b, "");
    diag_render(&l.s->diag, &b, false);
    ck_assert_msg(f != NULL, "%s: %s", l.kernel, b.s);
    l.nin = f->body->narg;
    ck_assert_int_le(l.nin, MAX_ARGS);
    for (int i = 0; i < l.nin; i++)
        l.in[i] = argument(&l, &f->params[i]);
    if (target_is("passes")) {
        Check c = {.plain = f};
        memory_copy(&l, &c.before, NULL);
        memory_copy(&l, &c.want, NULL);
        interpret(&l, f, c.want.in, (InterpOptions){.programs = PROGRAMS}, "");
        check_target(&l, &c, "cpu", PASS_lower_cpu);
        check_target(&l, &c, "sm_90a", PASS_layout);
        check_random(&l, &c);
        memory_free(&l, &c.before);
        memory_free(&l, &c.want);
    }
    interpret(&l, f, l.in, (InterpOptions){0}, "");
    session_free(l.s);
}

void
oracle_text(const char *text, const SdcArg *args, const size_t *bytes, int n,
            SdcGrid grid, uint64_t undefined)
{
    InterpArg in[MAX_ARGS];
    char why[512];
    const InterpOptions o = {.undefined = undefined};
    const int64_t size[3] = {grid.x, grid.y, grid.z};
    const Source src = {.path = "text.tir", .text = text, .size = strlen(text)};
    Session *s = session_new(0);
    ck_assert_ptr_nonnull(s);
    Module *m = module_read(s, &src);
    Buf b;
    buf_init(&b, &s->perm);
    buf_str(&b, "");
    diag_render(&s->diag, &b, false);
    ck_assert_msg(m != NULL, "%s", b.s);
    ck_assert_int_le(n, MAX_ARGS);
    for (int i = 0; i < n; i++)
        in[i] = args[i].kind == SDC_ARG_PTR
                    ? (InterpArg){.data = args[i].v.ptr, .bytes = bytes[i]}
                    : (InterpArg){.i = args[i].v.i};
    InterpStatus got = interp_run(m->funcs[0], in, n, size, &o, why, sizeof why);
    ck_assert_msg(got == INTERP_OK, "%s", why);
    session_free(s);
}

/* What a kernel is compared with: other configurations of it, other kernels of the file
   or of another one, with the same arrays and measured in the same rounds; cuBLAS and
   Triton; and files of earlier runs. */
#include "runtime/cli/bench.h"

#include <stdlib.h>
#include <string.h>

static bool
ends_with(const char *text, size_t n, const char *end)
{
    size_t m = strlen(end);
    return n > m && strncmp(text + n - m, end, m) == 0;
}

static bool
same_name(const char *bind, const char *other)
{
    size_t n = strcspn(bind, "=");
    return strncmp(bind, other, n) == 0 && other[n] == '=';
}

static bool
is_parameter(const Run *r, const char *bind)
{
    size_t n = strcspn(bind, "=");
    if (strncmp(bind, "num_", 4) == 0 || strncmp(bind, "launch_pdl", n) == 0 ||
        strncmp(bind, "enable_fp_fusion", n) == 0)
        return true;
    for (int i = 0; i < r->nparam; i++)
        if (strlen(r->params[i].name) == n && strncmp(bind, r->params[i].name, n) == 0)
            return true;
    return false;
}

/* "A=1,B=2" in front of what is bound for all; names that the kernel has not are left
   out of the latter. */
static void
bind_run(Cli *c, Run *v, const Run *r, const char *config)
{
    TextList all = {0};
    while (config && *config) {
        size_t n = strcspn(config, ", ");
        if (n)
            vec_push(&c->arena, &all, arena_strndup(&c->arena, config, n));
        config += n + (config[n] != '\0');
    }
    int own = all.n;
    for (int i = 0; i < r->nbind; i++) {
        bool said = false;
        for (int k = 0; k < own; k++)
            said |= same_name(all.at[k], r->bind[i]);
        if (!said && is_parameter(v, r->bind[i]))
            vec_push(&c->arena, &all, r->bind[i]);
    }
    v->bind = all.at;
    v->nbind = all.n;
}

static Run *
copy_of(const Bench *b, const Run *r)
{
    Run *v = arena_new(&b->c->arena, Run);
    *v = *r;
    v->there = (GpuArrays){0}; /* the arrays are the kernel's */
    v->narg = 0;
    return v;
}

static int
open_kernel(const Bench *b, Run *v, const char *name, const char *what)
{
    bool there = false;
    int n = sdc_module_kernel_count(v->mod);
    for (int i = 0; i < n; i++)
        there |= strcmp(sdc_module_kernel_name(v->mod, i), name) == 0;
    if (!there)
        return cli_error(b->c, EXIT_USAGE, "--vs '%s': %s has no kernel '%s'", what,
                         v->mod == b->series[0].run->mod ? "the file" : "that file",
                         name);
    v->kernel = name;
    return report_status(b->c, v->cx,
                         sdc_module_params(v->mod, name, &v->params, &v->nparam));
}

/* "other.tk", "other.tk:name": the kernel of the same name unless it is said. */
static int
open_file(const Bench *b, Run *v, const char *what)
{
    const char *colon = strrchr(what, ':'), *name = v->kernel;
    const char *path = what;
    if (colon && !strchr(colon, '/') && !strchr(colon, '.')) {
        path = arena_strndup(&b->c->arena, what, (size_t)(colon - what));
        name = colon + 1;
    }
    SdcStatus got = sdc_module_load_file(v->cx, path, &v->mod);
    if (got != SDC_OK)
        return report_status(b->c, v->cx, got);
    if (!(colon && name == colon + 1) && sdc_module_kernel_count(v->mod) == 1)
        name = sdc_module_kernel_name(v->mod, 0);
    return open_kernel(b, v, name, what);
}

static bool
is_source(const char *what)
{
    static const char *const end[] = {".tk", ".py", ".tir"};
    for (int i = 0; i < COUNT_OF(end); i++)
        if (ends_with(what, strcspn(what, ":"), end[i]))
            return true;
    return false;
}

static int
open_one(Bench *b, Run *r, const char *what, Series *s)
{
    Cli *c = b->c;
    s->name = what;
    bool cublas = strcmp(what, "cublas") == 0, triton = strcmp(what, "triton") == 0;
    if ((cublas || triton) && !r->on_gpu)
        return cli_error(c, EXIT_USAGE, "--vs %s needs --target cuda", what);
    if (cublas && c->opt[O_device].number)
        return cli_error(c, EXIT_USAGE, "--vs cublas is measured on device 0 only");
    if (cublas) {
        s->kind = SERIES_CUBLAS;
        return cublas_open(c, &s->cublas);
    }
    if (triton) {
        s->kind = SERIES_TRITON;
        return triton_open(c, r, &s->triton);
    }
    if (is_source(what) || strchr(what, '=')) {
        s->run = copy_of(b, r);
        int status = is_source(what) ? open_file(b, s->run, what) : EXIT_FINE;
        bind_run(c, s->run, r, is_source(what) ? NULL : what);
        return status;
    }
    if (ends_with(what, strlen(what), ".json") || strchr(what, '/') ||
        strchr(what, '.')) {
        s->kind = SERIES_FILE;
        return bench_read(b, what, s);
    }
    s->run = copy_of(b, r);
    int status = open_kernel(b, s->run, what, what);
    if (status != EXIT_FINE)
        cli_note(c, "--vs takes a kernel, NAME=VALUE,..., FILE.tk, FILE.tk:KERNEL, "
                    "FILE.json, cublas or triton");
    bind_run(c, s->run, r, NULL);
    return status;
}

int
series_open(Bench *b, Run *r)
{
    const TextList *vs = &b->c->opt[O_vs].list;
    int status = EXIT_FINE;
    b->series[b->nseries++] = (Series){.name = r->kernel, .run = r};
    if (vs->n >= MAX_SERIES)
        return cli_error(b->c, EXIT_USAGE, "--vs is given %d times, at most %d", vs->n,
                         MAX_SERIES - 1);
    for (int i = 0; i < vs->n && status == EXIT_FINE; i++)
        status = open_one(b, r, vs->at[i], &b->series[b->nseries++]);
    for (int i = 0; i < b->nseries; i++)
        if (!b->series[i].at)
            b->series[i].at = arena_array(&b->c->arena, BenchPoint, b->want + 1);
    return status;
}

/* ---------------------------------------------------------------- a row */

/* The arguments of another kernel, by the names of the first one's. */
static int
take_arguments(Cli *c, Run *v, const Run *r)
{
    v->args = arena_array(&c->arena, RunArg, v->nparam + 1);
    v->values = arena_array(&c->arena, SdcArg, v->nparam + 1);
    v->param_of = arena_array(&c->arena, int, v->nparam + 1);
    v->nvalue = 0;
    for (int i = 0; i < v->nparam; i++) {
        int from = 0;
        if (v->params[i].is_constexpr)
            continue;
        while (from < r->nparam && strcmp(r->params[from].name, v->params[i].name) != 0)
            from++;
        if (from == r->nparam || r->params[from].is_constexpr)
            return cli_error(c, EXIT_INPUT,
                             "--vs: '%s' has an argument '%s', and '%s' has none of that "
                             "name",
                             v->kernel, v->params[i].name, r->kernel);
        v->args[i] = r->args[from];
        v->param_of[v->nvalue] = i;
        v->values[v->nvalue++] = r->args[from].value;
    }
    return EXIT_FINE;
}

static bool
same_grid(SdcGrid a, SdcGrid b)
{
    return a.x == b.x && a.y == b.y && a.z == b.z;
}

static int
prepare_kernel(Bench *b, Series *s, int row)
{
    const Series *first = &b->series[0];
    BenchPoint *p = &s->at[row];
    int status = s == first ? EXIT_FINE : take_arguments(b->c, s->run, first->run);
    if (status == EXIT_FINE)
        status = run_specialize(s->run);
    if (status == EXIT_FINE)
        status = run_grid(s->run);
    if (status != EXIT_FINE)
        return status;
    p->config = run_config(s->run);
    p->code = sdc_kernel_code(s->run->k);
    p->same_code = s != first && p->code == first->at[row].code &&
                   same_grid(s->run->grid, first->run->grid);
    return EXIT_FINE;
}

int
series_prepare(Bench *b, int row)
{
    const Run *r = b->series[0].run;
    int status = EXIT_FINE;
    for (int i = 0; i < b->nseries && status == EXIT_FINE; i++) {
        Series *s = &b->series[i];
        if (!s->at[row].config)
            s->at[row].config = "";
        switch (s->kind) {
        case SERIES_KERNEL: status = prepare_kernel(b, s, row); break;
        case SERIES_CUBLAS: status = cublas_prepare(s->cublas, r); break;
        case SERIES_TRITON:
            status = triton_prepare(s->triton, r, b->row[row].value);
            break;
        case SERIES_FILE: break;
        }
    }
    return status;
}

bool
series_measured(Series *s, SdcMeasured *out)
{
    *out = (SdcMeasured){.launch = run_launch, .user = s->run};
    if (s->kind == SERIES_CUBLAS)
        *out = (SdcMeasured){.launch = cublas_launch, .user = s->cublas};
    if (s->kind == SERIES_TRITON)
        *out = (SdcMeasured){.timed = triton_timed, .user = s->triton};
    return s->kind != SERIES_FILE;
}

int
series_failed(Bench *b, Series *s)
{
    if (s->kind == SERIES_CUBLAS && cublas_failed(s->cublas))
        return cli_error(b->c, EXIT_ENVIRONMENT, "--vs cublas: a product fails");
    if (s->kind == SERIES_TRITON && triton_failed(s->triton))
        return cli_error(b->c, EXIT_ENVIRONMENT,
                         "--vs triton: Python has no Triton with torch, or the kernel "
                         "fails there");
    return EXIT_FINE;
}

void
series_done(Bench *b)
{
    for (int i = 0; i < b->nseries; i++)
        triton_done(b->series[i].triton);
}

/* sdc run: one kernel on arrays from files or made on the spot; prints what it wrote. */
#include "runtime/cli/guard.h"
#include "runtime/cli/run.h"
#include "runtime/cli/summary.h"

#include <stdlib.h>
#include <string.h>

static bool
same(const char *text, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(text, name, n) == 0;
}

/* Integer arguments, then -c NAME=123, then what the kernel was bound to. */
bool
run_lookup(void *user, const char *name, size_t n, int64_t *value)
{
    Run *r = user;
    for (int i = 0; i < r->nparam; i++) {
        const RunArg *a = &r->args[i];
        if (a->name && same(name, n, r->params[i].name) && a->value.kind == SDC_ARG_INT) {
            *value = a->value.v.i;
            return true;
        }
    }
    for (int i = 0; i < r->nbind; i++) {
        const char *text = r->bind[i];
        char *end;
        if (strcspn(text, "=") != n || memcmp(text, name, n) != 0 || !text[n])
            continue;
        *value = strtoll(text + n + 1, &end, 0);
        if (end != text + n + 1 && !*end)
            return true;
    }
    char *copy = arena_strndup(&r->c->arena, name, n);
    return sdc_kernel_constant(r->k, copy, value);
}

static int
find_param(Run *r, const char *text, size_t n, const char *option)
{
    for (int i = 0; i < r->nparam; i++)
        if (same(text, n, r->params[i].name))
            return i;
    cli_error(r->c, EXIT_INPUT, "--%s '%s': '%s' has no parameter '%.*s'", option, text,
              r->kernel, n > 80 ? 80 : (int)n, text);
    Buf names;
    buf_init(&names, &r->c->arena);
    buf_str(&names, "");
    for (int i = 0; i < r->nparam; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", r->params[i].name);
    cli_note(r->c, "its parameters: %s", names.s);
    return -1;
}

/* A descriptor or tuple among the arguments is over the array of this name. */
static bool
is_over(Run *r, const char *name, size_t n)
{
    const TextList *list = &r->c->opt[O_arg].list;
    for (int i = 0; i < list->n; i++) {
        size_t at = strcspn(list->at[i], "=");
        if (list->at[i][at] && spec_names(list->at[i] + at + 1, name, n))
            return true;
    }
    return false;
}

static RunArg *
find_arg(Run *r, const char *name, size_t n)
{
    for (int i = 0; i < r->narg; i++)
        if (r->args[i].name && r->args[i].name_len == n &&
            memcmp(r->args[i].name, name, n) == 0)
            return &r->args[i];
    return NULL;
}

/* The place of an argument; NULL after an error. */
static RunArg *
place_arg(Run *r, const char *text, size_t n)
{
    if (find_arg(r, text, n)) {
        cli_error(r->c, EXIT_USAGE, "argument '%.*s' is given twice", (int)n, text);
        return NULL;
    }
    for (int p = 0; p < r->nparam; p++) {
        if (!same(text, n, r->params[p].name))
            continue;
        if (!r->params[p].is_constexpr)
            return &r->args[p];
        cli_error(r->c, EXIT_USAGE, "'%s' is a constexpr: give it with -c '%s'",
                  r->params[p].name, text);
        return NULL;
    }
    if (is_over(r, text, n))
        return &r->args[r->narg++];
    find_param(r, text, n, "arg");
    return NULL;
}

typedef enum {
    PASS_SCALARS,
    PASS_EXPRESSIONS,
    PASS_ARRAYS,
    PASS_OVER,
    PASS_COUNT
} ArgPass;

static ArgPass
pass_of(const char *spec)
{
    return spec_is_over(spec)     ? PASS_OVER
           : spec_is_scalar(spec) ? PASS_SCALARS
           : spec_is_array(spec)  ? PASS_ARRAYS
                                  : PASS_EXPRESSIONS;
}

static const RunArg *
given_arg(void *user, const char *name, size_t n)
{
    return find_arg(user, name, n);
}

static bool
read_arg(Run *r, const char *spec, RunArg *a, char *why, size_t size, bool *environment)
{
    Expr expr = {.lookup = run_lookup, .user = r};
    *environment = false;
    return spec_is_over(spec) ? spec_read_over(spec, &expr, given_arg, r, a, why, size)
                              : spec_read(spec, &expr, a, why, size, environment);
}

/* Scalars first, so that expressions of them and shapes may use them; last what is over
   other arguments. */
static int
read_args(Run *r, ArgPass pass)
{
    const TextList *list = &r->c->opt[O_arg].list;
    for (int i = 0; i < list->n; i++) {
        const char *text = list->at[i];
        size_t n = strcspn(text, "=");
        if (!text[n])
            return cli_error(r->c, EXIT_USAGE, "-a '%s': NAME=SPEC is needed", text);
        const char *spec = text + n + 1;
        if (pass_of(spec) != pass)
            continue;
        RunArg *a = place_arg(r, text, n);
        if (!a)
            return EXIT_USAGE;
        char why[4600];
        bool environment;
        if (!read_arg(r, spec, a, why, sizeof why, &environment))
            return cli_error(r->c, environment ? EXIT_ENVIRONMENT : EXIT_INPUT,
                             "argument '%.*s': %s", (int)n, text, why);
        a->name = text;
        a->name_len = n;
        guard_name(a->array.data, arena_strndup(&r->c->arena, text, n));
    }
    return EXIT_FINE;
}

/* Parameter i has none, and which others: all are told at once. */
static int
no_value(const Run *r, int i)
{
    const char *name = r->params[i].name;
    Buf others;
    buf_init(&others, &r->c->arena);
    for (int k = i + 1; k < r->nparam; k++)
        if (!r->params[k].is_constexpr && !r->args[k].name)
            buf_printf(&others, "%s%s", others.n ? ", " : "", r->params[k].name);
    int status = cli_error(r->c, EXIT_INPUT,
                           "argument '%s' has no value: -a '%s=ones:fp32[1000]' makes an "
                           "array, -a %s=3 a number", name, name, name);
    if (others.n)
        cli_note(r->c, "also without one: %s", others.s);
    return status;
}

int
run_collect(Run *r)
{
    r->args = arena_array(&r->c->arena, RunArg, r->nparam + r->c->opt[O_arg].list.n + 1);
    r->narg = r->nparam;
    r->values = arena_array(&r->c->arena, SdcArg, r->nparam + 1);
    r->param_of = arena_array(&r->c->arena, int, r->nparam + 1);
    int status = EXIT_FINE;
    for (int pass = 0; pass < PASS_COUNT && status == EXIT_FINE; pass++)
        status = read_args(r, (ArgPass)pass);
    for (int i = 0; i < r->nparam && status == EXIT_FINE; i++) {
        if (r->params[i].is_constexpr)
            continue;
        if (!r->args[i].name)
            status = no_value(r, i);
        r->param_of[r->nvalue] = i;
        r->values[r->nvalue++] = r->args[i].value;
    }
    return status;
}

int
run_specialize(Run *r)
{
    SdcStatus got;
    Progress *p = progress_start("compiling");
    if (r->c->opt[O_signature].given) {
        got = sdc_kernel_get(r->mod, r->kernel, r->c->opt[O_signature].text, r->bind,
                             r->nbind, &r->k);
    } else {
        SdcFunction *fn;
        got = sdc_function_get(r->mod, r->kernel, r->bind, r->nbind, &fn);
        if (got == SDC_OK)
            got = (r->c->opt[O_tune].given ? sdc_specialize_tuned : sdc_specialize)(
                fn, r->values, r->nvalue, &r->k);
    }
    progress_stop(p);
    return report_status(r->c, r->cx, got);
}

/* What an expression of the grid may name. */
static const char *
grid_names(Run *r)
{
    Buf b;
    buf_init(&b, &r->c->arena);
    buf_str(&b, "");
    for (int i = 0; i < r->nparam; i++) {
        const char *name = r->params[i].name;
        int64_t v;
        if (run_lookup(r, name, strlen(name), &v))
            buf_printf(&b, "%s%s", b.n ? ", " : "", name);
    }
    return b.s;
}

int
run_grid(Run *r)
{
    const char *text = r->c->opt[O_grid].text;
    if (!text)
        return cli_error(r->c, EXIT_USAGE, "the grid is missing: -g X[,Y[,Z]], numbers "
                         "or such as -g 'cdiv(n,BLOCK)'");
    int64_t size[3] = {1, 1, 1};
    Expr expr = {.lookup = run_lookup, .user = r};
    if (expr_list(&expr, text, strlen(text), size, 3) < 0) {
        int status = cli_error(r->c, EXIT_INPUT, "grid: %s", expr.error);
        const char *names = grid_names(r);
        if (strstr(expr.error, "is no integer argument") && *names)
            cli_note(r->c, "there are %s", names);
        return status;
    }
    for (int i = 0; i < 3; i++)
        if (size[i] < 0 || size[i] > INT32_MAX)
            return cli_error(r->c, EXIT_INPUT, "grid: %lld is not from 0 to 2147483647",
                             (long long)size[i]);
    if (!size[0] || !size[1] || !size[2])
        cli_note(r->c, "the grid is (%lld, %lld, %lld): no program runs",
                 (long long)size[0], (long long)size[1], (long long)size[2]);
    r->grid = sdc_grid(size[0], size[1], size[2]);
    return EXIT_FINE;
}

/* Values that are no integers are shown as they were given. */
const char *
run_config(Run *r)
{
    static const char *const option[] = {"num_warps", "num_stages"};
    Buf b;
    int64_t v;
    buf_init(&b, &r->c->arena);
    buf_str(&b, "");
    for (int i = 0; i < r->nparam; i++) {
        const char *name = r->params[i].name;
        if (!r->params[i].is_constexpr)
            continue;
        if (sdc_kernel_constant(r->k, name, &v)) {
            buf_printf(&b, "%s%s=%lld", b.n ? " " : "", name, (long long)v);
            continue;
        }
        for (int k = 0; k < r->nbind; k++)
            if (same(r->bind[k], strcspn(r->bind[k], "="), name))
                buf_printf(&b, "%s%s", b.n ? " " : "", r->bind[k]);
    }
    for (int i = 0; i < COUNT_OF(option) && r->on_gpu; i++)
        if (sdc_kernel_constant(r->k, option[i], &v))
            buf_printf(&b, "%s%s=%lld", b.n ? " " : "", option[i], (long long)v);
    return b.s;
}

/* ---------------------------------------------------------------- results */

static void
print_results(Run *r)
{
    int shown = 0;
    for (int i = 0; i < r->nvalue; i++) {
        if (!sdc_kernel_writes(r->k, i))
            continue;
        const RunArg *a = &r->args[r->param_of[i]];
        for (int k = 0; k < r->narg; k++) {
            const RunArg *of = &r->args[k]; /* the argument, or what it is over */
            if (!of->array.data || (of != a && !spec_uses(a, of->value.v.ptr)))
                continue;
            summary_print(stdout, arena_strndup(&r->c->arena, of->name, of->name_len),
                          &of->array);
            shown++;
        }
    }
    if (!shown)
        cli_note(r->c, "'%s' writes no array", r->kernel);
}

/* Is each --out NAME=FILE of an array? Known before anything runs. */
static int
check_outputs(Run *r)
{
    const TextList *out = &r->c->opt[O_out].list;
    for (int i = 0; i < out->n; i++) {
        const char *text = out->at[i];
        size_t n = strcspn(text, "=");
        if (!text[n] || !text[n + 1])
            return cli_error(r->c, EXIT_USAGE, "--out '%s': NAME=FILE.npy is needed",
                             text);
        const RunArg *a = find_arg(r, text, n);
        if (!a && find_param(r, text, n, "out") < 0)
            return EXIT_USAGE;
        if (!a || !a->array.data)
            return cli_error(r->c, EXIT_INPUT, "--out '%s': '%.*s' is no array", text,
                             (int)n, text);
    }
    return EXIT_FINE;
}

static int
write_outputs(Run *r)
{
    const TextList *out = &r->c->opt[O_out].list;
    int status = EXIT_FINE;
    for (int i = 0; i < out->n && status == EXIT_FINE; i++) {
        const char *text = out->at[i];
        size_t n = strcspn(text, "="), size;
        ArenaMark mark = arena_mark(&r->c->arena);
        const char *bytes = npy_bytes(&r->c->arena, &find_arg(r, text, n)->array, &size);
        status = write_file(r->c, text + n + 1, bytes, size);
        arena_reset(&r->c->arena, mark);
    }
    return status;
}

double
run_bytes(const Run *r)
{
    double bytes = 0;
    for (int i = 0; i < r->narg; i++)
        bytes += (double)r->args[i].array.bytes;
    return bytes;
}

SdcStatus
run_launch(void *user, void *stream)
{
    Run *r = user;
    return sdc_kernel_launch(r->k, r->grid, r->values, r->nvalue, stream);
}

/* After the results are printed: a kernel that works in place spoils its input here. */
static int
time_runs(Run *r)
{
    const SdcMeasureOptions o = {.seconds = 1, .warm = 1};
    SdcTimes t;
    Progress *p = progress_start("measuring");
    SdcStatus got = sdc_measure(r->cx, run_launch, r, &o, &t);
    progress_stop(p);
    if (got != SDC_OK)
        return report_status(r->c, r->cx, got);
    int threads = sdc_context_threads(r->cx);
    printf("time: median %.3f us, min %.3f us, %d runs, ", t.median * 1e6, t.min * 1e6,
           t.n);
    if (r->on_gpu)
        printf("%s", r->device.name);
    else
        printf("%d thread%s", threads, threads == 1 ? "" : "s");
    printf(", arrays %.3f GB/s\n", run_bytes(r) / t.median * 1e-9);
    if (*run_config(r))
        printf("configuration: %s\n", run_config(r));
    return EXIT_FINE;
}

/* Copies to the device, and tells the values of the launch where. */
int
run_upload(Run *r)
{
    int status = gpu_upload(r->c, &r->there, r->device.cuda, r->args, r->narg);
    for (int i = 0; i < r->nvalue; i++)
        r->values[i] = r->args[r->param_of[i]].value;
    return status;
}

static int
name_one(const Run *r, int n)
{
    enum { MOST = 12 };
    Buf names;
    buf_init(&names, &r->c->arena);
    for (int i = 0; i < n && i < MOST; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", sdc_module_kernel_name(r->mod, i));
    return cli_error(r->c, EXIT_USAGE, "the file has %d kernels: name one with -k: %s%s",
                     n, names.s, n > MOST ? ", ..." : "");
}

static int
run_open(Run *r)
{
    int n = sdc_module_kernel_count(r->mod);
    r->kernel = r->c->opt[O_kernel].text;
    if (!r->kernel && n == 0) { /* the library knows what there is instead */
        SdcOutput *none = NULL;
        const SdcCompileOptions o = {.emit = SDC_EMIT_TIR};
        SdcStatus got = sdc_compile(r->mod, &o, &none);
        sdc_output_destroy(none);
        return report_status(r->c, r->cx, got);
    }
    if (!r->kernel && n != 1)
        return name_one(r, n);
    if (!r->kernel)
        r->kernel = sdc_module_kernel_name(r->mod, 0);
    r->bind = bindings(r->c, &r->nbind);
    SdcStatus got = SDC_OK;
    const char *path = r->c->command == CMD_tune ? NULL : r->c->opt[O_tune].text, *text;
    if (path && !(text = read_file_text(r->c, path)))
        return EXIT_INPUT;
    if (path && r->c->opt[O_signature].given)
        return cli_error(r->c, EXIT_USAGE, "--tune looks at the arguments, and -s says "
                                           "what they are: one of them");
    if (path)
        got = sdc_module_tune(r->mod, text);
    if (got == SDC_OK)
        got = sdc_module_params(r->mod, r->kernel, &r->params, &r->nparam);
    return got == SDC_OK ? EXIT_FINE : report_status(r->c, r->cx, got);
}

int
run_start(Run *r)
{
    const char *target = r->c->opt[O_target].text;
    if (r->c->opt[O_check].given && (r->c->opt[O_no_check].given ||
                                     (target && strcmp(target, "cpu") != 0)))
        return cli_error(r->c, EXIT_USAGE,
                         "--check is for the target cpu, and not for --no-check");
    r->on_gpu = target && strcmp(target, "cpu") != 0;
    int status = open_module(r->c, &r->cx, &r->mod);
    if (status == EXIT_FINE && r->on_gpu)
        status = report_status(r->c, r->cx, sdc_context_device(r->cx, &r->device));
    return status == EXIT_FINE ? run_open(r) : status;
}

void
run_free_arrays(Run *r)
{
    gpu_arrays_done(&r->there);
    for (int i = 0; i < r->narg; i++)
        array_done(&r->args[i].array);
    r->narg = 0;
}

/* Tells the context what there is to be checked against. */
static int
register_arrays(Run *r)
{
    SdcStatus got = SDC_OK;
    for (int i = 0; i < r->narg && got == SDC_OK && !r->on_gpu; i++) {
        const RunArg *a = &r->args[i];
        const Array *x = &a->array;
        if (!x->data)
            continue;
        const char *name = arena_strndup(&r->c->arena, a->name, a->name_len);
        got = sdc_register_range(r->cx, x->data, x->bytes, name);
        if (got == SDC_OK && x->empty)
            got = sdc_range_unwritten(r->cx, x->data);
        if (got == SDC_OK && x->rank > 0 && x->rank <= 8) /* more have no text */
            got = sdc_range_shape(r->cx, x->data, x->rank, x->shape);
    }
    return got == SDC_OK ? EXIT_FINE : report_status(r->c, r->cx, got);
}

static int
run_module(Run *r)
{
    SdcStatus got;
    int status = run_collect(r);
    if (status == EXIT_FINE)
        status = check_outputs(r);
    if (status == EXIT_FINE)
        status = r->on_gpu ? run_upload(r) : register_arrays(r);
    if (status == EXIT_FINE)
        status = run_specialize(r);
    if (status == EXIT_FINE)
        status = run_grid(r);
    if (status != EXIT_FINE)
        return status;
    const char *before = arena_printf(&r->c->arena, "%s", sdc_warnings(r->cx));
    Progress *p = progress_start("running");
    got = run_launch(r, NULL);
    if (got == SDC_OK && r->on_gpu)
        status = gpu_download(r->c, &r->there, r->args);
    progress_stop(p);
    if (got != SDC_OK || status != EXIT_FINE)
        return got != SDC_OK ? report_status(r->c, r->cx, got) : status;
    if (strcmp(sdc_warnings(r->cx), before) != 0) /* others were told when compiled */
        fputs(sdc_warnings(r->cx), stderr);
    print_results(r);
    status = write_outputs(r);
    if (status == EXIT_FINE && r->c->opt[O_time].given)
        status = time_runs(r);
    else if (status == EXIT_FINE && r->c->opt[O_tune].given)
        printf("configuration: %s\n", run_config(r));
    return status;
}

int
cmd_run(Cli *c)
{
    Run r = {.c = c};
    int status = run_start(&r);
    if (status == EXIT_FINE)
        status = run_module(&r);
    run_free_arrays(&r);
    sdc_context_destroy(r.cx);
    return status;
}

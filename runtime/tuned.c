/* Launches of what the tuner found. The lines of a .tune file for a kernel, this target
   and these types of arguments are read once; a launch takes the configuration whose key
   is nearest, in doublings and halvings, and the grid that follows from it.

   Like specializations, sets of such lines hang in lists that only grow at their heads
   and never change, so that a launch takes no lock: types of the arguments -> set ->
   function with the configuration bound -> specialization. Grids hang at their kernel in
   the same way. */
#include "runtime/rt/expr.h"
#include "runtime/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TUNE_FILE = 1 << 20, MOST = 256 };

/* ---------------------------------------------------------------- the text */

SdcStatus
sdc_module_tune(SdcModule *m, const char *text)
{
    if (!m)
        return SDC_ERROR_ARGUMENT;
    char *copy = strdup(text ? text : "");
    if (!copy)
        return context_fail(m->cx, SDC_ERROR_MEMORY, "out of memory");
    SdcStatus status = context_lock(m->cx, &m->lock);
    if (status != SDC_OK) {
        free(copy);
        return status;
    }
    bool late = m->tune_used;
    if (!late) {
        free(m->tune);
        m->tune = copy;
    }
    pthread_mutex_unlock(&m->lock);
    if (!late)
        return SDC_OK;
    free(copy);
    return context_fail(m->cx, SDC_ERROR_ARGUMENT,
                        "'%s' was launched with a configuration already", m->path);
}

/* The text that was given, or that of PATH.tune; what cannot be read says nothing. */
static const char *
tune_text(SdcModule *m)
{
    if (context_lock(m->cx, &m->lock) != SDC_OK)
        return "";
    m->tune_used = true;
    if (!m->tune) {
        char path[4096];
        int n = snprintf(path, sizeof path, "%s.tune", m->path);
        FILE *f = n > 0 && n < (int)sizeof path ? fopen(path, "re") : NULL;
        char *text = calloc(1, MAX_TUNE_FILE + 1);
        if (f && text && fread(text, 1, MAX_TUNE_FILE + 1, f) > MAX_TUNE_FILE)
            *text = '\0';
        if (f)
            fclose(f);
        m->tune = text;
    }
    pthread_mutex_unlock(&m->lock);
    return m->tune ? m->tune : "";
}

/* ---------------------------------------------------------------- sets */

typedef struct Tuned {
    SdcFunction *f;
    int nkey, arg[SDCRT_MAX_KEY]; /* arguments of a launch */
    double value[SDCRT_MAX_KEY];  /* logarithms */
} Tuned;

struct TunedSet {
    TunedSet *next;
    int n;
    Tuned *at; /* n of them */
    uint64_t types[];
};

void
tuned_free(TunedSet *s)
{
    while (s) {
        TunedSet *next = s->next;
        free(s->at);
        free(s);
        s = next;
    }
}

/* Kind and type alone: which values are special is the specialization's matter. */
static uint64_t
type_key(const SdcArg *a)
{
    const SdcDesc *d = a->kind == SDC_ARG_DESC ? a->v.ptr : NULL;
    return (uint64_t)a->kind << 16 | ((unsigned)a->dtype & 0xff) << 8 |
           (unsigned)(d ? d->rank : 0);
}

static TunedSet *
find_set(SdcFunction *f, const SdcArg *args)
{
    TunedSet *s = atomic_load_explicit(&f->tuned, memory_order_acquire);
    for (; s; s = s->next) {
        int i = 0;
        while (i < f->info->nruntime && s->types[i] == type_key(&args[i]))
            i++;
        if (i == f->info->nruntime)
            return s;
    }
    return NULL;
}

/* "M=4096 N=64" as numbers of arguments and logarithms of their values. */
static void
read_key(const KernelInfo *info, const char *key, Tuned *out)
{
    for (const char *p = key; *p && out->nkey < SDCRT_MAX_KEY;) {
        size_t len = strcspn(p, "=");
        for (int i = 0; i < info->nruntime; i++) {
            const char *name = info->params[info->runtime[i]].name;
            if (strlen(name) == len && memcmp(name, p, len) == 0 && p[len]) {
                double v = strtod(p + len + 1, NULL);
                out->arg[out->nkey] = i;
                out->value[out->nkey++] = log2(v > 1 ? v : 1);
            }
        }
        p += strcspn(p, " ");
        p += strspn(p, " ");
    }
}

/* The function's own bindings, but for those that the configuration says. */
static SdcStatus
bind_config(SdcFunction *f, char *config, SdcFunction **out)
{
    const char *bind[TUNE_MAX_BIND];
    int n = 0;
    for (int i = 0; i < f->nbind && n < TUNE_MAX_BIND; i++)
        bind[n++] = f->bind[i];
    for (char *p = config; *p && n < TUNE_MAX_BIND;) {
        size_t len = strcspn(p, "=") + 1;
        bool said = false;
        for (int i = 0; i < n; i++) /* its own, or what the line said before */
            said |= strncmp(bind[i], p, len) == 0;
        if (!said)
            bind[n++] = p;
        p += strcspn(p, " ");
        while (*p == ' ')
            *p++ = '\0';
    }
    return sdc_function_get(f->mod, f->info->name, bind, n, out);
}

static SdcStatus
make_set(SdcFunction *f, const SdcArg *args, TunedSet **out)
{
    SdcContext *cx = f->mod->cx;
    char types[2048], device[160];
    function_types(f, args, types, sizeof types);
    const char *target = cx->on_gpu ? cx->gpu_target : "cpu";
    TuneEntry *entry = malloc(MOST * sizeof *entry);
    TunedSet *s = calloc(1, sizeof *s + (size_t)f->info->nruntime * sizeof *s->types);
    int n = 0;
    SdcStatus status = SDC_OK;
    if (entry && s) {
        n = tune_entries(tune_text(f->mod), f->info->name,
                         tune_device(cx, device, sizeof device), target, types, entry,
                         MOST);
        s->at = calloc((size_t)n + 1, sizeof *s->at);
    }
    if (!entry || !s || !s->at)
        status = context_fail(cx, SDC_ERROR_MEMORY, "out of memory");
    for (int i = 0; i < n && status == SDC_OK; i++, s->n++) {
        read_key(f->info, entry[i].key, &s->at[i]);
        status = bind_config(f, entry[i].config, &s->at[i].f);
    }
    for (int i = 0; i < f->info->nruntime && status == SDC_OK; i++)
        s->types[i] = type_key(&args[i]);
    free(entry);
    if (status != SDC_OK && s)
        free(s->at);
    if (status != SDC_OK)
        free(s);
    *out = status == SDC_OK ? s : NULL;
    return status;
}

static SdcStatus
add_set(SdcFunction *f, const SdcArg *args, TunedSet **out)
{
    SdcContext *cx = f->mod->cx;
    SdcrtCuda *cuda;
    TunedSet *made;
    SdcStatus status = context_alive(cx);
    if (status == SDC_OK && cx->on_gpu)
        status = context_cuda(cx, &cuda);
    if (status == SDC_OK)
        status = make_set(f, args, &made);
    if (status != SDC_OK)
        return status;
    status = context_lock(cx, &f->mod->lock);
    if (status != SDC_OK) {
        tuned_free(made);
        return status;
    }
    *out = find_set(f, args); /* another thread may have been faster */
    if (!*out) {
        made->next = atomic_load_explicit(&f->tuned, memory_order_relaxed);
        atomic_store_explicit(&f->tuned, made, memory_order_release);
        *out = made;
        made = NULL;
    }
    pthread_mutex_unlock(&f->mod->lock);
    if (made)
        tuned_free(made);
    return SDC_OK;
}

/* The function whose key is nearest; `f` itself when nothing was tuned. */
static SdcFunction *
nearest(const TunedSet *s, SdcFunction *f, const SdcArg *args)
{
    SdcFunction *best = f;
    double least = INFINITY, known[SDCRT_MAX_KEY];
    int arg[SDCRT_MAX_KEY], have = 0;
    for (int i = 0; i < s->n; i++) {
        const Tuned *t = &s->at[i];
        double d = 0;
        for (int k = 0; k < t->nkey; k++) {
            if (k >= have || arg[k] != t->arg[k]) { /* mostly all lines have one key */
                int64_t v = args[t->arg[k]].kind == SDC_ARG_INT ? args[t->arg[k]].v.i : 1;
                known[k] = log2(v > 1 ? (double)v : 1);
                arg[k] = t->arg[k];
                have = k + 1;
            }
            d += fabs(known[k] - t->value[k]);
        }
        if (d < least) {
            least = d;
            best = t->f;
        }
    }
    return best;
}

SdcStatus
sdc_specialize_tuned(SdcFunction *f, const SdcArg *args, int nargs, SdcKernel **out)
{
    if (out)
        *out = NULL;
    if (!f)
        return SDC_ERROR_ARGUMENT;
    SdcStatus fine = context_args(f->mod->cx, f->info, args, nargs);
    if (!out || fine != SDC_OK)
        return sdc_specialize(f, args, nargs, out); /* which says what is wrong */
    TunedSet *s = find_set(f, args);
    SdcStatus status = s ? SDC_OK : add_set(f, args, &s);
    return status == SDC_OK ? sdc_specialize(nearest(s, f, args), args, nargs, out)
                            : status;
}

/* ---------------------------------------------------------------- grids */

struct KernelGrid {
    KernelGrid *next;
    SdcrtExpr axis[3];
    char text[];
};

void
kernel_grids_free(KernelGrid *g)
{
    while (g) {
        KernelGrid *next = g->next;
        free(g);
        g = next;
    }
}

static KernelGrid *
find_grid(SdcKernel *k, const char *text)
{
    KernelGrid *g = atomic_load_explicit(&k->grids, memory_order_acquire);
    while (g && strcmp(g->text, text) != 0)
        g = g->next;
    return g;
}

static SdcStatus
add_grid(SdcKernel *k, const char *text, KernelGrid **out)
{
    SdcContext *cx = k->mod->cx;
    SdcrtExprError e = {0};
    SdcrtMeta *scratch = malloc(sizeof *scratch);
    KernelGrid *made = calloc(1, sizeof *made + strlen(text) + 1);
    SdcStatus status = context_alive(cx);
    if (status == SDC_OK && (!scratch || !made))
        status = context_fail(cx, SDC_ERROR_MEMORY, "out of memory");
    if (status == SDC_OK) {
        *scratch = *k->meta;
        memset(scratch->grid, 0, sizeof scratch->grid);
        if (!meta_grid(scratch, text, &e))
            status = context_fail(
                cx, SDC_ERROR_ARGUMENT, "grid: %s%s%s%s at column %d of '%s'",
                *e.name ? "'" : "", e.name, *e.name ? "' " : "", e.what, e.column, text);
    }
    if (status == SDC_OK)
        status = context_lock(cx, &k->mod->lock);
    if (status == SDC_OK) {
        memcpy(made->axis, scratch->grid, sizeof made->axis);
        strcpy(made->text, text);
        *out = find_grid(k, text);
        if (!*out) {
            made->next = atomic_load_explicit(&k->grids, memory_order_relaxed);
            atomic_store_explicit(&k->grids, made, memory_order_release);
            *out = made;
            made = NULL;
        }
        pthread_mutex_unlock(&k->mod->lock);
    }
    free(scratch);
    free(made);
    return status;
}

SdcStatus
sdc_kernel_grid(SdcKernel *k, const char *text, const SdcArg *args, int nargs,
                SdcGrid *out)
{
    if (!k)
        return SDC_ERROR_ARGUMENT;
    SdcContext *cx = k->mod->cx;
    if (!text || !out)
        return context_fail(cx, SDC_ERROR_ARGUMENT, "grid: %s",
                            text ? "no place to put it" : "no text");
    SdcStatus fine = context_args(cx, k->info, args, nargs);
    if (fine != SDC_OK)
        return fine;
    int64_t value[SDCRT_MAX_ARGUMENTS], size[3] = {1, 1, 1};
    KernelGrid *g = find_grid(k, text);
    SdcStatus status = g ? SDC_OK : add_grid(k, text, &g);
    if (status != SDC_OK)
        return status;
    grid_values(k, args, nargs, value);
    SdcrtExprError e = {0};
    for (int i = 0; i < 3; i++)
        if (g->axis[i].n && !sdcrt_expr_eval(&g->axis[i], value, &size[i], &e))
            return context_fail(cx, SDC_ERROR_ARGUMENT, "grid: %s in '%s'", e.what, text);
    *out = sdc_grid(size[0], size[1], size[2]);
    return SDC_OK;
}

SdcStatus
sdc_launch_tuned(SdcFunction *f, const char *grid, const SdcArg *args, int nargs,
                 void *stream)
{
    SdcKernel *k;
    SdcGrid size;
    SdcStatus status = sdc_specialize_tuned(f, args, nargs, &k);
    if (status == SDC_OK)
        status = sdc_kernel_grid(k, grid, args, nargs, &size);
    return status == SDC_OK ? sdc_kernel_launch(k, size, args, nargs, stream) : status;
}

/* Beyond the listed configurations: from the best one to the neighbours that change one
   of its numbers by one step, as long as one of those is better. */
#include "runtime/tune.h"
#include "ir/base/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A value of the best configuration, changed by one step; false when it has none. */
static bool
neighbour(const char *bind, int step, bool gpu, char *to, size_t size)
{
    size_t n = strcspn(bind, "=");
    char *end;
    long v = bind[n] ? strtol(bind + n + 1, &end, 10) : 0;
    bool warps = strncmp(bind, "num_warps=", 10) == 0;
    bool stages = strncmp(bind, "num_stages=", 11) == 0;
    if (!bind[n] || end == bind + n + 1 || *end || v < 1 || (!gpu && (warps || stages)))
        return false;
    long low = warps || stages ? 1 : 16, high = warps ? 16 : stages ? 6 : 16384;
    bool power = (v & (v - 1)) == 0;
    if (!stages && !power)
        return false;
    long w = stages ? v + step : step > 0 ? 2 * v : v / 2;
    if (w < low || w > high)
        return false;
    snprintf(to, size, "%.*s=%ld", (int)n, bind, w);
    return true;
}

static bool
is_bound(char *const *part, int n, const char *name)
{
    size_t len = strlen(name);
    for (int i = 0; i < n; i++)
        if (strncmp(part[i], name, len) == 0 && part[i][len] == '=')
            return true;
    return false;
}

/* Without @triton.autotune a search begins at what the caller binds and at the defaults
   of other constexprs: adds these to the parts, as "NAME=16" in `text`. */
static int
add_defaults(const SdcTuning *t, char **part, int n, char *text, size_t size)
{
    const KernelInfo *info = t->info;
    for (int i = 0; i < info->nparam && n < TUNE_MAX_BIND - 2; i++) {
        const SdcParam *p = &info->params[i];
        int64_t v;
        if (!p->is_constexpr || !p->has_default || is_bound(part, n, p->name) ||
            !sdc_kernel_constant(t->best->kernel, p->name, &v))
            continue;
        size_t len = (size_t)snprintf(text, size, "%s=%lld", p->name, (long long)v);
        if (len + 1 >= size)
            break;
        part[n++] = text;
        text += len + 1;
        size -= len + 1;
    }
    return n;
}

/* Adds what is one step from the best; false when out of memory. */
static bool
add_neighbours(SdcTuning *t)
{
    const char *config[TUNE_MAX_BIND];
    char text[1024], defaults[1024], changed[200];
    char *part[TUNE_MAX_BIND];
    int n = 0;
    snprintf(text, sizeof text, "%s", t->best->trial.config);
    for (char *p = text; *p && n < TUNE_MAX_BIND - 2; n++) {
        part[n] = p;
        p += strcspn(p, ",");
        if (*p)
            *p++ = '\0';
    }
    if (!t->configs.n && t->best->kernel)
        n = add_defaults(t, part, n, defaults, sizeof defaults);
    bool has_warps = strstr(t->best->trial.config, "num_warps") != NULL;
    bool has_stages = strstr(t->best->trial.config, "num_stages") != NULL;
    char warps[] = "num_warps=4", stages[] = "num_stages=3"; /* what Triton takes */
    if (t->mod->cx->on_gpu && !has_warps)
        part[n++] = warps;
    if (t->mod->cx->on_gpu && !has_stages)
        part[n++] = stages;
    for (int i = 0; i < n; i++)
        for (int step = -1; step <= 1; step += 2) {
            if (!neighbour(part[i], step, t->mod->cx->on_gpu, changed, sizeof changed))
                continue;
            for (int k = 0; k < n; k++)
                config[k] = k == i ? changed : part[k];
            if (!tune_add(t, config, n))
                return false;
        }
    return true;
}

/* From the best to a better neighbour, as long as there is one. */
SdcStatus
tune_search(SdcTuning *t)
{
    SdcStatus status = SDC_OK;
    Candidate *from = NULL;
    while (status == SDC_OK && t->best && t->best != from && !t->stopped) {
        int first = t->n;
        from = t->best;
        if (!add_neighbours(t))
            return context_fail(t->mod->cx, SDC_ERROR_MEMORY, "out of memory");
        status = tune_batch(t, first);
    }
    return status;
}

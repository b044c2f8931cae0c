/* The configurations of a tuning: those that the source lists, without what its own
   functions prune, and what the search adds. */
#include "runtime/tune.h"
#include "ir/base/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CANDIDATES = 4096 };

void
tune_candidate_free(Candidate *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->nbind; i++)
        free(c->bind[i]);
    free(c->bind);
    free((char *)(uintptr_t)c->trial.config);
    free((char *)(uintptr_t)c->trial.why);
    kernel_free(c->kernel);
    free(c);
}

void
tune_give_up(Candidate *c, SdcTried what, const char *why)
{
    c->trial.what = what;
    c->given_up = true;
    free((char *)(uintptr_t)c->trial.why);
    size_t n = strcspn(why, "\n");
    c->trial.why = strndup(why, n);
}

static bool
same_name(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");
    return strcspn(b, "=") == n && memcmp(a, b, n) == 0;
}

/* Adds a configuration, behind what all have in common; one that is there already, or
   beyond the limit, is left out. */
bool
tune_add(SdcTuning *t, const char *const *config, int n)
{
    const SdcTuneOptions *o = t->o;
    char text[1024] = "";
    size_t len = 0;
    for (int i = 0; i < n && len < sizeof text; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i ? "," : "",
                                config[i]);
    if (len >= sizeof text || t->n == MAX_CANDIDATES)
        return true;
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->all[i]->trial.config, text) == 0)
            return true;
    if (t->n == t->cap) {
        int cap = 2 * t->cap + 32;
        Candidate **more = realloc(t->all, (size_t)cap * sizeof(Candidate *));
        if (!more)
            return false;
        t->all = more;
        t->cap = cap;
    }
    Candidate *c = calloc(1, sizeof *c);
    if (!c || !(c->bind = calloc((size_t)(n + o->nbind) + 1, sizeof *c->bind)) ||
        !(c->trial.config = strdup(text))) {
        tune_candidate_free(c);
        return false;
    }
    bool ok = true;
    for (int i = 0; i < n && ok; i++)
        ok = (c->bind[c->nbind++] = strdup(config[i])) != NULL;
    for (int i = 0; i < o->nbind && ok; i++) {
        bool said = false;
        for (int k = 0; k < n; k++)
            said |= same_name(config[k], o->bind[i]);
        if (!said)
            ok = (c->bind[c->nbind++] = strdup(o->bind[i])) != NULL;
    }
    t->all[t->n++] = c;
    return ok;
}

static char *
keep_text(SdcTuning *t, const char *text)
{
    char **more = realloc(t->texts, (size_t)(t->ntext + 1) * sizeof(char *));
    char *copy = strdup(text);
    if (more)
        t->texts = more;
    if (!more || !copy) {
        free(copy);
        return NULL;
    }
    return t->texts[t->ntext++] = copy;
}

/* Names out of the session, that live as long as the tuning: to *out. False: out of
   memory. */
static bool
keep_names(SdcTuning *t, const char *const *names, int n, const char *const **out)
{
    const char **kept = calloc((size_t)n + 1, sizeof *kept);
    *out = kept;
    for (int i = 0; kept && i < n; i++)
        if (!(kept[i] = keep_text(t, names[i])))
            return false;
    return kept != NULL;
}

/* The integers of the launch, for the functions of prune_configs_by. */
static FrontValue *
named_values(SdcTuning *t, Arena *a)
{
    const KernelInfo *info = t->info;
    FrontValue *values = arena_array(a, FrontValue, info->nparam + 1);
    for (int i = 0; i < info->nruntime && i < t->o->nargs; i++)
        if (t->o->args[i].kind == SDC_ARG_INT)
            values[info->runtime[i]] = (FrontValue){true, t->o->args[i].v.i};
    return values;
}

/* Those of the source, with what its own functions prune. */
static bool
add_listed(SdcTuning *t, Session *s, FrontModule *fm, FrontConfigs *f)
{
    const SdcTuneOptions *o = t->o;
    bool *keep = arena_array(&s->tmp, bool, f->n + 1);
    if (!front_prune(fm, t->info->name, named_values(t, &s->tmp), o->bind, o->nbind, f,
                     keep))
        return true; /* the messages decide */
    for (int i = 0; i < f->n; i++) {
        int before = t->n;
        if (!tune_add(t, f->config[i].bind, f->config[i].nbind))
            return false;
        if (!keep[i] && t->n > before) {
            tune_give_up(t->all[before], SDC_TRIED_PRUNED,
                         "by prune_configs_by of the source");
            t->all[before]->ready = true;
        }
    }
    return true;
}

SdcStatus
tune_list(Session *s, void *arg)
{
    SdcTuning *t = arg;
    CompileJob job;
    FrontConfigs f;
    module_job(t->mod, &job);
    Source *src = arena_new(&s->perm, Source);
    *src = job.src;
    FrontModule *fm = front_load(s, src, &job.front);
    if (!fm || !front_configs(fm, t->info->name, &f))
        return SDC_OK; /* the messages decide */
    if (!f.n && !t->o->search) {
        diag_error(&s->diag, (Loc){0},
                   "'%s' has no @triton.autotune: nothing to choose from without a "
                   "search (--search)",
                   t->info->name);
        return SDC_OK;
    }
    bool ok = f.n ? add_listed(t, s, fm, &f) : tune_add(t, t->o->bind, t->o->nbind);
    t->configs = (FrontConfigs){.n = f.n,
                                .nkey = f.nkey,
                                .nreset = f.nreset,
                                .nrestore = f.nrestore};
    ok = ok && keep_names(t, f.key, f.nkey, &t->configs.key) &&
         keep_names(t, f.reset, f.nreset, &t->configs.reset) &&
         keep_names(t, f.restore, f.nrestore, &t->configs.restore);
    return ok ? SDC_OK : SDC_ERROR_MEMORY;
}

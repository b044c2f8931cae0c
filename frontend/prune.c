/* @triton.autotune(prune_configs_by={...}): the author's own functions, run before
   anything is compiled.

       early_config_prune(configs, named_args, **kwargs)   returns those that are left
       perf_model(**named_args_and_config)                 returns a guess of the time
       top_k                                               how many of the best guesses,
                                                           or which share of all

   They run with the Python that functions for constants have; what asks the device or a
   tensor for more is not known here, and then nothing is pruned, with a warning. */
#include "frontend/host.h"
#include "frontend/module.h"
#include "frontend/py.h"
#include "frontend/spec.h"

#include <stdlib.h>
#include <string.h>

typedef struct Prune {
    Sema s;
    FrontModule *m;
    FrontConfigs *configs;
    Val args; /* dict of what the launch has by name */
    Val *all; /* the configurations as objects */
    double *guess;
    bool *keep;
} Prune;

/* "NAME=VALUE", where VALUE is what config.c wrote: a literal. */
static Val
bound_value(Sema *s, const char *bind)
{
    const char *text = bind + strcspn(bind, "=") + 1;
    char *end;
    long long i = strtoll(text, &end, 10);
    if (*text && !*end)
        return val_int(s, i);
    double f = strtod(text, &end);
    if (*text && !*end)
        return val_float(s, f);
    if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0)
        return val_bool(s, *text == 'T');
    if (strcmp(text, "None") == 0)
        return val_none();
    size_t n = strlen(text);
    return n >= 2 && (*text == '\'' || *text == '"')
               ? val_str(s, arena_strndup(s->a, text + 1, n - 2))
               : val_str(s, text);
}

static const char *
bound_name(Sema *s, const char *bind)
{
    return arena_strndup(s->a, bind, strcspn(bind, "="));
}

static bool
is_option(const char *name)
{
    return strcmp(name, "num_warps") == 0 || strcmp(name, "num_stages") == 0 ||
           strcmp(name, "num_ctas") == 0 || strcmp(name, "launch_pdl") == 0 ||
           strcmp(name, "enable_fp_fusion") == 0;
}

/* triton.Config with its number, by which it is found again in what is returned. */
static Val
config_object(Sema *s, const FrontConfig *c, int index)
{
    static const struct {
        const char *name;
        int usual;
    } option[] = {{"num_warps", 4}, {"num_stages", 3}, {"num_ctas", 1}};
    Val *kwargs = arena_array(s->a, Val, c->nbind + 1);
    Val *out = arena_array(s->a, Val, 5);
    int n = 0;
    for (int i = 0; i < c->nbind; i++) {
        const char *name = bound_name(s, c->bind[i]);
        if (!is_option(name))
            kwargs[n++] = host_pair(s, name, bound_value(s, c->bind[i]));
    }
    out[0] = host_pair(s, "kwargs", val_tuple(s, kwargs, n));
    out[1] = host_pair(s, "@index", val_int(s, index));
    for (int k = 0; k < 3; k++) {
        Val v = val_int(s, option[k].usual);
        for (int i = 0; i < c->nbind; i++)
            if (strcmp(bound_name(s, c->bind[i]), option[k].name) == 0)
                v = bound_value(s, c->bind[i]);
        out[2 + k] = host_pair(s, option[k].name, v);
    }
    return val_tuple(s, out, 5);
}

static Val
joined(Sema *s, Val x, Val y)
{
    Val *all = arena_array(s->a, Val, x->n + y->n + 1);
    for (int i = 0; i < x->n + y->n; i++)
        all[i] = i < x->n ? x->u.items[i] : y->u.items[i - x->n];
    return val_tuple(s, all, x->n + y->n);
}

static bool
run_early(Prune *p, Py fn)
{
    int count = p->configs->n;
    Val args[] = {val_tuple(&p->s, p->all, count), p->args};
    Val left = fn->kind == PY_FUNC ? host_call(&p->s, fn->u.func->node, fn->u.func->home,
                                               args, 2, p->args)
                                   : val_error();
    if (left->kind != FE_TUPLE)
        return false;
    memset(p->keep, 0, sizeof *p->keep * (size_t)count);
    for (int i = 0; i < left->n; i++) {
        Val at = host_item(left->u.items[i], "@index");
        if (!at || !val_is_int(at) || at->u.i < 0 || at->u.i >= count)
            return false; /* no configuration of ours: the function made it */
        p->keep[at->u.i] = true;
    }
    return true;
}

/* What the model says, of those that are left. */
static bool
guess_all(Prune *p, Py fn)
{
    bool known = fn->kind == PY_FUNC;
    for (int i = 0; known && i < p->configs->n; i++) {
        const FrontConfig *c = &p->configs->config[i];
        Val *own = arena_array(p->s.a, Val, c->nbind + 1);
        for (int k = 0; k < c->nbind; k++)
            own[k] = host_pair(&p->s, bound_name(&p->s, c->bind[k]),
                               bound_value(&p->s, c->bind[k]));
        /* num_warps and its like, also where the configuration does not say them */
        Val named = joined(&p->s, joined(&p->s, val_tuple(&p->s, own, c->nbind), p->args),
                           p->all[i]);
        Val v = p->keep[i]
                    ? host_call(&p->s, fn->u.func->node, fn->u.func->home, NULL, 0, named)
                    : val_int(&p->s, 0);
        if (!val_is_number(v))
            return false;
        p->guess[i] = val_double(v);
    }
    return known;
}

/* Keeps those that fewer than `most` are guessed to be faster than. */
static void
keep_best(Prune *p, int most)
{
    bool *keep = arena_array(p->s.a, bool, p->configs->n + 1);
    int left = 0;
    for (int i = 0; i < p->configs->n; i++)
        left += p->keep[i];
    if (left <= most)
        return;
    for (int i = 0; i < p->configs->n; i++) {
        int faster = 0;
        for (int k = 0; k < p->configs->n; k++)
            faster += p->keep[k] && (p->guess[k] < p->guess[i] ||
                                     (p->guess[k] <= p->guess[i] && k < i));
        keep[i] = p->keep[i] && faster < most;
    }
    memcpy(p->keep, keep, sizeof *keep * (size_t)p->configs->n);
}

static bool
run_model(Prune *p, Py model, Py top)
{
    if (top && !py_is_number(top))
        return false;
    double k = top ? py_double(top) : 1.0;
    bool share = !top || (top->kind == PY_FLOAT && k <= 1.0);
    int most = (int)(share ? p->configs->n * k : k < 0 ? 0 : k > 1e9 ? 1e9 : k);
    if (!guess_all(p, model))
        return false;
    keep_best(p, most);
    return true;
}

/* Errors of the author's functions are no errors of the tuning. */
static bool
quietly(Prune *p, bool (*run)(Prune *, Py, Py), Py a, Py b)
{
    Diag *d = &p->s.s->diag;
    Diag before = *d;
    bool ok = run(p, a, b) && d->errors == before.errors;
    *d = before;
    if (d->last)
        d->last->next = NULL;
    return ok;
}

static bool
early(Prune *p, Py fn, Py unused)
{
    (void)unused;
    return run_early(p, fn);
}

static Val
launch_args(Sema *s, const Node *fn, const FrontValue *values, const char *const *bind,
            int nbind)
{
    Val *pairs = arena_array(s->a, Val, fn->list.n + nbind + 1);
    int n = 0;
    for (int i = 0; i < nbind; i++)
        pairs[n++] = host_pair(s, bound_name(s, bind[i]), bound_value(s, bind[i]));
    for (int i = 0; i < fn->list.n; i++)
        if (values[i].known)
            pairs[n++] = host_pair(s, fn->list.at[i]->name, val_int(s, values[i].i));
    return val_tuple(s, pairs, n);
}

bool
front_prune(FrontModule *m, const char *kernel, const FrontValue *values,
            const char *const *bind, int nbind, FrontConfigs *configs, bool *keep)
{
    Session *session = module_session(m);
    const Node *fn = module_kernel(m, kernel);
    const Node *d = fn ? find_decorator(fn, "autotune") : NULL;
    Py by = fn ? decorator_value(m, fn, "autotune", "prune_configs_by", -1) : NULL;
    for (int i = 0; i < configs->n; i++)
        keep[i] = true;
    if (!by || by->kind != PY_DICT)
        return true;
    Prune p = {.m = m, .configs = configs, .keep = keep};
    Frame host;
    sema_init(&p.s, m, &host);
    p.args = launch_args(&p.s, fn, values, bind, nbind);
    p.all = arena_array(p.s.a, Val, configs->n + 1);
    p.guess = arena_array(p.s.a, double, configs->n + 1);
    for (int i = 0; i < configs->n; i++)
        p.all[i] = config_object(&p.s, &configs->config[i], i);
    Py first = pydict_name(by->u.dict, "early_config_prune");
    Py model = pydict_name(by->u.dict, "perf_model");
    bool ok = !first || first->kind == PY_NONE || quietly(&p, early, first, NULL);
    if (ok && model && model->kind != PY_NONE)
        ok = quietly(&p, run_model, model, pydict_name(by->u.dict, "top_k"));
    if (ok)
        return true;
    for (int i = 0; i < configs->n; i++)
        keep[i] = true;
    const Node *at = call_argument(d, "prune_configs_by", -1);
    diag_warning(&session->diag, at ? at->loc : d->loc,
                 "these functions ask for more than is known at compile time: no "
                 "configuration is pruned by them");
    return true;
}

/* @triton.autotune(prune_configs_by={...}): the author's own functions, run before
   anything is compiled.

       early_config_prune(configs, named_args, **kwargs)   the configurations that are
   left perf_model(**named_args_and_config)                 a guess of the time top_k how
   many of the best guesses, or which share of all

   They run with the Python that functions for constants have; what asks the device or a
   tensor for more is not known here, and then nothing is pruned, with a warning. */
#include "frontend/host.h"
#include "frontend/module.h"
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
           strcmp(name, "num_ctas") == 0 || strcmp(name, "launch_pdl") == 0;
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

/* A function by what names it in the decorator; NULL when there is none such. */
static const Node *
function_of(Prune *p, const Node *n, FrontModule **home)
{
    *home = p->m;
    if (n->kind == ND_LAMBDA)
        return n;
    Val v = eval_quiet(&p->s, n);
    if (v->kind != FE_FUNC)
        return NULL;
    *home = v->home;
    return v->u.func;
}

static bool
run_early(Prune *p, const Node *n)
{
    FrontModule *home;
    const Node *fn = function_of(p, n, &home);
    int count = p->configs->n;
    Val args[] = {val_tuple(&p->s, p->all, count), p->args};
    Val left = fn ? host_call(&p->s, fn, home, args, 2, p->args) : val_error();
    if (left->kind != FE_TUPLE)
        return false;
    memset(p->keep, 0, sizeof *p->keep * (size_t)count);
    for (int i = 0; i < left->n; i++) {
        Val at = host_item(left->u.items[i], "@index");
        if (!at || !val_is_int(at))
            return false;
        p->keep[at->u.i] = true;
    }
    return true;
}

/* What the model says, of those that are left. */
static bool
guess_all(Prune *p, const Node *n)
{
    FrontModule *home;
    const Node *fn = function_of(p, n, &home);
    for (int i = 0; fn && i < p->configs->n; i++) {
        const FrontConfig *c = &p->configs->config[i];
        Val *own = arena_array(p->s.a, Val, c->nbind + 1);
        for (int k = 0; k < c->nbind; k++)
            own[k] = host_pair(&p->s, bound_name(&p->s, c->bind[k]),
                               bound_value(&p->s, c->bind[k]));
        /* num_warps and its like, also where the configuration does not say them */
        Val named = joined(&p->s, joined(&p->s, val_tuple(&p->s, own, c->nbind), p->args),
                           p->all[i]);
        Val v =
            p->keep[i] ? host_call(&p->s, fn, home, NULL, 0, named) : val_int(&p->s, 0);
        if (!val_is_number(v))
            return false;
        p->guess[i] = val_double(v);
    }
    return fn != NULL;
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
run_model(Prune *p, const Node *model, const Node *top)
{
    Val k = top ? eval_quiet(&p->s, top) : val_float(&p->s, 1.0);
    if (!val_is_number(k))
        return false;
    bool share = k->kind == FE_FLOAT && k->u.f <= 1.0;
    int most = share ? (int)(p->configs->n * k->u.f) : (int)val_double(k);
    if (!guess_all(p, model))
        return false;
    keep_best(p, most);
    return true;
}

/* Errors of the author's functions are no errors of the tuning. */
static bool
quietly(Prune *p, bool (*run)(Prune *, const Node *, const Node *), const Node *a,
        const Node *b)
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
early(Prune *p, const Node *fn, const Node *unused)
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
    const Node *by =
        d && d->kind == ND_CALL ? call_argument(d, "prune_configs_by", -1) : NULL;
    if (by && by->kind == ND_NAME)
        by = module_global_node(m, by->name);
    for (int i = 0; i < configs->n; i++)
        keep[i] = true;
    if (!by || by->kind != ND_DICT)
        return true;
    Prune p = {.m = m, .configs = configs, .keep = keep};
    Frame host;
    sema_init(&p.s, m, &host);
    p.args = launch_args(&p.s, fn, values, bind, nbind);
    p.all = arena_array(p.s.a, Val, configs->n + 1);
    p.guess = arena_array(p.s.a, double, configs->n + 1);
    for (int i = 0; i < configs->n; i++)
        p.all[i] = config_object(&p.s, &configs->config[i], i);
    const Node *first = NULL, *model = NULL, *top = NULL;
    for (int i = 0; i < by->list.n; i++) {
        const char *key = by->list.at[i] ? node_str(by->list.at[i]) : NULL;
        const Node **to = !key                                     ? NULL
                          : strcmp(key, "early_config_prune") == 0 ? &first
                          : strcmp(key, "perf_model") == 0         ? &model
                          : strcmp(key, "top_k") == 0              ? &top
                                                                   : NULL;
        if (to)
            *to = by->more.at[i];
    }
    bool ok = !first || first->kind == ND_CONSTANT || quietly(&p, early, first, NULL);
    if (ok && model && model->kind != ND_CONSTANT)
        ok = quietly(&p, run_model, model, top);
    if (ok)
        return true;
    for (int i = 0; i < configs->n; i++)
        keep[i] = true;
    diag_warning(&session->diag, by->loc,
                 "these functions ask for more than is known at compile time: no "
                 "configuration is pruned by them");
    return true;
}

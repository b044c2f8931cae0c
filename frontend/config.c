/* The configurations of @triton.autotune, found by evaluating as much of the module's
   Python as literals, comprehensions over literals and functions of the file need. A
   launch that says nothing takes the first; the tuner takes them all. */
#include "frontend/module.h"
#include "frontend/spec.h"
#include "ir/base/vec.h"

#include <string.h>

enum { MAX_CONFIG_DEPTH = 16, MAX_CONFIGS = 10000 };

static const char *
last_name(const Node *n)
{
    return n->kind == ND_NAME || n->kind == ND_ATTRIBUTE ? n->name : "";
}

const Node *
find_decorator(const Node *fn, const char *name)
{
    for (int i = 0; i < fn->more.n; i++) {
        const Node *d = fn->more.at[i];
        if (strcmp(last_name(d->kind == ND_CALL ? d->a : d), name) == 0)
            return d;
    }
    return NULL;
}

const Node *
call_argument(const Node *call, const char *keyword, int at)
{
    for (int i = 0; i < call->more.n; i++)
        if (call->more.at[i]->name && strcmp(call->more.at[i]->name, keyword) == 0)
            return call->more.at[i]->a;
    return at >= 0 && at < call->list.n ? call->list.at[at] : NULL;
}

Val
config_value(const Config *c, Name name)
{
    for (int i = 0; i < c->n; i++)
        if (c->names[i] == name)
            return c->values[i];
    return NULL;
}

/* What is looked for: at most so many. */
typedef struct Found {
    Vec(Config) list;
    int most;
    bool failed; /* something could not be evaluated */
} Found;

static bool
stop(Found *f)
{
    f->failed = true;
    return false;
}

/* All of these return false when there is nothing more to look for. */
static bool collect(Sema *s, const Node *n, Found *f, int depth);

static bool
read_config(Sema *s, const Node *call, Found *f)
{
    const Node *dict = call_argument(call, "kwargs", 0);
    Config made = {0}, *c = &made;
    if (!dict || dict->kind != ND_DICT)
        return stop(f);
    c->names = arena_array(s->a, Name, dict->list.n + 1);
    c->values = arena_array(s->a, Val, dict->list.n + 1);
    for (int i = 0; i < dict->list.n; i++) {
        const char *key = dict->list.at[i] ? node_str(dict->list.at[i]) : NULL;
        Val v = key ? eval_quiet(s, dict->more.at[i]) : val_error();
        if (val_is_error(v))
            return stop(f);
        c->names[c->n] = name_of(&s->s->names, key);
        c->values[c->n++] = v;
    }
    static const struct {
        const char *name;
        int at;
    } options[] = {{"num_warps", 1}, {"num_stages", 2}, {"num_ctas", 3}};
    int *out[] = {&c->num_warps, &c->num_stages, &c->num_ctas};
    for (int i = 0; i < 3; i++) {
        const Node *e = call_argument(call, options[i].name, options[i].at);
        Val v = e ? eval_quiet(s, e) : NULL;
        if (v && val_is_int(v))
            *out[i] = (int)v->u.i;
    }
    c->found = true;
    c->loc = call->loc;
    vec_push(s->a, &f->list, made);
    return f->list.n < f->most;
}

/* What a generator runs over, range() too, as a tuple; else an error. */
static Val
elements(Sema *s, Val it)
{
    if (it->kind != FE_RANGE)
        return it;
    for (int i = 0; i < 3; i++)
        if (!val_is_int(it->u.items[i]))
            return val_error();
    int64_t at = (int64_t)it->u.items[0]->u.i, stop_at = (int64_t)it->u.items[1]->u.i;
    int64_t step = (int64_t)it->u.items[2]->u.i, n = 0;
    if (step)
        n = step > 0 ? (stop_at - at + step - 1) / step
                     : (at - stop_at - step - 1) / -step;
    if (!step || n > MAX_CONFIGS)
        return val_error();
    n = n < 0 ? 0 : n;
    Val *list = arena_array(s->a, Val, (int)n + 1);
    for (int64_t i = 0; i < n; i++)
        list[i] = val_int(s, at + i * step);
    return val_tuple(s, list, (int)n);
}

/* The generators from number g on, with every combination that passes their conditions.
 */
static bool
combinations(Sema *s, const Node *n, int g, Found *f, int depth)
{
    if (g == n->list.n)
        return collect(s, n->a, f, depth);
    const Node *gen = n->list.at[g];
    Val it = elements(s, eval_quiet(s, gen->b));
    if (it->kind != FE_TUPLE || depth > MAX_CONFIG_DEPTH)
        return stop(f);
    for (int i = 0; i < it->n; i++) {
        bool pass = true;
        assign_target(s, gen->a, it->u.items[i], false);
        for (int k = 0; k < gen->list.n && pass; k++) {
            Val cond = eval_quiet(s, gen->list.at[k]);
            if (val_is_error(cond))
                return stop(f);
            pass = val_truth(cond);
        }
        if (pass && !combinations(s, n, g + 1, f, depth + 1))
            return false;
    }
    return true;
}

/* triton.Config(...), or a function of the file that returns configurations. */
static bool
of_call(Sema *s, const Node *n, Found *f, int depth)
{
    if (strcmp(last_name(n->a), "Config") == 0)
        return read_config(s, n, f);
    if (n->a->kind != ND_NAME)
        return stop(f);
    const Node *fn = module_host_function(s->frame->module, n->a->name);
    if (!fn || strcmp(fn->name, last_name(n->a)) != 0)
        return stop(f);
    for (int i = 0; i < fn->list.n; i++) {
        const Node *p = fn->list.at[i];
        const Node *arg = call_argument(n, p->name, i);
        if (arg || p->b)
            assign_target(s, &(Node){.kind = ND_NAME, .name = p->name, .loc = p->loc},
                          eval_quiet(s, arg ? arg : p->b), false);
    }
    for (int i = 0; i < fn->body.n; i++) {
        const Node *st = fn->body.at[i];
        if (st->kind == ND_RETURN)
            return st->a ? collect(s, st->a, f, depth + 1) : stop(f);
        if (st->kind == ND_ASSIGN && st->list.n == 1 && st->list.at[0]->kind == ND_NAME) {
            Val v = eval_quiet(s, st->a);
            assign_target(s, st->list.at[0], v, false);
        } else if (st->kind != ND_EXPR && st->kind != ND_PASS) {
            return stop(f);
        }
    }
    return stop(f);
}

static bool
collect(Sema *s, const Node *n, Found *f, int depth)
{
    if (depth > MAX_CONFIG_DEPTH)
        return stop(f);
    switch (n->kind) {
    case ND_LIST:
    case ND_TUPLE:
        for (int i = 0; i < n->list.n; i++)
            if (!collect(s, n->list.at[i], f, depth + 1))
                return false;
        return true;
    case ND_STARRED: return collect(s, n->a, f, depth + 1);
    case ND_COMPREHENSION: return combinations(s, n, 0, f, depth + 1);
    case ND_BINOP: /* two lists */
        return collect(s, n->a, f, depth + 1) && collect(s, n->b, f, depth + 1);
    case ND_CALL: return of_call(s, n, f, depth);
    case ND_NAME: {
        const Node *value = module_global_node(s->frame->module, n->name);
        return value ? collect(s, value, f, depth + 1) : stop(f);
    }
    default: return stop(f);
    }
}

static Found
find_configs(Sema *s, const Node *fn, int most)
{
    Found f = {.most = most};
    const Node *d = find_decorator(fn, "autotune");
    const Node *configs = d && d->kind == ND_CALL ? call_argument(d, "configs", 0) : NULL;
    if (configs)
        collect(s, configs, &f, 0);
    return f;
}

Config
config_first(Sema *s, const Node *fn)
{
    const Node *d = find_decorator(fn, "autotune");
    if (!d || d->kind != ND_CALL)
        return (Config){0};
    Found f = find_configs(s, fn, 1);
    return f.list.n ? f.list.at[0] : (Config){.asked = true, .loc = d->loc};
}

/* ---------------------------------------------------------------- for the tuner */

/* A value as -c takes it; NULL when it takes none such. */
static const char *
value_text(Arena *a, Val v)
{
    switch (v->kind) {
    case FE_INT: return arena_printf(a, "%lld", (long long)v->u.i);
    case FE_BOOL: return v->u.i ? "True" : "False";
    case FE_FLOAT: return arena_printf(a, "%.17g", v->u.f);
    case FE_NONE: return "None";
    case FE_STR: return arena_printf(a, "'%s'", v->u.s);
    case FE_DTYPE: return dtype_info[v->dt].sig;
    default: return NULL;
    }
}

static bool
bindings_of(Session *s, const Config *c, FrontConfig *out)
{
    out->bind = arena_array(&s->perm, const char *, c->n + 3);
    for (int i = 0; i < c->n; i++) {
        const char *text = value_text(&s->perm, c->values[i]);
        if (!text)
            return false;
        out->bind[out->nbind++] = arena_printf(&s->perm, "%s=%s", c->names[i], text);
    }
    static const char *const option[] = {"num_warps", "num_stages", "num_ctas"};
    const int value[] = {c->num_warps, c->num_stages, c->num_ctas};
    for (int i = 0; i < 3; i++)
        if (value[i])
            out->bind[out->nbind++] =
                arena_printf(&s->perm, "%s=%d", option[i], value[i]);
    return true;
}

/* The names in a list of the decorator. */
static const char *const *
names_in(Session *s, const Node *d, const char *keyword, int at, int *n)
{
    const Node *list = call_argument(d, keyword, at);
    int most = list ? list->list.n : 0;
    const char **names = arena_array(&s->perm, const char *, most + 1);
    *n = 0;
    for (int i = 0; i < most; i++) {
        const char *text = node_str(list->list.at[i]);
        if (text)
            names[(*n)++] = text;
    }
    return names;
}

bool
front_configs(FrontModule *m, const char *kernel, FrontConfigs *out)
{
    Session *s = module_session(m);
    const Node *fn = module_kernel(m, kernel);
    *out = (FrontConfigs){0};
    if (!fn)
        return false;
    const Node *d = find_decorator(fn, "autotune");
    if (!d || d->kind != ND_CALL)
        return true;
    Sema sema;
    Frame host;
    sema_init(&sema, m, &host);
    Found f = find_configs(&sema, fn, MAX_CONFIGS);
    out->config = arena_array(&s->perm, FrontConfig, f.list.n + 1);
    for (int i = 0; i < f.list.n && !f.failed; i++)
        f.failed = !bindings_of(s, &f.list.at[i], &out->config[out->n++]);
    if (f.failed) {
        diag_error(&s->diag, d->loc,
                   "these configurations are not literals, so they cannot be evaluated "
                   "here");
        return false;
    }
    out->key = names_in(s, d, "key", 1, &out->nkey);
    out->reset = names_in(s, d, "reset_to_zero", -1, &out->nreset);
    out->restore = names_in(s, d, "restore_value", -1, &out->nrestore);
    return true;
}

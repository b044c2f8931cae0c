/* The configurations of @triton.autotune, as the decorator got them when the file was
   run. A launch that says nothing takes the first; the tuner takes them all. */
#include "frontend/module.h"
#include "frontend/py.h"
#include "frontend/spec.h"
#include "ir/base/vec.h"

#include <string.h>

enum { MAX_CONFIGS = 10000 };

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

/* ---- what the decorator was given when the file ran */

const struct PyVal *
decorator_value(FrontModule *m, const Node *fn, const char *kind, const char *keyword,
                int at)
{
    const PyFunc *f = module_jit_object(m, fn);
    for (const PyDecor *d = f ? f->decor : NULL; d; d = d->next) {
        if (strcmp(d->kind, kind) != 0 || !d->args)
            continue;
        Py v = pydict_name(d->named->u.dict, keyword);
        if (!v && at >= 0 && at < d->args->u.list->n)
            v = d->args->u.list->at[at];
        return v ? py_resolve(module_interp(m), v) : NULL;
    }
    return NULL;
}

/* Configurations, at most so many. */
typedef struct Found {
    Vec(Config) list;
    bool failed; /* something is known to Python alone */
} Found;

static bool
read_config(Sema *s, Py v, Loc loc, Found *f)
{
    bool is = v->kind == PY_OBJECT && v->u.object->type &&
              strcmp(v->u.object->type, "Config") == 0;
    Py dict = is ? pydict_name(v->u.object->attrs, "kwargs") : NULL;
    Config c = {.found = true, .loc = loc};
    if (!is || (dict && dict->kind != PY_DICT) || (dict && dict->u.dict->lost))
        return false;
    int n = dict ? dict->u.dict->n : 0;
    c.names = arena_array(s->a, Name, n + 1);
    c.values = arena_array(s->a, Val, n + 1);
    for (int i = 0; i < n; i++) {
        Py key = dict->u.dict->key[i], x = dict->u.dict->val[i];
        if (key->kind != PY_STR || py_lost(x))
            return false;
        Diag before = s->s->diag;
        Val value = py_to_val(s, x, key->u.str.s, loc);
        diag_rewind(&s->s->diag, &before);
        if (val_is_error(value))
            return false;
        c.names[c.n] = name_of(&s->s->names, key->u.str.s);
        c.values[c.n++] = value;
    }
    static const char *const options[] = {"num_warps", "num_stages", "num_ctas"};
    int *out[] = {&c.num_warps, &c.num_stages, &c.num_ctas};
    for (int i = 0; i < 3; i++) {
        Py x = pydict_name(v->u.object->attrs, options[i]);
        if (x && x->kind == PY_INT)
            *out[i] = (int)x->u.i;
    }
    vec_push(s->a, &f->list, c);
    return true;
}

static Found
find_configs(Sema *s, const Node *fn, int most)
{
    Found f = {0};
    const Node *d = find_decorator(fn, "autotune");
    Py configs = decorator_value(s->m, fn, "autotune", "configs", 0), lost = NULL;
    PyList *l = configs ? py_elements(module_interp(s->m), configs, d->loc, &lost) : NULL;
    f.failed = d && !l;
    for (int i = 0; l && i < l->n && i < most && !f.failed; i++)
        f.failed = !read_config(s, l->at[i], d->loc, &f);
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
names_in(FrontModule *m, const Node *fn, const char *keyword, int at, int *n)
{
    Session *s = module_session(m);
    Py v = decorator_value(m, fn, "autotune", keyword, at), lost = NULL;
    PyList *l = v && v->kind != PY_NONE
                    ? py_elements(module_interp(m), v, (Loc){0}, &lost)
                    : NULL;
    const char **names = arena_array(&s->perm, const char *, (l ? l->n : 0) + 1);
    *n = 0;
    for (int i = 0; l && i < l->n; i++)
        if (l->at[i]->kind == PY_STR)
            names[(*n)++] = arena_strndup(&s->perm, l->at[i]->u.str.s, l->at[i]->u.str.n);
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
    out->key = names_in(m, fn, "key", 1, &out->nkey);
    out->reset = names_in(m, fn, "reset_to_zero", -1, &out->nreset);
    out->restore = names_in(m, fn, "restore_value", -1, &out->nrestore);
    return true;
}

/* The first configuration of @triton.autotune, found by evaluating as much of the
   module's Python as literals, comprehensions over literals and functions of the file
   need. */
#include "frontend/module.h"
#include "frontend/spec.h"

#include <string.h>

enum { MAX_CONFIG_DEPTH = 16 };

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

static bool first_of(Sema *s, const Node *n, Config *c, int depth);

static bool
read_config(Sema *s, const Node *call, Config *c)
{
    const Node *dict = call_argument(call, "kwargs", 0);
    if (!dict || dict->kind != ND_DICT)
        return false;
    c->names = arena_array(s->a, Name, dict->list.n + 1);
    c->values = arena_array(s->a, Val, dict->list.n + 1);
    for (int i = 0; i < dict->list.n; i++) {
        const char *key = dict->list.at[i] ? node_str(dict->list.at[i]) : NULL;
        Val v = key ? eval_quiet(s, dict->more.at[i]) : val_error();
        if (val_is_error(v))
            return false;
        c->names[c->n] = name_of(&s->s->names, key);
        c->values[c->n++] = v;
    }
    static const struct {
        const char *name;
        int at;
    } options[] = { { "num_warps", 1 }, { "num_stages", 2 }, { "num_ctas", 3 } };
    int *out[] = { &c->num_warps, &c->num_stages, &c->num_ctas };
    for (int i = 0; i < 3; i++) {
        const Node *e = call_argument(call, options[i].name, options[i].at);
        Val v = e ? eval_quiet(s, e) : NULL;
        if (v && val_is_int(v))
            *out[i] = (int)v->u.i;
    }
    c->found = true;
    c->loc = call->loc;
    return true;
}

/* Runs the generators from number g on until one combination gives a configuration. */
static bool
first_combination(Sema *s, const Node *n, int g, Config *c, int depth)
{
    if (g == n->list.n)
        return first_of(s, n->a, c, depth);
    const Node *gen = n->list.at[g];
    Val it = eval_quiet(s, gen->b);
    if (it->kind != FE_TUPLE || depth > MAX_CONFIG_DEPTH)
        return false;
    for (int i = 0; i < it->n; i++) {
        bool pass = true;
        assign_target(s, gen->a, it->u.items[i], false);
        for (int k = 0; k < gen->list.n && pass; k++) {
            Val cond = eval_quiet(s, gen->list.at[k]);
            if (val_is_error(cond))
                return false;
            pass = val_truth(cond);
        }
        if (pass && first_combination(s, n, g + 1, c, depth + 1))
            return true;
        if (c->asked)
            return false;
    }
    return false;
}

static bool
first_of_call(Sema *s, const Node *n, Config *c, int depth)
{
    if (strcmp(last_name(n->a), "Config") == 0)
        return read_config(s, n, c);
    if (n->a->kind != ND_NAME)
        return false;
    const Node *fn = module_host_function(s->frame->module, n->a->name);
    if (!fn || strcmp(fn->name, last_name(n->a)) != 0)
        return false;
    for (int i = 0; i < fn->list.n; i++) {
        const Node *p = fn->list.at[i];
        const Node *arg = call_argument(n, p->name, i);
        if (arg || p->b)
            assign_target(s, &(Node){ .kind = ND_NAME, .name = p->name, .loc = p->loc },
                          eval_quiet(s, arg ? arg : p->b), false);
    }
    for (int i = 0; i < fn->body.n; i++) {
        const Node *st = fn->body.at[i];
        if (st->kind == ND_RETURN)
            return st->a && first_of(s, st->a, c, depth + 1);
        if (st->kind == ND_ASSIGN && st->list.n == 1 && st->list.at[0]->kind == ND_NAME) {
            Val v = eval_quiet(s, st->a);
            assign_target(s, st->list.at[0], v, false);
        } else if (st->kind != ND_EXPR && st->kind != ND_PASS) {
            return false;
        }
    }
    return false;
}

static bool
first_of(Sema *s, const Node *n, Config *c, int depth)
{
    if (depth > MAX_CONFIG_DEPTH)
        return false;
    switch (n->kind) {
    case ND_LIST:
    case ND_TUPLE: return n->list.n && first_of(s, n->list.at[0], c, depth + 1);
    case ND_STARRED: return first_of(s, n->a, c, depth + 1);
    case ND_COMPREHENSION: return first_combination(s, n, 0, c, depth + 1);
    case ND_BINOP: return first_of(s, n->a, c, depth + 1);
    case ND_CALL: return first_of_call(s, n, c, depth);
    case ND_NAME: {
        const Node *value = module_global_node(s->frame->module, n->name);
        return value && first_of(s, value, c, depth + 1);
    }
    default: return false;
    }
}

Config
config_first(Sema *s, const Node *fn)
{
    Config c = { 0 };
    const Node *d = find_decorator(fn, "autotune");
    if (!d || d->kind != ND_CALL)
        return c;
    c.loc = d->loc;
    const Node *configs = call_argument(d, "configs", 0);
    if (!configs || !first_of(s, configs, &c, 0))
        c = (Config){ .asked = true, .loc = d->loc };
    return c;
}

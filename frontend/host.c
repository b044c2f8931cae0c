/* Python of the host that runs at compile time: what functions which choose
   configurations use beyond what kernels may. A dict is a tuple of pairs of name and
   value, an object such as a triton.Config a dict that is read by attributes; lists grow
   by `append`. */
#include "frontend/host.h"

#include <string.h>

Val
host_pair(Sema *s, const char *name, Val v)
{
    Val *pair = arena_array(s->a, Val, 2);
    pair[0] = val_str(s, name);
    pair[1] = v;
    return val_tuple(s, pair, 2);
}

Val
host_item(Val dict, const char *name)
{
    for (int i = 0; dict->kind == FE_TUPLE && i < dict->n; i++) {
        Val pair = dict->u.items[i];
        if (pair->kind == FE_TUPLE && pair->n == 2 && pair->u.items[0]->kind == FE_STR &&
            strcmp(pair->u.items[0]->u.s, name) == 0)
            return pair->u.items[1];
    }
    return NULL;
}

Val
host_value(Val dict, Val key)
{
    for (int i = 0; i < dict->n; i++) {
        Val pair = dict->u.items[i];
        if (pair->kind == FE_TUPLE && pair->n == 2 && val_equal(pair->u.items[0], key))
            return pair->u.items[1];
    }
    return NULL;
}

Val
host_dict(Sema *s, const Node *n)
{
    Val *pairs = arena_array(s->a, Val, n->list.n + 1);
    for (int i = 0; i < n->list.n; i++) {
        Val *pair = arena_array(s->a, Val, 2);
        if (!n->list.at[i])
            return sema_error(s, n->loc, "'**' in a dict is not known here");
        pair[0] = eval(s, n->list.at[i]);
        pair[1] = eval(s, n->more.at[i]);
        if (val_is_error(pair[0]) || val_is_error(pair[1]))
            return val_error();
        pairs[i] = val_tuple(s, pair, 2);
    }
    FeVal *d = val_new(s, FE_TUPLE);
    *d = *val_tuple(s, pairs, n->list.n);
    d->is_dict = true;
    return d;
}

/* The first or second halves of pairs. */
static Val
halves(Sema *s, Val dict, int which)
{
    Val *out = arena_array(s->a, Val, dict->n + 1);
    for (int i = 0; i < dict->n; i++) {
        Val pair = dict->u.items[i];
        if (pair->kind != FE_TUPLE || pair->n != 2)
            return val_error();
        out[i] = pair->u.items[which];
    }
    return val_tuple(s, out, dict->n);
}

Val
host_method(Sema *s, const Node *call)
{
    const Node *m = call->a;
    if (m->kind != ND_ATTRIBUTE || call->more.n)
        return NULL;
    const char *name = m->name;
    bool append = strcmp(name, "append") == 0, get = strcmp(name, "get") == 0;
    bool keys = strcmp(name, "keys") == 0, values = strcmp(name, "values") == 0;
    bool items = strcmp(name, "items") == 0;
    if (!append && !get && !keys && !values && !items)
        return NULL;
    Val x = eval(s, m->a);
    if (x->kind != FE_TUPLE)
        return val_is_error(x) ? x : NULL;
    Val arg[2] = {NULL, NULL};
    for (int i = 0; i < call->list.n && i < 2; i++)
        arg[i] = eval(s, call->list.at[i]);
    if (append && arg[0] && m->a->kind == ND_NAME) {
        Val *all = arena_array(s->a, Val, x->n + 1);
        if (x->n)
            memcpy(all, x->u.items, sizeof *all * (size_t)x->n);
        all[x->n] = arg[0];
        scope_set(&s->frame->scope, m->a->name, val_tuple(s, all, x->n + 1), call->loc,
                  false);
        return val_none();
    }
    if (get && arg[0] && (arg[0]->kind == FE_STR || x->is_dict)) {
        Val found = host_value(x, arg[0]);
        return found ? found : arg[1] ? arg[1] : val_none();
    }
    return keys ? halves(s, x, 0) : values ? halves(s, x, 1) : items ? x : NULL;
}

/* Each parameter by place, by name, or by its default; the rest of the names in '**'. */
static bool
bind(Sema *s, const Node *fn, const Val *args, int n, Val named, Scope *scope)
{
    for (int i = 0; i < fn->list.n; i++) {
        const Node *p = fn->list.at[i];
        Val v = p->sub == PK_KWARGS  ? named
                : p->sub != PK_PLAIN ? NULL
                : i < n && !p->named_only ? args[i]
                                     : host_item(named, p->name);
        if (!v && p->b)
            v = eval(s, p->b);
        if (!v || val_is_error(v))
            return false;
        scope_set(scope, p->name, v, p->loc, false);
    }
    return true;
}

Val
host_call(Sema *s, const Node *fn, FrontModule *home, const Val *args, int n, Val named)
{
    Frame f = {.caller = s->frame, .call_loc = fn->loc, .fn = fn, .module = home};
    Val ret = NULL;
    scope_init(&f.scope, s->a);
    s->host++;
    bool ok = bind(s, fn, args, n, named, &f.scope);
    Frame *outer = s->frame;
    s->frame = &f;
    if (ok && fn->kind == ND_LAMBDA)
        ret = eval(s, fn->a);
    else if (ok && exec_list(s, &fn->body, 0, NULL, &ret) == FLOW_NEXT)
        ret = val_none();
    s->frame = outer;
    s->host--;
    return ret ? ret : val_error();
}

/* Functions of files: making them with their decorators, and calling them. */
#include "frontend/py.h"

#include "frontend/syntax.h"

#include <string.h>

/* ---- making functions */

static bool contains_yield(const NodeList *l, int depth);

static bool
yields(const Node *n, int depth)
{
    if (!n || depth > AST_MAX_DEPTH || n->kind == ND_LAMBDA)
        return false;
    if (n->kind == ND_YIELD)
        return true;
    if (n->kind == ND_FUNCTION || n->kind == ND_CLASS || n->kind == ND_COMPREHENSION)
        return false;
    return yields(n->a, depth + 1) || yields(n->b, depth + 1) ||
           yields(n->c, depth + 1) || contains_yield(&n->list, depth + 1) ||
           contains_yield(&n->body, depth + 1) || contains_yield(&n->orelse, depth + 1) ||
           contains_yield(&n->more, depth + 1);
}

static bool
contains_yield(const NodeList *l, int depth)
{
    for (int i = 0; i < l->n; i++)
        if (yields(l->at[i], depth))
            return true;
    return false;
}

static Py
func_value(Interp *in, const PyFunc *f)
{
    PyVal *v = py_new(in, PY_FUNC);
    v->u.func = f;
    return v;
}

static PyFunc *
plain_function(Interp *in, const Node *n)
{
    PyFunc *f = arena_new(in->a, PyFunc);
    PyScope *s = in->frame->scope;
    while (s->is_class && s->up)
        s = s->up;
    *f = (PyFunc){.node = n, .home = module_view(s->m, s)};
    f->is_generator = n->kind == ND_FUNCTION && contains_yield(&n->body, 0);
    Py d = py_list(in, PY_TUPLE, NULL, 0);
    for (int i = 0; i < n->list.n; i++) {
        const Node *e = n->list.at[i]->b;
        py_push(in, d->u.list, e ? py_eval(in, e) : NULL);
    }
    f->defaults = d;
    return f;
}

Py
py_function_of(Interp *in, const Node *n, const FrontModule *home)
{
    PyFrame frame = {.scope = module_scope(home)}, *outer = in->frame;
    in->frame = &frame;
    Py v = func_value(in, plain_function(in, n));
    in->frame = outer;
    return v;
}

/* A jit function has a node of its own, which carries the decorators that it was given by
   calls, too: what compiles it finds all of them there. */
static Py
jit_function(Interp *in, const PyFunc *of, const PyDecor *d, Loc loc)
{
    PyFunc *f = arena_new(in->a, PyFunc);
    PyDecor *own = arena_new(in->a, PyDecor);
    Node *node = arena_new(in->a, Node), *by = (Node *)(uintptr_t)d->call;
    *f = *of;
    *own = *d;
    own->next = of->decor;
    f->decor = own;
    f->jit |= strcmp(d->kind, "jit") == 0;
    *node = *of->node;
    if (!by) {
        by = arena_new(in->a, Node);
        *by =
            (Node){.kind = ND_NAME, .loc = loc, .name = name_of(&in->s->names, d->kind)};
    }
    enum { MAX_DECORATORS = 32 };
    if (node->more.n < MAX_DECORATORS) {
        Node **more = arena_array(in->a, Node *, node->more.n + 1);
        more[0] = by;
        if (node->more.n)
            memcpy(more + 1, node->more.at, sizeof *more * (size_t)node->more.n);
        node->more.at = more;
        node->more.n = node->more.cap = node->more.n + 1;
    }
    f->node = node;
    map_set(&in->jit_nodes, node, f);
    return func_value(in, f);
}

Py
py_renamed(Interp *in, Py fn, Name name)
{
    PyFunc *f = arena_new(in->a, PyFunc);
    Node *node = arena_new(in->a, Node);
    *f = *fn->u.func;
    *node = *f->node;
    node->name = name;
    f->node = node;
    map_set(&in->jit_nodes, node, f);
    return func_value(in, f);
}

const char *
py_decorator_name(const Node *d)
{
    if (d->kind == ND_CALL)
        d = d->a;
    return d->kind == ND_NAME || d->kind == ND_ATTRIBUTE ? d->name : "";
}

/* Decorators that leave a function what it is, for us. */
static bool
keeps_function(const char *name)
{
    static const char *const names[] = {
        "constexpr",      "constexpr_function", "lru_cache",   "cache",    "wraps",
        "contextmanager", "staticmethod",       "classmethod", "property", "no_grad",
        "custom_op",      "overload",           "override",    "builtin",
        "must_use_result",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool
is_of_other(const char *path)
{
    static const char *const tops[] = {"numba",  "torch",   "jax",      "cupy",
                                       "taichi", "cutlass", "tilelang", "gluon",
                                       "triton.experimental"};
    for (size_t i = 0; path && i < sizeof tops / sizeof *tops; i++)
        if (strncmp(path, tops[i], strlen(tops[i])) == 0)
            return true;
    return false;
}

/* Some other package's jit: by what it is, or by the import that it is written with. */
static bool
is_foreign(Interp *in, const Node *d, Py by)
{
    const Node *e = d->kind == ND_CALL ? d->a : d;
    while (e->kind == ND_ATTRIBUTE)
        e = e->a;
    Py top = e->kind == ND_NAME ? py_name(in, e->name) : NULL;
    const PyUnknown *u = by->kind == PY_UNKNOWN ? by->u.unknown : NULL;
    bool import = top && top->kind == PY_IMPORT;
    const char *path = import ? top->u.import->what.path : NULL;
    return is_of_other(path) || (u && is_of_other(u->key));
}

/* What a decorator makes of it. A wrapper of the host around a kernel is not what a
   launch of sdc needs: the kernel stays. */
static Py
decorate(Interp *in, const Node *d, Py by, Py v)
{
    bool jit = v->kind == PY_FUNC && v->u.func->jit;
    const char *name = py_decorator_name(d);
    if (by->kind != PY_DECORATOR && by->kind != PY_BUILTIN && keeps_function(name))
        return v;
    if (by->kind == PY_UNKNOWN || by->kind == PY_FE || by->kind == PY_MODULE) {
        if (jit)
            return v;
        if (strcmp(name, "jit") == 0 && v->kind == PY_FUNC && !is_foreign(in, d, by))
            return jit_function(in, v->u.func, &(PyDecor){"jit", d, NULL, NULL, NULL},
                                d->loc);
    }
    Py arg[1] = {v};
    PyCall c = {
        .at = arg, .n = 1, .named = py_dict(in), .node = d, .loc = d->loc, .name = name};
    Py made = py_call(in, by, &c);
    if (jit && !(made->kind == PY_FUNC && made->u.func->jit)) {
        if (py_raises(in) && strcmp(in->raised.type, PY_LIMIT) != 0)
            in->raised.type = NULL;
        return v;
    }
    return made;
}

Py
py_make_function(Interp *in, const Node *n)
{
    Vec(Py) by = {0};
    for (int i = 0; i < n->more.n && n->kind == ND_FUNCTION; i++) {
        Py d = py_eval(in, n->more.at[i]);
        if (py_raises(in) && strcmp(in->raised.type, PY_LIMIT) != 0)
            in->raised.type = NULL; /* a name of a host that is not here */
        vec_push(in->a, &by, d);
    }
    Py v = func_value(in, plain_function(in, n));
    for (int i = by.n - 1; i >= 0; i--)
        v = decorate(in, n->more.at[i], by.at[i], v);
    return v;
}

/* ---- calls */

static int
param_of(const Node *fn, const char *name)
{
    for (int i = 0; i < fn->list.n; i++)
        if (fn->list.at[i]->sub == PK_PLAIN && strcmp(fn->list.at[i]->name, name) == 0)
            return i;
    return -1;
}

static bool
bind_params(Interp *in, const PyFunc *f, const PyCall *c, PyScope *s)
{
    const Node *fn = f->node;
    int at = 0, np = fn->list.n;
    Py *bound = arena_array(in->a, Py, np + 1);
    Py rest = NULL, named = NULL;
    for (int i = 0; i < np; i++) {
        const Node *p = fn->list.at[i];
        if (p->sub == PK_ARGS)
            bound[i] = rest = py_list(in, PY_TUPLE, at < c->n ? c->at + at : NULL,
                                      at < c->n ? c->n - at : 0);
        else if (p->sub == PK_KWARGS)
            bound[i] = named = py_dict(in);
        else if (p->sub == PK_PLAIN && !p->named_only && !rest && at < c->n)
            bound[i] = c->at[at++];
    }
    const PyDict *d = c->named->u.dict;
    bool ok = rest || at >= c->n;
    for (int i = 0; i < d->n && ok; i++) {
        int p = d->key[i]->kind == PY_STR ? param_of(fn, d->key[i]->u.str.s) : -1;
        if (p >= 0 && !bound[p])
            bound[p] = d->val[i];
        else if (p < 0 && named)
            pydict_set(in, named->u.dict, d->key[i], d->val[i]);
        else
            ok = false;
    }
    for (int i = 0; i < np && ok; i++) {
        const Node *p = fn->list.at[i];
        if (p->sub == PK_BARE_STAR || p->sub == PK_SLASH)
            continue;
        Py v = bound[i] ? bound[i] : f->defaults->u.list->at[i];
        ok = v != NULL;
        if (ok)
            pyscope_set(in, s, p->name, v, p->loc, false);
    }
    return ok;
}

static Py
run_function(Interp *in, const PyFunc *f, const PyCall *c)
{
    const Node *fn = f->node;
    PyScope *up = module_scope(f->home);
    PyFrame frame = {.scope = pyscope_new(in, up->m, up),
                     .func = f,
                     .self = c->n ? c->at[0] : NULL};
    if (in->calls >= PY_MAX_CALLS) {
        in->raised = (PyRaise){PY_LIMIT, c->loc};
        return py_unknown(in, c->loc, NULL, "calls are nested deeper than %d",
                          PY_MAX_CALLS);
    }
    if (c->named->u.dict->lost)
        return c->named->u.dict->lost;
    if (!bind_params(in, f, c, frame.scope))
        return py_raise(in, c->loc, "TypeError", "the arguments do not fit");
    PyFrame *outer = in->frame;
    Py v;
    in->frame = &frame;
    in->calls++;
    if (fn->kind == ND_LAMBDA) {
        v = py_eval(in, fn->a);
    } else {
        PyFlow flow = py_exec(in, &fn->body);
        v = flow == PYFLOW_RETURN && frame.ret ? frame.ret : in->none;
        if (f->is_generator)
            v = py_list(in, PY_LIST, frame.yielded.at, frame.yielded.n);
        if (frame.pending && !py_same(frame.pending, v))
            v = py_either(in, frame.pending_why, frame.pending, v, c->loc, c->loc);
    }
    in->calls--;
    in->frame = outer;
    return v;
}

/* A function of which nothing is known may change what it is given, and may raise; one of
   Python's library raises no ImportError. */
Py
py_call_unknown(Interp *in, Py fn, const PyCall *c)
{
    const char *key = c->node ? py_source(in, c->node) : NULL;
    Py why = fn->kind == PY_UNKNOWN && !key
                 ? fn
                 : py_unknown(in, c->loc, key,
                              "what this call gives is known to Python alone");
    for (int i = 0; i < c->n; i++) {
        Py x = c->at[i];
        if (x->kind == PY_LIST) {
            pylist_touch(in, x->u.list);
            x->u.list->lost = why;
        } else if (x->kind == PY_DICT) {
            pydict_touch(in, x->u.dict);
            x->u.dict->lost = why;
        }
    }
    bool host = fn->kind == PY_UNKNOWN && fn->u.unknown->key &&
                py_has_module(fn->u.unknown->key) > 0;
    if (in->try_ && !in->try_->maybe && (in->try_->catches_other || !host))
        in->try_->maybe = why;
    return why;
}

static Py
apply_decorator(Interp *in, Py by, const PyCall *c)
{
    Py f = c->n ? py_resolve(in, c->at[0]) : NULL;
    if (!f || f->kind != PY_FUNC || f->u.func->node->kind != ND_FUNCTION)
        return f ? f : in->none;
    return jit_function(in, f->u.func, by->u.decor, c->loc);
}

/* ---- all together */

Py
py_call(Interp *in, Py fn, PyCall *c)
{
    if (py_raises(in))
        return in->none;
    if (in->depth >= PY_MAX_DEPTH) {
        in->raised = (PyRaise){PY_LIMIT, c->loc};
        return in->none;
    }
    fn = py_resolve(in, fn);
    in->depth++;
    Py v;
    switch (fn->kind) {
    case PY_BUILTIN: {
        PyCall with = *c;
        with.self = fn->u.builtin.self;
        with.name = fn->u.builtin.name;
        for (int i = 0; i < with.n; i++)
            with.at[i] = py_resolve(in, with.at[i]);
        v = c->named->u.dict->lost ? c->named->u.dict->lost : fn->u.builtin.fn(in, &with);
        break;
    }
    case PY_FUNC:
        v = fn->u.func->jit
                ? py_call_unknown(in, py_unknown(in, c->loc, NULL, "a kernel"), c)
                : run_function(in, fn->u.func, c);
        break;
    case PY_CLASS: v = py_instantiate(in, fn, c); break;
    case PY_DECORATOR: v = apply_decorator(in, fn, c); break;
    case PY_FE: v = py_fe_call(in, fn, c); break;
    case PY_OBJECT: {
        Py call = py_object_attribute(in, fn, name_of(&in->s->names, "__call__"));
        v = call ? py_call(in, call, c) : py_call_unknown(in, fn, c);
        break;
    }
    default: v = py_call_unknown(in, fn, c); break;
    }
    in->depth--;
    return v;
}

Py
py_eval_call(Interp *in, const Node *n)
{
    Py fn = py_eval(in, n->a), lost = NULL;
    Vec(Py) at = {0};
    PyCall c = {.named = py_dict(in), .node = n, .loc = n->loc};
    for (int i = 0; i < n->list.n && !py_raises(in); i++) {
        const Node *e = n->list.at[i];
        Py v = py_eval(in, e->kind == ND_STARRED ? e->a : e);
        if (e->kind != ND_STARRED) {
            vec_push(in->a, &at, v);
            continue;
        }
        PyList *l = py_raises(in) ? NULL : py_elements(in, v, e->loc, &lost);
        for (int k = 0; l && k < l->n; k++)
            vec_push(in->a, &at, l->at[k]);
    }
    for (int i = 0; i < n->more.n && !py_raises(in); i++) {
        const Node *k = n->more.at[i];
        Py v = py_eval(in, k->a);
        if (k->name) {
            pydict_set(in, c.named->u.dict, py_str(in, k->name), v);
            continue;
        }
        if (v->kind != PY_DICT || v->u.dict->lost)
            lost = v->kind == PY_DICT ? v->u.dict->lost
                                      : py_unknown(in, k->loc, NULL, "'**' of no dict");
        for (int e = 0; v->kind == PY_DICT && e < v->u.dict->n; e++)
            pydict_set(in, c.named->u.dict, v->u.dict->key[e], v->u.dict->val[e]);
    }
    c.at = at.at;
    c.n = at.n;
    if (py_raises(in))
        return fn;
    if (lost)
        return fn->kind == PY_DECORATOR || fn->kind == PY_BUILTIN
                   ? py_call(in, fn, &c)
                   : py_call_unknown(in, lost, &c);
    return py_call(in, fn, &c);
}

/* Classes of files and their objects: attributes, methods, data classes, enumerations. */
#include "frontend/py.h"
#include "ir/base/util.h"

#include <ctype.h>
#include <string.h>

static Py bound_method(Interp *in, const PyCall *c);

static Py
class_find(Interp *in, const PyClass *k, Name name, int depth)
{
    PyBind *b = pyscope_find(k->body, name);
    if (b)
        return b->val;
    for (int i = 0; i < k->bases->u.list->n && depth < PY_MAX_ABOVE; i++) {
        if (!py_step(in, 1))
            break;
        Py base = k->bases->u.list->at[i];
        Py v = base->kind == PY_CLASS ? class_find(in, base->u.class_, name, depth + 1)
                                      : NULL;
        if (v)
            return v;
    }
    return NULL;
}

Py
py_class_find(Interp *in, const PyClass *k, Name name)
{
    return class_find(in, k, name, 0);
}

static Py
py_object(Interp *in, Py class_, const char *type)
{
    PyVal *v = py_new(in, PY_OBJECT);
    v->u.object = arena_new(in->a, PyObject);
    v->u.object->class_ = class_;
    v->u.object->type = type;
    v->u.object->attrs = py_dict(in)->u.dict;
    return v;
}

Py
py_object_of(Interp *in, const char *type)
{
    return py_object(in, NULL, type);
}

static Py
bind_self(Interp *in, Py fn, Py self)
{
    Py pair[2] = {fn, self};
    return py_builtin(in, "method", bound_method, py_list(in, PY_TUPLE, pair, 2));
}

static Py
bound_method(Interp *in, const PyCall *c)
{
    Py fn = c->self->u.list->at[0];
    PyCall all = *c;
    all.self = NULL;
    all.n = c->n + 1;
    all.at = arena_array(in->a, Py, all.n);
    all.at[0] = c->self->u.list->at[1];
    if (c->n)
        memcpy(all.at + 1, c->at, sizeof *all.at * (size_t)c->n);
    return py_call(in, fn, &all);
}

/* Enum members are objects with a name and a value. */
static Py
enum_member(Interp *in, Py class_, Name name, Py value)
{
    Py v = py_object(in, class_, "enum");
    pydict_set(in, v->u.object->attrs, py_str(in, "name"), py_str(in, name));
    pydict_set(in, v->u.object->attrs, py_str(in, "value"), value);
    return v;
}

Py
py_plain(Py v)
{
    const PyObject *o = v->kind == PY_OBJECT ? v->u.object : NULL;
    const PyClass *k = o && o->class_ ? o->class_->u.class_ : NULL;
    bool is = k && k->is_enum && (k->is_int || k->is_str);
    Py value = is ? pydict_name(o->attrs, "value") : NULL;
    return value ? value : v;
}

Py
py_unwrapped_plain(Py v)
{
    return py_plain(py_unwrapped(v));
}

Py
py_class_attribute(Interp *in, Py class_, Name name)
{
    Py v = class_find(in, class_->u.class_, name, 0);
    const Node *fn = v && v->kind == PY_FUNC ? v->u.func->node : NULL;
    for (int i = 0; fn && i < fn->more.n; i++)
        if (strcmp(py_decorator_name(fn->more.at[i]), "classmethod") == 0)
            return bind_self(in, v, class_);
    return v;
}

/* What a class has, as an attribute of its object x. */
static Py
of_object(Interp *in, Py v, Py x)
{
    if (!v || v->kind != PY_FUNC || v->u.func->jit)
        return v;
    const Node *fn = v->u.func->node;
    for (int i = 0; i < fn->more.n; i++) {
        const char *d = py_decorator_name(fn->more.at[i]);
        if (strcmp(d, "staticmethod") == 0)
            return v;
        if (strcmp(d, "property") == 0) {
            PyCall c = {.at = &x, .n = 1, .named = py_dict(in), .loc = fn->loc};
            return py_call(in, v, &c);
        }
        if (strcmp(d, "classmethod") == 0)
            return bind_self(in, v, x->kind == PY_CLASS ? x : x->u.object->class_);
    }
    return bind_self(in, v, x);
}

static Py
do_nothing(Interp *in, const PyCall *c)
{
    (void)c;
    return in->none;
}

/* super().name: what the classes above that of the function have. */
static Py
above_attribute(Interp *in, Py x, Name name)
{
    const PyDict *d = x->u.object->attrs;
    const PyClass *k = pydict_name(d, "class")->u.class_;
    Py v = NULL;
    for (int depth = 0; !v && k && depth < PY_MAX_ABOVE; depth++) {
        const PyList *l = k->bases->u.list;
        Py base = l->n ? l->at[0] : NULL;
        k = base && base->kind == PY_CLASS ? base->u.class_ : NULL;
        PyBind *b = k ? pyscope_find(k->body, name) : NULL;
        v = b ? b->val : NULL;
        if (base && !k && !(base->kind == PY_BUILTIN &&
                            strcmp(base->u.builtin.name, "object") == 0))
            return NULL;
    }
    if (!v && !k && strcmp(name, "__init__") == 0)
        return py_builtin(in, "__init__", do_nothing, NULL);
    return of_object(in, v, pydict_name(d, "self"));
}

Py
py_super(Interp *in, const PyCall *c)
{
    const PyFrame *f = in->frame;
    Py x = f->self, owner = NULL;
    Py k = !x ? NULL : x->kind == PY_OBJECT ? x->u.object->class_ : x;
    for (int depth = 0; k && k->kind == PY_CLASS && depth < PY_MAX_ABOVE; depth++) {
        const PyClass *class_ = k->u.class_;
        for (int i = 0; f->func && i < class_->body->index.n && !owner; i++) {
            Py v = ((const PyBind *)class_->body->index.entries[i].val)->val;
            bool is = v && v->kind == PY_FUNC && v->u.func->node == f->func->node;
            owner = is ? k : NULL;
        }
        if (class_->bases->u.list->n > 1)
            break; /* Python's order of many is not known here */
        if (owner && !c->n) {
            Py v = py_object_of(in, "super");
            pydict_set(in, v->u.object->attrs, py_str(in, "class"), owner);
            pydict_set(in, v->u.object->attrs, py_str(in, "self"), x);
            return v;
        }
        k = class_->bases->u.list->n ? class_->bases->u.list->at[0] : NULL;
    }
    return py_unknown(in, c->loc, NULL, "what super() finds is known to Python alone");
}

Py
py_object_attribute(Interp *in, Py x, Name name)
{
    const PyObject *o = x->u.object;
    if (o->type && strcmp(o->type, "super") == 0)
        return above_attribute(in, x, name);
    Py v = pydict_name(o->attrs, name);
    if (v || !o->class_)
        return v;
    return of_object(in, class_find(in, o->class_->u.class_, name, 0), x);
}

void
py_set_attribute(Interp *in, Py x, Name name, Py v, Loc loc)
{
    if (x->kind == PY_OBJECT)
        pydict_set(in, x->u.object->attrs, py_str(in, name), v);
    else if (x->kind == PY_CLASS)
        pyscope_set(in, x->u.class_->body, name, v, loc, false);
}

Py
py_instantiate(Interp *in, Py class_, const PyCall *c)
{
    PyClass *k = class_->u.class_;
    if (k->is_enum) {
        for (int i = 0; c->n == 1 && i < k->body->index.n; i++) {
            const PyBind *b = k->body->index.entries[i].val;
            if (b->val && b->val->kind == PY_OBJECT &&
                py_equal(in, pydict_name(b->val->u.object->attrs, "value"), c->at[0], 0) >
                    0)
                return b->val;
        }
        return py_unknown(in, c->loc, NULL, "it is an enumeration");
    }
    if (!k->known) {
        Py x = py_call_unknown(
            in, py_unknown(in, k->loc, NULL, "a class that is not known here"), c);
        ((PyUnknown *)(uintptr_t)x->u.unknown)->object =
            !k->node->more.n && !k->is_tuple && !k->is_aggregate;
        return x;
    }
    Py x = py_object(in, class_, NULL);
    Py init = class_find(in, k, name_of(&in->s->names, "__init__"), 0);
    if (init && init->kind == PY_FUNC) {
        PyCall all = *c;
        all.n = c->n + 1;
        all.at = arena_array(in->a, Py, all.n);
        all.at[0] = x;
        if (c->n)
            memcpy(all.at + 1, c->at, sizeof *all.at * (size_t)c->n);
        py_call(in, init, &all);
        return x;
    }
    int at = 0;
    for (int i = 0; k->is_data && i < k->fields.n; i++) {
        Name name = k->fields.at[i];
        Py v = at < c->n ? c->at[at++] : pydict_name(c->named->u.dict, name);
        if (!v)
            v = class_find(in, k, name, 0);
        if (!v)
            return py_raise(in, c->loc, "TypeError", "it needs a value for '%s'", name);
        pydict_set(in, x->u.object->attrs, py_str(in, name), v);
    }
    return x;
}

/* The name that a decorator is written by, or that of what it is bound to:
   `agg = triton.aggregate`, `@agg`. */
static const char *
class_decorator(Interp *in, const Node *d)
{
    const char *name = py_decorator_name(d);
    Py v = d->kind == ND_NAME ? py_name(in, d->name) : NULL;
    v = v ? py_resolve(in, v) : NULL;
    if (!v || v->kind != PY_BUILTIN || v->u.builtin.self)
        return name;
    const char *last = strrchr(v->u.builtin.name, '.');
    return last ? last + 1 : v->u.builtin.name;
}

/* What it does to attributes is not followed here. */
static bool
is_special(Interp *in, const PyClass *k)
{
    static const char *const names[] = {"__getattr__", "__getattribute__",
                                        "__setattr__", "__init_subclass__"};
    for (int i = 0; i < COUNT_OF(names); i++)
        if (class_find(in, k, name_of(&in->s->names, names[i]), 0))
            return true;
    for (int i = 0; i < k->node->body.n; i++) {
        const Node *fn = k->node->body.at[i];
        for (int d = 0; fn->kind == ND_FUNCTION && d < fn->more.n; d++)
            if (strcmp(py_decorator_name(fn->more.at[d]), "setter") == 0)
                return true;
    }
    return false;
}

/* A base that does something for each class made of it. */
static void
tell_base(Interp *in, Py class_)
{
    const PyList *bases = class_->u.class_->bases->u.list;
    Name name = name_of(&in->s->names, "__init_subclass__");
    for (int i = 0; i < bases->n; i++) {
        Py base = bases->at[i];
        Py f = base->kind == PY_CLASS ? class_find(in, base->u.class_, name, 0) : NULL;
        if (!f)
            continue;
        PyCall c = {.at = &class_, .n = 1, .named = py_dict(in),
                    .loc = class_->u.class_->loc};
        const NodeList *l = &class_->u.class_->node->list;
        for (int k = 0; k < l->n; k++)
            if (l->at[k]->kind == ND_KEYWORD && l->at[k]->name)
                pydict_set(in, c.named->u.dict, py_str(in, l->at[k]->name),
                           py_eval(in, l->at[k]->a));
        py_call(in, f, &c);
        return;
    }
}

static void
enum_base(PyClass *k, const char *name)
{
    bool is_int = strcmp(name, "IntEnum") == 0 || strcmp(name, "IntFlag") == 0;
    bool is_str = strcmp(name, "StrEnum") == 0;
    k->is_int |= is_int || strcmp(name, "int") == 0;
    k->is_str |= is_str || strcmp(name, "str") == 0;
    k->is_shown |= is_int || is_str;
    k->is_enum |= is_int || is_str || strcmp(name, "Enum") == 0;
}

/* What enum.auto() stands for: one more than the largest value before it, or the name. */
static Py
auto_value(Interp *in, const PyClass *k, int at)
{
    Name name = ((const PyBind *)k->body->index.entries[at].val)->name;
    Buf b;
    buf_init(&b, in->a);
    for (const char *p = name; k->is_str && *p; p++)
        buf_char(&b, (char)tolower((unsigned char)*p));
    if (k->is_str && k->is_shown)
        return py_str(in, b.s);
    Wide most = 0;
    for (int i = 0; i < at; i++) {
        const PyBind *e = k->body->index.entries[i].val;
        Py v = e->val && e->val->kind == PY_OBJECT
                   ? pydict_name(e->val->u.object->attrs, "value")
                   : NULL;
        if (v && v->kind != PY_INT)
            return NULL;
        most = v && v->u.i > most ? v->u.i : most;
    }
    return py_int(in, most + 1);
}

/* The names that its body binds are members; the second of two with one value is the
   first. */
static void
enum_members(Interp *in, Py v)
{
    const PyClass *k = v->u.class_;
    for (int i = 0; k->is_enum && i < k->body->index.n; i++) {
        PyBind *b = k->body->index.entries[i].val;
        if (!b->val || b->val->kind == PY_FUNC || b->name[0] == '_')
            continue;
        if (b->val->kind == PY_OBJECT && b->val->u.object->type &&
            strcmp(b->val->u.object->type, "auto") == 0) {
            Py value = auto_value(in, k, i);
            b->val = value ? value
                           : py_unknown(in, b->loc, NULL, "Python counts it otherwise");
        }
        Py same = NULL;
        for (int j = 0; j < i && !same; j++) {
            const PyBind *e = k->body->index.entries[j].val;
            Py x = e->val && e->val->kind == PY_OBJECT && e->val->u.object->class_ == v
                       ? pydict_name(e->val->u.object->attrs, "value")
                       : NULL;
            same = x && py_equal(in, x, b->val, 0) > 0 ? e->val : NULL;
        }
        b->val = same ? same : enum_member(in, v, b->name, b->val);
    }
}

Py
py_make_class(Interp *in, const Node *n)
{
    PyVal *v = py_new(in, PY_CLASS);
    PyClass *k = arena_new(in->a, PyClass);
    PyScope *outer = in->frame->scope, *seen = outer;
    while (seen->is_class && seen->up)
        seen = seen->up;
    v->u.class_ = k;
    *k = (PyClass){.name = n->name,
                   .node = n,
                   .home = module_view(seen->m, seen),
                   .known = true,
                   .loc = n->loc,
                   .bases = py_list(in, PY_TUPLE, NULL, 0)};
    for (int i = 0; i < n->list.n; i++) {
        const Node *e = n->list.at[i];
        bool named = e->kind == ND_NAME || e->kind == ND_ATTRIBUTE;
        Py base = e->kind == ND_KEYWORD ? in->none : py_eval(in, e);
        if (named)
            enum_base(k, e->name);
        k->is_tuple |= named && strcmp(e->name, "NamedTuple") == 0;
        k->is_data |= k->is_tuple;
        bool object = named && strcmp(e->name, "object") == 0;
        if (base->kind == PY_CLASS) {
            k->known &= base->u.class_->known;
            k->is_enum |= base->u.class_->is_enum;
            k->is_int |= base->u.class_->is_int;
            k->is_str |= base->u.class_->is_str;
            k->is_shown |= base->u.class_->is_shown;
            k->is_tuple |= base->u.class_->is_tuple;
        } else
            k->known &= k->is_data || object;
        py_push(in, k->bases->u.list, base);
    }
    for (int i = 0; i < n->more.n; i++) {
        const char *by = class_decorator(in, n->more.at[i]);
        bool data = strcmp(by, "dataclass") == 0;
        k->is_data |= data;
        k->is_aggregate |= strcmp(by, "aggregate") == 0 || strcmp(by, "_aggregate") == 0;
        k->known &= data;
    }
    k->body = pyscope_new(in, outer->m, outer);
    k->body->is_class = true;
    for (int i = 0; i < n->body.n; i++)
        if (n->body.at[i]->kind == ND_ANN_ASSIGN && n->body.at[i]->a->kind == ND_NAME)
            vec_push(in->a, &k->fields, n->body.at[i]->a->name);
    in->frame->scope = k->body;
    py_exec(in, &n->body);
    in->frame->scope = outer;
    k->known &= !is_special(in, k);
    enum_members(in, v);
    tell_base(in, v);
    return v;
}

/* Between the values of the host and those of kernels. */
#include "frontend/builtin.h"
#include "frontend/class.h"
#include "frontend/pylib.h"

#include <string.h>

/* ---- to a kernel */

#define PYTHON_ALONE "'%s' is known to Python alone"

/* One cause has one error, however often the kernel uses the name. */
static bool
is_told(const Sema *s, const char *text)
{
    for (const DiagItem *it = s->s->diag.first; it; it = it->next)
        if (it->level == DIAG_ERROR && strcmp(it->text, text) == 0)
            return true;
    return false;
}

static Val
not_a_value(Sema *s, Py v, const char *name, Loc loc)
{
    if (v->kind == PY_UNKNOWN) {
        const PyUnknown *u = v->u.unknown;
        if (is_told(s, arena_printf(s->a, PYTHON_ALONE, name)))
            return val_error();
        if (u->one && u->other)
            sema_error(s, loc, MODULE_UNCERTAIN, name);
        else if (!u->loc.line || !u->key)
            sema_error(s, loc, "'%s' is not known here: %s", name, u->why);
        else
            sema_error(s, loc, PYTHON_ALONE, name);
        if (u->loc.line)
            module_explain(s->m, v);
        return val_error();
    }
    const char *what =
        v->kind == PY_OBJECT ? "an object of the host" : "a value of the host";
    return sema_error(s, loc, "'%s' is %s, which a kernel cannot use", name, what);
}

static Val
builtin_value(Sema *s, Py v, const char *name, Loc loc)
{
    const char *full = v->u.builtin.name, *last = strrchr(full, '.');
    Name whole = name_of(&s->s->names, full);
    Name end = name_of(&s->s->names, last ? last + 1 : full);
    const Builtin *b = v->u.builtin.self ? NULL : builtin_find(s, whole, IN_CORE);
    if (!b && !v->u.builtin.self && !last)
        b = builtin_find(s, end, IN_PY);
    if (!b && strncmp(full, "triton.", strlen("triton.")) == 0)
        b = builtin_find(s, end, strstr(full, "language") ? IN_TL : IN_TRITON);
    return b ? val_builtin(s, b)
             : sema_error(s, loc,
                          "'%s' is a Python function of the host: it cannot be "
                          "called in a kernel",
                          name);
}

static Val
items_value(Sema *s, const PyList *l, const char *name, Loc loc)
{
    Val *items = arena_array(s->a, Val, l->n + 1);
    for (int i = 0; i < l->n; i++) {
        items[i] = py_to_val(s, l->at[i], name, loc);
        if (val_is_error(items[i]))
            return items[i];
    }
    return val_tuple(s, items, l->n);
}

static Val
dict_value(Sema *s, const PyDict *d, const char *name, Loc loc)
{
    Val *pairs = arena_array(s->a, Val, d->n + 1);
    for (int i = 0; i < d->n; i++) {
        Py pair[2] = {d->key[i], d->val[i]};
        PyList l = {.at = pair, .n = 2};
        pairs[i] = items_value(s, &l, name, loc);
        if (val_is_error(pairs[i]))
            return pairs[i];
    }
    return val_tuple(s, pairs, d->n);
}

static Val
module_val(Sema *s, Py v)
{
    FeVal *m = val_new(s, FE_MODULE);
    Val known = v->u.module.file ? NULL : module_known(s, v->u.module.path);
    if (known)
        return known;
    m->n = v->u.module.file ? NS_FILE : NS_UNKNOWN;
    m->home = v->u.module.file;
    m->u.path = v->u.module.path;
    return m;
}

/* Numbers and strings of a kernel remember the member that they are. */
static Val
member_value(Sema *s, Py v, const char *name, Loc loc)
{
    const PyClass *k = v->u.object->class_->u.class_;
    FeVal *m = val_new(s, FE_MEMBER);
    m->u.member = v;
    if (py_plain(v) == v)
        return m;
    Val plain = py_to_val(s, py_plain(v), name, loc);
    if (val_is_error(plain) || plain->kind != (k->is_int ? FE_INT : FE_STR))
        return plain;
    FeVal *out = val_new(s, plain->kind);
    *out = *plain;
    out->self = m;
    return out;
}

/* An object of a NamedTuple is its fields; others but members of enumerations only the
   host has. */
static Val
object_value(Sema *s, Py v, const char *name, Loc loc)
{
    const PyObject *o = v->u.object;
    const PyClass *k = o->class_ ? o->class_->u.class_ : NULL;
    if (k && k->is_enum && pydict_name(o->attrs, "value"))
        return member_value(s, v, name, loc);
    if (!k || !k->is_tuple)
        return not_a_value(s, v, name, loc);
    Py *at = arena_array(s->a, Py, o->attrs->n + 1);
    for (int i = 0; i < o->attrs->n; i++)
        at[i] = o->attrs->val[i];
    Val t = items_value(s, &(PyList){.at = at, .n = o->attrs->n}, name, loc);
    return val_is_error(t) ? t : val_object(s, val_class(s, k), t->u.items, t->n);
}

static Val
kernel_value(Sema *s, Py v, const char *name, Loc loc)
{
    switch (v->kind) {
    case PY_NONE: return val_none();
    case PY_BOOL: return val_bool(s, v->u.i != 0);
    case PY_INT: return val_int(s, v->u.i);
    case PY_FLOAT: return val_float(s, v->u.f);
    case PY_STR: return val_str(s, v->u.str.s);
    case PY_TUPLE:
    case PY_LIST:
        if (v->u.list->lost)
            return not_a_value(s, v->u.list->lost, name, loc);
        return items_value(s, v->u.list, name, loc);
    case PY_DICT:
        if (v->u.dict->lost)
            return not_a_value(s, v->u.dict->lost, name, loc);
        return dict_value(s, v->u.dict, name, loc);
    case PY_CONSTEXPR: return py_to_val(s, v->u.inner, name, loc);
    case PY_FUNC: {
        if (v->u.func->node->kind != ND_FUNCTION)
            return not_a_value(s, v, name, loc);
        FeVal *f = val_new(s, FE_FUNC);
        f->u.func = v->u.func->node;
        f->home = v->u.func->home;
        return f;
    }
    case PY_BUILTIN: return builtin_value(s, v, name, loc);
    case PY_MODULE: return module_val(s, v);
    case PY_FE: return v->u.fe;
    case PY_CLASS: return val_class(s, v->u.class_);
    case PY_OBJECT: return object_value(s, v, name, loc);
    case PY_UNKNOWN:
        if (v->u.unknown->missing) {
            FeVal *m = val_new(s, FE_MODULE);
            m->n = NS_UNKNOWN;
            m->u.path = v->u.unknown->missing;
            return m;
        }
        return not_a_value(s, v, name, loc);
    default: return not_a_value(s, v, name, loc);
    }
}

Val
py_to_val(Sema *s, Py v, const char *name, Loc loc)
{
    if (s->depth >= MAX_WALK_DEPTH)
        return sema_stop(s, loc, "values are nested too deeply");
    if (!sema_step(s, loc, 1))
        return val_error();
    s->depth++;
    Val out = kernel_value(s, py_resolve(module_interp(s->m), v), name, loc);
    s->depth--;
    return out;
}

/* ---- from a kernel's functions */

Val
py_member_bare(Sema *s, Val m)
{
    FeVal *out = val_new(s, FE_MEMBER);
    *out = *m;
    out->n = 1;
    return out;
}

Val
py_member_attribute(Sema *s, Val x, Name attr, Loc loc)
{
    Val m = x->kind == FE_MEMBER ? x : x->self;
    if (x->kind == FE_MEMBER && !x->n && strcmp(attr, "value") == 0)
        return py_member_bare(s, x); /* what the constexpr holds */
    Py v = py_object_attribute(module_interp(s->m), m->u.member, attr);
    return v && v->kind != PY_BUILTIN && v->kind != PY_FUNC ? py_to_val(s, v, attr, loc)
                                                            : NULL;
}

Py
py_from_val(Interp *in, Val v)
{
    if ((v->kind == FE_INT || v->kind == FE_STR) && v->self)
        return v->self->u.member;
    switch (v->kind) {
    case FE_MEMBER: return v->u.member;
    case FE_NONE: return in->none;
    case FE_BOOL: return py_bool(in, v->u.i != 0);
    case FE_INT: return py_int(in, v->u.i);
    case FE_FLOAT: return py_float(in, v->u.f);
    case FE_STR: return py_str(in, v->u.s);
    case FE_TUPLE: {
        if (v->self) /* stays the object that it is */
            break;
        Py t = py_list(in, PY_TUPLE, NULL, 0);
        if (in->depth >= PY_MAX_DEPTH || !py_step(in, v->n))
            return t;
        in->depth++;
        for (int i = 0; i < v->n; i++)
            py_push(in, t->u.list, py_from_val(in, v->u.items[i]));
        in->depth--;
        return t;
    }
    case FE_MODULE:
        if (v->n == NS_FILE || v->n == NS_UNKNOWN)
            return py_module(in, name_of(&in->s->names, v->u.path), v->home);
        break;
    default: break;
    }
    PyVal *p = py_new(in, PY_FE);
    p->u.fe = v;
    return p;
}

/* Messages of the kernel side are no messages about the host's code. */
static Py
taken(Interp *in, Val v, const Diag *before)
{
    Diag *d = &in->s->diag;
    bool bad = !v || val_is_error(v) || d->errors > before->errors ||
               d->warnings > before->warnings;
    diag_rewind(d, before);
    return bad ? NULL : py_from_val(in, v);
}

Py
py_fe_call(Interp *in, Py fn, const PyCall *c)
{
    Diag before = in->s->diag;
    Sema *s = in->sema;
    const PyDict *named = c->named->u.dict;
    CallArg *args = arena_array(in->a, CallArg, c->n + named->n + 1);
    s->steps = 0;
    s->host = 1;
    const FeVal *self = fn->u.fe->self;
    bool ok = !self || val_is_const(self);
    for (int i = 0; i < c->n && ok; i++) {
        args[i] = (CallArg){py_to_val(s, c->at[i], "it", c->loc), NULL, c->loc, c->loc};
        ok = !val_is_error(args[i].v) && val_is_const(args[i].v);
    }
    for (int i = 0; i < named->n && ok; i++) {
        Name name = name_of(&in->s->names,
                            named->key[i]->kind == PY_STR ? named->key[i]->u.str.s : "");
        args[c->n + i] =
            (CallArg){py_to_val(s, named->val[i], "it", c->loc), name, c->loc, c->loc};
        ok = !val_is_error(args[c->n + i].v) && val_is_const(args[c->n + i].v);
    }
    Py v = taken(in, ok ? call_value(s, fn->u.fe, args, c->n + named->n, c->loc) : NULL,
                 &before);
    return v ? v : pylib_unknown(in, c);
}

Py
py_fe_member(Interp *in, const char *path, Name attr, Loc loc)
{
    Diag before = in->s->diag;
    Val m = module_known(in->sema, path);
    in->sema->steps = 0;
    Val v = m ? module_attribute(in->sema, m, attr, loc, true) : NULL;
    return taken(in, v, &before);
}

Py
py_fe_attribute(Interp *in, Py x, Name attr, Loc loc)
{
    Diag before = in->s->diag;
    in->sema->steps = 0;
    return taken(in, get_attribute(in->sema, x->u.fe, attr, loc, true), &before);
}

/* NULL: it raises, or only Python could tell. */
static Val
call_in_module(Sema *s, Py fn, Py *args, int n, Py named, Loc loc)
{
    Interp *in = module_interp(s->m);
    PyScope *scope = module_scope(s->m);
    PyFrame frame = {.scope = scope}, *outer = in->frame;
    PyCall c = {.at = args, .n = n, .named = named, .loc = loc};
    in->frame = &frame;
    Py v = py_call(in, fn, &c);
    in->frame = outer;
    bool failed = py_raises(in) || py_lost(v);
    in->raised.type = NULL;
    Diag before = s->s->diag;
    Val out = failed ? NULL : py_to_val(s, v, "it", loc);
    diag_rewind(&s->s->diag, &before);
    return out && !val_is_error(out) ? out : NULL;
}

Val
py_call_host(Sema *s, Py fn, Py args)
{
    return call_in_module(s, fn, &args, 1, py_dict(module_interp(s->m)), (Loc){0});
}

/* Of a tensor the host may ask for the type: nothing is computed of it there. */
static bool
may_be_asked(Val v)
{
    return val_is_const(v) || v->kind == FE_TENSOR || v->kind == FE_DESC ||
           v->kind == FE_BLOCK_PTR;
}

Val
py_call_constexpr(Sema *s, Val fn, const CallArg *args, int n, Loc loc)
{
    Interp *in = module_interp(s->m);
    Py *at = arena_array(in->a, Py, n + 2);
    Py named = py_dict(in);
    int count = 0;
    if (fn->self)
        at[count++] = py_from_val(in, fn->self);
    bool known = val_is_const(fn);
    for (int i = 0; i < n && known; i++) {
        known = may_be_asked(args[i].v);
        Py v = py_from_val(in, args[i].v);
        if (args[i].name)
            pydict_set(in, named->u.dict, py_str(in, args[i].name), v);
        else
            at[count++] = v;
    }
    if (!known || py_raises(in))
        return NULL;
    if (!in->depth) { /* what the file took is no matter here */
        in->steps = 0;
        in->budget = in->all_steps < PY_ALL_STEPS ? PY_MAX_STEPS : PY_FEW_STEPS;
    }
    int64_t before = in->steps;
    Py f = py_function_of(in, fn->u.func, fn->home);
    Val v = call_in_module(s, f, at, count, named, loc);
    if (!sema_step(s, loc, in->steps - before))
        return val_error();
    return v && val_is_const(v) ? v : NULL;
}

/* ---- Python's methods of a kernel's constants: N.bit_length(), KIND.lower() */

static Py
method_of(Sema *s, Val x, const char *name)
{
    Interp *in = module_interp(s->m);
    bool has = x->kind == FE_INT || x->kind == FE_BOOL || x->kind == FE_STR;
    Py m = has ? py_attribute(in, py_from_val(in, x), name_of(&in->s->names, name), NULL,
                              true)
               : NULL;
    return m && m->kind == PY_BUILTIN ? m : NULL;
}

Val
py_method(Sema *s, Val x, Name name)
{
    if (!method_of(s, x, name))
        return NULL;
    const Builtin *b = builtin_find(s, name_of(&s->s->names, "__method__"), IN_CORE);
    Val *pair = arena_array(s->a, Val, 2);
    pair[0] = x;
    pair[1] = val_str(s, name);
    FeVal *v = val_new(s, FE_METHOD);
    v->self = val_tuple(s, pair, 2);
    v->u.builtin = b;
    return v;
}

Val
bi_host_method(Sema *s, Args *a)
{
    const Val *bound = a->v[0]->u.items;
    const char *name = bound[1]->u.s;
    Interp *in = module_interp(s->m);
    int n = a->v[1]->n;
    Py *args = arena_array(s->a, Py, n + 1);
    for (int i = 0; i < n; i++) {
        if (a->v[1]->u.items[i]->kind == FE_TENSOR)
            return sema_error(s, a->loc, "'%s' runs at compile time and needs "
                              "compile-time arguments, found %s", name,
                              val_describe(s->a, a->v[1]->u.items[i]));
        args[i] = py_from_val(in, a->v[1]->u.items[i]);
    }
    Val v = call_in_module(s, method_of(s, bound[0], name), args, n, py_dict(in), a->loc);
    return v ? v
             : sema_error(s, a->loc, "'%s' of %s cannot be called so", name,
                          val_describe(s->a, bound[0]));
}

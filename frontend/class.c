/* Classes of a module, see class.h. Fields are the annotated names of the class and, in
   front of them, those of its bases. */
#include "frontend/class.h"

#include "frontend/builtin.h"
#include "frontend/py.h"
#include "frontend/spec.h"

#include <string.h>

enum { MAX_FIELDS = 256 };

typedef struct Field {
    Name name;
    const Node *type, *def; /* annotation; default or NULL */
    FrontModule *home;      /* where they mean something */
} Field;

typedef struct Fields {
    Field *at;
    int n;
} Fields;

Val
val_class(Sema *s, const PyClass *class)
{
    FeVal *v = val_new(s, FE_TYPE);
    v->n = CLASS_USER;
    v->u.class_ = class;
    v->home = class->home;
    return v;
}

bool
val_is_class(Val v)
{
    return v->kind == FE_TYPE && v->n == CLASS_USER;
}

bool
val_is_object(Val v)
{
    return v->kind == FE_TUPLE && v->self;
}

/* An expression of the class's own module, NULL when it has no meaning here. */
static Val
eval_at_home(Sema *s, FrontModule *home, const Node *n, bool quiet)
{
    Frame f = {.caller = s->frame, .call_loc = n->loc, .module = home};
    scope_init(&f.scope, s->a);
    s->frame = &f;
    s->host++;
    Val v = quiet ? eval_quiet(s, n) : eval(s, n);
    s->host--;
    s->frame = f.caller;
    return v;
}

static const char *
last_part(const Node *n)
{
    return n->kind == ND_NAME || n->kind == ND_ATTRIBUTE ? n->name : "";
}

bool
object_is_tuple(Val v)
{
    return v->self->u.class_->is_tuple;
}

static bool
inherits(Sema *s, const PyClass *class, const PyClass *from, int depth)
{
    if (class == from)
        return true;
    if (depth >= PY_MAX_ABOVE || !sema_step(s, class->loc, 1))
        return false;
    const PyList *bases = class->bases->u.list;
    for (int i = 0; i < bases->n; i++)
        if (bases->at[i]->kind == PY_CLASS &&
            inherits(s, bases->at[i]->u.class_, from, depth + 1))
            return true;
    return false;
}

bool
object_is(Sema *s, Val v, Val class)
{
    return val_is_object(v) && inherits(s, v->self->u.class_, class->u.class_, 0);
}

static int
find_field(const Fields *f, Name name)
{
    for (int i = 0; i < f->n; i++)
        if (f->at[i].name == name)
            return i;
    return -1;
}

static void
collect_fields(Sema *s, const PyClass *class, Fields *out, int depth)
{
    const PyList *bases = class->bases->u.list;
    if (depth >= PY_MAX_ABOVE || !sema_step(s, class->loc, 1))
        return;
    for (int i = bases->n - 1; i >= 0; i--)
        if (bases->at[i]->kind == PY_CLASS)
            collect_fields(s, bases->at[i]->u.class_, out, depth + 1);
    const NodeList *body = &class->node->body;
    for (int i = 0; i < body->n; i++) {
        const Node *b = body->at[i];
        if (b->kind != ND_ANN_ASSIGN || b->a->kind != ND_NAME)
            continue;
        int at = find_field(out, b->a->name);
        if (at < 0 && out->n < MAX_FIELDS)
            at = out->n++;
        if (at >= 0)
            out->at[at] = (Field){b->a->name, b->b, b->c, class->home};
    }
}

static const Fields *
fields_of(Sema *s, Val class)
{
    Field at[MAX_FIELDS];
    Fields all = {.at = at}, *f = arena_new(s->a, Fields);
    collect_fields(s, class->u.class_, &all, 0);
    f->n = all.n;
    f->at = arena_array(s->a, Field, all.n + 1);
    if (all.n)
        memcpy(f->at, at, sizeof *at * (size_t)all.n);
    return f;
}

/* What the class or its bases bind the name to, as it is read through the class (self
   NULL) or an object. */
static Val
member(Sema *s, Val class, Val self, Name name, Loc loc)
{
    Interp *in = module_interp(s->m);
    Py m = py_class_find(in, class->u.class_, name);
    if (!m)
        return NULL;
    m = py_resolve(in, m);
    Val known = py_to_val(s, m, name, loc);
    if (m->kind != PY_FUNC || known->kind != FE_FUNC)
        return known;
    const Node *fn = m->u.func->node;
    FeVal *v = val_new(s, FE_FUNC);
    *v = *known;
    if (find_decorator(fn, "classmethod"))
        v->self = class;
    else if (!find_decorator(fn, "staticmethod"))
        v->self = self;
    if (self && find_decorator(fn, "property"))
        return call_function(s, v, NULL, 0, loc);
    return v;
}

const char *
class_name(Val class)
{
    return class->u.class_->name;
}

Val
class_attribute(Sema *s, Val class, Name attr, Loc loc)
{
    if (strcmp(attr, "__name__") == 0)
        return val_str(s, class_name(class));
    Val v = member(s, class, NULL, attr, loc);
    return v && v->kind == FE_MEMBER ? py_member_bare(s, v) : v;
}

Val
object_attribute(Sema *s, Val v, Name attr, Loc loc)
{
    int i = find_field(fields_of(s, v->self), attr);
    if (i >= 0 && i < v->n)
        return val_is_error(v->u.items[i])
                   ? sema_error(s, loc, "'%s' has no value yet", attr)
                   : v->u.items[i];
    return member(s, v->self, v, attr, loc);
}

Val
object_item(Sema *s, Val v, Val index, Loc loc)
{
    Val get = member(s, v->self, v, name_of(&s->s->names, "__getitem__"), loc);
    if (!get)
        return sema_error(s, loc, "%s cannot be indexed: its class has no __getitem__",
                          val_describe(s->a, v));
    return call_function(s, get, &index, 1, loc);
}

/* ---- operators */

bool
val_is_aggregate(Val v)
{
    return val_is_object(v) && !object_is_tuple(v);
}

/* NULL: the class has none. */
static Val
method_of(Sema *s, Val v, const char *name, Loc loc)
{
    return member(s, v->self, v, name_of(&s->s->names, name), loc);
}

Val
object_binary(Sema *s, const char *text, const char *const names[2], Val x, Val y,
              Loc loc)
{
    const Val of[2] = {x, y};
    bool both = val_is_aggregate(x) && val_is_aggregate(y);
    bool special = both && x->self->u.class_ != y->self->u.class_;
    int first = special && object_is(s, y, x->self);
    for (int i = 0; i < 2; i++) {
        int k = i ^ first;
        Val m = val_is_aggregate(of[k]) ? method_of(s, of[k], names[k], loc) : NULL;
        if (m)
            return call_function(s, m, &of[!k], 1, loc);
    }
    return sema_error(s, loc, "'%s' cannot take %s and %s: no class of theirs has %s",
                      text, val_describe(s->a, x), val_describe(s->a, y), names[0]);
}

Val
object_unary(Sema *s, const char *text, const char *name, Val x, Loc loc)
{
    Val m = method_of(s, x, name, loc);
    return m ? call_function(s, m, NULL, 0, loc)
             : sema_error(s, loc, "'%s' cannot take %s: its class has no %s", text,
                          val_describe(s->a, x), name);
}

/* ---- construction */

/* What an annotation allows; others (any, a class of Python) are no promise. */
static bool
check_field(Sema *s, Val class, const Field *f, Val v, Loc loc)
{
    const char *type = last_part(f->type), *needed = NULL;
    if (val_is_error(v))
        return false;
    if (strcmp(type, "constexpr") == 0 && !val_is_const(v))
        needed = "a compile-time value";
    else if (strcmp(type, "tensor") == 0 && v->kind != FE_TENSOR)
        needed = "a tensor; make one of a number by tl.to_tensor";
    else if (strcmp(type, "tuple") == 0 && v->kind != FE_TUPLE)
        needed = "a tuple";
    if (!needed && f->type->kind == ND_NAME) {
        Val want = eval_at_home(s, f->home, f->type, true);
        if (val_is_class(want) && !object_is(s, v, want))
            needed = arena_printf(s->a, "an object of '%s'", f->type->name);
    }
    if (!needed)
        return true;
    sema_error(s, loc, "field '%s' of '%s' must be %s, found %s", f->name,
               class_name(class), needed, val_describe(s->a, v));
    diag_note(&s->s->diag, f->type->loc, "it is declared here");
    return false;
}

FeVal *
val_object(Sema *s, Val class, const Val *items, int n)
{
    FeVal *v = val_new(s, FE_TUPLE);
    v->n = n;
    v->self = class;
    v->u.items = items;
    return v;
}

/* Fields without a value hold the error value. */
static FeVal *
new_object(Sema *s, Val class, int n)
{
    Val *items = arena_array(s->a, Val, n + 1);
    for (int i = 0; i < n; i++)
        items[i] = val_error();
    return val_object(s, class, items, n);
}

/* One argument for each field, by place, by name, or its default. */
static Val
construct_by_fields(Sema *s, Val class, const Fields *f, bool check, const CallArg *args,
                    int n, Loc loc)
{
    const char *name = class_name(class);
    FeVal *v = new_object(s, class, f->n);
    Val *items = arena_array(s->a, Val, f->n + 1);
    Loc *where = arena_array(s->a, Loc, f->n + 1);
    int at = 0;
    v->u.items = items;
    for (int i = 0; i < n; i++) {
        int k = args[i].name ? find_field(f, args[i].name) : at++;
        if (k < 0)
            return sema_error(s, args[i].name_loc, "'%s' has no field '%s'", name,
                              args[i].name);
        if (k >= f->n)
            return sema_error(s, args[i].loc, "'%s' has %d fields, found more values",
                              name, f->n);
        if (items[k])
            return sema_error(s, args[i].loc, "'%s' gets '%s' twice", name,
                              f->at[k].name);
        items[k] = args[i].v;
        where[k] = args[i].loc;
    }
    for (int k = 0; k < f->n; k++) {
        if (!items[k] && !f->at[k].def)
            return sema_error(s, loc, "'%s' needs a value for its field '%s'", name,
                              f->at[k].name);
        if (!items[k]) {
            items[k] = member(s, class, NULL, f->at[k].name, loc);
            if (!items[k])
                return sema_error(s, loc, "'%s' has lost the default of its field '%s'",
                                  name, f->at[k].name);
            where[k] = f->at[k].def->loc;
        }
        if (val_is_error(items[k]) ||
            (check && !check_field(s, class, &f->at[k], items[k], where[k])))
            return val_error();
    }
    return v;
}

/* By __init__, which gives each field its value. */
static Val
construct_by_init(Sema *s, Val class, const Fields *f, Val init, const CallArg *args,
                  int n, Loc loc)
{
    FeVal *v = new_object(s, class, f->n);
    FeVal *fn = val_new(s, FE_FUNC);
    *fn = *init;
    fn->self = v;
    Val outer = s->making;
    s->making = v;
    Val ret = call_value(s, fn, args, n, loc);
    s->making = outer;
    if (val_is_error(ret))
        return ret;
    for (int i = 0; i < f->n; i++)
        if (val_is_error(v->u.items[i]))
            return sema_error(s, loc, "__init__ of '%s' gives '%s' no value",
                              class_name(class), f->at[i].name);
    return v;
}

Val
class_construct(Sema *s, Val class, const CallArg *args, int n, Loc loc)
{
    const PyClass *k = class->u.class_;
    if (!k->is_tuple && !k->is_aggregate)
        return sema_error(s, loc, "'%s' makes no objects in a kernel: decorate it with "
                          "@triton.aggregate, or make it a NamedTuple", k->name);
    const Fields *f = fields_of(s, class);
    PyBind *own = pyscope_find(k->body, name_of(&s->s->names, "__init__"));
    if (own && own->val && own->val->kind == PY_FUNC && k->is_aggregate) {
        Val init = py_to_val(s, own->val, "__init__", loc);
        return val_is_error(init) ? init
                                  : construct_by_init(s, class, f, init, args, n, loc);
    }
    return construct_by_fields(s, class, f, k->is_aggregate, args, n, loc);
}

bool
object_set(Sema *s, Val v, Name attr, Val to, Loc loc)
{
    if (!val_is_object(v)) {
        sema_error(s, loc, "attributes cannot be assigned in a kernel");
        return false;
    }
    const Fields *f = fields_of(s, v->self);
    const char *name = class_name(v->self);
    int i = find_field(f, attr);
    if (v != s->making) {
        sema_error(s, loc, "'%s' is assigned in an object of '%s', which does not "
                   "change: make another by tl.aggregate_replace(x, %s=...)", attr, name,
                   attr);
        return false;
    }
    if (i < 0) {
        sema_error(s, loc, "'%s' has no field '%s': annotate it in the class", name,
                   attr);
        return false;
    }
    if (!check_field(s, v->self, &f->at[i], to, loc))
        return false;
    ((Val *)(uintptr_t)v->u.items)[i] = to;
    return true;
}

Val
object_replace(Sema *s, const CallArg *args, int n, Loc loc)
{
    if (n < 1 || args[0].name || !val_is_object(args[0].v) ||
        !args[0].v->self->u.class_->is_aggregate)
        return sema_error(s, n ? args[0].loc : loc, "'aggregate_replace' needs an "
                          "aggregate first, found %s",
                          n ? val_describe(s->a, args[0].v) : "nothing");
    Val from = args[0].v;
    const Fields *f = fields_of(s, from->self);
    Val *items = arena_array(s->a, Val, f->n + 1);
    FeVal *v = new_object(s, from->self, f->n);
    memcpy(items, from->u.items, sizeof *items * (size_t)f->n);
    v->u.items = items;
    for (int i = 1; i < n; i++) {
        int k = args[i].name ? find_field(f, args[i].name) : -1;
        if (k < 0)
            return sema_error(s, args[i].loc, "'aggregate_replace' takes fields of '%s' "
                              "by name", class_name(from->self));
        if (!check_field(s, from->self, &f->at[k], args[i].v, args[i].loc))
            return val_error();
        items[k] = args[i].v;
    }
    return v;
}

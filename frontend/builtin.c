/* The table of builtins, look-up by namespace, and binding of arguments to parameters. */
#include "frontend/builtin.h"

#include "frontend/hint.h"
#include "frontend/lanes.h"
#include "frontend/prelude.h"

#include "ir/base/util.h"

#include <stdlib.h>
#include <string.h>

static const char *const lib_params[] = { "", "arg0", "arg0, arg1", "arg0, arg1, arg2",
                                          "arg0, arg1, arg2, arg3" };

static const Builtin table[] = {
#define BUILTIN(id, name, where, params, doc) \
    { name, where, bi_##id, params, NULL, doc },
#define PRELUDE(name, where, file, doc) { name, where, NULL, "", file, doc },
#define MISSING(name, where) { name, where, NULL, "", NULL, "" },
#include "frontend/builtins.def"
#define LIBFN(name, arity, kind, op, fn) {name, IN_LIB, bi_libdevice, NULL, NULL, #arity},
#include "frontend/libdevice.def"
};

enum { MAX_SAME_NAME = 6 };

/* Entries of one name, chained: tl.max, Python's max and so on are different
   functions. */
typedef struct Entries {
    const Builtin *at[MAX_SAME_NAME];
    int n;
} Entries;

static void
index_builtins(Sema *s)
{
    map_init(&s->builtins, s->a);
    for (int i = 0; i < COUNT_OF(table); i++) {
        Name name = name_of(&s->s->names, table[i].name);
        Entries *e = map_get(&s->builtins, name);
        if (!e) {
            e = arena_new(s->a, Entries);
            map_set(&s->builtins, name, e);
        }
        if (e->n < MAX_SAME_NAME)
            e->at[e->n++] = &table[i];
    }
}

const Builtin *
builtin_find(Sema *s, Name name, unsigned where)
{
    if (!s->builtins.arena)
        index_builtins(s);
    const Entries *e = map_get(&s->builtins, name);
    for (int i = 0; e && i < e->n; i++)
        if (e->at[i]->where & where)
            return e->at[i];
    return NULL;
}

Val
val_builtin(Sema *s, const Builtin *b)
{
    FeVal *v = val_new(s, FE_BUILTIN);
    v->u.builtin = b;
    return v;
}

const char *
builtin_near(const char *name, unsigned where)
{
    const char *best = NULL;
    int limit = strlen(name) > 4 ? 3 : 2;
    for (int i = 0; i < COUNT_OF(table); i++) {
        int d = table[i].where & where ? name_distance(name, table[i].name) : 99;
        if (d < limit) {
            limit = d;
            best = table[i].name;
        }
    }
    return best;
}

/* One parameter of a parameter list. */
typedef struct Spec {
    const char *name, *def; /* def: NULL when required */
    int name_len, def_len;
    bool rest;
} Spec;

static int
split_params(const char *text, Spec *out)
{
    int n = 0;
    while (*text && n < MAX_ARGS) {
        Spec p = { 0 };
        if ((p.rest = *text == '*'))
            text++;
        p.name = text;
        while (*text && *text != ',' && *text != '=')
            text++;
        p.name_len = (int)(text - p.name);
        if (*text == '=') {
            p.def = ++text;
            while (*text && *text != ',')
                text++;
            p.def_len = (int)(text - p.def);
        }
        out[n++] = p;
        while (*text == ',' || *text == ' ')
            text++;
    }
    return n;
}

static Val
default_value(Sema *s, const Spec *p)
{
    char text[24] = { 0 };
    if (p->rest)
        return val_tuple(s, NULL, 0);
    memcpy(text, p->def, (size_t)(p->def_len < 23 ? p->def_len : 23));
    if (strcmp(text, "_") == 0)
        return NULL;
    if (strcmp(text, "None") == 0)
        return val_none();
    if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0)
        return val_bool(s, text[0] == 'T');
    if (strcmp(text, "()") == 0)
        return val_tuple(s, NULL, 0);
    if (text[0] == '\'') {
        char *end = strchr(text + 1, '\'');
        return val_str(s, arena_strndup(s->a, text + 1, (size_t)(end - text - 1)));
    }
    DType dt = dtype_by_tl_name(text, strlen(text));
    return dt != DT_NONE ? val_dtype(s, dt) : val_int(s, strtol(text, NULL, 10));
}

static const char *
params_text(const Builtin *b)
{
    return b->params ? b->params : lib_params[b->doc[0] - '0'];
}

static int
find_param(const Spec *p, int np, Name name)
{
    for (int i = 0; i < np; i++)
        if (!p[i].rest && strlen(name) == (size_t)p[i].name_len &&
            memcmp(name, p[i].name, strlen(name)) == 0)
            return i;
    return -1;
}

static bool
bind_keyword(Sema *s, const Spec *p, int np, Args *a, const CallArg *arg)
{
    int i = find_param(p, np, arg->name);
    if (i < 0) {
        const char *near = NULL;
        for (int k = 0, limit = 3; k < np; k++) {
            const char *name = arg_name(s, a, k);
            if (p[k].rest && strcmp(arg->name, name) == 0) {
                sema_error(s, arg->name_loc, "'%s' of '%s' is given by position, without "
                           "a name", name, a->b->name);
                return false;
            }
            if (name_distance(arg->name, name) < limit) {
                limit = name_distance(arg->name, name);
                near = name;
            }
        }
        sema_error(s, arg->name_loc, "'%s' has no parameter '%s'%s%s%s; it takes (%s)",
                   a->b->name, arg->name, near ? " (did you mean '" : "",
                   near ? near : "", near ? "'?)" : "", params_text(a->b));
        return false;
    }
    if (a->given[i]) {
        sema_error(s, arg->name_loc, "'%s' gets '%s' twice", a->b->name, arg->name);
        return false;
    }
    a->v[i] = arg->v;
    a->at[i] = arg->loc;
    a->given[i] = true;
    return true;
}

static bool
bind_args(Sema *s, Args *a, Val self, const CallArg *args, int n)
{
    Spec p[MAX_ARGS];
    int np = split_params(params_text(a->b), p), at = 0;
    Val *rest = arena_array(s->a, Val, n + 2);
    int nrest = 0;
    for (int k = self ? -1 : 0; k < n; k++) {
        if (k >= 0 && args[k].name)
            continue;
        Val v = k < 0 ? self : args[k].v;
        Loc loc = k < 0 ? a->loc : args[k].loc;
        if (at < np && p[at].rest) {
            rest[nrest++] = v;
            if (nrest == 1)
                a->at[at] = loc;
            continue;
        }
        if (at == np) {
            sema_error(s, loc, "too many arguments: '%s' takes (%s)", a->b->name,
                       params_text(a->b));
            return false;
        }
        a->v[at] = v;
        a->at[at] = loc;
        a->given[at++] = true;
    }
    for (int i = 0; i < np; i++)
        if (p[i].rest && nrest) {
            a->v[i] = val_tuple(s, rest, nrest);
            a->given[i] = true;
        }
    for (int k = 0; k < n; k++)
        if (args[k].name && !bind_keyword(s, p, np, a, &args[k]))
            return false;
    for (int i = 0; i < np; i++) {
        if (a->given[i])
            continue;
        if (!p[i].def && !p[i].rest) {
            sema_error(s, a->loc, "'%s' needs '%.*s'; it takes (%s)", a->b->name,
                       p[i].name_len, p[i].name, params_text(a->b));
            return false;
        }
        a->v[i] = default_value(s, &p[i]);
        a->at[i] = a->loc;
    }
    return true;
}

/* The builtin under the name that the user wrote: tl.max calls reduce, and messages are
   about max. */
static const Builtin *
as_called(Sema *s, const Builtin *b)
{
    const Frame *f = s->frame;
    const char *name = NULL;
    for (; f && f->caller && prelude_owns(f->module); f = f->caller)
        name = f->fn ? f->fn->name : name;
    /* Functions of math and libdevice are many in one, told apart by their names. */
    if (!name || strchr(b->name, '.') || (b->where & IN_LIB))
        return b;
    Builtin *said = arena_new(s->a, Builtin);
    *said = *b;
    said->name = name;
    return said;
}

Val
builtin_call(Sema *s, const Builtin *b, Val self, const CallArg *args, int n, Loc loc)
{
    Args a = { .b = as_called(s, b), .loc = loc };
    for (int i = 0; i < n; i++)
        if (val_is_error(args[i].v))
            return args[i].v;
    if (self && val_is_error(self))
        return self;
    if (!b->fn)
        return sema_error(s, loc, "not supported yet: tl.%s", b->name);
    if (s->host && !(b->where & AT_COMPILE))
        return sema_error(s, loc, "'%s' can only be called in a kernel", b->name);
    if (!bind_args(s, &a, self, args, n) || !lanes_guard(s, &a))
        return val_error();
    s->b.loc = loc;
    return b->fn(s, &a);
}

const char *
arg_name(Sema *s, const Args *a, int i)
{
    Spec p[MAX_ARGS];
    int np = split_params(params_text(a->b), p);
    return i < np ? arena_strndup(s->a, p[i].name, (size_t)p[i].name_len) : "?";
}

static bool
wrong(Sema *s, Args *a, int i, const char *needed)
{
    if (!val_is_error(a->v[i])) {
        bool whole = strstr(needed, "integer") != NULL;
        const char *param = arg_name(s, a, i), *hint = hint_larger(a->b->name, param);
        sema_error(s, a->at[i], "'%s' of '%s' must be %s, found %s%s", param, a->b->name,
                   needed, val_describe(s->a, a->v[i]),
                   *hint   ? hint
                   : whole ? hint_float(a->v[i])
                           : "");
        note_parameter(s, a->v[i]);
    }
    return false;
}

bool
arg_none(const Args *a, int i)
{
    return !a->v[i] || a->v[i]->kind == FE_NONE;
}

bool
arg_bool(Sema *s, Args *a, int i, bool *out)
{
    if (!val_is_const(a->v[i]))
        return wrong(s, a, i, "known at compile time");
    *out = val_truth(a->v[i]);
    return true;
}

bool
arg_int(Sema *s, Args *a, int i, int64_t *out)
{
    if (!val_is_int(a->v[i]))
        return wrong(s, a, i, "a compile-time integer");
    *out = (int64_t)a->v[i]->u.i;
    return true;
}

bool
arg_str(Sema *s, Args *a, int i, const char **out)
{
    if (arg_none(a, i)) {
        *out = "";
        return true;
    }
    if (a->v[i]->kind != FE_STR)
        return wrong(s, a, i, "a string");
    *out = a->v[i]->u.s;
    return true;
}

bool
arg_dtype(Sema *s, Args *a, int i, DType *out)
{
    Val v = a->v[i];
    if (v->kind == FE_TYPE && v->n == CLASS_BLOCK) {
        *out = v->dt;
        return true;
    }
    if (v->kind != FE_DTYPE)
        return wrong(s, a, i, "a dtype such as tl.float32");
    *out = v->dt;
    return true;
}

/* The one tuple among the values of a '*shape' parameter stands for its elements. */
static Val
only_tuple(Val v)
{
    if (v->kind == FE_TUPLE && v->n == 1 && v->u.items[0]->kind == FE_TUPLE)
        return v->u.items[0];
    return v;
}

bool
arg_ints(Sema *s, Args *a, int i, int64_t *out, int *n)
{
    Val v = only_tuple(a->v[i]);
    if (val_is_int(v)) {
        *n = 1;
        out[0] = (int64_t)v->u.i;
        return true;
    }
    if (v->kind != FE_TUPLE)
        return wrong(s, a, i, "a tuple of compile-time integers");
    if (v->n > MAX_RANK) {
        sema_error(s, a->at[i], "a tile has at most %d dimensions, found %d", MAX_RANK,
                   v->n);
        return false;
    }
    for (int k = 0; k < v->n; k++) {
        Val e = v->u.items[k];
        if (val_is_error(e))
            return false;
        if (!val_is_int(e)) {
            sema_error(s, a->at[i], "'%s' of '%s' must hold compile-time integers, found "
                       "%s at position %d%s", arg_name(s, a, i), a->b->name,
                       val_describe(s->a, e), k, hint_float(e));
            note_parameter(s, e);
            return false;
        }
        out[k] = (int64_t)e->u.i;
    }
    *n = v->n;
    return true;
}

bool
arg_shape(Sema *s, Args *a, int i, Shape *out)
{
    return arg_ints(s, a, i, out->dim, &out->rank) && sema_check_shape(s, *out, a->at[i]);
}

bool
arg_tensor(Sema *s, Args *a, int i)
{
    a->v[i] = to_tensor(s, a->v[i], a->at[i]);
    if (val_is_error(a->v[i]))
        return false;
    return a->v[i]->kind == FE_TENSOR ? true : wrong(s, a, i, "a tensor");
}

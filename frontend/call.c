/* Calls: builtins, and jit functions, which are inlined at the place of the call with
   their own scope. */
#include "frontend/builtin.h"
#include "frontend/class.h"
#include "frontend/prelude.h"
#include "frontend/py.h"
#include "frontend/sema.h"
#include "frontend/spec.h"

#include <string.h>

static int
param_index(const Node *fn, Name name)
{
    for (int i = 0; i < fn->list.n; i++)
        if (fn->list.at[i]->name == name)
            return i;
    return -1;
}

static bool
is_constexpr_param(const Node *p)
{
    return p->a && (p->a->kind == ND_NAME || p->a->kind == ND_ATTRIBUTE) &&
           strcmp(p->a->name, "constexpr") == 0;
}

/* Arguments to parameters; missing ones stay NULL. */
static bool
bind_params(Sema *s, const Node *fn, const CallArg *args, int n, Val *bound, Loc *where,
            Loc loc)
{
    int at = 0, star = -1, nrest = 0;
    Val *rest = arena_array(s->a, Val, n + 1);
    for (int i = 0; i < fn->list.n && star < 0; i++)
        star = fn->list.at[i]->sub == PK_ARGS ? i : -1;
    for (int i = 0; i < n; i++) {
        if (!args[i].name && at == star) {
            rest[nrest++] = args[i].v;
            continue;
        }
        int p = args[i].name ? param_index(fn, args[i].name) : at++;
        if (p < 0) {
            sema_error(s, args[i].name_loc, "'%s' has no parameter '%s'", fn->name,
                       args[i].name);
            return false;
        }
        bool named_only = p < fn->list.n && fn->list.at[p]->named_only && !args[i].name;
        if (p >= fn->list.n || named_only) {
            sema_error(s, args[i].loc, "'%s' takes %d %sargument%s, found more",
                       fn->name, p, named_only ? "unnamed " : "", p == 1 ? "" : "s");
            return false;
        }
        if (bound[p]) {
            sema_error(s, args[i].loc, "'%s' gets '%s' twice", fn->name,
                       fn->list.at[p]->name);
            return false;
        }
        bound[p] = args[i].v;
        where[p] = args[i].loc;
    }
    for (int i = 0; i < fn->list.n; i++) {
        const Node *p = fn->list.at[i];
        if (p->sub == PK_KWARGS) {
            sema_error(s, loc, "'%s' has a '**' parameter, which a kernel cannot call",
                       fn->name);
            return false;
        }
        if (i == star) {
            bound[i] = val_tuple(s, rest, nrest);
            where[i] = loc;
        }
        if (!bound[i] && !p->b) {
            sema_error(s, loc, "'%s' needs an argument for '%s'", fn->name, p->name);
            return false;
        }
    }
    return true;
}

/* A function may call itself as long as compile-time values end it: each call is walked
   with its own shapes and constants. */
static bool
check_call(Sema *s, const Node *fn, Loc loc)
{
    int again = 0;
    for (const Frame *f = s->frame; f; f = f->caller)
        again += f->fn == fn;
    if (again >= MAX_RECURSION) {
        const char *fmt = "'%s' calls itself, %d calls deep: in a kernel only shapes and "
                          "constexprs can end a recursion";
        sema_stop(s, loc, arena_printf(s->a, fmt, fn->name, MAX_RECURSION));
        return false;
    }
    if (s->call_depth < MAX_CALL_DEPTH)
        return true;
    sema_stop(s, loc, arena_printf(s->a, "functions are nested deeper than %d calls",
                                   MAX_CALL_DEPTH));
    return false;
}

/* Module-level values of the callee's file: defaults may use any global there. */
static Val
eval_default(Sema *s, Frame *f, const Node *e)
{
    Frame *inner = s->frame;
    s->frame = f;
    s->host++;
    Val v = eval(s, e);
    s->host--;
    s->frame = inner;
    return v;
}

/* Functions made constexpr run at compile time: as Python runs them where their arguments
   are constants alone, and else, or where that fails, with what the walk knows of it. */
static bool
runs_on_host(const Node *fn)
{
    return find_decorator(fn, "constexpr") || find_decorator(fn, "constexpr_function");
}

static bool
check_host_args(Sema *s, const Node *fn, const Val *bound, const Loc *where)
{
    for (int i = 0; i < fn->list.n; i++)
        if (!val_is_const(bound[i]) && !val_is_error(bound[i]) &&
            !val_is_object(bound[i])) { /* whose constants it may use */
            sema_error(s, where[i], "'%s' runs at compile time and needs compile-time "
                       "arguments, found %s", fn->name, val_describe(s->a, bound[i]));
            return false;
        }
    return true;
}

static Val
call_jit(Sema *s, Val fnv, const CallArg *args, int n, Loc loc)
{
    const Node *fn = fnv->u.func;
    int np = fn->list.n;
    /* A constructor gets tensors, too; what it computes of constants stays constant. */
    bool constructs = fnv->self && fnv->self == s->making;
    bool constant = runs_on_host(fn) && !constructs;
    Val known = constant ? py_call_constexpr(s, fnv, args, n, loc) : NULL;
    if (known)
        return known;
    if (fnv->self) {
        CallArg *all = arena_array(s->a, CallArg, n + 1);
        all[0] = (CallArg){fnv->self, NULL, loc, loc};
        if (n)
            memcpy(all + 1, args, sizeof *all * (size_t)n);
        args = all;
        n++;
    }
    Val *bound = arena_array(s->a, Val, np + 1);
    Loc *where = arena_array(s->a, Loc, np + 1);
    if (!check_call(s, fn, loc) || !bind_params(s, fn, args, n, bound, where, loc))
        return val_error();
    Frame f = { .caller = s->frame, .call_loc = loc, .fn = fn, .module = fnv->home };
    scope_init(&f.scope, s->a);
    for (int i = 0; i < np; i++)
        if (!bound[i]) {
            bound[i] = eval_default(s, &f, fn->list.at[i]->b);
            where[i] = fn->list.at[i]->loc;
        }
    for (int i = 0; i < np; i++) {
        if (val_is_error(bound[i]))
            return bound[i];
        scope_set(&f.scope, fn->list.at[i]->name, bound[i], where[i],
                  is_constexpr_param(fn->list.at[i]));
    }
    int host = s->host || constant;
    if (host && !check_host_args(s, fn, bound, where))
        return val_error();
    Loc outer = s->b.loc;
    const CallSite *outer_call = s->b.call;
    CallSite *site = arena_new(&s->s->mod, CallSite);
    *site = (CallSite){ .at = loc, .fn = fn->name };
    site->at.call = outer_call;
    s->b.call = site;
    s->frame = &f;
    s->call_depth++;
    s->host += host;
    Val ret = NULL;
    if (exec_list(s, &fn->body, 0, NULL, &ret) == FLOW_NEXT) {
        FeVal *none = val_new(s, FE_NONE); /* of whom, for messages */
        none->u.func = fn;
        ret = none;
    }
    s->host -= host;
    s->call_depth--;
    s->frame = f.caller;
    s->b.loc = outer;
    s->b.call = outer_call;
    return ret ? ret : val_none();
}

static Val
call_prelude(Sema *s, const Builtin *b, Val self, const CallArg *args, int n, Loc loc)
{
    Val fn = prelude_function(s, b->file, b->name, loc);
    if (val_is_error(fn))
        return fn;
    if (!self)
        return call_jit(s, fn, args, n, loc);
    CallArg *all = arena_array(s->a, CallArg, n + 1);
    all[0] = (CallArg){self, NULL, loc, loc};
    if (n)
        memcpy(all + 1, args, sizeof *all * (size_t)n);
    return call_jit(s, fn, all, n + 1, loc);
}

static bool
is_internal(const char *name)
{
    return strcmp(name, "_semantic") == 0 || strcmp(name, "_builder") == 0 ||
           strcmp(name, "_generator") == 0;
}

static Val
call_builtin(Sema *s, const Builtin *b, Val self, const CallArg *args, int n, Loc loc)
{
    /* Functions written for Triton's own builtins hand on what is not there here. */
    while (n && args[n - 1].name && is_internal(args[n - 1].name))
        n--;
    if (b->fn == bi_aggregate_replace)
        return object_replace(s, args, n, loc);
    if (b->file && !b->fn)
        return call_prelude(s, b, self, args, n, loc);
    return builtin_call(s, b, self, args, n, loc);
}

Val
call_value(Sema *s, Val fn, const CallArg *args, int n, Loc loc)
{
    for (int i = 0; i < n; i++)
        if (val_is_error(args[i].v))
            return args[i].v;
    s->b.loc = loc;
    switch (fn->kind) {
    case FE_ERROR: return fn;
    case FE_FUNC: return call_jit(s, fn, args, n, loc);
    case FE_BUILTIN: return call_builtin(s, fn->u.builtin, NULL, args, n, loc);
    case FE_METHOD: return call_builtin(s, fn->u.builtin, fn->self, args, n, loc);
    case FE_MODULE:
        if (fn->n == NS_UNKNOWN)
            return sema_error(s, loc,
                              "no file was found for '%s': give the folder of its module "
                              "with -I",
                              fn->u.path);
        break;
    case FE_TYPE:
        if (val_is_class(fn))
            return class_construct(s, fn, args, n, loc);
        if (fn->n == CLASS_DTYPE && n == 1 && args[0].v->kind == FE_STR) {
            DType dt = dtype_by_sig(args[0].v->u.s, strlen(args[0].v->u.s));
            return dt != DT_NONE ? val_dtype(s, dt)
                                 : sema_error(s, loc, "there is no dtype '%s'",
                                              args[0].v->u.s);
        }
        break;
    case FE_DTYPE:
        return sema_error(s, loc, "a dtype is not called: write x.to(tl.%s)",
                          dtype_is_scalar(fn->dt) ? dtype_info[fn->dt].tl_name : "int64");
    default: break;
    }
    return sema_error(s, loc, "%s cannot be called", val_describe(s->a, fn));
}

Val
call_function(Sema *s, Val fn, const Val *args, int n, Loc loc)
{
    CallArg *all = arena_array(s->a, CallArg, n + 1);
    for (int i = 0; i < n; i++)
        all[i] = (CallArg){args[i], NULL, loc, loc};
    return call_value(s, fn, all, n, loc);
}

Val
call_tl(Sema *s, const char *name, const Val *args, int n, Loc loc)
{
    const Builtin *b = builtin_find(s, name_of(&s->s->names, name), IN_TL | IN_CORE);
    if (!b)
        bug(&s->s->fail, "no builtin '%s'", name);
    return call_function(s, val_builtin(s, b), args, n, loc);
}

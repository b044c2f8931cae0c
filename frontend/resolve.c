/* What sdc check looks at: the kernels of a file, with signatures to compile them by, and
   helpers that no kernel of the file reaches. Of those it is asked whether every name
   means something and every construct is part of the language: types are not known, so
   nothing is said about them, and what stands under an `if` may be dead for every
   specialization that matters, so its problems are not reported. */
#include "frontend/builtin.h"
#include "frontend/module.h"
#include "frontend/spec.h"
#include "frontend/syntax.h"

#include "ir/base/util.h"

#include <string.h>

typedef struct Resolver {
    Sema sema;
    Frame frame;
    Map done;           /* FUNCTION node -> verdict below */
    Map *locals;        /* names bound in the function being walked */
    FrontModule *module;
    int guarded;        /* > 0: inside of an `if` */
    int depth, calls;
    bool ok;
} Resolver;

enum { IN_PROGRESS = 1, GOOD, BAD };

static void walk(Resolver *r, const Node *n);
static bool check_function(Resolver *r, const Node *fn, FrontModule *home);

static void
walk_list(Resolver *r, const NodeList *l)
{
    for (int i = 0; i < l->n; i++)
        walk(r, l->at[i]);
}

static void
complain(Resolver *r, Loc loc, const char *fmt, ...)
{
    if (r->guarded)
        return;
    Buf b;
    va_list ap;
    buf_init(&b, r->sema.a);
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    r->ok = false;
    diag_error(&r->sema.s->diag, loc, "%s", b.s);
}

/* Lookups report by themselves: under an `if` what they said is taken back. */
typedef struct Mark {
    DiagItem *last;
    int errors;
    bool muted;
} Mark;

static Mark
diag_mark(const Resolver *r)
{
    const Diag *d = &r->sema.s->diag;
    return (Mark){d->last, d->errors, d->muted};
}

static void
diag_settle(Resolver *r, Mark m)
{
    Diag *d = &r->sema.s->diag;
    if (d->errors == m.errors)
        return;
    if (!r->guarded) {
        r->ok = false;
        return;
    }
    if (m.last)
        m.last->next = NULL;
    else
        d->first = NULL;
    d->last = m.last;
    d->errors = m.errors;
    d->muted = m.muted;
}

/* ---- names */

static void
bind_target(Map *names, const Node *t, int depth)
{
    if (!t || depth > MAX_NESTING)
        return;
    if (t->kind == ND_NAME)
        map_set(names, t->name, names);
    if (t->kind == ND_STARRED)
        bind_target(names, t->a, depth + 1);
    if (t->kind == ND_TUPLE || t->kind == ND_LIST)
        for (int i = 0; i < t->list.n; i++)
            bind_target(names, t->list.at[i], depth + 1);
}

static void
bind_names(Map *names, const Node *n, int depth)
{
    if (!n || depth > AST_MAX_DEPTH)
        return;
    switch ((int)n->kind) {
    case ND_ASSIGN:
        for (int i = 0; i < n->list.n; i++)
            bind_target(names, n->list.at[i], 0);
        break;
    case ND_AUG_ASSIGN:
    case ND_ANN_ASSIGN:
    case ND_FOR:
    case ND_GENERATOR: bind_target(names, n->a, 0); break;
    case ND_WITH_ITEM: bind_target(names, n->b, 0); break;
    case ND_NAMED_EXPR:
    case ND_PARAM:
    case ND_HANDLER:
        if (n->name)
            map_set(names, n->name, names);
        break;
    default: break;
    }
    const NodeList *lists[] = {&n->list, &n->body, &n->orelse, &n->more};
    bind_names(names, n->a, depth + 1);
    bind_names(names, n->b, depth + 1);
    bind_names(names, n->c, depth + 1);
    for (int k = 0; k < COUNT_OF(lists); k++)
        for (int i = 0; i < lists[k]->n; i++)
            bind_names(names, lists[k]->at[i], depth + 1);
}

static void
bind_function(Map *names, const Node *fn)
{
    for (int i = 0; i < fn->list.n; i++)
        bind_names(names, fn->list.at[i], 0);
    for (int i = 0; i < fn->body.n; i++)
        bind_names(names, fn->body.at[i], 0);
}

bool
function_binds(Arena *a, const Node *fn, Name name)
{
    Map names;
    map_init(&names, a);
    bind_function(&names, fn);
    return map_has(&names, name);
}

static void
judge_value(Resolver *r, Val v, Loc loc, const char *text)
{
    if (!v || v->kind == FE_ERROR)
        return;
    if (v->kind == FE_FUNC && v->home && !check_function(r, v->u.func, v->home))
        r->ok &= r->guarded > 0;
    if (v->kind == FE_BUILTIN && !v->u.builtin->fn && !v->u.builtin->file)
        complain(r, loc, "not supported yet: tl.%s", v->u.builtin->name);
    if (v->kind == FE_MODULE && v->n == NS_UNKNOWN)
        complain(r, loc,
                 "'%s' comes from a module that was not found; -I names folders to "
                 "look in",
                 text);
}

static Val
resolve_name(Resolver *r, const Node *n)
{
    if (map_has(r->locals, n->name))
        return NULL;
    Mark m = diag_mark(r);
    Val v = module_lookup(&r->sema, r->module, n->name, n->loc, false);
    const Builtin *b = v ? NULL : builtin_find(&r->sema, n->name, IN_PY);
    diag_settle(r, m);
    if (!v && !b)
        complain(r, n->loc, "'%s' is not defined", n->name);
    return v;
}

/* a.b.c: as far as modules go, each member must exist. */
static Val
resolve_attribute(Resolver *r, const Node *n)
{
    if (n->a->kind != ND_ATTRIBUTE && n->a->kind != ND_NAME) {
        walk(r, n->a);
        return NULL;
    }
    Val base = n->a->kind == ND_NAME ? resolve_name(r, n->a) : resolve_attribute(r, n->a);
    if (!base || base->kind != FE_MODULE)
        return NULL;
    if (base->n == NS_UNKNOWN) {
        judge_value(r, base, n->a->loc, n->a->name);
        return NULL;
    }
    Mark m = diag_mark(r);
    Val v = module_attribute(&r->sema, base, n->name, n->loc, false);
    diag_settle(r, m);
    return v;
}

/* ---- constructs */

static const struct {
    NodeKind kind;
    const char *what;
} refused[] = {
    {ND_LAMBDA, "a lambda is not supported in a kernel: write a @triton.jit function"},
    {ND_DICT, "a dict is not supported in a kernel"},
    {ND_SET, "a set is not supported in a kernel"},
    {ND_YIELD, "a kernel cannot yield"},
    {ND_AWAIT, "a kernel cannot await"},
    {ND_CLASS, "a class cannot be defined in a kernel"},
    {ND_DELETE, "del is not supported in a kernel"},
    {ND_RAISE,
     "raise is not supported in a kernel: use tl.static_assert or tl.device_assert"},
    {ND_TRY, "try is not supported in a kernel"},
    {ND_IMPORT, "import belongs at the top of the file, not in a kernel"},
    {ND_IMPORT_FROM, "import belongs at the top of the file, not in a kernel"},
    {ND_GLOBAL, "global is not supported in a kernel"},
    {ND_NONLOCAL, "nonlocal is not supported in a kernel"},
    {ND_BREAK, "break is not supported: put the condition into a while"},
    {ND_CONTINUE, "continue is not supported: put the rest of the body under an if"},
};

static bool
is_refused(Resolver *r, const Node *n)
{
    for (int i = 0; i < COUNT_OF(refused); i++) {
        if (refused[i].kind == n->kind) {
            complain(r, n->loc, "%s", refused[i].what);
            return true;
        }
    }
    if (n->kind == ND_FUNCTION) {
        complain(r, n->loc, "nested function definition is not supported");
        return true;
    }
    if (n->kind == ND_ASSIGN && n->list.n > 1)
        complain(r, n->loc,
                 "several targets are not supported: write one assignment each");
    if (n->kind == ND_BINOP && n->sub == OS_MATMUL)
        complain(r, n->loc, "'@' is not supported: use tl.dot");
    if ((n->kind == ND_FOR || n->kind == ND_WHILE) && n->orelse.n)
        complain(r, n->loc, "an else of a loop is not supported");
    if (n->kind == ND_COMPREHENSION && n->sub != COMP_LIST)
        complain(r, n->loc, "only list comprehensions are supported");
    return false;
}

static void
walk_if(Resolver *r, const Node *n)
{
    for (int i = 0; i < n->list.n; i++) {
        walk(r, n->list.at[i]->a);
        r->guarded++;
        walk_list(r, &n->list.at[i]->body);
        r->guarded--;
    }
    r->guarded++;
    walk_list(r, &n->orelse);
    r->guarded--;
}

static void
walk_children(Resolver *r, const Node *n)
{
    bool arms = n->kind == ND_IFEXP;
    if (n->a)
        walk(r, n->a);
    r->guarded += arms;
    if (n->b)
        walk(r, n->b);
    if (n->c)
        walk(r, n->c);
    r->guarded -= arms;
    walk_list(r, &n->list);
    walk_list(r, &n->body);
    walk_list(r, &n->orelse);
    walk_list(r, &n->more);
}

static void
walk(Resolver *r, const Node *n)
{
    if (!n || r->depth > AST_MAX_DEPTH)
        return;
    r->depth++;
    switch ((int)n->kind) {
    case ND_NAME: judge_value(r, resolve_name(r, n), n->loc, n->name); break;
    case ND_ATTRIBUTE: judge_value(r, resolve_attribute(r, n), n->loc, n->name); break;
    case ND_IF: walk_if(r, n); break;
    case ND_ANN_ASSIGN: /* annotations are the type checker's */
        if (n->c)
            walk(r, n->c);
        break;
    default:
        if (!is_refused(r, n))
            walk_children(r, n);
        break;
    }
    r->depth--;
}

static bool
check_function(Resolver *r, const Node *fn, FrontModule *home)
{
    uintptr_t verdict = (uintptr_t)map_get(&r->done, fn);
    if (verdict)
        return verdict != BAD;
    if (r->calls >= MAX_CALL_DEPTH)
        return true; /* the type checker limits recursion */
    map_set(&r->done, fn, (void *)(uintptr_t)IN_PROGRESS);
    Resolver outer = *r;
    Map locals;
    map_init(&locals, r->sema.a);
    r->locals = &locals;
    r->module = home;
    r->guarded = r->depth = 0;
    r->calls++;
    r->ok = true;
    r->frame.module = home;
    bind_function(&locals, fn);
    walk_list(r, &fn->body);
    bool ok = r->ok;
    r->locals = outer.locals;
    r->module = outer.module;
    r->guarded = outer.guarded;
    r->depth = outer.depth;
    r->calls = outer.calls;
    r->ok = outer.ok;
    r->frame.module = outer.module;
    map_set(&r->done, fn, (void *)(uintptr_t)(ok ? GOOD : BAD));
    return ok;
}

/* ---- the report */

typedef Vec(const Node *) NodeVec;

static void
collect_skipped(Arena *a, const NodeList *l, NodeVec *skipped)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i]->kind == ND_SKIPPED)
            vec_push(a, skipped, l->at[i]);
}

static bool
is_kernel(const FrontModule *m, const char *name)
{
    int n = front_kernel_count(m);
    for (int i = 0; i < n; i++)
        if (strcmp(front_kernel_name(m, i), name) == 0)
            return true;
    return false;
}

/* `name[grid](..)` anywhere in the file. */
static bool
launches(const Node *n, const char *name, int depth)
{
    if (!n || depth > AST_MAX_DEPTH)
        return false;
    if (n->kind == ND_CALL && n->a->kind == ND_SUBSCRIPT && n->a->a->name &&
        strcmp(n->a->a->name, name) == 0)
        return true;
    const NodeList *lists[] = {&n->list, &n->body, &n->orelse, &n->more};
    for (int k = 0; k < COUNT_OF(lists); k++)
        for (int i = 0; i < lists[k]->n; i++)
            if (launches(lists[k]->at[i], name, depth + 1))
                return true;
    return launches(n->a, name, depth + 1) || launches(n->b, name, depth + 1) ||
           launches(n->c, name, depth + 1);
}

static bool
is_launched(const FrontModule *m, const char *name)
{
    const NodeList *all = module_statements(m);
    for (int i = 0; i < all->n; i++)
        if (launches(all->at[i], name, 0))
            return true;
    return false;
}

/* Bindings of parameters that this function has. */
static int
own_binds(Arena *a, const Node *fn, const FrontAsked *asked, const char ***out)
{
    int n = 0;
    *out = arena_array(a, const char *, asked->nbind + 1);
    for (int i = 0; i < asked->nbind; i++)
        for (int k = 0; k < fn->list.n; k++) {
            const char *name = fn->list.at[k]->name;
            size_t len = strcspn(asked->bind[i], "=");
            if (strlen(name) == len && memcmp(name, asked->bind[i], len) == 0)
                (*out)[n++] = asked->bind[i];
        }
    return n;
}

static void
check_kernel(Session *s, FrontModule *m, const FrontAsked *asked, const Node *fn,
             Map *called, FrontCheck *out)
{
    const char **bind;
    int nbind = own_binds(&s->perm, fn, asked, &bind);
    out->is_kernel = true;
    out->ok = front_guess(m, fn->name, asked->signature, bind, nbind, called,
                          &out->guess);
}

void
front_check(FrontModule *m, const FrontAsked *asked, FrontReport *out)
{
    Session *s = module_session(m);
    Resolver *r = arena_new(&s->ast, Resolver);
    NodeVec jit = {0}, skipped = {0};
    Map called;
    map_init(&called, &s->ast);
    collect_skipped(&s->ast, module_statements(m), &skipped);
    for (int i = 0; module_own_function(m, i); i++)
        if (!asked->kernel || strcmp(module_own_function(m, i)->name, asked->kernel) == 0)
            vec_push(&s->ast, &jit, module_own_function(m, i));
    *out = (FrontReport){.nfn = jit.n, .nskipped = skipped.n};
    out->fn = arena_array(&s->perm, FrontCheck, jit.n + 1);
    out->skipped = arena_array(&s->perm, Loc, skipped.n + 1);
    for (int i = 0; i < skipped.n; i++)
        out->skipped[i] = skipped.at[i]->loc;
    for (int i = 0; i < jit.n; i++) {
        const Node *fn = jit.at[i];
        out->fn[i] = (FrontCheck){.name = fn->name, .loc = fn->loc, .ok = true};
        if (is_kernel(m, fn->name))
            check_kernel(s, m, asked, fn, &called, &out->fn[i]);
    }
    sema_init(&r->sema, m, &r->frame);
    map_init(&r->done, &s->ast);
    s->diag.stage = "name";
    for (int i = 0; i < jit.n; i++) {
        const Node *fn = jit.at[i];
        FrontCheck *f = &out->fn[i];
        if (f->is_kernel && !asked->kernel && map_has(&called, fn))
            f->is_kernel = is_launched(m, fn->name);
        if (!f->is_kernel && !map_has(&called, fn))
            f->ok = check_function(r, fn, module_home(m, fn));
    }
}

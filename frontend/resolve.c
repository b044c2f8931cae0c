/* sdc check without a signature: does every name in a jit function mean something, and
   is every construct part of the language? Types are not known here, so nothing is
   said about them; what stands under an `if` may be dead for every specialization that
   matters (FlagGems keeps host-only code there), so its problems are not reported. */
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
bind_target(Resolver *r, const Node *t, int depth)
{
    if (!t || depth > MAX_NESTING)
        return;
    if (t->kind == ND_NAME)
        map_set(r->locals, t->name, r);
    if (t->kind == ND_STARRED)
        bind_target(r, t->a, depth + 1);
    if (t->kind == ND_TUPLE || t->kind == ND_LIST)
        for (int i = 0; i < t->list.n; i++)
            bind_target(r, t->list.at[i], depth + 1);
}

static void
bind_names(Resolver *r, const Node *n, int depth)
{
    if (!n || depth > AST_MAX_DEPTH)
        return;
    switch ((int)n->kind) {
    case ND_ASSIGN:
        for (int i = 0; i < n->list.n; i++)
            bind_target(r, n->list.at[i], 0);
        break;
    case ND_AUG_ASSIGN:
    case ND_ANN_ASSIGN:
    case ND_FOR:
    case ND_GENERATOR: bind_target(r, n->a, 0); break;
    case ND_WITH_ITEM: bind_target(r, n->b, 0); break;
    case ND_NAMED_EXPR:
    case ND_PARAM:
    case ND_HANDLER:
        if (n->name)
            map_set(r->locals, n->name, r);
        break;
    default: break;
    }
    const NodeList *lists[] = {&n->list, &n->body, &n->orelse, &n->more};
    bind_names(r, n->a, depth + 1);
    bind_names(r, n->b, depth + 1);
    bind_names(r, n->c, depth + 1);
    for (int k = 0; k < COUNT_OF(lists); k++)
        for (int i = 0; i < lists[k]->n; i++)
            bind_names(r, lists[k]->at[i], depth + 1);
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
        complain(r, n->loc, "a function cannot be defined inside of a kernel");
        return true;
    }
    if (n->kind == ND_COMPARE && n->list.n > 1) {
        complain(r, n->loc, "a chained comparison is not supported: join two with 'and'");
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
    for (int i = 0; i < fn->list.n; i++)
        bind_names(r, fn->list.at[i], 0);
    for (int i = 0; i < fn->body.n; i++)
        bind_names(r, fn->body.at[i], 0);
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

void
front_check(FrontModule *m, FrontReport *out)
{
    Session *s = module_session(m);
    Resolver *r = arena_new(&s->ast, Resolver);
    NodeVec jit = {0}, skipped = {0};
    sema_init(&r->sema, m, &r->frame);
    map_init(&r->done, &s->ast);
    collect_skipped(&s->ast, module_statements(m), &skipped);
    for (int i = 0; module_own_function(m, i); i++)
        vec_push(&s->ast, &jit, module_own_function(m, i));
    *out = (FrontReport){.nfn = jit.n, .nskipped = skipped.n};
    out->fn = arena_array(&s->perm, FrontCheck, jit.n + 1);
    out->skipped = arena_array(&s->perm, Loc, skipped.n + 1);
    for (int i = 0; i < skipped.n; i++)
        out->skipped[i] = skipped.at[i]->loc;
    for (int i = 0; i < jit.n; i++) {
        const Node *fn = jit.at[i];
        bool ok = check_function(r, fn, module_home(m, fn));
        out->fn[i] = (FrontCheck){fn->name, fn->loc, is_kernel(m, fn->name), ok};
    }
}

/* Files: loading, their top-level names, and finding the files that they import. */
#include "frontend/module.h"

#include "frontend/guard.h"
#include "frontend/syntax.h"
#include "ir/base/map.h"
#include "ir/base/vec.h"

#include <stdio.h>
#include <string.h>

/* What a top-level name is bound to. */
typedef struct Binding {
    const Node *node; /* FUNCTION, or the value of an assignment; NULL: an import */
    ModuleImport import;
    Loc loc;
    bool jit;
    bool maybe;            /* settled: it depends on what is not known here */
    int statement;         /* number of the top-level statement */
    const Guard *guard;    /* parts of `if` and `try` that it stands in */
    struct Binding *older; /* what else the name is bound to: fall-backs, then earlier */
} Binding;

/* All that a name is bound to. */
typedef struct Bound {
    Binding *first;
    bool settled;
    int kernel; /* number in the list of kernels, from 1 */
} Bound;

struct FrontModule {
    Session *s;
    const Source *src;
    const FrontOptions *opt;
    NodeList body;
    Map names; /* Name -> Binding */
    Vec(ModuleImport) stars;
    Vec(const Node *) kernels;
    FrontModule *root, *next; /* root: list of all files */
    const FrontValue *values; /* of a launch */
    int nvalue;
};

enum { MAX_FILES = 256, MAX_ANCESTORS = 8, MAX_DECORATORS = 32 };

Session *
module_session(const FrontModule *m)
{
    return m->s;
}

void
front_values(FrontModule *m, const FrontValue *values, int n)
{
    m->values = values;
    m->nvalue = n;
}

const FrontValue *
module_value(const FrontModule *m, int i)
{
    return i < m->nvalue && m->values[i].known ? &m->values[i] : NULL;
}

const char *
module_path(const FrontModule *m)
{
    return m->src->path;
}

const NodeList *
module_statements(const FrontModule *m)
{
    return &m->body;
}

/* ---- names */

/* A later statement goes in front of an earlier one; within one they keep their order
   until a look-up settles which of them count. */
static void
bind(FrontModule *m, Name name, Binding b)
{
    Bound *bound = map_get(&m->names, name);
    if (!bound) {
        bound = arena_new(&m->s->ast, Bound);
        map_set(&m->names, name, bound);
    }
    Binding *copy = arena_new(&m->s->ast, Binding);
    *copy = b;
    Binding **at = &bound->first;
    while (*at && (*at)->statement == b.statement)
        at = &(*at)->older;
    copy->older = *at;
    *at = copy;
}

/* Among the bindings of one statement: those that do not run are dropped, the last one
   that surely runs hides those in front of it, and what only may run behind it counts
   first. Returns the end of the list. */
static Binding **
settle_statement(FrontModule *m, Binding *b, Binding **at)
{
    enum { MAX_ARMS = 64 };
    Binding *kept[MAX_ARMS];
    int n = 0, statement = b->statement;
    for (; b && b->statement == statement; b = b->older) {
        Decision d = guard_decide(m, b->guard);
        b->maybe = d == RUNS_MAYBE;
        if (d == RUNS)
            n = 0;
        if (d != RUNS_NOT && n < MAX_ARMS)
            kept[n++] = b;
    }
    bool sure = n && !kept[0]->maybe;
    for (int i = sure; i < n; i++) {
        *at = kept[i];
        at = &kept[i]->older;
    }
    if (sure) {
        *at = kept[0];
        at = &kept[0]->older;
    }
    return at;
}

/* Decides what counts. When nothing does, all stay: messages are about what is there. */
static void
settle(FrontModule *m, Bound *bound)
{
    bool guarded = false;
    bound->settled = true;
    for (const Binding *b = bound->first; b; b = b->older)
        guarded |= b->guard != NULL;
    if (!guarded)
        return;
    Binding *first = NULL, **at = &first;
    for (Binding *b = bound->first; b;) {
        Binding *next = b;
        while (next && next->statement == b->statement)
            next = next->older;
        at = settle_statement(m, b, at);
        b = next;
    }
    *at = NULL;
    if (first)
        bound->first = first;
}

static bool
returns_value(const NodeList *l)
{
    for (int i = 0; i < l->n; i++) {
        const Node *n = l->at[i];
        if (n->kind == ND_RETURN && n->a)
            return true;
        if (n->kind == ND_IF)
            for (int k = 0; k < n->list.n; k++)
                if (returns_value(&n->list.at[k]->body))
                    return true;
        if (n->kind != ND_FUNCTION && n->kind != ND_CLASS &&
            (returns_value(&n->body) || returns_value(&n->orelse)))
            return true;
    }
    return false;
}

static void
bind_function(FrontModule *m, const Node *n, int statement, const Guard *g)
{
    bool jit = node_is_jit(n);
    bind(m, n->name, (Binding){.node = n, .jit = jit, .loc = n->loc,
                               .statement = statement, .guard = g});
    if (!jit || returns_value(&n->body))
        return;
    Bound *bound = map_get(&m->names, n->name);
    if (bound->kernel) { /* another of that name */
        m->kernels.at[bound->kernel - 1] = n;
        return;
    }
    vec_push(&m->s->ast, &m->kernels, n);
    bound->kernel = m->kernels.n;
}

/* `name = triton.jit(f)`, `name = triton.autotune(..)(f)`: what a decorator does, written
   as a call. NULL when the value is nothing of the kind. */
static const Node *
decorated(FrontModule *m, const Node *target, const Node *value)
{
    static const char *const names[] = {"jit", "autotune", "heuristics"};
    if (value->kind != ND_CALL || value->list.n != 1 || target->kind != ND_NAME ||
        value->list.at[0]->kind != ND_NAME)
        return NULL;
    const Node *by = value->a, *called = by->kind == ND_CALL ? by->a : by;
    bool known = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        known |= (called->kind == ND_NAME || called->kind == ND_ATTRIBUTE) &&
                 strcmp(called->name, names[i]) == 0;
    const Bound *of = known ? map_get(&m->names, value->list.at[0]->name) : NULL;
    const Node *fn = of ? of->first->node : NULL;
    if (!fn || fn->kind != ND_FUNCTION || fn->more.n >= MAX_DECORATORS)
        return NULL;
    Node *copy = arena_new(&m->s->ast, Node);
    *copy = *fn;
    copy->name = target->name;
    copy->more.n = copy->more.cap = fn->more.n + 1;
    copy->more.at = arena_array(&m->s->ast, Node *, copy->more.n);
    copy->more.at[0] = value->a;
    if (fn->more.n)
        memcpy(copy->more.at + 1, fn->more.at, (size_t)fn->more.n * sizeof(Node *));
    return node_is_jit(copy) ? copy : NULL;
}

static void
bind_import(FrontModule *m, const Node *n, int statement, const Guard *g)
{
    for (int i = 0; i < n->list.n; i++) {
        const Node *alias = n->list.at[i];
        ModuleImport im = {.path = alias->name, .loc = n->loc};
        Name name = alias->a ? alias->a->name : alias->name;
        const char *dot = alias->a ? NULL : strchr(alias->name, '.');
        if (dot) /* `import a.b` binds a */
            im.path = name = name_intern(&m->s->names, alias->name,
                                         (size_t)(dot - alias->name));
        bind(m, name, (Binding){.import = im, .loc = n->loc, .guard = g,
                                .statement = statement});
    }
}

static void
bind_import_from(FrontModule *m, const Node *n, int statement, const Guard *g)
{
    ModuleImport im = {.path = n->name, .level = n->level, .loc = n->loc};
    if (!n->list.n)
        vec_push(&m->s->ast, &m->stars, im);
    for (int i = 0; i < n->list.n; i++) {
        const Node *alias = n->list.at[i];
        im.member = alias->name;
        bind(m, alias->a ? alias->a->name : alias->name,
             (Binding){.import = im, .loc = n->loc, .statement = statement, .guard = g});
    }
}

static void bind_list(FrontModule *m, const NodeList *l, int statement, const Guard *g);

/* The statements of one part of an `if` or a `try`. */
static void
bind_part(FrontModule *m, const NodeList *l, int statement, const Node *stmt, int part,
          const Guard *up)
{
    for (int i = 0; i < l->n; i++) {
        Guard *g = arena_new(&m->s->ast, Guard);
        *g = (Guard){stmt, part, i, up};
        NodeList one = {.at = &l->at[i], .n = 1};
        bind_list(m, &one, statement, g);
    }
}

static void
bind_name(FrontModule *m, const Node *target, const Node *value, int statement,
          const Guard *g)
{
    const Node *fn = decorated(m, target, value);
    if (fn)
        bind_function(m, fn, statement, g);
    else if (target->kind == ND_NAME)
        bind(m, target->name, (Binding){.node = value, .loc = target->loc,
                                        .statement = statement, .guard = g});
}

static void
bind_list(FrontModule *m, const NodeList *l, int statement, const Guard *g)
{
    for (int i = 0; i < l->n; i++) {
        const Node *n = l->at[i];
        int at = statement < 0 ? i : statement;
        switch (n->kind) {
        case ND_FUNCTION: bind_function(m, n, at, g); break;
        case ND_IMPORT: bind_import(m, n, at, g); break;
        case ND_IMPORT_FROM: bind_import_from(m, n, at, g); break;
        case ND_ASSIGN:
            for (int k = 0; k < n->list.n; k++)
                bind_name(m, n->list.at[k], n->a, at, g);
            break;
        case ND_ANN_ASSIGN:
            if (n->c)
                bind_name(m, n->a, n->c, at, g);
            break;
        case ND_IF:
            for (int k = 0; k < n->list.n; k++)
                bind_part(m, &n->list.at[k]->body, at, n, k, g);
            bind_part(m, &n->orelse, at, n, GUARD_ELSE, g);
            break;
        case ND_TRY:
            bind_part(m, &n->body, at, n, GUARD_BODY, g);
            bind_part(m, &n->orelse, at, n, GUARD_ELSE, g);
            for (int k = 0; k < n->list.n; k++)
                bind_part(m, &n->list.at[k]->body, at, n, k, g);
            bind_list(m, &n->more, at, g);
            break;
        case ND_WITH: bind_list(m, &n->body, at, g); break;
        default: break;
        }
    }
}

static const Binding *
find(FrontModule *m, Name name)
{
    Bound *b = map_get(&m->names, name);
    if (b && !b->settled)
        settle(m, b);
    return b ? b->first : NULL;
}

/* Only imports may stand in for one another: both arms mean the same then. */
bool
module_uncertain(FrontModule *m, Name name, Loc *one, Loc *other, Loc *cond)
{
    const Binding *b = find(m, name);
    if (!b || !b->maybe || !b->older || b->guard->stmt->kind != ND_IF ||
        (!b->node && !b->older->node))
        return false;
    *one = b->loc;
    *other = b->older->loc;
    *cond = b->guard->stmt->list.at[b->guard->part < 0 ? 0 : b->guard->part]->a->loc;
    return true;
}

const Node *
module_jit_function(FrontModule *m, Name name)
{
    const Binding *b = find(m, name);
    return b && b->jit ? b->node : NULL;
}

const Node *
module_host_function(FrontModule *m, Name name)
{
    const Binding *b = find(m, name);
    return b && b->node && b->node->kind == ND_FUNCTION && !b->jit ? b->node : NULL;
}

const Node *
module_global_node(FrontModule *m, Name name)
{
    const Binding *b = find(m, name);
    return b && b->node && b->node->kind != ND_FUNCTION ? b->node : NULL;
}

bool
module_alternative(FrontModule *m, Name name, int i, const Node **value, ModuleImport *im)
{
    const Binding *b = find(m, name);
    while (b && i-- > 0)
        b = b->older;
    if (!b)
        return false;
    *value = b->node;
    *im = b->import;
    return true;
}

bool
module_import(FrontModule *m, Name name, ModuleImport *out)
{
    const Binding *b = find(m, name);
    if (!b || b->node)
        return false;
    *out = b->import;
    return true;
}

bool
module_star_import(FrontModule *m, int i, ModuleImport *out)
{
    if (i >= m->stars.n)
        return false;
    *out = m->stars.at[i];
    return true;
}

const Node *
module_kernel(FrontModule *m, const char *name)
{
    Name wanted = name_of(&m->s->names, name);
    Loc one, other, cond;
    if (module_uncertain(m, wanted, &one, &other, &cond)) {
        diag_error(&m->s->diag, one, MODULE_UNCERTAIN, name);
        diag_note(&m->s->diag, other, "this is the other one");
        diag_note(&m->s->diag, cond, "it depends on this");
        return NULL;
    }
    const Node *fn = module_jit_function(m, wanted);
    /* A host function of the same name may have hidden it since. */
    for (int i = m->kernels.n - 1; !fn && i >= 0; i--)
        if (strcmp(m->kernels.at[i]->name, name) == 0)
            fn = m->kernels.at[i];
    if (fn)
        return fn;
    Buf b;
    buf_init(&b, &m->s->perm);
    for (int i = 0; i < m->kernels.n && i < 20; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", m->kernels.at[i]->name);
    diag_error(&m->s->diag, (Loc){.src = m->src}, "there is no kernel '%s'", name);
    if (m->kernels.n)
        diag_note(&m->s->diag, (Loc){.src = m->src}, "the file has %s", b.s);
    return NULL;
}

/* ---- loading */

static FrontModule *
load(Session *s, const Source *src, const FrontOptions *opt, FrontModule *root)
{
    FrontModule *m = arena_new(&s->ast, FrontModule);
    m->s = s;
    m->src = src;
    m->opt = opt;
    m->root = root ? root : m;
    map_init(&m->names, &s->ast);
    if (!syntax_parse(s, src, &m->body))
        return NULL;
    bind_list(m, &m->body, -1, NULL);
    if (root) {
        m->next = root->next;
        root->next = m;
    }
    return m;
}

FrontModule *
front_load(Session *s, const Source *src, const FrontOptions *opt)
{
    FrontOptions *copy = NULL;
    if (opt) {
        copy = arena_new(&s->perm, FrontOptions);
        *copy = *opt;
    }
    return load(s, src, copy, NULL);
}

int
front_kernel_count(const FrontModule *m)
{
    return m->kernels.n;
}

const char *
front_kernel_name(const FrontModule *m, int i)
{
    return i >= 0 && i < m->kernels.n ? m->kernels.at[i]->name : NULL;
}

void
front_print_ast(const FrontModule *m, Buf *out)
{
    ast_print(out, &m->body);
}

FrontModule *
module_cached(FrontModule *from, const char *path)
{
    for (FrontModule *m = from->root; m; m = m->next)
        if (strcmp(m->src->path, path) == 0)
            return m;
    return NULL;
}

FrontModule *
module_add(FrontModule *from, const Source *src)
{
    int n = 0;
    for (FrontModule *m = from->root; m; m = m->next)
        n++;
    return n < MAX_FILES ? load(from->s, src, from->opt, from->root) : NULL;
}

/* ---- finding imports */

const Source *
front_read_disk(Session *s, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    Buf b;
    char part[4096];
    size_t n;
    buf_init(&b, &s->perm);
    buf_str(&b, "");
    while ((n = fread(part, 1, sizeof part, f)) > 0 && b.n <= MAX_SOURCE)
        buf_add(&b, part, n);
    bool ok = !ferror(f) && b.n <= MAX_SOURCE;
    fclose(f);
    if (!ok)
        return NULL;
    Source *src = arena_new(&s->perm, Source);
    *src = (Source){.path = arena_strndup(&s->perm, path, strlen(path)), .text = b.s,
                    .size = b.n, .id = s->next_source++};
    return src;
}

static const Source *
read_source(FrontModule *m, const char *path)
{
    if (m->opt && m->opt->read_file)
        return m->opt->read_file(m->opt->user, m->s, path);
    return front_read_disk(m->s, path);
}

/* dir/a/b.py, dir/a/b.tk or dir/a/b/__init__.py. */
static FrontModule *
load_in(FrontModule *from, const char *dir, size_t ndir, const char *path)
{
    static const char *const endings[] = {".py", ".tk", "/__init__.py"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        Buf b;
        buf_init(&b, &from->s->tmp);
        buf_add(&b, dir, ndir);
        if (ndir && dir[ndir - 1] != '/')
            buf_char(&b, '/');
        for (const char *p = path; *p; p++)
            buf_char(&b, *p == '.' ? '/' : *p);
        buf_str(&b, *path ? endings[i] : *endings[i] == '/' ? "__init__.py" : "");
        if (!*path && *endings[i] != '/')
            continue;
        FrontModule *m = module_cached(from, b.s);
        if (m)
            return m;
        const Source *src = read_source(from, b.s);
        if (src)
            return module_add(from, src);
    }
    return NULL;
}

/* The folder `up` levels above the file: 0 is the file's own. False above the root. */
static bool
folder_of(const FrontModule *m, int up, size_t *n)
{
    size_t at = strlen(m->src->path);
    for (int i = 0; i <= up; i++) {
        while (at && m->src->path[at - 1] != '/')
            at--;
        if (!at)
            return i == up; /* the current folder, written as nothing */
        if (i < up)
            at--;
    }
    *n = at;
    return true;
}

FrontModule *
module_load_import(FrontModule *from, Name path, int level)
{
    const char *text = path ? path : "";
    size_t n = 0;
    if (level > 0)
        return folder_of(from, level - 1, &n) ? load_in(from, from->src->path, n, text)
                                              : NULL;
    if (folder_of(from, 0, &n)) {
        FrontModule *m = load_in(from, from->src->path, n, text);
        if (m)
            return m;
    }
    for (int i = 0; from->opt && i < from->opt->ninclude; i++) {
        const char *dir = from->opt->include_dirs[i];
        FrontModule *m = load_in(from, dir, strlen(dir), text);
        if (m)
            return m;
    }
    for (int up = 1; up <= MAX_ANCESTORS; up++) {
        n = 0;
        FrontModule *m = folder_of(from, up, &n) && n
                             ? load_in(from, from->src->path, n, text)
                             : NULL;
        if (m)
            return m;
    }
    return NULL;
}

/* Files: loading and running them, and their kernels. */
#include "frontend/module.h"

#include "frontend/hint.h"
#include "frontend/py.h"
#include "frontend/sema.h"
#include "frontend/spec.h"
#include "frontend/syntax.h"
#include "ir/base/map.h"
#include "ir/base/vec.h"

#include <stdlib.h>
#include <string.h>

/* A jit function by the name that a launch uses. */
typedef struct Kernel {
    Name name;
    const PyFunc *fn;
} Kernel;
typedef Vec(Kernel) KernelVec;

enum { NOT_RUN, RUNS_NOW, HAS_RUN };

struct FrontModule {
    Session *s;
    const Source *src;
    const FrontOptions *opt;
    NodeList body;
    FrontModule *file; /* itself; of a view, the file */
    PyScope *scope;    /* a module's names, or those of a function inside */
    int state;
    bool searching; /* its star imports */
    KernelVec kernels;
    KernelVec own;            /* those and helpers */
    FrontModule *root, *next; /* root: list of all files */
    Interp *interp;           /* root: runs all of them */
    const char **define;      /* root: names of -D, and their values */
    const char **define_text;
    Py *define_value;
    bool *define_used;
    int ndefine;
    const FrontValue *values; /* of a launch */
    int nvalue;
};

enum { MAX_FILES = 8192 };

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

const FrontOptions *
module_options(const FrontModule *m)
{
    return m->opt;
}

int
module_capability(const FrontModule *m)
{
    const char *target = m->opt && m->opt->target ? m->opt->target : "";
    return strncmp(target, "sm_", 3) == 0 ? atoi(target + 3) : 0;
}

bool
module_is_for_cpu(const FrontModule *m)
{
    return m->opt && m->opt->target && strcmp(m->opt->target, "cpu") == 0;
}

const NodeList *
module_statements(const FrontModule *m)
{
    return &m->file->body;
}

PyScope *
module_scope(const FrontModule *m)
{
    return m->scope;
}

FrontModule *
module_view(FrontModule *m, PyScope *scope)
{
    if (scope == m->scope)
        return m;
    FrontModule *view = arena_new(&m->s->ast, FrontModule);
    *view = *m->file;
    view->scope = scope;
    return view;
}

bool
module_is_package(const FrontModule *m)
{
    const char *slash = strrchr(m->src->path, '/');
    return strcmp(slash ? slash + 1 : m->src->path, "__init__.py") == 0;
}

/* ---- -D NAME=VALUE */

bool
module_has_defines(const FrontModule *m)
{
    return m->root->ndefine > 0;
}

int
module_define_count(const FrontModule *m)
{
    return m->root->ndefine;
}

const char *
module_define_text(const FrontModule *m, int i, const char **value)
{
    *value = m->root->define_text[i];
    return m->root->define[i];
}

Py
module_define(const FrontModule *m, const char *name)
{
    for (int i = m->root->ndefine - 1; i >= 0; i--)
        if (strcmp(m->root->define[i], name) == 0) {
            m->root->define_used[i] = true;
            return m->root->define_value[i];
        }
    return NULL;
}

static void
nearer(const char *wanted, const char *name, int *least, const char **best)
{
    int d = name && name[0] != '_' ? name_distance(wanted, name) : 99;
    if (d > 0 && d < *least) {
        *least = d;
        *best = name;
    }
}

/* A global of a file, or what decides one that is not known, that is nearly this. */
static const char *
define_near(const FrontModule *m, const char *wanted)
{
    int least = strlen(wanted) > 4 ? 3 : 2;
    const char *best = NULL;
    for (const FrontModule *file = m->root; file; file = file->next) {
        const Map *names = &file->scope->index;
        for (int i = 0; i < names->n; i++) {
            const PyBind *b = names->entries[i].val;
            nearer(wanted, names->entries[i].key, &least, &best);
            if (b->val && b->val->kind == PY_UNKNOWN)
                nearer(wanted, b->val->u.unknown->key, &least, &best);
        }
    }
    return best;
}

/* "NAME" or 'NAME' in a file that was run: what asks the environment for it. */
static bool
is_quoted(const FrontModule *m, const char *name)
{
    size_t n = strlen(name);
    for (const FrontModule *file = m->root; file; file = file->next)
        for (const char *p = file->src->text; (p = strstr(p, name)) != NULL; p++)
            if (p > file->src->text && strchr("'\"", p[-1]) && p[n] == p[-1])
                return true;
    return false;
}

void
front_unused_defines(FrontModule *m)
{
    const FrontModule *root = m->root;
    Diag *d = &m->s->diag;
    for (int i = 0; i < root->ndefine; i++) {
        if (root->define_used[i] || is_quoted(m, root->define[i]))
            continue;
        const char *near = define_near(m, root->define[i]);
        diag_warning(d, (Loc){0},
                     "-D '%s=%s' decides nothing here: no global of a file that was run, "
                     "no variable of the environment and no expression that was asked "
                     "for is '%s'", root->define[i], root->define_text[i],
                     root->define[i]);
        if (near)
            diag_note(d, (Loc){0}, "did you mean '%s'?", near);
    }
}

/* The first '=' outside of brackets; NULL: there is none. */
static const char *
define_equals(const char *text)
{
    int depth = 0;
    for (const char *p = text; *p; p++) {
        depth += *p == '(' || *p == '[';
        depth -= *p == ')' || *p == ']';
        if (*p == '=' && !depth && p != text)
            return p;
    }
    return NULL;
}

/* A value as Python writes it; anything else is a string. */
static Py
define_value(FrontModule *root, const char *text)
{
    Interp *in = root->interp;
    Diag before = root->s->diag;
    Source *src = arena_new(&root->s->perm, Source);
    NodeList body;
    *src = (Source){
        .path = "-D", .text = text, .size = strlen(text), .id = root->s->next_source++};
    bool read = syntax_parse(root->s, src, &body);
    diag_rewind(&root->s->diag, &before);
    const Node *e =
        read && body.n == 1 && body.at[0]->kind == ND_EXPR ? body.at[0]->a : NULL;
    if (e && e->kind == ND_ATTRIBUTE && node_dotted(in->a, e)) { /* a module, or of one */
        ModuleImport im = {.path = name_of(&root->s->names, node_dotted(in->a, e->a)),
                           .member = e->name};
        Py v = py_resolve(in, py_import(in, root, &im, false));
        if (v->kind != PY_UNKNOWN)
            return v;
    }
    bool literal = e && (e->kind == ND_CONSTANT || e->kind == ND_TUPLE ||
                         e->kind == ND_LIST || e->kind == ND_UNARYOP);
    PyFrame frame = {.scope = root->scope}, *outer = in->frame;
    in->frame = &frame;
    in->steps = 0;
    in->budget = PY_FEW_STEPS;
    Py v = literal ? py_eval(in, e) : NULL;
    in->frame = outer;
    bool failed = py_raises(in) || !v || py_lost(v);
    in->raised.type = NULL;
    return failed ? py_str(in, text) : v;
}

static void
read_defines(FrontModule *root)
{
    int n = root->opt ? root->opt->ndefine : 0;
    Arena *a = &root->s->ast;
    root->define = arena_array(a, const char *, n + 1);
    root->define_text = arena_array(a, const char *, n + 1);
    root->define_value = arena_array(a, Py, n + 1);
    root->define_used = arena_array(a, bool, n + 1);
    for (int i = 0; i < n; i++) {
        const char *text = root->opt->defines[i], *eq = define_equals(text);
        size_t len = eq ? (size_t)(eq - text) : strlen(text);
        const char *value = eq ? eq + 1 : "True";
        Py v = define_value(root, arena_strndup(a, value, strlen(value)));
        root->define[i] = arena_strndup(a, text, len);
        root->define_text[i] = arena_strndup(a, value, strlen(value));
        root->define_value[i] = v;
        root->ndefine = i + 1;
    }
}

/* ---- running */

static Interp *
interp_new(FrontModule *root)
{
    Interp *in = arena_new(&root->s->ast, Interp);
    Frame *frame = arena_new(&root->s->ast, Frame);
    in->s = root->s;
    in->a = &root->s->ast;
    in->root = root;
    in->target = root->opt ? root->opt->target : NULL;
    in->none = py_new(in, PY_NONE);
    PyVal *yes = py_new(in, PY_BOOL), *no = py_new(in, PY_BOOL);
    yes->u.i = 1;
    in->yes = yes;
    in->no = no;
    map_init(&in->jit_nodes, in->a);
    map_init(&in->lines, in->a);
    map_init(&in->files, in->a);
    map_init(&in->found, in->a);
    in->sema = arena_new(&root->s->ast, Sema);
    sema_init(in->sema, root, frame);
    in->sema->a = in->a;
    scope_init(&frame->scope, in->a);
    return in;
}

struct Interp *
module_interp(const FrontModule *m)
{
    Interp *in = m->root->interp;
    if (!in->frame) { /* nothing runs: a question of a kernel has a budget of its own */
        in->steps = 0;
        in->budget = PY_MAX_STEPS;
        in->raised.type = NULL;
    }
    return in;
}

static void
run(FrontModule *file)
{
    if (file->state != NOT_RUN)
        return;
    file->state = RUNS_NOW;
    py_run(file->root->interp, file);
    file->state = HAS_RUN;
}

/* What `from x import *` gives; NULL: not this name. */
static Py
star_member(Interp *in, FrontModule *m, int which, Name name)
{
    const PyStar *star = &m->scope->stars.at[which];
    Loc loc = star->what.loc;
    if (!star->from)
        m->scope->stars.at[which].from = py_import(in, m, &star->what, false);
    Py from = py_resolve(in, star->from);
    FrontModule *file = from->kind == PY_MODULE ? from->u.module.file : NULL;
    if (!file) {
        Py v = from->kind == PY_MODULE
                   ? py_module_attribute(in, from, name, loc)
                   : NULL;
        return v && v->kind != PY_UNKNOWN ? v : NULL;
    }
    PyBind *all = pyscope_find(file->file->scope, name_of(&in->s->names, "__all__"));
    if (!all || all->val->kind != PY_LIST || all->val->u.list->lost)
        return name[0] == '_' ? NULL : module_name(file, name);
    for (int i = 0; i < all->val->u.list->n; i++) {
        Py e = all->val->u.list->at[i];
        if (e->kind == PY_STR && strcmp(e->u.str.s, name) == 0)
            return module_name(file, name);
    }
    return NULL;
}

const PyVal *
module_name(FrontModule *view, Name name)
{
    FrontModule *m = view->file;
    Interp *in = module_interp(m);
    run(m);
    PyBind *b = pyscope_find(m->scope, name);
    Py v = NULL;
    if (m->searching || in->depth >= PY_MAX_DEPTH)
        return b ? b->val : NULL;
    m->searching = true;
    in->depth++;
    for (int i = m->scope->stars.n - 1; i >= 0 && !v; i--) {
        if ((b && m->scope->stars.at[i].seq < b->seq) || !py_step(in, 1))
            break;
        v = star_member(in, m, i, name);
    }
    in->depth--;
    m->searching = false;
    return v ? v : b ? b->val : NULL;
}

/* ---- kernels */

const Node *
module_returned(const NodeList *l)
{
    for (int i = 0; i < l->n; i++) {
        const Node *n = l->at[i], *found = NULL;
        if (n->kind == ND_RETURN && n->a &&
            (n->a->kind != ND_CONSTANT || n->a->sub != CK_NONE))
            return n;
        if (n->kind == ND_IF)
            for (int k = 0; k < n->list.n && !found; k++)
                found = module_returned(&n->list.at[k]->body);
        if (!found && n->kind != ND_FUNCTION && n->kind != ND_CLASS) {
            found = module_returned(&n->body);
            found = found ? found : module_returned(&n->orelse);
        }
        if (found)
            return found;
    }
    return NULL;
}

static bool
is_own(const FrontModule *m, Py v)
{
    return v->kind == PY_FUNC && v->u.func->jit && v->u.func->node->kind == ND_FUNCTION &&
           v->u.func->home->src == m->src;
}

/* A later one of that name takes the place of the earlier. */
static void
add_to(FrontModule *m, KernelVec *v, Name name, const PyFunc *fn)
{
    for (int i = 0; i < v->n; i++) {
        if (v->at[i].fn == fn)
            return;
        if (v->at[i].name == name) {
            v->at[i].fn = fn;
            return;
        }
    }
    vec_push(&m->s->ast, v, ((Kernel){name, fn}));
}

static void
add_kernel(FrontModule *view, Name name, const PyFunc *fn)
{
    FrontModule *m = view->file;
    add_to(m, &m->own, name, fn);
    if (!module_returned(&fn->node->body)) {
        add_to(m, &m->kernels, name, fn);
        return;
    }
    for (int i = 0; i < m->kernels.n; i++) /* a helper takes a kernel's place */
        if (m->kernels.at[i].name == name) {
            m->kernels.n--;
            memmove(&m->kernels.at[i], &m->kernels.at[i + 1],
                    sizeof *m->kernels.at * (size_t)(m->kernels.n - i));
        }
}

const Node *
module_own_function(const FrontModule *m, int i)
{
    return i < m->own.n ? m->own.at[i].fn->node : NULL;
}

const PyVal *
module_defined(Interp *in, FrontModule *m, const Node *n, Py v)
{
    (void)in;
    if (is_own(m, v))
        add_kernel(m, n->name, v->u.func);
    return v;
}

/* Functions of a class that no object is made for, as kernels are kept in some files:
   CLASS.f is the kernel CLASS_f. Methods have a first parameter for their object. */
void
module_class_defined(Interp *in, FrontModule *m, Py class_)
{
    const PyClass *k = class_->u.class_;
    for (int i = 0; i < k->body->index.n && !k->is_aggregate && !k->is_tuple; i++) {
        PyBind *b = k->body->index.entries[i].val;
        if (!b->val || !is_own(m, b->val))
            continue;
        const Node *fn = b->val->u.func->node;
        const char *first = fn->list.n ? fn->list.at[0]->name : "";
        if (strcmp(first, "self") == 0 || strcmp(first, "cls") == 0)
            continue;
        const char *full = arena_printf(&m->s->perm, "%s_%s", k->name, b->name);
        b->val = py_renamed(in, b->val, name_of(&m->s->names, full));
        add_kernel(m, b->val->u.func->node->name, b->val->u.func);
    }
}

static bool
is_bound(const FrontModule *m, const PyFunc *fn)
{
    const Map *names = &m->file->scope->index;
    for (int i = 0; i < names->n; i++) {
        const PyBind *b = names->entries[i].val;
        if (b->val && b->val->kind == PY_FUNC && b->val->u.func == fn)
            return true;
    }
    return false;
}

/* An unknown is decided by the first name that it was bound to. */
static Py
named_unknown(Interp *in, Py v, Name name)
{
    if (py_is_name(v->u.unknown->key))
        return v;
    PyVal *copy = py_new(in, PY_UNKNOWN);
    PyUnknown *u = arena_new(in->a, PyUnknown);
    *u = *v->u.unknown;
    u->key = name;
    copy->u.unknown = u;
    return copy;
}

const PyVal *
module_bound(Interp *in, FrontModule *m, const Node *target, Py v)
{
    Name name = target->name;
    Py d = module_has_defines(m) ? module_define(m, name) : NULL;
    if (d)
        return v->kind == PY_CONSTEXPR ? py_constexpr(in, d) : d;
    if (v->kind == PY_CONSTEXPR && v->u.inner->kind == PY_UNKNOWN)
        return py_constexpr(in, named_unknown(in, v->u.inner, name));
    if (v->kind == PY_UNKNOWN)
        return named_unknown(in, v, name);
    if (!is_own(m, v))
        return v;
    if (v->u.func->node->name != name && !is_bound(m, v->u.func))
        v = py_renamed(in, v, name);
    if (v->u.func->node->name == name)
        add_kernel(m, name, v->u.func);
    return v;
}

const Node *
module_function(FrontModule *m, Name name, bool jit)
{
    Py v = module_name(m, name);
    v = v ? py_resolve(module_interp(m), v) : NULL;
    bool is = v && v->kind == PY_FUNC && v->u.func->jit == jit &&
              v->u.func->node->kind == ND_FUNCTION;
    return is ? v->u.func->node : NULL;
}

const PyFunc *
module_jit_object(const FrontModule *m, const Node *fn)
{
    return map_get(&m->root->interp->jit_nodes, fn);
}

FrontModule *
module_home(FrontModule *m, const Node *fn)
{
    const PyFunc *f = module_jit_object(m, fn);
    return f ? f->home : m;
}

const Node *
module_kernel(FrontModule *m, const char *name)
{
    Name wanted = name_of(&m->s->names, name);
    Py v = module_name(m, wanted);
    v = v ? py_resolve(module_interp(m), v) : NULL;
    /* A list of kernels is made before there is a target, which may decide. */
    bool sure = m->root->interp->target != NULL;
    if (sure && v && v->kind == PY_UNKNOWN && v->u.unknown->one && v->u.unknown->other) {
        diag_error(&m->s->diag, v->u.unknown->at[0], MODULE_UNCERTAIN, name);
        module_explain(m, v);
        return NULL;
    }
    if (v && v->kind == PY_FUNC && v->u.func->jit)
        return v->u.func->node;
    /* What the host made of it since may have hidden it. */
    for (int i = m->kernels.n - 1; i >= 0; i--)
        if (strcmp(m->kernels.at[i].name, name) == 0)
            return m->kernels.at[i].fn->node;
    Buf b;
    buf_init(&b, &m->s->perm);
    for (int i = 0; i < m->kernels.n && i < 20; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", m->kernels.at[i].name);
    Loc file = {.src = m->src};
    diag_error(&m->s->diag, file, "there is no kernel '%s'", name);
    front_explain_missing(m, name);
    if (v && v->kind == PY_UNKNOWN)
        module_explain(m, v);
    if (m->kernels.n)
        diag_note(&m->s->diag, file, "the file has %s", b.s);
    return NULL;
}

/* Notes to an error: why a value is not known, and what decides it. */
void
module_explain(FrontModule *m, const PyVal *v)
{
    const PyUnknown *u = v->u.unknown;
    Diag *d = &m->s->diag;
    if (u->one)
        diag_note(d, u->at[0], "this is one");
    if (u->other)
        diag_note(d, u->at[1], "this is another");
    if (u->loc.line && (u->one || u->other))
        diag_note(d, u->loc, "it depends on this");
    else if (u->loc.line)
        diag_note(d, u->loc, "%s", u->why);
    if (u->key && u->loc.line)
        diag_note(d, u->loc, "-D '%s=VALUE' decides it", u->key);
    if (u->loc.src)
        module_explain_environment(m, u->loc.src);
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
    m->file = m;
    const char *stage = s->diag.stage;
    s->diag.stage = "syntax";
    if (!syntax_parse(s, src, &m->body))
        return NULL;
    s->diag.stage = root ? stage : "module";
    if (!root)
        m->interp = interp_new(m);
    m->scope = pyscope_new(m->root->interp, m, NULL);
    if (root) {
        m->next = root->next;
        root->next = m;
        map_set(&root->interp->files, name_of(&s->names, src->path), m);
    } else {
        read_defines(m);
        run(m);
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
    return i >= 0 && i < m->kernels.n ? m->kernels.at[i].name : NULL;
}

void
front_print_ast(const FrontModule *m, Buf *out)
{
    ast_print(out, &m->body);
}

FrontModule *
module_cached(FrontModule *from, const char *path)
{
    FrontModule *root = from->root;
    return strcmp(root->src->path, path) == 0
               ? root
               : map_get(&root->interp->files, name_of(&from->s->names, path));
}

FrontModule *
module_add(FrontModule *from, const Source *src)
{
    return from->root->interp->files.n < MAX_FILES
               ? load(from->s, src, from->opt, from->root)
               : NULL;
}

bool
front_kernel_is(const char *name, const char *asked)
{
    while (*name && (*name == *asked || (*name == '_' && *asked == '.')))
        name++, asked++;
    return !*name && !*asked;
}

/* Which arms of the top level's `if` and `try` run when Python loads the file.
   Conditions are evaluated as far as constants, `hasattr` and the like go; the
   environment counts as empty, so that the same input gives the same code everywhere. An
   import raises ImportError when its file is not found and it is not a module that
   every Python has. The rest is not known; what depends on it the caller refuses. */
#include "frontend/guard.h"

#include "frontend/sema.h"
#include "frontend/spec.h"

#include <string.h>

/* 1, 0, or -1 when it is not known. */
static int
truth(FrontModule *m, const Node *cond)
{
    Session *session = module_session(m);
    ArenaMark mark = arena_mark(&session->tmp);
    Sema s;
    Frame frame;
    sema_init(&s, m, &frame);
    s.host++;
    Val v = eval_quiet(&s, cond);
    int known = val_is_error(v) || !val_is_const(v) ? -1 : val_truth(v);
    arena_reset(&session->tmp, mark);
    return known;
}

static Decision
decide_if(FrontModule *m, const Guard *g)
{
    const NodeList *arms = &g->stmt->list;
    bool sure = true;
    for (int i = 0; i < arms->n; i++) {
        int t = truth(m, arms->at[i]->a);
        if (i == g->part)
            return !t ? RUNS_NOT : t > 0 && sure ? RUNS : RUNS_MAYBE;
        if (t > 0)
            return RUNS_NOT;
        sure &= t == 0;
    }
    return sure ? RUNS : RUNS_MAYBE;
}

/* Top-level packages that a Python which runs Triton has. */
static bool
is_standard(Name path)
{
    static const char *const names[] = {
        "abc", "argparse", "ast", "collections", "contextlib", "copy", "ctypes",
        "dataclasses", "datetime", "enum", "functools", "gc", "hashlib", "importlib",
        "inspect", "io", "itertools", "json", "logging", "math", "numpy", "operator",
        "os", "packaging", "pathlib", "pickle", "platform", "random", "re", "shutil",
        "string", "struct", "subprocess", "sys", "tempfile", "textwrap", "threading",
        "time", "torch", "traceback", "types", "typing", "typing_extensions", "unittest",
        "uuid", "warnings", "weakref",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(path, names[i]) == 0)
            return true;
    return false;
}

/* Does an import of this raise ImportError? 1, 0, or -1. */
static int
import_raises(FrontModule *m, Name path, int level)
{
    if (!path || level)
        return module_load_import(m, path, level) ? 0 : -1;
    if (is_standard(path))
        return 0;
    size_t top = strcspn(path, ".");
    if (top == strlen("triton") && strncmp(path, "triton", top) == 0)
        return module_is_known(path) ? 0 : -1;
    if (path[top] && is_standard(name_intern(&module_session(m)->names, path, top)))
        return -1;
    return module_load_import(m, path, 0) ? 0 : 1;
}

static int
statement_raises(FrontModule *m, const Node *n)
{
    int raises = 0;
    switch (n->kind) {
    case ND_IMPORT_FROM: return import_raises(m, n->name, n->level);
    case ND_IMPORT:
        for (int i = 0; i < n->list.n && raises <= 0; i++) {
            int r = import_raises(m, n->list.at[i]->name, 0);
            raises = r ? r : raises;
        }
        return raises;
    case ND_FUNCTION:
    case ND_PASS: return 0;
    case ND_ASSIGN: return n->a->kind == ND_CONSTANT || n->a->kind == ND_NAME ? 0 : -1;
    default: return -1;
    }
}

static bool
names_import_error(const Node *type)
{
    static const char *const names[] = {"ImportError", "ModuleNotFoundError", "Exception",
                                        "BaseException"};
    if (!type)
        return true;
    for (int i = 0; type->kind == ND_TUPLE && i < type->list.n; i++)
        if (type->list.at[i]->kind != ND_TUPLE && names_import_error(type->list.at[i]))
            return true;
    for (size_t i = 0; type->kind == ND_NAME && i < sizeof names / sizeof *names; i++)
        if (strcmp(type->name, names[i]) == 0)
            return true;
    return false;
}

static Decision
decide_try(FrontModule *m, const Guard *g)
{
    const Node *n = g->stmt;
    int raises = 0, at = 0; /* statement `at` raises, or may */
    bool sure = true;
    for (at = 0; at < n->body.n; at++) {
        raises = statement_raises(m, n->body.at[at]);
        if (raises > 0)
            break;
        sure &= raises == 0;
    }
    bool whole = at == n->body.n;
    if (g->part == GUARD_BODY && !whole && g->at >= at)
        return RUNS_NOT;
    if (g->part == GUARD_BODY || (g->part == GUARD_ELSE && whole))
        return sure ? RUNS : RUNS_MAYBE;
    if (g->part == GUARD_ELSE)
        return RUNS_NOT;
    if (whole)
        return sure ? RUNS_NOT : RUNS_MAYBE;
    for (int i = 0; i < g->part; i++)
        if (names_import_error(n->list.at[i]->a))
            return sure ? RUNS_NOT : RUNS_MAYBE;
    bool caught = names_import_error(n->list.at[g->part]->a);
    return caught && sure ? RUNS : sure ? RUNS_NOT : RUNS_MAYBE;
}

Decision
guard_decide(FrontModule *m, const Guard *g)
{
    Decision all = RUNS;
    for (; g && all != RUNS_NOT; g = g->up) {
        Decision d = g->stmt->kind == ND_IF ? decide_if(m, g) : decide_try(m, g);
        all = d < all ? d : all;
    }
    return all;
}

/* What a file lacks. Why it has no such kernel: a function of that name without its
   decorator, or, in a file without kernels, functions that do what only kernels do. Which
   variables of the environment may decide what it does. */
#include "frontend/module.h"
#include "frontend/py.h"
#include "frontend/spec.h"

#include "ir/base/util.h"

#include <string.h>

/* Does it call anything of triton.language? */
static bool
uses_language(const Node *n, Name tl, int depth)
{
    if (!n || depth > AST_MAX_DEPTH)
        return false;
    if (n->kind == ND_CALL && n->a->kind == ND_ATTRIBUTE && n->a->a->kind == ND_NAME &&
        n->a->a->name == tl)
        return true;
    const NodeList *lists[] = {&n->list, &n->body, &n->orelse, &n->more};
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < lists[k]->n; i++)
            if (uses_language(lists[k]->at[i], tl, depth + 1))
                return true;
    return uses_language(n->a, tl, depth + 1) || uses_language(n->b, tl, depth + 1) ||
           uses_language(n->c, tl, depth + 1);
}

/* A name of the file for triton.language; NULL: it has none. */
static Name
language_name(FrontModule *m, const Map *names)
{
    for (int i = 0; i < names->n; i++) {
        const PyBind *b = names->entries[i].val;
        Py v = b->val ? py_resolve(module_interp(m), b->val) : NULL;
        if (v && v->kind == PY_MODULE && !v->u.module.file &&
            strcmp(v->u.module.path, "triton.language") == 0)
            return b->name;
    }
    return NULL;
}

void
front_explain_helpers(FrontModule *m, const char *name)
{
    enum { MAX_NOTES = 4 };
    for (int i = 0, notes = 0; notes < MAX_NOTES; i++) {
        const Node *fn = module_own_function(m, i);
        if (!fn)
            return;
        const Node *at = module_returned(&fn->body);
        if (!at || (name && strcmp(fn->name, name) != 0))
            continue;
        diag_note(&module_session(m)->diag, at->loc,
                  "'%s' returns a value, so it is a helper: a kernel stores its results",
                  fn->name);
        notes++;
    }
}

void
front_explain_missing(FrontModule *m, const char *name)
{
    enum { MAX_NOTES = 4 };
    Diag *d = &module_session(m)->diag;
    const Map *names = &module_scope(m)->index;
    Name tl = language_name(m, names);
    for (int i = 0, notes = 0; i < names->n && notes < MAX_NOTES; i++) {
        const PyBind *b = names->entries[i].val;
        const PyVal *v = b->val;
        if (name && strcmp(b->name, name) != 0)
            continue;
        if (!v || v->kind != PY_FUNC || v->u.func->jit ||
            v->u.func->node->kind != ND_FUNCTION)
            continue;
        const Node *fn = v->u.func->node;
        bool body = name != NULL;
        for (int k = 0; tl && k < fn->body.n && !body; k++)
            body = uses_language(fn->body.at[k], tl, 0);
        if (!body)
            continue;
        diag_note(d, fn->loc, "no @triton.jit before '%s'", b->name);
        notes++;
    }
}

/* "NAME" behind `environ.get(`, `environ[` or `getenv(`; NULL: none. */
static const char *
environment_name(Session *s, const char *p, const char *word)
{
    p += strlen(word);
    if (strncmp(p, ".get", 4) == 0)
        p += 4;
    if (*p != '(' && *p != '[')
        return NULL;
    p++;
    if (*p != '\'' && *p != '"')
        return NULL;
    size_t n = strcspn(p + 1, "'\"\n");
    return n && p[n + 1] == *p ? arena_strndup(&s->perm, p + 1, n) : NULL;
}

void
module_explain_environment(FrontModule *m, const Source *src)
{
    enum { MAX_NOTES = 3 };
    static const char *const words[] = {"environ", "getenv"};
    Session *s = module_session(m);
    int notes = 0;
    for (int k = 0; k < COUNT_OF(words); k++)
        for (const char *p = src->text; (p = strstr(p, words[k])) != NULL; p++) {
            const char *name = environment_name(s, p, words[k]);
            if (!name || module_define(m, name) || notes++ >= MAX_NOTES)
                continue;
            int line = 1, col = 1;
            for (const char *q = src->text; q < p; q++) {
                line += *q == '\n';
                col = *q == '\n' ? 1 : col + 1;
            }
            diag_note(&s->diag, (Loc){.src = src, .line = line, .col = col},
                      "or the environment, -D '%s=VALUE'", name);
        }
}

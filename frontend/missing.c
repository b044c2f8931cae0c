/* Why a file has no such kernel: a function of that name without its decorator, or, in a
   file without kernels, functions that do what only kernels do. */
#include "frontend/module.h"
#include "frontend/py.h"
#include "frontend/spec.h"

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

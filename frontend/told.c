/* Constants that launches pass, for guesses. `k[grid](x, BLOCK=64)` says what BLOCK is,
   and so does `BLOCK = 64` in a host function that passes it on, usually under the same
   name. Nothing is evaluated. What a launch names counts more than a variable, and a
   variable counts for nothing if all launches leave the parameter to a configuration. */
#include "frontend/told.h"

#include "frontend/ast.h"
#include "frontend/spec.h"
#include "ir/base/util.h"

#include <string.h>

typedef struct Search {
    Name kernel, param, other; /* other: a variable that the launch hands on */
    int at;                    /* the parameter's place */
    bool launched, given;      /* given: by a launch, or nobody knows */
    const Node *launch, *set;  /* CONSTANTs */
} Search;

static bool
is_number(const Node *n)
{
    return n && n->kind == ND_CONSTANT &&
           ((n->sub == CK_INT && !n->big) || n->sub == CK_TRUE || n->sub == CK_FALSE);
}

/* name[grid](..) */
static bool
is_launch(const Node *n, Name kernel)
{
    return n->kind == ND_CALL && n->a->kind == ND_SUBSCRIPT && n->a->a->name &&
           strcmp(n->a->a->name, kernel) == 0;
}

static void
note_launch(Search *s, const Node *n)
{
    const Node *v = NULL;
    bool starred = false;
    for (int i = 0; i < n->list.n && i <= s->at; i++) {
        starred |= n->list.at[i]->kind == ND_STARRED;
        v = i == s->at && !starred ? n->list.at[i] : NULL;
    }
    for (int i = 0; i < n->more.n; i++) {
        const Node *k = n->more.at[i];
        starred |= !k->name;
        v = k->name && strcmp(k->name, s->param) == 0 ? k->a : v;
    }
    s->launched = true;
    s->given |= v || starred;
    if (v && is_number(v) && !s->launch)
        s->launch = v;
    else if (v && v->kind == ND_NAME && !s->other)
        s->other = v->name;
}

static void
look(Search *s, const Node *n)
{
    if (is_launch(n, s->kernel))
        note_launch(s, n);
    if (n->kind != ND_ASSIGN || s->set || !is_number(n->a))
        return;
    for (int i = 0; i < n->list.n; i++) {
        const Node *to = n->list.at[i];
        if (to->kind == ND_NAME && (strcmp(to->name, s->param) == 0 ||
                                    (s->other && strcmp(to->name, s->other) == 0)))
            s->set = n->a;
    }
}

static void
walk(Search *s, const Node *n, int depth)
{
    if (!n || depth > AST_MAX_DEPTH || s->launch)
        return;
    if (n->kind == ND_FUNCTION && find_decorator(n, "jit"))
        return; /* names of a kernel's own */
    look(s, n);
    const NodeList *lists[] = {&n->list, &n->body, &n->orelse, &n->more};
    for (int k = 0; k < COUNT_OF(lists); k++)
        for (int i = 0; i < lists[k]->n; i++)
            walk(s, lists[k]->at[i], depth + 1);
    walk(s, n->a, depth + 1);
    walk(s, n->b, depth + 1);
    walk(s, n->c, depth + 1);
}

const char *
told_constant(FrontModule *m, Arena *a, const char *kernel, Name param,
              int at)
{
    const NodeList *all = module_statements(m);
    Search s = {.kernel = kernel, .param = param, .at = at};
    for (int round = 0; round < 2; round++) { /* a variable may be set in front */
        for (int i = 0; i < all->n; i++)
            walk(&s, all->at[i], 0);
        if (s.launch || s.set || !s.other)
            break;
    }
    const Node *n = s.launch                   ? s.launch
                    : s.launched && !s.given ? NULL
                                             : s.set;
    if (!n)
        return NULL;
    return n->sub == CK_TRUE    ? "True"
           : n->sub == CK_FALSE ? "False"
                                : arena_printf(a, "%llu", (unsigned long long)n->v.u);
}

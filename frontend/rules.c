/* What Python's grammar refuses and the shape of ours does not: targets that nothing can
   be assigned to, and the order of parameters and arguments. Its parser does it in rules
   of their own as well, to say what is wrong. */
#include "frontend/grammar.h"

static void
check_target(Parser *p, const Node *t, int depth)
{
    if (depth > MAX_NESTING)
        return;
    switch ((int)t->kind) {
    case ND_NAME:
    case ND_ATTRIBUTE:
    case ND_SUBSCRIPT: return;
    case ND_STARRED: check_target(p, t->a, depth + 1); return;
    case ND_TUPLE:
    case ND_LIST:
        for (int i = 0, stars = 0; i < t->list.n; i++) {
            stars += t->list.at[i]->kind == ND_STARRED;
            if (stars > 1 && t->list.at[i]->kind == ND_STARRED)
                parse_error(p, t->list.at[i]->loc,
                            "one target of several can be starred");
            check_target(p, t->list.at[i], depth + 1);
        }
        return;
    default:
        parse_error(p, t->loc, "cannot assign to this%s",
                    t->kind == ND_COMPARE ? " comparison: '=' assigns, '==' compares"
                                          : "");
    }
}

void
rules_target(Parser *p, const Node *t)
{
    check_target(p, t, 0);
}

void
rules_one_target(Parser *p, const Node *t, const char *why)
{
    if (t->kind == ND_TUPLE || t->kind == ND_LIST || t->kind == ND_STARRED)
        parse_error(p, t->loc, "%s", why);
    check_target(p, t, 0);
}

static void
check_delete(Parser *p, const Node *t, int depth)
{
    if (depth > MAX_NESTING)
        return;
    if (t->kind == ND_TUPLE || t->kind == ND_LIST)
        for (int i = 0; i < t->list.n; i++)
            check_delete(p, t->list.at[i], depth + 1);
    else if (t->kind != ND_NAME && t->kind != ND_ATTRIBUTE && t->kind != ND_SUBSCRIPT)
        parse_error(p, t->loc, "cannot delete this");
}

void
rules_delete(Parser *p, const NodeList *targets)
{
    for (int i = 0; i < targets->n; i++)
        check_delete(p, targets->at[i], 0);
}

/* `*` and `/` alone are no parameters: what they say is kept with those around them. */
static void
drop_separators(NodeList *l)
{
    bool named_only = false;
    int n = 0;
    for (int i = 0; i < l->n; i++) {
        Node *param = l->at[i];
        named_only |= param->sub == PK_BARE_STAR || param->sub == PK_ARGS;
        param->named_only = named_only && param->sub == PK_PLAIN;
        if (param->sub != PK_BARE_STAR && param->sub != PK_SLASH)
            l->at[n++] = param;
    }
    l->n = n;
}

void
rules_params(Parser *p, NodeList *l)
{
    const Node *star = NULL, *kwargs = NULL, *slash = NULL;
    bool any_default = false;
    for (int i = 0; i < l->n; i++) {
        const Node *n = l->at[i];
        if (kwargs) {
            parse_error(p, n->loc, "a parameter cannot follow '**%s'", kwargs->name);
            return;
        }
        switch ((ParamKind)n->sub) {
        case PK_PLAIN:
            if (!star && any_default && !n->b)
                parse_error(p, n->loc, "a parameter without default cannot follow one "
                                       "with a default");
            any_default |= n->b != NULL;
            break;
        case PK_SLASH:
            if (slash || star || i == 0)
                parse_error(p, n->loc, slash ? "'/' can stand only once"
                                       : star ? "'/' must be ahead of '*'"
                                              : "a parameter must precede '/'");
            slash = n;
            break;
        case PK_ARGS:
        case PK_BARE_STAR:
            if (star)
                parse_error(p, n->loc, "'*' can stand only once");
            star = n;
            if (n->sub == PK_BARE_STAR &&
                (i + 1 == l->n || l->at[i + 1]->sub != PK_PLAIN))
                parse_error(p, n->loc, "named parameters must follow '*'");
            break;
        case PK_KWARGS: kwargs = n; break;
        }
    }
    drop_separators(l);
}

void
rules_args(Parser *p, const NodeList *args)
{
    bool named = false, unpacked = false;
    for (int i = 0; i < args->n; i++) {
        const Node *arg = args->at[i];
        if (arg->kind == ND_KEYWORD) {
            named = true;
            unpacked |= !arg->name;
        } else if (arg->kind == ND_STARRED ? unpacked : named) {
            parse_error(p, arg->loc,
                        "a positional argument cannot follow keyword arguments");
        } else if (arg->kind == ND_COMPREHENSION && arg->sub == COMP_GENERATOR &&
                   !arg->paren && args->n > 1) {
            parse_error(p, arg->loc,
                        "a generator beside other arguments needs parentheses");
        }
    }
}

/* Constructors of syntax tree nodes for parse.y. */
#include "frontend/grammar.h"

#include "ir/base/util.h"

#include <stdarg.h>
#include <string.h>

Loc
loc_span(Loc from, Loc to)
{
    from.end_line = to.end_line;
    from.end_col = to.end_col;
    return from;
}

Loc
loc_after(Loc l)
{
    return (Loc){l.src, l.end_line, l.end_col, l.end_line, l.end_col, NULL};
}

void
parse_error(Parser *p, Loc loc, const char *fmt, ...)
{
    Buf b;
    if (p->errors++)
        return; /* one error a block: what follows it is guesswork */
    buf_init(&b, &p->s->perm);
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    diag_error(&p->s->diag, loc, "%s", b.s);
}

/* Outside of kernels nothing depends on what sdc cannot hold: the block is skipped. */
void
parse_limit(Parser *p, Loc loc, const char *fmt, ...)
{
    Buf b;
    p->limits++;
    if (p->host)
        return;
    buf_init(&b, &p->s->ast);
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    parse_error(p, loc, "%s", b.s);
}

Node *
ast_new(Parser *p, NodeKind k, Loc loc)
{
    Node *n = arena_new(&p->s->ast, Node);
    n->kind = k;
    n->loc = loc;
    return n;
}

void
ast_push(Parser *p, NodeList *l, Node *n)
{
    if (l->n == l->cap) {
        int cap = l->cap ? l->cap * 2 : 4;
        Node **at = arena_array(&p->s->ast, Node *, cap);
        if (l->n)
            memcpy(at, l->at, (size_t)l->n * sizeof *at);
        l->at = at;
        l->cap = cap;
    }
    l->at[l->n++] = n;
}

void
ast_append(Parser *p, NodeList *to, const NodeList *from)
{
    for (int i = 0; i < from->n; i++)
        ast_push(p, to, from->at[i]);
}

NodeList
ast_list1(Parser *p, Node *n)
{
    NodeList l = {0};
    ast_push(p, &l, n);
    return l;
}

static int
deeper(int depth, const Node *child)
{
    return child && child->depth >= depth ? child->depth + 1 : depth;
}

static int
deeper_list(int depth, const NodeList *l)
{
    for (int i = 0; i < l->n; i++)
        depth = deeper(depth, l->at[i]);
    return depth;
}

Node *
ast_done(Parser *p, Node *n)
{
    int d = deeper(deeper(deeper(1, n->a), n->b), n->c);
    d = deeper_list(deeper_list(d, &n->list), &n->body);
    d = deeper_list(deeper_list(d, &n->orelse), &n->more);
    if (d > AST_MAX_DEPTH) {
        parse_limit(p, n->loc,
                    "nested deeper than %d levels: give parts a name of their own",
                    AST_MAX_DEPTH);
        d = AST_MAX_DEPTH;
    }
    n->depth = (uint16_t)d;
    return n;
}

Node *
ast_leaf(Parser *p, NodeKind k, Loc loc)
{
    return ast_done(p, ast_new(p, k, loc));
}

Node *
ast_unary(Parser *p, NodeKind k, Loc loc, Node *a)
{
    return ast_binary(p, k, loc, a, NULL);
}

Node *
ast_binary(Parser *p, NodeKind k, Loc loc, Node *a, Node *b)
{
    Node *n = ast_new(p, k, loc);
    n->a = a;
    n->b = b;
    return ast_done(p, n);
}

Node *
ast_with_list(Parser *p, NodeKind k, Loc loc, const NodeList *l)
{
    Node *n = ast_new(p, k, loc);
    n->list = *l;
    return ast_done(p, n);
}

/* ---- statements */

Node *
ast_assign(Parser *p, Loc loc, const NodeList *targets, Node *value)
{
    Node *n = ast_new(p, ND_ASSIGN, loc);
    n->list = *targets;
    n->a = value;
    for (int i = 0; i < targets->n; i++)
        rules_target(p, targets->at[i]);
    return ast_done(p, n);
}

Node *
ast_augassign(Parser *p, Loc loc, Node *target, int sign, Node *value)
{
    Node *n = ast_binary(p, ND_AUG_ASSIGN, loc, target, value);
    n->sub = (uint8_t)sign;
    rules_one_target(p, target, "an augmented assignment has one target");
    return n;
}

Node *
ast_annassign(Parser *p, Loc loc, Node *target, Node *type, Node *value)
{
    Node *n = ast_new(p, ND_ANN_ASSIGN, loc);
    n->a = target;
    n->b = type;
    n->c = value;
    rules_one_target(p, target, "only one name can be annotated");
    return ast_done(p, n);
}

Node *
ast_yield_from(Parser *p, Loc loc, Node *a)
{
    Node *n = ast_unary(p, ND_YIELD, loc, a);
    n->name = name_of(&p->s->names, "from");
    return n;
}

Dotted
ast_dotted1(Parser *p, Name n)
{
    (void)p;
    return (Dotted){n};
}

Dotted
ast_dotted(Parser *p, const Dotted *d, Name n)
{
    if (strlen(d->name) > 4 * MAX_IDENTIFIER)
        return *d; /* no module is called that; keeps a hostile chain linear */
    return (Dotted){name_of(&p->s->names, arena_printf(&p->s->ast, "%s.%s", d->name, n))};
}

Node *
ast_alias(Parser *p, Loc loc, Name dotted, Name as, Loc as_loc)
{
    Node *n = ast_new(p, ND_ALIAS, loc);
    n->name = dotted;
    n->a = as ? ast_name(p, as_loc, as) : NULL;
    return ast_done(p, n);
}

Node *
ast_from(Parser *p, Loc loc, int level, Name module, const NodeList *names)
{
    Node *n = ast_with_list(p, ND_IMPORT_FROM, loc, names);
    n->level = level;
    n->name = module;
    return n;
}

Node *
ast_arm(Parser *p, Loc loc, Node *cond, const NodeList *body)
{
    Node *n = ast_new(p, ND_ARM, loc);
    n->a = cond;
    n->body = *body;
    return ast_done(p, n);
}

Node *
ast_if(Parser *p, Loc loc, const NodeList *arms, const NodeList *orelse)
{
    Node *n = ast_new(p, ND_IF, loc);
    n->list = *arms;
    n->orelse = *orelse;
    return ast_done(p, n);
}

Node *
ast_for(Parser *p, Loc loc, int is_async, Node *target, Node *iter, const NodeList *body,
        const NodeList *orelse)
{
    Node *n = ast_new(p, ND_FOR, loc);
    n->is_async = is_async;
    n->a = target;
    n->b = iter;
    n->body = *body;
    n->orelse = *orelse;
    rules_target(p, target);
    return ast_done(p, n);
}

Node *
ast_while(Parser *p, Loc loc, Node *cond, const NodeList *body, const NodeList *orelse)
{
    Node *n = ast_new(p, ND_WHILE, loc);
    n->a = cond;
    n->body = *body;
    n->orelse = *orelse;
    return ast_done(p, n);
}

Node *
ast_with(Parser *p, Loc loc, int is_async, const NodeList *items, const NodeList *body)
{
    Node *n = ast_new(p, ND_WITH, loc);
    n->is_async = is_async;
    n->list = *items;
    n->body = *body;
    return ast_done(p, n);
}

Node *
ast_try(Parser *p, Loc loc, const NodeList *body, const NodeList *handlers,
        const NodeList *orelse, const NodeList *finally)
{
    Node *n = ast_new(p, ND_TRY, loc);
    n->body = *body;
    if (handlers)
        n->list = *handlers;
    for (int i = 1; i < n->list.n; i++)
        if (n->list.at[i]->sub != n->list.at[0]->sub)
            parse_error(p, n->list.at[i]->loc, "one 'try' has either 'except' or "
                                               "'except*'");
    if (orelse)
        n->orelse = *orelse;
    n->more = *finally;
    return ast_done(p, n);
}

Node *
ast_delete(Parser *p, Loc loc, const NodeList *targets)
{
    rules_delete(p, targets);
    return ast_with_list(p, ND_DELETE, loc, targets);
}

Node *
ast_with_item(Parser *p, Loc loc, Node *a, Node *target)
{
    if (target)
        rules_target(p, target);
    return ast_binary(p, ND_WITH_ITEM, loc, a, target);
}

Node *
ast_match(Parser *p, Loc loc, Node *subject, const NodeList *cases)
{
    Node *n = ast_new(p, ND_MATCH, loc);
    n->a = subject;
    n->list = *cases;
    return ast_done(p, n);
}

Node *
ast_case(Parser *p, Loc loc, Node *pattern, Node *guard, const NodeList *body)
{
    Node *n = ast_new(p, ND_CASE, loc);
    n->a = pattern;
    n->b = guard;
    n->body = *body;
    return ast_done(p, n);
}

Node *
ast_type(Parser *p, Loc loc, Name name, const NodeList *params, Node *type)
{
    Node *n = ast_new(p, ND_TYPE_ALIAS, loc);
    n->name = name;
    n->list = *params;
    n->a = type;
    return ast_done(p, n);
}

/* except* */
Node *
ast_group(Parser *p, Node *handler)
{
    (void)p;
    handler->sub = 1;
    return handler;
}

Node *
ast_handler(Parser *p, Loc loc, Node *type, Name name, const NodeList *body)
{
    Node *n = ast_new(p, ND_HANDLER, loc);
    n->a = type;
    n->name = name;
    n->body = *body;
    return ast_done(p, n);
}

/* The place of a definition is its name: what messages about it point at. */
Node *
ast_function(Parser *p, Loc loc, int is_async, Name name, Loc name_loc,
             const NodeList *params, Node *returns, const NodeList *body)
{
    Node *n = ast_new(p, ND_FUNCTION, name_loc);
    (void)loc;
    n->is_async = is_async;
    n->name = name;
    n->list = *params;
    n->a = returns;
    n->body = *body;
    return ast_done(p, n);
}

Node *
ast_class(Parser *p, Loc loc, Name name, const NodeList *args, const NodeList *body)
{
    Node *n = ast_new(p, ND_CLASS, loc);
    n->name = name;
    if (args)
        n->list = *args;
    n->body = *body;
    return ast_done(p, n);
}

Node *
ast_decorate(Parser *p, Loc loc, const NodeList *decorators, Node *def)
{
    (void)loc;
    def->more = *decorators;
    return ast_done(p, def);
}

Node *
ast_param(Parser *p, Loc loc, ParamKind kind, Name name, Node *type, Node *value)
{
    Node *n = ast_binary(p, ND_PARAM, loc, type, value);
    n->sub = (uint8_t)kind;
    n->name = name;
    return n;
}

/* ---- expressions */

Node *
ast_name(Parser *p, Loc loc, Name name)
{
    Node *n = ast_leaf(p, ND_NAME, loc);
    n->name = name;
    return n;
}

Node *
ast_constant(Parser *p, Loc loc, ConstantKind kind)
{
    Node *n = ast_leaf(p, ND_CONSTANT, loc);
    n->sub = (uint8_t)kind;
    return n;
}

Node *
ast_tuple(Parser *p, Loc loc, const NodeList *l, bool comma)
{
    if (l->n == 1 && !comma) {
        if (l->at[0]->kind == ND_STARRED)
            parse_error(p, loc, "a starred expression needs a list around it");
        return l->at[0];
    }
    return ast_with_list(p, ND_TUPLE, loc, l);
}

Node *
ast_paren(Parser *p, Loc loc, Node *n)
{
    (void)p;
    if (n->kind == ND_TUPLE)
        n->loc = loc;
    n->paren = true;
    return n;
}

Node *
ast_named(Parser *p, Loc loc, Name name, Node *value)
{
    Node *n = ast_unary(p, ND_NAMED_EXPR, loc, value);
    n->name = name;
    return n;
}

Node *
ast_ifexp(Parser *p, Loc loc, Node *cond, Node *yes, Node *no)
{
    Node *n = ast_new(p, ND_IFEXP, loc);
    n->a = cond;
    n->b = yes;
    n->c = no;
    return ast_done(p, n);
}

Node *
ast_lambda(Parser *p, Loc loc, const NodeList *params, Node *body)
{
    Node *n = ast_new(p, ND_LAMBDA, loc);
    n->list = *params;
    n->a = body;
    return ast_done(p, n);
}

/* a and b and c is one node; so is a < b <= c. */
Node *
ast_bool(Parser *p, Loc loc, OpSign s, Node *x, Node *y)
{
    if (x->kind == ND_BOOLOP && x->sub == s && !x->paren) {
        ast_push(p, &x->list, y);
        x->loc = loc;
        x->depth = (uint16_t)min_i64(deeper(x->depth, y), AST_MAX_DEPTH);
        return x;
    }
    Node *n = ast_new(p, ND_BOOLOP, loc);
    n->sub = (uint8_t)s;
    n->list = ast_list1(p, x);
    ast_push(p, &n->list, y);
    return ast_done(p, n);
}

Node *
ast_compare(Parser *p, Loc loc, OpSign s, Node *x, Node *y)
{
    Node *n = x;
    if (x->kind != ND_COMPARE || x->paren) {
        n = ast_new(p, ND_COMPARE, loc);
        n->a = x;
    }
    if (is_pow2(n->list.n) || !n->list.n) { /* signs grow when their number doubles */
        OpSign *signs = arena_array(&p->s->ast, OpSign, n->list.n ? 2 * n->list.n : 1);
        if (n->list.n)
            memcpy(signs, n->signs, (size_t)n->list.n * sizeof *signs);
        n->signs = signs;
    }
    n->signs[n->list.n] = s;
    ast_push(p, &n->list, y);
    n->loc = loc;
    n->depth = (uint16_t)min_i64(deeper(deeper(n->depth, x == n ? NULL : x), y),
                                 AST_MAX_DEPTH);
    return n;
}

Node *
ast_binop(Parser *p, Loc loc, OpSign s, Node *x, Node *y)
{
    Node *n = ast_binary(p, ND_BINOP, loc, x, y);
    n->sub = (uint8_t)s;
    return n;
}

Node *
ast_sign(Parser *p, Loc loc, OpSign s, Node *x)
{
    Node *n = ast_unary(p, ND_UNARYOP, loc, x);
    n->sub = (uint8_t)s;
    return n;
}

Node *
ast_attribute(Parser *p, Loc loc, Node *x, Name name)
{
    Node *n = ast_unary(p, ND_ATTRIBUTE, loc, x);
    n->name = name;
    return n;
}

Node *
ast_call(Parser *p, Loc loc, Node *fn, const NodeList *args)
{
    Node *n = ast_new(p, ND_CALL, loc);
    n->a = fn;
    rules_args(p, args);
    for (int i = 0; i < args->n; i++)
        ast_push(p, args->at[i]->kind == ND_KEYWORD ? &n->more : &n->list, args->at[i]);
    return ast_done(p, n);
}

Node *
ast_keyword(Parser *p, Loc loc, Name name, Node *value)
{
    Node *n = ast_unary(p, ND_KEYWORD, loc, value);
    n->name = name;
    return n;
}

Node *
ast_subscript(Parser *p, Loc loc, Node *x, const NodeList *index, Loc index_loc,
              bool comma)
{
    Node *i = index->n == 1 && !comma ? index->at[0]
                                      : ast_with_list(p, ND_TUPLE, index_loc, index);
    return ast_binary(p, ND_SUBSCRIPT, loc, x, i);
}

Node *
ast_slice(Parser *p, Loc loc, Node *from, Node *to, Node *step)
{
    Node *n = ast_new(p, ND_SLICE, loc);
    n->a = from;
    n->b = to;
    n->c = step;
    return ast_done(p, n);
}

Node *
ast_dict(Parser *p, Loc loc, const NodeList *items)
{
    Node *n = ast_new(p, ND_DICT, loc);
    for (int i = 0; i + 1 < items->n; i += 2) {
        ast_push(p, &n->list, items->at[i]);
        ast_push(p, &n->more, items->at[i + 1]);
    }
    return ast_done(p, n);
}

Node *
ast_comp(Parser *p, Loc loc, CompKind kind, Node *elem, Node *value, const NodeList *fors)
{
    Node *n = ast_new(p, ND_COMPREHENSION, loc);
    n->sub = (uint8_t)kind;
    n->a = elem;
    n->b = value;
    n->list = *fors;
    return ast_done(p, n);
}

Node *
ast_generator(Parser *p, Loc loc, int is_async, Node *target, Node *iter,
              const NodeList *conditions)
{
    Node *n = ast_new(p, ND_GENERATOR, loc);
    n->is_async = is_async;
    n->a = target;
    n->b = iter;
    n->list = *conditions;
    rules_target(p, target);
    return ast_done(p, n);
}

Node *
ast_strings(Parser *p, Loc loc, const NodeList *tokens)
{
    return string_decode(p, loc, tokens);
}

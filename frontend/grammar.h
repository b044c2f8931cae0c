/* The functions that actions of parse.y call: a constructor for each shape of node. Each
   returns a finished node (ast_done was called); NodeLists are passed by pointer and
   copied. */
#ifndef SDC_FRONTEND_GRAMMAR_H
#define SDC_FRONTEND_GRAMMAR_H

#include "frontend/syntax.h"

/* The next token for the parser: its kind, 0 at the end, its place and its value. */
int grammar_next(Parser *p, Loc *loc, Node **node, Name *name);
/* A syntax error: token `found` stands where one of wanted[n] is possible. */
void grammar_report(Parser *p, Loc at, const char *found, const char *const *wanted,
                    int n);

Loc loc_span(Loc from, Loc to); /* from the beginning of one to the end of the other */
Loc loc_after(Loc l);           /* the place right behind l */

/* rules.c: errors for what fits the grammar but Python refuses, such as `f() = 1`. */
void rules_target(Parser *p, const Node *t);
void rules_one_target(Parser *p, const Node *t, const char *why);
void rules_delete(Parser *p, const NodeList *targets);
void rules_params(Parser *p, NodeList *l);
void rules_args(Parser *p, const NodeList *args);

NodeList ast_list1(Parser *p, Node *n);
void ast_append(Parser *p, NodeList *to, const NodeList *from);

Node *ast_leaf(Parser *p, NodeKind k, Loc loc);
Node *ast_unary(Parser *p, NodeKind k, Loc loc, Node *a);
Node *ast_binary(Parser *p, NodeKind k, Loc loc, Node *a, Node *b);
Node *ast_with_list(Parser *p, NodeKind k, Loc loc, const NodeList *l);

Node *ast_assign(Parser *p, Loc loc, const NodeList *targets, Node *value);
Node *ast_augassign(Parser *p, Loc loc, Node *target, int sign, Node *value);
Node *ast_annassign(Parser *p, Loc loc, Node *target, Node *type, Node *value);
Node *ast_yield_from(Parser *p, Loc loc, Node *a);

Dotted ast_dotted1(Parser *p, Name n);
Dotted ast_dotted(Parser *p, const Dotted *d, Name n);
Node *ast_alias(Parser *p, Loc loc, Name dotted, Name as, Loc as_loc);
Node *ast_from(Parser *p, Loc loc, int level, Name module, const NodeList *names);

Node *ast_if(Parser *p, Loc loc, const NodeList *arms, const NodeList *orelse);
Node *ast_arm(Parser *p, Loc loc, Node *cond, const NodeList *body);
Node *ast_for(Parser *p, Loc loc, int is_async, Node *target, Node *iter,
              const NodeList *body, const NodeList *orelse);
Node *ast_while(Parser *p, Loc loc, Node *cond, const NodeList *body,
                const NodeList *orelse);
Node *ast_with(Parser *p, Loc loc, int is_async, const NodeList *items,
               const NodeList *body);
Node *ast_try(Parser *p, Loc loc, const NodeList *body, const NodeList *handlers,
              const NodeList *orelse, const NodeList *finally);
Node *ast_delete(Parser *p, Loc loc, const NodeList *targets);
Node *ast_with_item(Parser *p, Loc loc, Node *a, Node *target);
Node *ast_match(Parser *p, Loc loc, Node *subject, const NodeList *cases);
Node *ast_case(Parser *p, Loc loc, Node *pattern, Node *guard, const NodeList *body);
Node *ast_type(Parser *p, Loc loc, Name name, const NodeList *params, Node *type);
Node *ast_group(Parser *p, Node *handler);
Node *ast_handler(Parser *p, Loc loc, Node *type, Name name, const NodeList *body);
Node *ast_function(Parser *p, Loc loc, int is_async, Name name, Loc name_loc,
                   const NodeList *params, Node *returns, const NodeList *body);
Node *ast_class(Parser *p, Loc loc, Name name, const NodeList *args,
                const NodeList *body);
Node *ast_decorate(Parser *p, Loc loc, const NodeList *decorators, Node *def);
Node *ast_param(Parser *p, Loc loc, ParamKind kind, Name name, Node *type, Node *value);

Node *ast_name(Parser *p, Loc loc, Name name);
Node *ast_constant(Parser *p, Loc loc, ConstantKind kind);
Node *ast_tuple(Parser *p, Loc loc, const NodeList *l, bool comma);
Node *ast_paren(Parser *p, Loc loc, Node *n);
Node *ast_named(Parser *p, Loc loc, Name name, Node *value);
Node *ast_ifexp(Parser *p, Loc loc, Node *cond, Node *yes, Node *no);
Node *ast_lambda(Parser *p, Loc loc, const NodeList *params, Node *body);
Node *ast_bool(Parser *p, Loc loc, OpSign s, Node *x, Node *y);
Node *ast_compare(Parser *p, Loc loc, OpSign s, Node *x, Node *y);
Node *ast_binop(Parser *p, Loc loc, OpSign s, Node *x, Node *y);
Node *ast_sign(Parser *p, Loc loc, OpSign s, Node *x);
Node *ast_attribute(Parser *p, Loc loc, Node *x, Name name);
Node *ast_call(Parser *p, Loc loc, Node *fn, const NodeList *args);
Node *ast_keyword(Parser *p, Loc loc, Name name, Node *value);
Node *ast_subscript(Parser *p, Loc loc, Node *x, const NodeList *index, Loc index_loc,
                    bool comma);
Node *ast_slice(Parser *p, Loc loc, Node *from, Node *to, Node *step);
Node *ast_dict(Parser *p, Loc loc, const NodeList *items);
Node *ast_comp(Parser *p, Loc loc, CompKind kind, Node *elem, Node *value,
               const NodeList *fors);
Node *ast_generator(Parser *p, Loc loc, int is_async, Node *target, Node *iter,
                    const NodeList *conditions);
Node *ast_strings(Parser *p, Loc loc, const NodeList *tokens);

#endif

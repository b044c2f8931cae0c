/* Syntax trees of Python modules: the whole statement and expression syntax, because real
   files hold host code around the kernels. Nodes live in the session's `ast` arena and do
   not change once parsed. One struct serves all kinds; the table below it says which
   fields each kind uses. */
#ifndef SDC_FRONTEND_AST_H
#define SDC_FRONTEND_AST_H

#include "ir/base/diag.h"
#include "ir/base/str.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum NodeKind {
#define AST(id, name, stmt) ND_##id,
#include "frontend/ast.def"
    ND_COUNT
} NodeKind;

typedef enum OpSign {
    OS_NONE,
    OS_ADD, OS_SUB, OS_MUL, OS_DIV, OS_FLOORDIV, OS_MOD, OS_POW, OS_MATMUL, /* binary */
    OS_SHL, OS_SHR, OS_AND, OS_OR, OS_XOR,
    OS_NEG, OS_POS, OS_INVERT, OS_NOT,                                      /* unary */
    OS_LAND, OS_LOR,                                                        /* boolop */
    OS_EQ, OS_NE, OS_LT, OS_LE, OS_GT, OS_GE, OS_IS, OS_IS_NOT, OS_IN, OS_NOT_IN,
    OS_COUNT
} OpSign;

typedef enum ConstantKind {
    CK_INT,
    CK_FLOAT,
    CK_IMAGINARY,
    CK_STR,
    CK_BYTES,
    CK_TRUE,
    CK_FALSE,
    CK_NONE,
    CK_ELLIPSIS
} ConstantKind;

typedef enum ParamKind {
    PK_PLAIN, PK_ARGS /* *args */, PK_KWARGS /* **kw */,
    PK_BARE_STAR, PK_SLASH /* while parsing only */
} ParamKind;

typedef enum CompKind { COMP_LIST, COMP_SET, COMP_DICT, COMP_GENERATOR } CompKind;

typedef struct Node Node;

typedef struct NodeList {
    Node **at;
    int n;
    int cap;
} NodeList;

struct Node {
    NodeKind kind;
    uint16_t depth;     /* height of the tree below, at most AST_MAX_DEPTH */
    uint8_t sub;        /* OpSign, ConstantKind, ParamKind or CompKind */
    bool paren;         /* expression in parentheses of its own */
    bool is_async;      /* function, for, with, generator */
    bool named_only;    /* PARAM behind '*': no positional argument reaches it */
    Loc loc;
    Name name;          /* see below */
    Node *a, *b, *c;    /* operands, see below */
    NodeList list;      /* see below */
    NodeList body;      /* statements */
    NodeList orelse;    /* else statements of for, while, if, try */
    NodeList more;      /* see below */
    union {
        uint64_t u;        /* CK_INT: magnitude; with `big` only the low 64 bits */
        double f;          /* CK_FLOAT, CK_IMAGINARY */
        struct {
            const char *s; /* CK_STR (UTF-8), CK_BYTES; NUL-terminated */
            size_t n;
        } str;
    } v;
    bool big;           /* CK_INT above 2^64 - 1 */
    int level;          /* IMPORT_FROM: leading dots */
    OpSign *signs;      /* COMPARE: one per element of list */
};

/*  kind          fields
    NAME          name
    ATTRIBUTE     a.name
    CONSTANT      sub, v
    BINOP         a sub b
    UNARYOP       sub a
    BOOLOP        list joined by sub (OS_LAND, OS_LOR)
    COMPARE       a signs[0] list[0] signs[1] list[1] ...
    IFEXP         b if a else c
    CALL          a(list.., more..)   list: positional (STARRED too); more: KEYWORD
    KEYWORD       name=a, or **a when name is NULL
    SUBSCRIPT     a[b]
    SLICE         a:b:c, each may be NULL
    TUPLE LIST SET  list
    DICT          list: keys (NULL for **), more: values
    COMPREHENSION sub, a: element (or key), b: value of a dict, list: GENERATORs
    GENERATOR     for a in b, list: conditions
    LAMBDA        list: PARAMs, a: body
    PARAM         sub, name, a: annotation, b: default
    STARRED       *a
    NAMED_EXPR    name := a
    JOINED_STR    list: CONSTANT strings and FORMATTED
    FORMATTED     a, name: conversion ("r", "s", "a") or NULL,
                  b: format (JOINED_STR) or NULL
    YIELD         a or NULL; name "from" for yield from
    AWAIT         a
    FUNCTION      name, list: PARAMs, body, more: decorators (expressions), a: returns
    CLASS         name, list: bases, body, more: decorators
    RETURN        a or NULL
    DELETE        list
    ASSIGN        list: targets, left to right; a: value
    AUG_ASSIGN    a sub= b
    ANN_ASSIGN    a: b [= c]
    FOR           for a in b: body else orelse
    WHILE         while a: body else orelse
    IF            list: ARMs (if and elifs), orelse
    ARM           a: condition, body
    WITH          list: WITH_ITEMs, body
    WITH_ITEM     a as b
    RAISE         a, b: cause
    TRY           body, list: HANDLERs, orelse, more: finally
    HANDLER       a: type, name, body
    MATCH         a, list: CASEs
    CASE          a: pattern (as the expression that looks like it), b: guard, body
    TYPE_ALIAS    name, list: PARAMs, a: the type
    ASSERT        a, b: message
    IMPORT        list: ALIASes
    IMPORT_FROM   from (level dots) name import list; name may be NULL; list empty: *
    ALIAS         name (dotted), a: NAME it is bound to, or NULL
    GLOBAL NONLOCAL  list: NAMEs
    EXPR          a
    SKIPPED       a block of host code past a limit of sdc's */

enum { AST_MAX_DEPTH = 1000 };

const char *node_kind_name(NodeKind k);
const char *sign_text(OpSign s); /* "+", "not in" */

/* A string constant node's text, or NULL. */
const char *node_str(const Node *n);

/* "a.b.c" when n is a chain of attributes over a name, else NULL. In arena. */
const char *node_dotted(Arena *arena, const Node *n);

/* Printed form, one node a line, indented; for --emit=ast. */
void ast_print(Buf *out, const NodeList *statements);

#endif

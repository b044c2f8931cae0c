/* Small queries on syntax trees. */
#include "frontend/ast.h"

#include "ir/base/util.h"

#include <string.h>

const char *
node_kind_name(NodeKind k)
{
    static const char *const names[ND_COUNT] = {
#define AST(id, name, stmt) [ND_##id] = name,
#include "frontend/ast.def"
    };
    return k < ND_COUNT ? names[k] : "?";
}

const char *
sign_text(OpSign s)
{
    static const char *const text[OS_COUNT] = {
        [OS_NONE] = "",     [OS_ADD] = "+",    [OS_SUB] = "-",     [OS_MUL] = "*",
        [OS_DIV] = "/",     [OS_FLOORDIV] = "//", [OS_MOD] = "%",  [OS_POW] = "**",
        [OS_MATMUL] = "@",  [OS_SHL] = "<<",   [OS_SHR] = ">>",    [OS_AND] = "&",
        [OS_OR] = "|",      [OS_XOR] = "^",    [OS_NEG] = "-",     [OS_POS] = "+",
        [OS_INVERT] = "~",  [OS_NOT] = "not",  [OS_LAND] = "and",  [OS_LOR] = "or",
        [OS_EQ] = "==",     [OS_NE] = "!=",    [OS_LT] = "<",      [OS_LE] = "<=",
        [OS_GT] = ">",      [OS_GE] = ">=",    [OS_IS] = "is",     [OS_IS_NOT] = "is not",
        [OS_IN] = "in",     [OS_NOT_IN] = "not in",
    };
    return s < OS_COUNT ? text[s] : "?";
}

const char *
node_str(const Node *n)
{
    return n && n->kind == ND_CONSTANT && n->sub == CK_STR ? n->v.str.s : NULL;
}

const char *
node_dotted(Arena *arena, const Node *n)
{
    const Node *parts[32];
    int k = 0;
    for (; n->kind == ND_ATTRIBUTE && k < COUNT_OF(parts) - 1; n = n->a)
        parts[k++] = n;
    if (n->kind != ND_NAME)
        return NULL;
    Buf b;
    buf_init(&b, arena);
    buf_str(&b, n->name);
    while (k > 0)
        buf_printf(&b, ".%s", parts[--k]->name);
    return b.s;
}

/* --emit=ast: one node a line, children indented below it. */
#include "frontend/ast.h"

#include <string.h>

static void print_node(Buf *out, const Node *n, int depth, const char *role);

static void
indent(Buf *out, int depth)
{
    for (int i = 0; i < depth; i++)
        buf_str(out, "  ");
}

static void
print_list(Buf *out, const NodeList *l, int depth, const char *role)
{
    for (int i = 0; i < l->n; i++)
        print_node(out, l->at[i], depth, role);
}

static void
print_text(Buf *out, const char *s, size_t n)
{
    buf_char(out, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '\n')
            buf_str(out, "\\n");
        else if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c < 0x20)
            buf_printf(out, "\\x%02x", c);
        else
            buf_char(out, (char)c);
    }
    buf_char(out, '"');
}

static void
print_constant(Buf *out, const Node *n)
{
    switch ((ConstantKind)n->sub) {
    case CK_INT:
        buf_printf(out, " %s%llu", n->big ? "big " : "", (unsigned long long)n->v.u);
        break;
    case CK_FLOAT: buf_printf(out, " %.17g", n->v.f); break;
    case CK_IMAGINARY: buf_printf(out, " %.17gj", n->v.f); break;
    case CK_STR:
    case CK_BYTES:
        buf_str(out, n->sub == CK_BYTES ? " b" : " ");
        print_text(out, n->v.str.s, n->v.str.n);
        break;
    case CK_TRUE: buf_str(out, " True"); break;
    case CK_FALSE: buf_str(out, " False"); break;
    case CK_NONE: buf_str(out, " None"); break;
    case CK_ELLIPSIS: buf_str(out, " ..."); break;
    }
}

static void
print_head(Buf *out, const Node *n)
{
    static const char *const params[] = {"", " *", " **", "", ""};
    static const char *const comps[] = {" list", " set", " dict", " generator"};
    buf_printf(out, "%s%s", n->is_async ? "async " : "", node_kind_name(n->kind));
    switch ((int)n->kind) {
    case ND_CONSTANT: print_constant(out, n); break;
    case ND_BINOP:
    case ND_UNARYOP:
    case ND_BOOLOP:
    case ND_AUG_ASSIGN: buf_printf(out, " %s", sign_text((OpSign)n->sub)); break;
    case ND_COMPARE:
        for (int i = 0; i < n->list.n; i++)
            buf_printf(out, " %s", sign_text(n->signs[i]));
        break;
    case ND_PARAM: buf_str(out, params[n->sub]); break;
    case ND_COMPREHENSION: buf_str(out, comps[n->sub]); break;
    case ND_IMPORT_FROM:
        buf_char(out, ' ');
        for (int i = 0; i < n->level; i++)
            buf_char(out, '.');
        break;
    default: break;
    }
    if (n->name)
        buf_printf(out, " %s", n->name);
    buf_printf(out, " @%d:%d\n", n->loc.line, n->loc.col);
}

static void
print_node(Buf *out, const Node *n, int depth, const char *role)
{
    indent(out, depth);
    if (role)
        buf_printf(out, "%s: ", role);
    if (!n) {
        buf_str(out, "-\n");
        return;
    }
    print_head(out, n);
    if (n->a)
        print_node(out, n->a, depth + 1, NULL);
    if (n->b)
        print_node(out, n->b, depth + 1, NULL);
    if (n->c)
        print_node(out, n->c, depth + 1, NULL);
    print_list(out, &n->list, depth + 1, NULL);
    print_list(out, &n->body, depth + 1, NULL);
    print_list(out, &n->more, depth + 1, n->kind == ND_TRY ? "finally" : "with");
    print_list(out, &n->orelse, depth + 1, "else");
}

void
ast_print(Buf *out, const NodeList *statements)
{
    print_list(out, statements, 0, NULL);
}

/* The driver between lexer and grammar: cuts a file into its statements of column 0,
   parses each on its own, and decides whether an error is the user's or only host code
   that sdc need not understand. */
#include "frontend/syntax.h"

#include "frontend/grammar.h"
#include "frontend/parse.h"
#include "ir/base/util.h"

#include <string.h>

static void
one_error(Session *s, const Source *src, const char *text, int line, int col)
{
    diag_error(&s->diag, (Loc){src, line, col, line, col + 1}, "%s", text);
}

/* NUL bytes and malformed UTF-8 are refused before anything looks at the text. */
static bool
check_encoding(Session *s, const Source *src)
{
    const unsigned char *t = (const unsigned char *)src->text;
    int line = 1, col = 1;
    for (size_t i = 0; i < src->size;) {
        int extra = t[i] < 0x80              ? 0
                    : t[i] >= 0xc2 && t[i] < 0xe0 ? 1
                    : t[i] >= 0xe0 && t[i] < 0xf0 ? 2
                    : t[i] >= 0xf0 && t[i] < 0xf5 ? 3
                                                  : -1;
        if (!t[i] || extra < 0 || i + (size_t)extra >= src->size + (extra == 0)) {
            one_error(s, src,
                      t[i] ? "this is not UTF-8 text" : "this is a NUL byte, not text",
                      line, col);
            return false;
        }
        for (int k = 1; k <= extra; k++) {
            if ((t[i + (size_t)k] & 0xc0) != 0x80) {
                one_error(s, src, "this is not UTF-8 text", line, col);
                return false;
            }
        }
        col += 1 + extra;
        if (t[i] == '\n') {
            line++;
            col = 1;
        }
        i += 1 + (size_t)extra;
    }
    return true;
}

/* ---- tokens for bison */

int
grammar_next(Parser *p, Loc *loc, Node **node, Name *name)
{
    if (p->start) {
        int start = p->start;
        *loc = p->tok->loc;
        p->start = 0;
        return start;
    }
    const Tok *t = p->tok;
    *loc = t->loc;
    if (t >= p->end)
        return 0;
    p->tok++;
    const Tok *next = p->tok;
    if (next < p->end && ((t->kind == KW_IS && next->kind == KW_NOT) ||
                          (t->kind == KW_NOT && next->kind == KW_IN))) {
        p->tok++;
        *loc = loc_span(t->loc, next->loc);
        return t->kind == KW_IS ? IS_NOT : NOT_IN;
    }
    if (t->kind == BAD_TOKEN)
        parse_error(p, t->loc, "%s", t->name);
    *name = t->name;
    *node = t->node;
    return t->kind;
}

void
grammar_report(Parser *p, Loc at, const char *found, const char *const *wanted, int n)
{
    /* Python's own words where a newcomer is likely to look. */
    if (n == 1)
        parse_error(p, at, "expected %s, found %s", wanted[0], found);
    else if (n == 2)
        parse_error(p, at, "expected %s or %s, found %s", wanted[0], wanted[1], found);
    else
        parse_error(p, at, "%s is not expected here", found);
}

/* ---- blocks */

static bool
mentions_jit(const Tok *t, const Tok *end)
{
    /* Only the decorators count: lines of column 0 that begin with '@'. */
    while (t < end && t->kind == '@') {
        for (; t < end && t->kind != NEWLINE; t++)
            if (t->kind == IDENT && strcmp(t->name, "jit") == 0)
                return true;
        if (t < end)
            t++;
    }
    return false;
}

/* First token after the statement of column 0 that begins at t. */
static const Tok *
block_end(const Tok *t, const Tok *end)
{
    int depth = 0;
    for (bool first = true; t < end; first = false) {
        bool decorator = t->kind == '@';
        bool goes_on = t->kind == KW_ELSE || t->kind == KW_ELIF || t->kind == KW_EXCEPT ||
                       t->kind == KW_FINALLY;
        if (!first && !depth && !goes_on)
            return t;
        /* a line and the block below it */
        while (t < end && t->kind != NEWLINE)
            depth += t->kind == INDENT ? 1 : t->kind == DEDENT ? -1 : 0, t++;
        if (t < end)
            t++;
        if (t < end && t->kind == INDENT) {
            for (int level = 0; t < end; t++) {
                level += t->kind == INDENT ? 1 : t->kind == DEDENT ? -1 : 0;
                if (!level)
                    break;
            }
            if (t < end)
                t++;
        }
        if (decorator)
            first = true;
        if (decorator && t < end) {
            /* what is decorated belongs to it */
            const Tok *rest = block_end(t, end);
            return rest;
        }
    }
    return t;
}

static bool
parse_block(Session *s, const Source *src, const Tok *from, const Tok *to, bool quiet,
            NodeList *out)
{
    Parser p = {.s = s, .src = src, .tok = from, .end = to, .start = START_FILE,
                .quiet = quiet};
    bool ok = yyparse(&p) == 0 && !p.errors;
    if (!ok && !p.errors && !quiet)
        diag_error(&s->diag, from->loc, "this statement cannot be read");
    if (ok)
        ast_append(&p, out, &p.body);
    return ok;
}

static void
push_skipped(Session *s, const Source *src, const Tok *from, const Tok *to, NodeList *out)
{
    Parser p = {.s = s, .src = src};
    ast_push(&p, out, ast_leaf(&p, ND_SKIPPED, loc_span(from->loc, to[-1].loc)));
}

bool
node_is_jit(const Node *fn)
{
    for (int i = 0; i < fn->more.n; i++) {
        const Node *d = fn->more.at[i];
        if (d->kind == ND_CALL)
            d = d->a;
        if ((d->kind == ND_NAME || d->kind == ND_ATTRIBUTE) &&
            strcmp(d->name, "jit") == 0)
            return true;
    }
    return false;
}

static bool
parse_blocks(Session *s, const Source *src, const TokList *toks, NodeList *out)
{
    const Tok *end = toks->at + toks->n - 1; /* less the final 0 */
    const Tok *bad_from = NULL, *bad_to = NULL;
    bool ok = true, any_jit = false;
    for (const Tok *t = toks->at; t < end;) {
        const Tok *next = block_end(t, end);
        bool jit = mentions_jit(t, next);
        any_jit |= jit;
        if (!parse_block(s, src, t, next, !jit, out)) {
            if (!bad_from) {
                bad_from = t;
                bad_to = next;
            }
            ok &= !jit;
            push_skipped(s, src, t, next, out);
        }
        t = next;
    }
    if (ok && !any_jit && bad_from) {
        /* no kernel in sight: then the error is what the user wants to hear of */
        NodeList unused = {0};
        return parse_block(s, src, bad_from, bad_to, false, &unused);
    }
    return ok;
}

bool
syntax_parse(Session *s, const Source *src, NodeList *out)
{
    *out = (NodeList){0};
    if (src->size > MAX_SOURCE) {
        diag_error(&s->diag, (Loc){.src = src},
                   "the file has %zu MiB, the limit is 4 MiB", src->size >> 20);
        return false;
    }
    if (!check_encoding(s, src))
        return false;
    size_t bom = src->size >= 3 && memcmp(src->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    Lexer lx = {
        .s = s, .src = src, .line = 1, .base_line = 1, .pos = bom, .line_start = bom};
    if (!lex_text(&lx, src->text + bom, src->size - bom))
        fail_jump(&s->fail, FAIL_MEMORY, "out of memory while reading %s", src->path);
    return parse_blocks(s, src, &lx.out, out);
}

Node *
syntax_parse_field(Parser *p, const char *text, size_t n, Loc at)
{
    Lexer lx = {.s = p->s, .src = p->src, .line = at.line, .base_line = at.line};
    lx.pos = (size_t)(text - p->src->text);
    lx.line_start = lx.pos;
    lx.col_shift = at.col - 1;
    lx.depth = 1; /* as if in parentheses: line ends do not matter */
    lx.open[0] = at;
    lx.line_has_token = true;
    Node *none = ast_constant(p, at, CK_NONE);
    if (p->string_depth >= 4 || !lex_text(&lx, text, n)) {
        parse_error(p, at, "f-strings nested too deeply");
        return none;
    }
    TokList *l = &lx.out;
    /* the end of the lexer's text closes the bracket that we opened */
    int count = 0;
    for (int i = 0; i < l->n; i++)
        if (l->at[i].kind && l->at[i].kind != NEWLINE && l->at[i].kind != DEDENT &&
            !(l->at[i].kind == BAD_TOKEN && i + 3 >= l->n && lx.depth == 0))
            l->at[count++] = l->at[i];
    Parser in = {.s = p->s, .src = p->src, .tok = l->at, .end = l->at + count,
                 .start = START_EXPR, .quiet = p->quiet,
                 .string_depth = p->string_depth + 1};
    if (!count) {
        parse_error(p, at, "this field of an f-string is empty");
        return none;
    }
    if (yyparse(&in) != 0 || in.errors) {
        p->errors += in.errors ? in.errors : 1;
        return none;
    }
    return in.expr ? in.expr : none;
}

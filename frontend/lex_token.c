/* The actions behind lex.l: places, indentation, bracket nesting, literals, keywords. */
#include "frontend/lex_token.h"

#include "frontend/parse.h"
#include "ir/base/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef void *yyscan_t;
typedef struct yy_buffer_state *YY_BUFFER_STATE;
int sdc_py_lex_init_extra(Lexer *lx, yyscan_t *scanner);
int sdc_py_lex_destroy(yyscan_t scanner);
int sdc_py_lex(yyscan_t scanner);
YY_BUFFER_STATE sdc_py__scan_bytes(const char *bytes, int n, yyscan_t scanner);
void *sdc_py_alloc(size_t n, yyscan_t scanner);
void *sdc_py_realloc(void *p, size_t n, yyscan_t scanner);
void sdc_py_free(void *p, yyscan_t scanner);

/* The scanner's memory is the C library's: it is released before lex_text returns, and
   the only jump out of the lexer (arena exhausted) leaves a few kilobytes behind. */
void *
sdc_py_alloc(size_t n, yyscan_t scanner)
{
    (void)scanner;
    return malloc(n);
}

void *
sdc_py_realloc(void *p, size_t n, yyscan_t scanner)
{
    (void)scanner;
    return realloc(p, n);
}

void
sdc_py_free(void *p, yyscan_t scanner)
{
    (void)scanner;
    free(p);
}

static const struct {
    const char *text;
    int kind;
} keywords[] = {
    {"and", KW_AND},         {"as", KW_AS},           {"assert", KW_ASSERT},
    {"async", KW_ASYNC},     {"await", KW_AWAIT},     {"break", KW_BREAK},
    {"class", KW_CLASS},     {"continue", KW_CONTINUE}, {"def", KW_DEF},
    {"del", KW_DEL},         {"elif", KW_ELIF},       {"else", KW_ELSE},
    {"except", KW_EXCEPT},   {"False", KW_FALSE},     {"finally", KW_FINALLY},
    {"for", KW_FOR},         {"from", KW_FROM},       {"global", KW_GLOBAL},
    {"if", KW_IF},           {"import", KW_IMPORT},   {"in", KW_IN},
    {"is", KW_IS},           {"lambda", KW_LAMBDA},   {"None", KW_NONE},
    {"nonlocal", KW_NONLOCAL}, {"not", KW_NOT},       {"or", KW_OR},
    {"pass", KW_PASS},       {"raise", KW_RAISE},     {"return", KW_RETURN},
    {"True", KW_TRUE},       {"try", KW_TRY},         {"while", KW_WHILE},
    {"with", KW_WITH},       {"yield", KW_YIELD},
};

static const struct {
    const char *text;
    int kind;
} operators[] = {
    {"...", ELLIPSIS}, {"**=", POW_EQ},   {"//=", FLOORDIV_EQ}, {"<<=", SHL_EQ},
    {">>=", SHR_EQ},   {"**", POW},       {"//", FLOORDIV},     {"<<", SHL},
    {">>", SHR},       {"<=", LE},        {">=", GE},           {"==", EQEQ},
    {"!=", NE},        {"->", ARROW},     {":=", WALRUS},       {"+=", ADD_EQ},
    {"-=", SUB_EQ},    {"*=", MUL_EQ},    {"/=", DIV_EQ},       {"%=", MOD_EQ},
    {"&=", AND_EQ},    {"|=", OR_EQ},     {"^=", XOR_EQ},       {"@=", MATMUL_EQ},
};

static const char *
text_at(const Lexer *lx)
{
    return lx->src->text + lx->pos;
}

static int
column(const Lexer *lx, size_t pos)
{
    int col = (int)(pos - lx->line_start) + 1;
    return lx->line == lx->base_line ? col + lx->col_shift : col;
}

/* Moves over n bytes, counting lines. */
static void
advance(Lexer *lx, int n)
{
    for (int i = 0; i < n; i++) {
        if (lx->src->text[lx->pos++] == '\n') {
            lx->line++;
            lx->line_start = lx->pos;
        }
    }
}

/* Place of the n bytes at the position, which is moved past them. */
static Loc
take(Lexer *lx, int n)
{
    Loc loc = {lx->src, lx->line, column(lx, lx->pos), 0, 0};
    advance(lx, n);
    loc.end_line = lx->line;
    loc.end_col = column(lx, lx->pos);
    return loc;
}

static void
push(Lexer *lx, int kind, Loc loc, Name name, Node *node)
{
    if (lx->out.n == lx->out.cap) {
        int cap = lx->out.cap ? lx->out.cap * 2 : 256;
        Tok *at = arena_array(&lx->s->ast, Tok, cap);
        if (lx->out.n)
            memcpy(at, lx->out.at, (size_t)lx->out.n * sizeof *at);
        lx->out.at = at;
        lx->out.cap = cap;
    }
    lx->out.at[lx->out.n++] = (Tok){kind, loc, name, node};
}

static void
push_error(Lexer *lx, Loc loc, const char *why)
{
    push(lx, BAD_TOKEN, loc, name_of(&lx->s->names, why), NULL);
}

/* Width of the white space before a token; a tab goes to the next multiple of eight. */
static int
indentation(const Lexer *lx, const Loc *loc)
{
    int width = 0;
    const char *p = lx->src->text + lx->line_start;
    for (int i = 0; i < loc->col - 1; i++)
        width = p[i] == '\t' ? (width / 8 + 1) * 8 : p[i] == '\f' ? 0 : width + 1;
    return width;
}

static void
line_begins(Lexer *lx, Loc loc, size_t line_start)
{
    Lexer at = *lx;
    at.line_start = line_start;
    int width = lx->col_shift && loc.line == lx->base_line ? 0 : indentation(&at, &loc);
    lx->line_has_token = true;
    if (width > lx->indent[lx->nindent]) {
        if (lx->nindent == MAX_NESTING) {
            push_error(lx, loc, "indented deeper than 256 levels");
            return;
        }
        lx->indent[++lx->nindent] = width;
        push(lx, INDENT, loc, NULL, NULL);
    }
    while (width < lx->indent[lx->nindent]) {
        lx->nindent--;
        push(lx, DEDENT, loc, NULL, NULL);
    }
    if (width != lx->indent[lx->nindent])
        push_error(lx, loc, "this indentation matches no enclosing block");
}

static void
token(Lexer *lx, int kind, int n, Name name, Node *node)
{
    size_t line_start = lx->line_start;
    Loc loc = take(lx, n);
    if (!lx->line_has_token && !lx->depth)
        line_begins(lx, loc, line_start);
    if (n > MAX_TOKEN_BYTES)
        push_error(lx, loc, "token longer than 64 KiB");
    else
        push(lx, kind, loc, name, node);
    if (node)
        node->loc = loc;
}

void
lex_skip(Lexer *lx, int n)
{
    advance(lx, n);
}

/* A bracket that was never closed would swallow the rest of the file as one statement. A
   definition in column 0 cannot be part of an expression: the bracket ends there. */
static bool
starts_definition(const char *p)
{
    static const char *const words[] = {"def ", "class ", "import ", "from ", "@"};
    for (int i = 0; i < COUNT_OF(words); i++)
        if (strncmp(p, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

void
lex_newline(Lexer *lx)
{
    Loc loc = take(lx, 1);
    loc.end_line = loc.line;
    loc.end_col = loc.col + 1;
    if (lx->depth && starts_definition(text_at(lx))) {
        push_error(lx, lx->open[lx->depth - 1], "this bracket is never closed");
        lx->depth = 0;
        lx->line_has_token = true;
    }
    if (lx->depth || !lx->line_has_token)
        return;
    push(lx, NEWLINE, loc, NULL, NULL);
    lx->line_has_token = false;
}

void
lex_name(Lexer *lx, int n)
{
    const char *s = text_at(lx);
    for (int i = 0; i < COUNT_OF(keywords); i++) {
        if ((int)strlen(keywords[i].text) == n &&
            memcmp(keywords[i].text, s, (size_t)n) == 0) {
            token(lx, keywords[i].kind, n, NULL, NULL);
            return;
        }
    }
    if (n > MAX_IDENTIFIER) {
        lex_bad(lx, n, "identifier longer than 1023 bytes");
        return;
    }
    token(lx, IDENT, n, name_intern(&lx->s->names, s, (size_t)n), NULL);
}

void
lex_op(Lexer *lx, int n)
{
    const char *s = text_at(lx);
    int kind = (unsigned char)*s;
    for (int i = 0; n > 1 && i < COUNT_OF(operators); i++)
        if ((int)strlen(operators[i].text) == n &&
            memcmp(operators[i].text, s, (size_t)n) == 0)
            kind = operators[i].kind;
    token(lx, kind, n, NULL, NULL);
}

static Node *
constant(Lexer *lx, ConstantKind kind)
{
    Node *node = arena_new(&lx->s->ast, Node);
    node->kind = ND_CONSTANT;
    node->sub = (uint8_t)kind;
    return node;
}

void
lex_int(Lexer *lx, int n, int base)
{
    const char *s = text_at(lx);
    Node *node = constant(lx, CK_INT);
    uint64_t v = 0;
    for (int i = base == 10 ? 0 : 2; i < n; i++) {
        if (s[i] == '_')
            continue;
        int digit = s[i] <= '9' ? s[i] - '0' : (s[i] | 32) - 'a' + 10;
        if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)digit, &v))
            node->big = true;
    }
    node->v.u = v;
    if (base == 10 && n > 1 && s[0] == '0' && v) {
        lex_bad(lx, n, "leading zeros: write an octal number as 0o17");
        return;
    }
    token(lx, NUMBER, n, NULL, node);
}

void
lex_float(Lexer *lx, int n, bool imaginary)
{
    const char *s = text_at(lx);
    char *copy = arena_alloc(&lx->s->ast, (size_t)n + 1, 1);
    int k = 0;
    for (int i = 0; i < n; i++)
        if (s[i] != '_' && (s[i] | 32) != 'j')
            copy[k++] = s[i];
    Node *node = constant(lx, imaginary ? CK_IMAGINARY : CK_FLOAT);
    node->v.f = strtod(copy, NULL);
    token(lx, NUMBER, n, NULL, node);
}

/* Decoding waits for the parser: f-strings need it. */
void
lex_string(Lexer *lx, int n)
{
    Node *node = constant(lx, CK_STR);
    node->v.str.s = text_at(lx);
    node->v.str.n = (size_t)n;
    token(lx, STRING, n, NULL, node);
}

void
lex_unclosed_string(Lexer *lx, int n)
{
    /* The rest of the line belongs to it. */
    const char *s = text_at(lx);
    int len = n;
    while (lx->pos + (size_t)len < lx->src->size && s[len] && s[len] != '\n')
        len++;
    push_error(lx, take(lx, n), "this string is never closed");
    lx->line_has_token = true;
}

void
lex_open(Lexer *lx, char c)
{
    if (lx->depth == MAX_NESTING) {
        if (lx->out.n && lx->out.at[lx->out.n - 1].kind == BAD_TOKEN)
            lex_skip(lx, 1); /* said once */
        else
            lex_bad(lx, 1, "brackets nested deeper than 256 levels");
        return;
    }
    token(lx, c, 1, NULL, NULL);
    lx->open[lx->depth++] = lx->out.at[lx->out.n - 1].loc;
}

void
lex_close(Lexer *lx, char c)
{
    if (lx->depth)
        lx->depth--;
    token(lx, c, 1, NULL, NULL);
    lx->line_has_token = true;
}

void
lex_bad(Lexer *lx, int n, const char *why)
{
    size_t line_start = lx->line_start;
    Loc loc = take(lx, n);
    if (!lx->line_has_token && !lx->depth)
        line_begins(lx, loc, line_start);
    if (lx->out.n && lx->out.at[lx->out.n - 1].kind == BAD_TOKEN)
        return; /* one report for a run of rubbish */
    push_error(lx, loc, why);
}

bool
lex_text(Lexer *lx, const char *text, size_t n)
{
    yyscan_t scanner;
    lx->indent[0] = 0;
    if (n > INT32_MAX / 2 || sdc_py_lex_init_extra(lx, &scanner) != 0)
        return false;
    if (!sdc_py__scan_bytes(text, (int)n, scanner)) {
        sdc_py_lex_destroy(scanner);
        return false;
    }
    while (sdc_py_lex(scanner))
        ;
    sdc_py_lex_destroy(scanner);
    if (lx->depth) {
        push_error(lx, lx->open[lx->depth - 1], "this bracket is never closed");
        lx->depth = 0;
    }
    Loc end = {lx->src, lx->line, column(lx, lx->pos), lx->line, column(lx, lx->pos)};
    if (lx->line_has_token)
        push(lx, NEWLINE, end, NULL, NULL);
    for (; lx->nindent; lx->nindent--)
        push(lx, DEDENT, end, NULL, NULL);
    push(lx, 0, end, NULL, NULL);
    return true;
}

void
lex_fatal(Lexer *lx, const char *why)
{
    fail_jump(&lx->s->fail, FAIL_MEMORY, "%s: %s", lx->src->path, why);
}

/* The actions behind lex.l: places, indentation, bracket nesting, literals, keywords. */
#include "frontend/lex_token.h"

#include "frontend/literal.h"
#include "frontend/parse.h"
#include "ir/base/util.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef void *yyscan_t;
typedef struct yy_buffer_state *YY_BUFFER_STATE;
int sdc_py_lex_init_extra(Lexer *lx, yyscan_t *scanner);
int sdc_py_lex_destroy(yyscan_t scanner);
Lexer *sdc_py_get_extra(yyscan_t scanner);
int sdc_py_lex(yyscan_t scanner);
YY_BUFFER_STATE sdc_py__scan_bytes(const char *bytes, int n, yyscan_t scanner);
void *sdc_py_alloc(size_t n, yyscan_t scanner);
void *sdc_py_realloc(void *p, size_t n, yyscan_t scanner);
void sdc_py_free(void *p, yyscan_t scanner);

/* The scanner's memory is the session's, so that a jump out of the lexer leaves nothing
   behind. A block has its size in front. */
void *
sdc_py_alloc(size_t n, yyscan_t scanner)
{
    Arena *a = &sdc_py_get_extra(scanner)->s->ast;
    size_t *p = arena_alloc(a, n + sizeof(max_align_t), alignof(max_align_t));
    *p = n;
    return (unsigned char *)p + sizeof(max_align_t);
}

void *
sdc_py_realloc(void *p, size_t n, yyscan_t scanner)
{
    void *to = sdc_py_alloc(n, scanner);
    if (p) {
        size_t had = *(size_t *)(void *)((unsigned char *)p - sizeof(max_align_t));
        memcpy(to, p, had < n ? had : n);
    }
    return to;
}

void
sdc_py_free(void *p, yyscan_t scanner)
{
    (void)p, (void)scanner;
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

/* Moves over n bytes, counting lines. They end as in Python: LF, CR LF or CR. */
static void
advance(Lexer *lx, int n)
{
    const char *text = lx->src->text;
    for (int i = 0; i < n; i++) {
        char c = text[lx->pos++];
        if (c == '\n' || (c == '\r' && text[lx->pos] != '\n')) {
            lx->line++;
            lx->line_start = lx->pos;
        }
    }
}

/* Place of the n bytes at the position, which is moved past them. */
static Loc
take(Lexer *lx, int n)
{
    Loc loc = {.src = lx->src, .line = lx->line, .col = column(lx, lx->pos)};
    advance(lx, n);
    loc.end_line = lx->line;
    loc.end_col = column(lx, lx->pos);
    return loc;
}

static void
push(Lexer *lx, int kind, Loc loc, Name name, Node *node)
{
    if (lx->out.n == lx->out.cap) {
        int guess = (int)(lx->end - lx->pos) / 4; /* bytes of text for a token */
        int cap = lx->out.cap ? lx->out.cap * 2 : guess + 16;
        Tok *at = arena_array(&lx->s->ast, Tok, cap);
        if (lx->out.n)
            memcpy(at, lx->out.at, (size_t)lx->out.n * sizeof *at);
        lx->out.at = at;
        lx->out.cap = cap;
    }
    lx->out.at[lx->out.n++] = (Tok){kind, loc, name, node, NULL};
}

static void
push_error(Lexer *lx, Loc loc, const char *why)
{
    push(lx, BAD_TOKEN, loc, name_of(&lx->s->names, why), NULL);
}

/* Width of the white space at the start of a line, up to `end`. A tab goes to the next
   multiple of eight; counted as one column as well, since Python compares both: where
   they disagree, the meaning would depend on how wide somebody's tabs are. */
static Indent
indentation(const Lexer *lx, size_t end)
{
    Indent w = {0, 0};
    for (size_t i = lx->line_start; i < end; i++) {
        char c = lx->src->text[i];
        w.width = c == '\t' ? (w.width / 8 + 1) * 8 : c == '\f' ? 0 : w.width + 1;
        w.plain = c == '\f' ? 0 : w.plain + 1;
    }
    return w;
}

/* The first token of a line, whose white space is `w`. */
static void
line_begins(Lexer *lx, Loc loc, Indent w)
{
    lx->line_has_token = true;
    if (lx->joined.width) /* a line that began with white space and a backslash */
        w = lx->joined;
    if (lx->col_shift && loc.line == lx->base_line)
        w = (Indent){0, 0};
    bool deeper = w.width > lx->indent[lx->nindent].width;
    bool odd = deeper && w.plain <= lx->indent[lx->nindent].plain;
    if (deeper && lx->nindent == MAX_NESTING) {
        push_error(lx, loc, "indented deeper than 256 levels");
        return;
    }
    if (deeper) {
        lx->indent[++lx->nindent] = w;
        push(lx, INDENT, loc, NULL, NULL);
    }
    while (w.width < lx->indent[lx->nindent].width) {
        lx->nindent--;
        push(lx, DEDENT, loc, NULL, NULL);
    }
    if (w.width != lx->indent[lx->nindent].width)
        push_error(lx, loc, "this indentation matches no enclosing block");
    else if (odd || w.plain != lx->indent[lx->nindent].plain)
        push_error(lx, loc, "tabs and spaces are mixed in this indentation so that it "
                            "depends on the width of a tab");
}

/* Place of the n bytes at the position; what has to stand before a line's first token is
   pushed. */
static Loc
begin_token(Lexer *lx, int n)
{
    bool first = !lx->line_has_token && !lx->depth;
    Indent w = first ? indentation(lx, lx->pos) : (Indent){0, 0};
    Loc loc = take(lx, n);
    if (first)
        line_begins(lx, loc, w);
    lx->joined = (Indent){0, 0};
    lx->continued = false;
    return loc;
}

static void
token(Lexer *lx, int kind, int n, Name name, Node *node)
{
    Loc loc = begin_token(lx, n);
    push(lx, kind, loc, name, node);
    if (n > MAX_TOKEN_BYTES)
        lx->out.at[lx->out.n - 1].limit = "token longer than 64 KiB";
    if (node)
        node->loc = loc;
}

void
lex_skip(Lexer *lx, int n)
{
    advance(lx, n);
}

/* A backslash at the end of a line. In front of the first token the indentation is that
   of the first such line. */
void
lex_continue(Lexer *lx, int n)
{
    if (!lx->line_has_token && !lx->depth && !lx->joined.width)
        lx->joined = indentation(lx, lx->pos);
    advance(lx, n);
    lx->continued = true;
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
lex_newline(Lexer *lx, int n)
{
    Loc loc = take(lx, n);
    loc.end_line = loc.line;
    loc.end_col = loc.col + 1;
    lx->joined = (Indent){0, 0};
    lx->continued = false;
    if (lx->depth > lx->base_depth && starts_definition(text_at(lx))) {
        push_error(lx, lx->open[lx->depth - 1], "this bracket is never closed");
        lx->depth = lx->base_depth;
        lx->line_has_token = true;
    }
    if (lx->depth || !lx->line_has_token)
        return;
    push(lx, NEWLINE, loc, NULL, NULL);
    lx->line_has_token = false;
}

/* Blocks of Unicode without a character of identifiers: punctuation, signs, arrows,
   pictures, spaces. Which of the other characters begin or continue a name would take
   tables of thousands of rows. */
static bool
is_symbol(uint32_t c)
{
    static const struct {
        uint32_t from, to;
    } blocks[] = {
        {0x80, 0xa9},     {0xab, 0xb4},     {0xb6, 0xb6},     {0xb8, 0xb9},
        {0xbb, 0xbf},     {0xd7, 0xd7},     {0xf7, 0xf7},     {0x2c2, 0x2c5},
        {0x2d2, 0x2df},   {0x2000, 0x203e}, {0x2041, 0x2053}, {0x2055, 0x2070},
        {0x207a, 0x207e}, {0x208a, 0x208f}, {0x20a0, 0x20cf}, {0x2190, 0x2bff},
        {0x2e00, 0x2e7f}, {0x3000, 0x3004}, {0x3008, 0x3020}, {0xe000, 0xf8ff},
        {0xfe10, 0xfe1f}, {0xfe50, 0xfe6f}, {0xfeff, 0xff0f}, {0xff1a, 0xff20},
        {0xffe0, 0xffff}, {0x1d000, 0x1d164}, {0x1f000, 0x1faff},
        {0xf0000, 0x10ffff},
    };
    for (int i = 0; i < COUNT_OF(blocks); i++)
        if (c >= blocks[i].from && c <= blocks[i].to)
            return true;
    return false;
}

/* The text is UTF-8: it was checked before. */
static bool
is_identifier(const char *s, int n)
{
    for (int i = 0; i < n; i++) {
        unsigned char first = (unsigned char)s[i];
        if (first < 0xc0)
            continue;
        int more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
        uint32_t c = first & (0x3fu >> more);
        for (int k = 1; k <= more && i + k < n; k++)
            c = c << 6 | ((unsigned char)s[i + k] & 0x3f);
        if (is_symbol(c))
            return false;
    }
    return true;
}

/* 0: a name. Most differ in the first byte from all keywords but one or two. */
static int
keyword(const char *s, int n)
{
    for (int i = 0; i < COUNT_OF(keywords); i++)
        if (keywords[i].text[0] == *s && strncmp(keywords[i].text, s, (size_t)n) == 0 &&
            !keywords[i].text[n])
            return keywords[i].kind;
    return 0;
}

void
lex_name(Lexer *lx, int n)
{
    const char *s = text_at(lx);
    int kind = keyword(s, n);
    if (kind) {
        token(lx, kind, n, NULL, NULL);
        return;
    }
    if (!is_identifier(s, n)) {
        lex_bad(lx, n, "this name holds a character that no name may have");
        return;
    }
    size_t kept = n > MAX_IDENTIFIER ? MAX_IDENTIFIER : (size_t)n;
    token(lx, IDENT, n, name_intern(&lx->s->names, s, kept), NULL);
    if (n > MAX_IDENTIFIER)
        lx->out.at[lx->out.n - 1].limit = "identifier longer than 1023 bytes";
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

/* A number with a keyword right behind it, `1if x else 2`: its length. */
int
lex_digits(Lexer *lx, int n)
{
    const char *s = text_at(lx);
    int k = 0;
    while (k < n && (s[k] == '_' || (s[k] >= '0' && s[k] <= '9')))
        k++;
    lex_int(lx, k, 10);
    return k;
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

/* What was read is a prefix and quotes without an end. The rest of the line belongs to
   it, or of the file behind three quotes; the scanner passes that many more bytes. */
size_t
lex_unclosed_string(Lexer *lx, int n)
{
    const char *s = text_at(lx);
    size_t left = lx->end - lx->pos, len = (size_t)n;
    bool triple = n >= 3 && s[n - 1] == s[n - 2] && s[n - 2] == s[n - 3];
    while (len < left && (triple || (s[len] != '\n' && s[len] != '\r')))
        len += s[len] == '\\' && len + 1 < left ? 2 : 1;
    Loc loc = begin_token(lx, n);
    push_error(lx, loc, "this string is never closed");
    lx->line_has_token = true;
    advance(lx, (int)(len - (size_t)n));
    return len - (size_t)n;
}

/* A prefix with an 'f' and the first quote were read. */
size_t
lex_format(Lexer *lx, int n)
{
    const char *s = text_at(lx);
    size_t left = lx->end - lx->pos, len = literal_length(s, left);
    if (len) {
        lex_string(lx, (int)len);
        return len - (size_t)n;
    }
    bool triple = left >= (size_t)n + 2 && s[n] == s[n - 1] && s[n + 1] == s[n - 1];
    return lex_unclosed_string(lx, triple ? n + 2 : n) + (triple ? 2 : 0);
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
    if (lx->depth > lx->base_depth)
        lx->depth--;
    token(lx, c, 1, NULL, NULL);
    lx->line_has_token = true;
}

void
lex_bad(Lexer *lx, int n, const char *why)
{
    Loc loc = begin_token(lx, n);
    if (lx->out.n && lx->out.at[lx->out.n - 1].kind == BAD_TOKEN)
        return; /* one report for a run of rubbish */
    push_error(lx, loc, why);
}

bool
lex_text(Lexer *lx, const char *text, size_t n)
{
    yyscan_t scanner;
    lx->indent[0] = (Indent){0, 0};
    lx->end = lx->pos + n;
    if (n > INT32_MAX / 2 || sdc_py_lex_init_extra(lx, &scanner) != 0)
        return false;
    if (!sdc_py__scan_bytes(text, (int)n, scanner)) {
        sdc_py_lex_destroy(scanner);
        return false;
    }
    while (sdc_py_lex(scanner))
        ;
    sdc_py_lex_destroy(scanner);
    if (lx->depth > lx->base_depth) {
        push_error(lx, lx->open[lx->depth - 1], "this bracket is never closed");
        lx->depth = lx->base_depth;
    } else if (lx->continued) {
        int col = column(lx, lx->pos);
        Loc here = {.src = lx->src, .line = lx->line, .col = col, .end_line = lx->line,
                    .end_col = col};
        push_error(lx, here, "the file ends behind a backslash");
        lx->line_has_token = true;
    }
    int col = column(lx, lx->pos);
    Loc end = {lx->src, lx->line, col, lx->line, col, NULL};
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

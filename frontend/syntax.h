/* From source text to syntax trees: the lexer (lex.l), the grammar (parse.y) and the
   driver (syntax.c) between them. The whole file is first made into an array of tokens
   and cut into its statements of column 0; each is parsed on its own, so that one mistake
   gives one error. The grammar is all of Python's: what Python refuses is refused,
   wherever it stands, because what follows a mistake could be part of a kernel. */
#ifndef SDC_FRONTEND_SYNTAX_H
#define SDC_FRONTEND_SYNTAX_H

#include "frontend/ast.h"
#include "ir/session.h"

enum {
    MAX_SOURCE = 4 << 20,    /* bytes */
    MAX_TOKEN_BYTES = 64 << 10,
    MAX_IDENTIFIER = 1023,
    MAX_NESTING = 256,       /* brackets, and indentation */
    MAX_FIELD_DEPTH = 4      /* f-strings in fields of f-strings */
};

typedef struct Tok {
    int kind;         /* of parse.y; 0 at the end */
    Loc loc;
    Name name;        /* identifiers; the message of an error token */
    Node *node;       /* literals */
    const char *limit; /* Python would take it, sdc does not: why */
} Tok;

typedef struct TokList {
    Tok *at;
    int n, cap;
} TokList;

/* White space before a line, with tabs of eight columns and of one. */
typedef struct Indent {
    int width, plain;
} Indent;

/* State of the lexer over one text. */
typedef struct Lexer {
    Session *s;
    const Source *src;
    TokList out;
    int line, base_line;
    size_t pos, line_start, end; /* offsets in src->text */
    int col_shift;          /* added to columns of the first line (fields of f-strings) */
    int depth, base_depth;  /* open brackets, and those around the text */
    Loc open[MAX_NESTING];  /* where they are */
    Indent indent[MAX_NESTING + 1];
    int nindent;
    Indent joined;          /* of the line whose backslash goes on here */
    bool continued;         /* nothing since that backslash */
    bool line_has_token;
    int string_depth;       /* f-strings inside f-strings */
} Lexer;

typedef struct Parser {
    Session *s;
    const Source *src;
    const Tok *first; /* of the statement; NULL: not known */
    const Tok *tok;   /* tokens from tok up to end, then start gives way to 0 */
    const Tok *end;
    int start;        /* START_FILE or START_EXPR, handed out first */
    bool host;        /* limits are counted, not reported */
    int errors, limits;
    NodeList body;    /* result of START_FILE */
    Node *expr;       /* result of START_EXPR */
    int string_depth;
} Parser;

typedef struct Dotted {
    Name name; /* "a.b.c" */
} Dotted;

/* Tokens of a text. Errors are tokens too (kind BAD_TOKEN with the message as name). */
bool lex_text(Lexer *lx, const char *text, size_t n);

/* Statements of a file. A syntax error is reported and makes the result false. Host code
   past a limit of sdc's own (the depth of a tree, the length of a token) becomes
   ND_SKIPPED; in a jit function that is an error, too. */
bool syntax_parse(Session *s, const Source *src, NodeList *out);

/* ---- for the grammar */
Node *ast_new(Parser *p, NodeKind k, Loc loc);
void ast_push(Parser *p, NodeList *l, Node *n);
Node *ast_done(Parser *p, Node *n); /* depth from the children; reports when too deep */
void parse_error(Parser *p, Loc loc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Python would accept this; sdc does not. */
void parse_limit(Parser *p, Loc loc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Names that are keywords where they stand, see soft.c. */
void syntax_soft_keywords(TokList *toks);

/* Value of string tokens written side by side; JOINED_STR when one is an f-string. */
Node *string_decode(Parser *p, Loc loc, const NodeList *tokens);

/* One expression inside of src (a field of an f-string) at the given place. */
Node *syntax_parse_field(Parser *p, const char *text, size_t n, Loc at);

#endif

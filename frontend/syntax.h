/* From source text to syntax trees: the lexer (lex.l), the grammar (parse.y) and the
   driver (syntax.c) between them. The whole file is first made into an array of tokens
   and cut into its statements of column 0; each is parsed on its own, so that host
   code which sdc does not understand is skipped by block and never hides a kernel. */
#ifndef SDC_FRONTEND_SYNTAX_H
#define SDC_FRONTEND_SYNTAX_H

#include "frontend/ast.h"
#include "ir/session.h"

enum {
    MAX_SOURCE = 4 << 20,    /* bytes */
    MAX_TOKEN_BYTES = 64 << 10,
    MAX_IDENTIFIER = 1023,
    MAX_NESTING = 256        /* brackets, and indentation */
};

typedef struct Tok {
    int kind;         /* of parse.y; 0 at the end */
    Loc loc;
    Name name;        /* identifiers; the message of an error token */
    Node *node;       /* literals */
} Tok;

typedef struct TokList {
    Tok *at;
    int n, cap;
} TokList;

/* State of the lexer over one text. */
typedef struct Lexer {
    Session *s;
    const Source *src;
    TokList out;
    int line, base_line;
    size_t pos, line_start; /* offsets in src->text */
    int col_shift;          /* added to columns of the first line (fields of f-strings) */
    int depth;              /* open brackets */
    Loc open[MAX_NESTING];  /* where they are */
    int indent[MAX_NESTING + 1], nindent;
    bool line_has_token;
    int string_depth;       /* f-strings inside f-strings */
} Lexer;

typedef struct Parser {
    Session *s;
    const Source *src;
    const Tok *tok;   /* tokens from tok up to end, then start gives way to 0 */
    const Tok *end;
    int start;        /* START_FILE or START_EXPR, handed out first */
    bool quiet;       /* errors are counted, not reported */
    int errors;
    NodeList body;    /* result of START_FILE */
    Node *expr;       /* result of START_EXPR */
    int string_depth;
} Parser;

typedef struct Dotted {
    Name name; /* "a.b.c" */
} Dotted;

/* Tokens of a text. Errors are tokens too (kind BAD_TOKEN with the message as name). */
bool lex_text(Lexer *lx, const char *text, size_t n);

/* Statements of a file. Blocks of host code that cannot be parsed become ND_SKIPPED; a
   syntax error inside a jit function, or in a file without any, is reported and makes the
   result false. */
bool syntax_parse(Session *s, const Source *src, NodeList *out);

/* Is this function or class decorated by jit (triton.jit, triton.jit(...), jit)? */
bool node_is_jit(const Node *fn);

/* ---- for the grammar */
Node *ast_new(Parser *p, NodeKind k, Loc loc);
void ast_push(Parser *p, NodeList *l, Node *n);
Node *ast_done(Parser *p, Node *n); /* depth from the children; reports when too deep */
void parse_error(Parser *p, Loc loc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Value of string tokens written side by side; JOINED_STR when one is an f-string. */
Node *string_decode(Parser *p, Loc loc, const NodeList *tokens);

/* One expression inside of src (a field of an f-string) at the given place. */
Node *syntax_parse_field(Parser *p, const char *text, size_t n, Loc at);

#endif

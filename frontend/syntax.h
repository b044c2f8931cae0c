/* From source text to syntax trees, by the lexer (lex.l), the grammar (parse.y) and the
   driver between them (syntax.c). The whole file becomes an array of tokens, which is cut
   at the statements of column 0. Each of these is parsed by itself, so that one mistake
   gives one error. The grammar is all of Python's. What Python refuses is an error
   anywhere in the file, since the text behind a mistake may be part of a kernel. */
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
    int kind;          /* token of parse.y; 0 at the end */
    Loc loc;
    Name name;         /* of an identifier; the message of an error token */
    Node *node;        /* of a literal */
    const char *limit; /* not NULL: Python accepts it, sdc does not, and why */
} Tok;

typedef struct TokList {
    Tok *at;
    int n, cap;
} TokList;

/* The indentation of a line. Both widths must agree about which line is deeper. */
typedef struct Indent {
    int width; /* columns, with tabs of eight */
    int plain; /* columns, with tabs of one */
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
    Loc open[MAX_NESTING];  /* places of the open brackets */
    Indent indent[MAX_NESTING + 1]; /* of the open blocks */
    int nindent;
    Indent joined;          /* of the first line of those joined by backslashes */
    bool continued;         /* no token since the last backslash */
    bool line_has_token;
    int string_depth;       /* f-strings around the text */
} Lexer;

typedef struct Parser {
    Session *s;
    const Source *src;
    const Tok *first; /* of the statement; NULL: not known */
    const Tok *tok;   /* the next token */
    const Tok *end;   /* behind the last one */
    int start;        /* START_FILE or START_EXPR: given to the grammar as first token */
    bool host;        /* host code: limits are counted, not reported */
    int errors, limits; /* so far */
    NodeList body;    /* result of START_FILE */
    Node *expr;       /* result of START_EXPR */
    int string_depth;
} Parser;

typedef struct Dotted {
    Name name; /* "a.b.c" */
} Dotted;

/* Appends the tokens of a text to lx->out; an error becomes a BAD_TOKEN with the message
   as its name. False: there was an error. */
bool lex_text(Lexer *lx, const char *text, size_t n);

/* Parses a file into its statements. False after syntax errors, which are reported. Host
   code beyond a limit of sdc (the depth of a tree, the length of a token) becomes
   ND_SKIPPED; in a jit function that is an error. */
bool syntax_parse(Session *s, const Source *src, NodeList *out);

/* ---- for the grammar */
Node *ast_new(Parser *p, NodeKind k, Loc loc);
void ast_push(Parser *p, NodeList *l, Node *n);
/* To be called when the children are set: computes n->depth, and reports if it is too
   large. */
Node *ast_done(Parser *p, Node *n);
void parse_error(Parser *p, Loc loc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Reports what Python accepts and sdc does not. */
void parse_limit(Parser *p, Loc loc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Makes keywords of names such as `match` where they are used so: soft.c. */
void syntax_soft_keywords(TokList *toks);

/* The literal that adjacent string tokens make; a JOINED_STR if one is an f-string. */
Node *string_decode(Parser *p, Loc loc, const NodeList *tokens);

/* Parses the expression of an f-string's field, which is at `at` in the source. */
Node *syntax_parse_field(Parser *p, const char *text, size_t n, Loc at);

#endif

/* The actions of lex.l's rules. n: the length, in bytes, of the token at lx->pos, which
   they move behind it. */
#ifndef SDC_FRONTEND_LEX_TOKEN_H
#define SDC_FRONTEND_LEX_TOKEN_H

#include "frontend/syntax.h"

void lex_skip(Lexer *lx, int n);     /* white space or a comment */
void lex_continue(Lexer *lx, int n); /* a backslash at the end of a line */
void lex_newline(Lexer *lx, int n);  /* may open or close blocks */
void lex_name(Lexer *lx, int n);     /* a name or keyword */
void lex_op(Lexer *lx, int n);
void lex_int(Lexer *lx, int n, int base);
/* The digits of a number right before a keyword, `1if x`; returns how many there are. */
int lex_digits(Lexer *lx, int n);
void lex_float(Lexer *lx, int n, bool imaginary);
void lex_string(Lexer *lx, int n); /* a whole literal */
/* A literal that the rules have not matched to its end. Both return how many bytes behind
   those n belong to it. */
size_t lex_unclosed_string(Lexer *lx, int n);
size_t lex_format(Lexer *lx, int n);   /* an f-string */
void lex_open(Lexer *lx, char c);      /* a bracket */
void lex_close(Lexer *lx, char c);
void lex_bad(Lexer *lx, int n, const char *why); /* an error token */
/* flex has no memory for its buffers: leaves through the session's fail point. */
_Noreturn void lex_fatal(Lexer *lx, const char *why);

#endif

/* What the rules of lex.l do; `n` is the length of the token at the lexer's position. */
#ifndef SDC_FRONTEND_LEX_TOKEN_H
#define SDC_FRONTEND_LEX_TOKEN_H

#include "frontend/syntax.h"

void lex_skip(Lexer *lx, int n);
void lex_continue(Lexer *lx, int n);
void lex_newline(Lexer *lx, int n);
void lex_name(Lexer *lx, int n);
void lex_op(Lexer *lx, int n);
void lex_int(Lexer *lx, int n, int base);
int lex_digits(Lexer *lx, int n);
void lex_float(Lexer *lx, int n, bool imaginary);
void lex_string(Lexer *lx, int n);
/* Both return how many bytes behind those n belong to the string. */
size_t lex_unclosed_string(Lexer *lx, int n);
size_t lex_format(Lexer *lx, int n);
void lex_open(Lexer *lx, char c);
void lex_close(Lexer *lx, char c);
void lex_bad(Lexer *lx, int n, const char *why);
/* flex cannot go on: no memory for its buffers. */
_Noreturn void lex_fatal(Lexer *lx, const char *why);

#endif

/* Integer expressions of the command line: grids and shapes. */
#ifndef SDC_CLI_GRID_H
#define SDC_CLI_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Value of a name; false when it has none. */
typedef bool ExprLookup(void *user, const char *name, size_t n, int64_t *value);

typedef struct Expr {
    ExprLookup *lookup;
    void *user;
    char error[280]; /* what is wrong, with the place in the text */
} Expr;

/* Evaluates 1 to `most` expressions separated by commas. Operators + - * // % and
   parentheses as in Python, cdiv(a,b), min(...), max(...). Returns how many, or -1 with
   `error` set. Every step is checked for overflow of 64 bits. */
int expr_list(Expr *e, const char *text, size_t n, int64_t *out, int most);

#endif

/* Expressions of the command line, by the reader that grids of compiled kernels have. */
#include "runtime/cli/grid.h"

#include "runtime/rt/expr.h"

#include <stdio.h>

static int
number_of(void *user, const char *name, size_t n, int64_t *value)
{
    Expr *e = user;
    return e->lookup && e->lookup(e->user, name, n, value);
}

int
expr_list(Expr *e, const char *text, size_t n, int64_t *out, int most)
{
    enum { MOST = 16 };
    SdcrtExpr code[MOST];
    SdcrtExprError why = {0};
    if (most > MOST)
        most = MOST;
    int count = sdcrt_expr_parse(text, n, number_of, e, code, most, &why);
    e->error[0] = '\0';
    for (int i = 0; i < count; i++)
        if (!sdcrt_expr_eval(&code[i], NULL, &out[i], &why))
            count = -1;
    if (count < 0)
        snprintf(e->error, sizeof e->error, "%s%s%s%s at column %d of '%.*s'",
                 *why.name ? "'" : "", why.name, *why.name ? "' " : "", why.what,
                 why.column, n > 80 ? 80 : (int)n, text);
    return count;
}

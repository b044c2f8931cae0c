/* The table of --time-report: one line per stage and pass. */
#include "runtime/compile.h"

#include <string.h>

static void
line(Buf *b, const char *name, double seconds, double total, const char *note)
{
    buf_printf(b, "%-20s %9.3f  %5.1f%%%s\n", name, seconds * 1e3,
               total > 0 ? 100 * seconds / total : 0.0, note);
}

void
times_print(Buf *b, const StageTimes *t)
{
    buf_printf(b, "%-20s %9s  %6s\n", "stage", "ms", "share");
    line(b, "load", t->load, t->total, "");
    line(b, "lower", t->lower, t->total, "");
    line(b, "passes", t->passes, t->total, "");
    for (int i = 0; i < t->npass; i++) {
        char name[40] = "  ";
        strncat(name, pass_info[t->pass[i].id].name, 30);
        line(b, name, t->pass[i].seconds, t->total,
             t->pass[i].changed ? "  changed" : "");
    }
    line(b, "codegen", t->codegen - t->llvm_opt - t->llvm_emit, t->total, "");
    line(b, "llvm optimise", t->llvm_opt, t->total, "");
    line(b, "llvm emit", t->llvm_emit, t->total, "");
    line(b, "total", t->total, t->total, "");
}

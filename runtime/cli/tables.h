/* Pages of docs/ made from tables, to the standard output. */
#ifndef SDC_CLI_TABLES_H
#define SDC_CLI_TABLES_H

void print_ops(void);    /* docs/ops.md */
void print_passes(void); /* docs/passes.md */
void print_builtins(void); /* docs/builtins.md */

#endif

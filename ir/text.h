/* Textual tile IR (.tir): what is printed can be read back. Grammar: docs/ir.md. */
#ifndef SDC_IR_TEXT_H
#define SDC_IR_TEXT_H

#include "ir/ir.h"

/* The whole module, layout aliases first. */
void module_print(Buf *out, const Module *m);

/* NULL after errors (in s->diag). The result has been verified. */
Module *module_read(Session *s, const Source *src);

#endif

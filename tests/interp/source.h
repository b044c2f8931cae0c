/* A kernel's text as tile IR, for tests that interpret it. */
#ifndef SDC_TESTS_INTERP_SOURCE_H
#define SDC_TESTS_INTERP_SOURCE_H

#include "ir/ir.h"

/* The kernel of a Triton module (or, when the path ends in .tir, of tile IR), specialized
   by a signature in the command's syntax ("*fp32:16,i32,128") and `NAME=VALUE` bindings,
   separated by commas or spaces. It and its module live as long as the session; NULL
   after errors, which are in s->diag. `text`: NULL reads the file. */
Func *source_kernel(Session *s, const char *path, const char *text, const char *kernel,
                    const char *signature, const char *binds);

/* The diagnostics of a session as text, in its memory. */
const char *source_errors(Session *s);

#endif

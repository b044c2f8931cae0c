/* Text of kernels_dsl/lib/<name>.tk, made part of the library at build time. */
#ifndef SDC_FRONTEND_PRELUDE_TEXT_H
#define SDC_FRONTEND_PRELUDE_TEXT_H

#include <stddef.h>

typedef struct PreludeText {
    const char *name, *text;
    size_t size;
} PreludeText;

extern const PreludeText prelude_texts[]; /* ends with a NULL name */

#endif

/* Where string literals and the fields of f-strings end. */
#ifndef SDC_FRONTEND_LITERAL_H
#define SDC_FRONTEND_LITERAL_H

#include <stddef.h>

/* The length, in bytes, of the literal that begins at s, with its prefix and quotes; 0:
   it is not closed within n bytes. */
size_t literal_length(const char *s, size_t n);

/* s begins the expression of an f-string's field: the offset of the '}', ':', '!' or '='
   that ends it, or n. */
size_t literal_expr_end(const char *s, size_t n);

/* s begins the format of such a field: the offset of the '}' that ends it, or n. */
size_t literal_spec_end(const char *s, size_t n);

#endif

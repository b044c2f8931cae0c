/* How far string literals reach. */
#ifndef SDC_FRONTEND_LITERAL_H
#define SDC_FRONTEND_LITERAL_H

#include <stddef.h>

/* Length of the literal, prefix and quotes included, that begins at s; 0 when it is not
   closed within n characters. */
size_t literal_length(const char *s, size_t n);

/* Where the expression of a field of an f-string ends that begins at s: at the '}', ':',
   '!' or '=' behind it, or at n. */
size_t literal_expr_end(const char *s, size_t n);

/* The '}' behind the format of such a field that begins at s, or n. */
size_t literal_spec_end(const char *s, size_t n);

#endif

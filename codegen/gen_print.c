/* What all targets print in front of a value of device_print, as Triton does. */
#include "codegen/gen.h"

#include <string.h>

/* The author's text between spaces, with a colon before values. */
void
gen_print_text(Buf *b, const char *text, bool values, int operand, int count)
{
    size_t n = text ? strlen(text) : 0;
    if (n && text[0] != ' ')
        buf_char(b, ' ');
    buf_str(b, text ? text : "");
    if (values && !(n > 1 && text[n - 2] == ':' && text[n - 1] == ' '))
        buf_str(b, n && text[n - 1] == ':' ? " " : ": ");
    if (values && count > 1)
        buf_printf(b, "(operand %d) ", operand);
}

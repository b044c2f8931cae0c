/* The argument makers of sdc.h as functions of the library, for languages that call C and
   have no C compiler: the header's own text, not inline. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the definitions are those */
#define SDC_MAKER __attribute__((visibility("default")))
#include "runtime/sdc.h"

/* Option structs of hosts that were compiled with another version's header. Each begins
   with its size: what this version knows is copied, members that the host's header does
   not have are zero, which is their default, and members that are not known here must
   be. */
#include "runtime/internal.h"

#include <string.h>

enum { MOST = 1 << 16 }; /* no struct is so long: the member was never set */

bool
options_read(void *to, size_t known, const void *from, size_t size)
{
    if (size == 0)
        size = known;
    if (size < sizeof size || size > MOST)
        return false;
    memset(to, 0, known);
    memcpy(to, from, size < known ? size : known);
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)from)[i] != 0)
            return false;
    return true;
}

SdcStatus
options_wrong(SdcContext *cx, const char *call, size_t size, size_t known)
{
    return context_fail(cx, SDC_ERROR_ARGUMENT,
                        "%s: options of %zu bytes, known are %zu: set 'size' to the "
                        "struct's, and no member that this libsdc (" SDC_VERSION
                        ") does not have",
                        call, size, known);
}

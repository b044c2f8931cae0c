/* The table of targets, from ir/target.def. */
#include "ir/target.h"

#include "ir/base/util.h"

#include <string.h>

static const struct {
    const char *name;
    TargetInfo info;
} targets[] = {
#define TARGET(name, ...) {name, {__VA_ARGS__}},
#include "ir/target.def"
};

bool
target_info(const char *name, TargetInfo *out)
{
    for (int i = 0; i < COUNT_OF(targets); i++) {
        if (strcmp(targets[i].name, name) == 0) {
            *out = targets[i].info;
            return true;
        }
    }
    return false;
}

const char *
target_names(void)
{
    static const char names[] =
#define TARGET(name, ...) ", " name
#include "ir/target.def"
        ;
    return names + 2;
}

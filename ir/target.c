/* The table of targets. Shared memory: opt-in maximum per block of each architecture,
   from the CUDA programming guide's table of compute capabilities. */
#include "ir/target.h"

#include "ir/base/util.h"

#include <string.h>

static const struct {
    const char *name;
    TargetInfo info;
} targets[] = {
    {"cpu", {.warp_size = 1, .vector_bytes = 32}},
    {"sm_80", {.gpu = true, .sm = 80, .warp_size = 32, .shared_bytes = 166912}},
    {"sm_86", {.gpu = true, .sm = 86, .warp_size = 32, .shared_bytes = 101376}},
    {"sm_89", {.gpu = true, .sm = 89, .warp_size = 32, .shared_bytes = 101376}},
    {"sm_90",
     {.gpu = true, .sm = 90, .tma = true, .warp_size = 32, .shared_bytes = 232448}},
    {"sm_90a",
     {.gpu = true,
      .sm = 90,
      .feature_a = true,
      .tma = true,
      .tensor_maps = true,
      .wgmma = true,
      .warp_size = 32,
      .shared_bytes = 232448}},
    {"sm_100",
     {.gpu = true, .sm = 100, .tma = true, .warp_size = 32, .shared_bytes = 232448}},
    {"sm_120",
     {.gpu = true, .sm = 120, .tma = true, .warp_size = 32, .shared_bytes = 101376}},
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
    return "cpu, sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100, sm_120";
}

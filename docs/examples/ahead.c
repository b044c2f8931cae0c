/* A kernel that was compiled ahead of time: no compiler in the program, no file beside
   it. Dropout's mask is a function of the seed, so it does not matter which thread runs
   which program; here they are run in one piece, then in four that threads could share.
 */
#include <sdc/sdc_kernels.h>

#include <stdio.h>

enum { N = 1000 };

int
main(void)
{
    static float x[N], whole[N], parts[N];
    SdcrtError why;
    SdcrtCall call;
    int kept = 0, same = 1;
    for (int i = 0; i < N; i++)
        x[i] = 1;
    if (sdc_dropout_fwd_cpu(NULL, x, whole, N, 0.5f, 42, &why) != SDCRT_OK ||
        sdc_dropout_fwd_prepare(&call, x, parts, N, 0.5f, 42, &why) != SDCRT_OK)
        return fprintf(stderr, "%s\n", why.text), 1;
    const int64_t programs = sdcrt_grid_size(call.grid);
    for (int64_t i = 0; i < 4; i++)
        if (sdcrt_run_range(call.entry, call.slots, call.grid, call.scratch,
                            programs * i / 4, programs * (i + 1) / 4) != SDCRT_OK)
            return 1;
    for (int i = 0; i < N; i++) {
        kept += whole[i] != 0;
        same &= whole[i] == parts[i];
    }
    printf("dropout kept %d of %d, in 1 piece and in 4 %s\n", kept, N,
           same ? "the same" : "others");
    return !same;
}

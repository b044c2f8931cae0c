/* For tests/cli/tune.test: how many programs launches of several sizes would have. */
#include <scale.h>

#include <stdio.h>

static float x[100000], y[100000];

static long long
programs(int n)
{
    SdcrtCall call;
    SdcrtError e;
    if (scale_prepare(&call, x, y, n, &e) != SDCRT_OK) {
        printf("%s\n", e.text);
        return -1;
    }
    return (long long)sdcrt_grid_size(call.grid);
}

int
main(void)
{
    printf("n 90: %lld programs; n 150: %lld; n 80000: %lld\n", programs(90),
           programs(150), programs(80000));
    return 0;
}

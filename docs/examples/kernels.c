/* A kernel that CMake compiled with the program (sdc_add_kernels): a function of C, on
   the CPU here, and scale_cuda on a GPU. */
#include "scale.h"

#include <stdio.h>

int
main(void)
{
    static float x[1000], out[1000];
    SdcrtError why;
    for (int i = 0; i < 1000; i++)
        x[i] = (float)i;
    if (scale_cpu(NULL, x, out, 1000, 3.0f, &why) != SDCRT_OK)
        return fprintf(stderr, "%s\n", why.text), 1;
    printf("3 * 999 = %g\n", out[999]);
    return 0;
}

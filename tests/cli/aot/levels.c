/* One object with code for several levels of x86-64: all give what is expected. */
#include <scale.h>

#include <stdio.h>

int
main(void)
{
    static float x[1000], out[1000];
    SdcrtError why;
    for (int i = 0; i < 1000; i++)
        x[i] = (float)i;
    if (scale_cpu(NULL, x, out, 1000, 1, 0.5f, &why) != SDCRT_OK)
        return printf("%s\n", why.text), 1;
    for (int i = 0; i < 1000; i++)
        if (out[i] != 0.5f * (float)i)
            return printf("%d: %g\n", i, (double)out[i]), 1;
    printf("right\n");
    return 0;
}

/* A product compiled ahead of time, with the fake driver: all tensor maps, those of loads
   alone, or none, by what the arguments make. argv[1] is the driver. */
#include <k.h>
#include "tests/fake_cuda/fake_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int
main(int argc, char **argv)
{
    static const struct {
        int n, pitch;
    } cases[] = {{64, 72}, {63, 72}, {64, 69}, {64, 72}};
    SdcrtCuda *gpu;
    SdcrtError e;
    FakeCudaGet *get;
    void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void *p = lib ? dlsym(lib, "fake_cuda") : NULL, *at = (void *)(uintptr_t)(1 << 20);
    if (!p || sdcrt_cuda_open(0, &gpu, &e) != SDCRT_OK)
        return puts("no fake driver") < 0;
    memcpy(&get, &p, sizeof get);
    for (int i = 0; i < 4; i++) {
        int pitch = cases[i].pitch, column = pitch == 69 ? 201 : 200;
        SdcrtStatus s = matmul_cuda(gpu, NULL, at, at, at, NULL, 64, cases[i].n, 200, 200,
                                    1, 1, column, pitch, 1, &e);
        if (s != SDCRT_OK)
            puts(e.text);
        printf("%d ", get()->last.nparam);
    }
    puts("parameters");
    sdcrt_cuda_close(gpu);
    return 0;
}

/* Tuples and a descriptor in one, on the CPU and, when asked, on a GPU: an argument of
   the launcher for each element. */
#include <k.h>

#include <stdio.h>
#include <stdlib.h>

enum { N = 128, NA = 100, NX = 90, ROWS = 32, COLS = 16, BLOCK = 64, STEP = 16 };

static float a[N], x[N], out[N];
static uint16_t table[ROWS * COLS];

static int
wrong(const char *where)
{
    int n = 0;
    for (int i = 0; i < N; i++) {
        float row = 0;
        for (int k = 0; k < STEP * COLS; k++) /* 1.0 in fp16 is 0x3c00, 2.0 0x4000 */
            row += table[(i / BLOCK) * STEP * COLS + k] == 0x3c00 ? 1.0f : 2.0f;
        float want = (i < NA ? a[i] * 0.5f : 0) + (i < NX ? x[i] : 0) + row + 7;
        if (out[i] != want && !n++)
            printf("%s: wrong at %d: %g, not %g\n", where, i, (double)out[i],
                   (double)want);
        out[i] = 0;
    }
    return n;
}

static uint64_t
there(SdcrtCuda *gpu, const void *from, size_t bytes)
{
    uint64_t at = 0;
    if (sdcrt_cuda_alloc(gpu, bytes, &at, NULL) != SDCRT_OK ||
        sdcrt_cuda_write(gpu, at, from, bytes, NULL) != SDCRT_OK)
        exit(3);
    return at;
}

static int
on_gpu(SdcrtTensor t)
{
    SdcrtCuda *gpu;
    SdcrtError e;
    if (sdcrt_cuda_open(0, &gpu, &e) != SDCRT_OK)
        return puts(e.text) > 0;
    uint64_t to = there(gpu, out, sizeof out);
    t.base = (void *)(uintptr_t)there(gpu, table, sizeof table);
    if (blend_cuda(gpu, NULL, (float *)(uintptr_t)to,
                   (float *)(uintptr_t)there(gpu, a, sizeof a), NA, 0.5f, &t, STEP, 7,
                   (float *)(uintptr_t)there(gpu, x, sizeof x), NX, &e) != SDCRT_OK)
        return puts(e.text) > 0;
    if (sdcrt_cuda_read(gpu, out, to, sizeof out, &e) != SDCRT_OK)
        return puts(e.text) > 0;
    return wrong("gpu");
}

int
main(int argc, char **argv)
{
    SdcrtError e;
    SdcrtTensor t = {table, {ROWS, COLS}, {COLS, 1}};
    (void)argv;
    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        x[i] = (float)(2 * i);
    }
    for (int i = 0; i < ROWS * COLS; i++)
        table[i] = i % 3 ? 0x3c00 : 0x4000;
    if (blend_cpu(NULL, out, a, NA, 0.5f, &t, STEP, 7, x, NX, &e) != SDCRT_OK)
        puts(e.text);
    int n = wrong("cpu");
    /* an element that is bound must be what it is bound to */
    if (blend_cpu(NULL, out, a, NA, 0.5f, &t, STEP, 8, x, NX, &e) != SDCRT_ERROR_ARGUMENT)
        n += puts("8 is taken for 7") > 0;
    if (argc > 1)
        n += on_gpu(t);
    printf("%d wrong\n", n);
    return n != 0;
}

/* A matrix of 4-bit weights times a vector, as inference engines decode a token:
   quant.tk, compiled with the program, run by the program's own two threads, beside
   plain C. */
#include "quant.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { N = 300, K = 512, THREADS = 2 };

static float x[K], out[N];
static uint8_t weights[N][K / 2];
static uint16_t scales[N][K / 32]; /* fp16 */

typedef struct Part {
    const SdcrtCall *call;
    int64_t first, last; /* programs */
    SdcrtStatus status;
} Part;

static void *
run(void *arg)
{
    Part *p = arg;
    const SdcrtCall *c = p->call;
    p->status = sdcrt_run_range(c->entry, c->slots, c->grid, c->scratch, p->first,
                                p->last);
    return NULL;
}

static int
multiply(void)
{
    SdcrtCall call;
    SdcrtError why;
    Part part[THREADS];
    pthread_t thread[THREADS];
    if (quant_prepare(&call, x, weights[0], scales, out, N, K, &why) != SDCRT_OK)
        return fprintf(stderr, "%s\n", why.text), 1;
    const int64_t programs = sdcrt_grid_size(call.grid);
    for (int i = 0; i < THREADS; i++) {
        part[i] = (Part){&call, programs * i / THREADS, programs * (i + 1) / THREADS, 0};
        if (i > 0 && pthread_create(&thread[i], NULL, run, &part[i]))
            return perror("thread"), 1;
    }
    run(&part[0]);
    int bad = part[0].status != SDCRT_OK;
    for (int i = 1; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        bad |= part[i].status != SDCRT_OK;
    }
    return bad;
}

/* One row in double precision. */
static double
reference(int row)
{
    double sum = 0;
    for (int k = 0; k < K; k++) {
        const uint8_t byte = weights[row][k / 32 * 16 + k % 16];
        const int q = (k % 32 < 16 ? byte & 15 : byte >> 4) - 8;
        sum += (row % 2 ? 0.5 : 0.25) * q * x[k];
    }
    return sum;
}

int
main(void)
{
    double worst = 0;
    for (int k = 0; k < K; k++)
        x[k] = (float)(k % 9 - 4) / 8;
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < K / 2; k++)
            weights[i][k] = (uint8_t)(i * 7 + k * 13);
        for (int g = 0; g < K / 32; g++)
            scales[i][g] = i % 2 ? 0x3800 : 0x3400; /* 0.5, 0.25 */
    }
    if (multiply() != 0)
        return 1;
    for (int i = 0; i < N; i++)
        worst = fmax(worst, fabs(reference(i) - out[i]));
    printf("4-bit weights: %d rows in %d threads %s\n", N, THREADS,
           worst < 1e-3 ? "right" : "wrong");
    return worst >= 1e-3;
}

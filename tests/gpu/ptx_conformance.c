/* The simulator's instructions (tests/sim/conformance.c) against the device's: each in a
   small kernel over edges and random inputs, the bits compared. A line an instruction;
   status 1 when one differs by more than it may.

       build/ptx_conformance [COUNT [PART]]    inputs of each, 65536; names with PART
 */
#include "runtime/rt/cuda.h"
#include "tests/sim/conformance.h"
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Run {
    SdcrtCuda *cuda;
    SdcrtError e;
    uint64_t in, out; /* of the device */
    uint64_t *inputs, *device, *sim;
    size_t n;
} Run;

static int
on_device(Run *r, const char *ptx)
{
    SdcrtMeta meta = {.name = "f", .symbol = "f", .nparam = 2, .threads = CONF_THREADS};
    uint64_t args[2] = {r->in, r->out};
    const SdcGrid grid = {(int32_t)(r->n / CONF_THREADS), 1, 1};
    SdcrtCudaKernel *k = NULL;
    meta.params[0] = meta.params[1] =
        (SdcrtParam){.kind = SDCRT_PTR, .bits = 64, .div = 1};
    snprintf(meta.target, sizeof meta.target, "sm_90");
    int ok =
        sdcrt_cuda_write(r->cuda, r->in, r->inputs, r->n * 8 * CONF_SLOTS, &r->e) == 0 &&
        sdcrt_cuda_fill(r->cuda, r->out, 0, r->n * 8, &r->e) == 0 &&
        sdcrt_cuda_load(r->cuda, ptx, &meta, &k, &r->e) == 0 &&
        sdcrt_cuda_launch(r->cuda, k, args, grid, NULL, &r->e) == 0 &&
        sdcrt_cuda_wait(r->cuda, &r->e) == 0 &&
        sdcrt_cuda_read(r->cuda, r->device, r->out, r->n * 8, &r->e) == 0;
    sdcrt_cuda_unload(r->cuda, k);
    return ok;
}

static int
on_simulator(Run *r, const char *ptx, char *message, size_t size)
{
    SimModule *m = sim_load(ptx, message, size);
    const void *params[2] = {&r->inputs, &r->sim};
    SimLaunch q = {.params = params, .nparam = 2, .grid = {(int)(r->n / CONF_THREADS)}};
    memset(r->sim, 0, r->n * 8);
    int ok = m && sim_run(m, &q, NULL, message, size) == SIM_OK;
    sim_unload(m);
    return ok;
}

static int
compare(Run *r, const ConfInsn *i)
{
    char ptx[4096], message[600] = "";
    size_t differ = 0, close = 0, first = 0;
    conf_ptx(i, ptx, sizeof ptx);
    for (size_t k = 0; k < r->n; k++)
        conf_inputs(i, k, r->inputs + CONF_SLOTS * k);
    if (!on_simulator(r, ptx, message, sizeof message)) {
        printf("WRONG  %-36s the simulator: %s\n", i->text, message);
        return 1;
    }
    if (!on_device(r, ptx)) {
        printf("FAILED %-36s %.200s\n", i->text, r->e.text);
        return 1;
    }
    for (size_t k = 0; k < r->n; k++) {
        int agree = conf_agree(i, r->sim[k], r->device[k]);
        if (!agree && !differ++)
            first = k;
        close += agree == 1;
    }
    printf("%-6s %-36s %zu inputs, %zu differ, %zu other NaNs or within bounds",
           differ ? "WRONG" : "ok", i->text, r->n, differ, close);
    if (differ) {
        const uint64_t *x = r->inputs + CONF_SLOTS * first;
        printf("; of %llx %llx %llx %llx: %llx, the device %llx",
               (unsigned long long)x[0], (unsigned long long)x[1],
               (unsigned long long)x[2], (unsigned long long)x[3],
               (unsigned long long)r->sim[first], (unsigned long long)r->device[first]);
    }
    printf("\n");
    return differ > 0;
}

int
main(int argc, char **argv)
{
    Run r = {.n = argc > 1 ? strtoul(argv[1], NULL, 10) : 65536};
    const char *part = argc > 2 ? argv[2] : "";
    int wrong = 0, count = 0;
    r.n = (r.n + CONF_THREADS - 1) / CONF_THREADS * CONF_THREADS;
    r.inputs = calloc(r.n, 8 * CONF_SLOTS);
    r.device = calloc(r.n, 8);
    r.sim = calloc(r.n, 8);
    if (sdcrt_cuda_open(0, &r.cuda, &r.e) != 0) {
        printf("SKIPPED: %s\n", r.e.text);
        return 0;
    }
    if (sdcrt_cuda_alloc(r.cuda, r.n * 8 * CONF_SLOTS, &r.in, &r.e) != 0 ||
        sdcrt_cuda_alloc(r.cuda, r.n * 8, &r.out, &r.e) != 0) {
        printf("FAILED: %s\n", r.e.text);
        return 1;
    }
    for (int k = 0; k < conf_count(); k++)
        if (strstr(conf_insns[k].text, part)) {
            wrong += compare(&r, &conf_insns[k]);
            count++;
        }
    printf("%d instructions, %d differ\n", count, wrong);
    return wrong > 0;
}

/* See compile.h. */
#include "tests/sim/compile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Kernel
kernel_of(SdcContext *ctx, SdcModule *mod, const SdcCompileOptions *options,
          const char *what)
{
    SdcOutput *out = NULL;
    Kernel k = {0};
    char message[400];
    if (sdc_compile(mod, options, &out) != SDC_OK)
        ck_abort_msg("%s\n%s", sdc_error(ctx), what);
    size_t size;
    const void *bytes = sdc_output_data(out, &size);
    k.ptx = malloc(size + 1);
    memcpy(k.ptx, bytes, size);
    k.ptx[size] = '\0';
    sdc_output_destroy(out);
    k.module = sim_load(k.ptx, message, sizeof message);
    if (!k.module)
        ck_abort_msg("%s\n%s", message, what);
    sdc_context_destroy(ctx);
    return k;
}

Kernel
kernel_file(const char *name, const char *kernel, const char *signature, int warps,
            int stages, const char *target)
{
    SdcContext *ctx;
    SdcModule *mod;
    char path[512], w[32], s[32];
    const char *bind[] = {w, s};
    snprintf(path, sizeof path, "%s/kernels_dsl/%s.tk", SDC_ROOT, name);
    snprintf(w, sizeof w, "num_warps=%d", warps);
    snprintf(s, sizeof s, "num_stages=%d", stages);
    ck_assert_int_eq(sdc_context_create(NULL, &ctx), SDC_OK);
    if (sdc_module_load_file(ctx, path, &mod) != SDC_OK)
        ck_abort_msg("%s", sdc_error(ctx));
    SdcCompileOptions o = {.kernel = kernel,
                           .signature = signature,
                           .bind = bind,
                           .nbind = 2,
                           .target = target,
                           .emit = SDC_EMIT_ASM};
    return kernel_of(ctx, mod, &o, signature);
}

Kernel
kernel_ir(const char *text, const char *target, const char *passes)
{
    SdcContext *ctx;
    SdcModule *mod;
    ck_assert_int_eq(sdc_context_create(NULL, &ctx), SDC_OK);
    if (sdc_module_load_text(ctx, "test.tir", text, strlen(text), SDC_LANG_TIR, &mod) !=
        SDC_OK)
        ck_abort_msg("%s\n%s", sdc_error(ctx), text);
    SdcCompileOptions o = {.target = target, .emit = SDC_EMIT_ASM, .passes = passes};
    return kernel_of(ctx, mod, &o, text);
}

void
kernel_free(Kernel *k)
{
    sim_unload(k->module);
    free(k->ptx);
}

void
kernel_run(Kernel *k, const uint64_t *args, int nargs, const void *memory, size_t bytes,
           uint64_t seed)
{
    const void *params[64];
    SimRange range = {memory, bytes};
    SimStats stats;
    char message[600];
    for (int i = 0; i < nargs; i++)
        params[i] = &args[i];
    SimLaunch q = {
        .params = params, .nparam = nargs, .ranges = &range, .nrange = 1, .seed = seed};
    SimStatus s = sim_run(k->module, &q, &stats, message, sizeof message);
    if (s != SIM_OK)
        ck_abort_msg("%s, seed %llu: %s", sim_status_name(s), (unsigned long long)seed,
                     message);
    k->barriers = (int)stats.barriers;
}

uint32_t
random_below(Random *r, uint32_t n)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    uint32_t x = (uint32_t)(r->state >> 32);
    x = (x ^ x >> 15) * 0x2c1b3c6du;
    x ^= x >> 13;
    return (uint32_t)((uint64_t)x * n >> 32);
}

int
random_between(Random *r, int low, int high)
{
    return low + (int)random_below(r, (uint32_t)(high - low + 1));
}

bool
random_chance(Random *r, int percent)
{
    return random_below(r, 100) < (uint32_t)percent;
}

double
random_normal(Random *r)
{
    double u = (random_below(r, 1u << 24) + 0.5) / (1 << 24);
    double v = (random_below(r, 1u << 24) + 0.5) / (1 << 24);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

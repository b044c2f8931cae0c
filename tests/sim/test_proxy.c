/* What threads have read is read when a tensor copy overwrites it: small kernels written
   by hand, with the reading threads' fence, without it and with one in a wrong place; and
   a kernel of loops/ whose threads read what TMA brought, with roles and without: each
   fence in front of an arrival that gives such a buffer back must be missed. */
#include "tests/sim/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/rt/cuda.h"
#include "tests/sim/number.h"

enum { SEEDS = 5, BOX = 128 };

/* ---------------------------------------------------------------- by hand */

static _Alignas(64) uint32_t memory[BOX / 4];

/* %r0: the thread, %r2: shared memory + 4 * thread, %r5: 128 bytes on or back, %p0: lane
   0, %p1: thread 0, %p2: warp 1; full: an mbarrier of the copies, empty: of an arrival of
   each lane of warp 0. */
static SimStatus
run(const char *body, uint64_t seed, char *message, size_t size)
{
    char text[8192];
    unsigned char map[SIM_MAP_BYTES];
    snprintf(text, sizeof text,
             ".version 8.1\n.target sm_90a\n.address_size 64\n"
             ".extern .shared .align 1024 .b8 shared[];\n"
             ".visible .entry f(\n\t.param .align 64 .b8 f_param_0[128]\n)\n"
             ".reqntid 64\n{\n\t.reg .pred %%p<9>;\n\t.reg .b32 %%r<99>;\n"
             "\t.reg .b64 %%rd<9>;\n\tmov.b64 %%rd0, f_param_0;\n"
             "\tcvta.param.u64 %%rd0, %%rd0;\n\tmov.u32 %%r0, %%tid.x;\n"
             "\tand.b32 %%r1, %%r0, 31;\n\tshl.b32 %%r3, %%r0, 2;\n"
             "\tmov.b32 %%r2, shared;\n\tadd.s32 %%r6, %%r2, 1024;\n"
             "\tadd.s32 %%r2, %%r2, %%r3;\n\txor.b32 %%r5, %%r2, 128;\n"
             "\tshr.u32 %%r4, %%r0, 5;\n\tsetp.eq.b32 %%p0, %%r1, 0;\n"
             "\tsetp.eq.b32 %%p1, %%r0, 0;\n\tsetp.eq.b32 %%p2, %%r4, 1;\n"
             "\tmov.b32 %%r9, shared;\n\tmov.b32 %%r10, 0;\n"
             "\t@%%p1 mbarrier.init.shared::cta.b64 [%%r6], 1;\n"
             "\t@%%p1 mbarrier.init.shared::cta.b64 [%%r6+8], 32;\n"
             "\tfence.mbarrier_init.release.cluster;\n"
             "\tst.shared.b32 [%%r2], %%r0;\n\tbar.sync 0;\n%s\tret;\n}\n",
             body);
    SimModule *m = sim_load(text, message, size);
    if (!m)
        return SIM_TEXT;
    SimMap box = {.base = memory,
                  .rank = 1,
                  .type = 2,
                  .stride = {4},
                  .dim = {BOX / 4},
                  .box = {BOX / 4}};
    sim_map_encode(&box, map);
    const void *params[] = {map};
    SimRange range = {memory, sizeof memory};
    SimLaunch q = {.params = params,
                   .nparam = 1,
                   .ranges = &range,
                   .nrange = 1,
                   .seed = seed,
                   .shared = 4096,
                   .max_steps = 100000};
    SimStatus s = sim_run(m, &q, NULL, message, size);
    sim_unload(m);
    return s;
}

#define READ  "ld.shared.b32 %r7, [%r2];\n"
#define FENCE "fence.proxy.async.shared::cta;\n"
#define SYNC  "bar.sync 0;\n"
#define COPY(p)                                                                          \
    "@" p " mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 128;\n"                  \
    "@" p " cp.async.bulk.tensor.1d.shared::cluster.global.tile"                         \
    ".mbarrier::complete_tx::bytes [%r9], [%rd0, {%r10}], [%r6];\n"
#define WAIT(at)                                                                         \
    "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [" at      \
    "], 0; @!done bra again; }\n"
#define ARRIVE "mbarrier.arrive.shared::cta.b64 _, [%r6+8];\n"
/* Warp 0 reads, and gives back to warp 1, which copies. */
#define ROLES(consumer, producer)                                                        \
    "@%p2 bra producer;\n" consumer "bra over;\nproducer:\n" WAIT("%r6+8")               \
        producer COPY("%p0") WAIT("%r6") "over:\n"

typedef struct Case {
    const char *name;
    bool found;
    const char *body;
} Case;

static const Case cases[] = {
    {"fenced", false, READ FENCE SYNC COPY("%p1") WAIT("%r6")},
    {"not fenced", true, READ SYNC COPY("%p1") WAIT("%r6")},
    {"by any fence", false, READ "fence.proxy.async;\n" SYNC COPY("%p1") WAIT("%r6")},
    {"by one of global memory", true,
     READ "fence.proxy.async.global;\n" SYNC COPY("%p1") WAIT("%r6")},
    {"fenced in front of the read", true, FENCE READ SYNC COPY("%p1") WAIT("%r6")},
    {"behind the barrier", true, READ SYNC FENCE COPY("%p1") WAIT("%r6")},
    {"by the copying thread alone", true,
     READ "@%p1 " FENCE SYNC COPY("%p1") WAIT("%r6")},
    {"its own read", true, SYNC "@%p1 " READ COPY("%p1") WAIT("%r6")},
    {"other bytes", false, "@%p2 " READ SYNC COPY("%p1") WAIT("%r6")},
    {"the other warp's read", true,
     "@%p2 ld.shared.b32 %r7, [%r5];\n" SYNC COPY("%p1") WAIT("%r6")},
    {"read, fenced and read again", true, READ FENCE READ SYNC COPY("%p1") WAIT("%r6")},
    {"written since", true,
     READ SYNC "xor.b32 %r7, %r2, 128;\nst.shared.b32 [%r7], %r0;\n" SYNC COPY("%p1")
         WAIT("%r6")},
    {"read by others since, who fenced", true,
     READ SYNC "ld.shared.b32 %r7, [%r5];\n@%p2 " FENCE SYNC COPY("%p1") WAIT("%r6")},
    {"read of what a copy brought", true,
     READ FENCE SYNC COPY("%p1") WAIT("%r6") READ SYNC COPY("%p1")},
    {"given back, fenced", false, ROLES(READ FENCE ARRIVE, "")},
    {"given back, not fenced", true, ROLES(READ ARRIVE, "")},
    {"given back, then fenced", true, ROLES(READ ARRIVE FENCE, "")},
    {"fenced by the producer", true, ROLES(READ ARRIVE, FENCE)},
};

START_TEST(by_hand)
{
    const Case *c = &cases[_i];
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        char message[600] = "";
        SimStatus s = run(c->body, seed, message, sizeof message);
        bool found = s == SIM_ASYNC && strstr(message, "a copy overwrites") &&
                     strstr(message, "ld.shared.b32");
        ck_assert_msg(c->found ? found : s == SIM_OK, "%s, seed %d: %s: %s", c->name,
                      (int)seed, sim_status_name(s), message);
    }
}
END_TEST

/* ---------------------------------------------------------------- kernels */

typedef struct Subject {
    const char *kernel, *spec;
    int warps, stages;
} Subject;

/* With roles, and without. */
static const Subject subjects[] = {
    {"bias_tile",
     "q_ptr=*fp16:16,k_ptr=*fp16:16,v_ptr=*fp16:16,bias_ptr=*fp16:16,o_ptr=*fp16:16,"
     "scale=fp32,M=i32:16,N=i32:16,D=64,BLOCK_M=128,BLOCK_N=32",
     4, 3},
    {"bias_tile",
     "q_ptr=*fp16:16,k_ptr=*fp16:16,v_ptr=*fp16:16,bias_ptr=*fp16:16,o_ptr=*fp16:16,"
     "scale=fp32,M=i32:16,N=i32:16,D=64,BLOCK_M=32,BLOCK_N=64",
     2, 3},
};

enum { ROWS = 128, COLUMNS = 256 };

static SdcrtCuda *cuda;
static SdcrtError e;

static char *
compile(const Subject *s, SdcrtMeta *meta)
{
    SdcContext *ctx;
    SdcModule *mod;
    SdcOutput *out;
    char w[32], st[32];
    const char *options[] = {w, st};
    int n;
    snprintf(w, sizeof w, "num_warps=%d", s->warps);
    snprintf(st, sizeof st, "num_stages=%d", s->stages);
    ck_assert_int_eq(sdc_context_create(NULL, &ctx), SDC_OK);
    SdcCompileOptions o = {.kernel = s->kernel,
                           .signature = s->spec,
                           .bind = options,
                           .nbind = 2,
                           .target = "sm_90a",
                           .emit = SDC_EMIT_ASM};
    if (sdc_module_load_file(ctx, SDC_ROOT "/tests/loops/attention.tk", &mod) != SDC_OK ||
        sdc_compile(mod, &o, &out) != SDC_OK)
        ck_abort_msg("%s", sdc_error(ctx));
    char *ptx = strdup(sdc_output_data(out, NULL));
    *meta = *sdc_output_meta(out, &n);
    sdc_output_destroy(out);
    sdc_context_destroy(ctx);
    return ptx;
}

static SdcrtStatus
launch(const char *ptx, const SdcrtMeta *meta, const uint64_t *args, int blocks, int seed)
{
    SdcrtCudaKernel *k;
    char text[16];
    const SdcGrid grid = {blocks, 1, 1};
    snprintf(text, sizeof text, "%d", seed);
    setenv("SIM_SEED", text, 1);
    if (sdcrt_cuda_load(cuda, ptx, meta, &k, &e) != SDCRT_OK)
        ck_abort_msg("%s", e.text);
    SdcrtStatus status = sdcrt_cuda_launch(cuda, k, args, grid, NULL, &e);
    sdcrt_cuda_unload(cuda, k);
    return status;
}

/* Does an arrival that gives a buffer back come next behind the fence? */
static bool
gives_back(const char *fence)
{
    const char *arrive = strstr(fence, "mbarrier.arrive.shared");
    static const char *const others[] = {"bar.sync", "expect_tx", "st.shared", "$L"};
    for (int k = 0; k < 4; k++) {
        const char *other = strstr(fence, others[k]);
        if (other && arrive && other < arrive)
            return false;
    }
    return arrive != NULL;
}

START_TEST(missing_proxy_fences_are_found)
{
    const Subject *s = &subjects[_i];
    SdcrtMeta meta;
    char *ptx = compile(s, &meta);
    uint64_t args[8] = {0, 0, 0, 0, 0, f32_raw(0.125f), ROWS, COLUMNS};
    int n = 0, missed = 0;
    ck_assert_msg(sdcrt_cuda_open(0, &cuda, &e) == SDCRT_OK, "%s", e.text);
    for (int k = 0; k < 5; k++) {
        ck_assert(sdcrt_cuda_alloc(cuda, ROWS * COLUMNS * 2, &args[k], &e) == SDCRT_OK);
        memset((void *)(uintptr_t)args[k], 0, ROWS * COLUMNS * 2);
    }
    for (int seed = 0; seed < SEEDS; seed++)
        ck_assert_msg(launch(ptx, &meta, args, 1, seed) == SDCRT_OK, "%s", e.text);
    for (char *at = ptx; (at = strstr(at, "fence.proxy.async")); at++, n++) {
        memcpy(at, "//", 2);
        bool found = launch(ptx, &meta, args, 1, 1) != SDCRT_OK &&
                     strstr(e.text, "a copy overwrites");
        memcpy(at, "fe", 2);
        missed += found;
        ck_assert_msg(found || !gives_back(at), "%s, %d warps: fence %d is not missed",
                      s->kernel, s->warps, n);
    }
    ck_assert_int_ge(missed, 1);
    free(ptx);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("proxy");
    TCase *tc = tcase_create("proxy");
    setenv("SDC_LIBCUDA", SIM_DRIVER, 1);
    setenv("SDC_CACHE", "off", 1);
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, by_hand, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(tc, missing_proxy_fences_are_found, 0,
                        (int)(sizeof subjects / sizeof *subjects));
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}

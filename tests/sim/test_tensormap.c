/* Tensor maps that a kernel writes: products of tensors that it alone knows, right under
   several interleavings; each step of writing a map taken away, which must be found; and
   slots that every program gives back. */
#include "tests/sim/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/number.h"

enum { GROUPS = 2, M = 96, N = 72, K = 64, SEEDS = 4, TRIES = 8, SLOTS = 256 * 16 };

static const char signature[] =
    "a_list=*i64:16,b_list=*i64:16,c_list=*i64:16,sizes=*i32:16,strides=*i32:16,"
    "groups=i32,PROGRAMS=1,BLOCK_M=64,BLOCK_N=64,BLOCK_K=32";

static struct Memory {
    _Alignas(64) uint16_t a[GROUPS][M * K], b[GROUPS][N * K], c[GROUPS][M * N];
    uint64_t list[3][GROUPS];
    int32_t sizes[GROUPS][3], strides[GROUPS][3];
} mem;

static char *
compile(void)
{
    SdcContext *ctx;
    SdcModule *mod;
    SdcOutput *out;
    const char *options[] = {"num_warps=4", "num_stages=3"};
    SdcCompileOptions o = {.kernel = "grouped",
                           .signature = signature,
                           .bind = options,
                           .nbind = 2,
                           .target = "sm_90a",
                           .emit = SDC_EMIT_ASM};
    ck_assert_int_eq(sdc_context_create(NULL, &ctx), SDC_OK);
    if (sdc_module_load_file(ctx, SDC_ROOT "/tests/run/tensor_maps.tk", &mod) != SDC_OK ||
        sdc_compile(mod, &o, &out) != SDC_OK)
        ck_abort_msg("%s", sdc_error(ctx));
    char *ptx = strdup(sdc_output_data(out, NULL));
    sdc_output_destroy(out);
    sdc_context_destroy(ctx);
    return ptx;
}

static void
fill(void)
{
    Random r = {.state = 5};
    for (int g = 0; g < GROUPS; g++) {
        const int size[3] = {g ? 64 : M, N, K};
        uint16_t *at[3] = {mem.a[g], mem.b[g], mem.c[g]};
        for (int i = 0; i < M * K; i++)
            mem.a[g][i] = (uint16_t)f16_bits((float)random_between(&r, -2, 2));
        for (int i = 0; i < N * K; i++)
            mem.b[g][i] = (uint16_t)f16_bits((float)random_between(&r, -2, 2));
        memset(mem.c[g], 0xff, sizeof mem.c[g]);
        for (int i = 0; i < 3; i++) {
            mem.list[i][g] = (uint64_t)(uintptr_t)at[i];
            mem.sizes[g][i] = size[i];
            mem.strides[g][i] = i < 2 ? K : N;
        }
    }
}

static bool
is_right(void)
{
    for (int g = 0; g < GROUPS; g++)
        for (int m = 0; m < mem.sizes[g][0]; m++)
            for (int n = 0; n < N; n++) {
                double sum = 0;
                for (int k = 0; k < K; k++)
                    sum += (double)f16_of(mem.a[g][m * K + k]) *
                           (double)f16_of(mem.b[g][n * K + k]);
                if ((double)f16_of(mem.c[g][m * N + n]) != sum)
                    return false;
            }
    return true;
}

static SimStatus
run(const SimModule *m, int groups, uint64_t seed, char *message, size_t size)
{
    const void *list[3] = {mem.list[0], mem.list[1], mem.list[2]};
    const void *sizes = mem.sizes, *strides = mem.strides;
    const void *params[] = {&list[0], &list[1], &list[2], &sizes, &strides, &groups};
    SimRange range = {&mem, sizeof mem};
    SimLaunch q = {.params = params,
                   .nparam = 6,
                   .ranges = &range,
                   .nrange = 1,
                   .seed = seed,
                   .max_steps = 1 << 20};
    return sim_run(m, &q, NULL, message, size);
}

static SimModule *
load(const char *ptx)
{
    char message[600];
    SimModule *m = sim_load(ptx, message, sizeof message);
    if (!m)
        ck_abort_msg("%s", message);
    return m;
}

/* The nth statement with the text becomes spaces. */
static void
drop(char *ptx, const char *text, int nth)
{
    char *at = ptx - 1;
    for (int i = 0; i < nth; i++)
        if (!(at = strstr(at + 1, text)))
            ck_abort_msg("'%s' is not there %d times", text, nth);
    while (at > ptx && at[-1] != '\n')
        at--;
    for (; *at != ';'; at++)
        *at = ' ';
}

START_TEST(written_maps_work)
{
    char *ptx = compile(), message[600];
    SimModule *m = load(ptx);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        fill();
        ck_assert_msg(run(m, GROUPS, seed, message, sizeof message) == SIM_OK, "%s",
                      message);
        ck_assert_msg(is_right(), "wrong, seed %d", (int)seed);
    }
    sim_unload(m);
    free(ptx);
}
END_TEST

static const struct {
    const char *text;
    int nth;
} steps[] = {
    {"tensormap.replace.tile.global_address", 1},
    {"tensormap.replace.tile.rank", 2},
    {"tensormap.replace.tile.box_dim", 3},
    {"tensormap.replace.tile.global_dim", 2},
    {"tensormap.replace.tile.global_stride", 1},
    {"tensormap.replace.tile.element_stride", 4},
    {"tensormap.replace.tile.elemtype", 3},
    {"tensormap.cp_fenceproxy", 1},
    {"tensormap.cp_fenceproxy", 3},
    {"fence.proxy.tensormap", 1},
    {"fence.proxy.tensormap", 2},
    {"fence.proxy.tensormap", 3},
    /* of zeros, and of fields */
    {"bar.warp.sync", 1},
    {"bar.warp.sync", 2},
    {"bar.warp.sync", 5},
};

START_TEST(each_missing_step_is_noticed)
{
    char *ptx = compile(), message[600] = "";
    drop(ptx, steps[_i].text, steps[_i].nth);
    SimModule *m = load(ptx);
    SimStatus s = SIM_OK;
    for (uint64_t seed = 1; seed <= TRIES && s == SIM_OK; seed++) {
        fill();
        s = run(m, GROUPS, seed, message, sizeof message);
        if (s == SIM_OK && !is_right())
            s = SIM_MEMORY;
    }
    printf("%-40s %d: %.100s\n", steps[_i].text, steps[_i].nth,
           s == SIM_OK ? "NOT FOUND" : message);
    ck_assert_int_ne(s, SIM_OK);
    sim_unload(m);
    free(ptx);
}
END_TEST

/* One warp, which stores through its map and writes it once more: between the two it has
   waited until the store has read. */
static const char rewriting[] =
    ".version 8.5\n.target sm_90a\n.address_size 64\n"
    ".global .align 128 .b8 maps[128];\n"
    ".extern .shared .align 1024 .b8 shared[];\n"
    ".visible .entry f(\n\t.param .u64 f_param_0\n)\n"
    ".reqntid 32\n{\n\t.reg .pred %p<2>;\n\t.reg .b32 %r<9>;\n\t.reg .b64 %rd<9>;\n"
    "\tld.param.b64 %rd1, [f_param_0];\n\tmov.b64 %rd2, maps;\n"
    "\tmov.u32 %r1, %tid.x;\n\tsetp.eq.b32 %p1, %r1, 0;\n\tshl.b32 %r2, %r1, 2;\n"
    "\tmov.b32 %r3, shared;\n\tadd.s32 %r4, %r3, %r2;\n\tmov.b32 %r5, 0;\n"
    "\tmov.b32 %r6, 1;\n\tmov.b32 %r7, 32;\n\tcvt.u64.u32 %rd3, %r3;\n"
    "\tst.shared.b32 [%r4], %r5;\n\tst.shared.b32 [%r4+128], %r5;\n"
    "\tfence.proxy.async.shared::cta;\n\tbar.warp.sync -1;\n"
#define FIELD(text) "\t@%p1 tensormap.replace.tile." text ";\n"
    FIELD("global_address.shared::cta.b1024.b64 [%rd3], %rd1")
    FIELD("rank.shared::cta.b1024.b32 [%rd3], 0")
    FIELD("box_dim.shared::cta.b1024.b32 [%rd3], 0, %r7")
    FIELD("global_dim.shared::cta.b1024.b32 [%rd3], 0, %r7")
    FIELD("element_stride.shared::cta.b1024.b32 [%rd3], 0, %r6")
    FIELD("elemtype.shared::cta.b1024.b32 [%rd3], 7")
#undef FIELD
    "\tbar.warp.sync -1;\n"
#define PUBLISH                                                                       \
    "\ttensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu"    \
    ".sync.aligned [%rd2], [%rd3], 128;\n"
    PUBLISH "\tfence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;\n"
    "\tadd.s32 %r3, %r3, 128;\n"
    "\t@%p1 cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd2, {%r5}], "
    "[%r3];\n"
    "\t@%p1 cp.async.bulk.commit_group;\n"
    "\tcp.async.bulk.wait_group.read 0;\n" PUBLISH
    "\tcp.async.bulk.wait_group 0;\n\tret;\n}\n";

START_TEST(a_map_may_be_written_again)
{
    static _Alignas(16) float out[32];
    char *ptx = strdup(rewriting), message[600] = "";
    const void *to = out, *params[] = {&to};
    SimRange range = {out, sizeof out};
    SimLaunch q = {.params = params, .nparam = 1, .ranges = &range, .nrange = 1};
    SimStatus s = SIM_OK;
    if (_i)
        drop(ptx, "wait_group.read", 1);
    SimModule *m = load(ptx);
    for (q.seed = 1; q.seed <= TRIES && s == SIM_OK; q.seed++)
        s = sim_run(m, &q, NULL, message, sizeof message);
    ck_assert_msg(s == (_i ? SIM_ASYNC : SIM_OK), "%d: %s", (int)s, message);
    sim_unload(m);
    free(ptx);
}
END_TEST

/* More launches than slots: one that keeps its own would leave the last without. */
START_TEST(slots_are_released)
{
    char *ptx = compile(), message[600] = "";
    SimStatus s = SIM_OK;
    if (_i)
        drop(ptx, "st.release.gpu", 1);
    SimModule *m = load(ptx);
    for (int i = 0; i <= SLOTS && s == SIM_OK; i++)
        s = run(m, 0, 0, message, sizeof message);
    ck_assert_msg((s == SIM_OK) == !_i, "%s", message);
    sim_unload(m);
    free(ptx);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("tensormap");
    TCase *tc = tcase_create("tensormap");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, written_maps_work);
    tcase_add_loop_test(tc, each_missing_step_is_noticed, 0,
                        (int)(sizeof steps / sizeof *steps));
    tcase_add_loop_test(tc, a_map_may_be_written_again, 0, 2);
    tcase_add_loop_test(tc, slots_are_released, 0, 2);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}

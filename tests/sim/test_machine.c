/* The simulator itself: small kernels written by hand, each with one thing that must be
   found, and beside it the same thing done right, which must run. Then what lanes of a
   warp do together, and dots of every type, against plain loops. */
#include "tests/sim/sim.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/number.h"

enum { WORDS = 4096, SEEDS = 5 };

static _Alignas(256) uint32_t memory[WORDS];

/* %r0: the thread, %r1: its lane, %r2: shared memory + 4 * thread, %r4: its warp, %rd0:
   the buffer, %rd1: the buffer + 4 * thread, %p0: lane 0, %p1: thread 0. */
static SimStatus
run(const char *body, int threads, uint64_t seed, char *message, size_t size)
{
    char text[8192];
    snprintf(text, sizeof text,
             ".version 8.1\n.target sm_90a\n.address_size 64\n"
             ".extern .shared .align 1024 .b8 shared[];\n"
             ".visible .entry f(\n\t.param .u64 f_param_0\n)\n.reqntid %d\n{\n"
             "\t.reg .pred %%p<9>;\n\t.reg .b16 %%h<9>;\n\t.reg .b32 %%r<99>;\n"
             "\t.reg .b64 %%rd<19>;\n\tld.param.b64 %%rd0, [f_param_0];\n"
             "\tmov.u32 %%r0, %%tid.x;\n\tand.b32 %%r1, %%r0, 31;\n"
             "\tshl.b32 %%r3, %%r0, 2;\n\tmov.b32 %%r2, shared;\n"
             "\tadd.s32 %%r2, %%r2, %%r3;\n\tshr.u32 %%r4, %%r0, 5;\n"
             "\tmul.wide.u32 %%rd1, %%r0, 4;\n\tadd.s64 %%rd1, %%rd0, %%rd1;\n"
             "\tsetp.eq.b32 %%p0, %%r1, 0;\n\tsetp.eq.b32 %%p1, %%r0, 0;\n%s\tret;\n}\n",
             threads, body);
    SimModule *m = sim_load(text, message, size);
    if (!m)
        return SIM_TEXT;
    uint64_t at = (uint64_t)(uintptr_t)memory;
    const void *params[] = {&at};
    SimRange range = {memory, sizeof memory};
    SimLaunch q = {.params = params,
                   .nparam = 1,
                   .ranges = &range,
                   .nrange = 1,
                   .seed = seed,
                   .shared = 16384,
                   .max_steps = 100000};
    SimStatus s = sim_run(m, &q, NULL, message, size);
    sim_unload(m);
    return s;
}

/* ---------------------------------------------------------------- what is found */

typedef struct Case {
    const char *name;
    SimStatus want;
    int threads;
    const char *body;
} Case;

#define INIT                                                                             \
    "mov.b32 %r6, shared;\nadd.s32 %r6, %r6, 8192;\n"                                    \
    "@%p1 mbarrier.init.shared::cta.b64 [%r6], 2;\n"
#define WAIT                                                                             \
    "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%r6], "   \
    "0; @!done bra again; }\n"

static const Case cases[] = {
    {"other warp, barrier", SIM_OK, 64,
     "st.shared.b32 [%r2], %r0;\nbar.sync 0;\nxor.b32 %r5, %r2, 128;\n"
     "ld.shared.b32 %r7, [%r5];\n"},
    {"other warp, none", SIM_RACE, 64,
     "st.shared.b32 [%r2], %r0;\nbar.sync 0;\nst.shared.b32 [%r2], %r0;\n"
     "xor.b32 %r5, %r2, 128;\nld.shared.b32 %r7, [%r5];\n"},
    {"read, then written", SIM_RACE, 64,
     "st.shared.b32 [%r2], %r0;\nbar.sync 0;\nxor.b32 %r5, %r2, 128;\n"
     "ld.shared.b32 %r7, [%r5];\nst.shared.b32 [%r2], %r7;\n"},
    {"other lane, bar.warp.sync", SIM_OK, 32,
     "st.shared.b32 [%r2], %r0;\nbar.warp.sync -1;\nxor.b32 %r5, %r2, 4;\n"
     "ld.shared.b32 %r7, [%r5];\n"},
    {"other lane, none", SIM_RACE, 32,
     "st.shared.b32 [%r2], %r0;\nxor.b32 %r5, %r2, 4;\nld.shared.b32 %r7, [%r5];\n"},
    {"a shuffle orders nothing", SIM_RACE, 32,
     "st.shared.b32 [%r2], %r0;\nshfl.sync.bfly.b32 %r8, %r0, 1, 31, -1;\n"
     "xor.b32 %r5, %r2, 4;\nld.shared.b32 %r7, [%r5];\n"},
    {"atomics meet", SIM_OK, 64,
     "@%p1 st.shared.b32 [shared], 0;\nbar.sync 0;\n"
     "red.relaxed.cta.shared.add.u32 [shared], 1;\n"},
    {"an atomic and a load", SIM_RACE, 64,
     "@%p1 st.shared.b32 [shared], 0;\nbar.sync 0;\n"
     "red.relaxed.cta.shared.add.u32 [shared], 1;\n@%p1 ld.shared.b32 %r7, [shared];\n"},
    {"a named barrier of two warps", SIM_OK, 96,
     "st.shared.b32 [%r2], %r0;\nsetp.gt.u32 %p2, %r4, 1;\n@%p2 bra over;\n"
     "bar.sync 1, 64;\nxor.b32 %r5, %r2, 128;\nld.shared.b32 %r7, [%r5];\nover:\n"},
    {"a named barrier that others pass", SIM_RACE, 96,
     "st.shared.b32 [%r2], %r0;\nbar.sync 0;\nst.shared.b32 [%r2], %r0;\n"
     "setp.eq.b32 %p2, %r4, 1;\n@%p2 bra over;\nbar.sync 1, 64;\nxor.b32 %r5, %r2, 128;\n"
     "setp.eq.b32 %p3, %r4, 0;\n@%p3 ld.shared.b32 %r7, [%r5];\nover:\n"},
    {"arrive orders", SIM_OK, 64,
     "setp.eq.b32 %p2, %r4, 1;\n@%p2 bra second;\nst.shared.b32 [%r2], %r0;\n"
     "bar.arrive 1, 64;\nbra over;\nsecond: bar.sync 1, 64;\nadd.s32 %r5, %r2, -128;\n"
     "ld.shared.b32 %r7, [%r5];\nover:\n"},
    {"counts that differ", SIM_BARRIER, 128,
     "setp.eq.b32 %p2, %r4, 1;\n@%p2 bra second;\nbar.sync 1, 64;\nbra over;\n"
     "second: bar.sync 1, 96;\nover:\n"},
    {"half a warp at a barrier", SIM_BARRIER, 64,
     "setp.gt.u32 %p2, %r1, 15;\n@%p2 bra over;\nbar.sync 0;\nbra end;\n"
     "over: bar.sync 1;\nend:\n"},
    {"a warp that does not come", SIM_DEADLOCK, 64,
     "setp.eq.b32 %p2, %r4, 1;\n@%p2 bra over;\nbar.sync 0;\nover:\n"},
    {"a shuffle with lanes that left", SIM_BARRIER, 32,
     "setp.gt.u32 %p2, %r1, 15;\n@%p2 bra over;\n"
     "shfl.sync.bfly.b32 %r8, %r0, 1, 31, -1;\nbra end;\n"
     "over: shfl.sync.bfly.b32 %r8, %r0, 1, 31, -1;\nend:\n"},
    {"lanes meet again", SIM_OK, 32,
     "setp.gt.u32 %p2, %r1, 15;\n@%p2 bra over;\nadd.s32 %r9, %r0, 1;\nover:\n"
     "shfl.sync.bfly.b32 %r8, %r0, 16, 31, -1;\n"},
    {"a lock that each lane takes", SIM_OK, 64,
     "st.global.b32 [%rd1], 0;\nbar.sync 0;\n"
     "again: atom.acquire.gpu.global.cas.b32 %r5, [%rd0], 0, 1;\n"
     "setp.ne.b32 %p2, %r5, 0;\n@%p2 bra again;\nld.global.b32 %r6, [%rd0+4];\n"
     "add.s32 %r6, %r6, 1;\nst.global.b32 [%rd0+4], %r6;\n"
     "atom.release.gpu.global.exch.b32 %r5, [%rd0], 0;\n"},
    {"for ever", SIM_LIMIT, 32, "again: add.s32 %r5, %r5, 1;\nbra again;\n"},
    {"trap", SIM_TRAP, 32, "@%p1 trap;\n"},
    {"outside of the buffer", SIM_MEMORY, 32, "ld.global.b32 %r5, [%rd1+16384];\n"},
    {"before the buffer", SIM_MEMORY, 32, "@%p1 st.global.b32 [%rd1+-4], 0;\n"},
    {"outside of shared memory", SIM_MEMORY, 32, "st.shared.b32 [%r2+16384], %r0;\n"},
    {"misaligned", SIM_MEMORY, 32, "ld.global.v2.b32 {%r5, %r6}, [%rd1];\n"},
    {"never written", SIM_MEMORY, 32, "ld.shared.b32 %r5, [%r2];\n"},
    {"unknown", SIM_TEXT, 32, "add.s31 %r5, %r0, 1;\n"},
    {"wrong registers", SIM_TEXT, 32, "add.s32 %r5, %rd0, 1;\n"},
    /* copies */
    {"a copy, waited for", SIM_OK, 32,
     "shl.b32 %r5, %r0, 4;\nadd.s32 %r5, %r5, %r2;\nsub.s32 %r5, %r5, %r3;\n"
     "mul.wide.u32 %rd2, %r0, 16;\nadd.s64 %rd2, %rd0, %rd2;\n"
     "cp.async.cg.shared.global [%r5], [%rd2], 16;\ncp.async.commit_group;\n"
     "cp.async.wait_group 0;\nld.shared.b32 %r7, [%r5];\n"},
    {"a copy, not waited for", SIM_RACE, 32,
     "shl.b32 %r5, %r0, 4;\nadd.s32 %r5, %r5, %r2;\nsub.s32 %r5, %r5, %r3;\n"
     "mul.wide.u32 %rd2, %r0, 16;\nadd.s64 %rd2, %rd0, %rd2;\n"
     "cp.async.cg.shared.global [%r5], [%rd2], 16;\ncp.async.commit_group;\n"
     "cp.async.wait_group 1;\nld.shared.b32 %r7, [%r5];\n"},
    {"a copy that others read", SIM_RACE, 64,
     "cp.async.ca.shared.global [%r2], [%rd1], 4;\ncp.async.commit_group;\nbar.sync 0;\n"
     "cp.async.wait_group 0;\nxor.b32 %r5, %r2, 128;\nld.shared.b32 %r7, [%r5];\n"},
    /* mbarriers */
    {"an mbarrier of two warps", SIM_OK, 64,
     INIT "st.shared.b32 [%r2], %r0;\nbar.sync 0;\nst.shared.b32 [%r2], %r0;\n"
          "bar.warp.sync -1;\n@%p0 mbarrier.arrive.shared::cta.b64 _, [%r6];\n" WAIT
          "xor.b32 %r5, %r2, 128;\nld.shared.b32 %r7, [%r5];\n"},
    {"lane 0 arrives for the others", SIM_RACE, 64,
     INIT "st.shared.b32 [%r2], %r0;\nbar.sync 0;\nst.shared.b32 [%r2], %r0;\n"
          "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r6];\n" WAIT
          "xor.b32 %r5, %r2, 128;\nld.shared.b32 %r7, [%r5];\n"},
    {"an arrival too many", SIM_BARRIER, 96,
     INIT "bar.sync 0;\n"
          "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 64;\n" WAIT},
    {"an arrival is missing", SIM_DEADLOCK, 64,
     INIT "bar.sync 0;\n@%p1 mbarrier.arrive.shared::cta.b64 _, [%r6];\n" WAIT},
    {"bytes that do not come", SIM_DEADLOCK, 64,
     INIT "bar.sync 0;\n"
          "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 64;\n" WAIT},
    {"an mbarrier written over", SIM_ASYNC, 64,
     INIT "bar.sync 0;\n@%p1 st.shared.b32 [%r6], 0;\n"},
};

START_TEST(faults_are_found)
{
    const Case *c = &cases[_i];
    char message[600] = "";
    SimStatus s = SIM_OK;
    memset(memory, 0, sizeof memory);
    for (uint64_t seed = 0; seed < SEEDS && s == SIM_OK; seed++)
        s = run(c->body, c->threads, seed, message, sizeof message);
    ck_assert_msg(s == c->want, "%s: %s, not %s: %s", c->name, sim_status_name(s),
                  sim_status_name(c->want), message);
}
END_TEST

/* ---------------------------------------------------------------- lanes */

START_TEST(lanes_exchange_values)
{
    char message[600];
    memset(memory, 0, sizeof memory);
    SimStatus s =
        run("shfl.sync.down.b32 %r10, %r0, 3, 31, -1;\n"
            "shfl.sync.up.b32 %r11|%p2, %r0, 5, 0, -1;\nselp.b32 %r12, 1, 0, %p2;\n"
            "shfl.sync.idx.b32 %r13, %r0, 7, 31, -1;\n"
            "shfl.sync.bfly.b32 %r14, %r0, 9, 31, -1;\n"
            "shfl.sync.idx.b32 %r15, %r0, 2, 6175, -1;\n" /* in groups of 8 */
            "setp.lt.u32 %p3, %r1, 10;\nvote.sync.ballot.b32 %r16, %p3, -1;\n"
            "vote.sync.any.pred %p4, %p3, -1;\nvote.sync.all.pred %p5, %p3, -1;\n"
            "selp.b32 %r17, 1, 0, %p4;\nselp.b32 %r18, 1, 0, %p5;\n"
            "redux.sync.add.s32 %r19, %r1, -1;\nredux.sync.max.u32 %r20, %r1, -1;\n"
            "and.b32 %r21, %r1, 3;\nmatch.any.sync.b32 %r22, %r21, -1;\n"
            "elect.sync %r23|%p6, -1;\nselp.b32 %r24, 1, 0, %p6;\n"
            "redux.sync.add.s32 %r25, %r24, -1;\nactivemask.b32 %r26;\n"
            "mul.wide.u32 %rd3, %r0, 64;\nadd.s64 %rd3, %rd0, %rd3;\n"
            "st.global.v4.b32 [%rd3], {%r10, %r11, %r12, %r13};\n"
            "st.global.v4.b32 [%rd3+16], {%r14, %r15, %r16, %r17};\n"
            "st.global.v4.b32 [%rd3+32], {%r18, %r19, %r20, %r22};\n"
            "st.global.v4.b32 [%rd3+48], {%r25, %r26, %r0, %r0};\n",
            32, 3, message, sizeof message);
    ck_assert_msg(s == SIM_OK, "%s", message);
    for (uint32_t l = 0; l < 32; l++) {
        const uint32_t *m = memory + 16 * l;
        const uint32_t want[14] = {l + 3 < 32 ? l + 3 : l,
                                   l >= 5 ? l - 5 : l,
                                   l >= 5,
                                   7,
                                   l ^ 9,
                                   (l & 24) + 2,
                                   1023,
                                   1,
                                   0,
                                   496,
                                   31,
                                   0x11111111u << (l & 3),
                                   1,
                                   0xffffffff};
        for (int k = 0; k < 14; k++)
            ck_assert_msg(m[k] == want[k], "result %d of lane %u is %x, not %x", k, l,
                          m[k], want[k]);
    }
}
END_TEST

/* What is wider than an instruction says counts with its low bits. */
START_TEST(wide_sources)
{
    char message[600];
    memset(memory, 0, sizeof memory);
    SimStatus s = run("mov.b64 %rd2, 0x12345678fffffff0;\ncvt.s64.s32 %rd3, %rd2;\n"
                      "cvt.u64.u32 %rd4, %rd2;\ncvt.s32.s8 %r5, %rd2;\n"
                      "cvt.u64.u16 %rd5, %rd2;\ncvt.rn.f32.s32 %r6, %rd2;\n"
                      "cvt.s16.s8 %h1, %r5;\ncvt.u32.u8 %r7, %r5;\n"
                      "st.global.b64 [%rd0], %rd3;\nst.global.b64 [%rd0+8], %rd4;\n"
                      "st.global.b64 [%rd0+16], %rd5;\nst.global.b32 [%rd0+24], %r5;\n"
                      "st.global.b32 [%rd0+28], %r6;\nst.global.b32 [%rd0+32], %rd2;\n"
                      "st.global.b32 [%rd0+36], %r7;\nst.global.b16 [%rd0+40], %h1;\n"
                      "st.global.v2.b16 [%rd0+44], {%rd2, %h1};\n",
                      32, 1, message, sizeof message);
    static const uint32_t want[12] = {0xfffffff0, 0xffffffff, 0xfffffff0, 0,
                                      0xfff0,     0,          0xfffffff0, 0xc1800000,
                                      0xfffffff0, 0xf0,       0xfff0,     0xfff0fff0};
    ck_assert_msg(s == SIM_OK, "%s", message);
    for (int k = 0; k < 12; k++)
        ck_assert_msg(memory[k] == want[k], "word %d is %x, not %x", k, memory[k],
                      want[k]);
}
END_TEST

/* Rows of matrices go to shared memory and come back transposed. */
START_TEST(stored_matrices_load_transposed)
{
    char message[600];
    memset(memory, 0, sizeof memory);
    SimStatus s =
        run("and.b32 %r5, %r1, 7;\nshl.b32 %r5, %r5, 4;\nmov.b32 %r6, shared;\n"
            "add.s32 %r5, %r5, %r6;\nshl.b32 %r7, %r0, 1;\nadd.s32 %r8, %r7, 1;\n"
            "shl.b32 %r8, %r8, 16;\nor.b32 %r7, %r7, %r8;\n"
            "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r7};\nbar.warp.sync -1;\n"
            "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r9}, [%r5];\n"
            "st.global.b32 [%rd1], %r9;\n",
            32, 1, message, sizeof message);
    ck_assert_msg(s == SIM_OK, "%s", message);
    for (uint32_t l = 0; l < 32; l++) { /* element (row, column) is 8 row + column */
        uint32_t row = l % 4 * 2, col = l / 4, want = 8 * row + col;
        ck_assert_uint_eq(memory[l], want | (want + 8) << 16);
    }
}
END_TEST

/* ---------------------------------------------------------------- dots */

typedef struct Product {
    const char *name;
    int k, bits, nc;
    char kind; /* of the sums: f, h, i */
} Product;

static const Product products[] = {
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, 16, 4, 'f'},
    {"m16n8k8.row.col.f32.f16.f16.f32", 8, 16, 4, 'f'},
    {"m16n8k16.row.col.f16.f16.f16.f16", 16, 16, 2, 'h'},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 17, 4, 'f'},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 8, 32, 4, 'f'},
    {"m16n8k32.row.col.s32.s8.s8.s32", 32, 8, 4, 'i'},
    {"m16n8k32.row.col.f32.e4m3.e4m3.f32", 32, 9, 4, 'f'},
    {"m16n8k32.row.col.f32.e5m2.e5m2.f32", 32, 10, 4, 'f'},
};

/* Small whole numbers, as the type writes them. */
static uint32_t
small(const Product *p, int v)
{
    switch (p->bits) {
    case 16: return f16_bits((float)v);
    case 17: return bf16_bits((float)v);
    case 32: return f32_raw((float)v);
    case 8: return (uint32_t)v & 255;
    case 9: return number_pack(v, &format_e4m3, ROUND_NEAREST, true);
    default: return number_pack(v, &format_e5m2, ROUND_NEAREST, true);
    }
}

START_TEST(mma_multiplies)
{
    const Product *p = &products[_i];
    int per = p->bits <= 10 ? 4 : p->bits < 32 ? 2 : 1, na = p->k / per / 2, nb = na / 2;
    int a[16][32], b[32][8], width = 32 / per;
    char body[2048], message[600];
    size_t n = 0;
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < p->k; k++)
            a[i][k] = (i * 5 + k * 3) % 7 - 3;
    for (int k = 0; k < p->k; k++)
        for (int j = 0; j < 8; j++)
            b[k][j] = (k * 2 + j * 3) % 5 - 2;
    memset(memory, 0, sizeof memory);
    for (int l = 0; l < 32; l++) /* words of lane l lie 32 apart */
        for (int r = 0; r < na + nb; r++)
            for (int e = 0; e < per; e++) {
                int q = r < na ? r : r - na, at = l % 4 * per + e;
                int v = r < na ? a[l / 4 + 8 * (q & 1)][(q >> 1) * 4 * per + at]
                               : b[q * 4 * per + at][l / 4];
                memory[32 * r + l] |= small(p, v) << width * e;
            }
    for (int r = 0; r < na + nb; r++)
        n += (size_t)snprintf(body + n, sizeof body - n,
                              "ld.global.b32 %%r%d, [%%rd1+%d];\n", 20 + r, 128 * r);
    n += (size_t)snprintf(body + n, sizeof body - n, "mma.sync.aligned.%s ", p->name);
    const int first[4] = {40, 20, 20 + na, 50}, count[4] = {p->nc, na, nb, p->nc};
    for (int g = 0; g < 4; g++)
        for (int r = 0; r < count[g]; r++)
            n += (size_t)snprintf(body + n, sizeof body - n, "%s%%r%d%s",
                                  r   ? ", "
                                  : g ? ", {"
                                      : "{",
                                  first[g] + r, r + 1 == count[g] ? "}" : "");
    n += (size_t)snprintf(body + n, sizeof body - n, ";\n");
    char all[3072] = "";
    for (int r = 0; r < 4; r++)
        sprintf(all + strlen(all), "mov.b32 %%r%d, 0;\n", 50 + r);
    strcat(all, body);
    for (int r = 0; r < p->nc; r++)
        sprintf(all + strlen(all), "st.global.b32 [%%rd1+%d], %%r%d;\n", 8192 + 128 * r,
                40 + r);
    SimStatus s = run(all, 32, 1, message, sizeof message);
    ck_assert_msg(s == SIM_OK, "%s", message);
    for (int l = 0; l < 32; l++)
        for (int r = 0; r < 4; r++) {
            int row = l / 4 + 8 * (r >> 1), col = l % 4 * 2 + (r & 1), want = 0;
            uint32_t word = memory[2048 + 32 * (p->kind == 'h' ? r >> 1 : r) + l];
            double got = p->kind == 'f'   ? (double)f32_of(word)
                         : p->kind == 'i' ? (double)(int32_t)word
                                          : (double)f16_of(word >> 16 * (r & 1) & 0xffff);
            for (int k = 0; k < p->k; k++)
                want += a[row][k] * b[k][col];
            ck_assert_msg(got == want, "%s: (%d, %d) is %g, not %d", p->name, row, col,
                          got, want);
        }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("machine");
    TCase *tc = tcase_create("machine");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, faults_are_found, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tc, lanes_exchange_values);
    tcase_add_test(tc, wide_sources);
    tcase_add_test(tc, stored_matrices_load_transposed);
    tcase_add_loop_test(tc, mma_multiplies, 0, (int)(sizeof products / sizeof *products));
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}

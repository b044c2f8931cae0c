/* Programs that exclude one another by a lock in memory, hand on what they wrote by a
   flag, or draw numbers: nothing moves over an atomic operation whose old value is read,
   whatever it says of its memory order. On a GPU programs follow one another on an
   SM whose first cache may hold what an earlier one has read. */
#include <stdio.h>

#include "tests/run/support/harness.h"

enum { PROGRAMS = 2000, TILE = 256 };

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def locked(p, l, take: tl.constexpr, give: tl.constexpr):\n"
    "    while tl.atomic_cas(l, 0, 1, take) == 1:\n"
    "        pass\n"
    "    tl.store(p, tl.load(p) + 1)\n"
    "    tl.debug_barrier()\n"
    "    tl.atomic_xchg(l, 0, sem=give)\n"
    "@triton.jit\n"
    "def exchanged(p, l, take: tl.constexpr, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    while tl.atomic_xchg(l, 1, sem=take) == 1:\n"
    "        pass\n"
    "    x = tl.load(p + i)\n"
    "    tl.store(p + i, x + 1)\n"
    "    tl.debug_barrier()\n"
    "    tl.atomic_xchg(l, 0, sem='release')\n"
    "@triton.jit\n"
    "def passed_on(p, l, take: tl.constexpr, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    turn = tl.program_id(0)\n"
    "    before = tl.load(p + i)\n"
    "    while tl.atomic_add(l, 0, sem=take) != turn:\n"
    "        pass\n"
    "    tl.store(p + i, tl.load(p + i) * 3 + turn)\n"
    "    tl.debug_barrier()\n"
    "    tl.atomic_add(l, 1, sem='release')\n"
    "    tl.store(p + B + i, before)\n"
    "@triton.jit\n"
    "def awaited(p, l, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    turn = tl.program_id(0)\n"
    "    before = tl.load(p + i)\n"
    "    while tl.load(l, volatile=True) != turn:\n"
    "        pass\n"
    "    tl.store(p + i, tl.load(p + i) * 3 + turn)\n"
    "    tl.debug_barrier()\n"
    "    tl.atomic_add(l, 1, sem='release')\n"
    "    tl.store(p + B + i, before)\n"
    "@triton.jit\n"
    "def last(x, p, count, out, n, take: tl.constexpr, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    pid = tl.program_id(0)\n"
    "    tl.store(p + pid * B + i, tl.load(x + pid * B + i) * 2)\n"
    "    tl.debug_barrier()\n"
    "    if tl.atomic_add(count, 1, sem=take) == n - 1:\n"
    "        sum = tl.zeros((B,), tl.int32)\n"
    "        for k in range(n):\n"
    "            sum += tl.load(p + k * B + i)\n"
    "        tl.store(out + i, sum)\n";

static const char *const sems[] = {"relaxed", "acquire", "release", "acq_rel"};
static const int warps[] = {1, 4, 8};

static const char *
bound(char *text, size_t size, int nwarps, const char *rest, const char *take)
{
    snprintf(text, size, "take='%s' %s num_warps=%d", take, rest, nwarps);
    return text;
}

static void
expect_all(Env *env, const Buf *b, int64_t n, double want, const char *what)
{
    const double *got = buf_doubles(env, b);
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(got[i] == want, "%s: element %lld is %g, not %g", what,
                      (long long)i, got[i], want);
}

static void
clear(Buf *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        buf_set(b, i, 0);
}

START_TEST(increments_all_arrive)
{
    Env env = env_open_text("lock.tk", source);
    Buf p = buf_poison(&env, SDC_FP32, 0, DIMS(1));
    Buf l = buf_poison(&env, SDC_I32, 0, DIMS(1));
    char text[96];
    for (int s = 0; s < 4; s++)
        for (int w = 0; w < 3; w++)
            for (int g = 2; g < 4; g++) {
                char give[32];
                snprintf(give, sizeof give, "give='%s'", sems[g]);
                clear(&p, 1);
                clear(&l, 1);
                bound(text, sizeof text, warps[w], give, sems[s]);
                if (LAUNCH(&env, "locked", sdc_grid(PROGRAMS, 1, 1), text, buf_arg(&p),
                           buf_arg(&l)))
                    expect_all(&env, &p, 1, PROGRAMS, text);
            }
    env_close(&env);
}
END_TEST

START_TEST(tiles_under_a_lock)
{
    Env env = env_open_text("lock.tk", source);
    Buf p = buf_poison(&env, SDC_I32, 0, DIMS(TILE));
    Buf l = buf_poison(&env, SDC_I32, 0, DIMS(1));
    char text[96];
    for (int s = 0; s < 4; s++)
        for (int w = 0; w < 3; w++) {
            clear(&p, TILE);
            clear(&l, 1);
            bound(text, sizeof text, warps[w], "B=256", sems[s]);
            if (LAUNCH(&env, "exchanged", sdc_grid(PROGRAMS, 1, 1), text, buf_arg(&p),
                       buf_arg(&l)))
                expect_all(&env, &p, TILE, PROGRAMS, text);
        }
    env_close(&env);
}
END_TEST

/* x = 3 x + turn modulo 2^32, from 0 on. */
static double
chain(int turns)
{
    uint32_t x = 0;
    for (int t = 0; t < turns; t++)
        x = 3 * x + (uint32_t)t;
    return (double)(int32_t)x;
}

/* So few that all of them run at once on a GPU; a CPU begins them in order. */
enum { TURNS = 64 };

START_TEST(handed_on_in_turn)
{
    Env env = env_open_text("lock.tk", source);
    Buf p = buf_poison(&env, SDC_I32, 0, DIMS(2 * TILE));
    Buf l = buf_poison(&env, SDC_I32, 0, DIMS(1));
    char text[96];
    for (int s = 0; s < 5; s++)
        for (int w = 0; w < 3; w++) {
            clear(&p, 2 * TILE);
            clear(&l, 1);
            if (s < 4)
                bound(text, sizeof text, warps[w], "B=256", sems[s]);
            else
                snprintf(text, sizeof text, "B=256 num_warps=%d", warps[w]);
            if (LAUNCH(&env, s < 4 ? "passed_on" : "awaited", sdc_grid(TURNS, 1, 1),
                       text, buf_arg(&p), buf_arg(&l)))
                expect_all(&env, &p, TILE, chain(TURNS), s < 4 ? text : "volatile");
        }
    env_close(&env);
}
END_TEST

/* The last to arrive reads what all have written: what comes before is released. */
START_TEST(last_reads_all)
{
    Env env = env_open_text("lock.tk", source);
    enum { N = 500 };
    Buf x = buf_poison(&env, SDC_I32, 0, DIMS(N * TILE));
    Buf p = buf_poison(&env, SDC_I32, 0, DIMS(N * TILE));
    Buf out = buf_poison(&env, SDC_I32, 0, DIMS(TILE));
    Buf count = buf_poison(&env, SDC_I32, 0, DIMS(1));
    char text[96];
    for (int64_t i = 0; i < N * TILE; i++)
        buf_set(&x, i, 1);
    for (int s = 2; s < 4; s++)
        for (int w = 0; w < 3; w++) {
            clear(&p, N * TILE);
            clear(&out, TILE);
            clear(&count, 1);
            bound(text, sizeof text, warps[w], "B=256", sems[s]);
            if (LAUNCH(&env, "last", sdc_grid(N, 1, 1), text, buf_arg(&x), buf_arg(&p),
                       buf_arg(&count), buf_arg(&out), sdc_int(N)))
                expect_all(&env, &out, TILE, 2 * N, text);
        }
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("lock", increments_all_arrive, tiles_under_a_lock,
                     handed_on_in_turn, last_reads_all);
}

/* Tuning chooses among what gives the first configuration's results, and nothing else of
   it is seen: candidates that compute something else, that do not compile or whose
   compiler is killed lose, wherever they stand in the list, however fast they are, and
   all memory is as before. */
#include "runtime/sdc.h"

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SDC SDC_TMP "/../../sdc"

enum { N = 500, NCONFIG = 12, RIGHT = 3 };

/* W: what is wrong. 0: nothing. */
static const char *const configs[NCONFIG] = {
    "'W': 0, 'BLOCK': 64",  "'W': 0, 'BLOCK': 128", "'W': 0, 'BLOCK': 32",
    "'W': 1, 'BLOCK': 256", "'W': 2, 'BLOCK': 64",  "'W': 3, 'BLOCK': 128",
    "'W': 4, 'BLOCK': 64",  "'W': 5, 'BLOCK': 64",  "'W': 6, 'BLOCK': 64",
    "'W': 7, 'BLOCK': 64",  "'W': 8, 'BLOCK': 64",  "'W': 9, 'BLOCK': 64",
};

/* Of x[1] the result is infinite. Right candidates take much longer than some others. */
static const char kernel[] =
    "@triton.jit\n"
    "def k(x, out, count, n, BLOCK: tl.constexpr, W: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    m = i < n\n"
    "    a = tl.load(x + i, mask=m)\n"
    "    if W == 1:\n"
    "        y = a * 1.01\n"                       /* fast, and a little off */
    "    else:\n"
    "        y = a\n"
    "        for r in range(30):\n"
    "            y = y + tl.exp(-tl.abs(y)) * 0.001\n"
    "    if W == 2:\n"
    "        m = i < n - 1\n"                      /* forgets an element */
    "    if W == 3:\n"
    "        y = tl.where(tl.abs(y) > 1e30, 0.0, y)\n" /* not infinite */
    "    if W == 4:\n"
    "        y = tl.where(i == 7, float('nan'), y)\n"
    "    if W == 5:\n"
    "        tl.static_assert(False, 'not this one')\n"
    "    if W == 7:\n"
    "        tl.store(x + i, a + 1, mask=m)\n"     /* spoils an input */
    "    if W == 8:\n"
    "        y = y + tl.load(out + i, mask=m)\n"   /* reads what nobody wrote */
    "    if W == 9:\n"
    "        tl.atomic_add(count, 1)\n"            /* counts twice */
    "    tl.store(out + i, y, mask=m)\n"
    "    tl.atomic_add(count, tl.sum(m.to(tl.int32)))\n";

typedef struct Data {
    _Alignas(64) float x[N];
    _Alignas(64) float out[N];
    int32_t count;
} Data;

static void
fill(Data *d)
{
    for (int i = 0; i < N; i++) {
        d->x[i] = (float)i / 7 - 20;
        d->out[i] = -3;
    }
    d->x[1] = INFINITY;
    d->count = 5;
}

static void
text_of(char *text, size_t size, int first)
{
    int at = snprintf(text, size, "import triton\nimport triton.language as tl\n"
                                  "@triton.autotune(configs=[");
    for (int i = 0; i < NCONFIG; i++)
        at += snprintf(text + at, size - (size_t)at, "triton.Config({%s}), ",
                       configs[(first + i) % NCONFIG]);
    snprintf(text + at, size - (size_t)at, "], key=['n'], reset_to_zero=['count'])\n%s",
             kernel);
}

/* A worker that is killed where it is asked for W=6. */
static const char *
killed_worker(void)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/killed_at_6", SDC_TMP);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f,
            "#!/bin/sh\n"
            "job=%s/job.$$\n"
            "trap 'rm -f $job' EXIT\n"
            "cat >$job\n"
            "if grep -aq 'W=6' $job; then rm -f $job; kill -KILL $$; fi\n"
            "%s \"$@\" <$job\n",
            SDC_TMP, SDC);
    fclose(f);
    ck_assert_int_eq(chmod(path, 0700), 0);
    return path;
}

/* The kernel in the i-th configuration of the list that this one begins, as a launch. */
static void
launch(SdcContext *cx, SdcModule *m, int config, Data *d)
{
    char block[32], wrong[32];
    int w, b;
    SdcFunction *f;
    ck_assert_int_eq(sscanf(configs[config], "'W': %d, 'BLOCK': %d", &w, &b), 2);
    snprintf(wrong, sizeof wrong, "W=%d", w);
    snprintf(block, sizeof block, "BLOCK=%d", b);
    const char *const bind[] = {wrong, block};
    SdcArg args[] = {sdc_ptr(SDC_FP32, d->x), sdc_ptr(SDC_FP32, d->out),
                     sdc_ptr(SDC_I32, &d->count), sdc_int(N)};
    ck_assert_msg(sdc_function_get(m, "k", bind, 2, &f) == SDC_OK, "%s", sdc_error(cx));
    d->count = 0;
    ck_assert_msg(sdc_launch(f, sdc_grid((N + b - 1) / b, 1, 1), args, 4, NULL) == SDC_OK,
                  "%s", sdc_error(cx));
}

static bool
same(const Data *a, const Data *b)
{
    for (int i = 0; i < N; i++)
        if (fabsf(a->out[i] - b->out[i]) > 1e-5f * (1 + fabsf(b->out[i])) ||
            isnan(a->out[i]) != isnan(b->out[i]) ||
            isinf(a->out[i]) != isinf(b->out[i]))
            return false;
    return a->count == b->count && memcmp(a->x, b->x, sizeof a->x) == 0;
}

static int
index_of(const char *line)
{
    int found = -1, w, b;
    for (int i = 0; i < NCONFIG; i++) {
        char wrong[16], block[32];
        sscanf(configs[i], "'W': %d, 'BLOCK': %d", &w, &b);
        snprintf(wrong, sizeof wrong, "W=%d", w);
        snprintf(block, sizeof block, "BLOCK=%d", b);
        const char *at = strstr(line, block);
        if (strstr(line, wrong) && at && !strchr("0123456789", at[strlen(block)]))
            found = i;
        else if (strstr(line, wrong) && at && !at[strlen(block)])
            found = i;
    }
    return found;
}

/* The reference is the first of the list that compiles. */
static bool
compiles(int config)
{
    return strstr(configs[config], "'W': 5") == NULL &&
           strstr(configs[config], "'W': 6") == NULL;
}

static void
tune_from(int first)
{
    char text[4000];
    SdcContextOptions o = {.target = "cpu", .worker = killed_worker()};
    SdcContext *cx;
    SdcModule *m;
    SdcTuning *t;
    const SdcTrial *trial;
    static Data d, before, want, got;
    text_of(text, sizeof text, first);
    ck_assert_int_eq(sdc_context_create(&o, &cx), SDC_OK);
    ck_assert_msg(sdc_module_load_text(cx, "k.tk", text, strlen(text), SDC_LANG_AUTO,
                                       &m) == SDC_OK,
                  "%s", sdc_error(cx));
    fill(&d);
    before = d;
    SdcArg args[] = {sdc_ptr(SDC_FP32, d.x), sdc_ptr(SDC_FP32, d.out),
                     sdc_ptr(SDC_I32, &d.count), sdc_int(N)};
    const size_t bytes[] = {sizeof d.x, sizeof d.out, sizeof d.count, 0};
    SdcTuneOptions tune = {
        .grid = "cdiv(n,BLOCK)", .args = args, .nargs = 4, .bytes = bytes};
    ck_assert_msg(sdc_tune(m, &tune, &t) == SDC_OK, "%s", sdc_error(cx));
    ck_assert(memcmp(&d, &before, sizeof d) == 0);
    int chosen = index_of(sdc_tuning_line(t)), reference = first;
    ck_assert_msg(chosen >= 0, "%s", sdc_tuning_line(t));
    while (!compiles(reference))
        reference = (reference + 1) % NCONFIG;
    fill(&want);
    fill(&got);
    launch(cx, m, reference, &want);
    launch(cx, m, chosen, &got);
    ck_assert_msg(same(&got, &want), "{%s} was chosen where {%s} comes first",
                  configs[chosen], configs[reference]);
    for (int i = 0; (trial = sdc_tuning_trial(t, i)) != NULL; i++) {
        int k = index_of(trial->config);
        ck_assert(k >= 0);
        SdcTried wanted = compiles(k) ? SDC_TRIED_WRONG : SDC_TRIED_FAILED;
        bool right = k == reference || (k < RIGHT && reference < RIGHT);
        ck_assert_msg(right ? trial->what <= SDC_TRIED_SLOW : trial->what == wanted,
                      "{%s} where {%s} comes first: %d %s", configs[k],
                      configs[reference], (int)trial->what,
                      trial->why ? trial->why : "");
        if (strstr(configs[k], "'W': 6"))
            ck_assert_msg(strstr(trial->why, "signal 9") != NULL, "%s", trial->why);
    }
    sdc_tuning_destroy(t);
    sdc_context_destroy(cx);
}

/* Each begins the list once. */
START_TEST(results_stay)
{
    setenv("SDC_CACHE", "off", 1);
    tune_from(_i);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("tune_wrong");
    TCase *t = tcase_create("tune_wrong");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, results_stay, 0, NCONFIG);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Verdicts of sdc_measure_rounds over made up times, so that nothing depends on the
   machine: what is the same is the same, however noisy, and what is not is found. */
#include "runtime/sdc_measure.h"

#include <check.h>
#include <math.h>

/* Times have a long tail, and now and then everything is slower for a while. */
typedef struct Machine {
    uint32_t random;
    int slow; /* runs that are left of such a while */
    double noise;
} Machine;

typedef struct Load {
    Machine *m;
    double seconds;
    int runs;
} Load;

static double
uniform(Machine *m)
{
    m->random = m->random * 1664525u + 1013904223u;
    return (double)(m->random >> 8) / (1 << 24);
}

static SdcStatus
timed(void *user, double *seconds)
{
    Load *l = user;
    Machine *m = l->m;
    if (m->slow > 0)
        m->slow--;
    else if (uniform(m) < 0.02)
        m->slow = 7;
    double tail = -log(1 - uniform(m));
    *seconds = l->seconds * (1 + m->noise * tail) * (m->slow ? 3 : 1);
    l->runs++;
    return SDC_OK;
}

static SdcContext *cx;

static SdcMeasured
compared(Machine *m, double a, double b)
{
    const SdcMeasureOptions brief = {.seconds = 1e-9, .warm = 1};
    Load one = {m, a, 0}, other = {m, b, 0};
    SdcMeasured of[] = {{.timed = timed, .user = &one},
                        {.timed = timed, .user = &other}};
    ck_assert_int_eq(sdc_measure_rounds(cx, of, 2, &brief), SDC_OK);
    ck_assert_int_eq(of[0].verdict, SDC_SAME);
    ck_assert(of[1].ratio_low <= of[1].ratio && of[1].ratio <= of[1].ratio_high);
    ck_assert_int_ge(one.runs, 15);
    return of[1];
}

/* Fewest rounds and much noise: two launches of one duration, 2000 times. */
START_TEST(same_is_same)
{
    Machine m = {.random = 1, .noise = 0.3};
    int wrong = 0;
    for (int i = 0; i < 2000; i++)
        wrong += compared(&m, 1e-3, 1e-3).verdict != SDC_SAME;
    ck_assert_int_le(wrong, 6);
}
END_TEST

START_TEST(other_is_found)
{
    Machine m = {.random = 1, .noise = 0.05};
    int better = 0, worse = 0;
    for (int i = 0; i < 200; i++) {
        better += compared(&m, 1e-3, 1.5e-3).verdict == SDC_BETTER;
        worse += compared(&m, 1e-3, 0.6e-3).verdict == SDC_WORSE;
    }
    ck_assert_int_ge(better, 140);
    ck_assert_int_ge(worse, 140);
}
END_TEST

/* Half a percent is less than where code happens to lie makes. */
START_TEST(half_a_percent_is_the_same)
{
    Machine m = {.random = 1, .noise = 0};
    SdcMeasured x = compared(&m, 1, 1.005);
    ck_assert_int_eq(x.verdict, SDC_SAME);
    ck_assert(fabs(x.ratio - 1.005) < 1e-9);
}
END_TEST

START_TEST(references_are_rare)
{
    const SdcMeasureOptions brief = {.seconds = 1e-9, .warm = 1};
    Machine m = {.random = 1};
    Load one = {&m, 1, 0}, reference = {&m, 1, 0};
    SdcMeasured of[] = {{.timed = timed, .user = &one},
                        {.timed = timed, .user = &reference, .share = 1e-9}};
    ck_assert_int_eq(sdc_measure_rounds(cx, of, 2, &brief), SDC_OK);
    ck_assert_int_lt(reference.runs, one.runs);
    ck_assert_int_ge(of[1].times.n, 1);
    ck_assert_int_eq(of[1].verdict, SDC_SAME);
    ck_assert_int_eq(sdc_measure_rounds(cx, of, 0, &brief), SDC_ERROR_ARGUMENT);
    of[0].timed = NULL;
    ck_assert_int_eq(sdc_measure_rounds(cx, of, 2, &brief), SDC_ERROR_ARGUMENT);
}
END_TEST

int
main(void)
{
    if (sdc_context_create(NULL, &cx) != SDC_OK)
        return 1;
    Suite *s = suite_create("rounds");
    TCase *t = tcase_create("all");
    tcase_add_test(t, same_is_same);
    tcase_add_test(t, other_is_found);
    tcase_add_test(t, half_a_percent_is_the_same);
    tcase_add_test(t, references_are_rare);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    sdc_context_destroy(cx);
    return failed != 0;
}

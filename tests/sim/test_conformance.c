/* Each arithmetic instruction of the simulator against answers that were computed another
   way (conformance.def), at edges and random inputs. tests/gpu/ptx_conformance.c asks a
   GPU the same, of many more inputs. */
#include "tests/sim/conformance.h"
#include "tests/sim/sim.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PICKS = 12 };

/* Numbers of inputs: edges, then random ones. */
static const uint64_t picks[PICKS] = {3,   8,    19,   46,   127,  305,
                                      611, 1009, 1301, 2017, 5003, 5110};

static const struct {
    const char *text;
    uint64_t want[PICKS];
} answers[] = {
#define EXPECT(text, ...) {text, {__VA_ARGS__}},
#include "tests/sim/conformance.def"
};

static const ConfInsn *
find(const char *text)
{
    for (int k = 0; k < conf_count(); k++)
        if (strcmp(conf_insns[k].text, text) == 0)
            return &conf_insns[k];
    ck_abort_msg("'%s' is not in the table", text);
    return NULL;
}

START_TEST(instructions_give_the_answers_of_a_gpu)
{
    int wrong = 0, n = (int)(sizeof answers / sizeof *answers);
    for (int k = 0; k < n; k++) {
        static uint64_t in[CONF_THREADS][CONF_SLOTS], out[CONF_THREADS];
        const ConfInsn *i = find(answers[k].text);
        char ptx[4096], message[400];
        uint64_t args[2] = {(uint64_t)(uintptr_t)in, (uint64_t)(uintptr_t)out};
        const void *params[2] = {&args[0], &args[1]};
        SimRange ranges[2] = {{in, sizeof in}, {out, sizeof out}};
        SimLaunch q = {.params = params, .nparam = 2, .ranges = ranges, .nrange = 2};
        for (int j = 0; j < CONF_THREADS; j++)
            conf_inputs(i, picks[j % PICKS], in[j]);
        memset(out, 0, sizeof out);
        conf_ptx(i, ptx, sizeof ptx);
        SimModule *m = sim_load(ptx, message, sizeof message);
        ck_assert_msg(m, "%s: %s", i->text, message);
        ck_assert_msg(sim_run(m, &q, NULL, message, sizeof message) == SIM_OK, "%s: %s",
                      i->text, message);
        sim_unload(m);
        for (int j = 0; j < CONF_THREADS; j++)
            if (!conf_agree(i, out[j], answers[k].want[j % PICKS])) {
                printf("%s of %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 ": %" PRIx64
                       ", not %" PRIx64 "\n",
                       i->text, in[j][0], in[j][1], in[j][2], in[j][3], out[j],
                       answers[k].want[j % PICKS]);
                wrong++;
                break;
            }
    }
    printf("%d instructions, %d wrong\n", n, wrong);
    fflush(stdout);
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_ge(n, 340);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("conformance");
    TCase *tc = tcase_create("conformance");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, instructions_give_the_answers_of_a_gpu);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}

/* Which kernels a launch may run alone, without locked instructions, and up to how many
   threads that is preferred: what their metadata says. */
#include "runtime/rt/meta.h"
#include "runtime/sdc.h"

#include <check.h>
#include <stdlib.h>

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def count(x, h):\n"
    "    i = tl.program_id(0) * 256 + tl.arange(0, 256)\n"
    "    tl.atomic_add(h + tl.load(x + i), 1)\n"
    "@triton.jit\n"
    "def product(x, h):\n"
    "    i = tl.arange(0, 64)\n"
    "    a = tl.load(x + i[:, None] * 64 + i[None, :]).to(tl.float32)\n"
    "    for k in range(4):\n"
    "        a = tl.dot(tl.exp(a), a)\n"
    "    tl.atomic_add(h + i, tl.sum(a, 0).to(tl.int32))\n"
    "@triton.jit\n"
    "def lock(x, h):\n"
    "    while tl.atomic_cas(h, 0, 1) == 1:\n"
    "        pass\n"
    "    tl.store(x, tl.load(x) + 1)\n"
    "    tl.atomic_xchg(h, 0)\n"
    "@triton.jit\n"
    "def says(x, h):\n"
    "    tl.device_print(\"was\", tl.atomic_add(h, 1))\n"
    "@triton.jit\n"
    "def copy(x, h):\n"
    "    tl.store(h, tl.load(x))\n";

static void
check_kernel(SdcModule *mod, const char *kernel, int atomics, int least, int most)
{
    SdcCompileOptions o = { .kernel = kernel,
                            .signature = "*i32,*i32",
                            .target = "cpu",
                            .emit = SDC_EMIT_OBJ };
    SdcOutput *out = NULL;
    int n;
    ck_assert_msg(sdc_compile(mod, &o, &out) == SDC_OK, "%s", kernel);
    const SdcrtMeta *meta = sdc_output_meta(out, &n);
    ck_assert_msg(n == 1 && (meta->atomics != 0) == atomics, "%s", kernel);
    ck_assert_msg(meta->alone >= least && meta->alone <= most, "%s: %d", kernel,
                  (int)meta->alone);
    sdc_output_destroy(out);
}

START_TEST(metadata_says_who_may_be_alone)
{
    SdcContext *cx = NULL;
    SdcModule *mod = NULL;
    ck_assert_int_eq(sdc_context_create(NULL, &cx), SDC_OK);
    SdcStatus status = sdc_module_load_text(cx, "alone.tk", source, sizeof source - 1,
                                            SDC_LANG_TRITON, &mod);
    ck_assert_int_eq(status, SDC_OK);
    check_kernel(mod, "count", 1, 3, 64);  /* atomics are nearly all of it */
    check_kernel(mod, "product", 1, 1, 1); /* and little: threads help */
    check_kernel(mod, "lock", 1, 0, 0);    /* a program waits for another */
    check_kernel(mod, "says", 1, 0, 0);    /* a host may launch from its print */
    check_kernel(mod, "copy", 0, 0, 0);
    sdc_module_unload(mod);
    sdc_context_destroy(cx);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("alone");
    TCase *c = tcase_create("alone");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, metadata_says_who_may_be_alone);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

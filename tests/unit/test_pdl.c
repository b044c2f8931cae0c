/* Launches that may begin before the one in front has ended (launch_pdl), with the fake
   driver, which refuses them for a kernel that does not wait: who asks for it, and that
   nobody else does. */
#include "runtime/rt/cuda.h"
#include "runtime/sdc.h"
#include "tests/fake_cuda/fake_cuda.h"

#include <check.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define FAKE SDC_TMP "/../../libfakecuda.so"

static const char text[] = "import triton\n"
                           "import triton.language as tl\n"
                           "@triton.jit\n"
                           "def more(x, WAIT: tl.constexpr):\n"
                           "    if WAIT:\n"
                           "        tl.extra.cuda.gdc_wait()\n"
                           "    tl.store(x, tl.load(x) + 1)\n";

static FakeCuda *
fake_driver(void)
{
    void *lib = dlopen(FAKE, RTLD_NOW | RTLD_LOCAL), *p;
    ck_assert_msg(lib != NULL && (p = dlsym(lib, "fake_cuda")) != NULL, "%s", dlerror());
    FakeCudaGet *get;
    memcpy(&get, &p, sizeof get);
    setenv("SDC_LIBCUDA", FAKE, 1);
    return get();
}

/* Does a launch of `more` with those constants overlap? Of the PTX: does it wait? */
static int
overlaps(const char *target, const char *wait, const char *pdl, int *waits)
{
    FakeCuda *fake = fake_driver();
    const char *const bind[] = {wait, pdl};
    SdcContextOptions o = {.target = target};
    SdcContext *cx;
    SdcModule *mod;
    SdcFunction *f;
    SdcKernel *k;
    int64_t asked = -1;
    SdcArg x = sdc_ptr(SDC_I32, (void *)(uintptr_t)4096);
    ck_assert_int_eq(sdc_context_create(&o, &cx), SDC_OK);
    ck_assert_int_eq(
        sdc_module_load_text(cx, "m.tk", text, sizeof text - 1, SDC_LANG_AUTO, &mod),
        SDC_OK);
    ck_assert_int_eq(sdc_function_get(mod, "more", bind, pdl ? 2 : 1, &f), SDC_OK);
    ck_assert_msg(sdc_specialize(f, &x, 1, &k) == SDC_OK, "%s", sdc_error(cx));
    ck_assert_msg(sdc_launch(f, sdc_grid(1, 1, 1), &x, 1, NULL) == SDC_OK, "%s",
                  sdc_error(cx));
    *waits = strstr(sdc_kernel_ptx(k), "griddepcontrol.wait;") != NULL;
    int got = fake->last.overlap;
    ck_assert(sdc_kernel_constant(k, "launch_pdl", &asked));
    ck_assert(asked >= got);
    sdc_context_destroy(cx);
    return got;
}

START_TEST(those_that_ask_for_it)
{
    int waits;
    ck_assert(overlaps("cuda", "WAIT=False", "launch_pdl=True", &waits) && waits);
    ck_assert(overlaps("cuda", "WAIT=True", "launch_pdl=1", &waits) && waits);
    ck_assert(!overlaps("cuda", "WAIT=False", "launch_pdl=False", &waits) && !waits);
    ck_assert(!overlaps("cuda", "WAIT=False", NULL, &waits) && !waits);
    /* to wait is not to ask */
    ck_assert(!overlaps("cuda", "WAIT=True", NULL, &waits) && waits);
}
END_TEST

START_TEST(where_it_is_known)
{
    int waits;
    ck_assert(!overlaps("sm_80", "WAIT=True", "launch_pdl=True", &waits) && !waits);
    fake_driver()->driver = 12020;
    ck_assert(!overlaps("cuda", "WAIT=False", "launch_pdl=True", &waits) && waits);
    fake_driver()->driver = 0;
}
END_TEST

/* The fake refuses what a device would let go wrong. */
START_TEST(metadata_that_promises_too_much)
{
    static const char ptx[] =
        ".version 8.0\n.target sm_90a\n.entry f(.param .u64 p)\n{ ret; }\n";
    static const SdcrtMeta meta = {.name = "f",
                                   .symbol = "f",
                                   .target = "sm_90a",
                                   .nparam = 1,
                                   .num_warps = 4,
                                   .threads = 128,
                                   .overlap = 1};
    const SdcGrid grid = {1, 1, 1};
    const uint64_t x = 4096;
    SdcrtCuda *cuda;
    SdcrtCudaKernel *k;
    SdcrtError e;
    fake_driver();
    ck_assert_int_eq(sdcrt_cuda_open(0, &cuda, &e), SDCRT_OK);
    ck_assert_int_eq(sdcrt_cuda_load(cuda, ptx, &meta, &k, &e), SDCRT_OK);
    ck_assert_int_ne(sdcrt_cuda_launch(cuda, k, &x, grid, NULL, &e), SDCRT_OK);
    sdcrt_cuda_unload(cuda, k);
    sdcrt_cuda_close(cuda);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("overlap");
    TCase *c = tcase_create("launches");
    tcase_add_test(c, those_that_ask_for_it);
    tcase_add_test(c, where_it_is_known);
    tcase_add_test(c, metadata_that_promises_too_much);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

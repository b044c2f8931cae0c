/* LLVM gives up while compiling, and means to end the process, or is given IR that its
   passes would fail upon: it comes back as a failure of this compile, and the next one
   works. */
#include "codegen/codegen.h"
#include "codegen/gen.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
/* What LLVM held when it gave up is lost, since C++ frames were skipped. */
int __lsan_is_turned_off(void);
__attribute__((visibility("default"))) int
__lsan_is_turned_off(void)
{
    return 1;
}
#endif

/* An operation that x86 has not: instruction selection fails, and LLVM means to end the
   process. */
static const char no_such_instruction[] =
    "define void @k(ptr %p) {\n"
    "  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
    "  store i32 %x, ptr %p\n"
    "  ret void\n"
    "}\n"
    "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n";
static const char fine[] = "define void @k(ptr %p) {\n"
                           "  store i32 1, ptr %p\n"
                           "  ret void\n"
                           "}\n";

/* 1: an object; 0: an error; -1: a failure, with LLVM's words in `why`. */
static int
generate(const char *text, char *why, size_t size)
{
    Session *s = session_new(0);
    static const SdcrtMeta meta = {.name = "k", .symbol = "k"};
    BundleCode code = {&meta, SDCRT_CODE_CPU, text, strlen(text)};
    BundleGroup group = {"k", &code, 1};
    CodegenOut out;
    volatile int got = -1;
    ck_assert_ptr_nonnull(s);
    if (setjmp(s->fail.env) == 0) {
        s->fail.set = 1;
        got = codegen_bundle(s, NULL, &group, 1, &out);
    } else {
        ck_assert_int_eq(s->fail.reason, FAIL_BUG);
        snprintf(why, size, "%s", s->fail.message);
    }
    s->fail.set = 0;
    session_free(s);
    return got;
}

START_TEST(llvm_gives_up)
{
    char why[500] = "";
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(generate(no_such_instruction, why, sizeof why), -1);
        ck_assert_msg(strstr(why, "LLVM") && strstr(why, "annot select"), "%s", why);
        ck_assert_int_eq(generate(fine, why, sizeof why), 1);
        ck_assert_int_eq(generate("no IR", why, sizeof why), 0);
    }
}
END_TEST

/* A block that does not end, as a lowering that forgot something leaves one: LLVM's
   passes follow its last instruction to nowhere. */
static bool
no_end(Gen *g, void *arg)
{
    (void)arg;
    emit_open(g, NULL, "no_end");
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(g->cx), NULL, 0, 0);
    LLVMAppendBasicBlockInContext(g->cx, LLVMAddFunction(g->mod, "k", type), "entry");
    emit_verify(g);
    return true;
}

START_TEST(invalid_ir)
{
    Session *s = session_new(0);
    CodegenOptions opt = {.target = "cpu"};
    Gen g = {.s = s, .opt = &opt};
    volatile bool passed = false;
    ck_assert_ptr_nonnull(s);
    if (setjmp(s->fail.env) == 0) {
        s->fail.set = 1;
        passed = emit_section(&g, no_end, NULL);
    }
    s->fail.set = 0;
    ck_assert(!passed);
    ck_assert_int_eq(s->fail.reason, FAIL_BUG);
    ck_assert_msg(strstr(s->fail.message, "invalid LLVM IR: Basic Block in function 'k'"),
                  "%s", s->fail.message);
    session_free(s);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("llvm failure");
    TCase *t = tcase_create("llvm failure");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, llvm_gives_up);
    tcase_add_test(t, invalid_ir);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

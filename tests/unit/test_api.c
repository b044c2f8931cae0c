/* The public interface: handles, arguments, specialization by properties, messages of
   each thread, and every refusal of a wrong call. */
#include "runtime/rt/meta.h"
#include "runtime/sdc.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char add_text[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def add(x, y, out, n, BLOCK: tl.constexpr):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    a = tl.load(x + i, mask=i < n)\n"
    "    b = tl.load(y + i, mask=i < n)\n"
    "    tl.store(out + i, a + b, mask=i < n)\n"
    "@triton.jit\n"
    "def scale(x, n: 'i32', by, flag, BLOCK: tl.constexpr = 64):\n"
    "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    v = tl.load(x + i, mask=i < n)\n"
    "    if flag is not None:\n"
    "        v = v + 1\n"
    "    tl.store(x + i, v * by, mask=i < n)\n";

static const char *const block256[] = {"BLOCK=256"};

typedef struct Env {
    SdcContext *cx;
    SdcModule *mod;
} Env;

static Env
setup(void)
{
    Env e = {0};
    ck_assert_int_eq(sdc_context_create(NULL, &e.cx), SDC_OK);
    SdcStatus s = sdc_module_load_text(e.cx, "add.tk", add_text, sizeof add_text - 1,
                                       SDC_LANG_AUTO, &e.mod);
    ck_assert_msg(s == SDC_OK, "%s", sdc_error(e.cx));
    return e;
}

static SdcFunction *
function(Env *e, const char *kernel, const char *const *bind, int n)
{
    SdcFunction *f;
    ck_assert_msg(sdc_function_get(e->mod, kernel, bind, n, &f) == SDC_OK, "%s",
                  sdc_error(e->cx));
    return f;
}

START_TEST(modules_tell_their_kernels)
{
    Env e = setup();
    const SdcParam *p;
    int n;
    ck_assert_int_eq(sdc_module_kernel_count(e.mod), 2);
    ck_assert_str_eq(sdc_module_kernel_name(e.mod, 1), "scale");
    ck_assert_ptr_null(sdc_module_kernel_name(e.mod, 2));
    ck_assert_int_eq(sdc_module_params(e.mod, "scale", &p, &n), SDC_OK);
    ck_assert_int_eq(n, 5);
    ck_assert_str_eq(p[1].type, "i32");
    ck_assert_ptr_null(p[0].type);
    ck_assert(p[4].is_constexpr && p[4].has_default && !p[3].is_constexpr);
    ck_assert_int_eq(sdc_module_params(e.mod, "none", &p, &n), SDC_ERROR_ARGUMENT);
    ck_assert(strstr(sdc_error(e.cx), "'none'"));
    sdc_context_destroy(e.cx);
}
END_TEST

START_TEST(wrong_calls_are_refused)
{
    Env e = setup();
    SdcFunction *f = function(&e, "add", block256, 1), *g;
    static float x[256];
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, x),
                     sdc_int(256)};
    static const char *const unknown[] = {"BLOC=256"}, *const no_value[] = {"BLOCK"};
    ck_assert_int_eq(sdc_context_create(NULL, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_function_get(e.mod, "add", unknown, 1, &g), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_function_get(e.mod, "add", no_value, 1, &g), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_function_get(e.mod, "sub", NULL, 0, &g), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_function_get(NULL, "add", NULL, 0, &g), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_launch(NULL, sdc_grid(1, 1, 1), args, 4, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), args, 3, NULL), SDC_ERROR_ARGUMENT);
    ck_assert(strstr(sdc_error(e.cx), "takes 4 arguments, 3 are given"));
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), NULL, 4, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_launch(f, sdc_grid(-1, 1, 1), args, 4, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_launch(f, sdc_grid((int64_t)1 << 40, 1, 1), args, 4, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), args, 4, x), SDC_ERROR_ARGUMENT);
    args[0] = sdc_ptr(SDC_DTYPE_NONE, x);
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), args, 4, NULL), SDC_ERROR_ARGUMENT);
    ck_assert(strstr(sdc_error(e.cx), "argument 'x' of 'add' needs a type"));
    ck_assert_ptr_eq(function(&e, "add", block256, 1), f);
    sdc_module_unload(NULL);
    sdc_context_destroy(e.cx);
    sdc_context_destroy(NULL);
}
END_TEST

START_TEST(errors_have_places)
{
    Env e = setup();
    SdcModule *bad;
    SdcPlace place;
    static const char text[] = "import triton\n@triton.jit\ndef f(x = = 1):\n    pass\n";
    ck_assert_int_eq(
        sdc_module_load_text(e.cx, "bad.tk", text, sizeof text - 1, SDC_LANG_AUTO, &bad),
        SDC_ERROR_SOURCE);
    ck_assert_ptr_null(bad);
    ck_assert(sdc_error_place(e.cx, &place));
    ck_assert_str_eq(place.path, "bad.tk");
    ck_assert_int_eq(place.line, 3);
    ck_assert(strstr(sdc_error(e.cx), "bad.tk:3:"));
    ck_assert_int_eq(sdc_module_load_file(e.cx, "/no/such.tk", &bad), SDC_ERROR_FILE);
    ck_assert(!sdc_error_place(e.cx, &place));
    ck_assert_str_eq(sdc_error_reproducer(e.cx), "");
    sdc_context_destroy(e.cx);
}
END_TEST

/* A source that compiles with other arguments is not at fault alone: the message says
   what it was compiled for. */
START_TEST(errors_of_a_launch_name_its_arguments)
{
    Env e = setup();
    static _Alignas(16) float x[64];
    SdcFunction *f = function(&e, "add", block256, 1);
    SdcArg args[] = {sdc_int(3), sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, x), sdc_int(64)};
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), args, 4, NULL), SDC_ERROR_SOURCE);
    ck_assert_msg(strstr(sdc_error(e.cx), "'x=i32,y=*fp32:16,out=*fp32:16,n=i32:16'\n"),
                  "%s", sdc_error(e.cx));
    args[3] = sdc_int(1);
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), args, 4, NULL), SDC_ERROR_SOURCE);
    ck_assert_msg(strstr(sdc_error(e.cx), "n=1'; an integer equal to 1 is a constant"),
                  "%s", sdc_error(e.cx));
    /* of an option that is wrong for any arguments it says nothing */
    static const char *const three[] = {"BLOCK=256", "num_warps=3"};
    f = function(&e, "add", three, 2);
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), args, 4, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_msg(!strstr(sdc_error(e.cx), "arguments of this launch"), "%s",
                  sdc_error(e.cx));
    sdc_context_destroy(e.cx);
}
END_TEST

START_TEST(messages_come_one_by_one)
{
    Env e = setup();
    SdcModule *bad;
    const SdcCheck *check;
    static const char text[] = "import triton\nimport triton.language as tl\n"
                               "@triton.jit\ndef f(x, N: tl.constexpr):\n"
                               "    tl.store(x + tl.arange(0, N), y)\n"
                               "@triton.jit\ndef g(x):\n    tl.store(x, 1)\n";
    ck_assert_int_eq(
        sdc_module_load_text(e.cx, "bad.tk", text, sizeof text - 1, SDC_LANG_AUTO, &bad),
        SDC_OK);
    ck_assert_int_eq(sdc_module_check(bad, NULL, &check), SDC_ERROR_SOURCE);
    ck_assert_int_eq(check->n, 2);
    ck_assert_int_eq(check->kernels, 2);
    ck_assert_int_eq(check->good, 1);
    ck_assert(!check->functions[0].ok && check->functions[1].ok);
    ck_assert(check->functions[0].guessed && check->functions[0].is_kernel);
    ck_assert_str_eq(check->functions[0].signature, "x=*fp32,N=64");
    ck_assert_int_eq(check->functions[1].line, 7);
    const SdcMessage *m = sdc_message(e.cx, 0);
    ck_assert_int_eq(m->severity, SDC_SAYS_ERROR);
    ck_assert_str_eq(m->code, "type");
    ck_assert_str_eq(m->text, "'y' is not defined");
    ck_assert_int_eq(m->place.line, 5);
    ck_assert_int_eq(m->place.column, 35);
    ck_assert_int_eq(sdc_message(e.cx, 1)->severity, SDC_SAYS_NOTE);
    ck_assert_ptr_null(sdc_message(e.cx, 2));
    SdcPlace place;
    ck_assert(sdc_error_place(e.cx, &place) && place.line == 5);
    ck_assert_int_eq(sdc_module_check(e.mod, NULL, &check), SDC_OK);
    ck_assert_ptr_null(sdc_message(e.cx, 0));
    sdc_context_destroy(e.cx);
}
END_TEST

START_TEST(tuples_are_arguments)
{
    Env e = setup();
    SdcModule *mod;
    SdcFunction *f;
    SdcKernel *k, *again;
    static const char text[] =
        "from typing import NamedTuple\nimport triton\nimport triton.language as tl\n"
        "class Row(NamedTuple):\n    ptr: tl.tensor\n    step: tl.tensor\n"
        "@triton.jit\ndef f(out, shape, row: Row):\n"
        "    (m, n), scale = shape\n"
        "    tl.store(out, tl.load(row.ptr + row.step) * scale + m * n)\n";
    ck_assert_int_eq(
        sdc_module_load_text(e.cx, "tup.py", text, sizeof text - 1, SDC_LANG_AUTO, &mod),
        SDC_OK);
    ck_assert_int_eq(sdc_function_get(mod, "f", NULL, 0, &f), SDC_OK);
    float out = 0, in[4] = {1, 2, 3, 4};
    SdcArg mn[] = {sdc_int(3), sdc_int(5)};
    SdcArg shape[] = {sdc_tuple(mn, 2), sdc_float(0.5)};
    SdcArg row[] = {sdc_ptr(SDC_FP32, in), sdc_int(1)};
    SdcArg args[] = {sdc_ptr(SDC_FP32, &out), sdc_tuple(shape, 2), sdc_tuple(row, 2)};
    ck_assert_msg(sdc_launch(f, sdc_grid(1, 1, 1), args, 3, NULL) == SDC_OK, "%s",
                  sdc_error(e.cx));
    ck_assert_double_eq(out, 2 * 0.5 + 15);
    ck_assert_int_eq(sdc_specialize(f, args, 3, &k), SDC_OK);
    mn[0] = sdc_int(7); /* as many bits, not 1, not a multiple of 16 */
    ck_assert_int_eq(sdc_specialize(f, args, 3, &again), SDC_OK);
    ck_assert_ptr_eq(k, again);
    row[1] = sdc_int(2); /* 1 is a constant of the code */
    ck_assert_int_eq(sdc_kernel_launch(k, sdc_grid(1, 1, 1), args, 3, NULL),
                     SDC_ERROR_ARGUMENT);
    ck_assert(strstr(sdc_error(e.cx), "has an element that the kernel was not"));
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), args, 3, NULL), SDC_OK);
    ck_assert_double_eq(out, 3 * 0.5 + 35);
    args[1] = sdc_tuple(mn, 2); /* another structure is another specialization */
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), args, 3, NULL), SDC_ERROR_SOURCE);
    ck_assert_int_eq(sdc_kernel_launch(k, sdc_grid(1, 1, 1), args, 3, NULL),
                     SDC_ERROR_ARGUMENT);
    args[1] = sdc_tuple(NULL, 2);
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), args, 3, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(
        sdc_kernel_get(mod, "f", "*fp32,((i32,16),fp32),(*fp32,i32)", NULL, 0, &k),
        SDC_OK);
    mn[1] = sdc_int(16);
    args[1] = sdc_tuple(shape, 2);
    ck_assert_int_eq(sdc_kernel_launch(k, sdc_grid(1, 1, 1), args, 3, NULL), SDC_OK);
    ck_assert_double_eq(out, 3 * 0.5 + 7 * 16);
    SdcGrid grid; /* elements have names */
    static const char text3[] = "cdiv(shape_0_0,2),shape_0_1,row_1";
    ck_assert_int_eq(sdc_kernel_grid(k, text3, args, 3, &grid), SDC_OK);
    ck_assert(grid.x == 4 && grid.y == 16 && grid.z == 2);
    sdc_context_destroy(e.cx);
}
END_TEST

START_TEST(descriptors_in_tuples)
{
    Env e = setup();
    SdcModule *mod;
    SdcFunction *f;
    static const char text[] =
        "import triton\nimport triton.language as tl\n"
        "@triton.jit\ndef f(out, tiles):\n"
        "    x, (y, at) = tiles\n"
        "    z = x.load([at, 0]).to(tl.float32) + y.load([at, 0])\n"
        "    tl.store(out, tl.sum(z))\n";
    ck_assert_int_eq(
        sdc_module_load_text(e.cx, "d.py", text, sizeof text - 1, SDC_LANG_AUTO, &mod),
        SDC_OK);
    ck_assert_int_eq(sdc_function_get(mod, "f", NULL, 0, &f), SDC_OK);
    static _Alignas(16) float x[12 * 16], y[8 * 16];
    float out;
    for (int i = 0; i < 12 * 16; i++)
        x[i] = 1;
    for (int i = 0; i < 8 * 16; i++)
        y[i] = 3;
    SdcDesc dx = {SDC_FP32, 2, x, {12, 16}, {16, 1}, {8, 16}};
    SdcDesc dy = {SDC_FP32, 2, y, {8, 16}, {16, 1}, {8, 16}};
    SdcArg inner[] = {sdc_desc(&dy), sdc_int(2)};
    SdcArg tiles[] = {sdc_desc(&dx), sdc_tuple(inner, 2)};
    SdcArg args[] = {sdc_ptr(SDC_FP32, &out), sdc_tuple(tiles, 2)};
    ck_assert_msg(sdc_launch(f, sdc_grid(1, 1, 1), args, 2, NULL) == SDC_OK, "%s",
                  sdc_error(e.cx));
    ck_assert_double_eq(out, 8 * 16 + 6 * 16 * 3); /* two rows of y are outside */
    inner[0] = sdc_desc_nan(&dy);
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), args, 2, NULL), SDC_OK);
    ck_assert(out != out);
    dy.strides[1] = 2;
    ck_assert_int_eq(sdc_launch(f, sdc_grid(1, 1, 1), args, 2, NULL), SDC_ERROR_ARGUMENT);
    ck_assert(strstr(sdc_error(e.cx), "needs 1 as its last stride"));
    sdc_context_destroy(e.cx);
}
END_TEST

START_TEST(launches_add)
{
    Env e = setup();
    SdcFunction *f = function(&e, "add", block256, 1);
    float x[1000], y[1000], out[1001];
    for (int i = 0; i < 1000; i++) {
        x[i] = (float)i;
        y[i] = (float)(3 * i);
    }
    /* One function, several specializations: alignment, n equal to 1, n divisible by
       16. What has no elements may be nowhere. */
    static const int sizes[] = {1000, 992, 1, 0, 17};
    for (int shift = 0; shift < 2; shift++)
        for (int s = 0; s < 5; s++) {
            int n = sizes[s];
            for (int i = 0; i < 1001; i++)
                out[i] = -1;
            SdcArg args[] = {sdc_ptr(SDC_FP32, n ? x : NULL),
                             sdc_ptr(SDC_FP32, n ? y : NULL),
                             sdc_ptr(SDC_FP32, out + shift), sdc_int(n)};
            SdcStatus got = sdc_launch(f, sdc_grid(4, 1, 1), args, 4, NULL);
            ck_assert_msg(got == SDC_OK, "%s", sdc_error(e.cx));
            for (int i = 0; i < n && i + shift < 1001; i++)
                ck_assert(out[i + shift] == (float)(4 * i));
            ck_assert(n == 1000 || out[n + shift] == -1);
        }
    sdc_context_destroy(e.cx);
}
END_TEST

START_TEST(specializations_are_kept)
{
    Env e = setup();
    SdcFunction *f = function(&e, "add", block256, 1);
    _Alignas(64) float x[64] = {0};
    SdcKernel *a, *b, *c;
    int64_t v;
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, x),
                     sdc_int(17)};
    ck_assert_int_eq(sdc_specialize(f, args, 4, &a), SDC_OK);
    args[3] = sdc_int(18);
    ck_assert_int_eq(sdc_specialize(f, args, 4, &b), SDC_OK);
    ck_assert_ptr_eq(a, b);
    args[3] = sdc_int(32);
    ck_assert_int_eq(sdc_specialize(f, args, 4, &c), SDC_OK);
    ck_assert_ptr_ne(a, c);
    args[1] = sdc_ptr(SDC_FP32, x + 1);
    ck_assert_int_eq(sdc_specialize(f, args, 4, &b), SDC_OK);
    ck_assert_ptr_ne(b, c);
    ck_assert(!sdc_kernel_writes(a, 0) && !sdc_kernel_writes(a, 1));
    ck_assert(sdc_kernel_writes(a, 2) && !sdc_kernel_writes(a, 3));
    ck_assert(!sdc_kernel_writes(a, 4) && !sdc_kernel_writes(a, -1));
    ck_assert(sdc_kernel_constant(a, "BLOCK", &v) && v == 256);
    ck_assert(sdc_kernel_constant(a, "num_warps", &v) && v == 4);
    ck_assert(!sdc_kernel_constant(a, "n", &v));
    sdc_context_destroy(e.cx);
}
END_TEST

/* A kernel relies on what it was specialized for: an argument that differs is refused. */
START_TEST(explicit_kernels_check_arguments)
{
    Env e = setup();
    SdcKernel *k, *again;
    _Alignas(64) float x[64] = {0};
    static const char sig[] = "*fp32:16,*fp32:16,*fp32:16,i32:16,64";
    SdcStatus s = sdc_kernel_get(e.mod, "add", sig, NULL, 0, &k);
    ck_assert_msg(s == SDC_OK, "%s", sdc_error(e.cx));
    ck_assert_int_eq(sdc_kernel_get(e.mod, "add", sig, NULL, 0, &again), SDC_OK);
    ck_assert_ptr_eq(k, again);
    SdcArg good[] = {sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, x), sdc_ptr(SDC_FP32, x),
                     sdc_int(64)};
    SdcGrid one = sdc_grid(1, 1, 1);
    ck_assert_int_eq(sdc_kernel_launch(k, one, good, 4, NULL), SDC_OK);
    static const char *const why[] = {"not divisible", "pointer", "another type",
                                      "not divisible", "integer", "fit"};
    for (int i = 0; i < 6; i++) {
        SdcArg bad[4];
        memcpy(bad, good, sizeof bad);
        bad[0] = i == 0   ? sdc_ptr(SDC_FP32, x + 1)
                 : i == 1 ? sdc_int(3)
                 : i == 2 ? sdc_ptr(SDC_FP16, x)
                          : bad[0];
        bad[3] = i == 3   ? sdc_int(63)
                 : i == 4 ? sdc_float(64)
                 : i == 5 ? sdc_int((int64_t)1 << 32)
                          : bad[3];
        ck_assert_int_eq(sdc_kernel_launch(k, one, bad, 4, NULL), SDC_ERROR_ARGUMENT);
        ck_assert_msg(strstr(sdc_error(e.cx), why[i]), "%s", sdc_error(e.cx));
    }
    s = sdc_kernel_get(e.mod, "scale", "*fp32,64,fp32,None", NULL, 0, &k);
    ck_assert_msg(s == SDC_OK, "%s", sdc_error(e.cx));
    SdcArg scale[] = {sdc_ptr(SDC_FP32, x), sdc_int(64), sdc_float(2), sdc_none()};
    ck_assert_int_eq(sdc_kernel_launch(k, one, scale, 4, NULL), SDC_OK);
    scale[1] = sdc_int(32);
    ck_assert_int_eq(sdc_kernel_launch(k, one, scale, 4, NULL), SDC_ERROR_ARGUMENT);
    ck_assert(strstr(sdc_error(e.cx), "specialized"));
    scale[1] = sdc_int(64);
    scale[3] = sdc_int(1);
    ck_assert_int_eq(sdc_kernel_launch(k, one, scale, 4, NULL), SDC_ERROR_ARGUMENT);
    sdc_context_destroy(e.cx);
}
END_TEST

START_TEST(none_and_annotations)
{
    Env e = setup();
    SdcFunction *f = function(&e, "scale", NULL, 0);
    float x[4] = {1, 2, 3, 4};
    SdcArg args[] = {sdc_ptr(SDC_FP32, x), sdc_int(4), sdc_float(0.5), sdc_none()};
    SdcGrid one = sdc_grid(1, 1, 1);
    ck_assert_msg(sdc_launch(f, one, args, 4, NULL) == SDC_OK, "%s", sdc_error(e.cx));
    ck_assert(x[3] == 2);
    args[3] = sdc_int(5);
    args[1] = sdc_int(1); /* annotated: not folded, still right */
    ck_assert_msg(sdc_launch(f, one, args, 4, NULL) == SDC_OK, "%s", sdc_error(e.cx));
    ck_assert(x[0] == 0.75f && x[1] == 1);
    sdc_context_destroy(e.cx);
}
END_TEST

START_TEST(compiles_to_bytes)
{
    Env e = setup();
    SdcOutput *out;
    size_t size;
    SdcCompileOptions o = {.kernel = "add", .signature = "*fp32,*fp32,*fp32,i32,64"};
    SdcStatus s = sdc_compile(e.mod, &o, &out);
    ck_assert_msg(s == SDC_OK, "%s", sdc_error(e.cx));
    const char *bytes = sdc_output_data(out, &size);
    ck_assert(size > 64 && memcmp(bytes, "\177ELF", 4) == 0);
    ck_assert(strstr(sdc_output_times(out), "total"));
    int n;
    const SdcrtMeta *meta = sdc_output_meta(out, &n);
    ck_assert_int_eq(n, 1);
    ck_assert_str_eq(meta->symbol, "add");
    ck_assert_int_eq(meta->nparam, 4);
    sdc_output_destroy(out);
    o.emit = SDC_EMIT_TIR;
    ck_assert_int_eq(sdc_compile(e.mod, &o, &out), SDC_OK);
    ck_assert(strstr(sdc_output_data(out, &size), "kernel @add"));
    sdc_output_destroy(out);
    o.kernel = NULL;
    ck_assert_int_eq(sdc_compile(e.mod, &o, &out), SDC_ERROR_ARGUMENT);
    ck_assert(strstr(sdc_error(e.cx), "'add', 'scale'"));
    o.kernel = "add";
    o.target = "sm_1";
    ck_assert_int_eq(sdc_compile(e.mod, &o, &out), SDC_ERROR_ARGUMENT);
    ck_assert_ptr_null(out);
    sdc_context_destroy(e.cx);
}
END_TEST

/* ---------------------------------------------------------------- threads */

enum { THREADS = 8, LAUNCHES = 300 };

typedef struct Worker {
    pthread_t thread;
    Env *env;
    int id;
    int failures;
} Worker;

/* Its own sizes and types through shared handles; wrong calls in between, whose messages
   must be its own. */
static void *
work(void *arg)
{
    Worker *w = arg;
    SdcFunction *f;
    static const char *const block[] = {"BLOCK=64"};
    if (sdc_function_get(w->env->mod, "add", block, 1, &f) != SDC_OK)
        w->failures++;
    for (int i = 0; i < LAUNCHES && !w->failures; i++) {
        int32_t x[130], out[130];
        int n = 1 + (i * 7 + w->id * 13) % 128;
        for (int k = 0; k < 130; k++) {
            x[k] = k + w->id;
            out[k] = -1;
        }
        SdcDtype t = w->id % 2 ? SDC_I32 : SDC_U32;
        SdcArg args[] = {sdc_ptr(t, x), sdc_ptr(t, x), sdc_ptr(t, out), sdc_int(n)};
        w->failures += sdc_launch(f, sdc_grid(2, 1, 1), args, 4, NULL) != SDC_OK;
        for (int k = 0; k < 130; k++)
            w->failures += out[k] != (k < n ? 2 * (k + w->id) : -1);
        char name[32];
        SdcModule *none;
        snprintf(name, sizeof name, "/no/file.%d", w->id);
        w->failures += sdc_module_load_file(w->env->cx, name, &none) != SDC_ERROR_FILE;
        w->failures += !strstr(sdc_error(w->env->cx), name);
    }
    return NULL;
}

START_TEST(threads_share_everything)
{
    Env e = setup();
    Worker w[THREADS];
    for (int i = 0; i < THREADS; i++) {
        w[i] = (Worker){.env = &e, .id = i};
        ck_assert_int_eq(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(w[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(w[i].failures, 0);
    sdc_context_destroy(e.cx);
}
END_TEST

START_TEST(dtypes_have_names)
{
    for (int t = 1; t < SDC_DTYPE_COUNT; t++) {
        const char *name = sdc_dtype_name((SdcDtype)t);
        ck_assert_int_eq(sdc_dtype_by_name(name, strlen(name)), t);
        ck_assert_int_gt(sdc_dtype_size((SdcDtype)t), 0);
    }
    ck_assert_int_eq(sdc_dtype_by_name("float32", 7), SDC_FP32);
    ck_assert_int_eq(sdc_dtype_by_name("float33", 7), SDC_DTYPE_NONE);
    ck_assert_int_eq(sdc_dtype_by_name("", 0), SDC_DTYPE_NONE);
    ck_assert_ptr_null(sdc_dtype_name(SDC_DTYPE_NONE));
    ck_assert_int_eq(sdc_dtype_size((SdcDtype)99), 0);
}
END_TEST

/* DLTensor of DLPack. */
typedef struct Tensor {
    void *data;
    int32_t device, id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t offset;
} Tensor;

START_TEST(tensors_of_dlpack)
{
    Env e = setup();
    static float x[8 * 16 + 4];
    int64_t shape[] = {8, 16}, strides[] = {1, 8};
    Tensor t = {x, 1, 0, 2, 2, 32, 1, shape, NULL, 16};
    SdcArg a;
    SdcDesc d;
    ck_assert_int_eq(sdc_arg_dlpack(e.cx, &t, &a), SDC_OK);
    ck_assert_int_eq(a.kind, SDC_ARG_PTR);
    ck_assert_int_eq(a.dtype, SDC_FP32);
    ck_assert_ptr_eq(a.v.ptr, x + 4);
    ck_assert_int_eq(sdc_desc_dlpack(e.cx, &t, (int32_t[]){4, 8}, &d), SDC_OK);
    ck_assert(d.rank == 2 && d.strides[0] == 16 && d.strides[1] == 1 && d.block[1] == 8);
    t.strides = strides;
    ck_assert_int_eq(sdc_desc_dlpack(e.cx, &t, (int32_t[]){4, 8}, &d), SDC_OK);
    ck_assert(d.strides[0] == 1 && d.strides[1] == 8);
    t.code = 4, t.bits = 16;
    ck_assert_int_eq(sdc_arg_dlpack(e.cx, &t, &a), SDC_OK);
    ck_assert_int_eq(a.dtype, SDC_BF16);
    t.device = 2; /* kDLCUDA: a launch on the CPU does not reach it */
    ck_assert_int_eq(sdc_arg_dlpack(e.cx, &t, &a), SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sdc_error(e.cx), "device 2:0"));
    t.device = 1, t.code = 5, t.bits = 64; /* complex */
    ck_assert_int_eq(sdc_arg_dlpack(e.cx, &t, &a), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_arg_dlpack(e.cx, NULL, &a), SDC_ERROR_ARGUMENT);
    sdc_context_destroy(e.cx);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("api");
    TCase *c = tcase_create("api");
    tcase_set_timeout(c, 100);
    tcase_add_test(c, modules_tell_their_kernels);
    tcase_add_test(c, wrong_calls_are_refused);
    tcase_add_test(c, errors_have_places);
    tcase_add_test(c, errors_of_a_launch_name_its_arguments);
    tcase_add_test(c, messages_come_one_by_one);
    tcase_add_test(c, tuples_are_arguments);
    tcase_add_test(c, descriptors_in_tuples);
    tcase_add_test(c, launches_add);
    tcase_add_test(c, specializations_are_kept);
    tcase_add_test(c, explicit_kernels_check_arguments);
    tcase_add_test(c, none_and_annotations);
    tcase_add_test(c, compiles_to_bytes);
    tcase_add_test(c, threads_share_everything);
    tcase_add_test(c, dtypes_have_names);
    tcase_add_test(c, tensors_of_dlpack);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

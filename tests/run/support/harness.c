/* Buffers with guards, launches and comparison for the run tests; see harness.h. */
#include "tests/run/support/device.h"
#include "tests/run/support/oracle.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "runtime/rt/cuda.h"

enum { POISON = 0xff }; /* a NaN in every floating type, and no likely integer */

static Block *
block_add(Env *env)
{
    Block *b = calloc(1, sizeof(*b));
    ck_assert_ptr_nonnull(b);
    b->next = env->blocks;
    env->blocks = b;
    return b;
}

/* SDC_TEST_CHECK=1: every launch on the CPU is checked, and nothing may be found. */
static int
checks_wanted(void)
{
    const char *text = getenv("SDC_TEST_CHECK");
    return text && *text && !device_wanted() ? atoi(text) : 0;
}

static void
known(Env *env, const void *mem, size_t size)
{
    ck_assert_int_eq(sdc_register_range(env->ctx, mem, size, NULL), SDC_OK);
}

static Env
env_start(void)
{
    Env env = {.random = 0x9e3779b97f4a7c15u, .at_end = true};
    SdcContextOptions o = {.target = device_target(), .cpu = getenv("SDC_TEST_CPU"),
                           .debug = getenv("SDC_TEST_DEBUG") != NULL,
                           .check = checks_wanted()};
    ck_assert_int_eq(sdc_context_create(&o, &env.ctx), SDC_OK);
    if (device_wanted()) {
        SdcDevice device;
        ck_assert_msg(sdc_context_device(env.ctx, &device) == SDC_OK, "%s",
                      sdc_error(env.ctx));
        env.cuda = device.cuda;
    }
    return env;
}

const char *
test_root(void)
{
    const char *root = getenv("SDC_TEST_ROOT");
    return root && *root ? root : SDC_ROOT;
}

Env
env_open_file(const char *path)
{
    Env env = env_start();
    env.path = env_text(&env, "%s", path);
    SdcStatus s = sdc_module_load_file(env.ctx, path, &env.mod);
    ck_assert_msg(s == SDC_OK, "%s: %s", sdc_status_name(s), sdc_error(env.ctx));
    return env;
}

void
env_turn_to(Env *env, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/kernels_dsl/%s.tk", test_root(), name);
    env->path = env_text(env, "%s", path);
    SdcStatus s = sdc_module_load_file(env->ctx, path, &env->mod);
    ck_assert_msg(s == SDC_OK, "%s: %s: %s", path, sdc_status_name(s),
                  sdc_error(env->ctx));
}

Env
env_open(const char *name)
{
    Env env = env_start();
    env_turn_to(&env, name);
    return env;
}

Env
env_open_text(const char *name, const char *text)
{
    Env env = env_start();
    env.path = name;
    env.text = text;
    SdcStatus s = sdc_module_load_text(env.ctx, name, text, strlen(text), SDC_LANG_TRITON,
                                       &env.mod);
    ck_assert_msg(s == SDC_OK, "%s: %s", sdc_status_name(s), sdc_error(env.ctx));
    return env;
}

Env
env_open_tir(const char *text)
{
    Env env = env_start();
    SdcStatus s = sdc_module_load_text(env.ctx, "text.tir", text, strlen(text),
                                       SDC_LANG_TIR, &env.mod);
    ck_assert_msg(s == SDC_OK, "%s: %s", sdc_status_name(s), sdc_error(env.ctx));
    return env;
}

void
env_close(Env *env)
{
    sdc_context_destroy(env->ctx);
    while (env->blocks) {
        Block *b = env->blocks;
        env->blocks = b->next;
        if (b->mapped)
            munmap(b->base, b->mapped);
        else if (!b->lent)
            free(b->base);
        free(b);
    }
}

void *
env_alloc(Env *env, size_t bytes)
{
    Block *b = block_add(env);
    b->base = calloc(bytes ? bytes : 1, 1);
    ck_assert_ptr_nonnull(b->base);
    b->mem = b->base;
    b->size = bytes;
    known(env, b->mem, bytes);
    return b->base;
}

void *
env_lend(Env *env, void *mem, size_t size)
{
    Block *b = block_of(env, mem);
    if (!b) {
        b = block_add(env);
        b->base = b->mem = mem;
        b->size = size;
        b->lent = true;
        known(env, mem, size);
    }
    return mem;
}

double *
env_doubles(Env *env, int64_t n)
{
    return env_alloc(env, (size_t)n * sizeof(double));
}

const char *
env_text(Env *env, const char *fmt, ...)
{
    va_list args;
    char *text = env_alloc(env, 512);
    va_start(args, fmt);
    vsnprintf(text, 512, fmt, args);
    va_end(args);
    return text;
}

uint64_t
env_random(Env *env)
{
    env->random ^= env->random << 13;
    env->random ^= env->random >> 7;
    env->random ^= env->random << 17;
    return env->random * 0x2545f4914f6cdd1du;
}

double
env_normal(Env *env)
{
    double sum = 0; /* of uniforms: variance 1/12 each */
    for (int i = 0; i < 4; i++)
        sum += (double)(env_random(env) >> 11) * 0x1p-53 - 0.5;
    return sum * sqrt(3.0);
}

/* ---------------------------------------------------------------- buffers */

RefType
ref_type(SdcDtype t)
{
    if (t == SDC_FP16)
        return REF_FP16;
    if (t == SDC_BF16)
        return REF_BF16;
    return t == SDC_FP32 ? REF_FP32 : REF_FP64;
}

double
unit_of(SdcDtype t)
{
    return t == SDC_FP16 || t == SDC_BF16 ? ref_unit(ref_type(t)) : 0.0;
}

/* Takes pages for `bytes`, an untouchable one on the side that env asks for. */
static unsigned char *
buf_place(Env *env, Buf *b, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t body = (bytes + 64 + page - 1) / page * page;
    Block *block = block_add(env);
    void *base = mmap(NULL, body + page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(base, MAP_FAILED);
    block->base = base;
    block->mapped = body + page;
    unsigned char *dead = env->at_end ? block->base + body : block->base;
    b->page = env->at_end ? block->base : block->base + page;
    b->page_end = b->page + body;
    memset(b->page, POISON, body);
    block->mem = b->page;
    block->size = body;
    ck_assert_int_eq(mprotect(dead, page, PROT_NONE), 0);
    unsigned char *at = env->at_end ? b->page_end - bytes : b->page;
    known(env, at, bytes);
    return at;
}

Buf
buf_poison(Env *env, SdcDtype t, int64_t pad, int rank, const int64_t *shape)
{
    Buf b = {.dtype = t, .rank = rank};
    int64_t stride = 1;
    b.slots = 1;
    for (int d = rank - 1; d >= 0; d--) {
        b.shape[d] = shape[d];
        b.strides[d] = stride;
        b.slots += (shape[d] - 1) * stride;
        stride *= shape[d] + (d == rank - 1 ? pad : 0);
    }
    b.data = buf_place(env, &b, (size_t)(b.slots * sdc_dtype_size(t)));
    return b;
}

int64_t
buf_count(const Buf *b)
{
    int64_t n = 1;
    for (int d = 0; d < b->rank; d++)
        n *= b->shape[d];
    return n;
}

/* Where element i of the dense row-major order is. */
static int64_t
buf_slot(const Buf *b, int64_t i)
{
    int64_t slot = 0;
    for (int d = b->rank - 1; d >= 0; d--) {
        slot += i % b->shape[d] * b->strides[d];
        i /= b->shape[d];
    }
    return slot;
}

double
buf_get(const Buf *b, int64_t slot)
{
    const unsigned char *at = b->data + slot * sdc_dtype_size(b->dtype);
    int64_t i64;
    int32_t i32;
    switch (b->dtype) {
    case SDC_I8: return (double)(int8_t)*at;
    case SDC_U8: return (double)*at;
    case SDC_I32: memcpy(&i32, at, sizeof(i32)); return (double)i32;
    case SDC_I64: memcpy(&i64, at, sizeof(i64)); return (double)i64;
    case SDC_FP8E5:
    case SDC_FP8E4B8:
    case SDC_FP8E5B16:
    case SDC_FP8E4B15:
    case SDC_FP8E4NV: return sdc_dtype_load(b->dtype, at);
    default: return ref_load(ref_type(b->dtype), b->data, slot);
    }
}

void
buf_set(Buf *b, int64_t slot, double v)
{
    unsigned char *at = b->data + slot * sdc_dtype_size(b->dtype);
    int64_t i64 = sdc_dtype_is_float(b->dtype) ? 0 : (int64_t)v; /* infinity is none */
    int32_t i32 = (int32_t)i64;
    switch (b->dtype) {
    case SDC_I8:
    case SDC_U8: *at = (unsigned char)i64; break;
    case SDC_I32: memcpy(at, &i32, sizeof(i32)); break;
    case SDC_I64: memcpy(at, &i64, sizeof(i64)); break;
    case SDC_FP8E5:
    case SDC_FP8E4B8:
    case SDC_FP8E5B16:
    case SDC_FP8E4B15:
    case SDC_FP8E4NV: sdc_dtype_store(b->dtype, v, at); break;
    default: ref_store(ref_type(b->dtype), b->data, slot, v);
    }
}

Buf
buf_random(Env *env, SdcDtype t, int64_t pad, int rank, const int64_t *shape)
{
    Buf b = buf_poison(env, t, pad, rank, shape);
    env->blocks->input = true;
    bool whole = t != SDC_FP16 && t != SDC_BF16 && t != SDC_FP32 && t != SDC_FP64;
    for (int64_t i = 0; i < buf_count(&b); i++) {
        double v = whole ? (double)(env_random(env) % 61) - 30 : env_normal(env);
        buf_set(&b, buf_slot(&b, i), v);
    }
    return b;
}

Buf
buf_swap(Buf b, int i, int j)
{
    int64_t shape = b.shape[i], stride = b.strides[i];
    b.shape[i] = b.shape[j];
    b.strides[i] = b.strides[j];
    b.shape[j] = shape;
    b.strides[j] = stride;
    return b;
}

double *
buf_doubles(Env *env, const Buf *b)
{
    int64_t n = buf_count(b);
    double *out = env_doubles(env, n);
    for (int64_t i = 0; i < n; i++)
        out[i] = buf_get(b, buf_slot(b, i));
    return out;
}

SdcArg
buf_arg(const Buf *b)
{
    return sdc_ptr(b->dtype, b->data);
}

/* ---------------------------------------------------------------- comparison */

/* The first byte that no element owns and that is not poison any more, or NULL. */
static const unsigned char *
buf_spoilt(Env *env, const Buf *b)
{
    int size = sdc_dtype_size(b->dtype);
    bool *owned = env_alloc(env, (size_t)b->slots);
    for (int64_t i = 0; i < buf_count(b); i++)
        owned[buf_slot(b, i)] = true;
    for (const unsigned char *p = b->page; p < b->page_end; p++) {
        int64_t slot = p < b->data ? -1 : (p - b->data) / size;
        if (*p != POISON && (slot < 0 || slot >= b->slots || !owned[slot]))
            return p;
    }
    return NULL;
}

void
buf_check(Env *env, const Buf *b, const char *what, const double *want,
          const double *bound)
{
    const Block *block = block_of(env, b->data);
    if (block && (block->unsupported || block->unknown))
        return;
    const double *got = buf_doubles(env, b);
    int64_t at = ref_compare(ref_type(b->dtype), buf_count(b), got, want, bound);
    if (at >= 0)
        ck_abort_msg("%s: element %lld of %lld is %.9g, not %.9g +- %.3g and a rounding",
                     what, (long long)at, (long long)buf_count(b), got[at], want[at],
                     bound ? bound[at] : 0.0);
    const unsigned char *spoilt = buf_spoilt(env, b);
    if (spoilt)
        ck_abort_msg("%s: byte %lld was written, but belongs to no element", what,
                     (long long)(spoilt - b->data));
}

double
dot_unit(const Env *env, SdcDtype t)
{
    return env->cuda && t == SDC_FP32 ? 0x1p-9 : 0.0;
}

/* ---------------------------------------------------------------- launches */

/* Shared with the children that Check starts. */
Tally *
tally(void)
{
    static Tally *t;
    if (!t) {
        void *p = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            abort();
        t = p;
    }
    return t;
}

/* Prints each message once. */
static void
say_unsupported(const char *kernel, const char *message)
{
    Tally *t = tally();
    uint64_t hash = 14695981039346656037u;
    const char *end = strchr(message, '\n');
    int n = end ? (int)(end - message) : (int)strlen(message);
    for (const char *p = kernel; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 1099511628211u;
    for (int i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)message[i]) * 1099511628211u;
    for (int i = 0; i < t->nseen; i++)
        if (t->seen[i] == hash)
            return;
    if (t->nseen < (int)(sizeof t->seen / sizeof t->seen[0]))
        t->seen[t->nseen++] = hash;
    printf("UNSUPPORTED %s: %.*s\n", kernel, n, message);
    fflush(stdout);
}

/* Marks what a launch that did not run may have written. */
static void
mark_unsupported(Env *env, const SdcArg *args, int nargs)
{
    for (int i = 0; i < nargs; i++) {
        Block *b = args[i].kind == SDC_ARG_PTR ? block_of(env, args[i].v.ptr) : NULL;
        if (b && !b->input)
            b->unsupported = true;
    }
}

static bool
reads_unsupported(Env *env, const SdcArg *args, int nargs)
{
    for (int i = 0; i < nargs; i++) {
        Block *b = args[i].kind == SDC_ARG_PTR ? block_of(env, args[i].v.ptr) : NULL;
        if (b && b->unsupported)
            return true;
    }
    return false;
}

enum { MAX_BINDS = 32 };

static size_t
bytes_left(void *env, const void *p)
{
    const Block *b = block_of(env, p);
    return b ? (size_t)(b->mem + b->size - (const unsigned char *)p) : 0;
}

/* num_warps and num_stages of the environment, where the test does not bind them. */
static int
add_options(char text[2][32], const char **bind, int n)
{
    static const char *const names[2][2] = {{"SDC_TEST_WARPS", "num_warps="},
                                            {"SDC_TEST_STAGES", "num_stages="}};
    for (int i = 0; i < 2; i++) {
        const char *value = getenv(names[i][0]);
        bool bound = !value || !*value;
        for (int k = 0; k < n && !bound; k++)
            bound = strncmp(bind[k], names[i][1], strlen(names[i][1])) == 0;
        if (bound || n >= MAX_BINDS)
            continue;
        snprintf(text[i], sizeof(text[i]), "%s%s", names[i][1], value);
        bind[n++] = text[i];
    }
    return n;
}

bool
launch(Env *env, const char *kernel, SdcGrid grid, const char *binds, const SdcArg *args,
       int nargs)
{
    char text[1024], options[2][32];
    const char *bind[MAX_BINDS];
    int n = 0;
    ck_assert_uint_lt(strlen(binds), sizeof(text));
    strcpy(text, binds);
    for (char *save, *b = strtok_r(text, " ", &save); b; b = strtok_r(NULL, " ", &save)) {
        ck_assert_int_lt(n, MAX_BINDS);
        bind[n++] = b;
    }
    n = add_options(options, bind, n);
    if (reads_unsupported(env, args, nargs)) {
        tally()->skipped++;
        mark_unsupported(env, args, nargs);
        return false;
    }
    SdcFunction *fn;
    SdcStatus s = sdc_function_get(env->mod, kernel, bind, n, &fn);
    ck_assert_msg(s == SDC_OK, "%s [%s]: %s: %s", kernel, binds, sdc_status_name(s),
                  sdc_error(env->ctx));
    tally()->launches++;
    if (oracle_wanted()) {
        oracle_launch(&(OracleJob){.path = env->path, .text = env->text,
                                   .kernel = kernel, .bind = bind, .nbind = n,
                                   .grid = grid, .args = args, .nargs = nargs,
                                   .left = bytes_left, .user = env});
        return true;
    }
    s = env->cuda ? device_launch(env, fn, grid, args, nargs)
                  : sdc_launch(fn, grid, args, nargs, NULL);
    if (s == SDC_ERROR_UNSUPPORTED && env->cuda) {
        tally()->unsupported++;
        say_unsupported(kernel, sdc_error(env->ctx));
        mark_unsupported(env, args, nargs);
        return false;
    }
    ck_assert_msg(s == SDC_OK, "%s [%s]: %s: %s", kernel, binds, sdc_status_name(s),
                  sdc_error(env->ctx));
    return !device_dry();
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *
setting(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : "default";
}

/* Tests in this process share one CUDA context: the handle that is kept here keeps the
   primary one alive from test to test. In children each test makes its own. */
int
suite_finish(const char *name, Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    SdcrtCuda *keep = NULL;
    SdcrtError e = {0};
    uint64_t id;
    double start = now();
    if (device_wanted() && srunner_fork_status(runner) == CK_NOFORK &&
        (sdcrt_cuda_open(0, &keep, &e) != SDCRT_OK ||
         sdcrt_cuda_context(keep, &id, &e) != SDCRT_OK))
        printf("%s\n", e.text);
    tally();
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner), run = srunner_ntests_run(runner);
    srunner_free(runner);
    sdcrt_cuda_close(keep);
    if (device_wanted())
        printf("%s %s on cuda, warps %s, stages %s: %d tests, %d failed, %d launches, "
               "%d unsupported, %d not reached, %.1f s\n",
               failed ? "WRONG" : "ok", name, setting("SDC_TEST_WARPS"),
               setting("SDC_TEST_STAGES"), run, failed, tally()->launches,
               tally()->unsupported, tally()->skipped, now() - start);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int
suite_run(const char *name, const TTest *const *tests, int ntests)
{
    Suite *suite = suite_create(name);
    TCase *tc = tcase_create("kernels");
    tcase_set_timeout(tc, 300);
    for (int i = 0; i < ntests; i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(suite, tc);
    return suite_finish(name, suite);
}

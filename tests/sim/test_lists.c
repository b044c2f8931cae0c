/* Every pass of the lists of a GPU and the CPU taken away, and swapped with the next one:
   the list is refused with a message (passes/forms.h), or its code gives what the whole
   list's code gives. On the simulator, which finds races and missing fences and waits as
   well; for the CPU as a shared object.

   Code that is the same as before is not run again, so that a few hundred lists take
   seconds. LISTS_VERBOSE=1 prints a line a list. */
#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/rt/cuda.h"
#include "runtime/rt/sdcrt.h"
#include "runtime/sdc.h"
#include "tests/sim/number.h"

enum {
    MAX_LIST = 128,
    MAX_SLOTS = 16,
    MAX_ARRAYS = 4,
    MAX_SEEN = 1024,
    LIST_TEXT = 2048
};

/* An argument: "h" an array of fp16, "f" of fp32, of so many elements, an output when
   there is a '!'; "i" an integer, "x" a float. */
typedef struct Arg {
    const char *kind;
    int n;
    float x;
} Arg;

typedef struct Subject {
    const char *kernel, *signature;
    const char *target;
    int warps, stages;
    int grid[3];
    Arg args[MAX_SLOTS];
    bool exact; /* small integers: bit for bit */
} Subject;

#define GEMM_ARGS(m, n, k)                                                               \
    {                                                                                    \
        {"h", (m) * (k), 0}, {"h", (k) * (n), 0}, {"h!", (m) * (n), 0}, {"i", m, 0},     \
            {"i", n, 0}, {"i", k, 0}, {"i", k, 0}, {"i", n, 0},                          \
        {                                                                                \
            "i", n, 0                                                                    \
        }                                                                                \
    }
#define GEMM_SIG(tiles)                                                                  \
    "*fp16:16,*fp16:16,*fp16:16,i32:16,i32:16,i32:16,i32:16,i32:16,i32:16," tiles
#define ATTENTION_ARGS                                                                   \
    {                                                                                    \
        {"h", 160 * 64, 0}, {"h", 160 * 64, 0}, {"h", 160 * 64, 0}, {"h!", 160 * 64, 0}, \
            {"i", 160, 0},                                                               \
        {                                                                                \
            "x", 0, 0.18f                                                                \
        }                                                                                \
    }
#define ATTENTION_SIG(tiles) "*fp16:16,*fp16:16,*fp16:16,*fp16:16,i32:16,fp32,64," tiles
#define ROWS_ARGS                                                                        \
    {                                                                                    \
        {"f", 2048, 0}, {"f!", 2048, 0}, {"i", 400, 0},                                  \
        {                                                                                \
            "i", 512, 0                                                                  \
        }                                                                                \
    }
#define ROWS_SIG "*fp32:16,*fp32:16,i32:16,i32:16,256"
#define ATOMICS_ARGS                                                                     \
    {                                                                                    \
        {"h", 192 * 32, 0}, {"h", 192 * 32, 0}, {"f!", 128, 0}, {"f!", 1024, 0},         \
            {"i", 192, 0},                                                               \
        {                                                                                \
            "i", 77, 0                                                                   \
        }                                                                                \
    }
#define ATOMICS_SIG "*fp16:16,*fp16:16,*fp32:16,*fp32:16,i32:16,i32,64,32"
#define GRADIENTS_ARGS                                                                   \
    {                                                                                    \
        {"h", 192 * 64, 0}, {"h", 128 * 64, 0}, {"f", 192, 0}, {"f!", 192 * 64, 0},      \
            {"f!", 128 * 64, 0},                                                         \
        {                                                                                \
            "i", 150, 0                                                                  \
        }                                                                                \
    }
#define GRADIENTS_SIG "*fp16:16,*fp16:16,*fp32:16,*fp32:16,*fp32:16,i32,64,64,64"
#define STEPS_ARGS                                                                       \
    {                                                                                    \
        {"f", 9 * 512, 0}, {"f", 9, 0}, {"f!", 9 * 512, 0},                              \
        {                                                                                \
            "i", 9, 0                                                                    \
        }                                                                                \
    }
#define STEPS_SIG "*fp32:16,*fp32:16,*fp32:16,i32,256"

static const Subject subjects[] = {
    {"gemm",
     GEMM_SIG("64,64,32"),
     "sm_80",
     4,
     3,
     {2, 2, 1},
     GEMM_ARGS(112, 96, 160),
     true},
    {"attention",
     ATTENTION_SIG("64,32"),
     "sm_80",
     4,
     2,
     {3, 1, 1},
     ATTENTION_ARGS,
     false},
    {"rows", ROWS_SIG, "sm_80", 4, 3, {4, 1, 1}, ROWS_ARGS, false},
    {"atomics", ATOMICS_SIG, "sm_80", 4, 3, {1, 1, 1}, ATOMICS_ARGS, true},
    {"gemm",
     GEMM_SIG("128,128,64"),
     "sm_90a",
     8,
     3,
     {2, 2, 1},
     GEMM_ARGS(240, 192, 224),
     true},
    {"gemm",
     GEMM_SIG("64,64,32"),
     "sm_90a",
     4,
     2,
     {2, 2, 1},
     GEMM_ARGS(112, 96, 160),
     true},
    {"attention",
     ATTENTION_SIG("128,64"),
     "sm_90a",
     8,
     2,
     {2, 1, 1},
     ATTENTION_ARGS,
     false},
    {"attention",
     ATTENTION_SIG("128,128"), /* in roles */
     "sm_90a",
     8,
     2,
     {2, 1, 1},
     ATTENTION_ARGS,
     false},
    {"rows", ROWS_SIG, "sm_90a", 4, 3, {4, 1, 1}, ROWS_ARGS, false},
    {"atomics", ATOMICS_SIG, "sm_90a", 4, 3, {1, 1, 1}, ATOMICS_ARGS, true},
    {"gradients", GRADIENTS_SIG, "sm_90a", 4, 2, {2, 1, 1}, GRADIENTS_ARGS, true},
    {"steps", STEPS_SIG, "sm_90a", 4, 3, {2, 1, 1}, STEPS_ARGS, true},
    {"gemm", GEMM_SIG("32,32,32"), "cpu", 4, 3, {4, 3, 1}, GEMM_ARGS(112, 96, 160), true},
    {"attention", ATTENTION_SIG("32,32"), "cpu", 4, 2, {5, 1, 1}, ATTENTION_ARGS, false},
    {"rows", ROWS_SIG, "cpu", 4, 3, {4, 1, 1}, ROWS_ARGS, false},
    {"atomics", ATOMICS_SIG, "cpu", 4, 3, {1, 1, 1}, ATOMICS_ARGS, true},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

typedef struct Code {
    char *bytes; /* NULL: refused */
    size_t size;
    SdcrtMeta *meta;
    SdcStatus status;
    char why[400];
} Code;

/* Arrays in memory that the simulated GPU sees, too. */
typedef struct Run {
    SdcrtCuda *cuda;
    uint64_t slot[MAX_SLOTS];
    int nslot;
} Run;

typedef struct Names {
    char at[MAX_LIST][32];
    int n;
} Names;

static SdcContext *ctx;
static SdcModule *module;

/* ---- compiling */

static void
note_pass(void *user, const char *pass, const char *tir)
{
    Names *names = user;
    (void)tir;
    ck_assert_int_lt(names->n, MAX_LIST);
    snprintf(names->at[names->n++], sizeof names->at[0], "%s", pass);
}

/* `names`: what the list was, where `passes` is NULL. */
static Code
compile(const Subject *s, const char *passes, Names *names)
{
    char w[32], st[32];
    bool gpu = strcmp(s->target, "cpu") != 0;
    const char *bind[] = {w, st, "launch_pdl=True"};
    SdcOutput *out = NULL;
    Code code = {0};
    int n;
    snprintf(w, sizeof w, "num_warps=%d", s->warps);
    snprintf(st, sizeof st, "num_stages=%d", s->stages);
    SdcCompileOptions o = {.kernel = s->kernel,
                           .signature = s->signature,
                           .bind = bind,
                           .nbind = 3,
                           .target = s->target,
                           .emit = gpu ? SDC_EMIT_ASM : SDC_EMIT_OBJ,
                           .passes = passes,
                           .dump_after = names ? "all" : NULL,
                           .dump = names ? note_pass : NULL,
                           .dump_user = names};
    code.status = sdc_compile(module, &o, &out);
    if (code.status != SDC_OK) {
        snprintf(code.why, sizeof code.why, "%s", sdc_error(ctx));
        return code;
    }
    const char *bytes = sdc_output_data(out, &code.size);
    code.bytes = malloc(code.size + 1);
    memcpy(code.bytes, bytes, code.size);
    code.bytes[code.size] = '\0';
    code.meta = malloc(sizeof *code.meta);
    *code.meta = *sdc_output_meta(out, &n);
    sdc_output_destroy(out);
    return code;
}

static void
code_free(Code *c)
{
    free(c->bytes);
    free(c->meta);
}

/* ---- running */

static size_t
bytes_of(const Arg *a)
{
    return (size_t)a->n * (a->kind[0] == 'h' ? 2 : 4);
}

static bool
is_array(const Arg *a)
{
    return a->kind[0] == 'h' || a->kind[0] == 'f';
}

/* Integers from -2 to 2 in inputs, by their place; outputs begin as 0. */
static void
fill(const Arg *a, void *to)
{
    memset(to, 0, bytes_of(a));
    for (int i = 0; i < a->n && !a->kind[1]; i++) {
        float x = (float)((i * 7 + i / 13 + i / 97) % 5 - 2);
        uint16_t h = (uint16_t)f16_bits(x);
        if (a->kind[0] == 'h')
            memcpy((char *)to + 2 * i, &h, 2);
        else
            memcpy((char *)to + 4 * i, &x, 4);
    }
}

static void
run_open(Run *r, const Subject *s)
{
    SdcrtError e;
    bool gpu = strcmp(s->target, "cpu") != 0;
    if (gpu)
        ck_assert_msg(sdcrt_cuda_open(0, &r->cuda, &e) == SDCRT_OK, "%s", e.text);
    for (const Arg *a = s->args; a->kind; a++) {
        uint64_t *slot = &r->slot[r->nslot++];
        if (is_array(a) && gpu)
            ck_assert(sdcrt_cuda_alloc(r->cuda, bytes_of(a), slot, &e) == SDCRT_OK);
        else if (is_array(a))
            *slot = (uint64_t)(uintptr_t)aligned_alloc(64, (bytes_of(a) + 63) / 64 * 64);
        else
            *slot = a->kind[0] == 'i' ? (uint64_t)a->n : f32_raw(a->x);
    }
}

/* All outputs in a row, as floats. */
static int
outputs(const Run *r, const Subject *s, float *to)
{
    int n = 0;
    for (int i = 0; s->args[i].kind; i++) {
        const Arg *a = &s->args[i];
        const char *from = (const char *)(uintptr_t)r->slot[i];
        for (int k = 0; a->kind[1] && k < a->n; k++) {
            uint16_t h;
            memcpy(&h, from + 2 * k, 2);
            memcpy(&to[n], from + 4 * k * (a->kind[0] == 'f'), 4);
            if (a->kind[0] == 'h')
                to[n] = f16_of(h);
            n++;
        }
    }
    return n;
}

static bool
launch_gpu(const Run *r, const Subject *s, const Code *c, char *why, size_t size)
{
    SdcrtError e;
    SdcrtCudaKernel *k;
    const SdcGrid grid = {s->grid[0], s->grid[1], s->grid[2]};
    SdcrtStatus status = sdcrt_cuda_load(r->cuda, c->bytes, c->meta, &k, &e);
    if (status == SDCRT_OK) {
        status = sdcrt_cuda_launch(r->cuda, k, r->slot, grid, NULL, &e);
        sdcrt_cuda_unload(r->cuda, k);
    }
    if (status != SDCRT_OK)
        snprintf(why, size, "%s", e.text);
    return status == SDCRT_OK;
}

static bool
launch_cpu(const Run *r, const Subject *s, const Code *c, char *why, size_t size)
{
    static int number;
    char object[512], library[512], command[2048];
    const SdcGrid grid = {s->grid[0], s->grid[1], s->grid[2]};
    snprintf(object, sizeof object, "%s/lists_%d.o", SDC_TMP, (int)getpid());
    snprintf(library, sizeof library, "%s/lists_%d_%d.so", SDC_TMP, (int)getpid(),
             number++);
    FILE *f = fopen(object, "wb");
    ck_assert(f && fwrite(c->bytes, 1, c->size, f) == c->size && fclose(f) == 0);
    snprintf(command, sizeof command, "cc -shared -o %s %s -lm", library, object);
    bool ok = system(command) == 0;
    void *so = ok ? dlopen(library, RTLD_NOW) : NULL, *at = NULL;
    if (so)
        at = dlsym(so, c->meta->symbol);
    snprintf(why, size, "cannot be linked");
    if (at) {
        SdcrtCpuEntry *entry;
        memcpy(&entry, (void *)&at, sizeof entry);
        ok = sdcrt_run_range(entry, r->slot, grid, c->meta->scratch_bytes, 0,
                             sdcrt_grid_size(grid)) == SDCRT_OK;
        dlclose(so);
    }
    unlink(object);
    unlink(library);
    return ok && at;
}

static bool
launch(const Run *r, const Subject *s, const Code *c, char *why, size_t size)
{
    for (int i = 0; s->args[i].kind; i++)
        if (is_array(&s->args[i]))
            fill(&s->args[i], (void *)(uintptr_t)r->slot[i]);
    return r->cuda ? launch_gpu(r, s, c, why, size) : launch_cpu(r, s, c, why, size);
}

/* ---- the lists */

typedef enum Verdict { REFUSED, SAME, RIGHT, WRONG, VERDICTS } Verdict;
static const char *const verdict_names[] = {"refused", "the same code", "right", "WRONG"};

typedef struct Test {
    const Subject *s;
    Run run;
    Names names;
    Code whole;
    float *want, *got;
    int nwant;
    uint64_t seen[MAX_SEEN]; /* hashes of code that is right */
    int nseen, count[VERDICTS];
} Test;

static uint64_t
hash_of(const Code *c)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < c->size; i++)
        h = (h ^ (unsigned char)c->bytes[i]) * 0x100000001b3;
    return h;
}

static bool
is_seen(const Test *t, uint64_t hash)
{
    for (int i = 0; i < t->nseen; i++)
        if (t->seen[i] == hash)
            return true;
    return false;
}

static bool
is_right(Test *t, const Code *c, char *why, size_t size)
{
    if (!launch(&t->run, t->s, c, why, size))
        return false;
    int n = outputs(&t->run, t->s, t->got);
    for (int i = 0; i < n; i++) {
        double by = t->s->exact ? 0 : 2e-3 + 4e-3 * fabs((double)t->want[i]);
        if (fabs((double)t->got[i] - (double)t->want[i]) <= by)
            continue;
        snprintf(why, size, "element %d is %g, not %g", i, (double)t->got[i],
                 (double)t->want[i]);
        return false;
    }
    return true;
}

/* A message that says which pass must stand where, or that the kernel cannot be compiled;
   never an internal error. */
static bool
is_refusal(const Code *c)
{
    return c->status == SDC_ERROR_SOURCE || c->status == SDC_ERROR_UNSUPPORTED;
}

static Verdict
judge(Test *t, const char *list, char *why, size_t size)
{
    Code c = compile(t->s, list, NULL);
    Verdict v;
    snprintf(why, size, "%s", c.why);
    if (!c.bytes)
        return is_refusal(&c) ? REFUSED : WRONG;
    uint64_t hash = hash_of(&c);
    v = is_seen(t, hash) ? SAME : is_right(t, &c, why, size) ? RIGHT : WRONG;
    if (v == RIGHT && t->nseen < MAX_SEEN)
        t->seen[t->nseen++] = hash;
    code_free(&c);
    return v;
}

/* The list without pass `at`, or with it behind the next one. */
static void
list_text(const Names *names, int at, bool swapped, char *to)
{
    *to = '\0';
    for (int i = 0; i < names->n; i++) {
        int k = swapped && i == at ? i + 1 : swapped && i == at + 1 ? at : i;
        if (swapped || i != at)
            sprintf(to + strlen(to), "%s%s", *to ? "," : "", names->at[k]);
    }
}

static void
try_list(Test *t, int at, bool swapped)
{
    char list[LIST_TEXT], why[700];
    if (swapped && at + 1 >= t->names.n)
        return;
    list_text(&t->names, at, swapped, list);
    Verdict v = judge(t, list, why, sizeof why);
    t->count[v]++;
    if (v == WRONG || getenv("LISTS_VERBOSE"))
        printf("%s %s: %d %s%s%s: %s%s%.300s\n", t->s->target, t->s->kernel, at,
               swapped ? "" : "without ", t->names.at[at], swapped ? " later" : "",
               verdict_names[v], v == REFUSED || v == WRONG ? ": " : "",
               v == REFUSED || v == WRONG ? why : "");
}

static void
open_test(Test *t, const Subject *s)
{
    char path[512], why[700];
    *t = (Test){.s = s};
    snprintf(path, sizeof path, "%s/tests/sim/lists.tk", SDC_ROOT);
    ck_assert_int_eq(sdc_context_create(NULL, &ctx), SDC_OK);
    ck_assert_msg(sdc_module_load_file(ctx, path, &module) == SDC_OK, "%s",
                  sdc_error(ctx));
    run_open(&t->run, s);
    t->whole = compile(s, NULL, &t->names);
    ck_assert_msg(t->whole.bytes != NULL, "%s", t->whole.why);
    ck_assert_msg(launch(&t->run, s, &t->whole, why, sizeof why), "%s", why);
    for (const Arg *a = s->args; a->kind; a++)
        t->nwant += a->kind[1] ? a->n : 0;
    t->want = calloc((size_t)t->nwant, sizeof *t->want);
    t->got = calloc((size_t)t->nwant, sizeof *t->got);
    outputs(&t->run, s, t->want);
    t->seen[t->nseen++] = hash_of(&t->whole);
}

START_TEST(lists)
{
    static Test t;
    open_test(&t, &subjects[_i]);
    for (int i = 0; i < t.names.n; i++) {
        try_list(&t, i, false);
        try_list(&t, i, true);
    }
    printf("%-6s %-9s %d warps: %d lists: %d refused, %d the same code, %d right, %d "
           "wrong\n",
           t.s->target, t.s->kernel, t.s->warps, 2 * t.names.n - 1, t.count[REFUSED],
           t.count[SAME], t.count[RIGHT], t.count[WRONG]);
    fflush(stdout);
    ck_assert_int_eq(t.count[WRONG], 0);
    ck_assert_int_gt(t.count[REFUSED], 0);
    sdc_context_destroy(ctx);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lists");
    TCase *tc = tcase_create("lists");
    setenv("SDC_LIBCUDA", SIM_DRIVER, 1);
    setenv("SIM_PROCESSORS", "2", 1);
    setenv("SIM_SEED", "3", 1);
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, lists, 0, SUBJECTS);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}

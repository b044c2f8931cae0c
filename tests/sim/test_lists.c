/* Every pass of the lists of a GPU and the CPU taken away, once and wherever it stands,
   and swapped with the next one: the list is refused with a message (passes/forms.h), or
   its code gives what the whole list's code gives. On the simulator, which finds races
   and missing fences and waits as well; for the CPU as a shared object.

   Code that is the same as before is not run again, so that a few hundred lists take
   seconds. LISTS_VERBOSE=1 prints a line a list. At last: each pass of the lists matters
   for one of the kernels, or nothing would be known of it here; and of the waits in the
   code of all kernels hardly one can be dropped without being noticed. */
#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/rt/cuda.h"
#include "runtime/rt/sdcrt.h"
#include "runtime/sdc.h"
#include "tests/sim/mutate.h"
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
#define ATTENTION_ARGS(n)                                                                \
    {                                                                                    \
        {"h", (n) * 64, 0}, {"h", (n) * 64, 0}, {"h", (n) * 64, 0}, {"h!", (n) * 64, 0}, \
            {"i", n, 0},                                                                 \
        {                                                                                \
            "x", 0, 0.18f                                                                \
        }                                                                                \
    }
#define ATTENTION_SIG(tiles) "*fp16:16,*fp16:16,*fp16:16,*fp16:16,i32:16,fp32,64," tiles
#define ROWS_ARGS                                                                        \
    {                                                                                    \
        {"f", 3072, 0}, {"f!", 3072, 0}, {"i", 656, 0},                                  \
        {                                                                                \
            "i", 768, 0                                                                  \
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

/* Sizes of rows that wrap around are multiples of the tile: for others a launch takes
   code without assume-divisible. */
#define PACKED_ARGS                                                                      \
    {                                                                                    \
        {"h", 128 * 192, 0}, {"f", 24 * 128, 0}, {"f!", 128 * 128, 0}, {"i", 128, 0},    \
            {"i", 128, 0},                                                               \
        {                                                                                \
            "i", 192, 0                                                                  \
        }                                                                                \
    }
#define PACKED_SIG "*fp16:16,*i32:16,*fp32:16,i32,i32:16,i32:16,64,64,64"
#define DROPPED_ARGS                                                                     \
    {                                                                                    \
        {"h", 128 * 80, 0}, {"h", 80 * 64, 0}, {"f!", 128 * 64, 0}, {"h!", 64, 0},       \
            {"i", 128, 0}, {"i", 64, 0}, {"i", 80, 0},                                   \
        {                                                                                \
            "x", 0, 0.4f                                                                 \
        }                                                                                \
    }
#define DROPPED_SIG                                                                      \
    "*fp16:16,*fp16:16,*fp32:16,*fp16:16,i32:16,i32:16,i32:16,fp32,64"
#define WIDE_ARGS                                                                        \
    {                                                                                    \
        {"h", 32768, 0}, {"h!", 32768, 0}, {"f!", 50 + 512 + 3 * 64, 0}, {"i", 50, 0},   \
        {                                                                                \
            "i", 3, 0                                                                    \
        }                                                                                \
    }
#define PARTS_ARGS                                                                       \
    {                                                                                    \
        {"f", 64 * 32, 0}, {"f", 32 * 64, 0},                                            \
        {                                                                                \
            "f!", 64 * 64, 0                                                             \
        }                                                                                \
    }
#define PARTS_SIG "*fp32:16,*fp32:16,*fp32:16"
#define WIDE_SIG "*fp16:16,*fp16:16,*fp32:16,i32,i32,32768,512"

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
     ATTENTION_ARGS(160),
     false},
    {"rows", ROWS_SIG, "sm_80", 4, 3, {4, 1, 1}, ROWS_ARGS, false},
    {"atomics", ATOMICS_SIG, "sm_80", 4, 3, {1, 1, 1}, ATOMICS_ARGS, true},
    {"gemm",
     GEMM_SIG("128,128,64"),
     "sm_90a",
     8,
     3,
     {2, 2, 1},
     GEMM_ARGS(240, 192, 480), /* more tiles along k than stages */
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
     ATTENTION_ARGS(160),
     false},
    {"attention",
     ATTENTION_SIG("128,128"), /* in roles */
     "sm_90a",
     8,
     2,
     {4, 1, 1},
     ATTENTION_ARGS(416),
     false},
    {"rows", ROWS_SIG, "sm_90a", 4, 3, {4, 1, 1}, ROWS_ARGS, false},
    {"atomics", ATOMICS_SIG, "sm_90a", 4, 3, {1, 1, 1}, ATOMICS_ARGS, true},
    {"gradients", GRADIENTS_SIG, "sm_90a", 4, 2, {2, 1, 1}, GRADIENTS_ARGS, true},
    {"steps", STEPS_SIG, "sm_90a", 4, 3, {2, 1, 1}, STEPS_ARGS, true},
    {"packed", PACKED_SIG, "sm_90a", 4, 3, {2, 2, 1}, PACKED_ARGS, true},
    {"dropped", DROPPED_SIG, "sm_90a", 4, 3, {2, 1, 1}, DROPPED_ARGS, true},
    {"wide", WIDE_SIG, "sm_90a", 4, 3, {2, 1, 1}, WIDE_ARGS, true},
    {"parts", PARTS_SIG, "sm_90a", 4, 3, {1, 1, 1}, PARTS_ARGS, true},
    {"packed", PACKED_SIG, "cpu", 4, 3, {2, 2, 1}, PACKED_ARGS, true},
    {"gemm", GEMM_SIG("32,32,32"), "cpu", 4, 3, {4, 3, 1}, GEMM_ARGS(112, 96, 160), true},
    {"attention",
     ATTENTION_SIG("32,32"),
     "cpu",
     4,
     2,
     {5, 1, 1},
     ATTENTION_ARGS(160),
     false},
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

/* Passes by name, and whether the code of a kernel is another without them. In memory
   that the processes of all kernels share. */
typedef struct Coverage {
    Names names;
    bool matters[MAX_LIST];
} Coverage;

static Coverage *coverage;
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

static void
note_coverage(const char *pass, bool matters)
{
    int i = 0;
    while (i < coverage->names.n && strcmp(coverage->names.at[i], pass) != 0)
        i++;
    ck_assert_int_lt(i, MAX_LIST);
    snprintf(coverage->names.at[i], sizeof coverage->names.at[i], "%s", pass);
    coverage->names.n += i == coverage->names.n;
    coverage->matters[i] |= matters;
}

/* A message that says which pass must stand where, or that the kernel cannot be compiled;
   never an internal error. */
static bool
is_refusal(const Code *c)
{
    return c->status == SDC_ERROR_SOURCE || c->status == SDC_ERROR_UNSUPPORTED;
}

static Verdict
judge(Test *t, const char *list, bool *matters, char *why, size_t size)
{
    Code c = compile(t->s, list, NULL);
    Verdict v;
    snprintf(why, size, "%s", c.why);
    *matters = !c.bytes || hash_of(&c) != hash_of(&t->whole);
    if (!c.bytes)
        return is_refusal(&c) ? REFUSED : WRONG;
    uint64_t hash = hash_of(&c);
    v = is_seen(t, hash) ? SAME : is_right(t, &c, why, size) ? RIGHT : WRONG;
    if (v == RIGHT && t->nseen < MAX_SEEN)
        t->seen[t->nseen++] = hash;
    code_free(&c);
    return v;
}

/* What becomes of the pass at a place of the list. */
typedef enum Change { WITHOUT, WITHOUT_ANY, LATER, CHANGES } Change;
static const char *const change_names[] = {"without", "without any", "later:"};

/* False: the change is none, or one that another place has had. */
static bool
list_text(const Names *names, int at, Change change, char *to)
{
    const char *pass = names->at[at];
    int same = 0;
    *to = '\0';
    for (int i = 0; i < names->n; i++) {
        bool is_same = strcmp(names->at[i], pass) == 0;
        bool gone = change == WITHOUT ? i == at : change == WITHOUT_ANY && is_same;
        int k = change != LATER ? i : i == at ? i + 1 : i == at + 1 ? at : i;
        if (is_same && i < at && change == WITHOUT_ANY)
            return false;
        same += is_same;
        if (!gone && k < names->n)
            sprintf(to + strlen(to), "%s%s", *to ? "," : "", names->at[k]);
    }
    return change == WITHOUT_ANY ? same > 1 : change != LATER || at + 1 < names->n;
}

static void
try_list(Test *t, int at, Change change)
{
    char list[LIST_TEXT], why[700];
    if (!list_text(&t->names, at, change, list))
        return;
    bool matters;
    Verdict v = judge(t, list, &matters, why, sizeof why);
    t->count[v]++;
    if (change != LATER)
        note_coverage(t->names.at[at], matters);
    if (v == WRONG || getenv("LISTS_VERBOSE"))
        printf("%s %s: %d %s %s: %s%s%.300s\n", t->s->target, t->s->kernel, at,
               change_names[change], t->names.at[at], verdict_names[v],
               v == REFUSED || v == WRONG ? ": " : "",
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

START_TEST(changed_lists_are_refused_or_right)
{
    static Test t;
    open_test(&t, &subjects[_i]);
    for (int i = 0; i < t.names.n; i++)
        for (Change change = 0; change < CHANGES; change++)
            try_list(&t, i, change);
    printf("%-6s %-9s %d warps: %d lists: %d refused, %d the same code, %d right, %d "
           "wrong\n",
           t.s->target, t.s->kernel, t.s->warps,
           t.count[REFUSED] + t.count[SAME] + t.count[RIGHT] + t.count[WRONG],
           t.count[REFUSED], t.count[SAME], t.count[RIGHT], t.count[WRONG]);
    fflush(stdout);
    ck_assert_int_eq(t.count[WRONG], 0);
    ck_assert_int_gt(t.count[REFUSED], 0);
    sdc_context_destroy(ctx);
}
END_TEST

/* ---- waits */

/* Does anything notice that the code is broken? */
static bool
is_noticed(Test *t, char *ptx, char *why, size_t size)
{
    Code broken = t->whole;
    bool right = true;
    broken.bytes = ptx;
    for (int seed = 1; right && seed <= 3; seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        setenv("SIM_SEED", text, 1);
        right = is_right(t, &broken, why, size);
    }
    return !right;
}

/* Each line that waits, fences, arrives or is a barrier dropped. Some lines do not matter
   to a launch: another one does the same, or they stand on a path for clusters or a
   second tile. They must be few. */
START_TEST(waits_that_are_dropped_are_noticed)
{
    static const char *const waits[] = {
        "cp.async.wait_group",      "cp.async.commit_group",
        "wgmma.wait_group",         "wgmma.commit_group",
        "wgmma.fence",              "mbarrier.try_wait",
        "mbarrier.arrive",          "mbarrier.init",
        "fence.proxy.async",        "bar.sync",
        "cp.async.bulk.wait_group", "cp.async.bulk.commit_group"};
    static Test t;
    int n = 0, missed = 0;
    if (strcmp(subjects[_i].target, "cpu") == 0)
        return;
    open_test(&t, &subjects[_i]);
    for (size_t k = 0; k < sizeof waits / sizeof *waits; k++)
        for (int nth = 1;; nth++) {
            const Mutation m = {0, waits[k], nth, DROP, NULL};
            char why[700] = "", *ptx = mutate(t.whole.bytes, &m);
            if (!ptx)
                break;
            bool noticed = is_noticed(&t, ptx, why, sizeof why);
            if (getenv("LISTS_VERBOSE"))
                printf("%s %s: %s, the %dth: %.90s\n", t.s->target, t.s->kernel, waits[k],
                       nth, noticed ? why : "NOT NOTICED");
            missed += !noticed;
            n++;
            free(ptx);
        }
    printf("%-6s %-9s %d warps: %d waits dropped, %d not noticed\n", t.s->target,
           t.s->kernel, t.s->warps, n, missed);
    fflush(stdout);
    ck_assert_int_le(2 * missed, n);
}
END_TEST

/* fuse-forward is for kernels of --fuse, which one function is not. */
START_TEST(every_pass_matters)
{
    int idle = 0;
    for (int i = 0; i < coverage->names.n; i++) {
        const char *pass = coverage->names.at[i];
        if (coverage->matters[i] || strcmp(pass, "fuse-forward") == 0)
            continue;
        printf("no kernel of lists.tk is another without %s\n", pass);
        idle++;
    }
    fflush(stdout);
    ck_assert_int_gt(coverage->names.n, 0);
    ck_assert_int_eq(idle, 0);
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
    coverage = mmap(NULL, sizeof *coverage, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (coverage == MAP_FAILED)
        return 2;
    tcase_add_loop_test(tc, changed_lists_are_refused_or_right, 0, SUBJECTS);
    tcase_add_test(tc, every_pass_matters);
    tcase_add_loop_test(tc, waits_that_are_dropped_are_noticed, 0, SUBJECTS);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}

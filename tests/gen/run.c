/* Runs on the CPU. Every buffer lies in pages of its own between two that cannot be
   touched, at their end or at their beginning; what lies beside it in its pages must stay
   as it was. So a stray access is a signal of the child that runs, or seen afterwards. */
#include "tests/gen/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "codegen/jit_link.h"
#include "ir/text.h"
#include "runtime/rt/sdcrt.h"
#include "tests/interp/interp.h"

static char own_label[RUN_LABEL];
char *run_label = own_label;

/* Of a descriptor: its address, sizes and strides. */
enum { PAGE = 4096, CANARY = 0xa7 };
enum { MAX_SLOTS = PROGRAM_MAX_ARGS * (1 + 2 * PROGRAM_RANK) };

typedef struct Guarded {
    unsigned char *base, *data;
    size_t mapped, bytes;
} Guarded;

static Guarded
guard(const ProgramArg *a, bool at_end, bool aligned)
{
    size_t room = (a->bytes + PAGE - 1) / PAGE * PAGE;
    if (room == 0)
        room = PAGE;
    Guarded g = {.mapped = room + (size_t)(2 * PAGE), .bytes = a->bytes};
    g.base = mmap(NULL, g.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.base == MAP_FAILED || mprotect(g.base + PAGE, room, PROT_READ | PROT_WRITE)) {
        perror("mmap");
        exit(3);
    }
    memset(g.base + PAGE, CANARY, room);
    size_t at = at_end ? room - a->bytes : 0;
    if (aligned)
        at &= ~(size_t)15;
    g.data = g.base + PAGE + at;
    memcpy(g.data, a->data, a->bytes);
    return g;
}

static bool
untouched(const Guarded *g)
{
    const unsigned char *end = g->base + g->mapped - PAGE;
    for (const unsigned char *p = g->base + PAGE; p < g->data; p++)
        if (*p != CANARY)
            return false;
    for (const unsigned char *p = g->data + g->bytes; p < end; p++)
        if (*p != CANARY)
            return false;
    return true;
}

void
arg_of(const ProgramArg *a, void *data, SdcDesc *desc, SdcArg *out)
{
    SdcDtype t = sdc_dtype_by_name(a->dtype, strlen(a->dtype));
    if (a->kind == ARG_DESC) {
        *desc = (SdcDesc){.dtype = t, .rank = a->rank, .base = data};
        for (int i = 0; i < a->rank; i++) {
            desc->shape[i] = a->shape[i];
            desc->strides[i] = a->strides[i];
            desc->block[i] = a->block[i];
        }
        *out = a->nan ? sdc_desc_nan(desc) : sdc_desc(desc);
    } else if (a->kind == ARG_BUFFER)
        *out = sdc_ptr(t, data);
    else if (a->kind == ARG_INT)
        *out = sdc_int_of(t, a->i);
    else
        *out = sdc_float_of(t, a->f);
}

static bool
failed(Report *rep, SdcContext *cx, SdcStatus st)
{
    if (st == SDC_OK)
        return false;
    rep->what = st == SDC_ERROR_INTERNAL ? FINDING_INTERNAL : FINDING_REFUSED;
    snprintf(rep->label, sizeof rep->label, "%s", run_label);
    snprintf(rep->text, sizeof rep->text, "%s: %.1000s", sdc_status_name(st),
             sdc_error(cx));
    return true;
}

static void
take_outputs(const Program *p, const Guarded *g, Outputs *out)
{
    for (int i = 0; i < p->narg; i++) {
        const ProgramArg *a = &p->arg[i];
        if (!a->is_output)
            continue;
        out->of[i] = malloc(a->bytes + 1);
        memcpy(out->of[i], g[i].data, a->bytes);
    }
}

static void
arrays_new(const Program *p, bool aligned, Guarded *g)
{
    for (int i = 0; i < p->narg; i++)
        if (p->arg[i].data)
            g[i] = guard(&p->arg[i], (p->seed & 1) == 0, p->aligned || aligned);
}

/* Compares what a run has left, and frees it. */
static bool
arrays_done(const Program *p, Guarded *g, bool ran, const Outputs *want, Report *rep)
{
    Outputs got = {0};
    bool ok = ran;
    take_outputs(p, g, &got);
    for (int i = 0; i < p->narg && ok; i++)
        if (p->arg[i].data &&
            (!untouched(&g[i]) || (!p->arg[i].is_output &&
                                   memcmp(g[i].data, p->arg[i].data, g[i].bytes) != 0))) {
            ok = false;
            snprintf(rep->text, sizeof rep->text, "a store beside an output, at %s",
                     p->arg[i].name);
            rep->what = FINDING_DIFFERS;
        }
    if (ok && !outputs_equal(p, want, &got, rep->text, sizeof rep->text)) {
        rep->what = FINDING_DIFFERS;
        ok = false;
    }
    if (!ok)
        snprintf(rep->label, sizeof rep->label, "%s", run_label);
    outputs_free(&got);
    for (int i = 0; i < p->narg; i++)
        if (g[i].base)
            munmap(g[i].base, g[i].mapped);
    return ok;
}

static bool
launch(const Program *p, SdcContext *cx, SdcFunction *fn, const Outputs *want,
       Report *rep)
{
    Guarded g[PROGRAM_MAX_ARGS] = {0};
    SdcArg arg[PROGRAM_MAX_ARGS];
    SdcDesc desc[PROGRAM_MAX_ARGS];
    arrays_new(p, false, g);
    for (int i = 0; i < p->narg; i++)
        arg_of(&p->arg[i], g[i].data, &desc[i], &arg[i]);
    SdcGrid grid = sdc_grid(p->grid[0], p->grid[1], p->grid[2]);
    bool ran = !failed(rep, cx, sdc_launch(fn, grid, arg, p->narg, NULL));
    return arrays_done(p, g, ran, want, rep);
}

/* The same with code that was made for the signature below. */
static bool
run_entry(const Program *p, SdcrtCpuEntry *entry, int64_t scratch, const Outputs *want,
          Report *rep)
{
    Guarded g[PROGRAM_MAX_ARGS] = {0};
    uint64_t slot[MAX_SLOTS];
    int n = 0;
    arrays_new(p, true, g);
    for (int i = 0; i < p->narg; i++) {
        const ProgramArg *a = &p->arg[i];
        float f = (float)a->f;
        if (a->kind == ARG_INT && a->i == 1)
            continue;
        slot[n] = a->kind == ARG_INT ? (uint64_t)a->i : (uint64_t)(uintptr_t)g[i].data;
        if (a->kind == ARG_FLOAT) {
            slot[n] = 0;
            memcpy(&slot[n], &f, sizeof f);
        }
        n++;
        for (int d = 0; d < a->rank; d++)
            slot[n++] = (uint64_t)a->shape[d];
        for (int d = 0; d < a->rank; d++)
            slot[n++] = (uint64_t)a->strides[d];
    }
    SdcGrid grid = {p->grid[0], p->grid[1], p->grid[2]};
    bool ran = sdcrt_run_range(entry, slot, grid, scratch, 0, sdcrt_grid_size(grid)) == 0;
    return arrays_done(p, g, ran, want, rep);
}

static void
signature(const Program *p, char *out, size_t size)
{
    size_t n = 0;
    for (int i = 0; i < p->narg; i++) {
        const ProgramArg *a = &p->arg[i];
        const char *comma = i ? "," : "";
        if (a->kind == ARG_BUFFER)
            n += (size_t)snprintf(out + n, size - n, "%s*%s:16", comma, a->dtype);
        else if (a->kind == ARG_DESC) {
            n += (size_t)snprintf(out + n, size - n, "%stensordesc<%s[", comma, a->dtype);
            for (int d = 0; d < a->rank; d++)
                n += (size_t)snprintf(out + n, size - n, "%s%d", d ? "," : "",
                                      a->block[d]);
            n += (size_t)snprintf(out + n, size - n, "]%s>", a->nan ? ",nan" : "");
        } else if (a->kind == ARG_INT && a->i == 1)
            n += (size_t)snprintf(out + n, size - n, "%s1", comma);
        else
            n += (size_t)snprintf(out + n, size - n, "%s%s%s", comma, a->dtype,
                                  a->kind == ARG_INT && a->i % 16 == 0 ? ":16" : "");
    }
}

static bool
compiled(Runner *r, SdcModule *m, const Program *p, SdcCompileOptions *o, SdcOutput **out,
         Report *rep)
{
    char sig[1024] = "";
    signature(p, sig, sizeof sig);
    o->kernel = p->kernel;
    o->signature = sig;
    return !failed(rep, r->one, sdc_compile(m, o, out));
}

char *
tile_ir(Runner *r, SdcModule *m, const Program *p, const char *passes, Report *rep)
{
    SdcCompileOptions o = {.emit = SDC_EMIT_TIR,
                           .passes = passes,
                           .verify_each = passes != NULL,
                           .roundtrip = passes != NULL};
    SdcOutput *out;
    if (!compiled(r, m, p, &o, &out, rep))
        return NULL;
    char *text = strdup(sdc_output_data(out, NULL));
    sdc_output_destroy(out);
    return text;
}

/* Reads the text and interprets it; apart, for setjmp and what it must not clobber. */
static int
interpret(Session *s, const Program *p, const Source *src, InterpArg *arg, int n,
          uint64_t undefined, char *message, int size)
{
    if (setjmp(s->fail.env) != 0)
        return -1;
    s->fail.set = 1;
    Module *m = module_read(s, src);
    int64_t grid[3] = {p->grid[0], p->grid[1], p->grid[2]};
    InterpOptions o = {.max_steps = (uint64_t)1 << 28, .undefined = undefined};
    if (!m || m->nfunc != 1)
        return -1;
    return (int)interp_run(m->funcs[0], arg, n, grid, &o, message, size);
}

static int
oracle_fill(const Program *p, const char *tir, size_t size, unsigned char **of,
            uint64_t undefined, char *message, int message_size)
{
    InterpArg arg[MAX_SLOTS];
    int n = 0;
    for (int i = 0; i < p->narg; i++) {
        const ProgramArg *a = &p->arg[i];
        if (a->kind == ARG_INT && a->i == 1)
            continue;
        arg[n] = (InterpArg){.i = a->i, .f = a->f};
        if (a->data) {
            of[i] = aligned_alloc(16, (a->bytes + 31) / 16 * 16);
            memcpy(of[i], a->data, a->bytes);
            arg[n].data = of[i];
            arg[n].bytes = a->bytes;
        }
        n++;
        for (int d = 0; d < a->rank; d++)
            arg[n++] = (InterpArg){.i = a->shape[d]};
        for (int d = 0; d < a->rank; d++)
            arg[n++] = (InterpArg){.i = a->strides[d]};
    }
    Session *s = session_new((size_t)256 << 20);
    Source src = {.path = "k.tir", .text = tir, .size = size};
    int status = interpret(s, p, &src, arg, n, undefined, message, message_size);
    session_free(s);
    return status;
}

bool
oracle_run(const Program *p, const char *tir, size_t size, Outputs *out, Report *rep)
{
    char message[300] = "";
    int status = oracle_fill(p, tir, size, out->of, 0, message, sizeof message);
    if (status == INTERP_OK)
        status = oracle_fill(p, tir, size, out->other, 1, message, sizeof message);
    if (status == INTERP_OK)
        return true;
    rep->what = FINDING_ORACLE;
    snprintf(rep->label, sizeof rep->label, "%s", run_label);
    snprintf(rep->text, sizeof rep->text, "interpreter, status %d: %s", status, message);
    outputs_free(out);
    return false;
}

void
random_passes(uint64_t seed, char *out, int size)
{
    static const char *const free_ones[] = {"canon", "cse", "dce", "licm",
                                            "fold-rand-compare"};
    static const char *const masked[] = {"fold-bounds",
                                         "peel",
                                         "fuse-forward",
                                         "scalarize-induction",
                                         "assume-divisible",
                                         "fold-bounds",
                                         "peel",
                                         "canon",
                                         "cse",
                                         "dce",
                                         "licm"};
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 12345;
    int count = 1 + (int)((x >> 40) % 9), n = 0;
    bool is_masked = false;
    for (int i = 0; i < count; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        uint32_t k = (uint32_t)(x >> 33);
        const char *name;
        if (!is_masked && k % 3 == 0) {
            name = "lower-block-ptr";
            is_masked = true;
        } else if (!is_masked) {
            name = free_ones[k / 3 % 5];
        } else {
            name = masked[k / 3 % 11];
        }
        n += snprintf(out + n, (size_t)(size - n), "%s%s", i ? "," : "", name);
    }
}

static bool
equal_after(Runner *r, SdcModule *m, const Program *p, const char *passes,
            const Outputs *want, Report *rep)
{
    char *tir = tile_ir(r, m, p, passes, rep);
    if (!tir)
        return false;
    Outputs got = {0};
    bool ok = oracle_run(p, tir, strlen(tir), &got, rep);
    free(tir);
    if (ok && !outputs_equal(p, want, &got, rep->text, sizeof rep->text)) {
        rep->what = FINDING_DIFFERS;
        snprintf(rep->label, sizeof rep->label, "%s", run_label);
        ok = false;
    }
    outputs_free(&got);
    return ok;
}

/* After a random list; when that is wrong, the shortest beginning of it that is. */
static bool
passes_check(Runner *r, SdcModule *m, const Program *p, const Outputs *want, Report *rep)
{
    char list[PASS_LIST];
    random_passes(p->seed, list, sizeof list);
    snprintf(run_label, RUN_LABEL, "passes=%s", list);
    if (equal_after(r, m, p, list, want, rep))
        return true;
    for (char *c = list; (c = strchr(c, ',')); c++) {
        Report less = {0};
        *c = 0;
        snprintf(run_label, RUN_LABEL, "passes=%s", list);
        if (!equal_after(r, m, p, list, want, &less)) {
            *rep = less;
            break;
        }
        *c = ',';
    }
    return false;
}

/* Code after a list of passes: masks and loops alone, or with others in front. Its entry
   is called as libsdcrt does. */
static bool
object_check(Runner *r, SdcModule *m, const Program *p, const char *passes,
             const Outputs *want, Report *rep)
{
    snprintf(run_label, RUN_LABEL, "code after passes=%s", passes);
    SdcCompileOptions o = {.emit = SDC_EMIT_OBJ, .passes = passes, .cpu = "native"};
    SdcOutput *out;
    if (!compiled(r, m, p, &o, &out, rep))
        return false;
    int nmeta;
    const SdcrtMeta *meta = sdc_output_meta(out, &nmeta);
    size_t size;
    const void *bytes = sdc_output_data(out, &size);
    char why[256] = "";
    FailPoint memory = {.set = 1};
    void *volatile at = NULL;
    Loaded *volatile image = NULL;
    if (setjmp(memory.env) == 0) {
        void *entry;
        image = codegen_load_object(&memory, bytes, size, meta->symbol, &entry, why,
                                    sizeof why);
        at = image ? entry : NULL;
    }
    bool ok = at != NULL;
    if (ok) {
        SdcrtCpuEntry *entry;
        memcpy(&entry, (void *)&at, sizeof entry);
        ok = run_entry(p, entry, meta->scratch_bytes, want, rep);
    } else {
        rep->what = FINDING_INTERNAL;
        snprintf(rep->text, sizeof rep->text, "%s", why);
    }
    if (image)
        codegen_unload(image);
    sdc_output_destroy(out);
    return ok;
}

static bool
plain_check(Runner *r, SdcModule *m, const Program *p, const Outputs *want, Report *rep)
{
    char list[PASS_LIST];
    static const char masks[] = ",lower-block-ptr", last[] = ",lower-cpu";
    random_passes(p->seed + 1, list, sizeof list - sizeof masks - sizeof last);
    if (!strstr(list, "lower-block-ptr"))
        strcat(list, masks);
    strcat(list, last);
    return object_check(r, m, p, "lower-block-ptr,lower-cpu", want, rep) &&
           object_check(r, m, p, list, want, rep);
}

static bool
cpu_check(SdcContext *cx, const Program *p, const char *label, const Outputs *want,
          Report *rep)
{
    snprintf(run_label, RUN_LABEL, "%s", label);
    SdcModule *m = NULL;
    SdcFunction *fn = NULL;
    bool ok = !failed(rep, cx,
                      sdc_module_load_text(cx, "k.tk", p->text, strlen(p->text),
                                           SDC_LANG_TRITON, &m)) &&
              !failed(rep, cx, sdc_function_get(m, p->kernel, NULL, 0, &fn)) &&
              launch(p, cx, fn, want, rep);
    sdc_module_unload(m);
    return ok;
}

static bool
ptx_check(Runner *r, SdcModule *m, const Program *p, Report *rep)
{
    snprintf(run_label, RUN_LABEL, "%s", r->target);
    char warps[32], stages[32];
    snprintf(warps, sizeof warps, "num_warps=%d", p->num_warps);
    snprintf(stages, sizeof stages, "num_stages=%d", p->num_stages);
    const char *bind[] = {warps, stages};
    SdcCompileOptions o = {.target = r->target,
                           .bind = bind,
                           .nbind = 2,
                           .ptxas = r->ptxas,
                           .emit = r->ptxas ? SDC_EMIT_CUBIN : SDC_EMIT_ASM};
    SdcOutput *out;
    if (!compiled(r, m, p, &o, &out, rep))
        return false;
    sdc_output_destroy(out);
    return true;
}

int
run_of_label(const char *label)
{
    return !strncmp(label, "passes", 6)    ? RUN_PASSES
           : !strncmp(label, "threads", 7) ? RUN_THREADS
           : !strncmp(label, "code", 4)    ? RUN_PLAIN
           : !strncmp(label, "cpu", 3)     ? RUN_CPU
           : !strncmp(label, "cuda", 4)    ? RUN_CUDA
           : !strncmp(label, "sm_", 3)     ? RUN_PTX
                                           : 0;
}

bool
program_expected(Runner *r, const Program *p, Outputs *out, Report *rep)
{
    SdcModule *m = NULL;
    *rep = (Report){0};
    if (failed(rep, r->one,
               sdc_module_load_text(r->one, "k.tk", p->text, strlen(p->text),
                                    SDC_LANG_TRITON, &m)))
        return false;
    char *tir = tile_ir(r, m, p, NULL, rep);
    bool ok = tir && oracle_run(p, tir, strlen(tir), out, rep);
    free(tir);
    sdc_module_unload(m);
    return ok;
}

void
program_check(Runner *r, const Program *p, Report *rep)
{
    *rep = (Report){0};
    snprintf(run_label, RUN_LABEL, "front end");
    SdcModule *m = NULL;
    if (r->pretend) {
        rep->what = strstr(p->text, r->pretend) ? FINDING_DIFFERS : FINDING_NONE;
        return;
    }
    if (failed(rep, r->one,
               sdc_module_load_text(r->one, "k.tk", p->text, strlen(p->text),
                                    SDC_LANG_TRITON, &m)))
        return;
    Outputs want = {0};
    char *tir = NULL;
    bool rare = p->seed % (uint64_t)r->often == 0;
    if (r->what == RUN_PTX) {
        ptx_check(r, m, p, rep);
    } else if ((tir = tile_ir(r, m, p, NULL, rep))) {
        snprintf(run_label, RUN_LABEL, "interpreter");
        bool ok = oracle_run(p, tir, strlen(tir), &want, rep);
        if (ok && r->what & RUN_CPU)
            ok = cpu_check(r->one, p, "cpu", &want, rep);
        if (ok && r->what & RUN_PASSES)
            ok = passes_check(r, m, p, &want, rep);
        if (ok && r->what & RUN_THREADS && rare)
            ok = cpu_check(r->many, p, "threads=3", &want, rep);
        if (ok && r->what & RUN_PLAIN && rare)
            ok = plain_check(r, m, p, &want, rep);
        if (ok && r->what & RUN_PTX)
            ok = ptx_check(r, m, p, rep);
        if (ok && r->what & RUN_CUDA)
            device_check(r, p, &want, rep);
    }
    free(tir);
    outputs_free(&want);
    sdc_module_unload(m);
}

void
runner_open(Runner *r)
{
    SdcContextOptions one = {.threads = 1}, many = {.threads = 3};
    if (sdc_context_create(&one, &r->one) || sdc_context_create(&many, &r->many)) {
        fprintf(stderr, "gen: no context\n");
        exit(2);
    }
    if (r->often < 1)
        r->often = 8;
}

void
runner_close(Runner *r)
{
    device_close(r);
    sdc_context_destroy(r->one);
    sdc_context_destroy(r->many);
}

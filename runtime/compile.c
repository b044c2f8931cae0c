/* The whole compiler on one screen:

       source --front_load--> syntax tree --front_spec_parse, front_lower--> tile IR
              --passes_run--> tile IR --codegen_run--> bytes + metadata

   Textual tile IR enters in the middle, and every stage can be asked for as text. A
   kernel that takes more shared memory than a GPU has goes through all of it up to there
   again, with less (passes/budget.h). */
#include "runtime/compile.h"

#include "ir/base/util.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/access/traffic.h"
#include "passes/forms.h"
#include "passes/schedule/explain.h"

#include <string.h>

enum { MAX_PASSES = 4096 };

static bool
fail(Session *s, const char *text, const char *what)
{
    diag_error(&s->diag, (Loc){0}, text, what);
    return false;
}

/* The text of the syntax tree, or NULL. */
static const char *
print_ast(Session *s, const FrontModule *m)
{
    Buf b;
    buf_init(&b, &s->perm);
    buf_str(&b, "");
    front_print_ast(m, &b);
    return b.s;
}

static int64_t
largest_tile(const Region *r)
{
    int64_t most = 1;
    for (const Op *op = r->first; op; op = op->next) {
        for (int i = 0; i < op->nresult; i++) {
            const Type *t = op->results[i].type;
            int64_t n = type_is_tile(t) ? type_numel(t) : 1;
            most = n > most ? n : most;
        }
        for (int i = 0; i < op->nregion; i++) {
            int64_t n = largest_tile(op->regions[i]);
            most = n > most ? n : most;
        }
    }
    return most;
}

static bool
tiles_fit(Session *s, const CompileJob *job, const Func *f)
{
    if (!job->tile_most || largest_tile(f->body) <= job->tile_most)
        return true;
    *job->tile_refused = true;
    fail(s, "a tile is larger than what is guessed%s", "");
    return false;
}

FrontModule *
compile_load(Session *s, const CompileJob *job)
{
    FrontOptions front = job->front;
    front.target = job->opt.target;
    FrontModule *fm = front_load(s, &job->src, &front);
    return fm && diag_ok(&s->diag) ? fm : NULL;
}

Module *
compile_lower(Session *s, FrontModule *fm, const CompileJob *job, CompileResult *out)
{
    double start = seconds_now();
    const char *kernel = compile_kernel(s, fm, job->opt.kernel);
    s->fail.kernel = kernel;
    if (!kernel || !compile_spec(s, fm, job, kernel, &out->spec) ||
        !front_params(fm, kernel, &out->params, &out->nparam))
        return NULL;
    Module *m = module_new(s);
    Func *f = front_lower(fm, kernel, &out->spec, m);
    if (!job->checks) /* of many files, each asks for some */
        front_unused_defines(fm);
    out->times.lower = seconds_now() - start;
    if (!f || !diag_ok(&s->diag))
        return NULL;
    if (!module_verify(m)) {
        diag_note(&s->diag, (Loc){0}, "found by the verifier after the frontend");
        bug(&s->fail, "the frontend made invalid tile IR");
    }
    return tiles_fit(s, job, f) ? m : NULL;
}

/* Source to tile IR. NULL after errors, or when only the syntax tree was wanted. */
static Module *
lower(Session *s, const CompileJob *job, CompileResult *out)
{
    double start = seconds_now();
    FrontModule *fm = compile_load(s, job);
    out->times.load = seconds_now() - start;
    if (!fm)
        return NULL;
    if (job->opt.emit == SDC_EMIT_AST) {
        out->bytes = print_ast(s, fm);
        out->size = strlen(out->bytes);
        return NULL;
    }
    return compile_lower(s, fm, job, out);
}

static Module *
read_tir(Session *s, const CompileJob *job, CompileResult *out)
{
    if (job->opt.emit == SDC_EMIT_AST) {
        fail(s, "tile IR has no syntax tree%s", "");
        return NULL;
    }
    double start = seconds_now();
    s->diag.stage = "syntax";
    Module *m = module_read(s, &job->src);
    out->times.lower = seconds_now() - start;
    if (!m || !diag_ok(&s->diag))
        return NULL;
    if (!job->opt.kernel)
        return m;
    Func *f = module_func(m, job->opt.kernel);
    if (!f) {
        fail(s, "no kernel is named '%s' in this tile IR", job->opt.kernel);
        return NULL;
    }
    m->funcs[0] = f;
    m->nfunc = 1;
    return m;
}

/* Once, before tiles are taken apart for the target. */
static void
explain(Session *s, const Module *m, CompileResult *out)
{
    Buf b;
    if (out->explain)
        return;
    buf_init(&b, &s->perm);
    buf_str(&b, "");
    for (int i = 0; i < m->nfunc; i++)
        traffic_print(&b, m->funcs[i]);
    out->explain = b.s;
}

/* What the passes decided, where they have run to the end. */
static void
explain_schedule(Session *s, const Module *m, const TargetInfo *target,
                 const Budget *budgets, CompileResult *out)
{
    Buf b;
    buf_init(&b, &s->perm);
    buf_str(&b, out->explain);
    for (int i = 0; i < m->nfunc && target->gpu; i++) {
        if (!(m->funcs[i]->props & P_LAYOUT))
            continue;
        schedule_print(&b, m->funcs[i]);
        budget_print(&b, &budgets[i], target->shared_bytes);
        schedule_print_lines(&b, m->funcs[i]);
    }
    out->explain = b.s;
}

/* Does the caller give a list of its own? */
static bool
names_passes(const SdcCompileOptions *o)
{
    return o->passes && strcmp(o->passes, "default") != 0;
}

/* PASS_COUNT and an error when nothing has this name. */
static PassId
pass_named(Session *s, const char *name)
{
    PassId id = pass_by_name(name, strlen(name));
    if (id == PASS_COUNT)
        fail(s, "no pass is named '%s'; 'sdc doctor --print-passes' lists them", name);
    return id;
}

/* Ends the list with the first pass of the name. */
static bool
stop_after(Session *s, const char *name, const PassId *list, int *n)
{
    PassId last = pass_named(s, name);
    for (int i = 0; i < *n && last != PASS_COUNT; i++)
        if (list[i] == last) {
            *n = i + 1;
            return true;
        }
    return last != PASS_COUNT && fail(s, "pass '%s' is not in the list", name);
}

/* The passes that were asked for; *n is 0 for the tile IR of the frontend. */
static bool
choose_passes(Session *s, const SdcCompileOptions *o, const TargetInfo *target,
              const PassId **list, int *n)
{
    *n = 0;
    if (names_passes(o)) {
        PassId *parsed;
        *n = passes_parse(s, o->passes, &parsed);
        if (*n < 0)
            return false;
        *list = parsed;
    } else if (o->passes || o->stop_after || o->emit != SDC_EMIT_TIR) {
        *list = pipeline_for(target, n);
    }
    return !o->stop_after || stop_after(s, o->stop_after, *list, n);
}

static bool
run_passes(Session *s, Module *m, const CompileJob *job, const TargetInfo *target,
           Budget *budgets, CompileResult *out)
{
    const SdcCompileOptions *o = &job->opt;
    bool named = names_passes(o);
    int n;
    const PassId *list = NULL;
    if (!choose_passes(s, o, target, &list, &n))
        return false;
    /* What becomes code, or would; passes that are named may be for looking at. */
    if ((!named || o->emit != SDC_EMIT_TIR) && list && !module_fits(m, target, o->target))
        return false;
    PassCx cx = {
        .s = s,
        .target = *target,
        .verify_each = o->verify_each,
        .roundtrip = o->roundtrip,
        .opt_limit = o->has_opt_limit ? o->opt_limit : -1,
        .dump_after = o->dump ? o->dump_after : NULL,
        .dump = o->dump,
        .dump_user = o->dump_user,
        .times = arena_array(&s->perm, PassTime, min_i64(n, MAX_PASSES) + 1),
        .time_cap = (int)min_i64(n, MAX_PASSES),
        .budgets = budgets,
    };
    if (o->dump_after && strcmp(o->dump_after, "all") != 0) {
        PassId id = pass_named(s, o->dump_after);
        if (id == PASS_COUNT)
            return false;
        if (cx.dump_after) /* not an alias */
            cx.dump_after = pass_info[id].name;
    }
    double start = seconds_now();
    out->times.pass = cx.times;
    s->diag.stage = "target";
    /* One by one, so that after a jump out of a pass its place in the list is known. */
    bool ok = true;
    for (int i = 0; ok && i < n && (cx.opt_limit < 0 || i < cx.opt_limit); i++) {
        PassCx one = cx;
        one.opt_limit = -1;
        out->running = s->fail.stage = pass_info[list[i]].name;
        if (o->explain && pass_info[list[i]].makes & (P_LAYOUT | P_CPU))
            explain(s, m, out);
        ok = passes_run(m, &one, &list[i], 1);
        cx.ntime = out->times.npass = one.ntime;
    }
    out->times.passes = seconds_now() - start;
    if (ok && o->explain) {
        explain(s, m, out);
        explain_schedule(s, m, target, budgets, out);
    }
    if (ok)
        out->running = NULL;
    return ok;
}

static bool
generate(Session *s, Module *m, const CompileJob *job, const TargetInfo *target,
         CompileResult *out)
{
    static const EmitKind kind[] = {
        [SDC_EMIT_OBJ] = EMIT_OBJ,
        [SDC_EMIT_ASM] = EMIT_ASM,
        [SDC_EMIT_LLVM] = EMIT_LLVM,
    };
    CodegenOptions cg = {
        .target = job->opt.target,
        .cpu = job->opt.cpu,
        .opt = 3,
        .emit = job->bitcode ? EMIT_BITCODE : kind[job->opt.emit],
        .lineinfo = job->opt.lineinfo,
        .folds = job->folds,
    };
    CodegenOut got = {0};
    s->fail.stage = "codegen";
    s->diag.stage = "target";
    double start = seconds_now();
    if (!module_fits(m, target, job->opt.target) || !forms_final(m, target))
        return false;
    bool ok = codegen_run(m, &cg, &got);
    out->times.codegen = seconds_now() - start;
    out->times.llvm_opt = got.opt_seconds;
    out->times.llvm_emit = got.emit_seconds;
    out->bytes = got.bytes;
    out->size = got.size;
    out->meta = got.meta;
    out->nmeta = got.nmeta;
    for (int i = 0; ok && i < got.nmeta; i++)
        ok = meta_sources(s, &got.meta[i], &out->spec, out->params, out->nparam);
    return ok && diag_ok(&s->diag);
}

/* This machine's vectors, when code is for it alone. */
static int
vector_bytes(const char *cpu, const TargetInfo *target)
{
#ifdef __x86_64__
    bool native = cpu && strcmp(cpu, "native") == 0;
    if (!target->gpu && native && __builtin_cpu_supports("avx512vl"))
        return 64;
#endif
    (void)cpu;
    return target->vector_bytes;
}

/* What the functions of a module do without. */
typedef struct Less {
    Budget *of; /* NULL before the first time */
    int n;
} Less;

/* To tile IR after the passes; *out_m NULL: only the syntax tree was wanted. False after
   errors, and when it is to be done once more, with less. */
static bool
to_passed(Session *s, const CompileJob *job, const TargetInfo *target, Less *less,
          Module **out_m, CompileResult *out)
{
    Module *m = *out_m = job->is_tir ? read_tir(s, job, out) : lower(s, job, out);
    if (!m)
        return diag_ok(&s->diag);
    for (int i = 0; i < m->nfunc && !target->gpu; i++)
        m->funcs[i]->check |= job->check;
    if (m->nfunc) {
        s->fail.kernel = m->funcs[0]->name;
        s->fail.line = m->funcs[0]->loc.line;
    }
    if (!less->of) {
        if (job->pre_pass)
            job->pre_pass(m, job->pre_pass_user);
        *less = (Less){arena_array(&s->perm, Budget, m->nfunc + 1), m->nfunc};
    }
    return run_passes(s, m, job, target, less->of, out);
}

static bool
is_again(Less *less)
{
    bool any = false;
    for (int i = 0; i < less->n; i++)
        any |= budget_again(&less->of[i]);
    return any;
}

bool
compile_run(Session *s, const CompileJob *job, CompileResult *out)
{
    double start = seconds_now();
    TargetInfo target;
    if (!target_info(job->opt.target, &target)) {
        diag_error(&s->diag, (Loc){0}, "no target is named '%s'; targets: %s",
                   job->opt.target, target_names());
        return false;
    }
    target.vector_bytes = vector_bytes(job->opt.cpu, &target);
    target.tma &= job->maps != MAPS_NONE;
    target.no_tma_store = job->maps != MAPS_ANY;
    target.folds = job->folds;
    target.once = job->once;
    if (target.gpu && job->opt.emit == SDC_EMIT_OBJ)
        return fail(s, "target '%s' has no object code: emit ptx", job->opt.target);
    s->fail.stage = job->is_tir ? "reader" : "frontend";
    s->fail.path = job->src.path;
    s->fail.kernel = job->opt.kernel;
    Less less = {0};
    Module *m;
    Diag before = s->diag;
    bool ok = to_passed(s, job, &target, &less, &m, out);
    while (!ok && is_again(&less)) {
        diag_rewind(&s->diag, &before);
        out->explain = NULL;
        ok = to_passed(s, job, &target, &less, &m, out);
    }
    if (!ok || !m)
        return ok;
    if (job->opt.emit == SDC_EMIT_TIR) {
        Buf b;
        buf_init(&b, &s->perm);
        buf_str(&b, "");
        module_print(&b, m);
        out->bytes = b.s;
        out->size = b.n;
    } else if (!generate(s, m, job, &target, out)) {
        return false;
    }
    out->times.total = seconds_now() - start;
    return true;
}

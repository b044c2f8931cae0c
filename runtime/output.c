/* sdc_compile: one specialization to bytes; and the reproducer of an internal error. */
#include "runtime/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct SdcOutput {
    char *bytes;
    size_t size;
    char *times, *explain;
    SdcrtMeta *meta;
    int nmeta;
};

typedef struct Attempt {
    const CompileJob *job;
    CompileResult result;
    UseFn *use;
    void *arg;
} Attempt;

/* An error in the source may be one of the arguments: of another type than the kernel's
   author had in mind, or an integer that is a constant in this launch alone. */
static void
note_arguments(Session *s, const char *signature)
{
    bool one = false;
    for (const char *p = signature; (p = strstr(p, "=1")) != NULL; p += 2)
        one |= p[2] == ',' || p[2] == '\0';
    diag_note(&s->diag, (Loc){0}, "the arguments of this launch are '%s'%s", signature,
              one ? "; an integer equal to 1 is a constant, unless do_not_specialize "
                    "names it"
                  : "");
}

static SdcStatus
attempt_call(Session *s, void *arg)
{
    Attempt *a = arg;
    if (!compile_run(s, a->job, &a->result)) {
        if (diag_ok(&s->diag))
            bug(&s->fail, "a stage failed without a message");
        if (a->job->guessed)
            diag_note(&s->diag, (Loc){0},
                      "the signature is guessed; give the one that is meant: -k %s "
                      "-s '%s'",
                      a->job->opt.kernel, a->job->guessed);
        const DiagItem *first = s->diag.first;
        if (a->job->launched && *a->job->opt.signature && first && first->loc.src)
            note_arguments(s, a->job->opt.signature);
        return SDC_OK; /* the messages decide */
    }
    return a->use(s, &a->result, a->arg);
}

static SdcStatus
keep_text(Session *s, CompileResult *r, void *arg)
{
    (void)s;
    text_set(arg, r->bytes);
    return SDC_OK;
}

static const char *
emit_name(SdcEmit e)
{
    switch (e) {
    case SDC_EMIT_OBJ: return "obj";
    case SDC_EMIT_ASM: return "asm";
    case SDC_EMIT_LLVM: return "llvm";
    case SDC_EMIT_TIR: return "tir";
    case SDC_EMIT_AST: return "ast";
    case SDC_EMIT_CUBIN: return "ptx";
    }
    return "obj";
}

/* Compiles again, up to the pass that failed, and prints what it was given: a test that
   fails in the same way. When the frontend failed it is the source with its command. */
static void
reproduce(SdcContext *cx, const Attempt *failed)
{
    CompileJob job = *failed->job;
    Attempt again = { .job = &job, .use = keep_text };
    char *tir = NULL;
    again.arg = &tir;
    const char *passes = failed->result.running;
    job.opt.emit = SDC_EMIT_TIR;
    job.opt.passes = job.opt.passes ? job.opt.passes : "default";
    job.opt.has_opt_limit = 1;
    job.opt.opt_limit = failed->result.times.npass;
    job.opt.dump = NULL;
    job.opt.verify_each = job.opt.roundtrip = 0;

    Report *r = context_report(cx);
    char *error = r && r->error ? strdup(r->error) : NULL;
    bool have = failed->result.times.pass && /* it got as far as the passes */
                context_call(cx, attempt_call, &again) == SDC_OK && tir;
    if (!r || !error) {
        free(error);
        free(tir);
        return;
    }
    free(r->error); /* the second attempt may have had its own say */
    r->error = error;
    const char *kernel = failed->job->opt.kernel, *sig = failed->job->opt.signature;
    char *first = NULL;
    int n;
    if (have)
        n = asprintf(
            &first, "// RUN: %%sdc compile %%s --target=%s --passes=%s --emit=%s\n",
            job.opt.target, passes ? passes : "", emit_name(failed->job->opt.emit));
    else
        n = asprintf(
            &first, "%s RUN: %%sdc compile %%s --target=%s --emit=%s%s%s%s%s%s\n",
            failed->job->is_tir ? "//" : "#", job.opt.target,
            emit_name(failed->job->opt.emit), kernel ? " -k " : "", kernel ? kernel : "",
            sig ? " -s '" : "", sig ? sig : "", sig ? "'" : "");
    char *text = NULL;
    if (n >= 0 &&
        asprintf(&text, "%s%s", first, have ? tir : failed->job->src.text) >= 0) {
        free(r->reproducer);
        r->reproducer = text;
    }
    free(first);
    free(tir);
}

SdcStatus
compile_call(SdcContext *cx, const CompileJob *job, UseFn *use, void *arg)
{
    Attempt a = { .job = job, .use = use, .arg = arg };
    SdcStatus status = context_call(cx, attempt_call, &a);
    if (status == SDC_ERROR_INTERNAL)
        reproduce(cx, &a);
    return status;
}

int
sdc_lost_compiles(int64_t *bytes)
{
    int64_t unused;
    return codegen_lost(bytes ? bytes : &unused);
}

SdcOutput *
output_new(const void *bytes, size_t size)
{
    SdcOutput *out = calloc(1, sizeof *out);
    char *copy = malloc(size + 1);
    if (!out || !copy) {
        free(out);
        free(copy);
        return NULL;
    }
    memcpy(copy, bytes, size);
    copy[size] = '\0';
    out->bytes = copy;
    out->size = size;
    return out;
}

static SdcStatus
keep_output(Session *s, CompileResult *r, void *arg)
{
    SdcOutput *out = arg;
    out->bytes = malloc(r->size + 1);
    if (!out->bytes)
        return SDC_ERROR_MEMORY;
    if (r->size)
        memcpy(out->bytes, r->bytes, r->size);
    out->bytes[r->size] = '\0';
    out->size = r->size;
    out->meta = calloc((size_t)r->nmeta + 1, sizeof *out->meta);
    if (!out->meta)
        return SDC_ERROR_MEMORY;
    for (; out->nmeta < r->nmeta; out->nmeta++)
        out->meta[out->nmeta] = r->meta[out->nmeta];
    Buf b;
    buf_init(&b, &s->tmp);
    times_print(&b, &r->times);
    text_set(&out->times, b.s);
    text_set(&out->explain, r->explain);
    return SDC_OK;
}

/* PTX becomes machine code. */
static SdcStatus
output_assemble(SdcContext *cx, const SdcCompileOptions *o, SdcOutput *out)
{
    char why[2000];
    size_t size;
    if (strncmp(o->target, "sm_", 3) != 0)
        return context_fail(cx, SDC_ERROR_ARGUMENT, "target '%s' has no cubin",
                            o->target);
    char *cubin = ptxas_run(o->ptxas ? o->ptxas : "ptxas", out->bytes, o->target,
                            o->lineinfo, &size, why, sizeof why);
    if (!cubin)
        return context_fail(cx, SDC_ERROR_ENVIRONMENT, "%s", why);
    free(out->bytes);
    out->bytes = cubin;
    out->size = size;
    return SDC_OK;
}

SdcStatus
sdc_compile(SdcModule *m, const SdcCompileOptions *o, SdcOutput **out)
{
    if (out)
        *out = NULL;
    if (!m)
        return SDC_ERROR_ARGUMENT;
    if (!out || !o)
        return context_fail(m->cx, SDC_ERROR_ARGUMENT, "compile: %s",
                            o ? "no place to put the output" : "no options");
    SdcCompileOptions known;
    if (!OPTIONS_READ(o, known))
        return options_wrong(m->cx, "compile", o->size, sizeof known);
    if ((unsigned)o->emit > SDC_EMIT_CUBIN)
        return context_fail(m->cx, SDC_ERROR_ARGUMENT, "compile: nothing to emit has "
                            "number %d", (int)o->emit);
    SdcStatus fine = context_binds(m->cx, "compile", o->bind, o->nbind);
    if (fine != SDC_OK)
        return fine;
    SdcOutput *made = calloc(1, sizeof *made);
    if (!made)
        return context_fail(m->cx, SDC_ERROR_MEMORY, "out of memory");
    CompileJob job;
    module_job(m, &job);
    job.opt = *o;
    if (!job.opt.target)
        job.opt.target = "cpu";
    if (o->emit == SDC_EMIT_CUBIN)
        job.opt.emit = SDC_EMIT_ASM;
    SdcStatus status = compile_call(m->cx, &job, keep_output, made);
    if (status == SDC_OK && o->emit == SDC_EMIT_CUBIN)
        status = output_assemble(m->cx, &job.opt, made);
    if (status != SDC_OK) {
        sdc_output_destroy(made);
        return status;
    }
    *out = made;
    return SDC_OK;
}

const void *
sdc_output_data(const SdcOutput *out, size_t *size)
{
    if (size)
        *size = out ? out->size : 0;
    return out ? out->bytes : NULL;
}

const SdcrtMeta *
sdc_output_meta(const SdcOutput *out, int *n)
{
    if (n)
        *n = out ? out->nmeta : 0;
    return out && out->nmeta ? out->meta : NULL;
}

const char *
sdc_output_times(const SdcOutput *out)
{
    return out && out->times ? out->times : "";
}

const char *
sdc_output_explain(const SdcOutput *out)
{
    return out && out->explain ? out->explain : "";
}

void
sdc_output_destroy(SdcOutput *out)
{
    if (!out)
        return;
    free(out->bytes);
    free(out->times);
    free(out->explain);
    free(out->meta);
    free(out);
}

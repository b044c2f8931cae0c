/* sdc compile: one specialization to a file. */
#include "runtime/cli/cli.h"

#include <string.h>
#include <unistd.h>

static int
emit_kind(Cli *c, SdcEmit *out)
{
    const char *emit = c->opt[O_emit].text;
    const char *target = c->opt[O_target].text;
    bool gpu = target && strncmp(target, "sm_", 3) == 0;
    if (!emit)
        *out = c->opt[O_stop_after].given ? SDC_EMIT_TIR
               : gpu                      ? SDC_EMIT_ASM
                                          : SDC_EMIT_OBJ;
    else if (strcmp(emit, "ast") == 0)
        *out = SDC_EMIT_AST;
    else if (strcmp(emit, "tir") == 0)
        *out = SDC_EMIT_TIR;
    else if (strcmp(emit, "llvm") == 0)
        *out = SDC_EMIT_LLVM;
    else if (strcmp(emit, "obj") == 0)
        *out = SDC_EMIT_OBJ;
    else if (strcmp(emit, "cubin") == 0)
        *out = SDC_EMIT_CUBIN;
    else
        *out = SDC_EMIT_ASM;
    if (emit && (strcmp(emit, "ptx") == 0 || strcmp(emit, "cubin") == 0) && !gpu)
        return cli_error(c, EXIT_USAGE,
                         "--emit=%s needs a GPU target, like --target=sm_90a", emit);
    if (emit && strcmp(emit, "obj") == 0 && gpu)
        return cli_error(c, EXIT_USAGE, "a GPU target has no object code: --emit=ptx");
    return EXIT_FINE;
}

/* The file's name without folder and ending, with another ending, in this folder. */
static const char *
default_output(Cli *c, SdcEmit emit)
{
    if (emit != SDC_EMIT_OBJ && emit != SDC_EMIT_CUBIN)
        return "-";
    const char *slash = strrchr(c->file, '/');
    const char *base = strcmp(c->file, "-") == 0 ? "kernel" : slash ? slash + 1 : c->file;
    const char *dot = strrchr(base, '.');
    int n = dot && dot > base ? (int)(dot - base) : (int)strlen(base);
    return arena_printf(&c->arena, "%.*s.%s", n, base,
                        emit == SDC_EMIT_OBJ ? "o" : "cubin");
}

static void
print_dump(void *user, const char *pass, const char *tir)
{
    (void)user;
    fprintf(stderr, "// after %s\n%s\n", pass, tir);
}

static int
compile_module(Cli *c, SdcContext *cx, SdcModule *mod, SdcEmit emit)
{
    SdcCompileOptions o = {
        .kernel = c->opt[O_kernel].text,
        .signature = c->opt[O_signature].text,
        .target = c->opt[O_target].text,
        .cpu = c->opt[O_cpu].text,
        .emit = emit,
        .lineinfo = c->opt[O_lineinfo].given,
        .passes = c->opt[O_passes].text,
        .dump_after = c->opt[O_dump_after].text,
        .dump = print_dump,
        .verify_each = c->opt[O_verify_each].given,
        .roundtrip = c->opt[O_roundtrip].given,
        .has_opt_limit = c->opt[O_opt_limit].given,
        .opt_limit = (int)c->opt[O_opt_limit].number,
        .ptxas = c->opt[O_ptxas].text,
        .explain = c->opt[O_explain].given,
        .stop_after = c->opt[O_stop_after].text,
    };
    o.bind = bindings(c, &o.nbind);
    SdcOutput *out = NULL;
    Progress *p = progress_start("compiling");
    SdcStatus got = sdc_compile(mod, &o, &out);
    progress_stop(p);
    int status = report_status(c, cx, got);
    if (status == EXIT_FINE) {
        size_t size;
        const void *bytes = sdc_output_data(out, &size);
        const char *path = c->opt[O_output].text;
        if (!path)
            path = default_output(c, emit);
        bool binary = emit == SDC_EMIT_OBJ || emit == SDC_EMIT_CUBIN;
        if (binary && strcmp(path, "-") == 0 && isatty(STDOUT_FILENO))
            status = cli_error(c, EXIT_USAGE, "object code on a terminal: give -o FILE");
        else
            status = write_file(c, path, bytes, size);
        if (c->opt[O_time_report].given)
            fputs(sdc_output_times(out), stderr);
        fputs(sdc_output_explain(out), stderr);
    }
    sdc_output_destroy(out);
    return status;
}

int
cmd_compile(Cli *c)
{
    SdcEmit emit;
    if (wants_bundle(c))
        return compile_bundle(c);
    int status = emit_kind(c, &emit);
    if (status != EXIT_FINE)
        return status;
    SdcContext *cx = NULL;
    SdcModule *mod = NULL;
    status = open_module(c, &cx, &mod);
    if (status == EXIT_FINE)
        status = compile_module(c, cx, mod, emit);
    sdc_context_destroy(cx);
    return status;
}

/* sdc explain: what the compiler made of kernels and why: the memory that they read and
   write, roles, stages, and for each load and dot what does it, and why that is not TMA
   or wgmma. Nothing is written. Where nobody says the types they are guessed as sdc check
   does, with the promises that a launch of whole tiles would make. */
#include "runtime/cli/cli.h"

#include <string.h>

/* "*fp32,i32,64" as "*fp32:16,i32:16,64": pointers and integers. */
static const char *
with_promises(Cli *c, const char *guess)
{
    Buf b;
    int depth = 0;
    buf_init(&b, &c->arena);
    buf_str(&b, "");
    for (const char *p = guess; *p;) {
        const char *item = p;
        for (; *p && (depth || *p != ','); p++)
            depth += strchr("([<", *p) ? 1 : strchr(")]>", *p) ? -1 : 0;
        const char *type = item, *end = p;
        for (const char *q = item; q < end; q++)
            if (*q == '=')
                type = q + 1;
        size_t n = (size_t)(end - type);
        bool number = n == 3 && (memcmp(type, "i32", 3) == 0 || !memcmp(type, "i64", 3));
        bool plain = !memchr(type, ':', n) && (*type == '*' || number);
        buf_add(&b, item, (size_t)(end - item));
        buf_str(&b, plain ? ":16" : "");
        if (*p)
            buf_char(&b, *p++);
    }
    return b.s;
}

static int
explain(Cli *c, SdcContext *cx, SdcModule *mod, const char *kernel, const char *signature)
{
    const char *target = c->opt[O_target].text;
    SdcCompileOptions o = {
        .kernel = kernel,
        .signature = signature,
        .target = target ? target : "sm_90a",
        .cpu = c->opt[O_cpu].text,
        .emit = SDC_EMIT_ASM,
        .explain = 1,
    };
    SdcOutput *out = NULL;
    o.bind = bindings(c, &o.nbind);
    Progress *p = progress_start("compiling");
    SdcStatus got = sdc_compile(mod, &o, &out);
    progress_stop(p);
    int status = report_status(c, cx, got);
    if (status == EXIT_FINE)
        fputs(sdc_output_explain(out), stdout);
    sdc_output_destroy(out);
    return status;
}

/* Each kernel that compiles, or the one that is named. */
static int
explain_guessed(Cli *c, SdcContext *cx, SdcModule *mod)
{
    const SdcCheck *check = NULL;
    SdcCheckOptions o = {.kernel = c->opt[O_kernel].text};
    o.bind = bindings(c, &o.nbind);
    SdcStatus got = sdc_module_check(mod, &o, &check);
    int status = EXIT_FINE, said = 0;
    if (!check || (got != SDC_OK && check->good == 0))
        return report_status(c, cx, got);
    if (check->kernels == 0) /* says so, and why */
        return explain(c, cx, mod, o.kernel, NULL);
    int n = check->n;
    SdcChecked *all = arena_array(&c->arena, SdcChecked, n + 1);
    for (int i = 0; i < n; i++) {
        all[i] = check->functions[i];
        all[i].name = arena_printf(&c->arena, "%s", all[i].name);
        all[i].signature = with_promises(c, all[i].signature ? all[i].signature : "");
    }
    for (int i = 0; i < n && status == EXIT_FINE; i++) {
        if (!all[i].is_kernel || !all[i].ok)
            continue;
        printf("'%s' with -s '%s'\n", all[i].name, all[i].signature);
        if (all[i].guessed && !said++)
            cli_note(c, "the types are guessed; a launch knows more, that the innermost "
                        "stride is 1 above all: say so with -s 'stride=1,...'");
        fflush(stdout);
        status = explain(c, cx, mod, all[i].name, all[i].signature);
    }
    return status;
}

int
cmd_explain(Cli *c)
{
    SdcContext *cx = NULL;
    SdcModule *mod = NULL;
    if (c->opt[O_signature].list.n > 1)
        return cli_error(c, EXIT_USAGE, "explain: one signature at a time");
    int status = open_module(c, &cx, &mod);
    const char *lang = c->opt[O_lang].text, *dot = strrchr(c->file, '.');
    bool typed = c->opt[O_signature].given || (lang && strcmp(lang, "tir") == 0) ||
                 (!lang && dot && strcmp(dot, ".tir") == 0);
    if (status == EXIT_FINE)
        status =
            typed ? explain(c, cx, mod, c->opt[O_kernel].text, c->opt[O_signature].text)
                  : explain_guessed(c, cx, mod);
    sdc_context_destroy(cx);
    return status;
}

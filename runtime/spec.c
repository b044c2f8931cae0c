/* From the texts of an API call to a specialization: which kernel, which signature, and
   the launch options that Triton lets a caller give beside constexprs. */
#include "runtime/compile.h"

#include "ir/base/util.h"

#include <stdlib.h>
#include <string.h>

const char *
compile_kernel(Session *s, FrontModule *m, const char *asked)
{
    int n = front_kernel_count(m);
    if (asked) {
        for (int i = 0; i < n; i++)
            if (front_kernel_is(front_kernel_name(m, i), asked))
                return front_kernel_name(m, i);
    } else if (n == 1) {
        return front_kernel_name(m, 0);
    }
    Buf names;
    buf_init(&names, &s->perm);
    buf_str(&names, n ? "" : "none");
    for (int i = 0; i < n && i < 20; i++)
        buf_printf(&names, "%s'%s'", i ? ", " : "", front_kernel_name(m, i));
    if (n > 20)
        buf_printf(&names, " and %d more", n - 20);
    if (asked)
        diag_error(&s->diag, (Loc){ 0 },
                   "no kernel is named '%s'; kernels of the file: %s", asked, names.s);
    else if (n)
        diag_error(&s->diag, (Loc){ 0 }, "name one kernel of the file: %s", names.s);
    else
        diag_error(&s->diag, (Loc){ 0 }, "the file has no kernel");
    front_explain_missing(m, asked);
    if (asked || !n)
        front_explain_helpers(m, asked);
    return NULL;
}

static bool
bad(Session *s, const char *text, const char *what)
{
    diag_error(&s->diag, (Loc){ 0 }, text, what);
    return false;
}

/* num_warps and its like are launch options in Triton, given like constexprs. */
static int *
launch_option(FrontSpec *spec, const char *text, size_t n)
{
    static const char *const name[] = { "num_warps", "num_stages", "num_ctas" };
    int *const at[] = { &spec->num_warps, &spec->num_stages, &spec->num_ctas };
    for (int i = 0; i < COUNT_OF(name); i++)
        if (strlen(name[i]) == n && memcmp(name[i], text, n) == 0)
            return at[i];
    return NULL;
}

static bool
read_flag(const char *text, bool *out)
{
    *out = strcmp(text, "True") == 0 || strcmp(text, "1") == 0;
    return *out || strcmp(text, "False") == 0 || strcmp(text, "0") == 0;
}

static bool
is_param(FrontModule *m, const char *kernel, const char *name, size_t n)
{
    const FrontParam *p;
    int count;
    if (!front_params(m, kernel, &p, &count))
        return false;
    for (int i = 0; i < count; i++)
        if (strlen(p[i].name) == n && memcmp(p[i].name, name, n) == 0)
            return true;
    return false;
}

bool
compile_spec(Session *s, FrontModule *m, const CompileJob *job, const char *kernel,
             FrontSpec *spec)
{
    const char **bind = arena_array(&s->perm, const char *, job->opt.nbind + 1);
    FrontSpec options = { 0 };
    int n = 0;
    for (int i = 0; i < job->opt.nbind; i++) {
        const char *text = job->opt.bind[i];
        size_t len = strcspn(text, "=");
        int *at = launch_option(&options, text, len);
        bool fusion = strncmp(text, "enable_fp_fusion=", len + 1) == 0, fused = true;
        bool flag = fusion || strncmp(text, "launch_pdl=", len + 1) == 0;
        if ((!at && !flag) || is_param(m, kernel, text, len)) {
            bind[n++] = text;
            continue;
        }
        if (flag) {
            if (!read_flag(text + len + 1, fusion ? &fused : &options.launch_pdl))
                return bad(s, "'%s' must be True or False", text);
            options.exact |= !fused;
            continue;
        }
        char *end;
        long v = text[len] ? strtol(text + len + 1, &end, 10) : 0;
        if (v < 1 || v > 64 || *end)
            return bad(s, "'%s' must be a whole number from 1 to 64", text);
        if (at == &options.num_warps && (v > 32 || (v & (v - 1))))
            return bad(s, "'%s' must be a power of 2, from 1 to 32", text);
        *at = (int)v;
    }
    front_values(m, job->values, job->nvalue);
    if (!front_spec_parse(m, kernel, job->opt.signature, bind, n, spec))
        return false;
    spec->debug = job->debug;
    spec->launch_pdl = options.launch_pdl;
    spec->exact = options.exact;
    if (options.num_warps)
        spec->num_warps = options.num_warps;
    if (options.num_stages)
        spec->num_stages = options.num_stages;
    if (options.num_ctas)
        spec->num_ctas = options.num_ctas;
    return true;
}

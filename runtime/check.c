/* sdc check: what a file holds. */
#include "runtime/internal.h"

#include <string.h>

static void
list_kernel(Buf *b, const KernelInfo *k)
{
    buf_printf(b, "kernel %s(", k->name);
    for (int i = 0; i < k->nparam; i++) {
        const SdcParam *p = &k->params[i];
        buf_printf(b, "%s%s", i ? ", " : "", p->name);
        if (p->is_constexpr)
            buf_str(b, ": constexpr");
        else if (p->type)
            buf_printf(b, ": %s", p->type);
    }
    buf_str(b, ")\n");
}

/* Kernels with their parameters and a verdict, helpers that do not pass, skipped
   blocks. */
static void
list_report(Buf *b, const SdcModule *m, const FrontReport *r)
{
    int kernels = 0, good = 0;
    for (int i = 0; i < r->nfn; i++) {
        const FrontCheck *f = &r->fn[i];
        const KernelInfo *k = module_find_kernel(m, f->name);
        kernels += f->is_kernel;
        good += f->is_kernel && f->ok;
        if (f->is_kernel && k)
            list_kernel(b, k);
        else if (f->is_kernel)
            buf_printf(b, "kernel %s\n", f->name);
        if (!f->ok)
            buf_printf(b, "  %s '%s' at line %d does not pass\n",
                       f->is_kernel ? "kernel" : "helper", f->name, f->loc.line);
    }
    for (int i = 0; i < r->nskipped; i++)
        buf_printf(b, "skipped lines %d-%d: host code beyond the limits of sdc\n",
                   r->skipped[i].line, r->skipped[i].end_line);
    buf_printf(b, "%s: %d of %d kernels pass\n", m->path, good, kernels);
}

/* A file without kernels is an error only where some were meant. */
static void
explain_none(Session *s, FrontModule *fm, int nfn)
{
    Diag before = s->diag;
    if (nfn)
        return;
    diag_error(&s->diag, (Loc){0}, "the file has no kernel");
    DiagItem *error = s->diag.last;
    front_explain_missing(fm, NULL);
    if (s->diag.last == error)
        diag_rewind(&s->diag, &before);
}

static SdcStatus
check_call(Session *s, void *arg)
{
    SdcModule *m = arg;
    Buf b;
    buf_init(&b, &s->perm);
    buf_str(&b, "");
    if (m->is_tir) {
        for (int i = 0; i < m->nkernel; i++)
            list_kernel(&b, &m->kernels[i]);
        buf_printf(&b, "%s: %d kernel%s\n", m->path, m->nkernel,
                   m->nkernel == 1 ? "" : "s");
    } else {
        CompileJob job;
        FrontReport report = {0};
        module_job(m, &job);
        job.front.target = "sm_90a"; /* what is asked of the device is asked of a GPU */
        Source *src = arena_new(&s->perm, Source);
        *src = job.src;
        FrontModule *fm = front_load(s, src, &job.front);
        if (fm)
            front_check(fm, &report);
        if (fm)
            explain_none(s, fm, report.nfn);
        list_report(&b, m, &report);
    }
    Report *r = context_report(m->cx);
    if (!r)
        return SDC_ERROR_MEMORY;
    text_set(&r->listing, b.s);
    return SDC_OK;
}

SdcStatus
sdc_module_check(SdcModule *m, const char **listing)
{
    if (!m)
        return SDC_ERROR_ARGUMENT;
    if (!listing)
        return context_fail(m->cx, SDC_ERROR_ARGUMENT,
                            "check: no place to put the listing");
    Report *r = context_report(m->cx);
    if (!r)
        return context_fail(m->cx, SDC_ERROR_MEMORY, "out of memory");
    text_set(&r->listing, "");
    SdcStatus status = context_call(m->cx, check_call, m);
    *listing = r->listing ? r->listing : "";
    return status;
}

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

static SdcStatus
check_call(Session *s, void *arg)
{
    SdcModule *m = arg;
    Buf b;
    buf_init(&b, &s->perm);
    buf_str(&b, "");
    for (int i = 0; i < m->nkernel; i++)
        list_kernel(&b, &m->kernels[i]);
    buf_printf(&b, "%s: %d kernel%s\n", m->path, m->nkernel, m->nkernel == 1 ? "" : "s");
    Report *r = context_report(m->cx);
    if (!r)
        return SDC_ERROR_MEMORY;
    text_set(&r->listing, b.s);
    return SDC_OK;
}

SdcStatus
sdc_module_check(SdcModule *m, const char **listing)
{
    if (!m || !listing)
        return SDC_ERROR_ARGUMENT;
    Report *r = context_report(m->cx);
    if (!r)
        return context_fail(m->cx, SDC_ERROR_MEMORY, "out of memory");
    text_set(&r->listing, "");
    SdcStatus status = context_call(m->cx, check_call, m);
    *listing = r->listing ? r->listing : "";
    return status;
}

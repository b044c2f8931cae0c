/* sdc check: the kernels of a file, the blocks that were skipped, every name resolved;
   with a signature one kernel is typed and lowered too. */
#include "runtime/cli/cli.h"

int
cmd_check(Cli *c)
{
    SdcContext *cx = NULL;
    SdcModule *mod = NULL;
    int status = open_module(c, &cx, &mod);
    if (status == EXIT_FINE) {
        const char *listing = "";
        SdcStatus got = sdc_module_check(mod, &listing);
        fputs(listing, stdout);
        fflush(stdout);
        status = report_status(c, cx, got);
    }
    const OptionValue *sig = &c->opt[O_signature];
    bool lower = sig->given || c->opt[O_kernel].given || c->opt[O_bind].given;
    for (int i = 0; lower && status == EXIT_FINE && (i == 0 || i < sig->list.n); i++) {
        SdcCompileOptions o = {
            .kernel = c->opt[O_kernel].text,
            .signature = sig->list.n ? sig->list.at[i] : NULL,
            .emit = SDC_EMIT_TIR,
        };
        o.bind = bindings(c, &o.nbind);
        SdcOutput *out = NULL;
        status = report_status(c, cx, sdc_compile(mod, &o, &out));
        sdc_output_free(out);
    }
    sdc_context_destroy(cx);
    return status;
}

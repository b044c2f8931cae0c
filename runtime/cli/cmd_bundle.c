/* sdc compile --header: one kernel for several targets and signatures, as one object and
   a C header with typed launchers. */
#include "runtime/cli/cli.h"

#include <string.h>

bool
wants_bundle(const Cli *c)
{
    const char *target = c->opt[O_target].text;
    return c->opt[O_header].given || c->opt[O_signature].list.n > 1 ||
           (target && strchr(target, ','));
}

/* "sm_80,cpu" as a list. */
static TextList
split(Cli *c, const char *text)
{
    TextList all = {0};
    while (text && *text) {
        size_t n = strcspn(text, ",");
        vec_push(&c->arena, &all, arena_strndup(&c->arena, text, n));
        text += n + (text[n] == ',');
    }
    return all;
}

/* Options that ask for something that a bundle is not. */
static int
refuse_others(Cli *c)
{
    static const OptionId alone[] = {O_passes,      O_stop_after, O_dump_after,
                                     O_verify_each, O_roundtrip,  O_opt_limit,
                                     O_time_report};
    const char *emit = c->opt[O_emit].text;
    for (int i = 0; i < COUNT_OF(alone); i++)
        if (c->opt[alone[i]].given)
            return cli_error(c, EXIT_USAGE,
                             "--%s goes with one target and one signature, and without "
                             "--header",
                             option_info[alone[i]].name);
    if (!c->opt[O_header].given)
        return cli_error(c, EXIT_USAGE,
                         "several targets or signatures make an object that is launched "
                         "by a header: give --header FILE.h");
    if (c->opt[O_output].given &&
        strcmp(c->opt[O_header].text, c->opt[O_output].text) == 0)
        return cli_error(c, EXIT_USAGE, "-o and --header name one file, '%s'",
                         c->opt[O_header].text);
    if (!c->opt[O_output].given)
        return cli_error(c, EXIT_USAGE, "the object needs a name: give -o FILE.o");
    if (emit && strcmp(emit, "obj") != 0 && strcmp(emit, "ptx") != 0 &&
        strcmp(emit, "cubin") != 0)
        return cli_error(c, EXIT_USAGE, "with --header --emit is obj, ptx or cubin");
    return EXIT_FINE;
}

static int
write_both(Cli *c, const SdcOutput *object, const SdcOutput *header)
{
    size_t size, header_size;
    const void *bytes = sdc_output_data(object, &size);
    const void *text = sdc_output_data(header, &header_size);
    int status = write_file(c, c->opt[O_output].text, bytes, size);
    return status == EXIT_FINE ? write_file(c, c->opt[O_header].text, text, header_size)
                               : status;
}

int
compile_bundle(Cli *c)
{
    SdcContext *cx = NULL;
    SdcModule *mod = NULL;
    int status = refuse_others(c);
    if (status == EXIT_FINE)
        status = open_module(c, &cx, &mod);
    if (status == EXIT_FINE) {
        const char *emit = c->opt[O_emit].text, *ptxas = c->opt[O_ptxas].text;
        TextList targets = split(c, c->opt[O_target].text);
        SdcBundleOptions o = {
            .kernel = c->opt[O_kernel].text,
            .name = c->opt[O_name].text,
            .targets = targets.at,
            .ntarget = targets.n,
            .signatures = c->opt[O_signature].list.at,
            .nsignature = c->opt[O_signature].list.n,
            .grid = c->opt[O_grid].text,
            .cpu = c->opt[O_cpu].text,
            .lineinfo = c->opt[O_lineinfo].given,
        };
        if (c->opt[O_tune].given && !(o.tune = read_file_text(c, c->opt[O_tune].text))) {
            sdc_context_destroy(cx);
            return EXIT_INPUT;
        }
        if (emit && strcmp(emit, "cubin") == 0)
            o.ptxas = ptxas ? ptxas : "ptxas";
        o.bind = bindings(c, &o.nbind);
        SdcOutput *object = NULL, *header = NULL;
        Progress *p = progress_start("compiling");
        SdcStatus got = sdc_bundle(mod, &o, &object, &header);
        progress_stop(p);
        status = report_status(c, cx, got);
        if (status == EXIT_FINE)
            status = write_both(c, object, header);
        sdc_output_destroy(object);
        sdc_output_destroy(header);
    }
    sdc_context_destroy(cx);
    return status;
}

/* sdc check: the kernels of files and folders, and whether they compile; messages for
   people, or as JSON for editors. */
#include "runtime/cli/cli.h"

#include <string.h>

/* What is said at the end, over all files. */
typedef struct Totals {
    int files, kernels, good;
    bool json;
    bool first_message, first_kernel;
    Buf messages, kernel;
} Totals;

/* ---------------------------------------------------------------- JSON */

static void
json_string(Buf *b, const char *s)
{
    buf_char(b, '"');
    for (; *s; s++) {
        unsigned char ch = (unsigned char)*s;
        if (ch == '"' || ch == '\\')
            buf_printf(b, "\\%c", ch);
        else if (ch < 0x20)
            buf_printf(b, "\\u%04x", ch);
        else
            buf_char(b, (char)ch);
    }
    buf_char(b, '"');
}

static void
json_place(Buf *b, const SdcPlace *p, const char *file)
{
    buf_str(b, "\"file\": ");
    json_string(b, p->path ? p->path : file);
    buf_printf(b, ", \"line\": %d, \"column\": %d, \"end_line\": %d, \"end_column\": %d",
               p->line, p->column, p->end_line, p->end_column);
}

/* The messages of the last call; notes stand in what they belong to. */
static void
json_messages(const Cli *c, SdcContext *cx, Totals *t)
{
    static const char *const word[] = {"error", "warning"};
    const SdcMessage *m = sdc_message(cx, 0);
    for (int i = 0; m; t->first_message = false) {
        buf_printf(&t->messages, "%s\n  {", t->first_message ? "" : ",");
        json_place(&t->messages, &m->place, c->file);
        buf_printf(&t->messages, ", \"severity\": \"%s\", \"code\": ",
                   word[m->severity == SDC_SAYS_WARNING]);
        json_string(&t->messages, m->code);
        buf_str(&t->messages, ", \"message\": ");
        json_string(&t->messages, m->text);
        buf_str(&t->messages, ", \"notes\": [");
        int n = 0;
        for (; (m = sdc_message(cx, ++i)) != NULL && m->severity == SDC_SAYS_NOTE; n++) {
            buf_str(&t->messages, n ? ", {" : "{");
            json_place(&t->messages, &m->place, c->file);
            buf_str(&t->messages, ", \"message\": ");
            json_string(&t->messages, m->text);
            buf_char(&t->messages, '}');
        }
        buf_str(&t->messages, "]}");
    }
}

static void
json_kernels(const Cli *c, const SdcCheck *check, Totals *t)
{
    for (int i = 0; i < check->n; i++) {
        const SdcChecked *f = &check->functions[i];
        if (!f->is_kernel)
            continue;
        buf_printf(&t->kernel, "%s\n  {\"file\": ", t->first_kernel ? "" : ",");
        json_string(&t->kernel, c->file);
        buf_str(&t->kernel, ", \"name\": ");
        json_string(&t->kernel, f->name);
        buf_printf(&t->kernel, ", \"line\": %d, \"passes\": %s, \"guessed\": %s, "
                   "\"signature\": ", f->line, f->ok ? "true" : "false",
                   f->guessed ? "true" : "false");
        json_string(&t->kernel, f->signature ? f->signature : "");
        buf_char(&t->kernel, '}');
        t->first_kernel = false;
    }
}

/* ---------------------------------------------------------------- files */

/* "sm_80,cpu" taken apart. */
static TextList
targets(Cli *c)
{
    TextList list = {0};
    const char *p = c->opt[O_target].given ? c->opt[O_target].text : "";
    while (*p) {
        size_t n = strcspn(p, ",");
        if (n)
            vec_push(&c->arena, &list, arena_strndup(&c->arena, p, n));
        p += n + (p[n] == ',');
    }
    return list;
}

/* Of several statuses the one that says most: a bug, the environment, the input. */
static int
worse(int a, int b)
{
    return a > b ? a : b;
}

/* What report_status says, but the messages may be JSON. */
static int
report(Cli *c, SdcContext *cx, SdcStatus status, Totals *t)
{
    if (!t->json)
        return report_status(c, cx, status);
    json_messages(c, cx, t);
    switch (status) {
    case SDC_OK: return EXIT_FINE;
    case SDC_ERROR_INTERNAL: return EXIT_BUG;
    case SDC_ERROR_MEMORY:
    case SDC_ERROR_ENVIRONMENT: return EXIT_ENVIRONMENT;
    default: return EXIT_INPUT;
    }
}

static bool
has_param(SdcModule *mod, const char *bind)
{
    size_t len = strcspn(bind, "=");
    for (int k = 0; k < sdc_module_kernel_count(mod); k++) {
        const SdcParam *p;
        int n = 0;
        if (sdc_module_params(mod, sdc_module_kernel_name(mod, k), &p, &n) != SDC_OK)
            n = 0;
        for (int i = 0; i < n; i++)
            if (strlen(p[i].name) == len && memcmp(p[i].name, bind, len) == 0)
                return true;
    }
    return false;
}

/* Of several files each has some of the names; of one all should be there. */
static void
warn_of_binds(const Cli *c, SdcModule *mod)
{
    const TextList *bind = &c->opt[O_bind].list;
    for (int i = 0; i < bind->n && c->files.n == 1; i++)
        if (strncmp(bind->at[i], "num_", 4) != 0 &&
            strncmp(bind->at[i], "launch_pdl=", 11) != 0 &&
            strncmp(bind->at[i], "enable_fp_fusion=", 17) != 0 &&
            !has_param(mod, bind->at[i]))
            cli_note(c, "-c '%s' is no parameter of a kernel of '%s'", bind->at[i],
                     c->file);
}

static int
check_file(Cli *c, const TextList *for_, Totals *t)
{
    SdcContext *cx = NULL;
    SdcModule *mod = NULL;
    SdcStatus got = SDC_OK;
    int status = load_module(c, &cx, &mod, &got);
    t->files++;
    if (got != SDC_OK)
        status = report(c, cx, got, t);
    if (status == EXIT_FINE) {
        const SdcCheck *check = NULL;
        const TextList *sig = &c->opt[O_signature].list;
        SdcCheckOptions o = {.kernel = c->opt[O_kernel].text,
                             .signatures = sig->at,
                             .nsignature = sig->n,
                             .targets = for_->at,
                             .ntarget = for_->n};
        o.bind = bindings(c, &o.nbind);
        if (!o.kernel && !t->json)
            warn_of_binds(c, mod);
        got = sdc_module_check(mod, &o, &check);
        if (check) {
            t->kernels += check->kernels;
            t->good += check->good;
            if (t->json)
                json_kernels(c, check, t);
            else if (check->n || c->files.n == 1)
                fputs(check->listing, stdout);
            fflush(stdout);
        }
        status = report(c, cx, got, t);
    }
    sdc_context_destroy(cx);
    return status;
}

int
cmd_check(Cli *c)
{
    Totals t = {.json = c->opt[O_messages].given > 0,
                .first_message = true,
                .first_kernel = true};
    TextList files = {0}, for_ = targets(c);
    buf_init(&t.messages, &c->arena);
    buf_init(&t.kernel, &c->arena);
    buf_str(&t.messages, "");
    buf_str(&t.kernel, "");
    for (int i = 0; i < c->files.n; i++) {
        if (!is_folder(c->files.at[i]))
            vec_push(&c->arena, &files, c->files.at[i]);
        else if (!find_sources(c, c->files.at[i], &files))
            return EXIT_INPUT;
    }
    bool folder = c->files.n == 1 && is_folder(c->files.at[0]);
    bool one = c->opt[O_kernel].given || c->opt[O_signature].given;
    if (one && (files.n > 1 || folder))
        return cli_error(c, EXIT_USAGE, "-k and -s are for one file, not several");
    if (!files.n)
        return cli_error(c, EXIT_INPUT, "'%s' has no .tk file, and no .py file with jit",
                         c->files.at[0]);
    c->files = files;
    int status = EXIT_FINE;
    for (int i = 0; i < files.n; i++) {
        c->file = files.at[i];
        status = worse(status, check_file(c, &for_, &t));
    }
    if (t.json)
        printf("{\"diagnostics\": [%s],\n\"kernels\": [%s]}\n", t.messages.s,
               t.kernel.s);
    else if (folder || files.n > 1)
        printf("%d file%s: %d of %d kernels pass\n", t.files, t.files == 1 ? "" : "s",
               t.good, t.kernels);
    return status;
}

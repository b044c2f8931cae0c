/* sdc worker: one compile for a host that wants it outside of its process, see
   runtime/worker.h. Not for people: the request comes in on the standard input. */
#include "runtime/cli/cli.h"

#include "runtime/rt/meta.h"
#include "runtime/worker.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static Buf
read_all(Cli *c)
{
    Buf b;
    char part[65536];
    buf_init(&b, &c->arena);
    buf_str(&b, "");
    for (;;) {
        ssize_t n = read(STDIN_FILENO, part, sizeof part);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return b;
        buf_add(&b, part, (size_t)n);
    }
}

/* The next field; NULL when the request ends before it, or it has no bytes. */
static const char *
field(Buf *b, size_t *at, size_t *size)
{
    uint64_t n;
    *size = 0;
    if (b->n - *at < sizeof n)
        return NULL;
    memcpy(&n, b->s + *at, sizeof n);
    *at += sizeof n;
    if (n > b->n - *at)
        return NULL;
    const char *p = b->s + *at;
    *at += n;
    *size = n;
    return n ? p : NULL;
}

static const char *const *
list(Cli *c, Buf *b, size_t *at, int *n)
{
    size_t size;
    const char *p = field(b, at, &size);
    *n = 0;
    if (size == sizeof *n)
        memcpy(n, p, sizeof *n);
    *n = *n < 0 || *n > 4096 ? 0 : *n;
    const char **all = arena_array(&c->arena, const char *, *n + 1);
    for (int i = 0; i < *n; i++)
        if (!(all[i] = field(b, at, &size)))
            all[i] = "";
    return all;
}

static void
put(Buf *b, const void *bytes, size_t size)
{
    uint64_t n = size;
    buf_add(b, (const char *)&n, sizeof n);
    buf_add(b, bytes, size);
}

static void
put_text(Buf *b, const char *text)
{
    put(b, text, strlen(text) + 1);
}

/* Memory beyond the limit cannot be had at all, by LLVM neither. */
static void
limit_memory(unsigned long long bytes)
{
    struct rlimit most = {bytes, bytes};
    struct rlimit none = {0, 0};
    if (bytes)
        setrlimit(RLIMIT_AS, &most);
    setrlimit(RLIMIT_CORE, &none);
}

int
cmd_worker(Cli *c)
{
    Buf in = read_all(c), out;
    const char *text[WORKER_TEXTS];
    size_t size[WORKER_TEXTS], at = 0;
    for (int i = 0; i < WORKER_TEXTS; i++)
        text[i] = field(&in, &at, &size[i]);
    if (!text[WORKER_PATH] || !text[WORKER_SOURCE] || !text[WORKER_NUMBERS] ||
        size[WORKER_NUMBERS] != sizeof(WorkerNumbers))
        return cli_error(c, EXIT_USAGE, "'sdc worker' is for libsdc alone");
    WorkerNumbers n;
    memcpy(&n, text[WORKER_NUMBERS], sizeof n);
    limit_memory(n.memory);
    SdcCompileOptions o = {.kernel = text[WORKER_KERNEL],
                           .signature = text[WORKER_SIGNATURE],
                           .target = text[WORKER_TARGET],
                           .cpu = text[WORKER_CPU],
                           .emit = (SdcEmit)n.emit,
                           .lineinfo = n.lineinfo};
    SdcContextOptions co = {.debug = n.debug, .check = n.check, .color = n.color};
    o.bind = list(c, &in, &at, &o.nbind);
    co.include_dirs = list(c, &in, &at, &co.ninclude);
    co.defines = list(c, &in, &at, &co.ndefine);
    SdcContext *cx;
    SdcModule *m;
    SdcOutput *made = NULL;
    if (sdc_context_create(&co, &cx) != SDC_OK)
        return EXIT_ENVIRONMENT;
    int status = (int)sdc_module_load_text(cx, text[WORKER_PATH], text[WORKER_SOURCE],
                                           size[WORKER_SOURCE] - 1,
                                           n.is_tir ? SDC_LANG_TIR : SDC_LANG_TRITON, &m);
    if (status == SDC_OK)
        status = (int)sdc_compile(m, &o, &made);
    int nmeta = 0;
    size_t code = 0;
    const SdcrtMeta *meta = sdc_output_meta(made, &nmeta);
    const void *bytes = sdc_output_data(made, &code);
    buf_init(&out, &c->arena);
    put(&out, &status, sizeof status);
    put(&out, meta, nmeta ? sizeof *meta : 0);
    put(&out, bytes, code);
    put_text(&out, sdc_error(cx));
    put_text(&out, sdc_warnings(cx));
    put_text(&out, sdc_error_reproducer(cx));
    sdc_output_destroy(made);
    sdc_context_destroy(cx);
    return write_file(c, "-", out.s, out.n);
}

/* Winners as text, in k.tk.tune beside k.tk: one line each,

       kernel | device | target | types | key | configuration | time

   as in

       matmul | NVIDIA H200 | sm_90a | *fp16,*fp16,*fp16,i32 | M=4096 | BLOCK_M=128 | 9 us

   Lines that begin with # say nothing. Files are merged by putting them together: of
   several lines that agree up to the key the last counts. */
#include "runtime/tune.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 7 };

void
tune_types(Buf *b, const SdcrtMeta *meta)
{
    bool first = true;
    for (int i = 0; i < meta->nsource; i++) {
        const SdcrtSource *s = &meta->sources[i];
        const SdcrtParam *param = NULL;
        if (s->is_constexpr)
            continue;
        for (int p = meta->nparam - 1; p >= 0; p--)
            if (meta->params[p].source == i)
                param = &meta->params[p];
        if (!first)
            buf_str(b, ",");
        first = false;
        if (!param)
            buf_str(b, "const");
        else if (s->rank)
            buf_printf(b, "desc%d", s->rank);
        else
            buf_printf(b, "%.*s", (int)strcspn(param->sig, ":"), param->sig);
    }
}

const char *
tune_device(SdcContext *cx, char *to, size_t size)
{
    if (cx->on_gpu) {
        snprintf(to, size, "%s", sdcrt_cuda_info(atomic_load(&cx->cuda))->name);
    } else {
        char *host = codegen_host_cpu();
        snprintf(to, size, "%.*s", host ? (int)strcspn(host, " ") : 0, host);
        free(host);
    }
    for (char *p = to; *p; p++)
        if (*p == '|' || *p == '\n')
            *p = '/';
    return to;
}

/* "M=4096 N=4096": the integer arguments that the decorator's key names; all integers
   when there is no decorator. */
static void
key_text(Buf *b, const SdcTuning *t)
{
    bool first = true;
    for (int i = 0; i < t->o->nargs; i++) {
        const char *name = t->info->params[t->info->runtime[i]].name;
        bool wanted = !t->configs.n;
        for (int k = 0; k < t->configs.nkey && t->configs.key; k++)
            wanted |= strcmp(t->configs.key[k], name) == 0;
        if (!wanted || t->o->args[i].kind != SDC_ARG_INT)
            continue;
        buf_printf(b, "%s%s=%lld", first ? "" : " ", name, (long long)t->o->args[i].v.i);
        first = false;
    }
}

typedef struct Line {
    const SdcTuning *t;
    const Candidate *c;
    char *text;
} Line;

static SdcStatus
line_call(Session *s, void *arg)
{
    Line *l = arg;
    const SdcTuning *t = l->t;
    char device[160];
    Buf b;
    buf_init(&b, &s->tmp);
    buf_printf(&b, "%s | %s | %s | ", t->info->name,
               tune_device(t->mod->cx, device, sizeof device),
               t->mod->cx->on_gpu ? t->mod->cx->gpu_target : "cpu");
    tune_types(&b, l->c->kernel->meta);
    buf_str(&b, " | ");
    key_text(&b, t);
    buf_str(&b, " | ");
    for (const char *p = l->c->trial.config; *p; p++)
        buf_add(&b, *p == ',' ? " " : p, 1);
    buf_printf(&b, " | %.3f us", l->c->trial.times.median * 1e6);
    l->text = strdup(b.s);
    return l->text ? SDC_OK : SDC_ERROR_MEMORY;
}

char *
tune_line(const SdcTuning *t, const Candidate *c)
{
    Line l = {t, c, NULL};
    return context_call(t->mod->cx, line_call, &l) == SDC_OK ? l.text : NULL;
}

char *
tune_report(const TuneTimes *t)
{
    char *text = NULL;
    int n = asprintf(&text,
                     "%10.1f ms  configurations read, memory and events made\n"
                     "%10.1f ms  waiting for what is compiled\n"
                     "%10.1f ms  results checked\n"
                     "%10.1f ms  first look at each\n"
                     "%10.1f ms  the fastest once more\n"
                     "%10.1f ms  in all\n"
                     "beside it, %d threads: %.1f ms pruning, %.1f ms compiling, %.1f ms "
                     "in the driver; the longest %.1f ms\n",
                     1e3 * t->start, 1e3 * t->wait, 1e3 * t->check, 1e3 * t->measure,
                     1e3 * t->finals, 1e3 * t->total, t->threads, 1e3 * t->prune,
                     1e3 * t->compile, 1e3 * t->load, 1e3 * t->longest);
    return n < 0 ? NULL : text;
}

/* ---------------------------------------------------------------- reading */

/* The fields of a line without the blanks around them; how many. */
static int
split(const char *line, size_t n, const char **at, size_t *len)
{
    int count = 0;
    const char *end = line + n;
    while (count < FIELDS) {
        const char *bar = memchr(line, '|', (size_t)(end - line));
        const char *stop = bar ? bar : end;
        const char *from = line;
        while (from < stop && isspace((unsigned char)*from))
            from++;
        while (stop > from && isspace((unsigned char)stop[-1]))
            stop--;
        at[count] = from;
        len[count++] = (size_t)(stop - from);
        if (!bar)
            break;
        line = bar + 1;
    }
    return count;
}

static bool
is(const char *at, size_t len, const char *text)
{
    return strlen(text) == len && memcmp(at, text, len) == 0;
}

/* The types agree where neither is bound to a value. */
static bool
same_types(const char *at, size_t len, const char *types)
{
    const char *end = at + len;
    for (;;) {
        size_t n = strcspn(types, ","), m = 0;
        while (at + m < end && at[m] != ',')
            m++;
        if (!is(at, m, "const") && !(n == 5 && memcmp(types, "const", 5) == 0) &&
            (n != m || memcmp(at, types, n) != 0))
            return false;
        at += m;
        types += n;
        if (at == end || !*types)
            return at == end && !*types;
        at++;
        types++;
    }
}

static int
entries_of(const char *text, const char *kernel, const char *device, const char *target,
           const char *types, TuneEntry *out, int most)
{
    int n = 0;
    while (text && *text) {
        size_t len[FIELDS], size = strcspn(text, "\n");
        const char *at[FIELDS];
        if (*text != '#' && split(text, size, at, len) == FIELDS &&
            is(at[0], len[0], kernel) && (!device || is(at[1], len[1], device)) &&
            is(at[2], len[2], target) && same_types(at[3], len[3], types) &&
            len[4] < sizeof out->key && len[5] < sizeof out->config) {
            int i = 0;
            while (i < n && !is(at[4], len[4], out[i].key))
                i++;
            if (i < most) {
                snprintf(out[i].key, sizeof out[i].key, "%.*s", (int)len[4], at[4]);
                snprintf(out[i].config, sizeof out[i].config, "%.*s", (int)len[5], at[5]);
                n = i == n ? n + 1 : n;
            }
        }
        text += size + (text[size] == '\n');
    }
    return n;
}

int
tune_entries(const char *text, const char *kernel, const char *device, const char *target,
             const char *types, TuneEntry *out, int most)
{
    int n = device ? entries_of(text, kernel, device, target, types, out, most) : 0;
    return n ? n : entries_of(text, kernel, NULL, target, types, out, most);
}

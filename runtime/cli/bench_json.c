/* Results as JSON, with all that says whether they can be compared: device, clocks,
   threads, versions, command, load, date. A row a line, so that a diff of two files shows
   rows. What was written is read again as a series. */
#include "runtime/cli/bench.h"
#include "runtime/cli/json.h"

#include "runtime/rt/cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void
member(Buf *to, const char *name, const char *text)
{
    buf_printf(to, "\"%s\": ", name);
    json_quote(to, text);
    buf_str(to, ", ");
}

static void
put_machine(Buf *to, const Bench *b)
{
    const Machine *m = &b->machine;
    buf_str(to, "\"machine\": {");
    member(to, "cpu", m->cpu);
    buf_printf(to, "\"processors\": %d, \"mhz\": %.6g, \"mhz_most\": %.6g, ",
               m->processors, m->mhz, m->mhz_most);
    member(to, "governor", m->governor);
    member(to, "system", m->system);
    buf_printf(to, "\"load\": [%.2f, %.2f, %.2f]", m->load[0], m->load[1], m->load[2]);
    if (b->gpu) {
        const SdcrtCudaInfo *i = sdcrt_cuda_info(b->gpu->cuda);
        buf_str(to, ",\n  ");
        member(to, "gpu", i->name);
        member(to, "target", b->gpu->target);
        buf_printf(
            to,
            "\"capability\": %d, \"sms\": %d, \"memory\": %lld, \"clock_khz\": %d, "
            "\"memory_clock_khz\": %d, \"driver\": %d",
            i->sm, i->processors, (long long)i->memory, i->clock_khz, i->memory_clock_khz,
            i->driver);
    }
    buf_str(to, "},\n");
}

static void
put_point(Buf *to, const Bench *b, int row, const BenchPoint *p, bool compared)
{
    static const char *const verdict[] = {
        [SDC_SAME] = "same", [SDC_BETTER] = "better", [SDC_WORSE] = "worse"};
    const BenchRow *r = &b->row[row];
    buf_printf(to,
               "{\"value\": %lld, \"seconds\": %.9g, \"low\": %.9g, \"high\": %.9g, "
               "\"min\": %.9g, \"graph\": %.9g, \"runs\": %d, \"spread\": %.4f, "
               "\"bytes\": %.9g, \"flop\": %.9g, \"roof\": %.4f",
               (long long)r->value, p->times.median, p->times.low, p->times.high,
               p->times.min, p->times.graph, p->times.n, p->spread, r->bytes, r->flops,
               roof_share(b, row, p));
    if (compared)
        buf_printf(to,
                   ", \"ratio\": %.6g, \"ratio_low\": %.6g, \"ratio_high\": %.6g, "
                   "\"verdict\": \"%s%s\"",
                   p->ratio, p->low, p->high, verdict[p->verdict],
                   p->same_code ? " code" : "");
    buf_str(to, ", \"config\": ");
    json_quote(to, p->config ? p->config : "");
    if (p->code)
        buf_printf(to, ", \"code\": \"%016llx\"", (unsigned long long)p->code);
    buf_char(to, '}');
}

void
bench_json(Buf *to, const Bench *b)
{
    buf_str(to, "{\n");
    member(to, "sdc", sdc_version());
    member(to, "llvm", SDC_LLVM_VERSION);
    member(to, "date", b->machine.date);
    buf_str(to, "\n");
    member(to, "command", b->command);
    buf_str(to, "\n");
    put_machine(to, b);
    member(to, "kernel", b->kernel);
    member(to, "device", b->device);
    buf_printf(to, "\"threads\": %d, \"caches\": \"%s\", ", b->threads,
               b->warm ? "warm" : "cold");
    member(to, "sweep", b->sweep ? b->sweep : "");
    buf_printf(
        to,
        "\n\"roofline\": {\"bytes_per_s\": %.6g, \"flop_per_s\": %.6g, "
        "\"copies\": %.6g, \"products\": %.6g, \"type\": \"%s\"},\n\"series\": [\n",
        b->roof.bytes, b->roof.flops, b->roof.seen_bytes, b->roof.seen_flops,
        b->roof.product ? b->roof.product : "");
    for (int k = 0; k < b->nseries; k++) {
        const Series *s = &b->series[k];
        bool some = false;
        buf_str(to, "{");
        member(to, "name", s->name);
        buf_str(to, "\"rows\": [\n");
        for (int i = 0; i < b->n; i++) {
            if (!(s->at[i].times.median > 0))
                continue;
            buf_str(to, some ? ",\n" : "");
            put_point(to, b, i, &s->at[i], k > 0);
            some = true;
        }
        buf_printf(to, "]}%s\n", k + 1 < b->nseries ? "," : "");
    }
    buf_str(to, "]\n}\n");
}

/* ---------------------------------------------------------------- reading */

static void
read_point(const Json *row, BenchPoint *p)
{
    p->times = (SdcTimes){.median = json_number(row, "seconds", 0),
                          .low = json_number(row, "low", 0),
                          .high = json_number(row, "high", 0),
                          .min = json_number(row, "min", 0),
                          .graph = json_number(row, "graph", 0),
                          .n = (int)json_number(row, "runs", 0)};
    p->spread = json_number(row, "spread", 0);
    p->config = json_text(row, "config", "");
    p->code = strtoull(json_text(row, "code", "0"), NULL, 16);
    p->ratio = p->low = p->high = 1;
}

int
bench_read(Bench *b, const char *path, Series *s)
{
    const char *text = read_file_text(b->c, path);
    if (!text)
        return EXIT_INPUT;
    const Json *all = json_read(&b->c->arena, text);
    const Json *series = json_get(all, "series");
    const Json *first = series ? series->first : NULL, *rows = json_get(first, "rows");
    if (!rows)
        return cli_error(b->c, EXIT_INPUT,
                         "--vs '%s': this is no file that 'sdc bench --json' wrote",
                         path);
    s->at = arena_array(&b->c->arena, BenchPoint, b->want + 1);
    for (const Json *row = rows->first; row; row = row->next)
        for (int i = 0; i < b->want; i++)
            if ((double)b->row[i].value == json_number(row, "value", NAN))
                read_point(row, &s->at[i]);
    s->device = json_text(all, "device", "another machine");
    s->caches = json_text(all, "caches", "");
    s->other_machine = strcmp(s->device, b->device) != 0 ||
                       strcmp(s->caches, b->warm ? "warm" : "cold") != 0;
    s->copies = json_number(json_get(all, "roofline"), "copies", 0);
    s->products = json_number(json_get(all, "roofline"), "products", 0);
    s->drift = 1;
    return EXIT_FINE;
}

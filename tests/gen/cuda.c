/* Runs on a GPU. All buffers of a program lie in one piece of device memory, with zones
   of a pattern between them that must stay; it is written, the kernel launched with
   three numbers of warps, and read back. After an error of the device the process cannot
   go on: it reports and another takes its place. */
#include "tests/gen/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/rt/cuda.h"

enum { ZONE = 512, PATTERN = 0xa7 };

struct Device {
    SdcrtCuda *cuda;
    uint64_t at;
    size_t size;
    unsigned char *host;
};

static Device *
device_open(Runner *r, Report *rep)
{
    if (r->device)
        return r->device;
    SdcContextOptions o = {.target = r->target};
    SdcDevice info;
    Device *d = calloc(1, sizeof *d);
    SdcrtError e;
    d->size = (size_t)32 << 20;
    d->host = malloc(d->size);
    if (sdc_context_create(&o, &r->gpu) || sdc_context_device(r->gpu, &info) ||
        sdcrt_cuda_alloc(info.cuda, d->size, &d->at, &e)) {
        rep->what = FINDING_REFUSED;
        snprintf(rep->text, sizeof rep->text, "no GPU: %.1000s",
                 r->gpu ? sdc_error(r->gpu) : "");
        free(d->host);
        free(d);
        return NULL;
    }
    d->cuda = info.cuda;
    return r->device = d;
}

void
device_close(Runner *r)
{
    if (!r->device)
        return;
    free(r->device->host);
    free(r->device);
    r->device = NULL;
    sdc_context_destroy(r->gpu);
}

/* Places of the buffers; 0 when there is not enough room. */
static size_t
lay_out(const Program *p, const Device *d, size_t *at)
{
    size_t n = ZONE;
    for (int i = 0; i < p->narg; i++) {
        if (!p->arg[i].data)
            continue;
        /* every other program: at addresses that are multiples of an element alone */
        size_t off = p->seed & 1 && !p->aligned && p->arg[i].count
                         ? p->arg[i].bytes / p->arg[i].count
                         : 0;
        at[i] = n + off;
        n += (p->arg[i].bytes + off + 2 * ZONE - 1) / ZONE * ZONE;
        if (n > d->size)
            return 0;
    }
    return n;
}

static bool
zones_whole(const Program *p, const Device *d, const size_t *at, size_t total)
{
    size_t from = 0;
    for (int i = 0; i <= p->narg; i++) {
        if (i < p->narg && !p->arg[i].data)
            continue;
        size_t to = i < p->narg ? at[i] : total;
        for (; from < to; from++)
            if (d->host[from] != PATTERN)
                return false;
        if (i < p->narg)
            from = at[i] + p->arg[i].bytes;
    }
    return true;
}

static bool
finding(Report *rep, Finding what, const char *text)
{
    rep->what = what;
    snprintf(rep->label, sizeof rep->label, "%s", run_label);
    snprintf(rep->text, sizeof rep->text, "%.1100s", text);
    return false;
}

static bool
device_run(Runner *r, Device *d, SdcFunction *fn, const Program *p, const Outputs *want,
           Report *rep)
{
    size_t at[PROGRAM_MAX_ARGS] = {0}, total = lay_out(p, d, at);
    SdcArg arg[PROGRAM_MAX_ARGS];
    SdcDesc desc[PROGRAM_MAX_ARGS];
    SdcrtError e = {0};
    if (!total)
        return true;
    memset(d->host, PATTERN, total);
    for (int i = 0; i < p->narg; i++) {
        if (p->arg[i].data)
            memcpy(d->host + at[i], p->arg[i].data, p->arg[i].bytes);
        arg_of(&p->arg[i], (void *)(uintptr_t)(d->at + at[i]), &desc[i], &arg[i]);
    }
    if (sdcrt_cuda_write(d->cuda, d->at, d->host, total, &e))
        return finding(rep, FINDING_CRASH, e.text);
    SdcGrid grid = sdc_grid(p->grid[0], p->grid[1], p->grid[2]);
    SdcStatus st = sdc_launch(fn, grid, arg, p->narg, NULL);
    if (st != SDC_OK)
        return finding(rep, st == SDC_ERROR_INTERNAL ? FINDING_INTERNAL : FINDING_REFUSED,
                       sdc_error(r->gpu));
    if (sdcrt_cuda_wait(d->cuda, &e) ||
        sdcrt_cuda_read(d->cuda, d->host, d->at, total, &e))
        return finding(rep, FINDING_CRASH, e.text);
    if (!zones_whole(p, d, at, total))
        return finding(rep, FINDING_DIFFERS, "a store outside of the buffers");
    Outputs got = {0};
    for (int i = 0; i < p->narg; i++)
        if (p->arg[i].is_output)
            got.of[i] = d->host + at[i];
    char text[600];
    if (!outputs_equal(p, want, &got, text, sizeof text))
        return finding(rep, FINDING_DIFFERS, text);
    return true;
}

bool
device_check(Runner *r, const Program *p, const Outputs *want, Report *rep)
{
    static const int others[] = {1, 2, 16, 4, 4};
    bool loops = p->seed >= LOOP_SEEDS;
    const int warps[] = {loops ? 4 : 1, 8, others[p->seed % 5]};
    Device *d = device_open(r, rep);
    if (!d)
        return false;
    SdcModule *m = NULL;
    bool ok = true;
    if (sdc_module_load_text(r->gpu, "k.tk", p->text, strlen(p->text), SDC_LANG_TRITON,
                             &m))
        return finding(rep, FINDING_REFUSED, sdc_error(r->gpu));
    for (int i = 0; i < 3 && ok; i++) {
        char w[32], s[32];
        const char *bind[] = {w, s};
        SdcFunction *fn = NULL;
        snprintf(w, sizeof w, "num_warps=%d", warps[i]);
        int stages = p->num_stages;
        if (loops && i == 2)
            stages = stages % 6 + 1;
        snprintf(s, sizeof s, "num_stages=%d", stages);
        snprintf(run_label, RUN_LABEL, "cuda %s %s", w, s);
        if (sdc_function_get(m, p->kernel, bind, 2, &fn))
            ok = finding(rep, FINDING_REFUSED, sdc_error(r->gpu));
        else
            ok = device_run(r, d, fn, p, want, rep);
    }
    sdc_module_unload(m);
    return ok;
}

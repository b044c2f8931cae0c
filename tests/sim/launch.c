/* Launches: a block's memory is made once, and all blocks run in it one after the other,
   from a random one on. */
#include "tests/sim/machine.h"

#include <stdio.h>
#include <stdlib.h>

static const Code *
find(const SimModule *m, const char *name)
{
    if (!name)
        return m->ncode == 1 ? &m->code[0] : NULL;
    for (int k = 0; k < m->ncode; k++)
        if (strcmp(m->code[k].name, name) == 0)
            return &m->code[k];
    return NULL;
}

int
sim_kernel_info(const SimModule *m, const char *kernel, SimKernelInfo *out)
{
    const Code *c = find(m, kernel);
    if (!c)
        return 0;
    *out = (SimKernelInfo){.nparam = c->nparam, .threads = c->threads};
    memcpy(out->param_bytes, c->param_bytes, sizeof out->param_bytes);
    return 1;
}

static void
free_block(Block *b)
{
    race_close(b);
    for (int k = 0; k < b->nwarps && b->warp; k++) {
        Warp *w = &b->warp[k];
        free(w->regs);
        free(w->local);
        free(w->pending);
        free(w->busy);
        free(w->stamp);
    }
    free(b->warp);
    free(b->shared);
    free(b->param);
    free(b->mbar);
    free(b->async);
    free(b);
}

static Block *
new_block(const SimModule *m, const Code *c, const SimLaunch *q)
{
    Block *b = calloc(1, sizeof *b);
    size_t shared = q->shared ? q->shared : SHARED_MAX;
    b->code = c;
    b->module = m;
    b->launch = q;
    b->nthreads = q->threads ? q->threads : c->threads;
    b->each = b->nthreads / LANES;
    b->cluster = q->cluster > 1 ? q->cluster : 1;
    b->nwarps = b->cluster * b->each;
    b->serial = q->seed == 0;
    b->random = q->seed * 0x9e3779b97f4a7c15u + 0x1234567;
    for (int k = 0; k < 3; k++)
        b->grid[k] = q->grid[k] > 0 ? (uint32_t)q->grid[k] : 1;
    if (shared > SHARED_MAX)
        shared = SHARED_MAX;
    b->shared_top = SHARED_BASE + (uint32_t)((shared + 15) / 16 * 16);
    b->shared = calloc(shared_end(b) + 16, 1);
    b->mbar = calloc(shared_end(b) / 8 + 1, sizeof *b->mbar);
    b->param = aligned_alloc(64, ((size_t)c->param_size + 127) / 64 * 64);
    for (int k = 0; k < c->nparam; k++)
        memcpy(b->param + c->param_at[k], q->params[k], (size_t)c->param_bytes[k]);
    b->warp = calloc((size_t)b->nwarps, sizeof *b->warp);
    for (int k = 0; k < b->nwarps; k++) {
        Warp *w = &b->warp[k];
        w->b = b;
        w->id = k;
        w->rank = k / b->each;
        w->regs = aligned_alloc(64, c->reg_bytes);
        memset(w->regs + CONST_ROOM, 0xa5, c->reg_bytes - CONST_ROOM);
        w->local = calloc((size_t)c->local_bytes * LANES + 1, 1);
        if (c->has_wgmma) {
            w->busy = calloc(c->reg_bytes / SLOT, sizeof *w->busy);
            w->stamp = calloc(c->reg_bytes / SLOT, sizeof *w->stamp);
        }
    }
    return b;
}

SimStatus
sim_run(const SimModule *m, const SimLaunch *q, SimStats *stats, char *message,
        size_t size)
{
    const Code *c = find(m, q->kernel);
    int threads = q->threads ? q->threads : c ? c->threads : 0;
    int cluster = q->cluster > 1 ? q->cluster : 1;
    bool fits = cluster <= MAX_CLUSTER &&
                (q->grid[0] > 0 ? q->grid[0] : 1) % cluster == 0;
    if (!c || !fits || q->nparam != c->nparam || threads < LANES || threads % LANES ||
        threads > BLOCK_WARPS * LANES || (c->threads && threads != c->threads)) {
        snprintf(message, size, "kernel '%s': %s", q->kernel ? q->kernel : "",
                 !c                       ? "not in the module"
                 : !fits                  ? "the grid and its clusters do not fit"
                 : q->nparam != c->nparam ? "wrong number of parameters"
                                          : "wrong number of threads");
        return SIM_LAUNCH;
    }
    Block *b = new_block(m, c, q);
    uint64_t wide = b->grid[0] / (uint32_t)cluster;
    uint64_t total = wide * b->grid[1] * b->grid[2];
    uint64_t from = b->serial || total < 2 ? 0 : sim_random(b, (uint32_t)total);
    for (uint64_t k = 0; k < total && !b->status; k++) {
        uint64_t n = (k + from) % total;
        b->id[0] = (uint32_t)(n % wide * (uint64_t)cluster);
        b->id[1] = (uint32_t)(n / wide % b->grid[1]);
        b->id[2] = (uint32_t)(n / wide / b->grid[1]);
        block_run(b);
    }
    SimStatus s = b->status;
    snprintf(message, size, "%s", b->message);
    if (stats)
        *stats = b->stats;
    free_block(b);
    return s;
}

const char *
sim_status_name(SimStatus s)
{
    static const char *const names[] = {"ok",      "text",     "launch", "race",  "async",
                                        "barrier", "deadlock", "memory", "limit", "trap"};
    return names[s];
}

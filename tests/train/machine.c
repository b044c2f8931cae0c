/* Memory and launches of the training proof, see machine.h. */
#include "tests/train/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/rt/cuda.h"

enum { MAX_BINDS = 16 };

static void
failed(Machine *m, const char *what, const char *why)
{
    if (!m->failed)
        fprintf(stderr, "%s: %s\n", what, why);
    m->failed = true;
}

bool
machine_open(Machine *m, const char *target)
{
    SdcContextOptions o = {.target = target};
    SdcDevice device;
    *m = (Machine){0};
    if (sdc_context_create(&o, &m->ctx) != SDC_OK)
        return false;
    snprintf(m->name, sizeof(m->name), "CPU, %d threads", sdc_context_threads(m->ctx));
    if (strcmp(target, "cuda"))
        return true;
    if (sdc_context_device(m->ctx, &device) != SDC_OK) {
        failed(m, target, sdc_error(m->ctx));
        return false;
    }
    m->cuda = device.cuda;
    snprintf(m->name, sizeof(m->name), "%s", device.name);
    return true;
}

void
machine_close(Machine *m)
{
    machine_free_all(m);
    sdc_context_destroy(m->ctx);
}

void *
machine_alloc(Machine *m, int64_t bytes)
{
    SdcrtError e = {0};
    uint64_t at = 0;
    size_t size = (size_t)(bytes + 255) / 256 * 256;
    if (!m->failed && m->nblock < MACHINE_BLOCKS) {
        if (!m->cuda) {
            void *p = aligned_alloc(256, size);
            if (p)
                return m->blocks[m->nblock++] = memset(p, 0, size);
        } else if (sdcrt_cuda_alloc(m->cuda, size, &at, &e) == SDCRT_OK &&
                   sdcrt_cuda_fill(m->cuda, at, 0, size, &e) == SDCRT_OK) {
            return m->blocks[m->nblock++] = (void *)(uintptr_t)at;
        }
    }
    failed(m, "memory", m->cuda ? e.text : "there is not enough");
    return m;
}

float *
machine_floats(Machine *m, int64_t n)
{
    return machine_alloc(m, n * (int64_t)sizeof(float));
}

void
machine_free_all(Machine *m)
{
    SdcrtError e;
    while (m->nblock > 0) {
        void *p = m->blocks[--m->nblock];
        if (m->cuda)
            sdcrt_cuda_free(m->cuda, (uint64_t)(uintptr_t)p, &e);
        else
            free(p);
    }
}

void
machine_write(Machine *m, void *to, const void *from, int64_t bytes)
{
    SdcrtError e = {0};
    if (m->failed)
        return;
    if (!m->cuda)
        memcpy(to, from, (size_t)bytes);
    else if (sdcrt_cuda_write(m->cuda, (uint64_t)(uintptr_t)to, from, (size_t)bytes,
                              &e) != SDCRT_OK)
        failed(m, "write", e.text);
}

void
machine_read(Machine *m, void *to, const void *from, int64_t bytes)
{
    SdcrtError e = {0};
    if (m->failed)
        return;
    if (!m->cuda)
        memcpy(to, from, (size_t)bytes);
    else if (sdcrt_cuda_read(m->cuda, to, (uint64_t)(uintptr_t)from, (size_t)bytes, &e) !=
             SDCRT_OK)
        failed(m, "read", e.text);
}

static SdcModule *
module_of(Machine *m, const char *file)
{
    char path[512];
    const char *root = getenv("SDC_TEST_ROOT");
    for (int i = 0; i < m->nmodule; i++)
        if (strcmp(m->modules[i].file, file) == 0)
            return m->modules[i].mod;
    SdcModule *mod = NULL;
    snprintf(path, sizeof(path), "%s/kernels_dsl/%s.tk", root ? root : SDC_ROOT, file);
    if (m->nmodule == MACHINE_MODULES ||
        sdc_module_load_file(m->ctx, path, &mod) != SDC_OK) {
        failed(m, path, sdc_error(m->ctx));
        return NULL;
    }
    m->modules[m->nmodule].file = file;
    return m->modules[m->nmodule++].mod = mod;
}

static SdcFunction *
function_of(Machine *m, const char *file, const char *kernel, const char *binds)
{
    for (int i = 0; i < m->nkernel; i++) {
        const MachineKernel *k = &m->kernels[i];
        if (k->file == file && k->name == kernel && strcmp(k->bind, binds) == 0)
            return k->fn;
    }
    MachineKernel *k = &m->kernels[m->nkernel];
    SdcModule *mod = module_of(m, file);
    const char *bind[MAX_BINDS];
    char text[sizeof(k->bind)], *rest;
    int n = 0;
    if (!mod || m->nkernel == MACHINE_KERNELS || strlen(binds) >= sizeof(text)) {
        failed(m, kernel, "too many kernels, or no module");
        return NULL;
    }
    snprintf(text, sizeof(text), "%s", binds);
    for (char *b = strtok_r(text, " ", &rest); b && n < MAX_BINDS;
         b = strtok_r(NULL, " ", &rest))
        bind[n++] = b;
    k->file = file;
    k->name = kernel;
    snprintf(k->bind, sizeof(k->bind), "%s", binds);
    if (sdc_function_get(mod, kernel, bind, n, &k->fn) != SDC_OK) {
        failed(m, kernel, sdc_error(m->ctx));
        return NULL;
    }
    m->nkernel++;
    return k->fn;
}

void
machine_run(Machine *m, const char *file, const char *kernel, SdcGrid grid,
            const char *binds, const SdcArg *args, int nargs)
{
    SdcFunction *fn = m->failed ? NULL : function_of(m, file, kernel, binds);
    if (!fn)
        return;
    m->launches++;
    if (sdc_launch(fn, grid, args, nargs, NULL) != SDC_OK)
        failed(m, kernel, sdc_error(m->ctx));
}

/* The CUDA driver by dlopen: one table of entry points, a context, modules and launches.
   Numbers of attributes and options are those of the driver API's enums (cuda.h of CUDA
   12); they are part of its ABI. */
#include "runtime/rt/cuda.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEVICE_CC_MAJOR = 75,
    DEVICE_CC_MINOR = 76,
    FUNC_MAX_DYNAMIC_SHARED = 8,
    JIT_ERROR_LOG = 5,
    JIT_ERROR_LOG_SIZE = 6,
    DEFAULT_SHARED = 48 << 10,
    WARP = 32
};

typedef struct Driver {
#define CU(symbol, field, params) int(*field) params;
#include "runtime/rt/cuda.def"
} Driver;

struct SdcrtCuda {
    Driver d;
    void *lib;
    void *context;
    int device, sm;
    char name[128];
    char error[1024];
};

struct SdcrtCudaKernel {
    void *module, *function;
    SdcrtMeta meta;
};

static int
load_entries(Driver *d, void *lib, const char **missing)
{
    const struct {
        const char *symbol;
        size_t at;
    } table[] = {
#define CU(symbol, field, params) {symbol, offsetof(Driver, field)},
#include "runtime/rt/cuda.def"
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        void *p = dlsym(lib, table[i].symbol);
        if (!p) {
            *missing = table[i].symbol;
            return 0;
        }
        memcpy((char *)d + table[i].at, &p, sizeof p);
    }
    return 1;
}

static int
failed(SdcrtCuda *c, int code, const char *fmt, ...)
{
    const char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(c->error, sizeof c->error, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= (int)sizeof c->error)
        return code ? code : -1;
    if (code > 0 && c->d.error_string && c->d.error_string(code, &text) == 0 && text)
        snprintf(c->error + n, sizeof c->error - (size_t)n, ": %s (CUDA error %d)", text,
                 code);
    return code ? code : -1;
}

static int
open_device(SdcrtCuda *c, int ordinal)
{
    int major = 0, minor = 0, e;
    if ((e = c->d.init(0)) != 0)
        return failed(c, e, "the CUDA driver does not start");
    if ((e = c->d.device_get(&c->device, ordinal)) != 0)
        return failed(c, e, "no GPU number %d", ordinal);
    c->d.device_name(c->name, sizeof c->name, c->device);
    c->d.device_attribute(&major, DEVICE_CC_MAJOR, c->device);
    c->d.device_attribute(&minor, DEVICE_CC_MINOR, c->device);
    c->sm = 10 * major + minor;
    if ((e = c->d.context_retain(&c->context, c->device)) != 0)
        return failed(c, e, "no context on %s", c->name);
    if ((e = c->d.context_set(c->context)) != 0)
        return failed(c, e, "the context of %s cannot be made current", c->name);
    return 0;
}

int
sdcrt_cuda_open(int ordinal, SdcrtCuda **out, char *why, size_t size)
{
    const char *file = getenv("SDC_LIBCUDA"), *missing = NULL;
    SdcrtCuda *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c) {
        snprintf(why, size, "out of memory");
        return -1;
    }
    file = file && *file ? file : "libcuda.so.1";
    c->lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!c->lib) {
        snprintf(why, size,
                 "no CUDA driver (%s): install NVIDIA's driver, or use target cpu",
                 dlerror());
        free(c);
        return -1;
    }
    if (!load_entries(&c->d, c->lib, &missing)) {
        snprintf(why, size, "the CUDA driver is too old: it lacks %s", missing);
        sdcrt_cuda_close(c);
        return -1;
    }
    int e = open_device(c, ordinal);
    if (e) {
        snprintf(why, size, "%s", c->error);
        sdcrt_cuda_close(c);
        return e;
    }
    *out = c;
    return 0;
}

void
sdcrt_cuda_close(SdcrtCuda *c)
{
    if (!c)
        return;
    if (c->context)
        c->d.context_release(c->device);
    if (c->lib)
        dlclose(c->lib);
    free(c);
}

const char *
sdcrt_cuda_error(const SdcrtCuda *c)
{
    return c->error;
}

const char *
sdcrt_cuda_name(const SdcrtCuda *c)
{
    return c->name;
}

int
sdcrt_cuda_sm(const SdcrtCuda *c)
{
    return c->sm;
}

int
sdcrt_cuda_alloc(SdcrtCuda *c, size_t bytes, uint64_t *out)
{
    int e = c->d.mem_alloc(out, bytes ? bytes : 1);
    return e ? failed(c, e, "%zu bytes of device memory", bytes) : 0;
}

int
sdcrt_cuda_free(SdcrtCuda *c, uint64_t address)
{
    int e = c->d.mem_free(address);
    return e ? failed(c, e, "device memory cannot be freed") : 0;
}

int
sdcrt_cuda_write(SdcrtCuda *c, uint64_t to, const void *from, size_t bytes)
{
    int e = bytes ? c->d.copy_in(to, from, bytes) : 0;
    return e ? failed(c, e, "copy of %zu bytes to the device", bytes) : 0;
}

int
sdcrt_cuda_read(SdcrtCuda *c, void *to, uint64_t from, size_t bytes)
{
    int e = bytes ? c->d.copy_out(to, from, bytes) : 0;
    return e ? failed(c, e, "copy of %zu bytes from the device", bytes) : 0;
}

int
sdcrt_cuda_fill(SdcrtCuda *c, uint64_t at, int byte, size_t bytes)
{
    int e = bytes ? c->d.fill(at, (unsigned char)byte, bytes) : 0;
    return e ? failed(c, e, "%zu bytes cannot be filled", bytes) : 0;
}

int
sdcrt_cuda_load(SdcrtCuda *c, const char *ptx, const SdcrtMeta *meta,
                SdcrtCudaKernel **out)
{
    char log[512] = "";
    int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_SIZE};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    SdcrtCudaKernel *k = calloc(1, sizeof *k);
    *out = NULL;
    if (!k)
        return failed(c, 0, "out of memory");
    k->meta = *meta;
    int e = c->d.module_load(&k->module, ptx, 2, options, values);
    if (e) {
        free(k);
        return failed(c, e, "kernel '%s' is refused by the driver: %s", meta->name, log);
    }
    e = c->d.module_function(&k->function, k->module, meta->symbol);
    if (!e && meta->shared_bytes > DEFAULT_SHARED)
        e = c->d.function_attribute(k->function, FUNC_MAX_DYNAMIC_SHARED,
                                    (int)meta->shared_bytes);
    if (e) {
        c->d.module_unload(k->module);
        free(k);
        return failed(c, e, "kernel '%s' cannot be prepared", meta->name);
    }
    *out = k;
    return 0;
}

void
sdcrt_cuda_unload(SdcrtCuda *c, SdcrtCudaKernel *k)
{
    if (!k)
        return;
    c->d.module_unload(k->module);
    free(k);
}

int
sdcrt_cuda_launch(SdcrtCuda *c, SdcrtCudaKernel *k, const uint64_t *args,
                  const int32_t grid[3])
{
    uint64_t slots[SDCRT_MAX_PARAMS];
    void *params[SDCRT_MAX_PARAMS];
    for (int i = 0; i < 3; i++) {
        if (grid[i] < 0 || (i && grid[i] > 65535))
            return failed(c, 0, "kernel '%s': a grid of %d along axis %d cannot run",
                          k->meta.name, grid[i], i);
        if (!grid[i])
            return 0;
    }
    for (int i = 0; i < k->meta.nparam; i++) {
        if (k->meta.params[i].kind == SDCRT_PTR && !args[i])
            return failed(c, 0, "kernel '%s': argument '%s' is a null pointer",
                          k->meta.name, k->meta.params[i].name);
        slots[i] =
            args[i]; /* little-endian: a narrower value is the slot's first bytes */
        params[i] = &slots[i];
    }
    int e = c->d.launch(k->function, (unsigned)grid[0], (unsigned)grid[1],
                        (unsigned)grid[2], (unsigned)(WARP * k->meta.num_warps), 1, 1,
                        (unsigned)k->meta.shared_bytes, NULL, params, NULL);
    return e ? failed(c, e, "kernel '%s' cannot be launched", k->meta.name) : 0;
}

int
sdcrt_cuda_wait(SdcrtCuda *c)
{
    int e = c->d.context_wait();
    return e ? failed(c, e, "a kernel failed on %s", c->name) : 0;
}

int
sdcrt_cuda_time(SdcrtCuda *c, SdcrtCudaKernel *k, const uint64_t *args,
                const int32_t grid[3], float *ms)
{
    void *from = NULL, *to = NULL;
    *ms = 0;
    int e = c->d.event_create(&from, 0);
    if (!e)
        e = c->d.event_create(&to, 0);
    if (!e)
        e = c->d.event_record(from, NULL);
    if (!e)
        e = sdcrt_cuda_launch(c, k, args, grid);
    if (!e)
        e = c->d.event_record(to, NULL);
    if (!e)
        e = c->d.event_wait(to);
    if (!e)
        e = c->d.event_elapsed(ms, from, to);
    if (from)
        c->d.event_destroy(from);
    if (to)
        c->d.event_destroy(to);
    return e > 0 ? failed(c, e, "kernel '%s' failed", k->meta.name) : e;
}

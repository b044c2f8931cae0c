/* The CUDA driver by dlopen: its table of entry points, a device, its context, and what
   to tell when a call fails. */
#include "runtime/rt/cuda_driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ATTR_MAX_SHARED = 8,
    ATTR_CLOCK = 13,
    ATTR_PROCESSORS = 16,
    ATTR_MEMORY_CLOCK = 36,
    ATTR_MEMORY_BUS = 37,
    ATTR_MAX_GRID_X = 5,
    ATTR_CC_MAJOR = 75,
    ATTR_CC_MINOR = 76,
    ATTR_MAX_SHARED_OPTIN = 97
};

/* ---------------------------------------------------------------- errors */

/* What to do about it; "" when the driver's own words are all there is to say. */
static const char *
advice(int code)
{
    switch (code) {
    case CUDA_ERROR_NOT_INITIALIZED:
        return "; a process that forks after CUDA was used cannot use it in the child";
    case CUDA_ERROR_STUB_LIBRARY:
        return "; a stub of CUDA's toolkit was loaded instead of the driver: set "
               "SDC_LIBCUDA to libcuda.so.1";
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
        return "; look at nvidia-smi and CUDA_VISIBLE_DEVICES";
    case CUDA_ERROR_NO_JIT:
    case CUDA_ERROR_PTX_VERSION: return "; install a newer NVIDIA driver";
    case CUDA_ERROR_OUT_OF_RESOURCES: return "; use fewer warps or smaller tiles";
    case CUDA_ERROR_SYSTEM_NOT_READY: return "; start nvidia-fabricmanager";
    case CUDA_ERROR_DRIVER_MISMATCH:
        return "; the driver's library and kernel module differ: restart the machine";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_LAUNCH_FAILED:
        return "; a kernel failed on the device, this launch or an earlier one, and the "
               "CUDA context is lost: compute-sanitizer finds where";
    default:
        return code >= CUDA_ERROR_HARDWARE_STACK && code < CUDA_ERROR_LAUNCH_FAILED
                   ? "; a kernel failed on the device, this launch or an earlier one, "
                     "and the CUDA context is lost"
                   : "";
    }
}

static SdcrtStatus
status_of(int code)
{
    switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY: return SDCRT_ERROR_MEMORY;
    case CUDA_ERROR_OUT_OF_RESOURCES: return SDCRT_ERROR_LIMIT;
    case CUDA_ERROR_NO_BINARY:
    case CUDA_ERROR_INVALID_PTX: return SDCRT_ERROR_CODE;
    default: return SDCRT_ERROR_DEVICE;
    }
}

SdcrtStatus
cuda_fail(const SdcrtCuda *c, SdcrtError *e, int code, const char *fmt, ...)
{
    const char *text = NULL;
    if (!e)
        return status_of(code);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    e->code = code;
    if (n < 0 || n >= (int)sizeof e->text)
        return status_of(code);
    if (!c->d.error_string || c->d.error_string(code, &text) != 0 || !text)
        text = "unknown error";
    snprintf(e->text + n, sizeof e->text - (size_t)n, ": %s (CUDA error %d)%s", text,
             code, advice(code));
    return status_of(code);
}

SdcrtStatus
cuda_refuse(SdcrtError *e, SdcrtStatus status, const char *fmt, ...)
{
    if (!e)
        return status;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    e->code = 0;
    return status;
}

SdcrtStatus
cuda_missing(SdcrtError *e, const char *what)
{
    return cuda_refuse(e, SDCRT_ERROR_ARGUMENT, "%s is NULL", what);
}

/* ---------------------------------------------------------------- opening */

/* The first symbol that is missing, or NULL. */
static const char *
load_entries(Driver *d, void *lib)
{
    static const struct {
        const char *symbol;
        size_t at;
        int needed;
    } table[] = {
#define CU(symbol, field, params)     {symbol, offsetof(Driver, field), 1},
#define CU_MAY(symbol, field, params) {symbol, offsetof(Driver, field), 0},
#include "runtime/rt/cuda.def"
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        void *p = dlsym(lib, table[i].symbol);
        if (!p && table[i].needed)
            return table[i].symbol;
        memcpy((char *)d + table[i].at, &p, sizeof p);
    }
    return NULL;
}

static SdcrtStatus
open_driver(SdcrtCuda *c, SdcrtError *e)
{
    const char *file = getenv("SDC_LIBCUDA");
    /* Never unmapped: the driver has threads of its own and handlers for exit. */
    c->lib = dlopen(file && *file ? file : "libcuda.so.1",
                    RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!c->lib)
        return cuda_refuse(e, SDCRT_ERROR_DEVICE,
                           "no CUDA driver (%s): install NVIDIA's driver, or use the "
                           "target cpu",
                           dlerror());
    const char *missing = load_entries(&c->d, c->lib);
    if (missing) {
        int version = 0;
        if (!c->d.driver_version || c->d.driver_version(&version) != 0)
            version = 0;
        return cuda_refuse(e, SDCRT_ERROR_DEVICE,
                           "the CUDA driver is too old (CUDA %d.%d): it lacks %s; "
                           "install one for CUDA 12 or newer",
                           version / 1000, version % 1000 / 10, missing);
    }
    int code = c->d.init(0);
    return code ? cuda_fail(c, e, code, "the CUDA driver does not start") : SDCRT_OK;
}

static SdcrtStatus
open_device(SdcrtCuda *c, int ordinal, SdcrtError *e)
{
    SdcrtCudaInfo *i = &c->info;
    size_t bytes = 0;
    int major = 0, minor = 0, count = 0, code;
    if ((code = c->d.device_count(&count)) != 0 ||
        (code = c->d.device_get(&c->device, ordinal)) != 0)
        return cuda_fail(c, e, code, "no GPU number %d, the driver offers %d", ordinal,
                         count);
    const struct {
        int attribute, *to;
    } wanted[] = {
        {ATTR_CC_MAJOR, &major},
        {ATTR_CC_MINOR, &minor},
        {ATTR_PROCESSORS, &i->processors},
        {ATTR_MAX_SHARED, &i->shared},
        {ATTR_MAX_SHARED_OPTIN, &i->shared_max},
        {ATTR_MAX_GRID_X, &i->max_grid[0]},
        {ATTR_MAX_GRID_X + 1, &i->max_grid[1]},
        {ATTR_MAX_GRID_X + 2, &i->max_grid[2]},
    };
    i->ordinal = ordinal;
    if ((code = c->d.device_name(i->name, sizeof i->name, c->device)) == 0 &&
        (code = c->d.device_memory(&bytes, c->device)) == 0)
        code = c->d.driver_version(&i->driver);
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted && code == 0; k++)
        code = c->d.device_attribute(wanted[k].to, wanted[k].attribute, c->device);
    if (code)
        return cuda_fail(c, e, code, "GPU %d does not answer", ordinal);
    /* Newer drivers may no longer say. */
    const struct {
        int attribute, *to;
    } known[] = {{ATTR_CLOCK, &i->clock_khz},
                 {ATTR_MEMORY_CLOCK, &i->memory_clock_khz},
                 {ATTR_MEMORY_BUS, &i->memory_bus_bits}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (c->d.device_attribute(known[k].to, known[k].attribute, c->device) != 0)
            *known[k].to = 0;
    i->memory = (int64_t)bytes;
    i->sm = 10 * major + minor;
    return SDCRT_OK;
}

static SdcrtCuda *
cuda_new(SdcrtError *e)
{
    SdcrtCuda *c = calloc(1, sizeof *c);
    if (c && pthread_mutex_init(&c->lock, NULL) != 0) {
        free(c);
        c = NULL;
    }
    if (!c)
        cuda_refuse(e, SDCRT_ERROR_MEMORY, "out of memory");
    else
        rt_process_mark(&c->process);
    return c;
}

SdcrtStatus
sdcrt_cuda_open(int ordinal, SdcrtCuda **out, SdcrtError *e)
{
    if (!out)
        return cuda_missing(e, "open: out");
    *out = NULL;
    if (ordinal < 0)
        return cuda_refuse(e, SDCRT_ERROR_ARGUMENT, "no GPU number %d", ordinal);
    SdcrtCuda *c = cuda_new(e);
    if (!c)
        return SDCRT_ERROR_MEMORY;
    SdcrtStatus status = open_driver(c, e);
    if (status == SDCRT_OK)
        status = open_device(c, ordinal, e);
    if (status == SDCRT_OK)
        *out = c;
    else
        sdcrt_cuda_close(c);
    return status;
}

SdcrtStatus
sdcrt_cuda_count(int *devices, int *driver, SdcrtError *e)
{
    if (!devices || !driver)
        return cuda_missing(e, devices ? "count: driver" : "count: devices");
    *devices = *driver = 0;
    SdcrtCuda *c = cuda_new(e);
    if (!c)
        return SDCRT_ERROR_MEMORY;
    SdcrtStatus status = open_driver(c, e);
    if (c->lib && c->d.driver_version)
        c->d.driver_version(driver);
    if (status == SDCRT_OK) {
        int code = c->d.device_count(devices);
        if (code)
            status = cuda_fail(c, e, code, "GPUs cannot be counted");
    }
    sdcrt_cuda_close(c);
    return status;
}

void
sdcrt_cuda_close(SdcrtCuda *c)
{
    if (!c || cuda_is_forked(c))
        return;
    if (atomic_load(&c->pool))
        c->d.pool_destroy(atomic_load(&c->pool));
    if (atomic_load(&c->primary))
        c->d.primary_release(c->device);
    if (c->lib)
        dlclose(c->lib);
    pthread_mutex_destroy(&c->lock);
    rt_process_done(&c->process);
    free(c);
}

int
cuda_is_forked(const SdcrtCuda *c)
{
    return rt_process_is_child(&c->process);
}

SdcrtStatus
cuda_alive(const SdcrtCuda *c, SdcrtError *e)
{
    return cuda_is_forked(c)
               ? cuda_refuse(e, SDCRT_ERROR_DEVICE,
                             "this process is the child of a fork, and its parent opened "
                             "the GPU: CUDA works in a child that forked before that")
               : SDCRT_OK;
}

const SdcrtCudaInfo *
sdcrt_cuda_info(const SdcrtCuda *c)
{
    return c ? &c->info : NULL;
}

/* ---------------------------------------------------------------- contexts */

/* Drivers before CUDA 12 have no numbers for contexts: there the address has to do. */
static int
number_of(const SdcrtCuda *c, void *context, uint64_t *id)
{
    unsigned long long number = (uintptr_t)context;
    int code = c->d.context_id ? c->d.context_id(context, &number) : 0;
    *id = number;
    return code;
}

static SdcrtStatus
primary(SdcrtCuda *c, void **out, SdcrtError *e)
{
    *out = atomic_load_explicit(&c->primary, memory_order_acquire);
    if (*out)
        return SDCRT_OK;
    int code = 0;
    pthread_mutex_lock(&c->lock);
    *out = atomic_load_explicit(&c->primary, memory_order_relaxed);
    if (!*out && (code = c->d.primary_retain(out, c->device)) == 0) {
        /* It stays as long as it is retained: its address names it if nothing else. */
        number_of(c, *out, &c->primary_id);
        atomic_store_explicit(&c->primary, *out, memory_order_release);
    }
    pthread_mutex_unlock(&c->lock);
    return code ? cuda_fail(c, e, code, "no context on GPU %d, %s", c->info.ordinal,
                            c->info.name)
                : SDCRT_OK;
}

/* The calling thread's context when it belongs to the device, else NULL. */
static SdcrtStatus
own_context(SdcrtCuda *c, void **out, SdcrtError *e)
{
    int device, code = 0;
    SdcrtStatus status = cuda_alive(c, e);
    if (status != SDCRT_OK)
        return status;
    code = c->d.context_get(out);
    if (code)
        return cuda_fail(c, e, code, "the current CUDA context is unknown");
    if (*out && (c->d.context_device(&device) != 0 || device != c->device))
        *out = NULL;
    return SDCRT_OK;
}

SdcrtStatus
cuda_enter(SdcrtCuda *c, CudaScope *s, SdcrtError *e)
{
    s->pushed = 0;
    if (!c)
        return cuda_missing(e, "the device");
    SdcrtStatus status = own_context(c, &s->context, e);
    if (status != SDCRT_OK || s->context)
        return status;
    status = primary(c, &s->context, e);
    if (status != SDCRT_OK)
        return status;
    int code = c->d.context_push(s->context);
    if (code)
        return cuda_fail(c, e, code, "the context of %s cannot be made current",
                         c->info.name);
    s->pushed = 1;
    return SDCRT_OK;
}

void
cuda_leave(SdcrtCuda *c, const CudaScope *s)
{
    void *popped;
    if (s->pushed)
        c->d.context_pop(&popped);
}

SdcrtStatus
sdcrt_cuda_context(SdcrtCuda *c, uint64_t *id, SdcrtError *e)
{
    void *context;
    if (!c || !id)
        return cuda_missing(e, c ? "context: id" : "the device");
    SdcrtStatus status = own_context(c, &context, e);
    if (status != SDCRT_OK)
        return status;
    if (!context) {
        status = primary(c, &context, e);
        *id = c->primary_id;
        return status;
    }
    int code = number_of(c, context, id);
    return code ? cuda_fail(c, e, code, "the CUDA context has no number") : SDCRT_OK;
}

/* A CUDA driver without a GPU: memory is the host's, a launch is written down and not
   run, and the k-th call fails when a test says so. It checks what the real one would:
   that contexts, functions and ranges of memory exist, and that large shared memory was
   asked for. Built twice: with FAKE_OLD it lacks what old drivers lack.

   FAKE_CUDA_SM=80, _MIB=64 compute capability and memory of its devices
   FAKE_CUDA_PTXAS=COMMAND  assembles each module and refuses what is refused */
#include "tests/fake_cuda/fake_cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_PTX = 218,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500
};

typedef struct Context {
    int device;
    unsigned long long id;
} Context;

typedef struct Memory {
    struct Memory *next;
    size_t size;
    unsigned char *bytes;
} Memory;

typedef struct Module {
    Context *context;
    int dynamic_shared, registers, local_bytes;
    char kernel[128];
    int nparam;
    int waits; /* for the primary grid, somewhere */
} Module;

typedef struct Current {
    Context *stack[16];
    int n;
} Current;

static FakeCuda state = {
    .devices = 2, .sm = 90, .shared_max = 232448, .memory = (int64_t)64 << 20};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Memory *memory;
static int64_t used;
static Context *primary[16];
static int retained[16];
static unsigned long long ids;
static _Thread_local Current current;

EXPORT FakeCuda *
fake_cuda(void)
{
    return &state;
}

/* Counts the call; the error that it must return, or 0. */
static int
called(const char *name)
{
    int code = 0;
    pthread_mutex_lock(&lock);
    state.calls++;
    if (state.fail_at && (state.calls == state.fail_at ||
                          (state.fail_for_ever && state.calls > state.fail_at))) {
        code = state.fail_code;
        if (state.calls == state.fail_at)
            snprintf(state.failed, sizeof state.failed, "%s", name);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

#define CALL()                                                                           \
    do {                                                                                 \
        int code_ = called(__func__);                                                    \
        if (code_)                                                                       \
            return code_;                                                                \
    } while (0)

static void
born(int n)
{
    pthread_mutex_lock(&lock);
    state.live += n;
    pthread_mutex_unlock(&lock);
}

static Context *
now(void)
{
    return current.n ? current.stack[current.n - 1] : NULL;
}

/* ---------------------------------------------------------------- devices */

EXPORT int
cuInit(unsigned flags)
{
    const char *sm = getenv("FAKE_CUDA_SM"), *mib = getenv("FAKE_CUDA_MIB");
    CALL();
    state.sm = sm ? atoi(sm) : state.sm;
    state.memory = mib ? (int64_t)atoi(mib) << 20 : state.memory;
    return flags ? INVALID_VALUE : OK;
}

EXPORT int
cuDriverGetVersion(int *version)
{
    CALL();
    *version = state.driver ? state.driver : 13000;
    return OK;
}

EXPORT int
cuGetErrorString(int code, const char **text)
{
    *text = code == OUT_OF_MEMORY ? "out of memory" : "made to fail";
    return OK;
}

EXPORT int
cuDeviceGetCount(int *n)
{
    CALL();
    *n = state.devices;
    return OK;
}

EXPORT int
cuDeviceGet(int *device, int ordinal)
{
    CALL();
    *device = ordinal;
    return ordinal < state.devices ? OK : INVALID_DEVICE;
}

EXPORT int
cuDeviceGetName(char *name, int size, int device)
{
    CALL();
    snprintf(name, (size_t)size, "Fake GPU %d", device);
    return OK;
}

EXPORT int
cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    CALL();
    *bytes = (size_t)state.memory;
    return OK;
}

EXPORT int
cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    CALL();
    switch (attribute) {
    case 5: *value = 2147483647; return OK;
    case 6: case 7: *value = 65535; return OK;
    case 8: *value = 49152; return OK;
    case 13: case 36: *value = 1980000; return OK;
    case 16: *value = 132; return OK;
    case 75: *value = state.sm / 10; return OK;
    case 76: *value = state.sm % 10; return OK;
    case 97: *value = state.shared_max; return OK;
    default: return INVALID_VALUE;
    }
}

/* ---------------------------------------------------------------- contexts */

static Context *
context_new(int device)
{
    Context *c = calloc(1, sizeof *c);
    c->device = device;
    pthread_mutex_lock(&lock);
    c->id = ++ids;
    state.live++;
    pthread_mutex_unlock(&lock);
    return c;
}

EXPORT int
cuDevicePrimaryCtxRetain(void **out, int device)
{
    CALL();
    if (!primary[device])
        primary[device] = context_new(device);
    retained[device]++;
    *out = primary[device];
    return OK;
}

EXPORT int
cuDevicePrimaryCtxRelease_v2(int device)
{
    CALL();
    if (!retained[device])
        return INVALID_CONTEXT;
    if (--retained[device] == 0) {
        free(primary[device]);
        primary[device] = NULL;
        born(-1);
    }
    return OK;
}

/* For tests that bring a context of their own. */
EXPORT int
cuCtxCreate_v2(void **out, unsigned flags, int device)
{
    (void)flags;
    *out = context_new(device);
    current.stack[current.n++] = *out;
    return OK;
}

EXPORT int
cuCtxDestroy_v2(void *context)
{
    if (now() == context)
        current.n--;
    free(context);
    born(-1);
    return OK;
}

EXPORT int
cuCtxGetCurrent(void **out)
{
    CALL();
    *out = now();
    return OK;
}

EXPORT int
cuCtxGetDevice(int *device)
{
    CALL();
    if (!now())
        return INVALID_CONTEXT;
    *device = now()->device;
    return OK;
}

EXPORT int
cuCtxGetId(void *context, unsigned long long *id)
{
    CALL();
    *id = ((Context *)context)->id;
    return OK;
}

EXPORT int
cuCtxPushCurrent_v2(void *context)
{
    CALL();
    if (!context || current.n == 16)
        return INVALID_CONTEXT;
    current.stack[current.n++] = context;
    return OK;
}

EXPORT int
cuCtxPopCurrent_v2(void **out)
{
    int code = called(__func__); /* a driver that fails here still pops */
    *out = now();
    if (!current.n)
        return INVALID_CONTEXT;
    current.n--;
    return code;
}

EXPORT int
cuCtxSynchronize(void)
{
    CALL();
    return now() ? OK : INVALID_CONTEXT;
}

/* ---------------------------------------------------------------- modules */

/* What ptxas says of a module: the first error, or what the kernel uses. */
static void
listen(FILE *said, Module *m, char *log, size_t size)
{
    char line[512];
    *log = '\0';
    while (said && fgets(line, sizeof line, said)) {
        const char *regs = strstr(line, "Used "), *stack = strstr(line, "bytes stack");
        if (regs)
            m->registers = atoi(regs + 5);
        if (stack)
            m->local_bytes = atoi(line + strspn(line, " "));
        if (!*log && strstr(line, "error"))
            snprintf(log, size, "%s", line);
    }
}

/* Assembles a module if there is something to do it with. */
static int
assemble(const char *ptx, Module *m, char *log, size_t size)
{
    const char *command = getenv("FAKE_CUDA_PTXAS");
    const char *target = strstr(ptx, ".target ");
    char path[] = "/tmp/fake_cuda.XXXXXX", line[512], arch[16] = "";
    int fd, code = INVALID_PTX;
    m->registers = 40;
    *log = '\0';
    if (!command)
        return OK;
    if (!target || sscanf(target + 8, "%15[a-z0-9_]", arch) != 1 ||
        (fd = mkstemp(path)) < 0)
        return INVALID_PTX;
    FILE *f = fdopen(fd, "w");
    if (f && fputs(ptx, f) >= 0 && fclose(f) == 0) {
        snprintf(line, sizeof line, "%s -v -arch=%s -o /dev/null %s 2>&1", command, arch,
                 path);
        FILE *said = popen(line, "r");
        listen(said, m, log, size);
        if (said && pclose(said) == 0)
            code = OK;
    }
    unlink(path);
    return code;
}

EXPORT int
cuModuleLoadDataEx(void **out, const void *image, unsigned n, int *options, void **values)
{
    static const char log[] = "ptxas application ptx input, line 1; fatal: made to fail";
    int code = called(__func__);
    if (code) {
        for (unsigned i = 0; i < n; i++)
            if (options[i] == 5)
                strcpy(values[i], log);
        return code;
    }
    if (!now())
        return INVALID_CONTEXT;
    const char *entry = strstr(image, ".entry ");
    if (!entry || !strstr(image, ".target sm_"))
        return INVALID_PTX;
    char said[1024];
    Module *m = calloc(1, sizeof *m);
    if (assemble(image, m, said, sizeof said) != OK) {
        for (unsigned i = 0; i < n; i++)
            if (options[i] == 5)
                strcpy(values[i], said);
        free(m);
        return INVALID_PTX;
    }
    m->context = now();
    m->waits = strstr(entry, "griddepcontrol.wait;") != NULL;
    sscanf(entry + 7, "%127[^( \n]", m->kernel);
    const char *end = strchr(entry, ')');
    for (const char *p = strstr(entry, ".param"); p && p < end;
         p = strstr(p + 1, ".param"))
        m->nparam++;
    *out = m;
    born(1);
    return OK;
}

/* The linker keeps the text, which is loaded as if it were machine code. */
#ifndef FAKE_OLD
EXPORT int
cuLinkCreate_v2(unsigned n, int *options, void **values, void **out)
{
    (void)n, (void)options, (void)values;
    CALL();
    if (!now())
        return INVALID_CONTEXT;
    *out = calloc(1, sizeof(char *));
    born(1);
    return OK;
}

EXPORT int
cuLinkAddData_v2(void *link, int type, const void *data, size_t size, const char *name,
                 unsigned n, int *options, void **values)
{
    (void)name, (void)n, (void)options, (void)values;
    CALL();
    if (type != 1 || !size || ((const char *)data)[size - 1])
        return INVALID_VALUE;
    *(char **)link = strdup(data);
    return OK;
}

EXPORT int
cuLinkComplete(void *link, void **image, size_t *size)
{
    CALL();
    *image = *(char **)link;
    *size = strlen(*image) + 1;
    return OK;
}

EXPORT int
cuLinkDestroy(void *link)
{
    free(*(char **)link);
    free(link);
    born(-1);
    return OK;
}
#endif

EXPORT int
cuModuleUnload(void *module)
{
    int code = called(__func__); /* what fails to unload is gone all the same */
    free(module);
    born(-1);
    return code;
}

EXPORT int
cuModuleGetFunction(void **out, void *module, const char *name)
{
    CALL();
    *out = module;
    return strcmp(((Module *)module)->kernel, name) == 0 ? OK : NOT_FOUND;
}

EXPORT int
cuFuncGetAttribute(int *value, int attribute, void *function)
{
    const Module *m = function;
    CALL();
    *value = attribute == 4 ? m->registers : attribute == 3 ? m->local_bytes : 0;
    return OK;
}

EXPORT int
cuFuncSetAttribute(void *function, int attribute, int value)
{
    CALL();
    if (attribute != 8 || value > state.shared_max)
        return INVALID_VALUE;
    ((Module *)function)->dynamic_shared = value;
    return OK;
}

#ifndef FAKE_OLD
/* Overlap with the launch in front, of a kernel that waits for it; clusters of two. */
static int
attributes_are_right(const Config *c, const Module *m, FakeLaunch *l)
{
    int right = 1;
    for (const Attribute *a = c->attributes; a < c->attributes + c->nattribute; a++) {
        int pairs = a->id == 4 && a->value[0] == 2 && c->grid[0] % 2 == 0;
        right &= pairs || (a->id == 6 && *a->value == 1 && m->waits);
        *(a->id == 6 ? &l->overlap : &l->cluster) = *a->value;
    }
    return right;
}

EXPORT int
cuLaunchKernelEx(const Config *c, void *function, void **params, void **extra)
{
    Module *m = function;
    FakeLaunch l = {0};
    CALL();
    if (extra || !m || !attributes_are_right(c, m, &l))
        return INVALID_VALUE;
    if (m->context != now())
        return INVALID_HANDLE;
    for (int i = 0; i < 3; i++)
        if (!c->grid[i] || !c->block[i])
            return INVALID_VALUE;
    if (c->shared > 49152 && (int)c->shared > m->dynamic_shared)
        return INVALID_VALUE;
    l.shared = c->shared;
    l.stream = c->stream;
    l.context = now();
    l.nparam = m->nparam < 64 ? m->nparam : 64;
    memcpy(l.grid, c->grid, sizeof l.grid);
    memcpy(l.block, c->block, sizeof l.block);
    memcpy(l.kernel, m->kernel, sizeof l.kernel);
    for (int i = 0; i < l.nparam; i++)
        memcpy(&l.params[i], params[i], 8);
    pthread_mutex_lock(&lock);
    state.last = l;
    state.launches++;
    pthread_mutex_unlock(&lock);
    return OK;
}
#endif

/* ---------------------------------------------------------------- tensor maps */

#ifndef FAKE_OLD
/* What the programming guide asks for. */
static int
map_is_right(unsigned rank, const uint64_t *dim, const uint64_t *stride,
             const unsigned *box, const unsigned *step, int bytes, int span)
{
    if (rank < 1 || rank > 5 || (box[0] * (unsigned)bytes) % 16)
        return 0;
    if (span && box[0] * (unsigned)bytes > (unsigned)span)
        return 0;
    for (unsigned i = 0; i < rank; i++) {
        if (dim[i] < 1 || dim[i] > (uint64_t)1 << 32 || box[i] < 1 || box[i] > 256 ||
            step[i] != 1)
            return 0;
        if (i && (!stride[i - 1] || stride[i - 1] % 16 || stride[i - 1] >> 40))
            return 0;
    }
    return 1;
}

/* The map says what it was made of: address, sizes, strides, boxes. */
EXPORT int
cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address,
                       const uint64_t *dim, const uint64_t *stride, const unsigned *box,
                       const unsigned *step, int interleave, int swizzle, int promotion,
                       int fill)
{
    static const int bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    static const int span[] = {0, 32, 64, 128};
    uint64_t words[16] = {(uint64_t)(uintptr_t)address};
    CALL();
    if (!now())
        return INVALID_CONTEXT;
    if ((uintptr_t)map % 64 || (uintptr_t)address % 16 || type < 0 || type > 12 ||
        interleave || swizzle < 0 || swizzle > 3 || promotion < 0 || promotion > 3 ||
        fill < 0 || fill > 1 ||
        !map_is_right(rank, dim, stride, box, step, bytes[type], span[swizzle]))
        return INVALID_VALUE;
    for (unsigned i = 0; i < rank; i++) {
        words[1 + i] = dim[i];
        words[6 + i] = i ? stride[i - 1] : (uint64_t)bytes[type];
        words[11 + i] = box[i];
    }
    memcpy(map, words, sizeof words);
    pthread_mutex_lock(&lock);
    state.maps++;
    state.last_map[0] = words[1];
    state.last_map[1] = words[2];
    state.promotions[promotion]++;
    pthread_mutex_unlock(&lock);
    return OK;
}
#endif

/* ---------------------------------------------------------------- memory */

EXPORT int
cuMemAlloc_v2(uint64_t *out, size_t bytes)
{
    CALL();
    if (!now())
        return INVALID_CONTEXT;
    if (used + (int64_t)bytes > state.memory)
        return OUT_OF_MEMORY;
    Memory *m = calloc(1, sizeof *m);
    m->size = bytes;
    m->bytes = aligned_alloc(512, (bytes + 511) / 512 * 512);
    pthread_mutex_lock(&lock);
    m->next = memory;
    memory = m;
    used += (int64_t)bytes;
    state.live++;
    pthread_mutex_unlock(&lock);
    *out = (uint64_t)(uintptr_t)m->bytes;
    return OK;
}

EXPORT int
cuMemFree_v2(uint64_t at)
{
    int code = called(__func__); /* what fails to be freed is gone all the same */
    pthread_mutex_lock(&lock);
    Memory **m = &memory;
    while (*m && (uint64_t)(uintptr_t)(*m)->bytes != at)
        m = &(*m)->next;
    Memory *found = *m;
    if (found) {
        *m = found->next;
        used -= (int64_t)found->size;
        state.live--;
        free(found->bytes);
        free(found);
    }
    pthread_mutex_unlock(&lock);
    return found ? code : INVALID_VALUE;
}
#include "tests/fake_cuda/pools.h"
/* The bytes at an address, when all of them belong to one allocation. */
static void *
range(uint64_t at, size_t bytes)
{
    void *found = NULL;
    pthread_mutex_lock(&lock);
    for (Memory *m = memory; m && !found; m = m->next) {
        uint64_t first = (uint64_t)(uintptr_t)m->bytes;
        if (at >= first && at + bytes <= first + m->size)
            found = (void *)(uintptr_t)at;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

EXPORT int
cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    CALL();
    *free_bytes = (size_t)(state.memory - used);
    *total = (size_t)state.memory;
    return OK;
}

EXPORT int
cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    void *p = range(to, bytes);
    CALL();
    if (p)
        memcpy(p, from, bytes);
    return p ? OK : INVALID_VALUE;
}

EXPORT int
cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    const void *p = range(from, bytes);
    CALL();
    if (p)
        memcpy(to, p, bytes);
    return p ? OK : INVALID_VALUE;
}

EXPORT int
cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes)
{
    void *p = range(to, bytes);
    const void *q = range(from, bytes);
    CALL();
    if (p && q)
        memcpy(p, q, bytes);
    return p && q ? OK : INVALID_VALUE;
}

EXPORT int
cuMemsetD8_v2(uint64_t at, unsigned char byte, size_t bytes)
{
    void *p = range(at, bytes);
    CALL();
    if (p)
        memset(p, byte, bytes);
    return p ? OK : INVALID_VALUE;
}

/* ---------------------------------------------------------------- streams, events */

static int
object_new(void **out)
{
    if (!now())
        return INVALID_CONTEXT;
    *out = calloc(1, 16);
    born(1);
    return OK;
}

static int
object_free(void *object)
{
    free(object);
    born(-1);
    return OK;
}

EXPORT int
cuStreamCreate(void **out, unsigned flags)
{
    (void)flags;
    CALL();
    return object_new(out);
}

#define DESTROYS(name) \
    EXPORT int name(void *object) \
    { \
        return object_free(object); \
    }
DESTROYS(cuStreamDestroy_v2)
DESTROYS(cuGraphDestroy)
DESTROYS(cuGraphExecDestroy)
DESTROYS(cuEventDestroy_v2)

EXPORT int
cuStreamSynchronize(void *stream)
{
    (void)stream;
    CALL();
    return OK;
}

EXPORT int
cuStreamBeginCapture_v2(void *stream, int mode)
{
    (void)mode;
    CALL();
    state.captured = stream;
    return stream ? OK : INVALID_VALUE;
}

EXPORT int
cuStreamIsCapturing(void *stream, int *status)
{
    CALL();
    *status = stream && stream == state.captured;
    return OK;
}

EXPORT int
cuStreamEndCapture(void *stream, void **graph)
{
    CALL();
    state.captured = NULL;
    return stream ? object_new(graph) : INVALID_VALUE;
}

EXPORT int
cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags)
{
    (void)graph;
    (void)flags;
    CALL();
    return object_new(out);
}

EXPORT int
cuGraphLaunch(void *graph, void *stream)
{
    (void)stream;
    CALL();
    return graph ? OK : INVALID_VALUE;
}

EXPORT int
cuEventCreate(void **out, unsigned flags)
{
    (void)flags;
    CALL();
    return object_new(out);
}

EXPORT int
cuEventRecord(void *event, void *stream)
{
    (void)stream;
    CALL();
    return event ? OK : INVALID_VALUE;
}

EXPORT int
cuEventSynchronize(void *event)
{
    CALL();
    return event ? OK : INVALID_VALUE;
}

EXPORT int
cuEventElapsedTime(float *ms, void *from, void *to)
{
    CALL();
    *ms = 0.5f;
    return from && to ? OK : INVALID_VALUE;
}

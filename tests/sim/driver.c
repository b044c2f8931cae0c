/* A CUDA driver whose GPU is the simulator: $SDC_LIBCUDA=libsimcuda.so. Everything that
   has nothing to do with running kernels is the fake driver's, which is included here
   with its calls for modules, launches and tensor maps under other names.

   SIM_SEED=N         of the first launch, 1; each launch takes the next one. 0: in order
   SIM_PROCESSORS=N   SMs of the device, 132
   SIM_ANY_READ=1     shared memory that nothing wrote may be read
   SIM_VERBOSE=1      a line for each launch on stderr
   SIM_DUMP=FOLDER    keeps the PTX of each module, NUMBER.ptx in the order of loading */
#include "tests/sim/sim.h"

#define cuInit                 fake_cuInit
#define cuGetErrorString       fake_cuGetErrorString
#define cuDeviceGetAttribute   fake_cuDeviceGetAttribute
#define cuModuleLoadDataEx     fake_cuModuleLoadDataEx
#define cuModuleUnload         fake_cuModuleUnload
#define cuLaunchKernelEx       fake_cuLaunchKernelEx
#define cuTensorMapEncodeTiled fake_cuTensorMapEncodeTiled
#include "tests/fake_cuda/fake_cuda.c" /* NOLINT */
#undef cuInit
#undef cuGetErrorString
#undef cuDeviceGetAttribute
#undef cuModuleLoadDataEx
#undef cuModuleUnload
#undef cuLaunchKernelEx
#undef cuTensorMapEncodeTiled

enum { LAUNCH_FAILED = 719, MAX_LOADED = 4096, MAX_RANGES = 4096 };

typedef struct Loaded { /* a module of the fake driver's, and the simulator's */
    void *fake;
    SimModule *sim;
} Loaded;

static Loaded loaded[MAX_LOADED];
static int nloaded;
static char failure[700] = "made to fail";
static unsigned long launches;

EXPORT int
cuInit(unsigned flags)
{
    state.memory = (int64_t)8 << 30;
    return fake_cuInit(flags);
}

EXPORT int
cuGetErrorString(int code, const char **text)
{
    if (code != LAUNCH_FAILED)
        return fake_cuGetErrorString(code, text);
    *text = failure;
    return OK;
}

EXPORT int
cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const char *n = getenv("SIM_PROCESSORS");
    int code = fake_cuDeviceGetAttribute(value, attribute, device);
    if (attribute == 16 && n)
        *value = atoi(n);
    return code;
}

static void
dump(const char *ptx)
{
    static _Atomic int number;
    const char *folder = getenv("SIM_DUMP");
    char path[4096];
    if (!folder || !*folder)
        return;
    snprintf(path, sizeof path, "%s/%d.ptx", folder, number++);
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(ptx, f);
        fclose(f);
    }
}

EXPORT int
cuModuleLoadDataEx(void **out, const void *image, unsigned n, int *options, void **values)
{
    char said[1024];
    int code = fake_cuModuleLoadDataEx(out, image, n, options, values);
    if (code)
        return code;
    dump(image);
    SimModule *m = sim_load(image, said, sizeof said);
    pthread_mutex_lock(&lock);
    if (m && nloaded < MAX_LOADED)
        loaded[nloaded++] = (Loaded){*out, m};
    pthread_mutex_unlock(&lock);
    for (unsigned k = 0; k < n && !m; k++)
        if (options[k] == 5)
            strcpy(values[k], said);
    return m ? OK : INVALID_PTX;
}

static SimModule *
sim_of(const void *module, int take)
{
    SimModule *m = NULL;
    pthread_mutex_lock(&lock);
    for (int k = nloaded - 1; k >= 0 && !m; k--)
        if (loaded[k].fake == module) {
            m = loaded[k].sim;
            if (take)
                loaded[k] = loaded[--nloaded];
        }
    pthread_mutex_unlock(&lock);
    return m;
}

EXPORT int
cuModuleUnload(void *module)
{
    sim_unload(sim_of(module, 1));
    return fake_cuModuleUnload(module);
}

static int
number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

static int
cluster_of(const Config *c)
{
    for (unsigned k = 0; k < c->nattribute; k++)
        if (c->attributes[k].id == 4)
            return c->attributes[k].value[0];
    return 0;
}

EXPORT int
cuLaunchKernelEx(const Config *c, void *function, void **params, void **extra)
{
    static const char why[] = "the simulator found: ";
    SimModule *m = sim_of(function, 0);
    SimKernelInfo info;
    SimStats stats;
    char message[600];
    int seed = number("SIM_SEED", 1),
        code = fake_cuLaunchKernelEx(c, function, params, extra);
    if (code)
        return code;
    const char *name = ((Module *)function)->kernel;
    if (!m || !sim_kernel_info(m, name, &info))
        return NOT_FOUND;
    SimRange *ranges = calloc(MAX_RANGES, sizeof *ranges);
    SimLaunch q = {.kernel = name,
                   .params = (const void *const *)params,
                   .nparam = info.nparam,
                   .grid = {(int)c->grid[0], (int)c->grid[1], (int)c->grid[2]},
                   .threads = (int)c->block[0],
                   .cluster = cluster_of(c),
                   .shared = c->shared ? c->shared : 16,
                   .ranges = ranges,
                   .any_read = number("SIM_ANY_READ", 0)};
    pthread_mutex_lock(&lock);
    for (const Memory *x = memory; x && q.nrange < MAX_RANGES; x = x->next)
        ranges[q.nrange++] = (SimRange){x->bytes, x->size};
    q.seed = seed ? (uint64_t)seed + launches++ : 0;
    pthread_mutex_unlock(&lock);
    SimStatus s = sim_run(m, &q, &stats, message, sizeof message);
    free(ranges);
    if (number("SIM_VERBOSE", 0))
        fprintf(stderr,
                "%s, grid %u,%u,%u%s: %s, %llu instructions, %llu wgmma, %llu copies\n",
                name, c->grid[0], c->grid[1], c->grid[2],
                q.cluster > 1 ? " in clusters" : "", s ? message : "ok",
                (unsigned long long)stats.instructions, (unsigned long long)stats.wgmma,
                (unsigned long long)stats.copies);
    if (s == SIM_OK)
        return OK;
    pthread_mutex_lock(&lock);
    snprintf(failure, sizeof failure, "%s%s, seed %llu: %s", why, sim_status_name(s),
             (unsigned long long)q.seed, message);
    pthread_mutex_unlock(&lock);
    return LAUNCH_FAILED;
}

/* The fake driver's checks, and the simulator's bytes. */
EXPORT int
cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address,
                       const uint64_t *dim, const uint64_t *stride, const unsigned *box,
                       const unsigned *step, int interleave, int swizzle, int promotion,
                       int fill)
{
    static const int bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    int code = fake_cuTensorMapEncodeTiled(map, type, rank, address, dim, stride, box,
                                           step, interleave, swizzle, promotion, fill);
    if (code)
        return code;
    SimMap m = {.base = address,
                .rank = (int)rank,
                .type = type,
                .swizzle = swizzle ? 16 << swizzle : 0,
                .nan = fill};
    for (unsigned k = 0; k < rank; k++) {
        m.dim[k] = dim[k];
        m.stride[k] = k ? stride[k - 1] : (uint64_t)bytes[type];
        m.box[k] = box[k];
    }
    sim_map_encode(&m, map);
    return OK;
}

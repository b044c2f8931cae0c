/* A kernel from the cache on disk, or compiled and put there.

   The key is everything that the compiler is given: the text with its path, the
   specialization, the options, the target with its features, and the build of the
   compiler itself. Imports are found only while compiling, so they are kept with the
   entry and compared when it is read. */
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

static void
add_text(CacheBytes *key, const char *text)
{
    /* Absent differs from empty. */
    cache_field(key, text ? text : "\1none", text ? strlen(text) : 5);
}

static void
add_number(CacheBytes *key, int64_t x)
{
    cache_field(key, &x, sizeof x);
}

/* False when nothing can be cached. */
static bool
make_key(CacheBytes *key, const CompileJob *job)
{
    const SdcCompileOptions *o = &job->opt;
    add_text(key, "sdc " SDC_VERSION);
    if (!cache_build_id(key))
        return false;
    add_text(key, o->target);
    add_text(key, o->cpu);
    if (o->cpu && strcmp(o->cpu, "native") == 0) {
        char *host = codegen_host_cpu();
        if (!host)
            return false;
        add_text(key, host);
        free(host);
    }
    add_number(key, o->emit);
    add_number(key, o->lineinfo);
    add_number(key, job->debug);
    add_number(key, job->check);
    add_number(key, job->maps);
    add_number(key, job->folds);
    add_number(key, job->once);
    add_number(key, job->is_tir);
    add_text(key, o->kernel);
    add_text(key, o->signature);
    add_number(key, o->nbind);
    for (int i = 0; i < o->nbind; i++)
        add_text(key, o->bind[i]);
    add_number(key, job->nvalue);
    for (int i = 0; i < job->nvalue; i++) {
        add_number(key, job->values[i].known);
        add_number(key, job->values[i].i);
    }
    add_number(key, job->front.ninclude);
    for (int i = 0; i < job->front.ninclude; i++)
        add_text(key, job->front.include_dirs[i]);
    add_number(key, job->front.ndefine);
    for (int i = 0; i < job->front.ndefine; i++)
        add_text(key, job->front.defines[i]);
    add_text(key, job->src.path);
    cache_field(key, job->src.text, job->src.size);
    return !key->failed;
}

static const Source *
read_and_note(void *user, Session *s, const char *path)
{
    const Source *src = front_read_disk(s, path);
    cache_dep(user, path, src ? src->text : NULL, src ? src->size : 0);
    return src;
}

typedef struct Making {
    SdcKernel *k;
    CacheBytes key, deps;
    CacheBytes code; /* from a worker */
    bool cached;     /* there is a key */
    CacheEntry entry;
} Making;

static SdcStatus
load_entry(Session *s, void *arg)
{
    Making *m = arg;
    return kernel_load(s, m->k, m->entry.code, m->entry.code_size);
}

static SdcStatus
load_and_put(Session *s, Making *m, const void *code, size_t code_size, bool warned)
{
    SdcKernel *k = m->k;
    SdcStatus status = kernel_load(s, k, code, code_size);
    /* What was warned of shall be said again next time. */
    if (status != SDC_OK || !m->cached || warned)
        return status;
    size_t size = sdcrt_meta_pack(k->meta, NULL);
    unsigned char *packed = arena_alloc(&s->tmp, size, 1);
    sdcrt_meta_pack(k->meta, packed);
    cache_put(k->mod->cx->cache, &m->key, &m->deps, packed, size, code, code_size);
    return status;
}

static SdcStatus
keep_result(Session *s, CompileResult *r, void *arg)
{
    Making *m = arg;
    if (r->nmeta < 1)
        bug(&s->fail, "code without metadata");
    *m->k->meta = r->meta[0];
    return load_and_put(s, m, r->bytes, r->size, s->diag.first != NULL);
}

static SdcStatus
load_worked(Session *s, void *arg)
{
    Making *m = arg;
    return load_and_put(s, m, m->code.data, m->code.size, false);
}

/* In a worker, whose imports nobody has noted: then nothing goes into the cache but what
   has none. */
static SdcStatus
make_outside(Making *m, const CompileJob *job)
{
    SdcContext *cx = m->k->mod->cx;
    SdcStatus status = worker_compile(cx, job, m->k->meta, &m->code);
    m->cached = false;
    if (status == SDC_OK)
        status = context_call(cx, load_worked, m);
    cache_bytes_done(&m->code);
    return status;
}

/* The entry becomes the kernel; false when it is none after all. */
static bool
take_entry(Making *m)
{
    SdcContext *cx = m->k->mod->cx;
    if (!cache_get(cx->cache, &m->key, &m->entry))
        return false;
    bool ok = sdcrt_meta_unpack(m->entry.meta, m->entry.meta_size, m->k->meta) &&
              context_call(cx, load_entry, m) == SDC_OK;
    free(m->entry.memory);
    if (!ok)
        kernel_unload(m->k);
    return ok;
}

SdcStatus
kernel_make(SdcKernel *k, CompileJob *job)
{
    SdcContext *cx = k->mod->cx;
    Making m = {.k = k};
    k->meta = calloc(1, sizeof *k->meta);
    if (!k->meta)
        return context_fail(cx, SDC_ERROR_MEMORY, "out of memory");
    m.cached = cx->cache && make_key(&m.key, job);
    bool hit = m.cached && take_entry(&m);
    SdcStatus status = SDC_OK;
    if (cx->cache)
        atomic_fetch_add(hit ? &cx->hits : &cx->misses, 1);
    if (!hit) {
        if (m.cached) {
            job->front.read_file = read_and_note;
            job->front.user = &m.deps;
        }
        /* A worker is asked for what the public interface has. */
        bool outside = cx->worker && !job->values && job->maps == MAPS_ANY &&
                       !job->folds && !job->once;
        status = outside ? make_outside(&m, job) : compile_call(cx, job, keep_result, &m);
    }
    cache_bytes_done(&m.key);
    cache_bytes_done(&m.deps);
    return status;
}

SdcStatus
sdc_cache(SdcContext *cx, SdcCacheAction action, int64_t limit, SdcCacheInfo *out)
{
    static const CacheAction todo[] = {
        [SDC_CACHE_STAT] = CACHE_STAT,
        [SDC_CACHE_VERIFY] = CACHE_VERIFY,
        [SDC_CACHE_GC] = CACHE_GC,
        [SDC_CACHE_CLEAR] = CACHE_CLEAR,
    };
    CacheFound found = {0};
    if (out)
        *out = (SdcCacheInfo){0};
    if (!cx)
        return SDC_ERROR_ARGUMENT;
    if ((unsigned)action >= COUNT_OF(todo))
        return context_fail(cx, SDC_ERROR_ARGUMENT, "cache: no such action");
    if (!cx->cache)
        return context_fail(cx, SDC_ERROR_ENVIRONMENT,
                            "there is no kernel cache: no folder for it, one that others "
                            "may write to, or SDC_CACHE is off");
    limit = limit < 0 ? cache_limit() : limit;
    bool ok = cache_walk(cx->cache, todo[action], limit, &found);
    if (out)
        *out = (SdcCacheInfo){.dir = cache_dir(cx->cache),
                              .entries = found.entries,
                              .bytes = found.bytes,
                              .bad = found.bad,
                              .removed = found.removed,
                              .temporaries = found.temporaries,
                              .limit = limit,
                              .hits = atomic_load(&cx->hits),
                              .misses = atomic_load(&cx->misses)};
    return ok ? SDC_OK
              : context_fail(cx, SDC_ERROR_ENVIRONMENT, "'%s' cannot be read",
                             cache_dir(cx->cache));
}

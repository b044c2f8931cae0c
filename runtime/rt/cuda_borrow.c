/* Temporary memory in the order of a stream, out of a pool of the handle's own: the
   driver's default one belongs to the host program, and gives memory back to the system
   at every synchronization unless told otherwise. */
#include "runtime/rt/cuda_driver.h"

int
sdcrt_cuda_lends(const SdcrtCuda *c)
{
    const Driver *d = c ? &c->d : NULL;
    return d && d->pool_create && d->pool_set && d->pool_destroy && d->pool_alloc &&
           d->pool_free;
}

/* Called under the lock. */
static int
open_pool(SdcrtCuda *c, void **out)
{
    CudaPoolProps props = {
        .type = CUDA_POOL_PINNED, .place = CUDA_POOL_DEVICE, .device = c->device};
    uint64_t keep = UINT64_MAX; /* bytes that stay when nobody has them */
    int code = c->d.pool_create(out, &props);
    if (!code && (code = c->d.pool_set(*out, CUDA_POOL_KEEP, &keep)) != 0)
        c->d.pool_destroy(*out);
    if (!code)
        atomic_store_explicit(&c->pool, *out, memory_order_release);
    return code;
}

static int
pool_of(SdcrtCuda *c, void **out)
{
    int code = 0;
    *out = atomic_load_explicit(&c->pool, memory_order_acquire);
    if (*out)
        return 0;
    pthread_mutex_lock(&c->lock);
    *out = atomic_load_explicit(&c->pool, memory_order_relaxed);
    if (!*out)
        code = open_pool(c, out);
    pthread_mutex_unlock(&c->lock);
    return code;
}

SdcrtStatus
sdcrt_cuda_borrow(SdcrtCuda *c, size_t bytes, void *stream, uint64_t *out,
                  SdcrtError *e)
{
    CudaScope s;
    void *pool;
    if (!out)
        return cuda_missing(e, "borrow: out");
    *out = 0;
    SdcrtStatus status = cuda_enter(c, &s, e);
    if (status != SDCRT_OK)
        return status;
    if (!sdcrt_cuda_lends(c)) {
        cuda_leave(c, &s);
        return cuda_refuse(e, SDCRT_ERROR_CODE, "the driver of %s has no memory pools",
                           c->info.name);
    }
    int code = pool_of(c, &pool);
    if (!code)
        code = c->d.pool_alloc(out, bytes ? bytes : 1, pool, stream);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "%zu bytes of temporary memory", bytes)
                : SDCRT_OK;
}

SdcrtStatus
sdcrt_cuda_return(SdcrtCuda *c, uint64_t address, void *stream, SdcrtError *e)
{
    CudaScope s;
    if (!address)
        return SDCRT_OK;
    SdcrtStatus status = cuda_enter(c, &s, e);
    if (status != SDCRT_OK)
        return status;
    int code = c->d.pool_free(address, stream);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "temporary memory cannot be returned")
                : SDCRT_OK;
}

/* Memory pools of the fake driver: part of fake_cuda.c. Work is done when a launch
   returns, so the order of a stream is that of the calls. */
#ifndef FAKE_OLD
EXPORT int
cuMemPoolCreate(void **out, const int *props)
{
    CALL();
    if (props[0] != 1 || props[2] != 1)
        return INVALID_VALUE;
    *out = malloc(1);
    born(1);
    return OK;
}

EXPORT int
cuMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    CALL();
    return pool && value && attribute == 4 ? OK : INVALID_VALUE;
}

EXPORT int
cuMemPoolDestroy(void *pool)
{
    int code = called(__func__);
    free(pool);
    born(-1);
    return code;
}

EXPORT int
cuMemAllocFromPoolAsync(uint64_t *out, size_t bytes, void *pool, void *stream)
{
    (void)stream;
    return pool ? cuMemAlloc_v2(out, bytes) : INVALID_VALUE;
}

EXPORT int
cuMemFreeAsync(uint64_t at, void *stream)
{
    (void)stream;
    return cuMemFree_v2(at);
}
#endif

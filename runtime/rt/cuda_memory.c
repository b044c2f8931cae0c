/* Memory of the device, streams, events and graphs: each one call of the driver inside a
   context. */
#include "runtime/rt/cuda_driver.h"

enum { CAPTURE_THREAD_LOCAL = 1, STREAM_NON_BLOCKING = 1 };

/* What is freed is freed, also where no context can be entered: the driver knows whose it
   is. */
static void
free_enter(SdcrtCuda *c, CudaScope *s)
{
    if (cuda_enter(c, s, NULL) != SDCRT_OK)
        s->pushed = 0;
}

SdcrtStatus
sdcrt_cuda_alloc(SdcrtCuda *c, size_t bytes, uint64_t *out, SdcrtError *e)
{
    CudaScope s;
    if (!out)
        return cuda_missing(e, "alloc: out");
    *out = 0;
    SdcrtStatus status = cuda_enter(c, &s, e);
    if (status != SDCRT_OK)
        return status;
    int code = c->d.mem_alloc(out, bytes ? bytes : 1);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "%zu bytes of device memory", bytes) : SDCRT_OK;
}

SdcrtStatus
sdcrt_cuda_free(SdcrtCuda *c, uint64_t address, SdcrtError *e)
{
    CudaScope s;
    if (!address)
        return SDCRT_OK;
    if (!c)
        return cuda_missing(e, "the device");
    free_enter(c, &s);
    int code = c->d.mem_free(address);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "device memory cannot be freed") : SDCRT_OK;
}

SdcrtStatus
sdcrt_cuda_write(SdcrtCuda *c, uint64_t to, const void *from, size_t bytes,
                 SdcrtError *e)
{
    CudaScope s;
    if (bytes && !from)
        return cuda_missing(e, "write: from");
    SdcrtStatus status = bytes ? cuda_enter(c, &s, e) : SDCRT_OK;
    if (status != SDCRT_OK || !bytes)
        return status;
    int code = c->d.copy_in(to, from, bytes);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "copy of %zu bytes to the device", bytes)
                : SDCRT_OK;
}

SdcrtStatus
sdcrt_cuda_read(SdcrtCuda *c, void *to, uint64_t from, size_t bytes, SdcrtError *e)
{
    CudaScope s;
    if (bytes && !to)
        return cuda_missing(e, "read: to");
    SdcrtStatus status = bytes ? cuda_enter(c, &s, e) : SDCRT_OK;
    if (status != SDCRT_OK || !bytes)
        return status;
    int code = c->d.copy_out(to, from, bytes);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "copy of %zu bytes from the device", bytes)
                : SDCRT_OK;
}

SdcrtStatus
sdcrt_cuda_copy(SdcrtCuda *c, uint64_t to, uint64_t from, size_t bytes, SdcrtError *e)
{
    CudaScope s;
    SdcrtStatus status = bytes ? cuda_enter(c, &s, e) : SDCRT_OK;
    if (status != SDCRT_OK || !bytes)
        return status;
    int code = c->d.copy_there(to, from, bytes);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "copy of %zu bytes on the device", bytes)
                : SDCRT_OK;
}

SdcrtStatus
sdcrt_cuda_fill(SdcrtCuda *c, uint64_t at, int byte, size_t bytes, SdcrtError *e)
{
    CudaScope s;
    SdcrtStatus status = bytes ? cuda_enter(c, &s, e) : SDCRT_OK;
    if (status != SDCRT_OK || !bytes)
        return status;
    int code = c->d.fill(at, (unsigned char)byte, bytes);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "%zu bytes cannot be filled", bytes) : SDCRT_OK;
}

SdcrtStatus
sdcrt_cuda_memory(SdcrtCuda *c, size_t *free_bytes, size_t *total, SdcrtError *e)
{
    CudaScope s;
    if (!free_bytes || !total)
        return cuda_missing(e, free_bytes ? "memory: total" : "memory: free_bytes");
    SdcrtStatus status = cuda_enter(c, &s, e);
    if (status != SDCRT_OK)
        return status;
    int code = c->d.mem_info(free_bytes, total);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "free memory is unknown") : SDCRT_OK;
}

/* ---------------------------------------------------------------- streams, events */

SdcrtStatus
sdcrt_cuda_stream_create(SdcrtCuda *c, void **stream, SdcrtError *e)
{
    CudaScope s;
    if (!stream)
        return cuda_missing(e, "stream: out");
    *stream = NULL;
    SdcrtStatus status = cuda_enter(c, &s, e);
    if (status != SDCRT_OK)
        return status;
    int code = c->d.stream_create(stream, STREAM_NON_BLOCKING);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "no stream") : SDCRT_OK;
}

void
sdcrt_cuda_stream_destroy(SdcrtCuda *c, void *stream)
{
    CudaScope s;
    if (!c || !stream)
        return;
    free_enter(c, &s);
    c->d.stream_destroy(stream);
    cuda_leave(c, &s);
}

SdcrtStatus
sdcrt_cuda_stream_wait(SdcrtCuda *c, void *stream, SdcrtError *e)
{
    CudaScope s;
    SdcrtStatus status = cuda_enter(c, &s, e);
    if (status != SDCRT_OK)
        return status;
    int code = c->d.stream_wait(stream);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "what was launched failed on %s", c->info.name)
                : SDCRT_OK;
}

SdcrtStatus
sdcrt_cuda_wait(SdcrtCuda *c, SdcrtError *e)
{
    CudaScope s;
    SdcrtStatus status = cuda_enter(c, &s, e);
    if (status != SDCRT_OK)
        return status;
    int code = c->d.context_wait();
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "what was launched failed on %s", c->info.name)
                : SDCRT_OK;
}

SdcrtStatus
sdcrt_cuda_event_create(SdcrtCuda *c, void **event, SdcrtError *e)
{
    CudaScope s;
    if (!event)
        return cuda_missing(e, "event: out");
    *event = NULL;
    SdcrtStatus status = cuda_enter(c, &s, e);
    if (status != SDCRT_OK)
        return status;
    int code = c->d.event_create(event, 0);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "no event") : SDCRT_OK;
}

void
sdcrt_cuda_event_destroy(SdcrtCuda *c, void *event)
{
    CudaScope s;
    if (!c || !event)
        return;
    free_enter(c, &s);
    c->d.event_destroy(event);
    cuda_leave(c, &s);
}

SdcrtStatus
sdcrt_cuda_event_record(SdcrtCuda *c, void *event, void *stream, SdcrtError *e)
{
    CudaScope s;
    if (!event)
        return cuda_missing(e, "event_record: event");
    SdcrtStatus status = cuda_enter(c, &s, e);
    if (status != SDCRT_OK)
        return status;
    int code = c->d.event_record(event, stream);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "an event cannot be recorded") : SDCRT_OK;
}

SdcrtStatus
sdcrt_cuda_event_ms(SdcrtCuda *c, void *from, void *to, float *ms, SdcrtError *e)
{
    CudaScope s;
    if (!from || !to || !ms)
        return cuda_missing(e, !from ? "event_ms: from" : to ? "event_ms: ms"
                                                             : "event_ms: to");
    *ms = 0;
    SdcrtStatus status = cuda_enter(c, &s, e);
    if (status != SDCRT_OK)
        return status;
    int code = c->d.event_wait(to);
    if (!code)
        code = c->d.event_elapsed(ms, from, to);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "what lies between two events failed") : SDCRT_OK;
}

/* ---------------------------------------------------------------- graphs */

SdcrtStatus
sdcrt_cuda_capture(SdcrtCuda *c, void *stream, SdcrtError *e)
{
    CudaScope s;
    SdcrtStatus status = cuda_enter(c, &s, e);
    if (status != SDCRT_OK)
        return status;
    int code = c->d.capture_begin(stream, CAPTURE_THREAD_LOCAL);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "launches of a stream cannot be captured")
                : SDCRT_OK;
}

int
sdcrt_cuda_is_capturing(SdcrtCuda *c, void *stream)
{
    int status = 0; /* CU_STREAM_CAPTURE_STATUS_NONE */
    return !c || !c->d.capture_is || c->d.capture_is(stream, &status) || status;
}

SdcrtStatus
sdcrt_cuda_captured(SdcrtCuda *c, void *stream, void **graph, SdcrtError *e)
{
    CudaScope s;
    void *plan = NULL;
    if (!graph)
        return cuda_missing(e, "captured: graph");
    *graph = NULL;
    SdcrtStatus status = cuda_enter(c, &s, e);
    if (status != SDCRT_OK)
        return status;
    int code = c->d.capture_end(stream, &plan);
    if (!code)
        code = c->d.graph_instantiate(graph, plan, 0);
    if (plan)
        c->d.graph_destroy(plan);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "no graph from what was captured") : SDCRT_OK;
}

SdcrtStatus
sdcrt_cuda_graph_launch(SdcrtCuda *c, void *graph, void *stream, SdcrtError *e)
{
    CudaScope s;
    if (!graph)
        return cuda_missing(e, "graph_launch: graph");
    SdcrtStatus status = cuda_enter(c, &s, e);
    if (status != SDCRT_OK)
        return status;
    int code = c->d.graph_launch(graph, stream);
    cuda_leave(c, &s);
    return code ? cuda_fail(c, e, code, "a graph cannot be launched") : SDCRT_OK;
}

void
sdcrt_cuda_graph_destroy(SdcrtCuda *c, void *graph)
{
    CudaScope s;
    if (!c || !graph)
        return;
    free_enter(c, &s);
    c->d.graph_exec_destroy(graph);
    cuda_leave(c, &s);
}

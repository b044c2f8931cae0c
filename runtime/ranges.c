/* Memory that the host has registered with a context, for checked launches: they use the
   list, so its lock is theirs. */
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

void
ranges_free(Range *r)
{
    while (r) {
        Range *next = r->next;
        free(r->name);
        free(r->unwritten);
        free(r);
        r = next;
    }
}

Range *
range_of(const SdcContext *cx, uintptr_t at)
{
    Range *best = NULL;
    for (Range *r = cx->ranges; r; r = r->next)
        if ((at == r->lo || (at > r->lo && at < r->hi)) &&
            (!best || r->hi - r->lo < best->hi - best->lo))
            best = r;
    return best;
}

static Range **
find(SdcContext *cx, const void *ptr)
{
    Range **r = &cx->ranges;
    while (*r && (*r)->lo != (uintptr_t)ptr)
        r = &(*r)->next;
    return r;
}

static void
forget(SdcContext *cx, const void *ptr)
{
    Range **at = find(cx, ptr), *old = *at;
    if (!old)
        return;
    *at = old->next;
    old->next = NULL;
    ranges_free(old);
}

SdcStatus
sdc_register_range(SdcContext *cx, const void *ptr, size_t bytes, const char *name)
{
    if (!cx)
        return SDC_ERROR_ARGUMENT;
    if (!ptr || (uintptr_t)ptr + bytes < (uintptr_t)ptr)
        return context_fail(cx, SDC_ERROR_ARGUMENT,
                            "a range of memory begins at NULL, or ends beyond all "
                            "addresses");
    SdcStatus status = context_alive(cx);
    if (status != SDC_OK || !cx->check)
        return status;
    Range *r = calloc(1, sizeof *r);
    if (!r || (name && !(r->name = strdup(name)))) {
        free(r);
        return context_fail(cx, SDC_ERROR_MEMORY, "out of memory");
    }
    r->lo = (uintptr_t)ptr;
    r->hi = r->lo + bytes;
    status = context_lock(cx, &cx->check_lock);
    if (status != SDC_OK) {
        ranges_free(r);
        return status;
    }
    forget(cx, ptr);
    r->next = cx->ranges;
    cx->ranges = r;
    pthread_mutex_unlock(&cx->check_lock);
    return SDC_OK;
}

void
sdc_unregister_range(SdcContext *cx, const void *ptr)
{
    if (!cx || context_lock(cx, &cx->check_lock) != SDC_OK)
        return;
    forget(cx, ptr);
    pthread_mutex_unlock(&cx->check_lock);
}

SdcStatus
sdc_range_shape(SdcContext *cx, const void *ptr, int rank, const int64_t *shape)
{
    if (!cx)
        return SDC_ERROR_ARGUMENT;
    if (rank < 0 || rank > MAX_RANK || (rank && !shape))
        return context_fail(cx, SDC_ERROR_ARGUMENT, "a range has at most %d dimensions",
                            MAX_RANK);
    SdcStatus status = cx->check ? context_lock(cx, &cx->check_lock) : context_alive(cx);
    if (status != SDC_OK || !cx->check)
        return status;
    Range *r = *find(cx, ptr);
    if (r) {
        r->rank = rank;
        memcpy(r->shape, shape, (size_t)rank * sizeof *shape);
    }
    pthread_mutex_unlock(&cx->check_lock);
    return r ? SDC_OK
             : context_fail(cx, SDC_ERROR_ARGUMENT, "no range begins at this address");
}

SdcStatus
sdc_range_unwritten(SdcContext *cx, const void *ptr)
{
    SdcStatus status = !cx          ? SDC_ERROR_ARGUMENT
                       : cx->check ? context_lock(cx, &cx->check_lock)
                                   : context_alive(cx);
    if (status != SDC_OK || !cx->check)
        return status;
    Range *r = *find(cx, ptr);
    size_t n = r ? (r->hi - r->lo + 7) / 8 : 0;
    bool ok = r && (r->unwritten || (r->unwritten = malloc(n + 1)) != NULL);
    if (ok)
        memset(r->unwritten, 0xff, n);
    pthread_mutex_unlock(&cx->check_lock);
    return ok  ? SDC_OK
           : r ? context_fail(cx, SDC_ERROR_MEMORY, "out of memory")
               : context_fail(cx, SDC_ERROR_ARGUMENT, "no range begins at this address");
}

/* Tensor maps: what TMA of a GPU must know of a tensor, in 128 bytes that
   the driver writes and a kernel takes as a parameter. The metadata says how each follows
   from the arguments.

   What the driver would refuse is found here first, so that the message can say which
   tensor and why; the caller may then launch code that needs no maps. */
#include "runtime/rt/cuda_map.h"

#include <string.h>

enum { ALIGN = 16, LINE = 128, L2_128B = 2, L2_256B = 3 };

/* CUtensorMapSwizzle */
static int
swizzle_code(int bytes)
{
    return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0;
}

static int64_t
sign_extend(uint64_t v, int bits)
{
    int shift = 64 - (bits > 0 && bits < 64 ? bits : 64);
    return (int64_t)(v << shift) >> shift;
}

static int64_t
apply(int op, int64_t x, int64_t y)
{
    uint64_t a = (uint64_t)x, b = (uint64_t)y;
    switch (op) {
    case SDCRT_ADD: return (int64_t)(a + b);
    case SDCRT_SUB: return (int64_t)(a - b);
    case SDCRT_MUL: return (int64_t)(a * b);
    case SDCRT_DIV: return y == -1 ? (int64_t)(0 - a) : y ? x / y : 0;
    case SDCRT_REM: return y && y != -1 ? x % y : 0;
    case SDCRT_MIN: return x < y ? x : y;
    default: return x > y ? x : y;
    }
}

/* All terms, in order: operands stand before their users. */
static void
evaluate(const SdcrtMeta *m, const uint64_t *args, int64_t *v)
{
    for (int i = 0; i < m->nterm; i++) {
        const SdcrtTerm *x = &m->terms[i];
        uint64_t r = x->op == SDCRT_CONST ? (uint64_t)x->value
                     : x->op == SDCRT_ARG ? args[x->value]
                                          : (uint64_t)apply(x->op, v[x->a], v[x->b]);
        v[i] = sign_extend(r, x->bits);
    }
}

/* Why values make no map. */
typedef enum Flaw {
    NO_FLAW,
    NO_BASE,
    BASE_OFF,
    BAD_SIZE,
    BAD_STRIDE,
    ENDS_OFF
} Flaw;

/* Why the driver, or stores by TMA, would not take the map; *at: in which dimension. */
static Flaw
flaw_of(const SdcrtMap *map, const int64_t *v, int *at)
{
    int64_t base = v[map->base];
    if (!base || base % ALIGN)
        return base ? BASE_OFF : NO_BASE;
    for (int d = 0; d < map->rank; d++) {
        int64_t n = v[map->dim[d]];
        int64_t by = d ? v[map->stride[d]] * map->elem_bytes : ALIGN;
        *at = d;
        if (n < 1 || n > UINT32_MAX)
            return BAD_SIZE;
        if (by < ALIGN || by % ALIGN || by >> 40)
            return BAD_STRIDE;
        if (!d && map->written && n * map->elem_bytes % ALIGN)
            return ENDS_OFF;
    }
    return NO_FLAW;
}

static SdcrtStatus
refuse(const SdcrtMeta *m, int i, const int64_t *v, Flaw flaw, int d, SdcrtError *e)
{
    const SdcrtMap *map = &m->maps[i];
    long long base = v[map->base], n = v[map->dim[d]];
    long long by = d ? v[map->stride[d]] * map->elem_bytes : 0;
    SdcrtStatus no = SDCRT_ERROR_MAP;
    switch (flaw) {
    case NO_BASE:
        return cuda_refuse(e, no, "kernel '%s': tensor map %d is of nothing", m->name, i);
    case BASE_OFF:
        return cuda_refuse(e, no,
                           "kernel '%s': tensor map %d begins at 0x%llx, which is not on "
                           "%d bytes",
                           m->name, i, (unsigned long long)base, ALIGN);
    case BAD_SIZE:
        return cuda_refuse(e, no,
                           "kernel '%s': tensor map %d has %lld elements along "
                           "dimension %d",
                           m->name, i, n, d);
    case BAD_STRIDE:
        return cuda_refuse(e, no,
                           "kernel '%s': tensor map %d has a stride of %lld bytes "
                           "along dimension %d, not a multiple of %d below 2^40",
                           m->name, i, by, d, ALIGN);
    case ENDS_OFF:
        return cuda_refuse(e, no,
                           "kernel '%s': tensor map %d is stored through, and its "
                           "rows of %lld elements do not end on %d bytes",
                           m->name, i, n, ALIGN);
    case NO_FLAW: break;
    }
    return SDCRT_OK;
}

CudaMapFit
cuda_maps_fit(const SdcrtMeta *m, const uint64_t *args)
{
    int64_t v[SDCRT_MAX_TERMS];
    CudaMapFit fit = CUDA_MAPS_FIT;
    for (int i = 0; i < m->nparam; i++)
        if (m->params[i].multiple > 1 && args[i] % m->params[i].multiple)
            return CUDA_MAPS_NONE;
    evaluate(m, args, v);
    for (int i = 0; i < m->nmap; i++) {
        int d = 0;
        if (flaw_of(&m->maps[i], v, &d) == NO_FLAW)
            continue;
        if (!m->maps[i].written)
            return CUDA_MAPS_NONE;
        fit = CUDA_MAPS_LOADED;
    }
    return fit;
}

/* Whether rows begin off the lines of the second-level cache. */
static int
is_off_lines(const SdcrtMap *map, const int64_t *v)
{
    int off = v[map->base] % LINE != 0;
    for (int d = 1; d < map->rank; d++)
        off |= v[map->stride[d]] * map->elem_bytes % LINE != 0;
    return off;
}

/* CUtensorMapL2promotion: how much DRAM is asked for at a time. Of rows narrower than a
   line the next copies bring what 256 bytes would ask for ahead, and L2 has it too long;
   of rows off its lines 256 bytes are asked for twice. */
static int
promotion_code(const SdcrtMap *map, const int64_t *v)
{
    int narrow = (int)map->box[0] * map->elem_bytes < LINE;
    return narrow || is_off_lines(map, v) ? L2_128B : L2_256B;
}

/* Map i from the values of all terms. */
static SdcrtStatus
encode(const SdcrtCuda *c, const SdcrtMeta *m, int i, const int64_t *v, CudaMap *out,
       SdcrtError *e)
{
    const SdcrtMap *map = &m->maps[i];
    uint64_t dim[SDCRT_MAX_RANK] = {0}, stride[SDCRT_MAX_RANK] = {0};
    unsigned step[SDCRT_MAX_RANK] = {0};
    int64_t base = v[map->base];
    int at = 0;
    Flaw flaw = flaw_of(map, v, &at);
    if (flaw != NO_FLAW)
        return refuse(m, i, v, flaw, at, e);
    for (int d = 0; d < map->rank; d++) {
        dim[d] = (uint64_t)v[map->dim[d]];
        step[d] = 1;
        if (d)
            stride[d - 1] = (uint64_t)(v[map->stride[d]] * map->elem_bytes);
    }
    int code = c->d.map_tiled(out, map->dtype, map->rank, (void *)(uintptr_t)base, dim,
                              stride, map->box, step, 0, swizzle_code(map->swizzle),
                              promotion_code(map, v), map->nan);
    if (!code)
        return SDCRT_OK;
    SdcrtStatus status =
        cuda_fail(c, e, code, "kernel '%s': tensor map %d is refused", m->name, i);
    return code == CUDA_ERROR_INVALID_VALUE ? SDCRT_ERROR_MAP : status;
}

int
cuda_maps_off_lines(const SdcrtMeta *m, const uint64_t *args)
{
    int64_t v[SDCRT_MAX_TERMS];
    int off = 0;
    evaluate(m, args, v);
    for (int i = 0; i < m->nmap; i++)
        off |= !m->maps[i].written && is_off_lines(&m->maps[i], v);
    return off;
}

static int
take(CudaMapCache *cache, const SdcrtMeta *m, const uint64_t *args, CudaMap *maps,
     int *off_lines)
{
    int hit = 0;
    if (atomic_flag_test_and_set_explicit(&cache->busy, memory_order_acquire))
        return 0;
    if (cache->full &&
        memcmp(cache->args, args, (size_t)m->nparam * sizeof *args) == 0) {
        memcpy(maps, cache->maps, (size_t)m->nmap * sizeof *maps);
        *off_lines = cache->off_lines;
        hit = 1;
    }
    atomic_flag_clear_explicit(&cache->busy, memory_order_release);
    return hit;
}

static void
keep(CudaMapCache *cache, const SdcrtMeta *m, const uint64_t *args, const CudaMap *maps,
     int off_lines)
{
    if (atomic_flag_test_and_set_explicit(&cache->busy, memory_order_acquire))
        return;
    memcpy(cache->args, args, (size_t)m->nparam * sizeof *args);
    memcpy(cache->maps, maps, (size_t)m->nmap * sizeof *maps);
    cache->off_lines = off_lines;
    cache->full = 1;
    atomic_flag_clear_explicit(&cache->busy, memory_order_release);
}

SdcrtStatus
cuda_maps(const SdcrtCuda *c, const SdcrtMeta *m, CudaMapCache *cache,
          const uint64_t *args, CudaMap *maps, int *off_lines, SdcrtError *e)
{
    int64_t v[SDCRT_MAX_TERMS];
    if (take(cache, m, args, maps, off_lines))
        return SDCRT_OK;
    if (!c->d.map_tiled)
        return cuda_refuse(e, SDCRT_ERROR_MAP,
                           "kernel '%s' needs tensor maps, which the driver of %s does "
                           "not know: install one of CUDA 12 or later",
                           m->name, c->info.name);
    evaluate(m, args, v);
    *off_lines = 0;
    for (int i = 0; i < m->nmap; i++) {
        *off_lines |= is_off_lines(&m->maps[i], v);
        SdcrtStatus status = encode(c, m, i, v, &maps[i], e);
        if (status != SDCRT_OK)
            return status;
    }
    keep(cache, m, args, maps, *off_lines);
    return SDCRT_OK;
}

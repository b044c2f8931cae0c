/* Metadata to bytes and back.

   The structure is plain data of fixed size, most of it zero: names and lists are shorter
   than their room. So the bytes are the structure itself, cut into runs: a count of
   zeros, a count of bytes that follow, those bytes. A header with the structure's size
   refuses bytes of another version; there is nothing to keep in step when a member is
   added. */
#include "runtime/rt/meta.h"

#include <stdbool.h>
#include <string.h>

enum { FORMAT = 2, HEADER = 8, MAX_RUN = 0xffff, WORD = 2 };

static void
put16(unsigned char *to, size_t at, size_t v)
{
    if (!to)
        return;
    to[at] = (unsigned char)(v & 0xff);
    to[at + 1] = (unsigned char)(v >> 8);
}

static size_t
get16(const unsigned char *from)
{
    return (size_t)from[0] | (size_t)from[1] << 8;
}

static void
header(unsigned char *to)
{
    const uint32_t size = sizeof(SdcrtMeta);
    memcpy(to, "sdm", 3);
    to[3] = FORMAT;
    memcpy(to + 4, &size, sizeof size);
}

size_t
sdcrt_meta_pack(const SdcrtMeta *meta, unsigned char *to)
{
    const unsigned char *p = (const unsigned char *)meta;
    const size_t size = sizeof *meta;
    size_t n = HEADER, at = 0;
    if (to)
        header(to);
    while (at < size) {
        size_t zeros = 0, bytes = 0, start;
        while (at < size && !p[at] && zeros < MAX_RUN)
            zeros++, at++;
        /* Two zeros in a row cost less as bytes than as a run of their own. */
        for (start = at; at < size && bytes < MAX_RUN; at++, bytes++)
            if (!p[at] && (at + 4 > size || memcmp(p + at, "\0\0\0\0", 4) == 0))
                break;
        put16(to, n, zeros);
        put16(to, n + WORD, bytes);
        n += 2 * WORD;
        if (to)
            memcpy(to + n, p + start, bytes);
        n += bytes;
    }
    return n;
}

static int
valid_lists(const SdcrtMeta *meta)
{
    if (meta->nkey < 0 || meta->nkey > SDCRT_MAX_KEY || meta->npoint < 0 ||
        meta->npoint > SDCRT_MAX_POINT)
        return 0;
    for (int i = 0; i < meta->nkey; i++)
        if (meta->key_arg[i] < 0 || meta->key_arg[i] >= meta->nsource + meta->nleaf)
            return 0;
    for (int i = 0; i < 3; i++)
        if (meta->grid[i].n < 0 || meta->grid[i].n > SDCRT_EXPR_MAX)
            return 0;
    return 1;
}

static int
valid_sources(const SdcrtMeta *m)
{
    if (m->nsource < 0 || m->nsource > SDCRT_MAX_SOURCES || m->nleaf < 0 ||
        m->nleaf > SDCRT_MAX_PARAMS)
        return 0;
    for (int i = 0; i < m->nsource; i++)
        if (m->sources[i].leaf + m->sources[i].nleaf > m->nleaf ||
            m->sources[i].rank > SDCRT_MAX_RANK)
            return 0;
    for (int i = 0; i < m->nleaf; i++)
        if (m->leaves[i].rank > SDCRT_MAX_RANK)
            return 0;
    return 1;
}

static int
valid_maps(const SdcrtMeta *m)
{
    if (m->ctas_per_sm < 0 || m->nterm < 0 || m->nterm > SDCRT_MAX_TERMS || m->nmap < 0 ||
        m->nmap > SDCRT_MAX_MAPS)
        return 0;
    for (int i = 0; i < m->nterm; i++) {
        const SdcrtTerm *t = &m->terms[i];
        if (t->op == SDCRT_ARG ? t->value < 0 || t->value >= m->nparam
                               : t->a < 0 || t->b < 0 ||
                                     (t->op != SDCRT_CONST && (t->a >= i || t->b >= i)))
            return 0;
    }
    for (int i = 0; i < m->nmap; i++) {
        const SdcrtMap *map = &m->maps[i];
        if (map->rank < 1 || map->rank > SDCRT_MAX_RANK || map->base < 0 ||
            map->base >= m->nterm)
            return 0;
        for (int d = 0; d < map->rank; d++)
            if (map->dim[d] < 0 || map->dim[d] >= m->nterm || map->stride[d] < 0 ||
                map->stride[d] >= m->nterm)
                return 0;
    }
    return 1;
}

int
sdcrt_meta_unpack(const unsigned char *from, size_t size, SdcrtMeta *meta)
{
    unsigned char *p = (unsigned char *)meta, expected[HEADER];
    size_t n = HEADER, at = 0;
    header(expected);
    if (size < HEADER || memcmp(from, expected, HEADER) != 0)
        return 0;
    memset(meta, 0, sizeof *meta);
    while (n + 2 * WORD <= size) {
        size_t zeros = get16(from + n), bytes = get16(from + n + WORD);
        n += 2 * WORD;
        if (zeros > sizeof *meta - at || bytes > sizeof *meta - at - zeros ||
            bytes > size - n)
            return 0;
        memcpy(p + at + zeros, from + n, bytes);
        at += zeros + bytes;
        n += bytes;
    }
    return n == size && at == sizeof *meta && meta->nparam >= 0 &&
           meta->nparam <= SDCRT_MAX_PARAMS && valid_sources(meta) &&
           valid_lists(meta) && valid_maps(meta);
}

int
sdcrt_meta_arguments(const SdcrtMeta *meta, SdcrtArgument *to)
{
    int n = 0;
    for (int i = 0; i < meta->nsource; i++) {
        const SdcrtSource *s = &meta->sources[i];
        if (s->is_constexpr)
            continue;
        int slot = 0, parts = s->is_tuple ? s->nleaf : 1;
        while (slot < meta->nparam && meta->params[slot].source != i)
            slot++;
        for (int k = 0; k < parts; k++, n++) {
            const SdcrtSource *what = s->is_tuple ? &meta->leaves[s->leaf + k] : s;
            /* what is no tuple and bound has no parameter, whatever it is bound to */
            bool open = slot < meta->nparam && meta->params[slot].source == i &&
                        (!s->is_tuple || what->bound == SDCRT_OPEN);
            if (to)
                to[n] = (SdcrtArgument){what, i, open ? slot : -1};
            slot += open ? sdcrt_source_slots(what) : 0;
        }
    }
    return n;
}

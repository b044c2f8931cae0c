/* An entry of the kernel cache as it lies on disk. Private to cache*.c. */
#ifndef SDC_RUNTIME_CACHE_FILE_H
#define SDC_RUNTIME_CACHE_FILE_H

#include "runtime/cache.h"

#include <stdatomic.h>

#define CACHE_MAGIC "sdccache"

enum { CACHE_DIGEST = 16, CACHE_FORMAT = 1, CACHE_GC_EVERY = 256 };

/* Behind it: key, deps, meta, code, of these sizes. The digest is over all that comes
   after it. Numbers are the machine's: the build id in the key tells machines apart. */
typedef struct CacheHeader {
    unsigned char digest[CACHE_DIGEST];
    char magic[8];
    uint64_t format;
    uint64_t key, deps, meta, code;
} CacheHeader;

struct Cache {
    char *dir;
    atomic_uint stores;
};

void cache_digest(const void *bytes, size_t size, unsigned char out[CACHE_DIGEST]);

/* The bytes are a whole entry; fills the header. */
bool cache_check(const char *bytes, size_t size, CacheHeader *h);

#endif

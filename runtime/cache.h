/* The kernel cache on disk: bytes under keys, shared by processes that may die at any
   moment.

   One file holds one entry: a header, the whole key, what the compile depended on, and
   the kernel, under one digest. It is written beside its place, synced and renamed, so a
   reader sees all of it or nothing; whoever reads checks everything, and whatever is not
   as it should be is a miss. No lock is needed for any of this, and no failure of the
   file system fails a compile. */
#ifndef SDC_RUNTIME_CACHE_H
#define SDC_RUNTIME_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Cache Cache;

/* Text or bytes that grow; data NULL and size 0 to begin with. After a failure to get
   memory `failed` stays set and nothing more is added. */
typedef struct CacheBytes {
    char *data;
    size_t size, cap;
    bool failed;
} CacheBytes;

void cache_add(CacheBytes *b, const void *bytes, size_t size);
/* Size and bytes: two lists of fields are equal only when all fields are. */
void cache_field(CacheBytes *b, const void *bytes, size_t size);
void cache_bytes_done(CacheBytes *b);

/* A kernel as it was stored. `memory` is the reader's to free. */
typedef struct CacheEntry {
    char *memory;
    const unsigned char *meta, *code;
    size_t meta_size, code_size;
} CacheEntry;

/* The cache in this folder; NULL: $SDC_CACHE_DIR, or sdc in $XDG_CACHE_HOME or in
   ~/.cache. It is made when something is stored. NULL when there is no folder, when it is
   not the user's alone to write, or when the environment says SDC_CACHE=off. */
Cache *cache_open(const char *dir);
void cache_close(Cache *c);
const char *cache_dir(const Cache *c);

/* What the code that asks is made of: the sizes and versions behind every entry. False
   when it cannot be told, and so nothing may be cached. */
bool cache_build_id(CacheBytes *b);

/* False is a miss. */
bool cache_get(Cache *c, const CacheBytes *key, CacheEntry *out);
/* `deps`: from cache_dep. */
void cache_put(Cache *c, const CacheBytes *key, const CacheBytes *deps, const void *meta,
               size_t meta_size, const void *code, size_t code_size);

/* One more file that a compile has read, or looked for in vain (`text` NULL). */
void cache_dep(CacheBytes *deps, const char *path, const char *text, size_t size);

typedef enum CacheAction { CACHE_STAT, CACHE_VERIFY, CACHE_GC, CACHE_CLEAR } CacheAction;

typedef struct CacheFound {
    int64_t entries, bytes;
    int64_t bad;         /* VERIFY: entries that were not whole; they are removed */
    int64_t removed;     /* entries */
    int64_t temporaries; /* what processes that died have left; GC and CLEAR remove it */
} CacheFound;

/* Walks the folder. GC: removes what was not used for longest until at most `limit` bytes
   are left. False when the folder cannot be read; there being none is an empty one. */
bool cache_walk(Cache *c, CacheAction action, int64_t limit, CacheFound *out);

/* Bytes that the folder may have: $SDC_CACHE_SIZE in MiB, or 1 GiB. */
int64_t cache_limit(void);

#endif

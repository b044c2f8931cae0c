/* Entries of the kernel cache: any bytes where an entry is expected, their digest put
   right in half of the cases, so that what stands behind it is looked at. What is read is
   within the entry. Every input begins with a miss. */
#include "runtime/cache_file.h"
#include "runtime/rt/meta.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[64], path[200];

static void
remove_all(void)
{
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    rmdir(dir);
}

/* A folder of our own with the one file that belongs to the key "k". */
static Cache *
open_once(const CacheBytes *key)
{
    static Cache *c;
    if (c)
        return c;
    unsigned char digest[CACHE_DIGEST];
    char hex[2 * CACHE_DIGEST + 1];
    strcpy(dir, "/tmp/sdc-fuzz-XXXXXX");
    if (!mkdtemp(dir))
        abort();
    unsetenv("SDC_CACHE");
    c = cache_open(dir);
    cache_digest(key->data, key->size, digest);
    for (int i = 0; i < CACHE_DIGEST; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    snprintf(path, sizeof path, "%s/%.2s", dir, hex);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%.2s/%s", dir, hex, hex + 2);
    atexit(remove_all);
    return c;
}

static void
look(const CacheEntry *e)
{
    SdcrtMeta *meta = calloc(1, sizeof *meta);
    unsigned sum = 0;
    for (size_t i = 0; i < e->code_size; i++)
        sum += e->code[i];
    if (meta && sdcrt_meta_unpack(e->meta, e->meta_size, meta)) {
        size_t n = sdcrt_meta_pack(meta, NULL);
        unsigned char *again = malloc(n + 1);
        if (again && sdcrt_meta_pack(meta, again) != n)
            abort();
        free(again);
    }
    free(meta);
    if (sum == 0xffffffff)
        abort(); /* the sum is used */
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CacheBytes key = {0};
    CacheEntry e;
    if (size < 1 || size > 1 << 16)
        return -1;
    cache_add(&key, "k", 1);
    Cache *c = open_once(&key);
    unlink(path);
    if (!c || cache_get(c, &key, &e))
        abort(); /* there is nothing */
    char *entry = malloc(size);
    if (!entry)
        return 0;
    memcpy(entry, data + 1, size - 1);
    if (data[0] % 2 && size - 1 >= sizeof(CacheHeader)) {
        CacheHeader h;
        memcpy(&h, entry, sizeof h);
        memcpy(h.magic, CACHE_MAGIC, sizeof h.magic);
        h.format = CACHE_FORMAT;
        if (data[0] % 4 == 3) /* sizes that fit: all is code but for the key */
            h.code = size - 1 - sizeof h - h.key - h.deps - h.meta;
        memcpy(entry, &h, sizeof h);
        cache_digest(entry + CACHE_DIGEST, size - 1 - CACHE_DIGEST,
                     (unsigned char *)entry);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, entry, size - 1) != (ssize_t)(size - 1))
        abort();
    close(fd);
    if (cache_get(c, &key, &e)) {
        look(&e);
        free(e.memory);
    }
    free(entry);
    cache_bytes_done(&key);
    return 0;
}

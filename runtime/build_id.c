/* What this libsdc is: the number that the linker computed over everything in it, LLVM
   too. Entries of the cache belong to one such build.

   The linker says where the headers of this object are. dl_iterate_phdr would find them
   under the loader's lock, which another thread may hold at a fork: the child would wait
   for it for ever. */
#include "runtime/cache.h"

#include <elf.h>
#include <link.h>
#include <string.h>

extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));

/* Puts the build's number out, where it is among these notes. */
static bool
find_in(const char *at, const char *end, CacheBytes *out)
{
    while (at + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *note = (const void *)at;
        const char *name = at + sizeof *note;
        const char *value = name + (note->n_namesz + 3) / 4 * 4;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
            memcmp(name, "GNU", 4) == 0) {
            cache_field(out, value, note->n_descsz);
            return !out->failed;
        }
        at = value + (note->n_descsz + 3) / 4 * 4;
    }
    return false;
}

bool
cache_build_id(CacheBytes *out)
{
    const ElfW(Ehdr) *e = (const void *)__ehdr_start;
    if (!e)
        return false;
    const ElfW(Phdr) *p = (const void *)((const char *)e + e->e_phoff);
    uintptr_t base = (uintptr_t)e; /* what addresses in the object are relative to */
    for (int i = 0; i < e->e_phnum; i++)
        if (p[i].p_type == PT_LOAD && p[i].p_offset == 0)
            base -= p[i].p_vaddr;
    for (int i = 0; i < e->e_phnum; i++) {
        const char *at = (const char *)(base + p[i].p_vaddr);
        if (p[i].p_type == PT_NOTE && find_in(at, at + p[i].p_memsz, out))
            return true;
    }
    return false;
}

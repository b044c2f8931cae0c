/* What this libsdc is: the number that the linker computed over everything in it, LLVM
   too. Entries of the cache belong to one such build. */
#include "runtime/cache.h"

#include <elf.h>
#include <link.h>
#include <string.h>

typedef struct Search {
    const void *here;
    CacheBytes *out;
    bool found;
} Search;

/* Notes of the object that this code is in. */
static int
visit(struct dl_phdr_info *info, size_t size, void *user)
{
    Search *s = user;
    bool mine = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + p->p_vaddr;
        mine |= p->p_type == PT_LOAD && (uintptr_t)s->here >= at &&
                (uintptr_t)s->here < at + p->p_memsz;
    }
    for (int i = 0; mine && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(info->dlpi_addr + p->p_vaddr);
        const char *end = at + p->p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const void *)at;
            const char *name = at + sizeof *note;
            const char *value = name + (note->n_namesz + 3) / 4 * 4;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
                memcmp(name, "GNU", 4) == 0) {
                cache_field(s->out, value, note->n_descsz);
                s->found = true;
                return 1;
            }
            at = value + (note->n_descsz + 3) / 4 * 4;
        }
    }
    return mine;
}

bool
cache_build_id(CacheBytes *out)
{
    static const char here;
    Search s = {.here = &here, .out = out};
    dl_iterate_phdr(visit, &s);
    return s.found && !out->failed;
}

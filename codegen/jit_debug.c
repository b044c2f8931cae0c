/* Symbols and lines of loaded code, for those who look at the process.

   Debuggers: the interface that GDB documents and LLDB knows, too. A list of object files
   hangs at a global; a function that does nothing is called when it changes, where the
   debugger has a breakpoint. What is given is a copy of the object whose sections say
   where they lie, so that it is read like any other. Both symbols are exported, for that
   is how they are found, and protected, so that another library's never take their place.

   Profilers: with SDC_PERF_MAP=1 a line a function in /tmp/perf-PID.map, which perf reads
   by itself. */
#include "codegen/jit_debug.h"

#include <elf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("protected")))

struct JitSymbols {
    struct JitSymbols *next, *prev;
    const char *file;
    uint64_t size;
};

/* GDB's names and layout. */
typedef struct JitDescriptor {
    uint32_t version, action; /* 1: added, 2: removed */
    JitSymbols *relevant, *first;
} JitDescriptor;

SHOWN extern JitDescriptor __jit_debug_descriptor;
JitDescriptor __jit_debug_descriptor = {.version = 1};

SHOWN void __jit_debug_register_code(void);
__attribute__((noinline)) void
__jit_debug_register_code(void)
{
    __asm__ volatile("" ::: "memory");
}

/* LLVM has a file of its own with both symbols, hidden like everything of LLVM's, and the
   address of this function in a table is what would link it. Nobody calls it: the result
   is LLVM's way to say no. */
typedef struct Refusal {
    char *why;
    size_t size;
} Refusal;
Refusal llvm_orc_registerJITLoaderGDBAllocAction(const char *data, size_t size);

Refusal
llvm_orc_registerJITLoaderGDBAllocAction(const char *data, size_t size)
{
    (void)data, (void)size;
    return (Refusal){strdup("debuggers are told by jit_debug.c"), 0};
}

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

static void
tell(JitSymbols *s, uint32_t action)
{
    __jit_debug_descriptor.relevant = s;
    __jit_debug_descriptor.action = action;
    __jit_debug_register_code();
}

/* ---------------------------------------------------------------- the object */

typedef struct Object {
    char *bytes;
    size_t size;
    Elf64_Shdr *section;
    int nsection;
    const Elf64_Sym *symbol;
    int nsymbol;
    const char *names;
    size_t names_size;
} Object;

static bool
inside(const Object *o, uint64_t at, uint64_t size)
{
    return at <= o->size && size <= o->size - at && at % 8 == 0;
}

/* The file is the compiler's own, and is believed no more than others. */
static bool
read_object(Object *o)
{
    const Elf64_Ehdr *e = (const void *)o->bytes;
    if (o->size < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 ||
        e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_shentsize != sizeof(Elf64_Shdr) ||
        !inside(o, e->e_shoff, (uint64_t)e->e_shnum * sizeof(Elf64_Shdr)))
        return false;
    o->section = (Elf64_Shdr *)(void *)(o->bytes + e->e_shoff);
    o->nsection = e->e_shnum;
    for (int i = 0; i < o->nsection; i++) {
        const Elf64_Shdr *s = &o->section[i];
        if (s->sh_type != SHT_SYMTAB)
            continue;
        if (!inside(o, s->sh_offset, s->sh_size) || s->sh_link >= e->e_shnum)
            return false;
        const Elf64_Shdr *t = &o->section[s->sh_link];
        if (t->sh_offset > o->size || t->sh_size > o->size - t->sh_offset ||
            !t->sh_size || o->bytes[t->sh_offset + t->sh_size - 1])
            return false;
        o->symbol = (const Elf64_Sym *)(const void *)(o->bytes + s->sh_offset);
        o->nsymbol = (int)(s->sh_size / sizeof *o->symbol);
        o->names = o->bytes + t->sh_offset;
        o->names_size = t->sh_size;
    }
    return o->symbol != NULL;
}

static const char *
name_of(const Object *o, const Elf64_Sym *s)
{
    return s->st_name < o->names_size ? o->names + s->st_name : "";
}

/* Gives the section of the function its address; 0: there is no such function. Of the
   others nobody knows, and a debugger is not to think that they lie at zero. */
static int
place(Object *o, const char *symbol, const void *entry)
{
    int code = 0;
    uint64_t at = 0;
    for (int i = 0; i < o->nsymbol && !code; i++) {
        const Elf64_Sym *s = &o->symbol[i];
        if (s->st_shndx < o->nsection && strcmp(name_of(o, s), symbol) == 0) {
            code = s->st_shndx;
            at = (uint64_t)(uintptr_t)entry - s->st_value;
        }
    }
    for (int i = 1; i < o->nsection && code; i++) {
        if (i == code)
            o->section[i].sh_addr = at;
        else
            o->section[i].sh_flags &= ~(uint64_t)SHF_ALLOC;
    }
    return code;
}

static void
write_map(const Object *o, int code)
{
    const char *wanted = getenv("SDC_PERF_MAP");
    char path[64];
    if (!wanted || strcmp(wanted, "1") != 0)
        return;
    snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
    FILE *f = fopen(path, "ae");
    for (int i = 0; f && i < o->nsymbol; i++) {
        const Elf64_Sym *s = &o->symbol[i];
        if (ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_shndx == code)
            fprintf(f, "%llx %llx sdc:%s\n",
                    (unsigned long long)(o->section[code].sh_addr + s->st_value),
                    (unsigned long long)s->st_size, name_of(o, s));
    }
    if (f)
        fclose(f);
}

/* ---------------------------------------------------------------- */

JitSymbols *
jit_debug_add(const void *object, size_t size, const char *symbol, const void *entry)
{
    JitSymbols *s = calloc(1, sizeof *s + size);
    if (!s)
        return NULL;
    Object o = {.bytes = memcpy(s + 1, object, size), .size = size};
    int code = read_object(&o) ? place(&o, symbol, entry) : 0;
    if (!code) {
        free(s);
        return NULL;
    }
    write_map(&o, code);
    s->file = o.bytes;
    s->size = size;
    pthread_mutex_lock(&list_lock);
    s->next = __jit_debug_descriptor.first;
    if (s->next)
        s->next->prev = s;
    __jit_debug_descriptor.first = s;
    tell(s, 1);
    pthread_mutex_unlock(&list_lock);
    return s;
}

void
jit_debug_remove(JitSymbols *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&list_lock);
    if (s->prev)
        s->prev->next = s->next;
    else
        __jit_debug_descriptor.first = s->next;
    if (s->next)
        s->next->prev = s->prev;
    tell(s, 2);
    pthread_mutex_unlock(&list_lock);
    free(s);
}

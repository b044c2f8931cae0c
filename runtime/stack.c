/* Compiling needs more stack than a thread of the host may have: LLVM's analyses follow
   one value to the next by recursion, some kilobytes for each loop of a program. So every
   compile runs on memory of its own, mapped for it: pages that it does not touch cost
   nothing, and below the last one lies a page that may not be touched.

   The thread stays the same, which a second thread would not be: its number, its thread
   local variables and its signal mask are those that the host's callbacks expect, and
   nothing can fail but the mapping. A mapping per call, and no list of free ones, keeps
   no state and gives the pages back; it costs some microseconds. */
#include "runtime/stack.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <dlfcn.h>
#include <sanitizer/common_interface_defs.h>
#include <string.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

/* A function that begins on one stack and ends on another: ThreadSanitizer counts its
   calls and returns for each stack apart. */
#if defined(__SANITIZE_THREAD__)
#define SWITCHES __attribute__((no_sanitize_thread))
#else
#define SWITCHES
#endif

enum { GUARD = 64 << 10 };

typedef struct Run {
    StackFn *fn;
    void *arg;
    ucontext_t back, there;
    /* What the sanitizers want to know of stacks. */
    const void *bottom;
    size_t size;
    void *fake, *fiber;
} Run;

/* The sanitizers hear of a change of stacks before and after it. */
SWITCHES static void
before_switch(Run *r, void **fake, const void *bottom, size_t size, void *fiber)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(fake, bottom, size);
#elif defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(fiber, 0);
#endif
    (void)r, (void)fake, (void)bottom, (void)size, (void)fiber;
}

SWITCHES static void
after_switch(Run *r, void *fake)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, fake ? NULL : &r->bottom,
                                    fake ? NULL : &r->size);
#endif
    (void)r, (void)fake;
}

/* AddressSanitizer's own swapcontext prints a warning, and is not needed. */
SWITCHES static int
switch_stacks(ucontext_t *from, const ucontext_t *to)
{
#if defined(__SANITIZE_ADDRESS__)
    int (*fn)(ucontext_t *, const ucontext_t *) = swapcontext;
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    void *at = libc ? dlsym(libc, "swapcontext") : NULL;
    if (at)
        memcpy(&fn, &at, sizeof at);
    return fn(from, to);
#else
    return swapcontext(from, to);
#endif
}

/* makecontext passes numbers of the width of int. */
SWITCHES static void
begin(unsigned high, unsigned low)
{
    Run *r = (Run *)((uintptr_t)high << 32 | low);
    after_switch(r, NULL);
    r->fn(r->arg);
    before_switch(r, NULL, r->bottom, r->size, r->fiber);
}

SWITCHES bool
stack_run(StackFn *fn, void *arg)
{
    const size_t size = (size_t)STACK_MIB << 20;
    unsigned char *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1,
                             0);
    if (at == MAP_FAILED)
        return false;
    Run r = {.fn = fn, .arg = arg};
    /* A huge page would be cleared for the first few kilobytes. */
    madvise(at, size, MADV_NOHUGEPAGE);
    bool ok = mprotect(at, GUARD, PROT_NONE) == 0 && getcontext(&r.there) == 0;
    if (ok) {
        uintptr_t self = (uintptr_t)&r;
        void *fiber = NULL;
#if defined(__SANITIZE_THREAD__)
        r.fiber = __tsan_get_current_fiber();
        fiber = __tsan_create_fiber(0);
#endif
        r.there.uc_stack.ss_sp = at + GUARD;
        r.there.uc_stack.ss_size = size - GUARD;
        r.there.uc_link = &r.back;
        makecontext(&r.there, (void (*)(void))begin, 2, (unsigned)(self >> 32),
                    (unsigned)self);
        before_switch(&r, &r.fake, at + GUARD, size - GUARD, fiber);
        ok = switch_stacks(&r.back, &r.there) == 0;
        after_switch(&r, r.fake);
#if defined(__SANITIZE_THREAD__)
        __tsan_destroy_fiber(fiber);
#endif
    }
    munmap(at, size);
    return ok;
}

/* See guard.h. Each array is a mapping of its own: pages without access, the array up to
   its last page's end, pages without access. They cost addresses, not memory. */
#include "runtime/cli/guard.h"

#include "ir/base/util.h"
#include "runtime/cli/cli.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 1024, ALIGN = 64, FRONT = 1 << 20 };

/* Threads share a grid, so the first access that is wrong may be far behind the end. */
static const size_t behind[] = {(size_t)256 << 20, (size_t)64 << 10};

typedef struct Guarded {
    char *map, *data;
    size_t whole, bytes;
    const char *name;
} Guarded;

/* The handler of a signal has no other way to know. */
static struct {
    Guarded at[MOST];
    volatile int n;
    int made;
    atomic_flag told; /* a thread says what happened, and ends all */
} guarded = {.told = ATOMIC_FLAG_INIT};

static void
say(const char *text)
{
    size_t n = strlen(text);
    if (write(STDERR_FILENO, text, n) < 0)
        _exit(EXIT_INPUT);
}

static void
on_fault(int number, siginfo_t *info, void *context)
{
    const char *at = info->si_addr;
    (void)context;
    for (int i = 0; i < guarded.n; i++) {
        const Guarded *g = &guarded.at[i];
        if (at < g->map || at >= g->map + g->whole)
            continue;
        while (atomic_flag_test_and_set(&guarded.told))
            pause();
        say(isatty(STDERR_FILENO) ? "\n" : ""); /* behind what says how far it is */
        say("sdc: error: a launch went outside of '");
        say(g->name ? g->name : "an array");
        say(at < g->data ? "', in front of it\n" : "', behind its end\n");
        say("sdc: note: 'sdc run' with the same arguments, without --time, says where\n");
        _exit(EXIT_INPUT);
    }
    signal(number, SIG_DFL); /* not ours: it faults once more, as it would have */
}

static void
watch(void)
{
    struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &act, NULL);
    sigaction(SIGBUS, &act, NULL);
}

void *
guard_alloc(size_t bytes)
{
    /* Arrays of one size would begin at one place in their pages, which processors take
       for a conflict of stores with loads: each is moved by some lines. */
    size_t page = (size_t)sysconf(_SC_PAGESIZE), moved = (size_t)(guarded.made % 8) * 320;
    size_t room = (bytes + ALIGN) & ~(size_t)(ALIGN - 1);
    if (guarded.n == MOST || room > SIZE_MAX / 2)
        return NULL;
    size_t pages = (room + moved + page - 1) / page * page, whole = 0;
    char *map = MAP_FAILED;
    for (int i = 0; i < COUNT_OF(behind) && map == MAP_FAILED; i++) {
        whole = FRONT + pages + behind[i];
        map = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (map == MAP_FAILED)
        return NULL;
    if (mprotect(map + FRONT, pages, PROT_READ | PROT_WRITE) != 0) {
        munmap(map, whole);
        return NULL;
    }
    char *data = map + FRONT + pages - room - moved;
    memset(map + FRONT, 0, pages); /* its pages are there when times are taken */
    if (guarded.n == 0)
        watch();
    guarded.at[guarded.n] = (Guarded){map, data, whole, bytes, NULL};
    guarded.n++;
    guarded.made++;
    return data;
}

static int
find(const void *data)
{
    for (int i = 0; i < guarded.n; i++)
        if (guarded.at[i].data == data)
            return i;
    return -1;
}

void
guard_name(const void *data, const char *name)
{
    int i = find(data);
    if (i >= 0)
        guarded.at[i].name = name;
}

void
guard_free(void *data)
{
    int i = data ? find(data) : -1;
    if (i < 0)
        return;
    munmap(guarded.at[i].map, guarded.at[i].whole);
    guarded.at[i] = guarded.at[guarded.n - 1];
    guarded.n--;
}

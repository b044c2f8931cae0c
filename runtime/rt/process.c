/* A page that the kernel clears in the child of a fork (Linux 4.14), with one byte that
   is not 0: reading it says what getpid() says, without entering the kernel. Where there
   is no such page the numbers of processes are compared. */
#include "runtime/rt/process.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

void
rt_process_mark(RtProcess *p)
{
    p->pid = getpid();
    p->page = NULL;
#ifdef MADV_WIPEONFORK
    unsigned char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, PAGE, MADV_WIPEONFORK) != 0) {
        munmap(page, PAGE);
        return;
    }
    *page = 1;
    p->page = page;
#endif
}

void
rt_process_done(RtProcess *p)
{
    if (p->page)
        munmap((void *)(size_t)p->page, PAGE);
    p->page = NULL;
}

bool
rt_process_is_child(const RtProcess *p)
{
    return p->page ? *p->page == 0 : p->pid != getpid();
}

/* Is this the process that made an object, or the child of a fork? Asked by every launch,
   so it must not be a system call. */
#ifndef SDC_RUNTIME_RT_PROCESS_H
#define SDC_RUNTIME_RT_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct RtProcess {
    const volatile unsigned char *page; /* NULL: the number is asked for */
    pid_t pid;
} RtProcess;

/* Marks this process as the one. rt_process_done gives back what the mark takes. */
void rt_process_mark(RtProcess *p);
void rt_process_done(RtProcess *p);

/* Has the process been copied by a fork since? */
bool rt_process_is_child(const RtProcess *p);

/* cpu_level.c: asks for the processor's tiles; false: it has none, or is refused them. */
bool rt_ask_tiles(void);

#endif

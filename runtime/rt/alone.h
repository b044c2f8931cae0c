/* Which launch of the process runs without locked instructions: one that no other launch
   with atomics runs beside. */
#ifndef SDC_RUNTIME_RT_ALONE_H
#define SDC_RUNTIME_RT_ALONE_H

#include "runtime/rt/process.h"

#include <stdatomic.h>

/* A launch with atomics begins, in process p; waits while another one is alone. `wants`:
   it would be alone if nobody else runs. `shy`, of its pool: who had to wait sets it, and
   as many launches then do without, so that launches from many threads wait once in a
   while and not each for the other. Returns whether it is alone, which rt_alone_end, when
   it has ended, is told. */
bool rt_alone_begin(const RtProcess *p, atomic_int *shy, bool wants);
void rt_alone_end(const RtProcess *p, bool alone);

#endif

/* The machine that something was measured on, as sdc doctor and the JSON of sdc bench
   tell it. */
#ifndef SDC_CLI_MACHINE_H
#define SDC_CLI_MACHINE_H

#include "ir/base/str.h"

typedef struct Machine {
    const char *cpu;      /* "unknown" where nobody says */
    int processors;       /* that are there; a container may have less */
    int allowed;          /* that this process may use */
    double mhz, mhz_most; /* now, and at most; 0: nobody says */
    const char *governor; /* of the clock; "" */
    double load[3];       /* of 1, 5 and 15 minutes; -1: nobody says */
    int64_t cache[3];     /* bytes of L1 data, L2, L3; 0: unknown */
    const char *system;   /* "Linux 6.1.0 x86_64" */
    char date[24];        /* "2026-01-31T12:00:00Z" */
} Machine;

void machine_look(Arena *arena, Machine *out);
/* What of the CPU's features matters for kernels: "avx2 fma f16c avx512f ..."; "". */
const char *machine_features(Arena *arena);

#endif

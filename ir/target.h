/* Facts about a target that passes and code generation ask for: pure data, a line a
   target in ir/target.def. What a target can do is asked by its name here, not by the
   number of its architecture. */
#ifndef SDC_IR_TARGET_H
#define SDC_IR_TARGET_H

#include <stdbool.h>

typedef struct TargetInfo {
    bool gpu;
    int sm;            /* 80, 90, 100, ...; 0 on the CPU */
    int ptx;           /* version of its PTX, 74 for 7.4; code may need a later one */
    bool feature_a;    /* its code runs on this very architecture alone */
    bool tma;          /* mbarriers and copies of tiles by tensor maps; a launch without
                          maps clears it: passes introduce none, the source's stay */
    bool tensor_maps;  /* a kernel can write tensor maps itself */
    bool no_tma_store; /* they are copied from, never to */
    bool folds;        /* the three axes of a grid are launched along the first */
    bool once;         /* for grids whose programs all run at once */
    bool wgmma;        /* wgmma, registers that move between roles */
    bool stmatrix;     /* registers to shared memory as 8x8 matrices */
    bool bf16;         /* numbers of bfloat16 are compared, and added in memory */
    bool atomic_runs;  /* one atomic addition takes 16 bytes of floats */
    int warp_size;     /* 1 on the CPU */
    int shared_bytes;  /* most shared memory that a program may opt in to */
    int registers;     /* of an SM, 32 bits each */
    int vector_bytes;  /* CPU: width of a vector register */
} TargetInfo;

/* "cpu", "sm_80", "sm_90a", ... False when sdc has no such target. */
bool target_info(const char *name, TargetInfo *out);

/* The names accepted, for messages. */
const char *target_names(void);

#endif

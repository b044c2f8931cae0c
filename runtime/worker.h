/* What a compile worker and its host say to one another over a socket: fields, each a
   size of 8 bytes and so many bytes, in the order of these lists. Both ends are of one
   build: numbers and structures are the machine's. */
#ifndef SDC_RUNTIME_WORKER_H
#define SDC_RUNTIME_WORKER_H

/* Texts of a request, NUL-terminated; a field of no bytes is NULL. Behind them come, each
   with a number before it, the bindings and the folders of imports. */
typedef enum WorkerText {
    WORKER_PATH,
    WORKER_SOURCE,
    WORKER_KERNEL,
    WORKER_SIGNATURE,
    WORKER_TARGET,
    WORKER_CPU,
    WORKER_NUMBERS, /* a WorkerNumbers */
    WORKER_TEXTS
} WorkerText;

typedef struct WorkerNumbers {
    int emit, lineinfo, debug, check, is_tir, color;
    unsigned long long memory; /* bytes of address space; 0: no limit */
} WorkerNumbers;

/* Fields of an answer. */
typedef enum WorkerAnswer {
    WORKER_STATUS, /* an SdcStatus as int */
    WORKER_META,   /* an SdcrtMeta */
    WORKER_CODE,
    WORKER_ERROR, /* texts */
    WORKER_WARNINGS,
    WORKER_REPRODUCER,
    WORKER_ANSWERS
} WorkerAnswer;

#endif

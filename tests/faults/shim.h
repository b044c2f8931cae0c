/* What tests/faults/shim.c, loaded in front of the C library, lets fail. */
#ifndef SDC_TESTS_FAULTS_SHIM_H
#define SDC_TESTS_FAULTS_SHIM_H

#include <stdatomic.h>

typedef enum FaultKind { FAULT_NONE, FAULT_MEMORY, FAULT_FILE } FaultKind;

enum { FAULT_SHORT = -1 }; /* as `error`: half is read or written */

typedef struct Faults {
    atomic_int kind;       /* of operation that is counted and fails */
    atomic_long at;        /* the number of the one that fails, from 1; 0: none */
    atomic_int forever;    /* all later ones, too */
    atomic_int error;      /* errno of a file operation */
    atomic_long count;     /* operations of the kind so far */
    atomic_long live;      /* blocks allocated and not freed */
} Faults;

typedef Faults *FaultsGet(void); /* "faults_get" */

#endif

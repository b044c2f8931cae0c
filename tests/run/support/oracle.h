/* Launches of the run tests in the interpreter of tile IR; private to tests/run/support.
   It knows nothing of harness.h, some of whose names are the compiler's, too. */
#ifndef TESTS_RUN_SUPPORT_ORACLE_H
#define TESTS_RUN_SUPPORT_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/sdc.h"

typedef struct OracleJob {
    const char *path, *text; /* of the module; text NULL: it is in the file */
    const char *kernel;
    const char *const *bind;
    int nbind;
    SdcGrid grid;
    const SdcArg *args;
    int nargs;
    /* Bytes that may be touched from an address on; 0: not known. */
    size_t (*left)(void *user, const void *p);
    void *user;
} OracleJob;

bool oracle_wanted(void); /* SDC_TEST_TARGET=interp or passes */

/* Specializes the kernel as a launch does, and interprets it. Fails the test when an
   access is outside of the memory. */
void oracle_launch(const OracleJob *job);

/* Interprets the first kernel of a text of tile IR on pointers, to bytes[i] each, and
   integers. `undefined` as in interp.h. */
void oracle_text(const char *text, const SdcArg *args, const size_t *bytes, int n,
                 SdcGrid grid, uint64_t undefined);

#endif

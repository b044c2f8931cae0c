/* All state of one compilation. Nothing in the compiler is global: what a stage needs
   hangs off the session. One session belongs to one thread at a time. */
#ifndef SDC_IR_SESSION_H
#define SDC_IR_SESSION_H

#include "ir/base/arena.h"
#include "ir/base/diag.h"
#include "ir/base/str.h"
#include "ir/type.h"

typedef struct LayoutTable LayoutTable;

typedef struct Session {
    FailPoint fail;  /* set by the API entry for the length of a call */
    Arena perm;      /* types, layouts, names, sources, diagnostics */
    Arena ast;       /* syntax trees */
    Arena mod;       /* tile IR */
    Arena tmp;       /* scratch of a pass; reset by the pass manager */
    NameTable names;
    Diag diag;
    TypeTable *types;
    LayoutTable *layouts;
    int next_source;
} Session;

/* `limit`: bytes per arena, 0 for the default of 2 GiB. Returns NULL when out of
   memory. */
Session *session_new(size_t limit);
void session_free(Session *s);

#endif

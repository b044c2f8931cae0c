/* Names of one function while it is walked. A binding may be undone back to a mark, which
   is how the arms of a runtime `if` and the body of a loop see the same starting point
   without a copy of the scope. Iteration is in the order of first binding. */
#ifndef SDC_FRONTEND_SCOPE_H
#define SDC_FRONTEND_SCOPE_H

#include "frontend/value.h"
#include "ir/base/map.h"

typedef struct Binding {
    Name name;
    Val val;         /* NULL: not bound (any more) */
    Loc loc;         /* of the last binding */
    bool constexpr_; /* declared with ': tl.constexpr', or a constexpr parameter */
    int stamp;       /* for collecting changes */
} Binding;

typedef struct ScopeUndo {
    int slot;
    Binding old;
} ScopeUndo;

typedef struct Scope {
    Arena *arena;
    Map index;
    Binding *slots;
    int nslot, slot_cap;
    ScopeUndo *log;
    int nlog, log_cap;
    int stamp;
} Scope;

void scope_init(Scope *s, Arena *a);
Binding *scope_find(Scope *s, Name name); /* NULL when not bound */
void scope_set(Scope *s, Name name, Val v, Loc loc, bool constexpr_);
void scope_unset(Scope *s, Name name);
int scope_mark(const Scope *s);
void scope_rollback(Scope *s, int mark);

/* Slots changed since the mark, each once, in slot order. */
int scope_changes(Scope *s, int mark, int **slots);
/* What a slot held at the mark. */
Binding scope_at(const Scope *s, int mark, int slot);

#endif

/* The names of one function while it is walked. Bindings can be undone back to a mark: so
   both arms of a runtime `if`, and the body of a loop, start from the same bindings
   without a copy of the scope. Slots are in the order of first binding. */
#ifndef SDC_FRONTEND_SCOPE_H
#define SDC_FRONTEND_SCOPE_H

#include "frontend/value.h"
#include "ir/base/map.h"

typedef struct Binding {
    Name name;
    Val val;         /* NULL: not bound (any more) */
    Loc loc;         /* of the last binding */
    bool constexpr_; /* declared with ': tl.constexpr', or a constexpr parameter */
    int stamp;       /* last scope_changes that returned it */
} Binding;

/* What a slot was before a change. */
typedef struct ScopeUndo {
    int slot;
    Binding old;
} ScopeUndo;

typedef struct Scope {
    Arena *arena;
    Map index; /* Name -> slot */
    Binding *slots;
    int nslot, slot_cap;
    ScopeUndo *log; /* of all changes */
    int nlog, log_cap;
    int stamp; /* counts calls of scope_changes */
} Scope;

void scope_init(Scope *s, Arena *a);
Binding *scope_find(Scope *s, Name name); /* NULL when not bound */
void scope_set(Scope *s, Name name, Val v, Loc loc, bool constexpr_);
void scope_unset(Scope *s, Name name);
/* The present state, for the functions below. */
int scope_mark(const Scope *s);
/* Undoes all changes since the mark. */
void scope_rollback(Scope *s, int mark);

/* The slots changed since the mark, each once and in order, in *slots; returns how
   many. */
int scope_changes(Scope *s, int mark, int **slots);
/* The binding that a slot had at the mark. */
Binding scope_at(const Scope *s, int mark, int slot);

#endif

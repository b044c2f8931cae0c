/* The forms of tile IR (ir/forms.def) as a contract between passes and code generation:
   what is said to hold can be checked, and what nobody made is refused. */
#ifndef SDC_PASSES_FORMS_H
#define SDC_PASSES_FORMS_H

#include "ir/base/arena.h"
#include "passes/pass.h"

/* May the pass run on f? It may when f is in every form that the pass needs - a form that
   no pass made, but that holds all the same, counts - and in none that it must stand in
   front of. Else an error in the session's diag says which pass is missing or too early.
 */
bool forms_allow(Func *f, const TargetInfo *t, PassId pass);

/* Do all forms hold that the functions are said to be in? What does not is an error. */
bool forms_verify(Module *m, const TargetInfo *t);

/* Are the functions in every form that code generation for the target counts on? */
bool forms_final(Module *m, const TargetInfo *t);

/* What a form does not hold for: the op, and why. */
typedef struct FormFault {
    const Op *op; /* NULL: it holds */
    const char *why;
} FormFault;

/* The checks that are a pass's walk without its changes; each stands beside its pass. */
FormFault stage_plan_check(Func *f, const TargetInfo *t);
FormFault insert_proxy_fence_check(Func *f, Arena *a);
FormFault alloc_shared_check(Func *f, const TargetInfo *t, Arena *a);
FormFault insert_barriers_check(Func *f, const TargetInfo *t, Arena *a);
FormFault insert_read_fence_check(Func *f, const TargetInfo *t, Arena *a);
FormFault insert_pdl_check(Func *f, const TargetInfo *t);

#endif

/* Structure and type checks of tile IR. Collects all violations. */
#ifndef SDC_IR_VERIFY_H
#define SDC_IR_VERIFY_H

#include "ir/ir.h"
#include "ir/target.h"

/* Violations go to s->diag as errors at the op's place, with the op printed in a note.
   True when there are none. */
bool module_verify(Module *m);
bool func_verify(Func *f);

/* Can the module become code for the target (`name` of a message): parameters that a host
   can pass, no operation of another target's form? What cannot goes to s->diag, once a
   function. A kernel that is only meant to be looked at after a pass need not. */
bool module_fits(Module *m, const TargetInfo *t, const char *name);
/* The same of a function's operations alone. */
bool func_fits(const Func *f, const TargetInfo *t, const char *name);

/* The rule of an op: checks operands, attributes and regions' arguments, and infers
   result types. types[i] is set to the inferred type, or left NULL where only the op's
   author knows it. On a violation returns false and writes the reason to `why`. */
bool op_infer(Session *s, const Op *op, const Type **types, Buf *why);

#endif

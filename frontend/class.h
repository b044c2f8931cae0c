/* Classes of a module that kernels use: aggregates (@triton.aggregate), NamedTuples, and
   classes that only hold functions and constants. An object is a tuple of its fields'
   values (FE_TUPLE) with the class as its `self`: it crosses regions as any tuple. */
#ifndef SDC_FRONTEND_CLASS_H
#define SDC_FRONTEND_CLASS_H

#include "frontend/sema.h"

struct PyClass;

/* The value of a class that the module's code made. */
Val val_class(Sema *s, const struct PyClass *class);
/* An object of it with a value for each field, which it keeps. */
FeVal *val_object(Sema *s, Val class, const Val *items, int n);
const char *class_name(Val class);
bool val_is_class(Val v);  /* written in a module */
bool val_is_object(Val v); /* an instance of such a class */
/* Is v an object of the class, or of one that inherits from it? */
bool object_is(Sema *s, Val v, Val class);
/* A NamedTuple is indexed and unpacked as the tuple that it is; an aggregate is not. */
bool object_is_tuple(Val v);

Val class_construct(Sema *s, Val class, const CallArg *args, int n, Loc loc);
/* A field, a method bound to the object, a function or constant of the class; NULL: none.
 */
Val object_attribute(Sema *s, Val v, Name attr, Loc loc);
Val class_attribute(Sema *s, Val class, Name attr, Loc loc);
/* `self.name = v`, possible while __init__ runs; false after an error. */
bool object_set(Sema *s, Val v, Name attr, Val to, Loc loc);
/* What operators take by methods of its class: an aggregate, which is no tuple. */
bool val_is_aggregate(Val v);
/* x + y by the method of an aggregate, `names` of the left and of the right side, as
   Python chooses: a class that inherits from the other one's goes first. */
Val object_binary(Sema *s, const char *text, const char *const names[2], Val x, Val y,
                  Loc loc);
Val object_unary(Sema *s, const char *text, const char *name, Val x, Loc loc);
/* v[index] by __getitem__. */
Val object_item(Sema *s, Val v, Val index, Loc loc);
/* tl.aggregate_replace(v, field=value, ...). */
Val object_replace(Sema *s, const CallArg *args, int n, Loc loc);

#endif

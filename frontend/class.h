/* Classes of a module that kernels use: aggregates (@triton.aggregate), NamedTuples, and
   classes that only hold functions and constants. An object is a tuple of its fields'
   values (FE_TUPLE) with the class as its `self`: it crosses regions as any tuple. */
#ifndef SDC_FRONTEND_CLASS_H
#define SDC_FRONTEND_CLASS_H

#include "frontend/sema.h"

struct PyClass;

/* The value of a class that module level code made. */
Val val_class(Sema *s, const struct PyClass *class);
/* An object of a class with the values of its n fields; keeps the array. */
FeVal *val_object(Sema *s, Val class, const Val *items, int n);
const char *class_name(Val class);
bool val_is_class(Val v);  /* a class of a module */
bool val_is_object(Val v); /* an instance of such a class */
/* Is v an object of the class, or of one that inherits from it? */
bool object_is(Sema *s, Val v, Val class);
/* Can it be indexed and unpacked: is it of a NamedTuple, not an aggregate? */
bool object_is_tuple(Val v);

/* class(args) */
Val class_construct(Sema *s, Val class, const CallArg *args, int n, Loc loc);
/* A field, a method bound to the object, or a function or constant of the class; NULL:
   there is none. */
Val object_attribute(Sema *s, Val v, Name attr, Loc loc);
Val class_attribute(Sema *s, Val class, Name attr, Loc loc);
/* v.attr = to, which only __init__ may do; false after an error. */
bool object_set(Sema *s, Val v, Name attr, Val to, Loc loc);
/* An object of an aggregate: operators call methods of its class. */
bool val_is_aggregate(Val v);
/* A binary operator, of which at least one operand is an aggregate, by its method:
   names[0] of x, "__add__", or names[1] of y, "__radd__". As in Python, the method of y
   is tried first if its class inherits from that of x. text: the operator, for
   messages. */
Val object_binary(Sema *s, const char *text, const char *const names[2], Val x, Val y,
                  Loc loc);
Val object_unary(Sema *s, const char *text, const char *name, Val x, Loc loc);
/* v[index] by __getitem__. */
Val object_item(Sema *s, Val v, Val index, Loc loc);
/* tl.aggregate_replace(v, field=value, ...). */
Val object_replace(Sema *s, const CallArg *args, int n, Loc loc);

#endif

/* Values and functions of host code that kernels use at compile time, such as the dicts
   and lambdas of @triton.heuristics. */
#ifndef SDC_FRONTEND_HOST_H
#define SDC_FRONTEND_HOST_H

#include "frontend/sema.h"

/* An entry of a dict. */
Val host_pair(Sema *s, const char *name, Val v);
/* dict[name]; NULL: it has no such entry. */
Val host_item(Val dict, const char *name);
/* dict[key]; NULL: it has no such entry. */
Val host_value(Val dict, Val key);
/* The value of a DICT node. */
Val host_dict(Sema *s, const Node *n);
/* The result of x.append(y), x.get(key, otherwise), x.keys(), x.values() or x.items();
   NULL: it is another call. */
Val host_method(Sema *s, const Node *call);
/* Calls a function or lambda of the source with n positional arguments and a dict of
   named ones, which may have more than it takes. */
Val host_call(Sema *s, const Node *fn, FrontModule *home, const Val *args, int n,
              Val named);

#endif

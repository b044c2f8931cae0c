/* Python of the host at compile time. */
#ifndef SDC_FRONTEND_HOST_H
#define SDC_FRONTEND_HOST_H

#include "frontend/sema.h"

Val host_pair(Sema *s, const char *name, Val v);
/* The value of a name in a dict; NULL when it has none. */
Val host_item(Val dict, const char *name);
/* That of any key. */
Val host_value(Val dict, Val key);
/* A dict of the source. */
Val host_dict(Sema *s, const Node *n);
/* x.append(y), x.get(key, otherwise), keys, values and items; NULL for any other call. */
Val host_method(Sema *s, const Node *call);
/* A function or lambda on `n` arguments by place and a dict of those by name, which may
   have more than it takes. */
Val host_call(Sema *s, const Node *fn, FrontModule *home, const Val *args, int n,
              Val named);

#endif

/* Between the host's view of a kernel (strings, SpecArg) and the frontend's values. */
#ifndef SDC_FRONTEND_SPEC_H
#define SDC_FRONTEND_SPEC_H

#include "frontend/sema.h"

/* A Sema that can evaluate module-level code of m; f is NULL until IR is built. */
void sema_init(Sema *s, FrontModule *m, Frame *host);

/* The first configuration of @triton.autotune, and what it says. */
typedef struct Config {
    bool found;
    bool asked; /* there is an autotune whose configurations could not be evaluated */
    Loc loc;
    Name *names;
    Val *values;
    int n;
    int num_warps, num_stages, num_ctas; /* 0: not said */
} Config;
Config config_first(Sema *s, const Node *fn);
Val config_value(const Config *c, Name name); /* NULL when absent */

/* Decorator of fn whose name ends in `name` (autotune, jit, heuristics); NULL when
   absent. */
const Node *find_decorator(const Node *fn, const char *name);
/* Keyword argument, or positional argument `at` (-1: none), of a call. */
const Node *call_argument(const Node *call, const char *keyword, int at);

struct PyVal;
/* What a decorator of a jit function was given when its file was run; NULL: nothing. */
const struct PyVal *decorator_value(FrontModule *m, const Node *fn, const char *kind,
                                    const char *keyword, int at);

bool param_is_constexpr(const Node *param);

/* What a specialization is asked for by. */
typedef struct SpecText {
    const char *signature; /* NULL: nothing */
    const char *const *bind;
    int nbind;
} SpecText;

/* The text, and what configurations, heuristics and annotations add. What is open then is
   an error with `all`, else SPEC_UNSET. False after an error. */
bool spec_read(Sema *s, const Node *fn, const SpecText *text, bool all, FrontSpec *out);

/* An object of a NamedTuple of the module. */
Val spec_object(Sema *s, const char *class_, const Val *items, int n, Loc loc);

/* A constant of the host as a value. */
Val spec_value(Sema *s, const SpecArg *a, Loc loc);

/* "tensordesc<fp16[64,64]>"; false when the text is something else. */
bool parse_desc_sig(const char *sig, DType *dt, Shape *block);

#endif

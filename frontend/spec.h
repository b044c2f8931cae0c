/* From the host's description of a specialization (signatures, NAME=VALUE, SpecArg) to
   values of the frontend. */
#ifndef SDC_FRONTEND_SPEC_H
#define SDC_FRONTEND_SPEC_H

#include "frontend/sema.h"

/* A Sema that can evaluate module-level code of m; f is NULL until IR is built. */
void sema_init(Sema *s, FrontModule *m, Frame *host);

/* The first configuration of @triton.autotune. */
typedef struct Config {
    bool found;
    bool asked; /* there is an autotune, but its configurations are not known */
    Loc loc;
    Name *names; /* of the n constexprs that it sets */
    Val *values;
    int n;
    int num_warps, num_stages, num_ctas; /* 0: not given */
} Config;
Config config_first(Sema *s, const Node *fn);
Val config_value(const Config *c, Name name); /* NULL when absent */

/* Decorator of fn whose name ends in `name` (autotune, jit, heuristics); NULL when
   absent. */
const Node *find_decorator(const Node *fn, const char *name);
/* Keyword argument, or positional argument `at` (-1: none), of a call. */
const Node *call_argument(const Node *call, const char *keyword, int at);

struct PyVal;
/* An argument of decorator `kind` of a jit function, by keyword or position `at`, as it
   was when the file was executed; NULL: it has none. */
const struct PyVal *decorator_value(FrontModule *m, const Node *fn, const char *kind,
                                    const char *keyword, int at);

bool param_is_constexpr(const Node *param);

/* The text of a specialization. */
typedef struct SpecText {
    const char *signature;   /* NULL: none */
    const char *const *bind; /* NAME=VALUE */
    int nbind;
} SpecText;

/* Reads the text and adds what configurations, heuristics and annotations give. A
   parameter that is open then is an error if `all`, else SPEC_UNSET. False after an
   error. */
bool spec_read(Sema *s, const Node *fn, const SpecText *text, bool all, FrontSpec *out);

/* An object of NamedTuple `class_` of the module with these fields. */
Val spec_object(Sema *s, const char *class_, const Val *items, int n, Loc loc);

/* A constant of the host as a value. */
Val spec_value(Sema *s, const SpecArg *a, Loc loc);

/* Reads "tensordesc<fp16[64,64]>"; false: the text is something else. */
bool parse_desc_sig(const char *sig, DType *dt, Shape *block);

#endif

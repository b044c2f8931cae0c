/* Passes and their manager. A pass is Func -> bool (changed); the forms that it needs,
   makes and must stand in front of are declared in passes/passes.def. */
#ifndef SDC_PASSES_PASS_H
#define SDC_PASSES_PASS_H

#include "ir/ir.h"
#include "ir/target.h"
#include "passes/budget.h"

/* Forms, as passes.def writes them. */
enum {
#define FORM(id, bit, name, doc) P_##id = FORM_##id,
#include "ir/forms.def"
    P_FORM = FUNC_FORM, /* all of the above */
};

/* What passes are part of: the folders of passes/, in the order of the pipelines. */
typedef enum Phase {
    PHASE_SIMPLIFY,
    PHASE_ACCESS,
    PHASE_CPU,
    PHASE_LAYOUT,
    PHASE_MMA,
    PHASE_SCHEDULE,
    PHASE_FINISH
} Phase;

typedef enum PassId {
#define PASS(fn, name, phase, needs, makes, before, doc) PASS_##fn,
#include "passes/passes.def"
    PASS_COUNT
} PassId;

typedef struct PassTime {
    PassId id;
    double seconds;
    bool changed;
} PassTime;

typedef struct PassCx {
    Session *s;
    TargetInfo target;
    bool verify_each;
    bool roundtrip;         /* print, read, print and compare after each pass */
    int opt_limit;          /* run at most so many passes; -1: all */
    const char *dump_after; /* pass name, "all" or NULL */
    void (*dump)(void *user, const char *pass, const char *tir); /* gets the dumps */
    void *dump_user;
    PassTime *times; /* filled when not NULL, `time_cap` long */
    int ntime, time_cap;
    const char *current; /* pass that is running, for crash reports */
    Budget *budgets;     /* one a function; NULL: what does not fit is an error */
    Budget *budget;      /* that of the function that a pass runs on; never NULL there */
} PassCx;

typedef struct PassInfo {
    const char *name;
    bool (*run)(Func *f, PassCx *cx);
    Phase phase;
    uint32_t needs, makes, before;
    const char *doc;
} PassInfo;

extern const PassInfo pass_info[PASS_COUNT];

/* True when it changed something. */
#define PASS(fn, ...) bool pass_##fn(Func *f, PassCx *cx);
#include "passes/passes.def"

PassId pass_by_name(const char *s, size_t n); /* PASS_COUNT when unknown */

/* Runs the list over every function. False when a pass reported errors or the verifier
   found a violation (both in s->diag). */
bool passes_run(Module *m, PassCx *cx, const PassId *list, int n);

/* Visits every op of r and of the bodies in it, the bodies of an op before the op itself;
   true when any visit was, which means that it changed something. A visit may erase its
   op and change what stands before it. */
typedef bool PassVisit(void *user, Op *op);
bool pass_walk(Region *r, PassVisit *visit, void *user);

/* The lists of a target; see pipeline.c for the reasons behind the order. */
const PassId *pipeline_for(const TargetInfo *t, int *n);

/* "a,b,c" to a list in the tmp arena; an unknown name is an error in s->diag, returns
   -1. */
int passes_parse(Session *s, const char *text, PassId **list);

#endif

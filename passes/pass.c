/* The pass manager: runs a list of passes over every function, refuses one that stands
   where it must not (passes/forms.h), verifies, dumps, times and bisects. Scratch memory
   of a pass is the session's `tmp` arena, reset after each one. */
#include "passes/pass.h"

#include "ir/base/util.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/forms.h"

#include <string.h>

const PassInfo pass_info[PASS_COUNT] = {
#define PASS(fn, name, phase, needs, makes, before, doc)                                 \
    [PASS_##fn] = {name, pass_##fn, PHASE_##phase, needs, makes, before, doc},
#include "passes/passes.def"
};

PassId
pass_by_name(const char *s, size_t n)
{
    for (int i = 0; i < PASS_COUNT; i++)
        if (strlen(pass_info[i].name) == n && memcmp(pass_info[i].name, s, n) == 0)
            return (PassId)i;
    return PASS_COUNT;
}

int
passes_parse(Session *s, const char *text, PassId **list)
{
    int n = 1;
    for (const char *p = text; *p; p++)
        n += *p == ',';
    PassId *out = arena_array(&s->perm, PassId, n);
    int count = 0;
    for (const char *p = text; *p;) {
        size_t len = strcspn(p, ",");
        PassId id = pass_by_name(p, len);
        if (len && id == PASS_COUNT) {
            diag_error(&s->diag, (Loc){0},
                       "no pass is named '%.*s'; 'sdc doctor --print-passes' lists them",
                       (int)min_i64((int64_t)len, 60), p);
            return -1;
        }
        if (len)
            out[count++] = id;
        p += len + (p[len] == ',');
    }
    *list = out;
    return count;
}

static bool
walk(Region *r, PassVisit *visit, void *user, int depth)
{
    bool changed = false;
    if (depth > MAX_REGION_DEPTH)
        return false;
    region_each(r, op)
    {
        for (int i = 0; i < op->nregion; i++)
            changed |= walk(op->regions[i], visit, user, depth + 1);
        changed |= visit(user, op);
    }
    return changed;
}

bool
pass_walk(Region *r, PassVisit *visit, void *user)
{
    return walk(r, visit, user, 0);
}

static const char *
module_text(Session *s, const Module *m)
{
    Buf b;
    buf_init(&b, &s->tmp);
    module_print(&b, m);
    return b.s ? b.s : "";
}

/* What is printed must read back to the same text. */
static bool
check_roundtrip(Module *m, const char *pass)
{
    Session *s = m->s;
    const char *once = module_text(s, m);
    Source *src = arena_new(&s->tmp, Source);
    *src = (Source){.path = pass, .text = once, .size = strlen(once)};
    Module *again = module_read(s, src);
    if (!again)
        return false;
    if (strcmp(once, module_text(s, again)) != 0) {
        diag_error(&s->diag, (Loc){0},
                   "tile IR after '%s' does not survive print and read", pass);
        return false;
    }
    return true;
}

/* A pass that makes one target's form does not meet the other's. */
static bool
takes_form(const Func *f, const PassInfo *p)
{
    const char *name = p->makes & P_CPU ? "cpu" : "sm_90a";
    TargetInfo t;
    return !(p->makes & (P_CPU | P_LAYOUT)) || !target_info(name, &t) ||
           func_fits(f, &t, name);
}

static bool
run_one(Module *m, PassCx *cx, PassId id)
{
    const PassInfo *p = &pass_info[id];
    double start = seconds_now();
    bool changed = false;
    cx->current = p->name;
    for (int i = 0; i < m->nfunc; i++) {
        Func *f = m->funcs[i];
        if (f->given & p->before)
            continue; /* the kernel came as tile IR that is past this pass */
        if (!forms_allow(f, &cx->target, id) || !takes_form(f, p))
            return false;
        if (p->makes && (f->props & p->makes) == p->makes)
            continue; /* the kernel came as tile IR in that form */
        Budget none = {0};
        cx->budget = cx->budgets ? &cx->budgets[i] : &none;
        changed |= p->run(f, cx);
        if (cx->budget->again)
            return false;
        f->props |= p->makes;
    }
    if (cx->times && cx->ntime < cx->time_cap)
        cx->times[cx->ntime++] = (PassTime){id, seconds_now() - start, changed};
    if (!diag_ok(&cx->s->diag))
        return false;
    if (cx->verify_each && !(module_verify(m) && forms_verify(m, &cx->target))) {
        diag_note(&cx->s->diag, (Loc){0}, "found by the verifier after pass '%s'",
                  p->name);
        return false;
    }
    if (cx->roundtrip && !check_roundtrip(m, p->name))
        return false;
    if (cx->dump && cx->dump_after &&
        (strcmp(cx->dump_after, "all") == 0 || strcmp(cx->dump_after, p->name) == 0))
        cx->dump(cx->dump_user, p->name, module_text(cx->s, m));
    return true;
}

bool
passes_run(Module *m, PassCx *cx, const PassId *list, int n)
{
    for (int i = 0; i < n; i++) {
        if (cx->opt_limit >= 0 && i >= cx->opt_limit)
            break;
        ArenaMark mark = arena_mark(&cx->s->tmp);
        bool ok = run_one(m, cx, list[i]);
        arena_reset(&cx->s->tmp, mark);
        if (!ok)
            return false;
    }
    cx->current = NULL;
    return true;
}

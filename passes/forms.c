/* Forms are made by passes, one after the other, and counted on by the passes behind them
   and by code generation. A list of passes with one missing, or two in the wrong order,
   is refused here, not found out on a GPU:

       canon,..,alloc-shared                 code without barriers: "in no form 'synced',
                                             which pass 'insert-barriers' makes"
       ..,insert-barriers,alloc-shared       "pass 'insert-barriers' needs form 'placed'"
       ..,alloc-shared,licm                  "pass 'licm' must stand in front of
                                             'alloc-shared'"

   A function is in a form when its bit is set, or when a look at the IR shows that it is:
   a kernel without shared memory has its barriers. Under --verify-each the look is taken
   after each pass for the bits that are set, too. */
#include "passes/forms.h"

#include "ir/base/util.h"
#include "ir/edit.h"

#include <stdio.h>
#include <string.h>

static const struct {
    uint32_t bit;
    const char *name;
} forms[] = {
#define FORM(id, bit, name, doc) {bit, name},
#include "ir/forms.def"
};

/* What code generation counts on. */
enum {
    FINAL_CPU = FORM_ACCESS | FORM_CPU,
    FINAL_GPU = FORM_ACCESS | FORM_LAYOUT | FORM_MMA | FORM_EXPANDED | FORM_FENCED |
                FORM_PLACED | FORM_SYNCED | FORM_RELEASED | FORM_ORDERED
};

/* The name of the pass that makes a form. */
static const char *
maker(uint32_t bit)
{
    for (int i = 0; i < PASS_COUNT; i++)
        if (pass_info[i].makes & bit)
            return pass_info[i].name;
    return "?";
}

/* ---- what can be seen op by op */

static bool
is_tile(const Value *v)
{
    return v->type->kind == TY_TILE;
}

/* Why the op may not be in a function of that form; NULL when it may. */
static const char *
misfit(const Func *f, const Op *op, uint32_t bit)
{
    bool desc = (op->kind >= OP_DESC_LOAD && op->kind <= OP_DESC_SCATTER);
    const char *unit = op->kind == OP_DOT ? attr_str(&op->attrs, ATTR_UNIT) : NULL;
    switch (bit) {
    case FORM_ACCESS:
        if (op->kind == OP_BLOCK_LOAD || op->kind == OP_BLOCK_STORE)
            return "accesses through a block pointer";
        return desc && !(f->props & FORM_LAYOUT) ? "accesses through a descriptor" : NULL;
    case FORM_LAYOUT:
        for (int i = 0; i < op->nresult; i++)
            if (is_tile(&op->results[i]) && !op->results[i].type->layout)
                return "gives a tile without layout";
        return NULL;
    case FORM_CPU:
        for (int i = 0; i < op->nresult && !(f->props & FORM_CPU); i++)
            if (is_tile(&op->results[i]))
                return "gives a tile";
        return NULL;
    case FORM_MMA:
        return unit && strcmp(unit, "wgmma") == 0 ? "is still to become wgmma" : NULL;
    case FORM_EXPANDED:
        if (attr_has(&op->attrs, ATTR_SCHEDULE))
            return "is still to be placed by its schedule";
        return op_is_planned(op) ? "is still to be issued ahead of its loop" : NULL;
    default: return NULL;
    }
}

static FormFault
find_misfit(const Func *f, const Region *r, uint32_t bit, int depth)
{
    FormFault fault = {0};
    for (const Op *op = r->first; op && depth <= MAX_REGION_DEPTH; op = op->next) {
        const char *why = misfit(f, op, bit);
        if (why)
            return (FormFault){op, why};
        for (int i = 0; i < op->nregion && !fault.op; i++)
            fault = find_misfit(f, op->regions[i], bit, depth + 1);
        if (fault.op)
            break;
    }
    return fault;
}

static FormFault
check(Func *f, const TargetInfo *t, uint32_t bit)
{
    Arena *a = &f->module->s->tmp;
    switch (bit) {
    case FORM_SCHEDULED: return stage_plan_check(f, t);
    case FORM_FENCED: return insert_proxy_fence_check(f, a);
    case FORM_PLACED: return alloc_shared_check(f, t, a);
    case FORM_SYNCED: return insert_barriers_check(f, t, a);
    case FORM_RELEASED: return insert_read_fence_check(f, t, a);
    case FORM_ORDERED: return insert_pdl_check(f, t);
    default: return find_misfit(f, f->body, bit, 0);
    }
}

static FormFault
look(Func *f, const TargetInfo *t, uint32_t bit)
{
    ArenaMark mark = arena_mark(&f->module->s->tmp);
    FormFault fault = check(f, t, bit);
    arena_reset(&f->module->s->tmp, mark);
    return fault;
}

/* ---- the contract */

/* Is f in all of these forms? `who` needs them. */
static bool
has_forms(Func *f, const TargetInfo *t, uint32_t needs, const char *who)
{
    Diag *d = &f->module->s->diag;
    for (int i = 0; i < COUNT_OF(forms); i++) {
        if (!(forms[i].bit & needs & ~f->props))
            continue;
        FormFault fault = look(f, t, forms[i].bit);
        if (fault.op) {
            diag_error(d, f->loc,
                       "%s needs form '%s', which pass '%s' makes: it must run first",
                       who, forms[i].name, maker(forms[i].bit));
            diag_note(d, fault.op->loc, "'%s' %s", op_info[fault.op->kind].name,
                      fault.why);
            return false;
        }
        f->props |= forms[i].bit;
    }
    return true;
}

bool
forms_allow(Func *f, const TargetInfo *t, PassId pass)
{
    const PassInfo *p = &pass_info[pass];
    char who[80];
    for (int i = 0; i < COUNT_OF(forms); i++) {
        if (!(forms[i].bit & p->before & f->props))
            continue;
        diag_error(&f->module->s->diag, f->loc,
                   "pass '%s' must stand in front of pass '%s', which makes form '%s'",
                   p->name, maker(forms[i].bit), forms[i].name);
        return false;
    }
    snprintf(who, sizeof who, "pass '%s'", p->name);
    return has_forms(f, t, p->needs, who);
}

bool
forms_verify(Module *m, const TargetInfo *t)
{
    bool ok = true;
    for (int k = 0; k < m->nfunc; k++)
        for (int i = 0; i < COUNT_OF(forms); i++) {
            if (!(m->funcs[k]->props & forms[i].bit))
                continue;
            FormFault fault = look(m->funcs[k], t, forms[i].bit);
            if (fault.op)
                diag_error(&m->s->diag, fault.op->loc, "form '%s' does not hold: '%s' %s",
                           forms[i].name, op_info[fault.op->kind].name, fault.why);
            ok &= !fault.op;
        }
    return ok;
}

bool
forms_final(Module *m, const TargetInfo *t)
{
    bool ok = true;
    for (int i = 0; i < m->nfunc; i++)
        ok &=
            has_forms(m->funcs[i], t, t->gpu ? FINAL_GPU : FINAL_CPU, "code generation");
    return ok;
}

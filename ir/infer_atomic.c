/* Rules of atomic operations: what {rmw} computes must exist on the elements, since code
   generation takes {rmw} for what it says. */
#include "ir/infer.h"

#include "ir/base/util.h"

#include <string.h>

/* Elements that are bytes of memory at least: an i1 is less than can be exchanged. */
static bool
has_bytes(const Type *elem)
{
    return elem->kind == TY_PTR || (elem->kind == TY_SCALAR && elem->scalar != SK_I1);
}

static bool
attr_among(RuleCx *c, AttrKey key, const char *what, const char *const *words)
{
    Name text = attr_str(&c->op->attrs, key);
    for (int i = 0; text && words[i]; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return !text || rule_fail(c, "{%s} cannot be \"%s\"", what, text);
}

static bool
order_ok(RuleCx *c)
{
    static const char *const sems[] = {"relaxed", "acquire", "release", "acq_rel", NULL};
    static const char *const scopes[] = {"gpu", "cta", "sys", NULL};
    return attr_among(c, ATTR_SEM, "sem", sems) &&
           attr_among(c, ATTR_SCOPE, "scope", scopes);
}

/* {rmw} is there, and computes on elements of this type. */
static bool
rmw_ok(RuleCx *c, const Type *elem)
{
    static const char *const on_ints[] = {"add",  "smax", "smin", "umax",
                                          "umin", "and",  "or",   "xor"};
    static const char *const on_floats[] = {"fadd", "fmax", "fmin"};
    Name rmw = attr_str(&c->op->attrs, ATTR_RMW);
    if (!rmw)
        return rule_fail(c, "needs {rmw}");
    bool known = strcmp(rmw, "xchg") == 0, fits = known && has_bytes(elem);
    for (int i = 0; i < COUNT_OF(on_ints); i++)
        if (strcmp(rmw, on_ints[i]) == 0)
            known = true, fits = type_is_int(elem) && has_bytes(elem);
    for (int i = 0; i < COUNT_OF(on_floats); i++)
        if (strcmp(rmw, on_floats[i]) == 0)
            known = true, fits = type_is_float(elem) && type_bits(elem) >= 16;
    if (!known)
        return rule_fail(c, "unknown {rmw=\"%s\"}", rmw);
    return fits || rule_fail(c, "{rmw=\"%s\"} does not work on %s", rmw,
                             rule_str(c, elem));
}

bool
rule_atomic_rmw(RuleCx *c)
{
    const Type *t = rule_pointed(c, opnd(c, 0));
    if (!t || opnd(c, 1) != t)
        return rule_fail(c, "value %s does not fit pointers %s", rule_str(c, opnd(c, 1)),
                         rule_str(c, opnd(c, 0)));
    c->out[0] = t;
    return rmw_ok(c, type_elem(t)) && order_ok(c) && rule_mask(c, 2, opnd(c, 0));
}

bool
rule_atomic_cas(RuleCx *c)
{
    const Type *t = rule_pointed(c, opnd(c, 0));
    if (!t || opnd(c, 1) != t || opnd(c, 2) != t)
        return rule_fail(c, "operands do not fit pointers %s", rule_str(c, opnd(c, 0)));
    c->out[0] = t;
    if (!has_bytes(type_elem(t)))
        return rule_fail(c, "does not work on %s", rule_str(c, type_elem(t)));
    return order_ok(c);
}

bool
rule_desc_atomic(RuleCx *c)
{
    return rule_desc_store(c) && rmw_ok(c, opnd(c, 0)->elem) && order_ok(c);
}

/* Elements of a thread that are known to be equal: comparing indices with a bound that is
   divisible by 16 has the same result for 16 neighbours, so only one of them is computed.
   LLVM sees the bound but not its divisor, and would keep a comparison, a predicate and a
   select for every element. Values that are stored are compared as well: unlike in
   addresses, integers may wrap in them, so that the two have facts of their own. */
#include "codegen/gen_nv.h"
#include "ir/analysis/axis.h"

const AxisFacts *
nv_facts(Gen *g, const Value *v)
{
    Nv *nv = nv_of(g);
    if (!nv->axis)
        nv->axis = axis_new(g->func, &g->s->tmp);
    return axis_of(nv->axis, v);
}

static uint32_t
same_bits(const Value *v, const AxisFacts *f)
{
    const Layout *l = v->type->layout;
    uint32_t same = 0;
    for (int i = 0; i < l->nbasis[LD_REG]; i++) {
        int d = 0;
        while (d < l->rank && layout_part(l, l->basis[LD_REG][i], d) < f->constancy[d])
            d++;
        same |= d == l->rank ? 1u << i : 0;
    }
    return same;
}

static bool
in_registers(const Value *v)
{
    return type_is_tile(v->type) && v->type->layout && v->type->layout->nbasis[LD_REG];
}

uint32_t
nv_same(Gen *g, const Value *v)
{
    return in_registers(v) ? same_bits(v, nv_facts(g, v)) : 0;
}

uint32_t
nv_same_address(Gen *g, const Value *v)
{
    Nv *nv = nv_of(g);
    if (!in_registers(v))
        return 0;
    if (!nv->addresses)
        nv->addresses = axis_new_nowrap(g->func, &g->s->tmp);
    return same_bits(v, axis_of(nv->addresses, v));
}

/* Elements of a thread that are known to be equal: comparing indices with a bound that is
   divisible by 16 has the same result for 16 neighbours, so only one of them is computed.
   LLVM sees the bound but not its divisor, and would keep a comparison, a predicate and a
   select for every element. Values that are stored are compared as well: unlike in
   addresses, integers may wrap in them. */
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

uint32_t
nv_same(Gen *g, const Value *v)
{
    const Layout *l = type_is_tile(v->type) ? v->type->layout : NULL;
    uint32_t same = 0;
    if (!l || !l->nbasis[LD_REG])
        return 0;
    const AxisFacts *f = nv_facts(g, v);
    for (int i = 0; i < l->nbasis[LD_REG]; i++) {
        int d = 0;
        while (d < l->rank && layout_part(l, l->basis[LD_REG][i], d) < f->constancy[d])
            d++;
        same |= d == l->rank ? 1u << i : 0;
    }
    return same;
}

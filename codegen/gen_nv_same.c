/* Elements of a thread that are known to be equal: what compares indices with a bound
   that 16 divides has one answer for 16 neighbours. One of them is computed. LLVM sees
   the bound and not what divides it, and would keep a comparison, a predicate and a
   select for every element. What is stored is compared, too: numbers may wrap, unlike
   those of addresses. */
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
    if (!l || !l->n[LD_REG])
        return 0;
    const AxisFacts *f = nv_facts(g, v);
    for (int i = 0; i < l->n[LD_REG]; i++) {
        int d = 0;
        while (d < l->rank && layout_part(l, l->b[LD_REG][i], d) < f->constancy[d])
            d++;
        same |= d == l->rank ? 1u << i : 0;
    }
    return same;
}

/* Elements of a thread that are known to be equal: what compares indices with a bound
   that 16 divides has one answer for 16 neighbours. One of them is computed. LLVM sees
   the bound and not what divides it, and would keep a comparison, a predicate and a
   select for every element. As for addresses, indices are taken not to wrap. */
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
    Nv *nv = nv_of(g);
    const Layout *l = type_is_tile(v->type) ? v->type->layout : NULL;
    uint32_t same = 0;
    if (!l || !l->n[LD_REG])
        return 0;
    if (!nv->indices)
        nv->indices = axis_new_nowrap(g->func, &g->s->tmp);
    const AxisFacts *f = axis_of(nv->indices, v);
    for (int i = 0; i < l->n[LD_REG]; i++) {
        int d = 0;
        while (d < l->rank && layout_part(l, l->b[LD_REG][i], d) < f->constancy[d])
            d++;
        same |= d == l->rank ? 1u << i : 0;
    }
    return same;
}

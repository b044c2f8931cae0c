/* Block dropout and matmuls of all blocks, dead or not: as a plain matmul, and no slower.
   Blocks may be smaller than tiles. */
#include "runtime/nn/sparse.h"

void
sparse_whole(const Layer *l, const Masked *p)
{
    Call *c = l->c;
    const GemmTile *t = &p->way->tile;
    GemmTile first = *t;
    int parts = p->way->parts;
    const int64_t *size = p->c.shape, K = p->a.shape[1];
    int64_t tiles = ceil_over(size[0], t->m) * ceil_over(size[1], t->n);
    first.n = (int)power_over(t->n / 2 + 1, t->n);
    SdcTensor sums = sparse_sums(c, &p->c, parts);
    if (c->status != SDC_OK)
        return;
    call_next(c);
    sparse_bind(c, &first);
    call_bind(c, "REST_N", t->n - first.n);
    call_bind(c, "MASK_M", p->mask_m);
    call_bind(c, p->dx ? "MASK_N" : "MASK_K", p->mask_k);
    call_tensor(c, &p->a);
    call_tensor(c, &p->b);
    call_tensor(c, &sums);
    sparse_args(c, p, &sums, sparse_scale(l->d));
    sparse_seed(c, l->d);
    call_int(c, p->count_m);
    call_int(c, p->count_k);
    call_int(c, parts);
    call_int(c, ceil_over(ceil_over(K, parts), t->k) * t->k);
    call_int(c, sparse_part_stride(&sums, parts));
    call_run(c, "sparsedrop_whole", p->dx ? "sdd_whole" : "dsd_whole",
             call_grid(c, tiles * parts), c->stream);
    sparse_join(c, &sums, &p->c, parts);
}

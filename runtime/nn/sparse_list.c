/* Block dropout and matmuls from a list: a launch in front writes what there is to do,
   and as many programs as run at once take one tile after another from it. */
#include "runtime/nn/sparse.h"

enum { LIST_HEAD = 4, LIST_ENTRY = 3 };

/* What kernel work_list writes, of the mask and behind it of the transposed one. */
typedef struct List {
    int64_t side;
    int64_t *words;        /* [2 * side] */
    int32_t *order, *work; /* [2 * side]; live blocks by twos, and the dead ones */
} List;

static int64_t
list_side(int64_t rows, int64_t cols)
{
    return power_over(rows > cols ? rows : cols, SPARSE_LIST_SIDE);
}

size_t
sparse_list_size(int64_t rows, int64_t cols)
{
    return (size_t)(2 * list_side(rows, cols)) * (sizeof(int64_t) + sizeof(int32_t)) +
           (size_t)(LIST_HEAD + LIST_ENTRY * rows * cols) * sizeof(int32_t);
}

/* The list, and the launch that writes it. */
static List
list_run(const Layer *l)
{
    Call *c = l->c;
    List at = {.side = list_side(l->rows, l->cols)};
    int64_t size = (int64_t)sparse_list_size(l->rows, l->cols);
    at.words = l->d->workspace ? l->d->workspace : call_borrow(c, size);
    if (!at.words)
        return at;
    at.order = (int32_t *)(void *)(at.words + 2 * at.side);
    at.work = at.order + 2 * at.side;
    call_next(c);
    call_bind(c, "SIZE", at.side);
    call_bind(c, "num_warps", 8);
    call_ptr(c, SDC_I32, at.order);
    call_ptr(c, SDC_I32, at.work);
    call_ptr(c, SDC_I64, at.words);
    call_int(c, l->rows);
    call_int(c, l->cols);
    sparse_seed(c, l->d);
    call_int(c, l->cols);
    call_int(c, 1);
    call_int(c, c->k->programs);
    call_run(c, "sparsedrop_list", "work_list", sdc_grid(2, 1, 1), l->c->stream);
    return at;
}

static void
run_listed(const Layer *l, const Masked *p, const List *at)
{
    Call *c = l->c;
    int64_t behind = p->transposed ? at->side : 0;
    call_next(c);
    sparse_bind(c, &p->way->tile);
    call_bind(c, "MASK_M", p->mask_m);
    call_bind(c, "MASK_K", p->mask_k);
    call_tensor(c, &p->a);
    call_tensor(c, &p->b);
    call_tensor(c, &p->c);
    call_ptr(c, SDC_I32, at->order + behind);
    call_ptr(c, SDC_I64, at->words + behind);
    sparse_args(c, p, &p->c, sparse_scale(l->d));
    call_run(c, "sparsedrop_list", "dsd_listed", sdc_grid(c->k->programs, 1, 1),
             c->stream);
}

/* dx and, `both`, dw. */
static void
run_listed_gradients(const Layer *l, const List *at, bool both)
{
    Call *c = l->c;
    const GemmTile *t = &l->way.dx.tile;
    call_next(c);
    call_bind(c, "MASK_M", l->ask.mask_m);
    call_bind(c, "MASK_K", l->ask.mask_k);
    call_bind(c, "BLOCK_N", t->n);
    call_bind(c, "STEP", t->k);
    call_bind_bool(c, "BOTH", both);
    call_bind(c, "num_warps", t->warps);
    call_bind(c, "num_stages", t->stages);
    const SdcTensor *dw = both ? l->dw : l->w; /* not written unless both are */
    call_tensor(c, l->dy);
    call_tensor(c, l->x);
    call_tensor(c, l->w);
    for (int i = 0; i < 3; i++)
        call_tensor(c, l->dx);
    for (int i = 0; i < 2; i++)
        call_tensor(c, dw);
    call_ptr(c, SDC_I32, at->work);
    call_ptr(c, SDC_I32, at->order + at->side);
    call_ptr(c, SDC_I64, at->words + at->side);
    sparse_gradient_sizes(l, dw);
    call_run(c, "sparsedrop_list", "gradients_listed", sdc_grid(c->k->programs, 1, 1),
             l->c->stream);
}

void
sparse_listed(const Layer *l)
{
    bool both = l->way.order == SPARSE_LISTED_JOINT;
    List at = list_run(l);
    if (l->c->status == SDC_OK && l->way.y.tile.m)
        run_listed(l, &(Masked[]){sparse_y(l)}[0], &at);
    if (l->c->status == SDC_OK && l->way.dx.tile.m)
        run_listed_gradients(l, &at, both);
    if (l->c->status == SDC_OK && l->way.dw.tile.m && !both)
        run_listed(l, &(Masked[]){sparse_dw(l)}[0], &at);
}

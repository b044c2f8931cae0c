/* What a kernel ends with: tiles of results that go to memory by the copy engine.

       %y = convert_layout %x : tile<.., #rows>        %m = local_alloc %x : mem<..>
       store %ptrs, %y, %mask                    =>    tma_store %d, %m, %i, %j
                                                       tma_wait {pending=0}

   The results of a product are spread over threads so that no thread has what lies in a
   row together; on their way to memory they pass through shared memory in either form.
   Here one thread sends them on from there, without addresses and masks.

   The engine's writes are seen by nobody before the kernel ends: so nothing may follow in
   it that touches memory, but stores through other parameters. */
#include "ir/edit.h"
#include "ir/layout.h"
#include "passes/operand.h"
#include "passes/tma_tile.h"

bool pass_tma_store(Func *f, PassCx *cx);

/* The parameter that an address comes from; NULL: not plain. */
static const Value *
base_of(const Value *ptr)
{
    Affine a;
    return affine_of(ptr, NULL, &a) ? a.ptr : NULL;
}

static bool
is_last(const Op *store, const Value *base)
{
    for (const Op *op = store->next; op; op = op->next) {
        Effect e;
        if (op->nregion)
            return false;
        for (int i = 0; i < 2 && opkind_effect(op->kind, i, &e); i++) {
            bool other = op->kind == OP_STORE && base_of(op_operand(op, 0)) &&
                         base_of(op_operand(op, 0)) != base;
            if (e.resource == RES_ANY || (e.resource == RES_GLOBAL && !other))
                return false;
        }
    }
    return true;
}

/* Results of a product of warpgroups, 16 bits each, that are converted to be stored. */
static Value *
result_of(const Op *store)
{
    int n, warps[2];
    Op *c = value_def(op_operand(store, 1), OP_CONVERT_LAYOUT);
    Value *x = c ? op_operand(c, 0) : NULL;
    bool good = x && x->type->rank == 2 && type_bits(x->type) == 16 &&
                layout_is_wgmma(x->type->layout, &n, warps);
    return good ? x : NULL;
}

static bool
rewrite(Session *s, Func *f, Op *store, int64_t most)
{
    Value *x = result_of(store), *in[2 + TMA_MAX_RANK];
    if (!x || attr_has(&store->attrs, ATTR_VOLATILE))
        return false;
    const Type *mem = operand_buffer_type(s, op_operand(store, 1)->type);
    Value *mask = store->noperand > 2 ? op_operand(store, 2) : NULL;
    if (type_numel(mem) * 2 > most)
        return false;
    TmaTile *tile = tma_tile(f, NULL, op_operand(store, 0), mask, mem);
    if (!tile || !is_last(store, tile->ptr.ptr))
        return false;
    in[0] = tma_tile_desc(tile, store->loc);
    Builder b = builder_before(store);
    b.loc = store->loc;
    in[1] = &build_op(&b, OP_LOCAL_ALLOC, &x, 1, NULL, &mem, 1)->results[0];
    int n = 2 + tma_tile_at(tile, &b, in + 2);
    build_op(&b, OP_TMA_STORE, in, n, NULL, NULL, 0);
    AttrList attrs = {0};
    attr_set_int(&s->mod, &attrs, ATTR_PENDING, 0);
    build_op(&b, OP_TMA_WAIT, NULL, 0, &attrs, NULL, 0);
    op_erase(store);
    return true;
}

bool
pass_tma_store(Func *f, PassCx *cx)
{
    bool changed = false;
    if (!cx->target.tma)
        return false;
    region_each(f->body, op) if (op->kind == OP_STORE)
        changed |= rewrite(cx->s, f, op, cx->target.shared_bytes / 2);
    return changed;
}

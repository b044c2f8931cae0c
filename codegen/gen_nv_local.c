/* Buffers in shared memory: a value of type mem is the address where its elements begin
   (of the first stage, when it has several). Views change that address at most. A tile
   meets a buffer through the map from registers and threads to offsets, which is the
   inverse of the buffer's layout after the tile's. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"
#include "ir/plan/scratch.h"

bool
nv_shared_map(Gen *g, const Type *mem, const Layout *l, SharedMap *out)
{
    F2 place = layout_matrix(mem->layout), tile = layout_matrix(l), inverse;
    if (!f2_invert(&place, &inverse))
        return false;
    F2 map = f2_compose(&inverse, &tile);
    nv_shared_map_make(g, &map, l, shared_elem_bytes(mem), out);
    return true;
}

static bool
define_address(Gen *g, const Value *v, LLVMValueRef at)
{
    Regs *r = at ? nv_define(g, v, 1) : NULL;
    if (r)
        r->v[0] = at;
    return r != NULL;
}

static bool
store_tile(Gen *g, const Op *op, const Value *mem, const Value *tile)
{
    SharedMap map;
    const Layout *l = tile->type->layout;
    LLVMValueRef base = nv_scalar(g, mem);
    Regs *in = nv_regs(g, tile);
    if (!base || !in || !l)
        return false;
    if (!nv_shared_map(g, mem->type, l, &map))
        return gen_unsupported(g, op, "with this layout") != NULL;
    map.owner = nv_owner(g, l);
    const Type *e = type_elem(tile->type);
    bool wide = map.run * map.bytes == SHARED_ACCESS;
    if (wide || !nv_stmatrix(g, &map, base, e, 0, 0, in))
        nv_shared_write(g, &map, base, e, 0, 0, in);
    return true;
}

static bool
gen_alloc(Gen *g, const Op *op)
{
    const Value *v = &op->results[0];
    return define_address(g, v, nv_scratch(g, op)) &&
           (!op->noperand || store_tile(g, op, v, op_operand(op, 0)));
}

static bool
gen_index(Gen *g, const Op *op)
{
    const Value *v = &op->results[0];
    LLVMValueRef base = nv_scalar(g, op_operand(op, 0));
    LLVMValueRef stage = nv_scalar(g, op_operand(op, 1));
    if (!base || !stage)
        return false;
    LLVMValueRef size = ll_int(g->i32, shared_stage_stride(op_operand(op, 0)->type));
    LLVMValueRef at = LLVMBuildNUWMul(g->b, stage, size, "");
    return define_address(g, v, LLVMBuildInBoundsGEP2(g->b, g->i8, base, &at, 1, ""));
}

static bool
gen_trans(Gen *g, const Op *op)
{
    const Value *x = op_operand(op, 0), *v = &op->results[0];
    const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
    if (layout_trans(g->s, x->type->layout, perm->v.ints) != v->type->layout)
        return gen_unsupported(g, op, "to this layout") != NULL;
    return define_address(g, v, nv_scalar(g, x));
}

/* The slice must lie at the low offsets of the parts that the buffer falls into: then it
   begins at the offset of its first element. Offsets are multiples of the slice's
   sizes. */
static bool
slice_fits(const Layout *whole, const Layout *part)
{
    for (int i = 0; i < whole->nbasis[LD_OFFSET]; i++) {
        uint32_t v = whole->basis[LD_OFFSET][i], low = 0, high = 0;
        for (int d = 0; d < whole->rank; d++) {
            uint32_t c = (uint32_t)layout_part(whole, v, d);
            uint32_t size = 1u << part->log_shape[d];
            low |= (c & (size - 1)) << layout_shift(part, d);
            high |= c / size;
        }
        bool inside = i < part->nbasis[LD_OFFSET];
        if (inside ? high || low != part->basis[LD_OFFSET][i] : low != 0)
            return false;
    }
    return true;
}

static bool
gen_slice(Gen *g, const Op *op)
{
    const Value *x = op_operand(op, 0), *v = &op->results[0];
    const Layout *l = x->type->layout;
    F2 place = layout_matrix(l), inverse;
    LLVMValueRef base = nv_scalar(g, x), at = NULL;
    if (!base)
        return false;
    if (!slice_fits(l, v->type->layout) || !f2_invert(&place, &inverse))
        return gen_unsupported(g, op, "across the rows of a buffer") != NULL;
    int bytes = shared_elem_bytes(x->type);
    for (int d = 0; d < l->rank; d++) {
        LLVMValueRef from = nv_scalar(g, op_operand(op, 1 + d));
        for (int i = v->type->layout->log_shape[d]; i < l->log_shape[d]; i++) {
            /* bit i of the first coordinate, moved to where the buffer has it */
            uint64_t to = inverse.col[layout_shift(l, d) + i] * (uint64_t)bytes;
            LLVMValueRef bit = LLVMBuildLShr(g->b, from, ll_int(g->i32, i), "");
            bit = LLVMBuildAnd(g->b, bit, ll_int(g->i32, 1), "");
            bit = LLVMBuildMul(g->b, bit, ll_int(g->i32, (int64_t)to), "");
            at = at ? LLVMBuildXor(g->b, at, bit, "") : bit;
        }
    }
    if (at)
        base = LLVMBuildInBoundsGEP2(g->b, g->i8, base, &at, 1, "");
    return define_address(g, v, base);
}

static bool
gen_load(Gen *g, const Op *op)
{
    SharedMap map;
    const Value *v = &op->results[0], *mem = op_operand(op, 0);
    LLVMValueRef base = nv_scalar(g, mem);
    Regs *out = nv_define(g, v, nv_count(v->type));
    if (!base || !out)
        return false;
    if (!nv_shared_map(g, mem->type, v->type->layout, &map))
        return gen_unsupported(g, op, "with this layout") != NULL;
    if (!nv_ldmatrix(g, &map, base, type_elem(v->type), 0, 0, out) &&
        !nv_ldmatrix_bytes(g, &map, base, type_elem(v->type), out))
        nv_shared_read(g, &map, base, type_elem(v->type), 0, 0, out);
    return true;
}

bool
nv_local(Gen *g, const Op *op)
{
    switch ((int)op->kind) {
    case OP_LOCAL_ALLOC: return gen_alloc(g, op);
    case OP_LOCAL_INDEX: return gen_index(g, op);
    case OP_LOCAL_TRANS: return gen_trans(g, op);
    case OP_LOCAL_SLICE: return gen_slice(g, op);
    case OP_LOCAL_LOAD: return gen_load(g, op);
    default: return store_tile(g, op, op_operand(op, 0), op_operand(op, 1));
    }
}

/* What TMA can fill, read off the layout of a buffer; see ir/plan/tma_box.h. */
#include "ir/plan/tma_box.h"

#include "ir/base/util.h"
#include "ir/layout.h"
#include "ir/plan/scratch.h"

enum { HOST_DEPTH = 32 };

/* The swizzle with which the buffer is one of TMA's; -1: none. */
static int
swizzle_of(Session *s, const Type *mem, int bytes, const int *order)
{
    static const int widths[] = {128, 64, 32, 0};
    int64_t row = mem->shape[order[0]] * bytes;
    for (int i = mem->rank == 1 ? 3 : 0; i < COUNT_OF(widths); i++)
        if (row >= widths[i] &&
            layout_nvmma(s, mem->rank, mem->shape, 8 * bytes, widths[i], order) ==
                mem->layout)
            return widths[i];
    return -1;
}

int
tma_data_type(const Type *elem)
{
    if (elem->kind != TY_SCALAR)
        return -1;
    switch ((int)elem->scalar) {
    case SK_F16: return 6;
    case SK_F32: return 7;
    case SK_F64: return 8;
    case SK_BF16: return 9;
    default: break;
    }
    switch (scalar_bits(elem->scalar)) {
    case 8: return 0;
    case 16: return 1;
    case 32: return 2;
    case 64: return 4;
    default: return -1;
    }
}

bool
tma_boxes(Session *s, const Type *mem, TmaBoxes *out)
{
    int order[2][2] = {{mem->rank - 1, 0}, {0, 1}};
    if (mem->kind != TY_MEM || mem->rank > 2 || !mem->layout ||
        tma_data_type(mem->elem) < 0)
        return false;
    *out = (TmaBoxes){.bytes = shared_elem_bytes(mem), .swizzle = -1};
    for (int i = 0; i < mem->rank && out->swizzle < 0; i++) {
        out->order[0] = order[i][0];
        out->order[1] = mem->rank > 1 ? order[i][1] : -1;
        out->swizzle = swizzle_of(s, mem, out->bytes, order[i]);
    }
    if (out->swizzle < 0)
        return false;
    int64_t cols = mem->shape[out->order[0]];
    int64_t rows = mem->rank > 1 ? mem->shape[out->order[1]] : 1;
    int64_t wide = out->swizzle ? out->swizzle / out->bytes : cols;
    out->box[0] = min_i64(wide, mem->rank == 1 ? TMA_MAX_BOX : wide);
    out->box[1] = min_i64(rows, TMA_MAX_BOX);
    out->n[0] = cols / out->box[0];
    out->n[1] = rows / out->box[1];
    out->by[0] = out->box[0] * rows * out->bytes;
    out->by[1] = out->box[0] * out->box[1] * out->bytes;
    /* Each box begins where TMA can write, and a swizzle anew. */
    bool places = !out->swizzle || rows % TMA_PHASES == 0;
    for (int i = 0; i < 2; i++)
        places &= out->n[i] < 2 || out->by[i] % TMA_SHARED_ALIGN == 0;
    return places && out->box[0] <= TMA_MAX_BOX &&
           out->box[0] * out->bytes % TMA_ALIGN == 0;
}

bool
tma_halves(TmaBoxes *b)
{
    if (b->n[0] * b->n[1] % 2 == 0)
        return true;
    if (b->n[0] != 1 || b->box[1] % (2 * TMA_PHASES))
        return false;
    b->box[1] /= 2;
    b->n[1] *= 2;
    b->by[1] = b->box[0] * b->box[1] * b->bytes;
    return true;
}

bool
tma_part_boxes(TmaBoxes *b, int d, int64_t n, int *along)
{
    int i = *along = b->order[0] == d ? 0 : 1;
    if (b->order[i] != d || b->box[i] * b->n[i] % n)
        return false;
    if (i == 1 && b->box[1] > n) {
        b->n[1] = b->box[1] * b->n[1] / n;
        b->box[1] = n;
        b->by[1] = b->box[0] * b->box[1] * b->bytes;
    }
    return n % b->box[i] == 0 && b->by[i] % TMA_SHARED_ALIGN == 0 &&
           (i == 0 || !b->swizzle || b->box[1] % TMA_PHASES == 0);
}

bool
tma_group_boxes(TmaBoxes *b, int groups, int *along)
{
    int i = b->order[0] == 0 ? 0 : 1;
    return b->order[1] >= 0 &&
           b->box[i] * b->n[i] % ((int64_t)GROUP_ROWS * groups) == 0 &&
           tma_part_boxes(b, 0, GROUP_ROWS, along);
}

bool
tma_boxes_of(Session *s, const Op *op, const Type *mem, TmaBoxes *out)
{
    const Attr *parted = attr_find(&op->attrs, ATTR_PARTED);
    int along;
    return tma_boxes(s, mem, out) &&
           (!parted || (parted->n == 2 && parted->v.ints[1] > 0 &&
                        tma_part_boxes(out, (int)parted->v.ints[0], parted->v.ints[1],
                                       &along)));
}

bool
tma_fits(const TmaBoxes *b, const Type *mem, const Type *desc)
{
    int last = desc->rank - 1;
    if (desc->rank > TMA_MAX_RANK || desc->rank < mem->rank || desc->elem != mem->elem)
        return false;
    for (int i = 0; i <= last; i++) {
        int64_t want = i < mem->rank ? mem->shape[b->order[i]] : 1;
        if (desc->shape[last - i] != want)
            return false;
    }
    return true;
}

/* What made it, in front of the roles. */
static const Op *
maker_of(const Value *v)
{
    for (int i = 0; i < MAX_REGION_DEPTH && !v->op; i++) {
        const Op *up = v->region->parent;
        if (!up || up->kind != OP_WARP_SPECIALIZE)
            return NULL;
        v = op_operand(up, v->index);
    }
    return v->op;
}

const Op *
tma_desc(const Value *v)
{
    const Op *op = maker_of(v);
    return op && op->kind == OP_MAKE_DESC ? op : NULL;
}

const Op *
tma_kernel_map(const Value *v)
{
    const Op *op = maker_of(v);
    return op && op->kind == OP_TENSOR_MAP ? op : NULL;
}

static bool
host_value(const Value *v, int depth)
{
    const Op *op = v->op;
    if (!op)
        return !v->region->parent && !type_is_tile(v->type) && !type_is_float(v->type);
    if (depth > HOST_DEPTH || type_is_tile(v->type))
        return false;
    switch ((int)op->kind) {
    case OP_CONST: return type_is_int(v->type);
    case OP_HINT:
    case OP_SEXT:
    case OP_TRUNC: return host_value(op_operand(op, 0), depth + 1);
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIVS:
    case OP_REMS:
    case OP_MINS:
    case OP_MAXS:
    case OP_ADDPTR:
        return host_value(op_operand(op, 0), depth + 1) &&
               host_value(op_operand(op, 1), depth + 1);
    default: return false;
    }
}

static int
terms(const Value *v, int depth)
{
    const Op *op = v->op;
    int n = 1;
    if (!op || depth > HOST_DEPTH)
        return 1;
    if (op->kind == OP_TRUNC || op->kind == OP_ADDPTR)
        n = 3;
    for (int i = 0; i < op->noperand && n < TMA_MAX_TERMS; i++)
        n += terms(op_operand(op, i), depth + 1);
    return n;
}

int
tma_terms(const Op *desc)
{
    int n = 0;
    for (int i = 0; i < desc->noperand && n < TMA_MAX_TERMS; i++)
        n += terms(op_operand(desc, i), 0);
    return n;
}

bool
tma_host_value(const Value *v)
{
    return host_value(v, 0);
}

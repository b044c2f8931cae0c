/* Block pointers and descriptors. Indices and addresses are 64-bit. A block pointer
   checks the dimensions in {boundary}, a descriptor all of its own; what is outside is
   not touched and loads as zero or NaN. */
#include "tests/interp/machine.h"

#include <string.h>

/* The block that an access is about: bounds and strides from the cells, a first index for
   each dimension or, of rows, a list. */
typedef struct Block {
    const Type *type; /* of the elements that are accessed, in the block's rank */
    const uint64_t *cell;
    int64_t first[MAX_RANK];
    const uint64_t *rows; /* of dimension 0 instead of first + 0, 1, .. */
    unsigned checked;     /* dimensions, as bits */
    int64_t shape[MAX_RANK];
    int rank;
} Block;

/* The cell behind the strides of a descriptor. */
enum { PADS_NAN = 1, ROUNDS_TF32 = 2 };

static bool
run_make(Machine *m, const Op *op)
{
    int r = op->results[0].type->rank;
    uint64_t *cell = machine_write(m, &op->results[0], 2 + 3 * r);
    if (!cell)
        return false;
    cell[1 + 3 * r] = 0;
    for (int i = 0; i < op->noperand; i++)
        cell[i] = (uint64_t)machine_scalar(m, op_operand(op, i));
    Name pad = attr_str(&op->attrs, ATTR_PADDING), to = attr_str(&op->attrs, ATTR_ROUND);
    if (op->kind == OP_MAKE_DESC)
        cell[1 + 2 * r] = (pad && !strcmp(pad, "nan") ? PADS_NAN : 0) |
                          (to && !strcmp(to, "tf32") ? ROUNDS_TF32 : 0);
    return true;
}

static bool
run_advance(Machine *m, const Op *op)
{
    int r = op->results[0].type->rank;
    if (!slot_copy(m, machine_slot(m, &op->results[0]),
                   machine_slot(m, op_operand(op, 0))))
        return false;
    uint64_t *offset = machine_slot(m, &op->results[0])->cell + 1 + 2 * r;
    for (int d = 0; d < r; d++) {
        uint64_t by = (uint64_t)machine_scalar(m, op_operand(op, 1 + d));
        offset[d] = (uint64_t)int_wrap(SK_I32, offset[d] + by);
    }
    return true;
}

/* The address of element `at` of the block; false when it is outside of the bounds. */
static bool
element(const Block *b, const int64_t *at, int bytes, uint64_t *address)
{
    uint64_t offset = 0;
    bool in = true;
    for (int d = 0; d < b->rank; d++) {
        int64_t i = b->first[d] + at[d];
        if (d == 0 && b->rows)
            i = (int64_t)b->rows[at[d]];
        int64_t bound = (int64_t)b->cell[1 + d];
        if (b->checked >> d & 1)
            in &= i >= 0 && i < bound;
        offset += (uint64_t)i * b->cell[1 + b->rank + d];
    }
    *address = b->cell[0] + offset * (uint64_t)bytes;
    return in;
}

static uint64_t
outside(const Op *op, const Block *b, const Type *elem)
{
    bool nan = b->cell[1 + 2 * b->rank] & PADS_NAN;
    if (op->kind == OP_BLOCK_LOAD) {
        Name pad = attr_str(&op->attrs, ATTR_PADDING);
        nan = pad && !strcmp(pad, "nan");
    }
    bool is_float = elem->kind == TY_SCALAR && scalar_is_float(elem->scalar);
    return nan && is_float ? format_encode(elem->scalar, __builtin_nan(""), false) : 0;
}

/* The bits of an fp32 rounded to 10 bits behind the point: 13 fall away, and what is left
   is counted up where they are more than half, or half and it is odd. */
static uint64_t
to_tf32(uint64_t bits)
{
    uint64_t low = bits & 0x1fff, kept = bits & ~(uint64_t)0x1fff;
    if ((bits >> 23 & 0xff) == 0xff)
        return bits;
    return low > 0x1000 || (low == 0x1000 && kept & 0x2000) ? kept + 0x2000 : kept;
}

static bool
touch(Machine *m, const Op *op, const Block *b, const Type *elem, const uint64_t *in,
      uint64_t *out)
{
    int64_t at[MAX_RANK] = {0}, n = 1;
    int bytes = memory_bytes(elem);
    uint64_t old, address, pad = out ? outside(op, b, elem) : 0;
    bool desc = op->kind == OP_DESC_LOAD || op->kind == OP_DESC_GATHER;
    bool round = desc && b->cell[1 + 2 * b->rank] & ROUNDS_TF32;
    for (int d = 0; d < b->rank; d++)
        n *= b->shape[d];
    for (int64_t i = 0; i < n; i++) {
        bool on = element(b, at, bytes, &address);
        void *p = on ? memory_at(m, op, b->type, i, address, bytes) : NULL;
        if (on && !p)
            return false;
        if (out)
            out[i] = on ? memory_get(elem, p) : pad;
        else if (on && op->kind != OP_DESC_ATOMIC)
            memory_put(m, elem, p, in[i]);
        else if (on && !memory_rmw(m, op, elem, p, in[i], &old))
            return false;
        for (int d = b->rank - 1; d >= 0 && ++at[d] == b->shape[d]; d--)
            at[d] = 0;
        if (round)
            out[i] = to_tf32(out[i]);
    }
    return true;
}

static unsigned
boundary(const Op *op)
{
    const Attr *dims = attr_find(&op->attrs, ATTR_BOUNDARY);
    unsigned set = 0;
    for (int i = 0; dims && i < dims->n; i++)
        set |= 1u << dims->v.ints[i];
    return set;
}

static bool
run_access(Machine *m, const Op *op)
{
    bool loads = op->nresult == 1, pointer = op->kind == OP_BLOCK_LOAD ||
                                             op->kind == OP_BLOCK_STORE;
    bool rows = op->kind == OP_DESC_GATHER || op->kind == OP_DESC_SCATTER;
    const Type *t = op_operand(op, 0)->type;
    const Type *data = loads ? op->results[0].type : op_operand(op, 1)->type;
    int r = t->rank, next = loads ? 1 : 2;
    const uint64_t *in = NULL;
    uint64_t *out = NULL;
    Block b = {.type = rows ? data : t, .rank = r, .checked = (1u << r) - 1,
               .cell = machine_slot(m, op_operand(op, 0))->cell};
    if (pointer)
        b.checked = boundary(op);
    if (rows)
        b.rows = machine_slot(m, op_operand(op, next))->cell;
    for (int d = 0; d < r; d++) {
        b.shape[d] = rows ? data->shape[d] : t->shape[d];
        if (pointer)
            b.first[d] = (int64_t)b.cell[1 + 2 * r + d];
        else if (!rows || d == 1)
            b.first[d] = machine_scalar(m, op_operand(op, next + d));
    }
    if (loads && !(out = machine_write(m, &op->results[0], type_numel(data))))
        return false;
    if (!loads)
        in = machine_slot(m, op_operand(op, 1))->cell;
    return machine_count(m, op, type_numel(data)) && touch(m, op, &b, t->elem, in, out);
}

bool
run_block(Machine *m, const Op *op)
{
    switch ((int)op->kind) {
    case OP_MAKE_BLOCK_PTR:
    case OP_MAKE_DESC: return run_make(m, op);
    case OP_ADVANCE: return run_advance(m, op);
    default: return run_access(m, op);
    }
}

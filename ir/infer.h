/* What the rule files share. A rule looks at operands, attributes and given result
   types (op->results[i].type, NULL while the op is being built), sets c->out[i] to
   what it knows, and returns NULL, or says in a few words what is wrong. Bodies of
   structured ops are not there yet when the builder asks; ir/verify.c checks them. */
#ifndef SDC_IR_INFER_H
#define SDC_IR_INFER_H

#include "ir/ir.h"

typedef struct RuleCx {
    Session *s;
    const Op *op;
    const Type **out;
    Buf *why;
} RuleCx;

typedef bool RuleFn(RuleCx *c);

/* False with a printf-like reason. */
bool rule_fail(RuleCx *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline const Type *
opnd(const RuleCx *c, int i)
{
    return op_operand(c->op, i)->type;
}

const Type *rule_given(const RuleCx *c, int i); /* result type or NULL */
const Type *rule_scalar(const RuleCx *c, ScalarKind k);
const char *rule_str(RuleCx *c, const Type *t);
/* Elements of a dot and its accumulator: all floats, or all integers. */
bool rule_dot_elems(const Type *a, const Type *b, const Type *acc);
/* Do the sizes and elements of a dot's three operands agree? */
bool rule_dot_sizes(RuleCx *c);
/* `to` has the rows of `from`, of that kind, or shorter ones, and {pred} orders them. */
bool rule_rows_of(RuleCx *c, const Type *to, const Type *from, TypeKind kind);
bool rule_is_int(const Type *t, int bits); /* scalar integer of that width */
/* The tile (or scalar) that a pointer tile of this type addresses; NULL for others. */
const Type *rule_pointed(RuleCx *c, const Type *p);
/* Operand i, if present, is an i1 mask in the shape of `like`. */
bool rule_mask(RuleCx *c, int i, const Type *like);

/* One line per rule; the definitions are in infer*.c. */
#define RULES(X)                                                                         \
    X(constant) X(free) X(i32) X(arange) X(same) X(same_int) X(same_float) X(libm) \
    X(asm) X(cmpi) \
    X(cmpf) X(select) X(cast) X(addptr) X(splat) X(broadcast) X(expand_dims) X(reshape) \
    X(trans) X(join) X(split) X(cat) X(gather) X(load) X(store) X(make_block_ptr) \
    X(advance) X(block_load) X(block_store) X(make_desc) X(desc_load) X(desc_store) \
    X(desc_gather) X(desc_scatter) X(atomic_rmw) X(atomic_cas) X(desc_atomic) \
    X(dot) X(reduce) X(scan) \
    X(topk) X(histogram) X(for) X(while) X(if) X(none) X(condition) X(convert_layout) \
    X(local_alloc) X(local_index) X(local_trans) X(local_slice) X(local_load) \
    X(local_store) X(private_alloc) X(private_load) X(private_store) X(local_dot) \
    X(async_copy) X(token) X(bar_alloc) X(bar_index) \
    X(bar_expect) \
    X(bar_arrive) X(bar_arrive_cluster) X(in_cluster) \
    X(bar_wait) X(tensor_map) X(tma_load) X(tma_store) X(wgmma) \
    X(wgmma_open) X(wgmma_wait) X(warp_specialize) \
    X(buf_alloc) X(buf_load) X(buf_store) X(buf_dot) \
    X(buf_view) X(buf_topk) X(buf_reduce) \
    X(vload) X(vstore) X(vfetch) X(vcheck) X(vprint) X(vassert)

#define X(name) bool rule_##name(RuleCx *c);
RULES(X)
#undef X

#endif

/* Exponentials whose subnormal results may be 0, because no use of them can tell:

       %e = exp %x
       %h = ftrunc %e : f16              =>       exp .. {flush}

   The hardware's 2^x flushes them in one instruction and keeps them in four. tl.exp keeps
   them, as Triton's does: log(exp(x)) and quotients of exponentials tell. What cannot:
   types whose least number is far above, sums with constants, and, where x is below its
   own maximum, sums and matmuls, which have a 1 beside them. */
#include "ir/analysis/nonpositive.h"
#include "ir/analysis/reduction.h"
#include "ir/fold.h"
#include "passes/pass.h"

#include <math.h>

enum { MAX_DEPTH = 8 };

static bool
is_sum(const Op *reduce)
{
    const Op *op = reduction_operation(reduce);
    return op && op->kind == OP_ADDF;
}

/* The constant that a binary operation has beside v; 0 where there is none. */
static double
constant_beside(const Op *op, const Value *v)
{
    Const c;
    const Value *other = op_operand(op, op_operand(op, 0) == v);
    return other != v && value_const(other, &c) && c.is_float && isfinite(c.f) ? fabs(c.f)
                                                                               : 0;
}

static bool cannot_tell(const Value *v, bool beside_one, int depth);

/* Is what this user makes of v the same to it and its uses, whether v is 0 or less than
   2^-126? */
static bool
user_cannot_tell(const Op *user, const Value *v, bool beside_one, int depth)
{
    switch ((int)user->kind) {
    case OP_FTOSI:
    case OP_FTOUI: return true;
    case OP_FTRUNC:
        if (type_elem(user->results[0].type)->scalar != SK_BF16)
            return true;
        break;
    case OP_ADDF:
    case OP_SUBF: return constant_beside(user, v) >= 0x1p-100;
    case OP_MULF:
        if (constant_beside(user, v) == 0 || constant_beside(user, v) > 0x1p64)
            return false;
        break;
    case OP_SELECT:
    case OP_BROADCAST:
    case OP_EXPAND_DIMS:
    case OP_RESHAPE:
    case OP_TRANS: break;
    case OP_DOT: return beside_one && op_operand(user, 2) != v;
    case OP_REDUCE: return beside_one && is_sum(user);
    default: return false;
    }
    return cannot_tell(&user->results[0], beside_one, depth + 1);
}

static bool
cannot_tell(const Value *v, bool beside_one, int depth)
{
    if (!v->uses || depth > MAX_DEPTH)
        return false;
    value_each_use(v,
                   u) if (!user_cannot_tell(u->user, v, beside_one, depth)) return false;
    return true;
}

static bool
visit(void *user, Op *op)
{
    PassCx *cx = user;
    if (op->kind != OP_EXP || attr_has(&op->attrs, ATTR_FLUSH) ||
        type_elem(op->results[0].type)->scalar != SK_F32 ||
        !cannot_tell(&op->results[0], nonpositive_exponent(op), 0))
        return false;
    attr_set_flag(&cx->s->mod, &op->attrs, ATTR_FLUSH);
    return true;
}

bool
pass_relax_exp(Func *f, PassCx *cx)
{
    return pass_walk(f->body, visit, cx);
}

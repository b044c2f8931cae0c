/* Chooses the dimension of a nest that lanes run along, the one along which most accesses
   are contiguous, and how many lanes a strip has: as many as keep the machine busy. */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"
#include "ir/fold.h"

/* Lanes whose quotient changes more often than every so many are no run. */
enum { SHORT_RUN = 16 };

static bool
short_runs(const Value *divisor)
{
    Const c;
    return value_const(divisor, &c) && c.i > 1 && c.i < SHORT_RUN;
}

/* See simd_slope. *sure is cleared if a factor that only the launch knows counted as 1;
   *left: operations that the walk may still visit. */
static int
slope(Simd *n, const Value *v, int d, int *left, bool *sure)
{
    const Op *op = v->op;
    if (!simd_tile(v) || v->type->shape[d] == 1)
        return 0;
    if (!op || --*left < 0)
        return 2;
    const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    int x, y;
    switch ((int)op->kind) {
    case OP_CONST:
    case OP_UNDEF:
    case OP_SPLAT: return 0;
    case OP_ARANGE: return 1;
    case OP_BROADCAST: return slope(n, op_operand(op, 0), d, left, sure);
    case OP_EXPAND_DIMS:
        return d == axis ? 0
                         : slope(n, op_operand(op, 0), d - (d > axis), left, sure);
    case OP_TRANS:
        return slope(n, op_operand(op, 0), (int)perm->v.ints[d], left, sure);
    case OP_SEXT:
    case OP_ZEXT:
    case OP_TRUNC:
    case OP_HINT: return slope(n, op_operand(op, 0), d, left, sure);
    case OP_REMS:
    case OP_REMU:
        x = slope(n, op_operand(op, 0), d, left, sure);
        return x && short_runs(op_operand(op, 1)) ? 2 : x;
    case OP_DIVS:
    case OP_DIVU:
        x = slope(n, op_operand(op, 0), d, left, sure);
        y = slope(n, op_operand(op, 1), d, left, sure);
        *sure &= !x && !y;
        if (x > 1 || y || (x && short_runs(op_operand(op, 1))))
            return 2;
        return 0; /* most often one quotient in a strip */
    case OP_ADD:
    case OP_ADDPTR:
    case OP_SUB:
    case OP_MUL:
        x = slope(n, op_operand(op, 0), d, left, sure);
        y = slope(n, op_operand(op, 1), d, left, sure);
        if (op->kind == OP_MUL) {
            /* a constant factor spreads the lanes, one of the launch is most often 1 */
            const Op *other = op_operand(op, x ? 1 : 0)->op;
            bool spread = other && other->kind == OP_CONST;
            *sure &= !x && !y;
            return !x && !y ? 0 : x + y == 1 && !spread ? 1 : 2;
        }
        return x + y > 2 ? 2 : x + y;
    default: return 2;
    }
}

static int
slope_of(Simd *n, const Value *v, int d, bool *sure)
{
    int left = 256; /* operations visited: there may be many paths to a value */
    *sure = true;
    return slope(n, v, d, &left, sure);
}

int
simd_slope(Simd *n, const Value *v, int d)
{
    bool sure = true;
    return slope_of(n, v, d, &sure);
}

bool
simd_runs_along(Simd *n, const Value *v, int d)
{
    bool sure;
    return slope_of(n, v, d, &sure) == 1 && sure;
}

static int
group_score(Simd *n, const Group *g, int d)
{
    int score = 0;
    for (int i = 0; i < g->items.n; i++) {
        const Root *r = &g->items.at[i];
        const Op *op = r->op;
        bool access =
            r->kind == ROOT_STORE || (op->kind == OP_LOAD && r->kind != ROOT_COPY);
        bool buffer = r->kind == ROOT_MAT || r->kind == ROOT_COPY, sure;
        int last = g->shape->rank - 1;
        /* stores count more: loads along another dimension can be transposed */
        int weight = r->kind == ROOT_STORE ? 3 : 1;
        if (access)
            score += weight *
                     (slope_of(n, op_operand(op, 0), d, &sure) >= 2 ? -8 : sure ? 8 : 7);
        if (buffer && !(r->either && d == last - 1))
            score += d == last ? r->either ? 0 : 6 : -6;
    }
    return score;
}

int
simd_lane_dim(Simd *n, const Group *g)
{
    const Type *t = g->shape;
    int best = t->rank - 1;
    int score = -1000000;
    int64_t largest = 1;
    for (int i = 0; i < g->items.n; i++) /* prints must be in the order of the index */
        if (g->items.at[i].kind == ROOT_PRINT)
            return best;
    for (int d = 0; d < t->rank; d++)
        largest = max_i64(largest, t->shape[d]);
    for (int d = t->rank - 1; d >= 0; d--) {
        if (t->shape[d] < min_i64(largest, 8))
            continue;
        int s = group_score(n, g, d);
        if (s > score) {
            score = s;
            best = d;
        }
    }
    return best;
}

int
simd_widest(const Group *g)
{
    int bits = 8;
    for (int i = 0; i < g->items.n; i++) {
        const Root *r = &g->items.at[i];
        if (r->v)
            bits = (int)max_i64(bits, type_bits(r->v->type));
        for (int k = 0; k < r->op->noperand && r->kind == ROOT_REDUCE; k++)
            bits = (int)max_i64(bits, type_bits(op_operand(r->op, k)->type));
        if (r->kind == ROOT_STORE)
            bits = (int)max_i64(bits, type_bits(op_operand(r->op, 1)->type));
    }
    return bits;
}

/* Simple work takes strips of four vectors, so that their latencies overlap. A long chain
   of operations has enough parallel work in one vector, and would run out of registers
   with more. Machines with vectors of 512 bits have twice the registers, so there long
   chains take two. */
int
simd_lane_count(const Simd *n, const Group *g, int64_t size)
{
    int vectors = g->cost > 2000 ? 1 : g->cost > 200 ? 2 : 4;
    if (n->vector_bytes > 32)
        vectors = g->cost > 200 ? 4 : 8;
    /* a check costs the same for any number of lanes; not for reductions, whose order
       would change */
    if (n->f->check && g->axis < 0)
        return (int)min_i64(size, SIMD_MAX_LANES);
    int bits = simd_widest(g);
    int w = vectors * 256 / (bits < 32 ? 32 : bits);
    return (int)min_i64(size, w);
}

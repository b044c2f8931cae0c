/* How each dot is computed, and the layouts of its accumulator and operands.

   wgmma comes first, where target, types and sizes allow it: plan_wgmma. Next is
   mma.sync, with accumulator and operands in its fragments. Its warps are spread over the
   matrices of a batched dot first, then over rows and columns of the result so that warps
   read the fewest operand elements. If the result becomes the left operand of another
   dot, warps are spread along rows: the accumulator's fragments are then those of that
   operand. What mma cannot compute (fp32 in full precision, other integers, small sizes)
   is done with multiply-adds, by each thread for the elements that it owns.

   In the units mma_loop and fma_loop the pass stage-mma-operands reads operands from
   shared memory, one step of the inner dimension at a time, so they may have any layout
   here. fma_loop is the rule for multiply-adds. mma_loop is for dots whose operands are
   split into several, and for those whose accumulator or one operand needs more registers
   than a thread has; with fewer, straight code is better, since ptxas moves each read
   next to its use. If shared memory has no room for all operands, they go through
   registers (mma and fma) and may spill. */
#include "passes/layout/layout.h"

#include "ir/base/util.h"

#include <string.h>

enum { CHAIN_DEPTH = 24 };

/* ---- room for operands */

/* Bytes of the shared buffer for operand v: one copy for each stage of the loop that
   loads it. */
static int64_t
buffer_bytes(const Layouts *p, const Value *v)
{
    enum { MAX_STAGES = 8 };
    int64_t bytes = type_bytes(v->type);
    const Op *loop = v->op ? v->op->parent->parent : NULL;
    if (!loop || loop->kind != OP_FOR || v->op->kind != OP_LOAD)
        return bytes;
    int64_t stages = attr_int(&loop->attrs, ATTR_STAGES, p->f->num_stages);
    return bytes * max_i64(min_i64(stages, MAX_STAGES), 1);
}

void
layout_collect_operands(Layouts *p, Op *op)
{
    for (int i = 0; op->kind == OP_DOT && i < 2; i++) {
        Value *v = op_operand(op, i);
        Op *trans = value_def(v, OP_TRANS);
        v = trans ? op_operand(trans, 0) : v;
        map_set(&p->operands, v, v);
    }
}

/* Of nested regions only the largest counts: buffers of one loop may lie where those of
   another one did. */
int64_t
layout_operand_bytes(const Layouts *p, const Region *r, int depth)
{
    int64_t sum = 0, most = 0;
    for (int i = 0; i < r->narg; i++)
        sum += map_has(&p->operands, r->args[i]) ? buffer_bytes(p, r->args[i]) : 0;
    for (Op *op = r->first; op && depth <= MAX_REGION_DEPTH; op = op->next) {
        for (int i = 0; i < op->nresult; i++)
            if (map_has(&p->operands, &op->results[i]))
                sum += buffer_bytes(p, &op->results[i]);
        for (int i = 0; i < op->nregion; i++)
            most = max_i64(most, layout_operand_bytes(p, op->regions[i], depth + 1));
    }
    return sum + most;
}

/* Does shared memory hold all operands, and beside them the scratch memory of reductions
   and conversions? */
static bool
has_room(const Layouts *p)
{
    enum { SCRATCH = 8192 };
    return p->operand_bytes + SCRATCH <= p->target->shared_bytes;
}

/* ---- mma */

/* One mma instruction. */
typedef struct MmaShape {
    int k;       /* its inner size, in elements */
    int kwidth;  /* consecutive elements of k in one 32-bit register */
    bool splits; /* each operand into a sum of several, as tf32x3 asks for */
} MmaShape;

/* The mma for the dot's types; false: the target has none. */
static bool
mma_shape(const Layouts *p, const Op *op, MmaShape *out)
{
    ScalarKind a = op_operand(op, 0)->type->scalar, b = op_operand(op, 1)->type->scalar;
    ScalarKind acc = op_operand(op, 2)->type->scalar;
    Name said = attr_str(&op->attrs, ATTR_PRECISION);
    bool fp32 = a == SK_F32 && b == SK_F32 && acc == SK_F32 && said;
    bool fp8 = (a == SK_F8E5 || a == SK_F8E4) && (b == SK_F8E5 || b == SK_F8E4);
    if (a == b && ((a == SK_F16 && (acc == SK_F32 || acc == SK_F16)) ||
                   (a == SK_BF16 && acc == SK_F32)))
        *out = (MmaShape){16, 2, false};
    else if (fp32 && strncmp(said, "tf32", 4) == 0)
        *out = (MmaShape){8, 1, strcmp(said, "tf32") != 0};
    else if (fp32 && strncmp(said, "bf16", 4) == 0)
        *out = (MmaShape){16, 2, true};
    else if (a == SK_I8 && b == SK_I8 && acc == SK_I32)
        *out = (MmaShape){32, 4, false};
    else if (fp8 && acc == SK_F32 && p->target->sm >= 89)
        *out = (MmaShape){32, 4, false};
    else if (a == SK_F64 && b == SK_F64 && acc == SK_F64)
        *out = (MmaShape){8, 1, false};
    else
        return false;
    return p->target->sm >= 80;
}

bool
layout_has_unit(const Layouts *p, const Op *dot)
{
    MmaShape shape;
    return mma_shape(p, dot, &shape);
}

/* A walk visits so many operations at most: there may be many paths to one value. */
enum { WALK = 1024 };

/* The result that a use becomes part of element by element, also that of a branch. */
static const Value *
becomes(const Use *u)
{
    const Op *op = u->user, *up = op->parent->parent;
    if (op->kind == OP_YIELD && up && up->kind == OP_IF)
        return &up->results[u->index];
    return op_is(op, T_ELEMENTWISE) && op->nresult == 1 ? &op->results[0] : NULL;
}

static bool
reaches_lhs(const Value *v, int depth, int *left)
{
    value_each_use(v, u)
    {
        if (depth >= CHAIN_DEPTH || --*left < 0)
            return false;
        if (u->user->kind == OP_DOT && u->index == 0)
            return true;
        const Value *next = becomes(u);
        if (next && reaches_lhs(next, depth + 1, left))
            return true;
    }
    return false;
}

/* Does v, through elementwise work, become the left operand of a dot? */
static bool
leads_to_lhs(const Value *v)
{
    int left = WALK;
    return reaches_lhs(v, 0, &left);
}

static bool
comes_from_dot(const Value *v, int depth, int *left)
{
    const Op *op = v->op;
    if (!op || depth > CHAIN_DEPTH || --*left < 0)
        return false;
    if (op->kind == OP_DOT)
        return true;
    for (int i = 0; op->kind == OP_IF && i < op->nregion; i++)
        if (comes_from_dot(op_operand(op->regions[i]->last, v->index), depth + 1, left))
            return true;
    for (int i = 0; op_is(op, T_ELEMENTWISE) && i < op->noperand; i++)
        if (comes_from_dot(op_operand(op, i), depth + 1, left))
            return true;
    return false;
}

bool
layout_from_dot(const Value *v)
{
    int left = WALK;
    return comes_from_dot(v, 0, &left);
}

/* Does a loop carry v from iteration to iteration, or what it is elementwise work of, and
   yield what a dot made? */
static bool
carries_dot(const Value *v)
{
    for (int i = 0; v->op && i < CHAIN_DEPTH; i++) {
        if (!op_is(v->op, T_ELEMENTWISE) || !v->op->noperand)
            return false;
        v = op_operand(v->op, 0);
    }
    const Op *loop = v->op ? NULL : v->region->parent;
    return loop && loop->kind == OP_FOR && v->index >= 1 &&
           layout_from_dot(op_operand(v->region->last, v->index - 1));
}

/* Spreads `count` warps as warps[0] x warps[1] over an m x n result. Each warp reads
   m / warps[0] rows of the left operand and n / warps[1] columns of the right one; the
   least sum of both wins. */
static void
place_warps(const Op *op, int count, int64_t m, int64_t n, int *warps)
{
    bool chain =
        leads_to_lhs(&op->results[0]) || layout_from_dot(op_operand(op, 0));
    int64_t best = INT64_MAX;
    for (int w = 1; w <= count; w *= 2) {
        int64_t wm = w, wn = count / w;
        int64_t rows = max_i64(m / wm, 16), cols = max_i64(n / wn, 8);
        /* warps that find no rows or columns of their own repeat others' work */
        int64_t idle = max_i64(wm * 16 / m, 1) * max_i64(wn * 8 / n, 1);
        int64_t cost = (rows + cols) * idle * idle;
        if (chain && wn > 1)
            cost += m + n;
        if (cost < best) {
            best = cost;
            warps[0] = (int)wm;
            warps[1] = (int)wn;
        }
    }
}

int
layout_operand_dim(const Value *v)
{
    const Op *op = v->op;
    for (int i = 0; op && i < CHAIN_DEPTH; i++) {
        int vec;
        if (op->kind == OP_LOAD)
            return layout_access_dim(op, &vec);
        if (op->kind == OP_TRANS) {
            int dim = layout_operand_dim(op_operand(op, 0));
            const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
            for (int d = 0; d < perm->n && dim >= 0; d++)
                if (perm->v.ints[d] == dim)
                    return d;
            return -1;
        }
        if (!op_is(op, T_ELEMENTWISE) || !op->noperand)
            break;
        op = op_operand(op, 0)->op;
    }
    return -1;
}

/* Can wgmma take v as an operand, perhaps after lower_wgmma (passes/mma) has copied it?
   `inner`: its inner dimension. It needs 32 bytes along either dimension, of 8 bits 16
   along the other one. 16-bit operands may be contiguous along either. Others must be
   contiguous along the inner one; if they are not, those of 8 bits and right ones of 32
   bits are copied, or stored that way by the threads that compute them, and left ones of
   32 bits, loaded or computed from a loaded tile, are read into registers. */
static bool
wgmma_reads(const Value *v, int inner, bool from_dot)
{
    enum { ROW = 32, ROWS = 16 };
    const Type *t = v->type;
    int bytes = type_bits(t) / 8, dim = layout_operand_dim(v);
    if (bytes > 2 && inner == 1 && dim < 0 && !from_dot)
        return false;
    if (!from_dot && bytes == 1 && dim >= 0)
        return t->shape[inner] >= ROW && t->shape[1 - inner] >= ROWS;
    return from_dot || (t->shape[0] * bytes >= ROW && t->shape[1] * bytes >= ROW);
}

/* Is v loaded as it is, or transposed? */
static bool
is_loaded(const Value *v)
{
    const Op *trans = value_def(v, OP_TRANS);
    return value_def(trans ? op_operand(trans, 0) : v, OP_LOAD) != NULL;
}

/* Is the right operand loaded as it is, of 32 bits, and not contiguous along the inner
   dimension? Then its copy would serve wgmma alone. Behind another dot, whose result
   threads store for wgmma, too, mma.sync moves less. */
static bool
is_copied_alone(const Value *b)
{
    return type_bits(b->type) == 32 && is_loaded(b) && layout_operand_dim(b) != 0;
}

Op *
layout_accumulating_loop(const Op *dot)
{
    const Value *acc = op_operand(dot, 2), *r = &dot->results[0];
    Op *loop = acc->op ? NULL : acc->region->parent;
    if (!loop || loop->kind != OP_FOR || acc->index < 1 || acc->region != dot->parent ||
        acc->uses->next || !r->uses || r->uses->next)
        return NULL;
    const Op *yield = acc->region->last;
    return r->uses->user == yield && r->uses->index == acc->index - 1 ? loop : NULL;
}

/* Is v the accumulator of another dot? */
static bool
is_other_accumulator(const Value *v)
{
    value_each_use(v, u) if (u->user->kind == OP_DOT && u->index == 2) return true;
    return false;
}

/* Is it a dot of 8-bit operands whose accumulator no other dot uses, as accumulator or as
   left operand, so that its layout is free? */
static bool
is_alone(const Op *op)
{
    const Value *acc = op_operand(op, 2), *r = &op->results[0];
    return type_bits(op_operand(op, 0)->type) == 8 && !leads_to_lhs(r) &&
           !is_other_accumulator(r) &&
           (layout_accumulating_loop(op) || (acc->op && !layout_from_dot(acc)));
}

/* Is the left operand of 8 bits contiguous along the rows' dimension? Then threads read
   it step by step into registers. A copy would be more traffic in shared memory, which is
   what such dots wait for. */
static bool
is_read_by_steps(const Op *op)
{
    const Value *a = op_operand(op, 0);
    return is_alone(op) && is_loaded(a) && layout_operand_dim(a) == 0;
}

/* True when the transposed dot moves fewer bytes through shared memory. Both ways, TMA
   writes the operands and the unit reads the right one, so only the rest is compared. An
   operand on the left is read once into registers. One on the right that is not
   contiguous along the inner dimension is copied, which reads and writes it: twice its
   bytes. Here b is such a one, so it goes to the left, unless a would be one on the right
   and is no smaller. (128x256x128 with such a b, on an H200: 4 dots of 256 columns take
   1024 cycles, in which shared memory moves 128 KB: 48 come in, 64 are read of the right
   operand.) */
bool
layout_transposes_bytes(const Op *op)
{
    enum { LEAST = 64, LEAST_K = 32 };
    const Value *a = op_operand(op, 0), *b = op_operand(op, 1);
    const Type *acc = op->results[0].type;
    if (acc->rank != 2 || acc->shape[0] < LEAST || acc->shape[1] < LEAST ||
        a->type->shape[1] < LEAST_K || !is_alone(op) || layout_from_dot(a) ||
        !is_loaded(b) || layout_operand_dim(b) != 1)
        return false;
    return layout_operand_dim(a) == 1 || acc->shape[1] > acc->shape[0];
}

bool
layout_transposes_few_rows(const Layouts *p, const Op *op)
{
    enum { ROWS = 64, LEAST = 16, LEAST_K = 32 };
    const Value *a = op_operand(op, 0), *b = op_operand(op, 1);
    const Type *acc = op->results[0].type;
    int64_t groups = p->f->num_warps / 4;
    if (acc->rank != 2 || acc->shape[0] >= ROWS || acc->scalar != SK_F32 ||
        a->type->shape[1] < LEAST_K || !is_alone(op) || layout_from_dot(a) ||
        !is_loaded(b) || layout_operand_dim(a) < 0 || layout_operand_dim(b) < 0 ||
        (layout_operand_dim(a) == 0 && !is_loaded(a)))
        return false;
    int64_t along = min_i64(groups, acc->shape[1] / ROWS);
    return along && acc->shape[0] * along / groups >= LEAST;
}

/* 32-bit registers that a thread needs for a tile of type t and layout l. */
static int64_t
registers(const Type *t, const Layout *l)
{
    return (int64_t)layout_regs(l) * type_bits(t) / 32;
}

/* Plans the dot as wgmma. Each warpgroup takes 64 rows as long as there are rows; more
   warpgroups share the columns. Returns NULL, or the reason why wgmma cannot compute the
   dot, for ATTR_WHY and --explain. */
static const char *
plan_wgmma(Layouts *p, const Op *op, const MmaShape *mma, DotPlan *plan)
{
    const Value *a = op_operand(op, 0), *b = op_operand(op, 1);
    const Type *acc = op_operand(op, 2)->type;
    int groups = p->f->num_warps / 4, along = 1;
    if (!p->target->wgmma)
        return "the target has no wgmma";
    if (acc->rank != 2)
        return "it multiplies several matrices at once";
    if (mma->splits)
        return "its precision is made of several products";
    if (type_bits(a->type) > 32)
        return "wgmma has no fp64";
    if (p->f->num_warps % 4)
        return "num_warps is no multiple of 4, a warpgroup";
    if (acc->shape[0] < 64)
        return "its result has fewer than 64 rows";
    if (a->type->shape[1] < mma->k)
        return "its inner size is smaller than an instruction's";
    bool made = layout_from_dot(a) || carries_dot(a);
    if (!wgmma_reads(a, 1, made && !is_copied_alone(b)))
        return "wgmma does not read its left operand as it lies";
    if (!wgmma_reads(b, 0, false))
        return "wgmma does not read its right operand as it lies";
    while (2 * along <= groups && acc->shape[0] >= 128 * along)
        along *= 2;
    int warps[2] = {4 * along, groups / along};
    int64_t n = acc->shape[1] / warps[1];
    if (n < 8 || (type_bits(a->type) == 8 && n < 16))
        return "its result has too few columns for so many warpgroups";
    const Layout *l = layout_wgmma(p->s, acc->shape, (int)min_i64(n, 256), warps);
    if (is_read_by_steps(op))
        l = layout_row_pairs(p->s, l);
    if (registers(acc, l) >= MANY_REGISTERS)
        return "its accumulators take too many registers: more warps, or a smaller tile";
    *plan = (DotPlan){.unit = "wgmma", .acc = l};
    return NULL;
}

static DotPlan
plan_mma(Layouts *p, const Op *op, const MmaShape *mma)
{
    const Type *a = op_operand(op, 0)->type, *b = op_operand(op, 1)->type;
    const Type *acc = op_operand(op, 2)->type;
    int warps[MAX_RANK], left = p->f->num_warps, r = acc->rank;
    DotPlan plan = {.unit = "mma"};
    for (int d = 0; d < r - 2; d++) { /* matrices of a batch share no operands */
        warps[d] = (int)min_i64(left, acc->shape[d]);
        left /= warps[d];
    }
    place_warps(op, left, acc->shape[r - 2], acc->shape[r - 1], warps + r - 2);
    int64_t k = a->shape[r - 1];
    plan.acc = layout_mma_batch(p->s, r, acc->shape, warps);
    plan.a = layout_dot_operand(p->s, plan.acc, k, 0, mma->kwidth);
    plan.b = layout_dot_operand(p->s, plan.acc, k, 1, mma->kwidth);
    bool many = registers(acc, plan.acc) >= MANY_REGISTERS ||
                registers(a, plan.a) > MANY_REGISTERS ||
                registers(b, plan.b) > MANY_REGISTERS;
    if ((mma->splits || many) && has_room(p))
        plan = (DotPlan){.unit = "mma_loop", .acc = plan.acc};
    return plan;
}

/* *why: the reason against wgmma, NULL when it is used. */
static DotPlan
plan_dot(Layouts *p, const Op *op, const char **why)
{
    const Type *a = op_operand(op, 0)->type, *acc = op_operand(op, 2)->type;
    int r = acc->rank;
    MmaShape mma;
    DotPlan plan = {.unit = "fma_loop"};
    bool has = mma_shape(p, op, &mma);
    *why = has ? plan_wgmma(p, op, &mma, &plan) : "tensor cores have not its types";
    if (!*why)
        return plan;
    if (has && acc->shape[r - 2] >= 16 && acc->shape[r - 1] >= 8 &&
        a->shape[r - 1] >= mma.k)
        return plan_mma(p, op, &mma);
    int bytes = (int)max_i64(type_bits(acc) / 8, 1);
    bool down = layout_operand_dim(op_operand(op, 0)) == r - 2;
    plan.acc = acc->layout ? acc->layout
                           : layout_threads(p->s, r, acc->shape, bytes,
                                            p->f->num_warps, down);
    if (!has_room(p)) {
        plan.unit = "fma";
        plan.a = layout_dot_operand(p->s, plan.acc, a->shape[r - 1], 0, 0);
        plan.b = layout_dot_operand(p->s, plan.acc, a->shape[r - 1], 1, 0);
    }
    return plan;
}

void
layout_anchor_dot(Layouts *p, Op *op)
{
    if (op->kind != OP_DOT)
        return;
    DotPlan *plan = arena_new(&p->s->tmp, DotPlan);
    const char *why;
    *plan = plan_dot(p, op, &why);
    map_set(&p->dots, op, plan);
    if (why && p->target->wgmma)
        attr_set_str(&p->s->mod, &op->attrs, ATTR_WHY, name_of(&p->s->names, why));
    attr_set_str(&p->s->mod, &op->attrs, ATTR_UNIT, name_of(&p->s->names, plan->unit));
    layout_give(p, &op->results[0], plan->acc);
    layout_give(p, op_operand(op, 2), plan->acc);
}

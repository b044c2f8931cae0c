/* What one program of a launch does, counted in its tile IR before any pass: bytes of
   tiles that it loads and stores, matmuls, and other arithmetic, each as often as its
   loops go round. Bounds of loops follow from the integers of the launch; where they
   depend on the program, it is the one in the middle of the grid. What is not known
   counts once. */
#include "runtime/tune.h"

#include "ir/fold.h"
#include "ir/op.h"

#include <string.h>

enum { MAX_OPERANDS = 4, MAX_DEPTH = 64 };

static int64_t
tile_bytes(const Type *t)
{
    return type_is_tile(t) && t->scalar != SK_NONE
               ? type_numel(t) * scalar_bits(t->scalar) / 8
               : 0;
}

/* A parameter of the kernel, when the launch gives an integer for it. */
static bool
param_value(const TuneWork *w, const Value *v, Const *out)
{
    const Func *f = w->func;
    if (v->region != f->body)
        return false;
    const char *name = f->params[v->index].name;
    for (int i = 0; name && i < w->nknown; i++)
        if (strcmp(w->known[i].name, name) == 0) {
            *out = (Const){.i = w->known[i].value};
            return true;
        }
    return false;
}

static bool
scalar_value(const TuneWork *w, const Value *v, int depth, Const *out)
{
    const Op *op = v->op;
    Const in[MAX_OPERANDS];
    if (depth > MAX_DEPTH || type_is_tile(v->type))
        return false;
    if (value_const(v, out))
        return !out->is_float;
    if (!op)
        return param_value(w, v, out);
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    if (op->kind == OP_PROGRAM_ID || op->kind == OP_NUM_PROGRAMS) {
        int64_t n = axis < 3 ? w->grid[axis] : 1;
        *out = (Const){.i = op->kind == OP_PROGRAM_ID ? n / 2 : n};
        return n > 0;
    }
    if (!op_is(op, T_ELEMENTWISE) || op->noperand > MAX_OPERANDS)
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!scalar_value(w, op_operand(op, i), depth + 1, &in[i]))
            return false;
    return fold_op(op, in, out) && !out->is_float;
}

/* Rounds of a loop. A span that is not known is the same for all configurations, and only
   its steps differ; where not even those tell, nothing can be guessed. */
static double
rounds(TuneWork *w, const Op *loop)
{
    enum { SOME_SPAN = 4096 };
    Const from, to, by;
    bool step = scalar_value(w, op_operand(loop, 2), 0, &by) && by.i != 0;
    if (step && scalar_value(w, op_operand(loop, 0), 0, &from) &&
        scalar_value(w, op_operand(loop, 1), 0, &to)) {
        double n = ((double)to.i - (double)from.i) / (double)by.i;
        return n > 0 ? ceil(n) : 0;
    }
    w->unknown |= !step || (by.i >= -1 && by.i <= 1);
    return step ? SOME_SPAN / fabs((double)by.i) : 1;
}

/* Cycles of the tensor cores of one SM. wgmma reads its operands from shared
   memory, 128 bytes a cycle, and narrow tiles wait for that. */
static double
dot_cycles(const TuneWork *w, const Op *op)
{
    const Type *a = op_operand(op, 0)->type, *r = op->results[0].type;
    double m = (double)r->shape[r->rank - 2], n = (double)r->shape[r->rank - 1];
    double k = (double)a->shape[a->rank - 1], bits = scalar_bits(a->scalar);
    double batch = (double)type_numel(r) / (m * n);
    double rate = w->target->sm >= 100 ? 4096 : w->target->sm >= 90 ? 2048 : 1024;
    double cycles = m * n * k * bits / 16 / rate;
    bool wgmma = w->target->wgmma && w->warps >= 4 && m >= 64 && bits <= 16;
    if (wgmma)
        cycles = fmax(cycles, m / 64 * (64 + n) * k * bits / 8 / 128);
    else if (w->target->sm >= 90)
        cycles /= 0.6; /* what mma.sync reaches there */
    return batch * cycles;
}

static void
count(TuneWork *w, const Op *op, double times)
{
    Effect fx;
    if (op->kind == OP_DOT) {
        int64_t operands =
            tile_bytes(op_operand(op, 0)->type) + tile_bytes(op_operand(op, 1)->type);
        w->accumulators = max_i64(w->accumulators, tile_bytes(op->results[0].type));
        w->operands = max_i64(w->operands, operands);
        w->product += times * dot_cycles(w, op);
        return;
    }
    for (int i = 0; i < 2 && opkind_effect(op->kind, i, &fx); i++)
        if (fx.resource == RES_GLOBAL) {
            const Type *t = op->nresult        ? op->results[0].type
                            : op->noperand > 1 ? op_operand(op, 1)->type
                                               : NULL;
            w->bytes += t ? times * (double)tile_bytes(t) : 0;
            return;
        }
    /* Integers are mostly addresses, which the passes take apart. */
    if (op_is(op, T_ELEMENTWISE) && op->nresult && op->kind != OP_CONST &&
        type_is_tile(op->results[0].type) && op->results[0].type->scalar != SK_NONE &&
        scalar_is_float(op->results[0].type->scalar))
        w->elements += times * (double)type_numel(op->results[0].type);
}

static void
walk(TuneWork *w, const Region *r, double times, int depth)
{
    for (const Op *op = r->first; op && depth < MAX_DEPTH; op = op->next) {
        count(w, op, times);
        double more = op->kind == OP_FOR ? times * rounds(w, op) : times;
        w->unknown |= op->kind == OP_WHILE;
        for (int i = 0; i < op->nregion && op->kind != OP_REDUCE && op->kind != OP_SCAN;
             i++)
            walk(w, op->regions[i], more, depth + 1);
    }
}

void
tune_work(TuneWork *w, const Func *f)
{
    w->func = f;
    w->warps = f->num_warps > 0 ? f->num_warps : 4;
    w->stages = f->num_stages > 0 ? f->num_stages : 3;
    walk(w, f->body, 1, 0);
}

/* Takes the last iteration out of a loop whose masks can be false only in that one: a
   loop over tiles of a length that the tile's size need not divide.

       for %k = 0, %K, 32 (%s = %z) {            %whole = %K - 31
         %m = cmpi %lanes, %K - %k         =>    %t = for %k = 0, %whole, 32 (%s = %z) {
         %x = load %p, %m                          %x = load %p
         ..                                        .. }
       }                                         %rest = %K & -32
                                                 %u = for %k = %rest, %K, 32 (%s = %t) {
                                                   as before } {stages=1, once}

   Two cuts are tried. The first leaves the whole steps to the loop: iv + step <= hi. If
   that proves no mask, as in a loop that counts tiles (for %i = 0, cdiv(%n, 32), 1), the
   second leaves all iterations but the last: iv + step < hi. ir/analysis/bounds.h proves
   which comparisons hold in the loop then; if none does, the loop stays as it is.

   The rest is a loop of at most one iteration and not an `if`, which would need a second
   arm for the carried values. {once} says so, or LLVM and ptxas would unroll it. The code
   grows by one body, so only small bodies are peeled. Loops that will be pipelined on a
   GPU are left alone: their copies are predicated, and the masks cost nothing. */
#include "ir/analysis/bounds.h"

#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "ir/loop.h"
#include "ir/plan/pipeline.h"
#include "passes/access/masks.h"
#include "passes/cost.h"
#include "passes/pass.h"

enum {
    MAX_BODY = 120, /* operations */
    MAX_CODE = 256, /* instructions of a thread: with more, masks are a small part */
};

typedef Vec(Op *) OpVec;

typedef struct Peel {
    Session *s;
    bool gpu;
    Axis *axis;
    Bounds *known;
    bool changed;
} Peel;

/* Does the comparison mask an access or a choice? */
static bool
is_mask(const Value *v, int depth)
{
    if (v->type->kind != TY_TILE || depth > 8)
        return false;
    value_each_use(v, u)
    {
        const Op *op = u->user;
        switch ((int)op->kind) {
        case OP_LOAD:
        case OP_STORE:
        case OP_SELECT: return true;
        case OP_AND:
        case OP_BROADCAST:
        case OP_EXPAND_DIMS:
        case OP_RESHAPE:
        case OP_TRANS:
        case OP_CONVERT_LAYOUT:
            if (is_mask(&op->results[0], depth + 1))
                return true;
            break;
        default: break;
        }
    }
    return false;
}

/* Collects the masks of the region that are true for all elements, by what is known
   now. */
static void
find_full(Peel *p, const Region *r, OpVec *out, int depth)
{
    for (Op *op = r->first; op; op = op->next) {
        if (op->kind == OP_CMPI && is_mask(&op->results[0], 0) &&
            bounds_compare(p->known, op) == 1)
            vec_push(&p->s->tmp, out, op);
        if (op->kind == OP_ASSUME)
            bounds_assume(p->known, op_operand(op, 0), true);
        for (int i = 0; i < op->nregion && depth < MAX_REGION_DEPTH; i++) {
            BoundsMark m = bounds_mark(p->known);
            bounds_enter(p->known, op, i);
            find_full(p, op->regions[i], out, depth + 1);
            bounds_leave(p->known, m);
        }
    }
}

/* The masks that are all true in iterations with iv + ahead <= hi. */
static void
full_when(Peel *p, Op *loop, int64_t ahead, OpVec *out)
{
    BoundsMark m = bounds_mark(p->known);
    bounds_enter(p->known, loop, 0);
    bounds_assume_below(p->known, loop->regions[0]->args[0], ahead, op_operand(loop, 1));
    find_full(p, loop->regions[0], out, 0);
    bounds_leave(p->known, m);
}

static int
count_ops(const Region *r)
{
    int n = 0;
    region_each_deep(r, op) n++;
    return n;
}

/* Is the work of the loop so heavy on a CPU that masks do not count? They are one scalar
   test in front of a strip of lanes, which dots and exponentials hide. */
static bool
is_heavy(const Region *r)
{
    region_each_deep(r, op)
    {
        if (op->kind == OP_DOT || op->kind == OP_LOCAL_DOT ||
            (op->kind != OP_LOAD && op_cost(op) > OP_COSTLY))
            return true;
    }
    return false;
}

/* Would a second body cost more than the masks do? In a loop of dots, which wait for all
   of their operands, masks are most of the work of threads, so its size does not
   count. */
static bool
is_large(const Peel *p, const Region *r)
{
    if (count_ops(r) > MAX_BODY)
        return true;
    return p->gpu ? region_code(r, 0) > MAX_CODE && !region_has_trait(r, T_DOT)
                  : is_heavy(r);
}

static Value *
int_op(Builder *b, OpKind k, Value *x, int64_t y)
{
    return build_binary(b, k, x, build_int(b, x->type, y));
}

/* Builds lo + the largest multiple of step that is not above span. */
static Value *
last_start(Builder *b, Value *lo, Value *span, int64_t step)
{
    if (step > 1 && is_pow2(step))
        span = int_op(b, OP_AND, span, -step);
    else if (step > 1)
        span = int_op(b, OP_MUL, int_op(b, OP_DIVS, span, step), step);
    return value_is_int(lo, 0) ? span : build_binary(b, OP_ADD, lo, span);
}

/* The iteration that was taken out, behind the loop; users of the loop's results get
   those of this one. */
static void
build_rest(Peel *p, Op *loop, Value *start)
{
    Vec(Use *) uses = {0};
    for (int i = 0; i < loop->nresult; i++)
        value_each_use(&loop->results[i], u) vec_push(&p->s->tmp, &uses, u);
    Builder b = builder_after(loop);
    b.loc = loop->loc;
    Map map;
    map_init(&map, &p->s->tmp);
    Op *rest = op_clone(&b, loop, &map);
    for (int i = 0; i < uses.n; i++)
        op_set_operand(uses.at[i]->user, uses.at[i]->index,
                       &rest->results[uses.at[i]->value->index]);
    op_set_operand(rest, 0, start);
    for (int i = 0; i < loop->nresult; i++)
        op_set_operand(rest, 3 + i, &loop->results[i]);
    attr_set_int(&p->s->mod, &rest->attrs, ATTR_STAGES, 1);
    attr_set_flag(&p->s->mod, &rest->attrs, ATTR_ONCE);
}

/* Cuts the loop: it keeps the iterations with iv + ahead <= hi, where ahead is step or
   step + 1, and masks `full` are true there. */
static void
cut(Peel *p, Op *loop, int64_t step, int64_t ahead, const OpVec *full)
{
    Value *lo = op_operand(loop, 0), *hi = op_operand(loop, 1);
    Builder b = builder_before(loop);
    b.loc = loop->loc;
    Value *top =
        build_binary(&b, OP_MAXS, hi, lo); /* hi below lo: no difference may wrap */
    Value *span = value_is_int(lo, 0) ? top : build_binary(&b, OP_SUB, top, lo);
    if (ahead > step)
        span = int_op(&b, OP_MAXS, int_op(&b, OP_SUB, span, 1), 0);
    Value *iv = last_start(&b, lo, span, step);
    Value *end = int_op(&b, OP_SUB, top, ahead - 1);
    iv->name = loop->regions[0]->args[0]->name;
    build_rest(p, loop, iv);
    op_set_operand(loop, 1, end);
    for (int i = 0; i < full->n; i++)
        mask_is(p->s, full->at[i], true);
    p->changed = true;
}

static void
peel_loop(Peel *p, Op *loop)
{
    int64_t step = loop_step(loop);
    const AxisFacts *lo = axis_of(p->axis, op_operand(loop, 0));
    if (!step || step > INT32_MAX / 2 || lo->lo < 0 || loop_is_pipelined(loop) ||
        pipeline_of(loop).stages == 1 || /* it may be a rest itself */
        is_large(p, loop->regions[0]))
        return;
    for (int64_t ahead = step; ahead <= step + 1; ahead++) {
        OpVec full = {0};
        full_when(p, loop, ahead, &full);
        if (!full.n)
            continue;
        cut(p, loop, step, ahead, &full);
        return;
    }
}

static void
visit(Peel *p, Region *r, int depth)
{
    if (depth > MAX_REGION_DEPTH)
        return;
    region_each(r, op)
    {
        if (op->kind == OP_ASSUME)
            bounds_assume(p->known, op_operand(op, 0), true);
        for (int i = 0; i < op->nregion; i++) {
            BoundsMark m = bounds_mark(p->known);
            bounds_enter(p->known, op, i);
            visit(p, op->regions[i], depth + 1);
            bounds_leave(p->known, m);
        }
        if (op->kind == OP_FOR)
            peel_loop(p, op);
    }
}

static bool
has_loop(const Region *r)
{
    region_each_deep(r, op) if (op->kind == OP_FOR) return true;
    return false;
}

bool
pass_peel(Func *f, PassCx *cx)
{
    if (!has_loop(f->body))
        return false;
    Peel p = {.s = cx->s, .gpu = cx->target.gpu};
    p.axis = axis_new(f, &cx->s->tmp);
    p.known = bounds_new(p.axis, &cx->s->tmp);
    visit(&p, f->body, 0);
    return p.changed;
}

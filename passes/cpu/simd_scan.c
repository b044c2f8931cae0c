/* Scans, in place in the buffers of their results.

   If lanes do not run along the scanned dimension, as many lines as a strip has lanes are
   scanned at once. If they do, each strip is scanned by itself in log2(lanes) steps, and
   then combined with the total of all strips before it. So the chain from strip to strip
   is only one combination long.

       for %i = 0, 64, 16 (%before) {
         %x0 = buf_load &x[%i..]
         %x1 = combine (vslide %x0 {by=1}), %x0    // where there is such a lane, else %x0
         ..  {by=2}, {by=4}, {by=8}
         %y = combine (splat %before), %x4;  buf_store &x[%i..], %y
         yield last lane of %y }

   The order of operands is kept: the earlier one is always the left one. A region that
   has other than elementwise operations is done element by element. */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"
#include "ir/edit.h"

typedef struct Scan {
    Simd *n;
    Op *op;
    int k;          /* operands */
    int axis, w;    /* scanned dimension, lanes */
    bool along;     /* lanes run along the axis */
    bool reverse;
    Ix ix[MAX_RANK];
} Scan;

static bool
is_simple(const Region *r)
{
    for (const Op *op = r->first; op != r->last; op = op->next)
        if (!op_is(op, T_ELEMENTWISE) || op->noperand > SIMD_MAX_IN || op->nresult != 1)
            return false;
    return true;
}

/* As many lanes as a vector has if they run along the axis, since strips wait for one
   another then; else as many as keep the machine busy. */
static int
lanes_of(const Scan *s)
{
    const Type *t = op_operand(s->op, 0)->type;
    int bits = 32;
    for (int i = 0; i < s->k; i++) {
        const Type *e = type_elem(op_operand(s->op, i)->type);
        if (e->kind != TY_SCALAR || e->scalar == SK_I1)
            return 1;
        bits = (int)max_i64(bits, type_bits(e));
    }
    int most = s->n->vector_bytes * 8 / bits * (s->along ? 1 : 4);
    return is_simple(s->op->regions[0]) ? (int)min_i64(most, t->shape[t->rank - 1]) : 1;
}

static Op *
count_loop(Simd *n, Builder *b, int64_t lo, int64_t hi, int64_t step, Value *const *inits,
           int k)
{
    return build_for(b, simd_int(b, n->i64, lo), simd_int(b, n->i64, hi),
                     simd_int(b, n->i64, step), inits, k);
}

static Slot *
slot_of(const Scan *s, int i)
{
    return plan_get(s->n, op_result(s->op, i))->slot;
}

static void
read(const Scan *s, Cx *cx, Value **x)
{
    for (int i = 0; i < s->k; i++) {
        Slot *slot = slot_of(s, i);
        const Type *e = type_elem(op_result(s->op, i)->type);
        x[i] = simd_slot_load(cx, slot, e, s->ix).v;
    }
}

static void
write(const Scan *s, Cx *cx, Value *const *x)
{
    int rank = op_operand(s->op, 0)->type->rank;
    for (int i = 0; i < s->k; i++)
        simd_slot_store(cx, slot_of(s, i), rank, s->ix,
                        (Ev){.kind = s->w > 1 ? EV_VEC : EV_UNI, .v = x[i]});
}

/* x = combine(before, x) */
static void
combine(const Scan *s, Cx *cx, Value *const *before, Value **x)
{
    Region *r = s->op->regions[0];
    Value *args[2 * SIMD_MAX_IN];
    for (int i = 0; i < s->k; i++) {
        args[i] = before[i];
        args[s->k + i] = x[i];
    }
    if (is_simple(r)) {
        simd_combine(cx, s->op, args, x);
        return;
    }
    for (int i = 0; i < r->narg; i++)
        map_set(&s->n->map, r->args[i], args[i]);
    region_clone_into(&cx->b, r, &s->n->map);
    for (int i = 0; i < s->k; i++)
        x[i] = map_get(&s->n->map, op_operand(r->last, i));
}

/* Combines each lane with all before it in the strip. */
static void
scan_strip(const Scan *s, Cx *cx, Value **x)
{
    Value *far[SIMD_MAX_IN], *all[SIMD_MAX_IN];
    AttrList l = {0};
    attr_set_int(&s->n->s->mod, &l, ATTR_START, 0);
    const Type *t = strip_type(cx, s->n->i32);
    Value *lane = op_result(build_op(&cx->b, OP_ARANGE, NULL, 0, &l, &t, 1), 0);
    for (int by = 1; by < s->w; by *= 2) {
        AttrList how = {0};
        attr_set_int(&s->n->s->mod, &how, ATTR_BY, s->reverse ? -by : by);
        for (int i = 0; i < s->k; i++) {
            far[i] = op_result(build_op(&cx->b, OP_VSLIDE, &x[i], 1, &how, NULL, 1), 0);
            all[i] = x[i];
        }
        combine(s, cx, far, all);
        Value *end = build_int(&cx->b, t, s->reverse ? s->w - by : by);
        Value *has = build_cmp(&cx->b, OP_CMPI, s->reverse ? "slt" : "sge", lane, end);
        for (int i = 0; i < s->k; i++)
            x[i] = build_select(&cx->b, has, all[i], x[i]);
    }
}

/* The total of a scanned strip: its last lane, or the first one of a reverse scan. */
static void
last_lanes(const Scan *s, Builder *b, Value *const *x, Value **out)
{
    AttrList l = {0};
    const Type *types[SIMD_MAX_IN];
    Value *args[2 * SIMD_MAX_IN];
    attr_set_int(&s->n->s->mod, &l, ATTR_AXIS, 0);
    for (int i = 0; i < s->k; i++)
        types[i] = type_elem(x[i]->type);
    Op *op = build_op(b, OP_REDUCE, x, s->k, &l, types, s->k);
    Region *r = region_new(s->n->f, op);
    for (int i = 0; i < 2 * s->k; i++)
        args[i] = region_arg(r, types[i % s->k], NULL);
    Builder in = builder_at_end(s->n->f, r);
    build_yield(&in, s->reverse ? args : args + s->k, s->k);
    for (int i = 0; i < s->k; i++)
        out[i] = op_result(op, i);
}

/* One step, at position `at` of the axis. acc: the totals before it, and then with it. */
static void
step(Scan *s, Builder *b, Ix at, bool first, Value **acc)
{
    Value *x[SIMD_MAX_IN], *before[SIMD_MAX_IN];
    Cx cx;
    cx_init(&cx, s->n, *b, s->w);
    cx.b.loc = s->op->loc;
    s->ix[s->axis] = at;
    read(s, &cx, x);
    if (s->along && s->w > 1)
        scan_strip(s, &cx, x);
    for (int i = 0; i < s->k; i++) {
        bool splat = !first && s->along && s->w > 1;
        before[i] = splat ? build_splat(&cx.b, acc[i], x[i]->type) : acc[i];
    }
    if (!first)
        combine(s, &cx, before, x);
    write(s, &cx, x);
    if (s->along && s->w > 1)
        last_lanes(s, &cx.b, x, acc);
    else
        for (int i = 0; i < s->k; i++)
            acc[i] = x[i];
}

static void
scan_line(Scan *s, Builder *b)
{
    int64_t size = op_operand(s->op, 0)->type->shape[s->axis];
    int64_t w = s->along ? s->w : 1;
    bool strip = s->along && s->w > 1;
    Value *acc[SIMD_MAX_IN] = {NULL};
    Value *start = simd_int(b, s->n->i64, s->reverse ? size - w : 0);
    step(s, b, (Ix){strip ? IX_AFF : IX_UNI, 0, start}, true, acc);
    if (size == w)
        return;
    Op *loop = count_loop(s->n, b, w, size, w, acc, s->k);
    Builder in = builder_at_end(s->n->f, loop->regions[0]);
    in.loc = s->op->loc;
    Value *at = loop->regions[0]->args[0];
    for (int i = 0; i < s->k; i++)
        acc[i] = loop->regions[0]->args[i + 1];
    if (s->reverse)
        at = build_binary(&in, OP_SUB, simd_int(&in, s->n->i64, size - w), at);
    step(s, &in, (Ix){strip ? IX_AFF : IX_UNI, 0, at}, false, acc);
    build_yield(&in, acc, s->k);
}

void
simd_scan(Simd *n, Builder *b, Op *op)
{
    const Type *t = op_operand(op, 0)->type;
    Scan s = {.n = n, .op = op, .k = op->nresult};
    Builder at = *b;
    if (op->nresult > SIMD_MAX_IN)
        bug(&n->s->fail, "scan of %d tiles", op->nresult);
    s.axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    s.reverse = attr_has(&op->attrs, ATTR_REVERSE);
    s.along = s.axis == t->rank - 1;
    s.w = lanes_of(&s);
    if (t->shape[s.axis] == 1)
        return;
    for (int d = 0; d < t->rank; d++) {
        bool lanes = d == t->rank - 1 && s.w > 1;
        int64_t w = lanes ? s.w : 1;
        s.ix[d] = (Ix){lanes ? IX_AFF : IX_CONST, 0, NULL};
        if (d == s.axis || t->shape[d] == w)
            continue;
        Op *loop = count_loop(n, &at, 0, t->shape[d], w, NULL, 0);
        s.ix[d] = (Ix){lanes ? IX_AFF : IX_UNI, 0, loop->regions[0]->args[0]};
        at = builder_at_end(n->f, loop->regions[0]);
        at = builder_before(build_yield(&at, NULL, 0));
    }
    scan_line(&s, &at);
}

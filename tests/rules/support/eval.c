/* Operations, control flow and memory of the evaluator. */
#include "tests/rules/support/eval.h"
#include "tests/rules/support/number.h"

#include <stdlib.h>
#include <string.h>

static Datum *
value(Eval *e, const Value *v)
{
    return &e->values[v->id];
}

static uint64_t
all_lanes(int n)
{
    return bits_mask(n);
}

/* ---- memory: what nobody has written is a number made of the address */

static uint64_t
scramble(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x7fb5d329728ea185);
    x ^= x >> 27;
    x *= UINT64_C(0x81dadef4bc2dd44d);
    return x ^ x >> 33;
}

static int
size_of(const Type *pointers)
{
    return (type_bits(type_elem(pointers)->elem) + 7) / 8;
}

static Access *
record(Eval *e, bool write, uint64_t address, const Type *pointers)
{
    Trace *t = e->trace;
    if (t->n == EVAL_ACCESSES) {
        t->open = true;
        t->n = 0;
    }
    t->at[t->n] = (Access){.write = write,
                           .address = address,
                           .size = size_of(pointers),
                           .elem = type_elem(pointers)->elem};
    return &t->at[t->n++];
}

static void
read_lane(Eval *e, uint64_t address, int size, Datum *to, int lane)
{
    const Trace *t = e->trace;
    to->bits[lane] = scramble(address) & bits_mask(8 * size);
    for (int i = t->n - 1; i >= 0; i--) {
        const Access *a = &t->at[i];
        if (!a->write || a->address + (uint64_t)a->size <= address ||
            address + (uint64_t)size <= a->address)
            continue;
        if (a->address != address || a->size != size) {
            e->trace->open = true;
            return;
        }
        to->bits[lane] = a->bits;
        to->any |= (uint64_t)a->any << lane;
        return;
    }
}

static bool
lane_on(Eval *e, const Op *op, int mask, int lane)
{
    if (op->noperand <= mask)
        return true;
    const Datum *m = value(e, op_operand(op, mask));
    e->trace->open |= m->any >> lane & 1;
    return m->bits[lane] != 0;
}

static void
load(Eval *e, const Op *op, Datum *out)
{
    const Datum *p = value(e, op_operand(op, 0));
    int size = size_of(op_operand(op, 0)->type);
    for (int i = 0; i < out->n; i++) {
        if (!lane_on(e, op, 1, i)) {
            const Datum *other = op->noperand > 2 ? value(e, op_operand(op, 2)) : NULL;
            out->bits[i] = other ? other->bits[i] : 0;
            out->any |= other ? other->any & UINT64_C(1) << i : 0;
            continue;
        }
        e->trace->open |= p->any >> i & 1;
        read_lane(e, p->bits[i], size, out, i);
        out->bits[i] &= bits_mask(type_bits(op->results[0].type));
        Access *a = record(e, false, p->bits[i], op_operand(op, 0)->type);
        a->any = true;
    }
}

/* A store, and an atomic operation as the store of its operand. */
static void
store(Eval *e, const Op *op)
{
    const Datum *p = value(e, op_operand(op, 0)), *v = value(e, op_operand(op, 1));
    for (int i = 0; i < p->n; i++) {
        if (!lane_on(e, op, 2, i))
            continue;
        e->trace->open |= p->any >> i & 1;
        Access *a = record(e, true, p->bits[i], op_operand(op, 0)->type);
        a->bits = v->bits[i];
        a->any = v->any >> i & 1;
    }
}

/* ---- pure operations */

static void
elementwise(Eval *e, const Op *op, Datum *out)
{
    const Datum *in[8];
    for (int k = 0; k < op->noperand; k++)
        in[k] = value(e, op_operand(op, k));
    for (int i = 0; i < out->n; i++) {
        uint64_t x[8] = {0}, any = 0;
        for (int k = 0; k < op->noperand; k++) {
            x[k] = in[k]->bits[i];
            any |= in[k]->any >> i & 1;
        }
        if (op->kind == OP_SELECT && !(in[0]->any >> i & 1))
            any = in[x[0] ? 1 : 2]->any >> i & 1;
        if (!eval_element(op, x, &out->bits[i]))
            any = 1;
        out->any |= any << i;
    }
}

/* The element of the operand that element i of the result is. */
static int
source_of(const Op *op, int i)
{
    const Type *from = op_operand(op, 0)->type, *to = op->results[0].type;
    const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
    int64_t at[MAX_RANK], in[MAX_RANK], flat = 0;
    if (op->kind == OP_SPLAT)
        return 0;
    if (op->kind != OP_BROADCAST && op->kind != OP_TRANS)
        return i; /* row-major order stays */
    for (int d = to->rank - 1; d >= 0; d--) {
        at[d] = i % to->shape[d];
        i /= (int)to->shape[d];
    }
    for (int d = 0; d < to->rank; d++)
        if (op->kind == OP_TRANS)
            in[perm->v.ints[d]] = at[d];
        else
            in[d] = from->shape[d] == 1 ? 0 : at[d];
    for (int d = 0; d < from->rank; d++)
        flat = flat * from->shape[d] + in[d];
    return (int)flat;
}

static void
shape(Eval *e, const Op *op, Datum *out)
{
    const Datum *in = value(e, op_operand(op, 0));
    for (int i = 0; i < out->n; i++) {
        int from = source_of(op, i);
        out->bits[i] = in->bits[from];
        out->any |= (in->any >> from & 1) << i;
    }
}

static uint64_t
constant(const Op *op)
{
    const Type *t = type_elem(op->results[0].type);
    const Attr *f = attr_find(&op->attrs, ATTR_FVALUE);
    if (f)
        return bits_narrowed(t->scalar, f->v.f, false);
    return (uint64_t)attr_int(&op->attrs, ATTR_VALUE, 0) & bits_mask(type_bits(t));
}

static void
source(Eval *e, const Op *op, Datum *out)
{
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    int64_t start = attr_int(&op->attrs, ATTR_START, 0);
    for (int i = 0; i < out->n; i++)
        switch ((int)op->kind) {
        case OP_CONST: out->bits[i] = constant(op); break;
        case OP_ARANGE:
            out->bits[i] =
                (uint64_t)(start + i) & bits_mask(type_bits(op->results[0].type));
            break;
        case OP_PROGRAM_ID: out->bits[i] = e->program[axis]; break;
        case OP_NUM_PROGRAMS: out->bits[i] = e->programs[axis]; break;
        default: out->any |= UINT64_C(1) << i;
        }
}

/* ---- control */

static void run_region(Eval *e, const Region *r);

static void
copy(Eval *e, const Value *to, const Value *from)
{
    *value(e, to) = *value(e, from);
    if (e->seen)
        e->seen(e->user, to, value(e, to));
}

static int64_t
scalar(Eval *e, const Value *v)
{
    const Datum *d = value(e, v);
    e->trace->open |= d->any & 1;
    return bits_signed(type_bits(v->type), d->bits[0]);
}

/* Loop arguments change together: an argument may be yielded in another's place. */
static void
carry(Eval *e, Value *const *to, int first, const Op *from, int operand, int n)
{
    Datum *d = malloc((size_t)(n ? n : 1) * sizeof *d);
    for (int i = 0; i < n; i++)
        d[i] = *value(e, op_operand(from, operand + i));
    for (int i = 0; i < n; i++) {
        *value(e, to[first + i]) = d[i];
        if (e->seen)
            e->seen(e->user, to[first + i], &d[i]);
    }
    free(d);
}

static void
results(Eval *e, const Op *op, const Op *from, int operand)
{
    for (int i = 0; i < op->nresult; i++)
        copy(e, &op->results[i], op_operand(from, operand + i));
}

static void
run_for(Eval *e, const Op *op)
{
    const Region *body = op->regions[0];
    const Type *t = body->args[0]->type;
    int64_t lo = scalar(e, op_operand(op, 0)), hi = scalar(e, op_operand(op, 1));
    int64_t step = scalar(e, op_operand(op, 2));
    if (step == 0)
        e->trace->open = true;
    results(e, op, op, 3);
    carry(e, body->args, 1, op, 3, op->nresult);
    for (int64_t i = lo; !e->trace->open && (step > 0 ? i < hi : i > hi);) {
        Datum iv = {.n = 1, .bits = {(uint64_t)i & bits_mask(type_bits(t))}};
        *value(e, body->args[0]) = iv;
        if (e->seen)
            e->seen(e->user, body->args[0], &iv);
        run_region(e, body);
        if (e->trace->open)
            return;
        results(e, op, body->last, 0);
        carry(e, body->args, 1, body->last, 0, op->nresult);
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
}

static void
run_while(Eval *e, const Op *op)
{
    const Region *cond = op->regions[0], *body = op->regions[1];
    carry(e, cond->args, 0, op, 0, cond->narg);
    while (!e->trace->open) {
        run_region(e, cond);
        if (e->trace->open || !scalar(e, op_operand(cond->last, 0)))
            break;
        carry(e, body->args, 0, cond->last, 1, body->narg);
        run_region(e, body);
        if (!e->trace->open)
            carry(e, cond->args, 0, body->last, 0, cond->narg);
    }
    if (!e->trace->open)
        results(e, op, cond->last, 1);
}

static void
run_if(Eval *e, const Op *op)
{
    const Region *arm = op->regions[scalar(e, op_operand(op, 0)) ? 0 : 1];
    if (e->trace->open)
        return;
    run_region(e, arm);
    if (!e->trace->open)
        results(e, op, arm->last, 0);
}

static void
run_op(Eval *e, const Op *op)
{
    if (op->kind == OP_FOR || op->kind == OP_IF || op->kind == OP_WHILE) {
        op->kind == OP_FOR  ? run_for(e, op)
        : op->kind == OP_IF ? run_if(e, op)
                            : run_while(e, op);
        return;
    }
    if (op->kind == OP_STORE || op->kind == OP_ASSUME || !op->nresult) {
        if (op->kind == OP_STORE)
            store(e, op);
        else if (op->kind == OP_ASSUME && !scalar(e, op_operand(op, 0)))
            e->trace->open = true;
        return;
    }
    const Value *v = &op->results[0];
    Datum *out = value(e, v);
    *out = (Datum){.n = (int)type_numel(v->type)};
    if (op->kind == OP_LOAD) {
        load(e, op, out);
    } else if (op->kind == OP_ATOMIC_RMW) {
        store(e, op);
        out->any = all_lanes(out->n);
    } else if (op_is(op, T_SHAPE) || op->kind == OP_CONVERT_LAYOUT) {
        shape(e, op, out);
    } else if (!op->noperand) {
        source(e, op, out);
    } else {
        elementwise(e, op, out);
    }
    if (e->seen)
        e->seen(e->user, v, out);
}

static void
run_region(Eval *e, const Region *r)
{
    for (const Op *op = r->first; op && !e->trace->open; op = op->next) {
        if (++e->steps > (e->generous ? 4 : 1) * EVAL_STEPS)
            e->trace->open = true;
        run_op(e, op);
    }
}

void
eval_run(Eval *e, const Func *f, const uint64_t *params, Trace *trace)
{
    int n = (int)f->next_id + 1;
    if (n > e->nvalues) {
        free(e->values);
        e->nvalues = n + 64;
        e->values = malloc((size_t)e->nvalues * sizeof *e->values);
    }
    e->trace = trace;
    e->steps = 0;
    trace->n = 0;
    trace->open = false;
    for (int i = 0; i < f->body->narg; i++) {
        const Value *v = f->body->args[i];
        Datum *d = value(e, v);
        *d = (Datum){.n = 1, .bits = {params[i] & bits_mask(type_bits(v->type))}};
        if (e->seen)
            e->seen(e->user, v, d);
    }
    run_region(e, f->body);
}

void
eval_done(Eval *e)
{
    free(e->values);
    *e = (Eval){0};
}

/* ---- comparison */

static bool
was_read(const Trace *t, const Access *a)
{
    for (int i = 0; i < t->n; i++)
        if (t->at[i].address == a->address && t->at[i].size == a->size)
            return true;
    return false;
}

static int
next_write(const Trace *t, int i)
{
    while (i < t->n && !t->at[i].write)
        i++;
    return i;
}

const char *
trace_differs(const Trace *before, const Trace *after, int *at)
{
    *at = 0;
    if (before->open)
        return NULL;
    if (after->open)
        return "was defined";
    for (int i = 0, k = 0;; i++, k++, ++*at) {
        i = next_write(before, i);
        k = next_write(after, k);
        if (i == before->n && k == after->n)
            break;
        if (i == before->n || k == after->n)
            return "another number of stores";
        const Access *x = &before->at[i], *y = &after->at[k];
        if (x->address != y->address || x->size != y->size)
            return "a store to another address";
        if (!x->any && (y->any || !bits_same(x->elem, x->bits, y->bits)))
            return "another value";
    }
    for (int i = 0; i < after->n; i++)
        if (!after->at[i].write && !was_read(before, &after->at[i]))
            return "a load that was not there";
    return NULL;
}

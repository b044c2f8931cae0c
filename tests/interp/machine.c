/* The machine: slots, regions, dispatch, programs of the grid one after the other. */
#include "tests/interp/machine.h"

#include "ir/base/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- slots */

Slot *
machine_slot(Machine *m, const Value *v)
{
    return &m->slots[v->id];
}

uint64_t *
slot_room(Machine *m, Slot *s, int64_t n)
{
    if (n > s->cap) {
        free(s->cell);
        s->cell = malloc((size_t)n * sizeof(uint64_t));
        s->cap = s->cell ? n : 0;
        if (!s->cell) {
            machine_stop(m, INTERP_LIMIT, NULL, "out of memory");
            return NULL;
        }
    }
    s->n = n;
    return s->cell;
}

bool
slot_copy(Machine *m, Slot *to, const Slot *from)
{
    uint64_t *cell = slot_room(m, to, from->n);
    if (cell)
        memmove(cell, from->cell, (size_t)from->n * sizeof *cell);
    return cell != NULL;
}

const uint64_t *
machine_read(Machine *m, const Value *v, int64_t n, int which)
{
    const Slot *s = machine_slot(m, v);
    if (s->n == n)
        return s->cell;
    uint64_t *cell = slot_room(m, &m->spare[which], n);
    for (int64_t i = 0; cell && i < n; i++)
        cell[i] = s->cell[0];
    return cell;
}

uint64_t *
machine_write(Machine *m, const Value *v, int64_t n)
{
    return slot_room(m, machine_slot(m, v), n);
}

int64_t
machine_scalar(Machine *m, const Value *v)
{
    return (int64_t)machine_slot(m, v)->cell[0];
}

int64_t
machine_lanes(const Machine *m, const Op *op)
{
    return m->lanes ? m->lanes : type_numel(op->results[0].type);
}

/* ---- stopping */

bool
machine_stop(Machine *m, InterpStatus s, const Op *op, const char *fmt, ...)
{
    int n = 0;
    if (m->status != INTERP_OK)
        return false;
    m->status = s;
    if (m->size <= 0)
        return false;
    if (op && op->loc.src)
        n = snprintf(m->message, (size_t)m->size, "%s:%d:%d: ", op->loc.src->path,
                     op->loc.line, op->loc.col);
    if (op && n < m->size)
        n += snprintf(m->message + n, (size_t)(m->size - n),
                      "%s, program (%lld,%lld,%lld): ", op_info[op->kind].name,
                      (long long)m->program[0], (long long)m->program[1],
                      (long long)m->program[2]);
    if (n < m->size) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(m->message + n, (size_t)(m->size - n), fmt, ap);
        va_end(ap);
    }
    return false;
}

bool
machine_count(Machine *m, const Op *op, int64_t n)
{
    m->steps += 1 + (uint64_t)n;
    if (m->max_steps && m->steps > m->max_steps)
        return machine_stop(m, INTERP_LIMIT, op, "more than %llu steps",
                            (unsigned long long)m->max_steps);
    return true;
}

void
lane_text(const Type *t, int64_t lane, char *out, int size)
{
    int64_t at[MAX_RANK];
    int n = 0;
    for (int d = t->rank - 1; d >= 0; d--) {
        at[d] = lane % t->shape[d];
        lane /= t->shape[d];
    }
    for (int d = 0; d < t->rank && n < size; d++)
        n += snprintf(out + n, (size_t)(size - n), "%c%lld", d ? ',' : '[',
                      (long long)at[d]);
    if (n < size)
        snprintf(out + n, (size_t)(size - n), t->rank ? "]" : "[]");
}

/* ---- operations without operands */

/* What `undef` gives: zeros, or bits that nobody wants. */
static uint64_t
any_value(const Machine *m, const Type *e)
{
    if (!m->undefined || e->kind == TY_PTR)
        return 0;
    uint64_t bits = m->undefined * 0x9e3779b97f4a7c15u;
    if (!scalar_is_float(e->scalar))
        return (uint64_t)int_wrap(e->scalar, bits);
    int width = scalar_bits(e->scalar);
    return width == 64 ? bits : bits & (((uint64_t)1 << width) - 1);
}

static bool
run_constant(Machine *m, const Op *op)
{
    const Value *v = &op->results[0];
    const Type *e = type_elem(v->type);
    Slot *s = machine_slot(m, v);
    int64_t n = machine_lanes(m, op);
    uint64_t x;
    if (s->done && s->n == n)
        return true;
    if (op->kind == OP_UNDEF)
        x = any_value(m, e);
    else if (attr_has(&op->attrs, ATTR_VALUE))
        x = (uint64_t)attr_int(&op->attrs, ATTR_VALUE, 0);
    else
        x = format_encode(e->scalar, attr_float(&op->attrs, ATTR_FVALUE, 0), false);
    uint64_t *cell = slot_room(m, s, n);
    for (int64_t i = 0; cell && i < n; i++)
        cell[i] = x;
    if (cell && op->kind == OP_ARANGE)
        for (int64_t i = 0; i < n; i++)
            cell[i] = (uint64_t)(attr_int(&op->attrs, ATTR_START, 0) + i);
    s->done = true;
    return cell != NULL;
}

static bool
run_program(Machine *m, const Op *op)
{
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    uint64_t *cell = machine_write(m, &op->results[0], 1);
    if (cell)
        *cell = (uint64_t)(op->kind == OP_PROGRAM_ID ? m->program : m->grid)[axis];
    return cell != NULL;
}

/* The first lane where a condition fails under its mask, or -1. */
static int64_t
false_lane(Machine *m, const Op *op)
{
    int64_t n = machine_slot(m, op_operand(op, 0))->n;
    const uint64_t *c = machine_read(m, op_operand(op, 0), n, 0), *mask = NULL;
    if (op->noperand > 1)
        mask = machine_read(m, op_operand(op, 1), n, 1);
    for (int64_t i = 0; c && i < n; i++)
        if (!(c[i] & 1) && (!mask || mask[i] & 1))
            return i;
    return -1;
}

static bool
run_assert(Machine *m, const Op *op)
{
    int64_t lane = false_lane(m, op);
    char where[80];
    if (lane < 0)
        return true;
    lane_text(op_operand(op, 0)->type, lane, where, sizeof where);
    Name text = attr_str(&op->attrs, ATTR_MESSAGE);
    return machine_stop(m, INTERP_ASSERT, op, "lane %s: %s", where,
                        text ? text : "does not hold");
}

static bool
run_copy(Machine *m, const Op *op)
{
    return slot_copy(m, machine_slot(m, &op->results[0]),
                     machine_slot(m, op_operand(op, 0)));
}

static bool
run_select(Machine *m, const Op *op)
{
    int64_t n = machine_lanes(m, op);
    const uint64_t *c = machine_read(m, op_operand(op, 0), n, 0);
    const uint64_t *x = machine_read(m, op_operand(op, 1), n, 1);
    const uint64_t *y = machine_read(m, op_operand(op, 2), n, 2);
    uint64_t *out = machine_write(m, &op->results[0], n);
    if (!c || !x || !y || !out)
        return false;
    for (int64_t i = 0; i < n; i++)
        out[i] = c[i] & 1 ? x[i] : y[i];
    return true;
}

/* ---- dispatch */

static bool
run_nothing(Machine *m, const Op *op)
{
    (void)m;
    (void)op;
    return true;
}

typedef bool RunFn(Machine *m, const Op *op);

static bool
run_asm(Machine *m, const Op *op)
{
    return machine_stop(m, INTERP_UNSUPPORTED, op, "PTX of the source");
}

/* Arithmetic is found by its operand's type; the rest is here. */
static RunFn *const special[OP_COUNT] = {
    [OP_CONST] = run_constant,
    [OP_UNDEF] = run_constant,
    [OP_ARANGE] = run_constant,
    [OP_PROGRAM_ID] = run_program,
    [OP_NUM_PROGRAMS] = run_program,
    [OP_SELECT] = run_select,
    [OP_CMPI] = run_compare,
    [OP_CMPF] = run_compare,
    [OP_ASM] = run_asm,
    [OP_ASM_EFFECT] = run_asm,
    [OP_LIBM] = run_libm,
    [OP_TRUNC] = run_cast,
    [OP_SEXT] = run_cast,
    [OP_ZEXT] = run_cast,
    [OP_FEXT] = run_cast,
    [OP_FTRUNC] = run_cast,
    [OP_SITOF] = run_cast,
    [OP_UITOF] = run_cast,
    [OP_FTOSI] = run_cast,
    [OP_FTOUI] = run_cast,
    [OP_BITCAST] = run_cast,
    [OP_PTRTOINT] = run_copy,
    [OP_INTTOPTR] = run_copy,
    [OP_ADDPTR] = run_memory,
    [OP_HINT] = run_copy,
    [OP_SPLAT] = run_shape,
    [OP_BROADCAST] = run_shape,
    [OP_EXPAND_DIMS] = run_copy,
    [OP_RESHAPE] = run_copy,
    [OP_TRANS] = run_shape,
    [OP_JOIN] = run_shape,
    [OP_SPLIT] = run_shape,
    [OP_CAT] = run_shape,
    [OP_GATHER] = run_gather,
    [OP_TOPK] = run_topk,
    [OP_HISTOGRAM] = run_histogram,
    [OP_CONVERT_LAYOUT] = run_copy,
    [OP_LOAD] = run_memory,
    [OP_STORE] = run_memory,
    [OP_ATOMIC_RMW] = run_memory,
    [OP_ATOMIC_CAS] = run_memory,
    [OP_MAKE_BLOCK_PTR] = run_block,
    [OP_ADVANCE] = run_block,
    [OP_BLOCK_LOAD] = run_block,
    [OP_BLOCK_STORE] = run_block,
    [OP_MAKE_DESC] = run_block,
    [OP_DESC_LOAD] = run_block,
    [OP_DESC_STORE] = run_block,
    [OP_DESC_ATOMIC] = run_block,
    [OP_DESC_GATHER] = run_block,
    [OP_DESC_SCATTER] = run_block,
    [OP_DOT] = run_dot,
    [OP_REDUCE] = run_combine,
    [OP_SCAN] = run_combine,
    [OP_FOR] = run_control,
    [OP_WHILE] = run_control,
    [OP_IF] = run_control,
    [OP_YIELD] = run_nothing,
    [OP_CONDITION] = run_nothing,
    [OP_RETURN] = run_nothing,
    [OP_GRID_WAIT] = run_nothing,
    [OP_LAUNCH_DEPENDENTS] = run_nothing,
    [OP_BARRIER] = run_nothing,
    [OP_PRINT] = run_nothing,
    [OP_ASSUME] = run_assert,
    [OP_ASSERT] = run_assert,
};

bool
machine_op(Machine *m, const Op *op)
{
    int64_t n = op->nresult ? type_numel(op->results[0].type) : 0;
    RunFn *run = special[op->kind];
    if (!machine_count(m, op, m->lanes ? m->lanes : n))
        return false;
    if (!run && op_is(op, T_ELEMENTWISE) && op->noperand) {
        run = type_is_float(op_operand(op, 0)->type) ? run_float : run_integer;
    }
    if (!run)
        return machine_stop(m, INTERP_UNSUPPORTED, op, "not known to the interpreter");
    return run(m, op);
}

bool
machine_region(Machine *m, const Region *r)
{
    for (const Op *op = r->first; op; op = op->next)
        if (!machine_op(m, op))
            return false;
    return true;
}

/* ---- a launch */

static bool
set_arguments(Machine *m)
{
    const Region *body = m->f->body;
    if (m->narg != body->narg)
        return machine_stop(m, INTERP_UNSUPPORTED, NULL, "%d arguments for %d parameters",
                            m->narg, body->narg);
    for (int i = 0; i < m->narg; i++) {
        const Type *t = body->args[i]->type;
        uint64_t *cell = machine_write(m, body->args[i], 1);
        if (!cell)
            return false;
        if (t->kind == TY_PTR)
            *cell = memory_address(m, i);
        else if (t->kind == TY_SCALAR && scalar_is_float(t->scalar))
            *cell = format_encode(t->scalar, m->args[i].f, false);
        else if (t->kind == TY_SCALAR)
            *cell = (uint64_t)int_wrap(t->scalar, (uint64_t)m->args[i].i);
        else
            return machine_stop(m, INTERP_UNSUPPORTED, NULL,
                                "parameter '%s' is neither a pointer nor a scalar",
                                m->f->params[i].name);
    }
    return true;
}

static bool
run_grid(Machine *m, int64_t programs)
{
    int64_t n = m->grid[0] * m->grid[1] * m->grid[2];
    int64_t count = programs > 0 && programs < n ? programs : n;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = count == n || count == 1 ? i : i * (n - 1) / (count - 1);
        m->program[0] = at % m->grid[0];
        m->program[1] = at / m->grid[0] % m->grid[1];
        m->program[2] = at / m->grid[0] / m->grid[1];
        if (!machine_region(m, m->f->body))
            return false;
    }
    return true;
}

InterpStatus
interp_run(const Func *f, const InterpArg *args, int narg, const int64_t grid[3],
           const InterpOptions *options, char *message, int size)
{
    Machine m = {
        .f = f,
        .args = args,
        .narg = narg,
        .nslot = f->next_id + 1,
        .max_steps = options ? options->max_steps : 0,
        .undefined = options ? options->undefined : 0,
        .message = message,
        .size = size,
    };
    memcpy(m.grid, grid, sizeof m.grid);
    if (size > 0)
        message[0] = '\0';
    m.slots = calloc(m.nslot, sizeof *m.slots);
    if (!m.slots)
        machine_stop(&m, INTERP_LIMIT, NULL, "out of memory");
    else if (set_arguments(&m))
        run_grid(&m, options ? options->programs : 0);
    for (uint32_t i = 0; m.slots && i < m.nslot; i++)
        free(m.slots[i].cell);
    for (int i = 0; i < SPARE; i++) {
        free(m.spare[i].cell);
        free(m.real[i].cell);
    }
    free(m.slots);
    return m.status;
}

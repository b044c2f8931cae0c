/* Memory: every active lane of an access must lie in one of the buffers among the
   arguments. Lanes go in row-major order; of lanes that store to one place the last wins,
   and atomics are done in order. */
#include "tests/interp/machine.h"

#include <math.h>
#include <string.h>

int
memory_bytes(const Type *elem)
{
    if (elem->kind == TY_PTR)
        return 8;
    int bits = scalar_bits(elem->scalar);
    return bits < 8 ? 1 : bits / 8;
}

static int buffer_of(const Machine *m, uint64_t address);

/* Bytes are bytes: the hosts are little-endian. */
uint64_t
memory_get(const Type *elem, const void *p)
{
    uint64_t cell = 0;
    memcpy(&cell, p, (size_t)memory_bytes(elem));
    if (elem->kind == TY_PTR || scalar_is_float(elem->scalar))
        return cell;
    return elem->scalar == SK_I1 ? cell != 0 : (uint64_t)int_wrap(elem->scalar, cell);
}

void
memory_put(const Machine *m, const Type *elem, void *p, uint64_t cell)
{
    int i = elem->kind == TY_PTR ? buffer_of(m, cell) : -1;
    if (i >= 0) /* as the host knows it */
        cell += (uint64_t)(uintptr_t)m->args[i].data - memory_address(m, i);
    memcpy(p, &cell, (size_t)memory_bytes(elem));
}

/* ---- addresses

   Each buffer gets a range of addresses of its own, far from all others, so that what is
   just behind one is never in another. Addresses that the host left in memory, for
   pointers to pointers, are found by looking at all buffers. */

enum { RANGE = 40 };

uint64_t
memory_address(const Machine *m, int i)
{
    uint64_t host = (uint64_t)(uintptr_t)m->args[i].data;
    return host ? (uint64_t)(i + 1) << RANGE | (host & 0xffff) : 0;
}

/* The buffer whose range an address is in or next to, or -1. */
static int
buffer_of(const Machine *m, uint64_t address)
{
    uint64_t half = (uint64_t)1 << (RANGE - 1);
    uint64_t i = (address + half) >> RANGE;
    return i >= 1 && i <= (uint64_t)m->narg ? (int)i - 1 : -1;
}

static void *
host_place(const Machine *m, uint64_t address, int bytes)
{
    for (int i = 0; i < m->narg; i++) {
        uint64_t from = address - (uint64_t)(uintptr_t)m->args[i].data;
        if (m->f->body->args[i]->type->kind == TY_PTR && m->args[i].data &&
            from < m->args[i].bytes && m->args[i].bytes - from >= (uint64_t)bytes)
            return (unsigned char *)m->args[i].data + from;
    }
    return NULL;
}

static void
outside(Machine *m, const Op *op, const Type *t, int64_t lane, uint64_t address,
        int bytes, int buffer)
{
    char where[80];
    lane_text(t, lane, where, sizeof where);
    if (buffer < 0) {
        machine_stop(m, INTERP_BOUNDS, op, "lane %s: %d bytes at 0x%llx, far from every "
                     "buffer", where, bytes, (unsigned long long)address);
        return;
    }
    const InterpArg *a = &m->args[buffer];
    int64_t from = (int64_t)(address - memory_address(m, buffer));
    machine_stop(m, INTERP_BOUNDS, op, "lane %s: %d bytes at offset %lld of '%s', which "
                 "has %llu", where, bytes, (long long)from, m->f->params[buffer].name,
                 (unsigned long long)a->bytes);
}

void *
memory_at(Machine *m, const Op *op, const Type *t, int64_t lane, uint64_t address,
          int bytes)
{
    int i = buffer_of(m, address);
    if (i >= 0 && m->args[i].data) {
        const InterpArg *a = &m->args[i];
        uint64_t from = address - memory_address(m, i);
        if (from < a->bytes && a->bytes - from >= (uint64_t)bytes)
            return (unsigned char *)a->data + from;
    }
    void *p = host_place(m, address, bytes);
    if (!p)
        outside(m, op, t, lane, address, bytes, i);
    return p;
}

/* ---- atomics */

static double
combined(const char *rmw, double x, double y)
{
    if (!strcmp(rmw, "fadd"))
        return x + y;
    return !strcmp(rmw, "fmax") ? fmax(x, y) : fmin(x, y);
}

bool
memory_rmw(Machine *m, const Op *op, const Type *elem, void *p, uint64_t cell,
           uint64_t *old)
{
    const char *rmw = attr_str(&op->attrs, ATTR_RMW);
    ScalarKind k = elem->kind == TY_PTR ? SK_I64 : elem->scalar;
    uint64_t x = *old = memory_get(elem, p), r;
    int64_t sx, sy;
    uint64_t ux, uy;
    if (!strcmp(rmw, "xchg")) {
        r = cell;
    } else if (scalar_is_float(k)) {
        if (strcmp(rmw, "fadd") && strcmp(rmw, "fmax") && strcmp(rmw, "fmin"))
            return machine_stop(m, INTERP_UNSUPPORTED, op, "'%s' of floats", rmw);
        double a = format_decode(k, x), b = format_decode(k, cell);
        a = combined(rmw, a, b);
        format_write(m, k, &a, &r, 1);
    } else {
        sx = int_signed(k, x), sy = int_signed(k, cell);
        ux = int_unsigned(k, x), uy = int_unsigned(k, cell);
        if (!strcmp(rmw, "add"))
            r = x + cell;
        else if (!strcmp(rmw, "and"))
            r = x & cell;
        else if (!strcmp(rmw, "or"))
            r = x | cell;
        else if (!strcmp(rmw, "xor"))
            r = x ^ cell;
        else if (!strcmp(rmw, "smax") || !strcmp(rmw, "smin"))
            r = (sx > sy) == (rmw[2] == 'a') ? x : cell;
        else if (!strcmp(rmw, "umax") || !strcmp(rmw, "umin"))
            r = (ux > uy) == (rmw[2] == 'a') ? x : cell;
        else
            return machine_stop(m, INTERP_UNSUPPORTED, op, "'%s' of integers", rmw);
    }
    memory_put(m, elem, p, r);
    return true;
}

static bool
run_atomic(Machine *m, const Op *op)
{
    bool cas = op->kind == OP_ATOMIC_CAS;
    const Type *pt = op_operand(op, 0)->type, *elem = type_elem(pt)->elem;
    int64_t n = type_numel(pt);
    const uint64_t *ptr = machine_slot(m, op_operand(op, 0))->cell;
    const uint64_t *x = machine_slot(m, op_operand(op, 1))->cell, *y = NULL;
    uint64_t *old = machine_write(m, &op->results[0], n);
    if (op->noperand > 2)
        y = machine_slot(m, op_operand(op, 2))->cell;
    for (int64_t i = 0; old && i < n; i++) {
        old[i] = 0;
        if (!cas && y && !(y[i] & 1))
            continue;
        void *p = memory_at(m, op, pt, i, ptr[i], memory_bytes(elem));
        if (!p)
            return false;
        if (!cas) {
            if (!memory_rmw(m, op, elem, p, x[i], &old[i]))
                return false;
            continue;
        }
        old[i] = memory_get(elem, p);
        if (old[i] == x[i])
            memory_put(m, elem, p, y[i]);
    }
    return old != NULL;
}

/* ---- loads and stores */

static bool
run_load(Machine *m, const Op *op)
{
    const Type *pt = op_operand(op, 0)->type, *elem = type_elem(pt)->elem;
    int64_t n = type_numel(pt);
    int bytes = memory_bytes(elem);
    const uint64_t *ptr = machine_slot(m, op_operand(op, 0))->cell;
    const uint64_t *mask = NULL, *other = NULL;
    uint64_t *out = machine_write(m, &op->results[0], n);
    if (op->noperand > 1)
        mask = machine_slot(m, op_operand(op, 1))->cell;
    if (op->noperand > 2)
        other = machine_slot(m, op_operand(op, 2))->cell;
    for (int64_t i = 0; out && i < n; i++) {
        if (mask && !(mask[i] & 1)) {
            out[i] = other ? other[i] : 0;
            continue;
        }
        void *p = memory_at(m, op, pt, i, ptr[i], bytes);
        if (!p)
            return false;
        out[i] = memory_get(elem, p);
    }
    return out != NULL;
}

static bool
run_store(Machine *m, const Op *op)
{
    const Type *pt = op_operand(op, 0)->type, *elem = type_elem(pt)->elem;
    int64_t n = type_numel(pt);
    int bytes = memory_bytes(elem);
    const uint64_t *ptr = machine_slot(m, op_operand(op, 0))->cell;
    const uint64_t *x = machine_slot(m, op_operand(op, 1))->cell, *mask = NULL;
    if (op->noperand > 2)
        mask = machine_slot(m, op_operand(op, 2))->cell;
    if (!machine_count(m, op, n))
        return false;
    for (int64_t i = 0; i < n; i++) {
        if (mask && !(mask[i] & 1))
            continue;
        void *p = memory_at(m, op, pt, i, ptr[i], bytes);
        if (!p)
            return false;
        memory_put(m, elem, p, x[i]);
    }
    return true;
}

/* Offsets are signed and in elements; addresses wrap. */
static bool
run_addptr(Machine *m, const Op *op)
{
    int64_t n = machine_lanes(m, op);
    uint64_t bytes = (uint64_t)memory_bytes(type_elem(op->results[0].type)->elem);
    const uint64_t *p = machine_read(m, op_operand(op, 0), n, 0);
    const uint64_t *by = machine_read(m, op_operand(op, 1), n, 1);
    uint64_t *out = machine_write(m, &op->results[0], n);
    for (int64_t i = 0; p && by && out && i < n; i++)
        out[i] = p[i] + by[i] * bytes;
    return p && by && out;
}

bool
run_memory(Machine *m, const Op *op)
{
    switch ((int)op->kind) {
    case OP_ADDPTR: return run_addptr(m, op);
    case OP_LOAD: return run_load(m, op);
    case OP_STORE: return run_store(m, op);
    default: return run_atomic(m, op);
    }
}

/* Loads, stores and atomics, in every space. Global memory is the host's and is checked
   against the ranges of the launch; shared memory is bytes of the block, whose accesses
   race.c follows; local memory is bytes of a thread. */
#include "tests/sim/machine.h"
#include "tests/sim/number.h"

#include <string.h>

unsigned char *
global_bytes(Warp *w, const Insn *i, uint64_t a, uint32_t bytes, bool write)
{
    Block *b = w->b;
    const SimLaunch *q = b->launch;
    for (int k = 0; k < q->nrange; k++) {
        int r = (b->range_hit + k) % q->nrange;
        uint64_t base = (uint64_t)(uintptr_t)q->ranges[r].data;
        if (a >= base && a - base + bytes <= q->ranges[r].bytes) {
            b->range_hit = r;
            return (unsigned char *)(uintptr_t)a;
        }
    }
    for (int k = 0; k < b->module->nglobal; k++) {
        const Global *g = &b->module->global[k];
        uint64_t base = (uint64_t)(uintptr_t)g->data;
        if (!(write && g->constant) && a >= base && a - base + bytes <= g->bytes)
            return (unsigned char *)(uintptr_t)a;
    }
    if (!q->nrange && a > 4096)
        return (unsigned char *)(uintptr_t)a;
    sim_fail(w, i, SIM_MEMORY, "%u bytes at 0x%llx are outside of every buffer", bytes,
             (unsigned long long)a);
    return NULL;
}

static bool
misaligned(Warp *w, const Insn *i, uint64_t a, uint32_t bytes)
{
    if (a % bytes == 0)
        return false;
    sim_fail(w, i, SIM_MEMORY, "%u bytes at 0x%llx are not aligned", bytes,
             (unsigned long long)a);
    return true;
}

/* Addresses of all lanes; of shared memory those within its window. The space that the
   first lane is in; others must be in the same. */
static Space
addresses(Warp *w, const Insn *i, uint32_t mask, uint64_t *a)
{
    Space s = (Space)i->space;
    if (i->flags & WIDE_DST) /* a register of 64 bits holds the address */
        EACH(mask, a[l] = R64(w, i->a)[l] + (uint64_t)i->imm);
    else
        EACH(mask, a[l] = (uint32_t)(R32(w, i->a)[l] + (uint32_t)i->imm));
    if (s == GENERIC) {
        uint64_t window = WINDOW(a[__builtin_ctz(mask)]);
        s = window == 1 ? SHARED : window == 2 ? LOCAL : GLOBAL;
    }
    if (s != GLOBAL)
        EACH(mask, a[l] = (uint32_t)a[l]);
    return s;
}

static bool
shared_inside(Warp *w, const Insn *i, uint32_t mask, const uint64_t *a, uint32_t bytes,
              uint32_t *out)
{
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        if (misaligned(w, i, a[l], bytes))
            return false;
        if (!shared_holds(w->b, a[l], bytes)) {
            sim_fail(w, i, SIM_MEMORY, "lane %d: shared address %lld is not in 0..%lld",
                     l,
                     (long long)a[l] - SHARED_BASE,
                     (long long)w->b->shared_top - SHARED_BASE);
            return false;
        }
        out[l] = (uint32_t)a[l];
    }
    return true;
}

/* Where lane l's bytes lie; NULL after an error. */
static unsigned char *
place(Warp *w, const Insn *i, Space s, uint64_t a, uint32_t bytes, int l, bool write)
{
    if (s == SHARED)
        return w->b->shared + a;
    if (misaligned(w, i, a, bytes))
        return NULL;
    if (s == GLOBAL)
        return global_bytes(w, i, a, bytes, write);
    if (s == PARAM && a + bytes <= (uint64_t)w->b->code->param_size && !write)
        return w->b->param + a;
    uint32_t size = s == LOCAL ? w->b->code->local_bytes : 0;
    if (a + bytes > size) {
        sim_fail(w, i, SIM_MEMORY, "outside of local memory or of the parameters");
        return NULL;
    }
    return w->local + (size_t)l * size + a;
}

static bool
may_touch(Warp *w, const Insn *i, Space s)
{
    if (s != GLOBAL || w->griddep || !w->b->code->has_griddep)
        return true;
    sim_fail(w, i, SIM_ASYNC, "memory is touched before griddepcontrol.wait");
    return false;
}

/* The lanes' addresses, which may be touched so: what is shared is inside and in no race.
   False after an error. */
static bool
reach(Warp *w, const Insn *i, uint32_t mask, Access how, Space *s, uint64_t *a)
{
    uint32_t at[LANES], total = (uint32_t)i->bytes * i->n;
    *s = addresses(w, i, mask, a);
    if (!may_touch(w, i, *s))
        return false;
    if (*s != SHARED)
        return true;
    if (!shared_inside(w, i, mask, a, total, at))
        return false;
    race_access(w, i, mask, at, total, how);
    return !w->b->status;
}

static uint64_t
sign_extend(uint64_t v, int bytes)
{
    int shift = 64 - 8 * bytes;
    return (uint64_t)((int64_t)(v << shift) >> shift);
}

/* r: n results, then the address; sub: bytes of a result's register; */
void
op_load(Warp *w, const Insn *i, uint32_t mask)
{
    uint64_t a[LANES];
    uint32_t total = (uint32_t)i->bytes * i->n;
    Space s;
    if (!reach(w, i, mask, READ, &s, a))
        return;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        const unsigned char *p = place(w, i, s, a[l], total, l, false);
        if (!p)
            return;
        for (int k = 0; k < i->n; k++, p += i->bytes) {
            if (i->bytes == 4 && i->sub == 4) {
                memcpy(&R32(w, i->r[k])[l], p, 4);
                continue;
            }
            uint64_t v = 0;
            memcpy(&v, p, i->bytes);
            if (i->flags & SIGNED)
                v = sign_extend(v, i->bytes);
            if (i->sub == 8)
                R64(w, i->r[k])[l] = v;
            else
                R32(w, i->r[k])[l] = i->sub == 2 ? (uint32_t)v & 0xffff : (uint32_t)v;
        }
    }
}

void
op_load_param(Warp *w, const Insn *i, uint32_t mask)
{
    for (int k = 0; k < i->n; k++) {
        uint64_t v = 0;
        memcpy(&v, w->b->param + i->imm + k * i->bytes, i->bytes);
        if (i->flags & SIGNED)
            v = sign_extend(v, i->bytes);
        if (i->sub == 8)
            EACH(mask, R64(w, i->r[k])[l] = v);
        else
            EACH(mask, R32(w, i->r[k])[l] = i->sub == 2 ? (uint32_t)v & 0xffff
                                                        : (uint32_t)v);
    }
}

/* r: the address, then n values. */
void
op_store(Warp *w, const Insn *i, uint32_t mask)
{
    uint64_t a[LANES];
    uint32_t total = (uint32_t)i->bytes * i->n;
    Space s;
    if (!reach(w, i, mask, WRITE, &s, a))
        return;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        unsigned char *p = place(w, i, s, a[l], total, l, true);
        if (!p)
            return;
        for (int k = 0; k < i->n; k++, p += i->bytes) {
            uint64_t v = i->sub == 8 ? R64(w, i->r[1 + k])[l] : R32(w, i->r[1 + k])[l];
            memcpy(p, &v, i->bytes);
        }
    }
    w->b->progress++;
}

/* ---- atomics */

enum {
    A_ADD = 1, A_MIN, A_MAX, A_AND, A_OR, A_XOR, A_EXCH, A_CAS, A_INC, A_DEC,
    T_U32 = 0, T_S32, T_U64, T_S64, T_F16, T_BF16, T_F32, T_F64, T_F16X2, T_BF16X2
};

/* Operation and type in one number, not 0; -1: unknown. */
int
atomic_op(const char *name, const char *type)
{
    static const char *const ops[] = {"",    "add",  "min", "max", "and", "or",
                                      "xor", "exch", "cas", "inc", "dec"};
    static const struct {
        const char *name;
        int type;
    } types[] = {{"u32", T_U32},   {"b32", T_U32}, {"s32", T_S32}, {"u64", T_U64},
                 {"b64", T_U64},   {"s64", T_S64}, {"f16", T_F16}, {"bf16", T_BF16},
                 {"f32", T_F32},   {"f64", T_F64}, {"f16x2", T_F16X2},
                 {"bf16x2", T_BF16X2}, {"b16", T_U32}};
    for (int o = 1; o < 11; o++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            if (strcmp(name, ops[o]) == 0 && strcmp(type, types[t].name) == 0)
                return o << 4 | types[t].type;
    return -1;
}

static float
pick(int op, float x, float y)
{
    if (op == A_ADD)
        return x + y;
    if (x != x || y != y)
        return x != x ? y : x;
    return (op == A_MIN) == (x < y) ? x : y;
}

static uint64_t
reduce_float(int op, int type, uint64_t was, uint64_t with)
{
    uint32_t a = (uint32_t)was, b = (uint32_t)with;
    switch (type) {
    case T_F32: return f32_bits(pick(op, f32_of(a), f32_of(b)));
    case T_F64: return f64_bits(f64_of(was) + f64_of(with));
    case T_F16: return f16_bits(pick(op, f16_of(a & 0xffff), f16_of(b & 0xffff)));
    case T_BF16: return bf16_bits(pick(op, bf16_of(a & 0xffff), bf16_of(b & 0xffff)));
    default:
        type = type == T_F16X2 ? T_F16 : T_BF16;
        return reduce_float(op, type, a >> 16, b >> 16) << 16 |
               reduce_float(op, type, a & 0xffff, b & 0xffff);
    }
}

uint64_t
reduce_element(int code, uint64_t was, uint64_t with)
{
    int op = code >> 4, type = code & 15;
    bool sign = type == T_S32 || type == T_S64;
    if (type >= T_F16 && op <= A_MAX)
        return reduce_float(op, type, was, with);
    int64_t a = (int64_t)was, b = (int64_t)with;
    if (type == T_S32)
        a = (int32_t)was, b = (int32_t)with;
    switch (op) {
    case A_ADD: return was + with;
    case A_MIN: return sign ? (a < b ? was : with) : was < with ? was : with;
    case A_MAX: return sign ? (a > b ? was : with) : was > with ? was : with;
    case A_AND: return was & with;
    case A_OR: return was | with;
    case A_XOR: return was ^ with;
    case A_INC: return was >= with ? 0 : was + 1;
    case A_DEC: return was == 0 || was > with ? with : was - 1;
    default: return with;
    }
}

/* r: n results unless it is a reduction (READ_ONLY_WAIT), the address, n values, and of
   cas the new one. Lanes come in a random order. */
void
op_atomic(Warp *w, const Insn *i, uint32_t mask)
{
    uint64_t a[LANES];
    uint32_t total = (uint32_t)i->bytes * i->n;
    Space s;
    if (!reach(w, i, mask, ATOMIC, &s, a))
        return;
    int turn = w->b->serial ? 0 : (int)sim_random(w->b, LANES);
    const uint32_t *from = i->r + i->nd + 1;
    for (int k = 0; k < LANES; k++) {
        int l = (k + turn) % LANES;
        if (!(mask >> l & 1))
            continue;
        unsigned char *p = place(w, i, s, a[l], total, l, true);
        if (!p)
            return;
        for (int e = 0; e < i->n; e++, p += i->bytes) {
            uint64_t was = 0, v = i->bytes == 8 ? R64(w, from[e])[l] : R32(w, from[e])[l];
            memcpy(&was, p, i->bytes);
            uint64_t next = reduce_element(i->sub, was, v);
            if (i->sub >> 4 == A_CAS)
                next = was != (i->bytes == 8 ? v : v & (~0u >> (32 - 8 * i->bytes))) ? was
                       : i->bytes == 8 ? R64(w, from[1])[l]
                                       : R32(w, from[1])[l];
            memcpy(p, &next, i->bytes);
            if (i->nd && i->bytes == 8)
                R64(w, i->r[e])[l] = was;
            else if (i->nd)
                R32(w, i->r[e])[l] = (uint32_t)was;
        }
    }
    w->b->progress++;
}

/* ---- between spaces: imm is the window */

/* A parameter's address for everybody. */
void
op_from_param(Warp *w, const Insn *i, uint32_t mask)
{
    uint64_t base = (uint64_t)(uintptr_t)w->b->param;
    EACH(mask, R64(w, i->d)[l] = base + (uint32_t)R64(w, i->a)[l]);
}

void
op_to_window(Warp *w, const Insn *i, uint32_t mask)
{
    bool narrow = !(i->flags & WIDE_DST);
    if (i->sub) /* to the space: the low word */
        EACH(mask, R64(w, i->d)[l] = (uint32_t)R64(w, i->a)[l]);
    else if (narrow)
        EACH(mask, R64(w, i->d)[l] = R32(w, i->a)[l] | (uint64_t)i->imm);
    else
        EACH(mask, R64(w, i->d)[l] = R64(w, i->a)[l] | (uint64_t)i->imm);
}

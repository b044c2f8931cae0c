/* Decoding of what touches memory: loads, stores, atomics, copies, barriers, fences. */
#include "tests/sim/decode.h"

#include <stdio.h>
#include <stdlib.h>

static Space
space_of(const Op *o)
{
    for (int k = 1; k < o->n; k++) {
        const char *s = o->part[k];
        if (strncmp(s, "shared", 6) == 0)
            return SHARED;
        if (strcmp(s, "global") == 0 || strcmp(s, "const") == 0)
            return GLOBAL;
        if (strcmp(s, "local") == 0)
            return LOCAL;
        if (strncmp(s, "param", 5) == 0)
            return PARAM;
    }
    return GENERIC;
}

static int
vector_of(const Op *o)
{
    return has(o, "v2") ? 2 : has(o, "v4") ? 4 : has(o, "v8") ? 8 : 1;
}

/* Shared memory is followed in pieces as small as this. */
static void
note_shared(Parser *p, Space s, int bytes)
{
    Code *c = parse_code(p);
    if ((s == SHARED || s == GENERIC) && bytes < c->cell)
        c->cell = bytes;
}

/* Of a call: a variable of parameter space that is a register. */
static bool
variable(const char *s, Parser *p, Reg *out)
{
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(s + 1, "]+"), s + 1);
    return *s == '[' && *name != '%' && parse_register(p, name, out);
}

static bool
move(Parser *p, const char *to, const char *from, int bits)
{
    char name[8], args[300];
    snprintf(name, sizeof name, "mov.b%d", bits);
    snprintf(args, sizeof args, "%s, %s", to, from);
    return decode(p, name, args);
}

bool
decode_load(Parser *p, const Op *o)
{
    uint32_t r[MAX_LIST];
    int bits = 0, bytes = type_bytes(last(o)), n;
    Space s = space_of(o);
    Address a;
    Reg reg;
    if (o->count < 2 || bytes < 1)
        return parse_fail(p, "'%s' with %d operands", o->full, o->count);
    if (s == PARAM && variable(o->arg[1], p, &reg)) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(o->arg[1] + 1, "]+"),
                 o->arg[1] + 1);
        return move(p, o->arg[0], name, reg.bits);
    }
    n = list(p, o->arg[0], 32, r, &bits);
    if (!n || n != vector_of(o))
        return parse_fail(p, "'%s' of %d registers", o->full, n);
    if (!memory(p, o->arg[1], &a))
        return false;
    if (bits == 0)
        bits = bytes == 8 ? 64 : 32;
    r[n] = a.at;
    Insn *i = emit(p, a.is_param ? op_load_param : op_load, r, n, a.is_param ? 0 : 1);
    i->space = (uint8_t)s;
    i->bytes = (uint8_t)bytes;
    i->n = (uint8_t)n;
    i->sub = (uint16_t)(bits / 8);
    i->imm = a.offset;
    i->flags = (uint16_t)((last(o)[0] == 's' ? SIGNED : 0) | (a.wide ? WIDE_DST : 0));
    note_shared(p, s, bytes * n);
    return true;
}

/* A register of 64 bits may be stored as fewer: its low word. */
static bool
narrow(Parser *p, char *values, int bytes, int n, uint32_t *r)
{
    char text[2048], *part[MAX_LIST];
    uint32_t v[2];
    uint16_t flags = TRANSPOSE;
    Reg reg;
    size_t open = *values == '{';
    snprintf(text, sizeof text, "%.*s", (int)(strlen(values) - 2 * open), values + open);
    if (bytes == 8 || strlen(values) >= sizeof text || split_operands(text, part, n) != n)
        return bytes == 8;
    for (int k = 0; k < n; k++)
        if (parse_register(p, part[k], &reg) && reg.bits == 64) {
            v[0] = parse_fresh(p, 32);
            v[1] = reg.at;
            Insn *i = emit(p, op_cvt, v, 1, 1);
            i->sub = (uint16_t)cvt_decode("cvt.u32.u64", &flags);
            i->flags = flags;
            r[k] = v[0];
        }
    return true;
}

bool
decode_store(Parser *p, const Op *o)
{
    uint32_t r[MAX_LIST];
    int bits = 0, bytes = type_bytes(last(o)), n;
    Space s = space_of(o);
    Address a;
    Reg reg;
    char values[2048];
    if (o->count < 2 || bytes < 1)
        return parse_fail(p, "'%s' with %d operands", o->full, o->count);
    snprintf(values, sizeof values, "%s", o->arg[1]);
    if (s == PARAM && variable(o->arg[0], p, &reg)) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(o->arg[0] + 1, "]+"),
                 o->arg[0] + 1);
        return move(p, name, o->arg[1], reg.bits);
    }
    n = list(p, o->arg[1], bytes == 8 ? 64 : 32, r + 1, &bits);
    if (!n || n != vector_of(o))
        return parse_fail(p, "'%s' of %d registers", o->full, n);
    if (!memory(p, o->arg[0], &a) || a.is_param || !narrow(p, values, bytes, n, r + 1))
        return parse_fail(p, "a store to a parameter");
    r[0] = a.at;
    Insn *i = emit(p, op_store, r, 0, n + 1);
    i->space = (uint8_t)s;
    i->bytes = (uint8_t)bytes;
    i->n = (uint8_t)n;
    i->sub = bytes == 8 ? 8 : 4;
    i->imm = a.offset;
    i->flags = a.wide ? WIDE_DST : 0;
    note_shared(p, s, bytes * n);
    return true;
}

bool
decode_atomic(Parser *p, const Op *o)
{
    bool red = strcmp(o->part[0], "red") == 0;
    int bytes = type_bytes(last(o)), n = vector_of(o), op = -1, at = red ? 0 : 1;
    uint32_t r[MAX_LIST];
    Space s = space_of(o);
    Address a;
    for (int k = 1; k < o->n && op < 0; k++)
        op = atomic_op(o->part[k], last(o));
    int reg_bits = bytes == 8 ? 64 : bytes == 2 ? 16 : 32, nd = red ? 0 : n;
    if (op < 0 || o->count < at + 2)
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    if (!red && list(p, o->arg[0], reg_bits, r, NULL) != n)
        return parse_fail(p, "'%s' of too few registers", o->full);
    if (!memory(p, o->arg[at], &a) || a.is_param)
        return parse_fail(p, "an atomic on a parameter");
    r[nd] = a.at;
    if (list(p, o->arg[at + 1], reg_bits, r + nd + 1, NULL) != n)
        return parse_fail(p, "'%s' of too few values", o->full);
    bool cas = op >> 4 == 8;
    if (cas && (n > 1 || o->count < at + 3 ||
                !(r[nd + 2] = operand(p, o->arg[at + 2], reg_bits))))
        return parse_fail(p, "'%s' of too few values", o->full);
    Insn *i = emit(p, op_atomic, r, nd, 1 + n + cas);
    i->a = a.at;
    i->space = (uint8_t)s;
    i->bytes = (uint8_t)bytes;
    i->n = (uint8_t)n;
    i->sub = (uint16_t)op;
    i->imm = a.offset;
    i->flags = a.wide ? WIDE_DST : 0;
    note_shared(p, s, bytes * n);
    return true;
}

/* ---------------------------------------------------------------- copies */

static bool
cp_async(Parser *p, const Op *o)
{
    Address to, from;
    uint32_t r[3];
    int bytes = o->count > 2 ? atoi(o->arg[2]) : 0;
    if (bytes != 4 && bytes != 8 && bytes != 16)
        return parse_fail(p, "'%s' of %d bytes", o->full, bytes);
    if (!plain_memory(p, o->arg[0], &to) || !plain_memory(p, o->arg[1], &from))
        return false;
    if (!from.wide)
        return parse_fail(p, "'%s' from an address of 32 bits", o->full);
    r[0] = to.at;
    r[1] = from.at;
    if (o->count > 3 && !(r[2] = operand(p, o->arg[3], 32)))
        return false;
    Insn *i = emit(p, op_cp_async, r, 0, o->count > 3 ? 3 : 2);
    i->bytes = (uint8_t)bytes;
    i->flags = to.wide ? WIDE_DST : 0;
    parse_code(p)->has_cp = true;
    note_shared(p, SHARED, bytes);
    return true;
}

static int
coordinates(Parser *p, char *s, Address *map, uint32_t *r)
{
    char *part[2];
    size_t n = strlen(s);
    char inner[512], base[140];
    if (n < 3 || n >= sizeof inner || s[0] != '[')
        return parse_fail(p, "'%s' is no map with coordinates", s);
    snprintf(inner, sizeof inner, "%.*s", (int)n - 2, s + 1);
    if (split_operands(inner, part, 2) != 2)
        return parse_fail(p, "'%s' is no map with coordinates", s);
    snprintf(base, sizeof base, "[%s]", part[0]);
    if (!plain_memory(p, base, map))
        return 0;
    return list(p, part[1], 32, r, NULL);
}

static bool
tma(Parser *p, const Op *o)
{
    static const char *const ops[] = {"", "add", "min", "max", "and", "or", "xor"};
    bool load = has(o, "mbarrier::complete_tx::bytes");
    Code *c = parse_code(p);
    Address shared, map, bar = {0};
    bool both = has(o, "multicast::cluster");
    uint32_t r[11];
    int n;
    if (o->count < (load ? 3 + both : 2))
        return parse_fail(p, "'%s' with %d operands", o->full, o->count);
    if ((both && !load) || has(o, "im2col"))
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    if (!plain_memory(p, o->arg[load ? 0 : 1], &shared) ||
        (load && !plain_memory(p, o->arg[2], &bar)) ||
        !(n = coordinates(p, o->arg[load ? 1 : 0], &map, r + (load ? 2 : 1))))
        return false;
    r[load ? 0 : n + 1] = shared.at;
    r[load ? 1 : 0] = map.at;
    if (load)
        r[n + 2] = bar.at;
    if (both && !(r[n + 3] = operand(p, o->arg[3], 16)))
        return false;
    if (!map.wide || bar.wide != (load && shared.wide))
        return parse_fail(p, "'%s' of addresses of these sizes", o->full);
    Insn *i =
        emit(p, load ? op_tma_load : op_tma_store, r, 0, load ? n + 3 + both : n + 2);
    i->n = (uint8_t)n;
    i->flags = shared.wide ? WIDE_DST : 0;
    i->sub = both;
    for (int k = 1; k < 7; k++)
        if (!load && has(o, ops[k]))
            i->sub = (uint16_t)k;
    c->has_tma |= load;
    c->has_bulk |= !load;
    return true;
}

/* tensormap.replace and .cp_fenceproxy. */
bool
decode_tensormap(Parser *p, const Op *o)
{
    static const struct {
        const char *name;
        int field, bits;
    } fields[] = {
        {"global_address", MAP_BASE, 64},     {"rank", MAP_RANK, 32},
        {"box_dim", MAP_BOX, 32},             {"global_dim", MAP_DIM, 32},
        {"element_stride", MAP_STEP, 32},     {"global_stride", MAP_STRIDE, 64},
        {"elemtype", MAP_TYPE, 32},           {"swizzle_mode", MAP_SWIZZLE, 32},
        {"fill_mode", MAP_FILL, 32},          {"interleave_layout", MAP_INTERLEAVE, 32},
    };
    const int n = (int)(sizeof fields / sizeof *fields);
    Address to, from;
    uint32_t r[2];
    int k = 0;
    if (has(o, "cp_fenceproxy")) {
        if (o->count != 3 || !has(o, "release") || !plain_memory(p, o->arg[0], &to) ||
            !plain_memory(p, o->arg[1], &from) || !to.wide || !from.wide ||
            atoi(o->arg[2]) != SIM_MAP_BYTES)
            return parse_fail(p, "'%s' with these operands", o->full);
        r[0] = to.at;
        r[1] = from.at;
        emit(p, op_map_publish, r, 0, 2);
        return true;
    }
    while (k < n && !has(o, fields[k].name))
        k++;
    if (k == n || !has(o, "replace") || o->count < 2 || space_of(o) != SHARED ||
        !plain_memory(p, o->arg[0], &to) ||
        !(r[1] = operand(p, o->arg[o->count - 1], fields[k].bits)))
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    r[0] = to.at;
    Insn *i = emit(p, op_map_replace, r, 0, 2);
    i->flags = to.wide ? WIDE_DST : 0;
    i->sub = (uint16_t)fields[k].field;
    i->imm = o->count > 2 ? atoi(o->arg[1]) : 0;
    return true;
}

bool
decode_cp(Parser *p, const Op *o)
{
    uint32_t none[1] = {0};
    bool bulk = has(o, "bulk");
    if (has(o, "tensor") && !has(o, "prefetch"))
        return tma(p, o);
    if (has(o, "prefetch"))
        return decode_quiet(p, o);
    if (bulk && !has(o, "commit_group") && !has(o, "wait_group"))
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    if (has(o, "commit_group")) {
        emit(p, bulk ? op_bulk_commit : op_cp_commit, none, 0, 0);
    } else if (has(o, "wait_group") || has(o, "wait_all")) {
        Insn *i = emit(p, bulk ? op_bulk_wait : op_cp_wait, none, 0, 0);
        i->imm = o->count ? atoi(o->arg[0]) : 0;
        i->sub = has(o, "wait_all");
    } else if (has(o, "mbarrier")) {
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    } else {
        return cp_async(p, o);
    }
    parse_code(p)->has_bulk |= bulk;
    return true;
}

/* ---------------------------------------------------------------- barriers, fences */

bool
decode_bar(Parser *p, const Op *o)
{
    uint32_t r[2];
    bool arrive = has(o, "arrive");
    if (has(o, "warp")) {
        if (!(r[0] = operand(p, o->arg[0], 32)))
            return false;
        emit(p, op_warp_sync, r, 0, 1);
        return true;
    }
    if (has(o, "cluster") && o->count == 0 && (arrive || has(o, "wait"))) {
        /* the wait stands behind the arrival, and does both */
        emit(p, arrive ? op_nothing : op_cluster_wait, r, 0, 0);
        return true;
    }
    if (has(o, "red") || has(o, "cluster") || (!arrive && !has(o, "sync")) ||
        o->count < 1)
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    if (!(r[0] = operand(p, o->arg[0], 32)) ||
        !(r[1] = o->count > 1 ? operand(p, o->arg[1], 32) : parse_const(p, 0, 32)))
        return false;
    emit(p, arrive ? op_bar_arrive : op_bar_sync, r, 0, 2);
    return true;
}

bool
decode_mapa(Parser *p, const Op *o)
{
    uint32_t r[3];
    if (o->count != 3 || !has(o, "shared::cluster") || !has(o, "u32"))
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    for (int k = 0; k < 3; k++)
        if (!(r[k] = operand(p, o->arg[k], 32)))
            return false;
    emit(p, op_mapa, r, 1, 2);
    return true;
}

bool
decode_mbarrier(Parser *p, const Op *o)
{
    static const struct {
        const char *name;
        Exec *fn;
        int address, more; /* its place among operands; operands behind it */
    } forms[] = {{"init", op_mbar_init, 0, 1},
                 {"inval", op_mbar_inval, 0, 0},
                 {"try_wait", op_mbar_wait, 1, 1},
                 {"test_wait", op_mbar_wait, 1, 1},
                 {"arrive", op_mbar_arrive, 1, 0}};
    Address a;
    uint32_t r[3] = {0};
    int k = 0, n = 0;
    while (k < 5 && strcmp(o->part[1], forms[k].name) != 0)
        k++;
    if (k == 5 || has(o, "noComplete"))
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    bool wait = forms[k].fn == op_mbar_wait, expect = has(o, "expect_tx");
    int at = forms[k].address, more = forms[k].more;
    if (wait && !has(o, "parity"))
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    if (k == 4)
        more = o->count > 2;
    if (o->count <= at + more || !plain_memory(p, o->arg[at], &a))
        return parse_fail(p, "'%s' with %d operands", o->full, o->count);
    if (wait && !(r[n++] = operand(p, o->arg[0], 1)))
        return false;
    if (k == 4 && strcmp(o->arg[0], "_") != 0)
        return parse_fail(p, "'%s' with a state", o->full);
    r[n++] = a.at;
    if (more && !(r[n++] = operand(p, o->arg[at + 1], 32)))
        return false;
    Insn *i = emit(p, forms[k].fn, r, wait, n - wait);
    i->flags = a.wide ? WIDE_DST : 0;
    i->sub = expect ? 1 : k == 4 && more ? 2 : 0;
    note_shared(p, SHARED, 8);
    return true;
}

/* What changes nothing here, or little. */
bool
decode_quiet(Parser *p, const Op *o)
{
    uint32_t none[1] = {0};
    Exec *fn = op_nothing;
    Code *c = parse_code(p);
    if (has(o, "tensormap::generic") && has(o, "acquire")) {
        Address at;
        if (o->count != 2 || !plain_memory(p, o->arg[0], &at) || !at.wide)
            return parse_fail(p, "'%s' with these operands", o->full);
        emit(p, op_map_acquire, &at.at, 0, 1);
        return true;
    }
    if (strcmp(o->part[0], "fence") == 0 && has(o, "proxy"))
        fn = has(o, "async") || has(o, "async::shared::cta") || has(o, "async::shared")
                 ? op_proxy_fence
                 : op_nothing;
    if (strcmp(o->part[0], "fence") == 0 && has(o, "async") && has(o, "global"))
        fn = op_nothing;
    if (strcmp(o->part[0], "fence") == 0 && has(o, "mbarrier_init"))
        fn = op_mbar_fence;
    if (strcmp(o->part[0], "griddepcontrol") == 0 && has(o, "wait")) {
        fn = op_griddep_wait;
        c->has_griddep = true;
    }
    Insn *i = emit(p, fn, none, 0, 0);
    if (strcmp(o->part[0], "setmaxnreg") == 0) {
        i->fn = op_setmaxnreg;
        i->sub = has(o, "inc");
        i->imm = o->count ? atoi(o->arg[0]) : 0;
    }
    return true;
}

bool
decode_policy(Parser *p, const Op *o)
{
    return o->count > 0 && move(p, o->arg[0], "0", 64);
}

/* Decoding of what the lanes of a warp do together: exchanges, votes, matrices, dots.
 */
#include "tests/sim/decode.h"
#include "tests/sim/products.h"

#include <stdio.h>
#include <stdlib.h>

/* "result|predicate": the places of both; how many there are. */
static int
results(Parser *p, char *s, uint32_t *r, int bits)
{
    char *bar = strchr(s, '|');
    if (bar)
        *bar = '\0';
    if (!(r[0] = operand(p, trim(s), bits)))
        return 0;
    if (!bar)
        return 1;
    return (r[1] = operand(p, trim(bar + 1), 1)) ? 2 : 0;
}

bool
decode_shfl(Parser *p, const Op *o)
{
    static const char *const kinds[] = {"bfly", "idx", "up", "down"};
    uint32_t r[6];
    int kind = 0, nd;
    while (kind < 4 && !has(o, kinds[kind]))
        kind++;
    if (kind == 4 || o->count != 5 || !has(o, "sync"))
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    if (!(nd = results(p, o->arg[0], r, 32)))
        return false;
    for (int k = 1; k < 5; k++)
        if (!(r[nd + k - 1] = operand(p, o->arg[k], 32)))
            return false;
    emit(p, op_shfl, r, nd, 4)->sub = (uint16_t)kind;
    return true;
}

static bool
vote(Parser *p, const Op *o)
{
    static const char *const kinds[] = {"all", "any", "uni", "ballot"};
    uint32_t r[3];
    int kind = 0;
    while (kind < 4 && !has(o, kinds[kind]))
        kind++;
    if (kind == 4 || o->count != 3)
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    bool not = o->arg[1][0] == '!';
    if (!(r[0] = operand(p, o->arg[0], kind == 3 ? 32 : 1)) ||
        !(r[1] = operand(p, o->arg[1] + not, 1)) || !(r[2] = operand(p, o->arg[2], 32)))
        return false;
    Insn *i = emit(p, op_vote, r, 1, 2);
    i->sub = (uint16_t)kind;
    i->flags = not ? READ_ONLY_WAIT : 0;
    return true;
}

bool
decode_vote(Parser *p, const Op *o)
{
    const char *name = o->part[0];
    uint32_t r[5];
    int nd;
    if (strcmp(name, "vote") == 0)
        return vote(p, o);
    if (strcmp(name, "activemask") == 0) {
        if (o->count != 1 || !(r[0] = operand(p, o->arg[0], 32)))
            return false;
        emit(p, op_activemask, r, 1, 0);
        return true;
    }
    if (o->count < 2 || !(nd = results(p, o->arg[0], r, 32)))
        return parse_fail(p, "'%s' with %d operands", o->full, o->count);
    if (strcmp(name, "elect") == 0) {
        if (!(r[nd] = operand(p, o->arg[1], 32)))
            return false;
        emit(p, op_elect, r, nd, 1);
        return true;
    }
    int bytes = type_bytes(last(o));
    if (o->count != 3 || !(r[nd] = operand(p, o->arg[1], bytes * 8)) ||
        !(r[nd + 1] = operand(p, o->arg[2], 32)))
        return parse_fail(p, "'%s' with %d operands", o->full, o->count);
    if (strcmp(name, "match") == 0) {
        Insn *i = emit(p, op_match, r, nd, 2);
        i->sub = has(o, "all");
        i->bytes = (uint8_t)bytes;
        return true;
    }
    int op = -1;
    for (int k = 1; k < o->n && op < 0; k++)
        op = atomic_op(o->part[k], last(o));
    if (op < 0)
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    emit(p, op_redux, r, nd, 2)->sub = (uint16_t)op;
    return true;
}

bool
decode_matrix(Parser *p, const Op *o)
{
    bool load = strcmp(o->part[0], "ldmatrix") == 0;
    int n = has(o, "x4") ? 4 : has(o, "x2") ? 2 : has(o, "x1") ? 1 : 0;
    uint32_t r[6];
    Address a;
    if (!n || o->count != 2 || !has(o, "m8n8") || strcmp(last(o), "b16") != 0)
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    if (list(p, o->arg[load ? 0 : 1], 32, load ? r : r + 1, NULL) != n)
        return parse_fail(p, "'%s' of too few registers", o->full);
    if (!memory(p, o->arg[load ? 1 : 0], &a) || a.is_param)
        return false;
    r[load ? n : 0] = a.at;
    Insn *i =
        emit(p, load ? op_ldmatrix : op_stmatrix, r, load ? n : 0, load ? 1 : n + 1);
    i->n = (uint8_t)n;
    i->imm = a.offset;
    i->flags = (uint16_t)((a.wide ? WIDE_DST : 0) | (has(o, "trans") ? TRANSPOSE : 0));
    return true;
}

/* m, n, k of "m16n8k16"; 0 if it is none */
static int
shape(const Op *o, int *m, int *n, int *k)
{
    for (int j = 1; j < o->n; j++)
        if (sscanf(o->part[j], "m%dn%dk%d", m, n, k) == 3)
            return j;
    return 0;
}

static bool
decode_mma_f64(Parser *p, const Op *o)
{
    static const int want[4] = {2, 1, 1, 2};
    uint32_t r[8];
    int got = 0;
    for (int j = 0; j < 4; j++) {
        if (strcmp(o->part[o->n - 4 + j], "f64") != 0 ||
            list(p, o->arg[j], 64, r + got, NULL) != want[j])
            return parse_fail(p, "the instruction '%s' is not known", o->full);
        got += want[j];
    }
    emit(p, op_mma_f64, r, 2, got - 2);
    return true;
}

bool
decode_mma(Parser *p, const Op *o)
{
    int m = 0, n = 0, k = 0, at = shape(o, &m, &n, &k), got = 0;
    uint32_t r[20];
    int kinds[4];
    if (at && o->n >= 5 && o->count == 4 && has(o, "row") && has(o, "col") && m == 8 &&
        n == 8 && k == 4)
        return decode_mma_f64(p, o);
    if (!at || o->n < 5 || o->count != 4 || !has(o, "row") || !has(o, "col") || m != 16 ||
        n != 8)
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    for (int j = 0; j < 4; j++)
        if ((kinds[j] = mma_kind(o->part[o->n - 4 + j])) < 0)
            return parse_fail(p, "the instruction '%s' is not known", o->full);
    int per = kinds[1] <= 1 ? 2 : kinds[1] == 2 ? 1 : 4, na = k / per / 2;
    int nc = kinds[0] == 0 ? 2 : 4, want[4] = {nc, na, na / 2, nc};
    if (kinds[0] != kinds[3] || na < 2 || na > 4)
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    for (int j = 0; j < 4; j++) {
        if (list(p, o->arg[j], 32, r + got, NULL) != want[j])
            return parse_fail(p, "'%s' of too few registers", o->full);
        got += want[j];
    }
    Insn *i = emit(p, op_mma, r, nc, got - nc);
    i->sub = (uint16_t)(kinds[1] | kinds[2] << 4 | kinds[0] << 8);
    i->imm = k;
    return true;
}

/* ---------------------------------------------------------------- wgmma */

static bool
wgmma_sync(Parser *p, const Op *o)
{
    uint32_t none[1] = {0};
    Exec *fn = has(o, "fence")          ? op_wgmma_fence
               : has(o, "commit_group") ? op_wgmma_commit
               : has(o, "wait_group")   ? op_wgmma_wait
                                        : NULL;
    if (!fn)
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    Insn *i = emit(p, fn, none, 0, 0);
    i->flags = IS_WGMMA;
    i->imm = o->count ? atoi(o->arg[0]) : 0;
    return true;
}

static bool
one(const char *s)
{
    return strcmp(s, "0") != 0;
}

bool
decode_wgmma(Parser *p, const Op *o)
{
    int m, n, k, at = shape(o, &m, &n, &k), nd, na = 1;
    uint32_t r[MAX_LIST];
    if (!has(o, "mma_async"))
        return wgmma_sync(p, o);
    int kind = at ? mma_kind(o->part[o->n - 2]) : -1;
    int acc = at ? mma_kind(o->part[o->n - 3]) : -1;
    int right = mma_kind(last(o)); /* the formats of 8-bit floats may be mixed */
    bool mixed =
        (kind == P_E4M3 || kind == P_E5M2) && (right == P_E4M3 || right == P_E5M2);
    if (kind < 0 || acc < 0 || m != 64 || n % 8 || n > 256 || o->count < 4 ||
        (right != kind && !mixed))
        return parse_fail(p, "the instruction '%s' is not known", o->full);
    bool regs = o->arg[1][0] == '{', two = kind <= 1;
    int words = acc == 0 ? n / 4 : n / 2;
    nd = list(p, o->arg[0], 32, r, NULL);
    if (nd == words && regs)
        na = list(p, o->arg[1], 32, r + nd, NULL);
    else if (nd == words && !(r[nd] = operand(p, o->arg[1], 64)))
        return false;
    if (nd != words || (regs && na != 4))
        return parse_fail(p, "'%s' of %d registers", o->full, nd);
    uint32_t b = r[nd + na] = operand(p, o->arg[2], 64);
    uint32_t scale = operand(p, o->arg[3], 1);
    if (!b || !scale)
        return false;
    uint16_t flags = IS_WGMMA;
    if (o->count > 5 && (o->arg[4][0] == '-') != (o->arg[5][0] == '-'))
        flags |= SIGNED;
    if (two && o->count == (regs ? 7 : 8)) {
        flags |= !regs && one(o->arg[6]) ? TRANSPOSE : 0;
        flags |= one(o->arg[o->count - 1]) ? READ_ONLY_WAIT : 0;
    } else if (two || o->count != (acc == 8 ? 4 : 6)) {
        return parse_fail(p, "'%s' with %d operands", o->full, o->count);
    }
    Insn *i = emit(p, op_wgmma, r, nd, na + 1);
    i->c = scale;
    i->n = (uint8_t)na;
    i->sub = (uint16_t)(kind | acc << 4 | right << 8);
    i->imm = n | k << 16;
    i->flags = flags;
    parse_code(p)->has_wgmma = true;
    return true;
}

/* Conversions. Floats to integers saturate (8-bit ones by way of 16 bits, as on a GPU);
   a NaN becomes 0, in 64 bits the smallest number. */
#include "tests/interp/machine.h"

#include <math.h>
#include <string.h>

static uint64_t
float_to_int(double x, ScalarKind to, bool is_signed)
{
    int bits = scalar_bits(to), via = bits < 16 ? 16 : bits;
    if (x != x)
        return bits == 64 ? (uint64_t)1 << 63 : 0;
    double high = ldexp(1, is_signed ? via - 1 : via); /* first number above all */
    double low = is_signed ? -high : 0;
    x = trunc(x);
    uint64_t r;
    if (x >= high)
        r = is_signed ? ((uint64_t)1 << (via - 1)) - 1
            : via == 64 ? ~(uint64_t)0 : ((uint64_t)1 << via) - 1;
    else if (x <= low)
        r = is_signed ? (uint64_t)0 - ((uint64_t)1 << (via - 1)) : 0;
    else
        r = is_signed ? (uint64_t)(int64_t)x : (uint64_t)x;
    return (uint64_t)int_wrap(to, r);
}

/* A 64-bit integer as a double that a further rounding to fewer bits gets right: what
   does not fit makes the last bit odd. */
static double
int_to_real(uint64_t magnitude, bool negative)
{
    int lost = 0;
    while (magnitude >> 53) {
        uint64_t odd = magnitude & 1;
        magnitude = magnitude >> 1 | odd;
        lost++;
    }
    double x = ldexp((double)magnitude, lost);
    return negative ? -x : x;
}

static uint64_t
int_to_float(uint64_t cell, ScalarKind from, ScalarKind to, bool is_signed)
{
    int64_t x = int_signed(from, cell);
    uint64_t u = int_unsigned(from, cell);
    if (to == SK_F64)
        return format_encode(to, is_signed ? (double)x : (double)u, false);
    bool negative = is_signed && x < 0;
    return format_encode(
        to, int_to_real(negative ? 0 - (uint64_t)x : is_signed ? (uint64_t)x : u,
                        negative), false);
}

/* Floats to floats: the NaN of a 16- or 8-bit format is one, of others any. */
static bool
convert_float(Machine *m, const Op *op, ScalarKind from, ScalarKind to, int64_t n,
              const uint64_t *in, uint64_t *out)
{
    Name round = attr_str(&op->attrs, ATTR_ROUND);
    bool rtz = op->kind == OP_FTRUNC && round && !strcmp(round, "rtz");
    double *r = (double *)slot_room(m, &m->real[0], n);
    if (!r)
        return false;
    format_read(from, in, r, n);
    if (!rtz && (to == SK_F32 || to == SK_F64)) {
        format_write(m, to, r, out, n);
        return true;
    }
    for (int64_t i = 0; i < n; i++)
        out[i] = format_encode(to, r[i], rtz);
    return true;
}

static uint64_t
bits_as(const Type *to, uint64_t cell)
{
    if (to->kind == TY_PTR)
        return cell;
    if (!scalar_is_float(to->scalar))
        return (uint64_t)int_wrap(to->scalar, cell);
    int width = scalar_bits(to->scalar);
    return width == 64 ? cell : cell & (((uint64_t)1 << width) - 1);
}

bool
run_cast(Machine *m, const Op *op)
{
    const Type *from = type_elem(op_operand(op, 0)->type);
    const Type *to = type_elem(op->results[0].type);
    int64_t n = machine_lanes(m, op);
    const uint64_t *in = machine_read(m, op_operand(op, 0), n, 0);
    uint64_t *out = machine_write(m, &op->results[0], n);
    if (!in || !out)
        return false;
    if (op->kind == OP_FEXT || op->kind == OP_FTRUNC)
        return convert_float(m, op, from->scalar, to->scalar, n, in, out);
    for (int64_t i = 0; i < n; i++)
        switch ((int)op->kind) {
        case OP_TRUNC: out[i] = (uint64_t)int_wrap(to->scalar, in[i]); break;
        case OP_SEXT: out[i] = (uint64_t)int_signed(from->scalar, in[i]); break;
        case OP_ZEXT: out[i] = int_unsigned(from->scalar, in[i]); break;
        case OP_SITOF:
        case OP_UITOF:
            out[i] = int_to_float(in[i], from->scalar, to->scalar, op->kind == OP_SITOF);
            break;
        case OP_FTOSI:
        case OP_FTOUI:
            out[i] = float_to_int(format_decode(from->scalar, in[i]), to->scalar,
                                  op->kind == OP_FTOSI);
            break;
        default: out[i] = bits_as(to, in[i]); break;
        }
    return true;
}

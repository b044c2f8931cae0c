/* Implicit conversion of two operands, the one table from which every operator's
   result type follows. A weak operand (a literal or constexpr) of a kind not above the
   other's (boolean < integer < float) takes the other's type. Quotients and remainders
   of floats are at least fp32. Otherwise the wider float wins, with Triton's two
   surprises: bf16 with anything but itself, fp16 or fp8 is fp32, and fp16 absorbs bf16.
   Integers follow C's usual conversions without promotion to int. */
#include "frontend/sema.h"

#include <math.h>

DType
promote_int(DType a, DType b)
{
    bool sa = dtype_is_signed(a), sb = dtype_is_signed(b);
    int wa = dtype_bits(a), wb = dtype_bits(b);
    if (sa == sb)
        return wa > wb ? a : b;
    if (!sa)
        return wa >= wb ? a : b;
    return wb >= wa ? b : a;
}

/* Floats from the strongest: the first row whose condition holds decides. */
typedef enum Need { ONE, BOTH } Need;
static const struct {
    DType t;
    Need need;
    DType result;
} rows[] = {
    { DT_FP64, ONE, DT_FP64 },
    { DT_FP32, ONE, DT_FP32 },
    { DT_FP16, ONE, DT_FP16 },
    { DT_BF16, BOTH, DT_BF16 },
    { DT_BF16, ONE, DT_FP32 },
};

PromoteResult
promote(DType a, bool weak_a, DType b, bool weak_b, bool div_or_mod, DType *out)
{
    if (weak_a != weak_b) {
        DType weak = weak_a ? a : b, strong = weak_a ? b : a;
        if (dtype_kind(weak) <= dtype_kind(strong))
            a = b = strong;
    }
    bool is_float = dtype_is_float(a) || dtype_is_float(b);
    if (div_or_mod && is_float) {
        *out = a == DT_FP64 || b == DT_FP64 ? DT_FP64 : DT_FP32;
        return PROMOTE_OK;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool in_a = a == rows[i].t, in_b = b == rows[i].t;
        if (rows[i].need == BOTH ? in_a && in_b : in_a || in_b) {
            *out = rows[i].result;
            return PROMOTE_OK;
        }
    }
    if (dtype_is_fp8(a) && dtype_is_fp8(b)) {
        *out = a == b && !dtype_is_fnuz(a) ? a : DT_FP16;
        return PROMOTE_OK;
    }
    if (!dtype_is_int(a) || !dtype_is_int(b))
        return PROMOTE_TYPES;
    if (div_or_mod && dtype_is_signed(a) != dtype_is_signed(b))
        return PROMOTE_SIGNS;
    *out = promote_int(a, b);
    return PROMOTE_OK;
}

/* A Python number as a tensor: the first of int32, uint32, int64, uint64 that holds it;
   fp32 unless it lies outside of fp32's normal range. */
DType
number_dtype(Val v)
{
    if (v->kind == FE_BOOL)
        return DT_INT1;
    if (v->kind == FE_INT) {
        static const DType order[] = { DT_INT32, DT_UINT32, DT_INT64, DT_UINT64 };
        for (size_t i = 0; i < sizeof order / sizeof *order; i++)
            if (v->u.i >= dtype_min(order[i]) && v->u.i <= dtype_max(order[i]))
                return order[i];
        return DT_NONE;
    }
    double x = fabs(v->u.f);
    bool fits = isnan(x) || isinf(x) || x == 0 ||
                (x >= 0x1p-126 && x <= 0x1.fffffep127);
    return fits ? DT_FP32 : DT_FP64;
}

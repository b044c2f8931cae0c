/* Keys that selecting and sorting compare: floats' bits are in order as integers once
   those of negative numbers are the other way round, unsigned integers once half of
   their range is taken away. So one comparison of signed integers does for all types. */
#include "codegen/gen_cpu_order.h"

static int64_t
infinity(ScalarKind k)
{
    return k == SK_F16    ? 0x7c00
           : k == SK_BF16 ? 0x7f80
           : k == SK_F32  ? 0x7f800000
                          : INT64_C(0x7ff0000000000000);
}

Order
order_of(Gen *g, const Type *elem, const char *pred)
{
    ScalarKind k = elem->scalar;
    return (Order){.is_float = scalar_is_float(k),
                   .is_unsigned = pred[0] == 'u',
                   .rising = pred[1] == 'l',
                   .inf = infinity(k),
                   .key = LLVMIntTypeInContext(g->cx, (unsigned)(8 * ll_bytes(k)))};
}

int64_t
order_most(const Order *o)
{
    return (int64_t)(UINT64_MAX >> (65 - LLVMGetIntTypeWidth(o->key)));
}

/* Positive floats are in order as integers, negative ones the other way round. */
static LLVMValueRef
flipped(Gen *g, const Order *o, LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    LLVMValueRef by = ll_int(t, LLVMGetIntTypeWidth(o->key) - 1);
    LLVMValueRef sign = LLVMBuildAShr(g->b, x, by, "");
    sign = LLVMBuildAnd(g->b, sign, ll_int(t, order_most(o)), "");
    return LLVMBuildXor(g->b, x, sign, "");
}

LLVMValueRef
order_key(Gen *g, const Order *o, LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    LLVMValueRef key = x, least = ll_int(t, -order_most(o) - 1);
    if (o->is_float)
        key = flipped(g, o, x);
    else if (o->is_unsigned)
        key = LLVMBuildXor(g->b, x, least, "");
    if (o->rising)
        key = LLVMBuildNot(g->b, key, "");
    if (!o->is_float)
        return key;
    LLVMValueRef size = LLVMBuildAnd(g->b, x, ll_int(t, order_most(o)), "");
    LLVMValueRef nan = LLVMBuildICmp(g->b, LLVMIntSGT, size, ll_int(t, o->inf), "nan");
    return LLVMBuildSelect(g->b, nan, least, key, "");
}

LLVMValueRef
order_element(Gen *g, const Order *o, LLVMValueRef key)
{
    LLVMTypeRef t = LLVMTypeOf(key);
    if (o->rising)
        key = LLVMBuildNot(g->b, key, "");
    if (o->is_unsigned)
        return LLVMBuildXor(g->b, key, ll_int(t, -order_most(o) - 1), "");
    return o->is_float ? flipped(g, o, key) : key;
}

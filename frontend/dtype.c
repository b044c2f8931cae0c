/* The table of element types and its queries. */
#include "frontend/dtype.h"

#include <string.h>


const DTypeInfo dtype_info[DT_COUNT] = {
#define DTYPE(id, name, tl, sig, bits, class, man, bias, ir) \
    [DT_##id] = { name, tl, sig, bits, DTC_##class, man, bias, SK_##ir },
#include "frontend/dtypes.def"
};

bool
dtype_is_ptr(DType t)
{
    return t >= DT_PTR;
}

bool
dtype_is_const(DType t)
{
    return t >= DT_CONST_PTR;
}

DType
dtype_pointee(DType t)
{
    return t & (DT_PTR - 1);
}

bool
dtype_is_scalar(DType t)
{
    return t >= 0 && t < DT_COUNT;
}

bool
dtype_is_int(DType t)
{
    return dtype_is_scalar(t) && dtype_info[t].class != DTC_F;
}

bool
dtype_is_signed(DType t)
{
    return dtype_is_scalar(t) && dtype_info[t].class == DTC_I;
}

bool
dtype_is_unsigned(DType t)
{
    return dtype_is_int(t) && dtype_info[t].class != DTC_I;
}

bool
dtype_is_float(DType t)
{
    return dtype_is_scalar(t) && dtype_info[t].class == DTC_F;
}

bool
dtype_is_fp8(DType t)
{
    return dtype_is_float(t) && dtype_info[t].bits == 8;
}

bool
dtype_is_fnuz(DType t)
{
    return t == DT_FP8E4B8 || t == DT_FP8E5B16;
}

int
dtype_bits(DType t)
{
    return dtype_is_scalar(t) ? dtype_info[t].bits : 64;
}

int
dtype_kind(DType t)
{
    switch (dtype_info[t].class) {
    case DTC_B: return 0;
    case DTC_I: return 1;
    case DTC_U: return 1;
    case DTC_F: return 2;
    }
    return 2;
}

const char *
dtype_str(Arena *a, DType t)
{
    if (t == DT_VOID)
        return "void";
    if (dtype_is_scalar(t))
        return dtype_info[t].name;
    const char *star = dtype_is_const(t) ? "*k" : "*";
    return arena_printf(a, "%s%s", star, dtype_info[dtype_pointee(t)].name);
}

static bool
is_text(const char *s, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(s, name, n) == 0;
}

DType
dtype_by_tl_name(const char *s, size_t n)
{
    for (int i = 0; i < DT_COUNT; i++)
        if (is_text(s, n, dtype_info[i].tl_name))
            return i;
    return DT_NONE;
}

/* Other spellings that users of NumPy, PyTorch or this compiler's IR write. */
static const struct {
    const char *name;
    DType t;
} aliases[] = {
    { "u1", DT_INT1 },       { "bool", DT_INT1 },       { "B", DT_INT1 },
    { "f16", DT_FP16 },      { "half", DT_FP16 },       { "f32", DT_FP32 },
    { "f64", DT_FP64 },      { "float", DT_FP32 },      { "double", DT_FP64 },
    { "int", DT_INT32 },     { "fp8e4", DT_FP8E4NV },   { "f8e4", DT_FP8E4NV },
    { "f8e5", DT_FP8E5 },    { "f8e4b15", DT_FP8E4B15 }, { "u64", DT_UINT64 },
};

DType
dtype_by_sig(const char *s, size_t n)
{
    if (n && s[0] == '*') {
        bool is_const = n > 1 && s[1] == 'k';
        size_t skip = is_const ? 2 : 1;
        DType t = dtype_by_sig(s + skip, n - skip);
        if (t == DT_NONE || dtype_is_ptr(t))
            return DT_NONE;
        return t + (is_const ? DT_CONST_PTR : DT_PTR);
    }
    for (int i = 0; i < DT_COUNT; i++)
        if (is_text(s, n, dtype_info[i].sig) || is_text(s, n, dtype_info[i].tl_name) ||
            is_text(s, n, dtype_info[i].name))
            return i;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (is_text(s, n, aliases[i].name))
            return aliases[i].t;
    return DT_NONE;
}

/* A pointer to int1 points at bytes: Triton reads and writes int1 memory as int8. */
const Type *
dtype_ir(Session *s, DType t)
{
    if (dtype_is_ptr(t)) {
        DType to = dtype_pointee(t);
        const Type *elem = dtype_ir(s, to == DT_INT1 ? DT_INT8 : to);
        return elem ? type_ptr(s->types, elem, 0) : NULL;
    }
    if (!dtype_is_scalar(t) || dtype_info[t].ir == SK_NONE)
        return NULL;
    return type_scalar(s->types, dtype_info[t].ir);
}

Wide
dtype_min(DType t)
{
    return dtype_is_signed(t) ? -((Wide)1 << (dtype_bits(t) - 1)) : 0;
}

Wide
dtype_max(DType t)
{
    int bits = dtype_is_signed(t) ? dtype_bits(t) - 1 : dtype_bits(t);
    return ((Wide)1 << bits) - 1;
}

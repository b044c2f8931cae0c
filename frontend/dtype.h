/* Element types as the language sees them: with signedness, and pointers with constness,
   which the IR's types do not have. A DType is a small number: a scalar's id, plus DT_PTR
   or DT_CONST_PTR for a pointer to that scalar. */
#ifndef SDC_FRONTEND_DTYPE_H
#define SDC_FRONTEND_DTYPE_H

#include "ir/session.h"
#include "ir/type.h"

typedef int DType;

enum {
#define DTYPE(id, ...) DT_##id,
#include "frontend/dtypes.def"
    DT_COUNT,
    DT_VOID = DT_COUNT,
    DT_NONE = -1,
    DT_PTR = 64,        /* + pointee */
    DT_CONST_PTR = 128, /* + pointee */
};

typedef enum DTypeClass { DTC_B, DTC_I, DTC_U, DTC_F } DTypeClass;

typedef struct DTypeInfo {
    const char *name, *tl_name, *sig;
    int bits;
    DTypeClass class;
    int mantissa, bias;
    ScalarKind ir;
} DTypeInfo;

extern const DTypeInfo dtype_info[DT_COUNT];

bool dtype_is_ptr(DType t);
bool dtype_is_const(DType t);
DType dtype_pointee(DType t);      /* of a pointer */
bool dtype_is_scalar(DType t);     /* a number: not a pointer, not void */
bool dtype_is_int(DType t);        /* int1 too */
bool dtype_is_signed(DType t);     /* signed integer */
bool dtype_is_unsigned(DType t);   /* unsigned integer; int1 counts */
bool dtype_is_float(DType t);
bool dtype_is_fp8(DType t);
bool dtype_is_fnuz(DType t);       /* fp8e4b8, fp8e5b16: bytes to the IR */
int dtype_bits(DType t);           /* 64 for pointers */
int dtype_kind(DType t);           /* 0 boolean, 1 integral, 2 floating */
const char *dtype_str(Arena *a, DType t); /* "fp32", "*fp16", "*kfp16" */

/* By the names of tl.<name> ("float16"), of Triton's signatures ("fp16", "*fp32", "*ki8")
   and the common aliases ("f16", "float16", "int32"); DT_NONE when unknown. */
DType dtype_by_tl_name(const char *s, size_t n);
DType dtype_by_sig(const char *s, size_t n);

/* IR type of the element; NULL when the type has no lowering. */
const Type *dtype_ir(Session *s, DType t);

/* Smallest and largest value of an integer type. */
__extension__ typedef __int128 Wide;
Wide dtype_min(DType t);
Wide dtype_max(DType t);

#endif

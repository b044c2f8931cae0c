/* triton.language.extra.libdevice: functions of NVIDIA's device library by name.
   Operands must have the exact types that the library has; fp16 and bf16 are errors,
   as in Triton. */
#include "frontend/builtin.h"
#include "frontend/prelude.h"

#include "ir/base/util.h"

#include <stdio.h>
#include <string.h>

typedef enum LibKind { LK_F, LK_S, LK_P, LK_B, LK_I, LK_R, LK_L, LK_X, LK_M, LK_A, LK_C,
                       LK_W } LibKind;

typedef struct LibFn {
    const char *name;
    int arity;
    LibKind kind;
    int op; /* OP_*, or OP_NONE */
    const char *fn;
} LibFn;

enum { OP_NONE = -1 };

static const LibFn table[] = {
#define LIBFN(name, arity, kind, op, fn) { name, arity, LK_##kind, OP_##op, fn },
#include "frontend/libdevice.def"
};

static Val
build(Sema *s, const LibFn *f, const Val *x, DType dt)
{
    Value *in[4];
    AttrList attrs = { 0 };
    for (int i = 0; i < f->arity; i++)
        in[i] = x[i]->v;
    if (f->op == OP_LIBM)
        attr_set_str(&s->s->mod, &attrs, ATTR_FN, name_of(&s->s->names, f->fn));
    const Type *t = type_like(s->s->types, in[0]->type, dtype_ir(s->s, dt));
    return val_tensor(
        s, op_result(build_op(&s->b, (OpKind)f->op, in, f->arity, &attrs, &t, 1), 0), dt);
}

static Val
wrong_types(Sema *s, Args *a, const LibFn *f, const char *needed)
{
    Buf b;
    buf_init(&b, s->a);
    for (int i = 0; i < f->arity; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", val_describe(s->a, a->v[i]));
    return sema_error(s, a->loc, "libdevice.%s takes %s, found %s; cast first", f->name,
                      needed, b.s);
}

/* Broadcasts all operands to one shape. */
static bool
one_shape(Sema *s, Args *a, int n)
{
    for (int round = 0; round < 2; round++)
        for (int i = 1; i < n; i++)
            if (!broadcast_pair(s, &a->v[0], &a->v[i], a->loc))
                return false;
    return true;
}

/* Converts operands to one type as arithmetic does, when they differ: pow(x, 2.0). */
static bool
one_type(Sema *s, Args *a, int n)
{
    for (int round = 0; round < 2; round++)
        for (int i = 1; i < n; i++)
            if (a->v[i]->dt != a->v[0]->dt &&
                !unify_operands(s, &a->v[0], &a->v[i], a->b->name, UNIFY_NUMBERS, a->loc))
                return false;
    return true;
}

static bool
is_real(DType t)
{
    return t == DT_FP32 || t == DT_FP64;
}

static bool
is_word(DType t)
{
    return t == DT_INT32 || t == DT_INT64;
}

static Val
convert(Sema *s, Args *a, const LibFn *f)
{
    static const struct {
        const char *name;
        DType from, to;
        bool bits;
    } rows[] = {
        { "llrint", DT_FP32, DT_INT64, false },
        { "llround", DT_FP32, DT_INT64, false },
        { "float2int_rn", DT_FP32, DT_INT32, false },
        { "float2int_rz", DT_FP32, DT_INT32, false },
        { "float2int_rd", DT_FP32, DT_INT32, false },
        { "float2int_ru", DT_FP32, DT_INT32, false },
        { "int2float_rn", DT_INT32, DT_FP32, false },
        { "uint2float_rn", DT_UINT32, DT_FP32, false },
        { "float_as_int", DT_FP32, DT_INT32, true },
        { "int_as_float", DT_INT32, DT_FP32, true },
        { "float_as_uint", DT_FP32, DT_INT32, true },
        { "uint_as_float", DT_UINT32, DT_FP32, true },
        { "double_as_longlong", DT_FP64, DT_INT64, true },
        { "longlong_as_double", DT_INT64, DT_FP64, true },
    };
    Val x = a->v[0];
    for (int i = 0; i < COUNT_OF(rows); i++) {
        if (strcmp(rows[i].name, f->name) != 0)
            continue;
        bool wide = x->dt == DT_FP64 && strncmp(f->name, "ll", 2) == 0;
        if (x->dt != rows[i].from && !wide)
            return wrong_types(s, a, f, dtype_str(s->a, rows[i].from));
        if (f->op != OP_NONE)
            x = build(s, f, &x, x->dt);
        return rows[i].bits ? bitcast(s, x, rows[i].to, a->loc)
                            : cast(s, x, rows[i].to, a->loc);
    }
    bug(&s->s->fail, "no conversion libdevice.%s", f->name);
}

static Val
integer_high(Sema *s, Args *a, const LibFn *f)
{
    DType dt = a->v[0]->dt;
    if (!dtype_is_int(dt) || dtype_bits(dt) < 32 || dt != a->v[1]->dt)
        return wrong_types(s, a, f, "two 32- or 64-bit integers of one type");
    return build_elementwise(s, dtype_is_signed(dt) ? OP_MULHIS : OP_MULHIU, a->v[0],
                             a->v[1], dt);
}

/* pow(float, int32) is powi; otherwise both become one float type. */
static Val
power(Sema *s, Args *a, const LibFn *f)
{
    static const LibFn powi = { "pow", 2, LK_X, OP_LIBM, "powi" };
    if (is_real(a->v[0]->dt) && a->v[1]->dt == DT_INT32)
        return build(s, &powi, a->v, a->v[0]->dt);
    if (!one_type(s, a, 2))
        return val_error();
    if (!is_real(a->v[0]->dt))
        return wrong_types(s, a, f, "fp32 or fp64, and int32 as exponent");
    return build(s, f, a->v, a->v[0]->dt);
}

static const struct {
    char letter;
    DType one, other; /* allowed types */
} letters[] = {
    {'F', DT_FP32, DT_FP64},     {'f', DT_FP32, DT_FP32},     {'d', DT_FP64, DT_FP64},
    {'i', DT_INT32, DT_INT32},   {'u', DT_UINT32, DT_UINT32}, {'l', DT_INT64, DT_INT64},
    {'L', DT_UINT64, DT_UINT64}, {'w', DT_INT32, DT_UINT32},
};

/* Operands of one letter have one type. */
static bool
check_letters(Sema *s, Args *a, const LibFn *f)
{
    Buf needed;
    bool ok = true;
    buf_init(&needed, s->a);
    for (int i = 0; i < f->arity; i++) {
        int k = 0, first = (int)(strchr(f->fn, f->fn[i]) - f->fn);
        while (letters[k].letter != f->fn[i])
            k++;
        DType t = a->v[i]->dt;
        ok = ok && (t == letters[k].one || t == letters[k].other) &&
             t == a->v[first]->dt;
        buf_printf(&needed, "%s%s", i ? ", " : "", dtype_str(s->a, letters[k].one));
        if (letters[k].one != letters[k].other)
            buf_printf(&needed, " or %s", dtype_str(s->a, letters[k].other));
    }
    if (!ok)
        wrong_types(s, a, f, needed.s);
    return ok;
}

/* A function of kernels_dsl/lib, with the modes and types that the table gives it. */
static Val
written(Sema *s, Args *a, const LibFn *f)
{
    char file[16], name[24], more[2][12] = {"", ""};
    if (f->fn[0] == 'F' && f->fn[f->arity - 1] == 'F' && !one_type(s, a, f->arity))
        return val_error();
    if (!check_letters(s, a, f))
        return val_error();
    Val args[6];
    int n = f->arity;
    for (int i = 0; i < n; i++)
        args[i] = a->v[i];
    sscanf(f->fn, "%*s %15s %23s %11s %11s", file, name, more[0], more[1]);
    for (int i = 0; i < 2 && *more[i]; i++) {
        DType t = dtype_by_tl_name(more[i], strlen(more[i]));
        args[n++] = t != DT_NONE
                        ? val_dtype(s, t)
                        : val_str(s, arena_strndup(s->a, more[i], strlen(more[i])));
    }
    return call_function(s, prelude_function(s, file, name, a->loc), args, n, a->loc);
}

Val
bi_libdevice(Sema *s, Args *a)
{
    const LibFn *f = table;
    while (strcmp(f->name, a->b->name) != 0)
        f++;
    for (int i = 0; i < f->arity; i++)
        if (!arg_tensor(s, a, i))
            return val_error();
    if (!one_shape(s, a, f->arity))
        return val_error();
    DType dt = a->v[0]->dt;
    switch (f->kind) {
    case LK_F:
    case LK_S:
        if (!one_type(s, a, f->arity))
            return val_error();
        dt = a->v[0]->dt;
        if (dt != DT_FP32 && (dt != DT_FP64 || f->kind == LK_S))
            return wrong_types(s, a, f, f->kind == LK_S ? "fp32" : "fp32 or fp64");
        return build(s, f, a->v, dt);
    case LK_P:
    case LK_B: {
        if (!is_real(dt))
            return wrong_types(s, a, f, "fp32 or fp64");
        Val r = build(s, f, a->v, DT_INT1);
        return f->kind == LK_B ? cast(s, r, DT_INT32, a->loc) : r;
    }
    case LK_I:
        return is_word(dt) ? cast(s, build(s, f, a->v, dt), DT_INT32, a->loc)
                           : wrong_types(s, a, f, "int32 or int64");
    case LK_R:
        return is_word(dt) ? build(s, f, a->v, dt)
                           : wrong_types(s, a, f, "int32 or int64");
    case LK_L:
        return is_real(dt) && a->v[1]->dt == DT_INT32
                   ? build(s, f, a->v, dt)
                   : wrong_types(s, a, f, "fp32 or fp64, and int32");
    case LK_X: return power(s, a, f);
    case LK_W: return written(s, a, f);
    case LK_M: return integer_high(s, a, f);
    case LK_A:
        if (is_real(dt))
            return build_elementwise(s, OP_ABSF, a->v[0], NULL, dt);
        return is_word(dt) ? build_elementwise(s, OP_ABSS, a->v[0], NULL, dt)
                           : wrong_types(s, a, f, "int32, int64, fp32 or fp64");
    default: return convert(s, a, f);
    }
}

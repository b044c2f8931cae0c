/* Elementwise builtins and the matmul. */
#include "frontend/builtin.h"

#include "ir/base/util.h"

#include <math.h>
#include <string.h>
#include <strings.h>

Val
bi_add(Sema *s, Args *a)
{
    return binary(s, BIN_ADD, a->v[0], a->v[1], a->loc);
}

Val
bi_sub(Sema *s, Args *a)
{
    return binary(s, BIN_SUB, a->v[0], a->v[1], a->loc);
}

Val
bi_mul(Sema *s, Args *a)
{
    return binary(s, BIN_MUL, a->v[0], a->v[1], a->loc);
}

/* propagate_nan: None, PropagateNan.NONE (both absent) or PropagateNan.ALL. */
static bool
wants_nan(const Args *a, int i)
{
    return a->v[i]->kind == FE_STR && strcmp(a->v[i]->u.s, "ALL") == 0;
}

Val
bi_minimum(Sema *s, Args *a)
{
    return tensor_minmax(s, false, a->v[0], a->v[1], wants_nan(a, 2), a->loc);
}

Val
bi_maximum(Sema *s, Args *a)
{
    return tensor_minmax(s, true, a->v[0], a->v[1], wants_nan(a, 2), a->loc);
}

Val
bi_clamp(Sema *s, Args *a)
{
    if (!unify_three(s, a->v, "clamp", a->loc))
        return val_error();
    Val x = a->v[0], lo = a->v[1], hi = a->v[2];
    bool nan = wants_nan(a, 3);
    return tensor_minmax(s, false, tensor_minmax(s, true, x, lo, nan, a->loc), hi, nan,
                         a->loc);
}

Val
bi_where(Sema *s, Args *a)
{
    Val c = a->v[0];
    if (c->kind == FE_TENSOR && c->dt != DT_INT1)
        diag_warning(&s->s->diag, a->at[0],
                     "a condition of 'where' that is %s, not int1, is deprecated in "
                     "Triton: compare with 0",
                     val_describe(s->a, c));
    return tensor_where(s, c, a->v[1], a->v[2], a->loc);
}

/* Without its sign; no conversion, which need not keep what is no number. */
static Val
abs_fp8(Sema *s, Val x, Loc loc)
{
    if (dtype_is_fnuz(x->dt)) { /* 0x80 is NaN, and it has no sign */
        Val y = cast(s, x, DT_FP16, loc);
        y = val_is_error(y) ? y : build_elementwise(s, OP_ABSF, y, NULL, DT_FP16);
        return val_is_error(y) ? y : cast(s, y, x->dt, loc);
    }
    Value *bits = build_cast(&s->b, OP_BITCAST, x->v, dtype_ir(s->s, DT_INT8));
    bits = build_binary(&s->b, OP_AND, bits, build_int(&s->b, bits->type, 0x7f));
    return val_tensor(s, build_cast(&s->b, OP_BITCAST, bits, dtype_ir(s->s, x->dt)),
                      x->dt);
}

Val
bi_abs(Sema *s, Args *a)
{
    if (!arg_tensor(s, a, 0))
        return val_error();
    Val x = a->v[0];
    if (dtype_is_float(x->dt) && dtype_bits(x->dt) == 8)
        return abs_fp8(s, x, a->loc);
    if (dtype_is_float(x->dt))
        return build_elementwise(s, OP_ABSF, x, NULL, x->dt);
    if (dtype_is_signed(x->dt))
        return build_elementwise(s, OP_ABSS, x, NULL, x->dt);
    if (dtype_is_int(x->dt))
        return x;
    return sema_error(s, a->loc, "'abs' takes numbers, found %s", val_describe(s->a, x));
}

/* Of fp32 within 2 ulp, as `/`, unless `ieee_rounding` asks for the right one; an
   `approx` quotient may be as far off. */
Val
bi_fdiv(Sema *s, Args *a)
{
    bool exact, approx;
    if (!arg_bool(s, a, 2, &exact) || !arg_bool(s, a, 3, &approx))
        return val_error();
    Val x = a->v[0], y = a->v[1];
    if (!unify_operands(s, &x, &y, "fdiv", UNIFY_DIVISION, a->loc))
        return val_error();
    if (!dtype_is_float(x->dt))
        return sema_error(s, a->loc, "'fdiv' takes floats, found %s and %s",
                          val_describe(s->a, a->v[0]), val_describe(s->a, a->v[1]));
    if (approx && exact)
        return sema_error(s, a->at[3], "'approx' excludes 'ieee_rounding'");
    if (approx && x->dt != DT_FP32)
        return sema_error(s, a->at[3], "'approx' takes fp32, found %s",
                          val_describe(s->a, x));
    return build_elementwise(s, exact ? OP_DIVRN : OP_DIVF, x, y, x->dt);
}

Val
bi_div_rn(Sema *s, Args *a)
{
    Val x = a->v[0], y = a->v[1];
    if (!unify_operands(s, &x, &y, "div_rn", UNIFY_NUMBERS, a->loc))
        return val_error();
    for (int i = 0; i < 2; i++)
        if (x->dt != DT_FP32 || (val_is_tensor(a->v[i]) && a->v[i]->dt != DT_FP32))
            return sema_error(s, a->loc, "'div_rn' takes fp32, found %s and %s",
                              val_describe(s->a, a->v[0]), val_describe(s->a, a->v[1]));
    return build_elementwise(s, OP_DIVRN, x, y, x->dt);
}

Val
bi_fma(Sema *s, Args *a)
{
    if (!unify_three(s, a->v, "fma", a->loc))
        return val_error();
    Val x = a->v[0], y = a->v[1], z = a->v[2];
    if (!dtype_is_float(x->dt))
        return sema_error(s, a->loc, "'fma' takes floats, found %s",
                          val_describe(s->a, x));
    Op *op = build_op(&s->b, OP_FMA, (Value *[]){ x->v, y->v, z->v }, 3, NULL, NULL, 1);
    return val_tensor(s, op_result(op, 0), x->dt);
}

Val
bi_umulhi(Sema *s, Args *a)
{
    Val x = a->v[0], y = a->v[1];
    if (!unify_operands(s, &x, &y, "umulhi", UNIFY_NUMBERS, a->loc))
        return val_error();
    for (int i = 0; i < 2; i++) {
        Val v = val_is_tensor(a->v[i]) ? a->v[i] : x;
        if (!dtype_is_int(v->dt) || dtype_bits(v->dt) < 32)
            return sema_error(s, a->at[i],
                              "'umulhi' takes 32- and 64-bit integers, found "
                              "%s",
                              val_describe(s->a, a->v[i]));
    }
    return build_elementwise(s, OP_MULHIU, x, y, x->dt);
}

/* fp32 and fp64 only: half precision must be widened by the author. */
static Val
float_function(Sema *s, Args *a, OpKind k, bool only_fp32)
{
    if (!arg_tensor(s, a, 0))
        return val_error();
    Val x = a->v[0];
    if (x->dt == DT_FP32 || (x->dt == DT_FP64 && !only_fp32))
        return build_elementwise(s, k, x, NULL, x->dt);
    return sema_error(s, a->at[0], "'%s' takes %s, found %s; write x.to(tl.float32)",
                      a->b->name, only_fp32 ? "fp32" : "fp32 or fp64",
                      val_describe(s->a, x));
}

#define FLOAT_FUNCTION(id, op)                 \
    Val bi_##id(Sema *s, Args *a)              \
    {                                          \
        return float_function(s, a, op, false); \
    }

FLOAT_FUNCTION(exp, OP_EXP)
FLOAT_FUNCTION(exp2, OP_EXP2)
FLOAT_FUNCTION(log, OP_LOG)
FLOAT_FUNCTION(log2, OP_LOG2)
FLOAT_FUNCTION(sin, OP_SIN)
FLOAT_FUNCTION(cos, OP_COS)
FLOAT_FUNCTION(sqrt, OP_SQRT)
FLOAT_FUNCTION(rsqrt, OP_RSQRT)
FLOAT_FUNCTION(erf, OP_ERF)
FLOAT_FUNCTION(floor, OP_FLOOR)
FLOAT_FUNCTION(ceil, OP_CEIL)

Val
bi_sqrt_rn(Sema *s, Args *a)
{
    return float_function(s, a, OP_SQRTRN, true);
}

Val
bi_cdiv(Sema *s, Args *a)
{
    Val less = binary(s, BIN_SUB, a->v[1], val_int(s, 1), a->loc);
    Val sum = binary(s, BIN_ADD, a->v[0], less, a->loc);
    return binary(s, BIN_FLOORDIV, sum, a->v[1], a->loc);
}

Val
bi_next_power_of_2(Sema *s, Args *a)
{
    int64_t n;
    if (!arg_int(s, a, 0, &n))
        return val_error();
    if (n > (int64_t)1 << 62)
        return sema_error(s, a->at[0], "next_power_of_2 of a value above 2^62");
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return val_int(s, n <= 0 ? 0 : p);
}

Val
bi_log2_int(Sema *s, Args *a)
{
    int64_t n;
    if (!arg_int(s, a, 0, &n))
        return val_error();
    return val_int(s, n > 1 ? log2_floor((uint64_t)n) : 0);
}

Val
bi_is_power_of_two(Sema *s, Args *a)
{
    int64_t n;
    if (!arg_int(s, a, 0, &n))
        return val_error();
    return val_bool(s, n > 0 && (n & (n - 1)) == 0);
}

/* Checks of tl.dot that need the operands alone. */
static bool
check_dot_types(Sema *s, Args *a)
{
    static const DType allowed[] = {DT_INT8, DT_UINT8, DT_FP16,
                                    DT_BF16, DT_FP32,  DT_FP64};
    Val x = a->v[0], y = a->v[1];
    if (dtype_is_fp8(x->dt) && dtype_is_fp8(y->dt) && !dtype_is_fnuz(x->dt) &&
        !dtype_is_fnuz(y->dt))
        return true;
    for (int i = 0; i < 2; i++) {
        bool ok = false;
        for (int k = 0; k < COUNT_OF(allowed); k++)
            ok = ok || a->v[i]->dt == allowed[k];
        /* fp8 goes with fp8: what is wrong is that the types differ */
        ok = ok || (dtype_is_fp8(a->v[i]->dt) && !dtype_is_fnuz(a->v[i]->dt));
        if (!ok) {
            sema_error(s, a->at[i], "'dot' takes int8, fp8, fp16, bf16, fp32 and fp64, "
                       "found %s%s", val_describe(s->a, a->v[i]),
                       dtype_is_fnuz(a->v[i]->dt)
                           ? ", which is not supported in this architecture: convert it"
                           : "");
            return false;
        }
    }
    if (x->dt != y->dt) {
        sema_error(s, a->loc,
                   "'dot' needs operands of one type, found %s and %s; cast one "
                   "of them",
                   val_describe(s->a, x), val_describe(s->a, y));
        return false;
    }
    if (x->dt == DT_UINT8) {
        sema_error(s, a->loc, "'dot' of 8-bit integers takes int8, found uint8");
        return false;
    }
    return true;
}

static bool
check_dot_shapes(Sema *s, Args *a)
{
    Val x = a->v[0], y = a->v[1];
    int r = x->rank;
    if (r != y->rank || r < 2) {
        sema_error(s, a->loc,
                   "'dot' needs two tiles of one rank, at least 2: found %s and "
                   "%s",
                   val_describe(s->a, x), val_describe(s->a, y));
        return false;
    }
    for (int i = 0; i < r - 2; i++)
        if (x->shape[i] != y->shape[i]) {
            sema_error(s, a->loc, "'dot' needs equal batch sizes: %s and %s",
                       shape_str(s->a, val_shape(x)), shape_str(s->a, val_shape(y)));
            return false;
        }
    if (x->shape[r - 1] != y->shape[r - 2]) {
        sema_error(s, a->loc, "'dot' needs inner sizes to agree: %s and %s",
                   shape_str(s->a, val_shape(x)), shape_str(s->a, val_shape(y)));
        if (x->shape[r - 1] == y->shape[r - 1])
            diag_note(&s->s->diag, a->loc, "'tl.trans' of the second one fits");
        else if (x->shape[r - 2] == y->shape[r - 2])
            diag_note(&s->s->diag, a->loc, "'tl.trans' of the first one fits");
        return false;
    }
    int64_t min_k = 256 / dtype_bits(x->dt);
    if (x->shape[r - 1] < min_k) {
        sema_error(s, a->loc, "'dot' of %s found an inner size of %lld. Input shapes "
                   "should have M >= 1, N >= 1 and K >= %lld", dtype_str(s->a, x->dt),
                   (long long)x->shape[r - 1], (long long)min_k);
        return false;
    }
    return true;
}

static bool
dot_precision(Sema *s, Args *a, const char **out)
{
    static const char *const names[] = { "tf32", "tf32x3", "ieee", "bf16x3", "bf16x6" };
    const char *text;
    if (!arg_none(a, 3) && !arg_none(a, 4)) {
        sema_error(s, a->at[4], "give 'input_precision' or 'allow_tf32', not both");
        return false;
    }
    if (!arg_str(s, a, 3, &text))
        return false;
    *out = arg_none(a, 4) || val_truth(a->v[4]) ? "tf32" : "ieee";
    if (!*text)
        return true;
    for (int i = 0; i < COUNT_OF(names); i++)
        if (strcasecmp(text, names[i]) == 0) {
            *out = names[i];
            return true;
        }
    sema_error(s, a->at[3],
               "unknown input_precision '%s': tf32, tf32x3, ieee, bf16x3 and "
               "bf16x6 exist",
               text);
    return false;
}

static DType
dot_result(Sema *s, Args *a)
{
    DType out = DT_FP32, in = a->v[0]->dt;
    if (arg_none(a, 6) && !arg_none(a, 2) && a->v[2]->kind == FE_TENSOR)
        out = a->v[2]->dt;
    if (!arg_none(a, 6) && !arg_dtype(s, a, 6, &out))
        return DT_NONE;
    if (dtype_is_int(in))
        return DT_INT32;
    if (in == DT_FP32 || in == DT_BF16)
        return DT_FP32;
    if (in == DT_FP64)
        return DT_FP64;
    if (out == DT_FP32 || out == DT_FP16)
        return out;
    sema_error(s, a->at[6],
               "out_dtype of 'dot' is fp32 or fp16, found %s; cast the result",
               dtype_str(s->a, out));
    return DT_NONE;
}

/* Rank 4 and more: the leading dimensions become one batch. */
static Val
flatten_batch(Sema *s, Val x, Loc loc)
{
    Shape sh = val_shape(x), to = { .rank = 3, .dim = { 1 } };
    if (x->rank <= 3)
        return x;
    for (int i = 0; i < x->rank - 2; i++)
        to.dim[0] *= sh.dim[i];
    to.dim[1] = sh.dim[x->rank - 2];
    to.dim[2] = sh.dim[x->rank - 1];
    return reshape(s, x, to, false, loc);
}

Val
bi_dot(Sema *s, Args *a)
{
    const char *precision;
    if (!arg_tensor(s, a, 0) || !arg_tensor(s, a, 1) || !check_dot_shapes(s, a) ||
        !check_dot_types(s, a) || !dot_precision(s, a, &precision))
        return val_error();
    DType out = dot_result(s, a);
    if (out == DT_NONE)
        return val_error();
    Shape sh = val_shape(a->v[0]);
    sh.dim[sh.rank - 1] = a->v[1]->shape[sh.rank - 1];
    Val acc;
    if (arg_none(a, 2)) {
        acc = splat(s, const_tensor(s, val_int(s, 0), out, a->loc), sh, a->loc);
    } else {
        if (!arg_tensor(s, a, 2))
            return val_error();
        acc = a->v[2];
        if (acc->dt != out || !shape_eq(val_shape(acc), sh))
            return sema_error(s, a->at[2], "the accumulator of this 'dot' must be %s, "
                              "found %s", type_describe(s->a, out, sh),
                              val_describe(s->a, acc));
    }
    AttrList attrs = { 0 };
    attr_set_str(&s->s->mod, &attrs, ATTR_PRECISION, name_of(&s->s->names, precision));
    int64_t imprecise;
    if (!arg_none(a, 5)) {
        int64_t k = a->v[0]->shape[a->v[0]->rank - 1];
        if (!arg_int(s, a, 5, &imprecise))
            return val_error();
        if (dtype_is_fp8(a->v[0]->dt) && dtype_is_fp8(a->v[1]->dt) && imprecise > k)
            return sema_error(s, a->at[5], "max_num_imprecise_acc (%lld) must be <= K "
                              "(%lld)", (long long)imprecise, (long long)k);
        attr_set_int(&s->s->mod, &attrs, ATTR_MAX_IMPRECISE, imprecise);
    }
    Val x = flatten_batch(s, a->v[0], a->loc), y = flatten_batch(s, a->v[1], a->loc);
    Val c = flatten_batch(s, acc, a->loc);
    if (val_is_error(x) || val_is_error(y) || val_is_error(c))
        return val_error();
    Op *op = build_op(&s->b, OP_DOT, (Value *[]){ x->v, y->v, c->v }, 3, &attrs, NULL, 1);
    return reshape(s, val_tensor(s, op_result(op, 0), out), sh, false, a->loc);
}

Val
bi_logical_and(Sema *s, Args *a)
{
    return arg_tensor(s, a, 0) && arg_tensor(s, a, 1)
               ? tensor_logical(s, true, a->v[0], a->v[1], a->loc)
               : val_error();
}

Val
bi_logical_or(Sema *s, Args *a)
{
    return arg_tensor(s, a, 0) && arg_tensor(s, a, 1)
               ? tensor_logical(s, false, a->v[0], a->v[1], a->loc)
               : val_error();
}

/* Instructions on integers, bits and predicates. One line each: name, type, meaning. The
   format of an entry says what its operands are, results first: w 32 bits, d 64, h 16,
   p a predicate. */
#include "tests/sim/machine.h"

#define RESULT_w(x) (uint32_t)(x)
#define RESULT_d(x) (uint64_t)(x)
#define RESULT_h(x) ((uint32_t)(x) & 0xffff)
#define PLACE_w R32
#define PLACE_d R64
#define PLACE_h R32
#define SLOT_w uint32_t
#define SLOT_d uint64_t
#define SLOT_h uint32_t

static inline int64_t
div_s(int64_t x, int64_t y, int64_t low)
{
    return y == 0 ? -1 : y == -1 ? (x == low ? low : -x) : x / y;
}

static inline int64_t
rem_s(int64_t x, int64_t y)
{
    return y == 0 ? x : y == -1 ? 0 : x % y;
}

static inline uint32_t
prmt(uint32_t a, uint32_t b, uint32_t pick)
{
    uint64_t x = a | (uint64_t)b << 32;
    uint32_t r = 0;
    for (int k = 0; k < 4; k++) {
        uint32_t s = pick >> 4 * k & 15, v = (uint32_t)(x >> 8 * (s & 7)) & 255;
        if (s & 8)
            v = v & 128 ? 255 : 0;
        r |= v << 8 * k;
    }
    return r;
}

static inline uint64_t
bfe(uint64_t a, uint32_t at, uint32_t n, int bits, bool is_signed)
{
    uint64_t sign = 0;
    at &= 255, n &= 255;
    if (is_signed && n) {
        uint32_t top = at + n - 1 < (uint32_t)bits - 1 ? at + n - 1 : (uint32_t)bits - 1;
        sign = a >> top & 1;
    }
    uint64_t r = at < (uint32_t)bits ? a >> at : 0;
    if (at < (uint32_t)bits && sign && at)
        r |= ~(uint64_t)0 << (bits - (int)at);
    if (at >= (uint32_t)bits)
        r = sign ? ~(uint64_t)0 : 0;
    if (n < (uint32_t)bits)
        r = (r & (((uint64_t)1 << n) - 1)) | (sign ? ~(uint64_t)0 << n : 0);
    return r;
}

static inline uint64_t
bfi(uint64_t a, uint64_t b, uint32_t at, uint32_t n, int bits)
{
    at &= 255, n &= 255;
    if (!n || at >= (uint32_t)bits)
        return b;
    uint64_t m = n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
    return (b & ~(m << at)) | (a & m) << at;
}

static inline uint32_t
brev32(uint32_t x)
{
    uint32_t r = 0;
    for (int k = 0; k < 32; k++)
        r |= (x >> k & 1) << (31 - k);
    return r;
}

static inline uint64_t
brev64(uint64_t x)
{
    return (uint64_t)brev32((uint32_t)x) << 32 | brev32((uint32_t)(x >> 32));
}

static inline uint32_t
lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    uint32_t r = 0;
    for (uint32_t k = 0; k < 8; k++)
        if (table >> k & 1)
            r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return r;
}

static inline uint32_t
find_high(uint64_t x, int bits, bool is_signed)
{
    if (is_signed && x >> (bits - 1) & 1)
        x = ~x & (bits == 64 ? ~(uint64_t)0 : 0xffffffffu);
    return x ? 63 - (uint32_t)__builtin_clzll(x) : 0xffffffff;
}

#define SHL(x, y, n) ((y) >= n ? 0 : (x) << (y))
#define SHR(x, y, n) ((y) >= n ? 0 : (x) >> (y))
#define SAR(x, y, n) ((x) >> ((y) >= n ? n - 1 : (y)))
#define MIN(x, y) ((x) < (y) ? (x) : (y))
#define MAX(x, y) ((x) > (y) ? (x) : (y))
#define ABS(x) ((x) < 0 ? 0 - (x) : (x))

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

/* U: one source; B: two; S: a shift, whose count has 32 bits; T: three of one kind */
#define LIST                                                                             \
    B(add_w, "add.s32", w, uint32_t, x + y)                                              \
    B(addu_w, "add.u32", w, uint32_t, x + y)                                             \
    B(add_d, "add.s64", d, uint64_t, x + y)                                              \
    B(addu_d, "add.u64", d, uint64_t, x + y)                                             \
    B(add_h, "add.s16", h, uint16_t, x + y)                                              \
    B(addu_h, "add.u16", h, uint16_t, x + y)                                             \
    B(sub_w, "sub.s32", w, uint32_t, x - y)                                              \
    B(subu_w, "sub.u32", w, uint32_t, x - y)                                             \
    B(sub_d, "sub.s64", d, uint64_t, x - y)                                              \
    B(subu_d, "sub.u64", d, uint64_t, x - y)                                             \
    B(sub_h, "sub.s16", h, uint16_t, x - y)                                              \
    B(subu_h, "sub.u16", h, uint16_t, x - y)                                             \
    B(mul_w, "mul.lo.s32", w, uint32_t, x *y)                                            \
    B(mulu_w, "mul.lo.u32", w, uint32_t, x *y)                                           \
    B(mul_d, "mul.lo.s64", d, uint64_t, x *y)                                            \
    B(mulu_d, "mul.lo.u64", d, uint64_t, x *y)                                           \
    B(mul_h, "mul.lo.s16", h, uint16_t, (uint32_t)x *y)                                  \
    B(mulu_h, "mul.lo.u16", h, uint16_t, (uint32_t)x *y)                                 \
    B(hi_h, "mul.hi.s16", h, int16_t, (x * y) >> 16)                                     \
    B(hiu_h, "mul.hi.u16", h, uint16_t, ((uint32_t)x * y) >> 16)                         \
    B(hi_w, "mul.hi.s32", w, int32_t, ((int64_t)x * y) >> 32)                            \
    B(hiu_w, "mul.hi.u32", w, uint32_t, ((uint64_t)x * y) >> 32)                         \
    B(hi_d, "mul.hi.s64", d, int64_t, ((s128)x * y) >> 64)                               \
    B(hiu_d, "mul.hi.u64", d, uint64_t, ((u128)x * y) >> 64)                             \
    B(div_w, "div.s32", w, int32_t, div_s(x, y, INT32_MIN))                              \
    B(divu_w, "div.u32", w, uint32_t, y ? x / y : 0xffffffff)                            \
    B(div_d, "div.s64", d, int64_t, div_s(x, y, INT64_MIN))                              \
    B(divu_d, "div.u64", d, uint64_t, y ? x / y : ~(uint64_t)0)                          \
    B(div_h, "div.s16", h, int16_t, div_s(x, y, INT16_MIN))                              \
    B(divu_h, "div.u16", h, uint16_t, y ? x / y : 0xffff)                                \
    B(rem_w, "rem.s32", w, int32_t, rem_s(x, y))                                         \
    B(remu_w, "rem.u32", w, uint32_t, y ? x % y : x)                                     \
    B(rem_d, "rem.s64", d, int64_t, rem_s(x, y))                                         \
    B(remu_d, "rem.u64", d, uint64_t, y ? x % y : x)                                     \
    B(rem_h, "rem.s16", h, int16_t, rem_s(x, y))                                         \
    B(remu_h, "rem.u16", h, uint16_t, y ? x % y : x)                                     \
    B(min_w, "min.s32", w, int32_t, MIN(x, y))                                           \
    B(minu_w, "min.u32", w, uint32_t, MIN(x, y))                                         \
    B(min_d, "min.s64", d, int64_t, MIN(x, y))                                           \
    B(minu_d, "min.u64", d, uint64_t, MIN(x, y))                                         \
    B(min_h, "min.s16", h, int16_t, MIN(x, y))                                           \
    B(minu_h, "min.u16", h, uint16_t, MIN(x, y))                                         \
    B(max_w, "max.s32", w, int32_t, MAX(x, y))                                           \
    B(maxu_w, "max.u32", w, uint32_t, MAX(x, y))                                         \
    B(max_d, "max.s64", d, int64_t, MAX(x, y))                                           \
    B(maxu_d, "max.u64", d, uint64_t, MAX(x, y))                                         \
    B(max_h, "max.s16", h, int16_t, MAX(x, y))                                           \
    B(maxu_h, "max.u16", h, uint16_t, MAX(x, y))                                         \
    B(minr_w, "min.relu.s32", w, int32_t, MAX(0, MIN(x, y)))                             \
    B(maxr_w, "max.relu.s32", w, int32_t, MAX(0, MAX(x, y)))                             \
    B(and_w, "and.b32", w, uint32_t, x &y)                                               \
    B(and_d, "and.b64", d, uint64_t, x &y)                                               \
    B(and_h, "and.b16", h, uint16_t, x &y)                                               \
    B(or_w, "or.b32", w, uint32_t, x | y)                                                \
    B(or_d, "or.b64", d, uint64_t, x | y)                                                \
    B(or_h, "or.b16", h, uint16_t, x | y)                                                \
    B(xor_w, "xor.b32", w, uint32_t, x ^ y)                                              \
    B(xor_d, "xor.b64", d, uint64_t, x ^ y)                                              \
    B(xor_h, "xor.b16", h, uint16_t, x ^ y)                                              \
    U(not_w, "not.b32", w, uint32_t, ~x)                                                 \
    U(not_d, "not.b64", d, uint64_t, ~x)                                                 \
    U(not_h, "not.b16", h, uint16_t, ~x)                                                 \
    U(neg_w, "neg.s32", w, uint32_t, 0 - x)                                              \
    U(neg_d, "neg.s64", d, uint64_t, 0 - x)                                              \
    U(neg_h, "neg.s16", h, uint16_t, 0 - x)                                              \
    U(abs_w, "abs.s32", w, int32_t, x < 0 ? 0 - (uint32_t)x : (uint32_t)x)               \
    U(abs_d, "abs.s64", d, int64_t, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)               \
    U(abs_h, "abs.s16", h, int16_t, ABS(x))                                              \
    U(cnot_w, "cnot.b32", w, uint32_t, !x)                                               \
    U(brev_w, "brev.b32", w, uint32_t, brev32(x))                                        \
    U(brev_d, "brev.b64", d, uint64_t, brev64(x))                                        \
    U(popc_w, "popc.b32", w, uint32_t, __builtin_popcount(x))                            \
    U(clz_w, "clz.b32", w, uint32_t, x ? __builtin_clz(x) : 32)                          \
    U(find_w, "bfind.u32", w, uint32_t, find_high(x, 32, false))                         \
    U(finds_w, "bfind.s32", w, uint32_t, find_high(x, 32, true))                         \
    S(shl_w, "shl.b32", w, uint32_t, SHL(x, y, 32))                                      \
    S(shl_d, "shl.b64", d, uint64_t, SHL(x, y, 64))                                      \
    S(shl_h, "shl.b16", h, uint16_t, SHL((uint32_t)x, y, 16))                            \
    S(shr_w, "shr.u32", w, uint32_t, SHR(x, y, 32))                                      \
    S(shrb_w, "shr.b32", w, uint32_t, SHR(x, y, 32))                                     \
    S(shr_d, "shr.u64", d, uint64_t, SHR(x, y, 64))                                      \
    S(shrb_d, "shr.b64", d, uint64_t, SHR(x, y, 64))                                     \
    S(shr_h, "shr.u16", h, uint16_t, SHR(x, y, 16))                                      \
    S(shrb_h, "shr.b16", h, uint16_t, SHR(x, y, 16))                                     \
    S(sar_w, "shr.s32", w, int32_t, SAR(x, y, 32))                                       \
    S(sar_d, "shr.s64", d, int64_t, SAR(x, y, 64))                                       \
    S(sar_h, "shr.s16", h, int16_t, SAR(x, y, 16))                                       \
    T(mad_w, "mad.lo.s32", "wwww", w, w, uint32_t, x *y + z)                             \
    T(madu_w, "mad.lo.u32", "wwww", w, w, uint32_t, x *y + z)                            \
    T(mad_d, "mad.lo.s64", "dddd", d, d, uint64_t, x *y + z)                             \
    T(madu_d, "mad.lo.u64", "dddd", d, d, uint64_t, x *y + z)                            \
    T(mad_h, "mad.lo.s16", "hhhh", h, h, uint16_t, (uint32_t)x *y + z)                   \
    T(madu_h, "mad.lo.u16", "hhhh", h, h, uint16_t, (uint32_t)x *y + z)                  \
    T(madhi_w, "mad.hi.s32", "wwww", w, w, int32_t,                                      \
      (uint32_t)(((int64_t)x * y) >> 32) + (uint32_t)z)                                  \
    T(madhiu_w, "mad.hi.u32", "wwww", w, w, uint32_t,                                    \
      (uint32_t)(((uint64_t)x * y) >> 32) + z)                                           \
    T(prmt_w, "prmt.b32", "wwww", w, w, uint32_t, prmt(x, y, z))                         \
    T(shfl_w, "shf.l.wrap.b32", "wwww", w, w, uint32_t,                                  \
      z & 31 ? y << (z & 31) | x >> (32 - (z & 31)) : y)                                 \
    T(shfr_w, "shf.r.wrap.b32", "wwww", w, w, uint32_t,                                  \
      z & 31 ? x >> (z & 31) | y << (32 - (z & 31)) : x)                                 \
    T(shflc_w, "shf.l.clamp.b32", "wwww", w, w, uint32_t,                                \
      z >= 32 ? x : z ? y << z | x >> (32 - z) : y)                                      \
    T(shfrc_w, "shf.r.clamp.b32", "wwww", w, w, uint32_t,                                \
      z >= 32 ? y : z ? x >> z | y << (32 - z) : x)                                      \
    T(bfe_w, "bfe.u32", "wwww", w, w, uint32_t, bfe(x, y, z, 32, false))                 \
    T(bfes_w, "bfe.s32", "wwww", w, w, uint32_t, bfe(x, y, z, 32, true))                 \
    T(dp4a_w, "dp4a.s32.s32", "wwww", w, w, uint32_t,                                    \
      z + (uint32_t)((int8_t)x * (int8_t)y + (int8_t)(x >> 8) * (int8_t)(y >> 8) +       \
                     (int8_t)(x >> 16) * (int8_t)(y >> 16) +                             \
                     (int8_t)(x >> 24) * (int8_t)(y >> 24)))

#define U(id, name, k, type, expr)                                                       \
    static void id(Warp *w, const Insn *i, uint32_t mask)                                \
    {                                                                                    \
        SLOT_##k *d = PLACE_##k(w, i->d);                                                \
        const SLOT_##k *pa = PLACE_##k(w, i->a);                                         \
        EACH(mask, type x = (type)pa[l]; d[l] = RESULT_##k(expr));                       \
    }
#define B(id, name, k, type, expr)                                                       \
    static void id(Warp *w, const Insn *i, uint32_t mask)                                \
    {                                                                                    \
        SLOT_##k *d = PLACE_##k(w, i->d);                                                \
        const SLOT_##k *pa = PLACE_##k(w, i->a), *pb = PLACE_##k(w, i->b);               \
        EACH(mask, type x = (type)pa[l]; type y = (type)pb[l]; d[l] = RESULT_##k(expr)); \
    }
#define S(id, name, k, type, expr)                                                       \
    static void id(Warp *w, const Insn *i, uint32_t mask)                                \
    {                                                                                    \
        SLOT_##k *d = PLACE_##k(w, i->d);                                                \
        const SLOT_##k *pa = PLACE_##k(w, i->a);                                         \
        const uint32_t *pb = R32(w, i->b);                                               \
        EACH(mask, type x = (type)pa[l]; uint32_t y = pb[l]; d[l] = RESULT_##k(expr));   \
    }
#define T(id, name, format, k, kc, type, expr)                                           \
    static void id(Warp *w, const Insn *i, uint32_t mask)                                \
    {                                                                                    \
        SLOT_##k *d = PLACE_##k(w, i->d);                                                \
        const SLOT_##k *pa = PLACE_##k(w, i->a), *pb = PLACE_##k(w, i->b),               \
                       *pc = PLACE_##k(w, i->c);                                         \
        EACH(mask, type x = (type)pa[l]; type y = (type)pb[l]; type z = (type)pc[l];     \
             d[l] = RESULT_##k(expr));                                                   \
    }
LIST
#undef U
#undef B
#undef S
#undef T

/* Results wider or narrower than sources. */
#define MIXED(id, td, ts, Rd, Rs, expr)                                                  \
    static void id(Warp *w, const Insn *i, uint32_t mask)                                \
    {                                                                                    \
        td *d = Rd(w, i->d);                                                             \
        EACH(mask, d[l] = (expr));                                                       \
    }
#define A_(R, t) ((t)R(w, i->a)[l])
#define B_(R, t) ((t)R(w, i->b)[l])
#define C_(R, t) ((t)R(w, i->c)[l])
MIXED(wide_sw, uint64_t, , R64, ,
      (uint64_t)((int64_t)A_(R32, int32_t) * B_(R32, int32_t)))
MIXED(wide_uw, uint64_t, , R64, , (uint64_t)A_(R32, uint32_t) * B_(R32, uint32_t))
MIXED(wide_sh, uint32_t, , R32, , (uint32_t)(A_(R32, int16_t) * B_(R32, int16_t)))
MIXED(wide_uh, uint32_t, , R32, , (uint32_t)A_(R32, uint16_t) * B_(R32, uint16_t))
MIXED(madw_sw, uint64_t, , R64, ,
      (uint64_t)((int64_t)A_(R32, int32_t) * B_(R32, int32_t)) + C_(R64, uint64_t))
MIXED(madw_uw, uint64_t, , R64, ,
      (uint64_t)A_(R32, uint32_t) * B_(R32, uint32_t) + C_(R64, uint64_t))
MIXED(madw_sh, uint32_t, , R32, ,
      (uint32_t)(A_(R32, int16_t) * B_(R32, int16_t)) + C_(R32, uint32_t))
MIXED(madw_uh, uint32_t, , R32, ,
      (uint32_t)A_(R32, uint16_t) * B_(R32, uint16_t) + C_(R32, uint32_t))
MIXED(popc_d, uint32_t, , R32, , (uint32_t)__builtin_popcountll(A_(R64, uint64_t)))
MIXED(clz_d, uint32_t, , R32, ,
      A_(R64, uint64_t) ? (uint32_t)__builtin_clzll(A_(R64, uint64_t)) : 64)
MIXED(find_d, uint32_t, , R32, , find_high(A_(R64, uint64_t), 64, false))
MIXED(bfe_d, uint64_t, , R64, ,
      bfe(A_(R64, uint64_t), B_(R32, uint32_t), C_(R32, uint32_t), 64, false))
MIXED(bfes_d, uint64_t, , R64, ,
      bfe(A_(R64, uint64_t), B_(R32, uint32_t), C_(R32, uint32_t), 64, true))
MIXED(bfi_w, uint32_t, , R32, ,
      (uint32_t)bfi(A_(R32, uint32_t), B_(R32, uint32_t), C_(R32, uint32_t),
                    R32(w, i->r[4])[l], 32))
MIXED(bfi_d, uint64_t, , R64, ,
      bfi(A_(R64, uint64_t), B_(R64, uint64_t), C_(R32, uint32_t), R32(w, i->r[4])[l],
          64))
MIXED(lop3_w, uint32_t, , R32, ,
      lop3(A_(R32, uint32_t), B_(R32, uint32_t), C_(R32, uint32_t), R32(w, i->r[4])[l]))
MIXED(sad_w, uint32_t, , R32, ,
      C_(R32, uint32_t) + (A_(R32, int32_t) < B_(R32, int32_t)
                               ? B_(R32, uint32_t) - A_(R32, uint32_t)
                               : A_(R32, uint32_t) - B_(R32, uint32_t)))
MIXED(mov_w, uint32_t, , R32, , A_(R32, uint32_t))
MIXED(mov_d, uint64_t, , R64, , A_(R64, uint64_t))

/* ---- predicates */

#define COMPARE(id, R, type, op)                                                         \
    static void id(Warp *w, const Insn *i, uint32_t mask)                                \
    {                                                                                    \
        uint32_t r = 0;                                                                  \
        EACH(mask, r |= (uint32_t)(A_(R, type) op B_(R, type)) << l);                    \
        PRED(w, i->d) = (PRED(w, i->d) & ~mask) | (r & mask);                            \
    }
#define COMPARES(k, R, type)                                                             \
    COMPARE(eq_##k, R, type, ==)                                                         \
    COMPARE(ne_##k, R, type, !=)                                                         \
    COMPARE(lt_##k, R, type, <)                                                          \
    COMPARE(le_##k, R, type, <=)                                                         \
    COMPARE(gt_##k, R, type, >)                                                          \
    COMPARE(ge_##k, R, type, >=)
COMPARES(uw, R32, uint32_t)
COMPARES(sw, R32, int32_t)
COMPARES(ud, R64, uint64_t)
COMPARES(sd, R64, int64_t)
COMPARES(uh, R32, uint16_t)
COMPARES(sh, R32, int16_t)

#define LOGIC(id, expr)                                                                  \
    static void id(Warp *w, const Insn *i, uint32_t mask)                                \
    {                                                                                    \
        uint32_t x = PRED(w, i->a), y = PRED(w, i->b);                                   \
        (void)y;                                                                         \
        PRED(w, i->d) = (PRED(w, i->d) & ~mask) | ((expr) & mask);                       \
    }
LOGIC(and_p, x &y)
LOGIC(or_p, x | y)
LOGIC(xor_p, x ^ y)
LOGIC(not_p, ~x)
LOGIC(mov_p, x)

static void
selp_w(Warp *w, const Insn *i, uint32_t mask)
{
    uint32_t p = PRED(w, i->c);
    EACH(mask, R32(w, i->d)[l] = p >> l & 1 ? A_(R32, uint32_t) : B_(R32, uint32_t));
}

static void
selp_d(Warp *w, const Insn *i, uint32_t mask)
{
    uint32_t p = PRED(w, i->c);
    EACH(mask, R64(w, i->d)[l] = p >> l & 1 ? A_(R64, uint64_t) : B_(R64, uint64_t));
}

#define SETPS(k, f, suffix_u, suffix_s, suffix_b)                                        \
    {"setp.eq." suffix_b, f, eq_u##k, 0}, {"setp.ne." suffix_b, f, ne_u##k, 0},          \
        {"setp.eq." suffix_s, f, eq_s##k, 0}, {"setp.ne." suffix_s, f, ne_s##k, 0},      \
        {"setp.eq." suffix_u, f, eq_u##k, 0}, {"setp.ne." suffix_u, f, ne_u##k, 0},      \
        {"setp.lt." suffix_u, f, lt_u##k, 0}, {"setp.le." suffix_u, f, le_u##k, 0},      \
        {"setp.gt." suffix_u, f, gt_u##k, 0}, {"setp.ge." suffix_u, f, ge_u##k, 0},      \
        {"setp.lt." suffix_s, f, lt_s##k, 0}, {"setp.le." suffix_s, f, le_s##k, 0},      \
        {"setp.gt." suffix_s, f, gt_s##k, 0}, {"setp.ge." suffix_s, f, ge_s##k, 0}

#define FORMAT2_w "ww"
#define FORMAT2_d "dd"
#define FORMAT2_h "hh"
#define FORMAT3_w "www"
#define FORMAT3_d "ddd"
#define FORMAT3_h "hhh"
#define FORMATS_w "www"
#define FORMATS_d "ddw"
#define FORMATS_h "hhw"
#define U(id, name, k, type, expr) {name, FORMAT2_##k, id, 0},
#define B(id, name, k, type, expr) {name, FORMAT3_##k, id, 0},
#define S(id, name, k, type, expr) {name, FORMATS_##k, id, 0},
#define T(id, name, format, k, kc, type, expr) {name, format, id, 0},
const OpEntry ops_int[] = {
    LIST SETPS(w, "pww", "u32", "s32", "b32"),
    SETPS(d, "pdd", "u64", "s64", "b64"),
    SETPS(h, "phh", "u16", "s16", "b16"),
    {"mul.wide.s32", "dww", wide_sw, 0},
    {"mul.wide.u32", "dww", wide_uw, 0},
    {"mul.wide.s16", "whh", wide_sh, 0},
    {"mul.wide.u16", "whh", wide_uh, 0},
    {"mad.wide.s32", "dwwd", madw_sw, 0},
    {"mad.wide.u32", "dwwd", madw_uw, 0},
    {"mad.wide.s16", "whhw", madw_sh, 0},
    {"mad.wide.u16", "whhw", madw_uh, 0},
    {"popc.b64", "wd", popc_d, 0},
    {"clz.b64", "wd", clz_d, 0},
    {"bfind.u64", "wd", find_d, 0},
    {"bfe.u64", "ddww", bfe_d, 0},
    {"bfe.s64", "ddww", bfes_d, 0},
    {"bfi.b32", "wwwww", bfi_w, 0},
    {"bfi.b64", "dddww", bfi_d, 0},
    {"lop3.b32", "wwwww", lop3_w, 0},
    {"sad.s32", "wwww", sad_w, 0},
    {"mov.b32", "ww", mov_w, IS_MOVE},
    {"mov.u32", "ww", mov_w, IS_MOVE},
    {"mov.s32", "ww", mov_w, IS_MOVE},
    {"mov.f32", "ww", mov_w, IS_MOVE},
    {"mov.b16", "hh", mov_w, 0},
    {"mov.u16", "hh", mov_w, 0},
    {"mov.b64", "dd", mov_d, 0},
    {"mov.u64", "dd", mov_d, 0},
    {"mov.s64", "dd", mov_d, 0},
    {"mov.f64", "dd", mov_d, 0},
    {"mov.pred", "pp", mov_p, 0},
    {"and.pred", "ppp", and_p, 0},
    {"or.pred", "ppp", or_p, 0},
    {"xor.pred", "ppp", xor_p, 0},
    {"not.pred", "pp", not_p, 0},
    {"selp.b32", "wwwp", selp_w, 0},
    {"selp.u32", "wwwp", selp_w, 0},
    {"selp.s32", "wwwp", selp_w, 0},
    {"selp.f32", "wwwp", selp_w, 0},
    {"selp.b16", "hhhp", selp_w, 0},
    {"selp.b64", "dddp", selp_d, 0},
    {"selp.f64", "dddp", selp_d, 0},
    {NULL, NULL, NULL, 0},
};

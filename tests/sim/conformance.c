/* See conformance.h. */
#include "tests/sim/conformance.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/number.h"

#define I2(t, k) {t " %0, %1;", k, 0, 0}
#define I3(t, k) {t " %0, %1, %2;", k, 0, 0}
#define I4(t, k) {t " %0, %1, %2, %3;", k, 0, 0}
#define SET(t, k)                                                                        \
    I3("setp.eq." t, k), I3("setp.ne." t, k), I3("setp.lt." t, k), I3("setp.le." t, k),  \
        I3("setp.gt." t, k), I3("setp.ge." t, k)
#define SETU(t, k)                                                                       \
    I3("setp.equ." t, k), I3("setp.neu." t, k), I3("setp.ltu." t, k),                    \
        I3("setp.leu." t, k), I3("setp.gtu." t, k), I3("setp.geu." t, k),                \
        I3("setp.num." t, k), I3("setp.nan." t, k)
#define INTS(s, u, b, k1, k2, ks, kp)                                                    \
    I3("add." s, k2), I3("sub." s, k2), I3("mul.lo." s, k2), I3("mul.hi." s, k2),        \
        I3("mul.hi." u, k2), I3("div." s, k2), I3("div." u, k2), I3("rem." s, k2),       \
        I3("rem." u, k2), I3("min." s, k2), I3("min." u, k2), I3("max." s, k2),          \
        I3("max." u, k2), I3("and." b, k2), I3("or." b, k2), I3("xor." b, k2),           \
        I2("not." b, k1), I2("neg." s, k1), I2("abs." s, k1), I3("shl." b, ks),          \
        I3("shr." s, ks), I3("shr." u, ks), SET(s, kp), I3("setp.lt." u, kp),            \
        I3("setp.ge." u, kp)
#define TO(t, k)                                                                         \
    I2("cvt.rzi." t ".f32", k "f"), I2("cvt.rni." t ".f32", k "f"),                      \
        I2("cvt.rmi." t ".f32", k "f"), I2("cvt.rpi." t ".f32", k "f"),                  \
        I2("cvt.rzi." t ".f64", k "F"), I2("cvt.rni." t ".f64", k "F"),                  \
        I2("cvt.rzi." t ".f16", k "H")
#define FROM(t, k)                                                                       \
    I2("cvt.rn.f32." t, "f" k), I2("cvt.rz.f32." t, "f" k), I2("cvt.rn.f64." t, "F" k),  \
        I2("cvt.rn.f16." t, "H" k)
#define HALVES(t, k2, k3, k4)                                                            \
    I3("add.rn." t, k3), I3("sub.rn." t, k3), I3("mul.rn." t, k3), I4("fma.rn." t, k4),  \
        I2("neg." t, k2), I2("abs." t, k2), I3("min." t, k3), I3("max." t, k3),          \
        I3("min.NaN." t, k3), I3("max.NaN." t, k3)

const ConfInsn conf_insns[] = {
    INTS("s32", "u32", "b32", "ww", "www", "wws", "pww"),
    INTS("s64", "u64", "b64", "dd", "ddd", "dds", "pdd"),
    INTS("s16", "u16", "b16", "hh", "hhh", "hhs", "phh"),
    I3("mul.wide.s32", "dww"),
    I3("mul.wide.u32", "dww"),
    I3("mul.wide.s16", "whh"),
    I3("mul.wide.u16", "whh"),
    I4("mad.lo.s32", "wwww"),
    I4("mad.hi.s32", "wwww"),
    I4("mad.hi.u32", "wwww"),
    I4("mad.wide.s32", "dwwd"),
    I4("mad.wide.u32", "dwwd"),
    I4("mad.lo.s64", "dddd"),
    I3("min.relu.s32", "www"),
    I3("max.relu.s32", "www"),
    I2("popc.b32", "ww"),
    I2("popc.b64", "wd"),
    I2("clz.b32", "ww"),
    I2("clz.b64", "wd"),
    I2("brev.b32", "ww"),
    I2("brev.b64", "dd"),
    I2("bfind.u32", "ww"),
    I2("bfind.s32", "ww"),
    I4("prmt.b32", "wwww"),
    I4("shf.l.wrap.b32", "wwws"),
    I4("shf.r.wrap.b32", "wwws"),
    I4("shf.l.clamp.b32", "wwws"),
    I4("shf.r.clamp.b32", "wwws"),
    I4("bfe.u32", "wwss"),
    I4("bfe.s32", "wwss"),
    I4("bfe.u64", "ddss"),
    I4("bfe.s64", "ddss"),
    {"bfi.b32 %0, %1, %2, %3, %4;", "wwwss", 0, 0},
    {"bfi.b64 %0, %1, %2, %3, %4;", "dddss", 0, 0},
    {"lop3.b32 %0, %1, %2, %3, 0x96;", "wwww", 0, 0},
    {"lop3.b32 %0, %1, %2, %3, 0xd8;", "wwww", 0, 0},
    I4("sad.s32", "wwww"),
    I3("add.rn.f32", "fff"),
    I3("sub.rn.f32", "fff"),
    I3("mul.rn.f32", "fff"),
    I4("fma.rn.f32", "ffff"),
    I3("div.rn.f32", "fff"),
    I2("rcp.rn.f32", "ff"),
    I2("sqrt.rn.f32", "ff"),
    I3("add.rn.ftz.f32", "fff"),
    I3("mul.rn.ftz.f32", "fff"),
    I4("fma.rn.ftz.f32", "ffff"),
    I3("add.sat.f32", "fff"),
    I4("fma.rn.sat.f32", "ffff"),
    I3("min.f32", "fff"),
    I3("max.f32", "fff"),
    I3("min.NaN.f32", "fff"),
    I3("max.NaN.f32", "fff"),
    I2("neg.f32", "ff"),
    I2("abs.f32", "ff"),
    I3("copysign.f32", "fff"),
    SET("f32", "pff"),
    SETU("f32", "pff"),
    SET("ftz.f32", "pff"),
    I3("add.rn.f64", "FFF"),
    I3("mul.rn.f64", "FFF"),
    I4("fma.rn.f64", "FFFF"),
    I3("div.rn.f64", "FFF"),
    I2("rcp.rn.f64", "FF"),
    I2("sqrt.rn.f64", "FF"),
    I3("min.f64", "FFF"),
    I3("max.f64", "FFF"),
    I2("neg.f64", "FF"),
    I2("abs.f64", "FF"),
    I3("copysign.f64", "FFF"),
    SET("f64", "pFF"),
    SETU("f64", "pFF"),
    {"div.full.f32 %0, %1, %2;", "fff", 2, 0x1p-126},
    {"rcp.approx.ftz.f32 %0, %1;", "ff", 1, 0x1p-126},
    {"sqrt.approx.f32 %0, %1;", "ff", 2, 0x1p-126},
    {"rsqrt.approx.f32 %0, %1;", "ff", 2, 0x1p-126},
    {"ex2.approx.f32 %0, %1;", "ff", 2, 0x1p-126},
    {"ex2.approx.ftz.f32 %0, %1;", "ff", 2, 0x1p-125},
    {"lg2.approx.f32 %0, %1;", "ff", 2, 0x1p-22},
    HALVES("f16", "HH", "HHH", "HHHH"),
    HALVES("f16x2", "xx", "xxx", "xxxx"),
    HALVES("bf16", "BB", "BBB", "BBBB"),
    HALVES("bf16x2", "yy", "yyy", "yyyy"),
    I4("fma.rn.relu.f16", "HHHH"),
    SET("f16", "pHH"),
    SET("bf16", "pBB"),
    /* integers */
    I2("cvt.u64.u32", "dw"),
    I2("cvt.s64.s32", "dw"),
    I2("cvt.s8.s32", "ww"),
    I2("cvt.u8.u32", "ww"),
    I2("cvt.s16.s8", "hh"),
    I2("cvt.s32.s8", "ww"),
    I2("cvt.s32.s16", "wh"),
    I2("cvt.u32.u16", "wh"),
    I2("cvt.u16.u32", "hw"),
    I2("cvt.s64.s8", "dw"),
    I2("cvt.sat.s8.s32", "ww"),
    I2("cvt.sat.u8.s32", "ww"),
    I2("cvt.sat.s16.s32", "hw"),
    I2("cvt.sat.u32.s64", "wd"),
    I2("cvt.sat.s32.u64", "wd"),
    TO("s32", "w"),
    TO("u32", "w"),
    TO("s64", "d"),
    TO("u64", "d"),
    TO("s16", "h"),
    TO("u16", "h"),
    I2("cvt.rzi.s8.f32", "wf"),
    I2("cvt.rzi.u8.f32", "wf"),
    FROM("s32", "w"),
    FROM("u32", "w"),
    FROM("s64", "d"),
    FROM("u64", "d"),
    I2("cvt.rn.f16.s16", "Hh"),
    /* floats */
    I2("cvt.f32.f16", "fH"),
    I2("cvt.f64.f16", "FH"),
    I2("cvt.f64.f32", "Ff"),
    I2("cvt.rn.f32.f64", "fF"),
    I2("cvt.rz.f32.f64", "fF"),
    I2("cvt.rn.f16.f32", "Hf"),
    I2("cvt.rz.f16.f32", "Hf"),
    I2("cvt.rm.f16.f32", "Hf"),
    I2("cvt.rp.f16.f32", "Hf"),
    I2("cvt.rn.f16.f64", "HF"),
    I2("cvt.rn.bf16.f32", "Bf"),
    I2("cvt.rz.bf16.f32", "Bf"),
    I2("cvt.rn.relu.bf16.f32", "Bf"),
    I2("cvt.rni.f32.f32", "ff"),
    I2("cvt.rzi.f32.f32", "ff"),
    I2("cvt.rmi.f32.f32", "ff"),
    I2("cvt.rpi.f32.f32", "ff"),
    I2("cvt.rmi.f64.f64", "FF"),
    I2("cvt.rni.f64.f64", "FF"),
    I2("cvt.sat.f32.f32", "ff"),
    I2("cvt.rna.tf32.f32", "wf"),
    I3("cvt.rn.f16x2.f32", "xff"),
    I3("cvt.rz.f16x2.f32", "xff"),
    I3("cvt.rn.relu.f16x2.f32", "xff"),
    I3("cvt.rn.bf16x2.f32", "yff"),
    I3("cvt.rz.bf16x2.f32", "yff"),
    I3("cvt.rn.satfinite.e4m3x2.f32", "bff"),
    I3("cvt.rn.satfinite.e5m2x2.f32", "bff"),
    I2("cvt.rn.satfinite.e4m3x2.f16x2", "bx"),
    I2("cvt.rn.satfinite.e5m2x2.f16x2", "bx"),
    I2("cvt.rn.f16x2.e4m3x2", "xb"),
    I2("cvt.rn.f16x2.e5m2x2", "xb"),
};

int
conf_count(void)
{
    return (int)(sizeof conf_insns / sizeof *conf_insns);
}

/* ---------------------------------------------------------------- a kernel */

static int
bits_of(char kind)
{
    return strchr("dF", kind) ? 64 : strchr("hHBb", kind) ? 16 : 32;
}

static const char *
reg_of(char kind)
{
    return bits_of(kind) == 64 ? "%rd" : bits_of(kind) == 16 ? "%h" : "%r";
}

void
conf_ptx(const ConfInsn *i, char *to, size_t size)
{
    size_t n = (size_t)snprintf(
        to, size,
        ".version 8.1\n.target sm_90\n.address_size 64\n"
        ".visible .entry f(\n\t.param .u64 f_param_0,\n\t.param .u64 f_param_1\n)\n"
        ".reqntid %d\n{\n\t.reg .b16 %%h<8>;\n\t.reg .b32 %%r<12>;\n"
        "\t.reg .b64 %%rd<12>;\n\t.reg .pred %%p<2>;\n"
        "\tld.param.u64 %%rd8, [f_param_0];\n\tld.param.u64 %%rd9, [f_param_1];\n"
        "\tmov.u32 %%r8, %%tid.x;\n\tmov.u32 %%r9, %%ctaid.x;\n"
        "\tmad.lo.s32 %%r8, %%r9, %d, %%r8;\n\tmul.wide.u32 %%rd10, %%r8, %d;\n"
        "\tadd.s64 %%rd8, %%rd8, %%rd10;\n\tmul.wide.u32 %%rd10, %%r8, 8;\n"
        "\tadd.s64 %%rd9, %%rd9, %%rd10;\n",
        CONF_THREADS, CONF_THREADS, 8 * CONF_SLOTS);
    for (int k = 1; i->kinds[k]; k++)
        n += (size_t)snprintf(to + n, size - n, "\tld.global.b%d %s%d, [%%rd8+%d];\n",
                              bits_of(i->kinds[k]), reg_of(i->kinds[k]), k, 8 * (k - 1));
    bool pred = i->kinds[0] == 'p';
    to[n++] = '\t';
    for (const char *s = i->text; *s; s++) {
        if (*s != '%') {
            to[n++] = *s;
            continue;
        }
        int k = *++s - '0';
        const char *reg = pred && !k ? "%p" : reg_of(i->kinds[k]);
        n += (size_t)snprintf(to + n, size - n, "%s%d", reg, k);
    }
    if (pred)
        n += (size_t)snprintf(to + n, size - n, "\n\tselp.b32 %%r0, 1, 0, %%p0;");
    snprintf(to + n, size - n, "\n\tst.global.b%d [%%rd9], %s0;\n\tret;\n}\n",
             pred ? 32 : bits_of(i->kinds[0]), pred ? "%r" : reg_of(i->kinds[0]));
}

/* ---------------------------------------------------------------- inputs */

static const uint64_t ints[] = {
    0, 1, 2, 3, 7, 31, 32, 63, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 0x7fffffff,
    0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
    0xffffffffffffffff, 0xfffffffffffffffe, 0xffffffffffff8000, 0xffffffff80000000};
static const uint64_t f32s[] = {
    0,          0x80000000, 1,          0x80000001, 0x7fffff,   0x800000,   0x3f800000,
    0xbf800000, 0x3f000000, 0x3fc00000, 0x40200000, 0xc0200000, 0x4b000001, 0x4effffff,
    0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000, 0xdf000000, 0x7f7fffff, 0x7f800000,
    0xff800000, 0x7fc00000, 0xffc12345, 0x477fe000, 0x477ff000, 0x477fefff, 0x33000000,
    0x33000001, 0x387fc000, 0x387fe000, 0x3f801000, 0x3f803000, 0x3f808000, 0x3f818000,
    0x43e00000, 0x43e80000, 0x43f00000, 0x3b000000, 0x3a800000, 0x42fe0000, 0xc3000000};
static const uint64_t f64s[] = {
    0, 0x8000000000000000, 1, 0x000fffffffffffff, 0x0010000000000000, 0x3ff0000000000000,
    0xbff0000000000000, 0x3fe0000000000000, 0x3ff8000000000000, 0x4004000000000000,
    0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000000000, 0xc1e0000000200000,
    0x43e0000000000000, 0xc3e0000000000000, 0x43f0000000000000, 0x7fefffffffffffff,
    0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x36a0000000000000,
    0x369fffffffffffff, 0x47efffffe0000000, 0x47effffff0000000, 0x3ff0000010000000,
    0x3ff0000030000000};
static const uint64_t f16s[] = {0,      0x8000, 1,      0x8001, 0x3ff,  0x400,  0x3c00,
                                0xbc00, 0x3800, 0x3e00, 0x4100, 0x5bff, 0x5f00, 0x5f20,
                                0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x3555,
                                0x1800, 0x17ff, 0x2401, 0x6400};
static const uint64_t bf16s[] = {0,      0x8000, 1,      0x7f,   0x80,   0x3f80, 0xbf80,
                                 0x3f00, 0x3fc0, 0x4020, 0x7f7f, 0xff7f, 0x7f80, 0xff80,
                                 0x7fc0, 0x3eab, 0x4300};
static const uint64_t counts[] = {0, 1, 5, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255};

typedef struct Edges {
    const uint64_t *v;
    unsigned n;
} Edges;
#define EDGES(a) ((Edges){a, sizeof(a) / sizeof *(a)})

static Edges
edges(char kind)
{
    switch (kind) {
    case 'f': return EDGES(f32s);
    case 'F': return EDGES(f64s);
    case 'H':
    case 'x': return EDGES(f16s);
    case 'B':
    case 'y': return EDGES(bf16s);
    case 's': return EDGES(counts);
    default: return EDGES(ints);
    }
}

static uint64_t
mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x7fb5d329728ea185u;
    x = (x ^ x >> 27) * 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

static uint64_t
trim(char kind, uint64_t v)
{
    int bits = bits_of(kind);
    return bits == 64 ? v : v & (((uint64_t)1 << bits) - 1);
}

void
conf_inputs(const ConfInsn *i, uint64_t n, uint64_t *slots)
{
    uint64_t rest = n;
    bool random = false;
    for (int k = 0; k < CONF_SLOTS; k++)
        slots[k] = 0;
    for (int k = 1; i->kinds[k]; k++) {
        char kind = i->kinds[k];
        Edges e = edges(kind);
        uint64_t v = e.v[rest % e.n], other = e.v[mix(n + 77) % e.n];
        if (kind == 'x' || kind == 'y')
            v |= other << 16;
        if (kind == 'b') /* all of them */
            v = n % 65536;
        slots[k - 1] = trim(kind, v);
        rest /= e.n;
    }
    random = rest > 0 || n >= 4096;
    for (int k = 1; random && i->kinds[k]; k++) {
        char kind = i->kinds[k];
        uint64_t v = mix(4 * n + (uint64_t)k), size = mix(v);
        if (kind == 's')
            v %= 70;
        else if (strchr("wdh", kind)) /* of all sizes */
            v = (uint64_t)((int64_t)v >> size % 60);
        else if (kind == 'f' && size % 4) /* near each other */
            v = (v & 0x80ffffff) + 0x3e000000 + ((size >> 8) % 6 << 23);
        else if (kind == 'F' && size % 4)
            v = (v & 0x800fffffffffffff) + ((1010 + (size >> 8) % 40) << 52);
        slots[k - 1] = trim(kind, v);
    }
    if (strncmp(i->text, "rem.", 4) == 0 && slots[1] == 0)
        slots[1] = 3; /* PTX leaves the remainder of a division by zero open */
}

/* ---------------------------------------------------------------- comparing */

static int
same(char kind, uint64_t a, uint64_t b)
{
    if (a == b)
        return 2;
    switch (kind) {
    case 'f': return f32_of((uint32_t)a) != f32_of((uint32_t)a) &&
                     f32_of((uint32_t)b) != f32_of((uint32_t)b);
    case 'F': return f64_of(a) != f64_of(a) && f64_of(b) != f64_of(b);
    case 'H': return (a & 0x7fff) > 0x7c00 && (b & 0x7fff) > 0x7c00;
    case 'B': return (a & 0x7fff) > 0x7f80 && (b & 0x7fff) > 0x7f80;
    default: return 0;
    }
}

int
conf_agree(const ConfInsn *i, uint64_t a, uint64_t b)
{
    char kind = strstr(i->text, ".tf32.f32") ? 'f' : i->kinds[0];
    if (kind == 'x' || kind == 'y') {
        char half = kind == 'x' ? 'H' : 'B';
        int low = same(half, a & 0xffff, b & 0xffff), high = same(half, a >> 16, b >> 16);
        return low < high ? low : high;
    }
    int r = same(kind, a, b);
    if (r || kind != 'f' || i->ulps == 0)
        return r;
    double x = (double)f32_of((uint32_t)a), y = (double)f32_of((uint32_t)b);
    return fabs(x - y) <= i->ulps * fmax(fabs(x), fabs(y)) * 0x1p-23 + i->absolute;
}

/* mma.sync: a warp multiplies fragments that its lanes hold. A lane's first register of
   the left operand has elements of row lane / 4, the second of that row + 8, the next two
   of the next columns; the other operand's and the sums' lie alike. Sums are computed in
   double and rounded once, where a GPU may round each of a few partial sums. */
#include "tests/sim/machine.h"
#include "tests/sim/products.h"

#include <math.h>
#include <string.h>

int
mma_kind(const char *type)
{
    static const char *const names[P_KINDS] = {"f16",  "bf16", "tf32", "s8", "u8",
                                               "e4m3", "e5m2", "f32",  "s32"};
    for (int k = 0; k < P_KINDS; k++)
        if (strcmp(type, names[k]) == 0)
            return k;
    return -1;
}

static void
unpack(uint32_t word, int kind, float *to)
{
    int bytes = product_bytes(kind);
    for (int e = 0; e < 4 / bytes; e++)
        to[e] = product_element(word >> 8 * bytes * e, kind);
}

/* r: sums out, A, B, sums in. sub: kind of A, of B, of the sums; imm: k. */
void
op_mma(Warp *w, const Insn *i, uint32_t mask)
{
    int ka = i->sub & 15, kb = i->sub >> 4 & 15, acc = i->sub >> 8 & 15;
    int k = (int)i->imm, per = 4 / product_bytes(ka);
    int na = k / per / 2, nb = na / 2, nc = acc == P_F16 ? 2 : 4;
    const uint32_t *ra = i->r + nc, *rb = ra + na, *rc = rb + nb;
    float a[16][32], b[32 * 8];
    double sum[16][8];
    (void)mask;
    if (!warp_whole(w, i, 0xffffffff))
        return;
    for (int l = 0; l < LANES; l++) {
        int g = l / 4, q = l % 4;
        float x[4];
        for (int r = 0; r < na; r++) {
            unpack(R32(w, ra[r])[l], ka,
                   &a[g + 8 * (r & 1)][(r >> 1) * 4 * per + q * per]);
        }
        for (int r = 0; r < nb; r++) {
            unpack(R32(w, rb[r])[l], kb, x);
            for (int e = 0; e < per; e++)
                b[(r * 4 * per + q * per + e) * 8 + g] = x[e];
        }
        for (int r = 0; r < 4; r++) {
            uint32_t v =
                acc == P_F16 ? R32(w, rc[r >> 1])[l] >> 16 * (r & 1) : R32(w, rc[r])[l];
            sum[g + 8 * (r >> 1)][2 * q + (r & 1)] =
                acc == P_F16 ? (double)f16_of(v & 0xffff) : product_start(v, acc);
        }
    }
    for (int r = 0; r < 16; r++)
        product_row(a[r], b, k, 8, sum[r]);
    for (int l = 0; l < LANES; l++) {
        int g = l / 4, q = l % 4;
        for (int r = 0; r < nc; r++) {
            double *s = &sum[g + 8 * (acc == P_F16 ? r : r >> 1)][2 * q];
            R32(w, i->r[r])
            [l] = acc == P_F16 ? f16_bits((float)s[0]) | f16_bits((float)s[1]) << 16
                               : product_result(s[r & 1], acc);
        }
    }
}

/* Of m8n8k4: one element of either operand in a lane, two neighbours of the sums. */
void
op_mma_f64(Warp *w, const Insn *i, uint32_t mask)
{
    enum { K = 4 };
    const uint32_t *ra = i->r + 2, *rb = ra + 1, *rc = rb + 1;
    double a[LANES], b[LANES], c[2][LANES];
    (void)mask;
    if (!warp_whole(w, i, 0xffffffff))
        return;
    memcpy(a, R64(w, ra[0]), sizeof a);
    memcpy(b, R64(w, rb[0]), sizeof b);
    for (int r = 0; r < 2; r++)
        memcpy(c[r], R64(w, rc[r]), sizeof c[r]);
    for (int l = 0; l < LANES; l++)
        for (int r = 0; r < 2; r++)
            for (int k = 0; k < K; k++)
                c[r][l] = fma(a[l / 4 * K + k], b[(2 * (l % 4) + r) * K + k], c[r][l]);
    for (int r = 0; r < 2; r++)
        memcpy(R64(w, i->r[r]), c[r], sizeof c[r]);
}

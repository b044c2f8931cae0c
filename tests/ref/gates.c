/* References of what transformers have between their products: SwiGLU and rotary position
   embedding. */
#include <math.h>

#include "tests/ref/ref.h"

void
ref_swiglu(const RefSwiglu *r)
{
    for (int64_t i = 0; i < r->n; i++) {
        double g = r->gate[i], s = 1 / (1 + exp(-g)), size = fabs(g);
        double off = 2 * REF_U32 * (8 + 2 * size), all = r->dout[i] * r->up[i] * s;
        r->out[i] = g * s * r->up[i];
        r->dup[i] = r->dout[i] * g * s;
        r->dgate[i] = all * (1 + g * (1 - s));
        r->out_bound[i] = off * fabs(r->out[i]);
        r->dup_bound[i] = off * fabs(r->dup[i]);
        r->dgate_bound[i] = 2 * off * fabs(all) * (1 + size);
    }
}

void
ref_rotary(const RefRotary *r)
{
    for (int64_t row = 0; row < r->rows; row++) {
        const double *x = r->x + row * r->dim;
        double *out = r->out + row * r->dim, *bound = r->bound + row * r->dim;
        for (int64_t j = 2 * r->half; j < r->dim; j++) {
            out[j] = x[j];
            bound[j] = 0;
        }
        for (int64_t j = 0; j < r->half; j++) {
            int64_t a = r->pairs ? 2 * j : j, b = r->pairs ? 2 * j + 1 : j + r->half;
            int64_t at = r->place[row] * r->half + j;
            double c = r->cos[at], s = r->sign * r->sin[at];
            out[a] = x[a] * c - x[b] * s;
            out[b] = x[b] * c + x[a] * s;
            bound[a] = bound[b] =
                2 * REF_U32 * (fabs(x[a]) + fabs(x[b])) * fmax(1, fmax(fabs(c), fabs(s)));
        }
    }
}

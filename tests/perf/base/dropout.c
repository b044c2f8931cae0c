/* Dropout as a C programmer writes it: one Philox-4x32-10 counter an element, written so
   that a compiler can vectorize it. bench_cpu builds it with every compiler that it
   finds, at -O3 -march=native, and measures against the fastest. */
#include <stdint.h>

void base_dropout(const float *restrict x, float *restrict out, int64_t first,
                  int64_t end, float p, uint32_t seed);

void
base_dropout(const float *restrict x, float *restrict out, int64_t first, int64_t end,
             float p, uint32_t seed)
{
    const float keep = 1 - p;
    for (int64_t i = first; i < end; i++) {
        uint64_t c0 = (uint32_t)i, c1 = 0, c2 = 0, c3 = 0;
        uint32_t k0 = seed, k1 = 0;
        for (int r = 0; r < 10; r++) {
            uint64_t a = 0xD2511F53u * c0, b = 0xCD9E8D57u * c2;
            c0 = (b >> 32) ^ c1 ^ k0;
            c2 = (a >> 32) ^ c3 ^ k1;
            c1 = b & 0xffffffffu;
            c3 = a & 0xffffffffu;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        int32_t u = (int32_t)(uint32_t)c0;
        u = u < 0 ? -u - 1 : u;
        float kept = x[i] / keep;
        out[i] = (float)u * 4.6566127342e-10f > p ? kept : 0.0f;
    }
}

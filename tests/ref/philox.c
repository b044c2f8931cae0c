/* Philox-4x32-10, a counter-based generator: four random words are a pure function of a
   128-bit counter and a 64-bit key; and the same with words of 64 bits. After Salmon,
   Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), checked
   against the known answers that its authors publish with Random123. */
#include <string.h>

#include "tests/ref/ref.h"

void
ref_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint32_t k[2] = {key[0], key[1]};
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0];
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k[0], (uint32_t)p1,
                            (uint32_t)(p0 >> 32) ^ c[3] ^ k[1], (uint32_t)p0};
        memcpy(c, next, sizeof(c));
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    memcpy(out, c, sizeof(c));
}

static uint64_t
high_product(uint64_t x, uint64_t y)
{
    uint64_t xl = x & 0xffffffffu, xh = x >> 32, yl = y & 0xffffffffu, yh = y >> 32;
    uint64_t middle = xh * yl + (xl * yl >> 32);
    uint64_t other = xl * yh + (middle & 0xffffffffu);
    return xh * yh + (middle >> 32) + (other >> 32);
}

void
ref_philox64(const uint64_t counter[4], const uint64_t key[2], uint64_t out[4])
{
    const uint64_t m0 = 0xD2E7470EE14C6C93u, m1 = 0xCA5A826395121157u;
    uint64_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint64_t k[2] = {key[0], key[1]};
    for (int round = 0; round < 10; round++) {
        uint64_t next[4] = {high_product(m1, c[2]) ^ c[1] ^ k[0], m1 * c[2],
                            high_product(m0, c[0]) ^ c[3] ^ k[1], m0 * c[0]};
        memcpy(c, next, sizeof(c));
        k[0] += 0x9E3779B97F4A7C15u;
        k[1] += 0xBB67AE8584CAA73Bu;
    }
    memcpy(out, c, sizeof(c));
}

void
ref_philox_at(int64_t seed, uint64_t offset, uint32_t out[4])
{
    uint32_t counter[4] = {(uint32_t)offset, (uint32_t)(offset >> 32), 0, 0};
    uint32_t key[2] = {(uint32_t)(uint64_t)seed, (uint32_t)((uint64_t)seed >> 32)};
    ref_philox(counter, key, out);
}

float
ref_uniform(uint32_t bits)
{
    /* Negative as a signed number: mirrored by complement, so that 2^31 fits. */
    uint32_t magnitude = bits & 0x80000000u ? ~bits : bits;
    return (float)(int32_t)magnitude * 4.6566127342e-10f;
}

static bool
selftest64(void)
{
    const uint64_t ones = UINT64_MAX;
    const struct {
        uint64_t counter[4], key[2], words[4];
    } known[] = {
        {{0, 0, 0, 0},
         {0, 0},
         {0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b,
          0x7e68b68aec7ba23b}},
        {{ones, ones, ones, ones},
         {ones, ones},
         {0x87b092c3013fe90b, 0x438c3c67be8d0224, 0x9cc7d7c69cd777b6,
          0xa09caebf594f0ba0}},
        {{0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89},
         {0x452821e638d01377, 0xbe5466cf34e90c6c},
         {0xa528f45403e61d95, 0x38c72dbd566e9788, 0xa5a1610e72fd18b5,
          0x57bd43b5e52b7fe6}},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        uint64_t words[4];
        ref_philox64(known[i].counter, known[i].key, words);
        if (memcmp(words, known[i].words, sizeof(words)))
            return false;
    }
    return true;
}

bool
ref_philox_selftest(void)
{
    static const struct {
        uint32_t counter[4], key[2], words[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        uint32_t words[4];
        ref_philox(known[i].counter, known[i].key, words);
        if (memcmp(words, known[i].words, sizeof(words)))
            return false;
    }
    return selftest64();
}

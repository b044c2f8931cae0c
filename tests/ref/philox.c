/* Philox-4x32-10, a counter-based generator: four random words are a pure function of a
   128-bit counter and a 64-bit key. After Salmon, Moraes, Dror and Shaw, "Parallel random
   numbers: as easy as 1, 2, 3" (SC 2011), checked against the known answers that its
   authors publish with Random123. */
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
    return true;
}

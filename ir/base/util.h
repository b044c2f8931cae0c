/* Small helpers that belong to no type: array counts, minima, bit tricks, the clock.
   Knows nothing of compilers; everything here is a macro or a static inline. */
#ifndef SDC_IR_BASE_UTIL_H
#define SDC_IR_BASE_UTIL_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define COUNT_OF(a) ((int)(sizeof(a) / sizeof((a)[0])))

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

static inline int64_t
min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t
max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline bool
is_pow2(int64_t x)
{
    return x > 0 && (x & (x - 1)) == 0;
}

/* floor(log2(x)) for x > 0. */
static inline int
log2_floor(uint64_t x)
{
    return 63 - __builtin_clzll(x);
}

/* Greatest common divisor; gcd(0, b) = b. Arguments are not negative. */
static inline int64_t
gcd_i64(int64_t a, int64_t b)
{
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

/* Seconds of a clock that nobody sets. */
static inline double
seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif

/* Edits of text that keep most of it in order: whole lines and words change places, or
   become one of a target's own words. Bytes that change anywhere, as libFuzzer's own
   edits do, hardly ever get past a parser. */
#ifndef SDC_FUZZ_WORDS_H
#define SDC_FUZZ_WORDS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
/* Only libFuzzer has it. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));

typedef struct Span {
    size_t at, n;
} Span;

static int
is_word(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_.%#-", c));
}

/* A word, or a line, at or after a random place. */
static Span
words_pick(const uint8_t *d, size_t n, unsigned r, int line)
{
    size_t at = r % n;
    if (line) {
        while (at && d[at - 1] != '\n')
            at--;
        size_t end = at;
        while (end < n && d[end] != '\n')
            end++;
        return (Span){at, end - at + (end < n)};
    }
    while (at < n && !is_word(d[at]))
        at++;
    while (at && at < n && is_word(d[at - 1]))
        at--;
    size_t end = at;
    while (end < n && is_word(d[end]))
        end++;
    return (Span){at, end - at};
}

static size_t
words_replace(uint8_t *d, size_t n, size_t max, Span old, const uint8_t *by, size_t nby)
{
    if (n - old.n + nby > max)
        return n;
    uint8_t *copy = malloc(nby + 1);
    if (!copy)
        return n;
    memcpy(copy, by, nby);
    memmove(d + old.at + nby, d + old.at + old.n, n - old.at - old.n);
    memcpy(d + old.at, copy, nby);
    free(copy);
    return n - old.n + nby;
}

/* One edit; `words` are `count` texts of the language. */
static size_t
words_mutate(uint8_t *data, size_t size, size_t max, unsigned seed,
             const char *const *words, size_t count)
{
    unsigned r = seed * 1103515245u + 12345u;
    if (size < 4 || (LLVMFuzzerMutate && seed % 16 == 0))
        return LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, max) : size;
    int line = seed % 16 < 5;
    Span to = words_pick(data, size, r >> 8, line);
    r = r * 1103515245u + 12345u;
    if (seed % 16 > 11) {
        const char *w = words[(r >> 16) % count];
        return words_replace(data, size, max, to, (const uint8_t *)w, strlen(w));
    }
    Span from = words_pick(data, size, r >> 8, line);
    if (line && seed % 3 == 0)
        to.n = 0;
    return words_replace(data, size, max, to, data + from.at, from.n);
}

#endif

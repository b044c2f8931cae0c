/* Replays a fuzz target without libFuzzer: driver RUNS FILE_OR_FOLDER...
 *
 * Every seed file is run as it is, then RUNS inputs are made from the seeds by random
 * edits (bytes changed, stretches deleted, doubled or taken from another seed).  The
 * generator is seeded with a constant, so a failure is repeated by running the same
 * command again; the number printed with SDC_FUZZ_ONLY names the one input that matters.
 * This is what the ordinary test suite runs; long runs use the same targets with
 * libFuzzer.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* A target may know better how to change its input; then every second edit is its own. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
    __attribute__((weak));

enum { MAX_SEEDS = 1024, MAX_SIZE = 1 << 16, MAX_EDITS = 8 };

typedef struct Seed {
    uint8_t *data;
    size_t size;
} Seed;

typedef struct Corpus {
    Seed seed[MAX_SEEDS];
    size_t count;
} Corpus;

static uint64_t
random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t
random_below(uint64_t *state, size_t limit)
{
    return limit ? (size_t)(random_next(state) % limit) : 0;
}

static void
corpus_add_file(Corpus *c, const char *path)
{
    FILE *f = c->count < MAX_SEEDS ? fopen(path, "rb") : NULL;
    if (!f)
        return;
    Seed *s = &c->seed[c->count++];
    s->data = malloc(MAX_SIZE);
    s->size = s->data ? fread(s->data, 1, MAX_SIZE, f) : 0;
    fclose(f);
}

static int
name_compare(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* A folder is read in the order of its names: the same tree gives the same inputs. */
static void
corpus_add(Corpus *c, const char *path)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, NULL, name_compare);
    if (n < 0) {
        corpus_add_file(c, path);
        return;
    }
    for (int i = 0; i < n; i++) {
        char file[4096];
        struct stat st;
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        if (stat(file, &st) == 0 && S_ISREG(st.st_mode))
            corpus_add_file(c, file);
        free(entries[i]);
    }
    free(entries);
}

/* One random edit of buf; the new size is returned. */
static size_t
mutate(const Corpus *c, uint64_t *rng, uint8_t *buf, size_t size)
{
    static const char signs[] = "()[]{}:,=<>%@#\"'\\\n\t *+-/0139aex._";
    size_t at = random_below(rng, size + 1);
    size_t len = 1 + random_below(rng, random_next(rng) % 4 ? 16 : 512);
    switch (random_next(rng) % 5) {
    case 0: /* set one byte to anything */
        if (at < size)
            buf[at] = (uint8_t)random_next(rng);
        return size;
    case 1: /* set one byte to one that the languages care about */
        if (at < size)
            buf[at] = (uint8_t)signs[random_below(rng, sizeof signs - 1)];
        return size;
    case 2: /* delete */
        len = len < size - at ? len : size - at;
        memmove(buf + at, buf + at + len, size - at - len);
        return size - len;
    case 3: /* double a stretch in place */
        len = len < size - at ? len : size - at;
        if (size + len > MAX_SIZE)
            return size;
        memmove(buf + at + len, buf + at, size - at);
        return size + len;
    default: { /* insert a stretch of another seed */
        const Seed *from = &c->seed[random_below(rng, c->count)];
        size_t start = random_below(rng, from->size);
        len = len < from->size - start ? len : from->size - start;
        if (size + len > MAX_SIZE)
            return size;
        memmove(buf + at + len, buf + at, size - at);
        memcpy(buf + at, from->data + start, len);
        return size + len;
    }
    }
}

/* The input is a block of exactly its size: a sanitizer sees a read past its end. */
static void
run_one(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        return;
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

int
main(int argc, char **argv)
{
    long runs = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    const char *only = getenv("SDC_FUZZ_ONLY");
    Corpus *c = calloc(1, sizeof *c);
    uint8_t *buf = malloc(MAX_SIZE);
    if (!c || !buf)
        return 1;
    for (int i = 2; i < argc; i++)
        corpus_add(c, argv[i]);
    printf("%zu seeds, %ld mutated inputs\n", c->count, runs);
    if (c->count == 0) {
        fputs("no seed found: give a file or a folder of seeds\n", stderr);
        return 1;
    }
    for (size_t i = 0; i < c->count && !only; i++) {
        fprintf(stderr, "\rseed %zu ", i);
        run_one(c->seed[i].data, c->seed[i].size);
    }
    for (long i = 0; i < runs; i++) {
        uint64_t rng = 0x5dc0ffee + (uint64_t)i * 7919;
        const Seed *s = &c->seed[random_below(&rng, c->count)];
        size_t size = s->size, edits = 1 + random_below(&rng, MAX_EDITS);
        memcpy(buf, s->data, size);
        for (size_t k = 0; k < edits; k++)
            size = LLVMFuzzerCustomMutator && k % 2 == 0
                       ? LLVMFuzzerCustomMutator(buf, size, MAX_SIZE,
                                                 (unsigned)random_next(&rng))
                       : mutate(c, &rng, buf, size);
        if (only && strtol(only, NULL, 10) != i)
            continue;
        fprintf(stderr, "\rSDC_FUZZ_ONLY=%ld ", i);
        run_one(buf, size);
    }
    fprintf(stderr, "\rdone          \n");
    for (size_t i = 0; i < c->count; i++)
        free(c->seed[i].data);
    free(buf);
    free(c);
    return 0;
}

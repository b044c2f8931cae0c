/* ptxsim: runs a kernel of a PTX file on the simulator.

       ptxsim --parse FILE..                  are all instructions known?
       ptxsim [OPTION..] FILE KERNEL ARG..    runs it

   Options: --grid X[,Y[,Z]]  --shared BYTES  --seed N  --seeds N (that many runs, from
   --seed on)  --steps N  --any-read  --print N (elements of each buffer, 8)
   Arguments: i32:5 u64:5 i16:5 i8:5 f32:0.5 f64:0.5, or buffers of N elements, f32*N
   f16*N i32*N ..., random; f32*N=0 i32*N=7 of one value; f32*N=+ 0, 1, 2 ...
   Exit status: 1 after an error of the kernel, 2 of the command. */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/number.h"

enum { MAX_ARGS = 128 };

typedef struct Arg {
    char type[8];
    uint64_t value; /* or the address of a buffer */
    unsigned char *data;
    size_t count;
    const char *fill;
} Arg;

static char *
read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t n = 0, room = 0;
    if (!f)
        return NULL;
    for (size_t got = 1; got;) {
        if (n + 65536 > room)
            text = realloc(text, room = 2 * room + 65537);
        got = fread(text + n, 1, 65536, f);
        n += got;
    }
    fclose(f);
    text[n] = '\0';
    return text;
}

static int
bytes_of(const char *type)
{
    return atoi(type + strcspn(type, "0123456789")) / 8;
}

static uint64_t
bits_of(const char *type, double x)
{
    if (strcmp(type, "f32") == 0)
        return f32_raw((float)x);
    if (strcmp(type, "f64") == 0)
        return f64_bits(x);
    if (strcmp(type, "f16") == 0)
        return f16_bits((float)x);
    if (strcmp(type, "bf16") == 0)
        return bf16_bits((float)x);
    return (uint64_t)(int64_t)x;
}

static double
value_of(const char *type, const unsigned char *at)
{
    uint64_t v = 0;
    int bytes = bytes_of(type);
    memcpy(&v, at, (size_t)bytes);
    if (strcmp(type, "f32") == 0)
        return (double)f32_of((uint32_t)v);
    if (strcmp(type, "f64") == 0)
        return f64_of(v);
    if (strcmp(type, "f16") == 0)
        return (double)f16_of((uint32_t)v);
    if (strcmp(type, "bf16") == 0)
        return (double)bf16_of((uint32_t)v);
    return (double)((int64_t)(v << (64 - 8 * bytes)) >> (64 - 8 * bytes));
}

/* "i32:5" or "f32*100=0" */
static int
read_arg(char *text, Arg *a)
{
    size_t n = strcspn(text, ":*");
    if (n >= sizeof a->type || !text[n])
        return 0;
    memcpy(a->type, text, n);
    a->type[n] = '\0';
    if (bytes_of(a->type) < 1 || bytes_of(a->type) > 8)
        return 0;
    if (text[n] == ':') {
        a->value = strchr("iu", *text) ? (uint64_t)strtoll(text + n + 1, NULL, 0)
                                       : bits_of(a->type, strtod(text + n + 1, NULL));
        return 1;
    }
    a->count = strtoul(text + n + 1, NULL, 0);
    a->fill = strchr(text, '=') ? strchr(text, '=') + 1 : NULL;
    a->data =
        aligned_alloc(256, (a->count * (size_t)bytes_of(a->type) + 511) / 256 * 256);
    a->value = (uint64_t)(uintptr_t)a->data;
    return 1;
}

static void
fill(Arg *a, uint64_t *random)
{
    int bytes = bytes_of(a->type);
    for (size_t k = 0; k < a->count; k++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        double r = (double)(*random >> 40) / (1 << 23) - 1;
        double x = !a->fill          ? strchr("iu", *a->type) ? (double)(int)(r * 100) : r
                   : *a->fill == '+' ? (double)k
                                     : strtod(a->fill, NULL);
        uint64_t v = bits_of(a->type, x);
        memcpy(a->data + k * (size_t)bytes, &v, (size_t)bytes);
    }
}

static int
parse_all(char **files, int n)
{
    int bad = 0;
    char message[300];
    for (int k = 0; k < n; k++) {
        char *text = read_file(files[k]);
        SimModule *m = text ? sim_load(text, message, sizeof message) : NULL;
        if (!m) {
            printf("%s: %s\n", files[k], text ? message : "cannot be read");
            bad++;
        }
        sim_unload(m);
        free(text);
    }
    printf("%d files, %d not understood\n", n, bad);
    return bad > 0;
}

static void
print_buffers(const Arg *arg, int n, int most)
{
    for (int k = 0; k < n; k++) {
        if (!arg[k].data)
            continue;
        printf("%d %s*%zu:", k, arg[k].type, arg[k].count);
        for (int j = 0; j < most && (size_t)j < arg[k].count; j++)
            printf(" %.9g",
                   value_of(arg[k].type, arg[k].data + j * bytes_of(arg[k].type)));
        printf("\n");
    }
}

static int
usage(void)
{
    fprintf(stderr, "usage: ptxsim [--grid X,Y,Z] [--shared N] [--seed N] [--seeds N] "
                    "[--any-read] FILE KERNEL ARG..\n       ptxsim --parse FILE..\n");
    return 2;
}

int
main(int argc, char **argv)
{
    SimLaunch q = {.grid = {1, 1, 1}, .seed = 1};
    SimStats stats = {0};
    Arg arg[MAX_ARGS] = {0};
    SimRange range[MAX_ARGS];
    const void *params[MAX_ARGS];
    char message[600];
    int k = 1, n = 0, seeds = 1, print = 8;
    if (argc > 2 && strcmp(argv[1], "--parse") == 0)
        return parse_all(argv + 2, argc - 2);
    for (; k < argc && strncmp(argv[k], "--", 2) == 0; k++) {
        const char *name = argv[k] + 2;
        if (strcmp(name, "any-read") == 0) {
            q.any_read = 1;
            continue;
        }
        if (++k >= argc)
            return usage();
        if (strcmp(name, "grid") == 0)
            sscanf(argv[k], "%d,%d,%d", &q.grid[0], &q.grid[1], &q.grid[2]);
        else if (strcmp(name, "shared") == 0)
            q.shared = strtoul(argv[k], NULL, 0);
        else if (strcmp(name, "seed") == 0)
            q.seed = strtoull(argv[k], NULL, 0);
        else if (strcmp(name, "seeds") == 0)
            seeds = atoi(argv[k]);
        else if (strcmp(name, "steps") == 0)
            q.max_steps = strtoull(argv[k], NULL, 0);
        else if (strcmp(name, "print") == 0)
            print = atoi(argv[k]);
        else
            return usage();
    }
    if (k + 2 > argc)
        return usage();
    char *text = read_file(argv[k]);
    SimModule *m = text ? sim_load(text, message, sizeof message) : NULL;
    if (!m) {
        fprintf(stderr, "%s: %s\n", argv[k], text ? message : "cannot be read");
        return 2;
    }
    q.kernel = argv[k + 1];
    for (k += 2; k < argc && n < MAX_ARGS; k++, n++) {
        if (!read_arg(argv[k], &arg[n]))
            return usage();
        params[n] = &arg[n].value;
        if (arg[n].data)
            range[q.nrange++] =
                (SimRange){arg[n].data, arg[n].count * (size_t)bytes_of(arg[n].type)};
    }
    q.params = params;
    q.nparam = n;
    q.ranges = range;
    SimStatus s = SIM_OK;
    clock_t from = clock();
    for (int j = 0; j < seeds && s == SIM_OK; j++, q.seed++) {
        uint64_t random = 1;
        for (int a = 0; a < n; a++)
            fill(&arg[a], &random);
        s = sim_run(m, &q, &stats, message, sizeof message);
    }
    double seconds = (double)(clock() - from) / CLOCKS_PER_SEC;
    if (s != SIM_OK)
        printf("%s, seed %llu: %s\n", sim_status_name(s),
               (unsigned long long)(q.seed - 1), message);
    print_buffers(arg, n, print);
    printf("%llu instructions of threads, %llu barriers, %llu wgmma, %llu tensor copies; "
           "%.0f million a second\n",
           (unsigned long long)stats.instructions, (unsigned long long)stats.barriers,
           (unsigned long long)stats.wgmma, (unsigned long long)stats.copies,
           (double)stats.instructions * seeds / (seconds > 0 ? seconds : 1) / 1e6);
    for (int a = 0; a < n; a++)
        free(arg[a].data);
    sim_unload(m);
    free(text);
    return s != SIM_OK;
}

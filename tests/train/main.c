/* The training proof: a perceptron and a transformer of two layers learn to guess the
   next character of the licences that every Debian machine has, with nothing but kernels
   of kernels_dsl/: dense, with dropout, and with SparseDrop, from fixed seeds.

       build/train [--model mlp|char|all] [--mode dense|dropout|sparse|all]
                   [--target cpu|cuda] [--full] [--steps N] [--seed S] [--seeds N]
                   [--p P] [--text PATH] [--rerun]

   One line a run: the mean loss of the last tenth of the steps, the loss of text that was
   never learned from, the loss's slope along the gradient by differences over what it
   should be, milliseconds a step, and what the loss had to fall below (only with the
   steps that are built in). The program leaves with 1 when a loss stays above, a slope is
   off by 2%, or when --rerun (every run twice) does not give the same bits. --full: sizes
   for a GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/train/models.h"
#include "tests/train/text.h"

typedef struct Options {
    const char *model, *mode, *target, *text;
    bool full, rerun;
    int steps, seeds;
    int64_t seed;
    double p;
} Options;

/* A model, how long it learns, and below what its loss is then. */
typedef struct Plan {
    const char *name;
    Shape shape;
    int steps, tile, block;
    double rate, below;
} Plan;

static const char *const mode_names[] = {"dense", "dropout", "sparse"};

static const Plan plans[] = {
    {"mlp", {false, 128, 8, 0, 16, 128, 1, 0}, 300, 32, 32, 3e-3, 2.45},
    {"char", {true, 8, 64, 0, 64, 256, 4, 2}, 150, 32, 32, 6e-3, 2.6},
};

static const Plan full_plans[] = {
    {"mlp", {false, 4096, 32, 0, 64, 1024, 1, 0}, 300, 128, 64, 1e-3, 1.2},
    {"char", {true, 64, 256, 0, 512, 2048, 8, 2}, 600, 128, 64, 1e-3, 1.35},
};

typedef struct Result {
    double loss, check, ms, slope;
    float *params;
    int64_t n;
} Result;

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Windows of the text at random places; what follows is the target. */
static void
load_batch(Model *md, const uint8_t *text, int64_t n, uint64_t *random, int32_t *space)
{
    const Shape *s = &md->s;
    int32_t *token = space, *target = space + md->tokens;
    for (int64_t i = 0; i < s->texts; i++) {
        int64_t from = (int64_t)(next_random(random) % (uint64_t)(n - s->length));
        for (int64_t k = 0; k < s->length; k++) {
            token[i * s->length + k] = text[from + k];
            if (s->transformer)
                target[i * s->length + k] = text[from + k + 1];
        }
        if (!s->transformer)
            target[i] = text[from + s->length];
    }
    machine_write(md->net.m, md->token, token, md->tokens * (int64_t)sizeof(int32_t));
    machine_write(md->net.m, md->target, target, md->guesses * (int64_t)sizeof(int32_t));
}

static double
mean_loss(Model *md, int32_t *space)
{
    float *loss = (float *)space;
    double sum = 0;
    machine_read(md->net.m, loss, md->loss, md->guesses * (int64_t)sizeof(float));
    for (int64_t i = 0; i < md->guesses; i++)
        sum += (double)loss[i];
    return md->net.m->failed ? INFINITY : sum / (double)md->guesses;
}

static double
check_loss(Model *md, const Text *text, int32_t *space)
{
    enum { BATCHES = 16 };
    uint64_t random = 99;
    double sum = 0;
    md->net.learning = false;
    for (int i = 0; i < BATCHES; i++) {
        load_batch(md, text->check, text->ncheck, &random, space);
        model_run(md);
        sum += mean_loss(md, space);
    }
    md->net.learning = true;
    return sum / BATCHES;
}

/* Loss along the gradient, by differences of the loss, over what the gradient says: 1.
   The masks of a step are the same every time. */
static double
slope_of(Model *md, int32_t *space)
{
    Net *net = &md->net;
    int64_t bytes = net->n * (int64_t)sizeof(float);
    float *w = malloc((size_t)bytes), *g = malloc((size_t)bytes),
          *moved = malloc((size_t)bytes);
    double size = 0, loss[2] = {0, 0}, far = 0.02;
    model_run(md);
    if (w && g && moved) {
        machine_read(net->m, w, net->w, bytes);
        machine_read(net->m, g, net->g, bytes);
        for (int64_t i = 0; i < net->n; i++)
            size += (double)g[i] * (double)g[i];
        for (int k = 0; k < 2; k++) {
            double by = (k ? -far : far) / size;
            for (int64_t i = 0; i < net->n; i++)
                moved[i] = (float)((double)w[i] + by * (double)g[i]);
            machine_write(net->m, net->w, moved, bytes);
            model_run(md);
            loss[k] = mean_loss(md, space);
        }
        machine_write(net->m, net->w, w, bytes);
    }
    free(w);
    free(g);
    free(moved);
    return (loss[0] - loss[1]) / (2 * far);
}

/* The rate rises over the first steps and falls to a tenth at the end. */
static double
rate_at(const Plan *plan, int step, int steps)
{
    double warm = steps / 20 + 1, done = (double)step / steps;
    double rate = plan->rate * (0.1 + 0.45 * (1 + cos(3.14159265358979 * done)));
    return step < warm ? plan->rate * step / warm : rate;
}

static Result
learn(Model *md, const Plan *plan, const Text *text, const Options *o, int64_t seed)
{
    Result r = {0};
    Net *net = &md->net;
    int steps = o->steps ? o->steps : plan->steps, last = steps - steps / 10 - 1, n = 0;
    int64_t space_n = md->tokens + md->guesses;
    int32_t *space = malloc((size_t)space_n * sizeof(*space));
    uint64_t random = (uint64_t)seed;
    double start = 0;
    for (int step = 1; space && step <= steps && !net->m->failed; step++) {
        if (step == 3) /* kernels have been compiled */
            start = now();
        net->seed = seed * 1000003 + step;
        load_batch(md, text->learn, text->nlearn, &random, space);
        if (step == 1)
            r.slope = slope_of(md, space);
        model_run(md);
        net_step(net, step, rate_at(plan, step, steps));
        if (step > last || step < 3) {
            double loss = mean_loss(md, space);
            r.loss += step > last ? loss : 0;
            n += step > last;
        }
    }
    r.loss /= n;
    r.ms = steps > 2 ? (now() - start) * 1e3 / (steps - 2) : 0;
    r.check = space ? check_loss(md, text, space) : INFINITY;
    r.n = net->n;
    r.params = malloc((size_t)net->n * sizeof(float));
    if (r.params)
        machine_read(net->m, r.params, net->w, net->n * (int64_t)sizeof(float));
    free(space);
    return r;
}

static Result
run_once(Machine *m, const Plan *plan, Mode mode, const Text *text, const Options *o,
         int64_t seed)
{
    static const int64_t first = 12345;
    Result r = {.loss = INFINITY, .check = INFINITY};
    Model *md = calloc(1, sizeof(*md));
    Net net = {.m = m,
               .mode = mode,
               .p = o->p,
               .learning = true,
               .tile = plan->tile,
               .block = plan->block,
               .random = (uint64_t)(first + seed)};
    Shape s = plan->shape;
    s.words = text->words;
    if (md && model_open(md, &net, &s))
        r = learn(md, plan, text, o, seed);
    machine_free_all(m);
    free(md);
    return r;
}

/* One line of the table. False: the loss is too high, or a rerun differs. */
static bool
run(Machine *m, const Plan *plan, Mode mode, const Text *text, const Options *o,
    int64_t seed)
{
    Result r = run_once(m, plan, mode, text, o, seed);
    bool low = o->steps || r.loss < plan->below, same = true;
    bool right = fabs(r.slope - 1) < 0.02;
    if (o->rerun) {
        Result again = run_once(m, plan, mode, text, o, seed);
        same = r.params && again.params && r.n == again.n &&
               memcmp(r.params, again.params, (size_t)r.n * sizeof(float)) == 0;
        free(again.params);
    }
    free(r.params);
    printf("%-6s%-9s%5.2f%6lld%7d%10lld%9.4f%9.4f%7.3f%9.2f", plan->name,
           mode_names[mode], mode == DENSE ? 0 : o->p, (long long)seed,
           o->steps ? o->steps : plan->steps, (long long)r.n, r.loss, r.check, r.slope,
           r.ms);
    if (!o->steps)
        printf("%8.2f", plan->below);
    printf("  %s%s%s\n", low ? "OK" : "TOO HIGH", right ? "" : ", WRONG GRADIENT",
           same ? "" : ", ANOTHER RERUN");
    fflush(stdout);
    return !m->failed && low && right && same;
}

static bool
wanted(const char *asked, const char *name)
{
    return strcmp(asked, "all") == 0 || strcmp(asked, name) == 0;
}

static int
run_all(Machine *m, const Text *text, const Options *o)
{
    const Plan *plan = o->full ? full_plans : plans;
    bool ok = true;
    printf("%s; %lld characters, %d different, %lld more to check with\n\n", m->name,
           (long long)text->nlearn, text->words, (long long)text->ncheck);
    printf("%-6s%-9s%5s%6s%7s%10s%9s%9s%7s%9s%8s\n", "model", "mode", "p", "seed",
           "steps", "params", "loss", "check", "slope", "ms/step",
           o->steps ? "" : "below");
    for (int i = 0; i < 2; i++)
        for (int mode = DENSE; mode <= SPARSEDROP; mode++)
            for (int64_t s = o->seed; s < o->seed + o->seeds; s++)
                if (wanted(o->model, plan[i].name) && wanted(o->mode, mode_names[mode]))
                    ok &= run(m, &plan[i], (Mode)mode, text, o, s);
    return ok ? 0 : 1;
}

static bool
parse(Options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(a, "--full") == 0) {
            o->full = true;
            continue;
        }
        if (strcmp(a, "--rerun") == 0) {
            o->rerun = true;
            continue;
        }
        if (strcmp(a, "--model") == 0)
            o->model = v;
        else if (strcmp(a, "--mode") == 0)
            o->mode = v;
        else if (strcmp(a, "--target") == 0)
            o->target = v;
        else if (strcmp(a, "--text") == 0)
            o->text = v;
        else if (strcmp(a, "--steps") == 0)
            o->steps = atoi(v);
        else if (strcmp(a, "--seed") == 0)
            o->seed = atoll(v);
        else if (strcmp(a, "--seeds") == 0)
            o->seeds = atoi(v);
        else if (strcmp(a, "--p") == 0)
            o->p = atof(v);
        else
            return false;
        i++;
    }
    return o->p >= 0 && o->p < 1 && o->steps >= 0 && o->seeds > 0;
}

int
main(int argc, char **argv)
{
    Options o = {.model = "all",
                 .mode = "all",
                 .target = "cpu",
                 .text = "/usr/share/common-licenses",
                 .seed = 1,
                 .seeds = 1,
                 .p = 0.2};
    Machine m;
    Text text;
    if (!parse(&o, argc, argv)) {
        fprintf(stderr, "train: bad option; see tests/train/main.c\n");
        return 2;
    }
    if (!text_open(&text, o.text)) {
        printf("SKIPPED: no text at %s\n", o.text);
        return 0;
    }
    int status = machine_open(&m, o.target) ? run_all(&m, &text, &o) : 3;
    machine_close(&m);
    text_close(&text);
    return status;
}

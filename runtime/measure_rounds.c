/* Several launches measured together, in rounds. A machine is never as quiet, as warm or
   as fast as it was a second ago, so times that are taken one after the other compare two
   machines. In a round every launch runs once, in an order drawn anew: whatever goes on
   meets all of them alike, and which of two is first is a coin that nothing else knows
   of. Of the ratio of two times the rounds give independent samples, of which the order
   statistics of a sign test are the interval: nothing is assumed of how times are
   distributed, which have tails that no average survives. */
#include "runtime/sdc_measure.h"

#include "runtime/internal.h"
#include "ir/base/util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, LEAST_ROUNDS = 15, MOST_ROUNDS = 1001 };

/* What code that is the same may differ by: where it lies, and clocks that tick. */
static const double margin = 0.01;

/* Half the width of the interval in ranks, for a square root of rounds: 999 of 1000. */
static const double half_width = 1.645;

/* On a noisy machine rounds go on for so many times what was meant, until the interval is
   that narrow. */
static const double patience = 4, known = 0.04;

typedef struct One {
    double *t; /* of MOST_ROUNDS; NAN: it did not run */
    int every; /* runs in each `every`-th round */
} One;

typedef struct Rounds {
    Measure *m;
    SdcMeasured *of;
    int n, done;
    One one[MOST];
    double *scratch; /* of MOST_ROUNDS */
    uint32_t random;
} Rounds;

static uint32_t
draw(Rounds *r, uint32_t below)
{
    r->random ^= r->random << 13;
    r->random ^= r->random >> 17;
    r->random ^= r->random << 5;
    return r->random % below;
}

static SdcStatus
run_one(Rounds *r, int i, double *seconds)
{
    const SdcMeasured *m = &r->of[i];
    return m->timed ? m->timed(m->user, seconds)
                    : measure_once(r->m, m->launch, m->user, seconds);
}

/* Twice: code, pages, clock. References are made rare enough: a run of theirs costs what
   it takes and the emptying of the caches, so that is what is timed. */
static SdcStatus
warm_up(Rounds *r)
{
    double wall[MOST] = {0}, full = 0;
    SdcStatus status = SDC_OK;
    for (int i = 0; i < r->n && status == SDC_OK; i++) {
        double seconds;
        status = run_one(r, i, &seconds);
        double start = seconds_now();
        if (status == SDC_OK)
            status = run_one(r, i, &seconds);
        wall[i] = seconds_now() - start;
        if (!(r->of[i].share > 0))
            full += wall[i];
    }
    for (int i = 0; i < r->n; i++) {
        double share = r->of[i].share;
        double every = share > 0 && full > 0 ? ceil(wall[i] / (share * full)) : 1;
        r->one[i].every = every < 1 ? 1 : every > 4 ? 4 : (int)every;
    }
    return status;
}

static SdcStatus
one_round(Rounds *r)
{
    int order[MOST], n = 0;
    SdcStatus status = SDC_OK;
    for (int i = 0; i < r->n; i++) {
        r->one[i].t[r->done] = NAN;
        if ((r->done + i) % r->one[i].every)
            continue;
        int at = (int)draw(r, (uint32_t)n + 1); /* inserted anywhere */
        order[n] = at < n ? order[at] : i;
        order[at] = i;
        n++;
    }
    for (int k = 0; k < n && status == SDC_OK; k++)
        status = run_one(r, order[k], &r->one[order[k]].t[r->done]);
    r->done += status == SDC_OK;
    return status;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Times of those rounds in which it ran. */
static void
summarise(Rounds *r, int i)
{
    SdcMeasured *m = &r->of[i];
    double *t = r->scratch;
    int n = 0;
    m->spread = 0;
    for (int k = 0; k < r->done; k++)
        if (!isnan(r->one[i].t[k]))
            t[n++] = r->one[i].t[k];
    measure_summary(t, n, &m->times);
    if (m->times.median > 0)
        m->spread = (t[n - 1 - n / 10] - t[n / 10]) / m->times.median;
}

static void
compare(Rounds *r, int i)
{
    SdcMeasured *m = &r->of[i];
    double *q = r->scratch;
    int n = 0;
    for (int k = 0; k < r->done; k++)
        if (r->one[0].t[k] > 0 && r->one[i].t[k] > 0)
            q[n++] = r->one[i].t[k] / r->one[0].t[k];
    m->ratio = m->ratio_low = m->ratio_high = 1;
    m->verdict = SDC_SAME;
    if (!n || !i)
        return;
    qsort(q, (size_t)n, sizeof *q, by_value);
    double half = half_width * sqrt((double)n);
    int low = (int)floor((double)n / 2 - half), high = (int)ceil((double)n / 2 + half);
    m->ratio = n % 2 ? q[n / 2] : 0.5 * (q[n / 2 - 1] + q[n / 2]);
    m->ratio_low = q[low < 0 ? 0 : low];
    m->ratio_high = q[high > n - 1 ? n - 1 : high];
    m->verdict = n < LEAST_ROUNDS             ? SDC_SAME
                 : m->ratio_low > 1 + margin  ? SDC_BETTER
                 : m->ratio_high < 1 - margin ? SDC_WORSE
                                              : SDC_SAME;
}

/* Is what was asked, how long or how much longer, known to a few percent? */
static bool
is_known(Rounds *r)
{
    double widest = 0;
    int full = 0;
    for (int i = 0; i < r->n; i++) {
        SdcMeasured *m = &r->of[i];
        if (m->share > 0)
            continue;
        summarise(r, i);
        compare(r, i);
        double own = (m->times.high - m->times.low) / m->times.median;
        widest = fmax(widest, full++ ? m->ratio_high / m->ratio_low - 1 : own);
    }
    return widest < known;
}

static SdcStatus
run_rounds(Rounds *r, const SdcMeasureOptions *o)
{
    double budget = o->seconds > 0 ? o->seconds : 0.2;
    SdcStatus status = warm_up(r);
    int full = 0;
    for (int i = 0; i < r->n; i++)
        full += !(r->of[i].share > 0);
    double start = seconds_now();
    budget *= full ? full : 1;
    for (bool more = true; status == SDC_OK && more && r->done < MOST_ROUNDS;) {
        status = one_round(r);
        double spent = seconds_now() - start;
        more = r->done < LEAST_ROUNDS || spent < budget;
        if (status == SDC_OK && !more && r->done % LEAST_ROUNDS == 0)
            more = spent < patience * budget && !is_known(r);
        else
            more |= spent < patience * budget && r->done % LEAST_ROUNDS;
    }
    for (int i = 0; i < r->n && status == SDC_OK; i++) {
        summarise(r, i);
        compare(r, i);
    }
    for (int i = 0; i < r->n && status == SDC_OK && o->graph; i++)
        if (!r->of[i].timed)
            r->of[i].times.graph = measure_graph(r->m, r->of[i].launch, r->of[i].user);
    return status;
}

SdcStatus
measure_rounds(SdcContext *cx, Measure *m, SdcMeasured *of, int n,
               const SdcMeasureOptions *o)
{
    Rounds *r = calloc(1, sizeof *r);
    double *t = malloc(((size_t)n + 1) * MOST_ROUNDS * sizeof *t);
    SdcStatus status = SDC_OK;
    if (!r || !t)
        status = context_fail(cx, SDC_ERROR_MEMORY, "out of memory");
    if (status == SDC_OK) {
        *r = (Rounds){.m = m, .of = of, .n = n, .random = 0x9e3779b9u};
        r->scratch = t + (size_t)n * MOST_ROUNDS;
        for (int i = 0; i < n; i++)
            r->one[i].t = t + (size_t)i * MOST_ROUNDS;
        status = run_rounds(r, o);
    }
    free(t);
    free(r);
    return status;
}

SdcStatus
sdc_measure_rounds(SdcContext *cx, SdcMeasured *of, int n,
                   const SdcMeasureOptions *options)
{
    Measure *m = NULL;
    if (!cx)
        return SDC_ERROR_ARGUMENT;
    if (!of || n < 1 || n > MOST)
        return context_fail(cx, SDC_ERROR_ARGUMENT,
                            "measure: %d launches, from 1 to %d can be", of ? n : 0,
                            MOST);
    for (int i = 0; i < n; i++)
        if (!of[i].launch && !of[i].timed)
            return context_fail(cx, SDC_ERROR_ARGUMENT, "measure: nothing to launch");
    SdcMeasureOptions known_options;
    if (!OPTIONS_READ(options, known_options))
        return options_wrong(cx, "measure", options->size, sizeof known_options);
    SdcMeasureOptions o = options ? *options : (SdcMeasureOptions){0};
    SdcStatus status = measure_open(cx, &o, &m);
    if (status == SDC_OK)
        status = measure_rounds(cx, m, of, n, &o);
    measure_close(m);
    return status;
}

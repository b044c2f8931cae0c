/* Proofs of linear inequalities, by a bounded search.

   To show T <= 0, its terms are bounded by what is known of each x alone; where that is
   not enough, a fact F <= 0 with a term in common takes that term away: from a T <= b F +
   T' and b, a > 0 it follows that T' <= 0 is enough (Fourier and Motzkin's elimination,
   one fact at a time); which term is taken next does not matter, so it is the one that
   adds most. Divisors make both sides sharper: what is a multiple of g and at
   most -1 is at most -g, so

       k - K + 1 <= 0, 16 | k, 16 | K    =>    k + 16 - K <= 0

   which is how a loop over whole tiles loses its masks. Each fact serves once on a path,
   paths are short, and a budget bounds the whole: "no" may also mean "too much work". */
#include "ir/analysis/linear.h"

#include "ir/analysis/axis_rules.h"
#include "ir/base/util.h"

enum { MAX_FACTS = 32, MAX_DEPTH = 6 };

static const Wide max_k = (Wide)1 << 40, max_c = (Wide)1 << 110;

static Wide
absolute(Wide x)
{
    return x < 0 ? -x : x;
}

static Wide
gcd(Wide a, Wide b)
{
    while (b) {
        Wide r = a % b;
        a = b;
        b = r;
    }
    return a;
}

Linear
linear_const(Wide c)
{
    return (Linear){.lo = c, .hi = c, .valid = true};
}

Linear
linear_between(int64_t lo, int64_t hi)
{
    return (Linear){.lo = lo, .hi = hi, .valid = lo <= hi};
}

Linear
linear_of(const Value *x)
{
    return (Linear){.n = 1, .x = {x}, .k = {1}, .valid = true};
}

static void
add_term(Linear *f, const Value *x, Wide k)
{
    int i = 0;
    while (i < f->n && f->x[i] != x)
        i++;
    if (i == LINEAR_TERMS) {
        f->valid = false;
        return;
    }
    f->x[i] = x;
    f->k[i] = i < f->n ? f->k[i] + k : k;
    f->n += i == f->n;
    if (absolute(f->k[i]) > max_k)
        f->valid = false;
    if (f->k[i] == 0) {
        f->x[i] = f->x[--f->n];
        f->k[i] = f->k[f->n];
    }
}

Linear
linear_add(const Linear *a, Wide k, const Linear *b)
{
    Linear f = *a;
    f.valid = a->valid && b->valid && absolute(k) <= max_k;
    if (!f.valid)
        return f;
    for (int i = 0; i < b->n && f.valid; i++)
        add_term(&f, b->x[i], k * b->k[i]);
    if (absolute(b->lo) > max_c / max_k || absolute(b->hi) > max_c / max_k)
        f.valid = false;
    else {
        f.lo += k * (k < 0 ? b->hi : b->lo);
        f.hi += k * (k < 0 ? b->lo : b->hi);
    }
    return f;
}

Linear
linear_plus(const Linear *a, Wide c)
{
    Linear f = *a;
    f.lo += c;
    f.hi += c;
    return f;
}

/* What divides the sum of the terms; 0 without terms. */
static Wide
divisor(Known *g, const Linear *f)
{
    Wide d = 0;
    for (int i = 0; i < f->n; i++) {
        const AxisFacts *a = axis_of(g->axis, f->x[i]);
        d = gcd(absolute(f->k[i]) * axis_all_div(a, f->x[i]->type), d);
    }
    return d;
}

/* Rounded down, d > 0. */
static Wide
floor_div(Wide a, Wide d)
{
    return a >= 0 ? a / d : -((-a + d - 1) / d);
}

void
known_add(Known *g, const Linear *f)
{
    if (!f->valid || f->n == 0 || g->facts.n == MAX_FACTS)
        return;
    Linear fact = *f;
    Wide d = divisor(g, f);
    /* terms <= -lo, and a multiple of d */
    fact.lo = fact.hi = -(floor_div(-f->lo, d) * d);
    vec_push(g->arena, &g->facts, fact);
}

/* The most that the terms can be, each on its own; *widest: the one that adds most. */
static Wide
upper(Known *g, const Linear *f, int *widest)
{
    Wide sum = 0, most = 0;
    for (int i = 0; i < f->n; i++) {
        const AxisFacts *a = axis_of(g->axis, f->x[i]);
        Wide part = f->k[i] * (f->k[i] < 0 ? a->lo : a->hi);
        if (i == 0 || part > most) {
            most = part;
            *widest = i;
        }
        sum += part;
    }
    return sum;
}

static bool
prove(Known *g, const Linear *target, uint32_t used, int depth)
{
    Linear t = *target, none = linear_const(0);
    int at = 0;
    if (!t.valid || g->budget-- <= 0)
        return false;
    if (t.n == 0)
        return t.hi <= 0;
    /* terms <= -hi is wanted; they are a multiple of d, so less than the next is enough
     */
    Wide d = divisor(g, &t);
    t.lo = t.hi = -(floor_div(-t.hi, d) * d + d - 1);
    if (upper(g, &t, &at) + t.hi <= 0)
        return true;
    if (depth == MAX_DEPTH)
        return false;
    for (int i = g->facts.n - 1; i >= 0; i--) { /* what was learnt last says most */
        const Linear *f = &g->facts.at[i];
        for (int j = 0; j < f->n && !(used >> i & 1); j++) {
            if (f->x[j] != t.x[at] || (f->k[j] < 0) != (t.k[at] < 0))
                continue;
            Wide both = gcd(absolute(f->k[j]), absolute(t.k[at]));
            Linear rest = linear_add(&none, absolute(f->k[j]) / both, &t);
            rest = linear_add(&rest, -(absolute(t.k[at]) / both), f);
            if (prove(g, &rest, used | 1u << i, depth + 1))
                return true;
        }
    }
    return false;
}

bool
known_negative(Known *g, const Linear *f)
{
    return prove(g, f, 0, 0);
}

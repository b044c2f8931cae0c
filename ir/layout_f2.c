/* Bit matrices. Everything is elimination over a basis kept in reduced form: basis[k] has
   leading bit lead[k], and comb[k] says which columns were added to make it. At most 64
   columns, so a set of columns is one word. */
#include "ir/layout_f2.h"

static uint64_t
low_bits(int n)
{
    return n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
}

/* Takes away what the span can make of v. `*comb` collects the columns used. */
static uint64_t
span_reduce(const F2Span *s, uint64_t v, uint64_t *comb)
{
    while (v) {
        int lead = 63 - __builtin_clzll(v);
        if (!s->row[lead])
            return v;
        v ^= s->row[lead];
        *comb ^= s->comb[lead];
    }
    return 0;
}

bool
f2_span_add(F2Span *s, uint64_t v, int i)
{
    uint64_t comb = (uint64_t)1 << i;
    v = span_reduce(s, v, &comb);
    if (!v)
        return false;
    int lead = 63 - __builtin_clzll(v);
    s->row[lead] = v;
    s->comb[lead] = comb;
    s->n++;
    return true;
}

F2
f2_zero(int nin, int nout)
{
    F2 a = { .nin = nin, .nout = nout };
    return a;
}

F2
f2_identity(int n)
{
    F2 a = { .nin = n, .nout = n };
    for (int i = 0; i < n; i++)
        a.col[i] = (uint64_t)1 << i;
    return a;
}

uint64_t
f2_apply(const F2 *a, uint64_t x)
{
    uint64_t y = 0;
    for (int i = 0; i < a->nin; i++)
        if (x >> i & 1)
            y ^= a->col[i];
    return y;
}

F2
f2_compose(const F2 *outer, const F2 *inner)
{
    F2 c = { .nin = inner->nin, .nout = outer->nout };
    for (int i = 0; i < inner->nin; i++)
        c.col[i] = f2_apply(outer, inner->col[i]);
    return c;
}

F2
f2_sub(const F2 *a, int in, int nin, int out, int nout)
{
    F2 c = { .nin = nin, .nout = nout };
    for (int i = 0; i < nin; i++)
        c.col[i] = a->col[in + i] >> out & low_bits(nout);
    return c;
}

int
f2_rank(const F2 *a)
{
    F2Span s = { 0 };
    for (int i = 0; i < a->nin; i++)
        f2_span_add(&s, a->col[i], i);
    return s.n;
}

bool
f2_is_surjective(const F2 *a)
{
    return f2_rank(a) == a->nout;
}

bool
f2_is_injective(const F2 *a)
{
    return f2_rank(a) == a->nin;
}

bool
f2_is_identity(const F2 *a)
{
    if (a->nin != a->nout)
        return false;
    for (int i = 0; i < a->nin; i++)
        if (a->col[i] != (uint64_t)1 << i)
            return false;
    return true;
}

bool
f2_solve(const F2 *a, const F2 *b, F2 *x)
{
    F2Span s = { 0 };
    for (int i = 0; i < a->nin; i++)
        f2_span_add(&s, a->col[i], i);
    F2 r = { .nin = b->nin, .nout = a->nin };
    for (int i = 0; i < b->nin; i++) {
        uint64_t comb = 0;
        if (span_reduce(&s, b->col[i], &comb))
            return false;
        r.col[i] = comb;
    }
    *x = r;
    return true;
}

bool
f2_right_inverse(const F2 *a, F2 *inverse)
{
    F2 one = f2_identity(a->nout);
    return f2_solve(a, &one, inverse);
}

bool
f2_invert(const F2 *a, F2 *inverse)
{
    return a->nin == a->nout && f2_right_inverse(a, inverse);
}

uint64_t
f2_free(const F2 *a)
{
    F2Span s = { 0 };
    uint64_t free_bits = 0;
    for (int i = 0; i < a->nin; i++)
        if (!f2_span_add(&s, a->col[i], i))
            free_bits |= (uint64_t)1 << i;
    return free_bits;
}

bool
f2_in_span(const F2 *a, uint64_t mask, uint64_t v)
{
    F2Span s = { 0 };
    for (int i = 0; i < a->nin; i++)
        if (mask >> i & 1)
            f2_span_add(&s, a->col[i], i);
    uint64_t comb = 0;
    return span_reduce(&s, v, &comb) == 0;
}

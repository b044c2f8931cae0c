/* See layouts.h. */
#include "tests/sim/layouts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
shuffle(Random *r, int *v, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = (int)random_below(r, (uint32_t)i + 1), x = v[i];
        v[i] = v[j];
        v[j] = x;
    }
}

static int
units(Random *r, int bits, int *v)
{
    for (int i = 0; i < bits; i++)
        v[i] = 1 << i;
    shuffle(r, v, bits);
    return bits;
}

Bases
layout_random(Random *r, int bits, int warp_bits)
{
    int v[MAX_BASES], want[3] = {0, 5, warp_bits};
    for (;;) {
        Bases l = {.n = {0}};
        int n = units(r, bits, v);
        for (int part = LANES_OF; part <= WARPS_OF; part++)
            for (int k = 0; k < want[part]; k++)
                l.v[part][l.n[part]++] = n && !random_chance(r, 12) ? v[--n] : 0;
        l.n[REGS] = n;
        memcpy(l.v[REGS], v, sizeof v);
        if (n <= 6)
            return l;
    }
}

Bases
layout_bent(Random *r, Bases l)
{
    if (l.n[REGS] && random_chance(r, 30))
        l.v[REGS][0] ^= l.v[LANES_OF][0];
    return l;
}

Bases
layout_near(Random *r, Bases l)
{
    for (int k = random_between(r, 0, 3); k > 0; k--) {
        int part = l.n[REGS] && random_chance(r, 50) ? REGS : LANES_OF;
        int i = (int)random_below(r, (uint32_t)l.n[part]), j = (int)random_below(r, 5);
        int x = l.v[part][i];
        l.v[part][i] = l.v[LANES_OF][j];
        l.v[LANES_OF][j] = x;
    }
    int n = 0;
    for (int k = 0; k < l.n[REGS]; k++)
        if (l.v[REGS][k])
            l.v[REGS][n++] = l.v[REGS][k];
    l.n[REGS] = n;
    return l;
}

void
layout_fragments(Random *r, int bits, int warp_bits, Bases *a, Bases *b)
{
    int v[MAX_BASES], low[3], rest[MAX_BASES], n = 0, other = 5 + warp_bits;
    Bases x = {.n = {bits - other, 5, warp_bits}}, y = x;
    units(r, bits, v);
    memcpy(x.v[LANES_OF], v, 5 * sizeof *v);
    memcpy(x.v[WARPS_OF], v + 5, (size_t)warp_bits * sizeof *v);
    memcpy(x.v[REGS], v + other, (size_t)(bits - other) * sizeof *v);
    bool head = random_chance(r, 50);
    low[0] = head ? x.v[REGS][0] : x.v[LANES_OF][2];
    low[1] = head ? x.v[LANES_OF][0] : x.v[LANES_OF][3];
    low[2] = head ? x.v[LANES_OF][1] : x.v[LANES_OF][4];
    for (int k = 0; k < bits; k++)
        if (v[k] != low[0] && v[k] != low[1] && v[k] != low[2])
            rest[n++] = v[k];
    shuffle(r, rest, n);
    y.n[REGS] = 0;
    for (int k = 0; k < 3; k++)
        y.v[REGS][y.n[REGS]++] = low[k];
    for (int k = other; k < n; k++)
        y.v[REGS][y.n[REGS]++] = rest[k];
    memcpy(y.v[LANES_OF], rest, 5 * sizeof *rest);
    memcpy(y.v[WARPS_OF], rest + 5, (size_t)warp_bits * sizeof *rest);
    bool first = random_chance(r, 50);
    *a = first ? x : y;
    *b = first ? y : x;
}

void
text_add(Text *t, const char *format, ...)
{
    va_list args;
    if (t->n + 65536 > t->room) {
        t->room = 2 * t->room + 131072;
        t->at = realloc(t->at, t->room);
    }
    va_start(args, format);
    int n = vsnprintf(t->at + t->n, t->room - t->n, format, args);
    va_end(args);
    ck_assert(n >= 0 && t->n + (size_t)n < t->room);
    t->n += (size_t)n;
}

void
text_layout(Text *t, const Bases *l, int cols)
{
    static const char *const names[] = {"reg", "lane", "warp"};
    text_add(t, "linear<");
    for (int part = 0; part < 3; part++) {
        text_add(t, "%s%s=[", part ? ", " : "", names[part]);
        for (int k = 0; k < l->n[part]; k++) {
            int v = l->v[part][k];
            if (cols)
                text_add(t, "%s[%d,%d]", k ? "," : "", v / cols, v % cols);
            else
                text_add(t, "%s[%d]", k ? "," : "", v);
        }
        text_add(t, "]");
    }
    text_add(t, ">");
}

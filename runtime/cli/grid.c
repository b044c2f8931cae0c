/* Recursive descent over sum, product, unary, atom. Depth is limited, and every operation
   is done in 64 bits with overflow checked. */
#include "runtime/cli/grid.h"

#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 100 };

typedef struct Parser {
    Expr *e;
    const char *text, *p, *end;
    int depth;
    bool bad;
} Parser;

static int64_t sum(Parser *s);

static int64_t
wrong(Parser *s, const char *what)
{
    if (!s->bad)
        snprintf(s->e->error, sizeof s->e->error, "%s at column %d of '%.80s'", what,
                 (int)(s->p - s->text) + 1, s->text);
    s->bad = true;
    return 0;
}

static void
blanks(Parser *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
        s->p++;
}

static bool
take(Parser *s, const char *token)
{
    blanks(s);
    size_t n = strlen(token);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, token, n) != 0)
        return false;
    s->p += n;
    return true;
}

static int64_t
floor_div(Parser *s, int64_t a, int64_t b)
{
    if (b == 0)
        return wrong(s, "division by zero");
    if (a == INT64_MIN && b == -1)
        return wrong(s, "number too large");
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static int64_t
apply(Parser *s, char op, int64_t a, int64_t b)
{
    int64_t r = 0;
    if (s->bad)
        return 0;
    switch (op) {
    case '+': return __builtin_add_overflow(a, b, &r) ? wrong(s, "number too large") : r;
    case '-': return __builtin_sub_overflow(a, b, &r) ? wrong(s, "number too large") : r;
    case '*': return __builtin_mul_overflow(a, b, &r) ? wrong(s, "number too large") : r;
    case '/': return floor_div(s, a, b);
    default: break;
    }
    if (b == 0)
        return wrong(s, "division by zero");
    if (b == -1)
        return 0;
    r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static int64_t
number(Parser *s)
{
    int64_t v = 0;
    for (; s->p < s->end && (*s->p == '_' || (*s->p >= '0' && *s->p <= '9')); s->p++) {
        if (*s->p == '_')
            continue;
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, *s->p - '0', &v))
            return wrong(s, "number too large");
    }
    return v;
}

static bool
is_letter(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int64_t
call(Parser *s, const char *name, size_t n)
{
    bool is_cdiv = n == 4 && memcmp(name, "cdiv", 4) == 0;
    bool is_min = n == 3 && memcmp(name, "min", 3) == 0;
    bool is_max = n == 3 && memcmp(name, "max", 3) == 0;
    if (!is_cdiv && !is_min && !is_max)
        return wrong(s, "no such function; there are cdiv, min and max");
    int64_t v = sum(s);
    int count = 1;
    while (!s->bad && take(s, ",")) {
        int64_t w = sum(s);
        count++;
        if (s->bad)
            break;
        if (is_cdiv && w <= 0)
            return wrong(s, "cdiv needs a divisor above zero");
        if (is_cdiv)
            v = floor_div(s, v, w) + (v % w != 0);
        else
            v = is_min ? (w < v ? w : v) : (w > v ? w : v);
    }
    if (!s->bad && !take(s, ")"))
        return wrong(s, "')' is missing");
    if (!s->bad && (is_cdiv ? count != 2 : count < 2))
        return wrong(s, is_cdiv ? "cdiv takes two numbers"
                                : "two numbers or more are needed");
    return v;
}

static int64_t
atom(Parser *s)
{
    if (take(s, "(")) {
        int64_t v = sum(s);
        return s->bad || take(s, ")") ? v : wrong(s, "')' is missing");
    }
    if (s->p < s->end && *s->p >= '0' && *s->p <= '9')
        return number(s);
    if (s->p == s->end || !is_letter(*s->p))
        return wrong(s, "a number or a name is missing");
    const char *name = s->p;
    while (s->p < s->end && (is_letter(*s->p) || (*s->p >= '0' && *s->p <= '9')))
        s->p++;
    size_t n = (size_t)(s->p - name);
    if (n == 6 && memcmp(name, "triton", 6) == 0 && take(s, ".")) {
        name = s->p; /* triton.cdiv, as Triton's own grids have it */
        while (s->p < s->end && is_letter(*s->p))
            s->p++;
        n = (size_t)(s->p - name);
    }
    if (take(s, "("))
        return call(s, name, n);
    int64_t v;
    if (s->e->lookup && s->e->lookup(s->e->user, name, n, &v))
        return v;
    char what[120];
    snprintf(what, sizeof what, "'%.*s' is no integer argument or constexpr",
             n > 60 ? 60 : (int)n, name);
    s->p = name;
    return wrong(s, what);
}

static int64_t
unary(Parser *s)
{
    if (++s->depth > MAX_DEPTH) {
        s->depth--;
        return wrong(s, "nested too deeply");
    }
    int64_t v;
    if (take(s, "-"))
        v = apply(s, '-', 0, unary(s));
    else if (take(s, "+"))
        v = unary(s);
    else
        v = atom(s);
    s->depth--;
    return v;
}

static int64_t
product(Parser *s)
{
    int64_t v = unary(s);
    while (!s->bad) {
        if (take(s, "//"))
            v = apply(s, '/', v, unary(s));
        else if (take(s, "/"))
            return wrong(s, "'/' gives no integer, write '//'");
        else if (take(s, "*"))
            v = apply(s, '*', v, unary(s));
        else if (take(s, "%"))
            v = apply(s, '%', v, unary(s));
        else
            break;
    }
    return v;
}

static int64_t
sum(Parser *s)
{
    int64_t v = product(s);
    while (!s->bad) {
        if (take(s, "+"))
            v = apply(s, '+', v, product(s));
        else if (take(s, "-"))
            v = apply(s, '-', v, product(s));
        else
            break;
    }
    return v;
}

int
expr_list(Expr *e, const char *text, size_t n, int64_t *out, int most)
{
    Parser s = { .e = e, .text = text, .p = text, .end = text + n };
    e->error[0] = '\0';
    int count = 0;
    do {
        if (count == most) {
            wrong(&s, "too many numbers");
            return -1;
        }
        out[count++] = sum(&s);
    } while (!s.bad && take(&s, ","));
    blanks(&s);
    if (!s.bad && s.p != s.end)
        wrong(&s, "an operator or a comma is missing");
    return s.bad ? -1 : count;
}

/* Recursive descent over sum, product, unary, atom to code for a stack, and the machine
   that runs it. The code cannot be trusted, since it may come out of a file: the machine
   checks its stack and its arguments. */
#include "runtime/rt/expr.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 100, MAX_STACK = SDCRT_EXPR_MAX };

enum {
    X_NUMBER = 1, /* the next word */
    X_ARG,
    X_ADD,
    X_SUB,
    X_MUL,
    X_DIV, /* rounds down */
    X_MOD,
    X_CDIV,
    X_MIN,
    X_MAX,
    X_NEG
};

typedef struct Parser {
    SdcrtExprLookup *lookup;
    void *user;
    SdcrtExpr *out;
    SdcrtExprError *e;
    const char *text, *p, *end;
    int depth;
    bool bad;
} Parser;

static void sum(Parser *s);

static void
wrong(Parser *s, const char *what)
{
    if (!s->bad)
        *s->e = (SdcrtExprError){.what = what, .column = (int)(s->p - s->text) + 1};
    s->bad = true;
}

/* Word: the op, 24 bits of operand, the column of the text. */
static void
emit(Parser *s, int op, int64_t operand, const char *at)
{
    SdcrtExpr *x = s->out;
    int64_t column = at - s->text + 1;
    int words = op == X_NUMBER ? 2 : 1;
    if (s->bad)
        return;
    if (x->n + words > SDCRT_EXPR_MAX) {
        wrong(s, "expression too long");
        return;
    }
    x->code[x->n++] =
        (int64_t)op | (op == X_ARG ? (operand & 0xffffff) << 8 : 0) | column << 32;
    if (op == X_NUMBER)
        x->code[x->n++] = operand;
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

static void
number(Parser *s)
{
    const char *at = s->p;
    int64_t v = 0;
    for (; s->p < s->end && (*s->p == '_' || (*s->p >= '0' && *s->p <= '9')); s->p++) {
        if (*s->p == '_')
            continue;
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, *s->p - '0', &v)) {
            wrong(s, "number too large");
            return;
        }
    }
    emit(s, X_NUMBER, v, at);
}

static bool
is_letter(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void
call(Parser *s, const char *name, size_t n)
{
    bool is_cdiv = n == 4 && memcmp(name, "cdiv", 4) == 0;
    bool is_min = n == 3 && memcmp(name, "min", 3) == 0;
    bool is_max = n == 3 && memcmp(name, "max", 3) == 0;
    if (!is_cdiv && !is_min && !is_max) {
        wrong(s, "no such function; there are cdiv, min and max");
        return;
    }
    sum(s);
    int count = 1;
    while (!s->bad && take(s, ",")) {
        sum(s);
        count++;
        emit(s, is_cdiv ? X_CDIV : is_min ? X_MIN : X_MAX, 0, s->p);
    }
    if (!s->bad && !take(s, ")"))
        wrong(s, "')' is missing");
    if (!s->bad && (is_cdiv ? count != 2 : count < 2))
        wrong(s, is_cdiv ? "cdiv takes two numbers" : "two numbers or more are needed");
}

static void
named(Parser *s, const char *name, size_t n)
{
    int64_t v = 0;
    int what = s->lookup ? s->lookup(s->user, name, n, &v) : 0;
    if (what) {
        emit(s, what == 2 ? X_ARG : X_NUMBER, v, name);
        return;
    }
    s->p = name;
    bool first = !s->bad;
    wrong(s, "is no integer argument or constexpr");
    if (first)
        snprintf(s->e->name, sizeof s->e->name, "%.*s", n > 60 ? 60 : (int)n, name);
}

static void
atom(Parser *s)
{
    if (take(s, "(")) {
        sum(s);
        if (!s->bad && !take(s, ")"))
            wrong(s, "')' is missing");
        return;
    }
    if (s->p < s->end && *s->p >= '0' && *s->p <= '9') {
        number(s);
        return;
    }
    if (s->p == s->end || !is_letter(*s->p)) {
        wrong(s, "a number or a name is missing");
        return;
    }
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
        call(s, name, n);
    else
        named(s, name, n);
}

static void
unary(Parser *s)
{
    if (++s->depth > MAX_DEPTH) {
        s->depth--;
        wrong(s, "nested too deeply");
        return;
    }
    if (take(s, "-")) {
        unary(s);
        emit(s, X_NEG, 0, s->p);
    } else if (take(s, "+")) {
        unary(s);
    } else {
        atom(s);
    }
    s->depth--;
}

static void
product(Parser *s)
{
    unary(s);
    while (!s->bad) {
        int op;
        if (take(s, "//")) {
            op = X_DIV;
        } else if (take(s, "/")) {
            wrong(s, "'/' gives no integer, write '//'");
            return;
        } else if (take(s, "*")) {
            op = X_MUL;
        } else if (take(s, "%")) {
            op = X_MOD;
        } else {
            return;
        }
        unary(s);
        emit(s, op, 0, s->p);
    }
}

static void
sum(Parser *s)
{
    product(s);
    while (!s->bad) {
        bool add = take(s, "+");
        if (!add && !take(s, "-"))
            return;
        product(s);
        emit(s, add ? X_ADD : X_SUB, 0, s->p);
    }
}

int
sdcrt_expr_parse(const char *text, size_t n, SdcrtExprLookup *lookup, void *user,
                 SdcrtExpr *out, int most, SdcrtExprError *e)
{
    Parser s = {.lookup = lookup, .user = user, .text = text, .p = text,
                .end = text ? text + n : NULL};
    int count = 0;
    SdcrtExprError unused;
    s.e = e ? e : &unused;
    if (!text || !out || !lookup) {
        *s.e = (SdcrtExprError){.what = "a text, a lookup and a place are needed"};
        return -1;
    }
    do {
        if (count >= most) {
            wrong(&s, "too many numbers");
            return -1;
        }
        s.out = &out[count++];
        s.out->n = 0;
        sum(&s);
    } while (!s.bad && take(&s, ","));
    blanks(&s);
    if (!s.bad && s.p != s.end)
        wrong(&s, "an operator or a comma is missing");
    return s.bad ? -1 : count;
}

/* ---------------------------------------------------------------- evaluation */

static const char too_large[] = "number too large";

static const char *
divide(int op, int64_t a, int64_t b, int64_t *out)
{
    if (op == X_CDIV && b <= 0)
        return "cdiv needs a divisor above zero";
    if (b == 0)
        return "division by zero";
    if (b == -1) { /* the least number has no quotient */
        *out = 0;
        return op == X_DIV && __builtin_sub_overflow(0, a, out) ? too_large : NULL;
    }
    int64_t q = a / b, r = a % b;
    bool down = r != 0 && (r < 0) != (b < 0);
    if (op == X_MOD)
        *out = down ? r + b : r;
    else
        *out = q - down + (op == X_CDIV && r != 0);
    return NULL;
}

/* NULL, or what is wrong. */
static const char *
apply(int op, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case X_ADD: return __builtin_add_overflow(a, b, out) ? too_large : NULL;
    case X_SUB: return __builtin_sub_overflow(a, b, out) ? too_large : NULL;
    case X_MUL: return __builtin_mul_overflow(a, b, out) ? too_large : NULL;
    case X_MIN: *out = a < b ? a : b; return NULL;
    case X_MAX: *out = a > b ? a : b; return NULL;
    case X_DIV:
    case X_MOD:
    case X_CDIV: return divide(op, a, b, out);
    default: return "no such operation";
    }
}

/* One word; the next one's number, or 0 with the reason in *what. */
static int
step(const SdcrtExpr *x, int i, const int64_t *args, int64_t *stack, int *top,
     const char **what)
{
    int op = (int)(x->code[i] & 0xff), operand = (int)(x->code[i] >> 8 & 0xffffff);
    int need = op == X_NUMBER || op == X_ARG ? 0 : op == X_NEG ? 1 : 2;
    *what = "no expression";
    if (*top < need || *top >= MAX_STACK || operand >= SDCRT_MAX_SOURCES ||
        (op == X_NUMBER && i + 1 >= x->n) || (op == X_ARG && !args))
        return 0;
    *what = NULL;
    if (op == X_NUMBER) {
        stack[(*top)++] = x->code[i + 1];
        return i + 2;
    }
    if (op == X_ARG)
        stack[(*top)++] = args[operand];
    else if (op == X_NEG)
        *what = __builtin_sub_overflow(0, stack[*top - 1], &stack[*top - 1]) ? too_large
                                                                             : NULL;
    else
        *what = apply(op, stack[*top - 2], stack[*top - 1], &stack[*top - 2]);
    *top -= need == 2;
    return *what ? 0 : i + 1;
}

int
sdcrt_expr_eval(const SdcrtExpr *x, const int64_t *args, int64_t *out, SdcrtExprError *e)
{
    int64_t stack[MAX_STACK];
    int top = 0;
    const char *what = "no expression";
    SdcrtExprError unused;
    e = e ? e : &unused;
    if (!x || !out) {
        *e = (SdcrtExprError){.what = "an expression and a place are needed"};
        return 0;
    }
    for (int i = 0; i < x->n && i < SDCRT_EXPR_MAX;) {
        int next = step(x, i, args, stack, &top, &what);
        if (!next) {
            *e = (SdcrtExprError){.what = what, .column = (int)(x->code[i] >> 32)};
            return 0;
        }
        i = next;
    }
    if (top != 1) {
        *e = (SdcrtExprError){.what = "no expression"};
        return 0;
    }
    *out = stack[0];
    return 1;
}

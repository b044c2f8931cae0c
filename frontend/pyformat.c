/* format(), f-strings and '%' of the host's numbers and texts. */
#include "frontend/py.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct Spec {
    char fill, align, sign, type;
    bool alt, zero, comma;
    int width, digits; /* digits -1: not given */
} Spec;

enum { MAX_WIDTH = 1000 };

static bool
read_number(const char **p, int *out)
{
    int n = 0;
    while (isdigit((unsigned char)**p) && n <= MAX_WIDTH)
        n = n * 10 + (*(*p)++ - '0');
    *out = n;
    return n <= MAX_WIDTH;
}

static bool
read_spec(const char *p, Spec *s)
{
    *s = (Spec){.fill = ' ', .digits = -1};
    bool filled = *p && p[1] && strchr("<>^=", p[1]);
    if (filled) {
        s->fill = p[0];
        s->align = p[1];
        p += 2;
    } else if (*p && strchr("<>^=", *p)) {
        s->align = *p++;
    }
    if (*p && strchr("+- ", *p))
        s->sign = *p++;
    if (*p == '#')
        s->alt = *p++;
    if (*p == '0')
        s->zero = *p++;
    if (s->zero && !filled)
        s->fill = '0';
    if (!read_number(&p, &s->width))
        return false;
    if (*p == ',')
        s->comma = *p++;
    if (*p == '.') {
        p++;
        if (!isdigit((unsigned char)*p) || !read_number(&p, &s->digits) ||
            s->digits > 100)
            return false;
    }
    if (*p)
        s->type = *p++;
    return !*p;
}

/* `minus`: the sign goes in front of zeros. */
static void
put(Buf *b, const Spec *s, const char *sign, const char *text, size_t n, bool number)
{
    int size = (int)(strlen(sign) + n), pad = s->width > size ? s->width - size : 0;
    char align = s->align ? s->align : number ? (s->zero ? '=' : '>') : '<';
    int left = align == '<' ? 0 : align == '^' ? pad / 2 : pad;
    if (align == '=')
        buf_str(b, sign);
    for (int i = 0; i < left; i++)
        buf_char(b, s->fill);
    if (align != '=')
        buf_str(b, sign);
    buf_add(b, text, n);
    for (int i = left; i < pad; i++)
        buf_char(b, s->fill);
}

static bool
format_int(Interp *in, Buf *b, const Spec *s, Wide i)
{
    char digits[160];
    int n = 0, base = s->type == 'x' || s->type == 'X' ? 16
                      : s->type == 'o'                 ? 8
                      : s->type == 'b'                 ? 2
                                                       : 10;
    const char *set = s->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    PyWord u = i < 0 ? -(PyWord)i : (PyWord)i;
    Buf t;
    buf_init(&t, in->a);
    do
        digits[n++] = set[(int)(u % (unsigned)base)];
    while (u /= (unsigned)base);
    Buf sign; /* and what zeros stand behind, too */
    buf_init(&sign, in->a);
    buf_str(&sign, i < 0 ? "-" : s->sign == '+' ? "+" : s->sign == ' ' ? " " : "");
    if (s->alt && base != 10)
        buf_printf(&sign, "0%c", s->type);
    if (s->comma && s->zero)
        return false;
    while (n) {
        buf_char(&t, digits[--n]);
        if (s->comma && n && n % 3 == 0)
            buf_char(&t, ',');
    }
    put(b, s, sign.s, t.s, t.n, true);
    return s->digits < 0;
}

static bool
format_float(Buf *b, const Spec *s, double f)
{
    char text[512], how[8] = "%.*f";
    bool minus = f < 0 || (f == 0 && 1 / f < 0);
    int digits = s->digits < 0 ? 6 : s->digits;
    if (s->comma || s->alt || (f - f) != 0)
        return false;
    how[3] = s->type == '%' ? 'f' : s->type;
    double x = minus ? -f : f;
    int n = snprintf(text, sizeof text - 1, how, digits, s->type == '%' ? x * 100 : x);
    if (n < 0 || n >= (int)sizeof text - 1)
        return false;
    if (s->type == '%')
        text[n++] = '%';
    put(b, s,
        minus            ? "-"
        : s->sign == '+' ? "+"
        : s->sign == ' ' ? " "
                         : "",
        text, (size_t)n, true);
    return true;
}

bool
py_format(Interp *in, Buf *b, Py v, const char *text)
{
    Spec s;
    if (!*text)
        return py_text(in, b, v, false, 0);
    if (!read_spec(text, &s) || b->n > PY_MAX_SIZE)
        return false;
    bool number = v->kind == PY_INT || (v->kind == PY_BOOL && s.type);
    if (number && (!s.type || strchr("dxXob", s.type)))
        return format_int(in, b, &s, v->u.i);
    if (py_is_number(v) && s.type && strchr("feEgG%", s.type))
        return format_float(b, &s, py_double(v));
    bool plain = !s.type || s.type == 's';
    if (!plain || (v->kind != PY_STR && !(v->kind == PY_FLOAT && s.digits < 0)))
        return false;
    Buf t;
    buf_init(&t, in->a);
    buf_str(&t, "");
    if (!py_text(in, &t, v, false, 0))
        return false;
    if ((s.width || s.digits >= 0) && v->kind == PY_STR && !py_is_ascii(v))
        return false;
    size_t n = s.digits >= 0 && (size_t)s.digits < t.n ? (size_t)s.digits : t.n;
    if (v->kind == PY_FLOAT && (s.comma || s.sign || s.zero))
        return false;
    put(b, &s, "", t.s, n, v->kind == PY_FLOAT);
    return true;
}

Py
py_percent(Interp *in, Py text, Py args, Loc loc)
{
    Buf b;
    int at = 0;
    bool many = args->kind == PY_TUPLE;
    buf_init(&b, in->a);
    buf_str(&b, "");
    for (const char *p = text->u.str.s; *p; p++) {
        if (*p != '%' || p[1] == '%') {
            p += *p == '%';
            buf_char(&b, *p);
            continue;
        }
        char how[32];
        size_t n = 0;
        Py v = many ? (at < args->u.list->n ? args->u.list->at[at] : NULL)
               : at ? NULL
                    : args;
        for (p++; *p && (isdigit((unsigned char)*p) || strchr(".+-# ", *p)); p++)
            if (n < sizeof how - 2)
                how[n++] = *p;
        how[n] = *p == 'i' ? 'd' : *p;
        how[n + 1] = '\0';
        at++;
        if (!v || !*p || strchr(how, '-') ||
            (*p == 's' || *p == 'r' ? n || !py_text(in, &b, v, *p == 'r', 0)
                                    : !py_is_number(v) || !py_format(in, &b, v, how)))
            return py_unknown(in, loc, NULL, "what '%%' makes is known to Python alone");
    }
    return py_strn(in, b.s, b.n);
}

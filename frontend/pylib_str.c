/* Methods of strings. */
#include "frontend/pylib.h"

#include <ctype.h>
#include <string.h>

static bool
text_arg(const PyCall *c, int i, const char **s, size_t *n)
{
    if (i >= c->n || c->at[i]->kind != PY_STR)
        return false;
    *s = c->at[i]->u.str.s;
    *n = c->at[i]->u.str.n;
    return true;
}

static Py
join(Interp *in, const PyCall *c)
{
    Buf b;
    Py lost = NULL;
    PyList *l = c->n == 1 ? py_elements(in, c->at[0], c->loc, &lost) : NULL;
    if (!l)
        return lost ? lost : pylib_unknown(in, c);
    buf_init(&b, in->a);
    buf_str(&b, "");
    for (int i = 0; i < l->n; i++) {
        if (l->at[i]->kind != PY_STR || b.n > PY_MAX_SIZE)
            return py_lost(l->at[i]) ? l->at[i] : pylib_unknown(in, c);
        if (i)
            buf_add(&b, c->self->u.str.s, c->self->u.str.n);
        buf_add(&b, l->at[i]->u.str.s, l->at[i]->u.str.n);
    }
    return py_strn(in, b.s, b.n);
}

/* '{}, {name}, {0:>3}': fields without attributes or conversions. */
static Py
format(Interp *in, const PyCall *c)
{
    Buf b;
    int at = 0;
    buf_init(&b, in->a);
    buf_str(&b, "");
    const char *p = c->self->u.str.s;
    while (*p) {
        if ((*p == '{' || *p == '}') && p[1] == *p) {
            buf_char(&b, *p);
            p += 2;
        } else if (*p == '{') {
            size_t n = strcspn(++p, "}:");
            char *name = arena_strndup(in->a, p, n), *spec = "";
            p += n;
            if (*p == ':') {
                size_t len = strcspn(++p, "}");
                spec = arena_strndup(in->a, p, len);
                p += len;
            }
            Py v = !*name ? (at < c->n ? c->at[at++] : NULL)
                   : isdigit((unsigned char)*name) && !name[1]
                       ? (*name - '0' < c->n ? c->at[*name - '0'] : NULL)
                       : pydict_name(c->named->u.dict, name);
            if (!v || *p != '}' || strchr(spec, '{') || !py_format(in, &b, v, spec))
                return pylib_unknown(in, c);
            p++;
        } else {
            buf_char(&b, *p++);
        }
    }
    return py_strn(in, b.s, b.n);
}

static Py
change_case(Interp *in, const PyCall *c)
{
    size_t n = c->self->u.str.n;
    char *s = arena_strndup(in->a, c->self->u.str.s, n);
    bool title = strcmp(c->name, "capitalize") == 0;
    bool up = strcmp(c->name, "upper") == 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] & 0x80)
            return pylib_unknown(in, c);
        s[i] = (char)(up || (title && !i) ? toupper(s[i]) : tolower(s[i]));
    }
    return py_strn(in, s, n);
}

static Py
strip(Interp *in, const PyCall *c)
{
    const char *set = " \t\n\r\f\v", *s = c->self->u.str.s;
    size_t n = c->self->u.str.n, nset;
    if (c->n && !text_arg(c, 0, &set, &nset))
        return c->at[0]->kind == PY_NONE ? py_strn(in, s, n) : pylib_unknown(in, c);
    while (c->name[0] != 'r' && n && strchr(set, *s))
        s++, n--;
    while (c->name[0] != 'l' && n && strchr(set, s[n - 1]))
        n--;
    return py_strn(in, s, n);
}

static Py
split(Interp *in, const PyCall *c)
{
    const char *by = NULL, *s = c->self->u.str.s, *end = s + c->self->u.str.n;
    size_t nby = 0;
    Wide most = -1;
    if (c->n && c->at[0]->kind != PY_NONE && (!text_arg(c, 0, &by, &nby) || !nby))
        return pylib_unknown(in, c);
    Py limit = pyarg(c, 1, "maxsplit");
    if ((limit && !pyarg_int(limit, &most)) || (c->named->u.dict->n && !limit))
        return pylib_unknown(in, c);
    Py v = py_list(in, PY_LIST, NULL, 0);
    while (py_step(in, 1)) {
        while (!by && s < end && isspace((unsigned char)*s))
            s++;
        if (!by && s == end)
            break;
        const char *stop = s;
        bool last = most >= 0 && v->u.list->n >= most;
        if (by && !last)
            stop = strstr(s, by);
        else if (last)
            stop = end;
        else
            while (stop < end && !isspace((unsigned char)*stop))
                stop++;
        if (!stop)
            stop = end;
        py_push(in, v->u.list, py_strn(in, s, (size_t)(stop - s)));
        if (stop == end && (!by || last || strlen(s) == (size_t)(end - s)))
            if (!by || !strstr(s, by) || last)
                break;
        s = stop + nby;
    }
    return v;
}

static bool
matches(const PyCall *c, Py what, bool *is_text)
{
    *is_text = what->kind == PY_STR;
    size_t n = c->self->u.str.n;
    if (!*is_text || what->u.str.n > n)
        return false;
    const char *at = c->self->u.str.s + (c->name[0] == 'e' ? n - what->u.str.n : 0);
    return memcmp(at, what->u.str.s, what->u.str.n) == 0;
}

static Py
starts_or_ends(Interp *in, const PyCall *c)
{
    bool text = false;
    if (c->n != 1)
        return pylib_unknown(in, c);
    if (c->at[0]->kind != PY_TUPLE) {
        bool is = matches(c, c->at[0], &text);
        return text ? py_bool(in, is) : pylib_unknown(in, c);
    }
    for (int i = 0; i < c->at[0]->u.list->n; i++) {
        bool is = matches(c, c->at[0]->u.list->at[i], &text);
        if (!text || is)
            return text ? in->yes : pylib_unknown(in, c);
    }
    return in->no;
}

static Py
replace(Interp *in, const PyCall *c)
{
    const char *from, *to, *s = c->self->u.str.s, *hit;
    size_t nfrom, nto;
    Buf b;
    if (c->n != 2 || !text_arg(c, 0, &from, &nfrom) || !text_arg(c, 1, &to, &nto) ||
        !nfrom)
        return pylib_unknown(in, c);
    buf_init(&b, in->a);
    buf_str(&b, "");
    for (; (hit = strstr(s, from)) && py_step(in, 1) && b.n < PY_MAX_SIZE;
         s = hit + nfrom) {
        buf_add(&b, s, (size_t)(hit - s));
        buf_add(&b, to, nto);
    }
    buf_str(&b, s);
    return py_strn(in, b.s, b.n);
}

static Py
find(Interp *in, const PyCall *c)
{
    const char *what, *s = c->self->u.str.s, *hit;
    size_t n;
    if (c->n != 1 || !text_arg(c, 0, &what, &n))
        return pylib_unknown(in, c);
    if (!py_is_ascii(c->self))
        return pylib_unknown(in, c);
    hit = strstr(s, what);
    if (c->name[0] == 'i' && !hit)
        return py_raise(in, c->loc, "ValueError", "it is not in the text");
    return py_int(in, hit ? hit - s : -1);
}

static Py
count(Interp *in, const PyCall *c)
{
    const char *what, *s = c->self->u.str.s;
    size_t n;
    Wide found = 0;
    if (c->n != 1 || !text_arg(c, 0, &what, &n) || !n)
        return pylib_unknown(in, c);
    for (; (s = strstr(s, what)) && py_step(in, 1); s += n)
        found++;
    return py_int(in, found);
}

static Py
is_made_of(Interp *in, const PyCall *c)
{
    bool all = c->self->u.str.n > 0;
    for (size_t i = 0; i < c->self->u.str.n; i++) {
        unsigned char ch = (unsigned char)c->self->u.str.s[i];
        if (ch & 0x80)
            return pylib_unknown(in, c);
        all &= c->name[2] == 'd' ? isdigit(ch) != 0 : isalpha(ch) != 0;
    }
    return py_bool(in, all);
}

const PyEntry pylib_str[] = {
    {"join", join},
    {"format", format},
    {"lower", change_case},
    {"upper", change_case},
    {"capitalize", change_case},
    {"strip", strip},
    {"lstrip", strip},
    {"rstrip", strip},
    {"split", split},
    {"startswith", starts_or_ends},
    {"endswith", starts_or_ends},
    {"replace", replace},
    {"find", find},
    {"index", find},
    {"count", count},
    {"isdigit", is_made_of},
    {"isalpha", is_made_of},
    {NULL, NULL},
};

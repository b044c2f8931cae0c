/* Specs over other arguments: descriptors, and tuples of numbers, arrays, descriptors and
   tuples.

       desc:x[64,64]  (3, 0.5, i64:7)  (x, desc:x[64,64], (n, 1)) */
#include "runtime/cli/spec.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The name of "desc:NAME[..": its letters; NULL: the spec is no descriptor. */
static const char *
desc_name(const char *spec, size_t *n)
{
    if (strncmp(spec, "desc:", 5) != 0)
        return NULL;
    *n = strcspn(spec + 5, "[");
    return spec + 5;
}

bool
spec_is_over(const char *spec)
{
    size_t n;
    return *spec == '(' || desc_name(spec, &n);
}

static bool
is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

bool
spec_names(const char *spec, const char *name, size_t n)
{
    for (const char *p = spec; spec_is_over(spec) && (p = strchr(p, *name)); p++)
        if (strncmp(p, name, n) == 0 && (p == spec || !is_letter(p[-1])) &&
            !is_letter(p[n]) && !(p[n] == ':' && strncmp(p, "desc", n) == 0))
            return true;
    return false;
}

bool
spec_uses(const RunArg *a, const void *at)
{
    for (int i = 0; i < a->ndesc; i++)
        if (a->desc[i].base == at)
            return true;
    for (int i = 0; i < a->nitem; i++)
        if (a->item[i].kind == SDC_ARG_PTR && a->item[i].v.ptr == at)
            return true;
    return false;
}

void
spec_move(RunArg *a, const void *from, void *to)
{
    for (int i = 0; i < a->ndesc; i++)
        if (a->desc[i].base == from)
            a->desc[i].base = to;
    for (int i = 0; i < a->nitem; i++)
        if (a->item[i].kind == SDC_ARG_PTR && a->item[i].v.ptr == from)
            a->item[i].v.ptr = to;
}

typedef struct Reader {
    SpecFind *find;
    void *user;
    Expr *expr;
    RunArg *arg;
    char *why;
    size_t size;
} Reader;

static bool
read_desc(const Reader *r, const char *spec, SdcArg *out)
{
    size_t len = 0;
    const char *name = desc_name(spec, &len), *open = strchr(spec, '[');
    const RunArg *of = r->find(r->user, name, len);
    size_t n = open ? strlen(open) : 0;
    int64_t block[SDC_MAX_DESC_RANK];
    if (!of) {
        snprintf(r->why, r->size, "there is no array '%.*s'", len > 80 ? 80 : (int)len,
                 name);
        return false;
    }
    if (n < 3 || open[n - 1] != ']') {
        snprintf(r->why, r->size, "the block is missing: desc:NAME[64,64]");
        return false;
    }
    const Array *a = &of->array;
    int rank = expr_list(r->expr, open + 1, n - 2, block, SDC_MAX_DESC_RANK);
    if (rank < 0) {
        snprintf(r->why, r->size, "block: %s", r->expr->error);
        return false;
    }
    if (!a->data || a->rank != rank || r->arg->ndesc == SPEC_MAX_ITEMS) {
        snprintf(r->why, r->size, "a block of rank %d needs an array of that rank", rank);
        return false;
    }
    SdcDesc *d = &r->arg->desc[r->arg->ndesc++];
    *d = (SdcDesc){.dtype = a->dtype, .rank = rank, .base = a->data};
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        if (block[i] < 1 || block[i] > 1 << 20) {
            snprintf(r->why, r->size, "a size of its block is not from 1 to 2^20");
            return false;
        }
        d->block[i] = (int32_t)block[i];
        d->shape[i] = a->shape[i];
        d->strides[i] = stride;
        stride *= a->shape[i];
    }
    *out = sdc_desc(d);
    return true;
}

static bool read_tuple(const Reader *r, const char **p, SdcArg *out);

/* The text up to the comma or bracket that ends an element, without spaces. */
static bool
item_text(const char **p, char *to, size_t size)
{
    const char *from = *p;
    int depth = 0;
    for (; **p && (depth || (**p != ',' && **p != ')')); ++*p)
        depth += (**p == '[') - (**p == ']');
    size_t n = (size_t)(*p - from);
    while (n && from[n - 1] == ' ')
        n--;
    snprintf(to, size, "%.*s", (int)n, from);
    return n && n < size;
}

static bool
read_item(const Reader *r, const char **p, SdcArg *out)
{
    char text[256];
    size_t n;
    *p += strspn(*p, " ");
    if (**p == '(')
        return read_tuple(r, p, out);
    if (!item_text(p, text, sizeof text))
        return false;
    if (desc_name(text, &n))
        return read_desc(r, text, out);
    if (spec_read_scalar(text, out))
        return true;
    const RunArg *of = r->find(r->user, text, strlen(text));
    if (!of || of->value.kind == SDC_ARG_TUPLE || of->value.kind == SDC_ARG_DESC) {
        snprintf(r->why, r->size,
                 "'%.80s' is no number, and no array or number of that name is given",
                 text);
        return false;
    }
    *out = of->value;
    return true;
}

/* Items stand side by side, those of a tuple in it behind them or in front. */
static bool
read_tuple(const Reader *r, const char **p, SdcArg *out)
{
    SdcArg item[SPEC_MAX_ITEMS];
    int n = 0;
    ++*p;
    *p += strspn(*p, " ");
    while (**p != ')') {
        if (n == SPEC_MAX_ITEMS || !read_item(r, p, &item[n++]))
            return false;
        *p += strspn(*p, " ");
        if (**p != ',' && **p != ')')
            return false;
        *p += **p == ',';
        *p += strspn(*p, " ");
    }
    ++*p;
    if (r->arg->nitem + n > SPEC_MAX_ITEMS)
        return false;
    SdcArg *at = r->arg->item + r->arg->nitem;
    memcpy(at, item, (size_t)n * sizeof *at);
    r->arg->nitem += n;
    *out = sdc_tuple(at, n);
    return true;
}

bool
spec_read_over(const char *spec, Expr *expr, SpecFind *find, void *user,
               RunArg *arg, char *why, size_t why_size)
{
    Reader r = {find, user, expr, arg, why, why_size};
    const char *p = spec;
    arg->nitem = arg->ndesc = 0;
    if (*spec != '(')
        return read_desc(&r, spec, &arg->value);
    *why = '\0';
    if (read_tuple(&r, &p, &arg->value) && !*p)
        return true;
    if (!*why)
        snprintf(why, why_size,
                 "'%.60s' is no tuple of at most %d numbers, arrays and descriptors",
                 spec, SPEC_MAX_ITEMS);
    return false;
}

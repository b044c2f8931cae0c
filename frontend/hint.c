/* What to write instead, see hint.h. */
#include "frontend/hint.h"

#include "frontend/builtin.h"
#include "ir/base/util.h"

#include <string.h>
#include <strings.h>

int
name_distance(const char *a, const char *b)
{
    enum { MOST = 40, FAR = 99 };
    size_t n = strlen(a), m = strlen(b);
    int row[3][MOST]; /* two letters that changed places are one step: three rows */
    if (n >= MOST || m >= MOST || n > m + 3 || m > n + 3)
        return FAR;
    for (size_t j = 0; j <= m; j++)
        row[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int *now = row[i % 3], *up = row[(i + 2) % 3], *far = row[(i + 1) % 3];
        int least = now[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int best = up[j - 1] + (a[i - 1] != b[j - 1]);
            best = up[j] + 1 < best ? up[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            bool swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            now[j] = swap && far[j - 2] + 1 < best ? far[j - 2] + 1 : best;
            least = now[j] < least ? now[j] : least;
        }
        if (least > 3) /* no later row has less, swaps included */
            return FAR;
    }
    return row[n % 3][m];
}

const char *
hint_name(Sema *s, const char *name)
{
    const char *best = NULL;
    int limit = strlen(name) > 4 ? 3 : strlen(name) > 1 ? 2 : 1;
    const Scope *sc = &s->frame->scope;
    for (int i = 0; i < sc->nslot; i++) {
        const char *of = sc->slots[i].name;
        int d = sc->slots[i].val ? name_distance(name, of) : 99;
        if (sc->slots[i].val && strcasecmp(name, of) == 0)
            return of;
        if (d > 0 && d < limit) {
            limit = d;
            best = sc->slots[i].name;
        }
    }
    return best;
}

const char *
hint_python(const char *name)
{
    static const struct {
        const char *name, *use;
    } rows[] = {
        {"abs", "tl.abs"},
        {"sum", "tl.sum"},
        {"any", "tl.reduce_or of int1"},
        {"all", "tl.min of int1"},
        {"round", "libdevice.rint"},
        {"pow", "libdevice.pow"},
        {"sorted", "tl.sort"},
        {"divmod", "// and %"},
        {"enumerate", "an index of tl.static_range(len(...))"},
        {"zip", "an index of tl.static_range(len(...))"},
        {"reversed", "tl.static_range with a negative step"},
        {"map", "tl.map_elementwise, or a list comprehension over a tuple"},
        {"set", "a tuple"},
        {"dict", "a tuple"},
        {"type", "x.dtype"},
        {"input", "a parameter"},
        {"open", "a parameter"},
    };
    for (int i = 0; i < COUNT_OF(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].use;
    return NULL;
}

const char *
hint_host(Sema *s, const char *name)
{
    static const struct {
        const char *name, *use;
    } rows[] = {
        {"float", "float32"},   {"double", "float64"}, {"half", "float16"},
        {"int", "int32"},       {"long", "int64"},     {"short", "int16"},
        {"char", "int8"},       {"bool", "int1"},      {"uint", "uint32"},
        {"ones", "full"},       {"empty", "zeros"},    {"tensor", "full"},
        {"power", "math.exp2"}, {"concatenate", "cat"}, {"transpose", "trans"},
        {"matmul", "dot"},      {"mean", "sum"},       {"tanh", "extra.libdevice.tanh"},
        {"_experimental_descriptor_load", "load_tensor_descriptor"},
        {"_experimental_descriptor_store", "store_tensor_descriptor"},
    };
    for (int i = 0; i < COUNT_OF(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return arena_printf(s->a, "tl.%s", rows[i].use);
    Name interned = name_of(&s->s->names, name);
    if (builtin_find(s, interned, IN_TL) ||
        dtype_by_tl_name(name, strlen(name)) != DT_NONE)
        return arena_printf(s->a, "tl.%s", name);
    return builtin_find(s, interned, IN_LIB)
               ? arena_printf(s->a, "tl.extra.libdevice.%s", name)
               : NULL;
}

const char *
hint_float(Val v)
{
    return v->kind == FE_FLOAT ? "; '/' gives a float, '//' an integer" : "";
}

const char *
hint_larger(const char *function, const char *param)
{
    if (strcmp(param, "axis") != 0)
        return "";
    if (strcmp(function, "max") == 0)
        return "; the larger of two values is tl.maximum(x, y)";
    if (strcmp(function, "min") == 0)
        return "; the smaller of two values is tl.minimum(x, y)";
    return "";
}

void
note_parameter(Sema *s, Val v)
{
    const Frame *root = s->frame;
    while (root && root->caller)
        root = root->caller;
    if (!root || !root->fn || v->kind != FE_TENSOR || v->v->op || !v->v->name ||
        v->v->region != s->f->body)
        return;
    for (int i = 0; i < root->fn->list.n; i++) {
        const Node *p = root->fn->list.at[i];
        if (strcmp(p->name, v->v->name) == 0)
            diag_note(&s->s->diag, p->loc, "'%s' is a parameter that is known at run "
                      "time only: write %s: tl.constexpr", p->name, p->name);
    }
}

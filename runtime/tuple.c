/* Arguments that are tuples: their elements, flattened. */
#include "runtime/internal.h"

enum { MAX_TUPLE_DEPTH = 8 };

static const SdcArg *
leaf_of(const SdcArg *a, int *i, int depth)
{
    if (a->kind != SDC_ARG_TUPLE)
        return (*i)-- == 0 ? a : NULL;
    const SdcArg *items = a->v.ptr, *found = NULL;
    for (int k = 0; k < a->dtype && !found && depth < MAX_TUPLE_DEPTH; k++)
        found = leaf_of(&items[k], i, depth + 1);
    return found;
}

const SdcArg *
tuple_leaf(const SdcArg *a, int i)
{
    return leaf_of(a, &i, 0);
}

static bool
is_right(const SdcArg *a, int *left, int depth)
{
    if (a->kind != SDC_ARG_TUPLE)
        return (uint32_t)a->kind < SDC_ARG_TUPLE && arg_typed(a) && (*left)-- > 0;
    const SdcArg *items = a->v.ptr;
    if (depth >= MAX_TUPLE_DEPTH || a->dtype < 0 || a->dtype > SDCRT_MAX_LEAVES ||
        (a->dtype && !items))
        return false;
    for (int i = 0; i < a->dtype; i++)
        if (!is_right(&items[i], left, depth + 1))
            return false;
    return true;
}

bool
tuple_is_right(const SdcArg *a)
{
    int left = SDCRT_MAX_LEAVES;
    return is_right(a, &left, 0);
}

void
grid_values(const SdcKernel *k, const SdcArg *args, int nargs, int64_t *value)
{
    for (int i = 0, n = 0; i < nargs; i++) {
        const SdcrtSource *s = k->rules[i].source;
        for (int part = 0; part < (s->is_tuple ? s->nleaf : 1); part++) {
            const SdcArg *a = tuple_leaf(&args[i], part);
            value[n++] = a && a->kind == SDC_ARG_INT ? a->v.i : 0;
        }
    }
}

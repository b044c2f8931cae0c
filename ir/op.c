/* The operation table, made from ir/ops.def. */
#include "ir/op.h"

#include <string.h>

const OpInfo op_info[OP_COUNT] = {
#define OP(id, name, min, max, nres, nregion, traits, effects, rule, doc) \
    [OP_##id] = {name, min, max, nres, nregion, traits, effects, #rule, doc},
#include "ir/ops.def"
};

OpKind
op_by_name(const char *s, size_t n)
{
    for (int i = 0; i < OP_COUNT; i++)
        if (strlen(op_info[i].name) == n && memcmp(op_info[i].name, s, n) == 0)
            return (OpKind)i;
    return OP_COUNT;
}

bool
opkind_effect(OpKind k, int i, Effect *out)
{
    uint32_t e = i == 0 ? op_info[k].effects & 0xffff : op_info[k].effects >> 16;
    if (i > 1 || !e)
        return false;
    *out = (Effect){(int)(e & 15), (int)(e >> 4 & 15), (int)(e >> 8 & 15)};
    return true;
}

Queue
opkind_issues(OpKind k)
{
    switch ((int)k) {
#define QUEUE(id, issues, waits) \
    case OP_##issues: return QUEUE_##id;
#include "ir/async.def"
    default: return QUEUE_NONE;
    }
}

Queue
opkind_waits(OpKind k)
{
    switch ((int)k) {
#define QUEUE(id, issues, waits) \
    case OP_##waits: return QUEUE_##id;
#include "ir/async.def"
    default: return QUEUE_NONE;
    }
}

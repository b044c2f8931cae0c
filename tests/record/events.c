/* Which instructions belong to a record, and how it calls them: PTX's name without the
   parts that say nothing here, and the operands that a schedule decides, '?' for those
   that are not constants. '@' is an instruction that not every thread executes. */
#include "tests/record/record.h"

#include <string.h>

static const struct {
    const char *op; /* what its name begins with */
    Event kind;
    bool whole;           /* its name as it is */
    const char *operands; /* digits: those that are shown */
} rules[] = {
    {"mbarrier.init", EVENT_LINE, false, "1"},
    {"mbarrier.arrive.expect_tx", EVENT_LINE, false, "2"},
    {"mbarrier.expect_tx", EVENT_LINE, false, "1"},
    {"mbarrier.", EVENT_LINE, false, ""},
    {"cp.async.bulk.wait_group", EVENT_LINE, true, "0"},
    {"cp.async.bulk", EVENT_LINE, true, ""},
    {"cp.reduce.async.bulk", EVENT_LINE, false, ""},
    {"cp.async.wait_group", EVENT_LINE, true, "0"},
    {"cp.async.c", EVENT_LINE, true,
     "2"}, /* ca, cg and their bytes; commit_group has none */
    {"cp.async.", EVENT_LINE, true, ""},
    {"wgmma.wait_group", EVENT_LINE, false, "0"},
    {"wgmma.", EVENT_LINE, false, ""},
    {"setmaxnreg", EVENT_LINE, false, "0"},
    {"barrier.cluster", EVENT_LINE, true, ""},
    {"bar.warp", EVENT_LINE, false, ""},
    {"bar", EVENT_LINE, true, "01"},
    {"fence", EVENT_LINE, true, ""},
    {"membar", EVENT_LINE, false, ""},
    {"griddepcontrol", EVENT_LINE, true, ""},
    {"tensormap", EVENT_LINE, false, ""},
    {"prefetch.tensormap", EVENT_LINE, false, ""},
    {"nanosleep", EVENT_LINE, false, ""},
    {"ldmatrix", EVENT_LINE, false, ""},
    {"stmatrix", EVENT_LINE, false, ""},
    {"mma", EVENT_LINE, false, ""},
    {"red.", EVENT_LINE, true, ""},
    {"atom.", EVENT_LINE, true, ""},
    {"ld.param", EVENT_NONE, false, ""},
    {"st.param", EVENT_NONE, false, ""},
    {"ld", EVENT_COUNT, true, ""},
    {"st", EVENT_COUNT, true, ""},
    {"shfl", EVENT_COUNT, true, ""},
    {"vote", EVENT_COUNT, true, ""},
    {"redux", EVENT_COUNT, true, ""},
    {"call", EVENT_COUNT, true, ""},
};

/* Parts of names that every such instruction of sdc has, or that its other parts say. */
static bool
says_nothing(const char *part, size_t n)
{
    static const char *const drop[] = {
        "sync",   "aligned", "shared::cta", "shared::cluster",
        "shared", "global",  "b64",         "b32",
        "b16",    "u32",     "m8n8",        "row",
        "col",    "tile",    "bulk_group",  "mbarrier::complete_tx::bytes"};
    for (size_t k = 0; k < sizeof drop / sizeof *drop; k++)
        if (strlen(drop[k]) == n && strncmp(part, drop[k], n) == 0)
            return true;
    return false;
}

static void
shorten(const char *op, bool keep, char *out, size_t size)
{
    size_t used = 0;
    for (const char *s = op; *s && used + 1 < size;) {
        size_t n = strcspn(s, ".");
        if (s == op || keep || !says_nothing(s, n)) {
            used += (size_t)snprintf(out + used, size - used, "%s%.*s",
                                     s == op ? "" : ".", (int)n, s);
        }
        s += n + (s[n] == '.');
    }
}

Event
event_of(const Kernel *k, const Insn *i, char *out, size_t size)
{
    size_t r = 0, count = sizeof rules / sizeof *rules;
    char name[160];
    if (i->label)
        return EVENT_NONE;
    while (r < count && strncmp(i->op, rules[r].op, strlen(rules[r].op)) != 0)
        r++;
    if (r == count || rules[r].kind == EVENT_NONE)
        return EVENT_NONE;
    const char *tensor = strstr(i->op, "async.bulk.tensor.");
    if (tensor) { /* to shared memory, or out of it */
        const char *to = strstr(i->op, ".shared"), *from = strstr(i->op, ".global");
        char rest[128];
        shorten(tensor + strlen("async.bulk.tensor."), false, rest, sizeof rest);
        snprintf(name, sizeof name, "tma.%s.%s",
                 strncmp(i->op, "cp.reduce", 9) == 0 ? "reduce"
                 : to && from && to < from           ? "load"
                                                     : "store",
                 rest);
    } else {
        shorten(i->op, rules[r].whole, name, sizeof name);
    }
    size_t used = (size_t)snprintf(out, size, "%s%s", i->guarded ? "@" : "", name);
    for (const char *d = rules[r].operands; *d; d++) {
        int n = *d - '0';
        long value;
        if (n >= i->narg || used >= size)
            continue;
        const char *between = d == rules[r].operands ? " " : ", ";
        if (ptx_value(k, i->arg[n], &value))
            used += (size_t)snprintf(out + used, size - used, "%s%ld", between, value);
        else
            used += (size_t)snprintf(out + used, size - used, "%s?", between);
    }
    if (strncmp(i->op, "wgmma.mma", 9) == 0 && i->narg > 1 && *i->arg[1] == '{' &&
        used < size)
        snprintf(out + used, size - used, " A in registers");
    return rules[r].kind;
}

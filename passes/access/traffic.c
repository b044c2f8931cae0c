/* Adds up the bytes of the tiles that a program loads and stores, by the parameter that
   their addresses come from. */
#include "passes/access/traffic.h"

#include "ir/base/util.h"
#include "ir/op.h"

enum { DEPTH = 200, PARAMS = 64 };

typedef struct Traffic {
    const Func *f;
    struct {
        int64_t in, out; /* bytes loaded and stored */
        bool loop;       /* some of them in a loop */
    } of[PARAMS + 1];    /* by parameter; the last: of unknown origin */
    int64_t stored;      /* elements */
} Traffic;

/* The number of the parameter that an address comes from; PARAMS: it is not known. */
static int
param_of(const Traffic *t, const Value *v)
{
    for (int depth = 0; depth < DEPTH; depth++) {
        const Op *op = v->op;
        if (!op) {
            const Op *home = v->region->parent;
            if (!home)
                return v->index < PARAMS && v->region == t->f->body ? v->index : PARAMS;
            if (home->kind != OP_FOR || v->index == 0)
                return PARAMS;
            v = op_operand(home, v->index + 2);
        } else if (op->kind == OP_FOR) {
            v = op_operand(op, v->index + 3);
        } else if (op->noperand && op_is(op, T_PURE) && !op->nregion) {
            v = op_operand(op, 0);
        } else {
            return PARAMS;
        }
    }
    return PARAMS;
}

static int64_t
bytes_of(const Type *t)
{
    return type_bytes(t);
}

static void
count(Traffic *t, const Op *op, bool loop)
{
    Effect fx;
    for (int i = 0; i < 2 && opkind_effect(op->kind, i, &fx); i++) {
        if (fx.resource != RES_GLOBAL)
            continue;
        int p = param_of(t, op_operand(op, fx.operand));
        bool writes = fx.kind & ACC_WRITE, reads = !writes || op->nresult;
        const Type *tile = op->nresult ? op->results[0].type : op_operand(op, 1)->type;
        t->of[p].in += reads ? bytes_of(tile) : 0;
        t->of[p].out += writes ? bytes_of(tile) : 0;
        t->of[p].loop |= loop;
        t->stored += writes ? type_numel(tile) : 0;
    }
}

static void
walk(Traffic *t, const Region *r, bool loop, int depth)
{
    for (const Op *op = r->first; op; op = op->next) {
        count(t, op, loop);
        bool inside = loop || op->kind == OP_FOR || op->kind == OP_WHILE;
        for (int i = 0; i < op->nregion && depth < MAX_REGION_DEPTH; i++)
            walk(t, op->regions[i], inside, depth + 1);
    }
}

void
traffic_print(Buf *out, const Func *f)
{
    Traffic t = {.f = f};
    int64_t in = 0, to = 0;
    bool loop = false;
    walk(&t, f->body, false, 0);
    buf_printf(out, "memory of one program of '%s', in bytes\n", f->name);
    for (int i = 0; i <= PARAMS; i++) {
        if (!t.of[i].in && !t.of[i].out)
            continue;
        buf_printf(out, "  %-16s reads %8lld  writes %8lld%s\n",
                   i < PARAMS && f->params[i].name ? f->params[i].name : "(others)",
                   (long long)t.of[i].in, (long long)t.of[i].out,
                   t.of[i].loop ? "  in each iteration of a loop" : "");
        in += t.of[i].in;
        to += t.of[i].out;
        loop |= t.of[i].loop;
    }
    buf_printf(out, "  %-16s reads %8lld  writes %8lld", "in all", (long long)in,
               (long long)to);
    if (t.stored && !loop)
        buf_printf(out, "; for each element written %g and %g",
                   (double)in / (double)t.stored, (double)to / (double)t.stored);
    buf_str(out, "\n");
}

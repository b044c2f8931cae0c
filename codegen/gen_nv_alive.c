/* How many registers the tiles of a kernel take that are alive at once, as the program
   stands: what ptxas is told goes by it (gen_nv.c). Only numbers count; addresses, masks
   and constants are mostly made where they are used. */
#include "codegen/gen_nv.h"

#include "ir/base/map.h"
#include "ir/edit.h"

typedef struct Alive {
    Arena *arena;
    Map values; /* a number -> itself while it is alive */
    int words;  /* 32-bit registers of a thread that they take */
    int most;
} Alive;

static int
words_of(const Value *v)
{
    const Type *t = v->type;
    bool constant = v->op && v->op->noperand == 0;
    if (!type_is_tile(t) || !t->layout || !type_is_float(t) || constant)
        return 0;
    return (layout_regs(t->layout) * type_bits(t) + 31) / 32;
}

static void
begin(Alive *a, Value *v)
{
    if (!words_of(v) || map_get(&a->values, v))
        return;
    map_set(&a->values, v, v);
    a->words += words_of(v);
}

static void
end(Alive *a, Value *v)
{
    if (!map_get(&a->values, v))
        return;
    map_set(&a->values, v, NULL);
    a->words -= words_of(v);
}

static void
note(Alive *a)
{
    a->most = a->words > a->most ? a->words : a->most;
}

/* What the body reads from outside is alive all through it. */
static void
begin_outer(Alive *a, const Region *body)
{
    region_each_deep(body, in)
    {
        for (int i = 0; i < in->noperand; i++)
            if (value_outside(op_operand(in, i), body))
                begin(a, op_operand(in, i));
    }
}

/* Backwards: a value begins at its last use and ends where it is made. */
static void
walk(Alive *a, const Region *r, int depth)
{
    for (Op *op = r->last; op && depth < MAX_REGION_DEPTH; op = op->prev) {
        note(a);
        for (int i = 0; i < op->nresult; i++)
            end(a, &op->results[i]);
        for (int i = 0; i < op->nregion; i++)
            begin_outer(a, op->regions[i]);
        for (int i = 0; i < op->nregion; i++)
            walk(a, op->regions[i], depth + 1);
        for (int i = 0; i < op->noperand; i++)
            begin(a, op_operand(op, i));
        note(a);
    }
    for (int i = 0; i < r->narg; i++)
        end(a, r->args[i]);
}

int
nv_alive(Gen *g, const Func *f)
{
    Alive a = {.arena = &g->s->tmp};
    map_init(&a.values, a.arena);
    walk(&a, f->body, 0);
    return a.most;
}

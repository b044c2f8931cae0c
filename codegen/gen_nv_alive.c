/* Chooses the hint for ptxas about registers (.minnctapersm), by an estimate: how many
   registers the tiles of a kernel need that are alive at the same time. Only numbers
   count; addresses, masks and constants are mostly computed where they are used. */
#include "codegen/gen_nv_access.h"

#include "ir/base/map.h"
#include "ir/base/util.h"
#include "ir/edit.h"

typedef struct Alive {
    Arena *arena;
    Map values;    /* Value -> itself while it is alive */
    bool integers; /* integers count, too */
    int words;     /* 32-bit registers of a thread for those values */
    int most;      /* so far */
} Alive;

static int
words_of(const Alive *a, const Value *v)
{
    const Type *t = v->type;
    bool constant = v->op && v->op->noperand == 0;
    bool counts = type_is_float(t) || (a->integers && type_is_int(t) && type_bits(t) > 1);
    if (!type_is_tile(t) || !t->layout || !counts || constant)
        return 0;
    return (layout_regs(t->layout) * type_bits(t) + 31) / 32;
}

static void
begin(Alive *a, Value *v)
{
    if (!words_of(a, v) || map_get(&a->values, v))
        return;
    map_set(&a->values, v, v);
    a->words += words_of(a, v);
}

static void
end(Alive *a, Value *v)
{
    if (!map_get(&a->values, v))
        return;
    map_set(&a->values, v, NULL);
    a->words -= words_of(a, v);
}

static void
note(Alive *a)
{
    a->most = a->words > a->most ? a->words : a->most;
}

/* Values from outside that a loop's body reads are alive in all of it. */
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

/* Walks a region backwards: a value is alive from its last use up to its definition. */
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

static int
alive_words(Gen *g, const Func *f, bool integers)
{
    Alive a = {.arena = &g->s->tmp, .integers = integers};
    map_init(&a.values, a.arena);
    walk(&a, f->body, 0);
    return a.most;
}

/* How many accesses a thread makes for the loads of tiles in r, without nested
   regions. */
static int
accesses_of(const Region *r)
{
    int n = 0;
    for (const Op *op = r->first; op; op = op->next) {
        const Type *t = op->kind == OP_LOAD ? op->results[0].type : NULL;
        if (t && type_is_tile(t) && t->layout)
            n += layout_regs(t->layout) /
                 nv_run(op, t->layout, (nv_memory_bits(type_elem(t)) + 7) / 8).n;
    }
    return n;
}

/* Does a loop load several tiles in each iteration, of more words than the registers with
   which a second program runs? What needs all of a single one waits for all of its
   accesses anyway; several may be waited for piece by piece. */
static bool
loads_several(const Region *r, int registers)
{
    region_each_deep(r, op)
    {
        int tiles = 0, words = 0;
        if (op->kind != OP_FOR && op->kind != OP_WHILE)
            continue;
        for (const Op *in = op->regions[op->nregion - 1]->first; in; in = in->next) {
            const Type *t = in->kind == OP_LOAD ? in->results[0].type : NULL;
            if (!t || !type_is_tile(t) || !t->layout)
                continue;
            tiles++;
            words += layout_regs(t->layout) * nv_memory_bits(type_elem(t)) / 32;
        }
        if (tiles > 1 && words >= registers)
            return true;
    }
    return false;
}

/* Loops with several accesses in each iteration, as pass unroll has made them or as the
   source has them; or many accesses outside of loops. */
typedef enum Asks { ASKS_LITTLE, ASKS_MUCH, ASKS_AT_ONCE } Asks;

static Asks
asks_of(const Region *r, int depth)
{
    enum { SEVERAL = 3 };
    Asks most = ASKS_LITTLE;
    for (const Op *op = r->first; op && depth < MAX_REGION_DEPTH; op = op->next) {
        bool loop = op->kind == OP_FOR || op->kind == OP_WHILE;
        if (attr_has(&op->attrs, ATTR_AT_ONCE))
            return ASKS_AT_ONCE;
        if (loop && accesses_of(op->regions[op->nregion - 1]) >= SEVERAL)
            most = ASKS_MUCH;
        for (int i = 0; i < op->nregion; i++) {
            Asks in = asks_of(op->regions[i], depth + 1);
            most = in > most ? in : most;
        }
    }
    return most;
}

/* The hint for a kernel with several accesses at once: as many programs as have registers
   for everything that is alive, integers included, and for addresses. Without a hint
   ptxas uses no more registers than let most programs run, and so puts each load behind
   the work on the one before. If pass unroll has merged iterations, it does so only if 64
   registers are enough, or 80 where addresses and masks would make those spill; if much
   is alive it has to use more anyway. Two programs or more with all registers, if a loop
   loads so much that these have enough in flight. */
static int
programs_of_loads(Gen *g, const Func *f, int alive)
{
    enum { LEAST = 64, MOST = 112, MOST_ALL = 128, BESIDE = 12, SHORT = 16 };
    enum { MANY = 128 }; /* of fewer threads an SM runs no more programs with less */
    int threads = 32 * nv_of(g)->warps, least = LEAST;
    Asks asks = asks_of(f->body, 0);
    if (asks == ASKS_LITTLE && threads >= MANY && accesses_of(f->body) > LEAST / 2) {
        asks = ASKS_MUCH;
        least += SHORT;
    }
    if (asks == ASKS_MUCH && alive > MOST && loads_several(f->body, LEAST)) {
        int all = g->info.registers / threads / NV_ALL_REGS;
        return all > 1 ? all : 0;
    }
    if (asks == ASKS_LITTLE || alive > (asks == ASKS_AT_ONCE ? LEAST : MOST))
        return 0;
    if (asks == ASKS_AT_ONCE && alive > LEAST - BESIDE)
        least += SHORT;
    if (asks == ASKS_MUCH) {
        int all = alive_words(g, f, true);
        if (all > MOST_ALL)
            return 0;
        least = (int)max_i64(least, all + BESIDE);
    }
    return g->info.registers / threads / least;
}

/* One program if registers cannot hold everything: for a kernel that needs a multiple of
   255 registers ptxas may give up and use 32. Two for 512 threads whose tiles need up to
   64 registers: with 65 registers only one program would run. One if a loop loads several
   tiles that need more: ptxas asks for them sooner then. (With fewer threads such a
   hint has the opposite effect: more registers and fewer programs.) */
int
nv_least_programs(Gen *g, const Func *f)
{
    enum { THREADS = 512, FEW = 48, FITS = 64 };
    const Nv *nv = nv_of(g);
    if (nv_roles_of(f))
        return 0;
    int alive = alive_words(g, f, false), threads = 32 * nv->warps;
    if (alive >= 2 * NV_ALL_REGS || nv->widest >= NV_ALL_REGS)
        return 1;
    if (nv->multiplies)
        return 0;
    if (threads < THREADS)
        return programs_of_loads(g, f, alive);
    if (threads > THREADS || alive <= FEW)
        return 0;
    return alive <= FITS ? 2 : loads_several(f->body, FITS);
}

/* How many registers the tiles of a kernel take that are alive at once, as the program
   stands, and how many programs of an SM ptxas is told of by that. Only numbers count;
   addresses, masks and constants are mostly made where they are used. */
#include "codegen/gen_nv.h"

#include "ir/base/map.h"
#include "ir/base/util.h"
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

/* What the body, or r in it, reads from outside is alive all through it. */
static void
begin_outer(Alive *a, const Region *body, const Region *r, int depth)
{
    for (const Op *in = r->first; in && depth < MAX_REGION_DEPTH; in = in->next) {
        for (int i = 0; i < in->noperand; i++)
            if (value_outside(op_operand(in, i), body))
                begin(a, op_operand(in, i));
        for (int i = 0; i < in->nregion; i++)
            begin_outer(a, body, in->regions[i], depth + 1);
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
            begin_outer(a, op->regions[i], op->regions[i], depth + 1);
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
alive_words(Gen *g, const Func *f)
{
    Alive a = {.arena = &g->s->tmp};
    map_init(&a.values, a.arena);
    walk(&a, f->body, 0);
    return a.most;
}

/* Is there a loop that pass unroll has let ask for several iterations at once? */
static bool
asks_at_once(const Region *r, int depth)
{
    for (const Op *op = r->first; op && depth < MAX_REGION_DEPTH; op = op->next) {
        if (attr_has(&op->attrs, ATTR_AT_ONCE))
            return true;
        for (int i = 0; i < op->nregion; i++)
            if (asks_at_once(op->regions[i], depth + 1))
                return true;
    }
    return false;
}

/* Of a kernel whose dots threads compute: as many programs as find room for the registers
   that are alive and one turn's reads, and for shared memory. */
static int
programs_of_dots(Gen *g, const Func *f, int alive)
{
    enum { TURN = 64, RESERVED = 1024 };
    const TargetInfo *t = &g->info;
    int64_t regs = t->registers / (32 * nv_of(g)->warps * (alive + TURN));
    int64_t room = (t->shared_bytes + RESERVED) / (f->shared_bytes + RESERVED);
    int64_t least = min_i64(regs, room);
    return least > 1 ? (int)least : 0;
}

/* How many programs of an SM ptxas is told to leave registers for; 0: it decides. One
   where registers cannot hold all: of a kernel that needs a multiple of 255 ptxas may
   give up and use 32. Two for 512 threads whose tiles fit into 64 registers, but may
   just not: with 65 there is one. (Those of fewer get more registers if they are told,
   and fewer programs.) So many of up to 256 threads as leave each thread 64 registers,
   where loads of several iterations stand together: ptxas takes them apart for one
   program more, and a loop waits as often as before. Of dots by threads, for which ptxas
   reads as far ahead as it finds registers, several: they hide what a read takes. */
int
nv_least_programs(Gen *g, const Func *f)
{
    enum { THREADS = 512, FEW = 48, FITS = 64, ALL_THREADS = 1024 };
    const Nv *nv = nv_of(g);
    if (nv_roles_of(f))
        return 0;
    int alive = alive_words(g, f);
    if (alive >= 2 * NV_ALL_REGS || nv->widest >= NV_ALL_REGS)
        return 1;
    if (asks_at_once(f->body, 0) && 32 * nv->warps < THREADS && alive <= FITS &&
        !nv->dots)
        return ALL_THREADS / (32 * nv->warps);
    if (nv->dots && nv->dots == nv->thread_dots)
        return programs_of_dots(g, f, alive);
    bool fits = alive > FEW && alive <= FITS && !nv->dots;
    return fits && 32 * nv->warps == THREADS ? 2 : 0;
}

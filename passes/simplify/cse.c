/* Common subexpressions: a pure op that equals one already computed in this region or an
   enclosing one takes its results. Loads take part while nothing may have written
   between.

       %a = add %x, %y : i32                 %a = add %x, %y : i32
       %b = add %y, %x : i32          =>     use %a, %a
       use %a, %b

   A scope is a chain of hash buckets in the tmp arena: entering a region keeps what the
   outside knows, leaving it forgets what the inside learned. */
#include "ir/base/vec.h"
#include "ir/edit.h"
#include "passes/pass.h"

#include <string.h>

enum { BUCKETS = 1024 };

typedef struct Entry {
    Op *op;
    uint64_t hash;
    uint32_t epoch; /* of memory when a load was made */
    struct Entry *next;
} Entry;

typedef struct Cse {
    Arena *tmp;
    Entry *buckets[BUCKETS];
    Vec(Entry *) undo; /* entries in order of insertion, for leaving a scope */
    uint32_t epoch;    /* bumped at every possible write to memory */
    bool changed;
} Cse;

static uint64_t
mix(uint64_t h, uint64_t x)
{
    h ^= x + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdu;
}

static uint64_t
hash_op(const Op *op)
{
    uint64_t h = mix(op->kind, attr_hash(&op->attrs));
    uint64_t opnds = 0;
    for (int i = 0; i < op->noperand; i++) {
        uint64_t one = mix(0, op_operand(op, i)->id);
        bool swaps = op_is(op, T_COMMUTES) && i < 2;
        opnds = swaps ? opnds + one : mix(opnds, one);
    }
    h = mix(h, opnds);
    for (int i = 0; i < op->nresult; i++)
        h = mix(h, op->results[i].type->hash);
    return h;
}

static bool
same_op(const Op *a, const Op *b)
{
    if (a->kind != b->kind || a->noperand != b->noperand || a->nresult != b->nresult)
        return false;
    for (int i = 0; i < a->nresult; i++)
        if (a->results[i].type != b->results[i].type)
            return false;
    bool same = true;
    for (int i = 0; i < a->noperand && same; i++)
        same = op_operand(a, i) == op_operand(b, i);
    if (!same && op_is(a, T_COMMUTES)) {
        same =
            op_operand(a, 0) == op_operand(b, 1) && op_operand(a, 1) == op_operand(b, 0);
        for (int i = 2; i < a->noperand && same; i++)
            same = op_operand(a, i) == op_operand(b, i);
    }
    return same && attr_eq(&a->attrs, &b->attrs);
}

static bool
is_plain_load(const Op *op)
{
    return op->kind == OP_LOAD && !attr_has(&op->attrs, ATTR_VOLATILE);
}

static void
visit_op(Cse *c, Op *op)
{
    bool load = is_plain_load(op);
    uint64_t h = hash_op(op);
    Entry **bucket = &c->buckets[h % BUCKETS];
    for (Entry *e = *bucket; e; e = e->next) {
        if (e->hash != h || !same_op(e->op, op) || (load && e->epoch != c->epoch))
            continue;
        for (int i = 0; i < op->nresult; i++)
            value_replace(&op->results[i], &e->op->results[i]);
        op_erase(op);
        c->changed = true;
        return;
    }
    Entry *e = arena_new(c->tmp, Entry);
    *e = (Entry){op, h, c->epoch, *bucket};
    *bucket = e;
    vec_push(c->tmp, &c->undo, e);
}

/* Empties the table, for regions that do not see the values around them. */
static Entry **
hide_outer(Cse *c)
{
    Entry **outer = arena_array(c->tmp, Entry *, BUCKETS);
    memcpy(outer, c->buckets, sizeof c->buckets);
    memset(c->buckets, 0, sizeof c->buckets);
    return outer;
}

static void
visit_region(Cse *c, Region *r, int depth)
{
    if (depth > MAX_REGION_DEPTH)
        return;
    int scope = c->undo.n;
    region_each(r, op)
    {
        if (op->nregion) {
            bool writes = op_effects(op).writes != 0;
            c->epoch += writes; /* a loop body may run after its own writes */
            Entry **outer = op_is(op, T_ISOLATED) ? hide_outer(c) : NULL;
            for (int i = 0; i < op->nregion; i++)
                visit_region(c, op->regions[i], depth + 1);
            if (outer)
                memcpy(c->buckets, outer, sizeof c->buckets);
            c->epoch += writes;
        } else if (op_is(op, T_PURE) || is_plain_load(op)) {
            visit_op(c, op);
        } else if (op_effects(op).writes) {
            c->epoch++;
        }
    }
    while (c->undo.n > scope) {
        Entry *e = c->undo.at[--c->undo.n];
        c->buckets[e->hash % BUCKETS] = e->next;
    }
}

bool
pass_cse(Func *f, PassCx *cx)
{
    Cse *c = arena_new(&cx->s->tmp, Cse);
    c->tmp = &cx->s->tmp;
    visit_region(c, f->body, 0);
    return c->changed;
}

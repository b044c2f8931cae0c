/* Changing IR: uses, moves, erasure, cloning. Every list that another file may look at is
   right again when a function here returns. */
#include "ir/edit.h"

#include "ir/build.h"

#include <string.h>

static void
use_link(Use *u, Value *v)
{
    u->value = v;
    u->next = v->uses;
    u->link = &v->uses;
    if (v->uses)
        v->uses->link = &u->next;
    v->uses = u;
}

static void
use_unlink(Use *u)
{
    *u->link = u->next;
    if (u->next)
        u->next->link = u->link;
    u->next = NULL;
    u->link = NULL;
}

/* Uses are stored in the op: when that array moves, the lists must follow. */
static void
use_move(Use *to, Use *from)
{
    *to = *from;
    *to->link = to;
    if (to->next)
        to->next->link = &to->next;
}

void
op_set_operand(Op *op, int i, Value *v)
{
    Use *u = &op->operands[i];
    if (u->value == v)
        return;
    use_unlink(u);
    use_link(u, v);
}

void
op_add_operand(Op *op, Value *v)
{
    if (op->noperand == op->operand_cap) {
        int cap = op->operand_cap ? op->operand_cap * 2 : 4;
        Arena *a = &op->parent->func->module->s->mod;
        Use *old = op->operands;
        op->operands = arena_array(a, Use, cap);
        op->operand_cap = cap;
        for (int i = 0; i < op->noperand; i++)
            use_move(&op->operands[i], &old[i]);
    }
    Use *u = &op->operands[op->noperand];
    *u = (Use){.user = op, .index = op->noperand++};
    use_link(u, v);
}

void
op_drop_operand(Op *op, int i)
{
    use_unlink(&op->operands[i]);
    for (int k = i + 1; k < op->noperand; k++) {
        use_move(&op->operands[k - 1], &op->operands[k]);
        op->operands[k - 1].index = k - 1;
    }
    op->noperand--;
    op->operands[op->noperand] = (Use){0};
}

void
value_replace(Value *old, Value *by)
{
    if (old == by)
        return;
    while (old->uses) {
        Use *u = old->uses;
        use_unlink(u);
        use_link(u, by);
    }
}

void
value_set_type(Value *v, const Type *t)
{
    v->type = t;
}

static void
op_unlink(Op *op)
{
    Region *r = op->parent;
    *(op->prev ? &op->prev->next : &r->first) = op->next;
    *(op->next ? &op->next->prev : &r->last) = op->prev;
    op->prev = op->next = NULL;
}

static void
drop_all_uses(Op *op, int depth)
{
    for (int i = 0; i < op->noperand; i++)
        use_unlink(&op->operands[i]);
    op->noperand = 0;
    if (depth > MAX_REGION_DEPTH)
        return;
    for (int r = 0; r < op->nregion; r++)
        region_each(op->regions[r], in) drop_all_uses(in, depth + 1);
}

void
op_erase(Op *op)
{
    if (!op->parent) /* unlinked a second time, it would take all of its region along */
        return;
    drop_all_uses(op, 0);
    op_unlink(op);
    op->parent = NULL;
}

static void
op_link_before(Op *op, Op *where)
{
    Region *r = where->parent;
    op->parent = r;
    op->prev = where->prev;
    op->next = where;
    *(where->prev ? &where->prev->next : &r->first) = op;
    where->prev = op;
}

void
op_move_before(Op *op, Op *where)
{
    if (op == where)
        return;
    op_unlink(op);
    op_link_before(op, where);
}

void
op_move_to_end(Op *op, Region *r)
{
    op_unlink(op);
    op->parent = r;
    op->prev = r->last;
    *(r->last ? &r->last->next : &r->first) = op;
    r->last = op;
}

void
op_splice(Op *op, Region *from)
{
    Op *end = from->last;
    while (from->first != end)
        op_move_before(from->first, op);
    for (int i = 0; i < op->nresult; i++)
        value_replace(&op->results[i], op_operand(end, i));
    op_erase(op);
}

/* Results are an array that uses point into: later ones move down one place. */
void
op_add_results(Op *op, const Type *const *types, int n)
{
    Func *f = op->parent->func;
    op->results = n ? arena_array(&f->module->s->mod, Value, n) : NULL;
    op->nresult = n;
    for (int i = 0; i < n; i++)
        op->results[i] =
            (Value){.op = op, .index = i, .id = f->next_id++, .type = types[i]};
}

static void
value_move(Value *to, Value *from)
{
    *to = *from;
    for (Use *u = to->uses; u; u = u->next)
        u->value = to;
    if (to->uses)
        to->uses->link = &to->uses;
}

/* One more result. Those that are there move. */
static Value *
grow_results(Op *op, const Type *t)
{
    Func *f = op->parent->func;
    int n = op->nresult;
    Value *results = arena_array(&f->module->s->mod, Value, n + 1);
    for (int i = 0; i < n; i++)
        value_move(&results[i], &op->results[i]);
    results[n] = (Value){.op = op, .index = n, .id = f->next_id++, .type = t};
    op->results = results;
    op->nresult = n + 1;
    return &results[n];
}

Value *
for_carry(Op *loop, Value *init)
{
    grow_results(loop, init->type);
    op_add_operand(loop, init);
    return region_arg(loop->regions[0], init->type, init->name);
}

Value *
if_carry(Op *op, Value *then, Value *other)
{
    op_add_operand(op->regions[0]->last, then);
    op_add_operand(op->regions[1]->last, other);
    return grow_results(op, then->type);
}

void
op_drop_result(Op *op, int i)
{
    for (int k = i + 1; k < op->nresult; k++) {
        value_move(&op->results[k - 1], &op->results[k]);
        op->results[k - 1].index = k - 1;
    }
    op->nresult--;
}

void
region_drop_arg(Region *r, int i)
{
    for (int k = i + 1; k < r->narg; k++) {
        r->args[k - 1] = r->args[k];
        r->args[k - 1]->index = k - 1;
    }
    r->narg--;
}

Value *
value_mapped(const Map *map, Value *v)
{
    Value *to = map_get(map, v);
    return to ? to : v;
}

static void
clone_region(Builder *b, Op *to, const Region *from, Map *map)
{
    Region *r = region_new(b->func, to);
    for (int i = 0; i < from->narg; i++)
        map_set(map, from->args[i],
                region_arg(r, from->args[i]->type, from->args[i]->name));
    Builder in = builder_at_end(b->func, r);
    region_each(from, op) op_clone(&in, op, map);
}

Op *
op_clone(Builder *b, const Op *op, Map *map)
{
    Value **in = arena_array(&b->s->mod, Value *, op->noperand + 1);
    const Type **types = arena_array(&b->s->mod, const Type *, op->nresult + 1);
    for (int i = 0; i < op->noperand; i++)
        in[i] = value_mapped(map, op_operand(op, i));
    for (int i = 0; i < op->nresult; i++)
        types[i] = op->results[i].type;
    Loc saved = b->loc;
    b->loc = op->loc;
    Op *to = build_op(b, op->kind, in, op->noperand, &op->attrs, types, op->nresult);
    b->loc = saved;
    for (int i = 0; i < op->nresult; i++) {
        to->results[i].name = op->results[i].name;
        map_set(map, &op->results[i], &to->results[i]);
    }
    for (int i = 0; i < op->nregion; i++)
        clone_region(b, to, op->regions[i], map);
    return to;
}

void
region_clone_into(Builder *b, const Region *from, Map *map)
{
    region_each(from, op) if (!op_is(op, T_TERMINATOR)) op_clone(b, op, map);
}

Op *
value_only_user(const Value *v)
{
    return v->uses && !v->uses->next ? v->uses->user : NULL;
}

bool
op_has_uses(const Op *op)
{
    for (int i = 0; i < op->nresult; i++)
        if (op->results[i].uses)
            return true;
    return false;
}

bool
op_before(const Op *a, const Op *b)
{
    for (const Op *x = a->next; x; x = x->next)
        if (x == b)
            return true;
    return false;
}

Op *
op_next_within(const Op *op, const Region *root)
{
    for (int i = 0; i < op->nregion; i++)
        if (op->regions[i]->first)
            return op->regions[i]->first;
    for (; !op->next; op = op->parent->parent) {
        const Region *r = op->parent;
        if (r == root)
            return NULL;
        int i = 0;
        while (r->parent->regions[i] != r)
            i++;
        for (i++; i < r->parent->nregion; i++)
            if (r->parent->regions[i]->first)
                return r->parent->regions[i]->first;
    }
    return op->next;
}

bool
op_in_loop(const Op *op)
{
    for (const Op *up = op->parent->parent; up; up = up->parent->parent)
        if (up->kind == OP_FOR || up->kind == OP_WHILE)
            return true;
    return false;
}

bool
region_has(const Region *r, OpKind kind)
{
    for (const Op *op = r->first; op; op = op->next)
        if (op->kind == kind)
            return true;
    return false;
}

bool
region_has_trait(const Region *r, uint32_t traits)
{
    region_each_deep(r, op) if (op_is(op, traits)) return true;
    return false;
}

Op *
op_in_region(const Op *op, const Region *r)
{
    while (op && op->parent != r)
        op = op->parent->parent;
    return (Op *)op;
}

bool
region_within(const Region *r, const Region *outer)
{
    while (r && r != outer)
        r = r->parent ? r->parent->parent : NULL;
    return r == outer;
}

bool
value_outside(const Value *v, const Region *r)
{
    const Region *home = v->op ? v->op->parent : v->region;
    return !region_within(home, r);
}

static void
add_effects(const Op *op, OpEffects *e, int depth)
{
    Effect fx;
    for (int i = 0; i < 2 && opkind_effect(op->kind, i, &fx); i++) {
        uint32_t bit = 1u << fx.resource;
        if (fx.kind & ACC_READ)
            e->reads |= bit;
        if (fx.kind & ACC_WRITE)
            e->writes |= bit;
        if (fx.resource == RES_NONE && fx.kind == ACC_WRITE) {
            e->keep = true; /* FX_KEEP: no memory, but not to be dropped either */
            e->writes &= ~bit;
        }
    }
    if (attr_has(&op->attrs, ATTR_VOLATILE)) {
        e->keep = true;
        e->writes |= 1u << RES_GLOBAL; /* what others write is seen from here on */
    }
    if (op_is(op, T_CONVERGENT))
        e->convergent = true;
    if (op->kind == OP_WHILE)
        e->keep = true; /* it may not end */
    if (depth > MAX_REGION_DEPTH)
        return;
    for (int r = 0; r < op->nregion; r++)
        region_each(op->regions[r], in) add_effects(in, e, depth + 1);
}

OpEffects
op_effects(const Op *op)
{
    OpEffects e = {0};
    add_effects(op, &e, 0);
    return e;
}

bool
op_is_pure(const Op *op)
{
    if (!op->nregion)
        return op_is(op, T_PURE);
    OpEffects e = op_effects(op);
    return !e.reads && !e.writes && !e.keep && !e.convergent;
}

void
load_guard(Op *load, Value *cond)
{
    Builder b = builder_before(load);
    b.loc = load->loc;
    Value *mask = load->noperand > 1 ? op_operand(load, 1) : NULL;
    mask = build_guard(&b, cond, mask, op_operand(load, 0)->type);
    if (load->noperand > 1)
        op_set_operand(load, 1, mask);
    else
        op_add_operand(load, mask);
}

void
load_unguard(Op *load, Value *mask)
{
    Op *both = mask ? op_operand(load, 1)->op : NULL;
    Value *guard = op_operand(load, 1);
    if (mask)
        op_set_operand(load, 1, mask);
    else
        op_drop_operand(load, 1);
    if (both) {
        guard = op_operand(both, 1);
        op_erase(both);
    }
    if (type_is_tile(guard->type)) /* repeated for the tile */
        op_erase(guard->op);
}

bool
op_divides(const Op *op)
{
    return op->kind == OP_DIVS || op->kind == OP_DIVU || op->kind == OP_REMS ||
           op->kind == OP_REMU;
}

bool
op_is_planned(const Op *op)
{
    return (op->kind == OP_LOAD || op->kind == OP_DESC_LOAD) &&
           attr_has(&op->attrs, ATTR_STAGE);
}

static bool
is_atomic(const Op *op)
{
    return op->kind == OP_ATOMIC_RMW || op->kind == OP_ATOMIC_CAS ||
           op->kind == OP_DESC_ATOMIC;
}

bool
op_acquires(const Op *op)
{
    if (op->kind == OP_LOAD || op->kind == OP_VLOAD)
        return attr_has(&op->attrs, ATTR_VOLATILE);
    return is_atomic(op) && op->nresult && op->results[0].uses;
}

bool
op_releases(const Op *op)
{
    Name sem = attr_str(&op->attrs, ATTR_SEM);
    return is_atomic(op) && (op_acquires(op) || !sem || strcmp(sem, "acq_rel") == 0 ||
                             strcmp(sem, "release") == 0);
}

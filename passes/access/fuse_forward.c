/* Passes values between fused kernels in registers.

   In a chain of kernels over one grid each program loads what it stored itself. So a load
   is replaced by the stored value, and a buffer that only the fused kernels use is not
   stored at all.

       %b = undef {buffer="scale.y"} : ptr<f32>
       %p = addptr (splat %b), %offs
       store %p, %v, %m                            %w = mulf %v, %k
       %x = load %p, %m                     =>     store %q, %w, %m
       %w = mulf %x, %k
       store %q, %w, %m

   `undef {buffer=}` is such a buffer. `hint {buffer=}` marks an argument that several of
   the kernels take; its stores stay. In both cases a program must not load what another
   one stores, since it would have to wait for it. So every load after a store must have
   the addresses of that store (the same value, after cse), its mask and its region.
   Anything else is an error that names both places. Pointers without a mark are other
   memory.
*/
#include "ir/base/map.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "passes/pass.h"

typedef Vec(Op *) OpVec;
typedef Vec(Value *) ValueVec;

typedef struct Buffer {
    Op *op;           /* undef or hint */
    const char *name; /* for messages */
    OpVec accesses; /* in program order */
} Buffer;

typedef struct Forward {
    Session *s;
    Map order;     /* Op -> its number in program order, from 1 */
    OpVec ops;     /* all, in that order */
    OpVec buffers; /* the marked ones */
} Forward;

/* Numbers all operations and collects the marked buffers. */
static void
number(Forward *w, const Func *f)
{
    region_each_deep(f->body, op)
    {
        vec_push(&w->s->tmp, &w->ops, op);
        map_set(&w->order, op, (void *)(uintptr_t)w->ops.n);
        if (attr_has(&op->attrs, ATTR_BUFFER))
            vec_push(&w->s->tmp, &w->buffers, op);
    }
}

static uintptr_t
order_of(Forward *w, const Op *op)
{
    return (uintptr_t)map_get(&w->order, op);
}

static void
refuse(Forward *w, const Buffer *b, Loc loc, const char *why)
{
    diag_error(&w->s->diag, loc, "kernels cannot be fused: '%s' %s", b->name, why);
}

/* ---- loads and stores of a buffer */

/* Inserts op in program order, once. */
static void
add_access(Forward *w, Buffer *b, Op *op)
{
    for (int i = 0; i < b->accesses.n; i++)
        if (b->accesses.at[i] == op)
            return;
    vec_push(&w->s->tmp, &b->accesses, op);
    for (int i = b->accesses.n - 1; i > 0; i--) {
        Op **at = &b->accesses.at[i];
        if (order_of(w, at[-1]) < order_of(w, at[0]))
            break;
        Op *t = at[-1];
        at[-1] = at[0];
        at[0] = t;
    }
}

static void
push_new(Forward *w, Map *seen, ValueVec *todo, Value *v)
{
    if (!type_is_ptr(v->type) || map_has(seen, v))
        return;
    map_set(seen, v, v);
    vec_push(&w->s->tmp, todo, v);
}

/* Follows one use of a pointer into the buffer: notes a load or store, queues pointers
   that are derived from it. False, with an error: it is used otherwise. */
static bool
follow(Forward *w, Buffer *b, Map *seen, ValueVec *todo, const Use *u)
{
    Op *op = u->user, *up = op->parent->parent;
    if ((op->kind == OP_LOAD || op->kind == OP_STORE) && u->index == 0) {
        add_access(w, b, op);
    } else if (op->kind == OP_FOR && u->index >= 3) {
        push_new(w, seen, todo, op->regions[0]->args[u->index - 2]);
        push_new(w, seen, todo, &op->results[u->index - 3]);
    } else if (op->kind == OP_YIELD && up && (up->kind == OP_FOR || up->kind == OP_IF)) {
        push_new(w, seen, todo, &up->results[u->index]);
        if (up->kind == OP_FOR)
            push_new(w, seen, todo, up->regions[0]->args[u->index + 1]);
    } else if (op_is(op, T_PURE) && !op->nregion && op->nresult == 1 &&
               type_is_ptr(op->results[0].type)) {
        push_new(w, seen, todo, &op->results[0]);
    } else {
        refuse(w, b, op->loc, "is used by more than loads and stores");
        return false;
    }
    return true;
}

static bool
find_accesses(Forward *w, Buffer *b)
{
    Map seen;
    ValueVec todo = {0};
    map_init(&seen, &w->s->tmp);
    push_new(w, &seen, &todo, &b->op->results[0]);
    for (int i = 0; i < todo.n; i++)
        value_each_use(todo.at[i], u) if (!follow(w, b, &seen, &todo, u)) return false;
    return true;
}

/* ---- loads that are stored values */

static Value *
mask_of(const Op *op)
{
    int at = op->kind == OP_LOAD ? 1 : 2;
    return op->noperand > at ? op_operand(op, at) : NULL;
}

/* Why the load does not read what the store wrote; NULL when it does. */
static const char *
mismatch(const Op *store, const Op *load)
{
    if (op_operand(store, 0) != op_operand(load, 0))
        return "is loaded at other indices than it was stored";
    if (mask_of(store) && mask_of(store) != mask_of(load))
        return "is loaded under another mask than it was stored";
    if (store->parent != load->parent)
        return "is stored and loaded in different loops or conditions";
    return NULL;
}

/* Do the elements of v outside of the mask reach nothing but stores under the same
   mask? */
static bool
is_hidden(const Value *v, const Value *mask, int depth)
{
    if (depth > 32)
        return false;
    value_each_use(v, u)
    {
        const Op *op = u->user;
        if (op->kind == OP_STORE && u->index == 1 && mask_of(op) == mask)
            continue;
        if (!op_is(op, T_PURE | T_ELEMENTWISE) || op->nresult != 1 ||
            !is_hidden(&op->results[0], mask, depth + 1))
            return false;
    }
    return true;
}

/* Zeros of type t: what a masked load without `other` gives here. */
static Value *
nothing(Builder *b, const Type *t)
{
    if (type_is_float(t))
        return build_float(b, t, 0);
    if (!type_is_ptr(t))
        return build_int(b, t, 0);
    const Type *i64 = type_scalar(b->s->types, SK_I64);
    Value *zero = build_int(b, type_like(b->s->types, t, i64), 0);
    return build_cast(b, OP_INTTOPTR, zero, type_elem(t));
}

/* Replaces the load by the stored value. */
static void
hand_on(const Op *store, Op *load)
{
    Value *v = op_operand(store, 1), *mask = mask_of(load);
    const Type *t = v->type;
    if (mask && !is_hidden(&load->results[0], mask, 0)) {
        Builder b = builder_before(load);
        b.loc = load->loc;
        Value *other = load->noperand > 2 ? op_operand(load, 2) : nothing(&b, t);
        v = build_select(&b, mask, v, other);
    }
    value_replace(&load->results[0], v);
    op_erase(load);
}

static void
refuse_pair(Forward *w, const Buffer *b, const Op *at, const Op *before, const char *why)
{
    refuse(w, b, at->loc, why);
    diag_note(&w->s->diag, before->loc, "%s here",
              before->kind == OP_STORE ? "stored" : "loaded");
}

/* Has the store the addresses of all accesses before it? If not, two programs may access
   one element. */
static bool
check_store(Forward *w, const Buffer *b, int at)
{
    const Op *op = b->accesses.at[at];
    for (int i = 0; i < at; i++) {
        const Op *before = b->accesses.at[i];
        if (op_operand(before, 0) == op_operand(op, 0))
            continue;
        refuse_pair(w, b, op, before, "is stored at other indices than before");
        return false;
    }
    return true;
}

/* Checks all accesses of a buffer and removes its loads, and its stores if it is
   local. */
static bool
forward(Forward *w, Buffer *b)
{
    const Op *last = NULL;
    bool local = b->op->kind == OP_UNDEF;
    OpVec stores = {0};
    for (int i = 0; i < b->accesses.n; i++) {
        Op *op = b->accesses.at[i];
        if (op->kind == OP_STORE) {
            if (!check_store(w, b, i))
                return false;
            vec_push(&w->s->tmp, &stores, op);
            last = op;
        }
    }
    last = NULL;
    for (int i = 0; i < b->accesses.n; i++) {
        Op *op = b->accesses.at[i];
        const char *why = last && op->kind == OP_LOAD ? mismatch(last, op) : NULL;
        if (op->kind == OP_STORE) {
            last = op;
        } else if (why) {
            refuse_pair(w, b, op, last, why);
            return false;
        } else if (last) {
            hand_on(last, op);
        } else if (local) {
            refuse(w, b, op->loc, "is loaded before anything was stored to it");
            return false;
        }
    }
    for (int i = 0; local && i < stores.n; i++)
        op_erase(stores.at[i]);
    return true;
}

bool
pass_fuse_forward(Func *f, PassCx *cx)
{
    Forward w = {.s = cx->s};
    map_init(&w.order, &cx->s->tmp);
    number(&w, f);
    for (int i = 0; i < w.buffers.n; i++) {
        Op *op = w.buffers.at[i];
        Buffer b = {.op = op, .name = attr_str(&op->attrs, ATTR_BUFFER)};
        if (!find_accesses(&w, &b) || !forward(&w, &b))
            return true;
        if (op->kind == OP_HINT) {
            value_replace(&op->results[0], op_operand(op, 0));
            op_erase(op);
        } else {
            attr_drop(&op->attrs, ATTR_BUFFER); /* dce has the rest */
        }
    }
    return w.buffers.n > 0;
}

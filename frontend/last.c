/* What the name of a loop is behind it: its last value, as in Python. A loop that makes
   no round leaves the name what it was, and the start where it was nothing (Python has no
   value there, and Triton leaves it undefined in any case). Only names that are read
   outside of the loops that bind them get one: it would be dead code. */
#include "frontend/last.h"

#include "ir/base/map.h"

typedef struct Readers {
    Name inside[AST_MAX_DEPTH]; /* names of the loops around */
    int depth, levels;
    Map *read;
} Readers;

static void look(Readers *r, const Node *n);

static void
look_list(Readers *r, const NodeList *l)
{
    for (int i = 0; i < l->n; i++)
        look(r, l->at[i]);
}

static void
look_name(Readers *r, Name name)
{
    for (int i = 0; i < r->depth; i++)
        if (r->inside[i] == name)
            return;
    map_set(r->read, name, (void *)1);
}

static void
look(Readers *r, const Node *n)
{
    if (!n || r->levels == AST_MAX_DEPTH)
        return;
    if (n->kind == ND_NAME) {
        look_name(r, n->name);
        return;
    }
    r->levels++;
    bool binds = n->kind == ND_FOR && n->a->kind == ND_NAME;
    look(r, n->b);
    if (binds)
        r->inside[r->depth++] = n->a->name;
    else
        look(r, n->a);
    look(r, n->c);
    for (int i = 0; i < n->list.n; i++)
        if (n->kind != ND_ASSIGN || n->list.at[i]->kind != ND_NAME)
            look(r, n->list.at[i]);
    look_list(r, &n->body);
    r->depth -= binds;
    look_list(r, &n->orelse);
    look_list(r, &n->more);
    r->levels--;
}

bool
last_is_read(Sema *s, Name name)
{
    const Node *fn = s->frame->fn;
    Map *read = fn ? map_get(&s->loop_names, fn) : NULL;
    if (fn && !read) {
        Readers *r = arena_new(s->a, Readers);
        read = r->read = arena_new(s->a, Map);
        map_init(read, s->a);
        look_list(r, &fn->body);
        map_set(&s->loop_names, fn, read);
    }
    return read && map_has(read, name);
}

Val
last_before(Sema *s, const Node *loop, DType iv)
{
    Binding *b = scope_find(&s->frame->scope, loop->a->name);
    if (s->lanes || !last_is_read(s, loop->a->name))
        return NULL;
    if (!b || val_is_error(b->val))
        return val_error();
    Val v = val_is_number(b->val) && !b->constexpr_ ? to_tensor(s, b->val, loop->loc)
                                                    : b->val;
    return v->kind == FE_TENSOR && v->dt == iv && !val_shape(v).rank ? v : NULL;
}

Val
last_value(Sema *s, const Val *at, Val before, Loc loc)
{
    Val zero = val_int(s, 0), one = val_int(s, 1);
    Val grows = binary(s, BIN_GT, at[2], zero, loc);
    Val some = tensor_where(s, grows, binary(s, BIN_LT, at[0], at[1], loc),
                            binary(s, BIN_GT, at[0], at[1], loc), loc);
    Val end = tensor_where(s, grows, binary(s, BIN_SUB, at[1], one, loc),
                           binary(s, BIN_ADD, at[1], one, loc), loc);
    Val rounds = binary(s, BIN_FLOORDIV, binary(s, BIN_SUB, end, at[0], loc), at[2], loc);
    Val last = binary(s, BIN_ADD, at[0], binary(s, BIN_MUL, rounds, at[2], loc), loc);
    return tensor_where(s, some, last, before, loc);
}

/* Interning of types: one structural hash table per session; equal types are one
   pointer. */
#include "ir/type.h"

#include "ir/base/util.h"

#include <string.h>

void layout_print(Buf *b, const Layout *l);

struct TypeTable {
    Arena *arena;
    const Type **slots;
    int n, cap;
};

static const struct {
    const char *name;
    int bits;
    bool is_float;
} scalars[SK_COUNT] = {
#define INT false
#define FLOAT true
#define SCALAR(id, name, bits, class) [SK_##id] = {name, bits, class},
#include "ir/types.def"
#undef INT
#undef FLOAT
};

TypeTable *
types_new(Arena *perm)
{
    TypeTable *t = arena_new(perm, TypeTable);
    t->arena = perm;
    t->cap = 128;
    t->slots = arena_array(perm, const Type *, t->cap);
    return t;
}

static uint64_t
mix(uint64_t h, uint64_t x)
{
    h ^= x + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdu;
}

/* Layouts are hashed by identity only in the table's slot choice, never in what is
   printed, so that output does not depend on addresses. */
static uint64_t
hash(const Type *t)
{
    uint64_t h = mix((uint64_t)t->kind + 1, (uint64_t)t->scalar);
    h = mix(h, t->elem ? t->elem->hash : 0);
    h = mix(h, (uint64_t)t->rank << 16 | (uint64_t)t->stages << 8 | (uint64_t)t->space);
    for (int i = 0; i < t->rank; i++)
        h = mix(h, (uint64_t)t->shape[i]);
    return h;
}

static bool
same(const Type *a, const Type *b)
{
    if (a->kind != b->kind || a->scalar != b->scalar || a->elem != b->elem ||
        a->layout != b->layout || a->rank != b->rank || a->stages != b->stages ||
        a->space != b->space)
        return false;
    return !a->rank ||
           memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0;
}

static void
grow(TypeTable *t)
{
    const Type **old = t->slots;
    int n = t->cap;
    t->cap *= 2;
    t->slots = arena_array(t->arena, const Type *, t->cap);
    for (int i = 0; i < n; i++) {
        if (!old[i])
            continue;
        uint64_t at = old[i]->hash & (uint64_t)(t->cap - 1);
        while (t->slots[at])
            at = (at + 1) & (uint64_t)(t->cap - 1);
        t->slots[at] = old[i];
    }
}

static const Type *
intern(TypeTable *t, Type *want)
{
    want->hash = hash(want);
    uint64_t at = want->hash & (uint64_t)(t->cap - 1);
    for (; t->slots[at]; at = (at + 1) & (uint64_t)(t->cap - 1))
        if (same(t->slots[at], want))
            return t->slots[at];
    Type *copy = arena_new(t->arena, Type);
    *copy = *want;
    t->slots[at] = copy;
    if (++t->n * 2 > t->cap)
        grow(t);
    return copy;
}

static const Type *
shaped(TypeTable *t, TypeKind kind, const Type *elem, int rank, const int64_t *shape,
       const Layout *layout, int stages)
{
    Type want = {.kind = kind, .scalar = elem->scalar, .elem = elem, .layout = layout};
    want.rank = rank < MAX_RANK ? rank : MAX_RANK;
    want.stages = stages;
    for (int i = 0; i < want.rank; i++)
        want.shape[i] = shape[i];
    return intern(t, &want);
}

const Type *
type_scalar(TypeTable *t, ScalarKind k)
{
    return intern(t, &(Type){.kind = TY_SCALAR, .scalar = k});
}

const Type *
type_ptr(TypeTable *t, const Type *pointee, int space)
{
    return intern(t, &(Type){.kind = TY_PTR, .scalar = SK_NONE, .elem = pointee,
                             .space = space});
}

const Type *
type_tile(TypeTable *t, const Type *elem, int rank, const int64_t *shape,
          const Layout *layout)
{
    return shaped(t, TY_TILE, elem, rank, shape, layout, 0);
}

const Type *
type_block_ptr(TypeTable *t, const Type *elem, int rank, const int64_t *shape)
{
    return shaped(t, TY_BLOCK_PTR, elem, rank, shape, NULL, 0);
}

const Type *
type_desc(TypeTable *t, const Type *elem, int rank, const int64_t *shape)
{
    return shaped(t, TY_DESC, elem, rank, shape, NULL, 0);
}

const Type *
type_mem(TypeTable *t, const Type *elem, int rank, const int64_t *shape,
         const Layout *layout, int stages)
{
    return shaped(t, TY_MEM, elem, rank, shape, layout, stages);
}

const Type *
type_buf(TypeTable *t, const Type *elem, int rank, const int64_t *shape)
{
    return shaped(t, TY_BUF, elem, rank, shape, NULL, 0);
}

const Type *
type_bar(TypeTable *t, int stages)
{
    return intern(t, &(Type){.kind = TY_BAR, .scalar = SK_NONE, .stages = stages});
}

const Type *
type_async(TypeTable *t, const Type *payload)
{
    return intern(t,
                  &(Type){.kind = TY_ASYNC, .scalar = payload->scalar, .elem = payload});
}

const Type *
type_token(TypeTable *t)
{
    return intern(t, &(Type){.kind = TY_TOKEN, .scalar = SK_NONE});
}

const Type *
type_like(TypeTable *t, const Type *like, const Type *elem)
{
    if (like->kind != TY_TILE)
        return elem;
    return type_tile(t, elem, like->rank, like->shape, like->layout);
}

const Type *
type_with_layout(TypeTable *t, const Type *tile, const Layout *layout)
{
    return tile->layout == layout
               ? tile
               : shaped(t, tile->kind, tile->elem, tile->rank, tile->shape, layout,
                        tile->stages);
}

const Type *
type_elem(const Type *t)
{
    return t->kind == TY_SCALAR || t->kind == TY_PTR || !t->elem ? t : t->elem;
}

int64_t
type_numel(const Type *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->shape[i];
    return n;
}

bool
type_is_tile(const Type *t)
{
    return t->kind == TY_TILE;
}

static bool
plain(const Type *t)
{
    return t->kind == TY_SCALAR || t->kind == TY_TILE || t->kind == TY_PTR;
}

bool
type_is_int(const Type *t)
{
    const Type *e = type_elem(t);
    return plain(t) && e->kind == TY_SCALAR && !scalars[e->scalar].is_float;
}

bool
type_is_float(const Type *t)
{
    const Type *e = type_elem(t);
    return plain(t) && e->kind == TY_SCALAR && scalars[e->scalar].is_float;
}

bool
type_is_ptr(const Type *t)
{
    return plain(t) && type_elem(t)->kind == TY_PTR;
}

bool
type_same_shape(const Type *a, const Type *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

int
type_bits(const Type *t)
{
    const Type *e = type_elem(t);
    return e->kind == TY_SCALAR ? scalars[e->scalar].bits : 64;
}

int64_t
type_bytes(const Type *t)
{
    int bits = type_bits(t);
    return type_numel(t) * (bits < 8 ? 1 : bits / 8);
}

const char *
scalar_name(ScalarKind k)
{
    return k < SK_COUNT ? scalars[k].name : "?";
}

int
scalar_bits(ScalarKind k)
{
    return k < SK_COUNT ? scalars[k].bits : 64;
}

bool
scalar_is_float(ScalarKind k)
{
    return k < SK_COUNT && scalars[k].is_float;
}

ScalarKind
scalar_by_name(const char *s, size_t n)
{
    for (int i = 0; i < SK_COUNT; i++)
        if (strlen(scalars[i].name) == n && memcmp(scalars[i].name, s, n) == 0)
            return (ScalarKind)i;
    return SK_NONE;
}

static void
print_shape(Buf *b, const Type *t, const char *between)
{
    for (int i = 0; i < t->rank; i++)
        buf_printf(b, "%s%lld", i ? between : "", (long long)t->shape[i]);
}

static void
print_layout(Buf *b, const Type *t)
{
    if (t->layout) {
        buf_str(b, ", ");
        layout_print(b, t->layout);
    }
}

void
type_print(Buf *b, const Type *t)
{
    switch (t->kind) {
    case TY_SCALAR: buf_str(b, scalar_name(t->scalar)); return;
    case TY_PTR:
        buf_str(b, "ptr<");
        type_print(b, t->elem);
        if (t->space)
            buf_printf(b, ", %d", t->space);
        buf_char(b, '>');
        return;
    case TY_TILE:
    case TY_BLOCK_PTR:
    case TY_DESC:
        buf_str(b, t->kind == TY_TILE   ? "tile<"
                   : t->kind == TY_DESC ? "desc<"
                                        : "block_ptr<");
        print_shape(b, t, "x");
        buf_char(b, 'x');
        type_print(b, t->elem);
        print_layout(b, t);
        buf_char(b, '>');
        return;
    case TY_MEM:
    case TY_BUF:
        buf_str(b, t->kind == TY_MEM ? "mem<" : "buf<");
        type_print(b, t->elem);
        buf_str(b, ", [");
        print_shape(b, t, ",");
        buf_char(b, ']');
        print_layout(b, t);
        if (t->stages)
            buf_printf(b, ", stages=%d", t->stages);
        buf_char(b, '>');
        return;
    case TY_BAR:
        buf_str(b, "bar");
        if (t->stages)
            buf_printf(b, "<stages=%d>", t->stages);
        return;
    case TY_ASYNC:
        buf_str(b, "async<");
        type_print(b, t->elem);
        buf_char(b, '>');
        return;
    case TY_TOKEN: buf_str(b, "token"); return;
    }
}

const char *
type_str(Arena *a, const Type *t)
{
    Buf b;
    buf_init(&b, a);
    type_print(&b, t);
    return b.s;
}

/* How many tensor maps a launch can carry. Each map is a parameter of the launch, and
   parameters have 4 KB in all: some 30 maps for a kernel, fewer for one with many
   arguments. The metadata also limits what the host may compute for them
   (runtime/rt/meta.h). Accesses beyond that go without TMA; passes/schedule/tma.c gives
   maps to the largest tiles first.

   Two maps are equal if their fields are computed alike and their boxes have the same
   form: a tensor that several loops read takes one map. */
#include "passes/mma/operand.h"
#include "passes/schedule/stage.h"
#include "passes/schedule/tma_tile.h"

#include "ir/base/util.h"
#include "ir/base/vec.h"

#include <string.h>

enum {
    PARAM_BYTES = 4096, /* of a launch, on any GPU that has TMA */
    BEHIND = 8,         /* for the grid size of a persistent kernel (persist.c) */
    MAP_BYTES = 128,
    MAP_ALIGN = 64,
    SAME_DEPTH = 32
};

typedef struct Used {
    const Op *desc;
    TmaBoxes boxes;
} Used;

typedef struct Room {
    Session *s;
    Vec(Used) used;
} Room;

int
tma_most_maps(const Func *f)
{
    int64_t bytes = BEHIND;
    for (int i = 0; i < f->body->narg; i++) {
        const Type *t = f->body->args[i]->type;
        int64_t size = t->kind == TY_SCALAR ? max_i64(1, type_bits(t) / 8) : 8;
        bytes = (bytes + size - 1) / size * size + size;
    }
    bytes = (bytes + MAP_ALIGN - 1) / MAP_ALIGN * MAP_ALIGN;
    return (int)min_i64(TMA_MAX_MAPS, max_i64(0, (PARAM_BYTES - bytes) / MAP_BYTES));
}

/* Do both compute the same number? */
static bool
same(const Value *a, const Value *b, int depth)
{
    const Op *x = a->op, *y = b->op;
    if (a == b)
        return true;
    if (!x || !y || depth > SAME_DEPTH || x->kind != y->kind || a->type != b->type ||
        x->noperand != y->noperand || !op_is(x, T_PURE) || x->nregion ||
        !attr_eq(&x->attrs, &y->attrs))
        return false;
    for (int i = 0; i < x->noperand; i++)
        if (!same(op_operand(x, i), op_operand(y, i), depth + 1))
            return false;
    return true;
}

bool
tma_same_fields(const Op *a, const Op *b)
{
    bool equal = a->noperand == b->noperand;
    for (int i = 0; equal && i < a->noperand; i++)
        equal = same(op_operand(a, i), op_operand(b, i), 0);
    return equal;
}

static bool
same_map(const Op *a, const TmaBoxes *x, const Op *b, const TmaBoxes *y)
{
    return memcmp(x, y, sizeof *x) == 0 && same(&a->results[0], &b->results[0], 0);
}

/* The buffer that a TMA access copies to or from; NULL: op is none. */
static const Type *
buffer_of(Session *s, const Op *op)
{
    switch ((int)op->kind) {
    case OP_DESC_LOAD: return staged_buffer(s, op);
    case OP_TMA_LOAD:
    case OP_TMA_STORE: return op_operand(op, 1)->type;
    default: return NULL;
    }
}

static bool
is_new(const Room *r, const Op *desc, const TmaBoxes *boxes)
{
    for (int i = 0; i < r->used.n; i++)
        if (same_map(r->used.at[i].desc, &r->used.at[i].boxes, desc, boxes))
            return false;
    return true;
}

static void
see(Room *r, const Func *f)
{
    region_each_deep(f->body, op)
    {
        const Type *mem = buffer_of(r->s, op);
        const Op *desc = mem ? tma_desc(op_operand(op, 0)) : NULL;
        Used u = {.desc = desc};
        if (desc && tma_boxes_of(r->s, op, mem, &u.boxes) && is_new(r, desc, &u.boxes))
            vec_push(&r->s->tmp, &r->used, u);
    }
}

bool
tma_has_room(Session *s, const Func *f, const Op *desc, const TmaBoxes *boxes)
{
    Room r = {.s = s};
    int64_t terms = tma_terms(desc);
    see(&r, f);
    if (!is_new(&r, desc, boxes))
        return true;
    for (int i = 0; i < r.used.n; i++)
        terms += tma_terms(r.used.at[i].desc);
    return r.used.n < tma_most_maps(f) && terms <= TMA_MAX_TERMS;
}

/* Tensor maps in the metadata: one for each descriptor and form of box that TMA moves
   with, its fields as terms that the host computes from the arguments. The passes have
   decided what goes by TMA, and that all of it fits (passes/schedule/tma_room.c): errors
   here are for tile IR that comes from elsewhere. */
#include "codegen/gen.h"
#include "ir/plan/tma_box.h"

#include "ir/base/util.h"

#include <assert.h>
#include <string.h>

static_assert((int)TMA_MAX_MAPS <= (int)SDCRT_MAX_MAPS &&
                  (int)TMA_MAX_TERMS <= (int)SDCRT_MAX_TERMS,
              "the metadata has room for what passes/schedule/tma_room.c lets through");

typedef struct Maps {
    Session *s;
    SdcrtMeta *meta;
    Map *of, *halves;
    Loc loc;
} Maps;

static int
add_term(Maps *m, SdcrtTerm x)
{
    SdcrtMeta *meta = m->meta;
    for (int i = 0; i < meta->nterm; i++) {
        const SdcrtTerm *y = &meta->terms[i];
        if (y->op == x.op && y->bits == x.bits && y->a == x.a && y->b == x.b &&
            y->value == x.value)
            return i;
    }
    if (meta->nterm == SDCRT_MAX_TERMS) {
        diag_error(&m->s->diag, m->loc,
                   "the tensor maps of a kernel have at most %d terms",
                   SDCRT_MAX_TERMS);
        return -1;
    }
    meta->terms[meta->nterm] = x;
    return meta->nterm++;
}

static int
constant(Maps *m, int64_t v)
{
    return add_term(m, (SdcrtTerm){.op = SDCRT_CONST, .bits = 64, .value = v});
}

static int
binary(Maps *m, int op, int bits, int a, int b)
{
    if (a < 0 || b < 0)
        return -1;
    return add_term(m, (SdcrtTerm){.op = (uint8_t)op,
                                   .bits = (uint8_t)bits,
                                   .a = (int16_t)a,
                                   .b = (int16_t)b});
}

static int
op_code(OpKind k)
{
    switch ((int)k) {
    case OP_ADD: return SDCRT_ADD;
    case OP_SUB: return SDCRT_SUB;
    case OP_MUL: return SDCRT_MUL;
    case OP_DIVS: return SDCRT_DIV;
    case OP_REMS: return SDCRT_REM;
    case OP_MINS: return SDCRT_MIN;
    default: return SDCRT_MAX;
    }
}

/* The term of a value that passes tma_host_value; -1 after an error. */
static int
term_of(Maps *m, const Value *v)
{
    const Op *op = v->op;
    int bits = type_bits(v->type);
    if (!op)
        return add_term(m, (SdcrtTerm){.op = SDCRT_ARG,
                                       .bits = (uint8_t)bits,
                                       .value = v->index});
    int a = op->noperand ? term_of(m, op_operand(op, 0)) : -1;
    switch ((int)op->kind) {
    case OP_CONST: return constant(m, attr_int(&op->attrs, ATTR_VALUE, 0));
    case OP_HINT:
    case OP_SEXT: return a;
    case OP_TRUNC: return binary(m, SDCRT_ADD, bits, a, constant(m, 0));
    case OP_ADDPTR: {
        int size = (int)max_i64(type_bits(v->type->elem), 8) / 8;
        int by = term_of(m, op_operand(op, 1));
        return binary(m, SDCRT_ADD, 64, a,
                      binary(m, SDCRT_MUL, 64, by, constant(m, size)));
    }
    default: return binary(m, op_code(op->kind), bits, a, term_of(m, op_operand(op, 1)));
    }
}

static bool
fill_map(Maps *m, const Op *desc, const TmaBoxes *boxes, SdcrtMap *map)
{
    const Type *t = desc->results[0].type;
    Name pad = attr_str(&desc->attrs, ATTR_PADDING);
    int kind = tma_data_type(t->elem);
    memset(map, 0, sizeof *map); /* maps are compared byte by byte */
    map->rank = (uint8_t)t->rank;
    map->dtype = (uint8_t)kind;
    map->elem_bytes = (uint8_t)boxes->bytes;
    map->swizzle = (uint8_t)boxes->swizzle;
    map->nan = pad && strcmp(pad, "nan") == 0;
    bool ok = kind >= 0;
    for (int i = 0; ok && i < desc->noperand; i++)
        ok = tma_host_value(op_operand(desc, i));
    if (!ok) {
        diag_error(&m->s->diag, desc->loc,
                   "a tensor map needs fields that the host knows: constants and "
                   "arguments, and sums, products and quotients of them");
        return false;
    }
    map->base = (int16_t)term_of(m, op_operand(desc, 0));
    for (int d = 0; d < t->rank; d++) {
        int from = t->rank - 1 - d;
        map->dim[d] = (int16_t)term_of(m, op_operand(desc, 1 + from));
        map->stride[d] = (int16_t)term_of(m, op_operand(desc, 1 + t->rank + from));
        map->box[d] = d < 2 ? (uint32_t)boxes->box[d] : 1;
        ok &= map->dim[d] >= 0 && map->stride[d] >= 0;
    }
    return ok && map->base >= 0;
}

/* One map serves loads and stores alike. */
static bool
is_same(const SdcrtMap *old, const SdcrtMap *map)
{
    SdcrtMap read = *old;
    read.written = 0;
    return memcmp(&read, map, sizeof read) == 0;
}

/* Does a map that the kernel writes have the boxes of the copies? */
static bool
is_written_so(const Op *own, const TmaBoxes *boxes)
{
    const Attr *box = attr_find(&own->attrs, ATTR_BOX);
    bool ok = attr_int(&own->attrs, ATTR_SWIZZLE, -1) == boxes->swizzle;
    for (int i = 0; i < box->n && i < 2; i++)
        ok &= box->v.ints[i] == boxes->box[i];
    return ok && (boxes->order[1] < 0 || box->n == 2);
}

/* The map of `desc` with such boxes, for the op, to `of`. */
static bool
take_map(Maps *m, const Op *op, const Op *desc, const TmaBoxes *boxes, Map *of)
{
    SdcrtMap map;
    int n = m->meta->nmap, i = 0;
    if (!fill_map(m, desc, boxes, &map))
        return false;
    while (i < n && !is_same(&m->meta->maps[i], &map))
        i++;
    if (i == SDCRT_MAX_MAPS) {
        diag_error(&m->s->diag, op->loc, "a launch carries at most %d tensor maps",
                   SDCRT_MAX_MAPS);
        return false;
    }
    if (i == n)
        m->meta->maps[m->meta->nmap++] = map;
    m->meta->maps[i].written |= op->kind != OP_TMA_LOAD;
    map_set(of, op, &m->meta->maps[i]);
    return true;
}

static bool
add_map(Maps *m, const Op *op)
{
    const Op *own = tma_kernel_map(op_operand(op, 0));
    const Op *desc = own ? own : tma_desc(op_operand(op, 0));
    const Type *mem = op_operand(op, 1)->type;
    bool multicast = attr_has(&op->attrs, ATTR_MULTICAST);
    int groups = (int)attr_int(&op->attrs, ATTR_GROUPS, 0), along;
    TmaBoxes boxes, halves;
    m->loc = op->loc;
    if (!desc || !tma_boxes_of(m->s, op, mem, &boxes) ||
        !tma_fits(&boxes, mem, desc->results[0].type) ||
        (own && (multicast || groups || !is_written_so(own, &boxes)))) {
        diag_error(&m->s->diag, op->loc,
                   "'%s' needs a descriptor of the kernel's own and a buffer in the "
                   "layout of its block",
                   op_info[op->kind].name);
        return false;
    }
    if (own)
        return true;
    if (groups && !tma_group_boxes(&boxes, groups, &along)) {
        diag_error(&m->s->diag, op->loc,
                   "the rows of the tile do not divide among %d warpgroups", groups);
        return false;
    }
    if (!take_map(m, op, desc, &boxes, m->of))
        return false;
    halves = boxes;
    if (!multicast)
        return true;
    if (tma_halves(&halves))
        return take_map(m, op, desc, &halves, m->halves);
    diag_error(&m->s->diag, op->loc, "a tile of one row of boxes has no halves");
    return false;
}

bool
meta_maps(Session *s, const Func *f, SdcrtMeta *meta, Map *of, Map *halves)
{
    Maps m = {.s = s, .meta = meta, .of = of, .halves = halves};
    map_init(of, &s->tmp);
    map_init(halves, &s->tmp);
    region_each_deep(f->body, op)
    {
        bool tma = op->kind == OP_TMA_LOAD || op->kind == OP_TMA_STORE;
        if (tma && !add_map(&m, op))
            return false;
    }
    return true;
}

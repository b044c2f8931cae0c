/* Tensor maps: what the host makes, and those that a kernel writes for itself, field by
   field in shared memory, copies to global memory and reads through another proxy.

   A map that a kernel has written is used by a lane that fenced after the copy and knew
   of it. It is not written again while a copy through it is under way, nor used by a
   block that has not written it. */
#include "tests/sim/machine.h"

static const uint32_t map_magic = 0x70614d53;

enum { /* MapBytes.fields */
       HAS_BASE = 1,
       HAS_RANK = 2,
       HAS_TYPE = 4,
       HAS_BOX = 1 << 8,
       HAS_DIM = 1 << 13,
       HAS_STEP = 1 << 18,
       HAS_STRIDE = 1 << 23
};

typedef struct MapBytes {
    uint32_t magic; /* 0: of the kernel, and not ready */
    uint8_t rank, type, swizzle, nan;
    uint64_t base;
    uint64_t stride[5];
    uint32_t dim[5];
    uint16_t box[5];
    uint32_t fields; /* that a kernel has written */
} MapBytes;

static const uint8_t type_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

int
sim_element_bytes(int type)
{
    return type_bytes[type];
}

void
sim_map_encode(const SimMap *map, void *bytes)
{
    MapBytes m = {.magic = map_magic,
                  .rank = (uint8_t)map->rank,
                  .type = (uint8_t)map->type,
                  .swizzle = (uint8_t)map->swizzle,
                  .nan = (uint8_t)map->nan,
                  .base = (uint64_t)(uintptr_t)map->base};
    for (int k = 0; k < map->rank; k++) {
        m.stride[k] = map->stride[k];
        m.dim[k] = (uint32_t)map->dim[k];
        m.box[k] = (uint16_t)map->box[k];
    }
    memset(bytes, 0, SIM_MAP_BYTES);
    memcpy(bytes, &m, sizeof m);
}

int
sim_map_decode(const void *bytes, SimMap *map)
{
    MapBytes m;
    memcpy(&m, bytes, sizeof m);
    if (m.magic != map_magic || m.rank < 1 || m.rank > 5)
        return 0;
    *map = (SimMap){.base = (void *)(uintptr_t)m.base,
                    .rank = m.rank,
                    .type = m.type,
                    .swizzle = m.swizzle,
                    .nan = m.nan};
    for (int k = 0; k < m.rank; k++)
        map->stride[k] = m.stride[k], map->dim[k] = m.dim[k], map->box[k] = m.box[k];
    return 1;
}

/* ---------------------------------------------------------------- writing */

/* The driver's number of an element type, from PTX's; -1: of another device. */
static int
driver_type(uint64_t v)
{
    static const int8_t types[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12};
    return v < sizeof types ? types[v] : -1;
}

static void
set_field(MapBytes *m, int field, int at, uint64_t v)
{
    switch (field) {
    case MAP_BASE:
        m->base = v;
        m->fields |= HAS_BASE;
        break;
    case MAP_RANK:
        m->rank = (uint8_t)(v + 1);
        m->fields |= HAS_RANK;
        break;
    case MAP_BOX:
        m->box[at] = (uint16_t)v;
        m->fields |= (uint32_t)HAS_BOX << at;
        break;
    case MAP_DIM:
        m->dim[at] = (uint32_t)v;
        m->fields |= (uint32_t)HAS_DIM << at;
        break;
    case MAP_STEP: m->fields |= v == 1 ? (uint32_t)HAS_STEP << at : 0; break;
    case MAP_STRIDE:
        m->stride[at + 1] = v;
        m->fields |= (uint32_t)HAS_STRIDE << (at + 1);
        break;
    case MAP_TYPE:
        m->type = (uint8_t)driver_type(v);
        m->fields |= HAS_TYPE;
        break;
    case MAP_SWIZZLE: m->swizzle = (uint8_t)(v ? 16 << v : 0); break;
    case MAP_FILL: m->nan = (uint8_t)v; break;
    default: break; /* interleave: none */
    }
}

/* r: address, value; sub: field; imm: which of several */
void
op_map_replace(Warp *w, const Insn *i, uint32_t mask)
{
    for (uint32_t lanes = mask; lanes; lanes &= lanes - 1) {
        int l = __builtin_ctz(lanes);
        bool wide = i->sub == MAP_BASE || i->sub == MAP_STRIDE;
        uint32_t at =
            (uint32_t)(i->flags & WIDE_DST ? R64(w, i->r[0])[l] : R32(w, i->r[0])[l]);
        uint64_t v = wide ? R64(w, i->r[1])[l] : R32(w, i->r[1])[l];
        if (at % SIM_MAP_BYTES || !shared_holds(w->b, at, SIM_MAP_BYTES) || i->imm < 0 ||
            i->imm > 4) {
            sim_fail(w, i, SIM_MEMORY, "no place of a tensor map: %d",
                     (int)at - SHARED_BASE);
            return;
        }
        uint32_t all[LANES] = {0};
        all[l] = at;
        race_access(w, i, 1u << l, all, SIM_MAP_BYTES, READ);
        race_access(w, i, 1u << l, all, SIM_MAP_BYTES, WRITE);
        MapBytes m;
        memcpy(&m, w->b->shared + at, sizeof m);
        if (w->b->status)
            return;
        if (m.magic || (i->sub == MAP_TYPE && driver_type(v) < 0) ||
            (i->sub == MAP_BASE && v % 16) || (i->sub == MAP_STRIDE && v % 16)) {
            sim_fail(w, i, SIM_MEMORY, "a field of a tensor map that is none: 0x%llx",
                     (unsigned long long)v);
            return;
        }
        set_field(&m, i->sub, (int)i->imm, v);
        memcpy(w->b->shared + at, &m, sizeof m);
    }
}

/* Are all fields written, and sizes at least 1? */
static bool
is_whole(const MapBytes *m)
{
    uint32_t want = HAS_BASE | HAS_RANK | HAS_TYPE;
    bool sizes = m->rank > 0 && m->rank <= 5;
    for (int k = 0; k < m->rank && sizes; k++) {
        want |= (uint32_t)(HAS_BOX | HAS_DIM | HAS_STEP) << k;
        want |= k ? (uint32_t)HAS_STRIDE << k : 0;
        sizes = (int32_t)m->dim[k] > 0;
    }
    return sizes && (m->fields & want) == want;
}

static MapState *
state_of(Block *b, uint64_t at)
{
    for (int k = 0; k < b->nmaps; k++)
        if (b->map[k].at == at)
            return &b->map[k];
    return NULL;
}

static bool
is_used(const Block *b, uint64_t at)
{
    for (int k = 0; k < b->nasync; k++)
        if (b->async[k].kind != ASYNC_COPY &&
            (uint64_t)(uintptr_t)b->async[k].map == at)
            return true;
    return false;
}

/* r: global address, shared address. All lanes of the warp together. */
void
op_map_publish(Warp *w, const Insn *i, uint32_t mask)
{
    Block *b = w->b;
    if (!warp_whole(w, i, 0xffffffff))
        return;
    int one = __builtin_ctz(mask);
    uint64_t to = R64(w, i->r[0])[one];
    uint32_t all[LANES], from = (uint32_t)R64(w, i->r[1])[one];
    EACH(mask, all[l] = from);
    unsigned char *bytes = global_bytes(w, i, to, SIM_MAP_BYTES, true);
    MapBytes m;
    if (!bytes)
        return;
    if (to % SIM_MAP_BYTES || from % SIM_MAP_BYTES ||
        !shared_holds(b, from, SIM_MAP_BYTES)) {
        sim_fail(w, i, SIM_MEMORY, "a tensor map at 0x%llx from %d",
                 (unsigned long long)to, (int)from - SHARED_BASE);
        return;
    }
    race_access(w, i, mask, all, SIM_MAP_BYTES, READ);
    memcpy(&m, b->shared + from, sizeof m);
    if (b->status)
        return;
    MapState *s = state_of(b, to);
    if (is_used(b, to) || !is_whole(&m) || (!s && b->nmaps == SIM_MAPS)) {
        sim_fail(w, i, SIM_ASYNC, "a tensor map is written %s",
                 is_whole(&m) ? "while a copy through it is under way"
                              : "without all of its fields, or of nothing");
        return;
    }
    m.magic = map_magic;
    m.stride[0] = type_bytes[m.type];
    memset(bytes, 0, SIM_MAP_BYTES);
    memcpy(bytes, &m, sizeof m);
    s = s ? s : &b->map[b->nmaps++];
    *s = (MapState){.at = to,
                    .bytes = bytes,
                    .who = (uint32_t)(w->id * LANES + one),
                    .epoch = w->epoch};
    clock_sync(w, mask);
}

/* r: address */
void
op_map_acquire(Warp *w, const Insn *i, uint32_t mask)
{
    for (uint32_t lanes = mask; lanes; lanes &= lanes - 1) {
        int l = __builtin_ctz(lanes);
        MapState *s = state_of(w->b, R64(w, i->r[0])[l]);
        bool own = s && s->who == (uint32_t)(w->id * LANES + l);
        if (s && (own || clock_knows(w, l, s->who, s->epoch)))
            s->seen[w->id] |= 1u << l;
    }
}

bool
map_is_seen(Warp *w, const Insn *i, int lane, uint64_t at)
{
    const MapState *s = state_of(w->b, at);
    if (!s || s->seen[w->id] >> lane & 1)
        return true;
    sim_fail(w, i, SIM_ASYNC,
             "no fence.proxy.tensormap of the thread stands between the writing of the "
             "tensor map and its use");
    return false;
}

/* The block has ended: its maps are nobody's. */
void
maps_finish(Block *b)
{
    for (int k = 0; k < b->nmaps; k++)
        memset(b->map[k].bytes, 0, SIM_MAP_BYTES);
    b->nmaps = 0;
}

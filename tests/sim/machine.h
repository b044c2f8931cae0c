/* The inside of the simulator.

   A kernel is an array of instructions whose operands are places in the register file of
   a warp: 32 lanes side by side, 4 bytes each, or 8 for 64-bit registers. Constants and
   special registers have places there too, so that every operand is read in one way.
   Predicates are masks. A 16-bit register holds its bits in the low half of 32. */
#ifndef SDC_TESTS_SIM_MACHINE_H
#define SDC_TESTS_SIM_MACHINE_H

#include <stdbool.h>
#include <string.h>

#include "tests/sim/sim.h"

enum {
    LANES = 32,
    BLOCK_WARPS = 32,
    SLOT = 128,          /* bytes of a 32-bit register of a warp */
    SHARED_MAX = 232448, /* bytes that a block may have */
    SHARED_BASE = 1024,  /* where dynamic shared memory begins */
    SHARED_TOP = SHARED_BASE + SHARED_MAX,
    /* Programs of a cluster share a block here: their warps follow each other, and so do
       their shared memories, each in a window of its own. */
    MAX_CLUSTER = 2,
    MAX_WARPS = MAX_CLUSTER * BLOCK_WARPS,
    CLUSTER_SHIFT = 18, /* of a rank in an address */
    NO_PRED = 0,
    CONST_ROOM = 16384 * SLOT /* of constants, in front of the registers */
};

/* Addresses of generic pointers: shared and local memory lie where no host memory does.
 */
#define SHARED_WINDOW ((uint64_t)1 << 60)
#define LOCAL_WINDOW  ((uint64_t)2 << 60)
#define PARAM_WINDOW  ((uint64_t)3 << 60)
#define WINDOW(a)     ((a) >> 60)

typedef struct Insn Insn;
typedef struct Warp Warp;
typedef struct Block Block;
typedef struct Clock Clock;
typedef struct Code Code;
typedef void Exec(Warp *w, const Insn *i, uint32_t mask);

typedef enum Space { GENERIC, GLOBAL, SHARED, LOCAL, PARAM } Space;

enum {               /* Insn.flags */
       IS_WGMMA = 1, /* its registers may be those of dots under way */
       IS_MOVE = 2,  /* of one register, to be put off while that is under way */
       FTZ = 4,
       SAT = 8,
       RELU = 16,
       NAN_WINS = 32,
       SIGNED = 64,
       HALF_DST = 128,       /* the result goes to a 16-bit register */
       WIDE_DST = 256,       /* ... to a 64-bit register */
       READ_ONLY_WAIT = 512, /* cp.async.bulk.wait_group.read */
       TRANSPOSE = 1024
};

struct Insn {
    Exec *fn;
    uint32_t d, a, b, c; /* places of the first result and the first sources */
    uint32_t pred;       /* NO_PRED: none */
    uint16_t flags;
    uint8_t negated;
    uint8_t space;
    uint8_t bytes;     /* of an element in memory */
    uint8_t n;         /* elements, or registers */
    uint16_t sub;      /* which operation */
    int64_t imm;       /* offset of an address, target, count */
    const uint32_t *r; /* all places: nd results, then ns sources */
    uint16_t nd, ns;
    uint32_t line; /* of the text */
    uint32_t at, length;
};

struct Code { /* of one entry */
    char name[1100];
    Insn *insn;
    uint32_t ninsn, room;
    uint32_t reg_bytes;     /* register file of a warp */
    unsigned char *initial; /* its beginning: constants, the same in all lanes */
    uint32_t const_bytes;
    int nparam, param_bytes[128], param_at[128], param_size;
    int threads;
    uint32_t local_bytes;
    int cell; /* bytes of the smallest access of shared memory */
    bool has_cp, has_bulk, has_tma, has_wgmma, has_griddep;
    const char *text;
    /* places of special registers */
    uint32_t tid[3], ctaid[3], nctaid[3], ntid[3], laneid, warpid, lanemask[5];
    uint32_t rank, cluster;
    /* constants that are addresses of shared memory, and whether they are wide */
    uint32_t address[256];
    bool wide[256];
    int naddress;
};

typedef struct Global { /* a table of the module */
    char name[128];
    unsigned char *data;
    size_t bytes;
    bool constant; /* it has a value from the beginning */
} Global;

struct SimModule {
    char *text;
    Code *code;
    int ncode;
    Global *global;
    int nglobal;
    void **owned; /* everything that is freed with the module */
    int nowned, owned_room;
};

/* ---- clocks: what a thread knows to have happened (race.c) */

/* Who accesses: threads first, then the groups of asynchronous copies of each thread, of
   bulk stores of each thread, dots of each warp, and tensor loads. Numbers of one
   kind of a warp's lanes form a group of 32. */
struct Clock {
    int uses;
    Clock *next; /* of all that were made */
    uint32_t *v; /* by who: the last epoch that is known to be over */
    uint32_t *p; /* the same, and made visible to asynchronous operations */
};

typedef struct Cell { /* of shared memory: its last accesses */
    uint32_t wepoch;
    uint16_t writer; /* NOBODY */
    uint16_t flags;
    uint32_t repoch, rmask;
    uint16_t rgroup; /* NOBODY */
    uint16_t ratomic;
    uint32_t more; /* further readers */
} Cell;

typedef struct Reader {
    uint32_t epoch, mask, next;
    uint16_t group, atomic;
} Reader;

enum { NOBODY = 0xffff, CELL_WRITTEN = 1, CELL_ASYNC = 2, CELL_BAR = 4 };
typedef enum Access { READ, WRITE, ATOMIC } Access;

typedef struct MBar {
    bool live, fenced;
    uint32_t count, pending, phase, maker;
    uint32_t maker_epoch;
    int64_t tx;
    int flying; /* tensor loads that report here */
    Clock *now, *done;
} MBar;

typedef struct Barrier { /* bar.sync and bar.arrive */
    uint32_t count, arrived, want;
    uint64_t warps, waiting;
    uint64_t turn;
    Clock *clock;
} Barrier;

/* ---- asynchronous operations */

typedef enum AsyncKind { ASYNC_COPY, ASYNC_LOAD, ASYNC_STORE } AsyncKind;

typedef struct Async {
    AsyncKind kind;
    int thread;     /* that asked for it */
    uint32_t group; /* of the thread; ASYNC_LOAD: slot */
    uint32_t epoch;
    uint32_t shared; /* address */
    uint32_t bytes, zeros;
    uint64_t global;
    int op; /* of a reduction; 0: none */
    const void *map;
    int32_t at[5];
    uint32_t bar;
    const Insn *insn;
} Async;

/* Of the dots of a warp, in order: one of them, or a move that was put off. */
typedef struct Pending {
    const Insn *insn;
    uint32_t group;
    uint64_t a, b;
    uint32_t scale;
} Pending;

typedef enum WarpState { READY, AT_BARRIER, AT_MBAR, AT_REGS, DONE } WarpState;

typedef struct Part { /* lanes of a warp that are elsewhere */
    uint32_t pc, mask;
    bool stuck;
} Part;

struct Warp {
    unsigned char *regs;
    Block *b;
    int id, rank; /* in the block; of its program */
    WarpState state;
    uint32_t pc, active, live;
    Part part[LANES];
    int nparts, hold, spins;
    uint32_t wait_bar, wait_parity; /* AT_MBAR; AT_BARRIER: its number */
    uint64_t wait_turn;
    const Insn *wait_insn;
    int tries; /* without anything having changed */
    int regs_each, leader;
    bool griddep;
    unsigned char *local;
    Clock *clock[LANES];
    uint32_t epoch;
    /* copies of each lane */
    uint32_t cp_group[LANES], cp_done[LANES];
    uint32_t bulk_group[LANES], bulk_done[LANES];
    /* dots */
    Pending *pending;
    int npending, pending_room;
    uint32_t mma_group, mma_done, mma_open;
    uint32_t *busy;  /* by slot: group + 1 of the dot that holds it */
    uint32_t *stamp; /* by slot: when it was written */
    uint32_t now, fence, issued;
};

/* A tensor map that the block has written (tensormap.c). */
typedef struct MapState {
    uint64_t at;
    unsigned char *bytes;
    uint32_t who, epoch;
    uint32_t seen[MAX_WARPS]; /* lanes that have fenced since */
} MapState;

enum { SIM_MAPS = 64 };

/* Fields of tensormap.replace. */
enum {
    MAP_BASE,
    MAP_RANK,
    MAP_BOX,
    MAP_DIM,
    MAP_STEP,
    MAP_STRIDE,
    MAP_TYPE,
    MAP_SWIZZLE,
    MAP_FILL,
    MAP_INTERLEAVE
};

typedef struct Alike {
    uint32_t seq;
    uint64_t a, b;
    const Insn *insn;
} Alike;

struct Block {
    const Code *code;
    const SimModule *module;
    const SimLaunch *launch;
    Warp *warp;
    int cluster;  /* programs, 1 or 2 */
    int nwarps;   /* of all of them */
    int each;     /* of one */
    int nthreads; /* of one */
    uint32_t id[3], grid[3];
    uint32_t shared_top; /* end of one's shared memory */
    unsigned char *shared;
    unsigned char *param;
    Cell *cell;
    int cell_shift;
    uint32_t ncell;
    Reader *reader;
    uint32_t nreader, reader_room;
    struct Reads *reads; /* by 16 bytes and warp; NULL: nothing copies (proxy.c) */
    struct Fences *fences; /* by warp */
    int nwho, base_cp, base_bulk, base_mma, base_load, ngroups;
    Clock *clocks, **spare; /* all; those that nobody uses */
    int nspare, spare_room;
    uint32_t slot_epoch[64];
    bool slot_busy[64];
    MBar **mbar;           /* by address / 8 */
    uint32_t bar_at[1024]; /* where some were made */
    int nbar, unfenced;
    Barrier bar[MAX_CLUSTER * 16 + 1]; /* the last is the cluster's */
    Async *async;
    int nasync, async_room;
    MapState map[SIM_MAPS];
    int nmaps;
    int regs_free[MAX_CLUSTER];
    uint64_t random, steps, progress;
    bool serial; /* seed 0 */
    SimStatus status;
    char message[512];
    SimStats stats;
    int range_hit;
    /* what the warps of a warpgroup must do alike */
    Alike alike[MAX_WARPS / 4][256];
};

/* ---- run.c */
void block_run(Block *b);
void sim_fail(Warp *w, const Insn *i, SimStatus s, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
uint32_t sim_random(Block *b, uint32_t below);
/* All lanes of `need` that have not ended are here; else they are waited for, and the
   instruction is run again. */
bool warp_whole(Warp *w, const Insn *i, uint32_t need);

/* ---- parse.c, for decode.c */
typedef struct Reg {
    uint32_t at;
    int bits; /* 1: predicate */
} Reg;
typedef struct Parser Parser;
bool parse_fail(Parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool parse_register(Parser *p, const char *name, Reg *out);
uint32_t parse_const(Parser *p, uint64_t value, int bits);
uint32_t parse_fresh(Parser *p, int bits);
uint32_t parse_shared(Parser *p, uint64_t address, bool wide);
/* A symbol: its address in its space; PARAM: its place among the parameters. */
bool parse_symbol(Parser *p, const char *name, Space *space, uint64_t *address);
void parse_target(Parser *p, const char *label, Insn *branch);
void *parse_own(Parser *p, size_t bytes);
Code *parse_code(Parser *p);
Insn *parse_emit(Parser *p);
bool parse_return(Parser *p, Insn *i);
bool parse_call(Parser *p, char *operands);

/* ---- decode.c: an instruction of the text, without its predicate */
bool decode(Parser *p, const char *op, char *operands);

/* ---- instructions: a table each, by name and the kinds of their operands */
typedef struct OpEntry {
    const char *name, *format;
    Exec *fn;
    uint16_t flags;
} OpEntry;
extern const OpEntry ops_int[], ops_float[], ops_half[];
Exec op_cvt, op_load, op_load_param, op_store, op_atomic, op_cp_async, op_to_window,
    op_from_param;
int cvt_decode(const char *name, uint16_t *flags);
int atomic_op(const char *name, const char *type);
Exec op_shfl, op_vote, op_match, op_redux, op_elect, op_activemask, op_warp_sync,
    op_ldmatrix, op_stmatrix, op_mma, op_mma_f64;
Exec op_bra, op_ret, op_trap, op_nothing, op_griddep_wait, op_setmaxnreg;
Exec op_mapa, op_cluster_wait, op_bar_sync, op_bar_arrive, op_mbar_init, op_mbar_inval,
    op_mbar_arrive, op_mbar_expect, op_mbar_wait, op_mbar_test, op_proxy_fence,
    op_mbar_fence;
Exec op_cp_commit, op_cp_wait, op_tma_load, op_tma_store, op_bulk_commit, op_bulk_wait;
Exec op_map_replace, op_map_publish, op_map_acquire;
Exec op_wgmma, op_wgmma_fence, op_wgmma_commit, op_wgmma_wait;
int mma_kind(const char *type); /* of operands of dots; -1: unknown */

/* ---- memory */
unsigned char *global_bytes(Warp *w, const Insn *i, uint64_t a, uint32_t bytes,
                            bool write);
uint64_t reduce_element(int op, uint64_t was, uint64_t with);

/* ---- race.c */
void race_open(Block *b);
void race_close(Block *b);
void race_access(Warp *w, const Insn *i, uint32_t mask, const uint32_t *at,
                 uint32_t bytes, Access how);
/* An asynchronous operation of the lane, which is `who` from now on. */
void race_async(Warp *w, const Insn *i, int lane, uint32_t who, uint32_t epoch,
                uint32_t at, uint32_t bytes, Access how, bool generic);
Clock *clock_new(Block *b);
void clock_drop(Block *b, Clock *c);
void clock_release(Warp *w, uint32_t mask, Clock *to);
void clock_acquire(Warp *w, uint32_t mask, const Clock *from);
void clock_join(Block *b, Clock *to, const Clock *from);
void clock_sync(Warp *w, uint32_t mask); /* of lanes of a warp */
void clock_fence(Warp *w, uint32_t mask);
/* Does the lane know that this epoch is over? */
bool clock_knows(const Warp *w, int lane, uint32_t who, uint32_t epoch);

/* ---- proxy.c */
void proxy_open(Block *b);
void proxy_close(Block *b);
void proxy_fence(Warp *w, uint32_t mask);
void proxy_read(Warp *w, const Insn *i, uint32_t mask, const uint32_t *at,
                uint32_t bytes);
/* A tensor copy of the lane to these bytes. */
void proxy_copy(Warp *w, const Insn *i, int lane, uint32_t at, uint32_t bytes);

/* ---- tensormap.c */
int sim_element_bytes(int type); /* CUtensorMapDataType */
/* May the lane use the map at this address? */
bool map_is_seen(Warp *w, const Insn *i, int lane, uint64_t at);
void maps_finish(Block *b);

/* ---- async.c, wgmma.c */
bool async_step(Block *b); /* lands one at random; false: there was none */
void async_finish(Block *b);
void wgmma_step(Warp *w);
void wgmma_check(Warp *w, const Insn *i, bool *put_off);
MBar *mbar_at(Warp *w, const Insn *i, uint32_t at);
void mbar_settle(Block *b, MBar *m);
bool mbar_over(const MBar *m, uint32_t parity);

/* ---- lanes */
#define R32(w, at)  ((uint32_t *)(void *)((w)->regs + (at)))
#define R64(w, at)  ((uint64_t *)(void *)((w)->regs + (at)))
#define PRED(w, at) (*(uint32_t *)(void *)((w)->regs + (at)))

/* The body for each lane `l` of the mask; all lanes are a loop that vectorises. */
#define EACH(mask, ...)                                                                  \
    do {                                                                                 \
        if ((mask) == 0xffffffffu)                                                       \
            for (int l = 0; l < LANES; l++) {                                            \
                __VA_ARGS__;                                                             \
            }                                                                            \
        else                                                                             \
            for (uint32_t m_ = (mask); m_; m_ &= m_ - 1) {                               \
                int l = __builtin_ctz(m_);                                               \
                __VA_ARGS__;                                                             \
            }                                                                            \
    } while (0)

/* Do these bytes lie in the shared memory of one of the block's programs? */
static inline bool
shared_holds(const Block *b, uint64_t at, uint64_t bytes)
{
    uint64_t own = at & (((uint64_t)1 << CLUSTER_SHIFT) - 1);
    return at >> CLUSTER_SHIFT < (uint64_t)b->cluster && own >= SHARED_BASE &&
           own + bytes <= b->shared_top;
}

/* End of all shared memory. */
static inline uint32_t
shared_end(const Block *b)
{
    return ((uint32_t)(b->cluster - 1) << CLUSTER_SHIFT) + b->shared_top;
}

static inline uint32_t
lane_mask(const Warp *w, uint32_t at)
{
    return PRED(w, at);
}

#endif

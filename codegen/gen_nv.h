/* What the files of the GPU's code generator (gen_nv*.c) share. Every tile is an array of
   LLVM scalars, one per register of its layout; all threads of a program, or of a role,
   run the same code.

   Functions that generate code for an op do so where g->b stands, define its results, and
   return false after an error, which is in s->diag then. Functions that return a value
   return NULL after an error. Arrays are in s->tmp. Words are 32-bit integers. */
#ifndef SDC_CODEGEN_GEN_NV_H
#define SDC_CODEGEN_GEN_NV_H

#include "codegen/gen.h"
#include "ir/layout.h"
#include "ir/plan/shuffle.h"

enum {
    NV_MAX_REGS = 32768, /* of a thread for one tile: more is an error, since code for
                            2^20 elements in a warp takes seconds to generate */
    NV_ALL_REGS = 256,   /* that a thread has */
    NV_MANY_REGS = 128,  /* for one tile: more is a warning */
    NV_MAX_THREADS = 1024,
    NV_FRESH_MAPS = 8 /* tensor maps that are written before they are acquired together */
};

/* What a Value is in LLVM: one scalar, or one per register of the layout. */
typedef struct Regs {
    int n;
    LLVMValueRef *v;
} Regs;

typedef struct Nv {
    LLVMValueRef tid;        /* thread of the role or program, 0 .. 32 * warps - 1 */
    LLVMValueRef lane, warp; /* of that thread: tid % 32, tid / 32 */
    int warps;               /* of the role or program */
    int barrier;             /* number of the role's or program's named barrier */
    int pingpong; /* the first of the barriers that warpgroups alternate (ping-pong) by */
    LLVMBasicBlockRef entry; /* for values that depend on the thread alone */
    Map lead;                /* Layout -> per-thread coordinates, see gen_nv_layout.c */
    int widest;              /* 32-bit registers of the largest tile of numbers */
    Loc widest_at;           /* where that is made */
    bool multiplies;         /* there is a dot */
    struct Axis *axis;       /* facts of the function's values, NULL until needed */
    struct Axis *addresses;  /* the same, as addresses have them */
    LLVMValueRef shared;     /* dynamic shared memory of the program, or NULL */
    const SdcrtMeta *meta;
    /* NULL until needed: see nv_elected, nv_elected_of_group, nv_group */
    LLVMValueRef elected, elected_of_group, group;
    Map maps;             /* TMA Op -> its SdcrtMap in meta */
    Map old;              /* argument of a loop -> Regs, see nv_fresh_open */
    Map late;             /* dot -> NvLate */
    Map halves;           /* the same, for copies of a half tile to two programs */
    /* Tensor maps that the kernel writes (gen_nv_map.c). */
    LLVMValueRef map_slot;  /* i64: address of its maps; NULL: it writes none */
    LLVMValueRef map_taken; /* address of the word that marks the slot as used */
    int nmaps;              /* that have a place in the slot */
    const Op *fresh[NV_FRESH_MAPS]; /* written, but not acquired yet */
    int nfresh;
    struct NvLoop *loop; /* the innermost loop whose body is being generated, or NULL */
} Nv;

static inline Nv *
nv_of(Gen *g)
{
    return g->priv;
}

/* Warps that run the code being generated: those of the role, or of the program. */
static inline int
nv_warps(Gen *g)
{
    return nv_of(g)->warps;
}

/* ---- gen_nv.c */
/* Target.func of codegen/gen.h: one kernel into g->mod. */
bool gen_nv_func(Gen *g, Func *f, SdcrtMeta *meta);
/* The registers of a value that was defined; NULL after an error. */
Regs *nv_regs(Gen *g, const Value *v);
/* The only register of a scalar. */
LLVMValueRef nv_scalar(Gen *g, const Value *v);
/* Defines v: n registers, which the caller fills in. NULL after an error. */
Regs *nv_define(Gen *g, const Value *v, int n);
/* Registers that a value of type t takes in a thread. */
int nv_count(const Type *t);
/* The LLVM type of one of them. */
LLVMTypeRef nv_type(Gen *g, const Type *t);
/* Address of the op's buffer or scratch memory, which alloc-shared has placed
   (passes/finish/alloc_shared.c). */
LLVMValueRef nv_scratch(Gen *g, const Op *op);
/* Inline assembly of the source: gen_nv_asm.c. */
bool nv_inline_asm(Gen *g, const Op *op);
/* Generates a region whose arguments are op's operands. */
bool nv_region(Gen *g, const Region *r, const Op *op);
/* Generates a region of scalar operations, such as that of a reduction: `args` are its
   arguments, *out gets the values that it yields. */
bool nv_inline(Gen *g, const Region *r, LLVMValueRef *args, LLVMValueRef *out);

/* ---- gen_nv_same.c: what is known of a value's elements */
/* Contiguity, divisibility and constancy of v (ir/analysis/axis.h). */
const struct AxisFacts *nv_facts(Gen *g, const Value *v);
/* The set of register bits of v that do not matter: registers whose numbers differ in
   these bits alone are known to hold equal elements. */
uint32_t nv_same(Gen *g, const Value *v);
/* The same of addresses, whose sums and products do not wrap. */
uint32_t nv_same_address(Gen *g, const Value *v);

/* ---- gen_nv_layout.c: coordinates of elements, and ops that only rename registers */
/* The coordinate along dim of this thread's register `reg`, i32. */
LLVMValueRef nv_coord(Gen *g, const Layout *l, uint32_t reg, int dim);
/* i1: of the threads with copies of the same elements, is this the one that stores them?
   NULL: there are no copies. */
LLVMValueRef nv_owner(Gen *g, const Layout *l);
/* The register of l whose image is `coord`; -1: there is none. */
int nv_reg_at(const Layout *l, uint32_t coord);
/* A linear function over F2 of the thread's number, i32: the exclusive or of image[i] for
   each of its bits i < n that is set. *bits: those that the result may have set. */
LLVMValueRef nv_linear(Gen *g, const uint32_t *image, int n, uint32_t *bits);
/* expand_dims, broadcast, reshape and the like: registers are renamed. */
bool nv_shape_op(Gen *g, const Op *op);
bool nv_arange(Gen *g, const Op *op);

/* ---- gen_nv_word.c: elements as bits, accesses of shared memory */
/* Element x of type e as an integer of `bits` bits, as in memory; and back. */
LLVMValueRef nv_to_bits(Gen *g, const Type *e, LLVMValueRef x, int bits);
LLVMValueRef nv_from_bits(Gen *g, const Type *e, LLVMValueRef x);
/* Stores n consecutive elements, integers of `bits` bits, 16 bytes at most, at an address
   that is aligned to their size; only where pred holds, NULL: always. */
void nv_shared_store(Gen *g, LLVMValueRef at, int bits, int n, LLVMValueRef *elem,
                     LLVMValueRef pred);

/* An address that nv_shared_at has computed, to be used again. */
typedef struct SharedBase {
    uint32_t x;      /* combined with the thread's offset by exclusive or */
    LLVMValueRef of; /* the buffer */
    LLVMValueRef at; /* the address */
} SharedBase;

/* Where the registers of a layout are in a shared buffer. The offset of register r, in
   bytes, is the exclusive or of a part that depends on the thread, `lead`, and of
   nv_shared_offset(r). Bits of the latter outside of lead_bits are added instead, so that
   they become the constant offset of an instruction:

       offset(r) = (lead ^ x) + c  where  nv_shared_offset(r) == x | c, x in lead_bits */
typedef struct SharedMap {
    F2 map; /* register, lane and warp bits -> offset in elements */
    int regs;  /* register bits */
    int bytes; /* of an element */
    uint32_t copies[LD_COUNT]; /* as layout_replication */
    int run; /* elements that one access moves: registers r | run_bit[..] */
    int run_bit[LAYOUT_MAX_BITS];
    uint32_t run_mask;   /* the register bits inside of an access */
    LLVMValueRef lead;   /* i32, bytes */
    uint32_t lead_bits;  /* that lead may have set */
    LLVMValueRef moved;  /* what nv_shared_move was given; NULL: it was not called */
    uint32_t moved_bits;
    LLVMValueRef owner;  /* i1: this thread writes; NULL: every thread does */
    SharedBase base[16]; /* addresses so far; the caller sets nbase to 0 where control
                            flow leaves the block that computed them */
    int nbase;
} SharedMap;

/* From map, the offsets in elements of `bytes` bytes, for registers of layout l. */
void nv_shared_map_make(Gen *g, const F2 *map, const Layout *l, int bytes,
                        SharedMap *out);
/* All offsets change by an exclusive or with `by`, in bytes, which has at most `bits`
   set. */
void nv_shared_move(Gen *g, SharedMap *m, LLVMValueRef by, uint32_t bits);
/* The part of the offset of register `reg` that does not depend on the thread, in
   bytes. */
uint32_t nv_shared_offset(const SharedMap *m, uint32_t reg);
/* The address of register `reg` in the buffer at `base`. */
LLVMValueRef nv_shared_at(Gen *g, SharedMap *m, LLVMValueRef base, uint32_t reg);
/* Reads or writes all registers r with (r & only) == part, elements of type e. A register
   that is a copy of another one is not written; of threads with copies m->owner says
   which writes. */
void nv_shared_read(Gen *g, SharedMap *m, LLVMValueRef base, const Type *e, uint32_t only,
                    uint32_t part, Regs *out);
void nv_shared_write(Gen *g, SharedMap *m, LLVMValueRef base, const Type *e,
                     uint32_t only, uint32_t part, const Regs *in);

/* Code generated between the two runs only in threads where cond, i1, holds (NULL: in
   all). */
typedef struct Guard {
    LLVMBasicBlockRef after;
} Guard;
Guard nv_guard_begin(Gen *g, LLVMValueRef cond);
void nv_guard_end(Gen *g, Guard guard);

/* ---- gen_nv_local.c: buffers in shared memory, the local_* ops */
bool nv_local(Gen *g, const Op *op);
/* gen_nv_ldmatrix.c: nv_shared_read and nv_shared_write by ldmatrix and stmatrix. False:
   the map does not fit the instruction or the target has none, and nothing is done. */
bool nv_ldmatrix(Gen *g, const SharedMap *m, LLVMValueRef base, const Type *e,
                 uint32_t only, uint32_t part, Regs *out);
bool nv_stmatrix(Gen *g, const SharedMap *m, LLVMValueRef base, const Type *e,
                 uint32_t only, uint32_t part, const Regs *in);
/* Where a tile of layout l is in a buffer of type mem; false: the buffer's layout is not
   one to one. */
bool nv_shared_map(Gen *g, const Type *mem, const Layout *l, SharedMap *out);

/* ---- gen_nv_shuffle.c: values of other lanes */
/* x, of any scalar type, of lane `lane ^ lanes`. */
LLVMValueRef nv_shuffle_xor(Gen *g, LLVMValueRef x, int lanes);
/* The same of the lane of this number. */
LLVMValueRef nv_shuffle_from(Gen *g, LLVMValueRef x, LLVMValueRef lane);
/* Moves registers between the lanes of a warp as p says; e: the tile's element. */
void nv_convert_lanes(Gen *g, const ShufflePlan *p, const Type *e, Regs *in, Regs *out);

/* ---- gen_nv_convert.c: convert_layout */
bool nv_convert(Gen *g, const Op *op);

/* ---- gen_nv_elem.c: elementwise work, on scalars; x: the operands */
LLVMValueRef nv_elem(Gen *g, const Op *op, LLVMValueRef *x);
/* Target.math of codegen/gen.h. */
LLVMValueRef nv_math(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x);
/* gen_nv_div.c: Target.divide of codegen/gen.h. */
LLVMValueRef nv_divide(Gen *g, const Op *op, LLVMValueRef x, LLVMValueRef y);
/* For a division or remainder: the set of register bits that number neighbours of which
   all but the first are known to have one quotient, so that two divisions serve them all.
   0: there is no such set, or another op. */
uint32_t nv_bucket(Gen *g, const Op *op);
/* The result in register r by the quotient of its last neighbour; `run` is nv_bucket's
   set. NULL: r is the first neighbour, and has to be divided itself. */
LLVMValueRef nv_divide_run(Gen *g, const Op *op, Regs *const *in, int r, uint32_t run);

/* ---- gen_nv_libm.c */
/* Calls libclc's function for op. NULL: it has none, or an error in s->diag. */
LLVMValueRef nv_libm(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x);

/* ---- gen_nv_cast.c. NULL or false: the general code (gen_cast.c) has to do it. */
/* Target.fcast of codegen/gen.h. */
LLVMValueRef nv_fcast(Gen *g, ScalarKind from, ScalarKind to, bool rtz, LLVMValueRef x);
/* An integer to bf16. */
LLVMValueRef nv_int_to_bf16(Gen *g, const Op *op, LLVMValueRef x);
/* ftosi or ftoui. */
LLVMValueRef nv_float_to_int(Gen *g, const Op *op, LLVMValueRef x);
/* Converts registers r and r + 1 with one instruction. */
bool nv_cast_pair(Gen *g, const Op *op, Regs *const *in, int r, LLVMValueRef *out);
/* Converts all registers, in pairs that are neighbours in the shared buffer that the
   result is stored to. False also if these are r and r + 1, or it is not stored to
   one. */
bool nv_cast_stored(Gen *g, const Op *op, const Regs *in, Regs *out);

/* ---- gen_nv_alive.c */
/* How many programs an SM has to have registers for: .minnctapersm. 0: ptxas decides. */
int nv_least_programs(Gen *g, const Func *f);

/* ---- gen_nv_half.c: arithmetic of fp16 and bf16, on one element, and on registers r and
   r + 1 together. NULL or false: there is no such instruction. */
LLVMValueRef nv_half(Gen *g, const Op *op, LLVMValueRef *in);
bool nv_half_pair(Gen *g, const Op *op, Regs *const *in, int r, LLVMValueRef *out);

/* ---- gen_nv_mem.c, gen_nv_atomic.c: global memory */
bool nv_load(Gen *g, const Op *op);
bool nv_store(Gen *g, const Op *op);
bool nv_atomic(Gen *g, const Op *op);

/* ---- gen_nv_scratch.c: scratch memory of an op, in shared memory */
/* Barrier of the role's or program's threads, between writes and reads of scratch. */
void nv_barrier(Gen *g);
/* The op: of these threads, or {groups} of those of each warpgroup. */
bool nv_barrier_op(Gen *g, const Op *op);
/* base + bytes */
LLVMValueRef nv_scratch_part(Gen *g, LLVMValueRef base, int64_t bytes);
/* Writes a tile of type t as a row-major array at `base`, or reads it. */
void nv_scratch_write(Gen *g, LLVMValueRef base, const Type *t, const Regs *in);
void nv_scratch_read(Gen *g, LLVMValueRef base, const Type *t, Regs *out);
/* The same for a tile of elements t in layout l. */
void nv_tile_write(Gen *g, LLVMValueRef base, const Layout *l, const Type *t,
                   const Regs *in);
void nv_tile_read(Gen *g, LLVMValueRef base, const Layout *l, const Type *t, Regs *out);

/* ---- gen_nv_tma.c: TMA copies */
bool nv_tma(Gen *g, const Op *op);
/* Prefetches the tensor maps that the launcher passes. */
void nv_prefetch_maps(Gen *g);

/* ---- gen_nv_map.c: tensor maps that the kernel writes */
/* The least driver: assemblers of older ones took strides in units of 16 bytes. */
enum { NV_MAP_DRIVER = 12050 };
/* At the kernel's beginning: takes a slot for the maps, if f writes any. At its end:
   gives it back. */
void nv_maps_begin(Gen *g, const Func *f);
void nv_maps_end(Gen *g);
/* The op that writes a map. */
bool nv_tensor_map(Gen *g, const Op *op);
/* Fence after which this thread may use the map at that address, which other warps have
   written. */
void nv_acquire_map(Gen *g, LLVMValueRef map);

/* ---- gen_nv_grid.c */
enum { NV_AXES = 3 };
/* i32: this program's number along an axis of the grid, and the number of programs. */
LLVMValueRef nv_program(Gen *g, int axis);
LLVMValueRef nv_programs(Gen *g, int axis);
/* grid_wait and launch_dependents: programmatic dependent launch. */
void nv_grid(Gen *g, const Op *op);
/* May the kernel begin before its primary grid has ended: does every thread wait for
   it? */
bool nv_overlaps(const Gen *g, const Func *f);

/* ---- gen_nv_exchange.c: ops that move elements between threads */
bool nv_gather(Gen *g, const Op *op);
bool nv_histogram(Gen *g, const Op *op);

/* ---- gen_nv_print.c */
bool nv_print(Gen *g, const Op *op);
bool nv_assert(Gen *g, const Op *op);

/* ---- gen_nv_scan.c */
bool nv_scan(Gen *g, const Op *op);

/* ---- gen_nv_reduce.c */
bool nv_reduce(Gen *g, const Op *op);

/* ---- gen_nv_frag.c: registers as the words of mma and wgmma */
/* The words of a fragment of operand `op` (0 left, 1 right), elements of `bits` bits, in
   the manual's order, rows then k: four words for op 0, two for op 1; 64-bit elements are
   not packed. `first`: coordinates of its first row (for op 1: column) and of its matrix
   in a batch; k: its first inner element. order[i]: the inner element, from k on, that
   the instruction takes as its i-th; NULL: i. False: a thread does not hold all of it. */
bool nv_fragment(Gen *g, const Layout *l, const Regs *r, int op, uint32_t first,
                 uint32_t k, int bits, const uint8_t *order, LLVMValueRef *word);
/* Packs n registers of an accumulator into words, two of fp16 in each. Returns the number
   of words. */
int nv_acc_pack(Gen *g, const LLVMValueRef *reg, int n, LLVMValueRef *word);
/* The reverse, from n words; half: of fp16. */
void nv_acc_unpack(Gen *g, const LLVMValueRef *word, int n, bool half,
                   LLVMValueRef *reg);

/* ---- gen_nv_bytes.c: reads bytes across the rows of a buffer, by ldmatrix and prmt */
/* Reads a tile of 8-bit elements of which each thread holds four from different rows as a
   word. False: the map is not of that form. */
bool nv_ldmatrix_bytes(Gen *g, const SharedMap *m, LLVMValueRef base, const Type *e,
                       Regs *out);

/* The same in two steps, so that other work can stand between ldmatrix and prmt. */
typedef struct ByteMap {
    int row[2];          /* register bits that select a word's four rows */
    int col;             /* register bit that selects one of the pair's columns */
    int more;            /* a register bit that numbers matrices, too; -1: none */
    bool crossed;        /* the last lane bit exchanges the columns */
    int words;           /* that one read gives */
    LLVMValueRef sel[2]; /* prmt selectors of the columns */
    SharedMap rows;      /* addresses of the matrices' rows */
} ByteMap;
/* False: as for nv_ldmatrix_bytes. */
bool nv_bytes_open(Gen *g, const SharedMap *m, const Type *e, ByteMap *out);
/* Is r the first register of a read? */
bool nv_bytes_begins(const ByteMap *x, uint32_t r);
/* ldmatrix: reads x->words words for the registers from r on. */
void nv_bytes_fetch(Gen *g, ByteMap *x, LLVMValueRef base, uint32_t r,
                    LLVMValueRef *word);
/* prmt: puts the bytes of these words into the registers from r on. */
void nv_bytes_part(Gen *g, const ByteMap *x, const Type *e, uint32_t r,
                   const LLVMValueRef *word, Regs *out);

/* ---- gen_nv_left.c: left operands of wgmma that threads read step by step */
typedef struct LeftReader {
    const Layout *plain; /* of the registers, as if the rows were in order */
    bool words;          /* elements are words; else bytes */
    const Type *elem;
    Regs regs; /* of the whole operand, as far as it was read */
    SharedMap map;
    ByteMap bytes;          /* if by_bytes */
    bool by_bytes;          /* read as gen_nv_bytes.c does */
    LLVMValueRef base;      /* the buffer's address */
    LLVMValueRef (*raw)[4]; /* words that ldmatrix gave, by their first register */
} LeftReader;
/* Opens buffer mem. warps: the accumulator's; pairs: its rows are those of
   layout_row_pairs. */
bool nv_left_open(Gen *g, const Value *mem, const int warps[2], bool pairs,
                  LeftReader *out);
/* A part of the operand: elements k .. k + n - 1 of the inner dimension, n a power of
   two, in the 64 rows from `row` on, or in all rows. */
typedef struct LeftPart {
    uint32_t k, n, row;
    bool all_rows;
} LeftPart;
/* Issues the reads of the part. */
void nv_left_fetch(Gen *g, LeftReader *x, LeftPart part);
/* Puts it into its registers, behind the assembly `wait`, which waits for the wgmma that
   reads these registers. */
void nv_left_take(Gen *g, LeftReader *x, LeftPart part, const char *wait);

/* ---- gen_nv_dot.c */
bool nv_dot(Gen *g, const Op *op);
bool nv_local_dot(Gen *g, const Op *op);

/* ---- gen_nv_wgmma.c */
bool nv_wgmma(Gen *g, const Op *op);

/* ---- gen_nv_keep.c: guards against faults of ptxas in loops of wgmma */
typedef struct NvLoop {
    struct NvLoop *around; /* the next outer loop, or NULL */
    const Op *op;
    LLVMBasicBlockRef before; /* ends with the branch to the loop */
    LLVMValueRef *word;       /* of left operands that the loop does not change */
    int n, room;              /* used and allocated entries of word */
} NvLoop;

/* Begins the loop op; *l must last until nv_loop_close. */
void nv_loop_open(Gen *g, NvLoop *l, const Op *op, LLVMBasicBlockRef before);
/* At the first place behind the loop: keeps the words in registers up to there. */
void nv_loop_close(Gen *g, const NvLoop *l);
/* Moves g->b in front of the loops that do not change v, for packing its words there, and
   returns where it was. */
LLVMBasicBlockRef nv_loop_pack(Gen *g, const Value *v);
/* Moves g->b back to `here`; the loops that do not change v keep its n words. */
void nv_loop_keep(Gen *g, const Value *v, LLVMBasicBlockRef here,
                  const LLVMValueRef *word, int n);
/* Must ptxas not unroll the loop? */
bool nv_stays_loop(const Op *loop);
/* Inline assembly with n registers d that are read and written, then nin inputs. */
void nv_through_asm(Gen *g, const char *text, LLVMValueRef *d, int n, LLVMValueRef *in,
                    int nin);
/* ---- gen_nv_wgmma_wait.c: wgmma_wait and wgmma_open */
bool nv_wgmma_wait(Gen *g, const Op *op);

/* ---- gen_nv.c */
/* i1: does a loop that is at iv have another iteration? */
LLVMValueRef nv_goes_on(Gen *g, LLVMValueRef iv, LLVMValueRef hi, LLVMValueRef step);

/* ---- gen_nv_fresh.c: accumulators that nobody clears */
/* i1: the wgmma adds to such an accumulator, it does not write it; NULL: it has none. */
LLVMValueRef nv_adds(Gen *g, const Op *dot);
/* At the head of a loop over tiles and at its end: what such accumulators of the loops in
   it hold. */
void nv_fresh_open(Gen *g, const Op *tiles, LLVMBasicBlockRef before);
bool nv_fresh_close(Gen *g, const Op *tiles, LLVMBasicBlockRef last);
/* In front of the loop: changes `init` to what such accumulators hold there. */
void nv_fresh_begin(Gen *g, const Op *loop, Regs **init);
/* Behind the wait for v, which may be the result of such a loop: its sums are zeros if it
   had no iteration. */
bool nv_fresh_end(Gen *g, const Value *v, Regs *sums);

/* ---- gen_nv_late.c: pieces of dots that are added in the next iteration */
typedef struct NvLate {
    int n;               /* registers of the piece, the last ones of the accumulator */
    LLVMValueRef *piece; /* what the iteration before leaves to be added */
    LLVMValueRef *next;  /* what this one does, from the dot on */
} NvLate;

/* Of a dot whose last piece is added late; NULL: it is not. */
NvLate *nv_late(Gen *g, const Op *dot);
/* At the head of a loop, for the dots in it, and at its end. */
void nv_late_begin(Gen *g, const Op *loop, LLVMBasicBlockRef before);
void nv_late_end(Gen *g, const Op *loop, LLVMBasicBlockRef last);
/* Behind the loop: result i, `sums`, with what its last iteration leaves to be added. */
Regs *nv_late_sums(Gen *g, const Op *loop, int i, Regs *sums);

/* ---- gen_nv_scale.c: accumulators times factors of rows, if op is such a product */
bool nv_scale_rows(Gen *g, const Op *op, Regs **in, Regs *out);

/* ---- gen_nv_async.c: cp.async and its waits */
bool nv_async(Gen *g, const Op *op);

/* ---- gen_nv_roles.c: warp specialization */
/* warp_specialize: one branch for each role. */
bool nv_roles(Gen *g, const Op *op);
/* Ops by which the warpgroups of a role alternate. */
bool nv_pingpong(Gen *g, const Op *op);
/* The warp_specialize op of f; NULL: all warps do the same. */
const Op *nv_roles_of(const Func *f);
/* Warps that f is launched with: each role takes whole warpgroups, some of which idle. */
int nv_launch_warps(const Func *f);
/* How many programs the cluster has that the kernel may be launched in; 0: no cluster.
   `roles`: its warp_specialize op, or NULL. */
int nv_cluster(const Op *roles);
/* The op that asks whether the kernel was launched in a cluster: i1. */
bool nv_in_cluster(Gen *g, const Op *op);
/* How many programs an SM should run at least. */
int nv_blocks(const Op *roles);

/* ---- gen_nv_bar.c: mbarriers */
bool nv_bar(Gen *g, const Op *op);
/* i1: true in one thread of the role or program, always the same one. Must be called
   where all threads run. */
LLVMValueRef nv_elected(Gen *g);
/* The same of each warpgroup. */
LLVMValueRef nv_elected_of_group(Gen *g);
/* The warpgroup's number in its role, i32. */
LLVMValueRef nv_group(Gen *g);
/* The warp's number in its role, i32, computed so that ptxas knows it to be uniform. */
LLVMValueRef nv_uniform_warp(Gen *g);
/* A pointer to shared memory as the i32 that assembly takes. */
LLVMValueRef nv_shared_word(Gen *g, LLVMValueRef address);

/* ---- gen_nv_private.c: private_* ops, strips of tiles in a thread's local memory */
bool nv_private(Gen *g, const Op *op);

/* ---- nv_cleanup.c: Target.cleanup, rewriting that LLVM leaves to be done */
void nv_cleanup(Gen *g);

/* ---- nv_offset.c: constant parts of addresses */
void nv_move_offsets(Gen *g, LLVMBasicBlockRef b);

/* ---- nv_prmt.c: bytes of two words, put together by one prmt */
void nv_select_bytes(Gen *g, LLVMBasicBlockRef block);

/* ---- nv_serial.c: Target.unoptimised: waits for each dot at once */
void nv_serial(Gen *g);

#endif

/* The GPU's code generator: every tile is an array of LLVM scalars, one per register
   of its layout; all threads of a program run the same code. Shared by gen_nv*.c,
   gen_nv_layout.c. */
#ifndef SDC_CODEGEN_GEN_NV_H
#define SDC_CODEGEN_GEN_NV_H

#include "codegen/gen.h"
#include "ir/layout.h"
#include "ir/plan/shuffle.h"

/* Registers that one thread may need for one tile: 2^20 elements in a warp take code that
   is seconds in the making. Those that it has, and half of them. */
enum {
    NV_MAX_REGS = 32768,
    NV_ALL_REGS = 256,
    NV_MANY_REGS = 128,
    NV_MAX_THREADS = 1024,
    NV_FRESH_MAPS = 8
};

/* What a Value is in LLVM: one scalar, or one per register of the layout. */
typedef struct Regs {
    int n;
    LLVMValueRef *v;
} Regs;

typedef struct Nv {
    LLVMValueRef tid;        /* thread of the role or program, 0 .. 32 * warps - 1 */
    LLVMValueRef lane, warp; /* its parts */
    int warps, barrier;      /* of the role, or the program: how many; its barrier */
    int pingpong; /* the first of the barriers that warpgroups alternate (ping-pong) by */
    LLVMBasicBlockRef entry; /* where what depends on the thread alone is computed */
    Map lead;                /* (Layout) -> per-thread coordinates, see gen_nv_layout.c */
    int widest;              /* 32-bit registers of the largest tile of numbers */
    Loc widest_at;
    bool multiplies; /* there is a dot */
    struct Axis *axis; /* facts of the function's values, NULL until asked for */
    LLVMValueRef shared;     /* dynamic shared memory of the program, or NULL */
    const SdcrtMeta *meta;
    LLVMValueRef elected; /* see nv_elected; NULL until it is needed */
    Map maps;             /* (Op of TMA) -> SdcrtMap of meta */
    Map halves;           /* the same, of halves that come for two programs */
    /* Where the tensor maps that the kernel writes lie, of this program, i64, and the
       word that says so (NULL: it writes none); how many have their place; those that
       nobody has acquired yet. */
    LLVMValueRef map_slot, map_taken;
    const Op *fresh[NV_FRESH_MAPS];
    int nmaps, nfresh;
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
bool gen_nv_func(Gen *g, Func *f, SdcrtMeta *meta);
/* The registers of a value; NULL after an error. */
Regs *nv_regs(Gen *g, const Value *v);
LLVMValueRef nv_scalar(Gen *g, const Value *v);
/* Room for n registers of v, entered in the map; NULL after an error. */
Regs *nv_define(Gen *g, const Value *v, int n);
int nv_count(const Type *t);                /* registers that a value of the type takes */
LLVMTypeRef nv_type(Gen *g, const Type *t); /* of one register */
/* Where placement (passes/finish/alloc_shared.c) put the op's buffer or scratch memory;
   NULL after an error. */
LLVMValueRef nv_scratch(Gen *g, const Op *op);
/* Inline assembly of the source: gen_nv_asm.c. */
bool nv_inline_asm(Gen *g, const Op *op);
/* Code of a region whose arguments are op's operands. */
bool nv_region(Gen *g, const Region *r, const Op *op);
/* Code of a region that is computed on scalars: arguments in, what it yields out. */
bool nv_inline(Gen *g, const Region *r, LLVMValueRef *args, LLVMValueRef *out);

/* ---- gen_nv_same.c: what is known of a value's elements */
const struct AxisFacts *nv_facts(Gen *g, const Value *v);
/* Register bits of v that do not change what it is: registers that differ in these alone
   are known to hold the same number. */
uint32_t nv_same(Gen *g, const Value *v);

/* ---- gen_nv_layout.c: where an element is, and elements that only change registers */
/* Coordinate of register `reg` along dim, as i32. */
LLVMValueRef nv_coord(Gen *g, const Layout *l, uint32_t reg, int dim);
/* i1: this thread is the one that acts for its elements; NULL: every thread is. */
LLVMValueRef nv_owner(Gen *g, const Layout *l);
/* The register of l whose share of the coordinates is `coord`; -1 when there is none. */
int nv_reg_at(const Layout *l, uint32_t coord);
/* A linear function of the thread's number: bit i adds (exclusive or) image[i]. *bits:
   those that it may set. */
LLVMValueRef nv_linear(Gen *g, const uint32_t *image, int n, uint32_t *bits);
bool nv_shape_op(Gen *g, const Op *op);
bool nv_arange(Gen *g, const Op *op);

/* ---- gen_nv_word.c: elements as bits, accesses of shared memory */
/* An element as the bits that lie in memory, and back. */
LLVMValueRef nv_to_bits(Gen *g, const Type *e, LLVMValueRef x, int bits);
LLVMValueRef nv_from_bits(Gen *g, const Type *e, LLVMValueRef x);
/* n consecutive elements, integers of `bits`; 16 bytes at most, the address aligned to
   their size. */
void nv_shared_store(Gen *g, LLVMValueRef at, int bits, int n, LLVMValueRef *elem,
                     LLVMValueRef pred); /* NULL: always */

typedef struct SharedBase {
    uint32_t x;          /* bits of the constant that are added by exclusive or */
    LLVMValueRef of, at; /* buffer, address */
} SharedBase;

/* Where the registers of a layout lie in a buffer. In bytes: register r of a thread is
   at (lead ^ x) + c, where nv_shared_offset(r) == x | c, x inside of lead_bits. */
typedef struct SharedMap {
    F2 map; /* register, lane and warp bits -> offset in elements */
    int regs, bytes;
    uint32_t copies[LD_COUNT];
    int run; /* elements that one access takes: registers r | run_bit[..] */
    int run_bit[LAYOUT_MAX_BITS];
    uint32_t run_mask; /* of the register bits inside of an access */
    LLVMValueRef lead;
    uint32_t lead_bits;
    LLVMValueRef moved; /* by so many bytes, exclusive or; NULL: as made */
    uint32_t moved_bits;
    LLVMValueRef owner;  /* i1: this thread writes; NULL, as made: every thread does */
    SharedBase base[16]; /* addresses made so far; reset (nbase) where blocks part */
    int nbase;
} SharedMap;

void nv_shared_map_make(Gen *g, const F2 *map, const Layout *l, int bytes,
                        SharedMap *out);
/* Every place of it is `by` bytes (exclusive or) further, which sets `bits` at most. */
void nv_shared_move(Gen *g, SharedMap *m, LLVMValueRef by, uint32_t bits);
uint32_t nv_shared_offset(const SharedMap *m, uint32_t reg);
LLVMValueRef nv_shared_at(Gen *g, SharedMap *m, LLVMValueRef base, uint32_t reg);
/* All registers r with (r & only) == part. Writing leaves out copies in registers;
   copies in other threads are the caller's concern (`owner`). */
void nv_shared_read(Gen *g, SharedMap *m, LLVMValueRef base, const Type *e, uint32_t only,
                    uint32_t part, Regs *out);
void nv_shared_write(Gen *g, SharedMap *m, LLVMValueRef base, const Type *e,
                     uint32_t only, uint32_t part, const Regs *in);

/* Code between the two is run where cond holds (NULL: everywhere). */
typedef struct Guard {
    LLVMBasicBlockRef after;
} Guard;
Guard nv_guard_begin(Gen *g, LLVMValueRef cond);
void nv_guard_end(Gen *g, Guard guard);

/* ---- gen_nv_local.c: buffers in shared memory */
bool nv_local(Gen *g, const Op *op);
/* gen_nv_ldmatrix.c: nv_shared_read and nv_shared_write by ldmatrix and stmatrix; false,
   and nothing done, when the map is not one of theirs or the target has them not. */
bool nv_ldmatrix(Gen *g, const SharedMap *m, LLVMValueRef base, const Type *e,
                 uint32_t only, uint32_t part, Regs *out);
bool nv_stmatrix(Gen *g, const SharedMap *m, LLVMValueRef base, const Type *e,
                 uint32_t only, uint32_t part, const Regs *in);
/* The places of a tile of layout l in a buffer; false when the buffer's layout is not
   one to one. */
bool nv_shared_map(Gen *g, const Type *mem, const Layout *l, SharedMap *out);

/* ---- gen_nv_shuffle.c: values of other lanes; any scalar type */
LLVMValueRef nv_shuffle_xor(Gen *g, LLVMValueRef x, int lanes);
/* e: the tile's element. */
void nv_convert_lanes(Gen *g, const ShufflePlan *p, const Type *e, Regs *in, Regs *out);

/* ---- gen_nv_convert.c */
bool nv_convert(Gen *g, const Op *op);

/* ---- gen_nv_elem.c: the target's hooks for elementwise work */
LLVMValueRef nv_elem(Gen *g, const Op *op, LLVMValueRef *x);
LLVMValueRef nv_math(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x);
/* gen_nv_div.c */
LLVMValueRef nv_divide(Gen *g, const Op *op, LLVMValueRef x, LLVMValueRef y);
/* Of a quotient or remainder, the bits of a register's number that choose between
   neighbours whose quotients are equal behind the first; 0: none, or another op. */
uint32_t nv_bucket(Gen *g, const Op *op);
/* Register r, where `run` is nv_bucket's; NULL: it is the first, or not divided here. */
LLVMValueRef nv_divide_run(Gen *g, const Op *op, Regs *const *in, int r, uint32_t run);

/* ---- gen_nv_libm.c */
/* NULL: not a function of the library, or an error in s->diag. */
LLVMValueRef nv_libm(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x);

/* ---- gen_nv_cast.c */
LLVMValueRef nv_fcast(Gen *g, ScalarKind from, ScalarKind to, bool rtz, LLVMValueRef x);
/* An integer to bf16; NULL: the general code does it. */
LLVMValueRef nv_int_to_bf16(Gen *g, const Op *op, LLVMValueRef x);
/* ftosi or ftoui; NULL: the general code does it. */
LLVMValueRef nv_float_to_int(Gen *g, const Op *op, LLVMValueRef x);
/* Registers r and r + 1 of an op's operands at once; false: not this one. */
bool nv_cast_pair(Gen *g, const Op *op, Regs *const *in, int r, LLVMValueRef *out);
/* All registers, in pairs that are neighbours in the buffer which the result goes to;
   false: those are r and r + 1, or it goes to none. */
bool nv_cast_stored(Gen *g, const Op *op, const Regs *in, Regs *out);

/* ---- gen_nv_alive.c */
/* How many programs of an SM ptxas is told to leave registers for; 0: it decides. */
int nv_least_programs(Gen *g, const Func *f);

/* ---- gen_nv_half.c: NULL, false: not this one */
LLVMValueRef nv_half(Gen *g, const Op *op, LLVMValueRef *in);
bool nv_half_pair(Gen *g, const Op *op, Regs *const *in, int r, LLVMValueRef *out);

/* ---- gen_nv_mem.c, gen_nv_atomic.c */
bool nv_load(Gen *g, const Op *op);
bool nv_store(Gen *g, const Op *op);
bool nv_atomic(Gen *g, const Op *op);

/* ---- gen_nv_scratch.c */
/* Between an operation's writes to its scratch memory and its reads of it. */
void nv_barrier(Gen *g);
void nv_prefetch_maps(Gen *g);
/* gen_nv_map.c: tensor maps that the kernel writes, between the two. Assemblers of older
   drivers took strides in units of 16 bytes. */
enum { NV_MAP_DRIVER = 12050 };
void nv_maps_begin(Gen *g, const Func *f);
void nv_maps_end(Gen *g);
bool nv_tensor_map(Gen *g, const Op *op);
/* The map at that address, which other warps have written, is this thread's to use. */
void nv_acquire_map(Gen *g, LLVMValueRef map);
/* gen_nv_grid.c: which program this is, and how many there are along an axis. */
enum { NV_AXES = 3 };
LLVMValueRef nv_program(Gen *g, int axis);
LLVMValueRef nv_programs(Gen *g, int axis);
/* Programmatic dependent launch. Does every thread wait for the primary grid? */
void nv_grid(Gen *g, const Op *op);
bool nv_overlaps(const Gen *g, const Func *f);
/* So many bytes into it. */
LLVMValueRef nv_scratch_part(Gen *g, LLVMValueRef base, int64_t bytes);
/* A tile of type t as a row-major array at `base`. */
void nv_scratch_write(Gen *g, LLVMValueRef base, const Type *t, const Regs *in);
void nv_scratch_read(Gen *g, LLVMValueRef base, const Type *t, Regs *out);
/* The same for elements of t in layout l. */
void nv_tile_write(Gen *g, LLVMValueRef base, const Layout *l, const Type *t,
                   const Regs *in);
void nv_tile_read(Gen *g, LLVMValueRef base, const Layout *l, const Type *t, Regs *out);

/* ---- gen_nv_exchange.c */
bool nv_gather(Gen *g, const Op *op);
bool nv_cat(Gen *g, const Op *op);
bool nv_join_exchange(Gen *g, const Op *op);
bool nv_split_exchange(Gen *g, const Op *op);
bool nv_histogram(Gen *g, const Op *op);

/* ---- gen_nv_print.c */
bool nv_print(Gen *g, const Op *op);
bool nv_assert(Gen *g, const Op *op);

/* ---- gen_nv_scan.c */
bool nv_scan(Gen *g, const Op *op);

/* ---- gen_nv_reduce.c */
bool nv_reduce(Gen *g, const Op *op);

/* ---- gen_nv_frag.c: registers as the words of mma and wgmma */
/* The words of an operand's fragment whose first row (column for op 1) and place among
   matrices have the coordinates `first`, and whose first k is `k`, elements of `bits`:
   four for op 0, two for op 1, in the manual's order, rows then k; elements of 64 bits
   as they are. order: which k the instruction takes for its i-th, counted from the first;
   NULL: the i-th. False when the layout does not hold it. */
bool nv_fragment(Gen *g, const Layout *l, const Regs *r, int op, uint32_t first,
                 uint32_t k, int bits, const uint8_t *order, LLVMValueRef *word);
/* n registers of an accumulator as words, fp16 ones in pairs: the number of words. */
int nv_acc_pack(Gen *g, const LLVMValueRef *reg, int n, LLVMValueRef *word);
/* The reverse, from n words. */
void nv_acc_unpack(Gen *g, const LLVMValueRef *word, int n, bool half,
                   LLVMValueRef *reg);

/* ---- gen_nv_bytes.c: bytes across the rows of a buffer, by ldmatrix and prmt */
/* Reads a tile of bytes of which neighbours in a thread lie in rows of their own; false
   when the map is no such read. */
bool nv_ldmatrix_bytes(Gen *g, const SharedMap *m, LLVMValueRef base, const Type *e,
                       Regs *out);

/* The same in two steps. */
typedef struct ByteMap {
    int row[2], col; /* register bits: two of a word's rows, the pair's columns */
    int more;        /* a register bit that numbers matrices, too; -1 */
    bool crossed;    /* the last lane bit exchanges the columns */
    int words;       /* of one read */
    LLVMValueRef sel[2];
    SharedMap rows;
} ByteMap;
bool nv_bytes_open(Gen *g, const SharedMap *m, const Type *e, ByteMap *out);
/* Is r the first register of a read? */
bool nv_bytes_begins(const ByteMap *x, uint32_t r);
void nv_bytes_fetch(Gen *g, ByteMap *x, LLVMValueRef base, uint32_t r,
                    LLVMValueRef *word);
/* The bytes of the words, to the registers from r on. */
void nv_bytes_part(Gen *g, const ByteMap *x, const Type *e, uint32_t r,
                   const LLVMValueRef *word, Regs *out);

/* ---- gen_nv_left.c: left operands of wgmma that threads read */
typedef struct LeftReader {
    const Layout *plain; /* of the registers, as if the rows were in order */
    bool words;          /* elements of four bytes, not bytes */
    const Type *elem;
    Regs regs; /* of the whole operand, as far as it was read */
    SharedMap map;
    ByteMap bytes;
    bool by_bytes;
    LLVMValueRef base;
    LLVMValueRef (*raw)[4]; /* words as they came, by their first register */
} LeftReader;
/* Of a buffer, for the accumulator's warps, whose rows may lie in pairs; false after an
   error. */
bool nv_left_open(Gen *g, const Value *mem, const int warps[2], bool pairs,
                  LeftReader *out);
/* A part of it: elements k to k + n of the inner dimension, n a power of 2, of the 64
   rows from `row` on, or of all. */
typedef struct LeftPart {
    uint32_t k, n, row;
    bool all_rows;
} LeftPart;
/* It begins to be read. */
void nv_left_fetch(Gen *g, LeftReader *x, LeftPart part);
/* It is put into its registers, behind the assembly `wait`. */
void nv_left_take(Gen *g, LeftReader *x, LeftPart part, const char *wait);

/* ---- gen_nv_dot.c */
bool nv_dot(Gen *g, const Op *op);
bool nv_local_dot(Gen *g, const Op *op);

/* ---- gen_nv_wgmma.c */
bool nv_wgmma(Gen *g, const Op *op);

/* ---- gen_nv_keep.c: what the assembler must not do to loops of wgmma */
typedef struct NvLoop {
    struct NvLoop *around; /* or NULL */
    const Op *op;
    LLVMBasicBlockRef before;
    LLVMValueRef *word; /* of operands that the loop only reads */
    int n, room;
} NvLoop;

/* `before` ends with the branch to the loop. */
void nv_loop_open(Gen *g, NvLoop *l, const Op *op, LLVMBasicBlockRef before);
/* At the first place behind the loop. */
void nv_loop_close(Gen *g, const NvLoop *l);
/* Goes in front of the loops that only read v, to pack it there; where it was. */
LLVMBasicBlockRef nv_loop_pack(Gen *g, const Value *v);
/* Goes back to `here` with v's words, as wgmma reads them. */
void nv_loop_keep(Gen *g, const Value *v, LLVMBasicBlockRef here,
                  const LLVMValueRef *word, int n);
/* Must the assembler not unroll it? */
bool nv_stays_loop(const Op *loop);
/* Assembly over registers that go in and come out: `n` of d, then the inputs. */
void nv_through_asm(Gen *g, const char *text, LLVMValueRef *d, int n, LLVMValueRef *in,
                    int nin);
/* gen_nv_wgmma_wait.c: wgmma_wait and wgmma_open */
bool nv_wgmma_wait(Gen *g, const Op *op);

/* ---- gen_nv_async.c */
bool nv_async(Gen *g, const Op *op);

/* ---- gen_nv_roles.c: warps of one block that do different work */
bool nv_roles(Gen *g, const Op *op);
bool nv_pingpong(Gen *g, const Op *op);
const Op *nv_roles_of(const Func *f); /* NULL: all do the same */
int nv_launch_warps(const Func *f);   /* of a block, with those that idle */
/* Programs of a cluster that it may be launched in; 0: alone. `roles` may be NULL. */
int nv_cluster(const Op *roles);
bool nv_in_cluster(Gen *g, const Op *op);
int nv_blocks(const Op *roles);       /* on one SM, at least */

/* ---- gen_nv_bar.c: mbarriers */
bool nv_bar(Gen *g, const Op *op);
/* i1: this thread acts for the whole role (or program): always the same one. All threads
   must come by. */
LLVMValueRef nv_elected(Gen *g);
/* Number of the warp in its role, in a way that ptxas knows it to be one for the warp. */
LLVMValueRef nv_uniform_warp(Gen *g);
/* A pointer to shared memory as the i32 that assembly takes. */
LLVMValueRef nv_shared_word(Gen *g, LLVMValueRef address);

/* ---- gen_nv_tma.c */
bool nv_tma(Gen *g, const Op *op);

/* ---- gen_nv_private.c: strips of tiles in a thread's own memory */
bool nv_private(Gen *g, const Op *op);

/* ---- nv_cleanup.c */
void nv_cleanup(Gen *g);

/* ---- nv_serial.c: for code that is not optimised: a dot is waited for at once */
void nv_serial(Gen *g);

#endif

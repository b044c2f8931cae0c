/* Where the elements of a tile live. A layout is a linear map over F2: from the bits of a
   place in the machine (register, lane, warp, block; or the offset in a shared buffer) to
   the bits of the element's coordinates. Blocked, mma, wgmma, sliced and swizzled layouts
   are all such maps, built by the constructors below; questions (vector width, replicas,
   how to convert) are answered from the map and never from how it was made.

   Coordinates are flattened row-major: the last dimension has the lowest bits. So reshape
   keeps the bits and cuts them anew, and trans permutes groups of bits.

   Invariants of a distributed layout: onto (every element has an owner); no zero register
   basis. Zero or dependent lane, warp and block bases mean that those threads hold
   copies.

   Layouts are interned in the session: equal maps of equal shape are one pointer. */
#ifndef SDC_IR_LAYOUT_H
#define SDC_IR_LAYOUT_H

#include "ir/layout_f2.h"
#include "ir/session.h"
#include "ir/type.h"

typedef enum LayoutDim {
    LD_REG,
    LD_LANE,
    LD_WARP,
    LD_BLOCK,
    LD_COUNT,
    LD_OFFSET = LD_REG /* of a shared layout, in elements; it has no other */
} LayoutDim;

typedef enum LayoutKind { LK_DISTRIBUTED, LK_SHARED } LayoutKind;

enum { LAYOUT_MAX_BITS = 20, LAYOUT_MAX_WARP_BITS = 5, LAYOUT_MAX_BLOCK_BITS = 4 };

struct Layout {
    LayoutKind kind;
    int rank;
    uint8_t log_shape[MAX_RANK]; /* log2 of the tile's sizes */
    uint8_t nbasis[LD_COUNT];    /* bits of each input dimension */
    /* the image of each of these bits, in flattened coordinates */
    uint32_t basis[LD_COUNT][LAYOUT_MAX_BITS];
    uint64_t hash;
};

/* The one layout equal to *want; hash is filled in. */
const Layout *layout_intern(Session *s, const Layout *want);
/* Does *l satisfy the invariants above? The reason goes to `why` (may be NULL). */
bool layout_check(const Layout *l, Buf *why);

/* ---- constructors. shape: powers of two. All return interned layouts. */

/* size[d] consecutive elements per thread, then lanes, then warps, each filled in `order`
   (fastest first); a tile that is larger repeats in registers, one that is smaller is
   replicated. lanes multiply to 32 and warps to a power of two. */
const Layout *layout_blocked(Session *s, int rank, const int64_t *shape, const int *size,
                             const int *lanes, const int *warps, const int *order);
/* The blocked layout with `vec` elements per thread along order[0], lanes and warps
   spread fastest dimension first. */
const Layout *layout_spread(Session *s, int rank, const int64_t *shape, int vec,
                            const int *order, int num_warps);
/* Accumulator of mma.sync m16n8 (rank 2): warps[0] x warps[1] of them, row-major. */
const Layout *layout_mma(Session *s, const int64_t *shape, const int *warps);
/* The same for the last two dimensions of a tile of any rank, a batch of matrices;
   warps[d] warps along dimension d. */
const Layout *layout_mma_batch(Session *s, int rank, const int64_t *shape,
                               const int *warps);
/* An accumulator for threads that multiply and add elements of `bytes` bytes. Warps go to
   the dimensions before the last two first. A thread's elements are a block as square as
   can be, in runs of 16 bytes along the last dimension. `down`: in such runs along the
   rows, too, for a left operand that is contiguous along its rows' dimension. */
const Layout *layout_threads(Session *s, int rank, const int64_t *shape, int bytes,
                             int num_warps, bool down);
/* Operand `op` (0 left, 1 right) of a dot with accumulator `acc` and inner size k. kwidth
   0: what each thread needs for its own elements. Else: the fragments of mma m16n8, with
   kwidth consecutive elements of k in a 32-bit register. The lowest register bits are
   those of k. */
const Layout *layout_dot_operand(Session *s, const Layout *acc, int64_t k, int op,
                                 int kwidth);
/* Operand 0 (m x k) or 1 (k x n) of mma m16n8; kwidth as above. */
const Layout *layout_mma_operand(Session *s, const int64_t *shape, const int *warps,
                                 int op, int kwidth);
/* Accumulator of wgmma m64n`n`, for warps[0] x warps[1] warps, warps[0] a multiple of 4:
   warpgroups are laid along m first. */
const Layout *layout_wgmma(Session *s, const int64_t *shape, int n, const int *warps);
/* Is l such an accumulator? Then *n (as large as it can be) and warps[2] are its
   parameters, and *pairs says whether its rows are those of layout_row_pairs. */
bool layout_is_wgmma(const Layout *l, int *n, int warps[2], bool *pairs);
/* Left operand of wgmma in registers; warps and kwidth as above. */
const Layout *layout_wgmma_operand(Session *s, const int64_t *shape, const int *warps,
                                   int kwidth);
/* Layout l, an accumulator or left operand of wgmma, with row 8 h + g of every 16 rows
   (h = 0, 1) in the place of row 2 g + h: a thread's two rows are neighbours. */
const Layout *layout_row_pairs(Session *s, const Layout *l);
/* A shared buffer whose rows are contiguous along order[0], swizzled in chunks of `vec`
   elements: chunk c of row r lies at chunk c ^ (r / per_phase % max_phase). Rank 1: not
   swizzled. */
const Layout *layout_swizzled(Session *s, int rank, const int64_t *shape, int vec,
                              int per_phase, int max_phase, const int *order);
/* A shared buffer as TMA writes and wgmma reads it: a swizzle of 128, 64, 32 or 0 bytes
   on elements of `bits` bits; longer rows are split into blocks of the swizzle's
   width. */
const Layout *layout_nvmma(Session *s, int rank, const int64_t *shape, int bits,
                           int swizzle, const int *order);
/* How threads hold a tile of bytes while they copy it from a buffer with rows along the
   other dimension to one with rows along `inner`; as_acc: the second one is in the order
   of layout_acc_order. NULL: the tile has fewer than 16 elements along a dimension. */
const Layout *layout_bytes(Session *s, const int64_t *shape, int inner, int num_warps,
                           bool as_acc);
/* The layout of buffer l with its elements along `inner` permuted to the order in which
   accumulator registers, used as a left operand of 8 bits, hold them. */
const Layout *layout_acc_order(Session *s, const Layout *l, int inner);

/* ---- layouts of related tiles */
const Layout *layout_slice(Session *s, const Layout *l, int dim);  /* dim removed */
const Layout *layout_squash(Session *s, const Layout *l, int dim); /* dim's size made 1 */
/* dim, of size 1, made 2^lg: over lanes and warps that hold copies, then registers */
const Layout *layout_repeat(Session *s, const Layout *l, int dim, int lg);
const Layout *layout_trans(Session *s, const Layout *l, const int64_t *perm);
const Layout *layout_reshape(Session *s, const Layout *l, int rank, const int64_t *shape);
/* Tile joined of two tiles of layout l: a new minor dimension of size 2, in registers. */
const Layout *layout_join(Session *s, const Layout *l);
/* The reverse; NULL when the two halves of a pair are not in one thread. */
const Layout *layout_split(Session *s, const Layout *l);

/* ---- queries */
bool layout_fits(const Layout *l, const Type *t); /* same shape, kind suits the type */
int layout_regs(const Layout *l);                 /* registers per thread */
int layout_warps(const Layout *l);
int layout_shift(const Layout *l, int dim); /* lowest bit of dim in a coordinate */
uint32_t layout_at(const Layout *l, LayoutDim d, uint32_t index); /* one dim's share */
uint32_t layout_coord(const Layout *l, uint32_t reg, uint32_t lane, uint32_t warp,
                      uint32_t block);                         /* flattened coordinates */
int64_t layout_part(const Layout *l, uint32_t coord, int dim); /* coordinate along dim */
/* As one matrix; input bits REG, LANE, WARP, BLOCK from low to high. */
F2 layout_matrix(const Layout *l);

/* Bits of each input dimension that only lead to copies: a store or an atomic is done by
   the threads where (lane & copies[LD_LANE]) == 0 and so on. */
void layout_replication(const Layout *l, uint32_t copies[LD_COUNT]);
bool layout_is_replicated(const Layout *l);

/* Elements along `dim` that one thread holds in a row, aligned to their number: 2^k when
   the k lowest bits of dim are images of single registers. reg_bit[i] (when not NULL)
   gets the register bit of coordinate bit i. */
int layout_run(const Layout *l, int dim, int reg_bit[LAYOUT_MAX_BITS]);

typedef enum ConvertKind {
    CONV_NONE,  /* same map */
    CONV_REG,   /* registers renamed */
    CONV_LANE,  /* exchange inside a warp */
    CONV_SHARED /* across warps or blocks */
} ConvertKind;

typedef struct Conversion {
    ConvertKind kind;
    F2 from; /* place in dst (bits as layout_matrix) -> place in src that has the element
              */
} Conversion;

/* How a tile goes from src to dst, same shape. Prefers the thread's own copy. */
Conversion layout_conversion(const Layout *src, const Layout *dst);

/* ---- text. A spelling: blocked<size=[1,8], lanes=[4,8], warps=[4,1], order=[1,0]>,
   mma<..>, shared<..>, or in general linear<reg=[[0,1],[0,2]], lane=[..], warp=[..]> with
   the images as coordinates. Which is printed follows from the map alone. */
void layout_print(Buf *b, const Layout *l);
/* Reads one spelling (all of text[0..n)) for a tile of that shape; NULL with the reason
   in `why`. Also reads slice<dim=1, size=64, SPELLING> (the slice of a larger tile). */
const Layout *layout_read(Session *s, const char *text, size_t n, int rank,
                          const int64_t *shape, Buf *why);

#endif

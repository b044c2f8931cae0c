/* A tile from one layout to another inside of each warp, by shuffles. Which register a
   lane must send differs from lane to lane; so registers are exchanged under a condition
   on the lane before the shuffle and after it, and every shuffle moves one register of
   each lane.

   From source registers s[] to destination registers d[], in every thread:

       for each swap in `before`:  s[i] = bit ? s[i ^ move] : s[i]   all i at once
       for each j:                 t[j] = shuffle(s[pick(j)], from lane(own) ^ turn(j))
       for each swap in `after`:   t[i] = bit ? t[i ^ move] : t[i]
       d = t

   where `bit` is the parity of (thread & mask). */
#ifndef SDC_IR_PLAN_SHUFFLE_H
#define SDC_IR_PLAN_SHUFFLE_H

#include "ir/layout.h"

enum { SHUFFLE_SWAPS = 2, SHUFFLE_MAX_BEFORE = SHUFFLE_SWAPS + LAYOUT_MAX_WARP_BITS };

typedef struct ShuffleSwap {
    uint32_t mask; /* of the thread's number, lanes low */
    uint32_t move; /* register bits */
} ShuffleSwap;

typedef struct ShufflePlan {
    int nbefore, nafter;
    ShuffleSwap before[SHUFFLE_MAX_BEFORE], after[SHUFFLE_SWAPS];
    F2 pick; /* register of d -> register of s */
    F2 turn; /* register of d -> lane bits */
    F2 lane; /* lane -> lane; identity: shuffles by exclusive or, none where turn is 0 */
} ShufflePlan;

/* False when threads must exchange across warps, or more than SHUFFLE_SWAPS register bits
   change places with lane bits: then shared memory is cheaper. */
bool layout_shuffle(const Layout *src, const Layout *dst, ShufflePlan *out);

/* The same on words of two elements, if two stay side by side: word i of the source is
   its registers i with bit *from clear and set (i not counting that bit); of the
   destination likewise, bit *to. */
bool shuffle_halve(const ShufflePlan *p, ShufflePlan *half, int *from, int *to);

/* Is the plan for elements of `bits` dearer than a way through shared memory that no
   other warp takes part in, in slots of a scheduler? */
bool shuffle_is_dear(const ShufflePlan *p, int bits);

/* x without its bit `at`. */
static inline uint32_t
bit_cut(uint32_t x, int at)
{
    uint32_t low = ((uint32_t)1 << at) - 1;
    return (x & low) | (x >> 1 & ~low);
}

#endif

/* Loops of matmuls, private to make_loops.c and loop_operands.c: what a tile of results
   is made of. */
#ifndef SDC_TESTS_GEN_LOOPS_H
#define SDC_TESTS_GEN_LOOPS_H

#include "tests/gen/gen.h"

typedef struct Moving { /* a tile of pointers, or a block pointer, that a loop moves */
    Value *at;          /* NULL: there is none */
    Type s;             /* of what is read there */
    int along;          /* k runs along columns (1) or rows */
    bool block;
    const char *by; /* what the loop adds */
} Moving;

/* What ends a loop that is a `while`: its counter, the bits of a loaded number, or a sum
   that is large. 0: it is a `for`. */
enum { HEAD_UP = 1, HEAD_BITS, HEAD_LARGE };

typedef struct Head {
    const char *text;
    int way;
    const char *from; /* what its counter comes to from 0 up when that is added */
    bool by_k;        /* it goes by the depth of a step */
    bool below;       /* places are as the counter says, below 0 */
} Head;

typedef struct Plan {
    Dt dt;       /* of operands */
    int m, n, k; /* of the tile of sums, and how far one step goes */
    int trips;   /* at most, of all loops together */
    bool plain;  /* one matmul of what is loaded: producers, persistence, clusters */
    Value *iv;   /* the innermost loop's counter, or NULL */
    Value *raw;  /* k times that, and head.from less, where the loop goes by k; or NULL */
    Head head;   /* the innermost loop's */
    const char *lo, *hi; /* where the outermost loop begins and ends; NULL: anywhere */
    Value *first, *last_row; /* loaded: where rows begin, and one that is not there */
    bool back;   /* `first` is below 0, by less than q */
    Value *tile; /* which of a program's tiles, or NULL: the program's only one */
    int tiles;   /* of a program, one after another */
    int stride_n, stride_q;
    Value *acc[3], *state; /* sums; a row's largest value so far */
    int nacc, next;        /* which of them the next step adds to */
    Value *left, *right;   /* made in front of the loop, or NULL */
    const char *work;      /* memory where each step leaves the next one's, or NULL */
    int ring, ahead;       /* so many such tiles, and for which step; 0: one, the next */
    int ring_step;
    Value *carried;    /* a left operand of the next step, or NULL */
    Value *last[2];    /* operands of the iteration's last matmul, to be shared */
    Moving moving[2];  /* a left and a right operand */
    Value *row, *bent; /* the tile's rows, and they bent back into `end`; or NULL */
    const char *end;
    int most_end;
    bool bends; /* each iteration bends them anew, for the next one */
} Plan;

enum { MOST_FIRST = 31 };

/* ---- loop_heads.c: sizes and arguments, of an empty plan; how loops count. The head of
   one over i, in which `outer` is the counter of the loop around it or NULL; what ends
   each of its iterations. */
void loop_sizes(Gen *g, Plan *p);
Head loop_head(Gen *g, const Plan *p, Value *i, Value *go, const Value *outer);
void loop_next(Gen *g, const Plan *p, Value *i, Value *go);
/* What a source tells of a loop: ", flatten=True" and so on. */
const char *loop_options(Gen *g);

/* ---- loop_ways.c: ways for an operand from memory to a matmul, and back to memory */
Value *loop_woven(Gen *g, const Plan *p, Dt dt, int rows, int cols, int along);
/* Something that looks at whole rows or columns decides signs. */
Value *loop_judged(Gen *g, Value *v);
/* A mask of rows x cols. */
const char *loop_mask(Gen *g, int rows, int cols);

/* ---- loop_operands.c: operands and what is done to them before the matmul */
Type loop_tile(Dt dt, int rows, int cols);
/* A tile of rows x cols in the type of operands, k along its columns (1) or rows. */
Value *loop_operand(Gen *g, const Plan *p, int rows, int cols, int along);
/* One that is loaded, of any type, and as it is in memory. */
Value *loop_tile_of(Gen *g, const Plan *p, Dt dt, int rows, int cols, int along);
/* One that the loop will find by what it moves from step to step. */
Moving loop_moving(Gen *g, const Plan *p, int rows, int cols, int along);
/* Bends the tile's rows back into a matrix, in a branch or for a loop to go on with. */
void loop_bend(Gen *g, Plan *p);
void loop_bend_again(Gen *g, const Plan *p);
/* Which of the rows are inside, also of a few more or less. */
const char *loop_inside(Gen *g, const Plan *p);

#endif

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

typedef struct Plan {
    Dt dt;       /* of operands */
    int m, n, k; /* of the tile of sums, and how far one step goes */
    int trips;   /* at most, of all loops together */
    bool plain;  /* one matmul of what is loaded: producers, persistence, clusters */
    Value *iv;   /* the innermost loop's counter, or NULL */
    Value *raw;  /* k times that, where the loop goes by k; or NULL */
    Value *first, *last_row; /* loaded: where rows begin, and one that is not there */
    Value *tile; /* which of a program's tiles, or NULL: the program's only one */
    int tiles;   /* of a program, one after another */
    int stride_n, stride_q;
    Value *acc[3], *state; /* sums; a row's largest value so far */
    int nacc, next;        /* which of them the next step adds to */
    Value *left, *right;   /* made in front of the loop, or NULL */
    const char *work;      /* memory where each step leaves the next one's, or NULL */
    Value *carried;        /* a left operand of the next step, or NULL */
    Value *last[2];        /* operands of the iteration's last matmul, to be shared */
    Moving moving[2];      /* a left and a right operand */
    Value *row, *bent; /* the tile's rows, and they bent back into `end`; or NULL */
    const char *end;
    int most_end;
    bool bends; /* each iteration bends them anew, for the next one */
} Plan;

enum { MOST_FIRST = 31 };

/* ---- loop_operands.c: operands and what is done to them before the matmul */
Type loop_tile(Dt dt, int rows, int cols);
/* A tile of rows x cols in the type of operands, k along its columns (1) or rows. */
Value *loop_operand(Gen *g, const Plan *p, int rows, int cols, int along);
/* One that the loop will find by what it moves from step to step. */
Moving loop_moving(Gen *g, const Plan *p, int rows, int cols, int along);
/* Bends the tile's rows back into a matrix, in a branch or for a loop to go on with. */
void loop_bend(Gen *g, Plan *p);
void loop_bend_again(Gen *g, const Plan *p);
/* Which of the rows are inside, also of a few more or less. */
const char *loop_inside(Gen *g, const Plan *p);

#endif

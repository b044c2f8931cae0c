/* The record of a kernel: what its PTX does that a schedule decides, loop by loop. Text
   is read (ptx.c) into blocks and loops (flow.c), of which the instructions that matter
   (events.c) are printed as a tree (show.c); diff.c compares two records in words. */
#ifndef SDC_TESTS_RECORD_RECORD_H
#define SDC_TESTS_RECORD_RECORD_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/base/arena.h"

/* One more element at the end of an array that lives in an arena. */
#define PUSH(a, array, n)                                                                \
    ((array) = record_room((a), (array), (size_t)(n), sizeof *(array)), &(array)[(n)++])

enum { ARGS = 8 };

typedef struct Insn {
    char *label; /* of this place, not an instruction; or NULL */
    char *op;
    char *arg[ARGS]; /* the first of them, as they are written */
    int narg;
    bool guarded; /* has a predicate */
    bool local;   /* inside braces: inline assembly, whose spins are one instruction */
} Insn;

typedef struct Block {
    int from, to; /* instructions */
    int *succ;
    int nsucc;
    int npred; /* of edges that go forward */
    int order; /* in reverse postorder; -1: nothing comes here */
    int idom;
    int loop;  /* innermost, or -1 */
    bool back; /* a branch back to a loop's head starts here */
} Block;

typedef struct Loop {
    int head, parent;
    bool *has; /* of each block */
} Loop;

typedef struct Kernel {
    Arena *a; /* of everything here */
    char *name;
    int threads, min_ctas, max_regs;
    Insn *insn;
    int ninsn;
    Block *block;
    int nblock;
    int *order; /* blocks in reverse postorder */
    int norder;
    Loop *loop;
    int nloop;
    bool irreducible; /* has a loop with two entries, which is not shown as one */
    struct {
        char *name;
        long value;
        bool known;
    } * reg; /* registers that are a constant, in an open hash */
    int reg_room;
} Kernel;

/* The entries of a module; `text` is cut into pieces that the result keeps. */
Kernel *ptx_read(Arena *a, char *text, int *count);
/* The value of a number or of a register that is one constant. */
bool ptx_value(const Kernel *k, const char *operand, long *value);

/* Finds blocks, edges, dominators and loops. */
void flow_find(Kernel *k);

/* What an instruction is to the record: nothing, a line of its own, or only counted. Its
   text goes to `out`. */
typedef enum Event { EVENT_NONE, EVENT_LINE, EVENT_COUNT } Event;
Event event_of(const Kernel *k, const Insn *i, char *out, size_t size);

/* Prints the record of a kernel. */
void show_kernel(const Kernel *k, FILE *out);

/* Prints in words what differs between two files of records; 1 when anything does. */
int diff_records(Arena *a, char *before, char *after, FILE *out);

/* A file as text; NULL, and a line on stderr, when it cannot be read. */
char *record_text(Arena *a, const char *path);

/* An array of `n` elements with room for one more: itself, or a copy twice as long. */
void *record_room(Arena *a, void *array, size_t n, size_t size);

#endif

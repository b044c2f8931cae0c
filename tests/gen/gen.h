/* The random programs as trees, private to tests/gen. A tree is statements that name
   their operands, so that the reducer can drop and replace them; text is made of it last.

   Floats stay exact: every float value knows its largest magnitude and how many bits it
   has behind the point, and operations that would need more bits than the type holds
   clamp their operands first. So fused multiply-add and the order of sums change nothing,
   and results are compared bit for bit. Values of any bits ("wild") take part in single
   operations that IEEE 754 rounds one way. */
#ifndef SDC_TESTS_GEN_H
#define SDC_TESTS_GEN_H

#include <stdarg.h>
#include <stdbool.h>

#include "tests/gen/program.h"

typedef enum Dt {
    I1,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    E4,
    E5,
    F16,
    BF16,
    F32,
    F64,
    NDT
} Dt;

/* Sets of types. */
#define BIT(dt) (1u << (dt))
enum {
    SINTS = BIT(I8) | BIT(I16) | BIT(I32) | BIT(I64),
    UINTS = BIT(U8) | BIT(U16) | BIT(U32) | BIT(U64),
    INTS = SINTS | UINTS,
    WIDE = BIT(I32) | BIT(I64) | BIT(U32) | BIT(U64),
    FLOATS = BIT(F16) | BIT(BF16) | BIT(F32) | BIT(F64),
    FP8S = BIT(E4) | BIT(E5),
    NUMS = INTS | FLOATS,
    BOOLS = BIT(I1),
    ALL = NUMS | BOOLS | FP8S
};

typedef struct DtInfo {
    const char *sig, *tl; /* "fp32", "float32" */
    int bits, bytes;
    int mant; /* floats: bits of the significand, the hidden one too */
} DtInfo;

extern const DtInfo dt_info[NDT];

enum { MAX_RANK = 5, MAX_USE = 14, MAX_VALS = 4096, NBUF = 4, MAX_TRIPS = 4 };
enum { MAX_HOST = 6 }; /* descriptors that are arguments */

typedef struct Type {
    int dt, rank;
    int dim[MAX_RANK];
} Type;

enum {
    V_WILD = 1,    /* any bits, NaN and infinity too: only single operations */
    V_ZERO = 2,    /* the sign of a zero is not defined */
    V_PROD = 4,    /* a product that an addition may be fused with */
    V_SPECIAL = 8, /* not a number that operators take: a pointer, a loop's counter */
};

typedef struct Value Value;
struct Value {
    int id;
    char letter;
    Type t;
    double bound; /* floats: largest magnitude */
    int frac;     /* floats: bits behind the point */
    unsigned flags;
    Value *same; /* the reducer put another in its place */
};

typedef enum StmtKind {
    STMT_LET,  /* results = text */
    STMT_DO,   /* text: a store, a barrier */
    STMT_SET,  /* use[0] = text: a variable that a loop or branch changes */
    STMT_BLOCK /* head[i]: body[i] */
} StmtKind;

/* In texts the byte 0x80 + k stands for the name of use[k]. */
typedef struct Stmt Stmt;
struct Stmt {
    Stmt *next;
    StmtKind kind;
    const char *text;
    int nres, nuse, nbody;
    Value *res[4];
    Value *use[MAX_USE];
    const char *head[3];
    Stmt *body[3];
    bool is_if;
    /* what the reducer did */
    bool gone;
    const char *instead; /* LET: this text, which uses nothing */
    int unwrapped;       /* BLOCK: 1 + the body that stands for it */
};

typedef struct Chunk Chunk;

typedef enum BufKind { BUF_EXACT, BUF_ZERO, BUF_NEAR, BUF_ATOMIC } BufKind;

/* A descriptor that is an argument, d_0 and so on in texts: elements of `dt` in memory of
   its own, read or stored as a buffer of the kind. */
typedef struct Host {
    Dt dt;
    bool output, nan;
    BufKind kind;
    int rank, count;
    int shape[PROGRAM_RANK], strides[PROGRAM_RANK], block[PROGRAM_RANK];
} Host;

typedef struct Tree {
    Chunk *mem;
    uint64_t seed;
    Stmt *body;
    int nval;
    int n;   /* elements of the largest tile that is stored */
    int len; /* elements of an input */
    int grid[3], nprog;
    int slots[NBUF][NDT]; /* of n elements a program, by kind of buffer and type */
    int arg_n, arg_m;
    int64_t arg_q;
    double arg_s;
    const char *atomic; /* how programs change the shared counters */
    bool aligned;       /* buffers fall on 16 bytes */
    bool near;          /* something is compared within a tolerance */
    int warps, stages;
    Host host[MAX_HOST];
    int nhost;
} Tree;

typedef struct Gen {
    Tree *tree;
    uint64_t rng;
    Value *val[MAX_VALS]; /* in scope */
    int nval;
    Stmt **tail;     /* where the next statement goes */
    int depth;       /* of loops and branches */
    int quiet;       /* nonzero: nothing is stored */
    int loops;       /* nonzero: in a loop */
    unsigned banned; /* types that this program does without */
    bool old;        /* block pointers, too, which Triton 3.9 does not have any more */
    double boost[64];
} Gen;

/* ---- tree.c: memory, statements, text */
void *tree_alloc(Tree *t, size_t size);
const char *tree_text(Tree *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
Tree *tree_new(uint64_t seed);
void tree_free(Tree *t);
Value *value_seen(const Value *v); /* itself, or what stands for it */
char *tree_print(const Tree *t);   /* malloc'd */
Program *tree_program(const Tree *t);
void program_free(Program *p);
/* What the launch begins with; depends on the name and the seed alone. */
void input_fill(uint64_t seed, ProgramArg *arg, Dt dt, bool wild);
/* Adds an argument d_K, K its result; -1: there is no room for another. */
int host_new(Tree *t, Host h);
void poison_fill(ProgramArg *arg);

/* ---- make.c: a program */
int maker_number(const char *name); /* from 1; 0: none */
Tree *tree_make(uint64_t seed);
Program *gen_program(uint64_t seed);
void step(Gen *g);
bool block_of_steps(Gen *g, int n);

/* ---- make_loops.c: all of a program whose seed is from LOOP_SEEDS on */
void make_loops(Gen *g);

/* ---- pick.c: random choices, statements, types */
uint32_t rnd(Gen *g, uint32_t n); /* below n */
bool chance(Gen *g, int percent);
int between(Gen *g, int low, int high);
const char *one_of(Gen *g, const char *words); /* "a|b|c" */
Dt dt_of(Gen *g, unsigned set);
int log2_of(int x);
int numel(const Type *t);
bool same_shape(const Type *a, const Type *b);
bool fits(const Type *a, const Type *b); /* a broadcasts to b's shape */
Type scalar(Dt dt);
Type with_dt(Type t, Dt dt);
Type random_shape(Gen *g, Dt dt);
Dt joint_dt(Dt a, Dt b);

typedef struct Want {
    unsigned dts;
    const Type *same;       /* of this shape */
    const Type *into;       /* broadcasts to this shape */
    int min_rank, max_rank; /* 0: any */
    unsigned never;         /* flags that it must not have */
    bool tile;
} Want;

Value *pick(Gen *g, Want w); /* NULL: no such value */
void in_scope(Gen *g, Value *v);

/* A statement NAME = text; in `fmt` `$` takes a Value, `%d` and `%s` as usual. The value
   is in scope. */
Value *let(Gen *g, Type t, const char *fmt, ...);
Value *let2(Gen *g, Type t, Type t2, Value **second, const char *fmt, ...);
Stmt *act(Gen *g, const char *fmt, ...);
void set(Gen *g, Value *v, const char *fmt, ...);
Stmt *block_new(Gen *g, int nbody);
/* A loop over i: its head, which names i itself, or as the first use in a `while`. */
Stmt *loop_new(Gen *g, const char *head, Value *i, bool is_while);
Value *value_new(Gen *g, Type t, char letter);      /* of no statement yet */
void begin(Gen *g, Value *v, const char *fmt, ...); /* v = text */
const char *value_name(Tree *t, const Value *v);
Value *flt(Value *v, double bound, int frac, unsigned flags);
Value *like(Value *v, const Value *a);      /* bound, frac and flags of a */
const char *offsets(Gen *g, const Type *t); /* row-major indices of the shape */
const char *dims(Gen *g, const Type *t);    /* "[4, 16]" */
/* v with at most `bits` bits of precision, clamped when needed; not wild. */
Value *small(Gen *g, Value *v, int bits, int frac);
void put(Gen *g, Value *v); /* stores it to a slot of its own */
/* What follows goes into a block's body, until it is closed with what this returned. */
Stmt **block_open(Gen *g, Stmt *b, int body);
void block_close(Gen *g, Stmt **tail, int scope);
/* Results of as many types. */
void let_all(Gen *g, int n, const Type *t, Value **out, const char *fmt, ...);

/* ---- makers: each adds a value or returns NULL when it cannot */
typedef Value *Maker(Gen *g);
#define MAKER(name, weight) Value *make_##name(Gen *g);
#include "tests/gen/makers.def"

Value *load_from(Gen *g, Dt dt, Type shape);
Value *loaded(Value *v);                      /* from an input */
Value *nibbles(Gen *g, Value *w, bool rows);  /* make_pack.c */
Value *dequantized(Gen *g, Value *v, Dt dt);
Value *mask_for(Gen *g, const Type *shape); /* a mask of the shape; made when needed */

#endif

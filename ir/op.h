/* The operation table of ir/ops.def and its queries. */
#ifndef SDC_IR_OP_H
#define SDC_IR_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum OpKind {
#define OP(id, ...) OP_##id,
#include "ir/ops.def"
    OP_COUNT
} OpKind;

enum {
    T_PURE = 1,          /* no effects, result depends on operands and attributes alone */
    /* lane by lane; operands and results have one shape and layout */
    T_ELEMENTWISE = 2,
    T_COMMUTES = 4,      /* first two operands may be exchanged */
    T_TERMINATOR = 8,
    T_STRUCTURED = 16,   /* has regions; effects are those of the ops inside */
    T_SHAPE = 32,        /* moves elements, computes nothing */
    T_SPEC = 64,         /* may be executed when the program would not have */
    T_CONVERGENT = 128,  /* all threads of the program (or role) execute it together */
    T_CROSS = 256,       /* data crosses lanes */
    T_ISOLATED = 512,    /* its regions see nothing but their arguments */
    T_CPU = 1024,        /* of the form that becomes code for a CPU */
    T_GPU = 2048,        /* of the form that becomes code for a GPU */
    T_SM90 = 4096,       /* the same, for one that has mbarriers and TMA */
    T_SM90A = 8192,      /* the same, for one that has wgmma */
    T_DOT = 16384,       /* a * b + acc: operands 0, 1 and 2 */
};

/* Queues of work that goes on while the threads do (ir/async.def). */
typedef enum Queue {
    QUEUE_NONE,
#define QUEUE(id, issues, waits) QUEUE_##id,
#include "ir/async.def"
} Queue;

/* Memory effects, packed: operand (4 bits), resource (4), kind (4); two per op at
   most. */
enum { RES_NONE, RES_GLOBAL, RES_SHARED, RES_BARRIER, RES_LOCAL, RES_ANY };
enum {
    ACC_READ = 1,
    ACC_WRITE = 2,
    ACC_READ_WRITE = 3,
    ACC_ASYNC = 4,
    ACC_READ_ASYNC = 5,
    ACC_WRITE_ASYNC = 6,
    ACC_ALLOC = 8,
};
#define FX(operand, res, kind) \
    ((uint32_t)(operand) | (uint32_t)RES_##res << 4 | (uint32_t)ACC_##kind << 8)
#define FX2(a, b) ((a) | (b) << 16)
#define FX_ANY ((uint32_t)15 | (uint32_t)RES_ANY << 4 | (uint32_t)ACC_READ_WRITE << 8)
#define FX_KEEP ((uint32_t)15 | (uint32_t)RES_NONE << 4 | (uint32_t)ACC_WRITE << 8)
#define FX_ALLOC ((uint32_t)15 | (uint32_t)RES_NONE << 4 | (uint32_t)ACC_ALLOC << 8)

typedef struct Effect {
    int operand;  /* 15: no particular one */
    int resource; /* RES_* */
    int kind;     /* ACC_* */
} Effect;

typedef struct OpInfo {
    const char *name;
    int min, max;
    int nres;
    int nregion;
    uint32_t traits;
    uint32_t effects;
    const char *rule;
    const char *doc;
} OpInfo;

extern const OpInfo op_info[OP_COUNT];

OpKind op_by_name(const char *s, size_t n); /* OP_COUNT when unknown */
/* The i-th declared effect (i = 0, 1); false when there is none. Structured ops: ask
   their bodies (op_effects in ir/edit.h walks them). */
bool opkind_effect(OpKind k, int i, Effect *out);
/* Whose work the op issues, and whose it waits for; QUEUE_NONE: no queue's. */
Queue opkind_issues(OpKind k);
Queue opkind_waits(OpKind k);

#endif

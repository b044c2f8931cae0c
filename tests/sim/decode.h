/* What decode.c lends decode_mem.c and decode_warp.c: operands, and names in parts. */
#ifndef SDC_TESTS_SIM_DECODE_H
#define SDC_TESTS_SIM_DECODE_H

#include "tests/sim/machine.h"

enum { MAX_PARTS = 16, MAX_ARGS = 12, MAX_LIST = 300 };

typedef struct Op { /* a name, "ld.shared.v4.b32", in parts, and its operands */
    const char *full;
    char *part[MAX_PARTS];
    int n;
    char *arg[MAX_ARGS];
    int count;
} Op;

typedef struct Address {
    uint32_t at; /* a register's place */
    int64_t offset;
    bool wide;     /* of 64 bits */
    bool is_param; /* no register: offset is among the parameters */
} Address;

char *trim(char *s);
int split_operands(char *text, char **out, int most);
uint32_t operand(Parser *p, const char *s, int bits);
Insn *emit(Parser *p, Exec *fn, const uint32_t *r, int nd, int ns);
bool memory(Parser *p, char *s, Address *out);
bool plain_memory(Parser *p, char *s, Address *out);
int list(Parser *p, char *s, int bits, uint32_t *r, int *found);
int parts_of(char *name, char **part);
bool has(const Op *o, const char *s);
const char *last(const Op *o);
int type_bytes(const char *type);

typedef bool Decode(Parser *p, const Op *o);
Decode decode_load, decode_store, decode_atomic, decode_cp, decode_mbarrier, decode_mapa,
    decode_bar, decode_tensormap, decode_quiet, decode_policy;
Decode decode_shfl, decode_vote, decode_matrix, decode_mma, decode_wgmma;

#endif

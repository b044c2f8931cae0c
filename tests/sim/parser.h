/* What parse.c and module.c share: where in the text they are, and what is declared. */
#ifndef SDC_TESTS_SIM_PARSER_H
#define SDC_TESTS_SIM_PARSER_H

#include "tests/sim/machine.h"

enum { NAME = 1100, DEPTH = 64, INLINE_DEPTH = 8 };

typedef struct Family { /* registers of a declaration */
    char name[NAME];
    int count; /* 0: one, of this very name */
    uint32_t at;
    int bits;
} Family;

typedef struct Label {
    char name[NAME];
    uint32_t scope, pc;
} Label;

typedef struct Fixup {
    char name[NAME];
    uint32_t scope, insn;
} Fixup;

typedef struct Function {
    char name[NAME];
    char param[16][NAME], result[NAME];
    int nparam, param_bits[16];
    size_t from, to; /* its body */
} Function;

typedef struct Symbol {
    char name[NAME];
    Space space;
    uint64_t address;
} Symbol;

struct Parser {
    SimModule *m;
    char *text;
    size_t at, end, statement, length;
    char *message;
    size_t size;
    bool failed;
    Code *code;
    Family *family;
    int nfamily, family_room;
    Label *label;
    int nlabel, label_room;
    Fixup *fixup;
    int nfixup, fixup_room;
    Function *function;
    int nfunction;
    Symbol *symbol;
    int nsymbol, nglobal_symbols;
    struct {
        uint32_t id;
        int nfamily;
    } scope[DEPTH];
    int depth;
    uint32_t scopes;
    uint32_t next_reg, next_const;
    uint64_t const_value[CONST_ROOM / SLOT];
    uint8_t const_bits[CONST_ROOM / SLOT];
    uint32_t pred;
    bool negated;
    uint32_t *returns; /* instructions that leave the function that is put in place */
    int nreturns, inlined;
};

#define GROW(array, n, room)                                                             \
    do {                                                                                 \
        if ((n) == (room)) {                                                             \
            (room) = (room) ? 2 * (room) : 64;                                           \
            (array) = realloc((array), (size_t)(room) * sizeof *(array));                \
        }                                                                                \
    } while (0)

/* ---- parse.c */
void parse_space(Parser *p);
void parse_word(Parser *p, char *out);
void parse_past(Parser *p, char c);
bool parse_body(Parser *p, size_t from, size_t to);
bool parse_open(Parser *p);
bool parse_close(Parser *p);
Family *parse_declare(Parser *p, const char *name, int count, int bits);
void parse_define(Parser *p, const char *name, Space space, uint64_t address);

#endif

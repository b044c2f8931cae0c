/* The tokens and types of tile IR text; shared by ir/read.c and ir/read_token.c. */
#ifndef SDC_IR_READ_H
#define SDC_IR_READ_H

#include "ir/base/map.h"
#include "ir/ir.h"

typedef enum TokenKind {
    T_END,
    T_WORD,   /* kernel, add, f32 */
    T_VALUE,  /* %x: name without the sign */
    T_SYMBOL, /* @f */
    T_ALIAS,  /* #a */
    T_INT,
    T_FLOAT,
    T_STRING,
    T_PUNCT,  /* one character */
    T_BAD     /* reported already */
} TokenKind;

typedef struct Token {
    TokenKind kind;
    Loc loc;
    Name name; /* words, names, strings, punctuation */
    int64_t i;
    double f;
} Token;

typedef struct Reader {
    Session *s;
    const Source *src;
    const char *p; /* next character */
    int line;
    const char *line_start;
    Token t;       /* current token */
    Func *func;
    Map values;    /* Name -> Value, of the kernel being read */
    Map aliases;   /* Name -> text of a layout */
} Reader;

typedef struct ReadSetting {
    const char *name;
    bool is_text;
    const char *text;
    int64_t i, least, most;
} ReadSetting;

void read_next(Reader *r);
bool read_is(const Reader *r, const char *punct);
bool read_expect(Reader *r, const char *punct); /* eats it, or reports */
/* Reports at the current token and returns false. */
bool read_error(Reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* At '{': does a list of attributes follow, and not a region? */
bool read_brace_is_attrs(const Reader *r);
const Type *read_type(Reader *r, int depth); /* NULL after an error */
bool read_alias(Reader *r);                  /* #a = spelling, to the end of the line */

#endif

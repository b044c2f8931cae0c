/* Attributes of an operation: a short list of key and value. Keys: ir/attrs.def. */
#ifndef SDC_IR_ATTR_H
#define SDC_IR_ATTR_H

#include "ir/base/arena.h"
#include "ir/base/str.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum AttrKey {
#define ATTR(id, name, kind, doc) ATTR_##id,
#include "ir/attrs.def"
    ATTR_COUNT
} AttrKey;

typedef enum AttrKind { AK_INT, AK_INTS, AK_FLOAT, AK_STR, AK_FLAG } AttrKind;

typedef struct AttrInfo {
    const char *name;
    AttrKind kind;
    const char *doc;
} AttrInfo;

extern const AttrInfo attr_info[ATTR_COUNT];

typedef struct Attr {
    AttrKey key;
    int n;                 /* INTS: how many */
    union {
        int64_t i;
        double f;
        Name s;
        const int64_t *ints;
    } v;
} Attr;

typedef struct AttrList {
    Attr *at;
    int n, cap;
} AttrList;

const Attr *attr_find(const AttrList *l, AttrKey key); /* NULL when absent */
int64_t attr_int(const AttrList *l, AttrKey key, int64_t otherwise);
double attr_float(const AttrList *l, AttrKey key, double otherwise);
Name attr_str(const AttrList *l, AttrKey key); /* NULL when absent */
bool attr_has(const AttrList *l, AttrKey key);

void attr_set_int(Arena *a, AttrList *l, AttrKey key, int64_t v);
void attr_set_float(Arena *a, AttrList *l, AttrKey key, double v);
void attr_set_str(Arena *a, AttrList *l, AttrKey key, Name v);
void attr_set_flag(Arena *a, AttrList *l, AttrKey key);
/* copies */
void attr_set_ints(Arena *a, AttrList *l, AttrKey key, const int64_t *v, int n);
void attr_drop(AttrList *l, AttrKey key);
void attr_copy(Arena *a, AttrList *to, const AttrList *from);
bool attr_eq(const AttrList *a, const AttrList *b); /* as sets; floats by bits */
uint64_t attr_hash(const AttrList *l);              /* independent of order */

#endif

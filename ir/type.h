/* Types of tile IR: immutable, interned, compared by pointer. A tile's layout is part of
   its type (NULL before the layout passes and on the CPU). */
#ifndef SDC_IR_TYPE_H
#define SDC_IR_TYPE_H

#include "ir/base/arena.h"
#include "ir/base/map.h"
#include "ir/base/str.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Layout Layout; /* interned; see ir/layout.h */

typedef enum ScalarKind {
#define SCALAR(id, name, bits, class) SK_##id,
#include "ir/types.def"
    SK_COUNT,
    SK_NONE = SK_COUNT
} ScalarKind;

typedef enum TypeKind {
    TY_SCALAR,   /* f32, i1 */
    TY_PTR,      /* ptr<f32> */
    TY_TILE,     /* tile<128x64xf16>, tile<128xptr<f32>>, tile<..., #layout> */
    TY_BLOCK_PTR, /* block_ptr<128x64xf16> */
    TY_DESC,     /* desc<128x64xf16> */
    TY_MEM,      /* mem<f16, [64,64], #layout>: shared memory; `stages` > 0 when staged */
    TY_BAR,      /* bar: mbarrier; `stages` > 0 when an array of them */
    TY_ASYNC,    /* async<tile<...>>: value that a wait must release */
    TY_TOKEN,    /* token: an asynchronous copy */
    TY_BUF       /* buf<f32, [64,64]>: scratch memory of a program on the CPU */
} TypeKind;

enum { MAX_RANK = 32, MAX_NUMEL = 1 << 20 };

typedef struct Type Type;
struct Type {
    TypeKind kind;
    /* of a scalar, or of the innermost element; SK_NONE for ptr tiles */
    ScalarKind scalar;
    const Type *elem;     /* pointee, tile element, async payload, mem/buf/desc element */
    const Layout *layout; /* tile and mem */
    int rank;
    int stages;           /* mem and bar */
    int space;            /* ptr: 0 generic/global, 3 shared */
    int64_t shape[MAX_RANK];
    uint64_t hash;
};

typedef struct TypeTable TypeTable;

TypeTable *types_new(Arena *perm);

const Type *type_scalar(TypeTable *t, ScalarKind k);
const Type *type_ptr(TypeTable *t, const Type *pointee, int space);
/* elem: scalar or ptr. rank >= 1 (a scalar is not a tile of rank 0). */
const Type *type_tile(TypeTable *t, const Type *elem, int rank, const int64_t *shape,
                      const Layout *layout);
const Type *type_block_ptr(TypeTable *t, const Type *elem, int rank,
                           const int64_t *shape);
const Type *type_desc(TypeTable *t, const Type *elem, int rank, const int64_t *shape);
const Type *type_mem(TypeTable *t, const Type *elem, int rank, const int64_t *shape,
                     const Layout *layout, int stages);
const Type *type_buf(TypeTable *t, const Type *elem, int rank, const int64_t *shape);
const Type *type_bar(TypeTable *t, int stages);
const Type *type_async(TypeTable *t, const Type *payload);
const Type *type_token(TypeTable *t);

/* Same shape and layout as `like` (scalar when `like` is one), other element type. */
const Type *type_like(TypeTable *t, const Type *like, const Type *elem);
/* Same elements, other layout. */
const Type *type_with_layout(TypeTable *t, const Type *tile, const Layout *layout);

/* Element: of a tile its elem; a scalar or pointer is its own. */
const Type *type_elem(const Type *t);
int64_t type_numel(const Type *t); /* 1 for scalars and pointers */
int64_t type_bytes(const Type *t); /* in memory, of all elements */
bool type_is_tile(const Type *t);
bool type_is_int(const Type *t);   /* element is an integer (i1 too) */
bool type_is_float(const Type *t); /* element is a float */
bool type_is_ptr(const Type *t);   /* element is a pointer */
bool type_same_shape(const Type *a, const Type *b); /* ranks and sizes; not layouts */
int type_bits(const Type *t);      /* of the element; pointers 64 */

const char *scalar_name(ScalarKind k);
int scalar_bits(ScalarKind k);
bool scalar_is_float(ScalarKind k);
ScalarKind scalar_by_name(const char *s, size_t n); /* SK_NONE when unknown */

void type_print(Buf *b, const Type *t);
const char *type_str(Arena *a, const Type *t); /* for messages */

#endif

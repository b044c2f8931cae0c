/* The only way to make IR. A Builder has an insertion point and a current source
   place. build_op infers result types by the op's rule; a rule that cannot know them
   (splat, const, casts, reshape, free) takes them from `types`. An ill-typed op is our
   bug: user errors are found by the frontend before it builds. */
#ifndef SDC_IR_BUILD_H
#define SDC_IR_BUILD_H

#include "ir/ir.h"

typedef struct Builder {
    Session *s;
    Func *func;
    Region *region;
    Op *before; /* insert before this op; NULL: at the end of region */
    Loc loc;
    const CallSite *call; /* of the function whose body is being built; or NULL */
} Builder;

Func *func_new(Module *m, const char *name, Loc loc);
/* Adds a parameter and returns its value. div: 1 when nothing is known. */
Value *func_param(Func *f, const char *name, const char *sig, const Type *t, int64_t div);

Builder builder_at_end(Func *f, Region *r);
Builder builder_before(Op *op);
Builder builder_after(Op *op);

Region *region_new(Func *f, Op *parent); /* appended to parent->regions when not NULL */
Value *region_arg(Region *r, const Type *t, Name name);

/* General form. `types` may be NULL when the rule knows them; `attrs` may be NULL
   (copied). Regions are added afterwards with region_new. */
Op *build_op(Builder *b, OpKind k, Value *const *operands, int n, const AttrList *attrs,
             const Type *const *types, int nres);

/* As build_op, without asking the rule: for the text reader, which reports what is
   wrong as the user's error. Results have the given types, which may be NULL for now. */
Op *build_unchecked(Builder *b, OpKind k, Value *const *operands, int n,
                    const AttrList *attrs, const Type *const *types, int nres);

/* Short forms; each returns the only result. */
Value *build_int(Builder *b, const Type *t, int64_t v);  /* scalar or splat constant */
Value *build_float(Builder *b, const Type *t, double v);
Value *build_unary(Builder *b, OpKind k, Value *x);
Value *build_binary(Builder *b, OpKind k, Value *x, Value *y);
/* to `elem`, x's shape */
Value *build_cast(Builder *b, OpKind k, Value *x, const Type *elem);
Value *build_cmp(Builder *b, OpKind k, const char *pred, Value *x, Value *y);
Value *build_select(Builder *b, Value *c, Value *x, Value *y);
Value *build_splat(Builder *b, Value *scalar, const Type *tile);
/* A mask for what has the type `like`: `mask`, which may be NULL, where scalar i1 cond
   holds. */
Value *build_guard(Builder *b, Value *cond, Value *mask, const Type *like);
Value *build_broadcast(Builder *b, Value *x, const int64_t *shape); /* rank as x's */
Value *build_expand_dims(Builder *b, Value *x, int axis);
Value *build_reshape(Builder *b, Value *x, int rank, const int64_t *shape);
Value *build_trans(Builder *b, Value *x, const int64_t *perm);
Value *build_load(Builder *b, Value *ptr, Value *mask, Value *other,
                  const AttrList *attrs);
Op *build_store(Builder *b, Value *ptr, Value *v, Value *mask, const AttrList *attrs);
Op *build_yield(Builder *b, Value *const *vals, int n);

/* `for` with `n` carried values: makes the op, its region with (iv, carried..) arguments.
   The caller fills op->regions[0] and ends it with a yield. */
Op *build_for(Builder *b, Value *lo, Value *hi, Value *step, Value *const *inits, int n);
/* two empty regions */
Op *build_if(Builder *b, Value *cond, const Type *const *types, int n);

#endif

/* The only way to change IR once it is built: these functions keep lists of uses right.
   What is erased stays in the arena; pointers to it must not be used any more. */
#ifndef SDC_IR_EDIT_H
#define SDC_IR_EDIT_H

#include "ir/base/map.h"
#include "ir/ir.h"

void op_set_operand(Op *op, int i, Value *v);
void op_add_operand(Op *op, Value *v); /* as the last one */
/* Removes operand i; later ones move down. */
void op_drop_operand(Op *op, int i);
/* All users of old use `by` instead. */
void value_replace(Value *old, Value *by);
/* For passes that change layouts or make the cpu form; others keep types. */
void value_set_type(Value *v, const Type *t);
/* Erases op and its regions. Its results must have no uses. */
void op_erase(Op *op);
/* Moves op, of the same function, in front of `where`; to the end of r, behind all
   ops. */
void op_move_before(Op *op, Op *where);
void op_move_to_end(Op *op, Region *r);
/* Moves the ops of `from`, a region of op, less its terminator, in front of op; op is
   erased, its results become the terminator's values. */
void op_splice(Op *op, Region *from);
/* Gives an op without results its results: an `if` whose arms were built first. */
void op_add_results(Op *op, const Type *const *types, int n);
/* Makes a `for` loop carry one more value, which begins as init; returns its argument.
   The caller adds the next value to the yield. Pointers to results of the loop become
   invalid. */
Value *for_carry(Op *loop, Value *init);
/* Adds a result to an `if`: its arms also yield `then` and `other`. Pointers to its
   results become invalid. */
Value *if_carry(Op *op, Value *then, Value *other);
/* Removes result i, which has no uses, of a structured op; later ones move down. */
void op_drop_result(Op *op, int i);
/* Removes argument i, which has no uses; later ones move down. */
void region_drop_arg(Region *r, int i);

/* Copies an op with its regions to the builder's point. Operands are mapped by `map` (old
   Value -> new Value; others stay as they are); results are added to it. */
struct Builder;
Op *op_clone(struct Builder *b, const Op *op, Map *map);
/* Copies the ops of `from` without its terminator to the builder's point. */
void region_clone_into(struct Builder *b, const Region *from, Map *map);

/* Masks the load off, with its mask, where scalar i1 cond does not hold. */
void load_guard(Op *load, Value *cond);
/* Takes that back: mask is what the load had before, NULL for none. */
void load_unguard(Op *load, Value *mask);

/* What v is mapped to; v itself if it is not mapped. */
Value *value_mapped(const Map *map, Value *v);

bool op_has_uses(const Op *op);
/* The op that uses v, if v has exactly one use; else NULL. */
Op *value_only_user(const Value *v);
/* The op of region r that op is, or stands inside; NULL: op is not in r. */
Op *op_in_region(const Op *op, const Region *r);
/* Does `a` come before `b` in the same region? */
bool op_before(const Op *a, const Op *b);
/* Is v defined outside of region r, so that v does not keep code from being moved out of
   r? */
bool value_outside(const Value *v, const Region *r);
/* Does op stand in a loop, at any depth? */
bool op_in_loop(const Op *op);
/* Is there an op of this kind in r itself, not in nested regions? */
bool region_has(const Region *r, OpKind kind);
/* Is there an op with all these traits in r, or in a region inside of it? */
bool region_has_trait(const Region *r, uint32_t traits);
/* Is r `outer`, or inside of it? */
bool region_within(const Region *r, const Region *outer);

/* What an op may do to memory, with the bodies of structured ops. */
typedef struct OpEffects {
    uint32_t reads, writes; /* sets of 1 << RES_* */
    bool keep;       /* must not be removed or duplicated, although it accesses nothing */
    bool convergent; /* T_CONVERGENT */
} OpEffects;
OpEffects op_effects(const Op *op);
bool op_is_pure(const Op *op); /* no effect at all, bodies included */

/* Is it a load that is issued ahead of its loop (form scheduled)? */
bool op_is_planned(const Op *op);
bool op_divides(const Op *op); /* integers: a quotient or a remainder */

/* The order of memory between programs, by which locks, flags and counters work. Nothing
   moves over an atomic operation whose old value is read, whatever its {sem} says, nor
   over a volatile load: what follows may depend on what another program did before
   (op_acquires). No write moves behind an operation that releases. An atomic operation
   whose old value nobody reads tells this program nothing: it orders what may touch the
   same memory, and loads of other memory may be issued ahead of it. Of op alone: for
   structured ops ask those inside. */
bool op_acquires(const Op *op);
bool op_releases(const Op *op);

#endif

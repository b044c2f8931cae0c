/* The only way to change IR once built; keeps use lists right. */
#ifndef SDC_IR_EDIT_H
#define SDC_IR_EDIT_H

#include "ir/base/map.h"
#include "ir/ir.h"

void op_set_operand(Op *op, int i, Value *v);
void op_add_operand(Op *op, Value *v);
void op_drop_operand(Op *op, int i);
void value_replace(Value *old, Value *by); /* all uses */
void value_set_type(Value *v, const Type *t); /* layout passes and cpu forms only */
/* no result may have uses; erases its regions */
void op_erase(Op *op);
void op_move_before(Op *op, Op *where);
void op_move_to_end(Op *op, Region *r);
/* Gives an op without results its results: an `if` whose arms were built first. */
void op_add_results(Op *op, const Type *const *types, int n);
/* One more value that a `for` loop carries, from init on: its argument. The caller adds
   to the yield what comes next. Results of the loop move: no pointer to one stays. */
Value *for_carry(Op *loop, Value *init);
/* One more result of an `if`, what its arms yield last. Its other results move. */
Value *if_carry(Op *op, Value *then, Value *other);
/* Drops result i (no uses) of a structured op. */
void op_drop_result(Op *op, int i);
void region_drop_arg(Region *r, int i);

/* Copy of an op (regions too) at the builder's point; operands go through `map`
   (old Value -> new Value, unmapped ones stay), which learns the new results. */
struct Builder;
Op *op_clone(struct Builder *b, const Op *op, Map *map);
/* Copies the ops of `from` without its terminator to the builder's point. */
void region_clone_into(struct Builder *b, const Region *from, Map *map);

/* What v is mapped to; v itself where it is not. */
Value *value_mapped(const Map *map, Value *v);

bool op_has_uses(const Op *op);
/* The op that uses v, once and nobody else; NULL: there is no such op. */
Op *value_only_user(const Value *v);
/* The op of region r that op is, or stands inside; NULL: op is not in r. */
Op *op_in_region(const Op *op, const Region *r);
/* Does `a` come before `b` in the same region? */
bool op_before(const Op *a, const Op *b);
/* Is v defined outside of region r (so that code in r may be moved out as far as v
   goes)? */
bool value_outside(const Value *v, const Region *r);
/* Does op stand in a loop, at any depth? */
bool op_in_loop(const Op *op);
/* Is there such an op in r itself? */
bool region_has(const Region *r, OpKind kind);
/* Is there an op with all these traits in r, or in a region inside of it? */
bool region_has_trait(const Region *r, uint32_t traits);
bool region_within(const Region *r, const Region *outer);

/* What an op may do to memory, bodies of structured ops included: bit sets of 1 <<
   RES_*. */
typedef struct OpEffects {
    uint32_t reads, writes;
    /* must not be dropped or duplicated even though it touches nothing */
    bool keep;
    bool convergent;
} OpEffects;
OpEffects op_effects(const Op *op);
bool op_is_pure(const Op *op); /* no effect at all, bodies included */

/* Is it a load that is issued ahead of its loop (form scheduled)? */
bool op_is_planned(const Op *op);

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

/* tl.map_elementwise: the function is written for one element, but IR is built once for
   the whole tile, so that its scalars are tiles. Where elements take different ways, both
   arms are built, and each element takes the results of its own arm; only active elements
   touch memory. */
#ifndef SDC_FRONTEND_LANES_H
#define SDC_FRONTEND_LANES_H

#include "frontend/builtin.h"

struct Lanes {
    Shape shape;
    Val active; /* int1 tile: which elements take the arm being built; NULL: all */
};

/* A scalar as a tile of Lanes.shape; anything else as it is. */
Val lanes_spread(Sema *s, Val v, Loc loc);
/* Enters an arm: of the active elements, those for which cond is `holds` stay active.
   Returns the old `active`, for lanes_leave. */
Val lanes_enter(Sema *s, Val cond, bool holds, Loc loc);
void lanes_leave(Sema *s, Val active);
/* The active elements as an int1 tile, never NULL: those with which a loop begins. */
Val lanes_start(Sema *s, Loc loc);
/* Per element, x where cond holds and else y; both of one type. */
Val lanes_select(Sema *s, Val cond, Val x, Val y, Loc loc);
/* int1 scalar: does cond hold for any element? */
Val lanes_any(Sema *s, Val cond, Loc loc);
/* Restricts a call that touches memory to the active elements, by its mask; false after
   an error. */
bool lanes_guard(Sema *s, Args *a);

#endif

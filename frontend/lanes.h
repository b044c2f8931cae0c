/* tl.map_elementwise: the function is written for one element, but its code is generated
   once for the whole tile: what it calls a scalar is a tile. Where its control flow
   differs between elements, code is generated for both arms and each element takes the
   results of its own; only active elements touch memory. */
#ifndef SDC_FRONTEND_LANES_H
#define SDC_FRONTEND_LANES_H

#include "frontend/builtin.h"

struct Lanes {
    Shape shape;
    Val active; /* int1 tile of the elements that are walked; NULL: all */
};

/* A scalar as the tile that it stands for; others as they are. */
Val lanes_spread(Sema *s, Val v, Loc loc);
/* Enters an arm: the elements for which `cond` holds (or does not) are active. Returns
   what `active` was. */
Val lanes_enter(Sema *s, Val cond, bool holds, Loc loc);
void lanes_leave(Sema *s, Val active);
/* The elements that a loop begins with, as a tile. */
Val lanes_start(Sema *s, Loc loc);
/* Of each element one of two values of one type. */
Val lanes_select(Sema *s, Val cond, Val x, Val y, Loc loc);
/* Is an element there for which `cond` holds? A scalar. */
Val lanes_any(Sema *s, Val cond, Loc loc);
/* Keeps a call that touches memory to the active elements; false after an error. */
bool lanes_guard(Sema *s, Args *a);

#endif

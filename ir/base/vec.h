/* Growable typed arrays that live in an arena. Old storage is simply left behind when an
   array grows: arenas are freed whole.

       Vec(int) v = {0};
       vec_push(arena, &v, 3);
       for (int i = 0; i < v.n; i++) use(v.at[i]);
*/
#ifndef SDC_IR_BASE_VEC_H
#define SDC_IR_BASE_VEC_H

#include "ir/base/arena.h"

#include <string.h>

#define Vec(T)   \
    struct {     \
        T *at;   \
        int n;   \
        int cap; \
    }

/* Room for at least one more element. */
#define vec_reserve(a, v)                                                              \
    do {                                                                               \
        if ((v)->n == (v)->cap) {                                                      \
            int vec_cap_ = (v)->cap ? (v)->cap * 2 : 8;                                \
            void *vec_p_ = arena_calloc((a), (size_t)vec_cap_, sizeof *(v)->at,        \
                                        alignof(max_align_t));                         \
            if ((v)->n)                                                                \
                memcpy(vec_p_, (v)->at, (size_t)(v)->n * sizeof *(v)->at);             \
            (v)->at = vec_p_;                                                          \
            (v)->cap = vec_cap_;                                                       \
        }                                                                              \
    } while (0)

#define vec_push(a, v, x)              \
    do {                               \
        vec_reserve((a), (v));         \
        (v)->at[(v)->n++] = (x);       \
    } while (0)

#endif

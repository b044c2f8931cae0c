/* Random functions of tile IR, valid by construction: arithmetic of all widths on scalars
   and small tiles, comparisons, choices, shapes, loads and stores under masks, loops that
   carry values, conditions. Biased to masks that a compiler can prove, and to any use of
   what they choose. */
#ifndef TESTS_RULES_SUPPORT_MIX_H
#define TESTS_RULES_SUPPORT_MIX_H

#include "tests/rules/support/lab.h"

enum { MIX_VALUES = 160 };

typedef struct Mix {
    int statements;
    bool floats, tiles, memory, control;
    ScalarKind counter; /* type of most integers, of loops and lanes: SK_NONE for any */
} Mix;

/* A LabMake: l->user is a Mix. */
void mix_make(Lab *l);

#endif

/* Inside of the interpreter: the machine, its values, and what its files offer each
   other.

   Every SSA value has a slot of 64-bit cells, one for each element in row-major order:
   integers sign-extended (i1 as 0 or 1), floats as the bits of their format, pointers as
   addresses. A block pointer is base, shape.., strides.., offsets.., 0; a descriptor
   base, shape.., strides.., and how its loads pad and round. Cells are plain bits, so
   copies are exact whatever they copy, NaNs included. */
#ifndef SDC_TESTS_INTERP_MACHINE_H
#define SDC_TESTS_INTERP_MACHINE_H

#include <stdarg.h>

#include "tests/interp/interp.h"

typedef struct Slot {
    uint64_t *cell;
    int64_t n, cap;
    bool done; /* a constant that was computed once */
} Slot;

enum { SPARE = 4 };

typedef struct Machine {
    const Func *f;
    const InterpArg *args;
    int narg;
    int64_t grid[3], program[3];
    Slot *slots;       /* by the value's id */
    uint32_t nslot;
    int64_t lanes;     /* above 0: a combine region runs for so many pairs at once */
    Slot spare[SPARE]; /* operands spread to all lanes */
    Slot real[SPARE];  /* and as doubles */
    uint64_t steps, max_steps;
    uint64_t undefined;
    InterpStatus status;
    char *message;
    int size;
} Machine;

/* ---- machine.c */

Slot *machine_slot(Machine *m, const Value *v);
/* Room for n cells; what was in it is lost. NULL, and a status, when memory ran out. */
uint64_t *slot_room(Machine *m, Slot *s, int64_t n);
bool slot_copy(Machine *m, Slot *to, const Slot *from);
/* The value's cells; a single one is repeated for n lanes in spare slot `which`. */
const uint64_t *machine_read(Machine *m, const Value *v, int64_t n, int which);
uint64_t *machine_write(Machine *m, const Value *v, int64_t n);
int64_t machine_scalar(Machine *m, const Value *v);
/* Elements that an elementwise op works on. */
int64_t machine_lanes(const Machine *m, const Op *op);
bool machine_count(Machine *m, const Op *op, int64_t n);
/* Sets the status and writes the message with the op's place; returns false. */
bool machine_stop(Machine *m, InterpStatus s, const Op *op, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool machine_region(Machine *m, const Region *r);
bool machine_op(Machine *m, const Op *op);
/* "[3,5]" of a lane in a tile of this type. */
void lane_text(const Type *t, int64_t lane, char *out, int size);

/* ---- format.c: what floats are */

double format_decode(ScalarKind k, uint64_t bits);
/* Nearest number of the format, ties to even; toward zero with `rtz`. Overflow is
   infinity where the format has one and the conversion does not saturate. */
uint64_t format_encode(ScalarKind k, double x, bool rtz);
uint64_t format_nan(ScalarKind k);
void format_read(ScalarKind k, const uint64_t *in, double *out, int64_t n);
/* Results of arithmetic. The bits of a NaN are undefined, see docs/ir.md. */
void format_write(const Machine *m, ScalarKind k, const double *in, uint64_t *out,
                  int64_t n);

/* ---- integers */

int64_t int_wrap(ScalarKind k, uint64_t x);       /* to a cell */
uint64_t int_unsigned(ScalarKind k, uint64_t x);  /* a cell without its sign */
int64_t int_signed(ScalarKind k, uint64_t x);     /* i1 is 0 or -1 */

/* ---- one file each; false when the machine stopped */

bool run_integer(Machine *m, const Op *op);
bool run_compare(Machine *m, const Op *op);
bool run_float(Machine *m, const Op *op);
bool run_libm(Machine *m, const Op *op);
bool run_cast(Machine *m, const Op *op);
bool run_shape(Machine *m, const Op *op);
bool run_gather(Machine *m, const Op *op);
bool run_topk(Machine *m, const Op *op);
bool run_histogram(Machine *m, const Op *op);
bool run_memory(Machine *m, const Op *op);
bool run_block(Machine *m, const Op *op);
bool run_dot(Machine *m, const Op *op);
bool run_control(Machine *m, const Op *op);
bool run_combine(Machine *m, const Op *op);

/* ---- memory.c, for block.c too */

/* The address that argument i is at for the program. */
uint64_t memory_address(const Machine *m, int i);
/* The host address of `bytes` bytes for lane `lane` of a tile like t; NULL and a status
   when they are in no argument. */
void *memory_at(Machine *m, const Op *op, const Type *t, int64_t lane, uint64_t address,
                int bytes);
int memory_bytes(const Type *elem);
uint64_t memory_get(const Type *elem, const void *p);
void memory_put(const Machine *m, const Type *elem, void *p, uint64_t cell);
/* Combines what is at p with the cell; the old value. */
bool memory_rmw(Machine *m, const Op *op, const Type *elem, void *p, uint64_t cell,
                uint64_t *old);

#endif

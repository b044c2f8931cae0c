/* Elements as signed integers (keys), the largest of which comes first in the wanted
   order: what selecting and sorting share. NaN has the smallest key. */
#ifndef SDC_CODEGEN_GEN_CPU_ORDER_H
#define SDC_CODEGEN_GEN_CPU_ORDER_H

#include "codegen/gen_cpu.h"

typedef struct Order {
    bool is_float, is_unsigned, rising;
    int64_t inf; /* the largest number's bits that are no NaN */
    LLVMTypeRef key;
} Order;

/* `pred`: what the first of two elements is to the second. */
Order order_of(Gen *g, const Type *elem, const char *pred);
/* x: bits of elements, a vector. */
LLVMValueRef order_key(Gen *g, const Order *o, LLVMValueRef x);
LLVMValueRef order_element(Gen *g, const Order *o, LLVMValueRef key);
int64_t order_most(const Order *o); /* the largest key; the smallest is one below -it */

/* gen_cpu_sort.c: the first k of a row of n elements, in order. `work` has room for the
   row; it is `to` when all are wanted. */
typedef struct Sort {
    Order order;
    int64_t n, k;
    unsigned lanes; /* of a vector: not more than n */
} Sort;
void cpu_sort_row(Gen *g, const Sort *s, LLVMValueRef from, LLVMValueRef work,
                  LLVMValueRef to);

#endif

/* Keys for sorting and top-k: elements as signed integers of which the largest comes
   first. NaN has the smallest key. */
#ifndef SDC_CODEGEN_GEN_CPU_ORDER_H
#define SDC_CODEGEN_GEN_CPU_ORDER_H

#include "codegen/gen_cpu.h"

typedef struct Order {
    bool is_float, is_unsigned;
    bool rising;     /* the smallest element comes first */
    int64_t inf;     /* bits of infinity: larger ones are NaN */
    LLVMTypeRef key; /* integer type of keys */
} Order;

/* pred: the comparison that holds between an element and the one behind it. */
Order order_of(Gen *g, const Type *elem, const char *pred);
/* Keys of x, a vector of elements as bits; and back. */
LLVMValueRef order_key(Gen *g, const Order *o, LLVMValueRef x);
LLVMValueRef order_element(Gen *g, const Order *o, LLVMValueRef key);
int64_t order_most(const Order *o); /* the largest key; the smallest is one below -it */

/* gen_cpu_sort.c: writes the first k elements of a row of n, in order, to `to`. work:
   memory for the whole row; `to` itself if k is n. */
typedef struct Sort {
    Order order;
    int64_t n, k;
    unsigned lanes; /* of a vector: not more than n */
} Sort;
void cpu_sort_row(Gen *g, const Sort *s, LLVMValueRef from, LLVMValueRef work,
                  LLVMValueRef to);

#endif

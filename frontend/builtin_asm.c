/* tl.inline_asm_elementwise: an operation for each result, each with the whole text; what
   they do twice, LLVM does once. Assembly with effects is one operation. */
#include "frontend/builtin.h"
#include "frontend/module.h"

#include <string.h>

enum { MAX_OPERANDS = 8, MAX_RESULTS = 16 };

/* Registers of `pack` elements: those of less than 32 bits share one. */
static int
words_of(DType t, int64_t pack)
{
    int bits = dtype_bits(t);
    int64_t each = bits < 32 ? 32 / bits : 1;
    each = each < pack ? each : pack;
    return (int)((pack + each - 1) / each);
}

/* The operands in one shape; how many, or -1. */
static int
take_operands(Sema *s, Args *a, Val *in, Shape *sh)
{
    Val list = a->v[2];
    if (list->kind != FE_TUPLE || list->n > MAX_OPERANDS) {
        sema_error(s, a->at[2], "'args' of 'inline_asm_elementwise' is a list of at most "
                   "%d tensors, found %s", MAX_OPERANDS, val_describe(s->a, list));
        return -1;
    }
    for (int i = 0; i < list->n; i++) {
        in[i] = to_tensor(s, list->u.items[i], a->at[2]);
        if (val_is_error(in[i]))
            return -1;
        if (in[i]->kind != FE_TENSOR || in[i]->dt == DT_INT1) {
            sema_error(s, a->at[2], "inline assembly takes tensors of numbers and "
                       "pointers, found %s", val_describe(s->a, in[i]));
            return -1;
        }
    }
    for (int round = 0; round < 2; round++)
        for (int i = 1; i < list->n; i++)
            if (!broadcast_pair(s, &in[0], &in[i], a->at[2]))
                return -1;
    *sh = list->n ? val_shape(in[0]) : (Shape){0};
    return list->n;
}

Val
bi_inline_asm(Sema *s, Args *a)
{
    const char *text, *constraints;
    Val in[MAX_OPERANDS], out[MAX_RESULTS];
    Shape sh;
    bool pure;
    int64_t pack;
    if (!arg_str(s, a, 0, &text) || !arg_str(s, a, 1, &constraints) ||
        !arg_bool(s, a, 4, &pure) || !arg_int(s, a, 5, &pack))
        return val_error();
    if (module_is_for_cpu(s->m))
        return sema_error(s, a->loc,
                          "inline assembly is PTX, which needs a GPU: the target is cpu; "
                          "ask tl.target_info.is_cuda() and write the same in the "
                          "language beside it");
    if (pack < 1 || pack > 64)
        return sema_error(s, a->at[5], "'pack' is 1 to 64, found %lld", (long long)pack);
    int n = take_operands(s, a, in, &sh);
    if (n < 0)
        return val_error();
    bool tuple = a->v[3]->kind == FE_TUPLE;
    int results = tuple ? a->v[3]->n : 1, first = 0;
    if (results < 1 || results > MAX_RESULTS)
        return sema_error(s, a->at[3], "inline assembly has 1 to %d results, found %d",
                          MAX_RESULTS, results);
    const Type *types[MAX_RESULTS];
    Value *operands[MAX_OPERANDS];
    for (int i = 0; i < n; i++)
        operands[i] = in[i]->v;
    for (int i = 0; i < results; i++) {
        Val t = tuple ? a->v[3]->u.items[i] : a->v[3];
        if (t->kind != FE_DTYPE || t->dt == DT_INT1)
            return sema_error(s, a->at[3],
                              "'dtype' of 'inline_asm_elementwise' is a type of numbers, "
                              "or a tuple of them, found %s",
                              val_describe(s->a, t));
        types[i] = sema_type(s, t->dt, sh, a->loc);
        if (!types[i])
            return val_error();
    }
    for (int i = 0; i < results; i += pure ? 1 : results) {
        AttrList attrs = {0};
        attr_set_str(&s->s->mod, &attrs, ATTR_ASM, name_of(&s->s->names, text));
        attr_set_str(&s->s->mod, &attrs, ATTR_CONSTRAINTS,
                     name_of(&s->s->names, constraints));
        attr_set_int(&s->s->mod, &attrs, ATTR_PACK, pack);
        attr_set_int(&s->s->mod, &attrs, ATTR_FIRST, first);
        Op *op = build_op(&s->b, pure ? OP_ASM : OP_ASM_EFFECT, operands, n, &attrs,
                          types + i, pure ? 1 : results);
        for (int k = 0; k < op->nresult; k++) {
            DType dt = (tuple ? a->v[3]->u.items[i + k] : a->v[3])->dt;
            out[i + k] = val_tensor(s, op_result(op, k), dt);
            first += words_of(dt, pack);
        }
    }
    if (!tuple)
        return out[0];
    Val *items = arena_array(s->a, Val, results);
    memcpy(items, out, sizeof *items * (size_t)results);
    return val_tuple(s, items, results);
}

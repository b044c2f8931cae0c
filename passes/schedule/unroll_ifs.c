/* Branches in loops that wait for memory: a condition around a few loads and what is
   computed from them becomes their mask, so that pass unroll can put the loads of several
   iterations in front of the work.

       if %c { %x = load %p; .. yield %a }      %x = load %p, %c
       else { yield %b }                    =>  ..
                                                %r = select %c, %a, %b

   The arms' work is then done in any case. That is cheap beside a load that every
   iteration waits for, as long as it is little; parts of a long sum that are skipped
   because a sequence has ended are the common case. */
#include "passes/schedule/unroll.h"

#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "passes/cost.h"

enum { MOST_CODE = 64 }; /* instructions of the arms that may be done in vain */

static bool
is_load(const Op *op)
{
    return op->kind == OP_LOAD && !attr_has(&op->attrs, ATTR_VOLATILE);
}

int64_t
unroll_loaded(const Op *load)
{
    const Type *t = load->results[0].type;
    int n = type_is_tile(t) && t->layout ? layout_regs(t->layout) : 1;
    return max_i64((int64_t)n * type_bits(t) / 32, 1);
}

bool
unroll_flat_if(const Op *op, int64_t *loaded, int64_t *code)
{
    int64_t words = 0, work = 0;
    if (op->kind != OP_IF)
        return false;
    for (int i = 0; i < 2; i++)
        region_each(op->regions[i], in)
        {
            if (in == op->regions[i]->last)
                continue;
            if (in->nregion || (!is_load(in) && !op_is(in, T_SPEC)))
                return false;
            words += is_load(in) ? unroll_loaded(in) : 0;
            work += op_code(in, 0);
        }
    *loaded += words;
    *code += work;
    return words && work <= MOST_CODE;
}

static void
flatten(Op *op)
{
    Builder b = builder_before(op);
    b.loc = op->loc;
    Value *c = op_operand(op, 0);
    Value *holds[2] = {c, build_binary(&b, OP_XOR, c, build_int(&b, c->type, 1))};
    for (int i = 0; i < 2; i++) {
        Region *arm = op->regions[i];
        while (arm->first != arm->last) {
            Op *in = arm->first;
            op_move_before(in, op);
            if (in->kind == OP_LOAD)
                load_guard(in, holds[i]);
        }
    }
    for (int i = 0; i < op->nresult; i++) {
        Value *x = op_operand(op->regions[0]->last, i);
        Value *y = op_operand(op->regions[1]->last, i);
        value_replace(&op->results[i],
                      build_select(&b, build_guard(&b, c, NULL, x->type), x, y));
    }
    op_erase(op);
}

void
unroll_flatten(Op *loop)
{
    for (Op *op = loop->regions[0]->first, *next; op; op = next) {
        int64_t loaded = 0, code = 0;
        next = op->next;
        if (unroll_flat_if(op, &loaded, &code))
            flatten(op);
    }
}

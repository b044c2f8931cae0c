/* Waits for wgmma. The accumulators are inputs and outputs of the wait, so that nothing
   reads them before. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/analysis/async_dot.h"
#include "ir/base/util.h"
#include "ir/plan/wgmma_left.h"

#include <stdio.h>

/* {pending} counts wgmmas that may be in flight behind `wait`: how many commit groups
   these are. For wgmmas in front of the block it is only known that each has at least
   one. */
static int
groups_pending(const Op *wait)
{
    enum { MOST = 7 }; /* of the instruction's operand */
    int64_t left = wait_pending(wait);
    int groups = 0;
    for (const Op *op = wait->prev; op && left && !op->nregion; op = op->prev)
        if (op_is_async_dot(op)) {
            groups += wgmma_groups(op);
            left--;
        }
    return (int)min_i64(groups + left, MOST);
}

/* Keeps ptxas from moving the wait up, in front of the work that should be done while the
   wgmma runs. It does not move a wait over the end of a block. So here is a loop that
   never runs twice: its condition is a bound with which the loop around it would not run.
   (ptxas removes a loop that does nothing.) */
static void
hold(Gen *g, const Op *wait)
{
    const Op *loop = wait->parent->parent;
    LLVMValueRef hi =
        loop && loop->kind == OP_FOR ? nv_scalar(g, op_operand(loop, 1)) : NULL;
    if (!hi || LLVMTypeOf(hi) != g->i32)
        return;
    ptx_asm(g,
            "{ .reg .pred again; hold: setp.eq.s32 again, $0, -2147483648; "
            "@again nanosleep.u32 1; @again bra hold; }",
            "r", LLVMVoidTypeInContext(g->cx), &hi, 1, true);
}

static bool
gen_wait(Gen *g, const Op *op)
{
    char text[64];
    int total = 0, at = 0;
    if (attr_has(&op->attrs, ATTR_PINNED))
        hold(g, op);
    snprintf(text, sizeof text, "wgmma.wait_group.sync.aligned %d;", groups_pending(op));
    for (int i = 0; i < op->noperand; i++)
        total += nv_count(op_operand(op, i)->type);
    if (!total) {
        ptx_asm(g, text, "", LLVMVoidTypeInContext(g->cx), NULL, 0, true);
        return true;
    }
    LLVMValueRef *d = arena_array(&g->s->tmp, LLVMValueRef, total);
    for (int i = 0; i < op->noperand; i++) {
        Regs *in = nv_regs(g, op_operand(op, i));
        if (!in)
            return false;
        at += nv_acc_pack(g, in->v, in->n, d + at);
    }
    nv_through_asm(g, text, d, at, NULL, 0);
    at = 0;
    for (int i = 0; i < op->noperand; i++) {
        Regs *in = nv_regs(g, op_operand(op, i));
        Regs *out = nv_define(g, &op->results[i], in->n);
        bool half = LLVMGetTypeKind(LLVMTypeOf(in->v[0])) == LLVMHalfTypeKind;
        int n = half ? in->n / 2 : in->n;
        if (!out)
            return false;
        nv_acc_unpack(g, d + at, n, half, out->v);
        at += n;
    }
    for (int i = 0; i < op->noperand; i++)
        if (!nv_fresh_end(g, op_operand(op, i), nv_regs(g, &op->results[i])))
            return false;
    return true;
}

static bool
gen_open(Gen *g, const Op *op)
{
    Regs *in = nv_regs(g, op_operand(op, 0));
    Regs *out = in ? nv_define(g, &op->results[0], in->n) : NULL;
    for (int i = 0; out && i < in->n; i++)
        out->v[i] = in->v[i];
    return out != NULL;
}

bool
nv_wgmma_wait(Gen *g, const Op *op)
{
    return op->kind == OP_WGMMA_OPEN ? gen_open(g, op) : gen_wait(g, op);
}

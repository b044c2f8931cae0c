/* Double buffering of tiles that threads store for dots in every iteration of a loop.

    for .. {                                %b = local_alloc : mem<.., stages=2>
      %m = local_alloc %x                   for .. (%i = 0) {
      %r = wgmma %m, ..             =>        %m = local_index %b, %i {stage=0}
      ..                                      local_store %m, %x
    }                                         %r = wgmma %m, ..
                                              ..
                                              yield %i ^ 1
                                            }

   With one buffer the threads meet at two barriers: when all have written, and before
   anyone overwrites the buffer in the next iteration. With two buffers the barrier in
   between already implies that the dots of the iteration before have read theirs
   (place_waits.c, which runs after this pass). Where there is no room for two buffers,
   dots are waited for in the iteration in which they are issued. */
#include "ir/analysis/async_dot.h"
#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/plan/live.h"
#include "ir/plan/scratch.h"
#include "passes/pass.h"
#include "passes/schedule/channel.h"
#include "passes/schedule/double_buffer.h"
#include "passes/schedule/occupancy.h"

enum { BUFFERS = 2 };

bool
is_double_buffered(const Op *op)
{
    bool read_by_dot = false;
    if (op->kind != OP_LOCAL_ALLOC || !op->noperand)
        return false;
    value_each_use(&op->results[0], u)
    {
        const Op *user = u->user;
        if (user->kind == OP_LOCAL_TRANS && user->results[0].uses)
            user = user->results[0].uses->user;
        read_by_dot |= op_is_async_dot(user);
        if (user->parent != op->parent)
            return false;
    }
    return read_by_dot;
}

/* The index of the buffer that an iteration fills, 0 or 1; the loop carries it. */
static Value *
carry_which(Session *s, Op *loop)
{
    Builder b = builder_before(loop);
    b.loc = loop->loc;
    Value *which = for_carry(loop, build_int(&b, type_scalar(s->types, SK_I32), 0));
    Op *yield = loop->regions[0]->last;
    b = builder_before(yield);
    b.loc = loop->loc;
    op_add_operand(yield, build_binary(&b, OP_XOR, which, build_int(&b, which->type, 1)));
    return which;
}

static void
use_both(Op *loop, Op *alloc, Value *which)
{
    Builder b = builder_before(loop);
    b.loc = alloc->loc;
    Value *both = channel_buffer(&b, alloc->results[0].type, BUFFERS);
    b = builder_before(alloc);
    b.loc = alloc->loc;
    Value *in[2] = {channel_stage(&b, both, which, 0, NULL), op_operand(alloc, 0)};
    value_replace(&alloc->results[0], in[0]);
    build_op(&b, OP_LOCAL_STORE, in, 2, NULL, NULL, 0);
    op_erase(alloc);
}

/* The largest amount of shared memory that is live at once in `body`, with one buffer of
   each tile or, `beside`, without the tiles that would have two: these are live all the
   time. What the loop uses from outside is live in all of it. */
static int64_t
peak_bytes(Func *f, PassCx *cx, const Region *body, bool beside)
{
    LiveRange *r;
    int n = live_ranges(f, &cx->target, &cx->s->tmp, &r);
    int64_t most = 0;
    for (int i = 0; i < n; i++) {
        int64_t sum = 0;
        if (!region_within(r[i].op->parent, body))
            continue;
        for (int k = 0; k < n; k++)
            if (r[k].first <= r[i].first && r[i].first <= r[k].last &&
                !(beside && r[k].op->parent == body && is_double_buffered(r[k].op)))
                sum += r[k].bytes;
        most = max_i64(most, sum);
    }
    return most;
}

/* Is there room for a second buffer of each tile, beside what is live? Not where an SM
   would then run one program instead of two, one of which computes while the other waits;
   nor with one stage, which requests that nothing be in flight. */
static bool
has_room(Func *f, PassCx *cx, const Region *body)
{
    int64_t bytes = 0, words = mma_registers(f->body);
    region_each(body, op) if (is_double_buffered(op)) bytes +=
        shared_buffer_bytes(op->results[0].type);
    if (!bytes || cx->budget->no_double_buffers || f->num_stages < 2)
        return false;
    int64_t one = peak_bytes(f, cx, body, false);
    int64_t two = peak_bytes(f, cx, body, true) + BUFFERS * bytes;
    bool alone = occupancy(f, &cx->target, words, USUALLY_BESIDE, two) < 2 &&
                 occupancy(f, &cx->target, words, USUALLY_BESIDE, one) > 1;
    return !alone && two <= cx->target.shared_bytes;
}

static bool
visit_loop(void *user, Op *loop)
{
    PassCx *cx = user;
    if (loop->kind != OP_FOR)
        return false;
    Region *body = loop->regions[0];
    if (!has_room(body->func, cx, body))
        return false;
    Value *which = carry_which(cx->s, loop);
    region_each(body, op) if (is_double_buffered(op)) use_both(loop, op, which);
    return cx->budget->double_buffers = true;
}

bool
pass_double_buffer(Func *f, PassCx *cx)
{
    return cx->target.gpu && pass_walk(f->body, visit_loop, cx);
}

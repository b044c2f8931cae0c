/* See pipeline.h. */
#include "ir/plan/pipeline.h"

#include "ir/loop.h"

Pipeline
pipeline_of(const Op *loop)
{
    return (Pipeline){.stages = (int)attr_int(&loop->attrs, ATTR_STAGES, 0),
                      .ahead = (int)attr_int(&loop->attrs, ATTR_PREFETCH, 0),
                      .pending = (int)attr_int(&loop->attrs, ATTR_PENDING, 0)};
}

static void
set(Session *s, Op *loop, AttrKey key, int value)
{
    if (value)
        attr_set_int(&s->mod, &loop->attrs, key, value);
    else
        attr_drop(&loop->attrs, key);
}

void
pipeline_set(Session *s, Op *loop, Pipeline p)
{
    set(s, loop, ATTR_STAGES, p.stages);
    set(s, loop, ATTR_PREFETCH, p.ahead);
    set(s, loop, ATTR_PENDING, p.pending);
}

bool
loop_is_pipelined(const Op *op)
{
    return op->kind == OP_FOR && pipeline_of(op).ahead > 0;
}

bool
pipeline_is_whole(const Op *loop)
{
    int64_t trips = loop_trips(loop);
    return trips >= 0 && trips <= pipeline_of(loop).ahead;
}

void
pipeline_hand_on(Session *s, const Op *from, Op *to)
{
    Name why = attr_str(&from->attrs, ATTR_ROLES);
    pipeline_set(s, to, pipeline_of(from));
    if (why)
        attr_set_str(&s->mod, &to->attrs, ATTR_ROLES, why);
}

/* The decisions are read from the IR that the passes have made, so a kernel that comes as
   tile IR is explained as well as one from source. */
#include "passes/schedule/explain.h"

#include "ir/analysis/async_dot.h"
#include "ir/base/util.h"
#include "ir/op.h"
#include "ir/plan/pipeline.h"

#include <string.h>

typedef struct Seen {
    int copies, loads, stores, maps, dots, stages;
    int64_t ctas_per_sm;
    const char *unit; /* of dots that are not wgmma */
    const Op *roles;
    Name why; /* why there are no roles */
} Seen;

static bool
in_role(const Op *op)
{
    while (op && op->kind != OP_WARP_SPECIALIZE)
        op = op->parent->parent;
    return op;
}

/* Is op a loop whose loads are issued ahead? In roles the producer issues them. */
static bool
is_pipelined(const Op *op)
{
    return loop_is_pipelined(op) ||
           (op->kind == OP_FOR && pipeline_of(op).stages && in_role(op));
}

static void
see(Seen *s, const Func *f)
{
    region_each_deep(f->body, op)
    {
        bool stored = op->kind == OP_TMA_STORE;
        s->copies += op->kind == OP_ASYNC_COPY;
        s->loads += op->kind == OP_TMA_LOAD;
        s->stores += stored;
        s->maps += op->kind == OP_TENSOR_MAP;
        s->dots += op_is_async_dot(op);
        if (op_is(op, T_DOT) && !op_is_async_dot(op))
            s->unit = attr_str(&op->attrs, ATTR_UNIT);
        if (is_pipelined(op))
            s->stages = (int)max_i64(s->stages, pipeline_of(op).stages);
        if (op->kind == OP_NUM_PROGRAMS)
            s->ctas_per_sm =
                max_i64(s->ctas_per_sm, attr_int(&op->attrs, ATTR_CTAS_PER_SM, 0));
        if (op->kind == OP_WARP_SPECIALIZE)
            s->roles = op;
        if (attr_has(&op->attrs, ATTR_ROLES))
            s->why = attr_str(&op->attrs, ATTR_ROLES);
    }
}

static void
print_roles(Buf *out, const Func *f, const Seen *s)
{
    const Attr *warps = s->roles ? attr_find(&s->roles->attrs, ATTR_WARPS) : NULL;
    const Attr *regs = s->roles ? attr_find(&s->roles->attrs, ATTR_REGS) : NULL;
    if (!warps) {
        buf_printf(out, "  %d warps, no warp specialization%s%s\n", f->num_warps,
                   s->why ? ": " : "", s->why ? s->why : "");
        return;
    }
    for (int i = 0; i < warps->n; i++) {
        buf_printf(out, "  role %d: %lld %s", i, (long long)warps->v.ints[i],
                   warps->v.ints[i] == 1 ? "warp" : "warps");
        if (regs && i < regs->n)
            buf_printf(out, " of %lld registers a thread", (long long)regs->v.ints[i]);
        buf_str(out, i == 0 ? ", the producer\n" : "\n");
    }
}

enum { LINES = 128 };

typedef enum Told { TOLD_LOOP, TOLD_LOAD, TOLD_DOT } Told;

/* Lines of the source that something is said about, in order; each once, because
   prologues and roles repeat ops. */
typedef struct Lines {
    struct Line {
        int line;
        Told what;
        const Op *op;
    } at[LINES];
    int n;
} Lines;

static void
tell(Lines *l, Told what, const Op *op)
{
    int i = l->n, line = op->loc.line;
    for (int k = 0; k < l->n; k++)
        if (l->at[k].line == line && l->at[k].what == what)
            return;
    if (l->n == LINES || !line)
        return;
    for (; i > 0 && (l->at[i - 1].line > line ||
                     (l->at[i - 1].line == line && l->at[i - 1].what > what));
         i--)
        l->at[i] = l->at[i - 1];
    l->at[i] = (struct Line){line, what, op};
    l->n++;
}

/* Finds pipelined loops, loads of loops, and dots. */
static void
find_lines(Lines *l, const Func *f)
{
    region_each_deep(f->body, op)
    {
        if (is_pipelined(op) || attr_has(&op->attrs, ATTR_ROLES))
            tell(l, TOLD_LOOP, op);
        if (op_is(op, T_DOT))
            tell(l, TOLD_DOT, op);
        else if (op->kind == OP_TMA_LOAD || attr_has(&op->attrs, ATTR_WHY) ||
                 (op->kind == OP_LOAD && attr_has(&op->attrs, ATTR_PREFETCH)))
            tell(l, TOLD_LOAD, op);
    }
}

static const char *
dot_unit(const Op *op)
{
    Name unit = attr_str(&op->attrs, ATTR_UNIT);
    bool threads = unit && strncmp(unit, "fma", 3) == 0;
    return op_is_async_dot(op) ? "wgmma" : threads ? "threads" : "mma";
}

static const char *
load_unit(const Op *op)
{
    return attr_has(&op->attrs, ATTR_MULTICAST) ? "TMA, multicast in clusters"
           : op->kind == OP_TMA_LOAD            ? "TMA"
           : op->kind == OP_ASYNC_COPY          ? "cp.async"
           : attr_has(&op->attrs, ATTR_PREFETCH) ? "threads, an iteration ahead"
                                                 : "threads, synchronously";
}

void
schedule_print(Buf *out, const Func *f)
{
    Seen s = {0};
    see(&s, f);
    buf_printf(out, "schedule of '%s'\n", f->name);
    print_roles(out, f, &s);
    if (s.ctas_per_sm)
        buf_printf(out, "  persistent, %lld program%s on an SM at a time\n",
                   (long long)s.ctas_per_sm, s.ctas_per_sm > 1 ? "s" : "");
    if (s.dots)
        buf_str(out, "  dots by wgmma\n");
    if (s.unit)
        buf_printf(out, "  dots by %s\n", s.unit);
    if (s.stages)
        buf_printf(out, "  loads are pipelined in %d stages, by %s\n", s.stages,
                   s.loads && s.copies ? "TMA and cp.async"
                   : s.loads           ? "TMA"
                                       : "cp.async");
    if (s.roles && attr_has(&s.roles->attrs, ATTR_CLUSTER))
        buf_str(out, "  tiles that neighbouring programs share are loaded once for both, "
                     "in clusters of 2, where rows do not begin on cache lines\n");
    if (s.stores)
        buf_str(out, "  results are stored by TMA\n");
    if (s.maps)
        buf_printf(out, "  %d tensor map%s written by the kernel\n", s.maps,
                   s.maps > 1 ? "s" : "");
    buf_printf(out, "  %lld bytes of shared memory\n", (long long)f->shared_bytes);
}

static void
print_loop(Buf *out, const Op *loop)
{
    Pipeline p = pipeline_of(loop);
    Name why = attr_str(&loop->attrs, ATTR_ROLES);
    buf_str(out, "loop");
    if (p.stages)
        buf_printf(out, " of %d stage%s", p.stages, p.stages > 1 ? "s" : "");
    if (p.ahead)
        buf_printf(out, ", %d iteration%s ahead", p.ahead, p.ahead > 1 ? "s" : "");
    if (p.pending)
        buf_printf(out, ", %d dot%s in flight over its end", p.pending,
                   p.pending > 1 ? "s" : "");
    if (why)
        buf_printf(out, ", without roles: %s", why);
}

static void
print_unit(Buf *out, bool dot, const Op *op)
{
    Name why = attr_str(&op->attrs, ATTR_WHY);
    buf_printf(out, "%s by %s%s", dot ? "dot" : "load",
               dot ? dot_unit(op) : load_unit(op),
               attr_has(&op->attrs, ATTR_DELAYED) ? ", an iteration later" : "");
    if (why)
        buf_printf(out, ": %s", why);
}

/* Prints what does each, and why it is not what is fastest. */
void
schedule_print_lines(Buf *out, const Func *f)
{
    Lines l = {0};
    find_lines(&l, f);
    for (int i = 0; i < l.n; i++) {
        const Op *op = l.at[i].op;
        buf_printf(out, "  line %d: a ", l.at[i].line);
        if (l.at[i].what == TOLD_LOOP)
            print_loop(out, op);
        else
            print_unit(out, l.at[i].what == TOLD_DOT, op);
        buf_str(out, "\n");
    }
}

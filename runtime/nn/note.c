/* Plans in words, for sdc_nn_explain. */
#include "runtime/nn/plan.h"

#include <stdio.h>

typedef struct Text {
    char *to;
    size_t size, n;
} Text;

static void __attribute__((format(printf, 2, 3)))
say(Text *t, const char *fmt, ...)
{
    __builtin_va_list ap;
    size_t left = t->n < t->size ? t->size - t->n : 0;
    __builtin_va_start(ap, fmt);
    int n = vsnprintf(left ? t->to + t->n : NULL, left, fmt, ap);
    __builtin_va_end(ap);
    t->n += n > 0 ? (size_t)n : 0;
}

static void
say_tile(Text *t, const GemmTile *x, int split, bool packs, bool swapped)
{
    say(t, "tiles %dx%dx%d, %d warps, %d stages", x->m, x->n, x->k, x->warps, x->stages);
    if (split > 1)
        say(t, ", k in %d parts", split);
    if (swapped)
        say(t, ", transposed: rows are columns of c");
    if (packs)
        say(t, ", packed first");
}

static void
say_operand(Text *t, const char *what, int rows, bool packed, bool across)
{
    if (packed && across) {
        say(t, ", %s transposed first: it does not lie along k", what);
        return;
    }
    if (packed)
        say(t, ", %s packed first: ", what);
    else if (rows < GEMM_MAP_ROWS)
        say(t, ", %s loaded by threads: ", what);
    else
        return;
    if (rows)
        say(t, "its rows begin on %d bytes", rows);
    else
        say(t, "it has no unit stride");
}

static void
say_gemm(Text *t, const Note *n)
{
    const GemmAsk *q = &n->of.gemm.ask;
    const GemmPlan *p = &n->of.gemm.plan;
    const GemmCost *c = &p->cost;
    int transposed = gemm_transposed(q);
    say(t, "%s ", n->function);
    if (q->batch > 1)
        say(t, "%lld of ", (long long)q->batch);
    say(t, "%lldx%lldx%lld: ", (long long)q->m, (long long)q->n, (long long)q->k);
    say_tile(t, p->tile, p->split, false, p->swapped);
    if (p->first)
        say(t, ", behind the first %lld tiles", (long long)p->first);
    say_operand(t, "a", q->a_rows, p->pack_a, transposed & 1);
    say_operand(t, "b", q->b_rows, p->pack_b, transposed & 2);
    if (!n->gpu) {
        say(t, "\n");
        return;
    }
    say(t,
        "\n  guessed %.1f us: matmuls %.1f, memory %.1f, cache %.1f; launches, copies "
        "and sums %.1f\n",
        c->all, c->products, c->memory, c->cache, c->beside);
    if (p->next) {
        say(t, "  next best, %.1f us: ", p->next_us);
        say_tile(t, p->next, p->next_split, p->next_packs, p->next_swapped);
        say(t, "\n");
    }
}

static void
say_rows(Text *t, const Note *n)
{
    const RowsAsk *q = &n->of.rows.ask;
    const RowsPlan *p = &n->of.rows.plan;
    say(t, "%s %lldx%lld: ", n->function, (long long)q->rows, (long long)q->cols);
    if (p->parts)
        say(t, "rows in %lld parts of %lld columns, ", (long long)p->parts,
            (long long)p->columns);
    if (p->together > 1)
        say(t, "%lld rows a program, ", (long long)p->together);
    say(t, "tiles of %lld, %d warps: %s\n", (long long)p->block, p->warps, p->why);
}

static void
say_attention_tile(Text *t, const AttentionTile *x)
{
    say(t, "tiles %dx%d, %d warps, %d stages", x->m, x->n, x->warps, x->stages);
}

static void
say_attention_ask(Text *t, const Note *n, const AttentionAsk *q)
{
    say(t, "%s %lldx%lldx%lld, %lld keys", n->function, (long long)q->sequences,
        (long long)q->heads, (long long)q->m, (long long)q->n);
    if (q->heads != q->key_heads)
        say(t, " of %lld heads", (long long)q->key_heads);
    say(t, ", %d columns", q->dim);
    if (q->value_dim != q->dim)
        say(t, " and %d of values", q->value_dim);
    say(t, "%s: ", q->causal ? ", causal" : "");
}

static void
say_way(Text *t, const AttentionTile *x, bool split, bool turns, int parts)
{
    say_attention_tile(t, x);
    if (turns)
        say(t, ", persistent");
    if (split)
        say(t, ", rows of all heads of a group");
    if (parts > 1)
        say(t, ", keys in %d parts", parts);
}

static void
say_attention(Text *t, const Note *n)
{
    const AttentionPlan *p = &n->of.attention.plan;
    const AttentionCost *c = &p->cost;
    say_attention_ask(t, n, &n->of.attention.ask);
    say_way(t, &p->tile, p->split, p->turns, p->parts);
    say(t, "\n");
    if (!n->gpu)
        return;
    say(t,
        "  guessed %.1f us: matmuls %.1f, memory %.1f, cache %.1f; launches and sums "
        "%.1f\n",
        c->all, c->products, c->memory, c->cache, c->beside);
    if (p->next.m) {
        say(t, "  next best, %.1f us: ", p->next_us);
        say_way(t, &p->next, p->next_split, p->next_turns, p->next_parts);
        say(t, "\n");
    }
}

static void
say_grad(Text *t, const Note *n)
{
    const GradPlan *p = &n->of.grad.plan;
    say_attention_ask(t, n, &n->of.grad.ask);
    say_attention_tile(t, &p->keys);
    if (p->shares > 1)
        say(t, ", %d programs to a head of keys", p->shares);
    if (p->own_dq) {
        say(t, "; of dq ");
        say_attention_tile(t, &p->queries);
    }
    say(t, ": %s\n", p->why);
}

static void
say_sparse_matmul(Text *t, const char *what, const SparseMatmul *x, bool listed)
{
    if (!x->tile.m)
        return;
    const char *how = x->dense ? "by a plain matmul, " : "of all blocks, ";
    say(t, "%s %s", what, x->dense || x->whole ? how : "");
    say_tile(t, &x->tile, x->dense ? x->gemm.split : x->parts, false,
             x->gemm.swapped);
    if (x->pairs)
        say(t, ", two blocks at a time");
    if (x->sorted && !listed)
        say(t, ", most work first");
    say(t, "; ");
}

static void
say_sparse_way(Text *t, const SparseWay *w)
{
    bool listed = w->order == SPARSE_LISTED || w->order == SPARSE_LISTED_JOINT;
    bool joint = w->order == SPARSE_JOINT || w->order == SPARSE_LISTED_JOINT;
    say_sparse_matmul(t, "y", &w->y, listed);
    say_sparse_matmul(t, "dx", &w->dx, listed);
    say_sparse_matmul(t, "dw", &w->dw, listed);
    const struct {
        const char *what;
        bool packed;
    } operands[] = {{"x", w->pack_x}, {"w", w->pack_w}, {"dy", w->pack_dy}};
    for (int i = 0; i < 3; i++)
        if (operands[i].packed)
            say(t, "%s packed first; ", operands[i].what);
    say(t, "%s%s%s\n", listed ? "persistent, from a list of live blocks" : "a tile each",
        joint ? ", both in one launch" : "", joint && w->dw_first ? ", dw first" : "");
}

static void
say_sparse(Text *t, const Note *n)
{
    const SparseAsk *q = &n->of.sparse.ask;
    const SparsePlan *p = &n->of.sparse.plan;
    say(t, "%s %lldx%lldx%lld, blocks %dx%d, p %g: ", n->function, (long long)q->m,
        (long long)q->n, (long long)q->k, q->mask_m, q->mask_k, (double)q->p);
    say_sparse_way(t, &p->way);
    if (!n->gpu)
        return;
    say(t, "  guessed %.1f us: matmuls %.1f; launches, lists and sums %.1f\n", p->all,
        p->products, p->beside);
    if (p->next_us > 0) {
        say(t, "  next best, %.1f us: ", p->next_us);
        say_sparse_way(t, &p->next);
    }
}

size_t
note_print(const Note *n, char *to, size_t size)
{
    Text t = {to, size, 0};
    if (size)
        *to = '\0';
    if (n->kind == NOTE_GEMM)
        say_gemm(&t, n);
    else if (n->kind == NOTE_ROWS)
        say_rows(&t, n);
    else if (n->kind == NOTE_ATTENTION)
        say_attention(&t, n);
    else if (n->kind == NOTE_GRAD)
        say_grad(&t, n);
    else if (n->kind == NOTE_SPARSE)
        say_sparse(&t, n);
    return t.n;
}

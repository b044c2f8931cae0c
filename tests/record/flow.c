/* Blocks, their order, dominators, and the loops that branches back to a dominator make:
   the order of blocks in the text is LLVM's choice and says little. */
#include "tests/record/record.h"

#include <string.h>

static bool
is_jump(const Insn *i)
{
    return !i->label && !i->local && strncmp(i->op, "bra", 3) == 0;
}

static bool
is_table(const Insn *i)
{
    return !i->label && strncmp(i->op, "brx", 3) == 0;
}

static bool
leaves(const Insn *i)
{
    return !i->label && !i->local &&
           (strcmp(i->op, "ret") == 0 || strcmp(i->op, "exit") == 0 ||
            strcmp(i->op, "trap") == 0);
}

static void
find_blocks(Kernel *k)
{
    bool fresh = true;
    for (int j = 0; j < k->ninsn; j++) {
        const Insn *i = &k->insn[j];
        if (fresh || i->label)
            *PUSH(k->a, k->block, k->nblock) =
                (Block){.from = j, .order = -1, .idom = -1, .loop = -1};
        k->block[k->nblock - 1].to = j + 1;
        fresh = is_jump(i) || is_table(i) || leaves(i);
    }
}

static int
block_at(const Kernel *k, const char *label)
{
    for (int b = 0; b < k->nblock; b++) {
        const char *s = k->insn[k->block[b].from].label;
        if (s && strcmp(s, label) == 0)
            return b;
    }
    return -1;
}

static void
edge(Kernel *k, Block *b, int to)
{
    for (int j = 0; j < b->nsucc; j++)
        if (b->succ[j] == to)
            return;
    if (to >= 0)
        *PUSH(k->a, b->succ, b->nsucc) = to;
}

static void
find_edges(Kernel *k)
{
    for (int n = 0; n < k->nblock; n++) {
        Block *b = &k->block[n];
        const Insn *last = &k->insn[b->to - 1];
        int table = is_table(last) ? block_at(k, last->arg[last->narg - 1]) : -1;
        if (is_jump(last))
            edge(k, b, block_at(k, last->arg[0]));
        for (int j = table < 0 ? 0 : k->block[table].from + 1;
             table >= 0 && j < k->block[table].to; j++)
            for (int a = 0; a < k->insn[j].narg; a++)
                edge(k, b, block_at(k, k->insn[j].arg[a]));
        bool falls =
            !is_table(last) && ((!is_jump(last) && !leaves(last)) || last->guarded);
        if (falls && n + 1 < k->nblock)
            edge(k, b, n + 1);
    }
}

static void
visit(Kernel *k, int n, bool *seen)
{
    seen[n] = true;
    /* The last edge first, so that what is jumped to stands before what is fallen into.
     */
    for (int j = k->block[n].nsucc - 1; j >= 0; j--)
        if (!seen[k->block[n].succ[j]])
            visit(k, k->block[n].succ[j], seen);
    *PUSH(k->a, k->order, k->norder) = n;
}

static void
find_order(Kernel *k)
{
    visit(k, 0, arena_array(k->a, bool, k->nblock));
    for (int a = 0, b = k->norder - 1; a < b; a++, b--) {
        int n = k->order[a];
        k->order[a] = k->order[b];
        k->order[b] = n;
    }
    for (int j = 0; j < k->norder; j++)
        k->block[k->order[j]].order = j;
}

static int
meet(const Kernel *k, int a, int b)
{
    while (a != b)
        if (k->block[a].order > k->block[b].order)
            a = k->block[a].idom;
        else
            b = k->block[b].idom;
    return a;
}

static bool
dominates(const Kernel *k, int a, int b)
{
    while (k->block[b].order > k->block[a].order)
        b = k->block[b].idom;
    return a == b;
}

static void
find_dominators(Kernel *k)
{
    k->block[0].idom = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (int j = 1; j < k->norder; j++) {
            int idom = -1;
            for (int p = 0; p < k->norder; p++) {
                const Block *from = &k->block[k->order[p]];
                for (int s = 0; s < from->nsucc && from->idom >= 0; s++)
                    if (from->succ[s] == k->order[j])
                        idom = idom < 0 ? k->order[p] : meet(k, idom, k->order[p]);
            }
            changed |= k->block[k->order[j]].idom != idom;
            k->block[k->order[j]].idom = idom;
        }
    }
}

/* Everything from which the branch back can be reached without the head. */
static void
gather(const Kernel *k, Loop *l, int n)
{
    if (l->has[n])
        return;
    l->has[n] = true;
    for (int p = 0; p < k->norder; p++) {
        const Block *from = &k->block[k->order[p]];
        for (int s = 0; s < from->nsucc; s++)
            if (from->succ[s] == n)
                gather(k, l, k->order[p]);
    }
}

static Loop *
loop_of(Kernel *k, int head)
{
    for (int j = 0; j < k->nloop; j++)
        if (k->loop[j].head == head)
            return &k->loop[j];
    Loop *l = PUSH(k->a, k->loop, k->nloop);
    *l = (Loop){.head = head, .parent = -1, .has = arena_array(k->a, bool, k->nblock)};
    l->has[head] = true;
    return l;
}

static void
find_loops(Kernel *k)
{
    for (int j = 0; j < k->norder; j++) {
        int n = k->order[j];
        for (int s = 0; s < k->block[n].nsucc; s++) {
            int to = k->block[n].succ[s];
            if (k->block[to].order > j) {
                k->block[to].npred++;
            } else if (dominates(k, to, n)) {
                k->block[n].back = true;
                gather(k, loop_of(k, to), n);
            } else {
                k->irreducible = true;
                k->block[to].npred += 2;
            }
        }
    }
    for (int n = 0; n < k->nblock; n++) {
        int least = k->nblock + 1;
        for (int l = 0; l < k->nloop; l++) {
            int size = 0;
            for (int m = 0; m < k->nblock; m++)
                size += k->loop[l].has[m];
            if (k->loop[l].has[n] && size < least) {
                least = size;
                k->block[n].loop = l;
            }
        }
    }
    for (int l = 0; l < k->nloop; l++) {
        int least = k->nblock + 1;
        for (int m = 0; m < k->nloop; m++) {
            int size = 0;
            for (int n = 0; n < k->nblock; n++)
                size += k->loop[m].has[n];
            if (m != l && k->loop[m].has[k->loop[l].head] && size < least) {
                least = size;
                k->loop[l].parent = m;
            }
        }
    }
}

void
flow_find(Kernel *k)
{
    find_blocks(k);
    if (!k->nblock)
        return;
    find_edges(k);
    find_order(k);
    find_dominators(k);
    find_loops(k);
}

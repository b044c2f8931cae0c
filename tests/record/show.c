/* The record of a kernel as text: the events of its blocks in a tree of loops and
   branches, which the tree of dominators gives: a block that one branch alone leads to
   stands inside that branch, one where branches meet behind it, and what a loop leaves to
   behind the loop. Equal lines in a row are folded, and so are equal sequences. */
#include "tests/record/record.h"

#include <string.h>

typedef struct Node Node;
struct Node {
    char *text; /* a line; with `inside` the line above what is indented */
    bool inside;
    Node **kid;
    int nkid;
    struct {
        char *name;
        int n;
    } * tally;
    int ntally;
};

typedef struct Show {
    const Kernel *k;
    int **later; /* of each loop: blocks that it leaves to */
    int *nlater;
} Show;

static Node *
node(Arena *a, const char *text)
{
    Node *n = arena_new(a, Node);
    n->text = arena_printf(a, "%s", text);
    return n;
}

static Node *
under(Arena *a, Node *parent, const char *text, bool inside)
{
    Node *n = node(a, text);
    n->inside = inside;
    *PUSH(a, parent->kid, parent->nkid) = n;
    return n;
}

static void
count(Arena *a, Node *n, const char *name)
{
    for (int j = 0; j < n->ntally; j++)
        if (strcmp(n->tally[j].name, name) == 0) {
            n->tally[j].n++;
            return;
        }
    PUSH(a, n->tally, n->ntally)->name = node(a, name)->text;
    n->tally[n->ntally - 1].n = 1;
}

static void
events(const Show *s, const Block *b, Node *into)
{
    const Kernel *k = s->k;
    char text[200];
    for (int j = b->from; j < b->to; j++) {
        Event e = event_of(k, &k->insn[j], text, sizeof text);
        if (e == EVENT_LINE)
            under(k->a, into, text, false);
        else if (e == EVENT_COUNT)
            count(k->a, into, text);
    }
}

static void show_block(const Show *s, int n, Node *into);

/* The loop that a block stands behind when its dominator is in `l`: the outermost one
   that has the one and not the other. */
static int
leaves(const Kernel *k, int l, int n)
{
    int out = -1;
    for (; l >= 0 && !k->loop[l].has[n]; l = k->loop[l].parent)
        out = l;
    return out;
}

/* Roles are branches that move registers. */
static void
name_branch(Arena *a, Node *n)
{
    for (int j = 0; j < n->nkid; j++) {
        const char *t = n->kid[j]->text;
        if (strncmp(t, "setmaxnreg", 10) == 0)
            n->text =
                node(a, strstr(t, ".dec") ? "role producer" : "role consumer")->text;
    }
}

/* The blocks that `n` dominates at once: branches, then where they meet. */
static void
show_below(const Show *s, int n, Node *into)
{
    const Kernel *k = s->k;
    const Block *b = &k->block[n];
    int stay = 0, arms = 0;
    for (int j = 0; j < b->nsucc; j++)
        stay += leaves(k, b->loop, b->succ[j]) < 0;
    for (int pass = 0; pass < 2; pass++)
        for (int j = b->order + 1; j < k->norder; j++) {
            int c = k->order[j];
            if (k->block[c].idom != n)
                continue;
            bool meets = k->block[c].npred > 1;
            int l = leaves(k, b->loop, c);
            if (l >= 0 && pass == 0) {
                *PUSH(k->a, s->later[l], s->nlater[l]) = c;
            } else if (l < 0 && !meets && pass == 0 && stay > 1 && !b->back) {
                Node *arm = under(k->a, into, arms ? "else" : "if", true);
                show_block(s, c, arm);
                name_branch(k->a, arm);
                if (!arm->nkid && !arm->ntally)
                    into->nkid--;
                else
                    arms++;
            } else if (l < 0 && (meets || stay < 2 || b->back) && pass == 1) {
                show_block(s, c, into);
            }
        }
}

static void
show_block(const Show *s, int n, Node *into)
{
    const Kernel *k = s->k;
    int l = k->block[n].loop;
    if (l < 0 || k->loop[l].head != n) {
        events(s, &k->block[n], into);
        show_below(s, n, into);
        return;
    }
    Node *loop = under(k->a, into, "loop", true);
    events(s, &k->block[n], loop);
    show_below(s, n, loop);
    for (int j = 0; j < s->nlater[l]; j++)
        show_block(s, s->later[l][j], into);
}

/* ---------------------------------------------------------------- printing */

static bool
same(const Node *a, const Node *b)
{
    return !a->inside && !b->inside && strcmp(a->text, b->text) == 0;
}

/* Lines in a row that are equal become one. */
static void
fold_lines(Arena *a, Node *n)
{
    int out = 0;
    for (int j = 0, run; j < n->nkid; j += run) {
        for (run = 1; j + run < n->nkid && same(n->kid[j], n->kid[j + run]); run++)
            continue;
        Node *m = n->kid[out++] = n->kid[j];
        if (run > 1)
            m->text = arena_printf(a, "%s x%d", m->text, run);
    }
    n->nkid = out;
}

static int
repeats(const Node *n, int from, int period)
{
    int j = from;
    while (j + period < n->nkid && same(n->kid[j], n->kid[j + period]))
        j++;
    for (int k = from; k < from + period && k < n->nkid; k++)
        if (n->kid[k]->inside)
            return 1;
    return (j - from) / period + 1;
}

/* Sequences of up to 8 lines that come again stand once. */
static void
fold_sequences(Arena *a, Node *n)
{
    int out = 0;
    for (int j = 0; j < n->nkid;) {
        int best = 0, saved = 0;
        for (int period = 2; period <= 8; period++) {
            int r = repeats(n, j, period);
            if ((r - 1) * period > saved) {
                saved = (r - 1) * period;
                best = period;
            }
        }
        if (!best) {
            n->kid[out++] = n->kid[j++];
            continue;
        }
        int times = repeats(n, j, best);
        Node *group = node(a, arena_printf(a, "%d times", times));
        group->inside = true;
        for (int k = 0; k < best; k++)
            *PUSH(a, group->kid, group->nkid) = n->kid[j + k];
        j += times * best;
        n->kid[out++] = group;
    }
    n->nkid = out;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Numbers of loops, within the loop or the role around them, and of roles. */
typedef struct Count {
    Arena *a;
    const char *path;
    int loops, *roles;
} Count;

static void
print(Node *n, Count *in, int depth, FILE *out)
{
    fold_lines(in->a, n);
    fold_sequences(in->a, n);
    for (int j = 0; j < n->nkid; j++) {
        Node *c = n->kid[j];
        char path[64] = "";
        Count inner = {in->a, path, 0, in->roles}, *next = &inner;
        fprintf(out, "%*s%s", 2 * depth, "", c->text);
        if (strcmp(c->text, "loop") == 0) {
            snprintf(path, sizeof path, "%.40s%s%d", in->path, *in->path ? "." : "",
                     ++in->loops);
            fprintf(out, " %s", path);
        } else if (strncmp(c->text, "role", 4) == 0) {
            int number = ++in->roles[c->text[5] == 'p'];
            if (number > 1)
                fprintf(out, " %d", number);
        } else {
            next = in;
        }
        fprintf(out, "\n");
        if (c->inside)
            print(c, next, depth + 1, out);
    }
    if (n->ntally)
        qsort(n->tally, (size_t)n->ntally, sizeof *n->tally, by_name);
    for (int j = 0; j < n->ntally; j++)
        fprintf(out, "%*salso %s x%d\n", 2 * depth, "", n->tally[j].name, n->tally[j].n);
}

void
show_kernel(const Kernel *k, FILE *out)
{
    Show s = {.k = k,
              .later = arena_array(k->a, int *, k->nloop + 1),
              .nlater = arena_array(k->a, int, k->nloop + 1)};
    Node *root = node(k->a, "");
    fprintf(out, "entry %s: threads %d", k->name, k->threads);
    if (k->min_ctas)
        fprintf(out, ", ctas %d", k->min_ctas);
    if (k->max_regs)
        fprintf(out, ", maxnreg %d", k->max_regs);
    fprintf(out, "%s\n", k->irreducible ? ", irreducible" : "");
    if (k->nblock)
        show_block(&s, 0, root);
    int roles[2] = {0, 0};
    print(root, &(Count){k->a, "", 0, roles}, 1, out);
}

/* Where left operands in registers come from.

   ptxas gave the registers of an operand that a loop only reads to what the loop
   computes behind the matmul (codegen/gen_nv_keep.c): from the second iteration on the
   matmul takes that. So of each matmul, in PTX and in machine code: which instructions
   can have made the operand, and which of these does each of the loops around have
   inside? An operand that no instruction of a loop makes in PTX, and that one makes in
   machine code beside one in front of the loop, is wrong. Matmuls are told apart by their
   order, or where ptxas has copied or moved some by their size alone. */
#include "tests/sass/sass.h"

#include <ctype.h>
#include <string.h>

enum { DEPTH = 6, WORDS = 4 };

typedef struct Made { /* by how many instructions, of each loop from the inside out */
    int in[DEPTH], out[DEPTH];
    int depth;
} Made;

typedef struct Dot {
    int at; /* its instruction */
    int n;  /* columns */
    bool regs;
    Made word[WORDS];
} Dot;

typedef struct Ptx { /* registers of one instruction */
    int *written, *moved;
    int nwritten, nmoved;
} Ptx;

typedef struct Step { /* of a walk back from a read: `reg` as it was in front of `before`
                       */
    int block, before, reg;
} Step;

typedef struct Code {
    const Kernel *k;
    const Program *p; /* machine code; or NULL, and then of each instruction: */
    Ptx *ptx;
    int *pred, *first; /* blocks in front of each block */
    int *block;        /* of each instruction */
    Step *step;        /* of the walk: all that were taken or are yet to be */
    int nstep;
    int *root;
    int nroot;
} Code;

/* ---------------------------------------------------------------- PTX's registers */

/* A number for each: %r12 and %f12 differ. */
static int
ptx_reg(const char *s)
{
    int file = 0;
    for (s++; isalpha((unsigned char)*s); s++)
        file = file * 3 + *s;
    return isdigit((unsigned char)*s) ? atoi(s) * 8 + file % 8 : -1;
}

static void
ptx_list(Arena *a, const char *s, int **list, int *n)
{
    while ((s = strchr(s, '%'))) {
        int r = ptx_reg(s++);
        if (r >= 0)
            *PUSH(a, *list, *n) = r;
    }
}

static bool
is_wgmma(const Insn *i)
{
    return !i->label && strncmp(i->op, "wgmma.mma_async", 15) == 0;
}

static void
ptx_registers(Code *c)
{
    const Kernel *k = c->k;
    c->ptx = arena_calloc(k->a, (size_t)k->ninsn + 1, sizeof *c->ptx, 8);
    for (int i = 0; i < k->ninsn; i++) {
        const Insn *x = &k->insn[i];
        Ptx *p = &c->ptx[i];
        if (x->label || !x->narg || *x->arg[0] == '[' || strncmp(x->op, "st.", 3) == 0 ||
            strncmp(x->op, "bar", 3) == 0 || strncmp(x->op, "red", 3) == 0)
            continue;
        ptx_list(k->a, x->arg[0], &p->written, &p->nwritten);
        if (strncmp(x->op, "mov.", 4) == 0 && x->narg == 2)
            ptx_list(k->a, x->arg[1], &p->moved, &p->nmoved);
    }
}

/* ---------------------------------------------------------------- the walk */

static Code
open_code(const Kernel *k, const Program *p)
{
    Code c = {.k = k, .p = p};
    int n = 0;
    c.block = arena_array(k->a, int, k->ninsn + 1);
    c.first = arena_array(k->a, int, k->nblock + 1);
    for (int b = 0; b < k->nblock; b++) {
        for (int i = k->block[b].from; i < k->block[b].to; i++)
            c.block[i] = b;
        c.first[b] = n;
        for (int j = 0; j < k->norder; j++) {
            const Block *from = &k->block[k->order[j]];
            for (int e = 0; e < from->nsucc; e++)
                if (from->succ[e] == b)
                    *PUSH(k->a, c.pred, n) = k->order[j];
        }
    }
    c.first[k->nblock] = n;
    if (!p)
        ptx_registers(&c);
    return c;
}

/* Where a register came from that instruction i only moves, of registers and the words of
   the stack behind them; -1: it does more. */
static int
moved(const Code *c, int i, int reg)
{
    const Sass *s = &c->p->sass[i];
    if (s->stack < 0)
        return s->copy;
    return s->reload ? STACK + s->stack + reg - s->spill
                     : s->spill + reg - STACK - s->stack;
}

static bool
writes(const Code *c, int i, int reg)
{
    if (c->p && reg >= STACK) {
        const Sass *s = &c->p->sass[i];
        return s->stack >= 0 && !s->reload && reg >= STACK + s->stack &&
               reg < STACK + s->stack + s->nspill;
    }
    if (c->p) {
        const Gmma *g = c->p->sass[i].gmma;
        return g ? reg >= g->acc && reg < g->acc + g->nacc
                 : set_has(&c->p->sass[i].writes, reg);
    }
    for (int j = 0; j < c->ptx[i].nwritten; j++)
        if (c->ptx[i].written[j] == reg)
            return true;
    return false;
}

static void
push(Code *c, int block, int before, int reg)
{
    for (int i = 0; i < c->nstep; i++)
        if (c->step[i].block == block && c->step[i].before == before &&
            c->step[i].reg == reg)
            return;
    *PUSH(c->k->a, c->step, c->nstep) = (Step){block, before, reg};
}

static void
add_root(Code *c, int at)
{
    for (int i = 0; i < c->nroot; i++)
        if (c->root[i] == at)
            return;
    *PUSH(c->k->a, c->root, c->nroot) = at;
}

static void
back(Code *c, Step s)
{
    const Block *b = &c->k->block[s.block];
    for (int i = s.before - 1; i >= b->from; i--) {
        if (!writes(c, i, s.reg))
            continue;
        const Ptx *p = c->p ? NULL : &c->ptx[i];
        for (int j = 0; p && j < p->nmoved; j++)
            push(c, s.block, i, p->moved[j]);
        if (c->p && moved(c, i, s.reg) >= 0)
            push(c, s.block, i, moved(c, i, s.reg));
        else if (!p || !p->nmoved)
            add_root(c, i);
        if (!(c->p ? c->p->sass[i].guarded : c->k->insn[i].guarded))
            return;
    }
    for (int j = c->first[s.block]; j < c->first[s.block + 1]; j++)
        push(c, c->pred[j], c->k->block[c->pred[j]].to, s.reg);
}

static Made
made(Code *c, int at, int reg)
{
    const Kernel *k = c->k;
    Made m = {.depth = 0};
    c->nstep = c->nroot = 0;
    push(c, c->block[at], at, reg);
    for (int i = 0; i < c->nstep; i++)
        back(c, c->step[i]);
    for (int l = k->block[c->block[at]].loop; l >= 0 && m.depth < DEPTH;
         l = k->loop[l].parent, m.depth++)
        for (int i = 0; i < c->nroot; i++)
            if (k->loop[l].has[c->block[c->root[i]]])
                m.in[m.depth]++;
            else
                m.out[m.depth]++;
    return m;
}

/* ---------------------------------------------------------------- matmuls */

static Dot *
ptx_dots(const Kernel *k, int *n)
{
    Code c = open_code(k, NULL);
    Dot *all = NULL;
    *n = 0;
    for (int i = 0; i < k->ninsn; i++) {
        const Insn *x = &k->insn[i];
        if (!is_wgmma(x) || k->block[c.block[i]].order < 0)
            continue;
        Dot d = {.at = i, .n = atoi(strstr(x->op, "64n") + 3), .regs = *x->arg[1] == '{'};
        int *a = NULL, na = 0;
        ptx_list(k->a, x->arg[1], &a, &na);
        for (int j = 0; d.regs && j < WORDS && j < na; j++)
            d.word[j] = made(&c, i, a[j]);
        *PUSH(k->a, all, *n) = d;
    }
    return all;
}

static Dot *
sass_dots(const Program *p, int *n)
{
    const Kernel *k = &p->k;
    Code c = open_code(k, p);
    Dot *all = NULL;
    *n = 0;
    for (int i = 0; i < k->ninsn; i++) {
        const Gmma *g = p->sass[i].gmma;
        if (!g || k->block[c.block[i]].order < 0)
            continue;
        Dot d = {.at = i, .n = g->n, .regs = g->a >= 0};
        for (int j = 0; d.regs && j < WORDS; j++)
            d.word[j] = made(&c, i, g->a + j);
        *PUSH(k->a, all, *n) = d;
    }
    return all;
}

/* How far out of the loops a word is wrong, from 1 on; 0: it is not. */
static int
wrong(const Dot *s, const Dot *x)
{
    for (int j = 0; j < WORDS; j++)
        for (int l = 0; l < s->word[j].depth && l < x->word[j].depth; l++)
            if (s->word[j].in[l] && s->word[j].out[l] && !x->word[j].in[l])
                return l + 1;
    return 0;
}

static bool
alike(const Dot *a, const Dot *b)
{
    return a->n == b->n && a->regs == b->regs;
}

int
sass_origin(const Program *p, const Kernel *ptx, FILE *out)
{
    int ns, nx, found = 0;
    if (!p->ngmma)
        return 0;
    Dot *s = sass_dots(p, &ns), *x = ptx_dots(ptx, &nx);
    bool ordered = ns == nx;
    for (int i = 0; i < ns && ordered; i++)
        ordered = alike(&s[i], &x[i]);
    for (int i = 0; i < ns; i++) {
        int bad = s[i].regs ? DEPTH + 1 : 0;
        for (int j = ordered ? i : 0; j < (ordered ? i + 1 : nx) && bad; j++)
            if (alike(&s[i], &x[j]))
                bad = wrong(&s[i], &x[j]);
        if (bad)
            fprintf(out, "%s: /*%04x*/ %s: %s\n", p->k.name, p->sass[s[i].at].at,
                    p->sass[s[i].at].text,
                    bad > DEPTH ? "no matmul of the PTX is like this one"
                                : "its left operand is overwritten in a loop");
        found += bad > 0;
    }
    return found;
}

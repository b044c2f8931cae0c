/* The reducer: a failing program with fewer and simpler statements that fails in the same
   way. It works on the tree, so that every attempt is a valid program: statements that
   nothing needs are dropped, loops and branches give way to their bodies, values to an
   operand of their type or a constant. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gen/gen.h"
#include "tests/gen/main.h"

enum { MOST = 8192 };

typedef struct Shrink {
    const Options *o;
    Tree *t;
    Stmt *stmt[MOST];
    int n;
    Report want;
    Stmt *dropped[MOST]; /* by the attempt that runs */
    int ndropped;
    int tries;
} Shrink;

static void
collect(Shrink *w, Stmt *s)
{
    for (; s; s = s->next) {
        if (w->n < MOST)
            w->stmt[w->n++] = s;
        for (int i = 0; i < s->nbody; i++)
            collect(w, s->body[i]);
    }
}

static void
drop(Shrink *w, Stmt *s)
{
    if (s->gone || w->ndropped == MOST)
        return;
    s->gone = true;
    w->dropped[w->ndropped++] = s;
}

static void
count_uses(Stmt *s, int *uses)
{
    for (; s; s = s->next) {
        if (s->gone)
            continue;
        if (!(s->kind == STMT_LET && s->instead) &&
            !(s->kind == STMT_BLOCK && s->unwrapped))
            for (int i = 0; i < s->nuse; i++)
                uses[value_seen(s->use[i])->id]++;
        for (int i = 0; i < s->nbody; i++)
            if (!s->unwrapped || s->unwrapped == i + 1)
                count_uses(s->body[i], uses);
    }
}

/* Drops definitions that nothing uses, and variables that are only set. */
static void
sweep(Shrink *w)
{
    int *uses = calloc((size_t)w->t->nval + 1, sizeof *uses);
    for (bool again = true; again;) {
        again = false;
        memset(uses, 0, sizeof *uses * (size_t)(w->t->nval + 1));
        count_uses(w->t->body, uses);
        for (int i = 0; i < w->n; i++) {
            Stmt *s = w->stmt[i];
            if (s->gone || s->kind != STMT_LET)
                continue;
            bool used = false;
            for (int k = 0; k < s->nres; k++)
                used |= uses[s->res[k]->id] > 0;
            if (!used) {
                drop(w, s);
                again = true;
            }
        }
    }
    free(uses);
}

/* Where a message says what is wrong: the simulator's word, or what follows "error: ". */
static const char *
kind_of(const char *text)
{
    const char *found = strstr(text, "found: ");
    return found ? found : strstr(text, "error: ");
}

static bool
still_fails(Shrink *w)
{
    sweep(w);
    Program *p = tree_program(w->t);
    Report got;
    w->tries++;
    run_apart(w->o, p, &got);
    program_free(p);
    bool same = got.what == w->want.what &&
                run_of_label(got.label) == run_of_label(w->want.label);
    if (same && got.what == FINDING_REFUSED) /* of the same complaint */
        same = kind_of(got.text) && kind_of(w->want.text) &&
               strncmp(kind_of(got.text), kind_of(w->want.text), 12) == 0;
    if (!same)
        for (int i = 0; i < w->ndropped; i++)
            w->dropped[i]->gone = false;
    w->ndropped = 0;
    return same;
}

/* Statements of no result, in pieces that get smaller. */
static bool
drop_actions(Shrink *w)
{
    bool any = false;
    for (int piece = w->n; piece >= 1; piece /= 2)
        for (int at = 0; at < w->n; at += piece) {
            for (int i = at; i < at + piece && i < w->n; i++)
                if (w->stmt[i]->kind != STMT_LET)
                    drop(w, w->stmt[i]);
            if (w->ndropped > 0 && still_fails(w))
                any = true;
        }
    return any;
}

static bool
unwrap(Shrink *w)
{
    bool any = false;
    for (int i = 0; i < w->n; i++) {
        Stmt *s = w->stmt[i];
        for (int k = 1;
             s->kind == STMT_BLOCK && !s->gone && !s->unwrapped && k <= s->nbody; k++) {
            s->unwrapped = k;
            if (still_fails(w))
                any = true;
            else
                s->unwrapped = 0;
        }
    }
    return any;
}

static bool
replace_by_operand(Shrink *w, Stmt *s)
{
    Value *v = s->res[0];
    for (int k = 0; k < s->nuse; k++) {
        Value *u = value_seen(s->use[k]);
        if (u == v || u->letter != 'v' || u->t.dt != v->t.dt ||
            !same_shape(&u->t, &v->t) || (u->flags & V_WILD && !(v->flags & V_WILD)))
            continue;
        v->same = u;
        if (still_fails(w))
            return true;
        v->same = NULL;
    }
    return false;
}

static bool
replace_by_constant(Shrink *w, Stmt *s)
{
    const Value *v = s->res[0];
    const DtInfo *dt = &dt_info[v->t.dt];
    const char *shape = "";
    for (int i = 0; i < v->t.rank; i++)
        shape = tree_text(w->t, "%s%s%d", shape, i ? ", " : "", v->t.dim[i]);
    const char *text[3] = {tree_text(w->t, "tl.full([%s], 1, tl.%s)", shape, dt->tl),
                           tree_text(w->t, "tl.full([%s], 0, tl.%s)", shape, dt->tl),
                           NULL};
    if (v->t.rank)
        text[2] = tree_text(w->t, "tl.load(p_%s + tl.reshape(tl.arange(0, %d), [%s]))",
                            dt->sig, numel(&v->t), shape);
    for (int k = 0; k < 3; k++) {
        if (!text[k] || BIT(v->t.dt) & FP8S)
            continue;
        s->instead = text[k];
        if (still_fails(w))
            return true;
        s->instead = NULL;
    }
    return false;
}

static bool
simplify(Shrink *w)
{
    bool any = false;
    for (int i = w->n - 1; i >= 0; i--) {
        Stmt *s = w->stmt[i];
        if (s->gone || s->kind != STMT_LET || s->nres != 1 || s->instead ||
            s->res[0]->flags & V_SPECIAL || s->nuse == 0)
            continue;
        if (s->res[0]->letter == 'v' && replace_by_operand(w, s))
            any = true;
        else if (replace_by_constant(w, s))
            any = true;
    }
    return any;
}

static void
shrink_sizes(Shrink *w)
{
    int grid[3];
    memcpy(grid, w->t->grid, sizeof grid);
    w->t->grid[0] = w->t->grid[1] = w->t->grid[2] = 1;
    if (!still_fails(w))
        memcpy(w->t->grid, grid, sizeof grid);
}

static void
show_desc(const ProgramArg *a)
{
    printf(", %s desc:%s", a->name, a->dtype);
    for (int i = 0; i < a->rank; i++)
        printf(" %d*%d[%d]", a->shape[i], a->strides[i], a->block[i]);
}

static void
show(Shrink *w)
{
    Program *p = tree_program(w->t);
    Report last;
    run_apart(w->o, p, &last);
    int lines = 0;
    for (const char *c = p->text; *c; c++)
        lines += *c == '\n';
    printf("# seed %" PRIu64 ", %s: %s\n", w->t->seed, last.label, last.text);
    printf("# %d lines after %d attempts; grid %dx%dx%d", lines, w->tries, p->grid[0],
           p->grid[1], p->grid[2]);
    for (int i = 0; i < p->narg; i++)
        if (p->arg[i].kind == ARG_BUFFER)
            printf(", %s *%s[%zu]", p->arg[i].name, p->arg[i].dtype, p->arg[i].count);
        else if (p->arg[i].kind == ARG_DESC)
            show_desc(&p->arg[i]);
        else if (p->arg[i].kind == ARG_INT)
            printf(", %s=%" PRId64, p->arg[i].name, p->arg[i].i);
        else
            printf(", %s=%g", p->arg[i].name, p->arg[i].f);
    printf("\n%s", p->text);
    program_free(p);
}

/* The program of the seed, and what is wrong with it. When that is made up, the next seed
   that will do. */
static bool
begin_with(Shrink *w, Options *o)
{
    for (int more = o->runner.pretend ? 500 : 1; more > 0; more--, o->seed++) {
        if (w->t)
            tree_free(w->t);
        w->t = tree_make(o->seed);
        Program *p = tree_program(w->t);
        run_apart(o, p, &w->want);
        program_free(p);
        if (w->want.what != FINDING_NONE) {
            collect(w, w->t->body);
            return true;
        }
    }
    return false;
}

int
reduce(const Options *asked)
{
    Options o = *asked;
    Shrink *w = calloc(1, sizeof *w);
    w->o = &o;
    o.runner.often = 1;
    if (o.seconds > 10)
        o.seconds = 10;
    if (!begin_with(w, &o)) {
        printf("seed %" PRIu64 ": nothing is wrong\n", o.seed);
        tree_free(w->t);
        free(w);
        return 0;
    }
    int one = run_of_label(w->want.label);
    if (one && o.runner.what & one)
        o.runner.what = one;
    bool more = true;
    for (int round = 0; round < 6 && more; round++) {
        more = drop_actions(w);
        more |= unwrap(w);
        more |= simplify(w);
        if (round == 0)
            shrink_sizes(w);
    }
    show(w);
    tree_free(w->t);
    free(w);
    return 1;
}

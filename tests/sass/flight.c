/* What other instructions do to the registers of a matmul that may be under way.

   A matmul begins when it is issued and reads and writes its registers some time later.
   The last one of a commit group says gsb0; WARPGROUP.DEPBAR.LE gsb0, N waits until all
   but the N newest groups are done. Over all paths: which registers may groups of each
   age still touch? Until then nothing may write what they read, nor touch what they
   write; another matmul may go on adding to the same sums, which the tensor cores do in
   order. */
#include "tests/sass/sass.h"

#include <string.h>

enum { AGES = 10 }; /* the last one stands for all that are older */

typedef struct State {
    Set reads[AGES], writes[AGES]; /* of groups; 0: the one that is not committed yet */
    Set stored;                    /* by other instructions, since the last fence */
    bool here;                     /* some path comes here */
} State;

static bool
join_set(Set *to, const Set *from)
{
    bool more = false;
    for (int i = 0; i < (int)(sizeof to->word / sizeof *to->word); i++) {
        more |= (from->word[i] & ~to->word[i]) != 0;
        to->word[i] |= from->word[i];
    }
    return more;
}

static bool
join(State *to, const State *from)
{
    bool more = !to->here;
    to->here = true;
    for (int i = 0; i < AGES; i++) {
        more |= join_set(&to->reads[i], &from->reads[i]);
        more |= join_set(&to->writes[i], &from->writes[i]);
    }
    return join_set(&to->stored, &from->stored) || more;
}

static void
commit(State *s)
{
    join_set(&s->reads[AGES - 1], &s->reads[AGES - 2]);
    join_set(&s->writes[AGES - 1], &s->writes[AGES - 2]);
    for (int i = AGES - 2; i > 0; i--) {
        s->reads[i] = s->reads[i - 1];
        s->writes[i] = s->writes[i - 1];
    }
    s->reads[0] = s->writes[0] = (Set){0};
}

static void
step(State *s, const Sass *i)
{
    if (i->fence)
        s->stored = (Set){0};
    for (int age = 1 + i->left; i->left >= 0 && age < AGES; age++)
        s->reads[age] = s->writes[age] = (Set){0};
    if (i->gmma && i->gmma->empty) {
        commit(s);
    } else if (i->gmma) {
        if (i->gmma->a >= 0)
            set_add(&s->reads[0], i->gmma->a, 4);
        set_add(&s->writes[0], i->gmma->acc, i->gmma->nacc);
        if (i->gmma->commits)
            commit(s);
    } else {
        join_set(&s->stored, &i->writes);
    }
}

static int
tell(const Program *p, const Sass *i, int r, const char *what, FILE *out)
{
    fprintf(out, "%s: /*%04x*/ %s: R%d %s\n", p->k.name, i->at, i->text, r, what);
    return 1;
}

static int
look(const Program *p, const State *s, const Sass *i, FILE *out)
{
    Set reads = {0}, writes = {0}, mine = {0};
    int r;
    for (int age = 0; age < AGES; age++) {
        join_set(&reads, &s->reads[age]);
        join_set(&writes, &s->writes[age]);
    }
    if (!i->gmma) {
        if ((r = set_meet(&i->writes, &reads)) >= 0)
            return tell(p, i, r, "is written, which a matmul under way reads", out);
        if ((r = set_meet(&i->writes, &writes)) >= 0)
            return tell(p, i, r, "is written, which a matmul under way adds to", out);
        if ((r = set_meet(&i->reads, &writes)) >= 0)
            return tell(p, i, r, "is read, which a matmul under way adds to", out);
        return 0;
    }
    if (i->gmma->empty) { /* ptxas fills the place of one that it takes for another */
        fprintf(out, "%s: /*%04x*/ %s: the place of a matmul that is gone\n", p->k.name,
                i->at, i->text);
        return 1;
    }
    set_add(&mine, i->gmma->acc, i->gmma->nacc);
    if ((r = set_meet(&mine, &reads)) >= 0)
        return tell(p, i, r, "is a sum, and a matmul under way reads it", out);
    if (!i->gmma->fresh && (r = set_meet(&mine, &s->stored)) >= 0)
        return tell(p, i, r, "is added to, written without a fence since", out);
    mine = (Set){0};
    if (i->gmma->a >= 0)
        set_add(&mine, i->gmma->a, 4);
    if ((r = set_meet(&mine, &writes)) >= 0)
        return tell(p, i, r, "is read, which a matmul under way adds to", out);
    if ((r = set_meet(&mine, &s->stored)) >= 0)
        return tell(p, i, r, "is read, written without a fence since", out);
    return 0;
}

int
sass_flight(const Program *p, FILE *out)
{
    const Kernel *k = &p->k;
    State *in = arena_calloc(k->a, (size_t)k->nblock + 1, sizeof *in, 8);
    int found = 0;
    if (!p->ngmma)
        return 0;
    in[0].here = true;
    for (bool changed = true; changed;) {
        changed = false;
        for (int j = 0; j < k->norder; j++) {
            const Block *b = &k->block[k->order[j]];
            State s = in[k->order[j]];
            for (int i = b->from; i < b->to; i++)
                step(&s, &p->sass[i]);
            for (int e = 0; e < b->nsucc; e++)
                changed |= join(&in[b->succ[e]], &s);
        }
    }
    for (int j = 0; j < k->norder; j++) {
        const Block *b = &k->block[k->order[j]];
        State s = in[k->order[j]];
        for (int i = b->from; i < b->to; i++) {
            found += look(p, &s, &p->sass[i], out);
            step(&s, &p->sass[i]);
        }
    }
    return found;
}

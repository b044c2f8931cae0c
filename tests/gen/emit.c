/* Programs as files, for a simulator, a GPU or Triton's interpreter: SEED.tk, SEED.in
   (all buffers one behind the other), SEED.want (all outputs, as the interpreter of tile
   IR leaves them) and SEED.txt, one line a fact:

       kernel k
       grid 2 1 1
       warps 4
       stages 3
       buffer NAME DTYPE COUNT OFFSET_IN_in OFFSET_IN_want_OR_-1 exact|zero|near TOLERANCE
       desc NAME .. (as buffer) zero|nan RANK SHAPE.. STRIDES.. BLOCK..
       int NAME DTYPE VALUE
       float NAME DTYPE VALUE                      in the order of the parameters */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/gen/gen.h"
#include "tests/gen/main.h"

static FILE *
file(const Options *o, uint64_t seed, const char *end)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%" PRIu64 ".%s", o->emit, seed, end);
    FILE *f = fopen(path, "wb");
    if (!f) {
        perror(path);
        exit(2);
    }
    return f;
}

static void
put_desc(FILE *to, const ProgramArg *a)
{
    const int *list[] = {a->shape, a->strides, a->block};
    if (a->rank)
        fprintf(to, " %s %d", a->nan ? "nan" : "zero", a->rank);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < a->rank; i++)
            fprintf(to, " %d", list[k][i]);
    fprintf(to, "\n");
}

static void
one(const Options *o, const Program *p, const Outputs *want)
{
    FILE *tk = file(o, p->seed, "tk"), *in = file(o, p->seed, "in");
    FILE *out = file(o, p->seed, "want"), *txt = file(o, p->seed, "txt");
    fputs(p->text, tk);
    fprintf(txt, "kernel %s\ngrid %d %d %d\nwarps %d\nstages %d\n", p->kernel, p->grid[0],
            p->grid[1], p->grid[2], p->num_warps, p->num_stages);
    size_t at_in = 0, at_want = 0;
    for (int i = 0; i < p->narg; i++) {
        const ProgramArg *a = &p->arg[i];
        if (a->kind == ARG_INT) {
            fprintf(txt, "int %s %s %" PRId64 "\n", a->name, a->dtype, a->i);
        } else if (a->kind == ARG_FLOAT) {
            fprintf(txt, "float %s %s %.17g\n", a->name, a->dtype, a->f);
        } else {
            fprintf(txt, "%s %s %s %zu %zu %lld %s %g", a->rank ? "desc" : "buffer",
                    a->name, a->dtype, a->count, at_in,
                    a->is_output ? (long long)at_want : -1LL,
                    a->exact           ? "exact"
                    : a->tolerance > 0 ? "near"
                                       : "zero",
                    a->tolerance);
            put_desc(txt, a);
            fwrite(a->data, 1, a->bytes, in);
            at_in += a->bytes;
            if (a->is_output) {
                fwrite(want->of[i], 1, a->bytes, out);
                at_want += a->bytes;
            }
        }
    }
    if (fclose(tk) | fclose(in) | fclose(out) | fclose(txt)) {
        perror(o->emit);
        exit(2);
    }
}

int
emit(const Options *o)
{
    Runner r = o->runner;
    int bad = 0;
    mkdir(o->emit, 0777);
    runner_open(&r);
    for (uint64_t seed = o->seed; seed < o->seed + o->count; seed++) {
        Program *p = gen_program(seed);
        Outputs want = {0};
        Report rep;
        if (program_expected(&r, p, &want, &rep)) {
            one(o, p, &want);
        } else {
            printf("seed %" PRIu64 ": %s\n", seed, rep.text);
            bad++;
        }
        outputs_free(&want);
        program_free(p);
    }
    runner_close(&r);
    return bad ? 1 : 0;
}

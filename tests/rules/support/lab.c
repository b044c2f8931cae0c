/* The frame of the tests of rules; see lab.h. */
#include "tests/rules/support/lab.h"

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/pass.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t
lab_random(Lab *l, uint32_t n)
{
    l->seed = l->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(l->seed >> 33) % n;
}

static uint64_t
any_bits(Lab *l)
{
    uint64_t high = lab_random(l, 1u << 31), low = lab_random(l, 1u << 31);
    return high << 33 ^ low << 11 ^ high >> 7;
}

const Type *
lab_type(Lab *l, ScalarKind k)
{
    return type_scalar(l->s->types, k);
}

const Type *
lab_tile(Lab *l, ScalarKind k, int rank, const int64_t *shape)
{
    return type_tile(l->s->types, lab_type(l, k), rank, shape, NULL);
}

const char *
kind_name(ScalarKind k)
{
    return scalar_name(k);
}

int
edges_of(ScalarKind k, uint64_t *out)
{
    int n = 0, bits = scalar_bits(k);
    uint64_t top = UINT64_C(1) << (bits - 1);
    if (!scalar_is_float(k)) {
        const int64_t all[] = {0,   1,     -1,      2,    -2,       3,       5,   6,
                               7,   -7,    8,       9,    12,       16,      31,  32,
                               33,  63,    64,      65,   100,      255,     256, -128,
                               127, 65535, 1 << 20, bits, bits - 1, bits + 1};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            out[n++] = (uint64_t)all[i] & bits_mask(bits);
        out[n++] = top;
        out[n++] = top - 1;
        out[n++] = (top + 1) & bits_mask(bits);
        if (bits == 64) /* rounded to double, and then to float, it is another float */
            out[n++] = (UINT64_C(1) << 60) + (UINT64_C(1) << 36) + 1;
        return n;
    }
    const double all[] = {0.0,    1.0,   0.5,     1.5,      2.0,
                          3.0,    0.1,   100.0,   65504.0,  448.0,
                          127.0,  128.0, 0x1p-14, 0x1p-126, 0x1.fffffep-32,
                          0x1p31, 1e30};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        out[n++] = bits_of_float(k, all[i]);
        out[n++] = bits_of_float(k, -all[i]);
    }
    out[n++] = 1; /* the least number */
    out[n++] = top | 1;
    out[n++] = bits_of_float(k, INFINITY);
    out[n++] = bits_of_float(k, -INFINITY);
    out[n++] = bits_of_float(k, NAN);
    out[n++] = bits_of_float(k, INFINITY) - 1; /* the greatest, or NaN */
    return n;
}

uint64_t
lab_edge(Lab *l, ScalarKind k)
{
    uint64_t all[64];
    int n = edges_of(k, all);
    return lab_random(l, 3) ? all[lab_random(l, (uint32_t)n)]
                            : any_bits(l) & bits_mask(scalar_bits(k));
}

Value *
lab_param(Lab *l, ScalarKind k)
{
    char name[16];
    snprintf(name, sizeof name, "x%d", l->nparam);
    Value *v = func_param(l->f, name, kind_name(k), lab_type(l, k), 1);
    return l->param[l->nparam++] = v;
}

Value *
lab_const(Lab *l, const Type *t, uint64_t bits)
{
    if (type_is_float(t))
        return build_float(&l->b, t, float_of_bits(type_elem(t)->scalar, bits));
    return build_int(&l->b, t, bits_signed(type_bits(t), bits));
}

void
lab_keep(Lab *l, Value *v)
{
    const Type *t = v->type;
    Value *p = l->memory[type_elem(t)->scalar];
    const Type *i32 = type_scalar(l->s->types, SK_I32);
    int64_t n = type_numel(t);
    p = build_binary(&l->b, OP_ADDPTR, p, build_int(&l->b, i32, 64 * l->kept++));
    if (type_is_tile(t)) {
        AttrList a = {0};
        const Type *line = type_tile(l->s->types, i32, 1, &n, NULL);
        attr_set_int(&l->s->mod, &a, ATTR_START, 0);
        Value *i = op_result(build_op(&l->b, OP_ARANGE, NULL, 0, &a, &line, 1), 0);
        if (t->rank > 1)
            i = build_reshape(&l->b, i, t->rank, t->shape);
        p = build_splat(&l->b, p, type_like(l->s->types, t, p->type));
        p = build_binary(&l->b, OP_ADDPTR, p, i);
    }
    build_store(&l->b, p, v, NULL, NULL);
}

/* ---- running */

Lab
lab_open(const LabTest *t)
{
    Lab l = {.s = session_new(0), .user = t->user};
    l.seed = (t->seed * 2 + 1) * UINT64_C(0x9e3779b97f4a7c15);
    ck_assert_ptr_nonnull(l.s);
    l.m = module_new(l.s);
    l.f = func_new(l.m, "f", (Loc){0});
    l.f->props |= FORM_ACCESS;
    l.b = builder_at_end(l.f, l.f->body);
    for (int k = 0; k < SK_COUNT; k++) {
        char name[16];
        snprintf(name, sizeof name, "p_%s", kind_name(k));
        const Type *p = type_ptr(l.s->types, lab_type(&l, k), 0);
        l.memory[k] = func_param(l.f, name, "*", p, 16);
    }
    if (setjmp(l.s->fail.env) != 0)
        ck_abort_msg("%s, seed %llu: made wrongly: %s", t->name,
                     (unsigned long long)t->seed, l.s->fail.message);
    l.s->fail.set = 1;
    t->make(&l);
    l.s->fail.set = 0;
    l.b = builder_at_end(l.f, l.f->body);
    build_op(&l.b, OP_RETURN, NULL, 0, NULL, NULL, 0);
    return l;
}

void
lab_close(Lab *l)
{
    session_free(l->s);
}

void
lab_print(Lab *l, const char *title)
{
    Buf b;
    buf_init(&b, &l->s->perm);
    module_print(&b, l->m);
    fprintf(stderr, "---- %s\n%s\n", title, b.s ? b.s : "");
}

void
lab_arguments(Lab *l, const LabTest *t, int i, uint64_t *params)
{
    Lab dice = {.seed = t->seed * 1000003 + (uint64_t)i};
    lab_random(&dice, 2);
    for (int k = 0; k < SK_COUNT; k++)
        params[k] = (uint64_t)(k + 1) << 40;
    for (int k = 0; k < l->nparam; k++)
        params[SK_COUNT + k] = lab_edge(&dice, l->param[k]->type->scalar);
    if (t->sweep)
        params[SK_COUNT] = (uint64_t)i;
}

/* NULL, or what went wrong inside of the passes. */
static const char *
run_passes(Lab *l, const LabTest *t)
{
    PassId *list;
    PassCx cx = {.s = l->s, .opt_limit = -1};
    int n = passes_parse(l->s, t->passes, &list);
    if (n < 0)
        return "no such pass";
    target_info(t->target ? t->target : "cpu", &cx.target);
    if (setjmp(l->s->fail.env) != 0)
        return l->s->fail.message;
    l->s->fail.set = 1;
    bool ok = true;
    for (int i = 0; i < n && ok;
         i++) { /* without the manager: `undef-masked` asks for layouts */
        ArenaMark mark = arena_mark(&l->s->tmp);
        pass_info[list[i]].run(l->f, &cx);
        ok = diag_ok(&l->s->diag) && module_verify(l->m);
        arena_reset(&l->s->tmp, mark);
    }
    l->s->fail.set = 0;
    return ok ? NULL : "errors, or the verifier's refusal";
}

static void
explain(const LabTest *t, const uint64_t *params, const char *why, int at)
{
    Lab l = lab_open(t);
    lab_print(&l, "before");
    if (!run_passes(&l, t))
        lab_print(&l, t->passes);
    for (int i = 0; i < l.nparam; i++)
        fprintf(stderr, "%%x%d = 0x%llx\n", i, (unsigned long long)params[SK_COUNT + i]);
    ck_abort_msg("%s, seed %llu: %s, number %d", t->name, (unsigned long long)t->seed,
                 why, at);
}

/* Is this the code for such a launch? For numbers that are no multiple of what a
   parameter is marked with there is other code. */
static bool
launched(const Lab *l, const uint64_t *params)
{
    for (int i = 0; i < l->f->body->narg; i++) {
        int64_t whole = l->f->params[i].multiple;
        int64_t x = bits_signed(type_bits(l->f->body->args[i]->type), params[i]);
        if (whole > 1 && x % whole)
            return false;
    }
    return true;
}

void
lab_check(const LabTest *t)
{
    enum { PARAMS = SK_COUNT + LAB_PARAMS };
    int runs = t->sweep ? 256 : t->runs, at;
    Lab l = lab_open(t);
    Eval e = {.programs = {5, 2, 1}, .program = {3, 1, 0}};
    Trace *before = malloc((size_t)runs * sizeof *before), after;
    uint64_t(*params)[PARAMS] = malloc((size_t)runs * sizeof *params);
    for (int i = 0; i < runs; i++) {
        lab_arguments(&l, t, i, params[i]);
        eval_run(&e, l.f, params[i], &before[i]);
    }
    const char *why = run_passes(&l, t);
    if (why && !t->may_refuse)
        explain(t, params[0], why, 0);
    runs = why ? 0 : runs;
    e.generous = true;
    for (int i = 0; i < runs; i++) {
        if (before[i].open || !launched(&l, params[i]))
            continue;
        eval_run(&e, l.f, params[i], &after);
        why = trace_differs(&before[i], &after, &at);
        if (why)
            explain(t, params[i], why, at);
    }
    free(params);
    free(before);
    eval_done(&e);
    lab_close(&l);
}

int
rules_run(const char *name, const TTest *const *tests, int n)
{
    Suite *suite = suite_create(name);
    TCase *c = tcase_create(name);
    tcase_set_timeout(c, 100); /* seconds on the clock of a busy machine */
    for (int i = 0; i < n; i++)
        tcase_add_test(c, tests[i]);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

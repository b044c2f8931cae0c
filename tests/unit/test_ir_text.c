/* Text of tile IR: every op of a random program survives print, read, print; floats keep
   their bits; hostile text is an error with a place and never a crash. */
#include "ir/build.h"
#include "ir/text.h"
#include "ir/verify.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static Module *
read_text(Session *s, const char *text)
{
    Source *src = arena_new(&s->perm, Source);
    *src = (Source){.path = "test.tir", .text = text, .size = strlen(text)};
    return module_read(s, src);
}

static const char *
print(Session *s, const Module *m)
{
    Buf b;
    buf_init(&b, &s->perm);
    module_print(&b, m);
    return b.s;
}

static uint64_t seed = 88172645463325252u;

static uint64_t
rnd(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

START_TEST(floats_keep_their_bits)
{
    static const double special[] = {0.0,    -0.0,      INFINITY, -INFINITY,
                                     1e-320, 0x1p-1074, 3};
    for (int i = 0; i < 200; i++) {
        Session *s = session_new(0);
        Module *m = module_new(s);
        Func *f = func_new(m, "f", (Loc){0});
        Builder b = builder_at_end(f, f->body);
        uint64_t bits = rnd();
        double x;
        memcpy(&x, &bits, sizeof x);
        if (i < 7)
            x = special[i];
        build_float(&b, type_scalar(s->types, SK_F64), x);
        build_op(&b, OP_RETURN, NULL, 0, NULL, NULL, 0);
        Module *again = read_text(s, print(s, m));
        ck_assert_ptr_nonnull(again);
        double y = attr_float(&again->funcs[0]->body->first->attrs, ATTR_FVALUE, 7.0);
        ck_assert(isnan(x) ? isnan(y) : memcmp(&x, &y, sizeof x) == 0);
        session_free(s);
    }
}
END_TEST

/* Straight-line programs of random elementwise ops, with names that collide. */
START_TEST(random_programs_round_trip)
{
    static const char *const names[] = {"a", "x", "x_1", "x_0", NULL, "1", "tile", "if"};
    for (int i = 0; i < 100; i++) {
        Session *s = session_new(0);
        Module *m = module_new(s);
        Func *f = func_new(m, "f", (Loc){0});
        const Type *i32 = type_scalar(s->types, SK_I32);
        Builder b = builder_at_end(f, f->body);
        Value *v[64] = {func_param(f, "x", "i32", i32, 16)};
        int n = 1;
        while (n < 60) {
            OpKind k = (OpKind)(rnd() % OP_COUNT);
            if (strcmp(op_info[k].rule, "same_int") != 0)
                continue;
            Value *in[2] = {v[rnd() % (uint64_t)n], v[rnd() % (uint64_t)n]};
            v[n] = &build_op(&b, k, in, op_info[k].min, NULL, NULL, 1)->results[0];
            const char *name = names[rnd() % 8];
            v[n++]->name = name ? name_of(&s->names, name) : NULL;
        }
        build_op(&b, OP_RETURN, NULL, 0, NULL, NULL, 0);
        ck_assert(module_verify(m));
        const char *once = print(s, m);
        Module *again = read_text(s, once);
        ck_assert_ptr_nonnull(again);
        ck_assert_str_eq(print(s, again), once);
        session_free(s);
    }
}
END_TEST

START_TEST(strings_survive)
{
    Session *s = session_new(0);
    Module *m = module_new(s);
    Func *f = func_new(m, "f", (Loc){0});
    Builder b = builder_at_end(f, f->body);
    AttrList l = {0};
    const char *text = "a \"quoted\" \\ line\n\ttab \x01 \xc3\xa9 // no comment";
    attr_set_str(&s->mod, &l, ATTR_MESSAGE, name_of(&s->names, text));
    build_op(&b, OP_PRINT, NULL, 0, &l, NULL, 0);
    build_op(&b, OP_RETURN, NULL, 0, NULL, NULL, 0);
    Module *again = read_text(s, print(s, m));
    ck_assert_ptr_nonnull(again);
    ck_assert_str_eq(attr_str(&again->funcs[0]->body->first->attrs, ATTR_MESSAGE), text);
    session_free(s);
}
END_TEST

static const char *
repeat(Session *s, const char *head, const char *part, int n)
{
    Buf b;
    buf_init(&b, &s->perm);
    buf_str(&b, head);
    for (int i = 0; i < n; i++)
        buf_str(&b, part);
    return b.s;
}

START_TEST(hostile_text_is_an_error)
{
    static const struct {
        const char *head, *part;
        int n;
        const char *tail;
    } cases[] = {
        {"", "(", 100000, ""},
        {"kernel @f() {\n  %c = const {value=1} : i1\n", "if %c {\n", 100000, ""},
        {"kernel @f(%x: ", "async<", 100000, ""},
        {"kernel @f(%x: ", "ptr<", 100000, ""},
        {"kernel @f() { print {message=\"", "x", 100000, ""},
        {"kernel @f() { print {signed=[", "1,", 100000, ""},
        {"#a = ", "slice<dim=0, size=2, ", 1000, "\nkernel @f(%x: tile<2xf32, #a>"},
        {"kernel @f(%x: tile<", "2x", 100, ""},
        {"kernel @f() {\n %c = const {value=", "9", 100, ""},
        {"kernel @f(", "%x: i32,", 2, ""},
        {"", "\xff", 10, ""},
        {"", "kernel", 1, ""},
        {"", "kernel @f() {", 1, ""},
        {"", "kernel @f() { return", 1, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Session *s = session_new((size_t)256 << 20);
        const char *text = repeat(s, cases[i].head, cases[i].part, cases[i].n);
        text = arena_printf(&s->perm, "%s%s", text, cases[i].tail);
        if (setjmp(s->fail.env) == 0) {
            s->fail.set = 1;
            ck_assert_ptr_null(read_text(s, text));
            ck_assert_int_gt(s->diag.errors, 0);
            ck_assert_int_gt(s->diag.first->loc.line, 0);
        } else {
            ck_assert_int_ne(s->fail.reason, FAIL_BUG);
        }
        session_free(s);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("ir_text");
    TCase *c = tcase_create("ir_text");
    tcase_add_test(c, floats_keep_their_bits);
    tcase_add_test(c, random_programs_round_trip);
    tcase_add_test(c, strings_survive);
    tcase_add_test(c, hostile_text_is_an_error);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

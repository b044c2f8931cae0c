/* Interned names and the text buffer. */
#include "ir/base/str.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(equal_names_are_one_pointer)
{
    Arena a;
    NameTable t;
    arena_init(&a, NULL, 0);
    names_init(&t, &a);
    enum { N = 5000 };
    static Name names[N];
    char text[32];
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "name%d", i);
        names[i] = name_of(&t, text);
        ck_assert_str_eq(names[i], text);
    }
    for (int i = 0; i < N; i++) {
        int n = snprintf(text, sizeof text, "name%dtail", i);
        ck_assert_ptr_eq(name_intern(&t, text, (size_t)n - 4), names[i]);
        ck_assert(i == 0 || names[i] != names[i - 1]);
    }
    ck_assert_ptr_eq(name_of(&t, ""), name_intern(&t, "x", 0));
    arena_done(&a);
}
END_TEST

START_TEST(buffer_grows_and_stays_terminated)
{
    Arena a;
    Buf b;
    arena_init(&a, NULL, 0);
    buf_init(&b, &a);
    for (int i = 0; i < 10000; i++) {
        buf_char(&b, (char)('a' + i % 26));
        ck_assert_int_eq(b.s[b.n], 0);
    }
    ck_assert_uint_eq(strlen(b.s), 10000);
    buf_printf(&b, "%05d", 7);
    buf_add(&b, "abc", 2);
    buf_str(&b, "!");
    ck_assert_str_eq(b.s + 10000, "00007ab!");
    arena_done(&a);
}
END_TEST

START_TEST(hash_depends_on_every_byte)
{
    unsigned char x[40];
    memset(x, 1, sizeof x);
    uint64_t h = hash_bytes(x, sizeof x, 0);
    ck_assert(hash_bytes(x, sizeof x, 1) != h);
    ck_assert(hash_bytes(x, sizeof x - 1, 0) != h);
    for (size_t i = 0; i < sizeof x; i++) {
        x[i] ^= 4;
        ck_assert(hash_bytes(x, sizeof x, 0) != h);
        x[i] ^= 4;
    }
    ck_assert(hash_bytes(x, sizeof x, 0) == h);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("str");
    TCase *c = tcase_create("str");
    tcase_add_test(c, equal_names_are_one_pointer);
    tcase_add_test(c, buffer_grows_and_stays_terminated);
    tcase_add_test(c, hash_depends_on_every_byte);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

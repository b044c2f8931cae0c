/* Arenas: zeroed and aligned memory, marks, limits that leave through the fail point. */
#include "ir/base/arena.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool
all_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

START_TEST(memory_is_zeroed_and_aligned)
{
    Arena a;
    arena_init(&a, NULL, 0);
    for (size_t align = 1; align <= 64; align *= 2) {
        for (size_t size = 0; size < 300; size += 7) {
            unsigned char *p = arena_alloc(&a, size, align);
            ck_assert_ptr_nonnull(p);
            ck_assert_uint_eq((uintptr_t)p % align, 0);
            ck_assert(all_zero(p, size));
            memset(p, 0xff, size);
        }
    }
    arena_done(&a);
}
END_TEST

START_TEST(reset_gives_back_and_clears)
{
    Arena a;
    arena_init(&a, NULL, 0);
    char *kept = arena_strndup(&a, "kept and more", 4);
    ArenaMark m = arena_mark(&a);
    unsigned char *first = arena_alloc(&a, 100, 8);
    memset(first, 0xff, 100);
    for (int i = 0; i < 50; i++)
        memset(arena_alloc(&a, 50000, 8), 0xff, 50000);
    size_t total = a.total;
    arena_reset(&a, m);
    ck_assert_uint_lt(a.total, total);
    unsigned char *again = arena_alloc(&a, 100, 8);
    ck_assert_ptr_eq(again, first);
    ck_assert(all_zero(again, 100));
    ck_assert_str_eq(kept, "kept");
    arena_done(&a);
}
END_TEST

START_TEST(reset_keeps_a_chunk_for_the_next_growth)
{
    Arena a;
    arena_init(&a, NULL, 0);
    arena_alloc(&a, 100, 8);
    ArenaMark m = arena_mark(&a);
    unsigned char *first = arena_alloc(&a, 200000, 8);
    size_t total = a.total;
    memset(first, 0xff, 200000);
    arena_reset(&a, m);
    ck_assert_uint_eq(a.total, total);
    unsigned char *again = arena_alloc(&a, 200000, 8);
    ck_assert_ptr_eq(again, first);
    ck_assert(all_zero(again, 200000));
    ck_assert_uint_eq(a.total, total);
    arena_reset(&a, m);
    arena_alloc(&a, 400000, 8); /* what is too small is no longer counted */
    ck_assert_uint_lt(a.total, total + 400000);
    arena_done(&a);
}
END_TEST

START_TEST(limit_leaves_through_the_fail_point)
{
    FailPoint f = {0};
    Arena a;
    arena_init(&a, &f, 1 << 20);
    volatile int count = 0;
    if (setjmp(f.env) == 0) {
        f.set = 1;
        for (;; count++)
            arena_alloc(&a, 10000, 8);
    }
    ck_assert_int_eq(f.reason, FAIL_LIMIT);
    ck_assert_int_gt(count, 10);
    ck_assert_int_lt(count, 110);
    ck_assert_ptr_nonnull(strstr(f.message, "memory limit"));
    arena_done(&a);
}
END_TEST

START_TEST(sizes_that_overflow_are_refused)
{
    FailPoint f = {0};
    Arena a;
    arena_init(&a, &f, 0);
    volatile int got = 0;
    if (setjmp(f.env) == 0) {
        f.set = 1;
        got = arena_calloc(&a, SIZE_MAX / 2, 8, 8) != NULL;
    }
    ck_assert_int_eq(got, 0);
    ck_assert_int_ne(f.reason, FAIL_NONE);
    arena_done(&a);
}
END_TEST

START_TEST(texts_of_any_length_are_printed)
{
    Arena a;
    arena_init(&a, NULL, 0);
    ck_assert_str_eq(arena_printf(&a, "%d-%s", 42, "x"), "42-x");
    char *big = malloc(100001);
    memset(big, 'y', 100000);
    big[100000] = 0;
    ck_assert_uint_eq(strlen(arena_printf(&a, "%s!", big)), 100001);
    free(big);
    arena_done(&a);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("arena");
    TCase *c = tcase_create("arena");
    tcase_add_test(c, memory_is_zeroed_and_aligned);
    tcase_add_test(c, reset_gives_back_and_clears);
    tcase_add_test(c, reset_keeps_a_chunk_for_the_next_growth);
    tcase_add_test(c, limit_leaves_through_the_fail_point);
    tcase_add_test(c, sizes_that_overflow_are_refused);
    tcase_add_test(c, texts_of_any_length_are_printed);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

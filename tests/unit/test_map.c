/* The hash map against an array: adding, replacing, insertion order, ends of scopes. */
#include "ir/base/map.h"

#include <check.h>
#include <stdlib.h>

enum { N = 3000 };
static int keys[N], vals[N];

START_TEST(holds_what_was_set)
{
    Arena a;
    Map m;
    arena_init(&a, NULL, 0);
    map_init(&m, &a);
    ck_assert_ptr_null(map_get(&m, &keys[0]));
    for (int i = 0; i < N; i++)
        map_set(&m, &keys[i], &vals[i]);
    for (int i = 0; i < N; i += 3)
        map_set(&m, &keys[i], NULL);
    ck_assert_int_eq(m.n, N);
    for (int i = 0; i < N; i++) {
        ck_assert(map_has(&m, &keys[i]));
        ck_assert_ptr_eq(map_get(&m, &keys[i]), i % 3 ? (void *)&vals[i] : NULL);
        ck_assert_ptr_eq(m.entries[i].key, &keys[i]);
    }
    ck_assert(!map_has(&m, &vals[0]));
    arena_done(&a);
}
END_TEST

START_TEST(scopes_end)
{
    Arena a;
    Map m;
    arena_init(&a, NULL, 0);
    map_init(&m, &a);
    unsigned seed = 7;
    for (int round = 0; round < 50; round++) {
        seed = seed * 1103515245u + 12345u;
        int keep = m.n ? (int)(seed >> 8) % m.n : 0;
        map_truncate(&m, keep);
        for (int i = 0; i < N; i++)
            ck_assert_int_eq(map_has(&m, &keys[i]), i < keep);
        for (int i = keep; i < keep + 50 && i < N; i++)
            map_set(&m, &keys[i], &vals[i]);
    }
    arena_done(&a);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("map");
    TCase *c = tcase_create("map");
    tcase_add_test(c, holds_what_was_set);
    tcase_add_test(c, scopes_end);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

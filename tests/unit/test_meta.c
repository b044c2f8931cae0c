/* Metadata packed and read back: small, complete, and nothing else is taken for it. */
#include "runtime/rt/meta.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static SdcrtMeta *
sample(unsigned seed)
{
    SdcrtMeta *m = calloc(1, sizeof *m);
    ck_assert_ptr_nonnull(m);
    strcpy(m->name, "matmul");
    strcpy(m->symbol, "matmul_0");
    strcpy(m->target, "sm_90a");
    m->num_warps = 8;
    m->shared_bytes = 1 + (int64_t)seed;
    m->nparam = (int)(seed % (SDCRT_MAX_PARAMS + 1));
    for (int i = 0; i < m->nparam; i++) {
        m->params[i].name[0] = (char)('a' + i % 26);
        m->params[i].div = 16;
        m->params[i].source = (uint16_t)i;
    }
    m->nsource = (int)(seed % SDCRT_MAX_SOURCES);
    for (int i = 0; i < m->nsource; i++)
        m->sources[i].i = (int64_t)(seed * 2654435761u) << (i % 32);
    return m;
}

START_TEST(round_trip)
{
    for (unsigned seed = 0; seed < 400; seed++) {
        SdcrtMeta *m = sample(seed), *back = malloc(sizeof *back);
        size_t n = sdcrt_meta_pack(m, NULL);
        unsigned char *bytes = malloc(n);
        ck_assert(back && bytes);
        ck_assert_uint_eq(sdcrt_meta_pack(m, bytes), n);
        ck_assert(seed > 8 || n < 1500);
        ck_assert(sdcrt_meta_unpack(bytes, n, back));
        ck_assert_mem_eq(m, back, sizeof *m);
        free(bytes);
        free(back);
        free(m);
    }
}
END_TEST

START_TEST(anything_else_is_refused)
{
    SdcrtMeta *m = sample(3), *back = malloc(sizeof *back);
    size_t n = sdcrt_meta_pack(m, NULL);
    unsigned char *bytes = malloc(n + 1);
    ck_assert(back && bytes);
    sdcrt_meta_pack(m, bytes);
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *part = malloc(cut + 1); /* reading beyond it is found by ASan */
        ck_assert_ptr_nonnull(part);
        memcpy(part, bytes, cut);
        ck_assert(!sdcrt_meta_unpack(part, cut, back));
        free(part);
    }
    bytes[n] = 0;
    ck_assert(!sdcrt_meta_unpack(bytes, n + 1, back));
    bytes[4]++; /* another size: another version */
    ck_assert(!sdcrt_meta_unpack(bytes, n, back));
    free(bytes);
    free(back);
    free(m);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("meta");
    TCase *c = tcase_create("meta");
    tcase_add_test(c, round_trip);
    tcase_add_test(c, anything_else_is_refused);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

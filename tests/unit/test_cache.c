/* The cache's folder under everything that can happen to it: entries cut at every byte,
   a bit flipped in every byte, folders that cannot be used, and processes with threads
   that store and read while they are killed. A get gives what was put under that key, or
   nothing. */
#include "runtime/cache.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char dir[512];

static void
setup(void)
{
    snprintf(dir, sizeof dir, "%s/cache-XXXXXX", SDC_TMP);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    unsetenv("SDC_CACHE");
}

static void
teardown(void)
{
    char cmd[600];
    snprintf(cmd, sizeof cmd, "chmod -R u+rwx '%s'; rm -rf '%s'", dir, dir);
    ck_assert_int_eq(system(cmd), 0);
}

static CacheBytes
key_of(int n)
{
    CacheBytes key = {0};
    cache_field(&key, "key", 3);
    cache_field(&key, &n, sizeof n);
    if (key.failed)
        abort();
    return key;
}

enum { MAX_CODE = 6000 };

/* What belongs to a key: every byte follows from its number. */
static size_t
code_of(int n, unsigned char *code)
{
    size_t size = 200 + (size_t)(n * 977) % (MAX_CODE - 200);
    for (size_t i = 0; i < size; i++)
        code[i] = (unsigned char)((size_t)n * 131 + i * 7 + (i >> 8));
    return size;
}

static void
put(Cache *c, int n)
{
    unsigned char code[MAX_CODE];
    CacheBytes key = key_of(n), deps = {0};
    size_t size = code_of(n, code);
    cache_put(c, &key, &deps, "meta", 4, code, size);
    cache_bytes_done(&key);
}

/* 1: what belongs there; 0: a miss; -1: something else. */
static int
get(Cache *c, int n)
{
    unsigned char code[MAX_CODE];
    CacheBytes key = key_of(n);
    CacheEntry e;
    size_t size = code_of(n, code);
    int got = 0;
    if (cache_get(c, &key, &e)) {
        got = e.code_size == size && memcmp(e.code, code, size) == 0 &&
                      e.meta_size == 4 && memcmp(e.meta, "meta", 4) == 0
                  ? 1
                  : -1;
        free(e.memory);
    }
    cache_bytes_done(&key);
    return got;
}

/* The only entry's path. */
static void
entry_path(char *to, size_t size)
{
    char cmd[600];
    snprintf(cmd, sizeof cmd, "find '%s' -type f", dir);
    FILE *f = popen(cmd, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(to, (int)size, f));
    pclose(f);
    to[strcspn(to, "\n")] = '\0';
}

static void
write_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

START_TEST(kept_and_found)
{
    Cache *c = cache_open(dir);
    CacheFound found;
    ck_assert_ptr_nonnull(c);
    ck_assert_int_eq(get(c, 1), 0);
    for (int i = 0; i < 20; i++)
        put(c, i);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(get(c, i), 1);
    ck_assert_int_eq(get(c, 20), 0);
    ck_assert(cache_walk(c, CACHE_VERIFY, 0, &found));
    ck_assert(found.entries == 20 && found.bad == 0 && found.temporaries == 0);
    ck_assert(cache_walk(c, CACHE_GC, found.bytes / 2, &found));
    ck_assert(found.entries < 20 && found.entries > 2 && found.removed > 2);
    ck_assert(cache_walk(c, CACHE_CLEAR, 0, &found));
    ck_assert(cache_walk(c, CACHE_STAT, 0, &found));
    ck_assert(found.entries == 0 && found.bytes == 0);
    cache_close(c);
}
END_TEST

START_TEST(damaged_entries_are_misses)
{
    char path[700];
    static unsigned char whole[3 * MAX_CODE], part[3 * MAX_CODE];
    Cache *c = cache_open(dir);
    CacheFound found;
    put(c, 1);
    entry_path(path, sizeof path);
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(whole, 1, sizeof whole, f);
    fclose(f);
    ck_assert_uint_gt(n, 200);
    for (size_t cut = 0; cut < n; cut++) {
        write_bytes(path, whole, cut);
        ck_assert_int_eq(get(c, 1), 0);
    }
    int flips = 0;
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++, flips++) {
            memcpy(part, whole, n);
            part[i] ^= (unsigned char)(1 << bit);
            write_bytes(path, part, n);
            ck_assert_int_eq(get(c, 1), 0);
            ck_assert_int_eq(access(path, F_OK), -1); /* and nobody reads it again */
        }
    memcpy(part, whole, n);
    part[n] = 0;
    write_bytes(path, part, n + 1);
    ck_assert_int_eq(get(c, 1), 0);
    write_bytes(path, part, n - 1);
    ck_assert(cache_walk(c, CACHE_VERIFY, 0, &found));
    ck_assert(found.bad == 1 && found.removed == 1);
    write_bytes(path, whole, n);
    ck_assert_int_eq(get(c, 1), 1);
    /* What lies under another key's name is not taken for it. */
    CacheBytes other = key_of(2), mine = key_of(1);
    ck_assert_uint_eq(other.size, mine.size);
    cache_bytes_done(&other);
    cache_bytes_done(&mine);
    printf("cache: an entry of %zu bytes cut at each of them, %d bits flipped: "
           "all misses\n",
           n, flips);
    cache_close(c);
}
END_TEST

START_TEST(folders_that_cannot_be_used)
{
    struct rlimit most, old;
    Cache *c = cache_open(dir);
    put(c, 1);
    /* The disk is full: files may have no bytes any more. */
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    most = old;
    most.rlim_cur = 100;
    int set = setrlimit(RLIMIT_FSIZE, &most); /* Check writes files, too: no assertion */
    put(c, 2);
    int second = get(c, 2), first = get(c, 1);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    ck_assert_int_eq(set, 0);
    ck_assert_int_eq(second, 0);
    ck_assert_int_eq(first, 1);
    put(c, 2);
    ck_assert_int_eq(get(c, 2), 1);
    cache_close(c);
    /* Read-only; root may write there all the same. */
    ck_assert_int_eq(chmod(dir, 0500), 0);
    c = cache_open(dir);
    put(c, 3);
    ck_assert_int_eq(get(c, 1), 1);
    ck_assert(get(c, 3) >= 0);
    cache_close(c);
    /* Others may write: their kernels are not ours. */
    ck_assert_int_eq(chmod(dir, 0777), 0);
    ck_assert_ptr_null(cache_open(dir));
    ck_assert_int_eq(chmod(dir, 0700), 0);
    c = cache_open("/dev/null/nothing");
    if (c) {
        put(c, 1);
        ck_assert_int_eq(get(c, 1), 0);
    }
    cache_close(c);
    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("SDC_CACHE_DIR");
    ck_assert_ptr_null(cache_open(NULL));
}
END_TEST

START_TEST(what_was_read_must_be_as_it_was)
{
    char file[600], none[600];
    Cache *c = cache_open(dir);
    CacheBytes key = key_of(7), deps = {0};
    CacheEntry e;
    snprintf(file, sizeof file, "%s/helper.py", dir);
    snprintf(none, sizeof none, "%s/absent.py", dir);
    write_bytes(file, "x = 1\n", 6);
    cache_dep(&deps, file, "x = 1\n", 6);
    cache_dep(&deps, none, NULL, 0);
    cache_put(c, &key, &deps, "m", 1, "c", 1);
    ck_assert(cache_get(c, &key, &e));
    free(e.memory);
    write_bytes(file, "x = 2\n", 6);
    ck_assert(!cache_get(c, &key, &e));
    write_bytes(file, "x = 1\n", 6);
    write_bytes(none, "", 0); /* it would be found now, and used instead */
    ck_assert(!cache_get(c, &key, &e));
    ck_assert_int_eq(unlink(none), 0);
    ck_assert(cache_get(c, &key, &e));
    free(e.memory);
    cache_bytes_done(&key);
    cache_bytes_done(&deps);
    cache_close(c);
}
END_TEST

/* ---------------------------------------------------------------- torture */

enum { PROCESSES = 16, THREADS = 8, KEYS = 8, WRONG = 99 };

typedef struct Counts {
    atomic_long gets, hits, puts, wrong;
} Counts;

static Counts *counts; /* shared by all processes */

static void *
torture_thread(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    Cache *c = cache_open(dir);
    CacheFound found;
    while (c) {
        int n = rand_r(&seed) % KEYS;
        int got = get(c, n);
        atomic_fetch_add(&counts->gets, 1);
        atomic_fetch_add(&counts->hits, got == 1);
        if (got < 0) {
            atomic_fetch_add(&counts->wrong, 1);
            _exit(WRONG);
        }
        if (got == 0 || rand_r(&seed) % 8 == 0) {
            put(c, n);
            atomic_fetch_add(&counts->puts, 1);
        }
        if (rand_r(&seed) % 512 == 0)
            cache_walk(c, rand_r(&seed) % 2 ? CACHE_GC : CACHE_VERIFY, 10000, &found);
    }
    return NULL;
}

static pid_t
torture_process(unsigned seed)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid)
        return pid;
    pthread_t t[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, torture_thread,
                       (void *)(uintptr_t)(seed * THREADS + i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    _exit(0);
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

START_TEST(killed_at_any_moment)
{
    pid_t pid[PROCESSES];
    unsigned seed = 1;
    int killed = 0, status;
    const char *text = getenv("SDC_TORTURE_SECONDS");
    double until = now() + (text ? atof(text) : 4);
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(counts, MAP_FAILED);
    for (int i = 0; i < PROCESSES; i++)
        pid[i] = torture_process(seed++);
    while (now() < until) {
        struct timespec nap = {0, (long)(rand_r(&seed) % 8000000)};
        int i = (int)((unsigned)rand_r(&seed) % PROCESSES);
        nanosleep(&nap, NULL);
        ck_assert_int_eq(kill(pid[i], SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
        /* It was alive until then: nothing else has ended it. */
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        killed++;
        pid[i] = torture_process(seed++);
    }
    for (int i = 0; i < PROCESSES; i++) {
        kill(pid[i], SIGKILL);
        waitpid(pid[i], &status, 0);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    Cache *c = cache_open(dir);
    CacheFound found;
    ck_assert(cache_walk(c, CACHE_VERIFY, 0, &found));
    printf("cache: %d processes of %d threads, %d killed; %ld reads, %ld of them hits, "
           "%ld writes, %ld wrong, %lld entries not whole, %lld unfinished files\n",
           PROCESSES, THREADS, killed, atomic_load(&counts->gets),
           atomic_load(&counts->hits), atomic_load(&counts->puts),
           atomic_load(&counts->wrong), (long long)found.bad,
           (long long)found.temporaries);
    ck_assert_int_eq(atomic_load(&counts->wrong), 0);
    ck_assert_int_eq(found.bad, 0);
    ck_assert_int_gt(atomic_load(&counts->hits), 0);
    ck_assert_int_gt(killed, 5);
    for (int i = 0; i < KEYS; i++)
        ck_assert_int_ge(get(c, i), 0);
    cache_close(c);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("cache");
    TCase *t = tcase_create("cache");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, kept_and_found);
    tcase_add_test(t, damaged_entries_are_misses);
    tcase_add_test(t, folders_that_cannot_be_used);
    tcase_add_test(t, what_was_read_must_be_as_it_was);
    tcase_add_test(t, killed_at_any_moment);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

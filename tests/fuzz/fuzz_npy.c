/* Bytes of a .npy file, and the text of an argument of `sdc run`. */
#include "runtime/cli/npy.h"
#include "runtime/cli/spec.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
lookup(void *user, const char *name, size_t n, int64_t *value)
{
    (void)user;
    *value = n == 1 && *name == 'n' ? 7 : n == 1 && *name == 'z' ? -3 : 0;
    return n == 1;
}

static void
read_file(const uint8_t *data, size_t size, SdcDtype as)
{
    char path[40], why[200];
    bool environment = false;
    int fd = memfd_create("fuzz.npy", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    Array a = {0};
    if (npy_read(path, as, &a, why, sizeof why, &environment)) {
        FailPoint fail = {0};
        Arena arena;
        size_t n;
        arena_init(&arena, &fail, 0);
        if (setjmp(fail.env) == 0) {
            fail.set = 1;
            if (!npy_bytes(&arena, &a, &n) || n < a.bytes)
                abort();
        }
        arena_done(&arena);
        array_done(&a);
    }
    close(fd);
}

/* Every element of an array is made, so a large one only takes time: the shape is read as
   `spec_read` does. One whose size overflows asks for nothing. */
static bool
is_small(const char *text, Expr *expr)
{
    int64_t shape[NPY_MAX_RANK], n = 1;
    const char *open = strchr(text, '['), *end = strrchr(text, ']');
    if (!open || !end || end <= open + 1)
        return true;
    int rank = expr_list(expr, open + 1, (size_t)(end - open - 1), shape, NPY_MAX_RANK);
    for (int i = 0; i < rank; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(n, shape[i], &n))
            return true;
    return n <= 1 << 20;
}

/* Every name is the one array. */
static const RunArg *
any_name(void *user, const char *name, size_t n)
{
    (void)name, (void)n;
    return user;
}

static void
read_spec(const char *text)
{
    RunArg arg = {0}, of = {0};
    Expr expr = {.lookup = lookup};
    char why[300];
    bool environment = false;
    spec_is_scalar(text);
    int64_t shape[NPY_MAX_RANK];
    expr_list(&expr, text, strlen(text), shape, NPY_MAX_RANK);
    if (*text == '@' || !is_small(text, &expr))
        return;
    of.array = (Array){.dtype = SDC_FP16, .rank = 2, .shape = {64, 64}};
    of.value = sdc_ptr(SDC_FP16, &of);
    if (spec_is_over(text))
        spec_read_over(text, &expr, any_name, &of, &arg, why, sizeof why);
    else if (spec_read(text, &expr, &arg, why, sizeof why, &environment))
        array_done(&arg.array);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const SdcDtype as[] = {SDC_DTYPE_NONE, SDC_BF16, SDC_FP8E5, SDC_FP32};
    if (size < 2 || size > 4096)
        return -1;
    if (data[0] == 0x93 || data[0] == 'N') { /* a file's first byte, or its stand-in */
        read_file(data, size, as[data[size - 1] % 4]);
        return 0;
    }
    char *text = strndup((const char *)data, size);
    if (text)
        read_spec(text);
    free(text);
    return 0;
}

/* The .npy format: "\x93NUMPY", version, header length, and a Python dict with 'descr',
   'fortran_order' and 'shape'; then the elements. Headers are parsed by their keys, in
   any order, and every number is bounded before it is used. */
#include "runtime/cli/npy.h"

#include "runtime/cli/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_HEADER = 64 << 10 };
static const int64_t MAX_BYTES = (int64_t)1 << 40;

typedef struct Kind {
    const char *descr; /* without the byte order */
    SdcDtype dtype;
} Kind;

static const Kind kinds[] = {
    { "b1", SDC_BOOL }, { "i1", SDC_I8 },   { "i2", SDC_I16 },  { "i4", SDC_I32 },
    { "i8", SDC_I64 },  { "u1", SDC_U8 },   { "u2", SDC_U16 },  { "u4", SDC_U32 },
    { "u8", SDC_U64 },  { "f2", SDC_FP16 }, { "f4", SDC_FP32 }, { "f8", SDC_FP64 },
};

bool
array_alloc(Array *a)
{
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] < 0 || __builtin_mul_overflow(n, a->shape[i], &n))
            return false;
    int64_t bytes;
    if (__builtin_mul_overflow(n, (int64_t)sdc_dtype_size(a->dtype), &bytes) ||
        bytes > MAX_BYTES)
        return false;
    a->count = n;
    a->bytes = (size_t)bytes;
    a->data = guard_alloc(a->bytes);
    return a->data != NULL;
}

void
array_done(Array *a)
{
    guard_free(a->data);
    a->data = NULL;
}

/* ---------------------------------------------------------------- header */

typedef struct Head {
    const char *p, *end;
} Head;

static void
blanks(Head *h)
{
    while (h->p < h->end && (*h->p == ' ' || *h->p == '\n' || *h->p == '\t'))
        h->p++;
}

static bool
take(Head *h, const char *token)
{
    blanks(h);
    size_t n = strlen(token);
    if ((size_t)(h->end - h->p) < n || memcmp(h->p, token, n) != 0)
        return false;
    h->p += n;
    return true;
}

/* A quoted text without escapes. */
static bool
quoted(Head *h, char *to, size_t size)
{
    blanks(h);
    if (h->p >= h->end || (*h->p != '\'' && *h->p != '"'))
        return false;
    char quote = *h->p++;
    size_t n = 0;
    while (h->p < h->end && *h->p != quote) {
        if (n + 1 >= size)
            return false;
        to[n++] = *h->p++;
    }
    to[n] = '\0';
    return h->p++ < h->end;
}

static bool
shape(Head *h, Array *a)
{
    if (!take(h, "("))
        return false;
    a->rank = 0;
    while (!take(h, ")")) {
        if (a->rank == NPY_MAX_RANK)
            return false;
        blanks(h);
        const char *start = h->p;
        int64_t v = 0;
        for (; h->p < h->end && *h->p >= '0' && *h->p <= '9'; h->p++)
            if (__builtin_mul_overflow(v, 10, &v) ||
                __builtin_add_overflow(v, *h->p - '0', &v))
                return false;
        if (h->p == start)
            return false;
        a->shape[a->rank++] = v;
        if (!take(h, ",") && !(take(h, ")") && (h->p--, true)))
            return false;
    }
    return true;
}

static bool
element_type(const char *descr, SdcDtype as, Array *a, char *why, size_t size)
{
    const char *name = descr + (*descr && strchr("<=|", *descr) != NULL);
    if (*descr == '>') {
        snprintf(why, size, "big-endian elements '%s': store them little-endian", descr);
        return false;
    }
    a->dtype = SDC_DTYPE_NONE;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].descr, name) == 0)
            a->dtype = kinds[i].dtype;
    int raw = name[0] == 'V' && (name[1] == '1' || name[1] == '2') && !name[2]
                  ? name[1] - '0'
                  : 0;
    if (as != SDC_DTYPE_NONE) {
        int have = raw ? raw : sdc_dtype_size(a->dtype);
        bool bits = raw || a->dtype == SDC_U8 || a->dtype == SDC_U16 || a->dtype == as;
        if (!bits || have != sdc_dtype_size(as)) {
            snprintf(why, size, "elements '%s' cannot be read as %s", descr,
                     sdc_dtype_name(as));
            return false;
        }
        a->dtype = as;
    }
    if (a->dtype == SDC_DTYPE_NONE) {
        snprintf(why, size,
                 raw ? "raw elements '%s': say what they are, as in '@FILE:bf16'"
                     : "element type '%s' has no counterpart",
                 descr);
        return false;
    }
    return true;
}

static bool
dict(Head *h, SdcDtype as, Array *a, char *why, size_t size)
{
    bool have_descr = false, have_order = false, have_shape = false;
    snprintf(why, size, "its header is no dictionary of descr, fortran_order and shape");
    if (!take(h, "{"))
        return false;
    while (!take(h, "}")) {
        char key[32], descr[32];
        if (!quoted(h, key, sizeof key) || !take(h, ":"))
            return false;
        if (strcmp(key, "descr") == 0 && !have_descr) {
            if (!quoted(h, descr, sizeof descr)) {
                snprintf(why, size, "structured elements have no counterpart");
                return false;
            }
            if (!element_type(descr, as, a, why, size))
                return false;
            snprintf(why, size, "its header is damaged");
            have_descr = true;
        } else if (strcmp(key, "fortran_order") == 0 && !have_order) {
            have_order = true;
            if (take(h, "True")) {
                snprintf(why, size, "Fortran order: store numpy.ascontiguousarray of it");
                return false;
            }
            if (!take(h, "False"))
                return false;
        } else if (strcmp(key, "shape") == 0 && !have_shape) {
            have_shape = true;
            if (!shape(h, a)) {
                snprintf(why, size, "its shape is no tuple of at most %d sizes",
                         NPY_MAX_RANK);
                return false;
            }
        } else {
            return false;
        }
        if (!take(h, ",") && !(take(h, "}") && (h->p--, true)))
            return false;
    }
    return have_descr && have_order && have_shape;
}

size_t
npy_header(const unsigned char *head, size_t n, SdcDtype as, Array *a, char *why,
           size_t why_size)
{
    *a = (Array){ 0 };
    if (n < 10 || memcmp(head, "\x93NUMPY", 6) != 0) {
        snprintf(why, why_size, "it is no .npy file");
        return 0;
    }
    size_t at = head[6] == 1 ? 10 : 12;
    if (head[6] < 1 || head[6] > 3 || n < at) {
        snprintf(why, why_size, "its format version %d.%d is unknown", head[6], head[7]);
        return 0;
    }
    size_t len = (size_t)head[8] | (size_t)head[9] << 8;
    if (at == 12)
        len |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    if (len > MAX_HEADER || len > n - at) {
        snprintf(why, why_size, "its header of %zu bytes is cut short or too long", len);
        return 0;
    }
    Head h = { (const char *)head + at, (const char *)head + at + len };
    return dict(&h, as, a, why, why_size) ? at + len : 0;
}

/* ---------------------------------------------------------------- files */

static bool
read_fully(int fd, void *to, size_t n)
{
    for (char *p = to; n;) {
        ssize_t got = read(fd, p, n < (1u << 30) ? n : (1u << 30));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        p += got;
        n -= (size_t)got;
    }
    return true;
}

static bool
read_open(int fd, SdcDtype as, Array *a, char *why, size_t size, bool *environment)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        snprintf(why, size, "it is no regular file");
        return false;
    }
    size_t n = st.st_size < MAX_HEADER + 12 ? (size_t)st.st_size : MAX_HEADER + 12;
    unsigned char *head = malloc(n + 1);
    if (!head || !read_fully(fd, head, n)) {
        snprintf(why, size, "%s", head ? "it cannot be read" : "out of memory");
        *environment = !head;
        free(head);
        return false;
    }
    size_t at = npy_header(head, n, as, a, why, size);
    free(head);
    if (!at)
        return false;
    /* What the header promises must be in the file before memory is asked for. */
    int64_t count = sdc_dtype_size(a->dtype);
    for (int i = 0; i < a->rank; i++) {
        if (__builtin_mul_overflow(count, a->shape[i], &count)) {
            snprintf(why, size, "its shape is too large");
            return false;
        }
    }
    if (count > st.st_size - (int64_t)at) {
        snprintf(why, size, "it is cut short: %lld bytes of elements, %lld wanted",
                 (long long)(st.st_size - (int64_t)at), (long long)count);
        return false;
    }
    if (!array_alloc(a)) {
        snprintf(why, size, "no memory for %lld bytes", (long long)count);
        *environment = true;
        return false;
    }
    if (lseek(fd, (off_t)at, SEEK_SET) < 0 || !read_fully(fd, a->data, a->bytes)) {
        snprintf(why, size, "it cannot be read");
        array_done(a);
        return false;
    }
    return true;
}

bool
npy_read(const char *path, SdcDtype as, Array *a, char *why, size_t why_size,
         bool *environment)
{
    *environment = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(why, why_size, "%s", strerror(errno));
        return false;
    }
    bool ok = read_open(fd, as, a, why, why_size, environment);
    close(fd);
    return ok;
}

const char *
npy_bytes(Arena *arena, const Array *a, size_t *size)
{
    const char *descr = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].dtype == a->dtype)
            descr = kinds[i].descr;
    if (!descr)
        descr = sdc_dtype_size(a->dtype) == 2 ? "u2" : "u1";
    char dims[NPY_MAX_RANK * 22 + 4] = "";
    int n = 0;
    for (int i = 0; i < a->rank; i++)
        n += snprintf(dims + n, sizeof dims - (size_t)n, "%s%lld", i ? ", " : "",
                      (long long)a->shape[i]);
    if (a->rank == 1)
        snprintf(dims + n, sizeof dims - (size_t)n, ",");
    char head[1024];
    int len = snprintf(head, sizeof head,
                       "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s), }",
                       sdc_dtype_size(a->dtype) == 1 ? '|' : '<', descr, dims);
    size_t total = (10 + (size_t)len + 1 + 63) & ~(size_t)63; /* data begins aligned */
    char *out = arena_alloc(arena, total + a->bytes, 64);
    memset(out, ' ', total);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((total - 10) & 0xff);
    out[9] = (char)((total - 10) >> 8);
    memcpy(out + 10, head, (size_t)len);
    out[total - 1] = '\n';
    if (a->bytes)
        memcpy(out + total, a->data, a->bytes);
    *size = total + a->bytes;
    return out;
}

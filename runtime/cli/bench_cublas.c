/* --vs cublas: the product that the kernel's first three matrices make, by cuBLAS in the
   same process, measured in the same way. The library is opened as the driver is, and may
   be missing. */
#include "runtime/cli/bench.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of cuBLAS's and CUDA's enumerations. */
enum {
    R_32F = 0,
    R_64F = 1,
    R_16F = 2,
    R_16BF = 14,
    COMPUTE_32F = 68,
    COMPUTE_64F = 70,
    COMPUTE_TF32 = 77,
    GEMM_DEFAULT = -1
};

typedef int Create(void **handle);
typedef int SetStream(void *handle, void *stream);
typedef int GemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
                   const void *a, int at, int lda, const void *b, int bt, int ldb,
                   const void *beta, void *c, int ct, int ldc, int compute, int algo);

struct Cublas {
    void *handle;
    SetStream *set_stream;
    GemmEx *gemm;
    /* the product of a row */
    const void *a, *b;
    void *c;
    int m, n, k, type, compute;
    bool failed;
};

static void *
open_library(void)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12",
                                        "libcublas.so"};
    const char *own = getenv("SDC_LIBCUBLAS");
    void *lib = own && *own ? dlopen(own, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (int i = 0; i < COUNT_OF(names) && !lib && !(own && *own); i++)
        lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return lib;
}

int
cublas_open(Cli *c, Cublas **out)
{
    void *lib = open_library(), *p[3];
    Cublas *b = *out = arena_new(&c->arena, Cublas);
    Create *create;
    if (!lib)
        return cli_error(c, EXIT_ENVIRONMENT,
                         "--vs cublas: no cuBLAS is found (SDC_LIBCUBLAS names it): %s",
                         dlerror());
    p[0] = dlsym(lib, "cublasCreate_v2");
    p[1] = dlsym(lib, "cublasSetStream_v2");
    p[2] = dlsym(lib, "cublasGemmEx");
    if (!p[0] || !p[1] || !p[2])
        return cli_error(c, EXIT_ENVIRONMENT, "--vs cublas: this is no cuBLAS");
    memcpy(&create, &p[0], sizeof create);
    memcpy(&b->set_stream, &p[1], sizeof b->set_stream);
    memcpy(&b->gemm, &p[2], sizeof b->gemm);
    int code = create(&b->handle);
    return code ? cli_error(c, EXIT_ENVIRONMENT,
                            "--vs cublas: it does not start (error %d)", code)
                : EXIT_FINE;
}

/* cuBLAS counts columns first: c = a b of rows is its c' = b' a'. */
SdcStatus
cublas_launch(void *cublas, void *stream)
{
    static const float one = 1, zero = 0;
    static const double one64 = 1, zero64 = 0;
    Cublas *p = cublas;
    bool wide = p->type == R_64F;
    p->failed |= p->set_stream(p->handle, stream) != 0;
    p->failed |= p->gemm(p->handle, 0, 0, p->n, p->m, p->k,
                         wide ? (const void *)&one64 : &one, p->b, p->type, p->n, p->a,
                         p->type, p->k, wide ? (const void *)&zero64 : &zero, p->c,
                         p->type, p->n, p->compute, GEMM_DEFAULT) != 0;
    return SDC_OK;
}

bool
cublas_failed(const Cublas *b)
{
    return b->failed;
}

/* The first three arrays as [M, K], [K, N] and [M, N] of one type. */
static bool
product_of(const Run *r, Cublas *p)
{
    const RunArg *m[3];
    int n = 0;
    for (int i = 0; i < r->nparam && n < 3; i++)
        if (r->args[i].array.data)
            m[n++] = &r->args[i];
    if (n < 3)
        return false;
    for (int i = 0; i < 3; i++)
        if (m[i]->array.rank != 2 || m[i]->array.dtype != m[0]->array.dtype)
            return false;
    const int64_t *a = m[0]->array.shape, *b = m[1]->array.shape, *c = m[2]->array.shape;
    if (a[1] != b[0] || c[0] != a[0] || c[1] != b[1] || c[0] > INT32_MAX ||
        c[1] > INT32_MAX || a[1] > INT32_MAX)
        return false;
    p->m = (int)a[0], p->k = (int)a[1], p->n = (int)b[1];
    p->a = m[0]->value.v.ptr, p->b = m[1]->value.v.ptr, p->c = m[2]->value.v.ptr;
    p->compute = COMPUTE_32F;
    switch (m[0]->array.dtype) {
    case SDC_FP16: p->type = R_16F; return true;
    case SDC_BF16: p->type = R_16BF; return true;
    case SDC_FP32: p->type = R_32F, p->compute = COMPUTE_TF32; return true;
    case SDC_FP64: p->type = R_64F, p->compute = COMPUTE_64F; return true;
    default: return false;
    }
}

int
cublas_prepare(Cublas *b, const Run *r)
{
    return product_of(r, b)
               ? EXIT_FINE
               : cli_error(r->c, EXIT_INPUT,
                           "--vs cublas: the first three arrays of '%s' are to be "
                           "matrices [M,K], [K,N] and [M,N] of one type",
                           r->kernel);
}

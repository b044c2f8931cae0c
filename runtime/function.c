/* Functions: a kernel with its constexprs bound, specialized by the arguments of a
   launch.

   The key of a specialization is a number an argument: kind, type, "equal to 1",
   "divisible by 16", and of a descriptor its block; there the length of a row is what is
   divisible. Specializations hang in a list that
   only grows at its head, so that a launch reads it without a lock; compiling happens
   under the lock of the module. */
#include "runtime/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_TF32 = 1 << 12, KEY_NAN = 1 << 13, KEY_ONE = 1 << 14, KEY_DIV16 = 1 << 15 };
enum { MAX_ARGS = SDCRT_MAX_PARAMS, MAX_KEY = 4 * MAX_ARGS };
/* Bytes of a type's text; of a tuple's. */
enum { MAX_TYPE = 120, MAX_TUPLE = (SDCRT_MAX_LEAVES + 8) * MAX_TYPE };

static bool
same_bind(const SdcFunction *f, const char *const *bind, int n)
{
    if (f->nbind != n)
        return false;
    for (int i = 0; i < n; i++)
        if (strcmp(f->bind[i], bind[i]) != 0)
            return false;
    return true;
}

static SdcFunction *
function_new(SdcModule *mod, const KernelInfo *info, const char *const *bind, int nbind)
{
    SdcFunction *f = calloc(1, sizeof *f);
    if (!f || !(f->bind = calloc((size_t)nbind + 1, sizeof *f->bind))) {
        free(f);
        return NULL;
    }
    f->mod = mod;
    f->info = info;
    for (; f->nbind < nbind; f->nbind++) {
        if ((f->bind[f->nbind] = strdup(bind[f->nbind])))
            continue;
        while (f->nbind > 0)
            free(f->bind[--f->nbind]);
        free(f->bind);
        free(f);
        return NULL;
    }
    return f;
}

/* A binding names a parameter or a launch option. */
static bool
known_name(const KernelInfo *info, const char *bind)
{
    static const char *const option[] = {"num_warps", "num_stages", "num_ctas",
                                         "launch_pdl", "enable_fp_fusion"};
    size_t n = strcspn(bind, "=");
    if (bind[n] != '=')
        return false;
    for (int i = 0; i < COUNT_OF(option); i++)
        if (strlen(option[i]) == n && memcmp(option[i], bind, n) == 0)
            return true;
    for (int i = 0; i < info->nparam; i++)
        if (strlen(info->params[i].name) == n &&
            memcmp(info->params[i].name, bind, n) == 0)
            return true;
    return false;
}

SdcStatus
sdc_function_get(SdcModule *mod, const char *kernel, const char *const *bind, int nbind,
                 SdcFunction **out)
{
    if (out)
        *out = NULL;
    if (!mod)
        return SDC_ERROR_ARGUMENT;
    const KernelInfo *info;
    SdcStatus status = module_request(mod, "function", kernel, bind, nbind, out, &info);
    if (status != SDC_OK)
        return status;
    if (info->nruntime > MAX_ARGS)
        return context_fail(mod->cx, SDC_ERROR_SOURCE,
                            "'%s' has %d arguments, at most %d", kernel, info->nruntime,
                            MAX_ARGS);
    for (int i = 0; i < nbind; i++)
        if (!known_name(info, bind[i]))
            return module_no_param(mod, info, bind[i]);
    status = context_lock(mod->cx, &mod->lock);
    if (status != SDC_OK)
        return status;
    SdcFunction *f = mod->functions;
    while (f && (f->info != info || !same_bind(f, bind, nbind)))
        f = f->next;
    if (!f && (f = function_new(mod, info, bind, nbind)) != NULL) {
        f->next = mod->functions;
        mod->functions = f;
    }
    pthread_mutex_unlock(&mod->lock);
    *out = f;
    return f ? SDC_OK : context_fail(mod->cx, SDC_ERROR_MEMORY, "out of memory");
}

/* ---------------------------------------------------------------- specializing */

static uint64_t
arg_key(const KernelInfo *info, int i, const SdcArg *arg)
{
    const SdcArg plain = arg_plain(arg), *a = &plain;
    int source = info->runtime[i];
    uint64_t key = (uint64_t)a->kind << 8 | ((unsigned)a->dtype & 0xff);
    const SdcDesc *d = a->kind == SDC_ARG_DESC ? a->v.ptr : NULL;
    if (d && a->dtype & SDC_PAD_NAN)
        key |= KEY_NAN;
    if (d && a->dtype & SDC_ROUND_TF32)
        key |= KEY_TF32;
    if (d) /* blocks are powers of two: their logarithms say all, and 0 tells the rank */
        for (int k = 0; k < d->rank && k < SDC_MAX_DESC_RANK; k++)
            key |=
                (uint64_t)(d->block[k] > 0 ? log2_floor((uint64_t)d->block[k]) + 1 : 63)
                << (16 + 6 * k);
    if (info->no_specialize[source])
        return key;
    if (a->kind == SDC_ARG_PTR && (uintptr_t)a->v.ptr % 16 == 0)
        key |= KEY_DIV16;
    if (d && d->rank > 0 && d->rank <= SDC_MAX_DESC_RANK &&
        d->shape[d->rank - 1] % 16 == 0)
        key |= KEY_DIV16;
    if (a->kind == SDC_ARG_INT && a->dtype != SDC_BOOL) {
        if (a->v.i == 1 && !info->params[source].type)
            key |= KEY_ONE;
        else if (a->v.i % 16 == 0)
            key |= KEY_DIV16;
    }
    return key;
}

/* "tensordesc<fp16[64,64]>:16"; behind the block ",nan" when that is the padding, and
   ",tf32" when loads round to it. */
static bool
desc_text(const SdcDesc *d, uint64_t key, const char *hint, char *to, size_t size)
{
    if (!d || d->rank < 1 || d->rank > SDC_MAX_DESC_RANK || !sdc_dtype_name(d->dtype))
        return false;
    int n = snprintf(to, size, "tensordesc<%s[", sdc_dtype_name(d->dtype));
    for (int i = 0; i < d->rank; i++)
        n += snprintf(to + n, size - (size_t)n, "%s%d", i ? "," : "", d->block[i]);
    snprintf(to + n, size - (size_t)n, "]%s%s>%s",
             key & KEY_NAN ? ",nan" : "", key & KEY_TF32 ? ",tf32" : "", hint);
    return true;
}

static bool arg_text(const SdcFunction *f, int i, const SdcArg *arg, char *to,
                     size_t size);

static bool
tuple_text(const SdcFunction *f, int i, const SdcArg *a, char *to, size_t size)
{
    const SdcArg *items = a->v.ptr;
    size_t n = (size_t)snprintf(to, size, "(");
    for (int k = 0; k < a->dtype; k++) {
        if (n + 3 >= size || !arg_text(f, i, &items[k], to + n, size - n - 2))
            return false;
        n += strlen(to + n);
        to[n++] = ',';
    }
    snprintf(to + n, size - n, ")");
    return true;
}

/* The type of an argument in Triton's spelling, with its hint: "*fp32:16", "i32", "1". */
static bool
arg_text(const SdcFunction *f, int i, const SdcArg *arg, char *to, size_t size)
{
    if (arg->kind == SDC_ARG_TUPLE)
        return tuple_text(f, i, arg, to, size);
    const uint64_t key = arg_key(f->info, i, arg);
    const SdcArg plain = arg_plain(arg), *a = &plain;
    const SdcParam *p = &f->info->params[f->info->runtime[i]];
    const char *hint = key & KEY_DIV16 ? ":16" : "";
    const char *name = sdc_dtype_name((SdcDtype)a->dtype);
    int type_len = p->type ? (int)strcspn(p->type, ":") : 0;
    if (a->kind == SDC_ARG_DESC)
        return desc_text(a->v.ptr, key, hint, to, size);
    if (key & KEY_ONE)
        snprintf(to, size, "1");
    else if (a->kind == SDC_ARG_NONE)
        snprintf(to, size, "None");
    else if (p->type && (a->kind != SDC_ARG_PTR) == (*p->type != '*'))
        snprintf(to, size, "%.*s%s", type_len, p->type, hint);
    else if (a->kind == SDC_ARG_PTR && name)
        snprintf(to, size, "*%s%s", name, hint);
    else if (name && sdc_dtype_is_float((SdcDtype)a->dtype) == (a->kind == SDC_ARG_FLOAT))
        snprintf(to, size, "%s%s", name, hint);
    else
        return false;
    return true;
}

static char *
signature_of(SdcFunction *f, const SdcArg *args, SdcStatus *status)
{
    SdcModule *m = f->mod;
    const KernelInfo *info = f->info;
    size_t cap = 1;
    for (int i = 0; i < info->nruntime; i++)
        cap += strlen(info->params[info->runtime[i]].name) + 8 +
               (args[i].kind == SDC_ARG_TUPLE ? MAX_TUPLE : MAX_TYPE);
    char *sig = calloc(1, cap), *p = sig;
    *status = sig ? SDC_OK : context_fail(m->cx, SDC_ERROR_MEMORY, "out of memory");
    for (int i = 0; i < info->nruntime && sig; i++) {
        char type[MAX_TUPLE];
        size_t room = args[i].kind == SDC_ARG_TUPLE ? MAX_TUPLE : MAX_TYPE;
        const char *name = info->params[info->runtime[i]].name;
        if (arg_text(f, i, &args[i], type, room)) {
            p += sprintf(p, "%s%s=%s", p == sig ? "" : ",", name, type);
        } else {
            *status = context_fail(m->cx, SDC_ERROR_ARGUMENT,
                                   "argument '%s' of '%s' needs a type", name,
                                   info->name);
            free(sig);
            sig = NULL;
        }
    }
    return sig;
}

/* What the functions of @triton.heuristics may look at: integers, and that a pointer is
   not None. */
static void
values_of(const KernelInfo *info, const SdcArg *args, FrontValue *values)
{
    memset(values, 0, (size_t)info->nparam * sizeof *values);
    for (int i = 0; i < info->nruntime; i++) {
        FrontValue *v = &values[info->runtime[i]];
        v->known = args[i].kind == SDC_ARG_INT || args[i].kind == SDC_ARG_PTR ||
                   args[i].kind == SDC_ARG_BUFFER;
        v->i = args[i].kind == SDC_ARG_INT ? args[i].v.i : 1;
    }
}

static SdcStatus
compile_spec_of(SdcFunction *f, const SdcArg *args, unsigned how, SdcKernel **out)
{
    SdcModule *m = f->mod;
    FrontValue values[SDCRT_MAX_SOURCES];
    if (m->is_tir)
        return kernel_new(m, f->info, NULL, NULL, 0, NULL, how, out);
    if (f->info->nparam > SDCRT_MAX_SOURCES)
        return context_fail(m->cx, SDC_ERROR_SOURCE, "'%s' has too many parameters",
                            f->info->name);
    SdcStatus status;
    char *sig = signature_of(f, args, &status);
    if (!sig)
        return status;
    if (f->info->heuristics)
        values_of(f->info, args, values);
    status = kernel_new(m, f->info, sig, (const char *const *)f->bind, f->nbind,
                        f->info->heuristics ? values : NULL, how | KERNEL_LAUNCHED,
                        out);
    free(sig);
    return status;
}

char *
function_signature(SdcFunction *f, const SdcArg *args, int nargs)
{
    SdcStatus status;
    (void)nargs;
    return signature_of(f, args, &status);
}

void
function_types(SdcFunction *f, const SdcArg *args, char *to, size_t size)
{
    size_t n = 0;
    *to = '\0';
    for (int i = 0; i < f->info->nruntime && n < size; i++) {
        char type[120];
        const SdcDesc *d = args[i].kind == SDC_ARG_DESC ? args[i].v.ptr : NULL;
        bool tuple = args[i].kind == SDC_ARG_TUPLE;
        uint64_t key = tuple ? 0 : arg_key(f->info, i, &args[i]);
        if (d || tuple)
            snprintf(type, sizeof type, tuple ? "tuple%d" : "desc%d",
                     tuple ? args[i].dtype : d->rank);
        else if (key & KEY_ONE || args[i].kind == SDC_ARG_NONE ||
                 !arg_text(f, i, &args[i], type, sizeof type))
            snprintf(type, sizeof type, "const");
        n += (size_t)snprintf(to + n, size - n, "%s%.*s", i ? "," : "",
                              (int)strcspn(type, ":"), type);
    }
}

SdcStatus
function_compile(SdcFunction *f, const SdcArg *args, int nargs, SdcKernel **out)
{
    (void)nargs;
    return compile_spec_of(f, args, KERNEL_BESIDE, out);
}

/* The words of one argument: of a tuple its length and its elements'. */
static int
add_key(const KernelInfo *info, int i, const SdcArg *a, uint64_t *key, int n)
{
    if (n >= MAX_KEY)
        return n;
    if (a->kind != SDC_ARG_TUPLE) {
        key[n] = arg_key(info, i, a);
        return n + 1;
    }
    const SdcArg *items = a->v.ptr;
    key[n++] = (uint64_t)SDC_ARG_TUPLE << 8 | (uint64_t)a->dtype << 16;
    for (int k = 0; k < a->dtype; k++)
        n = add_key(info, i, &items[k], key, n);
    return n;
}

/* How many words it has: with heuristics the integers themselves are in it, too. */
static int
make_key(const KernelInfo *info, const SdcArg *args, uint64_t *key)
{
    int n = 0;
    for (int i = 0; i < info->nruntime; i++)
        n = add_key(info, i, &args[i], key, n);
    for (int i = 0; i < info->nruntime && info->heuristics && n < MAX_KEY; i++)
        key[n++] = args[i].kind == SDC_ARG_INT ? (uint64_t)args[i].v.i : 0;
    return n;
}

static SpecEntry *
find_spec(SdcFunction *f, const uint64_t *key, int n)
{
    SpecEntry *e = atomic_load_explicit(&f->specs, memory_order_acquire);
    while (e && (e->nkey != n || memcmp(e->key, key, (size_t)n * sizeof *key) != 0))
        e = e->next;
    return e;
}

static SdcStatus
add_spec(SdcFunction *f, const SdcArg *args, const uint64_t *key, int nkey,
         SdcKernel **out)
{
    size_t size = (size_t)nkey * sizeof *key;
    SdcStatus status = context_lock(f->mod->cx, &f->mod->lock);
    if (status != SDC_OK)
        return status;
    SpecEntry *e = find_spec(f, key, nkey); /* another thread may have been faster */
    if (!e) {
        SpecEntry *made = malloc(sizeof *made + size);
        if (!made)
            status = context_fail(f->mod->cx, SDC_ERROR_MEMORY, "out of memory");
        else
            status = compile_spec_of(f, args, KERNEL_UNLOADED, &made->kernel);
        if (status == SDC_OK) {
            status = kernel_ready(made->kernel, args, f->info->nruntime);
            if (status != SDC_OK)
                kernel_free(made->kernel);
        }
        if (status == SDC_OK) {
            memcpy(made->key, key, size);
            made->nkey = nkey;
            made->next = atomic_load_explicit(&f->specs, memory_order_relaxed);
            atomic_store_explicit(&f->specs, made, memory_order_release);
            e = made;
        } else {
            free(made);
        }
    }
    pthread_mutex_unlock(&f->mod->lock);
    *out = e ? e->kernel : NULL;
    return status;
}

SdcStatus
sdc_specialize(SdcFunction *f, const SdcArg *args, int nargs, SdcKernel **out)
{
    if (out)
        *out = NULL;
    if (!f)
        return SDC_ERROR_ARGUMENT;
    const KernelInfo *info = f->info;
    SdcStatus status = context_args(f->mod->cx, info, args, nargs);
    if (status != SDC_OK)
        return status;
    if (!out)
        return context_fail(f->mod->cx, SDC_ERROR_ARGUMENT, "specialize: no place to put "
                                                            "the kernel");
    uint64_t key[MAX_KEY];
    int nkey = make_key(info, args, key);
    if (nkey >= MAX_KEY)
        return context_fail(f->mod->cx, SDC_ERROR_ARGUMENT,
                            "'%s' has more than %d arguments and elements of tuples",
                            info->name, MAX_KEY);
    SpecEntry *e = find_spec(f, key, nkey);
    if (!e)
        return add_spec(f, args, key, nkey, out);
    *out = e->kernel;
    return SDC_OK;
}

SdcStatus
sdc_launch(SdcFunction *f, SdcGrid grid, const SdcArg *args, int nargs, void *stream)
{
    SdcKernel *k;
    SdcStatus status = sdc_specialize(f, args, nargs, &k);
    return status == SDC_OK ? sdc_kernel_launch(k, grid, args, nargs, stream) : status;
}

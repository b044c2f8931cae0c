/* Modules: a source file, its kernels and their parameters. The text is kept and parsed
   again for each specialization: that costs a fraction of a millisecond, and leaves
   nothing that two compiles could share by mistake. */
#include "runtime/internal.h"

#include "ir/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_SOURCE = 4 << 20, MAX_TIR = 64 << 20 };

static void
kernel_info_done(KernelInfo *k)
{
    for (int i = 0; i < k->nparam; i++) {
        free((char *)(uintptr_t)k->params[i].name);
        free((char *)(uintptr_t)k->params[i].type);
    }
    free(k->params);
    free(k->no_specialize);
    free(k->runtime);
    free(k->name);
}

static void
module_free(SdcModule *m)
{
    for (SdcFunction *f = m->functions; f;) {
        SdcFunction *next = f->next;
        for (SpecEntry *e = atomic_load(&f->specs); e;) {
            SpecEntry *after = e->next;
            kernel_free(e->kernel);
            free(e);
            e = after;
        }
        tuned_free(atomic_load(&f->tuned));
        for (int i = 0; i < f->nbind; i++)
            free(f->bind[i]);
        free(f->bind);
        free(f);
        f = next;
    }
    for (SdcKernel *k = m->list; k;) {
        SdcKernel *next = k->next;
        kernel_free(k);
        k = next;
    }
    for (int i = 0; i < m->nkernel; i++)
        kernel_info_done(&m->kernels[i]);
    free(m->kernels);
    free(m->path);
    free(m->text);
    free(m->tune);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void
sdc_module_unload(SdcModule *m)
{
    if (!m || context_lock(m->cx, &m->cx->lock) != SDC_OK)
        return;
    if (m->prev)
        m->prev->next = m->next;
    else
        m->cx->modules = m->next;
    if (m->next)
        m->next->prev = m->prev;
    pthread_mutex_unlock(&m->cx->lock);
    module_free(m);
}

static bool
copy_param(KernelInfo *k, int i, const FrontParam *from)
{
    k->params[i] = (SdcParam){
        .name = strdup(from->name),
        .type = from->annotated ? strdup(from->annotated) : NULL,
        .is_constexpr = from->is_constexpr,
        .has_default = from->has_default,
    };
    k->nparam = i + 1;
    k->no_specialize[i] = from->no_specialize;
    if (!from->is_constexpr)
        k->runtime[k->nruntime++] = i;
    return k->params[i].name && (!from->annotated || k->params[i].type);
}

static bool
copy_kernel(KernelInfo *k, const char *name, const FrontParam *params, int n)
{
    k->name = strdup(name);
    k->params = calloc((size_t)n + 1, sizeof *k->params);
    k->no_specialize = calloc((size_t)n + 1, sizeof *k->no_specialize);
    k->runtime = calloc((size_t)n + 1, sizeof *k->runtime);
    if (!k->name || !k->params || !k->no_specialize || !k->runtime)
        return false;
    for (int i = 0; i < n; i++)
        if (!copy_param(k, i, &params[i]))
            return false;
    return true;
}

/* Parameters of tile IR are typed already, and nothing is left to specialize. */
static bool
tir_kernel(Session *s, KernelInfo *k, const Func *f)
{
    FrontParam *p = arena_array(&s->perm, FrontParam, f->body->narg + 1);
    for (int i = 0; i < f->body->narg; i++)
        p[i] = (FrontParam){
            .name = f->params[i].name ? f->params[i].name : "",
            .annotated = f->params[i].sig ? f->params[i].sig : "i32",
            .no_specialize = true,
        };
    return copy_kernel(k, f->name, p, f->body->narg);
}

static Source
module_source(const SdcModule *m)
{
    return (Source){ .path = m->path, .text = m->text, .size = m->size };
}

static SdcStatus
load_tir(Session *s, SdcModule *m)
{
    Source *src = arena_new(&s->perm, Source);
    *src = module_source(m);
    Module *ir = module_read(s, src);
    if (!ir || !diag_ok(&s->diag))
        return SDC_OK; /* the messages decide */
    m->kernels = calloc((size_t)ir->nfunc + 1, sizeof *m->kernels);
    if (!m->kernels)
        return SDC_ERROR_MEMORY;
    for (int i = 0; i < ir->nfunc; i++) {
        m->nkernel = i + 1;
        if (!tir_kernel(s, &m->kernels[i], ir->funcs[i]))
            return SDC_ERROR_MEMORY;
    }
    return SDC_OK;
}

static SdcStatus
load_triton(Session *s, SdcModule *m)
{
    CompileJob job;
    module_job(m, &job);
    Source *src = arena_new(&s->perm, Source);
    *src = job.src;
    FrontModule *fm = front_load(s, src, &job.front);
    if (!fm || !diag_ok(&s->diag))
        return SDC_OK;
    int n = front_kernel_count(fm);
    m->kernels = calloc((size_t)n + 1, sizeof *m->kernels);
    if (!m->kernels)
        return SDC_ERROR_MEMORY;
    for (int i = 0; i < n; i++) {
        const FrontParam *params;
        int count;
        const char *name = front_kernel_name(fm, i);
        if (!front_params(fm, name, &params, &count))
            return SDC_OK;
        m->nkernel = i + 1;
        if (!copy_kernel(&m->kernels[i], name, params, count))
            return SDC_ERROR_MEMORY;
        m->kernels[i].heuristics = front_has_heuristics(fm, name);
    }
    return SDC_OK;
}

static SdcStatus
load_call(Session *s, void *arg)
{
    SdcModule *m = arg;
    return m->is_tir ? load_tir(s, m) : load_triton(s, m);
}

void
module_job(const SdcModule *m, CompileJob *job)
{
    *job = (CompileJob){
        .src = module_source(m),
        .is_tir = m->is_tir,
        .debug = m->cx->debug,
        .check = m->cx->check,
        .front = {
            .include_dirs = (const char *const *)m->cx->include_dirs,
            .ninclude = m->cx->ninclude,
            .defines = (const char *const *)m->cx->defines,
            .ndefine = m->cx->ndefine,
        },
    };
}

/* Tile IR has a line that begins with "kernel @"; in Python no line can. */
static bool
looks_like_tir(const char *text, size_t size)
{
    const char *end = text + size;
    for (const char *p = text; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((nl ? nl : end) - p);
        if (len > 8 && memcmp(p, "kernel @", 8) == 0)
            return true;
        p += len + 1;
    }
    return false;
}

static bool
ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Takes the text over. */
static SdcStatus
load_owned(SdcContext *cx, const char *name, char *text, size_t size, SdcLang lang,
           SdcModule **out)
{
    SdcModule *m = calloc(1, sizeof *m);
    char *path = strdup(name);
    if (!m || !path || pthread_mutex_init(&m->lock, NULL) != 0) {
        free(m);
        free(path);
        free(text);
        return context_fail(cx, SDC_ERROR_MEMORY, "out of memory");
    }
    m->cx = cx;
    m->path = path;
    m->text = text;
    m->size = size;
    m->is_tir =
        lang == SDC_LANG_TIR ||
        (lang == SDC_LANG_AUTO && (ends_with(name, ".tir") ||
                                   (!ends_with(name, ".tk") && !ends_with(name, ".py") &&
                                    looks_like_tir(text, size))));
    size_t most = m->is_tir ? MAX_TIR : MAX_SOURCE;
    SdcStatus status;
    if (size > most)
        status = context_fail(cx, SDC_ERROR_SOURCE, "'%s' has %zu bytes, at most %zu MiB",
                              name, size, most >> 20);
    else
        status = context_call(cx, load_call, m);
    if (status == SDC_OK)
        status = context_lock(cx, &cx->lock);
    if (status != SDC_OK) {
        module_free(m);
        return status;
    }
    m->next = cx->modules;
    if (m->next)
        m->next->prev = m;
    cx->modules = m;
    pthread_mutex_unlock(&cx->lock);
    *out = m;
    return SDC_OK;
}

SdcStatus
sdc_module_load_text(SdcContext *cx, const char *name, const char *text, size_t size,
                     SdcLang lang, SdcModule **out)
{
    if (out)
        *out = NULL;
    if (!cx || !out || !name || (!text && size))
        return context_fail(cx, SDC_ERROR_ARGUMENT,
                            "module: name, text and out are needed");
    if ((unsigned)lang > SDC_LANG_TIR)
        return context_fail(cx, SDC_ERROR_ARGUMENT, "module: no language has number %d",
                            (int)lang);
    if (size > MAX_TIR)
        return context_fail(cx, SDC_ERROR_SOURCE, "'%s' has %zu bytes, at most %d MiB",
                            name, size, MAX_TIR >> 20);
    char *copy = malloc(size + 1);
    if (!copy)
        return context_fail(cx, SDC_ERROR_MEMORY, "out of memory");
    if (size)
        memcpy(copy, text, size);
    copy[size] = '\0';
    return load_owned(cx, name, copy, size, lang, out);
}

/* Reads up to `most` + 1 bytes: the file may grow, or be a pipe of unknown length. */
static char *
read_all(int fd, size_t most, size_t *size)
{
    size_t n = 0, cap = 64 << 10;
    char *text = malloc(cap + 1);
    while (text) {
        ssize_t got = read(fd, text + n, cap - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        n += (size_t)got;
        if (got == 0 || n > most) {
            text[n] = '\0';
            *size = n;
            return text;
        }
        if (n == cap) {
            cap *= 2;
            char *more = realloc(text, cap + 1);
            if (!more)
                break;
            text = more;
        }
    }
    free(text);
    return NULL;
}

SdcStatus
sdc_module_load_file(SdcContext *cx, const char *path, SdcModule **out)
{
    if (out)
        *out = NULL;
    if (!cx || !out || !path)
        return context_fail(cx, SDC_ERROR_ARGUMENT, "module: path and out are needed");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return context_fail(cx, SDC_ERROR_FILE, "cannot read '%s': %s", path,
                            strerror(errno));
    struct stat st;
    size_t most = ends_with(path, ".tir") ? MAX_TIR : MAX_SOURCE;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size > most) {
        close(fd);
        return context_fail(cx, SDC_ERROR_SOURCE, "'%s' has %lld bytes, at most %zu MiB",
                            path, (long long)st.st_size, most >> 20);
    }
    size_t size = 0;
    char *text = read_all(fd, MAX_TIR, &size);
    int why = errno;
    close(fd);
    if (!text)
        return context_fail(cx, why == ENOMEM ? SDC_ERROR_MEMORY : SDC_ERROR_FILE,
                            "cannot read '%s': %s", path, strerror(why));
    return load_owned(cx, path, text, size, SDC_LANG_AUTO, out);
}

int
sdc_module_kernel_count(const SdcModule *m)
{
    return m ? m->nkernel : 0;
}

const char *
sdc_module_kernel_name(const SdcModule *m, int i)
{
    return m && i >= 0 && i < m->nkernel ? m->kernels[i].name : NULL;
}

const KernelInfo *
module_find_kernel(const SdcModule *m, const char *name)
{
    for (int i = 0; i < m->nkernel; i++)
        if (front_kernel_is(m->kernels[i].name, name))
            return &m->kernels[i];
    return NULL;
}

/* Puts a name behind the others, as long as there is room. */
static void
list_name(char *to, size_t size, const char *name)
{
    size_t n = strlen(to);
    snprintf(to + n, size - n, "%s'%s'", n ? ", " : "", name);
}

typedef struct Missing {
    SdcModule *m;
    const char *name;
} Missing;

/* The file is read again: it says which functions might have been meant. */
static SdcStatus
missing_call(Session *s, void *arg)
{
    Missing *missing = arg;
    CompileJob job;
    module_job(missing->m, &job);
    Source *src = arena_new(&s->perm, Source);
    *src = job.src;
    FrontModule *fm = front_load(s, src, &job.front);
    if (fm && diag_ok(&s->diag))
        compile_kernel(s, fm, missing->name);
    return SDC_OK; /* the messages decide */
}

SdcStatus
module_no_kernel(SdcModule *m, const char *name)
{
    if (!m->is_tir) {
        Missing missing = {m, *name || !m->nkernel ? name : NULL};
        SdcStatus status = context_call(m->cx, missing_call, &missing);
        if (status != SDC_OK)
            return status == SDC_ERROR_SOURCE ? SDC_ERROR_ARGUMENT : status;
    }
    char names[400] = "";
    for (int i = 0; i < m->nkernel; i++)
        list_name(names, sizeof names, m->kernels[i].name);
    if (!*name && m->nkernel)
        return context_fail(m->cx, SDC_ERROR_ARGUMENT, "name one kernel of the file: %s",
                            names);
    return context_fail(m->cx, SDC_ERROR_ARGUMENT,
                        "no kernel is named '%s'; kernels of the file: %s", name,
                        *names ? names : "none");
}

SdcStatus
module_no_param(SdcModule *m, const KernelInfo *info, const char *bind)
{
    char names[400] = "";
    if (!strchr(bind, '='))
        return context_fail(m->cx, SDC_ERROR_ARGUMENT,
                            "'%s' binds nothing: write NAME=VALUE", bind);
    for (int i = 0; i < info->nparam; i++)
        list_name(names, sizeof names, info->params[i].name);
    return context_fail(m->cx, SDC_ERROR_ARGUMENT,
                        "'%s' binds no parameter of '%s'; its parameters: %s", bind,
                        info->name, *names ? names : "none");
}

SdcStatus
module_request(SdcModule *m, const char *what, const char *kernel,
               const char *const *bind, int nbind, const void *out,
               const KernelInfo **info)
{
    *info = kernel ? module_find_kernel(m, kernel) : NULL;
    if (!kernel)
        return context_fail(m->cx, SDC_ERROR_ARGUMENT, "%s: no name of a kernel", what);
    if (!*info)
        return module_no_kernel(m, kernel);
    if (!out)
        return context_fail(m->cx, SDC_ERROR_ARGUMENT, "%s: no place to put it", what);
    return context_binds(m->cx, what, bind, nbind);
}

SdcStatus
sdc_module_params(SdcModule *m, const char *kernel, const SdcParam **params, int *n)
{
    const KernelInfo *k;
    if (!m)
        return SDC_ERROR_ARGUMENT;
    SdcStatus status = module_request(m, "params", kernel, NULL, 0,
                                      params && n ? params : NULL, &k);
    if (status != SDC_OK)
        return status;
    *params = k->params;
    *n = k->nparam;
    return SDC_OK;
}

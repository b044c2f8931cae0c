/* sdc_bundle: one kernel for many targets and signatures, as one object and its header.

   Each pair is compiled like any other specialization; what a launch must know is in the
   metadata, and the tables around it are codegen/bundle.c's. */
#include "runtime/internal.h"

#include "runtime/rt/expr.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Aot {
    SdcModule *mod;
    const KernelInfo *info;
    const SdcBundleOptions *o;
    AotCode *code;
    int ncode;
    int ngroup;
    const char **names; /* of the groups; in the session that joins */
    SdcOutput *object, *header;
} Aot;

/* ---------------------------------------------------------------- grid */

/* A name of the grid's expression: an argument of the launch, or what is bound. */
static int
grid_name(void *user, const char *name, size_t n, int64_t *value)
{
    const SdcrtMeta *meta = user;
    for (int i = 0, arg = 0; i < meta->nsource; i++) {
        const SdcrtSource *s = &meta->sources[i];
        bool same = strlen(s->name) == n && memcmp(s->name, name, n) == 0;
        bool number = s->bound == SDCRT_BOUND_INT || s->bound == SDCRT_BOUND_BOOL;
        if (same && number) {
            *value = s->i;
            return 1;
        }
        if (same && !s->is_constexpr) {
            *value = arg;
            for (int p = 0; p < meta->nparam; p++)
                if (meta->params[p].source == i && meta->params[p].kind == SDCRT_INT)
                    return 2;
            return 0;
        }
        arg += !s->is_constexpr;
    }
    static const char *const option[] = {"num_warps", "num_stages", "num_ctas"};
    const int64_t have[] = {meta->num_warps, meta->num_stages, meta->num_ctas};
    for (int i = 0; i < COUNT_OF(option); i++)
        if (strlen(option[i]) == n && memcmp(option[i], name, n) == 0) {
            *value = have[i];
            return 1;
        }
    return 0;
}

static bool
set_grid(Session *s, SdcrtMeta *meta, const char *text)
{
    SdcrtExprError e = {0};
    if (!text ||
        sdcrt_expr_parse(text, strlen(text), grid_name, meta, meta->grid, 3, &e) > 0)
        return true;
    diag_error(&s->diag, (Loc){0}, "grid: %s%s%s%s at column %d of '%s'",
               *e.name ? "'" : "", e.name, *e.name ? "' " : "", e.what, e.column, text);
    return false;
}

/* ---------------------------------------------------------------- compiling */

static SdcStatus
keep_code(Session *s, CompileResult *r, void *arg)
{
    Aot *a = arg;
    AotCode *c = &a->code[a->ncode];
    if (r->nmeta < 1)
        bug(&s->fail, "code without metadata");
    c->meta = malloc(sizeof *c->meta);
    c->bytes = malloc(r->size + 1);
    if (!c->meta || !c->bytes) {
        free(c->meta);
        free(c->bytes);
        *c = (AotCode){0};
        return SDC_ERROR_MEMORY;
    }
    *c->meta = r->meta[0];
    memcpy(c->bytes, r->bytes, r->size);
    c->bytes[r->size] = '\0';
    c->size = r->size;
    a->ncode++;
    return set_grid(s, c->meta, a->o->grid) ? SDC_OK : SDC_ERROR_ARGUMENT;
}

static SdcStatus
assemble(Aot *a, AotCode *c)
{
    char why[2000];
    size_t size;
    char *cubin =
        ptxas_run(a->o->ptxas, c->bytes, c->meta->target, false, &size, why, sizeof why);
    if (!cubin)
        return context_fail(a->mod->cx, SDC_ERROR_ENVIRONMENT, "%s", why);
    free(c->bytes);
    c->bytes = cubin;
    c->size = size;
    c->kind = SDCRT_CODE_CUBIN;
    return SDC_OK;
}

static SdcStatus
compile_one(Aot *a, const char *target, const char *signature)
{
    bool gpu = strcmp(target, "cpu") != 0;
    CompileJob job;
    module_job(a->mod, &job);
    job.bitcode = !gpu;
    job.opt = (SdcCompileOptions){
        .kernel = a->info->name,
        .signature = signature,
        .bind = a->o->bind,
        .nbind = a->o->nbind,
        .target = target,
        .cpu = a->o->cpu,
        .emit = gpu ? SDC_EMIT_ASM : SDC_EMIT_OBJ,
    };
    SdcStatus status = compile_call(a->mod->cx, &job, keep_code, a);
    if (status != SDC_OK)
        return status;
    AotCode *c = &a->code[a->ncode - 1];
    c->kind = gpu ? SDCRT_CODE_PTX : SDCRT_CODE_CPU;
    return gpu && a->o->ptxas ? assemble(a, c) : SDC_OK;
}

static SdcStatus
compile_all(Aot *a)
{
    const SdcBundleOptions *o = a->o;
    int nt = o->ntarget ? o->ntarget : 1, ns = o->nsignature ? o->nsignature : 1;
    SdcStatus status = SDC_OK;
    a->code = calloc((size_t)nt * (size_t)ns + 1, sizeof *a->code);
    if (!a->code)
        return context_fail(a->mod->cx, SDC_ERROR_MEMORY, "out of memory");
    for (int t = 0; t < nt; t++)
        for (int i = 0; i < ns && status == SDC_OK; i++)
            status = compile_one(a, o->ntarget ? o->targets[t] : "cpu",
                                 o->nsignature ? o->signatures[i] : NULL);
    return status;
}

/* ---------------------------------------------------------------- groups */

/* The type of a source parameter as C has it: the text of its signature without what is
   promised of the value; "" when it is bound, and so of any type. */
static void
type_of(const SdcrtMeta *meta, int source, char *to, size_t size)
{
    const SdcrtSource *s = &meta->sources[source];
    *to = '\0';
    for (int p = 0; p < meta->nparam && !*to; p++) {
        const SdcrtParam *param = &meta->params[p];
        if (param->source != source)
            continue;
        const char *sig = param->sig;
        if (s->rank)
            snprintf(to, size, "desc%d%.*s", s->rank, (int)strcspn(sig, ":[>"), sig);
        else
            snprintf(to, size, "%.*s", (int)strcspn(sig, ":"), sig);
    }
}

static bool
same_types(const SdcrtMeta *a, const SdcrtMeta *b)
{
    for (int i = 0; i < a->nsource; i++) {
        char x[48], y[48];
        type_of(a, i, x, sizeof x);
        type_of(b, i, y, sizeof y);
        if (*x && *y && strcmp(x, y) != 0)
            return false;
    }
    return true;
}

/* Code joins the first group with whose every member it agrees. */
static void
make_groups(Aot *a)
{
    for (int i = 0; i < a->ncode; i++) {
        int g = 0;
        for (int k = 0; k < i && g < a->ngroup; k++)
            if (a->code[k].group == g && !same_types(a->code[k].meta, a->code[i].meta)) {
                g++;
                k = -1;
            }
        a->code[i].group = g;
        a->ngroup = g == a->ngroup ? g + 1 : a->ngroup;
    }
}

/* The type of a parameter in a group, when groups differ in it; else "". */
static void
telling_type(const Aot *a, int g, int param, char *to, size_t size)
{
    bool differs = false;
    *to = '\0';
    for (int i = 0; i < a->ncode && !*to; i++)
        if (a->code[i].group == g)
            type_of(a->code[i].meta, param, to, size);
    for (int i = 0; i < a->ncode && !differs; i++) {
        char other[48];
        type_of(a->code[i].meta, param, other, sizeof other);
        differs = *to && *other && strcmp(to, other) != 0;
    }
    if (!differs)
        *to = '\0';
}

/* The kernel's name and the types in which groups differ, "add_fp32_fp16"; one type is
   enough when in every group all those are the same. */
static const char *
group_name(Session *s, const Aot *a, int g)
{
    bool same = true;
    for (int i = 0; i < a->ngroup; i++) {
        char first[48] = "", type[48];
        for (int p = 0; p < a->info->nparam; p++) {
            telling_type(a, i, p, type, sizeof type);
            same &= !*type || !*first || strcmp(first, type) == 0;
            if (*type)
                strcpy(first, type);
        }
    }
    Buf b;
    buf_init(&b, &s->perm);
    buf_str(&b, a->o->name ? a->o->name : a->info->name);
    bool done = a->ngroup < 2;
    for (int p = 0; p < a->info->nparam && !done; p++) {
        char type[48];
        telling_type(a, g, p, type, sizeof type);
        if (*type)
            buf_str(&b, "_");
        for (const char *c = type; *c; c++)
            if (isalnum((unsigned char)*c))
                buf_add(&b, c, 1);
        done = same && *type;
    }
    return b.s;
}

/* ---------------------------------------------------------------- joining */

static bool
is_c_name(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_')
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return !*name;
}

static SdcStatus
join_call(Session *s, void *arg)
{
    Aot *a = arg;
    BundleGroup *groups = arena_array(&s->perm, BundleGroup, a->ngroup + 1);
    const char **names = arena_array(&s->perm, const char *, a->ngroup + 1);
    for (int g = 0; g < a->ngroup; g++) {
        BundleCode *code = arena_array(&s->perm, BundleCode, a->ncode + 1);
        names[g] = group_name(s, a, g);
        groups[g] = (BundleGroup){.name = names[g], .code = code};
        for (int i = 0; i < a->ncode; i++)
            if (a->code[i].group == g)
                code[groups[g].ncode++] = (BundleCode){a->code[i].meta, a->code[i].kind,
                                                       a->code[i].bytes, a->code[i].size};
    }
    CodegenOut out;
    Buf b;
    buf_init(&b, &s->perm);
    aot_header(&b, a->mod, a->code, a->ncode, names, a->ngroup);
    if (!codegen_bundle(s, a->o->cpu, groups, a->ngroup, &out))
        return SDC_OK; /* the messages decide */
    a->object = output_new(out.bytes, out.size);
    a->header = output_new(b.s, b.n);
    return a->object && a->header ? SDC_OK : SDC_ERROR_MEMORY;
}

static SdcStatus
check_options(SdcModule *m, const SdcBundleOptions *o, const KernelInfo **info)
{
    if (!o || o->ntarget < 0 || (o->ntarget && !o->targets) || o->nsignature < 0 ||
        (o->nsignature && !o->signatures) || o->nbind < 0 || (o->nbind && !o->bind))
        return context_fail(m->cx, SDC_ERROR_ARGUMENT, "bundle: bad options");
    const char *name = o->kernel ? o->kernel : m->nkernel == 1 ? m->kernels[0].name : "";
    *info = module_find_kernel(m, name);
    if (!*info)
        return context_fail(m->cx, SDC_ERROR_ARGUMENT,
                            o->kernel ? "no kernel is named '%s'"
                                      : "name one kernel of the file%s",
                            name);
    if (!is_c_name(o->name ? o->name : name))
        return context_fail(m->cx, SDC_ERROR_ARGUMENT,
                            "'%s' is no name for a function in C: give another",
                            o->name ? o->name : name);
    return SDC_OK;
}

SdcStatus
sdc_bundle(SdcModule *m, const SdcBundleOptions *o, SdcOutput **object,
           SdcOutput **header)
{
    Aot a = {.mod = m, .o = o};
    if (object)
        *object = NULL;
    if (header)
        *header = NULL;
    if (!m || !object || !header)
        return SDC_ERROR_ARGUMENT;
    SdcStatus status = check_options(m, o, &a.info);
    if (status != SDC_OK)
        return status;
    status = compile_all(&a);
    if (status == SDC_OK) {
        make_groups(&a);
        status = context_call(m->cx, join_call, &a);
    }
    for (int i = 0; i < a.ncode; i++) {
        free(a.code[i].meta);
        free(a.code[i].bytes);
    }
    free(a.code);
    if (status == SDC_OK) {
        *object = a.object;
        *header = a.header;
    } else {
        sdc_output_free(a.object);
        sdc_output_free(a.header);
    }
    return status;
}

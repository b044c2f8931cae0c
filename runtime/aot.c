/* sdc_bundle: one kernel for many targets and signatures, as one object and its header.

   Each pair is compiled like any other specialization; what a launch must know is in the
   metadata, and the tables around it are codegen/bundle.c's. */
#include "runtime/rt/expr.h"
#include "runtime/tune.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Aot {
    SdcModule *mod;
    const KernelInfo *info;
    const SdcBundleOptions *o;
    const char *cpu; /* that code is generated for now */
    bool levels;     /* several, chosen at launch */
    AotCode *code;
    int ncode, cap;
    int ngroup;
    const char **names; /* of the groups; in the session that joins */
    SdcOutput *object, *header;
} Aot;

/* ---------------------------------------------------------------- grid */

static bool
is_named(const SdcrtSource *s, const char *name, size_t n)
{
    return strlen(s->name) == n && memcmp(s->name, name, n) == 0;
}

/* A name of the grid's expression: an argument of the launch, or what is bound. */
static int
grid_name(void *user, const char *name, size_t n, int64_t *value)
{
    const SdcrtMeta *meta = user;
    SdcrtArgument args[SDCRT_MAX_ARGUMENTS];
    for (int i = 0; i < meta->nsource + meta->nleaf; i++) {
        const SdcrtSource *s = i < meta->nsource ? &meta->sources[i]
                                                 : &meta->leaves[i - meta->nsource];
        if (is_named(s, name, n) &&
            (s->bound == SDCRT_BOUND_INT || s->bound == SDCRT_BOUND_BOOL)) {
            *value = s->i;
            return 1;
        }
    }
    for (int i = 0, nargs = sdcrt_meta_arguments(meta, args); i < nargs; i++) {
        if (!is_named(args[i].what, name, n))
            continue;
        *value = i;
        return args[i].slot >= 0 && !args[i].what->rank &&
                       meta->params[args[i].slot].kind == SDCRT_INT
                   ? 2
                   : 0;
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

bool
meta_grid(SdcrtMeta *meta, const char *text, SdcrtExprError *e)
{
    return sdcrt_expr_parse(text, strlen(text), grid_name, meta, meta->grid, 3, e) > 0;
}

static bool
set_grid(Session *s, SdcrtMeta *meta, const char *text)
{
    SdcrtExprError e = {0};
    if (!text || meta_grid(meta, text, &e))
        return true;
    diag_error(&s->diag, (Loc){0}, "grid: %s%s%s%s at column %d of '%s'",
               *e.name ? "'" : "", e.name, *e.name ? "' " : "", e.what, e.column, text);
    diag_note(&s->diag, (Loc){0}, "without a grid the launchers take it as an argument");
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
        ptxas_run(a->o->ptxas, c->bytes, c->meta->target, a->o->lineinfo, &size, why,
                  sizeof why);
    if (!cubin)
        return context_fail(a->mod->cx, SDC_ERROR_ENVIRONMENT, "%s", why);
    free(c->bytes);
    c->bytes = cubin;
    c->size = size;
    c->kind = SDCRT_CODE_CUBIN;
    return SDC_OK;
}

static SdcStatus
compile_one(Aot *a, const char *target, const char *signature, const char *const *bind,
            int nbind, JobMaps maps)
{
    bool gpu = strcmp(target, "cpu") != 0;
    CompileJob job;
    module_job(a->mod, &job);
    job.bitcode = !gpu;
    job.check = 0; /* who launches it knows nothing of arrays */
    job.maps = maps;
    job.opt = (SdcCompileOptions){
        .kernel = a->info->name,
        .signature = signature,
        .bind = bind,
        .nbind = nbind,
        .target = target,
        .cpu = a->cpu,
        .emit = gpu ? SDC_EMIT_ASM : SDC_EMIT_OBJ,
        .lineinfo = a->o->lineinfo,
    };
    if (a->ncode == a->cap) {
        int cap = 2 * a->cap + 16;
        AotCode *more = realloc(a->code, (size_t)cap * sizeof *more);
        if (!more)
            return context_fail(a->mod->cx, SDC_ERROR_MEMORY, "out of memory");
        a->code = more;
        a->cap = cap;
    }
    a->code[a->ncode] = (AotCode){0};
    SdcStatus status = compile_call(a->mod->cx, &job, keep_code, a);
    if (status != SDC_OK)
        return status;
    AotCode *c = &a->code[a->ncode - 1];
    if (!gpu && c->meta->hooks)
        return context_fail(a->mod->cx, SDC_ERROR_UNSUPPORTED,
                            "not supported yet: '%s' prints or asserts, ahead of time "
                            "for the CPU",
                            a->info->name);
    if (!gpu && a->levels)
        snprintf(c->meta->target, sizeof c->meta->target, "cpu:%s", a->cpu);
    c->kind = gpu ? SDCRT_CODE_PTX : SDCRT_CODE_CPU;
    return gpu && a->o->ptxas ? assemble(a, c) : SDC_OK;
}

/* "M=4096 N=64" as a point of the code that was tuned for it. */
static void
add_point(SdcrtMeta *m, const char *key)
{
    SdcrtArgument args[SDCRT_MAX_ARGUMENTS];
    int n = 0, nargs = sdcrt_meta_arguments(m, args);
    if (m->npoint == SDCRT_MAX_POINT)
        return;
    for (const char *p = key; *p && n < SDCRT_MAX_KEY; n++) {
        size_t len = strcspn(p, "=");
        int at = -1;
        for (int i = 0; i < nargs; i++)
            if (is_named(args[i].what, p, len))
                at = i;
        if (at < 0 || !p[len])
            return;
        m->key_arg[n] = at;
        m->point[m->npoint][n] = strtoll(p + len + 1, NULL, 10);
        p += strcspn(p, " ");
        p += strspn(p, " ");
    }
    m->nkey = n;
    m->npoint++;
}

/* What the caller binds, but for what the configuration says. */
static int
tuned_binds(const Aot *a, char *config, const char **bind, int most)
{
    int n = 0;
    for (char *p = config; *p && n < most;) {
        bind[n++] = p;
        p += strcspn(p, " ");
        while (*p == ' ')
            *p++ = '\0';
    }
    int said = n;
    for (int i = 0; i < a->o->nbind && n < most; i++) {
        size_t len = strcspn(a->o->bind[i], "=") + 1;
        bool given = false;
        for (int k = 0; k < said; k++)
            given |= strncmp(bind[k], a->o->bind[i], len) == 0;
        if (!given)
            bind[n++] = a->o->bind[i];
    }
    return n;
}

typedef struct Tuned {
    const SdcrtMeta *meta;
    char types[2048];
} Tuned;

static SdcStatus
types_call(Session *s, void *arg)
{
    Tuned *t = arg;
    Buf b;
    buf_init(&b, &s->tmp);
    buf_str(&b, "");
    tune_types(&b, t->meta);
    snprintf(t->types, sizeof t->types, "%s", b.s);
    return SDC_OK;
}

/* The configurations that were tuned for this target and these types, in the place of the
   code that stands last; it stays when there are none. */
static SdcStatus
compile_tuned(Aot *a, const char *target, const char *signature)
{
    enum { MOST = 256 };
    Tuned t = {.meta = a->code[a->ncode - 1].meta};
    TuneEntry *entry = malloc(MOST * sizeof *entry);
    SdcStatus status = entry
                           ? context_call(a->mod->cx, types_call, &t)
                           : context_fail(a->mod->cx, SDC_ERROR_MEMORY, "out of memory");
    int n = status == SDC_OK
                ? tune_entries(a->o->tune, a->info->name, NULL, target, t.types, entry,
                               MOST)
                : 0;
    int plain = a->ncode - 1;
    for (int i = 0; i < n && status == SDC_OK; i++) {
        const char *bind[TUNE_MAX_BIND];
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen |= strcmp(entry[k].config, entry[i].config) == 0;
        if (seen)
            continue;
        char *config = strdup(entry[i].config);
        int nbind = config ? tuned_binds(a, config, bind, TUNE_MAX_BIND) : 0;
        status = compile_one(a, target, signature, bind, nbind, MAPS_ANY);
        for (int k = i; k < n && status == SDC_OK; k++)
            if (strcmp(entry[k].config, entry[i].config) == 0)
                add_point(a->code[a->ncode - 1].meta, entry[k].key);
        free(config);
    }
    free(entry);
    if (n && status == SDC_OK) {
        free(a->code[plain].meta);
        free(a->code[plain].bytes);
        a->ncode--;
        memmove(&a->code[plain], &a->code[plain + 1],
                (size_t)(a->ncode - plain) * sizeof *a->code);
    }
    return status;
}

static bool
stores_by_maps(const SdcrtMeta *m)
{
    for (int i = 0; i < m->nmap; i++)
        if (m->maps[i].written)
            return true;
    return false;
}

/* Where code takes tensor maps, the kernel comes once more with those of loads alone, and
   once more without, for arguments that do not allow the rest. */
static SdcStatus
compile_for(Aot *a, const char *target, const char *signature)
{
    const SdcBundleOptions *o = a->o;
    int first = a->ncode;
    bool maps = false, stores = false;
    SdcStatus status = compile_one(a, target, signature, o->bind, o->nbind, MAPS_ANY);
    if (status == SDC_OK && o->tune)
        status = compile_tuned(a, target, signature);
    for (int i = first; i < a->ncode; i++) {
        maps |= a->code[i].meta->guarded_args;
        stores |= stores_by_maps(a->code[i].meta);
    }
    if (status == SDC_OK && stores)
        status = compile_one(a, target, signature, o->bind, o->nbind, MAPS_LOADS);
    if (status == SDC_OK && maps)
        status = compile_one(a, target, signature, o->bind, o->nbind, MAPS_NONE);
    return status;
}

/* For the CPU: once, or for each of "x86-64-v2,x86-64-v4". */
static SdcStatus
compile_cpu(Aot *a, const char *signature)
{
    const char *list = a->o->cpu;
    a->cpu = list;
    if (!list || !strchr(list, ','))
        return compile_for(a, "cpu", signature);
    SdcStatus status = SDC_OK;
    a->levels = true;
    for (const char *p = list; *p && status == SDC_OK;) {
        char level[32];
        size_t n = strcspn(p, ",");
        snprintf(level, sizeof level, "%.*s", (int)(n < 31 ? n : 31), p);
        if (!sdcrt_cpu_level(level))
            return context_fail(a->mod->cx, SDC_ERROR_ARGUMENT,
                                "bundle: '%s' is no level of x86-64: of several, each is "
                                "x86-64, x86-64-v2, x86-64-v3, x86-64-v4 or "
                                "sapphirerapids",
                                level);
        a->cpu = level;
        status = compile_for(a, "cpu", signature);
        p += n + (p[n] == ',');
    }
    return status;
}

static SdcStatus
compile_all(Aot *a)
{
    const SdcBundleOptions *o = a->o;
    int nt = o->ntarget ? o->ntarget : 1, ns = o->nsignature ? o->nsignature : 1;
    SdcStatus status = SDC_OK;
    for (int t = 0; t < nt; t++)
        for (int i = 0; i < ns && status == SDC_OK; i++) {
            const char *target = o->ntarget ? o->targets[t] : "cpu";
            const char *signature = o->nsignature ? o->signatures[i] : NULL;
            status = strcmp(target, "cpu") == 0 ? compile_cpu(a, signature)
                                                : compile_for(a, target, signature);
        }
    return status;
}

/* ---------------------------------------------------------------- groups */

/* Room for the type of a tuple. */
enum { TYPE_MAX = SDCRT_MAX_LEAVES * 48 };

/* The type of an argument as C has it: the text of its signature without what is promised
   of the value; "" when it is bound, and so of any type. */
static void
argument_type(const SdcrtMeta *meta, const SdcrtArgument *a, char *to, size_t size)
{
    const char *sig = a->slot < 0 ? "" : meta->params[a->slot].sig;
    if (a->slot >= 0 && a->what->rank)
        snprintf(to, size, "desc%d%.*s", a->what->rank, (int)strcspn(sig, ":[>"), sig);
    else
        snprintf(to, size, "%.*s", (int)strcspn(sig, ":"), sig);
}

/* That of a parameter of the source; of a tuple "tuple2 i32 x", where x is bound. */
static void
type_of(const SdcrtMeta *meta, int source, char *to, size_t size)
{
    SdcrtArgument args[SDCRT_MAX_ARGUMENTS];
    const SdcrtSource *s = &meta->sources[source];
    size_t at = 0;
    *to = '\0';
    if (s->is_tuple)
        at = (size_t)snprintf(to, size, "tuple%d", s->nleaf);
    for (int i = 0, n = sdcrt_meta_arguments(meta, args); i < n; i++) {
        char type[48];
        if (args[i].source != source || at >= size)
            continue;
        argument_type(meta, &args[i], type, sizeof type);
        at += (size_t)snprintf(to + at, size - at, "%s%s", s->is_tuple ? " " : "",
                               s->is_tuple && !*type ? "x" : type);
    }
}

static bool
same_types(const SdcrtMeta *a, const SdcrtMeta *b)
{
    SdcrtArgument in_a[SDCRT_MAX_ARGUMENTS], in_b[SDCRT_MAX_ARGUMENTS];
    int n = sdcrt_meta_arguments(a, in_a);
    if (sdcrt_meta_arguments(b, in_b) != n)
        return false;
    for (int i = 0; i < n; i++) {
        char x[48], y[48];
        argument_type(a, &in_a[i], x, sizeof x);
        argument_type(b, &in_b[i], y, sizeof y);
        if (in_a[i].source != in_b[i].source || (*x && *y && strcmp(x, y) != 0))
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
        char other[TYPE_MAX];
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
        char first[TYPE_MAX] = "", type[TYPE_MAX];
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
        char type[TYPE_MAX];
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
    if (!codegen_bundle(s, a->levels ? "x86-64" : a->o->cpu, groups, a->ngroup, &out))
        return SDC_OK; /* the messages decide */
    a->object = output_new(out.bytes, out.size);
    a->header = output_new(b.s, b.n);
    return a->object && a->header ? SDC_OK : SDC_ERROR_MEMORY;
}

static SdcStatus
check_options(SdcModule *m, const SdcBundleOptions *o, const KernelInfo **info)
{
    if (!o)
        return context_fail(m->cx, SDC_ERROR_ARGUMENT, "bundle: no options");
    if (o->ntarget < 0 || (o->ntarget && !o->targets))
        return context_fail(m->cx, SDC_ERROR_ARGUMENT,
                            "bundle: %d targets are announced, and none given",
                            o->ntarget);
    if (o->nsignature < 0 || (o->nsignature && !o->signatures))
        return context_fail(m->cx, SDC_ERROR_ARGUMENT,
                            "bundle: %d signatures are announced, and none given",
                            o->nsignature);
    for (int i = 0; i < o->ntarget; i++)
        if (!o->targets[i])
            return context_fail(m->cx, SDC_ERROR_ARGUMENT, "bundle: target %d is NULL",
                                i);
    SdcStatus fine = context_binds(m->cx, "bundle", o->bind, o->nbind);
    if (fine != SDC_OK)
        return fine;
    const char *name = o->kernel ? o->kernel : m->nkernel == 1 ? m->kernels[0].name : "";
    *info = module_find_kernel(m, name);
    if (!*info)
        return module_no_kernel(m, name);
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
    if (object)
        *object = NULL;
    if (header)
        *header = NULL;
    if (!m)
        return SDC_ERROR_ARGUMENT;
    if (!object || !header)
        return context_fail(m->cx, SDC_ERROR_ARGUMENT,
                            "bundle: no place to put the object and the header");
    SdcBundleOptions known;
    if (!OPTIONS_READ(o, known))
        return options_wrong(m->cx, "bundle", o->size, sizeof known);
    Aot a = {.mod = m, .o = o};
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
        sdc_output_destroy(a.object);
        sdc_output_destroy(a.header);
    }
    return status;
}

/* The C header of a bundle: for each group of code with the same types of arguments a
   launcher for each kind of target, typed and inline, that comes down to sdc/bundle.h.
   Everything is read from the metadata that the object carries too. */
#include "runtime/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_C = SDCRT_NAME_MAX + 8 };

typedef struct CType {
    const char *sig, *c, *slot;
} CType;

static const CType scalars[] = {
    {"fp32", "float", "f32"},   {"fp64", "double", "f64"},   {"i1", "int32_t", "int"},
    {"i8", "int8_t", "int"},    {"i16", "int16_t", "int"},   {"i32", "int32_t", "int"},
    {"i64", "int64_t", "int"},  {"u8", "uint8_t", "int"},    {"u16", "uint16_t", "int"},
    {"u32", "uint32_t", "int"}, {"fp16", "uint16_t", "int"}, {"bf16", "uint16_t", "int"},
};

static CType
scalar_type(const char *sig)
{
    size_t n = strcspn(sig, ":");
    for (int i = 0; i < COUNT_OF(scalars); i++)
        if (strlen(scalars[i].sig) == n && memcmp(scalars[i].sig, sig, n) == 0)
            return scalars[i];
    return (CType){sig, n == 3 && memcmp(sig, "u64", 3) == 0 ? "uint64_t" : "int64_t",
                   "int"};
}

/* What a pointer points to; elements that C has no type for are void. */
static const char *
pointee(const char *sig)
{
    const char *name = sig + 1 + (sig[1] == 'k');
    CType t = scalar_type(name);
    bool plain = strcmp(t.slot, "int") != 0 || (*name != 'f' && *name != 'b');
    if (strncmp(name, "i1:", 3) == 0 || strcmp(name, "i1") == 0)
        return "uint8_t";
    return plain && (*name == 'i' || *name == 'u' || strncmp(name, "fp32", 4) == 0 ||
                     strncmp(name, "fp64", 4) == 0)
               ? t.c
               : "void";
}

/* The argument's name where C and C++ allow it. */
static void
c_name(const SdcrtSource *s, int i, char *to, size_t size)
{
    static const char *const taken[] = {
        "auto",      "bool",      "case",         "catch",
        "char",      "const",     "default",      "delete",
        "do",        "double",    "enum",         "explicit",
        "export",    "extern",    "float",        "friend",
        "goto",      "inline",    "int",          "long",
        "mutable",   "namespace", "new",          "operator",
        "private",   "protected", "public",       "register",
        "restrict",  "short",     "signed",       "sizeof",
        "static",    "struct",    "switch",       "template",
        "this",      "throw",     "typedef",      "typename",
        "union",     "unsigned",  "using",        "virtual",
        "void",      "volatile",  "asm",          "requires",
        "concept",   "sdc_gpu",   "sdc_stream",   "sdc_grid",
        "sdc_error", "sdc_pool",  "sdc_call",     "sdc_args",
        "alignas",   "alignof",   "decltype",     "constexpr",
        "nullptr",   "noexcept",  "thread_local", "static_assert",
        "typeid",    "wchar_t",   "and",          "or",
        "not",       "xor",
    };
    snprintf(to, size, "%s", s->name);
    for (int k = 0; k < COUNT_OF(taken); k++)
        if (strcmp(taken[k], s->name) == 0)
            snprintf(to, size, "%s_", s->name);
    for (const char *p = s->name; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_') { /* letters beyond ASCII */
            snprintf(to, size, "arg%d", i);
            return;
        }
}

typedef struct Group {
    const AotCode *code;
    int n, number;
    const SdcrtMeta *meta; /* of its first code */
    bool has_grid, cpu, gpu;
    int nargs;
    SdcrtArgument args[SDCRT_MAX_ARGUMENTS]; /* of the first code */
    char name[SDCRT_MAX_ARGUMENTS][NAME_MAX_C];
} Group;

/* An element of a tuple, "shape_0", may be called as another argument is. */
static void
give_names(Group *g)
{
    for (int i = 0; i < g->nargs; i++) {
        c_name(g->args[i].what, i, g->name[i], NAME_MAX_C);
        for (int k = 0; k < g->nargs; k++) {
            const char *other = k < i ? g->name[k] : g->args[k].what->name;
            if (k == i || !g->meta->sources[g->args[i].source].is_tuple ||
                strcmp(other, g->name[i]) != 0)
                continue;
            snprintf(g->name[i], NAME_MAX_C, "%.20s_arg%d", g->args[i].what->name, i);
            k = -1;
        }
    }
}

static void
look_at(const AotCode *code, int n, int number, Group *g)
{
    *g = (Group){.code = code, .n = n, .number = number};
    for (int i = 0; i < n; i++) {
        if (code[i].group != number)
            continue;
        g->meta = g->meta ? g->meta : code[i].meta;
        g->cpu |= code[i].kind == SDCRT_CODE_CPU;
        g->gpu |= code[i].kind != SDCRT_CODE_CPU;
    }
    g->has_grid = g->meta->grid[0].n > 0;
    g->nargs = sdcrt_meta_arguments(g->meta, g->args);
    give_names(g);
}

/* The parameter of the first code in the group that has not bound the argument; NULL:
   bound in all. `written`: some code stores through it. */
static const SdcrtParam *
open_param(const Group *g, int arg, bool *written)
{
    const SdcrtParam *found = NULL;
    SdcrtArgument args[SDCRT_MAX_ARGUMENTS];
    *written = false;
    for (int i = 0; i < g->n; i++) {
        const SdcrtMeta *meta = g->code[i].meta;
        if (g->code[i].group != g->number)
            continue;
        sdcrt_meta_arguments(meta, args);
        if (args[arg].slot < 0)
            continue;
        found = found ? found : &meta->params[args[arg].slot];
        *written |= meta->params[args[arg].slot].written != 0;
    }
    return found;
}

/* "const float *x" and how it becomes a slot. */
static void
one_param(Buf *b, const Group *g, int arg, bool declare)
{
    bool written;
    const char *name = g->name[arg];
    const SdcrtSource *s = g->args[arg].what;
    const SdcrtParam *p = open_param(g, arg, &written);
    bool desc = s->rank > 0, ptr = p && p->kind == SDCRT_PTR && !desc;
    CType t = p && !ptr && !desc              ? scalar_type(p->sig)
              : s->bound == SDCRT_BOUND_FLOAT ? scalars[0]
              : s->bound == SDCRT_BOUND_INT || s->bound == SDCRT_BOUND_BOOL
                  ? (CType){"i64", "int64_t", "int"}
                  : (CType){"", "", "ptr"};
    if (desc || ptr || !*t.c)
        t.slot = "ptr";
    if (!declare)
        buf_printf(b, "sdcrt_slot_%s(%s)", t.slot, name);
    else if (desc)
        buf_printf(b, "const SdcrtTensor *%s", name);
    else if (ptr)
        buf_printf(b, "%s%s *%s", written ? "" : "const ", pointee(p->sig), name);
    else if (*t.c)
        buf_printf(b, "%s %s", t.c, name);
    else
        buf_printf(b, "const void *%s", name);
}

static void
function(Buf *b, const Group *g, const char *name, const char *kind, const char *before)
{
    buf_printf(b, "\nstatic inline SdcrtStatus\n%s_%s(%s", name, kind, before);
    if (!g->has_grid)
        buf_str(b, ",\n    SdcGrid sdc_programs");
    for (int i = 0; i < g->nargs; i++) {
        buf_str(b, ",\n    ");
        one_param(b, g, i, true);
    }
    buf_printf(b,
               ",\n    SdcrtError *sdc_error)\n{\n    const uint64_t sdc_args[] = {");
    for (int i = 0; i < g->nargs; i++) {
        buf_str(b, "\n        ");
        one_param(b, g, i, false);
        buf_str(b, ",");
    }
    const char *first = strcmp(kind, "cuda") == 0  ? "sdc_gpu, sdc_stream"
                        : strcmp(kind, "cpu") == 0 ? "sdc_pool"
                                                   : "sdc_call";
    buf_printf(b,
               "%s\n    };\n    return sdcrt_bundle_%s(&%s_bundle,\n"
               "        %s, %s, sdc_args, %d, sdc_error);\n}\n",
               g->nargs ? "" : " 0", kind, name, first,
               g->has_grid ? "NULL" : "&sdc_programs", g->nargs);
}

/* "x=*fp32:16 ", "BLOCK=128 "; nothing for what has no text. `slot`: -1 when bound. */
static void
describe_source(Buf *b, const SdcrtMeta *m, const SdcrtSource *s, int slot)
{
    if (slot >= 0)
        buf_printf(b, "%s=%s%s ", s->name, m->params[slot].sig,
                   m->params[slot].div >= 16 ? ":16" : "");
    else if (s->bound == SDCRT_BOUND_INT || s->bound == SDCRT_BOUND_BOOL)
        buf_printf(b, "%s=%lld ", s->name, (long long)s->i);
    else if (s->bound == SDCRT_BOUND_FLOAT)
        buf_printf(b, "%s=%g ", s->name, s->f);
    else if (s->bound == SDCRT_BOUND_NONE)
        buf_printf(b, "%s=None ", s->name);
}

/* What one code is: "sm_90a  PTX  *fp32:16, i32, BLOCK=128; 4 warps, 3 stages". */
static void
describe(Buf *b, const AotCode *c)
{
    static const char *const kind[] = {"object code", "PTX", "cubin"};
    const SdcrtMeta *m = c->meta;
    buf_printf(b, "     %-8s %-12s", m->target, kind[c->kind]);
    SdcrtArgument args[SDCRT_MAX_ARGUMENTS];
    int nargs = sdcrt_meta_arguments(m, args);
    for (int i = 0; i < m->nsource; i++) {
        if (m->sources[i].is_constexpr)
            describe_source(b, m, &m->sources[i], -1);
        for (int k = 0; k < nargs; k++)
            if (args[k].source == i)
                describe_source(b, m, args[k].what, args[k].slot);
    }
    if (c->kind != SDCRT_CODE_CPU)
        buf_printf(b, "num_warps=%d num_stages=%d%s", m->num_warps, m->num_stages,
                   m->overlap ? " launch_pdl=True" : "");
    if (m->npoint)
        buf_printf(b, ", tuned for %d key%s", m->npoint, m->npoint > 1 ? "s" : "");
    buf_str(b, "\n");
}

static void
group_header(Buf *b, const Group *g, const char *name)
{
    buf_printf(b,
               "\n/* ---- %s\n\n"
               "   The code behind it, of which a launch takes the first that its\n"
               "   arguments allow, for the best target that the device runs:\n\n",
               name);
    for (int i = 0; i < g->n; i++)
        if (g->code[i].group == g->number)
            describe(b, &g->code[i]);
    buf_printf(b, "*/\nextern const SdcrtBundle %s_bundle;\n", name);
    if (g->gpu)
        function(b, g, name, "cuda", "SdcrtCuda *sdc_gpu, void *sdc_stream");
    if (g->cpu) {
        function(b, g, name, "cpu", "SdcrtPool *sdc_pool");
        function(b, g, name, "prepare", "SdcrtCall *sdc_call");
    }
}

void
aot_header(Buf *b, const SdcModule *mod, const AotCode *code, int n,
           const char *const *names, int ngroup)
{
    const char *slash = strrchr(mod->path, '/');
    buf_printf(
        b,
        "/* Made by sdc %s from %s; do not edit. Link with the object that was made\n"
        "   with it and with libsdcrt.\n\n"
        "   NAME_cuda(gpu, stream, ...)   on a GPU, see sdc/cuda.h; returns at once\n"
        "   NAME_cpu(pool, ...)           on the threads of a pool; NULL: the "
        "caller's\n"
        "   NAME_prepare(call, ...)       for the caller's own threads, with\n"
        "                                 sdcrt_run_range, see SdcrtCall\n\n"
        "   All may be called from any thread. What is wrong comes back as a status,\n"
        "   and as text in *sdc_error unless that is NULL. */\n",
        sdc_version(), slash ? slash + 1 : mod->path);
    buf_str(b, "#ifndef SDC_");
    for (const char *p = names[0]; *p; p++) {
        char up = (char)toupper((unsigned char)*p);
        buf_add(b, &up, 1);
    }
    buf_str(b, "_H\n#define SDC_");
    for (const char *p = names[0]; *p; p++) {
        char up = (char)toupper((unsigned char)*p);
        buf_add(b, &up, 1);
    }
    buf_str(b, "_H\n\n#include <sdc/bundle.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n"
               "#endif\n");
    for (int i = 0; i < ngroup; i++) {
        Group g;
        look_at(code, n, i, &g);
        group_header(b, &g, names[i]);
    }
    buf_str(b, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

/* A chain of kernels as one: the text of a kernel that calls them one after another is
   written behind the source and loaded as any other, so that a fused kernel is
   specialized, launched, cached and shipped as all are.

       --fuse 'scale,add' --bind 'scale.y=add.x'          (and what is bound to nothing)
     =>
       @triton.jit
       def scale_add(x, n, BLOCK: tl.constexpr, y, out):
           b0 = fused_buffer("scale.y", "fp32")
           n = fused_shared("n", n)
           scale(x=x, y=b0, n=n, BLOCK=BLOCK)
           add(x=b0, y=y, out=out, n=n, BLOCK=BLOCK)

   The frontend inlines the calls; passes/access/fuse_forward.c turns loads of a fused
   buffer into the values stored to it, and refuses chains whose programs would have to
   wait for others.
 */
#include "runtime/internal.h"

#include "ir/base/vec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHAIN = 32 };

/* One parameter of one kernel of the chain. */
typedef struct Slot {
    int kernel, param;
    int group;         /* slots that one binding after another made one */
    const char *name;  /* parameter of the fused kernel; NULL: a buffer of its own */
    const char *dtype; /* of such a buffer, or NULL */
} Slot;

typedef struct Stage {
    const char *alias; /* by which bindings name it */
    const KernelInfo *info;
    int first; /* its first slot */
} Stage;

typedef struct Fuse {
    SdcModule *mod;
    const SdcFuseOptions *opt;
    Session *s;
    Stage stage[MAX_CHAIN];
    int nstage;
    Vec(Slot) slots;
    const char *name;
    Buf text;
    char *out; /* the text, when it was made */
    size_t size;
} Fuse;

/* ---- reading what is asked for */

static bool
bad(Fuse *f, const char *fmt, const char *what)
{
    diag_error(&f->s->diag, (Loc){0}, fmt, what);
    return false;
}

static bool
is_name(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    while (isalnum((unsigned char)*s) || *s == '_')
        s++;
    return *s == '\0';
}

/* The next of several texts, without blanks around it; NULL after the last. */
static char *
next_item(char **at, char sep)
{
    char *item = *at;
    if (!item)
        return NULL;
    char *end = strchr(item, sep);
    *at = end ? end + 1 : NULL;
    if (end)
        *end = '\0';
    item += strspn(item, " \t\n");
    for (size_t n = strlen(item); n && strchr(" \t\n", item[n - 1]);)
        item[--n] = '\0';
    return item;
}

static int
find_stage(const Fuse *f, const char *alias)
{
    for (int i = 0; i < f->nstage; i++)
        if (strcmp(f->stage[i].alias, alias) == 0)
            return i;
    return -1;
}

/* "kernel" or "alias=kernel" */
static bool
add_stage(Fuse *f, char *item)
{
    char *kernel = item, *alias = next_item(&kernel, '=');
    kernel = kernel ? next_item(&kernel, '=') : alias;
    const KernelInfo *info = module_find_kernel(f->mod, kernel);
    if (!info)
        return bad(f, "no kernel is named '%s'", kernel);
    if (!is_name(alias))
        return bad(f, "'%s' is no name", alias);
    if (find_stage(f, alias) >= 0)
        return bad(f, "'%s' comes twice: give one another name, 'second=kernel'", alias);
    if (f->nstage == MAX_CHAIN)
        return bad(f, "too many kernels, at '%s'", alias);
    f->stage[f->nstage] = (Stage){alias, info, f->slots.n};
    for (int i = 0; i < info->nparam; i++)
        vec_push(&f->s->perm, &f->slots,
                 ((Slot){.kernel = f->nstage, .param = i, .group = f->slots.n}));
    f->nstage++;
    return true;
}

/* "kernel.param"; -1 after an error. */
static int
find_slot(Fuse *f, char *text)
{
    char *param = text, *alias = next_item(&param, '.');
    int k = find_stage(f, alias);
    if (k < 0) {
        bad(f, "'%s' is no kernel of the chain", alias);
        return -1;
    }
    param = next_item(&param, '.');
    const KernelInfo *info = f->stage[k].info;
    for (int i = 0; i < info->nparam; i++)
        if (strcmp(info->params[i].name, param) == 0)
            return f->stage[k].first + i;
    diag_error(&f->s->diag, (Loc){0}, "kernel '%s' has no parameter '%s'", info->name,
               param);
    return -1;
}

static void
join(Fuse *f, int from, int to)
{
    for (int i = 0; i < f->slots.n; i++)
        if (f->slots.at[i].group == from)
            f->slots.at[i].group = to;
}

/* "a.y=b.x", "a.y=b.x:fp16" or "a.y=name" */
static bool
add_binding(Fuse *f, char *item)
{
    char *right = item, *left = next_item(&right, '=');
    if (!right || !strchr(left, '.'))
        return bad(f,
                   "'%s' binds nothing: write 'kernel.parameter=kernel.parameter' or "
                   "'kernel.parameter=name'",
                   left);
    char *dtype = next_item(&right, '='), *to = next_item(&dtype, ':');
    if (right)
        return bad(f, "'%s' is bound twice in one binding", left);
    dtype = dtype ? next_item(&dtype, ':') : NULL;
    int x = find_slot(f, left);
    if (x < 0)
        return false;
    if (dtype && sdc_dtype_by_name(dtype, strlen(dtype)) == SDC_DTYPE_NONE)
        return bad(f, "'%s' is no type of elements", dtype);
    if (strchr(to, '.')) {
        int y = find_slot(f, to);
        if (y < 0)
            return false;
        join(f, f->slots.at[y].group, f->slots.at[x].group);
        f->slots.at[y].dtype = dtype;
        f->slots.at[x].name = f->slots.at[x].name ? f->slots.at[x].name : "";
        f->slots.at[y].name = f->slots.at[y].name ? f->slots.at[y].name : "";
    } else if (!is_name(to)) {
        return bad(f, "'%s' is no name", to);
    } else if (dtype) {
        return bad(f, "'%s' is a parameter: its type is the argument's", to);
    } else {
        f->slots.at[x].name = to;
    }
    return true;
}

static const SdcParam *
param_of(const Fuse *f, const Slot *slot)
{
    return &f->stage[slot->kernel].info->params[slot->param];
}

/* Names of groups: the one that a binding gave, the parameter's own where nothing was
   bound, none for a buffer between kernels. */
static bool
settle_names(Fuse *f)
{
    for (int i = 0; i < f->slots.n; i++) {
        Slot *slot = &f->slots.at[i];
        const char *name = NULL, *dtype = NULL;
        bool bound = false;
        for (int k = 0; k < f->slots.n; k++) {
            const Slot *other = &f->slots.at[k];
            if (other->group != slot->group)
                continue;
            bound |= other->name != NULL;
            name = other->name && *other->name ? other->name : name;
            dtype = other->dtype ? other->dtype : dtype;
        }
        if (!bound)
            name = param_of(f, slot)->name;
        if (!name && param_of(f, slot)->is_constexpr)
            return bad(f, "'%s' is a constexpr and no buffer: bind it to a name",
                       param_of(f, slot)->name);
        slot->dtype = dtype ? dtype : "fp32";
        slot->name = name ? name : ""; /* "" stays: a buffer */
    }
    return true;
}

static bool
read_options(Fuse *f)
{
    char *at = arena_printf(&f->s->perm, "%s", f->opt->kernels);
    for (char *item; (item = next_item(&at, ','));)
        if (!add_stage(f, item))
            return false;
    at = f->opt->bind && *f->opt->bind ? arena_printf(&f->s->perm, "%s", f->opt->bind)
                                       : NULL;
    for (char *item; (item = next_item(&at, ','));)
        if (!add_binding(f, item))
            return false;
    return settle_names(f);
}

/* ---- the text */

/* Is this the first slot that becomes the parameter, or the buffer? *kernels: how many
   take it; *is_constexpr: whether one wants it at compile time. */
static bool
is_first(const Fuse *f, int at, int *kernels, bool *is_constexpr)
{
    const Slot *slot = &f->slots.at[at];
    int last = -1;
    *kernels = 0;
    *is_constexpr = false;
    for (int i = 0; i < f->slots.n; i++) {
        const Slot *other = &f->slots.at[i];
        if (*slot->name ? strcmp(other->name, slot->name) != 0
                        : *other->name || other->group != slot->group)
            continue;
        if (i < at)
            return false;
        *kernels += other->kernel != last;
        last = other->kernel;
        *is_constexpr |= param_of(f, other)->is_constexpr;
    }
    return true;
}

static void
write_head(Fuse *f)
{
    buf_printf(&f->text,
               "\n\nimport triton\nimport triton.language.core as sdc_core\n\n\n"
               "@triton.jit\ndef %s(",
               f->name);
    const char *sep = "";
    for (int i = 0; i < f->slots.n; i++) {
        const Slot *slot = &f->slots.at[i];
        int kernels;
        bool is_constexpr;
        if (!*slot->name || !is_first(f, i, &kernels, &is_constexpr))
            continue;
        buf_printf(&f->text, "%s%s", sep, slot->name);
        if (is_constexpr)
            buf_str(&f->text, ": sdc_core.constexpr");
        else if (param_of(f, slot)->type)
            buf_printf(&f->text, ": \"%s\"", param_of(f, slot)->type);
        sep = ", ";
    }
    buf_str(&f->text, "):\n");
}

static void
write_buffers(Fuse *f)
{
    for (int i = 0; i < f->slots.n; i++) {
        const Slot *slot = &f->slots.at[i];
        int kernels;
        bool is_constexpr;
        if (!is_first(f, i, &kernels, &is_constexpr) || is_constexpr)
            continue;
        if (!*slot->name)
            buf_printf(&f->text,
                       "    sdc_b%d = sdc_core.fused_buffer(\"%s.%s\", \"%s\")\n",
                       slot->group, f->stage[slot->kernel].alias, param_of(f, slot)->name,
                       slot->dtype);
        else if (kernels > 1)
            buf_printf(&f->text, "    %s = sdc_core.fused_shared(\"%s\", %s)\n",
                       slot->name, slot->name, slot->name);
    }
}

static void
write_calls(Fuse *f)
{
    for (int k = 0; k < f->nstage; k++) {
        const Stage *st = &f->stage[k];
        buf_printf(&f->text, "    %s(", st->info->name);
        for (int i = 0; i < st->info->nparam; i++) {
            const Slot *slot = &f->slots.at[st->first + i];
            buf_printf(&f->text, "%s%s=", i ? ", " : "", st->info->params[i].name);
            if (*slot->name)
                buf_str(&f->text, slot->name);
            else
                buf_printf(&f->text, "sdc_b%d", slot->group);
        }
        buf_str(&f->text, ")\n");
    }
}

static SdcStatus
fuse_call(Session *s, void *arg)
{
    Fuse *f = arg;
    f->s = s;
    Buf name;
    buf_init(&name, &s->perm);
    buf_str(&name, "");
    if (!read_options(f))
        return SDC_OK;
    for (int i = 0; i < f->nstage; i++)
        buf_printf(&name, "%s%s", i ? "_" : "", f->stage[i].alias);
    f->name = f->opt->name ? f->opt->name : name.s;
    if (!is_name(f->name) || module_find_kernel(f->mod, f->name)) {
        bad(f, "the fused kernel cannot be named '%s'", f->name);
        return SDC_OK;
    }
    buf_init(&f->text, &s->perm);
    buf_printf(&f->text, "%.*s", (int)f->mod->size, f->mod->text);
    write_head(f);
    write_buffers(f);
    write_calls(f);
    f->size = f->text.n;
    f->out = strdup(f->text.s);
    return f->out ? SDC_OK : SDC_ERROR_MEMORY;
}

SdcStatus
sdc_fuse(SdcModule *mod, const SdcFuseOptions *options, SdcModule **out)
{
    if (out)
        *out = NULL;
    if (!mod)
        return SDC_ERROR_ARGUMENT;
    SdcFuseOptions known;
    if (!OPTIONS_READ(options, known))
        return options_wrong(mod->cx, "fuse", options->size, sizeof known);
    if (!options || !options->kernels)
        return context_fail(mod->cx, SDC_ERROR_ARGUMENT, "fuse: no kernels are named");
    if (!out)
        return context_fail(mod->cx, SDC_ERROR_ARGUMENT,
                            "fuse: no place to put the module");
    if (mod->is_tir)
        return context_fail(mod->cx, SDC_ERROR_UNSUPPORTED,
                            "not supported yet: to fuse kernels of tile IR");
    Fuse f = {.mod = mod, .opt = options};
    SdcStatus status = context_call(mod->cx, fuse_call, &f);
    if (status == SDC_OK)
        status =
            sdc_module_load_text(mod->cx, mod->path, f.out, f.size, SDC_LANG_TRITON, out);
    free(f.out);
    return status;
}

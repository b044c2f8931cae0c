/* The generated pages of docs/, from the tables that the compiler is built from, so that
   they cannot fall behind. */
#include "runtime/cli/tables.h"

#include "frontend/builtin.h"
#include "frontend/prelude_text.h"
#include "ir/op.h"
#include "passes/pass.h"

#include <stdio.h>
#include <string.h>

typedef struct Bit {
    uint32_t bit;
    const char *name;
} Bit;

static void
print_bits(uint32_t set, const Bit *bits, int n)
{
    const char *sep = "";
    for (int i = 0; i < n; i++) {
        if (!(set & bits[i].bit))
            continue;
        printf("%s%s", sep, bits[i].name);
        sep = ", ";
    }
}

/* A cell of a Markdown table: a bar would end it. */
static void
print_cell(const char *text)
{
    for (; *text; text++) {
        if (*text == '|' || *text == '<')
            putchar('\\');
        putchar(*text);
    }
}

static void
print_range(int min, int max)
{
    if (min == max)
        printf("%d", min);
    else if (max < 0)
        printf("%d+", min);
    else
        printf("%d-%d", min, max);
}

static void
print_count(int n)
{
    if (n < 0)
        printf("any");
    else
        printf("%d", n);
}

static void
print_effects(uint32_t fx)
{
    static const char *const resources[] = { "",        "global",  "shared",
                                             "barrier", "scratch", "any memory" };
    if (fx == FX_KEEP) {
        printf("kept");
        return;
    }
    const char *sep = "";
    for (; fx; fx >>= 16) {
        uint32_t operand = fx & 15, resource = fx >> 4 & 15, kind = fx >> 8 & 15;
        printf("%s", sep);
        sep = "; ";
        if (kind & ACC_ALLOC) {
            printf("allocates");
            continue;
        }
        printf("%s%s%s%s", kind & ACC_ASYNC ? "async " : "",
               kind & ACC_READ ? "reads" : "",
               (kind & ACC_READ_WRITE) == ACC_READ_WRITE ? " and " : "",
               kind & ACC_WRITE ? "writes" : "");
        printf(" %s", resources[resource]);
        if (operand != 15)
            printf(" (operand %u)", operand);
    }
}

void
print_ops(void)
{
    static const Bit traits[] = {
        { T_PURE, "pure" },
        { T_ELEMENTWISE, "elementwise" },
        { T_COMMUTES, "commutes" },
        { T_TERMINATOR, "terminator" },
        { T_STRUCTURED, "structured" },
        { T_SHAPE, "shape" },
        { T_SPEC, "speculatable" },
        { T_CONVERGENT, "convergent" },
        { T_CROSS, "cross-lane" },
        { T_ISOLATED, "isolated" },
        { T_CPU, "cpu" },
        { T_GPU, "gpu" },
        { T_SM90, "sm_90" },
        { T_SM90A, "sm_90a" },
        { T_DOT, "dot" },
    };
    static const struct {
        const char *name;
        int min, max, nres, nregion;
        uint32_t traits, effects;
        const char *doc;
    } ops[] = {
#define OP(id, name, min, max, nres, nreg, tr, fx, rule, doc)                            \
    { name, min, max, nres, nreg, tr, fx, doc },
#include "ir/ops.def"
    };
    static const struct {
        const char *name, *kind, *doc;
    } attrs[] = {
#define ATTR(id, name, kind, doc) { name, #kind, doc },
#include "ir/attrs.def"
    };
    static const struct {
        const char *name;
        int bits;
        const char *kind;
    } types[] = {
#define SCALAR(id, name, bits, kind) { name, bits, #kind },
#include "ir/types.def"
    };

    printf("# Operations of tile IR\n\n"
           "Generated from `ir/ops.def`, `ir/attrs.def` and `ir/types.def` by\n"
           "`ninja -C build docs`; how they fit together is in [ir.md](ir.md).\n\n"
           "A *speculatable* operation may run where the program would not have run it.\n"
           "Operations without the trait *pure* keep their order as far as their effects "
           "overlap.\n\n"
           "| operation | operands | results | regions | traits | effects | meaning |\n"
           "|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        printf("| `%s` | ", ops[i].name);
        print_range(ops[i].min, ops[i].max);
        printf(" | ");
        print_count(ops[i].nres);
        printf(" | ");
        print_count(ops[i].nregion);
        printf(" | ");
        print_bits(ops[i].traits, traits, (int)(sizeof traits / sizeof *traits));
        printf(" | ");
        print_effects(ops[i].effects);
        printf(" | ");
        print_cell(ops[i].doc);
        printf(" |\n");
    }
    printf("\n## Attributes\n\n| attribute | kind | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++) {
        printf("| `%s` | %s | ", attrs[i].name, attrs[i].kind);
        print_cell(attrs[i].doc);
        printf(" |\n");
    }
    printf("\n## Scalar types\n\n| type | bits | class |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        printf("| `%s` | %d | %s |\n", types[i].name, types[i].bits, types[i].kind);
}

void
print_passes(void)
{
    static const Bit forms[] = {
#define FORM(id, bit, name, doc) { bit, name },
#include "ir/forms.def"
    };
    static const char *const docs[] = {
#define FORM(id, bit, name, doc) doc,
#include "ir/forms.def"
    };
    static const struct {
        const char *name, *phase;
        uint32_t needs, makes, before;
        const char *doc;
    } passes[] = {
#define PASS(fn, name, phase, needs, makes, before, doc)                                \
    { name, #phase, needs, makes, before, doc },
#include "passes/passes.def"
    };
    const int n = (int)(sizeof forms / sizeof *forms);

    printf("# Passes\n\n"
           "Generated from `passes/passes.def` and `ir/forms.def` by `ninja -C build "
           "docs`; the\n"
           "order in which they run, with reasons, is in `passes/pipeline.c`.\n\n"
           "A pass is refused if a form that it needs does not hold, and after a pass "
           "that makes a\n"
           "form which it must come before. Code generation is refused for a kernel "
           "that is not in\n"
           "all forms of its target: `access` and `cpu`, or on a GPU all but `cpu`.\n"
           "`--verify-each` checks after each pass that they hold.\n\n"
           "| form | bit | what holds |\n|---|---|---|\n");
    for (int i = 0; i < n; i++) {
        printf("| `%s` | %u | ", forms[i].name, forms[i].bit);
        print_cell(docs[i]);
        printf(" |\n");
    }
    printf("\n| pass | phase | needs | makes | before | what it does |\n"
           "|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        printf("| `%s` | ", passes[i].name);
        for (const char *c = passes[i].phase; *c; c++)
            putchar(*c | 0x20);
        printf(" | ");
        print_bits(passes[i].needs, forms, n);
        printf(" | ");
        print_bits(passes[i].makes, forms, n);
        printf(" | ");
        print_bits(passes[i].before, forms, n);
        printf(" | ");
        print_cell(passes[i].doc);
        printf(" |\n");
    }
}

/* The signature as it is written: tl.load(pointer, mask=None), x.sum(..),
   tl.math.exp(x). */
static void
print_places(const char *name, unsigned where, const char *params)
{
    static const struct {
        unsigned bit;
        const char *prefix;
    } places[] = {
        {IN_TL, "tl."},     {IN_PY, ""},       {IN_TRITON, "triton."},
        {IN_LIB, "libdevice."}, {IN_CUDA, "tl.extra.cuda."},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!(where & places[i].bit))
            continue;
        printf("`%s%s%s%s%s`", places[i].prefix, name, params ? "(" : "",
               params ? params : "", params ? ")" : "");
        break;
    }
    if (!(where & (IN_TL | IN_PY | IN_TRITON | IN_LIB | IN_CUDA))) {
        /* A method's first parameter stands before the dot. */
        const char *rest = params ? strstr(params, ", ") : NULL;
        printf("`%s%s(%s)`", where & IN_DESC ? "desc." : "x.", name,
               rest ? rest + 2 : "");
    }
    if (where & IN_MATH)
        printf(", `tl.math`");
    if ((where & IN_METHOD) && (where & IN_TL))
        printf(", method");
}

/* The parameters of a function that is written in the language, out of its text: names
   and defaults on one line, without annotations. */
static const char *
library_params(const char *file, const char *name, char *to, size_t size)
{
    char head[80];
    const char *p = NULL;
    snprintf(head, sizeof head, "\ndef %s(", name);
    for (const PreludeText *t = prelude_texts; file && t->name && !p; t++)
        p = strcmp(t->name, file) == 0 ? strstr(t->text, head) : NULL;
    if (!p)
        return NULL;
    size_t n = 0;
    bool annotation = false;
    for (p += strlen(head); strncmp(p, "):", 2) != 0 && n + 1 < size; p++) {
        annotation = *p == ':' || (annotation && *p != '=' && *p != ',');
        if (!annotation && *p != ' ' && *p != '\n')
            to[n++] = *p;
        if (*p == ',' && n + 1 < size)
            to[n++] = ' ';
    }
    to[n] = '\0';
    return to;
}

static void
print_builtin_rows(bool missing)
{
    static const struct {
        const char *name, *params, *file, *doc;
        unsigned where;
        bool missing;
    } rows[] = {
#define BUILTIN(id, name, where, params, doc) {name, params, NULL, doc, where, false},
#define PRELUDE(name, where, file, doc) {name, NULL, file, doc, where, false},
#define MISSING(name, where) {name, NULL, NULL, "", where, true},
#include "frontend/builtins.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].missing != missing || !(rows[i].where & ~(IN_CORE | AT_COMPILE)))
            continue;
        char text[400];
        const char *params = rows[i].params;
        if (!params)
            params = library_params(rows[i].file, rows[i].name, text, sizeof text);
        printf(missing ? "- " : "| ");
        print_places(rows[i].name, rows[i].where, params);
        if (!missing) {
            printf(" | ");
            print_cell(rows[i].doc);
            printf(" |");
        }
        printf("\n");
    }
}

void
print_builtins(void)
{
    printf(
        "# Functions of the language\n\n"
        "Generated from `frontend/builtins.def` by `ninja -C build docs`; how they are\n"
        "typed and what else the language has is in [language.md](language.md). `tl` is\n"
        "`triton.language`; *method* means that `tl.f(x, ..)` is also `x.f(..)`, "
        "`tl.math`\n"
        "that it is there too. The functions of libdevice are listed in\n"
        "`frontend/libdevice.def`.\n\n"
        "| function | meaning |\n|---|---|\n");
    print_builtin_rows(false);
    printf("\n## Not supported yet\n\n"
           "Known to Triton; here the error says \"not supported yet\".\n\n");
    print_builtin_rows(true);
}

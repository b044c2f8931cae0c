/* Source lines in the output (--lineinfo): a profiler shows the time of each line of the
   .tk file. Every instruction gets the place of the operation that it was made for.

   The compile unit and the functions' entries are read from text: only there can a unit
   ask for line directives alone, which is what PTX wants (a full line table would mark
   the module as a debug build, which ptxas does not optimise). Helpers of other files are
   blocks of theirs inside the kernel's function: the frontend has inlined them. */
#include "codegen/gen.h"

#include <llvm-c/DebugInfo.h>
#include <llvm-c/IRReader.h>
#include <string.h>

struct Lines {
    LLVMDIBuilderRef di;
    LLVMMetadataRef fn; /* of the function that is being generated */
    const Source *src;  /* its file */
    Map blocks;         /* Source -> LLVMMetadataRef inside of that function */
};

/* As LLVM's text form wants it: what is not plain becomes \XX. */
static void
quoted(Buf *b, const char *s)
{
    buf_char(b, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 32 || c > 126 || c == '"' || c == '\\')
            buf_printf(b, "\\%02X", c);
        else
            buf_char(b, *s);
    }
    buf_char(b, '"');
}

static const char *
path_of(const Func *f)
{
    return f->loc.src ? f->loc.src->path : "<none>";
}

static const char *
module_text(Gen *g, const Module *m)
{
    enum { FIRST = 4 };
    Buf b;
    const char *kind = g->target->gpu ? "DebugDirectivesOnly" : "LineTablesOnly";
    buf_init(&b, &g->s->tmp);
    buf_printf(&b,
               "!llvm.dbg.cu = !{!0}\n!llvm.module.flags = !{!1}\n"
               "!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !2, producer: "
               "\"sdc\", isOptimized: true, runtimeVersion: 0, emissionKind: %s)\n"
               "!1 = !{i32 2, !\"Debug Info Version\", i32 3}\n"
               "!2 = !DIFile(filename: ",
               kind);
    quoted(&b, path_of(m->funcs[0]));
    buf_printf(&b, ", directory: \".\")\n!3 = !DISubroutineType(types: !{})\n");
    for (int i = 0; i < m->nfunc; i++) {
        const Func *f = m->funcs[i];
        buf_printf(&b, "!%d = !DIFile(filename: ", FIRST + 2 * i);
        quoted(&b, path_of(f));
        buf_printf(&b, ", directory: \".\")\n!%d = distinct !DISubprogram(name: ",
                   FIRST + 2 * i + 1);
        quoted(&b, f->name);
        buf_printf(&b,
                   ", scope: !%d, file: !%d, line: %d, scopeLine: %d, type: !3, spFlags: "
                   "DISPFlagDefinition | DISPFlagOptimized, unit: !0)\n",
                   FIRST + 2 * i, FIRST + 2 * i, f->loc.line, f->loc.line);
    }
    buf_printf(&b, "!sdc.functions = !{");
    for (int i = 0; i < m->nfunc; i++)
        buf_printf(&b, "%s!%d", i ? ", " : "", FIRST + 2 * i + 1);
    buf_printf(&b, "}\n");
    return b.s;
}

LLVMModuleRef
lines_module(Gen *g, const Module *m, const char *name)
{
    LLVMModuleRef mod = NULL;
    char *why = NULL;
    if (!g->opt->lineinfo || !m->nfunc)
        return LLVMModuleCreateWithNameInContext(name, g->cx);
    const char *text = module_text(g, m);
    LLVMMemoryBufferRef buf =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), name);
    bool bad = LLVMParseIRInContext2(g->cx, buf, &mod, &why);
    LLVMDisposeMemoryBuffer(buf);
    if (bad)
        bug(&g->s->fail, "line information: %s", why);
    LLVMSetModuleIdentifier(mod, name, strlen(name));
    g->lines = arena_new(&g->s->tmp, Lines);
    g->lines->di = LLVMCreateDIBuilderDisallowUnresolved(mod);
    return mod;
}

void
lines_function(Gen *g, int index)
{
    LLVMValueRef all[64];
    if (!g->lines)
        return;
    unsigned n = LLVMGetNamedMetadataNumOperands(g->mod, "sdc.functions");
    if ((unsigned)index >= n || n > 64) {
        g->lines->fn = NULL; /* no lines for a module of that many kernels */
        return;
    }
    LLVMGetNamedMetadataOperands(g->mod, "sdc.functions", all);
    g->lines->fn = LLVMValueAsMetadata(all[index]);
    g->lines->src = g->func->loc.src;
    map_init(&g->lines->blocks, &g->s->tmp);
    LLVMSetCurrentDebugLocation2(g->b, NULL);
}

void
lines_function_end(Gen *g)
{
    if (!g->lines || !g->lines->fn)
        return;
    LLVMSetSubprogram(g->fn, g->lines->fn);
    LLVMSetCurrentDebugLocation2(g->b, NULL);
}

void
lines_at(Gen *g, Loc loc)
{
    Lines *l = g->lines;
    if (!l || !l->fn || !loc.src || !loc.line)
        return;
    LLVMMetadataRef scope = loc.src == l->src ? l->fn : map_get(&l->blocks, loc.src);
    if (!scope) {
        const char *path = loc.src->path;
        LLVMMetadataRef file = LLVMDIBuilderCreateFile(l->di, path, strlen(path), ".", 1);
        scope = LLVMDIBuilderCreateLexicalBlockFile(l->di, l->fn, file, 0);
        map_set(&l->blocks, loc.src, scope);
    }
    LLVMSetCurrentDebugLocation2(
        g->b, LLVMDIBuilderCreateDebugLocation(g->cx, (unsigned)loc.line,
                                               (unsigned)loc.col, scope, NULL));
}

void
lines_done(Gen *g)
{
    if (!g->lines)
        return;
    LLVMDIBuilderFinalize(g->lines->di);
    LLVMDisposeDIBuilder(g->lines->di);
    g->lines = NULL;
}

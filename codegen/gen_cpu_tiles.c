/* Dots by AMX, whose tile registers have up to 16 rows of 64 bytes. Four tiles of the
   accumulator, two of a and two of the panel of b make 32 rows by 32 columns, 64 bytes
   along k. Sizes are powers of two, so all tiles of an operand have one shape, and the
   shapes are set once for a dot. */
#include "codegen/gen_cpu_dot.h"

#include "ir/base/util.h"

enum { ROWS = 16, SUMS = 0, OF_A = 4, OF_B = 6 };

static int64_t
rows_of(const Dot *d)
{
    return min_i64(d->m, ROWS);
}

static int64_t
cols_of(const Dot *d)
{
    return min_i64(d->cols, ROWS);
}

static int64_t
depth_of(const Dot *d)
{
    return min_i64(d->k, ROWS);
}

static void
shape(unsigned char *config, int tile, int64_t rows, int64_t bytes)
{
    config[16 + 2 * tile] = (unsigned char)bytes;
    config[48 + tile] = (unsigned char)rows;
}

void
dot_tiles_begin(Gen *g, const Dot *d)
{
    unsigned char config[64] = {1};
    for (int i = 0; i < 4; i++)
        shape(config, SUMS + i, rows_of(d), cols_of(d) * 4);
    for (int i = 0; i < 2; i++) {
        shape(config, OF_A + i, rows_of(d), depth_of(d) * 4);
        shape(config, OF_B + i, depth_of(d), cols_of(d) * 4);
    }
    LLVMValueRef text = LLVMConstStringInContext2(g->cx, (const char *)config, 64, 1);
    LLVMValueRef v = LLVMAddGlobal(g->mod, LLVMTypeOf(text), "tiles");
    LLVMSetInitializer(v, text);
    LLVMSetGlobalConstant(v, 1);
    LLVMSetLinkage(v, LLVMPrivateLinkage);
    LLVMSetAlignment(v, 64);
    dot_call(g, "llvm.x86.ldtilecfg", &v, 1);
    ((Cpu *)g->priv)->tiles = true;
}

void
dot_tiles_release(Gen *g)
{
    dot_call(g, "llvm.x86.tilerelease", NULL, 0);
}

/* `pitch` in units, of which all have four bytes. */
static void
move(Gen *g, const char *name, int tile, LLVMValueRef p, int64_t pitch)
{
    LLVMValueRef args[3] = {ll_int(g->i8, tile), p, ll_int(g->i64, 4 * pitch)};
    dot_call(g, name, args, 3);
}

static void
sums(Gen *g, const Dot *d, LLVMValueRef m, int down, int across, const char *name)
{
    for (int i = 0; i < down; i++)
        for (int j = 0; j < across; j++)
            move(g, name, SUMS + 2 * i + j,
                 dot_sum(g, d, m, i * rows_of(d), j * cols_of(d)), d->c_pitch);
}

typedef struct Sums {
    const Dot *d;
    LLVMValueRef m;
    int down, across;
} Sums;

static void
load_sums(Gen *g, void *cx, LLVMValueRef *v)
{
    const Sums *s = cx;
    (void)v;
    sums(g, s->d, s->m, s->down, s->across, "llvm.x86.tileloadd64");
}

void
dot_tiles(Gen *g, const Dot *d)
{
    int64_t rows = rows_of(d), cols = cols_of(d);
    int down = d->m > rows ? 2 : 1, across = d->cols > cols ? 2 : 1;
    const char *name = d->kind == SK_BF16 ? "llvm.x86.tdpbf16ps" : "llvm.x86.tdpbssd";
    CpuLoop m = cpu_loop(g, 0, d->m, down * rows);
    Sums s = {d, m.i, down, across};
    for (int i = 0; d->zero && i < down; i++)
        for (int j = 0; j < across; j++) {
            LLVMValueRef tile = ll_int(g->i8, SUMS + 2 * i + j);
            dot_call(g, "llvm.x86.tilezero", &tile, 1);
        }
    dot_begin(g, d, load_sums, &s, NULL, 0);
    CpuLoop k = cpu_loop(g, 0, d->k, depth_of(d));
    for (int j = 0; j < across; j++)
        move(g, "llvm.x86.tileloadd64", OF_B + j,
             dot_at(g, d->unit, d->b, k.i, d->pitch, ll_int(g->i64, j * cols)), d->pitch);
    for (int i = 0; i < down; i++) {
        LLVMValueRef row = LLVMBuildAdd(g->b, m.i, ll_int(g->i64, i * rows), "");
        move(g, "llvm.x86.tileloadd64", OF_A + i,
             dot_at(g, d->unit, d->a, row, d->a_pitch, k.i), d->a_pitch);
        for (int j = 0; j < across; j++) {
            LLVMValueRef args[3] = {ll_int(g->i8, SUMS + 2 * i + j),
                                    ll_int(g->i8, OF_A + i), ll_int(g->i8, OF_B + j)};
            dot_call(g, name, args, 3);
        }
    }
    cpu_loop_end(g, &k);
    sums(g, d, m.i, down, across, "llvm.x86.tilestored64");
    cpu_loop_end(g, &m);
}

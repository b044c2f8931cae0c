/* What a running program tells its host: prints and assertions, through the functions of
   SdcrtHooks (runtime/rt/meta.h), so that code needs nothing but the address of one.

   What the host cannot know (source place, message, format) is constant data beside the
   code: it comes along into the cache, out of a worker and into objects. A program that
   must end branches to the end of the function, which ends its range of programs; there
   is nothing to be undone, for what a program owns lies in the caller's scratch. */
#include "codegen/gen_cpu.h"

#include "ir/base/util.h"

#include <stddef.h>
#include <string.h>

bool
cpu_wants_hooks(const Region *r)
{
    for (const Op *op = r->first; op; op = op->next) {
        if (op->kind == OP_PRINT || op->kind == OP_VPRINT || op->kind == OP_VASSERT ||
            op->kind == OP_VCHECK)
            return true;
        for (int i = 0; i < op->nregion; i++)
            if (cpu_wants_hooks(op->regions[i]))
                return true;
    }
    return false;
}

static LLVMValueRef
field(Gen *g, LLVMTypeRef t, size_t offset)
{
    LLVMValueRef at = ll_int(g->i64, (int64_t)offset);
    LLVMValueRef p =
        LLVMBuildGEP2(g->b, g->i8, ((const Cpu *)g->priv)->hooks, &at, 1, "");
    return LLVMBuildLoad2(g->b, t, p, "");
}

/* Calls the function at this offset of the hooks. */
static LLVMValueRef
call(Gen *g, size_t offset, LLVMTypeRef result, LLVMValueRef *args, unsigned n)
{
    LLVMTypeRef types[5];
    for (unsigned i = 0; i < n; i++)
        types[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef t = LLVMFunctionType(result, types, n, 0);
    return LLVMBuildCall2(g->b, t, field(g, g->ptr, offset), args, n, "");
}

static LLVMTypeRef
nothing(Gen *g)
{
    return LLVMVoidTypeInContext(g->cx);
}

void
cpu_hooks_begin(Gen *g, LLVMBasicBlockRef go, bool checked)
{
    Cpu *c = g->priv;
    LLVMValueRef stop = field(g, g->i32, offsetof(SdcrtHooks, stop));
    LLVMSetOrdering(stop, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(stop, 4);
    LLVMValueRef runs = LLVMBuildICmp(g->b, LLVMIntEQ, stop, ll_int(g->i32, 0), "");
    ll_likely(LLVMBuildCondBr(g->b, runs, go, c->leave), 0);
    LLVMPositionBuilderAtEnd(g->b, go);
    if (checked) {
        LLVMValueRef args[2] = {c->hooks, c->program};
        call(g, offsetof(SdcrtHooks, enter), nothing(g), args, 2);
    }
}

/* ---- constant data */

static LLVMValueRef
constant(Gen *g, LLVMValueRef init)
{
    LLVMValueRef v = LLVMAddGlobal(g->mod, LLVMTypeOf(init), "site");
    LLVMSetInitializer(v, init);
    LLVMSetGlobalConstant(v, 1);
    LLVMSetLinkage(v, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(v, LLVMGlobalUnnamedAddr);
    return v;
}

static LLVMValueRef
text(Gen *g, const char *s, size_t n)
{
    return s ? constant(g, LLVMConstStringInContext2(g->cx, s, n, 0))
             : LLVMConstNull(g->ptr);
}

/* The line that a place is in; NULL when there is no text. */
static const char *
line_of(Loc loc, size_t *n)
{
    enum { LONGEST = 2000 };
    const char *p = loc.src ? loc.src->text : NULL, *end = p ? p + loc.src->size : NULL;
    for (int i = 1; p && i < loc.line; i++) {
        p = memchr(p, '\n', (size_t)(end - p));
        p = p ? p + 1 : NULL;
    }
    const char *nl = p ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    *n = p ? (size_t)((nl ? nl : end) - p) : 0;
    *n = *n > LONGEST ? LONGEST : *n;
    return loc.line > 0 ? p : NULL;
}

/* The library that sdc brings along is not the user's: its caller is the place. */
static Loc
users_own(Loc loc)
{
    const size_t n = sizeof LIB_PATH - 1;
    while (loc.call && loc.src && strncmp(loc.src->path, LIB_PATH, n) == 0)
        loc = loc.call->at;
    return loc;
}

enum { MOST_CALLS = 16 };

static LLVMValueRef
place(Gen *g, Loc loc, int depth)
{
    loc = users_own(loc);
    size_t n;
    const char *line = line_of(loc, &n), *path = loc.src ? loc.src->path : "";
    const char *fn = loc.call ? loc.call->fn : NULL;
    bool called = loc.call && depth < MOST_CALLS;
    int end = loc.end_line == loc.line ? loc.end_col : 0;
    LLVMValueRef in[8] = {
        text(g, path, strlen(path)),
        text(g, line, n),
        text(g, fn, fn ? strlen(fn) : 0),
        called ? constant(g, place(g, loc.call->at, depth + 1)) : LLVMConstNull(g->ptr),
        ll_int(g->i32, loc.line),
        ll_int(g->i32, loc.col),
        ll_int(g->i32, end),
        ll_int(g->i32, 0)};
    return LLVMConstStructInContext(g->cx, in, 8, 0);
}

typedef struct SiteData {
    const char *message;
    int rank, format, bits, access, number, bytes, param;
    unsigned lanes;
} SiteData;

static LLVMValueRef
site(Gen *g, const Op *op, const SiteData *d)
{
    const char *message = d->message ? d->message : "";
    LLVMValueRef in[10] = {place(g, op->loc, 0),     text(g, message, strlen(message)),
                           ll_int(g->i32, d->rank),   ll_int(g->i32, d->lanes),
                           ll_int(g->i32, d->format), ll_int(g->i32, d->bits),
                           ll_int(g->i32, d->access), ll_int(g->i32, d->number),
                           ll_int(g->i32, d->bytes),  ll_int(g->i32, d->param)};
    return constant(g, LLVMConstStructInContext(g->cx, in, 10, 0));
}

/* ---- what a call is given */

enum { ROOM_INDEX, ROOM_VALUES, ROOM_ADDRESSES };

static LLVMValueRef
room(Gen *g, int which)
{
    Cpu *c = g->priv;
    unsigned words = which == ROOM_INDEX ? 64 * MAX_RANK : 64;
    if (!c->words[which])
        c->words[which] = cpu_alloca(g, LLVMArrayType2(g->i64, words));
    return c->words[which];
}

static void
put(Gen *g, LLVMValueRef x, LLVMValueRef to, unsigned at)
{
    LLVMValueRef by = ll_int(g->i64, at);
    LLVMValueRef p = LLVMBuildGEP2(g->b, g->i64, to, &by, 1, "");
    LLVMSetAlignment(LLVMBuildStore(g->b, x, p), 8);
}

/* The indices of all lanes; operands from `first` on are those of the first lane. */
static LLVMValueRef
indices(Gen *g, const Op *op, int first, unsigned lanes)
{
    LLVMValueRef to = room(g, ROOM_INDEX);
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, -1);
    for (int d = 0; d < op->noperand - first; d++) {
        LLVMValueRef x = cpu_value(g, op_operand(op, first + d));
        if (lanes > 1 && !ll_is_vector(x)) {
            x = ll_splat(g->b, x, lanes);
            if (d == axis)
                x = LLVMBuildAdd(g->b, x, ll_iota(g->i64, lanes, 0), "");
        }
        put(g, x, to, (unsigned)d * lanes);
    }
    return to;
}

/* ---- print */

/* The value in 64 bits, and how it is printed. */
static LLVMValueRef
printable(Gen *g, const Op *op, const Type *e, LLVMValueRef x, int *format)
{
    const Attr *a = attr_find(&op->attrs, ATTR_SIGNED);
    bool hex = attr_has(&op->attrs, ATTR_HEX), is_ptr = e->kind == TY_PTR;
    int bits = is_ptr ? 64 : type_bits(e);
    bool is_signed = a && a->n && a->v.ints[0] && bits > 1;
    LLVMTypeRef wide = ll_like(x, g->i64);
    if (is_ptr) {
        *format = 'p';
        return LLVMBuildPtrToInt(g->b, x, wide, "");
    }
    bool is_float = scalar_is_float(e->scalar);
    if (is_float && !hex) {
        *format = 'f';
        x = gen_fcast(g, e->scalar, SK_F64, false, x);
        return LLVMBuildBitCast(g->b, x, wide, "");
    }
    *format = hex ? 'x' : is_signed ? 'd' : 'u';
    if (is_float) {
        LLVMTypeRef as = LLVMIntTypeInContext(g->cx, (unsigned)bits);
        x = LLVMBuildBitCast(g->b, x, ll_like(x, as), "");
    }
    return bits < 64 && is_signed && !hex ? LLVMBuildSExt(g->b, x, wide, "")
           : bits < 64                    ? LLVMBuildZExt(g->b, x, wide, "")
                                          : x;
}

static bool
gen_print(Gen *g, const Op *op)
{
    Cpu *c = g->priv;
    const Attr *part = attr_find(&op->attrs, ATTR_PART);
    bool any = op->noperand > 0, several = part && part->n == 2;
    int format = 0, bits = 0;
    unsigned lanes = 1;
    LLVMValueRef values = LLVMConstNull(g->ptr), index = values;
    Buf b;
    buf_init(&b, &g->s->tmp);
    buf_str(&b, "");
    int operand = several ? (int)part->v.ints[0] : 0;
    int count = several ? (int)part->v.ints[1] : 1;
    gen_print_text(&b, attr_str(&op->attrs, ATTR_MESSAGE), any, operand, count);
    if (any) {
        const Type *t = op_operand(op, 0)->type, *e = type_elem(t);
        LLVMValueRef x = cpu_value(g, op_operand(op, 0));
        lanes = ll_lanes(x);
        bits = e->kind == TY_PTR ? 64 : type_bits(e);
        values = room(g, ROOM_VALUES);
        put(g, printable(g, op, e, x, &format), values, 0);
        index = indices(g, op, 1, lanes);
    }
    LLVMValueRef s = site(g, op,
                          &(SiteData){.message = b.s,
                                      .rank = any ? op->noperand - 1 : 0,
                                      .lanes = lanes,
                                      .format = format,
                                      .bits = bits});
    LLVMValueRef args[5] = {c->hooks, s, c->program, values, index};
    call(g, offsetof(SdcrtHooks, print), nothing(g), args, 5);
    return true;
}

/* ---- assert */

/* The lanes of an i1 strip as bits of a word. */
static LLVMValueRef
lane_bits(Gen *g, LLVMValueRef x)
{
    LLVMTypeRef as = LLVMIntTypeInContext(g->cx, ll_lanes(x));
    x = LLVMBuildBitCast(g->b, x, as, "");
    return ll_lanes(x) == 64 ? x : LLVMBuildZExtOrBitCast(g->b, x, g->i64, "");
}

static bool
gen_assert(Gen *g, const Op *op)
{
    Cpu *c = g->priv;
    LLVMValueRef cond = cpu_value(g, op_operand(op, 0));
    LLVMValueRef bad = lane_bits(g, LLVMBuildNot(g->b, cond, ""));
    LLVMValueRef ok = LLVMBuildICmp(g->b, LLVMIntEQ, bad, ll_int(g->i64, 0), "");
    LLVMBasicBlockRef go = cpu_block(g, "holds"), fails = cpu_block(g, "fails");
    ll_likely(LLVMBuildCondBr(g->b, ok, go, fails), 0);
    LLVMPositionBuilderAtEnd(g->b, fails);
    LLVMValueRef s = site(g, op,
                          &(SiteData){.message = attr_str(&op->attrs, ATTR_MESSAGE),
                                      .rank = op->noperand - 1,
                                      .lanes = ll_lanes(cond)});
    LLVMValueRef args[5] = {c->hooks, s, c->program, bad,
                            indices(g, op, 1, ll_lanes(cond))};
    call(g, offsetof(SdcrtHooks, fail), nothing(g), args, 5);
    LLVMBuildBr(g->b, c->leave);
    LLVMPositionBuilderAtEnd(g->b, go);
    return true;
}

/* ---- checks */

static int
access_of(const Op *op, const Type *elem)
{
    static const struct {
        const char *name;
        int access;
    } kinds[] = {{"read", SDCRT_READ},
                 {"write", SDCRT_WRITE},
                 {"poll", SDCRT_READ | SDCRT_ATOMIC},
                 {"atomic", SDCRT_READ | SDCRT_WRITE | SDCRT_ATOMIC}};
    int access = 0;
    for (int i = 0; i < COUNT_OF(kinds); i++)
        if (strcmp(kinds[i].name, attr_str(&op->attrs, ATTR_ACCESS)) == 0)
            access = kinds[i].access;
    bool number = elem->kind == TY_SCALAR && scalar_is_float(elem->scalar);
    return access & SDCRT_ATOMIC && !number ? access | SDCRT_SYNC : access;
}

/* The value in the place that the host reads it at. */
static LLVMValueRef
lent(Gen *g, LLVMValueRef x, int which)
{
    LLVMValueRef to = room(g, which);
    LLVMSetAlignment(LLVMBuildStore(g->b, x, to), 8);
    return to;
}

/* Loaded at the function's entry, once for a launch. */
static LLVMValueRef
free_field(Gen *g, int param, size_t offset)
{
    Cpu *c = g->priv;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderBefore(g->b, LLVMGetBasicBlockTerminator(c->entry));
    LLVMValueRef all = field(g, g->ptr, offsetof(SdcrtHooks, free));
    int64_t byte = (int64_t)(sizeof(SdcrtFree) * (size_t)param + offset);
    LLVMValueRef at = ll_int(g->i64, byte);
    LLVMValueRef p = LLVMBuildGEP2(g->b, g->i8, all, &at, 1, "");
    LLVMValueRef x = LLVMBuildLoad2(g->b, g->i64, p, "");
    LLVMPositionBuilderAtEnd(g->b, here);
    return x;
}

/* Rows of loads that are wholly inside of what their parameter may always read go on at
   `go`; the others ask. */
static void
skip_free(Gen *g, const SiteData *d, LLVMValueRef at, LLVMBasicBlockRef go)
{
    LLVMValueRef base = free_field(g, d->param, offsetof(SdcrtFree, at));
    LLVMValueRef size = free_field(g, d->param, offsetof(SdcrtFree, bytes));
    LLVMValueRef from = LLVMBuildSub(g->b, at, base, "");
    LLVMValueRef row = ll_int(g->i64, (int64_t)d->bytes * d->lanes);
    LLVMValueRef to = LLVMBuildAdd(g->b, from, row, "");
    LLVMValueRef low = LLVMBuildICmp(g->b, LLVMIntULT, from, size, "");
    LLVMValueRef high = LLVMBuildICmp(g->b, LLVMIntULE, to, size, "");
    LLVMBasicBlockRef ask = cpu_block(g, "ask");
    LLVMValueRef in = LLVMBuildAnd(g->b, low, high, "");
    ll_likely(LLVMBuildCondBr(g->b, in, go, ask), 0);
    LLVMPositionBuilderAtEnd(g->b, ask);
}

static bool
is_float(const Type *t)
{
    const Type *e = type_elem(t);
    return e->kind == TY_SCALAR && scalar_is_float(e->scalar);
}

/* The lanes that are NaN. */
static LLVMValueRef
nans(Gen *g, const Type *t, LLVMValueRef x)
{
    ScalarKind k = type_elem(t)->scalar;
    if (k != SK_F32 && k != SK_F64)
        x = gen_fcast(g, k, SK_F32, false, x);
    return LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, "");
}

/* A NaN may be stored where it was loaded. */
static void
check_stored(Gen *g, const Op *op, LLVMValueRef s, LLVMValueRef mask, const SiteData *d)
{
    Cpu *c = g->priv;
    const Value *v = op_operand(op, 2);
    LLVMValueRef bad = LLVMBuildAnd(g->b, nans(g, v->type, cpu_value(g, v)), mask, "");
    bad = lane_bits(g, bad);
    LLVMValueRef none = LLVMBuildICmp(g->b, LLVMIntEQ, bad, ll_int(g->i64, 0), "");
    LLVMBasicBlockRef go = cpu_block(g, "numbers"), ask = cpu_block(g, "ask");
    LLVMBasicBlockRef refused = cpu_block(g, "refused");
    ll_likely(LLVMBuildCondBr(g->b, none, go, ask), 0);
    LLVMPositionBuilderAtEnd(g->b, ask);
    LLVMValueRef args[3] = {c->hooks, s, bad};
    LLVMValueRef lane = call(g, offsetof(SdcrtHooks, stored), g->i32, args, 3);
    LLVMValueRef ok = LLVMBuildICmp(g->b, LLVMIntSLT, lane, ll_int(g->i32, 0), "");
    LLVMBuildCondBr(g->b, ok, go, refused);
    LLVMPositionBuilderAtEnd(g->b, refused);
    LLVMValueRef tell[4] = {c->hooks, s, lane, indices(g, op, 3, d->lanes)};
    call(g, offsetof(SdcrtHooks, where), nothing(g), tell, 4);
    LLVMBuildBr(g->b, c->leave);
    LLVMPositionBuilderAtEnd(g->b, go);
}

/* The host looks before the access is made; `where` is asked only when it refuses, so
   that indices cost nothing otherwise. */
static bool
gen_check(Gen *g, const Op *op)
{
    Cpu *c = g->priv;
    LLVMValueRef p = cpu_value(g, op_operand(op, 0));
    LLVMValueRef mask = cpu_value(g, op_operand(op, 1)), values = LLVMConstNull(g->ptr);
    const Type *elem = type_elem(op_operand(op, 0)->type)->elem;
    SiteData d = {.lanes = ll_lanes(mask), .number = c->checks++};
    d.access = access_of(op, elem);
    d.bytes = elem->kind == TY_PTR ? 8 : ll_bytes(elem->scalar);
    d.param = (int)attr_int(&op->attrs, ATTR_PARAM, -2);
    bool stores = !(d.access & SDCRT_READ), row = !ll_is_vector(p);
    int first = stores ? 3 : 2;
    d.rank = op->noperand - first;
    if (stores) {
        LLVMValueRef x = cpu_value(g, op_operand(op, 2));
        values = lent(g, cpu_to_memory(g, elem, x), ROOM_VALUES);
    }
    if (row)
        p = LLVMBuildPtrToInt(g->b, p, g->i64, "");
    else
        p = lent(g, LLVMBuildPtrToInt(g->b, p, ll_like(p, g->i64), ""), ROOM_ADDRESSES);
    LLVMBasicBlockRef go = cpu_block(g, "may"), refused = cpu_block(g, "refused");
    if (row && d.param >= 0 && !(d.access & (SDCRT_WRITE | SDCRT_ATOMIC)))
        skip_free(g, &d, p, go);
    LLVMValueRef s = site(g, op, &d);
    LLVMValueRef args[5] = {c->hooks, s, p, lane_bits(g, mask), values};
    size_t fn = row ? offsetof(SdcrtHooks, row) : offsetof(SdcrtHooks, each);
    LLVMValueRef lane = call(g, fn, g->i32, args, 5);
    LLVMValueRef ok = LLVMBuildICmp(g->b, LLVMIntSLT, lane, ll_int(g->i32, 0), "");
    ll_likely(LLVMBuildCondBr(g->b, ok, go, refused), 0);
    LLVMPositionBuilderAtEnd(g->b, refused);
    LLVMValueRef tell[4] = {c->hooks, s, lane, indices(g, op, first, d.lanes)};
    call(g, offsetof(SdcrtHooks, where), nothing(g), tell, 4);
    LLVMBuildBr(g->b, c->leave);
    LLVMPositionBuilderAtEnd(g->b, go);
    if (stores && is_float(elem) && g->func->check & CHECK_NAN)
        check_stored(g, op, s, mask, &d);
    return true;
}

/* ---- where NaN comes from */

static void
tell_nan(Gen *g, const Op *op, LLVMValueRef lanes, int access, int format)
{
    Cpu *c = g->priv;
    LLVMValueRef bits = lane_bits(g, lanes);
    LLVMValueRef none = LLVMBuildICmp(g->b, LLVMIntEQ, bits, ll_int(g->i64, 0), "");
    LLVMBasicBlockRef go = cpu_block(g, "numbers"), nan = cpu_block(g, "nan");
    ll_likely(LLVMBuildCondBr(g->b, none, go, nan), 0);
    LLVMPositionBuilderAtEnd(g->b, nan);
    OpKind said = op->kind == OP_BUF_DOT ? OP_DOT : op->kind;
    LLVMValueRef s = site(g, op,
                          &(SiteData){.message = op_info[said].name,
                                      .lanes = ll_lanes(lanes),
                                      .access = access,
                                      .format = format});
    call(g, offsetof(SdcrtHooks, nan), nothing(g), (LLVMValueRef[]){c->hooks, s}, 2);
    LLVMBuildBr(g->b, go);
    LLVMPositionBuilderAtEnd(g->b, go);
}

/* The result of a dot is in memory: its elements are looked at one after the other. */
static void
watch_dot(Gen *g, const Op *op)
{
    const Type *t = op_operand(op, 2)->type;
    LLVMTypeRef e = cpu_element(g, t->elem);
    LLVMValueRef some = cpu_alloca(g, g->i1), base = cpu_value(g, op_operand(op, 2));
    int64_t n = 1;
    if (!scalar_is_float(t->elem->scalar))
        return;
    for (int i = 0; i < t->rank; i++)
        n *= t->shape[i];
    LLVMBuildStore(g->b, ll_int(g->i1, 0), some);
    CpuLoop l = cpu_loop(g, 0, n, 1);
    LLVMValueRef cols = ll_int(g->i64, t->shape[t->rank - 1]);
    LLVMValueRef at = LLVMBuildMul(g->b, LLVMBuildUDiv(g->b, l.i, cols, ""),
                                   ll_int(g->i64, cpu_pitch(t)), "");
    at = LLVMBuildAdd(g->b, at, LLVMBuildURem(g->b, l.i, cols, ""), "");
    LLVMValueRef p = LLVMBuildGEP2(g->b, e, base, &at, 1, "");
    LLVMValueRef x = nans(g, t->elem, LLVMBuildLoad2(g->b, e, p, ""));
    LLVMValueRef old = LLVMBuildLoad2(g->b, g->i1, some, "");
    LLVMBuildStore(g->b, LLVMBuildOr(g->b, old, x, ""), some);
    cpu_loop_end(g, &l);
    tell_nan(g, op, LLVMBuildLoad2(g->b, g->i1, some, ""), 0, 'D');
}

void
cpu_watch_nan(Gen *g, const Op *op)
{
    bool loads = op->kind == OP_LOAD || op->kind == OP_VLOAD;
    bool given = loads || op->kind == OP_CONST || op->kind == OP_BITCAST;
    if (op->kind == OP_BUF_DOT)
        watch_dot(g, op);
    if (!op->nresult || !is_float(op->results[0].type) ||
        !(given || op->kind == OP_REDUCE || op_is(op, T_PURE | T_ELEMENTWISE)))
        return;
    LLVMValueRef born = nans(g, op->results[0].type, cpu_value(g, &op->results[0]));
    if (given) {
        tell_nan(g, op, born, SDCRT_READ, 0);
        return;
    }
    for (int i = 0; i < op->noperand; i++) {
        const Value *v = op_operand(op, i);
        if (!is_float(v->type))
            continue;
        LLVMValueRef had = nans(g, v->type, cpu_value(g, v));
        if (op->kind == OP_REDUCE && ll_is_vector(had)) {
            LLVMValueRef zero = ll_int(g->i64, 0);
            had = LLVMBuildICmp(g->b, LLVMIntNE, lane_bits(g, had), zero, "");
        }
        born = LLVMBuildAnd(g->b, born, LLVMBuildNot(g->b, had, ""), "");
    }
    tell_nan(g, op, born, 0, 0);
}

bool
cpu_hook(Gen *g, const Op *op)
{
    return op->kind == OP_VCHECK    ? gen_check(g, op)
           : op->kind == OP_VASSERT ? gen_assert(g, op)
                                    : gen_print(g, op);
}

/* device_print and device_assert on a GPU, by what the driver offers to kernels: vprintf
   writes a line into a buffer that the driver prints on the standard output when the
   context is synchronized, __assertfail reports and stops the grid. The lines are
   Triton's:

       pid (1, 0, 0) idx (3, 17) x: 0.250000

   Of the threads that hold an element one prints it; the order of lines is any. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"

#include <string.h>

enum { MAX_FIELDS = 4 + MAX_RANK, FIELD = 8 };

static LLVMTypeRef
generic(Gen *g)
{
    return LLVMPointerTypeInContext(g->cx, 0);
}

/* A text in global memory, as the generic address that the driver's functions take. */
static LLVMValueRef
text_address(Gen *g, const char *s)
{
    LLVMValueRef c = LLVMConstStringInContext2(g->cx, s, strlen(s), 0);
    LLVMValueRef v = LLVMAddGlobalInAddressSpace(g->mod, LLVMTypeOf(c), "text", 1);
    LLVMSetInitializer(v, c);
    LLVMSetGlobalConstant(v, 1);
    LLVMSetLinkage(v, LLVMInternalLinkage);
    return LLVMConstAddrSpaceCast(v, generic(g));
}

static LLVMValueRef
driver_function(Gen *g, const char *name, LLVMTypeRef type)
{
    LLVMValueRef fn = LLVMGetNamedFunction(g->mod, name);
    return fn ? fn : LLVMAddFunction(g->mod, name, type);
}

/* ---- print */

/* Room for the values of one line, in the function's frame. */
static LLVMValueRef
frame(Gen *g)
{
    LLVMBasicBlockRef back = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderAtEnd(g->b, LLVMGetEntryBasicBlock(g->fn));
    LLVMValueRef v = LLVMBuildAlloca(g->b, LLVMArrayType2(g->i64, MAX_FIELDS), "fields");
    LLVMPositionBuilderAtEnd(g->b, back);
    return v;
}

/* The value as printf wants it, and how it is printed. */
static LLVMValueRef
printable(Gen *g, const Type *e, bool hex, bool is_signed, LLVMValueRef x,
          const char **how)
{
    if (e->kind == TY_PTR) {
        *how = "%p";
        return LLVMBuildPtrToInt(g->b, x, g->i64, "");
    }
    int bits = type_bits(e);
    if (hex) {
        *how = bits > 32   ? "0x%016llx"
               : bits > 16 ? "0x%08x"
               : bits > 8  ? "0x%04x"
                           : "0x%02x";
        x = nv_to_bits(g, e, x, bits < 8 ? 8 : bits);
        return LLVMBuildIntCast2(g->b, x, bits > 32 ? g->i64 : g->i32, 0, "");
    }
    if (scalar_is_float(e->scalar)) {
        *how = "%f";
        x = e->scalar == SK_F64 ? x : gen_fcast(g, e->scalar, SK_F32, false, x);
        return e->scalar == SK_F64 ? x : LLVMBuildFPExt(g->b, x, g->f64, "");
    }
    is_signed = is_signed && bits > 1;
    *how = bits > 32 ? (is_signed ? "%lld" : "%llu") : is_signed ? "%d" : "%u";
    return LLVMBuildIntCast2(g->b, x, bits > 32 ? g->i64 : g->i32, is_signed, "");
}

static void
call_vprintf(Gen *g, const char *format, LLVMValueRef *x, int n, LLVMValueRef room)
{
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        LLVMTypeRef t = LLVMTypeOf(x[i]);
        int size = t == g->i32 ? 4 : FIELD;
        at = (at + size - 1) / size * size;
        LLVMValueRef to = ll_int(g->i64, at);
        LLVMBuildStore(g->b, x[i], LLVMBuildInBoundsGEP2(g->b, g->i8, room, &to, 1, ""));
        at += size;
    }
    LLVMTypeRef p[2] = {generic(g), generic(g)};
    LLVMTypeRef type = LLVMFunctionType(g->i32, p, 2, 0);
    LLVMValueRef args[2] = {text_address(g, format), room};
    LLVMBuildCall2(g->b, type, driver_function(g, "vprintf", type), args, 2, "");
}

/* The author's text is no format. */
static void
prefix(Gen *g, Buf *b, const Op *op, bool values, int operand)
{
    Buf text;
    buf_init(&text, &g->s->tmp);
    buf_str(&text, "");
    gen_print_text(&text, attr_str(&op->attrs, ATTR_MESSAGE), values, operand,
                   op->noperand);
    for (size_t i = 0; i < (size_t)text.n; i++) {
        if (text.s[i] == '%')
            buf_char(b, '%');
        buf_char(b, text.s[i]);
    }
}

/* One line for each register of an operand. */
static void
print_operand(Gen *g, const Op *op, int i, LLVMValueRef *pid, LLVMValueRef room)
{
    const Value *v = op_operand(op, i);
    const Layout *l = v->type->layout;
    const Attr *is_signed = attr_find(&op->attrs, ATTR_SIGNED);
    Regs *in = nv_regs(g, v);
    for (uint32_t r = 0; r < (uint32_t)in->n; r++) {
        LLVMValueRef x[MAX_FIELDS];
        const char *how;
        Buf b;
        int n = 3;
        memcpy(x, pid, 3 * sizeof *x);
        buf_init(&b, &g->s->tmp);
        buf_str(&b, "pid (%u, %u, %u) idx (");
        for (int d = 0; l && d < l->rank; d++) {
            buf_str(&b, d ? ", %u" : "%u");
            x[n++] = nv_coord(g, l, r, d);
        }
        x[n] = printable(g, type_elem(v->type), attr_has(&op->attrs, ATTR_HEX),
                         is_signed && i < is_signed->n && is_signed->v.ints[i], in->v[r],
                         &how);
        buf_str(&b, ")");
        prefix(g, &b, op, true, i);
        buf_printf(&b, "%s\n", how);
        call_vprintf(g, b.s, x, n + 1, room);
    }
}

bool
nv_print(Gen *g, const Op *op)
{
    LLVMValueRef pid[3], room = frame(g);
    for (int i = 0; i < 3; i++)
        pid[i] = nv_program(g, i);
    if (!op->noperand) {
        Buf b;
        buf_init(&b, &g->s->tmp);
        buf_str(&b, "pid (%u, %u, %u)");
        prefix(g, &b, op, false, 0);
        buf_char(&b, '\n');
        Guard guard = nv_guard_begin(g, nv_owner(g, NULL));
        call_vprintf(g, b.s, pid, 3, room);
        nv_guard_end(g, guard);
    }
    for (int i = 0; i < op->noperand; i++) {
        if (!nv_regs(g, op_operand(op, i)))
            return false;
        LLVMValueRef owner = nv_owner(g, op_operand(op, i)->type->layout);
        Guard guard = nv_guard_begin(g, owner);
        print_operand(g, op, i, pid, room);
        nv_guard_end(g, guard);
    }
    return true;
}

/* ---- assert */

/* The threads wait for each other afterwards: none runs on into what the assertion
   forbids while another still reports. */
bool
nv_assert(Gen *g, const Op *op)
{
    const Type *t = op_operand(op, 0)->type;
    Regs *cond = nv_regs(g, op_operand(op, 0)), *mask = NULL;
    Name message = attr_str(&op->attrs, ATTR_MESSAGE);
    if (!cond || (op->noperand > 1 && !(mask = nv_regs(g, op_operand(op, 1)))))
        return false;
    if (mask && mask->n != cond->n)
        return gen_unsupported(g, op, "with a mask of another layout") != NULL;
    LLVMValueRef bad = NULL, owner = nv_owner(g, t->layout);
    for (int r = 0; r < cond->n; r++) {
        LLVMValueRef x = LLVMBuildNot(g->b, cond->v[r], "");
        if (mask)
            x = LLVMBuildAnd(g->b, x, mask->v[r], "");
        bad = bad ? LLVMBuildOr(g->b, bad, x, "") : x;
    }
    if (owner)
        bad = LLVMBuildAnd(g->b, bad, owner, "");
    Guard guard = nv_guard_begin(g, bad);
    LLVMTypeRef p[5] = {generic(g), generic(g), g->i32, generic(g), g->i64};
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(g->cx), p, 5, 0);
    LLVMValueRef args[5] = {
        text_address(g, message ? message : ""),
        text_address(g, op->loc.src ? op->loc.src->path : "<unknown>"),
        ll_int(g->i32, op->loc.line), text_address(g, g->func->name), ll_int(g->i64, 1)};
    LLVMBuildCall2(g->b, type, driver_function(g, "__assertfail", type), args, 5, "");
    nv_guard_end(g, guard);
    nv_barrier(g);
    return true;
}

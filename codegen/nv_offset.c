/* Constant parts of addresses become offsets of the accesses.

   Accesses are assembly statements, and to LLVM their addresses are numbers like any
   other. Those of a thread's registers differ by constants, so each would be a value of
   its own for strength reduction, whose time grows with the square of their number, for
   the selection of instructions, and in PTX:

       %j = or disjoint i32 %i, 512
       %a = gep i16, %x, (zext %j)          =>   %b = gep i16, %x, (zext %i)
       ld.global.b16 .., [%a]                    ld.global.b16 .., [%b+1024]

   So do those of numbers that are compared with one number, as columns with a label:

       %j = or disjoint i32 %i, 512
       icmp eq %j, %label                   =>   icmp eq (sub %label, %i), 512

   A part moves out of an index that is extended to 64 bits only where the sum without it
   is the same number in 32 bits and in 64: out of disjoint bits, and out of a sum with a
   constant that does not wrap. Nothing is computed in a loop that was computed in front
   of it. */
#include "codegen/gen_nv.h"

#include "ir/base/map.h"
#include "ir/base/vec.h"

#include <stdio.h>
#include <string.h>

enum { GLOBAL = 1, DEPTH = 6, TEXT = 512 };
enum { NEAR = 512 }; /* so many are looked at: time grows with a block's length only */
enum { MOST = 1 << 23 }; /* offsets have 24 bits, one of them a sign */

/* A value is the sum of both. */
typedef struct Part {
    LLVMValueRef rest;
    int64_t constant;
} Part;

/* An instruction in front of the access, or at the end of another block. */
typedef struct Made {
    LLVMValueRef a, b, value;
    LLVMOpcode opcode;
    LLVMTypeRef type;
    LLVMBasicBlockRef block;
} Made;

typedef struct Offsets {
    Gen *g;
    LLVMBasicBlockRef block;
    LLVMValueRef access; /* in it */
    Vec(Made) made;
    Vec(LLVMValueRef) old; /* what may have no user any more */
    Map erased;
} Offsets;

/* How a sum counts: mod 2^64, or extended to 64 bits. */
typedef enum Kind { WHOLE, SIGNED, UNSIGNED } Kind;

/* a op b, instead of `of`: in the same block. */
static LLVMValueRef
build(Offsets *x, LLVMValueRef of, LLVMOpcode opcode, LLVMTypeRef type, LLVMValueRef a,
      LLVMValueRef b)
{
    LLVMBuilderRef to = x->g->b;
    LLVMBasicBlockRef block = LLVMGetInstructionParent(of);
    for (int i = x->made.n - 1; i >= 0 && i >= x->made.n - NEAR; i--) {
        const Made *m = &x->made.at[i];
        if (m->opcode == opcode && m->type == type && m->a == a && m->b == b &&
            m->block == block)
            return m->value;
    }
    LLVMPositionBuilderBefore(to, block == x->block ? x->access
                                                    : LLVMGetBasicBlockTerminator(block));
    LLVMValueRef v;
    if (opcode == LLVMOr) {
        v = LLVMBuildOr(to, a, b, "");
        if (LLVMIsAInstruction(v))
            LLVMSetIsDisjoint(v, true);
    } else if (opcode == LLVMAdd) {
        v = LLVMBuildAdd(to, a, b, "");
    } else if (opcode == LLVMSub) { /* a value that strength reduction leaves alone */
        v = LLVMBuildFreeze(to, LLVMBuildSub(to, a, b, ""), "");
    } else if (opcode == LLVMGetElementPtr) {
        v = LLVMBuildGEP2(to, type, a, &b, 1, "");
    } else {
        v = LLVMBuildCast(to, opcode, a, type, "");
    }
    vec_push(&x->g->s->tmp, &x->made, ((Made){a, b, v, opcode, type, block}));
    return v;
}

static bool
small(int64_t c)
{
    return c > -MOST && c < MOST;
}

/* v, a sum without a constant part: what others may be without theirs. */
static Part
same_part(Offsets *x, LLVMValueRef v, Part a, Part b)
{
    Made m = {a.rest,
              b.rest,
              v,
              LLVMGetInstructionOpcode(v),
              LLVMTypeOf(v),
              LLVMGetInstructionParent(v)};
    bool is = !a.constant && !b.constant;
    for (int i = x->made.n - 1; i >= 0 && i >= x->made.n - NEAR; i--)
        is &= x->made.at[i].value != v;
    if (is)
        vec_push(&x->g->s->tmp, &x->made, m);
    return (Part){v, 0};
}

static Part
of_bits(Offsets *x, LLVMValueRef v, int depth)
{
    Part none = {v, 0};
    if (depth > DEPTH || !LLVMIsABinaryOperator(v) ||
        LLVMGetInstructionOpcode(v) != LLVMOr || !LLVMGetIsDisjoint(v))
        return none;
    LLVMValueRef c = LLVMGetOperand(v, 1);
    Part a = of_bits(x, LLVMGetOperand(v, 0), depth + 1);
    if (LLVMIsAConstantInt(c)) {
        int64_t by = LLVMConstIntGetSExtValue(c);
        return by >= 0 && small(a.constant + by) ? (Part){a.rest, a.constant + by} : none;
    }
    Part b = of_bits(x, c, depth + 1);
    if (!a.constant && !b.constant)
        return same_part(x, v, a, b);
    return (Part){build(x, v, LLVMOr, LLVMTypeOf(v), a.rest, b.rest),
                  a.constant + b.constant};
}

static Part
of_number(Offsets *x, LLVMValueRef v, Kind kind, int depth)
{
    Part none = {v, 0};
    if (depth > DEPTH || !LLVMIsAInstruction(v))
        return none;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(v);
    if (opcode == LLVMAdd && LLVMIsAConstantInt(LLVMGetOperand(v, 1))) {
        int64_t by = LLVMConstIntGetSExtValue(LLVMGetOperand(v, 1));
        bool same =
            kind == WHOLE || (kind == SIGNED ? LLVMGetNSW(v) : LLVMGetNUW(v) && by >= 0);
        if (!same || !small(by))
            return none;
        Part a = of_number(x, LLVMGetOperand(v, 0), kind, depth + 1);
        return small(a.constant + by) ? (Part){a.rest, a.constant + by} : none;
    }
    if (opcode == LLVMAdd && (kind == WHOLE || (kind == UNSIGNED && LLVMGetNUW(v)))) {
        Part a = of_number(x, LLVMGetOperand(v, 0), kind, depth + 1);
        Part b = of_number(x, LLVMGetOperand(v, 1), kind, depth + 1);
        bool moves = (a.constant || b.constant) && small(a.constant + b.constant);
        if (!moves)
            return same_part(x, v, a, b);
        return (Part){build(x, v, LLVMAdd, LLVMTypeOf(v), a.rest, b.rest),
                      a.constant + b.constant};
    }
    if ((opcode != LLVMZExt && opcode != LLVMSExt) || kind != WHOLE)
        return of_bits(x, v, depth);
    Part a = of_number(x, LLVMGetOperand(v, 0), opcode == LLVMSExt ? SIGNED : UNSIGNED,
                       depth + 1);
    if (!a.constant)
        return none;
    return (Part){build(x, v, opcode, LLVMTypeOf(v), a.rest, NULL), a.constant};
}

static int64_t
size_of(LLVMTypeRef t)
{
    switch ((int)LLVMGetTypeKind(t)) {
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind: return 2;
    case LLVMFloatTypeKind: return 4;
    case LLVMDoubleTypeKind: return 8;
    case LLVMIntegerTypeKind: return LLVMGetIntTypeWidth(t) / 8;
    default: return 0;
    }
}

static Part
of_address(Offsets *x, LLVMValueRef v, int depth)
{
    Part none = {v, 0}, at = none;
    if (depth > DEPTH || !LLVMIsAGetElementPtrInst(v) || LLVMGetNumOperands(v) != 2 ||
        LLVMGetPointerAddressSpace(LLVMTypeOf(v)) != GLOBAL)
        return none;
    LLVMTypeRef elem = LLVMGetGEPSourceElementType(v);
    LLVMValueRef index = LLVMGetOperand(v, 1);
    int64_t size = size_of(elem);
    if (!size || LLVMTypeOf(index) != x->g->i64)
        return none;
    Part base = of_address(x, LLVMGetOperand(v, 0), depth + 1);
    if (LLVMIsAConstantInt(index))
        at = (Part){NULL, LLVMConstIntGetSExtValue(index)};
    else
        at = of_number(x, index, WHOLE, depth + 1);
    int64_t all = base.constant + at.constant * size;
    if (!small(at.constant) || !small(all) || (!base.constant && !at.constant))
        return none;
    if (!at.rest)
        return (Part){base.rest, all};
    return (Part){build(x, v, LLVMGetElementPtr, elem, base.rest, at.rest), all};
}

/* The text with an offset behind operand n, which it names as "[$n]" alone. False: it
   does not. */
static bool
with_offset(const char *text, int n, int64_t offset, char *out)
{
    char name[16], whole[20], more[48];
    int names = 0, at = 0;
    snprintf(name, sizeof name, "$%d", n);
    snprintf(whole, sizeof whole, "[$%d]", n);
    snprintf(more, sizeof more, "[$%d+%lld]", n, (long long)offset);
    size_t length = strlen(name);
    for (const char *s = text; (s = strstr(s, name)); s += length)
        names += s[length] < '0' || s[length] > '9';
    for (const char *s = text; *s && at < TEXT - (int)sizeof more;) {
        if (strncmp(s, whole, length + 2) == 0) {
            at += snprintf(out + at, sizeof more, "%s", more);
            s += length + 2;
            names--;
        } else {
            out[at++] = *s++;
        }
    }
    out[at] = 0;
    return names == 0 && strlen(text) + sizeof more < TEXT;
}

static void
move_offset(Offsets *x, LLVMValueRef call, LLVMValueRef statement, int operand, int arg)
{
    LLVMValueRef v = LLVMGetOperand(call, (unsigned)arg);
    char text[TEXT];
    size_t n, nc;
    if (LLVMTypeOf(v) != x->g->i64 || !LLVMIsAPtrToIntInst(v))
        return;
    x->access = call;
    Part p = of_address(x, LLVMGetOperand(v, 0), 0);
    const char *old = LLVMGetInlineAsmAsmString(statement, &n);
    if (!p.constant || !with_offset(old, operand, p.constant, text))
        return;
    const char *constraints = LLVMGetInlineAsmConstraintString(statement, &nc);
    LLVMValueRef made = LLVMGetInlineAsm(
        LLVMGetInlineAsmFunctionType(statement), text, strlen(text), constraints, nc,
        LLVMGetInlineAsmHasSideEffects(statement), 0, LLVMInlineAsmDialectATT, 0);
    LLVMSetOperand(call, (unsigned)arg,
                   build(x, v, LLVMPtrToInt, x->g->i64, p.rest, NULL));
    LLVMSetOperand(call, (unsigned)LLVMGetNumOperands(call) - 1, made);
    vec_push(&x->g->s->tmp, &x->old, v);
}

static void
move_offsets(Offsets *x, LLVMValueRef call)
{
    LLVMValueRef statement = LLVMGetCalledValue(call);
    size_t n;
    int results = 0;
    if (!statement || !LLVMIsAInlineAsm(statement))
        return;
    const char *s = LLVMGetInlineAsmConstraintString(statement, &n);
    for (size_t i = 0; i < n; i++)
        results += s[i] == '=';
    for (int i = 0; i < (int)LLVMGetNumArgOperands(call); i++)
        move_offset(x, call, LLVMGetCalledValue(call), results + i, i);
}

static bool
is_arithmetic(LLVMValueRef v)
{
    return LLVMIsABinaryOperator(v) || LLVMIsACastInst(v) || LLVMIsAFreezeInst(v) ||
           LLVMIsAGetElementPtrInst(v);
}

/* Erases what nobody uses any more. */
static void
erase_unused(Offsets *x, LLVMValueRef v, int depth)
{
    LLVMValueRef of[2];
    if (depth > 2 * DEPTH || !is_arithmetic(v) || LLVMGetFirstUse(v))
        return;
    int n = LLVMGetNumOperands(v);
    for (int i = 0; i < n && i < 2; i++)
        of[i] = LLVMGetOperand(v, (unsigned)i);
    LLVMInstructionEraseFromParent(v);
    map_set(&x->erased, v, v);
    for (int i = 0; i < n && i < 2; i++)
        if (i == 0 || of[1] != of[0])
            erase_unused(x, of[i], depth + 1);
}

/* A comparison of x.rest + x.constant with `with`, for equality. */
typedef struct Equal {
    LLVMValueRef at, with;
    Part x;
    int side; /* the operand that is x */
} Equal;

static bool
alike(const Equal *a, const Equal *b)
{
    return a->x.rest == b->x.rest && a->with == b->with;
}

/* Those with something in common: one difference serves all. */
static void
compare_constants(Offsets *x)
{
    Arena *tmp = &x->g->s->tmp;
    Vec(Equal) all = {0};
    LLVMValueRef i = LLVMGetFirstInstruction(x->block);
    for (; i; i = LLVMGetNextInstruction(i)) {
        LLVMIntPredicate p = LLVMIsAICmpInst(i) ? LLVMGetICmpPredicate(i) : LLVMIntSLT;
        if (p != LLVMIntEQ && p != LLVMIntNE)
            continue;
        x->access = i;
        for (int side = 0; side < 2; side++) {
            LLVMValueRef v = LLVMGetOperand(i, (unsigned)side);
            LLVMValueRef with = LLVMGetOperand(i, (unsigned)!side);
            if (LLVMTypeOf(v) != x->g->i32 || LLVMIsAConstant(with) || LLVMIsAConstant(v))
                break;
            Equal e = {i, with, of_number(x, v, WHOLE, 0), side};
            vec_push(tmp, &all, e);
        }
    }
    for (int k = 0; k < all.n; k++) {
        const Equal *e = &all.at[k];
        int first = k, n = 0, constants = 0;
        for (int j = k + NEAR; j >= 0 && j >= k - NEAR; j--)
            if (j < all.n && alike(e, &all.at[j])) {
                first = j;
                n++;
                constants += all.at[j].x.constant != 0;
            }
        if (n < 2 || !constants)
            continue;
        x->access = all.at[first].at;
        LLVMValueRef by = build(x, e->at, LLVMSub, x->g->i32, e->with, e->x.rest);
        LLVMValueRef old = LLVMGetOperand(e->at, (unsigned)e->side);
        LLVMSetOperand(e->at, 0, by);
        LLVMSetOperand(e->at, 1, ll_int(x->g->i32, e->x.constant));
        vec_push(tmp, &x->old, old);
    }
}

void
nv_move_offsets(Gen *g, LLVMBasicBlockRef b)
{
    Offsets x = {.g = g, .block = b};
    LLVMValueRef i = LLVMGetFirstInstruction(b);
    map_init(&x.erased, &g->s->tmp);
    for (; i; i = LLVMGetNextInstruction(i))
        if (LLVMIsACallInst(i))
            move_offsets(&x, i);
    compare_constants(&x);
    for (int k = 0; k < x.made.n; k++)
        vec_push(&g->s->tmp, &x.old, x.made.at[k].value);
    for (int k = 0; k < x.old.n; k++)
        if (!map_has(&x.erased, x.old.at[k]))
            erase_unused(&x, x.old.at[k], 0);
}

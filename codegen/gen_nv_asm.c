/* tl.inline_asm_elementwise: PTX of the source on the registers of a thread. One run
   takes {pack} elements of each operand. Elements of less than 32 bits share a register,
   as many as fit and as the run takes; the letter of a constraint says what LLVM is given
   for a register (h 16 bits, r 32, l 64, f and d floats). */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 64 };

#define SPACE " \t\n"

/* Letters of the outputs and of the inputs, one a register, and the constraints as LLVM
   reads them: it ends the process on others. */
typedef struct Letters {
    char out[MAX_WORDS], in[MAX_WORDS];
    int nout, nin;
    char *clean;
} Letters;

/* One constraint, n characters; what LLVM gets of it is added to `clean`. */
static bool
read_letter(const char *text, size_t n, Letters *l)
{
    bool out = n && *text == '=';
    size_t at = out;
    at += out && at < n && text[at] == '&';
    at += strspn(text + at, SPACE);
    size_t digits = out ? 0 : strspn(text + at, "0123456789");
    size_t end = at + (digits ? digits : 1);
    end += strspn(text + end, SPACE);
    if (at >= n || end != n || digits > 2 || (out && l->nin) ||
        (out ? l->nout : l->nin) == MAX_WORDS)
        return false;
    int to = digits ? atoi(text + at) : 0;
    char c = !digits ? text[at] : to < l->nout ? l->out[to] : 0;
    if (!c || !strchr("hrlfdn", c))
        return false;
    if (out)
        l->out[l->nout++] = c;
    else
        l->in[l->nin++] = c;
    if (*l->clean)
        strcat(l->clean, ",");
    strcat(l->clean, !out ? "" : text[1] == '&' ? "=&" : "=");
    strncat(l->clean, text + at, digits ? digits : 1);
    return true;
}

/* Is it ~{name}? */
static bool
is_clobber(const char *text, size_t n)
{
    return n > 3 && text[0] == '~' && text[1] == '{' &&
           strcspn(text + 2, "{},") == n - 3 && text[n - 1] == '}';
}

static bool
read_letters(Arena *a, const char *text, Letters *l)
{
    size_t room = 2 * strlen(text) + 2;
    char *clobbers = arena_calloc(a, room, 1, 1);
    l->clean = arena_calloc(a, room, 1, 1);
    while (*text) {
        text += strspn(text, SPACE);
        size_t n = strcspn(text, ",");
        if (is_clobber(text, n))
            strncat(strcat(clobbers, ","), text, n);
        else if (!read_letter(text, n, l))
            return false;
        text += n;
        if (*text && !*++text)
            return false; /* nothing behind a comma */
    }
    strcat(l->clean, clobbers + (*l->clean == '\0' && *clobbers));
    return true;
}

/* Behind a $: the rest of an operand, of $$, or of LLVM's words and variants; NULL when
   it is none of them, on which LLVM ends the process, too. */
static const char *
dollar(const char *s, int operands, bool *variant)
{
    bool braces = *s == '{';
    if (*s == '(' && *variant)
        return NULL;
    if (*s && strchr("$(|)", *s)) {
        *variant = *s == '(' || (*s != ')' && *variant);
        return s + 1;
    }
    s += braces;
    for (const char *word = braces ? "uid\0comment\0private\0" : ""; *word;
         word += strlen(word) + 1)
        if (*s == ':' && strncmp(s + 1, word, strlen(word)) == 0 &&
            s[1 + strlen(word)] == '}')
            return s + strlen(word) + 2;
    size_t n = strspn(s, "0123456789");
    if (!n || n > 3 || atoi(s) >= operands)
        return NULL;
    s += n;
    if (!braces)
        return s;
    s += *s == ':' && s[1] && s[1] != '}' ? 2 : 0;
    return *s == '}' ? s + 1 : NULL;
}

static bool
text_is_right(Gen *g, const Op *op, const char *text, int operands)
{
    bool variant = false;
    for (const char *s = text, *at; (at = strchr(s, '$'));) {
        s = dollar(at + 1, operands, &variant);
        if (s)
            continue;
        diag_error(&g->s->diag, op->loc,
                   "'%.*s' in inline assembly is no operand: its constraints have %d, "
                   "from $0 on; $$ is the character itself",
                   (int)strcspn(at, " ,;\n]"), at, operands);
        return false;
    }
    return true;
}

static LLVMTypeRef
letter_type(Gen *g, char c)
{
    switch (c) {
    case 'h': return LLVMInt16TypeInContext(g->cx);
    case 'l': return g->i64;
    case 'f': return g->f32;
    case 'd': return g->f64;
    default: return g->i32;
    }
}

static unsigned
width_of(Gen *g, LLVMTypeRef t)
{
    return t == g->f32 ? 32 : t == g->f64 ? 64 : LLVMGetIntTypeWidth(t);
}

/* Elements in one register. */
static int
share(const Type *t, int pack)
{
    int bits = type_bits(type_elem(t)), n = bits < 32 ? 32 / bits : 1;
    return n < pack ? n : pack;
}

static int
words_of(const Type *t, int pack)
{
    return (pack + share(t, pack) - 1) / share(t, pack);
}

/* The bits of an element, as an integer. */
static LLVMValueRef
bits_of(Gen *g, LLVMValueRef x, unsigned bits)
{
    LLVMTypeRef i = LLVMIntTypeInContext(g->cx, bits), t = LLVMTypeOf(x);
    if (LLVMGetTypeKind(t) == LLVMPointerTypeKind)
        return LLVMBuildPtrToInt(g->b, x, i, "");
    return t == i ? x : LLVMBuildBitCast(g->b, x, i, "");
}

static LLVMValueRef
element_of(Gen *g, LLVMValueRef bits, LLVMTypeRef t)
{
    if (LLVMGetTypeKind(t) == LLVMPointerTypeKind)
        return LLVMBuildIntToPtr(g->b, bits, t, "");
    return LLVMTypeOf(bits) == t ? bits : LLVMBuildBitCast(g->b, bits, t, "");
}

/* An integer in the register of a letter, and back. */
static LLVMValueRef
to_word(Gen *g, LLVMValueRef bits, char letter)
{
    LLVMTypeRef t = letter_type(g, letter);
    LLVMTypeRef i = LLVMIntTypeInContext(g->cx, width_of(g, t));
    bits = LLVMBuildZExtOrBitCast(g->b, bits, i, "");
    return t == i ? bits : LLVMBuildBitCast(g->b, bits, t, "");
}

static LLVMValueRef
from_word(Gen *g, LLVMValueRef word, unsigned bits)
{
    unsigned width = width_of(g, LLVMTypeOf(word));
    LLVMTypeRef i = LLVMIntTypeInContext(g->cx, width);
    if (LLVMTypeOf(word) != i)
        word = LLVMBuildBitCast(g->b, word, i, "");
    return width == bits
               ? word
               : LLVMBuildTrunc(g->b, word, LLVMIntTypeInContext(g->cx, bits), "");
}

/* Elements at .. at + pack - 1 of an operand as registers; the last one stands in for
   those that the thread does not have. */
static bool
pack_words(Gen *g, const Type *t, const Regs *r, int at, int pack, const char *letters,
           LLVMValueRef *out)
{
    unsigned bits = (unsigned)type_bits(type_elem(t));
    int each = share(t, pack);
    for (int w = 0; w < words_of(t, pack); w++) {
        unsigned all = bits * (unsigned)each;
        if (letters[w] == 'n' || width_of(g, letter_type(g, letters[w])) < all)
            return false;
        LLVMTypeRef wide = LLVMIntTypeInContext(g->cx, all);
        LLVMValueRef word = ll_int(wide, 0);
        for (int k = 0; k < each; k++) {
            int e = at + w * each + k;
            LLVMValueRef x = bits_of(g, r->v[e < r->n ? e : r->n - 1], bits);
            x = bits == all ? x : LLVMBuildZExt(g->b, x, wide, "");
            x = k ? LLVMBuildShl(g->b, x, ll_int(wide, (int64_t)bits * k), "") : x;
            word = k ? LLVMBuildOr(g->b, word, x, "") : x;
        }
        out[w] = to_word(g, word, letters[w]);
    }
    return true;
}

static void
unpack_words(Gen *g, const Type *t, LLVMValueRef *words, int pack, int at, Regs *out)
{
    unsigned bits = (unsigned)type_bits(type_elem(t));
    int each = share(t, pack);
    for (int k = 0; k < pack && at + k < out->n; k++) {
        LLVMValueRef x = from_word(g, words[k / each], bits * (unsigned)each);
        if (each > 1) {
            LLVMTypeRef wide = LLVMTypeOf(x);
            x = LLVMBuildLShr(g->b, x, ll_int(wide, (int64_t)bits * (k % each)), "");
            x = LLVMBuildTrunc(g->b, x, LLVMIntTypeInContext(g->cx, bits), "");
        }
        out->v[at + k] = element_of(g, x, nv_type(g, t));
    }
}

static LLVMTypeRef
result_type(Gen *g, const Letters *l)
{
    LLVMTypeRef parts[MAX_WORDS];
    for (int i = 0; i < l->nout; i++)
        parts[i] = letter_type(g, l->out[i]);
    return l->nout == 1 ? parts[0]
                        : LLVMStructTypeInContext(g->cx, parts, (unsigned)l->nout, 0);
}

static bool
misfit(Gen *g, const Op *op)
{
    diag_error(&g->s->diag, op->loc,
               "the constraints of inline assembly, '%s', do not fit its operands and "
               "results with pack=%d: one letter a register (h 16, r 32, l 64 bits; f, "
               "d), outputs first",
               attr_str(&op->attrs, ATTR_CONSTRAINTS),
               (int)attr_int(&op->attrs, ATTR_PACK, 1));
    return false;
}

/* Instructions that are younger than the oldest PTX which knows a target that has them
   (ptxas 12.8 says from when on). */
static int
ptx_of(const char *text)
{
    static const struct {
        const char *word;
        int ptx;
    } young[] = {
        {"bmsk.", 76},     {"szext.", 76}, {".satfinite.tf32", 81},
        {".acc::f32", 82}, {".b128", 83},  {".rs.", 87},
        {".v8.", 88},
    };
    int ptx = 0;
    for (int i = 0; i < COUNT_OF(young); i++)
        if (young[i].ptx > ptx && strstr(text, young[i].word))
            ptx = young[i].ptx;
    return ptx;
}

/* Are there wide enough registers for all results, from output `first` on? */
static bool
results_fit(Gen *g, const Op *op, const Letters *l, int first, int pack)
{
    for (int i = 0; i < op->nresult; i++) {
        const Type *t = op->results[i].type;
        unsigned bits = (unsigned)type_bits(type_elem(t)) * (unsigned)share(t, pack);
        int end = first + words_of(t, pack);
        if (end > l->nout)
            return false;
        for (; first < end; first++)
            if (width_of(g, letter_type(g, l->out[first])) < bits)
                return false;
    }
    return true;
}

bool
nv_inline_asm(Gen *g, const Op *op)
{
    const char *text = attr_str(&op->attrs, ATTR_ASM);
    const char *constraints = attr_str(&op->attrs, ATTR_CONSTRAINTS);
    int pack = (int)attr_int(&op->attrs, ATTR_PACK, 1);
    int first = (int)attr_int(&op->attrs, ATTR_FIRST, 0);
    Letters l = {.nout = 0};
    Regs *in[8], **out = arena_array(&g->s->tmp, Regs *, op->nresult);
    for (int i = 0; i < op->nresult; i++)
        if (!(out[i] = nv_define(g, &op->results[i],
                                 nv_count(op->results[i].type))))
            return false;
    if (!read_letters(&g->s->tmp, constraints, &l) ||
        !results_fit(g, op, &l, first, pack))
        return misfit(g, op);
    if (!text_is_right(g, op, text, l.nout + l.nin))
        return false;
    for (int i = 0; i < op->noperand; i++) {
        in[i] = nv_regs(g, op_operand(op, i));
        if (!in[i] || in[i]->n != out[0]->n)
            return gen_unsupported(g, op, "on operands of different layouts");
    }
    g->ptx = ptx_of(text) > g->ptx ? ptx_of(text) : g->ptx;
    LLVMTypeRef result = result_type(g, &l);
    for (int at = 0; at < out[0]->n; at += pack) {
        LLVMValueRef args[MAX_WORDS];
        int n = 0;
        for (int i = 0; i < op->noperand; i++) {
            const Type *it = op_operand(op, i)->type;
            int need = words_of(it, pack);
            if (n + need > l.nin ||
                !pack_words(g, it, in[i], at, pack, l.in + n, args + n))
                return misfit(g, op);
            n += need;
        }
        if (n != l.nin)
            return misfit(g, op);
        LLVMValueRef r =
            ptx_asm(g, text, l.clean, result, args, n, op->kind == OP_ASM_EFFECT);
        for (int i = 0, word = first; i < op->nresult; i++) {
            LLVMValueRef got[MAX_WORDS];
            int words = words_of(op->results[i].type, pack);
            for (int w = 0; w < words; w++, word++)
                got[w] = l.nout == 1
                             ? r
                             : LLVMBuildExtractValue(g->b, r, (unsigned)word, "");
            unpack_words(g, op->results[i].type, got, pack, at, out[i]);
        }
    }
    return true;
}

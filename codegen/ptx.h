/* What PTX has and LLVM's IR has not: intrinsics of ptx.def and inline assembly. */
#ifndef SDC_CODEGEN_PTX_H
#define SDC_CODEGEN_PTX_H

#include "codegen/gen.h"

typedef enum PtxId {
#define PTX(id, name, sm) PTX_##id,
#include "codegen/ptx.def"
    PTX_COUNT
} PtxId;

/* Calls an intrinsic, which is not overloaded. */
LLVMValueRef ptx_call(Gen *g, PtxId id, LLVMValueRef *args, int n);
/* Is v a call of that intrinsic? */
bool ptx_is(LLVMValueRef v, PtxId id);
/* Inline assembly with LLVM's constraints. effects: it reads or writes memory, so it is
   neither moved nor removed. */
LLVMValueRef ptx_asm(Gen *g, const char *text, const char *constraints,
                     LLVMTypeRef result, LLVMValueRef *args, int n, bool effects);

/* Begins assembly in braces with a predicate `never`. It is false, since no SM has number
   -1, but ptxas cannot know that. */
#define PTX_NEVER                                                                        \
    "{ .reg .pred never; .reg .b32 sm; mov.u32 sm, %smid; setp.eq.u32 never, sm, -1; "

/* One access of memory by a thread: `words` registers of `bits` bits each, 8 to 64. */
typedef struct PtxAccess {
    int words, bits;
    /* between "ld" or "st" and the type: ".global.L1::evict_last" */
    const char *qualifiers;
    LLVMValueRef policy; /* i64, for ".L2::cache_hint" among them; NULL: none */
} PtxAccess;

/* Addresses are i64, in shared memory i32. Words are integers of max(bits, 16) bits. The
   access is made where pred, i1, holds; NULL: always. */

/* Loads a.words words into out[]. Where pred does not hold they are other[i]. */
void ptx_load(Gen *g, PtxAccess a, LLVMValueRef address, LLVMValueRef pred,
              LLVMValueRef *other, LLVMValueRef *out);
/* Stores value[0 .. a.words - 1]. */
void ptx_store(Gen *g, PtxAccess a, LLVMValueRef address, LLVMValueRef pred,
               LLVMValueRef *value);
/* An atomic operation. a.qualifiers is the whole instruction, such as
   "atom.relaxed.gpu.global.add.u32". value: its operands, `lists` lists of a.words words.
   out: the old words, 0 where pred does not hold; NULL: they are not wanted. */
void ptx_atomic(Gen *g, PtxAccess a, LLVMValueRef address, LLVMValueRef pred,
                LLVMValueRef *value, int lists, LLVMValueRef *out);

#endif

/* What PTX has and LLVM's IR has not: intrinsics by name and inline assembly. */
#ifndef SDC_CODEGEN_PTX_H
#define SDC_CODEGEN_PTX_H

#include "codegen/gen.h"

typedef enum PtxId {
#define PTX(id, name, sm) PTX_##id,
#include "codegen/ptx.def"
    PTX_COUNT
} PtxId;

/* Call of an intrinsic that is not overloaded. */
LLVMValueRef ptx_call(Gen *g, PtxId id, LLVMValueRef *args, int n);
/* Is v a call of that intrinsic? */
bool ptx_is(LLVMValueRef v, PtxId id);
/* Inline assembly. `effects`: it reads or writes memory and stays where it is. */
LLVMValueRef ptx_asm(Gen *g, const char *text, const char *constraints,
                     LLVMTypeRef result, LLVMValueRef *args, int n, bool effects);

/* Begins assembly in braces: a predicate `never`, of which the assembler does not know
   that it is false; no SM has that number. */
#define PTX_NEVER                                                                        \
    "{ .reg .pred never; .reg .b32 sm; mov.u32 sm, %smid; setp.eq.u32 never, sm, -1; "

/* One access of global memory by a thread: `words` registers of `bits` each (8 to 64). */
typedef struct PtxAccess {
    int words, bits;
    /* between "ld" or "st" and the type: ".global.L1::evict_last" */
    const char *qualifiers;
    LLVMValueRef policy; /* of ".L2::cache_hint" among them; NULL: none */
} PtxAccess;

/* pred NULL: always. other[i]: what the word is when pred is false. Words come back in
   out[]; they are integers of max(bits, 16) bits. */
void ptx_load(Gen *g, PtxAccess a, LLVMValueRef address, LLVMValueRef pred,
              LLVMValueRef *other, LLVMValueRef *out);
/* An address in shared memory is an i32. */
void ptx_store(Gen *g, PtxAccess a, LLVMValueRef address, LLVMValueRef pred,
               LLVMValueRef *value);
/* An atomic operation; qualifiers are the whole instruction, "atom.relaxed.gpu.global.
   add.u32". value: so many lists of a.words each. out NULL: nothing comes back; threads
   without pred get 0. */
void ptx_atomic(Gen *g, PtxAccess a, LLVMValueRef address, LLVMValueRef pred,
                LLVMValueRef *value, int lists, LLVMValueRef *out);

#endif

/* How a thread's registers meet memory: which of them move in one access, and elements as
   the 8- to 64-bit words of such an access. For gen_nv_mem.c and gen_nv_atomic.c. */
#ifndef SDC_CODEGEN_GEN_NV_ACCESS_H
#define SDC_CODEGEN_GEN_NV_ACCESS_H

#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

enum { NV_ACCESS_BYTES = 16 };

/* Which registers make one access: bit[i] is the register bit of element bit i. */
typedef struct NvRun {
    int n; /* elements, a power of two */
    int bit[LAYOUT_MAX_BITS];
    uint32_t mask; /* of those register bits */
} NvRun;

/* The widest run of elements of so many bytes that {contig} and the layout allow. */
NvRun nv_run(const Op *op, const Layout *l, int bytes);
/* The register of the run's k-th element; `base` is the first one's. */
uint32_t nv_member(const NvRun *r, uint32_t base, int k);

int nv_memory_bits(const Type *e);
/* How n elements of `bits` are moved: words of 64 bits for 64-bit elements, else of
   32, or one narrower word. */
PtxAccess nv_access(int n, int bits, const char *qualifiers);
/* Elements as the words of an access (at least 16 bits each), and back. */
void nv_pack(Gen *g, PtxAccess a, int bits, LLVMValueRef *elem, LLVMValueRef *word);
void nv_unpack(Gen *g, PtxAccess a, int bits, LLVMValueRef *word, LLVMValueRef *elem);
LLVMValueRef nv_address(Gen *g, LLVMValueRef ptr);
/* Behind what acquired: TMA sees what other programs wrote, too. */
void nv_acquired(Gen *g);

#endif

/* Accesses of global memory by a thread: which registers one access moves, and how
   elements become its words of 8 to 64 bits. For gen_nv_mem.c and gen_nv_atomic.c. */
#ifndef SDC_CODEGEN_GEN_NV_ACCESS_H
#define SDC_CODEGEN_GEN_NV_ACCESS_H

#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

enum { NV_ACCESS_BYTES = 16 };

/* Which registers one access moves. */
typedef struct NvRun {
    int n;                    /* elements, a power of two */
    int bit[LAYOUT_MAX_BITS]; /* the register bit of each bit of an element's index */
    uint32_t mask;            /* all of these register bits */
} NvRun;

/* The widest access that {contig} and layout l allow, for elements of `bytes` bytes. */
NvRun nv_run(const Op *op, const Layout *l, int bytes);
/* The register of the access's k-th element; `base`: that of its first. */
uint32_t nv_member(const NvRun *r, uint32_t base, int k);

/* Bits that an element of type e has in memory. */
int nv_memory_bits(const Type *e);
/* How n elements of `bits` bits are moved: in words of 64 bits if elements have as many,
   else in words of 32, or in one narrower word. qualifiers: as in PtxAccess. */
PtxAccess nv_access(int n, int bits, const char *qualifiers);
/* Packs elements into the words of an access, which have 16 bits at least; and back. */
void nv_pack(Gen *g, PtxAccess a, int bits, LLVMValueRef *elem, LLVMValueRef *word);
void nv_unpack(Gen *g, PtxAccess a, int bits, LLVMValueRef *word, LLVMValueRef *elem);
/* A pointer as the i64 that assembly takes. */
LLVMValueRef nv_address(Gen *g, LLVMValueRef ptr);
/* Behind an acquiring access: a proxy fence, so that TMA also sees what other programs
   wrote before. */
void nv_acquired(Gen *g);

#endif

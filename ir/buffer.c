/* See buffer.h. */
#include "ir/buffer.h"

#include "ir/base/util.h"

int
shared_elem_bytes(const Type *t)
{
    const Type *e = type_elem(t);
    return e->kind == TY_PTR ? 8 : (int)max_i64(1, type_bits(e) / 8);
}

int64_t
shared_stage_bytes(const Type *mem)
{
    return type_numel(mem) * shared_elem_bytes(mem);
}

int64_t
shared_stage_stride(const Type *mem)
{
    int64_t bytes = shared_stage_bytes(mem);
    return mem->stages > 1
               ? (bytes + TMA_SHARED_ALIGN - 1) / TMA_SHARED_ALIGN * TMA_SHARED_ALIGN
               : bytes;
}

int64_t
shared_buffer_bytes(const Type *mem)
{
    return shared_stage_stride(mem) * max_i64(1, mem->stages);
}

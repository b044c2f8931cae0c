/* Tensors of other libraries, by DLPack's DLTensor, as arguments of a launch.

   The structure is repeated here, so that no header is needed to build: its layout is the
   ABI that DLPack promises for major version 1, and the part that is read here has been
   the same since version 0.2. */
#include "runtime/internal.h"

typedef struct Tensor {
    void *data;
    int32_t device, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    const int64_t *shape, *strides; /* strides NULL: row after row */
    uint64_t byte_offset;
} Tensor;

_Static_assert(sizeof(void *) != 8 || sizeof(Tensor) == 48, "DLTensor");

enum { ON_CPU = 1, ON_CUDA = 2, ON_CUDA_HOST = 3, ON_CUDA_MANAGED = 13 };

static SdcDtype
dtype_of(const Tensor *t)
{
    static const struct {
        uint8_t code, bits;
        SdcDtype dtype;
    } table[] = {
        {0, 8, SDC_I8},    {0, 16, SDC_I16},     {0, 32, SDC_I32},   {0, 64, SDC_I64},
        {1, 8, SDC_U8},    {1, 16, SDC_U16},     {1, 32, SDC_U32},   {1, 64, SDC_U64},
        {2, 16, SDC_FP16}, {2, 32, SDC_FP32},    {2, 64, SDC_FP64},  {4, 16, SDC_BF16},
        {6, 8, SDC_BOOL},  {10, 8, SDC_FP8E4NV}, {12, 8, SDC_FP8E5},
    };
    for (int i = 0; i < COUNT_OF(table) && t->lanes == 1; i++)
        if (table[i].code == t->code && table[i].bits == t->bits)
            return table[i].dtype;
    return SDC_DTYPE_NONE;
}

/* A launch of this context can reach the memory. */
static bool
reachable(const SdcContext *cx, const Tensor *t)
{
    switch (t->device) {
    case ON_CPU: return !cx->on_gpu;
    case ON_CUDA: return cx->on_gpu && t->device_id == cx->device;
    case ON_CUDA_HOST:
    case ON_CUDA_MANAGED: return true;
    default: return false;
    }
}

static SdcStatus
look(SdcContext *cx, const Tensor *t, SdcDtype *dtype, void **data)
{
    if (!t || t->ndim < 0 || (t->ndim && !t->shape))
        return context_fail(cx, SDC_ERROR_ARGUMENT, "DLPack: no tensor");
    *dtype = dtype_of(t);
    if (*dtype == SDC_DTYPE_NONE)
        return context_fail(cx, SDC_ERROR_ARGUMENT,
                            "DLPack: elements of code %d, %d bits and %d lanes are not "
                            "known",
                            t->code, t->bits, t->lanes);
    if (!reachable(cx, t))
        return context_fail(cx, SDC_ERROR_ARGUMENT,
                            "DLPack: the tensor is on device %d:%d, launches of this "
                            "context run on %s %d",
                            t->device, t->device_id, cx->on_gpu ? "GPU" : "the CPU",
                            cx->on_gpu ? cx->device : 0);
    *data = t->data ? (char *)t->data + t->byte_offset : NULL;
    return SDC_OK;
}

/* What checked launches may touch of it: from its first element to its last. */
static SdcStatus
make_known(SdcContext *cx, const Tensor *t, SdcDtype dtype, const void *data)
{
    uint64_t extent = 1;
    for (int i = 0; i < t->ndim; i++)
        if (t->shape[i] == 0)
            return sdc_register_range(cx, data, 0, NULL);
    for (int i = 0; i < t->ndim; i++) {
        int64_t stride = t->strides ? t->strides[i] : 0;
        if (!t->strides) /* rows behind each other */
            extent *= (uint64_t)t->shape[i];
        else if (stride < 0)
            return SDC_OK; /* begins in the middle: nothing is known */
        else
            extent += (uint64_t)(t->shape[i] - 1) * (uint64_t)stride;
    }
    size_t bytes = (size_t)extent * (size_t)sdc_dtype_size(dtype);
    SdcStatus status = sdc_register_range(cx, data, bytes, NULL);
    if (status == SDC_OK && !t->strides && t->ndim > 0 && t->ndim <= 8)
        status = sdc_range_shape(cx, data, t->ndim, t->shape);
    return status;
}

SdcStatus
sdc_arg_dlpack(SdcContext *cx, const void *tensor, SdcArg *out)
{
    SdcDtype dtype;
    void *data;
    if (!cx)
        return SDC_ERROR_ARGUMENT;
    if (!out)
        return context_fail(cx, SDC_ERROR_ARGUMENT,
                            "DLPack: no place to put the argument");
    SdcStatus status = look(cx, tensor, &dtype, &data);
    if (status == SDC_OK && cx->check && data)
        status = make_known(cx, tensor, dtype, data);
    *out = status == SDC_OK ? sdc_ptr(dtype, data) : sdc_none();
    return status;
}

SdcStatus
sdc_desc_dlpack(SdcContext *cx, const void *tensor, const int32_t *block, SdcDesc *out)
{
    const Tensor *t = tensor;
    if (!cx)
        return SDC_ERROR_ARGUMENT;
    if (!out || !block)
        return context_fail(cx, SDC_ERROR_ARGUMENT, "DLPack: %s",
                            out ? "no sizes of a block"
                                : "no place to put the descriptor");
    *out = (SdcDesc){0};
    SdcStatus status = look(cx, t, &out->dtype, &out->base);
    if (status != SDC_OK)
        return status;
    if (t->ndim < 1 || t->ndim > SDC_MAX_DESC_RANK)
        return context_fail(cx, SDC_ERROR_ARGUMENT,
                            "DLPack: a descriptor has 1 to %d dimensions, the tensor %d",
                            SDC_MAX_DESC_RANK, t->ndim);
    out->rank = t->ndim;
    int64_t stride = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        out->shape[i] = t->shape[i];
        out->strides[i] = t->strides ? t->strides[i] : stride;
        out->block[i] = block[i];
        if (__builtin_mul_overflow(stride, t->shape[i], &stride))
            return context_fail(cx, SDC_ERROR_ARGUMENT, "DLPack: the shape overflows");
    }
    return SDC_OK;
}

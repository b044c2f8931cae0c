/* What attention's forward and backward pass share. Private to libsdc. */
#ifndef SDC_RUNTIME_NN_ATTENTION_H
#define SDC_RUNTIME_NN_ATTENTION_H

#include "runtime/kernels.h"

/* `batch`, `M` and `N` of the tensors; sequences and the longest of them for the grids.
 */
typedef struct AttentionShape {
    int64_t batch, heads, key_heads, M, N, dim, value_dim;
    int64_t sequences, longest_m, longest_n;
    bool packed; /* sequences behind one another */
    SdcAttentionOptions options; /* those given, others zero */
    int64_t page;                /* keys of a page */
} AttentionShape;

/* Refuses the call where tensors and options do not fit. */
bool attention_fits(Call *c, const SdcTensor *q, const SdcTensor *key,
                    const SdcTensor *value, const SdcTensor *lse, const SdcAttention *a,
                    AttentionShape *s);
AttentionAsk attention_ask(const AttentionShape *s, SdcDtype t, const SdcAttention *a);
double attention_scale(const SdcAttention *a, const AttentionShape *s);
/* The constants and, behind the strides, the arguments that all kernels have. */
void attention_bind(Call *c, const SdcAttention *a, const AttentionShape *s,
                    const AttentionTile *t);
void attention_strides(Call *c, const SdcTensor *t, bool packed);
void attention_lengths(Call *c, const SdcAttention *a, const AttentionShape *s);

/* ---- options */

/* Those of the call in `to`; they fit the shape; any that is not what it is without. */
bool attention_options(Call *c, const SdcAttention *a, SdcAttentionOptions *to);
bool attention_options_fit(Call *c, const AttentionShape *s);
bool attention_is_changed(const AttentionShape *s);
void attention_bind_options(Call *c, const AttentionShape *s);
void attention_option_args(Call *c, const AttentionShape *s);
/* Those that the gradients know: up to the lengths of keys. */
void attention_grad_options(Call *c, const AttentionShape *s);
/* Options that have no gradients: pages, scales. */
bool attention_forward_only(const AttentionShape *s);

#endif

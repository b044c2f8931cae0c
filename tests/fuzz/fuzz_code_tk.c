/* Kernels in Triton's language through all passes and LLVM, see code.h. Types of the
   parameters follow their annotations, else the input. */
#include "runtime/sdc.h"
#include "tests/fuzz/code.h"
#include "tests/fuzz/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
add_type(char *to, size_t room, const SdcParam *p, unsigned hash, int i)
{
    static const char *const types[] = {"*fp32:16", "i32", "*fp16", "fp32",
                                        "*i64",     "i64", "*i8",   "*fp32"};
    static const char *const sizes[] = {"16", "32", "64"};
    size_t n = strlen(to);
    const char *type = p->is_constexpr ? sizes[(hash >> 3) % 3]
                       : p->type       ? p->type
                                       : types[((unsigned)i + (hash >> 5) % 2) % 8];
    if (!p->has_default)
        snprintf(to + n, room - n, "%s%s=%s", n ? "," : "", p->name, type);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SdcModule *m;
    SdcContext *cx = code_context();
    if (!code_is_small(data, size) || sdc_module_load_text(cx, "fuzz.tk",
                                                           (const char *)data, size,
                                                           SDC_LANG_TRITON, &m))
        return -1;
    unsigned hash = code_hash(data, size);
    int count = sdc_module_kernel_count(m);
    const char *kernel =
        count ? sdc_module_kernel_name(m, (int)(hash % (unsigned)count)) : NULL;
    const SdcParam *params;
    int n = 0;
    if (kernel && sdc_module_params(m, kernel, &params, &n) == SDC_OK) {
        char signature[4000] = "";
        for (int i = 0; i < n && strlen(signature) < 3000; i++)
            add_type(signature, sizeof signature, &params[i], hash, i);
        code_compile(cx, m, hash, kernel, signature);
    }
    sdc_module_unload(m);
    return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    static const char *const words[] = {
        "0", "1", "-1", "2.5", "None", "True", "False", "x", "16", "64", "tl.float16",
        "tl.int64", "tl.bfloat16", "tl.float64", "tl.int1", "tl.uint8", "tl.float8e5",
        "(1, 2)", "tl.arange(0, 8)", "acc", "''", "[]", "9223372036854775808", "not",
        "if", "else", "return", "tl.static_range", "range", "while", "tl.load", "tl.sum",
        "tl.max", "tl.cumsum", "tl.sort", "tl.dot", "tl.trans", "x.shape", "tl.where",
        "tl.zeros((4, 4), tl.float32)", "is", "tl.constexpr", "tl.atomic_add", "//", "%",
        ">>", "<<", "**", "tl.program_id(0)", "tl.make_block_ptr", "tl.advance",
        "tl.reduce", "tl.associative_scan", "tl.join", "tl.split", "tl.gather",
        "tl.histogram", "num_warps=8", "mask=None", "other=0", "axis=0", "axis=1",
        "keep_dims=True", "[:, None]", "[None, :]", "tl.exp", "for i in range(x):",
    };
    return words_mutate(data, size, max, seed, words, sizeof words / sizeof *words);
}

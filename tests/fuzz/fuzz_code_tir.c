/* Tile IR text through all passes and LLVM, see code.h. */
#include "runtime/sdc.h"
#include "tests/fuzz/code.h"
#include "tests/fuzz/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SdcModule *m;
    SdcContext *cx = code_context();
    if (!code_is_small(data, size) ||
        sdc_module_load_text(cx, "fuzz.tir", (const char *)data, size, SDC_LANG_TIR, &m))
        return -1;
    for (int i = 0; i < sdc_module_kernel_count(m) && i < 2; i++)
        code_compile(cx, m, code_hash(data, size), sdc_module_kernel_name(m, i), NULL);
    sdc_module_unload(m);
    return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    static const char *const words[] = {
        "0", "1", "-1", "2", "3", "4", "8", "16", "32", "64", "128", "i1", "i8", "i16",
        "i32", "i64", "f16", "bf16", "f32", "f64", "f8e5", "f8e4nv", "add", "sub", "mul",
        "divs", "divu", "rems", "shl", "xor", "and", "or", "cmpi", "cmpf", "select",
        "addf", "mulf", "divf", "reduce", "scan", "dot", "load", "store", "reshape",
        "trans", "broadcast", "splat", "axis=0", "axis=1", "9223372036854775807",
        "-9223372036854775808", "2147483647", "nan", "inf", "warps=8", "warps=1",
        "stages=4", "tile<1xi32>", "tile<64xf32>", "tile<16x16xf32>", "tile<16x16xf16>",
        "pred=\"slt\"", "div=16", "div=1", "yield", "return", "for", "if", "while",
    };
    return words_mutate(data, size, max, seed, words, sizeof words / sizeof *words);
}

// A C++ host with threads of its own and tensors of a DLPack library: each thread launches
// the same kernel on its part, and the kernel is compiled once.
//
//     tensors kernels_dsl/vector_add.tk
#include <sdc/sdc.h>

#include <cstdio>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace {

// As <dlpack/dlpack.h> has it; a program with that header uses it.
struct DLTensor {
    void *data;
    struct { int32_t type, id; } device;
    int32_t ndim;
    struct { uint8_t code, bits; uint16_t lanes; } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

struct Destroy {
    void operator()(SdcContext *ctx) const { sdc_context_destroy(ctx); }
};

constexpr int64_t threads = 8, part = 10000;

DLTensor
slice(std::vector<float> &v, int64_t *shape, int64_t first)
{
    return {v.data(), {1, 0}, 1, {2, 32, 1}, shape, nullptr,
            static_cast<uint64_t>(first) * sizeof(float)};
}

} // namespace

int
main(int argc, char **argv)
{
    SdcContext *made = nullptr;
    SdcModule *module = nullptr;
    SdcFunction *add = nullptr;
    const char *bind[] = {"BLOCK=1024"};
    if (argc < 2 || sdc_context_create(nullptr, &made) != SDC_OK)
        return 2;
    std::unique_ptr<SdcContext, Destroy> ctx(made);
    if (sdc_module_load_file(ctx.get(), argv[1], &module) != SDC_OK ||
        sdc_function_get(module, "vector_add", bind, 1, &add) != SDC_OK) {
        std::fputs(sdc_error(ctx.get()), stderr);
        return 1;
    }
    std::vector<float> x(threads * part), y(threads * part), out(threads * part);
    std::iota(x.begin(), x.end(), 0.0f);
    std::iota(y.begin(), y.end(), 1.0f);
    std::vector<std::thread> pool;
    std::vector<int> failed(threads, 0);
    for (int64_t t = 0; t < threads; t++)
        pool.emplace_back([&, t] {
            int64_t shape[] = {part};
            DLTensor tensors[] = {slice(x, shape, t * part), slice(y, shape, t * part),
                                  slice(out, shape, t * part)};
            SdcArg args[4];
            for (int i = 0; i < 3; i++)
                failed[t] |= sdc_arg_dlpack(ctx.get(), &tensors[i], &args[i]) != SDC_OK;
            args[3] = sdc_int(part);
            SdcGrid grid = sdc_grid((part + 1023) / 1024, 1, 1);
            if (failed[t] || sdc_launch(add, grid, args, 4, nullptr) != SDC_OK) {
                std::fputs(sdc_error(ctx.get()), stderr);
                failed[t] = 1;
            }
        });
    for (std::thread &t : pool)
        t.join();
    for (int64_t i = 0; i < threads * part; i++)
        if (out[i] != x[i] + y[i])
            failed[0] = 1;
    for (int f : failed)
        if (f)
            return 1;
    std::printf("%lld sums in %lld threads\n", (long long)(threads * part),
                (long long)threads);
    return 0;
}

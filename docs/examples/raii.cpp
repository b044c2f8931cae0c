// The same in C++ with sdc.hpp: a row of numbers is scaled and shifted, an error is an
// exception.
#include <sdc/sdc.hpp>

#include <cstdio>
#include <vector>

static const char text[] = R"(
import triton
import triton.language as tl

@triton.jit
def scale(x, out, n, by, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * by + 1, mask=i < n)
)";

int
main()
{
    constexpr int n = 1000;
    std::vector<float> x(n, 2.0f), out(n);
    try {
        sdc::Context ctx;
        sdc::Module mod = ctx.load_text("scale.tk", text);
        sdc::Function scale = mod.function("scale", {"BLOCK=128"});
        scale({(n + 127) / 128}, x.data(), out.data(), n, 3.0f);
        std::printf("%s: 2 * 3 + 1 = %g\n", mod.kernels()[0].c_str(), out[n - 1]);
        mod.function("scale", {"BLOK=128"});
    } catch (const sdc::Error &e) {
        std::printf("%s: %s\n", sdc_status_name(e.status()), e.what());
        return 0;
    }
    return 1;
}

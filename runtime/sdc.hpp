/* sdc.h for C++17: objects that free themselves, arguments that are made of values. Header
   only; needs libsdc and nothing else.

       sdc::Context ctx;
       sdc::Module mod = ctx.load_file("add.tk");
       sdc::Function add = mod.function("add", {"BLOCK=256"});
       add({(n + 255) / 256}, x.data(), y.data(), out.data(), n);

   What fails throws sdc::Error, with the message and the status. Without exceptions
   (-fno-exceptions), or with SDC_NO_EXCEPTIONS, calls return a status that may be asked,
   and objects that could not be made are false.

   A Context owns modules and what comes of them, as in C: it is the last to go. */
#ifndef SDC_HPP
#define SDC_HPP

#include "runtime/sdc.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if !defined(SDC_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define SDC_NO_EXCEPTIONS
#endif
#ifndef SDC_NO_EXCEPTIONS
#include <stdexcept>
#endif

namespace sdc {

#ifndef SDC_NO_EXCEPTIONS
/* What a call said, with its place in the source: what(); status() says of what kind. */
class Error : public std::runtime_error {
public:
    Error(SdcStatus status, const std::string &text)
        : std::runtime_error(text), status_(status)
    {
    }
    SdcStatus status() const noexcept { return status_; }

private:
    SdcStatus status_;
};
#endif

/* Throws what has failed, or hands it on. */
inline SdcStatus
checked(SdcContext *ctx, SdcStatus status)
{
#ifndef SDC_NO_EXCEPTIONS
    if (status != SDC_OK)
        throw Error(status, ctx ? sdc_error(ctx) : sdc_status_name(status));
#else
    (void)ctx;
#endif
    return status;
}

/* The element type of a C++ type; elements of 16 and 8 bits are tagged pointers, below. */
template <typename T> struct dtype_of;
#define SDC_DTYPE_OF(type, name)                                                         \
    template <> struct dtype_of<type> {                                                  \
        static constexpr SdcDtype value = name;                                          \
    }
SDC_DTYPE_OF(bool, SDC_BOOL);
SDC_DTYPE_OF(std::int8_t, SDC_I8);
SDC_DTYPE_OF(std::int16_t, SDC_I16);
SDC_DTYPE_OF(std::int32_t, SDC_I32);
SDC_DTYPE_OF(std::int64_t, SDC_I64);
SDC_DTYPE_OF(std::uint8_t, SDC_U8);
SDC_DTYPE_OF(std::uint16_t, SDC_U16);
SDC_DTYPE_OF(std::uint32_t, SDC_U32);
SDC_DTYPE_OF(std::uint64_t, SDC_U64);
SDC_DTYPE_OF(float, SDC_FP32);
SDC_DTYPE_OF(double, SDC_FP64);
#undef SDC_DTYPE_OF

/* Arguments: pointers by what they point to, numbers by Triton's rules. `ptr` says the
   type of memory that C++ has no type for: sdc::ptr(SDC_BF16, p). */
inline SdcArg
ptr(SdcDtype t, const void *p)
{
    return sdc_ptr(t, p);
}

inline SdcArg
arg(const SdcArg &a)
{
    return a;
}

inline SdcArg
arg(std::nullptr_t)
{
    return sdc_none();
}

template <typename T>
SdcArg
arg(T *p)
{
    return sdc_ptr(dtype_of<std::remove_cv_t<T>>::value, p);
}

template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
SdcArg
arg(T x)
{
    if constexpr (std::is_same_v<T, bool>)
        return sdc_int_of(SDC_BOOL, x);
    else if constexpr (std::is_floating_point_v<T>)
        return sdc_float(static_cast<double>(x));
    else
        return sdc_int(static_cast<std::int64_t>(x));
}

/* {x}, {x, y} or {x, y, z}. */
struct Grid {
    std::int64_t x = 1, y = 1, z = 1;
    Grid(std::int64_t nx, std::int64_t ny = 1, std::int64_t nz = 1) : x(nx), y(ny), z(nz)
    {
    }
    SdcGrid c() const { return sdc_grid(x, y, z); }
};

/* A kernel with its constexprs bound; the module's, not freed here. */
class Function {
public:
    Function() = default;
    Function(SdcContext *ctx, SdcFunction *fn) : ctx_(ctx), fn_(fn) {}
    SdcFunction *get() const noexcept { return fn_; }
    explicit operator bool() const noexcept { return fn_ != nullptr; }

    /* A launch on the default stream. */
    template <typename... A>
    SdcStatus operator()(const Grid &grid, const A &...a) const
    {
        return on(nullptr, grid, a...);
    }

    /* A launch on a CUstream. */
    template <typename... A>
    SdcStatus on(void *stream, const Grid &grid, const A &...a) const
    {
        const SdcArg args[sizeof...(A) + 1] = {arg(a)..., sdc_none()};
        return launch(grid, args, static_cast<int>(sizeof...(A)), stream);
    }

    SdcStatus launch(const Grid &grid, const SdcArg *args, int n,
                     void *stream = nullptr) const
    {
        return checked(ctx_, sdc_launch(fn_, grid.c(), args, n, stream));
    }

    /* The configuration that was tuned, and the grid that follows: "cdiv(n,BLOCK)". */
    template <typename... A>
    SdcStatus tuned(void *stream, const char *grid, const A &...a) const
    {
        const SdcArg args[sizeof...(A) + 1] = {arg(a)..., sdc_none()};
        return checked(ctx_, sdc_launch_tuned(fn_, grid, args,
                                              static_cast<int>(sizeof...(A)), stream));
    }

private:
    SdcContext *ctx_ = nullptr;
    SdcFunction *fn_ = nullptr;
};

/* One source file. */
class Module {
public:
    Module() = default;
    Module(SdcContext *ctx, SdcModule *mod) : ctx_(ctx), mod_(mod) {}
    SdcModule *get() const noexcept { return mod_.get(); }
    explicit operator bool() const noexcept { return mod_ != nullptr; }

    /* `bind`: {"BLOCK=256", "num_warps=8"}. */
    Function function(const std::string &kernel,
                      const std::vector<std::string> &bind = {}) const
    {
        std::vector<const char *> texts;
        for (const std::string &b : bind)
            texts.push_back(b.c_str());
        SdcFunction *fn = nullptr;
        checked(ctx_, sdc_function_get(mod_.get(), kernel.c_str(), texts.data(),
                                       static_cast<int>(texts.size()), &fn));
        return {ctx_, fn};
    }

    /* Names of the kernels, in source order. */
    std::vector<std::string> kernels() const
    {
        std::vector<std::string> names;
        for (int i = 0; i < sdc_module_kernel_count(mod_.get()); i++)
            names.emplace_back(sdc_module_kernel_name(mod_.get(), i));
        return names;
    }

private:
    struct Unload {
        void operator()(SdcModule *m) const { sdc_module_unload(m); }
    };
    SdcContext *ctx_ = nullptr;
    std::unique_ptr<SdcModule, Unload> mod_;
};

/* Options, threads, a device. */
class Context {
public:
    explicit Context(SdcContextOptions options = {})
    {
        options.size = sizeof options;
        SdcContext *made = nullptr;
        checked(nullptr, sdc_context_create(&options, &made));
        ctx_.reset(made);
    }
    /* "cpu" or "cuda". */
    static Context on(const char *target, int device = 0)
    {
        SdcContextOptions options = {};
        options.target = target;
        options.device = device;
        return Context(options);
    }
    SdcContext *get() const noexcept { return ctx_.get(); }
    explicit operator bool() const noexcept { return ctx_ != nullptr; }

    Module load_file(const std::string &path) const
    {
        SdcModule *mod = nullptr;
        checked(get(), sdc_module_load_file(get(), path.c_str(), &mod));
        return {get(), mod};
    }
    /* `name` stands for the path in messages. */
    Module load_text(const std::string &name, const std::string &text) const
    {
        SdcModule *mod = nullptr;
        checked(get(), sdc_module_load_text(get(), name.c_str(), text.data(), text.size(),
                                            SDC_LANG_AUTO, &mod));
        return {get(), mod};
    }
    std::string error() const { return sdc_error(get()); }
    std::string warnings() const { return sdc_warnings(get()); }
    SdcDevice device() const
    {
        SdcDevice d = {};
        checked(get(), sdc_context_device(get(), &d));
        return d;
    }

private:
    struct Destroy {
        void operator()(SdcContext *c) const { sdc_context_destroy(c); }
    };
    std::unique_ptr<SdcContext, Destroy> ctx_;
};

} /* namespace sdc */

#endif

//! Bindings of libsdc: Triton kernels in Rust programs, on the CPU and on NVIDIA GPUs.
//!
//! ```no_run
//! let ctx = sdc::Context::new()?;
//! let module = ctx.load_file("add.tk")?;
//! let add = module.function("add", &["BLOCK=256"])?;
//! let (x, y, mut out) = (vec![1f32; 1000], vec![2f32; 1000], vec![0f32; 1000]);
//! add.launch((4, 1, 1), &[(&x[..]).into(), (&y[..]).into(), (&mut out[..]).into(),
//!                         1000.into()])?;
//! # Ok::<(), sdc::Error>(())
//! ```
//!
//! A launch borrows the slices of its arguments until it is done, which on the CPU is when it
//! returns. That a kernel stays inside of them is not checked unless the context is
//! [checked](Context::checked): a kernel is code like any other, and `launch` trusts it.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::rc::Rc;

mod ffi {
    use super::*;

    #[repr(C)]
    pub struct Options {
        pub size: usize,
        pub include_dirs: *const *const c_char,
        pub ninclude: c_int,
        pub threads: c_int,
        pub memory_limit: usize,
        pub cpu: *const c_char,
        pub color: c_int,
        pub debug: c_int,
        pub target: *const c_char,
        pub device: c_int,
        pub cache_dir: *const c_char,
        pub worker: *const c_char,
        pub worker_seconds: c_int,
        pub check: c_int,
    }

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct Grid {
        pub x: i32,
        pub y: i32,
        pub z: i32,
    }

    /// A pointer, an integer or a float; buffers are read during the launch.
    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct Arg {
        pub kind: i32,
        pub dtype: i32,
        pub value: u64,
    }

    #[repr(C)]
    pub struct Buffer {
        pub dtype: c_int,
        pub ptr: *const c_void,
        pub bytes: usize,
    }

    extern "C" {
        pub fn sdc_context_create(o: *const Options, out: *mut *mut c_void) -> c_int;
        pub fn sdc_context_destroy(cx: *mut c_void);
        pub fn sdc_error(cx: *mut c_void) -> *const c_char;
        pub fn sdc_status_name(status: c_int) -> *const c_char;
        pub fn sdc_module_load_file(
            cx: *mut c_void,
            path: *const c_char,
            out: *mut *mut c_void,
        ) -> c_int;
        pub fn sdc_module_load_text(
            cx: *mut c_void,
            name: *const c_char,
            text: *const c_char,
            size: usize,
            lang: c_int,
            out: *mut *mut c_void,
        ) -> c_int;
        pub fn sdc_module_unload(m: *mut c_void);
        pub fn sdc_function_get(
            m: *mut c_void,
            kernel: *const c_char,
            bind: *const *const c_char,
            nbind: c_int,
            out: *mut *mut c_void,
        ) -> c_int;
        pub fn sdc_launch(
            f: *mut c_void,
            grid: Grid,
            args: *const Arg,
            nargs: c_int,
            stream: *mut c_void,
        ) -> c_int;
        pub fn sdc_dtype_by_name(name: *const c_char, n: usize) -> c_int;
        pub fn sdc_buffer(b: *const Buffer) -> Arg;
        pub fn sdc_ptr(t: c_int, p: *const c_void) -> Arg;
        pub fn sdc_int(x: i64) -> Arg;
        pub fn sdc_float(x: f64) -> Arg;
        pub fn sdc_none() -> Arg;
    }
}

/// What a call said, with the place in the source.
#[derive(Debug, Clone)]
pub struct Error {
    /// `SDC_ERROR_SOURCE` and the like.
    pub status: String,
    pub text: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.text.trim_end())
    }
}

impl std::error::Error for Error {}

fn checked(cx: *mut c_void, status: c_int) -> Result<(), Error> {
    if status == 0 {
        return Ok(());
    }
    let text = |p: *const c_char| unsafe { CStr::from_ptr(p) }.to_string_lossy().into();
    Err(Error {
        status: text(unsafe { ffi::sdc_status_name(status) }),
        text: if cx.is_null() { String::new() } else { text(unsafe { ffi::sdc_error(cx) }) },
    })
}

fn c_text(s: &str) -> CString {
    CString::new(s.replace('\0', "")).unwrap_or_default()
}

struct Owned(*mut c_void);

impl Drop for Owned {
    fn drop(&mut self) {
        unsafe { ffi::sdc_context_destroy(self.0) }
    }
}

/// Options, threads, a device.
pub struct Context(Rc<Owned>);

impl Context {
    /// On the CPU.
    pub fn new() -> Result<Context, Error> {
        Self::on("cpu", false)
    }

    /// Every access of a launch is checked: one outside of a slice is an error with its place.
    pub fn checked() -> Result<Context, Error> {
        Self::on("cpu", true)
    }

    /// On a GPU: arguments are then addresses there, see [`Arg::device`].
    pub fn cuda() -> Result<Context, Error> {
        Self::on("cuda", false)
    }

    fn on(target: &str, check: bool) -> Result<Context, Error> {
        let target = c_text(target);
        let mut o: ffi::Options = unsafe { std::mem::zeroed() };
        o.size = std::mem::size_of::<ffi::Options>();
        o.target = target.as_ptr();
        o.check = check as c_int;
        let mut made = ptr::null_mut();
        checked(ptr::null_mut(), unsafe { ffi::sdc_context_create(&o, &mut made) })?;
        Ok(Context(Rc::new(Owned(made))))
    }

    pub fn load_file(&self, path: &str) -> Result<Module, Error> {
        let mut made = ptr::null_mut();
        let path = c_text(path);
        checked(self.0 .0, unsafe {
            ffi::sdc_module_load_file(self.0 .0, path.as_ptr(), &mut made)
        })?;
        Ok(Module { cx: self.0.clone(), it: made })
    }

    /// `name` stands for the path in messages.
    pub fn load_text(&self, name: &str, text: &str) -> Result<Module, Error> {
        let mut made = ptr::null_mut();
        let name = c_text(name);
        checked(self.0 .0, unsafe {
            ffi::sdc_module_load_text(
                self.0 .0,
                name.as_ptr(),
                text.as_ptr() as *const c_char,
                text.len(),
                0,
                &mut made,
            )
        })?;
        Ok(Module { cx: self.0.clone(), it: made })
    }
}

/// One source file.
pub struct Module {
    cx: Rc<Owned>,
    it: *mut c_void,
}

impl Drop for Module {
    fn drop(&mut self) {
        unsafe { ffi::sdc_module_unload(self.it) }
    }
}

impl Module {
    /// A kernel with its constexprs: `&["BLOCK=256"]`.
    pub fn function(&self, kernel: &str, bind: &[&str]) -> Result<Function<'_>, Error> {
        let texts: Vec<CString> = bind.iter().map(|b| c_text(b)).collect();
        let pointers: Vec<*const c_char> = texts.iter().map(|t| t.as_ptr()).collect();
        let mut made = ptr::null_mut();
        let kernel = c_text(kernel);
        checked(self.cx.0, unsafe {
            ffi::sdc_function_get(
                self.it,
                kernel.as_ptr(),
                pointers.as_ptr(),
                pointers.len() as c_int,
                &mut made,
            )
        })?;
        Ok(Function { module: self, it: made })
    }
}

/// A kernel that can be launched.
pub struct Function<'m> {
    module: &'m Module,
    it: *mut c_void,
}

impl Function<'_> {
    /// Runs the grid; returns when it is done.
    pub fn launch(&self, grid: (i32, i32, i32), args: &[Arg<'_>]) -> Result<(), Error> {
        let buffers: Vec<Option<ffi::Buffer>> = args.iter().map(|a| a.buffer()).collect();
        let raw: Vec<ffi::Arg> = args
            .iter()
            .zip(&buffers)
            .map(|(a, b)| match b {
                Some(b) => unsafe { ffi::sdc_buffer(b) },
                None => a.raw(),
            })
            .collect();
        let grid = ffi::Grid { x: grid.0, y: grid.1, z: grid.2 };
        checked(self.module.cx.0, unsafe {
            ffi::sdc_launch(self.it, grid, raw.as_ptr(), raw.len() as c_int, ptr::null_mut())
        })
    }
}

enum Kind {
    Slice(c_int, *const c_void, usize),
    Device(c_int, u64),
    Int(i64),
    Float(f64),
    None,
}

/// An argument of a launch: a slice, a number, `Arg::none()`, or memory of a device.
pub struct Arg<'a>(Kind, PhantomData<&'a mut ()>);

impl<'a> Arg<'a> {
    /// Python's None.
    pub fn none() -> Arg<'a> {
        Arg(Kind::None, PhantomData)
    }

    /// An address of the device; `dtype` as Triton names it, "fp16".
    pub fn device(dtype: &str, address: u64) -> Arg<'a> {
        let t = c_text(dtype);
        let t = unsafe { ffi::sdc_dtype_by_name(t.as_ptr(), dtype.len()) };
        Arg(Kind::Device(t, address), PhantomData)
    }

    fn buffer(&self) -> Option<ffi::Buffer> {
        match self.0 {
            Kind::Slice(dtype, ptr, bytes) => Some(ffi::Buffer { dtype, ptr, bytes }),
            _ => None,
        }
    }

    fn raw(&self) -> ffi::Arg {
        unsafe {
            match self.0 {
                Kind::Device(t, p) => ffi::sdc_ptr(t, p as usize as *const c_void),
                Kind::Int(x) => ffi::sdc_int(x),
                Kind::Float(x) => ffi::sdc_float(x),
                _ => ffi::sdc_none(),
            }
        }
    }
}

macro_rules! slices {
    ($($type:ty => $name:literal),*) => {$(
        impl<'a> From<&'a [$type]> for Arg<'a> {
            fn from(s: &'a [$type]) -> Arg<'a> {
                let t = unsafe {
                    ffi::sdc_dtype_by_name($name.as_ptr() as *const c_char, $name.len())
                };
                Arg(Kind::Slice(t, s.as_ptr() as *const c_void, std::mem::size_of_val(s)),
                    PhantomData)
            }
        }
        impl<'a> From<&'a mut [$type]> for Arg<'a> {
            fn from(s: &'a mut [$type]) -> Arg<'a> {
                let t = unsafe {
                    ffi::sdc_dtype_by_name($name.as_ptr() as *const c_char, $name.len())
                };
                let bytes = std::mem::size_of_val(s);
                Arg(Kind::Slice(t, s.as_mut_ptr() as *const c_void, bytes), PhantomData)
            }
        }
    )*};
}
slices!(f32 => "fp32", f64 => "fp64", i8 => "i8", i16 => "i16", i32 => "i32", i64 => "i64",
        u8 => "u8", u16 => "u16", u32 => "u32", u64 => "u64");

impl From<i32> for Arg<'_> {
    fn from(x: i32) -> Self {
        Arg(Kind::Int(x as i64), PhantomData)
    }
}

impl From<i64> for Arg<'_> {
    fn from(x: i64) -> Self {
        Arg(Kind::Int(x), PhantomData)
    }
}

impl From<f32> for Arg<'_> {
    fn from(x: f32) -> Self {
        Arg(Kind::Float(x as f64), PhantomData)
    }
}

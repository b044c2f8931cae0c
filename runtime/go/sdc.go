// Package sdc runs Triton kernels: bindings of libsdc by cgo.
//
//	ctx, err := sdc.NewContext("cpu")
//	mod, err := ctx.LoadFile("add.tk")
//	add, err := mod.Function("add", "BLOCK=256")
//	err = add.Launch(sdc.Grid{4, 1, 1}, x, y, out, 1000)
//
// Slices of numbers, integers, float32, nil (Python's None) and sdc.Device are arguments.
package sdc

/*
#cgo pkg-config: sdc
#include <sdc/sdc.h>
#include <stdint.h>
#include <stdlib.h>

// An address of a GPU is no pointer of Go's, and never becomes one.
static SdcArg sdc_address(SdcDtype type, uintptr_t address)
{
	return sdc_ptr(type, (void *)address);
}
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Grid is how many programs run along each axis.
type Grid [3]int

// Device is memory of a GPU: Dtype as Triton names it, "fp16".
type Device struct {
	Dtype   string
	Address uintptr
}

// Error is what a call said, with its place in the source.
type Error struct {
	Status string
	Text   string
}

func (e *Error) Error() string { return e.Status + ": " + e.Text }

// Context holds options, threads and a device.
type Context struct{ c *C.SdcContext }

// Module is one source file.
type Module struct {
	ctx *Context
	c   *C.SdcModule
}

// Function is a kernel with its constexprs bound.
type Function struct {
	mod *Module
	c   *C.SdcFunction
}

// A message belongs to the thread of the call: both are made on one.
func (ctx *Context) checked(call func() C.SdcStatus) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	status := call()
	if status == C.SDC_OK {
		return nil
	}
	e := &Error{Status: C.GoString(C.sdc_status_name(status))}
	if ctx.c != nil {
		e.Text = C.GoString(C.sdc_error(ctx.c))
	}
	return e
}

// NewContext makes one for "cpu" or "cuda".
func NewContext(target string) (*Context, error) {
	ctx := &Context{}
	var o C.SdcContextOptions
	o.size = C.size_t(unsafe.Sizeof(o))
	o.target = C.CString(target)
	defer C.free(unsafe.Pointer(o.target))
	err := ctx.checked(func() C.SdcStatus { return C.sdc_context_create(&o, &ctx.c) })
	return ctx, err
}

// Close frees the context with its modules and functions.
func (ctx *Context) Close() {
	C.sdc_context_destroy(ctx.c)
	ctx.c = nil
}

// LoadFile reads a source file.
func (ctx *Context) LoadFile(path string) (*Module, error) {
	m := &Module{ctx: ctx}
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	return m, ctx.checked(func() C.SdcStatus { return C.sdc_module_load_file(ctx.c, p, &m.c) })
}

// Function binds constexprs: "BLOCK=256".
func (m *Module) Function(kernel string, bind ...string) (*Function, error) {
	f := &Function{mod: m}
	name := C.CString(kernel)
	defer C.free(unsafe.Pointer(name))
	texts := (*[1 << 16]*C.char)(C.calloc(C.size_t(len(bind)+1), C.size_t(unsafe.Sizeof(name))))
	defer C.free(unsafe.Pointer(texts))
	for i, b := range bind {
		texts[i] = C.CString(b)
		defer C.free(unsafe.Pointer(texts[i]))
	}
	return f, m.ctx.checked(func() C.SdcStatus {
		return C.sdc_function_get(m.c, name, &texts[0], C.int(len(bind)), &f.c)
	})
}

func dtype(name string) C.SdcDtype {
	p := C.CString(name)
	defer C.free(unsafe.Pointer(p))
	return C.sdc_dtype_by_name(p, C.size_t(len(name)))
}

func slice[T any](pin *runtime.Pinner, t C.SdcDtype, s []T) C.SdcArg {
	if len(s) == 0 {
		return C.sdc_ptr(t, nil)
	}
	pin.Pin(&s[0])
	return C.sdc_ptr(t, unsafe.Pointer(&s[0]))
}

func toArg(pin *runtime.Pinner, x any) (C.SdcArg, error) {
	switch v := x.(type) {
	case nil:
		return C.sdc_none(), nil
	case int:
		return C.sdc_int(C.int64_t(v)), nil
	case int64:
		return C.sdc_int(C.int64_t(v)), nil
	case float32:
		return C.sdc_float(C.double(v)), nil
	case []float32:
		return slice(pin, C.SDC_FP32, v), nil
	case []float64:
		return slice(pin, C.SDC_FP64, v), nil
	case []int32:
		return slice(pin, C.SDC_I32, v), nil
	case []int64:
		return slice(pin, C.SDC_I64, v), nil
	case []uint8:
		return slice(pin, C.SDC_U8, v), nil
	case []uint16: // fp16 and bf16 are Device's, or this with a kernel that bitcasts
		return slice(pin, C.SDC_U16, v), nil
	case Device:
		return C.sdc_address(dtype(v.Dtype), C.uintptr_t(v.Address)), nil
	}
	return C.sdc_none(), fmt.Errorf("sdc: no argument of a kernel: %T", x)
}

// Launch runs the grid; on the CPU it returns when all is done.
func (f *Function) Launch(grid Grid, args ...any) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	raw := make([]C.SdcArg, len(args)+1)
	for i, x := range args {
		a, err := toArg(&pin, x)
		if err != nil {
			return err
		}
		raw[i] = a
	}
	pin.Pin(&raw[0])
	g := C.sdc_grid(C.int64_t(grid[0]), C.int64_t(grid[1]), C.int64_t(grid[2]))
	return f.mod.ctx.checked(func() C.SdcStatus {
		return C.sdc_launch(f.c, g, &raw[0], C.int(len(args)), nil)
	})
}

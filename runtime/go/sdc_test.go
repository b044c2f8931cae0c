package sdc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const text = `
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    tl.store(out + i, a + tl.load(y + i, mask=i < n), mask=i < n)
`

func TestAdd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "add.tk")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, err := NewContext("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer ctx.Close()
	mod, err := ctx.LoadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	add, err := mod.Function("add", "BLOCK=256")
	if err != nil {
		t.Fatal(err)
	}
	x, y, out := make([]float32, 1000), make([]float32, 1000), make([]float32, 1000)
	for i := range x {
		x[i], y[i] = float32(i), 1
	}
	if err := add.Launch(Grid{4, 1, 1}, x, y, out, 1000); err != nil {
		t.Fatal(err)
	}
	if out[999] != 1000 {
		t.Fatalf("out[999] is %g", out[999])
	}
	if err := add.Launch(Grid{4, 1, 1}, x, y); err == nil ||
		!strings.Contains(err.Error(), "SDC_ERROR_ARGUMENT") {
		t.Fatalf("two arguments of four: %v", err)
	}
}

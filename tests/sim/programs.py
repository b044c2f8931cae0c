"""Random programs of conversions, buffers, reductions, loops and conditions that leave every
tile as it was: they must end with the right elements, whatever shares its place in shared
memory, and without a race. programs.py SDC [SEED [COUNT]]"""
import random
import struct
import sys

from tiles import compile_ir, layout, text
import ptx

LAYOUTS = 4


class Program:
    def __init__(self):
        self.warp_bits, bits = random.randint(0, 2), random.randint(5, 8)
        self.n, self.names = 1 << bits, 0
        self.rows = 1 << random.randint(0, bits)
        self.cols = self.n // self.rows
        layouts = [layout(bits, self.warp_bits) for _ in range(LAYOUTS)]
        self.lines = [f"#a{i} = {text(l)}" for i, l in enumerate(layouts)]
        self.lines += [f"#b{i} = {text(l, self.cols)}" for i, l in enumerate(layouts)]
        self.lines += [f"#sh = shared<i32, swizzle={random.choice([0, 32, 64])}>", ""]

    def tile(self, l):
        return f"tile<{self.n}xi32, #a{l}>"

    def square(self, l):
        return f"tile<{self.rows}x{self.cols}xi32, #b{l}>"

    def mem(self):
        return f"mem<i32, [{self.rows},{self.cols}], #sh>"

    def emit(self, text_, depth):
        self.lines.append("  " * (depth + 1) + text_)

    def name(self):
        self.names += 1
        return f"%v{self.names}"

    def define(self, text_, depth):
        v = self.name()
        self.emit(f"{v} = {text_}", depth)
        return v

    def convert(self, values, buffers, depth):
        v, _ = random.choice(values)
        l = random.randrange(LAYOUTS)
        values.append((self.define(f"convert_layout {v} : {self.tile(l)}", depth), l))

    def fill(self, values, buffers, depth):
        v, l = random.choice(values)
        x = self.define(f"reshape {v} : {self.square(l)}", depth)
        if buffers and random.random() < 0.5:
            self.emit(f"local_store {random.choice(buffers)}, {x}", depth)
        else:
            buffers.append(self.define(f"local_alloc {x} : {self.mem()}", depth))

    def read(self, values, buffers, depth):
        if not buffers:
            return
        l = random.randrange(LAYOUTS)
        x = self.define(f"local_load {random.choice(buffers)} : {self.square(l)}", depth)
        values.append((self.define(f"reshape {x} : {self.tile(l)}", depth), l))

    def reduce(self, values, buffers, depth):
        """Adds the sum of all elements less what it must be."""
        v, l = random.choice(values)
        r = self.name()
        self.emit(f"{r} = reduce {v} {{axis=0}} : i32 (%q{r[2:]}: i32, %r{r[2:]}: i32) {{", depth)
        s = self.define(f"add %q{r[2:]}, %r{r[2:]} : i32", depth + 1)
        self.emit(f"yield {s}", depth + 1)
        self.emit("}", depth)
        zero = self.define(f"sub {r}, %total : i32", depth)
        tile = self.define(f"splat {zero} : {self.tile(l)}", depth)
        values.append((self.define(f"add {v}, {tile} : {self.tile(l)}", depth), l))

    def body(self, values, buffers, depth, l, most):
        """A region that yields one of its last tiles of layout l."""
        values, buffers = list(values), list(buffers)
        self.steps(values, buffers, depth + 1, random.randint(0, most))
        same = [v for v, k in values if k == l]
        self.emit(f"yield {random.choice(same[-3:])}", depth + 1)

    def loop(self, values, buffers, depth):
        v, l = random.choice(values)
        r, carried = self.name(), self.name()
        rounds = random.randint(1, 3)
        self.emit(f"{r} = for %i{r[2:]} = %c0, %c{rounds}, %c1 ({carried} = {v}) : "
                  f"{self.tile(l)} {{", depth)
        self.body(values + [(carried, l)] * 2, buffers, depth, l, 4)
        self.emit("}", depth)
        values.append((r, l))

    def branch(self, values, buffers, depth):
        _, l = random.choice(values)
        r = self.name()
        self.emit(f"{r} = if %cond{random.randint(0, 1)} : {self.tile(l)} {{", depth)
        self.body(values, buffers, depth, l, 3)
        self.emit("} else {", depth)
        self.body(values, buffers, depth, l, 3)
        self.emit("}", depth)
        values.append((r, l))

    def steps(self, values, buffers, depth, count):
        kinds = [self.convert, self.convert, self.fill, self.fill, self.read, self.reduce]
        if depth < 2:
            kinds += [self.loop, self.branch]
        for _ in range(count):
            random.choice(kinds)(values, buffers, depth)

    def source(self):
        """The text, and how many tiles it adds in the end."""
        self.lines.append('kernel @f(%p: ptr<i32> {sig="*i32"}, %n: i32 {sig="i32"}) '
                          f"{{warps={1 << self.warp_bits}, form=3}} {{")
        for i in range(4):
            self.emit(f"%c{i} = const {{value={i}}} : i32", 0)
        self.emit(f"%total = const {{value={self.n * (self.n + 1) // 2}}} : i32", 0)
        self.emit('%cond0 = cmpi %n, %c1 {pred="slt"} : i1', 0)
        self.emit('%cond1 = cmpi %n, %c1 {pred="sge"} : i1', 0)
        self.emit(f"%v0 = arange {{start=1}} : {self.tile(0)}", 0)
        values = [("%v0", 0)]
        self.steps(values, [], 0, random.randint(4, 12))
        last = random.sample(values, min(4, len(values)))
        total = None
        for v, _ in last:
            v = self.define(f"convert_layout {v} : {self.tile(1)}", 0)
            total = self.define(f"add {total}, {v} : {self.tile(1)}", 0) if total else v
        self.emit(f"%i = arange {{start=0}} : {self.tile(1)}", 0)
        self.emit(f"%ps = splat %p : tile<{self.n}xptr<i32>, #a1>", 0)
        self.emit(f"%pp = addptr %ps, %i : tile<{self.n}xptr<i32>, #a1>", 0)
        self.emit(f"store %pp, {total}", 0)
        return "\n".join(self.lines + ["  return", "}", ""]), len(last)


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 15
    barriers = 0
    for i in range(count):
        random.seed(seed * 1000003 + i)
        program = Program()
        source, tiles = program.source()
        text_ = compile_ir(source, random.choice(["sm_80", "sm_90"]))
        want = struct.pack(f"<{program.n}i", *(tiles * (v + 1) for v in range(program.n)))
        for arm in (0, 1):
            memory = bytearray(4 * program.n)
            try:
                barriers += ptx.run(text_, "f", [0, arm], memory).barriers
            except Exception:
                print(source)
                raise
            if memory != want:
                sys.exit(f"wrong elements, case {i} of seed {seed}:\n{source}")
    print(f"{count} programs, seed {seed}, {barriers} barriers met")


main()

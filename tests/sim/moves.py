"""Operations whose elements change threads, in random layouts: scans, gather, cat, join, split,
histograms, the old values of atomics; right elements and no race. moves.py SDC [SEED [COUNT]]"""
import random
import struct
import sys

from tiles import bent, compile_ir, layout, text
import ptx

P, Q, R = 0, 4096, 8192  # where the three arrays of a case lie


class Case:
    """A kernel of three pointers; want: what must lie where in the end."""

    def __init__(self):
        self.warp_bits, self.bits = random.randint(0, 2), random.randint(4, 8)
        self.n = 1 << self.bits
        self.head, self.body, self.names, self.want = [], [], 0, {}
        self.p = [random.randint(-9, 9) for _ in range(1024)]
        self.q = [random.randint(-9, 9) for _ in range(1024)]

    def define(self, text_):
        self.names += 1
        self.body.append(f"  %v{self.names} = {text_}")
        return f"%v{self.names}"

    def layout(self, bits, cols=None):
        self.head.append(f"#l{len(self.head)} = "
                         f"{text(bent(layout(bits, self.warp_bits)), cols)}")
        return f"#l{len(self.head) - 1}"

    def tile(self, n, l, elem="i32"):
        return f"tile<{n}x{elem}, {l}>"

    def pointers(self, p, n, l):
        i = self.define(f"arange {{start=0}} : {self.tile(n, l)}")
        s = self.define(f"splat {p} : {self.tile(n, l, 'ptr<i32>')}")
        return self.define(f"addptr {s}, {i} : {self.tile(n, l, 'ptr<i32>')}")

    def load(self, p, n, l):
        return self.define(f"load {self.pointers(p, n, l)} : {self.tile(n, l)}")

    def store(self, v, n, l, want):
        self.body.append(f"  store {self.pointers('%r', n, l)}, {v}")
        self.want[R] = want

    def source(self):
        params = ", ".join(f'%{x}: ptr<i32> {{sig="*i32"}}' for x in "pqr")
        return "\n".join(self.head + [
            f"kernel @f({params}) {{warps={1 << self.warp_bits}, form=3}} {{"] +
            self.body + ["  return", "}", ""])

    # ---- the cases

    def scan(self):
        """(a, b) and then (c, d) is (a + c, b + d + a * c): not commutative."""
        rows = 1 << random.randint(0, self.bits)
        cols, axis = self.n // rows, random.randint(0, 1)
        l, reverse = self.layout(self.bits), random.choice(["", ", reverse"])
        m = self.layout(self.bits, cols)
        k = m if random.random() < 0.6 else self.layout(self.bits, cols)
        flat, tile = self.tile(self.n, l), f"tile<{rows}x{cols}xi32, %s>"
        x = [self.define(f"convert_layout {self.load(p, self.n, l)} : "
                         f"{self.tile(self.n, l)}") for p in ("%p", "%q")]
        square = self.layout_of(l, cols)
        x = [self.define(f"reshape {v} : {tile % square}") for v in x]
        x = [self.define(f"convert_layout {v} : {tile % m}") for v in x]
        self.body.append(f"  %s0, %s1 = scan {x[0]}, {x[1]} {{axis={axis}{reverse}}} : "
                         f"{tile % k}, {tile % k} (%a: i32, %b: i32, %c: i32, %d: i32) {{")
        self.body += ["    %ac = add %a, %c : i32", "    %m = mul %a, %c : i32",
                      "    %bd = add %b, %d : i32", "    %e = add %bd, %m : i32",
                      "    yield %ac, %e", "  }"]
        y = self.define(f"convert_layout %s1 : {tile % square}")
        y = self.define(f"reshape {y} : {flat}")
        want = [0] * self.n
        for line in range(self.n // (cols if axis else rows)):
            at = [line * cols + i if axis else i * cols + line
                  for i in range(cols if axis else rows)]
            a = b = None
            for i in reversed(at) if reverse else at:
                c, d = self.p[i], self.q[i]
                a, b = (c, d) if a is None else (a + c, b + d + a * c)
                want[i] = b
        self.store(y, self.n, l, want)

    def layout_of(self, l, cols):
        """The layout `l` of a rank-1 tile seen in rows of `cols`."""
        import re
        spelled = self.head[int(l[2:])].split(" = ")[1]
        self.head.append(f"#l{len(self.head)} = " + re.sub(
            r"\[(\d+)\]", lambda m: f"[{int(m[1]) // cols},{int(m[1]) % cols}]", spelled))
        return f"#l{len(self.head) - 1}"

    def gather(self):
        count = 1 << random.randint(4, 8)
        a, b, c = self.layout(self.bits), *[self.layout(count.bit_length() - 1)] * 2
        if random.random() < 0.5:
            c = self.layout(count.bit_length() - 1)
        self.q = [random.randrange(self.n) for _ in range(1024)]
        src, index = self.load("%p", self.n, a), self.load("%q", count, b)
        y = self.define(f"gather {src}, {index} {{axis=0}} : {self.tile(count, c)}")
        self.store(y, count, c, [self.p[self.q[i]] for i in range(count)])

    def cat(self):
        a, b, c = (self.layout(self.bits + i) for i in (0, 0, 1))
        x, y = self.load("%p", self.n, a), self.load("%q", self.n, b)
        z = self.define(f"cat {x}, {y} {{axis=0}} : {self.tile(2 * self.n, c)}")
        self.store(z, 2 * self.n, c, self.p[:self.n] + self.q[:self.n])

    def join(self):
        a, l = self.layout(self.bits), self.layout(self.bits + 1, 2)
        x, y = self.load("%p", self.n, a), self.load("%q", self.n, a)
        j = self.define(f"join {x}, {y} : tile<{self.n}x2xi32, {l}>")
        b = self.layout(self.bits)
        self.body.append(f"  %s0, %s1 = split {j} : {self.tile(self.n, b)}, "
                         f"{self.tile(self.n, b)}")
        y = self.define(f"sub %s0, %s1 : {self.tile(self.n, b)}")
        self.store(y, self.n, b, [self.p[i] - self.q[i] for i in range(self.n)])

    def histogram(self):
        bins = 1 << random.randint(1, 6)
        a, b, c = (self.layout(k) for k in (self.bits, bins.bit_length() - 1, self.bits))
        x, mask = self.load("%p", self.n, a), ""
        if random.random() < 0.5:
            c = random.choice([a, c])
            zero = self.define(f"const {{value=0}} : {self.tile(self.n, c)}")
            mask = ", " + self.define(f"cmpi {self.load('%q', self.n, c)}, {zero} "
                                      f"{{pred=\"sgt\"}} : {self.tile(self.n, c, 'i1')}")
        y = self.define(f"histogram {x}{mask} : {self.tile(bins, b)}")
        on = [i for i in range(self.n) if not mask or self.q[i] > 0]
        self.store(y, bins, b, [sum(self.p[i] == v for i in on) for v in range(bins)])

    def atomic(self):
        l = self.layout(self.bits)
        rmw, fn = random.choice([
            ("add", lambda x, y: x + y), ("smax", max), ("smin", min),
            ("xor", lambda x, y: x ^ y), ("xchg", lambda x, y: y), ("cas", None)])
        x, to = self.load("%p", self.n, l), self.pointers("%q", self.n, l)
        if fn:
            op = f'atomic_rmw {to}, {x} {{rmw="{rmw}"}}'
        else:
            op, fn = f"atomic_cas {to}, {x}, {x}", lambda x, y: x
        y = self.define(f"{op} : {self.tile(self.n, l)}")
        self.want[Q] = [fn(self.q[i], self.p[i]) for i in range(self.n)]
        if random.random() < 0.7:
            self.store(y, self.n, l, self.q[:self.n])


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 60
    for i in range(count):
        random.seed(seed * 1000003 + i)
        case = Case()
        name = ["scan", "gather", "cat", "join", "histogram", "atomic"][i % 6]
        getattr(case, name)()
        memory = bytearray(1 << 14)
        memory[P:P + 4096] = struct.pack("<1024i", *case.p)
        memory[Q:Q + 4096] = struct.pack("<1024i", *case.q)
        source = case.source()
        try:
            ptx.run(compile_ir(source), "f", [P, Q, R], memory)
        except Exception:
            print(source)
            raise
        for at, want in case.want.items():
            got = struct.unpack_from(f"<{len(want)}i", memory, at)
            if list(got) != want:
                sys.exit(f"wrong elements, {name}, case {i} of seed {seed}:\n{source}")
    print(f"{count} cases, seed {seed}")


main()

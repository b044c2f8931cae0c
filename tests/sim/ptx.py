"""Runs a PTX kernel without a GPU: one block of threads in lock-step, the part of PTX that sdc
writes. It is there to find what a GPU hides most of the time: a byte of shared memory that two
threads touch, one of them writing, with no barrier in between, raises Race; so does an
asynchronous copy over what is still read. What a copy brings is there only once its thread
waited for it. Memory is a bytearray, addresses are indices; registers hold bit patterns."""
import math
import random
import re
import struct


class Race(Exception):
    pass


# ---- numbers

def floats(code, bits_code):
    def decode(bits):
        return struct.unpack("<" + code, struct.pack("<" + bits_code, bits))[0]

    def encode(x):
        try:
            return struct.unpack("<" + bits_code, struct.pack("<" + code, x))[0]
        except OverflowError:
            return encode(math.copysign(math.inf, x))
    return decode, encode


f16_of, f16_bits = floats("e", "H")
f32_of, f32_bits = floats("f", "I")
f64_of, f64_bits = floats("d", "Q")
DECODE = {"f16": f16_of, "f32": f32_of, "f64": f64_of}
ENCODE = {"f16": f16_bits, "f32": f32_bits, "f64": f64_bits}


def e4m3_of(v):
    e, m = v >> 3 & 15, v & 7
    x = math.ldexp(m / 8, -6) if not e else math.ldexp(1 + m / 8, e - 7)
    return -x if v >> 7 else x


def width(t):
    return 1 if t == "pred" else int(re.sub(r"\D", "", t))


def signed(v, w):
    v &= (1 << w) - 1
    return v - (1 << w) if v >> (w - 1) else v


FRAGMENT = {  # element of an mma operand: bytes, value
    "f16": (2, f16_of), "bf16": (2, lambda v: f32_of(v << 16)),
    "tf32": (4, lambda v: f32_of(v & ~0x1fff)), "s8": (1, lambda v: signed(v, 8)),
    "u8": (1, int), "e4m3": (1, e4m3_of), "e5m2": (1, lambda v: f16_of(v << 8)),
}


# ---- text

def operands(text):
    """Split at commas outside of braces and brackets; {a, b} becomes a list."""
    out, depth, cur = [], 0, ""
    for c in text + ",":
        depth += (c in "[{") - (c in "]}")
        if c == "," and not depth:
            cur = cur.strip()
            out.append([x.strip() for x in cur[1:-1].split(",")] if cur[:1] == "{" else cur)
            cur = ""
        else:
            cur += c
    return out


class Kernel:
    """code: (operation's parts, operands, (predicate, negated) or None, text)."""

    def __init__(self, text, name):
        m = re.search(r"\.entry " + re.escape(name) + r"\((.*?)\)(.*?)\n\{\n(.*?)\n\}", text, re.S)
        self.params = re.findall(r"(\w+)(?:,|$)", m.group(1).strip(), re.M)
        self.threads = int(re.search(r"\.reqntid (\d+)", m.group(2)).group(1))
        self.code, self.labels = [], {}
        for line in re.split(r"[;\n]", re.sub(r"//.*", "", m.group(3))):
            line = line.strip()
            label = re.match(r"(\$\w+):", line)
            if label:
                self.labels[label.group(1)] = len(self.code)
                line = line[label.end():].strip()
            if not line or line.startswith(".reg") or line in "{}":
                continue
            p = re.match(r"(?:@(!?)(%p\d+)\s+)?(\S+)\s*(.*)", line)
            pred = (p.group(2), p.group(1) == "!") if p.group(2) else None
            self.code.append((p.group(3).split("."), operands(p.group(4)), pred, line))


# ---- a block

class Block:
    SHARED_BYTES, MAX_STEPS = 233472, 1000000

    def __init__(self, kernel, args, memory, program=(0, 0, 0), programs=(1, 1, 1)):
        self.kernel, self.memory, self.n = kernel, memory, kernel.threads
        self.args = dict(zip(kernel.params, args))
        self.special = {f"%ctaid.{d}": v for d, v in zip("xyz", program)}
        self.special.update({f"%nctaid.{d}": v for d, v in zip("xyz", programs)})
        self.regs = [{} for _ in range(self.n)]
        self.shared = bytearray(random.randbytes(self.SHARED_BYTES))
        self.barriers, self.warp_barriers = 0, 0
        self.writer, self.readers = {}, {}  # byte -> who, since which barriers
        self.groups = [[[]] for _ in range(self.n)]  # asynchronous copies by thread
        self.line = ""

    def run(self):
        at, steps, ahead = 0, 0, {}  # threads that wait further down: where
        while steps < self.MAX_STEPS:
            op, args, pred, self.line = self.kernel.code[at]
            ahead = {t: to for t, to in ahead.items() if to > at}
            here = [t for t in range(self.n) if t not in ahead]
            at, steps, on = at + 1, steps + 1, here
            if pred:
                on = [t for t in here if bool(self.regs[t][pred[0]]) != pred[1]]
            if op[0] == "bra":
                to = self.kernel.labels[args[0]]
                if not on:
                    continue
                if len(on) == len(here) and (not ahead or to <= min(ahead.values())):
                    at = to
                elif to < at:
                    raise Exception("threads part at " + self.line)
                else:
                    ahead.update({t: to for t in on})
                continue
            if ahead and op[0] in ("ret", "bar", "barrier", "shfl", "mma", "ldmatrix"):
                raise Exception("threads have parted at " + self.line)
            if op[0] == "ret":
                return self
            if op[0] in ("bar", "barrier"):
                self.barriers += op[1] != "warp"
                self.warp_barriers += 1
            elif op[0] in ("cp", "shfl", "mma", "ldmatrix", "stmatrix"):
                getattr(self, "all_" + op[0])(op, args, on)
            else:
                step = getattr(self, "do_" + op[0])
                for t in on:
                    step(t, op, args)
        raise Exception("does not end")

    # ---- operands

    def get(self, t, x, kind):
        if x[0] == "%":
            if x == "%tid.x":
                return t
            return self.special[x] if x in self.special else self.regs[t].get(x, 0xdeadbeef)
        if x[:2] in ("0f", "0d"):
            return int(x[2:], 16)
        if x == "shared":
            return 0
        return int(x.rstrip("U"), 0) & ((1 << width(kind)) - 1)

    def number(self, t, x, kind):
        v = self.get(t, x, kind)
        if kind in DECODE:
            return DECODE[kind](v)
        return signed(v, width(kind)) if kind[0] == "s" else v & ((1 << width(kind)) - 1)

    def put(self, t, x, kind, v):
        self.regs[t][x] = ENCODE[kind](v) if kind in ENCODE else int(v) & ((1 << width(kind)) - 1)

    def address(self, t, text):
        base, offset = re.fullmatch(r"\[(.*?)([+-]\d+)?\]", text).groups()
        return self.get(t, base, "b64") + int(offset or 0)

    # ---- shared memory and who touched it

    def touch(self, t, at, size, write):
        """Accesses meet when no barrier of the block, or of their common warp, is between."""
        me = (t, self.barriers, self.warp_barriers)

        def meets(o):
            if o[0] is None:
                return False
            same_warp = o[0] // 32 == t // 32
            return o[0] != t and o[1] == me[1] and (not same_warp or o[2] == me[2])
        for b in range(at, at + size):
            seen = [self.writer[b]] if b in self.writer else []
            seen += self.readers.get(b, []) if write else []
            for o in seen:
                if meets(o):
                    raise Race(f"byte {b}, threads {o[0]} and {t}: {self.line}")
            if self.writer.get(b, (0,))[0] is None and self.writer[b][1] == me[1]:
                raise Race(f"byte {b} is atomic until the next barrier: {self.line}")
            if write:
                self.writer[b], self.readers[b] = me, []
            else:
                self.readers[b] = [o for o in self.readers.get(b, []) if o[1] == me[1]] + [me]

    def do_ld(self, t, op, a):
        kind, to = op[-1], a[0] if isinstance(a[0], list) else [a[0]]
        if op[1] == "param":
            self.regs[t][a[0]] = self.args[a[1][1:-1]] & ((1 << width(kind)) - 1)
            return
        size, at = width(kind) // 8, self.address(t, a[1])
        if at % (size * len(to)):
            raise Exception("misaligned: " + self.line)
        if "shared" in op:
            self.touch(t, at, size * len(to), False)
        memory = self.shared if "shared" in op else self.memory
        for i, x in enumerate(to):
            v = int.from_bytes(memory[at + size * i:at + size * (i + 1)], "little")
            self.regs[t][x] = signed(v, 8 * size) & (1 << 64) - 1 if kind[0] == "s" else v

    def do_st(self, t, op, a):
        kind, values = op[-1], a[1] if isinstance(a[1], list) else [a[1]]
        size, at = width(kind) // 8, self.address(t, a[0])
        if at % (size * len(values)):
            raise Exception("misaligned: " + self.line)
        if "shared" in op:
            self.touch(t, at, size * len(values), True)
        memory = self.shared if "shared" in op else self.memory
        for i, x in enumerate(values):
            v = self.get(t, x, kind) & (1 << 8 * size) - 1
            memory[at + size * i:at + size * (i + 1)] = v.to_bytes(size, "little")

    def do_atom(self, t, op, a):
        """Of atom and red what sdc writes: on words, in no particular order."""
        red, kind = op[0] == "red", op[-1]
        at, size = self.address(t, a[0 if red else 1]), width(kind) // 8
        if "shared" in op:  # meets only what is not atomic
            memory = self.shared
            for b in range(at, at + size):
                if self.writer.get(b, (t,))[0] not in (t, None) and \
                        self.writer[b][1] == self.barriers:
                    raise Race(f"byte {b}: {self.line}")
                self.writer[b], self.readers[b] = (None, self.barriers, 0), []
        else:
            memory = self.memory
        old = int.from_bytes(memory[at:at + size], "little")
        new = [self.number(t, x, kind) for x in a[1 if red else 2:]]
        was = DECODE[kind](old) if kind in DECODE else \
            signed(old, 8 * size) if kind[0] == "s" else old
        value = {"add": lambda: was + new[0], "and": lambda: was & new[0],
                 "or": lambda: was | new[0], "xor": lambda: was ^ new[0],
                 "min": lambda: min(was, new[0]), "max": lambda: max(was, new[0]),
                 "exch": lambda: new[0],
                 "cas": lambda: new[1] if was == new[0] else was}[op[-2]]()
        value = ENCODE[kind](value) if kind in ENCODE else value & (1 << 8 * size) - 1
        memory[at:at + size] = value.to_bytes(size, "little")
        if not red:
            self.regs[t][a[0]] = old

    do_red = do_atom

    def do_fence(self, t, op, a):
        pass

    def all_cp(self, op, a, on):
        for t in on:
            if op[2] == "commit_group":
                self.groups[t].append([])
            elif op[2] == "wait_group":
                while len(self.groups[t]) - 1 > int(a[0]):
                    for to, data in self.groups[t].pop(0):
                        self.touch(t, to, len(data), True)
                        self.shared[to:to + len(data)] = data
            else:
                to, at, size = self.address(t, a[0]), self.address(t, a[1]), int(a[2])
                n = self.get(t, a[3], "u32") if len(a) > 3 else size
                if to % size or (n and at % size):
                    raise Exception("misaligned: " + self.line)
                self.touch(t, to, size, True)  # nobody may be reading
                self.shared[to:to + size] = random.randbytes(size)
                data = bytes(self.memory[at:at + n]) + bytes(size - n)
                self.groups[t][-1].append((to, data))

    # ---- what a warp does together

    def all_shfl(self, op, a, on):
        old = [self.get(t, a[1], "b32") for t in range(self.n)]
        for t in range(self.n):
            lane, b = t % 32, self.get(t, a[2], "b32")
            source = {"bfly": lane ^ b, "idx": b & 31, "up": lane - b if lane >= b else lane,
                      "down": lane + b if lane + b < 32 else lane}[op[2]]
            self.regs[t][a[0].split("|")[0]] = old[t - lane + source]

    def all_ldmatrix(self, op, a, on):
        to = a[0] if isinstance(a[0], list) else [a[0]]
        for w in range(0, self.n, 32):
            for i, x in enumerate(to):
                m = []
                for r in range(8):
                    at = self.address(w + i * 8 + r, a[1])
                    self.touch(w + i * 8 + r, at, 16, False)
                    m.append(struct.unpack("<8H", self.shared[at:at + 16]))
                if "trans" in op:
                    m = list(zip(*m))
                for lane in range(32):
                    g, q = lane // 4, lane % 4 * 2
                    self.regs[w + lane][x] = m[g][q] | m[g][q + 1] << 16

    def all_stmatrix(self, op, a, on):
        words = a[1] if isinstance(a[1], list) else [a[1]]
        for w in range(0, self.n, 32):
            for i, x in enumerate(words):
                m = [[0] * 8 for _ in range(8)]
                for lane in range(32):
                    g, q = lane // 4, lane % 4 * 2
                    v = self.get(w + lane, x, "b32")
                    m[g][q], m[g][q + 1] = v & 0xffff, v >> 16 & 0xffff
                if "trans" in op:
                    m = list(zip(*m))
                for r in range(8):
                    at = self.address(w + i * 8 + r, a[0])
                    self.touch(w + i * 8 + r, at, 16, True)
                    self.shared[at:at + 16] = struct.pack("<8H", *m[r])

    def all_mma(self, op, a, on):
        k, (size, decode) = int(op[3].split("k")[1]), FRAGMENT[op[-3]]
        acc, per = op[-1], 4 // size

        def elements(t, x):
            v = self.get(t, x, "b32")
            return [decode(v >> 8 * size * e & (1 << 8 * size) - 1) for e in range(per)]
        for w in range(0, self.n, 32):
            x = [[0] * k for _ in range(16)]
            y = [[0] * k for _ in range(8)]
            for lane in range(32):
                g, q = lane // 4, lane % 4 * per
                for r, reg in enumerate(a[1]):
                    c = (r >> 1) * 4 * per + q
                    x[g + 8 * (r & 1)][c:c + per] = elements(w + lane, reg)
                for r, reg in enumerate(a[2] if isinstance(a[2], list) else [a[2]]):
                    c = r * 4 * per + q
                    y[g][c:c + per] = elements(w + lane, reg)
            for lane in range(32):
                for r, (to, reg) in enumerate(zip(a[0], a[3])):
                    row, col = lane // 4 + 8 * (r >> 1), lane % 4 * 2 + (r & 1)
                    v = sum(p * q for p, q in zip(x[row], y[col]))
                    self.put(w + lane, to, acc, v + self.number(w + lane, reg, acc))

    # ---- what a thread does alone

    def do_mov(self, t, op, a):
        w = width(op[-1])
        if isinstance(a[1], list):
            part = w // len(a[1])
            self.regs[t][a[0]] = sum((self.get(t, x, f"b{part}") & (1 << part) - 1) << part * i
                                     for i, x in enumerate(a[1]))
        elif isinstance(a[0], list):
            part, v = w // len(a[0]), self.get(t, a[1], op[-1])
            for i, x in enumerate(a[0]):
                self.regs[t][x] = v >> part * i & (1 << part) - 1
        else:
            self.regs[t][a[0]] = self.get(t, a[1], op[-1])

    def do_cvt(self, t, op, a):
        kinds = [x for x in op if re.fullmatch(r"[a-z]+\d+(x2)?", x)]
        if kinds[0] == "f16x2":
            high, low = (f16_bits(self.number(t, x, "f32")) for x in a[1:3])
            self.regs[t][a[0]] = high << 16 | low
        else:
            self.put(t, a[0], kinds[0], self.number(t, a[1], kinds[1]))

    def do_selp(self, t, op, a):
        self.regs[t][a[0]] = self.get(t, a[1] if self.regs[t][a[3]] else a[2], op[-1])

    def do_setp(self, t, op, a):
        x, y = self.number(t, a[1], op[-1]), self.number(t, a[2], op[-1])
        nan = x != x or y != y
        name = {"lo": "lt", "hi": "gt", "ls": "le", "hs": "ge"}.get(op[1], op[1])
        known = {"eq": x == y, "ne": x != y and not nan, "lt": x < y, "le": x <= y, "gt": x > y,
                 "ge": x >= y, "nan": nan, "num": not nan}
        self.regs[t][a[0]] = int(known[name] if name in known else known[name[:-1]] or nan)

    def do_prmt(self, t, op, a):
        x = self.get(t, a[1], "b32") | self.get(t, a[2], "b32") << 32
        pick = self.get(t, a[3], "b32")
        self.regs[t][a[0]] = sum((x >> 8 * (pick >> 4 * i & 7) & 255) << 8 * i for i in range(4))

    def do_bfe(self, t, op, a):
        v, at, n = (self.get(t, x, "u32") for x in a[1:4])
        v = v >> at & (1 << n) - 1
        self.put(t, a[0], op[-1], signed(v, n) if op[-1][0] == "s" else v)

    def do_shr(self, t, op, a):
        self.put(t, a[0], op[-1], self.number(t, a[1], op[-1]) >> min(64, self.get(t, a[2], "u32")))

    def do_mad(self, t, op, a):
        kind = op[-1] if "wide" not in op else f"b{2 * width(op[-1])}"
        x, y = (self.number(t, v, op[-1]) for v in a[1:3])
        self.put(t, a[0], kind, x * y + (self.number(t, a[3], kind) if len(a) > 3 else 0))

    do_mul = do_mad
    do_fma = do_mad

    def do_cvta(self, t, op, a):
        self.regs[t][a[0]] = self.get(t, a[1], "b64")


def quotient(x, y):
    if isinstance(x, float):
        return x / y if y else math.nan
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else 0


FUNCTIONS = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "and": lambda x, y: x & y,
    "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y, "shl": lambda x, y: x << min(y, 64),
    "min": min, "max": max, "div": quotient, "rem": lambda x, y: x - y * quotient(x, y),
    "not": lambda x: ~x, "neg": lambda x: -x, "abs": abs, "popc": lambda x: x.bit_count(),
    "ex2": lambda x: 0.0 if x < -1000 else 2.0 ** min(x, 127.9), "sqrt": math.sqrt,
    "lg2": lambda x: math.log2(x) if x > 0 else -math.inf, "rcp": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / math.sqrt(x), "copysign": lambda x, y: math.copysign(y, x),
}


def lanewise(fn):
    def step(self, t, op, a):
        if op[-1] == "f16x2":
            x = [[f16_of(self.get(t, v, "b32") >> h & 0xffff) for v in a[1:]] for h in (0, 16)]
            self.regs[t][a[0]] = f16_bits(fn(*x[0])) | f16_bits(fn(*x[1])) << 16
        else:
            self.put(t, a[0], op[-1], fn(*(self.number(t, v, op[-1]) for v in a[1:])))
    return step


for _name, _fn in FUNCTIONS.items():
    setattr(Block, "do_" + _name, lanewise(_fn))


def run(text, name, args, memory, **where):
    return Block(Kernel(text, name), args, memory, **where).run()

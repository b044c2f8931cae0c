"""Elements that change threads, on a simulated block: conversions between random layouts, tiles
through shared buffers, reductions; every element type. exchange.py SDC [SEED [COUNT]]"""
import random
import struct
import sys

from tiles import bent, compile_ir, fragments, layout, near, text
import ptx

# how a tile of i32 becomes one of the type and is written out; its bytes for a number
TYPES = {
    "i32": ("bitcast", "i32", lambda v: struct.pack("<i", v)),
    "i16": ("trunc", "i16", lambda v: struct.pack("<H", v & 0xffff)),
    "i8": ("trunc", "i8", lambda v: bytes([v & 255])),
    "i64": ("sext", "i64", lambda v: struct.pack("<q", v)),
    "f16": ("sitof", "f16", lambda v: struct.pack("<e", v)),
    "f32": ("sitof", "f32", lambda v: struct.pack("<f", v)),
    "f64": ("sitof", "f64", lambda v: struct.pack("<d", v)),
}


def head(names, types, warp_bits, elem):
    aliases = "".join(f"#{n} = {t}\n" for n, t in zip(names, types))
    return (aliases + f'kernel @f(%p: ptr<{elem}> {{sig="*x", div=16}}) '
            f"{{warps={1 << warp_bits}, form=3}} {{\n")


def store(n, elem):
    return f"""  %i = arange {{start=0}} : tile<{n}xi32, #b>
  %ps = splat %p : tile<{n}xptr<{elem}>, #b>
  %pp = addptr %ps, %i : tile<{n}xptr<{elem}>, #b>
  store %pp, %y
  return
}}
"""


def values(n, make, elem):
    return (f"  %x0 = arange {{start=1}} : tile<{n}xi32, #a>\n"
            f"  %x = {make} %x0 : tile<{n}x{elem}, #a>\n")


def convert(bits, a, b, elem):
    n, limit = 1 << bits, random.choice(["", "{bytes=256} "])  # in rounds, if it can
    return f"  %y = convert_layout %x {limit}: tile<{n}x{elem}, #b>\n"


def convert_in_loop(bits, a, b, elem):
    n = 1 << bits
    return f"""  %c0 = const {{value=0}} : i32
  %c1 = const {{value=1}} : i32
  %c3 = const {{value=3}} : i32
  %z = for %k = %c0, %c3, %c1 (%w = %x) : tile<{n}x{elem}, #a> {{
    %u = convert_layout %w : tile<{n}x{elem}, #b>
    %v = convert_layout %u : tile<{n}x{elem}, #a>
    yield %v
  }}
  %y = convert_layout %z : tile<{n}x{elem}, #b>
"""


def through_buffer(bits, rows, elem):
    n, cols = 1 << bits, (1 << bits) // rows
    return f"""  %x2 = reshape %x : tile<{rows}x{cols}x{elem}, #a2>
  %c1 = const {{value=1}} : i32
  %m = local_alloc {{stages=2}} : mem<{elem}, [{rows},{cols}], #sh, stages=2>
  %m1 = local_index %m, %c1 : mem<{elem}, [{rows},{cols}], #sh>
  local_store %m1, %x2
  %y2 = local_load %m1 : tile<{rows}x{cols}x{elem}, #b2>
  %y = reshape %y2 : tile<{n}x{elem}, #b>
"""


def reduction(rows, cols, axis, elem):
    m = rows if axis else cols
    add, zero = ("addf", "fvalue=0.0") if elem[0] == "f" else ("add", "value=0")
    return f"""  %x2 = reshape %x : tile<{rows}x{cols}x{elem}, #a2>
  %c0 = const {{value=0}} : i32
  %c1 = const {{value=1}} : i32
  %c2 = const {{value=2}} : i32
  %zero = const {{{zero}}} : tile<{m}x{elem}, #b>
  %y = for %k = %c0, %c2, %c1 (%w = %zero) : tile<{m}x{elem}, #b> {{
    %y1 = reduce %x2 {{axis={axis}}} : tile<{m}x{elem}, #b> (%q: {elem}, %r: {elem}) {{
      %s = {add} %q, %r : {elem}
      yield %s
    }}
    %w2 = {add} %w, %y1 : tile<{m}x{elem}, #b>
    yield %w2
  }}
"""


def move_case():
    kind = random.choice(["convert", "near", "loop", "buffer", "matrix"])
    make, elem, pack = TYPES[random.choice(list(TYPES))]
    bits, warp_bits = random.randint(5, 10), random.randint(0, 3)
    a = bent(layout(bits, warp_bits))
    b = near(a) if kind == "near" else bent(layout(bits, warp_bits))
    if kind == "matrix":
        make, elem, pack = TYPES[random.choice(["i16", "f16", "i16", "f32", "i8"])]
        bits = random.randint(8 + warp_bits, 11)
        a, b = fragments(bits, warp_bits)
    rows = 1 << random.randint(0, bits)
    cols = (1 << bits) // rows
    swizzle = f"shared<{elem}, swizzle={random.choice([0, 32, 64, 128])}>"
    body = {"buffer": lambda: through_buffer(bits, rows, elem),
            "loop": lambda: convert_in_loop(bits, a, b, elem)}.get(
                kind, lambda: convert(bits, a, b, elem))()
    n = 1 << bits
    source = (head(["a", "b", "a2", "b2", "sh"],
                   [text(a), text(b), text(a, cols), text(b, cols), swizzle], warp_bits, elem) +
              values(n, make, elem) + body + store(n, elem))
    return source, [pack(v + 1) for v in range(n)]


def reduce_case():
    make, elem, pack = TYPES[random.choice(["i32", "i16", "i64", "f32"])]
    bits, warp_bits = random.randint(5, 10), random.randint(0, 3)
    lg = random.randint(1, bits - 1)
    rows, cols, axis = 1 << lg, 1 << (bits - lg), random.randint(0, 1)

    def rest(v):
        return v // cols if axis else v % cols
    a = layout(bits, warp_bits)
    m = rows if axis else cols
    if random.random() < 0.6:  # as the layout leaves them, else anywhere
        b = ([rest(v) for v in a[0] if rest(v)], [rest(v) for v in a[1]], [rest(v) for v in a[2]])
    else:
        b = layout(m.bit_length() - 1, warp_bits)
    source = (head(["a", "b", "a2"], [text(a), text(b), text(a, cols)], warp_bits, elem) +
              values(rows * cols, make, elem) + reduction(rows, cols, axis, elem) +
              store(m, elem))
    sums = [0] * m
    for v in range(rows * cols):
        sums[rest(v)] += 2 * (v + 1)
    return source, [pack(s) for s in sums]


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    for i in range(count):
        random.seed(seed * 1000003 + i)
        source, want = random.choice([move_case, move_case, move_case, reduce_case])()
        memory = bytearray(len(want) * len(want[0]) + 16)
        try:
            target = random.choice(["sm_80", "sm_90"])
            ptx.run(compile_ir(source, target), "f", [0], memory)
        except Exception:
            print(source)
            raise
        if memory[:-16] != b"".join(want):
            sys.exit(f"wrong elements, case {i} of seed {seed}:\n{source}")
    print(f"{count} programs, seed {seed}")


main()

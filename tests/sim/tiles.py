"""Random layouts and their text, and sdc as a function, for the programs beside this file."""
import random
import subprocess
import sys

sys.dont_write_bytecode = True
SDC = sys.argv[1]


def layout(bits, warp_bits):
    """(registers, lanes, warps): images of their bits, flattened; onto, with copies."""
    while True:
        units = [1 << i for i in range(bits)]
        random.shuffle(units)
        lane, warp = [], []
        for images, n in ((lane, 5), (warp, warp_bits)):
            for _ in range(n):
                images.append(units.pop() if units and random.random() > 0.12 else 0)
        if len(units) <= 6:
            return units, lane, warp


def bent(l):
    """The same with a register that also moves what a lane moves."""
    reg, lane, warp = l
    if reg and random.random() < 0.3:
        reg = [reg[0] ^ lane[0]] + reg[1:]
    return reg, lane, warp


def near(l):
    """Registers and lanes exchanged: the warps keep what they have."""
    reg, lane, warp = [list(x) for x in l]
    for _ in range(random.randint(0, 3)):
        a = random.choice([reg, lane]) if reg else lane
        i, j = random.randrange(len(a)), random.randrange(5)
        a[i], lane[j] = lane[j], a[i]
    return [r for r in reg if r], lane, warp


def fragments(bits, warp_bits):
    """Two layouts, one whose threads hold what is a row of matrices in the other: for stmatrix
    or ldmatrix, plain or transposed."""
    units = [1 << i for i in range(bits)]
    random.shuffle(units)
    lane, warp, reg = units[:5], units[5:5 + warp_bits], units[5 + warp_bits:]
    low = random.choice([[reg[0], lane[0], lane[1]], lane[2:]])
    rest = [u for u in units if u not in low]
    random.shuffle(rest)
    other = low + rest[5 + warp_bits:], rest[:5], rest[5:5 + warp_bits]
    return random.choice([[(reg, lane, warp), other], [other, (reg, lane, warp)]])


def text(l, cols=None):
    """As tile IR spells it, for one dimension or for rows of `cols`."""
    def image(v):
        return f"[{v}]" if cols is None else f"[{v // cols},{v % cols}]"
    reg, lane, warp = ("[" + ",".join(map(image, x)) + "]" for x in l)
    return f"linear<reg={reg}, lane={lane}, warp={warp}>"


def compile(source, *args, target="sm_80"):
    """PTX of a file, or of tile IR given as text."""
    path = "-" if "\n" in source else source
    r = subprocess.run([SDC, "compile", path, "--emit", "ptx", "--target", target, *args],
                       input=source if path == "-" else None, capture_output=True, text=True)
    if r.returncode:
        raise Exception(r.stderr + source)
    return r.stdout


def compile_ir(source, target="sm_80"):
    return compile(source, "--passes=smem,barrier", target=target)

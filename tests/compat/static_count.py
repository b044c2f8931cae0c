"""What machine code does, counted from its text: for static.py."""
import glob
import json
import os
import re
import subprocess

CLASSES = {
    "FLOAT": "FFMA FADD FMUL FMNMX FSEL FSETP HFMA2 HADD2 HMUL2 HMNMX2",
    "INT": "IMAD IADD3 LEA SHF LOP3 PRMT SEL VIADD IABS IMNMX VIMNMX SGXT",
    "MOVE": "MOV CS2R S2R R2UR UMOV", "PREDICATE": "ISETP PLOP3 P2R R2P",
    "CONVERT": "F2F F2FP I2F F2I I2FP FRND", "MUFU": "MUFU", "SHFL": "SHFL",
    "LDG": "LDG LD", "STG": "STG ST", "LDGSTS": "LDGSTS", "LDS": "LDS", "STS": "STS",
    "LDSM": "LDSM STSM", "TMA": "UTMALDG UTMASTG UBLKCP", "HMMA": "HMMA IMMA",
    "GMMA": "HGMMA IGMMA QGMMA", "BAR": "BAR", "LOCAL": "LDL STL",
    "ATOM": "ATOM ATOMG RED REDG ATOMS",
}
CLASS_OF = {op: name for name, ops in CLASSES.items() for op in ops.split()}
BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
# cycles of one of four schedulers for an instruction of a warp
SLOTS = {"MUFU": 8, "INT": 2, "PREDICATE": 2, "CONVERT": 2, "SHFL": 4, "BAR": 16,
         "LDSM": 8, "HMMA": 4, "ATOM": 8}
MEMORY = ("LDG", "STG", "LDGSTS", "LOCAL")
INSTRUCTION = re.compile(
    r"/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9][\w.]*)\s*(.*?);")
BYTES_A_CYCLE = 21  # of global memory, of one SM of an H200


def width(op):
    m = re.search(r"\.(U8|S8|U16|S16|64|128)\b", op)
    return BYTES[m[1]] if m else 4


def slots(op):
    kind = CLASS_OF.get(op.split(".")[0])
    if kind in MEMORY:
        return 4 + width(op)
    if kind in ("LDS", "STS"):
        return max(4, width(op))
    if kind == "GMMA":
        m = re.search(r"64x(\d+)x", op)
        return int(m[1]) // 2 if m else 32
    return SLOTS.get(kind, 1)


def part_of(ops):
    part = dict(n=len(ops), cost=sum(map(slots, ops)), loaded=0, stored=0)
    part["kinds"] = kinds = dict.fromkeys(CLASSES, 0)
    for op in ops:
        kind = CLASS_OF.get(op.split(".")[0])
        if kind:
            kinds[kind] += 1
        part["loaded"] += width(op) if kind in ("LDG", "LDGSTS") else 0
        part["stored"] += width(op) if kind == "STG" else 0
    return part


def count(sass):
    """All of a kernel, what is in no loop, and its deepest loop that costs most."""
    ops, labels, jumps = [], {}, []
    for line in map(str.strip, sass.split("\n")):
        label = re.match(r"(\.L_x_\d+):", line)
        op = INSTRUCTION.match(line)
        if label:
            labels[label[1]] = len(ops)
        elif op:
            to = re.search(r"\.L_x_\d+", op[2])
            if op[1].startswith("BRA") and to:
                jumps.append((len(ops), to[0]))
            ops.append(op[1])
    last = max((i for i, op in enumerate(ops) if op == "EXIT"), default=len(ops) - 1)
    heads = {}
    for at, to in jumps:
        first = labels.get(to, at + 1)
        waits = at - first < 12 and any("SYNCS" in o for o in ops[first:at])
        # ptxas puts what repeats a wait behind the end, and jumps back from there
        if first < at <= last and not waits:
            heads[first] = max(at, heads.get(first, 0))
    depth = [sum(a <= i <= b for a, b in heads.items()) for i in range(len(ops))]
    most = max(depth[:last + 1], default=0)
    loops = [part_of([ops[i] for i in range(a, b + 1) if depth[i] == most])
             for a, b in heads.items() if most and max(depth[a:b + 1]) == most]
    flat = [ops[i] for i in range(last + 1) if not depth[i]]
    return dict(all=part_of(ops[:last + 1]), flat=part_of(flat),
                loop=max(loops, key=lambda p: p["cost"], default=None))


def assemble(ptx):
    """Counts of a file of PTX; kept beside it as long as it does not change."""
    kept = ptx[:-4] + ".json"
    if os.path.exists(kept) and os.path.getmtime(kept) >= os.path.getmtime(ptx):
        with open(kept) as f:
            return json.load(f)
    tools = os.environ.get("TRITON_TOOLS")
    if not tools:
        import triton.backends.nvidia as nvidia

        tools = os.path.join(nvidia.__path__[0], "bin")
    ptxas = os.environ.get("PTXAS", os.path.join(tools, "ptxas"))
    nvdisasm = os.environ.get("NVDISASM", os.path.join(tools, "nvdisasm"))
    cubin = ptx[:-4] + ".cubin"
    command = [ptxas, "-v", "-arch=sm_90a", ptx, "-o", cubin]
    p = subprocess.run(command, capture_output=True, text=True)
    said = p.stdout + p.stderr
    if p.returncode:
        print("%s: %s" % (ptx, said[:300]))
        return None
    sass = subprocess.run([nvdisasm, "-c", cubin], capture_output=True, text=True).stdout
    with open(ptx[:-4] + ".sass", "w") as f:
        f.write(sass)
    made = count(sass)
    made["regs"] = int(re.search(r"Used (\d+) reg", said)[1])
    made["spill"] = int(re.search(r"(\d+) bytes spill stores", said)[1])
    with open(kept, "w") as f:
        json.dump(made, f)
    return made


def time_of(part):
    issue = part["cost"] / 4
    memory = (part["loaded"] + part["stored"]) * 32 / BYTES_A_CYCLE
    return max(issue, memory, 1) + min(issue, memory) / 4


def rounds(ours, theirs):
    """Iterations of theirs that are one of ours, by what they move or compute."""
    for measure in (lambda p: p["loaded"] + p["stored"], lambda p: p["kinds"]["HMMA"],
                    lambda p: p["kinds"]["GMMA"], lambda p: p["kinds"]["FLOAT"]):
        if measure(ours) and measure(theirs):
            return measure(ours) / measure(theirs)
    return 1


def compare(name, case, theirs, ours):
    a, b = theirs["loop"] or theirs["all"], ours["loop"] or ours["all"]
    loops = theirs["loop"] and ours["loop"]
    times = rounds(b, a) if loops else 1
    ratio = time_of(ours["flat"]) / time_of(theirs["flat"])
    if loops:
        ratio = 0.7 * time_of(b) / time_of(a) / times + 0.3 * ratio
    # loops by tensor copies, or of one side alone, are not comparable by bytes
    alike = (a["kinds"]["TMA"] == b["kinds"]["TMA"] and
             bool(theirs["loop"]) == bool(ours["loop"]))
    line = "%s%5.2f %s w%d" % (" " if alike else "?", ratio, name, case["warps"])
    line += " loop x%.3g" % times if loops else ""
    for key, x, y in (("n", theirs["all"]["n"], ours["all"]["n"]),
                      ("regs", theirs["regs"], ours["regs"]),
                      ("spill", theirs["spill"], ours["spill"]), ("here", a["n"], b["n"]),
                      ("loaded", a["loaded"], b["loaded"]),
                      ("stored", a["stored"], b["stored"])):
        line += " %s %d/%d" % (key, x, y)
    for k in CLASSES:
        if a["kinds"][k] != b["kinds"][k]:
            line += " %s %d/%d" % (k, a["kinds"][k], b["kinds"][k])
    return (alike, ratio, line)


def table(out):
    rows = []
    for path in sorted(glob.glob(out + "/*.case")):
        theirs = assemble(path[:-5] + ".triton.ptx")
        ours = assemble(path[:-5] + ".sdc.ptx")
        if theirs and ours:
            with open(path) as f:
                name = os.path.basename(path)[:-5]
                rows.append(compare(name, json.load(f), theirs, ours))
    rows.sort(key=lambda r: (not r[0], -r[1]))
    return [(r[1], r[2]) for r in rows]

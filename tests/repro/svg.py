"""Plots of lines and points as SVG text, with nothing but Python.

    panel = Panel("time", "realised sparsity", "ms")
    panel.line("dense", [(0, 1), (1, 1)]); panel.points("sdc", [...])
    write("out.svg", "title", [panel, ..])

Colours follow the reader's screen, light or dark, and are those of sdc plot. A panel with
log=True has powers of two on both axes; share(panels) gives all the same axes.
"""
import math

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 460, 320, 60, 34, 16, 50
HEAD, LEGEND = 62, 24
LIGHT = ["#1f6feb", "#d9480f", "#0f8a5f", "#8e44ec", "#a16207", "#d6336c"]
DARK = ["#6cb0ff", "#ff9b57", "#4bc48d", "#c49bff", "#e6b93f", "#ff82b0"]


def colors(of):
    return "".join(f".l{i}{{stroke:{c}}}.d{i}{{fill:{c}}}" for i, c in enumerate(of))


STYLE = (
    "<style>text{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;"
    "fill:#57606a}.bg{fill:#ffffff}.title{font-size:16px;font-weight:600;fill:#1f2328}"
    ".name{fill:#1f2328}.bold{font-weight:600;fill:#1f2328}.grid{stroke:#d8dee4}"
    ".axis{stroke:#8c959f;fill:none}.one{stroke:#8c959f;stroke-dasharray:6 4}"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}"
    ".dash{stroke-dasharray:5 4}.dot{fill-opacity:.55}" + colors(LIGHT) +
    "@media (prefers-color-scheme: dark){text{fill:#9198a1}.bg{fill:#0d1117}"
    ".title,.name,.bold{fill:#f0f6fc}.grid{stroke:#2a3038}.axis{stroke:#656d76}"
    ".one{stroke:#848d97}" + colors(DARK) + "}</style>")


def ticks(low, high, count=5):
    """Round numbers between low and high, about `count` of them."""
    if high <= low:
        return [low]
    rough = (high - low) / count
    base = 10 ** math.floor(math.log10(rough))
    step = next(base * m for m in (1, 2, 2.5, 5, 10) if base * m >= rough)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, int(high / step + 1e-9) + 1)]


def powers(low, high, count=5):
    """Powers of two between low and high, about `count` of them."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    every = max(1, -(-(last - first + 1) // count))
    return [2.0 ** e for e in range(first, last + 1, every)]


def name_of(value, last):
    """2048 as 2K on an axis that goes on to 8192, as sdc plot has it.

    >>> [name_of(n, 65536) for n in (128, 2048, 8192, 1000)], name_of(2048, 4096)
    (['128', '2K', '8K', '1000'], '2048')
    """
    for unit in ("", "K", "M"):
        if last < 8192 or value < 1024 or value % 1024:
            return f"{value:g}{unit}"
        value /= 1024
    return f"{value:g}G"


def text(value):
    return str(value).replace("&", "&amp;").replace("<", "&lt;")


class Panel:
    def __init__(self, title, x, y, log=False, width=WIDTH, height=HEIGHT, one=None):
        self.title, self.x, self.y, self.log, self.one = title, x, y, log, one
        self.width, self.height, self.series, self.shared = width, height, [], None

    def line(self, name, points, dashed=False):
        self.series.append((name, sorted(points), "dashed" if dashed else "line"))

    def points(self, name, points):
        self.series.append((name, points, "points"))

    def limits(self):
        xs = [p[0] for s in self.series for p in s[1]]
        ys = [p[1] for s in self.series for p in s[1]] + ([self.one] if self.one else [])
        if self.log:
            return min(xs), max(xs), min(ys) / 1.15, max(ys) * 1.15
        return min(xs), max(xs), 0.0, max(ys) * 1.06

    def draw(self, left, top, names):
        x0, x1, y0, y1 = self.shared or self.limits()
        scale = math.log2 if self.log else float
        wide, high = self.width - LEFT - RIGHT, self.height - TOP - BOTTOM
        floor, right = top + self.height - BOTTOM, left + self.width - RIGHT

        def at(p):
            def part(v, a, b):
                return (scale(v) - scale(a)) / ((scale(b) - scale(a)) or 1)
            return left + LEFT + part(p[0], x0, x1) * wide, floor - part(p[1], y0, y1) * high
        out = [f'<text class="bold" x="{left + LEFT}" y="{top + TOP - 12}">'
               f'{text(self.title)}</text>']
        marks = powers if self.log else ticks
        for t in marks(y0, y1):
            _, y = at((x0, t))
            out.append(f'<path class="grid" d="M{left + LEFT} {y:.1f}H{right}"/><text '
                       f'x="{left + LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{t:g}</text>')
        for t in marks(x0, x1):
            x, _ = at((t, y0))
            out.append(f'<path class="axis" d="M{x:.1f} {floor}v5"/><text x="{x:.1f}" '
                       f'y="{floor + 18}" text-anchor="middle">'
                       f'{name_of(t, x1) if self.log else f"{t:g}"}</text>')
        if self.one:
            _, y = at((x0, self.one))
            out.append(f'<path class="one" d="M{left + LEFT} {y:.1f}H{right}"/>')
        out.append(f'<path class="axis" d="M{left + LEFT} {floor}H{right}"/>')
        out.append(f'<text class="name" x="{left + LEFT + wide / 2}" y="{floor + 37}" '
                   f'text-anchor="middle">{text(self.x)}</text><text class="name" '
                   f'transform="translate({left + 14},{floor - high / 2}) rotate(-90)" '
                   f'text-anchor="middle">{text(self.y)}</text>')
        for name, points, kind in self.series:
            i = names.index(name) % len(LIGHT)
            if kind == "points":
                out += [f'<circle class="dot d{i}" cx="{x:.1f}" cy="{y:.1f}" r="2.2"/>'
                        for x, y in map(at, points)]
                continue
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in map(at, points))
            out.append(f'<path class="line l{i}{" dash" if kind == "dashed" else ""}" '
                       f'd="M{path}"/>')
            if kind == "line" and len(points) < 16:
                out += [f'<circle class="d{i}" cx="{x:.1f}" cy="{y:.1f}" r="2.8"/>'
                        for x, y in map(at, points)]
        return out


def share(panels):
    """One pair of axes for all, so that their curves can be compared.

    >>> panels = [Panel("", "", ""), Panel("", "", "")]
    >>> panels[0].line("a", [(1, 2), (2, 5)]); panels[1].line("a", [(0, 10)])
    >>> share(panels); tuple(round(v, 6) for v in panels[0].shared)
    (0, 2, 0.0, 10.6)
    """
    every = [panel.limits() for panel in panels]
    for panel in panels:
        panel.shared = tuple(f(lims[i] for lims in every)
                             for i, f in enumerate((min, max, min, max)))


def write(path, title, panels, columns=None, subtitle=""):
    names, columns = [], columns or len(panels)
    kinds = {}
    for panel in panels:
        for name, _, kind in panel.series:
            kinds.setdefault(name, kind)
            if name not in names:
                names.append(name)
    width = panels[0].width * columns
    height = HEAD + LEGEND + panels[0].height * -(-len(panels) // columns)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" role="img"><title>{text(title)}</title>', STYLE,
           f'<rect class="bg" width="{width}" height="{height}" rx="6"/>',
           f'<text class="title" x="{LEFT}" y="26">{text(title)}</text>',
           f'<text x="{LEFT}" y="44">{text(subtitle)}</text>']
    x, y = LEFT, HEAD + (4 if subtitle else -12)
    for i, name in enumerate(names):
        i %= len(LIGHT)
        mark = (f'<circle class="dot d{i}" cx="{x + 10}" cy="{y - 4}" r="3.5"/>'
                if kinds[name] == "points" else
                f'<path class="line l{i}{" dash" if kinds[name] == "dashed" else ""}" '
                f'd="M{x} {y - 4}h20"/>')
        out.append(f'{mark}<text class="name" x="{x + 26}" y="{y}">{text(name)}</text>')
        x += 46 + 7 * len(name)
    for i, panel in enumerate(panels):
        out += panel.draw(i % columns * panel.width,
                          HEAD + LEGEND - 12 + i // columns * panel.height, names)
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n</svg>\n")

"""Plots of lines and points as SVG text, with nothing but Python.

    panel = Panel("time", "realised sparsity", "ms")
    panel.line("dense", [(0, 1), (1, 1)]); panel.points("sdc", [...])
    write("out.svg", "title", [panel, ..])
"""
import math

COLORS = ["#2563a8", "#c2410c", "#4d7c0f", "#7e22ce", "#0f766e", "#525252"]
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 460, 320, 64, 46, 16, 50


def ticks(low, high, count=5):
    """Round numbers between low and high, about `count` of them."""
    if high <= low:
        return [low]
    rough = (high - low) / count
    base = 10 ** math.floor(math.log10(rough))
    step = next(base * m for m in (1, 2, 2.5, 5, 10) if base * m >= rough)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, int(high / step + 1e-9) + 1)]


class Panel:
    def __init__(self, title, x, y):
        self.title, self.x, self.y, self.series = title, x, y, []

    def line(self, name, points, dashed=False):
        self.series.append((name, sorted(points), "dashed" if dashed else "line"))

    def points(self, name, points):
        self.series.append((name, points, "points"))

    def draw(self, left, names):
        xs = [p[0] for s in self.series for p in s[1]]
        ys = [p[1] for s in self.series for p in s[1]]
        x0, x1, y0, y1 = min(xs), max(xs), 0.0, max(ys) * 1.06

        def at(p):
            return (left + LEFT + (p[0] - x0) / ((x1 - x0) or 1) * (WIDTH - LEFT - RIGHT),
                    TOP + (1 - (p[1] - y0) / ((y1 - y0) or 1)) * (HEIGHT - TOP - BOTTOM))
        out = [f'<text x="{left + LEFT}" y="{TOP - 8}" font-weight="bold">{self.title}</text>']
        for t in ticks(y0, y1):
            _, y = at((x0, t))
            out.append(f'<path d="M{left + LEFT} {y:.1f}H{left + WIDTH - RIGHT}" stroke='
                       f'"#e5e5e5"/><text x="{left + LEFT - 6}" y="{y + 4:.1f}" '
                       f'text-anchor="end">{t:g}</text>')
        for t in ticks(x0, x1):
            x, _ = at((t, y0))
            out.append(f'<path d="M{x:.1f} {HEIGHT - BOTTOM}v4" stroke="#888"/><text '
                       f'x="{x:.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{t:g}'
                       '</text>')
        out.append(f'<path d="M{left + LEFT} {TOP}V{HEIGHT - BOTTOM}H{left + WIDTH - RIGHT}" '
                   'stroke="#888" fill="none"/>')
        out.append(f'<text x="{left + (LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 14}" '
                   f'text-anchor="middle">{self.x}</text><text transform="translate('
                   f'{left + 14},{(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
                   f'text-anchor="middle">{self.y}</text>')
        for name, points, kind in self.series:
            color = COLORS[names.index(name) % len(COLORS)]
            if kind == "points":
                out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{color}" '
                        'fill-opacity="0.55"/>' for x, y in map(at, points)]
            else:
                path = "L".join(f"{x:.1f} {y:.1f}" for x, y in map(at, points))
                dash = ' stroke-dasharray="5 4"' if kind == "dashed" else ""
                out.append(f'<path d="M{path}" stroke="{color}" stroke-width="1.8" '
                           f'fill="none"{dash}/>')
        return out


def write(path, title, panels):
    names = []
    for panel in panels:
        for series in panel.series:
            if series[0] not in names:
                names.append(series[0])
    width, height = WIDTH * len(panels), HEIGHT + 26 + 18 * -(-len(names) // 3)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" '
           'fill="#222">', f'<rect width="{width}" height="{height}" fill="#fff"/>',
           f'<text x="{width / 2}" y="20" text-anchor="middle" font-size="14">{title}</text>']
    for i, panel in enumerate(panels):
        out += panel.draw(i * WIDTH, names)
    for i, name in enumerate(names):
        x, y = 40 + i % 3 * (width - 60) / 3, HEIGHT + 12 + i // 3 * 18
        out.append(f'<rect x="{x:.0f}" y="{y - 9}" width="14" height="10" '
                   f'fill="{COLORS[i % len(COLORS)]}"/><text x="{x + 20:.0f}" y="{y}">{name}'
                   '</text>')
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n</svg>\n")

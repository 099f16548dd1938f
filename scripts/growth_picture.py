"""Draws how a memory grows: two panels over the number of units, all axes logarithmic.

In: files with the output of `ripplemem bench --json`, one for each size. Out: an SVG on standard output.
"""

import json
import math
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP, GAP = 250, 190, 52, 34, 70
COLOURS = ("#2f7ed8", "#d9742b", "#3a9d5d")
STYLE = """text { font: 12px sans-serif; fill: #333 } .title { font-weight: bold }
.grid { stroke: #bbb; stroke-width: 0.5 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .grid { stroke: #555 } }"""


def panels(runs):
    """Titles, and for each line its name and a value for each run."""

    def kilobytes(*path):
        def value(run):
            for name in path:
                run = run[name]
            return run["bytes_per_unit"] / 1000

        return [value(run) for run in runs]

    return [
        ("KB a unit", {"memory, peak": kilobytes("memory", "peak"), "memory, restored": kilobytes("memory", "restored"),
                       "log and caches": kilobytes("disk", "log")}),
        ("ms a question", {"p99": [run["ask"]["p99_ms"] for run in runs], "p50": [run["ask"]["p50_ms"] for run in runs]}),
    ]


def decades(values):
    """The powers of ten around some values, as exponents; at least one decade."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def label(exponent):
    return f"{10 ** exponent:,}" if exponent >= 0 else f"{10.0 ** exponent:g}"


def panel(left, title, lines, units):
    """The elements of one panel."""
    across = decades(units)
    along = decades([value for values in lines.values() for value in values])

    def place(unit, value):
        x = (math.log10(unit) - across[0]) / (across[1] - across[0])
        y = (math.log10(value) - along[0]) / (along[1] - along[0])
        return f"{left + x * WIDTH:.1f},{TOP + HEIGHT - y * HEIGHT:.1f}"

    yield f'<text class="title" x="{left}" y="{TOP - 14}">{title}</text>'
    for exponent in range(along[0], along[1] + 1):
        y = TOP + HEIGHT - (exponent - along[0]) / (along[1] - along[0]) * HEIGHT
        yield f'<line class="grid" x1="{left}" x2="{left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{label(exponent)}</text>'
    for exponent in range(across[0], across[1] + 1):
        x = left + (exponent - across[0]) / (across[1] - across[0]) * WIDTH
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{TOP + HEIGHT}"/>'
        yield f'<text x="{x:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{label(exponent)}</text>'
    for number, ((name, values), colour) in enumerate(zip(lines.items(), COLOURS)):
        points = [place(unit, value) for unit, value in zip(units, values)]
        yield f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(points)}"/>'
        for x, y in (point.split(",") for point in points):
            yield f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>'
        y = TOP + HEIGHT + 54 + 16 * number
        yield f'<rect x="{left}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
        yield f'<text x="{left + 16}" y="{y}">{name}</text>'
    yield f'<text x="{left + WIDTH / 2}" y="{TOP + HEIGHT + 34}" text-anchor="middle">units</text>'


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: growth_picture.py SMALL.json … LARGE.json > growth.svg")
    runs = sorted((json.loads(Path(path).read_text()) for path in sys.argv[1:]), key=lambda run: run["units"])
    units = [run["units"] for run in runs]
    drawn = panels(runs)
    size = f"{LEFT + len(drawn) * (WIDTH + GAP)} {TOP + HEIGHT + 100}"
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img">')
    print(f"<title>Memory, disk and time of a question by the number of units</title><style>{STYLE}</style>")
    for number, (title, lines) in enumerate(drawn):
        print("\n".join(panel(LEFT + number * (WIDTH + GAP), title, lines, units)))
    print("</svg>")


main()
